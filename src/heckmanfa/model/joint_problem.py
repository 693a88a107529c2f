"""Joint likelihoods: what their parameters are, those of selection models, and a linear outcome's.

In a selection model, gamma and beta are written on one design of all features, so a pass over the
rows makes it once. `probit_likelihood` has the terms of a binary outcome.

With u = z'gamma, e = (y - x'beta) / sigma and a = (u + rho e) / sqrt(1 - rho^2), a selected row
contributes log Phi(a) - e^2/2 - log sigma - log(2 pi)/2 and an unselected one log Phi(-u). In
s = log sigma and t = atanh rho, a = u cosh t + e sinh t, and every derivative is short.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
from heckmanfa.model.error_terms import RHO, SIGMA, ErrorTerm, single_correlation
from heckmanfa.model.linalg import Coordinates, Design, solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import log_cdf_and_mills, mills
from heckmanfa.model.probit import Probit

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class JointProblem(ABC):
    """A joint likelihood of some rows, whose parameters are named blocks of a vector theta.

    theta holds the coefficients of the selection equation, those of each prediction equation, and
    the parameters of the errors, on the scales of their transforms.
    """

    ends: ClassVar[tuple[ErrorTerm, ...]]
    """parameters of the errors, in the order of theta"""
    many_maxima: ClassVar[bool] = False
    """whether the likelihood is bounded, and often has another maximum at |rho| = 1"""
    columns: tuple[int, ...]
    """positions in X of a block's k columns"""
    centre: float
    scale: float
    """of the outcome among the selected rows; 0 and 1 if it has no units here"""

    @property
    @abstractmethod
    def backs(self) -> dict[str, Floats]:
        """(1 + j, 1 + j) from theta to coefficients of [1, X_S], by equation, in theta's order.

        The first equation is that of selection; others are in units of the outcome.
        """

    @abstractmethod
    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""

    @abstractmethod
    def row_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) derivative of each row's log-likelihood, before weights."""

    def beyond_saddle(self, state: State, free: Any) -> Floats | None:
        """Return where to go on from a stationary point that is not a maximum; None if it is one.

        ``free`` are as in `heckmanfa.model.newton`.
        """
        return None

    def stepping(self, state: State) -> State:
        """Return a state's derivatives in the coordinates in which Newton's method steps."""
        return state

    def moved(self, theta: Floats, step: Floats) -> Floats:
        """Return theta after a step in the coordinates of `stepping`."""
        return theta + step

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients of all equations, which precede the parameters of the errors."""
        return sum(len(back) for back in self.backs.values())

    @property
    def error_terms(self) -> tuple[ErrorTerm, ...]:
        """Parameters of the errors in theta's order: ``ends``, unless the data say how many."""
        return self.ends

    @property
    def size(self) -> int:
        """Number of parameters, d."""
        return self.n_coefficients + len(self.error_terms)

    def equation(self, name: str) -> slice:
        """Return where the coefficients of an equation are in theta."""
        first = 0
        for other, back in self.backs.items():
            if other == name:
                return slice(first, first + len(back))
            first += len(back)
        raise KeyError(name)

    @property
    def input_order(self) -> list[str]:
        """Names of the equations in the order of parameters on the input's scale."""
        selection, *predictions = self.backs
        return [*predictions, selection]

    def units(self, name: str) -> tuple[float, float]:
        """Return what the intercept of an equation is shifted by, and what scales coefficients."""
        return (0.0, 1.0) if name == next(iter(self.backs)) else (self.centre, self.scale)

    def place(self, name: str) -> int:
        """Return where a parameter of the errors is in theta."""
        return self.n_coefficients + [term.name for term in self.error_terms].index(name)

    @property
    def rho(self) -> int | None:
        """Where theta has the one correlation of the errors; None if there are several or none."""
        name = single_correlation(self.error_terms)
        return None if name is None else self.place(name)

    def all_but(self, place: int) -> NDArray[np.intp]:
        """Return the positions in theta of all other parameters."""
        return np.delete(np.arange(self.size), place)

    @property
    def scales(self) -> list[int]:
        """Positions in theta of log scales, which follow the units of the outcome."""
        return [self.place(term.name) for term in self.error_terms if term.in_units]

    @property
    def correlations(self) -> list[int]:
        """Positions in theta of atanh correlations."""
        return [self.place(term.name) for term in self.error_terms if term.is_correlation]


@dataclass(frozen=True)
class SelectionProblem(JointProblem):
    """The model of an outcome seen in selected rows alone, by one prediction equation.

    gamma and beta are both written on one design of all features. A row that is not selected
    contributes log Phi(-u). ``columns`` are the selection equation's, then those that only predict.
    """

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

    @property
    def backs(self) -> dict[str, Floats]:
        """From theta to the coefficients of both equations."""
        return {"selection": self.selection_back, "prediction": self.prediction_back}

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of coefficients in gamma and in beta."""
        return len(self.selection_back), self.prediction.shape[1]

    @abstractmethod
    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of b selected rows, given z'gamma and x'beta.

        Derivatives are in x'beta, in z'gamma, and in each parameter of the errors.
        """

    def row_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) derivative of each row's log-likelihood, before weights."""
        p, _ = self.sizes
        scores = zeros(block.features, len(block.selected), self.size)
        z = self.unselected(block)[1]
        scores[~block.selected, :p] = z.scaled(-mills(-z.times(theta[:p]))[0])
        scores[block.selected] = self.selected_scores(block, theta)
        return scores

    def selected_scores(self, block: Block, theta: Floats) -> Array:
        """(m, d) `row_scores` of the selected rows of a block."""
        p, _ = self.sizes
        design, (in_mean, in_u, *in_ends) = self._selected_slopes(block, theta)
        xp = namespace(in_u)
        ones = design.scaled(xp.ones_like(in_u))
        in_beta = ones @ like(self.prediction, ones)
        ends = (end[:, None] for end in in_ends)
        parts = (ones[:, :p] * in_u[:, None], in_beta * in_mean[:, None], *ends)
        return xp.concat(parts, axis=1)

    def row_slopes(self, block: Block, theta: Floats, direction: Floats) -> Array:
        """(b,) `row_scores` times a direction, without the (b, d) scores."""
        p, j = self.sizes
        slopes = zeros(block.features, len(block.selected))
        z = self.unselected(block)[1]
        index, along = z.times(np.column_stack([theta[:p], direction[:p]])).T
        slopes[~block.selected] = -mills(-index)[0] * along
        design, (in_mean, in_u, *in_ends) = self._selected_slopes(block, theta)
        both = self.on_design(direction[:p, None], direction[p : p + j, None])
        along_u, along_mean = design.times(both).T
        ends = zip(in_ends, direction[p + j :], strict=True)
        slopes[block.selected] = in_u * along_u + in_mean * along_mean
        slopes[block.selected] += sum(end * float(step) for end, step in ends)
        return slopes

    def _selected_slopes(self, block: Block, theta: Floats) -> tuple[Design, list[Array]]:
        """Design of a block's selected rows, and the derivatives of `slopes_at`."""
        chosen = block.only_selected()
        design, (index, mean) = self.indices(chosen, theta)
        return design, self.slopes_at(index, mean, chosen.outcome, theta)[1:]

    def indices(self, block: Block, theta: Floats, *others: Floats) -> tuple[Design, Array]:
        """Design of a block of selected rows; (2 + m, b) z'gamma, x'beta and x'b of m other b."""
        p, j = self.sizes
        design = self.union.design(block.features)
        beta = np.column_stack((theta[p : p + j], *others))
        return design, design.times(self.on_design(theta[:p, None], beta)).T

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
    """as `JointProblem` has it"""
    log_likelihood: float
    gradient: Floats
    hessian: Floats
    n: float
    n_ends: int
    """number of parameters of the errors"""

    @classmethod
    def of(
        cls, theta: Floats, value: float, gradient: Floats, hessian: Floats, n: float, n_ends: int
    ) -> State:
        """Mirror the upper triangle of the Hessian; what is not finite has no likelihood."""
        lower = np.tril_indices(len(hessian), -1)
        hessian[lower] = hessian.T[lower]
        finite = np.isfinite(value) and np.all(np.isfinite(hessian))
        return cls(theta, value if finite else -np.inf, gradient, hessian, n, n_ends)


def index_range(rows: Rows, problem: SelectionProblem, theta: Floats) -> tuple[float, float]:
    """Range of z'gamma among the selected rows."""
    ranges = rows.map(_block_range, problem, theta, columns=problem.columns, merge=widest)
    return widest(list(ranges))


# Functions over one block of rows. -----------------------------------------------------------


def scores_of(block: Block, problem: JointProblem, theta: Floats) -> Array:
    """`JointProblem.row_scores`, as a function over one block of rows."""
    return problem.row_scores(block, theta)


def unselected_terms(
    block: Block, problem: SelectionProblem, theta: Floats
) -> tuple[float, float, Floats, Floats]:
    """Sums over the unselected rows: log Phi(-u), rows, lambda(-u) z and delta(-u) z z'."""
    others, z = problem.unselected(block)
    value, ratio, slope = log_cdf_and_mills(-z.times(theta[: problem.sizes[0]]))
    n = float(len(value))
    if others.weight is not None:
        ratio, slope, value = (others.weight * each for each in (ratio, slope, value))
        n = float(others.weight.sum())
    return float(value.sum()), n, z.pull(ratio), z.gram(slope)


def widest(ranges: list[tuple[float, float]]) -> tuple[float, float]:
    """Join ranges of several blocks."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _block_range(block: Block, problem: SelectionProblem, theta: Floats) -> tuple[float, float]:
    p, _ = problem.sizes
    features = block.only_selected().features[:, : p - 1]
    index = problem.union.design(features).times(theta[:p])
    return lowest(index), highest(index)


@dataclass(frozen=True)
class LinearProblem(SelectionProblem):
    """The model of a linear outcome."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (SIGMA, RHO)

    @staticmethod
    def outcome_units(moments: Moments) -> tuple[float, float]:
        """Mean and standard deviation of the outcome among the selected rows."""
        outcome, root_m = moments.factor[:, -1], moments.factor[0, 0]
        return float(outcome[0] / root_m), float(np.linalg.norm(outcome[1:]) / root_m)

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            scalars, others, other_gram, vectors, gram = total(
                rows.map(_terms, self, theta, columns=self.columns, merge=total)
            )
            value, n, *of_selected = scalars
            value, gradient, hessian = self.selected_slopes(
                theta, (value, *of_selected), vectors, gram
            )
            p, _ = self.sizes
            gradient[:p] -= others
            hessian[:p, :p] -= other_gram
        return State.of(theta, value, gradient, hessian, float(n), 2)

    def selected_slopes(
        self, theta: Floats, scalars: Sequence[float], vectors: Floats, gram: Floats
    ) -> tuple[float, Floats, Floats]:
        """Log-likelihood, gradient and upper Hessian of selected rows, from their `sums_at`."""
        value, m, d_s, d_t, d_ss, d_st, d_tt = scalars
        p, j = self.sizes
        ends = slice(p + j, None)
        log_sigma, atanh_rho = theta[ends]
        sigma, cosh, sinh = np.exp(log_sigma), np.cosh(atanh_rho), np.sinh(atanh_rho)
        # gamma is written on the first columns of the design, beta on all of them.
        to_beta = self.prediction
        in_gamma, in_beta = vectors[:p], to_beta.T @ vectors
        gradient = np.concatenate([in_gamma[:, 0], in_beta[:, 1], [d_s, d_t]])
        # Every block is -delta times products of z cosh and -x sinh / sigma, except for -x x'.
        hessian = np.zeros((p + j + 2, p + j + 2))
        hessian[:p, :p] = -(cosh**2) * gram[:p, :p]
        hessian[:p, p : p + j] = cosh * sinh / sigma * gram[:p] @ to_beta
        hessian[p : p + j, p : p + j] = (
            -(sinh**2) * to_beta.T @ gram @ to_beta - m * self.prediction_gram
        ) / sigma**2
        hessian[:p, ends] = in_gamma[:, 2:4]
        hessian[p : p + j, ends] = in_beta[:, 4:6]
        hessian[ends, ends] = [[d_ss, d_st], [d_st, d_tt]]
        value = float(value) - (float(log_sigma) + _HALF_LOG_2PI) * float(m)
        return value, gradient, hessian

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of selected rows; see `JointProblem`."""
        sigma, cosh, sinh = _scales(self, theta)
        e = ((outcome - self.centre) / self.scale - mean) / sigma
        log_cdf, ratio, _ = log_cdf_and_mills(cosh * index + sinh * e)
        d_e = sinh * ratio - e
        log_sigma = float(theta[self.place("sigma")])
        value = log_cdf - 0.5 * e * e - (log_sigma + _HALF_LOG_2PI)
        in_ends = [-e * d_e - 1.0, ratio * (sinh * index + cosh * e)]
        return [value, -d_e / sigma, cosh * ratio, *in_ends]


# Functions over one block of rows. -----------------------------------------------------------


def _scales(problem: LinearProblem, theta: Floats) -> tuple[float, float, float]:
    """sigma, cosh t and sinh t, as floats that multiply arrays on any device."""
    s, t = theta[problem.place("sigma")], theta[problem.place("rho")]
    return float(np.exp(s)), float(np.cosh(t)), float(np.sinh(t))


def standardized(
    block: Block, problem: LinearProblem, theta: Floats
) -> tuple[Design, Array, Array]:
    """The design of a block of selected rows, and their u and e."""
    design, (u, mean) = problem.indices(block, theta)
    sigma = _scales(problem, theta)[0]
    return design, u, ((block.outcome - problem.centre) / problem.scale - mean) / sigma


def _terms(
    block: Block, problem: LinearProblem, theta: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Sums over a block for the log-likelihood and its derivatives.

    Scalars are those of `sums_at`, with the number of all rows after the first. Of unselected rows
    there are also lambda(-u) z and delta(-u) z z'.
    """
    value, n, in_gamma, in_gammas = unselected_terms(block, problem, theta)
    (of_selected, m, *slopes), vectors, gram = sums_at(block.only_selected(), problem, theta)
    scalars = np.array([value + of_selected, n + m, m, *slopes])
    return scalars, in_gamma, in_gammas, vectors, gram


def sums_at(chosen: Block, problem: LinearProblem, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over selected rows for `LinearProblem.selected_slopes`.

    First (7,) scalars: log Phi - e^2/2, the number of rows, and derivatives in s, t, ss, st and tt.
    Then, (1 + k, 6), the design times derivatives in u, x'beta, us, ut, xs and xt, and delta(a)
    times products of the design.
    """
    design, u, e = standardized(chosen, problem, theta)
    sigma, cosh, sinh = _scales(problem, theta)
    a, a_t = cosh * u + sinh * e, sinh * u + cosh * e
    log_cdf, ratio, slope = log_cdf_and_mills(a)
    d_e, bend = sinh * ratio - e, slope * a_t
    # Second derivatives in (u, e, t), then by the chain rule in (u, x'beta, s, t).
    d_ee = -(sinh**2) * slope - 1.0
    d_et = cosh * ratio - sinh * bend
    columns = empty(chosen.features, len(e), 6)
    columns[:, 0] = cosh * ratio
    columns[:, 1] = -d_e / sigma
    columns[:, 2] = (cosh * sinh) * (e * slope)
    columns[:, 3] = sinh * ratio - cosh * bend
    columns[:, 4] = (d_ee * e + d_e) / sigma
    columns[:, 5] = -d_et / sigma
    each = namespace(e).stack(
        (
            log_cdf - 0.5 * e * e,
            -e * d_e - 1.0,
            ratio * a_t,
            e * (e * d_ee + d_e),
            -e * d_et,
            ratio * a - bend * a_t,
        )
    )
    if chosen.weight is None:
        m, summed, curvature = float(len(e)), host(each.sum(axis=1)), slope
    else:
        m, summed = float(chosen.weight.sum()), host(each @ chosen.weight)
        columns *= chosen.weight[:, None]
        curvature = chosen.weight * slope
    scalars = np.array([summed[0], m, *summed[1:]])
    return scalars, design.pull(columns), design.gram(curvature)
