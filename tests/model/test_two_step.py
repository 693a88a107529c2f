import warnings

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from heckmanfa import Heckman, compress
from heckmanfa.errors import NoExclusionWarning, NotIdentifiedError, RhoOutsideWarning
from heckmanfa.model.normal import inverse_mills, mills

PREDICTION = [0, 2, 3]


def design(X, gamma, columns=PREDICTION):
    index = gamma[0] + X @ gamma[1:]
    return index, np.column_stack([np.ones(len(X)), X[:, columns], inverse_mills(index)])


def estimating_functions(theta, X, y, s):
    """Each row's probit score and second-step normal equation, stacked."""
    p = X.shape[1] + 1
    gamma, beta = theta[:p], theta[p:]
    index, w = design(X, gamma)
    sign = np.where(s, 1.0, -1.0)
    score = (sign * inverse_mills(sign * index))[:, None] * np.column_stack([np.ones(len(X)), X])
    residual = np.where(s, np.where(s, y, 0.0) - w @ beta, 0.0)
    return np.concatenate([score, w * residual[:, None]], axis=1)


def reordered(model):
    """Covariance as gamma first, then beta and beta_H."""
    labels = [("selection", f"x{i}") for i in range(6)]
    labels = [("selection", "Intercept"), *labels, ("prediction", "Intercept")]
    labels += [("prediction", f"x{i}") for i in PREDICTION] + [("errors", "imr")]
    return model.vcov().loc[labels, labels].to_numpy()


def theta_of(model):
    return np.concatenate(
        [
            [model.selection_intercept_],
            model.selection_coef_,
            [model.intercept_],
            model.coef_[PREDICTION],
            [model.imr_coef_],
        ]
    )


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
@pytest.mark.parametrize("weight_kind", ["frequency", "sampling"])
def test_sandwich_equals_the_stacked_estimating_equations_done_by_hand(
    cov_type, weight_kind, simulated
):
    X, y, s = simulated.X, simulated.y, simulated.selected
    rng = np.random.default_rng(0)
    n = len(y)
    weight = (
        rng.integers(1, 4, n).astype(float) if weight_kind == "frequency" else rng.random(n) + 0.2
    )
    groups = rng.integers(0, 40, n)
    model = Heckman(PREDICTION, cov_type=cov_type, weight_kind=weight_kind).fit(
        X, y, sample_weight=weight, groups=groups if cov_type == "cluster" else None
    )
    theta = theta_of(model)
    w = weight if weight_kind == "frequency" else weight / weight.mean()
    psi = estimating_functions(theta, X, y, s)
    np.testing.assert_allclose(w @ psi, 0, atol=1e-8 * n)
    jacobian = approx_fprime(
        theta, lambda t: w @ estimating_functions(t, X, y, s), 1e-6 * np.maximum(1, np.abs(theta))
    )
    if cov_type == "cluster":
        sums = np.zeros((40, len(theta)))
        np.add.at(sums, groups, psi * w[:, None])
        middle, factor = sums.T @ sums, 40 / 39
    elif weight_kind == "frequency":
        middle, factor = (psi * w[:, None]).T @ psi, w.sum() / (w.sum() - 1)
    else:
        middle, factor = (psi * w[:, None]).T @ (psi * w[:, None]), n / (n - 1)
    inverse = np.linalg.inv(jacobian)
    expected = factor * inverse @ middle @ inverse.T
    ours = reordered(model)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(ours / scale, expected / scale, atol=2e-5)


def test_classical_covariance_equals_heckmans_formula_written_out(simulated):
    X, y, s = simulated.X, simulated.y, simulated.selected
    model = Heckman(PREDICTION).fit(X, y)
    gamma = np.append(model.selection_intercept_, model.selection_coef_)
    index, w = design(X[s], gamma)
    delta = mills(index)[1]
    z = np.column_stack([np.ones(s.sum()), X[s]])
    v_gamma = model.vcov().loc["selection", "selection"].to_numpy()
    bread = np.linalg.inv(w.T @ w)
    cross = (w * delta[:, None]).T @ z
    rho2 = model.rho_**2
    middle = w.T @ (w * (1 - rho2 * delta)[:, None]) + rho2 * cross @ v_gamma @ cross.T
    expected = model.sigma_**2 * bread @ middle @ bread
    beta = model.vcov().loc["prediction", "prediction"].to_numpy()
    np.testing.assert_allclose(beta, expected[:-1, :-1], rtol=1e-9)
    assert model.vcov().loc[("errors", "imr"), ("errors", "imr")] == pytest.approx(expected[-1, -1])
    between = model.vcov().loc["prediction", "selection"].to_numpy()
    np.testing.assert_allclose(between, (model.imr_coef_ * bread @ cross @ v_gamma)[:-1], rtol=1e-9)


@pytest.mark.study
def test_the_joint_covariance_is_that_of_repeated_samples():
    """A wrong sign of cov(beta, gamma) shows in the variance of their difference."""
    rng = np.random.default_rng(12)
    draws, predicted = [], []
    for _ in range(300):
        X = rng.normal(size=(600, 2))
        u = rng.normal(size=600)
        e = 0.8 * u + 0.6 * rng.normal(size=600)
        y = np.where(0.2 + X @ [1.0, 1.0] + u > 0, X[:, 0] + 2 * e, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RhoOutsideWarning)
            model = Heckman([0]).fit(X, y)
        v = model.vcov()
        a, b = ("prediction", "Intercept"), ("selection", "x1")
        draws.append((model.intercept_, model.selection_coef_[1]))
        predicted.append(v.loc[a, b] / np.sqrt(v.loc[a, a] * v.loc[b, b]))
    seen = np.corrcoef(np.array(draws).T)[0, 1]
    assert seen > 0.2
    assert np.mean(predicted) == pytest.approx(seen, abs=0.12)


def test_covariance_keeps_its_digits_where_a_plain_product_would_lose_them(simulated):
    """Shifting a feature far from zero changes the intercept and nothing else."""
    X = simulated.X.copy()
    plain = Heckman(PREDICTION).fit(X, simulated.y)
    X[:, 2] += 1e7
    far = Heckman(PREDICTION).fit(X, simulated.y)
    ours, theirs = (m.tidy().set_index(["equation", "term"])["std_error"] for m in (far, plain))
    for term in [
        ("prediction", "x2"),
        ("prediction", "x0"),
        ("selection", "x2"),
        ("errors", "imr"),
    ]:
        assert ours[term] == pytest.approx(theirs[term], rel=1e-7)


def test_a_lambda_that_is_linear_in_the_features_is_refused():
    rng = np.random.default_rng(0)
    x = (rng.random(400) < 0.5).astype(float)
    y = np.where(rng.normal(size=400) + x > 0, x + rng.normal(size=400), np.nan)
    with (
        pytest.warns(NoExclusionWarning),
        pytest.raises(NotIdentifiedError, match="combination"),
    ):
        Heckman().fit(x[:, None], y)


def test_moments_solve_and_the_estimator_agree(simulated):
    model = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    solved = compress(simulated.X, simulated.y).moments.solve(model.support_)
    np.testing.assert_allclose(model.coef_, solved.coef, rtol=1e-12)
    assert model.rho_ == pytest.approx(float(solved.rho), rel=1e-12)
    assert model.bic_ == pytest.approx(float(solved.bic), rel=1e-12)
