"""Rows that are not in memory: they stay in parts, and every pass reads the parts anew.

A `Home` knows where the parts are (row groups of files, partitions of a cluster) and runs a task
on each. What the rows mean (who is selected, who is left out and why) is decided here, in one
way for all homes: by one pass that counts, the census, and by rules that every later pass applies
to each block it reads. Only small results leave a part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
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
from heckmanfa.errors import InputError

__all__ = ["Chunk", "Home", "PartRows", "Reading", "Rules", "Task", "refuse_rows"]

# Results are merged by so many, so that few are held at a time.
_MERGE_AT_ONCE = 16
# A sample is spread over at least so many parts, where there are as many.
_PILOT_PARTS = 8
# A sample of at most this share of the rows is fetched: so many numbers (16 MB), but not fewer
# rows than a start needs.
_FETCHED_SHARE, _FETCHED_NUMBERS = 16, 2**21
_LEAST_FETCHED, _FETCHED_A_COLUMN = 2**13, 16


class Chunk(NamedTuple):
    """A few thousand rows as they are stored; None where there is no such column."""

    features: Floats
    """(b, k), the columns that were asked for, NaN where missing"""
    outcome: Floats
    """(b,), NaN where missing"""
    selected: NDArray[Any] | None
    """(b,) truths or numbers, as they are stored"""
    weight: Floats | None
    """(b,), NaN where missing"""
    group: NDArray[Any] | None
    """(b,) of any type that can be sorted; None or NaN where missing"""
    start: int
    """its first row's number in the part"""


class Reading(NamedTuple):
    """What a task wants of a home: columns, and how much of each part."""

    columns: tuple[int, ...]
    """positions of the features to read"""
    block_rows: int
    """rows a chunk; the last one of a part may have fewer"""
    heads: dict[int, int] | None = None
    """the parts to read and how many of the first rows of each; None reads all of all"""

    def head(self, part: int) -> int | None:
        """How many rows of a part to read: None for all, 0 for none."""
        return None if self.heads is None else self.heads.get(part, 0)


Task = Callable[[int, Iterable[Chunk]], Any]


def refuse_rows(X: Any, instead: str | None = None) -> None:
    """Refuse rows that are not in memory where a method needs them there.

    Parameters
    ----------
    X : Any
        What was passed; whatever is in memory passes.
    instead : str, optional
        A call that does the same without loading the rows.
    """
    if not isinstance(X, Home):
        return
    if instead is not None:
        raise InputError(
            f"these are {X.described}, which are not in memory: heckmanfa.{instead} writes the "
            "predictions to a file"
        )
    raise InputError(
        f"these are {X.described}, which are not in memory, as this method needs them: read as "
        "many rows as fit, for example by pandas.read_parquet (text columns through "
        "rows.encoding.transform), and pass their features"
    )


class Home(ABC):
    """Where parts of rows are, and how a task is run on each of them."""

    names: tuple[str, ...] | None
    """of the features; None where they are known by position"""
    labels_given: tuple[Any, ...] | None = None
    """what a frame calls its columns where that is not text"""
    n_features: int
    has_selected: bool
    """whether a column says who is selected; else those with an outcome are"""
    has_weight: bool
    has_groups: bool
    drops_missing: bool = False
    """whether rows that miss a feature are left out; else they are refused"""

    @property
    def feature_groups(self) -> list[list[str]]:
        """Features that a search moves as one unless it is told otherwise."""
        return []

    @property
    def dummies(self) -> dict[str, list[str]]:
        """The features of each column that became one or several others."""
        return {}

    @property
    @abstractmethod
    def described(self) -> str:
        """The rows and where they are in a few words: "rows of 12 Parquet files"."""

    @abstractmethod
    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts.

        A task can be pickled, and what it returns is small. A part that is not to be read
        (``reading.head(part) == 0``) gives nothing.
        """


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
        return block.keep(~self.function(block._replace(features=features), *self.args))


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
                block = block._replace(features=pick(block.features, places))
                results.append(self.function(block, *self.args))
                if self.merge is not None and len(results) == _MERGE_AT_ONCE:
                    results = [self.merge(results)]
            if self.merge is not None and len(results) > 1:
                results = [self.merge(results)]
        return results


@dataclass(frozen=True)
class PartRows:
    """The rows of a fit, in parts elsewhere."""

    home: Home
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
    features, outcome, selected, weight, group, places = zip(*blocks, strict=True)
    return Block(
        np.concatenate(features),
        np.concatenate(outcome),
        np.concatenate(selected),
        None if weight[0] is None else np.concatenate(weight),
        None if group[0] is None else np.concatenate(group),
        places[0],
    )


def _held(block: Block, rows: PartRows) -> ArrayRows:
    """Rows in memory that were fetched."""
    arrays = dict(zip(rows.columns, block.features.T, strict=True))
    source = Columns(arrays, (len(block.outcome), rows.home.n_features))
    return ArrayRows(source, block.outcome, block.selected, block.weight, block.group)
