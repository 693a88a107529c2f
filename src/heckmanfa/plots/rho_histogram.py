"""rho, assignment by assignment: which values the assignments that carry the weight give it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.plots._canvas import canvas, label_of
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import Drawing, Scale, label_cells
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.printable import shown
from heckmanfa.text.shortening import cut
from heckmanfa.text.table import Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import chance_text, plural, share_text

BIN = 0.05
"""width of a bin of rho"""

# Bins at either end with less weight than this in all are not drawn.
_NEGLIGIBLE = 0.0005
# The axis reaches at least this far beyond zero on both sides.
_BESIDE_ZERO = 0.1
_LAST = round(1.0 / BIN)
# Room above the bars and their height, in px.
_TOP, _TALL = 42, 190
_MEAN_CELLS = len("mean -0.00")

# Characters of a name in a legend one column wide.
_LEGEND = 14


@dataclass(frozen=True)
class RhoBin:
    """The weight of the assignments whose rho is in one bin."""

    low: float
    """minus infinity for everything below -1"""
    high: float
    """infinity for everything above 1"""
    inside: float
    """weight of assignments with the feature that splits them; of all where none does"""
    outside: float
    """weight of assignments without it"""

    @property
    def words(self) -> str:
        """The values of rho in the bin."""
        if math.isinf(self.low):
            return "below " + with_minus("-1")
        if math.isinf(self.high):
            return "above 1"
        return f"{with_minus(f'{self.low:.2f}')} to {with_minus(f'{self.high:.2f}')}"

    @property
    def edges(self) -> tuple[float, float]:
        """Where the bin is drawn."""
        if math.isinf(self.low):
            return -1.0 - BIN, -1.0
        return self.low, 1.0 + BIN if math.isinf(self.high) else self.high


def bins_of(rho: Floats, weight: Floats, held: Mask) -> tuple[RhoBin, ...]:
    """Sum the weights of assignments by bins of their rho, from the first to the last with any."""
    # Rounding must not move a rho at an edge across it; what is no correlation has bins of its own.
    places = np.floor(np.round(rho / BIN, 9)).astype(int)
    places = np.where(rho < -1.0, -_LAST - 1, np.where(rho > 1.0, _LAST, places))
    places = np.where(rho == 1.0, _LAST - 1, places) + _LAST + 1
    size = 2 * _LAST + 2
    inside = np.bincount(places[held], weights=weight[held], minlength=size)
    outside = np.bincount(places[~held], weights=weight[~held], minlength=size)
    cumulated = np.cumsum(inside + outside)
    from_right = np.cumsum((inside + outside)[::-1])[::-1]
    some = np.flatnonzero((cumulated > _NEGLIGIBLE) & (from_right > _NEGLIGIBLE))
    bins = []
    for place in range(int(some[0]), int(some[-1]) + 1):
        step = place - _LAST - 1
        low = -math.inf if step < -_LAST else step / _LAST
        high = math.inf if step >= _LAST else (step + 1) / _LAST
        bins.append(RhoBin(low, high, float(inside[place]), float(outside[place])))
    return tuple(bins)


@dataclass(frozen=True)
class RhoByAssignment:
    """How the weight of all assignments is spread over rho."""

    kind: ClassVar[str] = "rho"

    outcome: str
    bins: tuple[RhoBin, ...]
    """neighbours, ascending"""
    weights: str
    """what the weights follow: "BIC" """
    n_assignments: int
    """how many assignments the bins count"""
    share: float
    """the share of all weight that they carry; NaN for a sample"""
    mean: float
    """rho on average"""
    n_approximate: int = 0
    """assignments of a binary outcome whose rho is from an approximation: they were not refitted"""
    feature: str = ""
    """the feature with and without which rho differs most; empty if the bins are not split"""
    chance: float = math.nan
    """share of weight with that feature"""
    mean_inside: float = math.nan
    """rho on average over assignments with it"""
    mean_outside: float = math.nan
    """likewise without it"""
    window: tuple[float, float] | None = None
    """the window that rho was kept in"""

    @property
    def ends(self) -> tuple[float, float]:
        """The range of rho to draw: the bins, zero, and the window."""
        edges = [self.bins[0].edges[0], self.bins[-1].edges[1], -_BESIDE_ZERO, _BESIDE_ZERO]
        for end in self.window or ():
            edges += [end - _BESIDE_ZERO, end + _BESIDE_ZERO]
        return max(min(edges), -1.0 - BIN), min(max(edges), 1.0 + BIN)

    @property
    def top(self) -> float:
        """The weight of the heaviest bin."""
        return max(one.inside + one.outside for one in self.bins)

    def text(self) -> PictureText:
        """Return the words and numbers of the picture."""
        return PictureText(
            title="rho, assignment by assignment",
            alt=self._alt(),
            caption=self._caption(),
            table=self._table(),
            legend=self._legend(),
        )

    def _names(self, most: int = 40) -> tuple[str, str]:
        name = shown(self.feature, most)
        return f"with {name}", f"without {name}"

    def _legend(self, most: int = 40) -> tuple[LegendItem, ...]:
        if not self.feature:
            return ()
        inside, outside = self._names(most)
        return (
            LegendItem(f"{inside} ({chance_text(self.chance)} of the weight)", "bar", "this"),
            LegendItem(f"{outside} ({chance_text(1.0 - self.chance)})", "hatch", "hatch"),
        )

    def _alt(self) -> str:
        words = f"Histogram of rho over assignments, by weight. On average rho is {_rho(self.mean)}"
        if self.feature:
            inside, outside = self._names()
            words += (
                f": {_rho(self.mean_inside)} in assignments {inside} "
                f"({chance_text(self.chance)} of the weight), {_rho(self.mean_outside)} in those "
                f"{outside}"
            )
        return f"{words}. All numbers are in the table."

    def _caption(self) -> str:
        outcome = shown(self.outcome, 40)
        words = [
            f"rho is the correlation of what drives selection with what drives {outcome} beyond "
            "the features; 0 is no selection bias.",
            self._counted(),
        ]
        if self.feature:
            words.append("Split by the feature that tells rho apart best.")
        beyond = sum(
            one.inside + one.outside for one in self.bins if math.isinf(one.low + one.high)
        )
        if beyond > 0:
            words.append(
                f"{chance_text(beyond)} of the weight has a rho beyond ±1: no correlation."
            )
        if self.window is not None:
            low, high = self.window
            words.append(
                f"rho was kept in [{_end(low)}, {_end(high)}]: outside, in grey, no assignment has "
                "weight."
            )
        return " ".join(words)

    def _counted(self) -> str:
        if math.isnan(self.share):
            which = f"{plural(self.n_assignments, 'assignment')} that a sampler drew"
        elif self.n_assignments == 1:
            which = "The only assignment with weight"
        else:
            which = (
                f"The {self.n_assignments:,} heaviest assignments, with "
                f"{share_text(self.share)} of "
                "the weight"
            )
        words = f"{which}; weights by {self.weights}."
        if self.n_approximate:
            many = f"{self.n_approximate:,} of them that were not refitted"
            words += f" rho of {many} is from the likelihood's quadratic approximation."
        return words

    def _table(self) -> Table:
        inside, outside = self._names()
        columns = [Column("rho", is_number=False)]
        columns += [Column(inside), Column(outside)] if self.feature else [Column("Weight")]
        rows: list[Sequence[str] | str] = [
            [one.words, *self._cells(one)] for one in self.bins if one.inside + one.outside > 0
        ]
        means = [self.mean_inside, self.mean_outside] if self.feature else [self.mean]
        rows.append(["rho on average", *map(_rho, means)])
        return Table(tuple(columns), tuple(rows), "Weight by rho of an assignment", "rho-table")

    def _cells(self, one: RhoBin) -> list[str]:
        return [_weight(part) for part in (one.inside, one.outside)[: 2 if self.feature else 1]]

    def tooltip(self, one: RhoBin) -> str:
        """Return the weight of a bin in words."""
        cells = self._cells(one)
        if not self.feature:
            return f"rho {one.words}: {cells[0]} of the weight"
        inside, outside = self._names()
        return f"rho {one.words}: {cells[0]} {inside}, {cells[1]} {outside}"

    def svg(self, width: int) -> str:
        """Return the drawing, ``width`` CSS pixels wide."""
        return _Histogram(self, width).svg()

    def draw(self, ax: Any = None) -> Any:
        """Draw on Matplotlib's Axes, and return them."""
        with canvas(ax, 2.6) as drawn:
            (panel,) = drawn.axes
            edges = [one.edges for one in self.bins]
            left = [low for low, _ in edges]
            widths = [high - low for low, high in edges]
            inside = [one.inside for one in self.bins]
            marks: dict[str, Any] = {}
            filled = {"color": LIGHT["this"], "edgecolor": LIGHT["paper"], "linewidth": 0.4}
            bars = panel.bar(left, inside, widths, align="edge", zorder=2, **filled)
            if self.feature:
                first, second = self._legend(_LEGEND)
                marks[label_of(f"{first.label}, mean {_rho(self.mean_inside)}")] = bars
                hatched = {"facecolor": LIGHT["paper"], "edgecolor": LIGHT["muted"]}
                words = f"{second.label}, mean {_rho(self.mean_outside)}"
                marks[label_of(words)] = panel.bar(
                    *(left, [one.outside for one in self.bins], widths, inside),
                    align="edge",
                    zorder=2,
                    hatch="////",
                    linewidth=0.4,
                    **hatched,
                )
            low, high = self.ends
            for first_end, last_end in outside_window(self.window, low, high):
                panel.axvspan(first_end, last_end, color=LIGHT["absent"], zorder=0, linewidth=0)
            panel.axvline(0.0, color=LIGHT["ink"], linewidth=0.8, zorder=3)
            panel.set_xlim(low, high)
            panel.set_ylim(0.0, 1.05 * self.top)
            panel.set_xlabel("rho of an assignment")
            panel.set_ylabel(f"weight ({self.weights})")
            panel.yaxis.set_major_formatter(lambda value, _: f"{100.0 * value:g}%")
            if marks:
                drawn.legend(marks)
        return panel


class _Histogram:
    """The drawing of a histogram of rho."""

    def __init__(self, picture: RhoByAssignment, width: int) -> None:
        self._picture = picture
        top = _TOP if picture.feature else _TOP - 16
        self._x = Scale(*picture.ends, 46, width - 14)
        self._y = Scale(0.0, 100.0 * picture.top * 1.04, top + _TALL, top)
        self._drawing = Drawing(width, top + _TALL + 42, picture.text().alt)

    def svg(self) -> str:
        """Draw, and return the text of the picture."""
        picture, drawing, x, y = self._picture, self._drawing, self._x, self._y
        for low, high in outside_window(picture.window, x.low, x.high):
            drawing.rect(x(low), y.end, x(high) - x(low), y.start - y.end, "absent")
        for tick in y.ticks(5, unit="%"):
            if tick.value:
                drawing.line(x.start, tick.at, x.end, tick.at, "line")
            drawing.text(x.start - 6, tick.at + 4, tick.text, "tick", "end")
        for one in picture.bins:
            if one.inside + one.outside > 0:
                self._bin(one)
        drawing.line(x.start, y.start, x.end, y.start, "zero")
        title = "rho of an assignment"
        drawing.x_axis(x, y.end - 8, y.start, x.ticks(6), title, grid=False)
        if picture.feature:
            self._means()
        else:
            half = 3.6 * _MEAN_CELLS
            at = min(max(x(picture.mean), x.start + half), x.end - half)
            drawing.text(at, 14, f"mean {_rho(picture.mean)}", "tick", "middle")
        return drawing.svg()

    def _bin(self, one: RhoBin) -> None:
        """Draw the bar of a bin: filled with the feature, and hatched above that without it."""
        drawing, x, y, picture = self._drawing, self._x, self._y, self._picture
        left, right = (x(edge) for edge in one.edges)
        middle, high = y(100.0 * one.inside), y(100.0 * (one.inside + one.outside))
        with drawing.group("row", label=picture.tooltip(one)):
            drawing.rect(left, y.end, right - left, y.start - y.end, "hit")
            drawing.rect(left + 0.5, middle, right - left - 1, y.start - middle, "bar this")
            if one.outside > 0:
                box = left + 0.5, high, right - left - 1, middle - high
                drawing.hatch(*box)
                drawing.rect(*box, "hatch")

    def _means(self) -> None:
        """Name above the bars what they are, where their means are."""
        picture, drawing, x = self._picture, self._drawing, self._x
        name = cut(picture.feature, label_cells(drawing.width))
        named = [
            (picture.mean_inside, f"with {name}"),
            (picture.mean_outside, f"without {name}"),
        ]
        (first, left), (second, right) = sorted(named)
        half_left, half_right = (3.6 * max(len(words), _MEAN_CELLS) for words in (left, right))
        ends = x.start, float(drawing.width)
        places = apart(x(first), x(second), half_left, half_right, ends)
        for at, words, mean in zip(places, (left, right), (first, second), strict=True):
            drawing.text(at, 14, words, "tick", "middle")
            drawing.text(at, 30, f"mean {_rho(mean)}", "tick", "middle")


def apart(
    a: float, b: float, half_a: float, half_b: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Place two words of these half widths at a and b, or beside them so that both can be read."""
    room = half_a + half_b + 12.0
    if b - a < room:
        middle = (a + b) / 2
        a, b = middle - room / 2, middle + room / 2
    moved = max(ends[0] + half_a - a, 0.0)
    a, b = a + moved, max(b, a + moved + room)
    moved = max(b + half_b - ends[1], 0.0)
    return min(a, b - moved - room), b - moved


def outside_window(
    window: tuple[float, float] | None, low: float, high: float
) -> list[tuple[float, float]]:
    """Return the parts of a range of rho that are outside the window."""
    if window is None:
        return []
    parts = [(low, min(window[0], high)), (max(window[1], low), high)]
    return [(first, last) for first, last in parts if first < last]


def _rho(value: float) -> str:
    return with_minus(f"{value:.2f}")


def _end(value: float) -> str:
    return with_minus(f"{value:g}")


def _weight(value: float) -> str:
    return f"{100.0 * value:.1f}%" if value >= 0.0005 or value == 0.0 else "<0.1%"
