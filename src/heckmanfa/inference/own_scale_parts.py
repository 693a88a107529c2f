"""Expectations on the own scale of an outcome that is fitted on its log, with their derivatives.

`log_means` has the logarithm L of each. With a = u + b_H, its derivatives are

    L_v = 1,   L_sigma = sigma,   L_b = lambda(a),   L_u = lambda(a) - lambda(u),
    L_ub = -delta(a),   L_uu = delta(u) - delta(a)

given selection; the same of (-u, -b_H), with the sign of L_b and L_u changed, given that a row is
not selected; and without the terms in lambda(u) and delta(u) of the outcome with 0 if it is not
selected. Those of exp(L) are products of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.outcomes import OutcomeTransform
from heckmanfa.inference.log_means import log_mean
from heckmanfa.model.expectation_parts import Bend, Parts, selection_parts
from heckmanfa.model.normal import mills

_Number = float | Floats


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
    log, one = _log(kind, mean, index, imr_coef, sigma), np.ones_like(mean)
    return Parts(
        log.value,
        one,
        log.index,
        log.dependence,
        log.index_index,
        log.index_dependence,
        sigma=sigma * one,
        index_sigma=0.0 * one,
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
