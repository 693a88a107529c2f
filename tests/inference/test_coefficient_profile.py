"""The likelihood over a coefficient: against a plain maximisation, and the model's estimates."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, norm

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.errors import (
    InputError,
    NotIdentifiedError,
    SecondMaximumWarning,
    UnknownFeatureError,
)
from heckmanfa.inference.profiler import Point, Profiler


@pytest.fixture(scope="module")
def data(case):
    return case("mroz_wooldridge")


@pytest.fixture(scope="module")
def model(data):
    return Heckman(data.prediction, data.selection, method="ml").fit(data.X, data.y)


@pytest.fixture(scope="module")
def profile(model, data):
    return model.profile(data.X, data.y, "educ", grid=9)


def plainly(data, place, value):
    """Maximise the sum of log densities with one coefficient held: BFGS, plain densities."""
    s = data.y.notna().to_numpy()
    Z, x = data.X[data.selection].to_numpy(), data.X[data.prediction].to_numpy()[s]
    Z = np.column_stack([np.ones(len(Z)), (Z - Z.mean(0)) / Z.std(0)])
    y = data.y.to_numpy()[s] - value * x[:, place]
    x = np.delete(x, place, axis=1)
    x = np.column_stack([np.ones(len(x)), (x - x.mean(0)) / x.std(0)])
    p = Z.shape[1]

    def loss(theta):
        gamma, beta = theta[:p], theta[p:-2]
        sigma, rho = np.exp(theta[-2]), np.tanh(theta[-1])
        index, e = Z @ gamma, (y - x @ beta) / sigma
        root = np.sqrt(1 - rho**2)
        a = (index[s] + rho * e) / root
        value = norm.logcdf(a).sum() + (norm.logpdf(e) - theta[-2]).sum()
        value += norm.logcdf(-index[~s]).sum()
        ratio = np.exp(norm.logpdf(a) - norm.logcdf(a))
        other = np.exp(norm.logpdf(index[~s]) - norm.logcdf(-index[~s]))
        in_e = ratio * rho / root - e
        slope = [
            Z[s].T @ ratio / root - Z[~s].T @ other,
            -x.T @ in_e / sigma,
            [-(e @ in_e) - len(e), ratio @ (rho * index[s] + e) / root],
        ]
        return -value, -np.concatenate(slope)

    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    start = np.concatenate([np.zeros(p), beta, [np.log(np.std(y - x @ beta)), 0.0]])
    return -minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6}).fun


def test_heights_are_those_of_a_plain_maximisation(data, profile):
    for row in profile.tidy().iloc[::7].itertuples():
        assert row.log_likelihood == pytest.approx(plainly(data, 0, row.value), abs=2e-5)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_interval_ends_where_the_likelihood_ratio_test_rejects(data, model, profile, level):
    fall = chi2.ppf(level, 1) / 2
    low, high = profile.interval(level)
    assert low < model.coef_[list(data.X).index("educ")] < high
    for end in (low, high):
        assert profile.height - plainly(data, 0, end) == pytest.approx(fall, abs=1e-4)
    # Whatever the grid, and whatever the level between.
    coarse = model.profile(data.X, data.y, "educ", grid=2)
    np.testing.assert_allclose(coarse.interval(level), (low, high), rtol=1e-6)
    assert profile.interval(0.97)[0] == pytest.approx(coarse.interval(0.97)[0], abs=1e-5)


def test_the_maximum_is_the_estimate_of_maximum_likelihood(model, profile, data):
    table = model.tidy().set_index(["equation", "term"])
    assert profile.estimate == pytest.approx(
        table.loc[("prediction", "educ"), "estimate"], abs=1e-9
    )
    assert profile.height == pytest.approx(model.log_likelihood_, abs=1e-7)
    assert profile.maxima["value"].tolist() == [profile.estimate]
    two_step = Heckman(data.prediction, data.selection).fit(data.X, data.y)
    assert profile.two_step == pytest.approx(two_step.tidy()["estimate"][1], rel=1e-9)
    same = two_step.profile(data.X, data.y, "educ", grid=9)
    np.testing.assert_allclose(same.interval(), profile.interval(), rtol=1e-8)
    assert profile.tidy()["deviance"].min() == 0.0
    h = 1e-5
    between = (profile.at(profile.value[2] + h) - profile.at(profile.value[2] - h)) / (2 * h)
    assert profile.slope[2] == pytest.approx(between, rel=1e-3)


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


def test_no_interval_where_a_likelihood_ratio_says_nothing(data):
    robust = Heckman(data.prediction, data.selection, cov_type="robust").fit(data.X, data.y)
    found = robust.profile(data.X, data.y, "educ", grid=3)
    assert np.isnan(found.interval()).all()


def test_what_cannot_be_profiled_is_refused(model, data):
    with pytest.raises(UnknownFeatureError, match=r"'edcu'.*'educ'"):
        model.profile(data.X, data.y, "edcu")
    with pytest.raises(UnknownFeatureError, match="'kids5'"):
        model.profile(data.X, data.y, "kids5")
    with pytest.raises(InputError, match="term is missing"):
        model.profile(data.X, data.y)
    for grid in (1, [0.2], [0.0, np.nan]):
        with pytest.raises(InputError, match="grid"):
            model.profile(data.X, data.y, "educ", grid=grid)


def test_a_likelihood_without_a_maximum_has_no_profile():
    rng = np.random.default_rng(0)
    Z, u = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = np.where(Z.sum(axis=1) + u > 0, 1 + Z[:, 0] + u, np.nan)
    model = Heckman([0]).fit(Z, y)
    with pytest.raises(NotIdentifiedError, match="rho runs to -1 or 1"):
        model.profile(Z, y, 0, grid=5)


def test_it_is_drawn_and_goes_into_the_summary(model, profile):
    pytest.importorskip("matplotlib")
    panel = profile.plot()
    assert panel.get_xlabel() == "coefficient of educ"
    (shade,) = panel.patches
    ends = shade.get_extents().transformed(panel.transData.inverted()).intervalx
    np.testing.assert_allclose(ends, profile.interval())


def test_the_end_of_an_interval_is_a_root(profile):
    level = profile.height - chi2.ppf(0.95, 1) / 2
    root = brentq(lambda value: profile.at(value) - level, profile.value[0], profile.estimate)
    assert root == pytest.approx(profile.interval()[0], rel=1e-7)


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


def test_values_that_almost_coincide_are_one_point_of_the_curve(model, data, profile):
    spread = np.ptp(profile.value)
    close = profile.estimate + spread * np.array([-0.1, 1e-7, 1e-6, 0.1])
    found = model.profile(data.X, data.y, "educ", grid=close)
    assert np.diff(found.value).min() > 1e-5 * np.ptp(found.value)
    assert close[0] in found.value
    assert close[1] not in found.value
