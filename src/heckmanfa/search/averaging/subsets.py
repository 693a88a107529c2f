"""Least squares on every subset of some units at once, from one triangular factor.

A breadth-first tree decides one unit per level. The nodes of a level are triangular factors of the
columns still open and y, one node per entry of the last axis. To hold the first unit is to drop
its rows and columns, without arithmetic. To leave it out is to drop its columns and rotate its rows
into those below, so every subset is solved as by its own QR decomposition. The rows of the units
held give the coefficients by back substitution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask

# Stands in for an exact zero on the diagonal, so no rotation divides by zero.
_TINY = 1e-100


class Subsets:
    """All 2^q subsets of q units; subset s holds unit t if bit t of s is set."""

    def __init__(self, sizes: Sequence[int], least: Floats) -> None:
        """Prepare for units of these sizes, with ``least`` as in `Columns`, (c,)."""
        self._sizes = list(sizes)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)]).astype(int)
        self._least = least
        q, c = len(self._sizes), int(self._starts[-1])
        self._levels = [
            np.zeros((c - start + 1, c - start + 1, 1 << level))
            for level, start in enumerate(self._starts)
        ]
        self._spare = np.empty((4, c + 1, 1 << max(q - 1, 0)))
        self.coef: Floats = np.zeros((c, 1 << q))
        """coefficients of the c columns, zero where absent"""

    def solve(self, r: Floats) -> tuple[Floats, Mask]:
        """Solve all subsets, and return the residual's length and whether each is feasible.

        ``r`` is the triangular factor of the columns and y, (c + 1, c + 1). What is returned has a
        place for each subset, and `coef` holds the coefficients, until the next call; those of
        infeasible subsets are arbitrary but finite.
        """
        root = self._levels[0][:, :, 0]
        np.copyto(root, r)
        diagonal = np.einsum("ii->i", root)
        diagonal[np.abs(diagonal) < _TINY] = _TINY
        feasible = np.ones(1, dtype=bool)
        for level, size in enumerate(self._sizes):
            above, below = self._levels[level], self._levels[level + 1]
            self._branch(above, below, size)
            start = self._starts[level]
            held = feasible
            for column in range(size):
                held = held & (np.abs(above[column, column]) > self._least[start + column])
            feasible = np.concatenate([feasible, held])
        return np.abs(self._levels[-1][0, 0]), feasible

    def _branch(self, above: Floats, below: Floats, size: int) -> None:
        """Leave a level's first unit out, in the first half of the nodes below, or hold it."""
        width, nodes = len(below), above.shape[2]
        out = below[:, :, :nodes]
        for row in range(width):
            below[row, row:, nodes:] = above[size + row, size + row :]
        for column in range(size):
            source = above[size:, size:] if column == 0 else out
            self._rotate(source, above[column, size:], out)

    def _rotate(self, source: Floats, extra: Floats, out: Floats) -> None:
        """Rotate one more row into triangular factors; ``out`` may be ``source``."""
        width, nodes = extra.shape
        spare = self._spare[:, :width, :nodes]
        row_left = spare[0]
        np.copyto(row_left, extra)
        for row in range(width):
            here, left = source[row, row:], row_left[row:]
            length = np.sqrt(here[0] ** 2 + left[0] ** 2)
            if row + 1 < width:
                cosine, sine = here[0] / length, left[0] / length
                first, second, third = (part[row + 1 :] for part in spare[1:])
                np.multiply(here[1:], sine, out=first)
                np.multiply(left[1:], sine, out=second)
                np.multiply(here[1:], cosine, out=third)
                np.add(third, second, out=out[row, row + 1 :])
                np.multiply(left[1:], cosine, out=second)
                np.subtract(second, first, out=left[1:])
            out[row, row] = length

    def back_substitute(self) -> None:
        """Fill `coef` for the subsets solved last."""
        coef = self.coef
        n_subsets = coef.shape[1]
        for level in reversed(range(len(self._sizes))):
            above, start, size = self._levels[level], self._starts[level], self._sizes[level]
            nodes = 1 << level
            spread = coef.reshape(len(coef), n_subsets // (2 * nodes), 2, nodes)
            for column in reversed(range(size)):
                place = start + column
                pivot = above[column, column]
                dependent = np.abs(pivot) <= self._least[place]
                if dependent.any():
                    pivot = np.where(dependent, 1.0, pivot)
                row = above[column, column + 1 :] / pivot
                held = spread[place, :, 1]
                np.einsum("ln,lmn->mn", row[:-1], spread[place + 1 :, :, 1], out=held)
                np.subtract(row[-1], held, out=held)
