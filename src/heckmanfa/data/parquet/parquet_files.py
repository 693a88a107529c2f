"""Parquet files on disk: found, checked against each other, and read a batch of rows at a time.

Whatever goes wrong with a file becomes an error that names it: it is not there, it is damaged or
cut off, it changed between two passes, or its columns are not those of the others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.arrow.arrow_columns import decoded, is_category, kind_of
from heckmanfa.data.arrow.common_schema import Needed, common_schema, take_all
from heckmanfa.data.arrow.engines import tidy_columns, tidy_schema, whole_blocks
from heckmanfa.data.files.clashes import PARQUET_ENDINGS
from heckmanfa.data.files.found_files import PathLike, find_files, refuse_other_format
from heckmanfa.data.files.hive_folders import Value, typed_keys
from heckmanfa.data.files.sizes import refuse_inflated
from heckmanfa.errors import DataError, HeckmanfaError, InputError, needs_extra
from heckmanfa.text.printable import shown

Constant = tuple[Value, Any]
"""the one value of a column in a file, and its Arrow type"""

# A batch is large enough that decoding takes longer than opening, and small compared to memory.
_BATCH_ROWS, _BATCH_BYTES = 2**15, 2**24
# Smaller row groups are merged up to this number of rows: each costs as much as some thousand rows.
_PART_ROWS = 2**15
# Bytes of a file that is read at once, in less time than column by column.
_SMALL_FILE = 2**21
# Bytes of each column read from disk at a time, fewer if columns are many.
_BUFFER, _LEAST_BUFFER, _ALL_BUFFERS = 2**16, 2**14, 2**24
# Texts of a row group that are bounded by this need no care.
_FEW_TEXTS = 2**28
# Texts that repeat the beginning of the one before are decoded this many at a time, and may have
# these bytes on average.
_PREFIXED_ROWS, _PREFIXED_BYTES = 64, 2**16
# Footers of the last files are kept: a file is opened once for each of its row groups.
_FOOTERS = 8


@dataclass(frozen=True)
class StoredFile:
    """A file as it was when it was scanned."""

    path: Path
    size: int
    changed: int
    """when it was written, in nanoseconds"""
    group_rows: tuple[int, ...]
    """rows of each row group"""
    stored_names: dict[str, str]
    """the name of each column in the file, by its tidy name"""
    constants: dict[str, Constant] = field(default_factory=dict)
    """value and Arrow type of the columns that its Hive partitions give it"""
    types: Any = None
    """Arrow types of its columns by tidy name, those of its partitions included"""


class Run(NamedTuple):
    """Adjacent row groups of a file."""

    file: StoredFile
    groups: tuple[int, ...]
    """their positions in the file"""
    rows: int


class FilePart(NamedTuple):
    """Adjacent row groups that are read as one: a large one, or many small ones of any files."""

    runs: tuple[Run, ...]
    rows: int
    start: int
    """its first row, counted over all files"""

    def place(self, row: int) -> str:
        """Say which row of which file one of its rows is."""
        for run in self.runs:
            if row < run.rows:
                break
            row -= run.rows
        before = sum(run.file.group_rows[: run.groups[0]])
        return f"{shown(run.file.path)}, from row {before + row + 1} on"


@dataclass(frozen=True)
class Batches:
    """Which rows and columns of a part to read, and in batches of how many rows."""

    columns: tuple[str, ...]
    """tidy names"""
    levels: tuple[str, ...]
    """columns to read as distinct values with a code per row"""
    block_rows: int
    """the rows of every batch but the last are a multiple of this"""
    head: int | None
    """number of first rows to read; None reads all"""
    threads: bool
    """whether columns are decoded on several threads"""

    def batch_rows(self) -> int:
        """Rows to decode at a time."""
        fitting = min(_BATCH_BYTES // (8 * len(self.columns)), _BATCH_ROWS)
        rows = max(fitting // self.block_rows, 1) * self.block_rows
        return rows if self.head is None else min(rows, self.head)

    def buffer(self) -> int:
        """Bytes of a column to read from disk at a time."""
        return max(min(_BUFFER, _ALL_BUFFERS // len(self.columns)), _LEAST_BUFFER)


def arrow(files: str = "Parquet") -> tuple[ModuleType, ModuleType]:
    """Return pyarrow and its Parquet module; refuse ``files`` if they are not installed."""
    with needs_extra(f"{files} files need pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    return pa, pq


@contextmanager
def _explain_failures(path: Path, *, scanned: bool) -> Iterator[None]:
    """Turn any failure to read a file into an error that says what to do."""
    pa, _ = arrow()
    try:
        yield
    except HeckmanfaError:
        raise
    except FileNotFoundError as error:
        said = "is gone since the rows were scanned: put it back" if scanned else "is not there"
        raise DataError(f"{shown(path)} {said}, or scan again without it") from error
    except MemoryError as error:
        if not isinstance(error, pa.ArrowException):
            raise
        raise DataError(
            f"there is not enough memory to read a part of {shown(path)}: it is damaged, or holds "
            "very long texts"
        ) from error
    # A damaged file can make a reader fail in any way.
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{shown(path)} cannot be read: {error.strerror}") from error
        if not scanned and path.suffix.lower() not in PARQUET_ENDINGS:
            raise refuse_other_format(path) from error
        raise DataError(
            f"{shown(path)} cannot be read as Parquet: it is damaged, cut off, or not what its "
            f"name says. Write it again, or leave it out. ({type(error).__name__}: {shown(error)})"
        ) from error


def file_parts(files: Sequence[StoredFile], most: int = _PART_ROWS) -> list[FilePart]:
    """Return the parts that passes read, in the order of the rows.

    Row groups are merged up to ``most`` rows, of other files too if these store their columns in
    the same types. A part depends on nothing but the files.
    """
    parts: list[FilePart] = []
    start = 0
    for file in files:
        for number, rows in enumerate(file.group_rows):
            if rows:
                last = parts[-1] if parts else None
                if last is not None and _fits(last, file, rows, most):
                    parts[-1] = _extended(last, file, number, rows)
                else:
                    parts.append(FilePart((Run(file, (number,), rows),), rows, start))
            start += rows
    return parts


def _fits(part: FilePart, file: StoredFile, rows: int, most: int) -> bool:
    last = part.runs[-1].file
    same = last is file or last.types == file.types
    return same and part.rows + rows <= most


def _extended(part: FilePart, file: StoredFile, number: int, rows: int) -> FilePart:
    *before, last = part.runs
    if last.file is file:
        runs = (*before, Run(file, (*last.groups, number), last.rows + rows))
    else:
        runs = (*part.runs, Run(file, (number,), rows))
    return FilePart(runs, part.rows + rows, part.start)


def store_of(
    path: Path, partitions: Mapping[str, Constant] | None = None
) -> tuple[StoredFile, Any]:
    """Return a file and its schema, under tidy names.

    ``partitions`` are the columns of its Hive partitions; one that the file itself has under such
    a name is read from the file.
    """
    pa, pq = arrow()
    with _explain_failures(path, scanned=False):
        before = path.stat()
        if before.st_size == 0:
            raise DataError(
                f"{shown(path)} is empty (0 bytes), which no Parquet file is: it was cut off. "
                "Write it again, or leave it out."
            )
        with pq.ParquetFile(path, pre_buffer=False) as file:
            footer, raw = file.metadata, file.schema_arrow
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        refuse_inflated(path, max((group.total_byte_size for group in groups), default=0))
        rows = tuple(group.num_rows for group in groups)
    names = tidy_columns(raw.names, path)
    schema = tidy_schema(raw, names)
    constants = {name: own for name, own in (partitions or {}).items() if name not in names}
    for name, (_, stored) in constants.items():
        schema = schema.append(pa.field(name, stored))
    types = dict(zip(schema.names, schema.types, strict=True))
    stored = StoredFile(path, before.st_size, before.st_mtime_ns, rows, names, constants, types)
    return stored, schema


def partition_columns(files: Sequence[Mapping[str, str | None]]) -> list[dict[str, Constant]]:
    """Return the columns that Hive partitions give to each file, from their values as text."""
    pa, _ = arrow()
    typed = typed_keys(files)
    types = {
        name: pa.int32() if isinstance(value, int) else pa.string()
        for keys in typed
        for name, value in keys.items()
        if value is not None
    }
    return [
        {name: (value, types.get(name, pa.null())) for name, value in keys.items()}
        for keys in typed
    ]


def scan_files(
    path: PathLike | Sequence[PathLike], needed: Needed = take_all
) -> tuple[list[StoredFile], Any]:
    """Return the files and their common schema; refuse files whose columns differ.

    ``needed`` gets the schema and the path of the first file, and returns the columns that
    matter, or None for all.
    """
    arrow()
    found = find_files(path)
    files: list[StoredFile] = []

    def schemas() -> Iterator[tuple[Path, Any]]:
        for file, keys in zip(found, partition_columns([file.keys for file in found]), strict=True):
            stored, schema = store_of(file.path, keys)
            files.append(stored)
            yield file.path, schema

    schema = common_schema(schemas(), needed)
    if not any(sum(file.group_rows) for file in files):
        which = f"all {len(files)} files have" if len(files) > 1 else f"{shown(files[0].path)} has"
        raise InputError(f"{which} names of columns but no rows")
    return files, schema


@lru_cache(maxsize=_FOOTERS)
def _footer(path: Path, size: int, changed: int) -> Any:
    """Parse the footer of a file, which says where everything is."""
    _, pq = arrow()
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return file.metadata


def value_ranges(
    files: Sequence[StoredFile], names: Sequence[str]
) -> dict[str, tuple[float, float, int]]:
    """Return the minimum, maximum and count of numbers that hardly repeat; no row is read.

    Columns without statistics in the footers are left out, and columns with fewer integers
    between the ends of a row group than half of its rows.
    """
    found: dict[str, tuple[float, float, int]] = {}
    open_ = list(names)
    for stored in files:
        if not open_:
            break
        with _explain_failures(stored.path, scanned=True):
            footer = _footer(stored.path, stored.size, stored.changed)
            columns = _leaves(stored.path, stored.size, stored.changed)
            for group in range(footer.num_row_groups):
                row_group = footer.row_group(group)
                for name in list(open_):
                    column = columns.get(stored.stored_names.get(name, ""))
                    known = None if column is None else _range(row_group.column(column[0]))
                    if known is None:
                        open_.remove(name)
                        found.pop(name, None)
                    elif known[2]:
                        low, high, given = found.get(name, (np.inf, -np.inf, 0))
                        found[name] = min(low, known[0]), max(high, known[1]), given + known[2]
    return found


@lru_cache(maxsize=_FOOTERS)
def _leaves(path: Path, size: int, changed: int) -> dict[str, tuple[int, Any]]:
    """Return the position of each column among all that a file stores, and its Arrow type.

    The file's own names are paths: a column called a.b and the field b of a struct a share one.
    """
    places, start = {}, 0
    for column in _footer(path, size, changed).schema.to_arrow_schema():
        places[column.name] = start, column.type
        start += _n_leaves(column.type)
    return places


def _n_leaves(stored: Any) -> int:
    parts = [stored.field(k).type for k in range(stored.num_fields)]
    return sum(map(_n_leaves, parts)) if parts else 1


def _range(column: Any) -> tuple[float, float, int] | None:
    """Return the ends and the count of a row group's column, if it may identify rows."""
    figures = column.statistics
    if figures is None or not figures.has_null_count:
        return None
    given = column.num_values - figures.null_count
    if given == 0:
        return 0.0, 0.0, 0
    if not figures.has_min_max or isinstance(figures.min, bool | str | bytes):
        return None
    try:
        low, high = float(figures.min), float(figures.max)
    except (TypeError, ValueError):
        return None
    return (low, high, given) if high - low + 1 >= given / 2 else None


def read_columns(stored: StoredFile, columns: Sequence[str]) -> Any:
    """Return some columns of a file as a table, in the requested order, under tidy names."""
    pa, pq = arrow()
    raw = _stored(stored, columns)
    with _explain_failures(stored.path, scanned=True):
        groups = range(len(stored.group_rows))
        texts = _texts(stored, groups, raw, ())
        with pq.ParquetFile(stored.path, read_dictionary=texts.shared) as file:
            if texts.prefixed:
                batches = _bounded(file.iter_batches(_PREFIXED_ROWS, columns=raw), texts)
                table = pa.Table.from_batches(batches)
            else:
                table = file.read(columns=raw)
        # Otherwise text that is not UTF-8, for example, would fail at its first use.
        table.validate(full=True)
        table = _unshared(table, texts)
    return pa.Table.from_arrays(_with_constants(stored, table, columns), names=list(columns))


class _Texts(NamedTuple):
    """Columns of text whose values may take far more memory than they take in the file."""

    shared: list[str]
    """those to read as distinct values with a code per row"""
    plain: list[str]
    """those of them to decode afterwards"""
    prefixed: list[str]
    """those stored as differences to the value before"""


def _texts(
    stored: StoredFile, groups: Iterable[int], raw: Sequence[str], levels: Sequence[str]
) -> _Texts:
    """Find the columns of text that need care; ``levels`` are to be read as distinct values."""
    footer = _footer(stored.path, stored.size, stored.changed)
    places = _leaves(stored.path, stored.size, stored.changed)
    found = _Texts([], [], [])
    for name in raw:
        place, kind = places[name]
        if kind_of(kind) != "text":
            continue
        chunks = [footer.row_group(group).column(place) for group in groups]
        most = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
        if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):
            # pyarrow cannot read them as distinct values.
            if most > _FEW_TEXTS:
                found.prefixed.append(name)
        elif name in levels:
            found.shared.append(name)
        elif most > _FEW_TEXTS and not is_category(kind):
            found.shared.append(name)
            found.plain.append(name)
    return found


def _bounded(batches: Iterator[Any], texts: _Texts) -> Iterator[Any]:
    """Refuse batches whose texts are too long on average."""
    for batch in batches:
        for name in texts.prefixed:
            if batch.column(name).nbytes > _PREFIXED_BYTES * _PREFIXED_ROWS:
                raise DataError(
                    f"column {shown(name)} holds texts of more than {_PREFIXED_BYTES:,} bytes on "
                    "average: leave the column out, or make its texts shorter"
                )
        yield batch


def _unshared(rows: Any, texts: _Texts) -> Any:
    """Return a table or a batch with plain text where it was read as distinct values."""
    for name in texts.plain:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, decoded(rows.column(place), name))
    return rows


def _stored(stored: StoredFile, columns: Sequence[str]) -> list[str]:
    """Return the names, in the file, of the columns that are to be read from it."""
    return [stored.stored_names[name] for name in columns if name not in stored.constants]


def _with_constants(stored: StoredFile, rows: Any, columns: Sequence[str]) -> list[Any]:
    """Return columns of a table or a batch of a file, and those of its partitions among them."""
    pa, _ = arrow()
    return [
        pa.repeat(pa.scalar(*stored.constants[name]), rows.num_rows)
        if name in stored.constants
        else rows.column(stored.stored_names[name])
        for name in columns
    ]


def read_batches(part: FilePart, wanted: Batches) -> Generator[Any]:
    """Yield the record batches of a part; memory holds little more than one at a time.

    Their columns are in the requested order, under tidy names. So many small row groups are joined
    that batches are as large as those of a large one.
    """
    left = part.rows if wanted.head is None else wanted.head
    several = wanted.batch_rows() if len(part.runs) > 1 or len(part.runs[0].groups) > 1 else 1
    size = max(several // wanted.block_rows, 1) * wanted.block_rows
    batches = (batch for run in part.runs for batch in _run_batches(run, wanted))
    with closing(batches):
        for batch in whole_blocks(batches, size):
            taken = batch.slice(0, left)
            left -= taken.num_rows
            yield taken
            if left <= 0:
                return


def _run_batches(run: Run, wanted: Batches) -> Generator[Any]:
    """Yield the record batches of row groups of a file, as they are stored."""
    pa, pq = arrow()
    stored = run.file
    raw = _stored(stored, wanted.columns)
    names = list(wanted.columns)
    left = run.rows
    with _explain_failures(stored.path, scanned=True):
        now = stored.path.stat()
        if (now.st_size, now.st_mtime_ns) != (stored.size, stored.changed):
            raise DataError(
                f"{shown(stored.path)} changed since the rows were scanned; wait until it is "
                "complete, and scan again"
            )
        texts = _texts(stored, run.groups, raw, _stored(stored, wanted.levels))
        whole = len(run.groups) == len(stored.group_rows)
        # With a memory map, a file that is cut off while it is read would crash the process.
        small = whole and stored.size <= _SMALL_FILE
        with pq.ParquetFile(
            pa.BufferReader(stored.path.read_bytes()) if small else stored.path,
            metadata=_footer(stored.path, stored.size, stored.changed),
            read_dictionary=texts.shared,
            memory_map=False,
            pre_buffer=False,
            buffer_size=wanted.buffer(),
        ) as file:
            batches = file.iter_batches(
                _PREFIXED_ROWS if texts.prefixed else wanted.batch_rows(),
                row_groups=list(run.groups),
                columns=raw,
                use_threads=wanted.threads,
            )
            for found in _bounded(batches, texts):
                found.validate(full=True)
                batch = _unshared(found, texts)
                left -= batch.num_rows
                yield pa.RecordBatch.from_arrays(_with_constants(stored, batch, names), names=names)
    if left > 0:
        raise DataError(
            f"{shown(stored.path)} ends {left} rows before its own count of them: it is damaged. "
            "Write it again, or leave it out."
        )
