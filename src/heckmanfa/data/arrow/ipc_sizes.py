"""How much memory the record batches of an Arrow IPC (Feather) file take, before they are read.

Each compressed buffer begins with its length after inflation. Where the buffers are is in the
metadata of their message, a FlatBuffer, of which two tables are read here.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from heckmanfa.data.files.sizes import refuse_inflated

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
