"""Rows that are not data, such as totals and notes below a table, which the user leaves out.

The user names them by a column and what it holds there, as in ``region=Total``, or as the last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckmanfa.data.columns.missing_codes import rows_with, split_item
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

LAST = "last"
"""names the last row that is not empty"""


@dataclass(frozen=True, eq=False)
class Kept:
    """The rows of a table that are data."""

    frame: pd.DataFrame
    counts: dict[str, int]
    """rows left out, by what names them; a row may have several names"""
    n_dropped: int = 0
    """all rows left out"""


def columns_dropped_by(items: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns that name rows to leave out."""
    pairs = [_split(item, columns) for item in items]
    return list(dict.fromkeys(pair[0] for pair in pairs if pair is not None))


def _split(item: str, columns: Sequence[str]) -> tuple[str, str] | None:
    """Return the column and the value of an item; None for the last row."""
    pair = split_item(item, columns, option("drop_rows"))
    if pair is None and item.strip().lower() == LAST:
        return None
    if pair is None or not pair[1]:
        raise InputError(
            f"{option('drop_rows')} names a column and what it holds, as in region=Total, or "
            f"{LAST}; got {quoted(item)}"
        )
    return pair


def without_rows(frame: pd.DataFrame, items: Sequence[str]) -> Kept:
    """Leave out the rows that items name; all of them are found before any is left out."""
    if not items:
        return Kept(frame, {})
    columns = [str(name) for name in frame.columns]
    out = np.zeros(len(frame), dtype=bool)
    counts = {}
    for item in items:
        pair = _split(item, columns)
        if pair is None:
            filled = np.flatnonzero(frame.notna().any(axis="columns").to_numpy())
            rows = np.isin(np.arange(len(frame)), filled[-1:])
        else:
            name, value = pair
            rows = rows_with(frame.iloc[:, columns.index(name)], value)
        counts[item] = int(np.count_nonzero(rows))
        out |= rows
    if not out.any():
        return Kept(frame, counts)
    # Text below numbers made a column of text, whose other cells may be numbers again.
    kept = frame[~out].reset_index(drop=True).infer_objects()
    return Kept(kept, counts, int(np.count_nonzero(out)))


def notes_on_rows(counts: Mapping[str, int]) -> list[str]:
    """Say how many rows were left out, and what names none."""
    notes = []
    for item, n in counts.items():
        if n == 0:
            notes.append(f"{quoted(item)}, of {option('drop_rows')}, is true of no row.")
        elif item.strip().lower() == LAST:
            notes.append(f"{option('drop_rows', [item])} leaves out the last row.")
        else:
            notes.append(f"{option('drop_rows', [item])} leaves out {plural(n, 'row')}.")
    return notes
