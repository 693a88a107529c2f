"""Rows in the partitions of a Dask collection, on whatever cluster is active.

A pass is one task per partition, which Dask runs on the worker that holds or reads the partition.
Every pass reads again what is not persisted, and only the columns that it needs, so the data may
be far larger than the workers' memory. Results are small and taken in the order of the partitions:
no digit depends on the number of workers, on which was first, or on which was replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import uuid4

import numpy as np

from heckmanfa.data.arrays import is_dask
from heckmanfa.data.columns.column_names import refuse_same_labels, split_labels
from heckmanfa.data.columns.encoded_frame import decide_levels
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.dask_worker import (
    CountLevels,
    PartitionWork,
    Pass,
    Work,
    failure,
    heckmanfa_pass,
    merge_counts,
)
from heckmanfa.data.row_sources import (
    CategoryType,
    Reading,
    RowSource,
    Task,
)
from heckmanfa.data.rows import places_of
from heckmanfa.data.survey import Survey
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError

# Number of results fetched at a time, since every fetch asks the scheduler once.
_FETCHED_AT_ONCE = 64


def dask_source(X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any) -> DaskSource:
    """Return the row source of a Dask DataFrame or Array and the columns that go with it.

    These are Dask Series or Arrays with the partitions (or chunks) of X, or None.
    """
    collections: dict[str, Any] = {"X": _features(X)}
    if y is None:
        raise InputError("y is None: pass the outcome as a Dask Series or Array, NaN where missing")
    designed = groups if isinstance(groups, DesignedFrame) else None
    others = {"y": y, "selected": selected, "sample_weight": sample_weight, "groups": groups}
    if designed is not None:
        others |= designed.roles
    for role, values in others.items():
        if values is not None:
            made = _groups(values) if role == "groups" else _vector(values, role)
            collections[role] = _fitting(made, role, collections["X"])
    source = DaskSource(collections)
    if designed is not None:
        source.survey, source.groupings = designed.survey, designed.survey.design_columns
        source.designed, source.replicates = designed, designed.replicates
    return source


@dataclass(frozen=True, eq=False)
class DesignedFrame:
    """The columns of a Dask DataFrame that are the design of a survey."""

    frame: Any
    survey: Survey

    @property
    def replicates(self) -> tuple[str, ...]:
        """The columns of replicate weights."""
        return self.survey.replicate_columns(self.frame.columns)

    @property
    def roles(self) -> dict[str, Any]:
        """The columns that say of which unit a row is, and of which subpopulation."""
        columns, subpop = self.survey.design_columns, self.survey.subpop
        return {
            "groups": self.frame[[*columns]] if columns else None,
            "subpop": None if subpop is None else self.frame[subpop],
        }


class DaskSource(RowSource):
    """The partitions of a Dask collection, raw or encoded on the workers."""

    steady = (
        "call .persist() on the collections before the fit, give what draws rows a random_state, "
        "or write them to files and read those"
    )

    def __init__(self, collections: dict[str, Any]) -> None:
        self._collections = collections
        X = collections["X"]
        self._labels = None if _is_array(X) else list(X.columns)
        self.n_features = int(X.shape[1]) if self._labels is None else len(self._labels)
        # As in memory, columns count by position if their labels are not text.
        self.names = None
        if self._labels is not None:
            self.names, self.labels_given = split_labels(self._labels)
        self.has_selected = "selected" in collections
        self.has_weight = "sample_weight" in collections
        self.has_groups = "groups" in collections
        self.has_subpop = "subpop" in collections
        self.designed: DesignedFrame | None = None
        self.groupings = _groupings(collections.get("groups"))
        self._n_parts, self._n_columns = _n_parts(X), self.n_features
        self.column_types = None if self._labels is None else empty_part(X)
        self._encoding: Encoding | None = None
        self._unknown: Unknown = "error"
        self._partitions: dict[tuple[int, ...], tuple[tuple[str, ...], list[Any]]] = {}

    @property
    def encoding(self) -> Encoding | None:
        """How the columns of the collection become features; None if they are raw."""
        return self._encoding

    @property
    def is_raw(self) -> bool:
        """Whether a fit may encode the columns."""
        return self._encoding is None

    def re_encoded(self, encoding: Encoding, unknown: Unknown = "missing") -> Self:
        """Return the same rows, whose columns the workers encode; see `RowSource`."""
        changed = copy(self)
        changed._encoding, changed._unknown = encoding, unknown
        changed.names, changed.labels_given = tuple(encoding.columns), None
        changed.n_features = len(changed.names)
        return changed

    def reweighted(self, name: str) -> Self:
        """Return the same rows with replicate weights; see `RowSource`."""
        assert self.designed is not None
        frame = self.designed.frame
        own = frame[name] * (frame[self.designed.survey.weights] > 0)
        changed = copy(self)
        changed._collections = self._collections | {"sample_weight": own}
        changed._collections.pop("groups", None)
        changed.has_groups, changed.groupings, changed._partitions = False, (), {}
        return changed

    def of_replicates(self) -> RowSource:
        """Return the replicate weights as features; see `RowSource`."""
        assert self.designed is not None
        return DaskSource(self._collections | {"X": self.designed.frame[[*self.replicates]]})

    @property
    def described(self) -> str:
        """A short description of the rows."""
        return f"rows of {self._n_parts} Dask partitions"

    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every partition, in their order."""
        work, columns = Pass(task, reading.block_rows, self.outcome_as), reading.columns
        if self._encoding is not None:
            # Of each encoded column, the position of the column that it is made from.
            made_from = [
                position
                for position, name in enumerate(self._encoding.sources)
                for _ in self._encoding.columns_of(name)
            ]
            columns = tuple(dict.fromkeys(made_from[column] for column in reading.columns))
            partial = self._encoding.of_sources([self._encoding.sources[k] for k in columns])
            if partial.has_rules:
                names = self._encoding.columns
                wanted = places_of([names[k] for k in reading.columns], partial.columns)
                work = replace(work, encoding=partial, unknown=self._unknown, columns=tuple(wanted))
        return self._compute(work, columns, reading)

    def _compute(
        self, work: PartitionWork, columns: tuple[int, ...], reading: Reading | None = None
    ) -> Iterator[Any]:
        """Yield what some work on every partition returns, in their order.

        ``columns`` are those of X that it needs. ``reading`` says which partitions, and how much of
        each; None means all.
        """
        from dask import delayed

        roles, partitions = self._delayed(columns)
        # One copy travels to each worker; as an argument, it would travel with each task.
        shared = delayed(Work(work, roles, self._n_parts), traverse=False)
        run = delayed(heckmanfa_pass, pure=False)
        name = f"{heckmanfa_pass.__name__}-{uuid4().hex}"
        heads = [None if reading is None else reading.head(part) for part in range(self._n_parts)]
        parts = [part for part, head in enumerate(heads) if head != 0]
        jobs = [
            run(shared, part, heads[part], *partitions[part], dask_key_name=(name, part))
            for part in parts
        ]
        client = _active_client()
        if client is None:
            return _computed_here(jobs, self._n_parts)
        return _computed_on(client, jobs, parts, self._n_parts)

    def learn_levels(self, categories: Mapping[int, CategoryType]) -> dict[int, tuple[str, ...]]:
        """Learn the levels of some columns; each partition is counted where it is."""
        columns = tuple(sorted(categories))
        names = [f"x{column}" if self.names is None else self.names[column] for column in columns]
        work = CountLevels(tuple(names), tuple(categories[column] for column in columns))
        counted = merge_counts(self._compute(work, columns))
        return {
            columns[place]: decide_levels(column, tally)
            for place, (column, tally) in counted.items()
        }

    def _delayed(self, columns: tuple[int, ...]) -> tuple[tuple[str, ...], list[Any]]:
        """Return the roles, and what each partition holds of them, with some columns of X."""
        if columns in self._partitions:
            return self._partitions[columns]
        collections = self._collections | {"X": self._projected(columns)}
        framed = [role for role, values in collections.items() if not _is_array(values)]
        arrays = [role for role, values in collections.items() if _is_array(values)]
        pieces: list[list[Any]] = [[()] * self._n_parts]
        if framed:
            pieces = [_packed([collections[role] for role in framed])]
        if arrays:
            pieces += _blocks([collections[role] for role in arrays])
        if any(len(piece) != self._n_parts for piece in pieces):
            raise InputError(
                f"Dask does not make the {self._n_parts} partitions of X that it reports: call "
                ".persist() on the collections before the fit"
            )
        self._partitions[columns] = (*framed, *arrays), list(zip(*pieces, strict=True))
        return self._partitions[columns]

    def _projected(self, columns: tuple[int, ...]) -> Any:
        X = self._collections["X"]
        if columns == tuple(range(self._n_columns)):
            return X
        if self._labels is None:
            return one_column_chunk(X[:, list(columns)])
        return X[[self._labels[column] for column in columns]]


# Reading collections. -----------------------------------------------------------------------------


def _is_array(values: Any) -> bool:
    import dask.array as da

    return isinstance(values, da.Array)


def _n_parts(values: Any) -> int:
    return int(values.numblocks[0] if _is_array(values) else values.npartitions)


def _features(X: Any) -> Any:
    from dask.utils import is_dataframe_like

    if _is_array(X):
        if X.ndim != 2:
            raise InputError(f"X must have two dimensions; this Dask Array has {X.ndim}")
        return one_column_chunk(X)
    if not is_dataframe_like(X):
        raise InputTypeError(
            f"X must be a Dask DataFrame or a Dask Array; got a Dask {type(X).__name__}"
        )
    refuse_same_labels(X.columns)
    return X


def empty_part(X: Any) -> Any:
    """Return what a partition of a Dask DataFrame is, without rows."""
    return X._meta


def one_column_chunk(X: Any) -> Any:
    """Return a two-dimensional Dask Array whose chunks have all columns."""
    if np.isnan(X.shape[1]):
        raise InputError(
            "it is not known how many columns X has: call X.compute_chunk_sizes() first"
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _vector(values: Any, role: str) -> Any:
    """Return one column of a Dask collection, whatever its shape."""
    from dask.utils import is_dataframe_like, is_series_like

    if not is_dask(values):
        raise InputTypeError(
            f"X is a Dask collection, but {role} is a {type(values).__name__}: pass {role} as a "
            "Dask Series or Array with the partitions of X (dask.array.from_array(..., "
            "chunks=X.chunks[0]) makes one)"
        )
    if _is_array(values):
        if values.ndim == 2 and values.shape[1] == 1:
            return values[:, 0]
        if values.ndim != 1:
            raise InputError(f"{role} must have one dimension; this Dask Array has {values.ndim}")
        return values
    if is_dataframe_like(values) and len(values.columns) == 1:
        return values[values.columns[0]]
    if not is_series_like(values):
        raise InputTypeError(
            f"{role} must be a Dask Series or a one-dimensional Dask Array; got a Dask "
            f"{type(values).__name__}"
        )
    return values


def _groups(values: Any) -> Any:
    """Return the clusters of a Dask collection: one column, or a frame of several."""
    from dask.utils import is_dataframe_like

    several = is_dataframe_like(values) and len(values.columns) > 1
    return values if is_dask(values) and several else _vector(values, "groups")


def _groupings(groups: Any) -> tuple[str, ...]:
    if groups is None:
        return ()
    return tuple(str(name) for name in getattr(groups, "columns", ["groups"]))


def _fitting(values: Any, role: str, X: Any) -> Any:
    """Return the values in the partitions of X."""
    if _is_array(values) and _is_array(X):
        mine, theirs = values.chunks[0], X.chunks[0]
        if not np.isnan([*mine, *theirs]).any():
            if sum(mine) != sum(theirs):
                raise InputError(
                    f"X and {role} have inconsistent numbers of samples: X has {sum(theirs)} "
                    f"rows, {role} {sum(mine)}"
                )
            return values if mine == theirs else values.rechunk((theirs,))
    if _n_parts(values) != _n_parts(X):
        raise InputError(
            f"X has {_n_parts(X)} partitions, and {role} {_n_parts(values)}: make both from one "
            "collection, or repartition both in the same way"
        )
    return values


def _packed(frames: Sequence[Any]) -> list[Any]:
    """Return one tuple of frames and series per partition; what they share is read once."""
    import dask.dataframe as dd
    import pandas as pd

    together = dd.map_partitions(
        _together,
        *frames,
        align_dataframes=False,
        enforce_metadata=False,
        meta=pd.Series([], dtype=object),
    )
    # Only used columns are read, and all work on a partition is one task.
    optimized = together.optimize()
    if optimized.npartitions != together.npartitions:
        # Dask joins partitions of files if it reads few of many columns; two passes with different
        # columns would then have different partitions.
        optimized = together.simplify()
    return list(optimized.to_delayed(optimize_graph=False))


def _together(features: Any, *columns: Any) -> tuple[Any, ...]:
    # A column that is a view would keep the whole partition that it was read from in memory.
    return (features, *(column.copy() for column in columns))


def _blocks(arrays: Sequence[Any]) -> list[list[Any]]:
    """Return a list of chunks per array; what the arrays share is computed once."""
    import dask

    return [
        list(array.to_delayed(optimize_graph=False).reshape(-1)) for array in dask.optimize(*arrays)
    ]


# Running. -----------------------------------------------------------------------------------------


def _active_client() -> Any:
    """Return the client of the cluster that Dask would use now, or None."""
    import dask

    try:
        from distributed import Client, default_client
    except ImportError:
        return None
    chosen = dask.config.get("scheduler", None)
    if isinstance(chosen, Client):
        return chosen
    if chosen not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _computed_here(jobs: list[Any], n_parts: int) -> Iterator[Any]:
    """Yield the results of Dask's scheduler for one machine."""
    import dask

    try:
        results = dask.compute(*jobs)
    except HeckmanfaError:
        raise
    except Exception as error:
        raise failure(error, None, n_parts) from error
    yield from results


def _computed_on(client: Any, jobs: list[Any], parts: list[int], n_parts: int) -> Iterator[Any]:
    """Yield a cluster's results in order; nothing stays there, or runs on after an error."""
    futures = client.compute(jobs)
    try:
        for start in range(0, len(futures), _FETCHED_AT_ONCE):
            span = slice(start, start + _FETCHED_AT_ONCE)
            try:
                results = client.gather(futures[span])
            except HeckmanfaError:
                raise
            except Exception as error:
                failed = [future.status == "error" for future in futures]
                part = parts[failed.index(True)] if any(failed) else None
                raise failure(error, part, n_parts) from error
            yield from results
    finally:
        outstanding = [future for future in futures if future.status == "pending"]
        if outstanding:
            # A client that lost its cluster cannot cancel, and need not.
            with suppress(Exception):
                client.cancel(outstanding)
        # A stored error keeps this frame alive, and the cluster would then keep the results.
        for future in futures:
            future.release()
