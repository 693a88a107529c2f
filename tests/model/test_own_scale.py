"""Sigma's covariance and the mean ratio of a log outcome, against equations written down again.

Every model is a set of estimating equations; their sandwich covariance is made here with numerical
derivatives and plain NumPy.
"""

import numpy as np
import pytest
from scipy.special import log_ndtr

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.errors import AllObservedWarning

N = 300


def make_rows(n=N, all_seen=False):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3)) + np.array([0, 3, 0])
    u, e = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 0.64]], size=n).T
    wage = np.exp(0.2 + 0.6 * X[:, 0] - 0.5 * X[:, 1] + e)
    if not all_seen:
        wage[0.3 + 0.8 * X[:, 0] + 0.7 * X[:, 2] + u <= 0] = np.nan
    weight = np.where(X[:, 2] > 0.5, 2.0, 0.5)
    return X, wage, weight, np.arange(n) // 5


X, WAGE, WEIGHT, GROUPS = make_rows()
SEEN = ~np.isnan(WAGE)
LOG = np.where(SEEN, np.log(np.where(SEEN, WAGE, 1.0)), 0.0)
ONES = np.ones((N, 1))
W, Z = np.hstack([ONES, X[:, :2]]), np.hstack([ONES, X])


def derivative(function, at, step=1e-5):
    """(..., d) central differences of a function of d numbers."""
    moves = np.eye(len(at)) * step
    return np.stack([(function(at + m) - function(at - m)) / (2 * step) for m in moves], axis=-1)


def ratio_rows(beta, imr, gamma, sigma):
    u = Z @ gamma
    log = LOG - W @ beta - sigma**2 / 2 - log_ndtr(u + imr) + log_ndtr(u)
    return np.where(SEEN, np.exp(log) - 1.0, 0.0)


def two_step_rows(theta):
    """(N, 9 + 1) equations: second step, probit, sigma and the ratio; theta in that order."""
    beta, imr, gamma, sigma = theta[:3], theta[3], theta[4:8], theta[8]
    u = Z @ gamma
    mills = np.exp(-(u**2) / 2 - log_ndtr(u)) / np.sqrt(2 * np.pi)
    other = -np.exp(-(u**2) / 2 - log_ndtr(-u)) / np.sqrt(2 * np.pi)
    error = np.where(SEEN, LOG - W @ beta - imr * mills, 0.0)
    second = np.column_stack([W, mills]) * error[:, None]
    probit = Z * np.where(SEEN, mills, other)[:, None]
    spread = np.where(SEEN, error**2 + imr**2 * mills * (mills + u) - sigma**2, 0.0)
    return np.column_stack([second, probit, spread, ratio_rows(beta, imr, gamma, sigma)])


def log_likelihood_rows(theta):
    beta, gamma, sigma, rho = theta[:3], theta[3:7], theta[7], theta[8]
    u, e = Z @ gamma, (LOG - W @ beta) / sigma
    seen = log_ndtr((u + rho * e) / np.sqrt(1 - rho**2)) - e**2 / 2 - np.log(sigma)
    return np.where(SEEN, seen, log_ndtr(-u))


def likelihood_rows(theta):
    beta, gamma, sigma, rho = theta[:3], theta[3:7], theta[7], theta[8]
    ratios = ratio_rows(beta, rho * sigma, gamma, sigma)
    return np.column_stack([derivative(log_likelihood_rows, theta), ratios])


def sandwich(rows, theta, weight, groups, step=1e-5):
    """Covariance of theta and of the mean ratio."""
    each = rows(theta)
    slope = derivative(lambda at: weight @ rows(at), theta, step)
    bread = np.zeros((len(theta) + 1, len(theta) + 1))
    inverse = np.linalg.inv(-slope[:-1])
    m = weight[SEEN].sum()
    bread[:-1, :-1] = inverse
    bread[-1, :-1], bread[-1, -1] = slope[-1] @ inverse / m, 1 / m
    sums = np.zeros((groups.max() + 1, each.shape[1]))
    np.add.at(sums, groups, each * weight[:, None])
    n = len(sums)
    return bread @ (sums.T @ sums * n / (n - 1)) @ bread.T


def fitted(method, cov_type, weighted):
    options = {"weight_kind": "sampling"} if weighted else {}
    model = Heckman([0, 1], outcome_transform="log", method=method, cov_type=cov_type, **options)
    given = {"groups": GROUPS if cov_type == "cluster" else None}
    fit = model.fit(X, WAGE, sample_weight=WEIGHT if weighted else None, **given).fit_
    weight = WEIGHT / WEIGHT.mean() if weighted else np.ones(N)
    return fit, weight, GROUPS if cov_type == "cluster" else np.arange(N)


@pytest.mark.parametrize(("cov_type", "weighted"), [("robust", True), ("cluster", False)])
def test_two_step_sigma_and_ratio_have_the_errors_of_their_estimating_equations(cov_type, weighted):
    fit, weight, groups = fitted("two-step", cov_type, weighted)
    beta = [fit.intercept, *fit.coef[:2], fit.imr_coef]
    theta = np.array([*beta, fit.selection_intercept, *fit.selection_coef, fit.sigma])
    known = sandwich(two_step_rows, theta, weight, groups)
    order = [0, 1, 2, 4, 5, 6, 7, 3]
    np.testing.assert_allclose(fit.covariance, known[np.ix_(order, order)], rtol=1e-5, atol=1e-8)
    found = fit.sigma_covariance
    np.testing.assert_allclose(found, known[8, [*order, 8]], rtol=1e-5, atol=1e-8)
    scale = fit.own_scale
    assert scale.ratio == pytest.approx(
        1 + weight @ two_step_rows(theta)[:, -1] / weight[SEEN].sum()
    )
    assert scale.ratio_error == pytest.approx(np.sqrt(known[-1, -1]), rel=1e-4)


def test_the_classical_sigma_is_the_robust_one_if_rows_are_many():
    X, wage, _, _ = make_rows(n=20_000)
    model = Heckman([0, 1], outcome_transform="log")
    fits = [model.set_params(cov_type=kind).fit(X, wage).fit_ for kind in (None, "robust")]
    errors = np.sqrt(np.diag(fits[1].covariance))
    shared = [fit.sigma_covariance[:-1] / fit.sigma_covariance[-1] ** 0.5 / errors for fit in fits]
    np.testing.assert_allclose(*shared, atol=0.03)
    variances = [fit.sigma_covariance[-1] for fit in fits]
    assert variances[0] == pytest.approx(variances[1], rel=0.05)


@pytest.mark.parametrize(("cov_type", "weighted"), [("robust", True), ("cluster", False)])
def test_the_ratio_of_maximum_likelihood_has_the_error_of_its_scores(cov_type, weighted):
    fit, weight, groups = fitted("ml", cov_type, weighted)
    equations = [fit.intercept, *fit.coef[:2], fit.selection_intercept, *fit.selection_coef]
    theta = np.array([*equations, fit.sigma, fit.rho])
    known = sandwich(likelihood_rows, theta, weight, groups, 1e-4)
    rows = likelihood_rows(theta)[:, -1]
    assert fit.own_scale.ratio == pytest.approx(1 + weight @ rows / weight[SEEN].sum())
    assert fit.own_scale.ratio_error == pytest.approx(np.sqrt(known[-1, -1]), rel=1e-4)
    own = fit.sigma_covariance
    np.testing.assert_allclose(own[-1], known[7, 7], rtol=1e-4)
    assert fit.terms[-1] == ("errors", "sigma")


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_the_ratio_of_a_held_rho_is_that_of_its_estimates(method):
    model = Heckman([0, 1], outcome_transform="log", method=method, rho=0.4)
    fit = model.fit(X, WAGE).fit_
    equations = [fit.intercept, *fit.coef[:2], fit.selection_intercept, *fit.selection_coef]
    theta = np.array([*equations, fit.sigma])
    rows = ratio_rows(theta[:3], fit.imr_coef, theta[3:7], fit.sigma)
    assert fit.own_scale.ratio == pytest.approx(1 + rows.sum() / SEEN.sum())

    def given_rho(at):
        return likelihood_rows(np.append(at, 0.4))[:, [*range(8), 9]]

    known = sandwich(given_rho, theta, np.ones(N), np.arange(N), 1e-4)
    # Two-step estimates solve other equations, with nearly the same solution.
    tolerance = 1e-4 if method == "ml" else 0.2
    assert fit.own_scale.ratio_error == pytest.approx(np.sqrt(known[-1, -1]), rel=tolerance)


def test_without_missing_outcomes_the_ratio_is_that_of_least_squares():
    X, wage, _, _ = make_rows(all_seen=True)
    with pytest.warns(AllObservedWarning):
        fit = Heckman([0, 1], outcome_transform="log", cov_type="robust").fit(X, wage).fit_
    design = np.column_stack([np.ones(N), X[:, :2]])
    error = np.log(wage) - design @ [fit.intercept, *fit.coef[:2]]
    s2 = fit.sigma**2
    ratios = np.exp(error - s2 / 2)
    assert fit.own_scale.ratio == pytest.approx(ratios.mean())
    bread = np.linalg.inv(design.T @ design)
    influence = np.column_stack(
        [design * error[:, None] @ bread, (error**2 - s2) / (2 * N * s2**0.5)]
    )
    covariance = influence.T @ influence * N / (N - 1)
    np.testing.assert_allclose(fit.sigma_covariance, covariance[-1], rtol=1e-9)
    by = np.append(ratios @ design / N, ratios.mean() * s2**0.5)
    each = (ratios - 1) / N - influence @ by
    assert fit.own_scale.ratio_error == pytest.approx(np.sqrt(each @ each * N / (N - 1)))


def test_replicates_and_models_without_a_transform_make_no_extra_pass():
    assert Heckman([0, 1]).fit(X, np.log(WAGE)).fit_.own_scale is None
    spec = Heckman([0, 1], outcome_transform="log").fit(X, WAGE).fit_.spec
    assert spec.needs_own_scale
    assert not spec.for_replicates().needs_own_scale


def test_honest_estimates_keep_the_correlations_of_sigma():
    options = {"outcome_transform": "log", "never": [2], "random_state": 0, "max_features": 2}
    plain = HeckmanBestSubset(**options).fit(X, WAGE).fit_
    model = HeckmanBestSubset(**options, honest=True, n_splits=4).fit(X, WAGE)
    assert model.transform_ratio_ is None

    def correlations(fit):
        own = fit.sigma_covariance
        return own[:-1] / np.sqrt(np.diag(fit.covariance) * own[-1])

    np.testing.assert_allclose(correlations(model.fit_), correlations(plain), rtol=1e-9)
    low, high = model.predict(X[:3], "selected", "confidence")[1].T
    assert np.all(low < high)
