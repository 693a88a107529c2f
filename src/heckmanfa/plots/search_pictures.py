"""What a search evaluated, best first, and the probabilities of Heckman-FA over its training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, InputTypeError, NotSearchedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scale import Scale
from heckmanfa.plots.scene import (
    SERIES,
    Axis,
    Band,
    Curve,
    Dots,
    End,
    Line,
    Mark,
    Panel,
    Panels,
    Point,
    Rule,
)
from heckmanfa.search.searched import Search
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cut, quoted, shown
from heckmanfa.text.table import MOST_LINES, LegendItem, Table, lay_out
from heckmanfa.text.wording import CRITERIA, figure, listed, nearest, plural, with_minus

# Dots beyond so many are small.
_FEW = 300
_HEIGHT_INCHES, _LABEL_INCHES = 3.6, 0.14
# Above a panel, in px.
_ROOM = 26.0
# Their number and that of colours have no common factor, so a pair repeats only after 28 lines.
_LINES: tuple[Line, ...] = ("solid", "dashed", "dashdot", "dotted")


@dataclass(frozen=True, eq=False)
class CandidatePoints(Picture):
    """The N assignments that a search kept, best first by its criterion, whatever their rho."""

    kind: ClassVar[str] = "specification_curve"

    criterion: str
    """as texts call it"""
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
    feature: str = ""
    """whose coefficient is shown in place of the criterion"""
    coef: Floats | None = None
    """(N,) that coefficient, NaN if an assignment does not hold the feature"""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.masks)

    @property
    def _upper(self) -> Floats:
        """(N,) what the upper panel shows."""
        return self.value if self.coef is None else self.coef

    def _title(self) -> str:
        return f"Assignments, best first by {self.criterion}"

    @property
    def _count(self) -> str:
        kept, total = len(self), plural(self.n_evaluated, "assignment")
        return total if kept == self.n_evaluated else f"{kept:,} of {total}"

    def _legend(self) -> tuple[LegendItem, ...]:
        items = []
        inside = "an assignment"
        if self.window is not None:
            inside = "rho in the window"
            items.append(LegendItem("window of rho", "band", "this"))
        if self.inside.any():
            items.append(LegendItem(inside, "dot", "this"))
        if not self.inside.all():
            items.append(LegendItem("rho outside it", "dot-cross", "pale"))
        if self.chosen is not None:
            items.append(LegendItem("chosen", "diamond", "ols"))
        return tuple(items)

    def _alt(self) -> str:
        words = f"{self._count}, best first by {self.criterion}"
        if self.chosen is None:
            return f"{words}."
        rho = with_minus(f"{self.rho[self.chosen]:.2f}")
        return f"{words}. The one chosen is number {self.chosen + 1:,}, with rho {rho}."

    def _caption(self) -> str:
        above = f"the coefficient of {shown(self.feature, 40)}" if self.feature else self.criterion
        words = f"Above: {above}; below: the estimate of rho."
        if self.window is not None:
            words += " Assignments outside the window of rho could not be chosen."
        if len(self) > MOST_LINES:
            words += f" The table holds the best {MOST_LINES}; all: `candidates_`."
        return words

    def _table(self) -> Table:
        numbers = {self.criterion: [with_minus(f"{value:,.3f}") for value in self.value]}
        if self.coef is not None:
            numbers[f"Coefficient of {shown(self.feature, 40)}"] = list(map(figure, self.coef))
        numbers["rho"] = [with_minus(f"{rho:.3f}") for rho in self.rho]
        lines = []
        for place, mask in enumerate(self.masks[:MOST_LINES]):
            features = [self.names[column] for column in np.flatnonzero(mask)]
            cells = [values[place] for values in numbers.values()]
            lines.append([str(place + 1), listed(features) or "none", *cells])
        titles = ["Number", "Features"], [*numbers]
        return lay_out(*titles, lines, self._title(), "candidates-table")

    def _body(self) -> Panels:
        """Return the criterion or a coefficient above rho, over the rank."""
        space = max(0.02 * len(self), 0.6)
        # The first mark is shown whole.
        first, last = 1.0 - space, len(self) + space
        window: list[Mark] = []
        if self.window is not None:
            lows, highs = ((end, end) for end in self.window)
            window.append(Band((first, last), lows, highs, "this"))
            window += (Rule(y=end, kind="cut", color="this") for end in self.window)
        zero: tuple[Mark, ...] = ()
        upper = Axis(*_limits(self.value), self.criterion, most=(5, 5))
        if self.coef is not None:
            zero = (Rule(y=0.0),)
            upper = Axis(*_limits([0.0, *self.coef]), printed="coefficient", most=(5, 5))
        lower = Axis(*_limits(self.rho), "estimate of rho", most=(5, 5))
        title = f"{self._count}, best first by {self.criterion}"
        return Panels(
            Axis(first, last, title, numbers="count", grid=False),
            (
                Panel(upper, (*zero, *self._dots(self._upper)), 170.0, _ROOM, self.feature),
                Panel(lower, (*window, *self._dots(self.rho)), 170.0, _ROOM),
            ),
            _HEIGHT_INCHES,
            left=60.0,
            axes="stacked",
        )

    def _dots(self, heights: Floats) -> Iterator[Mark]:
        ranks = np.arange(1.0, len(heights) + 1.0)
        known = np.isfinite(heights)
        for rows, color in ((~self.inside & known, "pale"), (self.inside & known, "this")):
            places = tuple(ranks[rows].tolist()), tuple(heights[rows].tolist())
            if rows.any():
                shape: Literal["circle", "cross"] = "cross" if color == "pale" else "circle"
                yield Dots(*places, color, shape, small=len(heights) > _FEW)
        if self.chosen is not None and known[self.chosen]:
            yield Point(self.chosen + 1.0, float(heights[self.chosen]), "ols", "diamond")


def _limits(heights: Iterable[float]) -> tuple[float, float]:
    scale = Scale.over(heights, 0.0, 1.0, pad=0.08)
    return scale.low, scale.high


def _points(fit: Fit, search: Search, column: int | None) -> CandidatePoints:
    """Sort the candidates of a search that can be fitted by its criterion."""
    sign = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    order = np.argsort(sign * search.values, kind="stable")
    order = order[np.isfinite(search.values[order])]
    masks = search.masks[order]
    same = np.flatnonzero((masks == fit.support).all(axis=1))
    coef = None
    if column is not None:
        if not masks[:, column].any():
            raise InputError(
                f"no assignment that was kept holds {quoted(fit.labels[column])}, so there is no "
                "coefficient to draw"
            )
        # Of a binary outcome, those of refits by maximum likelihood.
        refits = None if search.refits is None else search.refits.coef[order]
        solved = fit.moments.solve(masks).coef if refits is None else refits
        coef = np.where(masks[:, column], solved[:, column], np.nan)
    return CandidatePoints(
        criterion=CRITERIA[search.goal.criterion].replace("R2", "R²"),
        window=search.goal.rho_range,
        masks=masks,
        value=search.values[order],
        rho=search.rho[order],
        inside=search.in_range[order],
        chosen=int(same[0]) if len(same) else None,
        n_evaluated=search.n_assignments,
        names=fit.labels,
        feature="" if column is None else fit.labels[column],
        coef=coef,
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
    if fit.way.is_average:
        raise NotSearchedError(
            f"{type(model).__name__} chooses no assignment to compare with others; assignments_ "
            "has the heaviest, or fit HeckmanBestSubset"
        )
    if fit.search is None:
        raise NotSearchedError(
            f"{type(model).__name__} does not search for features, so there is one "
            f"specification only; fit {fit.family.words.searches}"
        )
    search = fit.search.check_candidates("the list of candidates")
    column = None if term is None else _column(fit, term)
    return np.asarray(_points(fit, search, column).draw(ax))


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


@dataclass(frozen=True, eq=False)
class TrainingPath(Picture):
    """The probability of each feature over the epochs recorded."""

    kind: ClassVar[str] = "assignment_path"

    epochs: Floats
    """(R,)"""
    probability: Floats
    """(R, K)"""
    names: tuple[str, ...]
    """(K,)"""
    order: tuple[int, ...]
    """features that were trained, by their probability at the end, the highest first"""
    top: int = 8
    """how many of them have names"""

    @property
    def _named(self) -> tuple[int, ...]:
        return self.order[: self.top]

    @property
    def _n_others(self) -> int:
        return len(self.order) - len(self._named)

    def _title(self) -> str:
        return "The probability that each feature predicts, over the training"

    def _legend(self) -> tuple[LegendItem, ...]:
        words = plural(self._n_others, "other feature")
        return (LegendItem(words, "thin", "pale"),) if self._n_others else ()

    def _alt(self) -> str:
        start = f"Probabilities of {plural(len(self.order), 'feature')} over the training."
        ends = [
            f"{cut(self.names[column], 30)} {self.probability[-1, column]:.2f}"
            for column in self._named[:3]
        ]
        return f"{start} At the end: {', '.join(ends)}."

    def _caption(self) -> str:
        return f"After {plural(int(self.epochs[-1]), 'epoch')}."

    def _table(self) -> Table:
        lines = [
            [
                Name(self.names[column]).key,
                *(f"{self.probability[row, column]:.4f}" for row in (0, -1)),
            ]
            for column in self.order[:MOST_LINES]
        ]
        first, last = (f"At epoch {epoch:,.0f}" for epoch in self.epochs[[0, -1]])
        return lay_out(["Feature"], [first, last], lines, self._title(), "path-table")

    def _body(self) -> Panels:
        """Return a curve for each feature, with names at the ends of the first."""
        named, epochs = self._named, tuple(self.epochs.tolist())
        looks: list[tuple[int, str, Line]] = [
            (column, "pale", "thin") for column in self.order[len(named) :]
        ]
        looks += (
            (column, SERIES[rank % len(SERIES)], _LINES[rank % len(_LINES)])
            for rank, column in enumerate(named)
        )
        paths = {column: tuple(self.probability[:, column].tolist()) for column in self.order}
        marks = tuple(Curve(epochs, paths[column], color, line) for column, color, line in looks)
        ends = tuple(
            End(paths[column][-1], self.names[column], color)
            for column, color, _ in looks[-len(named) :]
        )
        trained = self.probability[:, list(self.order)]
        space = 0.05 * max(float(np.ptp(trained)), 0.1)
        y = Axis(
            float(trained.min()) - space, float(trained.max()) + space, "inclusion probability"
        )
        x = Axis(epochs[0] - (len(epochs) < 2), epochs[-1], "epoch", numbers="count", grid=False)
        height = max(230.0, 17.0 * len(ends))
        inches = max(2.5, 0.7 + _LABEL_INCHES * len(ends))
        return Panels(x, (Panel(y, marks, height, _ROOM, ends=ends),), inches, left=52.0)


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
    path = _recorded_path(model)
    if not isinstance(top, Integral) or top < 1:
        raise InputError(f"top must be an integer of at least 1; got {quoted(top)}")
    return replace(path, top=int(top)).draw(ax)


def _recorded_path(model: Any) -> TrainingPath:
    check_is_fitted(model)
    recorded = model.path_ if hasattr(type(model), "path_") else None
    if recorded is None:
        cure = "fit HeckmanFA(record_path=40) to see how the probabilities of its features change"
        if "two steps" not in model.fit_.family.supports:
            cure = "no search for a binary outcome does, so there is no path to draw"
        raise InputError(f"{type(model).__name__} trains nothing; {cure}")
    if recorded and len(recorded["epoch"]):
        probability = np.asarray(recorded["inclusion_prob"])
        trained = np.flatnonzero(np.isfinite(probability).all(axis=0))
        order = trained[np.argsort(-probability[-1, trained], kind="stable")]
        names = model.fit_.spec.columns.labels_of_x
        epochs = np.asarray(recorded["epoch"], dtype=np.float64)
        return TrainingPath(epochs, probability, names, tuple(order.tolist()))
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
