import dataclasses
import warnings

import mpmath
import numpy as np
import pytest
from numpy.polynomial import hermite_e
from scipy import integrate, special, stats

import heckmanfa.inference.outcome_moments as outcome_moments
from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import HeckmanfaWarning, InputError
from heckmanfa.inference.outcome_moments import (
    expected_hermite,
    expected_slopes,
    score_covariances,
    variances,
)
from heckmanfa.inference.specification_report import SpecificationTests
from heckmanfa.model.normal import mills

PREDICTION = [0, 2, 3]
NAMES = [
    "normality_selection",
    "heteroskedasticity_selection",
    "normality_prediction",
    "correction_form",
    "reset",
]


def statistics(tests):
    return np.array([tests[name].statistic for name in NAMES])


@pytest.fixture(scope="module")
def model(simulated):
    return Heckman(PREDICTION).fit(simulated.X, simulated.y)


@pytest.fixture(scope="module")
def tests(model, simulated):
    return model.specification_tests(simulated.X, simulated.y)


def with_constant(X):
    return np.column_stack([np.ones(len(X)), X])


# Against the same tests done by hand. --------------------------------------------------------


def explained(model, X, s, added):
    """Explained sum of squares of Davidson and MacKinnon's artificial regression."""
    z = with_constant(X)
    u = z @ np.r_[model.selection_intercept_, model.selection_coef_]
    root = np.sqrt(stats.norm.cdf(u) * stats.norm.sf(u))
    left = (s - stats.norm.cdf(u)) / root
    right = np.column_stack([z, added(u, X)]) * (stats.norm.pdf(u) / root)[:, None]
    fitted = right @ np.linalg.lstsq(right, left, rcond=None)[0]
    return fitted @ fitted


def test_probit_tests_are_artificial_regressions(model, tests, simulated):
    X, s = simulated.X, simulated.selected
    powers = explained(model, X, s, lambda u, _: np.column_stack([u**2, u**3]))
    assert tests.normality_selection.statistic == pytest.approx(powers, rel=1e-9)
    assert tests.normality_selection.df == 2
    products = explained(model, X, s, lambda u, X: -u[:, None] * X)
    assert tests.heteroskedasticity_selection.statistic == pytest.approx(products, rel=1e-9)
    assert tests.heteroskedasticity_selection.df == 6


def test_what_the_heteroskedasticity_test_adds_is_the_slope_of_that_likelihood(model, simulated):
    X, s = simulated.X, simulated.selected
    u = with_constant(X) @ np.r_[model.selection_intercept_, model.selection_coef_]
    sign = np.where(s, 1.0, -1.0)

    def log_likelihood(a):
        return special.log_ndtr(sign * u / np.exp(X @ a)).sum()

    step = 1e-6
    slopes = [(log_likelihood(a) - log_likelihood(-a)) / (2 * step) for a in step * np.eye(6)]
    score = sign * stats.norm.pdf(u) / stats.norm.cdf(sign * u)
    np.testing.assert_allclose((-u[:, None] * X).T @ score, slopes, rtol=1e-6, atol=1e-6)


def wald_by_hand(model, data, added):
    """Greene's covariance of the second step with two more columns; sigma, beta_H without them."""
    s = data.selected
    z = with_constant(data.X)[s]
    u = z @ np.r_[model.selection_intercept_, model.selection_coef_]
    ratio = stats.norm.pdf(u) / stats.norm.cdf(u)
    slope = ratio * (ratio + u)
    small = np.column_stack([with_constant(data.X[s][:, PREDICTION]), ratio])
    fitted = small[:, :-1] @ np.r_[model.intercept_, model.coef_[PREDICTION]]
    w = np.column_stack([small, added(ratio, u, fitted)])
    beta = np.linalg.lstsq(w, data.y[s], rcond=None)[0]
    residual = data.y[s] - w @ beta
    sigma2 = residual @ residual / s.sum() + model.imr_coef_**2 * slope.mean()
    bread = np.linalg.inv(w.T @ w)
    cross = (w * slope[:, None]).T @ z
    v_gamma = model.vcov().loc["selection", "selection"].to_numpy()
    middle = sigma2 * w.T @ w + model.imr_coef_**2 * (
        cross @ v_gamma @ cross.T - (w * slope[:, None]).T @ w
    )
    v = (bread @ middle @ bread)[-2:, -2:]
    return beta[-2:] @ np.linalg.solve(v, beta[-2:])


def test_second_step_tests_are_wald_tests_with_heckmans_covariance(model, tests, simulated):
    by_hand = wald_by_hand(
        model, simulated, lambda ratio, u, _: np.column_stack([ratio * u, ratio * u**2])
    )
    assert tests.correction_form.statistic == pytest.approx(by_hand, rel=1e-8)
    by_hand = wald_by_hand(
        model, simulated, lambda *parts: np.column_stack([parts[2] ** 2, parts[2] ** 3])
    )
    assert tests.reset.statistic == pytest.approx(by_hand, rel=1e-8)


def log_density(e_times_sigma, u, shift, sigma, rho):
    """Log density of a selected row whose mean is shifted; any argument may be complex."""
    e = (e_times_sigma - shift) / sigma
    a = (u + rho * e) / np.sqrt(1 - rho**2)
    return special.log_ndtr(a) - 0.5 * e**2 - np.log(sigma)


def slopes_of(e, u, sigma, rho):
    """Derivatives in u, mean, sigma and rho, by complex steps: exact to rounding."""
    point, found = [u, np.zeros_like(u), sigma, rho], []
    for place in range(4):
        moved = [one + 1e-30j if place == i else one + 0j for i, one in enumerate(point)]
        found.append(log_density(e * sigma + 0j, *moved).imag / 1e-30)
    return found


def test_normality_of_the_prediction_error_is_a_moment_test_by_hand(simulated):
    """Every expectation by quadrature, every score by complex steps."""
    X, s = simulated.X, simulated.selected
    model = Heckman(PREDICTION, method="ml").fit(X, simulated.y)
    z, x = with_constant(X)[s], with_constant(X[:, PREDICTION])[s]
    u = z @ np.r_[model.selection_intercept_, model.selection_coef_]
    mean = x @ np.r_[model.intercept_, model.coef_[PREDICTION]]
    rho, sigma = model.rho_, model.sigma_
    e = (simulated.y[s] - mean) / sigma
    nodes, weights = hermite_e.hermegauss(60)
    grid, index = np.broadcast_arrays(nodes[None, :], u[:, None])
    # The density of e among selected rows, with respect to the normal law.
    law = special.ndtr((index + rho * grid) / np.sqrt(1 - rho**2)) / special.ndtr(index)
    law = law * weights / weights.sum()
    polynomials = [hermite_e.HermiteE.basis(k) for k in (3, 4)]
    moments = [one(grid) - np.sum(law * one(grid), axis=1)[:, None] for one in polynomials]
    gap = np.array([np.sum(one(e) - np.sum(law * one(grid), axis=1)) for one in polynomials])
    spread = np.array([[np.sum(law * a * b) for b in moments] for a in moments])
    design = [x, z, np.ones((len(u), 1)), np.ones((len(u), 1))]
    in_u, in_mean, in_sigma, in_rho = slopes_of(grid, index, sigma, rho)
    slopes = [one - np.sum(law * one, axis=1)[:, None] for one in (in_mean, in_u, in_rho, in_sigma)]

    def products(one, other):
        return np.sum(law * one * other, axis=1)

    cross = [
        np.concatenate([d.T @ products(m, f) for d, f in zip(design, slopes, strict=True)])
        for m in moments
    ]
    information = np.block(
        [
            [a.T @ (b * products(f, g)[:, None]) for b, g in zip(design, slopes, strict=True)]
            for a, f in zip(design, slopes, strict=True)
        ]
    )
    # What the outcomes of selected rows say of theta, and what selection itself says of gamma.
    everyone = with_constant(X)
    signed = np.where(s, 1.0, -1.0) * (
        everyone @ np.r_[model.selection_intercept_, model.selection_coef_]
    )
    ratio = stats.norm.pdf(signed) / stats.norm.cdf(signed)
    place = slice(len(PREDICTION) + 1, len(PREDICTION) + 1 + everyone.shape[1])
    information[place, place] += (everyone * (ratio * (ratio + signed))[:, None]).T @ everyone
    cross = np.array(cross)
    left = spread - cross @ np.linalg.solve(information, cross.T)
    expected = gap @ np.linalg.solve(left, gap)
    found = model.specification_tests(X, simulated.y).normality_prediction
    assert found.statistic == pytest.approx(expected, rel=1e-7)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 2), rel=1e-7)


# Expectations in closed form. ----------------------------------------------------------------


def integral(function, u, rho):
    """Expectation of a function of e among selected rows."""

    def integrand(e):
        a = (u + rho * e) / np.sqrt(1 - rho**2)
        return function(e) * np.exp(special.log_ndtr(a) - special.log_ndtr(u) - 0.5 * e**2)

    value = integrate.quad(integrand, -14, 14, epsabs=1e-9, epsrel=1e-9)[0]
    return value / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("u", [-4.0, -1.0, 0.3, 2.5])
@pytest.mark.parametrize("rho", [-0.9, 0.3])
def test_expectations_are_integrals(u, rho):
    basis = [hermite_e.HermiteE.basis(k) for k in range(9)]
    at = np.array([u])
    expected = expected_hermite(at, rho, 8)
    for k in range(9):
        assert expected[k][0] == pytest.approx(integral(basis[k], u, rho), rel=1e-8, abs=1e-8)
    found = variances(expected)
    mean = [integral(one, u, rho) for one in basis[:5]]
    for value, (j, k) in zip(found, [(3, 3), (3, 4), (4, 4)], strict=True):
        by_quad = integral(lambda e, j=j, k=k: (basis[j](e) - mean[j]) * basis[k](e), u, rho)
        assert value[0] == pytest.approx(by_quad, rel=1e-7, abs=1e-7)
    for k in (3, 4):
        # In log sigma and atanh rho, as the likelihood is written.
        units = (1.0, 1.0, 1.0, 1 - rho**2)
        for place, value in enumerate(score_covariances(at, rho, k)):

            def product(e, k=k, place=place):
                slope = slopes_of(e, np.float64(u), 1.0, rho)[place]
                return (basis[k](e) - mean[k]) * slope

            by_quad = units[place] * integral(product, u, rho)
            assert value[0] == pytest.approx(by_quad, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("u", [-9.0, -1.0, 0.3, 4.0])
@pytest.mark.parametrize("rho", [-0.97, 0.3])
def test_slopes_of_the_inverse_mills_ratio_are_integrals(u, rho):
    for power, value in enumerate(expected_slopes(np.array([u]), rho)):

        def curved(e, power=power):
            a = (u + rho * e) / np.sqrt(1 - rho**2)
            return mills(a)[1] * e**power

        assert value[0] == pytest.approx(integral(curved, u, rho), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("u", [-30, -8, 6])
@pytest.mark.parametrize("rho", [0.4, -0.98])
def test_expectations_keep_their_digits_in_the_tails(u, rho):
    """Against 60 digits, from the moments of a truncated normal law by integration by parts."""
    with mpmath.workdps(60):
        ratio = mpmath.npdf(u) / mpmath.ncdf(u)
        w = [mpmath.mpf(1), ratio]
        for k in range(2, 9):
            w.append((k - 1) * w[k - 2] + mpmath.mpf(-u) ** (k - 1) * ratio)
        r = mpmath.mpf(rho)
        h = [mpmath.mpf(one) for one in (1, 0, 1, 0, 3, 0, 15, 0, 105)]
        power = [
            mpmath.fsum(
                mpmath.binomial(k, i) * r**i * w[i] * mpmath.sqrt(1 - r**2) ** (k - i) * h[k - i]
                for i in range(k + 1)
            )
            for k in range(9)
        ]
        third, fourth = power[3] - 3 * power[1], power[4] - 6 * power[2] + 3
        exact = [
            power[6] - 6 * power[4] + 9 * power[2] - third**2,
            power[7] - 9 * power[5] + 21 * power[3] - 9 * power[1] - third * fourth,
            power[8] - 12 * power[6] + 42 * power[4] - 36 * power[2] + 9 - fourth**2,
        ]
        # H_k less its mean, times lambda(a) / sqrt(1 - rho^2).
        q = [mpmath.mpf(1), -r * u]
        for k in range(2, 5):
            q.append(-r * u * q[k - 1] + (k - 1) * (1 - r**2) * q[k - 2])
        with_u = [
            ratio * (q[3] - 3 * q[1] - third),
            ratio * (q[4] - 6 * q[2] + 3 - fourth),
        ]
    at = np.array([float(u)])
    found = expected_hermite(at, rho, 8)
    np.testing.assert_allclose(found[3][0], float(third), rtol=1e-13)
    np.testing.assert_allclose(found[4][0], float(fourth), rtol=1e-13)
    lost = 1e-15 * max(1.0, float(u) ** 4)
    np.testing.assert_allclose(
        [float(one[0]) for one in variances(found)], [float(one) for one in exact], rtol=lost
    )
    in_u = [score_covariances(at, rho, k)[0][0] for k in (3, 4)]
    np.testing.assert_allclose(in_u, [float(one) for one in with_u], rtol=1e-12)


def test_rows_that_are_never_truncated_have_the_moments_of_a_normal_law():
    at = np.array([50.0, 1e60, np.inf])
    expected = expected_hermite(at, 0.5, 8)
    assert all(np.all(one == 0) for one in expected[1:])
    np.testing.assert_array_equal(np.array(variances(expected)), [[6] * 3, [0] * 3, [24] * 3])


def test_expectations_are_averages_of_many_draws():
    rng = np.random.default_rng(5)
    n, u, rho = 400_000, -0.4, 0.7
    w = stats.truncnorm.rvs(-u, np.inf, size=n, random_state=rng)
    e = rho * w + np.sqrt(1 - rho**2) * rng.normal(size=n)
    at = np.array([u])
    expected = expected_hermite(at, rho, 8)
    slopes = slopes_of(e, np.full(n, u), 1.0, rho)
    for k in (3, 4):
        gap = hermite_e.HermiteE.basis(k)(e) - expected[k][0]
        assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(n)
        for value, slope in zip(score_covariances(at, rho, k)[:3], slopes[:3], strict=True):
            product = gap * slope
            assert abs(product.mean() - value[0]) < 4 * product.std() / np.sqrt(n)


# What must not change the tests. -------------------------------------------------------------


def test_units_and_origins_of_features_and_outcome_do_not_matter(tests, simulated):
    scale = np.array([1e-3, 1.0, 50.0, 1e5, -2.0, 1.0])
    shift = np.array([0.0, 1e4, -3.0, 1e6, 7.0, 0.5])
    X, y = simulated.X * scale + shift, 1e4 * simulated.y - 3e5
    moved = Heckman(PREDICTION).fit(X, y).specification_tests(X, y)
    np.testing.assert_allclose(statistics(moved), statistics(tests), rtol=1e-6)


def test_blocks_and_threads_do_not_matter(monkeypatch):
    data = make_selection(20_000, 4, prediction_features=[0, 1], random_state=2)
    model = Heckman([0, 1]).fit(data.X, data.y)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        found.append(statistics(model.specification_tests(data.X, data.y)))
    np.testing.assert_array_equal(*found)


def test_both_methods_and_all_covariances_give_the_same_tests(tests, simulated):
    X, y = simulated.X, simulated.y
    groups = np.arange(len(y)) // 8
    for method in ("two-step", "ml"):
        for cov_type, words in ((None, ""), ("robust", "no difference"), ("cluster", "reject too")):
            model = Heckman(PREDICTION, method=method, cov_type=cov_type)
            model.fit(X, y, groups=groups if cov_type == "cluster" else None)
            other = model.specification_tests(X, y)
            np.testing.assert_allclose(statistics(other), statistics(tests), rtol=1e-8)
            assert words in " ".join(other.notes)
    assert len(tests.notes) == 2


def test_features_that_only_predict_may_be_missing_where_nobody_is_selected(simulated):
    X, y = simulated.X.copy(), simulated.y
    full = Heckman(PREDICTION, [0, 1, 4]).fit(X, y)
    X[~simulated.selected, 2] = np.nan
    part = Heckman(PREDICTION, [0, 1, 4]).fit(X, y)
    np.testing.assert_array_equal(
        statistics(part.specification_tests(X, y)),
        statistics(full.specification_tests(simulated.X, y)),
    )


# What the tests see. -------------------------------------------------------------------------


def drawn(selection_error, outcome_error, more=0.0, spread=0.0, n=3000):
    """Three features, the first of which predicts; ``more`` of its square; unequal variances."""
    rng = np.random.default_rng(20)
    X, v = rng.normal(size=(n, 3)), rng.normal(size=n)
    e = 0.5 * v + np.sqrt(0.75) * rng.normal(size=n)
    v, e = selection_error(stats.norm.cdf(v)), outcome_error(stats.norm.cdf(e))
    s = 0.2 + X @ [0.7, 0.7, -0.7] + np.exp(spread * X[:, 1]) * v > 0
    y = np.where(s, 1 + X[:, 0] + more * X[:, 0] ** 2 + e, np.nan)
    return Heckman([0]).fit(X, y).specification_tests(X, y)


def skewed(p):
    return (stats.chi2.ppf(p, 3) - 3) / np.sqrt(6)


def heavy(p):
    return stats.t.ppf(p, 4) / np.sqrt(2)


def rejected(tests):
    return {test.name for test in tests if test.p_value < 0.01}


@pytest.mark.parametrize(
    ("drawing", "seen", "unseen"),
    [
        ((stats.norm.ppf, stats.norm.ppf), [], NAMES),
        ((skewed, stats.norm.ppf), ["normality_selection"], []),
        ((stats.norm.ppf, skewed), ["normality_prediction"], ["normality_selection"]),
        ((stats.norm.ppf, heavy), ["normality_prediction"], []),
        ((heavy, stats.norm.ppf), ["normality_selection"], []),
        ((stats.norm.ppf, stats.norm.ppf, 0.0, 0.4), ["heteroskedasticity_selection"], []),
        (
            (stats.norm.ppf, stats.norm.ppf, 0.15),
            ["reset"],
            ["normality_selection", "heteroskedasticity_selection"],
        ),
    ],
    ids=["right", "skewed", "skewed y", "heavy y", "heavy", "unequal variances", "missing square"],
)
def test_what_is_wrong_is_seen_where_it_is(drawing, seen, unseen):
    tests = drawn(*drawing)
    assert {*seen} <= rejected(tests)
    assert not {*unseen} & rejected(tests)
    assert all(tests[name].verdict == "rejected at 5%" for name in seen)


def test_errors_far_from_normal_can_still_be_tested():
    """With the observed information, the variance of the moments would not be positive here."""
    rng = np.random.default_rng(1)
    X, (v, h) = rng.normal(size=(1000, 3)), rng.normal(size=(2, 1000))
    e = stats.chi2.ppf(stats.norm.cdf(0.5 * v + np.sqrt(0.75) * h), 1)
    y = np.where(X @ [0.7, 0.7, -0.7] + v > 0, X[:, 0] + e / np.sqrt(2), np.nan)
    tests = Heckman([0]).fit(X, y).specification_tests(X, y)
    assert tests.normality_prediction.statistic > 100


def test_errors_that_depend_on_one_another_in_a_curve_are_seen():
    rng = np.random.default_rng(21)
    X, v = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    e = 0.5 * v + 0.8 * (v**2 - 1) + rng.normal(size=3000)
    y = np.where(0.2 + X @ [0.7, 0.7, -0.7] + v > 0, 1 + X[:, 0] + e, np.nan)
    tests = Heckman([0]).fit(X, y).specification_tests(X, y)
    assert "correction_form" in rejected(tests)
    assert "normality_selection" not in rejected(tests)


# Where a test cannot be made, in whole or in part. -------------------------------------------


@pytest.fixture(scope="module")
def with_dummies():
    rng = np.random.default_rng(8)
    n = 1500
    level = rng.integers(0, 3, n)
    X = np.column_stack([level == 1, level == 2, rng.normal(size=n)]).astype(float)
    v = rng.normal(size=n)
    e = 0.5 * v + rng.normal(size=n)
    y = np.where(0.3 + X @ [0.5, -0.5, 0.8] + v > 0, X[:, 0] - X[:, 1] + e, np.nan)
    return X, y


def test_columns_that_add_nothing_are_not_counted(with_dummies):
    X, y = with_dummies
    tests = Heckman([0]).fit(X, y).specification_tests(X, y)
    # A power of something that takes two values is a function of it.
    assert np.isnan(tests.reset.statistic)
    assert np.isnan(tests.reset.p_value)
    assert (tests.reset.df, tests.reset.verdict) == (0, "not computed")
    assert "linear combination" in tests.reset.note
    assert tests.reset.note in str(tests.reset)
    assert tests.reset.note in " ".join(str(tests).split())
    # A cube of something that takes three values is a function of its square.
    tests = Heckman([0, 1]).fit(X, y).specification_tests(X, y)
    assert tests.reset.df == 0
    assert tests.normality_selection.df == 2
    assert tests.heteroskedasticity_selection.df == 3


def test_a_saturated_selection_equation_has_nothing_to_test():
    rng = np.random.default_rng(4)
    n = 1500
    level = rng.integers(0, 3, n)
    known = rng.random(n) < 0.5
    X = np.column_stack([level == 1, level == 2, known, 1e9 + 3 * known]).astype(float)
    v = rng.normal(size=n)
    y = np.where(0.3 + X[:, :2] @ [1, -1] + v > 0, known + v + rng.normal(size=n), np.nan)
    tests = Heckman([2], [0, 1]).fit(X, y).specification_tests(X, y)
    for name in ("normality_selection", "heteroskedasticity_selection"):
        assert np.isnan(tests[name].statistic)
        assert tests[name].note
    # lambda takes three values, and with a constant it says two of them.
    assert tests.correction_form.df == 1
    assert "1 of the 2 columns" in tests.correction_form.note
    assert np.isfinite(tests.correction_form.p_value)
    # A large origin does not make powers of a dummy look like news.
    far = Heckman([3], [0, 1]).fit(X, y).specification_tests(X, y)
    assert (tests.reset.df, far.reset.df) == (0, 0)


def test_dummies_lower_the_degrees_of_freedom_where_their_products_are_known():
    rng = np.random.default_rng(9)
    n = 1200
    X = np.column_stack([rng.random((n, 2)) < 0.5, rng.normal(size=n)]).astype(float)
    v = rng.normal(size=n)
    y = np.where(0.3 + X[:, :2] @ [0.5, 0.5] + v > 0, X[:, 2] + v + rng.normal(size=n), np.nan)
    tests = Heckman([2], [0, 1]).fit(X, y).specification_tests(X, y)
    # Four cells and three coefficients leave one thing to test.
    for name in ("normality_selection", "heteroskedasticity_selection"):
        assert tests[name].df == 1
        assert "1 of the 2 columns" in tests[name].note
    assert tests.normality_selection.statistic == pytest.approx(
        tests.heteroskedasticity_selection.statistic, rel=1e-7
    )


def test_a_model_without_prediction_features_has_no_reset(simulated):
    tests = Heckman([]).fit(simulated.X, simulated.y).specification_tests(simulated.X, simulated.y)
    assert tests.reset.df == 0
    assert np.isfinite(tests.correction_form.p_value)
    assert np.isfinite(tests.normality_prediction.p_value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"converged": False}, "did not converge"),
        ({"second_maximum": (0.0, 0.9)}, "a higher maximum elsewhere"),
        ({"information_is_positive": False}, "not positive"),
    ],
)
def test_a_likelihood_without_a_proper_maximum_is_said(
    change, words, model, simulated, monkeypatch
):
    fit = outcome_moments.fit_likelihood
    monkeypatch.setattr(
        outcome_moments, "fit_likelihood", lambda *args: dataclasses.replace(fit(*args), **change)
    )
    found = model.specification_tests(simulated.X, simulated.y).normality_prediction
    assert words in found.note
    assert np.isnan(found.statistic) == ("second_maximum" not in change)


def test_a_two_step_covariance_that_is_not_positive_is_said():
    """Outcomes that follow lambda without noise put rho outside (-1, 1)."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    u = -1 + 1.5 * X[:, 0]
    s = u + rng.normal(size=400) > 0
    ratio = stats.norm.pdf(u) / stats.norm.cdf(u)
    y = np.where(s, 3 * ratio + 0.5 * X[:, 1] + 1e-3 * rng.normal(size=400), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        tests = Heckman([1], [0]).fit(X, y).specification_tests(X, y)
    assert np.isnan(tests.correction_form.statistic)


# The report and the refusals. ----------------------------------------------------------------


def test_the_report_says_what_was_tested_and_what_it_means(tests):
    table = tests.tidy()
    columns = ["test", "equation", "statistic", "df", "p_value", "reference", "note"]
    assert list(table) == columns
    assert list(table["test"]) == NAMES
    assert list(table["equation"]) == ["selection"] * 2 + ["prediction"] * 3
    assert (table["note"] == "").all()
    np.testing.assert_allclose(
        table["p_value"], stats.chi2.sf(table["statistic"], table["df"]), rtol=1e-12
    )
    text = " ".join(str(tests).split())
    assert text.startswith("Specification tests")
    for word in ("not rejected", "does not reject proves nothing", "Bera, Jarque and Lee (1984)"):
        assert word in text
        assert word in tests._repr_html_()
    assert repr(tests) == str(tests)
    assert isinstance(tests, SpecificationTests)
    assert "chi2(2) = " in str(tests.reset)
    assert [one.name for one in tests] == NAMES
    with pytest.raises(InputError, match=r"'normality'.*normality_selection"):
        tests["normality"]


def test_sampling_weights_are_refused(simulated):
    X, y = simulated.X, simulated.y
    weight = np.linspace(1, 2, len(y))
    model = Heckman(PREDICTION, cov_type="robust", weight_kind="sampling")
    model.fit(X, y, sample_weight=weight)
    # Whether they are passed again or not.
    for again in (weight, None):
        with pytest.raises(InputError, match="sampling"):
            model.specification_tests(X, y, sample_weight=again)


def test_the_diagnostics_take_the_tests_in():
    mroz = load_mroz()
    X = mroz[["educ", "exper", "nwifeinc", "age", "kids5"]]
    model = Heckman(["educ", "exper"]).fit(X, mroz["lwage"])
    tests = model.specification_tests(X, mroz["lwage"])
    table = model.diagnostics(include=tests).to_frame().set_index("diagnostic")
    for one in tests:
        row = table.loc[str(one).split(":")[0]]
        assert row["verdict"] == ("caution" if one.p_value < 0.05 else "ok")
    assert (table["verdict"] == "caution").any()
    assert "Specification tests" in str(model.summary(include=tests))
