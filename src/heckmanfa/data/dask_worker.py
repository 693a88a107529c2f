"""What a Dask worker does with one partition in one pass, and how it fails."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.column_numbers import as_series, floats, numbers, numeric_array
from heckmanfa.data.columns.encoded_frame import (
    EncodedFrame,
    array_frame,
    category_column,
    count_levels,
    to_pandas_column,
)
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.features import number_columns
from heckmanfa.data.columns.kinds import ColumnSpec
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.data.group_cells import joined_labels
from heckmanfa.data.outcome_classes import labels_of
from heckmanfa.data.row_labels import refuse_other_labels
from heckmanfa.data.row_sources import CategoryType, Chunk, OutcomeAs, Task, cut_chunks
from heckmanfa.data.rows import ColumnArrays, Matrix, Source, one_blas_thread
from heckmanfa.data.threads import SharedContext
from heckmanfa.errors import ClusterError, HeckmanfaError, InputError

# glibc's numbers for two settings, the default of one, and the values during a pass.
_TRIM, _MAP = -1, -3
_USUAL, _KEPT, _LARGEST_MAPPED = 2**17, 2**28, 2**25


PartitionWork = Callable[[int, int | None, dict[str, Any]], Any]
"""what is done with a partition, its `Reading.head` and its columns by role; returns a little"""


@dataclass(frozen=True)
class Pass:
    """A task on the rows of each partition."""

    task: Task
    block_rows: int
    outcome_as: OutcomeAs = "numbers"
    """how chunks hold the outcome"""
    encoding: Encoding | None = None
    """how columns become features: its sources are those of a partition, in their order; None if
    all columns are numbers"""
    unknown: Unknown = "error"
    columns: tuple[int, ...] = ()
    """positions, among what the encoding makes, of the columns that the task wants"""

    def __call__(self, part: int, head: int | None, partition: dict[str, Any]) -> Any:
        """Run the task on chunks of a partition."""
        return self.task(part, self._chunks(head, partition))

    def _chunks(self, head: int | None, partition: dict[str, Any]) -> Iterator[Chunk]:
        """Cut the columns of a partition, by role, into chunks; ``head`` rows of it, or all."""
        n = len(partition["X"])
        if head is not None and head < n:
            n = head
            partition = {role: _head(values, n) for role, values in partition.items()}
        if n == 0:
            return
        weight = None
        if "sample_weight" in partition:
            weight = numeric_array(partition["sample_weight"], "sample_weight").astype(np.float64)
        columns = (
            self._outcome(partition["y"]),
            numeric_array(partition["selected"], "selected") if "selected" in partition else None,
            weight,
            joined_labels(_groupings(partition["groups"])) if "groups" in partition else None,
            numeric_array(partition["subpop"], "subpop") if "subpop" in partition else None,
        )
        yield from cut_chunks(self._source(partition["X"]), columns, self.block_rows)

    def _source(self, features: Any) -> Source:
        if self.encoding is None:
            return _source(features)
        frame = partition_frame(features)
        made = EncodedFrame(frame, self.encoding, self.unknown).arrays(self.columns)
        arrays = {place: made[column] for place, column in enumerate(self.columns)}
        return ColumnArrays(arrays, (frame.shape[0], len(arrays)))

    def _outcome(self, values: Any) -> Any:
        if self.outcome_as == "numbers":
            return numeric_array(values, "y").astype(np.float64, copy=False)
        labels = labels_of(values, len(values))
        return labels if self.outcome_as == "labels" else labels.encoded(self.outcome_as)


@dataclass(frozen=True)
class Work:
    """What each worker gets once."""

    work: PartitionWork
    roles: tuple[str, ...]
    """roles of the items of a partition"""
    n_parts: int


def heckmanfa_pass(work: Work, part: int, head: int | None, packed: Any, *blocks: Any) -> Any:
    """Work on one partition, its frames and its arrays; Dask's dashboard shows this name."""
    try:
        partition = dict(zip(work.roles, (*packed, *blocks), strict=True))
        n = len(partition["X"])
        for role, values in partition.items():
            if len(values) != n:
                raise InputError(
                    f"partition {part} of {work.n_parts} has {n} rows of X, but {len(values)} of "
                    f"{role}: make both from one collection, or repartition both in the same way"
                )
        refuse_other_labels(partition)
        with _at_work:
            return work.work(part, head, partition)
    except HeckmanfaError:
        raise
    except Exception as error:
        # The cause of an error does not travel from a worker, so the message has to say it.
        raise failure(error, part, work.n_parts) from error


# What a partition holds. --------------------------------------------------------------------------


def _head(values: Any, n: int) -> Any:
    return values[:n] if isinstance(values, np.ndarray) else values.iloc[:n]


def partition_frame(features: Any) -> nw.DataFrame[Any]:
    """Return the features of a partition as a frame, whose columns may be raw."""
    frame = nw.from_native(features, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame
    return array_frame(np.asarray(features))


def _source(features: Any) -> Source:
    """Return the features of a partition, column by column as a fit in memory takes them."""
    if isinstance(features, pd.DataFrame) and (features.dtypes == np.float64).all():
        # The usual case, and the fast one.
        values = features.to_numpy()
        return ColumnArrays(dict(enumerate(values.T)), values.shape)
    frame = nw.from_native(features, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return number_columns(frame, range(frame.shape[1]))
    array = np.asarray(features)
    if array.ndim != 2:
        raise InputError(f"a chunk of X is a {type(features).__name__}, and not a NumPy matrix")
    if array.dtype.kind not in "biuf":
        array = floats(array.reshape(-1), "X").reshape(array.shape)
    return Matrix(array)


def _groupings(values: Any) -> list[NDArray[Any]]:
    """Return the columns of groups of a partition."""
    if getattr(values, "ndim", 1) == 1:
        return [_groups(values)]
    return [_groups(values[name]) for name in values.columns]


def _groups(values: Any) -> NDArray[Any]:
    series = as_series(values)
    if series is None:
        return np.asarray(values)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return numbers(series, "groups")
    array = np.asarray(series.to_numpy())
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if missing.any():
        # Missing text is NaN, NA or None; None is the one that all code can tell from text.
        array = array.astype(object)
        array[missing] = None
    return array


@contextmanager
def _worker_settings() -> Iterator[None]:
    """Run linear algebra on one thread, and let glibc keep the memory of freed block temporaries.

    Dask starts workers with a setting that returns freed memory at once, which is right for
    partitions. For the temporaries of a block it doubles the time: each is mapped and zeroed again.
    """
    trim = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    library = ctypes.CDLL(None) if trim.isdigit() and os.name == "posix" else None
    with one_blas_thread():
        if library is None or not hasattr(library, "mallopt"):
            yield
            return
        mapped = os.environ.get("MALLOC_MMAP_THRESHOLD_", "")
        library.mallopt(_TRIM, _KEPT)
        library.mallopt(_MAP, _LARGEST_MAPPED)
        try:
            yield
        finally:
            library.mallopt(_TRIM, int(trim))
            library.mallopt(_MAP, int(mapped) if mapped.isdigit() else _USUAL)


# The digits of a partition must not depend on when the work on another one ends.
_at_work = SharedContext(_worker_settings)


def failure(error: Exception, part: int | None, n_parts: int) -> ClusterError:
    """Say which partition failed, why, and what to do."""
    which = f"a partition of {n_parts}" if part is None else f"partition {part} of {n_parts}"
    kind = type(error).__name__
    smaller = (
        "repartition X and the others into smaller partitions, or give the workers more memory"
    )
    if kind == "KilledWorker":
        # Dask blames every task of a worker that died, so another partition may be the cause.
        return ClusterError(
            f"every worker that was given {which} died, most likely because this or another "
            f"partition takes more memory than a worker has: {smaller}; the workers' logs say more"
        )
    if isinstance(error, MemoryError):
        return ClusterError(f"{which} does not fit in a worker's memory: {smaller}")
    if isinstance(error, CancelledError) or kind == "CommClosedError":
        return ClusterError(
            f"the cluster dropped the work on {which} ({error}): check that the scheduler runs and "
            "that no persisted partition was lost, and fit again"
        )
    if isinstance(error, OSError):
        return ClusterError(
            f"{which} could not be read ({kind}: {error}): check that its file is where the Dask "
            "collection expects it on every worker, and make the collection again"
        )
    return ClusterError(
        f"{which} failed with {kind}: {error}. If your own functions make the collection, compute "
        "that partition alone to find the cause."
    )


@dataclass(frozen=True)
class Counted:
    """A column of a partition."""

    column: ColumnSpec
    tally: TextTally | None
    """None for objects that are not text"""
    holds_text: bool = True
    """whether it is a category already, or holds text that makes it one"""
    declared: tuple[str, ...] | None = None
    """levels that the partition declares, in order; None if it has no rows or declares none"""


@dataclass(frozen=True)
class CountLevels:
    """Counts the levels of some columns of each partition."""

    names: tuple[str, ...]
    types: tuple[CategoryType, ...]
    """what makes each of them a category"""

    def __call__(self, part: int, head: int | None, partition: dict[str, Any]) -> list[Counted]:
        """Count all rows of a partition."""
        frame = partition_frame(partition["X"])
        counted = []
        for place, (name, kind) in enumerate(zip(self.names, self.types, strict=True)):
            series = frame[:, place]
            column = category_column(series, name, kind)
            values = to_pandas_column(series)
            held = "string"
            if kind == "objects":
                held = pd.api.types.infer_dtype(values, skipna=True)
            if held not in ("string", "empty"):
                counted.append(Counted(column, None))
                continue
            tally, _ = count_levels(column, values, capped=True)
            declared = None
            if tally.declared is not None and len(values):
                declared = tuple(tally.declared)
            counted.append(Counted(column, tally, held == "string", declared))
        return counted


def merge_counts(partitions: Iterable[list[Counted]]) -> dict[int, tuple[ColumnSpec, TextTally]]:
    """Merge the counts of partitions; return the columns that are categories, by position.

    The order that partitions declare counts if they all declare the same. Otherwise it would depend
    on how the rows are partitioned, as it does with Dask's unknown categories.
    """
    merged: dict[int, tuple[ColumnSpec, TextTally]] = {}
    declared: dict[int, set[tuple[str, ...]]] = {}
    texts: set[int] = set()
    others: set[int] = set()
    for partition in partitions:
        for place, counted in enumerate(partition):
            if counted.tally is None:
                others.add(place)
                continue
            if counted.holds_text:
                texts.add(place)
            if counted.declared is not None:
                declared.setdefault(place, set()).add(counted.declared)
            if place in merged:
                merged[place][1].merge(counted.tally)
            else:
                merged[place] = counted.column, counted.tally
    for place, orders in declared.items():
        if len(orders) > 1:
            merged[place][1].declared = None
    return {place: merged[place] for place in sorted(texts - others)}
