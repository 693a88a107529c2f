"""Rows of a fit that come as record batches: their columns by role, encoded, cut into chunks.

Every pass asks the engine for its pieces again. Most engines give one stream, which is cut into
parts of a constant number of rows, so nothing depends on the size of the engine's own batches.
Threads work on parts while the engine makes the next ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from itertools import chain, islice, pairwise
from threading import Event
from typing import Any, Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.group_cells import joined_labels
from heckmanfa.data.row_sources import (
    Chunk,
    Reading,
    RowSource,
    Task,
    cut_chunks,
    refuse_no_outcome,
)
from heckmanfa.data.rows import ColumnArrays, one_blas_thread, rows_per_block
from heckmanfa.data.scan.arrow_columns import (
    flags_of,
    floats_of,
    groups_of,
    kind_of,
    labels_in,
    numbers_of,
    text_in,
)
from heckmanfa.data.scan.engines import Engine, Piece, part_rows
from heckmanfa.data.scan.scan_columns import Role, ScanColumns, wrong_type
from heckmanfa.data.threads import in_order, workers
from heckmanfa.errors import InputError


class ArrowRows(RowSource):
    """Rows of an engine's table; `scan` makes them."""

    names: tuple[str, ...]
    reads_parts = False

    def __init__(
        self,
        engine: Engine,
        asked: ScanColumns,
        sources: Sequence[str],
        encoding: Encoding | None,
    ) -> None:
        self.engine = engine
        """what gives the rows, in every pass again"""
        self.schema = engine.schema
        """pyarrow.Schema of all columns"""
        self.sources = tuple(sources)
        """the columns that features are made from"""
        self.roles = asked.roles
        """the columns that are not features, by what they are"""
        self.has_outcome, self.outcome_name = asked.outcome is not None, asked.outcome
        self._text_outcome: tuple[str, ...] = ()
        if asked.outcome is not None and kind_of(self.schema.field(asked.outcome).type) == "text":
            self._text_outcome = (asked.outcome,)
        self.has_selected = asked.selected is not None
        self.has_weight = "sample_weight" in self.roles
        self.has_subpop = "subpop" in self.roles
        self.declared = asked.survey
        self.replicates = asked.replicates(self.schema.names)
        self.groupings = asked.groupings
        self.has_groups = len(self.groupings) > 0
        self.drops_missing = asked.missing == "drop"
        self.reference = dict(asked.reference or {})
        self.order_is_stable = engine.order_is_stable
        self.steady = engine.steady
        # Without an outcome, nothing is learned: columns are as they are stored.
        self._take(Encoding.plain(sources) if encoding is None else encoding, "error")

    def _take(self, encoding: Encoding, unknown: Unknown) -> None:
        """Make features of columns by an encoding."""
        self._encoding, self._unknown = encoding, unknown
        self._coded = frozenset(
            name
            for name in self._encoding.sources
            if name in self._encoding.levels or kind_of(self.schema.field(name).type) == "text"
        )
        self._feature_sources = encoding.made_from
        self.names = tuple(self._encoding.columns)
        self.n_features = len(self.names)

    @property
    def encoding(self) -> Encoding | None:
        """How columns become features; None if all of them are numbers already."""
        if not self.has_outcome and not self._encoding.levels:
            return None
        return self._encoding if self._coded or self._encoding.missing == "mean" else None

    def re_encoded(self, encoding: Encoding, unknown: Unknown = "missing") -> Self:
        """Return the same rows as another encoding makes them; see `RowSource`."""
        changed = copy(self)
        changed._take(encoding, unknown)
        return changed

    def reweighted(self, name: str) -> Self:
        """Return the same rows with replicate weights; see `RowSource`."""
        changed = copy(self)
        changed.roles = {
            role: column for role, column in self.roles.items() if not role.startswith("groups")
        }
        changed.roles |= {"sample_weight": name, "full_weight": self.roles["sample_weight"]}
        changed.has_groups, changed.groupings = False, ()
        return changed

    def of_replicates(self) -> RowSource:
        """Return the replicate weights as features; see `RowSource`."""
        return self.re_encoded(Encoding.plain(self.replicates))

    @property
    def described(self) -> str:
        """A short description of the rows."""
        return f"rows of {self.engine.described}"

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None until a pass has read all of them."""
        return self.engine.n_rows

    def __repr__(self) -> str:
        count = "" if self.n_rows is None else f"{self.n_rows:,} "
        order = "" if self.order_is_stable else ", in no stable order"
        return f"<{count}{self.described}: {self.n_features} features{order}>"

    def _refuse_outcome(self) -> None:
        """Refuse rows without an outcome, and texts where numbers are needed."""
        refuse_no_outcome(self)
        if self.outcome_as == "numbers" and self._text_outcome:
            stored = self.schema.field(self.roles["outcome"]).type
            raise InputError(
                f"{wrong_type('outcome', self.roles['outcome'], stored, 'numbers')}. "
                "HeckmanProbit fits an outcome of two classes"
            )

    def _sources_read(self, reading: Reading) -> list[str]:
        """Return the columns that some features are made from."""
        return list(dict.fromkeys(self._feature_sources[k] for k in reading.columns))

    def _columns_read(self, sources: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return all columns to read, and those of which distinct values and codes will do."""
        columns = tuple(dict.fromkeys([*sources, *self.roles.values()]))
        coded = tuple(name for name in sources if name in self._coded)
        return columns, coded + self._text_outcome

    @property
    def part_rows(self) -> int:
        """Number of rows per part of a stream."""
        return max(part_rows(self.n_features), rows_per_block(self.n_features))

    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts."""
        self._refuse_outcome()
        sources = self._sources_read(reading)
        # Set after an error or an interruption, when the results of other parts are not needed.
        stop = Event()

        def work(piece: Piece) -> Any:
            try:
                return task(piece.number, self._cut(piece, sources, reading, stop))
            except BaseException:
                stop.set()
                raise

        pieces = self._pieces(*self._columns_read(sources), reading)
        with one_blas_thread(), closing(pieces):
            first = list(islice(pieces, 2))
            if len(first) < 2 or not self._uses_threads(reading):
                yield from map(work, chain(first, pieces))
                return
            results = in_order(work, chain(first, pieces))
            try:
                # `yield from` would close the results before the event is set.
                for result in results:  # noqa: UP028
                    yield result
            finally:
                stop.set()
                results.close()

    def _uses_threads(self, reading: Reading) -> bool:
        """Whether threads are worth their start for what is to be read."""
        return workers() > 1

    def _pieces(
        self, columns: Sequence[str], levels: Sequence[str], reading: Reading
    ) -> Generator[Piece]:
        """Yield the parts that are to be read."""
        return self.engine.pieces(
            columns, levels, reading.block_rows, self.part_rows, reading.heads
        )

    def _cut(
        self, piece: Piece, sources: list[str], reading: Reading, stop: Event
    ) -> Iterator[Chunk]:
        """Cut the batches of a part into chunks, until ``stop`` is set."""
        start = 0
        with closing(piece.batches) as batches:
            for batch in batches:
                for chunk in self._blocks(piece.number, batch, sources, reading, start):
                    if stop.is_set():
                        return
                    yield chunk
                start += batch.num_rows

    def _blocks(
        self, part: int, batch: Any, sources: list[str], reading: Reading, start: int
    ) -> Iterator[Chunk]:
        encoded = self._columns(part, batch, sources, start)
        features = {i: encoded[self.names[k]] for i, k in enumerate(reading.columns)}
        source = ColumnArrays(features, (batch.num_rows, len(features)))
        roles = {role: batch.column(name) for role, name in self.roles.items()}
        columns = (
            self._outcome(roles["outcome"]),
            flags_of(roles["selected"], self.roles["selected"]) if self.has_selected else None,
            self._weight(roles) if self.has_weight else None,
            self._groups(batch) if self.has_groups else None,
            flags_of(roles["subpop"], self.roles["subpop"], "subpop") if self.has_subpop else None,
        )
        return cut_chunks(source, columns, reading.block_rows, start)

    def _weight(self, roles: dict[Role, Any]) -> Floats:
        weight = floats_of(roles["sample_weight"])
        return weight * (floats_of(roles["full_weight"]) > 0) if "full_weight" in roles else weight

    def _groups(self, batch: Any) -> Any:
        return joined_labels([groups_of(batch.column(name), name) for name in self.groupings])

    def _outcome(self, column: Any) -> Any:
        # Of classes 0 and 1, selected rows hold no other numbers, and these are their own codes.
        if self.outcome_as == "numbers" or self.outcome_as == (0, 1):
            return floats_of(column)
        labels = labels_in(column, self.schema.field(self.roles["outcome"]).type)
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

            frame = pd.DataFrame({name: text_in(batch.column(name)) for name in coded})
            encoding = replace(self._encoding, sources=tuple(coded))
            try:
                encoded = encoding.transform(frame, unknown=self._unknown)
            except InputError:
                self._refuse_rows_of(part, start, frame, encoding)
                raise
            columns |= {str(name): encoded[name].to_numpy() for name in encoded.columns}
        return columns

    def _refuse_rows_of(self, part: int, start: int, frame: Any, encoding: Encoding) -> None:
        """Refuse the first rows of a batch that cannot be encoded, by the place they are in."""
        edges = [edge - start for edge in self._edges(part) if start < edge < start + len(frame)]
        for low, high in pairwise([0, *edges, len(frame)]):
            try:
                encoding.transform(frame.iloc[low:high], unknown=self._unknown)
            except InputError as error:
                raise InputError(f"{self._place(part, start + low)}: {error}") from error

    def _edges(self, part: int) -> Sequence[int]:
        """Return the rows of a part with which another file begins."""
        return ()

    def _place(self, part: int, start: int) -> str:
        """Say which row comes ``start`` rows after the first of a part."""
        return f"{self.engine.described}, from row {part * self.part_rows + start + 1:,} on"
