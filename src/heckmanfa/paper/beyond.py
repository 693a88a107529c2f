"""Beyond the paper: other ways to the same predictions, on its split and on random ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from heckmanfa.datasets import PaperData
from heckmanfa.errors import HeckmanfaWarning, NoFeasibleAssignmentError
from heckmanfa.estimators.baselines import InverseProbabilityWeighted, NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.lasso import HeckmanLasso
from heckmanfa.estimators.searches import HeckmanBestSubset
from heckmanfa.model.compressed import compress
from heckmanfa.paper.protocol import COMPAS, CRIME, Experiment
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table, between
from heckmanfa.search import Goal, sample
from heckmanfa.search.choices import all_features

__all__ = ["beyond", "random_splits"]

_START = 0.75
_SEEDED = ("Heckman-FA, window", "draws without training, window")


def _untrained(experiment: Experiment, data: PaperData, seed: int) -> Heckman:
    """Heckman-FA with no training: draws with the starting probability."""
    moments = compress(data.X, data.y, standardize="features").moments
    k = len(data.feature_names)
    log_pi = np.log(np.array([[1.0 - _START] * k, [_START] * k]))
    found = sample(
        moments,
        all_features(moments),
        Goal.of(moments, "adjusted_r2", experiment.rho_range),
        log_pi,
        names=data.feature_names,
        n_draws=1000,
        random_state=seed,
    )
    return Heckman(found.best).fit(data.X, data.y)


def _methods(
    experiment: Experiment, data: PaperData, seed: int, *, everything: bool
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every method by name, as something to be fitted."""
    window = experiment.rho_range
    yield "OLS, all features", lambda: NaiveOLS().fit(data.X, data.y)
    yield "IPW, all features", lambda: InverseProbabilityWeighted().fit(data.X, data.y)
    yield "two-step, all features", lambda: Heckman().fit(data.X, data.y)
    yield "ML, all features", lambda: Heckman(method="ml").fit(data.X, data.y)
    yield "HeckmanLasso", lambda: HeckmanLasso().fit(data.X, data.y)
    yield "best subset, BIC", lambda: HeckmanBestSubset("bic").fit(data.X, data.y)
    yield "best subset, adjusted R2", lambda: HeckmanBestSubset("adjusted_r2").fit(data.X, data.y)
    if everything:
        yield (
            "best subset, adjusted R2, window",
            lambda: HeckmanBestSubset("adjusted_r2", rho_range=window).fit(data.X, data.y),
        )
    yield "Heckman-FA, window", lambda: experiment.search(seed=seed, data=data)
    yield "draws without training, window", lambda: _untrained(experiment, data, seed)


def _errors(model: Any, data: PaperData) -> tuple[float, float]:
    """Test MSE given selection, as the paper has it, and marginally."""
    marginal = model.predict(data.X_test)
    given = model.predict(data.X_test, kind="selected") if isinstance(model, Heckman) else marginal
    return (
        float(np.mean((data.y_test - given) ** 2)),
        float(np.mean((data.y_test - marginal) ** 2)),
    )


def _fitted(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        # All features leave none excluded, and some rho lie outside (-1, 1); the table shows it.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return make()


def beyond(options: Options | None = None) -> pd.DataFrame:
    """Put other methods beside the paper's, on its split.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        Test errors as the paper computes them ("selected") and without the inverse Mills ratio
        ("marginal"), and rho, for each method; those with seeds as means.
    """
    options = Options() if options is None else options
    table = Table()
    if options.quick:
        return table.frame()
    for experiment in (CRIME, COMPAS):
        data = experiment.data()
        by_seed = [
            dict(_methods(experiment, data, seed, everything=True)) for seed in range(options.seeds)
        ]
        for name in by_seed[0]:
            options.say(f"{experiment.name}: {name}")
            seeds = options.seeds if name in _SEEDED else 1
            found = []
            for methods in by_seed[:seeds]:
                try:
                    model = _fitted(methods[name])
                except NoFeasibleAssignmentError:
                    continue
                rho = getattr(model, "rho_", float("nan"))
                found.append((*_errors(model, data), rho, float(model.support_.sum())))
            _add(table, experiment.name, name, found, seeds)
    return table.frame()


def _add(
    table: Table, dataset: str, name: str, found: Sequence[tuple[float, ...]], runs: int
) -> None:
    """Add means, and the standard deviation between runs."""
    note = f"{len(found)} of {runs} runs have an assignment in the window" if runs > 1 else ""
    for place, quantity in enumerate(
        ("test MSE", "marginal test MSE", "rho", "number of features")
    ):
        values = np.array([one[place] for one in found])
        if len(values) == 0 or np.isnan(values).all():
            continue
        mean = float(values.mean())
        table.beyond(dataset, name, quantity, mean, spread=between(values), note=note)


def random_splits(options: Options | None = None) -> pd.DataFrame:
    """Compare the methods over random splits, since the paper has one.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        Mean test errors of each method over the splits in which it found an assignment (the note
        says how many); ``spread`` is half the width of a 95% interval for the mean.
    """
    options = Options() if options is None else options
    table = Table()
    if options.quick:
        return table.frame()
    for experiment in (CRIME, COMPAS):
        found: dict[str, list[tuple[float, float]]] = {}
        for split in range(options.splits):
            options.say(f"{experiment.name}: random split {split + 1} of {options.splits}")
            data = experiment.fetch(split="random", random_state=split)
            for name, make in _methods(experiment, data, split, everything=False):
                errors = found.setdefault(name, [])
                try:
                    errors.append(_errors(_fitted(make), data))
                except NoFeasibleAssignmentError:
                    continue
        for name, errors in found.items():
            note = f"{len(errors)} of {options.splits} random splits; ± a 95% interval of the mean"
            for place, quantity in enumerate(("test MSE", "marginal test MSE")):
                values = np.array([one[place] for one in errors])
                if len(values) == 0:
                    continue
                half = None
                if len(values) > 1:
                    scale = values.std(ddof=1) / np.sqrt(len(values))
                    half = float(stats.t.ppf(0.975, len(values) - 1) * scale)
                table.beyond(
                    experiment.name,
                    name,
                    f"{quantity}, random splits",
                    float(values.mean()),
                    spread=half,
                    note=note,
                )
    return table.frame()
