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

from heckmanfa.coordinates import Coordinates, Design
from heckmanfa.linalg import solve_upper
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats, log_cdf_and_mills, mills
from heckmanfa.probit import Probit
from heckmanfa.rows import Block, Positions, Rows, total
from heckmanfa.sandwich import CovarianceKind, score_squares
from heckmanfa.twostep import TwoStep

__all__ = ["MaximumLikelihood", "fit_likelihood"]

_MAX_ITERATIONS = 100
# As in the probit: an error of about 3e-9 in the covariance, and far less in the estimates.
_DECREMENT_PER_ROW = 1e-17
# Where, how closely and on how many rows the likelihood is profiled to see whether it rises again
# towards |rho| = 1.
_PROFILE_ATANH = (1.5, 3.0)
_PROFILE_DECREMENT = 0.5
_PROFILE_RISE = 0.1
_PROFILE_ITERATIONS = 15
_PROFILE_ROWS = 2**11
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
    index_range: tuple[float, float]
    """of z'gamma among the selected rows"""
    second_maximum: tuple[float, float] | None
    """log-likelihood and rho of a higher maximum that was found, if any"""


@dataclass(frozen=True)
class _Problem:
    """The model in coordinates: gamma and beta are both written on one design of all features.

    The columns of a block are those of the selection equation, then those that only predict.
    """

    union: Coordinates
    """of all k columns; its first p are the probit's"""
    n_selection: int
    """1 + p"""
    prediction: Floats
    """(1 + k, 1 + j) from beta to coefficients on the design"""
    prediction_back: Floats
    """(1 + j, 1 + j) from beta to coefficients of [1, X_S]"""
    selection_back: Floats
    """(1 + p, 1 + p) likewise for gamma"""
    prediction_gram: Floats
    """(1 + j, 1 + j) average of x x' over the selected rows"""
    centre: float
    scale: float
    """of the outcome among the selected rows"""

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of coefficients in gamma and in beta."""
        return self.n_selection, self.prediction.shape[1]

    @classmethod
    def build(cls, moments: Moments, probit: Probit, features: Positions) -> _Problem:
        """Set up the coordinates of both equations."""
        alone = _alone(probit, features)
        outcome, root_m = moments.factor[:, -1], moments.factor[0, 0]
        extra = moments.factor[:, moments.places(alone)]
        union = probit.coordinates.extended(
            extra[0] / root_m, np.asarray(np.linalg.norm(extra[1:], axis=0) / root_m)
        )
        root = moments.subset(features, imr=False, outcome=False)
        back = Coordinates.from_factor(root).back()
        order = [*probit.features, *alone]
        chosen = np.zeros((len(order) + 1, len(features) + 1))
        chosen[0, 0] = 1.0
        for place, one in enumerate(features, start=1):
            chosen[order.index(one) + 1, place] = 1.0
        half = root @ back
        return cls(
            union=union,
            n_selection=len(probit.features) + 1,
            prediction=solve_upper(union.back(), chosen @ back),
            prediction_back=back,
            selection_back=probit.coordinates.back(),
            prediction_gram=half.T @ half / moments.n_selected,
            centre=float(outcome[0] / root_m),
            scale=float(np.linalg.norm(outcome[1:]) / root_m),
        )


def _alone(probit: Probit, features: Positions) -> list[int]:
    """Positions of the features that predict and do not select."""
    return [one for one in features if one not in probit.features]


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
    columns = [*probit.features, *_alone(probit, start.features)]
    problem = _Problem.build(moments, probit, start.features)
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
        index_range=_index_range(rows, columns, problem, best),
        second_maximum=_second_maximum(
            rows,
            columns,
            problem,
            state,
            _ProfileStarts.build(moments, probit, start.features, problem),
            moments.n_selected,
        ),
    )


def _starting_point(problem: _Problem, probit: Probit, start: TwoStep) -> Floats:
    """Two-step values in inner coordinates; a rho-hat outside (-1, 1) starts just inside."""
    beta = start.coef[:-1].copy()
    beta[0] -= problem.centre
    inner_beta = solve_upper(problem.prediction_back, beta) / problem.scale
    rho = float(np.clip(start.solution.rho, -_START_RHO, _START_RHO))
    sigma = float(start.solution.sigma) / problem.scale
    return np.concatenate([probit.inner_coef, inner_beta, [np.log(sigma), np.arctanh(rho)]])


def _back(problem: _Problem) -> Floats:
    """Matrix from inner (gamma, beta, s, t) to outer (beta, gamma, s, t), before the shifts."""
    p, j = problem.sizes
    matrix = np.zeros((p + j + 2, p + j + 2))
    matrix[:j, p : p + j] = problem.prediction_back * problem.scale
    matrix[j : j + p, :p] = problem.selection_back
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
    rows: Rows,
    columns: Positions,
    problem: _Problem,
    found: _State,
    starts: _ProfileStarts,
    m: float,
) -> tuple[float, float] | None:
    """Look for a higher maximum towards rho = -1 and rho = 1.

    The likelihood is profiled at a few fixed rho on each side, on a small sample where rows are
    many. Only where it rises again away from the optimum is a full search started there.
    """
    pilot = rows.pilot(_PROFILE_ROWS)
    here = _evaluate(pilot, columns, problem, found.theta).log_likelihood
    best: tuple[float, float] | None = None
    for side in (-1.0, 1.0):
        previous = here
        for target in (side * size for size in _PROFILE_ATANH):
            if side * (target - found.theta[-1]) <= 0.25:
                continue
            free = len(found.theta) - 1
            state, _, _ = _newton(
                pilot,
                columns,
                problem,
                starts.at(target),
                free=free,
                tolerance=_PROFILE_DECREMENT,
                max_iterations=_PROFILE_ITERATIONS,
            )
            # The last step, not taken, would gain half of its decrement.
            height = state.log_likelihood + 0.5 * float(_ascent(state, free) @ state.gradient)
            if height > previous + _PROFILE_RISE:
                risen, _, _ = _newton(
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
class _ProfileStarts:
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
        cls, moments: Moments, probit: Probit, features: Positions, problem: _Problem
    ) -> _ProfileStarts:
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


def _index_range(
    rows: Rows, columns: Positions, problem: _Problem, theta: Floats
) -> tuple[float, float]:
    ranges = list(rows.map(_block_range, problem, theta, columns=columns))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _evaluate(rows: Rows, columns: Positions, problem: _Problem, theta: Floats) -> _State:
    """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        scalars, others, other_gram, vectors, gram = total(
            rows.map(_terms, problem, theta, columns=columns)
        )
        value, n, m, d_s, d_t, d_ss, d_st, d_tt = scalars
        p, j = problem.sizes
        sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
        # gamma is written on the first columns of the design, beta on all of them.
        to_beta = problem.prediction
        in_gamma, in_beta = vectors[:p], to_beta.T @ vectors
        gradient = np.concatenate([in_gamma[:, 0] - others, in_beta[:, 1], [d_s, d_t]])
        # Every block is -delta times a product of z cosh and -x sinh / sigma, but for -x x'.
        hessian = np.zeros((p + j + 2, p + j + 2))
        hessian[:p, :p] = -(cosh**2) * gram[:p, :p] - other_gram
        hessian[:p, p:-2] = cosh * sinh / sigma * gram[:p] @ to_beta
        hessian[p:-2, p:-2] = (
            -(sinh**2) * to_beta.T @ gram @ to_beta - m * problem.prediction_gram
        ) / sigma**2
        hessian[:p, -2:] = in_gamma[:, 2:4]
        hessian[p:-2, -2:] = in_beta[:, 4:6]
        hessian[-2:, -2:] = [[d_ss, d_st], [d_st, d_tt]]
        lower = np.tril_indices(len(hessian), -1)
        hessian[lower] = hessian.T[lower]
        value = float(value) - (float(theta[-2]) + _HALF_LOG_2PI) * float(m)
    if not (np.isfinite(value) and np.all(np.isfinite(hessian))):
        value = -np.inf
    return _State(theta, value, gradient, hessian, float(n))


# What runs on a block of rows. ---------------------------------------------------------------


def _block_range(block: Block, problem: _Problem, theta: Floats) -> tuple[float, float]:
    p = problem.n_selection
    features = block.only_selected().features[:, : p - 1]
    index = problem.union.design(features).times(theta[:p])
    return float(index.min(initial=np.inf)), float(index.max(initial=-np.inf))


@dataclass(frozen=True)
class _Selected:
    """Selected rows of a block at some theta, with the first derivatives of each row."""

    design: Design
    e: Floats
    a: Floats
    a_t: Floats
    """derivative of a in t"""
    log_cdf: Floats
    ratio: Floats
    slope: Floats
    d_u: Floats
    d_e: Floats


def _selected(block: Block, problem: _Problem, theta: Floats) -> _Selected:
    p, j = problem.sizes
    both = np.zeros((len(problem.prediction), 2))
    both[:p, 0] = theta[:p]
    both[:, 1] = problem.prediction @ theta[p : p + j]
    design = problem.union.design(block.features)
    u, mean = design.times(both).T
    sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
    e = ((block.outcome - problem.centre) / problem.scale - mean) / sigma
    a = cosh * u + sinh * e
    log_cdf, ratio, slope = log_cdf_and_mills(a)
    return _Selected(
        design=design,
        e=e,
        a=a,
        a_t=sinh * u + cosh * e,
        log_cdf=log_cdf,
        ratio=ratio,
        slope=slope,
        d_u=cosh * ratio,
        d_e=sinh * ratio - e,
    )


def _terms(
    block: Block, problem: _Problem, theta: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Sums over a block that the log-likelihood and its derivatives are made of.

    Returns
    -------
    scalars : (8,)
        log Phi - e^2/2 summed, the numbers of rows and of selected rows, and derivatives in
        (s, t): first s, t, then second ss, st, tt.
    others, other_gram : (p,), (p, p)
        Unselected rows: sums of lambda(-u) z and of delta(-u) z z'.
    vectors : (1 + k, 6)
        Selected rows: sums of the design times derivatives in u, x'beta, then us, ut, xs, xt.
    gram : (1 + k, 1 + k)
        Selected rows: sum of delta(a) times products of the design.
    """
    p = problem.n_selection
    others = block.keep(~block.selected)
    z = problem.union.design(others.features[:, : p - 1])
    value, ratio, slope = log_cdf_and_mills(-z.times(theta[:p]))
    n = float(len(value))
    if others.weight is not None:
        ratio, slope, value = (others.weight * part for part in (ratio, slope, value))
        n = float(others.weight.sum())

    chosen = block.only_selected()
    rows = _selected(chosen, problem, theta)
    sigma, cosh, sinh = np.exp(theta[-2]), np.cosh(theta[-1]), np.sinh(theta[-1])
    e, d_e, bend = rows.e, rows.d_e, rows.slope * rows.a_t
    # Second derivatives in (u, e, t), then by the chain rule in (u, x'beta, s, t).
    d_ee = -(sinh**2) * rows.slope - 1.0
    d_et = cosh * rows.ratio - sinh * bend
    columns = np.empty((len(e), 6))
    columns[:, 0] = rows.d_u
    columns[:, 1] = -d_e / sigma
    columns[:, 2] = (cosh * sinh) * (e * rows.slope)
    columns[:, 3] = sinh * rows.ratio - cosh * bend
    columns[:, 4] = (d_ee * e + d_e) / sigma
    columns[:, 5] = -d_et / sigma
    each = np.stack(
        [
            rows.log_cdf - 0.5 * e * e,
            -e * d_e - 1.0,
            rows.ratio * rows.a_t,
            e * (e * d_ee + d_e),
            -e * d_et,
            rows.ratio * rows.a - bend * rows.a_t,
        ]
    )
    if chosen.weight is None:
        m, summed, curvature = float(len(e)), each.sum(axis=1), rows.slope
    else:
        m, summed = float(chosen.weight.sum()), each @ chosen.weight
        columns *= chosen.weight[:, None]
        curvature = chosen.weight * rows.slope
    scalars = np.array([value.sum() + summed[0], n + m, m, *summed[1:]])
    return (
        scalars,
        z.pull(ratio),
        z.gram(slope),
        rows.design.pull(columns),
        rows.design.gram(curvature),
    )


def _scores(block: Block, problem: _Problem, theta: Floats) -> Floats:
    """(b, d) derivative of each row's log-likelihood, before weights."""
    p, j = problem.sizes
    scores = np.zeros((len(block.selected), p + j + 2))
    others = block.keep(~block.selected)
    z = problem.union.design(others.features[:, : p - 1])
    scores[~block.selected, :p] = z.scaled(-mills(-z.times(theta[:p]))[0])
    rows = _selected(block.only_selected(), problem, theta)
    ones = rows.design.scaled(np.ones(len(rows.e)))
    scores[block.selected] = np.concatenate(
        [
            ones[:, :p] * rows.d_u[:, None],
            (ones @ problem.prediction) * (-rows.d_e / np.exp(theta[-2]))[:, None],
            (-rows.e * rows.d_e - 1.0)[:, None],
            (rows.ratio * rows.a_t)[:, None],
        ],
        axis=1,
    )
    return scores
