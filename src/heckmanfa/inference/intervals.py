"""Intervals around predictions: for a new outcome, and for the expectation itself.

Given that its row is selected, an outcome's error is skewed: with e and w standard normal and
correlated by rho, it is e given w > -u (an extended skew normal law). Its quantiles are found by
Newton's method on a distribution function that keeps its digits where selection is most unlikely.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable, nearest
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.targets import (
    Estimates,
    design_blocks,
    level_effect,
    parts_of,
)
from heckmanfa.model.normal import inverse_mills, log_cdf, mills
from heckmanfa.results.reference import Reference, check_level, reference_of
from heckmanfa.text.printable import quoted

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# A normal variable is within this of zero but for a probability of 4e-19.
_REACH = 80.0**0.5
_MAX_ITERATIONS = 200
_SMALL_STEP = 1e-8


def check_interval(return_interval: str, conf_level: float) -> None:
    """Refuse an interval that there is not, and a level that is no probability."""
    kinds = ["prediction", "confidence"]
    if return_interval not in kinds:
        raise InputError(
            "return_interval must be 'prediction', 'confidence' or None; got "
            f"{quoted(return_interval)}" + nearest(str(return_interval), kinds)
        )
    check_level(conf_level)


def interval(
    fit: Fit,
    table: FeatureTable,
    kind: str,
    return_interval: str,
    conf_level: float,
) -> Floats:
    """Intervals for the rows of a table; see `Heckman.predict`.

    Parameters
    ----------
    fit : Fit
    table : FeatureTable
        As the model reads it.
    kind : {"marginal", "selected", "unselected"}
    return_interval : {"prediction", "confidence"}
    conf_level : float

    Returns
    -------
    ndarray of shape (n, 2)
        NaN where a row misses a regressor, or the variance of an estimate is not known.
    """
    if fit.probit is None:
        kind = "marginal"
    if return_interval == "prediction" and kind != "marginal" and not abs(fit.rho) < 1:
        raise NotIdentifiedError(
            f"rho is estimated at {fit.rho:.4g}, outside (-1, 1), so the law of an outcome "
            "given selection is not known; use method='ml', or kind='marginal'"
        )
    estimates = Estimates.of(fit, prediction=True, selection=kind != "marginal")
    reference = reference_of(fit)
    quantile = reference.quantile(conf_level)
    # The t distributed error of an estimate reaches as far as a normal one so much larger.
    wider = quantile / Reference().quantile(conf_level)
    limits = np.full((table.shape[0], 2), np.nan)
    with one_blas_thread(), np.errstate(invalid="ignore"):
        for where, design in design_blocks(table, estimates.columns):
            if return_interval == "prediction":
                limits[where] = _new_outcome(fit, estimates, kind, design, conf_level, wider)
                continue
            index = design @ estimates.selection_coef
            effect = level_effect(estimates, parts_of(kind, index, estimates.imr_coef), design)
            error = quantile * np.sqrt(effect.variance(estimates.covariance))
            limits[where] = np.column_stack([effect.values - error, effect.values + error])
    return limits


def _new_outcome(
    fit: Fit,
    estimates: Estimates,
    kind: str,
    design: Floats,
    conf_level: float,
    wider: float,
) -> Floats:
    """Equal-tailed limits of a new outcome's law, the error of x'b-hat added to its own."""
    k = design.shape[1]
    mean = design @ estimates.coef
    variance = np.sum((design @ estimates.covariance[:k, :k]) * design, axis=1)
    # The square root makes NaN of a variance that is negative.
    sigma = np.hypot(fit.sigma, wider * np.sqrt(variance))
    tails = np.array([0.5 - 0.5 * conf_level, 0.5 + 0.5 * conf_level])
    if kind == "marginal":
        return np.asarray(mean[:, None] + sigma[:, None] * special.ndtri(tails))
    side = 1.0 if kind == "selected" else -1.0
    index = side * (design @ estimates.selection_coef)
    rho = side * fit.rho * fit.sigma / sigma
    limits = [mean + sigma * selected_quantile(one, index, rho) for one in tails]
    return np.column_stack(limits)


def selected_quantile(probability: float, index: Floats, rho: Floats) -> Floats:
    """Quantile of e given w > -u, where e and w are standard normal with correlation rho.

    Parameters
    ----------
    probability : float
        In (0, 1).
    index : (n,) ndarray
        u.
    rho : (n,) ndarray
        In (-1, 1).

    Returns
    -------
    (n,) ndarray
        NaN where u or rho is.
    """
    values = np.full(len(index), np.nan)
    known = np.flatnonzero(np.isfinite(index) & np.isfinite(rho))
    u, size = index[known], np.abs(rho[known])
    # The law for -rho is that for rho, mirrored.
    side = np.where(rho[known] < 0, -1.0, 1.0)
    goal = np.where(side < 0, 1.0 - probability, probability)
    ratio, slope = mills(u)
    spread = np.sqrt((1.0 - size) * (1.0 + size) + size**2 * (1.0 - slope))
    centre = size * ratio
    # Cantelli's inequality; a little more, since the spread is rounded.
    low = centre - 1.001 * spread * np.sqrt((1.0 - goal) / goal)
    high = centre + 1.001 * spread * np.sqrt(goal / (1.0 - goal))
    q = np.clip(centre + spread * special.ndtri(goal), low, high)
    todo = np.arange(len(known))
    for _ in range(_MAX_ITERATIONS):
        at, uu, rr = q[todo], u[todo], size[todo]
        gap = selected_cdf(at, uu, rr) - goal[todo]
        low[todo] = np.where(gap < 0, at, low[todo])
        high[todo] = np.where(gap > 0, at, high[todo])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = at - gap / _density(at, uu, rr)
        astray = ~((new >= low[todo]) & (new <= high[todo]))
        new = np.where(astray, 0.5 * (low[todo] + high[todo]), new)
        q[todo] = new
        # What is left after such a step of Newton's is of the order of its square.
        todo = todo[np.abs(new - at) > _SMALL_STEP * spread[todo] + 4e-16 * np.abs(new)]
        if len(todo) == 0:
            break
    values[known] = side * q
    return values


def selected_cdf(q: Floats, u: Floats, rho: Floats) -> Floats:
    """P(e <= q | w > -u), where e and w are standard normal with correlation rho in [0, 1).

    e = rho w + r v with independent normal v, r = sqrt(1 - rho^2). The part with the smaller
    spread is integrated over, in which the distribution function of the other one is smooth, so
    that one rule serves all; both factors are scaled by P(w > -u), so that none underflows.

    Parameters
    ----------
    q, u, rho : (n,) ndarray

    Returns
    -------
    (n,) ndarray
    """
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    values = np.empty(len(q))
    over_w = rho * np.sqrt(1.0 - mills(u)[1]) <= r
    for chosen, integral in ((over_w, _over_w), (~over_w, _over_v)):
        if chosen.any():
            values[chosen] = integral(*(one[chosen, None] for one in (q, u, rho, r)))
    return np.clip(values, 0.0, 1.0)


def _over_w(q: Floats, u: Floats, rho: Floats, r: Floats) -> Floats:
    start = np.maximum(-u, -_REACH)
    # Far left, w + u is nearly exponential with rate |u|.
    below = np.minimum(u, 0.0)
    length = np.where(u < 0, _REACH**2 / (np.sqrt(below**2 + _REACH**2) - below), _REACH - start)
    s = 0.5 * length * (1.0 + _NODES)
    density = inverse_mills(-start) * np.exp(-start * s - 0.5 * s * s)
    inner = special.ndtr((q - rho * (start + s)) / r)
    return np.asarray(np.sum(_WEIGHTS * 0.5 * length * density * inner, axis=1))


def _over_v(q: Floats, u: Floats, rho: Floats, r: Floats) -> Floats:
    # Beyond this point rho w + r v <= q leaves no w > -u.
    stop = np.clip((q + rho * u) / r, -_REACH, _REACH)
    length = stop + _REACH
    v = -_REACH + 0.5 * length * (1.0 + _NODES)
    beyond = np.maximum((q - r * v) / rho + u, 0.0)
    # P(w > -u + beyond) / P(w > -u), without the squares that both terms share far left.
    below = np.minimum(u, 0.0)
    ratio = inverse_mills(below) / inverse_mills(below - beyond)
    far = ratio * np.exp(below * beyond - 0.5 * beyond**2)
    inner = 1.0 - np.where(u < 0, far, np.exp(log_cdf(u - beyond) - log_cdf(u)))
    density = np.exp(-0.5 * v * v - _LOG_SQRT_2PI)
    return np.asarray(np.sum(_WEIGHTS * 0.5 * length * density * inner, axis=1))


def _density(q: Floats, u: Floats, rho: Floats) -> Floats:
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    value = -0.5 * q * q - _LOG_SQRT_2PI + log_cdf((u + rho * q) / r) - log_cdf(u)
    return np.asarray(np.exp(value))
