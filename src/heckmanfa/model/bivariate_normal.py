"""The bivariate normal distribution function, its logarithm and its slopes.

With r = tanh y, Plackett's (1954) identity dPhi2 / dr = phi2 becomes

Phi2(h, k; tanh t) = Phi(h) Phi(k)
    + int_0^t exp(-(h + k)^2 (1 + e^(-2y)) / 8 - (h - k)^2 (1 + e^(2y)) / 8) / (2 pi cosh y) dy.

Drezner and Wesolowsky (1990) and Genz (2004) integrate the same derivative by Gauss-Legendre
quadrature, over r or over arcsin r. In y the exponent is linear in (h + k)^2 and (h - k)^2, so a
block of rows costs one matrix product with two columns and one exponential per node, and the
integrand stays smooth as r approaches 1. Genz's method promises an absolute error of 1e-15. A
likelihood takes logarithms, so it needs a small relative error, also where Phi2 is 1e-300.
Therefore the rule is used where its relative error is below 1e-12: arguments up to 6, |rho| up to
0.999, and not where a negative integral leaves little of Phi(h) Phi(k). `bivariate_tails` does the
rest with sums of positive terms, a few times slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.data.arrays import Array, Floats, erfc, is_tensor, like, log_ndtr, namespace
from heckmanfa.model.bivariate_tails import LOG_2PI, edges, log_cdf

_SQRT_HALF = 0.5**0.5
_CENTRE = 6.0
"""The largest argument of the fast rule"""
_LARGEST_T = 3.8
"""The largest |atanh rho| of the fast rule"""
_KEPT = 0.02
"""The smallest part of Phi(h) Phi(k) that a negative integral may leave"""
_BOUND_OF_T = 300.0  # 1 - rho^2 = 1e-260
_ROWS = 2048  # a block with its exponentials stays in the processor's cache
_ROWS_ON_GPU = 1 << 18


class Correlation(NamedTuple):
    """One correlation for all rows, up to the sign."""

    t: float
    """|atanh rho|, at most 300 (infinite if rho is 1)"""
    sign: float
    rest: float
    """1 - |rho|, without cancellation"""

    @property
    def scale(self) -> float:
        """Square root of 1 - rho^2."""
        return math.sqrt(self.rest * (2.0 - self.rest))

    @classmethod
    def from_atanh(cls, t: float) -> Correlation:
        """Take atanh rho, which tells correlations apart however close they are to 1."""
        size = min(abs(float(t)), _BOUND_OF_T)
        return cls(size, -1.0 if t < 0.0 else 1.0, 2.0 / (math.exp(2.0 * size) + 1.0))

    @classmethod
    def from_rho(cls, rho: float) -> Correlation:
        """Take rho; beyond 1 nothing is known."""
        size = abs(rho)
        t = math.atanh(size) if size < 1.0 else math.inf
        rest = 1.0 - size if size <= 1.0 else math.nan
        return cls(t, -1.0 if rho < 0.0 else 1.0, rest)


def bivariate_cdf(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> Any:
    """P(X <= h, Y <= k) of standard normal X and Y with correlation rho.

    The arguments broadcast; Torch tensors give a tensor. The relative error is at most 1e-12 where
    the result is above 1e-300.
    """
    return _public(h, k, rho, logarithm=False)


def log_bivariate_cdf(h: ArrayLike, k: ArrayLike, rho: ArrayLike, sign: ArrayLike = 1.0) -> Any:
    """Logarithm of P(X <= h, Y <= k) of standard normal X and Y with correlation sign times rho.

    It is accurate for arguments of any size, and for any |rho| up to 1. One ``rho`` for all rows is
    faster than many; a ``sign`` of 1 or -1 may differ by row.
    """
    return _public(h, k, rho, logarithm=True, sign=sign)


def log_cdf_and_slopes(
    h: Array, k: Array, atanh_rho: float, sign: Array | float = 1.0
) -> tuple[Array, Array, Array, Array]:
    """Log Phi2(h, k; sign rho) of vectors (n,), and its derivatives in h, k and t = atanh(rho).

    ``sign`` is 1 or -1, or a vector of them. A logarithm close to zero has an absolute error of
    1e-16: enough for sums over rows. Slopes have relative errors of 1e-14, plus 1e-15 for each unit
    of the logarithm.
    """
    rho = Correlation.from_atanh(atanh_rho)
    xp = namespace(h)
    signs: Array = sign if hasattr(sign, "shape") else xp.full_like(h, sign)
    own = rho.sign * signs
    results = tuple(xp.empty_like(h) for _ in range(4))
    trusted = xp.empty_like(h, dtype=xp.bool)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for rows in _chunks(h):
            *parts, trusted[rows] = _central_slopes(h[rows], k[rows], own[rows], rho)
            for result, part in zip(results, parts, strict=True):
                result[rows] = part
        if not xp.all(trusted):
            (hard,) = xp.nonzero(~trusted)
            for some in _chunks(hard):
                rows = hard[some]
                exact = _exact_slopes(h[rows], k[rows], own[rows], rho)
                for result, part in zip(results, exact, strict=True):
                    result[rows] = part
    value, slope_h, slope_k, slope_t = results
    return value, slope_h, slope_k, slope_t * signs


def _central_slopes(
    h: Array, k: Array, sign: Array, rho: Correlation
) -> tuple[Array, Array, Array, Array, Array]:
    """Log Phi2, its slopes in h, k and the atanh of the row's own rho, and where they are right."""
    xp = namespace(h)
    w_h, w_k = (edge / rho.scale for edge in edges(h, k, sign, rho.rest))
    cdf, trusted = _central(h, k, sign, rho)
    over_cdf = 1.0 / (2.0 * cdf)
    density_h = xp.exp(-0.5 * (h * h + LOG_2PI)) * over_cdf
    slope_h = density_h * erfc(-_SQRT_HALF * w_h)
    slope_k = xp.exp(-0.5 * (k * k + LOG_2PI)) * over_cdf * erfc(-_SQRT_HALF * w_k)
    slope_t = (2.0 * rho.scale) * density_h * xp.exp(-0.5 * (w_h * w_h + LOG_2PI))
    return xp.log(cdf), slope_h, slope_k, slope_t, trusted


def _exact_slopes(
    h: Array, k: Array, sign: Array, rho: Correlation
) -> tuple[Array, Array, Array, Array]:
    """Log Phi2 and the same slopes from sums of positive terms."""
    xp = namespace(h)
    w_h, w_k = (edge / rho.scale for edge in edges(h, k, sign, rho.rest))
    value = log_cdf(h, k, sign, xp.full_like(h, rho.rest))
    log_h = -0.5 * (h * h + LOG_2PI) - value
    slope_h = xp.exp(log_h + log_ndtr(w_h))
    slope_k = xp.exp(-0.5 * (k * k + LOG_2PI) - value + log_ndtr(w_k))
    slope_t = rho.scale * xp.exp(log_h - 0.5 * (w_h * w_h + LOG_2PI))
    return value, slope_h, slope_k, slope_t


def _public(
    h: ArrayLike, k: ArrayLike, rho: ArrayLike, logarithm: bool, sign: ArrayLike = 1.0
) -> Any:
    """Phi2 or its logarithm in the shape that the arguments broadcast to."""
    given: Any = next((part for part in (h, k, rho) if is_tensor(part)), None)
    if given is None:
        first, second, third = (np.asarray(part, dtype=np.float64) for part in (h, k, rho))
        xp = namespace(first)
    else:
        xp = namespace(given)
        first, second, third = (
            xp.asarray(part, dtype=xp.float64, device=given.device) for part in (h, k, rho)
        )
    common = Correlation.from_rho(float(third)) if third.ndim == 0 else None
    first, second, third = xp.broadcast_arrays(first, second, third)
    shape = first.shape
    first, second, third = (xp.reshape(part, (-1,)) for part in (first, second, third))
    own = xp.where(third > 0.0, xp.ones_like(first), -xp.ones_like(first)) * sign
    result, trusted = xp.empty_like(first), xp.zeros_like(first, dtype=xp.bool)
    if common is not None:
        for rows in _chunks(first):
            result[rows], trusted[rows] = _central(first[rows], second[rows], own[rows], common)
        if logarithm:
            # The logarithm of a probability close to one needs the digits of its complement.
            trusted = trusted & (result < 0.5)
            result = xp.log(xp.where(trusted, result, xp.ones_like(result)))
    (hard,) = xp.nonzero(~trusted)
    for some in _chunks(hard):
        rows = hard[some]
        rest = 1.0 - xp.abs(third[rows])
        rest = xp.where(rest < 0.0, xp.full_like(rest, math.nan), rest)
        exact = log_cdf(first[rows], second[rows], own[rows], rest)
        result[rows] = exact if logarithm else xp.exp(exact)
    result = xp.reshape(result, shape)
    return result[()] if given is None else result


def _central(h: Array, k: Array, sign: Array, rho: Correlation) -> tuple[Array, Array]:
    """Phi2 by Plackett's integral, and where its relative error is small."""
    xp = namespace(h)
    if not rho.t <= _LARGEST_T:
        return xp.full_like(h, math.nan), xp.zeros_like(h, dtype=xp.bool)
    exponents, weights = (like(part, h) for part in _rule(rho.t))
    turned = sign * k
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = xp.stack([(h + turned) ** 2, (h - turned) ** 2], axis=1)
        integral = _exp(squares @ exponents) @ weights
        independent = 0.25 * erfc(-_SQRT_HALF * h) * erfc(-_SQRT_HALF * k)
        result = independent + sign * integral
        trusted = (xp.abs(h) <= _CENTRE) & (xp.abs(k) <= _CENTRE) & (result >= _KEPT * independent)
    return result, trusted


def _exp(values: Array) -> Array:
    """Exponentials, in place of the values in memory: a second array would leave the cache."""
    return np.exp(values, out=values) if isinstance(values, np.ndarray) else values.exp_()


@lru_cache(maxsize=8)
def _rule(t: float) -> tuple[Floats, Floats]:
    """Exponents (2, q) of (h + k)^2 and (h - k)^2, and weights (q,)."""
    # Measured over arguments up to 6: the error is then below 2e-13.
    nodes, weights = _legendre(2 * math.ceil(4.0 + 6.0 * t))
    y = 0.5 * t * (nodes + 1.0)
    exponents = np.stack([np.exp(-2.0 * y), np.exp(2.0 * y)])
    return -0.125 * (1.0 + exponents), 0.5 * t * weights / (2.0 * np.pi * np.cosh(y))


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _chunks(array: Array) -> Iterator[slice]:
    """Slices of rows small enough for the processor's cache, or for a GPU's memory."""
    on_gpu = is_tensor(array) and array.is_cuda
    step = _ROWS_ON_GPU if on_gpu else _ROWS
    return (slice(start, start + step) for start in range(0, array.shape[0], step))
