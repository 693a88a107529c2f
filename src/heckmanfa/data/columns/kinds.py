"""What each column of a table is: a number, a category, or nothing to fit a model with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.declared import as_stored
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.columns.values import (
    UNITS,
    NotNumbers,
    Time,
    as_number,
    is_plain_number,
    is_text,
    levels_of,
    nearly_all,
    not_numbers,
    numbers_of,
    time_in,
    to_numbers,
)
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.printable import quoted

__all__ = [
    "MOST_LEVELS",
    "Kind",
    "KindName",
    "Spread",
    "are_dates",
    "as_category",
    "as_numbers",
    "can_be_asked_for",
    "decide_kinds",
    "is_identifier_name",
    "kind_of_dates",
    "kind_of_numbers",
    "kind_of_objects",
    "kind_of_text",
    "may_count",
]

KindName = Literal["number", "category", "identifier", "constant", "text"]

MOST_LEVELS = 50
"""of a category"""
_NEARLY_ALL = 0.95
_FEW_ROWS = 20

_ID = re.compile(r"(?:^|[\W_])(?:id|ids|uuid|guid)$|^(?:id|uuid|guid)[\W_]", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)$")
_INDEX = re.compile(
    r"(?:^|[\W_])(?:index|idx|key|row|row_?id|row_?num(?:ber)?|record|serial|nr|no)$"
    r"|^Unnamed: \d+$",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[ T]\d{1,2}:.*)?"
)


@dataclass(frozen=True)
class Kind:
    """What a column is taken for, and why."""

    name: str
    kind: KindName
    reason: str
    """a phrase for the user that goes on after the column's name"""


class Spread(Protocol):
    """How numbers are spread; those that are missing do not count."""

    @property
    def n(self) -> int:
        """How many there are."""
        ...

    @property
    def low(self) -> float:
        """The smallest."""
        ...

    @property
    def high(self) -> float:
        """The largest."""
        ...

    @property
    def whole(self) -> bool:
        """Whether all of them are whole."""
        ...

    @property
    def distinct(self) -> int:
        """How many different ones there are; it is asked for only where they are whole."""
        ...

    @property
    def more(self) -> bool:
        """Whether there are more different ones than were counted."""
        ...


class _Values:
    """The spread of numbers in memory."""

    more = False

    def __init__(self, values: Floats) -> None:
        gaps = np.isnan(values)
        self._given = values[~gaps] if gaps.any() else values
        self.n = len(self._given)
        self.low = float(self._given.min(initial=np.inf))
        self.high = float(self._given.max(initial=-np.inf))

    @cached_property
    def whole(self) -> bool:
        return bool(np.all(self._given == np.floor(self._given)))

    @cached_property
    def distinct(self) -> int:
        return len(np.unique(self._given))


def decide_kinds(
    frame: pd.DataFrame,
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    untyped: bool = False,
) -> dict[str, Kind]:
    """Decide what each column is.

    A *number* has a numeric or boolean type. Text stays text even where it spells numbers, because
    its type was somebody's decision: so it is in Parquet, Feather and Stata files and in frames.
    A declared category of numbers is numbers, as Parquet files store it (`declared.as_stored`).
    Cells of an ``untyped`` table have no such type: there, text that spells numbers is a number,
    and where nearly all of it (95%) does, the rest is an error that says where it is. A *category*
    is other text with at
    most 50 levels, and with no more levels than half of its values. An *identifier* tells rows
    apart: text that is nearly always different, whole numbers that count the rows from 0 or 1, or
    whole numbers of many different values under a name such as ``id``. A *constant* has one value
    at most. *Text* is what is left: text of too many levels, dates, and objects. The last three
    are nothing to fit a model with.

    Parameters
    ----------
    frame : DataFrame
    categorical, numeric : sequence of str
        Columns for which the user has decided. A column with one value stays a constant.
    untyped : bool
        Whether text is judged by what it spells, as cells of CSV and Excel files have to be.

    Returns
    -------
    dict of str to Kind
        In the order of the columns.
    """
    names = [str(one) for one in frame.columns]
    for option, wanted in (("--categorical", categorical), ("--numeric", numeric)):
        for one in wanted:
            if one not in names:
                raise UnknownFeatureError(
                    f"{option} names {quoted(one)}, which the data does not "
                    f"have{nearest(one, names)}"
                )
    both = [one for one in categorical if one in numeric]
    if both:
        raise InputError(f"{quoted(both[0])} is in both --categorical and --numeric; choose one")
    kinds = {}
    for name in names:
        series = as_stored(frame[name])
        if name in categorical:
            kinds[name] = as_category(_labels(series, name), name)
        elif name in numeric:
            kinds[name] = as_numbers(_Values(to_numbers(series, name)), name)
        else:
            kinds[name] = _decide(series, name, untyped=untyped)
    return kinds


def _decide(series: pd.Series[Any], name: str, *, untyped: bool) -> Kind:
    if is_plain_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return kind_of_numbers(_Values(values), name, truths=pd.api.types.is_bool_dtype(series))
    time = time_in(series)
    if time is not None:
        return kind_of_dates(name, time)
    try:
        levels = levels_of(series)
    except TypeError:
        return kind_of_objects(name)
    given = int(np.count_nonzero(levels.codes >= 0))
    is_words = _is_factor(series) or (not untyped and is_text(series))
    if len(levels.labels) <= 1 or is_words:
        return kind_of_text(levels.labels, given, None, None, name)
    numbers = numbers_of(series)
    return kind_of_text(levels.labels, given, numbers, _Values(numbers.found), name)


def _is_factor(series: pd.Series[Any]) -> bool:
    """Whether the levels were declared; Stata declares some of a number's values."""
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return False
    return len({isinstance(one, str) for one in series.cat.categories}) == 1


def _labels(series: pd.Series[Any], name: str) -> list[str]:
    try:
        return levels_of(series).labels
    except TypeError as error:
        raise InputError(
            f"column {quoted(name)} holds lists or other objects, which cannot be a category"
        ) from error


def kind_of_numbers(spread: Spread, name: str, *, truths: bool = False) -> Kind:
    """Decide what a column is whose type is a number, or true and false.

    Parameters
    ----------
    spread : Spread
    name : str
    truths : bool
        Whether it is true and false.

    Returns
    -------
    Kind
    """
    if truths:
        reason = "is true or false, read as 1 or 0"
        return _constant(spread, name) or Kind(name, "number", reason)
    return (
        _constant(spread, name) or _identifier(spread, name) or Kind(name, "number", "is a number")
    )


def kind_of_text(
    labels: Sequence[str],
    given: int,
    numbers: NotNumbers | None,
    spread: Spread | None,
    name: str,
    *,
    more: bool = False,
) -> Kind:
    """Decide what a column of text is.

    Parameters
    ----------
    labels : sequence of str
        Its different values.
    given : int
        How many rows have one.
    numbers : NotNumbers or None
        What in it is no number; None where it is text whatever it spells.
    spread : Spread or None
        Of the numbers in it.
    name : str
    more : bool
        Whether there are more different values than these.

    Returns
    -------
    Kind
    """
    if len(labels) <= 1:
        return _one_level(labels, name)
    if numbers is not None and spread is not None:
        if numbers.n_bad == 0:
            truths = {label.lower() for label in labels} <= {"true", "false"}
            reason = "is true or false, read as 1 or 0" if truths else "spells numbers"
            return (
                _constant(spread, name) or _identifier(spread, name) or Kind(name, "number", reason)
            )
        if nearly_all(numbers.n_given - numbers.n_bad, numbers.n_given):
            raise InputError(not_numbers(numbers, name, asked=False))
    if are_dates(labels):
        return kind_of_dates(name)
    kind = _words(len(labels), given, numbers, name, more=more)
    if kind.kind != "category" and all(as_number(label) is not None for label in labels):
        # Whoever misses the column has to know that it is not taken for numbers.
        return replace(kind, reason=f"{kind.reason}; it is text that spells numbers")
    return kind


def are_dates(labels: Sequence[str]) -> bool:
    """Whether (nearly) all texts spell dates."""
    dated = sum(_DATE.fullmatch(label) is not None for label in labels)
    return dated >= _NEARLY_ALL * len(labels)


def as_numbers(spread: Spread, name: str) -> Kind:
    """Take a column as numbers because the user says so; one value is a constant all the same."""
    return _constant(spread, name) or Kind(name, "number", "is a number, as asked")


def as_category(labels: Sequence[str], name: str) -> Kind:
    """Take a column as a category because the user says so; one level is a constant."""
    if len(labels) <= 1:
        return _one_level(labels, name)
    return Kind(name, "category", f"is a category of {len(labels)} levels, as asked")


def _words(distinct: int, given: int, numbers: NotNumbers | None, name: str, *, more: bool) -> Kind:
    many = distinct > MOST_LEVELS or 2 * distinct > given
    if many and numbers is not None and 2 * numbers.n_bad < numbers.n_given:
        row, text = next(iter(numbers.bad.items()))
        return Kind(
            name,
            "text",
            f"is text, though {numbers.n_given - numbers.n_bad} of its {numbers.n_given} values "
            f"are numbers; row {row + 1} of the data holds {quoted(text[:30])}",
        )
    if given > _FEW_ROWS and distinct >= _NEARLY_ALL * given:
        return Kind(name, "identifier", "differs in (nearly) every row, as an identifier does")
    if many:
        return Kind(
            name,
            "text",
            f"is text with {_count(distinct, more)} different values in {given} rows, too many for "
            "a category",
        )
    return Kind(name, "category", f"is a category of {distinct} levels")


def _count(n: int, more: bool) -> str:
    return f"more than {n}" if more else str(n)


def _constant(spread: Spread, name: str) -> Kind | None:
    if spread.n == 0:
        return Kind(name, "constant", "has no values")
    if spread.low == spread.high:
        return Kind(name, "constant", f"is {spread.low:g} wherever it is not missing")
    return None


def _one_level(labels: Sequence[str], name: str) -> Kind:
    if not labels:
        return Kind(name, "constant", "has no values")
    return Kind(name, "constant", f"is {quoted(labels[0])} wherever it is not missing")


def is_identifier_name(name: str) -> bool:
    """Whether a column is named as identifiers or numbers of rows are."""
    return _is_id(name) or _INDEX.search(name) is not None


def may_count(n: int, low: float, high: float) -> bool:
    """Whether ``n`` values between two ends may be whole numbers that count the rows.

    Some of the ``n`` may be missing, so that this is no proof.
    """
    return n > _FEW_ROWS and low in (0, 1) and n / 2 <= high - low + 1 <= n / _NEARLY_ALL


def _is_id(name: str) -> bool:
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def _identifier(spread: Spread, name: str) -> Kind | None:
    """Whether whole numbers count the rows, or are many under a name such as id."""
    n, low, high = spread.n, spread.low, spread.high
    if n <= _FEW_ROWS or not (np.isfinite(low) and np.isfinite(high)):
        return None
    counts = low in (0, 1) and n <= high - low + 1 <= n / _NEARLY_ALL
    if not (counts or is_identifier_name(name)) or not spread.whole:
        return None
    distinct = spread.distinct
    if counts and distinct >= _NEARLY_ALL * n:
        return Kind(name, "identifier", "counts the rows")
    if distinct >= _NEARLY_ALL * n or (_is_id(name) and distinct > _FEW_ROWS):
        many = _count(distinct, spread.more)
        return Kind(name, "identifier", f"is named like an identifier and has {many} values")
    return None


# What does not vary, and what is no number or text, cannot be used whatever it is taken for.
_NO_USE = ("has no values", "wherever it is not missing", "which no model can use")


def can_be_asked_for(reason: str) -> bool:
    """Whether a column left out for a reason can be used by way of --numeric or --categorical."""
    return not any(one in reason for one in _NO_USE)


def kind_of_dates(name: str, time: Time = "dates") -> Kind:
    """Say what a column of dates, times of day or spans of time is."""
    return Kind(
        name,
        "text",
        f"holds {time}, which no model can use; make numbers of them, such as {UNITS[time]}",
    )


def kind_of_objects(name: str) -> Kind:
    """Say what a column of lists or the like is."""
    return Kind(name, "text", "holds lists or other objects, which no model can use")
