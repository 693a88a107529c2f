"""What a series says of selection: its correction over the chance of being selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Band, Curve, Panel, Panels, Rule
from heckmanfa.text.labels import label, said, with_unit
from heckmanfa.text.printable import cut
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import effects, percent, plural

_HEIGHT, _ROOM, _LEFT, _INCHES, _PAD = 230.0, 30.0, 60.0, 2.8, 0.06
# Points that the table holds.
_TABLE = 9


@dataclass(frozen=True)
class CorrectionPoint:
    """The correction at one chance of being selected, with its 95% interval."""

    chance: float
    value: float
    low: float
    high: float
    normal: float
    """by two steps, which suppose normal errors; NaN if they cannot be solved"""


@dataclass(frozen=True)
class SeriesCurve(Picture):
    """The correction of selected rows by a series, beside that of normal errors."""

    kind: ClassVar[str] = "correction"

    outcome: str
    points: tuple[CorrectionPoint, ...]
    """ascending in the chance of being selected"""
    n_terms: int

    def _title(self) -> str:
        return f"How selection moves {said(self.outcome, 40)}"

    def _look(self) -> str:
        return "Look whether the band leaves zero: that speaks for correcting."

    def _legend(self) -> tuple[LegendItem, ...]:
        return (
            LegendItem("series, with 95% band", "line", "this"),
            LegendItem("were errors normal", "line", "ols"),
        )

    @property
    def covers(self) -> bool:
        """Whether the band holds the correction of normal errors everywhere."""
        return all(point.low <= point.normal <= point.high for point in self.points)

    def _found(self) -> str:
        excluded = sum(point.low > 0.0 or point.high < 0.0 for point in self.points)
        some = "excludes zero nowhere" if not excluded else "excludes zero in parts"
        zero = "excludes zero everywhere" if excluded == len(self.points) else some
        inside = "lies inside it" if self.covers else "leaves it in parts"
        return f"The band {zero}; the correction of normal errors {inside}."

    def _alt(self) -> str:
        what = f"Correction of {cut(label(self.outcome), 30)} over the chance of being selected"
        return f"{what}, by a series of {plural(self.n_terms, 'term')}. {self._found()}"

    def _caption(self) -> str:
        return (
            "What selection adds to the outcome of selected rows with this chance of being "
            "selected, beside rows that are surely selected, whose correction is zero. "
            f"{self._found()} The band is for one chance at a time."
        )

    def _table(self) -> Table:
        step = max((len(self.points) - 1) // (_TABLE - 1), 1)
        rows = []
        for point in self.points[::step]:
            value, low, high, normal = effects(point.value, point.low, point.high, point.normal)
            rows.append([percent(point.chance, 0), value, f"{low} to {high}", normal])
        return lay_out(
            ["Chance of being selected"],
            ["Series", "95% interval", "Were errors normal"],
            rows,
            f"What selection adds to {said(self.outcome)}",
            "correction-table",
        )

    def _body(self) -> Panels:
        at = tuple(point.chance for point in self.points)
        low, high, value, normal = (
            tuple(getattr(point, name) for point in self.points)
            for name in ("low", "high", "value", "normal")
        )
        known = [end for end in (0.0, *low, *high, *normal) if end == end]
        scale = Scale.over(known, 0.0, 1.0, pad=_PAD)
        unit = with_unit("", self.outcome).strip()
        title = f"added to {said(self.outcome, 30)}{f', in {unit}' if unit else ''}"
        marks = (
            Band(at, low, high, "this"),
            Rule(y=0.0),
            Curve(at, normal, "ols", "dashed"),
            Curve(at, value, "this"),
        )
        y = Axis(scale.low, scale.high, title, numbers="signed")
        x = Axis(at[0], at[-1], "chance of being selected", numbers="percent")
        return Panels(x, (Panel(y, marks, _HEIGHT, _ROOM),), _INCHES, left=_LEFT)
