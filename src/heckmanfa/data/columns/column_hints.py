"""What the names and the numbers of columns suggest that nobody has said.

A name can say that a column labels rows, or that its numbers are codes. Only a name can tell codes
such as a state from 1 to 56: years of schooling, ages and counts are integers with few values, too.
So a column is suspected if the last word of its name is one that codes are kept under, such as
``state``, ``home_region`` or ``occupation_code``. Numbers show that a column is the square of
another, or the product of two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.tally import NumberTally

_ID = re.compile(r"(?:^|[\W_])(?:id|ids|uuid|guid)$|^(?:id|uuid|guid)[\W_]", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)$")
_INDEX = re.compile(
    r"(?:^|[\W_])(?:index|idx|key|row|row_?id|row_?num(?:ber)?|record|serial|nr|no)$"
    r"|^Unnamed: \d+$",
    re.IGNORECASE,
)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NUMBERS = frozenset({"no", "nr", "num", "number"})
_NOUN = re.compile(
    "branch|brand|cat|category|cd|city|cluster|code|codes|country|county|department|dept|district|"
    "ethnicity|fips|firm|id|ids|industry|isco|isic|language|marital|msa|municipality|nace|naics|"
    "nationality|nuts|occ|occupation|party|plant|postcode|prefecture|province|race|region|religion|"
    "sector|sic|site|soc|state|store|territory|tract|type|ward|zip|zipcode"
)
# Before such a noun, these say that something is counted or measured.
_AMOUNT = re.compile(
    "average|avg|count|days|dist|distance|log|mean|median|months|n|num|number|per|pct|percent|rate|"
    "share|sum|total|years"
)
# Two numbers are the same as a dummy, up to scale.
_FEWEST = 3


@dataclass(frozen=True)
class CodedNumbers:
    """A column of integers that may be codes."""

    column: str
    n_values: int
    """how many different ones there are"""
    low: float
    high: float


def is_identifier_name(name: str) -> bool:
    """Whether a column is named like an identifier or a row number."""
    return is_id_name(name) or _INDEX.search(name) is not None


def is_id_name(name: str) -> bool:
    """Whether a column is named like an identifier."""
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def is_code_name(name: str) -> bool:
    """Whether a column is named like one of codes."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] in _NUMBERS:
        words = words[:-1]
    if not words or any(_AMOUNT.fullmatch(word) for word in words[:-1]):
        return False
    return _NOUN.fullmatch(words[-1]) is not None


def find_coded_numbers(tallies: Mapping[str, NumberTally]) -> tuple[CodedNumbers, ...]:
    """Return the columns of numbers that may be codes; their tallies keep distinct values."""
    return tuple(
        CodedNumbers(name, tally.distinct, tally.low, tally.high)
        for name, tally in tallies.items()
        if is_code_name(name) and tally.integers and tally.low >= 0 and tally.distinct >= _FEWEST
    )


MOST_ROWS = 20_000
"""as many rows are enough to tell"""

# A square that was rounded when it was written is this close, in standard deviations.
_ROUNDED = 1e-3
# Pairs of columns are tried on so many rows first.
_TRIED = 12
# With more columns than this, only squares are looked for.
_MANY = 300


def find_products(values: Floats, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Find columns of numbers, (n, k), that follow from others, up to rounding.

    Returns
    -------
    dict
        By the name of a column: the one that it is the square of, or the two that it is the
        product of.
    """
    products: dict[str, tuple[str, ...]] = {}
    for target in range(len(names) if len(values) > _TRIED else 0):
        factors = _factors(values, target)
        # A column and one made from it are not made from each other.
        if factors and not any(
            names[target] in products.get(names[factor], ()) for factor in factors
        ):
            products[names[target]] = tuple(names[factor] for factor in factors)
    return products


def _factors(values: Floats, target: int) -> tuple[int, ...]:
    """Return the columns whose square or product a column is, squares first; or none."""
    wanted = values[:, target]
    close = _ROUNDED * float(np.std(wanted))
    if close == 0.0:
        return ()
    for i, j in _candidates(values, target, close):
        differs = all(np.any(np.abs(wanted - values[:, factor]) > close) for factor in (i, j))
        if differs and not np.any(np.abs(wanted - values[:, i] * values[:, j]) > close):
            return (i,) if i == j else (i, j)
    return ()


def _candidates(values: Floats, target: int, close: float) -> list[tuple[int, int]]:
    """Find pairs whose product is the column in a few rows, squares first."""
    wanted = values[:, target]
    # Where a column is far from zero, products of two columns that are mostly zero differ from it.
    rows = np.argsort(-np.abs(wanted), kind="stable")[:_TRIED]
    n = values.shape[1]
    row = values[rows[0]]
    first = second = np.arange(n)
    if n <= _MANY:
        products = np.abs(np.multiply.outer(row, row) - wanted[rows[0]]) <= close
        first, second = np.nonzero(np.triu(products))
    for row, value in zip(values[rows], wanted[rows], strict=True):
        agree = np.abs(row[first] * row[second] - value) <= close
        first, second = first[agree], second[agree]
    kept = (first != target) & (second != target)
    pairs = zip(first[kept].tolist(), second[kept].tolist(), strict=True)
    return sorted(pairs, key=lambda pair: (pair[0] != pair[1], pair))
