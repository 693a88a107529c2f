"""Text files of columns: find out how one is written, then let pandas' C parser read it."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from heckmanfa.data.columns.headers import check_wanted, tidy_names
from heckmanfa.data.columns.numerals import shape_of
from heckmanfa.data.columns.values import MISSING_SPELLINGS
from heckmanfa.errors import DataError, InputError
from heckmanfa.tables.marks import (
    Asked,
    Marked,
    apply,
    decide,
    fractions_prove,
    look_at,
    with_columns,
)
from heckmanfa.text.printable import quoted, shown

__all__ = ["Layout", "find_layout", "read_delimited"]

_HEAD = 1 << 18
_RECORDS = 200
# Where two fit equally well, the comma is the one that also occurs inside of values.
_DELIMITERS = (";", "\t", "|", ",")
# The second is what Windows writes; it has no character for a few bytes, the third has for all.
_ENCODINGS = ("utf-8", "cp1252", "latin-1")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_TOO_MANY = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


@dataclass(frozen=True)
class Layout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    """the mark that the first lines suggest"""
    skipped: int
    """lines above the names"""
    names: tuple[str, ...]


def read_delimited(path: Path, columns: Sequence[str] | None, asked: Asked) -> Marked:
    """Read a text file of columns.

    Parameters
    ----------
    path : Path
        Compressed by gzip where its name ends in ``.gz``.
    columns : sequence of str, optional
        Columns that have to be there; all are read, because all say how numbers are written.
    asked : Asked

    Returns
    -------
    Marked
        A row with fewer fields than there are columns is missing the last ones.
    """
    try:
        layout = find_layout(path)
        if columns is not None:
            check_wanted(columns, layout.names, path)
        _refuse_cut(path, layout)
        return _read_numbers(path, layout, asked)
    except pd.errors.ParserError as error:
        raise DataError(f"{shown(path)} cannot be read: {_parser_words(error)}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{shown(path)} is damaged or cut off: {error}; get it again") from error
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"{shown(path)} cannot be read: its rows have more fields than its header names"
        ) from error


def _read_numbers(path: Path, layout: Layout, asked: Asked) -> Marked:
    """Read a file with the decimal mark that its first lines suggest, or with both.

    What is a number with one mark is text with the other, so both readings together show how all
    values are spelt.
    """
    first = asked.settled or layout.decimal
    frame = _read(path, layout, first)
    texts = look_at(frame, asked)
    fractions, proof = _fractions(frame)
    proven = {} if proof is None else {first: proof}
    others = list(texts.values())
    shown = bool(proven) or any(column.says(first) for column in others)
    shown = shown or (first == "." and layout.delimiter == ",")
    contradicted = any(column.says("," if first == "." else ".") for column in others)
    if asked.settled is not None or (shown and not contradicted):
        decided = decide(others, asked, layout.delimiter, proven)
        marked = apply(frame, texts, decided)
        return marked._replace(seen=marked.seen or fractions)
    del frame
    return _read_twice(path, layout, asked)


def _read_twice(path: Path, layout: Layout, asked: Asked) -> Marked:
    """Read a file of which the first reading leaves open what its decimal mark is."""
    frames = {mark: _read(path, layout, mark) for mark in (".", ",")}
    texts = {mark: look_at(frame, asked) for mark, frame in frames.items()}
    spelt = texts["."] | texts[","]
    decided = decide(list(spelt.values()), asked, layout.delimiter)
    mark = decided.decimal or "."
    marked = apply(frames[mark], texts[mark], decided)
    other = "," if mark == "." else "."
    # What is in doubt stays as it is spelt.
    doubts = {name: frames[other][name] for name in decided.doubts if name in texts[other]}
    return marked._replace(
        frame=with_columns(marked.frame, doubts),
        seen=marked.seen or any(_fractions(frame)[0] for frame in frames.values()),
    )


def _fractions(frame: pd.DataFrame) -> tuple[bool, str | None]:
    """Say whether any number has a fraction, and name a column whose spelling leaves no doubt."""
    found = False
    for name in frame.columns:
        if frame[name].dtype != np.float64:
            continue
        values = frame[name].to_numpy()
        if fractions_prove(values):
            return True, str(name)
        found = found or bool(np.any(values[np.isfinite(values)] % 1.0))
    return found, None


def _read(path: Path, layout: Layout, decimal: str) -> pd.DataFrame:
    start = _ENCODINGS.index(layout.encoding) if layout.encoding in _ENCODINGS else None
    encodings = [layout.encoding] if start is None else _ENCODINGS[start:]
    for encoding in encodings:
        try:
            return _parse(path, layout, decimal, encoding)
        except UnicodeError:
            continue
    raise DataError(f"{shown(path)} is not text in {layout.encoding}, as its first bytes say it is")


def _parse(
    path: Path, layout: Layout, decimal: str, encoding: str, whole: bool = False
) -> pd.DataFrame:
    """Parse a part at a time, which is twice as fast, or whole where the parts' types differ."""
    with warnings.catch_warnings():
        # pandas cuts off fields that have no name, and only warns.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        try:
            return pd.read_csv(
                path,
                sep=layout.delimiter,
                decimal=decimal,
                skiprows=layout.skipped,
                header=0,
                names=list(layout.names),
                index_col=False,
                skipinitialspace=True,
                encoding=encoding,
                keep_default_na=False,
                na_values=list(MISSING_SPELLINGS),
                low_memory=not whole,
            )
        except pd.errors.DtypeWarning:
            return _parse(path, layout, decimal, encoding, whole=True)


def find_layout(path: Path) -> Layout:
    """Find out how a text file is written, from its first lines.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Layout
    """
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(_HEAD)
    text, encoding = _decode(head, path)
    if not text.strip():
        raise InputError(f"{shown(path)} is empty")
    if len(head) == _HEAD:
        text = text[: text.rfind("\n") + 1] or text
    skipped, delimiter = 0, None
    # Spreadsheets can be told the delimiter in a first line.
    told = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    if told:
        skipped, delimiter, text = 1, told[1], text[told.end() :]
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=lambda mark: _fit(_records(text, mark)))
        if len(_records(text, delimiter)[0]) == 1:
            _refuse_title(text, path)
    records = _records(text, delimiter)
    names = tidy_names(_header(records, path), path)
    shapes = [shape_of(field) for record in records[1:] for field in record]
    marks = Counter(shape.decimal for shape in shapes if shape is not None)
    decimal = "," if marks[","] > marks["."] else "."
    return Layout(encoding, delimiter, decimal, skipped, tuple(names))


def _decode(head: bytes, path: Path) -> tuple[str, str]:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return codecs.getincrementaldecoder(encoding)("replace").decode(head), encoding
    if b"\0" in head or head.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{shown(path)} is not a text file, whatever its name says; give it the ending of "
            "what it is"
        )
    for encoding in _ENCODINGS:
        try:
            return codecs.getincrementaldecoder(encoding)().decode(head), encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 reads every byte")


def _records(text: str, delimiter: str) -> list[list[str]]:
    found: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for record in reader:
            if record:
                found.append(record)
            if len(found) == _RECORDS:
                break
    except csv.Error:
        # What was read so far is enough to judge by.
        pass
    return found


def _fit(records: list[list[str]]) -> tuple[float, int]:
    """How well a delimiter explains a file: the share of rows as wide as most, and the width."""
    if not records or len(records[0]) == 1:
        return 0.0, 0
    width = len(records[0])
    if len(records) == 1:
        return 1.0, width
    usual, rows = Counter(len(record) for record in records[1:]).most_common(1)[0]
    return (rows / (len(records) - 1) if usual in (width, width + 1) else 0.0), width


def _refuse_title(text: str, path: Path) -> None:
    """Refuse a first line of one field above rows of more."""
    for delimiter in _DELIMITERS:
        first, *rows = _records(text, delimiter)
        if len(first) == 1 and rows and all(len(row) > 1 for row in rows):
            raise InputError(
                f"{shown(path)}: the first line names 1 column, {quoted(first[0])}, and the rows "
                "have "
                f"{len(rows[-1])} fields; put the names of all columns into the first line"
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
        f"{len(rows[0])} "
        "fields; put one name for each column into the first line"
    )


def _refuse_cut(path: Path, layout: Layout) -> None:
    """Refuse a file whose last line neither ends nor has all its fields."""
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
            f"{len(layout.names)} fields "
            "and no end; get it again, or end the line if it is meant"
        )


def _parser_words(error: Exception) -> str:
    found = _TOO_MANY.search(str(error))
    if found:
        return (
            f"line {found[2]} has {found[3]} fields where there are {found[1]} columns; put values "
            "that hold the delimiter into quotes"
        )
    if "EOF inside string" in str(error):
        return "a quote is opened and never closed, or the file is cut off"
    return " ".join(str(error).split())
