"""Least squares from triangular factors, and which columns depend on which.

A tall matrix A enters only through its triangular factor R (A = QR with orthonormal Q), taken
over blocks of rows: the factors of two blocks, stacked and factored again, give the factor of
both. Nothing here forms A'A, which would lose half of the digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from heckmanfa.data.arrays import Array, Floats, triangular
from heckmanfa.text.printable import quoted

__all__ = [
    "Dependency",
    "Stacker",
    "column_norms",
    "dependencies",
    "describe_dependencies",
    "factor",
    "merge_factors",
    "residual_share",
    "solve_upper",
    "stack",
    "subset_factor",
    "symmetric",
]

# A column whose part outside the span of the columns before it is smaller than this share of
# its length is that span's, to rounding. NIST's Filip, the hardest problem that is to be solved
# rather than refused, has 5e-8.
DEPENDENT = 1e-12
_STACK_AT_ONCE = 16


@dataclass(frozen=True)
class Dependency:
    """A column that is a linear combination of columns before it."""

    column: int
    """its position"""
    on: tuple[int, ...]
    """positions of the columns it depends on; none where it is zero"""


def factor(matrix: Array, *, overwrite: bool = False) -> Floats:
    """Triangular factor R of a matrix, with min(rows, columns) rows.

    Parameters
    ----------
    matrix : (b, k) ndarray or tensor
    overwrite : bool
        Whether a matrix in Fortran order may be destroyed, which saves a copy.

    Returns
    -------
    (min(b, k), k) ndarray
    """
    rows, columns = matrix.shape
    return triangular(matrix, overwrite=overwrite) if rows else np.zeros((0, columns))


def merge_factors(factors: list[Floats]) -> Floats:
    """Triangular factor of the rows of several blocks, from their factors."""
    return factor(np.concatenate(factors))


class Stacker:
    """Collects the factors of blocks of rows into the factor of all of them."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._waiting: list[Floats] = []

    def add(self, block: Floats) -> None:
        """Take in the next block's factor."""
        self._waiting.append(block)
        if len(self._waiting) == _STACK_AT_ONCE:
            self._waiting = [merge_factors(self._waiting)]

    def result(self) -> Floats:
        """Return the (k, k) factor of what was added, the diagonal not negative.

        There are rows of zeros at the end where there were fewer rows than columns.
        """
        square = np.zeros((self._columns, self._columns))
        if self._waiting:
            r = merge_factors(self._waiting)
            square[: len(r)] = r
        return square * np.where(np.diag(square) < 0, -1.0, 1.0)[:, None]


def stack(factors: Iterable[Floats], columns: int) -> Floats:
    """Triangular factor of all rows, from the factors of blocks of rows in order.

    Parameters
    ----------
    factors : iterable of (r, k) ndarray
        What `factor` gave for each block.
    columns : int
        k.

    Returns
    -------
    (k, k) ndarray
        Upper triangular, see `Stacker.result`.
    """
    stacker = Stacker(columns)
    for block in factors:
        stacker.add(block)
    return stacker.result()


def subset_factor(r: Floats, columns: Sequence[int]) -> Floats:
    """Triangular factor of some columns of A, in the order given, from the factor of A."""
    return stack([r[:, np.asarray(columns, dtype=np.intp)]], len(columns))


def column_norms(r: Floats) -> Floats:
    """Lengths of the columns of A from its factor, safe from overflow."""
    return np.asarray(np.linalg.norm(r, axis=0))


def solve_upper(r: Floats, right: Floats, *, transposed: bool = False) -> Floats:
    """Solve r x = right, or r' x = right, for an upper triangular r of full rank."""
    if r.shape[0] == 0:
        return np.zeros_like(right)
    return np.asarray(linalg.solve_triangular(r, right, trans=1 if transposed else 0))


def symmetric(matrix: Floats) -> Floats:
    """Average a covariance with its transpose, which rounding made different."""
    return 0.5 * (matrix + matrix.T)


def residual_share(r: Floats) -> Floats:
    """For each column, the share of its length outside the span of the columns before it."""
    norms = column_norms(r)
    return np.abs(np.diag(r)) / np.where(norms > 0, norms, 1.0)


def dependencies(r: Floats, tolerance: float = DEPENDENT) -> list[Dependency]:
    """Find the columns that are linear combinations of columns before them.

    Parameters
    ----------
    r : (k, k) ndarray
        A triangular factor.
    tolerance : float
        The residual share under which a column counts as dependent.

    Returns
    -------
    list of Dependency
        In column order; without these columns the others have full rank.
    """
    found: list[Dependency] = []
    kept = list(range(r.shape[1]))
    norms = column_norms(r)
    current = r
    while True:
        bad = np.flatnonzero(~(residual_share(current) > tolerance))
        if len(bad) == 0:
            return found
        place = int(bad[0])
        weights = solve_upper(current[:place, :place], current[:place, place])
        sizes = np.abs(weights) * norms[kept[:place]]
        on = tuple(kept[i] for i in np.flatnonzero(sizes > 1e-7 * norms[kept[place]]))
        found.append(Dependency(kept[place], on if norms[kept[place]] > 0 else ()))
        del kept[place]
        current = subset_factor(r, kept)


def describe_dependencies(found: Sequence[Dependency], names: Sequence[str]) -> list[str]:
    """Say each dependency in words.

    Parameters
    ----------
    found : sequence of Dependency
        Over columns of which the first is the constant.
    names : sequence of str
        A name for each column; the first is not used.

    Returns
    -------
    list of str
        One clause a dependency.
    """
    clauses = []
    for item in found:
        others = [names[place] for place in item.on if place != 0]
        if not others:
            clauses.append(f"{quoted(names[item.column])} is constant")
        elif len(others) == 1:
            clauses.append(
                f"{quoted(names[item.column])} is a linear function of {quoted(others[0])}"
            )
        else:
            listed = ", ".join(quoted(name) for name in others[:8])
            more = f" and {len(others) - 8} more" if len(others) > 8 else ""
            # Splines and dummies that sum to one would seem to be no combination without it.
            more += " and the intercept" if 0 in item.on else ""
            clauses.append(
                f"{quoted(names[item.column])} is a linear combination of {listed}{more}"
            )
    return clauses
