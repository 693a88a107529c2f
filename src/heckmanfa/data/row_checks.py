"""What a fit refuses rows and columns for, in words; the same wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.row_rules import FeatureCounts, RowCounts
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
from heckmanfa.text.printable import quoted, quoted_list

# The squares of outcomes in this range can be summed without overflow.
_SMALLEST, _LARGEST = 1e-140, 1e140
# Frequency weights seldom multiply rows by more; sampling weights nearly always do.
_MANY_TIMES = 10.0
_SHOWN = 10
_SURVEY = "If a weight says how many members of a population a row represents, as in a survey,"
_SAMPLING = "use weight_kind='sampling' with cov_type='robust' or 'cluster'"
_ELSEWHERE = " in Heckman and the searches"


def check_rows(counts: RowCounts, n_selection: int) -> None:
    """Refuse rows that nothing can be learned from; warn of outcomes that are all 0 or 1.

    ``n_selection`` is the number of selection features.
    """
    n, low, high = counts.selected, counts.low, counts.high
    if n == 0:
        raise NoOutcomeError(
            f"no row has an observed outcome ({counts.total} rows): y is missing in every selected "
            "row. Check the outcome column and `selected`."
        )
    refuse_infinite_outcomes(counts.infinite)
    if n == 1:
        raise TooFewRowsError(
            "only 1 sample has an observed outcome (n_selected = 1); a fit needs more"
        )
    if low == high:
        raise ConstantOutcomeError(
            f"the outcome is {low:g} in all {n} selected rows; there is nothing to predict. Check "
            "that y is the right column."
        )
    if not _SMALLEST < high - low < _LARGEST:
        raise InputError(
            f"the outcome runs from {low:g} to {high:g}: its squares cannot be represented. "
            "Change its unit."
        )
    if low == 0 and high == 1 and counts.binary:
        warn(
            "the outcome holds only 0 and 1: a linear model will predict outside [0, 1]",
            BinaryOutcomeWarning,
        )
    if counts.unselected and counts.kept <= n_selection + 1:
        raise TooFewRowsError(
            f"{n_selection} selection features and an intercept need more than "
            f"{n_selection + 1} rows; there are {counts.kept}. Leave features out of the "
            "selection equation."
        )


def refuse_infinite_outcomes(count: int) -> None:
    """Refuse selected rows with an infinite outcome."""
    if count:
        raise InputError(
            "Input y contains infinity or a value too large for dtype('float64') in "
            f"{count} selected rows; correct these values, or mark them missing with NaN"
        )


def explain_known_only(
    names: Sequence[object], counts: FeatureCounts, among: Mask | None = None
) -> str | None:
    """Say which columns are known only for selected rows; None if no column is.

    ``names`` are those of all k columns; ``among`` (k,) restricts the answer to some of them.
    """
    known = counts.known_only() if among is None else counts.known_only() & among
    positions = np.flatnonzero(known)
    if len(positions) == 0:
        return None
    single = len(positions) == 1
    listed = quoted_list([names[position] for position in positions.tolist()], _SHOWN)
    are, look, they = ("is", "It looks", "it") if single else ("are", "They look", "they")
    most = int(np.atleast_1d(counts.gaps_selected)[positions].max())
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
    labels = table.labels(columns)
    known_only = explain_known_only(labels, counts, everywhere)
    if known_only is not None:
        raise MissingValueError(
            f"{known_only} Leave such columns out of the selection equation, and those that were "
            "made from the outcome out of both."
        )
    found = [
        f"{quoted(label)} ({missing} NaN, {infinite} inf)"
        for label, missing, infinite in zip(labels, counts.missing, counts.infinite, strict=True)
        if missing or infinite
    ]
    if not found:
        return
    more = f" and {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else ""
    raise MissingValueError(
        f"Input X contains NaN or infinity in rows that need it: {', '.join(found[:_SHOWN])}"
        f"{more}. Impute or leave out these rows or columns (a feature of the prediction equation "
        "alone may be missing where the row is not selected)."
    )


def refuse_bad_flags(count: int, value: object) -> None:
    """Refuse rows whose ``selected`` is neither true nor false, but ``value`` (None if missing)."""
    if not count:
        return
    rows = plural(count, "row")
    verb = "holds" if count == 1 else "hold"
    found = (
        f"it is missing in {rows}"
        if value is None
        else f"{rows} {verb} something else, such as {quoted(label_of(value))}"
    )
    raise InputError(f"selected must be boolean (or 0 and 1) in every row; {found}")


def refuse_bad_weights(count: int) -> None:
    """Refuse weights that are negative, missing or infinite."""
    if count:
        what = plural(count, "negative, missing or infinite value")
        raise InputError(f"sample_weight holds {what}; weights must be zero or more")


def refuse_groupless(what: str, count: int) -> None:
    """Refuse rows without a group."""
    if count:
        raise InputError(f"{what} is missing in {count} rows; every row needs one")


def check_frequencies(counts: RowCounts, *, own: bool = True) -> None:
    """Refuse frequency weights that are not integers; warn of those that look like others.

    ``own`` says whether the model being fitted supports sampling weights itself.
    """
    advice = _SAMPLING + ("" if own else _ELSEWHERE)
    if counts.fractions:
        what = "value that is not an integer"
        if counts.fractions > 1:
            what = "values that are not integers"
        raise InputError(
            f"sample_weight holds {counts.fractions:,} {what}, and frequency weights count rows: a "
            f"weight of 2 is two rows. {_SURVEY} {advice}"
        )
    rows, total = counts.kept, counts.weight_sum
    if rows and total >= _MANY_TIMES * rows:
        warn(
            f"the frequency weights let {rows:,} rows count as {total:,.0f}: standard errors are "
            f"those of {total:,.0f} observed rows. {_SURVEY} they are far too small: {advice}",
            FrequencyWeightWarning,
        )
