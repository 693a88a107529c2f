"""The rules that say what a column is: a number, a category, or nothing to fit a model with.

A *number* has a numeric or boolean type. Text stays text even if it spells numbers: in Parquet,
Feather and Stata files and in data frames, somebody chose that type. Cells of CSV and Excel files
have no type. There, text that spells numbers is a number, and if nearly all of it (95%) does, the
rest is an error that names the rows. A declared category of numbers is numbers, as Parquet files
store it (`declared.as_stored`).

A *category* is other text with at most 50 levels, and with no more levels than half of its values.
An *identifier* tells rows apart: text that is nearly always different, integers that count the rows
from 0 or 1, or integers with many different values under a name such as ``id``. A *constant* has
one value at most. *Text* is the rest: text with too many levels, dates, and objects. The last three
are not features.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from heckmanfa.data.columns.tally import NumberTally, TextTally
from heckmanfa.data.columns.values import (
    UNITS,
    NotNumbers,
    Time,
    as_number,
    nearly_all,
    not_numbers,
)
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

KindName = Literal["number", "category", "identifier", "constant", "text"]

MOST_LEVELS = 50
"""levels of a category"""
_NEARLY_ALL = 0.95
_FEW_ROWS = 20
_BOOLEAN = "is true or false, read as 1 or 0"

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
    """a phrase for the user that follows the column's name"""
    can_override: bool = True
    """whether the user can make it a feature with --numeric or --categorical"""

    @property
    def is_feature(self) -> bool:
        """Whether a model can be fitted with it as it is."""
        return self.kind in ("number", "category")


def kind_of_numbers(spread: NumberTally, name: str, *, boolean: bool = False) -> Kind:
    """Decide what a column of numbers or booleans is."""
    if boolean:
        return _constant(spread, name) or Kind(name, "number", _BOOLEAN)
    return _constant_or_identifier(spread, name) or Kind(name, "number", "is a number")


def kind_of_text(text: TextTally, name: str, *, by_spelling: bool = False) -> Kind:
    """Decide what a column of text is; ``by_spelling``, text that spells numbers is numbers."""
    labels = list(text.counts)
    if len(labels) <= 1:
        return _one_level(labels, name)
    numbers = None
    if by_spelling:
        spread, numbers = text.as_numbers()
        if numbers.n_bad == 0:
            booleans = {label.lower() for label in labels} <= {"true", "false"}
            reason = _BOOLEAN if booleans else "spells numbers"
            return _constant_or_identifier(spread, name) or Kind(name, "number", reason)
        if nearly_all(numbers.n_given - numbers.n_bad, numbers.n_given):
            raise InputError(not_numbers(numbers, name, asked=False))
    if are_dates(labels):
        return kind_of_dates(name)
    kind = _words(text, numbers, name)
    if kind.kind != "category" and all(as_number(label) is not None for label in labels):
        # A user who misses the column must learn that it is not taken for numbers.
        return replace(kind, reason=f"{kind.reason}; it is text that spells numbers")
    return kind


def are_dates(labels: Sequence[str]) -> bool:
    """Whether (nearly) all texts spell dates."""
    dated = sum(_DATE.fullmatch(label) is not None for label in labels)
    return dated >= _NEARLY_ALL * len(labels)


def as_numbers(spread: NumberTally, name: str) -> Kind:
    """Take a column as numbers at the user's request; one value is still a constant."""
    return _constant(spread, name) or Kind(name, "number", "is a number, as asked")


def as_category(labels: Sequence[str], name: str) -> Kind:
    """Take a column as a category at the user's request; one level is still a constant."""
    if len(labels) <= 1:
        return _one_level(labels, name)
    return Kind(name, "category", f"is a category of {len(labels)} levels, as asked")


def _words(text: TextTally, numbers: NotNumbers | None, name: str) -> Kind:
    distinct, given = len(text.counts), text.given
    many = distinct > MOST_LEVELS or 2 * distinct > given
    if many and numbers is not None and 2 * numbers.n_bad < numbers.n_given:
        row, cell = next(iter(numbers.bad.items()))
        return Kind(
            name,
            "text",
            f"is text, though {numbers.n_given - numbers.n_bad} of its {numbers.n_given} values "
            f"are numbers; row {row + 1} of the data holds {quoted(cell[:30])}",
        )
    if given > _FEW_ROWS and distinct >= _NEARLY_ALL * given:
        return Kind(name, "identifier", "differs in (nearly) every row, as an identifier does")
    if many:
        return Kind(
            name,
            "text",
            f"is text with {_count(distinct, text.more)} different values in {given} rows, too "
            "many for a category",
        )
    return Kind(name, "category", f"is a category of {distinct} levels")


def _count(n: int, more: bool) -> str:
    return f"more than {n}" if more else str(n)


def _constant(spread: NumberTally, name: str) -> Kind | None:
    if spread.n == 0:
        return _constant_kind(name, None)
    return _constant_kind(name, f"{spread.low:g}") if spread.low == spread.high else None


def _one_level(labels: Sequence[str], name: str) -> Kind:
    return _constant_kind(name, quoted(labels[0]) if labels else None)


def _constant_kind(name: str, value: str | None) -> Kind:
    reason = "has no values" if value is None else f"is {value} wherever it is not missing"
    return Kind(name, "constant", reason, can_override=False)


def _constant_or_identifier(spread: NumberTally, name: str) -> Kind | None:
    """Return what numbers are that cannot be a feature; None if they can."""
    constant = _constant(spread, name)
    if constant is not None:
        return constant
    n, low, high = spread.n, spread.low, spread.high
    if n <= _FEW_ROWS or not (np.isfinite(low) and np.isfinite(high)):
        return None
    counts = low in (0, 1) and n <= high - low + 1 <= n / _NEARLY_ALL
    if not (counts or is_identifier_name(name)) or not spread.integers:
        return None
    distinct = spread.distinct
    if counts and distinct >= _NEARLY_ALL * n:
        return Kind(name, "identifier", "counts the rows")
    if distinct >= _NEARLY_ALL * n or (_is_id(name) and distinct > _FEW_ROWS):
        many = _count(distinct, spread.more)
        return Kind(name, "identifier", f"is named like an identifier and has {many} values")
    return None


def is_identifier_name(name: str) -> bool:
    """Whether a column is named like an identifier or a row number."""
    return _is_id(name) or _INDEX.search(name) is not None


def _is_id(name: str) -> bool:
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def may_count_rows(n: int, low: float, high: float) -> bool:
    """Whether ``n`` values in a range may be integers that count the rows.

    Some of the ``n`` may be missing, so this is not a proof.
    """
    return n > _FEW_ROWS and low in (0, 1) and n / 2 <= high - low + 1 <= n / _NEARLY_ALL


def kind_of_dates(name: str, time: Time = "dates") -> Kind:
    """Return what a column of dates, times of day or spans of time is."""
    return Kind(
        name,
        "text",
        f"holds {time}, which no model can use; make numbers of them, such as {UNITS[time]}",
        can_override=False,
    )


def kind_of_objects(name: str) -> Kind:
    """Return what a column of lists or other objects is."""
    reason = "holds lists or other objects, which no model can use"
    return Kind(name, "text", reason, can_override=False)
