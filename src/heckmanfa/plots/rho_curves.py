"""Curves over rho, or over a coefficient: estimates at each rho, and the log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputTypeError
from heckmanfa.plots.picture import Picture, wanted_terms
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import (
    Axis,
    Band,
    Curve,
    Interval,
    Mark,
    Panel,
    Panels,
    Point,
    Rule,
    Shape,
)
from heckmanfa.text.labels import said
from heckmanfa.text.passage import Name
from heckmanfa.text.table import LegendItem, Table, lay_out
from heckmanfa.text.wording import effects, figure, plural

# Height of a panel, room above it and at its left, in px.
_HEIGHT, _ROOM, _LEFT = 170.0, 22.0, 60.0
# Points of a profile that its table holds.
_TABLE_POINTS = 21
_AT_ZERO = {"ols": "least squares", "probit": "naive probit"}
# How far below the points of interest the picture goes: in units of log-likelihood, and as a share
# of the distance between the highest and the lowest of them. The tails would flatten all else.
_BELOW = 10.0, 0.5


@dataclass(frozen=True, eq=False)
class RhoCurves(Picture):
    """Each coefficient over rho, with its bounds within a range of rho."""

    kind: ClassVar[str] = "uncertainty"

    path: pd.DataFrame
    """term, rho, estimate, ci_low and ci_high, the terms in the same order at each rho"""
    bounds: pd.DataFrame
    """a row for each term, as `UncertaintyInterval.tidy` returns them"""
    rho: tuple[float, float]
    """the range that the bounds are for"""
    conf_level: float
    zero: str = "ols"
    """column of ``bounds`` with the estimates at rho = 0: "ols", or "probit" if the outcome is
    binary"""
    terms: tuple[str, ...] = ()
    """the coefficients to draw"""

    def curve(self, term: str) -> pd.DataFrame:
        """Return the path of a term, by its first position: names need not be distinct."""
        return self.path.iloc[self._place(term) :: len(self.bounds)]

    def _place(self, term: str) -> int:
        return list(self.bounds["term"]).index(term)

    def _title(self) -> str:
        return "Coefficients over rho"

    @property
    def _level(self) -> str:
        return f"{100 * self.conf_level:g}% confidence interval"

    def _marked(self, term: str) -> Iterator[tuple[LegendItem, Point]]:
        """Return what is marked inside the range, and what it is called."""
        low, high = self.rho
        row = self.bounds.iloc[self._place(term)]
        shapes: tuple[tuple[str, str, float, Shape, str], ...] = (
            (_AT_ZERO[self.zero], "", row[self.zero], "circle", "ink"),
            ("sign changes", "sign_change", 0.0, "cross", "ols"),
            ("significance first changes", "significance_low", 0.0, "diamond", "pos"),
            ("significance first changes", "significance_high", 0.0, "diamond", "pos"),
        )
        for label, column, height, shape, color in shapes:
            rho = row[column] if column else 0.0
            if low <= rho <= high:
                yield LegendItem(label, shape, color), Point(rho, height, color, shape)

    def _legend(self) -> tuple[LegendItem, ...]:
        level = LegendItem(self._level, "band", "this")
        items = [LegendItem("estimate", "line", "this"), level]
        items.append(LegendItem("bounds of the estimate", "cut", "this"))
        if self._is_single:
            level = LegendItem(self._level, "line", "this")
            items = [LegendItem("estimate", "square", "this"), level]
        items += (item for term in self.terms for item, _ in self._marked(term))
        return tuple(dict.fromkeys(items))

    @property
    def _is_single(self) -> bool:
        return self.rho[0] == self.rho[1]

    def _alt(self) -> str:
        low, high = map(_number, self.rho)
        many = plural(len(self.terms), "coefficient")
        return f"{many} over a rho from {low} to {high}, with a {self._level} at each."

    def _caption(self) -> str:
        return "Estimates for a rho that is assumed, and the bounds of each within the range."

    def _table(self) -> Table:
        columns = [self.zero, "bound_low", "bound_high", "sign_change"]
        columns += ["significance_low", "significance_high"]
        titles = [_AT_ZERO[self.zero].capitalize(), "Lowest", "Highest", "Sign changes at rho"]
        titles += ["Significance below 0", "Significance above 0"]
        lines = [
            [Name(term).key, *map(figure, self.bounds.iloc[self._place(term)][columns])]
            for term in self.terms
        ]
        return lay_out(["Feature"], titles, lines, self._title(), "uncertainty-table")

    def _body(self) -> Panels:
        """Return a panel for each coefficient."""
        low, high = self.rho
        beside = 0.1 * self._is_single
        panels = tuple(map(self._panel, self.terms))
        x = Axis(low - beside, high + beside, "rho", grid=False)
        return Panels(x, panels, left=_LEFT, axes="beside")

    def _panel(self, term: str) -> Panel:
        path, row = self.curve(term), self.bounds.iloc[self._place(term)]
        rho, estimate, lows, highs = (
            tuple(path[name].tolist()) for name in ("rho", "estimate", "ci_low", "ci_high")
        )
        marks: list[Mark] = [Rule(y=0.0)]
        if self._is_single:
            marks.append(Interval(lows[0], highs[0], rho[0], "this", upright=True))
            marks.append(Point(rho[0], estimate[0], "this", "square"))
        else:
            marks += [Band(rho, lows, highs, "this"), Curve(rho, estimate, "this")]
            bounds = row["bound_low"], row["bound_high"]
            marks += (Rule(y=bound, kind="cut", color="this") for bound in bounds)
        marks += (point for _, point in self._marked(term))
        y = Scale.over([0.0, *lows, *highs], 0.0, 1.0, pad=0.05)
        axis, tip = Axis(y.low, y.high, printed="coefficient", most=(5, 5)), self._tip(term)
        return Panel(axis, tuple(marks), _HEIGHT, _ROOM, said(term), tip, term)

    def _tip(self, term: str) -> str:
        row = self.bounds.iloc[self._place(term)]
        at_zero, low, high = effects(row[self.zero], row["bound_low"], row["bound_high"])
        return f"{said(term)}\n{_AT_ZERO[self.zero]}: {at_zero}\nfrom {low} to {high}"


class Curved(Protocol):
    """Coefficients over a range of rho, as `uncertainty_interval` returns them."""

    def curves(self) -> RhoCurves:
        """Return what the picture shows."""
        ...


def uncertainty(
    interval: Curved, terms: Sequence[str] | None = None, axes: Any = None
) -> NDArray[Any]:
    """Draw coefficients over the range of rho, one panel each.

    A line is the estimate at each rho and the band its confidence interval; dotted lines are the
    bounds of the estimate. Marks inside the range: a dot is least squares, or the naive probit of
    a binary outcome (rho = 0), and a cross the rho at which the sign changes. A diamond is the
    nearest rho below or above zero at which the confidence interval starts or stops containing
    zero.

    Parameters
    ----------
    interval : UncertaintyInterval
    terms : sequence of str, optional
        Coefficients to draw, which may include "Intercept"; all others by default.
    axes : Axes or array of Axes, optional
        One for each term.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each term, in order.
    """
    if not hasattr(type(interval), "curves"):
        raise InputTypeError(
            "uncertainty draws what model.uncertainty_interval() returns; got a "
            f"{type(interval).__name__}"
        )
    curves = interval.curves()
    wanted = wanted_terms(list(curves.bounds["term"]), terms)
    return np.asarray(replace(curves, terms=tuple(wanted)).draw(axes))


@dataclass(frozen=True, eq=False)
class ProfileCurve(Picture):
    """The log-likelihood over a parameter, with its maxima and the likelihood-ratio interval."""

    kind: ClassVar[str] = "profile"

    points: Floats
    """(P,) of the parameter, ascending, dense enough to draw"""
    log_likelihood: Floats
    """(P,)"""
    maxima: pd.DataFrame
    """value, log_likelihood and reported, as in `RhoProfile`"""
    two_step: float
    """the two-step estimate of the parameter; NaN if there is none"""
    conf_level: float
    regions: list[tuple[float, float]]
    """the pieces of the interval"""
    level: float
    """the log-likelihood at their ends"""
    name: str = "rho"
    """of the parameter"""
    ends: tuple[float, float] | None = (-1.0, 1.0)
    """of the axis; None for the first and last of the points"""
    naive_probit: float = math.nan
    """the estimate of a probit of the selected rows alone; NaN if there is none"""

    def limits(self) -> tuple[float, float]:
        """Return heights between which is everything of interest, and a little of the tails."""
        lowest = min([self.level, *self.maxima["log_likelihood"]])
        heights = self.log_likelihood
        top = float(heights.max())
        floor = max(float(heights.min()), lowest - max(_BELOW[0], _BELOW[1] * (top - lowest)))
        space = 0.05 * (top - floor)
        return floor - space * (floor == heights.min()), top + space

    @property
    def _ends(self) -> tuple[float, float]:
        """Where the axis starts and ends."""
        return self.ends or (float(self.points[0]), float(self.points[-1]))

    @property
    def _others(self) -> list[tuple[str, float]]:
        """Estimates beside those of maximum likelihood."""
        others = ("two-step", self.two_step), ("naive probit", self.naive_probit)
        return [(name, value) for name, value in others if math.isfinite(value)]

    @property
    def _maxima(self) -> list[tuple[str, Shape, str, pd.DataFrame]]:
        """What kinds of maxima there are, with their marks."""
        reported = self.maxima["reported"].astype(bool)
        kinds: tuple[tuple[str, Shape, str, pd.DataFrame], ...] = (
            ("ML", "circle", "this", self.maxima[reported]),
            ("another maximum", "hollow", "problem", self.maxima[~reported]),
        )
        return [kind for kind in kinds if len(kind[-1])]

    @property
    def _interval(self) -> str:
        pieces = ", ".join(f"[{_number(low)}, {_number(high)}]" for low, high in self.regions)
        return f"{100 * self.conf_level:g}% {pieces}"

    def _title(self) -> str:
        return f"The profile likelihood of {self.name}"

    def _legend(self) -> tuple[LegendItem, ...]:
        items = [LegendItem(self._interval, "band", "this")] if self.regions else []
        items += (
            LegendItem(f"{name} {_number(value)}", self._side(value) or "cut", "ols")
            for name, value in self._others
        )
        items += (
            LegendItem(f"{name} {', '.join(map(_number, rows.iloc[:, 0]))}", shape, color)
            for name, shape, color, rows in self._maxima
        )
        return tuple(items)

    def _alt(self) -> str:
        known = [
            f"{name} {', '.join(map(_number, rows.iloc[:, 0]))}" for name, *_, rows in self._maxima
        ]
        known += [f"{name} {_number(value)}" for name, value in self._others]
        interval = f" Interval: {self._interval}." if self.regions else ""
        return f"Log-likelihood over {self.name}: {'; '.join(known) or 'no maximum'}.{interval}"

    def _caption(self) -> str:
        words = "At each value, the log-likelihood is maximised over all other parameters."
        if self.regions:
            words += " Blue: the likelihood-ratio interval; the dashed line is its level."
        return words

    def _table(self) -> Table:
        some = np.linspace(0, len(self.points) - 1, _TABLE_POINTS).round().astype(int)
        lines = [
            [_number(self.points[place]), f"{self.log_likelihood[place]:,.3f}", ""]
            for place in some
        ]
        for name, *_, rows in self._maxima:
            for place, height in rows.iloc[:, :2].to_numpy(dtype=float):
                lines.append([_number(place), f"{height:,.3f}", name])
        lines += ([_number(value), "", name] for name, value in self._others)
        titles = [self.name], ["Log-likelihood", "What"]
        return lay_out(*titles, lines, self._title(), "profile-table")

    def _body(self) -> Panels:
        """Return the curve over what is of interest, with the estimates."""
        (first, last), (low, high) = self._ends, self.limits()
        # The tails leave the picture.
        heights = np.where(self.log_likelihood < low, np.nan, self.log_likelihood)
        marks: list[Mark] = [Rule(y=self.level, kind="cut")] if self.regions else []
        for region in self.regions:
            ends = max(region[0], first), min(region[1], last)
            marks.append(Band(ends, (low, low), (high, high), "this"))
        marks.append(Curve(tuple(self.points.tolist()), tuple(heights.tolist()), "this"))
        for _, value in self._others:
            side = self._side(value)
            if side is None:
                marks.append(Rule(value, kind="cut", color="ols"))
            else:
                edge, above = last if side == "right" else first, low + 0.06 * (high - low)
                marks.append(Point(edge, above, "ols", side))
        for _, shape, color, rows in self._maxima:
            places = rows.iloc[:, [0]].assign(height=rows["log_likelihood"]).to_numpy(dtype=float)
            marks += (Point(x, y, color, shape) for x, y in places.tolist())
        y = Axis(low, high, "profile log-likelihood", most=(5, 5))
        panel = Panel(y, tuple(marks), 230.0, 26.0)
        return Panels(Axis(first, last, self.name, grid=False), (panel,), 2.9, left=60.0)

    def _side(self, value: float) -> Literal["left", "right"] | None:
        """Return at which end of the axis an estimate lies beyond it; None inside."""
        first, last = self._ends
        if first < value < last:
            return None
        return "right" if value >= last else "left"


class Profile(Protocol):
    """The log-likelihood over rho, as `heckmanfa.inference.profile_rho` returns it."""

    def curve(self, conf_level: float) -> ProfileCurve:
        """Return what the picture shows."""
        ...


class ProfiledModel(Protocol):
    """A model that profiles its likelihood."""

    def profile_rho(
        self, X: Any, y: Any, *, grid: Any, selected: Any, sample_weight: Any
    ) -> Profile:
        """Return the log-likelihood over rho."""
        ...


def rho_profile(
    model: ProfiledModel,
    X: Any,
    y: Any = None,
    ax: Any = None,
    n_grid: int = 41,
    *,
    grid: ArrayLike | None = None,
    conf_level: float = 0.95,
    selected: Any = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the log-likelihood over rho, maximised over all other parameters.

    Parameters
    ----------
    model : Heckman
        Fitted.
    X, y, selected, sample_weight
        As in `imr_overlap`.
    ax : Axes, optional
    n_grid : int
        How many values of rho between -0.998 and 0.998 to evaluate.
    grid : array_like, optional
        Values of rho to evaluate instead.
    conf_level : float
        Confidence level of the likelihood-ratio interval, which is shaded. It is about the
        highest maximum; the dotted line is the log-likelihood at its ends.

    See Also
    --------
    heckmanfa.inference.profile_rho : the numbers.
    """
    profile = model.profile_rho(
        X,
        y,
        grid=n_grid if grid is None else grid,
        selected=selected,
        sample_weight=sample_weight,
    )
    return profile.curve(conf_level).draw(ax)


def _number(value: float) -> str:
    text = f"{value:.3f}"
    # A coefficient may be small in its units.
    if abs(value) < 0.01:
        text = f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")
