"""Full-information maximum likelihood of an ordered outcome that is seen for the selected only.

A latent outcome eta + e, with eta = x'beta, lies between two of the cut points c_1 < ... < c_(J-1):
class j, from 0, is seen where c_j < eta + e <= c_(j+1). The first cut point is zero, since eta has
an intercept (Stata's first cut is minus that), and others are sums of steps, whose logarithms are
parameters: so they stay in order. A selected row contributes the log of a strip of the bivariate
normal (`rectangles`), between eta - c_(j+1) and eta - c_j, and others log Phi(-u). With two classes
it is the Heckman probit.

Its derivatives are those of Phi2 at both sides of the strip. Newton's method is that of
`likelihood`, and starts as in `probit_likelihood`: from an ordered probit of the selected rows,
which is the maximum at rho = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Array, Floats, empty, host, like, namespace
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.error_terms import LOG, RHO, ErrorTerm
from heckmanfa.model.joint_problem import (
    SelectionProblem,
    State,
    index_range,
    unselected_terms,
)
from heckmanfa.model.linalg import inverse_definite
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import ProfileStarts, Start, StartsByRho, newton, newton_step
from heckmanfa.model.probit import Probit, pilot_of
from heckmanfa.model.probit_likelihood import Apart, FlatMaximum
from heckmanfa.model.rectangles import Strip, log_strip

_PILOT_DECREMENT = 1e-3
_PILOT_ITERATIONS = 30


def step_terms(n_classes: int) -> tuple[ErrorTerm, ...]:
    """Return the steps between cut points of so many classes, the first of them first."""
    return tuple(
        ErrorTerm(f"step{place}", 0.0, transform=LOG, tested=False) for place in range(2, n_classes)
    )


def cuts_of(steps: Floats) -> Floats:
    """Return all cut points, the first of them zero, given the steps from the second on."""
    return np.concatenate([[0.0], np.cumsum(steps)])


@dataclass(frozen=True)
class OrderedMaximum(FlatMaximum):
    """Maximum-likelihood estimates of the ordered model."""

    usual_start: ClassVar[str] = "a probit of each equation"

    @property
    def steps(self) -> Floats:
        """(J - 2,) distances between neighbouring cut points, the first of them first."""
        return np.array([self.values[term.name] for term in reversed(self.terms[:-1])])


@dataclass(frozen=True)
class OrderedProblem(SelectionProblem):
    """The model of an ordered outcome, whose classes are numbered from 0."""

    many_maxima: ClassVar[bool] = True
    n_classes: int = 2

    @property
    def error_terms(self) -> tuple[ErrorTerm, ...]:
        """Return the steps between cut points, the last of them first, and rho."""
        return (*reversed(step_terms(self.n_classes)), RHO)

    @staticmethod
    def outcome_units(moments: Moments) -> tuple[float, float]:
        """Return 0 and 1: the error has variance one, so the outcome has no units."""
        return 0.0, 1.0

    def cuts(self, theta: Floats) -> Floats:
        """(J - 1,) cut points at theta, the first of them zero."""
        return cuts_of(np.exp(theta[-2 : -self.n_classes : -1]))

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sums = total(rows.map(_terms, self, theta, columns=self.columns, merge=total))
            scalars, others, other_gram, vectors, in_u, in_eta, across, by_cut, of_cuts = sums
            value, n, d_t, d_tt = (float(term) for term in scalars)
            p, j = self.sizes
            # gamma is written on the first columns of the design, beta on all of them.
            to_beta, rho = self.prediction, self.place("rho")
            beta, steps = slice(p, p + j), slice(p + j, rho)
            chain = self._chain(theta)
            at_cuts = chain.T @ by_cut[:, 0]
            gradient = np.concatenate(
                [vectors[:p, 0] - others, to_beta.T @ vectors[:, 1], at_cuts, [d_t]]
            )
            hessian = np.zeros((self.size, self.size))
            hessian[:p, :p] = -in_u - other_gram
            hessian[:p, beta] = across[:p] @ to_beta
            hessian[beta, beta] = -to_beta.T @ in_eta @ to_beta
            hessian[:p, rho] = vectors[:p, 2]
            hessian[beta, rho] = to_beta.T @ vectors[:, 3]
            m = self.n_classes - 1
            hessian[:p, steps] = vectors[:p, 4 : 4 + m] @ chain
            hessian[beta, steps] = to_beta.T @ vectors[:, 4 + m :] @ chain
            hessian[steps, steps] = chain.T @ of_cuts @ chain + np.diag(at_cuts)
            hessian[steps, rho] = chain.T @ by_cut[:, 1]
            hessian[rho, rho] = d_tt
        return State.of(theta, value, gradient, hessian, n, len(self.error_terms))

    def _chain(self, theta: Floats) -> Floats:
        """(J - 1, J - 2) derivatives of the cut points in theta's logarithms of steps."""
        m = self.n_classes - 1
        later = np.tril(np.ones((m, m)))[:, 1:] * np.exp(theta[-2 : -self.n_classes : -1])
        return np.asarray(later[:, ::-1])

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of selected rows; see `JointProblem`."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            strip, (_, _, is_class) = self._strips(index, mean, outcome, theta)
            xp = namespace(mean)
            by_cut = -_at_cuts(strip.by_low, strip.by_high, is_class)
            by_step = by_cut @ like(self._chain(theta), mean)
            in_steps = [by_step[:, place] for place in range(by_step.shape[1])]
            in_mean = xp.asarray(strip.by_high + strip.by_low)
            in_rho = strip.at_high - strip.at_low
        return [strip.value, in_mean, strip.by_u, *in_steps, in_rho]

    def _strips(
        self, index: Array, mean: Array, outcome: Array, theta: Floats
    ) -> tuple[Strip, Sides]:
        """Return the strip of each selected row, and its two sides."""
        sides = sides_of(mean, outcome, self.cuts(theta))
        return log_strip(*sides[:2], index, float(theta[self.place("rho")])), sides

    @classmethod
    def of_classes(
        cls, n_classes: int, moments: Moments, probit: Probit, features: Positions
    ) -> OrderedProblem:
        """Set up the coordinates of both equations, for so many classes."""
        both = cls.build(moments, probit, features)
        return cls(**{**vars(both), "n_classes": n_classes})


@dataclass(frozen=True)
class OrderedStarts(StartsByRho):
    """Starting values for a given rho, from the ordered probit of the selected rows.

    As in `heckmanfa.model.newton.ProbitStarts`; given selection, cut points are apart by less, too.
    """

    gamma: Floats
    naive: Floats
    """(1 + j,) coefficients of the ordered probit, in the coordinates of beta"""
    log_steps: Floats
    """(J - 2,) of it, in the order of theta"""
    of_lambda: Floats
    """(1 + j,) regression of lambda, likewise"""
    shrinkage: float
    """as in `heckmanfa.model.newton.ProfileStarts`"""

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = np.tanh(atanh_rho)
        spread = np.sqrt(max(1.0 - rho**2 * self.shrinkage, 0.05))
        beta = spread * self.naive - rho * self.of_lambda
        return np.concatenate([self.gamma, beta, self.log_steps + np.log(spread), [atanh_rho]])


@dataclass(frozen=True, eq=False)
class OrderedApart(Apart):
    """A probit of selection, and an ordered probit of the selected rows, which ignores it."""

    steps: Floats
    """(J - 2,) distances between its neighbouring cut points, the first of them first"""
    theta: Floats
    """its parameters and those of selection, at rho = 0"""
    inverse: Floats
    """minus the inverse Hessian of its own parameters; NaN if it has none"""


def ordered_apart(
    moments: Moments, probit: Probit, features: Positions, rows: Rows, shares: Floats
) -> OrderedApart:
    """Set up the joint likelihood, and fit the ordered probit of the selected rows: at rho = 0.

    ``shares`` are those of the classes. A sample's optimum comes first.
    """
    problem = OrderedProblem.of_classes(len(shares), moments, probit, features)
    p, j = problem.sizes
    cuts = special.ndtri(np.cumsum(shares)[:-1])
    theta = np.zeros(problem.size)
    theta[:p] = probit.inner_coef
    theta[p] = -cuts[0]
    theta[p + j : -1] = np.log(np.diff(cuts))[::-1]
    free = np.arange(p, problem.size - 1)
    pilot = pilot_of(rows)
    if pilot is not rows:
        state, _, reached = newton(
            *(pilot, problem, theta),
            free=free,
            tolerance=_PILOT_DECREMENT,
            max_iterations=_PILOT_ITERATIONS,
        )
        if reached:
            # A step on a larger sample saves a pass over all rows.
            larger = problem.evaluate(rows.pilot(len(rows) // 4), state.theta)
            theta = state.theta + newton_step(larger, free)
    state, _, converged = newton(rows, problem, theta, free=free)
    beta, log_steps = state.theta[p : p + j], state.theta[p + j : -1]
    back, inverse = problem.prediction_back, inverse_definite(-state.hessian[p:-1, p:-1])
    if inverse is None:
        inverse = np.full((problem.size - 1 - p, problem.size - 1 - p), np.nan)
    linear = ProfileStarts.build(moments, probit, features, problem)
    return OrderedApart(
        problem,
        OrderedStarts(linear.gamma, beta, log_steps, linear.of_lambda, linear.shrinkage),
        tuple(features),
        back @ beta,
        back @ inverse[:j, :j] @ back.T,
        state.log_likelihood,
        converged,
        np.exp(log_steps[::-1]),
        state.theta,
        inverse,
    )


def fit_ordered_likelihood(
    apart: OrderedApart,
    kind: CovarianceKind,
    rows: Rows,
    start: Start = None,
    *,
    rho: float | None = None,
    alone: bool = False,
) -> OrderedMaximum:
    """Maximise the joint likelihood of selection and an ordered outcome.

    Arguments are as in `heckmanfa.model.probit_likelihood.fit_probit_likelihood`.
    """
    estimates = apart.maximize(kind, rows, start, rho=rho, alone=alone)
    reach = index_range(rows, apart.problem, estimates["inner_params"])
    reached = OrderedMaximum(**estimates, index_range=reach)
    return reached.settled(free=rho is None and not alone)


# Functions over one block of rows. -----------------------------------------------------------


class Sides(NamedTuple):
    """The sides of the strips of some rows, and which class each row has, (b, J)."""

    low: Array
    high: Array
    is_class: Array


def sides_of(mean: Array, outcome: Array, cuts: Floats) -> Sides:
    """Return the strips of some rows, given their codes and the cut points."""
    xp, n = namespace(mean), len(cuts) + 1
    is_class = outcome[:, None] == like(np.arange(float(n)), mean)
    infinite = xp.full_like(mean, np.inf)
    low, high = -infinite, infinite
    # Left of the first cut point there is none, nor right of the last.
    for place, cut in enumerate(cuts.tolist()):
        low = xp.where(is_class[:, place], mean - cut, low)
        high = xp.where(is_class[:, place + 1], mean - cut, high)
    return Sides(low, high, xp.astype(is_class, mean.dtype))


def _at_cuts(by_low: Array, by_high: Array, is_class: Array) -> Array:
    """(b, J - 1) what each row has at each cut point, given it at both sides of its strip.

    The lower side belongs to the cut point above the row's class.
    """
    return by_low[:, None] * is_class[:, :-1] + by_high[:, None] * is_class[:, 1:]


def _terms(block: Block, problem: OrderedProblem, theta: Floats) -> tuple[Floats, ...]:
    """Sums over a block for the log-likelihood and its derivatives.

    As in `probit_likelihood`: (4,) scalars, sums of unselected rows, the design times derivatives
    in u, eta, ut, eta t and in u and eta with each cut point, and the products of the design. Then
    (J - 1, 2) derivatives in the cut points and with t, and (J - 1, J - 1) second ones.
    """
    p, _ = problem.sizes
    value, n, in_gamma, in_gammas = unselected_terms(block, problem, theta)
    chosen = block.only_selected()
    design, (u, eta) = problem.indices(chosen, theta)
    xp, t = namespace(u), float(theta[problem.place("rho")])
    strip, (low, high, is_class) = problem._strips(u, eta, chosen.outcome, theta)
    rho, cosh2 = float(np.tanh(t)), float(np.cosh(t)) ** 2
    zero = xp.zeros_like(u)
    low, high = (xp.where(xp.isinf(side), zero, side) for side in (low, high))
    log_p, d_high, d_low, d_u, at_high, at_low = strip
    d_t, d_eta = at_high - at_low, d_high + d_low
    # Densities over the probability, at both sides.
    f_high, f_low = cosh2 * at_high, cosh2 * at_low
    high_high = -high * d_high - rho * f_high - d_high * d_high
    low_low = -low * d_low + rho * f_low - d_low * d_low
    high_low = -d_high * d_low
    high_u, low_u = f_high - d_high * d_u, -f_low - d_low * d_u
    high_t = -(high - rho * u) * f_high - d_high * d_t
    low_t = (low - rho * u) * f_low - d_low * d_t
    in_uu = d_u * (u + d_u) + rho * (f_high - f_low)
    u_t = -(u - rho * high) * f_high + (u - rho * low) * f_low - d_u * d_t
    in_tt = _turned(at_high, high, u, rho, cosh2) - _turned(at_low, low, u, rho, cosh2) - d_t * d_t
    in_eta = -(high_high + 2.0 * high_low + low_low)
    m = problem.n_classes - 1
    columns = empty(chosen.features, len(u), 4 + 2 * m)
    columns[:, 0] = d_u
    columns[:, 1] = d_eta
    columns[:, 2] = u_t
    columns[:, 3] = high_t + low_t
    columns[:, 4 : 4 + m] = -_at_cuts(low_u, high_u, is_class)
    columns[:, 4 + m :] = -_at_cuts(low_low + high_low, high_high + high_low, is_class)
    mixed = high_u + low_u
    each = xp.stack((log_p, d_t, in_tt, d_low, d_high, low_t, high_t, low_low, high_high, high_low))
    if chosen.weight is None:
        m_rows = float(len(u))
    else:
        m_rows = float(chosen.weight.sum())
        each = each * chosen.weight
        columns *= chosen.weight[:, None]
        in_uu, in_eta, mixed = (chosen.weight * second for second in (in_uu, in_eta, mixed))
    # The likelihood is log-concave in both indices; rounding may say otherwise in far tails.
    in_uu, in_eta = (
        xp.where(second > 0, second, xp.zeros_like(second)) for second in (in_uu, in_eta)
    )
    summed = host(each[:3].sum(axis=1))
    by_class = host(each[3:] @ is_class)
    by_cut = -np.stack(
        [by_class[0, :-1] + by_class[1, 1:], by_class[2, :-1] + by_class[3, 1:]], axis=1
    )
    of_cuts = np.diag(by_class[4, :-1] + by_class[5, 1:])
    inner = np.arange(m - 1)
    of_cuts[inner, inner + 1] = of_cuts[inner + 1, inner] = by_class[6, 1:-1]
    return (
        np.array([value + summed[0], n + m_rows, *summed[1:]]),
        in_gamma,
        in_gammas,
        design.pull(columns),
        design.gram(in_uu)[:p, :p],
        design.gram(in_eta),
        design.products(mixed),
        by_cut,
        of_cuts,
    )


def _turned(at: Array, h: Array, u: Array, rho: float, cosh2: float) -> Array:
    """Second derivative in t of Phi2(h, u), given the first one, as a part of a probability."""
    from_h, from_u = h - rho * u, u - rho * h
    return at * (h * u - rho - rho * cosh2 * (h * from_h + u * from_u))
