"""Values that mean missing: because the user says so, or because they look like it.

The user names -99 or ``refused``; -99 among incomes, or 999 among ages, only looks like a code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.tally import NumberTally
from heckmanfa.data.columns.values import as_number, is_plain_number, label_of, with_columns
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest, number, plural

Codes = Mapping[str, tuple[str, ...]]
"""the values of each column that mean missing"""
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Blanked:
    """A table in which codes became missing values."""

    frame: pd.DataFrame
    counts: dict[tuple[str, str], int]
    """rows by column and code; only those that occur"""


def codes_of(
    na_values: Sequence[str] | Codes, columns: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the codes of each column; codes of columns that are not there are left out.

    ``na_values`` are values for all columns, or ``column=value``; or codes by column already.
    """
    if isinstance(na_values, Mapping):
        return {name: tuple(codes) for name, codes in na_values.items() if name in columns}
    by_column: dict[str, list[str]] = {}
    for item in na_values:
        names, code = _split(item, columns)
        for name in names:
            by_column.setdefault(name, []).append(code)
    return {name: tuple(dict.fromkeys(codes)) for name, codes in by_column.items()}


def columns_with_codes(na_values: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns of which ``column=value`` says what is missing."""
    pairs = [split_item(item, columns, option("na_values")) for item in na_values]
    return list(dict.fromkeys(pair[0] for pair in pairs if pair is not None))


def split_item(item: str, columns: Sequence[str], role: str) -> tuple[str, str] | None:
    """Return the column and the value of ``column=value``; None if no equals sign is in it."""
    # A column's name may hold an equals sign itself; the longest name counts.
    places = [place for place, sign in enumerate(item) if sign == "="]
    for place in reversed(places):
        if item[:place].strip() in columns:
            return item[:place].strip(), item[place + 1 :].strip()
    if not places:
        return None
    name = item[: places[0]].strip()
    raise UnknownFeatureError(
        f"{role}: the data has no column {quoted(name)}{nearest(name, columns)}"
    )


def _split(item: str, columns: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the columns that an item is about, and its value."""
    pair = split_item(item, columns, option("na_values"))
    if pair is None:
        return columns, item.strip()
    name, code = pair
    if not code:
        raise InputError(
            f"{option('na_values')}: {quoted(item)} has no value after '='; empty cells are "
            "missing anyway"
        )
    return [name], code


def blank(frame: pd.DataFrame, codes: Codes) -> Blanked:
    """Make the codes of each column missing values; columns without a code are not copied."""
    counts: dict[tuple[str, str], int] = {}
    new = {}
    for name, marks in codes.items():
        if name not in frame.columns:
            continue
        series = frame[name]
        hits = _hits(series, marks)
        for code, rows in hits.items():
            counts[name, code] = int(np.count_nonzero(rows))
        if hits:
            new[name] = series.mask(np.logical_or.reduce(list(hits.values())))
    return Blanked(with_columns(frame, new) if new else frame, counts)


def _hits(series: pd.Series[Any], marks: Sequence[str]) -> dict[str, Any]:
    """Return the rows that hold each code, for the codes that occur."""
    numbers = {mark: as_number(mark) for mark in marks}
    if is_plain_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        hits = {mark: values == value for mark, value in numbers.items() if value is not None}
        return {mark: rows for mark, rows in hits.items() if rows.any()}
    try:
        codes, uniques = pd.factorize(series)
    except TypeError:
        # Lists and the like have no codes.
        return {}
    labels = [label_of(value) for value in uniques]
    hits = {}
    for mark, value in numbers.items():
        wanted = label_of(mark).casefold()
        same = [
            label.casefold() == wanted or (value is not None and as_number(label) == value)
            for label in labels
        ]
        if any(same):
            hits[mark] = np.array([*same, False])[codes]
    return hits


def rows_with(series: pd.Series[Any], value: str) -> Mask:
    """Return which rows hold a value, in any case if it is text."""
    return np.asarray(
        _hits(series, [value]).get(value, np.zeros(len(series), dtype=bool)), dtype=bool
    )


def na_option(name: str, codes: Iterable[object]) -> str:
    """Name the option that makes values of a column missing."""
    return option("na_values", [f"{name}={label_of(code)}" for code in codes])


def notes_on_codes(
    na_values: Sequence[str], columns: Sequence[str], counts: Mapping[tuple[str, str], int]
) -> list[str]:
    """Say which values were taken as missing, in how many rows, and which occur nowhere."""
    notes = []
    for code in dict.fromkeys(_split(item, columns)[1] for item in na_values):
        value = quoted(code) if as_number(code) is None else shown(code)
        rows = {name: n for (name, own), n in counts.items() if own == code}
        named = [f"{quoted(name)} ({plural(n, 'row')})" for name, n in rows.items()]
        if not named:
            notes.append(f"{value}, of {option('na_values')}, is in no cell that it is about.")
            continue
        more = f" and {len(named) - _NAMED} more columns" if len(named) > _NAMED else ""
        notes.append(f"{value} was taken as missing in {', '.join(named[:_NAMED])}{more}.")
    return notes


# Small codes are also plain counts and temperatures, so they must be frequent.
_SMALL = 10.0
_OFTEN, _FEWEST = 0.02, 3
# A frequent code is this share of the others' range away from them; a rare one, all of it.
_NEAR = 0.1
_MOST_NOTES = 5


@dataclass(frozen=True)
class Suspicion:
    """A number in a column that may be a code for missing."""

    column: str
    code: float
    rows: int
    """rows that hold it"""
    n_rows: int
    """rows of the column that hold a number"""
    low: float
    """least of the column's other numbers"""
    high: float
    """greatest of the column's other numbers"""
    is_outcome: bool = False

    @property
    def option(self) -> str:
        """The option that makes it missing."""
        return na_option(self.column, [self.code])

    @property
    def words(self) -> str:
        """What was found, as a sentence."""
        return (
            f"{'The outcome ' * self.is_outcome}{quoted(self.column)} holds {self.code:g} in "
            f"{self.rows:,} of {plural(self.n_rows, 'row')}, and {number(self.low)} to "
            f"{number(self.high)} elsewhere."
        )

    @property
    def do(self) -> str:
        """What to do about it, as a sentence."""
        counts = "these rows count as observed" if self.is_outcome else "it counts as a number"
        return f"If {self.code:g} means missing, pass {self.option}: as it is, {counts}."

    def __str__(self) -> str:
        return told(f"{self.words} {self.do}", keywords=True)


def find_suspicions(
    tallies: Mapping[str, NumberTally], outcome: str | None = None
) -> tuple[Suspicion, ...]:
    """Return the numbers that look like codes for missing, of the outcome first."""
    suspicions = [
        Suspicion(name, code, rows, tally.n, tally.rest_low, tally.rest_high, name == outcome)
        for name, tally in tallies.items()
        for code, rows in tally.codes.items()
        if _is_suspicious(tally, code, rows)
    ]
    return tuple(
        sorted(suspicions, key=lambda suspicion: (not suspicion.is_outcome, -suspicion.rows))
    )


def _is_suspicious(tally: NumberTally, code: float, rows: int) -> bool:
    low, high = tally.rest_low, tally.rest_high
    if not low <= high or low <= code <= high:
        return False
    away = low - code if code < low else code - high
    spread = high - low
    often = rows >= max(_FEWEST, _OFTEN * tally.n)
    if abs(code) < _SMALL:
        # Such as -1 among counts; a scale from -1 to 1 is not.
        return code < 0 <= low and often and high >= 5 and tally.integers
    return away > spread or (code < 0 <= low) or (often and away > _NEAR * spread)


def notes_on_suspicions(suspicions: tuple[Suspicion, ...]) -> list[str]:
    """Return a note on each of the gravest, and the number of the others."""
    notes = [str(suspicion) for suspicion in suspicions[:_MOST_NOTES]]
    if len(suspicions) > _MOST_NOTES:
        more = len(suspicions) - _MOST_NOTES
        notes.append(
            f"{plural(more, 'more such code')} may mean missing: see {option('na_values')}."
        )
    return notes
