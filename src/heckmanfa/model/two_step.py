"""Heckman's two-step estimator with corrected standard errors (Algorithm 1).

The second step treats lambda-hat as data; its ordinary standard errors are wrong in two ways:
the errors are heteroskedastic by construction and lambda-hat is estimated. The covariance here
is Heckman's (1979), in the form of Greene: with W = [1, X_S, lambda] and Z = [1, X_selection],

    V = (W'W)^-1 [ sigma^2 W'W - beta_H^2 W'DW + beta_H^2 W'DZ V_gamma Z'DW ] (W'W)^-1,

D = diag(delta),

from the compressed data alone. Robust and cluster covariances come from stacking the probit's and
the second step's estimating equations, which takes a pass over the rows.

Least squares, which does not correct for selection, is the second step without lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like, zeros
from heckmanfa.data.rows import Block, Positions, Rows, pick, total
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind, sandwich
from heckmanfa.model.linalg import (
    DEPENDENT,
    dependencies,
    residual_share,
    solve_upper,
    symmetric,
    with_constant,
)
from heckmanfa.model.moments import Moments, Solutions
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit, stacked_scores
from heckmanfa.text.option_words import OUT_OF_PREDICTION

LARGEST_RHO = 0.98
"""|beta_H| / sigma in a covariance that must be positive definite for any rho-hat"""


@dataclass(frozen=True)
class TwoStep:
    """Two-step estimates for one assignment S of J features."""

    features: tuple[int, ...]
    """positions in X of the J prediction features"""
    solution: Solutions
    coef: Floats
    """(J + 2,) intercept, features, beta_H"""
    covariance: Floats
    """(J + 2 + 1 + p) squared: intercept, features, beta_H, then the probit's coefficients"""


def fit_two_step(
    moments: Moments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind,
    rows: Rows | None = None,
    *,
    largest_rho: float | None = None,
) -> TwoStep:
    """Fit the prediction equation with lambda-hat, and the joint covariance of both equations.

    The prediction features, given by their positions in X, must not be collinear. ``rows`` are
    needed only for a robust or cluster covariance. The classical one has at most ``largest_rho``
    times sigma in place of a beta_H of larger size.
    """
    mask = np.zeros(moments.n_features, dtype=bool)
    mask[list(features)] = True
    features = tuple(int(feature) for feature in np.flatnonzero(mask))
    root = moments.subset(features, outcome=False)
    refuse_unidentified(root)
    solution = moments.solve(mask)
    coef = np.array([solution.intercept, *solution.coef[list(features)], solution.imr_coef])
    inverse_root = solve_upper(root, np.eye(len(root)))
    half, shift = shift_of(moments, probit, features, inverse_root)
    if kind.cov_type == "classical":
        beta_h = float(solution.imr_coef)
        if largest_rho is not None:
            most = largest_rho * float(solution.sigma)
            beta_h = min(max(beta_h, -most), most)
        covariance = _classical(probit, solution, beta_h, inverse_root, half, shift)
    else:
        assert rows is not None
        equations = Equations.of(moments, probit, features, coef, inverse_root)
        covariance = _stacked(equations, shift, kind, rows, moments.columns)
    return TwoStep(features, solution, coef, covariance)


def refuse_unidentified(root: Floats) -> None:
    """Refuse a lambda that the features give exactly, from the factor of [1, X_S, lambda]."""
    if residual_share(root)[-1] <= DEPENDENT:
        raise NotIdentifiedError(
            "the inverse Mills ratio is a linear combination of the prediction features among the "
            "selected rows, so selection and prediction cannot be separated. Leave a feature that "
            f"drives selection {OUT_OF_PREDICTION}."
        )


def shift_of(
    moments: Moments, probit: Probit, features: Positions, inverse_root: Floats
) -> tuple[Floats, Floats]:
    """sqrt(D) W (W'W)^-1/2 as a factor, and (W'W)^-1/2 W'DZ in the probit's coordinates.

    Products of such factors keep the digits that W'DW and W'DZ lose if a feature is far from zero
    or nearly collinear.
    """
    prediction = [0, *moments.places(features), len(moments.columns) + 1]
    selection = [0, *moments.places(probit.features)]
    half = moments.factor_delta[:, prediction] @ inverse_root
    inner_z = moments.factor_delta[:, selection] @ probit.coordinates.back()
    return half, half.T @ inner_z


def _classical(
    probit: Probit,
    solution: Solutions,
    beta_h: float,
    inverse_root: Floats,
    half: Floats,
    shift: Floats,
) -> Floats:
    inner = (
        float(solution.sigma) ** 2 * np.eye(half.shape[1])
        - beta_h**2 * half.T @ half
        + beta_h**2 * shift @ probit.inner_covariance @ shift.T
    )
    prediction = inverse_root @ inner @ inverse_root.T
    cross = beta_h * inverse_root @ shift @ probit.inner_covariance @ probit.coordinates.back().T
    return symmetric(np.block([[prediction, cross], [cross.T, probit.covariance]]))


def _stacked(
    equations: Equations, shift: Floats, kind: CovarianceKind, rows: Rows, columns: Positions
) -> Floats:
    """Sandwich of the stacked equations: probit scores, and W'(y - W beta) of selected rows."""
    bread = stacked_bread(equations, shift, rows, columns)
    return sandwich(rows, kind, bread, equations.scores, columns=columns)


def stacked_bread(equations: Equations, shift: Floats, rows: Rows, columns: Positions) -> Floats:
    """How the estimates follow the sums of the scores of both steps, (j + p, p + j)."""
    probit, inverse_root = equations.probit, equations.inverse_root
    p, j = len(probit.features) + 1, len(equations.coef)
    (residual_slope,) = total(rows.map(equations.residual_slope, columns=columns, merge=total))
    slope = slope_in_gamma(equations.coef[-1], inverse_root, shift, residual_slope)
    bread = np.zeros((j + p, p + j))
    bread[j:, :p] = probit.coordinates.back() @ probit.inner_covariance
    bread[:j, p:] = inverse_root
    bread[:j, :p] = inverse_root @ slope @ probit.inner_covariance
    return bread


def slope_in_gamma(
    imr_coef: float, inverse_root: Floats, shift: Floats, residual_slope: Floats
) -> Floats:
    """Derivative of the second-step equations in gamma, times (W'W)^-1/2.

    It is beta_H W'DZ and, because W contains lambda, minus the sum of delta v z'.
    """
    return imr_coef * shift - np.outer(inverse_root[-1], residual_slope)


@dataclass(frozen=True)
class Equations:
    """Both equations at their estimates, for passes over blocks of rows."""

    probit: Probit
    selection: list[int]
    """positions of its features among a block's columns"""
    prediction: list[int]
    """likewise of the prediction features"""
    coef: Floats
    inverse_root: Floats

    @classmethod
    def of(
        cls,
        moments: Moments,
        probit: Probit,
        features: Positions,
        coef: Floats,
        inverse_root: Floats,
    ) -> Equations:
        """Take the positions from the compressed data, whose columns blocks must have."""
        selection, prediction = moments.positions(probit.features), moments.positions(features)
        return cls(probit, selection, prediction, coef, inverse_root)

    def scores(self, block: Block) -> Array:
        """Scores of each row of a block, (b, p + j)."""
        return self.scores_and_residuals(block)[0]

    def scores_and_residuals(self, block: Block, n_more: int = 0) -> tuple[Array, Array, Array]:
        """Scores of each row, then ``n_more`` zeros; of selected ones, residuals and z'gamma."""
        p, j = len(self.selection) + 1, len(self.coef)
        scores, index = stacked_scores(block, self.probit, self.selection, p + j + n_more)
        chosen = block.selected
        w, residual = self.second_step(block.only_selected(), mills(index[chosen])[0])
        scores[chosen, p : p + j] = (w @ like(self.inverse_root, w)) * residual[:, None]
        return scores, residual, index[chosen]

    def residual_slope(self, block: Block) -> tuple[Floats]:
        """Sum of delta v z' over the selected rows of a block, z in the probit's coordinates."""
        block = block.only_selected()
        design = self.probit.coordinates.design(pick(block.features, self.selection))
        ratio, slope = mills(design.times(self.probit.inner_coef))
        product = slope * self.second_step(block, ratio)[1]
        if block.weight is not None:
            product = product * block.weight
        return (design.pull(product),)

    def second_step(self, block: Block, ratio: Array) -> tuple[Array, Array]:
        """W and the residuals of a block's selected rows, given their lambda."""
        w = with_constant(block.features, self.prediction, 1)
        w[:, -1] = ratio
        return w, block.outcome - w @ like(self.coef, w)


def solve_two_step(
    moments: Moments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> TwoStep | str:
    """Fit an assignment; return the reason if that is not possible.

    ``rows`` are needed only for a covariance that is not classical.
    """
    if dependencies(moments.subset(features, imr=False, outcome=False)):
        return "collinear with the other features among the selected rows"
    if not moments.n_selected > len(features) + 2:
        return "too few selected rows"
    try:
        return fit_two_step(moments, probit, features, kind, rows)
    except NotIdentifiedError:
        return "the inverse Mills ratio is collinear with the features"


@dataclass(frozen=True)
class LeastSquares:
    """Least-squares estimates for one assignment S of J features."""

    coef: Floats
    """(1 + J,) intercept first"""
    covariance: Floats
    """(1 + J, 1 + J); NaN if the fit is underdetermined"""
    sigma: float
    """square root of SSE / (m - J - 1)"""
    r2: float
    adjusted_r2: float
    aic: float
    """m log(SSE/m) + 2 (J + 1)"""
    bic: float
    underdetermined: bool
    """whether this is the minimum-norm solution of many"""
    log_likelihood: float
    """for normal errors with the variance SSE / m"""


def fit_least_squares(
    moments: Moments,
    features: Positions,
    kind: CovarianceKind | None = None,
    rows: Rows | None = None,
) -> LeastSquares:
    """Regress the outcome of the selected rows on some features, without lambda.

    The covariance is classical by default; other kinds need ``rows``.
    """
    features = tuple(int(feature) for feature in features)
    r = moments.subset(features, imr=False)
    design, right = r[:-1, :-1], r[:-1, -1]
    m, j = moments.n_selected, len(features)
    underdetermined = bool(dependencies(design))
    if underdetermined:
        # Minimum-norm slopes on the centred features; the intercept is not part of the norm.
        slopes = np.linalg.lstsq(design[1:, 1:], right[1:], rcond=1e-12)[0]
        coef = np.append((right[0] - design[0, 1:] @ slopes) / design[0, 0], slopes)
        sse = float(np.sum((right - design @ coef) ** 2) + r[-1, -1] ** 2)
        covariance = np.full((j + 1, j + 1), np.nan)
    else:
        coef = solve_upper(design, right)
        sse = float(r[-1, -1] ** 2)
        inverse_root = solve_upper(design, np.eye(j + 1))
        if kind is None or kind.cov_type == "classical" or rows is None:
            variance = sse / (m - j - 1.0) if m > j + 1 else np.nan
            covariance = variance * inverse_root @ inverse_root.T
        else:
            args = (moments.positions(features), coef, inverse_root)
            covariance = sandwich(rows, kind, inverse_root, _scores, *args, columns=moments.columns)
    spare = m - j - 1.0
    quality = {name: float(value) for name, value in moments.quality(sse, j, j + 1).items()}
    if j == 0:
        # To the last digit.
        quality |= {"r2": 0.0 * sse, "adjusted_r2": 0.0 * sse if spare > 0 else float("nan")}
    deviance = quality["aic"] - 2.0 * (j + 1) + m * float(np.log(2.0 * np.pi) + 1.0)
    return LeastSquares(
        coef=coef,
        covariance=covariance,
        sigma=float(np.sqrt(sse / spare)) if spare > 0 else float("nan"),
        **quality,
        underdetermined=underdetermined,
        log_likelihood=-0.5 * deviance,
    )


def _scores(block: Block, places: Positions, coef: Floats, inverse_root: Floats) -> Array:
    scores = zeros(block.features, len(block.selected), len(coef))
    chosen = block.only_selected()
    w = with_constant(chosen.features, places)
    residual = chosen.outcome - w @ like(coef, w)
    scores[block.selected] = (w @ like(inverse_root, w)) * residual[:, None]
    return scores
