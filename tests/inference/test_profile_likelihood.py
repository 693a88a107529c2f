"""The likelihood over rho: against a plain maximisation, and the estimates of the model."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, norm

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.errors import InputError
from heckmanfa.inference.profile_likelihood import profile_rho


@pytest.fixture(scope="module")
def wooldridge(case):
    return case("mroz_wooldridge")


@pytest.fixture(scope="module")
def greene(case):
    return case("mroz_greene")


@pytest.fixture(scope="module")
def model(wooldridge):
    return Heckman(wooldridge.prediction, wooldridge.selection, method="ml").fit(
        wooldridge.X, wooldridge.y
    )


@pytest.fixture(scope="module")
def profile(model, wooldridge):
    return profile_rho(model, wooldridge.X, wooldridge.y)


@pytest.fixture(scope="module")
def two_maxima(greene):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Heckman(greene.prediction, greene.selection, method="ml").fit(greene.X, greene.y)
    return model, profile_rho(model, greene.X, greene.y)


def plainly(data, rho, start=None):
    """Maximise the sum of log densities over all but rho, and return it with where that was."""
    s = data.y.notna().to_numpy()

    def design(names):
        columns = data.X[names].to_numpy()
        return np.column_stack(
            [np.ones(len(columns)), (columns - columns.mean(0)) / columns.std(0)]
        )

    z, x, y = design(data.selection), design(data.prediction)[s], data.y.to_numpy()[s]
    p = z.shape[1]

    def loss(theta):
        gamma, beta, sigma = theta[:p], theta[p:-1], np.exp(theta[-1])
        index, e = z @ gamma, (y - x @ beta) / sigma
        a = (index[s] + rho * e) / np.sqrt(1 - rho**2)
        # d log Phi
        ratio = np.exp(norm.logpdf(a) - norm.logcdf(a))
        other = np.exp(norm.logpdf(index[~s]) - norm.logcdf(-index[~s]))
        value = norm.logcdf(a).sum() + (norm.logpdf(e) - theta[-1]).sum()
        value += norm.logcdf(-index[~s]).sum()
        in_e = ratio * rho / np.sqrt(1 - rho**2) - e
        slope = np.concatenate(
            [
                z[s].T @ ratio / np.sqrt(1 - rho**2) - z[~s].T @ other,
                -x.T @ in_e / sigma,
                [-(e @ in_e) - len(e)],
            ]
        )
        return -value, -slope

    if start is None:
        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        start = np.concatenate([np.zeros(p), beta, [np.log(np.std(y - x @ beta))]])
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    return -found.fun, found.x


@pytest.mark.parametrize("name", ["mroz_wooldridge", "mroz_greene"])
def test_every_height_is_that_of_a_plain_maximisation(name, case, profile, two_maxima):
    found = profile if name == "mroz_wooldridge" else two_maxima[1]
    table = found.tidy()
    start = None
    for row in table.iloc[::6].itertuples():
        height, start = plainly(case(name), row.rho, start)
        assert row.log_likelihood == pytest.approx(height, abs=2e-5)


def test_the_maximum_is_the_estimate_of_maximum_likelihood(model, profile):
    assert profile.rho_hat == pytest.approx(model.rho_, abs=1e-9)
    assert profile.height == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert profile.maxima["rho"].tolist() == [profile.rho_hat]
    assert profile.maxima["reported"].tolist() == [True]
    assert profile.tidy()["deviance"].min() == 0.0
    assert profile.two_step == pytest.approx(0.0486, abs=1e-4)
    assert profile.findings() == []


def test_a_two_step_model_has_the_same_profile(wooldridge, profile):
    model = Heckman(wooldridge.prediction, wooldridge.selection).fit(wooldridge.X, wooldridge.y)
    same = profile_rho(model, wooldridge.X, wooldridge.y)
    np.testing.assert_allclose(same.log_likelihood, profile.log_likelihood, rtol=1e-10)
    assert same.two_step == pytest.approx(model.rho_, rel=1e-9)


def test_both_maxima_are_found_where_there_are_two(two_maxima):
    model, profile = two_maxima
    best, other = profile.maxima.itertuples(index=False)
    assert best.log_likelihood == pytest.approx(-1479.654, abs=1e-3)
    assert best.rho == pytest.approx(0.993, abs=1e-3)
    assert not best.reported
    assert other.log_likelihood == pytest.approx(-1581.2577, abs=1e-4)
    assert other.rho == pytest.approx(-0.132, abs=1e-3)
    assert other.reported
    assert profile.rho_hat == pytest.approx(model.rho_, abs=1e-8)
    assert profile.tidy()["deviance"].min() == 0.0
    low, high = profile.interval()
    assert low < best.rho < high
    (finding,) = profile.findings()
    assert finding.value == "2"


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_interval_ends_where_the_likelihood_ratio_test_rejects(wooldridge, profile, level):
    low, high = profile.interval(level)
    fall = chi2.ppf(level, 1) / 2
    for end, inside in ((low, -0.9), (high, 0.9)):
        reach = sorted([profile.rho_hat, inside])
        exact = brentq(
            lambda rho: plainly(wooldridge, rho)[0] - profile.height + fall, *reach, xtol=1e-5
        )
        assert end == pytest.approx(exact, abs=2e-4)


def test_the_slope_is_the_derivative_of_the_height(profile):
    t = np.arctanh(profile.rho)
    h = 1e-4
    inside = slice(5, -5)
    numeric = (profile.at(np.tanh(t + h)) - profile.at(np.tanh(t - h)))[inside] / (2 * h)
    np.testing.assert_allclose(profile.slope[inside], numeric, rtol=1e-2, atol=1e-2)


def test_the_curve_between_points_is_near_what_more_points_say(model, wooldridge, profile):
    fine = profile_rho(model, wooldridge.X, wooldridge.y, grid=np.linspace(-0.9, 0.9, 61))
    np.testing.assert_allclose(profile.at(fine.rho), fine.log_likelihood, atol=0.02)
    near = np.abs(fine.rho) < 0.4
    np.testing.assert_allclose(profile.at(fine.rho[near]), fine.log_likelihood[near], atol=1e-3)
    assert np.isnan(profile.at(0.9999))


def test_the_grid_is_looked_at_and_may_leave_the_maximum_out(model, wooldridge):
    grid = [0.3, 0.5, 0.4]
    found = profile_rho(model, wooldridge.X, wooldridge.y, grid=grid)
    assert set(np.round(found.rho, 12)) >= {0.3, 0.4, 0.5}
    assert found.rho_hat == pytest.approx(model.rho_, abs=1e-9)
    narrow = profile_rho(model, wooldridge.X, wooldridge.y, grid=[-0.02, 0.05])
    assert -1.0 < narrow.interval()[0] < narrow.interval()[1] < 1.0
    assert narrow.interval(1 - 1e-9) == (-1.0, 1.0)


def test_regions_are_apart_where_two_maxima_are_nearly_as_high(two_maxima):
    _, profile = two_maxima
    # The same curve, a hundredth as steep: both maxima are then inside, and a valley is not.
    flat = replace(
        profile,
        log_likelihood=profile.log_likelihood / 100,
        slope=profile.slope / 100,
        maxima=profile.maxima.assign(log_likelihood=profile.maxima["log_likelihood"] / 100),
    )
    depth = 2 * (flat.height - flat.at(0.08))
    level = float(chi2.cdf(depth - 0.001, 1))
    first, second = flat.regions(level)
    assert first[0] < -0.132 < first[1] < 0.08 < second[0] < 0.993 < second[1]
    assert flat.interval(level) == (first[0], second[1])


def test_a_likelihood_that_rises_to_the_edge_has_no_maximum():
    rng = np.random.default_rng(0)
    Z, u = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = np.where(Z.sum(axis=1) + u > 0, 1 + Z[:, 0] + u, np.nan)
    found = profile_rho(Heckman([0]).fit(Z, y), Z, y, grid=21)
    assert np.isnan(found.rho_hat)
    assert found.maxima.empty
    low, high = found.interval()
    assert 0.9 < low < high == 1.0
    assert "0.9980" in str(found)


def test_no_interval_where_a_likelihood_ratio_says_nothing(wooldridge):
    robust = Heckman(wooldridge.prediction, wooldridge.selection, cov_type="robust")
    searched = HeckmanBestSubset(rho_range=(-0.5, 0.5))
    weighted = Heckman(
        wooldridge.prediction, wooldridge.selection, cov_type="robust", weight_kind="sampling"
    )
    weight = np.linspace(0.5, 1.5, len(wooldridge.y))
    for model, weights, why in (
        (robust, None, "which cov_type='robust' does not"),
        (searched, None, "rho was conditioned on"),
        (weighted, weight, "sampling weights"),
    ):
        model.fit(wooldridge.X, wooldridge.y, sample_weight=weights)
        found = profile_rho(model, wooldridge.X, wooldridge.y, grid=9, sample_weight=weights)
        assert found.regions() == []
        assert np.isnan(found.interval()).all()
        assert why in found.no_interval


def test_what_cannot_be_profiled_is_refused(model, wooldridge):
    X, y = wooldridge.X, wooldridge.y
    for grid in (1, [0.2], [0.0, 1.0], [0.0, np.nan]):
        with pytest.raises(InputError, match="grid"):
            profile_rho(model, X, y, grid=grid)
    with pytest.raises(InputError, match="conf_level"):
        profile_rho(model, X, y, grid=3).interval(95)
