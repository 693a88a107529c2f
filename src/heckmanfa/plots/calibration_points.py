"""Do predicted probabilities come true: shares of the positive class beside what was predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from heckmanfa.plots._canvas import canvas, label_of
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import Drawing, Scale, Tick
from heckmanfa.text.printable import shown
from heckmanfa.text.table import LegendItem, PictureText, Table, lay_out
from heckmanfa.text.wording import count, plural

# Room above the points, their height, and room below, in px.
_TOP, _TALL, _BOTTOM = 30, 270, 42
# Room beside the furthest end of an interval, as a share of the axis.
_ROOM = 1.08
# An axis shows all of 0 to 100% unless that leaves so much of it empty.
_MOST = 0.6
_AS_PREDICTED, _OBSERVED = "as predicted", "observed, with 95% interval"
_WEIGHTED = {
    "": "",
    "frequency": " Each row counts as often as its weight says.",
    "sampling": " Shares and scores are weighted by the sampling weights.",
}


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
class CalibrationPicture:
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
        return (bottom if bottom > 1.0 - _MOST else 0.0, top if top < _MOST else 1.0)

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        return PictureText(
            title=f"Do predicted probabilities of {shown(self.outcome, 40)} come true?",
            alt=(
                f"Observed shares of {shown(self.positive, 40)} over predicted probabilities, in "
                f"{plural(len(self.points), 'group')} of rows. {self._scores()} All numbers are in "
                "the table."
            ),
            caption=self._caption(),
            table=self._table(),
            legend=(
                LegendItem(_OBSERVED, "circle", "this"),
                LegendItem(_AS_PREDICTED, "line", "muted"),
            ),
        )

    def _scores(self) -> str:
        auc = "none, with one class" if math.isnan(self.auc) else f"{self.auc:.3f}"
        return (
            f"AUC {auc}; Brier score {self.brier:.3f} ({self.brier_of_share:.3f} if every row had "
            f"the average); log loss {self.log_loss:.3f}."
        )

    def _caption(self) -> str:
        where = (
            f"Held out ({shown(self.held_out, 40)}): each row is predicted by a fit without it."
            if self.held_out
            else "In sample: the model was fitted to these rows, so it looks better than it is."
        )
        return (
            f"P(y = {shown(self.positive, 40)} | x, s = 1) in {count(round(self.n_rows))} selected "
            f"rows. {self._scores()} {where} These rows are selected: nothing here checks the "
            f"probabilities of rows without an outcome.{_WEIGHTED[self.weighted]}"
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

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        floor = _TOP + _TALL
        drawing = Drawing(width, floor + _BOTTOM, self.text().alt)
        low, high = self.limits
        x, y = Scale(low, high, 46, width - 18), Scale(low, high, floor, _TOP)
        for tick in _ticks(y):
            drawing.line(x.start, tick.at, x.end, tick.at, "line")
            drawing.text(x.start - 6, tick.at + 4, tick.text, "tick", "end")
        drawing.text(2, 14, f"observed share of {shown(self.positive, 24)}", "title")
        drawing.line(x(low), y(low), x(high), y(high), "curve muted")
        for point in self.points:
            at, seen = x(point.predicted), y(point.observed)
            with drawing.group("row", None, self.tooltip(point)):
                drawing.rect(at - 9, _TOP, 18, _TALL, "hit")
                ends = (y(point.observed_low), y(point.observed_high))
                drawing.line(at, ends[0], at, ends[1], "interval this")
                drawing.circle(at, seen, "mark this")
        drawing.x_axis(x, _TOP, floor, _ticks(x), "predicted probability", zero=False)
        return drawing.svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        low, high = self.limits
        with canvas(ax, 3.2) as drawn:
            (panel,) = drawn.axes
            (line,) = panel.plot([low, high], [low, high], color=LIGHT["muted"], zorder=1)
            seen = [point.observed for point in self.points]
            marks = panel.errorbar(
                [point.predicted for point in self.points],
                seen,
                yerr=[
                    [point.observed - point.observed_low for point in self.points],
                    [point.observed_high - point.observed for point in self.points],
                ],
                fmt="o",
                color=LIGHT["this"],
                markeredgecolor=LIGHT["paper"],
                zorder=2,
            )
            panel.set_xlim(low, high)
            panel.set_ylim(low, high)
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
            panel.set_xlabel("predicted probability")
            panel.set_ylabel(f"observed share of {label_of(shown(self.positive, 24))}")
            drawn.legend({_OBSERVED: marks, _AS_PREDICTED: line})
        return panel


def _ticks(scale: Scale) -> tuple[Tick, ...]:
    """Return round percentages along a scale of probabilities."""
    percent = Scale(100.0 * scale.low, 100.0 * scale.high, scale.start, scale.end)
    return percent.ticks(6, unit="%")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
