"""Safeguarded Newton's method on a joint likelihood, and a cheap check for other maxima.

`likelihood` and `probit_likelihood` fit models with it; profiles hold a parameter.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import ArrayRows, Rows
from heckmanfa.errors import InputError
from heckmanfa.model.joint_problem import JointProblem, State
from heckmanfa.model.likelihood_starts import Start, StartsByRho, inner_parameters

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
"""the atanh rho at which a climb ends: rho is 1 to ten digits"""
# How close to |rho| = 1 an ascent may start, and how precisely the rest is optimised there.
_START_ATANH = 6.0
_HELD_DECREMENT = 1e-4


def climb_from(
    rows: Rows, problem: JointProblem, usual: Floats, starts: StartsByRho, start: Start
) -> tuple[State, int, bool]:
    """Climb to the maximum reached from a start; from ``usual`` by default."""
    if start is None:
        return newton(rows, problem, usual)
    if not isinstance(start, float):
        theta = inner_parameters(problem, start)
        if not np.isfinite(problem.evaluate(rows, theta).log_likelihood):
            raise InputError(
                "the likelihood at start is zero or not a number: these parameters belong to other "
                "data or other units. Start from a rho, or from params_ of a fit to such data."
            )
        return newton(rows, problem, theta)
    # The other parameters are first optimised at that rho, so the ascent starts on the profile.
    target = float(np.clip(np.arctanh(start), -_START_ATANH, _START_ATANH))
    theta = starts.at(target)
    held, before, _ = newton(rows, problem, theta, free=len(theta) - 1, tolerance=_HELD_DECREMENT)
    state, passes, converged = newton(rows, problem, held.theta)
    return state, before + passes, converged


def ascent(state: State, free: int | Floats) -> Floats:
    """Newton step over the free parameters, modified if it would not ascend.

    ``free`` is how many of the first parameters are free, or a (d, f) basis of free directions.
    """
    if isinstance(free, int):
        information, gradient = -state.hessian[:free, :free], state.gradient[:free]
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
    if isinstance(free, int):
        step = np.append(step, np.zeros(len(state.theta) - free))
    else:
        step = free @ step
    # log sigma and atanh rho move by at most 1 per step.
    return np.asarray(step / max(1.0, float(np.abs(step[-state.n_ends :]).max())))


def newton(
    rows: Rows,
    problem: JointProblem,
    theta: Floats,
    *,
    free: int | Floats | None = None,
    tolerance: float | None = None,
    max_iterations: int = _MAX_ITERATIONS,
    largest_atanh: float = LARGEST_ATANH,
) -> tuple[State, int, bool]:
    """Safeguarded Newton over the parameters that are ``free``, as in `ascent`; all by default.

    A climb of which an atanh rho reaches ``largest_atanh`` ends there, and has not converged.
    """
    state = problem.evaluate(rows, theta)
    passes = 1
    free = len(theta) if free is None else free
    tolerance = _DECREMENT_PER_ROW * state.n if tolerance is None else tolerance
    rhos = problem.correlations
    while passes < max_iterations and np.abs(state.theta[rhos]).max() < largest_atanh:
        step = ascent(state, free)
        decrement = float(step @ state.gradient)
        if not decrement > tolerance:
            return state, passes, bool(np.isfinite(decrement))
        slack = 1e-11 * (1.0 + abs(state.log_likelihood))
        for _ in range(40):
            trial = problem.evaluate(rows, state.theta + step)
            passes += 1
            if trial.log_likelihood >= state.log_likelihood - slack:
                break
            step = 0.5 * step
        else:
            # Only rounding is left to climb.
            return state, passes, decrement < 1e-10
        state = trial
    return state, passes, False


def higher_maxima(
    rows: Rows,
    problem: JointProblem,
    found: State,
    starts: StartsByRho,
    pilot: Rows | None,
) -> list[State]:
    """Search for points higher than the maximum reached, at other rho.

    The likelihood is profiled at eight fixed rho, on a sample if there are many rows. A full ascent
    starts where the profile rises on the way from the optimum or, if it is of all rows, rises to a
    height that could exceed it.
    """
    free, at = len(found.theta) - 1, float(found.theta[-1])
    sample = rows.pilot(_PROFILE_ROWS) if pilot is None else pilot
    exact = sample is rows
    if isinstance(sample, ArrayRows):
        sample = sample.gathered(problem.columns)

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
        return state, state.log_likelihood + 0.5 * float(ascent(state, free) @ state.gradient)

    # A sample has an optimum of its own at this rho, as at the others.
    here = found.log_likelihood if exact else profiled(found.theta)[1]
    higher: list[State] = []
    for side in (-1.0, 1.0):
        previous, reached = here, at + 0.25 * side
        for target in sorted(_PROFILE_ATANH, key=lambda value: side * value):
            if side * (target - reached) <= 0:
                continue
            state, height = profiled(starts.at(target))
            slope = side * float(state.gradient[-1])
            rises = height > previous + (_HIGHER if exact else _PROFILE_RISE)
            if rises or (exact and slope > 0 and height + _MOST_GAIN * slope > here + _HIGHER):
                risen, _, _ = newton(rows, problem, state.theta, tolerance=1e-8, max_iterations=60)
                if risen.log_likelihood > found.log_likelihood + _HIGHER:
                    higher.append(risen)
                reached = side * max(side * target, side * float(risen.theta[-1]))
            previous = height
    return higher
