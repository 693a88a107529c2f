"""Parquet files as one table, which need not fit in memory, and an encoding learned from it.

Counts of all rows, in one pass, decide what each column is, by the rules of `columns.kinds`. A
sample of rows, spread over the files, finds the columns that need no counting: text that
identifies rows, and dates.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrow.arrow_levels import MOST_SEEN, count_columns, stored_column
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
from heckmanfa.data.files.clashes import PARQUET_ENDINGS
from heckmanfa.data.files.found_files import find_files
from heckmanfa.data.parquet.parquet_engine import ParquetEngine
from heckmanfa.data.parquet.parquet_files import (
    Batches,
    StoredFile,
    arrow,
    read_batches,
    read_columns,
    row_groups,
    scan_files,
)
from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown

GIGABYTE = 1e9
"""bytes"""


@dataclass(frozen=True)
class StoredTable:
    """One table in one or more Parquet files."""

    files: tuple[StoredFile, ...]
    """in the order of their rows"""
    schema: Any
    """pyarrow.Schema with tidy names; the type of a column comes from the first file with values"""

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return list(self.schema.names)

    @property
    def engine(self) -> ParquetEngine:
        """What gives the rows in every pass."""
        return ParquetEngine(self.files, self.schema)

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [file.path for file in self.files]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(sum(file.group_rows) for file in self.files)

    @property
    def described(self) -> str:
        """The files in a few words."""
        count = len(self.files)
        return f"{count} Parquet file{'s' if count > 1 else ''}"

    def size(self, columns: Sequence[str]) -> int:
        """Estimate how many bytes some columns need in memory."""
        return 8 * self.n_rows * len(columns)

    def load(self, columns: Sequence[str]) -> pd.DataFrame:
        """Read some columns of all files into memory."""
        pa, _ = arrow()
        tables = (read_columns(file, columns) for file in self.files)
        parts = [decode_dictionaries(table, self.schema) for table in tables]
        whole = pa.concat_tables(parts, promote_options="permissive")
        frame: pd.DataFrame = whole.to_pandas(ignore_metadata=True, date_as_object=False)
        return frame


def decode_dictionaries(table: Any, schema: Any = None) -> Any:
    """Return a table with plain text for declared levels, unless a schema declares them as well."""
    from pyarrow import types

    for index, field in enumerate(table.schema):
        declared = schema is not None and types.is_dictionary(schema.field(field.name).type)
        if types.is_dictionary(field.type) and not declared:
            values = table.column(index).cast(field.type.value_type)
            table = table.set_column(index, field.name, values)
    return table


def find_stored(data: str) -> StoredTable | None:
    """Return the table in the Parquet files that a path, a folder or a pattern names.

    None if it names a single file of another format, or one that does not exist.
    """
    location = Path(data)
    is_single = location.is_file() or not (location.is_dir() or glob.has_magic(data))
    if is_single and (location.suffix.lower() not in PARQUET_ENDINGS or not location.is_file()):
        return None
    for path in (found.path for found in find_files(data)):
        if path.suffix.lower() not in PARQUET_ENDINGS:
            raise InputError(
                f"{shown(path)} is not a Parquet file: only such files can be read as one table; "
                f"name one file, or a pattern such as {path.parent / '*.parquet'}"
            )
    files, schema = scan_files(data)
    return StoredTable(tuple(files), schema)


SAMPLE_ROWS = 200_000
_SAMPLE_GROUPS = 256
# Comparing texts is slow, and this many are enough.
_SAMPLE_TEXTS = 20_000
_FIRST = 100
# Integers that count the rows take at most this many values per row.
_ROOM = 1 / 0.95


@dataclass(frozen=True)
class Learned:
    """What a pass over all rows has found."""

    encoding: Encoding
    binary: frozenset[str]
    """features that hold only 0 and 1"""
    roles: dict[str, Tally]
    """counts of columns that are not features"""
    numbers: dict[str, NumberTally]
    """counts of the features that are numbers"""


def learn_streamed(
    table: StoredTable,
    features: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    missing: Missing = "drop",
    min_level_rows: int = 0,
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
    counting = partial(NumberTally, few=True)
    starts |= {name: TextTally if name in texts else counting for name in roles}
    starts |= dict.fromkeys(groups, GapTally)
    plain = [name for name in starts if name in texts and not columns[name].declared]
    counted = count_columns(table.engine, starts, plain, tell)
    learned = [_learned(columns[name], known.get(name), counted.get(name)) for name in features]
    encoding = Encoding.of_columns(learned, missing, min_level_rows)
    used = [column for column in learned if column.kind.name in encoding.sources]
    return Learned(
        encoding=encoding,
        binary=frozenset(
            name
            for column in used
            if not (missing == "mean" and column.gaps)
            for name in encoding.columns_of(column.kind.name)
            if column.kind.kind == "category" or column.numbers.binary
        ),
        roles={name: counted[name] for name in (*roles, *groups)},
        numbers={
            column.kind.name: column.numbers for column in used if column.kind.kind == "number"
        },
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
