"""A table of models side by side: how it prints, and the files that it is saved as."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from heckmanfa.data.files.outputs import check_ending, ending_of, replacing, write_table
from heckmanfa.results.document import Block, Notes
from heckmanfa.results.render_docx import render_docx
from heckmanfa.results.render_html import models_page
from heckmanfa.results.render_latex import latex_models
from heckmanfa.results.render_text import markdown_models, render_models
from heckmanfa.results.render_xlsx import write_xlsx
from heckmanfa.results.table_files import FORMATS
from heckmanfa.text.table import Table
from heckmanfa.text.wording import true_minus


@dataclass(frozen=True, repr=False, eq=False)
class ModelTable:
    """Models side by side; prints as text, shows as HTML in a notebook.

    `to_latex`, `to_markdown` and `to_html` render it, and `save` writes it in a format by the
    ending of a name.
    """

    table: Table
    """formatted cells"""
    notes: tuple[str, ...]
    frame: pd.DataFrame
    """the numbers in full: model, equation and term, as in `tidy`, then estimate, std_error,
    statistic, p_value, ci_low and ci_high; the rows of the table, a model after the other"""
    facts: pd.DataFrame
    """the lower part of the table, a column for each model"""

    def blocks(self) -> list[Block]:
        """Return the table and the notes."""
        return [self.table, *([Notes(self.notes)] if self.notes else [])]

    def typeset(self) -> ModelTable:
        """Return it with minus signs as a page has them."""
        rows = (
            row if isinstance(row, str) else [row[0], *map(true_minus, row[1:])]
            for row in self.table.rows
        )
        table = replace(self.table, rows=tuple(rows))
        return replace(self, table=table, notes=tuple(map(true_minus, self.notes)))

    def __str__(self) -> str:
        """Return the text form."""
        return render_models(self.table, self.notes)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Return it as HTML, an element to put into a page."""
        return models_page(self.table, self.notes, whole=False)

    def to_markdown(self) -> str:
        """Return it as one table of Markdown."""
        return markdown_models(self.table, self.notes)

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return it as a LaTeX ``table`` that needs the package booktabs.

        Parameters
        ----------
        caption : str, optional
            LaTeX, printed as it is.
        label : str, optional
            For ``\ref``.
        """
        return latex_models(self.table, self.notes, caption, label)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write it in the format that the name ends in.

        Parameters
        ----------
        path : str or path
            ``.tex``, ``.docx``, ``.xlsx``, ``.md``, ``.html`` or ``.txt``, as it prints; ``.csv``
            is `frame`, which is the second sheet of ``.xlsx``, too.
        force : bool
            Whether an existing file may be replaced.
        """
        check_model_table(path)
        with replacing(path, force) as place:
            _WRITERS[ending_of(Path(path))](self, place)

    def _cells(self) -> pd.DataFrame:
        """Return the table as a frame of texts, with the headings and the notes among its rows."""
        width = len(self.table.columns)
        lines = [
            [row, *[""] * (width - 1)] if isinstance(row, str) else list(row)
            for row in self.table.rows
        ]
        lines += [[note, *[""] * (width - 1)] for note in self.notes]
        names = [column.title for column in self.table.columns]
        return pd.DataFrame(lines, columns=names)


def _write_docx(table: ModelTable, path: Path) -> None:
    path.write_bytes(render_docx(table.typeset().blocks()))


def _write_xlsx(table: ModelTable, path: Path) -> None:
    write_xlsx({"table": table._cells(), "numbers": table.frame}, path)


def _write_csv(table: ModelTable, path: Path) -> None:
    write_table(table.frame, path)


def _write_text(render: Callable[[ModelTable], str]) -> Callable[[ModelTable, Path], None]:
    def write(table: ModelTable, path: Path) -> None:
        path.write_text(render(table), encoding="utf-8", newline="\n")

    return write


def _page(table: ModelTable) -> str:
    table = table.typeset()
    return models_page(table.table, table.notes, whole=True)


_WRITERS: dict[str, Callable[[ModelTable, Path], None]] = {
    ".tex": _write_text(ModelTable.to_latex),
    ".docx": _write_docx,
    ".xlsx": _write_xlsx,
    ".md": _write_text(ModelTable.to_markdown),
    ".html": _write_text(_page),
    ".txt": _write_text(lambda table: f"{table}\n"),
    ".csv": _write_csv,
}


def check_model_table(path: str | os.PathLike[str]) -> None:
    """Refuse a name that ends in no format of these tables, or one that needs a package."""
    check_ending(path, tuple(_WRITERS))
    ending = ending_of(Path(path))
    if ending in FORMATS:
        FORMATS[ending].check(ending)
