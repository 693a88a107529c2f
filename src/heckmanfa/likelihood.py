"""Full-information maximum likelihood of the selection model.

Safeguarded Newton's method from the two-step estimates, on the likelihood of
`heckmanfa.likelihood_terms`, and a cheap look for a second maximum near |rho| = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg as sla

from heckmanfa.likelihood_terms import (
    Problem,
    State,
    evaluate,
    index_range,
    predicting_only,
    row_scores,
)
from heckmanfa.linalg import solve_upper, symmetric
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats
from heckmanfa.probit import Probit
from heckmanfa.rows import Positions, Rows
from heckmanfa.sandwich import CovarianceKind, score_squares
from heckmanfa.twostep import TwoStep

__all__ = [
    "MaximumLikelihood",
    "ProfileStarts",
    "ascent",
    "fit_likelihood",
    "newton",
    "starting_point",
]

_MAX_ITERATIONS = 100
# As in the probit: an error of 1e-8 at most in the covariance, and far less in the estimates.
_DECREMENT_PER_ROW = 1e-16
# Where, how closely and on how many rows the likelihood is profiled to see whether it rises again
# towards |rho| = 1.
_PROFILE_ATANH = (1.5, 3.0)
_PROFILE_DECREMENT = 0.5
_PROFILE_RISE = 0.1
_PROFILE_ITERATIONS = 15
_PROFILE_ROWS = 2**11
_START_RHO = 0.95
_LARGEST_ATANH = 12.0


@dataclass(frozen=True)
class MaximumLikelihood:
    """Maximum-likelihood estimates for one assignment S of J features and p selection features."""

    features: tuple[int, ...]
    coef: Floats
    """(1 + J,) prediction equation, intercept first"""
    selection_coef: Floats
    """(1 + p,)"""
    log_sigma: float
    atanh_rho: float
    covariance: Floats
    """(1 + J + 1 + p + 2,) squared: prediction, selection, log sigma, atanh rho"""
    log_likelihood: float
    n_iterations: int
    converged: bool
    information_is_positive: bool
    """whether the observed information is positive definite at the estimates"""
    index_range: tuple[float, float]
    """of z'gamma among the selected rows"""
    second_maximum: tuple[float, float] | None
    """log-likelihood and rho of a higher maximum that was found, if any"""

    @property
    def rho(self) -> float:
        """Correlation of the errors."""
        return float(np.tanh(self.atanh_rho))

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
    start: TwoStep,
    kind: CovarianceKind,
    rows: Rows,
) -> MaximumLikelihood:
    """Maximise the joint likelihood of selection and outcome, from the two-step estimates.

    Parameters
    ----------
    moments : Moments
    probit : Probit
    start : TwoStep
        Names the prediction features and gives the starting values.
    kind : CovarianceKind
        'classical' is the inverse observed information.
    rows : Rows
        Read once an iteration.

    Returns
    -------
    MaximumLikelihood
    """
    columns = [*probit.features, *predicting_only(probit, start.features)]
    problem = Problem.build(moments, probit, start.features)
    theta = starting_point(problem, probit, start)
    state, passes, converged = newton(rows, columns, problem, theta)
    best = state.theta
    inverse, positive = _inverse_information(state)
    if converged and positive:
        best = best + inverse @ state.gradient
    back = _back(problem)
    if kind.cov_type == "classical":
        middle = inverse
    else:
        squares = score_squares(
            rows, kind, row_scores, problem, best, columns=columns, size=len(best)
        )
        middle = inverse @ squares @ inverse
    p, _ = problem.sizes
    outer = back @ best
    outer[0] += problem.centre
    j = len(start.features) + 1
    return MaximumLikelihood(
        features=start.features,
        coef=outer[:j],
        selection_coef=outer[j : j + p],
        log_sigma=float(best[-2] + np.log(problem.scale)),
        atanh_rho=float(best[-1]),
        covariance=symmetric(back @ middle @ back.T),
        log_likelihood=float(state.log_likelihood - moments.n_selected * np.log(problem.scale)),
        n_iterations=passes,
        converged=converged,
        information_is_positive=positive,
        index_range=index_range(rows, columns, problem, best),
        second_maximum=_second_maximum(
            rows,
            columns,
            problem,
            state,
            ProfileStarts.build(moments, probit, start.features, problem),
            moments.n_selected,
        ),
    )


def starting_point(problem: Problem, probit: Probit, start: TwoStep) -> Floats:
    """Two-step values in inner coordinates; a rho-hat outside (-1, 1) starts just inside."""
    beta = start.coef[:-1].copy()
    beta[0] -= problem.centre
    inner_beta = solve_upper(problem.prediction_back, beta) / problem.scale
    rho = float(np.clip(start.solution.rho, -_START_RHO, _START_RHO))
    sigma = float(start.solution.sigma) / problem.scale
    return np.concatenate([probit.inner_coef, inner_beta, [np.log(sigma), np.arctanh(rho)]])


def _back(problem: Problem) -> Floats:
    """Matrix from inner (gamma, beta, s, t) to outer (beta, gamma, s, t), before the shifts."""
    p, j = problem.sizes
    matrix = np.zeros((p + j + 2, p + j + 2))
    matrix[:j, p : p + j] = problem.prediction_back * problem.scale
    matrix[j : j + p, :p] = problem.selection_back
    matrix[-2, -2] = matrix[-1, -1] = 1.0
    return matrix


def _inverse_information(state: State) -> tuple[Floats, bool]:
    """Inverse of minus the Hessian, and whether that is positive definite."""
    try:
        half = sla.cho_factor(-state.hessian)
        return np.asarray(sla.cho_solve(half, np.eye(len(state.theta)))), True
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(state.hessian, np.nan), False


def ascent(state: State, free: int) -> Floats:
    """Newton step over the first ``free`` parameters, made an ascent direction where H is not."""
    information = -state.hessian[:free, :free]
    gradient = state.gradient[:free]
    try:
        step = sla.cho_solve(sla.cho_factor(information), gradient)
    except np.linalg.LinAlgError:
        # With a unit diagonal, so that what counts as flat does not depend on units.
        size = np.sqrt(np.abs(np.diag(information)))
        unit = 1.0 / np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(information * unit * unit[:, None])
        values = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
        step = unit * (vectors @ ((vectors.T @ (unit * gradient)) / values))
    step = np.append(step, np.zeros(len(state.theta) - free))
    # log sigma and atanh rho move by at most one a step.
    return np.asarray(step / max(1.0, float(np.abs(step[-2:]).max())))


def newton(
    rows: Rows,
    columns: Positions,
    problem: Problem,
    theta: Floats,
    *,
    free: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = _MAX_ITERATIONS,
) -> tuple[State, int, bool]:
    """Safeguarded Newton over the first ``free`` parameters (all, unless rho is held)."""
    state = evaluate(rows, columns, problem, theta)
    passes = 1
    free = len(theta) if free is None else free
    tolerance = _DECREMENT_PER_ROW * state.n if tolerance is None else tolerance
    while passes < max_iterations and abs(state.theta[-1]) < _LARGEST_ATANH:
        step = ascent(state, free)
        decrement = float(step @ state.gradient)
        if not decrement > tolerance:
            return state, passes, bool(np.isfinite(decrement))
        slack = 1e-11 * (1.0 + abs(state.log_likelihood))
        for _ in range(40):
            trial = evaluate(rows, columns, problem, state.theta + step)
            passes += 1
            if trial.log_likelihood >= state.log_likelihood - slack:
                break
            step = 0.5 * step
        else:
            # Rounding in the sum is all that is left to climb.
            return state, passes, decrement < 1e-10
        state = trial
    return state, passes, False


def _second_maximum(
    rows: Rows,
    columns: Positions,
    problem: Problem,
    found: State,
    starts: ProfileStarts,
    m: float,
) -> tuple[float, float] | None:
    """Look for a higher maximum towards rho = -1 and rho = 1.

    The likelihood is profiled at a few fixed rho on each side, on a small sample where rows are
    many. Only where it rises again away from the optimum is a full search started there.
    """
    pilot = rows.pilot(_PROFILE_ROWS)
    here = evaluate(pilot, columns, problem, found.theta).log_likelihood
    best: tuple[float, float] | None = None
    for side in (-1.0, 1.0):
        previous = here
        for target in (side * size for size in _PROFILE_ATANH):
            if side * (target - found.theta[-1]) <= 0.25:
                continue
            free = len(found.theta) - 1
            state, _, _ = newton(
                pilot,
                columns,
                problem,
                starts.at(target),
                free=free,
                tolerance=_PROFILE_DECREMENT,
                max_iterations=_PROFILE_ITERATIONS,
            )
            # The last step, not taken, would gain half of its decrement.
            height = state.log_likelihood + 0.5 * float(ascent(state, free) @ state.gradient)
            if height > previous + _PROFILE_RISE:
                risen, _, _ = newton(
                    rows, columns, problem, state.theta, tolerance=1e-8, max_iterations=60
                )
                if risen.log_likelihood > found.log_likelihood + 1e-3:
                    height = float(risen.log_likelihood - m * np.log(problem.scale))
                    if best is None or height > best[0]:
                        best = height, float(np.tanh(risen.theta[-1]))
                break
            previous = height
    return best


@dataclass(frozen=True)
class ProfileStarts:
    """Where to start for a given rho: least squares less rho sigma times that of lambda.

    E[y | x, s = 1] = x'beta + rho sigma lambda, so that beta(rho) is a difference of two
    regressions on the features, and the residual variance s^2 of the first is
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
        cls, moments: Moments, probit: Probit, features: Positions, problem: Problem
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
