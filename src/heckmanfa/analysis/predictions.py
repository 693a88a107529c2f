"""Predictions for the rows of a table in memory: what can be asked, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import source_columns
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.estimators.fitting import encoded_model
from heckmanfa.fit import Fit
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.prediction import check_interval, check_kind, extrapolates
from heckmanfa.inference.probabilities import check_probability_interval, predict_probability
from heckmanfa.results.naming import EffectWords, name_on_scale
from heckmanfa.tables.reading import Table
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

KINDS = ("marginal", "selected", "unselected", "expected", "selection", "joint")
INTERVALS = ("prediction", "confidence")
CONF_LEVEL = 0.95


@dataclass(frozen=True)
class Request:
    """What to predict; the parameters are those of `heckmanfa.predict_parquet`."""

    kind: str = "marginal"
    interval: str | None = None
    scale: str = "response"
    conf_level: float = CONF_LEVEL
    unknown: str | None = None
    extrapolation: bool = False

    @property
    def rule(self) -> dict[str, Any]:
        """How to treat unknown levels, as a parameter of models; empty leaves it to them."""
        return {} if self.unknown is None else {"unknown": self.unknown}


def check_request(kind: str, interval: str | None, scale: str = "response") -> None:
    """Refuse a kind of prediction, an interval or a scale that does not exist."""
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(
            f"{option('kind')} must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}"
        )
    if interval not in (None, *INTERVALS):
        raise InputError(
            f"{option('return_interval')} must be {' or '.join(INTERVALS)}; got {quoted(interval)}"
        )
    if interval == "prediction" and kind == "selection":
        raise InputError(
            f"{option('return_interval', 'prediction')} is about outcomes, but {option('kind')} is "
            "selection, whose interval is confidence"
        )
    check_scale(scale)


def usual_interval(model: Any, kind: str) -> tuple[str | None, str]:
    """Return the interval to give unless the user chooses, or None and a sentence that says why."""
    if kind == "selection":
        return None, ""
    if not hasattr(model, "predict_selection"):
        return None, f"No interval is given: {type(model).__name__} has none."
    fit = model.fit_
    if fit.family.has_classes or kind == "expected":
        return "confidence", ""
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
    if not hasattr(model, "predict_selection"):
        if kind != "marginal" or interval is not None or scale != "response":
            raise InputError(
                f"{type(model).__name__} does not model selection and gives no intervals: its "
                "predictions are of kind 'marginal'"
            )
        return
    if kind == "selection":
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
            check_probability_interval(interval, request.conf_level)
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
    if fit is None or not fit.family.has_classes or kind == "selection":
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


EXTRAPOLATES = "extrapolates"
"""the column that says which rows extrapolate"""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions for the rows of a table, and what they lack."""

    table: pd.DataFrame
    """as `predict_table` describes it"""
    gaps: Gaps

    @property
    def n_extrapolating(self) -> int | None:
        """Rows that extrapolate; None if that is not known."""
        found = self.table.get(EXTRAPOLATES)
        return None if found is None else int(found.sum())


@dataclass(frozen=True)
class Written:
    """Rows of a file of predictions."""

    gaps: Gaps
    """all rows, and those without a prediction"""
    n_extrapolating: int | None
    """rows that extrapolate; None if that is not known"""

    def with_part(self, part: Predicted) -> Written:
        """Add the rows of a part."""
        more = part.n_extrapolating
        known = self.n_extrapolating is not None and more is not None
        count = (self.n_extrapolating or 0) + (more or 0) if known else None
        return Written(self.gaps + part.gaps, count)


def predict_table(
    model: Any, X: pd.DataFrame, request: Request, encoding: Encoding | None = None
) -> Predicted:
    """Predict for each row of X: the features of the fit, or the columns that its formulas name.

    The table has a column ``predicted_<kind>``, NaN where a feature is missing, and with an
    interval ``low`` and ``high``. For an outcome of two classes, ``predicted_<kind>`` is the class,
    before it comes ``probability_<kind>`` of the positive class, and the interval is that of the
    probability. With ``extrapolation``, ``extrapolates`` says whether a row's selection index lies
    outside the range of the fit's selected rows; a model without a selection equation has no such
    column. Gaps name the columns of the table if ``encoding`` made X.
    """
    check_model(model, request)
    kind, interval, rule = request.kind, request.interval, request.rule
    if encoding is not None:
        model = encoded_model(model)
        if not hasattr(model, "feature_names_in_"):
            # The encoding has its columns in the order of the fit, which knows no names.
            X = X.set_axis(range(X.shape[1]), axis="columns")
    if not hasattr(model, "predict_selection"):
        found = pd.DataFrame({f"predicted_{kind}": model.predict(X, missing="nan", **rule)})
    elif kind != "selection" and model.fit_.family.has_classes:
        fit = model.fit_.reading(request.unknown)
        found = predict_classes(fit, X, kind, interval, request.conf_level)
    else:
        predict = model.predict_selection if kind == "selection" else model.predict
        asked = {"conf_level": request.conf_level, "scale": request.scale, **rule}
        asked |= {} if kind == "selection" else {"kind": kind}
        made = predict(X, missing="nan", return_interval=interval, **asked)
        values, ends = (made, None) if interval is None else made
        found = pd.DataFrame({f"predicted_{kind}": values})
        if ends is not None:
            found["low"], found["high"] = ends[:, 0], ends[:, 1]
    if request.extrapolation and has_range(model):
        outside, known = extrapolates(model.fit_.reading(request.unknown), X)
        found[EXTRAPOLATES] = pd.arrays.BooleanArray(outside, ~known)
    gaps = Gaps(len(found))
    if found.iloc[:, 0].isna().any():
        gaps = model.missing_features(X, kind, **rule)
        gaps = gaps.of_sources({} if encoding is None else source_columns(encoding))
    return Predicted(found, gaps)


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
    given = [name for name in encoding.sources if table.untyped and table.frame[name].notna().any()]
    _refuse_other_units(table, encoding, given)
    # The fit read 5% as 5, so plain numbers have its scale if they are written in the same way.
    notes = [
        f"{quoted(name)} has no per cent signs, as it had in the table of the fit: 5 was read as "
        "5%, and 0.05 as 0.05%."
        for name in encoding.percent
        if name in given and name not in table.percent
    ]
    encoded = encoding.transform(table.frame, unknown=unknown)
    notes += encoding.unseen(table.frame) if unknown == "missing" else []
    return encoded, tuple(notes)


def _refuse_other_units(table: Table, encoding: Encoding, given: Sequence[str]) -> None:
    """Refuse columns whose signs differ from those of the fit in a way that matters."""
    for name in given:
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
