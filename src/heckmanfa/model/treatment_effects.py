"""Average effects of a treatment, with their derivatives in all estimates.

The effect on a row is x'(beta1 - beta0) + kappa h, where kappa = rho1 sigma1 - rho0 sigma0 and h is
what is known of the error of its treatment: nothing on average (0), lambda(u) for the treated,
-lambda(-u) for the untreated, and -u for those at the margin, whom a slightly larger index
u = z'gamma would treat. An average effect weighs the rows by omega: 1, whether a row is treated (or
its probability, where nobody knows), whether it is untreated, and phi(u), the density of being at
the margin.

With E = sum omega e / sum omega, the derivatives are averages as well:

    dE/dgamma = (sum omega kappa h' z + sum omega' (e - E) z) / sum omega.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from heckmanfa.data.arrays import Floats, host
from heckmanfa.data.rows import Block, Positions, pick
from heckmanfa.model.normal import log_cdf, mills

EffectKind = Literal["ate", "att", "atu", "margin"]
KINDS: tuple[EffectKind, ...] = get_args(EffectKind)
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class EffectEstimates:
    """What effects depend on, for j features and p selection features."""

    difference: Floats
    """(1 + j,) beta1 - beta0"""
    kappa: float
    """rho1 sigma1 - rho0 sigma0"""
    gamma: Floats
    """(1 + p,)"""


@dataclass(frozen=True, eq=False)
class AverageEffect:
    """An average effect and its derivatives."""

    value: float
    in_difference: Floats
    """(1 + j,)"""
    in_kappa: float
    in_gamma: Floats
    """(1 + p,)"""


def effect_sums(
    kind: EffectKind,
    estimates: EffectEstimates,
    x: Floats,
    z: Floats,
    weight: Floats,
    treated: Floats | None,
    at: float = 0.0,
) -> Floats:
    """Sums over n rows, (4 + (1 + j) + 3 (1 + p),), which `average_effect` divides.

    ``x`` (n, 1 + j) and ``z`` (n, 1 + p) begin with a constant. ``treated`` (n,) says who is;
    without it, rows count by their probability. ``at`` is taken off the logarithms of all weights.
    """
    u = z @ estimates.gamma
    zero = np.zeros_like(u)
    h, slope, log_weight, in_u = zero, zero, zero, zero
    if kind in ("att", "atu"):
        sign = 1.0 if kind == "att" else -1.0
        ratio, delta = mills(sign * u)
        h, slope = sign * ratio, -delta
        if treated is None:
            log_weight, in_u = np.asarray(log_cdf(sign * u)), sign * ratio
        else:
            weight = weight * (treated if kind == "att" else 1.0 - treated)
    elif kind == "margin":
        h, slope = -u, zero - 1.0
        log_weight, in_u = -0.5 * u * u - _LOG_SQRT_2PI, -u
    omega = weight * np.exp(log_weight - at)
    effect = x @ estimates.difference + estimates.kappa * h
    in_z = np.column_stack([omega * estimates.kappa * slope, omega * in_u * effect, omega * in_u])
    return np.concatenate(
        [
            [omega.sum(), omega @ effect, omega @ h, weight.sum()],
            omega @ x,
            (in_z.T @ z).reshape(-1),
        ]
    )


def largest_log_weight(kind: EffectKind, index: Floats, *, known: bool) -> float:
    """Return the largest logarithm of the weights of rows, which keeps them from vanishing."""
    if kind == "margin":
        return float(np.max(-0.5 * index**2 - _LOG_SQRT_2PI))
    if kind == "ate" or known:
        return 0.0
    return float(np.max(log_cdf(index if kind == "att" else -index)))


def average_effect(sums: Floats, n_outcome: int, n_selection: int) -> AverageEffect:
    """Divide what `effect_sums` gives; the numbers of coefficients are 1 + j and 1 + p."""
    total, effect, in_h, _ = sums[:4]
    if not total > 0:
        nothing = np.full(n_outcome, np.nan), np.nan, np.full(n_selection, np.nan)
        return AverageEffect(float("nan"), *nothing)
    value = effect / total
    slope, weighted, moved = sums[4 + n_outcome :].reshape(3, n_selection)
    return AverageEffect(
        value=float(value),
        in_difference=sums[4 : 4 + n_outcome] / total,
        in_kappa=float(in_h / total),
        in_gamma=(slope + weighted - value * moved) / total,
    )


def index_ranges(block: Block, gamma: Floats) -> Floats:
    """(2, 2) range of z'gamma among the treated and the untreated rows of a block.

    The columns of the block are those of the treatment equation.
    """
    index = host(block.features) @ gamma[1:] + gamma[0]
    treated = np.asarray(host(block.selected), dtype=bool)
    groups = index[treated], index[~treated]
    return np.array([[own.min(initial=np.inf), own.max(initial=-np.inf)] for own in groups])


def widest_ranges(parts: list[Floats]) -> Floats:
    """Join ranges of several blocks."""
    stacked = np.array(parts)
    return np.stack([stacked[:, :, 0].min(axis=0), stacked[:, :, 1].max(axis=0)], axis=1)


def block_sums(
    block: Block, estimates: EffectEstimates, outcome: Positions, selection: Positions
) -> tuple[Floats]:
    """`effect_sums` of every kind over a block of rows, (kinds, ...)."""
    features = host(block.features)
    n = len(features)
    x, z = (
        np.column_stack([np.ones(n), pick(features, places)]) for places in (outcome, selection)
    )
    weight = np.ones(n) if block.weight is None else host(block.weight)
    treated = np.asarray(host(block.selected), dtype=np.float64)
    return (np.array([effect_sums(kind, estimates, x, z, weight, treated) for kind in KINDS]),)
