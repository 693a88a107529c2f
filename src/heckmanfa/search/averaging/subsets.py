"""Least squares on every subset of some units, from one triangular factor.

A breadth-first tree decides one unit per level. The nodes of a level are triangular factors of the
columns still open and y, one node per entry of the last axis. To hold the first unit is to drop
its rows and columns, without arithmetic. To leave it out is to drop its columns and rotate its rows
into those below, so every subset is solved as by its own QR decomposition. The rows of the units
held give the coefficients by back substitution.

The levels of the outer units and of some inner ones are made once. Then each set of outer units is
one step, which solves the 2^q subsets of the q inner units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask

# Stands in for an exact zero on the diagonal, so no rotation divides by zero.
_TINY = 1e-100
# The most numbers in the levels that steps share, 32 MB.
_SHARED = 2**22
# Below this number of nodes, a copy with the nodes first is quicker than short inner loops.
_FEW = 8


class Subsets:
    """All subsets of q inner units beside each set of outer ones.

    Subset s holds inner unit t if bit t of s is set; outer units likewise.
    """

    def __init__(
        self, sizes: Sequence[int], n_inner: int, least: Floats, r: Floats, coef: Floats
    ) -> None:
        """Prepare for units of these sizes, the last ``n_inner`` of them inner ones.

        ``r`` is the triangular factor of the c columns of all units and y, (c + 1, c + 1), and
        ``least`` that of `Columns`, (c,). Coefficients of the inner columns will be in ``coef``, a
        row for each column and a last row of -1, which is y's.
        """
        self._n_outer = len(sizes) - n_inner
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        total = int(starts[-1])
        self._sizes = list(sizes[self._n_outer :])
        self._starts = starts[self._n_outer :] - starts[self._n_outer]
        self._least = least[starts[self._n_outer] :]
        c = int(self._starts[-1])
        widths = total + 1 - starts
        root = np.array(r, dtype=np.float64)
        diagonal = np.einsum("ii->i", root)
        diagonal[np.abs(diagonal) < _TINY] = _TINY
        self._shared = [root[:, :, None]]
        numbers = 0
        for level, size in enumerate(sizes[:-1]):
            width = int(widths[level + 1])
            numbers += width**2 << (level + 1)
            if level >= self._n_outer and numbers > _SHARED:
                break
            below = np.zeros((width, width, 2 << level))
            _branch(self._shared[-1], below, size)
            self._shared.append(below)
            if level < self._n_outer:
                del self._shared[:-1]
                numbers = width**2 << (level + 1)
        self._own = [
            np.zeros((c - start + 1, c - start + 1, 1 << level))
            for level, start in enumerate(self._starts)
            if level >= len(self._shared) - 1
        ]
        self._levels: list[Floats] = []
        self._coef = coef

    def solve(self, outer: int) -> tuple[Floats, Mask]:
        """Solve all subsets, and return the residual's length and whether each is feasible.

        What is returned has a place for each subset. `back_substitute` finds the coefficients.
        """
        among = 1 << self._n_outer
        shared = [level[:, :, outer::among] for level in self._shared]
        np.copyto(self._own[0], shared[-1])
        self._levels = [*shared[:-1], *self._own]
        feasible = np.ones(1, dtype=bool)
        for level, size in enumerate(self._sizes):
            above = self._levels[level]
            if level >= len(shared) - 1:
                _branch(above, self._levels[level + 1], size)
            held = feasible
            for column in range(size):
                least = self._least[self._starts[level] + column]
                held = held & (np.abs(above[column, column]) > least)
            feasible = np.concatenate([feasible, held])
        return np.abs(self._levels[-1][0, 0]), feasible

    def back_substitute(self) -> None:
        """Find the coefficients of the subsets solved last.

        Those of absent columns are zero, and those of infeasible subsets arbitrary but finite.
        """
        coef = self._coef
        n_subsets = coef.shape[1]
        for level in reversed(range(len(self._sizes))):
            above, start, size = self._levels[level], self._starts[level], self._sizes[level]
            nodes = 1 << level
            spread = coef.reshape(len(coef), n_subsets // (2 * nodes), 2, nodes)[:, :, 1]
            for column in reversed(range(size)):
                place = start + column
                pivot = -above[column, column]
                dependent = np.abs(pivot) <= self._least[place]
                if dependent.any():
                    pivot[dependent] = 1.0
                row = above[column, column + 1 :] / pivot
                if 1 < nodes < _FEW:
                    later = np.ascontiguousarray(spread[place + 1 :].transpose(2, 0, 1))
                    spread[place] = np.matmul(row.T[:, None, :], later)[:, 0].T
                else:
                    np.einsum("ln,lmn->mn", row, spread[place + 1 :], out=spread[place])


def _branch(above: Floats, below: Floats, size: int) -> None:
    """Leave a level's first unit out, in the first half of the nodes below, or hold it."""
    width, nodes = len(below), above.shape[2]
    out = below[:, :, :nodes]
    for row in range(width):
        below[row, row:, nodes:] = above[size + row, size + row :]
    for column in range(size):
        source = above[size:, size:] if column == 0 else out
        _rotate(source, above[column, size:], out)


def _rotate(source: Floats, extra: Floats, out: Floats) -> None:
    """Rotate one more row into triangular factors; ``out`` may be ``source``."""
    width = len(extra)
    left = np.array(extra)
    buffers = np.empty((3, *left.shape))
    for row in range(width):
        here, beside = source[row, row], left[row]
        length = np.sqrt(here * here + beside * beside)
        if row + 1 < width:
            cosine, sine = here / length, beside / length
            mine, other = source[row, row + 1 :], left[row + 1 :]
            first, second, third = buffers[:, row + 1 :]
            np.multiply(mine, sine, out=first)
            np.multiply(other, sine, out=second)
            np.multiply(mine, cosine, out=third)
            np.multiply(other, cosine, out=other)
            np.add(third, second, out=out[row, row + 1 :])
            np.subtract(other, first, out=other)
        out[row, row] = length
