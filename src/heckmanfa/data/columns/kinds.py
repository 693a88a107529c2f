"""The rules that decide what a column is: a number, a category, or not a feature.

A *number* has a numeric or boolean type. Text stays text even if it spells numbers: in Parquet,
Feather and Stata files and in data frames, somebody chose that type. Cells of CSV and Excel files
have no type. There, text that spells numbers is a number, and if nearly all of it (95%) does, the
rest is an error that names the rows.

A *category* is other text, or a column that the data declares as a category (`values`),
also of numbers. It has at most 50 levels, and no more levels than half of its values.
An *identifier* labels rows: text that is nearly always different, integers that count the rows
from 0 or 1, or integers with many different values under a name such as ``id``. A *constant* has
one value at most. *Text* is the rest: text with too many levels, dates, and objects. The last three
are not features.

A `ColumnSpec` is what is known before a row is read: how the data stores the column, and what the
user asked for. It starts a tally, to which rows are added in chunks, and decides from the tally
what the column is. Rows in memory are one chunk (`learn_columns`); Parquet files feed many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.data.columns.column_hints import is_code_name, is_id_name, is_identifier_name
from heckmanfa.data.columns.dates import are_dates
from heckmanfa.data.columns.tally import GapTally, NumberTally, Tally, TextTally
from heckmanfa.data.columns.values import (
    NEARLY_ALL,
    UNITS,
    NotNumbers,
    Time,
    as_declared,
    as_number,
    encoded_names,
    is_plain_number,
    is_text,
    nearly_all,
    not_numbers,
    time_in,
    times_not_numbers,
)
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, MissingValueError, UnknownFeatureError
from heckmanfa.text.option_words import EXCLUDED, MISSING, option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

KindName = Literal["number", "category", "identifier", "constant", "text"]
Asked = Literal["number", "category"]

MOST_LEVELS = 50
"""levels of a category"""
_FEW_ROWS = 20
_BOOLEAN = "is true or false, read as 1 or 0"


@dataclass(frozen=True)
class ColumnKind:
    """How a column is treated, and why."""

    name: str
    kind: KindName
    reason: str
    """a phrase for the user that follows the column's name"""
    can_override: bool = True
    """whether the user can make it a number or a category"""
    is_dated: bool = False
    """whether it holds dates, which the user can make numbers"""

    @property
    def is_feature(self) -> bool:
        """Whether it can be a feature as it is."""
        return self.kind in ("number", "category")


@dataclass(frozen=True)
class ColumnSpec:
    """A column before its rows are counted."""

    name: str
    stored: Literal["number", "text", "time", "objects"]
    """the type that the data gives it"""
    asked: Asked | None = None
    """what the user says it is"""
    boolean: bool = False
    """whether its numbers are true and false"""
    time: Time = "dates"
    """what a column of times holds"""
    declared: bool = False
    """whether the data declares its levels and their order"""
    by_spelling: bool = False
    """whether text that spells numbers is numbers"""
    of_numbers: bool = False
    """whether the data declares it as a category, and its levels are numbers"""
    named: bool = False
    """whether the user names it as a category, or says which of its values are missing"""

    @property
    def literal(self) -> bool:
        """Whether marks such as NA are levels, since somebody declares what its levels are."""
        return self.declared or self.named

    @property
    def is_text(self) -> bool:
        """Whether its levels are counted."""
        return self.stored == "text" or self.asked == "category"

    def kind_by_type(self) -> ColumnKind | None:
        """Return the kind that the type alone decides; None if rows have to be counted."""
        if self.asked == "category" or self.stored in ("number", "text"):
            return None
        if self.stored == "objects":
            return self.kind_of_objects()
        if self.asked == "number":
            raise InputError(times_not_numbers(self.name, self.time))
        return kind_of_dates(self.name, self.time)

    def kind_of_objects(self) -> ColumnKind:
        """Return what a column of objects is, or refuse it if the user asked for something else."""
        if self.asked is None:
            reason = "holds lists or other objects, which no model can use"
            return ColumnKind(self.name, "text", reason, can_override=False)
        what = "not numbers" if self.asked == "number" else "which cannot be a category"
        raise InputError(f"column {quoted(self.name)} holds lists or other objects, {what}")

    def start(self, *, capped: bool, seen: Mask | None = None) -> NumberTally | TextTally:
        """Start to count; ``seen`` and ``capped`` are those of the tallies."""
        # Spelled numbers may count the rows, which is unknown until they are read.
        distinct = is_identifier_name(self.name) or is_code_name(self.name)
        distinct = distinct or (self.is_text and self.by_spelling)
        numbers = NumberTally(distinct=distinct, seen=seen, capped=capped)
        if not self.is_text:
            return numbers
        spelled = self.by_spelling or self.asked == "number"
        return TextTally(
            numbers if spelled else None,
            declared=self.declared,
            literal=self.literal,
            capped=capped,
        )

    def kind(self, tally: NumberTally | TextTally) -> ColumnKind:
        """Decide what the column is from the counts of all its rows."""
        if isinstance(tally, NumberTally):
            if self.asked == "number":
                return _as_numbers(tally, self.name)
            if self.boolean:
                return _constant(tally, self.name) or ColumnKind(self.name, "number", _BOOLEAN)
            odd = _constant_or_identifier(tally, self.name)
            return odd or ColumnKind(self.name, "number", "is a number")
        if self.asked == "category":
            if tally.more:
                raise InputError(
                    f"column {quoted(self.name)} has more than {len(tally.counts)} levels, too "
                    "many for a category"
                )
            n_levels = len(tally.counts)
            if n_levels <= 1:
                return _one_level(list(tally.counts), self.name)
            return ColumnKind(
                self.name, "category", f"is a category of {n_levels} levels, as asked"
            )
        if self.asked == "number":
            spread, numbers = tally.as_numbers()
            if numbers.n_bad:
                raise InputError(not_numbers(numbers, self.name, asked=True))
            return _as_numbers(spread, self.name)
        if self.of_numbers and len(tally.counts) > 1:
            return _words(tally, None, self.name, "a category of numbers")
        return _kind_of_text(tally, self.name, self.by_spelling)

    def learned(self, tally: Tally | None) -> LearnedColumn:
        """Return what the column is, from the counts of all its rows, or None if its type says."""
        assert not isinstance(tally, GapTally)
        kind = self.kind_by_type() if tally is None else self.kind(tally)
        assert kind is not None
        return LearnedColumn(kind, tally)


@dataclass(frozen=True)
class LearnedColumn:
    """The kind of a column, and the counts that decide it."""

    kind: ColumnKind
    tally: NumberTally | TextTally | None
    """None if its type alone decides"""
    merged: tuple[str, ...] = ()
    """rare levels that the tally counts as one, `OTHER`"""

    def with_one_case(self) -> LearnedColumn:
        """Count levels of a category that differ only in case or blanks as one."""
        text, name = self.tally, self.kind.name
        if self.kind.kind != "category" or not isinstance(text, TextTally) or text.more:
            return self
        tally = text.with_one_case()
        if len(tally.counts) == 1:
            return replace(self, kind=_one_level(list(tally.counts), name))
        return replace(self, tally=tally)

    def with_other(self, fewest: int) -> LearnedColumn:
        """Merge the levels that have fewer rows, of a category or of text with too many levels."""
        text, name = self.tally, self.kind.name
        if fewest <= 1 or not isinstance(text, TextTally) or text.more:
            return self
        mostly_numbers = text.numbers is not None and 2 * text.n_bad < text.n_given
        is_text = self.kind.kind == "text" and not self.kind.is_dated and not mostly_numbers
        tally, merged = text.with_other(fewest)
        if not merged or not (self.kind.kind == "category" or is_text):
            return self
        n_levels = len(tally.counts)
        if n_levels > 1:
            kind = ColumnKind(
                name, "category", f"is a category of {n_levels} levels, rare ones merged"
            )
            return replace(self, kind=kind, tally=tally, merged=merged)
        reason = f"is a category without two levels of {fewest} rows"
        kind = ColumnKind(name, "constant", reason, can_override=False)
        return self if is_text else replace(self, kind=kind)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of a category, the reference first."""
        assert isinstance(self.tally, TextTally)
        return self.tally.levels

    @property
    def numbers(self) -> NumberTally:
        """Counts of a column of numbers, whether stored or spelled."""
        assert self.tally is not None
        return self.tally.as_numbers()[0] if isinstance(self.tally, TextTally) else self.tally

    @property
    def gaps(self) -> int:
        """Rows in which a feature is missing."""
        assert self.tally is not None
        return self.tally.gaps if self.kind.kind == "category" else self.numbers.gaps

    def means(self) -> dict[str, float]:
        """Return the mean of each encoded column of a feature; refuse infinite values."""
        name = self.kind.name
        if self.kind.kind != "category":
            if self.numbers.infinite:
                raise MissingValueError(
                    f"column {quoted(name)} holds infinite values; correct them, mark them "
                    f"{MISSING}, or leave the column out{EXCLUDED}"
                )
            return {name: self.numbers.mean}
        assert isinstance(self.tally, TextTally)
        counts = [self.tally.counts[level] for level in self.levels[1:]]
        names = encoded_names(name, self.levels)
        return {name: n / self.tally.n_given for name, n in zip(names, counts, strict=True)}


def asked_for(
    categorical: Sequence[str],
    numeric: Sequence[str],
    names: Sequence[str] | None = None,
) -> dict[str, Asked]:
    """Return what the user says each column is; columns not among ``names`` are refused."""
    known = {*(names or ())}
    for role, wanted in (("categorical", categorical), ("numeric", numeric)):
        for name in wanted:
            if names is not None and name not in known:
                raise UnknownFeatureError(
                    f"{option(role)} names {quoted(name)}, which is not among the "
                    f"features{nearest(name, names)}"
                )
    counted = {*numeric}
    both = [name for name in categorical if name in counted]
    if both:
        raise InputError(
            f"{quoted(both[0])} is in both {option('categorical')} and {option('numeric')}; "
            "choose one"
        )
    asked: dict[str, Asked] = dict.fromkeys(categorical, "category")
    return asked | dict.fromkeys(numeric, "number")


def learn_columns(
    frame: pd.DataFrame,
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    untyped: bool = False,
    literal: Sequence[str] = (),
) -> list[LearnedColumn]:
    """Learn what each column of a table in memory is, by the rules of `kinds`.

    The user has decided for the columns ``categorical`` and ``numeric``. If the table is
    ``untyped``, as CSV and Excel files are, text that spells numbers is numbers. In columns that
    are ``literal`` or ``categorical``, marks such as NA are levels.
    """
    names = [str(name) for name in frame.columns]
    asked = asked_for(categorical, numeric, names)
    columns = []
    for name in names:
        series = as_declared(frame[name], numeric=asked.get(name) == "number")
        named = name in literal or asked.get(name) == "category"
        column = _column_of(series, name, asked.get(name), untyped=untyped, named=named)
        try:
            tally = None if column.kind_by_type() is not None else _tally(column, series)
            columns.append(column.learned(tally))
        except TypeError:
            columns.append(LearnedColumn(column.kind_of_objects(), None))
    return columns


def _column_of(
    series: pd.Series[Any], name: str, asked: Asked | None, *, untyped: bool, named: bool
) -> ColumnSpec:
    if is_plain_number(series):
        boolean = bool(pd.api.types.is_bool_dtype(series))
        return ColumnSpec(name, "number", asked, boolean=boolean, named=named)
    time = time_in(series)
    if time is not None:
        return ColumnSpec(name, "time", asked, time=time, named=named)
    declared = isinstance(series.dtype, pd.CategoricalDtype)
    # Stata declares labels for some of a number's values; such a column is not a category.
    is_factor = declared and len({isinstance(level, str) for level in series.cat.categories}) == 1
    is_words = is_factor or (not untyped and is_text(series))
    return ColumnSpec(
        name,
        "text",
        asked,
        declared=declared,
        by_spelling=not is_words,
        of_numbers=is_factor and not isinstance(series.cat.categories[0], str),
        named=named,
    )


def _tally(column: ColumnSpec, series: pd.Series[Any]) -> NumberTally | TextTally:
    """Count all rows as one chunk, which needs no caps: the rows are in memory anyway."""
    if column.is_text:
        text = column.start(capped=False)
        assert isinstance(text, TextTally)
        text.add(series)
        return text
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    n_given = len(values) - int(np.count_nonzero(np.isnan(values)))
    low, high = (np.fmin.reduce(values), np.fmax.reduce(values)) if n_given else (np.inf, -np.inf)
    counts = may_count_rows(n_given, low, high)
    seen = np.zeros(int(high) + 1, dtype=bool) if counts else None
    numbers = column.start(seen=seen, capped=False)
    assert isinstance(numbers, NumberTally)
    numbers.add(values)
    return numbers


def _kind_of_text(text: TextTally, name: str, by_spelling: bool) -> ColumnKind:
    """Decide what a column of text is; with ``by_spelling``, spelled numbers are numbers."""
    labels = list(text.counts)
    if len(labels) <= 1:
        return _one_level(labels, name)
    numbers = None
    if by_spelling:
        spread, numbers = text.as_numbers()
        if numbers.n_bad == 0:
            booleans = {label.lower() for label in labels} <= {"true", "false"}
            reason = _BOOLEAN if booleans else "spells numbers"
            return _constant_or_identifier(spread, name) or ColumnKind(name, "number", reason)
        if nearly_all(numbers.n_given - numbers.n_bad, numbers.n_given):
            raise InputError(not_numbers(numbers, name, asked=False))
    if are_dates(labels):
        return kind_of_dates(name)
    kind = _words(text, numbers, name)
    if kind.kind != "category" and all(as_number(label) is not None for label in labels):
        # A user who misses the column must learn why it was not read as numbers.
        return replace(kind, reason=f"{kind.reason}; it is text that spells numbers")
    return kind


def _as_numbers(spread: NumberTally, name: str) -> ColumnKind:
    """Take a column as numbers at the user's request; one value is still a constant."""
    return _constant(spread, name) or ColumnKind(name, "number", "is a number, as asked")


def _words(
    text: TextTally, numbers: NotNumbers | None, name: str, what: str = "text"
) -> ColumnKind:
    distinct, n_given = len(text.counts), text.n_given
    many = distinct > MOST_LEVELS or 2 * distinct > n_given
    if many and numbers is not None and 2 * numbers.n_bad < numbers.n_given:
        row, cell = next(iter(numbers.bad.items()))
        return ColumnKind(
            name,
            "text",
            f"is text, though {numbers.n_given - numbers.n_bad} of its {numbers.n_given} values "
            f"are numbers; row {row + 1} of the data holds {quoted(cell[:30])}",
        )
    if n_given > _FEW_ROWS and distinct >= NEARLY_ALL * n_given:
        return ColumnKind(
            name, "identifier", "differs in (nearly) every row, as an identifier does"
        )
    if many:
        return ColumnKind(
            name,
            "text",
            f"is {what} with {_count(distinct, text.more)} different values in {n_given} rows, too "
            "many for a category",
        )
    return ColumnKind(name, "category", f"is a category of {distinct} levels")


def _count(n: int, more: bool) -> str:
    return f"more than {n}" if more else str(n)


def _constant(spread: NumberTally, name: str) -> ColumnKind | None:
    if spread.n == 0:
        return _constant_kind(name, None)
    return _constant_kind(name, f"{spread.low:g}") if spread.low == spread.high else None


def _one_level(labels: Sequence[str], name: str) -> ColumnKind:
    return _constant_kind(name, quoted(labels[0]) if labels else None)


def _constant_kind(name: str, value: str | None) -> ColumnKind:
    reason = "has no values" if value is None else f"is {value} wherever it is not missing"
    return ColumnKind(name, "constant", reason, can_override=False)


def _constant_or_identifier(spread: NumberTally, name: str) -> ColumnKind | None:
    """Return the kind of numbers that cannot be a feature; None if they can."""
    constant = _constant(spread, name)
    if constant is not None:
        return constant
    n, low, high = spread.n, spread.low, spread.high
    if n <= _FEW_ROWS or not (np.isfinite(low) and np.isfinite(high)):
        return None
    counts = low in (0, 1) and n <= high - low + 1 <= n / NEARLY_ALL
    if not (counts or is_identifier_name(name)) or not spread.integers:
        return None
    distinct = spread.distinct
    if counts and distinct >= NEARLY_ALL * n:
        return ColumnKind(name, "identifier", "counts the rows")
    if distinct >= NEARLY_ALL * n or (is_id_name(name) and distinct > _FEW_ROWS):
        many = _count(distinct, spread.more)
        return ColumnKind(name, "identifier", f"is named like an identifier and has {many} values")
    return None


def may_count_rows(n: int, low: float, high: float) -> bool:
    """Whether ``n`` values in a range may be integers that count the rows.

    Some of the ``n`` may be missing, so this is not a proof.
    """
    return n > _FEW_ROWS and low in (0, 1) and n / 2 <= high - low + 1 <= n / NEARLY_ALL


def kind_of_dates(name: str, time: Time = "dates") -> ColumnKind:
    """Return what a column of dates, times of day or spans of time is."""
    return ColumnKind(
        name,
        "text",
        f"holds {time}, which no model can use; make numbers of them, such as {UNITS[time]}",
        can_override=False,
        is_dated=time == "dates",
    )
