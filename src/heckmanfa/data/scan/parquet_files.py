"""Parquet files on disk: found, checked against each other, and described by their footers.

Whatever goes wrong with a file becomes an error that names it: it is not there, it is damaged or
cut off, it changed between two passes, or its columns are not those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from heckmanfa.data.files.paths import (
    PARQUET_ENDINGS,
    FoundFile,
    Value,
    refuse_other_format,
    typed_keys,
)
from heckmanfa.data.files.sizes import refuse_inflated
from heckmanfa.data.scan.arrow_columns import (
    Needed,
    common_schema,
    kind_of,
    take_all,
    tidy_columns,
    tidy_schema,
)
from heckmanfa.data.scan.engines import NO_RANGE, Range, joined_range
from heckmanfa.errors import DataError, HeckmanfaError, InputError, needs_extra
from heckmanfa.text.printable import shown

Constant = tuple[Value, Any]
"""the one value of a column in a file, and its Arrow type"""

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
    texts: frozenset[str] = frozenset()
    """columns that may be stored as text, by their names in the file"""


def arrow(files: str = "Parquet") -> tuple[ModuleType, ModuleType]:
    """Return pyarrow and its Parquet module; refuse ``files`` if they are not installed."""
    with needs_extra(f"{files} files need pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    return pa, pq


@contextmanager
def explain_failures(path: Path, *, scanned: bool) -> Iterator[None]:
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


def store_of(
    path: Path, partitions: Mapping[str, Constant] | None = None
) -> tuple[StoredFile, Any]:
    """Return a file and its schema, under tidy names.

    ``partitions`` are the columns of its Hive partitions; one that the file itself has under such
    a name is read from the file.
    """
    pa, pq = arrow()
    with explain_failures(path, scanned=False):
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
    schema = tidy_schema(raw, names, what=path)
    constants = {name: own for name, own in (partitions or {}).items() if name not in names}
    for name, (_, type_) in constants.items():
        schema = schema.append(pa.field(name, type_))
    types = dict(zip(schema.names, schema.types, strict=True))
    texts = frozenset(
        stored for name, stored in names.items() if kind_of(types[name]) in ("text", "other")
    )
    changed = before.st_mtime_ns
    return StoredFile(path, before.st_size, changed, rows, names, constants, types, texts), schema


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
    located: Sequence[FoundFile], needed: Needed = take_all
) -> tuple[list[StoredFile], Any]:
    """Return files and their common schema; refuse files whose columns differ.

    ``needed`` gets the schema and the path of the first file, and returns the columns that
    matter, or None for all.
    """
    files: list[StoredFile] = []

    def schemas() -> Iterator[tuple[Path, Any]]:
        for file, keys in zip(
            located, partition_columns([file.keys for file in located]), strict=True
        ):
            stored, schema = store_of(file.path, keys)
            files.append(stored)
            yield file.path, schema

    schema = common_schema(schemas(), needed)
    if not any(sum(file.group_rows) for file in files):
        which = f"all {len(files)} files have" if len(files) > 1 else f"{shown(files[0].path)} has"
        raise InputError(f"{which} names of columns but no rows")
    return files, schema


@lru_cache(maxsize=_FOOTERS)
def footer_of(path: Path, size: int, changed: int) -> Any:
    """Parse the footer of a file, which says where everything is."""
    _, pq = arrow()
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return file.metadata


def value_ranges(
    files: Sequence[StoredFile], names: Sequence[str]
) -> tuple[dict[str, Range], list[str]]:
    """Return the ranges of numbers that hardly repeat, and columns without statistics.

    No row is read. Columns with fewer integers between the ends of a row group than half of its
    rows are left out.
    """
    ranges: dict[str, Range] = {}
    unknown: list[str] = []
    undecided = list(names)
    for stored in files:
        if not undecided:
            break
        with explain_failures(stored.path, scanned=True):
            footer = footer_of(stored.path, stored.size, stored.changed)
            leaves = leaves_of(stored.path, stored.size, stored.changed)
            groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
            for name, group in product(list(undecided), groups):
                if name not in undecided:
                    continue
                leaf = leaves.get(stored.stored_names.get(name, ""))
                statistics = None if leaf is None else group.column(leaf[0]).statistics
                if leaf is not None and (statistics is None or not statistics.has_null_count):
                    unknown.append(name)
                extent = _range(statistics, group.num_rows)
                if extent is None:
                    undecided.remove(name)
                    ranges.pop(name, None)
                else:
                    ranges[name] = joined_range(ranges.get(name), extent)
    return {name: extent for name, extent in ranges.items() if extent[2]}, unknown


@lru_cache(maxsize=_FOOTERS)
def leaves_of(path: Path, size: int, changed: int) -> dict[str, tuple[int, Any]]:
    """Return the position of each column among all that a file stores, and its Arrow type.

    The file's own names are paths: a column called a.b and the field b of a struct a share one.
    """
    places, start = {}, 0
    for column in footer_of(path, size, changed).schema.to_arrow_schema():
        places[column.name] = start, column.type
        start += _n_leaves(column.type)
    return places


def _n_leaves(stored: Any) -> int:
    parts = [stored.field(k).type for k in range(stored.num_fields)]
    return sum(map(_n_leaves, parts)) if parts else 1


def _range(statistics: Any, n_rows: int) -> Range | None:
    """Return the range of a row group's column; None if it does not show that it may count rows."""
    if statistics is None or not statistics.has_null_count:
        return None
    n_given = n_rows - statistics.null_count
    if n_given == 0:
        return NO_RANGE
    if not statistics.has_min_max or isinstance(statistics.min, bool | str | bytes):
        return None
    try:
        low, high = float(statistics.min), float(statistics.max)
    except (TypeError, ValueError):
        return None
    return (low, high, n_given) if high - low + 1 >= n_given / 2 else None
