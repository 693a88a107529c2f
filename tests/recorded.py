"""What the package said and returned when it was last recorded, to compare with what it does now.

A record is a text under `tests/records`, made by the package itself: it does not say that a number
is right, as oracles do, but that nobody changed it without noticing. Words are compared to the
letter, and numbers to a unit of their last digit, which other processors may round differently.
CONTRIBUTING says how to write them again.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.text.passage import Passage
from heckmanfa.text.table import Column

FOLDER = Path(__file__).with_name("records")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
# What is smaller is left over by rounding.
_ZERO = 1e-9
_SHOWN = 40
_SKIPPED = {"passes", "n_iterations", "gradient", "decrement"}


def path_of(name: str) -> Path:
    """The file of a record."""
    return FOLDER / f"{name.replace(', ', ' ').replace(' ', '_')}.txt"


def compare(name: str, text: str) -> None:
    """Fail unless the text is the recorded one, but for the last digits of its numbers."""
    path = path_of(name)
    if os.environ.get("HECKMANFA_RECORD"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    expected = path.read_text(encoding="utf-8").splitlines()
    found = text.splitlines()
    for number, (line, other) in enumerate(zip(found, expected, strict=False), 1):
        assert line == other or _close(line, other), f"{path}:{number}\n{other}\n{line}"
    assert len(found) == len(expected), path.name


def _close(line: str, other: str) -> bool:
    if [part.strip() for part in _NUMBER.split(line)] != [
        part.strip() for part in _NUMBER.split(other)
    ]:
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True)
    return all(abs(_value(a) - _value(b)) <= 1.01 * max(_unit(a), _unit(b)) for a, b in pairs)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _unit(number: str) -> float:
    """A unit of the last digit; integers are exact."""
    digits, _, power = number.partition("e")
    if "." not in digits and not power:
        return 0.0
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def flat(value: Any, name: str = "") -> str:
    """Write every number, word and choice that a result holds, a line for each of its parts."""
    return "\n".join(_lines(value, name, ()))


def _lines(value: Any, name: str, above: tuple[int, ...]) -> Iterator[str]:
    if id(value) in above or len(above) > 8:
        return
    above = (*above, id(value))
    if _is_plain(value):
        yield f"{name} = {_text(value)}"
    elif isinstance(value, pd.DataFrame):
        yield f"{name}: {', '.join(map(str, value.columns))}"
        for label, row in value.iterrows():
            yield f"  {label}: " + ", ".join(map(_text, row))
    elif isinstance(value, pd.Series):
        yield from _lines(value.to_dict(), name, above)
    elif isinstance(value, np.ndarray):
        yield f"{name} = {_array(value)}"
    elif dataclasses.is_dataclass(value):
        parts = _parts(value)
        plain = [part for part in parts if _is_plain(parts[part])]
        yield f"{name}: " + "; ".join(f"{part} {_text(parts[part])}" for part in plain)
        for part in parts:
            if part not in plain:
                yield from _lines(parts[part], f"{name}.{part}", above)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lines(item, f"{name}[{key}]", above)
    elif isinstance(value, Sequence | Set):
        items = sorted(value, key=str) if isinstance(value, Set) else value
        if items and isinstance(items[0], Column):
            yield f"{name}: " + " | ".join(map(_title, items))
        elif all(map(_is_plain, items)):
            yield f"{name} = {', '.join(map(_text, items))}"
        else:
            for place, item in enumerate(items):
                yield from _lines(item, f"{name}[{place}]", above)
    else:
        yield f"{name}: {type(value).__name__}"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | np.generic | Passage)


def _parts(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not what they are by default."""
    parts = {}
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        usual = field.default is part or (_is_plain(part) and field.default == part)
        empty = isinstance(part, str | Sequence | Mapping) and not len(part)
        if field.name[0] != "_" and field.name not in _SKIPPED and not usual and not empty:
            parts[field.name] = part
    return parts


def _title(column: Column) -> str:
    """The head of a column, with an exclamation mark for each of its marks that is set."""
    marks = column.is_number, column.is_long, column.is_feature
    said = column.title, column.group, column.span, "!" * sum(marks), str(column.width or "")
    return " ".join(filter(None, said))


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "0" if abs(value) < _ZERO else f"{value:.5g}"
    return str(value)


def _array(values: np.ndarray) -> str:
    if values.size <= _SHOWN or values.dtype.kind not in "fiub":
        return f"{values.shape} " + " ".join(map(_text, values.ravel()))
    known = np.nan_to_num(values.astype(float)).ravel()
    sums = known.sum(), np.abs(known).sum(), known @ np.cos(np.arange(known.size))
    return f"{values.shape} sums {' '.join(map(_text, sums))}"
