"""Maximum likelihood of the selection-t model, and of the normal model that it has at its end.

The likelihood may have one maximum at omega = 0, which is the normal model, and another inside, and
Newton's method leaves neither. So the normal model is fitted first, then the t model from a few
values of nu on a sample of the rows, and the higher of the two is the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.errors import NormalTailsWarning, warn
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.joint_problem import LinearProblem, State, index_range
from heckmanfa.model.likelihood import (
    MaximumLikelihood,
    maximize,
    maximize_held,
    warn_of_likelihood,
)
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import (
    ProfileStarts,
    Start,
    StartsByRho,
    at_hand,
    newton,
    newton_step,
    starting_point,
)
from heckmanfa.model.probit import Probit
from heckmanfa.model.student_problem import StudentProblem
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.text.option_words import option

# nu is 2.4, 6 and 25; Newton's method ends at another.
_OMEGAS = (0.65, 0.4, 0.2)
_PILOT_ROWS = 2**11
_PILOT_DECREMENT = 0.1
_PILOT_ITERATIONS = 15
_ITERATIONS = 60
# Closer to 0, the slope in omega would hide that the likelihood rises.
_LEAST = 0.02
# A likelihood this much above the normal model's is higher.
_HIGHER = 1e-7
_START_ATANH = 2.0


@dataclass(frozen=True)
class StudentStarts(StartsByRho):
    """Starting values for any given rho: those of the normal model, moved to the estimates."""

    linear: StartsByRho
    moved: Floats
    """(d,) the estimates less the normal model's starting values at their rho"""

    @classmethod
    def to(cls, linear: StartsByRho, theta: Floats) -> StudentStarts:
        """Move starting values so that they are right at the estimates."""
        return cls(linear, theta - _with_omega(linear.at(float(theta[-1])), 0.0))

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        theta = np.asarray(_with_omega(self.linear.at(atanh_rho), 0.0) + self.moved)
        theta[-1] = atanh_rho
        return theta


@dataclass(frozen=True, eq=False)
class StudentBeginning:
    """The likelihood of a selection-t model, with its highest point and the normal model's."""

    two_step: TwoStep
    problem: StudentProblem
    starts: StudentStarts
    best: State
    """with an omega of 0 where the normal model is the estimate"""
    normal_log_likelihood: float
    """of the scaled outcome; NaN if the normal model did not converge"""


@dataclass(frozen=True)
class StudentMaximum(MaximumLikelihood):
    """Maximum-likelihood estimates of the selection-t model."""

    usual_start: ClassVar[str] = "the normal model and a few degrees of freedom"
    normal_log_likelihood: float = float("nan")
    """of the same model with normal errors; NaN if that did not converge"""

    @property
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""
        return f"use {option('errors', 'normal')}, or another set of features"

    @property
    def is_normal(self) -> bool:
        """Whether the degrees of freedom are infinite."""
        return not self.errors["df"] > 0

    def reported_covariance(self) -> Floats:
        """Covariance of prediction, selection, rho sigma, rho, sigma and df, by the delta method.

        Infinite degrees of freedom have no standard error; others are those of the normal model.
        """
        d = len(self.covariance)
        jacobian = np.zeros((d + 1, d))
        jacobian[: d - 3, : d - 3] = np.eye(d - 3)
        slope = 1.0 - self.rho**2
        jacobian[d - 3, -2:] = self.rho * self.sigma, self.sigma * slope
        jacobian[d - 2, -1] = slope
        jacobian[d - 1, -2] = self.sigma
        jacobian[d, -3] = 0.0 if self.is_normal else -2.0 * self.errors["df"] ** -3
        covariance = np.asarray(jacobian @ self.covariance @ jacobian.T)
        if self.is_normal:
            covariance[d], covariance[:, d] = np.nan, np.nan
        return covariance


def begin_student(
    moments: Moments,
    probit: Probit,
    features: Positions,
    rows: Rows,
    rho: float | None = None,
) -> StudentBeginning:
    """Find the highest point of the likelihood, the normal model's included; rho may be held."""
    two_step = fit_two_step(moments, probit, features, CLASSICAL, rows)
    linear = LinearProblem.build(moments, probit, two_step.features)
    problem = StudentProblem.build(moments, probit, two_step.features)
    starts = ProfileStarts.build(moments, probit, two_step.features, linear)
    usual, held = starting_point(linear, probit, two_step), None
    if rho is not None:
        usual, held = starts.at(float(np.arctanh(rho))), linear.all_but(linear.place("rho"))
    normal, _, converged = newton(rows, linear, usual, free=held)
    height = normal.log_likelihood if converged else float("nan")
    free = None if rho is None else problem.all_but(problem.place("rho"))
    first = _first(rows, problem, _near(usual, normal.theta, held=held is not None), free)
    state = None if first is None else problem.evaluate(rows, first)
    best = None if state is None else _inside(rows, problem, state, free, height)
    if best is None:
        best = problem.evaluate(rows, _with_omega(normal.theta, 0.0))
        beyond = problem.beyond_saddle(best, free) if converged else None
        if beyond is not None:
            # The normal model is not even a maximum.
            beyond[-3] = min(beyond[-3], _leaving(problem, best, state, free))
            best, _, _ = newton(rows, problem, beyond, free=free, max_iterations=_ITERATIONS)
    return StudentBeginning(two_step, problem, StudentStarts.to(starts, best.theta), best, height)


def _near(usual: Floats, normal: Floats, *, held: bool) -> Floats:
    """Return where to leave from: the normal estimates, unless outliers moved rho to its end."""
    return normal if held or abs(float(normal[-1])) < _START_ATANH else usual


def _first(
    rows: Rows, problem: StudentProblem, normal: Floats, free: NDArray[np.intp] | None
) -> Floats | None:
    """Find where to look for the maximum at positive omega, on a sample; None if nowhere."""
    pilot = rows.pilot(_PILOT_ROWS)
    exact = pilot is rows
    pilot = at_hand(pilot, problem.columns)
    precision: dict[str, Any] = {"tolerance": _PILOT_DECREMENT, "max_iterations": _PILOT_ITERATIONS}
    place = problem.place("df")
    rest = problem.all_but(place) if free is None else free[free != place]
    theta, states = _with_omega(normal, 0.0), []
    for omega in (0.0, *_OMEGAS[::-1]):
        state, _, _ = newton(pilot, problem, _widened(theta, omega), free=rest, **precision)
        if np.isfinite(state.log_likelihood):
            theta = state.theta
            states.append(state)
    if len(states) <= len(_OMEGAS):
        return None
    at_normal, *states = states
    first = max(states, key=lambda state: state.log_likelihood)
    if exact:
        return first.theta
    nearer, _, _ = newton(pilot, problem, first, free=free, **precision)
    first = nearer if abs(nearer.theta[-3]) > _LEAST else first
    # All rows differ from a sample of them about as they do with normal errors.
    return np.asarray(first.theta + _with_omega(normal, 0.0) - at_normal.theta)


def _leaving(
    problem: StudentProblem, normal: State, first: State | None, free: NDArray[np.intp] | None
) -> float:
    """Return the omega where the likelihood would be highest if it were a parabola in w.

    Its slope in w is that of the normal model, and its curvature that of another state; without
    one, omega is infinite.
    """
    if first is None:
        return np.inf
    free = np.arange(problem.size) if free is None else free
    place = problem.place("df")
    information = -problem.stepping(first).hessian[np.ix_(free, free)]
    try:
        variance = float(np.linalg.inv(information)[free == place, free == place][0])
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sqrt(0.5 * normal.hessian[place, place] * variance)) if variance > 0 else np.inf


def _inside(
    rows: Rows,
    problem: StudentProblem,
    state: State,
    free: NDArray[np.intp] | None,
    height: float,
) -> State | None:
    """Find a maximum at positive omega that is above the normal model's height; None if none is."""
    place = problem.place("df")
    step = newton_step(problem.stepping(state), free)
    if state.log_likelihood < height and problem.moved(state.theta, step)[place] == 0:
        # From below, a step that ends at omega = 0 leads to the normal model.
        return None
    state, _, converged = newton(rows, problem, state, free=free, max_iterations=_ITERATIONS)
    if state.theta[place] < 0:
        # The likelihood is even in omega.
        turned = state.theta.copy()
        turned[place] *= -1.0
        state = problem.evaluate(rows, turned)
    higher = not state.log_likelihood <= height + _HIGHER
    return state if converged and higher and state.theta[place] > 0 else None


def _with_omega(theta: Floats, omega: float) -> Floats:
    """Put an omega before log sigma and atanh rho."""
    return np.asarray(np.insert(theta, len(theta) - 2, omega))


def _widened(theta: Floats, omega: float) -> Floats:
    """Change omega, and sigma with it so that the standard deviation stays where it exists."""
    widened = theta.copy()
    # The standard deviation is sigma / sqrt(1 - 2 w).
    scale = max(1.0 - 2.0 * omega**2, 0.25) / max(1.0 - 2.0 * float(theta[-3]) ** 2, 0.25)
    widened[-2] += 0.5 * float(np.log(scale))
    widened[-3] = omega
    return widened


def fit_student(
    moments: Moments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind,
    rows: Rows,
    start: Start = None,
    *,
    rho: float | None = None,
    alone: bool = False,
) -> StudentMaximum:
    """Maximise the joint likelihood of selection and an outcome with t errors.

    ``start`` may be a rho or a parameter vector, and ``rho`` is held if given. Other maxima in rho
    are looked for unless the one reached is wanted ``alone``.
    """
    begun = begin_student(moments, probit, features, rows, rho)
    problem, columns = begun.problem, begun.two_step.features
    if rho is not None:
        estimates = maximize_held(rows, problem, columns, kind, begun.starts, rho)
    else:
        options = kind, begun.best, begun.starts, start
        estimates = maximize(rows, problem, columns, *options, alone=alone)
        if estimates["errors"]["df"] < 0:
            # The likelihood is even in omega, and Newton's method came to the other side.
            turned = estimates["inner_params"].copy()
            turned[problem.place("df")] *= -1.0
            again = kind, turned, begun.starts, None
            second = {"second_maximum": estimates["second_maximum"]}
            estimates = maximize(rows, problem, columns, *again, alone=True) | second
    return _student_maximum(moments, begun, rows, estimates)


def _student_maximum(
    moments: Moments, begun: StudentBeginning, rows: Rows, estimates: dict[str, Any]
) -> StudentMaximum:
    """Turn estimates for the scaled outcome into estimates for the outcome."""
    offset = moments.n_selected * float(np.log(begun.problem.scale))
    second = estimates["second_maximum"]
    scaled = {
        "log_likelihood": estimates["log_likelihood"] - offset,
        "second_maximum": None if second is None else (second[0] - offset, second[1]),
        "normal_log_likelihood": begun.normal_log_likelihood - offset,
    }
    seen = index_range(rows, begun.problem, estimates["inner_params"])
    return StudentMaximum(**estimates | scaled, index_range=seen).reported()


def warn_of_student(fit: StudentMaximum, start: Start) -> None:
    """Warn as of any likelihood, and if the degrees of freedom are infinite or nearly zero."""
    warn_of_likelihood(fit, start)
    if fit.converged and fit.is_normal:
        warn(
            "the likelihood is highest at infinite degrees of freedom: the errors have no heavier "
            "tails than normal ones, and these are the estimates of the normal model. Infinite "
            f"degrees of freedom have no standard error. Use {option('errors', 'normal')}.",
            NormalTailsWarning,
        )
