"""Who has an outcome, and who has none: averages of features, beside those of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from heckmanfa.plots._canvas import canvas
from heckmanfa.plots.margin_intervals import (
    MOST_ROWS,
    first_lines,
    name_row,
    name_ticks,
)
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.role_rows import label_width
from heckmanfa.plots.svg.drawing import WIDE, Drawing, Scale
from heckmanfa.text.numerals import figure, signed, with_minus
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import shown
from heckmanfa.text.shortening import cut
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, PictureText, Table

# Height of a row, and room above and below the rows, in px.
_ROW, _TOP, _BOTTOM = 26, 6, 42
_WITH, _WITHOUT = "with an outcome", "without"
_FEW = 3


@dataclass(frozen=True)
class Profile:
    """Averages of one feature, or of one level of a category."""

    name: str
    level: str
    """the level whose share is averaged; empty for other features"""
    selected: float
    """mean of the rows with an outcome"""
    unselected: float
    """mean of the rows without one"""
    overall: float
    """mean of all rows"""
    spread: float
    """standard deviation of all rows"""

    @property
    def inside(self) -> float:
        """Mean of the rows with an outcome, in standard deviations from the mean of all rows."""
        return self._standardized(self.selected)

    @property
    def outside(self) -> float:
        """The same of the rows without one."""
        return self._standardized(self.unselected)

    def _standardized(self, mean: float) -> float:
        return (mean - self.overall) / self.spread if self.spread > 0 else 0.0


@dataclass(frozen=True)
class SelectionProfiles:
    """Averages of those with an outcome and of those without, in the order of the effects."""

    kind: ClassVar[str] = "profiles"

    profiles: tuple[Profile, ...]
    weighted: str = ""
    """what weights do to the averages, in words"""

    @property
    def rows(self) -> tuple[Profile, ...]:
        """The features in the picture."""
        return self.profiles[:MOST_ROWS]

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        return PictureText(
            title="Those with an outcome, and those without",
            alt=self._alt(),
            caption=self._caption(),
            table=self._table(),
            legend=(
                LegendItem(_WITH, "circle", "this"),
                LegendItem(_WITHOUT, "hollow", "ink"),
            ),
        )

    def _alt(self) -> str:
        first = sorted(self.rows, key=lambda one: -abs(one.inside - one.outside))[:_FEW]
        named = [
            f"{cut(one.name, 24)} {deviations(one.inside)} with, {deviations(one.outside)} without"
            for one in first
        ]
        return (
            "Averages of rows with an outcome and of rows without, in standard deviations. "
            f"Furthest apart: {'; '.join(named)}. All numbers are in the table."
        )

    def _caption(self) -> str:
        words = (
            "Averages, in the order of the effects. They say who is there; the effects say what "
            "counts when the rest is equal."
        )
        levels = [one for one in self.rows if one.level]
        if levels:
            named = [f"{cut(one.name, 30)}: share of {cut(one.level, 30)}" for one in levels[:_FEW]]
            words += f" {'; '.join(named)}."
        return words + self.weighted

    def _table(self) -> Table:
        levels = any(one.level for one in self.profiles)
        columns = [
            Column("Feature", is_number=False, is_feature=True),
            *([Column("Share of", is_number=False)] if levels else []),
            Column("With an outcome, SDs"),
            Column("Without, SDs"),
            Column("Mean with an outcome"),
            Column("Mean without"),
            Column("SD of all rows"),
        ]
        lines = [
            [
                Name(one.name).key,
                *([shown(one.level)] if levels else []),
                deviations(one.inside),
                deviations(one.outside),
                *map(figure, (one.selected, one.unselected, one.spread)),
            ]
            for one in self.profiles
        ]
        caption = "Averages by whether there is an outcome" + first_lines(lines)
        return Table(tuple(columns), tuple(lines[:MOST_LINES]), caption, "profiles-table")

    def tooltip(self, one: Profile) -> str:
        """Return the numbers of a row in words, a line each."""
        what = f"share of {shown(one.level, 40)}" if one.level else "mean"
        return "\n".join(
            [
                shown(one.name),
                f"{_WITH}: {deviations(one.inside)} SDs ({what} {figure(one.selected)})",
                f"{_WITHOUT}: {deviations(one.outside)} SDs ({what} {figure(one.unselected)})",
            ]
        )

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        rows = self.rows
        left = label_width([one.name for one in rows], width)
        bottom = _TOP + _ROW * len(rows)
        drawing = Drawing(width, bottom + _BOTTOM, self.text().alt)
        ends = [end for one in rows for end in (one.inside, one.outside)]
        x = Scale.over(ends, left, width - 14, pad=0.06, include=[0.0])
        ticks = [
            replace(tick, text="mean") if tick.value == 0 else tick
            for tick in x.ticks(6 if width >= WIDE else 5, signed=True)
        ]
        title = "standard deviations from the mean of all rows"
        drawing.x_axis(x, _TOP, bottom, ticks, title if width >= WIDE else "SDs from the mean")
        for rank, one in enumerate(rows):
            y = _TOP + _ROW * (rank + 0.5)
            inside, outside = x(one.inside), x(one.outside)
            with drawing.group("row", one.name, self.tooltip(one)):
                drawing.hit(y - _ROW / 2, _ROW)
                name_row(drawing, one.name, left, y)
                drawing.line(inside, y, outside, y, "interval ink")
                drawing.circle(outside, y, "hollow ink")
                drawing.circle(inside, y, "mark this")
        return drawing.svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        rows = self.rows
        with canvas(ax, 0.75 + 0.19 * max(len(rows), 3)) as drawn:
            (panel,) = drawn.axes
            places = range(len(rows))
            panel.axvline(0.0, color=LIGHT["ink"], linewidth=0.8, zorder=1)
            for y, one in zip(places, rows, strict=True):
                panel.plot(
                    [one.inside, one.outside], [y, y], color=LIGHT["ink"], linewidth=1.0, zorder=2
                )
            style = {"linestyle": "none", "marker": "o", "zorder": 3}
            (rings,) = panel.plot(
                [one.outside for one in rows],
                places,
                markerfacecolor=LIGHT["paper"],
                markeredgecolor=LIGHT["ink"],
                **style,
            )
            (discs,) = panel.plot(
                [one.inside for one in rows],
                places,
                color=LIGHT["this"],
                markersize=5.5,
                markeredgecolor=LIGHT["paper"],
                **style,
            )
            name_ticks(panel, [one.name for one in rows])
            panel.set_xlabel("standard deviations from the mean of all rows")
            drawn.legend({_WITH: discs, _WITHOUT: rings})
        return panel


def deviations(value: float) -> str:
    """Format standard deviations with a sign."""
    text = f"{value:.2f}"
    return signed(with_minus(text)) if float(text) else "0.00"
