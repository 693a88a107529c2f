"""The bivariate normal distribution function against closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from heckmanfa.model.bivariate_normal import (
    bivariate_cdf,
    log_bivariate_cdf,
    log_cdf_and_slopes,
)


@pytest.mark.parametrize("rho", [-1.0, -1 + 1e-10, -0.7, -1e-9, 0.0, 0.3, 1 - 1e-10, 1.0])
def test_at_zero_the_arcsine_formula_holds(rho: float) -> None:
    # acos(-rho) / 2 pi, written without cancellation near rho = -1
    expected = np.arctan2(np.sqrt((1 - rho) * (1 + rho)), -rho) / (2 * np.pi)
    assert bivariate_cdf(0.0, 0.0, rho) == pytest.approx(expected, rel=1e-14, abs=0)


def test_four_quadrants_sum_to_one() -> None:
    rng = np.random.default_rng(1)
    h, k = rng.normal(scale=2, size=(2, 500))
    rho = np.tanh(rng.normal(scale=3, size=500))
    total = sum(bivariate_cdf(a * h, b * k, a * b * rho) for a in (-1.0, 1.0) for b in (-1.0, 1.0))
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=5e-15)


def test_infinite_and_missing_arguments_have_their_limits() -> None:
    inf, nan = np.inf, np.nan
    h = np.array([inf, inf, -inf, 1.0, nan, 1.0, 1.0])
    k = np.array([inf, -1.0, inf, -inf, 1.0, 1.0, 1.0])
    rho = np.array([0.5, -0.5, 0.5, 0.9, 0.1, nan, 1.5])
    expected = [1.0, special.ndtr(-1.0), 0.0, 0.0, nan, nan, nan]
    np.testing.assert_array_equal(bivariate_cdf(h, k, rho), expected)


def test_slopes_match_differences() -> None:
    rng = np.random.default_rng(2)
    h, k = rng.normal(scale=2, size=(2, 200))
    sign = rng.choice([-1.0, 1.0], size=200)
    t, step = 0.8, 1e-5
    value, *slopes = log_cdf_and_slopes(h, k, t, sign)
    np.testing.assert_allclose(value, log_bivariate_cdf(h, k, sign * np.tanh(t)), rtol=1e-12)
    for position, slope in enumerate(slopes):
        ends = []
        for move in (step, -step):
            at = [h, k, t]
            at[position] = at[position] + move
            ends.append(log_cdf_and_slopes(*at, sign)[0])
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-7, atol=1e-8)
