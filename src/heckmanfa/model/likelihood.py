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
from numpy.typing import NDArray

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
from heckmanfa.model.error_terms import ErrorTerm, single_correlation
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

    usual_start: ClassVar[str] = "the two-step estimates"
    """what Newton's method starts from unless told otherwise"""
    # A maximum inside remains the estimate where outliers make a higher one near |rho| = 1, and
    # its curvature is known at any rho.
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"flat"})
    """doubts under which the curvature at the estimates does not give their standard errors"""
    features: tuple[int, ...]
    equations: dict[str, Floats]
    """coefficients by equation, intercepts first, in the order of `params`"""
    errors: dict[str, float]
    """parameters of the errors by name, on the scales of their transforms"""
    terms: tuple[ErrorTerm, ...]
    """these parameters, in the same order"""
    covariance: Floats
    """of `params`"""
    inner_params: Floats
    """theta of `joint_problem`"""
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
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""
        return f"use {option('method', 'two-step')}, or another set of features"

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why the maximum says little about rho; empty if it is held, or there is not one rho."""
        if self.correlation is None or self.n_free < len(self.params):
            return ()
        # Level: from any rho, one standard error leads to one that is practically another sign.
        level = not self.atanh_rho_variance < np.arctanh(NEAR_ONE) ** 2
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

    def reported_covariance(self) -> Floats:
        """Covariance of what tables show, by the delta method.

        They show the equations, then the parameters of the errors, the last of `params` first.
        """
        n = len(self.covariance) - len(self.terms)
        values = self.values
        slopes = np.append(np.ones(n), [term.slope(values[term.name]) for term in self.terms])
        order = [*range(n), *reversed(range(n, len(slopes)))]
        return np.asarray(self.covariance * slopes * slopes[:, None])[np.ix_(order, order)]

    @property
    @abstractmethod
    def cures(self) -> str:
        """What to do if rho is practically one, or not known."""

    @property
    def params(self) -> Floats:
        """All parameters on the input's scale: equations, selection last, then the errors."""
        return np.concatenate([*self.equations.values(), [*self.errors.values()]])

    @property
    def coef(self) -> Floats:
        """(1 + J,) of the one prediction equation."""
        return self.equations["prediction"]

    @property
    def selection_coef(self) -> Floats:
        """(1 + p,)."""
        return self.equations["selection"]

    @property
    def values(self) -> dict[str, float]:
        """Parameters of the errors by name, on their own scales."""
        return {term.name: term.back(self.errors[term.name]) for term in self.terms}

    @property
    def correlation(self) -> str | None:
        """Name of the one correlation of the errors; None if there are several or none."""
        return single_correlation(self.terms)

    @property
    def atanh_rho(self) -> float:
        """The one correlation of the errors, transformed; NaN if there are several or none."""
        return float("nan") if self.correlation is None else self.errors[self.correlation]

    @property
    def atanh_rho_variance(self) -> float:
        """Its classical variance."""
        if self.correlation is None:
            return float("nan")
        place = list(self.errors).index(self.correlation) - len(self.errors)
        return float(self.inner_covariance[place, place])

    @property
    def rho(self) -> float:
        """The one correlation of the errors."""
        return float(np.tanh(self.atanh_rho))

    @property
    def sigma(self) -> float:
        """Standard deviation of the outcome's error."""
        return 1.0


@dataclass(frozen=True)
class MaximumLikelihood(JointMaximum):
    """Maximum-likelihood estimates of the linear model."""

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
        return self.errors["sigma"]

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
    usual: Floats | State,
    starts: StartsByRho | None,
    start: Start,
    pilot: Rows | None = None,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """Find a maximum, look for others, and return the fields of a `JointMaximum`.

    Log-likelihoods are those of the scaled outcome. ``pilot`` are the rows that are
    searched for others; few are enough if they say much about rho. ``alone`` skips that search, and
    so does a problem without ``starts``, whose errors have several correlations or none.
    """
    state, passes, converged = maximum_from(rows, problem, usual, starts, start)
    estimates = _estimates(rows, problem, features, kind, state, passes, converged)
    place = problem.rho
    if alone or starts is None or place is None:
        return estimates
    others = higher_maxima(rows, problem, state, starts, pilot)
    if start is not None:
        other, _, reached = newton(rows, problem, usual)
        if reached and abs(other.theta[place] - state.theta[place]) > _APART:
            others.append(other)
    second = max(others, key=lambda other: other.log_likelihood, default=None)
    if second is None:
        return estimates
    height, rho = float(second.log_likelihood), float(np.tanh(second.theta[place]))
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
    assert problem.rho is not None
    free = problem.all_but(problem.rho)
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
    free: NDArray[np.intp] | None = None,
) -> dict[str, Any]:
    """Return the fields of a `JointMaximum`; all parameters are ``free`` by default."""
    best = state.theta
    free = np.arange(len(best)) if free is None else free
    inverse, positive = _inverse_information(state, free)
    if converged and positive:
        best = best + inverse @ state.gradient
    outer, back = outer_estimates(problem, best)
    inner = inverse
    if kind.cov_type != "classical":
        args, columns = (scores_of, problem, best), problem.columns
        inner = sandwich(rows, kind, inverse, *args, columns=columns)
    equations, first = {}, 0
    for name in problem.input_order:
        size = len(problem.backs[name])
        equations[name], first = outer[first : first + size], first + size
    ends = (float(value) for value in outer[first:])
    return {
        "features": features,
        "equations": equations,
        "errors": {term.name: value for term, value in zip(problem.error_terms, ends, strict=True)},
        "terms": problem.error_terms,
        "covariance": symmetric(back @ inner @ back.T),
        "inner_params": best,
        "inner_covariance": inverse,
        "log_likelihood": float(state.log_likelihood),
        "n_iterations": passes,
        "converged": converged,
        "n_free": len(free),
        "information_is_positive": positive,
        "second_maximum": None,
    }


def outer_estimates(problem: JointProblem, theta: Floats) -> tuple[Floats, Floats]:
    """Return the parameters on the input's scale, given theta: selection last of the equations.

    Beside them is the matrix that leads there, before the shifts by the outcome's units.
    """
    matrix, shift, first = np.eye(problem.size), np.zeros(problem.size), 0
    for name in problem.input_order:
        back, (centre, scale) = problem.backs[name], problem.units(name)
        own = slice(first, first + len(back))
        matrix[own, : problem.n_coefficients] = 0.0
        matrix[own, problem.equation(name)] = back * scale
        shift[first] = centre
        first += len(back)
    outer = matrix @ theta + shift
    outer[problem.scales] += np.log(problem.scale)
    return outer, matrix


def _inverse_information(state: State, free: NDArray[np.intp]) -> tuple[Floats, bool]:
    """Inverse of minus the Hessian, and whether that is positive definite.

    Parameters that are not ``free`` do not vary.
    """
    inverse, own = np.zeros_like(state.hessian), np.ix_(free, free)
    known = inverse_definite(-state.hessian[own])
    inverse[own] = np.nan if known is None else known
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
        if start is not None and fit.correlation is not None:
            known = fit.second_maximum
            where = "" if known is None else f" (there is a maximum at {rho_text(known[1])})"
            cure = (
                f"Start from another rho first{where}. If that does not converge either, "
                f"{fit.instead}."
            )
        where = "" if fit.correlation is None else f" (rho = {rho_text(fit.rho)})"
        warn(
            f"maximum likelihood did not converge in {fit.n_iterations} passes{where}; do not "
            f"trust its estimates. {cure}",
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
