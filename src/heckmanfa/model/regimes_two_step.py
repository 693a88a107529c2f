"""Two steps for treated and untreated rows: a probit, then least squares with the hazard.

Both regimes are in one least-squares problem. In regime r the columns are W_r = [1, X, lambda_r],
turned around for the untreated, and its coefficients are T_r alpha, a matrix times those of the
model. So alpha solves the stacked problem of the W_r T_r, and its covariance follows as in
`heckmanfa.model.two_step`, with sums over both regimes:

    V = M^-1 [ sum_r T_r' (sigma_r^2 W'W - b_r^2 W'DW) T_r + S V_gamma S' ] M^-1,
    M = sum_r T_r' W'W T_r,   S = sum_r s_r b_r T_r' W'DZ,

where b_r is the coefficient of lambda_r, and s_r is 1 for the treated and -1 for the untreated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.model.covariance import CovarianceKind, sandwich
from heckmanfa.model.linalg import solve_upper, stack, symmetric, with_constant
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit, stacked_scores
from heckmanfa.model.regimes import RegimeMoments, TurnedRows, turned, turned_probit
from heckmanfa.model.two_step import Equations, refuse_unidentified, shift_of


@dataclass(frozen=True)
class RegimesTwoStep:
    """Two-step estimates of both regimes."""

    coef: Floats
    """(a,) alpha"""
    covariance: Floats
    """(a + 1 + p) squared: alpha, then the coefficients of the probit"""
    imr: tuple[float, float]
    """rho sigma of the treated, and of the untreated"""
    sigma: tuple[float, float]
    rho: tuple[float, float]
    r2: float
    """of the outcomes of all rows"""
    shared: bool
    """whether both regimes have one equation in common"""
    deviance: float
    """n log(SSE / n), summed over the equations"""


def separate_maps(n_features: int) -> list[Floats]:
    """Return T of both regimes: alpha is beta1, beta0, and the coefficient of each lambda."""
    j = n_features + 1
    eye = np.eye(2 * j + 2)
    return [np.vstack([eye[:j], eye[-2]]), np.vstack([eye[j : 2 * j], -eye[-1]])]


def common_maps(n_features: int) -> list[Floats]:
    """Return T of both regimes: alpha is beta, the effect of treatment, and the hazard's."""
    j = n_features + 1
    eye = np.eye(j + 2)
    one = eye[:j].copy()
    one[0] += eye[j]
    return [np.vstack([one, eye[-1]]), np.vstack([eye[:j], -eye[-1]])]


def fit_regimes(
    moments: RegimeMoments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind,
    rows: Rows,
) -> RegimesTwoStep:
    """Fit the second step of both regimes, and the joint covariance with the probit."""
    maps = (common_maps if moments.shared else separate_maps)(len(features))
    parts = [moments.treated, moments.untreated]
    probits = [probit, turned_probit(probit)]
    roots = [own.subset(features) for own in parts]
    # The outcome comes last, and keeps its place.
    stacked = [
        np.column_stack([r[:, :-1] @ to, r[:, -1]]) for r, to in zip(roots, maps, strict=True)
    ]
    whole = stack(stacked, maps[0].shape[1] + 1)
    design = whole[:-1, :-1]
    _refuse_unidentified(design, roots, shared=moments.shared)
    coef = solve_upper(design, whole[:-1, -1])
    inverse_root = solve_upper(design, np.eye(len(design)))
    own = [to @ coef for to in maps]
    sse = [
        float(np.sum((r[:, -1] - r[:, :-1] @ each) ** 2))
        for r, each in zip(roots, own, strict=True)
    ]
    sizes, deltas = [m.n_selected for m in parts], [m.mean_delta for m in parts]
    variances = [
        error / n + each[-1] ** 2 * delta
        for error, n, each, delta in zip(sse, sizes, own, deltas, strict=True)
    ]
    if moments.shared:
        pooled = sum(n * variance for n, variance in zip(sizes, variances, strict=True))
        variances = [pooled / sum(sizes)] * 2
    halves, shift = [], np.zeros((len(coef), len(probit.inner_coef)))
    for m, p, to, each, sign in zip(parts, probits, maps, own, (1.0, -1.0), strict=True):
        half, own_shift = shift_of(m, p, features, to @ inverse_root)
        halves.append(half)
        shift += sign * each[-1] * own_shift
    if kind.cov_type == "classical":
        middle = shift @ probit.inner_covariance @ shift.T
        for r, to, each, variance, half in zip(roots, maps, own, variances, halves, strict=True):
            scaled = r[:, :-1] @ to @ inverse_root
            middle += variance * scaled.T @ scaled - each[-1] ** 2 * half.T @ half
        outcome = inverse_root @ middle @ inverse_root.T
        cross = inverse_root @ shift @ probit.inner_covariance @ probit.coordinates.back().T
        covariance = symmetric(np.block([[outcome, cross], [cross.T, probit.covariance]]))
    else:
        equations = [
            Equations.of(m, p, features, each, to @ inverse_root)
            for m, p, to, each in zip(parts, probits, maps, own, strict=True)
        ]
        covariance = _stacked(equations, inverse_root, shift, kind, rows, moments.columns)
    # alpha has what the untreated have as it is, and not turned.
    imr = float(own[0][-1]), -float(own[1][-1])
    sigma = float(np.sqrt(variances[0])), float(np.sqrt(variances[1]))
    squares = stack([r[:, [0, -1]] for r in roots], 2)[1, 1] ** 2
    n = sum(sizes)
    deviance = sum(size * np.log(error / size) for size, error in zip(sizes, sse, strict=True))
    return RegimesTwoStep(
        coef=coef,
        covariance=covariance,
        imr=imr,
        sigma=sigma,
        rho=(imr[0] / sigma[0], imr[1] / sigma[1]),
        shared=moments.shared,
        r2=1.0 - sum(sse) / float(squares),
        deviance=float(n * np.log(sum(sse) / n) if moments.shared else deviance),
    )


def _refuse_unidentified(design: Floats, roots: Sequence[Floats], *, shared: bool) -> None:
    """Refuse a hazard that the other columns give exactly."""
    if shared:
        refuse_unidentified(design)
        return
    for r in roots:
        refuse_unidentified(r[:-1, :-1])


def _stacked(
    equations: Sequence[Equations],
    inverse_root: Floats,
    shift: Floats,
    kind: CovarianceKind,
    rows: Rows,
    columns: Positions,
) -> Floats:
    """Sandwich of the stacked equations: the probit's scores, and W'(y - W alpha) of all rows."""
    probit, slope = equations[0].probit, shift.copy()
    for each, sign, own in zip(equations, (1.0, -1.0), (rows, TurnedRows(rows)), strict=True):
        (residual_slope,) = total(own.map(each.residual_slope, columns=columns, merge=total))
        slope -= sign * np.outer(each.inverse_root[-1], residual_slope)
    p, a = len(probit.inner_coef), len(inverse_root)
    bread = np.zeros((a + p, p + a))
    bread[a:, :p] = probit.coordinates.back() @ probit.inner_covariance
    bread[:a, p:] = inverse_root
    bread[:a, :p] = inverse_root @ slope @ probit.inner_covariance
    return sandwich(rows, kind, bread, _scores, tuple(equations), columns=columns)


def _scores(block: Block, equations: Sequence[Equations]) -> Array:
    """Scores of each row of a block: of the probit, and of its own regime's least squares."""
    one = equations[0]
    p, a = len(one.probit.inner_coef), one.inverse_root.shape[1]
    scores, index = stacked_scores(block, one.probit, one.selection, p + a)
    for each, own, sign in zip(equations, (block, turned(block)), (1.0, -1.0), strict=True):
        chosen = own.selected
        w, residual = each.second_step(own.only_selected(), mills(sign * index[chosen])[0])
        scores[chosen, p:] = (w @ like(each.inverse_root, w)) * residual[:, None]
    return scores


# Least squares of everyone, which takes treatment as if it were drawn by lot. --------------------


@dataclass(frozen=True)
class LeastSquaresOfAll:
    """The outcome of everyone on the features and treatment."""

    coef: Floats
    """(1 + j,) of [1, X]"""
    effect: float
    error: float
    """standard error of the effect"""
    log_likelihood: float


def least_squares_of_all(
    moments: RegimeMoments, features: Positions, kind: CovarianceKind, rows: Rows
) -> LeastSquaresOfAll:
    """Regress the outcome on [1, X, treatment]."""
    maps = [to[:-1, :-1] for to in common_maps(len(features))]
    roots = [own.subset(features, imr=False) for own in (moments.treated, moments.untreated)]
    stacked = [
        np.column_stack([r[:, :-1] @ to, r[:, -1]]) for r, to in zip(roots, maps, strict=True)
    ]
    whole = stack(stacked, len(features) + 3)
    design, n = whole[:-1, :-1], moments.n_rows
    coef, sse = solve_upper(design, whole[:-1, -1]), float(whole[-1, -1] ** 2)
    inverse_root = solve_upper(design, np.eye(len(design)))
    if kind.cov_type == "classical":
        spread = sse / (n - len(coef)) * inverse_root @ inverse_root.T
    else:
        places = moments.positions(features)
        args = (places, coef, inverse_root)
        spread = sandwich(rows, kind, inverse_root, _plain_scores, *args, columns=moments.columns)
    return LeastSquaresOfAll(
        coef[:-1],
        float(coef[-1]),
        float(np.sqrt(spread[-1, -1])),
        _normal_log_likelihood(sse, n),
    )


def _plain_scores(block: Block, places: Positions, coef: Floats, inverse_root: Floats) -> Array:
    w = with_constant(block.features, places, 1)
    w[:, -1] = 1.0 * block.selected
    residual = block.outcome - w @ like(coef, w)
    return (w @ like(inverse_root, w)) * residual[:, None]


def apart_log_likelihood(moments: RegimeMoments, features: Positions) -> float:
    """Log-likelihood of a regression for each regime, whose errors have scales of their own."""
    return sum(
        _normal_log_likelihood(float(own.subset(features, imr=False)[-1, -1] ** 2), own.n_selected)
        for own in (moments.treated, moments.untreated)
    )


def _normal_log_likelihood(sse: float, n: float) -> float:
    return -0.5 * n * (float(np.log(2.0 * np.pi * sse / n)) + 1.0)


def difference_of_means(
    moments: RegimeMoments, kind: CovarianceKind, rows: Rows
) -> tuple[float, float]:
    """Difference of the mean outcomes of treated and untreated, and its standard error.

    A classical one lets each group have a variance of its own; others are those of least squares of
    the outcome on treatment alone.
    """
    if kind.cov_type != "classical":
        alone = least_squares_of_all(moments, (), kind, rows)
        return alone.effect, alone.error
    means, variances = [], []
    for own in (moments.treated, moments.untreated):
        means.append(own.factor[0, -1] / own.factor[0, 0])
        free = own.n_selected - 1.0
        variances.append(own.total_squares / free / own.n_selected if free > 0 else np.nan)
    return float(means[0] - means[1]), float(np.sqrt(sum(variances)))
