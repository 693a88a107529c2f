"""What the rows of a pass add up to, so passes over other rows are refused.

A fit reads rows that are not in memory once per iteration. A query with a random sample, or with a
column that is shuffled, gives other rows each time. The sums here agree up to rounding if the rows
are the same, whatever their order. So a query that adds floats up in another order is not refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import product
from heckmanfa.data.rows import Block, Positions
from heckmanfa.errors import DataError

# Sums over the same rows differ by less, relative to the largest that they can be; a row that
# changes one of ten million moves them by more.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over the rows of a fit; those of several blocks add up.

    Rows are multiplied by themselves and by who is selected, the outcome and the weight, so that a
    sum also changes if a column is shuffled and the others are not.
    """

    n_rows: int = 0
    n_selected: int = 0
    products: Any = 0.0
    """(v, 1 + k): one, selected, the outcome and the weight, times one and each of k features"""
    squares: Any = 0.0
    """(v,) sums of squares of the former"""
    feature_squares: Any = 0.0
    """(1 + k,) sums of squares of the latter; 0 if only `products` are needed"""

    @classmethod
    def of(cls, block: Block, mean_weight: float = 1.0, *, with_squares: bool = False) -> RowSums:
        """Add up the rows of a block, whose weights were divided by ``mean_weight``."""
        n = len(block.outcome)
        known = np.ones((3 if block.weight is None else 4, n))
        known[1] = block.selected
        known[2] = np.where(block.selected, block.outcome, 0.0)
        if block.weight is not None:
            np.multiply(block.weight, mean_weight, out=known[3])
        features = block.features
        # Numbers too large to be multiplied are not compared.
        with np.errstate(over="ignore", invalid="ignore"):
            products = product(known, features)
            if not np.isfinite(products).all():
                # Rows that are not selected may lack a feature.
                features = np.nan_to_num(features, posinf=0.0, neginf=0.0)
                products = product(known, features)
            squares: Any = 0.0
            feature_squares: Any = 0.0
            if with_squares:
                squares = np.einsum("ij,ij->i", known, known)
                feature_squares = np.r_[n, np.einsum("ij,ij->j", features, features)]
        return cls(
            n_rows=n,
            n_selected=int(np.count_nonzero(block.selected)),
            products=np.column_stack([known.sum(axis=1), products]),
            squares=squares,
            feature_squares=feature_squares,
        )

    def moved(self, places: Sequence[int | None]) -> RowSums:
        """Return the sums of other columns, given the place of each here.

        Columns that have none are not compared.
        """
        known = [0, *(0 if place is None else 1 + place for place in places)]
        new = np.array([False, *(place is None for place in places)])
        return replace(
            self,
            products=np.where(new, np.nan, self.products[:, known]),
            feature_squares=self.feature_squares[known],
        )

    def __add__(self, other: RowSums) -> RowSums:
        return RowSums(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(self))
        )

    def refuse_others(
        self, later: RowSums, columns: Positions, described: str, steady: str
    ) -> None:
        """Refuse the rows of a later pass if they are not these.

        The later pass read the features at ``columns``. ``described`` are the rows in words, and
        ``steady`` says what to do.
        """
        read = [0, *(1 + column for column in columns)]
        counts = (self.n_rows, self.n_selected), (later.n_rows, later.n_selected)
        if counts[0] != counts[1]:
            before, now = (f"{rows:,} rows, {selected:,} selected" for rows, selected in counts)
            said = f"this pass gave {now}, and an earlier one {before}"
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                most = np.outer(np.sqrt(self.squares), np.sqrt(self.feature_squares[read]))
                change = np.abs(later.products - self.products[:, read])
                if not (change > _ROUNDING * most).any():
                    return
            said = "this pass gave as many rows as an earlier one, with other values"
        raise DataError(
            f"the {described} are not the same in every pass: {said}. A fit needs the same rows "
            f"in every pass: {steady}"
        )
