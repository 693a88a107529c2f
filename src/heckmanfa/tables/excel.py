"""Excel files: which sheet to read, and its cells as a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

import pandas as pd

from heckmanfa.data.columns.column_names import tidy_names
from heckmanfa.data.columns.values import EMPTY_SPELLINGS, MISSING_SPELLINGS, label_of
from heckmanfa.data.files.sizes import refuse_archive
from heckmanfa.errors import DataError, InputError, MissingExtraError, UnknownFeatureError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list, shown
from heckmanfa.text.wording import listed, nearest

# A sheet whose first rows are empty counts as empty, unless it is the one to read.
_PEEK = 50
# Cells that a sheet may reach over, whatever it holds; and how many for each cell in it.
_SPREAD, _SPREAD_PER_CELL = 2**22, 64
# Excel has no more.
_MOST_COLUMNS = 2**14


@dataclass(frozen=True, eq=False)
class Sheet:
    """A sheet of a workbook."""

    frame: pd.DataFrame
    note: str | None
    """which sheet was read, if the user did not choose and there are others"""
    hint: str
    """what to do if it is the wrong sheet; empty if there is no other"""
    titles: int = 0
    """rows above the names that were skipped"""
    n_blank: int = 0
    """rows between others without any value, which the frame is without"""


def read_excel(
    path: Path,
    ending: str,
    sheet: str | None,
    header_row: int | None = None,
    literal: Sequence[str] = (),
    *,
    number_repeats: bool = False,
) -> Sheet:
    """Read one sheet of an Excel file: by name, by number from 1, or the first with any value.

    ``header_row`` is the row of the names, by its number in the sheet; None finds it. In columns
    that are ``literal``, marks such as NA are text. Columns that share a name get numbers if
    ``number_repeats``.
    """
    with _opened(path, ending) as book:
        return _read(book, path, sheet, header_row, literal, number_repeats)


def place_of_name(path: Path, ending: str, name: str, sheet: str | None) -> tuple[str, int] | None:
    """Return the sheet, and its row from 1, with a cell that holds the name of a column.

    Only ``sheet`` is looked at if it is given. None if no sheet has the name in its first rows.
    """
    with _opened(path, ending) as book:
        names = _names(book)
        for chosen in names if sheet is None else [_chosen(names, sheet, path)]:
            cells = _cells(book, chosen, _PEEK)
            for row, values in zip(cells.index, cells.to_numpy(), strict=True):
                if name in [label_of(value) for value in values]:
                    return chosen, int(row) + 1
    return None


@contextmanager
def _opened(path: Path, ending: str) -> Iterator[Any]:
    """Open a workbook."""
    engine: Literal["openpyxl", "xlrd"] = "openpyxl" if ending == ".xlsx" else "xlrd"
    if ending == ".xlsx":
        refuse_archive(path)
    try:
        with warnings.catch_warnings():
            # openpyxl warns about decorations that it ignores.
            warnings.simplefilter("ignore", UserWarning)
            with pd.ExcelFile(path, engine=engine) as book:
                yield book
    except ImportError as error:
        way_out = (
            "pip install 'heckmanfa[excel]'"
            if ending == ".xlsx"
            else "save the sheet as .xlsx, or pip install xlrd"
        )
        raise MissingExtraError(
            f"{ending} files need {engine}, which is not installed: {way_out}"
        ) from error


def _read(
    book: Any,
    path: Path,
    sheet: str | None,
    header_row: int | None,
    literal: Sequence[str],
    number_repeats: bool,
) -> Sheet:
    names = _names(book)
    filled = [name for name in names if sheet is None and not _cells(book, name, _PEEK).empty]
    chosen, *others = filled or [names[0] if sheet is None else _chosen(names, sheet, path)]
    _refuse_spread(book, chosen, path)
    cells = _cells(book, chosen)
    if cells.empty:
        raise InputError(f"{shown(path)}: there is nothing in its sheet {quoted(chosen)}")
    titles = 0
    if header_row is None:
        cells, titles = _below_titles(cells)
    else:
        cells = _from_row(cells, header_row, path)
    raw = _cells(book, chosen, literal=True) if literal else cells
    below = cells.index[1:]
    n_blank = int(below[-1] - below[0]) + 1 - len(below) if len(below) else 0
    if not others:
        frame = _table(cells, path, raw, literal, number_repeats)
        return Sheet(frame, None, "", titles, n_blank)
    hint = (
        f"; its sheet {quoted(chosen)} was read, and there {'is' if len(others) == 1 else 'are'} "
        f"{_listed(others)} as well: pass {option('sheet', others[0])}"
    )
    try:
        frame = _table(cells, path, raw, literal, number_repeats)
    except InputError as error:
        raise InputError(f"{error}{hint}") from error
    note = (
        f"The sheet {quoted(chosen)} was read; {path.name} has {_listed(others)} as well (see "
        f"{option('sheet', ...)})."
    )
    return Sheet(frame, note, hint, titles, n_blank)


def _refuse_spread(book: Any, name: str, path: Path) -> None:
    """Refuse a sheet whose few cells lie so far apart that nearly all between them are empty."""
    if hasattr(book.book, "sheet_by_name"):
        # xlrd has read the sheet already, and pandas makes a table of all its cells.
        sheet = book.book.sheet_by_name(name)
        extent = _Extent(sheet.nrows, sheet.ncols, path.stat().st_size)
    else:
        sheet = book.book[name]
        extent = _Extent()
        parser = expat.ParserCreate(namespace_separator="}")
        parser.StartElementHandler = extent.start
        # What the sheet says about its own size may be wrong, so its cells are counted.
        with sheet.parent._archive.open(sheet._worksheet_path) as source:
            parser.ParseFile(source)
    reached = extent.rows * extent.columns
    if extent.columns > _MOST_COLUMNS or reached > max(_SPREAD, _SPREAD_PER_CELL * extent.stored):
        raise DataError(
            f"{shown(path)}: the sheet {quoted(name)} reaches to row {extent.rows:,} and column "
            f"{extent.columns:,}, and nearly all cells up to there are empty; delete stray cells "
            "far from the table, or save the table as .csv"
        )


@dataclass
class _Extent:
    """The rows and columns that a sheet reaches to, while its XML is read."""

    rows: int = 0
    columns: int = 0
    stored: int = 0
    """cells that are in the file"""
    _row: int = 0
    _column: int = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element, by the rules of openpyxl."""
        if tag.endswith("}c"):
            letters = attributes.get("r", "").rstrip("0123456789")
            self._column = _column_of(letters) if letters else self._column + 1
            self.stored += 1
            self.columns = max(self.columns, self._column)
        elif tag.endswith("}row"):
            self._row = int(float(attributes.get("r", self._row + 1)))
            self._column = 0
            self.rows = max(self.rows, self._row)


def _column_of(letters: str) -> int:
    """Return the number of a column of a spreadsheet, which is 1 for A."""
    number = 0
    # Excel has columns of three letters.
    for letter in letters[:4]:
        number = 26 * number + ord(letter.upper()) - ord("A") + 1
    return number


def _names(book: Any) -> list[str]:
    # A chart may have its own sheet, which has no cells.
    sheets = getattr(book.book, "worksheets", None)
    return list(book.sheet_names) if sheets is None else [str(sheet.title) for sheet in sheets]


def _chosen(names: Sequence[str], sheet: str, path: Path) -> str:
    if sheet in names:
        return sheet
    if sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise UnknownFeatureError(
        f"{option('sheet', ...)}: {shown(path)} has no sheet {quoted(sheet)}; it has "
        f"{_listed(names)}{nearest(sheet, names)}"
    )


def _cells(book: Any, name: str, rows: int | None = None, *, literal: bool = False) -> pd.DataFrame:
    cells: pd.DataFrame = pd.read_excel(
        book,
        sheet_name=name,
        header=None,
        dtype=object,
        nrows=rows,
        keep_default_na=False,
        na_values=list(EMPTY_SPELLINGS if literal else MISSING_SPELLINGS),
    )
    return cells.dropna(how="all").dropna(how="all", axis="columns")


def _below_titles(cells: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Leave out rows at the top that fill one cell, if the row below them fills all columns."""
    filled = cells.notna().sum(axis="columns").to_numpy()
    n_columns, titles = cells.shape[1], 0
    while titles < len(filled) and filled[titles] == 1:
        titles += 1
    is_header = n_columns > 2 and titles < len(filled) and filled[titles] == n_columns
    return (cells.iloc[titles:], titles) if is_header else (cells, 0)


def _from_row(cells: pd.DataFrame, header_row: int, path: Path) -> pd.DataFrame:
    """Leave out what is above the row of the names."""
    if header_row - 1 not in cells.index:
        raise InputError(
            f"{option('header_row', ...)} is {header_row}, and that row of {shown(path)} is "
            f"empty; the first row with a value is {cells.index[0] + 1}"
        )
    return cells.loc[header_row - 1 :].dropna(how="all", axis="columns")


def _table(
    cells: pd.DataFrame,
    path: Path,
    raw: pd.DataFrame,
    literal: Sequence[str],
    number_repeats: bool,
) -> pd.DataFrame:
    """Name the columns of cells; those that are ``literal`` are in ``raw`` as they are written."""
    names = tidy_names(list(cells.iloc[0]), path, number_repeats=number_repeats)
    cells = cells.iloc[1:].copy(deep=False)
    for column, name in zip(cells.columns, names, strict=True):
        if name in literal:
            cells[column] = raw.loc[cells.index, column]
    frame = cells.reset_index(drop=True)
    frame.columns = pd.Index(names)
    return frame.infer_objects()


def _listed(names: Sequence[str]) -> str:
    return quoted_list(names, 5) if len(names) > 5 else listed([quoted(name) for name in names])
