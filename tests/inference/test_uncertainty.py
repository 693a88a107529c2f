"""Uncertainty intervals: against R's ui, against rows, and against a known truth."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, truncnorm

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError
from heckmanfa.fit import PassedRows
from heckmanfa.inference.rows_of_fit import read_fit_rows
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import gather_moments
from heckmanfa.model.normal import mills
from heckmanfa.model.two_step_over_rho import TwoStepOverRho

PREDICTION = [0, 2, 3]


def by_rows(X, y, gamma, columns, rho, weight=None):
    """beta, the standard errors of Genback et al. and sigma at one rho, from the selected rows."""
    s = ~np.isnan(y)
    w = np.ones(s.sum()) if weight is None else weight[s]
    index = gamma[0] + X[s] @ gamma[1:]
    ratio, delta = mills(index)
    x = np.column_stack([np.ones(s.sum()), X[s][:, columns]])
    root = np.sqrt(w)[:, None]
    both = np.column_stack([y[s], ratio])
    (b, c), *_ = (part.T for part in np.linalg.lstsq(x * root, both * root, rcond=None)[:1])
    m, j = w.sum(), len(columns)
    s2 = w @ (y[s] - x @ b) ** 2 / (m - j - 1)
    share = (w @ (index * ratio) + w @ (x @ c) ** 2) / (m - j)
    sigma = np.sqrt(s2 / (1 - rho**2 * share))
    variance = sigma**2 * (1 - rho**2 * (w @ delta) / m)
    inverse = np.linalg.inv((x * root).T @ (x * root))
    return b - rho * sigma * c, np.sqrt(variance * np.diag(inverse)), sigma


def errors_by_rows(X, y, gamma, covariance, columns, rho, weight=None):
    """Standard errors to first order: SciPy's truncated normal, and differences in gamma."""

    def beta_at(gamma):
        return by_rows(X, y, gamma, columns, rho, weight)[0]

    steps = 1e-5 * np.sqrt(np.diag(covariance))
    slope = np.column_stack([
        (beta_at(gamma + step) - beta_at(gamma - step)) / (2 * step.sum())
        for step in np.diag(steps)
    ])  # fmt: skip
    s = ~np.isnan(y)
    w = np.ones(s.sum()) if weight is None else weight[s]
    x = np.column_stack([np.ones(s.sum()), X[s][:, columns]])
    index = gamma[0] + X[s] @ gamma[1:]
    _, _, sigma = by_rows(X, y, gamma, columns, rho, weight)
    kappa, root = rho * sigma, np.sqrt(w)[:, None]
    mean, variance, skew, excess = truncnorm.stats(-index, np.inf, moments="mvsk")
    inverse = np.linalg.inv((x * root).T @ (x * root))
    c = inverse @ (x.T @ (w * mean))
    # What selection leaves is kappa (t - E t) and an error of its own.
    second = kappa**2 * variance + sigma**2 * (1 - rho**2)
    third = kappa**3 * skew * variance**1.5
    fourth = kappa**4 * excess * variance**2 + 2 * second**2
    m, j = w.sum(), len(columns)
    residual = 2 * kappa * (mean - x @ c)
    s2 = w @ (y[s] - x @ (inverse @ (x.T @ (w * y[s])))) ** 2 / (m - j - 1)
    influence = x @ inverse
    pull = -kappa / (2 * s2 * (m - j - 1)) * c
    # The error of beta from one row is (influence + pull residual) v + pull v^2.
    linear = influence + residual[:, None] * pull
    total = (linear * (w * second)[:, None]).T @ linear
    cross = np.outer(linear.T @ (w * third), pull)
    total += cross + cross.T + (w @ fourth) * np.outer(pull, pull)
    return np.sqrt(np.diag(total + slope @ covariance @ slope.T))


def gamma_of(model):
    return np.append(model.selection_intercept_, model.selection_coef_)


# Against R's ui. ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mroz(case):
    return case("mroz_wooldridge")


@pytest.fixture(scope="module")
def theirs(oracle):
    return oracle("ui")["mroz_wooldridge"]


@pytest.fixture(scope="module")
def ours(mroz):
    model = Heckman(mroz.prediction, mroz.selection).fit(mroz.X, mroz.y)
    return model.uncertainty_interval((-0.3, 0.3), n_grid=61)


def glm_probit(z, selected):
    """R's glm(..., family = binomial("probit")): Fisher scoring from its start, to its stop."""

    def deviance(mean):
        return -2.0 * np.sum(np.log(np.where(selected, mean, 1.0 - mean)))

    y = selected.astype(float)
    mean = (y + 0.5) / 2.0
    index, before = norm.ppf(mean), deviance(mean)
    for _ in range(25):
        slope = norm.pdf(index)
        root = slope / np.sqrt(mean * (1.0 - mean))
        working = index + (y - mean) / slope
        coef = np.linalg.lstsq(z * root[:, None], working * root, rcond=None)[0]
        index = z @ coef
        mean = norm.cdf(index)
        now = deviance(mean)
        if abs(now - before) / (abs(now) + 0.1) < 1e-8:
            return coef
        before = now
    raise AssertionError("no convergence")


@pytest.fixture(scope="module")
def given_their_probit(mroz, ours):
    """The interval of the gamma-hat at which R's glm stops."""
    model = Heckman(mroz.prediction, mroz.selection).fit(mroz.X, mroz.y)
    selected = mroz.y.notna().to_numpy()
    gamma = glm_probit(np.column_stack([np.ones(len(mroz.X)), mroz.X[mroz.selection]]), selected)
    assert 1e-7 < np.abs(gamma / model.fit_.probit.coef - 1).max() < 1e-4
    probit = dataclasses.replace(
        model.fit_.probit,
        coef=gamma,
        inner_coef=solve_upper(model.fit_.probit.coordinates.back(), gamma),
    )
    rows = read_fit_rows(model.fit_, PassedRows(mroz.X, mroz.y)).rows
    moments = gather_moments(rows, model.fit_.moments.columns, model.n_features_in_, probit)
    features = np.flatnonzero(model.support_)
    curve = TwoStepOverRho.build(moments, features, ours.curve.terms)
    mean_square = moments.factor[:, -2] @ moments.factor[:, -2] / moments.n_selected
    return dataclasses.replace(ours, curve=curve), moments.mean_delta, mean_square


def test_a_converged_probit_gives_the_bounds_of_ui_to_the_digits_of_its_own(ours, theirs):
    table, path = ours.tidy(), ours.path()
    assert table["term"].tolist() == ["Intercept", "educ", "exper", "exper2"]
    np.testing.assert_allclose(table["bound_low"], theirs["bound_low"], rtol=1e-5)
    np.testing.assert_allclose(table["bound_high"], theirs["bound_high"], rtol=1e-5)
    ends = [path[path["rho"] == end]["estimate"] for end in (-0.3, 0.3)]
    np.testing.assert_allclose(ends[0], theirs["coef_m0.3"], rtol=1e-5)
    np.testing.assert_allclose(ends[1], theirs["coef_p0.3"], rtol=1e-5)


def test_the_probit_of_ui_gives_its_bounds_and_coefficients(given_their_probit, theirs):
    interval, *_ = given_their_probit
    table, path = interval.tidy(), interval.path()
    np.testing.assert_allclose(table["bound_low"], theirs["bound_low"], rtol=1e-12)
    np.testing.assert_allclose(table["bound_high"], theirs["bound_high"], rtol=1e-12)
    ends = [path[path["rho"] == end]["estimate"] for end in (-0.3, 0.3)]
    np.testing.assert_allclose(ends[0], theirs["coef_m0.3"], rtol=1e-12)
    np.testing.assert_allclose(ends[1], theirs["coef_p0.3"], rtol=1e-12)


def test_the_standard_errors_of_ui_are_those_with_a_wrong_sign(given_their_probit, theirs, mroz):
    """It subtracts the mean of lambda^2 where E[v^2 | s = 1] adds it.

    Published are variances with gamma and sigma(rho) known, and the mean's variance in every row.
    """
    interval, mean_delta, mean_square = given_their_probit
    curve, n_terms = interval.curve, len(interval.curve.terms)

    def published(mean):
        variance = np.tile([1.0, 0.0, curve.shrinkage - mean, 0.0, 0.0, 0.0, 0.0], (n_terms, 1))
        return dataclasses.replace(curve, variance=variance)

    wrong = published(mean_delta - 2 * mean_square)
    table = dataclasses.replace(interval, curve=wrong).tidy()
    low = np.array([-0.3])
    np.testing.assert_allclose(wrong.std_error(low)[0], theirs["se_m0.3"], rtol=1e-12)
    np.testing.assert_allclose(table["ui_low"], theirs["ui_low"], rtol=1e-11)
    np.testing.assert_allclose(table["ui_high"], theirs["ui_high"], rtol=1e-11)
    # With the right sign: the residual v = e - rho sigma lambda of the rows themselves.
    s = mroz.y.notna().to_numpy()
    z = np.column_stack([np.ones(len(mroz.X)), mroz.X[mroz.selection]])
    gamma = glm_probit(z, s)
    beta, error, _ = by_rows(
        mroz.X[mroz.selection].to_numpy(), mroz.y.to_numpy(), gamma, [1, 2, 3], -0.3
    )
    np.testing.assert_allclose(curve.estimate(low)[0], beta, rtol=1e-9)
    np.testing.assert_allclose(published(mean_delta).std_error(low)[0], error, rtol=1e-9)
    assert np.all(error < 0.97 * np.array(theirs["se_m0.3"]))
    # Ours also allow for the probit and for sigma.
    assert np.all(curve.std_error(low)[0] > error)


def test_the_variance_of_what_selection_leaves_has_the_plus_sign():
    """E[v^2 | s = 1] = sigma^2 (1 - rho^2 (u lambda + lambda^2)), seen in errors that are known."""
    data = make_selection(200_000, 3, 2, rho=0.8, sigma=2.0, selection_rate=0.4, random_state=1)
    index = data.selection_intercept + data.X @ data.selection_coef
    e = data.complete_y - data.intercept - data.X @ data.coef
    ratio, _ = mills(index)
    s = data.selected
    v = (e - 0.8 * 2.0 * ratio)[s]
    mean = np.mean((index * ratio)[s])
    square = np.mean(ratio[s] ** 2)
    assert np.mean(v**2) == pytest.approx(4 * (1 - 0.64 * (mean + square)), rel=0.01)
    assert np.mean(v**2) < 0.6 * 4 * (1 - 0.64 * (mean - square))


# Against the rows. ----------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [-0.95, -0.2, 0.0, 0.7])
def test_coefficients_and_errors_at_a_rho_are_those_of_least_squares_on_rows(rho, simulated):
    model = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    path = model.uncertainty_interval((rho, rho), conf_level=0.9).path()
    given = simulated.X, simulated.y, gamma_of(model)
    beta, _, sigma = by_rows(*given, PREDICTION, rho)
    error = errors_by_rows(*given, model.fit_.probit.covariance, PREDICTION, rho)
    assert path["rho"].tolist() == [rho] * 4
    assert path["term"].tolist() == ["Intercept", "x0", "x2", "x3"]
    np.testing.assert_allclose(path["estimate"], beta, rtol=1e-10)
    np.testing.assert_allclose(path["std_error"], error, rtol=1e-8)
    np.testing.assert_allclose(path["sigma"], sigma, rtol=1e-10)
    np.testing.assert_allclose(path["ci_high"], beta + norm.ppf(0.95) * error, rtol=1e-8)


def test_rho_zero_is_least_squares(simulated):
    X, y, s = simulated.X, simulated.y, simulated.selected
    table = Heckman(PREDICTION).fit(X, y).uncertainty_interval((0, 0)).tidy()
    x = np.column_stack([np.ones(s.sum()), X[s][:, PREDICTION]])
    beta, sse = np.linalg.lstsq(x, y[s], rcond=None)[:2]
    error = np.sqrt(sse / (s.sum() - 4) * np.diag(np.linalg.inv(x.T @ x)))
    for name in ("ols", "bound_low", "bound_high"):
        np.testing.assert_allclose(table[name], beta, rtol=1e-12)
    np.testing.assert_allclose(table["ui_low"], beta - norm.ppf(0.975) * error, rtol=1e-10)
    np.testing.assert_allclose(table["ui_high"], beta + norm.ppf(0.975) * error, rtol=1e-10)


def test_bounds_and_the_union_of_intervals_are_extremes_of_the_path(simulated):
    interval = (
        Heckman(PREDICTION)
        .fit(simulated.X, simulated.y)
        .uncertainty_interval((-0.6, 0.8), n_grid=401)
    )
    assert interval.grid[[0, -1]].tolist() == [-0.6, 0.8]
    assert len(interval.grid) == 401
    by_term = interval.path().groupby("term", sort=False)
    table = interval.tidy().set_index("term")
    for name, extremes in (
        ("bound_low", by_term["estimate"].min()),
        ("bound_high", by_term["estimate"].max()),
        ("ui_low", by_term["ci_low"].min()),
        ("ui_high", by_term["ci_high"].max()),
    ):
        pd.testing.assert_series_equal(table[name], extremes, check_names=False)


def crossings(function, reach):
    """Every zero of a function of rho that a fine scan brackets."""
    grid = np.linspace(-reach, reach, 40_001)[1:-1]
    values = function(grid)
    places = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
    return [
        brentq(lambda r: float(function(np.array([r]))[0]), grid[i], grid[i + 1], xtol=1e-14)
        for i in places
    ]


@pytest.mark.parametrize("seed", range(6))
def test_tipping_points_are_where_a_scan_finds_them(seed):
    data = make_selection(
        300, 8, prediction_features=[0, 1, 2], rho=0.3, sigma=4.0, random_state=seed
    )
    model = Heckman([0, 1, 2, 3, 4, 5]).fit(data.X, data.y)
    interval = model.uncertainty_interval((-0.1, 0.1), conf_level=0.9)
    curve, table = interval.curve, interval.tidy()
    quantile = norm.ppf(0.95)
    seen = set()
    for j, row in table.iterrows():
        zeros = crossings(lambda r, j=j: curve.estimate(r)[:, j], curve.reach)
        np.testing.assert_allclose(
            row["sign_change"], zeros[0] if zeros else np.nan, rtol=0, atol=1e-10
        )
        ends = [
            zero
            for side in (-1, 1)
            for zero in crossings(
                lambda r, j=j, side=side: (
                    curve.estimate(r)[:, j] + side * quantile * curve.std_error(r)[:, j]
                ),
                curve.reach,
            )
        ]
        below = max((one for one in ends if one < 0), default=np.nan)
        above = min((one for one in ends if one > 0), default=np.nan)
        np.testing.assert_allclose(row["significance_low"], below, rtol=0, atol=1e-10)
        np.testing.assert_allclose(row["significance_high"], above, rtol=0, atol=1e-10)
        seen.add(bool(abs(row["ols"]) > quantile * curve.std_error(np.zeros(1))[0, j]))
    assert seen == {True, False}
    assert table["sign_change"].notna().any()


def test_units_do_not_move_tipping_points():
    data = make_selection(300, 6, prediction_features=[0, 1, 2], sigma=4.0, random_state=0)
    plain = Heckman([0, 1, 2, 3]).fit(data.X, data.y).uncertainty_interval().tidy()
    X = data.X * [1e-60, 1, 1e60, 1, 1, 1]
    scaled = Heckman([0, 1, 2, 3]).fit(X, 1e60 * data.y).uncertainty_interval().tidy()
    for name in ("sign_change", "significance_low", "significance_high"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-9)
        assert plain[name].notna().any()


@pytest.mark.parametrize("rho", [-0.6, 0.5])
def test_at_the_true_rho_the_coefficients_are_near_the_truth(rho):
    data = make_selection(50_000, 6, 4, rho=rho, sigma=1.5, random_state=3)
    model = Heckman(np.flatnonzero(data.support)).fit(data.X, data.y)
    truth = np.append(data.intercept, data.coef[data.support])
    at = model.uncertainty_interval((rho, rho)).path()
    np.testing.assert_allclose(at["estimate"], truth, atol=0.03)
    np.testing.assert_allclose(at["sigma"], 1.5, rtol=0.02)
    wide = model.uncertainty_interval((rho - 0.2, rho + 0.2)).tidy()
    assert np.all((wide["bound_low"] < truth) & (truth < wide["bound_high"]))
    naive = wide["ols"] - truth
    assert np.abs(naive).max() > 5 * np.abs(at["estimate"] - truth).max()


# Models and reports. --------------------------------------------------------------------------


def test_a_report_says_what_its_standard_errors_leave_out(simulated):
    model = HeckmanBestSubset(rho_range=(-0.9, 0.9), method="ml", cov_type="robust")
    model.fit(simulated.X, simulated.y)
    interval = model.uncertainty_interval((0.6, 0.9))
    plain = Heckman(model.prediction_features_, cov_type="robust").fit(simulated.X, simulated.y)
    pd.testing.assert_frame_equal(
        interval.tidy(), plain.uncertainty_interval((0.6, 0.9)).tidy(), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rho": 0.3}, "two numbers"),
        ({"rho": (0.1, 0.2, 0.3)}, "two numbers"),
        ({"rho": ("a", "b")}, "two numbers"),
        ({"rho": (0.1, np.nan)}, "two numbers"),
        ({"rho": (0.3, -0.3)}, r"\(low, high\)"),
        ({"rho": (-1.0, 0.3)}, r"inside \(-1, 1\)"),
        ({"rho": (0.0, 1.5)}, r"inside \(-1, 1\)"),
        ({"conf_level": 95}, "conf_level"),
        ({"conf_level": 0.0}, "conf_level"),
        ({"n_grid": 1}, "n_grid"),
        ({"n_grid": 2.5}, "n_grid"),
    ],
)
def test_what_cannot_be_used_is_refused(options, words, simulated):
    model = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    with pytest.raises(InputError, match=words):
        model.uncertainty_interval(**options)


def test_a_range_in_which_sigma_is_not_defined_is_refused():
    """Few selected rows for their features, of which every one was unlikely to be selected."""
    data = make_selection(4000, 22, 20, selection_rate=0.01, strength=0.3, random_state=0)
    model = Heckman(np.flatnonzero(data.support)).fit(data.X, data.y)
    interval = model.uncertainty_interval((-0.3, 0.3))
    reach = interval.curve.reach
    assert 0.5 < reach < 1
    with pytest.raises(InputError, match=re.escape(f"|rho| of {reach:.6g} or more")):
        model.uncertainty_interval((-0.3, 0.5 + reach / 2))
    changes = interval.tidy()["sign_change"]
    assert changes.abs().max() < reach
