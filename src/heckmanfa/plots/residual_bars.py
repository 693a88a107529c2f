"""Are the errors normal: residuals in standard deviations, beside the normal curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.plots._canvas import canvas
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import Drawing, Scale
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.printable import shown
from heckmanfa.text.table import LegendItem, PictureText, Table, lay_out
from heckmanfa.text.wording import count

BIN = 0.5
"""width of a bin, in standard deviations"""
FAR = 3.0
"""residuals beyond this many standard deviations are counted"""

_LEAST, _MOST = 3.0, 6.0
# Room above the bars, their height, and room below, in px.
_TOP, _TALL, _BOTTOM = 12, 230, 42


@dataclass(frozen=True)
class ResidualBars:
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

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        return PictureText(
            title=f"Are the errors of {shown(self.outcome, 40)} normal?",
            alt=(
                "Histogram of residuals in standard deviations, with the normal curve. "
                f"{self._beyond()} All numbers are in the table."
            ),
            caption=self._caption(),
            table=self._table(),
            legend=(
                LegendItem("rows", "bar", "this"),
                LegendItem("the normal curve", "line", "ols"),
            ),
        )

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
        if self.weighted == "sampling":
            words += " Rows count alike, whatever their sampling weights."
        if self.weighted == "frequency":
            words += " Each row counts as often as its weight says."
        return words

    def _table(self) -> Table:
        lines = [
            [self.span(place), _rows(rows), f"{expected:,.1f}"]
            for place, (rows, expected) in enumerate(zip(self.bars, self.normal(), strict=True))
        ]
        lines.append([f"beyond {FAR:g}", _rows(self.below + self.above), f"{self.expected:,.1f}"])
        return lay_out(
            ["Standard deviations"],
            ["Rows", "If normal"],
            lines,
            "Residuals in standard deviations",
            "residuals-table",
        )

    def span(self, place: int) -> str:
        """Return the residuals of a bin in words."""
        low, high = self.edges[place], self.edges[place + 1]
        if place == 0 and self.lowest < low:
            return f"below {_sd(high)}"
        if place == len(self.bars) - 1 and self.highest > high:
            return f"above {_sd(low)}"
        return f"{_sd(low)} to {_sd(high)}"

    def _curve(self) -> tuple[Floats, Floats]:
        x = np.linspace(self.edges[0], self.edges[-1], 121)
        return x, np.asarray(self.total * BIN * stats.norm.pdf(x))

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        drawing = Drawing(width, _TOP + _TALL + _BOTTOM, self.text().alt)
        edges, (at, normal) = self.edges, self._curve()
        x = Scale(float(edges[0]), float(edges[-1]), 46, width - 14)
        y = Scale(0.0, 1.05 * max(*self.bars, float(normal.max())), _TOP + _TALL, _TOP)
        for tick in y.ticks(5):
            if tick.value:
                drawing.line(x.start, tick.at, x.end, tick.at, "line")
            drawing.text(x.start - 6, tick.at + 4, tick.text, "tick", "end")
        expected = self.normal()
        for place, rows in enumerate(self.bars):
            left, wide = x(edges[place]) + 0.5, x(edges[place + 1]) - x(edges[place]) - 1
            words = [f"{self.span(place)} SDs", f"rows: {_rows(rows)}"]
            words.append(f"if normal: {expected[place]:,.1f}")
            with drawing.group("row", None, "\n".join(words)):
                drawing.rect(left - 0.5, y.end, wide + 1, y.start - y.end, "hit")
                if rows > 0:
                    drawing.rect(left, y(rows), wide, y.start - y(rows), "bar this")
        drawing.line(x.start, y.start, x.end, y.start, "zero")
        drawing.curve([x(value) for value in at], [y(value) for value in normal], "curve ols")
        ticks = x.ticks(6)
        title = "residual, in standard deviations"
        drawing.x_axis(x, y.end, y.start, ticks, title, grid=False, zero=False)
        return drawing.svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        with canvas(ax, 2.4) as drawn:
            (panel,) = drawn.axes
            bars = panel.bar(
                self.edges[:-1],
                self.bars,
                BIN,
                align="edge",
                color=LIGHT["this"],
                edgecolor=LIGHT["paper"],
                linewidth=0.4,
                zorder=2,
            )
            (curve,) = panel.plot(*self._curve(), color=LIGHT["ols"], zorder=3)
            panel.set_xlim(self.edges[0], self.edges[-1])
            panel.set_xlabel("residual, in standard deviations")
            panel.set_ylabel("rows")
            drawn.legend({"rows": bars, "the normal curve": curve})
        return panel


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
