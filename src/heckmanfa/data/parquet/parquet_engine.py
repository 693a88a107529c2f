"""Parquet files on disk as an engine, whose parts can be read at the same time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from heckmanfa.data.arrow.engines import Engine, Piece, Range
from heckmanfa.data.parquet.parquet_files import StoredFile, value_ranges
from heckmanfa.data.parquet.parquet_parts import Batches, file_parts, read_batches
from heckmanfa.text.printable import shown

_ROWS_AT_ONCE = 2**13


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

    def ranges(self, names: Sequence[str]) -> dict[str, Range]:
        """Return what the footers know; no row is read."""
        return value_ranges(self.files, names)
