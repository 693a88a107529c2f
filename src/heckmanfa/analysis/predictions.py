"""Predictions for the rows of a table in memory: what can be asked, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import source_columns
from heckmanfa.analysis.prediction_request import Request
from heckmanfa.analysis.treatment_requests import (
    TREATMENT,
    check_of_treatment,
    check_regimes,
    column_of,
    is_treatment,
    needs_of,
    predict_of_treatment,
    refuse_regimes,
    usual_of_treatment,
)
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.values import label_of, to_numbers
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.estimators.fitting import encoded_model
from heckmanfa.fit import Fit
from heckmanfa.inference.class_probabilities import check_class_kind
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.prediction import check_interval, check_kind, extrapolates
from heckmanfa.inference.probabilities import predict_probability
from heckmanfa.results.naming import EffectWords, name_on_scale
from heckmanfa.tables.reading import Table
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

KINDS = ("marginal", "selected", "unselected", "expected", "selection", "joint", TREATMENT)
INTERVALS = ("prediction", "confidence")


def check_request(request: Request) -> None:
    """Refuse a kind of prediction, an interval or a scale that does not exist."""
    kind, interval = request.kind, request.interval
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(
            f"{option('kind')} must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}"
        )
    if interval not in (None, *INTERVALS):
        raise InputError(
            f"{option('return_interval')} must be {' or '.join(INTERVALS)}; got {quoted(interval)}"
        )
    if interval == "prediction" and kind in ("selection", TREATMENT):
        raise InputError(
            f"{option('return_interval', 'prediction')} is about outcomes, but {option('kind')} is "
            f"{kind}, whose interval is confidence"
        )
    check_regimes(request)
    check_scale(request.scale)


def usual_interval(model: Any, request: Request) -> tuple[str | None, str]:
    """Return the interval to give unless the user chooses, or None and a sentence that says why."""
    kind = request.kind
    if is_treatment(model):
        return usual_of_treatment(model, request)
    if kind == "selection":
        return None, ""
    if not hasattr(model, "predict_selection"):
        return None, f"No interval is given: {type(model).__name__} has none."
    fit = model.fit_
    if fit.family.is_ordered:
        return None, ""
    if fit.family.has_classes or kind == "expected":
        return "confidence", ""
    of_mean = "low and high are of the mean, not of a new outcome, whose distribution "
    if not fit.family.can("single rho"):
        return "confidence", f"{of_mean}the {fit.family.words.model} does not suppose."
    if kind != "marginal" and not fit.family.can("normal errors"):
        return "confidence", f"{of_mean}given selection has no interval here."
    known = fit.way.is_average or not fit.way.is_corrected or abs(fit.rho) < 1
    if kind != "marginal" and not known:
        return None, (
            f"No interval is given: rho is estimated at {fit.rho:.4g}, outside (-1, 1), so the "
            "distribution of an outcome given selection is not known. "
            f"{option('return_interval', 'confidence')} gives that of its mean."
        )
    return "prediction", ""


def check_model(model: Any, request: Request) -> None:
    """Refuse a kind of prediction, or an interval, that a model does not have."""
    kind, interval, scale = request.kind, request.interval, request.scale
    if is_treatment(model):
        check_of_treatment(model, request)
        return
    refuse_regimes(model, request)
    if not hasattr(model, "predict_selection"):
        if kind != "marginal" or interval is not None or scale != "response":
            raise InputError(
                f"{type(model).__name__} does not model selection and gives no intervals: its "
                "predictions are of kind 'marginal'"
            )
        return
    if kind == "selection":
        return
    if model.fit_.family.is_ordered:
        check_class_kind(model.fit_, kind)
        if interval is not None or scale != "response":
            raise InputError(
                "probabilities of ordered classes have no intervals and no scale: leave out "
                f"{option('return_interval' if interval is not None else 'scale')}"
            )
        return
    if model.fit_.family.has_classes:
        if kind == "expected":
            raise InputError(
                "kind 'expected' of a binary outcome is the probability of a class together with "
                "selection: use kind 'joint'"
            )
        if scale != "response":
            raise InputError(
                "scale 'link' is for amounts and for kind 'selection': predictions of a binary "
                "outcome are probabilities"
            )
        if interval is not None:
            check_interval(interval, request.conf_level, "class")
    elif kind == "joint":
        raise InputError(
            "kind 'joint' is the probability of a class together with selection, and "
            f"{type(model).__name__} predicts amounts: use another kind, or fit a binary outcome"
        )
    elif interval is not None:
        check_interval(interval, request.conf_level, kind)


def has_range(model: Any) -> bool:
    """Whether a model has a selection equation, whose index shows which rows extrapolate."""
    return hasattr(model, "predict_selection") and model.fit_.probit is not None


def scale_words(fit: Fit | None, outcome: str, kind: str, scale: str) -> str:
    """Say what a column of predictions is of, if that is not the outcome as it was fitted."""
    if kind == "selection":
        index = "predicted_selection is the index of the selection equation, not a probability."
        return index if scale == "link" else ""
    transform = None if fit is None else fit.spec.outcome_transform
    if transform is None:
        return ""
    named = outcome if scale == "response" else name_on_scale(outcome, transform)
    if kind == "expected":
        return f"predicted_expected is a mean of {shown(named)}, counted as 0 if not selected."
    not_log = f", not of its logarithm ({option('scale', 'link')})" if scale == "response" else ""
    return f"predicted_{kind} is a mean of {shown(named)}{not_log}."


_GIVEN = {
    "marginal": "for anyone",
    "selected": "given that a row is selected",
    "unselected": "given that a row is not selected",
}


def probability_words(fit: Fit | None, outcome: str, kind: str) -> str:
    """Say which class the column of probabilities is about; empty if there is no such column."""
    if fit is None or not fit.family.reads_labels or kind == "selection":
        return ""
    if fit.ordered_classes is not None:
        columns = [class_column(kind, label) for label in fit.ordered_classes]
        return (
            f"{columns[0]} to {columns[-1]} are the probabilities of the classes of "
            f"{shown(outcome)}, {_GIVEN[kind]}; predicted_{kind} is the likeliest class."
        )
    about = EffectWords.of(fit, outcome).target
    if kind == "joint":
        return f"probability_joint is {about} and that the row is selected."
    return (
        f"probability_{kind} is {about}, {_GIVEN[kind]}; predicted_{kind} is the class whose "
        "probability is above one half."
    )


def _has_classes(model: Any, kind: str) -> bool:
    """Whether predictions are classes and their probabilities."""
    selects = kind != "selection" and hasattr(model, "predict_selection")
    return selects and model.fit_.family.has_classes


def class_column(kind: str, label: Any) -> str:
    """Return the name of the column with the probability of an ordered class."""
    return f"probability_{kind}_{label_of(label)}"


def _ordered(model: Any, kind: str) -> Sequence[Any]:
    """Return the classes whose probabilities are predicted; empty unless they are ordered."""
    selects = kind != "selection" and hasattr(model, "predict_selection")
    return (model.fit_.ordered_classes or ()) if selects else ()


def _class_type(labels: Sequence[Any]) -> str:
    """Return pandas' type for a column of classes that may have gaps."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "Int64"
    return "object" if str in kinds else "float64"


EXTRAPOLATES = "extrapolates"
"""the column that says which rows extrapolate"""


def prediction_columns(model: Any, request: Request) -> dict[str, str]:
    """Return the columns of predictions, with pandas' type of each.

    First comes ``predicted_<kind>``, NaN where a feature is missing, and with an interval ``low``
    and ``high``. For an outcome of two classes, ``probability_<kind>`` of the positive class comes
    first, the interval is that of the probability, and ``predicted_<kind>`` is the class. For
    ordered classes, ``probability_<kind>_<class>`` of each comes first, then the likeliest. With
    ``extrapolation``, ``extrapolates`` says whether a row's selection index lies outside the range
    of the fit's selected rows; a model without a selection equation has no such column.
    """
    kind, has_classes = request.kind, _has_classes(model, request.kind)
    name = f"{'probability' if has_classes else 'predicted'}_{kind}"
    columns = {column_of(request) if is_treatment(model) else name: "float64"}
    ordered = _ordered(model, kind)
    if request.interval is not None:
        columns |= {"low": "float64", "high": "float64"}
    if ordered:
        columns = {class_column(kind, label): "float64" for label in ordered}
        columns[f"predicted_{kind}"] = _class_type(ordered)
    if has_classes and kind != "joint":
        columns[f"predicted_{kind}"] = _class_type(model.fit_.classes)
    return columns | (
        {EXTRAPOLATES: "boolean"} if request.extrapolation and has_range(model) else {}
    )


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions for the rows of a table, and what they lack."""

    table: pd.DataFrame
    """with the columns of `prediction_columns`"""
    gaps: Gaps

    @property
    def n_extrapolating(self) -> int:
        """Rows that extrapolate, if that is known."""
        return int(self.table[EXTRAPOLATES].sum()) if EXTRAPOLATES in self.table else 0


def predict_table(
    model: Any, X: pd.DataFrame, request: Request, encoding: Encoding | None = None
) -> Predicted:
    """Predict for each row of X: the features of the fit, or the columns that its formulas name.

    Gaps name the columns of the table if ``encoding`` made X.
    """
    check_model(model, request)
    kind, rule = request.kind, request.rule
    if encoding is not None:
        model = encoded_model(model)
        if not hasattr(model, "feature_names_in_"):
            # The encoding has its columns in the order of the fit, which knows no names.
            X = X.set_axis(range(X.shape[1]), axis="columns")
    made = _predict(model, X, request)
    values, ends = (made, None) if request.interval is None else made
    columns = [values] if ends is None else [values, ends[:, 0], ends[:, 1]]
    types = prediction_columns(model, request)
    ordered = _ordered(model, kind)
    if ordered:
        unknown = np.isnan(values).any(axis=1)
        codes = np.where(unknown, len(ordered), np.argmax(values, axis=1))
        columns = [*values.T, np.array([*ordered, None], dtype=object)[codes]]
    if f"predicted_{kind}" in types and _has_classes(model, kind):
        # The last label is for rows without a probability.
        codes = np.where(np.isnan(values), 2, values > 0.5)
        columns.append(np.array([*model.fit_.classes, None], dtype=object)[codes])
    if EXTRAPOLATES in types:
        outside, known = extrapolates(model.fit_.reading(request.unknown), X)
        columns.append(pd.arrays.BooleanArray(outside, ~known))
    table = pd.DataFrame(
        {
            name: pd.Series(column, dtype=dtype)
            for column, (name, dtype) in zip(columns, types.items(), strict=True)
        }
    )
    gaps = Gaps(len(table))
    if table.iloc[:, 0].isna().any():
        needs = needs_of(request) if is_treatment(model) else kind
        gaps = model.missing_features(X, needs, **rule)
        gaps = gaps.of_sources({} if encoding is None else source_columns(encoding))
    return Predicted(table, gaps)


def _predict(model: Any, X: pd.DataFrame, request: Request) -> Any:
    """Return the predictions of a model, with the ends of their intervals if asked."""
    kind, interval, rule = request.kind, request.interval, request.rule
    if is_treatment(model):
        return predict_of_treatment(model, X, request)
    if not hasattr(model, "predict_selection"):
        return model.predict(X, missing="nan", **rule)
    if _ordered(model, kind):
        return np.asarray(model.predict_proba(X, kind=kind, missing="nan", **rule))
    if _has_classes(model, kind):
        fit = model.fit_.reading(request.unknown)
        if kind != "joint":
            check_kind(fit, kind)
        return predict_probability(fit, X, kind, "nan", interval, request.conf_level)
    asked = {"conf_level": request.conf_level, "scale": request.scale, **rule}
    if kind == "selection":
        return model.predict_selection(X, missing="nan", return_interval=interval, **asked)
    return model.predict(X, kind=kind, missing="nan", return_interval=interval, **asked)


def encode_new(
    table: Table, encoding: Encoding, outcome: str | None = None, unknown: Unknown = "error"
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Encode a table as that of the fit; also return notes on what differs.

    The column of the ``outcome`` is never suggested in place of a feature. ``unknown`` is as in
    `Encoding.codes`.
    """
    try:
        refuse_absent(encoding.sources, [name for name in table.frame.columns if name != outcome])
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    table.refuse_doubts([name for name in encoding.sources if name not in encoding.levels])
    # If columns have types, per cent signs are not part of their numbers.
    filled = [
        name for name in encoding.sources if table.untyped and table.frame[name].notna().any()
    ]
    _refuse_other_units(table, encoding, filled)
    # The fit read 5% as 5, so plain numbers have its scale if they are written in the same way.
    notes = [
        f"{quoted(name)} has no per cent signs, as it had in the table of the fit: 5 was read as "
        "5%, and 0.05 as 0.05%."
        for name in encoding.percent
        if name in filled and name not in table.percent
    ]
    encoded = encoding.transform(table.frame, unknown=unknown)
    notes += encoding.unseen(table.frame) if unknown == "missing" else []
    return encoded, tuple(notes)


def _refuse_other_units(table: Table, encoding: Encoding, filled: Sequence[str]) -> None:
    """Refuse columns whose signs differ from those of the fit in a way that matters."""
    for name in filled:
        here, there = table.money.get(name), encoding.money.get(name)
        if here is not None and here != there:
            was = f"in {there}" if there else "without a currency sign"
            raise InputError(
                f"column {quoted(name)} is in {here}, and was {was} in the table of the fit; write "
                "it as there"
            )
        if name in table.percent and name not in encoding.percent:
            raise InputError(
                f"column {quoted(name)} has per cent signs, and had none in the table of the fit; "
                "0.05 there may or may not be 5% here: write it as there, without signs"
            )
        if name in encoding.percent and name not in table.percent:
            values = to_numbers(table.frame[name], name)
            if np.nanmax(np.abs(values)) <= 1 < abs(encoding.means[name]):
                raise InputError(
                    f"column {quoted(name)} has no per cent signs, and had them in the table of "
                    f"the fit, where it was {encoding.means[name]:.3g}% on average; here it is at "
                    "most 1, as shares are: multiply it by 100, or write it with signs"
                )
