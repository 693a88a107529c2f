"""Cross-validation when some outcomes are missing: scorers and a splitter.

A scorer that sees NaN outcomes fails or scores the wrong rows; a split may put all unselected
rows in one fold. These do neither, and work with pipelines and grid searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from heckmanfa.baselines import ObservedRegressor
from heckmanfa.errors import InputError
from heckmanfa.intake import observed_rows, read_outcome

__all__ = [
    "SelectionKFold",
    "joint_log_likelihood",
    "observed_mae",
    "observed_mse",
    "observed_r2",
]


def observed_r2(estimator: Any, X: Any, y: Any) -> float:
    """R^2 over the rows that have an outcome, with ``kind="selected"``; larger is better."""
    return _on_observed(r2_score, estimator, X, y)


def observed_mse(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean squared error over the rows that have an outcome, ``kind="selected"``."""
    return -_on_observed(mean_squared_error, estimator, X, y)


def observed_mae(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean absolute error over the rows that have an outcome, ``kind="selected"``."""
    return -_on_observed(mean_absolute_error, estimator, X, y)


def joint_log_likelihood(estimator: Any, X: Any, y: Any) -> float:
    """Joint log-likelihood of selection and outcomes, an average over rows; larger is better.

    Unlike the others it also judges the selection equation, and uses every row.
    """
    if isinstance(estimator, Pipeline):
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator.steps[-1][1]
    if isinstance(estimator, ObservedRegressor):
        raise InputError(
            f"{type(estimator).__name__} has no selection equation, and so no joint likelihood; "
            "use observed_r2, observed_mse or observed_mae"
        )
    value: float = estimator.log_likelihood(X, y)
    return value / len(np.asarray(y))


def _on_observed(metric: Callable[..., float], estimator: Any, X: Any, y: Any) -> float:
    # The rows that are scored on were selected; a regression that knows no selection has one kind.
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    kind = {} if isinstance(last, ObservedRegressor) else {"kind": "selected"}
    predicted = estimator.predict(X, **kind)
    outcome, rows = observed_rows(y, predicted)
    return float(metric(outcome[rows], predicted[rows]))


class SelectionKFold:
    """K folds that each hold their share of the rows with and without an outcome.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    shuffle : bool
        Whether to shuffle rows first.
    random_state : int, RandomState or None
        Used when shuffling.
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield row numbers for fitting and for testing, fold by fold.

        Parameters
        ----------
        X : array or data frame
        y : array_like
            NaN where missing.
        groups : ignored
        """
        outcome = read_outcome(y, len(np.asarray(y)))
        observed = ~np.isnan(outcome)
        fewest = int(min(observed.sum(), (~observed).sum()))
        if fewest < self.n_splits:
            raise InputError(
                f"{self.n_splits} folds need at least {self.n_splits} rows with and "
                f"{self.n_splits} without an outcome; there are {int(observed.sum())} and "
                f"{int((~observed).sum())}"
            )
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from folds.split(np.zeros(len(outcome)), observed)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits
