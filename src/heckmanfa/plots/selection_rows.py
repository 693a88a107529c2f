"""Who is selected: what moves the probability of it, and averages of those with an outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import Axis, Interval, Point, Row, Rows, Rule, with_interval
from heckmanfa.text.labels import label, level_label, said, said_level
from heckmanfa.text.option_words import only_flag, told
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cut
from heckmanfa.text.table import MOST_LINES, LegendItem, Table, lay_out
from heckmanfa.text.wording import figure, plural, signed, with_minus

MOST_ROWS = 15
"""features that the pictures of selection show; their tables have more"""

# Height of a row of two lines in px, and in inches of one and of two.
_ROW, _INCHES = 36.0, (0.19, 0.3)
# Characters of the line below a name, on a wide page and on a narrow one.
_BELOW = 26, 18
_FEW = 3
_POINTS = "percentage points for the step of each feature"
_WITH, _WITHOUT = "with an outcome", "without"


@dataclass(frozen=True)
class SelectionChange:
    """A change of a feature, and what it does to the probability of being selected."""

    words: str
    """the change: "one more year", "1 rather than 0", "south rather than north" """
    estimate: float
    """average marginal effect, in percentage points"""
    low: float
    high: float


@dataclass(frozen=True)
class SelectionDriver:
    """A feature of the selection equation, with the effect of each of its changes."""

    name: str
    changes: tuple[SelectionChange, ...]
    """one, or one for each level of a category"""
    kind: str
    """"number", "binary" or "category" """
    along: tuple[str, ...] = ()
    """what moves with it, in words: "its square, expersq" """
    step: float = 1.0
    """the change of a number, in its units"""

    @property
    def shown(self) -> SelectionChange:
        """The change in the picture: of a category, the level furthest from its reference."""
        return max(self.changes, key=lambda change: _size(change.estimate))


@dataclass(frozen=True)
class SelectionMargins(Picture):
    """Average marginal effects on the probability of being selected.

    Those come first that move it most between rows that are one standard deviation apart.
    """

    kind: ClassVar[str] = "margins"

    drivers: tuple[SelectionDriver, ...]
    intervals: str = "95% intervals"
    """what the intervals are, in words"""
    formulas: bool = False
    """whether a variable moves all terms of the formulas that it is in"""
    equation: str = "probit"
    """what the selection equation is"""

    @property
    def rows(self) -> tuple[SelectionDriver, ...]:
        """The features in the picture."""
        return self.drivers[:MOST_ROWS]

    def _title(self) -> str:
        return "What moves the probability of being selected"

    def _look(self) -> str:
        return "Look for lines clear of zero: these features say who has an outcome."

    def _legend(self) -> tuple[LegendItem, ...]:
        return (LegendItem(f"average effect, {self.intervals}", "-circle", "this"),)

    def _printed_legend(self) -> tuple[LegendItem, ...]:
        return ()

    def _alt(self) -> str:
        first = [
            f"{cut(label(driver.name), 24)} ({cut(driver.shown.words, 24)}) "
            f"{self.points(driver.shown.estimate)}"
            for driver in self.rows[:_FEW]
        ]
        return (
            "Intervals, one for each feature: how many percentage points more likely selection is. "
            f"{'First' if len(self.drivers) > 1 else 'The only one'}: {', '.join(first)}."
        )

    def _caption(self) -> str:
        words = [
            f"Average marginal effects of the {self.equation} with {self.intervals}, each of the "
            "step under its name."
        ]
        for driver in [driver for driver in self.rows if driver.along][:_FEW]:
            words.append(f"{said(driver.name, 40)} moves with {' and '.join(driver.along)}.")
        if self.formulas:
            words.append("A variable moves all terms of the formulas that it is in.")
        if len(self.drivers) > len(self.rows):
            words.append(
                f"The {len(self.rows)} of {plural(len(self.drivers), 'feature')} that move it "
                "most; the table has more."
            )
        return " ".join(words)

    def points(self, value: float) -> str:
        """Format percentage points, all with the same number of decimals."""
        return points(value, self._largest)

    @cached_property
    def _largest(self) -> float:
        return max((_size(driver.shown.estimate) for driver in self.drivers), default=0.0)

    def _table(self) -> Table:
        lines = [
            [Name(driver.name).key, change.words, *map(self.points, _numbers(change))]
            for driver in self.drivers
            for change in driver.changes
        ]
        titles = ["Feature", "Change"], ["Points", "95% from", "to"]
        caption = "Percentage points of the probability of being selected"
        caption += _cut_words(len(lines), "pictures(X, y).margins.drivers")
        return lay_out(*titles, lines[:MOST_LINES], caption, "margins-table")

    def tooltip(self, driver: SelectionDriver) -> str:
        """Return the numbers of a row in words, a line each."""
        change = driver.shown
        lines = [said(driver.name), f"{self.points(change.estimate)} points: {change.words}"]
        if not math.isnan(change.low):
            lines.append(f"95% interval {self.points(change.low)} to {self.points(change.high)}")
        if driver.along:
            lines.append(f"moves with {' and '.join(driver.along)}")
        return "\n".join(lines)

    def _body(self) -> Rows:
        """Return an interval for each feature."""
        rows = []
        for driver in self.rows:
            marks = with_interval(*_numbers(driver.shown), "this")
            words = self.tooltip(driver), driver.name
            rows.append(Row(label(driver.name), marks, *words, under=(driver.shown.words,)))
        ends = [end for driver in self.rows for end in _numbers(driver.shown)]
        axis = Scale.over(ends, 0.0, 1.0, pad=0.04, include=[0.0])
        title, narrow = _POINTS, "percentage points per step"
        printed = f"{title}\n({self.intervals})"
        x = Axis(axis.low, axis.high, title, narrow, printed, "signed")
        inches = 0.6 + _INCHES[1] * max(len(rows), 3)
        return Rows(x, tuple(rows), _ROW, inches, (Rule(0.0),), words=_BELOW)


@dataclass(frozen=True)
class Profile:
    """Averages of one feature, or of one level of a category."""

    name: str
    level: str
    """the level whose share is averaged; empty for other features"""
    selected: float
    """mean of the rows with an outcome"""
    unselected: float
    """mean of the rows without one"""
    overall: float
    """mean of all rows"""
    spread: float
    """standard deviation of all rows"""

    @property
    def inside(self) -> float:
        """Mean of the rows with an outcome, in standard deviations from the mean of all rows."""
        return self._standardized(self.selected)

    @property
    def outside(self) -> float:
        """The same of the rows without one."""
        return self._standardized(self.unselected)

    def _standardized(self, mean: float) -> float:
        return (mean - self.overall) / self.spread if self.spread > 0 else 0.0


@dataclass(frozen=True)
class SelectionProfiles(Picture):
    """Averages of those with an outcome and of those without, in the order of the effects."""

    kind: ClassVar[str] = "profiles"

    profiles: tuple[Profile, ...]
    weighted: str = ""
    """what weights do to the averages, in words"""

    @property
    def rows(self) -> tuple[Profile, ...]:
        """The features in the picture."""
        return self.profiles[:MOST_ROWS]

    def _title(self) -> str:
        return "Those with an outcome, and those without"

    def _look(self) -> str:
        return "Look for discs far from their rings: there the two groups differ."

    def _legend(self) -> tuple[LegendItem, ...]:
        return LegendItem(_WITH, "circle", "this"), LegendItem(_WITHOUT, "hollow", "ink")

    def _alt(self) -> str:
        first = sorted(self.rows, key=lambda profile: -abs(profile.inside - profile.outside))[:_FEW]
        named = [
            f"{cut(label(profile.name), 24)} {deviations(profile.inside)} with, "
            f"{deviations(profile.outside)} without"
            for profile in first
        ]
        return (
            "Averages of rows with an outcome and of rows without, in standard deviations. "
            f"Furthest apart: {'; '.join(named)}."
        )

    def _caption(self) -> str:
        words = (
            "Averages, in the order of the effects. They say who is there; the effects say what "
            "counts when the rest is equal."
        )
        return words + self.weighted

    def _table(self) -> Table:
        levels = any(profile.level for profile in self.profiles)
        texts = ["Feature", "Share of"] if levels else ["Feature"]
        numbers = ["With an outcome, SDs", "Without, SDs"]
        numbers += ["Mean with an outcome", "Mean without", "SD of all rows"]
        lines = [
            [
                Name(profile.name).key,
                *([said_level(profile.name, profile.level)] if levels else []),
                deviations(profile.inside),
                deviations(profile.outside),
                *map(figure, (profile.selected, profile.unselected, profile.spread)),
            ]
            for profile in self.profiles
        ]
        caption = "Averages by whether there is an outcome"
        caption += _cut_words(len(lines), "pictures(X, y).profiles.profiles")
        return lay_out(texts, numbers, lines[:MOST_LINES], caption, "profiles-table")

    def tooltip(self, profile: Profile) -> str:
        """Return the numbers of a row in words, a line each."""
        what = (
            f"share of {said_level(profile.name, profile.level, 40)}" if profile.level else "mean"
        )
        sides = (
            (_WITH, profile.inside, profile.selected),
            (_WITHOUT, profile.outside, profile.unselected),
        )
        lines = [
            f"{side}: {deviations(by)} SDs ({what} {figure(mean)})" for side, by, mean in sides
        ]
        return "\n".join([said(profile.name), *lines])

    def _body(self) -> Rows:
        """Return a row of two marks for each feature."""
        rows = []
        for profile in self.rows:
            line = Interval(profile.inside, profile.outside, 0.0, "ink")
            ring = Point(profile.outside, 0.0, "ink", "hollow")
            marks = line, ring, Point(profile.inside, 0.0, "this")
            share = f"share of {level_label(profile.name, profile.level)}" if profile.level else ""
            words = self.tooltip(profile), profile.name
            under = (share,) if share else ()
            rows.append(Row(label(profile.name), marks, *words, under=under))
        ends = [end for profile in self.rows for end in (profile.inside, profile.outside)]
        axis = Scale.over(ends, 0.0, 1.0, pad=0.06, include=[0.0])
        titles = "standard deviations from the mean of all rows", "SDs from the mean"
        x = Axis(axis.low, axis.high, *titles, numbers="signed", zero="mean")
        per_row = _INCHES[any(row.under for row in rows)]
        inches = 0.75 + per_row * max(len(rows), 3)
        return Rows(x, tuple(rows), _ROW, inches, (Rule(0.0),), words=_BELOW)


def deviations(value: float) -> str:
    """Format standard deviations with a sign."""
    text = f"{value:.2f}"
    return signed(with_minus(text)) if float(text) else "0.00"


def points(value: float, largest: float) -> str:
    """Format percentage points with a sign and the decimals that the largest needs."""
    if math.isnan(value):
        return ""
    decimals = 1 if largest >= 0.95 or largest == 0.0 else 3
    if 0.0 < largest < 0.0095:
        return signed(figure(value))
    text = with_minus(f"{value:.{decimals}f}")
    return signed(text) if float(f"{value:.{decimals}f}") else text.removeprefix("\N{MINUS SIGN}")


def _cut_words(count: int, rest: str) -> str:
    """Say that a table of so many lines was cut; ``rest`` has all of them in Python."""
    if count <= MOST_LINES:
        return ""
    return told(f" (the first {MOST_LINES} of {count:,}; all: {only_flag('save_table', rest)})")


def _numbers(change: SelectionChange) -> tuple[float, float, float]:
    return change.estimate, change.low, change.high


def _size(value: float) -> float:
    return 0.0 if math.isnan(value) else abs(value)
