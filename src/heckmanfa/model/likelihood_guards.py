"""Guards for maximum likelihood: tests of what it assumes and the two-step estimates do not need.

Maximum likelihood needs normal errors of equal variance; the two-step estimates need less. One
pass over the rows, after the fit, gives what two tests need:

- a Hausman test, which compares beta_H of both estimators. The variance of the difference comes
  from the difference of their influence functions, row by row. The slopes need no test of their
  own: they differ because beta_H does, by the regression of lambda on the features.
- a test of equal variances. With v = y - x'beta - beta_H lambda of the second step, the model says
  E[v^2 | z, s = 1] = sigma^2 - beta_H^2 delta. The test is of the sums of
  v^2 + beta_H^2 delta - sigma^2 times centred functions of the features.

The variance of these sums allows for the estimates of gamma and beta_H in them. Those of beta do
not matter, since the derivative has expectation zero in the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, compress, host, like, namespace, signs, zeros
from heckmanfa.data.rows import Block, Rows
from heckmanfa.model.covariance import CovarianceKind, score_squares_and_sums
from heckmanfa.model.joint_problem import LinearProblem
from heckmanfa.model.likelihood import MaximumLikelihood
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import ProfileStarts, starting_point
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep

# With fewer selected rows (or clusters) for each feature, the test of equal variances uses the
# fitted outcome and the selection index alone: the variance of many sums is too poorly known.
_ROWS_PER_FEATURE = 30
# Directions whose variance is below this share of the largest are combinations of others.
_SAME_SPAN = 1e-8


@dataclass(frozen=True, eq=False)
class LikelihoodGuards:
    """What tests of a maximum-likelihood fit need, without any rows."""

    two_step: float
    """the two-step estimate of beta_H"""
    difference: float
    """beta_H of two-step less that of maximum likelihood"""
    variance: float
    """variance of the difference"""
    spread: Floats
    """(q,) uncorrelated sums of v^2 + beta_H^2 delta - sigma^2 times functions of the features,
    each with variance 1 in the model; empty if their variance is not known"""
    per_feature: bool
    """whether these functions are the features themselves, and not only the fitted outcome"""


def guard_likelihood(
    moments: Moments,
    probit: Probit,
    two_step: TwoStep,
    maximum: MaximumLikelihood,
    kind: CovarianceKind,
    rows: Rows,
    n_selected: float,
) -> LikelihoodGuards | None:
    """Compare maximum likelihood with the two-step estimates, in one pass over the rows.

    ``n_selected`` counts the selected rows. None if the estimates are not at a proper maximum.
    """
    if not (probit.converged and maximum.converged and maximum.information_is_positive):
        return None
    problem = LinearProblem.build(moments, probit, two_step.features)
    count = kind.n_groups if kind.sums_groups else n_selected
    at = _Estimates.build(moments, probit, two_step, maximum, problem, count)
    p, q = problem.sizes[0], at.columns.shape[1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares, sums = score_squares_and_sums(
            rows, kind, _terms, at, columns=problem.columns, size=p + 2 + q
        )
        shift, total, in_imr, in_gamma = sums
        imr = np.zeros(p + 2 + q)
        imr[:p] = shift @ probit.inner_covariance / at.unexplained
        imr[p] = 1.0 / at.unexplained
        difference = imr.copy()
        difference[p + 1] = -1.0
        spread = np.outer(in_imr, imr)
        spread[:, :p] += in_gamma @ probit.inner_covariance
        spread[:, p + 2 :] += np.eye(q)
        return LikelihoodGuards(
            two_step=float(two_step.coef[-1]),
            difference=float(two_step.coef[-1]) - maximum.rho * maximum.sigma,
            variance=float(difference @ squares @ difference) * problem.scale**2,
            spread=_uncorrelated(total, spread @ squares @ spread.T, count),
            per_feature=at.per_feature,
        )


def _uncorrelated(total: Floats, covariance: Floats, count: float) -> Floats:
    """Rotate sums to uncorrelated ones of variance 1, without combinations of others.

    The covariance is a sum of squares about zero of ``count`` terms. About their mean, which is not
    zero if variances differ, it is smaller.
    """
    size = np.sqrt(np.diag(covariance))
    if not np.all(np.isfinite(covariance)) or not np.all(size >= 0):
        return np.zeros(0)
    unit = 1.0 / np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(covariance * unit * unit[:, None])
    kept = values > _SAME_SPAN * max(float(values[-1]), 0.0)
    rotated = (vectors.T @ (unit * total))[kept] / np.sqrt(values[kept])
    about_mean = 1.0 - float(rotated @ rotated) / count
    return np.asarray(rotated / np.sqrt(about_mean) if about_mean > 0 else rotated)


@dataclass(frozen=True)
class _Estimates:
    """Both estimates in the coordinates of the likelihood, for a pass over blocks of rows."""

    problem: LinearProblem
    theta: Floats
    """maximum likelihood"""
    influence: Floats
    """(d,) from a row's score to its influence on beta_H of maximum likelihood"""
    gamma: Floats
    """(1 + p,) of the probit"""
    beta: Floats
    """(1 + j,) of the second step"""
    imr_coef: float
    variance: float
    """sigma^2 of the second step"""
    of_lambda: Floats
    """(1 + j,) regression of lambda on the prediction features"""
    unexplained: float
    """sum of squares of its residuals"""
    columns: Floats
    """(1 + j + 1, q) from [1, x, z'gamma] to the columns of the test of equal variances"""
    per_feature: bool

    @classmethod
    def build(
        cls,
        moments: Moments,
        probit: Probit,
        two_step: TwoStep,
        maximum: MaximumLikelihood,
        problem: LinearProblem,
        count: float,
    ) -> _Estimates:
        """Take both regressions of the second step from the compressed data."""
        p, j = problem.sizes
        features, scale = two_step.features, problem.scale
        start = starting_point(problem, probit, two_step)
        rho, sigma = maximum.rho, maximum.sigma / scale
        gradient = np.zeros(len(maximum.inner_params))
        gradient[problem.place("sigma")] = rho * sigma
        gradient[problem.place("rho")] = sigma * (1.0 - rho**2)
        beta = start[p : p + j]
        per_feature = count >= _ROWS_PER_FEATURE * j or j <= 2
        # Centred at their means, so the estimate of sigma does not matter to the sums.
        columns = np.zeros((j + 1, j if per_feature else 2))
        if per_feature:
            columns[1:] = np.eye(j)
        else:
            columns[1:j, 0], columns[j, 1] = beta[1:], 1.0
        columns[0] = -_means(moments, probit, features, problem) @ columns[1:]
        root = moments.subset(features, outcome=False)
        return cls(
            problem=problem,
            theta=maximum.inner_params,
            influence=maximum.inner_covariance @ gradient,
            gamma=probit.inner_coef,
            beta=beta,
            imr_coef=float(two_step.coef[-1]) / scale,
            variance=(float(two_step.solution.sigma) / scale) ** 2,
            of_lambda=ProfileStarts.build(moments, probit, features, problem).of_lambda,
            unexplained=float(root[-1, -1] ** 2),
            columns=columns,
            per_feature=per_feature,
        )


def _means(
    moments: Moments, probit: Probit, features: tuple[int, ...], problem: LinearProblem
) -> Floats:
    """Means of the prediction features and of z'gamma among the selected rows, (j + 1,)."""
    first = moments.factor[0] / moments.factor[0, 0]
    mean_x = first[[0, *moments.places(features)]] @ problem.prediction_back
    mean_z = first[[0, *moments.places(probit.features)]] @ problem.selection_back
    return np.append(mean_x[1:], mean_z @ probit.inner_coef)


def _terms(block: Block, at: _Estimates) -> tuple[Array, tuple[Floats, ...]]:
    """Scores of each row, and sums over the selected rows of a block.

    The (b, p + 2 + q) scores are those of the probit, of beta_H in the second step, the influence
    on beta_H of maximum likelihood, and the terms of the test of equal variances. The sums are
    derivatives: of the second step's score of beta_H in gamma; of the test in beta_H and in gamma.
    """
    p, _ = at.problem.sizes
    chosen, features = block.selected, block.features
    xp = namespace(features)
    ones = zeros(features, len(features)) + 1.0
    design = at.problem.union.design(features).scaled(ones)
    z = design[:, :p]
    u = z @ like(at.gamma, z)
    sign = signs(chosen, features)
    scores = zeros(features, len(u), p + 2 + at.columns.shape[1])
    scores[:, :p] = z * (sign * mills(sign * u)[0])[:, None]
    scores[:, p + 1] = at.problem.row_slopes(block, at.theta, at.influence)

    z, u = compress(chosen, z), u[chosen]
    x = compress(chosen, design) @ like(at.problem.prediction, design)
    ratio, slope = mills(u)
    outcome = (block.outcome[chosen] - at.problem.centre) / at.problem.scale
    v = outcome - x @ like(at.beta, x) - at.imr_coef * ratio
    rest = ratio - x @ like(at.of_lambda, x)
    columns = xp.concat((x, u[:, None]), axis=1) @ like(at.columns, x)
    excess = v * v + at.imr_coef**2 * slope - at.variance
    scores[chosen, p] = rest * v
    scores[chosen, p + 2 :] = columns * excess[:, None]

    weighted = columns
    if block.weight is not None:
        weight = block.weight[chosen]
        weighted, rest, v = columns * weight[:, None], rest * weight, v * weight
    bend = ratio - slope * (2.0 * ratio + u)
    sums = (
        (slope * (at.imr_coef * rest - v)) @ z,
        excess @ weighted,
        2.0 * at.imr_coef * (slope @ weighted),
        at.imr_coef**2 * ((weighted * bend[:, None]).T @ z),
    )
    return scores, tuple(host(term) for term in sums)
