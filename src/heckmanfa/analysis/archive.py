"""The members of a model file, read within bounds: a small file may inflate to a huge one.

The sizes that the archive lists are checked before any member is inflated, and checked again
afterwards, since an archive may list wrong sizes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from heckmanfa.errors import DataError
from heckmanfa.text.printable import quoted, shown

MANIFEST, SCHEMA = "heckmanfa.json", "schema.json"
LOWER = ".lower.npy"
"""how a member's name ends if it holds the lower triangles of symmetric matrices"""
_MOST_MEMBERS = 10_000
# Enough for that many members with names as long as skops writes.
_LARGEST_DIRECTORY = 100 * _MOST_MEMBERS
LARGEST_FILE = 2**30
NO_MODEL_FILE = "is not a model file, or is damaged; models are written by heckmanfa fit"
_LARGEST_MANIFEST = 2**24
_MANIFEST_KEYS = frozenset({"format", "version", "model", "features", "about", "sha256"})
# Values of JSON take far more memory than their text.
_MOST_VALUES = 2**18
_START = b"PK\x03\x04"
_END, _END_SIZE, _LOCATOR = b"PK\x05\x06", 22, b"PK\x06\x07"


@dataclass(frozen=True)
class Limits:
    """How large the parts of a file may be for a model of K features."""

    n_features: int
    """K"""
    file_size: int
    """bytes of the file: coefficients hardly compress"""

    @property
    def schema(self) -> int:
        """Bytes of the schema: lists of names, and the candidates of a search."""
        return int(min(2**23 + 2**15 * self.n_features, 2**26))

    @property
    def values(self) -> int:
        """Values in the schema: a few for each name, and the candidates of a search."""
        return int(min(2**19 + 2**12 * self.n_features, 2**22))

    @property
    def entries(self) -> int:
        """Entries of an array: a covariance matrix, or one row for each model of a search."""
        k = self.n_features + 16
        return max(4 * k * k, 20_000 * k)

    @property
    def total(self) -> int:
        """Bytes of all members together: a model holds some ten arrays."""
        by_features = self.schema + 16 * 8 * self.entries
        return int(min(by_features, 2**26 + 20 * self.file_size))


@dataclass(frozen=True)
class Members:
    """The inflated members of a file."""

    manifest: dict[str, Any]
    schema: dict[str, Any]
    raw: dict[str, bytes]
    """all members except the manifest, by name"""
    limits: Limits


def read_members(data: bytes, path: Path) -> Members:
    """Inflate a model file, or refuse it before it fills the memory."""
    _check_directory(data, path)
    with ZipFile(BytesIO(data)) as archive:
        listed = archive.infolist()
        names = [member.filename for member in listed]
        if MANIFEST not in names or SCHEMA not in names:
            raise DataError(f"{shown(path)} is not a model file of heckmanfa")
        if len(set(names)) < len(names):
            raise DataError(
                f"{shown(path)} was changed after it was written; none of it was loaded"
            )
        if len(names) > _MOST_MEMBERS:
            _too_large(path, f"it has {len(names):,} members")
        by_name = dict(zip(names, listed, strict=True))
        text = _inflate(archive, by_name.pop(MANIFEST), _LARGEST_MANIFEST, path)
        _check_values(text, _MOST_VALUES, path)
        about = plain_json(text)
        limits = Limits(_count_features(about, path), len(data))
        for name, member in by_name.items():
            _check_size(member, limits.schema if name == SCHEMA else 8 * limits.entries, path)
        promised = sum(member.file_size for member in by_name.values())
        if promised > limits.total:
            _too_large(path, f"it would inflate to {promised:,} bytes")
        raw = {
            name: _inflate(archive, member, member.file_size, path)
            for name, member in by_name.items()
        }
    _check_values(raw[SCHEMA], limits.values, path)
    described = plain_json(raw[SCHEMA])
    if not (isinstance(about, dict) and isinstance(described, dict)):
        raise DataError(f"{shown(path)} is not a model file of heckmanfa")
    return Members(about, described, raw, limits)


def plain_json(text: bytes | str) -> Any:
    """Read JSON; raise a ValueError even if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error


def array_in(content: bytes, limits: Limits) -> np.ndarray[Any, Any]:
    """Read an array of NumPy's file format whose header agrees with its size.

    Only numbers, booleans and text are read: other types would need pickle.
    """
    stream = BytesIO(content)
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, is_fortran, dtype = readers[version](stream)
    count = math.prod(shape)
    if dtype.kind not in "biufU" or dtype.hasobject or min(shape, default=1) < 0 or len(shape) > 3:
        raise ValueError("no model holds an array of this type")
    if count > limits.entries or dtype.itemsize > 2**16 or not dtype.itemsize:
        raise ValueError("an array is larger than the model can need")
    if len(content) - stream.tell() != count * dtype.itemsize:
        raise ValueError("the header and the size of an array disagree")
    flat = np.frombuffer(content, dtype=dtype, count=count, offset=stream.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def symmetric_in(content: bytes, limits: Limits) -> np.ndarray[Any, Any]:
    """Read symmetric matrices (..., n, n) of which a file has the lower triangles."""
    triangle = array_in(content, limits)
    *before, entries = triangle.shape
    n = (math.isqrt(8 * entries + 1) - 1) // 2
    if n * (n + 1) // 2 != entries or triangle.dtype != np.float64 or len(before) > 1:
        raise ValueError("an array is not a triangle")
    if math.prod(before) * n * n > limits.entries:
        raise ValueError("an array is larger than the model can need")
    rows, columns = np.tril_indices(n)
    whole = np.empty((*before, n, n))
    whole[..., rows, columns] = triangle
    whole[..., columns, rows] = triangle
    return whole


def _check_directory(data: bytes, path: Path) -> None:
    """Refuse a directory that would fill the memory, before it is read."""
    if len(data) > LARGEST_FILE:
        _too_large(path, f"it has {len(data):,} bytes")
    # Zip readers accept an archive that follows other content, such as a program.
    if data[:4] != _START:
        raise DataError(f"{shown(path)} {NO_MODEL_FILE}")
    end = data[-_END_SIZE:]
    if end[:4] == _END and end[-2:] == b"\0\0":
        size = int.from_bytes(end[12:16], "little")
        if size > _LARGEST_DIRECTORY:
            _too_large(path, f"its directory has {size:,} bytes")
    before = data[-_END_SIZE - 20 :][:4]
    if end[:4] != _END or end[-2:] != b"\0\0" or before == _LOCATOR:
        raise DataError(f"{shown(path)} {NO_MODEL_FILE}")


def _check_values(text: bytes, most: int, path: Path) -> None:
    """Refuse JSON whose values would fill the memory, before it is parsed."""
    count = sum(text.count(mark) for mark in (b"[", b"{", b","))
    if count > most:
        _too_large(path, f"its description has {count:,} values")


def _count_features(about: Any, path: Path) -> int:
    if isinstance(about, dict) and not about.keys() <= _MANIFEST_KEYS:
        strange = min(about.keys() - _MANIFEST_KEYS)
        raise DataError(
            f"{shown(path)} is damaged or was changed: its manifest has {quoted(strange[:40])}"
        )
    features = about.get("features") if isinstance(about, dict) else None
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise DataError(f"{shown(path)} is damaged or was changed: it does not list its features")
    return len(features)


def _check_size(member: ZipInfo, limit: int, path: Path) -> None:
    # The header of an array comes on top of its entries.
    size = member.file_size
    if size > limit + 2**12:
        _too_large(path, f"{quoted(member.filename[:40])} would inflate to {size:,} bytes")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DataError(f"{shown(path)} was not written by heckmanfa: its compression is unknown")


def _inflate(archive: ZipFile, member: ZipInfo, limit: int, path: Path) -> bytes:
    _check_size(member, limit, path)
    with archive.open(member) as stream:
        content = stream.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise DataError(f"{shown(path)} is damaged: a member does not have its listed size")
    return content


def _too_large(path: Path, why: str) -> NoReturn:
    raise DataError(
        f"{shown(path)} is larger than a model of its features can be ({why}); none of it was "
        "loaded"
    )
