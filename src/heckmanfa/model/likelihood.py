"""Full-information maximum likelihood of the selection model.

Newton's method from the usual estimates or a given start, or with rho held at a value, and warnings
afterwards. The fit of a linear outcome is here, and that of a binary one in
`probit_likelihood`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows
from heckmanfa.errors import (
    ConvergenceWarning,
    CovarianceWarning,
    RhoUncertainWarning,
    SecondMaximumWarning,
    warn,
)
from heckmanfa.model.covariance import CovarianceKind, sandwich
from heckmanfa.model.joint_problem import JointProblem, LinearProblem, State, index_range, scores_of
from heckmanfa.model.linalg import inverse_definite, symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import (
    ProfileStarts,
    Start,
    StartsByRho,
    higher_maxima,
    maximum_from,
    newton,
    starting_point,
)
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep
from heckmanfa.text.option_words import instead, option

# Two maxima are this far apart in atanh rho, or the same.
_APART = 0.01
NEAR_ONE = 0.98
"""a rho of larger size is practically one"""

Doubt = Literal["boundary", "flat", "lower"]
"""why a maximum says little: rho is practically one there, the likelihood is level in rho, or it is
higher elsewhere"""


def likelihood_criteria(log_likelihood: Any, n_parameters: Any, n: float) -> tuple[Any, Any]:
    """AIC and BIC of a likelihood, numbers or arrays.

    A fit counts every parameter, and all n rows. A search compares prediction features, and counts
    these and the selected rows alone: no other parameter of the joint likelihood ever changes.
    """
    deviance = -2.0 * log_likelihood
    return deviance + 2.0 * n_parameters, deviance + n_parameters * float(np.log(n))


@dataclass(frozen=True)
class JointMaximum(ABC):
    """Estimates for one assignment S of J features and p selection features."""

    usual_start: ClassVar[str]
    """what Newton's method starts from unless told otherwise"""
    hiding: ClassVar[frozenset[Doubt]]
    """doubts under which the curvature at the estimates does not give their standard errors"""
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
    n_free: int
    """number of parameters that were estimated: all but a rho that is held"""
    information_is_positive: bool
    """whether the observed information is positive definite at the estimates"""
    second_maximum: tuple[float, float] | None
    """log-likelihood and rho of another maximum, if found: a higher one or, with a given start, the
    one reached from the usual start"""
    index_range: tuple[float, float]
    """range of z'gamma among the selected rows"""

    @property
    @abstractmethod
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why the maximum says little about rho; empty if rho is held."""
        if self.n_free < len(self.params):
            return ()
        # Level: from any rho, one standard error leads to one that is practically another sign.
        level = not float(self.inner_covariance[-1, -1]) < np.arctanh(NEAR_ONE) ** 2
        higher = higher_maximum(self.log_likelihood, self.second_maximum) is not None
        holding: dict[Doubt, bool] = {
            "boundary": abs(self.rho) > NEAR_ONE,
            "flat": level and self.information_is_positive,
            "lower": higher,
        }
        return tuple(doubt for doubt, holds in holding.items() if holds)

    @property
    def errors_hold(self) -> bool:
        """Whether the curvature at the estimates gives their standard errors."""
        return self.hiding.isdisjoint(self.doubts)

    def reported(self) -> Self:
        """Return the estimates; without a covariance, where the curvature does not give it.

        There it would be that of a known rho, or of anything: near |rho| = 1 a step in atanh rho
        changes nothing, however little is known about rho.
        """
        if self.errors_hold:
            return self
        return replace(self, covariance=np.full_like(self.covariance, np.nan))

    def criteria(self, n: float) -> tuple[float, float]:
        """AIC and BIC of the whole likelihood of n rows: every estimated parameter counts."""
        return likelihood_criteria(self.log_likelihood, self.n_free, n)

    @abstractmethod
    def reported_covariance(self) -> Floats:
        """Covariance of what tables show, by the delta method."""

    @property
    @abstractmethod
    def cures(self) -> str:
        """What to do if rho is practically one, or not known."""

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

    @property
    def sigma(self) -> float:
        """Standard deviation of the outcome's error."""
        return 1.0


@dataclass(frozen=True)
class MaximumLikelihood(JointMaximum):
    """Maximum-likelihood estimates of the linear model; the first of ``ends`` is log sigma."""

    usual_start: ClassVar[str] = "the two-step estimates"
    # A maximum inside remains the estimate where outliers make a higher one near |rho| = 1, and
    # its curvature is known at any rho.
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"flat"})

    @property
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""
        return f"use {option('method', 'two-step')}, or another set of features"

    @property
    def cures(self) -> str:
        """What to do if rho is practically one, or not known."""
        return (
            "Look for outliers and a stronger exclusion, compare with "
            f"{option('method', 'two-step')}{instead(', and see profile_rho()', '')}."
        )

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
    problem = LinearProblem.build(moments, probit, features)
    usual = starting_point(problem, probit, two_step)
    starts = ProfileStarts.build(moments, probit, features, problem)
    estimates = maximize(rows, problem, features, kind, usual, starts, start)
    return _of_outcome(moments, problem, rows, estimates)


def fit_held_likelihood(
    moments: Moments,
    probit: Probit,
    features: tuple[int, ...],
    rho: float,
    kind: CovarianceKind,
    rows: Rows,
) -> MaximumLikelihood:
    """Maximise the same likelihood over all parameters but rho, which is held at a value.

    Given rho, it is concave in gamma, beta / sigma and 1 / sigma (Olsen, 1982, "Distributional
    tests for selectivity bias and a more robust likelihood estimator", International Economic
    Review 23), so there is no other maximum. The covariance takes rho as given.
    """
    problem = LinearProblem.build(moments, probit, features)
    starts = ProfileStarts.build(moments, probit, features, problem)
    estimates = maximize_held(rows, problem, features, kind, starts, rho)
    return _of_outcome(moments, problem, rows, estimates)


def _of_outcome(
    moments: Moments, problem: LinearProblem, rows: Rows, estimates: dict[str, Any]
) -> MaximumLikelihood:
    """Turn estimates for the scaled outcome into estimates for the outcome."""
    offset = moments.n_selected * float(np.log(problem.scale))
    second = estimates["second_maximum"]
    return MaximumLikelihood(
        **estimates
        | {
            "log_likelihood": estimates["log_likelihood"] - offset,
            "second_maximum": None if second is None else (second[0] - offset, second[1]),
        },
        index_range=index_range(rows, problem, estimates["inner_params"]),
    ).reported()


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
    """Find a maximum, look for others, and return the fields of a `JointMaximum`.

    Log-likelihoods are those of the scaled outcome. ``pilot`` are the rows that are
    searched for others; few are enough if they say much about rho. ``alone`` skips that search.
    """
    state, passes, converged = maximum_from(rows, problem, usual, starts, start)
    others = [] if alone else higher_maxima(rows, problem, state, starts, pilot)
    if start is not None and not alone:
        other, _, reached = newton(rows, problem, usual)
        if reached and abs(other.theta[-1] - state.theta[-1]) > _APART:
            others.append(other)
    second = max(others, key=lambda other: other.log_likelihood, default=None)
    estimates = _estimates(rows, problem, features, kind, state, passes, converged)
    if second is None:
        return estimates
    height, rho = float(second.log_likelihood), float(np.tanh(second.theta[-1]))
    return estimates | {"second_maximum": (height, rho)}


def maximize_held(
    rows: Rows,
    problem: JointProblem,
    features: tuple[int, ...],
    kind: CovarianceKind,
    starts: StartsByRho,
    rho: float,
) -> dict[str, Any]:
    """Find the maximum at a given rho, and return the fields of a `JointMaximum`."""
    theta = starts.at(float(np.arctanh(rho)))
    free = len(theta) - 1
    state, passes, converged = newton(rows, problem, theta, free=free, largest_atanh=np.inf)
    return _estimates(rows, problem, features, kind, state, passes, converged, free)


def _estimates(
    rows: Rows,
    problem: JointProblem,
    features: tuple[int, ...],
    kind: CovarianceKind,
    state: State,
    passes: int,
    converged: bool,
    free: int | None = None,
) -> dict[str, Any]:
    """Return the fields of a `JointMaximum`, of which only the first parameters may be ``free``."""
    best = state.theta
    inverse, positive = _inverse_information(state, len(best) if free is None else free)
    if converged and positive:
        best = best + inverse @ state.gradient
    outer, back = outer_estimates(problem, best)
    inner = inverse
    if kind.cov_type != "classical":
        args, columns = (scores_of, problem, best), problem.columns
        inner = sandwich(rows, kind, inverse, *args, columns=columns)
    p, j = problem.sizes
    return {
        "features": features,
        "coef": outer[:j],
        "selection_coef": outer[j : j + p],
        "ends": outer[p + j :],
        "covariance": symmetric(back @ inner @ back.T),
        "inner_params": best,
        "inner_covariance": inverse,
        "log_likelihood": float(state.log_likelihood),
        "n_iterations": passes,
        "converged": converged,
        "n_free": len(best) if free is None else free,
        "information_is_positive": positive,
        "second_maximum": None,
    }


def outer_estimates(problem: JointProblem, theta: Floats) -> tuple[Floats, Floats]:
    """Return (beta, gamma, ends) on the input's scale, given inner (gamma, beta, ends).

    Beside them is the matrix that leads there, before the shifts by the outcome's units.
    """
    p, j = problem.sizes
    matrix = np.eye(p + j + len(problem.ends))
    matrix[: p + j, : p + j] = 0.0
    matrix[:j, p : p + j] = problem.prediction_back * problem.scale
    matrix[j : j + p, :p] = problem.selection_back
    outer = matrix @ theta
    outer[0] += problem.centre
    outer[problem.scales] += np.log(problem.scale)
    return outer, matrix


def _inverse_information(state: State, free: int) -> tuple[Floats, bool]:
    """Inverse of minus the Hessian, and whether that is positive definite.

    Only the first parameters are ``free``: the others do not vary.
    """
    inverse = np.zeros_like(state.hessian)
    known = inverse_definite(-state.hessian[:free, :free])
    inverse[:free, :free] = np.nan if known is None else known
    return inverse, known is not None


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
    """Warn if the maximum was not reached, is a saddle, or is the lower of two."""
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
    doubts = fit.doubts
    errors = "" if fit.errors_hold else " There are no standard errors of prediction and rho."
    if "boundary" in doubts:
        warn(
            f"rho is estimated at {rho_text(fit.rho)}, practically one: the model does not fit, or "
            f"hardly anything but normality identifies it.{errors} {fit.cures}",
            RhoUncertainWarning,
        )
    elif "flat" in doubts:
        warn(
            f"the likelihood is flat in rho: the data do not tell the rho reported, "
            f"{rho_text(fit.rho)}, from others.{errors} {fit.cures}",
            RhoUncertainWarning,
        )
    if not fit.information_is_positive:
        warn(
            "the observed information is not positive definite at the maximum, so there are no "
            "standard errors",
            CovarianceWarning,
        )
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    if higher is not None:
        height, rho = higher
        also = "" if doubts != ("lower",) else errors
        origin = fit.usual_start if start is None else "the start given"
        warn(
            f"the likelihood has two maxima: the one reported, reached from {origin} "
            f"(log-likelihood {fit.log_likelihood:.4f}, rho {rho_text(fit.rho)}), and a higher one "
            f"(log-likelihood {height:.4f}, rho {rho_text(rho)}). A maximum near |rho| = 1 is "
            f"often a sign of misspecification; neither is picked for you.{also} A start of "
            f"{rho_text(rho)} fits the higher one.",
            SecondMaximumWarning,
        )
