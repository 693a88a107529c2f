"""Two regimes of rows, whose outcomes are all seen: the treated, and the untreated.

The untreated are to their regime what the treated are to theirs: rows whose index is above zero,
once treatment is turned around. With gamma, rho and the coefficient of lambda turned as well, all
that is known about selected rows holds for both. So each regime is a linear model of its own rows,
and a model of both is a matrix for each regime: from its parameters to those of the regime.

If both regimes have an equation of their own, these matrices pick parameters and turn signs. If
they share one, both pick the same, and the matrix of the treated adds the effect of treatment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import Array, Floats, namespace
from heckmanfa.data.rows import Block, BlockFunction, Merge, Positions, Rows, RowsView, total
from heckmanfa.model.error_terms import RHO, SIGMA, ErrorTerm
from heckmanfa.model.joint_problem import JointProblem, LinearProblem, State, sums_at
from heckmanfa.model.linalg import solve_upper, stack
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import StartsByRho
from heckmanfa.model.probit import Probit
from heckmanfa.text.option_words import OUT_OF_OUTCOME

RHO1, SIGMA1 = replace(RHO, name="rho1"), replace(SIGMA, name="sigma1")
RHO0, SIGMA0 = replace(RHO, name="rho0"), replace(SIGMA, name="sigma0")

# Starting values of rho stay inside these bounds.
_START_RHO = 0.9


class TurnedRows(RowsView):
    """The same rows, of which the untreated are the selected ones."""

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for every block, in row order."""
        return self.rows.map(_on_turned, function, args, columns=columns, merge=merge)

    def without(self, function: Any, *args: Any, columns: Positions) -> TurnedRows:
        """Return the rows where ``function(block, *args)`` is False."""
        return TurnedRows(self.rows.without(_on_turned, function, args, columns=columns))


def turned(block: Block) -> Block:
    """Return a block whose untreated rows are the selected ones."""
    return replace(block, selected=~block.selected)


def _on_turned(block: Block, function: BlockFunction, args: tuple[Any, ...]) -> Any:
    return function(turned(block), *args)


def turned_probit(probit: Probit) -> Probit:
    """Return the probit of not being treated."""
    return replace(probit, coef=-probit.coef, inner_coef=-probit.inner_coef)


@dataclass(frozen=True)
class RegimeMoments(Moments):
    """The rows of both regimes, compressed: together if they share an equation, else the treated.

    Together, the column of lambda is the hazard: minus lambda of the untreated.
    """

    leave_out: ClassVar[str] = OUT_OF_OUTCOME
    treated: Moments
    untreated: Moments
    """with lambda of the turned index"""
    shared: bool
    """whether both regimes have one equation in common"""

    @classmethod
    def of(cls, treated: Moments, untreated: Moments, *, shared: bool) -> Self:
        """Put the moments of both regimes beside each other."""
        own = _together(treated, untreated) if shared else treated
        known = {field.name: getattr(own, field.name) for field in fields(Moments)}
        return cls(**known, treated=treated, untreated=untreated, shared=shared)

    def kept(self) -> Moments:
        """Return what a fit keeps of them."""
        return Moments(**{field.name: getattr(self, field.name) for field in fields(Moments)})

    @property
    def n_rows(self) -> float:
        """Weight of all rows."""
        return self.treated.n_selected + self.untreated.n_selected

    @property
    def n_fitted(self) -> float:
        """Weight of the rows behind the smallest outcome equation."""
        smaller = min(self.treated.n_selected, self.untreated.n_selected)
        return self.n_rows if self.shared else smaller

    @property
    def mean_deltas(self) -> tuple[float, ...]:
        """Mean of delta of each outcome equation."""
        own = self.treated.mean_delta, self.untreated.mean_delta
        return super().mean_deltas if self.shared else own

    def designs(self, features: Positions) -> list[tuple[str, list[str], Floats]]:
        """Return the factors of both designs, or that of one with the treatment as a column."""
        one, zero = (
            moments.subset(features, imr=False, outcome=False)
            for moments in (self.treated, self.untreated)
        )
        if not self.shared:
            return [
                ("among the treated rows", ["constant"], one),
                ("among the untreated rows", ["constant"], zero),
            ]
        both = stack([_with_treatment(one, 1.0), _with_treatment(zero, 0.0)], len(features) + 2)
        return [("beside the treatment", ["constant", "treatment"], both)]

    @property
    def range_of_index(self) -> tuple[float, float]:
        """Range of z'gamma among all rows."""
        return _joined_range(self.treated, self.untreated)


def _together(treated: Moments, untreated: Moments) -> Moments:
    """Return the moments of all rows, with the hazard in place of lambda."""
    sign = np.ones(treated.factor.shape[1])
    sign[-2] = -1.0
    n = treated.n_selected + untreated.n_selected
    deltas = [own.n_selected * own.mean_delta for own in (treated, untreated)]
    whole, delta = treated.factor, treated.factor_delta
    return replace(
        treated,
        factor=stack([whole, untreated.factor * sign], len(whole)),
        factor_delta=stack([delta, untreated.factor_delta * sign[:-1]], len(delta)),
        n_selected=n,
        mean_delta=sum(deltas) / n,
        index_range=_joined_range(treated, untreated),
    )


def _joined_range(treated: Moments, untreated: Moments) -> tuple[float, float]:
    low, high = untreated.index_range
    return min(treated.index_range[0], -high), max(treated.index_range[1], -low)


def _with_treatment(root: Floats, treated: float) -> Floats:
    """Insert the treatment after the constant of a factor."""
    return np.insert(root, 1, treated * root[:, 0], axis=1)


@dataclass(frozen=True)
class RegimesProblem(JointProblem):
    """The joint likelihood of treatment and the outcomes of both regimes."""

    one: LinearProblem
    """of the treated"""
    zero: LinearProblem
    """of the untreated, turned around"""
    to_one: Floats
    """from theta to the parameters of `one`"""
    to_zero: Floats
    own_backs: dict[str, Floats]

    @property
    def backs(self) -> dict[str, Floats]:
        """From theta to the coefficients of each equation."""
        return self.own_backs

    @property
    def regimes(self) -> list[tuple[LinearProblem, Floats]]:
        """The regimes, each with the matrix from theta to its parameters."""
        return [(self.one, self.to_one), (self.zero, self.to_zero)]

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        d, value, n = len(theta), 0.0, 0.0
        gradient, hessian = np.zeros(d), np.zeros((d, d))
        with np.errstate(over="ignore", invalid="ignore"):
            sums = total(rows.map(_sums, self, theta, columns=self.columns, merge=total))
            for (problem, to_own), at in zip(self.regimes, (sums[:3], sums[3:]), strict=True):
                height, slopes, upper = problem.selected_slopes(to_own @ theta, *at)
                own = np.triu(upper) + np.triu(upper, 1).T
                value, n = value + height, n + float(at[0][1])
                gradient += to_own.T @ slopes
                hessian += to_own.T @ own @ to_own
        return State.of(theta, value, gradient, hessian, n, len(self.ends))

    def row_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) derivative of each row's log-likelihood, before weights."""
        xp = namespace(block.features)
        scores = xp.zeros((len(block.selected), len(theta)), dtype=block.features.dtype)
        for own, (problem, to_own) in zip((block, turned(block)), self.regimes, strict=True):
            if own.selected.any():
                slopes = problem.selected_scores(own, to_own @ theta)
                scores[own.selected] = slopes @ xp.asarray(to_own)
        return scores


def _sums(block: Block, problem: RegimesProblem, theta: Floats) -> tuple[Floats, ...]:
    """`sums_at` of the treated and of the untreated rows of a block."""
    one = sums_at(block.only_selected(), problem.one, problem.to_one @ theta)
    return (*one, *sums_at(turned(block).only_selected(), problem.zero, problem.to_zero @ theta))


@dataclass(frozen=True)
class SeparateProblem(RegimesProblem):
    """Each regime has an equation, a scale and a correlation of its own."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (SIGMA0, RHO0, SIGMA1, RHO1)

    @classmethod
    def build(cls, moments: RegimeMoments, probit: Probit, features: Positions) -> Self:
        """Set up the coordinates of all equations."""
        one, zero, units = _problems(moments, probit, features)
        p, j = one.sizes
        size = p + 2 * j + 4
        eye = np.eye(size)
        gamma, beta1, beta0 = eye[:p], eye[p : p + j], eye[p + j : p + 2 * j]
        sigma0, rho0, sigma1, rho1 = eye[-4:]
        return cls(
            columns=one.columns,
            **units,
            one=one,
            zero=zero,
            to_one=np.vstack([gamma, beta1, sigma1, rho1]),
            to_zero=np.vstack([-gamma, beta0, sigma0, -rho0]),
            own_backs={
                "selection": one.selection_back,
                "regime1": one.prediction_back,
                "regime0": zero.prediction_back,
            },
        )

    def start(self, probit: Probit, starts: list[tuple[Floats, float, float]]) -> Floats:
        """Return theta of coefficients, sigma and rho of the treated, and of the untreated."""
        theta = np.zeros(self.size)
        theta[self.equation("selection")] = probit.inner_coef
        for regime, (coef, sigma, rho) in zip("10", starts, strict=True):
            back = self.own_backs[f"regime{regime}"]
            theta[self.equation(f"regime{regime}")] = _inner(coef, back, self.centre, self.scale)
            theta[self.place(f"sigma{regime}")] = np.log(sigma / self.scale)
            theta[self.place(f"rho{regime}")] = np.arctanh(_inside(rho))
        return theta


@dataclass(frozen=True)
class CommonProblem(RegimesProblem):
    """One equation for everyone, in which treatment has a coefficient."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (SIGMA, RHO)

    @classmethod
    def build(cls, moments: RegimeMoments, probit: Probit, features: Positions) -> Self:
        """Set up the coordinates of both equations."""
        # In one regime alone, features may be constant or collinear.
        one, zero, units = _problems(moments, probit, features)
        p, j = one.sizes
        back = one.prediction_back
        eye = np.eye(p + j + 3)
        gamma, beta, effect, sigma, rho = eye[:p], eye[p : p + j], eye[p + j], eye[-2], eye[-1]
        treated = beta + np.outer(solve_upper(back, np.eye(j)[0]), effect)
        return cls(
            columns=one.columns,
            **units,
            one=one,
            zero=zero,
            to_one=np.vstack([gamma, treated, sigma, rho]),
            to_zero=np.vstack([-gamma, beta, sigma, -rho]),
            own_backs={"selection": one.selection_back, "outcome": back, "effect": np.eye(1)},
        )

    def units(self, name: str) -> tuple[float, float]:
        """Return what the intercept of an equation is shifted by, and what scales coefficients."""
        # The effect is a difference of outcomes.
        return (0.0, self.scale) if name == "effect" else super().units(name)

    def start(
        self, probit: Probit, coef: Floats, effect: float, sigma: float, rho: float
    ) -> Floats:
        """Return theta of estimates on the scale of the input."""
        inner = _inner(coef, self.own_backs["outcome"], self.centre, self.scale)
        ends = [effect / self.scale, np.log(sigma / self.scale), np.arctanh(_inside(rho))]
        return np.concatenate([probit.inner_coef, inner, ends])


@dataclass(frozen=True)
class CommonStarts(StartsByRho):
    """Starting values for any rho, from regressions of the outcome and of the hazard.

    The hazard is lambda of the treated and, turned, minus that of the untreated. What
    `heckmanfa.model.newton.ProfileStarts` does with lambda holds for it.
    """

    problem: CommonProblem
    probit: Probit
    least_squares: Floats
    """(j + 1,) of the outcome on [1, X, treatment]"""
    of_hazard: Floats
    """(j + 1,) likewise of the hazard"""
    variance: float
    """of the residuals of the outcome"""
    shrinkage: float
    """mean of delta less the variance of the residuals of the hazard"""

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = float(np.tanh(atanh_rho))
        sigma = float(np.sqrt(self.variance / max(1.0 - rho**2 * self.shrinkage, 0.05)))
        coef = self.least_squares - rho * sigma * self.of_hazard
        theta = self.problem.start(self.probit, coef[:-1], float(coef[-1]), sigma, 0.0)
        theta[-1] = atanh_rho
        return theta


def _problems(
    moments: RegimeMoments, probit: Probit, features: Positions
) -> tuple[LinearProblem, LinearProblem, dict[str, float]]:
    """Return the likelihoods of both regimes, in the same units of the outcome, and these units."""
    outcome = stack([own.factor[:, [0, -1]] for own in (moments.treated, moments.untreated)], 2)
    centre = float(outcome[0, 1] / outcome[0, 0])
    scale = float(abs(outcome[1, 1]) / outcome[0, 0])
    units = {"centre": centre, "scale": scale}
    own = [moments.treated, moments.untreated]
    probits = [probit, turned_probit(probit)]
    problems = []
    for regime, selection in zip(own, probits, strict=True):
        coordinates = moments.kept() if moments.shared else regime
        problem = LinearProblem.build(coordinates, selection, features)
        half = regime.subset(features, imr=False, outcome=False) @ problem.prediction_back
        gram = half.T @ half / regime.n_selected
        problems.append(replace(problem, prediction_gram=gram, centre=centre, scale=scale))
    one, zero = problems
    return one, zero, units


def _inner(coef: Floats, back: Floats, centre: float, scale: float) -> Floats:
    """Return coefficients in the coordinates of a likelihood."""
    moved = np.array(coef, dtype=np.float64)
    moved[0] -= centre
    return solve_upper(back, moved) / scale


def _inside(rho: float) -> float:
    return float(np.clip(rho, -_START_RHO, _START_RHO))
