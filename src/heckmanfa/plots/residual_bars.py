"""Are the errors normal: residuals in standard deviations, beside the normal curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Axis, Bar, Curve, Group, Panel, Panels, Rule, Scene
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.printable import shown
from heckmanfa.text.table import LegendItem, PictureText, Table, lay_out
from heckmanfa.text.wording import count

BIN = 0.5
"""width of a bin, in standard deviations"""
FAR = 3.0
"""residuals beyond this many standard deviations are counted"""

_LEAST, _MOST = 3.0, 6.0
# Room above the bars and their height, in px.
_ROOM, _HEIGHT = 12.0, 230.0


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

    def scene(self) -> Scene:
        """Return a bar for each bin, and the normal curve."""
        expected, edges = self.normal(), self.edges.tolist()
        bars = [
            Group(
                (Bar(ends, (0.0, rows), "this"),),
                f"{self.span(place)} SDs\nrows: {_rows(rows)}\nif normal: {expected[place]:,.1f}",
                ends,
            )
            for place, (rows, ends) in enumerate(zip(self.bars, pairwise(edges), strict=True))
        ]
        at = np.linspace(edges[0], edges[-1], 121)
        normal = self.total * BIN * stats.norm.pdf(at)
        curve = Curve(tuple(at.tolist()), tuple(normal.tolist()), "ols")
        top = 1.05 * max(*self.bars, float(normal.max()))
        panel = Panel(
            Axis(0.0, top, printed="rows", most=(5, 5)),
            (*bars, Rule(y=0.0), curve),
            *(_HEIGHT, _ROOM),
        )
        title = "residual, in standard deviations"
        x = Axis(edges[0], edges[-1], title, most=(6, 6), grid=False)
        return Scene(self.text(), Panels(x, (panel,)), 2.4)


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
