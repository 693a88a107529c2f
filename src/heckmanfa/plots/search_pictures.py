"""What a search evaluated, best first, and the probabilities of Heckman-FA over its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, InputTypeError, NotSearchedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.model.moments import Moments
from heckmanfa.plots.canvas import (
    BLUE,
    COLORS,
    GREY,
    LIGHT,
    LINES,
    VERMILION,
    canvas,
    label_of,
    mark_points,
)
from heckmanfa.search.searched import Search
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import CRITERIA, nearest, plural

_HEIGHT_INCHES = 3.6
# Beyond these, dots are small, and are saved as pixels in a vector file.
_FEW, _MANY = 300, 2000
_LEGEND_SIZE = 3.0
_LABEL_INCHES = 0.14
_SPACE = 1.05
# In widths of the axes, from their left.
_NAMES_AT = 1.07


@dataclass(frozen=True, eq=False)
class CandidatePoints:
    """The N assignments that a search kept, best first by its criterion, whatever their rho."""

    criterion: str
    window: tuple[float, float] | None
    masks: Mask
    """(N, K)"""
    value: Floats
    """(N,) the criterion"""
    rho: Floats
    """(N,)"""
    inside: Mask
    """(N,) whether rho is in the window"""
    chosen: int | None
    """position of the assignment of the model; None if it is not among them"""
    n_evaluated: int
    """assignments that the search evaluated"""
    names: tuple[str, ...]
    """(K,) of the columns of X"""
    moments: Moments
    refitted: Floats | None = None
    """(N, K) coefficients of refits by maximum likelihood; None if the outcome is not binary"""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.masks)

    @cached_property
    def coef(self) -> Floats:
        """(N, K) coefficients by two-step or refits, NaN if a feature is not held."""
        solved = self.refitted
        if solved is None:
            solved = self.moments.solve(self.masks).coef
        return np.where(self.masks, solved, np.nan)

    @property
    def rank_limits(self) -> tuple[float, float]:
        """Where an axis of ranks starts and ends, with room to show the first mark whole."""
        space = max(0.02 * len(self), 0.6)
        return 1.0 - space, len(self) + space

    @property
    def criterion_name(self) -> str:
        """The criterion as texts call it."""
        return CRITERIA[self.criterion]


def _points(fit: Fit, search: Search) -> CandidatePoints:
    """Sort the candidates of a search that can be fitted by its criterion."""
    sign = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    order = np.argsort(sign * search.values, kind="stable")
    order = order[np.isfinite(search.values[order])]
    masks = search.masks[order]
    same = np.flatnonzero((masks == fit.support).all(axis=1))
    return CandidatePoints(
        criterion=search.goal.criterion,
        window=search.goal.rho_range,
        masks=masks,
        value=search.values[order],
        rho=search.rho[order],
        inside=search.in_range[order],
        chosen=int(same[0]) if len(same) else None,
        n_evaluated=search.n_assignments,
        names=fit.labels,
        moments=fit.moments,
        refitted=None if search.refits is None else search.refits.coef[order],
    )


def specification_curve(
    model: Fitted, ax: Any = None, term: str | int | None = None
) -> NDArray[Any]:
    """Draw the assignments that a search evaluated, best first by its criterion.

    The upper panel is the criterion, or the coefficient of a feature in the assignments that hold
    it; the lower one is the estimate of rho. Both are two-step estimates or, of a binary outcome,
    those of the refits by maximum likelihood. If the search had a window of rho, it is shaded;
    assignments outside it, which could not be chosen, are grey.

    Parameters
    ----------
    model : HeckmanFA, HeckmanBestSubset, HeckmanLasso or HeckmanProbitBestSubset
        Fitted.
    ax : pair of Axes, optional
        The upper and the lower one.
    term : str or int, optional
        A feature, by its name or position.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Two.
    """
    # Ask the class: a model that is not fitted says so itself.
    if not hasattr(type(model), "fit_"):
        raise InputTypeError(f"model must be a fitted search; got a {type(model).__name__}")
    fit = model.fit_
    if fit.average is not None:
        raise NotSearchedError(
            f"{type(model).__name__} chooses no assignment to compare with others; assignments_ "
            "has the heaviest, or fit HeckmanBestSubset"
        )
    if fit.search is None:
        raise NotSearchedError(
            f"{type(model).__name__} does not search for features, so there is one "
            f"specification only; fit {fit.family.words.searches}"
        )
    found = _points(fit, fit.search.check_candidates("the list of candidates"))
    word = found.criterion_name.replace("R2", "R²")
    column = None if term is None else _column(fit, term)
    if column is not None and not found.masks[:, column].any():
        raise InputError(
            f"no assignment that was kept holds {quoted(found.names[column])}, so there is no "
            "coefficient to draw"
        )
    marks: dict[str, Any] = {}
    with canvas(ax, _HEIGHT_INCHES, rows=2) as drawn:
        above, below = drawn.axes
        if found.window is not None:
            marks["window of rho"] = below.axhspan(
                *found.window, facecolor=BLUE, alpha=0.12, linewidth=0, zorder=0
            )
            for end in found.window:
                below.axhline(end, color=BLUE, linewidth=0.6, linestyle="--", zorder=1)
        if column is not None:
            above.set_title(label_of(found.names[column]))
            above.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
        marks |= _dots(above, found.value if column is None else found.coef[:, column], found)
        marks |= _dots(below, found.rho, found)
        above.set_ylabel(word if term is None else "coefficient")
        below.set_ylabel("estimate of rho")
        n, total = len(found), found.n_evaluated
        some = "" if n == total else f"{n:,} of "
        below.set_xlabel(f"{some}{plural(total, 'assignment')}, best first by {word}")
        for panel in drawn.axes:
            panel.set_xlim(*found.rank_limits)
            panel.margins(y=0.08)
            if drawn.is_new:
                panel.locator_params(axis="x", integer=True, min_n_ticks=1)
        drawn.legend(marks)
    return drawn.axes


def _column(fit: Fit, term: str | int) -> int:
    if not isinstance(term, str | Integral):
        raise InputTypeError(
            f"term must be a feature's name or position; got a {type(term).__name__}. The picture "
            "needs no rows."
        )
    for names in (fit.feature_names, list[Any](fit.labels)):
        if term in names:
            return int(names.index(term))
    raise UnknownFeatureError(
        f"term names {quoted(term)}, which is not a feature of the model"
        + nearest(str(term), fit.labels)
    )


def _dots(panel: Any, heights: Floats, found: CandidatePoints) -> dict[str, Any]:
    """Draw a panel; return what a legend needs."""
    ranks = np.arange(1, len(heights) + 1)
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
                ranks[rows],
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
        marks["chosen"] = mark_points(panel, [chosen + 1], [heights[chosen]], "D", VERMILION)
    return marks


@dataclass(frozen=True, eq=False)
class TrainingPath:
    """The probability of each feature over the epochs recorded."""

    epochs: Floats
    """(R,)"""
    probability: Floats
    """(R, K)"""
    names: tuple[str, ...]
    support: Mask
    """(K,) which features predict"""
    order: tuple[int, ...]
    """features that were trained, by their probability at the end, the highest first"""


def read_path(
    path: Mapping[str, Any] | None, names: tuple[str, ...], support: Mask
) -> TrainingPath | None:
    """Return the training as ``path_`` of a model records it; None without a record."""
    if not path or not len(path["epoch"]):
        return None
    probability = np.asarray(path["inclusion_prob"])
    trained = np.flatnonzero(np.isfinite(probability).all(axis=0))
    order = trained[np.argsort(-probability[-1, trained], kind="stable")]
    return TrainingPath(
        epochs=np.asarray(path["epoch"]),
        probability=probability,
        names=names,
        support=support,
        order=tuple(int(column) for column in order),
    )


def assignment_path(model: Fitted, ax: Any = None, top: int = 8) -> Any:
    """Draw the probability that each feature predicts over the epochs of the training.

    Parameters
    ----------
    model : HeckmanFA
        Fitted with ``record_path``.
    ax : Axes, optional
    top : int
        How many features to name: those with the largest probabilities at the end. The others
        are thin grey lines.
    """
    found = _recorded_path(model)
    if not isinstance(top, Integral) or top < 1:
        raise InputError(f"top must be an integer of at least 1; got {quoted(top)}")
    epochs, path = found.epochs, found.probability
    named, others = found.order[: int(top)], found.order[int(top) :]
    names = [label_of(found.names[column]) for column in named]
    with canvas(ax, max(2.5, 0.7 + _LABEL_INCHES * len(named))) as drawn:
        (panel,) = drawn.axes
        marks: dict[str, Any] = {}
        for column in others:
            (line,) = panel.plot(epochs, path[:, column], color=LIGHT, linewidth=0.6, zorder=1)
            marks[f"{len(others)} other features"] = line
        lines = [
            panel.plot(
                epochs,
                path[:, column],
                color=COLORS[rank % len(COLORS)],
                linestyle=LINES[rank % len(LINES)],
                zorder=3,
            )[0]
            for rank, column in enumerate(named)
        ]
        panel.set_xlim(epochs[0] - (len(epochs) < 2), epochs[-1])
        trained = path[:, list(found.order)]
        space = 0.05 * max(float(np.ptp(trained)), 0.1)
        panel.set_ylim(float(trained.min()) - space, float(trained.max()) + space)
        panel.set_xlabel("epoch")
        panel.set_ylabel("inclusion probability")
        if others:
            drawn.legend(marks)
        _label_ends(panel, lines, names)
    return panel


def _recorded_path(model: Any) -> TrainingPath:
    check_is_fitted(model)
    recorded = model.path_ if hasattr(type(model), "path_") else None
    if recorded is None:
        cure = "fit HeckmanFA(record_path=40) to see how the probabilities of its features change"
        if "two steps" not in model.fit_.family.supports:
            cure = "no search for a binary outcome does, so there is no path to draw"
        raise InputError(f"{type(model).__name__} trains nothing; {cure}")
    columns = model.fit_.spec.columns
    found = read_path(recorded, columns.labels_of_x, model.support_)
    if found is not None:
        return found
    model.fit_.search.check_searched()
    reason = (
        "extraction='correlation' trains nothing"
        if model.extraction == "correlation"
        else "the training was not recorded"
    )
    raise InputError(
        f"{reason}: fit with record_path=40 (a record every 40 epochs, at most the number of "
        "epochs) and extraction='sample' or 'rank'"
    )


def _label_ends(panel: Any, lines: list[Any], names: list[str]) -> None:
    """Write a name at the end of each line, moved up or down if two would overlap."""
    from matplotlib.collections import LineCollection

    ends = np.array([line.get_ydata()[-1] for line in lines])
    beside = panel.get_yaxis_transform()
    texts = [
        panel.text(_NAMES_AT, end, name, transform=beside, va="center_baseline")
        for name, end in zip(names, ends, strict=True)
    ]
    # The height of a line of text is known only after the layout.
    panel.figure.draw_without_rendering()
    height = max(text.get_window_extent().height for text in texts)
    low, high = panel.get_ylim()
    gap = _SPACE * height / panel.get_window_extent().height * (high - low)
    heights = _spread(ends, gap, low, high)
    for text, y in zip(texts, heights, strict=True):
        text.set_y(y)
    panel.add_collection(
        LineCollection(
            [[(1.0, end), (_NAMES_AT - 0.01, y)] for end, y in zip(ends, heights, strict=True)],
            colors=[line.get_color() for line in lines],
            linewidths=0.6,
            transform=beside,
            clip_on=False,
        ),
        autolim=False,
    )


def _spread(heights: Floats, gap: float, low: float, high: float) -> Floats:
    """Move heights apart by at least a gap, as little as possible, and within the limits."""
    n = len(heights)
    # Of several at the same height the first stays the highest.
    order = np.lexsort((-np.arange(n), heights))
    gap = min(gap, (high - low) / max(n - 1, 1))
    steps = gap * np.arange(n)
    moved = isotonic_regression(heights[order] - steps)
    spread = np.empty(n)
    spread[order] = np.clip(moved, low, high - steps[-1]) + steps
    return spread
