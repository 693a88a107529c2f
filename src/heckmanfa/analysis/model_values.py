"""Values of a model as JSON and arrays, by the annotations of the classes that hold them.

A frozen dataclass becomes an object with its name as the only key, and an array a member of the
archive in NumPy's own format. What is read must have the type that its field is annotated with,
and the shape that `model_classes.FIELDS` declares. Shapes come from the headers of arrays, so
they are checked before an array is made. Parameters may be of any plain type.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any, get_args, get_origin

import numpy as np

from heckmanfa.analysis.model_classes import (
    ANYTHING,
    FIELDS,
    PARTS,
    Rule,
    Sizes,
    UnsoundError,
    as_now,
    class_named,
    parse_rule,
)

LONGEST_TEXT = 2**18
_LARGEST_TEXT_ARRAY = 2**22
_DEEPEST = 12
_JSON_BITS = 64
_NOT_FINITE = ("nan", "inf", "-inf")
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NUMBERS = frozenset(["float64", "float32", "bool", *_INTEGERS])
_GENERATORS = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}


class UnsavableError(Exception):
    """A value that a model file does not hold."""


def write_number(value: bool | int | float) -> Any:
    """Return an integer, a float or a boolean as JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    # Python reads no integer of thousands of digits.
    if isinstance(value, int) and value.bit_length() > _JSON_BITS:
        return {"int": hex(value)}
    return value


def read_number(node: Any, most_bits: int) -> bool | int | float:
    """Return the number that `write_number` wrote; refuse integers of more bits."""
    match node:
        case {"float": str(text), **rest} if text in _NOT_FINITE and not rest:
            return float(text)
        case {"int": str(text), **rest} if len(text) <= most_bits // 4 + 4 and not rest:
            node = int(text, 16)
    if not isinstance(node, int | float):
        raise UnsoundError("a number is missing")
    if isinstance(node, int) and node.bit_length() > most_bits:
        raise UnsoundError("an integer is too large")
    return node


def write_plain(value: Any) -> Any:
    """Return a plain value as JSON; refuse any other."""
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case int() | float():
            return write_number(value.item() if isinstance(value, np.generic) else value)
        case np.generic() if value.dtype.kind in "biuf":
            return write_plain(value.item())
        case np.ndarray():
            return _write_array(value)
        case tuple():
            return {"tuple": [write_plain(item) for item in value]}
        case dict():
            return {"dict": [[write_plain(key), write_plain(value[key])] for key in value]}
        case set() | frozenset():
            return [write_plain(item) for item in sorted(value, key=repr)]
        case np.random.RandomState():
            return {"RandomState": write_plain(value.get_state(legacy=False))}
        case np.random.Generator() if type(value.bit_generator).__name__ in _GENERATORS:
            return {"Generator": write_plain(value.bit_generator.state)}
    if hasattr(value, "as_py"):
        return write_plain(value.as_py())
    # An index, a series or an Arrow array that lists columns.
    listed = isinstance(value, Iterable) and isinstance(value, Sized)
    if listed and not isinstance(value, bytes | bytearray | memoryview):
        return [write_plain(item) for item in value]
    raise UnsavableError(type(value).__name__)


def _write_array(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.name not in _NUMBERS and not all(
        isinstance(item, str) for item in array.ravel().tolist()
    ):
        raise UnsavableError(f"array of {array.dtype}")
    kind = "str" if array.dtype.kind == "U" else array.dtype.name
    return {"array": write_plain(array.tolist()), "dtype": kind}


def read_plain(node: Any, most_bits: int, depth: int = 0) -> Any:
    """Return the value that `write_plain` wrote."""

    def read(inner: Any) -> Any:
        return read_plain(inner, most_bits, depth + 1)

    if depth > _DEEPEST:
        raise UnsoundError("its values are nested too deeply")
    match node:
        case None:
            return None
        case str() if len(node) <= LONGEST_TEXT:
            return node
        case list():
            return [read(item) for item in node]
        case {"tuple": list(items), **rest} if not rest:
            return tuple(read(item) for item in items)
        case {"dict": list(pairs), **rest} if not rest:
            return {read(key): read(value) for key, value in pairs}
        case {"array": items, "dtype": str(kind), **rest} if not rest:
            return _read_array(read(items), kind)
        case {"RandomState": state, **rest} if not rest:
            random = np.random.RandomState()
            random.set_state(_sound_state(read(state), "MT19937"))
            return random
        case {"Generator": state, **rest} if not rest:
            state = read(state)
            generator = _GENERATORS[state["bit_generator"]]()
            generator.state = _sound_state(state, type(generator).__name__)
            return np.random.Generator(generator)
    return read_number(node, most_bits)


def _read_array(items: Any, kind: str) -> np.ndarray[Any, Any]:
    """Return an array; one of text takes as much memory as its longest text for each entry."""
    if kind in _NUMBERS:
        array = np.array(items, dtype=object).ravel()
        if any(isinstance(item, str | None) for item in array):
            raise UnsoundError("an array does not hold numbers")
        return np.array(items, dtype=kind)
    if kind not in ("str", "object"):
        raise UnsoundError("an array holds neither numbers nor text")
    array = np.array(items, dtype=object)
    texts = array.ravel().tolist()
    if not all(isinstance(text, str) for text in texts):
        raise UnsoundError("an array does not hold text")
    if kind == "str" and len(texts) * max(map(len, texts), default=0) > _LARGEST_TEXT_ARRAY:
        raise UnsoundError("an array of text is too large")
    return np.array(items, dtype=kind)


def _sound_state(state: Any, kind: str) -> dict[str, Any]:
    """Check the state of a random number generator, which NumPy trusts."""
    inner = state["state"]
    numbers = [value for name, value in state.items() if name not in ("bit_generator", "state")]
    if kind == "MT19937":
        key, position = inner["key"], inner["pos"]
        sound = isinstance(key, np.ndarray) and key.shape == (624,) and key.dtype == np.uint32
        sound = sound and type(position) is int and 0 <= position <= 624
    else:
        numbers += [inner["state"], inner["inc"]]
        sound = all(type(number) is int and 0 <= number < 2**128 for number in numbers)
    if not (sound and state["bit_generator"] == kind):
        raise UnsoundError("a random number generator is in an impossible state")
    if not all(isinstance(number, int | float) for number in numbers):
        raise UnsoundError("a random number generator is in an impossible state")
    return dict(state)


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
    hints = typing.get_type_hints(kind, localns={"pd": pd})
    return {name: _resolved(hint) for name, hint in hints.items()}


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
        if isinstance(value, tuple) and hint is None:
            # A text or texts, as patterns and names of columns are.
            hint = next((option for option in options if get_origin(option) is tuple), None)
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
            if get_origin(option) is typing.Literal and isinstance(node, str):
                return self._read(node, option, rule, sizes)
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
        kind = class_named(name) if name in PARTS else None
        # Classes of earlier files say what they are now.
        now: Any = getattr(kind, "now", kind)
        if kind is None or not issubclass(now, hint) or not isinstance(content, dict):
            raise UnsoundError(f"a {hint.__name__} is missing")
        fields = {field.name: field for field in dataclasses.fields(kind)}
        content = as_now(name, content)
        needed = {
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        if not needed <= content.keys() <= fields.keys():
            raise UnsoundError(f"{name} has missing or unknown fields")
        made = kind(**self.attributes(kind, content, [*fields], sizes))
        return made if now is kind else made.as_now()

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
        shape, fortran, dtype_there, start = _header(content)
        wanted = np.dtype(get_args(dtype)[0])
        # A network's weights may be of single precision.
        if dtype_there.kind != wanted.kind or (dtype_there.kind != "f" and dtype_there != wanted):
            raise UnsoundError(f"an array of {dtype_there} is there, not of {wanted}")
        sizes.match(shape, rule.shapes)
        count = math.prod(shape)
        if len(content) - start != count * dtype_there.itemsize:
            raise UnsoundError("the header and the size of an array disagree")
        flat = np.frombuffer(content, dtype=dtype_there, count=count, offset=start)
        if dtype_there.kind == "f" and not rule.allows(flat):
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
