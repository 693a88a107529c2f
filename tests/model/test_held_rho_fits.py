"""Models with rho held at a value: against least squares, SciPy, and what varies rho."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal, norm

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import (
    AllObservedWarning,
    ConvergenceWarning,
    InputError,
    TooFewRowsError,
)
from heckmanfa.fit import linear
from heckmanfa.model.two_step_over_rho import TwoStepOverRho

PREDICTION = ["educ", "exper", "expersq"]
SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
RHO = 0.3


@pytest.fixture(scope="module")
def mroz():
    table = load_mroz()
    return table[SELECTION], table["lwage"]


@pytest.fixture(scope="module")
def simulated():
    """Few columns and many rows, so small-sample factors are near one."""
    rng = np.random.default_rng(0)
    n = 4000
    X, u, v = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=n)
    spread = 0.5 + rng.uniform(size=n)
    y = 1.0 + X[:, 0] + spread * (0.4 * u + v)
    y[X @ [0.5, 1.0] + u < 0] = np.nan
    return X, y, rng.integers(0, 200, n), rng.uniform(0.5, 2.0, n)


def errors_of(model, equation="prediction"):
    table = model.tidy()
    return table[table["equation"] == equation].set_index("term")["std_error"]


@pytest.mark.parametrize("rho", [-0.6, 0.0, RHO])
def test_two_steps_are_what_the_uncertainty_interval_has_at_that_rho(mroz, rho):
    model = Heckman(PREDICTION, rho=rho).fit(*mroz)
    other = Heckman(PREDICTION).fit(*mroz).uncertainty_interval((rho, 0.5), n_grid=2).path()
    there = other[other["rho"] == rho].set_index("term")
    estimates = [model.intercept_, *model.coef_[[1, 2, 3]]]
    assert there["estimate"].to_numpy() == pytest.approx(estimates, rel=1e-12)
    assert there["std_error"].to_numpy() == pytest.approx(errors_of(model).to_numpy(), rel=1e-12)
    assert there["sigma"].to_numpy() == pytest.approx(model.sigma_, rel=1e-12)
    assert model.imr_coef_ == pytest.approx(rho * model.sigma_, rel=1e-14)
    assert model.rho_ == rho


def test_at_zero_two_steps_are_least_squares_and_a_probit(mroz):
    X, y = mroz
    model, usual = Heckman(PREDICTION, rho=0).fit(X, y), Heckman(PREDICTION).fit(X, y)
    seen = y.notna()
    x = np.column_stack([np.ones(seen.sum()), X.loc[seen, PREDICTION]])
    b, (sse,), *_ = np.linalg.lstsq(x, y[seen])
    free = len(x) - len(b)
    assert [model.intercept_, *model.coef_[[1, 2, 3]]] == pytest.approx(b, rel=1e-9)
    classical = np.sqrt(sse / free * np.diag(np.linalg.inv(x.T @ x)))
    assert errors_of(model).to_numpy() == pytest.approx(classical, rel=1e-9)
    assert model.sigma_ == pytest.approx(np.sqrt(sse / free), rel=1e-9)
    assert model.selection_coef_ == pytest.approx(usual.selection_coef_, rel=1e-12)
    m, j = len(x), len(PREDICTION)
    assert model.bic_ == pytest.approx(m * np.log(sse / m) + (j + 1) * np.log(m))
    r2 = 1 - sse / ((y[seen] - y[seen].mean()) ** 2).sum()
    assert model.adjusted_r2_ == pytest.approx(1 - (1 - r2) * (m - 1) / free)


def stacked_covariance(X, y, rho, groups, weight, estimates):
    """Sandwich of all estimating equations by numerical derivatives: gamma, b, c and sigma."""
    seen = ~np.isnan(y)
    z, x = np.column_stack([np.ones(len(X)), X]), np.column_stack([np.ones(len(X)), X[:, 0]])
    sign, outcome = np.where(seen, 1.0, -1.0), np.where(seen, y, 0.0)

    def rows(theta):
        gamma, b, c, sigma = np.split(theta, [3, 5, 7])
        index = z @ gamma
        ratio = norm.pdf(index) / norm.cdf(index)
        delta = ratio * (ratio + index)
        signed = sign * norm.pdf(index) / norm.cdf(sign * index)
        r, of_lambda = outcome - x @ b, ratio - x @ c
        last = r**2 + rho**2 * sigma**2 * (delta - of_lambda**2) - sigma**2
        second = np.column_stack([x * r[:, None], x * of_lambda[:, None], last])
        return np.column_stack([z * signed[:, None], second * seen[:, None]]) * weight[:, None]

    beta, gamma, sigma = estimates
    index = z @ gamma
    ratio = norm.pdf(index) / norm.cdf(index)
    root = np.sqrt(weight[seen])[:, None]
    c = np.linalg.lstsq(x[seen] * root, ratio[seen] * root[:, 0])[0]
    theta = np.concatenate([gamma, beta + rho * sigma * c, c, [sigma]])
    scores = rows(theta)
    if groups is not None:
        scores = np.array([scores[groups == group].sum(axis=0) for group in np.unique(groups)])
    n = len(scores)
    inverse = np.linalg.inv(approx_fprime(theta, lambda t: rows(t).sum(axis=0), 1e-6))
    spread = inverse @ (scores.T @ scores) @ inverse.T * n / (n - 1)
    jacobian = np.zeros((6, 8))
    jacobian[:2, 3:5], jacobian[:2, 5:7] = np.eye(2), -rho * sigma * np.eye(2)
    jacobian[:2, 7] = -rho * c
    jacobian[2:5, :3] = np.eye(3)
    jacobian[5, 7] = 1.0
    return jacobian @ spread @ jacobian.T


@pytest.mark.parametrize("case", ["robust", "cluster", "sampling"])
def test_sandwich_covariances_stack_the_equations_of_both_steps_and_of_sigma(simulated, case):
    X, y, groups, weight = simulated
    given = {"groups": groups} if case == "cluster" else {}
    options = {"cov_type": case}
    if case == "sampling":
        given = {"sample_weight": weight}
        options = {"cov_type": "robust", "weight_kind": "sampling"}
    model = Heckman([0], rho=0.5, **options).fit(X, y, **given)
    beta = np.array([model.intercept_, model.coef_[0]])
    gamma = np.array([model.selection_intercept_, *model.selection_coef_])
    weight = weight / weight.mean() if case == "sampling" else np.ones(len(X))
    theirs = stacked_covariance(
        X, y, 0.5, groups if case == "cluster" else None, weight, (beta, gamma, model.sigma_)
    )
    ours = model.vcov().drop(index=[("errors", "imr"), ("errors", "rho")])
    ours = ours[ours.index].to_numpy()
    scale = np.sqrt(np.diag(theirs))
    assert ours / np.outer(scale, scale) == pytest.approx(theirs / np.outer(scale, scale), abs=5e-3)


def test_the_classical_covariance_agrees_with_the_sandwich_if_the_model_is_true():
    rng = np.random.default_rng(1)
    X, u = rng.normal(size=(20000, 2)), rng.normal(size=20000)
    y = 1.0 + X[:, 0] + 0.7 * u + 0.7 * rng.normal(size=20000)
    y[X @ [0.5, 1.0] + u < 0] = np.nan
    rho = float(np.sqrt(0.5))
    classical, robust = (
        Heckman([0], rho=rho, cov_type=kind).fit(X, y).vcov().to_numpy()
        for kind in ("classical", "robust")
    )
    kept = np.diag(classical) > 0
    scale = np.sqrt(np.diag(classical)[kept])
    unit = np.outer(scale, scale)
    both = np.ix_(kept, kept)
    assert robust[both] / unit == pytest.approx(classical[both] / unit, abs=0.06)


def negative_log_likelihood(X, y, rho):
    seen = y.notna().to_numpy()
    z = np.column_stack([np.ones(len(X)), X])
    x, outcome = z[seen][:, [0, 2, 3, 4]], y.to_numpy()[seen]

    def height(theta):
        beta, gamma, log_sigma = theta[:4], theta[4:12], theta[12]
        e = (outcome - x @ beta) / np.exp(log_sigma)
        index = z @ gamma
        shifted = (index[seen] + rho * e) / np.sqrt(1 - rho**2)
        chosen = norm.logpdf(e) - log_sigma + norm.logcdf(shifted)
        return -(chosen.sum() + norm.logcdf(-index[~seen]).sum())

    return height


def test_maximum_likelihood_is_scipys_maximum_with_rho_held(mroz):
    X, y = mroz
    model = Heckman(PREDICTION, rho=RHO, method="ml").fit(X, y)
    height = negative_log_likelihood(X, y, RHO)
    theta = model.params_[:-1]
    assert np.tanh(model.params_[-1]) == pytest.approx(RHO)
    assert model.log_likelihood_ == pytest.approx(-height(theta), abs=1e-9)
    scale = np.array([*errors_of(model), *errors_of(model, "selection"), 0.03])
    found = minimize(lambda t: height(theta + scale * t), np.full(13, 0.1), method="BFGS")
    assert found.x == pytest.approx(np.zeros(13), abs=1e-3)
    assert -found.fun <= model.log_likelihood_ + 1e-9
    # Finite differences of the gradient of an independent likelihood.
    steps = np.diag(1e-3 * scale)
    hessian = [
        [height(theta + a + b) - height(theta + a - b) - height(theta - a + b)
         + height(theta - a - b) for a in steps]
        for b in steps
    ]  # fmt: skip
    inverse = np.linalg.inv(np.array(hessian) / 4e-6)
    assert np.sqrt(np.diag(inverse))[:12] == pytest.approx((scale / scale)[:12], rel=1e-3)


def test_the_log_likelihood_is_that_of_the_profile_at_that_rho(mroz):
    held = Heckman(PREDICTION, rho=RHO, method="ml").fit(*mroz)
    usual = Heckman(PREDICTION, method="ml").fit(*mroz)
    path = usual.profile_rho(*mroz, grid=[0.1, RHO]).tidy()
    there = path[np.isclose(path["rho"], RHO)]["log_likelihood"]
    assert there.to_numpy() == pytest.approx(held.log_likelihood_, abs=1e-7)
    assert held.log_likelihood_ < usual.log_likelihood_


def test_at_zero_the_likelihood_is_that_of_a_probit_and_a_normal_regression(mroz):
    X, y = mroz
    model = Heckman(PREDICTION, rho=0, method="ml").fit(X, y)
    seen = y.notna()
    x = np.column_stack([np.ones(seen.sum()), X.loc[seen, PREDICTION]])
    b, (sse,), *_ = np.linalg.lstsq(x, y[seen])
    m = len(x)
    probit = model.fit_.probit.log_likelihood
    regression = norm.logpdf(y[seen] - x @ b, scale=np.sqrt(sse / m)).sum()
    assert model.log_likelihood_ == pytest.approx(probit + regression, abs=1e-8)
    assert [model.intercept_, *model.coef_[[1, 2, 3]]] == pytest.approx(b, rel=1e-7)
    assert model.sigma_ == pytest.approx(np.sqrt(sse / m), rel=1e-9)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(4)
    X, u = rng.normal(size=(600, 3)), rng.normal(size=600)
    e = 0.6 * u + 0.8 * rng.normal(size=600)
    y = (X[:, :2] @ [0.8, -0.5] + e > 0).astype(float)
    y[X @ [0.4, 0.3, 0.9] + u < -0.2] = np.nan
    return X, y


def test_a_binary_outcome_is_what_the_uncertainty_interval_has_at_that_rho(classes):
    X, y = classes
    model = HeckmanProbit([0, 1], rho=RHO).fit(X, y)
    usual = HeckmanProbit([0, 1]).fit(X, y)
    path = usual.uncertainty_interval(X, y, rho=(0.1, RHO), n_grid=2).path()
    there = path[np.isclose(path["rho"], RHO)]
    assert there["estimate"].to_numpy() == pytest.approx(
        [model.intercept_, *model.coef_[:2]], abs=1e-7
    )
    assert there["std_error"].to_numpy() == pytest.approx(errors_of(model).to_numpy(), rel=1e-6)
    # The likelihood by SciPy's bivariate normal distribution.
    gamma = np.array([model.selection_intercept_, *model.selection_coef_])
    index = gamma[0] + X @ gamma[1:]
    mean = model.intercept_ + X @ model.coef_
    total = norm.logcdf(-index[np.isnan(y)]).sum()
    for sign in (-1.0, 1.0):
        rows = y == (sign + 1) / 2
        points = np.column_stack([index[rows], sign * mean[rows]])
        law = multivariate_normal([0, 0], [[1, sign * RHO], [sign * RHO, 1]])
        total += np.log(law.cdf(points)).sum()
    assert model.log_likelihood_ == pytest.approx(total, abs=1e-4)
    assert model.log_likelihood_ < usual.log_likelihood_


def test_at_zero_a_binary_outcome_has_two_separate_probits(classes):
    model = HeckmanProbit([0, 1], rho=0.0, cov_type="robust").fit(*classes)
    binary = model.fit_.details
    assert model.log_likelihood_ == pytest.approx(binary.independent_log_likelihood, abs=1e-8)
    assert [model.intercept_, *model.coef_[:2]] == pytest.approx(binary.naive_coef, abs=1e-7)
    naive = np.sqrt(np.diag(binary.naive_covariance))
    # The sandwich of the naive probit counts the selected rows alone.
    n, m = model.n_obs_, model.n_selected_
    factor = np.sqrt(n / (n - 1) / (m / (m - 1)))
    assert errors_of(model).to_numpy() == pytest.approx(naive * factor, rel=1e-6)


def test_a_held_rho_is_not_estimated(mroz, classes):
    for model in (
        Heckman(PREDICTION, rho=RHO).fit(*mroz),
        Heckman(PREDICTION, rho=RHO, method="ml", cov_type="robust").fit(*mroz),
        HeckmanProbit([0, 1], rho=RHO).fit(*classes),
    ):
        assert model.rho_ == RHO
        assert not model.vcov().loc[("errors", "rho")].any()
        rho = model.tidy().set_index("term").loc["rho"]
        assert (rho["estimate"], rho["std_error"]) == (RHO, 0.0)
        assert rho[["statistic", "p_value", "ci_low", "ci_high"]].isna().all()
        assert model.fit_.atanh_rho is model.fit_.guards is model.fit_.second_maximum is None


def test_no_exclusion_is_needed_and_no_warning_given(mroz):
    # Warnings are errors in tests.
    X, y = mroz
    for method in ("two-step", "ml"):
        Heckman(rho=RHO, method=method).fit(X[["educ", "exper"]], y)
    # Lambda is a linear function of a dummy that selects alone: no rho could be estimated.
    young = (X[["age"]] < 40).astype(float)
    alone = [Heckman(rho=RHO, method=method).fit(young, y) for method in ("two-step", "ml")]
    assert all(np.isfinite(errors_of(model)).all() for model in alone)


def test_what_cannot_be_is_refused_in_a_sentence(mroz):
    X, y = mroz
    with pytest.raises(InputError, match="start"):
        Heckman(PREDICTION, rho=RHO, start=0.1, method="ml").fit(X, y)
    with pytest.raises(InputError, match="rho"):
        Heckman(PREDICTION, rho=1.0).fit(X, y)
    few = [*range(400, 426), *np.flatnonzero(y.notna())[:4]]
    with pytest.raises(TooFewRowsError, match="3 prediction features and an intercept need more"):
        Heckman(PREDICTION, ["age"], rho=RHO).fit(
            X.iloc[few], y.iloc[few].where(y.index[few] < 400)
        )
    with pytest.warns(AllObservedWarning, match="a rho of 0.3 changes nothing"):
        Heckman(PREDICTION, rho=RHO).fit(X[y.notna()], y[y.notna()])


def test_a_rho_for_which_few_rows_leave_no_sigma_is_refused():
    rng = np.random.default_rng(27)
    X, u = rng.normal(size=(40, 2)), rng.normal(size=40)
    y = 1.0 + X[:, 0] + 0.5 * u + rng.normal(size=40)
    y[X @ [0.3, 0.3] + u < 1.2] = np.nan
    seen = ~np.isnan(y)
    usual = Heckman([0], rho=0.5).fit(X, y)
    index = usual.selection_intercept_ + X[seen] @ usual.selection_coef_
    ratio = norm.pdf(index) / norm.cdf(index)
    x = np.column_stack([np.ones(seen.sum()), X[seen, 0]])
    projected = x @ np.linalg.lstsq(x, ratio)[0]
    # sigma(rho)^2 = s^2 / (1 - rho^2 A) has a pole.
    pole = ((index @ ratio + ratio @ projected) / (seen.sum() - 1)) ** -0.5
    assert pole == pytest.approx(0.9594, abs=1e-4)
    for rho in (0.95, -0.95):
        model = Heckman([0], rho=rho).fit(X, y)
        assert np.isfinite([model.sigma_, model.intercept_, *model.coef_]).all()
    reach = TwoStepOverRho.build(usual.fit_.moments, (0,)).reach
    assert reach == pytest.approx(pole, rel=1e-9)
    for rho in (0.97, -0.97, reach):
        with pytest.raises(InputError, match=rf"not defined for \|rho\| of {pole:.4f}.*{rho:g}"):
            Heckman([0], rho=rho).fit(X, y)


def test_a_likelihood_with_rho_held_says_that_it_did_not_converge(mroz, monkeypatch):
    real = linear.fit_held_likelihood

    def short(*given):
        return replace(real(*given), converged=False)

    monkeypatch.setattr(linear, "fit_held_likelihood", short)
    with pytest.warns(ConvergenceWarning, match="estimates"):
        model = Heckman(PREDICTION, rho=RHO, method="ml").fit(*mroz)
    assert not model.converged_
