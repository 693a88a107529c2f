"""What a fit keeps of an average: the weights of assignments, and what intervals need."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import NotSavedError
from heckmanfa.model.likelihood_guards import LikelihoodGuards
from heckmanfa.model.score_moments import ScoreMoments
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.choices import Choices


@dataclass(frozen=True, eq=False)
class Refits:
    """The R heaviest assignments of an average, refitted by maximum likelihood."""

    weight: Floats
    """(R,) their weights, which sum to one"""
    share: float
    """the share of all weight that they carry"""
    estimates: Floats
    """(R, d): the prediction equation over the average's columns, the selection equation (each
    intercept first), beta_H, rho, sigma; zero where a feature is absent"""
    covariance: Floats
    """(R, d, d); its diagonals, (R, d), if a file was saved without candidates"""
    guards: LikelihoodGuards | None = None
    """the heaviest of them beside its two-step estimates"""

    @property
    def variances(self) -> Floats:
        """(R, d) of the estimates."""
        if self.covariance.ndim == 2:
            return self.covariance
        return np.diagonal(self.covariance, axis1=1, axis2=2)

    def check_covariance(self) -> Floats:
        """Return the covariances, (R, d, d); refuse if a file has only their diagonals."""
        if self.covariance.ndim == 2:
            raise NotSavedError("the covariance of each refit, which intervals need,")
        return self.covariance


@dataclass(frozen=True, eq=False)
class AverageOutcome:
    """The average over assignments behind the estimates of a fit."""

    choices: Choices
    """what the user allowed"""
    average: Average
    scores: ScoreMoments | None = None
    """sums over the rows that standard errors need; None if these were not asked for"""
    refits: Refits | None = None
    """None unless the method is maximum likelihood"""
    by_bic: Average | None = None
    """by BIC weights, from the same chains; None unless assignments were sampled by others"""

    def without_candidates(self) -> AverageOutcome:
        """Return what a small model file keeps: few leading assignments, and variances of refits.

        The components, which predictions average over, stay.
        """
        refits = self.refits
        return replace(
            self,
            average=self.average.with_few_leading(),
            by_bic=None if self.by_bic is None else self.by_bic.with_few_leading(),
            refits=None if refits is None else replace(refits, covariance=refits.variances),
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns that could predict in these rows."""
        return self.average.choices.columns
