"""Files and queries as one table, which need not fit in memory, and an encoding learned from it.

Counts of all rows, in one pass, decide what each column is, by the rules of `columns.kinds`. A
sample of rows, spread over the files, finds the columns that need no counting: text that
identifies rows, and dates.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import (
    ColumnKind,
    LearnedColumn,
    asked_for,
    kind_of_dates,
    learn_columns,
)
from heckmanfa.data.columns.tally import GapTally, NumberTally, Tally, TextTally
from heckmanfa.data.columns.values import is_plain_number
from heckmanfa.data.files.paths import PARQUET_ENDINGS, find_files, local_path
from heckmanfa.data.scan.arrow_columns import ROW_LABELS, decoded, kind_of, tidy_schema
from heckmanfa.data.scan.engines import Engine
from heckmanfa.data.scan.parquet_files import arrow
from heckmanfa.data.scan.parquet_rows import ParquetEngine
from heckmanfa.data.scan.places import ENDINGS, is_ipc, is_url
from heckmanfa.data.scan.scan_columns import (
    count_columns,
    declares_category,
    seen_in,
    stored_column,
)
from heckmanfa.data.scan.scanning import is_source, open_engine
from heckmanfa.errors import InputError
from heckmanfa.text.option_types import Missing
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import plural

GIGABYTE = 1e9
"""bytes"""


@dataclass(frozen=True)
class StoredTable:
    """One table that an engine gives in every pass: files, a query, or a dataset."""

    engine: Engine
    paths: tuple[Path, ...] = ()
    """its files on this machine, in the order of their rows"""

    @property
    def schema(self) -> Any:
        """pyarrow.Schema with tidy names."""
        return self.engine.schema

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return list(self.schema.names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.engine.count()

    @property
    def described(self) -> str:
        """What the rows are from, in a few words."""
        if isinstance(self.engine, ParquetEngine):
            return plural(len(self.engine.files), "Parquet file")
        return self.engine.described

    @property
    def format(self) -> str:
        """What the table is, in a word or two."""
        return "Parquet" if isinstance(self.engine, ParquetEngine) else self.engine.described

    def size(self, columns: Sequence[str]) -> int:
        """Estimate how many bytes some columns need in memory."""
        return 8 * self.n_rows * len(columns)

    def load(self, columns: Sequence[str]) -> pd.DataFrame:
        """Read some columns of all rows into memory."""
        return declared_frame(self.engine.load(columns), self.schema)


def declared_frame(tables: Iterable[Any], schema: Any) -> pd.DataFrame:
    """Join tables of Arrow into one frame, whose categories are those that a schema declares."""
    frame = as_frame([decode_dictionaries(table, schema) for table in tables])
    # Neither Parquet nor a dictionary without an order keeps the levels of numbers.
    plain = [name for name in frame.columns if is_plain_number(frame[name])]
    return frame.astype({name: "category" for name in plain if declares_category(schema, name)})


def arrow_frame(table: Any) -> pd.DataFrame:
    """Return a table of Arrow as a frame, without the row labels of pandas."""
    table = table.select(
        [place for place, name in enumerate(table.column_names) if not name.startswith(ROW_LABELS)]
    )
    names = table.column_names
    if len({*names}) < len(names):
        # Whoever reads the frame refuses this.
        return as_frame([table])
    schema = tidy_schema(table.schema, dict(zip(names, names, strict=True)))
    return declared_frame([table], schema)


def as_frame(tables: Sequence[Any]) -> pd.DataFrame:
    """Join tables of Arrow into one frame."""
    pa, _ = arrow()
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    frame: pd.DataFrame = whole.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame


def decode_dictionaries(table: Any, schema: Any = None) -> Any:
    """Return a table with plain text for declared levels, unless a schema declares them as well."""
    from pyarrow import types

    for index, field in enumerate(table.schema):
        declared = schema is not None and stored_column(schema, field.name).declared
        if types.is_dictionary(field.type) and not declared:
            values = decoded(table.column(index), field.name)
            table = table.set_column(index, field.name, values)
    return table


def find_stored(data: str) -> StoredTable | None:
    """Return the table in the Parquet or Arrow IPC files of a path, a folder, a pattern or a URL.

    None if it names a single file of another format, or one that does not exist.
    """
    if is_url(data):
        return StoredTable(open_engine(data))
    place = str(local_path(data))
    location = Path(place)
    if location.is_file() or not (location.is_dir() or glob.has_magic(place)):
        is_stored = location.suffix.lower() in PARQUET_ENDINGS or is_ipc(location)
        if not (location.is_file() and is_stored):
            return None
    paths = [file.path for file in find_files(place, ENDINGS)]
    for path in paths:
        if path.suffix.lower() not in ENDINGS:
            raise InputError(
                f"{shown(path)} is neither a Parquet nor an Arrow file: only such files can be "
                f"read as one table; name one file, or a pattern such as "
                f"{path.parent / '*.parquet'}"
            )
    return StoredTable(open_engine(place), tuple(paths))


def stored_source(source: Any) -> StoredTable | None:
    """Return the table of a lazy frame, a relation, a dataset or scanned rows; None of others."""
    return StoredTable(open_engine(source)) if is_source(source) else None


SAMPLE_ROWS = 200_000
# Comparing texts is slow, and this many are enough.
_SAMPLE_TEXTS = 20_000


@dataclass(frozen=True)
class Learned:
    """What a pass over all rows has found."""

    encoding: Encoding
    switches: frozenset[str]
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
    ignore_case: bool = False,
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
    columns = {
        name: stored_column(table.schema, name, asked.get(name), named=name in categorical)
        for name in features
    }
    known = {
        name: kind
        for name, column in columns.items()
        if (kind := column.kind_by_type()) is not None
    }
    texts = [
        name
        for name in features
        if kind_of(table.schema.field(name).type) == "text" and name not in {**known, **asked}
    ]
    known |= _settled(table.engine, texts) if texts else {}
    seen = seen_in(table.engine, [name for name in features if not columns[name].is_text])
    starts: dict[str, Callable[[], Tally]] = {
        name: partial(columns[name].start, seen=seen.get(name), capped=True)
        for name in features
        if name not in known
    }
    # An outcome or a weight that is declared as a category is still a number.
    columns |= {name: stored_column(table.schema, name, "number") for name in roles}
    counting = partial(NumberTally, few=True)
    starts |= {
        # The levels of an ordered category are ordered classes as well.
        name: partial(TextTally, declared=getattr(table.schema.field(name).type, "ordered", False))
        if columns[name].stored == "text"
        else counting
        for name in roles
    }
    starts |= dict.fromkeys(groups, GapTally)
    counted = count_columns(table.engine, columns, starts, tell)
    learned = [
        LearnedColumn(known[name], None) if name in known else columns[name].learned(counted[name])
        for name in features
    ]
    encoding = Encoding.of_columns(learned, missing, min_level_rows, ignore_case=ignore_case)
    used = [column for column in learned if column.kind.name in encoding.sources]
    return Learned(
        encoding=encoding,
        switches=frozenset(
            name
            for column in used
            if not (missing == "mean" and column.gaps)
            for name in encoding.columns_of(column.kind.name)
            if column.kind.kind == "category" or column.numbers.two_valued
        ),
        roles={name: counted[name] for name in (*roles, *groups)},
        numbers={
            column.kind.name: column.numbers for column in used if column.kind.kind == "number"
        },
    )


def _settled(engine: Engine, texts: Sequence[str]) -> dict[str, ColumnKind]:
    """Return the columns of text that a sample decides: identifiers and spelled dates."""
    sample = as_frame(list(map(decode_dictionaries, engine.sample(texts, SAMPLE_ROWS))))
    sample = sample.iloc[:: max(len(sample) // _SAMPLE_TEXTS, 1)]
    kinds = [column.kind for column in learn_columns(sample)]
    return {
        kind.name: kind
        for kind in kinds
        if kind.kind == "identifier" or kind == kind_of_dates(kind.name)
    }
