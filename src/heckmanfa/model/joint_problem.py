"""The coordinates of a joint likelihood of selection and outcome, which both models share.

gamma and beta are written on one design of all features, so a pass over the rows makes it once.
What a row contributes is in `likelihood_terms` for a linear outcome, and in
`probit_likelihood_terms` for a binary one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import Array, Floats, highest, like, lowest, namespace, zeros
from heckmanfa.data.rows import Block, Positions, Rows
from heckmanfa.model.linalg import Coordinates, Design, solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import log_cdf_and_mills, mills
from heckmanfa.model.probit import Probit


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
