"""The distribution of an average over assignments: a mixture of their estimates' distributions.

With weight w_S, an average has the estimates of assignment S, normal with the corrected two-step
covariance V_S of `assignment_covariances`; a feature that S does not hold has the coefficient zero,
without an error. Nothing here reads rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.errors import InputError
from heckmanfa.model.assignment_covariances import (
    AssignmentCovariances,
    CovarianceBlock,
    ScaledMoments,
)
from heckmanfa.model.linalg import symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import ScoreMoments

# Values and standard errors of functions that are alive at the same time.
_BLOCK_BYTES = 2**26
# Gradients by a block's own columns that are alive at the same time.
_PART_BYTES = 2**19


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
        back = self._scaled.back
        # A last place for positions that an assignment does not use.
        scale = np.append(np.diag(back), 0.0) ** 2
        to_intercept = np.append(back[0], 0.0)
        coef = np.zeros((len(self.coef), len(scale)))
        joint = np.empty((len(self.coef), 2, 2))
        for block in self._covariances.blocks():
            diagonal = np.diagonal(block.prediction, axis1=1, axis2=2)
            coef[block.rows[:, None], block.held] = diagonal * scale[block.held]
            first = to_intercept[block.held]
            coef[block.rows, 0] = np.einsum("bi,bij,bj->b", first, block.prediction, first)
            joint[block.rows] = self._covariances.with_sigma(block)
        of_imr, shared, of_sigma = joint[:, 0, 0], joint[:, 0, 1], joint[:, 1, 1]
        rho = of_imr - 2.0 * self.rho * shared + self.rho**2 * of_sigma
        selection_back = self._scaled.selection_back
        selection = selection_back @ self._covariances.selection @ selection_back.T
        return Errors(
            coef=_root(coef[:, :-1]),
            selection=_root(np.diag(selection)),
            sigma=_root(of_sigma),
            rho=_root(rho) / self.sigma,
        )

    @property
    def estimates(self) -> tuple[Floats, Floats]:
        """[intercept, candidates, beta_H, rho, sigma] and their standard errors, (N, k + 4)."""
        errors = self.errors
        return (
            np.column_stack([self.coef, self.rho, self.sigma]),
            np.column_stack([errors.coef, errors.rho, errors.sigma]),
        )

    def part(self, rows: Groups, weights: Floats) -> Mixture:
        """Return some of the assignments, with other weights, which are rescaled."""
        return replace(
            self,
            masks=self.masks[rows],
            weights=np.asarray(weights / np.sum(weights)),
            coef=self.coef[rows],
            sigma=self.sigma[rows],
            rho=self.rho[rows],
        )

    def thinned(self, most: int) -> Mixture:
        """Return at most so many of the assignments that represent all of them."""
        if len(self.weights) <= most:
            return self
        # Evenly spaced places along the sum of the weights.
        places = (np.arange(most) + 0.5) / most
        drawn = np.searchsorted(np.cumsum(self.weights), places)
        chosen, counts = np.unique(drawn, return_counts=True)
        return self.part(chosen, counts / most)

    def estimate_quantiles(self, levels: ArrayLike, df: float | None = None) -> Floats:
        """Quantiles of [intercept, candidates, beta_H, rho, sigma], (k + 4, levels).

        With ``df``, the assignments' estimates have Student's t instead of the normal distribution.
        """
        return mixture_quantiles(self.weights, *self.estimates, levels, df)

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
        for block in self._covariances.blocks():
            variance[block.rows] = functions.variance(block, self.imr_coef[block.rows])
        return values, _root(variance)

    def bilinear(
        self, prediction: Floats, selection: Floats, by_coef: Floats
    ) -> tuple[Floats, Floats]:
        """Do what `linear` does for functions that every coefficient multiplies.

        Their derivative with respect to the probit's coefficients is ``selection`` (q, 1 + p) plus
        ``by_coef`` (q, 1 + p, k + 2) times [intercept, candidates, beta_H].
        """
        values = self.coef @ prediction.T
        variance = np.empty_like(values)
        functions = self._functions(prediction, None, None).prediction
        back = self._scaled.selection_back
        own, slopes = back.T @ selection.T, np.einsum("ji,qjc->ciq", back, by_coef)
        step = max(_PART_BYTES // (8 * len(own) * max(len(prediction), 1)), 1)
        for block in self._covariances.blocks():
            for start in range(0, len(block.rows), step):
                span = slice(start, start + step)
                rows, held = block.rows[span], functions[block.held[span]]
                by_probit = own + np.tensordot(self.coef[rows], slopes, axes=1)
                crossed = block.prediction[span] @ held + 2.0 * block.cross[span] @ by_probit
                within = (block.selection @ by_probit) * by_probit
                variance[rows] = (crossed * held).sum(axis=1) + within.sum(axis=1)
        return values, _root(variance)

    def quantiles(
        self,
        levels: ArrayLike,
        prediction: Floats,
        selection: Floats | None = None,
        imr_selection: Floats | None = None,
        df: float | None = None,
    ) -> Floats:
        """Quantiles of the mixture for the functions that `linear` takes, (q, levels).

        With ``df``, the assignments' estimates have Student's t instead of the normal distribution.
        """
        quantiles = np.empty((len(prediction), np.size(levels)))
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
        whole, k = self._scaled.joint, self.masks.shape[1]
        within = np.zeros_like(whole)
        for block in self._covariances.blocks():
            within += np.tensordot(self.weights[block.rows], block.full(k), axes=1)
        covariance = whole @ within @ whole.T
        mean = self.weights @ self.coef
        apart = (self.coef - mean) * np.sqrt(self.weights)[:, None]
        covariance[: k + 2, : k + 2] += apart.T @ apart
        assert self.moments.probit is not None
        return np.concatenate([mean, self.moments.probit.coef]), symmetric(covariance)

    def covariance(self, assignment: int) -> Floats:
        """Joint covariance of one assignment's coefficients and the probit's, (k + 3 + p) squared.

        Rows and columns of features that the assignment does not hold are zero.
        """
        whole = self._scaled.joint
        block = self._covariances.block(np.array([assignment]))
        return symmetric(whole @ block.full(self.masks.shape[1])[0] @ whole.T)

    def with_sigma(self, assignment: int) -> Floats:
        """Joint covariance of one assignment's coefficients, the probit's, and sigma, the last."""
        found, whole = self._covariances, self.covariance(assignment)
        on, rest = found.sigma_on_others(found.block(np.array([assignment])))
        shared = whole @ on
        joint = np.empty((len(whole) + 1, len(whole) + 1))
        joint[:-1, :-1] = whole
        joint[-1, :-1] = joint[:-1, -1] = shared
        joint[-1, -1] = on @ shared + rest
        return joint

    @cached_property
    def _covariances(self) -> AssignmentCovariances:
        return AssignmentCovariances(self.moments, self.scores, self.masks, self.coef, self.sigma)

    @cached_property
    def _scaled(self) -> ScaledMoments:
        return self._covariances.scaled

    def _functions(
        self, prediction: Floats, selection: Floats | None, imr_selection: Floats | None
    ) -> _Functions:
        scaled = self._scaled
        unused = np.zeros((1, len(prediction)))
        return _Functions(
            prediction=np.concatenate([scaled.back.T @ prediction.T, unused]),
            selection=tuple(
                (power, scaled.selection_back.T @ part.T)
                for power, part in enumerate((selection, imr_selection))
                if part is not None and part.any()
            ),
        )


def mix_assignments(
    moments: Moments, scores: ScoreMoments, assignments: Mask, weights: Floats
) -> Mixture:
    """Estimate N assignments, (N, K) masks of the columns of X, that have these (N,) weights.

    The assignments must be feasible and hold only the candidates of ``scores``. Weights are
    rescaled to sum to one.
    """
    solved = moments.solve(assignments)
    if not np.all(solved.feasible):
        raise InputError(
            f"{np.count_nonzero(~solved.feasible)} of the {len(assignments)} assignments cannot be "
            "solved: their features are collinear, constant or too many for the selected rows. "
            "Leave these assignments out."
        )
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


@dataclass(frozen=True, eq=False)
class _Functions:
    """Gradients of q functions, in the coordinates of `ScoreMoments`."""

    prediction: Floats
    """(k + 3, q) with respect to W's coefficients; zero for unused positions, the last"""
    selection: tuple[tuple[int, Floats], ...]
    """how often beta_H multiplies a part of the gradient with respect to the probit's coefficients,
    and that part, (1 + p, q)"""

    def variance(self, block: CovarianceBlock, imr: Floats) -> Floats:
        """Variances of the functions for a block's b assignments, (b, q)."""
        q = self.prediction.shape[1]
        variance = np.zeros((len(imr), q))
        for power, part in self.selection:
            for other, second in self.selection:
                of_probit = np.einsum("iq,iq->q", block.selection @ part, second)
                variance += (imr ** (power + other))[:, None] * of_probit
        # An assignment's own columns are few, however many candidates there are.
        width = block.held.shape[1]
        step = max(_PART_BYTES // (8 * width * max(q, 1)), 1)
        for start in range(0, len(imr), step):
            span = slice(start, start + step)
            held = self.prediction[block.held[span]]
            covariance = block.prediction[span] @ held
            for power, part in self.selection:
                cross = block.cross[span].reshape(-1, len(part))
                crossed = np.reshape(cross @ part, held.shape)
                crossed *= 2.0 * imr[span, None, None] ** power
                covariance += crossed
            covariance *= held
            variance[span] += covariance.sum(axis=1)
        return variance


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.maximum(variance, 0.0))
