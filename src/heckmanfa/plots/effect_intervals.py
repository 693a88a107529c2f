"""The effects of a treatment with intervals, beside what ignores how treatment is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from heckmanfa.errors import InputTypeError
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Row, Rows, Rule, Shape, with_interval
from heckmanfa.text.labels import label, said
from heckmanfa.text.printable import cut
from heckmanfa.text.table import Column, LegendItem, Table
from heckmanfa.text.wording import written_in

# Width of the names in px, and their characters, on a wide page and on a narrow one.
_LABELS, _CELLS = (168.0, 160.0), (21, 19)
_ROW, _ROW_INCHES, _MARGIN_INCHES, _PAD = 30.0, 0.36, 1.05, 0.1


@dataclass(frozen=True)
class EffectRow:
    """An effect with its 95% interval."""

    name: str
    """whose effect it is, or how it is estimated"""
    value: float
    low: float
    high: float
    n_rows: float
    """rows that it is an average of"""
    naive: bool = False
    """whether it takes treatment as if it were drawn by lot"""
    group: str = ""
    """rows whose effects these are; empty if they are all rows"""

    unit: str = ""
    """what the numbers are in: "percent", or the units of the outcome"""

    @property
    def numbers(self) -> list[str]:
        """The effect and the ends of its interval, with one number of decimals."""
        return written_in(self.unit)(self.value, self.low, self.high)

    @property
    def words(self) -> str:
        """The effect with its interval: "3.42 (2.9 to 4.0)"."""
        value, low, high = self.numbers
        return f"{value} ({low} to {high})" if low and high else value

    def drawn_by(self, drawn: Callable[[float], float], unit: str) -> Self:
        """Return the same in another unit."""
        value, low, high = (drawn(end) for end in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high, unit=unit)

    @property
    def shape(self) -> Shape:
        """Its mark."""
        return "diamond" if self.naive else "circle"

    @property
    def color(self) -> str:
        """The colour of its series."""
        return "ols" if self.naive else "this"


@dataclass(frozen=True)
class EffectIntervals(Picture):
    """Average effects of a treatment, on the outcome's own scale."""

    kind: ClassVar[str] = "effects"

    outcome: str
    """column of the outcome"""
    rows: tuple[EffectRow, ...]
    treated: str = ""
    """column of who is treated; empty if it has no name"""
    unit: str = ""
    """what effects are in: "percent", or the units of the outcome"""

    @property
    def _what(self) -> str:
        return said(self.treated) if self.treated else "treatment"

    def _title(self) -> str:
        return f"Average effects of {self._what} on {said(self.outcome)}"

    def _look(self) -> str:
        return "Look how far the model's effects are from those that ignore who chose treatment."

    def _legend(self) -> tuple[LegendItem, ...]:
        return (
            LegendItem("this model", "-circle", "this"),
            LegendItem("as if treated by lot", "-diamond", "ols"),
        )

    def _alt(self) -> str:
        found = "; ".join(f"{row.name}: {row.words}" for row in self.rows if not row.group)
        return f"Effects of treatment on {cut(label(self.outcome), 30)}. {found}."

    def _caption(self) -> str:
        return (
            "Lines are 95% intervals. Least squares and the difference of means take treatment as "
            "if it were drawn by lot, given the features and without them."
        )

    def _table(self) -> Table:
        columns = (
            Column("Effect on", is_number=False),
            Column("Estimate"),
            Column("95% interval"),
            Column("Rows"),
        )
        lines = []
        for row in self.rows:
            value, low, high = row.numbers
            name = f"{row.group}: {row.name}" if row.group else row.name
            lines.append((name, value, f"{low} to {high}", f"{row.n_rows:,.10g}"))
        unit = f", in {self.unit}" if self.unit else ""
        caption = f"Effects of {self._what} on {said(self.outcome)}{unit}"
        return Table(columns, tuple(lines), caption, "effects-table")

    def _body(self) -> Rows:
        rows = [
            Row(
                row.name,
                with_interval(row.value, row.low, row.high, row.color, row.shape),
                f"{row.name}\n{row.words}\n{row.n_rows:,.10g} rows",
                head=row.group,
            )
            for row in self.rows
        ]
        ends = [0.0, *(end for row in self.rows for end in (row.value, row.low, row.high))]
        known = [end for end in ends if math.isfinite(end)]
        scale = Scale.over(known, 0.0, 1.0, pad=_PAD)
        title = f"effect on {said(self.outcome)}"
        x = Axis(scale.low, scale.high, f"{title}, in {self.unit}" if self.unit else title)
        inches = _MARGIN_INCHES + _ROW_INCHES * len(rows)
        return Rows(
            x, tuple(rows), _ROW, inches, rules=(Rule(x=0.0),), labels=_LABELS, cells=_CELLS
        )


class HasEffects(Protocol):
    """A fitted treatment model."""

    def effect_picture(self, *args: Any, **kwargs: Any) -> EffectIntervals:
        """Return the picture of its effects."""
        ...


def treatment_effects(
    source: HasEffects,
    X: Any = None,
    ax: Any = None,
    *,
    treated: Any = None,
    by: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the average effects of a treatment model, beside what ignores how treatment is chosen.

    Lines are 95% intervals. Least squares and the difference of means are of the rows of the fit.

    Parameters
    ----------
    source : TreatmentModel
    X, treated, by, sample_weight
        As in `TreatmentModel.effects`; by default the rows of the fit. ``by`` adds the effect on
        everyone in each group.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not hasattr(type(source), "effect_picture"):
        raise InputTypeError(
            f"source must be a fitted TreatmentModel; got a {type(source).__name__}"
        )
    picture = source.effect_picture(X, treated=treated, by=by, sample_weight=sample_weight)
    return picture.draw(ax)
