"""A result as a file: tables for programs, and a document with tables for people."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

from heckmanfa.data.files.outputs import check_ending, ending_of, write_table
from heckmanfa.errors import needs_extra
from heckmanfa.results.document import Block
from heckmanfa.results.render_docx import render_docx
from heckmanfa.results.render_latex import latex_tables
from heckmanfa.results.render_text import markdown_blocks
from heckmanfa.results.render_xlsx import write_xlsx


@dataclass(frozen=True)
class SavedTable:
    """What a file of tables holds."""

    frames: Mapping[str, pd.DataFrame]
    """numbers in full, by the title of a sheet; formats with one table hold the first"""
    blocks: Callable[[], Sequence[Block]]
    """makes the same for readers: words, and tables of formatted cells"""

    @property
    def frame(self) -> pd.DataFrame:
        """The first table."""
        return next(iter(self.frames.values()))


@dataclass(frozen=True)
class TableFormat:
    """A format of such files."""

    write: Callable[[SavedTable, Path], None]
    needs: str = ""
    """the package that writes it, if that is optional"""
    extra: str = ""
    """the extra that installs that package"""

    def check(self, ending: str) -> None:
        """Refuse a format whose package is not installed."""
        if self.needs:
            with needs_extra(f"{ending} files need {self.needs}", self.extra):
                import_module(self.needs)


def _write_frame(table: SavedTable, path: Path) -> None:
    write_table(table.frame, path)


def _write_xlsx(table: SavedTable, path: Path) -> None:
    write_xlsx(table.frames, path)


def _write_docx(table: SavedTable, path: Path) -> None:
    path.write_bytes(render_docx(table.blocks()))


def _write_text(render: Callable[[Sequence[Block]], str]) -> Callable[[SavedTable, Path], None]:
    def write(table: SavedTable, path: Path) -> None:
        path.write_text(render(table.blocks()), encoding="utf-8", newline="\n")

    return write


FORMATS: dict[str, TableFormat] = {
    ".csv": TableFormat(_write_frame),
    ".xlsx": TableFormat(_write_xlsx, "openpyxl", "excel"),
    ".docx": TableFormat(_write_docx),
    ".tex": TableFormat(_write_text(latex_tables)),
    ".md": TableFormat(_write_text(markdown_blocks)),
    ".parquet": TableFormat(_write_frame, "pyarrow", "parquet"),
}
"""what a table is written as, by the ending of the file's name"""


def check_table_path(path: str | os.PathLike[str]) -> None:
    """Refuse a name that promises another format, or one whose package is not installed."""
    check_ending(path, tuple(FORMATS))
    ending = ending_of(Path(path))
    FORMATS[ending].check(ending)


def write_saved(table: SavedTable, path: Path) -> None:
    """Write a result in the format that the name of the file asks for."""
    FORMATS[ending_of(path)].write(table, path)
