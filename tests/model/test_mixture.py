"""Many assignments at once: their covariances, the variance equation, mixture quantiles."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy.optimize import approx_fprime, brentq
from scipy.special import ndtr, stdtr
from scipy.stats import norm

from heckmanfa import compress, scan_parquet
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import InputError
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import fit_selection, gather
from heckmanfa.model.mixture import mix_assignments
from heckmanfa.model.normal import mills
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import gather_score_moments
from heckmanfa.model.two_step import fit_two_step

ROBUST = CovarianceKind("robust", False)
MROZ = [
    "educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc",
    "fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage",
]  # fmt: skip


def all_masks(k):
    return ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(bool)


def fitted(X, y, weight=None, groups=None):
    """Rows and moments with weights or groups; every column is in both equations."""
    rows = replace(compress(X, y).rows, weight=weight, group=groups)
    labels = [f"x{i}" for i in range(X.shape[1])]
    selection = fit_selection(rows, range(X.shape[1]), labels)
    return rows, gather(selection, range(X.shape[1]), labels, int(np.isfinite(y).sum()))


def relative(ours, expected):
    """The largest difference of two covariances, in products of standard errors."""
    size = np.sqrt(np.diag(expected))
    return np.abs((ours - expected) / np.outer(size, size)).max()


# Covariances. ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wage():
    mroz = load_mroz()
    return compress(mroz[MROZ], mroz["lwage"])


def of_assignment(mixture, row):
    """Covariance of what an assignment holds, in the order of fit_two_step."""
    k, p = mixture.masks.shape[1], len(mixture.errors.selection)
    held = [0, *(np.flatnonzero(mixture.masks[row]) + 1), *range(k + 1, k + 2 + p)]
    return mixture.covariance(row)[np.ix_(held, held)]


@pytest.mark.parametrize("exact", [False, True])
def test_classical_covariances_are_those_of_single_fits(exact, wage, monkeypatch):
    moments = replace(wage.moments)
    if exact:
        monkeypatch.setattr(type(moments), "gram_is_safe", False)
    masks = np.random.default_rng(0).random((40, 15)) < 0.4
    masks[:2] = [False], [True]
    scores = gather_score_moments(moments, range(15), wage.rows, CLASSICAL)
    mixture = mix_assignments(moments, scores, masks, np.ones(40))
    checked = 0
    for row, mask in enumerate(masks):
        if abs(mixture.rho[row]) < 0.98:
            single = fit_two_step(moments, wage.probit, np.flatnonzero(mask), CLASSICAL)
            assert relative(of_assignment(mixture, row), single.covariance) < 1e-9
            size = np.sqrt(np.diag(single.covariance))
            errors = mixture.errors.coef[row, [True, *mask, True]]
            np.testing.assert_allclose(errors, size[: len(errors)], rtol=1e-9)
            np.testing.assert_allclose(mixture.errors.selection, size[len(errors) :], rtol=1e-9)
            checked += 1
    assert checked > 30
    assert np.all(mixture.errors.coef[:, 1:-1][~masks] == 0)


def test_candidates_far_from_zero_and_nearly_collinear_keep_nine_digits():
    data = make_selection(1500, 5, prediction_features=[0, 1, 2], rho=0.5, random_state=3)
    X = data.X.copy()
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1] + 1e3
    found = compress(X, data.y)
    assert not found.moments.gram_is_safe
    scores = gather_score_moments(found.moments, range(5), found.rows, CLASSICAL)
    mixture = mix_assignments(found.moments, scores, all_masks(5), np.ones(32))
    for row, mask in enumerate(mixture.masks):
        if abs(mixture.rho[row]) < 0.98:
            single = fit_two_step(found.moments, found.probit, np.flatnonzero(mask), CLASSICAL)
            assert relative(of_assignment(mixture, row), single.covariance) < 1e-8


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
@pytest.mark.parametrize("weights", ["none", "frequency", "sampling"])
def test_robust_covariances_of_all_features_are_those_of_a_single_fit(cov_type, weights, simulated):
    X, y = simulated.X, simulated.y
    rng = np.random.default_rng(1)
    weight = {
        "none": None,
        "frequency": rng.integers(1, 4, len(y)).astype(float),
        "sampling": rng.random(len(y)) + 0.2,
    }[weights]
    kind = CovarianceKind(cov_type, weights == "sampling", 40)
    rows, moments = fitted(X, y, weight, rng.integers(0, 40, len(y)))
    scores = gather_score_moments(moments, range(6), rows, kind)
    masks = np.ones((2, 6), dtype=bool)
    masks[1, 4] = False
    mixture = mix_assignments(moments, scores, masks, np.ones(2))
    single = fit_two_step(moments, moments.probit, range(6), kind, rows)
    assert relative(of_assignment(mixture, 0), single.covariance) < 1e-9
    other = fit_two_step(moments, moments.probit, [0, 1, 2, 3, 5], kind, rows)
    # Only the residuals in the middle differ: column 4 does not predict.
    assert relative(of_assignment(mixture, 1), other.covariance) < 0.1


def equations(theta, X, y, s):
    """Each row's scores: the probit's, the second step's, and that of sigma."""
    p = X.shape[1] + 1
    gamma, beta, sigma = theta[:p], theta[p:-1], theta[-1]
    z = np.column_stack([np.ones(len(X)), X])
    index = z @ gamma
    sign = np.where(s, 1.0, -1.0)
    ratio, delta = mills(index)
    w = np.column_stack([z, ratio])
    residual = np.where(s, np.where(s, y, 0.0) - w @ beta, 0.0)
    of_sigma = np.where(s, residual**2 + beta[-1] ** 2 * delta - sigma**2, 0.0)
    probit = (sign * mills(sign * index)[0])[:, None] * z
    return np.column_stack([probit, w * residual[:, None], of_sigma])


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
@pytest.mark.parametrize("sampling", [False, True])
def test_errors_of_sigma_and_rho_are_those_of_the_stacked_equations_done_by_hand(
    cov_type, sampling, simulated
):
    X, y, s = simulated.X, simulated.y, simulated.selected
    rng = np.random.default_rng(2)
    weight = rng.random(len(y)) + 0.2 if sampling else rng.integers(1, 4, len(y)).astype(float)
    groups = rng.integers(0, 40, len(y))
    rows, moments = fitted(X, y, weight, groups)
    scores = gather_score_moments(moments, range(6), rows, CovarianceKind(cov_type, sampling, 40))
    mixture = mix_assignments(moments, scores, np.ones((1, 6), dtype=bool), np.ones(1))
    theta = np.concatenate([moments.probit.coef, mixture.coef[0], mixture.sigma])
    psi = equations(theta, X, y, s)
    np.testing.assert_allclose(weight @ psi, 0, atol=1e-8 * len(y))
    jacobian = approx_fprime(theta, lambda at: weight @ equations(at, X, y, s), 1e-6)
    if cov_type == "cluster":
        sums = np.zeros((40, len(theta)))
        np.add.at(sums, groups, psi * weight[:, None])
        middle = sums.T @ sums * 40 / 39
    else:
        n = len(y) if sampling else weight.sum()
        middle = (psi * weight[:, None] ** (2 if sampling else 1)).T @ psi * n / (n - 1)
    inverse = np.linalg.inv(jacobian)
    expected = inverse @ middle @ inverse.T
    pair = expected[-2:, -2:]
    assert mixture.errors.sigma[0] == pytest.approx(pair[1, 1] ** 0.5, rel=1e-4)
    of_rho = np.array([1.0, -mixture.rho[0]]) / mixture.sigma[0]
    assert mixture.errors.rho[0] == pytest.approx((of_rho @ pair @ of_rho) ** 0.5, rel=1e-4)


def test_classical_errors_of_sigma_and_rho_agree_with_robust_ones_in_a_right_model():
    data = make_selection(40_000, 4, prediction_features=[0, 1], rho=0.6, random_state=5)
    found = compress(data.X, data.y)
    mask = np.array([[True, True, False, False]])
    errors = []
    for kind in (CLASSICAL, ROBUST):
        scores = gather_score_moments(found.moments, range(4), found.rows, kind)
        errors.append(mix_assignments(found.moments, scores, mask, np.ones(1)).errors)
    np.testing.assert_allclose(errors[0].sigma, errors[1].sigma, rtol=0.02)
    np.testing.assert_allclose(errors[0].rho, errors[1].rho, rtol=0.02)


def test_covariances_stay_positive_where_rho_is_outside_its_range():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 5 * X[:, 0] ** 2 + X[:, 1], np.nan)
    found = compress(X, y)
    scores = gather_score_moments(found.moments, range(3), found.rows, CLASSICAL)
    mixture = mix_assignments(found.moments, scores, all_masks(3), np.ones(8))
    assert np.abs(mixture.rho).max() > 1
    for row in range(8):
        covariance = of_assignment(mixture, row)
        size = np.sqrt(np.diag(covariance))
        assert np.linalg.eigvalsh(covariance / np.outer(size, size))[0] > 0
    assert np.all(mixture.errors.sigma > 0)
    assert np.all(mixture.errors.rho > 0)


def test_dependent_candidates_and_too_many_of_them_leave_residuals():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 30))
    X[:, 3] = X[:, 0] - X[:, 1]
    y = np.where(X[:, 2] + rng.normal(size=90) > 0, X[:, 0] + rng.normal(size=90), np.nan)
    found = compress(X, y, selection_features=[2, 4, 5])
    m = found.moments.n_selected
    assert m < 60
    scores = gather_score_moments(found.moments, range(30), found.rows, ROBUST)
    assert np.count_nonzero(scores.coef[1:-1]) <= m / 3
    few = gather_score_moments(found.moments, [0, 1, 3, 2], found.rows, ROBUST)
    assert few.coef[3] == 0
    with pytest.raises(InputError, match="1 of the 1 assignments cannot be solved"):
        mix_assignments(found.moments, scores, np.isin(np.arange(30), [0, 1, 3])[None], np.ones(1))
    mask = np.zeros((1, 30), dtype=bool)
    mask[0, [0, 1, 2]] = True
    w = np.column_stack([X[:, [0, 1, 2]], mills(index_of(found, X))[0]])[np.isfinite(y)]
    w = np.column_stack([np.ones(len(w)), w])
    residual = y[np.isfinite(y)] - w @ np.linalg.lstsq(w, y[np.isfinite(y)], rcond=None)[0]
    assert few.variance == pytest.approx(np.mean(residual**2), rel=1e-10)
    for each in (scores, few):
        errors = mix_assignments(found.moments, each, mask, np.ones(1)).errors
        assert errors.coef[0, 1] > 0
        assert errors.rho[0] > 0


def index_of(found, X):
    features = list(found.probit.features)
    return found.probit.coef[0] + X[:, features] @ found.probit.coef[1:]


def test_linear_functions_have_the_errors_of_the_delta_method(wage):
    masks = np.random.default_rng(8).random((30, 15)) < 0.5
    rng = np.random.default_rng(9)
    prediction, selection, by_imr = (rng.normal(size=(4, d)) for d in (17, 16, 16))
    for kind in (CLASSICAL, ROBUST):
        scores = gather_score_moments(wage.moments, range(15), wage.rows, kind)
        mixture = mix_assignments(wage.moments, scores, masks, np.ones(30))
        values, errors = mixture.linear(prediction, selection, by_imr)
        alone = mixture.linear(prediction)[1]
        for row in (0, 7, 29):
            gradient = np.column_stack([prediction, selection + mixture.imr_coef[row] * by_imr])
            covariance = mixture.covariance(row)
            expected = np.sqrt(np.diag(gradient @ covariance @ gradient.T))
            np.testing.assert_allclose(values[row], prediction @ mixture.coef[row], rtol=1e-12)
            np.testing.assert_allclose(errors[row], expected, rtol=1e-8)
            plain = np.sqrt(np.diag(prediction @ covariance[:17, :17] @ prediction.T))
            np.testing.assert_allclose(alone[row], plain, rtol=1e-8)


def test_many_functions_of_many_candidates_need_little_memory():
    data = make_selection(400, 60, 3, random_state=0)
    rows, moments = fitted(data.X, data.y)
    rng = np.random.default_rng(11)
    masks = rng.random((20, 60)) < 0.1
    scores = gather_score_moments(moments, range(60), rows, CLASSICAL)
    mixture = mix_assignments(moments, scores, masks, np.ones(20))
    prediction, by_imr = rng.normal(size=(2000, 62)), rng.normal(size=(2000, 61))
    tracemalloc.start()
    errors = mixture.linear(prediction, None, by_imr)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All products of two derivatives took 120 MB.
    assert peak < 3e7
    gradient = np.column_stack([prediction, mixture.imr_coef[4] * by_imr])[:10]
    expected = np.sqrt(np.diag(gradient @ mixture.covariance(4) @ gradient.T))
    np.testing.assert_allclose(errors[4, :10], expected, rtol=1e-8)
    assert mixture.linear(prediction[:0])[1].shape == (20, 0)


def test_the_total_covariance_is_within_plus_between(wage):
    rng = np.random.default_rng(10)
    masks, weights = rng.random((25, 15)) < 0.5, rng.random(25)
    scores = gather_score_moments(wage.moments, range(15), wage.rows, CLASSICAL)
    mixture = mix_assignments(wage.moments, scores, masks, weights)
    weights = weights / weights.sum()
    estimates = np.column_stack([mixture.coef, np.tile(wage.probit.coef, (25, 1))])
    mean, covariance = mixture.total_covariance()
    np.testing.assert_allclose(mean, weights @ estimates, rtol=1e-12)
    expected = sum(w * mixture.covariance(row) for row, w in enumerate(weights))
    expected = expected + np.cov(estimates.T, aweights=weights, ddof=0)
    assert relative(covariance, expected) < 1e-10


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
def test_rows_of_files_and_tensors_give_the_same_sums(cov_type, simulated, tmp_path):
    pytest.importorskip("pyarrow")
    torch = pytest.importorskip("torch")
    village = np.arange(800) % 30
    frame = simulated.frame.assign(village=village).drop(columns="selected")
    X, y = simulated.X, simulated.y
    kind = CovarianceKind(cov_type, False, 30)
    rows, moments = fitted(X, y, None, village)
    expected = gather_score_moments(moments, range(6), rows, kind)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=170)
    names = list(simulated.feature_names)
    files = compress(scan_parquet(tmp_path, "y", names, groups="village")).rows
    tensors = replace(
        compress(torch.as_tensor(X), torch.as_tensor(y)).rows,
        group=torch.as_tensor(village),
    )
    for other in (files, tensors):
        found = gather_score_moments(moments, range(6), other, kind)
        for name in ("middle", "residual_slope", "delta_slope"):
            size = np.abs(getattr(expected, name)).max()
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), atol=1e-11 * size
            )


# Quantiles. -----------------------------------------------------------------------------------


def mixture_cdf(weights, centres, errors, where, df=None):
    smooth = errors > 0
    points = np.where(~smooth & (centres <= where), 1.0, 0.0)
    z = (where - centres) / np.where(smooth, errors, 1.0)
    return weights @ np.where(smooth, ndtr(z) if df is None else stdtr(df, z), points)


@pytest.mark.parametrize("df", [None, 1, 6])
def test_quantiles_invert_the_distribution_function(df):
    rng = np.random.default_rng(11)
    q, levels = 25, [0.005, 0.3, 0.5, 0.975]
    weights = rng.dirichlet(np.ones(60))
    scale = 10.0 ** rng.integers(-6, 6, q)
    centres = rng.normal(size=(60, q)) * scale * rng.choice([0.01, 1, 30], q)
    errors = rng.gamma(2.0, size=(60, q)) * scale
    absent = rng.random((60, q)) < rng.random(q)
    centres[absent] = errors[absent] = 0.0
    found = mixture_quantiles(weights, centres, errors, levels, df)
    at_zero = 0
    for column in range(q):
        parts = weights, centres[:, column], errors[:, column]
        spread = np.sqrt(weights @ (parts[1] ** 2 + parts[2] ** 2))
        below = mixture_cdf(*parts, -1e-13 * scale[column], df)
        for place, level in enumerate(levels):
            if below < level <= mixture_cdf(*parts, 0.0, df):
                assert found[column, place] == 0.0
                at_zero += 1
                continue
            expected = brentq(
                lambda x, level=level, parts=parts: mixture_cdf(*parts, x, df) - level,
                -1e3 * spread,
                1e3 * spread,
                xtol=1e-14 * spread,
            )
            assert found[column, place] == pytest.approx(expected, abs=1e-9 * spread)
    assert 10 < at_zero < 90


def test_point_masses_elsewhere_are_found_exactly():
    weights = np.array([0.2, 0.3, 0.1, 0.4])
    centres = np.array([[-1.0, 3.0], [0.5, 3.0], [2.0, 3.0], [0.0, 3.0]])
    errors = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    levels = [0.1, 0.3, 0.5, 0.62, 0.97]
    found = mixture_quantiles(weights, centres, errors, levels)
    np.testing.assert_array_equal(found[1], 3.0)
    parts = weights, centres[:, 0], errors[:, 0]
    assert found[0, 2] == 0.5
    assert found[0, 0] == -1.0
    assert -1.0 < found[0, 1] < 0.5
    for place, level in enumerate(levels):
        x = found[0, place]
        before, at = mixture_cdf(*parts, x - 1e-9), mixture_cdf(*parts, x)
        assert before - 1e-8 < level < at + 1e-8


def test_quantiles_ignore_components_without_weight_and_pass_on_nan():
    weights = np.array([0.5, 0.5, 0.0])
    centres = np.array([[0.0, 0.0], [0.0, 0.0], [9.0, np.nan]])
    errors = np.array([[1.0, np.nan], [1.0, 1.0], [0.0, 1.0]])
    found = mixture_quantiles(weights, centres, errors, [0.975])
    assert found[0, 0] == pytest.approx(norm.ppf(0.975), abs=1e-10)
    assert np.isnan(found[1, 0])


def test_quantiles_of_far_apart_components_converge():
    weights = np.array([0.5, 0.5])
    centres = np.array([[-1e6, 0.0], [1e6, 1e9]])
    errors = np.array([[1e-3, 1e-6], [1e-3, 1.0]])
    found = mixture_quantiles(weights, centres, errors, [0.025, 0.975])
    expected = [[-1e6 - 1e-3 * norm.ppf(0.95), 1e6 + 1e-3 * norm.ppf(0.95)]]
    np.testing.assert_allclose(found[:1], expected, rtol=1e-14)
    assert found[1, 1] == pytest.approx(1e9 + norm.ppf(0.95), rel=1e-14)


def test_intervals_of_many_rows_take_few_evaluations(monkeypatch):
    random = np.random.default_rng(0)
    n, q, levels = 500, 40, (0.025, 0.975)
    weights = random.dirichlet(np.ones(n))
    centres = random.normal(size=q) + random.normal(0.0, 0.05, (n, q))
    errors = 0.05 * np.exp(random.normal(0.0, 0.1, (n, q)))
    counted = []
    original = special.ndtr
    monkeypatch.setattr(
        "heckmanfa.model.quantiles.special.ndtr", lambda z: counted.append(z.size) or original(z)
    )
    found = mixture_quantiles(weights, centres, errors, levels)
    # With Newton's method from the middle of the bracket there were more than five.
    assert sum(counted) / (n * q * len(levels)) < 3.5
    for j in range(3):
        for place, level in enumerate(levels):
            expected = brentq(
                lambda x, j=j, level=level: (
                    weights @ ndtr((x - centres[:, j]) / errors[:, j]) - level
                ),
                -9.0,
                9.0,
                xtol=1e-14,
            )
            assert found[j, place] == pytest.approx(expected, abs=1e-11)


def test_quantiles_of_many_functions_are_those_of_their_parts(wage):
    masks = np.random.default_rng(12).random((50, 15)) < 0.5
    scores = gather_score_moments(wage.moments, range(15), wage.rows, CLASSICAL)
    mixture = mix_assignments(wage.moments, scores, masks, np.ones(50))
    found = mixture.quantiles([0.05, 0.95], np.eye(17))
    expected = mixture_quantiles(mixture.weights, mixture.coef, mixture.errors.coef, [0.05, 0.95])
    size = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-9)
    every = mixture.estimate_quantiles([0.05, 0.95])
    np.testing.assert_allclose(every[:17] / size, expected / size, atol=1e-12)
    for row, name in ((17, "rho"), (18, "sigma")):
        parts = mixture.weights, getattr(mixture, name), getattr(mixture.errors, name)
        assert mixture_cdf(*parts, every[row, 0]) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_errors_follow_the_outcomes_unit(unit, simulated):
    masks = all_masks(6)[20:40]
    errors = []
    for y in (simulated.y, simulated.y * unit):
        found = compress(simulated.X, y)
        scores = gather_score_moments(found.moments, range(6), found.rows, CLASSICAL)
        errors.append(mix_assignments(found.moments, scores, masks, np.ones(20)).errors)
    np.testing.assert_allclose(errors[1].coef / unit, errors[0].coef, rtol=1e-9)
    np.testing.assert_allclose(errors[1].sigma / unit, errors[0].sigma, rtol=1e-9)
    np.testing.assert_allclose(errors[1].rho, errors[0].rho, rtol=1e-9)
