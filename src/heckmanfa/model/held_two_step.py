"""The two-step estimator with rho held at a value: least squares corrected for that rho.

The estimates and their classical covariance are those of `rho_curve` at one rho. A robust or
cluster covariance stacks three sets of equations over rows: the probit's scores,
X'(y - X beta - kappa lambda) = 0 over the selected rows, and that of sigma,

    sum of (r^2 + kappa^2 (delta - l^2) - sigma^2) = 0,

r and l being the residuals of y and lambda regressed on X. Neither regression adds anything to the
last one, as its residuals are orthogonal to X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, like
from heckmanfa.data.rows import Block, Positions, Rows, pick
from heckmanfa.errors import InputError
from heckmanfa.model.covariance import CovarianceKind, score_squares
from heckmanfa.model.linalg import solve_upper, symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit, stacked_scores
from heckmanfa.model.rho_curve import RhoCurve


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
    curve = RhoCurve.build(moments, features)
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
        inner = _stacked(curve, moments, probit, features, coef, kappa, kind, rows)
    r = moments.subset(features)
    # What is left of y beside X: the residual along M_X lambda, less kappa's share, and the rest.
    sse = float((r[-2, -1] - kappa * r[-2, -2]) ** 2 + r[-1, -1] ** 2)
    m, j = moments.n_selected, len(features)
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = float(m * np.log(sse / m))
        unexplained = sse / moments.total_squares
    return HeldTwoStep(
        coef=coef,
        sigma=sigma,
        imr_coef=kappa,
        covariance=_reported(inner, probit, j + 1, kappa, sigma),
        adjusted_r2=float(1.0 - unexplained * (m - 1.0) / (m - j - 1.0)),
        aic=fit + 2.0 * (j + 1),
        bic=fit + (j + 1) * float(np.log(m)),
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


def _stacked(
    curve: RhoCurve,
    moments: Moments,
    probit: Probit,
    features: Positions,
    coef: Floats,
    kappa: float,
    kind: CovarianceKind,
    rows: Rows,
) -> Floats:
    """Sandwich covariance of beta, gamma in the probit's coordinates, and log sigma."""
    equations, bread = held_equations(curve, moments, probit, features, coef, kappa)
    size = bread.shape[1]
    middle = score_squares(rows, kind, equations.scores, columns=moments.columns, size=size)
    return symmetric(bread @ middle @ bread.T)


def held_equations(
    curve: RhoCurve,
    moments: Moments,
    probit: Probit,
    features: Positions,
    coef: Floats,
    kappa: float,
) -> tuple[HeldEquations, Floats]:
    """Return all equations, and the influence of their scores on the estimates.

    These are beta, gamma in the probit's coordinates, and log sigma.
    """
    columns, m = list(moments.columns), moments.n_selected
    root = moments.subset(features, imr=False, outcome=False)
    p, j = len(probit.features) + 1, len(root)
    (of_lambda, first), (_, second) = moments.subset(features)[-2:, -2:]
    squares = first**2 + second**2 + kappa**2 * (m * moments.mean_delta - of_lambda**2)
    equations = HeldEquations(
        probit=probit,
        selection=[columns.index(feature) for feature in probit.features],
        prediction=[columns.index(feature) for feature in features],
        regressions=np.column_stack([coef, curve.least_squares, curve.of_lambda]),
        inverse_root=solve_upper(root, np.eye(j)),
        kappa=kappa,
        variance=float(squares / m),
    )
    spread, s2 = curve.spread, curve.residual_variance
    of_gamma = np.zeros((p, p + j + 1))
    of_gamma[:, :p] = probit.inner_covariance
    of_log = 0.5 / s2 * kappa**2 * spread.slope @ of_gamma
    of_log[-1] = 0.5 / s2 / (m - j)
    of_coef = kappa * (spread.gamma_lean @ of_gamma - np.outer(spread.of_lambda, of_log))
    of_coef[:, p : p + j] += equations.inverse_root
    return equations, np.vstack([of_coef, of_gamma, of_log])


@dataclass(frozen=True)
class HeldEquations:
    """All equations at their estimates, for a pass over blocks of rows."""

    probit: Probit
    selection: list[int]
    """positions of its features among a block's columns"""
    prediction: list[int]
    """likewise of the prediction features"""
    regressions: Floats
    """(1 + J, 3) beta, and the regressions of y and of lambda on X"""
    inverse_root: Floats
    kappa: float
    variance: float
    """mean of r^2 + kappa^2 (delta - l^2)"""

    def scores(self, block: Block) -> Array:
        """Scores of each row of a block, (b, p + j + 1)."""
        p, j = len(self.selection) + 1, len(self.prediction) + 1
        scores, index = stacked_scores(block, self.probit, self.selection, p + j + 1)
        chosen, seen = block.selected, block.only_selected()
        ratio, slope = mills(index[chosen])
        x = empty(seen.features, len(ratio), j)
        x[:, 0] = 1.0
        x[:, 1:] = pick(seen.features, self.prediction)
        fitted = x @ like(self.regressions, x)
        error = seen.outcome - fitted[:, 0] - self.kappa * ratio
        scores[chosen, p : p + j] = (x @ like(self.inverse_root, x)) * error[:, None]
        of_lambda = self.kappa**2 * (slope - (ratio - fitted[:, 2]) ** 2)
        scores[chosen, -1] = (seen.outcome - fitted[:, 1]) ** 2 + of_lambda - self.variance
        return scores
