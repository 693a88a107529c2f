"""Newton's method on a joint likelihood: where it starts, its steps, and a check for other maxima.

It starts from the two-step estimates, from a given rho, or from given parameters. A parameter
vector on the input's scale (``params_`` of a fitted model) holds the prediction coefficients, the
selection coefficients (each intercept first), and the parameters of the errors on the scales of
their transforms: log sigma unless the outcome is binary, and atanh rho.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import ArrayRows, Positions, Rows
from heckmanfa.errors import InputError
from heckmanfa.model.joint_problem import JointProblem, LinearProblem, SelectionProblem, State
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep
from heckmanfa.text.option_types import Method

_MAX_ITERATIONS = 100
# As in the probit: an error of at most 1e-8 in the covariance, and far less in the estimates.
_DECREMENT_PER_ROW = 1e-16
# Where, how precisely and on how many rows the likelihood is profiled, to see if it rises again.
_PROFILE_ATANH = (-3.0, -2.0, -1.25, -0.5, 0.5, 1.25, 2.0, 3.0)
_PROFILE_DECREMENT = 0.5
# A sample's profile rises by chance; that of all rows does not.
_PROFILE_RISE = 0.1
_HIGHER = 1e-3
# Up to |rho| = 1, the likelihood hardly gains more than this many times its slope in atanh rho.
_MOST_GAIN = 10.0
_PROFILE_ITERATIONS = 15
_PROFILE_ROWS = 2**11
LARGEST_ATANH = 12.0
"""the atanh rho at which Newton's method ends: rho is 1 to ten digits"""
# How close to |rho| = 1 it may start, and how precisely the rest is optimised there.
_START_ATANH = 6.0
_HELD_DECREMENT = 1e-4
_START_RHO = 0.95
_LARGEST_RHO = 1.0 - 1e-9

Start = float | Floats | None
"""nothing, a rho, or a parameter vector"""
Free = NDArray[np.intp] | Floats
"""(f,) positions of the free parameters, or a (d, f) basis of free directions"""


def maximum_from(
    rows: Rows,
    problem: JointProblem,
    usual: Floats | State,
    starts: StartsByRho | None,
    start: Start,
) -> tuple[State, int, bool]:
    """Find the maximum reached from a start; from ``usual`` by default.

    Only a problem with one correlation has ``starts``, and may start from a rho.
    """
    if start is None:
        return newton(rows, problem, usual)
    if not isinstance(start, float):
        theta = inner_parameters(problem, start)
        if not np.isfinite(problem.evaluate(rows, theta).log_likelihood):
            raise InputError(
                "the likelihood at start is zero or not a number: these parameters belong to other "
                f"data or other units. Start from {'' if starts is None else 'a rho, or from '}"
                "params_ of a fit to such data."
            )
        return newton(rows, problem, theta)
    # The other parameters are first optimised at that rho, to start on the profile.
    assert starts is not None
    assert problem.rho is not None
    target = float(np.clip(np.arctanh(start), -_START_ATANH, _START_ATANH))
    theta = starts.at(target)
    free = problem.all_but(problem.rho)
    held, before, _ = newton(rows, problem, theta, free=free, tolerance=_HELD_DECREMENT)
    state, passes, converged = newton(rows, problem, held.theta)
    return state, before + passes, converged


def newton_step(state: State, free: Free | None = None) -> Floats:
    """Newton step over the free parameters, all by default; modified if it would not ascend."""
    if free is None:
        information, gradient = -state.hessian, state.gradient
    elif free.ndim == 1:
        information, gradient = -state.hessian[np.ix_(free, free)], state.gradient[free]
    else:
        information, gradient = -free.T @ state.hessian @ free, free.T @ state.gradient
    try:
        step = sla.cho_solve(sla.cho_factor(information), gradient)
    except np.linalg.LinAlgError:
        # With a unit diagonal, so the threshold for flat directions does not depend on units.
        size = np.sqrt(np.abs(np.diag(information)))
        unit = 1.0 / np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(information * unit * unit[:, None])
        values = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
        step = unit * (vectors @ ((vectors.T @ (unit * gradient)) / values))
    if free is not None and free.ndim == 1:
        over_free, step = step, np.zeros(len(state.theta))
        step[free] = over_free
    elif free is not None:
        step = free @ step
    # The parameters of the errors move by at most 1 per step.
    return np.asarray(
        step / max(1.0, float(np.abs(step[len(step) - state.n_ends :]).max(initial=0.0)))
    )


def newton(
    rows: Rows,
    problem: JointProblem,
    theta: Floats | State,
    *,
    free: Free | None = None,
    tolerance: float | None = None,
    max_iterations: int = _MAX_ITERATIONS,
    largest_atanh: float = LARGEST_ATANH,
) -> tuple[State, int, bool]:
    """Safeguarded Newton over parameters that are ``free``; all by default.

    It starts from a theta, or from the likelihood there if that is known. If an atanh rho reaches
    ``largest_atanh``, it ends there, and has not converged.
    """
    state = theta if isinstance(theta, State) else problem.evaluate(rows, theta)
    passes = 1
    tolerance = _DECREMENT_PER_ROW * state.n if tolerance is None else tolerance
    rhos, left = problem.correlations, False
    while passes < max_iterations and np.abs(state.theta[rhos]).max(initial=0.0) < largest_atanh:
        at = problem.stepping(state)
        step = newton_step(at, free)
        decrement = float(step @ at.gradient)
        if not decrement > tolerance:
            beyond = None if left else problem.beyond_saddle(state, free)
            if beyond is None:
                return state, passes, bool(np.isfinite(decrement))
            state, passes, left = problem.evaluate(rows, beyond), passes + 1, True
            continue
        slack = 1e-11 * (1.0 + abs(state.log_likelihood))
        for _ in range(40):
            trial = problem.evaluate(rows, problem.moved(state.theta, step))
            passes += 1
            if trial.log_likelihood >= state.log_likelihood - slack:
                break
            step = 0.5 * step
        else:
            # Only rounding is left to gain.
            return state, passes, decrement < 1e-10
        state = trial
    return state, passes, False


def higher_maxima(
    rows: Rows,
    problem: JointProblem,
    maximum: State,
    starts: StartsByRho,
    pilot: Rows | None,
) -> list[State]:
    """Search for points higher than the maximum reached, at other rho.

    The likelihood is profiled at eight fixed rho, on a sample if there are many rows. Newton's
    method starts where the profile rises on the way from the optimum or, if it is of all rows,
    rises to a height that could exceed it.
    """
    rho = problem.rho
    assert rho is not None
    free, at = problem.all_but(rho), float(maximum.theta[rho])
    sample = rows.pilot(_PROFILE_ROWS) if pilot is None else pilot
    exact = sample is rows
    sample = at_hand(sample, problem.columns)

    def profiled(theta: Floats) -> tuple[State, float]:
        state, _, _ = newton(
            sample,
            problem,
            theta,
            free=free,
            tolerance=_HIGHER if exact else _PROFILE_DECREMENT,
            max_iterations=_PROFILE_ITERATIONS,
        )
        # The last step, not taken, would gain half its decrement.
        return state, state.log_likelihood + 0.5 * float(newton_step(state, free) @ state.gradient)

    # A sample has an optimum of its own at this rho, as at the others.
    here = maximum.log_likelihood if exact else profiled(maximum.theta)[1]
    higher: list[State] = []
    for side in (-1.0, 1.0):
        previous, reached = here, at + 0.25 * side
        for target in sorted(_PROFILE_ATANH, key=lambda value: side * value):
            if side * (target - reached) <= 0:
                continue
            state, height = profiled(starts.at(target))
            slope = side * float(state.gradient[rho])
            rises = height > previous + (_HIGHER if exact else _PROFILE_RISE)
            if rises or (exact and slope > 0 and height + _MOST_GAIN * slope > here + _HIGHER):
                risen, _, _ = newton(rows, problem, state.theta, tolerance=1e-8, max_iterations=60)
                if risen.log_likelihood > maximum.log_likelihood + _HIGHER:
                    higher.append(risen)
                reached = side * max(side * target, side * float(risen.theta[rho]))
            previous = height
    return higher


def at_hand(sample: Rows, columns: Positions) -> Rows:
    """Return a sample of rows that is read many times, in a few blocks if it is in memory."""
    return sample.gathered(columns) if isinstance(sample, ArrayRows) else sample


def read_start(start: Any, method: Method) -> Start:
    """Check the parameter ``start``: None, a rho in (-1, 1), or a parameter vector."""
    if start is None:
        return None
    if method != "ml":
        raise InputError(
            "start is a starting value for maximum likelihood; other methods need none. "
            "Fit by maximum likelihood (method 'ml'), or leave start out."
        )
    advice = "it must be a rho inside (-1, 1), or the params_ of a fitted model"
    if isinstance(start, bool | np.bool_ | str):
        raise InputError(f"start is {start!r}: {advice}")
    if isinstance(start, Real):
        rho = float(start)
        if not abs(rho) < 1:
            raise InputError(f"start is {rho:g}: {advice}")
        return rho
    try:
        values = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"start does not hold numbers: {advice}") from error
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        what = "missing or infinite values" if values.ndim == 1 else f"{values.ndim} dimensions"
        raise InputError(f"start has {what}: {advice}")
    return values


def elsewhere(start: Start, rho: int | None) -> float | None:
    """Return the start to use for other rows or features, which have other parameters: its rho.

    ``rho`` is where a parameter vector has it; None if it has several or none.
    """
    if start is None or isinstance(start, float):
        return start
    if rho is None:
        return None
    return float(np.clip(np.tanh(start[rho]), -_LARGEST_RHO, _LARGEST_RHO))


def starting_point(problem: LinearProblem, probit: Probit, start: TwoStep) -> Floats:
    """Two-step values in inner coordinates; a rho-hat outside (-1, 1) starts just inside."""
    beta = start.coef[:-1].copy()
    beta[0] -= problem.centre
    inner_beta = solve_upper(problem.prediction_back, beta) / problem.scale
    rho = float(np.clip(start.solution.rho, -_START_RHO, _START_RHO))
    sigma = float(start.solution.sigma) / problem.scale
    return np.concatenate([probit.inner_coef, inner_beta, [np.log(sigma), np.arctanh(rho)]])


def inner_parameters(problem: JointProblem, params: Floats) -> Floats:
    """Convert a parameter vector on the input's scale to theta; its length must match."""
    order = problem.input_order
    if len(params) != problem.size:
        *equations, selection = (f"{len(problem.backs[name])} of the {name}" for name in order)
        ends = [
            f"{term.transform.name} {term.name}" for term in problem.error_terms if term.transform
        ]
        raise InputError(
            f"start has {len(params)} entries, but this model has {problem.size} parameters: "
            f"{', '.join(f'{text} equation' for text in equations)} and {selection} equation (each "
            f"intercept first){''.join(f', {name}' for name in ends[:-1])} and {ends[-1]}, as in "
            f"params_.{'' if problem.rho is None else ' Start from a rho instead.'}"
        )
    params = params.copy()
    params[problem.scales] -= np.log(problem.scale)
    theta, first = np.empty(problem.size), 0
    for name in order:
        back = problem.backs[name]
        coef, first = params[first : first + len(back)], first + len(back)
        centre, scale = problem.units(name)
        coef[0] -= centre
        theta[problem.equation(name)] = solve_upper(back, coef) / scale
    theta[first:] = params[first:]
    return theta


class StartsByRho(Protocol):
    """Starting values for any given rho."""

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""


@dataclass(frozen=True)
class ProfileStarts(StartsByRho):
    """Starting values for a given rho, from regressions of y and lambda on the features.

    E[y | x, s = 1] = x'beta + rho sigma lambda, so beta(rho) is the first regression minus
    rho sigma times the second, and the residual variance s^2 of the first is
    sigma^2 (1 - rho^2 (mean of delta - residual variance of lambda)).
    """

    gamma: Floats
    least_squares: Floats
    """(1 + j,) of y, in the coordinates of beta"""
    of_lambda: Floats
    """(1 + j,) likewise of lambda"""
    variance: float
    """of the residuals of y"""
    shrinkage: float
    """mean of delta less the variance of the residuals of lambda"""

    @classmethod
    def build(
        cls, moments: Moments, probit: Probit, features: Positions, problem: SelectionProblem
    ) -> ProfileStarts:
        """Take both regressions from the compressed data."""
        r = moments.subset(features)
        design, m = r[:-2, :-2], moments.n_selected
        solved = solve_upper(design, r[:-2, -2:])
        solved[0, 1] -= problem.centre
        inner = solve_upper(problem.prediction_back, solved)
        return cls(
            gamma=probit.inner_coef,
            least_squares=inner[:, 1] / problem.scale,
            of_lambda=inner[:, 0],
            variance=float(np.sum(r[-2:, -1] ** 2)) / m / problem.scale**2,
            shrinkage=moments.mean_delta - float(r[-2, -2] ** 2) / m,
        )

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = np.tanh(atanh_rho)
        sigma = np.sqrt(self.variance / max(1.0 - rho**2 * self.shrinkage, 0.05))
        beta = self.least_squares - rho * sigma * self.of_lambda
        return np.concatenate([self.gamma, beta, [np.log(sigma), atanh_rho]])


@dataclass(frozen=True)
class ProbitStarts(StartsByRho):
    """Starting values for a given rho if the outcome is binary, from the plain probit.

    Given s = 1, y* has mean x'beta + rho lambda and variance 1 - rho^2 delta. The plain probit
    takes it to be normal with variance one, so its coefficients are nearly (beta + rho times the
    regression of lambda) / sqrt(1 - rho^2 (mean of delta - residual variance of lambda)).
    """

    gamma: Floats
    naive: Floats
    """(1 + j,) plain probit, in the coordinates of beta"""
    of_lambda: Floats
    """(1 + j,) regression of lambda, likewise"""
    shrinkage: float
    """as in `ProfileStarts`"""

    @classmethod
    def build(
        cls, moments: Moments, probit: Probit, naive: Probit, problem: SelectionProblem
    ) -> ProbitStarts:
        """Take the regression of lambda from the compressed data."""
        linear = ProfileStarts.build(moments, probit, naive.features, problem)
        return cls(linear.gamma, naive.inner_coef, linear.of_lambda, linear.shrinkage)

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = np.tanh(atanh_rho)
        spread = np.sqrt(max(1.0 - rho**2 * self.shrinkage, 0.05))
        beta = spread * self.naive - rho * self.of_lambda
        return np.concatenate([self.gamma, beta, [atanh_rho]])
