"""Values of a model as JSON and arrays, by the annotations of the classes that hold them.

A frozen dataclass becomes an object with its name as the only key, and an array a member of the
archive in NumPy's own format. What is read must have the type that its field is annotated with,
and the shape that `model_classes.FIELDS` declares. Shapes come from the headers of arrays, so
they are checked before an array is made.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any, get_args, get_origin

import numpy as np

from heckmanfa.analysis.archive import UnsoundError
from heckmanfa.analysis.model_classes import FIELDS, PARTS
from heckmanfa.analysis.plain_values import (
    LONGEST_TEXT,
    UnsavableError,
    read_number,
    read_plain,
    write_number,
    write_plain,
)
from heckmanfa.analysis.shapes import ANYTHING, Rule, Sizes, parse_rule

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_hints: dict[Any, dict[str, Any]] = {}
_DTYPES = frozenset({"float64", "float32", "int64", "uint8", "bool"})


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the annotated types of the attributes of a class, or of a function's arguments."""
    if kind not in _hints:
        _hints[kind] = _find_hints(kind)
    return _hints[kind]


def _find_hints(kind: Any) -> dict[str, Any]:
    import pandas as pd

    # Some modules import pandas for type checkers only.
    found = typing.get_type_hints(kind, localns={"pd": pd})
    return {name: _resolved(hint) for name, hint in found.items()}


def _resolved(hint: Any) -> Any:
    """Return a type; from NumPy 2.5 on, NDArray is an alias that has to be looked up."""
    origin = get_origin(hint)
    return origin.__value__[get_args(hint)] if hasattr(origin, "__value__") else hint


@cache
def rules_of(name: str) -> dict[str, Rule]:
    """Return what is declared of the fields of a class."""
    return {field: parse_rule(text) for field, text in FIELDS.get(name, {}).items()}


def options_of(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union allows, or the one that a type is."""
    is_union = get_origin(hint) in (typing.Union, types.UnionType)
    return tuple(map(_resolved, get_args(hint))) if is_union else (hint,)


class Writer:
    """Turns values into JSON, and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: list[bytes] = []

    def write(self, value: Any, hint: Any) -> Any:
        """Return a value of an annotated type as JSON."""
        if value is None:
            return None
        options = [option for option in options_of(hint) if option is not type(None)]
        hint = options[0] if len(options) == 1 else None
        origin, arguments = get_origin(hint), tuple(map(_resolved, get_args(hint)))
        if hint is Any:
            return write_plain(value)
        if origin is tuple and arguments[-1] is not Ellipsis:
            return [self.write(*pair) for pair in zip(value, arguments, strict=True)]
        if origin in (tuple, list):
            return [self.write(item, arguments[0]) for item in value]
        if origin is dict:
            return {str(key): self.write(item, arguments[1]) for key, item in value.items()}
        if isinstance(value, np.ndarray):
            return self._array(value)
        name = type(value).__name__
        if name in PARTS and dataclasses.is_dataclass(value):
            return {name: self.attributes(value)}
        if isinstance(value, np.generic):
            value = value.item()
        if hint is float and isinstance(value, int):
            value = float(value)
        if isinstance(value, str | bool | int | float):
            return value if isinstance(value, str) else write_number(value)
        raise UnsavableError(name)

    def attributes(self, value: Any) -> dict[str, Any]:
        """Return the fields of a dataclass as JSON."""
        hints = hints_of(type(value))
        names = (field.name for field in dataclasses.fields(value))
        return {name: self.write(getattr(value, name), hints[name]) for name in names}

    def _array(self, array: np.ndarray[Any, Any]) -> dict[str, int]:
        if array.dtype.name not in _DTYPES:
            raise UnsavableError(f"array of {array.dtype}")
        stream = BytesIO()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
        self.arrays.append(stream.getvalue())
        return {"npy": len(self.arrays) - 1}


@dataclass
class Reader:
    """Makes values of annotated types from JSON and arrays."""

    arrays: list[memoryview]
    most_bits: int
    read_arrays: set[int] = field(default_factory=set)

    def read(self, node: Any, hint: Any, rule: Rule, sizes: Sizes) -> Any:
        """Return the value that JSON describes, of an annotated type and a declared shape."""
        if rule.absent or node is None:
            if node is None and (type(None) in options_of(hint) or hint is Any):
                return None
            raise UnsoundError("a value is missing, or should be")
        options = [option for option in options_of(hint) if option is not type(None)]
        for option in options:
            if len(options) == 1:
                return self._read(node, option, rule, sizes)
            # Types of a union are told apart before anything is read.
            if isinstance(option, type) and isinstance(node, option) and type(node) is option:
                return self._read(node, option, rule, sizes)
        return self._read(node, options[-1], rule, sizes)

    def _read(self, node: Any, hint: Any, rule: Rule, sizes: Sizes) -> Any:
        origin, arguments = get_origin(hint), tuple(map(_resolved, get_args(hint)))
        if hint is Any:
            return read_plain(node, self.most_bits)
        if origin is np.ndarray:
            return self._array(node, arguments[-1], rule, sizes)
        if origin in (tuple, list):
            return self._items(node, origin, arguments, rule, sizes)
        if origin is dict:
            if not isinstance(node, dict):
                raise UnsoundError("a table is missing")
            rule.check_length(len(node), sizes)
            return {
                self.read(key, arguments[0], ANYTHING, sizes): self.read(
                    item, arguments[1], rule, sizes
                )
                for key, item in node.items()
            }
        if origin is typing.Literal:
            if not (isinstance(node, str) and node in arguments):
                raise UnsoundError("a word is not one of those that are known")
            return node
        if hint in (bool, int, float):
            return self._number(node, hint, rule, sizes)
        if hint is str:
            if not (isinstance(node, str) and len(node) <= (rule.longest or LONGEST_TEXT)):
                raise UnsoundError("a text is missing or too long")
            return node
        return self.part(node, hint, sizes)

    def part(self, node: Any, hint: type, sizes: Sizes) -> Any:
        """Return an object of a listed class."""
        if not (isinstance(node, dict) and len(node) == 1):
            raise UnsoundError(f"a {hint.__name__} is missing")
        ((name, content),) = node.items()
        kind = getattr(import_module(PARTS[name]), name) if name in PARTS else None
        if kind is None or not issubclass(kind, hint) or not isinstance(content, dict):
            raise UnsoundError(f"a {hint.__name__} is missing")
        fields = {field.name: field for field in dataclasses.fields(kind)}
        needed = {
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        if not needed <= content.keys() <= fields.keys():
            raise UnsoundError(f"{name} has missing or unknown fields")
        return kind(**self.attributes(kind, content, [*fields], sizes))

    def attributes(
        self, kind: type, content: Mapping[str, Any], names: list[str], sizes: Sizes
    ) -> dict[str, Any]:
        """Return those of some attributes of a class that are there."""
        hints, rules, sizes = hints_of(kind), rules_of(kind.__name__), sizes.inside()
        values = {}
        # Sizes become known in the order in which fields are declared.
        for name in dict.fromkeys([*rules, *names]):
            if name in content:
                rule = rules.get(name, ANYTHING)
                try:
                    values[name] = self.read(content[name], hints[name], rule, sizes)
                except UnsoundError as error:
                    raise UnsoundError(f"{kind.__name__}.{name}: {error}") from error
        return values

    def _items(
        self, node: Any, origin: Any, arguments: tuple[Any, ...], rule: Rule, sizes: Sizes
    ) -> Any:
        if not isinstance(node, list):
            raise UnsoundError("a list is missing")
        rule.check_length(len(node), sizes)
        if origin is tuple and arguments[-1] is not Ellipsis:
            if len(node) != len(arguments):
                raise UnsoundError(f"it has {len(node)} entries, not {len(arguments)}")
            inner = zip(node, arguments, [rule.item] * len(node), strict=True)
        else:
            # A list of arrays declares the shape of each.
            listed = origin is list and len(rule.shapes) > 1
            if listed and len(node) != len(rule.shapes):
                raise UnsoundError(f"it has {len(node)} entries, not {len(rule.shapes)}")
            each = rule.each() if listed else [rule.item] * len(node)
            inner = zip(node, [arguments[0]] * len(node), each, strict=True)
            if arguments[0] is str:
                # Models of many columns list their names many times.
                if not all(isinstance(item, str) and len(item) <= LONGEST_TEXT for item in node):
                    raise UnsoundError("a text is missing or too long")
                return node if origin is list else tuple(node)
        items = [self.read(item, hint, each, sizes) for item, hint, each in inner]
        if rule.positions and (not all(items) if arguments[0] is not int else _repeats(items)):
            raise UnsoundError("a position is there twice, or none is")
        return items if origin is list else tuple(items)

    def _number(self, node: Any, hint: type, rule: Rule, sizes: Sizes) -> bool | int | float:
        number = read_number(node, self.most_bits)
        if type(number) is not hint:
            raise UnsoundError("a number is of another type")
        if hint is int:
            rule.check_integer(int(number), sizes)
        elif hint is float and not rule.allows(np.float64(number)):
            raise UnsoundError(f"it is {number:g}")
        return number

    def _array(self, node: Any, dtype: Any, rule: Rule, sizes: Sizes) -> np.ndarray[Any, Any]:
        match node:
            case {"npy": int(index), **rest} if not rest and 0 <= index < len(self.arrays):
                content = self.arrays[index]
            case _:
                raise UnsoundError("an array is missing")
        if index in self.read_arrays:
            raise UnsoundError("an array is named twice")
        self.read_arrays.add(index)
        shape, fortran, found, start = _header(content)
        wanted = np.dtype(get_args(dtype)[0])
        # A network's weights may be of single precision.
        if found.kind != wanted.kind or (found.kind != "f" and found != wanted):
            raise UnsoundError(f"an array of {found} is there, not of {wanted}")
        sizes.match(shape, rule.shapes)
        count = math.prod(shape)
        if len(content) - start != count * found.itemsize:
            raise UnsoundError("the header and the size of an array disagree")
        flat = np.frombuffer(content, dtype=found, count=count, offset=start)
        if found.kind == "f" and not rule.allows(flat):
            raise UnsoundError("an array holds values that are missing, infinite or too large")
        return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")


def _repeats(items: list[Any]) -> bool:
    return len({*items}) < len(items)


def _header(content: memoryview) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, order and type that the header of an array says, and where it ends."""
    stream = BytesIO(content[: 2**12])
    try:
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    # The header is Python text that was changed.
    except Exception as error:
        raise UnsoundError("an array has no header") from error
    if dtype.name not in _DTYPES or min(shape, default=1) < 0:
        raise UnsoundError(f"no model holds an array of {dtype}")
    return shape, fortran, dtype, stream.tell()
