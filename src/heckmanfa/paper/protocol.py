"""The paper's experiments: data, windows, hyperparameters, and how a set of features is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.datasets import PaperData, fetch_compas, fetch_crime
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.searches import HeckmanFA

__all__ = ["COMPAS", "CRIME", "EXPERIMENTS", "Experiment", "Judged", "judge"]

# Below this index the normal distribution function is zero in double precision; the published
# run put 0.01 in its place, so that the inverse Mills ratio came out as zero.
_UNDERFLOW = -37.7


@dataclass(frozen=True)
class Experiment:
    """One of the paper's data sets with the settings of its experiments."""

    name: str
    fetch: Callable[..., PaperData]
    rho_range: tuple[float, float]
    learning_rate: float
    fa_features: tuple[int, ...]
    """prediction features of Table sampling, counted from 1"""
    fa_star_features: tuple[int, ...]
    """those of Table topjfeats whose figures it prints"""

    def data(self) -> PaperData:
        """Return the paper's split."""
        return _fetched(self.fetch)

    def search(
        self,
        extraction: str = "sample",
        *,
        seed: int,
        epochs: int = 4000,
        init_prob: float = 0.75,
        n_draws: int = 1000,
        data: PaperData | None = None,
        windowed: bool = True,
    ) -> HeckmanFA:
        """Run Heckman-FA with the paper's settings, in its window of rho or without."""
        data = self.data() if data is None else data
        model = HeckmanFA(
            extraction,
            rho_range=self.rho_range if windowed else None,
            learning_rate=self.learning_rate,
            standardize="features",
            epochs=epochs,
            init_prob=init_prob,
            n_draws=n_draws,
            random_state=seed,
        )
        return model.fit(data.X, data.y)


@cache
def _fetched(fetch: Callable[..., PaperData]) -> PaperData:
    return fetch(split="paper")


CRIME = Experiment(
    "CRIME",
    fetch_crime,
    (0.01, 0.1),
    0.75,
    (1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 21, 22, 23, 24),
    (2, 3, 8, 12, 16, 18, 21, 24),
)
COMPAS = Experiment("COMPAS", fetch_compas, (0.3, 0.5), 0.05, (1, 2, 3, 5, 7, 10), (2, 5, 6, 8))
EXPERIMENTS = (CRIME, COMPAS)


@dataclass(frozen=True)
class Judged:
    """What the paper reports of a set of prediction features."""

    features: tuple[int, ...]
    """counted from 1"""
    rho: float
    adjusted_r2: float
    naive_train: float
    naive_test: float
    train: float
    test: float
    """with the inverse Mills ratio in the prediction, as in the paper"""
    test_marginal: float
    """without it: the test rows were not selected"""


def judge(
    data: PaperData, model: Heckman, *, as_published: bool = False, star: bool = False
) -> Judged:
    """Judge a fitted model as the paper does.

    Parameters
    ----------
    data : PaperData
    model : Heckman
        Fitted to its training rows.
    as_published : bool
        Imitate the published run: an inverse Mills ratio of zero where the normal distribution
        function underflows, and for Heckman-FA* the lost sign in the variance.
    star : bool
        Whether this is a set of Heckman-FA*.

    Returns
    -------
    Judged
    """
    naive = NaiveOLS(model.support_).fit(data.X, data.y)
    observed = data.selected
    rho = model.rho_
    if as_published and star:
        rho = model.imr_coef_ / np.sqrt(_variance_without_sign(data, model))
    return Judged(
        features=tuple(int(one) + 1 for one in np.flatnonzero(model.support_)),
        rho=float(rho),
        adjusted_r2=model.adjusted_r2_,
        naive_train=_mse(data.y[observed], naive.predict(data.X[observed])),
        naive_test=_mse(data.y_test, naive.predict(data.X_test)),
        train=_mse(data.y[observed], model.predict(data.X[observed], kind="selected")),
        test=_mse(data.y_test, predict_test(data.X_test, model, as_published=as_published)),
        test_marginal=_mse(data.y_test, model.predict(data.X_test)),
    )


def fit(data: PaperData, features: Sequence[int]) -> Heckman:
    """Fit the two-step model of features counted from 1."""
    return Heckman([one - 1 for one in features]).fit(data.X, data.y)


def predict_test(X: Any, model: Heckman, *, as_published: bool = False) -> Floats:
    """Predict given selection, or as the published run did where the index is far below zero."""
    predicted = model.predict(X, kind="selected")
    if not as_published:
        return predicted
    index = model.selection_intercept_ + X.to_numpy() @ model.selection_coef_
    return np.where(index < _UNDERFLOW, model.predict(X), predicted)


def _variance_without_sign(data: PaperData, model: Heckman) -> float:
    """Eq. sigmasq with x'gamma where it has -x'gamma."""
    rows = data.X[data.selected]
    imr = model.inverse_mills(rows)
    index = model.selection_intercept_ + rows.to_numpy() @ model.selection_coef_
    residual = data.y[data.selected] - model.predict(rows, kind="selected")
    return float(np.mean(residual**2) - model.imr_coef_**2 * np.mean(imr * index - imr**2))


def _mse(y: Floats, predicted: Floats) -> float:
    return float(np.mean((y - predicted) ** 2))
