"""Weights of one over the probability of selection, computed a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Merge, Positions, Rows, pick
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.probit import Probit

_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class WeightedRows:
    """Rows whose weights are multiplied by one over the probability of being selected.

    The weights are computed block by block in every pass, so rows need not be in memory.
    """

    rows: Rows
    probit: Probit
    """the selection equation"""
    clip: float
    """the largest factor"""

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        """Yield what a function returns for each block, weighted."""
        columns = list(columns)
        features = self.probit.features
        read = [*columns, *(feature for feature in features if feature not in columns)]
        positions = [read.index(feature) for feature in features]
        weighting = (self.probit, self.clip, positions, len(columns))
        return self.rows.map(_weigh, weighting, function, args, columns=read, merge=merge)


def _weigh(
    block: Block,
    weighting: tuple[Probit, float, list[int], int],
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    """Call a function on a block with its weights."""
    probit, clip, positions, width = weighting
    selecting = replace(block, features=pick(block.features, positions))
    inverse = _inverse_probabilities(selecting, probit)
    weight = np.minimum(inverse, clip)
    if block.weight is not None:
        weight = weight * block.weight
    features = pick(block.features, list(range(width)))
    return function(replace(block, features=features, weight=weight), *args)


def count_weights(block: Block, probit: Probit, clip: float) -> tuple[int, float]:
    """Return the number of selected rows with a weight above ``clip``, and the largest weight."""
    inverse = _inverse_probabilities(block, probit)[block.selected]
    return int(np.count_nonzero(inverse > clip)), float(inverse.max(initial=1.0))


def merge_counts(parts: list[tuple[int, float]]) -> tuple[int, float]:
    """Add the counts of blocks, and take the largest of their largest weights."""
    return sum(count for count, _ in parts), max(largest for _, largest in parts)


def _inverse_probabilities(block: Block, probit: Probit) -> Floats:
    """Return one over the selection probability of selected rows, and one for other rows."""
    index = probit.coordinates.design(block.features).times(probit.inner_coef)
    # A weight too large for a float is clipped in any case.
    inverse = np.exp(np.minimum(-log_cdf(index), _LARGEST_EXPONENT))
    return np.asarray(np.where(block.selected, inverse, 1.0))
