"""An encoding learned from rows that are not in memory, in one pass over them.

Counts of all rows decide what each column is, by the rules of `columns.kinds`. A sample of rows,
spread over the files, finds the columns that need no counting: text that tells rows apart, and
dates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.encoding import Encoding, Missing
from heckmanfa.data.columns.kinds import (
    Column,
    Kind,
    LearnedColumn,
    asked_for,
    kind_of_dates,
    learn_columns,
)
from heckmanfa.data.columns.tally import GapTally, NumberTally, Tally, TextTally
from heckmanfa.data.parquet.parquet_files import Batches, arrow, read_batches, row_groups
from heckmanfa.data.parquet.parquet_levels import MOST_SEEN, count_columns, stored_column
from heckmanfa.tables.stored import StoredTable, decode_dictionaries

SAMPLE_ROWS = 200_000
_SAMPLE_GROUPS = 256
# Comparing texts takes long, and so many are enough.
_SAMPLE_TEXTS = 20_000
_FIRST = 100
# Integers that count the rows take at most so many values per row.
_ROOM = 1 / 0.95


@dataclass(frozen=True)
class Learned:
    """What a pass over all rows has found."""

    encoding: Encoding
    binary: frozenset[str]
    """features that hold only 0 and 1"""
    roles: dict[str, Tally]
    """counts of columns that are not features"""


def learn_streamed(
    table: StoredTable,
    features: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    missing: Missing = "drop",
    roles: Sequence[str] = (),
    groups: Sequence[str] = (),
    tell: Callable[[str], None] = lambda words: None,
) -> Learned:
    """Learn what `Encoding.learn` would from the same rows in memory.

    ``categorical`` and ``numeric`` columns that are not among ``features`` are ignored. ``roles``
    and ``groups`` are other columns to count in the same pass; of groups, only the missing values.
    ``tell`` gets a few words about progress.
    """
    asked = asked_for(categorical, numeric)
    columns = {name: stored_column(table.schema, name, asked.get(name)) for name in features}
    known = {
        name: kind
        for name, column in columns.items()
        if (kind := column.kind_by_type()) is not None
    }
    open_ = [name for name in features if name not in known]
    sample = _sample(table, open_) if open_ else pd.DataFrame()
    known |= _settled(
        sample[[name for name in open_ if columns[name].stored == "text" and name not in asked]]
    )
    starts: dict[str, Callable[[], Tally]] = {
        name: _starter(columns[name], sample[name], table.n_rows)
        for name in open_
        if name not in known
    }
    columns |= {name: stored_column(table.schema, name) for name in roles}
    texts = {name for name, column in columns.items() if column.stored == "text"}
    starts |= {name: TextTally if name in texts else NumberTally for name in roles}
    starts |= dict.fromkeys(groups, GapTally)
    plain = [name for name in starts if name in texts and not columns[name].declared]
    counted = count_columns(table.files, starts, plain, tell)
    learned = [_learned(columns[name], known.get(name), counted.get(name)) for name in features]
    encoding = Encoding.of_columns(learned, missing)
    return Learned(
        encoding=encoding,
        binary=frozenset(
            name
            for column in learned
            if column.kind.is_feature and not (missing == "mean" and column.gaps)
            for name in encoding.columns_of(column.kind.name)
            if column.kind.kind == "category" or column.numbers.binary
        ),
        roles={name: counted[name] for name in (*roles, *groups)},
    )


def _learned(column: Column, kind: Kind | None, tally: Tally | None) -> LearnedColumn:
    if kind is not None:
        return LearnedColumn(column, kind, None)
    assert isinstance(tally, NumberTally | TextTally)
    return LearnedColumn(column, column.kind(tally), tally)


def _sample(table: StoredTable, names: Sequence[str]) -> pd.DataFrame:
    """Read the first rows of row groups that are spread over all files."""
    pa, _ = arrow()
    groups = row_groups(table.files)
    groups = groups[:: -(-len(groups) // _SAMPLE_GROUPS)]
    share = min(SAMPLE_ROWS / sum(group.rows for group in groups), 1.0)
    parts: list[Any] = []
    for group in groups:
        wanted = Batches(tuple(names), (), 1, max(int(share * group.rows), 1), threads=True)
        for batch in read_batches(group, wanted):
            parts.append(decode_dictionaries(pa.Table.from_batches([batch])))
    whole = pa.concat_tables(parts, promote_options="permissive")
    frame: pd.DataFrame = whole.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame


def _settled(sample: pd.DataFrame) -> dict[str, Kind]:
    """Return the columns of text that a sample decides: identifiers and spelled dates."""
    sample = sample.iloc[:: max(len(sample) // _SAMPLE_TEXTS, 1)]
    kinds = [column.kind for column in learn_columns(sample)]
    return {
        kind.name: kind
        for kind in kinds
        if kind.kind == "identifier" or kind == kind_of_dates(kind.name)
    }


def _starter(column: Column, sample: pd.Series[Any], n_rows: int) -> Callable[[], Tally]:
    """Return how to start counting a column, given a sample of it."""
    room = int(n_rows * _ROOM) + 2
    may_count = room <= MOST_SEEN and _may_count_rows(sample, room)
    # The row groups of all files share it.
    seen = np.zeros(room, dtype=bool) if may_count else None
    return lambda: column.start(seen=seen)


def _may_count_rows(sample: pd.Series[Any], room: int) -> bool:
    """Whether a column may count the rows: integers that hardly repeat."""
    if pd.to_numeric(sample.dropna().iloc[:_FIRST], errors="coerce").isna().any():
        return False
    values = pd.to_numeric(sample, errors="coerce").dropna().to_numpy(dtype=np.float64)
    if not len(values) or values.min() < 0 or values.max() >= room:
        return False
    return bool(np.all(values == np.floor(values))) and len(np.unique(values)) > len(values) / 2
