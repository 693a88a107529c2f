"""Two-step estimates and covariances of many assignments at once.

Averages over assignments have the distribution of a mixture: with weight w_S, the estimates of
assignment S, normal with the corrected two-step covariance V_S of `two_step`. Nothing here reads
rows: all covariances follow from the compressed data and, if robust or clustered, from the scores
of `score_moments`. Blocks of assignments bound the memory.

The classical V_S is Heckman's, with |beta_H| at most .98 sigma in it, so it stays positive definite
where rho-hat is outside (-1, 1). The others have the middle of the sandwich from the residuals of
all features. The standard errors of sigma and rho stack the equation of the errors' variance on
the others. Its scores are empirical, also in the classical case: there, what they share with
beta_H and gamma is projected on these, whose covariance is Heckman's, so the joint covariance
cannot become indefinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.model.linalg import symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import ScoreMoments

_LARGEST_RHO = 0.98
_BLOCK_BYTES = 2**26
# Matrices of the size of a covariance that are alive at the same time.
_MATRICES = 8
# Below this, two estimates are one and the same.
_DISTINCT = 1e-10


@dataclass(frozen=True)
class Errors:
    """Standard errors of each of N assignments' estimates; zero for a feature it does not hold."""

    coef: Floats
    """(N, k + 2) intercept, candidates, beta_H"""
    selection: Floats
    """(1 + p,) of the probit's coefficients, which all assignments share"""
    sigma: Floats
    """(N,)"""
    rho: Floats
    """(N,)"""


@dataclass(frozen=True)
class _Block:
    """Some assignments, with the joint covariance of W's coefficients and the probit's."""

    span: slice
    covariance: Floats
    """(b, k + 3 + p, k + 3 + p) in the coordinates of `ScoreMoments`"""
    weights: Floats
    """(b, k + 2, k + 2) inverse of W'W"""
    slope: Floats
    """(b, k + 2, 1 + p) derivative of W's coefficients with respect to the probit's"""


@dataclass(frozen=True, eq=False)
class Mixture:
    """N assignments with their weights, estimates and covariances."""

    moments: Moments
    scores: ScoreMoments
    masks: Mask
    """(N, k) which candidates an assignment holds"""
    weights: Floats
    """(N,), which sum to one"""
    coef: Floats
    """(N, k + 2) intercept, candidates (zero where absent), beta_H"""
    sigma: Floats
    """(N,)"""
    rho: Floats
    """(N,)"""

    @property
    def imr_coef(self) -> Floats:
        """beta_H of each assignment, (N,)."""
        return self.coef[:, -1]

    @cached_property
    def errors(self) -> Errors:
        """Standard errors of every assignment's estimates."""
        back = self._coordinates.back
        k2 = len(back)
        coef = np.empty_like(self.coef)
        joint = np.empty((len(self.coef), 3))
        for block in self._blocks():
            part = block.covariance[:, :k2, :k2]
            coef[block.span, 0] = np.einsum("i,bij,j->b", back[0], part, back[0])
            diagonal = np.diagonal(part, axis1=1, axis2=2)[:, 1:]
            coef[block.span, 1:] = diagonal * np.diag(back)[1:] ** 2
            joint[block.span] = self._variance_equation(block)
        of_imr, shared, of_sigma = joint.T
        rho = of_imr - 2.0 * self.rho * shared + self.rho**2 * of_sigma
        return Errors(
            coef=_root(coef),
            selection=_root(np.diag(self._selection_covariance)),
            sigma=_root(of_sigma),
            rho=_root(rho) / self.sigma,
        )

    def linear(
        self,
        prediction: Floats,
        selection: Floats | None = None,
        imr_selection: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Values and standard errors of q functions for each assignment, (N, q) both.

        ``prediction`` (q, k + 2) multiplies [intercept, candidates, beta_H]: these products are the
        values. The functions' derivative with respect to the probit's 1 + p coefficients is
        ``selection`` + beta_H ``imr_selection``, (q, 1 + p) each, zero if None.
        """
        values = self.coef @ prediction.T
        variance = np.empty_like(values)
        functions = self._functions(prediction, selection, imr_selection)
        for block in self._blocks():
            variance[block.span] = functions.variance(block, self.imr_coef[block.span])
        return values, _root(variance)

    def quantiles(
        self,
        levels: Floats,
        prediction: Floats,
        selection: Floats | None = None,
        imr_selection: Floats | None = None,
        df: float | None = None,
    ) -> Floats:
        """Quantiles of the mixture for the functions that `linear` takes, (q, levels).

        With ``df``, the assignments' estimates have Student's t instead of the normal distribution.
        """
        quantiles = np.empty((len(prediction), len(levels)))
        size = max(_BLOCK_BYTES // (16 * len(self.weights)), 1)
        for start in range(0, len(prediction), size):
            span = slice(start, start + size)
            values, errors = self.linear(
                prediction[span],
                None if selection is None else selection[span],
                None if imr_selection is None else imr_selection[span],
            )
            quantiles[span] = mixture_quantiles(self.weights, values, errors, levels, df)
        return quantiles

    def total_covariance(self) -> tuple[Floats, Floats]:
        """Mean and covariance of [intercept, candidates, beta_H, the probit's coefficients].

        The covariance, (k + 3 + p) squared, is the weighted mean of the assignments' plus that of
        their estimates about the mean.
        """
        whole = self._coordinates.joint
        within = np.zeros_like(whole)
        for block in self._blocks():
            within += np.tensordot(self.weights[block.span], block.covariance, axes=1)
        covariance = whole @ within @ whole.T
        k2 = self.coef.shape[1]
        mean = self.weights @ self.coef
        apart = (self.coef - mean) * np.sqrt(self.weights)[:, None]
        covariance[:k2, :k2] += apart.T @ apart
        return np.concatenate([mean, self._probit.coef]), symmetric(covariance)

    def covariance(self, assignment: int) -> Floats:
        """Joint covariance of one assignment's coefficients and the probit's, (k + 3 + p) squared.

        Rows and columns of features that the assignment does not hold are zero.
        """
        whole = self._coordinates.joint
        inner = self._block(slice(assignment, assignment + 1)).covariance[0]
        return symmetric(whole @ inner @ whole.T)

    @property
    def _probit(self) -> Probit:
        assert self.moments.probit is not None
        return self.moments.probit

    @cached_property
    def _coordinates(self) -> _Scaled:
        return _Scaled.of(self.moments, self.scores)

    @cached_property
    def _selection_covariance(self) -> Floats:
        return self._coordinates.selection_back @ self._gamma @ self._coordinates.selection_back.T

    @cached_property
    def _gamma(self) -> Floats:
        """Covariance of the probit's inner coefficients."""
        inverse = self._probit.inner_covariance
        if self.scores.cov_type == "classical":
            return inverse
        p = len(inverse)
        return np.asarray(inverse @ self.scores.middle[:p, :p] @ inverse)

    def _functions(
        self, prediction: Floats, selection: Floats | None, imr_selection: Floats | None
    ) -> _Functions:
        scaled = self._coordinates
        k2 = len(scaled.back)
        parts, places = [prediction @ scaled.back], [np.arange(k2)]
        multiplied = [np.zeros(k2, dtype=bool)]
        for part, by_imr in ((selection, False), (imr_selection, True)):
            if part is not None:
                parts.append(part @ scaled.selection_back)
                width = part.shape[1]
                places.append(np.arange(k2, k2 + width))
                multiplied.append(np.full(width, by_imr))
        gradient = np.concatenate(parts, axis=1)
        used = np.flatnonzero(gradient.any(axis=0))
        return _Functions.of(
            gradient[:, used], np.concatenate(places)[used], np.concatenate(multiplied)[used]
        )

    def _blocks(self) -> Iterator[_Block]:
        size = len(self._coordinates.joint)
        step = max(_BLOCK_BYTES // (8 * _MATRICES * size**2), 1)
        for start in range(0, len(self.coef), step):
            yield self._block(slice(start, min(start + step, len(self.coef))))

    def _block(self, span: slice) -> _Block:
        scaled, probit = self._coordinates, self._probit
        inverse_root = self._inverse_roots(span)
        k2 = inverse_root.shape[1]
        weights = inverse_root @ inverse_root.transpose(0, 2, 1)
        # Products of factors, as in the two-step covariance, keep the digits of W'DW and W'DZ.
        half = inverse_root @ (scaled.half @ inverse_root).transpose(0, 2, 1)
        imr = self._clipped(span)[:, None, None]
        slope = imr * (half @ scaled.selection_half)
        covariance = np.empty((len(slope), *scaled.joint.shape))
        if self.scores.cov_type == "classical":
            covariance[:, :k2, :k2] = (
                self.sigma[span, None, None] ** 2 * weights
                - imr**2 * (half @ half.transpose(0, 2, 1))
                + slope @ probit.inner_covariance @ slope.transpose(0, 2, 1)
            )
            cross = slope @ probit.inner_covariance
        else:
            slope = (
                slope
                - weights[:, :, -1:] * self._residual_slope(span)[:, None, :] / (scaled.norms[-1])
            )
            bread = self._bread(weights, slope)
            p = len(probit.inner_covariance)
            middle = self.scores.middle[:-2, :-2]
            outer = bread @ middle
            covariance[:, :k2, :k2] = outer @ bread.transpose(0, 2, 1)
            cross = outer[:, :, :p] @ probit.inner_covariance
        covariance[:, :k2, k2:] = cross
        covariance[:, k2:, :k2] = cross.transpose(0, 2, 1)
        covariance[:, k2:, k2:] = self._gamma
        return _Block(span, covariance, weights, slope)

    def _bread(self, weights: Floats, slope: Floats) -> Floats:
        """Influence of the probit's scores and of W'e on W's coefficients."""
        return np.concatenate([slope @ self._probit.inner_covariance, weights], axis=2)

    def _inverse_roots(self, span: slice) -> Floats:
        """Upper triangular (W'W)^-1/2 of some assignments, zero where a feature is absent."""
        columns = self._coordinates.columns
        use = np.ones((span.stop - span.start, columns.shape[1]))
        use[:, :-1] = self.masks[span]
        absent = np.eye(use.shape[1]) * (1.0 - use)[:, None, :]
        if self.moments.gram_is_safe:
            system = (columns.T @ columns) * use[:, :, None] * use[:, None, :] + absent
            root = np.linalg.cholesky(system).transpose(0, 2, 1)
        else:
            stacked = np.concatenate([columns * use[:, None, :], absent], axis=1)
            root = np.asarray(np.linalg.qr(stacked, mode="r"))
        inverse = np.zeros((len(use), use.shape[1] + 1, use.shape[1] + 1))
        inverse[:, 0, 0] = 1.0
        inverse[:, 1:, 1:] = np.linalg.inv(root) * use[:, None, :] * use[:, :, None]
        return inverse

    def _clipped(self, span: slice) -> Floats:
        """beta_H in the covariance."""
        imr = self.imr_coef[span]
        if self.scores.cov_type != "classical":
            return imr
        most = _LARGEST_RHO * self.sigma[span]
        return np.clip(imr, -most, most)

    def _residual_slope(self, span: slice) -> Floats:
        """Sum of delta e z for each assignment's own residuals, (b, 1 + p)."""
        scaled = self._coordinates
        own = np.zeros((span.stop - span.start, len(self.scores.coef)))
        # The constant is orthogonal to the other columns: its coefficient never changes.
        own[:, 1:] = self.scores.coef[1:] - self.coef[span, 1:] * scaled.norms
        return self.scores.residual_slope + own @ (scaled.half.T @ scaled.selection_half)

    def _variance_equation(self, block: _Block) -> Floats:
        """Variance of beta_H, its covariance with sigma, and the variance of sigma, (b, 3)."""
        span, m = block.span, self.moments.n_selected
        scaled, scores, probit = self._coordinates, self.scores, self._probit
        imr, sigma = self.imr_coef[span], self.sigma[span]
        k2, p = len(scaled.back), len(probit.coef)
        residual_slope = self._residual_slope(span)
        # sigma's derivative with respect to beta_H and the probit's coefficients.
        by_imr = imr * self.moments.mean_delta / sigma
        by_gamma = (imr / sigma / m)[:, None] * residual_slope + (0.5 * imr**2 / sigma)[
            :, None
        ] * scores.delta_slope
        # Influences of all scores on beta_H, on by_gamma'gamma, and on sigma's own equation.
        influence = np.zeros((len(imr), 3, len(scores.middle)))
        slope = block.slope[:, -1]
        if scores.cov_type == "classical":
            slope = slope - block.weights[:, -1, -1:] * residual_slope / scaled.norms[-1]
        influence[:, 0, :p] = slope @ probit.inner_covariance
        influence[:, 0, p : p + k2] = block.weights[:, -1]
        influence[:, 0] /= scaled.norms[-1]
        influence[:, 1, :p] = by_gamma @ probit.inner_covariance
        influence[:, 2, -2] = 0.5 * (scores.variance or 1.0) / sigma / m
        influence[:, 2, -1] = 0.5 * imr**2 / sigma / m
        empirical = influence @ scores.middle @ influence.transpose(0, 2, 1)
        if scores.cov_type != "classical":
            of = np.zeros((len(imr), 2, 3))
            of[:, 0, 0] = of[:, 1, 1] = of[:, 1, 2] = 1.0
            of[:, 1, 0] = by_imr
            return _triple(of @ empirical @ of.transpose(0, 2, 1))
        pair = np.empty((len(imr), 2, 2))
        cross = block.covariance[:, k2 - 1, k2:] / scaled.norms[-1]
        pair[:, 0, 0] = block.covariance[:, k2 - 1, k2 - 1] / scaled.norms[-1] ** 2
        pair[:, 0, 1] = pair[:, 1, 0] = np.einsum("bi,bi->b", cross, by_gamma)
        pair[:, 1, 1] = np.einsum("bi,ij,bj->b", by_gamma, self._gamma, by_gamma)
        by_pair, rest = _project(empirical)
        of = np.zeros((len(imr), 2, 2))
        of[:, 0, 0] = 1.0
        of[:, 1] = by_pair
        of[:, 1, 0] += by_imr
        of[:, 1, 1] += 1.0
        joint = of @ pair @ of.transpose(0, 2, 1)
        joint[:, 1, 1] += rest
        return _triple(joint)


def mix_assignments(
    moments: Moments, scores: ScoreMoments, assignments: Mask, weights: Floats
) -> Mixture:
    """Estimate N assignments, (N, K) masks of the columns of X, that have these (N,) weights.

    The assignments must be feasible and hold only the candidates of ``scores``. Weights are
    rescaled to sum to one.
    """
    solved = moments.solve(assignments)
    columns = list(scores.columns)
    return Mixture(
        moments=moments,
        scores=scores,
        masks=np.asarray(assignments[:, columns]),
        weights=np.asarray(weights / np.sum(weights)),
        coef=np.column_stack([solved.intercept, solved.coef[:, columns], solved.imr_coef]),
        sigma=solved.sigma,
        rho=solved.rho,
    )


@dataclass(frozen=True)
class _Scaled:
    """The coordinates of `ScoreMoments`, and the compressed data in them."""

    columns: Floats
    """(k + 1) columns of the factor of the centred, scaled candidates and lambda"""
    norms: Floats
    """(k + 1,) their lengths"""
    back: Floats
    """(k + 2, k + 2) from W's coefficients to [intercept, candidates, beta_H]"""
    selection_back: Floats
    """(1 + p, 1 + p) from the probit's inner coefficients to those reported"""
    half: Floats
    """(..., k + 2) factor of sqrt(delta) W"""
    selection_half: Floats
    """(..., 1 + p) likewise of sqrt(delta) Z, on the same rows"""

    @classmethod
    def of(cls, moments: Moments, scores: ScoreMoments) -> _Scaled:
        assert moments.probit is not None
        places = [*moments.places(scores.columns), len(moments.columns) + 1]
        inner = [place - 1 for place in places]
        scaled, norms = moments.scaled()
        norms = norms[inner]
        back = np.zeros((len(places) + 1, len(places) + 1))
        back[0, 0] = 1.0 / moments.factor[0, 0]
        back[0, 1:] = -moments.means[inner] / norms
        back[np.arange(1, len(back)), np.arange(1, len(back))] = 1.0 / norms
        selection_back = moments.probit.coordinates.back()
        selection = [0, *moments.places(moments.probit.features)]
        return cls(
            columns=scaled[:, inner],
            norms=norms,
            back=back,
            selection_back=selection_back,
            half=moments.factor_delta[:, [0, *places]] @ back,
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


@dataclass(frozen=True)
class _Functions:
    """Gradients of q functions, arranged so that one product gives all their variances."""

    pairs: tuple[Groups, Groups]
    """positions in the covariance of every pair of coordinates"""
    multiplied: tuple[Mask, Mask]
    """whether beta_H multiplies the derivative, for both of a pair"""
    products: Floats
    """(pairs, q) of the derivatives, twice if the pair has two coordinates"""

    @classmethod
    def of(cls, gradient: Floats, places: Groups, multiplied: Mask) -> _Functions:
        first, second = np.triu_indices(len(places))
        products = gradient[:, first] * gradient[:, second] * np.where(first == second, 1.0, 2.0)
        return cls(
            (places[first], places[second]), (multiplied[first], multiplied[second]), products.T
        )

    def variance(self, block: _Block, imr: Floats) -> Floats:
        """Variances of the functions for a block of assignments, (b, q)."""
        terms = block.covariance[:, self.pairs[0], self.pairs[1]]
        times = self.multiplied[0].astype(int) + self.multiplied[1]
        for power in (1, 2):
            terms[:, times == power] *= (imr**power)[:, None]
        return np.asarray(terms @ self.products)


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.maximum(variance, 0.0))


def _triple(joint: Floats) -> Floats:
    return np.stack([joint[:, 0, 0], joint[:, 0, 1], joint[:, 1, 1]], axis=1)


def _project(joint: Floats) -> tuple[Floats, Floats]:
    """Project the third of three estimates on the others: coefficients (b, 2), and variance left.

    ``joint`` is their covariance, (b, 3, 3). A second estimate that does not vary, or is the first
    up to a factor, has the coefficient zero.
    """
    first, second, shared = joint[:, 0, 0], joint[:, 1, 1], joint[:, 0, 1]
    own = np.where(first > 0, joint[:, 0, 2] / np.where(first > 0, first, 1.0), 0.0)
    left = second - shared**2 / np.where(first > 0, first, 1.0)
    distinct = left > _DISTINCT * second
    on_second = np.where(
        distinct, (joint[:, 1, 2] - own * shared) / np.where(distinct, left, 1.0), 0.0
    )
    on_first = own - on_second * shared / np.where(first > 0, first, 1.0)
    rest = joint[:, 2, 2] - on_first * joint[:, 0, 2] - on_second * joint[:, 1, 2]
    return np.stack([on_first, on_second], axis=1), np.maximum(rest, 0.0)
