"""What moves the probability of being selected: an interval for each feature, largest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from heckmanfa.plots._canvas import canvas, label_of
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.role_rows import label_width
from heckmanfa.plots.svg.drawing import WIDE, Drawing, Scale, label_cells
from heckmanfa.text.numerals import figure, signed, with_minus
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import shown
from heckmanfa.text.shortening import cut
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import listed, plural

MOST_ROWS = 15
"""features that the pictures of selection show; their tables have more"""

# Height of a row, and room above and below the rows, in px.
_ROW, _TOP, _BOTTOM = 26, 6, 42
_FEW = 3


@dataclass(frozen=True)
class SelectionChange:
    """A change of a feature, and what it does to the probability of being selected."""

    words: str
    """the change: "one SD more (8.07)", "0 to 1", "south rather than north" """
    estimate: float
    """average marginal effect, in percentage points"""
    low: float
    high: float


@dataclass(frozen=True)
class SelectionDriver:
    """A feature of the selection equation, with the effect of each of its changes."""

    name: str
    changes: tuple[SelectionChange, ...]
    """one, or one for each level of a category"""
    kind: str
    """"number", "binary" or "category" """
    along: tuple[str, ...] = ()
    """what moves with it, in words: "its square, expersq" """

    @property
    def shown(self) -> SelectionChange:
        """The change in the picture: of a category, the level furthest from its reference."""
        return max(self.changes, key=lambda change: _size(change.estimate))


@dataclass(frozen=True)
class SelectionMargins:
    """Average marginal effects on the probability of being selected, the largest first."""

    kind: ClassVar[str] = "margins"

    drivers: tuple[SelectionDriver, ...]
    intervals: str = "95% intervals"
    """what the intervals are, in words"""
    formulas: bool = False
    """whether a variable moves all terms of the formulas that it is in"""

    @property
    def rows(self) -> tuple[SelectionDriver, ...]:
        """The features in the picture."""
        return self.drivers[:MOST_ROWS]

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        return PictureText(
            title="What moves the probability of being selected",
            alt=self._alt(),
            caption=self._caption(),
            table=self._table(),
            legend=(LegendItem(f"average effect, {self.intervals}", "-circle", "this"),),
        )

    def _alt(self) -> str:
        first = [
            f"{cut(driver.name, 30)} {self.points(driver.shown.estimate)}"
            for driver in self.rows[:_FEW]
        ]
        largest = "largest" if len(self.drivers) > 1 else "only"
        return (
            "Intervals, one for each feature: how many percentage points more likely selection is. "
            f"The {largest}: {', '.join(first)}. All numbers are in the table."
        )

    def _caption(self) -> str:
        words = [f"Average marginal effects of the probit with {self.intervals}{self._others()}."]
        for driver in [driver for driver in self.rows if driver.along][:_FEW]:
            words.append(f"{shown(driver.name, 40)} moves with {' and '.join(driver.along)}.")
        if self.formulas:
            words.append("A variable moves all terms of the formulas that it is in.")
        if len(self.drivers) > len(self.rows):
            words.append(
                f"The {len(self.rows)} largest of {plural(len(self.drivers), 'feature')}; the "
                "table has more."
            )
        return " ".join(words)

    def _others(self) -> str:
        """Say which rows do not show one standard deviation more."""
        parts = []
        binary = [driver.name for driver in self.rows if driver.kind == "binary"]
        if binary:
            which = listed([cut(name, 30) for name in binary])
            parts.append(f"; {which if len(binary) <= _FEW else '0/1 features'}: from 0 to 1")
        levels = [driver for driver in self.rows if driver.kind == "category"]
        if levels:
            named = [f"{cut(one.name, 30)}: {cut(one.shown.words, 60)}" for one in levels[:_FEW]]
            parts += [f"; {words}" for words in named]
        return "".join(parts)

    def points(self, value: float) -> str:
        """Format percentage points, all with the same number of decimals."""
        return points(value, self._largest)

    @cached_property
    def _largest(self) -> float:
        return max((_size(driver.shown.estimate) for driver in self.drivers), default=0.0)

    def _table(self) -> Table:
        columns = (
            Column("Feature", is_number=False, is_feature=True),
            Column("Change", is_number=False),
            Column("Points"),
            Column("95% from"),
            Column("to"),
        )
        lines: list[Sequence[str]] = [
            [Name(driver.name).key, change.words, *map(self.points, _numbers(change))]
            for driver in self.drivers
            for change in driver.changes
        ]
        caption = "Percentage points of the probability of being selected"
        return Table(
            columns, tuple(lines[:MOST_LINES]), caption + first_lines(lines), "margins-table"
        )

    def tooltip(self, driver: SelectionDriver) -> str:
        """Return the numbers of a row in words, a line each."""
        change = driver.shown
        lines = [shown(driver.name), f"{self.points(change.estimate)} points: {change.words}"]
        if not math.isnan(change.low):
            lines.append(f"95% interval {self.points(change.low)} to {self.points(change.high)}")
        if driver.along:
            lines.append(f"moves with {' and '.join(driver.along)}")
        return "\n".join(lines)

    @property
    def axis_title(self) -> str:
        """What the x axis shows."""
        return "percentage points for one standard deviation more"

    def limits(self) -> list[float]:
        """Return the numbers that must be in view."""
        return [end for driver in self.rows for end in _numbers(driver.shown)]

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        rows = self.rows
        left = label_width([driver.name for driver in rows], width)
        bottom = _TOP + _ROW * len(rows)
        drawing = Drawing(width, bottom + _BOTTOM, self.text().alt)
        x = Scale.over(self.limits(), left, width - 14, pad=0.04, include=[0.0])
        title = self.axis_title if width >= WIDE else "percentage points per SD more"
        drawing.x_axis(x, _TOP, bottom, x.ticks(6 if width >= WIDE else 5, signed=True), title)
        for rank, driver in enumerate(rows):
            y = _TOP + _ROW * (rank + 0.5)
            with drawing.group("row", driver.name, self.tooltip(driver)):
                drawing.hit(y - _ROW / 2, _ROW)
                name_row(drawing, driver.name, left, y)
                change = driver.shown
                drawing.interval(x, y, change.low, change.high, "this")
                drawing.circle(x(change.estimate), y, "mark this")
        return drawing.svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        rows = self.rows
        with canvas(ax, 0.6 + 0.19 * max(len(rows), 3)) as drawn:
            (panel,) = drawn.axes
            places = range(len(rows))
            changes = [driver.shown for driver in rows]
            panel.axvline(0.0, color=LIGHT["ink"], linewidth=0.8, zorder=1)
            for y, change in zip(places, changes, strict=True):
                panel.plot([change.low, change.high], [y, y], color=LIGHT["this"], zorder=2)
            panel.plot(
                [change.estimate for change in changes],
                places,
                linestyle="none",
                marker="o",
                color=LIGHT["this"],
                markersize=5.5,
                markeredgecolor=LIGHT["paper"],
                zorder=3,
            )
            name_ticks(panel, [driver.name for driver in rows])
            panel.set_xlabel(f"{self.axis_title}\n({self.intervals})")
        return panel


def points(value: float, largest: float) -> str:
    """Format percentage points with a sign and the decimals that the largest needs."""
    if math.isnan(value):
        return ""
    decimals = 1 if largest >= 0.95 or largest == 0.0 else 3
    if 0.0 < largest < 0.0095:
        return signed(figure(value))
    text = with_minus(f"{value:.{decimals}f}")
    return signed(text) if float(f"{value:.{decimals}f}") else text.removeprefix("\N{MINUS SIGN}")


def name_row(drawing: Drawing, name: str, left: float, y: float) -> None:
    """Write the name of a row left of it."""
    drawing.text(left - 12, y + 4.5, cut(name, label_cells(drawing.width)), "lab", "end")


def name_ticks(panel: Any, names: Sequence[str]) -> None:
    """Name the rows of Matplotlib's Axes, the first on top."""
    panel.set_yticks(range(len(names)), [label_of(cut(name, 20)) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)


def first_lines(lines: Sequence[object]) -> str:
    """Say that a table was cut."""
    if len(lines) <= MOST_LINES:
        return ""
    return f" (the first {MOST_LINES} of {len(lines):,}; the rest: `--save-table`)"


def _numbers(change: SelectionChange) -> tuple[float, float, float]:
    return change.estimate, change.low, change.high


def _size(value: float) -> float:
    return 0.0 if math.isnan(value) else abs(value)
