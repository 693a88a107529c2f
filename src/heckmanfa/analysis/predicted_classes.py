"""Predictions of an outcome of two classes as columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.fit import Fit
from heckmanfa.inference.prediction import check_kind
from heckmanfa.inference.probabilities import predict_probability
from heckmanfa.results.effect_words import EffectWords


def predict_classes(
    fit: Fit, X: pd.DataFrame, kind: str, interval: str | None, conf_level: float
) -> pd.DataFrame:
    """Return the probability of the positive class, its interval, and the class."""
    if kind != "joint":
        check_kind(fit, kind)
    given = predict_probability(fit, X, kind, "nan", interval, conf_level)
    probability, ends = (given, None) if interval is None else given
    found = pd.DataFrame({f"probability_{kind}": probability})
    if ends is not None:
        found["low"], found["high"] = ends[:, 0], ends[:, 1]
    if kind != "joint":
        # The last label is for rows without a probability.
        codes = np.where(np.isnan(probability), 2, probability > 0.5)
        labels = np.array([*_classes_of(fit), None], dtype=object)[codes]
        found[f"predicted_{kind}"] = pd.Series(labels, dtype=class_type(fit))
    return found


_GIVEN = {
    "marginal": "for anyone",
    "selected": "given that a row is selected",
    "unselected": "given that a row is not selected",
}


def probability_words(fit: Fit | None, outcome: str, kind: str) -> str:
    """Say which class the column of probabilities is about; empty if there is no such column."""
    if fit is None or not fit.is_binary or kind == "selection":
        return ""
    about = EffectWords.of(fit, outcome).target
    if kind == "joint":
        return f"probability_joint is {about} and that the row is selected."
    return (
        f"probability_{kind} is {about}, {_GIVEN[kind]}; predicted_{kind} is the class whose "
        "probability is above one half."
    )


def _classes_of(fit: Fit) -> tuple[Any, Any]:
    assert fit.classes is not None
    return fit.classes


def class_type(fit: Fit) -> str:
    """Return pandas' type for a column of classes that may have gaps."""
    kinds = {type(label) for label in _classes_of(fit)}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "Int64"
    return "object" if str in kinds else "float64"
