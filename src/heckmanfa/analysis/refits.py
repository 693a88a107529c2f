"""The model of an answer fitted again: its best set, in samples of the rows, and without folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from sklearn.base import clone

from heckmanfa.analysis.fitted_question import NOT_IN_MEMORY, FittedQuestion
from heckmanfa.analysis.prepared import Model
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.row_rules import decide_rows
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import groups_at
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.inference.bootstrap import Bootstrap
from heckmanfa.inference.calibration import calibration_of
from heckmanfa.plots.fit_checks import CalibrationPicture
from heckmanfa.results.assignment_weights import (
    QUICK_UNITS,
    AssignmentWeights,
    n_units_of,
)
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.text.labels import level_label, said_all
from heckmanfa.text.wording import MAX_NAMES, chance_text, percent, plural

N_BOOT = 50
"""samples of the rows that are searched again; half as many for a binary outcome, and for both
equations, whose searches read the rows a few times"""

MOST_RESAMPLED = 10_000
"""with more rows than this, none is"""

_STABLE_FROM = 0.5
_TWO_WAYS = "errors are clustered by two columns here"


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


def resample(fitted: FittedQuestion) -> Resampled | str:
    """Search for the best set in samples of the rows, or say in a clause why not.

    The criterion is BIC unless the search had another; groups, window, weights and clusters are
    those of the question, and its seed makes the samples the same every time.
    """
    loaded, question, fit = fitted.loaded, fitted.question, fitted.model.fit_
    if loaded is None:
        return NOT_IN_MEMORY
    if has_pseudo_weights(fit):
        return "With sampling weights there is no BIC to search by again"
    if loaded.designed is not None:
        return "A bootstrap draws rows alike, and a survey drew units in its strata"
    if len(question.cluster) > 1:
        return f"A bootstrap draws whole clusters, and {_TWO_WAYS}"
    n_units = n_units_of(fit)
    if n_units > QUICK_UNITS:
        return f"To search again in samples of the rows takes too long with {n_units} features"
    if len(loaded.y) > MOST_RESAMPLED:
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
        model = fitted.refit(_without_tolerance(fitted.make(search)))
        drawn = model.bootstrap(
            loaded.X,
            fitted.outcome,
            N_BOOT if model.fit_.spec.method == "two-step" else -(-N_BOOT // 2),
            unit=loaded.groups,
            selected=loaded.selected,
            sample_weight=loaded.weight,
            random_state=question.seed,
        )
    except HeckmanfaError as error:
        return f"Samples of the rows cannot be searched: {str(error).rstrip('.')}"
    return Resampled.of(drawn)


def _without_tolerance(model: Model) -> Model:
    """Return a search for the best set alone, without others that are nearly as good."""
    listing = "tolerance" in model.get_params(deep=False)
    return model.set_params(tolerance=None) if listing else model


def best_set_finding(fitted: FittedQuestion, drawn: Resampled) -> Fact:
    """Say how often the best set of features won."""
    fit, weights, weight = fitted.model.fit_, fitted.evidence.weights, ""
    if isinstance(weights, AssignmentWeights):
        state = weights.mixture.leading_states[0]
        if not state[-1] and np.array_equal(state[:-2], drawn.best):
            weight = f" has {chance_text(weights.best)} of the BIC weight, and"
    names = fitted.sources([fit.feature_names[column] for column in np.flatnonzero(drawn.best)])
    samples = f"{drawn.n} bootstrap samples"
    rare = drawn.share < _STABLE_FROM
    won = f"won in {percent(drawn.share, 0)} of {samples}"
    return tell(
        fit,
        "best_set",
        "caution" if rare else "ok",
        f"{plural(drawn.n_sets, 'different one')} in {samples}" if rare else won,
        case="drawn" if fit.way.is_average else "searched",
        name="best set",
        drawn=f"{set_words(names)}{weight} {won}.",
    )


def set_words(names: Sequence[str]) -> str:
    """Name a set of features, as in 'a + b'."""
    if not names:
        return "The empty set"
    first = said_all(names[:MAX_NAMES])
    more = f" + {len(names) - len(first)} more" if len(names) > len(first) else ""
    return f"{' + '.join(first)}{more}"


N_FOLDS = 5
"""folds into which rows are split"""

MOST_HELD_OUT = 100_000
"""with more rows than this, none is held out"""

CAUTION = (
    "These rows are selected: their scores say little about the probabilities of rows without an "
    "outcome."
)


Features = Literal["given", "chosen", "kept"]

_HOW: dict[Features, str] = {
    "given": "",
    "chosen": "Features were chosen again in each fold.",
    "kept": (
        "Each fold keeps the features that the search chose in all rows, so these scores are a "
        "little too good."
    ),
}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Probabilities of m selected rows, each by a fit to the other folds."""

    picture: CalibrationPicture
    """what was predicted beside what happened, with AUC, Brier score and log loss"""
    n_folds: int
    n_failed: int
    """folds that could not be fitted, whose rows are left out"""
    features: Features
    """whether features were given, chosen again in each fold, or kept from the search"""

    @property
    def how(self) -> str:
        """How features were found in each fold, and which folds failed; empty if all is plain."""
        said = [_HOW[self.features]]
        if self.n_failed:
            said.append(f"{self.n_failed} of {self.n_folds} folds could not be fitted.")
        return " ".join(sentence for sentence in said if sentence)

    @property
    def words(self) -> str:
        """The same, and what these scores leave unsaid, which the picture says too."""
        return f"{self.how} {CAUTION}".strip()


def fold_model(fitted: FittedQuestion) -> tuple[Model, Features]:
    """Return the unfitted model of a fold: the search again if it is quick, or its features."""
    question = replace(fitted.question, honest=False)
    if question.searched == "none":
        return fitted.make(question), "given"
    if fitted.is_quick:
        return fitted.make(question), "chosen"
    fit = fitted.model.fit_
    kept = fitted.make(replace(question, search="none", criterion=None, always=()))
    kept.set_params(prediction_features=[fit.labels[column] for column in fit.equation])
    if question.search_in == "both" and fit.probit is not None:
        kept.set_params(selection_features=[fit.labels[column] for column in fit.probit.features])
    return kept, "kept"


def hold_out(fitted: FittedQuestion) -> HeldOut | str:
    """Predict each fold's selected rows by a fit to the others, or say in a sentence why not.

    Rows of a cluster stay together.
    """
    rows, classes = fitted.loaded, fitted.target.classes
    if rows is None or classes is None:
        return "Held-out scores need all rows in memory."
    if len(rows.y) > MOST_HELD_OUT:
        return f"Held-out scores would take {N_FOLDS} more fits of {len(rows.y):,} rows."
    if len(fitted.question.cluster) > 1:
        return f"No rows could be held out: folds hold whole clusters, and {_TWO_WAYS}."
    from heckmanfa.model_selection import SelectionKFold  # slow to import, for one section

    status = decide_rows(rows.y, rows.selected, rows.weight)
    splitter = SelectionKFold(N_FOLDS, shuffle=True, random_state=0)
    model, features = fold_model(fitted)
    outcome, probability = fitted.outcome, np.full(len(rows.y), np.nan)
    failed = 0
    try:
        folds = list(splitter.split(rows.X, rows.y, rows.fold_groups, selected=status.selected))
    except HeckmanfaError as error:
        return f"No rows could be held out: {str(error).rstrip('.')}."
    for train, test in folds:
        test = test[status.selected[test] & status.kept[test]]
        with warnings.catch_warnings():
            # The checks of the answer say what is wrong with its own model.
            warnings.simplefilter("ignore", HeckmanfaWarning)
            try:
                of_others = clone(model).fit(
                    rows.X.iloc[train],
                    outcome[train],
                    selected=status.selected[train],
                    sample_weight=None if rows.weight is None else rows.weight[train],
                    groups=groups_at(rows.groups, train),
                )
            except HeckmanfaError:
                failed += 1
                continue
            probability[test] = of_others.predict_proba(rows.X.iloc[test], kind="selected")[:, 1]
    known = ~np.isnan(probability)
    if not known.any():
        return "No fold could be fitted without its rows, so there are no held-out scores."
    weight: Floats | None = None if rows.weight is None else rows.weight[known]
    picture = calibration_of(
        probability[known],
        rows.y[known],
        weight,
        positive=level_label(fitted.question.outcome, label_of(classes[1])),
        outcome_name=fitted.question.outcome,
        held_out=f"{N_FOLDS} folds",
        weight_kind=fitted.question.counts_as,
    )
    return HeldOut(picture, N_FOLDS, failed, features)
