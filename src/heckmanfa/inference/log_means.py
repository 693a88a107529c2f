"""Means on an outcome's own scale, of a model that is fitted on its logarithm; their derivatives.

With v = x'b, u = z'gamma and b_H = rho sigma, the errors being normal,

    log E[exp(y) | x]        = v + sigma^2 / 2,
    log E[exp(y) | x, s = 1] = v + sigma^2 / 2 + log Phi(u + b_H) - log Phi(u),
    log E[exp(y) | x, s = 0] = v + sigma^2 / 2 + log Phi(-u - b_H) - log Phi(-u),
    log E[s exp(y) | x]      = v + sigma^2 / 2 + log Phi(u + b_H),

where y is the logarithm. All are differences of logarithms, so nothing underflows where selection
is unlikely. With log(1 + y) the same holds for 1 + y.

With a = u + b_H, the derivatives of such a logarithm L are

    L_v = 1,   L_sigma = sigma,   L_b = lambda(a),   L_u = lambda(a) - lambda(u),
    L_ub = -delta(a),   L_uu = delta(u) - delta(a)

given selection; the same of (-u, -b_H), with the sign of L_b and L_u changed, given that a row is
not selected; and without the terms in lambda(u) and delta(u) of the outcome with 0 if it is not
selected. Those of exp(L) are products of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Array, Floats, namespace
from heckmanfa.data.outcomes import OutcomeTransform, from_log
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.model.expectation_parts import Bend, Parts, selection_parts
from heckmanfa.model.normal import log_cdf, mills
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

SCALES = ("response", "link")
_Number = float | Floats


def check_scale(scale: str, *, binary: bool = False) -> None:
    """Refuse a scale that does not exist, or that a ``binary`` outcome does not have."""
    if scale not in SCALES:
        raise InputError(
            f"{option('scale')} must be 'response' or 'link'; got {quoted(scale)}"
            f"{nearest(str(scale), SCALES)}"
        )
    if binary and scale == "link":
        raise InputError(
            f"{option('scale', 'link')} is for outcomes that are fitted on their logarithm; "
            "effects on a binary outcome are effects on its probability"
        )


def transform_of(fit: Fit, scale: str) -> OutcomeTransform | None:
    """Return the transform that predictions on this scale undo; None if there is none to undo."""
    return fit.spec.outcome_transform if scale == "response" else None


def log_mean(
    kind: str, mean: Array, index: Array | None, imr_coef: float | Array, sigma: float | Array
) -> Array:
    """Return the logarithm of a mean on the outcome's own scale, by row.

    ``index`` is None if every outcome was observed: all rows are then selected.
    """
    level = mean + 0.5 * sigma**2
    if kind == "marginal" or index is None:
        return level
    if kind == "expected":
        return level + log_cdf(index + imr_coef)
    side = 1.0 if kind == "selected" else -1.0
    return level + (log_cdf(side * (index + imr_coef)) - log_cdf(side * index))


def own_scale_mean(
    transform: OutcomeTransform,
    kind: str,
    mean: Array,
    index: Array | None,
    imr_coef: float | Array,
    sigma: float | Array,
) -> Array:
    """Return a mean on the outcome's own scale, by row; arguments are those of `log_mean`."""
    values = log_mean(kind, mean, index, imr_coef, sigma)
    if kind == "expected" and transform == "log1p" and index is not None:
        # E[s (1 + y)] less P(s = 1).
        return from_log(values, "log") - namespace(index).exp(log_cdf(index))
    return from_log(values, transform)


@dataclass(frozen=True)
class _Log:
    """L by row, and its derivatives in u and b_H."""

    value: Floats
    index: Floats
    dependence: Floats
    index_index: Floats
    index_dependence: Floats


def _log(kind: str, mean: Floats, index: Floats, imr_coef: _Number, sigma: _Number) -> _Log:
    """Evaluate L for a kind of mean."""
    value = np.asarray(log_mean(kind, mean, index, imr_coef, sigma))
    zero = np.zeros_like(value)
    if kind == "marginal":
        return _Log(value, zero, zero, zero, zero)
    side = -1.0 if kind == "unselected" else 1.0
    ratio, slope = mills(side * (index + imr_coef))
    if kind == "expected":
        return _Log(value, ratio, ratio, -slope, -slope)
    below, bend = mills(side * index)
    return _Log(value, side * (ratio - below), side * ratio, bend - slope, -slope)


def log_parts(
    transform: OutcomeTransform,
    kind: str,
    mean: Floats,
    index: Floats,
    imr_coef: _Number,
    sigma: _Number,
) -> Parts:
    """Evaluate the logarithm of a mean: of y, or of 1 + y with "log1p".

    Its second derivatives are not those of this logarithm, and not needed.
    """
    if kind == "expected" and transform == "log1p":
        # 1 + E[s y], which is positive whatever y is.
        parts = own_scale_parts(transform, kind, mean, index, imr_coef, sigma)
        assert parts.sigma is not None
        share = 1.0 / (1.0 + parts.value)
        return replace(
            parts,
            value=np.log1p(parts.value),
            mean=share * parts.mean,
            index=share * parts.index,
            dependence=share * parts.dependence,
            sigma=share * parts.sigma,
        )
    log, ones = _log(kind, mean, index, imr_coef, sigma), np.ones_like(mean)
    return Parts(
        log.value,
        ones,
        log.index,
        log.dependence,
        log.index_index,
        log.index_dependence,
        sigma=sigma * ones,
        index_sigma=0.0 * ones,
    )


def own_scale_parts(
    transform: OutcomeTransform,
    kind: str,
    mean: Floats,
    index: Floats,
    imr_coef: _Number,
    sigma: _Number,
) -> Parts:
    """Evaluate a mean on the outcome's own scale, or P(s = 1 | x)."""
    zero = np.zeros_like(index)
    if kind == "selection":
        return replace(selection_parts(index), sigma=zero, index_sigma=zero)
    log = _log(kind, mean, index, imr_coef, sigma)
    with np.errstate(over="ignore", invalid="ignore"):
        level = np.exp(log.value)
        parts = Parts(
            value=level,
            mean=level,
            index=level * log.index,
            dependence=level * log.dependence,
            index_index=level * (log.index**2 + log.index_index),
            index_dependence=level * (log.index * log.dependence + log.index_dependence),
            bend=Bend(level, level * log.index, level * log.dependence, level * sigma),
            sigma=level * sigma,
            index_sigma=level * log.index * sigma,
        )
        if transform == "log":
            return parts
        if kind != "expected":
            return replace(parts, value=np.expm1(log.value))
    chance = selection_parts(index)
    return replace(
        parts,
        value=parts.value - chance.value,
        index=parts.index - chance.index,
        index_index=parts.index_index - chance.index_index,
    )
