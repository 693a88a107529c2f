"""What if rho were something else: coefficients over an assumed rho, and what is known of it.

Of a binary outcome, average slopes of the probability are shown in place of coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.correction_pictures import outside_window
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import (
    Axis,
    Band,
    Curve,
    Mark,
    Note,
    Panel,
    Panels,
    Point,
    Row,
    Rule,
    with_interval,
)
from heckmanfa.text.labels import said
from heckmanfa.text.passage import Name, named
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import PERCENT, with_minus, written_in

MOST_PANELS = 4
"""A picture shows this many coefficients at most."""

# Height of a panel, room above it and at its left, in px.
_HEIGHT, _ROOM, _LEFT = 170.0, 22.0, 52.0
# An interval of rho over more than this share of the axis leaves nothing to shade.
_COVERED = 0.9
_TABLE_RHO = (-0.9, -0.5, 0.0, 0.5, 0.9)


@dataclass(frozen=True)
class RhoPoint:
    """A coefficient with its 95% interval at one rho."""

    rho: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class RhoPanel:
    """A coefficient over rho."""

    feature: str
    """name of the feature"""
    detail: str
    """the step that it is of: "one more year", "south rather than north" """
    points: tuple[RhoPoint, ...]
    """ascending in rho; one is at zero"""
    at_hat: RhoPoint | None
    """at rho-hat; None if that is beyond the points"""
    sign_change: float
    """the rho at which the coefficient is zero; NaN if it keeps its sign"""
    at_second: RhoPoint | None = None
    """at another maximum of the likelihood"""
    column: int = 0
    """the column of X that it is of"""
    unit: str = ""
    """what it is in: "percentage points", "percent", or the units of the outcome"""

    def at(self, rho: float) -> RhoPoint:
        """Return the point that is nearest to some rho."""
        return min(self.points, key=lambda point: abs(point.rho - rho))

    def scale(self) -> Scale:
        """Return the scale of its axis, from 0 at the lower end to 1 at the upper one."""
        values = [end for point in self.points for end in (point.low, point.high)]
        return Scale.over(values, 0.0, 1.0, pad=0.04, include=(0.0,))

    def numbers(self, point: RhoPoint) -> list[str]:
        """Write the coefficient and the ends of its interval, with the decimals of the largest."""
        largest = max(max(abs(end.low), abs(end.high)) for end in self.points)
        return written_in(self.unit)(point.estimate, point.low, point.high, largest)[:3]

    def words(self, point: RhoPoint) -> str:
        """Write the coefficient and its interval, likewise."""
        return "{} ({} to {})".format(*self.numbers(point))

    @property
    def rises(self) -> bool:
        """Whether the coefficient rises with rho."""
        return self.points[-1].estimate > self.points[0].estimate

    @property
    def turns(self) -> bool:
        """Whether the sign turns among the points."""
        return self.points[0].rho <= self.sign_change <= self.points[-1].rho

    @property
    def title(self) -> str:
        """The coefficient's name in full."""
        return f"{said(self.feature)}: {self.detail}" if self.detail else said(self.feature)


@dataclass(frozen=True)
class RhoBar:
    """A 95% interval of rho."""

    label: str
    """beside the bar: "features known", "with the search", or "95% of rho" """
    how: str
    """what it follows from: "likelihood", ..."""
    low: float
    high: float
    estimate: float
    given: str = ""
    """what it takes as given, in words: "were the features known" """

    @property
    def words(self) -> str:
        """The interval, what it takes as given, and what it follows from."""
        words = f"{_rho(self.low)} to {_rho(self.high)}", self.given, f"({self.how})"
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class OverRho(Picture):
    """Coefficients of one model over a rho that is assumed rather than estimated."""

    kind: ClassVar[str] = "over_rho"

    outcome: str
    model: str
    """which model: "best assignment", "chosen assignment", "this model" """
    features: tuple[str, ...]
    """all features of the model"""
    panels: tuple[RhoPanel, ...]
    """the coefficients that are shown"""
    rho_hat: float
    """the model's rho; it may lie beyond the points"""
    fitted: str = ""
    """what the model is called at that rho, if it is another"""
    hat: str = "rho-hat"
    """what that rho is called"""
    bars: tuple[RhoBar, ...] = ()
    """what is known of rho, the narrower first"""
    no_bars: str = ""
    """why a bar is missing; empty if none is"""
    window: tuple[float, float] | None = None
    """the window that rho was kept in"""
    second_maximum: float = math.nan
    """rho at another maximum of the likelihood"""
    classical: bool = False
    """whether the model's standard errors are others than these"""
    target: str = ""
    """the probability whose average slopes, in percentage points, are shown in place of
    coefficients; empty if the outcome is not binary"""
    percent_of: str = ""
    """what changes by the percentages that are shown in place of coefficients on its logarithm"""
    of_many: bool = False
    """whether it is one of the models of an average, whose numbers are others"""

    @property
    def what(self) -> str:
        """What is shown over rho."""
        return "average slope" if self.target else "effect" if self.percent_of else "coefficient"

    @property
    def at_zero(self) -> str:
        """The model with rho = 0."""
        naive = "naive probit" if self.target else "least squares"
        return f"{naive} of the {self.model}" if self.of_many else naive

    @property
    def axis(self) -> str:
        """What the numbers are."""
        return PERCENT if self.percent_of else "percentage points" if self.target else self.what

    @property
    def ends(self) -> tuple[float, float]:
        """The range of rho that is drawn."""
        points = self.panels[0].points
        return points[0].rho, points[-1].rho

    def shaded(self) -> list[tuple[float, float]]:
        """The parts of the range to shade: the widest bar, or what is outside the window.

        A bar that covers nearly everything is not shaded: grey would tell nothing apart.
        """
        low, high = self.ends
        if self.window is not None or not self.bars:
            return outside_window(self.window, low, high)
        bar = self.bars[-1]
        if self.is_covered or bar.low >= high or bar.high <= low:
            return []
        return [(max(bar.low, low), min(bar.high, high))]

    @property
    def is_covered(self) -> bool:
        """Whether the widest interval of rho covers nearly all of the range."""
        if self.window is not None or not self.bars:
            return False
        (low, high), bar = self.ends, self.bars[-1]
        return min(bar.high, high) - max(bar.low, low) > _COVERED * (high - low)

    @property
    def hat_in_view(self) -> bool:
        """Whether rho-hat is among the points."""
        return self.ends[0] <= self.rho_hat <= self.ends[1]

    def _title(self) -> str:
        return "What if rho were something else?"

    def _look(self) -> str:
        return "Look whether a line crosses zero: then the sign hangs on rho."

    def _legend(self) -> tuple[LegendItem, ...]:
        items = [LegendItem(f"{self.at_zero} (rho = 0)", "diamond", "ols")]
        if self.hat_in_view:
            words = f"{self.fitted or self.model} (rho = {_rho(self.rho_hat)})"
            items.append(LegendItem(words, "circle", "this"))
        if self.panels[0].at_second is not None:
            words = f"second maximum (rho = {_rho(self.second_maximum)})"
            items.append(LegendItem(words, "hollow", "problem"))
        return tuple(items)

    def _alt(self) -> str:
        first = self.panels[0]
        low, high = first.points[0], first.points[-1]
        at_low, at_high = written_in(first.unit)(low.estimate, high.estimate)
        n_turning = sum(panel.turns for panel in self.panels)
        m = len(self.panels)
        turning = (
            f"{n_turning or 'None'} of {m} {self.what}s {'turn' if n_turning > 1 else 'turns'} sign"
            if m > 1
            else ("Its sign turns" if n_turning else "Its sign stays")
        )
        name = said(first.feature, 40)
        return (
            f"{self.what.capitalize()}s over an assumed rho. That of {name} goes from {at_low} at "
            f"rho = {_rho(low.rho)} to {at_high} at {_rho(high.rho)}. {turning} in that range."
        )

    def _caption(self) -> str:
        words = [f"{self._which()} for a rho that is assumed, with {self._interval}."]
        if self.target:
            words.append(f"Slopes of {self.target}, in percentage points.")
        if self.percent_of:
            words.append(f"Effects are in percent of {self.percent_of}.")
        if self.window is not None:
            low, high = (with_minus(f"{end:g}") for end in self.window)
            words.append(
                f"rho was kept in [{low}, {high}], so it has no interval; outside is grey."
            )
        elif self.bars:
            words.append(self._known())
        if self.no_bars and self.window is None:
            words.append(self.no_bars)
        if not self.hat_in_view and math.isfinite(self.rho_hat):
            words.append(f"{self.hat}, {_rho(self.rho_hat)}, is beyond the picture.")
        if math.isfinite(self.second_maximum):
            words.append(
                f"The likelihood has a second maximum at rho = {_rho(self.second_maximum)}."
            )
        if self.classical:
            words.append(f"The intervals of the {self.what}s are classical here.")
        return " ".join(words)

    @property
    def _interval(self) -> str:
        several = len(self.panels) < len(self.features)
        return "their 95% intervals" if several else "its 95% interval"

    def _known(self) -> str:
        """Say what is known of rho, and whether grey or the bars below show it."""
        one = len(self.bars) == 1
        intervals = ", ".join(bar.words for bar in self.bars)
        are = "95% interval of rho" if one else "95% intervals of rho"
        grey = "The " if self.is_covered else "Grey, and the "
        words = f"{grey}{'bar' if one else 'bars'} below: {are}, {intervals}."
        if self.is_covered:
            wide = "It covers" if one else "The wider one covers"
            words += f" {wide} nearly every rho: these data do not say which is right."
        return words

    def _which(self) -> str:
        """Say of which model the coefficients are, and how many of them are shown."""
        if len(self.features) == 1:
            return f"The {self.what} of {said(self.features[0])}"
        if len(self.panels) < len(self.features):
            many = f"{len(self.panels)} of {len(self.features)} features"
            return f"{self.what.capitalize()}s of {many},"
        return f"Each {self.what} of {named(self.features)}"

    def _table(self) -> Table:
        low, high = self.ends
        places = [rho for rho in _TABLE_RHO if low <= rho <= high]
        numbers = [
            f"At rho = 0, {self.at_zero}" if rho == 0 else f"At {with_minus(f'{rho:g}')}"
            for rho in places
        ]
        numbers += [f"At {self.hat}, {_rho(self.rho_hat)}", "Sign turns at"]
        details = any(panel.detail for panel in self.panels)
        rows = []
        for panel in self.panels:
            row = [Name(panel.feature).key, *([panel.detail] if details else [])]
            row += [panel.words(panel.at(rho)) for rho in places]
            row += [
                "" if panel.at_hat is None else panel.words(panel.at_hat),
                "never" if math.isnan(panel.sign_change) else _rho(panel.sign_change),
            ]
            rows.append(row)
        caption = f"{self.what.capitalize()}s over rho"
        if self.target:
            caption += f" of {self.target}, in percentage points"
        if self.percent_of:
            caption += f", in percent of {self.percent_of}"
        texts = ["Feature", "Change"] if details else ["Feature"]
        return lay_out(texts, numbers, rows, caption, "over-rho-table")

    def _more(self) -> tuple[Table, ...]:
        titles = ["95% interval of rho", "From"], ["rho-hat", "Interval"]
        rows = [
            [bar.label, bar.how, _rho(bar.estimate), f"{_rho(bar.low)} to {_rho(bar.high)}"]
            for bar in self.bars
        ]
        return (lay_out(*titles, rows, "What is known of rho", "rho-bars-table"),) if rows else ()

    def _body(self) -> Panels:
        """Return a panel for each coefficient, and below them what is known of rho."""
        below = []
        for bar in self.bars:
            marks = with_interval(bar.estimate, bar.low, bar.high, "this")
            below.append(Row(bar.label, marks, f"95% interval of rho: {bar.words}"))
        x = Axis(*self.ends, "rho that is assumed", grid=False)
        panels = tuple(self._panel(panel) for panel in self.panels)
        return Panels(x, panels, below=tuple(below), left=_LEFT, axes="beside")

    def _panel(self, panel: RhoPanel) -> Panel:
        y = panel.scale()
        return Panel(
            Axis(y.low, y.high, printed=self.axis, most=(5, 5)),
            tuple(self._marks(panel)),
            *(_HEIGHT, _ROOM, panel.title, self._tip(panel), panel.feature),
            shaded=tuple(self.shaded()),
        )

    def _marks(self, panel: RhoPanel) -> list[Mark]:
        # A fifth of the points, and the last: nobody sees the others.
        points = (*panel.points[:-1:5], panel.points[-1])
        rho = tuple(point.rho for point in points)
        lows, highs = zip(*((point.low, point.high) for point in points), strict=True)
        marks: list[Mark] = [
            Rule(0.0, kind="line"),
            Rule(y=0.0),
            Band(rho, lows, highs, "this"),
            Curve(rho, tuple(point.estimate for point in points), "this"),
        ]
        if panel.turns:
            turn = panel.sign_change
            words = f"sign turns at {_rho(turn)}"
            marks += [Point(turn, 0.0, "ink", "stroke"), Note(turn, 0.0, words, panel.rises)]
        if panel.at_second is not None:
            second = panel.at_second
            marks.append(Point(second.rho, second.estimate, "problem", "hollow"))
        if panel.at_hat is not None:
            marks.append(Point(panel.at_hat.rho, panel.at_hat.estimate, "this"))
        marks.append(Point(0.0, panel.at(0.0).estimate, "ols", "diamond"))
        return marks

    def _tip(self, panel: RhoPanel) -> str:
        lines = [panel.title, f"{self.at_zero}: {panel.words(panel.at(0.0))}"]
        if panel.at_hat is not None:
            rho = _rho(self.rho_hat)
            fitted = self.fitted or self.model
            lines.append(f"{fitted}, rho = {rho}: {panel.words(panel.at_hat)}")
        if panel.turns:
            lines.append(f"sign turns at rho = {_rho(panel.sign_change)}")
        return "\n".join(lines)


def _rho(value: float) -> str:
    return with_minus(f"{value:.2f}") if math.isfinite(value) else ""
