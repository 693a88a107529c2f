"""The archive of a model file: a zip of uncompressed members that has one spelling.

A file is what `pack` would write of its members, to the byte, or it is refused. That leaves no
room for compression, encryption, comments, links, members listed twice, or bytes in between.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32

Content = bytes | memoryview
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
# Version 2.0, no flags, no compression, and midnight of 1 January 1980.
_COMMON = struct.pack("<5H", 20, 0, 0, 0, 0x21)
_UNIX = struct.pack("<H", 3 << 8 | 20)
_LOCAL_SIZE = 30
_LONGEST_NAME = 20
_MOST_MEMBERS = 10_000


class UnsoundError(Exception):
    """A part of a model file has the wrong type, shape or value."""


def pack(members: Mapping[str, Content]) -> bytes:
    """Return a zip of members, in their order; the same members give the same bytes."""
    parts: list[Content] = []
    directory: list[bytes] = []
    at = 0
    for name, content in members.items():
        text, size = name.encode("ascii"), len(content)
        entry = struct.pack("<3I2H", crc32(content), size, size, len(text), 0)
        parts += [_LOCAL + _COMMON + entry + text, content]
        # A plain file that its owner may read and write.
        made = struct.pack("<3H2I", 0, 0, 0, 0o100600 << 16, at)
        directory.append(_CENTRAL + _UNIX + _COMMON + entry + made + text)
        at += _LOCAL_SIZE + len(text) + size
    size, count = sum(map(len, directory)), len(directory)
    end = struct.pack("<4H2IH", 0, 0, count, count, size, at, 0)
    return b"".join([*parts, *directory, _END + end])


def unpack(data: bytes) -> dict[str, memoryview]:
    """Return the members of an archive that `pack` wrote; refuse any other."""
    members: dict[str, memoryview] = {}
    view, at = memoryview(data), 0
    while data[at : at + 4] == _LOCAL and len(members) < _MOST_MEMBERS:
        header: tuple[Any, ...] = struct.unpack("<2I2H", data[at + 18 : at + 30].ljust(12, b"\0"))
        _, size, length, _ = header
        start = at + _LOCAL_SIZE + length
        try:
            name = data[start - length : start].decode("ascii")
        except UnicodeDecodeError as error:
            raise UnsoundError("a member's name is not one of a model file") from error
        if length > _LONGEST_NAME or name in members:
            raise UnsoundError("a member's name is not one of a model file, or is there twice")
        members[name] = view[start : start + size]
        at = start + size
    if not members or pack(members) != data:
        raise UnsoundError("its archive is not as heckmanfa writes it")
    return members
