"""Rows in Parquet files of any number and size, which every pass reads again.

A row group of a file is a part. Threads work on several parts at once, each a batch at a time, so
memory does not grow with the data. `scan_parquet` reads footers and columns of text; a fit reads
the columns that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.parquet.parquet_columns import (
    FLAGS,
    flags_of,
    floats_of,
    groups_of,
    kind_of,
    labels_in,
    numbers_of,
)
from heckmanfa.data.parquet.parquet_files import (
    Batches,
    PathLike,
    StoredFile,
    read_batches,
    row_groups,
    scan_files,
)
from heckmanfa.data.parquet.parquet_levels import learn_encoding
from heckmanfa.data.row_sources import Chunk, Reading, RowSource, Task, cut_chunks
from heckmanfa.data.rows import Columns, one_blas_thread
from heckmanfa.data.threads import in_order, workers
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, shown

# Fewer rows are finished before threads have started.
_ROWS_FOR_THREADS = 2**14
_ROLES = ("outcome", "selected", "sample_weight", "groups")
_WANTED = {"outcome": "numbers or two classes", "groups": "labels", "selected": FLAGS}


class ParquetRows(RowSource):
    """Rows in Parquet files; `scan_parquet` makes them."""

    names: tuple[str, ...]

    def __init__(
        self,
        files: Sequence[StoredFile],
        schema: Any,
        roles: dict[str, str],
        encoding: Encoding,
        *,
        drops_missing: bool,
    ) -> None:
        self.paths: tuple[Path, ...] = tuple(file.path for file in files)
        """the files, in the order of their rows"""
        self.schema = schema
        """of the first file"""
        self._roles = roles
        self._encoding = encoding
        # Columns that are not plain numbers are encoded as in memory.
        self._coded = frozenset(
            name
            for name in encoding.sources
            if name in encoding.levels or kind_of(schema.field(name).type) == "text"
        )
        outcome = roles["outcome"]
        is_text = kind_of(schema.field(outcome).type) == "text"
        self._text_outcome = (outcome,) if is_text else ()
        self._parts = row_groups(files)
        self._feature_sources = [
            name
            for name in encoding.sources
            for _ in (encoding.groups[name] if name in encoding.levels else [name])
        ]
        self.names = tuple(encoding.columns)
        self.n_features = len(self.names)
        self.n_rows = sum(part.rows for part in self._parts)
        self.has_selected = "selected" in roles
        self.has_weight = "sample_weight" in roles
        self.has_groups = "groups" in roles
        self.drops_missing = drops_missing
        self.dummies = encoding.groups
        self.feature_groups = [group for group in encoding.groups.values() if len(group) > 1]

    @property
    def encoding(self) -> Encoding | None:
        """How columns become features; None if all of them are numbers already."""
        return self._encoding if self._coded or self._encoding.missing == "mean" else None

    @property
    def described(self) -> str:
        """A short description of the rows."""
        count = len(self.paths)
        return f"rows of {count} Parquet files" if count != 1 else f"rows of {self.paths[0]}"

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"<{self.n_rows:,} {self.described}: {self.n_features} features>"

    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts."""
        self._refuse_text()
        parts = [part for part in range(len(self._parts)) if reading.head(part) != 0]
        rows = sum(reading.head(part) or self._parts[part].rows for part in parts)
        threads = workers() if rows >= _ROWS_FOR_THREADS else 1
        # If parts are too few to keep all threads busy, one decodes while another works.
        ahead = threads > 1 and len(parts) < 2 * threads
        stop = Event()

        def work(part: int) -> Any:
            try:
                return task(part, self._chunks(part, reading, stop, ahead=ahead))
            except BaseException:
                stop.set()
                raise

        with one_blas_thread():
            if threads == 1 or len(parts) == 1:
                yield from map(work, parts)
                return
            results = in_order(work, parts)
            try:
                for result in results:  # noqa: UP028
                    yield result
            finally:
                # After an error or an interruption the other results are not needed.
                stop.set()
                results.close()

    def _refuse_text(self) -> None:
        """Refuse an outcome of texts where numbers are needed."""
        if self.outcome_as == "numbers" and self._text_outcome:
            stored = self.schema.field(self._roles["outcome"]).type
            raise InputError(
                f"{_wrong('outcome', self._roles['outcome'], stored, 'numbers')}. HeckmanProbit "
                "fits an outcome of two classes"
            )

    def _chunks(self, part: int, reading: Reading, stop: Event, *, ahead: bool) -> Iterator[Chunk]:
        """Read a part block by block."""
        sources = list(dict.fromkeys(self._feature_sources[k] for k in reading.columns))
        wanted = Batches(
            columns=tuple(dict.fromkeys([*sources, *self._roles.values()])),
            levels=tuple(name for name in sources if name in self._coded) + self._text_outcome,
            block_rows=reading.block_rows,
            head=reading.head(part),
            threads=ahead,
        )
        start = 0
        with ExitStack() as stack:
            source = read_batches(self._parts[part], wanted)
            stack.callback(source.close)
            batches: Iterator[Any] = source
            if ahead:
                batches = _ahead(source, stack.enter_context(ThreadPoolExecutor(1)))
            for batch in batches:
                for chunk in self._blocks(part, batch, sources, reading, start):
                    if stop.is_set():
                        return
                    yield chunk
                start += batch.num_rows

    def _blocks(
        self, part: int, batch: Any, sources: list[str], reading: Reading, start: int
    ) -> Iterator[Chunk]:
        encoded = self._columns(part, batch, sources, start)
        features = {i: encoded[self.names[k]] for i, k in enumerate(reading.columns)}
        source = Columns(features, (batch.num_rows, len(features)))
        roles = {role: batch.column(name) for role, name in self._roles.items()}
        columns = (
            self._outcome(roles["outcome"]),
            flags_of(roles["selected"], self._roles["selected"]) if self.has_selected else None,
            floats_of(roles["sample_weight"]) if self.has_weight else None,
            groups_of(roles["groups"]) if self.has_groups else None,
        )
        return cut_chunks(source, columns, reading.block_rows, start)

    def _outcome(self, column: Any) -> Any:
        if self.outcome_as == "numbers":
            return floats_of(column)
        if self.outcome_as == (0, 1):
            # Selected rows hold no other numbers, and these are their own codes.
            return floats_of(column)
        labels = labels_in(column, self.schema.field(self._roles["outcome"]).type)
        return labels if self.outcome_as == "labels" else labels.encoded(self.outcome_as)

    def _columns(self, part: int, batch: Any, sources: list[str], start: int) -> dict[str, Floats]:
        """Return the encoded columns of some sources."""
        columns = {
            name: numbers_of(batch.column(name)) for name in sources if name not in self._coded
        }
        if self._encoding.missing == "mean":
            for name, values in columns.items():
                columns[name] = np.where(np.isnan(values), self._encoding.means[name], values)
        coded = [name for name in sources if name in self._coded]
        if coded:
            import pandas as pd

            frame = pd.DataFrame(
                {name: batch.column(name).to_pandas(date_as_object=False) for name in coded}
            )
            try:
                encoded = replace(self._encoding, sources=tuple(coded)).transform(frame)
            except InputError as error:
                file, group, *_ = self._parts[part]
                first = sum(file.group_rows[:group]) + start + 1
                raise InputError(f"{shown(file.path)}, from row {first} on: {error}") from error
            columns |= {str(name): encoded[name].to_numpy() for name in encoded.columns}
        return columns


def _ahead(batches: Iterator[Any], pool: ThreadPoolExecutor) -> Iterator[Any]:
    """Decode the next batch in a thread while the caller works on one."""
    upcoming = pool.submit(next, batches, None)
    while True:
        batch = upcoming.result()
        if batch is None:
            return
        upcoming = pool.submit(next, batches, None)
        yield batch


def scan_parquet(
    path: PathLike | Sequence[PathLike],
    outcome: str,
    features: Sequence[str] | None = None,
    *,
    selected: str | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    missing: str = "error",
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    encoding: Encoding | None = None,
) -> ParquetRows:
    """Return the rows of Parquet files, which may be larger than memory, for a fit.

    Parameters
    ----------
    path : str, path, or sequence of these
        Files, folders (whose files are found at any depth) and patterns such as
        ``"data/*.parquet"``. The files are read in sorted order, each once.
    outcome : str
        The column to predict; null or NaN where it was not observed. For `HeckmanProbit`, it
        may hold any two numbers, booleans, or two texts (where ``""``, ``"NA"``, ``"?"`` and the
        like are missing, as in other columns of text), which one pass finds.
    features : sequence of str, optional
        Columns of either equation; by default all columns without another role. The file's schema
        decides: booleans and decimals are numbers. Text and dictionaries, even if they spell
        numbers, become dummies named ``column[level]`` for each level but the first, in one pass
        over these columns. A search moves the dummies of a column together unless its
        ``feature_groups`` name some of them. Wherever a model names features, the column's name
        stands for all of its dummies.
    selected : str, optional
        Column that says who is selected: booleans, 0 and 1, or words such as yes and no. By
        default, rows with an outcome are selected.
    sample_weight, groups : str, optional
        Columns of weights, and of clusters for ``cov_type="cluster"``.
    missing : {"error", "drop"}
        Whether rows that lack a feature are refused, or left out and counted. Infinite values
        are always refused.
    categorical, numeric : sequence of str
        Columns to take as categories, or as numbers, whatever their type.
    encoding : Encoding, optional
        How columns become features, if that was learned before.

    Returns
    -------
    ParquetRows
        The only argument of ``fit``. ``names`` are the features; ``encoding`` makes the same
        features from other tables.

    Examples
    --------
    >>> from heckmanfa import Heckman, scan_parquet  # doctest: +SKIP
    >>> rows = scan_parquet("wages/*.parquet", outcome="lwage")  # doctest: +SKIP
    >>> Heckman(["educ", "exper"]).fit(rows)  # doctest: +SKIP
    """
    if missing not in ("error", "drop"):
        raise InputError(f"missing must be 'error' or 'drop'; got {quoted(missing)}")
    if isinstance(features, str):
        raise InputError(f"features must be a list of columns: write [{quoted(features)}]")
    if encoding is not None and (len(categorical) or len(numeric)):
        raise InputError(
            "an encoding already defines the categories; leave categorical and numeric out"
        )
    named = zip(_ROLES, (outcome, selected, sample_weight, groups), strict=True)
    roles = {role: name for role, name in named if name is not None}
    sources: list[str] = []

    def needed(schema: Any, place: Path) -> list[str] | None:
        sources.extend(_sources(schema, roles, features, encoding, place))
        if features is None and encoding is None:
            return None
        return list(dict.fromkeys([*sources, *roles.values()]))

    files, schema = scan_files(path, needed)
    _check_roles(schema, roles)
    if encoding is None:
        decided = {"categorical": categorical, "numeric": numeric}
        encoding = learn_encoding(files, schema, sources, named=features is not None, **decided)
    return ParquetRows(files, schema, roles, encoding, drops_missing=missing == "drop")


def _sources(
    schema: Any,
    roles: dict[str, str],
    features: Sequence[str] | None,
    encoding: Encoding | None,
    path: Path,
) -> list[str]:
    """Return the columns that features are made from; refuse those that are not there."""
    taken = list(roles.values())
    sources = list(encoding.sources if encoding is not None else features or [])
    if encoding is None and features is None:
        sources = [name for name in schema.names if name not in taken]
    if features is not None and encoding is not None and {*features} != {*sources}:
        raise InputError("an encoding already defines the features; leave features out")
    refuse_absent([*taken, *sources], schema.names, shown(path))
    twice = sorted({name for name in sources if sources.count(name) > 1})
    if twice:
        raise InputError(f"the feature {quoted(twice[0])} is named twice")
    if roles["outcome"] in sources:
        raise InputError(f"{quoted(roles['outcome'])} is the outcome, and cannot also be a feature")
    if not sources:
        raise InputError(f"{shown(path)} has no column besides {taken} that could be a feature")
    return sources


def _check_roles(schema: Any, roles: dict[str, str]) -> None:
    for role, name in roles.items():
        kind = kind_of(schema.field(name).type)
        fits = kind != "other" if role == "groups" else kind in ("number", "empty")
        fits = fits or (role in ("outcome", "selected") and kind == "text")
        if not fits:
            wanted = _WANTED.get(role, "numbers")
            raise InputError(_wrong(role, name, schema.field(name).type, wanted))


def _wrong(role: str, name: str, stored: Any, wanted: str) -> str:
    """Explain that a column has a type that its role cannot have."""
    return (
        f"{role} names the column {quoted(name)}, which must hold {wanted}; its type is "
        f"{shown(stored)}"
    )
