"""Rows behind one interface, which maps a block function over all rows, in order.

Everything that reads data does it through `Rows.map`: a plain function gets one `Block` of rows
that fits the CPU's cache, and returns something small. Results come back in row order, so sums do
not depend on the number of threads. Rows in memory are here; `row_parts` has those of files and
clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # scikit-learn requires it

from heckmanfa.data.arrays import Array, Floats, compress, is_tensor, namespace, zeros
from heckmanfa.data.threads import SharedContext, in_order, workers
from heckmanfa.errors import InputError

Positions = Sequence[int]
Groups = NDArray[np.intp]
Mask = NDArray[np.bool_]
Merge = Callable[[list[Any]], Any]
BlockFunction = Callable[..., Any]
"""its first argument is a `Block`"""

# A block is large enough that threads seldom wait for the interpreter, and small enough to stay in
# the cache. With few features, the vectors of a block outweigh its features.
_BLOCK_BYTES = 2**21
_MIN_BLOCK, _MAX_BLOCK, _MAX_BLOCK_OF_FEW = 256, 8192, 4096
_FEW_FEATURES = 16
# On a GPU, factoring a million rows at once takes a tenth of the time of many small blocks. On a
# CPU, Torch shares the work inside a block among its threads.
_GPU_BLOCK_BYTES, _TORCH_BLOCK_BYTES = 2**29, 2**24
# Fewer rows are finished before threads have started.
_ROWS_FOR_THREADS = 2**14
# A pilot sample is spread over at least this many places.
_PILOT_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows, as float64: NumPy arrays, or tensors if the rows are tensors."""

    features: Array
    """(b, k), the requested columns, in that order"""
    outcome: Array
    """(b,), arbitrary where the row is not selected"""
    selected: Array
    """(b,)"""
    weight: Array | None
    """(b,), or None if every row counts once"""
    group: Array | None
    """(b,) cluster codes from 0, or None"""
    place: tuple[int, int] = (0, 0)
    """part of the rows that the block is from, and its first row there: no two blocks share it"""

    def only_selected(self) -> Block:
        """Return the selected rows of this block."""
        return self if self.selected.all() else self.keep(self.selected)

    def keep(self, chosen: Array) -> Block:
        """Return the rows where ``chosen`` is True."""
        return Block(
            compress(chosen, self.features),
            self.outcome[chosen],
            self.selected[chosen],
            None if self.weight is None else self.weight[chosen],
            None if self.group is None else self.group[chosen],
            self.place,
        )


class Mapped(Protocol):
    """Anything that can run a block function over its rows."""

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for every block, in row order.

        If the rows are elsewhere, ``merge`` joins the results of consecutive blocks there, so
        little has to travel.
        """


class Rows(Mapped, Protocol):
    """The rows of a fit, wherever they are."""

    @property
    def in_memory(self) -> bool:
        """Whether a pass over the rows costs no more than arithmetic."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""

    def __len__(self) -> int:
        """Return the number of rows, those left out included."""

    def pilot(self, n_rows: int) -> Rows:
        """Return about ``n_rows`` evenly spread rows, or all rows if they are few."""

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> Rows:
        """Return the rows where ``function(block, *args)`` is False."""


@dataclass(frozen=True)
class RowsView(Rows):
    """Rows that a model sees in another way; what `map` and `without` do is left to each view."""

    rows: Rows

    @property
    def in_memory(self) -> bool:
        """Whether a pass over the rows costs no more than arithmetic."""
        return self.rows.in_memory

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.rows.weighted

    def __len__(self) -> int:
        """Return the number of rows, those left out included."""
        return len(self.rows)

    def pilot(self, n_rows: int) -> Rows:
        """Return about ``n_rows`` evenly spread rows, or all rows if they are few."""
        pilot = self.rows.pilot(n_rows)
        return self if pilot is self.rows else replace(self, rows=pilot)


class Source(Protocol):
    """Features that can return a run of rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def take(self, start: int, stop: int, columns: Positions) -> Array:
        """Return rows ``start`` to ``stop`` of the named columns as float64."""


def places_of(wanted: Sequence[Any], columns: Sequence[Any]) -> list[int]:
    """Return where each of some columns is among ``columns``."""
    places = {column: place for place, column in enumerate(columns)}
    return [places[column] for column in wanted]


def pick(matrix: Array, columns: Positions) -> Array:
    """Return some columns of a matrix, without a copy if they are all columns in order."""
    if len(columns) == matrix.shape[1] and list(columns) == list(range(matrix.shape[1])):
        return matrix
    if isinstance(matrix, np.ndarray):
        return matrix[:, np.asarray(columns, dtype=np.intp)]
    return matrix[:, list(columns)]


class Matrix:
    """Features in one two-dimensional array; float64 rows are returned without a copy.

    Other types become float64 a block at a time, so every sum is in full precision.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self.dtype = array.dtype
        self.shape: tuple[int, int] = (array.shape[0], array.shape[1])

    def take(self, start: int, stop: int, columns: Positions) -> Array:
        """Return rows ``start`` to ``stop`` of the named columns as float64."""
        xp = namespace(self._array)
        return xp.asarray(pick(self._array[start:stop], columns), dtype=xp.float64)


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


@dataclass(frozen=True, eq=False)
class ColumnArrays:
    """Features as one array per column, as frames keep them; only used columns are read."""

    arrays: Mapping[int, NDArray[Any] | Dummy]
    shape: tuple[int, int]
    _sorted: dict[tuple[int, ...], tuple[dict[int, NDArray[Any]], list[DummyGroup]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def take(self, start: int, stop: int, columns: Positions) -> Floats:
        """Return rows ``start`` to ``stop`` of the named columns as float64."""
        numbers, categories = self._by_kind(tuple(columns))
        empty = np.zeros if categories else np.empty
        block = empty((stop - start, len(columns)), order="F")
        for position, array in numbers.items():
            block[:, position] = array[start:stop]
        for category in categories:
            category.write(block, start, stop)
        return block

    def _by_kind(
        self, columns: tuple[int, ...]
    ) -> tuple[dict[int, NDArray[Any]], list[DummyGroup]]:
        """Return the numbers among some columns, by position, and the categories."""
        if columns not in self._sorted:
            numbers: dict[int, NDArray[Any]] = {}
            dummies: dict[int, dict[int, Dummy]] = {}
            for position, column in enumerate(columns):
                array = self.arrays[column]
                if isinstance(array, Dummy):
                    dummies.setdefault(id(array.codes), {})[position] = array
                else:
                    numbers[position] = array
            self._sorted[columns] = numbers, [DummyGroup.of(group) for group in dummies.values()]
        return self._sorted[columns]


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory."""

    in_memory: ClassVar[bool] = True
    source: Source
    outcome: Array
    """(n,)"""
    selected: Array
    """(n,)"""
    weight: Array | None = None
    """(n,) or None"""
    group: Array | None = None
    """(n,) cluster codes or None"""
    kept: Array | None = None
    """(n,) False where a row is left out, or None if none is"""
    block_rows: int | None = None
    """rows per block; depends only on the number of columns unless a test sets it"""
    stride: int = 1
    """only every stride-th block is read (the pilot sample)"""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weight is not None

    def map(
        self, function: BlockFunction, *args: Any, columns: Positions, merge: Merge | None = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *args)`` for every block, in row order; nothing has to merge."""
        columns = list(columns)

        def task(span: tuple[int, int]) -> Any:
            return function(self._block(*span, columns), *args)

        if self.tensors:
            # Torch has its own threads, and a GPU its queue.
            return map(task, self._spans())
        return _ordered(task, self._spans())

    @property
    def used(self) -> Array:
        """(n,) whether a row is not left out."""
        return namespace(self.outcome).ones_like(self.selected) if self.kept is None else self.kept

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def tensors(self) -> bool:
        """Whether the rows are tensors."""
        return is_tensor(self.outcome)

    @property
    def precision(self) -> Any:
        """The floating-point type of tensors of features; None for other types."""
        kind = getattr(self.source, "dtype", None) if self.tensors else None
        return kind if kind is not None and kind.is_floating_point else None

    @property
    def n_blocks(self) -> int:
        """Number of blocks in which the rows are read."""
        return len(self._spans())

    def pilot(self, n_rows: int) -> ArrayRows:
        """Return about ``n_rows`` evenly spread rows, or all rows if they are few."""
        if len(self.outcome) < 2 * n_rows:
            return self
        size = min(self._rows_per_block(), n_rows // _PILOT_BLOCKS)
        return replace(self, block_rows=size, stride=len(self.outcome) // n_rows)

    def gathered(self, columns: Positions) -> ArrayRows:
        """Return a pilot sample in memory of its own: a few blocks instead of many small ones.

        Columns other than ``columns`` are zero there.
        """
        if self.stride == 1:
            return self
        blocks = [self._block(*span, list(columns)) for span in self._spans()]
        xp = namespace(self.outcome)
        outcome = xp.concat([block.outcome for block in blocks])
        features = zeros(blocks[0].features, len(outcome), self.source.shape[1])
        features[:, list(columns)] = xp.concat([block.features for block in blocks])
        return ArrayRows(
            Matrix(features),
            outcome,
            xp.concat([block.selected for block in blocks]),
            None if self.weight is None else xp.concat([block.weight for block in blocks]),
            None if self.group is None else xp.concat([block.group for block in blocks]),
        )

    def without(self, function: Callable[..., Mask], *args: Any, columns: Positions) -> ArrayRows:
        """Return the rows where ``function(block, *args)`` is False."""
        xp = namespace(self.outcome)
        kept = xp.asarray(self.used, copy=True)
        drop = tuple(self.map(function, *args, columns=columns))
        kept[self.used] = ~xp.concat(drop)
        return replace(self, kept=kept)

    def _rows_per_block(self) -> int:
        if self.block_rows is not None:
            return self.block_rows
        if self.tensors:
            columns = self.source.shape[1] + 3
            most = _GPU_BLOCK_BYTES if self.outcome.is_cuda else _TORCH_BLOCK_BYTES
            return int(2 ** round(np.log2(max(most // (8 * columns), _MIN_BLOCK))))
        return rows_per_block(self.source.shape[1])

    def _spans(self) -> list[tuple[int, int]]:
        size, n = self._rows_per_block(), len(self.outcome)
        spans = [(start, min(start + size, n)) for start in range(0, n, size)]
        return spans[:: self.stride]

    def _block(self, start: int, stop: int, columns: Positions) -> Block:
        span = slice(start, stop)
        block = Block(
            self.source.take(start, stop, columns),
            self.outcome[span],
            self.selected[span],
            None if self.weight is None else self.weight[span],
            None if self.group is None else self.group[span],
            (0, start),
        )
        if self.kept is None or self.kept[span].all():
            return block
        return block.keep(self.kept[span])


def rows_per_block(columns: int) -> int:
    """Number of rows per block, which depends only on the number of columns."""
    most = _MAX_BLOCK_OF_FEW if columns < _FEW_FEATURES else _MAX_BLOCK
    fitting = 2 ** round(np.log2(max(_BLOCK_BYTES // (8 * (columns + 3)), 1)))
    return int(min(max(fitting, _MIN_BLOCK), most))


def held(rows: Rows, what: str) -> ArrayRows:
    """Return rows that are in memory; refuse others, on which ``what`` cannot be done."""
    if isinstance(rows, ArrayRows):
        return rows
    raise InputError(
        f"{what} needs the rows in memory, and these are not: fit a model to a sample that fits "
        "into memory, and use that model"
    )


def total(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up tuples of numbers and arrays, term by term, in the order given."""
    sums: list[Any] | None = None
    for result in results:
        if sums is None:
            sums = [np.array(term, dtype=np.float64) for term in result]
        else:
            for position, term in enumerate(result):
                sums[position] += term
    if sums is None:
        raise ValueError("there is no block to add up")
    return tuple(sums)


@cache
def _blas() -> ThreadpoolController:
    # glibc's thresholds for returning memory follow the largest array freed so far. Without a large
    # one, the kernel maps and zeroes every temporary of a block again, which takes longer than the
    # arithmetic on it.
    np.empty(2**24, dtype=np.uint8)
    return ThreadpoolController()


# Reading and setting the limit takes as long as a small block, so it is set once for all threads.
_ONE_BLAS_THREAD = SharedContext(lambda: _blas().limit(limits=1, user_api="blas"))


def one_blas_thread() -> SharedContext:
    """Run linear algebra on one thread: matrices here are too small to share among several."""
    return _ONE_BLAS_THREAD


def _ordered(
    task: Callable[[tuple[int, int]], Any], spans: Sequence[tuple[int, int]]
) -> Iterator[Any]:
    """Run a task over spans on threads and yield the results in order.

    Linear algebra inside a block runs on one thread: a block is too small to share, and its bits
    must not depend on the number of threads.
    """
    few = sum(stop - start for start, stop in spans) < _ROWS_FOR_THREADS
    threads = 1 if few else min(workers(), len(spans) // 2)
    with one_blas_thread():
        if threads < 2:
            yield from map(task, spans)
        else:
            yield from in_order(task, spans, ahead=4, threads=threads)
