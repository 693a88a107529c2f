"""Files that people have (CSV, Excel, Stata, Feather): their layout, header, and number marks."""

from __future__ import annotations

from heckmanfa.data.files.outputs import write_table
from heckmanfa.tables.reading import Table, open_table, read_table

__all__ = ["Table", "open_table", "read_table", "write_table"]
