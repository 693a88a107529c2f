"""Shapes of the parts of a model, as `model_classes.FIELDS` declares them.

A declaration is a text of clauses:

=================  ==========================================================================
``[N, k + 2]``     the shape of an array; several are alternatives, or those of a list's items
``#K``             that many items, or at most that many characters of a text
``@K``             positions among K, none of them twice
``=K``, ``<=K``    an integer that is K, or from 0 to K
``>k``             from here on, k is the number of items
``~``              numbers that may be NaN or infinite; all others are finite
``-``              integers that may be negative
``!``              None
=================  ==========================================================================

K is the number of columns of the model. A size that is not known yet is learned from the first
array that has it; `MOST` bounds those that grow with K.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.analysis.archive import UnsoundError

# Products of a few finite numbers stay finite.
_LARGEST = np.float64(1e100)
Shape = tuple[str, ...]
_CLAUSE = re.compile(r"\[([^][]*)\]|(<=|[#@=>~!-])(\w*)")


@dataclass(frozen=True)
class Rule:
    """What is declared of a field."""

    shapes: tuple[Shape, ...] = ()
    length: str = ""
    positions: str = ""
    equal: str = ""
    most: str = ""
    names: str = ""
    any_number: bool = False
    signed: bool = False
    absent: bool = False

    @property
    def longest(self) -> int | None:
        """The most characters of a text; None if not declared."""
        return int(self.length) if self.length.isdigit() else None

    @property
    def item(self) -> Rule:
        """What is declared of each item."""
        return replace(self, length="", names="")

    def each(self) -> list[Rule]:
        """Return what is declared of each array of a list."""
        return [replace(self, shapes=(shape,), length="", names="") for shape in self.shapes]

    def allows(self, numbers: Any) -> bool:
        """Whether numbers are finite, and not too large; or NaN or infinite if declared."""
        allowed = np.abs(numbers) <= _LARGEST
        return bool(np.all(allowed | ~np.isfinite(numbers) if self.any_number else allowed))

    def check_length(self, count: int, sizes: Sizes) -> None:
        """Refuse another number of items than declared, and learn it."""
        if self.length and count != sizes.of(self.length):
            raise UnsoundError(f"it has {count:,} entries, not {sizes.of(self.length):,}")
        if self.positions and not self.shapes and count > sizes.of(self.positions):
            raise UnsoundError(f"it has {count:,} entries, more than {sizes.of(self.positions):,}")
        if self.names:
            sizes.learn(self.names, count)

    def check_integer(self, number: int, sizes: Sizes) -> None:
        """Refuse an integer outside its bounds."""
        low, high = 0, None
        if self.positions:
            high = sizes.of(self.positions) - 1
        if self.most:
            high = sizes.of(self.most)
        if self.equal:
            low = high = sizes.of(self.equal)
        if (number < low and not self.signed) or (high is not None and number > high):
            raise UnsoundError(f"{number:,} is out of bounds")


ANYTHING = Rule()


def parse_rule(text: str) -> Rule:
    """Read a declaration."""
    if _CLAUSE.sub("", text).strip():
        raise ValueError(f"{text!r} is not a declaration")
    shapes, marks = [], dict[str, str]()
    for shape, mark, name in _CLAUSE.findall(text):
        if mark:
            marks[mark] = name
        else:
            shapes.append(tuple(size.strip() for size in shape.split(",")))
    return Rule(
        shapes=tuple(shapes),
        length=marks.get("#", ""),
        positions=marks.get("@", ""),
        equal=marks.get("=", ""),
        most=marks.get("<=", ""),
        names=marks.get(">", ""),
        any_number="~" in marks,
        signed="-" in marks,
        absent="!" in marks,
    )


@dataclass
class Sizes:
    """The sizes that are known, by name."""

    known: dict[str, int]
    most: Mapping[str, str]
    """the most that a size may be, in sizes that are known"""

    def inside(self) -> Sizes:
        """Return the sizes for an object inside this one, which may have its own."""
        return Sizes(dict(self.known), self.most)

    def of(self, text: str) -> int:
        """Return a size such as ``2 K + 3``; ``K/8`` is in bytes of eight."""
        total = 0
        for term in text.split("+"):
            *factor, name = term.split()
            name, _, per = name.partition("/")
            if not name.isdigit() and name not in self.known:
                raise UnsoundError(f"the size {name} is not known")
            value = int(name) if name.isdigit() else self.known[name]
            total += (int(factor[0]) if factor else 1) * (-(-value // int(per)) if per else value)
        return total

    def learn(self, name: str, value: int) -> None:
        """Take a size from the first part that has it."""
        if name in self.most and value > self.of(self.most[name]):
            raise UnsoundError(f"{value:,} is more than {self.of(self.most[name]):,}")
        self.known[name] = value

    def match(self, shape: Sequence[int], declared: Sequence[Shape]) -> None:
        """Refuse a shape that is not a declared one."""
        for wanted in declared:
            if len(wanted) == len(shape):
                for size, text in zip(shape, wanted, strict=True):
                    if text.isalpha() and text not in self.known:
                        self.learn(text, size)
                    if size != self.of(text):
                        raise UnsoundError(f"an array of shape {(*shape,)} is there")
                return
        raise UnsoundError(f"an array of {len(shape)} dimensions is there")
