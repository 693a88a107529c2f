"""AIC and BIC of fits by maximum likelihood count every parameter of the joint likelihood."""

import numpy as np
import pytest
from scipy.stats import norm

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanProbit
from heckmanfa.results.side_by_side import side_by_side

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]


@pytest.fixture(scope="module")
def wages(mroz):
    y = mroz["lwage"]
    high = (y > y.median()).astype(float).where(y.notna())
    return mroz[FEATURES], y, high


def joint_log_likelihood(X, y, coef, gamma, sigma, rho):
    """Log-likelihood of the linear model, written out."""
    seen = np.isfinite(y)
    index = gamma[0] + X @ gamma[1:]
    u = (y[seen] - coef[0] - X[seen][:, :2] @ coef[1:]) / sigma
    given = (index[seen] + rho * u) / np.sqrt(1 - rho**2)
    return float(
        norm.logsf(index[~seen]).sum() + (norm.logpdf(u) - np.log(sigma) + norm.logcdf(given)).sum()
    )


@pytest.mark.parametrize("rho", [None, 0.3])
def test_a_linear_fit_counts_both_equations_sigma_and_an_estimated_rho(wages, rho):
    X, y, _ = wages
    model = Heckman(FEATURES[:2], rho=rho, method="ml").fit(X, y)
    gamma = np.append(model.selection_intercept_, model.selection_coef_)
    coef = np.append(model.intercept_, model.coef_[:2])
    found = joint_log_likelihood(X.to_numpy(), y.to_numpy(), coef, gamma, model.sigma_, model.rho_)
    k = 3 + 6 + 1 + (rho is None)
    assert model.aic_ == pytest.approx(-2 * found + 2 * k, rel=1e-10)
    assert model.bic_ == pytest.approx(-2 * found + k * np.log(753), rel=1e-10)


def test_a_held_rho_is_ranked_against_a_free_one_by_all_parameters(wages):
    X, _, high = wages
    free, held = (HeckmanProbit(FEATURES[:2], rho=rho).fit(X, high) for rho in (None, 0.3))
    assert (held.aic_, free.aic_) == (
        pytest.approx(1356.81, abs=5e-3),
        pytest.approx(1358.32, abs=5e-3),
    )
    # One more parameter, and twice the likelihood-ratio statistic.
    ratio = 2 * (free.log_likelihood_ - held.log_likelihood_)
    assert free.aic_ - held.aic_ == pytest.approx(2 - ratio)
    assert free.bic_ - held.bic_ == pytest.approx(np.log(753) - ratio)


@pytest.mark.parametrize("kind", ["robust", "cluster"])
def test_the_covariance_does_not_change_them(wages, kind):
    X, _, high = wages
    groups = np.arange(len(X)) // 3 if kind == "cluster" else None
    plain = HeckmanProbit(FEATURES[:2]).fit(X, high)
    other = HeckmanProbit(FEATURES[:2], cov_type=kind).fit(X, high, groups=groups)
    assert (other.aic_, other.bic_) == (plain.aic_, plain.bic_)


def test_weights_count_as_rows(wages):
    X, _, high = wages
    twice = HeckmanProbit(FEATURES[:2]).fit(X, high, sample_weight=np.full(len(X), 2))
    once = HeckmanProbit(FEATURES[:2]).fit(X, high)
    assert twice.aic_ == pytest.approx(2 * once.aic_ - 2 * 10, rel=1e-9)
    assert twice.bic_ == pytest.approx(-4 * once.log_likelihood_ + 10 * np.log(2 * 753), rel=1e-9)


def test_a_search_keeps_its_criteria_and_its_choice(wages):
    X, y, _ = wages
    two_step, ml = (HeckmanBestSubset(method=method).fit(X, y) for method in ("two-step", "ml"))
    assert ml.prediction_features_ == two_step.prediction_features_
    assert ml.candidates_.equals(two_step.candidates_)
    assert two_step.bic_ == pytest.approx(two_step.candidates_["bic"].iloc[0])
    assert ml.bic_ == pytest.approx(-2 * ml.log_likelihood_ + len(ml.params_) * np.log(753))


def test_every_output_shows_the_same(wages):
    X, y, high = wages
    for model in (
        Heckman(FEATURES[:2], method="ml").fit(X, y),
        HeckmanProbit(FEATURES[:2]).fit(X, high),
    ):
        text = str(model.summary())
        assert f"{model.aic_:.2f}" in text
        assert f"{model.bic_:.2f}" in text
        assert "step 2" not in text
        terms = side_by_side(model.fit_).terms.set_index("term")
        assert terms.loc["bic", "estimate"] == model.bic_


def test_beside_least_squares_the_likelihood_is_that_of_rho_zero(wages):
    X, y, _ = wages
    model = Heckman(FEATURES[:2], method="ml").fit(X, y)
    apart = Heckman(FEATURES[:2], method="ml", rho=0.0).fit(X, y)
    terms = side_by_side(model.fit_).terms.set_index("term")
    assert terms.loc["bic", "least_squares"] == pytest.approx(apart.bic_, rel=1e-10)


@pytest.mark.filterwarnings("ignore:no outcome is missing")
def test_without_a_missing_outcome_one_equation_counts(wages):
    X, y, high = wages
    rows = y.notna()
    X, y, high = X[rows], y[rows], high[rows]
    m = len(y)
    linear = Heckman(FEATURES[:2], method="ml").fit(X, y)
    assert linear.aic_ == pytest.approx(-2 * linear.log_likelihood_ + 2 * 4)
    binary = HeckmanProbit(FEATURES[:2]).fit(X, high)
    assert binary.bic_ == pytest.approx(-2 * binary.log_likelihood_ + 3 * np.log(m))
