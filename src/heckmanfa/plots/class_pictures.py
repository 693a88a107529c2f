"""Pictures of ordered classes: effects on the probability of each, and predicted shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture, weight_words
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Interval, Point, Row, Rows, Rule, with_interval
from heckmanfa.text.labels import label, said
from heckmanfa.text.printable import cut
from heckmanfa.text.table import Column, LegendItem, Table
from heckmanfa.text.wording import count, percent, tenths, true_minus

_ROW, _ROW_INCHES, _MARGIN_INCHES, _PAD, _ALT = 30.0, 0.36, 1.05, 0.1, 260
_CELLS = (18, 14)


@dataclass(frozen=True)
class ClassEffect:
    """What a step of a feature does to the probability of a class, with its 95% interval."""

    feature: str
    """column of the table"""
    change: str
    """the step: "one more year" """
    named: str
    """the class, as readers know it"""
    value: float
    """in percentage points"""
    low: float
    high: float

    @property
    def words(self) -> str:
        """The effect with its interval: "+3.1 (1.2 to 5.0)"."""
        value, low, high = tenths(self.value, self.low, self.high)
        return f"{value} ({low} to {high})" if low and high else value


@dataclass(frozen=True)
class ClassEffects(Picture):
    """Average effects of features on the probability of each class."""

    kind: ClassVar[str] = "class_effects"

    outcome: str
    effects: tuple[ClassEffect, ...]
    """by feature, then by class, the lowest first"""

    def _title(self) -> str:
        return f"What goes with each class of {said(self.outcome, 40)}"

    def _look(self) -> str:
        return "Look which classes lie right of zero: more of the feature, more of them."

    def _alt(self) -> str:
        start = f"Effects on the probability of each class of {cut(label(self.outcome), 30)}."
        found = [f"{each.feature}, {each.named}: {each.words}" for each in self.effects]
        for many in range(len(found), 0, -1):
            text = f"{start} {'; '.join(found[:many])}."
            if len(text) <= _ALT:
                return text
        return start

    def _caption(self) -> str:
        return (
            "Average slopes of the probability of each class over the rows with an outcome, in "
            "percentage points, for anyone, selected or not, with 95% intervals. Those of a "
            "feature add up to zero: what one class gains, others lose."
        )

    def _table(self) -> Table:
        columns = [Column(name, is_number=False) for name in ("Feature", "Change", "Class")]
        columns += [Column("Points"), Column("95% interval")]
        lines = []
        for each in self.effects:
            value, low, high = tenths(each.value, each.low, each.high)
            lines.append((said(each.feature), each.change, each.named, value, f"{low} to {high}"))
        caption = f"Percentage points of the probability of each class of {said(self.outcome)}"
        return Table(tuple(columns), tuple(lines), caption, "class-effects-table")

    def _body(self) -> Rows:
        rows = [
            Row(
                each.named,
                with_interval(each.value, each.low, each.high, "this"),
                f"{label(each.feature)}, {each.change}\n{each.named}: {each.words} points",
                feature=each.feature,
                head=f"{label(each.feature)}: {each.change}",
            )
            for each in self.effects
        ]
        ends = [0.0, *(end for each in self.effects for end in (each.value, each.low, each.high))]
        known = [end for end in ends if math.isfinite(end)]
        scale = Scale.over(known, 0.0, 1.0, pad=_PAD)
        title = "percentage points of the probability of a class"
        x = Axis(scale.low, scale.high, title, narrow="percentage points", numbers="signed")
        inches = _MARGIN_INCHES + _ROW_INCHES * len(rows)
        return Rows(x, tuple(rows), _ROW, inches, rules=(Rule(x=0.0),), cells=_CELLS)


@dataclass(frozen=True)
class ClassShare:
    """The share of a class among some rows with an outcome, as predicted and as observed."""

    group: str
    """which rows; empty if they are all"""
    named: str
    predicted: float
    observed: float
    observed_low: float
    """ends of the 95% binomial interval of the observed share"""
    observed_high: float
    n_rows: float
    """rows of the group; frequency weights are summed"""


@dataclass(frozen=True)
class ClassShares(Picture):
    """Predicted shares of the classes of selected rows beside those observed."""

    kind: ClassVar[str] = "class_shares"

    outcome: str
    shares: tuple[ClassShare, ...]
    """by group of rows, then by class, the lowest first"""
    n_rows: float
    weighted: str = ""
    """what weights do: "frequency", "sampling" or nothing"""

    @property
    def n_inside(self) -> int:
        """Predicted shares inside the interval of what was observed."""
        return sum(
            each.observed_low <= each.predicted <= each.observed_high for each in self.shares
        )

    def _title(self) -> str:
        return f"Do predicted shares of the classes of {said(self.outcome, 40)} come true?"

    def _look(self) -> str:
        return "Look whether circles lie on the lines: there, predictions came true."

    def _legend(self) -> tuple[LegendItem, ...]:
        observed = LegendItem("observed, with 95% interval", "-diamond", "ols")
        return LegendItem("predicted", "circle", "this"), observed

    def _found(self) -> str:
        return f"{self.n_inside} of {len(self.shares)} predicted shares are inside these intervals."

    def _alt(self) -> str:
        what = f"Predicted and observed shares of the classes of {cut(label(self.outcome), 30)}"
        return f"{what} among rows with an outcome. {self._found()}"

    def _caption(self) -> str:
        groups = {each.group for each in self.shares}
        thirds = " Rows are in thirds, by the class that is expected." if len(groups) > 1 else ""
        weights = weight_words(self.weighted, "Shares are weighted by the sampling weights.")
        return (
            f"P(y = class | x, s = 1) in {count(round(self.n_rows))} selected rows, on average, "
            f"and the shares observed.{thirds} {self._found()} In sample: the model was fitted to "
            "these rows, so it looks better than it is. Nothing here checks the probabilities of "
            f"rows without an outcome.{weights}"
        )

    def _table(self) -> Table:
        columns = [Column(name, is_number=False) for name in ("Rows", "Class")]
        columns += [Column("Number of rows"), Column("Predicted"), Column("Observed")]
        columns += [Column("95% interval")]
        lines = [
            (
                each.group or "all",
                each.named,
                count(round(each.n_rows)),
                _percent(each.predicted),
                _percent(each.observed),
                f"{_percent(each.observed_low)} to {_percent(each.observed_high)}",
            )
            for each in self.shares
        ]
        caption = f"Predicted and observed shares of the classes of {said(self.outcome)}"
        return Table(tuple(columns), tuple(lines), caption, "class-shares-table")

    def _body(self) -> Rows:
        rows = [
            Row(
                each.named,
                (
                    Interval(each.observed_low, each.observed_high, 0.0, "ols"),
                    Point(each.observed, 0.0, "ols", "diamond"),
                    Point(each.predicted, 0.0, "this"),
                ),
                f"{each.named}\npredicted {_percent(each.predicted)}\n"
                f"observed {_percent(each.observed)} ({_percent(each.observed_low)} to "
                f"{_percent(each.observed_high)})",
                head=f"{each.group}, {count(round(each.n_rows))} rows" if each.group else "",
            )
            for each in self.shares
        ]
        highest = max(max(each.predicted, each.observed_high) for each in self.shares)
        x = Axis(0.0, min(1.0, 1.05 * highest), "share of the rows", numbers="percent")
        inches = _MARGIN_INCHES + _ROW_INCHES * len(rows)
        return Rows(x, tuple(rows), _ROW, inches, cells=_CELLS)


def _percent(share: float) -> str:
    return true_minus(percent(share))
