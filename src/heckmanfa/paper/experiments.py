"""The experiments behind the rows of the paper's tables: each yields figures of a data set."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.datasets import PaperData
from heckmanfa.errors import NoFeasibleAssignmentError
from heckmanfa.estimators.ru import RURegressor
from heckmanfa.model.compressed import compress
from heckmanfa.paper.protocol import (
    Dataset,
    Evaluation,
    Extraction,
    evaluate,
    fit_features,
    mse,
)
from heckmanfa.paper.reproduction import Figure, Options
from heckmanfa.search import all_features, correlations

_MARGINAL = "marginal test MSE"
_ASSIGNMENTS = 10
_UNDERFLOWS = "lambda = 0 on five test rows"


def spread(values: Sequence[float] | Floats) -> float | None:
    """Standard deviation between runs; None for a single run."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def averages(
    runs: Sequence[Mapping[str, float]],
    quantities: Collection[str],
    notes: Mapping[str, str] | None = None,
) -> Iterator[Figure]:
    """Average quantities over runs."""
    for quantity in quantities:
        values = [run[quantity] for run in runs]
        mean = float(np.mean(values)) if values else float("nan")
        yield Figure(quantity, mean, spread(values), (notes or {}).get(quantity, ""))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Table selfeatures. -------------------------------------------------------------------------------


def sample_sizes(dataset: Dataset, options: Options) -> Iterator[Figure]:
    """Count the training rows and the selected ones."""
    split = dataset.split()
    yield Figure("training rows", len(split.y))
    yield Figure("selected rows", int(split.selected.sum()))


def feature_position(dataset: Dataset, options: Options, *, feature: str) -> Iterator[Figure]:
    """Find the position of a feature, counted from 1."""
    names = dataset.split().feature_names
    yield Figure("place", names.index(feature) + 1 if feature in names else float("nan"))


# Tables sampling and topjfeats. -------------------------------------------------------------------


def listed_features(
    dataset: Dataset,
    options: Options,
    *,
    features: Sequence[int],
    star: bool = False,
    skip: Collection[str] = (),
    note: str = "",
) -> Iterator[Figure]:
    """Evaluate features that the paper lists, but for the quantities to skip."""
    split = dataset.split()
    model = fit_features(split, features)
    found = evaluate(split, model, as_published=options.as_published, star=star)
    notes = {_MARGINAL: "without the inverse Mills ratio: the test rows were not selected"}
    for quantity, value in found.figures.items():
        if quantity not in skip:
            yield Figure(quantity, value, note=note or notes.get(quantity, ""))


def ru_regression(
    dataset: Dataset, options: Options, *, features: Sequence[int]
) -> Iterator[Figure]:
    """Fit Rockafellar-Uryasev regression to features that the paper lists, over seeds."""
    if not options.ru:
        return
    runs = []
    for seed in range(options.seeds):
        options.say(f"RU, seed {seed}")
        runs.append(ru_errors(dataset.split(), features, seed))
    note = _counted(options.seeds, "seed")
    yield from averages(runs, runs[0], dict.fromkeys(runs[0], note))


def ru_errors(split: PaperData, features: Sequence[int], seed: int) -> dict[str, float]:
    """Train and test MSE of Rockafellar-Uryasev regression on features counted from 1."""
    model = RURegressor([feature - 1 for feature in features], random_state=seed)
    model.fit(split.X, split.y)
    X, y = split.X[split.selected], split.y[split.selected]
    return {
        "RU train MSE": mse(y, model.predict(X)),
        "RU test MSE": mse(split.y_test, model.predict(split.X_test)),
    }


def searched_features(
    dataset: Dataset, options: Options, *, extraction: Extraction
) -> Iterator[Figure]:
    """Evaluate what our search finds, over seeds."""
    found = _searches(dataset, options, extraction)
    seeds = _counted(options.seeds, "seed")
    if not found:
        note = f"no assignment in the window in {seeds}"
        yield Figure("test MSE", float("nan"), note=note)
        return
    sets = {evaluation.features for evaluation in found}
    first = ", ".join(str(feature) for feature in found[0].features)
    more = ", ..." if len(sets) > 1 else ""
    note = f"{len(found)} of {seeds}, {_counted(len(sets), 'set')}: {first}{more}"
    quantities = [name for name in found[0].figures if name != "Naive train MSE"]
    yield from averages([run.figures for run in found], quantities, {"test MSE": note})


def _searches(
    dataset: Dataset, options: Options, extraction: Extraction, **settings: Any
) -> list[Evaluation]:
    """Search and evaluate with every seed, and keep what has an assignment in the window."""
    found = []
    for seed in range(options.seeds):
        options.say(f"seed {seed}")
        found.append(_search(dataset, extraction, seed, options.as_published, **settings))
    return [evaluation for evaluation in found if evaluation is not None]


def _search(
    dataset: Dataset, extraction: Extraction, seed: int, as_published: bool, **settings: Any
) -> Evaluation | None:
    """Search on the paper's split and evaluate; None if no assignment is in the window."""
    split = dataset.split()
    try:
        model = dataset.search(split, extraction, seed=seed, **settings)
    except NoFeasibleAssignmentError:
        return None
    return evaluate(split, model, as_published=as_published, star=extraction == "rank")


# Both baselines are tested on the same assignments.
_assignment = cache(_search)


# Table moretopj. ----------------------------------------------------------------------------------


def top_correlated(dataset: Dataset, options: Options, *, size: int) -> Iterator[Figure]:
    """Evaluate the features with the highest correlation (Heckman-C), with lambda = 0 as published.

    The published run has lambda = 0 on five test rows, which gives every printed digit.
    """
    split = dataset.split()
    moments = compress(split.X, split.y).moments
    model = fit_features(split, _top(correlations(moments, all_features(moments)), size))
    low, high = dataset.rho_range
    inside = "inside" if low <= model.rho_ <= high else "outside"
    note = f"{_UNDERFLOWS}; rho {model.rho_:.4f}, {inside} the window"
    published, true = evaluate(split, model, as_published=True), evaluate(split, model)
    yield Figure("test MSE", published.figures["test MSE"], note=note)
    yield Figure("test MSE, true lambda", true.figures["test MSE"])
    yield Figure(_MARGINAL, true.figures[_MARGINAL])


def top_trained(dataset: Dataset, options: Options, *, size: int) -> Iterator[Figure]:
    """Evaluate the features with the highest trained probability (Heckman-FA*), over seeds."""
    split = dataset.split()
    runs = []
    for seed in range(options.seeds):
        options.say(f"seed {seed}")
        model = fit_features(split, _top(_trained_probabilities(dataset, seed), size))
        runs.append(evaluate(split, model, as_published=True).figures)
    note = f"{_UNDERFLOWS}; {_counted(options.seeds, 'seed')}"
    yield from averages(runs, ("test MSE", _MARGINAL), {"test MSE": note})


@cache  # rows of every size share the training
def _trained_probabilities(dataset: Dataset, seed: int) -> Floats:
    return dataset.search(dataset.split(), "rank", seed=seed, rho_range=None).inclusion_prob_


def _top(strengths: Floats, size: int) -> list[int]:
    """Return the strongest features, counted from 1."""
    order = np.argsort(-strengths, kind="stable")
    return [int(index) + 1 for index in order[:size]]


# Tables testingmsespi0 and executiontimes. --------------------------------------------------------


def search_settings(
    dataset: Dataset, options: Options, *, timed: bool = False, **settings: Any
) -> Iterator[Figure]:
    """Search with other settings of Heckman-FA, over seeds, and with the seconds of one search."""
    start = time.perf_counter()
    found = _searches(dataset, options, "sample", **settings)
    seconds = (time.perf_counter() - start) / options.seeds
    note = f"{len(found)} of {options.seeds} seeds have an assignment in the window"
    runs = [evaluation.figures for evaluation in found]
    yield from averages(runs, ("test MSE", _MARGINAL), {"test MSE": note})
    if timed:
        yield Figure("seconds", seconds, is_time=True)


# Table significance. ------------------------------------------------------------------------------


def paired_test(
    dataset: Dataset, options: Options, *, baseline: Literal["Naive", "RU"], printed_spread: float
) -> Iterator[Figure]:
    """Compare the test errors of ten assignments with a baseline's in a paired t-test.

    The paper does not say how its ten assignments arise; here they are those of ten seeds.
    """
    if baseline == "RU" and not options.ru:
        return
    split = dataset.split()
    found: dict[int, Evaluation] = {}
    tried = 0
    while len(found) < _ASSIGNMENTS and tried < 5 * _ASSIGNMENTS:
        options.say(f"assignment {len(found) + 1} of {_ASSIGNMENTS}")
        evaluation = _assignment(dataset, "sample", tried, options.as_published)
        if evaluation is not None:
            found[tried] = evaluation
        tried += 1
    if not found:
        return
    errors = [
        evaluation.figures if baseline == "Naive" else ru_errors(split, evaluation.features, seed)
        for seed, evaluation in found.items()
    ]
    theirs = [figures[f"{baseline} test MSE"] for figures in errors]
    ours = [evaluation.figures["test MSE"] for evaluation in found.values()]
    marginal = [evaluation.figures[_MARGINAL] for evaluation in found.values()]
    note = f"{len(found)} assignments from {tried} seeds; printed spread {printed_spread}"
    yield _difference("test MSE", ours, theirs, note)
    yield Figure("p-value", float(stats.ttest_rel(ours, theirs).pvalue))
    note = "Heckman-FA without the inverse Mills ratio in its predictions"
    yield _difference(_MARGINAL, marginal, theirs, note)


def _difference(quantity: str, ours: Sequence[float], theirs: Sequence[float], note: str) -> Figure:
    values = np.subtract(ours, theirs)
    return Figure(f"{quantity} difference", float(values.mean()), spread(values), note)
