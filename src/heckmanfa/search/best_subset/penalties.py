"""Penalties of the models of a tree search, and the least one that can be reached from a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal


class Penalties:
    """The penalty of a loss for so many columns and units, infinite if that is not allowed."""

    def __init__(self, choices: Choices, goal: Goal) -> None:
        sizes = np.arange(len(choices.columns) + 1)
        self._columns = goal.penalty(sizes)
        self._columns[(sizes < choices.min_features) | (sizes > choices.max_features)] = np.inf
        allowed = np.flatnonzero(np.isfinite(self._columns))
        self._fewest = int(allowed.min(initial=len(sizes)))
        self._most = int(allowed.max(initial=0))
        # Least penalty of a model that can be cut down to so many columns.
        self._cut_down = self._columns[np.maximum(sizes, min(self._fewest, sizes[-1]))]
        self._units = goal.unit_penalty(np.arange(len(choices.units) + 1))
        self._counts_units = goal.criterion == "ebic"
        self.by_size = self._columns + self._least_of_sizes(choices)
        """(k + 1,) least penalty of a model of so many columns, infinite if not allowed"""

    def _least_of_sizes(self, choices: Choices) -> Floats:
        """Return the least penalty for units of models of each size, (k + 1,)."""
        least = np.full(len(self._columns), np.inf)
        if all(len(unit) == 1 for unit in choices.units):
            least[len(choices.always) :] = self._units
        else:
            least[len(choices.always) :] = self._units.min()
        return least

    def of(self, size: Any, units: Any) -> Floats:
        """Penalty of models of so many columns and units."""
        penalty = self._columns[size]
        return np.asarray(penalty + self._units[units] if self._counts_units else penalty)

    def least(self, size: Any, units: Any, dropped: Any) -> Floats:
        """Least penalty after 0 to ``dropped`` single columns are dropped from a model.

        Each column dropped lowers the penalty for columns. EBIC's penalty for units is concave in
        their number, and that for columns linear: their sum is least at one of the ends.
        """
        if not self._counts_units:
            return np.asarray(self._cut_down[size - dropped])
        fewest = np.maximum(size - dropped, np.minimum(self._fewest, size))
        last = self.of(fewest, units - (size - fewest))
        most = np.clip(size, fewest, np.maximum(self._most, fewest))
        return np.minimum(last, self.of(most, units - (size - most)))

    def least_of_units(self, size: Any, units: Any, undecided: Sequence[int]) -> Floats:
        """Least penalty after at least one of the undecided units, given by size, is dropped.

        For each number of units dropped, those with the most columns give the least penalty.
        """
        columns = np.cumsum(sorted(undecided, reverse=True))
        left = size[:, None] - columns
        left = np.maximum(left, np.minimum(self._fewest, size)[:, None])
        penalty = self.of(left, units[:, None] - np.arange(1, len(columns) + 1))
        return np.asarray(penalty.min(axis=1))
