"""The probability of a class and of selection: strips of the bivariate normal, and their slopes.

A class lies between two thresholds of a latent outcome. With X and Y standard normal of correlation
rho, its probability together with selection is

P(low < X <= high, Y <= u) = Phi2(high, u; rho) - Phi2(low, u; rho)
                           = Phi2(-low, u; -rho) - Phi2(-high, u; -rho)
                           = int_low^high phi(x) Phi((u - rho x) / r) dx,   r = sqrt(1 - rho^2).

Of the two differences, that in the tail of X given Y <= u loses fewer digits: X has there a mean of
-rho lambda(u). It is used where both terms come from the fast rule of `bivariate_normal` and at
least 2% of what their errors are small next to is left, so its relative error is some 1e-11 at
most. Elsewhere the integral
is taken: a sum of positive terms. Its integrand is log-concave. The interval is cut at the
integrand's mode, and where the second factor begins and ends to fall, so that each panel rises or
falls throughout; 32 Gauss-Legendre nodes cover the part of it that is above 1e-17 of its largest
value.

A class at an end of the scale has one threshold, and is a quadrant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heckmanfa.data.arrays import Array, erfc, like, log_ndtr, namespace
from heckmanfa.model.bivariate_normal import (
    Correlation,
    central_parts,
    edges,
    in_two_stages,
    legendre,
    log_between,
    log_cdf_and_slopes,
)
from heckmanfa.model.normal import inverse_mills

_SQRT_HALF = 0.5**0.5
_LOG_2PI = math.log(2.0 * math.pi)
_KEPT = 0.02
"""The smallest part of the larger Phi2, and of either Phi Phi, that a difference may leave"""
_REACH = 8.8  # exp(-8.8^2 / 2) = 1.5e-17
_NODES = 32
_STEPS_TO_MODE = 40
_MODE_OF_LAMBDA = 8.0 / math.pi


class Strip(NamedTuple):
    """Log P(low < X <= high, Y <= u) of some rows, and its derivatives.

    A threshold that a class at an end of the scale does not have has zero derivatives.
    """

    value: Array
    by_high: Array
    by_low: Array
    by_u: Array
    at_high: Array
    """phi2(high, u) r^2 over the probability: the derivative in t = atanh rho by this side"""
    at_low: Array
    """the same at ``low``: the derivative in t is ``at_high - at_low``"""


def log_strip(low: Array, high: Array, u: Array, atanh_rho: float) -> Strip:
    """Log P(low < X <= high, Y <= u) of vectors (n,), for low < high, with its derivatives.

    ``low`` may be minus infinity, and ``high`` infinity, but not both.
    """
    xp = namespace(u)
    results = Strip(*(xp.zeros_like(u) for _ in Strip._fields))
    has_low, has_high = low > -math.inf, high < math.inf
    for sign, rows in ((1.0, has_high & ~has_low), (-1.0, has_low & ~has_high)):
        if not xp.any(rows):
            continue
        edge = (high if sign > 0 else low)[rows]
        value, slope, by_u, by_t = log_cdf_and_slopes(sign * edge, u[rows], atanh_rho, sign)
        results.value[rows], results.by_u[rows] = value, by_u
        by_edge, at_edge = (
            (results.by_high, results.at_high) if sign > 0 else (results.by_low, results.at_low)
        )
        by_edge[rows], at_edge[rows] = sign * slope, sign * by_t
    both = has_low & has_high
    if xp.any(both):
        for result, found in zip(
            results, _between(low[both], high[both], u[both], atanh_rho), strict=True
        ):
            result[both] = found
    return results


def log_strip_probability(low: Array, high: Array, u: Array, rho: float) -> Array:
    """Log P(low < X <= high, Y <= u), as `log_strip` has it, for a rho inside (-1, 1)."""
    xp = namespace(u)
    low, high, u = (xp.asarray(each) for each in xp.broadcast_arrays(low, high, u))
    with np.errstate(divide="ignore"):
        return log_strip(low, high, u, math.atanh(rho)).value


def _between(low: Array, high: Array, u: Array, atanh_rho: float) -> Strip:
    """Evaluate strips with two thresholds."""
    rho = Correlation.from_atanh(atanh_rho)
    return Strip(
        *in_two_stages(_by_difference, _by_integral, len(Strip._fields), (low, high, u), rho)
    )


def _by_difference(low: Array, high: Array, u: Array, rho: Correlation) -> tuple[Strip, Array]:
    """Evaluate strips by two values of Phi2, and say where the difference has enough digits."""
    xp = namespace(u)
    signed = rho.sign * (1.0 - rho.rest)
    # An approximation of lambda(u) is enough to tell the tail.
    mean = -0.5 * signed * (xp.sqrt(u * u + _MODE_OF_LAMBDA) - u)
    upper = low + high > 2.0 * mean
    ones = xp.ones_like(u)
    sign = xp.where(upper, -ones, ones)
    near, far = xp.where(upper, -low, high), xp.where(upper, -high, low)
    own = rho.sign * sign
    more, apart, more_inside = central_parts(near, u, own, rho)
    less, apart_far, less_inside = central_parts(far, u, own, rho)
    probability = more - less
    largest = xp.maximum(more, xp.maximum(apart, apart_far))
    trusted = more_inside & less_inside & (probability >= _KEPT * largest)
    over = 1.0 / probability
    sides = []
    for edge in (high, low):
        along, across = (part / rho.scale for part in edges(edge, u, rho.sign, rho.rest))
        density = xp.exp(-0.5 * (edge * edge + _LOG_2PI)) * over
        slope = 0.5 * density * erfc(-_SQRT_HALF * along)
        at = rho.scale * density * xp.exp(-0.5 * (along * along + _LOG_2PI))
        sides.append((slope, at, across))
    (by_high, at_high, top), (by_low, at_low, bottom) = sides
    turn = xp.where(top + bottom > 0.0, -_SQRT_HALF * ones, _SQRT_HALF * ones)
    band = xp.abs(erfc(turn * top) - erfc(turn * bottom))
    # Phi(x) is erfc(-x / sqrt 2) / 2, and the other turn exchanges both tails.
    band = xp.where(turn < 0.0, xp.abs(erfc(-turn * top) - erfc(-turn * bottom)), band)
    by_u = 0.5 * band * xp.exp(-0.5 * (u * u + _LOG_2PI)) * over
    return Strip(xp.log(probability), by_high, -by_low, by_u, at_high, at_low), trusted


def _by_integral(low: Array, high: Array, u: Array, rho: Correlation) -> Strip:
    """Evaluate strips by integrals of positive terms."""
    xp = namespace(u)
    value = _log_integral(low, high, u, rho)
    sides = []
    for edge in (high, low):
        along, across = (part / rho.scale for part in edges(edge, u, rho.sign, rho.rest))
        density = -0.5 * (edge * edge + _LOG_2PI) - value
        slope = xp.exp(density + log_ndtr(along))
        at = rho.scale * xp.exp(density - 0.5 * (along * along + _LOG_2PI))
        sides.append((slope, at, across))
    (by_high, at_high, top), (by_low, at_low, bottom) = sides
    flip = top + bottom < 0.0
    band = log_between(xp.where(flip, top, -bottom), xp.where(flip, -bottom, top))
    by_u = xp.exp(band - 0.5 * (u * u + _LOG_2PI) - value)
    return Strip(value, by_high, -by_low, by_u, at_high, at_low)


def _log_integral(low: Array, high: Array, u: Array, rho: Correlation) -> Array:
    """Log of int_low^high phi(x) Phi((u - rho x) / r) dx."""
    xp = namespace(u)
    # Reflected, rho is positive: the second factor falls.
    if rho.sign < 0.0:
        low, high = -high, -low
    size, r = 1.0 - rho.rest, rho.scale
    bend = size / r

    def edge_of(x: Array) -> Array:
        return edges(x, u if x.ndim == 1 else u[:, None], 1.0, rho.rest)[0] / r

    def log_height(x: Array) -> Array:
        return log_ndtr(edge_of(x)) - 0.5 * x * x

    def slope(x: Array) -> Array:
        return -x - bend * inverse_mills(edge_of(x))

    mode = _mode(u, rho)
    fall = min(r / size, 1e300) if size > 0.0 else 1e300
    # The second factor is 1 left of the first of these, and a Gaussian tail right of the last.
    at = u / size if size > 0.0 else xp.full_like(u, 1e300)
    breaks = [at - _REACH * fall, at, at + _REACH * fall, mode]
    points = xp.sort(xp.stack([*(xp.clip(each, low, high) for each in breaks), low, high], axis=1))
    steep = at + 0.999 * _REACH * fall
    nodes, weights = (like(values, u) for values in legendre(_NODES))
    parts = []
    for place in range(len(breaks) + 1):
        start, end = points[:, place], points[:, place + 1]
        rises = 0.5 * (start + end) < mode
        # From the end that is nearest to the mode, as far as the integrand matters.
        top = xp.where(rises, end, start)
        down = xp.abs(slope(top))
        curved = xp.where(start >= steep, 1.0 + 0.98 * bend * bend, 1.0)
        width = _REACH**2 / (down + xp.sqrt(down * down + curved * _REACH**2))
        width = xp.minimum(width, end - start)
        half = xp.where(rises, -0.5 * width, 0.5 * width)
        x = top[:, None] + half[:, None] * (nodes + 1.0)
        logs = log_height(x)
        highest = xp.amax(logs, axis=1)
        highest = xp.where(highest > -1e300, highest, xp.zeros_like(highest))
        total = xp.exp(logs - highest[:, None]) @ weights
        parts.append(highest + xp.log(total * 0.5 * width))
    result = parts[0]
    for part in parts[1:]:
        result = xp.logaddexp(result, part)
    return result - 0.5 * _LOG_2PI


def _mode(u: Array, rho: Correlation) -> Array:
    """Where phi(x) Phi((u - |rho| x) / r) is largest, nearly.

    Its log slope is concave and falls, so Newton's method from the right, where the slope is
    negative, never overshoots.
    """
    xp = namespace(u)
    bend = (1.0 - rho.rest) / rho.scale
    x = xp.zeros_like(u)
    for _ in range(_STEPS_TO_MODE):
        w = edges(x, u, 1.0, rho.rest)[0] / rho.scale
        ratio = inverse_mills(w)
        slope = -x - bend * ratio
        step = slope / (1.0 + bend * bend * ratio * xp.maximum(ratio + w, 0.0 * w))
        x = x + step
        if bool(xp.all(xp.abs(step) <= 1e-6 * (1.0 + xp.abs(x)))):
            break
    return x
