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
from heckmanfa.model.assignment_covariances import AssignmentCovariances, project_last
from heckmanfa.model.covariance import CovarianceKind, score_squares_and_sums
from heckmanfa.model.held_two_step import held_equations
from heckmanfa.model.joint_problem import scores_of
from heckmanfa.model.least_squares import LeastSquares
from heckmanfa.model.likelihood import MaximumLikelihood
from heckmanfa.model.likelihood_terms import Problem, standardized
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.model.probit import Probit
from heckmanfa.model.rho_curve import RhoCurve
from heckmanfa.model.score_moments import WithMore, gather_scores_and_more
from heckmanfa.model.two_step import TwoStep


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


def _ratio(error: Array, index: Array | None, imr_coef: float, sigma: float) -> Array:
    """exp(y) / E[exp(y) | x, s = 1], where ``error`` is y - x'b."""
    log_ratio = error - 0.5 * sigma**2
    if index is not None:
        log_ratio = log_ratio - (log_cdf(index + imr_coef) - log_cdf(index))
    with np.errstate(over="ignore"):
        return namespace(log_ratio).exp(log_ratio)


def two_step_own_scale(
    moments: Moments, probit: Probit, found: TwoStep, kind: CovarianceKind, rows: Rows
) -> OwnScale:
    """Read the rows once, at two-step estimates."""
    features, read = found.features, list(moments.columns)
    sigma, imr_coef = float(found.solution.sigma), float(found.coef[-1])
    ratios = _Ratios(
        prediction=[read.index(feature) for feature in features],
        coef=found.coef[:-1],
        imr_coef=imr_coef,
        sigma=sigma,
        probit=probit,
        selection=[read.index(feature) for feature in probit.features],
    )
    scores, middle, sums = gather_scores_and_more(moments, features, rows, kind, ratios)
    j, m = len(features), moments.n_selected
    alone = np.ones((1, j), dtype=bool)
    sigmas = np.array([sigma])
    joint = AssignmentCovariances(moments, scores, alone, found.coef[None], sigmas)
    block = joint.block(np.array([0]))
    influence, slopes = joint.influences(block)[0], joint.sigma_slopes(block)[0]
    # A block has lambda second.
    order = [0, *range(2, j + 2), 1, *range(j + 2, len(slopes))]
    influence = influence[[*order, len(slopes)]]
    slopes = slopes[order]
    influence[-1] += slopes @ influence[:-1]
    back = joint.scaled.joint
    in_beta, in_rest = sums
    gradient = np.concatenate([in_beta, in_rest]) / m
    ratio = float(in_beta[0] / m)
    on_scores = (gradient @ back) @ influence[:-1] + ratio * sigma * influence[-1]
    sigma_on, rest = joint.sigma_on_others(block)
    reported = [*range(j + 1), *range(j + 2, len(sigma_on)), j + 1]
    error = _ratio_error(middle, on_scores, m)
    return OwnScale(ratio, error, np.append(sigma_on[reported], rest))


def held_own_scale(
    moments: Moments,
    probit: Probit,
    features: Positions,
    rho: float,
    kind: CovarianceKind,
    rows: Rows,
) -> OwnScale:
    """Read the rows once, at two-step estimates with rho held at a value."""
    curve, read, m = RhoCurve.build(moments, features), list(moments.columns), moments.n_selected
    coef, sigma = curve.estimate(np.array([rho]))[0], float(curve.sigma(np.array(rho)))
    imr_coef = rho * sigma
    equations, influence = held_equations(curve, moments, probit, features, coef, imr_coef)
    ratios = _Ratios(equations.prediction, coef, imr_coef, sigma, probit, equations.selection)
    middle, (in_beta, in_rest) = score_squares_and_sums(
        rows,
        kind,
        WithMore(_Plain(equations.scores), ratios),
        columns=read,
        size=influence.shape[1] + 1,
    )
    in_log_sigma = sigma**2 * in_beta[0] + imr_coef * in_rest[0]
    in_gamma = in_rest[1:] @ probit.coordinates.back()
    on_scores = np.concatenate([in_beta, in_gamma, [in_log_sigma]]) / m @ influence
    return OwnScale(float(in_beta[0] / m), _ratio_error(middle, on_scores, m))


@dataclass(frozen=True)
class _Plain:
    """Scores of a model without sums."""

    scores: Callable[[Block], Array]

    def __call__(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Scores of each row, and nothing else."""
        return self.scores(block), ()


def likelihood_own_scale(
    moments: Moments, probit: Probit, found: MaximumLikelihood, kind: CovarianceKind, rows: Rows
) -> OwnScale:
    """Read the rows once, at maximum-likelihood estimates."""
    problem, theta = Problem.build(moments, probit, found.features), found.inner_params
    model = _Likelihood(problem, theta)
    middle, (gradient,) = score_squares_and_sums(
        rows,
        kind,
        WithMore(model.scores, model.ratios),
        columns=problem.columns,
        size=len(theta) + 1,
    )
    m, p = moments.n_selected, problem.sizes[0]
    # The first coefficient of beta is that of the constant, times the scale of the outcome.
    ratio = float(model.constant @ gradient[p:-2] / m)
    error = _ratio_error(middle, gradient / m @ found.inner_covariance, m)
    return OwnScale(ratio, error)


@dataclass(frozen=True)
class _Likelihood:
    """The joint likelihood at its maximum, for a pass over blocks of rows."""

    problem: Problem
    theta: Floats

    @property
    def constant(self) -> Floats:
        """(1 + j,) beta that adds one to x'beta on the outcome's scale."""
        back = self.problem.prediction_back
        return np.asarray(solve_upper(back, np.eye(len(back))[0])) / self.problem.scale

    def scores(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Scores of each row."""
        return scores_of(block, self.problem, self.theta), ()

    def ratios(self, block: Block) -> tuple[Array, tuple[Floats]]:
        """Return r - 1 of each row, and the sum of r times the derivative of log E in theta."""
        problem, theta = self.problem, self.theta
        p, _ = problem.sizes
        sigma = float(np.exp(theta[-2])) * problem.scale
        rho = float(np.tanh(theta[-1]))
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
    moments: Moments, features: Positions, found: LeastSquares, kind: CovarianceKind, rows: Rows
) -> OwnScale | None:
    """Read the rows once, at least-squares estimates; None if these are not determined."""
    if found.underdetermined or not found.sigma > 0:
        return None
    read, m = list(moments.columns), moments.n_selected
    places = [read.index(feature) for feature in features]
    root = moments.subset(features, imr=False, outcome=False)
    model = _LeastSquares(places, found, solve_upper(root, np.eye(len(root))))
    ratios = _Ratios(places, found.coef, 0.0, found.sigma, None, [])
    size = len(root) + 2
    middle, (in_beta, _) = score_squares_and_sums(
        rows, kind, WithMore(model.scores, ratios), columns=read, size=size
    )
    influence = np.zeros((len(root) + 1, size - 1))
    influence[:-1, :-1] = model.inverse_root
    influence[-1, -1] = 0.5 * found.sigma / m
    on_others, rest = project_last(influence @ middle[:-1, :-1] @ influence.T)
    ratio = float(in_beta[0] / m)
    on_scores = in_beta / m @ influence[:-1] + ratio * found.sigma * influence[-1]
    return OwnScale(ratio, _ratio_error(middle, on_scores, m), np.append(on_others, rest))


@dataclass(frozen=True)
class _LeastSquares:
    """Equations of least squares and of the errors' variance, for a pass over blocks of rows."""

    prediction: list[int]
    found: LeastSquares
    inverse_root: Floats

    def scores(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Scores of each row."""
        w = empty(block.features, len(block.outcome), len(self.found.coef))
        w[:, 0] = 1.0
        w[:, 1:] = pick(block.features, self.prediction)
        residual = block.outcome - w @ like(self.found.coef, w)
        square = (residual / self.found.sigma) ** 2 - 1.0
        scaled = (w @ like(self.inverse_root, w)) * residual[:, None]
        return namespace(w).concat((scaled, square[:, None]), axis=1), ()


def _ratio_error(middle: Floats, on_scores: Floats, m: float) -> float:
    """Standard error of the mean ratio, given how the scores move the mean of log E."""
    influence = np.append(-on_scores, 1.0 / m)
    return float(np.sqrt(influence @ middle @ influence))
