"""Dummies of a category, made from its codes a block of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats


@dataclass(frozen=True, eq=False)
class Dummy:
    """A dummy of a category as a column: 1 where a row has its level, NaN where it has none."""

    codes: NDArray[Any]
    """(n,) index of each row's level; -1 if missing"""
    code: int
    """the level that the dummy stands for"""
    gaps: bool
    """whether any row is missing"""

    def __getitem__(self, rows: slice) -> Any:
        """Return some consecutive rows."""
        codes = self.codes[rows]
        inside = codes == self.code
        return np.where(codes < 0, np.nan, inside) if self.gaps else inside


@dataclass(frozen=True, eq=False)
class DummyGroup:
    """The dummies of one category in a block, however many levels it has."""

    codes: NDArray[Any]
    """(n,) as in `Dummy`"""
    places: NDArray[np.intp]
    """position in the block by code; -1 if the block does not have that dummy"""
    gaps: bool

    @classmethod
    def of(cls, dummies: Mapping[int, Dummy]) -> DummyGroup:
        """Collect dummies of one category, by their positions in the block."""
        first = next(iter(dummies.values()))
        places = np.full(max(dummy.code for dummy in dummies.values()) + 1, -1, dtype=np.intp)
        for position, dummy in dummies.items():
            places[dummy.code] = position
        return cls(first.codes, places, first.gaps)

    def write(self, block: Floats, start: int, stop: int) -> None:
        """Write rows ``start`` to ``stop`` into zeros."""
        codes = self.codes[start:stop]
        rows = np.flatnonzero((codes >= 0) & (codes < len(self.places)))
        places = self.places[codes[rows]]
        held = places >= 0
        block[rows[held], places[held]] = 1.0
        if self.gaps:
            block[np.ix_(np.flatnonzero(codes < 0), self.places[self.places >= 0])] = np.nan
