"""The rules for rows: which are selected, which are left out and why, and what is counted.

A rule works on one chunk of rows. Rows in memory are one chunk, of NumPy arrays or of tensors;
the parts of a row source are many. Counts of several chunks add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from heckmanfa.data.arrays import Array, Floats, host, namespace
from heckmanfa.data.columns.column_numbers import missing_in
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.missing_features import GapCounts
from heckmanfa.data.outcomes import OutcomeCounts, OutcomeTransform, check_outcomes, has_logarithm
from heckmanfa.data.row_sources import RowSums, add_fields
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.errors import InputError, MissingValueError, TooFewRowsError
from heckmanfa.text.option_words import FEWER_SELECTING, option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

# Gaps unrelated to selection fall on all unselected rows no more often than this.
_CHANCE = 1e-3


@dataclass(frozen=True, eq=False)
class RowStatus:
    """What the rules decide about the b rows of a chunk."""

    selected: Array
    """(b,)"""
    kept: Array
    """(b,) False where a row is left out"""
    n_incomplete: int = 0
    """rows left out because they lack a feature"""
    n_outcome_missing: int = 0
    """other rows left out because they are selected and have no outcome"""
    n_zero_weight: int = 0
    """other rows left out because their weight is zero"""
    everyone: bool = False
    """whether rows that are not selected have an outcome, too"""
    n_unknown: int = 0
    """other rows left out because nobody knows whether they are selected"""
    n_outside: int = 0
    """other rows left out because they are not in the subpopulation"""

    @property
    def with_outcome(self) -> Array:
        """(b,) rows of the fit whose outcome is used."""
        return self.kept if self.everyone else self.selected & self.kept


def decide_rows(
    outcome: Array,
    selected: Array | None = None,
    weight: Array | None = None,
    complete: Mask | None = None,
    unknown: Array | None = None,
    outside: Array | None = None,
    *,
    everyone: bool = False,
) -> RowStatus:
    """Decide who is selected and who is left out.

    Without ``selected``, a row is selected if it has an outcome. With it, selected rows without an
    outcome are left out, and the outcome of unselected rows is ignored; if ``everyone`` has an
    outcome, any row without one is left out, and so are those of which it is ``unknown`` whether
    they are selected. Rows ``outside`` of the subpopulation, rows of weight zero and rows that are
    not ``complete`` are left out. A row left out is counted under the first reason that applies:
    incomplete, outcome, unknown, outside, weight.
    """
    observed = ~namespace(outcome).isnan(outcome)
    chosen = observed if selected is None else selected
    unobserved = ~observed if everyone else chosen & ~observed
    n_incomplete = 0
    if complete is not None:
        n_incomplete = _count(~complete)
        unobserved &= complete
    kept = ~unobserved if complete is None else complete & ~unobserved
    n_unknown = n_outside = n_zero_weight = 0
    if unknown is not None:
        n_unknown = _count(kept & unknown)
        kept = kept & ~unknown
    if outside is not None:
        n_outside = _count(kept & outside)
        kept = kept & ~outside
    if weight is not None:
        weightless = kept & (weight == 0)
        n_zero_weight = _count(weightless)
        kept &= ~weightless
    counts = n_incomplete, _count(unobserved), n_zero_weight, everyone, n_unknown, n_outside
    return RowStatus(chosen, kept, *counts)


def read_stored_flags(stored: NDArray[Any]) -> tuple[Mask, int, Any]:
    """Return who is selected, how many entries are neither true nor false, and such an entry.

    The entry is None if all of them are missing.
    """
    chosen = np.asarray(stored == 1)
    odd = stored[~(chosen | (stored == 0))]
    value = next((value for value in odd if value is not None and value == value), None)
    return chosen, len(odd), value


def read_known_flags(stored: NDArray[Any]) -> tuple[Mask, Mask, int, Any]:
    """Return who is selected, who has no entry, and what `read_stored_flags` does of the others."""
    unknown = missing_in(stored)
    _, n_bad, value = read_stored_flags(stored[~unknown])
    return np.asarray((stored == 1) & ~unknown, dtype=bool), unknown, n_bad, value


def count_bad_weights(weight: Floats) -> int:
    """Count the weights that are negative, missing or infinite."""
    return int(np.count_nonzero(~(weight >= 0) | np.isinf(weight)))


@dataclass(frozen=True)
class FeatureCounts:
    """Values of k columns that are not finite, counted over some rows."""

    missing: Any = 0
    """(k,) missing values in rows of the fit that need the column"""
    infinite: Any = 0
    """(k,) infinite values there"""
    gaps: Any = 0
    """(k,) missing values in any row"""
    gaps_selected: Any = 0
    """(k,) missing values in selected rows"""
    n_selected: int = 0
    """all selected rows"""
    n_unselected: int = 0
    ones: Any = 0
    """(k,) rows of the fit that have the level of a dummy; zero for other columns"""
    zeros: Any = 0
    """(k,) rows of the fit that have another level"""

    @classmethod
    def of_gaps(cls, gaps: Sequence[Mask], selected: Mask) -> FeatureCounts:
        """Count gaps, a mask of rows for each column."""
        n_selected = _count(selected)
        return cls(
            gaps=np.array([_count(gap) for gap in gaps], dtype=np.int64),
            gaps_selected=np.array([_count(gap & selected) for gap in gaps], dtype=np.int64),
            n_selected=n_selected,
            n_unselected=len(selected) - n_selected,
        )

    def __add__(self, other: FeatureCounts) -> FeatureCounts:
        return add_fields(self, other)

    def of(self, columns: Sequence[int]) -> FeatureCounts:
        """Return the counts of some of the columns."""
        per_column = ("missing", "infinite", "gaps", "gaps_selected", "ones", "zeros")
        counts: dict[str, Any] = {
            name: np.atleast_1d(getattr(self, name))[list(columns)] for name in per_column
        }
        return replace(self, **counts)

    def known_only(self) -> Mask:
        """(k,) which columns are known only for selected rows: missing in every unselected row.

        A column may also be missing in some selected rows. If few rows are unselected, gaps
        unrelated to selection can then fall on all of them. Such a column counts as known only for
        selected rows if this would happen less than once in 1,000 times by chance.
        """
        gaps, selected = np.atleast_1d(self.gaps), np.atleast_1d(self.gaps_selected)
        everywhere = (gaps - selected == self.n_unselected) & (self.n_unselected > 0)
        n = self.n_unselected + self.n_selected
        # C(gaps, n_unselected) / C(n, n_unselected), in logarithms.
        chance = (gammaln(self.n_unselected + selected + 1.0) - gammaln(selected + 1.0)) - (
            gammaln(n + 1.0) - gammaln(self.n_selected + 1.0)
        )
        return np.asarray(everywhere & ((selected == 0) | (chance < np.log(_CHANCE))))


def count_features(
    features: Array,
    selected: Array,
    everywhere: Mask,
    kept: Mask | None = None,
    *,
    all_finite: bool | None = None,
    dummies: Positions = (),
) -> FeatureCounts:
    """Count the values of a chunk (b, k) that are missing or infinite.

    Every row of the fit needs the columns that are True in ``everywhere`` (k,); only selected rows
    need the others. ``kept`` (b,) are the rows of the fit, by default all. ``all_finite`` saves a
    pass if the caller knows it. ``dummies`` are the columns whose rows are counted by level.
    """
    n_selected = _count(selected)
    n_unselected = len(selected) - n_selected
    levels = _count_levels(features, kept, len(everywhere), dummies)
    if all_finite is None:
        all_finite = bool(namespace(features).isfinite(features).all())
    if all_finite:
        nothing = np.zeros(len(everywhere), dtype=np.int64)
        return FeatureCounts(nothing, nothing, nothing, nothing, n_selected, n_unselected, *levels)
    features, chosen = host(features), host(selected)
    needed = everywhere | chosen[:, None]
    if kept is not None:
        needed &= kept[:, None]
    empty = np.isnan(features)
    return FeatureCounts(
        missing=(empty & needed).sum(axis=0),
        infinite=(np.isinf(features) & needed).sum(axis=0),
        gaps=empty.sum(axis=0),
        gaps_selected=empty[chosen].sum(axis=0),
        n_selected=n_selected,
        n_unselected=n_unselected,
        ones=levels[0],
        zeros=levels[1],
    )


def _count_levels(
    features: Array, kept: Mask | None, k: int, dummies: Positions
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the rows of a chunk that have the level of each dummy, and those that have another."""
    ones, zeros = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    if len(dummies):
        rows = features if kept is None else features[kept]
        for column in dummies:
            ones[column] = _count(rows[:, column] == 1)
            zeros[column] = _count(rows[:, column] == 0)
    return ones, zeros


@dataclass(frozen=True)
class RowCounts:
    """Rows counted by what the rules decide, and what the checks need to know about them."""

    total: int = 0
    selected: int = 0
    """rows of the fit that are selected"""
    unselected: int = 0
    """rows of the fit that are not selected"""
    incomplete: int = 0
    """rows left out, by reason as in `RowStatus`"""
    outcome_missing: int = 0
    zero_weight: int = 0
    unknown: int = 0
    outside: int = 0
    everyone: bool = False
    """whether rows that are not selected have an outcome, too"""
    outcomes: OutcomeCounts = field(default_factory=OutcomeCounts)
    """of the rows of the fit that have one"""
    without_logarithm: int = 0
    """outcomes of these rows that the transform of the fit does not take"""
    weight_sum: float = 0.0
    """over the rows of the fit"""
    fractions: int = 0
    """weights that are not integers"""
    bad_weights: int = 0
    bad_flags: int = 0
    """rows whose ``selected`` is neither true nor false"""
    odd_flag: Any = None
    """what one of them holds; None if it is missing in all of them"""
    unplaced: int = 0
    """rows that are neither in the subpopulation nor outside of it"""
    odd_place: Any = None
    """what one of them holds, as `odd_flag`"""
    groups: NDArray[Any] | None = None
    """the distinct groups of the rows of the fit, sorted"""
    groupless: int = 0
    features: FeatureCounts = FeatureCounts()
    gaps: GapCounts = field(default_factory=GapCounts)
    """rows by the features that they lack, if such rows are left out"""
    sums: RowSums = field(default_factory=RowSums)
    """of the rows of the fit, if later passes are to be compared with this one"""

    @property
    def kept(self) -> int:
        """Rows of the fit."""
        return self.selected + self.unselected

    def __add__(self, other: RowCounts) -> RowCounts:
        groups = [counts.groups for counts in (self, other) if counts.groups is not None]
        return add_fields(
            self,
            other,
            odd_flag=other.odd_flag if self.odd_flag is None else self.odd_flag,
            odd_place=other.odd_place if self.odd_place is None else self.odd_place,
            everyone=self.everyone or other.everyone,
            groups=np.unique(np.concatenate(groups)) if groups else None,
        )

    def public(self, *, incomplete: bool = False, subpop: bool = False) -> dict[str, int]:
        """Return the counts as ``row_counts_`` has them."""
        counts = {
            "total": self.total,
            "left_out_outcome_missing": self.outcome_missing,
            "left_out_zero_weight": self.zero_weight,
            "selected": self.selected,
            "unselected": self.unselected,
        }
        if self.everyone:
            counts["left_out_treatment_missing"] = self.unknown
        if subpop:
            counts["left_out_subpopulation"] = self.outside
        return counts | ({"left_out_regressor_missing": self.incomplete} if incomplete else {})


def count_rows(
    status: RowStatus,
    outcome: Array,
    weight: Array | None = None,
    group: NDArray[Any] | None = None,
    transform: OutcomeTransform | None = None,
    *,
    whole: bool = False,
    **others: Any,
) -> RowCounts:
    """Count the rows of a chunk about which the rules have decided.

    ``outcome`` is on the scale of the fit, which ``transform`` names. ``group`` holds labels of any
    type that can be sorted, and those of all rows count if ``whole``; ``others`` are other fields
    of `RowCounts`, counted by the caller.
    """
    kept, in_fit = status.kept, status.with_outcome
    values = outcome if in_fit.all() else outcome[in_fit]
    n_selected = _count(status.selected & kept) if status.everyone else len(values)
    heavy = None if weight is None else weight[in_fit]
    if transform is not None:
        known = has_logarithm(values)
        others["without_logarithm"] = n_selected - _count(known)
        values, heavy = values[known], None if heavy is None else heavy[known]
    outcomes = OutcomeCounts.of(values, heavy)
    if weight is not None:
        others["weight_sum"] = float(weight[kept].sum())
        others["fractions"] = _count(weight != namespace(weight).floor(weight))
    if group is not None:
        missing = missing_in(group)
        counted = np.ones_like(kept) if whole else kept
        others["groupless"] = _count(missing & counted)
        others["groups"] = np.unique(group[counted & ~missing])
    return RowCounts(
        total=len(outcome),
        selected=n_selected,
        unselected=_count(kept & ~status.selected),
        incomplete=status.n_incomplete,
        outcome_missing=status.n_outcome_missing,
        zero_weight=status.n_zero_weight,
        unknown=status.n_unknown,
        outside=status.n_outside,
        everyone=status.everyone,
        outcomes=outcomes,
        **others,
    )


def _count(mask: Array) -> int:
    return int(np.count_nonzero(mask)) if isinstance(mask, np.ndarray) else int(mask.sum())


_SHOWN = 10


def check_rows(counts: RowCounts, n_selection: int, classes: tuple[Any, ...] | None = None) -> None:
    """Refuse rows that carry no information; warn about amounts that take only two values.

    ``n_selection`` is the number of selection features. ``classes`` are what outcomes
    of 0, 1 and so on stand for; None if outcomes are amounts.
    """
    check_outcomes(counts.outcomes, counts.total, classes)
    if counts.unselected and counts.kept <= n_selection + 1:
        raise TooFewRowsError(
            f"{n_selection} selection features and an intercept need more than {n_selection + 1} "
            f"rows; there are {counts.kept}. {FEWER_SELECTING}."
        )


def explain_known_only(
    names: Sequence[object],
    counts: FeatureCounts,
    among: Mask | None = None,
    *,
    everyone: bool = False,
) -> str | None:
    """Say which columns are known only for selected rows; None if no column is.

    ``names`` are those of all k columns; ``among`` (k,) restricts the answer to some of them. If
    ``everyone`` has an outcome, the selected are the treated.
    """
    known = counts.known_only() if among is None else counts.known_only() & among
    positions = np.flatnonzero(known)
    if len(positions) == 0:
        return None
    single = len(positions) == 1
    listed = quoted_list([names[position] for position in positions.tolist()], _SHOWN)
    are, look, they = ("is", "It looks", "it") if single else ("are", "They look", "they")
    most = int(np.atleast_1d(counts.gaps_selected)[positions].max())
    if everyone:
        return (
            f"{listed} {are} missing in exactly the {counts.n_unselected} rows that are not "
            f"treated{' (and in some that are)' if most else ''}. {look} like something that "
            "follows from treatment, so nobody would be left to compare with."
        )
    rows = f"exactly the {counts.n_unselected} rows that are not selected"
    if most:
        rows = (
            f"all {counts.n_unselected} rows that are not selected (and in "
            f"{'' if single else 'up to '}{most} that are)"
        )
    return (
        f"{listed} {are} missing in {rows}. {look} like a copy of the outcome, or like "
        f"something that is known only for the selected: {they} may predict, but cannot drive "
        "selection, and filling the gaps would not help."
    )


def refuse_not_finite(
    table: FeatureTable, columns: Positions, counts: FeatureCounts, everywhere: Mask
) -> None:
    """Refuse missing and infinite values of k columns in rows that need them.

    ``everywhere`` (k,) says which columns are in the selection equation.
    """
    # The dummies of a category are missing together, and one name says it.
    labels = table.sources(columns)
    places = {label: index for index, label in reversed([*enumerate(labels)])}
    first = [places[label] for label in dict.fromkeys(labels)]
    labels, everywhere = [labels[index] for index in first], everywhere[first]
    counts = counts.of(first)
    known_only = explain_known_only(labels, counts, everywhere)
    if known_only is not None:
        raise MissingValueError(
            f"{known_only} Leave such columns out of the selection equation, and those that were "
            "made from the outcome out of both."
        )
    categories = table.categories
    lacking = [
        (label, missing, infinite)
        for label, missing, infinite in zip(labels, counts.missing, counts.infinite, strict=True)
        if missing or infinite
    ]
    if not lacking:
        return
    named = [
        f"{quoted(label)} ({missing} "
        + ("missing)" if label in categories else f"NaN, {infinite} inf)")
        for label, missing, infinite in lacking
    ]
    marks = ""
    if any(label in categories for label, *_ in lacking):
        marks = (
            " In a category, empty text and marks such as 'NA' are missing; a mark is a level if "
            f"its type or {option('categorical_features')} declares it."
        )
    more = f" and {len(named) - _SHOWN} more columns" if len(named) > _SHOWN else ""
    raise MissingValueError(
        f"Input X contains NaN or infinity in rows that need it: {', '.join(named[:_SHOWN])}"
        f"{more}. Impute or leave out these rows or columns (a feature of the prediction equation "
        f"alone may be missing where the row is not selected).{marks}"
    )


def refuse_bad_flags(count: int, value: object, what: str = "selected") -> None:
    """Refuse rows whose ``what`` is neither true nor false, but ``value`` (None if missing)."""
    if not count:
        return
    rows = plural(count, "row")
    verb = "holds" if count == 1 else "hold"
    wrong = (
        f"it is missing in {rows}"
        if value is None
        else f"{rows} {verb} something else, such as {quoted(label_of(value))}"
    )
    raise InputError(f"{what} must be boolean (or 0 and 1) in every row; {wrong}")


def refuse_bad_weights(count: int) -> None:
    """Refuse weights that are negative, missing or infinite."""
    if count:
        what = plural(count, "negative, missing or infinite value")
        raise InputError(f"{option('sample_weight')} holds {what}; weights must be zero or more")


def refuse_groupless(what: str, count: int) -> None:
    """Refuse rows without a group."""
    if count:
        raise InputError(f"{what} is missing in {count} rows; every row needs one")
