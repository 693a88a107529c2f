"""Predictions as a table, for rows in memory or a batch of rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heckmanfa.analysis.column_sources import source_columns
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

KINDS = ("marginal", "selected", "unselected", "selection")
INTERVALS = ("prediction", "confidence")


def check_request(kind: str, interval: str | None, *, prefix: str = "") -> None:
    """Refuse a kind of prediction or interval that does not exist.

    ``prefix`` goes before the names of parameters: ``--`` on the command line.
    """
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(
            f"{prefix}kind must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}"
        )
    if interval not in (None, *INTERVALS):
        raise InputError(
            f"{prefix}interval must be {' or '.join(INTERVALS)}; got {quoted(interval)}"
        )
    if interval is not None and kind == "selection":
        raise InputError(f"{prefix}interval is about outcomes, but {prefix}kind is selection")


def predictions(
    model: Any, X: pd.DataFrame, kind: str, interval: str | None, encoding: Encoding | None = None
) -> tuple[pd.DataFrame, Gaps]:
    """Predict for each row of a table of features; empty where a feature is missing.

    Parameters
    ----------
    model : fitted model
    X : DataFrame
        The features of the fit, or for a model from formulas the columns that they name.
    kind : {"marginal", "selected", "unselected", "selection"}
    interval : {None, "prediction", "confidence"}
    encoding : Encoding, optional
        The encoding that made the features: its source columns are named as missing.

    Returns
    -------
    found : DataFrame
        Column ``predicted_<kind>``, and with an interval ``low`` and ``high``.
    gaps : Gaps
        The number of rows without a prediction, and the columns they miss.
    """
    name = f"predicted_{kind}"
    if not hasattr(model, "predict_selection"):
        if kind != "marginal" or interval is not None:
            raise InputError(
                f"{type(model).__name__} knows no selection and gives no intervals: its "
                "predictions are of kind 'marginal'"
            )
        found = pd.DataFrame({name: model.predict(X, missing="nan")})
    elif kind == "selection":
        found = pd.DataFrame({name: model.predict_selection(X, missing="nan")})
    elif interval is None:
        found = pd.DataFrame({name: model.predict(X, kind=kind, missing="nan")})
    else:
        values, ends = model.predict(X, kind=kind, return_interval=interval, missing="nan")
        found = pd.DataFrame({name: values, "low": ends[:, 0], "high": ends[:, 1]})
    gaps = Gaps(len(found))
    if found[name].isna().any():
        gaps = model.missing_features(X, kind)
        gaps = gaps.of_sources({} if encoding is None else source_columns(encoding))
    return found, gaps
