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
0.999, and not where a negative integral leaves little of Phi(h) Phi(k).

The rest are sums of positive terms, a few times slower. Write s for
sqrt(1 - rho^2), R(x) = Phi(-x) / phi(x) for the Mills ratio, w_h = (k - rho h) / s and
w_k = (h - rho k) / s. Nothing cancels:

- rho <= 0, w_h <= 0 or w_k <= 0: Phi2 = phi(h) phi(w_h) s J with
  J = int_0^inf exp(-x^2 / 2 + w_h x) R(-w_k + |rho| x) dx, taking w_k <= w_h. R is smooth, so the
  integrand has no narrow peak, whatever rho is;
- rho <= 0 otherwise: Phi(h) - Phi(-k), which is positive, plus Phi2(-h, -k; rho), as above;
- rho > 0: Phi(k) - Phi2(-h, k; -rho), with k the smaller argument, where at least 6% of Phi(k) is
  left;
- rho > 0 otherwise, both arguments being negative: the sum of Owen's (1956) integrals along both
  sides of the quadrant, of which the one at h is
  |h| phi(h) phi(w_h) int_0^inf exp(-x^2 / 2 - |w_h| x) / (h^2 + (|w_h| + x)^2) dx.

Gauss-Legendre quadrature covers the range where the Gaussian factor is above 1e-17 of its peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.data.arrays import (
    Array,
    Floats,
    erf,
    erfc,
    erfcx,
    is_tensor,
    like,
    log_ndtr,
    namespace,
)

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
_LOG_2PI = math.log(2.0 * math.pi)
_REACH = 8.8  # exp(-8.8^2 / 2) = 1.5e-17
_LITTLE_LEFT = -1.5  # left of this point Phi2 may be less than 6% of Phi(k)
# Squares of larger arguments overflow. Their log Phi is minus infinity, or their Phi is 1.
_HUGE = 1e154

Case = Callable[[Array, Array, Array], Array]
"""Log Phi2 of the smaller argument, the larger one and 1 - |rho|"""
Rule = tuple[Floats, Floats]
"""Nodes on [-1, 1] and weights"""
_CORNER: Rule = np.polynomial.legendre.leggauss(24)  # the integrand falls from the start
_SIDE: Rule = np.polynomial.legendre.leggauss(32)  # so does this, but it has poles nearby
_PEAK: Rule = np.polynomial.legendre.leggauss(40)  # it has its peak inside


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


def log_bivariate_cdf(h: ArrayLike, k: ArrayLike, rho: ArrayLike, sign: ArrayLike = 1.0) -> Any:
    """Logarithm of P(X <= h, Y <= k) of standard normal X and Y with correlation sign times rho.

    The arguments broadcast; Torch tensors give a tensor. It is accurate for arguments of any size,
    and for any |rho| up to 1. One ``rho`` for all rows is faster than many; a ``sign`` of 1 or -1
    may differ by row.
    """
    tensor: Any = next((part for part in (h, k, rho) if is_tensor(part)), None)
    if tensor is None:
        first, second, third = (np.asarray(argument, dtype=np.float64) for argument in (h, k, rho))
        xp = namespace(first)
    else:
        xp = namespace(tensor)
        first, second, third = (
            xp.asarray(argument, dtype=xp.float64, device=tensor.device) for argument in (h, k, rho)
        )
    common = Correlation.from_rho(float(third)) if third.ndim == 0 else None
    first, second, third = xp.broadcast_arrays(first, second, third)
    shape = first.shape
    first, second, third = (xp.reshape(argument, (-1,)) for argument in (first, second, third))
    own = xp.where(third > 0.0, xp.ones_like(first), -xp.ones_like(first)) * sign
    result, trusted = xp.empty_like(first), xp.zeros_like(first, dtype=xp.bool)
    if common is not None:
        for rows in chunks(first):
            result[rows], trusted[rows] = central_cdf(first[rows], second[rows], own[rows], common)
        # The logarithm of a probability close to one needs the digits of its complement.
        trusted = trusted & (result < 0.5)
        result = xp.log(xp.where(trusted, result, xp.ones_like(result)))
    (hard,) = xp.nonzero(~trusted)
    for some in chunks(hard):
        rows = hard[some]
        rest = 1.0 - xp.abs(third[rows])
        rest = xp.where(rest < 0.0, xp.full_like(rest, math.nan), rest)
        result[rows] = _log_exact(first[rows], second[rows], own[rows], rest)
    result = xp.reshape(result, shape)
    return result[()] if tensor is None else result


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
    value, slope_h, slope_k, slope_t = in_two_stages(
        _central_slopes, _exact_slopes, 4, (h, k, own), rho
    )
    return value, slope_h, slope_k, slope_t * signs


def in_two_stages(
    quick: Callable[..., tuple[Sequence[Array], Array]],
    exact: Callable[..., Sequence[Array]],
    count: int,
    vectors: Sequence[Array],
    rho: Correlation,
) -> list[Array]:
    """Evaluate ``count`` functions of vectors (n,) and rho; exactly, where the quick rule is not.

    ``quick`` returns them, and where they are right.
    """
    xp = namespace(vectors[0])
    results = [xp.empty_like(vectors[0]) for _ in range(count)]
    trusted = xp.empty_like(vectors[0], dtype=xp.bool)
    with np.errstate(all="ignore"):
        for rows in chunks(trusted):
            found, trusted[rows] = quick(*(vector[rows] for vector in vectors), rho)
            for result, value in zip(results, found, strict=True):
                result[rows] = value
        if not xp.all(trusted):
            (hard,) = xp.nonzero(~trusted)
            for some in chunks(hard):
                rows = hard[some]
                own = exact(*(vector[rows] for vector in vectors), rho)
                for result, value in zip(results, own, strict=True):
                    result[rows] = value
    return results


def _central_slopes(
    h: Array, k: Array, sign: Array, rho: Correlation
) -> tuple[tuple[Array, Array, Array, Array], Array]:
    """Log Phi2, its slopes in h, k and the atanh of the row's own rho, and where they are right."""
    xp = namespace(h)
    w_h, w_k = (edge / rho.scale for edge in edges(h, k, sign, rho.rest))
    cdf, trusted = central_cdf(h, k, sign, rho)
    over_cdf = 1.0 / (2.0 * cdf)
    density_h = xp.exp(-0.5 * (h * h + _LOG_2PI)) * over_cdf
    slope_h = density_h * erfc(-_SQRT_HALF * w_h)
    slope_k = xp.exp(-0.5 * (k * k + _LOG_2PI)) * over_cdf * erfc(-_SQRT_HALF * w_k)
    slope_t = (2.0 * rho.scale) * density_h * xp.exp(-0.5 * (w_h * w_h + _LOG_2PI))
    return (xp.log(cdf), slope_h, slope_k, slope_t), trusted


def _exact_slopes(
    h: Array, k: Array, sign: Array, rho: Correlation
) -> tuple[Array, Array, Array, Array]:
    """Log Phi2 and the same slopes from sums of positive terms."""
    xp = namespace(h)
    w_h, w_k = (edge / rho.scale for edge in edges(h, k, sign, rho.rest))
    value = _log_exact(h, k, sign, xp.full_like(h, rho.rest))
    log_h = -0.5 * (h * h + _LOG_2PI) - value
    slope_h = xp.exp(log_h + log_ndtr(w_h))
    slope_k = xp.exp(-0.5 * (k * k + _LOG_2PI) - value + log_ndtr(w_k))
    slope_t = rho.scale * xp.exp(log_h - 0.5 * (w_h * w_h + _LOG_2PI))
    return value, slope_h, slope_k, slope_t


def central_cdf(h: Array, k: Array, sign: Array, rho: Correlation) -> tuple[Array, Array]:
    """Phi2 by Plackett's integral, and where its relative error is small."""
    result, independent, inside = central_parts(h, k, sign, rho)
    return result, inside & (result >= _KEPT * independent)


def central_parts(h: Array, k: Array, sign: Array, rho: Correlation) -> tuple[Array, Array, Array]:
    """Phi2 by Plackett's integral, Phi(h) Phi(k), and whether the rule reaches so far.

    The error is small next to the larger of both.
    """
    xp = namespace(h)
    if not rho.t <= _LARGEST_T:
        nothing = xp.full_like(h, math.nan)
        return nothing, nothing, xp.zeros_like(h, dtype=xp.bool)
    exponents, weights = (like(values, h) for values in _rule(rho.t))
    turned = sign * k
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = xp.stack([(h + turned) ** 2, (h - turned) ** 2], axis=1)
        integral = _exp(squares @ exponents) @ weights
        independent = 0.25 * erfc(-_SQRT_HALF * h) * erfc(-_SQRT_HALF * k)
        result = independent + sign * integral
        inside = (xp.abs(h) <= _CENTRE) & (xp.abs(k) <= _CENTRE)
    return result, independent, inside


def _exp(values: Array) -> Array:
    """Exponentials, in place of the values in memory: a second array would leave the cache."""
    return np.exp(values, out=values) if isinstance(values, np.ndarray) else values.exp_()


@lru_cache(maxsize=8)
def _rule(t: float) -> tuple[Floats, Floats]:
    """Exponents (2, q) of (h + k)^2 and (h - k)^2, and weights (q,)."""
    # Measured over arguments up to 6: the error is then below 2e-13.
    nodes, weights = legendre(2 * math.ceil(4.0 + 6.0 * t))
    y = 0.5 * t * (nodes + 1.0)
    exponents = np.stack([np.exp(-2.0 * y), np.exp(2.0 * y)])
    return -0.125 * (1.0 + exponents), 0.5 * t * weights / (2.0 * np.pi * np.cosh(y))


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes on [-1, 1] and weights of Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def chunks(array: Array) -> Iterator[slice]:
    """Slices of rows small enough for the processor's cache, or for a GPU's memory."""
    on_gpu = is_tensor(array) and array.is_cuda
    step = _ROWS_ON_GPU if on_gpu else _ROWS
    return (slice(start, start + step) for start in range(0, array.shape[0], step))


def _log_exact(h: Array, k: Array, sign: Array, rest: Array) -> Array:
    """Log Phi2 of vectors (n,), where rho = sign (1 - rest): 1 - |rho| is given, and exact.

    The relative error of Phi2 is some 1e-15, plus 1e-16 for each unit of its logarithm.
    """
    xp = namespace(h)
    low, high = xp.minimum(h, k), xp.maximum(h, k)
    result = xp.full_like(h, math.nan)
    known = ~(xp.isnan(h) | xp.isnan(k) | xp.isnan(rest))
    beyond = known & ((low <= -_HUGE) | (high >= _HUGE))
    inner = known & ~beyond
    exact = inner & (rest == 0.0)
    at_one = exact & (sign > 0.0)
    cases: tuple[tuple[Array, Case], ...] = (
        (beyond | at_one, lambda low, high, rest: log_ndtr(low)),
        (
            exact & ~at_one,
            lambda low, high, rest: _log_with_band(low, high, xp.full_like(low, -math.inf)),
        ),
        (inner & ~exact & (sign <= 0.0), _log_negative),
        (inner & ~exact & (sign > 0.0), _log_positive),
    )
    with np.errstate(all="ignore"):
        for rows, function in cases:
            if xp.any(rows):
                result[rows] = function(low[rows], high[rows], rest[rows])
    return result


def edges(h: Array, k: Array, sign: Array | float, rest: Array | float) -> tuple[Array, Array]:
    """Both w_h s = k - rho h and w_k s = h - rho k, without cancellation as |rho| nears 1."""
    return (k - sign * h) + sign * rest * h, (h - sign * k) + sign * rest * k


def _scaled_edges(h: Array, k: Array, sign: float, rest: Array) -> tuple[Array, Array, Array]:
    """w_h, w_k and s."""
    xp = namespace(h)
    scale = xp.sqrt(rest * (2.0 - rest))
    first, second = edges(h, k, sign, rest)
    return first / scale, second / scale, scale


def _log_positive(low: Array, high: Array, rest: Array) -> Array:
    """Log Phi2 for rho = 1 - rest > 0 and low <= high."""
    xp = namespace(low)
    w_low, w_high, _ = _scaled_edges(low, high, 1.0, rest)
    result = xp.empty_like(low)
    much = (high > _LITTLE_LEFT) | (w_low >= 0.0)
    if xp.any(much):
        few = low[much]
        whole = log_ndtr(few)
        beyond = _log_negative(few, -high[much], rest[much])
        result[much] = whole + xp.log1p(-xp.exp(beyond - whole))
    little = ~much
    if xp.any(little):
        result[little] = xp.logaddexp(
            _log_side(low[little], w_low[little]), _log_side(high[little], w_high[little])
        )
    return result


def _log_side(h: Array, w: Array) -> Array:
    """Owen's integral along the part below w of the line at h, for h < 0 and w <= 0."""
    xp = namespace(h)
    nodes, weights = (like(numbers, h) for numbers in _SIDE)
    b = -w[:, None]
    half = 0.5 * _width(b)
    x = half * (nodes + 1.0)
    values = xp.exp(-x * (0.5 * x + b)) / (h[:, None] ** 2 + (b + x) ** 2)
    integral = (values @ weights) * half[:, 0]
    return xp.log(-h * integral) - 0.5 * (h * h + w * w) - _LOG_2PI


def _width(b: Array) -> Array:
    """Where x^2 / 2 + b x is as large as at the end of the reach, for b >= 0."""
    return _REACH**2 / (b + namespace(b).sqrt(b * b + _REACH**2))


def _log_negative(h: Array, k: Array, rest: Array) -> Array:
    """Log Phi2 for rho = rest - 1 <= 0."""
    xp = namespace(h)
    w_h, w_k, scale = _scaled_edges(h, k, -1.0, rest)
    inside = (w_h > 0.0) & (w_k > 0.0)
    turn = 1.0 - 2.0 * xp.astype(inside, h.dtype)
    swap = turn * w_h < turn * w_k
    at = turn * xp.where(swap, k, h)
    w = turn * xp.where(swap, w_k, w_h)
    other = turn * xp.where(swap, w_h, w_k)
    result = xp.empty_like(h)
    peaked = w > 0.0
    for rows, function in ((peaked, _log_peak), (~peaked, _log_corner)):
        if xp.any(rows):
            result[rows] = function(at[rows], w[rows], other[rows], rest[rows])
    result = result + xp.log(scale)
    if xp.any(inside):
        result[inside] = _log_with_band(h[inside], k[inside], result[inside])
    return result


def _log_corner(h: Array, w: Array, other: Array, rest: Array) -> Array:
    """Log Phi2 / s for rho <= 0 and other <= w <= 0: the density is largest at the corner."""
    xp = namespace(h)
    nodes, weights = (like(numbers, h) for numbers in _CORNER)
    b = -w[:, None]
    half = 0.5 * _width(b)
    x = half * (nodes + 1.0)
    mills = erfcx((-other[:, None] + (1.0 - rest[:, None]) * x) * _SQRT_HALF)
    integral = ((xp.exp(-x * (0.5 * x + b)) * mills) @ weights) * half[:, 0]
    constant = 0.5 * math.log(math.pi / 2.0) - _LOG_2PI
    return constant + xp.log(integral) - 0.5 * (h * h + w * w)


def _log_peak(h: Array, w: Array, other: Array, rest: Array) -> Array:
    """Log Phi2 / s for rho <= 0 and other <= 0 < w: the density is largest on a side, at w."""
    xp = namespace(h)
    nodes, weights = (like(numbers, h) for numbers in _PEAK)
    lower = -xp.where(w < _REACH, w, _REACH)[:, None]
    half = 0.5 * (_REACH - lower)
    x = lower + half * (nodes + 1.0)
    mills = erfcx((-other[:, None] + (1.0 - rest[:, None]) * (w[:, None] + x)) * _SQRT_HALF)
    integral = ((xp.exp(-0.5 * x * x) * mills) @ weights) * half[:, 0]
    constant = 0.5 * math.log(math.pi / 2.0) - _LOG_2PI
    return constant + xp.log(integral) - 0.5 * h * h


def _log_with_band(h: Array, k: Array, log_corner: Array) -> Array:
    """Log of Phi(h) - Phi(-k), which is positive, plus Phi2(-h, -k) for rho <= 0."""
    xp = namespace(h)
    low, high = xp.minimum(h, k), xp.maximum(h, k)
    outside = 0.5 * (erfc(low * _SQRT_HALF) + erfc(high * _SQRT_HALF)) - xp.exp(log_corner)
    # log1p keeps the digits of a logarithm close to zero.
    return xp.where(
        outside < 0.5,
        xp.log1p(-xp.where(outside < 0.5, outside, 0.5)),
        xp.logaddexp(log_between(low, high), log_corner),
    )


def log_between(low: Array, high: Array) -> Array:
    """Log of Phi(high) - Phi(-low), minus infinity where that is not positive; low <= high."""
    xp = namespace(low)
    width = low + high
    result = xp.full_like(low, -math.inf)
    tails = (low <= -1.0) & (width > 0.0)
    if xp.any(tails):
        lower = log_ndtr(low[tails])
        result[tails] = lower + xp.log(-xp.expm1(log_ndtr(-high[tails]) - lower))
    central = (low > -1.0) & (width > 0.0)
    if xp.any(central):
        both = erf(low[central] * _SQRT_HALF) + erf(high[central] * _SQRT_HALF)
        result[central] = xp.log(0.5 * both)
    # A difference of neighbours loses digits; the integral of the density does not.
    short = (low < 0.0) & (width > 0.0) & (width < 2.0) & (width * high < 2.0)
    if xp.any(short):
        nodes, weights = (like(numbers, low) for numbers in _CORNER)
        middle, half = 0.5 * (high - low)[short], 0.5 * width[short]
        away = half[:, None] * nodes
        # x^2 - middle^2 with x = middle + away
        values = xp.exp(-away * (middle[:, None] + 0.5 * away)) @ weights
        result[short] = xp.log(values * half) - 0.5 * (middle * middle + _LOG_2PI)
    return result
