"""The joint likelihood of selection and a linear outcome: its value and derivatives.

With u = z'gamma, e = (y - x'beta) / sigma and a = (u + rho e) / sqrt(1 - rho^2), a selected row
contributes log Phi(a) - e^2/2 - log sigma - log(2 pi)/2 and an unselected one log Phi(-u). In
s = log sigma and t = atanh rho, a = u cosh t + e sinh t, and every derivative is short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    empty,
    host,
    namespace,
    zeros,
)
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.model.joint_problem import JointProblem, Slopes, State, unselected_terms
from heckmanfa.model.linalg import Design
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import log_cdf_and_mills, mills

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class Problem(JointProblem):
    """The model of a linear outcome."""

    ends: ClassVar[tuple[str, ...]] = ("log sigma", "atanh rho")

    @staticmethod
    def outcome_units(moments: Moments) -> tuple[float, float]:
        """Mean and standard deviation of the outcome among the selected rows."""
        outcome, root_m = moments.factor[:, -1], moments.factor[0, 0]
        return float(outcome[0] / root_m), float(np.linalg.norm(outcome[1:]) / root_m)

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        return _evaluate(rows, self, theta)

    def selected_slopes(self, block: Block, theta: Floats) -> Slopes:
        """First derivatives of the b rows of a block of selected rows."""
        rows = _selected(block, self, theta)
        in_mean = -rows.d_e / _scales(theta)[0]
        in_ends = -rows.e * rows.d_e - 1.0, rows.ratio * rows.a_t
        return Slopes(rows.design, rows.d_u, in_mean, in_ends)

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of selected rows; see `JointProblem`."""
        sigma, cosh, sinh = _scales(theta)
        e = ((outcome - self.centre) / self.scale - mean) / sigma
        log_cdf, ratio, _ = log_cdf_and_mills(cosh * index + sinh * e)
        d_e = sinh * ratio - e
        value = log_cdf - 0.5 * e * e - (float(theta[-2]) + _HALF_LOG_2PI)
        in_ends = [-e * d_e - 1.0, ratio * (sinh * index + cosh * e)]
        return [value, -d_e / sigma, cosh * ratio, *in_ends]


def _evaluate(rows: Rows, problem: Problem, theta: Floats) -> State:
    """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        scalars, others, other_gram, vectors, gram = total(
            rows.map(_terms, problem, theta, columns=problem.columns, merge=total)
        )
        value, n, m, d_s, d_t, d_ss, d_st, d_tt = scalars
        p, j = problem.sizes
        sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
        # gamma is written on the first columns of the design, beta on all of them.
        to_beta = problem.prediction
        in_gamma, in_beta = vectors[:p], to_beta.T @ vectors
        gradient = np.concatenate([in_gamma[:, 0] - others, in_beta[:, 1], [d_s, d_t]])
        # Every block is -delta times products of z cosh and -x sinh / sigma, except for -x x'.
        hessian = np.zeros((p + j + 2, p + j + 2))
        hessian[:p, :p] = -(cosh**2) * gram[:p, :p] - other_gram
        hessian[:p, p:-2] = cosh * sinh / sigma * gram[:p] @ to_beta
        hessian[p:-2, p:-2] = (
            -(sinh**2) * to_beta.T @ gram @ to_beta - m * problem.prediction_gram
        ) / sigma**2
        hessian[:p, -2:] = in_gamma[:, 2:4]
        hessian[p:-2, -2:] = in_beta[:, 4:6]
        hessian[-2:, -2:] = [[d_ss, d_st], [d_st, d_tt]]
        lower = np.tril_indices(len(hessian), -1)
        hessian[lower] = hessian.T[lower]
        value = float(value) - (float(theta[-2]) + _HALF_LOG_2PI) * float(m)
    if not (np.isfinite(value) and np.all(np.isfinite(hessian))):
        value = -np.inf
    return State(theta, value, gradient, hessian, float(n), 2)


# Functions over one block of rows. -----------------------------------------------------------


def _scales(theta: Floats) -> tuple[float, float, float]:
    """sigma, cosh t and sinh t, as floats that multiply arrays on any device."""
    return float(np.exp(theta[-2])), float(np.cosh(theta[-1])), float(np.sinh(theta[-1]))


@dataclass(frozen=True)
class _Selected:
    """Selected rows of a block at some theta, with the first derivatives of each row."""

    design: Design
    e: Array
    a: Array
    a_t: Array
    """derivative of a in t"""
    log_cdf: Array
    ratio: Array
    slope: Array
    d_u: Array
    d_e: Array


def standardized(block: Block, problem: Problem, theta: Floats) -> tuple[Design, Array, Array]:
    """The design of a block of selected rows, and their u and e."""
    p, j = problem.sizes
    design = problem.union.design(block.features)
    u, mean = design.times(problem.on_design(theta[:p, None], theta[p : p + j, None])).T
    sigma = _scales(theta)[0]
    return design, u, ((block.outcome - problem.centre) / problem.scale - mean) / sigma


def _selected(block: Block, problem: Problem, theta: Floats) -> _Selected:
    design, u, e = standardized(block, problem, theta)
    _, cosh, sinh = _scales(theta)
    a = cosh * u + sinh * e
    log_cdf, ratio, slope = log_cdf_and_mills(a)
    return _Selected(
        design=design,
        e=e,
        a=a,
        a_t=sinh * u + cosh * e,
        log_cdf=log_cdf,
        ratio=ratio,
        slope=slope,
        d_u=cosh * ratio,
        d_e=sinh * ratio - e,
    )


def _terms(
    block: Block, problem: Problem, theta: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Sums over a block for the log-likelihood and its derivatives.

    First (8,) scalars: log Phi - e^2/2, the numbers of rows and of selected rows, and derivatives
    in s, t, ss, st and tt. Of unselected rows, lambda(-u) z and delta(-u) z z'. Of selected rows,
    (1 + k, 6), the design times derivatives in u, x'beta, us, ut, xs and xt, and delta(a) times
    products of the design.
    """
    value, n, in_gamma, in_gammas = unselected_terms(block, problem, theta)
    chosen = block.only_selected()
    rows = _selected(chosen, problem, theta)
    sigma, cosh, sinh = _scales(theta)
    e, d_e, bend = rows.e, rows.d_e, rows.slope * rows.a_t
    # Second derivatives in (u, e, t), then by the chain rule in (u, x'beta, s, t).
    d_ee = -(sinh**2) * rows.slope - 1.0
    d_et = cosh * rows.ratio - sinh * bend
    columns = empty(chosen.features, len(e), 6)
    columns[:, 0] = rows.d_u
    columns[:, 1] = -d_e / sigma
    columns[:, 2] = (cosh * sinh) * (e * rows.slope)
    columns[:, 3] = sinh * rows.ratio - cosh * bend
    columns[:, 4] = (d_ee * e + d_e) / sigma
    columns[:, 5] = -d_et / sigma
    each = namespace(e).stack(
        (
            rows.log_cdf - 0.5 * e * e,
            -e * d_e - 1.0,
            rows.ratio * rows.a_t,
            e * (e * d_ee + d_e),
            -e * d_et,
            rows.ratio * rows.a - bend * rows.a_t,
        )
    )
    if chosen.weight is None:
        m, summed, curvature = float(len(e)), host(each.sum(axis=1)), rows.slope
    else:
        m, summed = float(chosen.weight.sum()), host(each @ chosen.weight)
        columns *= chosen.weight[:, None]
        curvature = chosen.weight * rows.slope
    return (
        np.array([value + summed[0], n + m, m, *summed[1:]]),
        in_gamma,
        in_gammas,
        rows.design.pull(columns),
        rows.design.gram(curvature),
    )


def row_slopes(block: Block, problem: Problem, theta: Floats, direction: Floats) -> Array:
    """(b,) `Problem.row_scores` times a direction, without the (b, d) scores."""
    p, j = problem.sizes
    slopes = zeros(block.features, len(block.selected))
    z = problem.unselected(block)[1]
    in_u, along = z.times(np.column_stack([theta[:p], direction[:p]])).T
    slopes[~block.selected] = -mills(-in_u)[0] * along
    rows = _selected(block.only_selected(), problem, theta)
    both = problem.on_design(direction[:p, None], direction[p : p + j, None])
    in_u, in_mean = rows.design.times(both).T
    slopes[block.selected] = (
        rows.d_u * in_u
        - rows.d_e * in_mean / _scales(theta)[0]
        - (rows.e * rows.d_e + 1.0) * float(direction[-2])
        + rows.ratio * rows.a_t * float(direction[-1])
    )
    return slopes
