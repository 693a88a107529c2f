"""The coefficient of lambda, several ways: averaged, in the best assignments, with all features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from heckmanfa.plots._canvas import canvas, label_of
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import WIDE, Drawing, Scale
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.printable import shown
from heckmanfa.text.shortening import cells, cut
from heckmanfa.text.table import Column, PictureText, Table
from heckmanfa.text.wording import effects, plural, some

_ROW = 36
_MORE = 0.1
_WORDS = ("none", "one", "two", "three", "four", "five", "six")
_PAIR = 2
# Of two ways, and of more.
_NONE_OR_ALL = {
    False: ("Neither interval excludes", "None of {} intervals excludes"),
    True: ("Both intervals exclude", "All {} intervals exclude"),
}


def _count(value: int) -> str:
    return _WORDS[value] if value < len(_WORDS) else str(value)


@dataclass(frozen=True)
class ImrEstimate:
    """The coefficient of lambda in one way of estimating it."""

    label: str
    """the way: "averaged", "best", ..."""
    estimate: float
    low: float
    """lower end of the 95% interval"""
    high: float
    features: tuple[str, ...] | None = None
    """the features of the assignment, if it is one"""
    detail: str = ""
    """words under the label where ``features`` are None"""
    sets_range: bool = True
    """whether the picture is as wide as its interval"""

    @property
    def is_found(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def numbers(self) -> tuple[str, str]:
        """The estimate and its interval; the latter is empty if there is none."""
        estimate, low, high = effects(self.estimate, self.low, self.high)
        return estimate, f"{low} to {high}" if low and high else ""

    def under(self, most: int) -> str:
        """Say what is estimated, in at most so many cells."""
        if self.features is None:
            return cut(self.detail, most)
        if not self.features:
            return "no feature"
        whole = " + ".join(shown(name) for name in self.features)
        if cells(whole) <= most:
            return whole
        more = len(self.features) - 1
        if not more:
            return cut(self.features[0], most)
        words = f" + {more} more"
        return cut(self.features[0], max(most - len(words), 4)) + words

    @property
    def described(self) -> str:
        """Say in full what is estimated."""
        if self.features is None:
            return self.detail
        return some(list(self.features), 12) if self.features else "no feature"


@dataclass(frozen=True)
class ImrEstimates:
    """The coefficient of lambda, the inverse Mills ratio, with 95% intervals."""

    kind: ClassVar[str] = "imr"

    estimates: tuple[ImrEstimate, ...]
    """the model's own first"""
    outcome: str
    window: tuple[float, float] | None = None
    """the window that rho was kept in, so nothing is tested"""
    note: str = ""
    """a sentence about how the ways differ; empty if there is nothing to say"""

    @property
    def n_found(self) -> int:
        """How many intervals exclude zero."""
        return sum(one.is_found for one in self.estimates)

    @property
    def ends(self) -> tuple[float, float]:
        """The range to draw: zero, and the intervals that set it, and a little more."""
        values = [0.0]
        setting = [one for one in self.estimates if one.sets_range] or list(self.estimates)
        for one in setting:
            values += [end for end in (one.estimate, one.low, one.high) if math.isfinite(end)]
        more = _MORE * (max(values) - min(values)) or 1.0
        return min(values) - more, max(values) + more

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        m = len(self.estimates)
        title = "The coefficient of lambda" + (f", {_count(m)} ways" if m > 1 else "")
        return PictureText(
            title=title, alt=self._alt(), caption=self._caption(), table=self._table()
        )

    def found_words(self) -> str:
        """Say how many of the intervals exclude zero, or why that is not said."""
        m, n = len(self.estimates), self.n_found
        if self.window is not None:
            low, high = (with_minus(f"{end:g}") for end in self.window)
            return f"rho was kept in [{low}, {high}], so none of these tests it."
        if m == 1:
            return f"Its 95% interval {'excludes' if n else 'includes'} 0."
        if n in (0, m):
            return f"{_NONE_OR_ALL[n == m][m > _PAIR].format(_count(m))} 0."
        exclude = "excludes" if n == 1 else "exclude"
        return f"{_count(n).capitalize()} of {_count(m)} intervals {exclude} 0."

    def _alt(self) -> str:
        first = self.estimates[0]
        estimate, given = first.numbers
        given = f", 95% interval {given}" if given else ""
        what = "Intervals" if self.window is None else "Estimates"
        return (
            f"{what} of the coefficient of lambda, {plural(len(self.estimates), 'way')} of "
            f"estimating it. {first.label.capitalize()}: {estimate}{given}. "
            f"{self.found_words()} All numbers are in the table."
        )

    def _caption(self) -> str:
        clipped = any(one.low < self.ends[0] or one.high > self.ends[1] for one in self.estimates)
        arrow = " An arrow: the interval runs on." if clipped else ""
        note = f" {self.note}" if self.note else ""
        return (
            "lambda, the inverse Mills ratio, carries the correction. "
            f"{self.found_words()}{arrow}{note}"
        )

    def _table(self) -> Table:
        columns = (
            Column("Estimate of", is_number=False),
            Column("Features", is_number=False),
            Column("Coefficient"),
            Column("95% interval"),
        )
        rows = tuple(
            [
                one.label,
                one.described,
                *one.numbers,
            ]
            for one in self.estimates
        )
        return Table(columns, rows, "The coefficient of lambda", "imr-table")

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        wide = width >= WIDE
        left = 158 if wide else 130
        bottom = 8 + _ROW * len(self.estimates)
        drawing = Drawing(width, bottom + 42, self._alt())
        x = Scale(*self.ends, left, width - 12)
        drawing.x_axis(x, 4, bottom, x.ticks(6 if wide else 4), "coefficient of lambda")
        for place, one in enumerate(self.estimates):
            top = 8 + _ROW * place
            y = top + _ROW / 2
            estimate, given = one.numbers
            words = f"{one.label}: {estimate}"
            words += f"\n95% interval {given}" if given else ""
            words += f"\n{one.described}" if one.described else ""
            with drawing.group("row", label=words):
                drawing.hit(top, _ROW)
                under = one.under(18 if wide else 15)
                drawing.text(left - 12, y + (-2 if under else 4), one.label, "lab", "end")
                drawing.text(left - 12, y + 13, under, "sub", "end")
                drawing.interval(x, y, one.low, one.high, "this")
                if x.low <= one.estimate <= x.high:
                    drawing.circle(x(one.estimate), y, "mark this")
        return drawing.svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        m = len(self.estimates)
        low, high = self.ends
        with canvas(ax, 0.8 + 0.34 * m) as drawn:
            (panel,) = drawn.axes
            panel.axvline(0.0, color=LIGHT["ink"], linewidth=0.8, zorder=1)
            for place, one in enumerate(self.estimates):
                ends = max(one.low, low), min(one.high, high)
                panel.plot(ends, [place, place], color=LIGHT["this"], linewidth=1.6, zorder=2)
                for end, edge, arrow in ((one.low, low, "<"), (-one.high, -high, ">")):
                    if end < edge:
                        panel.plot(
                            *([abs(edge) * (1 if arrow == ">" else -1)], [place]),
                            marker=arrow,
                            color=LIGHT["this"],
                            clip_on=False,
                        )
                if low <= one.estimate <= high:
                    panel.plot([one.estimate], [place], "o", color=LIGHT["this"], zorder=3)
            panel.set_xlim(low, high)
            panel.set_ylim(m - 0.5, -0.5)
            labels = []
            for one in self.estimates:
                under = one.under(24)
                labels.append(label_of(one.label) + (f"\n{label_of(under)}" if under else ""))
            panel.set_yticks(range(m), labels)
            panel.tick_params(axis="y", length=0)
            panel.spines["left"].set_visible(False)
            panel.set_xlabel("coefficient of lambda")
        return panel
