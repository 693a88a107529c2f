"""Scores of predictions for held-out rows: errors of amounts, and probabilities of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.inference.calibration import area_under_curve, brier_score, log_loss


@dataclass(frozen=True, eq=False)
class HeldFold:
    """Selected rows of one fold, and what a fit to the other folds predicts for them."""

    repeat: int
    outcome: Floats
    predicted: Floats
    weight: Floats


@dataclass(frozen=True)
class Measure:
    """How predictions of one kind of outcome are judged."""

    error: str
    """what methods are compared by, in words"""
    usual: str
    """the method of ``heckmanfa fit`` unless another is asked for"""
    columns: tuple[str, ...]
    """names of the scores, in the order of a table"""
    titles: tuple[str, ...]
    """their titles on a console"""
    errors: Callable[[HeldFold], float]
    """the error of a fold"""
    scores: Callable[[Sequence[HeldFold]], tuple[float, ...]]
    """the scores of one repeat"""
    caution: str

    def judge(
        self, folds: Sequence[HeldFold | None], n_repeats: int
    ) -> tuple[Floats, dict[str, Any]]:
        """Return the error of each fold, and what a table says about the scores of the repeats.

        None is a fold that could not be fitted, whose error is NaN.
        """
        errors = np.array([np.nan if fold is None else self.errors(fold) for fold in folds])
        failed = sum(fold is None for fold in folds)
        note = f"{failed} of {len(folds)} folds could not be fitted"
        repeats = [
            [fold for fold in folds if fold is not None and fold.repeat == repeat]
            for repeat in range(n_repeats)
        ]
        if not all(repeats):
            return errors, {"note": note}
        found = np.array([self.scores(repeat) for repeat in repeats])
        judged: dict[str, Any] = {"note": note if failed else ""}
        for place, name in enumerate(self.columns):
            column = found[:, place]
            judged[name] = column.mean()
            judged[f"{name}_sd"] = column.std(ddof=1) if n_repeats > 1 else np.nan
        return errors, judged


def _squares(fold: HeldFold) -> float:
    return float(fold.weight @ (fold.outcome - fold.predicted) ** 2)


def _spread(fold: HeldFold) -> float:
    mean = np.average(fold.outcome, weights=fold.weight)
    return float(fold.weight @ (fold.outcome - mean) ** 2)


def _mean_square(fold: HeldFold) -> float:
    return _squares(fold) / float(fold.weight.sum())


def _of_amounts(folds: Sequence[HeldFold]) -> tuple[float, ...]:
    """Return the mean squared error and R^2 of all rows of a repeat."""
    squares = sum(map(_squares, folds))
    rows = sum(float(fold.weight.sum()) for fold in folds)
    return squares / rows, 1.0 - squares / sum(map(_spread, folds))


def _of_classes(folds: Sequence[HeldFold]) -> tuple[float, ...]:
    """Return AUC, Brier score and log loss of all rows of a repeat."""
    predicted, outcome, weight = (
        np.concatenate([getattr(fold, name) for fold in folds])
        for name in ("predicted", "outcome", "weight")
    )
    return tuple(
        score(predicted, outcome, weight) for score in (area_under_curve, brier_score, log_loss)
    )


AMOUNTS = Measure(
    error="held-out error",
    usual="average by BIC",
    columns=("mse", "r2"),
    titles=("MSE", "R2"),
    errors=_mean_square,
    scores=_of_amounts,
    caution=(
        "These errors are of rows whose outcome is observed. If outcomes are missing not at "
        "random, they say nothing about the others: a method that is biased for everyone can be "
        "the best for the selected. Least squares is made for exactly this measure, and a "
        "selection model is not. Do not choose a method by this table alone."
    ),
)
"""of a linear outcome"""

CLASSES = Measure(
    error="held-out Brier score",
    usual="best subset",
    columns=("auc", "brier", "log_loss"),
    titles=("AUC", "Brier", "log loss"),
    errors=_mean_square,
    scores=_of_classes,
    caution=(
        "These scores are of rows whose outcome is observed: how well probabilities given "
        "selection rank and fit them. If outcomes are missing not at random, they say nothing "
        "about the others: a method whose probabilities are wrong for everyone can be the best "
        "for the selected. A probit of the rows with an outcome alone is made for exactly this "
        "measure, and a selection model is not. Do not choose a method by this table alone."
    ),
)
"""of a binary outcome"""

MEASURES = {"linear": AMOUNTS, "binary": CLASSES}
