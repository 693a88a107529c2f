"""Parquet files as one table: its schema before a row is read, and its rows in memory."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heckmanfa.data.files.clashes import PARQUET_ENDINGS
from heckmanfa.data.parquet.parquet_files import (
    StoredFile,
    arrow,
    find_files,
    read_columns,
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
    paths = find_files(data)
    for path in paths:
        if path.suffix.lower() not in PARQUET_ENDINGS:
            raise InputError(
                f"{shown(path)} is not a Parquet file: only such files can be read as one table; "
                f"name one file, or a pattern such as {path.parent / '*.parquet'}"
            )
    files, schema = scan_files(paths)
    return StoredTable(tuple(files), schema)
