"""Parquet files as one table: its schema before a row is read, and its rows in memory."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heckmanfa.data.files.clashes import PARQUET_ENDINGS
from heckmanfa.data.parquet.parquet_columns import kind_of
from heckmanfa.data.parquet.parquet_files import (
    StoredFile,
    arrow,
    check_schemas,
    find_files,
    store_of,
)
from heckmanfa.errors import DataError, InputError
from heckmanfa.tables.reading import read_table
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
        if len(self.files) == 1 and self.paths[0].suffix.lower() == ".parquet":
            return read_table(self.paths[0], columns)
        pa, pq = arrow()
        parts = []
        for file in self.files:
            raw = [file.stored_names[name] for name in columns]
            try:
                part = pq.ParquetFile(file.path).read(columns=raw).select(raw)
                part.validate(full=True)
            except (OSError, pa.ArrowException) as error:
                raise DataError(
                    f"{shown(file.path)} cannot be read as Parquet: "
                    f"{str(error).strip().splitlines()[0]}; "
                    "it is damaged or cut off. Write it again, or leave it out."
                ) from error
            parts.append(decode_dictionaries(part.rename_columns(list(columns)), self.schema))
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
    files: list[StoredFile] = []
    schemas: list[Any] = []
    for path in paths:
        stored, schema = store_of(path)
        names = list(dict.fromkeys([*(schemas[0] if schemas else schema).names, *schema.names]))
        check_schemas((paths[0], schemas[0] if schemas else schema), (path, schema), names)
        files.append(stored)
        schemas.append(schema)
    table = StoredTable(tuple(files), _common(schemas))
    if table.n_rows == 0:
        rest = "has" if len(paths) == 1 else f"and {len(paths) - 1} other files have"
        raise InputError(f"{shown(paths[0])} {rest} names of columns but no rows")
    return table


def _common(schemas: Sequence[Any]) -> Any:
    """Take each column's type from the first file that has values of it."""
    pa, _ = arrow()
    from pyarrow import types

    fields = []
    for name in schemas[0].names:
        found = [
            schema.field(name) for schema in schemas if kind_of(schema.field(name).type) != "empty"
        ]
        # Levels that only some files declare are text, as in the other files.
        plain = [field for field in found if not types.is_dictionary(field.type)]
        fields.append((plain or found or [schemas[0].field(name)])[0])
    return pa.schema(fields)
