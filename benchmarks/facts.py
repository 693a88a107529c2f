"""Values of any kind as flat lists of numbers and words, and how two sets of them differ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

Flat = dict[str, list[Any]]
"""key to a list of floats, or of whole numbers, words and lists of them"""

TOLERANCE = 1e-12
# Entries smaller than this share of the largest in the same array are judged on that scale: the
# rounding errors of a covariance near zero come from the large terms that cancelled.
NEGLIGIBLE = 1e-3

NOT_COMPARED = "(not compared)"
# Parts of keys whose values are not compared, though the key must be there.
EXCLUDED = {
    "heckmanfa": "the version",
    "command": "holds paths",
    "question.data": "a path",
    "seconds": "a timing",
    "answer": "sentences",
    "not_to_be_claimed": "sentences",
    "caveats.sentence": "sentences",
    "caveats.claim": "sentences",
    "reading": "sentences",
    "warnings": "sentences; the classes of warnings are compared",
    "columns_left_out": "names to sentences",
    "diagnostics.facts": "sentences; the numbers behind them are fields of their own",
    "diagnostics.diagnostic": "wording",
    "checks.words": "sentences",
    "checks.do": "sentences",
    "checks.name": "labels",
    "checks.title": "sentences",
    "diagnostics.value": "formatted numbers; Diagnostics' own fields are compared",
    "diagnostics.meaning": "sentences",
    "log_likelihood_is": "wording",
    "diagnostics.findings": "sentences; verdicts are compared",
    "diagnostics.caveats": "sentences; verdicts are compared",
    "diagnostics.guards": "sentences; verdicts are compared",
    "diagnostics.of_classes": "sentences; verdicts are compared",
    "note": "sentences",
    "notes": "sentences",
    "title": "wording",
}


class Facts:
    """Collects the flat values of a case; a failure is recorded as its class's name."""

    def __init__(self) -> None:
        self.flat: Flat = {}

    def add(self, key: str, value: Any) -> Any:
        """Record a value, or what a function without arguments returns, and return it."""
        if not callable(value):
            flatten(value, key, self.flat)
            return value
        try:
            found = value()
        except Exception as error:
            self.flat[f"{key}.error"] = [type(error).__name__]
            return None
        flatten(found, key, self.flat)
        return found

    def attempt(self, key: str, function: Callable[[], Any]) -> Any:
        """Return what a function returns without recording it; None where it fails."""
        try:
            return function()
        except Exception as error:
            self.flat[f"{key}.error"] = [type(error).__name__]
            return None


def is_excluded(key: str) -> bool:
    padded = f".{key}."
    return any(f".{name}." in padded for name in EXCLUDED)


def flatten(value: Any, key: str, into: Flat) -> None:
    """Put a value into a flat dictionary, under its key or keys that begin with it."""
    value = _in_memory(value)
    if is_excluded(key):
        into[key] = [NOT_COMPARED]
    elif isinstance(value, pd.DataFrame):
        _flatten_frame(value, key, into)
    elif isinstance(value, Mapping):
        into[key] = [str(name) for name in value]
        for name, part in value.items():
            flatten(part, f"{key}.{name}", into)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                flatten(getattr(value, field.name), f"{key}.{field.name}", into)
    elif isinstance(value, list | tuple) and value and _all(Mapping, value):
        _flatten_frame(pd.DataFrame([dict(one) for one in value]), key, into)
    elif isinstance(value, list | tuple) and any(isinstance(one, np.ndarray) for one in value):
        into[key] = [_plain(x) for one in value for x in np.ravel(one).tolist()]
    elif isinstance(value, list | tuple | set | frozenset):
        into[key] = [_plain(one) for one in value]
    elif isinstance(value, np.ndarray):
        into[key] = [_plain(one) for one in value.ravel().tolist()]
    else:
        into[key] = [_plain(value)]


def _flatten_frame(frame: pd.DataFrame, key: str, into: Flat) -> None:
    if not isinstance(frame.index, pd.RangeIndex):
        into[f"{key}.index"] = [_plain(one) for one in frame.index.tolist()]
    into[f"{key}.columns"] = [_plain(one) for one in frame.columns.tolist()]
    for place, name in enumerate(frame.columns):
        label = ".".join(map(str, name)) if isinstance(name, tuple) else name
        flatten(frame.iloc[:, place].tolist(), f"{key}.{label}", into)


def _in_memory(value: Any) -> Any:
    """Bring lazy collections and other libraries' arrays to NumPy or pandas."""
    home = type(value).__module__.partition(".")[0]
    if home == "dask":
        return value.compute()
    if home == "torch":
        return value.detach().cpu().numpy()
    if home in ("polars", "pyarrow"):
        return value.to_pandas()
    return value.to_numpy() if isinstance(value, pd.Series | pd.Index) else value


def _all(kind: type, values: Iterable[Any]) -> bool:
    return all(isinstance(one, kind) for one in values)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(one) for one in value), key=str)
    raise TypeError(f"no flat form of a {type(value).__name__}")


# Differences. -------------------------------------------------------------------------------------


@dataclasses.dataclass
class Difference:
    """How the values of a case differ from those recorded."""

    n_numbers: int = 0
    n_words: int = 0
    """discrete values"""
    n_changed: int = 0
    """numbers that are not the same to the last bit"""
    largest: float = 0.0
    """largest relative difference of a number"""
    faults: list[str] = dataclasses.field(default_factory=list)
    new: list[str] = dataclasses.field(default_factory=list)

    @property
    def is_same(self) -> bool:
        return not self.faults


def differ(old: Flat, new: Flat) -> Difference:
    """Compare a case with its record: every key that was there must be there, and agree."""
    found = Difference(new=[key for key in new if key not in old])
    for key, values in old.items():
        if is_excluded(key):
            continue
        if key not in new:
            found.faults.append(f"{key}: missing")
        else:
            _compare(key, values, new[key], found)
    return found


def _compare(key: str, old: list[Any], new: list[Any], found: Difference) -> None:
    are_numbers = _is_numeric(old) and _is_numeric(new) and _has_floats([*old, *new])
    if not are_numbers or len(old) != len(new):
        found.n_words += len(old)
        if _discrete(old) != _discrete(new):
            found.faults.append(f"{key}: was {_short(old)}, is {_short(new)}")
        return
    found.n_numbers += len(old)
    a, b = _numbers(old), _numbers(new)
    changed = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    found.n_changed += int(changed.sum())
    if changed.any():
        distance = _relative(a, b, changed)
        found.largest = max(found.largest, distance)
        if not distance <= TOLERANCE:
            place = int(np.flatnonzero(changed)[0])
            found.faults.append(
                f"{key}: differs by {distance:.1e} (first at {place}: {a[place]!r}, {b[place]!r})"
            )


def _relative(a: Any, b: Any, changed: Any) -> float:
    """Largest relative difference of the entries that changed; inf where one is not finite."""
    if not (np.isfinite(a[changed]).all() and np.isfinite(b[changed]).all()):
        return math.inf
    size = np.maximum(np.abs(a), np.abs(b))
    floor = NEGLIGIBLE * size[np.isfinite(size)].max()
    return float(np.max((np.abs(a - b) / np.maximum(size, floor))[changed]))


def _has_floats(values: list[Any]) -> bool:
    return any(isinstance(one, float) for one in values)


def _is_numeric(values: list[Any]) -> bool:
    return all(one is None or isinstance(one, float | int) for one in values)


def _discrete(value: Any) -> Any:
    """A value that equals itself, which NaN among words does not."""
    if isinstance(value, list):
        return [_discrete(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _numbers(values: list[Any]) -> Any:
    return np.array([math.nan if one is None else float(one) for one in values])


def _short(values: list[Any]) -> str:
    text = repr(values)
    return text if len(text) <= 120 else f"{text[:117]}..."
