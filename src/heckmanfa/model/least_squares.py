"""Ordinary least squares from the compressed data: no correction for selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, like, zeros
from heckmanfa.data.rows import Block, Positions, Rows, pick
from heckmanfa.model.covariance import CovarianceKind, score_squares
from heckmanfa.model.linalg import dependencies, solve_upper
from heckmanfa.model.moments import Moments

# Numbers in the matrices of a batch of regressions.
_BATCH_NUMBERS = 2**21


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
            columns = list(moments.columns)
            args = ([columns.index(feature) for feature in features], coef, inverse_root)
            middle = score_squares(rows, kind, _scores, *args, columns=columns, size=j + 1)
            covariance = inverse_root @ middle @ inverse_root.T
    spare = m - j - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without features it is zero to the last digit.
        r2 = 1.0 - sse / moments.total_squares if j else 0.0 * sse
        fit = float(m * np.log(sse / m))
    return LeastSquares(
        coef=coef,
        covariance=covariance,
        sigma=float(np.sqrt(sse / spare)) if spare > 0 else float("nan"),
        r2=float(r2),
        adjusted_r2=float(1.0 - (1.0 - r2) * (m - 1.0) / spare) if spare > 0 else float("nan"),
        aic=fit + 2.0 * (j + 1),
        bic=fit + (j + 1) * float(np.log(m)),
        underdetermined=underdetermined,
        log_likelihood=-0.5 * (fit + m * float(np.log(2.0 * np.pi) + 1.0)),
    )


def _scores(block: Block, places: Positions, coef: Floats, inverse_root: Floats) -> Array:
    scores = zeros(block.features, len(block.selected), len(coef))
    chosen = block.only_selected()
    w = empty(chosen.features, len(chosen.outcome), len(coef))
    w[:, 0] = 1.0
    w[:, 1:] = pick(chosen.features, places)
    residual = chosen.outcome - w @ like(coef, w)
    scores[block.selected] = (w @ like(inverse_root, w)) * residual[:, None]
    return scores
