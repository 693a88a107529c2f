"""The coefficient of lambda, several ways: averaged, in the best assignments, with all features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Axis, Interval, Point, Row, Rows, Rule, Scene
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.table import Column, PictureText, Table
from heckmanfa.text.wording import effects, plural, some

_ROW = 36.0
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
        return some(list(self.features), 12) if self.features else "no feature"


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

    def scene(self) -> Scene:
        """Return an interval for each way of estimating it."""
        rows = tuple(
            Row(
                name=way.label,
                marks=(
                    Interval(way.low, way.high, 0.0, "this"),
                    Point(way.estimate, 0.0, "this"),
                ),
                tip=_tip(way),
                under=(way.under,) if way.under else (),
            )
            for way in self.estimates
        )
        body = Rows(
            *(Axis(*self.ends, "coefficient of lambda", most=(6, 4)), rows, _ROW, (Rule(0.0),)),
            labels=(158.0, 130.0),
            cells=(18, 15),
        )
        return Scene(self.text(), body, 0.8 + 0.34 * len(rows))


def _tip(way: ImrEstimate) -> str:
    estimate, interval = way.numbers
    lines = [f"{way.label}: {estimate}", f"95% interval {interval}" if interval else ""]
    return "\n".join(filter(None, [*lines, way.described]))
