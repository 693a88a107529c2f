"""Probabilities of selected rows by fits that have not seen them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from heckmanfa.analysis.prepared import Model, Prepared
from heckmanfa.analysis.request import Question
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.row_rules import decide_rows
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.inference.calibration import calibration_of
from heckmanfa.plots.fit_checks import CalibrationPicture

N_FOLDS = 5
"""folds into which rows are split"""

MOST_ROWS = 100_000
"""with more rows than this, none is held out"""

QUICK_ROWS, QUICK_FEATURES = 20_000, 26
"""up to so many rows and features, a binary outcome is fitted again as often as it has features"""

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


def is_quick(prepared: Prepared) -> bool:
    """Whether a binary outcome can be fitted many times while someone waits."""
    rows = prepared.loaded
    return rows is not None and len(rows.y) <= QUICK_ROWS and rows.X.shape[1] <= QUICK_FEATURES


def fold_model(
    prepared: Prepared, model: Model, make: Callable[[Question], Model]
) -> tuple[Model, Features]:
    """Return the unfitted model of a fold: the search again if it is quick, or its features."""
    question = replace(prepared.question, honest=False)
    if question.searched == "none":
        return make(question), "given"
    if is_quick(prepared):
        return make(question), "chosen"
    question = replace(question, search="none", criterion=None, always=())
    fit = model.fit_
    names = [fit.labels[column] for column in fit.equation]
    kept = make(question).set_params(prediction_features=names)
    if question.search_in == "both" and fit.probit is not None:
        kept.set_params(selection_features=[fit.labels[column] for column in fit.probit.features])
    return kept, "kept"


def hold_out(prepared: Prepared, model: Any, features: Features) -> HeldOut | str:
    """Predict each fold's selected rows by a fit to the others, or say in a sentence why not.

    ``model`` is not fitted. Rows of a cluster stay together.
    """
    rows, classes = prepared.loaded, prepared.target.classes
    if rows is None or classes is None:
        return "Held-out scores need all rows in memory."
    if len(rows.y) > MOST_ROWS:
        return f"Held-out scores would take {N_FOLDS} more fits of {len(rows.y):,} rows."
    from heckmanfa.model_selection import SelectionKFold  # slow to import, for one section

    status = decide_rows(rows.y, rows.selected, rows.weight)
    splitter = SelectionKFold(N_FOLDS, shuffle=True, random_state=0)
    outcome, probability = prepared.outcome, np.full(len(rows.y), np.nan)
    failed = 0
    try:
        folds = list(splitter.split(rows.X, rows.y, rows.groups, selected=status.selected))
    except HeckmanfaError as error:
        return f"No rows could be held out: {str(error).rstrip('.')}."
    for train, test in folds:
        test = test[status.selected[test] & status.kept[test]]
        with warnings.catch_warnings():
            # The checks of the answer say what is wrong with its own model.
            warnings.simplefilter("ignore", HeckmanfaWarning)
            try:
                fitted = clone(model).fit(
                    rows.X.iloc[train],
                    outcome[train],
                    selected=status.selected[train],
                    sample_weight=None if rows.weight is None else rows.weight[train],
                    groups=None if rows.groups is None else rows.groups[train],
                )
            except HeckmanfaError:
                failed += 1
                continue
            probability[test] = fitted.predict_proba(rows.X.iloc[test], kind="selected")[:, 1]
    known = ~np.isnan(probability)
    if not known.any():
        return "No fold could be fitted without its rows, so there are no held-out scores."
    weight: Floats | None = None if rows.weight is None else rows.weight[known]
    picture = calibration_of(
        probability[known],
        rows.y[known],
        weight,
        positive=label_of(classes[1]),
        outcome_name=prepared.question.outcome,
        held_out=f"{N_FOLDS} folds",
        weight_kind=prepared.question.weight_kind,
    )
    return HeldOut(picture, N_FOLDS, failed, features)
