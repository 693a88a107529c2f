"""The outcome of a search, as a fitted model keeps it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.errors import NotSavedError, NotSearchedError
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Search
from heckmanfa.search.form import Form
from heckmanfa.search.training.assignment_function import Trained


@dataclass(frozen=True, eq=False)
class HonestSplits:
    """Estimates over splits of the rows into a half that chooses and a half that estimates.

    The terms are the intercept, each column of X, and E of the errors: K + 1 + E of them.
    """

    labels: tuple[Any, ...]
    """a name (or position) for each of the K columns of X"""
    names: tuple[str, ...]
    """their names in tables"""
    candidates: tuple[int, ...]
    """columns that may predict"""
    n_splits: int
    """splits asked for"""
    estimates: Floats
    """(R, K + 1 + E) of the R splits that succeeded; NaN where a feature was not chosen"""
    variances: Floats
    """(R, K + 1 + E) likewise; NaN for a two-step rho and sigma"""
    failures: dict[str, int]
    """how many splits failed, by reason"""
    n_clusters: int | None = None
    """of all rows; None unless the covariance is clustered"""
    error_terms: tuple[str, ...] = ("imr", "rho", "sigma")
    """(E,) what is estimated of the errors"""
    columns: FittedColumns | None = None
    """the columns of X that dummies are made from; None if all of them are numbers"""

    @property
    def support(self) -> NDArray[np.bool_]:
        """(R, K) which features each split chose."""
        return ~np.isnan(self.estimates[:, 1 : len(self.labels) + 1])

    @property
    def chosen(self) -> NDArray[np.bool_]:
        """(K,) features that at least half of the splits chose."""
        return np.asarray(self.support.mean(axis=0) >= 0.5)

    def medians(self) -> Floats:
        """(K + 1 + E,) medians over the splits that chose a feature; NaN if none did."""
        return over_splits(np.nanmedian, self.estimates)

    def std_errors(self) -> Floats:
        """(K + 1 + E,) standard errors of the medians.

        The variance of an estimate is that of its average over splits, given the data, plus the
        average of its variance among splits. The first is what many splits leave, so the variance
        among splits is subtracted from that of a single one. No aggregate of halves is more
        precise than the whole: half of a single variance is the least.
        """
        single = over_splits(np.nanmedian, self.variances)
        with np.errstate(invalid="ignore"):
            count = np.sum(np.isfinite(self.estimates), axis=0)
            among = np.where(count > 1, over_splits(np.nanvar, self.estimates), 0.0)
            among = among * count / np.maximum(count - 1, 1)
            common = np.maximum(single - among, 0.5 * single)
            return np.asarray(np.sqrt(common + 0.5 * np.pi * among / np.maximum(count, 1)))


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The search for the prediction features of a fit."""

    choices: Choices
    """what the user allowed"""
    candidates: tuple[int, ...]
    """columns that could be chosen in these rows"""
    result: Search | None = None
    """None if no outcome was missing, so nothing was searched"""
    n_possible: int = 0
    """how many assignments of the candidates there are"""
    training: Trained | None = None
    """the trained assignment function, for Heckman-FA"""
    honest: HonestSplits | None = None
    """estimates over random halves, if they were asked for"""
    selecting: Choices | None = None
    """which columns may drive selection; None if the selection equation was not searched"""
    form: Form | None = None
    """of the likelihood with everything in both equations, if both were searched"""

    def check_searched(self) -> Search:
        """Return the result; refuse if no outcome was missing, so nothing was searched."""
        if self.result is None:
            raise NotSearchedError("no outcome was missing in the fit, so nothing was searched")
        return self.result

    def check_candidates(self, part: str) -> Search:
        """Return the result with all its candidates; refuse ``part`` if a file left them out."""
        result = self.check_searched()
        if result.n_near is not None:
            raise NotSavedError(part)
        return result

    def without_candidates(self) -> SearchOutcome:
        """Return what a small model file keeps: the best assignment, and no path of a training.

        Assignments that maximum likelihood refitted stay: they are few, and reports weigh them.
        """
        result, training = self.result, self.training
        if result is not None and result.refits is None:
            result = result.best_alone()
        return replace(
            self,
            result=result,
            training=None if training is None else training.without_path(),
        )

    @property
    def window(self) -> tuple[float, float] | None:
        """The window of rho that was searched in."""
        return None if self.result is None else self.result.goal.rho_range

    @property
    def chose(self) -> bool:
        """Whether the features were chosen among several assignments."""
        return self.result is not None and self.n_possible > 1

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the search."""
        return self.result is not None and self.result.interrupted


def over_splits(function: Any, values: Floats) -> Floats:
    """Apply a function to the columns of a matrix that hold anything."""
    result = np.full(values.shape[1], np.nan)
    some = np.isfinite(values).any(axis=0)
    result[some] = function(values[:, some], axis=0)
    return result
