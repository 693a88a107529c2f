"""How methods are judged by their predictions of held-out rows, and which of them to use.

Two methods are compared by the differences of their errors in each fold. Folds share most of their
training rows, so the standard error of the mean difference is that of Nadeau and Bengio (2003),
which adds the share of test rows to that of one fold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.inference.calibration import area_under_curve, brier_score, log_loss
from heckmanfa.text.wording import number, plural


@dataclass(frozen=True, eq=False)
class HeldFold:
    """Selected rows of one fold, and what a fit to the other folds predicts for them."""

    repeat: int
    outcome: Floats
    predicted: Floats
    """amounts or the probability of the positive class, (n,), or of J ordered classes, (n, J)"""
    weight: Floats


@dataclass(frozen=True)
class Measure:
    """How predictions of one kind of outcome are judged."""

    error: str
    """what methods are compared by, in words"""
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
        scores = np.array([self.scores(repeat) for repeat in repeats])
        judged: dict[str, Any] = {"note": note if failed else ""}
        for place, name in enumerate(self.columns):
            column = scores[:, place]
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


def _ranked(predicted: Floats, outcome: Floats, weight: Floats) -> float:
    """Return the ranked probability score: squared errors of the chances of at most each class."""
    below = np.cumsum(predicted, axis=1)[:, :-1]
    happened = outcome[:, None] <= np.arange(below.shape[1])
    return float(np.average(np.sum((below - happened) ** 2, axis=1), weights=weight))


def _ranked_error(fold: HeldFold) -> float:
    return _ranked(fold.predicted, fold.outcome, fold.weight)


def _of_ordered(folds: Sequence[HeldFold]) -> tuple[float, ...]:
    """Return ranked probability score, accuracy and log loss of all rows of a repeat."""
    predicted, outcome, weight = (
        np.concatenate([getattr(fold, name) for fold in folds])
        for name in ("predicted", "outcome", "weight")
    )
    right = np.argmax(predicted, axis=1) == outcome
    likely = predicted[np.arange(len(outcome)), outcome.astype(np.intp)]
    losses = -np.log(np.maximum(likely, float(np.finfo(np.float64).eps)))
    return (
        _ranked(predicted, outcome, weight),
        float(np.average(right, weights=weight)),
        float(np.average(losses, weights=weight)),
    )


AMOUNTS = Measure(
    error="held-out error",
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


ORDERED_CLASSES = Measure(
    error="held-out ranked probability score",
    columns=("rps", "accuracy", "log_loss"),
    titles=("RPS", "accuracy", "log loss"),
    errors=_ranked_error,
    scores=_of_ordered,
    caution=(
        "These scores are of rows whose outcome is observed: how well probabilities given "
        "selection fit their classes. If outcomes are missing not at random, they say nothing "
        "about the others: a method whose probabilities are wrong for everyone can be the best "
        "for the selected. An ordered probit of the rows with an outcome alone is made for "
        "exactly this measure, and a selection model is not. Do not choose a method by this table "
        "alone."
    ),
)
"""of an ordered outcome"""


_ROUNDING = 1e-12


@dataclass(frozen=True)
class Difference:
    """Mean difference of two methods' held-out errors over folds."""

    mean: float
    std_error: float

    @property
    def matters(self) -> bool:
        """Whether it is more than its standard error."""
        return abs(self.mean) > self.std_error

    @property
    def words(self) -> str:
        """Its size, as a phrase."""
        return f"by {number(abs(self.mean), 2)} (standard error {number(self.std_error, 2)})"


@dataclass(frozen=True)
class MethodVerdict:
    """Which method to use, and why."""

    method: str | None
    """None if no selection model could be judged"""
    matters: bool
    """whether another selection model has an error that differs by more than its standard error"""
    words: str
    differences: dict[str, Difference]
    """of each method's error from that of ``method``"""

    def __str__(self) -> str:
        return self.words


def judge_methods(
    errors: Mapping[str, Floats],
    corrects: Collection[str],
    test_share: float,
    measure: Measure = AMOUNTS,
    usual: str = "average by BIC",
) -> MethodVerdict:
    """Say which method to use.

    Parameters
    ----------
    errors
        (F,) held-out errors of each method in the same F folds; NaN where a fit failed.
    corrects
        The methods that correct for selection. The others may predict selected rows better, but
        are wrong about everyone.
    test_share
        Test rows of a fold, as a share of its training rows.
    measure
        What these errors are.
    usual
        The method of ``heckmanfa fit`` unless another is asked for.
    """
    known = {name: error for name, error in errors.items() if not np.isnan(error).any()}
    models = [name for name in known if name in corrects]
    if not models:
        words = "No verdict: no selection model could be fitted in every fold."
        return MethodVerdict(None, False, words, {})

    def differences(method: str) -> dict[str, Difference]:
        return {
            name: _difference(error, known[method], test_share) for name, error in known.items()
        }

    best = min(models, key=lambda name: float(known[name].mean()))
    first = usual if usual in models else best
    use = best if differences(first)[best].matters else first
    from_used = differences(use)
    others = {name: from_used[name] for name in models if name != use}
    apart = {name: difference for name, difference in others.items() if difference.matters}
    called = f"{use}, the default of fit" if use == usual else use
    reason = _reason(called, use == first, from_used[first], first, others, apart, measure.error)
    words = f"{reason}{_selected_only(from_used, corrects)}."
    return MethodVerdict(use, bool(apart), words, from_used)


def _difference(error: Floats, other: Floats, test_share: float) -> Difference:
    differences, n = error - other, len(error)
    # Methods that agree differ by rounding.
    differences[np.abs(differences) < _ROUNDING * other] = 0.0
    variance = float(differences.var(ddof=1)) if n > 1 else float("inf")
    return Difference(float(differences.mean()), float((1.0 / n + test_share) * variance) ** 0.5)


def _reason(
    use: str,
    is_usual: bool,
    from_usual: Difference,
    usual: str,
    others: Mapping[str, Difference],
    apart: Mapping[str, Difference],
    error: str,
) -> str:
    if not others:
        return f"Use {use}: no other selection model was judged"
    if not apart:
        models = plural(len(others), "other selection model")
        return (
            f"Use {use}, though it does not matter here: the {error} of the {models} is within one "
            "standard error of its own"
        )
    if not is_usual:
        return f"Use {use}: its {error} is below that of {usual}, {from_usual.words}"
    worst = max(apart, key=lambda name: apart[name].mean / (apart[name].std_error or 1.0))
    return (
        f"Use {use}: no selection model has a smaller {error} by more than its standard error, and "
        f"that of {worst} is larger {apart[worst].words}"
    )


def _selected_only(differences: Mapping[str, Difference], corrects: Collection[str]) -> str:
    """Name the method that predicts selected rows better without a correction, if there is one."""
    better = {
        name: difference
        for name, difference in differences.items()
        if name not in corrects and difference.mean < 0 and difference.matters
    }
    if not better:
        return ""
    best = min(better, key=lambda name: better[name].mean)
    return (
        f"; {best} errs less for selected rows, {better[best].words}, but is not a selection model"
    )
