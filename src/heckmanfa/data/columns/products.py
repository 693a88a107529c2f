"""Columns that are the square of another column, or the product of two others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.arrays import Floats

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
    found: dict[str, tuple[str, ...]] = {}
    for target in range(len(names) if len(values) > _TRIED else 0):
        factors = _factors(values, target)
        # A column and one made from it are not made from each other.
        if factors and not any(names[target] in found.get(names[one], ()) for one in factors):
            found[names[target]] = tuple(names[one] for one in factors)
    return found


def _factors(values: Floats, target: int) -> tuple[int, ...]:
    """Return the columns whose square or product a column is, squares first; or none."""
    wanted = values[:, target]
    close = _ROUNDED * float(np.std(wanted))
    if close == 0.0:
        return ()
    for i, j in _candidates(values, target, close):
        differs = all(np.any(np.abs(wanted - values[:, one]) > close) for one in (i, j))
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
