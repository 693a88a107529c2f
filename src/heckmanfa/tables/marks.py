"""Decimal and thousands marks: decided by all values of a file or by the user, never guessed.

``10.910`` is ten thousand nine hundred and ten in one country and less than eleven in another.
A file is written in one country, so the marks of all its values decide together: ``1,5``,
``0.125``, ``1234.5`` and ``1.234,56`` each show the decimal mark, and a single mark followed by
three digits shows nothing. If nothing in the file decides, such a column is in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.values import DECIMALS, NUMBER_MARKS, Shape, as_number, tidy
from heckmanfa.errors import InputError
from heckmanfa.tables.evidence import Evidence, other_mark
from heckmanfa.text.printable import quoted

_WORDS = {".": "point", ",": "comma", "'": "apostrophe", " ": "blank"}


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
            raise InputError(f"--decimal must be '.' or ','; got {quoted(self.decimal)}")
        if self.thousands not in (None, "none", *_WORDS):
            raise InputError(
                f"--thousands must be ',', '.', a blank, an apostrophe, or none; got "
                f"{quoted(self.thousands)}"
            )
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError(
                f"--decimal and --thousands are both {quoted(self.decimal)}; they must differ"
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
    found = {
        mark: [column.name for column in columns if column.says(mark)]
        + [name for known, name in (proven or {}).items() if known == mark]
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
    decided = NumberFormat(decimal, marks)
    # A file delimited by commas is hardly written like the file of the fit.
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
    column: Evidence, decided: NumberFormat, asked: MarkOptions, found: dict[str, list[str]]
) -> str | None:
    """Explain what is wrong with a column; None if nothing is."""
    name = quoted(column.name)
    if column.money is not None:
        return (
            f"column {name} holds amounts of money such as {quoted(column.money)}; leave the "
            f"currency signs out, or pass --categorical {name} to take them as levels"
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
            f"{quoted(mark)} is the decimal mark or separates thousands; pass --decimal "
            f"{quoted(mark)} or --decimal {quoted(other_mark(mark))}"
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
            f"as in the table of the fit; pass --decimal {quoted(other_mark(mark))} if this one is "
            "written otherwise"
            if asked.by_model
            else "as asked; check --decimal and --thousands, or write the column another way"
        )
        return f"column {name} holds {quoted(bad[0])}, which is not a number {what}, {why}"
    others = [name for name in found[mark] if name != column.name]
    why = f"as in column {quoted(others[0])}" if others else "as in its other values"
    return (
        f"column {name} holds {quoted(bad[0])}, which is not a number where {quoted(mark)} is the "
        f"decimal mark, {why}; write the file one way, or pass --decimal "
        f"{quoted(other_mark(mark))} if that is right"
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


def with_columns(frame: pd.DataFrame, new: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    """Replace some columns; unlike ``assign``, this allows a column named self."""
    frame = frame.copy(deep=False)
    for name, values in new.items():
        frame[name] = values
    return frame


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
        thousands="".join(mark for mark in _WORDS if mark in used),
        percent=tuple(name for name, column in sure.items() if any(column.percent)),
    )
