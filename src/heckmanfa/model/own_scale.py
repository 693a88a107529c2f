"""What means on an outcome's own scale need, of a model that is fitted on its logarithm.

Under the model, the ratios r = exp(y) / E[exp(y) | x, s = 1] of selected rows have mean one, where
y is the logarithm. One pass at the estimates gives their mean, and products of r - 1 with the
scores of all estimating equations. So its standard error allows for estimates that come from the
same rows.

The same pass serves the two-step estimator, whose sigma has no covariance otherwise: its own
equation, Eq. sigmasq, is projected on the other estimates, whose covariance is the reported one.
So the joint covariance cannot become indefinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, host, like, namespace, zeros
from heckmanfa.data.rows import Block, Positions, Rows, pick
from heckmanfa.model.covariance import CovarianceKind, score_squares_and_sums, scores_and_terms
from heckmanfa.model.held_two_step import RhoScores, held_bread
from heckmanfa.model.joint_problem import LinearProblem, scores_of, standardized
from heckmanfa.model.likelihood import MaximumLikelihood
from heckmanfa.model.linalg import solve_upper, with_constant
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import inverse_mills, log_cdf, mills
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import (
    LARGEST_RHO,
    Equations,
    LeastSquares,
    TwoStep,
    shift_of,
    slope_in_gamma,
)
from heckmanfa.model.two_step_over_rho import TwoStepOverRho

# Below this share of its variance, an estimate does not differ from a multiple of another.
_DISTINCT = 1e-10
# The residuals in scores come from a model of at most this share of the selected rows' number of
# columns.
_MOST_COLUMNS = 1 / 3


@dataclass(frozen=True)
class OwnScale:
    """The mean ratio of a fit on the log of an outcome, and sigma beside other estimates."""

    ratio: float
    """mean over the selected rows of exp(y) / E[exp(y) | x, s = 1]"""
    ratio_error: float
    """its standard error if the model is correct"""
    sigma_on: Floats | None = None
    """sigma as a linear function of the estimates, in the order of the reported covariance, then
    the variance that they leave it; None if the reported covariance has sigma"""

    def rescaled(self, factors: Floats) -> OwnScale:
        """Multiply the standard errors of the estimates, of which beta_H is the last.

        That of sigma is multiplied as that of beta_H is, and correlations stay as they are.
        """
        if self.sigma_on is None:
            return self
        on = factors[-1] * self.sigma_on[:-1] / factors
        return replace(self, sigma_on=np.append(on, factors[-1] ** 2 * self.sigma_on[-1]))


@dataclass(frozen=True)
class _Ratios:
    """Ratios of selected rows, and sums of their derivatives, for a pass over blocks of rows.

    The derivative of log E is [1, x] in beta, lambda(u + b_H) in b_H, (lambda(u + b_H) - lambda(u))
    [1, z] in gamma and sigma in sigma.
    """

    prediction: list[int]
    """positions of the features among a block's columns"""
    coef: Floats
    """(1 + J,) intercept first"""
    imr_coef: float
    sigma: float
    probit: Probit | None
    """None if every outcome was observed"""
    selection: list[int]
    """positions of its features among a block's columns"""

    def __call__(self, block: Block) -> tuple[Array, tuple[Floats, Floats]]:
        """Return r - 1 of each row, zero if it is not selected, and the sums.

        The sums are those of r times the derivatives in beta, then b_H and gamma.
        """
        excess = zeros(block.features, len(block.selected))
        chosen = block.only_selected()
        x = pick(chosen.features, self.prediction)
        error = chosen.outcome - (x @ like(self.coef[1:], x) + float(self.coef[0]))
        index = up = None
        if self.probit is not None:
            z = pick(chosen.features, self.selection)
            index = self.probit.coordinates.design(z).times(self.probit.inner_coef)
            up = inverse_mills(index + self.imr_coef)
        ratio = _ratio(error, index, self.imr_coef, self.sigma)
        excess[block.selected] = ratio - 1.0
        heavy = ratio if chosen.weight is None else ratio * chosen.weight
        in_beta = np.array([float(heavy.sum()), *host(x.T @ heavy)])
        if index is None or up is None:
            return excess, (in_beta, np.zeros(0))
        in_index = heavy * (up - inverse_mills(index))
        in_rest = [float(heavy @ up), float(in_index.sum()), *host(z.T @ in_index)]
        return excess, (in_beta, np.array(in_rest))


@dataclass(frozen=True)
class _WithRatios:
    """Scores of a model, with the ratios as one more."""

    scores: Callable[[Block], Any]
    """with or without terms of sums"""
    ratios: Callable[[Block], tuple[Array, tuple[Any, ...]]]

    def __call__(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Return all scores of each row of a block, and its terms of all sums."""
        scores, terms = scores_and_terms(self.scores(block))
        more, others = self.ratios(block)
        return namespace(scores).concat((scores, more[:, None]), axis=1), (*terms, *others)


def _ratio(error: Array, index: Array | None, imr_coef: float, sigma: float) -> Array:
    """exp(y) / E[exp(y) | x, s = 1], where ``error`` is y - x'b."""
    log_ratio = error - 0.5 * sigma**2
    if index is not None:
        log_ratio = log_ratio - (log_cdf(index + imr_coef) - log_cdf(index))
    with np.errstate(over="ignore"):
        return namespace(log_ratio).exp(log_ratio)


def two_step_own_scale(
    moments: Moments, probit: Probit, two_step: TwoStep, kind: CovarianceKind, rows: Rows
) -> OwnScale:
    """Read the rows once, at two-step estimates.

    Scores of the second step are those of W = [1, X_S, lambda] in coordinates in which W'W is the
    identity, and so are its coefficients here.
    """
    features, m, j = two_step.features, moments.n_selected, len(two_step.coef)
    sigma, imr_coef = float(two_step.solution.sigma), float(two_step.coef[-1])
    root = moments.subset(features, outcome=False)
    inverse_root, inner = solve_upper(root, np.eye(j)), probit.inner_covariance
    coef, variance = _residual_model(moments, two_step)
    equations = Equations.of(moments, probit, features, coef, inverse_root)
    variance += imr_coef**2 * moments.mean_delta
    ratios = _Ratios(
        equations.prediction, two_step.coef[:-1], imr_coef, sigma, probit, equations.selection
    )
    p, size = len(inner), len(inner) + j + 1
    middle, (residual_slope, delta_slope, in_beta, in_rest) = score_squares_and_sums(
        rows,
        kind,
        _WithRatios(_TwoStepScores(equations, imr_coef, variance), ratios),
        columns=moments.columns,
        size=size + 1,
    )
    shift = shift_of(moments, probit, features, inverse_root)[1]
    # Of the residuals of these estimates, if the scores have others.
    residual_slope = residual_slope + (root @ (coef - two_step.coef)) @ shift
    influence = np.zeros((size, size))
    # Heckman's covariance has no larger beta_H.
    most = LARGEST_RHO * sigma if kind.cov_type == "classical" else np.inf
    held = min(max(imr_coef, -most), most)
    influence[:j, :p] = slope_in_gamma(held, inverse_root, shift, residual_slope) @ inner
    influence[:j, p:-1] = np.eye(j)
    influence[j:-1, :p] = inner
    influence[-1, -1] = 0.5 / sigma / m
    sigma_on, rest = project_last(influence @ middle[:-1, :-1] @ influence.T)
    # Sigma also follows beta_H and gamma, which are in its equation.
    slopes = np.zeros(size - 1)
    slopes[:j] = imr_coef * moments.mean_delta / sigma * inverse_root[-1]
    slopes[j:] = (imr_coef * residual_slope + 0.5 * imr_coef**2 * delta_slope) / sigma / m
    influence[-1] += slopes @ influence[:-1]
    back = probit.coordinates.back()
    in_coef = np.append(in_beta, in_rest[0]) @ inverse_root
    gradient = np.concatenate([in_coef, in_rest[1:] @ back]) / m
    ratio = float(in_beta[0] / m)
    on_scores = gradient @ influence[:-1] + ratio * sigma * influence[-1]
    sigma_on = sigma_on + slopes
    on_coef, on_gamma = root.T @ sigma_on[:j], np.linalg.solve(back.T, sigma_on[j:])
    reported = [*on_coef[:-1], *on_gamma, on_coef[-1], rest]
    return OwnScale(ratio, _ratio_error(middle, on_scores, m), np.array(reported))


def _residual_model(moments: Moments, two_step: TwoStep) -> tuple[Floats, float]:
    """Coefficients behind the residuals in the scores, and the mean squared residual.

    Residuals of more columns than a third of the selected rows would be too small. Then they are
    those of the features most correlated with the outcome.
    """
    m, features = moments.n_selected, np.array(two_step.features, dtype=np.intp)
    most = int(m * _MOST_COLUMNS)
    if len(features) <= most:
        return two_step.coef, float(two_step.solution.sse) / m
    scaled, _ = moments.scaled()
    strength = np.abs(scaled[:, moments.positions(two_step.features)].T @ scaled[:, -1])
    mask = np.zeros(moments.n_features, dtype=bool)
    mask[features[np.argsort(-strength, kind="stable")[:most]]] = True
    solved = moments.solve(mask)
    coef = np.array([solved.intercept, *solved.coef[features], solved.imr_coef])
    return coef, float(solved.sse) / m


@dataclass(frozen=True)
class _TwoStepScores:
    """Scores of both steps and of the errors' variance, and slopes in gamma, for a pass."""

    equations: Equations
    imr_coef: float
    variance: float
    """mean of e^2 + beta_H^2 delta"""

    def __call__(self, block: Block) -> tuple[Array, tuple[Floats, Floats]]:
        """Return the scores of each row, and sums of delta e z and of the slope of delta times z.

        z stands in the probit's coordinates.
        """
        scores, residual, index = self.equations.scores_and_residuals(block, 1)
        ratio, slope = mills(index)
        scores[block.selected, -1] = residual**2 + self.imr_coef**2 * slope - self.variance
        # The derivative of delta = lambda (lambda + t), since that of lambda is -delta.
        bend = ratio * (1.0 - slope) - slope * (ratio + index)
        of_residual, chosen = slope * residual, block.only_selected()
        if chosen.weight is not None:
            of_residual, bend = of_residual * chosen.weight, bend * chosen.weight
        z = pick(chosen.features, self.equations.selection)
        design = self.equations.probit.coordinates.design(z)
        return scores, (design.pull(of_residual), design.pull(bend))


def held_own_scale(
    moments: Moments,
    probit: Probit,
    features: Positions,
    rho: float,
    kind: CovarianceKind,
    rows: Rows,
) -> OwnScale:
    """Read the rows once, at two-step estimates with rho held at a value."""
    curve, m = TwoStepOverRho.build(moments, features), moments.n_selected
    coef, sigma = curve.estimate(np.array([rho]))[0], float(curve.sigma(np.array(rho)))
    imr_coef = rho * sigma
    scores = RhoScores.of(moments, probit, features)
    ratios = _Ratios(scores.prediction, coef, imr_coef, sigma, probit, scores.selection)
    middle, (in_beta, in_rest) = score_squares_and_sums(
        rows,
        kind,
        _WithRatios(scores, ratios),
        columns=moments.columns,
        size=scores.width + 1,
    )
    in_log_sigma = sigma**2 * in_beta[0] + imr_coef * in_rest[0]
    in_gamma = in_rest[1:] @ probit.coordinates.back()
    gradient = np.concatenate([in_beta, in_gamma, [in_log_sigma]]) / m
    error = _ratio_error(middle, gradient @ held_bread(curve, imr_coef), m)
    return OwnScale(float(in_beta[0] / m), error)


def likelihood_own_scale(
    moments: Moments, probit: Probit, maximum: MaximumLikelihood, kind: CovarianceKind, rows: Rows
) -> OwnScale:
    """Read the rows once, at maximum-likelihood estimates."""
    problem, theta = LinearProblem.build(moments, probit, maximum.features), maximum.inner_params
    model = _Likelihood(problem, theta)
    middle, (gradient,) = score_squares_and_sums(
        rows,
        kind,
        _WithRatios(model.scores, model.ratios),
        columns=problem.columns,
        size=len(theta) + 1,
    )
    m = moments.n_selected
    # The first coefficient of beta is that of the constant, times the scale of the outcome.
    ratio = float(model.constant @ gradient[problem.equation("prediction")] / m)
    error = _ratio_error(middle, gradient / m @ maximum.inner_covariance, m)
    return OwnScale(ratio, error)


@dataclass(frozen=True)
class _Likelihood:
    """The joint likelihood at its maximum, for a pass over blocks of rows."""

    problem: LinearProblem
    theta: Floats

    @property
    def constant(self) -> Floats:
        """(1 + j,) beta that adds one to x'beta on the outcome's scale."""
        back = self.problem.prediction_back
        return np.asarray(solve_upper(back, np.eye(len(back))[0])) / self.problem.scale

    def scores(self, block: Block) -> Array:
        """Scores of each row."""
        return scores_of(block, self.problem, self.theta)

    def ratios(self, block: Block) -> tuple[Array, tuple[Floats]]:
        """Return r - 1 of each row, and the sum of r times the derivative of log E in theta."""
        problem, theta = self.problem, self.theta
        p, _ = problem.sizes
        sigma = float(np.exp(theta[problem.place("sigma")])) * problem.scale
        rho = float(np.tanh(theta[problem.place("rho")]))
        imr_coef = rho * sigma
        excess = zeros(block.features, len(block.selected))
        chosen = block.only_selected()
        design, index, error = standardized(chosen, problem, theta)
        up = inverse_mills(index + imr_coef)
        ratio = _ratio(sigma * error, index, imr_coef, sigma)
        excess[block.selected] = ratio - 1.0
        heavy = ratio if chosen.weight is None else ratio * chosen.weight
        columns = empty(chosen.features, len(heavy), 2)
        columns[:, 0] = heavy * (up - inverse_mills(index))
        columns[:, 1] = heavy
        pulled = design.pull(columns)
        total, moved = float(heavy.sum()), float(heavy @ up)
        in_beta = problem.scale * (problem.prediction.T @ pulled[:, 1])
        ends = [sigma**2 * total + imr_coef * moved, sigma * (1.0 - rho**2) * moved]
        return excess, (np.concatenate([pulled[:p, 0], in_beta, ends]),)


def least_squares_own_scale(
    moments: Moments, features: Positions, fitted: LeastSquares, kind: CovarianceKind, rows: Rows
) -> OwnScale | None:
    """Read the rows once, at least-squares estimates; None if these are not determined."""
    if fitted.underdetermined or not fitted.sigma > 0:
        return None
    m = moments.n_selected
    places = moments.positions(features)
    root = moments.subset(features, imr=False, outcome=False)
    model = _LeastSquares(places, fitted, solve_upper(root, np.eye(len(root))))
    ratios = _Ratios(places, fitted.coef, 0.0, fitted.sigma, None, [])
    size = len(root) + 2
    middle, (in_beta, _) = score_squares_and_sums(
        *(rows, kind, _WithRatios(model.scores, ratios)), columns=moments.columns, size=size
    )
    influence = np.zeros((len(root) + 1, size - 1))
    influence[:-1, :-1] = model.inverse_root
    influence[-1, -1] = 0.5 * fitted.sigma / m
    on_others, rest = project_last(influence @ middle[:-1, :-1] @ influence.T)
    ratio = float(in_beta[0] / m)
    on_scores = in_beta / m @ influence[:-1] + ratio * fitted.sigma * influence[-1]
    return OwnScale(ratio, _ratio_error(middle, on_scores, m), np.append(on_others, rest))


@dataclass(frozen=True)
class _LeastSquares:
    """Equations of least squares and of the errors' variance, for a pass over blocks of rows."""

    prediction: list[int]
    fitted: LeastSquares
    inverse_root: Floats

    def scores(self, block: Block) -> Array:
        """Scores of each row."""
        w = with_constant(block.features, self.prediction)
        residual = block.outcome - w @ like(self.fitted.coef, w)
        square = (residual / self.fitted.sigma) ** 2 - 1.0
        scaled = (w @ like(self.inverse_root, w)) * residual[:, None]
        return namespace(w).concat((scaled, square[:, None]), axis=1)


def _ratio_error(middle: Floats, on_scores: Floats, m: float) -> float:
    """Standard error of the mean ratio, given how the scores move the mean of log E."""
    influence = np.append(-on_scores, 1.0 / m)
    return float(np.sqrt(influence @ middle @ influence))


def project_last(joint: Floats) -> tuple[Floats, float]:
    """Project the last of some estimates on the others, by their covariance.

    Returns its coefficients on them, and the variance that is left.
    """
    size = np.sqrt(np.diag(joint)[:-1])
    unit = 1.0 / np.where(size > 0, size, 1.0)
    of_others = joint[:-1, :-1] * unit * unit[:, None]
    shared = joint[:-1, -1] * unit
    on = np.linalg.lstsq(of_others, shared, rcond=_DISTINCT)[0]
    return on * unit, max(float(joint[-1, -1] - shared @ on), 0.0)
