"""The paper's data sets with their settings, and how the paper evaluates a set of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.datasets import PaperData, fetch_compas, fetch_crime
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.searches import HeckmanFA
from heckmanfa.inference.choosing import Searching
from heckmanfa.inference.honest import HonestSearch
from heckmanfa.search import Choices

Extraction = Literal["sample", "rank"]

# Below this index the normal distribution function is zero in double precision. The published
# run put 0.01 in its place, so its inverse Mills ratio is zero.
_UNDERFLOW = -37.7


class PublishedSearch(HeckmanFA):
    """Heckman-FA as published: an assignment has at least one feature.

    The published code discards a draw without features, and ranks from one feature on. The empty
    assignment could otherwise be the only one of a run in the window of rho, and be chosen.
    """

    def _choose(
        self, choices: Choices, selecting: Choices | None = None
    ) -> Searching | HonestSearch:
        return super()._choose(published(choices), selecting)


def published(choices: Choices) -> Choices:
    """Leave out the empty assignment, which the published code never evaluates."""
    return replace(choices, min_features=1)


@dataclass(frozen=True)
class Dataset:
    """One of the paper's data sets with the settings of its experiments."""

    name: str
    fetch: Callable[..., PaperData]
    rho_range: tuple[float, float]
    learning_rate: float
    fa_features: tuple[int, ...]
    """prediction features of Table sampling, counted from 1"""
    fa_star_features: tuple[int, ...]
    """the features whose figures Table topjfeats prints, counted from 1"""

    def split(self, random_state: int | None = None) -> PaperData:
        """Return the paper's split, or a random one."""
        return _fetched(self.fetch, random_state)

    def search(
        self,
        split: PaperData,
        extraction: Extraction = "sample",
        *,
        seed: int,
        **settings: Any,
    ) -> HeckmanFA:
        """Fit Heckman-FA with the paper's settings, but for those that are given."""
        model = PublishedSearch(
            extraction,
            rho_range=self.rho_range,
            learning_rate=self.learning_rate,
            standardize="features",
            epochs=4000,
            init_prob=0.75,
            n_draws=1000,
            random_state=seed,
        )
        model.set_params(**settings)
        return model.fit(split.X, split.y)


@cache
def _fetched(fetch: Callable[..., PaperData], random_state: int | None) -> PaperData:
    if random_state is None:
        return fetch(split="paper")
    return fetch(split="random", random_state=random_state)


CRIME = Dataset(
    "CRIME",
    fetch_crime,
    (0.01, 0.1),
    0.75,
    (1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 21, 22, 23, 24),
    (2, 3, 8, 12, 16, 18, 21, 24),
)
COMPAS = Dataset("COMPAS", fetch_compas, (0.3, 0.5), 0.05, (1, 2, 3, 5, 7, 10), (2, 5, 6, 8))
DATASETS = (CRIME, COMPAS)


def fit_features(split: PaperData, features: Sequence[int]) -> Heckman:
    """Fit the two-step model of features counted from 1."""
    return Heckman([feature - 1 for feature in features]).fit(split.X, split.y)


@dataclass(frozen=True)
class Evaluation:
    """What the paper reports about a set of prediction features."""

    features: tuple[int, ...]
    """counted from 1"""
    figures: Mapping[str, float]
    """by quantity; "test MSE" has the inverse Mills ratio in the prediction, as in the paper, and
    "marginal test MSE" does not: the test rows were not selected"""


def evaluate(
    split: PaperData, model: Heckman, *, as_published: bool = False, star: bool = False
) -> Evaluation:
    """Evaluate a model, fitted to the training rows, as the paper does.

    `as_published` imitates the published run: an inverse Mills ratio of zero where the normal
    distribution function underflows, and the lost sign in the variance of Heckman-FA* (`star`).
    """
    naive = NaiveOLS(model.support_).fit(split.X, split.y)
    X, y = split.X[split.selected], split.y[split.selected]
    rho = model.rho_
    if as_published and star:
        rho = model.imr_coef_ / np.sqrt(_variance_without_sign(split, model))
    return Evaluation(
        features=tuple(int(index) + 1 for index in np.flatnonzero(model.support_)),
        figures={
            "rho": float(rho),
            "adjusted R2": model.adjusted_r2_,
            "Naive train MSE": mse(y, naive.predict(X)),
            "Naive test MSE": mse(split.y_test, naive.predict(split.X_test)),
            "train MSE": mse(y, model.predict(X, kind="selected")),
            "test MSE": mse(split.y_test, _predict_test(split.X_test, model, as_published)),
            "marginal test MSE": mse(split.y_test, model.predict(split.X_test)),
        },
    )


def _predict_test(X: Any, model: Heckman, as_published: bool) -> Floats:
    """Predict given selection, or as the published run did where the index is far below zero."""
    predicted = model.predict(X, kind="selected")
    if not as_published:
        return predicted
    index = model.selection_intercept_ + X.to_numpy() @ model.selection_coef_
    return np.where(index < _UNDERFLOW, model.predict(X), predicted)


def _variance_without_sign(split: PaperData, model: Heckman) -> float:
    """Eq. sigmasq with x'gamma where it has -x'gamma."""
    rows = split.X[split.selected]
    imr = model.inverse_mills(rows)
    index = model.selection_intercept_ + rows.to_numpy() @ model.selection_coef_
    residual = split.y[split.selected] - model.predict(rows, kind="selected")
    return float(np.mean(residual**2) - model.imr_coef_**2 * np.mean(imr * index - imr**2))


def mse(y: Floats, predicted: Floats) -> float:
    """Mean squared error."""
    return float(np.mean((y - predicted) ** 2))
