"""Decimal and thousands marks: read from all values of a file, or asked for, and never guessed.

``10.910`` is ten thousand nine hundred and ten in one country and less than eleven in another.
A file is written in one country, so the marks of all its values together decide: ``1,5``,
``0.125``, ``1234.5`` and ``1.234,56`` each say which mark is the decimal one, and one mark followed
by three digits says nothing. Where nothing in the file does, such a column is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.numerals import DECIMALS, Shape, shape_of, tidy
from heckmanfa.data.columns.values import NUMBER_MARKS, Levels, as_number, levels_of, nearly_all
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

__all__ = [
    "Asked",
    "Decided",
    "Evidence",
    "Marked",
    "apply",
    "decide",
    "fractions_prove",
    "look_at",
    "with_columns",
]

_BLANK = " "
_MONEY = re.compile(r"(?:[$€£¥₹₽₩₺]|\b(?:USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CNY|INR)\b)")
# So many different texts say whether a column is worth a closer look.
_FIRST = 200
_WORDS = {".": "point", ",": "comma", "'": "apostrophe", " ": "blank"}


@dataclass(frozen=True)
class Asked:
    """What the user says of the marks; None leaves it to the file."""

    decimal: str | None = None
    thousands: str | None = None
    """"none" where there are no such marks"""
    by_model: bool = False
    """whether a model says so, because the table that it was fitted to was written like that"""

    def __post_init__(self) -> None:
        """Refuse what is no mark."""
        if self.decimal not in (None, *DECIMALS):
            raise InputError(f"--decimal must be '.' or ','; got {quoted(self.decimal)}")
        if self.thousands not in (None, "none", *_WORDS):
            raise InputError(
                f"--thousands must be ',', '.', a blank, an apostrophe, or none; got "
                f"{quoted(self.thousands)}"
            )
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError(
                f"--decimal and --thousands are both {quoted(self.decimal)}; they have to differ"
            )

    @property
    def settled(self) -> str | None:
        """The decimal mark, where what was said leaves no other."""
        if self.decimal is None and self.thousands in DECIMALS:
            return _other(self.thousands)
        return self.decimal


@dataclass
class Evidence:
    """A column of text cells in which (nearly) all are numbers, of whatever country."""

    name: str
    levels: Levels
    """of the text; cells that are numbers already are none of them"""
    shapes: list[Shape | None]
    """of each level, None where it is no number, or may be a code of digits and blanks"""
    percent: list[bool]
    """which levels end in a per cent sign"""
    money: str | None = None
    """a level with a currency sign"""
    plain: bool = True
    """whether there are cells that are numbers already"""
    numbers: Mask | None = None
    """(n,) which cells are, where they were looked at one by one"""

    def example(self, decimal: str | None = None, thousands: str | None = None) -> str | None:
        """Return a level in which a mark is decimal, or separates thousands."""
        for label, shape in zip(self.levels.labels, self.shapes, strict=True):
            if shape is None:
                continue
            if decimal is not None and shape.decimal == decimal:
                return label
            if thousands is not None and shape.thousands == thousands:
                return label
        return None

    def says(self, decimal: str) -> str | None:
        """Return a level which shows that a mark is the decimal one."""
        return self.example(decimal, _other(decimal))

    def either(self) -> str | None:
        """Return a level whose mark may be decimal or separate thousands."""
        pairs = zip(self.levels.labels, self.shapes, strict=True)
        return next((label for label, shape in pairs if shape is not None and shape.either), None)


@dataclass(frozen=True)
class Decided:
    """How the numbers of a file are written."""

    decimal: str | None
    """None where nothing decides"""
    thousands: str
    """every mark that may separate thousands"""
    doubts: dict[str, str] = field(default_factory=dict)
    """what is wrong with a column, by its name"""

    def number(self, text: str, shape: Shape | None) -> float | None:
        """Return the number that a text of some shape is, or None."""
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


def _other(mark: str | None) -> str:
    return "," if mark == "." else "."


# What a column shows. -----------------------------------------------------------------------------


def _look(series: pd.Series[Any], name: str, asked: Asked) -> Evidence | None:
    """Look at the text of a column; None where it does not hold numbers.

    Parameters
    ----------
    series : Series
        Text, or objects of which some are text.
    name : str
    asked : Asked

    Returns
    -------
    Evidence or None
    """
    # Most columns of text are words, and their first values say so.
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
    shapes = [shape_of(label) for label in levels.labels]
    if asked.thousands != _BLANK and not _has_blanks(shapes):
        shapes = [None if shape and shape.thousands == _BLANK else shape for shape in shapes]
    percent = [label.rstrip().endswith("%") for label in levels.labels]
    counts = levels.counts()
    missing = np.array([label.lower() in NUMBER_MARKS for label in levels.labels], dtype=bool)
    good = np.array([shape is not None for shape in shapes], dtype=bool)
    n_given = int(counts[~missing].sum()) + n_plain
    money = None
    if not good.any():
        money = _money(levels, counts, missing)
    if money is None and not _enough(int(counts[good].sum()) + n_plain, n_given):
        return None
    return Evidence(name, levels, shapes, percent, money, n_plain > 0, numbers)


def _enough(good: int, given: int) -> bool:
    return good == given or nearly_all(good, given)


def _may_be_number(text: str) -> bool:
    return shape_of(_MONEY.sub("", text)) is not None or text.strip().lower() in NUMBER_MARKS


def _has_blanks(shapes: Iterable[Shape | None]) -> bool:
    """Whether blanks part thousands: codes of digits and blanks all have the same length."""
    known = [shape for shape in shapes if shape is not None]
    blanks = [shape for shape in known if shape.thousands == _BLANK]
    short = [
        shape
        for shape in known
        if shape.thousands is None and shape.decimal is None and shape.lead < 4
    ]
    return any(shape.decimal is not None for shape in blanks) or (
        len({shape.lead for shape in [*blanks, *short]}) > 1
    )


def _money(levels: Levels, counts: Any, missing: Any) -> str | None:
    """Return an amount of money, where (nearly) all levels are such."""
    amounts = [
        _MONEY.search(label) is not None and shape_of(_MONEY.sub("", label)) is not None
        for label in levels.labels
    ]
    if not _enough(int(counts[np.array(amounts)].sum()), int(counts[~missing].sum())):
        return None
    return next((one for one, is_one in zip(levels.labels, amounts, strict=True) if is_one), None)


def fractions_prove(values: Floats) -> bool:
    """Whether numbers that were read with a decimal mark can have been written with no other.

    What is below 1, or has more than three digits before the mark, or other than three behind it,
    cannot have been a number with a mark for thousands.
    """
    size = np.abs(values[np.isfinite(values)])
    size = size[(size != np.floor(size)) & (size > 1e-4) & (size < 1e12)]
    thousandths = 1000.0 * size
    return bool(
        np.any(
            (size < 1.0) | (size >= 1000.0) | (np.abs(thousandths - np.rint(thousandths)) > 1e-6)
        )
    )


# The decision. ------------------------------------------------------------------------------------


def decide(
    columns: Sequence[Evidence],
    asked: Asked,
    delimiter: str | None,
    proven: dict[str, str] | None = None,
) -> Decided:
    """Decide on the marks of a file.

    Parameters
    ----------
    columns : sequence of Evidence
        All columns of text that hold numbers.
    asked : Asked
    delimiter : str or None
        Of columns. A comma leaves the point as the decimal mark unless a value in quotes says
        otherwise; other delimiters say nothing.
    proven : dict of str to str, optional
        A column that shows a mark to be decimal without being text, by the mark.

    Returns
    -------
    Decided
    """
    found = {
        mark: [column.name for column in columns if column.says(mark)]
        + [one for known, one in (proven or {}).items() if known == mark]
        for mark in DECIMALS
    }
    decimal = asked.settled
    if decimal is None and any(found.values()):
        commas, points = len(found[","]), len(found["."])
        decimal = "." if points > commas or (points == commas and delimiter == ",") else ","
        if delimiter == "," and points:
            decimal = "."
    if decimal is None and delimiter == ",":
        decimal = "."
    marks = "".join(mark for mark in _WORDS if mark != decimal)
    if asked.thousands is not None:
        marks = "" if asked.thousands == "none" else asked.thousands
    decided = Decided(decimal, marks)
    # A file that commas delimit is hardly written as that of the fit was.
    strange = asked.by_model and delimiter == decimal == "," and not found[","]
    for column in columns:
        doubt = _doubt(column, decided, asked, found)
        if doubt is None and strange and column.either():
            doubt = (
                f"column {quoted(column.name)} holds {quoted(column.either())}: ',' is the decimal "
                "mark in the table of the fit, but delimits this one; pass --decimal '.' or "
                "--decimal ','"
            )
        if doubt:
            decided.doubts[column.name] = doubt
    return decided


def _doubt(
    column: Evidence, decided: Decided, asked: Asked, found: dict[str, list[str]]
) -> str | None:
    """Say what is wrong with a column, where something is."""
    name = quoted(column.name)
    if column.money is not None:
        return (
            f"column {name} holds amounts of money such as {quoted(column.money)}; leave the "
            f"currency signs out, or pass --categorical {name} to take them as levels"
        )
    signs = [
        label
        for label, is_one, shape in zip(
            column.levels.labels, column.percent, column.shapes, strict=True
        )
        if is_one and shape is not None
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
            f"{quoted(mark)} is the decimal mark or separates thousands; pass --decimal "
            f"{quoted(mark)} or "
            f"--decimal {quoted(_other(mark))}"
        )
    pairs = zip(column.levels.labels, column.shapes, strict=True)
    bad = [
        label
        for label, shape in pairs
        if shape is not None and decided.number(label, shape) is None
    ]
    if not bad:
        return None
    mark = decided.decimal
    if asked.settled is not None:
        what = f"where {quoted(mark)} is the decimal mark"
        if asked.thousands is not None:
            what += f" and --thousands is {quoted(asked.thousands)}"
        why = (
            f"as in the table of the fit; pass --decimal {quoted(_other(mark))} if this one is "
            "written "
            "otherwise"
            if asked.by_model
            else "as asked; look at --decimal and --thousands, or write the column another way"
        )
        return f"column {name} holds {quoted(bad[0])}, which is not a number {what}, {why}"
    others = [name for name in found[mark] if name != column.name]
    why = f"as in column {quoted(others[0])}" if others else "as in its other values"
    return (
        f"column {name} holds {quoted(bad[0])}, which is not a number where {quoted(mark)} is the "
        "decimal "
        f"mark, {why}; write the file one way, or pass --decimal {quoted(_other(mark))} if that "
        "is right"
    )


def _mixture(column: Evidence) -> str:
    """Say how many numbers have a per cent sign and how many have none, and where the fewer are."""
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


def convert(series: pd.Series[Any], column: Evidence, decided: Decided) -> pd.Series[Any]:
    """Put numbers in place of text that is written with marks; what is none stays text.

    Parameters
    ----------
    series : Series
    column : Evidence
        Of this column.
    decided : Decided

    Returns
    -------
    Series
        The same where some is no number, and the rest can be read without knowing of marks.
    """
    pairs = list(zip(column.levels.labels, column.shapes, strict=True))
    values = [decided.number(label, shape) for label, shape in pairs]
    codes = column.levels.codes
    lost = [
        value is None and label.lower() not in NUMBER_MARKS
        for value, (label, _) in zip(values, pairs, strict=True)
    ]
    marks = any(
        value is not None and as_number(label) != value
        for value, (label, _) in zip(values, pairs, strict=True)
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


class Marked(NamedTuple):
    """A table whose text is read as numbers where it is such, and how."""

    frame: pd.DataFrame
    decided: Decided
    seen: bool
    """whether any number has a mark"""
    thousands: str
    """the marks between thousands that values have"""
    percent: tuple[str, ...]
    """columns in per cent, of which the sign was left out"""


def look_at(frame: pd.DataFrame, asked: Asked) -> dict[str, Evidence]:
    """Look at all text of a table."""
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    found = {str(name): _look(frame[name], str(name), asked) for name in texts}
    return {name: column for name, column in found.items() if column is not None}


def with_columns(frame: pd.DataFrame, new: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    """Put others in place of some columns; unlike with ``assign``, one may be called self."""
    frame = frame.copy(deep=False)
    for name, values in new.items():
        frame[name] = values
    return frame


def apply(frame: pd.DataFrame, columns: dict[str, Evidence], decided: Decided) -> Marked:
    """Read the text of a table as numbers, where it is such.

    Parameters
    ----------
    frame : DataFrame
    columns : dict of str to Evidence
        What `look_at` found in it.
    decided : Decided

    Returns
    -------
    Marked
    """
    sure = {name: column for name, column in columns.items() if name not in decided.doubts}
    new = {name: convert(frame[name], column, decided) for name, column in sure.items()}
    shapes = [shape for column in columns.values() for shape in column.shapes if shape is not None]
    used = {shape.thousands for shape in shapes} | {
        shape.either for shape in shapes if shape.either != decided.decimal
    }
    return Marked(
        frame=with_columns(frame, new),
        decided=decided,
        seen=any(shape.decimal or shape.thousands or shape.either for shape in shapes),
        thousands="".join(mark for mark in _WORDS if mark in used),
        percent=tuple(name for name, column in sure.items() if any(column.percent)),
    )
