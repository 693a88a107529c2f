"""Two-step covariances of many assignments at once, from the compressed data alone.

An assignment S has the corrected two-step covariance V_S of `two_step`. The classical one is
Heckman's, with |beta_H| at most .98 sigma in it, so it stays positive definite where rho-hat is
outside (-1, 1). Robust and clustered ones have the middle of the sandwich from the residuals of all
features, in `score_moments`; what surrounds it follows from the assignment's own estimates.

Sigma and rho stack the equation of the errors' variance, Eq. sigmasq, on the others. Its scores are
empirical, also in the classical case: there, what they share with beta_H and gamma is projected on
these, whose covariance is Heckman's, so the joint covariance cannot become indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.score_moments import ScoreMoments
from heckmanfa.model.two_step import LARGEST_RHO

_BLOCK_BYTES = 2**25
# Below this share of its variance, an estimate does not differ from a multiple of another.
_DISTINCT = 1e-10
# Positions in a block's matrices; features follow.
_CONSTANT, _IMR = 0, 1


@dataclass(frozen=True)
class ScaledMoments:
    """The compressed data in the coordinates of `ScoreMoments`.

    Columns of W are the constant, the k candidates and lambda, then one of zeros for positions of a
    block that its smaller assignments do not use.
    """

    back: Floats
    """(k + 2, k + 2) from W's coefficients to [intercept, candidates, beta_H]"""
    selection_back: Floats
    """(1 + p, 1 + p) from the probit's inner coefficients to those reported"""
    norms: Floats
    """(k + 1,) lengths of the centred candidates and of lambda"""
    factor: Floats
    """(..., k + 3) triangular factor of W"""
    half: Floats
    """(..., k + 3) factor of sqrt(delta) W"""
    selection_half: Floats
    """(..., 1 + p) likewise of sqrt(delta) Z, on the same rows"""

    @classmethod
    def of(cls, moments: Moments, scores: ScoreMoments) -> ScaledMoments:
        """Centre and scale the columns of some candidates."""
        assert moments.probit is not None
        places = [*moments.places(scores.columns), len(moments.columns) + 1]
        inner = [place - 1 for place in places]
        scaled, norms = moments.scaled()
        norms = norms[inner]
        diagonal = np.arange(1, len(places) + 1)
        back = np.zeros((len(places) + 1, len(places) + 1))
        back[0, 0] = 1.0 / moments.factor[0, 0]
        back[0, 1:] = -moments.means[inner] / norms
        back[diagonal, diagonal] = 1.0 / norms
        factor = np.zeros((len(scaled) + 1, len(back) + 1))
        factor[0, 0] = 1.0
        factor[1:, 1:-1] = scaled[:, inner]
        half = moments.factor_delta[:, [0, *places]] @ back
        selection = [0, *moments.places(moments.probit.features)]
        selection_back = moments.probit.coordinates.back()
        return cls(
            back=back,
            selection_back=selection_back,
            norms=norms,
            factor=factor,
            half=np.column_stack([half, np.zeros(len(half))]),
            selection_half=moments.factor_delta[:, selection] @ selection_back,
        )

    @cached_property
    def joint(self) -> Floats:
        """Both transformations, (k + 3 + p) squared."""
        k2, size = len(self.back), len(self.back) + len(self.selection_back)
        joint = np.zeros((size, size))
        joint[:k2, :k2] = self.back
        joint[k2:, k2:] = self.selection_back
        return joint

    @cached_property
    def gram(self) -> Floats:
        """W'W."""
        return np.asarray(self.factor.T @ self.factor)


@dataclass(frozen=True)
class CovarianceBlock:
    """Covariances of b assignments of at most J features, in the coordinates of `ScoreMoments`."""

    rows: Groups
    """(b,) which of all assignments these are"""
    held: Groups
    """(b, J + 2) columns of W: constant, lambda, features, and k + 2 at unused positions"""
    inverse: Floats
    """(b, J + 2, J + 2) inverse of W'W; zero at unused positions, as all that follows"""
    slope: Floats
    """(b, J + 2, 1 + p) derivative of W's coefficients with respect to the probit's"""
    prediction: Floats
    """(b, J + 2, J + 2) covariance of W's coefficients"""
    cross: Floats
    """(b, J + 2, 1 + p) their covariance with the probit's"""
    selection: Floats
    """(1 + p, 1 + p) covariance of the probit's coefficients"""


@dataclass(frozen=True, eq=False)
class AssignmentCovariances:
    """Covariances of N assignments' estimates, a block of assignments at a time."""

    moments: Moments
    scores: ScoreMoments
    masks: Mask
    """(N, k) which candidates an assignment holds"""
    coef: Floats
    """(N, k + 2) intercept, candidates, beta_H"""
    sigma: Floats
    """(N,)"""

    @cached_property
    def scaled(self) -> ScaledMoments:
        """The compressed data in the coordinates of the blocks."""
        return ScaledMoments.of(self.moments, self.scores)

    @property
    def classical(self) -> bool:
        """Whether the covariances are Heckman's."""
        return self.scores.cov_type == "classical"

    @cached_property
    def selection(self) -> Floats:
        """Covariance of the probit's inner coefficients, (1 + p, 1 + p)."""
        return self.scores.selection_covariance(self._probit)

    def block(self, rows: Groups) -> CovarianceBlock:
        """Covariances of some assignments."""
        scaled, inner = self.scaled, self._probit.inner_covariance
        held = self._held(rows)
        root = self._inverse_root(held)
        inverse = root @ root.transpose(0, 2, 1)
        # Products of factors, as in the two-step covariance, keep the digits of W'DW and W'DZ.
        half = root @ (_columns(scaled.half, held) @ root).transpose(0, 2, 1)
        imr = self._imr(rows)[:, None, None]
        slope = imr * (half @ scaled.selection_half)
        if self.classical:
            cross = slope @ inner
            prediction = (
                self.sigma[rows, None, None] ** 2 * inverse
                - imr**2 * (half @ half.transpose(0, 2, 1))
                + cross @ slope.transpose(0, 2, 1)
            )
        else:
            lost = self.residual_slope(rows) / scaled.norms[-1]
            slope -= inverse[:, :, _IMR, None] * lost[:, None, :]
            bread = self._bread(held, inverse, slope)
            outer = bread @ self.scores.middle[:-2, :-2]
            prediction = outer @ bread.transpose(0, 2, 1)
            cross = outer[:, :, : len(inner)] @ inner
        return CovarianceBlock(rows, held, inverse, slope, prediction, cross, self.selection)

    def residual_slope(self, rows: Groups) -> Floats:
        """Sum of delta e z for each assignment's own residuals, (b, 1 + p)."""
        scaled = self.scaled
        # The constant is orthogonal to the other columns, so its coefficient never changes.
        apart = self.scores.coef[1:] - self.coef[rows, 1:] * scaled.norms
        shift = scaled.half[:, 1:-1].T @ scaled.selection_half
        return self.scores.residual_slope + np.asarray(apart @ shift)

    def _slopes_of_sigma(self, rows: Groups, residual_slope: Floats) -> tuple[Floats, Floats]:
        """Derivatives of sigma with respect to beta_H and the probit's coefficients."""
        imr, sigma, m = self.coef[rows, -1], self.sigma[rows], self.moments.n_selected
        by_gamma = (imr / sigma / m)[:, None] * residual_slope
        by_gamma += (0.5 * imr**2 / sigma)[:, None] * self.scores.delta_slope
        return imr * self.moments.mean_delta / sigma, by_gamma

    def _own_equation(self, rows: Groups) -> Floats:
        """Influence of the last two scores on sigma, through its own equation, (b, 2)."""
        imr, sigma, m = self.coef[rows, -1], self.sigma[rows], self.moments.n_selected
        of_squares = 0.5 * (self.scores.variance or 1.0) / sigma / m
        return np.column_stack([of_squares, 0.5 * imr**2 / sigma / m])

    def influences(self, block: CovarianceBlock) -> Floats:
        """Influence of all scores on W's coefficients, the probit's and sigma.

        (b, J + 4 + p, scores), sigma's through its own equation alone.
        """
        inner, norm = self._probit.inner_covariance, self.scaled.norms[-1]
        p, width, slope = len(inner), block.held.shape[1], block.slope
        if self.classical:
            lost = self.residual_slope(block.rows) / norm
            slope = slope - block.inverse[:, :, _IMR, None] * lost[:, None, :]
        found = np.zeros((len(block.rows), width + p + 1, len(self.scores.middle)))
        found[:, :width, :-2] = self._bread(block.held, block.inverse, slope)
        found[:, width:-1, :p] = inner
        found[:, -1, -2:] = self._own_equation(block.rows)
        return found

    def sigma_slopes(self, block: CovarianceBlock) -> Floats:
        """Derivatives of sigma with respect to W's and the probit's coefficients, (b, J + 3 + p).

        Its own equation is held.
        """
        by_imr, by_gamma = self._slopes_of_sigma(block.rows, self.residual_slope(block.rows))
        slopes = np.zeros((len(block.rows), block.held.shape[1] + by_gamma.shape[1]))
        slopes[:, _IMR] = by_imr / self.scaled.norms[-1]
        slopes[:, block.held.shape[1] :] = by_gamma
        return slopes

    def sigma_on_others(self, block: CovarianceBlock) -> tuple[Floats, float]:
        """Sigma as a linear function of other estimates, and the variance that they leave it.

        Of a block of one assignment, in the order of `ScaledMoments.joint` and in the units of the
        reported coefficients; zero for features that it does not hold.
        """
        influence, slopes = self.influences(block)[0], self.sigma_slopes(block)[0]
        on, rest = project_last(influence @ self.scores.middle @ influence.T)
        on = on + slopes
        back, held = self.scaled.joint, block.held[0]
        spread = np.zeros(len(back))
        spread[held] = on[: len(held)]
        spread[-(len(on) - len(held)) :] = on[len(held) :]
        return np.asarray(np.linalg.solve(back.T, spread)), rest

    @property
    def _probit(self) -> Probit:
        assert self.moments.probit is not None
        return self.moments.probit

    def _held(self, rows: Groups) -> Groups:
        """Columns of W that assignments hold; see `CovarianceBlock`."""
        masks = self.masks[rows]
        k = masks.shape[1]
        most = int(masks.sum(axis=1).max(initial=0))
        features = np.argsort(~masks, axis=1, kind="stable")[:, :most]
        held = np.empty((len(rows), most + 2), dtype=np.intp)
        held[:, _CONSTANT], held[:, _IMR] = 0, k + 1
        present = np.take_along_axis(masks, features, axis=1)
        held[:, 2:] = np.where(present, features + 1, k + 2)
        return held

    def _inverse_root(self, held: Groups) -> Floats:
        """Upper triangular (W'W)^-1/2 of some assignments."""
        scaled = self.scaled
        unused = held == scaled.factor.shape[1] - 1
        # Unused positions get the equation b = 0, so all systems of a block have one size.
        identity = np.eye(held.shape[1]) * unused[:, None, :]
        if self.moments.gram_is_safe:
            system = scaled.gram[held[:, :, None], held[:, None, :]] + identity
            root = np.linalg.cholesky(system).transpose(0, 2, 1)
        else:
            stacked = np.concatenate([_columns(scaled.factor, held), identity], axis=1)
            root = np.asarray(np.linalg.qr(stacked, mode="r"))
        return np.asarray(np.linalg.inv(root) * ~unused[:, None, :])

    def _imr(self, rows: Groups) -> Floats:
        """beta_H in the covariance."""
        imr = self.coef[rows, -1]
        if not self.classical:
            return np.asarray(imr)
        most = LARGEST_RHO * self.sigma[rows]
        return np.asarray(np.clip(imr, -most, most))

    def _bread(self, held: Groups, inverse: Floats, slope: Floats) -> Floats:
        """Influence of the probit's scores and of W'e on some of W's coefficients."""
        inner = self._probit.inner_covariance
        p, size = len(inner), self.scaled.factor.shape[1]
        bread = np.zeros((*inverse.shape[:2], p + size))
        bread[:, :, :p] = slope @ inner
        row, column = np.arange(len(held))[:, None, None], np.arange(inverse.shape[1])[:, None]
        bread[row, column, p + held[:, None, :]] = inverse
        return bread[:, :, :-1]


def _columns(matrix: Floats, held: Groups) -> Floats:
    """Return the columns of a matrix that each assignment holds, (b, rows, J + 2)."""
    return matrix.T[held].transpose(0, 2, 1)


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
