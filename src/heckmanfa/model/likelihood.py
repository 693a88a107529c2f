"""Full-information maximum likelihood of the selection model.

Safeguarded Newton's method on a joint likelihood, from the usual estimates or a given start, a
cheap check for a second maximum near |rho| = 1, and warnings afterwards. The fit of a linear
outcome is here, and that of a binary one in `probit_likelihood`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import ArrayRows, Rows
from heckmanfa.errors import (
    ConvergenceWarning,
    CovarianceWarning,
    InputError,
    SecondMaximumWarning,
    warn,
)
from heckmanfa.model.covariance import CovarianceKind, score_squares
from heckmanfa.model.joint_problem import JointProblem, State, index_range, scores_of
from heckmanfa.model.likelihood_starts import (
    ProfileStarts,
    Start,
    StartsByRho,
    inner_parameters,
    starting_point,
)
from heckmanfa.model.likelihood_terms import Problem
from heckmanfa.model.linalg import symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep

_MAX_ITERATIONS = 100
# As in the probit: an error of at most 1e-8 in the covariance, and far less in the estimates.
_DECREMENT_PER_ROW = 1e-16
# Where, how precisely and on how many rows the likelihood is profiled, to see if it rises again
# towards |rho| = 1.
_PROFILE_ATANH = (1.5, 3.0)
_PROFILE_DECREMENT = 0.5
_PROFILE_RISE = 0.1
_PROFILE_ITERATIONS = 15
_PROFILE_ROWS = 2**11
LARGEST_ATANH = 12.0
"""the atanh rho at which a climb ends: rho is 1 to ten digits"""
# How close to |rho| = 1 an ascent may start, and how precisely the rest is optimised there.
_START_ATANH = 6.0
_HELD_DECREMENT = 1e-4
# Two ascents that end this far apart in atanh rho have found two maxima.
_APART = 0.01


@dataclass(frozen=True)
class JointMaximum(ABC):
    """Estimates for one assignment S of J features and p selection features."""

    usual_start: ClassVar[str]
    """what the climb starts from unless told otherwise"""
    features: tuple[int, ...]
    coef: Floats
    """(1 + J,) prediction equation, intercept first"""
    selection_coef: Floats
    """(1 + p,)"""
    ends: Floats
    """parameters of the errors, atanh rho last"""
    covariance: Floats
    """of `params`"""
    inner_params: Floats
    """theta of `joint_problem`: selection, prediction, parameters of the errors"""
    inner_covariance: Floats
    """likewise, the inverse observed information; NaN if that is not positive definite"""
    log_likelihood: float
    n_iterations: int
    converged: bool
    information_is_positive: bool
    """whether the observed information is positive definite at the estimates"""
    second_maximum: tuple[float, float] | None
    """log-likelihood and rho of another maximum, if found: a higher one or, with a given start, the
    one reached from the usual start"""

    @property
    @abstractmethod
    def instead(self) -> str:
        """What to do if the climb does not converge."""

    @property
    def params(self) -> Floats:
        """All parameters on the input's scale: prediction, selection, those of the errors."""
        return np.concatenate([self.coef, self.selection_coef, self.ends])

    @property
    def atanh_rho(self) -> float:
        """Correlation of the errors, transformed."""
        return float(self.ends[-1])

    @property
    def rho(self) -> float:
        """Correlation of the errors."""
        return float(np.tanh(self.atanh_rho))


@dataclass(frozen=True)
class MaximumLikelihood(JointMaximum):
    """Maximum-likelihood estimates of the linear model; the first of ``ends`` is log sigma."""

    usual_start: ClassVar[str] = "the two-step estimates"
    index_range: tuple[float, float]
    """range of z'gamma among the selected rows"""

    @property
    def instead(self) -> str:
        """What to do if the climb does not converge."""
        return "use method='two-step', or another set of features"

    @property
    def log_sigma(self) -> float:
        """Logarithm of sigma."""
        return float(self.ends[0])

    @property
    def sigma(self) -> float:
        """Standard deviation of the outcome's error."""
        return float(np.exp(self.log_sigma))

    def reported_covariance(self) -> Floats:
        """Covariance of prediction, selection, rho sigma, rho and sigma, by the delta method."""
        d = len(self.covariance)
        slope = 1.0 - self.rho**2
        jacobian = np.zeros((d + 1, d))
        jacobian[: d - 2, : d - 2] = np.eye(d - 2)
        jacobian[d - 2, -2:] = self.rho * self.sigma, self.sigma * slope
        jacobian[d - 1, -1] = slope
        jacobian[d, -2] = self.sigma
        return np.asarray(jacobian @ self.covariance @ jacobian.T)


def fit_likelihood(
    moments: Moments,
    probit: Probit,
    two_step: TwoStep,
    kind: CovarianceKind,
    rows: Rows,
    start: Start = None,
) -> MaximumLikelihood:
    """Maximise the joint likelihood of selection and a linear outcome, one pass per iteration.

    ``two_step`` provides the prediction features and the default start; ``start`` may be a rho or a
    parameter vector. The classical covariance is the inverse observed information.
    """
    features = two_step.features
    problem = Problem.build(moments, probit, features)
    usual = starting_point(problem, probit, two_step)
    starts = ProfileStarts.build(moments, probit, features, problem)
    found = maximize(rows, problem, features, kind, usual, starts, start)
    offset = moments.n_selected * float(np.log(problem.scale))
    second = found["second_maximum"]
    return MaximumLikelihood(
        **found
        | {
            "log_likelihood": found["log_likelihood"] - offset,
            "second_maximum": None if second is None else (second[0] - offset, second[1]),
        },
        index_range=index_range(rows, problem, found["inner_params"]),
    )


def maximize(
    rows: Rows,
    problem: JointProblem,
    features: tuple[int, ...],
    kind: CovarianceKind,
    usual: Floats,
    starts: StartsByRho,
    start: Start,
    pilot: Rows | None = None,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """Climb to a maximum, look for others, and return the fields of a `JointMaximum`.

    Log-likelihoods are those of the scaled outcome. ``pilot`` are the rows on which others are
    looked for, unless the maximum reached is wanted ``alone``; few are enough if they tell much
    about rho.
    """
    state, passes, converged = climb_from(rows, problem, usual, starts, start)
    others = [] if alone else _higher_maxima(rows, problem, state, starts, pilot)
    if start is not None and not alone:
        other, _, reached = newton(rows, problem, usual)
        if reached and abs(other.theta[-1] - state.theta[-1]) > _APART:
            others.append(other)
    second = max(others, key=lambda other: other.log_likelihood, default=None)
    best = state.theta
    inverse, positive = _inverse_information(state)
    if converged and positive:
        best = best + inverse @ state.gradient
    back = _back(problem)
    if kind.cov_type == "classical":
        middle = inverse
    else:
        columns, size = problem.columns, len(best)
        squares = score_squares(rows, kind, scores_of, problem, best, columns=columns, size=size)
        middle = inverse @ squares @ inverse
    p, j = problem.sizes
    outer = back @ best
    outer[0] += problem.centre
    ends = best[p + j :].copy()
    if len(ends) > 1:
        ends[0] += np.log(problem.scale)
    return {
        "features": features,
        "coef": outer[:j],
        "selection_coef": outer[j : j + p],
        "ends": ends,
        "covariance": symmetric(back @ middle @ back.T),
        "inner_params": best,
        "inner_covariance": inverse,
        "log_likelihood": float(state.log_likelihood),
        "n_iterations": passes,
        "converged": converged,
        "information_is_positive": positive,
        "second_maximum": None
        if second is None
        else (float(second.log_likelihood), float(np.tanh(second.theta[-1]))),
    }


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


def _back(problem: JointProblem) -> Floats:
    """Matrix from inner (gamma, beta, ends) to outer (beta, gamma, ends), before the shifts."""
    p, j = problem.sizes
    matrix = np.eye(p + j + len(problem.ends))
    matrix[: p + j, : p + j] = 0.0
    matrix[:j, p : p + j] = problem.prediction_back * problem.scale
    matrix[j : j + p, :p] = problem.selection_back
    return matrix


def _inverse_information(state: State) -> tuple[Floats, bool]:
    """Inverse of minus the Hessian, and whether that is positive definite."""
    try:
        half = sla.cho_factor(-state.hessian)
        return np.asarray(sla.cho_solve(half, np.eye(len(state.theta)))), True
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(state.hessian, np.nan), False


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

    A climb whose atanh rho reaches ``largest_atanh`` ends there, and has not converged.
    """
    state = problem.evaluate(rows, theta)
    passes = 1
    free = len(theta) if free is None else free
    tolerance = _DECREMENT_PER_ROW * state.n if tolerance is None else tolerance
    while passes < max_iterations and abs(state.theta[-1]) < largest_atanh:
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


def _higher_maxima(
    rows: Rows,
    problem: JointProblem,
    found: State,
    starts: StartsByRho,
    pilot: Rows | None,
) -> list[State]:
    """Search for higher maxima towards rho = -1 and rho = 1.

    The likelihood is profiled at a few fixed rho on each side, on a sample if there are many rows.
    A full ascent starts only where the profile rises again away from the optimum.
    """
    free = len(found.theta) - 1
    sample = rows.pilot(_PROFILE_ROWS) if pilot is None else pilot
    if isinstance(sample, ArrayRows):
        sample = sample.gathered(problem.columns)

    def profiled(theta: Floats) -> tuple[State, float]:
        state, _, _ = newton(
            sample,
            problem,
            theta,
            free=free,
            tolerance=_PROFILE_DECREMENT,
            max_iterations=_PROFILE_ITERATIONS,
        )
        # The last step, not taken, would gain half its decrement.
        return state, state.log_likelihood + 0.5 * float(ascent(state, free) @ state.gradient)

    if pilot is None:
        here = problem.evaluate(sample, found.theta).log_likelihood
    else:
        # A sample has an optimum of its own at this rho, as at the others.
        _, here = profiled(found.theta)
    higher: list[State] = []
    for side in (-1.0, 1.0):
        previous = here
        for target in (side * size for size in _PROFILE_ATANH):
            if side * (target - found.theta[-1]) <= 0.25:
                continue
            state, height = profiled(starts.at(target))
            if height > previous + _PROFILE_RISE:
                risen, _, _ = newton(rows, problem, state.theta, tolerance=1e-8, max_iterations=60)
                if risen.log_likelihood > found.log_likelihood + 1e-3:
                    higher.append(risen)
                break
            previous = height
    return higher


def rho_text(rho: float) -> str:
    """Format a rho with three decimals, or as many as it takes to stay below one."""
    if not abs(rho) < 1:
        return f"{rho:.3f}"
    return next(text for n in range(3, 18) if abs(float(text := f"{rho:.{n}f}")) < 1 or n == 17)


def higher_maximum(
    log_likelihood: float | None, second: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the second maximum (log-likelihood, rho) if it is higher than the reported one."""
    if second is None or (log_likelihood is not None and second[0] <= log_likelihood):
        return None
    return second


def warn_of_likelihood(fit: JointMaximum, start: Start) -> None:
    """Warn if the climb did not converge, or ended at a saddle or at the lower of two maxima."""
    if not fit.converged:
        cure = f"{fit.instead[0].upper()}{fit.instead[1:]}."
        if start is not None:
            known = fit.second_maximum
            where = "" if known is None else f" (there is a maximum at {rho_text(known[1])})"
            cure = (
                f"Start from another rho first{where}. If that does not converge either, "
                f"{fit.instead}."
            )
        warn(
            f"maximum likelihood did not converge in {fit.n_iterations} passes (rho = "
            f"{rho_text(fit.rho)}); do not trust its estimates. {cure}",
            ConvergenceWarning,
        )
        return
    if not fit.information_is_positive:
        warn(
            "the observed information is not positive definite at the maximum, so there are no "
            "standard errors",
            CovarianceWarning,
        )
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    if higher is not None:
        height, rho = higher
        origin = fit.usual_start if start is None else "the start given"
        warn(
            f"the likelihood has two maxima: the one reported, reached from {origin} "
            f"(log-likelihood {fit.log_likelihood:.4f}, rho {rho_text(fit.rho)}), and a higher one "
            f"(log-likelihood {height:.4f}, rho {rho_text(rho)}). A maximum near |rho| = 1 is "
            "often a sign of misspecification; neither is picked for you. A start of "
            f"{rho_text(rho)} fits the higher one.",
            SecondMaximumWarning,
        )
