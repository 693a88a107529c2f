"""Average densities at the cut points of an ordered outcome: what turns coefficients into effects.

The probability of class j or a higher one is Phi(x'b - c_j), whose slope in a feature is its
coefficient times phi(x'b - c_j). Averages are over the selected rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats, host, like, namespace
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.model.covariance import CovarianceKind, sandwich
from heckmanfa.model.joint_problem import scores_of
from heckmanfa.model.ordered_likelihood import OrderedApart, cuts_of

_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class CutSlopes:
    """Averages at each of C cut points; J is the number of prediction features."""

    mean: Floats
    """(C,) average of phi(x'b - c)"""
    gradient: Floats
    """(C, 1 + J) its derivatives in b, intercept first; that in c is minus the first"""


def slopes_at_cuts(rows: Rows, features: Positions, coef: Floats, cuts: Floats) -> CutSlopes:
    """Average phi(x'b - c) over the selected rows, for every cut point c, in one pass."""
    m, density, bent, moments = total(
        rows.map(_slope_terms, coef, cuts, columns=list(features), merge=total)
    )
    return CutSlopes(density / m, -np.column_stack([bent, moments]) / m)


def naive_covariance(apart: OrderedApart, kind: CovarianceKind, rows: Rows) -> Floats:
    """Return the covariance of the ordered probit's coefficients and steps, (1 + J + C - 1,).

    Coefficients come first, then the steps, the first of them first.
    """
    problem, theta = apart.problem, apart.theta
    p, j = problem.sizes
    free = np.arange(p, problem.size - 1)
    inner = apart.inverse
    if kind.cov_type != "classical":
        bread = np.zeros((len(free), problem.size))
        bread[:, free] = inner
        inner = sandwich(rows, kind, bread, scores_of, problem, theta, columns=problem.columns)
    steps = np.exp(theta[p + j : -1])
    jacobian = np.zeros((len(free), len(free)))
    jacobian[:j, :j] = problem.prediction_back
    # Theta has the logarithms of steps, the last of them first.
    jacobian[j:, j:] = np.diag(steps)[::-1]
    return np.asarray(jacobian @ inner @ jacobian.T)


def cut_index(coef: Floats, steps: Floats, place: int) -> Floats:
    """Return coefficients whose intercept is less by a cut point."""
    moved = coef.copy()
    moved[0] -= cuts_of(steps)[place]
    return moved


def _slope_terms(block: Block, coef: Floats, cuts: Floats) -> tuple[float, Floats, Floats, Floats]:
    """Rows, sums of phi and of the index times phi, and of the features times the latter."""
    block = block.only_selected()
    xp = namespace(block.features)
    index = block.features @ like(coef[1:], block.features) + float(coef[0])
    index = index[:, None] - like(cuts, block.features)
    density = xp.exp(-0.5 * index * index) / _ROOT_2PI
    m = float(len(index))
    if block.weight is not None:
        density = density * block.weight[:, None]
        m = float(block.weight.sum())
    bent = index * density
    moments = host(bent.T @ block.features)
    return m, host(density.sum(axis=0)), host(bent.sum(axis=0)), moments
