"""Nodes of the search tree, and their models, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import DEPENDENT, column_norms, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices

Words = NDArray[np.uint64]

# Rounding of the inverse Gram matrix's downdates, as a share of the SSE. Above the largest, models
# are solved from the triangular factor.
_LARGEST_SLACK = 1e-6
_LEAST_SLACK = 1e-9


@dataclass
class Nodes:
    """B nodes with u free units, and c = u + 1 columns or, with groups, more."""

    sse: Floats
    """(B,)"""
    size: NDArray[np.int64]
    """(B,) columns of X in the model"""
    bound: Floats
    """(B,) lower bound on the loss of the models below"""
    free: NDArray[np.int64]
    """(B, u) which single columns may be dropped"""
    words: Words
    """(B, W) the model as bits"""
    inverse: Floats | None
    """(B, c, c) inverse Gram matrix of the free columns, then lambda"""
    coef: Floats | None
    """(B, c) their coefficients"""

    def __len__(self) -> int:
        return len(self.sse)

    def pick(self, rows: Any) -> Nodes:
        """Return some of the nodes."""
        parts: list[Any] = [None if part is None else part[rows] for part in self.arrays]
        return Nodes(*parts)

    @property
    def arrays(self) -> list[Any]:
        """The fields, in order."""
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return sum(part.nbytes for part in self.arrays if part is not None)

    @classmethod
    def join(cls, parts: list[Nodes]) -> Nodes:
        """Concatenate batches of nodes."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(part.arrays for part in parts), strict=True)
        joined: list[Any] = [None if part[0] is None else np.concatenate(part) for part in columns]
        return cls(*joined)


class Models:
    """The columns of a search, scaled, and the models on them."""

    def __init__(self, moments: Moments, choices: Choices) -> None:
        self.groups = [unit for unit in choices.units if len(unit) > 1]
        singles = [unit[0] for unit in choices.units if len(unit) == 1]
        self.n_always, self.n_singles = len(choices.always), len(singles)
        grouped = [column for group in self.groups for column in group]
        self.columns = [*choices.always, *grouped, *singles]
        k = len(self.columns)
        tail = [len(moments.columns) + 1, len(moments.columns) + 2]
        r = subset_factor(moments.factor, [0, *moments.places(self.columns), *tail])
        centred = r[1:, 1:]
        norms = column_norms(centred[:, :-1])
        norms = np.where(norms > 0, norms, 1.0)
        raw = column_norms(r[:, 1:-1])
        self._share = norms / np.where(raw > 0, raw, 1.0)
        self.matrix = np.column_stack([centred[:, :-1] / norms, centred[:, -1]])
        self.imr_norm = float(norms[-1])
        self.k, self.n_words = k, k // 64 + 1
        index = np.arange(k)
        self.bits: Words = np.zeros((k, self.n_words), dtype=np.uint64)
        self.bits[index, index // 64] = np.uint64(1) << (index % 64).astype(np.uint64)
        self.all_bits = np.bitwise_or.reduce(self.bits, axis=0)
        self._set_inverse()

    def _set_inverse(self) -> None:
        """Invert the Gram matrix, if that keeps enough digits for every model below."""
        x, y = self.matrix[:, :-1], self.matrix[:, -1]
        gram = x.T @ x
        smallest = float(np.linalg.eigvalsh(gram)[0])
        total = float(y @ y)
        self.inverse: Floats | None = None
        self.slack = _LEAST_SLACK
        rounding = 64.0 * len(gram) * np.finfo(float).eps
        # The inverse of a nearly singular matrix gives an SSE of any size, which would hide the
        # rounding from the check below.
        if smallest <= rounding / _LARGEST_SLACK:
            return
        inverse: Floats = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        coef = inverse @ (x.T @ y)
        sse = float(np.sum((y - x @ coef) ** 2))
        slack = rounding / (smallest * max(sse / total, np.finfo(float).tiny))
        if slack <= _LARGEST_SLACK:
            self.slack = max(slack, _LEAST_SLACK)
            self.inverse, self.coef, self.sse = inverse, coef, sse

    def masks(self, words: Words) -> Mask:
        """Convert words to masks over the search's columns, (N, k)."""
        index = np.arange(self.k)
        found = words[:, index // 64] >> (index % 64).astype(np.uint64)
        return np.asarray((found & np.uint64(1)).astype(bool))

    def solve(self, words: Words) -> tuple[Floats, Floats, Floats, Mask]:
        """SSE, beta_H, its v, and whether the model can be solved, from the triangular factor."""
        masks = self.masks(words)
        sizes = masks.sum(axis=1)
        sse, imr, spread = np.empty((3, len(words)))
        feasible = np.zeros(len(words), dtype=bool)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            chosen = np.nonzero(masks[rows])[1].reshape(len(rows), size)
            tail = np.broadcast_to([self.k, self.k + 1], (len(rows), 2))
            use = np.concatenate([chosen, tail], axis=1)
            r: Floats = np.asarray(np.linalg.qr(np.moveaxis(self.matrix[:, use], 1, 0), mode="r"))
            diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
            sse[rows] = diagonal[:, -1] ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                imr[rows] = r[:, size, size + 1] / r[:, size, size]
                spread[rows] = 1.0 / r[:, size, size] ** 2
            share = diagonal[:, :-1] * self._share[use[:, :-1]]
            feasible[rows] = np.all(share > DEPENDENT, axis=1)
        return sse, imr, spread, feasible


def without(nodes: Nodes, rows: Any, own: Any, rest: Any) -> tuple[Floats | None, Floats | None]:
    """Inverse Gram matrix and coefficients of ``rest`` and lambda after ``own`` is dropped."""
    if nodes.inverse is None or nodes.coef is None:
        return None, None
    c = nodes.coef.shape[1]
    keep = np.concatenate([rest, np.full((len(rows), 1), c - 1)], axis=1)
    # Positions in the flattened arrays: NumPy takes from one axis much faster than from three.
    line = rows[:, None] * c + keep
    own_line = rows * c + own
    entries, coefs = nodes.inverse.ravel(), nodes.coef.ravel()
    column = entries.take(line * c + own[:, None])
    share = column / entries.take(own_line * c + own)[:, None]
    inverse = entries.take((line * c)[:, :, None] + keep[:, None, :])
    inverse -= share[:, :, None] * column[:, None, :]
    return inverse, coefs.take(line) - share * coefs.take(own_line)[:, None]
