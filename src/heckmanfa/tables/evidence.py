"""What the text of a column shows about the marks in a file's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import (
    NUMBER_MARKS,
    Levels,
    Shape,
    levels_of,
    nearly_all,
    shape_of,
)
from heckmanfa.data.rows import Mask

BLANK = " "
_MONEY = re.compile(r"(?:[$€£¥₹₽₩₺]|\b(?:USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CNY|INR)\b)")
# So many different texts show whether a column may hold numbers.
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
    money: str | None = None
    """a level with a currency sign"""
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
        pairs = zip(self.levels.labels, self.shapes, strict=True)
        return next((label for label, shape in pairs if shape is not None and shape.either), None)


def read_evidence(frame: pd.DataFrame, *, blanks: bool) -> dict[str, Evidence]:
    """Return what the columns of text that hold numbers show.

    ``blanks`` is True if the user says that blanks separate thousands.
    """
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    found = {str(name): _read(frame[name], str(name), blanks=blanks) for name in texts}
    return {name: column for name, column in found.items() if column is not None}


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
    shapes = [shape_of(label) for label in levels.labels]
    if not blanks and not _has_blanks(shapes):
        shapes = [None if shape and shape.thousands == BLANK else shape for shape in shapes]
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


def _money(levels: Levels, counts: Any, missing: Any) -> str | None:
    """Return an amount of money if (nearly) all levels are amounts of money."""
    amounts = [
        _MONEY.search(label) is not None and shape_of(_MONEY.sub("", label)) is not None
        for label in levels.labels
    ]
    if not _enough(int(counts[np.array(amounts)].sum()), int(counts[~missing].sum())):
        return None
    return next(
        (label for label, is_amount in zip(levels.labels, amounts, strict=True) if is_amount), None
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
