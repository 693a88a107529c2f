"""P2, the chances: how much of the weight of all assignments holds each feature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from heckmanfa.plots._canvas import canvas
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.role_rows import (
    BAR,
    ROW,
    TOP,
    Layout,
    RoleRow,
    draw_heads,
    label_role_rows,
    label_width,
    lay_out_rows,
    role_places,
    shown_rows,
)
from heckmanfa.plots.svg.drawing import Drawing, Scale, Tick, cut, label_cells
from heckmanfa.text.chances import HIGH, LOW, NO_SIGN_BELOW, SURE_FROM
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import shown
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import chance_text

_BELOW = 44.0
_ROW_INCHES, _MARGIN_INCHES = 0.17, 0.95


@dataclass(frozen=True)
class ChanceRow(RoleRow):
    """The chance of a feature or group, in several ways."""

    least_squares: float = math.nan
    """without the correction for selection"""
    by_aic: float = math.nan
    by_ebic: float = math.nan


@dataclass(frozen=True)
class Chances:
    """How sure it is that each feature predicts, by roles."""

    kind: ClassVar[str] = "chances"
    does: ClassVar[str] = "predicts"
    """what the chances are about"""

    rows: tuple[ChanceRow, ...]
    """by role, then by chance; the picture draws those that matter, and the table holds all"""
    about: str = ""
    """what a feature that says nothing gets, and how the chances were found, in sentences"""
    halves: int = 0
    """in an honest search, how many halves chose; shares are then counts of them"""

    @property
    def title(self) -> str:
        """What the picture is called."""
        if self.halves:
            return "How often it was chosen to predict"
        return f"How sure: the chance that it {self.does}"

    @property
    def has_least_squares(self) -> bool:
        """Whether there are chances without the correction for selection."""
        return any(not math.isnan(row.least_squares) for row in self.rows)

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where the roles change."""
        return (0.5,) if self.halves else (NO_SIGN_BELOW, SURE_FROM)

    def value(self, row: ChanceRow) -> str:
        """Write how sure a feature is: a percentage, or a count of halves."""
        if row.is_forced:
            return "always"
        if self.halves:
            return f"{round(row.share * self.halves)} of {self.halves}"
        return chance_text(row.share)

    # Words. -----------------------------------------------------------------------------------

    def text(self) -> PictureText:
        """Return the words around the picture, and its numbers as a table."""
        measure = "halves that chose it" if self.halves else "this model"
        legend = [LegendItem(measure, "bar", "this")]
        if self.has_least_squares:
            legend.append(LegendItem("least squares, no correction", "diamond", "ols"))
        lines = "Dashed line at half." if self.halves else f"Dashed lines at {LOW} and {HIGH}."
        parts = [lines, self.about]
        if len(self.rows) > MOST_LINES:
            parts.append(f"The table holds the first {MOST_LINES}; the rest: `--save-table`.")
        return PictureText(
            title=self.title,
            alt=self._alt(),
            caption=" ".join(part for part in parts if part),
            table=self._table(),
            legend=tuple(legend),
        )

    def _alt(self) -> str:
        """Say which roles the features have, with the likeliest by name."""
        what = "how many halves chose each feature" if self.halves else "chances"
        kind = f"Bar chart of {what}"
        roles: dict[str, list[ChanceRow]] = {}
        for row in self.rows:
            roles.setdefault(row.role, []).append(row)
        found = []
        for role, rows in roles.items():
            first = rows[0]
            named = f"{cut(first.name, 24)} {self.value(first)}"
            few = f", likeliest {named}" if len(rows) > 1 else f", {named}"
            found.append(f"{role or 'features'}: {len(rows)}{few}")
        end = " All numbers are in the table."
        text = f"{kind}. {'; '.join(found)}.{end}"
        if len(text) > 300:
            counts = "; ".join(f"{role}: {len(rows)}" for role, rows in roles.items())
            text = f"{kind}. {counts}.{end}"
        return text

    def _columns(self) -> list[tuple[str, Any]]:
        """Return the columns of numbers: their titles, and how a row fills them."""
        if self.halves:
            return [("Chosen in halves", self.value)]
        found: list[tuple[str, Any]] = [("Chance", self.value)]
        if self.has_least_squares:
            found.append(
                ("Least squares, no correction", lambda row: chance_text(row.least_squares))
            )
        if any(not math.isnan(row.by_aic) for row in self.rows):
            found.append(("By AIC weights", lambda row: chance_text(row.by_aic)))
        if any(not math.isnan(row.by_ebic) for row in self.rows):
            found.append(("By EBIC weights", lambda row: chance_text(row.by_ebic)))
        return found

    def _table(self) -> Table:
        columns = [
            Column("Feature", is_number=False, is_feature=True),
            Column("Role", is_number=False),
            *(Column(title) for title, _ in self._columns()),
        ]
        lines = [
            (Name(row.name).key, row.role, *(fill(row) for _, fill in self._columns()))
            for row in self.rows[:MOST_LINES]
        ]
        name = f"{self.kind.replace('_', '-')}-table"
        return Table(tuple(columns), tuple(lines), self.title, name)

    def _label(self, row: ChanceRow) -> str:
        """Return the words of a row's tooltip, a line each."""
        numbers = [(title, fill(row)) for title, fill in self._columns()]
        lines = [f"{shown(row.name)}: {row.role}" if row.role else shown(row.name)]
        lines += [f"{title}: {value}" for title, value in numbers if value]
        return "\n".join(lines)

    # Drawings. --------------------------------------------------------------------------------

    def svg(self, width: int) -> str:
        """Draw the picture as SVG, this many px wide."""
        picked = shown_rows(self.rows)
        rows = [self.rows[place] for place in picked.rows]
        layout = lay_out_rows(self.rows, picked)
        left = label_width([row.name for row in rows], width)
        right = max((len(self.value(row)) for row in rows), default=4) * 8.0 + 18.0
        axis = Scale(0.0, 1.0, left, width - right)
        drawn = Drawing(width, layout.bottom + _BELOW, self._alt())
        self._grid(drawn, axis, layout)
        draw_heads(drawn, layout, picked.rest)
        for row, top in zip(rows, layout.tops, strict=True):
            middle = top + ROW / 2
            with drawn.group("row", data_f=row.name, label=self._label(row)):
                drawn.hit(top, ROW)
                name = cut(row.name, label_cells(width))
                drawn.text(left - 10, middle + 4.5, name, "lab", "end")
                drawn.rect(left, middle - BAR / 2, axis(row.share) - left, BAR, "bar this")
                drawn.diamond(axis(row.least_squares), middle, "mark ols")
                drawn.text(width, middle + 4.5, self.value(row), "value", "end")
        return drawn.svg()

    def _grid(self, drawn: Drawing, axis: Scale, layout: Layout) -> None:
        """Draw lines behind the rows of each role, so that none crosses a heading."""
        ticks = [Tick(share, axis(share), f"{share:.0%}") for share in sorted({*self.cuts, 0.5})]
        for top, bottom in layout.blocks:
            for share in (0.5, 1.0):
                drawn.line(axis(share), top, axis(share), bottom, "line")
            for share in self.cuts:
                drawn.line(axis(share), top, axis(share), bottom, "cut")
            drawn.line(axis.start, top, axis.start, bottom, "zero")
        end = layout.tops[-1] + ROW if layout.tops else TOP
        title = "share of the halves" if self.halves else f"chance that it {self.does}"
        below = layout.bottom
        drawn.x_axis(axis, end, below, ticks, title, grid=False, zero=False)

    def draw(self, ax: Any = None) -> Any:
        """Draw the picture with Matplotlib; return its Axes."""
        picked = shown_rows(self.rows)
        rows = [self.rows[place] for place in picked.rows]
        places, heads = role_places(rows)
        count = (max(places, default=0) + 1) if places else 1
        with canvas(ax, _MARGIN_INCHES + _ROW_INCHES * count) as drawn:
            (panel,) = drawn.axes
            for share in self.cuts:
                panel.axvline(
                    100 * share, color=LIGHT["muted"], linewidth=0.7, linestyle="--", zorder=1
                )
            bars = panel.barh(
                places,
                [100 * row.share for row in rows],
                height=0.62,
                color=LIGHT["this"],
                zorder=2,
            )
            marks = {"halves that chose it" if self.halves else "this model": bars}
            if self.has_least_squares:
                (marks["least squares, no correction"],) = panel.plot(
                    [100 * row.least_squares for row in rows],
                    places,
                    linestyle="none",
                    marker="D",
                    color=LIGHT["ols"],
                    markeredgecolor="white",
                    markeredgewidth=0.6,
                    zorder=3,
                    clip_on=False,
                )
            label_role_rows(drawn, rows, places, heads)
            for row, place in zip(rows, places, strict=True):
                panel.text(
                    1.02, place, self.value(row), va="center", transform=panel.get_yaxis_transform()
                )
            panel.set_xlim(0, 100)
            what = "% of the halves" if self.halves else f"chance that it {self.does}, %"
            panel.set_xlabel(what)
            if picked.rest:
                panel.set_title(picked.rest, loc="left")
            drawn.legend(marks)
        return panel


@dataclass(frozen=True)
class SelectionChances(Chances):
    """How sure it is that each feature drives selection, if both equations were searched."""

    kind: ClassVar[str] = "selection_chances"
    does: ClassVar[str] = "drives selection"
