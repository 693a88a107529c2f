"""Scenes drawn as SVG text with CSS classes, which a page colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heckmanfa.plots.scale import Scale, Tick, apart, spread
from heckmanfa.plots.scene import (
    Above,
    Axis,
    Band,
    Bar,
    Curve,
    Dots,
    Group,
    Interval,
    Mark,
    Note,
    Panel,
    Panels,
    Point,
    Row,
    Rows,
    Rule,
    Runs,
    Scene,
    Span,
)
from heckmanfa.plots.svg_shapes import FULL, WIDE, Drawing, label_cells, label_px, px
from heckmanfa.text.printable import cut

# Room below an axis, at the right, and between panels; heights of a heading and of a row below.
_BOTTOM, _RIGHT, _BETWEEN, _HEAD, _BELOW = 42.0, 14.0, 12.0, 26.0, 16.0
# The grid begins so much above the first row.
_LEAD = 6.0
_COARSE = 1000
"""Runs of cells beyond which they are rounded to half a px."""
_APART = 14.0
# Between a curve's end and its name, and from name to name.
_LEADER, _LINE = 16.0, 16.0
# Between panels beside one another.
_GUTTER = 20.0
_HATCH = 8.0


def render_svg(scene: Scene, width: int) -> str:
    """Draw a scene so many CSS px wide."""
    body, alt = scene.body, scene.text.alt
    if isinstance(body, Panels):
        return _PanelPicture(body, alt, width).svg()
    if width < FULL or not body.is_across:
        columns = [_RowPicture(body, width)]
    else:
        first, last = body.halves()
        # Both columns leave the same room for names and values.
        columns = [_RowPicture(first, WIDE, body), _RowPicture(last, WIDE, body, width - WIDE)]
    drawing = Drawing(width, max(column.height for column in columns), alt)
    for column in columns:
        column.draw(drawing)
    return drawing.svg()


def _ticks(axis: Axis, scale: Scale, width: int) -> list[Tick]:
    """Return the numbers to write along an axis."""
    if axis.ticks:
        return [Tick(value, scale(value), words) for value, words in axis.ticks]
    most = axis.most[0 if width >= WIDE else 1]
    if axis.numbers == "percent":
        hundred = Scale(100.0 * scale.low, 100.0 * scale.high, scale.start, scale.end)
        return list(hundred.ticks(most, unit="%"))
    ticks = scale.ticks(most, signed=axis.numbers == "signed")
    if axis.numbers == "count":
        return [
            replace(tick, text=f"{tick.value:,.0f}") for tick in ticks if tick.value.is_integer()
        ]
    return [tick if tick.value else replace(tick, text=axis.zero or tick.text) for tick in ticks]


def _title(axis: Axis, width: int) -> str:
    return axis.title if width >= WIDE else axis.narrow or axis.title


class _Painter:
    """Draws marks on two scales."""

    def __init__(
        self, drawing: Drawing, x: Scale, *, inset: float = 0.0, coarse: bool = False
    ) -> None:
        self.drawing, self.x = drawing, x
        self._inset, self._coarse = inset, coarse

    def draw(self, mark: Mark, y: Scale) -> None:
        """Draw one mark; in a row, y has its middle at 0."""
        drawing, x = self.drawing, self.x
        match mark:
            case Point():
                self._point(mark, y)
            case Dots(x=xs, y=ys):
                places = [(x(a), y(b)) for a, b in zip(xs, ys, strict=True)]
                drawing.dots(places, mark.shape, "small " * mark.small + mark.color)
            case Interval(upright=True):
                at = x(mark.at)
                drawing.line(at, y(mark.low), at, y(mark.high), f"interval {mark.color}")
            case Interval():
                drawing.interval(x, y(mark.at), mark.low, mark.high, mark.color)
            case Bar():
                self._bar(mark, y)
            case Runs():
                drawing.path(self._strokes(mark.spans, y(0.0)), f"cell {mark.color}")
            case Curve():
                kind = "curve" if mark.line == "solid" else f"curve {mark.line}"
                along = [x(value) for value in mark.x], [y(value) for value in mark.y]
                drawing.curve(*along, f"{kind} {mark.color}")
            case Band():
                lows, highs = [y(value) for value in mark.low], [y(value) for value in mark.high]
                drawing.ribbon([x(value) for value in mark.x], lows, highs, f"band {mark.color}")
            case Rule():
                self.rule(mark, y)
            case Note():
                self._note(mark, y)

    def rule(self, rule: Rule, y: Scale) -> None:
        """Draw a line across, or from top to bottom."""
        x, drawing, kind = self.x, self.drawing, f"{rule.kind} {rule.color}".rstrip()
        if rule.y is not None:
            drawing.line(x.start, y(rule.y), x.end, y(rule.y), kind)
        elif rule.x is not None and x.low <= rule.x <= x.high:
            drawing.line(x(rule.x), y.end, x(rule.x), y.start, kind)

    def _point(self, point: Point, y: Scale) -> None:
        drawing, at = self.drawing, y(point.y)
        x, side = self.x.clipped(point.x)
        if side:
            if point.arrow:
                drawing.arrow(x, at, side, point.color)
        else:
            drawing.point(x, at, point.shape, point.color)

    def _bar(self, bar: Bar, y: Scale) -> None:
        drawing = self.drawing
        left, right = (self.x(end) for end in bar.x)
        top, bottom = sorted(y(end) for end in bar.y)
        if bar.fill == "slanted":
            kind = f"hatch {bar.color}"
            drawing.hatch(left, top, right - left, bottom - top, kind, "\\")
        elif bottom > top:
            box = left + self._inset, top, right - left - 2 * self._inset, bottom - top
            if bar.fill == "hatch":
                drawing.hatch(*box, f"hatch {bar.color}")
                drawing.rect(*box, f"hatch {bar.color}")
            else:
                drawing.rect(*box, f"bar {bar.color}" if bar.color != "absent" else "absent")

    def _strokes(self, spans: Sequence[Span], y: float) -> str:
        """Write the cells of a row as strokes that are as thick as a cell is high.

        Neighbours meet whatever they are rounded to.
        """
        parts: list[str] = []
        here = 0
        for span in spans:
            start, end = (self.tenths(edge) for edge in span)
            if start == end:
                continue
            move = f"m{_tenths(start - here)} 0" if parts else f"M{_tenths(start)} {y:g}"
            parts.append(f"{move}h{_tenths(end - start)}")
            here = end
        return "".join(parts)

    def tenths(self, value: float) -> int:
        """Return where the edge of a cell is, in tenths of a px."""
        step = 5 if self._coarse else 1
        return step * round(10.0 * self.x(value) / step)

    def _note(self, note: Note, y: Scale) -> None:
        """Write words on the side of a point, left or right of it, that its curve leaves free."""
        at, height = self.x(note.x), y(note.y)
        left = at + 8 + 7.0 * len(note.words) > self.x.end
        below = note.rises != left and height + 18 < y.start
        place = height + 17 if below else height - 10
        beside = at - 8 if left else at + 8
        self.drawing.text(beside, place, note.words, "tick halo", "end" if left else "start")


def _tenths(value: int) -> str:
    whole, rest = divmod(value, 10)
    return f"{whole}.{rest}" if rest else str(whole)


class _RowPicture:
    """Rows with names at the left, over one axis."""

    def __init__(
        self, body: Rows, width: int, like: Rows | None = None, start: float = 0.0
    ) -> None:
        self._body, self._width = body, width
        self._edges = start, start + width
        measured = (like or body).rows
        most = label_cells(width, words=body.is_labelled)
        if body.cells is not None:
            most = body.cells[width < WIDE]
        below = most if body.words is None else body.words[width < WIDE]
        self._labels = [row.lines(most, below) for row in body.rows]
        self._places = body.places(body.height, _HEAD, body.room)
        self._tops = self._places.tops
        self._bottom = self._places.end + (body.height if body.rest else 0.0)
        names = (line for row in measured for line in row.lines(most, below))
        longest = max(map(label_px, names), default=0.0)
        left = max(longest + 14.0, 60.0) if body.labels is None else body.labels[width < WIDE]
        self._value = max((len(row.value) for row in measured), default=0)
        right = 8.0 * self._value + 18.0 if self._value else _RIGHT
        self._x = Scale(body.x.low, body.x.high, start + left, start + width - right)
        self.height = self._bottom + _BOTTOM

    def draw(self, drawing: Drawing) -> None:
        """Draw the rows from the left edge of their column to its right one."""
        body, x, start = self._body, self._x, self._edges[0]
        runs = sum(len(m.spans) for row in body.rows for m in row.marks if isinstance(m, Runs))
        self._painter = _Painter(drawing, x, coarse=runs > _COARSE)
        ticks = _ticks(body.x, x, self._width)
        heads, blocks = self._places.heads, self._places.blocks or [(self._bottom, self._bottom)]
        for top, bottom in blocks:
            first = top if heads else top - _LEAD
            for tick in ticks:
                if body.x.grid and tick.value:
                    drawing.line(tick.at, first, tick.at, bottom, "line")
            for rule in body.rules:
                self._painter.rule(rule, Scale(0.0, 1.0, bottom, first))
        for words, top in heads:
            drawing.text(start, top + 18.0, words, "head")
        if body.rest:
            drawing.text(start, self._bottom - 8.0, body.rest, "sub")
        for place, row in enumerate(body.rows):
            self._row(place, row)
        if body.hatched is not None and body.rows:
            start, end = self._painter.tenths(body.hatched[0]) / 10.0, x(body.hatched[1])
            for top, bottom in blocks:
                drawing.hatch(start, top + 2.0, end - start, bottom - top - 4.0, step=_HATCH)
        self._columns()
        end = blocks[-1][1]
        for tick in ticks if body.x.strokes else ():
            drawing.line(tick.at, end, tick.at, end + 4.0, "axis")
        drawing.x_axis(x, self._bottom, ticks, _title(body.x, self._width), self._edges)

    def _row(self, place: int, row: Row) -> None:
        drawing, height, top = self._painter.drawing, self._body.height, self._tops[place]
        first_px, last_px = self._edges
        middle, lines = top + height / 2, self._labels[place]
        first, left = middle + 12.5 - 8.0 * len(lines), self._x.start - 12.0
        y = Scale(-0.5, 0.5, top, top + height)
        with drawing.group("row", data_f=row.feature, label=row.tip):
            drawing.rect(first_px, top, last_px - first_px, height, "hit")
            for number, words in enumerate(lines):
                kind = "sub" if number else "lab"
                drawing.text(left, first + 16.0 * number, words, kind, "end")
            for mark in row.marks:
                self._painter.draw(mark, y)
            if self._value == 1:
                drawing.text(last_px - 10.0, middle + 4.5, row.value, "value", "middle")
            elif row.value:
                drawing.text(last_px, middle + 4.5, row.value, "value", "end")

    def _columns(self) -> None:
        """Draw what answers to a pointer over a column, and the numbers of the first ones."""
        drawing, written = self._painter.drawing, -math.inf
        for column in self._body.columns if self._tops else ():
            top, bottom = self._tops[0], self._tops[-1] + self._body.height
            start, end = (self._painter.tenths(edge) / 10.0 for edge in column.x)
            with drawing.group("columns", title=column.tip):
                drawing.rect(start, top - 1.0, end - start, bottom - top + 2.0, "column")
                middle = (start + end) / 2
                if column.number and middle - written >= _APART:
                    drawing.text(middle, top - 30.0, column.number, "tick", "middle")
                    written = middle


@dataclass(frozen=True)
class _Plot:
    """Where a panel is: its scales, its top, and the px from its left edge to its right one."""

    x: Scale
    y: Scale
    top: float
    edges: Span

    @property
    def width(self) -> int:
        return int(self.edges[1] - self.edges[0])


class _PanelPicture:
    """Panels over one another with one x axis, or beside one another with one each."""

    def __init__(self, body: Panels, alt: str, width: int) -> None:
        self._body = body
        n_columns = len(body.panels) if body.is_across and width >= FULL else 1
        names = [end.name for panel in body.panels for end in panel.ends]
        self._cells = 2 * label_cells(width)
        longest = max((label_px(cut(name, self._cells)) for name in names), default=0.0)
        right = _RIGHT + _LEADER + longest if names else _RIGHT
        column = (width - _GUTTER * (n_columns - 1)) / n_columns
        self._plots, y = [], 0.0
        for place, panel in enumerate(body.panels):
            left = (place % n_columns) * (column + _GUTTER)
            top = y + panel.room
            bottom = top + panel.height
            x = Scale(body.x.low, body.x.high, left + body.left, left + column - right)
            rows = Scale(panel.y.low, panel.y.high, bottom, top)
            self._plots.append(_Plot(x, rows, top, (left, left + column)))
            y += (panel.room + panel.height + _BETWEEN) * (n_columns == 1)
        self._bottom = max(plot.y.start for plot in self._plots)
        # Those below the last one of their column have an axis.
        self._with_axis = self._plots[-n_columns:]
        # Names are beside the intervals below if all have room there, otherwise above them.
        self._ends = [_ends(row, self._plots[0].x) for row in body.below]
        self._beside = all(
            right + 8 + 7.0 * len(row.name) <= width
            for row, (_, right) in zip(body.below, self._ends, strict=True)
        )
        self._step = _BELOW if self._beside else 2 * _BELOW
        height = self._bottom + _BOTTOM + (2 + self._step * len(body.below) if body.below else 0)
        self._drawing = Drawing(width, height, alt)

    def svg(self) -> str:
        """Draw, and return the text of the picture."""
        body, drawing = self._body, self._drawing
        for plot, panel in zip(self._plots, body.panels, strict=True):
            x, y = plot.x, plot.y
            for low, high in panel.shaded:
                drawing.rect(x(low), plot.top, x(high) - x(low), panel.height, "absent")
            if panel.tip:
                scales = {"x": _ends_of(x), "y": _ends_of(y)} if panel.feature else {}
                with drawing.group("row", panel.feature, panel.tip, **scales):
                    left, right = plot.edges
                    top = plot.top - panel.room
                    drawing.rect(left, top, right - left, y.start - top, "hit")
                    self._panel(panel, plot)
            else:
                self._panel(panel, plot)
            for tick in _ticks(body.x, x, plot.width) if body.x.grid else ():
                drawing.line(tick.at, plot.top, tick.at, y.start, "line")
        for plot in self._with_axis:
            ticks = _ticks(body.x, plot.x, plot.width)
            drawing.x_axis(plot.x, self._bottom, ticks, _title(body.x, plot.width), plot.edges)
        for place, row in enumerate(body.below):
            self._below(place, row)
        return drawing.svg()

    def _panel(self, panel: Panel, plot: _Plot) -> None:
        drawing, x, y, top = self._drawing, plot.x, plot.y, plot.top
        painter = _Painter(drawing, x, inset=0.5)
        if panel.title:
            room = int(plot.edges[1] - x.start) // 9
            drawing.text(x.start, top - 8, cut(panel.title, room), "lab")
        for tick in _ticks(panel.y, y, plot.width):
            drawing.line(x.start, tick.at, x.end, tick.at, "line")
            drawing.text(x.start - 6, tick.at + 4, tick.text, "tick", "end")
        if panel.y.title:
            drawing.text(plot.edges[0] + 2, top - panel.room + 14, panel.y.title, "title")
        for mark in panel.marks:
            if isinstance(mark, Group):
                left, right = (x(end) for end in mark.x)
                with drawing.group("row", None, mark.tip):
                    drawing.rect(left, top, right - left, panel.height, "hit")
                    for inner in mark.marks:
                        painter.draw(inner, y)
            else:
                painter.draw(mark, y)
        self._around(panel, plot)

    def _around(self, panel: Panel, plot: _Plot) -> None:
        """Write the words in the corners of a panel and above it, and the axis on top."""
        drawing, x, top = self._drawing, plot.x, plot.top
        if panel.corners is not None:
            drawing.text(x.start + 6, top + 14, panel.corners[0], "tick halo")
            bottom = top + panel.height - 6
            drawing.text(x.end - 6, bottom, panel.corners[1], "tick halo", "end")
        if panel.top_title:
            drawing.text(x.start, 13, panel.top_title, "tick")
        for at, words in panel.top:
            drawing.text(x(at), 27, words, "tick", "middle")
            drawing.line(x(at), 31, x(at), 35, "axis")
        self._above(panel.above, x)
        self._at_ends(panel, plot)

    def _at_ends(self, panel: Panel, plot: _Plot) -> None:
        """Write the names of curves at their right, moved up or down where two would overlap."""
        drawing, x, y, bottom = self._drawing, plot.x, plot.y, plot.y.start
        # From the bottom up, since of two at the same height the first stays the higher.
        heights = [bottom - y(end.y) for end in panel.ends]
        places = spread(heights, _LINE, 0.0, panel.height) if heights else []
        for end, height, place in zip(panel.ends, heights, places, strict=True):
            drawing.line(x.end, bottom - height, x.end + _LEADER, bottom - place, end.color)
            words = cut(end.name, self._cells)
            drawing.text(x.end + _LEADER + 4, bottom - place + 4.5, words, "lab")

    def _above(self, notes: Sequence[Above], x: Scale) -> None:
        """Write words above the bars, moved where two would overlap."""
        drawing = self._drawing
        words = []
        for note in notes:
            name = cut(note.name, label_cells(drawing.width)) if note.name else ""
            words.append([f"{note.lines[0]} {name}".rstrip(), *note.lines[1:]])
        halves = [3.6 * max(map(len, lines)) for lines in words]
        places = [x(note.x) for note in notes]
        if len(notes) == 1:
            places = [min(max(places[0], x.start + halves[0]), x.end - halves[0])]
        elif notes:
            (a, b), (half_a, half_b) = places, halves
            places = [*apart(a, b, half_a, half_b, (x.start, float(drawing.width)))]
        for at, lines in zip(places, words, strict=True):
            for number, line in enumerate(lines):
                drawing.text(at, 14 + 16 * number, line, "tick", "middle")

    def _below(self, place: int, row: Row) -> None:
        """Draw a row below the axis, with its name beside its interval or above it."""
        drawing, x, (left, right) = self._drawing, self._plots[0].x, self._ends[place]
        top = self._bottom + _BOTTOM + 2 + self._step * place
        y = top + self._step - _BELOW / 2
        with drawing.group("row", row.feature, row.tip):
            drawing.hit(top, self._step)
            for mark in row.marks:
                if isinstance(mark, Interval):
                    drawing.interval(x, y, mark.low, mark.high, mark.color)
                elif isinstance(mark, Point) and x.low <= mark.x <= x.high:
                    drawing.circle(x(mark.x), y, f"mark {mark.color}", 3.5)
            if self._beside:
                drawing.text(right + 8, y + 4, row.name, "tick")
            else:
                drawing.text(min(left, x.end - 7.0 * len(row.name)), y - 9, row.name, "tick")


def _ends_of(scale: Scale) -> str:
    """Write the numbers at the ends of a scale and where they are, for a script to place marks."""
    return f"{scale.low:.6g} {scale.high:.6g} {px(scale.start)} {px(scale.end)}"


def _ends(row: Row, x: Scale) -> Span:
    """Return where the intervals of a row begin and end, or the axis without any."""
    intervals = [mark for mark in row.marks if isinstance(mark, Interval)]
    low = min((mark.low for mark in intervals), default=x.low)
    high = max((mark.high for mark in intervals), default=x.high)
    return x.clipped(low)[0], x.clipped(high)[0]
