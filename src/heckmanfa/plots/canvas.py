"""Figures of Matplotlib for scenes: their sizes and style, their Axes, and legends."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.errors import InputError, InputTypeError, needs_extra
from heckmanfa.text.printable import shown

# A column of a journal that has two.
_COLUMN_INCHES = 3.4
# Panels beside one another, in a figure that is wider.
_PANELS_PER_ROW = 3
_PANEL_INCHES = (3.1, 2.6)
_POINTS = 8.0
# Left free at an edge of a figure.
_EDGE_POINTS = 4.0
_STYLE = {
    "font.size": _POINTS,
    "axes.titlesize": _POINTS,
    "axes.labelsize": _POINTS,
    "xtick.labelsize": _POINTS,
    "ytick.labelsize": _POINTS,
    "legend.fontsize": _POINTS,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.2,
    # A figure this small must still be readable on a screen.
    "figure.dpi": 200.0,
}


@dataclass(frozen=True, eq=False)
class Canvas:
    """Axes to draw on, and whether their figure is new."""

    axes: NDArray[Any]
    is_new: bool

    def at_left(self, panel: Any) -> Any:
        """Return coordinates that start at the left edge of the figure, and are data in y."""
        from matplotlib.transforms import blended_transform_factory

        return blended_transform_factory(panel.figure.transFigure, panel.transData)

    def legend(self, marks: dict[str, Any], fontsize: str | None = None) -> None:
        """Add a legend: under a new figure, or inside the first of the Axes given."""
        if not self.is_new:
            self.axes[0].legend(marks.values(), marks.keys(), fontsize="small")
            return
        figure = self.axes[0].figure
        # As many in a row as there is room for.
        for columns in range(len(marks), 0, -1):
            made = figure.legend(
                marks.values(),
                marks.keys(),
                loc="outside lower center",
                ncols=columns,
                frameon=False,
                fontsize=fontsize,
            )
            if columns == 1 or made.get_window_extent().width < 0.99 * figure.bbox.width:
                return
            made.remove()


@contextmanager
def canvas(ax: Any, height: float, count: int = 1, *, beside: bool = False) -> Iterator[Canvas]:
    """Yield the Axes given, or those of a new figure.

    That is one column wide, ``height`` inches high, and in its style; its Axes are stacked, and
    share their x axis. Axes that are ``beside`` one another have a size of their own.
    """
    if ax is not None:
        yield _given_canvas(ax, count)
        return
    if beside:
        yield _panel_canvas(count)
        return
    plt = pyplot()
    with plt.rc_context(_STYLE):
        _, axes = plt.subplots(
            count,
            1,
            sharex=True,
            squeeze=False,
            layout="constrained",
            figsize=(_COLUMN_INCHES, height),
        )
        yield Canvas(axes.ravel(), True)
        # Only the lowest of Axes that share their x axis has a label.
        _wrap_label(axes[-1, 0])


def _wrap_label(panel: Any) -> None:
    """Break the label of the x axis if it reaches over an edge of the figure: names may be long."""
    label, edge = panel.xaxis.label, panel.figure.bbox.padded(-_EDGE_POINTS)
    with warnings.catch_warnings():
        # Matplotlib warns of fonts when the figure is shown or saved.
        warnings.simplefilter("ignore")
        panel.figure.draw_without_rendering()
    drawn = label.get_window_extent()
    if drawn.x0 >= edge.x0 and drawn.x1 <= edge.x1:
        return
    middle = (drawn.x0 + drawn.x1) / 2.0
    room = 2.0 * min(middle - edge.x0, edge.x1 - middle)
    lines = label.get_text().split("\n")
    # Letters differ in width, so a share of their number is only a start.
    for most in range(int(max(map(len, lines)) * room / drawn.width), 0, -1):
        label.set_text(fill(" ".join(lines), most))
        if label.get_window_extent().width <= room:
            return


def _panel_canvas(count: int) -> Canvas:
    """Make a figure with a panel for each coefficient."""
    columns = 2 if count == 4 else min(count, _PANELS_PER_ROW)
    rows = -(-count // columns)
    width, height = _PANEL_INCHES
    figure, made = pyplot().subplots(
        rows,
        columns,
        squeeze=False,
        layout="constrained",
        # A single panel leaves room for the legend under it.
        figsize=(max(width * columns, 4.8), height * rows + 0.6),
    )
    panels = made.ravel()
    for spare in panels[count:]:
        figure.delaxes(spare)
    return Canvas(panels[:count], True)


def _given_canvas(ax: Any, count: int) -> Canvas:
    """Check that the user gave as many Axes as a picture needs."""
    axes = np.asarray(ax, dtype=object).ravel()
    for panel in axes:
        if not hasattr(panel, "set_xlim"):
            raise InputTypeError(f"ax must be Axes of Matplotlib; got a {type(panel).__name__}")
    if len(axes) != count:
        raise InputError(f"the picture needs {count} Axes; got {len(axes)}")
    return Canvas(axes, False)


def pyplot() -> Any:
    """Import Matplotlib's pyplot, or say how to install it."""
    with needs_extra("plots need Matplotlib", "plots"):
        from matplotlib import pyplot
    return pyplot


def label_of(name: str) -> str:
    """Write a name as a picture shows it: Matplotlib reads formulas between dollar signs."""
    return shown(name).replace("$", r"\$")
