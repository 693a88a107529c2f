"""What a picture is: marks on scales, with its words and its table.

A scene says what is drawn, and where in the units of its axes; in px it has only the height of rows
and panels, and the room around them. `heckmanfa.plots.svg` draws any scene as text for a page, and
`heckmanfa.plots.axes` draws it with Matplotlib. Colours are names of the palette: "this", "ols" and
"all" (series), "pos" and "neg" (signs), "ink", "muted", "pale", "absent" and "problem".

A picture is rows of named features over one axis (`Rows`), or panels with two axes (`Panels`). In a
row, y is the distance from its middle, in heights of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heckmanfa.text.printable import cut, cut_names
from heckmanfa.text.table import LegendItem, PictureText
from heckmanfa.text.wording import signed as with_sign
from heckmanfa.text.wording import with_minus

_STEPS = (1, 2, 5)
# Axes from here on are written with exponents.
_SMALL, _LARGE = -5, 7


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    value: float
    at: float
    """where it is, in px"""
    text: str


@dataclass(frozen=True)
class Scale:
    """A straight line from numbers to px.

    Limits that are equal are moved apart, and limits that are not finite replaced, so every scale
    has a width.
    """

    low: float
    high: float
    start: float
    """px of `low`"""
    end: float
    """px of `high`"""

    def __post_init__(self) -> None:
        low, high = _limits(float(self.low), float(self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def over(
        cls,
        values: Iterable[float],
        start: float,
        end: float,
        *,
        pad: float = 0.0,
        include: Sequence[float] = (),
    ) -> Scale:
        """Return a scale over the finite values, and a share of their range beyond on each side.

        ``include`` are numbers that are in view too; nothing is added beyond them.
        """
        found = [float(value) for value in values if math.isfinite(value)]
        if not found:
            found = list(include) or [0.0, 1.0]
        low, high = min(found), max(found)
        more = pad * (high / 2 - low / 2) * 2
        low, high = low - more, high + more
        return cls(min([low, *include]), max([high, *include]), start, end)

    def __call__(self, value: float) -> float:
        """Return where a number is, in px; NaN has no place."""
        # Halves and a common size keep differences of huge numbers finite.
        size = max(abs(self.low), abs(self.high))
        share = (value / size - self.low / size) / (self.high / size - self.low / size)
        return self.start + share * (self.end - self.start)

    def to_ticks(self, most: int = 6) -> Scale:
        """Return a scale that reaches the next tick on a side where that is less than half away."""
        count, step, power = self._steps(most)
        width = step * 10.0**power
        low, high = (count[0] - 1) * width, (count[-1] + 1) * width
        return replace(
            self,
            low=low if self.low - low < 0.5 * width else self.low,
            high=high if high - self.high < 0.5 * width else self.high,
        )

    def clipped(self, value: float) -> tuple[float, int]:
        """Return where a number is, at the ends at most, and on which side of them it lies."""
        if value < self.low:
            return self.start, -1
        if value > self.high:
            return self.end, 1
        return self(value), 0

    def ticks(self, most: int = 6, *, signed: bool = False, unit: str = "") -> tuple[Tick, ...]:
        """Return at most so many round numbers, all with the same number of decimals.

        ``signed`` writes a plus before positive ones; ``unit`` follows each, such as "%".
        """
        count, step, power = self._steps(max(most, 2))
        ticks: dict[str, Tick] = {}
        for factor in count:
            value = factor * step * 10.0**power
            text = with_minus(_written(factor * step, power))
            text = (with_sign(text) if signed else text) + unit
            ticks.setdefault(text, Tick(value, self(value), text))
        return tuple(ticks.values())

    def _steps(self, most: int) -> tuple[range, int, int]:
        """Return multiples of step * 10^power inside the limits."""
        power = math.floor(math.log10((self.high / most - self.low / most) or 5e-324)) - 1
        while True:
            for step in _STEPS:
                width = step * 10.0**power
                if width == 0.0 or not math.isfinite(self.high / width):
                    continue
                # Limits that are round but for rounding are ticks.
                first = math.ceil(self.low / width - 1e-9)
                last = math.floor(self.high / width + 1e-9)
                if last - first < most:
                    return range(first, last + 1), step, power
            power += 1


def _limits(low: float, high: float) -> tuple[float, float]:
    finite = [limit for limit in (low, high) if math.isfinite(limit)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    # Nearer limits would be one number after rounding.
    apart = 1e-12 * max(abs(low), abs(high), 1e-290)
    if high / 2 - low / 2 > apart:
        return low, high
    wide = 0.5 * max(abs(low), abs(high)) or 0.5
    return low - wide, high + wide


def _written(factor: int, power: int) -> str:
    if factor == 0:
        return "0"
    if power <= _SMALL or power >= _LARGE:
        return f"{factor}e{power}"
    return f"{factor * 10.0**power:,.{max(-power, 0)}f}"


Floats = tuple[float, ...]
Span = tuple[float, float]
Shape = Literal["circle", "hollow", "diamond", "square", "stroke"]
Fill = Literal["solid", "hatch", "slanted"]
Numbers = Literal["plain", "signed", "percent", "absolute"]


@dataclass(frozen=True)
class Axis:
    """A scale, its title, and the numbers along it."""

    low: float
    high: float
    title: str = ""
    """on a page; that of a y axis stands above its panel"""
    narrow: str = ""
    """the title in a narrow drawing, if different"""
    printed: str = ""
    """the title in Matplotlib, if different"""
    numbers: Numbers = "plain"
    """how they are written: "signed" with a plus, "percent" as shares of 100, "absolute" without
    their sign, in Matplotlib"""
    ticks: tuple[tuple[float, str], ...] = ()
    """numbers to write on a page, with their words; round ones by default"""
    most: tuple[int, int] = (6, 5)
    """how many round numbers at most, in a wide drawing and in a narrow one"""
    zero: str = ""
    """what is written in place of 0"""
    grid: bool = True
    """whether a page has a thin line at each number"""
    strokes: bool = False
    """whether a page has a short stroke at each number"""


@dataclass(frozen=True)
class Point:
    """A mark; one beyond the x axis is left out."""

    x: float
    y: float
    color: str
    shape: Shape = "circle"
    arrow: bool = False
    """whether an arrow says on which side of the axis it lies"""


@dataclass(frozen=True)
class Interval:
    """A line from one number to another, which ends in an arrow where it runs beyond the axis."""

    low: float
    high: float
    at: float
    """y, or x of an upright one"""
    color: str
    upright: bool = False


@dataclass(frozen=True)
class Bar:
    """A rectangle."""

    x: Span
    y: Span
    color: str
    fill: Fill = "solid"


@dataclass(frozen=True)
class Runs:
    """Cells of a row, from neighbour to neighbour."""

    spans: tuple[Span, ...]
    color: str


@dataclass(frozen=True)
class Curve:
    """Straight pieces from point to point."""

    x: Floats
    y: Floats
    color: str


@dataclass(frozen=True)
class Band:
    """The area between two curves."""

    x: Floats
    low: Floats
    high: Floats
    color: str


@dataclass(frozen=True)
class Rule:
    """A line across the picture, at an x or a y."""

    x: float | None = None
    y: float | None = None
    kind: Literal["zero", "cut", "line"] = "zero"
    """"cut" is dashed; a "line" is one of the grid, which Matplotlib's pictures do not have"""


@dataclass(frozen=True)
class Note:
    """Words beside a point of a curve, on a page."""

    x: float
    y: float
    words: str
    rises: bool
    """whether the curve rises there, so that words are below it at its right"""


def with_interval(value: float, low: float, high: float, color: str) -> tuple[Interval, Point]:
    """Return an estimate on its interval, in the middle of a row."""
    return Interval(low, high, 0.0, color), Point(value, 0.0, color)


Mark = Point | Interval | Bar | Runs | Curve | Band | Rule | Note


@dataclass(frozen=True)
class Row:
    """A named row of marks."""

    name: str
    marks: tuple[Mark, ...]
    tip: str
    """the words of its tooltip, a line each"""
    feature: str | None = None
    """all about a feature lights up together"""
    value: str = ""
    """a number at the right"""
    head: str = ""
    """words above it and its neighbours that share them"""
    under: tuple[str | tuple[str, ...], ...] = ()
    """lines below the name; several names are joined by plus signs, as many as there is room for"""

    def lines(self, most: int) -> list[str]:
        """Return the name and what is below it, each in at most so many cells."""
        return [
            cut(line, most) if isinstance(line, str) else cut_names(line, most)
            for line in (self.name, *self.under)
        ]


@dataclass(frozen=True)
class ColumnTip:
    """A part of the axis that answers to a pointer, and its number above the rows."""

    x: Span
    tip: str
    number: str = ""


@dataclass(frozen=True)
class Rows:
    """Rows over one axis, from top to bottom."""

    x: Axis
    rows: tuple[Row, ...]
    height: float
    """of a row on a page, in px"""
    inches: float
    """height of a new figure"""
    rules: tuple[Rule, ...] = ()
    room: float = 8.0
    """above the first row, in px"""
    labels: tuple[float, float] | None = None
    """room for names on a wide page and on a narrow one, in px; what they need by default"""
    cells: tuple[int, int] | None = None
    """characters of a name, likewise"""
    rest: str = ""
    """a line about rows that are not drawn"""
    hatched: Span | None = None
    """a part of the axis that is hatched behind all rows"""
    columns: tuple[ColumnTip, ...] = ()


@dataclass(frozen=True)
class Group:
    """Marks with one tooltip."""

    marks: tuple[Mark, ...]
    tip: str
    x: Span
    """where it answers to a pointer"""


@dataclass(frozen=True)
class Above:
    """Words above a panel, centred at x if there is room."""

    x: float
    lines: tuple[str, ...]
    name: str = ""
    """of a feature, cut to the room there is, after the first line"""


@dataclass(frozen=True)
class Panel:
    """Marks over two axes, in the order in which they are drawn."""

    y: Axis
    marks: tuple[Mark | Group, ...]
    height: float
    """on a page, in px"""
    room: float
    """above it, in px"""
    title: str = ""
    tip: str = ""
    feature: str | None = None
    shaded: tuple[Span, ...] = ()
    """parts of the x axis with a grey ground"""
    above: tuple[Above, ...] = ()
    """one or two, in the order of their x"""
    corners: tuple[str, str] | None = None
    """words in the upper left and the lower right, on a page"""
    top: tuple[tuple[float, str], ...] = ()
    """numbers of a second axis above, by their x"""
    top_title: str = ""


@dataclass(frozen=True)
class Panels:
    """Panels over one x axis, from top to bottom; beside one another in Matplotlib."""

    x: Axis
    panels: tuple[Panel, ...]
    inches: float = 0.0
    """height of a new figure; several panels have a size of their own"""
    below: tuple[Row, ...] = ()
    """rows of intervals and points below the axis, on a page"""
    left: float = 46.0
    """room for the numbers of y axes, in px"""
    several: bool = False
    """whether Matplotlib has Axes for each panel, even if there is one"""


@dataclass(frozen=True)
class Scene:
    """A picture: its words, its table and what is drawn."""

    kind: str
    """its name, unique on a page"""
    text: PictureText
    body: Rows | Panels
    legend: tuple[LegendItem, ...] | None = None
    """that of Matplotlib, if different"""
