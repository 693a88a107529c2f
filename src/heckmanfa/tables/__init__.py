"""Files that people have (CSV, Excel, Stata, Feather): their layout, header, and number marks."""

from __future__ import annotations

from heckmanfa.data.files.outputs import write_table
from heckmanfa.tables.codebook import Codebook, ColumnWords, read_codebook
from heckmanfa.tables.reading import Table, open_table, read_table

__all__ = [
    "Codebook",
    "ColumnWords",
    "Table",
    "open_table",
    "read_codebook",
    "read_table",
    "write_table",
]
