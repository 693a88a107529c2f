"""Does the model hold in its own rows: residuals beside normality, probabilities beside shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.plots.picture import Picture, weight_words
from heckmanfa.plots.scene import (
    Axis,
    Bar,
    Curve,
    Group,
    Interval,
    Mark,
    Panel,
    Panels,
    Point,
    Rule,
)
from heckmanfa.text.labels import said
from heckmanfa.text.printable import shown
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import count, plural, with_minus

BIN = 0.5
"""width of a bin, in standard deviations"""
FAR = 3.0
"""residuals beyond this many standard deviations are counted"""

_LEAST, _MOST = 3.0, 6.0
# How far beside a point a pointer finds it, as a share of the axis.
_NEAR = 0.02
# Room beside the furthest end of an interval, as a share of the axis.
_ROOM = 1.08
# An axis shows all of 0 to 100% unless that leaves so much of it empty.
_WHOLE_FROM = 0.6


@dataclass(frozen=True)
class ResidualBars(Picture):
    """Residuals of the rows with an outcome, in standard deviations."""

    kind: ClassVar[str] = "residuals"

    outcome: str
    source: str
    """the model that leaves them: "the best assignment" """
    start: float
    """lower edge of the first bin; it has all residuals below, and the last all above"""
    bars: tuple[float, ...]
    """rows in each bin"""
    below: float
    """rows below minus `FAR` standard deviations"""
    above: float
    lowest: float
    highest: float
    weighted: str = ""
    """what weights do to the bars: "frequency", "sampling" or nothing"""

    @property
    def edges(self) -> Floats:
        """Edges of the bins."""
        return np.asarray(self.start + BIN * np.arange(len(self.bars) + 1), dtype=np.float64)

    @property
    def total(self) -> float:
        """Rows in all bins."""
        return float(sum(self.bars))

    @property
    def expected(self) -> float:
        """Rows beyond `FAR` standard deviations, were residuals normal."""
        return self.total * 2.0 * float(stats.norm.sf(FAR))

    def normal(self) -> Floats:
        """Return the rows in each bin, were residuals normal."""
        cdf = stats.norm.cdf([-math.inf, *self.edges[1:-1], math.inf])
        return np.asarray(self.total * np.diff(cdf))

    def _title(self) -> str:
        return f"Are the errors of {said(self.outcome, 40)} normal?"

    def _look(self) -> str:
        return "Look whether bars follow the curve: if not, the correction is less sure."

    def _alt(self) -> str:
        kind = "Histogram of residuals in standard deviations, with the normal curve."
        return f"{kind} {self._beyond()}"

    def _legend(self) -> tuple[LegendItem, ...]:
        return LegendItem("rows", "bar", "this"), LegendItem("the normal curve", "line", "ols")

    def _beyond(self) -> str:
        n, expected = self.below + self.above, self.expected
        normal = f"about {count(round(expected))}" if expected >= 0.5 else "less than 1"
        sides = ""
        if n > 0:
            sides = f": {_rows(self.below)} below and {_rows(self.above)} above"
        verb = "is" if _rows(n) == "1" else "are"
        residuals = "residual" if verb == "is" else "residuals"
        none = _rows(n) if n > 0 else "No"
        return (
            f"{none} {residuals} of {self.source} {verb} beyond {FAR:g} standard deviations"
            f"{sides}; normal errors would have {normal}."
        )

    def _caption(self) -> str:
        words = self._beyond()
        first, last = float(self.edges[0]), float(self.edges[-1])
        if self.lowest < first or self.highest > last:
            words += (
                f" The outer bars include residuals from {_sd(self.lowest)} to {_sd(self.highest)}."
            )
        return words + weight_words(
            self.weighted, "Rows count alike, whatever their sampling weights."
        )

    def _table(self) -> Table:
        lines = [
            [self.span(place), _rows(rows), f"{expected:,.1f}"]
            for place, (rows, expected) in enumerate(zip(self.bars, self.normal(), strict=True))
        ]
        lines.append([f"beyond {FAR:g}", _rows(self.below + self.above), f"{self.expected:,.1f}"])
        caption, titles = "Residuals in standard deviations", ["Rows", "If normal"]
        return lay_out(["Standard deviations"], titles, lines, caption, "residuals-table")

    def span(self, place: int) -> str:
        """Return the residuals of a bin in words."""
        low, high = self.edges[place], self.edges[place + 1]
        if place == 0 and self.lowest < low:
            return f"below {_sd(high)}"
        if place == len(self.bars) - 1 and self.highest > high:
            return f"above {_sd(low)}"
        return f"{_sd(low)} to {_sd(high)}"

    def _body(self) -> Panels:
        """Return a bar for each bin, and the normal curve."""
        expected, edges = self.normal(), self.edges.tolist()
        marks: list[Mark | Group] = []
        for place, (rows, ends) in enumerate(zip(self.bars, pairwise(edges), strict=True)):
            tip = f"{self.span(place)} SDs\nrows: {_rows(rows)}"
            tip += f"\nif normal: {expected[place]:,.1f}"
            marks.append(Group((Bar(ends, (0.0, rows), "this"),), tip, ends))
        at = np.linspace(edges[0], edges[-1], 121)
        normal = self.total * BIN * stats.norm.pdf(at)
        marks += [Rule(y=0.0), Curve(tuple(at.tolist()), tuple(normal.tolist()), "ols")]
        top = 1.05 * max(*self.bars, float(normal.max()))
        y = Axis(0.0, top, printed="rows", most=(5, 5))
        title = "residual, in standard deviations"
        x = Axis(edges[0], edges[-1], title, most=(6, 6), grid=False)
        return Panels(x, (Panel(y, tuple(marks), 230.0, 12.0),), 2.4)


def residual_bars(
    residuals: Floats, weight: Floats | None, weight_kind: str, *, outcome: str, source: str
) -> ResidualBars:
    """Count residuals by their size; frequency weights count rows, sampling weights do not."""
    frequencies = weight is not None and weight_kind == "frequency"
    # Sampling weights say how many members of a population a row stands for, not how many rows.
    counted = weight if weight is not None and frequencies else np.ones(len(residuals))
    # With an intercept in the model, residuals have a mean of zero, or nearly so.
    spread = math.sqrt(float(counted @ residuals**2 / counted.sum()))
    scaled = residuals / spread if spread > 0 else np.zeros_like(residuals)
    low, high = float(scaled.min()), float(scaled.max())
    start = -min(max(math.ceil(-low / BIN) * BIN, _LEAST), _MOST)
    end = min(max(math.ceil(high / BIN) * BIN, _LEAST), _MOST)
    edges = np.arange(round((end - start) / BIN) + 1) * BIN + start
    bars, _ = np.histogram(np.clip(scaled, start, end), edges, weights=counted)
    return ResidualBars(
        outcome=outcome,
        source=source,
        start=start,
        bars=tuple(map(float, bars)),
        below=float(counted[scaled < -FAR].sum()),
        above=float(counted[scaled > FAR].sum()),
        lowest=low,
        highest=high,
        weighted="" if weight is None else weight_kind,
    )


def _rows(value: float) -> str:
    return count(round(value))


def _sd(value: float) -> str:
    text = f"{value:.1f}"
    return with_minus(text) if float(text) else "0.0"


@dataclass(frozen=True)
class CalibrationPoint:
    """Rows with similar predicted probabilities."""

    low: float
    """the lowest of their predicted probabilities"""
    high: float
    predicted: float
    """average of their predicted probabilities"""
    observed: float
    """share of them in the positive class"""
    observed_low: float
    """ends of the 95% binomial interval of that share"""
    observed_high: float
    n_rows: float
    """rows; frequency weights are summed"""


@dataclass(frozen=True)
class CalibrationPicture(Picture):
    """Predicted probabilities of selected rows beside what happened."""

    kind: ClassVar[str] = "calibration"

    outcome: str
    positive: str
    """the class whose probability is predicted"""
    points: tuple[CalibrationPoint, ...]
    """rows in the order of their predicted probability"""
    n_rows: float
    """rows in all; frequency weights are summed"""
    share: float
    """share of the positive class"""
    auc: float
    """chance that a row of the positive class has the higher probability; NaN with one class"""
    brier: float
    """mean squared distance of probability and outcome"""
    log_loss: float
    """mean of minus the logarithm of the probability of what happened"""
    held_out: str = ""
    """how rows were held out, such as "5 folds"; empty if the model was fitted to them"""
    weighted: str = ""
    """what weights do: "frequency", "sampling" or nothing"""

    @property
    def brier_of_share(self) -> float:
        """The Brier score if every row had the share of the positive class as its probability."""
        return self.share * (1.0 - self.share)

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of both axes."""
        points = self.points
        low = min(min(point.predicted, point.observed_low) for point in points)
        high = max(max(point.predicted, point.observed_high) for point in points)
        top = min(_ROOM * high, 1.0)
        bottom = max(1.0 - _ROOM * (1.0 - low), 0.0)
        return (bottom if bottom > 1.0 - _WHOLE_FROM else 0.0, top if top < _WHOLE_FROM else 1.0)

    def _title(self) -> str:
        return f"Do predicted probabilities of {said(self.outcome, 40)} come true?"

    def _look(self) -> str:
        return "Look whether the marks are on the line: below it, predictions are too high."

    def _alt(self) -> str:
        return (
            f"Observed shares of {shown(self.positive, 40)} over predicted probabilities, in "
            f"{plural(len(self.points), 'group')} of rows. {self._scores()}"
        )

    def _legend(self) -> tuple[LegendItem, ...]:
        observed = LegendItem("observed, with 95% interval", "circle", "this")
        return observed, LegendItem("as predicted", "line", "muted")

    def _scores(self) -> str:
        auc = "none, with one class" if math.isnan(self.auc) else f"{self.auc:.3f}"
        return (
            f"AUC {auc}; Brier score {self.brier:.3f} ({self.brier_of_share:.3f} if every row had "
            f"the average); log loss {self.log_loss:.3f}."
        )

    def _caption(self) -> str:
        sampling = "Shares and scores are weighted by the sampling weights."
        weights = weight_words(self.weighted, sampling)
        where = (
            f"Held out ({shown(self.held_out, 40)}): each row is predicted by a fit without it."
            if self.held_out
            else "In sample: the model was fitted to these rows, so it looks better than it is."
        )
        return (
            f"P(y = {shown(self.positive, 40)} | x, s = 1) in {count(round(self.n_rows))} selected "
            f"rows. {self._scores()} {where} These rows are selected: nothing here checks the "
            f"probabilities of rows without an outcome.{weights}"
        )

    def _table(self) -> Table:
        lines = [
            [
                f"{_percent(point.low)} to {_percent(point.high)}",
                count(round(point.n_rows)),
                _percent(point.predicted),
                _percent(point.observed),
                f"{_percent(point.observed_low)} to {_percent(point.observed_high)}",
            ]
            for point in self.points
        ]
        return lay_out(
            ["Predicted probability"],
            ["Rows", "Mean predicted", "Observed", "95% interval"],
            lines,
            f"Observed shares of {shown(self.positive, 40)} by predicted probability",
            "calibration-table",
        )

    def tooltip(self, point: CalibrationPoint) -> str:
        """Return a group of rows in words, a line each."""
        ends = f"{_percent(point.observed_low)} to {_percent(point.observed_high)}"
        return (
            f"predicted {_percent(point.predicted)}\n"
            f"observed {_percent(point.observed)} ({ends})\n"
            f"{plural(round(point.n_rows), 'row')}"
        )

    def _body(self) -> Panels:
        """Return a point with its interval for each group of rows, and where they should be."""
        low, high = self.limits
        near = _NEAR * (high - low)
        marks: list[Mark | Group] = [Curve((low, high), (low, high), "muted")]
        for point in self.points:
            at, ends = point.predicted, (point.observed_low, point.observed_high)
            inner = Interval(*ends, at, "this", upright=True), Point(at, point.observed, "this")
            marks.append(Group(inner, self.tooltip(point), (at - near, at + near)))
        title = f"observed share of {shown(self.positive, 24)}"
        y = Axis(low, high, title, numbers="percent", most=(6, 6))
        x = Axis(low, high, "predicted probability", numbers="percent", most=(6, 6))
        return Panels(x, (Panel(y, tuple(marks), 270.0, 30.0),), 3.2)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
