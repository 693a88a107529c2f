"""The candidates of a search: what pictures of them show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.model.moments import Moments
from heckmanfa.plots.picture_text import PictureText
from heckmanfa.search.candidates import KEPT
from heckmanfa.text.numbers import count, number, percent, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import CRITERIA, listed

_RUNNER_UPS = 10


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
        """(N, K) two-step coefficients, NaN where a feature is not held."""
        return np.where(self.masks, self.moments.solve(self.masks).coef, np.nan)

    @property
    def criterion_name(self) -> str:
        """The criterion as texts call it."""
        return CRITERIA[self.criterion]

    def solved(self) -> CandidatePoints:
        """Return those that can be fitted; the others come last and have no criterion."""
        n = int(np.count_nonzero(np.isfinite(self.value)))
        return replace(
            self,
            masks=self.masks[:n],
            value=self.value[:n],
            rho=self.rho[:n],
            inside=self.inside[:n],
            chosen=self.chosen if self.chosen is not None and self.chosen < n else None,
        )

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
                f" The chosen one is in place {count(self.chosen + 1)}, with {words} "
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
            f"Each point is one way to say which features predict: {kept}, by "
            f"{self.criterion_name} above and by the two-step rho below. If points near the left "
            "have a rho of either sign, the data do not settle which way selection goes."
        )
        if self.window is not None:
            text += " The shaded band is the window of rho; open circles lie outside of it."
        if self.chosen is None:
            text += " The model's features, chosen over splits of the rows, are not among them."
        unsolved = int(np.count_nonzero(~np.isfinite(self.value)))
        if unsolved:
            text += f" {plural(unsolved, 'candidate')} cannot be fitted and cannot be seen."
        return text

    def _runner_ups(self) -> Table:
        rows = []
        for place in range(min(_RUNNER_UPS, len(self))):
            held = [self.labels[int(column)] for column in np.flatnonzero(self.masks[place])]
            row = [
                f"{place + 1}{' (chosen)' if place == self.chosen else ''}",
                number(self.value[place], 6),
                number(self.rho[place]),
                str(int(self.masks[place].sum())),
                listed(list(dict.fromkeys(held))),
            ]
            if self.window is not None:
                row.insert(3, "yes" if self.inside[place] else "no")
            rows.append(row)
        columns = [
            Column("Place", is_number=False),
            Column(self.criterion_name),
            Column("rho"),
            Column("Features"),
            Column("Which", is_number=False),
        ]
        if self.window is not None:
            columns.insert(3, Column("In the window", is_number=False))
        return Table(tuple(columns), tuple(rows), "The best candidates", "curve-table")

    def coefficient_text(
        self, offered: Sequence[int], predicting: Sequence[int], n_left: int
    ) -> PictureText:
        """Return the words around coefficients over the candidates, for the columns offered."""
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
            table=self._spread(offered, predicting),
        )

    def _spread(self, offered: Sequence[int], predicting: Sequence[int]) -> Table:
        rows = []
        for column in offered:
            values = self.coef[:, column]
            finite = values[np.isfinite(values)]
            rows.append(
                [
                    self.names[column],
                    "yes" if column in predicting else "no",
                    percent(len(finite) / len(self), 0),
                    "" if self.chosen is None else number(values[self.chosen]),
                    *(number(quantile) for quantile in np.quantile(finite, [0.0, 0.5, 1.0])),
                    percent(float(np.mean(finite > 0)), 0),
                ]
            )
        titles = ("Held by", "Chosen", "Lowest", "Median", "Highest", "Positive")
        return Table(
            (
                Column("Feature", is_number=False),
                Column("Predicts", is_number=False),
                *(Column(title) for title in titles),
            ),
            tuple(rows),
            "Coefficients over the candidates that hold them",
            "spread-table",
        )


def _span(values: Floats) -> str:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "unknown"
    return f"{number(finite.min(), 3)} to {number(finite.max(), 3)}"


def read_candidates(fit: Fit, labels: Sequence[str] | None = None) -> CandidatePoints | None:
    """Return the candidates of a search; None if nothing was searched.

    ``labels`` names the column of the user's table behind each column of X.
    """
    search = None if fit.search is None else fit.search.result
    if search is None:
        return None
    sign = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    order = np.argsort(sign * search.values, kind="stable")
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
        labels=fit.labels if labels is None else tuple(labels),
        moments=fit.moments,
    )
