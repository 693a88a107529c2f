"""Model files made small: what skops writes, without what readers of ours do not need.

Nodes lose their identifiers, arrays with the same content share a member, and a symmetric matrix
is stored as its lower triangle. Every number comes back to the bit.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np

from heckmanfa.analysis.archive import LOWER, SCHEMA


def pack(data: bytes) -> dict[str, bytes]:
    """Return the members of a smaller file, by name, from the bytes of a file of skops."""
    with ZipFile(BytesIO(data)) as archive:
        raw = {name: archive.read(name) for name in archive.namelist()}
    members: dict[str, bytes] = {}
    schema = _Packing(raw, members, {}).packed(json.loads(raw[SCHEMA]))
    members[SCHEMA] = json.dumps(schema, separators=(",", ":")).encode()
    return members


class _Packing:
    """Rewrites the nodes of a schema, and collects the arrays that they name."""

    def __init__(
        self, raw: dict[str, bytes], members: dict[str, bytes], names: dict[bytes, str]
    ) -> None:
        self.raw, self.members, self.names = raw, members, names

    def packed(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a node with smaller nodes below it."""
        small = {key: value for key, value in node.items() if key != "__id__"}
        content: Any = node.get("content")
        match node["__loader__"]:
            case "DictNode":
                small["key_types"] = self.packed(node["key_types"])
                small["content"] = {key: self.packed(item) for key, item in content.items()}
            case "NdArrayNode" if node["type"] == "numpy":
                small["file"] = self._file(self.raw[node["file"]])
            case "NdArrayNode" | "ListNode" | "TupleNode" | "SetNode":
                small["content"] = [self.packed(item) for item in content]
                if isinstance(node.get("shape"), dict):
                    small["shape"] = self.packed(node["shape"])
            case "ObjectNode" | "RandomStateNode" if isinstance(content, dict):
                small["content"] = self.packed(content)
            case "RandomGeneratorNode":
                small["content"] = {key: self.packed(item) for key, item in content.items()}
        return small

    def _file(self, content: bytes) -> str:
        """Name the member that holds an array."""
        if content not in self.names:
            number = len(self.names)
            triangle = _lower_triangle(np.load(BytesIO(content), allow_pickle=False))
            name = f"{number}.npy" if triangle is None else f"{number}{LOWER}"
            self.names[content] = name
            self.members[name] = content if triangle is None else _bytes_of(triangle)
        return self.names[content]


def _lower_triangle(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return the lower triangles (..., n (n + 1) / 2) of symmetric matrices; None of others."""
    if array.dtype != np.float64 or array.ndim < 2 or not 1 < array.shape[-1] == array.shape[-2]:
        return None
    bits = np.ascontiguousarray(array).view(np.int64)
    if not np.array_equal(bits, np.swapaxes(bits, -1, -2)):
        return None
    return np.asarray(array[..., *np.tril_indices(array.shape[-1])])


def _bytes_of(array: np.ndarray[Any, Any]) -> bytes:
    buffer = BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()
