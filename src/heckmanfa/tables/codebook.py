"""What the columns of a table are called, in which units they are, and what their levels mean.

People read "Years of schooling", not ``educ``. A codebook says so: a small table that a user writes
(``column, label, unit, levels``), or what a Stata or Parquet file stores beside its columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from heckmanfa.data.columns.column_names import refuse_absent, repeated
from heckmanfa.data.files.outputs import ending_of
from heckmanfa.data.files.paths import existing, local_path
from heckmanfa.data.scan.parquet_files import arrow
from heckmanfa.errors import InputError
from heckmanfa.tables.reading import read_table
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

_FIELDS = ("column", "label", "unit", "levels")
# Keys under which programs store such words beside a column of Parquet.
_LABEL_KEYS = ("label", "description", "comment")
_UNIT_KEYS = ("unit", "units")


@dataclass(frozen=True)
class ColumnWords:
    """How a reader knows one column."""

    label: str = ""
    unit: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    """what each level means, by the level as text"""


@dataclass(frozen=True)
class Codebook:
    """How a reader knows the columns of a table; one that it lacks goes by its name."""

    columns: Mapping[str, ColumnWords] = field(default_factory=dict)

    def label(self, column: str) -> str:
        """Return the label of a column, or its name."""
        return self.words(column).label or column

    def unit(self, column: str) -> str:
        """Return the unit of a column; empty if unknown."""
        return self.words(column).unit

    def level(self, column: str, level: str) -> str:
        """Return what a level of a column means, or the level itself."""
        return self.words(column).levels.get(level, level)

    def over(self, other: Codebook) -> Codebook:
        """Return both; where both have words for something, those of this one."""
        names = dict.fromkeys([*other.columns, *self.columns])
        return Codebook({name: _merged(self.words(name), other.words(name)) for name in names})

    def refuse_absent(self, names: Sequence[str], source: str) -> None:
        """Refuse words about columns that the table does not have."""
        refuse_absent(self.columns, names, source)

    def words(self, column: str) -> ColumnWords:
        """Return all that is known of a column; empty words if nothing is."""
        return self.columns.get(column, ColumnWords())


def _merged(first: ColumnWords, second: ColumnWords) -> ColumnWords:
    levels = {**second.levels, **first.levels}
    return ColumnWords(first.label or second.label, first.unit or second.unit, levels)


def read_codebook(path: str | os.PathLike[str]) -> Codebook:
    """Read a codebook: a table with ``column`` and any of ``label``, ``unit`` and ``levels``.

    Levels are written as in ``0=country; 1=city``.
    """
    table = read_table(path)
    table.columns = pd.Index([str(name).strip().lower() for name in table.columns])
    for name in table.columns:
        if name not in _FIELDS:
            raise InputError(
                f"the codebook {shown(path)} has a column {quoted(name)}; a codebook may have "
                f"{', '.join(_FIELDS)}{nearest(name, _FIELDS)}"
            )
    if "column" not in table:
        raise InputError(
            f"the codebook {shown(path)} has no column 'column', which names the columns of the "
            "table that it is about"
        )
    texts = table.astype(object).where(table.notna(), "").astype(str).map(str.strip)
    twice = repeated(texts["column"])
    if twice:
        raise InputError(f"the codebook {shown(path)} has two lines for {quoted(twice[0])}")
    lines = texts.reindex(columns=list(_FIELDS), fill_value="").to_numpy().tolist()
    return Codebook({line[0]: _words_of(line, path) for line in lines if line[0]})


def _words_of(line: Sequence[str], path: str | os.PathLike[str]) -> ColumnWords:
    column, label, unit, listed = line
    levels: dict[str, str] = {}
    for entry in filter(None, (piece.strip() for piece in listed.split(";"))):
        level, equals, meaning = entry.partition("=")
        if not equals or not meaning.strip():
            raise InputError(
                f"the codebook {shown(path)} has levels {quoted(listed)} for {quoted(column)}; "
                "write them as in '0=country; 1=city'"
            )
        levels[level.strip()] = meaning.strip()
    return ColumnWords(label, unit, levels)


def stored_codebook(path: str | os.PathLike[str]) -> Codebook:
    """Return the labels and units that a Stata or Parquet file stores beside its columns.

    Levels of Stata's value labels are categories with these labels already. Other files store none.
    """
    place = Path(local_path(path))
    if ending_of(place) == ".dta":
        with pd.io.stata.StataReader(existing(place)) as reader:
            labels = {name: label.strip() for name, label in reader.variable_labels().items()}
        return Codebook({name: ColumnWords(label) for name, label in labels.items() if label})
    if ending_of(place) == ".parquet":
        _, pq = arrow()
        return schema_codebook(pq.read_schema(existing(place)))
    return Codebook()


def schema_codebook(schema: Any) -> Codebook:
    """Return the labels and units that a schema of Arrow holds beside its columns."""
    stored = {column.name: column.metadata or {} for column in schema}
    return Codebook({name: words for name, entry in stored.items() if (words := _of(entry))})


def _of(metadata: Mapping[bytes, bytes]) -> ColumnWords | None:
    """Read what is stored beside one column; None if it says nothing to a reader."""
    texts = {
        key.decode("utf-8", "replace").lower(): value.decode("utf-8", "replace").strip()
        for key, value in metadata.items()
    }
    label, unit = (
        next((texts[key] for key in keys if texts.get(key)), "")
        for keys in (_LABEL_KEYS, _UNIT_KEYS)
    )
    return ColumnWords(label, unit) if label or unit else None
