"""Typical rows of a table: medoids of the rows with an outcome, and of those without.

A medoid is the row whose squared distances from all rows of its group have the smallest sum: the
row nearest to the mean of the group. Distances are in standardised numbers, and two rows of
different levels of a category are as far apart as two rows of a number are on average. So medoids
depend neither on units, nor on the reference level, nor on the order of rows.

Each group is halved at the median of the expected outcome, and each half has its medoid: these
differ in what matters to the outcome, where clusters of many features would differ by chance. The
expected outcome and the index of selection count in distances as much as all features together, so
a row is not typical in features that hardly matter alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Mask, Rows
from heckmanfa.results.naming import Naming

# Of more rows, as many evenly spread ones are read.
_MOST_ROWS = 50_000
# A half of fewer rows has no typical row: it would show somebody.
_FEWEST = 5
# Distances, and expected outcomes, that differ by less are equal up to rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Rows of a fit, in memory."""

    features: Floats
    """(n, K)"""
    selected: Mask
    weight: Floats
    """(n,) ones without weights"""
    points: Floats
    """(n, P) where the rows are, for distances"""

    @classmethod
    def read(cls, rows: Rows, naming: Naming, columns: Sequence[int], *, whole: bool) -> SomeRows:
        """Read some columns of the rows that have them all; other columns are zero.

        Of many rows, evenly spread ones are read, unless the ``whole`` is wanted. Rows in which one
        of the columns is missing stay, and are in no group.
        """
        some = rows if whole else rows.pilot(_MOST_ROWS)
        blocks = list(some.map(_read, columns=list(columns)))
        values, selected, weight = (np.concatenate(part) for part in zip(*blocks, strict=True))
        features = np.zeros((len(values), len(naming.sources)))
        features[:, list(columns)] = values
        complete = np.isfinite(values).all(axis=1)
        weight = np.where(complete, weight, 0.0)
        points = _points(np.where(complete[:, None], features, 0.0), weight, naming, columns)
        return cls(features, selected, weight, points)

    @property
    def known(self) -> Mask:
        """The rows that count and have every feature."""
        return np.asarray(self.weight > 0.0)

    def seen_by(self, indexes: Sequence[Floats]) -> SomeRows:
        """Let distances count what a model says of rows as much as all their features together."""
        share = self.weight / self.weight.sum()
        seen = []
        for index in indexes:
            centred = np.where(self.known, index, 0.0)
            centred = centred - share @ centred
            spread = np.sqrt(share @ centred**2)
            seen.append(centred / spread if spread > 0.0 else np.zeros_like(centred))
        reach = np.sqrt(self.points.shape[1])
        return replace(self, points=np.column_stack([self.points, *(reach * one for one in seen)]))

    def medoid(self, group: Mask) -> int:
        """Return the position of the medoid of a group of rows.

        Of several at the same distance, it is the first in the order of their features.
        """
        places = np.flatnonzero(group)
        points, weight = self.points[places], self.weight[places]
        apart = np.sum((points - weight @ points / weight.sum()) ** 2, axis=1)
        near = places[apart <= apart.min() * (1.0 + _ROUNDING) + _ROUNDING]
        order = np.lexsort(self.features[near].T[::-1])
        return int(near[order[0]])

    def halves(self, group: Mask, expected: Floats) -> list[Mask]:
        """Halve a group of rows at the median of what is expected of them, the lower half first.

        A group that cannot be halved into enough rows stays whole.
        """
        places = np.flatnonzero(group)
        order = places[np.argsort(expected[places], kind="stable")]
        share = np.cumsum(self.weight[order])
        middle = expected[order[np.searchsorted(share, 0.5 * share[-1])]]
        reach = _ROUNDING * max(float(np.ptp(expected[places])), abs(float(middle)))
        lower = group & (expected <= middle + reach)
        higher = group & ~lower
        if min(np.count_nonzero(lower), np.count_nonzero(higher)) < _FEWEST:
            return [group]
        return [lower, higher]


def _read(block: Block) -> tuple[Floats, Mask, Floats]:
    weight = np.ones(len(block.selected)) if block.weight is None else block.weight
    return np.asarray(block.features), np.asarray(block.selected), np.asarray(weight)


def _points(features: Floats, weight: Floats, naming: Naming, columns: Sequence[int]) -> Floats:
    """Place rows: numbers are standardised, and a category has a dummy for every level."""
    share = weight / max(float(weight.sum()), 1.0)
    numbers = [column for column in columns if not naming.levels[column]]
    values = features[:, numbers]
    centred = values - share @ values
    spread = np.sqrt(share @ centred**2)
    points = [centred / np.where(spread > 0.0, spread, 1.0)]
    for category in _categories(naming, columns):
        dummies = features[:, category]
        points += [dummies, 1.0 - dummies.sum(axis=1, keepdims=True)]
    return np.hstack(points)


def _categories(naming: Naming, columns: Sequence[int]) -> list[list[int]]:
    """Return the dummies of each category."""
    dummies: dict[str, list[int]] = {}
    for column in columns:
        if naming.levels[column]:
            dummies.setdefault(naming.sources[column], []).append(column)
    return list(dummies.values())
