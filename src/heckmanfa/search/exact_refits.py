"""Assignments that were refitted exactly, beside what an approximation said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats

# Criteria that differ by less than this are tied.
_TIE = 1e-7


@dataclass(frozen=True, eq=False)
class AllFeatures:
    """The Heckman probit in which all k candidates predict."""

    columns: tuple[int, ...]
    """(k,) positions in X, in order"""
    coef: Floats
    """(1 + k,) the intercept first"""
    atanh_rho: tuple[float, float]
    """estimate and standard error, which is NaN if rho is held"""
    slopes: Floats
    """(k,) average marginal effects on P(y = 1)"""
    slope_errors: Floats
    """(k,) by the information of the likelihood"""


@dataclass(frozen=True, eq=False)
class ExactRefits:
    """The N best assignments by a likelihood's quadratic approximation, each fitted exactly.

    They are in the order of the search that holds them: best first by the exact criterion.
    """

    approximate: Floats
    """(N,) the criterion by the approximation"""
    log_likelihood: Floats
    """(N,) NaN if maximum likelihood did not converge; so are the exact criteria"""
    coef: Floats
    """(N, K) of maximum likelihood, zero where a column does not predict"""
    beyond: float
    """the approximation of an assignment that was not refitted is at least this; infinite if all
    were refitted"""
    full_log_likelihood: float
    """of the model of all candidates, at which the likelihood is approximated"""
    held_rho: float | None = None
    """rho at which the approximation holds rho, since the model of all candidates has no maximum
    inside (-1, 1); None if rho is estimated"""
    full: AllFeatures | None = None
    """estimates of the model of all candidates"""

    @property
    def n_failed(self) -> int:
        """How many did not converge."""
        return int(np.count_nonzero(np.isnan(self.log_likelihood)))

    def approximate_rank(self) -> NDArray[np.int64]:
        """(N,) ranks by the approximation, from 1; ties in the order of the exact criterion."""
        rank = np.empty(len(self.approximate), dtype=np.int64)
        rank[np.argsort(self.approximate, kind="stable")] = np.arange(1, len(rank) + 1)
        return rank

    def ranks(self) -> dict[str, Any]:
        """Return the columns that a table of the assignments has for both criteria."""
        rank = np.arange(1, len(self.approximate) + 1)
        by_form = self.approximate_rank()
        return {"approximate": self.approximate, "rank": rank, "approximate_rank": by_form}

    def costs(self) -> Floats:
        """(N,) twice the log-likelihood that each loses to the model of all candidates."""
        return np.asarray(2.0 * (self.full_log_likelihood - self.log_likelihood))

    def same_order(self, exact: Floats) -> float:
        """Return the share of pairs that both criteria put into the same order; ties count.

        ``exact``, (N,), is the exact criterion. NaN with fewer than two assignments.
        """
        fitted = np.isfinite(exact)
        one, two = exact[fitted], self.approximate[fitted]
        first, second = np.triu_indices(len(one), 1)
        if len(first) == 0:
            return float("nan")
        by_one, by_two = one[first] - one[second], two[first] - two[second]
        tied = (np.abs(by_one) <= _TIE) | (np.abs(by_two) <= _TIE)
        return float(np.mean(tied | (np.sign(by_one) == np.sign(by_two))))

    def best_is_same(self, exact: Floats) -> bool:
        """Whether the best by the exact criterion is the best by the approximation."""
        return bool(self.approximate[0] <= np.min(self.approximate[np.isfinite(exact)]) + _TIE)

    def largest_error(self, exact: Floats) -> float:
        """Return by how much an exact criterion is better than its approximation at most.

        Errors to the other side hide nothing: an assignment that is worse than its approximation
        was refitted for nothing. Zero if none is better.
        """
        return float(max(np.nanmax(self.approximate - exact), 0.0))

    def margin(self, exact: Floats) -> float:
        """Return how wrong the approximation must be for another assignment to be better.

        Such an assignment's exact criterion is lower than its approximation by more than this.
        Infinite if all were refitted.
        """
        return float(max(self.beyond - exact[0], 0.0))
