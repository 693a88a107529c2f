"""Coefficients over a range of rho that is assumed rather than estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
from numpy.typing import NDArray

from heckmanfa.errors import InputTypeError
from heckmanfa.plots.canvas import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    given_canvas,
    label_of,
    mark_points,
    panel_canvas,
    wanted_terms,
)

_AT_ZERO = {"ols": "least squares", "probit": "naive probit"}


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
