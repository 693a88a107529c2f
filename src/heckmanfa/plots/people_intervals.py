"""What a model expects of typical rows, and of rows that a user describes, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pandas as pd

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Interval, Mark, Point, Row, Rows, Shape
from heckmanfa.text.labels import label, said, with_unit
from heckmanfa.text.printable import cut
from heckmanfa.text.table import Column, LegendItem, Table
from heckmanfa.text.wording import effects, percent, true_minus

Quantity = Literal["anyone", "selected", "unselected", "selection", "treated", "untreated"]
QUANTITIES: tuple[Quantity, ...] = ("anyone", "selected", "unselected", "selection")
"""the outcome of anyone like this, of one with an outcome, of one without, and the probability of
having one"""

_MARKS: dict[Quantity, tuple[str, Shape, float]] = {
    "anyone": ("this", "circle", -0.22),
    "selected": ("pos", "diamond", 0.0),
    "unselected": ("neg", "square", 0.22),
    "treated": ("this", "circle", -0.16),
    "untreated": ("ols", "square", 0.16),
}
_ROW, _ROW_INCHES, _MARGIN_INCHES, _PAD, _ALT = 62.0, 0.62, 0.9, 0.06, 260
_LABELS, _CELLS = (168.0, 128.0), (21, 15)
_UNDER = 2
"""features below the name of a row"""


@dataclass(frozen=True)
class Expected:
    """An expectation with its 95% interval; NaN where a number is not known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Person:
    """A typical row, or one that a user describes, and what the model expects of it."""

    group: str
    """the rows that it is of, such as "with wage"; empty if a user describes it"""
    half: str
    """which half of these, or which profile"""
    kind: Literal["selected", "unselected", "profile"]
    features: tuple[tuple[str, str], ...]
    """columns and what they hold, rounded and in words: those that matter most, or those named"""
    expected: dict[Quantity, Expected]
    beyond: tuple[str, ...] = ()
    """values outside the range of the fit, in words"""
    classes: tuple[tuple[str, float], ...] = ()
    """ordered classes, as readers know them, with their probabilities for anyone like this"""

    @property
    def every(self) -> dict[str, Expected]:
        """All that is expected, by quantity; the probability of a class has no interval."""
        nan = float("nan")
        shares = {f"class {named}": Expected(share, nan, nan) for named, share in self.classes}
        expected: dict[str, Expected] = dict(self.expected.items())
        return expected | shares

    @property
    def by_class(self) -> str:
        """Write the probability of each class: "poor 34%, fair 41%, good 26%"."""
        return ", ".join(f"{named} {percent(share, 0)}" for named, share in self.classes)

    @property
    def name(self) -> str:
        """What it is called, such as "with wage, lower half"."""
        return ", ".join(filter(None, (self.group, self.half)))

    @property
    def described(self) -> str:
        """The features, in a line."""
        return ", ".join(_holds(name, value) for name, value in self.features)


@dataclass(frozen=True)
class People(Picture):
    """Expected outcomes of typical rows, on the outcome's own scale."""

    kind: ClassVar[str] = "people"

    outcome: str
    """column of the outcome"""
    measured: str
    """what has the unit of what is expected: the outcome, or what it is the logarithm of"""
    target: str
    """what is expected: the outcome, or P(outcome = class)"""
    people: tuple[Person, ...]
    classes: bool = False
    """whether expectations are probabilities"""
    about: str = ""
    """what rows these are, in a sentence or two"""
    sure: bool = False
    """whether selection surely mattered"""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The expectations of an outcome that there are."""
        first = self.people[0].expected
        return tuple(quantity for quantity in _MARKS if quantity in first)

    def words_of(self, expected: Expected, *, chance: bool = False) -> str:
        """Write an expectation with its interval: "3.42 (2.9 to 4.0)", or "61% (55% to 67%)"."""
        value, low, high = self._numbers(expected, chance=chance)
        return f"{value} ({low} to {high})" if low and high else value

    def _numbers(self, expected: Expected, *, chance: bool) -> list[str]:
        numbers = (expected.value, expected.low, expected.high)
        if not self.classes and not chance:
            return effects(*numbers)
        return ["" if math.isnan(share) else true_minus(percent(share, 0)) for share in numbers]

    def label_of(self, quantity: Quantity) -> str:
        """Say of whom an expectation is."""
        outcome = said(self.outcome, 24)
        return {
            "anyone": "anyone like this",
            "selected": f"if with {outcome}",
            "unselected": f"if without {outcome}",
            "selection": f"chance to have {outcome}",
            "treated": "if treated",
            "untreated": "if not",
        }[quantity]

    def sentence(self, person: Person) -> str:
        """Say what is expected of a person."""
        first = self.words_of(person.expected[self._main])
        if self._main != "anyone":
            first += f" {self.label_of(self._main)}"
        others = [
            f"{self.words_of(person.expected[quantity])} {self.label_of(quantity)}"
            for quantity in self.quantities
            if quantity != self._main
        ]
        words = "; ".join([f"{self._what}: {first}", *others]) + "."
        if "selection" in person.expected:
            chance = self.words_of(person.expected["selection"], chance=True)
            words += f" {_start(self.label_of('selection'))}: {chance}."
        if person.classes:
            words += f" By class, for anyone like this: {person.by_class}."
        return " ".join([words, *person.beyond])

    @property
    def _main(self) -> Quantity:
        """The expectation that is said first."""
        return self.quantities[0]

    # Words. -----------------------------------------------------------------------------------

    def _title(self) -> str:
        rows = "profiles" if self.people[0].kind == "profile" else "typical rows"
        return f"{self._what} of {rows}"

    def _look(self) -> str:
        if len(self.quantities) == 1:
            return "Look how long the lines are: the longer, the less sure the number."
        matters = "selection matters" if self.sure else "it would matter"
        return f"Look how far apart the marks of a row are: that much {matters}."

    @property
    def _what(self) -> str:
        """What is expected: an outcome, or the probability of a class."""
        return self.target if self.classes else f"Expected {self.target}"

    def _legend(self) -> tuple[LegendItem, ...]:
        return tuple(
            LegendItem(self.label_of(quantity), f"-{_MARKS[quantity][1]}", _MARKS[quantity][0])
            for quantity in self.quantities
        )

    def _alt(self) -> str:
        start = f"{cut(self._what, 50)} with 95% intervals."
        found = [
            f"{cut(person.name, 40)}: {self.words_of(person.expected[self._main])}"
            for person in self.people
        ]
        for many in range(len(found), 0, -1):
            text = f"{start} {'; '.join(found[:many])}."
            if len(text) <= _ALT:
                return text
        return start

    def _caption(self) -> str:
        return self.about

    def _table(self) -> Table:
        columns = [Column("Row", is_number=False), Column("Features", is_number=False)]
        shown: Sequence[Quantity] = self.quantities
        if "selection" in self.people[0].expected:
            shown = ("selection", *shown)
        columns += [Column(_start(self.label_of(quantity))) for quantity in shown]
        named = [named for named, _ in self.people[0].classes]
        columns += [Column(name, group="Of anyone like this") for name in named]
        lines = [
            (
                _start(person.name),
                person.described,
                *(
                    self.words_of(person.expected[quantity], chance=quantity == "selection")
                    for quantity in shown
                ),
                *(percent(share, 0) for _, share in person.classes),
            )
            for person in self.people
        ]
        unit = "" if self.classes else with_unit("", self.measured).strip()
        unit = f", in {unit}" if unit else ""
        caption = f"{self._what} with 95% intervals{unit}"
        return Table(tuple(columns), tuple(lines), caption, "people-table")

    def _body(self) -> Rows:
        rows = []
        for person in self.people:
            marks: list[Mark] = []
            lines = [_start(person.name), person.described]
            for quantity in self.quantities:
                expected, (color, shape, y) = person.expected[quantity], _MARKS[quantity]
                marks += [
                    Interval(expected.low, expected.high, y, color),
                    Point(expected.value, y, color, shape),
                ]
                lines.append(f"{self.words_of(expected)} {self.label_of(quantity)}")
            if "selection" in person.expected:
                chance = self.words_of(person.expected["selection"], chance=True)
                lines.append(f"{chance}: {self.label_of('selection')}")
            lines += [person.by_class] if person.classes else []
            features = tuple(_holds(name, value) for name, value in person.features)
            tip, head = "\n".join(lines), _start(person.group)
            name = _start(person.half) or "All"
            rows.append(Row(name, tuple(marks), tip, head=head, under=features[:_UNDER]))
        ends = [
            number
            for person in self.people
            for quantity in self.quantities
            for expected in [person.expected[quantity]]
            for number in (expected.value, expected.low, expected.high)
            if math.isfinite(number)
        ]
        scale = Scale.over(ends, 0.0, 1.0, pad=_PAD)
        unit = "" if self.classes else with_unit("", self.measured).strip()
        title = self.target if self.classes else f"expected {self.target}"
        title += f", in {unit}" if unit else ""
        x = Axis(scale.low, scale.high, title, numbers="percent" if self.classes else "plain")
        inches = _MARGIN_INCHES + _ROW_INCHES * len(rows)
        return Rows(x, tuple(rows), _ROW, inches, labels=_LABELS, cells=_CELLS)


@dataclass(frozen=True)
class TreatedPeople(People):
    """Expected outcomes of typical rows, with treatment and without."""

    treated: str = ""
    """column of who is treated"""

    def label_of(self, quantity: Quantity) -> str:
        """Say of which regime an expectation is."""
        if quantity == "selection":
            return f"chance of {said(self.treated, 24)}"
        return super().label_of(quantity)

    def _look(self) -> str:
        return "Look how far apart the marks of a row are: that is the effect on such a row."


def _holds(name: str, value: str) -> str:
    """Say what a column holds: 'educ = 12', or with a label 'Years of schooling: 12'."""
    return f"{said(name, 30)}{' = ' if label(name) == name else ': '}{value}"


def _start(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def people_frame(people: Sequence[Person]) -> pd.DataFrame:
    """Return a row for each person and expectation, with its interval."""
    return pd.DataFrame(
        [
            {
                "person": person.name,
                "described": person.described,
                "quantity": quantity,
                "estimate": expected.value,
                "ci_low": expected.low,
                "ci_high": expected.high,
            }
            for person in people
            for quantity, expected in person.every.items()
        ],
        columns=["person", "described", "quantity", "estimate", "ci_low", "ci_high"],
    )
