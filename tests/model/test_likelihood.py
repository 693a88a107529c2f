from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chi2, multivariate_normal, norm

from heckmanfa import Heckman
from heckmanfa.data.rows import ArrayRows, Matrix
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    ConvergenceWarning,
    HeckmanfaWarning,
    InputError,
    NoExclusionWarning,
    RhoOutsideWarning,
)
from heckmanfa.model.joint_problem import LinearProblem, scores_of
from heckmanfa.model.moments import gather_moments
from heckmanfa.model.probit import fit_probit, selection_coordinates
from heckmanfa.model.probit_likelihood import ProbitProblem

PREDICTION = [0, 2, 3]


def by_definition(model, data):
    """Sum of log densities, selected rows through the bivariate normal density itself."""
    s = data.selected
    index = model.selection_intercept_ + data.X @ model.selection_coef_
    mean = model.intercept_ + data.X @ model.coef_
    rho, sigma = model.rho_, model.sigma_
    # P(y, u > -index): density of y times P(u > -index | y), u given e normal.
    e = (data.y[s] - mean[s]) / sigma
    conditional = norm.sf(-index[s], loc=rho * e, scale=np.sqrt(1 - rho**2))
    return np.sum(np.log(norm.pdf(e) / sigma * conditional)) + np.sum(np.log(norm.sf(index[~s])))


@pytest.fixture(scope="module")
def model(simulated):
    return Heckman(PREDICTION, method="ml").fit(simulated.X, simulated.y)


def test_log_likelihood_is_that_of_the_bivariate_normal_law(model, simulated):
    assert model.log_likelihood_ == pytest.approx(by_definition(model, simulated), rel=1e-10)
    assert model.log_likelihood(simulated.X, simulated.y) == pytest.approx(
        model.log_likelihood_, rel=1e-10
    )


def test_conditional_probability_used_above_is_right():
    """The shortcut in `by_definition`, against SciPy's bivariate normal distribution function."""
    rho, e, index, h = 0.6, 0.4, 0.3, 1e-4
    joint = multivariate_normal([0, 0], [[1, -rho], [-rho, 1]])  # of (-u, e)
    upper = joint.cdf([index, e + h]), joint.cdf([index, e - h])
    density = (upper[0] - upper[1]) / (2 * h)
    expected = norm.pdf(e) * norm.sf(-index, loc=rho * e, scale=np.sqrt(1 - rho**2))
    assert density == pytest.approx(expected, rel=1e-3)


def random_problem(rng, kind, weighted, wild, block_rows=None):
    """A block of rows with two features in both equations and one in each alone."""
    b = 80
    X = rng.normal(size=(b, 4))
    if wild:  # so features are not used as they are
        X = X * [1, 20, 3, 1] + [50, 0, -1, 9]
    selected = rng.random(b) < 0.7
    binary = kind is ProbitProblem
    outcome = (rng.random(b) < 0.4).astype(float) if binary else rng.normal(size=b) * 2 + 1
    weight = rng.random(b) + 0.5 if weighted else None
    X[~selected, 2] = np.nan  # it only predicts
    rows = ArrayRows(Matrix(X), outcome, selected, weight, block_rows=block_rows)
    features, predicting = [0, 1, 3], [1, 2, 3]
    coordinates = selection_coordinates(rows, features, list("abc"))
    assert coordinates.plain != wild
    probit = fit_probit(rows, features, coordinates)
    return rows, gather_moments(rows, range(4), 4, probit), probit, predicting


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("atanh_rho", [0.0, 0.4, -1.5])
@pytest.mark.parametrize("kind", [LinearProblem, ProbitProblem])
def test_analytic_gradient_and_hessian_equal_finite_differences(kind, atanh_rho, weighted, wild):
    rng = np.random.default_rng(int(10 * abs(atanh_rho)))
    rows, moments, probit, features = random_problem(rng, kind, weighted, wild)
    problem = kind.build(moments, probit, features)
    n_others = sum(problem.sizes) + len(problem.ends) - 1
    theta = np.append(rng.normal(size=n_others) * 0.3, atanh_rho)
    state = problem.evaluate(rows, theta)
    assert np.isfinite(state.log_likelihood)
    size = np.abs(state.hessian).max()
    numeric = approx_fprime(theta, lambda t: problem.evaluate(rows, t).log_likelihood, 1e-7)
    np.testing.assert_allclose(state.gradient, numeric, rtol=1e-4, atol=1e-5 * size)
    numeric = approx_fprime(theta, lambda t: problem.evaluate(rows, t).gradient, 1e-7)
    np.testing.assert_allclose(state.hessian, numeric, rtol=1e-4, atol=1e-5 * size)
    scores = np.concatenate(list(rows.map(scores_of, problem, theta, columns=problem.columns)))
    weight = np.ones(len(scores)) if rows.weight is None else rows.weight
    np.testing.assert_allclose(weight @ scores, state.gradient, rtol=1e-9, atol=1e-9 * size)


def test_the_gradient_vanishes_at_the_estimates(model, simulated):
    """By the likelihood above, each parameter moved either way costs, by nearly the same."""
    names = ("intercept_", "coef_", "selection_intercept_", "selection_coef_", "sigma_", "rho_")
    estimates = {name: np.atleast_1d(getattr(model, name)) for name in names}
    base = by_definition(model, simulated)
    for name, values in estimates.items():
        for place in np.flatnonzero(values):
            moved = []
            for h in (1e-3, -1e-3):
                step = h * np.eye(len(values))[place]
                moved.append(
                    by_definition(SimpleNamespace(**{**estimates, name: values + step}), simulated)
                )
            drop = 2 * base - sum(moved)
            assert max(moved) < base
            assert abs(moved[0] - moved[1]) < 0.02 * drop


def test_delta_method_and_intervals_of_rho_and_sigma(model):
    errors = model.tidy().set_index(["equation", "term"]).loc["errors"]
    v = model.vcov().loc["errors", "errors"]
    gradient = np.array([model.sigma_, model.rho_])  # of rho * sigma in (rho, sigma)
    two = v.loc[["rho", "sigma"], ["rho", "sigma"]].to_numpy()
    assert errors["std_error"]["imr"] ** 2 == pytest.approx(gradient @ two @ gradient, rel=1e-10)
    low, high = errors.loc["rho", ["ci_low", "ci_high"]]
    spread = errors["std_error"]["rho"] / (1 - model.rho_**2)
    assert np.arctanh(high) - np.arctanh(low) == pytest.approx(2 * norm.ppf(0.975) * spread)
    assert -1 < low < high < 1
    assert np.isnan(errors["statistic"]["sigma"])


def test_lr_and_wald_tests_of_rho(model, simulated):
    diagnostics = model.diagnostics()
    s = simulated.selected
    w = np.column_stack([np.ones(s.sum()), simulated.X[s][:, PREDICTION]])
    sse = np.linalg.lstsq(w, simulated.y[s], rcond=None)[1][0]
    ols = -0.5 * s.sum() * (np.log(2 * np.pi * sse / s.sum()) + 1)
    two_step = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    index = two_step.selection_intercept_ + simulated.X @ two_step.selection_coef_
    probit = np.sum(norm.logcdf(np.where(s, index, -index)))
    statistic = 2 * (model.log_likelihood_ - probit - ols)
    assert diagnostics.rho_lr.statistic == pytest.approx(statistic, rel=1e-8)
    assert diagnostics.rho_lr.p_value == pytest.approx(chi2.sf(statistic, 1), rel=1e-6)
    z = model.tidy().set_index(["equation", "term"])["statistic"]["errors"]["rho"]
    assert diagnostics.rho_wald.statistic == pytest.approx(z**2, rel=1e-10)


def test_frequency_weights_equal_repeated_rows(simulated):
    times = np.random.default_rng(0).integers(1, 4, len(simulated.y))
    one = Heckman(PREDICTION, method="ml").fit(simulated.X, simulated.y, sample_weight=times)
    other = Heckman(PREDICTION, method="ml").fit(
        np.repeat(simulated.X, times, axis=0), np.repeat(simulated.y, times)
    )
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    np.testing.assert_allclose(one.fit_.covariance, other.fit_.covariance, rtol=1e-7, atol=1e-14)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-12)
    assert (one.n_obs_, one.n_selected_) == (other.n_obs_, other.n_selected_)


def test_a_two_step_rho_beyond_one_still_gives_a_start():
    data = make_selection(300, 2, 2, rho=0.6, random_state=12)
    with pytest.warns(HeckmanfaWarning) as said:
        assert Heckman().fit(data.X, data.y).rho_ > 1.2
    assert [one.category for one in said] == [NoExclusionWarning, RhoOutsideWarning]
    with pytest.warns(NoExclusionWarning):
        model = Heckman(method="ml").fit(data.X, data.y)
    assert model.converged_
    assert -1 < model.rho_ < 1


def test_ml_recovers_the_truth_on_large_data():
    data = make_selection(200_000, 5, 3, rho=-0.7, sigma=3.0, random_state=1)
    model = Heckman(np.flatnonzero(data.support), method="ml").fit(data.X, data.y)
    table = model.tidy().set_index(["equation", "term"])
    truth = [data.intercept, *data.coef[data.support], data.selection_intercept]
    truth += [*data.selection_coef, data.rho * data.sigma, data.rho, data.sigma]
    z = (table["estimate"] - truth) / table["std_error"]
    assert np.abs(z).max() < 4


def test_a_likelihood_that_rises_to_the_boundary_is_reported_not_hidden():
    """With e = u exactly, rho runs to one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    u = rng.normal(size=300)
    y = np.where(X.sum(axis=1) + u > 0, X[:, 0] + u, np.nan)
    with pytest.warns() as caught:
        model = Heckman([0], method="ml").fit(X, y)
    assert any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    assert not model.converged_
    assert model.rho_ > 0.99


def test_the_likelihood_of_other_data_checks_who_is_selected(model, simulated):
    given = model.log_likelihood(simulated.X, simulated.complete_y, selected=simulated.selected)
    assert given == pytest.approx(model.log_likelihood_, rel=1e-10)
    with pytest.raises(InputError, match="selected"):
        model.log_likelihood(simulated.X, simulated.y, selected=np.full(800, 2))


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.SecondMaximumWarning")
def test_units_do_not_matter_where_the_two_steps_start_in_a_hollow():
    # At the two-step estimates the information is not positive definite, and a family's income in
    # dollars makes its entries differ by a factor of 1e11. The maximum is BFGS's, from five starts.
    mroz = load_mroz()
    kids = ((mroz["kids5"] + mroz["kids618"]) > 0).astype(float)
    columns = {"age": mroz["age"], "age2": mroz["age"] ** 2.0, "faminc": mroz["faminc"]}
    columns |= {"kids": kids, "educ": mroz["educ"], "exper": mroz["exper"]}
    columns |= {"exper2": mroz["exper"] ** 2.0, "city": mroz["city"]}
    raw = pd.DataFrame(columns)
    model = Heckman(
        ["exper", "exper2", "educ", "city"],
        ["age", "age2", "faminc", "kids", "educ"],
        method="ml",
    )
    for X in (raw, (raw - raw.mean()) / raw.std(), raw * 1e-3):
        model.fit(X, mroz["lwage"])
        assert model.converged_
        assert model.log_likelihood_ == pytest.approx(-911.66687, abs=1e-4)
        assert model.rho_ == pytest.approx(-0.82306, abs=1e-4)
