"""The bivariate normal distribution function, with small relative error in every corner.

Write s for sqrt(1 - rho^2), R(x) = Phi(-x) / phi(x) for the Mills ratio, w_h = (k - rho h) / s and
w_k = (h - rho k) / s. Phi2 is assembled from positive terms only, so that nothing cancels:

- rho <= 0, w_h <= 0 or w_k <= 0: Phi2 = phi(h) phi(w_h) s J with
  J = int_0^inf exp(-x^2 / 2 + w_h x) R(-w_k + |rho| x) dx, an integrand without a narrow place
  whatever rho is;
- rho <= 0 otherwise: Phi(h) - Phi(-k), which is positive, plus Phi2(-h, -k; rho), a case above;
- rho > 0: Phi(k) - Phi2(-h, k; -rho), with k the smaller argument, where at least a hundredth of
  Phi(k) is left;
- rho > 0 otherwise (both arguments far left of zero): the sum of Owen's (1956) two integrals, each
  over the part of its line that bounds the quadrant:
  |h| phi(h) phi(w_h) int_0^inf exp(-x^2 / 2 - |w_h| x) / (h^2 + (|w_h| + x)^2) dx.

All integrals are taken by Gauss-Legendre quadrature over the range where their Gaussian factor is
above 1e-17 of its largest value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from heckmanfa.data.arrays import Array, Floats

_LOG_2PI = float(np.log(2.0 * np.pi))
_REACH = 8.8  # exp(-8.8^2 / 2) = 1.5e-17
_CANCELS = -2.5  # right of this point at least 0.6% of Phi(k) is left
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def bivariate_cdf(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> Any:
    """P(X <= h, Y <= k) of standard normal X and Y with correlation rho."""
    return np.exp(log_bivariate_cdf(h, k, rho))


def log_bivariate_cdf(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> Any:
    """Logarithm of P(X <= h, Y <= k) of standard normal X and Y with correlation rho."""
    correlation = np.asarray(rho, dtype=np.float64)
    rest = 1.0 - np.abs(correlation)
    first, second, sign, rest = np.broadcast_arrays(
        np.asarray(h, dtype=np.float64),
        np.asarray(k, dtype=np.float64),
        np.where(correlation > 0.0, 1.0, -1.0),
        np.where(rest < 0.0, np.nan, rest),
    )
    flat = _log_cdf(first.ravel(), second.ravel(), sign.ravel(), rest.ravel())
    return flat.reshape(first.shape)[()]


def log_cdf_and_slopes(
    h: Array, k: Array, atanh_rho: float, sign: Any = 1.0
) -> tuple[Array, Array, Array, Array]:
    """Log Phi2(h, k; sign rho), and its derivatives in h, k and t = atanh(rho).

    ``sign`` is 1 or -1, or an array of them. 1 - rho^2 comes from t, so it does not cancel.
    """
    t = abs(float(atanh_rho))
    rest, scale = 2.0 / (np.exp(2.0 * t) + 1.0), 1.0 / np.cosh(t)
    direction = np.broadcast_to(sign * (1.0 if atanh_rho > 0.0 else -1.0), h.shape)
    log_cdf = _log_cdf(h, k, direction, np.full(h.shape, rest))
    w_h = ((k - direction * h) + direction * rest * h) / scale
    w_k = ((h - direction * k) + direction * rest * k) / scale
    with np.errstate(invalid="ignore"):
        log_h, log_k = -0.5 * (h * h + _LOG_2PI), -0.5 * (k * k + _LOG_2PI)
        slope_h = np.exp(log_h + special.log_ndtr(w_h) - log_cdf)
        slope_k = np.exp(log_k + special.log_ndtr(w_k) - log_cdf)
        density = np.exp(log_h - 0.5 * (w_h * w_h + _LOG_2PI) - log_cdf)
    return log_cdf, slope_h, slope_k, density * scale * sign


def _log_cdf(h: Floats, k: Floats, sign: Floats, rest: Floats) -> Floats:
    """Log Phi2 where rho = sign (1 - rest)."""
    low, high = np.minimum(h, k), np.maximum(h, k)
    result = np.full(h.shape, np.nan)
    fine = ~(np.isnan(h) | np.isnan(k) | np.isnan(rest))
    one_sided = fine & (np.isinf(low) | np.isinf(high))
    # Phi2(h, inf) = Phi(h), and Phi2(h, -inf) = 0.
    result[one_sided] = special.log_ndtr(low[one_sided])
    same = fine & ~one_sided & (rest == 0.0)
    result[same] = np.where(
        sign[same] > 0.0, special.log_ndtr(low[same]), _log_between(low[same], high[same])
    )
    rows = fine & ~one_sided & ~same & (sign <= 0.0)
    result[rows] = _log_negative(low[rows], high[rows], rest[rows])
    rows = fine & ~one_sided & ~same & (sign > 0.0)
    if rows.any():
        result[rows] = _log_positive(low[rows], high[rows], rest[rows])
    return result


def _log_positive(low: Floats, high: Floats, rest: Floats) -> Floats:
    """Log Phi2 for rho = 1 - rest > 0 and low <= high."""
    scale = np.sqrt(rest * (2.0 - rest))
    w_low = ((high - low) + rest * low) / scale
    w_high = ((low - high) + rest * high) / scale
    result = np.empty(low.shape)
    enough = (high > _CANCELS) | (w_low >= 0.0)
    few = low[enough]
    whole = special.log_ndtr(few)
    part = _log_negative(few, -high[enough], rest[enough])
    result[enough] = whole + np.log1p(-np.exp(part - whole))
    far = ~enough
    result[far] = np.logaddexp(_log_edge(low[far], w_low[far]), _log_edge(high[far], w_high[far]))
    return result


def _log_edge(h: Floats, w: Floats) -> Floats:
    """Owen's integral along the part u <= w of the line at h < 0, for w <= 0."""
    b = -w[:, None]
    width = _REACH * _REACH / (b + np.sqrt(b * b + _REACH * _REACH))
    x = 0.5 * width * (_NODES + 1.0)
    with np.errstate(over="ignore"):
        values = np.exp(-x * (0.5 * x + b)) / (h[:, None] ** 2 + (b + x) ** 2)
        integral = (values @ _WEIGHTS) * 0.5 * width[:, 0]
        return np.log(-h * integral) - 0.5 * (h * h + w * w) - _LOG_2PI


def _log_negative(h: Floats, k: Floats, rest: Floats) -> Floats:
    """Log Phi2 for rho = rest - 1 <= 0."""
    scale = np.sqrt(rest * (2.0 - rest))
    w_h = ((k + h) - rest * h) / scale
    w_k = ((h + k) - rest * k) / scale
    inside = (w_h > 0.0) & (w_k > 0.0)
    turn = np.where(inside, -1.0, 1.0)
    swap = turn * w_h < turn * w_k
    result = _log_core(
        turn * np.where(swap, k, h),
        turn * np.where(swap, w_k, w_h),
        turn * np.where(swap, w_h, w_k),
        rest,
        scale,
    )
    if inside.any():
        corner = np.exp(result[inside])
        low, high = np.minimum(h, k)[inside], np.maximum(h, k)[inside]
        outside = special.ndtr(-low) + special.ndtr(-high) - corner
        between = np.logaddexp(_log_between(low, high), result[inside])
        with np.errstate(invalid="ignore"):
            result[inside] = np.where(outside < 0.5, np.log1p(-outside), between)
    return result


def _log_core(h: Floats, w: Floats, other: Floats, rest: Floats, scale: Floats) -> Floats:
    """Log Phi2 for rho = rest - 1 <= 0 from the Mills ratio, for other <= 0."""
    b = -w[:, None]
    above = np.maximum(w, 0.0)[:, None]
    lower = -np.minimum(above, _REACH)
    negative = np.maximum(b, 0.0)
    upper = np.where(b > 0.0, _REACH**2 / (negative + np.sqrt(negative**2 + _REACH**2)), _REACH)
    half = 0.5 * (upper - lower)
    x = lower + half * (_NODES + 1.0)  # the distance from the peak at max(w, 0)
    rho = 1.0 - rest[:, None]
    with np.errstate(over="ignore", divide="ignore"):
        exponent = -x * (0.5 * x + negative)
        mills = special.erfcx((-other[:, None] + rho * (above + x)) * 0.5**0.5)
        integral = ((np.exp(exponent) * mills) @ _WEIGHTS) * half[:, 0]
        peak = np.where(w > 0.0, 0.0, w)
        constant = 0.5 * np.log(np.pi / 2.0) - _LOG_2PI
        result: Floats = constant + np.log(integral * scale) - 0.5 * (h * h + peak * peak)
    return result


def _log_between(low: Floats, high: Floats) -> Floats:
    """Log of Phi(high) - Phi(-low), minus infinity where that is negative, for low <= high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        width = low + high
        central = np.log(
            0.5 * np.maximum(special.erf(low * 0.5**0.5) + special.erf(high * 0.5**0.5), 0.0)
        )
        # low < 0 < -low < high: two nearby tails, Phi(low) - Phi(-high)
        whole = special.log_ndtr(low)
        tails = whole + np.log(-np.expm1(special.log_ndtr(-high) - whole))
        # A short interval: the density at its middle, by Gauss-Legendre.
        middle = 0.5 * (high - low)
        x = middle[:, None] + 0.5 * width[:, None] * _NODES
        short = np.log((np.exp(-0.5 * (x * x - middle[:, None] ** 2)) @ _WEIGHTS) * width / 2.0)
        short -= 0.5 * (middle * middle + _LOG_2PI)
    result = np.where(low > -1.0, central, tails)
    result = np.where((low < 0.0) & (width < 2.0 / np.maximum(high, 1.0)), short, result)
    return np.where(width > 0.0, result, -np.inf)
