"""The logarithm of the bivariate normal distribution function as sums of positive terms.

`bivariate_normal` calls this where its fast method is not accurate enough. Write s for
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
from collections.abc import Callable

import numpy as np

from heckmanfa.data.arrays import Array, Floats, erf, erfc, erfcx, like, log_ndtr, namespace

LOG_2PI = math.log(2.0 * math.pi)
_SQRT_HALF = 0.5**0.5
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


def log_cdf(h: Array, k: Array, sign: Array, rest: Array) -> Array:
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


def _edges_in_units(h: Array, k: Array, sign: float, rest: Array) -> tuple[Array, Array, Array]:
    """w_h, w_k and s."""
    xp = namespace(h)
    scale = xp.sqrt(rest * (2.0 - rest))
    first, second = edges(h, k, sign, rest)
    return first / scale, second / scale, scale


def _log_positive(low: Array, high: Array, rest: Array) -> Array:
    """Log Phi2 for rho = 1 - rest > 0 and low <= high."""
    xp = namespace(low)
    w_low, w_high, _ = _edges_in_units(low, high, 1.0, rest)
    result = xp.empty_like(low)
    much = (high > _LITTLE_LEFT) | (w_low >= 0.0)
    if xp.any(much):
        few = low[much]
        whole = log_ndtr(few)
        part = _log_negative(few, -high[much], rest[much])
        result[much] = whole + xp.log1p(-xp.exp(part - whole))
    little = ~much
    if xp.any(little):
        result[little] = xp.logaddexp(
            _log_side(low[little], w_low[little]), _log_side(high[little], w_high[little])
        )
    return result


def _log_side(h: Array, w: Array) -> Array:
    """Owen's integral along the part below w of the line at h, for h < 0 and w <= 0."""
    xp = namespace(h)
    nodes, weights = (like(part, h) for part in _SIDE)
    b = -w[:, None]
    half = 0.5 * _width(b)
    x = half * (nodes + 1.0)
    values = xp.exp(-x * (0.5 * x + b)) / (h[:, None] ** 2 + (b + x) ** 2)
    integral = (values @ weights) * half[:, 0]
    return xp.log(-h * integral) - 0.5 * (h * h + w * w) - LOG_2PI


def _width(b: Array) -> Array:
    """Where x^2 / 2 + b x is as large as at the end of the reach, for b >= 0."""
    return _REACH**2 / (b + namespace(b).sqrt(b * b + _REACH**2))


def _log_negative(h: Array, k: Array, rest: Array) -> Array:
    """Log Phi2 for rho = rest - 1 <= 0."""
    xp = namespace(h)
    w_h, w_k, scale = _edges_in_units(h, k, -1.0, rest)
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
    nodes, weights = (like(part, h) for part in _CORNER)
    b = -w[:, None]
    half = 0.5 * _width(b)
    x = half * (nodes + 1.0)
    mills = erfcx((-other[:, None] + (1.0 - rest[:, None]) * x) * _SQRT_HALF)
    integral = ((xp.exp(-x * (0.5 * x + b)) * mills) @ weights) * half[:, 0]
    constant = 0.5 * math.log(math.pi / 2.0) - LOG_2PI
    return constant + xp.log(integral) - 0.5 * (h * h + w * w)


def _log_peak(h: Array, w: Array, other: Array, rest: Array) -> Array:
    """Log Phi2 / s for rho <= 0 and other <= 0 < w: the density is largest on a side, at w."""
    xp = namespace(h)
    nodes, weights = (like(part, h) for part in _PEAK)
    lower = -xp.where(w < _REACH, w, _REACH)[:, None]
    half = 0.5 * (_REACH - lower)
    x = lower + half * (nodes + 1.0)
    mills = erfcx((-other[:, None] + (1.0 - rest[:, None]) * (w[:, None] + x)) * _SQRT_HALF)
    integral = ((xp.exp(-0.5 * x * x) * mills) @ weights) * half[:, 0]
    constant = 0.5 * math.log(math.pi / 2.0) - LOG_2PI
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
        xp.logaddexp(_log_between(low, high), log_corner),
    )


def _log_between(low: Array, high: Array) -> Array:
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
        nodes, weights = (like(part, low) for part in _CORNER)
        middle, half = 0.5 * (high - low)[short], 0.5 * width[short]
        away = half[:, None] * nodes
        # x^2 - middle^2 with x = middle + away
        values = xp.exp(-away * (middle[:, None] + 0.5 * away)) @ weights
        result[short] = xp.log(values * half) - 0.5 * (middle * middle + LOG_2PI)
    return result
