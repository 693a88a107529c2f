"""Coefficients over a range of rho."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.errors import InputError
from heckmanfa.plots._canvas import BLUE, GREY, ORANGE, VERMILION, label_of, pyplot, wanted_terms
from heckmanfa.plots.rho_curves import RhoCurves

_PANELS_PER_ROW = 3
_PANEL_INCHES = (3.1, 2.6)
_LEGEND_INCHES = 2.0


class Interval(Protocol):
    """Coefficients over a range of rho, as `uncertainty_interval` returns them."""

    @property
    def conf_level(self) -> float:
        """Confidence level of the intervals."""
        ...

    @property
    def rho_hat(self) -> float:
        """The rho that the model estimates."""
        ...

    @property
    def rho(self) -> tuple[float, float]:
        """The range."""
        ...

    def path(self) -> pd.DataFrame:
        """Return the coefficients at each rho."""
        ...

    def tidy(self) -> pd.DataFrame:
        """Return the bounds of each coefficient."""
        ...


def uncertainty(
    interval: Interval, terms: Sequence[str] | None = None, axes: Any = None
) -> NDArray[Any]:
    """Draw coefficients over the range of rho, one panel each.

    A line is the estimate at each rho and the band its confidence interval; dotted lines are the
    bounds of the estimate. A dot is least squares (rho = 0), a cross the rho at which the sign
    changes, and a diamond the nearest one below or above zero at which the confidence interval
    starts or stops to contain zero, all where they are inside the range.

    Parameters
    ----------
    interval : UncertaintyInterval
    terms : sequence of str, optional
        Coefficients to draw, "Intercept" among them; all others by default.
    axes : Axes or array of Axes, optional
        One for each term; a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each term, in order.
    """
    curves = RhoCurves(
        interval.path(), interval.tidy(), interval.rho, interval.conf_level, interval.rho_hat
    )
    known = list(curves.bounds["term"])
    wanted = wanted_terms(known, terms)
    panels, is_new = _panels(len(wanted), axes)
    marks: dict[str, Any] = {}
    for panel, term in zip(panels, wanted, strict=True):
        marks |= _draw(panel, curves, known.index(term))
        panel.set_title(label_of(term))
        panel.set_xlabel("rho")
        panel.set_ylabel("coefficient")
    if is_new:
        figure = panels[0].figure
        figure.legend(
            marks.values(),
            marks.keys(),
            loc="outside lower center",
            ncols=int(figure.get_figwidth() / _LEGEND_INCHES),
            frameon=False,
            fontsize="small",
        )
    else:
        panels[0].legend(marks.values(), marks.keys(), fontsize="small")
    return panels


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
    shown = {
        "least squares": ([0.0], row["ols"], "o", "black"),
        "sign changes": ([row["sign_change"]], 0.0, "X", VERMILION),
        "significance first changes": (
            [row["significance_low"], row["significance_high"]],
            0.0,
            "D",
            ORANGE,
        ),
    }
    for label, (places, height, marker, color) in shown.items():
        inside = [rho for rho in places if low <= rho <= high]
        if inside:
            # A mark at an end of the range is shown whole.
            (marks[label],) = panel.plot(
                inside,
                [height] * len(inside),
                linestyle="none",
                marker=marker,
                markersize=6,
                color=color,
                markeredgecolor="black",
                markeredgewidth=0.6,
                zorder=5,
                clip_on=False,
            )
    return marks


def _panels(count: int, axes: Any) -> tuple[NDArray[Any], bool]:
    """Return the axes given, or those of a new figure, and whether they are new."""
    if axes is not None:
        panels = np.asarray(axes, dtype=object).ravel()
        if len(panels) != count:
            raise InputError(f"{count} coefficients are to be drawn, but axes has {len(panels)}")
        return panels, False
    columns = 2 if count == 4 else min(count, _PANELS_PER_ROW)
    rows = -(-count // columns)
    width, height = _PANEL_INCHES
    figure, made = pyplot().subplots(
        rows,
        columns,
        squeeze=False,
        layout="constrained",
        # A single panel leaves room for the legend under it.
        figsize=(max(width * columns, 4.8), height * rows + 0.6),
    )
    panels = made.ravel()
    for spare in panels[count:]:
        figure.delaxes(spare)
    return panels[:count], True
