"""Predictions for the rows of new tables in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import source_columns
from heckmanfa.analysis.predicted_classes import predict_classes
from heckmanfa.analysis.prediction_request import Request, check_model, has_range
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.estimators.fitting import encoded_model
from heckmanfa.inference.prediction import extrapolates
from heckmanfa.tables.reading import Table
from heckmanfa.text.printable import quoted

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
    elif kind != "selection" and model.fit_.is_binary:
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
