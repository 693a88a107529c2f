"""Triangular factors of rows in which many columns are never nonzero together: dummies of levels.

Such columns G are orthogonal. So the factor of [G, D] is [[S, T], [0, R]], with S diagonal (the
lengths of G's columns), T = S^-1 G'D, and R the factor of D - G S^-1 T, a matrix of few columns.
Stacking factors of several blocks takes the same steps. A category of 500 levels then costs as much
as a few numbers, where Householder's method would take 500 columns for dense ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from heckmanfa.data.arrays import Array, Floats, triangular
from heckmanfa.data.rows import Groups, Mask

# With fewer such columns, the steps above do not pay.
_LEAST_COLUMNS = 32
# A column may be one of them if at most this share of a block's rows is nonzero.
_SPARSE = 0.125


@dataclass(frozen=True)
class DisjointFactor:
    """The factor of some rows of [G, D], in which G has g columns and D the d others."""

    width: int
    """columns of both"""
    columns: Groups
    """(g,) the positions of G's columns, in order; those of D's are the others, in order"""
    lengths: Floats
    """(g,) S"""
    cross: Floats
    """(g, d) T"""
    rest: Floats
    """(r, d), R or rows with this factor"""

    @property
    def _others(self) -> Groups:
        return np.setdiff1d(np.arange(self.width), self.columns, assume_unique=True)

    def dense(self) -> Floats:
        """Return rows (g + r, width) with the same triangular factor, in the order of columns."""
        g = len(self.columns)
        rows = np.zeros((g + len(self.rest), self.width), order="F")
        rows[np.arange(g), self.columns] = self.lengths
        rows[:g, self._others] = self.cross
        rows[g:, self._others] = self.rest
        # A level without rows has none here either.
        used: Mask = np.concatenate([self.lengths > 0, np.ones(len(self.rest), dtype=bool)])
        return np.asarray(rows[used])

    def with_fewer(self, columns: Groups) -> DisjointFactor:
        """Move the columns of G that are not among some to D."""
        if len(columns) == len(self.columns):
            return self
        kept = np.isin(self.columns, columns)
        others = np.setdiff1d(np.arange(self.width), columns, assume_unique=True)
        place = np.searchsorted(others, self._others)
        moved = np.searchsorted(others, self.columns[~kept])
        cross = np.zeros((len(columns), len(others)))
        cross[:, place] = self.cross[kept]
        rest = np.zeros((len(moved) + len(self.rest), len(others)))
        rest[np.arange(len(moved)), moved] = self.lengths[~kept]
        rest[: len(moved), place] = self.cross[~kept]
        rest[len(moved) :, place] = self.rest
        return DisjointFactor(self.width, columns, self.lengths[kept], cross, rest)


def disjoint_factor(matrix: Array) -> DisjointFactor | None:
    """Return the factor of a matrix (b, k); None if few of its columns are disjoint."""
    if not isinstance(matrix, np.ndarray) or matrix.shape[1] < _LEAST_COLUMNS:
        return None
    nonzero = np.asfortranarray(matrix != 0)
    candidates = np.flatnonzero(np.count_nonzero(nonzero, axis=0) <= _SPARSE * len(matrix))
    if len(candidates) < _LEAST_COLUMNS:
        return None
    columns = _disjoint(nonzero, candidates)
    if len(columns) < _LEAST_COLUMNS:
        return None
    others = np.setdiff1d(np.arange(matrix.shape[1]), columns, assume_unique=True)
    dense = matrix[:, others]
    if not np.isfinite(dense).all():
        return None
    place, row = np.divmod(np.flatnonzero(nonzero[:, columns].T.reshape(-1)), len(matrix))
    values = matrix[row, columns[place]]
    lengths = np.sqrt(np.bincount(place, values * values, minlength=len(columns)))
    unit = sparse.csr_array(
        (values / lengths[place], (row, place)), shape=(len(matrix), len(columns))
    )
    cross = np.asarray(unit.T @ dense)
    rest = triangular(dense - unit @ cross) if dense.size else dense[:0]
    return DisjointFactor(matrix.shape[1], columns, lengths, cross, rest)


def merge_disjoint(factors: Sequence[DisjointFactor]) -> DisjointFactor | None:
    """Return the factor of the rows of several blocks; None if they share few disjoint columns."""
    columns = factors[0].columns
    for other in factors[1:]:
        columns = np.intersect1d(columns, other.columns, assume_unique=True)
    if len(columns) < _LEAST_COLUMNS:
        return None
    factors = [factor.with_fewer(columns) for factor in factors]
    each = np.stack([factor.lengths for factor in factors])
    crosses = np.stack([factor.cross for factor in factors])
    lengths = np.sqrt(np.sum(each * each, axis=0))
    share = (each * _inverse(lengths))[:, :, None]
    cross = np.sum(share * crosses, axis=0)
    away = (crosses - share * cross).reshape(each.size, cross.shape[1])
    rows = np.concatenate([away, *(factor.rest for factor in factors)])
    rest = triangular(rows) if rows.size else rows[:0]
    return DisjointFactor(factors[0].width, columns, lengths, cross, rest)


def _disjoint(nonzero: Mask, candidates: Groups) -> Groups:
    """Return the candidates that share no row with one before them."""
    if np.count_nonzero(nonzero[:, candidates], axis=1).max(initial=0) <= 1:
        return candidates
    taken, chosen = np.zeros(len(nonzero), dtype=bool), []
    for column in candidates:
        if not np.any(taken & nonzero[:, column]):
            taken |= nonzero[:, column]
            chosen.append(column)
    return np.array(chosen, dtype=np.intp)


def _inverse(lengths: Floats) -> Floats:
    return np.where(lengths > 0, 1.0 / np.where(lengths > 0, lengths, 1.0), 0.0)
