"""The two-step estimator with rho held at a value: least squares corrected for that rho.

The estimates and their classical covariance are those of `two_step_over_rho` at one rho. A robust
or cluster covariance stacks three sets of equations over rows: the probit's scores,
X'(y - X beta - kappa lambda) = 0 over the selected rows, and that of sigma,

    sum of (e^2 + kappa^2 (delta - l^2) - sigma^2) = 0,

e and l being the residuals of y and lambda regressed on X. Neither regression adds anything to the
last one, as its residuals are orthogonal to X. With s^2 the residual variance and k = kappa / s,
the scores at a given rho are

    X (e / s - k l),    e^2 / s^2 + k^2 (delta - l^2) less its mean,

and the probit's. So the products of five sets of scores, gathered in one pass, serve every rho, and
estimates depend on them by powers of k up to the third.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like
from heckmanfa.data.rows import Block, Positions, Rows
from heckmanfa.errors import InputError
from heckmanfa.model.covariance import CovarianceKind, sandwich, score_squares
from heckmanfa.model.linalg import solve_upper, symmetric, with_constant
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit, stacked_scores
from heckmanfa.model.two_step_over_rho import TwoStepOverRho


@dataclass(frozen=True)
class HeldTwoStep:
    """Two-step estimates of J features and p selection features, given rho."""

    coef: Floats
    """(1 + J,) intercept first"""
    sigma: float
    imr_coef: float
    """rho sigma"""
    covariance: Floats
    """(J + p + 5) squared: prediction, selection, rho sigma, rho (zero) and sigma"""
    adjusted_r2: float
    """1 - (1 - R^2) (m - 1) / (m - J - 1)"""
    aic: float
    """m log(SSE/m) + 2 (J + 1): lambda has no coefficient to count"""
    bic: float
    """m log(SSE/m) + (J + 1) log m"""


def fit_held_two_step(
    moments: Moments,
    probit: Probit,
    features: Positions,
    rho: float,
    kind: CovarianceKind,
    rows: Rows | None = None,
) -> HeldTwoStep:
    """Correct least squares on some features, sorted and not collinear, for a given rho.

    ``rows`` are needed only for a robust or cluster covariance.
    """
    curve = TwoStepOverRho.build(moments, features)
    if not abs(rho) < curve.reach:
        raise InputError(
            f"sigma is not defined for |rho| of {curve.reach:.6g} or more with these few selected "
            f"rows; rho is held at {rho:g}"
        )
    coef, sigma = curve.estimate(np.array([rho]))[0], float(curve.sigma(np.array(rho)))
    kappa = rho * sigma
    if kind.cov_type == "classical":
        inner = curve.covariance(rho)
    else:
        assert rows is not None
        scores = RhoScores.of(moments, probit, features)
        inner = sandwich(rows, kind, held_bread(curve, kappa), scores, columns=moments.columns)
    r = moments.subset(features)
    # What is left of y beside X: the residual along M_X lambda, less kappa's share, and the rest.
    sse = float((r[-2, -1] - kappa * r[-2, -2]) ** 2 + r[-1, -1] ** 2)
    j = len(features)
    quality = moments.quality(sse, j, j + 1)
    return HeldTwoStep(
        coef=coef,
        sigma=sigma,
        imr_coef=kappa,
        covariance=_reported(inner, probit, j + 1, kappa, sigma),
        adjusted_r2=float(quality["adjusted_r2"]),
        aic=float(quality["aic"]),
        bic=float(quality["bic"]),
    )


def _reported(inner: Floats, probit: Probit, j: int, kappa: float, sigma: float) -> Floats:
    """Go from (beta, inner gamma, log sigma) to beta, gamma, rho sigma, rho and sigma."""
    back = probit.coordinates.back()
    p = len(back)
    jacobian = np.zeros((j + p + 3, j + p + 1))
    jacobian[:j, :j] = np.eye(j)
    jacobian[j : j + p, j : j + p] = back
    jacobian[j + p :, -1] = kappa, 0.0, sigma
    return symmetric(jacobian @ inner @ jacobian.T)


def held_bread(curve: TwoStepOverRho, kappa: float) -> Floats:
    """Influence of the scores of `RhoScores` on all estimates at one rho.

    These are beta, gamma in the probit's coordinates, and log sigma.
    """
    s = float(np.sqrt(curve.residual_variance))
    of_coef, of_log = curve.spread.influences()
    powers = (kappa / s) ** np.arange(len(of_log))
    of_selection = curve.spread.of_selection
    of_gamma = np.zeros((len(of_selection), of_log.shape[1]))
    of_gamma[:, : len(of_selection)] = of_selection
    return np.vstack([s * np.tensordot(powers, of_coef, 1), of_gamma, powers @ of_log])


def gather_rho_scores(
    moments: Moments, probit: Probit, features: Positions, kind: CovarianceKind, rows: Rows
) -> Floats:
    """Read the rows once for the products of the scores, (2 J + p + 5) squared."""
    scores = RhoScores.of(moments, probit, features)
    return score_squares(rows, kind, scores, columns=moments.columns, size=scores.width)


@dataclass(frozen=True)
class RhoScores:
    """Scores of each row that serve any given rho, for a pass over blocks of rows.

    They are the probit's (1 + p, in its coordinates); e / s and l times X, in coordinates in which
    X'X is the identity (1 + J each); e^2 / s^2 and delta - l^2, less their means.
    """

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

    @classmethod
    def of(cls, moments: Moments, probit: Probit, features: Positions) -> RhoScores:
        """Take both regressions from the compressed data, whose columns blocks must have."""
        m, j = moments.n_selected, len(features) + 1
        r = moments.subset(features)
        (of_lambda, shared), (_, rest) = r[-2:, -2:]
        squares = shared**2 + rest**2
        variance = squares / (m - j) or 1.0
        return cls(
            probit=probit,
            selection=moments.positions(probit.features),
            prediction=moments.positions(features),
            regressions=solve_upper(r[:j, :j], r[:j, -2:]),
            inverse_root=solve_upper(r[:j, :j], np.eye(j)),
            scale=float(np.sqrt(variance)),
            means=(float(squares / variance / m), moments.mean_delta - float(of_lambda**2) / m),
        )

    @property
    def width(self) -> int:
        """How many scores a row has: 2 J + p + 5."""
        return len(self.selection) + 2 * len(self.prediction) + 5

    def __call__(self, block: Block) -> Array:
        """Scores of each row of a block."""
        p, j = len(self.selection) + 1, len(self.prediction) + 1
        scores, index = stacked_scores(block, self.probit, self.selection, self.width)
        chosen, seen = block.selected, block.only_selected()
        ratio, slope = mills(index[chosen])
        x = with_constant(seen.features, self.prediction)
        fitted = x @ like(self.regressions, x)
        of_lambda = ratio - fitted[:, 0]
        error = (seen.outcome - fitted[:, 1]) / self.scale
        design = x @ like(self.inverse_root, x)
        scores[chosen, p : p + j] = design * error[:, None]
        scores[chosen, p + j : p + 2 * j] = design * of_lambda[:, None]
        scores[chosen, -2] = error**2 - self.means[0]
        scores[chosen, -1] = slope - of_lambda**2 - self.means[1]
        return scores
