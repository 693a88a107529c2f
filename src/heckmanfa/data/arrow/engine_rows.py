"""Rows of an engine that gives them as one stream, which every pass asks for again.

The stream is cut into parts of a constant number of rows, so nothing depends on the size of the
engine's own batches. Threads work on parts while the engine makes the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from threading import Event
from typing import Any, NamedTuple

from heckmanfa.data.arrow.arrow_rows import ArrowRows
from heckmanfa.data.arrow.engines import cut_parts, part_rows, whole_blocks
from heckmanfa.data.row_sources import Reading, Task
from heckmanfa.data.rows import rows_per_block
from heckmanfa.errors import DataError


class _Part(NamedTuple):
    """A part of the stream, or its first rows."""

    number: int
    batches: list[Any]


class EngineRows(ArrowRows):
    """Rows of a dataset, a lazy frame, a relation, or files that are not local Parquet files."""

    reads_parts = False

    @property
    def part_rows(self) -> int:
        """Number of rows per part."""
        return max(part_rows(self.n_features), rows_per_block(self.n_features))

    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts."""
        self._refuse_outcome()
        sources = self._sources_read(reading)

        def work(part: _Part, stop: Event) -> Any:
            blocks = whole_blocks(iter(part.batches), reading.block_rows)
            return task(part.number, self._cut(part.number, blocks, sources, reading, stop))

        with closing(self.engine.batches(*self._columns_read(sources))) as rows:
            parts = self._parts(rows, reading)
            first = list(islice(parts, 2))
            yield from self._run(work, chain(first, parts), threads=len(first) > 1)

    def _parts(self, rows: Iterator[Any], reading: Reading) -> Iterator[_Part]:
        """Yield the parts that are to be read; the stream is not read beyond the last of them."""
        heads = reading.heads
        missing = 0 if heads is None else sum(head > 0 for head in heads.values())
        for number, batches in enumerate(cut_parts(rows, self.part_rows)):
            head = reading.head(number)
            if head == 0:
                continue
            if head is None:
                yield _Part(number, batches)
                continue
            missing -= 1
            yield _Part(number, next(cut_parts(batches, head)))
            if missing == 0:
                return
        if missing:
            raise DataError(
                f"{self.engine.described} gave fewer rows in this pass than in an earlier one, "
                f"and a fit needs the same rows in every pass: {self.engine.steady}"
            )

    def _place(self, part: int, start: int) -> str:
        return f"{self.engine.described}, from row {part * self.part_rows + start + 1:,} on"
