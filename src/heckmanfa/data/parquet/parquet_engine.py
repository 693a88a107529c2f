"""Parquet files on disk as an engine, whose parts can be read at the same time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from heckmanfa.data.arrow.engines import Engine, Piece, Range
from heckmanfa.data.parquet.parquet_files import StoredFile, arrow, value_ranges
from heckmanfa.data.parquet.parquet_parts import Batches, file_parts, read_batches, read_columns
from heckmanfa.text.printable import shown

_ROWS_AT_ONCE = 2**13
_SAMPLE_GROUPS = 256


class ParquetEngine(Engine):
    """Files as `scan_files` returns them."""

    n_rows: int

    def __init__(self, files: Sequence[StoredFile], schema: Any) -> None:
        self.files = tuple(files)
        """in the order of their rows"""
        self.local_files = [str(file.path) for file in files]
        self.schema = schema
        self.parts = file_parts(files)
        """the rows, in parts that passes read"""
        self.n_rows = sum(part.rows for part in self.parts)

    @property
    def described(self) -> str:
        """What the rows are from."""
        count = len(self.files)
        return f"{count} Parquet files" if count != 1 else shown(self.files[0].path)

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of all parts."""
        for piece in self.pieces(columns, levels, _ROWS_AT_ONCE):
            yield from piece.batches

    def pieces(
        self, columns: Sequence[str], levels: Sequence[str], block_rows: int
    ) -> Generator[Piece]:
        """Yield the parts, none of which is read yet."""
        wanted = Batches(tuple(columns), tuple(levels), block_rows, head=None, threads=False)
        for part in self.parts:
            yield Piece(part.start, read_batches(part, wanted))

    def load(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield whole files, which takes less time than all of their batches."""
        return (read_columns(file, columns) for file in self.files)

    def sample(self, columns: Sequence[str], rows: int) -> list[Any]:
        """Return the first rows of some row groups; no other is read."""
        pa, _ = arrow()
        groups = file_parts(self.files, most=0)
        groups = groups[:: -(-len(groups) // _SAMPLE_GROUPS)]
        share = min(rows / sum(group.rows for group in groups), 1.0)
        parts: list[Any] = []
        for group in groups:
            wanted = Batches(tuple(columns), (), 1, max(int(share * group.rows), 1), threads=True)
            parts += [pa.Table.from_batches([batch]) for batch in read_batches(group, wanted)]
        return parts

    def ranges(self, names: Sequence[str]) -> dict[str, Range]:
        """Return what the footers know; no row is read."""
        return value_ranges(self.files, names)
