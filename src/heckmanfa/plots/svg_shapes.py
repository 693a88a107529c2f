"""Pictures written as SVG text: shapes with CSS classes, drawn 1:1 in CSS px.

Colours and fonts come from the page's style sheet, so a dark page and a printed one need no second
drawing. Nothing here has a colour, a style attribute or an id. A picture is drawn twice, `WIDE` and
`NARROW`, and the page shows one of them.

Classes, which the page styles:

- colours: this, ols, all (series), pos, neg (signs), ok, caution, problem, muted, ink, absent,
  pale (between muted and paper);
- lines: line (grid, 1 px), zero (ink, 1.25 px), cut (1 px, dashed), interval (2.25 px, stroke in
  the colour of its series), arrow (the end of a clipped interval), axis (ticks below an axis),
  curve (2.5 px; also dashed, dashdot, dotted, and thin, 1 px), outline (2 px of ink around a
  column, without fill), frame (the same in 1 px);
- areas: bar, band (16% of its colour), wash (13% of the accent, behind a row), hatch (thin muted
  lines), hit (transparent; all of a row, for pointer and focus);
- marks: mark (1.25 px edge of paper), hollow (paper inside, edge of 2 px in its colour), dots
  (round strokes of 5 px; of 2.5 px if they are small, and crosses of 1 px);
- text: lab (names, 13.5 px semibold), sub (below a name, 12.5 px muted), tick (12.5 px muted),
  title (of an axis, 12.5 px muted), head (of a group of rows, 13 px semibold muted), value
  (numbers at the right, 12.5 px), halo (an edge of paper around text over other shapes);
- groups: row (has a hit area, which is washed on hover and focus); columns (a column of
  assignments, whose rectangle, column, is outlined on hover);
- cell (a stroke of 20 px, as thick as a cell of an assignment is high).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Literal

from heckmanfa.plots.scale import Scale, Tick
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cells, printable
from heckmanfa.text.table import LegendItem

WIDE, NARROW = 540, 358
"""Widths of the two drawings of a picture, in CSS px."""
FULL = 1112
"""Width of a third one, of panels beside one another across the page."""

Anchor = Literal["start", "middle", "end"]
Lines = Literal["/", "\\"]

_MARK = 5.0
# Where marks with corners begin, from their middle, and the way around them, in px.
_POLYGONS = {
    "diamond": ((0, -6), (6, 6), (-6, 6), (-6, -6)),
    "triangle": ((0, -6), (6, 10), (-12, 0)),
    "right": ((6, 0), (-10, -6), (0, 12)),
    "left": ((-6, 0), (10, -6), (0, 12)),
    "cross": (
        *((0, -2), (3, -3), (3, 3), (-3, 3), (3, 3), (-3, 3)),
        *((-3, -3), (-3, 3), (-3, -3), (3, -3), (-3, -3), (3, -3)),
    ),
}
_ARROW = 4.5
_HATCH = 6.0
# The size of names in px; letters that are much thinner or broader than most.
_LABEL = 13.5
_THIN, _BROAD = " '/\\|,.:;-!()[]ijlftrIJ", "mwMW%@…"
# Beyond this an SVG renderer may give up, and nothing is in view.
_FAR = 1e5
# What XML cannot hold, even as a reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escape(text: object) -> str:
    """Make text safe inside an XML or HTML element, or an attribute in double quotes."""
    return _escaped(printable(str(text)))


@cache
def _css(cls: str) -> str:
    """Make CSS classes safe inside an attribute; there are a few dozen of them."""
    return escape(cls)


def px(value: float) -> str:
    """Write a coordinate with one decimal."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def label_px(text: str) -> float:
    """Estimate how wide a name is in px, in a semibold font that is rather wide."""
    return _LABEL * sum(_ems(character) * cells(character) for character in text)


def _ems(character: str) -> float:
    """Return the width of a letter in widths of an m, by cell."""
    if character in _THIN:
        return 0.42
    if character in _BROAD:
        return 1.05
    return 0.8 if character.isupper() else 0.72


def label_cells(width: int, *, words: bool = False) -> int:
    """Return how many cells of a name a drawing of this width has room for.

    Labels are ``words``, which say less than a name if they are cut, and get more room.
    """
    if words:
        return 24 if width >= WIDE else 16
    return 14 if width >= WIDE else 10


class Drawing:
    """An SVG picture that grows shape by shape; shapes without a finite place are left out."""

    def __init__(self, width: int, height: float, label: str) -> None:
        self.width = width
        self.height = math.ceil(height)
        self._label = label
        self._parts: list[str] = []

    def svg(self) -> str:
        """Return the picture as an svg element."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" role="group" '
            f'aria-label="{escape(self._label)}">{"".join(self._parts)}</svg>'
        )

    # Shapes. ----------------------------------------------------------------------------------

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str) -> None:
        """Draw a straight line."""
        self._add("line", cls, x1=x1, y1=y1, x2=x2, y2=y2)

    def rect(self, x: float, y: float, width: float, height: float, cls: str) -> None:
        """Draw a rectangle; one of negative width begins at its other end."""
        x, width = (x, width) if width >= 0 else (x + width, -width)
        y, height = (y, height) if height >= 0 else (y + height, -height)
        self._add("rect", cls, x=x, y=y, width=width, height=height)

    def circle(self, x: float, y: float, cls: str, r: float = _MARK) -> None:
        """Draw a circle."""
        self._add("circle", cls, cx=x, cy=y, r=r)

    def polygon(self, x: float, y: float, shape: str, cls: str) -> None:
        """Draw a mark with corners, by the name of its shape."""
        if _is_near(x, y):
            (right, down), *steps = _POLYGONS[shape]
            sides = "".join(f"l{px(dx)} {px(dy)}" for dx, dy in steps)
            self.path(f"M{px(x + right)} {px(y + down)}{sides}z", cls)

    def point(self, x: float, y: float, shape: str, color: str) -> None:
        """Draw a mark by the name of its shape."""
        if shape == "stroke":
            self.line(x, y - 7, x, y + 7, f"interval {color}")
        elif shape == "hollow":
            self.circle(x, y, f"hollow {color}")
        elif shape in _POLYGONS:
            self.polygon(x, y, shape, f"mark {color}")
        elif shape == "square":
            r = _MARK - 0.5
            self.rect(x - r, y - r, 2 * r, 2 * r, f"mark {color}")
        else:
            self.circle(x, y, f"mark {color}")

    def dots(self, places: Sequence[tuple[float, ...]], shape: str, cls: str) -> None:
        """Draw small marks as strokes of one path: discs, or crosses."""
        stroke = "l4 4m-4 0l4-4" if shape == "cross" else "h0"
        shift = 2.0 if shape == "cross" else 0.0
        near = [(x - shift, y - shift) for x, y in places if _is_near(x, y)]
        self.path("".join(f"M{px(x)} {px(y)}{stroke}" for x, y in near), f"dots {shape} {cls}")

    def path(self, d: str, cls: str) -> None:
        """Draw a path that is written already."""
        if d:
            self._parts.append(f'<path class="{_css(cls)}" d="{_escaped(d)}"/>')

    def curve(self, xs: Sequence[float], ys: Sequence[float], cls: str) -> None:
        """Draw straight pieces from point to point, with gaps where a point has no place."""
        pieces = ["M" + _points(piece) for piece in _whole(xs, ys) if len(piece) > 1]
        self.path("".join(pieces), cls)

    def ribbon(
        self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], cls: str
    ) -> None:
        """Fill between two curves, with gaps where one of them has no place."""
        pieces = []
        for piece in _whole(xs, lows, highs):
            if len(piece) > 1:
                there = [(x, low) for x, low, _ in piece]
                back = [(x, high) for x, _, high in reversed(piece)]
                pieces.append(f"M{_points([*there, *back])}z")
        self.path("".join(pieces), cls)

    def hatch(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        cls: str = "hatch",
        lines: Lines = "/",
        step: float = _HATCH,
    ) -> None:
        """Fill a rectangle with thin lines.

        The lines of neighbours meet: they are those of one lattice over the whole picture.
        """
        if not _is_near(x, y, x + width, y + height) or width <= 0 or height <= 0:
            return
        self.path("".join(_hatching(x, y, x + width, y + height, lines, step)), cls)

    def text(self, x: float, y: float, words: object, cls: str, anchor: Anchor = "start") -> None:
        """Write a line of text; y is its baseline."""
        if _is_near(x, y):
            side = "" if anchor == "start" else f' text-anchor="{anchor}"'
            self._parts.append(
                f'<text class="{_css(cls)}" x="{px(x)}" y="{px(y)}"{side}>{escape(words)}</text>'
            )

    # Groups. ----------------------------------------------------------------------------------

    @contextmanager
    def group(
        self,
        cls: str,
        data_f: str | None = None,
        label: str | None = None,
        title: str | None = None,
        **data: str,
    ) -> Iterator[None]:
        """Put what is drawn inside into a group.

        Parameters
        ----------
        cls : str
            CSS classes.
        data_f : str, optional
            The name of a feature: everything about it on the page lights up together.
        label : str, optional
            The tooltip's words, a line each. The group is then one picture to a screen reader.
        title : str, optional
            The native tooltip; the label by default, in drawings wider than a phone.
        **data : str
            What a script reads: ``x="0 1"`` is written as ``data-x="0 1"``.
        """
        attributes = f' class="{_css(cls)}"'
        if data_f is not None:
            attributes += f' data-f="{escape(Name(data_f).key)}"'
        if label is not None:
            spoken = "; ".join(label.split("\n"))
            attributes += f' role="img" aria-label="{escape(spoken)}"'
        attributes += "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
        # A phone has no pointer to hover with: its tooltips are shown by a script, from the label.
        if title is None and self.width > NARROW:
            title = label
        self._parts.append(f"<g{attributes}>")
        if title:
            self._parts.append(f"<title>{escape(title)}</title>")
        yield
        self._parts.append("</g>")

    def hit(self, y: float, height: float) -> None:
        """Make a row answer to pointer and focus over the whole width."""
        self.rect(0, y, self.width, height, "hit")

    # What many pictures have. -----------------------------------------------------------------

    def interval(self, scale: Scale, y: float, low: float, high: float, cls: str) -> None:
        """Draw an interval along x; an end beyond the scale becomes an arrow."""
        if math.isnan(low) or math.isnan(high):
            return
        (left, before), (right, after) = (scale.clipped(end) for end in sorted((low, high)))
        self.line(left, y, right, y, f"interval {cls}")
        if before < 0:
            self.arrow(left, y, -1, cls)
        if after > 0:
            self.arrow(right, y, 1, cls)

    def arrow(self, x: float, y: float, side: int, cls: str) -> None:
        """Draw the head of an arrow that points left (-1) or right (1)."""
        if _is_near(x, y):
            away, half = side * _ARROW, px(_ARROW)
            start = f"M{px(x - away)} {px(y - _ARROW)}"
            self.path(f"{start}l{px(away)} {half}l{px(-away)} {half}", f"interval arrow {cls}")

    def x_axis(
        self,
        scale: Scale,
        bottom: float,
        ticks: Sequence[Tick],
        title: str,
        edges: tuple[float, float] | None = None,
    ) -> None:
        """Write the numbers below an axis, and its title below them.

        ``edges`` are the px that they have room between; all of the picture by default.
        """
        left, right = edges or (0.0, float(self.width))
        for tick in ticks:
            half = 3.8 * len(tick.text)
            self.text(
                _between(tick.at, half, left, right), bottom + 17, tick.text, "tick", "middle"
            )
        half = min(3.5 * len(title), (right - left) / 2)
        middle = _between((scale.start + scale.end) / 2, half, left, right)
        self.text(middle, bottom + 35, title, "title", "middle")

    def _add(self, element: str, cls: str, **places: float) -> None:
        if _is_near(*places.values()):
            written = "".join(f' {name}="{px(value)}"' for name, value in places.items())
            self._parts.append(f'<{element} class="{_css(cls)}"{written}/>')


def _escaped(value: object) -> str:
    return _NOT_XML.sub("\ufffd", str(value)).translate(_ESCAPES)


_AREAS = ("bar", "band", "hatch", "slanted", "framed")
_LINES = ("line", "thin", "dotted", "cut")
_LEGEND_HEIGHT = 14


def legend_mark(item: LegendItem) -> str:
    """Draw the mark of a legend, which a screen reader passes over."""
    shape = item.mark.removeprefix("-")
    on_line = shape != item.mark
    width = 22 if shape in _AREAS else 26 if on_line or shape in _LINES else 14
    drawn = Drawing(width, _LEGEND_HEIGHT, "")
    x, y = width / 2, _LEGEND_HEIGHT / 2
    if on_line:
        drawn.line(0, y, width, y, f"interval {item.cls}")
    if shape == "cut":
        drawn.line(0, y, width, y, f"cut {item.cls}")
    elif shape in _LINES:
        kind = "curve" if shape == "line" else f"curve {shape}"
        drawn.line(0, y, width, y, f"{kind} {item.cls}")
    elif shape in ("dot", "dot-cross"):
        drawn.dots([(x, y)], shape.removeprefix("dot-"), item.cls)
    elif shape == "hatch":
        drawn.hatch(0, 1, width, 12, f"hatch {item.cls}".strip())
    elif shape == "slanted":
        drawn.hatch(0, 1, width, 12, f"hatch {item.cls}".strip(), "\\")
    elif shape == "framed":
        drawn.hatch(0.5, 1.5, width - 1, 11, f"hatch {item.cls}".strip())
        drawn.rect(0.5, 1.5, width - 1, 11, "frame")
    elif shape in _AREAS:
        drawn.rect(0, 2, width, 10, f"{shape} {item.cls}")
    else:
        drawn.point(x, y, shape, item.cls)
    hidden = f'role="group" aria-label="{escape("")}"'
    return drawn.svg().replace(hidden, 'aria-hidden="true" class="key"', 1)


def _between(middle: float, half: float, left: float, right: float) -> float:
    """Keep words of this half width between two edges."""
    return min(max(middle, left + half), right - half)


def _is_near(*places: float) -> bool:
    return all(abs(place) < _FAR for place in places)


def _whole(*values: Sequence[float]) -> Iterator[list[tuple[float, ...]]]:
    """Split points at those without a finite place."""
    piece: list[tuple[float, ...]] = []
    for point in zip(*values, strict=True):
        if _is_near(*point):
            piece.append(point)
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _points(points: Sequence[tuple[float, ...]]) -> str:
    return "L".join(f"{px(x)} {px(y)}" for x, y in points)


def _hatching(
    x1: float, y1: float, x2: float, y2: float, lines: Lines, step: float
) -> Iterator[str]:
    """Write the lines of a lattice that cross a rectangle."""
    # The lines are x + y = k * step or, from the upper left, x - y = k * step.
    sign = 1.0 if lines == "/" else -1.0
    ends = (x1 + sign * y1, x2 + sign * y2, x1 + sign * y2, x2 + sign * y1)
    for k in range(math.ceil(min(ends) / step), math.floor(max(ends) / step) + 1):
        # Along the line, x runs between the sides and where y meets top and bottom.
        level = k * step
        at_ends = sorted((level - sign * y1, level - sign * y2))
        left, right = max(x1, at_ends[0]), min(x2, at_ends[1])
        if right - left > 0.05:
            first, last = sign * (level - left), sign * (level - right)
            yield f"M{px(left)} {px(first)}L{px(right)} {px(last)}"
