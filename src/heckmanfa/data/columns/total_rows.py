"""Rows of a table that are not data: totals, and notes below the last row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.dropped_rows import LAST
from heckmanfa.data.columns.missing_codes import rows_with
from heckmanfa.data.columns.values import is_plain_number, levels_of, numbers_of, time_in
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

_TOTAL = re.compile(
    r"(?:grand |sub[- ]?)?totals?\b.*|(?:sum|overall|average|mean|totale|somme|moyenne|suma|"
    r"promedio|summe|gesamt|gesamtsumme|insgesamt|durchschnitt)\s*:?",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(?:source|sources|notes?|n\.b\.|quelle|anmerkung)\b.*|[*†©].*", re.IGNORECASE)
# Totals are in few rows, and notes in the last ones of a table with several columns.
_MOST, _SHARE, _MOST_NOTES, _WIDE = 3, 0.01, 10, 2
# A table with fewer rows says nothing about them; sums were rounded when they were written.
_FEWEST, _ROUNDED = 5, 1e-6


@dataclass(frozen=True)
class TotalRows:
    """Rows that look like totals, or like a note below the table."""

    column: str | None
    """the column that says so; None if the last row is a sum without a label"""
    label: str
    """what it holds there"""
    rows: int
    is_note: bool = False

    @property
    def item(self) -> str:
        """How `without_rows` knows them."""
        return LAST if self.column is None else f"{self.column}={self.label}"

    @property
    def words(self) -> str:
        """What was found, as a sentence."""
        if self.column is None:
            return "The last row holds the sums of the rows above it."
        start = f"{plural(self.rows, 'row')} with {quoted(self.label)} in {quoted(self.column)}"
        verb = "looks" if self.rows == 1 else "look"
        what = "a note below the table" if self.is_note else "a total"
        return f"{start} {verb} like {what}."

    @property
    def do(self) -> str:
        """What to do about it, as a sentence."""
        return f"Leave it out with {option('drop_rows', [self.item])}: as it is, it counts as data."

    def __str__(self) -> str:
        return told(f"{self.words} {self.do}", keywords=True)


def find_total_rows(frame: pd.DataFrame) -> tuple[TotalRows, ...]:
    """Return the rows of a table that look like totals or notes, each by what names it."""
    n_rows = len(frame)
    if n_rows < _FEWEST:
        return ()
    texts = [str(name) for name in frame.columns if is_words(frame[name])]
    # Titles of text columns repeat, so totals are looked for in distinct values only.
    totals = [total for name in texts for total in _labelled(frame, name)]
    totals += [note for note in _notes(frame, texts) if note not in totals]
    if not totals and _is_sum(_numbers(frame, []), n_rows - 1) >= _WIDE:
        totals.append(TotalRows(None, "", 1))
    # One row may be named by several columns.
    named: list[TotalRows] = []
    seen = np.zeros(n_rows, dtype=bool)
    for total in totals:
        rows = np.arange(n_rows) == n_rows - 1
        if total.column is not None:
            rows = rows_with(frame[total.column], total.label)
        if not seen[rows].all():
            named.append(total)
            seen |= rows
    return tuple(named)


def is_words(series: pd.Series[Any]) -> bool:
    """Whether a column holds text, if only in some rows."""
    # Text below numbers with marks makes a column of both.
    return not is_plain_number(series) and time_in(series) is None


def _labelled(frame: pd.DataFrame, name: str) -> list[TotalRows]:
    """Return rows in which a column says that they are totals, and numbers or their place agree."""
    try:
        levels = levels_of(frame[name])
    except TypeError:
        # Lists and other objects.
        return []
    counts, most = levels.counts(), max(_MOST, _SHARE * len(frame))
    totals = []
    for place, label in enumerate(levels.labels):
        if counts[place] > most or not _TOTAL.fullmatch(label):
            continue
        rows = np.flatnonzero(levels.codes == place)
        numbers = _numbers(frame, [name])
        is_last = int(rows[-1]) == len(frame) - 1
        if is_last or all(_is_sum(numbers, int(row)) or _is_outside(numbers, rows) for row in rows):
            totals.append(TotalRows(name, label, len(rows)))
    return totals


def _numbers(frame: pd.DataFrame, also: Sequence[str]) -> Floats:
    """Return the columns of numbers, and those of ``also`` that mostly spell them, (n, k)."""
    columns = [
        frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in frame.columns
        if is_plain_number(frame[name])
    ]
    columns += [numbers_of(frame[name])[0] for name in also]
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _is_sum(numbers: Floats, row: int) -> int:
    """Count the columns in which a row holds the sum of all others."""
    value = numbers[row]
    with np.errstate(invalid="ignore", over="ignore"):
        others = np.nansum(numbers, axis=0) - np.nan_to_num(value)
        distinct = np.nanmax(np.abs(numbers), axis=0, initial=0.0) > 0
        close = np.abs(value - others) <= _ROUNDED * np.abs(others)
    return int(np.count_nonzero(close & distinct & (others != 0)))


def _is_outside(numbers: Floats, rows: Any) -> bool:
    """Whether rows are beyond the range of all others in most of their numbers."""
    others = np.delete(numbers, rows, axis=0)
    known = ~np.isnan(numbers[rows]).any(axis=0) & ~np.isnan(others).all(axis=0)
    if not known.any():
        return False
    low, high = np.nanmin(others[:, known], axis=0), np.nanmax(others[:, known], axis=0)
    values = numbers[np.ix_(rows, known)]
    outside = ((values < low) | (values > high)).all(axis=0)
    return 2 * int(np.count_nonzero(outside)) > len(outside)


def _notes(frame: pd.DataFrame, texts: Sequence[str]) -> list[TotalRows]:
    """Return the last rows that hold only a text, or a source and little else."""
    if frame.shape[1] <= _WIDE or not texts:
        return []
    notes: list[TotalRows] = []
    for row in range(len(frame) - 1, max(len(frame) - 1 - _MOST_NOTES, 0), -1):
        cells = frame.iloc[row].dropna()
        name = next((str(name) for name in cells.index if name in texts), None)
        if name is None:
            break
        label = " ".join(str(cells[name]).split())
        alone = len(cells) == 1 and np.count_nonzero(rows_with(frame[name], label)) == 1
        if not alone and not (2 * len(cells) <= frame.shape[1] and _NOTE.fullmatch(label)):
            break
        if not _TOTAL.fullmatch(label):
            notes.append(TotalRows(name, label, 1, is_note=True))
    return notes
