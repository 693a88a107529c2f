"""What rows and columns of a fit are refused for, in words; the same wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.errors import (
    BinaryOutcomeWarning,
    ConstantOutcomeError,
    FrequencyWeightWarning,
    InputError,
    MissingValueError,
    NoOutcomeError,
    TooFewRowsError,
    warn,
)
from heckmanfa.text.numbers import plural
from heckmanfa.text.printable import quoted

__all__ = [
    "Outcomes",
    "bad_weights",
    "check_enough",
    "check_frequencies",
    "check_outcome",
    "fractions",
    "groupless",
    "infinite_outcome",
    "is_known_only",
    "known_only_for_selected",
    "multiplied",
    "refuse_not_finite",
]

# The squares of outcomes in this range can be summed without overflow.
_SMALLEST, _LARGEST = 1e-140, 1e140
# Frequency weights seldom multiply rows by more; sampling weights nearly always do.
_MANY_TIMES = 10.0
_SAMPLING = "weight_kind='sampling' with cov_type='robust' or 'cluster'"
_ELSEWHERE = " in Heckman and the searches"
# Gaps that have nothing to do with selection fall on all unselected rows no more often than this.
_CHANCE = 1e-3


def check_enough(counts: dict[str, int], n_selection: int) -> None:
    """Refuse fewer rows than a selection equation has coefficients."""
    n_kept = counts["selected"] + counts["unselected"]
    if counts["unselected"] and n_kept <= n_selection + 1:
        raise TooFewRowsError(
            f"{n_selection} selection features and an intercept need more than "
            f"{n_selection + 1} rows; there are {n_kept}. Leave features out of the selection "
            "equation."
        )


class Outcomes(NamedTuple):
    """The outcomes of the selected rows, counted."""

    n: int
    infinite: int
    low: float
    high: float
    binary: bool


def check_outcome(values: Outcomes, n: int) -> None:
    """Refuse outcomes that nothing can be learned from; ``n`` is how many rows there are."""
    if values.n == 0:
        raise NoOutcomeError(
            f"no row has an observed outcome ({n} rows): y is missing in every selected row. "
            "Check the outcome column and `selected`."
        )
    if values.infinite:
        raise InputError(infinite_outcome(values.infinite))
    if values.n == 1:
        raise TooFewRowsError(
            "only 1 sample has an observed outcome (n_selected = 1); a fit needs more"
        )
    low, high = values.low, values.high
    if low == high:
        raise ConstantOutcomeError(
            f"the outcome is {low:g} in all {values.n} selected rows; there is nothing to "
            "predict. Check that y is the right column."
        )
    if not _SMALLEST < high - low < _LARGEST:
        raise InputError(
            f"the outcome runs from {low:g} to {high:g}: its squares cannot be represented. "
            "Change its unit."
        )
    if low == 0 and high == 1 and values.binary:
        warn(
            "the outcome holds only 0 and 1: a linear model will predict outside [0, 1]",
            BinaryOutcomeWarning,
        )


def infinite_outcome(count: int) -> str:
    """Say how many rows have an infinite outcome."""
    return (
        "Input y contains infinity or a value too large for dtype('float64') in "
        f"{count} selected rows; correct these values, or mark them missing with NaN"
    )


def is_known_only(
    unselected: NDArray[Any], selected: NDArray[Any], n_unselected: int, n_selected: int
) -> Mask:
    """Say which columns are known only for selected rows: missing in all that are not selected.

    Where a column is missing in some selected rows, too, and few rows are not selected, gaps that
    have nothing to do with selection can fall on all of these. Such a column is known only for
    the selected where that would happen less than once in 1,000 times, if as many gaps as the
    column has fell on rows at random.

    Parameters
    ----------
    unselected, selected : (k,) ndarray
        How many rows of each kind miss each column.
    n_unselected, n_selected : int
        How many rows of each kind there are.

    Returns
    -------
    (k,) ndarray of bool
    """
    unselected, selected = np.atleast_1d(unselected), np.atleast_1d(selected)
    everywhere = (unselected == n_unselected) & (n_unselected > 0)
    gaps, n = n_unselected + selected.astype(np.float64), n_unselected + n_selected
    # C(gaps, n_unselected) / C(n, n_unselected), in logarithms.
    chance = (gammaln(gaps + 1) - gammaln(selected + 1.0)) - (
        gammaln(n + 1.0) - gammaln(n_selected + 1.0)
    )
    return np.asarray(everywhere & ((selected == 0) | (chance < np.log(_CHANCE))))


def known_only_for_selected(
    names: Sequence[object], n_unselected: int, gaps_selected: Sequence[int] = ()
) -> str:
    """Say of columns that they are missing in all rows that are not selected, and what follows.

    Parameters
    ----------
    names : sequence
    n_unselected : int
        How many rows are not selected.
    gaps_selected : sequence of int
        How many selected rows miss each column, too.

    Returns
    -------
    str
    """
    listed = ", ".join(quoted(one) for one in names[:10])
    more = f" and {len(names) - 10} more columns" if len(names) > 10 else ""
    are, look, they = ("is", "It looks", "it") if len(names) == 1 else ("are", "They look", "they")
    most = max(gaps_selected, default=0)
    rows = f"exactly the {n_unselected} rows that are not selected"
    if most:
        up_to = "" if len(names) == 1 else "up to "
        rows = f"all {n_unselected} rows that are not selected (and in {up_to}{most} that are)"
    return (
        f"{listed}{more} {are} missing in {rows}. "
        f"{look} like a copy of the outcome, or like something that is known only for the "
        f"selected: {they} may predict, but cannot drive selection, and filling the gaps "
        "would not help."
    )


def refuse_not_finite(
    table: FeatureTable,
    columns: Positions,
    missing: NDArray[Any],
    infinite: NDArray[Any],
    known: NDArray[Any] | Sequence[bool] = (),
    n_unselected: int = 0,
    gaps_selected: NDArray[Any] | Sequence[int] = (),
) -> None:
    """Refuse missing and infinite values, counted by column, in rows that need them.

    Parameters
    ----------
    table : FeatureTable
    columns : sequence of int
        k positions in X.
    missing, infinite : (k,) ndarray
        Counts.
    known : (k,) sequence of bool
        Columns that are missing in all rows that are not selected, by `is_known_only`.
    n_unselected : int
        How many rows are not selected.
    gaps_selected : (k,) sequence of int
        How many selected rows miss each column.
    """
    if not missing.any() and not infinite.any():
        return
    places = [int(place) for place in np.flatnonzero(known)]
    if places:
        only = [table.label(columns[place]) for place in places]
        also = [int(gaps_selected[place]) for place in places] if len(gaps_selected) else []
        raise MissingValueError(
            known_only_for_selected(only, n_unselected, also)
            + " Leave such columns out of the selection equation, and those that were made from "
            "the outcome out of both."
        )
    said = [
        f"{quoted(table.label(column))} ({missing[i]} NaN, {infinite[i]} inf)"
        for i, column in enumerate(columns)
        if missing[i] or infinite[i]
    ]
    more = f" and {len(said) - 10} more columns" if len(said) > 10 else ""
    raise MissingValueError(
        "Input X contains NaN or infinity in rows that need it: "
        + ", ".join(said[:10])
        + more
        + ". Impute or leave out these rows or columns (a feature of the prediction equation "
        "alone may be missing where the row is not selected)."
    )


def bad_weights(count: int) -> str:
    """Say how many weights are none."""
    what = "negative, missing or infinite value"
    return f"sample_weight holds {plural(count, what)}; weights must be zero or more"


def fractions(count: int, *, own: bool = True) -> str:
    """Say that frequency weights are not whole numbers, and what other weights are for."""
    what = "value that is not a whole number" if count == 1 else "values that are not whole numbers"
    return (
        f"sample_weight holds {count:,} {what}, and frequency weights count rows: a weight of 2 is "
        "two rows. Where a weight says how much of a population a row stands for, as in a survey, "
        f"use {_SAMPLING}{'' if own else _ELSEWHERE}"
    )


def multiplied(rows: float, total: float, *, own: bool = True) -> str:
    """Say that frequency weights make rows count many times over, and what this would mean."""
    return (
        f"the frequency weights let {rows:,.0f} rows count as {total:,.0f}: standard errors are "
        f"those of {total:,.0f} rows that were observed. Where a weight says how much of a "
        f"population a row stands for, as in a survey, they are far too small: use {_SAMPLING}"
        f"{'' if own else _ELSEWHERE}"
    )


def check_frequencies(n_fractions: int, rows: float, total: float, *, own: bool = True) -> None:
    """Refuse frequency weights that are no counts, and warn of those that look like none.

    Parameters
    ----------
    n_fractions : int
        Rows whose weight is not a whole number.
    rows, total : float
        Rows of the fit, and the sum of their weights.
    own : bool
        Whether the model that is fitted knows sampling weights itself.
    """
    if n_fractions:
        raise InputError(fractions(n_fractions, own=own))
    if rows and total >= _MANY_TIMES * rows:
        warn(multiplied(rows, total, own=own), FrequencyWeightWarning)


def groupless(what: str, count: int) -> str:
    """Say how many rows have no group."""
    return f"{what} is missing in {count} rows; every row needs one"
