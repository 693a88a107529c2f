"""Bounds as bars with their intervals, beside the observed outcomes and a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Bar, Interval, Mark, Point, Row, Rows
from heckmanfa.text.labels import said
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, LegendItem, Table
from heckmanfa.text.wording import capitalised, effects

_ROW, _ROW_INCHES, _MARGIN_INCHES, _PAD = 30.0, 0.36, 1.05, 0.06
_ALL = "all rows"
_HALF = 0.2
"""half the height of a bar, in heights of a row"""


@dataclass(frozen=True)
class BoundBar:
    """A number with its bounds; what is not known is NaN."""

    name: str
    low: float
    high: float
    ci_low: float
    ci_high: float
    observed: float = math.nan
    model: float = math.nan
    group: str = ""
    assumption: str = ""

    @property
    def words(self) -> str:
        """The bounds: "0.4 to 2.1"."""
        return " to ".join(effects(self.low, self.high))


@dataclass(frozen=True)
class BoundBars(Picture):
    """Bounds of numbers, on the outcome's scale."""

    kind: ClassVar[str] = "bounds"

    title: str
    outcome: str
    bars: tuple[BoundBar, ...]
    conf_level: float
    model: str = ""
    """what the model is called; empty without one"""

    def _title(self) -> str:
        return self.title

    def _look(self) -> str:
        return "Look how wide the bars are: that much is known without a model."

    def _legend(self) -> tuple[LegendItem, ...]:
        items = [LegendItem("between the bounds", "bar", "all")]
        if any(not math.isnan(bar.observed) for bar in self.bars):
            items.append(LegendItem("observed outcomes alone", "circle", "ols"))
        if self.model:
            items.append(LegendItem(f"{self.model}", "circle", "this"))
        return tuple(items)

    def _alt(self) -> str:
        found = "; ".join(f"{self._name(bar)}: {bar.words}" for bar in self.bars)
        return f"{capitalised(self.title)}. {found}."

    def _caption(self) -> str:
        return (
            f"Bars are bounds, and lines the {100 * self.conf_level:g}% intervals of the numbers "
            "between them."
        )

    def _table(self) -> Table:
        titles = ("Low", "High", f"{100 * self.conf_level:g}% interval", "Observed", "Model")
        columns = (Column("Of", is_number=False), *(Column(title) for title in titles))
        lines = []
        for bar in self.bars:
            numbers = (bar.low, bar.high, bar.ci_low, bar.ci_high, bar.observed, bar.model)
            low, high, ci_low, ci_high, seen, model = effects(*numbers)
            lines.append((self._name(bar), low, high, f"{ci_low} to {ci_high}", seen, model))
        table = Table(columns, tuple(lines), self.title, "bounds-table")
        return table.without_empty()

    @staticmethod
    def _name(bar: BoundBar) -> str:
        return shown(f"{bar.name}, {bar.group}" if bar.group else bar.name)

    def _body(self) -> Rows:
        values = [
            value
            for bar in self.bars
            for value in (bar.low, bar.high, bar.ci_low, bar.ci_high, bar.observed, bar.model)
        ]
        scale = Scale.over(values, 0.0, 1.0, pad=_PAD)
        grouped = any(bar.group for bar in self.bars)
        rows = tuple(
            Row(
                shown(bar.group or (_ALL if grouped else bar.name)),
                self._marks(bar, scale),
                f"{self._name(bar)}\n{bar.words}\n{capitalised(bar.assumption)}",
                head=shown(bar.name) if grouped else "",
            )
            for bar in self.bars
        )
        x = Axis(scale.low, scale.high, said(self.outcome))
        return Rows(x, rows, _ROW, _MARGIN_INCHES + _ROW_INCHES * len(rows))

    @staticmethod
    def _marks(bar: BoundBar, scale: Scale) -> tuple[Mark, ...]:
        """Return the marks of a row; a bar without an end stops at the axis's."""
        low, high = max(bar.low, scale.low), min(bar.high, scale.high)
        marks: list[Mark] = [
            Interval(bar.ci_low, bar.ci_high, 0.0, "all"),
            Bar((low, high), (-_HALF, _HALF), "all"),
        ]
        estimates: tuple[tuple[float, str], ...] = ((bar.observed, "ols"), (bar.model, "this"))
        marks += [Point(value, 0.0, color) for value, color in estimates if not math.isnan(value)]
        return tuple(marks)
