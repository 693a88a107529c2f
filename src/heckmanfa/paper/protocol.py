"""The paper's data sets and settings, how it evaluates features, and its tables as rows to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

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


COLUMNS = ["part", "dataset", "row", "quantity", "ours", "printed", "spread", "status", "note"]
_DIGITS = 4


def _silent(what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How much to run."""

    quick: bool = False
    """run only what is deterministic"""
    as_published: bool = False
    """imitate the published run's underflow of lambda and lost sign"""
    seeds: int = 5
    """number of runs of experiments that depend on a seed"""
    splits: int = 20
    """number of random splits, which the paper does not have"""
    ru: bool = True
    """whether to run Rockafellar-Uryasev regression, which needs Torch"""
    say: Callable[[str], None] = _silent
    """called with a description of what runs next"""


@dataclass(frozen=True)
class Figure:
    """One figure that an experiment found."""

    quantity: str
    value: float
    spread: float | None = None
    """standard deviation between runs, unless the note says otherwise"""
    note: str = ""
    is_time: bool = False
    """whether the figure depends on the machine"""


@dataclass(frozen=True)
class Reason:
    """Why a figure differs from the printed one, and what it must be instead."""

    value: float
    note: str


@dataclass(frozen=True)
class Row:
    """One row of a table: an experiment on a data set, and what the paper prints for it."""

    dataset: Dataset
    label: str
    experiment: Callable[[Dataset, Options], Iterable[Figure]]
    printed: Mapping[str, float] = field(default_factory=dict)
    """the printed figure of each quantity; the paper does not have the other quantities"""
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    """quantities whose printed figure is known to be something else"""
    reasons_as_published: Mapping[str, Reason] = field(default_factory=dict)
    """the same if the published run is imitated"""
    deterministic: bool = False
    """whether all printed digits must match"""


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper; call it with `Options` to reproduce it.

    The status of a row of the data frame is "match" or "OFF" for what is deterministic, to the
    printed digits; "differs" for what is known to differ, with the reason as a note; "random" and
    "time" for what depends on seeds or machines; "beyond" for what the paper does not have.
    """

    title: str
    rows: tuple[Row, ...]

    @property
    def is_printed(self) -> bool:
        """Whether the paper has any of the table's figures."""
        return any(row.printed for row in self.rows)

    @property
    def is_deterministic(self) -> bool:
        """Whether any row depends on neither a seed nor a machine."""
        return any(row.deterministic for row in self.rows)

    def __call__(self, options: Options | None = None) -> pd.DataFrame:
        """Run the experiments; return one row per quantity, with our figure and the printed one."""
        options = Options() if options is None else options
        rows = [row for row in self.rows if row.deterministic or not options.quick]
        records = [record for row in rows for record in _records(row, options)]
        frame = pd.DataFrame(records, columns=COLUMNS)
        for name in ("ours", "printed", "spread"):
            frame[name] = pd.to_numeric(frame[name])
        return frame


def _records(row: Row, options: Options) -> Iterator[tuple[object, ...]]:
    """Run the experiment of a row, and put its figures beside the printed ones."""

    def say(what: str) -> None:
        options.say(f"{row.dataset.name}: {row.label}, {what}")

    reasons = row.reasons_as_published if options.as_published else row.reasons
    for figure in row.experiment(row.dataset, replace(options, say=say)):
        printed = row.printed.get(figure.quantity)
        reason = reasons.get(figure.quantity)
        yield (
            "beyond" if printed is None else "paper",
            row.dataset.name,
            row.label,
            figure.quantity,
            figure.value,
            printed,
            figure.spread,
            _status(row, figure, printed, reason),
            figure.note if reason is None else reason.note,
        )


def _status(row: Row, figure: Figure, printed: float | None, reason: Reason | None) -> str:
    if printed is None:
        return "beyond"
    if not row.deterministic:
        return "time" if figure.is_time else "random"
    expected = printed if reason is None else reason.value
    if round(figure.value, _DIGITS) != round(expected, _DIGITS):
        return "OFF"
    return "match" if expected == printed else "differs"
