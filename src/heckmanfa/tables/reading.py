"""Tables from files that spreadsheets and statistics programs write, or from a pipe."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd

from heckmanfa.data.columns.column_names import UNNAMED, check_wanted, tidy_names
from heckmanfa.data.columns.dropped_rows import notes_on_rows, without_rows
from heckmanfa.data.columns.missing_codes import Codes, blank, codes_of
from heckmanfa.data.files.outputs import ending_of
from heckmanfa.data.files.paths import existing, local_path, refuse_foreign_links
from heckmanfa.data.files.sizes import refuse_claim, refuse_inflated_batches
from heckmanfa.data.scan.arrow_columns import tidy_columns
from heckmanfa.data.scan.parquet_files import arrow, store_of
from heckmanfa.data.scan.parquet_rows import read_file
from heckmanfa.errors import DataError, HeckmanfaError, InputError, OutOfMemoryError
from heckmanfa.tables.delimited import ReadOptions, line_of_name, read_delimited
from heckmanfa.tables.excel import place_of_name, read_excel
from heckmanfa.tables.marks import (
    BLANK,
    MARKS,
    MarkedTable,
    MarkOptions,
    apply,
    decide,
    read_evidence,
)
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import called, quoted, shown
from heckmanfa.text.wording import plural

STDIN = "-"
"""name of standard input"""

_PIECE = 2**20
_INPUTS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# Formats that are read from the end, by their first bytes.
_NOT_TEXT = {b"PAR1": "Parquet", b"PK\x03\x04": "Excel", b"ARROW1": "Arrow", b"<stata": "Stata"}


def is_piped(path: str | os.PathLike[str]) -> bool:
    """Whether a table comes through a pipe: standard input, or a named pipe."""
    return str(path) == STDIN or str(path) in _INPUTS or Path(path).is_fifo()


@contextmanager
def spooled(
    path: str | os.PathLike[str], tell: Callable[[str], None] | None = None
) -> Iterator[Path]:
    """Copy the contents of a pipe to a file, which is removed at the end.

    ``tell`` gets a few words about what it is waiting for. Errors name the pipe, not the file.
    """
    standard = str(path) == STDIN or str(path) in _INPUTS
    name = "standard input" if standard else f"the pipe {shown(path)}"
    with ExitStack() as stack:
        source: IO[bytes]
        if standard:
            source = _standard_input()
        else:
            refuse_foreign_links(path)
            if tell is not None:
                tell(f"waiting for a table from {name}")
            source = stack.enter_context(Path(path).open("rb"))
        if tell is not None:
            tell(f"reading {name}")
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heckmanfa-")))
            copy = folder / "table.csv"
            with copy.open("wb") as file:
                shutil.copyfileobj(source, file, _PIECE)
        except OSError as error:
            raise DataError(f"{name} cannot be read: {error.strerror or error}") from error
        with copy.open("rb") as file:
            head = file.read(8)
        if not head:
            raise InputError(f"{name} is empty")
        for first, what in _NOT_TEXT.items():
            if head.startswith(first):
                raise InputError(
                    f"{name} holds a table in {what}, and only delimited text can come through a "
                    "pipe; write it to a file, and name that"
                )
        if head.startswith(b"\x1f\x8b"):
            copy = copy.rename(folder / "table.csv.gz")
        with called(copy, name):
            yield copy


def _standard_input() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed; pipe a table into the command, or name a file")
    if sys.stdin.isatty():
        raise InputError(
            "standard input is a terminal, which provides no table; pipe a table into the command "
            "(cat wages.csv | heckmanfa fit - ...), or name a file"
        )
    return sys.stdin.buffer


_TEXT = (".csv", ".tsv", ".txt")
_EXCEL = (".xlsx", ".xls")
_KNOWN = (
    *_TEXT,
    *(f"{ending}.gz" for ending in _TEXT),
    ".parquet",
    ".feather",
    ".arrow",
    ".dta",
    *_EXCEL,
)


@dataclass(frozen=True, eq=False)
class Table:
    """A table in a file, and what is known about how it was written."""

    frame: pd.DataFrame
    """distinct names, at least one row"""
    untyped: bool = False
    """whether the file has only cells, and no types that say which columns are text"""
    decimal: str | None = None
    """decimal mark that its numbers were read with; None if no number has a mark"""
    percent: tuple[str, ...] = ()
    """columns of percentages, read without their sign"""
    money: dict[str, str] = field(default_factory=dict)
    """columns of amounts of money, read without their currency sign, and that sign"""
    blanked: dict[tuple[str, str], int] = field(default_factory=dict)
    """rows whose value the user says means missing, by column and value"""
    doubts: dict[str, str] = field(default_factory=dict)
    """columns that can be read in two ways, and why"""
    notes: tuple[str, ...] = ()
    """sentences about choices made in reading"""
    titles: int = 0
    """rows above the names that were skipped"""
    n_dropped: int = 0
    """rows that the user says are not data; the frame is without them"""
    n_blank: int = 0
    """rows without any value, which the frame is without; in Excel those between others"""
    hint: str = ""
    """what to do if it is the wrong table; empty if there is no other"""

    def refuse_doubts(self, columns: Sequence[str]) -> None:
        """Refuse columns that can be read in two ways."""
        for name in columns:
            if name in self.doubts:
                raise InputError(self.doubts[name])


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> pd.DataFrame:
    """Read a table in the format that its file name ending indicates.

    Text files (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``) may be delimited by commas,
    semicolons, tabs or bars, in UTF-8 or a Windows encoding. The other formats are ``.xlsx``,
    ``.xls``, ``.parquet``, ``.feather``, ``.arrow`` and Stata's ``.dta``. ``"-"`` is delimited text
    from standard input.

    Parameters
    ----------
    columns : sequence of str, optional
        Only these, in this order.
    decimal : {None, ".", ","}
        The decimal mark of text and Excel files; by default, all values of the file decide
        together.
    thousands : {None, ",", ".", " ", "'", "none"}
        The mark between thousands there; by default, any but the decimal mark.
    sheet : str, optional
        The sheet of an Excel file: its name, or its number from 1; by default, the first that is
        not empty.
    header_row : int, optional
        The line of a text file, or the row of an Excel sheet, with the names of the columns,
        counted from 1; those above it are skipped. By default the first, below any titles.

    Returns
    -------
    DataFrame
        It has distinct names and at least one row. In text and Excel files, the usual missing
        marks are missing values, and columns without name or values are left out. So are blank
        rows (for text files, unless ``columns`` are given). A column whose numbers can be read in
        two ways is refused.
    """
    table = open_table(
        path, columns, decimal=decimal, thousands=thousands, sheet=sheet, header_row=header_row
    )
    table.refuse_doubts(list(table.frame.columns))
    return table.frame


def open_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    na_values: Sequence[str] | Codes = (),
    literal: Sequence[str] = (),
    drop_rows: Sequence[str] = (),
    number_repeats: bool = False,
    like: MarkOptions | None = None,
    tell: Callable[[str], None] | None = None,
) -> Table:
    """Read a table as `read_table` does, and what is known about how it was written.

    ``na_values`` are values of text and Excel files that mean missing, as in `codes_of`. In
    columns that are ``literal``, marks such as NA are text. ``drop_rows`` are rows of such files
    that are not data, as in `without_rows`. Columns that share a name get numbers if
    ``number_repeats``. ``like`` are options for such files if neither ``decimal`` nor
    ``thousands`` is given; ``tell`` gets a few words about what it is waiting for. Columns in doubt
    are included, as text or in one of the ways to read them.
    """
    marks = MarkOptions(decimal, thousands)
    options = ReadOptions(
        columns, marks, sheet, header_row, na_values, literal, drop_rows, number_repeats
    )
    if is_piped(path):
        with spooled(path, tell) as copy:
            return _open(copy, options, like)
    return _open(existing(local_path(path)), options, like)


def _open(path: Path, options: ReadOptions, like: MarkOptions | None) -> Table:
    ending = ending_of(path)
    if ending not in _KNOWN:
        problem = (
            f"the ending {quoted(ending)} of {shown(path)} is not known"
            if ending
            else f"{shown(path)} has no ending"
        )
        raise InputError(f"{problem}; known are {', '.join(_KNOWN)}")
    _check_options(path, ending, options)
    if like is not None and options.marks == MarkOptions():
        options = replace(options, marks=like)
    if path.stat().st_size == 0:
        raise InputError(f"{shown(path)} is empty")
    try:
        table = _read(path, ending, options)
    except HeckmanfaError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(
            f"there is not enough memory to read {shown(path)}: write it as Parquet and scan that, "
            "or use a larger machine"
        ) from error
    # A damaged file can make a reader fail in any way.
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{shown(path)} cannot be read: {_words_of(error)}") from error
        raise DataError(
            f"{shown(path)} cannot be read as {ending}: {_words_of(error)}; it is damaged, cut "
            "off, or not what its name says"
        ) from error
    if len(table.frame) == 0:
        raise InputError(f"{shown(path)} has names of columns but no rows")
    return table


def find_names(
    path: str | os.PathLike[str], name: str, sheet: str | None = None
) -> dict[str, Any] | None:
    """Return the options under which a text or Excel file has a column of this name.

    They are ``header_row``, and of a workbook ``sheet``; None if no line or row has the name.
    """
    place = existing(local_path(path))
    ending = ending_of(place)
    if ending.startswith(_TEXT):
        line = line_of_name(place, name)
        return None if line is None else {"header_row": line}
    if ending not in _EXCEL:
        return None
    cell = place_of_name(place, ending, name, sheet)
    return None if cell is None else {"sheet": cell[0], "header_row": cell[1]}


def _words_of(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = message.strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__


def _check_options(path: Path, ending: str, options: ReadOptions) -> None:
    """Refuse options that do not apply to a file."""
    if options.header_row is not None and not ending.startswith((*_TEXT, *_EXCEL)):
        raise InputError(
            f"{option('header_row', ...)} is for text and Excel files; {shown(path)} stores the "
            "names of its columns"
        )
    if options.sheet is not None and ending not in _EXCEL:
        raise InputError(f"{option('sheet', ...)} is for Excel files, and {shown(path)} is not one")
    if options.marks != MarkOptions() and not ending.startswith((*_TEXT, *_EXCEL)):
        raise InputError(
            f"{option('decimal', ...)} and {option('thousands', ...)} are for text and Excel "
            f"files; {shown(path)} stores numbers as numbers"
        )


def _read(path: Path, ending: str, options: ReadOptions) -> Table:
    hint, notes, n_blank = "", [], 0
    columns, asked = options.columns, options.marks
    if ending.startswith(_TEXT):
        marked = read_delimited(path, options)
        if columns is None:
            frame, n_blank = _without_blanks(marked.frame)
            marked = replace(marked, frame=frame)
    elif ending in _EXCEL:
        sheet = read_excel(
            path,
            ending,
            options.sheet,
            options.header_row,
            options.literal,
            number_repeats=options.number_repeats,
        )
        hint, notes, n_blank = sheet.hint, [sheet.note] if sheet.note else [], sheet.n_blank
        kept = without_rows(sheet.frame, options.drop_rows)
        read = blank(kept.frame, codes_of(options.na_values, list(sheet.frame.columns)))
        texts = read_evidence(read.frame, blanks=asked.thousands == BLANK)
        marked = apply(read.frame, texts, decide(list(texts.values()), asked, None))
        marked = replace(
            marked,
            blanked=read.counts,
            titles=sheet.titles,
            dropped=kept.counts,
            n_dropped=kept.n_dropped,
        )
    else:
        frame = _read_stata(path) if ending == ".dta" else _read_arrow(path, ending, columns)
        return Table(_of(frame, columns, path))
    seen = marked.seen or asked.settled is not None
    return Table(
        _of(marked.frame, columns, path),
        untyped=True,
        decimal=marked.decided.decimal if seen else None,
        percent=marked.percent,
        money=marked.money,
        blanked=marked.blanked,
        doubts=marked.decided.doubts,
        notes=(*notes, *_notes(marked), *notes_on_rows(marked.dropped), *_note_on_blanks(n_blank)),
        titles=marked.titles,
        n_dropped=marked.n_dropped,
        n_blank=n_blank,
        hint=hint,
    )


def _of(frame: pd.DataFrame, columns: Sequence[str] | None, path: Path) -> pd.DataFrame:
    if columns is None:
        return frame
    check_wanted(columns, list(frame.columns), path)
    return frame[list(columns)]


def _notes(marked: MarkedTable) -> list[str]:
    """Explain how numbers were read if another reader would read them otherwise."""
    notes = []
    if marked.titles:
        were = "was" if marked.titles == 1 else "were"
        notes.append(f"{plural(marked.titles, 'line')} of titles above the names {were} skipped.")
    decimal = marked.decided.decimal
    parts = [f"a {'comma' if decimal == ',' else 'point'} as the decimal mark"] if decimal else []
    if marked.thousands:
        parts.append(f"{' and '.join(MARKS[mark] for mark in marked.thousands)} between thousands")
    if decimal == "," or marked.thousands:
        notes.append(
            f"Numbers were read with {' and '.join(parts)} (see {option('decimal', ...)})."
        )
    for name in marked.percent:
        notes.append(f"{quoted(name)} is in per cent: 5% was read as 5.")
    for name, sign in marked.money.items():
        notes.append(f"{quoted(name)} is in {sign}: its amounts were read without that sign.")
    return notes


def _note_on_blanks(n: int) -> list[str]:
    return [f"{plural(n, 'row')} without any value {'was' if n == 1 else 'were'} left out."] * (
        n > 0
    )


def _without_blanks(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Leave out rows without any value, which are counted, and columns with no name or value."""
    spare = [
        name for name in frame.columns if name.startswith(UNNAMED) and frame[name].isna().all()
    ]
    if spare:
        frame = frame.drop(columns=spare)
    blank = frame.iloc[:, 0].isna() if frame.shape[1] else pd.Series([], dtype=bool)
    for name in frame.columns[1:]:
        if not blank.any():
            return frame, 0
        blank &= frame[name].isna()
    if not blank.any():
        return frame, 0
    return frame[~blank].reset_index(drop=True), int(blank.sum())


def _refuse_stata_claim(path: Path) -> None:
    """Refuse a Stata file that claims more rows than it can hold, at a byte for each variable."""
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(b"<stata_dta>"):
        order: Literal["little", "big"] = "big" if b"<byteorder>MSF<" in head else "little"
        claims = [head.partition(tag)[2] for tag in (b"<K>", b"<N>")]
        lengths = [claim.find(end) for claim, end in zip(claims, (b"</K>", b"</N>"), strict=True)]
        columns, rows = (
            int.from_bytes(claim[:length], order)
            for claim, length in zip(claims, lengths, strict=True)
        )
    else:
        order = "big" if head[1:2] == b"\x01" else "little"
        columns, rows = int.from_bytes(head[4:6], order), int.from_bytes(head[6:10], order)
    refuse_claim(path, rows, max(columns, 1))


def _read_stata(path: Path) -> pd.DataFrame:
    _refuse_stata_claim(path)
    try:
        frame = pd.read_stata(path)
    except ValueError:
        # Two values of a column have the same label, so only the values distinguish them.
        frame = pd.read_stata(path, convert_categoricals=False)
    frame.columns = pd.Index(tidy_names(list(frame.columns), path))
    return frame


def _read_arrow(path: Path, ending: str, columns: Sequence[str] | None) -> pd.DataFrame:
    pa, _ = arrow(ending)
    from pyarrow import feather, ipc

    table: Any
    if ending == ".parquet":
        stored, schema = store_of(path)
        if columns is not None:
            check_wanted(columns, schema.names, path)
        wanted = [name for name in schema.names if columns is None or name in columns]
        table = read_file(stored, wanted)
    else:
        refuse_inflated_batches(path)
        try:
            table = feather.read_table(path)
        except pa.ArrowInvalid:
            # Arrow has a file format and a stream format.
            with path.open("rb") as stream:
                table = ipc.open_stream(stream).read_all()
        names = tidy_columns(table.schema.names, path)
        table = table.select(list(names.values())).rename_columns(list(names))
        # Text that is not UTF-8, for example, would otherwise fail at its first use.
        table.validate(full=True)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame
