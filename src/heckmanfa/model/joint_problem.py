"""The joint likelihood of selection and outcome: its coordinates, and a linear outcome's terms.

gamma and beta are written on one design of all features, so a pass over the rows makes it once.
`probit_likelihood` has the terms of a binary outcome.

With u = z'gamma, e = (y - x'beta) / sigma and a = (u + rho e) / sqrt(1 - rho^2), a selected row
contributes log Phi(a) - e^2/2 - log sigma - log(2 pi)/2 and an unselected one log Phi(-u). In
s = log sigma and t = atanh rho, a = u cosh t + e sinh t, and every derivative is short.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    empty,
    highest,
    host,
    like,
    lowest,
    namespace,
    zeros,
)
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.model.linalg import Coordinates, Design, solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import log_cdf_and_mills, mills
from heckmanfa.model.probit import Probit

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class JointProblem(ABC):
    """The model in coordinates: gamma and beta are both written on one design of all features."""

    ends: ClassVar[tuple[str, ...]]
    """parameters of the errors, which follow gamma and beta: log scales, then atanh correlations"""
    many_maxima: ClassVar[bool] = False
    """whether the likelihood often has another maximum at |rho| = 1"""
    columns: tuple[int, ...]
    """positions in X of a block's k columns: the selection equation's, then those that only
    predict"""
    union: Coordinates
    """of all k columns; its first p are the probit's"""
    prediction: Floats
    """(1 + k, 1 + j) from beta to coefficients on the design"""
    prediction_back: Floats
    """(1 + j, 1 + j) from beta to coefficients of [1, X_S]"""
    selection_back: Floats
    """(1 + p, 1 + p) likewise for gamma"""
    prediction_gram: Floats
    """(1 + j, 1 + j) average of x x' over the selected rows"""
    centre: float
    scale: float
    """of the outcome among the selected rows; 0 and 1 if it is binary"""

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of coefficients in gamma and in beta."""
        return len(self.selection_back), self.prediction.shape[1]

    @property
    def scales(self) -> list[int]:
        """Positions in theta of log scales, which follow the units of the outcome."""
        first = sum(self.sizes)
        return [first + i for i, name in enumerate(self.ends) if name.startswith("log ")]

    @property
    def correlations(self) -> list[int]:
        """Positions in theta of atanh correlations."""
        first = sum(self.sizes)
        return [first + i for i, name in enumerate(self.ends) if name.startswith("atanh ")]

    @abstractmethod
    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""

    @abstractmethod
    def selected_slopes(self, block: Block, theta: Floats) -> Slopes:
        """First derivatives of the b rows of a block of selected rows."""

    @abstractmethod
    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of b selected rows, given z'gamma and x'beta.

        Derivatives are in x'beta, in z'gamma, and in each parameter of the errors.
        """

    def row_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) derivative of each row's log-likelihood, before weights."""
        p, j = self.sizes
        scores = zeros(block.features, len(block.selected), p + j + len(self.ends))
        scores[~block.selected] = self.unselected_scores(block, theta)
        rows = self.selected_slopes(block.only_selected(), theta)
        xp = namespace(rows.in_u)
        ones = rows.design.scaled(xp.ones_like(rows.in_u))
        in_beta = ones @ like(self.prediction, ones)
        scores[block.selected] = xp.concat(
            (
                ones[:, :p] * rows.in_u[:, None],
                in_beta * rows.in_mean[:, None],
                *(end[:, None] for end in rows.in_ends),
            ),
            axis=1,
        )
        return scores

    def unselected_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) the same of the unselected rows of a block, whose outcome says nothing."""
        others, z = self.unselected(block)
        p, j = self.sizes
        scores = zeros(block.features, len(others.selected), p + j + len(self.ends))
        scores[:, :p] = z.scaled(-mills(-z.times(theta[:p]))[0])
        return scores

    def unselected(self, block: Block) -> tuple[Block, Design]:
        """Return the unselected rows of a block, and their design of the selection equation."""
        others = block.keep(~block.selected)
        p, _ = self.sizes
        return others, self.union.design(others.features[:, : p - 1])

    def on_design(self, gamma: Floats, beta: Floats) -> Floats:
        """(1 + k, g + b) coefficients on the design of g gamma, (p, g), and b beta, (j, b)."""
        p, _ = self.sizes
        n = gamma.shape[1]
        both = np.zeros((len(self.prediction), n + beta.shape[1]))
        both[:p, :n] = gamma
        both[:, n:] = self.prediction @ beta
        return both

    @staticmethod
    @abstractmethod
    def outcome_units(moments: Moments) -> tuple[float, float]:
        """Centre and scale of the outcome in the likelihood."""

    @classmethod
    def build(cls, moments: Moments, probit: Probit, features: Positions) -> Self:
        """Set up the coordinates of both equations."""
        alone = [feature for feature in features if feature not in probit.features]
        root_m = moments.factor[0, 0]
        extra = moments.factor[:, moments.places(alone)]
        union = probit.coordinates.extended(
            extra[0] / root_m, np.asarray(np.linalg.norm(extra[1:], axis=0) / root_m)
        )
        root = moments.subset(features, imr=False, outcome=False)
        back = Coordinates.from_factor(root).back()
        order = (*probit.features, *alone)
        chosen = np.zeros((len(order) + 1, len(features) + 1))
        chosen[0, 0] = 1.0
        for place, feature in enumerate(features, start=1):
            chosen[order.index(feature) + 1, place] = 1.0
        half = root @ back
        centre, scale = cls.outcome_units(moments)
        return cls(
            columns=order,
            union=union,
            prediction=solve_upper(union.back(), chosen @ back),
            prediction_back=back,
            selection_back=probit.coordinates.back(),
            prediction_gram=half.T @ half / moments.n_selected,
            centre=centre,
            scale=scale,
        )


@dataclass(frozen=True)
class State:
    """The likelihood at some theta."""

    theta: Floats
    """gamma, beta (both inner coordinates) and the parameters of the errors, atanh rho last"""
    log_likelihood: float
    gradient: Floats
    hessian: Floats
    n: float
    n_ends: int
    """number of parameters of the errors"""


@dataclass(frozen=True)
class Slopes:
    """First derivatives of the log-likelihood of b selected rows."""

    design: Design
    in_u: Array
    """(b,) in u = z'gamma"""
    in_mean: Array
    """(b,) in x'beta"""
    in_ends: tuple[Array, ...]
    """(b,) in each parameter of the errors"""


def index_range(rows: Rows, problem: JointProblem, theta: Floats) -> tuple[float, float]:
    """Range of z'gamma among the selected rows."""
    ranges = rows.map(_block_range, problem, theta, columns=problem.columns, merge=widest)
    return widest(list(ranges))


# Functions over one block of rows. -----------------------------------------------------------


def scores_of(block: Block, problem: JointProblem, theta: Floats) -> Array:
    """`JointProblem.row_scores`, as a function over one block of rows."""
    return problem.row_scores(block, theta)


def unselected_terms(
    block: Block, problem: JointProblem, theta: Floats
) -> tuple[float, float, Floats, Floats]:
    """Sums over the unselected rows: log Phi(-u), rows, lambda(-u) z and delta(-u) z z'."""
    others, z = problem.unselected(block)
    value, ratio, slope = log_cdf_and_mills(-z.times(theta[: problem.sizes[0]]))
    n = float(len(value))
    if others.weight is not None:
        ratio, slope, value = (others.weight * part for part in (ratio, slope, value))
        n = float(others.weight.sum())
    return float(value.sum()), n, z.pull(ratio), z.gram(slope)


def widest(ranges: list[tuple[float, float]]) -> tuple[float, float]:
    """Join ranges of several blocks."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _block_range(block: Block, problem: JointProblem, theta: Floats) -> tuple[float, float]:
    p, _ = problem.sizes
    features = block.only_selected().features[:, : p - 1]
    index = problem.union.design(features).times(theta[:p])
    return lowest(index), highest(index)


@dataclass(frozen=True)
class LinearProblem(JointProblem):
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


def _evaluate(rows: Rows, problem: LinearProblem, theta: Floats) -> State:
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


def standardized(
    block: Block, problem: LinearProblem, theta: Floats
) -> tuple[Design, Array, Array]:
    """The design of a block of selected rows, and their u and e."""
    p, j = problem.sizes
    design = problem.union.design(block.features)
    u, mean = design.times(problem.on_design(theta[:p, None], theta[p : p + j, None])).T
    sigma = _scales(theta)[0]
    return design, u, ((block.outcome - problem.centre) / problem.scale - mean) / sigma


def _selected(block: Block, problem: LinearProblem, theta: Floats) -> _Selected:
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
    block: Block, problem: LinearProblem, theta: Floats
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


def row_slopes(block: Block, problem: LinearProblem, theta: Floats, direction: Floats) -> Array:
    """(b,) `LinearProblem.row_scores` times a direction, without the (b, d) scores."""
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
