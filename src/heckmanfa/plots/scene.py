"""What a picture is: marks on scales, with its words and its table.

A scene says what is drawn, and where in the units of its axes; in px it has only the height of rows
and panels, and the room around them. `heckmanfa.plots.svg` draws any scene as text for a page, and
`heckmanfa.plots.axes` draws it with Matplotlib. Colours are names of the palette: "this", "ols" and
"all" (series), "pos" and "neg" (signs), "ink", "muted", "pale", "absent", "caution" and "problem".

A picture is rows of named features over one axis (`Rows`), or panels with two axes (`Panels`). In a
row, y is the distance from its middle, in heights of a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from heckmanfa.text.printable import cut, cut_names
from heckmanfa.text.table import LegendItem, PictureText

Floats = tuple[float, ...]
Span = tuple[float, float]
Shape = Literal[
    "circle", "hollow", "diamond", "square", "triangle", "left", "right", "cross", "stroke"
]
Fill = Literal["solid", "hatch", "slanted"]
Line = Literal["solid", "dashed", "dashdot", "dotted", "thin"]
Numbers = Literal["plain", "signed", "percent", "absolute", "count"]
# Rows that are higher together, in px, may stand in two columns.
_TALL = 300.0
SERIES = ("this", "ols", "pos", "neg", "all", "ink", "caution")
"""Colours of series of which there may be many, in order."""


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
    their sign, in Matplotlib, and a "count" only as integers"""
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
class Dots:
    """Small marks, of which there may be thousands: discs or crosses."""

    x: Floats
    y: Floats
    color: str
    shape: Literal["circle", "cross"] = "circle"
    small: bool = False
    """whether there are so many that they would hide each other"""


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
    line: Line = "solid"


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
    color: str = ""
    """of a "cut", if different"""


@dataclass(frozen=True)
class Note:
    """Words beside a point of a curve, on a page."""

    x: float
    y: float
    words: str
    rises: bool
    """whether the curve rises there, so that words are below it at its right"""


def with_interval(
    value: float, low: float, high: float, color: str, shape: Shape = "circle"
) -> tuple[Interval, Point]:
    """Return an estimate on its interval, in the middle of a row."""
    return Interval(low, high, 0.0, color), Point(value, 0.0, color, shape)


Mark = Point | Dots | Interval | Bar | Runs | Curve | Band | Rule | Note


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

    def lines(self, most: int, below: int | None = None) -> list[str]:
        """Return the name and what is below it, each in at most so many cells."""
        below = most if below is None else below
        return [
            cut(self.name, most),
            *(cut(it, below) if isinstance(it, str) else cut_names(it, below) for it in self.under),
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
    words: tuple[int, int] | None = None
    """characters of a line below a name; as many as of a name by default"""
    rest: str = ""
    """a line about rows that are not drawn"""
    hatched: Span | None = None
    """a part of the axis that is hatched behind all rows"""
    columns: tuple[ColumnTip, ...] = ()
    in_columns: bool = False
    """whether a page that is wide enough has many rows in two columns"""

    @property
    def is_across(self) -> bool:
        """Whether a page that is wide enough has the rows in two columns."""
        return self.in_columns and self.tall > _TALL

    def halves(self) -> tuple[Rows, Rows]:
        """Return the rows of two columns; the line about others is below the second."""
        half = (len(self.rows) + 1) // 2
        # A column begins with its own heading where one is near the middle.
        near = [place for place in range(half - 2, half + 3) if 0 < place < len(self.rows)]
        heads = [place for place in near if self.rows[place].head != self.rows[place - 1].head]
        middle = min(heads, key=lambda place: abs(place - half), default=half)
        first, last = self.rows[:middle], self.rows[middle:]
        return replace(self, rows=first, rest=""), replace(self, rows=last)

    @property
    def tall(self) -> float:
        """About how high it is on a page, in px."""
        heads = {row.head for row in self.rows} - {""}
        return self.room + self.height * (len(self.rows) + bool(self.rest) + len(heads))

    @property
    def is_labelled(self) -> bool:
        """Whether a row is named by a label that is not its feature's name."""
        return any(row.feature is not None and row.name != row.feature for row in self.rows)

    def places(self, row: float, head: float, start: float = 0.0) -> Places:
        """Place rows and headings of these heights under one another."""
        places, y = Places([], [], [], start), start
        for words, rows in groupby(self.rows, key=lambda row: row.head):
            if words:
                places.heads.append((words, y))
                y += head
            first = y
            for _ in rows:
                places.tops.append(y)
                y += row
            if places.blocks and places.blocks[-1][1] == first:
                first = places.blocks.pop()[0]
            places.blocks.append((first, y))
        return replace(places, end=y)


@dataclass(frozen=True)
class Places:
    """Where rows are, from the top."""

    heads: list[tuple[str, float]]
    """words and tops of headings"""
    tops: list[float]
    """of rows"""
    blocks: list[Span]
    """tops and bottoms of rows without a heading between them"""
    end: float


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
class End:
    """The name of a curve, at the right of its panel, with a line from the curve's last point."""

    y: float
    name: str
    color: str


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
    ends: tuple[End, ...] = ()
    """names of curves; all that have one end at the right edge"""


@dataclass(frozen=True)
class Panels:
    """Panels over one x axis, from top to bottom, or beside one another across a page."""

    x: Axis
    panels: tuple[Panel, ...]
    inches: float = 0.0
    """height of a new figure; panels beside one another have a size of their own"""
    below: tuple[Row, ...] = ()
    """rows of intervals and points below the axis, on a page"""
    left: float = 46.0
    """room for the numbers of y axes, in px"""
    axes: Literal["one", "beside", "stacked"] = "one"
    """of Matplotlib: one, or an array of them, beside one another or over one x axis"""

    @property
    def tall(self) -> float:
        """About how high it is on a page, in px, with panels under one another."""
        return sum(panel.room + panel.height for panel in self.panels)

    @property
    def is_across(self) -> bool:
        """Whether a page that is wide enough has the panels beside one another."""
        return self.axes == "beside" and len(self.panels) > 1


@dataclass(frozen=True)
class Scene:
    """A picture: its words, its table and what is drawn."""

    kind: str
    """its name, unique on a page"""
    text: PictureText
    body: Rows | Panels
    legend: tuple[LegendItem, ...] | None = None
    """that of Matplotlib, if different"""
