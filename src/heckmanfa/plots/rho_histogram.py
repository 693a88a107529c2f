"""rho, assignment by assignment: which values the assignments that carry the weight give it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Above, Axis, Bar, Group, Panel, Panels, Rule, Scene
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import chance_text, plural, share_text

BIN = 0.05
"""width of a bin of rho"""

# Bins at either end with less weight than this in all are not drawn.
_NEGLIGIBLE = 0.0005
# The axis reaches at least this far beyond zero on both sides.
_BESIDE_ZERO = 0.1
_LAST = round(1.0 / BIN)
# Room above the bars, with two lines and with one, and their height, in px.
_ROOM, _HEIGHT = (42.0, 26.0), 190.0
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

    def scene(self) -> Scene:
        """Return a bar for each bin: filled with the feature, and hatched above that without it."""
        low, high = self.ends
        bars = [
            Group(
                (
                    Bar(one.edges, (0.0, one.inside), "this"),
                    Bar(one.edges, (one.inside, one.inside + one.outside), "hatch", "hatch"),
                )[: 2 if self.feature else 1],
                self.tooltip(one),
                one.edges,
            )
            for one in self.bins
            if one.inside + one.outside > 0
        ]
        above: tuple[Above, ...] = (Above(self.mean, (f"mean {_rho(self.mean)}",)),)
        legend = None
        if self.feature:
            means = (self.mean_inside, "with"), (self.mean_outside, "without")
            above = tuple(
                Above(mean, (lead, f"mean {_rho(mean)}"), self.feature)
                for mean, lead in sorted(means)
            )
            legend = tuple(
                replace(item, label=f"{item.label}, mean {_rho(mean)}")
                for item, (mean, _) in zip(self._legend(_LEGEND), means, strict=True)
            )
        weight = f"weight ({self.weights})"
        y = Axis(0.0, 1.05 * self.top, printed=weight, numbers="percent", most=(5, 5))
        panel = Panel(
            y,
            (*bars, Rule(y=0.0), Rule(0.0)),
            height=_HEIGHT,
            room=_ROOM[not self.feature],
            shaded=tuple(outside_window(self.window, low, high)),
            above=above,
        )
        x = Axis(low, high, "rho of an assignment", most=(6, 6), grid=False)
        return Scene(self.text(), Panels(x, (panel,)), 2.6, legend)


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
