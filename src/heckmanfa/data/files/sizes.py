"""Refuses small files that would take the memory of large ones, before that memory is allocated.

Compressed text inflates a thousandfold, a row may have fewer fields than the header has names, and
a header may claim any number of rows. What a file may become is limited in proportion to its size,
with an allowance that every machine has. Each compressed buffer of an Arrow IPC (Feather) file
begins with its length after inflation; where it is says the metadata of its message, a FlatBuffer.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from heckmanfa.errors import DataError
from heckmanfa.text.printable import shown

# Bytes that a compressed file may become, whatever its size; and how many for each of its bytes.
_INFLATED, _RATIO = 2**26, 100
# Cells that short rows may be filled up to, whatever the size of a file; and how many per byte.
_CELLS, _CELLS_PER_BYTE = 2**24, 8
# The longest line of a table of text, in bytes.
_LONGEST_LINE = 2**24


def refuse_inflated(path: Path, size: int) -> None:
    """Refuse a compressed file that becomes ``size`` bytes."""
    if size > max(_INFLATED, _RATIO * path.stat().st_size):
        raise DataError(
            f"{shown(path)} has {path.stat().st_size:,} bytes and inflates to {size:,} or more, "
            "which no table of this size does; it is damaged, or made to fill the memory. If you "
            "trust it, unpack it first"
        )


def refuse_archive(path: Path) -> None:
    """Refuse a zip archive, such as an .xlsx file, whose members inflate out of proportion."""
    # The reader explains what is not an archive.
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        refuse_inflated(path, sum(member.file_size for member in archive.infolist()))


def refuse_claim(path: Path, rows: int, least: int) -> None:
    """Refuse a file that claims more rows than it has room for, at ``least`` bytes per row."""
    if rows * least > path.stat().st_size:
        raise DataError(
            f"{shown(path)} claims {rows:,} rows, and has {path.stat().st_size:,} bytes: it is "
            "damaged or cut off; fetch it again"
        )


class TextBytes(io.RawIOBase):
    """The bytes of a text file, which refuses to go on where they are out of proportion."""

    def __init__(self, path: Path, source: gzip.GzipFile | io.BufferedReader, columns: int) -> None:
        self._path, self._source, self._columns = path, source, columns
        self._read = self._lines = self._open_line = 0

    def readable(self) -> bool:
        """Whether bytes can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read some bytes, and count them and their lines."""
        piece = self._source.read(len(buffer))
        buffer[: len(piece)] = piece
        self._read += len(piece)
        self._lines += max(piece.count(b"\n"), piece.count(b"\r"))
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._open_line = len(piece) - 1 - end + (self._open_line if end < 0 else 0)
        if self._path.suffix.lower() == ".gz":
            refuse_inflated(self._path, self._read)
        self._refuse_lines()
        return len(piece)

    def _refuse_lines(self) -> None:
        if self._open_line > _LONGEST_LINE:
            raise DataError(
                f"{shown(self._path)}: line {self._lines + 1:,} has more than "
                f"{_LONGEST_LINE:,} bytes; check that lines end, and that quotes are closed"
            )
        if self._lines * self._columns > max(_CELLS, _CELLS_PER_BYTE * self._read):
            raise DataError(
                f"{shown(self._path)}: the header names {self._columns:,} columns, and the "
                f"first {self._lines:,} lines have {self._read:,} bytes, fewer than one for "
                f"{_CELLS_PER_BYTE} fields: nearly all fields are missing; give every row its "
                "fields, or name only the columns that the rows have"
            )


_START, _END = b"ARROW1\0\0", -1
# Fields of the tables Message, RecordBatch and DictionaryBatch, by their position in the schema.
_HEADER_KIND, _HEADER = 1, 2
_BUFFERS, _COMPRESSION = 2, 3
_DATA = 1
_DICTIONARY, _BATCH = 2, 3


def refuse_inflated_batches(path: Path) -> None:
    """Refuse a file with a record batch that inflates out of proportion to the file.

    Feather's first version has no batches, and what is damaged is left to the reader.
    """
    import pyarrow as pa
    from pyarrow import ipc

    with pa.memory_map(str(path)) as file:
        if file.read(len(_START)) != _START:
            file.seek(0)
        try:
            for message in ipc.MessageReader.open_stream(file):
                refuse_inflated(path, _inflated(message))
        except (pa.ArrowException, struct.error, OSError):
            return


def _inflated(message: Any) -> int:
    """Return how many bytes the buffers of a message take in memory."""
    data = message.metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", data)
    kind_at = _field(data, root, _HEADER_KIND)
    kind = data[kind_at] if kind_at else 0
    if kind not in (_DICTIONARY, _BATCH):
        return 0
    batch = _inner(data, root, _HEADER)
    if kind == _DICTIONARY:
        batch = _inner(data, batch, _DATA)
    buffers = _inner(data, batch, _BUFFERS)
    is_compressed = bool(_field(data, batch, _COMPRESSION))
    total = 0
    (n_buffers,) = struct.unpack_from("<I", data, buffers)
    for index in range(n_buffers):
        start, length = struct.unpack_from("<qq", data, buffers + 4 + 16 * index)
        claimed = _END
        if is_compressed and length:
            (claimed,) = struct.unpack_from("<q", message.body, start)
        total += length if claimed == _END else claimed
    return total


def _field(data: bytes, table: int, index: int) -> int:
    """Return where a field of a table is; 0 if the table does not have it."""
    (back,) = struct.unpack_from("<i", data, table)
    fields, slot = table - back, 4 + 2 * index
    (size,) = struct.unpack_from("<H", data, fields)
    if slot >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, fields + slot)
    return table + offset if offset else 0


def _inner(data: bytes, table: int, index: int) -> int:
    """Return where the table or the list is that a field refers to."""
    at = _field(data, table, index)
    if not at:
        raise struct.error("a field is missing")
    (offset,) = struct.unpack_from("<I", data, at)
    return int(at + offset)
