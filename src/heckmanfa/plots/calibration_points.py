"""Do predicted probabilities come true: shares of the positive class beside what was predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Axis, Curve, Group, Interval, Panel, Panels, Point, Scene
from heckmanfa.text.printable import shown
from heckmanfa.text.table import LegendItem, PictureText, Table, lay_out
from heckmanfa.text.wording import count, plural

# Room above the points and their height, in px.
_ROOM_ABOVE, _HEIGHT = 30.0, 270.0
# How far beside a point a pointer finds it, as a share of the axis.
_NEAR = 0.02
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

    def scene(self) -> Scene:
        """Return a point with its interval for each group of rows, and where they should be."""
        low, high = self.limits
        near = _NEAR * (high - low)
        points = [
            Group(
                (
                    Interval(
                        *(point.observed_low, point.observed_high, point.predicted, "this"),
                        upright=True,
                    ),
                    Point(point.predicted, point.observed, "this"),
                ),
                self.tooltip(point),
                (point.predicted - near, point.predicted + near),
            )
            for point in self.points
        ]
        title = f"observed share of {shown(self.positive, 24)}"
        panel = Panel(
            Axis(low, high, title, numbers="percent", most=(6, 6)),
            (Curve((low, high), (low, high), "muted"), *points),
            *(_HEIGHT, _ROOM_ABOVE),
        )
        x = Axis(low, high, "predicted probability", numbers="percent", most=(6, 6))
        return Scene(self.text(), Panels(x, (panel,)), 3.2)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
