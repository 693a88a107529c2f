"""The rows of a fit with the replicate weights of a survey, in memory or read again in passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats, host, like
from heckmanfa.data.row_parts import PartRows, count_parts
from heckmanfa.data.row_rules import check_rows, count_bad_weights
from heckmanfa.data.row_sources import Chunk, Reading
from heckmanfa.data.rows import held, rows_per_block
from heckmanfa.data.sample import Sample, reweighted
from heckmanfa.data.survey import check_weights
from heckmanfa.errors import InputError


def n_replicates(sample: Sample) -> int:
    """Count the replicate weights of the rows of a fit."""
    if isinstance(sample.rows, PartRows):
        return len(sample.rows.source.replicates)
    return 0 if sample.replicates is None else int(sample.replicates.shape[1])


def replicate_sample(sample: Sample, place: int) -> Sample:
    """Return the rows of a fit with the replicate weights at a place, rescaled to mean one."""
    if isinstance(sample.rows, PartRows):
        return _read_again(sample, sample.rows, place)
    assert sample.replicates is not None
    rows = held(sample.rows, "a covariance by replicate weights")
    weight = sample.replicates[:, place] * host(rows.used)
    if not weight.any():
        raise InputError("no row of the fit has a weight above zero")
    rescaled = like(weight / weight[weight > 0].mean(), rows.outcome)
    return reweighted(sample, rescaled, n_selection=1)


def _read_again(sample: Sample, rows: PartRows, place: int) -> Sample:
    """Count rows in passes once more, with other weights."""
    name = rows.source.replicates[place]
    source, rules = rows.source.reweighted(name), rows.rules
    needed = np.zeros(len(rows.columns), dtype=bool)
    lengths, counts = count_parts(
        source, rows.columns, needed, rules.transform, everyone=rules.everyone
    )
    check_weights(name, counts.bad_weights, counts.weight_sum > 0)
    check_rows(counts, 1, sample.classes)
    rules = replace(rules, mean_weight=counts.weight_sum / counts.kept, groups=None)
    others = PartRows(source, rules, lengths, rows.columns, counts.sums)
    public = sample.row_counts | {"selected": counts.selected, "unselected": counts.unselected}
    return Sample(others, public, None, counts.unselected == 0, sample.classes)


def replicate_blocks(sample: Sample, function: Callable[[Floats], Any]) -> Iterator[Any]:
    """Yield what a function makes of blocks of replicate weights (b, R), over all rows.

    They are zero outside of the subpopulation. The function may destroy a block.
    """
    if not isinstance(sample.rows, PartRows):
        assert sample.replicates is not None
        size = rows_per_block(sample.replicates.shape[1])
        for low in range(0, len(sample.replicates), size):
            yield function(np.array(sample.replicates[low : low + size], order="F"))
        return
    names = sample.rows.source.replicates
    source = sample.rows.source.of_replicates()
    reading = Reading(tuple(range(len(names))), rows_per_block(len(names)))
    bad, some = np.zeros(len(names), dtype=int), np.zeros(len(names), dtype=bool)
    for blocks in source.run(_BlocksOfWeights(function), reading):
        for made, wrong, positive in blocks:
            bad, some = bad + wrong, some | positive
            yield made
    for place, name in enumerate(names):
        check_weights(name, int(bad[place]), bool(some[place]))


@dataclass(frozen=True)
class _BlocksOfWeights:
    """Apply a function to the replicate weights of a part; count those that are not weights."""

    function: Callable[[Floats], Any]

    def __call__(self, part: int, chunks: Iterable[Chunk]) -> list[tuple[Any, Any, Any]]:
        return [self._of(chunk) for chunk in chunks]

    def _of(self, chunk: Chunk) -> tuple[Any, Any, Any]:
        stored = np.asarray(chunk.features, dtype=np.float64)
        bad = np.array([count_bad_weights(column) for column in stored.T])
        weights = np.nan_to_num(stored, posinf=0.0, neginf=0.0)
        if chunk.outside is not None:
            weights = weights * ~chunk.outside[:, None]
        return self.function(np.asfortranarray(weights)), bad, (weights > 0).any(axis=0)
