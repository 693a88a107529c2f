"""The likelihood over rho or a coefficient: against plain maximisations, and the estimates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, norm

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanProbit
from heckmanfa.errors import (
    InputError,
    NotIdentifiedError,
    SecondMaximumWarning,
    UnknownFeatureError,
)
from heckmanfa.inference import profile_rho
from heckmanfa.inference.profiler import Point, Profiler


@pytest.fixture(scope="module")
def data(case):
    return case("mroz_wooldridge")


@pytest.fixture(scope="module")
def model(data):
    return Heckman(data.prediction, data.selection, method="ml").fit(data.X, data.y)


@pytest.fixture(scope="module")
def over_rho(model, data):
    return profile_rho(model, data.X, data.y)


@pytest.fixture(scope="module")
def over_educ(model, data):
    return model.profile(data.X, data.y, "educ", grid=9)


@pytest.fixture(scope="module")
def two_maxima(case):
    greene = case("mroz_greene")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Heckman(greene.prediction, greene.selection, method="ml").fit(greene.X, greene.y)
    return model, profile_rho(model, greene.X, greene.y)


@pytest.fixture(scope="module")
def rising():
    """Data whose likelihood rises to rho = 1."""
    rng = np.random.default_rng(0)
    Z, u = rng.normal(size=(400, 2)), rng.normal(size=400)
    return Z, np.where(Z.sum(axis=1) + u > 0, 1 + Z[:, 0] + u, np.nan)


def plainly(data, *, rho=None, educ=None, start=None):
    """Maximise the sum of log densities with rho or a coefficient held; also return where.

    By BFGS, with plain densities; educ is the first prediction feature.
    """
    s = data.y.notna().to_numpy()
    x, y = data.X[data.prediction].to_numpy()[s], data.y.to_numpy()[s]
    if educ is not None:
        y, x = y - educ * x[:, 0], x[:, 1:]

    def design(columns):
        standard = (columns - columns.mean(0)) / columns.std(0)
        return np.column_stack([np.ones(len(columns)), standard])

    z, x = design(data.X[data.selection].to_numpy()), design(x)
    p, free = z.shape[1], -1 if rho is not None else None

    def loss(theta):
        if rho is not None:
            theta = np.append(theta, np.arctanh(rho))
        gamma, beta = theta[:p], theta[p:-2]
        sigma, r = np.exp(theta[-2]), np.tanh(theta[-1])
        index, e = z @ gamma, (y - x @ beta) / sigma
        root = np.sqrt(1 - r**2)
        a = (index[s] + r * e) / root
        value = norm.logcdf(a).sum() + (norm.logpdf(e) - theta[-2]).sum()
        value += norm.logcdf(-index[~s]).sum()
        # d log Phi
        ratio = np.exp(norm.logpdf(a) - norm.logcdf(a))
        other = np.exp(norm.logpdf(index[~s]) - norm.logcdf(-index[~s]))
        in_e = ratio * r / root - e
        slope = [
            z[s].T @ ratio / root - z[~s].T @ other,
            -x.T @ in_e / sigma,
            [-(e @ in_e) - len(e), ratio @ (r * index[s] + e) / root],
        ]
        return -value, -np.concatenate(slope)[:free]

    if start is None:
        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        start = np.concatenate([np.zeros(p), beta, [np.log(np.std(y - x @ beta)), 0.0]])[:free]
    optimum = minimize(
        loss, start, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000}
    )
    return -optimum.fun, optimum.x


# Over rho. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mroz_wooldridge", "mroz_greene"])
def test_every_height_over_rho_is_that_of_a_plain_maximisation(name, case, over_rho, two_maxima):
    found = over_rho if name == "mroz_wooldridge" else two_maxima[1]
    table = found.tidy()
    start = None
    for row in table.iloc[::6].itertuples():
        height, start = plainly(case(name), rho=row.rho, start=start)
        assert row.log_likelihood == pytest.approx(height, abs=2e-5)


def test_the_maximum_is_the_estimate_of_maximum_likelihood(model, over_rho):
    assert over_rho.rho_hat == pytest.approx(model.rho_, abs=1e-9)
    assert over_rho.height == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert over_rho.maxima["rho"].tolist() == [over_rho.rho_hat]
    assert over_rho.maxima["reported"].tolist() == [True]
    assert over_rho.tidy()["deviance"].min() == 0.0
    assert over_rho.two_step == pytest.approx(0.0486, abs=1e-4)
    assert over_rho.findings() == []


def test_a_two_step_model_has_the_same_profile(data, over_rho):
    model = Heckman(data.prediction, data.selection).fit(data.X, data.y)
    same = profile_rho(model, data.X, data.y)
    np.testing.assert_allclose(same.log_likelihood, over_rho.log_likelihood, rtol=1e-10)
    assert same.two_step == pytest.approx(model.rho_, rel=1e-9)


def test_both_maxima_are_found_where_there_are_two(two_maxima):
    model, over_rho = two_maxima
    best, other = over_rho.maxima.itertuples(index=False)
    assert best.log_likelihood == pytest.approx(-1479.654, abs=1e-3)
    assert best.rho == pytest.approx(0.993, abs=1e-3)
    assert not best.reported
    assert other.log_likelihood == pytest.approx(-1581.2577, abs=1e-4)
    assert other.rho == pytest.approx(-0.132, abs=1e-3)
    assert other.reported
    assert over_rho.rho_hat == pytest.approx(model.rho_, abs=1e-8)
    assert over_rho.tidy()["deviance"].min() == 0.0
    low, high = over_rho.interval()
    assert low < best.rho < high
    (finding,) = over_rho.findings()
    assert finding.value == "2"


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_interval_ends_where_the_likelihood_ratio_test_rejects(data, over_rho, level):
    low, high = over_rho.interval(level)
    fall = chi2.ppf(level, 1) / 2
    for end, inside in ((low, -0.9), (high, 0.9)):
        reach = sorted([over_rho.rho_hat, inside])
        exact = brentq(
            lambda rho: plainly(data, rho=rho)[0] - over_rho.height + fall, *reach, xtol=1e-5
        )
        assert end == pytest.approx(exact, abs=2e-4)


def test_the_slope_is_the_derivative_of_the_height(over_rho):
    t = np.arctanh(over_rho.rho)
    h = 1e-4
    inside = slice(5, -5)
    numeric = (over_rho.at(np.tanh(t + h)) - over_rho.at(np.tanh(t - h)))[inside] / (2 * h)
    np.testing.assert_allclose(over_rho.slope[inside], numeric, rtol=1e-2, atol=1e-2)


def test_the_curve_between_points_is_near_what_more_points_say(model, data, over_rho):
    fine = profile_rho(model, data.X, data.y, grid=np.linspace(-0.9, 0.9, 61))
    np.testing.assert_allclose(over_rho.at(fine.rho), fine.log_likelihood, atol=0.02)
    near = np.abs(fine.rho) < 0.4
    np.testing.assert_allclose(over_rho.at(fine.rho[near]), fine.log_likelihood[near], atol=1e-3)
    assert np.isnan(over_rho.at(0.9999))


def test_the_grid_is_looked_at_and_may_leave_the_maximum_out(model, data):
    grid = [0.3, 0.5, 0.4]
    found = profile_rho(model, data.X, data.y, grid=grid)
    assert set(np.round(found.rho, 12)) >= {0.3, 0.4, 0.5}
    assert found.rho_hat == pytest.approx(model.rho_, abs=1e-9)
    narrow = profile_rho(model, data.X, data.y, grid=[-0.02, 0.05])
    assert -1.0 < narrow.interval()[0] < narrow.interval()[1] < 1.0
    assert narrow.interval(1 - 1e-9) == (-1.0, 1.0)


def test_regions_are_apart_where_two_maxima_are_nearly_as_high(two_maxima):
    _, over_rho = two_maxima
    # The same curve, a hundredth as steep: both maxima are then inside, and a valley is not.
    flat = replace(
        over_rho,
        log_likelihood=over_rho.log_likelihood / 100,
        slope=over_rho.slope / 100,
        maxima=over_rho.maxima.assign(log_likelihood=over_rho.maxima["log_likelihood"] / 100),
    )
    depth = 2 * (flat.height - flat.at(0.08))
    level = float(chi2.cdf(depth - 0.001, 1))
    first, second = flat.regions(level)
    assert first[0] < -0.132 < first[1] < 0.08 < second[0] < 0.993 < second[1]
    assert flat.interval(level) == (first[0], second[1])


def test_a_likelihood_that_rises_to_the_edge_has_no_maximum_and_no_profile(rising):
    model = Heckman([0]).fit(*rising)
    found = profile_rho(model, *rising, grid=21)
    assert np.isnan(found.rho_hat)
    assert found.maxima.empty
    low, high = found.interval()
    assert 0.9 < low < high == 1.0
    assert "0.9980" in str(found)
    with pytest.raises(NotIdentifiedError, match="rho runs to -1 or 1"):
        model.profile(*rising, 0, grid=5)


def test_no_interval_where_a_likelihood_ratio_says_nothing(data):
    robust = Heckman(data.prediction, data.selection, cov_type="robust")
    searched = HeckmanBestSubset(rho_range=(-0.5, 0.5))
    weighted = Heckman(data.prediction, data.selection, cov_type="robust", weight_kind="sampling")
    weight = np.linspace(0.5, 1.5, len(data.y))
    for model, weights, why in (
        (robust, None, "which cov_type='robust' does not"),
        (searched, None, "rho was conditioned on"),
        (weighted, weight, "sampling weights"),
    ):
        model.fit(data.X, data.y, sample_weight=weights)
        found = profile_rho(model, data.X, data.y, grid=9, sample_weight=weights)
        assert found.regions() == []
        assert np.isnan(found.interval()).all()
        assert why in found.no_interval
    coefficient = robust.profile(data.X, data.y, "educ", grid=3)
    assert np.isnan(coefficient.interval()).all()


def test_what_cannot_be_profiled_is_refused(model, data):
    X, y = data.X, data.y
    for grid in (1, [0.2], [0.0, 1.0], [0.0, np.nan]):
        with pytest.raises(InputError, match="grid"):
            profile_rho(model, X, y, grid=grid)
    with pytest.raises(InputError, match="conf_level"):
        profile_rho(model, X, y, grid=3).interval(95)


# Over a coefficient. ---------------------------------------------------------------------------


def test_heights_are_those_of_a_plain_maximisation(data, over_educ):
    for row in over_educ.tidy().iloc[::7].itertuples():
        assert row.log_likelihood == pytest.approx(plainly(data, educ=row.value)[0], abs=2e-5)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_a_coefficients_interval_ends_where_the_ratio_test_rejects(data, model, over_educ, level):
    fall = chi2.ppf(level, 1) / 2
    low, high = over_educ.interval(level)
    assert low < model.coef_[list(data.X).index("educ")] < high
    for end in (low, high):
        assert over_educ.height - plainly(data, educ=end)[0] == pytest.approx(fall, abs=1e-4)
    # Whatever the grid, and whatever the level between.
    coarse = model.profile(data.X, data.y, "educ", grid=2)
    np.testing.assert_allclose(coarse.interval(level), (low, high), rtol=1e-6)
    assert over_educ.interval(0.97)[0] == pytest.approx(coarse.interval(0.97)[0], abs=1e-5)


def test_the_maximum_over_a_coefficient_is_its_estimate(model, over_educ, data):
    table = model.tidy().set_index(["equation", "term"])
    assert over_educ.estimate == pytest.approx(
        table.loc[("prediction", "educ"), "estimate"], abs=1e-9
    )
    assert over_educ.height == pytest.approx(model.log_likelihood_, abs=1e-7)
    assert over_educ.maxima["value"].tolist() == [over_educ.estimate]
    two_step = Heckman(data.prediction, data.selection).fit(data.X, data.y)
    assert over_educ.two_step == pytest.approx(two_step.tidy()["estimate"][1], rel=1e-9)
    same = two_step.profile(data.X, data.y, "educ", grid=9)
    np.testing.assert_allclose(same.interval(), over_educ.interval(), rtol=1e-8)
    assert over_educ.tidy()["deviance"].min() == 0.0
    h = 1e-5
    between = (over_educ.at(over_educ.value[2] + h) - over_educ.at(over_educ.value[2] - h)) / (
        2 * h
    )
    assert over_educ.slope[2] == pytest.approx(between, rel=1e-3)


def test_the_intercept_and_units(model, data):
    found = model.profile(data.X, data.y, "Intercept", grid=3)
    assert found.estimate == pytest.approx(model.intercept_, abs=1e-8)
    low, high = found.interval()
    moved = data.X.assign(educ=data.X["educ"] * 100 + 7)
    other = Heckman(data.prediction, data.selection, method="ml").fit(moved, data.y + 5)
    slope = other.profile(moved, data.y + 5, "educ", grid=3)
    exact = model.profile(data.X, data.y, "educ", grid=3)
    np.testing.assert_allclose(np.multiply(slope.interval(), 100), exact.interval(), rtol=1e-5)
    # An intercept far away is held as well.
    shifted = Heckman(data.prediction, data.selection, method="ml").fit(data.X, data.y + 1000)
    ends = shifted.profile(data.X, data.y + 1000, "Intercept", grid=3).interval()
    np.testing.assert_allclose(np.subtract(ends, 1000), (low, high), atol=1e-5)


def test_a_likelihood_that_is_no_parabola_has_an_uneven_interval():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    v, h = rng.normal(size=(2, 400))
    y = np.where(X @ [0.8, 0.05] + v > 0, 1 + X[:, 0] + 0.5 * v + h, np.nan)
    with pytest.warns(SecondMaximumWarning):
        model = Heckman([0], method="ml").fit(X, y)
    found = model.profile(X, y, 0)
    low, high = found.interval()
    estimate, error = model.tidy().loc[1, ["estimate", "std_error"]]
    assert found.estimate == pytest.approx(estimate, abs=1e-7)
    assert abs((high - estimate) - (estimate - low)) > 0.3 * error


def test_what_is_not_a_coefficient_is_refused(model, data):
    with pytest.raises(UnknownFeatureError, match=r"'edcu'.*'educ'"):
        model.profile(data.X, data.y, "edcu")
    with pytest.raises(UnknownFeatureError, match="'kids5'"):
        model.profile(data.X, data.y, "kids5")
    with pytest.raises(InputError, match="term is missing"):
        model.profile(data.X, data.y)
    for grid in (1, [0.2], [0.0, np.nan]):
        with pytest.raises(InputError, match="grid"):
            model.profile(data.X, data.y, "educ", grid=grid)


def test_a_coefficients_profile_is_drawn(over_educ):
    pytest.importorskip("matplotlib")
    panel = over_educ.plot()
    assert panel.get_xlabel() == "coefficient of educ"
    (shade,) = panel.collections
    np.testing.assert_allclose(shade.get_paths()[0].get_extents().intervalx, over_educ.interval())


def test_the_end_of_an_interval_is_a_root(over_educ):
    level = over_educ.height - chi2.ppf(0.95, 1) / 2
    root = brentq(lambda value: over_educ.at(value) - level, over_educ.value[0], over_educ.estimate)
    assert root == pytest.approx(over_educ.interval()[0], rel=1e-7)


@pytest.mark.study
def test_a_profile_of_two_classes_goes_on_where_rho_is_one():
    """A higher maximum lies at |rho| = 1; on the way there, iterations end and do not converge."""
    rng = np.random.default_rng(3)
    X, u = np.round(rng.normal(size=(500, 4)), 3), rng.normal(size=500)
    e = 0.6 * u + 0.8 * rng.normal(size=500)
    y = np.where(X @ [0.8, 0.5, 0.0, 0.4] + u > -0.3, X @ [0.7, 0, -0.6, 0] + e > -0.2, np.nan)
    with pytest.warns(SecondMaximumWarning):
        model = HeckmanProbit([0, 1]).fit(X, y)
    found = model.profile(X, y, term=1, grid=5)
    assert np.isfinite(found.tidy()["log_likelihood"]).all()
    assert found.maxima["reported"].tolist() == [False, True]
    assert found.maxima["log_likelihood"][0] == pytest.approx(model.fit_.second_maximum[0])
    assert np.isfinite(found.interval()).all()


class Curve(Profiler):
    """A profile whose heights and slopes are given; NaN where nothing converges."""

    def __init__(self, height, slope, reach):
        for name, value in (("height", height), ("slope", slope), ("given", reach)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "asked", [])

    def held(self, value, near):
        self.asked.append(value)
        return Point(value, self.height(value), self.slope(value), None)

    def reach(self, peak, fall):
        return self.given * np.sqrt(fall)


PEAK = Point(0.0, 0.0, 0.0, None)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("reach", [0.1, 2.0**0.5, 30.0])
def test_an_end_is_found_from_too_near_and_too_far(side, reach):
    curve = Curve(lambda x: -(x**2) / 2 - x**4, lambda x: -x - 4 * x**3, reach)
    *_, last = curve.end(PEAK, -2.0, side)
    expected = brentq(lambda x: x**2 / 2 + x**4 - 2.0, 0.0, 5.0)
    assert last.value == pytest.approx(side * expected, rel=1e-6)
    assert len(curve.asked) < 15


def test_an_end_is_found_beside_values_where_nothing_converges():
    def height(x):
        return -(x**2) / 2 if abs(x) < 2.5 else np.nan

    curve = Curve(height, lambda x: -x, 40.0)
    *_, last = curve.end(PEAK, -2.0, 1.0)
    assert last.value == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("above", [0, 1])
def test_a_search_for_an_end_stops_where_no_number_is_left_between_two(above):
    # The profile jumps over the level between two neighbours: zero and the smallest number, whose
    # mean is rounded down, or that number and the next, whose mean is rounded up.
    smallest = np.nextafter(0.0, 1.0)
    curve = Curve(lambda x: -0.5 if x <= above * smallest else -5.0, lambda x: 0.0, smallest)
    asked = [point.value for point in curve.end(PEAK, -1.0, 1.0)]
    assert asked == [smallest, 2 * smallest][: 1 + above]


def test_values_that_almost_coincide_are_one_point_of_the_curve(model, data, over_educ):
    spread = np.ptp(over_educ.value)
    close = over_educ.estimate + spread * np.array([-0.1, 1e-7, 1e-6, 0.1])
    found = model.profile(data.X, data.y, "educ", grid=close)
    assert np.diff(found.value).min() > 1e-5 * np.ptp(found.value)
    assert close[0] in found.value
    assert close[1] not in found.value
