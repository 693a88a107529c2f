"""Strips of the bivariate normal against mpmath, Phi2, sums over classes and differences."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from heckmanfa.model import rectangles
from heckmanfa.model.bivariate_normal import Correlation, log_bivariate_cdf
from heckmanfa.model.rectangles import log_strip


def exact(low: float, high: float, u: float, t: float) -> float:
    """Log P(low < X <= high, Y <= u) from an integral in 30 digits."""
    with mp.workdps(30):
        rho = mp.tanh(mp.mpf(t))
        r = mp.sqrt(1 - rho**2)

        def slope(x: mp.mpf) -> mp.mpf:
            w = (u - rho * x) / r
            return abs(x + rho / r * mp.npdf(w) / mp.ncdf(w))

        points = {mp.mpf(low), mp.mpf(high)}
        for end, side in ((low, 1), (high, -1)):
            unit = side / (slope(mp.mpf(end)) + 1)
            points |= {end + k * unit for k in (1, 3, 6, 10, 15, 20, 30, 40)}
        points |= {u / rho + k * r for k in (-9, -3, -1, 0, 1, 3, 9)}
        inside = sorted(point for point in points if low <= point <= high)
        whole = mp.quad(lambda x: mp.npdf(x) * mp.ncdf((u - rho * x) / r), inside)
        return float(mp.log(whole))


def found(low, high, u, t):
    edges = (np.atleast_1d(np.asarray(each, dtype=float)) for each in (low, high, u))
    return log_strip(*edges, t)


@pytest.mark.parametrize("t", [-4.0, 0.3, 1.5])
def test_probabilities_match_mpmath_in_the_middle_and_far_out(t: float) -> None:
    points = [
        (-0.3, 0.4, 0.2),
        (1.0, 1.0 + 1e-6, -0.5),
        (4.0, 9.0, -1.0),
        (-1.0, 3.0, -9.0),
        (8.0, 8.5, 1.5),
    ]
    for low, high, u in points:
        expected = exact(low, high, u, t)
        value = found(low, high, u, t).value[0]
        assert abs(value - expected) <= 2e-11 + 1e-13 * abs(expected), (low, high, u)


def test_the_difference_and_the_integral_agree() -> None:
    rng = np.random.default_rng(2)
    low, width = rng.normal(size=400), rng.uniform(0.2, 3.0, 400)
    u = rng.normal(size=400)
    for t in (-2.0, -0.4, 0.0, 0.9, 3.0):
        rho = float(np.tanh(t))
        both = np.exp(log_bivariate_cdf(low + width, u, rho)) - np.exp(
            log_bivariate_cdf(low, u, rho)
        )
        value = np.exp(found(low, low + width, u, t).value)
        np.testing.assert_allclose(value, both, rtol=1e-9, atol=1e-14)


def test_neighbouring_strips_add_up() -> None:
    edges = np.array([-np.inf, -9.0, -2.0, -0.5, -0.499, 0.3, 4.0, 12.0, np.inf])
    for u in (-12.0, -1.0, 0.4, 7.0):
        for t in (-3.0, 0.2, 2.5):
            parts = found(edges[:-1], edges[1:], np.full(8, u), t).value
            total = np.logaddexp.reduce(parts)
            assert total == pytest.approx(stats.norm.logcdf(u), rel=1e-12, abs=1e-12)


def test_slopes_match_differences() -> None:
    rng = np.random.default_rng(4)
    low = np.concatenate([rng.normal(size=30), [6.5, -8.0, 2.0]])
    high = low + np.concatenate([rng.uniform(0.01, 2.0, 30), [1.0, 0.5, 0.001]])
    u, h = np.concatenate([rng.normal(size=30), [-1.0, 1.0, -4.0]]), 1e-5
    for t in (-1.2, 0.4, 2.0):
        strip = found(low, high, u, t)

        def slope(change, t=t):
            plus, minus = (
                found(
                    low + s * change[0], high + s * change[1], u + s * change[2], t + s * change[3]
                )
                for s in (h, -h)
            )
            return (plus.value - minus.value) / (2 * h)

        for number, change in (
            (strip.by_low, (1, 0, 0, 0)),
            (strip.by_high, (0, 1, 0, 0)),
            (strip.by_u, (0, 0, 1, 0)),
            (strip.at_high - strip.at_low, (0, 0, 0, 1)),
        ):
            # A threshold moves a narrow strip's logarithm a lot.
            np.testing.assert_allclose(number, slope(change), rtol=2e-4, atol=2e-5)


def test_a_class_at_an_end_is_a_quadrant() -> None:
    h, u, inf = np.array([-1.0, 0.5, 3.0]), np.array([0.2, -2.0, 1.0]), np.full(3, np.inf)
    below, above = found(-inf, h, u, 0.7), found(h, inf, u, 0.7)
    rho = float(np.tanh(0.7))
    np.testing.assert_allclose(below.value, log_bivariate_cdf(h, u, rho), rtol=1e-12)
    np.testing.assert_allclose(above.value, log_bivariate_cdf(-h, u, -rho), rtol=1e-12)
    assert not below.by_low.any()
    assert not above.by_high.any()
    assert np.all(below.by_high > 0)
    assert np.all(above.by_low < 0)


def test_few_rows_of_usual_classes_need_the_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    u, mean = rng.normal(0.5, 1.0, 4000), rng.normal(0.0, 1.2, 4000)
    integrated = []
    by_integral = rectangles._by_integral

    def counted(low, *others):
        integrated.append(len(low))
        return by_integral(low, *others)

    monkeypatch.setattr(rectangles, "_by_integral", counted)
    for t, most in ((0.5, 0.02), (1.25, 0.1), (2.0, 0.2), (-1.25, 0.2)):
        integrated.clear()
        value = found(mean - 1.1, mean + 0.3, u, t).value
        assert sum(integrated) < most * len(u), t
        # Where it was not taken, it says the same.
        with np.errstate(all="ignore"):
            exact = by_integral(mean - 1.1, mean + 0.3, u, Correlation.from_atanh(t)).value
        np.testing.assert_allclose(np.exp(value - exact), 1.0, atol=1e-11)
