"""The best set of features: its model in the rows of the table, and how it fares in other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.analysis.prepared import Model, Prepared
from heckmanfa.analysis.request import Question
from heckmanfa.data.rows import Mask
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.fit import Fit
from heckmanfa.inference.bootstrap import Bootstrap
from heckmanfa.results.assignment_weights import (
    QUICK_UNITS,
    n_units_of,
    weights_of,
)
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.search.averaging import Average
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import MAX_NAMES, chance_text, percent, plural

N_BOOT = 50
"""samples of the rows that are searched again; half as many for a binary outcome, and for both
equations, whose searches read the rows a few times"""

MOST_ROWS = 10_000
"""with more rows than this, none is"""

NOT_IN_MEMORY = "Some checks need all rows in memory"
"""why something was not checked if rows were read in passes"""

_STABLE_FROM = 0.5

Make = Callable[[Question], Model]
"""returns the unfitted estimator of a question"""


def best_model(prepared: Prepared, model: Model, make: Make) -> Model:
    """Return a model of one assignment, fitted to the rows: of an average, the best by BIC."""
    fit = model.fit_
    if fit.average is None or fit.probit is None:
        return model
    names = [str(fit.feature_names[int(column)]) for column in np.flatnonzero(_best_mask(fit))]
    question = replace(
        prepared.question, search="none", criterion=None, rho_range=None, always=(), honest=False
    )
    best = make(question).set_params(prediction_features=names)
    driving = _driving(fit)
    return _fitted(prepared, best.set_params(selection_features=driving) if driving else best)


def ratio_model(prepared: Prepared, model: Model, best: Callable[[], Model]) -> Model | str:
    """Return the model whose ratio of outcomes to their means is shown, or why there is none.

    An average has no such ratio, so it is that of its best set.
    """
    if model.fit_.average is None:
        return model
    if prepared.streamed:
        # The best set would be fitted in passes of its own.
        return NOT_IN_MEMORY
    try:
        return best()
    except HeckmanfaError as error:
        return f"The best set cannot be fitted alone: {str(error).rstrip('.')}"


def _best_mask(fit: Fit) -> Mask:
    """Return the heaviest assignment of an average; with sampling weights, by its own weights."""
    return np.asarray(_weighed(fit).leading_masks[0])


def _driving(fit: Fit) -> list[str]:
    """Name the selection features of that assignment; empty if these were not searched."""
    if fit.average is None or not fit.average.form.searched:
        return []
    state = _weighed(fit).leading_states[0, fit.n_features : -2]
    return [str(fit.feature_names[int(column)]) for column in np.flatnonzero(state)]


def _weighed(fit: Fit) -> Average:
    assert fit.average is not None
    found = weights_of(fit)
    return fit.average.average if isinstance(found, str) else found.average


def _fitted(prepared: Prepared, model: Model) -> Model:
    with warnings.catch_warnings():
        # The checks of the answer say what is wrong with its own model.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        prepared.fit(model)
    return model


@dataclass(frozen=True, eq=False)
class Resampled:
    """Searches for the best set of features in samples of the rows."""

    best: Mask
    """(K,) the best set in all rows"""
    n: int
    """samples that could be searched"""
    n_sets: int
    """different sets that won"""
    share: float
    """of the samples, in which the best set won"""
    findings: tuple[Fact, ...]
    """about samples that could not be searched"""

    @classmethod
    def of(cls, drawn: Bootstrap) -> Resampled:
        """Count what won."""
        support = drawn.replicates.support
        return cls(
            best=drawn.support,
            n=len(support),
            n_sets=len(np.unique(support, axis=0)),
            share=float(np.mean((support == drawn.support).all(axis=1))),
            findings=tuple(item for item in drawn.findings() if item.key == "bootstrap"),
        )


def resample(prepared: Prepared, fit: Fit, make: Make) -> Resampled | str:
    """Search for the best set in samples of the rows, or say in a clause why not.

    The criterion is BIC unless the search had another; groups, window, weights and clusters are
    those of the question, and its seed makes the samples the same every time.
    """
    loaded, question = prepared.loaded, prepared.question
    if loaded is None:
        return NOT_IN_MEMORY
    if has_pseudo_weights(fit):
        return "With sampling weights there is no BIC to search by again"
    n_units = n_units_of(fit)
    if n_units > QUICK_UNITS:
        return f"To search again in samples of the rows takes too long with {n_units} features"
    if len(loaded.y) > MOST_ROWS:
        return f"To search again in samples of {len(loaded.y):,} rows takes too long"
    asked = question.criterion if question.searched == "best-subset" else None
    search = replace(
        question,
        search="best-subset",
        criterion=asked or "bic",
        honest=False,
        method=None,
        start=None,
    )
    try:
        model = _fitted(prepared, _of_one(make(search)))
        drawn = model.bootstrap(
            loaded.X,
            prepared.outcome,
            N_BOOT if model.fit_.spec.method == "two-step" else -(-N_BOOT // 2),
            unit=loaded.groups,
            selected=loaded.selected,
            sample_weight=loaded.weight,
            random_state=question.seed,
        )
    except HeckmanfaError as error:
        return f"Samples of the rows cannot be searched: {str(error).rstrip('.')}"
    return Resampled.of(drawn)


def _of_one(model: Model) -> Model:
    """Return a search for the best set alone."""
    # A binary outcome has no others that the search would list.
    return model.set_params(tolerance=None) if isinstance(model, Heckman) else model


def best_set_finding(fit: Fit, drawn: Resampled, names: Sequence[str]) -> Fact:
    """Say how often the best set of features won; ``names`` are its columns in the table."""
    found = weights_of(fit)
    weight = ""
    state = None if isinstance(found, str) else found.average.leading_states[0]
    same = state is not None and not state[-1] and np.array_equal(state[:-2], drawn.best)
    if not isinstance(found, str) and same:
        weight = f" has {chance_text(found.best)} of the BIC weight, and"
    samples = f"{drawn.n} bootstrap samples"
    rare = drawn.share < _STABLE_FROM
    won = f"won in {percent(drawn.share, 0)} of {samples}"
    return tell(
        fit,
        "best_set",
        "caution" if rare else "ok",
        f"{plural(drawn.n_sets, 'different one')} in {samples}" if rare else won,
        case="drawn" if fit.mode == "average" else "searched",
        name="best set",
        drawn=f"{set_words(names)}{weight} {won}.",
    )


def set_words(names: Sequence[str]) -> str:
    """Name a set of features, as in 'a + b'."""
    if not names:
        return "The empty set"
    first = [shown(name) for name in names[:MAX_NAMES]]
    more = f" + {len(names) - len(first)} more" if len(names) > len(first) else ""
    return f"{' + '.join(first)}{more}"
