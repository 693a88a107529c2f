"""Rows in parts that stay where they are; every pass reads them again.

One counting pass decides who is selected, and who is left out and why. Later passes apply the
same rules to each block that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.row_sources import Chunk, Reading, RowSource
from heckmanfa.data.rows import (
    ArrayRows,
    Block,
    Columns,
    Mask,
    Merge,
    Positions,
    Rows,
    one_blas_thread,
    pick,
    rows_per_block,
)

__all__ = ["PartRows", "Rules"]

# Results are merged by so many, so that few are held at a time.
_MERGE_AT_ONCE = 16
# A sample is spread over at least so many parts, where there are as many.
_PILOT_PARTS = 8
# A sample of at most this share of the rows is fetched: so many numbers (16 MB), but not fewer
# rows than a start needs.
_FETCHED_SHARE, _FETCHED_NUMBERS = 16, 2**21
_LEAST_FETCHED, _FETCHED_A_COLUMN = 2**13, 16


@dataclass(frozen=True)
class Rules:
    """How stored rows become rows of a fit."""

    weight_scale: float = 1.0
    """what weights are multiplied with"""
    groups: NDArray[Any] | None = None
    """the distinct groups, sorted"""
    complete: tuple[int, ...] = ()
    """columns of which a row may miss none, or is left out"""

    def block(self, part: int, chunk: Chunk, columns: Positions) -> Block:
        """Apply the rules; ``columns`` are those that the chunk has."""
        observed = ~np.isnan(chunk.outcome)
        chosen = observed if chunk.selected is None else chunk.selected == 1
        kept = ~(chosen & ~observed)
        if self.complete:
            kept &= _complete(chunk.features, columns, self.complete)
        weight = chunk.weight
        if weight is not None:
            kept &= weight > 0
            weight = weight * self.weight_scale
        codes = None
        if self.groups is not None and chunk.group is not None:
            codes = np.zeros(len(kept), dtype=np.intp)
            codes[kept] = np.searchsorted(self.groups, chunk.group[kept])
        place = (part, chunk.start)
        block = Block(chunk.features, chunk.outcome, np.asarray(chosen), weight, codes, place)
        return block if kept.all() else block.keep(kept)


def _complete(features: Floats, columns: Positions, needed: Iterable[int]) -> Mask:
    where = [columns.index(one) for one in needed]
    return np.asarray(np.isfinite(features[:, where]).all(axis=1))


class _Drop(NamedTuple):
    """Rows that take no part: those where a block function says so."""

    function: Callable[..., Mask]
    args: tuple[Any, ...]
    columns: tuple[int, ...]

    def apply(self, block: Block, columns: Positions) -> Block:
        features = pick(block.features, [columns.index(one) for one in self.columns])
        return block.keep(~self.function(replace(block, features=features), *self.args))


@dataclass(frozen=True)
class _BlockTask:
    """A block function over the blocks of one part, its results merged."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    merge: Merge | None
    columns: tuple[int, ...]
    """that the function asks for"""
    read: tuple[int, ...]
    """those, and what the rules and drops need"""
    rules: Rules
    drops: tuple[_Drop, ...]

    def __call__(self, part: int, chunks: Iterable[Chunk]) -> list[Any]:
        places = [self.read.index(one) for one in self.columns]
        results: list[Any] = []
        with one_blas_thread():
            for chunk in chunks:
                block = self.rules.block(part, chunk, self.read)
                for drop in self.drops:
                    block = drop.apply(block, self.read)
                block = replace(block, features=pick(block.features, places))
                results.append(self.function(block, *self.args))
                if self.merge is not None and len(results) == _MERGE_AT_ONCE:
                    results = [self.merge(results)]
            if self.merge is not None and len(results) > 1:
                results = [self.merge(results)]
        return results


@dataclass(frozen=True)
class PartRows:
    """The rows of a fit, in parts elsewhere."""

    home: RowSource
    rules: Rules
    lengths: tuple[int, ...]
    """rows of each part"""
    columns: tuple[int, ...]
    """positions of the features of the fit"""
    drops: tuple[_Drop, ...] = ()
    heads: dict[int, int] | None = None
    fetched: dict[int, ArrayRows] = field(default_factory=dict, repr=False, compare=False)
    """samples that were fetched, by how many rows were asked for"""

    @property
    def in_memory(self) -> bool:
        """Whether a pass over the rows costs no more than arithmetic."""
        return False

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.home.has_weight

    def __len__(self) -> int:
        """Return how many rows there are, those that take no part among them."""
        return sum(self.lengths if self.heads is None else self.heads.values())

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)``, merged for each part, in the order of the parts."""
        columns = tuple(columns)
        others = {*self.rules.complete, *(one for drop in self.drops for one in drop.columns)}
        read = (*columns, *sorted(others - {*columns}))
        task = _BlockTask(function, args, merge, columns, read, self.rules, self.drops)
        for results in self.home.run(task, Reading(read, self._block_rows(), self.heads)):
            yield from results

    def pilot(self, n_rows: int) -> Rows:
        """Return about ``n_rows`` evenly spread rows, or all of them where they are few.

        A small share of the rows, or as many of them as memory has room for, is fetched: it will
        be read many times.
        """
        if len(self) < 2 * n_rows:
            return self
        if n_rows > len(self) // _FETCHED_SHARE:
            return self._head_rows(n_rows)
        if n_rows not in self.fetched:
            width = len(self.columns) + 3
            most = max(_FETCHED_NUMBERS // width, _FETCHED_A_COLUMN * width, _LEAST_FETCHED)
            part = self._head_rows(min(n_rows, most))
            blocks = list(part.map(_as_is, columns=self.columns, merge=_joined))
            self.fetched[n_rows] = _held(_joined(blocks), part)
        return self.fetched[n_rows]

    def _head_rows(self, n_rows: int) -> PartRows:
        share, size = len(self) // n_rows, self._block_rows()
        parts = range(len(self.lengths)) if self.heads is None else sorted(self.heads)
        # Empty ones are no sample of anything.
        read = [part for part in parts if self._length(part)]
        # Few parts, and much of each: to open one costs as much as to read some of its rows.
        step = min(share, max(len(read) // _PILOT_PARTS, 1))
        heads = {}
        for part in read[::step]:
            blocks = -(-self._length(part) * step // (share * size))
            heads[part] = min(blocks * size, self._length(part))
        return replace(self, heads=heads, fetched={})

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> PartRows:
        """Return the rows where ``function(block, *args)`` is False."""
        drop = _Drop(function, args, tuple(columns))
        return replace(self, drops=(*self.drops, drop), fetched={})

    def _length(self, part: int) -> int:
        return self.lengths[part] if self.heads is None else self.heads[part]

    def _block_rows(self) -> int:
        return rows_per_block(self.home.n_features)


def _as_is(block: Block) -> Block:
    return block


def _joined(blocks: list[Block]) -> Block:
    first = blocks[0]
    return Block(
        np.concatenate([block.features for block in blocks]),
        np.concatenate([block.outcome for block in blocks]),
        np.concatenate([block.selected for block in blocks]),
        None if first.weight is None else np.concatenate([block.weight for block in blocks]),
        None if first.group is None else np.concatenate([block.group for block in blocks]),
        first.place,
    )


def _held(block: Block, rows: PartRows) -> ArrayRows:
    """Rows in memory that were fetched."""
    arrays = dict(zip(rows.columns, block.features.T, strict=True))
    source = Columns(arrays, (len(block.outcome), rows.home.n_features))
    return ArrayRows(source, block.outcome, block.selected, block.weight, block.group)
