"""Scenes drawn with Matplotlib."""

from __future__ import annotations

import math
from typing import Any

from heckmanfa.plots.canvas import Canvas, canvas, label_of, pyplot
from heckmanfa.plots.palette import LIGHT, PALE
from heckmanfa.plots.scale import spread
from heckmanfa.plots.scene import (
    Axis,
    Band,
    Bar,
    Curve,
    Dots,
    End,
    Group,
    Interval,
    Mark,
    Panel,
    Point,
    Rows,
    Rule,
    Runs,
    Scene,
    Span,
)
from heckmanfa.text.printable import cut
from heckmanfa.text.table import LegendItem

# Characters of a name.
_NAME = 24
_CELL = 0.82
_MARKERS = {
    "circle": "o",
    "hollow": "o",
    "diamond": "D",
    "square": "s",
    "triangle": "^",
    "left": "<",
    "right": ">",
    "cross": "X",
    "stroke": "|",
}
# Of shapes that would look smaller than a disc.
_SIZES = {"cross": 1.4, "left": 1.2, "right": 1.2}
_LINES: dict[str, dict[str, Any]] = {
    "solid": {},
    "dashed": {"linestyle": "--"},
    "dashdot": {"linestyle": "-."},
    "dotted": {"linestyle": ":"},
    "thin": {"linewidth": 0.6},
}
# More dots than these are saved as pixels in a vector file.
_MANY = 2000
# Where the names of curves begin, in widths of the panel from its left; their lines, in heights.
_NAMES_AT, _SPACE = 1.07, 1.05
_BAND: dict[str, Any] = {"alpha": 0.16, "linewidth": 0}
_RULES = {
    "zero": {"color": LIGHT["ink"], "linewidth": 0.8},
    "cut": {"color": LIGHT["muted"], "linewidth": 0.7, "linestyle": "--"},
}
_HATCHES = {"hatch": "////", "framed": "////", "slanted": "\\\\\\"}
_FORMATS = {
    "percent": lambda value, _: f"{100 * value:g}%",
    "absolute": lambda value, _: f"{abs(value):g}",
}


def draw_scene(scene: Scene, ax: Any = None) -> Any:
    """Draw a scene on the Axes given, or on those of a new figure, and return them.

    A scene of several panels returns an array of Axes.
    """
    body = scene.body
    if isinstance(body, Rows):
        with canvas(ax, body.inches) as drawn:
            _draw_rows(drawn, drawn.axes[0], body)
            _legend(drawn, scene)
        return drawn.axes[0]
    beside = body.axes == "beside"
    with canvas(ax, body.inches, len(body.panels), beside=beside) as drawn:
        for place, panel in enumerate(body.panels):
            _draw_panel(drawn.axes[place], body.x, panel)
            if body.axes == "stacked" and panel is not body.panels[-1]:
                drawn.axes[place].set_xlabel("")
        _legend(drawn, scene, fontsize="small" if beside else None)
        for place, panel in enumerate(body.panels):
            _name_ends(drawn.axes[place], panel.ends)
    return drawn.axes[0] if body.axes == "one" else drawn.axes


def _color(name: str) -> str:
    return PALE if name == "pale" else LIGHT.get(name, LIGHT["muted"])


def _set_axis(axis: Any, scale: Axis) -> None:
    title = scale.printed or scale.title
    axis.set_label_text("\n".join(map(label_of, title.split("\n"))))
    if scale.numbers in _FORMATS:
        axis.set_major_formatter(_FORMATS[scale.numbers])
    if scale.numbers == "count":
        axis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _draw_panel(ax: Any, x: Axis, panel: Panel) -> None:
    for low, high in panel.shaded:
        ax.axvspan(low, high, color=LIGHT["absent"], linewidth=0, zorder=0)
    for number, mark in enumerate(panel.marks):
        for inner in mark.marks if isinstance(mark, Group) else (mark,):
            _draw(ax, inner, x, 0.0, 1.0 + 0.001 * number)
    ax.set_xlim(x.low, x.high)
    ax.set_ylim(panel.y.low, panel.y.high)
    _set_axis(ax.xaxis, x)
    _set_axis(ax.yaxis, panel.y)
    if panel.title:
        ax.set_title(label_of(cut(panel.title, _NAME)))
    if panel.top:
        top = ax.secondary_xaxis("top")
        top.set_xticks(*map(list, zip(*panel.top, strict=True)))
        top.set_xlabel(panel.top_title)


def _draw_rows(drawn: Canvas, ax: Any, body: Rows) -> None:
    """Draw rows from top to bottom, with a free place for each heading."""
    ax.set_xlim(body.x.low, body.x.high)
    _set_axis(ax.xaxis, body.x)
    for rule in body.rules:
        _draw(ax, rule, body.x, 0.0, 1.0)
    layout = body.places(1.0, 1.0)
    places = layout.tops
    for row, place in zip(body.rows, places, strict=True):
        for mark in row.marks:
            _draw(ax, mark, body.x, place, 2.0)
        if row.value:
            beside = ax.get_yaxis_transform()
            ax.text(1.02, place, row.value, va="center", transform=beside)
    if body.hatched is not None:
        _hatch(ax, body.hatched, layout.blocks)
    ax.set_yticks(places, ["\n".join(map(label_of, row.lines(_NAME))) for row in body.rows])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(places, default=0.0) + 0.55, -0.55)
    for words, place in layout.heads:
        # Beside long names, only the whole width of a figure has room for a heading.
        x = drawn.at_left(ax) if drawn.is_new else ax.get_yaxis_transform()
        ax.text(
            *(0.01, place, words),
            va="center",
            color=LIGHT["muted"],
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            transform=x,
            in_layout=not drawn.is_new,
        )
    if body.rest:
        ax.set_title(body.rest, loc="left")


def _hatch(ax: Any, span: Span, blocks: list[Span]) -> None:
    """Hatch a part of the axis behind rows, but not behind headings."""
    for first, end in blocks:
        ax.bar(
            *(span[0], end - 1.0 - first + _CELL, span[1] - span[0], first - _CELL / 2),
            align="edge",
            facecolor="none",
            edgecolor=LIGHT["muted"],
            hatch=_HATCHES["hatch"],
            linewidth=0.0,
            zorder=1,
        )


def _draw(ax: Any, mark: Mark, x: Axis, place: float, order: float) -> None:
    """Draw a mark of a panel, or of the row at a place."""
    match mark:
        case Point():
            _draw_point(ax, mark, x, place)
        case Interval():
            _draw_interval(ax, mark, x, place, order)
        case Bar():
            _draw_bar(ax, mark, place, order)
        case Runs(spans=spans) if spans:
            runs = [(start, end - start) for start, end in spans]
            band = place - _CELL / 2, _CELL
            ax.broken_barh(runs, band, color=_color(mark.color), linewidth=0, zorder=order + 0.1)
        case Dots():
            many = {"rasterized": len(mark.x) > _MANY, "zorder": order}
            ax.plot(mark.x, mark.y, **_dots(mark.shape, mark.color, small=mark.small), **many)
        case Curve():
            style = {"color": _color(mark.color), **_LINES[mark.line]}
            ax.plot(mark.x, mark.y, zorder=order, **style)
        case Band():
            style = {"color": _color(mark.color), **_BAND}
            ax.fill_between(mark.x, mark.low, mark.high, zorder=order, **style)
        case Rule(x=at) if mark.kind in _RULES:
            line, where = (ax.axhline, mark.y) if at is None else (ax.axvline, at)
            line(where, zorder=order, **_rule(mark.kind, mark.color))


def _rule(kind: str, color: str) -> dict[str, Any]:
    own = {"color": _color(color), "linewidth": 1.0} if color else {}
    return _RULES[kind] | own


def _dots(shape: str, color: str, *, small: bool = False) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": "x" if shape == "cross" else "o",
        "color": _color(color),
        "markersize": 1.4 if small else 3.0,
        "markeredgewidth": 0.5,
    }


def _name_ends(ax: Any, ends: tuple[End, ...]) -> None:
    """Write a name at the end of each curve, moved up or down if two would overlap."""
    if not ends:
        return
    from matplotlib.collections import LineCollection

    beside = ax.get_yaxis_transform()
    texts = [
        ax.text(_NAMES_AT, end.y, label_of(end.name), transform=beside, va="center_baseline")
        for end in ends
    ]
    # The height of a line of text is known only after the layout.
    ax.figure.draw_without_rendering()
    height = max(text.get_window_extent().height for text in texts)
    low, high = ax.get_ylim()
    gap = _SPACE * height / ax.get_window_extent().height * (high - low)
    places = spread([end.y for end in ends], gap, low, high)
    for text, y in zip(texts, places, strict=True):
        text.set_y(y)
    pairs = zip(ends, places, strict=True)
    ax.add_collection(
        LineCollection(
            [[(1.0, end.y), (_NAMES_AT - 0.01, y)] for end, y in pairs],
            colors=[_color(end.color) for end in ends],
            linewidths=0.6,
            transform=beside,
            clip_on=False,
        ),
        autolim=False,
    )


def _draw_point(ax: Any, point: Point, x: Axis, place: float) -> None:
    at, color = point.y + place, _color(point.color)
    if not x.low <= point.x <= x.high:
        if point.arrow and not math.isnan(point.x):
            _draw_arrow(ax, x, point.x, at, color)
    elif point.shape == "stroke":
        ax.plot([point.x], [at], "|", color=color, markersize=9, zorder=4)
    else:
        ax.plot([point.x], [at], **_marker(point.shape, color), zorder=4, clip_on=False)


def _marker(shape: str, color: str) -> dict[str, Any]:
    hollow = shape == "hollow"
    return {
        "linestyle": "none",
        "marker": _MARKERS[shape],
        "color": color,
        "markersize": max(5.0, pyplot().rcParams["lines.markersize"]) * _SIZES.get(shape, 1.0),
        "markerfacecolor": "white" if hollow else color,
        "markeredgecolor": color if hollow else "white",
        "markeredgewidth": 1.2 if hollow else 0.6,
    }


def _draw_interval(ax: Any, mark: Interval, x: Axis, place: float, order: float) -> None:
    if math.isnan(mark.low) or math.isnan(mark.high):
        return
    color, at = _color(mark.color), mark.at + place
    style = {"color": color, "linewidth": 1.2, "solid_capstyle": "butt", "zorder": order}
    if mark.upright:
        ax.plot([mark.at, mark.at], [mark.low, mark.high], **style)
        return
    ax.plot([min(max(end, x.low), x.high) for end in (mark.low, mark.high)], [at, at], **style)
    for end in (mark.low, mark.high):
        if not x.low <= end <= x.high:
            _draw_arrow(ax, x, end, at, color)


def _draw_arrow(ax: Any, x: Axis, value: float, y: float, color: str) -> None:
    """Draw an arrow at the end of the axis that a number lies beyond."""
    edge, marker = (x.low, "<") if value < x.low else (x.high, ">")
    ax.plot([edge], [y], marker=marker, color=color, markersize=4, clip_on=False, zorder=3)


def _draw_bar(ax: Any, bar: Bar, place: float, order: float) -> None:
    (left, right), (low, high) = bar.x, bar.y
    box = left, high - low, right - left, low + place
    ax.bar(*box, align="edge", zorder=order, **_fill(bar.fill, bar.color))


def _fill(fill: str, name: str) -> dict[str, Any]:
    color = _color(name)
    if fill in _HATCHES:
        # Lines without a colour of their own have no frame.
        framed = bool(name) and fill != "slanted"
        ground, width = (LIGHT["paper"], 0.4) if framed else ("none", 0.0)
        hatch = {"hatch": _HATCHES[fill], "linewidth": width}
        return {"facecolor": ground, "edgecolor": color, **hatch}
    return {"facecolor": color, "edgecolor": LIGHT["paper"], "linewidth": 0.4}


def _legend(drawn: Canvas, scene: Scene, fontsize: str | None = None) -> None:
    items = scene.text.legend if scene.legend is None else scene.legend
    if items:
        drawn.legend({label_of(item.label): _key(item) for item in items}, fontsize=fontsize)


def _key(item: LegendItem) -> Any:
    """Return the mark of a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shape, color = item.mark.removeprefix("-"), _color(item.cls)
    if shape in ("line", *_LINES):
        return Line2D([], [], color=color, **_LINES.get(shape, {}))
    if shape == "cut":
        return Line2D([], [], **_rule(shape, item.cls))
    if shape in ("dot", "dot-cross"):
        return Line2D([], [], **_dots(shape.removeprefix("dot-"), item.cls))
    if shape == "band":
        return Patch(color=color, **_BAND)
    if shape not in _MARKERS:
        return Patch(**_fill(shape, item.cls))
    style = _marker(shape, color)
    if shape != item.mark:
        style["linestyle"] = "-"
    return Line2D([], [], **style)
