"""Do rows with an outcome cover those without: both histograms of the probability of selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.normal import inverse_mills
from heckmanfa.plots._canvas import canvas
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import Drawing, Scale, Tick
from heckmanfa.text.numerals import figure
from heckmanfa.text.table import LegendItem, PictureText, Table, lay_out
from heckmanfa.text.wording import count, plural

N_BINS = 20
_LAMBDA_AT = (0.1, 0.25, 0.5, 0.75, 0.9)
# Room above the bars, their height, and room below, in px.
_TOP, _TALL, _BOTTOM = 40, 240, 42
_FLOOR = _TOP + _TALL
# What words about the bars need above and below them.
_ROOM = 20
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_WITH, _WITHOUT, _NOWHERE = "with an outcome", "without", "no row with an outcome"


@dataclass(frozen=True)
class SelectionOverlap:
    """Rows by their probability of being selected."""

    kind: ClassVar[str] = "overlap"

    selected: tuple[float, ...]
    """rows with an outcome, by bins of equal width from 0 to 1"""
    unselected: tuple[float, ...]
    """rows without one"""
    range: tuple[float, float]
    """the lowest and the highest probability of a row with an outcome"""
    n_outside: int
    """rows with a probability outside that range"""
    share_outside: float
    """their share of all rows, by weight"""
    weighted: str = ""
    """what weights do to the bars: "frequency", "sampling" or nothing"""
    has_lambda: bool = True
    """whether the correction is a term in lambda; that of a binary outcome is not"""

    @property
    def edges(self) -> Floats:
        """Edges of the bins."""
        return np.linspace(0.0, 1.0, len(self.selected) + 1)

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        legend = (
            LegendItem(_WITH, "bar", "this"),
            LegendItem(_WITHOUT, "framed", "ink"),
            *([LegendItem(_NOWHERE, "slanted", "pale")] if self._blank() else []),
        )
        return PictureText(
            title="Do those with an outcome cover those without?",
            alt=self._alt(),
            caption=self._caption(),
            table=self._table(),
            legend=legend,
        )

    def _outside(self) -> str:
        rows = plural(self.n_outside, "row")
        if self.weighted == "sampling":
            return f"{_share(self.share_outside)} of the weight ({rows}) is"
        verb = "is" if self.n_outside == 1 else "are"
        return f"{_share(self.share_outside)} of the rows ({count(self.n_outside)}) {verb}"

    def _alt(self) -> str:
        low, high = (f"{100 * end:.0f}%" for end in self.range)
        return (
            "Mirrored histogram of the probability of being selected. Rows with an outcome reach "
            f"from {low} to {high}; {self._outside()} outside. All numbers "
            "are in the table."
        )

    def _caption(self) -> str:
        words = "Every row is where rows with an outcome are."
        if self.n_outside:
            words = (
                f"{self._outside()} where no row with an outcome is: there "
                "the correction is a guess."
            )
        if self.has_lambda:
            words += " lambda, above, falls as the probability rises."
        if self.weighted == "sampling":
            words += " Bars add up sampling weights, scaled to an average of 1."
        if self.weighted == "frequency":
            words += " Each row counts as often as its weight says."
        return words

    def _table(self) -> Table:
        edges = self.edges
        lines = [
            [
                f"{100 * low:.0f} to {100 * high:.0f}%",
                self._rows(inside),
                self._rows(outside),
                *([figure(_lambda(low)) or "no limit"] if self.has_lambda else []),
            ]
            for low, high, inside, outside in zip(
                edges[:-1], edges[1:], self.selected, self.unselected, strict=True
            )
        ]
        outside = self.share_outside * (sum(self.selected) + sum(self.unselected))
        of_lambda = ["lambda at the lower end"] if self.has_lambda else []
        empty = [""] * len(of_lambda)
        lines.append(["outside the range", "0", self._rows(outside), *empty])
        return lay_out(
            ["Probability of being selected"],
            ["With an outcome", "Without", *of_lambda],
            lines,
            "Rows by their probability of being selected",
            "overlap-table",
        )

    def _rows(self, value: float) -> str:
        return f"{value:,.1f}" if self.weighted == "sampling" else count(round(value))

    def _blank(self) -> list[tuple[float, float]]:
        """Return where no row with an outcome is."""
        low, high = self.range
        return [(start, end) for start, end in ((0.0, low), (high, 1.0)) if end > start]

    @property
    def _unit(self) -> str:
        return "rows, weighted" if self.weighted == "sampling" else "rows"

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        drawing = Drawing(width, _FLOOR + _BOTTOM, self.text().alt)
        x = Scale(0.0, 1.0, 46, width - 14)
        most = max(*self.selected, *self.unselected, 1.0)
        up, down = (max(*side, 0.2 * most) for side in (self.selected, self.unselected))
        y = Scale(-down, up, _FLOOR - _ROOM, _TOP + _ROOM)
        self._hatch_blank(drawing, x, y)
        for tick in y.ticks(6):
            if tick.value:
                drawing.line(x.start, tick.at, x.end, tick.at, "line")
            drawing.text(
                x.start - 6, tick.at + 4, tick.text.lstrip("\N{MINUS SIGN}"), "tick", "end"
            )
        for place in range(len(self.selected)):
            self._bar(drawing, x, y, place)
        drawing.line(x.start, y(0.0), x.end, y(0.0), "zero")
        drawing.text(x.start + 6, _TOP + 14, f"{_WITH} ({self._unit})", "tick halo")
        drawing.text(x.end - 6, _FLOOR - 6, f"{_WITHOUT} ({self._unit})", "tick halo", "end")
        if self.has_lambda:
            drawing.text(x.start, 13, "lambda", "tick")
        for share in _LAMBDA_AT if self.has_lambda else ():
            drawing.text(x(share), 27, f"{_lambda(share):.1f}", "tick", "middle")
            drawing.line(x(share), 31, x(share), 35, "axis")
        ticks = [Tick(share, x(share), f"{100 * share:.0f}%") for share in _QUARTERS]
        drawing.x_axis(
            x, _TOP, _FLOOR, ticks, "probability of being selected", grid=False, zero=False
        )
        return drawing.svg()

    def _hatch_blank(self, drawing: Drawing, x: Scale, y: Scale) -> None:
        """Hatch where no row with an outcome is, around the bars of the others."""
        for start, end in self._blank():
            for place, (low, high) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True)):
                left, right = x(max(start, float(low))), x(min(end, float(high)))
                top, bottom = y(self.selected[place]), y(-self.unselected[place])
                drawing.hatch(left, _TOP, right - left, top - _TOP, "hatch pale", "\\")
                drawing.hatch(left, bottom, right - left, _FLOOR - bottom, "hatch pale", "\\")

    def _bar(self, drawing: Drawing, x: Scale, y: Scale, place: int) -> None:
        low, high = self.edges[place], self.edges[place + 1]
        inside, outside = self.selected[place], self.unselected[place]
        if inside == 0 and outside == 0:
            return
        left, wide, middle = x(low) + 0.5, x(high) - x(low) - 1, y(0.0)
        with drawing.group("row", None, self.tooltip(place)):
            drawing.rect(left - 0.5, _TOP, wide + 1, _TALL, "hit")
            if inside > 0:
                drawing.rect(left, y(inside), wide, middle - y(inside), "bar this")
            if outside > 0:
                drawing.hatch(left, middle, wide, y(-outside) - middle, "hatch ink")
                drawing.rect(left, middle, wide, y(-outside) - middle, "frame")

    def tooltip(self, place: int) -> str:
        """Return the rows of a bin in words, a line each."""
        low, high = self.edges[place], self.edges[place + 1]
        values = f"{_lambda(low):.2f} to {_lambda(high):.2f}"
        if low <= 0.0:
            values = f"{_lambda(high):.2f} or more"
        of_lambda = f", lambda {values}" if self.has_lambda else ""
        return (
            f"{100 * low:.0f} to {100 * high:.0f}%{of_lambda}\n"
            f"{_WITH}: {self._rows(self.selected[place])}\n"
            f"{_WITHOUT}: {self._rows(self.unselected[place])}"
        )

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        with canvas(ax, 2.8) as drawn:
            (panel,) = drawn.axes
            left, wide = self.edges[:-1], 1.0 / len(self.selected)
            style = {"align": "edge", "linewidth": 0.4, "zorder": 2}
            filled = panel.bar(
                left, self.selected, wide, color=LIGHT["this"], edgecolor=LIGHT["paper"], **style
            )
            hatched = panel.bar(
                left,
                [-rows for rows in self.unselected],
                wide,
                facecolor=LIGHT["paper"],
                edgecolor=LIGHT["ink"],
                hatch="////",
                **style,
            )
            marks = {_WITH: filled, _WITHOUT: hatched}
            for low, high in self._blank():
                marks[_NOWHERE] = panel.axvspan(
                    low,
                    high,
                    facecolor="none",
                    edgecolor=LIGHT["muted"],
                    hatch="\\\\\\",
                    linewidth=0,
                    alpha=0.5,
                    zorder=1,
                )
            panel.axhline(0.0, color=LIGHT["ink"], linewidth=0.8, zorder=3)
            panel.set_xlim(0.0, 1.0)
            panel.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
            panel.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
            panel.set_xlabel("probability of being selected")
            panel.set_ylabel(self._unit)
            if self.has_lambda:
                top = panel.secondary_xaxis("top")
                top.set_xticks(_LAMBDA_AT, [f"{_lambda(share):.1f}" for share in _LAMBDA_AT])
                top.set_xlabel("lambda")
            drawn.legend(marks)
        return panel


def overlap_of(
    probability: Floats,
    selected: Mask,
    weight: Floats | None,
    weight_kind: str,
    *,
    has_lambda: bool = True,
) -> SelectionOverlap:
    """Count rows by their probability of being selected; ``weight_kind`` matters with weights."""
    counted = np.ones(len(probability)) if weight is None else weight
    bins = [
        np.histogram(probability[side], N_BINS, (0.0, 1.0), weights=counted[side])[0]
        for side in (selected, ~selected)
    ]
    low, high = float(probability[selected].min()), float(probability[selected].max())
    outside = (probability < low) | (probability > high)
    frequencies = weight is not None and weight_kind == "frequency"
    return SelectionOverlap(
        selected=tuple(map(float, bins[0])),
        unselected=tuple(map(float, bins[1])),
        range=(low, high),
        n_outside=int(counted[outside].sum() if frequencies else np.count_nonzero(outside)),
        share_outside=float(counted[outside].sum() / counted.sum()),
        weighted="" if weight is None else weight_kind,
        has_lambda=has_lambda,
    )


def _lambda(probability: float) -> float:
    """Return lambda at a probability of being selected; none at 0."""
    if probability <= 0.0:
        return float("nan")
    return float(inverse_mills(stats.norm.ppf(min(probability, 1.0 - 1e-16))))


def _share(share: float) -> str:
    if 0.0 < share < 0.0005:
        return "<0.1%"
    return f"{100 * share:.1f}%"
