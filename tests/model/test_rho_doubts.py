"""What a likelihood does not say about rho is said at `fit`: boundary, flatness, a higher point.

Small samples without an exclusion are fitted beside an independent search for the highest point:
likelihoods written with SciPy's Owen's T and log Phi, maximised by L-BFGS from several rho, each
after all else was optimised at that rho.
"""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr, owens_t
from scipy.stats import multivariate_normal

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    HeckmanfaWarning,
    NoExclusionWarning,
    RhoUncertainWarning,
    SecondMaximumWarning,
)

FURTHEST = 4.0
"""the largest |atanh rho| that is searched"""


HIGHER = 1e-3
"""by how much another point must be higher"""


def binary_sample(seed, n, k, level, share, strength):
    """Return features that all select and predict, and an outcome that is NaN if not selected."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k))
    errors = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=n)
    selected = share + strength * X @ np.linspace(1, -0.5, k) + errors[:, 0] > 0
    y = (level + X @ np.linspace(0.6, 0.4, k) + errors[:, 1] > 0).astype(float)
    y[~selected] = np.nan
    return X, y


def linear_sample(seed, n, k, strength):
    """Return the same with a linear outcome, and a rho of zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k))
    errors = rng.multivariate_normal([0, 0], [[1, 0], [0, 1]], size=n)
    y = X @ np.linspace(0.6, 0.4, k) + errors[:, 1]
    y[strength * X @ np.linspace(1, -0.5, k) + errors[:, 0] <= 0] = np.nan
    return X, y


def bivariate_cdf(h, k, rho):
    """P(U < h, V < k) of two normals with correlation rho, by Owen (1956)."""
    h, k = (np.where(value == 0, 1e-300, value) for value in (h, k))
    root = np.sqrt((1 - rho) * (1 + rho))
    both = 0.5 * (ndtr(h) + ndtr(k))
    both -= owens_t(h, (k - rho * h) / (h * root)) + owens_t(k, (h - rho * k) / (k * root))
    return np.maximum(both - np.where(h * k < 0, 0.5, 0.0), 1e-300)


def mills(z):
    """phi / Phi."""
    return np.exp(-0.5 * z**2 - log_ndtr(z)) / np.sqrt(2 * np.pi)


def binary_loss(theta, X, y):
    """Minus the log-likelihood of the Heckman probit, and its gradient."""
    p, seen = X.shape[1], np.isfinite(y)
    rho, index = np.tanh(theta[-1]), X @ theta[p : 2 * p]
    sign = 2 * y[seen] - 1
    h, k, q = sign * (X[seen] @ theta[:p]), index[seen], sign * rho
    root, chance = np.sqrt((1 - q) * (1 + q)), bivariate_cdf(h, k, q)
    value = np.log(chance).sum() + log_ndtr(-index[~seen]).sum()
    phi = lambda z: np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)  # noqa: E731
    in_h = phi(h) * ndtr((k - q * h) / root) / chance
    in_k = phi(k) * ndtr((h - q * k) / root) / chance
    in_q = np.exp(-(h**2 - 2 * q * h * k + k**2) / (2 * root**2)) / (2 * np.pi * root) / chance
    in_gamma = X[seen].T @ in_k - X[~seen].T @ mills(-index[~seen])
    slopes = [X[seen].T @ (sign * in_h), in_gamma, [(in_q * sign).sum() * (1 - rho**2)]]
    return -value, -np.concatenate(slopes)


def linear_loss(theta, X, y):
    """Minus the log-likelihood of the linear model, and its gradient."""
    p, seen = X.shape[1], np.isfinite(y)
    rho, index = np.tanh(theta[-1]), X @ theta[p : 2 * p]
    root, scale = np.sqrt(1 - rho**2), np.exp(-theta[-2])
    u = (y[seen] - X[seen] @ theta[:p]) * scale
    v = (index[seen] + rho * u) / root
    value = (log_ndtr(v) - 0.5 * u**2 - 0.5 * np.log(2 * np.pi) - theta[-2]).sum()
    value += log_ndtr(-index[~seen]).sum()
    ratio = mills(v)
    in_u = ratio * rho / root - u
    in_gamma = X[seen].T @ (ratio / root) - X[~seen].T @ mills(-index[~seen])
    in_rho = (ratio * (u / root + v * rho / root**2)).sum() * (1 - rho**2)
    slopes = [X[seen].T @ (-in_u * scale), in_gamma, [-(u * in_u).sum() - seen.sum(), in_rho]]
    return -value, -np.concatenate(slopes)


def highest(X, y, loss: Callable, rhos=(-0.97, -0.7, 0.0, 0.7, 0.97)):
    """Return the highest log-likelihood found, and its rho."""
    design, seen = np.column_stack([np.ones(len(X)), X]), np.isfinite(y)
    p, found = design.shape[1], []
    size = 2 * p + (1 if loss is binary_loss else 2)
    for rho in rhos:
        theta = np.zeros(size)
        if loss is linear_loss:
            theta[:p] = np.linalg.lstsq(design[seen], y[seen], rcond=None)[0]
        last = [np.arctanh(rho)]

        def held(free, last=last):
            value, slope = loss(np.append(free, last), design, y)
            return value, slope[:-1]

        with np.errstate(all="ignore"):
            first = minimize(held, theta[:-1], jac=True, method="BFGS", options={"maxiter": 300})
            best = minimize(
                loss,
                np.append(first.x, last),
                args=(design, y),
                jac=True,
                method="L-BFGS-B",
                bounds=[(None, None)] * (size - 1) + [(-FURTHEST, FURTHEST)],
                options={"maxiter": 800, "ftol": 1e-13, "gtol": 1e-7},
            )
        found.append((-float(best.fun), float(np.tanh(best.x[-1]))))
    return max(found)


def fitted(model, X, y):
    """Return the model, and the warnings of its fit but those of a missing exclusion."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    kinds = [one.category for one in caught if issubclass(one.category, HeckmanfaWarning)]
    return model, [kind for kind in kinds if kind is not NoExclusionWarning]


def count_lower(samples, estimator, loss):
    """Count fits below the highest point, those of them without a warning, and all warned."""
    lower = silent = warned = 0
    for X, y in samples:
        model, said = fitted(estimator(), X, y)
        is_lower = highest(X, y, loss)[0] > model.log_likelihood_ + HIGHER
        lower += is_lower
        silent += is_lower and not said
        warned += bool(said)
    return lower, silent, warned


@pytest.fixture(scope="module")
def rare():
    """400 rows, of which 9 of 199 selected ones are of the positive class: rho goes to one."""
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    errors[:, 1] = 0.9 * errors[:, 0] + np.sqrt(0.19) * errors[:, 1]
    y = (-2.2 + 0.5 * X[:, 0] + errors[:, 1] > 0).astype(float)
    y[X @ [0.5, 0.5, 0.7] + errors[:, 0] <= 0] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y, name="out")


def test_the_likelihoods_here_are_those_of_scipy_and_of_the_package():
    h, k = np.array([0.3, -1.2, 2.0]), np.array([-0.7, 0.4, 1.1])
    for rho in (-0.8, 0.3, 0.95):
        law = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        expected = [law.cdf([one, other]) for one, other in zip(h, k, strict=True)]
        np.testing.assert_allclose(bivariate_cdf(h, k, rho), expected, rtol=1e-7)
    data = make_selection(300, 2, 2, rho=0.4, random_state=1)
    binary = make_selection(300, 2, 2, rho=0.4, outcome_kind="binary", random_state=1)
    for estimator, loss, (X, y) in (
        (Heckman(method="ml"), linear_loss, (data.X, data.y)),
        (HeckmanProbit(), binary_loss, (binary.X, binary.y)),
    ):
        model, _ = fitted(estimator, X, y)
        design = np.column_stack([np.ones(len(X)), X])
        value, slope = loss(model.params_, design, y)
        assert -value == pytest.approx(model.log_likelihood_, rel=1e-10)
        np.testing.assert_allclose(slope, 0, atol=1e-3)


# Found by seeds: of these, four of five ended at a lower point without a word.
@pytest.mark.parametrize("seed", [1, 3, 8, 11, 24])
def test_a_higher_point_of_a_heckman_probit_is_warned_of(seed):
    X, y = binary_sample(seed, 400, 1, 0, -0.8, 0.8)
    model, said = fitted(HeckmanProbit(), X, y)
    height, rho = highest(X, y, binary_loss)
    assert height > model.log_likelihood_ + HIGHER
    assert SecondMaximumWarning in said
    assert "lower" in model.fit_.doubts
    known, where = model.fit_.second_maximum
    assert known > height - HIGHER
    assert where * rho > 0
    again, _ = fitted(HeckmanProbit(start=where), X, y)
    assert again.log_likelihood_ > height - HIGHER


def test_few_small_samples_end_at_a_lower_point_and_none_of_them_in_silence():
    samples = [binary_sample(seed, 100, 1, 0, 0.3, 0.3) for seed in range(8)]
    lower, silent, _ = count_lower(samples, HeckmanProbit, binary_loss)
    assert lower >= 5
    assert silent == 0


@pytest.mark.parametrize("seed", [4, 6, 14, 24, 26])
def test_a_higher_point_of_a_linear_outcome_is_warned_of(seed):
    X, y = linear_sample(seed, 200, 1, 0.2)
    model, said = fitted(Heckman(method="ml"), X, y)
    assert highest(X, y, linear_loss)[0] > model.log_likelihood_ + HIGHER
    assert SecondMaximumWarning in said


@pytest.mark.study
@pytest.mark.parametrize(
    ("n", "k", "level", "share", "strength"),
    [(100, 1, 0, 0.3, 0.3), (400, 1, 0, -0.8, 0.8), (200, 2, 0, 0.3, 0.8), (400, 3, 0, 0.3, 0.3)],
)
def test_of_a_hundred_small_samples_none_is_silent(n, k, level, share, strength):
    samples = [binary_sample(seed, n, k, level, share, strength) for seed in range(100)]
    lower, silent, warned = count_lower(samples, HeckmanProbit, binary_loss)
    print(f"\n{n} rows, {k} features: {lower} lower, {silent} of them silent, {warned} warned")
    assert silent == 0


@pytest.mark.parametrize("cov_type", [None, "robust"])
def test_at_the_boundary_a_fit_warns_and_has_no_standard_errors_but_those_of_selection(
    rare, cov_type
):
    X, y = rare
    with pytest.warns(RhoUncertainWarning, match=r"0\.995"):
        model = HeckmanProbit(["a", "b"], cov_type=cov_type).fit(X, y)
    assert model.rho_ > 0.98
    assert model.converged_
    found = model.tidy()
    assert found[found["equation"] != "selection"]["std_error"].isna().all()
    # The selection equation has those of its probit, as with rho held at zero.
    alone = HeckmanProbit(["a", "b"], cov_type=cov_type, rho=0.0).fit(X, y).tidy()
    ours, theirs = (one[one["equation"] == "selection"]["std_error"] for one in (found, alone))
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_a_flat_likelihood_warns_and_says_so_everywhere():
    X, y = binary_sample(2, 400, 1, 0, -0.8, 0.8)
    model, said = fitted(HeckmanProbit(), X, y)
    assert said == [RhoUncertainWarning]
    assert abs(model.rho_) < 0.98
    # From a rho of zero to the one reported, the likelihood hardly changes.
    at_zero = HeckmanProbit(rho=0.0).fit(X, y)
    assert model.log_likelihood_ - at_zero.log_likelihood_ < 0.1
    assert np.isnan(model.tidy()["std_error"].iloc[-1])
    checks = {finding.key: finding for finding in model.diagnostics().checks()}
    assert checks["rho"].verdict == checks["standard_errors"].verdict == "problem"
    assert checks["rho"].case == "flat"


def test_nothing_breaks_without_standard_errors(rare):
    X, y = rare
    with pytest.warns(RhoUncertainWarning):
        model = HeckmanProbit(["a", "b"]).fit(X, y)
    margins = model.margins(X).tidy()
    assert margins["estimate"].notna().all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.what_if(X, y).tidy()["t"].isna().any()
    assert np.isfinite(model.uncertainty_interval(X, y, n_grid=3).tidy()["ui_low"]).all()
    assert model.profile_rho(X, y).interval()[1] > 0.98
    str(model.summary())


def test_a_rho_that_is_held_is_not_doubted(rare):
    X, y = rare
    model = HeckmanProbit(["a", "b"], rho=0.99).fit(X, y)
    assert model.fit_.doubts == ()
    assert model.tidy()["std_error"].notna().all()


def test_an_ordinary_fit_keeps_its_standard_errors():
    data = make_selection(800, 3, 2, rho=0.5, outcome_kind="binary", random_state=4)
    model = HeckmanProbit([0, 1]).fit(data.X, data.y)
    assert model.fit_.doubts == ()
    assert model.tidy()["std_error"].notna().all()
