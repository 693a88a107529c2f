"""What carries the correction: rho of each assignment, and lambda's coefficient, several ways."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import (
    Above,
    Axis,
    Bar,
    Group,
    Mark,
    Panel,
    Panels,
    Row,
    Rows,
    Rule,
    with_interval,
)
from heckmanfa.text.labels import label, said, said_all
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import chance_text, effects, plural, share_text, some, with_minus

BIN = 0.05
"""width of a bin of rho"""

# Bins at either end with less weight than this in all are not drawn.
_NEGLIGIBLE = 0.0005
# A bin with this much of the weight makes a picture of one bar.
_ALL = 0.995
# The axis reaches at least this far beyond zero on both sides.
_BESIDE_ZERO = 0.1
_LAST = round(1.0 / BIN)
# Room above the bars, with two lines and with one, and their height, in px.
_ROOM, _HEIGHT = (42.0, 26.0), 190.0
# Characters of a name in a legend one column wide.
_LEGEND = 14
_ROW = 36.0
_MORE = 0.1
_WORDS = ("none", "one", "two", "three", "four", "five", "six")
_PAIR = 2
# Of two ways, and of more.
_NONE_OR_ALL = {
    False: ("Neither interval excludes", "None of {} intervals excludes"),
    True: ("Both intervals exclude", "All {} intervals exclude"),
}


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
    def weight(self) -> float:
        """Weight of all assignments in the bin."""
        return self.inside + self.outside

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
class RhoByAssignment(Picture):
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
    is_approximate: bool = False
    """whether rho is from an approximation, as that of a binary outcome is"""
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
        return max(rho_bin.weight for rho_bin in self.bins)

    def _title(self) -> str:
        return "rho, assignment by assignment"

    def _look(self) -> str:
        return "Look where the bars are: at 0, selection changes nothing."

    @property
    def one_number(self) -> str:
        """Say the one number that the picture would show; empty unless one bin has all weight."""
        heaviest = max(self.bins, key=lambda rho_bin: rho_bin.weight)
        if heaviest.weight < _ALL:
            return ""
        return (
            f"Sets of features do not differ about rho: it is {_rho(self.mean)} on average, and "
            f"{heaviest.words} in {share_text(heaviest.weight)} of the weight (by {self.weights})."
        )

    def _names(self, most: int = 40) -> tuple[str, str]:
        name = said(self.feature, most)
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
        return f"{words}."

    def _caption(self) -> str:
        outcome = said(self.outcome, 40)
        words = [
            f"rho is the correlation of what drives selection with what drives {outcome} beyond "
            "the features; 0 is no selection bias.",
            self._counted(),
        ]
        if self.feature:
            words.append("Split by the feature that tells rho apart best.")
        beyond = sum(
            rho_bin.weight for rho_bin in self.bins if math.isinf(rho_bin.low + rho_bin.high)
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
            which = f"{plural(self.n_assignments, 'assignment')}, drawn by weight"
        elif self.n_assignments == 1:
            which = "The only assignment with weight"
        else:
            which = (
                f"The {self.n_assignments:,} heaviest assignments, with "
                f"{share_text(self.share)} of "
                "the weight"
            )
        words = f"{which}; weights by {self.weights}."
        if self.is_approximate:
            words += " rho is from the likelihood's quadratic approximation."
        return words

    def _table(self) -> Table:
        rows = [
            [rho_bin.words, *self._cells(rho_bin)] for rho_bin in self.bins if rho_bin.weight > 0
        ]
        means = [self.mean_inside, self.mean_outside] if self.feature else [self.mean]
        rows.append(["rho on average", *map(_rho, means)])
        weights = [*self._names()] if self.feature else ["Weight"]
        return lay_out(["rho"], weights, rows, "Weight by rho of an assignment", "rho-table")

    def _cells(self, rho_bin: RhoBin) -> list[str]:
        return [
            _weight(weight)
            for weight in (rho_bin.inside, rho_bin.outside)[: 2 if self.feature else 1]
        ]

    def tooltip(self, rho_bin: RhoBin) -> str:
        """Return the weight of a bin in words."""
        cells = self._cells(rho_bin)
        if not self.feature:
            return f"rho {rho_bin.words}: {cells[0]} of the weight"
        inside, outside = self._names()
        return f"rho {rho_bin.words}: {cells[0]} {inside}, {cells[1]} {outside}"

    def _means(self) -> tuple[tuple[float, str], ...]:
        """Return what is averaged, and in which assignments."""
        return (self.mean_inside, "with"), (self.mean_outside, "without")

    def _printed_legend(self) -> tuple[LegendItem, ...] | None:
        return tuple(
            replace(item, label=f"{item.label}, mean {_rho(mean)}")
            for item, (mean, _) in zip(self._legend(_LEGEND), self._means(), strict=False)
        )

    def _body(self) -> Panels:
        """Return a bar for each bin: filled with the feature, and hatched above that without it."""
        low, high = self.ends
        marks: list[Mark | Group] = []
        for rho_bin in self.bins:
            filled = Bar(rho_bin.edges, (0.0, rho_bin.inside), "this")
            hatched = Bar(rho_bin.edges, (rho_bin.inside, rho_bin.weight), "hatch", "hatch")
            if rho_bin.weight > 0:
                bars = (filled, hatched) if self.feature else (filled,)
                marks.append(Group(bars, self.tooltip(rho_bin), rho_bin.edges))
        above = [Above(self.mean, (f"mean {_rho(self.mean)}",))]
        if self.feature:
            means = sorted(self._means())
            above = [Above(m, (lead, f"mean {_rho(m)}"), label(self.feature)) for m, lead in means]
        panel = Panel(
            Axis(0.0, 1.05 * self.top, "", "", f"weight ({self.weights})", "percent", most=(5, 5)),
            (*marks, Rule(y=0.0), Rule(0.0)),
            *(_HEIGHT, _ROOM[not self.feature]),
            shaded=tuple(outside_window(self.window, low, high)),
            above=tuple(above),
        )
        x = Axis(low, high, "rho of an assignment", most=(6, 6), grid=False)
        return Panels(x, (panel,), 2.6)


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

    @property
    def under(self) -> str | tuple[str, ...]:
        """What is estimated, below the label."""
        if self.features is None:
            return self.detail
        return self.features or "no feature"

    @property
    def described(self) -> str:
        """Say in full what is estimated."""
        if self.features is None:
            return self.detail
        return some(said_all(list(self.features)), 12) if self.features else "no feature"


@dataclass(frozen=True)
class ImrEstimates(Picture):
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
        return sum(way.is_found for way in self.estimates)

    @property
    def ends(self) -> tuple[float, float]:
        """The range to draw: zero, and the intervals that set it, and a little more."""
        values = [0.0]
        setting = [way for way in self.estimates if way.sets_range] or list(self.estimates)
        for way in setting:
            values += [end for end in (way.estimate, way.low, way.high) if math.isfinite(end)]
        more = _MORE * (max(values) - min(values)) or 1.0
        return min(values) - more, max(values) + more

    def _title(self) -> str:
        m = len(self.estimates)
        return "The coefficient of lambda" + (f", {_count(m)} ways" if m > 1 else "")

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

    def _look(self) -> str:
        line = "line keeps" if len(self.estimates) == 1 else "lines keep"
        return f"Look whether the {line} clear of zero: that speaks for correcting."

    def _alt(self) -> str:
        first = self.estimates[0]
        estimate, interval = first.numbers
        interval = f", 95% interval {interval}" if interval else ""
        what = "Intervals" if self.window is None else "Estimates"
        return (
            f"{what} of the coefficient of lambda, {plural(len(self.estimates), 'way')} of "
            f"estimating it. {first.label.capitalize()}: {estimate}{interval}. "
            f"{self.found_words()}"
        )

    def _caption(self) -> str:
        clipped = any(way.low < self.ends[0] or way.high > self.ends[1] for way in self.estimates)
        arrow = " An arrow: the interval runs on." if clipped else ""
        note = f" {self.note}" if self.note else ""
        return (
            "lambda, the inverse Mills ratio, carries the correction. "
            f"{self.found_words()}{arrow}{note}"
        )

    def _table(self) -> Table:
        titles = ["Estimate of", "Features"], ["Coefficient", "95% interval"]
        rows = [[way.label, way.described, *way.numbers] for way in self.estimates]
        return lay_out(*titles, rows, "The coefficient of lambda", "imr-table")

    def _body(self) -> Rows:
        """Return an interval for each way of estimating it."""
        rows = []
        for way in self.estimates:
            marks = with_interval(way.estimate, way.low, way.high, "this")
            under = (way.under,) if way.under else ()
            rows.append(Row(way.label, marks, _tip(way), under=under))
        x, zero = Axis(*self.ends, "coefficient of lambda", most=(6, 4)), Rule(0.0)
        body = x, tuple(rows), _ROW, 0.8 + 0.34 * len(rows), (zero,)
        return Rows(*body, labels=(158.0, 130.0), cells=(18, 15))


def _tip(way: ImrEstimate) -> str:
    estimate, interval = way.numbers
    lines = [f"{way.label}: {estimate}", f"95% interval {interval}" if interval else ""]
    return "\n".join(filter(None, [*lines, way.described]))
