"""Curves over rho, or over a coefficient: estimates at each rho, and the log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
from numpy.typing import ArrayLike, NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputTypeError
from heckmanfa.plots.canvas import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    canvas,
    given_canvas,
    label_of,
    mark_points,
    panel_canvas,
    wanted_terms,
)

_AT_ZERO = {"ols": "least squares", "probit": "naive probit"}
# How far below the points of interest the picture goes: in units of log-likelihood, and as a share
# of the distance between the highest and the lowest of them. The tails would flatten all else.
_BELOW = 10.0, 0.5


@dataclass(frozen=True, eq=False)
class RhoCurves:
    """Each coefficient over rho, with its bounds within a range of rho."""

    path: pd.DataFrame
    """term, rho, estimate, ci_low and ci_high, the terms in the same order at each rho"""
    bounds: pd.DataFrame
    """a row for each term, as `UncertaintyInterval.tidy` returns them"""
    rho: tuple[float, float]
    """the range that the bounds are for"""
    conf_level: float
    rho_hat: float
    zero: str = "ols"
    """column of ``bounds`` with the estimates at rho = 0: "ols", or "probit" if the outcome is
    binary"""

    def curve(self, position: int) -> pd.DataFrame:
        """Return the path of a term by its position: names need not be distinct."""
        return self.path.iloc[position :: len(self.bounds)]


class Interval(Protocol):
    """Coefficients over a range of rho, as `uncertainty_interval` returns them."""

    def curves(self) -> RhoCurves:
        """Return what the picture shows."""
        ...


def uncertainty(
    interval: Interval, terms: Sequence[str] | None = None, axes: Any = None
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
    known = list(curves.bounds["term"])
    wanted = wanted_terms(known, terms)
    drawn = panel_canvas(len(wanted)) if axes is None else given_canvas(axes, len(wanted))
    marks: dict[str, Any] = {}
    for panel, term in zip(drawn.axes, wanted, strict=True):
        marks |= _draw(panel, curves, known.index(term))
        panel.set_title(label_of(term))
        panel.set_xlabel("rho")
        panel.set_ylabel("coefficient")
    drawn.legend(marks, fontsize="small")
    return drawn.axes


def _draw(panel: Any, curves: RhoCurves, position: int) -> dict[str, Any]:
    """Draw one coefficient, and return what a legend needs."""
    path, row = curves.curve(position), curves.bounds.iloc[position]
    low, high = curves.rho
    level = f"{100 * curves.conf_level:g}% confidence interval"
    marks: dict[str, Any] = {}
    panel.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
    if low == high:
        spread = (path["ci_high"] - path["ci_low"]) / 2.0
        marks["estimate"], _, (marks[level],) = panel.errorbar(
            path["rho"], path["estimate"], yerr=spread, fmt="s", color=BLUE, capsize=4
        )
        panel.set_xlim(low - 0.1, low + 0.1)
    else:
        (marks["estimate"],) = panel.plot(
            path["rho"], path["estimate"], color=BLUE, linewidth=1.8, zorder=3
        )
        marks[level] = panel.fill_between(
            path["rho"], path["ci_low"], path["ci_high"], color=BLUE, alpha=0.18, linewidth=0
        )
        for bound in (row["bound_low"], row["bound_high"]):
            marks["bounds of the estimate"] = panel.axhline(
                bound, color=BLUE, linewidth=1.0, linestyle=":", zorder=2
            )
        panel.set_xlim(low, high)
    significance = [row["significance_low"], row["significance_high"]]
    for label, values, height, marker, color in (
        (_AT_ZERO[curves.zero], [0.0], row[curves.zero], "o", "black"),
        ("sign changes", [row["sign_change"]], 0.0, "X", VERMILION),
        ("significance first changes", significance, 0.0, "D", ORANGE),
    ):
        inside = [rho for rho in values if low <= rho <= high]
        if inside:
            # A mark at an end of the range is shown whole.
            heights = [height] * len(inside)
            marks[label] = mark_points(
                panel, inside, heights, marker, color, markersize=6, zorder=5, clip_on=False
            )
    return marks


@dataclass(frozen=True, eq=False)
class ProfileCurve:
    """The log-likelihood over a parameter, with its maxima and the likelihood-ratio interval."""

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
    return draw_profile(profile.curve(conf_level), ax)


def draw_profile(curve: ProfileCurve, ax: Any) -> Any:
    """Draw a profile; see `rho_profile`."""
    marks: dict[str, Any] = {}
    first, last = curve.ends or (float(curve.points[0]), float(curve.points[-1]))
    with canvas(ax, 2.9) as drawn:
        (panel,) = drawn.axes
        pieces = ", ".join(f"[{_number(low)}, {_number(high)}]" for low, high in curve.regions)
        for low, high in curve.regions:
            marks[f"{100 * curve.conf_level:g}% {pieces}"] = panel.axvspan(
                max(low, first), min(high, last), facecolor=BLUE, alpha=0.15, linewidth=0, zorder=0
            )
        if curve.regions:
            panel.axhline(curve.level, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
        panel.plot(curve.points, curve.log_likelihood, color=BLUE, zorder=2)
        for name, value in (("two-step", curve.two_step), ("naive probit", curve.naive_probit)):
            if math.isfinite(value):
                marks[f"{name} {_number(value)}"] = _beside(panel, value, first, last)
        reported = curve.maxima["reported"].astype(bool)
        for name, rows, fill in (
            ("ML", curve.maxima[reported], VERMILION),
            ("another maximum", curve.maxima[~reported], "white"),
        ):
            if len(rows):
                places, heights = rows.iloc[:, 0], rows["log_likelihood"]
                positions = ", ".join(map(_number, places))
                marks[f"{name} {positions}"] = mark_points(
                    panel, places, heights, "o", fill, markeredgewidth=0.8, clip_on=False
                )
        panel.set_xlim(first, last)
        panel.set_ylim(*curve.limits())
        panel.set_xlabel(curve.name)
        panel.set_ylabel("profile log-likelihood")
        drawn.legend(marks)
    return panel


def _number(value: float) -> str:
    text = f"{value:.3f}"
    # A coefficient may be small in its units.
    if abs(value) < 0.01:
        text = f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def _beside(panel: Any, value: float, first: float, last: float) -> Any:
    """Draw another estimate: a line, or an arrow at the edge that it lies beyond."""
    if first < value < last:
        return panel.axvline(value, color=ORANGE, linewidth=1.0, linestyle="--", zorder=1)
    arrow, edge = (">", last) if value >= last else ("<", first)
    across = panel.get_xaxis_transform()
    return mark_points(panel, [edge], [0.06], arrow, ORANGE, transform=across, clip_on=False)
