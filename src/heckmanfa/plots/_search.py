"""The assignments that a search evaluated."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import nearest
from heckmanfa.errors import InputError, NotSearchedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.plots._canvas import BLUE, GREY, LIGHT, VERMILION, canvas, label_of
from heckmanfa.plots.candidate_points import CandidatePoints, read_candidates
from heckmanfa.text.printable import quoted

_WORDS = {"adjusted_r2": "adjusted R²", "bic": "BIC", "aic": "AIC"}
_HEIGHT_INCHES = 3.6
# Beyond these, dots are small, and are saved as pixels in a vector file.
_FEW, _MANY = 300, 2000
_LEGEND_SIZE = 3.0


class SearchedModel(Fitted, Protocol):
    """A model that searched for its prediction features."""

    @property
    def candidates_(self) -> Any:
        """The assignments that the search kept."""
        ...


def specification_curve(
    model: SearchedModel, ax: Any = None, term: str | int | None = None
) -> NDArray[Any]:
    """Draw the assignments that a search evaluated, best first by its criterion.

    The upper panel is the criterion, or the coefficient of a feature in the assignments that hold
    it; the lower one is the estimate of rho. Both are two-step estimates. If the search had a
    window of rho, it is shaded; assignments outside it, which could not be chosen, are grey.

    Parameters
    ----------
    model : HeckmanFA, HeckmanBestSubset or HeckmanLasso
        Fitted.
    ax : pair of Axes, optional
        The upper and the lower one; a new figure by default.
    term : str or int, optional
        A feature, by its name or position.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Two.
    """
    found = _candidates(model).solved()
    word = _WORDS[found.criterion]
    column = None if term is None else _column(model.fit_, term)
    upper = found.value if column is None else _coefficients(found, column)
    window = found.window
    marks: dict[str, Any] = {}
    with canvas(ax, _HEIGHT_INCHES, rows=2) as drawn:
        above, below = drawn.axes
        if window is not None:
            marks["window of rho"] = _shade(below, window)
        if column is not None:
            above.set_title(label_of(found.names[column]))
            above.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
        for panel, heights in ((above, upper), (below, found.rho)):
            marks |= _dots(panel, heights, found)
        above.set_ylabel(word if term is None else "coefficient")
        below.set_ylabel("estimate of rho")
        n, total = len(found), found.n_evaluated
        count = f"{n:,}" if n == total else f"{n:,} of {total:,}"
        noun = "assignment" if total == 1 else "assignments"
        below.set_xlabel(f"{count} {noun}, best first by {word}")
        for panel in drawn.axes:
            panel.set_xlim(*_limits(n))
            panel.margins(y=0.08)
            if drawn.is_new:
                panel.locator_params(axis="x", integer=True, min_n_ticks=1)
        drawn.legend(marks)
    return drawn.axes


def _candidates(model: SearchedModel) -> CandidatePoints:
    found = read_candidates(model.fit_)
    if found is not None:
        return found
    if model.fit_.search is None:
        raise NotSearchedError(
            f"{type(model).__name__} does not search for features, so there is one "
            "specification only; fit HeckmanFA or HeckmanBestSubset"
        )
    # It raises: no outcome was missing, so nothing was searched.
    raise NotSearchedError(str(model.candidates_))


def _column(fit: Fit, term: str | int) -> int:
    for names in (fit.feature_names, list[Any](fit.labels)):
        if term in names:
            return int(names.index(term))
    raise UnknownFeatureError(
        f"term names {quoted(term)}, which is not a feature of the model"
        + nearest(str(term), fit.labels)
    )


def _coefficients(found: CandidatePoints, column: int) -> Floats:
    """Coefficient of a feature in each assignment, NaN in those without it."""
    if not found.masks[:, column].any():
        raise InputError(
            f"no assignment that was kept holds {quoted(found.names[column])}, so there is no "
            "coefficient to draw"
        )
    return found.coef[:, column]


def _limits(count: int) -> tuple[float, float]:
    """Where the picture starts and ends, so that the first mark is shown whole."""
    space = max(0.02 * count, 0.5)
    return 1.0 - space, count + space


def _shade(panel: Any, window: tuple[float, float]) -> Any:
    shade = panel.axhspan(*window, facecolor=BLUE, alpha=0.12, linewidth=0, zorder=0)
    for end in window:
        panel.axhline(end, color=BLUE, linewidth=0.6, linestyle="--", zorder=1)
    return shade


def _dots(panel: Any, heights: Floats, found: CandidatePoints) -> dict[str, Any]:
    """Draw a panel, and return what a legend needs."""
    places = np.arange(1, len(heights) + 1)
    size = _LEGEND_SIZE if len(heights) <= _FEW else 1.4
    marks: dict[str, Any] = {}
    names = (
        ("rho in the window", "rho outside it")
        if found.window is not None
        else ("an assignment", "")
    )
    for name, rows, color, marker, layer in (
        (names[0], found.inside, BLUE, "o", 3),
        (names[1], ~found.inside, LIGHT, "x", 2),
    ):
        rows = rows & np.isfinite(heights)
        if rows.any():
            style = {"linestyle": "none", "marker": marker, "color": color, "markeredgewidth": 0.5}
            panel.plot(
                places[rows],
                heights[rows],
                markersize=size,
                zorder=layer,
                rasterized=len(heights) > _MANY,
                **style,
            )
            # A legend shows a dot that can be seen.
            (marks[name],) = panel.plot([], [], markersize=_LEGEND_SIZE, **style)
    chosen = found.chosen
    if chosen is not None and np.isfinite(heights[chosen]):
        (marks["chosen"],) = panel.plot(
            [chosen + 1],
            [heights[chosen]],
            linestyle="none",
            marker="D",
            markersize=5.0,
            color=VERMILION,
            markeredgecolor="black",
            markeredgewidth=0.6,
            zorder=4,
        )
    return marks
