"""Decimal and thousands marks: decided by all values of a file or by the user, never guessed.

``10.910`` is ten thousand nine hundred and ten in one country and less than eleven in another.
A file is written in one country, so the marks of all its values decide together: ``1,5``,
``0.125``, ``1234.5`` and ``1.234,56`` each show the decimal mark, and a single mark followed by
three digits shows nothing. If nothing in the file decides, such a column is in doubt. `Evidence`
is what a column of text shows; `decide` weighs that of all columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import (
    DECIMALS,
    NUMBER_MARKS,
    Levels,
    Shape,
    as_number,
    levels_of,
    nearly_all,
    shape_of,
    tidy,
    with_columns,
)
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted

MARKS = {".": "points", ",": "commas", "'": "apostrophes", " ": "blanks"}
"""what may separate thousands, and its name"""
BLANK = " "
# This many different texts show whether a column may hold numbers.
_FIRST = 200


def other_mark(mark: str | None) -> str:
    """Return the other of the two decimal marks."""
    return "," if mark == "." else "."


@dataclass
class Evidence:
    """A column of text in which (nearly) all cells are numbers of some country."""

    name: str
    levels: Levels
    """levels of the text; cells that are numbers already have none"""
    shapes: list[Shape | None]
    """shape of each level; None if it is not a number, or may be a code of digits and blanks"""
    percent: list[bool]
    """which levels end in a per cent sign"""
    texts: list[str]
    """the levels without their currency signs"""
    money: list[str]
    """the currency sign of each level, empty if it has none"""
    plain: bool = True
    """whether some cells are numbers already"""
    numbers: Mask | None = None
    """(n,) which cells are, if the column holds objects"""

    def example(self, decimal: str | None = None, thousands: str | None = None) -> str | None:
        """Return a level in which a mark is the decimal mark, or separates thousands."""
        for label, shape in zip(self.levels.labels, self.shapes, strict=True):
            if shape is None:
                continue
            if decimal is not None and shape.decimal == decimal:
                return label
            if thousands is not None and shape.thousands == thousands:
                return label
        return None

    def says(self, decimal: str) -> str | None:
        """Return a level that shows that a mark is the decimal mark."""
        return self.example(decimal, other_mark(decimal))

    def either(self) -> str | None:
        """Return a level whose mark may be the decimal mark or separate thousands."""
        pairs = zip(self.texts, self.shapes, strict=True)
        return next((text for text, shape in pairs if shape is not None and shape.either), None)


def read_evidence(frame: pd.DataFrame, *, blanks: bool) -> dict[str, Evidence]:
    """Return what the columns of text that hold numbers show.

    ``blanks`` is True if the user says that blanks separate thousands.
    """
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    evidence = {str(name): _read(frame[name], str(name), blanks=blanks) for name in texts}
    return {name: column for name, column in evidence.items() if column is not None}


def _read(series: pd.Series[Any], name: str, *, blanks: bool) -> Evidence | None:
    """Return what a column of text, or of objects, shows; None if it does not hold numbers."""
    # Most columns of text are words, as their first values show.
    first = [text for text in series.dropna().head(5 * _FIRST).unique() if isinstance(text, str)]
    if not first or 2 * sum(_may_be_number(text) for text in first[:_FIRST]) < len(first[:_FIRST]):
        return None
    n_plain, numbers = 0, None
    if series.dtype == object:
        is_text = series.map(lambda cell: isinstance(cell, str)).to_numpy(dtype=bool)
        rest = series[~is_text].dropna()
        n_plain = sum(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in rest)
        if n_plain < len(rest):
            return None
        numbers = ~is_text & series.notna().to_numpy(dtype=bool)
        series = series.where(is_text)
    try:
        levels = levels_of(series)
    except TypeError:
        return None
    money = [currency(label) for label in levels.labels]
    texts = [
        amount(label) if sign else label for label, sign in zip(levels.labels, money, strict=True)
    ]
    shapes = [shape_of(text) for text in texts]
    if not blanks and not _has_blanks(shapes):
        shapes = [None if shape and shape.thousands == BLANK else shape for shape in shapes]
    percent = [label.rstrip().endswith("%") for label in levels.labels]
    counts = levels.counts()
    missing = np.array([label.lower() in NUMBER_MARKS for label in levels.labels], dtype=bool)
    good = np.array([shape is not None for shape in shapes], dtype=bool)
    n_given = int(counts[~missing].sum()) + n_plain
    if not _enough(int(counts[good].sum()) + n_plain, n_given):
        return None
    return Evidence(name, levels, shapes, percent, texts, money, n_plain > 0, numbers)


def _enough(good: int, n_given: int) -> bool:
    return good == n_given or nearly_all(good, n_given)


def _may_be_number(text: str) -> bool:
    return shape_of(amount(text)) is not None or text.strip().lower() in NUMBER_MARKS


def _has_blanks(shapes: Iterable[Shape | None]) -> bool:
    """Whether blanks separate thousands: codes of digits and blanks all have the same length."""
    known = [shape for shape in shapes if shape is not None]
    blanks = [shape for shape in known if shape.thousands == BLANK]
    short = [
        shape
        for shape in known
        if shape.thousands is None and shape.decimal is None and shape.lead < 4
    ]
    return any(shape.decimal is not None for shape in blanks) or (
        len({shape.lead for shape in [*blanks, *short]}) > 1
    )


def fractions_prove(values: Floats) -> bool:
    """Whether numbers that were read with a decimal mark cannot have been written with the other.

    A number below 1, or with more than three digits before the mark, or without exactly three
    digits after it, cannot have had a mark for thousands.
    """
    size = np.abs(values[np.isfinite(values)])
    size = size[(size != np.floor(size)) & (size > 1e-4) & (size < 1e12)]
    thousandths = 1000.0 * size
    return bool(
        np.any(
            (size < 1.0) | (size >= 1000.0) | (np.abs(thousandths - np.rint(thousandths)) > 1e-6)
        )
    )


@dataclass(frozen=True)
class MarkOptions:
    """What the user says about the marks; None leaves it to the file."""

    decimal: str | None = None
    thousands: str | None = None
    """"none" means that there are no such marks"""
    by_model: bool = False
    """whether a model says so, because the table of its fit was written like that"""

    def __post_init__(self) -> None:
        """Refuse anything that is not a mark."""
        if self.decimal not in (None, *DECIMALS):
            raise InputError(
                f"{option('decimal', ...)} must be '.' or ','; got {quoted(self.decimal)}"
            )
        if self.thousands not in (None, "none", *MARKS):
            raise InputError(
                f"{option('thousands', ...)} must be ',', '.', a blank, an apostrophe, or none; "
                f"got {quoted(self.thousands)}"
            )
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError(
                f"{option('decimal', ...)} and {option('thousands', ...)} are both "
                f"{quoted(self.decimal)}; they must differ"
            )

    @property
    def settled(self) -> str | None:
        """The decimal mark, if the options leave no other."""
        if self.decimal is None and self.thousands in DECIMALS:
            return other_mark(self.thousands)
        return self.decimal


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a file are written."""

    decimal: str | None
    """None if nothing decides"""
    thousands: str
    """every mark that may separate thousands"""
    doubts: dict[str, str] = field(default_factory=dict)
    """what is wrong with a column, by its name"""

    def number(self, text: str, shape: Shape | None) -> float | None:
        """Return the number that a text spells, given its shape, or None."""
        if shape is None:
            return None
        decimal, thousands = shape.decimal, shape.thousands
        if shape.either is not None:
            if self.decimal is None:
                return None
            if shape.either == self.decimal:
                decimal = shape.either
            else:
                thousands = shape.either
        if decimal not in (None, self.decimal) or (thousands or "") not in self.thousands:
            return None
        digits = tidy(text).removesuffix("%").strip()
        if thousands is not None:
            digits = digits.replace(thousands, "")
        return as_number(digits if decimal is None else digits.replace(decimal, "."))


def decide(
    columns: Sequence[Evidence],
    asked: MarkOptions,
    delimiter: str | None,
    proven: dict[str, str] | None = None,
) -> NumberFormat:
    """Decide on the marks of a file from all its columns of text that hold numbers.

    If commas delimit the columns, the point is the decimal mark unless a value in quotes shows
    otherwise; other delimiters decide nothing. ``proven`` maps a mark to a column of numbers that
    proves that it is the decimal mark.
    """
    shown_by = {
        mark: [column.name for column in columns if column.says(mark)]
        + [name for known, name in (proven or {}).items() if known == mark]
        for mark in DECIMALS
    }
    decimal = asked.settled
    if decimal is None and any(shown_by.values()):
        commas, points = len(shown_by[","]), len(shown_by["."])
        decimal = "." if points > commas or (points == commas and delimiter == ",") else ","
        if delimiter == "," and points:
            decimal = "."
    if decimal is None and delimiter == ",":
        decimal = "."
    marks = "".join(mark for mark in MARKS if mark != decimal)
    if asked.thousands is not None:
        marks = "" if asked.thousands == "none" else asked.thousands
    decided = NumberFormat(decimal, marks)
    # A file delimited by commas is unlikely to be written like the file of the fit.
    strange = asked.by_model and delimiter == decimal == "," and not shown_by[","]
    for column in columns:
        doubt = _doubt(column, decided, asked, shown_by)
        if doubt is None and strange and column.either():
            doubt = (
                f"column {quoted(column.name)} holds {quoted(column.either())}: ',' is the "
                "decimal mark in the table of the fit, but delimits this one; pass "
                f"{option('decimal', '.')} or {option('decimal', ',')}"
            )
        if doubt:
            decided.doubts[column.name] = doubt
    return decided


def _doubt(
    column: Evidence, decided: NumberFormat, asked: MarkOptions, shown_by: dict[str, list[str]]
) -> str | None:
    """Explain what is wrong with a column; None if nothing is."""
    name = quoted(column.name)
    currencies = {
        sign: label
        for label, sign, shape in zip(
            column.levels.labels, column.money, column.shapes, strict=True
        )
        if shape is not None
    }
    if len(currencies) > 1 and set(currencies) != {""}:
        pair = " and ".join(quoted(label) for label in list(currencies.values())[:2])
        return (
            f"column {name} holds {pair}, of which not all have the same currency sign; write all "
            f"of them one way, or name the column in {option('categorical')} to take them as "
            "levels"
        )
    if column.plain and currencies and "" not in currencies:
        return (
            f"column {name} holds {quoted(next(iter(currencies.values())))} and numbers without a "
            "currency sign; write all of them one way"
        )
    signs = [
        label
        for label, is_percent, shape in zip(
            column.levels.labels, column.percent, column.shapes, strict=True
        )
        if is_percent and shape is not None
    ]
    numbers = [shape for shape in column.shapes if shape is not None]
    if signs and (len(signs) < len(numbers) or column.plain):
        return f"column {name} holds {_mixture(column)}; write all of them one way"
    if decided.decimal is None:
        text = column.either()
        if text is None:
            return None
        mark = next(mark for mark in DECIMALS if mark in text)
        return (
            f"column {name} holds {quoted(text)}, and nothing in the file says whether "
            f"{quoted(mark)} is the decimal mark or separates thousands; pass "
            f"{option('decimal', mark)} or {option('decimal', other_mark(mark))}"
        )
    bad = [
        label
        for label, text, shape in zip(
            column.levels.labels, column.texts, column.shapes, strict=True
        )
        if shape is not None and decided.number(text, shape) is None
    ]
    if not bad:
        return None
    mark = decided.decimal
    if asked.settled is not None:
        what = f"where {quoted(mark)} is the decimal mark"
        if asked.thousands is not None:
            what += f" and {option('thousands', ...)} is {quoted(asked.thousands)}"
        why = (
            f"as in the table of the fit; pass {option('decimal', other_mark(mark))} if this one "
            "is written otherwise"
            if asked.by_model
            else (
                f"as asked; check {option('decimal', ...)} and {option('thousands', ...)}, or "
                "write the column another way"
            )
        )
        return f"column {name} holds {quoted(bad[0])}, which is not a number {what}, {why}"
    others = [name for name in shown_by[mark] if name != column.name]
    why = f"as in column {quoted(others[0])}" if others else "as in its other values"
    return (
        f"column {name} holds {quoted(bad[0])}, which is not a number where {quoted(mark)} is the "
        f"decimal mark, {why}; write the file one way, or pass "
        f"{option('decimal', other_mark(mark))} if that is right"
    )


def _mixture(column: Evidence) -> str:
    """Count the numbers with and without a percent sign, and name the first of the fewer."""
    codes = column.levels.codes
    good = np.array([*(shape is not None for shape in column.shapes), False], dtype=bool)[codes]
    signed = np.array([*column.percent, False], dtype=bool)[codes] & good
    unsigned = good & ~signed
    if column.numbers is not None:
        unsigned |= column.numbers
    n_signed, n_plain = int(np.count_nonzero(signed)), int(np.count_nonzero(unsigned))
    fewer, what = (signed, "with one") if n_signed <= n_plain else (unsigned, "without")
    return (
        f"{n_signed:,} number{'s' * (n_signed != 1)} with a per cent sign and {n_plain:,} without; "
        f"the first {what} is in row {int(np.argmax(fewer)) + 1} of the data"
    )


def convert(series: pd.Series[Any], column: Evidence, decided: NumberFormat) -> pd.Series[Any]:
    """Replace text that is written with marks by numbers; other text stays.

    A column in which some text is not a number, and the rest has no marks, is returned unchanged.
    """
    labels, codes = column.levels.labels, column.levels.codes
    values = [
        decided.number(text, shape) for text, shape in zip(column.texts, column.shapes, strict=True)
    ]
    lost = [
        value is None and label.lower() not in NUMBER_MARKS
        for value, label in zip(values, labels, strict=True)
    ]
    marks = any(
        value is not None and as_number(label) != value
        for value, label in zip(values, labels, strict=True)
    )
    if any(lost) and not marks:
        return series
    numbers = np.array([np.nan if value is None else value for value in values] + [np.nan])[codes]
    if column.plain:
        text = codes >= 0
        numbers = np.where(text, numbers, pd.to_numeric(series.where(~text)).to_numpy(np.float64))
    if not any(lost):
        return pd.Series(numbers, index=series.index, name=series.name)
    stays = np.array([*lost, False])[codes]
    mixed = pd.Series(numbers, index=series.index, name=series.name).astype(object)
    return mixed.where(~stays, series.astype(object)).where(stays | ~np.isnan(numbers), None)


@dataclass(frozen=True, eq=False)
class MarkedTable:
    """A table in which text that spells numbers is read as numbers, and how."""

    frame: pd.DataFrame
    decided: NumberFormat
    seen: bool
    """whether any number has a mark"""
    thousands: str
    """the marks between thousands that occur"""
    percent: tuple[str, ...]
    """columns of percentages, read without their sign"""
    money: dict[str, str]
    """columns of amounts of money, read without their currency sign, and that sign"""
    blanked: dict[tuple[str, str], int] = field(default_factory=dict)
    """rows whose value the user says means missing, by column and value"""
    titles: int = 0
    """rows above the names that were skipped"""
    dropped: dict[str, int] = field(default_factory=dict)
    """rows that the user says are not data, by what names them"""
    n_dropped: int = 0
    """all of these"""


def apply(frame: pd.DataFrame, columns: dict[str, Evidence], decided: NumberFormat) -> MarkedTable:
    """Read text that spells numbers as numbers, given what `read_evidence` found in it."""
    sure = {name: column for name, column in columns.items() if name not in decided.doubts}
    new = {name: convert(frame[name], column, decided) for name, column in sure.items()}
    shapes = [shape for column in columns.values() for shape in column.shapes if shape is not None]
    used = {shape.thousands for shape in shapes} | {
        shape.either for shape in shapes if shape.either != decided.decimal
    }
    return MarkedTable(
        frame=with_columns(frame, new),
        decided=decided,
        seen=any(shape.decimal or shape.thousands or shape.either for shape in shapes),
        thousands="".join(mark for mark in MARKS if mark in used),
        percent=tuple(name for name, column in sure.items() if any(column.percent)),
        money={
            name: next(sign for sign in column.money if sign)
            for name, column in sure.items()
            if any(column.money)
        },
    )


_MONEY = re.compile(r"(?:[$€£¥₹₽₩₺]|\b(?:USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CNY|INR)\b)")


def currency(label: str) -> str:
    """Return the currency sign of an amount; empty if there is none, or more than one."""
    signs = _MONEY.findall(label)
    return str(signs[0]) if len(signs) == 1 else ""


def amount(label: str) -> str:
    """Return an amount of money without its sign; in parentheses, it is negative."""
    if not _MONEY.search(label):
        return label
    text = " ".join(_MONEY.sub(" ", label).split())
    text = re.sub(r"^([+-]) ", r"\1", tidy(text))
    enclosed = re.fullmatch(r"\( ?([^()]*?) ?\)", text)
    return f"-{enclosed[1]}" if enclosed else text
