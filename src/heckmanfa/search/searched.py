"""What a search returns: the assignments it evaluated, best first, and what a fit keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NotSavedError, NotSearchedError
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.search.goal import KEPT, NEARLY, Goal, no_feasible, refined
from heckmanfa.search.training.assignment_function import Trained

if TYPE_CHECKING:
    import pandas as pd

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
        values, forms = exact[fitted], self.approximate[fitted]
        first, second = np.triu_indices(len(values), 1)
        if len(first) == 0:
            return float("nan")
        by_value, by_form = values[first] - values[second], forms[first] - forms[second]
        tied = (np.abs(by_value) <= _TIE) | (np.abs(by_form) <= _TIE)
        return float(np.mean(tied | (np.sign(by_value) == np.sign(by_form))))

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


@dataclass(frozen=True)
class Search:
    """The best N of the distinct assignments that a search evaluated.

    Assignments in the window of rho come first, and each part is sorted best first.
    """

    goal: Goal
    packed: NDArray[np.uint8]
    """(N, ceil(K / 8)) masks over the columns of X, eight to a byte"""
    n_columns: int
    """K"""
    n_features: NDArray[np.int64]
    """(N,)"""
    rho: Floats
    """(N,), NaN if an assignment cannot be solved; so are the criteria"""
    adjusted_r2: Floats
    aic: Floats
    bic: Floats
    in_range: Mask
    """(N,)"""
    n_assignments: int
    """distinct assignments evaluated"""
    n_in_range: int
    """those with rho-hat in the window"""
    optimal: bool | None = None
    """whether the first is proven to be the best of all assignments; None if not claimed"""
    gap: float | None = None
    """by how much another assignment's criterion could be better"""
    tolerance: float | None = None
    """the search finds every assignment at most this much worse than the best; None if it only
    evaluates draws or ranks"""
    n_nodes: int | None = None
    """nodes visited in the search tree"""
    early_stop: str = ""
    """a sentence that says why the search stopped early; empty if it finished"""
    interrupted: bool = False
    """whether the user interrupted it"""
    corrected_bic: Floats | None = None
    """(N,); None unless it is the criterion"""
    refits: ExactRefits | None = None
    """None unless a quadratic form found the assignments, and maximum likelihood refitted them"""
    selection_packed: NDArray[np.uint8] | None = None
    """(N, ceil(K / 8)) likewise, which columns drive selection; None if that was not searched"""
    joint_ebic: Floats | None = None
    """(N,) EBIC of both equations; None unless both were searched"""
    n_near: int | None = None
    """how many are nearly as good as the best; None unless a file was saved without the others"""

    def best_alone(self) -> Search:
        """Return the best assignment without the others, of which only a count is kept."""
        parts = {
            field.name: getattr(self, field.name)[:1]
            for field in fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return replace(self, **parts, n_near=self.nearly_best(self.nearly))

    @property
    def nearly(self) -> float:
        """How much worse in the criterion counts as nearly as good, unless the user says so."""
        usual = NEARLY[self.goal.criterion]
        return usual if self.tolerance is None else min(usual, self.tolerance)

    @property
    def masks(self) -> Mask:
        """(N, K) masks over the columns of X."""
        return np.unpackbits(self.packed, axis=1, count=self.n_columns).astype(bool)

    @property
    def ebic(self) -> Floats:
        """EBIC, (N,); NaN if the search is of an old model file, which does not know the units."""
        if self.joint_ebic is not None:
            return self.joint_ebic
        if self.goal.units is None:
            return np.full(len(self.bic), np.nan)
        return np.asarray(self.bic + 2.0 * self.goal.log_ways(self.goal.count_units(self.masks)))

    @property
    def values(self) -> Floats:
        """The criterion, (N,)."""
        return np.asarray(getattr(self, self.goal.criterion))

    @property
    def best(self) -> Mask:
        """Mask of the chosen assignment, (K,)."""
        return np.asarray(self.masks[0])

    @property
    def selecting(self) -> Mask | None:
        """(N, K) which columns drive selection; None if that was not searched."""
        if self.selection_packed is None:
            return None
        return np.unpackbits(self.selection_packed, axis=1, count=self.n_columns).astype(bool)

    def nearly_best(self, tolerance: float) -> int:
        """Count the kept assignments in the window that are within a tolerance of the best."""
        if self.n_near is not None:
            if tolerance == self.nearly:
                return self.n_near
            raise NotSavedError("the list of candidates")
        better = 1.0 if self.goal.criterion == "adjusted_r2" else -1.0
        values = better * self.values[self.in_range]
        return int(np.count_nonzero(values >= values[0] - tolerance))

    def to_frame(self, names_of: Callable[[list[int]], Sequence[Any]]) -> pd.DataFrame:
        """Return one row per kept assignment, with its features as ``names_of`` names columns."""
        import pandas as pd

        refits = self.refits
        name, values = "adjusted_r2", self.adjusted_r2
        if refits is not None:
            name, values = "log_likelihood", refits.log_likelihood

        def named(masks: Mask) -> list[Any]:
            return [tuple(names_of(np.flatnonzero(mask).tolist())) for mask in masks]

        selection = {} if self.selecting is None else {"selection_features": named(self.selecting)}
        parts: dict[str, Any] = {
            "features": named(self.masks),
            "n_features": self.n_features,
            **selection,
            "rho": self.rho,
            name: values,
            "aic": self.aic,
            "bic": self.bic,
            "ebic": self.ebic,
        }
        if self.corrected_bic is not None:
            parts["corrected_bic"] = self.corrected_bic
        parts |= {"in_range": self.in_range} if refits is None else refits.ranks()
        return pd.DataFrame(parts)


def evaluate(
    moments: Moments,
    goal: Goal,
    masks: Mask,
    *,
    names: Sequence[str],
    counts: tuple[int, int] | None = None,
    **details: Any,
) -> Search:
    """Solve distinct assignments, (B, K), and sort them; none in the window is an error.

    ``counts`` are the numbers of assignments evaluated and in the window, if ``masks`` are not all
    of them; ``details`` are other fields of `Search`.
    """
    # One that is alone leads, so it is solved by QR in any case.
    solved = moments.solve(masks, exact=len(masks) == 1)
    if len(masks) > 1:
        solved = refined(moments, goal, masks, solved)
    order = goal.order(solved, masks)
    inside = goal.in_range(solved.rho)
    if counts is None:
        counts = len(masks), int(np.count_nonzero(inside))
    if not inside.any():
        raise no_feasible(goal, counts[0], np.asarray(solved.rho), masks, names)
    order = order[:KEPT]
    if goal.form is not None:
        losses = goal.losses(solved, masks)[order]
        details["corrected_bic"] = np.where(solved.feasible[order], goal.value(losses), np.nan)
    return Search(
        goal=goal,
        packed=np.packbits(masks[order], axis=1),
        n_columns=masks.shape[1],
        n_features=np.asarray(solved.n_features)[order],
        rho=solved.rho[order],
        adjusted_r2=solved.adjusted_r2[order],
        aic=solved.aic[order],
        bic=solved.bic[order],
        in_range=inside[order],
        n_assignments=counts[0],
        n_in_range=counts[1],
        **details,
    )


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
    halves: HonestSplits | None = None
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
