"""The likelihood of the Heckman probit: derivatives, covariances, weights, starts and blocks."""

import warnings

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_ndtr, ndtr

from heckmanfa.data.rows import ArrayRows, Matrix
from heckmanfa.data.sample import Sample
from heckmanfa.datasets import make_selection
from heckmanfa.errors import ConvergenceWarning, InputError, SecondMaximumWarning
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.fit import fit_model
from heckmanfa.inference.choosing import GivenFeatures
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.joint_problem import scores_of
from heckmanfa.model.outcome_probit import fit_outcome_probit
from heckmanfa.model.probit_likelihood import ProbitProblem, fit_probit_likelihood, probits_apart

from .test_likelihood import random_problem

PREDICTION = [0, 1]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(50)


def log_phi2(h, k, r):
    """Log Phi2 as the integral of phi(t) Phi((h - r t) / sqrt(1 - r^2)) over t <= k."""
    low = -8.0
    t = low + 0.5 * (k[:, None] - low) * (NODES + 1.0)
    inner = ndtr((h[:, None] - r[:, None] * t) / np.sqrt(1.0 - r[:, None] ** 2))
    values = np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi) * inner
    return np.log(values @ WEIGHTS * 0.5 * (k - low))


def row_log_likelihoods(params, X, y):
    """Of each row by definition, at params_: prediction, selection, atanh rho."""
    j = len(PREDICTION) + 1
    beta, gamma, rho = params[:j], params[j:-1], np.tanh(params[-1])
    u = gamma[0] + X @ gamma[1:]
    q = 2.0 * y - 1.0
    eta = beta[0] + X[:, PREDICTION] @ beta[1:]
    values = log_ndtr(-u)
    s = ~np.isnan(y)
    values[s] = log_phi2((q * eta)[s], u[s], q[s] * rho)
    return values


def numeric_scores(params, X, y, step=1e-5):
    columns = []
    for place in range(len(params)):
        up, down = params.copy(), params.copy()
        up[place] += step
        down[place] -= step
        columns.append(row_log_likelihoods(up, X, y) - row_log_likelihoods(down, X, y))
    return np.array(columns).T / (2 * step)


def by_hand(params, X, y, weight, middle):
    """Sandwich of numeric derivatives, with rho in place of atanh rho."""
    step = 1e-4
    hessian = np.array(
        [
            weight @ (numeric_scores(params + e, X, y) - numeric_scores(params - e, X, y))
            for e in step * np.eye(len(params))
        ]
    ) / (2 * step)
    bread = np.linalg.inv(-0.5 * (hessian + hessian.T))
    covariance = bread if middle is None else bread @ middle @ bread
    slope = np.append(np.ones(len(params) - 1), 1.0 - np.tanh(params[-1]) ** 2)
    return covariance * np.outer(slope, slope)


@pytest.fixture(scope="module")
def data():
    return make_selection(
        200, 3, prediction_features=PREDICTION, rho=0.5, outcome_kind="binary", random_state=3
    )


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(5).integers(1, 4, 200).astype(float)


@pytest.fixture(scope="module")
def groups():
    return np.random.default_rng(6).integers(0, 40, 200)


def test_the_log_likelihood_is_that_of_the_bivariate_normal_law(data):
    model = HeckmanProbit(PREDICTION).fit(data.X, data.y)
    expected = row_log_likelihoods(model.params_, data.X, data.y).sum()
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-13)
    slopes = numeric_scores(model.params_, data.X, data.y).sum(axis=0)
    np.testing.assert_allclose(slopes, 0.0, atol=1e-7)


@pytest.mark.parametrize(
    ("cov_type", "kind"),
    [
        ("classical", None),
        ("robust", None),
        ("cluster", None),
        ("robust", "frequency"),
        ("robust", "sampling"),
        ("cluster", "sampling"),
    ],
)
def test_covariances_equal_a_sandwich_of_numeric_scores(data, weight, groups, cov_type, kind):
    model = HeckmanProbit(PREDICTION, cov_type=cov_type, weight_kind=kind or "frequency")
    clustered = {"groups": groups} if cov_type == "cluster" else {}
    model.fit(data.X, data.y, sample_weight=None if kind is None else weight, **clustered)
    w = np.ones(200) if kind is None else weight
    n = 200 if kind != "frequency" else w.sum()
    if kind == "sampling":
        w = w / w.mean()
    scores = numeric_scores(model.params_, data.X, data.y)
    middle = None
    if cov_type == "robust":
        each = scores * (w if kind == "sampling" else np.sqrt(w))[:, None]
        middle = each.T @ each * n / (n - 1)
    elif cov_type == "cluster":
        sums = np.array([(w[:, None] * scores)[groups == g].sum(axis=0) for g in set(groups)])
        middle = sums.T @ sums * len(sums) / (len(sums) - 1)
    expected = by_hand(model.params_, data.X, data.y, w, middle)
    ours = model.vcov().to_numpy()
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        ours / np.outer(scale, scale), expected / np.outer(scale, scale), atol=2e-6
    )


def test_frequency_weights_repeat_rows(data, weight):
    model = HeckmanProbit(PREDICTION).fit(data.X, data.y, sample_weight=weight)
    many = weight.astype(int)
    again = HeckmanProbit(PREDICTION).fit(np.repeat(data.X, many, 0), np.repeat(data.y, many))
    np.testing.assert_allclose(model.params_, again.params_, rtol=1e-9)
    np.testing.assert_allclose(model.vcov(), again.vcov(), rtol=1e-7, atol=1e-12)
    for name in ("log_likelihood_", "aic_", "bic_", "n_obs_", "n_selected_"):
        assert getattr(model, name) == pytest.approx(getattr(again, name), rel=1e-12)
    one, other = model.fit_.details, again.fit_.details
    assert (one.n_positive, one.n_negative) == (other.n_positive, other.n_negative)
    assert one.mean_slope == pytest.approx(other.mean_slope, rel=1e-10)
    np.testing.assert_allclose(one.mean_slope_gradient, other.mean_slope_gradient, rtol=1e-8)


def test_blocks_of_any_size_give_the_same_estimates():
    found = []
    for block_rows in (None, 30):
        rows, moments, probit, features = random_problem(
            np.random.default_rng(2), ProbitProblem, True, True, block_rows
        )
        naive = fit_outcome_probit(moments, rows, features)
        apart = probits_apart(moments, probit, naive)
        found.append(fit_probit_likelihood(apart, CLASSICAL, rows))
    whole, chunked = found
    assert whole.converged
    np.testing.assert_allclose(whole.params, chunked.params, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(whole.covariance, chunked.covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(whole.mean_slope_gradients, chunked.mean_slope_gradients, atol=1e-9)
    assert whole.index_range == pytest.approx(chunked.index_range, rel=1e-9)


def test_the_mean_slope_is_what_an_average_of_densities_is(data):
    model = HeckmanProbit(PREDICTION).fit(data.X, data.y)
    s = ~np.isnan(data.y)
    design = np.column_stack([np.ones(s.sum()), data.X[s][:, PREDICTION]])

    def mean(b):
        return np.mean(np.exp(-0.5 * (design @ b) ** 2) / np.sqrt(2 * np.pi))

    binary = model.fit_.details
    beta = np.append(model.intercept_, model.coef_[PREDICTION])
    assert binary.mean_slope == pytest.approx(mean(beta), rel=1e-12)
    np.testing.assert_allclose(
        binary.mean_slope_gradient, approx_fprime(beta, mean, 1e-7), atol=1e-6
    )
    assert binary.naive_mean_slope == pytest.approx(mean(binary.naive_coef), rel=1e-12)
    np.testing.assert_allclose(
        binary.naive_mean_slope_gradient, approx_fprime(binary.naive_coef, mean, 1e-7), atol=1e-6
    )


def test_rho_zero_is_two_probits(data):
    """The plain probit of the selected rows and that of selection, by SciPy's optimizer."""
    model = HeckmanProbit(PREDICTION).fit(data.X, data.y)
    binary, s = model.fit_.details, ~np.isnan(data.y)

    def probit(X, y, b):
        return -log_ndtr((2.0 * y - 1.0) * (b[0] + X @ b[1:])).sum()

    naive = minimize(
        lambda b: probit(data.X[s][:, PREDICTION], data.y[s], b), np.zeros(3), tol=1e-9
    )
    choice = minimize(lambda b: probit(data.X, s.astype(float), b), np.zeros(4), tol=1e-9)
    np.testing.assert_allclose(binary.naive_coef, naive.x, atol=1e-5)
    design = np.column_stack([np.ones(s.sum()), data.X[s][:, PREDICTION]])
    signed = (2.0 * data.y[s] - 1.0) * (design @ binary.naive_coef)
    ratio = np.exp(-0.5 * signed**2 - log_ndtr(signed)) / np.sqrt(2 * np.pi)
    information = design.T @ (design * (ratio * (ratio + signed))[:, None])
    np.testing.assert_allclose(binary.naive_covariance, np.linalg.inv(information), rtol=1e-7)
    assert binary.independent_log_likelihood == pytest.approx(-naive.fun - choice.fun, abs=1e-6)
    assert binary.independent_log_likelihood < model.log_likelihood_


def test_few_passes_are_needed(binary_case):
    for name, most in (("hp_mroz_wooldridge", 3), ("hp_sim_pos", 4)):
        case = binary_case(name)
        fit = HeckmanProbit(case.prediction, case.selection).fit(case.X, case.y).fit_
        selected = ~case.y.isna().to_numpy()
        rows = ArrayRows(
            Matrix(case.X.to_numpy()), np.where(selected, case.y, 0).astype(float), selected
        )
        naive = fit_outcome_probit(fit.moments, rows, fit.features)
        apart = probits_apart(fit.moments, fit.probit, naive)
        found = fit_probit_likelihood(apart, CLASSICAL, rows)
        assert found.converged
        assert found.n_iterations <= most
        np.testing.assert_allclose(found.params, fit.params, rtol=1e-12)


def test_outer_products_are_not_the_standard_errors_we_report(binary_case):
    """R's default (BHHH) gives these, 5.6% off the observed information on its own example."""
    case = binary_case("hp_mroz_manual")
    fit = HeckmanProbit(case.prediction, case.selection).fit(case.X, case.y).fit_
    selected = ~case.y.isna().to_numpy()
    outcome = np.where(selected, case.y, 0).astype(float)
    rows = ArrayRows(Matrix(case.X.to_numpy()), outcome, selected)
    naive = fit_outcome_probit(fit.moments, rows, fit.features)
    apart = probits_apart(fit.moments, fit.probit, naive)
    problem = apart.problem
    found = fit_probit_likelihood(apart, CLASSICAL, rows)
    scores = np.concatenate(
        list(rows.map(scores_of, problem, found.inner_params, columns=problem.columns))
    )
    outer = np.sqrt(np.diag(np.linalg.inv(scores.T @ scores)))
    ratio = outer / np.sqrt(np.diag(found.inner_covariance))
    assert np.abs(ratio - 1).max() == pytest.approx(0.056, abs=0.002)


def test_starts_lead_to_the_same_maximum(data):
    usual = HeckmanProbit(PREDICTION).fit(data.X, data.y)
    for start in (-0.9, 0.8, usual.params_ + 0.1):
        model = HeckmanProbit(PREDICTION, start=start).fit(data.X, data.y)
        np.testing.assert_allclose(model.params_, usual.params_, rtol=1e-7)
    with pytest.raises(InputError, match=r"8 parameters: 3 of .* first\) and atanh rho, as in"):
        HeckmanProbit(PREDICTION, start=np.zeros(9)).fit(data.X, data.y)


def test_rho_at_the_boundary_is_a_warning():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    e = rng.normal(size=300)
    y = np.where(X @ [0.5, 0.0, 0.0, 1.0] + e > -0.3, X @ [0.7, -0.5, 0.0, 0.0] - e > 0, np.nan)
    with pytest.warns(ConvergenceWarning, match=r"rho = -0\.999.*rises up to \|rho\| = 1"):
        model = HeckmanProbit([0, 1]).fit(X, y)
    assert not model.converged_
    assert np.isfinite(model.coef_).all()


def test_a_likelihood_that_levels_off_towards_the_boundary_has_no_maximum():
    rng = np.random.default_rng(25)
    X, u = rng.normal(size=(120, 3)), rng.normal(size=120)
    e = -0.8 * u + 0.6 * rng.normal(size=120)
    y = np.where(X @ [0.5, 0.3, 0.8] + u > -0.3, X[:, :2] @ [0.7, -0.5] + e > -0.2, np.nan)
    with pytest.warns(ConvergenceWarning, match=r"rho = -0\.9999.*rises up to \|rho\| = 1"):
        assert not HeckmanProbit([0, 1]).fit(X, y).converged_


def test_a_second_maximum_is_looked_for(monkeypatch):
    """The search near |rho| = 1 goes on the likelihood of a binary outcome; replicates do not."""
    visited = []
    evaluate = ProbitProblem.evaluate

    def counted(self, rows, theta):
        visited.append(float(theta[-1]))
        return evaluate(self, rows, theta)

    monkeypatch.setattr(ProbitProblem, "evaluate", counted)
    data = make_selection(300, 3, prediction_features=[0], outcome_kind="binary", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SecondMaximumWarning)
        HeckmanProbit([0]).fit(data.X, data.y)
    assert min(visited) <= -1.5
    assert max(visited) >= 1.5
    visited.clear()
    model = HeckmanProbit([0]).fit(data.X, data.y)
    n_looking = len(visited)
    visited.clear()
    rows = ArrayRows(Matrix(data.X), np.nan_to_num(data.y), data.selected)
    counts = {"selected": int(data.selected.sum()), "unselected": int((~data.selected).sum())}
    sample = Sample(rows, counts, 0, all_selected=False)
    again = fit_model(model.fit_.spec.for_replicates(), sample, GivenFeatures())
    assert len(visited) < n_looking / 2
    assert max(np.abs(visited)) < 1.5
    np.testing.assert_array_equal(again.params, model.params_)
