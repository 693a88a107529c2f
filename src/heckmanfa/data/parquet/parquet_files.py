"""Parquet files on disk: found, checked against each other, and read a batch of rows at a time.

Whatever goes wrong with a file becomes an error that names it: it is not there, it is damaged or
cut off, it changed between two passes, or its columns are not those of the others.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.columns.column_names import tidy_names
from heckmanfa.data.files.clashes import PARQUET_ENDINGS
from heckmanfa.data.files.outputs import existing
from heckmanfa.data.parquet.parquet_columns import kind_of, same_kind
from heckmanfa.errors import DataError, HeckmanfaError, InputError, needs_extra
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest, nearest_file

PathLike = str | os.PathLike[str]

# pandas keeps its row labels in columns of such names.
_ROW_LABELS = "__index_level_"
# A batch is large enough that decoding takes longer than opening, and small compared to memory.
_BATCH_ROWS, _BATCH_BYTES = 2**15, 2**24
# Bytes of each column read from disk at a time, fewer if columns are many.
_BUFFER, _LEAST_BUFFER, _ALL_BUFFERS = 2**16, 2**14, 2**24
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


class RowGroup(NamedTuple):
    """A row group that has rows."""

    file: StoredFile
    number: int
    """its position in the file"""
    rows: int
    start: int
    """its first row, counted over all files"""


@dataclass(frozen=True)
class Batches:
    """Which rows and columns of a row group to read, and in batches of how many rows."""

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


def find_files(path: PathLike | Sequence[PathLike]) -> list[Path]:
    """Return the files, folders and patterns named, as files in sorted order, each once."""
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not given:
        raise InputError("no file is named: pass a path, a folder, a pattern, or several of these")
    found: set[Path] = set()
    for item in given:
        found.update(_files_of(item))
    return sorted(found)


def _files_of(path: PathLike) -> list[Path]:
    place = Path(path)
    if place.is_dir():
        return _files_in(place)
    if place.exists():
        return [existing(place)]
    if glob.has_magic(str(place)):
        # Unlike a path's own method, it leaves hidden files alone.
        matched = [Path(match) for match in glob.glob(str(place), recursive=True)]  # noqa: PTH207
        found = [
            file for match in matched for file in (_files_in(match) if match.is_dir() else [match])
        ]
        if not found:
            raise InputError(
                f"there is no file {shown(path)}, and no file matches this pattern; check the "
                "folder and the name"
            )
        return found
    if not place.parent.is_dir():
        raise InputError(
            f"there is no file {shown(path)}: there is no folder {shown(place.parent)}"
        )
    names = [file.name for file in place.parent.iterdir()]
    raise InputError(f"there is no file {shown(path)}{nearest_file(place.name, names)}")


def _files_in(folder: Path) -> list[Path]:
    found = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in PARQUET_ENDINGS
        and file.is_file()
        # Programs give such names to files that are not data, or not yet.
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    ]
    if not found:
        raise InputError(
            f"the folder {shown(folder)} holds no file that ends in {' or '.join(PARQUET_ENDINGS)}"
        )
    return found


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
        raise DataError(
            f"{shown(path)} cannot be read as Parquet: it is damaged, cut off, or not what its "
            f"name says. Write it again, or leave it out. ({type(error).__name__}: {shown(error)})"
        ) from error


def tidy_columns(stored: Sequence[str], path: Path) -> dict[str, str]:
    """Return the columns of a file by their tidy names, without the row labels of pandas."""
    kept = [name for name in stored if not name.startswith(_ROW_LABELS)]
    return dict(zip(tidy_names(kept, path), kept, strict=True))


def row_groups(files: Sequence[StoredFile]) -> list[RowGroup]:
    """Return each row group that has rows, in the order of the rows."""
    groups, start = [], 0
    for file in files:
        for index, rows in enumerate(file.group_rows):
            if rows:
                groups.append(RowGroup(file, index, rows, start))
            start += rows
    return groups


def store_of(path: Path) -> tuple[StoredFile, Any]:
    """Return a file and its schema, under tidy names."""
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
        rows = tuple(footer.row_group(group).num_rows for group in range(footer.num_row_groups))
    names = tidy_columns(raw.names, path)
    schema = pa.schema([raw.field(stored).with_name(name) for name, stored in names.items()])
    return StoredFile(path, before.st_size, before.st_mtime_ns, rows, names), schema


def scan_files(
    path: PathLike | Sequence[PathLike],
    needed: Callable[[Any, Path], Sequence[str] | None] = lambda schema, path: None,
) -> tuple[list[StoredFile], Any]:
    """Return the files and their common schema; refuse files whose columns differ.

    ``needed`` gets the schema and the path of the first file, and returns the columns that
    matter, or None for all. The type of a column comes from the first file with values of it.
    """
    pa, _ = arrow()
    paths = find_files(path)
    stored, schema = store_of(paths[0])
    files, opening = [stored], (paths[0], schema)
    names = needed(schema, paths[0])
    # The file that decides the type of each column.
    deciding = dict.fromkeys(schema.names, opening)
    for place in paths[1:]:
        stored, schema = store_of(place)
        files.append(stored)
        for name in dict.fromkeys([*deciding, *schema.names]) if names is None else names:
            first = deciding.get(name, opening)
            _check_column(name, first, (place, schema))
            if _tells_more(schema.field(name).type, first[1].field(name).type):
                deciding[name] = (place, schema)
    if not any(sum(file.group_rows) for file in files):
        which = f"{shown(paths[0])} has" if len(paths) == 1 else f"all {len(paths)} files have"
        raise InputError(f"{which} names of columns but no rows")
    return files, pa.schema([found.field(name) for name, (_, found) in deciding.items()])


def _tells_more(stored: Any, known: Any) -> bool:
    """Whether a column's type in another file is more specific."""
    from pyarrow import types

    if kind_of(known) == "empty":
        return kind_of(stored) != "empty"
    # Categories declared in some files only have no order in the others.
    return types.is_dictionary(known) and not (
        types.is_dictionary(stored) or kind_of(stored) == "empty"
    )


def _check_column(name: str, first: tuple[Path, Any], other: tuple[Path, Any]) -> None:
    """Refuse a file in which a column is not as in the first file."""
    for here, there in ((first, other), (other, first)):
        if name not in here[1].names:
            raise DataError(
                f"{shown(here[0])} has no column {quoted(name)}, which {shown(there[0])} has; "
                f"the files must have the same columns{nearest(name, here[1].names)}"
            )
    mine, theirs = first[1].field(name).type, other[1].field(name).type
    if not same_kind(mine, theirs):
        raise DataError(
            f"column {quoted(name)} is {theirs} in {shown(other[0])}, but {mine} in "
            f"{shown(first[0])}; write it with one type"
        )


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
            columns = {footer.schema.column(k).path: k for k in range(footer.num_columns)}
            for group in range(footer.num_row_groups):
                row_group = footer.row_group(group)
                for name in list(open_):
                    column = columns.get(stored.stored_names[name])
                    known = None if column is None else _range(row_group.column(column))
                    if known is None:
                        open_.remove(name)
                        found.pop(name, None)
                    elif known[2]:
                        low, high, given = found.get(name, (np.inf, -np.inf, 0))
                        found[name] = min(low, known[0]), max(high, known[1]), given + known[2]
    return found


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
    _, pq = arrow()
    raw = [stored.stored_names[name] for name in columns]
    with _explain_failures(stored.path, scanned=True):
        table = pq.ParquetFile(stored.path).read(columns=raw).select(raw)
        # Otherwise text that is not UTF-8, for example, would fail at its first use.
        table.validate(full=True)
    return table.rename_columns(list(columns))


def read_batches(group: RowGroup, wanted: Batches) -> Generator[Any]:
    """Yield the record batches of a row group; memory holds little more than one at a time.

    Their columns are in the requested order, under tidy names.
    """
    _, pq = arrow()
    stored = group.file
    raw = [stored.stored_names[name] for name in wanted.columns]
    left = group.rows if wanted.head is None else wanted.head
    with _explain_failures(stored.path, scanned=True):
        now = stored.path.stat()
        if (now.st_size, now.st_mtime_ns) != (stored.size, stored.changed):
            raise DataError(
                f"{shown(stored.path)} changed since the rows were scanned; wait until it is "
                "complete, and scan again"
            )
        # With a memory map, a file that is cut off while it is read would crash the process.
        with pq.ParquetFile(
            stored.path,
            metadata=_footer(stored.path, stored.size, stored.changed),
            read_dictionary=[stored.stored_names[name] for name in wanted.levels],
            memory_map=False,
            pre_buffer=False,
            buffer_size=wanted.buffer(),
        ) as file:
            batches = file.iter_batches(
                wanted.batch_rows(),
                row_groups=[group.number],
                columns=raw,
                use_threads=wanted.threads,
            )
            for batch in whole_blocks(batches, wanted.block_rows):
                batch.validate(full=True)
                taken = batch.slice(0, left)
                left -= taken.num_rows
                yield taken.select(raw).rename_columns(list(wanted.columns))
                if left <= 0:
                    return
    if left > 0:
        raise DataError(
            f"{shown(stored.path)} ends {left} rows before its own count of them: it is damaged. "
            "Write it again, or leave it out."
        )


def whole_blocks(batches: Iterator[Any], block_rows: int) -> Iterator[Any]:
    """Join batches until each but the last has a multiple of ``block_rows`` rows.

    Readers may cut a batch short, which must not move the boundaries of blocks.
    """
    pa, _ = arrow()
    rest: list[Any] = []
    for batch in batches:
        rest.append(batch)
        count = sum(part.num_rows for part in rest)
        whole = count - count % block_rows
        if whole == 0:
            continue
        together = batch if len(rest) == 1 else pa.concat_batches(rest)
        yield together.slice(0, whole)
        rest = [together.slice(whole)] if whole < count else []
    if rest:
        yield pa.concat_batches(rest)
