"""Observed outcomes over predicted ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.text.table import PictureText, lay_out
from heckmanfa.text.wording import count, number

_GROUPS = 20
_MOST_POINTS = 1500


@dataclass(frozen=True, eq=False)
class PredictedOutcomes:
    """Predictions of selected rows, given selection, and their observed outcomes."""

    predicted: Floats
    observed: Floats
    seed: int
    """which rows are drawn if there are too many"""

    def points(self) -> tuple[Floats, Floats]:
        """Return the rows to draw: all, or a random sample."""
        n = len(self.observed)
        if n <= _MOST_POINTS:
            return self.predicted, self.observed
        rows = np.sort(np.random.default_rng(self.seed).permutation(n)[:_MOST_POINTS])
        return self.predicted[rows], self.observed[rows]

    def averages(self) -> tuple[list[int], list[float], list[float]]:
        """Return sizes and averages of groups of rows with similar predictions."""
        n_groups = min(_GROUPS, max(len(self.observed) // 5, 1))
        groups = np.array_split(np.argsort(self.predicted, kind="stable"), n_groups)
        return (
            [len(group) for group in groups],
            [float(np.mean(self.predicted[group])) for group in groups],
            [float(np.mean(self.observed[group])) for group in groups],
        )

    def text(self) -> PictureText:
        """Return the words around the points."""
        n = len(self.observed)
        # An outcome that every row shares has no correlation with anything.
        with np.errstate(invalid="ignore", divide="ignore"):
            r = float(np.corrcoef(self.predicted, self.observed)[0, 1]) if n > 1 else float("nan")
        thinned = ""
        if n > _MOST_POINTS:
            thinned = f" {count(_MOST_POINTS)} of {count(n)} rows are drawn; averages are of all."
        rows = [
            [f"group {rank}", count(size), number(predicted), number(observed)]
            for rank, (size, predicted, observed) in enumerate(
                zip(*self.averages(), strict=True), start=1
            )
        ]
        return PictureText(
            title="Observed against predicted",
            alt=(
                f"Observed outcomes of {count(n)} selected rows over their predictions, with "
                f"correlation {number(r, 3) or 'not defined'}. Averages are in the table."
            ),
            caption=(
                "Each grey point is a selected row. Blue points are averages of rows with similar "
                "predictions: if they leave the dashed line, a straight line is not the right "
                f"form for some feature.{thinned}"
            ),
            table=lay_out(
                ["Rows from low to high"],
                ["Rows", "Predicted", "Observed"],
                rows,
                "Average outcome by prediction",
                "predicted-table",
            ),
        )
