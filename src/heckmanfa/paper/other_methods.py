"""Other ways to the same predictions, on the paper's split and on random ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from heckmanfa.datasets import PaperData
from heckmanfa.errors import HeckmanfaWarning, NoFeasibleAssignmentError
from heckmanfa.estimators.baselines import InverseProbabilityWeighted, NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanLasso
from heckmanfa.model.compressed import compress
from heckmanfa.paper.experiments import averages
from heckmanfa.paper.protocol import Dataset, mse
from heckmanfa.paper.reproduction import Figure, Options
from heckmanfa.search import Goal, all_features, sample

_START = 0.75


def _untrained(dataset: Dataset, split: PaperData, seed: int) -> Heckman:
    """Fit Heckman-FA without training: draws with the starting probability."""
    moments = compress(split.X, split.y, standardize="features").moments
    k = len(split.feature_names)
    found = sample(
        moments,
        all_features(moments),
        Goal.of(moments, "adjusted_r2", dataset.rho_range),
        np.log(np.array([[1.0 - _START] * k, [_START] * k])),
        names=split.feature_names,
        n_draws=1000,
        random_state=seed,
    )
    return Heckman(found.best).fit(split.X, split.y)


def _fit(make: Callable[[Dataset], Any]) -> Callable[[Dataset, PaperData, int], Any]:
    """Fit an estimator that draws nothing."""
    return lambda dataset, split, seed: make(dataset).fit(split.X, split.y)


WINDOWED_BEST_SUBSET = "best subset, adjusted R2, window"
METHODS: dict[str, Callable[[Dataset, PaperData, int], Any]] = {
    "OLS, all features": _fit(lambda dataset: NaiveOLS()),
    "IPW, all features": _fit(lambda dataset: InverseProbabilityWeighted()),
    "two-step, all features": _fit(lambda dataset: Heckman()),
    "ML, all features": _fit(lambda dataset: Heckman(method="ml")),
    "HeckmanLasso": _fit(lambda dataset: HeckmanLasso()),
    "best subset, BIC": _fit(lambda dataset: HeckmanBestSubset("bic")),
    "best subset, adjusted R2": _fit(lambda dataset: HeckmanBestSubset("adjusted_r2")),
    WINDOWED_BEST_SUBSET: _fit(
        lambda dataset: HeckmanBestSubset("adjusted_r2", rho_range=dataset.rho_range)
    ),
    "Heckman-FA, window": lambda dataset, split, seed: dataset.search(split, seed=seed),
    "draws without training, window": _untrained,
}
"""Each method by name: a data set, its split and a seed in, a fitted model out."""

_SEEDED = ("Heckman-FA, window", "draws without training, window")


def _figures(
    dataset: Dataset, options: Options, split: PaperData, method: str, seed: int
) -> dict[str, float] | None:
    """Fit a method and evaluate it; None if no assignment is within the range of rho."""
    options.say(f"run {seed + 1}")
    with warnings.catch_warnings():
        # All features leave none excluded, and some rho lie outside (-1, 1); the table shows it.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            model = METHODS[method](dataset, split, seed)
        except NoFeasibleAssignmentError:
            return None
    marginal = model.predict(split.X_test)
    given = model.predict(split.X_test, kind="selected") if isinstance(model, Heckman) else marginal
    figures = {
        "test MSE": mse(split.y_test, given),
        "marginal test MSE": mse(split.y_test, marginal),
    }
    if hasattr(model, "rho_"):
        figures["rho"] = model.rho_
    return {**figures, "number of features": float(model.support_.sum())}


def over_seeds(dataset: Dataset, options: Options, *, method: str) -> Iterator[Figure]:
    """Evaluate a method on the paper's split; one that draws, over seeds."""
    seeds = options.seeds if method in _SEEDED else 1
    found = [_figures(dataset, options, dataset.split(), method, seed) for seed in range(seeds)]
    runs = [figures for figures in found if figures is not None]
    if runs:
        note = f"{len(runs)} of {seeds} runs have an assignment in the window" if seeds > 1 else ""
        yield from averages(runs, runs[0], dict.fromkeys(runs[0], note))


def over_random_splits(dataset: Dataset, options: Options, *, method: str) -> Iterator[Figure]:
    """Evaluate a method on random splits; the spread is half of a 95% interval for the mean."""
    splits = range(options.splits)
    found = [_figures(dataset, options, dataset.split(split), method, split) for split in splits]
    runs = [figures for figures in found if figures is not None]
    note = f"{len(runs)} of {len(splits)} random splits; ± a 95% interval of the mean"
    factor = stats.t.ppf(0.975, len(runs) - 1)
    for figure in averages(runs, ("test MSE", "marginal test MSE") if runs else ()):
        half = None if figure.spread is None else factor * (figure.spread / len(runs) ** 0.5)
        yield Figure(f"{figure.quantity}, random splits", figure.value, half, note)
