"""What a search looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.columns.features import nearest
from heckmanfa.errors import InputError, NotSearchedError, UnknownFeatureError
from heckmanfa.plots._canvas import BLUE, GREY, LIGHT, VERMILION, canvas, label_of
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    from heckmanfa.estimators.base import SelectionModel
    from heckmanfa.estimators.search_base import SearchModel

__all__ = ["specification_curve"]

_WORDS = {"adjusted_r2": "adjusted R²", "bic": "BIC", "aic": "AIC"}
_HEIGHT_INCHES = 3.6
# Of more than these, dots are small, and are saved as pixels in a file of vectors.
_FEW, _MANY = 300, 2000
_LEGEND_SIZE = 3.0


def specification_curve(
    model: SelectionModel, ax: Any = None, term: str | int | None = None
) -> NDArray[Any]:
    """Draw the assignments that a search looked at, sorted by its criterion, the best first.

    The upper panel is the criterion, or the coefficient of a feature in the assignments that hold
    it; the lower one is the estimate of rho. Both are two-step estimates. Where the search had a
    window of rho, that is shaded, and assignments outside it, which could not be chosen, are grey.

    Parameters
    ----------
    model : HeckmanFA, HeckmanBestSubset or HeckmanLasso
        Fitted.
    ax : pair of Axes, optional
        The upper and the lower one; a new figure unless given.
    term : str or int, optional
        A feature, by its name or position.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Two.
    """
    searched = _searched(model)
    search = searched._searched()
    values = search.values
    kept = np.flatnonzero(np.isfinite(values))
    better = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    kept = kept[np.argsort(better * values[kept], kind="stable")]
    masks, inside, rho = search.masks[kept], search.in_range[kept], search.rho[kept]
    chosen = np.flatnonzero(np.all(masks == searched.support_, axis=1))
    word = _WORDS[search.goal.criterion]
    if term is None:
        upper = values[kept]
    else:
        column = _column(searched, term)
        upper = _coefficients(searched, masks, column)
    window = search.goal.rho_range
    marks: dict[str, Any] = {}
    with canvas(ax, _HEIGHT_INCHES, rows=2) as drawn:
        above, below = drawn.axes
        if window is not None:
            marks["window of rho"] = _shade(below, window)
        if term is not None:
            above.set_title(label_of(searched._names[column]))
            above.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
        for panel, heights in ((above, upper), (below, rho)):
            marks |= _dots(panel, heights, inside, chosen, window is not None)
        above.set_ylabel(word if term is None else "coefficient")
        below.set_ylabel("estimate of rho")
        shown, looked = len(kept), search.n_assignments
        count = f"{shown:,}" if shown == looked else f"{shown:,} of {looked:,}"
        noun = "assignment" if looked == 1 else "assignments"
        below.set_xlabel(f"{count} {noun}, best first by {word}")
        for panel in drawn.axes:
            panel.set_xlim(*_limits(shown))
            panel.margins(y=0.08)
            if drawn.is_new:
                panel.locator_params(axis="x", integer=True, min_n_ticks=1)
        drawn.legend(marks)
    return drawn.axes


def _searched(model: Any) -> SearchModel:
    from heckmanfa.estimators.search_base import SearchModel

    if not isinstance(model, SearchModel):
        raise NotSearchedError(
            f"{type(model).__name__} does not search for features, so there is one "
            "specification only; fit HeckmanFA or HeckmanBestSubset"
        )
    return model


def _column(model: SearchModel, term: str | int) -> int:
    for names in (model.fit_.feature_names, list[Any](model.fit_.labels)):
        if term in names:
            return int(names.index(term))
    raise UnknownFeatureError(
        f"term names {quoted(term)}, which is no feature of the model"
        + nearest(str(term), model.fit_.labels)
    )


def _coefficients(model: SearchModel, masks: NDArray[np.bool_], column: int) -> NDArray[np.float64]:
    """Coefficient of a feature in each assignment, NaN in those without it."""
    holds = masks[:, column]
    if not holds.any():
        raise InputError(
            f"no assignment that was kept holds {quoted(model.fit_.labels[column])}, so there is "
            "no "
            "coefficient to draw"
        )
    found = np.full(len(masks), np.nan)
    found[holds] = model.fit_.moments.solve(masks[holds]).coef[:, column]
    return found


def _limits(count: int) -> tuple[float, float]:
    """Where the picture starts and ends, so that the first mark is shown whole."""
    space = max(0.02 * count, 0.5)
    return 1.0 - space, count + space


def _shade(panel: Any, window: tuple[float, float]) -> Any:
    shade = panel.axhspan(*window, facecolor=BLUE, alpha=0.12, linewidth=0, zorder=0)
    for end in window:
        panel.axhline(end, color=BLUE, linewidth=0.6, linestyle="--", zorder=1)
    return shade


def _dots(
    panel: Any,
    heights: NDArray[np.float64],
    inside: NDArray[np.bool_],
    chosen: NDArray[np.intp],
    windowed: bool,
) -> dict[str, Any]:
    """Draw a panel, and return what a legend needs."""
    places = np.arange(1, len(heights) + 1)
    size = _LEGEND_SIZE if len(heights) <= _FEW else 1.4
    marks: dict[str, Any] = {}
    names = ("rho in the window", "rho outside it") if windowed else ("an assignment", "")
    for name, rows, color, marker, layer in (
        (names[0], inside, BLUE, "o", 3),
        (names[1], ~inside, LIGHT, "x", 2),
    ):
        rows = rows & np.isfinite(heights)
        if rows.any():
            look = {"linestyle": "none", "marker": marker, "color": color, "markeredgewidth": 0.5}
            panel.plot(
                places[rows],
                heights[rows],
                markersize=size,
                zorder=layer,
                rasterized=len(heights) > _MANY,
                **look,
            )
            # A legend shows a dot that can be seen.
            (marks[name],) = panel.plot([], [], markersize=_LEGEND_SIZE, **look)
    if len(chosen) and np.isfinite(heights[chosen[0]]):
        (marks["chosen"],) = panel.plot(
            places[chosen],
            heights[chosen],
            linestyle="none",
            marker="D",
            markersize=5.0,
            color=VERMILION,
            markeredgecolor="black",
            markeredgewidth=0.6,
            zorder=4,
        )
    return marks
