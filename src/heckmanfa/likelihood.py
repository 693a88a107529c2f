"""Full-information maximum likelihood of the selection model.

With u = z'gamma, e = (y - x'beta) / sigma and a = (u + rho e) / sqrt(1 - rho^2), a selected row
contributes log Phi(a) - e^2/2 - log sigma - log(2 pi)/2 and an unselected one log Phi(-u). In
s = log sigma and t = atanh rho, a = u cosh t + e sinh t, and every derivative is short. Newton's
method runs in orthonormal coordinates of both equations and on the standardised outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg as sla

from heckmanfa.linalg import subset_factor
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats, log_cdf_and_mills, mills
from heckmanfa.probit import Coordinates, Probit, coordinates_from_factor
from heckmanfa.rows import Block, Positions, Rows, total
from heckmanfa.sandwich import CovarianceKind, score_squares
from heckmanfa.twostep import TwoStep

__all__ = ["MaximumLikelihood", "fit_likelihood"]

_MAX_ITERATIONS = 100
_DECREMENT_PER_ROW = 1e-20
# Where, how closely and on how many rows the likelihood is profiled to see whether it rises again
# towards |rho| = 1.
_PROFILE_ATANH = (1.5, 3.0)
_PROFILE_DECREMENT = 0.02
_PROFILE_RISE = 0.1
_PROFILE_ITERATIONS = 15
_PROFILE_ROWS = 2**12
_START_RHO = 0.95
_LARGEST_ATANH = 12.0
_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


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
    second_maximum: tuple[float, float] | None
    """log-likelihood and rho of a higher maximum that was found, if any"""


@dataclass(frozen=True)
class _Problem:
    """What a block needs to know, small enough to travel."""

    selection: Coordinates
    selection_places: tuple[int, ...]
    prediction: Coordinates
    prediction_places: tuple[int, ...]
    centre: float
    scale: float
    """of the outcome among the selected rows"""

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.selection_places) + 1, len(self.prediction_places) + 1


@dataclass(frozen=True)
class _State:
    theta: Floats
    """gamma, beta (both inner coordinates), log sigma, atanh rho"""
    log_likelihood: float
    gradient: Floats
    hessian: Floats
    n: float


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
    columns = list(moments.columns)
    outcome = moments.factor[:, -1]
    root_m = moments.factor[0, 0]
    prediction_root = subset_factor(moments.factor, [0, *moments.places(start.features)])
    problem = _Problem(
        selection=probit.coordinates,
        selection_places=tuple(columns.index(one) for one in probit.features),
        prediction=coordinates_from_factor(prediction_root),
        prediction_places=tuple(columns.index(one) for one in start.features),
        centre=float(outcome[0] / root_m),
        scale=float(np.linalg.norm(outcome[1:]) / root_m),
    )
    theta = _starting_point(problem, probit, start)
    state, passes, converged = _newton(rows, columns, problem, theta)
    best = state.theta
    inverse, positive = _inverse_information(state)
    if converged and positive:
        best = best + inverse @ state.gradient
    back = _back(problem)
    if kind.cov_type == "classical":
        middle = inverse
    else:
        squares = score_squares(rows, kind, _scores, problem, best, columns=columns, size=len(best))
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
        covariance=_symmetric(back @ middle @ back.T),
        log_likelihood=float(state.log_likelihood - moments.n_selected * np.log(problem.scale)),
        n_iterations=passes,
        converged=converged,
        information_is_positive=positive,
        second_maximum=_second_maximum(rows, columns, problem, state, moments.n_selected),
    )


def _starting_point(problem: _Problem, probit: Probit, start: TwoStep) -> Floats:
    """Two-step values in inner coordinates; a rho-hat outside (-1, 1) starts just inside."""
    beta = start.coef[:-1].copy()
    beta[0] -= problem.centre
    inner_beta = np.linalg.solve(problem.prediction.back(), beta) / problem.scale
    rho = float(np.clip(start.solution.rho, -_START_RHO, _START_RHO))
    sigma = float(start.solution.sigma) / problem.scale
    return np.concatenate([probit.inner_coef, inner_beta, [np.log(sigma), np.arctanh(rho)]])


def _back(problem: _Problem) -> Floats:
    """Matrix from inner (gamma, beta, s, t) to outer (beta, gamma, s, t), before the shifts."""
    p, j = problem.sizes
    matrix = np.zeros((p + j + 2, p + j + 2))
    matrix[:j, p : p + j] = problem.prediction.back() * problem.scale
    matrix[j : j + p, :p] = problem.selection.back()
    matrix[-2, -2] = matrix[-1, -1] = 1.0
    return matrix


def _symmetric(matrix: Floats) -> Floats:
    return 0.5 * (matrix + matrix.T)


def _inverse_information(state: _State) -> tuple[Floats, bool]:
    """Inverse of minus the Hessian, and whether that is positive definite."""
    try:
        half = sla.cho_factor(-state.hessian)
        return np.asarray(sla.cho_solve(half, np.eye(len(state.theta)))), True
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(state.hessian, np.nan), False


def _ascent(state: _State, free: int) -> Floats:
    """Newton step over the first ``free`` parameters, made an ascent direction where H is not."""
    information = -state.hessian[:free, :free]
    gradient = state.gradient[:free]
    try:
        step = sla.cho_solve(sla.cho_factor(information), gradient)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
        step = vectors @ ((vectors.T @ gradient) / values)
    step = np.append(step, np.zeros(len(state.theta) - free))
    # log sigma and atanh rho move by at most one a step.
    return np.asarray(step / max(1.0, float(np.abs(step[-2:]).max())))


def _newton(
    rows: Rows,
    columns: Positions,
    problem: _Problem,
    theta: Floats,
    *,
    free: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = _MAX_ITERATIONS,
) -> tuple[_State, int, bool]:
    """Safeguarded Newton over the first ``free`` parameters (all, unless rho is held)."""
    state = _evaluate(rows, columns, problem, theta)
    passes = 1
    free = len(theta) if free is None else free
    tolerance = _DECREMENT_PER_ROW * state.n if tolerance is None else tolerance
    while passes < max_iterations and abs(state.theta[-1]) < _LARGEST_ATANH:
        step = _ascent(state, free)
        decrement = float(step @ state.gradient)
        if not decrement > tolerance:
            return state, passes, bool(np.isfinite(decrement))
        slack = 1e-11 * (1.0 + abs(state.log_likelihood))
        for _ in range(40):
            trial = _evaluate(rows, columns, problem, state.theta + step)
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
    rows: Rows, columns: Positions, problem: _Problem, found: _State, m: float
) -> tuple[float, float] | None:
    """Look for a higher maximum towards rho = -1 and rho = 1.

    The likelihood is profiled at a few fixed rho on each side, on a pilot sample where rows are
    many. Only where it rises again away from the optimum is a full search started there.
    """
    pilot = rows.pilot(_PROFILE_ROWS)
    free = len(found.theta) - 1
    best: tuple[float, float] | None = None
    for side in (-1.0, 1.0):
        theta = found.theta
        previous = np.inf
        for target in (side * size for size in _PROFILE_ATANH):
            if side * (target - found.theta[-1]) <= 0.25:
                continue
            theta = np.append(theta[:-1], target)
            state, _, _ = _newton(
                pilot,
                columns,
                problem,
                theta,
                free=free,
                tolerance=_PROFILE_DECREMENT,
                max_iterations=_PROFILE_ITERATIONS,
            )
            theta = state.theta
            if state.log_likelihood > previous + _PROFILE_RISE:
                risen, _, _ = _newton(
                    rows, columns, problem, theta, tolerance=1e-8, max_iterations=60
                )
                if risen.log_likelihood > found.log_likelihood + 1e-3:
                    height = float(risen.log_likelihood - m * np.log(problem.scale))
                    if best is None or height > best[0]:
                        best = height, float(np.tanh(risen.theta[-1]))
                break
            previous = state.log_likelihood
    return best


def _evaluate(rows: Rows, columns: Positions, problem: _Problem, theta: Floats) -> _State:
    with np.errstate(over="ignore", invalid="ignore"):
        sums = total(rows.map(_terms, problem, theta, columns=columns))
    value, n, gradient, hessian = sums
    value = float(value) if np.isfinite(value) and np.all(np.isfinite(hessian)) else -np.inf
    return _State(theta, value, gradient, hessian, float(n))


# What runs on a block of rows. ---------------------------------------------------------------


@dataclass(frozen=True)
class _Selected:
    """Selected rows of a block at some theta, with the first derivatives of each row."""

    z: Floats
    x: Floats
    e: Floats
    a: Floats
    a_t: Floats
    """derivative of a in t"""
    log_cdf: Floats
    ratio: Floats
    slope: Floats
    d_u: Floats
    d_eta: Floats
    """in x'beta"""
    d_s: Floats
    d_t: Floats


def _selected(block: Block, problem: _Problem, theta: Floats) -> _Selected:
    p, j = problem.sizes
    gamma, beta = theta[:p], theta[p : p + j]
    sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
    z = problem.selection.design(block.features[:, problem.selection_places])
    x = problem.prediction.design(block.features[:, problem.prediction_places])
    u = z @ gamma
    e = ((block.outcome - problem.centre) / problem.scale - x @ beta) / sigma
    a = cosh * u + sinh * e
    log_cdf, ratio, slope = log_cdf_and_mills(a)
    a_t = sinh * u + cosh * e
    d_e = sinh * ratio - e
    return _Selected(
        z=z,
        x=x,
        e=e,
        a=a,
        a_t=a_t,
        log_cdf=log_cdf,
        ratio=ratio,
        slope=slope,
        d_u=cosh * ratio,
        d_eta=-d_e / sigma,
        d_s=-e * d_e - 1.0,
        d_t=ratio * a_t,
    )


def _terms(block: Block, problem: _Problem, theta: Floats) -> tuple[float, float, Floats, Floats]:
    """Log-likelihood, number of rows, gradient and Hessian of a block."""
    p, j = problem.sizes
    d = p + j + 2
    gradient, hessian = np.zeros(d), np.zeros((d, d))

    others = block.keep(~block.selected)
    z = problem.selection.design(others.features[:, problem.selection_places])
    u = z @ theta[:p]
    value, ratio, slope = log_cdf_and_mills(-u)
    n = float(len(u))
    if others.weight is not None:
        ratio, slope, value = (others.weight * part for part in (ratio, slope, value))
        n = float(others.weight.sum())
    likelihood = float(value.sum())
    gradient[:p] = -(z.T @ ratio)
    z *= np.sqrt(slope)[:, None]
    hessian[:p, :p] = -(z.T @ z)

    chosen = block.only_selected()
    rows = _selected(chosen, problem, theta)
    w = np.ones(len(rows.a)) if chosen.weight is None else chosen.weight
    sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
    value = rows.log_cdf - 0.5 * rows.e**2
    likelihood += float(w @ value) - (float(theta[-2]) + _HALF_LOG_2PI) * float(w.sum())
    n += float(w.sum())
    gradient[:p] += rows.z.T @ (w * rows.d_u)
    gradient[p : p + j] = rows.x.T @ (w * rows.d_eta)
    gradient[-2], gradient[-1] = w @ rows.d_s, w @ rows.d_t

    # Second derivatives in (u, e, t), then by the chain rule in (u, eta, s, t).
    d_e = sinh * rows.ratio - rows.e
    d_ee = -(sinh**2) * rows.slope - 1.0
    d_ue = -cosh * sinh * rows.slope
    d_ut = -cosh * rows.slope * rows.a_t + sinh * rows.ratio
    d_et = -sinh * rows.slope * rows.a_t + cosh * rows.ratio
    d_tt = -rows.slope * rows.a_t**2 + rows.ratio * rows.a
    cross = {
        "us": -rows.e * d_ue,
        "ut": d_ut,
        "xs": (d_ee * rows.e + d_e) / sigma,
        "xt": -d_et / sigma,
    }
    hessian[:p, -2] = rows.z.T @ (w * cross["us"])
    hessian[:p, -1] = rows.z.T @ (w * cross["ut"])
    hessian[p : p + j, -2] = rows.x.T @ (w * cross["xs"])
    hessian[p : p + j, -1] = rows.x.T @ (w * cross["xt"])
    hessian[-2, -2] = w @ (rows.e**2 * d_ee + rows.e * d_e)
    hessian[-2, -1] = -(w @ (rows.e * d_et))
    hessian[-1, -1] = w @ d_tt

    # The blocks of gamma and beta are all -delta times products of z cosh and -x sinh / sigma,
    # but for -x x' / sigma^2, so one product of a stacked matrix gives the three of them.
    root = np.sqrt(w * rows.slope)[:, None]
    both = np.concatenate([rows.z * (cosh * root), rows.x * (-sinh / sigma * root)], axis=1)
    hessian[: p + j, : p + j] -= both.T @ both
    x = rows.x if chosen.weight is None else rows.x * np.sqrt(w)[:, None]
    hessian[p : p + j, p : p + j] -= x.T @ x / sigma**2
    lower = np.tril_indices(d, -1)
    hessian[lower] = hessian.T[lower]
    return likelihood, n, gradient, hessian


def _scores(block: Block, problem: _Problem, theta: Floats) -> Floats:
    """(b, d) derivative of each row's log-likelihood, before weights."""
    p, j = problem.sizes
    scores = np.zeros((len(block.selected), p + j + 2))
    others = block.keep(~block.selected)
    z = problem.selection.design(others.features[:, problem.selection_places])
    scores[~block.selected, :p] = -z * mills(-(z @ theta[:p]))[0][:, None]
    rows = _selected(block.only_selected(), problem, theta)
    scores[block.selected] = np.concatenate(
        [
            rows.z * rows.d_u[:, None],
            rows.x * rows.d_eta[:, None],
            rows.d_s[:, None],
            rows.d_t[:, None],
        ],
        axis=1,
    )
    return scores
