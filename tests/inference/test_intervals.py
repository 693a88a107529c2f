"""Intervals of predictions: against mpmath, simulated outcomes, and numerical gradients."""

import copy
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm
from tests.moved import moved_model

from heckmanfa import Heckman, HeckmanAverage
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    InputError,
    NotIdentifiedError,
    RhoOutsideWarning,
)
from heckmanfa.model import normal
from heckmanfa.model.normal import mills, selected_cdf, selected_quantile, selected_quantiles

KINDS = ("marginal", "selected", "unselected")


@pytest.fixture(scope="module", params=["two-step", "ml"])
def model(request, simulated):
    return Heckman([0, 2, 3], method=request.param).fit(simulated.X, simulated.y)


def exact_cdf(q, u, rho):
    """P(e <= q | w > -u) by integration over w to 25 digits."""
    q, u, rho = (mp.mpf(float(one)) for one in (q, u, rho))
    r = mp.sqrt(1 - rho**2)
    low, high = max(-u, mp.mpf(-11)), mp.sqrt(min(u, mp.mpf(0)) ** 2 + 120)
    points = {low + (high - low) * part / 16 for part in range(17)}
    points |= {q / rho + r / abs(rho) * part for part in (-10, -5, -2, 0, 2, 5, 10)}
    points = sorted(point for point in points if low <= point <= high)
    scale = mp.ncdf(u)
    return mp.quad(
        lambda w: mp.npdf(w) * mp.ncdf((q - rho * w) / r) / scale,
        points,
        method="gauss-legendre",
    )


@pytest.mark.parametrize("rho", [-0.99, -0.4, 0.1, 0.75, 0.99, 0.9999])
def test_quantiles_agree_with_mpmath_even_where_selection_is_most_unlikely(rho):
    u = np.array([-30.0, -8.0, -2.5, 0.3, 3.0])
    for p in (0.005, 0.9995):
        quantiles = selected_quantile(p, u, np.full(5, rho))
        with mp.workdps(25):
            exact = [float(exact_cdf(q, one, rho)) for q, one in zip(quantiles, u, strict=True)]
        np.testing.assert_allclose(exact, p, rtol=0, atol=1e-9 * min(p, 1 - p))


def test_quantiles_agree_with_simulated_errors():
    rng = np.random.default_rng(0)
    w, v = rng.standard_normal((2, 400_000))
    for rho in (-0.8, 0.3, 0.95):
        e = rho * w + np.sqrt(1 - rho**2) * v
        for u in (-1.0, 0.5):
            given = np.sort(e[w > -u])
            for p in (0.05, 0.5, 0.95):
                q = selected_quantile(p, np.array([u]), np.array([rho]))[0]
                share = np.searchsorted(given, q) / len(given)
                assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / len(given))


def test_quantiles_of_extreme_rows_are_finite_and_ordered():
    u = np.repeat([-1e4, -100.0, -8.0, 0.0, 8.0, 1e4], 5)
    rho = np.tile([-0.9999999, -0.5, 0.0, 0.5, 0.9999999], 6)
    quantiles = np.array(
        [selected_quantile(p, u, rho) for p in (1e-6, 0.025, 0.5, 0.975, 1 - 1e-6)]
    )
    assert np.isfinite(quantiles).all()
    assert np.all(np.diff(quantiles, axis=0) > 0)
    np.testing.assert_allclose(
        quantiles[1, rho == 0], ndtri(0.025), rtol=1e-10, err_msg="independent errors are normal"
    )
    np.testing.assert_allclose(
        quantiles[1, u == 1e4], ndtri(0.025), rtol=1e-8, err_msg="all are selected"
    )
    # Mirrored, the law of -rho is that of rho.
    np.testing.assert_allclose(quantiles[1, rho == -0.5], -quantiles[3, rho == 0.5], rtol=1e-10)
    # rho of nearly 1, selection nearly impossible: nearly exponential beyond -u.
    far = (u == -100) & (rho > 0.9)
    np.testing.assert_allclose(
        quantiles[2:4, far].ravel(), 100 - np.log([0.5, 0.025]) / 100, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("rho", "conf_level"), [(0.0, 0.95), (0.3, 0.5), (-0.7, 0.99), (0.95, 0.95), (-0.999, 0.95)]
)
def test_quantiles_of_many_rows_are_those_of_few(rho, conf_level, monkeypatch):
    rng, ends = np.random.default_rng(3), np.array([0.5 - conf_level / 2, 0.5 + conf_level / 2])
    u = np.concatenate([rng.uniform(-1.0, 1.5, 40), rng.uniform(-4.0, 5.0, 4), [-20.0, 30.0]])
    rhos = rho / np.sqrt(1.0 + rng.exponential(0.02, len(u)))
    few = np.column_stack([selected_quantile(end, u, rhos) for end in ends])
    spread = np.sqrt(1.0 - rhos**2 * mills(u)[1])
    monkeypatch.setattr(normal, "_LEAST_ROWS", 1)
    many = selected_quantiles(ends, u, rhos)
    assert np.max(np.abs(many - few) / spread[:, None]) < 1e-10
    assert not np.array_equal(many, few), "none was interpolated"
    for row in (0, 41) if rho else ():
        with mp.workdps(20):
            shares = [float(exact_cdf(q, u[row], rhos[row])) for q in many[row]]
        np.testing.assert_allclose(shares, ends, rtol=0, atol=1e-10)


def test_rows_without_a_number_have_no_quantiles_among_many():
    u, rho = np.linspace(-1.0, 1.0, 500), np.full(500, 0.4)
    u[7], rho[8] = np.nan, np.nan
    quantiles = selected_quantiles(np.array([0.1, 0.9]), u, rho)
    assert np.flatnonzero(np.isnan(quantiles).any(axis=1)).tolist() == [7, 8]


@pytest.mark.parametrize("transform", [None, "log"])
@pytest.mark.parametrize("kind", ["selected", "unselected"])
def test_intervals_of_many_rows_integrate_few_times(simulated, monkeypatch, kind, transform):
    outcome = simulated.y if transform is None else np.exp(simulated.y)
    model = Heckman([0, 2, 3], outcome_transform=transform).fit(simulated.X, outcome)
    X = np.random.default_rng(4).normal(size=(20_000, simulated.X.shape[1]))
    integrals, integrated = [], normal.selected_cdf

    def counted(q, u, rho):
        integrals.append(len(q))
        return integrated(q, u, rho)

    monkeypatch.setattr(normal, "selected_cdf", counted)
    limits = model.predict(X, kind, "prediction")[1]
    assert sum(integrals) < len(X)
    # The same rows in blocks too small for a polynomial.
    apart = np.vstack(
        [model.predict(X[i : i + 60], kind, "prediction")[1] for i in range(0, 600, 60)]
    )
    np.testing.assert_allclose(limits[:600], apart, rtol=1e-8, atol=1e-8)


def test_the_distribution_function_rises_from_zero_to_one():
    q = np.linspace(-9, 12, 400)
    for u in (-6.0, 0.0, 4.0):
        for rho in (0.0, 0.6, 0.72, 0.99):
            values = selected_cdf(q, np.full(400, u), np.full(400, rho))
            assert np.all(np.diff(values) > -1e-13)
            assert values[0] < 1e-12
            assert values[-1] == pytest.approx(1.0, abs=1e-12)


def test_without_an_interval_predictions_are_as_they_were(model, simulated):
    for kind in KINDS:
        plain = model.predict(simulated.X, kind)
        for which in ("prediction", "confidence"):
            values, limits = model.predict(simulated.X, kind, which)
            np.testing.assert_array_equal(values, plain)
            assert limits.shape == (800, 2)
            assert np.all(limits[:, 0] < values)
            assert np.all(values < limits[:, 1])
    assert isinstance(model.predict(simulated.X), np.ndarray)


def test_marginal_intervals_are_the_textbook_ones(model, simulated):
    X = np.column_stack([np.ones(800), simulated.X[:, [0, 2, 3]]])
    v = model.vcov().loc["prediction", "prediction"].to_numpy()
    variance = np.einsum("ij,jk,ik->i", X, v, X)
    z = norm.ppf(0.9)
    for which, extra in (("confidence", 0.0), ("prediction", model.sigma_**2)):
        values, limits = model.predict(simulated.X, return_interval=which, conf_level=0.8)
        half = z * np.sqrt(variance + extra)
        np.testing.assert_allclose(limits, np.column_stack([values - half, values + half]))


@pytest.mark.parametrize("kind", ["selected", "unselected", "expected"])
def test_confidence_limits_are_those_of_a_numerical_gradient(model, simulated, kind):
    X, step = simulated.X[:50], 1e-5
    gradient = []
    for term in model.fit_.terms[:12]:
        ends = [moved_model(model, term, side * step).predict(X, kind) for side in (1, -1)]
        gradient.append((ends[0] - ends[1]) / (2 * step))
    gradient = np.column_stack(gradient)
    v = model.fit_.covariance[:12, :12]
    error = np.sqrt(np.einsum("ij,jk,ik->i", gradient, v, gradient))
    values, limits = model.predict(X, kind, "confidence", conf_level=0.9)
    half = norm.ppf(0.95) * error
    np.testing.assert_allclose(limits, np.column_stack([values - half, values + half]), rtol=1e-7)


@pytest.mark.parametrize("kind", ["selected", "unselected"])
def test_the_law_of_a_new_outcome_has_the_predicted_mean(model, simulated, kind):
    X = simulated.X[:20]
    # The mean is the average of all quantiles; pairs of limits are two of them.
    levels = np.linspace(0, 1, 2002)[1:-1]
    limits = [model.predict(X, kind, "prediction", conf_level=one)[1] for one in levels[::10]]
    means = np.mean(limits, axis=(0, 2))
    np.testing.assert_allclose(means, model.predict(X, kind), atol=2e-3 * model.sigma_)


@pytest.mark.parametrize("conf_level", [0.5, 0.9, 0.99])
def test_intervals_grow_with_the_level(model, simulated, conf_level):
    for kind in KINDS:
        for which in ("prediction", "confidence"):
            inner, outer = (
                model.predict(simulated.X, kind, which, level)[1]
                for level in (conf_level, conf_level + 0.005)
            )
            assert np.all(outer[:, 0] < inner[:, 0])
            assert np.all(inner[:, 1] < outer[:, 1])


def test_without_correlation_selection_does_not_matter(model, simulated):
    flat = copy.copy(model)
    flat._fit = model.fit_.with_errors(rho=0.0, imr=0.0)
    expected = flat.predict(simulated.X, "marginal", "prediction")[1]
    for kind in ("selected", "unselected"):
        np.testing.assert_allclose(
            flat.predict(simulated.X, kind, "prediction")[1], expected, rtol=1e-9, atol=1e-10
        )


def fresh(truth, rng, n):
    """New rows from the same truth: features, outcomes, who is selected."""
    X = rng.standard_normal((n, truth.X.shape[1]))
    w = rng.standard_normal(n)
    e = truth.rho * w + np.sqrt(1 - truth.rho**2) * rng.standard_normal(n)
    y = truth.intercept + X @ truth.coef + truth.sigma * e
    return X, y, truth.selection_intercept + X @ truth.selection_coef + w > 0


def coverage(model, X, y, selected):
    """How often 90% intervals hold the outcome: of all rows, the selected, and the others."""
    shares = []
    for kind, rows in zip(KINDS, (np.ones_like(selected), selected, ~selected), strict=True):
        low, high = model.predict(X[rows], kind, "prediction", conf_level=0.9)[1].T
        shares.append(np.mean((low <= y[rows]) & (y[rows] <= high)))
    return np.array(shares)


@pytest.mark.study
@pytest.mark.parametrize("rho", [-0.6, 0.9])
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_prediction_intervals_hold_new_outcomes_as_often_as_they_say(method, rho):
    truth = make_selection(
        30_000, 4, prediction_features=[0, 1], rho=rho, sigma=2.0, random_state=8
    )
    model = Heckman([0, 1], method=method).fit(truth.X, truth.y)
    shares = coverage(model, *fresh(truth, np.random.default_rng(5), 30_000))
    # Four standard errors of a share of 15,000 rows.
    assert np.all(np.abs(shares - 0.9) < 0.0098)


@pytest.mark.study
def test_in_small_samples_intervals_miss_what_they_leave_out_and_no_more():
    rng = np.random.default_rng(5)
    shares = []
    for seed in range(40):
        truth = make_selection(
            700, 4, prediction_features=[0, 1], rho=-0.6, sigma=2.0, random_state=seed
        )
        model = Heckman([0, 1], method="ml").fit(truth.X, truth.y)
        shares.append(coverage(model, *fresh(truth, rng, 600)))
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(40)
    # The errors of rho and sigma are not in the interval, and matter most for unselected rows.
    assert np.all(np.abs(mean[:2] - 0.9) < 4 * error[:2])
    assert 0.86 < mean[2] < 0.91


@pytest.mark.study
def test_confidence_intervals_hold_the_expectation_as_often_as_they_say():
    hits = []
    point = np.array([[0.5, -1.0, 0.3, 0.8], [-1.0, 0.5, 1.0, -0.5]])
    for seed in range(200):
        truth = make_selection(
            500, 4, prediction_features=[0, 1], rho=0.5, random_state=np.random.default_rng(seed)
        )
        model = Heckman([0, 1]).fit(truth.X, truth.y)
        index = truth.selection_intercept + point @ truth.selection_coef
        mean = truth.intercept + point @ truth.coef
        imr = truth.rho * truth.sigma
        for kind, expected in (
            ("marginal", mean),
            ("selected", mean + imr * norm.pdf(index) / norm.cdf(index)),
            ("unselected", mean - imr * norm.pdf(index) / norm.cdf(-index)),
        ):
            low, high = model.predict(point, kind, "confidence", conf_level=0.9)[1].T
            hits.append((low <= expected) & (expected <= high))
    shares = np.mean(np.reshape(hits, (200, 6)), axis=0)
    assert np.all(np.abs(shares - 0.9) < 4 * np.sqrt(0.09 / 200))


def test_a_rho_outside_its_range_gives_no_law_given_selection():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 2))
    index = X[:, 0] + 0.2 * X[:, 1]
    # The outcome of selected rows bends with the index more than any rho can explain.
    y = np.where(index + rng.standard_normal(120) > 0, np.exp(-1.5 * index), np.nan)
    with pytest.warns(RhoOutsideWarning):
        model = Heckman([1]).fit(X, y)
    assert abs(model.rho_) > 1
    for kind in ("selected", "unselected"):
        with pytest.raises(NotIdentifiedError, match=r"'ml'.*'marginal'"):
            model.predict(X, kind, "prediction")
        assert model.predict(X, kind, "confidence")[1].shape == (120, 2)
    assert np.isfinite(model.predict(X, "marginal", "prediction")[1]).all()


def test_where_the_covariance_is_not_known_there_are_no_intervals(model, simulated):
    broken = copy.copy(model)
    broken._fit = replace(model.fit_, covariance=np.full_like(model.fit_.covariance, np.nan))
    for kind in KINDS:
        for which in ("prediction", "confidence"):
            values, limits = broken.predict(simulated.X, kind, which)
            assert np.isfinite(values).all()
            assert np.isnan(limits).all()


def test_rows_that_miss_a_regressor_have_no_interval():
    mroz = load_mroz()
    model = Heckman.from_formula("lwage ~ educ + exper", "lfp ~ educ + exper + age + kids5", mroz)
    holes = mroz.assign(age=mroz["age"].where(mroz.index > 4))
    for which in ("prediction", "confidence"):
        values, limits = model.predict(holes, "selected", which, missing="nan")
        assert np.isnan(values[:5]).all()
        assert np.isnan(limits[:5]).all()
        np.testing.assert_allclose(limits[5:], model.predict(mroz, "selected", which)[1][5:])
        assert np.isfinite(model.predict(holes, "marginal", which)[1]).all()


def test_where_all_outcomes_are_observed_intervals_are_those_of_least_squares(simulated):
    with pytest.warns(AllObservedWarning):
        model = Heckman([0, 2, 3]).fit(simulated.X, simulated.complete_y)
    X = np.column_stack([np.ones(800), simulated.X[:, [0, 2, 3]]])
    variance = model.sigma_**2 * np.einsum("ij,jk,ik->i", X, np.linalg.inv(X.T @ X), X)
    for kind in ("marginal", "selected"):
        values, limits = model.predict(simulated.X, kind, "prediction")
        half = norm.ppf(0.975) * np.sqrt(model.sigma_**2 + variance)
        np.testing.assert_allclose(limits, np.column_stack([values - half, values + half]))
        limits = model.predict(simulated.X, kind, "confidence")[1]
        half = norm.ppf(0.975) * np.sqrt(variance)
        np.testing.assert_allclose(limits[:, 1] - values, half)
    with pytest.raises(NotIdentifiedError):
        model.predict(simulated.X, "unselected", "prediction")


def test_misuse_says_what_to_do(model, simulated):
    with pytest.raises(InputError, match=r"'predictions'.*'prediction'"):
        model.predict(simulated.X, return_interval="predictions")
    for level in (0, 1, 95, -0.1, np.nan, "95%"):
        with pytest.raises(InputError, match=r"conf_level.*0.*1"):
            model.predict(simulated.X, return_interval="prediction", conf_level=level)
    with pytest.raises(InputError, match="kind must be"):
        model.predict(simulated.X, kind="selection", return_interval="prediction")


def test_intervals_of_many_rows_are_the_same_on_any_number_of_threads(monkeypatch):
    data = make_selection(600, 4, 2, random_state=0)
    model = HeckmanAverage().fit(data.X, data.y)
    rows = np.random.default_rng(0).normal(size=(3000, 4))
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        found.append(model.predict(rows, kind="selected", return_interval="prediction")[1])
    np.testing.assert_array_equal(*found)
    alone = model.predict(rows[2990:], kind="selected", return_interval="prediction")[1]
    np.testing.assert_allclose(found[0][2990:], alone, rtol=1e-12)


@pytest.mark.parametrize("interval", ["confidence", "prediction"])
@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected"])
def test_limits_of_the_largest_features_are_infinite(kind, interval):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 2] + rng.normal(size=200) > 0, X[:, 0] + rng.normal(size=200), np.nan)
    model = Heckman([0, 1]).fit(X, y)
    rows = X[:2].copy()
    rows[0, 0] = 1e308
    _, ends = model.predict(rows, kind=kind, return_interval=interval)
    assert not np.isfinite(ends[0]).any()
    np.testing.assert_allclose(
        ends[1], model.predict(X[1:2], kind=kind, return_interval=interval)[1][0], rtol=1e-9
    )
