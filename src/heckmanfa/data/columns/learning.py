"""What each column of a table becomes, learned from counts of its rows.

A `Column` is what is known before a row is read: how the data stores the column, and what the user
asked for. It starts a tally, to which rows are added in chunks, and decides from the tally what the
column is. Rows in memory are one chunk (`learn_columns`); Parquet files feed many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.data.columns.declared import as_stored
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.columns.kinds import (
    Kind,
    as_category,
    as_numbers,
    is_identifier_name,
    kind_of_dates,
    kind_of_numbers,
    kind_of_objects,
    kind_of_text,
    may_count_rows,
)
from heckmanfa.data.columns.tally import NumberTally, TextTally
from heckmanfa.data.columns.values import (
    Time,
    as_number,
    infinite_values,
    is_plain_number,
    is_text,
    not_numbers,
    time_in,
    times_not_numbers,
)
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, MissingValueError, UnknownFeatureError
from heckmanfa.text.printable import quoted

Asked = Literal["number", "category"]


@dataclass(frozen=True)
class Column:
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

    def kind_by_type(self) -> Kind | None:
        """Return the kind that the type alone decides; None if rows have to be counted."""
        if self.asked == "category" or self.stored in ("number", "text"):
            return None
        if self.stored == "objects":
            return self.kind_of_objects()
        if self.asked == "number":
            raise InputError(times_not_numbers(self.name, self.time))
        return kind_of_dates(self.name, self.time)

    def kind_of_objects(self) -> Kind:
        """Return what a column of objects is, or refuse it if the user asked for something else."""
        if self.asked is None:
            return kind_of_objects(self.name)
        what = "not numbers" if self.asked == "number" else "which cannot be a category"
        raise InputError(f"column {quoted(self.name)} holds lists or other objects, {what}")

    def start(self, *, seen: Mask | None = None, capped: bool = True) -> NumberTally | TextTally:
        """Start to count; ``seen`` and ``capped`` are those of the tallies."""
        as_text = self.stored == "text" or self.asked == "category"
        # Spelled numbers may count the rows, which nobody knows before they are read.
        distinct = is_identifier_name(self.name) or (as_text and self.by_spelling)
        numbers = NumberTally(distinct=distinct, seen=seen, capped=capped)
        if not as_text:
            return numbers
        spelled = self.by_spelling or self.asked == "number"
        return TextTally(numbers if spelled else None, declared=self.declared, capped=capped)

    def kind(self, tally: NumberTally | TextTally) -> Kind:
        """Decide what the column is from the counts of all its rows."""
        if isinstance(tally, NumberTally):
            if self.asked == "number":
                return as_numbers(tally, self.name)
            return kind_of_numbers(tally, self.name, boolean=self.boolean)
        if self.asked == "category":
            if tally.more:
                raise InputError(
                    f"column {quoted(self.name)} has more than {len(tally.counts)} levels, too "
                    "many for a category"
                )
            return as_category(list(tally.counts), self.name)
        if self.asked == "number":
            spread, numbers = tally.as_numbers()
            if numbers.n_bad:
                raise InputError(not_numbers(numbers, self.name, asked=True))
            return as_numbers(spread, self.name)
        return kind_of_text(tally, self.name, by_spelling=self.by_spelling)


@dataclass(frozen=True)
class LearnedColumn:
    """A column, what it is, and the counts that say so."""

    column: Column
    kind: Kind
    tally: NumberTally | TextTally | None
    """None if its type alone decides"""

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of a category, the reference first."""
        assert isinstance(self.tally, TextTally)
        return order_levels(self.tally)

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
                raise MissingValueError(infinite_values(name))
            return {name: self.numbers.mean}
        assert isinstance(self.tally, TextTally)
        counts = [self.tally.counts[level] for level in self.levels[1:]]
        names = encoded_names(name, self.levels)
        return {name: n / self.tally.given for name, n in zip(names, counts, strict=True)}


def encoded_names(source: str, levels: Sequence[str] | None) -> list[str]:
    """Name what a column becomes: itself, or a dummy for each level but the first."""
    return [source] if levels is None else [f"{source}[{level}]" for level in levels[1:]]


def order_levels(text: TextTally) -> tuple[str, ...]:
    """Order levels: the most frequent first, then as declared, by size, or by alphabet."""
    counts = text.counts
    if text.declared is not None:
        order = [level for level in text.declared if level in counts]
    else:
        numbers = {level: as_number(level) for level in counts}
        order = sorted(counts)
        if None not in numbers.values():
            order.sort(key=lambda level: numbers[level] or 0.0)
    reference = max(order, key=lambda level: counts[level])
    return (reference, *(level for level in order if level != reference))


def asked_for(
    categorical: Sequence[str],
    numeric: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    prefix: str = "--",
) -> dict[str, Asked]:
    """Return what the user says each column is.

    Columns that are not among ``names`` are refused. Messages put ``prefix`` before the options.
    """
    for option, wanted in (("categorical", categorical), ("numeric", numeric)):
        for name in wanted:
            if names is not None and name not in names:
                raise UnknownFeatureError(
                    f"{prefix}{option} names {quoted(name)}, which the data does not "
                    f"have{nearest(name, names)}"
                )
    both = [name for name in categorical if name in numeric]
    if both:
        raise InputError(
            f"{quoted(both[0])} is in both {prefix}categorical and {prefix}numeric; choose one"
        )
    asked: dict[str, Asked] = dict.fromkeys(categorical, "category")
    return asked | dict.fromkeys(numeric, "number")


def learn_columns(
    frame: pd.DataFrame,
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    untyped: bool = False,
) -> list[LearnedColumn]:
    """Learn what each column of a table in memory is, by the rules of `kinds`.

    The user has decided for the columns ``categorical`` and ``numeric``. If the table is
    ``untyped``, as CSV and Excel files are, text that spells numbers is numbers.
    """
    names = [str(name) for name in frame.columns]
    asked = asked_for(categorical, numeric, names)
    return [_learn(as_stored(frame[name]), name, asked, untyped=untyped) for name in names]


def _learn(
    series: pd.Series[Any], name: str, asked: Mapping[str, Asked], *, untyped: bool
) -> LearnedColumn:
    column = _column_of(series, name, asked.get(name), untyped=untyped)
    kind = column.kind_by_type()
    if kind is not None:
        return LearnedColumn(column, kind, None)
    try:
        tally = _count(column, series)
    except TypeError:
        return LearnedColumn(column, column.kind_of_objects(), None)
    return LearnedColumn(column, column.kind(tally), tally)


def _column_of(series: pd.Series[Any], name: str, asked: Asked | None, *, untyped: bool) -> Column:
    if is_plain_number(series):
        boolean = bool(pd.api.types.is_bool_dtype(series))
        return Column(name, "number", asked, boolean=boolean)
    time = time_in(series)
    if time is not None:
        return Column(name, "time", asked, time=time)
    declared = isinstance(series.dtype, pd.CategoricalDtype)
    # Stata declares labels for some of a number's values; such a column is not a category.
    is_factor = declared and len({isinstance(level, str) for level in series.cat.categories}) == 1
    is_words = is_factor or (not untyped and is_text(series))
    return Column(name, "text", asked, declared=declared, by_spelling=not is_words)


def _count(column: Column, series: pd.Series[Any]) -> NumberTally | TextTally:
    """Count all rows as one chunk, which needs no caps: the rows are in memory anyway."""
    if column.stored != "number" or column.asked == "category":
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
