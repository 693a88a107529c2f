"""The experiments behind the rows of the tables: each yields figures of a data set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.datasets import PaperData
from heckmanfa.errors import HeckmanfaWarning, NoFeasibleAssignmentError
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.ru import RURegressor
from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanLasso
from heckmanfa.estimators.weighted import InverseProbabilityWeighted
from heckmanfa.model.compressed import compress
from heckmanfa.paper.protocol import (
    Dataset,
    Evaluation,
    Extraction,
    Figure,
    Options,
    evaluate,
    fit_features,
    mse,
    published,
)
from heckmanfa.search import Goal, all_features, correlations, sample
from heckmanfa.text.wording import plural

_MARGINAL = "marginal test MSE"
_ASSIGNMENTS = 10
_START = 0.75
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


def sample_sizes(dataset: Dataset, options: Options) -> Iterator[Figure]:
    """Count the training rows and the selected ones."""
    split = dataset.split()
    yield Figure("training rows", len(split.y))
    yield Figure("selected rows", int(split.selected.sum()))


def feature_position(dataset: Dataset, options: Options, *, feature: str) -> Iterator[Figure]:
    """Find the position of a feature, counted from 1."""
    names = dataset.split().feature_names
    yield Figure("place", names.index(feature) + 1 if feature in names else float("nan"))


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
    evaluation = evaluate(split, model, as_published=options.as_published, star=star)
    notes = {_MARGINAL: "without the inverse Mills ratio: the test rows were not selected"}
    for quantity, value in evaluation.figures.items():
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
    note = plural(options.seeds, "seed")
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
    evaluations = _searches(dataset, options, extraction)
    seeds = plural(options.seeds, "seed")
    if not evaluations:
        note = f"no assignment in the window in {seeds}"
        yield Figure("test MSE", float("nan"), note=note)
        return
    sets = {evaluation.features for evaluation in evaluations}
    first = ", ".join(str(feature) for feature in evaluations[0].features)
    more = ", ..." if len(sets) > 1 else ""
    note = f"{len(evaluations)} of {seeds}, {plural(len(sets), 'set')}: {first}{more}"
    quantities = [name for name in evaluations[0].figures if name != "Naive train MSE"]
    yield from averages([run.figures for run in evaluations], quantities, {"test MSE": note})


def _searches(
    dataset: Dataset, options: Options, extraction: Extraction, **settings: Any
) -> list[Evaluation]:
    """Search and evaluate with every seed, and keep what has an assignment in the window."""
    evaluations = []
    for seed in range(options.seeds):
        options.say(f"seed {seed}")
        evaluations.append(_search(dataset, extraction, seed, options.as_published, **settings))
    return [evaluation for evaluation in evaluations if evaluation is not None]


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
    note = f"{_UNDERFLOWS}; {plural(options.seeds, 'seed')}"
    yield from averages(runs, ("test MSE", _MARGINAL), {"test MSE": note})


@cache  # rows of every size share the training
def _trained_probabilities(dataset: Dataset, seed: int) -> Floats:
    return dataset.search(dataset.split(), "rank", seed=seed, rho_range=None).inclusion_prob_


def _top(strengths: Floats, size: int) -> list[int]:
    """Return the strongest features, counted from 1."""
    order = np.argsort(-strengths, kind="stable")
    return [int(index) + 1 for index in order[:size]]


def search_settings(
    dataset: Dataset, options: Options, *, timed: bool = False, **settings: Any
) -> Iterator[Figure]:
    """Search with other settings of Heckman-FA, over seeds, and with the seconds of one search."""
    start = time.perf_counter()
    evaluations = _searches(dataset, options, "sample", **settings)
    seconds = (time.perf_counter() - start) / options.seeds
    note = f"{len(evaluations)} of {options.seeds} seeds have an assignment in the window"
    runs = [evaluation.figures for evaluation in evaluations]
    yield from averages(runs, ("test MSE", _MARGINAL), {"test MSE": note})
    if timed:
        yield Figure("seconds", seconds, is_time=True)


def paired_test(
    dataset: Dataset, options: Options, *, baseline: Literal["Naive", "RU"], printed_spread: float
) -> Iterator[Figure]:
    """Compare the test errors of ten assignments with a baseline's in a paired t-test.

    The paper does not say how its ten assignments arise; here they are those of ten seeds.
    """
    if baseline == "RU" and not options.ru:
        return
    split = dataset.split()
    evaluations: dict[int, Evaluation] = {}
    tried = 0
    while len(evaluations) < _ASSIGNMENTS and tried < 5 * _ASSIGNMENTS:
        options.say(f"assignment {len(evaluations) + 1} of {_ASSIGNMENTS}")
        evaluation = _assignment(dataset, "sample", tried, options.as_published)
        if evaluation is not None:
            evaluations[tried] = evaluation
        tried += 1
    if not evaluations:
        return
    errors = [
        evaluation.figures if baseline == "Naive" else ru_errors(split, evaluation.features, seed)
        for seed, evaluation in evaluations.items()
    ]
    theirs = [figures[f"{baseline} test MSE"] for figures in errors]
    ours = [evaluation.figures["test MSE"] for evaluation in evaluations.values()]
    marginal = [evaluation.figures[_MARGINAL] for evaluation in evaluations.values()]
    note = f"{len(evaluations)} assignments from {tried} seeds; printed spread {printed_spread}"
    yield _difference("test MSE", ours, theirs, note)
    yield Figure("p-value", float(stats.ttest_rel(ours, theirs).pvalue))
    note = "Heckman-FA without the inverse Mills ratio in its predictions"
    yield _difference(_MARGINAL, marginal, theirs, note)


def _difference(quantity: str, ours: Sequence[float], theirs: Sequence[float], note: str) -> Figure:
    values = np.subtract(ours, theirs)
    return Figure(f"{quantity} difference", float(values.mean()), spread(values), note)


# Other ways to the same predictions, on the paper's split and on random ones.


def _untrained(dataset: Dataset, split: PaperData, seed: int) -> Heckman:
    """Fit Heckman-FA without training: draws with the starting probability."""
    moments = compress(split.X, split.y, standardize="features").moments
    k = len(split.feature_names)
    search = sample(
        moments,
        published(all_features(moments)),
        Goal.of(moments, "adjusted_r2", dataset.rho_range),
        np.log(np.array([[1.0 - _START] * k, [_START] * k])),
        names=split.feature_names,
        n_draws=1000,
        random_state=seed,
    )
    return Heckman(search.best).fit(split.X, split.y)


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
    selected = (
        model.predict(split.X_test, kind="selected") if isinstance(model, Heckman) else marginal
    )
    figures = {"test MSE": mse(split.y_test, selected), _MARGINAL: mse(split.y_test, marginal)}
    if hasattr(model, "rho_"):
        figures["rho"] = model.rho_
    return {**figures, "number of features": float(model.support_.sum())}


def over_seeds(dataset: Dataset, options: Options, *, method: str) -> Iterator[Figure]:
    """Evaluate a method on the paper's split; one that draws, over seeds."""
    seeds = options.seeds if method in _SEEDED else 1
    all_runs = [_figures(dataset, options, dataset.split(), method, seed) for seed in range(seeds)]
    runs = [figures for figures in all_runs if figures is not None]
    if runs:
        note = f"{len(runs)} of {seeds} runs have an assignment in the window" if seeds > 1 else ""
        yield from averages(runs, runs[0], dict.fromkeys(runs[0], note))


def over_random_splits(dataset: Dataset, options: Options, *, method: str) -> Iterator[Figure]:
    """Evaluate a method on random splits; the spread is half of a 95% interval for the mean."""
    splits = range(options.splits)
    all_runs = [_figures(dataset, options, dataset.split(split), method, split) for split in splits]
    runs = [figures for figures in all_runs if figures is not None]
    note = f"{len(runs)} of {len(splits)} random splits; ± a 95% interval of the mean"
    factor = stats.t.ppf(0.975, len(runs) - 1)
    for figure in averages(runs, ("test MSE", _MARGINAL) if runs else ()):
        half = None if figure.spread is None else factor * (figure.spread / len(runs) ** 0.5)
        yield Figure(f"{figure.quantity}, random splits", figure.value, half, note)
