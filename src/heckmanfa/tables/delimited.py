"""Delimited text files: find out how a file is written, then read it with pandas' C parser."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.column_names import check_wanted, tidy_names
from heckmanfa.data.columns.dropped_rows import without_rows
from heckmanfa.data.columns.missing_codes import Blanked, Codes, blank, codes_of
from heckmanfa.data.columns.values import (
    EMPTY_SPELLINGS,
    MISSING_SPELLINGS,
    label_of,
    shape_of,
    with_columns,
)
from heckmanfa.data.files.sizes import TextBytes
from heckmanfa.errors import DataError, InputError
from heckmanfa.tables.marks import (
    BLANK,
    MarkedTable,
    MarkOptions,
    apply,
    decide,
    fractions_prove,
    other_mark,
    read_evidence,
)
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown

# The head of a file has at least a title, the names and a row, unless a line is very long.
_HEAD, _LONGEST_HEAD, _HEAD_LINES = 1 << 18, 1 << 25, 3
_PIECE = 1 << 20
_RECORDS = 200
# The comma comes last: if two delimiters fit equally well, commas may be inside values.
_DELIMITERS = (";", "\t", "|", ",")
# Windows writes the second, which does not define all bytes; the third does.
_ENCODINGS = ("utf-8", "cp1252", "latin-1")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Lines that may be titles; the row below them has more columns than the last number, in nearly all
# rows.
_MOST_TITLES, _NEARLY, _WIDE = 10, 0.99, 2
# Lines among which a column's name is looked for.
_MOST_NAMES = 50
_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


@dataclass(frozen=True)
class Layout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    """decimal mark that the first lines suggest"""
    skipped: int
    """number of lines above the names"""
    names: tuple[str, ...]
    titles: int = 0
    """those of them that are titles"""
    literal: tuple[str, ...] = ()
    """columns in which marks such as NA are text"""

    @property
    def marks(self) -> Any:
        """Missing marks, by column if they differ."""
        if not self.literal:
            return list(MISSING_SPELLINGS)
        return {
            name: list(EMPTY_SPELLINGS if name in self.literal else MISSING_SPELLINGS)
            for name in self.names
        }


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a table in a file."""

    columns: Sequence[str] | None = None
    """the columns to read, which must exist; None for all"""
    marks: MarkOptions = field(default_factory=MarkOptions)
    sheet: str | None = None
    """name or number of a sheet; None finds it"""
    header_row: int | None = None
    """number of the line or row with the names, from 1; None finds it"""
    na_values: Sequence[str] | Codes = ()
    """values that mean missing, as in `codes_of`"""
    literal: Sequence[str] = ()
    """columns in which marks such as NA are text"""
    drop_rows: Sequence[str] = ()
    """rows that are not data, as in `without_rows`"""
    number_repeats: bool = False
    """whether columns that share a name get numbers instead of being refused"""


def read_delimited(path: Path, options: ReadOptions) -> MarkedTable:
    """Read a delimited text file, compressed with gzip if its name ends in ``.gz``.

    All columns are read, because all show how numbers are written. In a row with fewer fields than
    columns, the last columns are missing.
    """
    try:
        layout = find_layout(path, options.header_row, number_repeats=options.number_repeats)
        layout = replace(layout, literal=tuple(options.literal))
        if options.columns is not None:
            check_wanted(options.columns, layout.names, path)
        _refuse_cut(path, layout)
        codes = codes_of(options.na_values, layout.names)
        read = _read_numbers(path, layout, options.marks, codes, options.drop_rows)
        return replace(read, titles=layout.titles)
    except pd.errors.ParserError as error:
        raise DataError(f"{shown(path)} cannot be read: {_parser_words(error)}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{shown(path)} is damaged or cut off: {error}; fetch it again") from error
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"{shown(path)} cannot be read: its rows have more fields than its header names"
        ) from error


def _read_numbers(
    path: Path, layout: Layout, asked: MarkOptions, codes: Codes, drop_rows: Sequence[str]
) -> MarkedTable:
    """Read a file with the decimal mark that its first lines suggest, or with both.

    A number with one mark is text with the other, so both readings together show the spelling of
    all values.
    """
    first = asked.settled or layout.decimal
    kept = without_rows(_read(path, layout, first), drop_rows)
    read = blank(kept.frame, codes)
    frame = read.frame
    texts = read_evidence(frame, blanks=asked.thousands == BLANK)
    fractions, proof = _fractions(frame)
    proven = {} if proof is None else {first: proof}
    others = list(texts.values())
    supported = bool(proven) or any(column.says(first) for column in others)
    supported = supported or (first == "." and layout.delimiter == ",")
    contradicted = any(column.says(other_mark(first)) for column in others)
    if asked.settled is not None or (supported and not contradicted):
        decided = decide(others, asked, layout.delimiter, proven)
        marked = apply(frame, texts, decided)
        return replace(
            marked,
            seen=marked.seen or fractions,
            blanked=read.counts,
            dropped=kept.counts,
            n_dropped=kept.n_dropped,
        )
    dropped, n_dropped = kept.counts, kept.n_dropped
    del frame, read, kept
    marked = _read_twice(path, layout, asked, codes, drop_rows)
    return replace(marked, dropped=dropped, n_dropped=n_dropped)


def _read_twice(
    path: Path, layout: Layout, asked: MarkOptions, codes: Codes, drop_rows: Sequence[str]
) -> MarkedTable:
    """Read a file whose first reading does not show the decimal mark."""
    read: dict[str, Blanked] = {
        mark: blank(without_rows(_read(path, layout, mark), drop_rows).frame, codes)
        for mark in (".", ",")
    }
    frames = {mark: blanked.frame for mark, blanked in read.items()}
    blanks = asked.thousands == BLANK
    texts = {mark: read_evidence(frame, blanks=blanks) for mark, frame in frames.items()}
    spelt = texts["."] | texts[","]
    decided = decide(list(spelt.values()), asked, layout.delimiter)
    mark = decided.decimal or "."
    marked = apply(frames[mark], texts[mark], decided)
    other = other_mark(mark)
    # Columns in doubt stay as they are spelled.
    doubts = {name: frames[other][name] for name in decided.doubts if name in texts[other]}
    return replace(
        marked,
        frame=with_columns(marked.frame, doubts),
        seen=marked.seen or any(_fractions(frame)[0] for frame in frames.values()),
        blanked=read[mark].counts,
    )


def _fractions(frame: pd.DataFrame) -> tuple[bool, str | None]:
    """Return whether any number has a fraction, and a column that proves the decimal mark."""
    fractions = False
    for name in frame.columns:
        if frame[name].dtype != np.float64:
            continue
        values = frame[name].to_numpy()
        if fractions_prove(values):
            return True, str(name)
        fractions = fractions or bool(np.any(values[np.isfinite(values)] % 1.0))
    return fractions, None


def _read(path: Path, layout: Layout, decimal: str) -> pd.DataFrame:
    start = _ENCODINGS.index(layout.encoding) if layout.encoding in _ENCODINGS else None
    encodings = [layout.encoding] if start is None else _ENCODINGS[start:]
    for encoding in encodings:
        try:
            return _parse(path, layout, decimal, encoding)
        except UnicodeError:
            continue
    raise DataError(f"{shown(path)} is not text in {layout.encoding}, as its first bytes claim")


def _parse(
    path: Path, layout: Layout, decimal: str, encoding: str, whole: bool = False
) -> pd.DataFrame:
    """Parse in parts, which is twice as fast, or as a whole if the types of the parts differ."""
    with warnings.catch_warnings(), _opened(path, len(layout.names)) as file:
        # pandas drops fields without a name, and only warns.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        try:
            return pd.read_csv(
                file,
                sep=layout.delimiter,
                decimal=decimal,
                skiprows=layout.skipped,
                header=0,
                names=list(layout.names),
                index_col=False,
                skipinitialspace=True,
                encoding=encoding,
                keep_default_na=False,
                na_values=layout.marks,
                # Of one column, a blank line is a row without a value.
                skip_blank_lines=len(layout.names) > 1,
                low_memory=not whole,
            )
        except pd.errors.DtypeWarning:
            return _parse(path, layout, decimal, encoding, whole=True)


def _bytes_of(path: Path) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


@contextmanager
def _opened(path: Path, columns: int) -> Iterator[io.BufferedReader]:
    """Open a file whose size must be in proportion to what it is read to."""
    with _bytes_of(path) as source, TextBytes(path, source, columns) as raw:
        yield io.BufferedReader(raw, _PIECE)


def _head_of(path: Path) -> bytes:
    with _bytes_of(path) as file:
        head = more = file.read(_HEAD)
        while more and head.count(b"\n") < _HEAD_LINES and len(head) < _LONGEST_HEAD:
            head += (more := file.read(len(head)))
    return head


def line_of_name(path: Path, name: str) -> int | None:
    """Return the number of the first line with a field of this name, from 1; None without one."""
    text, _ = _decode(_head_of(path), path)
    for number, line in enumerate(_lines(text)[:_MOST_NAMES], start=1):
        for delimiter in _DELIMITERS:
            fields = [label_of(field) for record in _records(line, delimiter) for field in record]
            if len(fields) > 1 and name in fields:
                return number
    return None


def find_layout(
    path: Path, header_row: int | None = None, *, number_repeats: bool = False
) -> Layout:
    """Find out how a text file is written from its first lines.

    ``header_row`` is the number of the line with the names, from 1; None finds it. Columns that
    share a name get numbers if ``number_repeats``.
    """
    head = _head_of(path)
    text, encoding = _decode(head, path)
    if not text.strip():
        raise InputError(f"{shown(path)} is empty")
    if len(head) >= _HEAD:
        text = text[: text.rfind("\n") + 1] or text
    lines, titles = _lines(text), 0
    # A first line can name the delimiter for spreadsheets.
    named = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    delimiter, skipped = (named[1], 1) if named else (None, 0)
    if header_row is not None:
        _check_header_row(header_row, len(lines), path)
        skipped = max(header_row - 1, skipped)
    elif delimiter is None:
        skipped = titles = _count_titles(text)
    text = "".join(lines[skipped:])
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=lambda mark: _fit(_records(text, mark)))
        if len(_records(text, delimiter)[0]) == 1:
            _refuse_title(text, path)
    records = _records(text, delimiter)
    names = tidy_names(_header(records, path), path, number_repeats=number_repeats)
    shapes = [shape_of(field) for record in records[1:] for field in record]
    marks = Counter(shape.decimal for shape in shapes if shape is not None)
    decimal = "," if marks[","] > marks["."] else "."
    return Layout(encoding, delimiter, decimal, skipped, tuple(names), titles)


def _lines(text: str) -> list[str]:
    """Return the lines of a text as pandas counts them."""
    return list(io.StringIO(text, newline=""))


def _check_header_row(header_row: int, n_lines: int, path: Path) -> None:
    """Refuse a row of names that the first lines do not have."""
    if not 1 <= header_row <= n_lines:
        raise InputError(
            f"{option('header_row', ...)} is {header_row}, and names are in one of the first "
            f"{n_lines} lines of {shown(path)}, the first of which is 1"
        )


def _title_lines(lines: Sequence[str], delimiter: str) -> int:
    """Count the first lines that fill at most one field, which spreadsheets pad with delimiters."""
    titles = 0
    for line in lines[:_MOST_TITLES]:
        fields = [field for record in _records(line, delimiter) for field in record]
        if sum(bool(field.strip()) for field in fields) > 1:
            break
        titles += 1
    return titles


def _count_titles(text: str) -> int:
    """Count lines of one field above a row of names as wide as all rows below it."""
    lines = _lines(text)
    fits = {delimiter: _fit(_records(text, delimiter)) for delimiter in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda delimiter: fits[delimiter])
    if fits[best][0] >= _NEARLY and not _title_lines(lines, best):
        return 0
    for delimiter in _DELIMITERS:
        titles = _title_lines(lines, delimiter)
        records = _records("".join(lines[titles:]), delimiter)
        if not titles or len(records) < 2:
            continue
        share, width = _fit(records)
        are_names = all(field.strip() and shape_of(field) is None for field in records[0])
        if share >= _NEARLY and width > _WIDE and are_names:
            return titles
    return 0


def _decode(head: bytes, path: Path) -> tuple[str, str]:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return codecs.getincrementaldecoder(encoding)("replace").decode(head), encoding
    if b"\0" in head or head.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{shown(path)} is not a text file, whatever its name says; give it the ending of its "
            "format"
        )
    for encoding in _ENCODINGS:
        try:
            return codecs.getincrementaldecoder(encoding)().decode(head), encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 reads every byte")


def _records(text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) == _RECORDS:
                break
    except csv.Error:
        # The records so far are enough.
        pass
    return records


def _fit(records: list[list[str]]) -> tuple[float, int]:
    """Return how well a delimiter fits: the share of rows with the usual width, and the width."""
    if not records or len(records[0]) == 1:
        return 0.0, 0
    width = len(records[0])
    if len(records) == 1:
        return 1.0, width
    usual, rows = Counter(len(record) for record in records[1:]).most_common(1)[0]
    return (rows / (len(records) - 1) if usual in (width, width + 1) else 0.0), width


def _refuse_title(text: str, path: Path) -> None:
    """Refuse a first line with one field above rows with several."""
    for delimiter in _DELIMITERS:
        first, *rows = _records(text, delimiter)
        if len(first) == 1 and rows and all(len(row) > 1 for row in rows):
            raise InputError(
                f"{shown(path)}: the first line names 1 column, {quoted(first[0])}, and the rows "
                f"have {len(rows[-1])} fields; put the names of all columns in the first line, or "
                f"pass {option('header_row', ...)} if another line has them"
            )


def _header(records: list[list[str]], path: Path) -> list[str]:
    header, rows = records[0], records[1:]
    if not rows or any(len(row) <= len(header) for row in rows):
        return header
    if all(len(row) == len(header) + 1 and not row[-1].strip() for row in rows):
        # Every row ends in a delimiter.
        return [*header, ""]
    raise InputError(
        f"{shown(path)}: the first line names {len(header)} columns, and the rows have "
        f"{len(rows[0])} fields; put one name for each column in the first line, or pass "
        f"{option('header_row', ...)} if another line has them"
    )


def _refuse_cut(path: Path, layout: Layout) -> None:
    """Refuse a file whose last line has neither a line break nor all its fields."""
    if path.suffix.lower() == ".gz" or layout.encoding == "utf-16":
        return
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(size - _HEAD, 0))
        tail = file.read()
    last = tail[max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1 :]
    if not last.strip() or len(last) == len(tail) or b'"' in tail:
        return
    fields = last.count(layout.delimiter.encode(layout.encoding)) + 1
    if fields < len(layout.names):
        raise DataError(
            f"{shown(path)} seems to be cut off: its last line has {fields} of "
            f"{len(layout.names)} fields and no line break; fetch it again, or end the line if "
            "it is meant to be short"
        )


def _parser_words(error: Exception) -> str:
    """Explain an error of pandas' parser, which has nothing but its message."""
    match = _TOO_MANY.search(str(error))
    if match:
        return (
            f"line {match[2]} has {match[3]} fields, but there are {match[1]} columns; put values "
            "that contain the delimiter in quotes"
        )
    if "EOF inside string" in str(error):
        return "a quote is opened and never closed, or the file is cut off"
    return " ".join(str(error).split())
