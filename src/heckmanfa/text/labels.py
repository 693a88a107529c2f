"""What readers call columns, levels and units: labels in place of names.

An answer makes its words inside ``with labelled(labels)``. Whatever names a column to a reader then
takes its label: a `Name` of a passage and a picture when they are made, other text by `said`.
Options, errors, frames and fields of JSON keep the column's name, which users type.

>>> with labelled(Labels({"educ": "Years of schooling"})):
...     said("educ"), said("exper")
('Years of schooling', 'exper')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Protocol, TypeVar

from heckmanfa.text.printable import LINE, shown


@dataclass(frozen=True)
class Labels:
    """How readers know the columns of a table; what has no label goes by its name."""

    names: Mapping[str, str] = field(default_factory=dict)
    """labels of columns, of what they are encoded as, and of the outcome on its scale"""
    levels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """what a level means, by column and level"""
    units: Mapping[str, str] = field(default_factory=dict)
    """units, by column"""


_NONE = Labels()
_labels: ContextVar[Labels | None] = ContextVar("labels", default=None)


@contextmanager
def labelled(labels: Labels) -> Iterator[None]:
    """Let words that are made inside name columns by these labels."""
    before = _labels.set(labels)
    try:
        yield
    finally:
        _labels.reset(before)


class HasLabels(Protocol):
    """What has labels of its own, such as an answer."""

    @property
    def labels(self) -> Labels:
        """What readers call its columns."""


_Value = TypeVar("_Value")
_Self = TypeVar("_Self", bound=HasLabels)


def in_labels(method: Callable[[_Self], _Value]) -> Callable[[_Self], _Value]:
    """Let a method name columns by the ``labels`` of its object."""

    @wraps(method)
    def run(self: _Self) -> _Value:
        with labelled(self.labels):
            return method(self)

    return run


def current_labels() -> Labels:
    """Return the labels that words take now."""
    return _labels.get() or _NONE


def label(name: str) -> str:
    """Return the label of a column as it was given, or its name."""
    return current_labels().names.get(name, name)


def level_label(column: str, level: str) -> str:
    """Return what a level means, or the level itself."""
    return current_labels().levels.get((column, level), level)


def said(name: str, limit: int = LINE) -> str:
    """Name a column to a reader, made printable: its label, or its name."""
    return shown(label(name), limit)


def said_all(names: Sequence[str]) -> list[str]:
    """Name columns to a reader."""
    return [said(name) for name in names]


def with_name(name: str) -> str:
    """Name a column in a table: its label and, if it has one, its name."""
    return f"{said(name)} ({shown(name)})" if label(name) != name else shown(name)


def with_names(names: Sequence[str]) -> list[str]:
    """Name columns in a table or a list of settings."""
    return [with_name(name) for name in names]


def said_level(column: str, level: str, limit: int = LINE) -> str:
    """Name a level to a reader, made printable."""
    return shown(level_label(column, level), limit)


def switch_levels(column: str) -> tuple[str, str]:
    """Return what 1 and 0 mean in a column that holds nothing else, made printable."""
    return said_level(column, "1", 40), said_level(column, "0", 40)


def with_unit(number: str, column: str) -> str:
    """Write a number of a column with the column's unit, if that is known."""
    unit = current_labels().units.get(column)
    if not unit:
        return number
    # A unit such as $1,000 is an amount itself.
    times = " × " if any(map(str.isdigit, unit)) else " "
    return f"{number}{times}{shown(unit, 40)}"


def one_unit(column: str) -> str:
    """Return what one more of a column is, such as 'year'; empty if its unit is not known."""
    unit = current_labels().units.get(column)
    return shown(_singular(unit), 40) if unit else ""


# Plurals that do not end in a plain s, and words that look like plurals.
_ONE = {"feet": "foot", "inches": "inch", "people": "person", "children": "child", "men": "man"}
_ONE |= {"women": "woman", "countries": "country", "cities": "city", "families": "family"}
_NOT_PLURAL = ("ss", "us", "is", "ies", "xes", "ches", "shes")


def _singular(unit: str) -> str:
    """Return the name of one unit; what is not surely an English plural stays as it is."""
    first, per, rest = unit.partition(" per ")
    *words, last = first.split(" ")
    if "of" in words:
        return unit
    one = _ONE.get(last, last)
    if one == last and len(last) > 3 and last.isascii() and last.isalpha() and last.islower():
        one = last[:-1] if last.endswith("s") and not last.endswith(_NOT_PLURAL) else last
    return " ".join([*words, one]) + per + rest
