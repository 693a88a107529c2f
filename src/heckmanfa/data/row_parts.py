"""Rows in parts that stay where they are; every pass reads them again.

One counting pass decides who is selected, and who is left out and why. Later passes apply the
same rules to each block that they read. The classes of a binary outcome take a pass before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.missing_features import GapCounts
from heckmanfa.data.outcome_classes import Classes, LabelCounts, Labels, Learn
from heckmanfa.data.outcomes import OutcomeTransform, on_fit_scale
from heckmanfa.data.row_rules import (
    RowCounts,
    count_bad_weights,
    count_features,
    count_rows,
    decide_rows,
    read_known_flags,
    read_stored_flags,
)
from heckmanfa.data.row_sources import Chunk, Reading, RowSource, RowSums
from heckmanfa.data.rows import (
    ArrayRows,
    Block,
    BlockFunction,
    ColumnArrays,
    Mask,
    Merge,
    Positions,
    Rows,
    one_blas_thread,
    pick,
    places_of,
    rows_per_block,
)
from heckmanfa.errors import TooFewRowsError

# Number of results merged at a time, so few are held at once.
_MERGE_AT_ONCE = 16
# A sample is spread over at least this many parts, if there are as many.
_PILOT_PARTS = 8
# A sample of at most this share of the rows is fetched: this many numbers (16 MB), but at least
# the rows that a start needs.
_FETCHED_SHARE, _FETCHED_NUMBERS = 16, 2**21
_LEAST_FETCHED, _FETCHED_PER_COLUMN = 2**13, 16


@dataclass(frozen=True)
class Rules:
    """How stored rows become rows of a fit; `rules_of` makes it from the counts of one pass."""

    mean_weight: float = 1.0
    """what weights are divided by"""
    groups: NDArray[Any] | None = None
    """the distinct groups, sorted"""
    complete: tuple[int, ...] = ()
    """columns that a row must have, or it is left out"""
    transform: OutcomeTransform | None = None
    """the scale that the outcome is fitted on"""
    everyone: bool = False
    """whether rows that are not selected have an outcome, too"""

    def block(self, part: int, chunk: Chunk, columns: Positions) -> Block:
        """Apply the rules; ``columns`` are the columns of the chunk."""
        complete = None
        if self.complete:
            complete = _complete_rows(chunk.features[:, places_of(self.complete, columns)])
        chosen, unknown = None, None
        if chunk.selected is not None:
            chosen = np.asarray(chunk.selected == 1)
            if self.everyone:
                chosen, unknown, *_ = read_known_flags(chunk.selected)
        status = decide_rows(
            *(chunk.outcome, chosen, chunk.weight, complete, unknown, chunk.outside),
            everyone=self.everyone,
        )
        kept = status.kept
        weight = None if chunk.weight is None else chunk.weight / self.mean_weight
        codes = None
        if self.groups is not None and chunk.group is not None:
            codes = np.zeros(len(kept), dtype=np.intp)
            codes[kept] = np.searchsorted(self.groups, chunk.group[kept])
        outcome = on_fit_scale(chunk.outcome, status.with_outcome, self.transform)
        place = (part, chunk.start)
        block = Block(chunk.features, outcome, status.selected, weight, codes, place)
        return block if kept.all() else block.keep(kept)


def _complete_rows(features: Floats) -> Mask:
    # An infinite value is not missing: it is refused.
    return np.asarray(~np.isnan(features).any(axis=1))


@dataclass(frozen=True)
class _CountTask:
    """Count the rows of one part."""

    everywhere: Mask
    """(k,) which columns every row needs"""
    drops_missing: bool
    transform: OutcomeTransform | None = None
    dummies: tuple[int, ...] = ()
    """those of the k columns whose rows are counted by level"""
    everyone: bool = False
    whole: bool = False
    """whether groups without a row of the fit count, as units of a survey do"""

    def __call__(self, part: int, chunks: Iterable[Chunk]) -> RowCounts:
        return sum((self._count(chunk) for chunk in chunks), RowCounts())

    def _count(self, chunk: Chunk) -> RowCounts:
        all_finite = bool(np.isfinite(chunk.features).all())
        complete, gaps = None, GapCounts(len(chunk.features))
        if self.drops_missing and not all_finite:
            empty = np.isnan(chunk.features)
            complete, gaps = np.asarray(~empty.any(axis=1)), GapCounts.of(empty)
        chosen, unknown, bad_flags, odd_flag = None, None, 0, None
        if chunk.selected is not None and self.everyone:
            chosen, unknown, bad_flags, odd_flag = read_known_flags(chunk.selected)
        elif chunk.selected is not None:
            chosen, bad_flags, odd_flag = read_stored_flags(chunk.selected)
        status = decide_rows(
            *(chunk.outcome, chosen, chunk.weight, complete, unknown, chunk.outside),
            everyone=self.everyone,
        )
        unplaced, odd_place = 0, None
        if chunk.subpop is not None:
            _, unplaced, odd_place = read_stored_flags(chunk.subpop)
        everywhere = self.everywhere | self.drops_missing
        outcome = on_fit_scale(chunk.outcome, status.with_outcome, self.transform)
        block = Block(chunk.features, outcome, status.selected, chunk.weight, None)
        if not status.kept.all():
            block = block.keep(status.kept)
        return count_rows(
            status,
            outcome,
            chunk.weight,
            chunk.group,
            self.transform,
            whole=self.whole,
            bad_weights=0 if chunk.weight is None else count_bad_weights(chunk.weight),
            bad_flags=bad_flags,
            odd_flag=odd_flag,
            unplaced=unplaced,
            odd_place=odd_place,
            features=count_features(
                chunk.features,
                status.selected,
                everywhere,
                status.kept,
                all_finite=all_finite,
                dummies=self.dummies,
            ),
            gaps=gaps,
            sums=RowSums.of(block, with_squares=True),
        )


def count_parts(
    source: RowSource,
    columns: Sequence[int],
    everywhere: Mask,
    transform: OutcomeTransform | None = None,
    dummies: Sequence[int] = (),
    *,
    everyone: bool = False,
) -> tuple[tuple[int, ...], RowCounts]:
    """Count the rows of each part, and all rows by what the rules decide, in one pass.

    ``columns`` are the k features of either equation. Every row needs those that are True in
    ``everywhere`` (k,), those of the selection equation; only selected rows need the others.
    ``transform`` is the scale that the outcome is fitted on, and ``dummies`` are as in
    `count_features`.
    """
    reading = Reading(tuple(columns), rows_per_block(source.n_features))
    lengths: list[int] = []
    counts = RowCounts()
    # Parts come in order.
    drops = source.drops_missing
    whole = source.survey is not None
    task = _CountTask(everywhere, drops, transform, tuple(dummies), everyone, whole)
    for counted in source.run(task, reading):
        lengths.append(counted.total)
        counts += counted
    if counts.total == 0:
        raise TooFewRowsError(f"the {source.described} are 0 rows; there is nothing to fit")
    return tuple(lengths), counts


def rules_of(
    source: RowSource,
    columns: Sequence[int],
    counts: RowCounts,
    sampling: bool | None,
    transform: OutcomeTransform | None = None,
    *,
    everyone: bool = False,
) -> Rules:
    """Return the rules for later passes over rows that `count_parts` has counted.

    Sampling weights are rescaled to mean one.
    """
    rescaled = sampling and source.has_weight
    complete = [
        column
        for column, gaps in zip(columns, counts.features.gaps, strict=True)
        if gaps and source.drops_missing
    ]
    mean = counts.weight_sum / counts.kept if rescaled else 1.0
    return Rules(mean, counts.groups, tuple(complete), transform, everyone)


def _count_labels(part: int, chunks: Iterable[Chunk]) -> LabelCounts:
    return sum((_labels_of_chunk(chunk) for chunk in chunks), LabelCounts())


def _labels_of_chunk(chunk: Chunk) -> LabelCounts:
    labels: Labels = chunk.outcome
    observed = np.where(labels.codes < 0, np.nan, 0.0)
    chosen = None if chunk.selected is None else read_stored_flags(chunk.selected)[0]
    status = decide_rows(observed, chosen, chunk.weight, outside=chunk.outside)
    return LabelCounts.of(labels, status.selected & status.kept)


def learn_classes(source: RowSource, learn: Learn | None = None) -> tuple[RowSource, Classes]:
    """Return the rows with 0 and 1 as their outcome, and the classes that these stand for.

    ``learn`` is as in `heckmanfa.data.outcome_classes.read_classes`.

    One pass reads the outcome, who is selected and weights, but no feature. Classes that the source
    has learned before are kept.
    """
    if source.classes is not None:
        return source, source.classes
    reading = Reading((), rows_per_block(source.n_features))
    counted = source.reading_outcome("labels").run(_count_labels, reading)
    classes = (learn or LabelCounts.classes)(sum(counted, LabelCounts()))
    return source.reading_outcome(classes), classes


@dataclass(frozen=True)
class _Drop:
    """Leave out the rows for which a block function is True."""

    function: Callable[..., Mask]
    args: tuple[Any, ...]
    columns: tuple[int, ...]

    def apply(self, block: Block, columns: Positions) -> Block:
        features = pick(block.features, places_of(self.columns, columns))
        return block.keep(~self.function(replace(block, features=features), *self.args))


@dataclass(frozen=True)
class _BlockTask:
    """A block function over the blocks of one part, its results merged."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    merge: Merge | None
    columns: tuple[int, ...]
    """columns of the function"""
    read: tuple[int, ...]
    """columns to read: those, and what the rules and drops need"""
    rules: Rules
    drops: tuple[_Drop, ...]

    def __call__(self, part: int, chunks: Iterable[Chunk]) -> tuple[list[Any], RowSums]:
        positions = places_of(self.columns, self.read)
        results: list[Any] = []
        sums = RowSums()
        with one_blas_thread():
            for chunk in chunks:
                block = self.rules.block(part, chunk, self.read)
                sums += RowSums.of(block, self.rules.mean_weight)
                for drop in self.drops:
                    block = drop.apply(block, self.read)
                block = replace(block, features=pick(block.features, positions))
                results.append(self.function(block, *self.args))
                if self.merge is not None and len(results) == _MERGE_AT_ONCE:
                    results = [self.merge(results)]
            if self.merge is not None and len(results) > 1:
                results = [self.merge(results)]
        return results, sums


@dataclass(frozen=True)
class PartRows:
    """The rows of a fit, in parts elsewhere."""

    in_memory: ClassVar[bool] = False
    source: RowSource
    rules: Rules
    lengths: tuple[int, ...]
    """rows of each part"""
    columns: tuple[int, ...]
    """positions of the features of the fit"""
    sums: RowSums
    """what the rows of the fit add up to, with the features in that order"""
    drops: tuple[_Drop, ...] = ()
    heads: dict[int, int] | None = None
    fetched: dict[int, ArrayRows] = field(default_factory=dict, repr=False, compare=False)
    """samples that were fetched, by how many rows were asked for"""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.source.has_weight

    def __len__(self) -> int:
        return sum(self.lengths if self.heads is None else self.heads.values())

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)``, merged for each part, in the order of the parts.

        A pass over all rows that are not those of the counting pass is refused at its end.
        """
        columns = tuple(columns)
        others = {*self.rules.complete, *(k for drop in self.drops for k in drop.columns)}
        read = (*columns, *sorted(others - {*columns}))
        task = _BlockTask(function, args, merge, columns, read, self.rules, self.drops)
        sums = RowSums()
        reading = Reading(read, self._block_rows(), self.heads)
        for results, part_sums in self.source.run(task, reading):
            sums += part_sums
            yield from results
        if self.heads is None:
            places = places_of(read, self.columns)
            self.sums.refuse_others(sums, places, self.source.described, self.source.steady)

    def pilot(self, n_rows: int) -> Rows:
        """Return about ``n_rows`` evenly spread rows, or all rows if they are few.

        A small share of the rows is fetched into memory, since it will be read many times. A larger
        one is read from its parts; if that costs as much as reading all rows, it is all rows. So
        nothing depends on the order in which a stream gives its rows.
        """
        if len(self) < 2 * n_rows:
            return self
        if n_rows > len(self) // _FETCHED_SHARE:
            return self._head_rows(n_rows) if self.source.reads_parts else self
        if n_rows not in self.fetched:
            width = len(self.columns) + 3
            most = max(_FETCHED_NUMBERS // width, _FETCHED_PER_COLUMN * width, _LEAST_FETCHED)
            part = self._head_rows(min(n_rows, most))
            block = _joined(list(part.map(_as_is, columns=self.columns, merge=_joined)))
            arrays = dict(zip(self.columns, block.features.T, strict=True))
            source = ColumnArrays(arrays, (len(block.outcome), self.source.n_features))
            self.fetched[n_rows] = ArrayRows(
                source, block.outcome, block.selected, block.weight, block.group
            )
        return self.fetched[n_rows]

    def _head_rows(self, n_rows: int) -> PartRows:
        share, size = len(self) // n_rows, self._block_rows()
        parts = range(len(self.lengths)) if self.heads is None else sorted(self.heads)
        # Empty parts are not a sample of anything.
        read = [part for part in parts if self._length(part)]
        # Few parts, and much of each: opening one costs as much as reading some of its rows.
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
        return rows_per_block(self.source.n_features)


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
