"""Robust and cluster covariances of two-step estimates at any given rho, from one pass.

The equations are those of `held_two_step`. With e and l the residuals of y and lambda regressed on
X, s^2 the residual variance and k = kappa / s, the scores at a given rho are

    X (e / s - k l),    e^2 / s^2 + k^2 (delta - l^2) less its mean,

and the probit's. So the products of five sets of scores serve every rho, and estimates depend on
them by powers of k up to the third.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, like
from heckmanfa.data.rows import Block, Positions, Rows, pick
from heckmanfa.model.covariance import CovarianceKind, score_squares
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit, stacked_scores


def sandwich_variances(
    middle: Floats,
    inverse_root: Floats,
    of_lambda: Floats,
    of_selection: Floats,
    gamma_lean: Floats,
    slope: Floats,
    m: float,
) -> Floats:
    """(1 + J, 7) variances of the coefficients over s^2, by powers of k.

    ``middle`` is what `gather_rho_scores` returns; the other arguments are as in
    `rho_curve.RhoSpread`, with m selected rows.
    """
    p, j = len(of_selection), len(of_lambda)
    of_log = np.zeros((4, len(middle)))
    of_log[0, -2] = of_log[2, -1] = 0.5 / (m - j)
    of_log[2, :p] = 0.5 * slope @ of_selection
    # Of the scores on the coefficients, by powers of k.
    influence = np.zeros((4, j, len(middle)))
    influence[0, :, p : p + j] = inverse_root
    influence[1, :, p + j : p + 2 * j] = -inverse_root
    influence[1, :, :p] = gamma_lean @ of_selection
    # kappa is rho sigma: what moves log sigma moves them by one power more.
    influence[1:] -= of_lambda[:, None] * of_log[:3, None]
    variances = np.zeros((j, 7))
    for power, part in enumerate(influence):
        for other, second in enumerate(influence):
            variances[:, power + other] += np.sum((part @ middle) * second, axis=1)
    return variances


def gather_rho_scores(
    moments: Moments, probit: Probit, features: Positions, kind: CovarianceKind, rows: Rows
) -> Floats:
    """Read the rows once for the products of the scores, (2 J + p + 5) squared.

    They are the probit's (1 + p, in its coordinates); e / s and l times X, in coordinates in which
    X'X is the identity (1 + J each); e^2 / s^2 and delta - l^2, less their means.
    """
    columns, m = list(moments.columns), moments.n_selected
    r = moments.subset(features)
    j = len(features) + 1
    (of_lambda, shared), (_, rest) = r[-2:, -2:]
    squares = shared**2 + rest**2
    variance = squares / (m - j) or 1.0
    equations = _Equations(
        probit=probit,
        selection=[columns.index(feature) for feature in probit.features],
        prediction=[columns.index(feature) for feature in features],
        regressions=solve_upper(r[:j, :j], r[:j, -2:]),
        inverse_root=solve_upper(r[:j, :j], np.eye(j)),
        scale=float(np.sqrt(variance)),
        means=(float(squares / variance / m), moments.mean_delta - float(of_lambda**2) / m),
    )
    size = len(probit.features) + 1 + 2 * j + 2
    return score_squares(rows, kind, equations.scores, columns=columns, size=size)


@dataclass(frozen=True)
class _Equations:
    """All scores, for a pass over blocks of rows."""

    probit: Probit
    selection: list[int]
    """positions of its features among a block's columns"""
    prediction: list[int]
    """likewise of the prediction features"""
    regressions: Floats
    """(1 + J, 2) of lambda and of y on X"""
    inverse_root: Floats
    scale: float
    """s"""
    means: tuple[float, float]
    """of e^2 / s^2 and of delta - l^2"""

    def scores(self, block: Block) -> Array:
        """Scores of each row of a block, (b, 2 J + p + 5)."""
        p, j = len(self.selection) + 1, len(self.prediction) + 1
        scores, index = stacked_scores(block, self.probit, self.selection, p + 2 * j + 2)
        chosen, seen = block.selected, block.only_selected()
        ratio, slope = mills(index[chosen])
        x = empty(seen.features, len(ratio), j)
        x[:, 0] = 1.0
        x[:, 1:] = pick(seen.features, self.prediction)
        fitted = x @ like(self.regressions, x)
        of_lambda = ratio - fitted[:, 0]
        error = (seen.outcome - fitted[:, 1]) / self.scale
        design = x @ like(self.inverse_root, x)
        scores[chosen, p : p + j] = design * error[:, None]
        scores[chosen, p + j : p + 2 * j] = design * of_lambda[:, None]
        scores[chosen, -2] = error**2 - self.means[0]
        scores[chosen, -1] = slope - of_lambda**2 - self.means[1]
        return scores
