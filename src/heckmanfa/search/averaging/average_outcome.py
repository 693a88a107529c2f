"""What a fit keeps of an average: the weights of assignments, and what intervals need."""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.data.arrays import Floats
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
    """(R, d, d)"""
    guards: LikelihoodGuards | None = None
    """the heaviest of them beside its two-step estimates"""


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

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns that could predict in these rows."""
        return self.average.choices.columns
