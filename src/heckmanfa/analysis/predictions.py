"""What a table of predictions holds, whether its rows are in memory or come in batches."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

__all__ = ["KINDS", "check_request", "predictions"]

KINDS = ("marginal", "selected", "unselected", "selection")
INTERVALS = ("prediction", "confidence")


def check_request(kind: str, interval: str | None) -> None:
    """Refuse predictions that there are not."""
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}")
    if interval not in (None, *INTERVALS):
        raise InputError(f"interval must be {' or '.join(INTERVALS)}; got {quoted(interval)}")
    if interval is not None and kind == "selection":
        raise InputError("an interval is about outcomes, but kind is selection")


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
        That made the features, whose columns are named where they are missing.

    Returns
    -------
    found : DataFrame
        A column ``predicted_`` and the kind; with an interval ``low`` and ``high``, too.
    gaps : Gaps
        How many rows have no prediction, and which columns they miss.
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
        groups = {} if encoding is None else encoding.groups
        gaps = gaps.of_sources({one: name for name, made in groups.items() for one in made})
    return found, gaps
