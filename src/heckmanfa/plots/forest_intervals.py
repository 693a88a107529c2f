"""P1, the forest: what goes with the outcome, by several models, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Interval, Mark, Point, Row, Rows, Rule, Scene, Shape
from heckmanfa.plots.svg_shapes import NARROW, WIDE, label_cells
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import shown
from heckmanfa.text.shortening import cut
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import effects

MOST_ROWS = 5
"""Rows that are drawn; the table holds all."""

_ALT = 300
_ROW, _ROW_INCHES, _MARGIN_INCHES = 60.0, 0.42, 1.05
# Between the marks of a row, in its height.
_APART = 13.0 / _ROW
_PAD = 0.1
_MODELS = {1: "", 2: ", by two models", 3: ", by three models"}


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95% interval; NaN where a number is not known."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there is an estimate."""
        return math.isfinite(self.value)

    @property
    def words(self) -> tuple[str, str]:
        """The estimate and its interval, with one number of decimals; empty where unknown."""
        value, low, high = effects(self.value, self.low, self.high)
        return value, f"{low} to {high}" if low and high else ""

    def __str__(self) -> str:
        value, ends = self.words
        return f"{value} ({ends})" if ends else value


@dataclass(frozen=True)
class Series:
    """A model whose estimates are drawn."""

    label: str
    cls: str
    """its colour: "this", "ols" or "all" """
    shape: Shape
    """its mark: "circle", "diamond" or "square" """


@dataclass(frozen=True)
class ForestRow:
    """A feature, or a level of a category."""

    name: str
    """of the feature"""
    change: str
    """what the effect is of: "one SD (2.28) more", "1 rather than 0", "north rather than south" """
    estimates: tuple[Estimate, ...]
    """of each series"""
    share: str = ""
    """how sure it is to predict: "41%", or "12 of 100" halves; empty if that is not known"""
    role: str = ""
    is_sure: bool = True
    """whether its mark is filled"""
    is_switch: bool = False
    """whether its effect is of a change from 0 to 1, or of a level"""
    level: str = ""
    """of a category"""
    is_leading: bool = True
    """whether it stands for its feature; the other levels of a category are in the table only"""


@dataclass(frozen=True)
class Forest(Picture):
    """Effects of features by several models, in one unit, in the order of the picture."""

    kind: ClassVar[str] = "forest"

    outcome: str
    series: tuple[Series, ...]
    rows: tuple[ForestRow, ...]
    """the first few are drawn, and the table holds all"""
    about: str
    """what the estimates are, in a sentence"""
    order: str = "likeliest"
    """what the features that are drawn are, as in "the 5 likeliest" """
    hollow: str = ""
    """what a hollow mark means"""
    halves: bool = False
    """whether shares count the halves of an honest search that chose a feature"""
    unit: str = ""
    """what estimates are in, such as "percentage points"; empty in units of the outcome"""

    @property
    def drawn(self) -> tuple[ForestRow, ...]:
        """The rows of the picture."""
        return tuple(row for row in self.rows if row.is_leading)[:MOST_ROWS]

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return sum(row.is_leading for row in self.rows)

    def scale(self, start: float, end: float) -> Scale:
        """Return the axis: zero and the intervals of the first two series, a tenth beyond them.

        Rows without either count with what they have.
        """
        found = [0.0]
        for row in self.drawn:
            two = [estimate for estimate in row.estimates[:2] if estimate.is_known]
            for estimate in two or row.estimates:
                found += (estimate.value, estimate.low, estimate.high)
        return Scale.over(found, start, end, pad=_PAD).to_ticks()

    # Words. -----------------------------------------------------------------------------------

    def text(self) -> PictureText:
        """Return the words around the picture, and its numbers as a table."""
        by = _MODELS.get(len(self.series), f", by {len(self.series)} models")
        return PictureText(
            title=f"What goes with {shown(self.outcome)}{by}",
            alt=self._alt(),
            caption=self._caption(),
            table=self._table(),
            legend=tuple(LegendItem(one.label, f"-{one.shape}", one.cls) for one in self.series),
        )

    def _alt(self) -> str:
        start, end = f"Forest plot for {cut(self.outcome, 30)}.", " All numbers are in the table."
        if not self.drawn:
            return f"{start} No feature may predict.{end}"
        row = self.drawn[0]
        found = [
            f"{estimate} by {one.label}"
            for one, estimate in zip(self.series, row.estimates, strict=True)
            if estimate.is_known
        ]
        unit = f"in {self.unit}, " if self.unit else ""
        finding = f" {cut(row.name, 30)}, {cut(row.change, 50)}: {unit}"
        for many in range(len(found), 0, -1):
            text = f"{start}{finding}{'; '.join(found[:many])}.{end}"
            if len(text) <= _ALT:
                return text
        return f"{start}{finding}not known.{end}"

    def _caption(self) -> str:
        parts = [self.about]
        if self._runs_on():
            parts.append("An arrow: the interval runs on.")
        if self.hollow and not all(row.is_sure for row in self.drawn):
            parts.append(f"Hollow: {self.hollow}.")
        if self.n_features > len(self.drawn):
            parts.append(f"The {len(self.drawn)} {self.order} of {self.n_features:,} features.")
        if len(self.rows) > MOST_LINES:
            parts.append(f"The table holds the first {MOST_LINES}; the rest: `--save-table`.")
        return " ".join(parts)

    def _runs_on(self) -> bool:
        axis = self.scale(0.0, 1.0)
        return any(
            axis.clipped(end)[1]
            for row in self.drawn
            for estimate in row.estimates
            for end in (estimate.low, estimate.high)
        )

    def _columns(self) -> list[Column]:
        """Return the columns of words; empty ones are left out."""
        columns = [
            Column("Feature", is_number=False, is_feature=True),
            Column("Change", is_number=False),
        ]
        if any(row.share for row in self.rows):
            columns.append(Column("Chosen in halves" if self.halves else "Chance"))
        if any(row.role for row in self.rows):
            columns.append(Column("Role", is_number=False))
        return columns

    def _table(self) -> Table:
        columns = self._columns()
        titles = [column.title for column in columns]
        lines = []
        for row in self.rows[:MOST_LINES]:
            share = [row.share] if "Chance" in titles or "Chosen in halves" in titles else []
            line = [Name(row.name).key, row.change, *share]
            if "Role" in titles:
                line.append(row.role)
            for estimate in row.estimates:
                line += estimate.words
            lines.append(tuple(line))
        for one in self.series:
            columns += (
                Column("Estimate", group=one.label),
                Column("95% interval", group=one.label),
            )
        unit = f", in {self.unit}" if self.unit else ""
        caption = f"What goes with {shown(self.outcome)}: estimates with 95% intervals{unit}"
        return Table(tuple(columns), tuple(lines), caption, "forest-table")

    def _label(self, row: ForestRow) -> str:
        """Return the words of a row's tooltip, a line each."""
        lines = [shown(row.name) + (f": {row.role}" if row.role else "")]
        if row.share:
            lines.append(f"chosen in {row.share} halves" if self.halves else f"chance {row.share}")
        lines.append(f"{row.change}:")
        lines += [
            f"{estimate} by {one.label}"
            for one, estimate in zip(self.series, row.estimates, strict=True)
            if estimate.is_known
        ]
        return "\n".join(lines)

    def scene(self) -> Scene:
        """Return a row of estimates for each feature, those of a model on one line."""
        rows = tuple(
            Row(
                name=row.name,
                marks=tuple(self._marks(row)),
                tip=self._label(row),
                feature=row.name,
                under=tuple(filter(None, (row.level, f"in {row.share}" if row.share else ""))),
            )
            for row in self.drawn
        )
        axis, narrow = self.scale(0.0, 1.0), self._unit(NARROW)
        x = Axis(
            *(axis.low, axis.high, self._unit(WIDE), narrow),
            printed=narrow,
            numbers="signed",
        )
        text = self.text()
        return Scene(
            text,
            Rows(x, rows, _ROW, (Rule(0.0),)),
            _MARGIN_INCHES + _ROW_INCHES * max(len(rows), 1),
            legend=None if len(self.series) > 1 else (),
        )

    def _unit(self, width: int) -> str:
        """Return the title of the axis."""
        outcome, is_wide = cut(self.outcome, label_cells(width)), width >= WIDE
        switches = [row.is_switch for row in self.drawn]
        if self.unit:
            # A probability has a name and a class.
            outcome = cut(self.outcome, 2 * label_cells(width))
            more = f"{self.unit if is_wide else 'points'} of {outcome}"
            return more if all(switches) else f"{more}, one SD more"
        if all(switches):
            return f"more {outcome}"
        if any(switches):
            unit = "one standard deviation more" if is_wide else "one SD more"
            return f"more {outcome} with {unit} (0/1: 0 to 1)"
        unit = "one standard deviation more of the feature" if is_wide else "one SD more"
        return f"more {outcome} with {unit}"

    def _marks(self, row: ForestRow) -> list[Mark]:
        """Return the estimates of a row with their intervals, from top to bottom."""
        marks: list[Mark] = []
        middle = (len(self.series) - 1) / 2
        for number, (model, estimate) in enumerate(zip(self.series, row.estimates, strict=True)):
            at = _APART * (number - middle)
            hollow = model.shape == "circle" and not row.is_sure
            shape: Shape = "hollow" if hollow else model.shape
            # The arrow of an interval says already where it lies.
            alone = math.isnan(estimate.low) or math.isnan(estimate.high)
            marks += (
                Interval(estimate.low, estimate.high, at, model.cls),
                Point(estimate.value, at, model.cls, shape, alone),
            )
        return marks
