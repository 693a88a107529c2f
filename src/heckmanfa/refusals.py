"""What rows and columns of a fit are refused for, in words; the same wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from heckmanfa.features import FeatureTable
from heckmanfa.foreign import quoted
from heckmanfa.rows import Positions
from heckmanfa.wording import plural

__all__ = [
    "Outcomes",
    "bad_weights",
    "check_enough",
    "check_frequencies",
    "check_outcome",
    "fractions",
    "groupless",
    "infinite_outcome",
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


def known_only_for_selected(names: Sequence[object], n_unselected: int) -> str:
    """Say of columns that they are missing exactly where rows are not selected, and what follows.

    Parameters
    ----------
    names : sequence
    n_unselected : int
        How many rows are not selected.

    Returns
    -------
    str
    """
    listed = ", ".join(quoted(one) for one in names[:10])
    more = f" and {len(names) - 10} more columns" if len(names) > 10 else ""
    are, look, they = ("is", "It looks", "it") if len(names) == 1 else ("are", "They look", "they")
    return (
        f"{listed}{more} {are} missing in exactly the {n_unselected} rows that are not selected. "
        f"{look} like a copy of the outcome, or like something that is known only for the "
        f"selected: {they} may predict, but cannot drive selection, and no value put in would help."
    )


def refuse_not_finite(
    table: FeatureTable,
    columns: Positions,
    missing: NDArray[Any],
    infinite: NDArray[Any],
    known: NDArray[Any] | Sequence[bool] = (),
    n_unselected: int = 0,
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
        Columns that are missing exactly where rows are not selected.
    n_unselected : int
        How many rows are not selected.
    """
    if not missing.any() and not infinite.any():
        return
    only = [table.label(columns[int(place)]) for place in np.flatnonzero(known)]
    if only:
        raise MissingValueError(
            known_only_for_selected(only, n_unselected)
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
