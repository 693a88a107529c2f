"""The assignments that a search kept, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, NotSearchedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.model.moments import Moments
from heckmanfa.plots._canvas import BLUE, GREY, LIGHT, VERMILION, canvas, label_of, mark_points
from heckmanfa.search.evaluation import KEPT, Search
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.table import Column, PictureText, Table, lay_out
from heckmanfa.text.wording import CRITERIA, count, listed, nearest, number, percent, plural

_RUNNER_UPS = 10
_HEIGHT_INCHES = 3.6
# Beyond these, dots are small, and are saved as pixels in a vector file.
_FEW, _MANY = 300, 2000
_LEGEND_SIZE = 3.0


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
    tolerance: float | None
    """how much worse than the best they are at most, if the search kept only such"""
    names: tuple[str, ...]
    """(K,) of the columns of X"""
    labels: tuple[str, ...]
    """(K,) the column of the table behind each"""
    moments: Moments

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.masks)

    @cached_property
    def coef(self) -> Floats:
        """(N, K) two-step coefficients, NaN if a feature is not held."""
        return np.where(self.masks, self.moments.solve(self.masks).coef, np.nan)

    @property
    def rank_limits(self) -> tuple[float, float]:
        """Where an axis of ranks starts and ends, with room to show the first mark whole."""
        space = max(0.02 * len(self), 0.6)
        return 1.0 - space, len(self) + space

    @property
    def criterion_name(self) -> str:
        """The criterion as texts call it."""
        return CRITERIA[self.criterion]

    def text(self) -> PictureText:
        """Return the words around the criterion and rho of every candidate."""
        words = self.criterion_name
        alt = (
            f"{plural(len(self), 'assignment')} in the order of their {words}, which runs from "
            f"{number(self.value[0], 5)} for the best to "
            f"{number(self.value[np.isfinite(self.value)][-1], 5)}; their rho is from "
            f"{_span(self.rho)}."
        )
        if self.window is not None:
            alt += f" {count(int(self.inside.sum()))} of them have rho in the window."
        if self.chosen is not None:
            alt += (
                f" The chosen one has rank {count(self.chosen + 1)}, {words} "
                f"{number(self.value[self.chosen], 5)} and rho {number(self.rho[self.chosen], 3)}."
            )
        return PictureText("Every candidate, best first", alt, self._caption(), self._runner_ups())

    def _caption(self) -> str:
        n = len(self)
        kept = f"{count(n)} of the {count(self.n_evaluated)} evaluated"
        if self.tolerance is not None:
            kept = f"those within {self.tolerance:g} of the best"
        if n == KEPT:
            kept = f"the best {count(n)}"
        text = (
            f"Each point is one way to choose the features that predict: {kept}, by "
            f"{self.criterion_name} above and by the two-step rho below. If points near the left "
            "have a rho of either sign, the data do not settle which way selection goes."
        )
        if self.window is not None:
            text += " The shaded band is the window of rho; open circles lie outside it."
        if self.chosen is None:
            text += " The model's features, chosen over splits of the rows, are not among them."
        unsolved = int(np.count_nonzero(~np.isfinite(self.value)))
        if unsolved:
            text += f" Not shown: {plural(unsolved, 'candidate')} that cannot be fitted."
        return text

    def _runner_ups(self) -> Table:
        columns = [
            Column("Rank", is_number=False),
            Column(self.criterion_name),
            Column("rho"),
            Column("In the window", is_number=False),
            Column("Features"),
            Column("Which", is_number=False),
        ]
        rows = []
        for rank in range(min(_RUNNER_UPS, len(self))):
            held = [self.labels[int(column)] for column in np.flatnonzero(self.masks[rank])]
            rows.append(
                [
                    f"{rank + 1}{' (chosen)' if rank == self.chosen else ''}",
                    number(self.value[rank], 6),
                    number(self.rho[rank]),
                    "yes" if self.inside[rank] else "no",
                    str(int(self.masks[rank].sum())),
                    listed(list(dict.fromkeys(held))),
                ]
            )
        if self.window is None:
            columns.pop(3)
            for row in rows:
                row.pop(3)
        return Table(tuple(columns), tuple(rows), "The best candidates", "curve-table")

    def coefficient_text(
        self, offered: Sequence[int], predicting: Sequence[int], n_left: int
    ) -> PictureText:
        """Return the words around coefficients over the candidates, for the columns offered."""
        rows = [self._spread(column, column in predicting) for column in offered]
        first = offered[0]
        values = self.coef[:, first]
        finite = values[np.isfinite(values)]
        same = float(np.mean(np.sign(finite) == np.sign(finite[0])))
        rest = f" {plural(n_left, 'feature')} that few hold cannot be picked." if n_left else ""
        return PictureText(
            title="How a coefficient moves over the candidates",
            alt=(
                f"The coefficient of {shown(self.names[first])} in the {count(len(finite))} "
                f"candidates that hold it is from {_span(values)}, and has the sign of the best "
                f"in {percent(same, 0)} of them. Other features are in the table."
            ),
            caption=(
                "Two-step estimates of one coefficient in every candidate that holds the feature, "
                "best first. A coefficient that keeps its sign and size does not depend on which "
                f"other features predict.{rest}"
            ),
            table=lay_out(
                ["Feature", "Predicts"],
                ["Held by", "Chosen", "Lowest", "Median", "Highest", "Positive"],
                rows,
                "Coefficients over the candidates that hold them",
                "spread-table",
            ),
        )

    def _spread(self, column: int, predicts: bool) -> list[str]:
        values = self.coef[:, column]
        finite = values[np.isfinite(values)]
        return [
            self.names[column],
            "yes" if predicts else "no",
            percent(len(finite) / len(self), 0),
            "" if self.chosen is None else number(values[self.chosen]),
            *(number(quantile) for quantile in np.quantile(finite, [0.0, 0.5, 1.0])),
            percent(float(np.mean(finite > 0)), 0),
        ]


def _span(values: Floats) -> str:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "unknown"
    return f"{number(finite.min(), 3)} to {number(finite.max(), 3)}"


def read_candidates(fit: Fit, labels: Sequence[str]) -> CandidatePoints | None:
    """Return the candidates of a search; None if nothing was searched.

    ``labels`` names the column of the user's table behind each column of X.
    """
    if fit.search is None or fit.search.result is None:
        return None
    return replace(_points(fit, fit.search.result), labels=tuple(labels))


def _points(fit: Fit, search: Search, *, only_solved: bool = False) -> CandidatePoints:
    """Sort the candidates of a search by its criterion; those that cannot be fitted have none."""
    sign = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    order = np.argsort(sign * search.values, kind="stable")
    if only_solved:
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
        tolerance=search.tolerance,
        names=fit.labels,
        labels=fit.labels,
        moments=fit.moments,
    )


def specification_curve(
    model: Fitted, ax: Any = None, term: str | int | None = None
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
        The upper and the lower one.
    term : str or int, optional
        A feature, by its name or position.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Two.
    """
    fit = model.fit_
    if fit.average is not None:
        raise NotSearchedError(
            f"{type(model).__name__} chooses no assignment to compare with others; assignments_ "
            "has the heaviest, or fit HeckmanBestSubset"
        )
    if fit.search is None:
        raise NotSearchedError(
            f"{type(model).__name__} does not search for features, so there is one "
            "specification only; fit HeckmanFA or HeckmanBestSubset"
        )
    found = _points(fit, fit.search.check_searched(), only_solved=True)
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
