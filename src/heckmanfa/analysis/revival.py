"""Objects of a model file, made from its schema without running any of its code.

A file names the class and the attributes of each object. Only plain data, arrays and the classes
listed here are made. No constructor runs: an object is made empty and gets its attributes, each of
which must have the type that its class declares.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, get_args, get_origin

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from heckmanfa.analysis.archive import LOWER, Members, array_in, plain_json, symmetric_in
from heckmanfa.text.printable import shown

MODELS = {
    "Heckman": "heckmanfa.estimators.heckman",
    "HeckmanAverage": "heckmanfa.estimators.averaged",
    "HeckmanBestSubset": "heckmanfa.estimators.searches",
    "HeckmanFA": "heckmanfa.estimators.searches",
    "HeckmanLasso": "heckmanfa.estimators.searches",
    "HeckmanProbit": "heckmanfa.estimators.heckman_probit",
    "HeckmanProbitBestSubset": "heckmanfa.estimators.probit_searches",
    "InverseProbabilityWeighted": "heckmanfa.estimators.baselines",
    "NaiveOLS": "heckmanfa.estimators.baselines",
    "RURegressor": "heckmanfa.estimators.ru",
}
_PARTS = {
    "AtanhRho": "heckmanfa.search.quadratic",
    "AllFeatures": "heckmanfa.search.exact_refits",
    "Average": "heckmanfa.search.averaging.result",
    "AverageOutcome": "heckmanfa.search.averaging.average_outcome",
    "BinaryOutcome": "heckmanfa.model.binary_outcome",
    "Choices": "heckmanfa.search.choices",
    "Coordinates": "heckmanfa.model.linalg",
    "DateScale": "heckmanfa.data.columns.dates",
    "Encoding": "heckmanfa.data.columns.encoding",
    "Equation": "heckmanfa.data.formula.design",
    "ExactRefits": "heckmanfa.search.exact_refits",
    "Fit": "heckmanfa.fit.fitted",
    "FittedColumns": "heckmanfa.data.columns.features",
    "FormulaDesign": "heckmanfa.data.formula.design",
    "Goal": "heckmanfa.search.evaluation",
    "Honest": "heckmanfa.inference.searching",
    "LikelihoodGuards": "heckmanfa.model.likelihood_guards",
    "Moments": "heckmanfa.model.moments",
    "Network": "heckmanfa.estimators.ru",
    "Origin": "heckmanfa.fit.fitted",
    "OwnScale": "heckmanfa.model.own_scale",
    "Probit": "heckmanfa.model.probit",
    "QuadraticForm": "heckmanfa.search.quadratic",
    "Refits": "heckmanfa.search.averaging.average_outcome",
    "ScoreMoments": "heckmanfa.model.score_moments",
    "Search": "heckmanfa.search.evaluation",
    "SearchOutcome": "heckmanfa.search.outcome",
    "Spec": "heckmanfa.fit.fitted",
    "Trained": "heckmanfa.search.training.assignment_function",
}
_CLASSES = {**MODELS, **_PARTS}
# Modules that have become packages, which still export their classes.
_FORMER = {"heckmanfa.fit": "heckmanfa.fit.fitted"}
_DEEPEST = 30
_KEYS: dict[str, Callable[[str], Any]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "numpy.str_": str,
    "numpy.int64": int,
    "numpy.float64": float,
}
_NUMBERS = ("float64", "float32", "int64", "int32", "int16", "int8")
_SCALARS = frozenset(
    f"numpy.{kind}"
    for kind in (*_NUMBERS, "uint64", "uint32", "uint16", "uint8", "bool", "bool_", "str_")
)
_GENERATORS = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}


class UnlistedError(Exception):
    """A file names a class that no model contains."""


class UnsoundError(Exception):
    """A part of a model has the wrong type, shape or value."""


@dataclass(frozen=True)
class Revival:
    """Makes the objects that the schema of a file describes."""

    members: Members

    def refuse_unlisted(self) -> None:
        """Refuse a file that names classes beyond those listed, before any object is made."""
        foreign = sorted({*_strange(self.members.schema, 0)})
        if foreign:
            raise UnlistedError(", ".join(shown(name) for name in foreign[:5]))
        # Nodes may share a member, and each of them takes the memory of its array.
        raw = self.members.raw
        made = sum(len(raw.get(name, b"")) for name in _files(self.members.schema))
        if made > self.members.limits.total:
            raise UnsoundError("its arrays together are larger than the model can need")

    def make(self) -> Any:
        """Make and check the objects; call `refuse_unlisted` first."""
        return self._make(self.members.schema)

    def _make(self, node: dict[str, Any]) -> Any:
        content = node.get("content")
        match node["__loader__"]:
            case "JsonNode":
                return _scalar(content)
            case "ListNode":
                return [self._make(item) for item in _listed(content)]
            case "TupleNode":
                return tuple(self._make(item) for item in _listed(content))
            case "SetNode":
                return {self._make(item) for item in _listed(content)}
            case "DictNode":
                return self._dict(node)
            case "NdArrayNode":
                return self._array(node)
            case "RandomStateNode":
                state = self._make(content or {})
                made = np.random.RandomState()
                made.set_state(_mersenne(state))
                return made
            case "RandomGeneratorNode":
                return self._generator(node)
        return self._object(node)

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        kinds = [_name_of(kind) for kind in _listed(node["key_types"]["content"])]
        items = node["content"].items()
        return {
            _KEYS[kind](key): self._make(value)
            for kind, (key, value) in zip(kinds, items, strict=True)
        }

    def _array(self, node: dict[str, Any]) -> Any:
        array: np.ndarray[Any, Any]
        if node["type"] == "json":
            found = [self._make(item) for item in _listed(node["content"])]
            if not all(isinstance(item, str) for item in found):
                raise UnsoundError("an array that holds neither numbers nor text")
            array = np.empty(len(found), dtype=object)
            array[:] = found
            return array
        read = symmetric_in if node["file"].endswith(LOWER) else array_in
        array = read(self.members.raw[node["file"]], self.members.limits)
        if _name_of(node) == "numpy.ndarray":
            return array
        if array.ndim:
            raise UnsoundError("an array instead of a number")
        return array.reshape(())[()]

    def _generator(self, node: dict[str, Any]) -> np.random.Generator:
        state = self._make(node["content"]["bit_generator"])
        kind = _GENERATORS[state["bit_generator"]]
        made = kind()
        made.state = _mersenne(state) if kind is np.random.MT19937 else _permuted(state)
        return np.random.Generator(made)

    def _object(self, node: dict[str, Any]) -> Any:
        kind = getattr(import_module(node["__module__"]), node["__class__"])
        given = self._make(node["content"])
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            raise UnsoundError(f"a {kind.__name__} without attributes")
        # Cached properties are computed again.
        state = {
            name: value
            for name, value in given.items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }
        check_attributes(kind, state)
        if dataclasses.is_dataclass(kind):
            # Attributes that are newer than the file; plain defaults are those of the class.
            state = {
                field.name: field.default_factory()
                for field in dataclasses.fields(kind)
                if field.default_factory is not dataclasses.MISSING
            } | state
        made = object.__new__(kind)
        made.__dict__.update(state)
        return made


# The schema. --------------------------------------------------------------------------------------


def _strange(node: Any, depth: int) -> Iterator[str]:
    """Yield the names of classes in a schema that are not listed."""
    if not isinstance(node, dict) or depth > _DEEPEST:
        raise UnsoundError("its schema is invalid")
    name, loader = _name_of(node), node.get("__loader__")
    content: Any = node.get("content")
    below: Collection[Any] = ()
    match loader:
        case "JsonNode":
            known = True
        case "ListNode" | "TupleNode" | "SetNode":
            known = name == {"L": "builtins.list", "T": "builtins.tuple"}.get(
                loader[0], "builtins.set"
            )
            below = _listed(content)
        case "DictNode":
            keys = _listed(node["key_types"]["content"])
            if not isinstance(content, dict):
                raise UnsoundError("its schema is invalid")
            known = name == "builtins.dict"
            below = content.values()
            yield from (
                _name_of(key)
                for key in keys
                if _name_of(key) not in _KEYS or key.get("__loader__") != "TypeNode"
            )
        case "NdArrayNode" if node.get("type") == "numpy":
            known = name == "numpy.ndarray" or name in _SCALARS
        case "NdArrayNode" if node.get("type") == "json":
            known = name == "numpy.ndarray"
            below = _listed(content)
        case "RandomStateNode":
            known = name == "numpy.random.mtrand.RandomState"
            below = [content]
        case "RandomGeneratorNode":
            known = name == "numpy.random._generator.Generator" and isinstance(content, dict)
            below = [content["bit_generator"]] if known else ()
        case "ObjectNode":
            module = str(node.get("__module__"))
            known = _CLASSES.get(str(node.get("__class__"))) == _FORMER.get(module, module)
            below = [content] if known else ()
        case _:
            known = False
    if not known:
        yield name
        return
    for child in below:
        yield from _strange(child, depth + 1)


def _files(node: Any) -> Iterator[str]:
    """Yield the members that the nodes of a schema name, as often as they do."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, dict | list):
            yield from _files(value)
    if isinstance(node, dict) and isinstance(node.get("file"), str):
        yield node["file"]


def _name_of(node: Any) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _listed(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise UnsoundError("its schema is invalid")
    return content


def _scalar(content: Any) -> Any:
    value = plain_json(content) if isinstance(content, str) else content
    if not isinstance(value, str | int | float | None):
        raise UnsoundError("its schema is invalid")
    return value


def _mersenne(state: dict[str, Any]) -> dict[str, Any]:
    """Check the state of a Mersenne twister, whose position NumPy trusts."""
    inner = state["state"]
    key, position = inner["key"], inner["pos"]
    sound = (
        state["bit_generator"] == "MT19937"
        and isinstance(key, np.ndarray)
        and key.shape == (624,)
        and key.dtype == np.uint32
        and _conforms(position, int)
        and 0 <= position <= 624
        and _conforms(state.get("gauss", 0.0), float)
    )
    if not sound:
        raise UnsoundError("a random number generator in an impossible state")
    return state


def _permuted(state: dict[str, Any]) -> dict[str, Any]:
    inner = state["state"]
    numbers = (inner["state"], inner["inc"], state["has_uint32"], state["uinteger"])
    if not all(_conforms(number, int) and 0 <= number < 2**128 for number in numbers):
        raise UnsoundError("a random number generator in an impossible state")
    return state


# Types of attributes. -----------------------------------------------------------------------------


def check_attributes(kind: type, state: dict[str, Any]) -> None:
    """Refuse attributes that do not have the types that a dataclass or an estimator declares."""
    hints = _hints(kind)
    if dataclasses.is_dataclass(kind):
        fields = {field.name: field for field in dataclasses.fields(kind)}
        missing = [
            name
            for name, field in fields.items()
            if name not in state
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        if missing or not fields.keys() >= state.keys():
            raise UnsoundError(f"{kind.__name__} has missing or unknown attributes")
    else:
        assert issubclass(kind, BaseEstimator)
        known = {*kind._get_param_names(), *hints}  # type: ignore[attr-defined]
        for name in state.keys() - known:
            # An attribute of the class itself, such as a method, must not be replaced.
            if name.startswith("__") or hasattr(kind, name):
                raise UnsoundError(f"{kind.__name__}.{shown(name)}")
    for name, value in state.items():
        if not _conforms(value, hints.get(name, Any)):
            raise UnsoundError(f"{kind.__name__}.{shown(name)} is {type(value).__name__}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the declared types of the attributes of a class."""
    # Some modules import pandas for type checkers only.
    found = typing.get_type_hints(kind, localns={"pd": pd})
    if issubclass(kind, BaseEstimator):
        options = typing.get_type_hints(vars(kind)["__init__"], localns={"pd": pd})
        # Other parameters may be of any type that scikit-learn's checks of them allow.
        found |= {
            name: hint
            for name, hint in options.items()
            if any(get_origin(part) is typing.Literal for part in (hint, *get_args(hint)))
        }
    return {name: hint for name, hint in found.items() if get_origin(hint) is not typing.ClassVar}


def _conforms(value: Any, hint: Any) -> bool:
    """Whether a value matches a type hint; NumPy's scalars count as Python's."""
    if hint is Any:
        return _is_plain(value)
    if hint is None or hint is type(None):
        return value is None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_conforms(value, option) for option in arguments)
    if hasattr(origin, "__value__"):
        # From NumPy 2.5 on, NDArray is an alias that has to be looked up.
        return _conforms(value, origin.__value__[arguments])
    if origin is np.ndarray:
        return _is_array(value, arguments[-1])
    if origin is list:
        return isinstance(value, list) and all(_conforms(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _conforms(key, arguments[0]) and _conforms(item, arguments[1])
            for key, item in value.items()
        )
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is Ellipsis:
            return all(_conforms(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_conforms, value, arguments))
    if isinstance(value, np.generic):
        value = value.item()
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def _is_array(value: Any, dtype: Any) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    wanted = get_args(dtype)
    if not wanted or not (isinstance(wanted[0], type) and issubclass(wanted[0], np.generic)):
        return value.dtype.kind in "biuf"
    # A network's weights may be of single precision.
    return bool(value.dtype.kind == np.dtype(wanted[0]).kind)


def _is_plain(value: Any) -> bool:
    """Whether a value consists of plain data."""
    if isinstance(value, dict):
        return all(_is_plain(item) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple | set):
        return all(map(_is_plain, value))
    plain = str | int | float | None | np.generic | np.ndarray
    return isinstance(value, plain | np.random.RandomState | np.random.Generator)
