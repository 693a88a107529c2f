"""The bivariate normal distribution function against mpmath, closed forms and its symmetries."""

from __future__ import annotations

from pathlib import Path

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy import special

from heckmanfa.model.bivariate_normal import log_bivariate_cdf, log_cdf_and_slopes

ORACLES = Path(__file__).parents[1] / "oracles"
SMALLEST = np.log(1e-300)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Thousands of points with log Phi2 to 25 digits; tests/oracles/README.md says from where."""
    return pd.read_csv(ORACLES / "bivariate_normal.csv.gz", dtype=str).astype(float)


def bivariate_cdf(h, k, rho):
    return np.exp(log_bivariate_cdf(h, k, rho))


def random_points(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    h, k = rng.normal(size=(2, size)) * rng.choice([0.1, 1.0, 3.0, 12.0], size)
    return h, k, np.tanh(rng.normal(scale=4, size=size))


def test_logarithms_match_mpmath_with_one_correlation_per_row(table: pd.DataFrame) -> None:
    found = log_bivariate_cdf(table["h"], table["k"], table["rho"])
    size = -table["log_cdf"]
    # Where Phi2 > 1e-300, an error of the logarithm is a relative error of Phi2. Beyond, and close
    # to one, the logarithm has a relative error. The table has 70 digits of Phi2.
    allowed = 1e-12 * np.maximum(np.minimum(size, 1.0), size / -SMALLEST) + 1e-69
    assert len(table) > 2000
    assert np.all(np.abs(found - table["log_cdf"]) <= allowed)


def test_values_match_mpmath_with_a_common_correlation(table: pd.DataFrame) -> None:
    rows = table[(table["log_cdf"] > SMALLEST) & (table["h"].abs() < 8)].iloc[::4]
    assert len(rows) > 300
    found = [bivariate_cdf(*point) for point in zip(rows["h"], rows["k"], rows["rho"], strict=True)]
    np.testing.assert_allclose(found, np.exp(rows["log_cdf"]), rtol=1e-12, atol=0)
    logs = [
        log_bivariate_cdf(*point) for point in zip(rows["h"], rows["k"], rows["rho"], strict=True)
    ]
    np.testing.assert_allclose(logs, rows["log_cdf"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.8, 0.95, 0.999])
def test_the_fast_rule_agrees_with_the_sums_of_positive_terms(rho: float) -> None:
    rng = np.random.default_rng(3)
    h, k = rng.uniform(-6.5, 6.5, size=(2, 2000))
    for correlation in (rho, -rho):
        by_row = log_bivariate_cdf(h, k, np.full(h.shape, correlation))
        positive = by_row > SMALLEST
        np.testing.assert_allclose(
            bivariate_cdf(h, k, correlation)[positive], np.exp(by_row[positive]), rtol=1e-12
        )


@pytest.mark.parametrize(("h", "k", "rho"), [(-1.3, 0.4, -0.9), (-9.0, -7.5, 0.6)])
def test_values_match_an_integral_that_is_taken_now(h: float, k: float, rho: float) -> None:
    with mp.workdps(30):
        scale = mp.sqrt(1 - mp.mpf(rho) ** 2)
        expected = mp.quad(
            lambda x: mp.npdf(x) * mp.ncdf((h - rho * x) / scale),
            [k - 12, k - 6, k - 3, k - 1, k - mp.mpf(1) / 4, k],
        )
        for one in (rho, np.array([rho])):
            found = float(np.ravel(bivariate_cdf(h, k, one))[0])
            assert abs(found / expected - 1) < 1e-13


def test_slopes_match_differences_in_many_digits() -> None:
    table = pd.read_csv(ORACLES / "bivariate_normal_slopes.csv", dtype=str).astype(float)
    for t, rows in table.groupby("t"):
        h, k = rows["h"].to_numpy(), rows["k"].to_numpy()
        for sign in (1.0, -1.0):
            value, d_h, d_k, d_t = log_cdf_and_slopes(h, k, sign * t, np.full(h.shape, sign))
            np.testing.assert_allclose(value, rows["log_cdf"], rtol=1e-14, atol=1e-13)
            allowed = 1e-13 + 1e-15 * np.abs(value)
            for found, name in ((d_h, "d_h"), (d_k, "d_k"), (sign * d_t, "d_t")):
                expected = rows[name].to_numpy()
                # Differences cannot see a slope below 1e-20.
                assert np.all(np.abs(found - expected) <= allowed * expected + 1e-20), (t, name)


@pytest.mark.parametrize("rho", [-1.0, -1 + 1e-10, -0.7, -1e-9, 0.0, 0.3, 1 - 1e-10, 1.0])
def test_at_zero_the_arcsine_formula_holds(rho: float) -> None:
    # acos(-rho) / 2 pi, written without cancellation near rho = -1
    expected = np.arctan2(np.sqrt((1 - rho) * (1 + rho)), -rho) / (2 * np.pi)
    assert bivariate_cdf(0.0, 0.0, rho) == pytest.approx(expected, rel=1e-14, abs=0)
    assert bivariate_cdf(0.0, 0.0, [rho])[0] == pytest.approx(expected, rel=1e-14, abs=0)


def test_exact_correlations_have_closed_forms() -> None:
    h = np.array([-30.0, -1.0, 0.5, -5.0, 2.0])
    k = np.array([-31.0, 3.0, 0.2, 5.0000001, 1.0])
    np.testing.assert_allclose(bivariate_cdf(h, k, 1.0), special.ndtr(np.minimum(h, k)), rtol=2e-13)
    np.testing.assert_allclose(
        bivariate_cdf(h, k, 0.0), special.ndtr(h) * special.ndtr(k), rtol=1e-12
    )
    with mp.workdps(40):
        bands = [max(mp.ncdf(a) - mp.ncdf(-mp.mpf(b)), 0) for a, b in zip(h, k, strict=True)]
    np.testing.assert_allclose(bivariate_cdf(h, k, -1.0), [float(b) for b in bands], rtol=1e-14)


def test_arguments_can_be_exchanged_and_quadrants_sum_to_one() -> None:
    h, k, rho = random_points(1000)
    np.testing.assert_allclose(
        log_bivariate_cdf(h, k, rho), log_bivariate_cdf(k, h, rho), rtol=1e-13, atol=1e-15
    )
    total = sum(bivariate_cdf(a * h, b * k, a * b * rho) for a in (-1.0, 1.0) for b in (-1.0, 1.0))
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=5e-15)


def test_it_increases_in_every_argument() -> None:
    h, k, rho = random_points(1000)
    value = log_bivariate_cdf(h, k, rho)
    slack = 1e-13 * (1 - value)
    assert np.all(log_bivariate_cdf(h + 0.01, k, rho) >= value - slack)
    assert np.all(log_bivariate_cdf(h, k + 0.01, rho) >= value - slack)
    assert np.all(log_bivariate_cdf(h, k, rho + 0.01 * (1 - rho)) >= value - slack)


def test_infinite_huge_and_missing_arguments_have_their_limits() -> None:
    inf, nan = np.inf, np.nan
    h = np.array([inf, inf, -inf, 1.0, -1e200, nan, 1.0, 1.0])
    k = np.array([inf, -1.0, inf, -inf, 1e200, 1.0, 1.0, 1.0])
    rho = np.array([0.5, -0.5, 0.5, 0.9, -0.5, 0.1, nan, 1.5])
    expected = [1.0, special.ndtr(-1.0), 0.0, 0.0, 0.0, nan, nan, nan]
    np.testing.assert_array_equal(bivariate_cdf(h, k, rho), expected)
    one_by_one = [bivariate_cdf(*point) for point in zip(h, k, rho, strict=True)]
    np.testing.assert_array_equal(one_by_one, expected)


def test_arguments_broadcast_and_a_scalar_comes_back_for_scalars() -> None:
    grid = log_bivariate_cdf(np.zeros((3, 1)), np.arange(2), 0.5)
    assert grid.shape == (3, 2)
    assert np.ndim(bivariate_cdf(0, 0, 0.5)) == 0
    assert bivariate_cdf([], [], 0.5).shape == (0,)


def test_torch_gives_the_same_digits() -> None:
    torch = pytest.importorskip("torch")
    h, k, rho = random_points(400)
    # |rho| below 0.999 and above it: both methods
    for given in (rho, 0.6, -0.6, 0.9999):
        expected = log_bivariate_cdf(h, k, given)
        correlation = torch.tensor(given) if np.ndim(given) else given
        found = log_bivariate_cdf(torch.tensor(h), torch.tensor(k), correlation)
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13, atol=1e-13)
    sign = np.where(rho > 0, 1.0, -1.0)
    expected = log_cdf_and_slopes(h, k, 0.8, sign)
    found = log_cdf_and_slopes(torch.tensor(h), torch.tensor(k), 0.8, torch.tensor(sign))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-12, atol=1e-13)
