"""Plain values as JSON: parameters of estimators, and what functions of formulas have learned.

JSON has numbers, text, booleans, null and lists. Everything else is an object with one key that
says what it is: ``{"tuple": [1, 2]}``, ``{"float": "nan"}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from typing import Any

import numpy as np

from heckmanfa.analysis.archive import UnsoundError

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
