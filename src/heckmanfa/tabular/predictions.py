"""What a table of predictions holds, whether its rows are in memory or come in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.errors import InputError
from heckmanfa.features import nearest

__all__ = ["KINDS", "check_request", "predictions"]

KINDS = ("marginal", "selected", "unselected", "selection")
INTERVALS = ("prediction", "confidence")


def check_request(kind: str, interval: str | None) -> None:
    """Refuse predictions that there are not."""
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}{hint}")
    if interval not in (None, *INTERVALS):
        raise InputError(f"interval must be {' or '.join(INTERVALS)}; got {interval!r}")
    if interval is not None and kind == "selection":
        raise InputError("an interval is about outcomes, but kind is selection")


def predictions(model: Any, X: pd.DataFrame, kind: str, interval: str | None) -> pd.DataFrame:
    """Predict for each row of a table of features; empty where a feature is missing.

    Parameters
    ----------
    model : fitted model
    X : DataFrame
        The features of the fit, or for a model from formulas the columns that they name.
    kind : {"marginal", "selected", "unselected", "selection"}
    interval : {None, "prediction", "confidence"}

    Returns
    -------
    DataFrame
        A column ``predicted_`` and the kind; with an interval ``low`` and ``high``, too.
    """
    name = f"predicted_{kind}"
    found = pd.DataFrame({name: np.full(len(X), np.nan)})
    if interval is not None:
        found["low"] = found["high"] = np.nan
    # A model from formulas knows itself which columns a row may not miss.
    by_formula = model._design is not None
    complete = np.full(len(X), True) if by_formula else X.notna().all(axis=1).to_numpy()
    if not complete.any():
        return found
    rows = X if complete.all() else X[complete]
    if kind == "selection":
        found.loc[complete, name] = model.predict_selection(rows)
    elif interval is None:
        found.loc[complete, name] = model.predict(rows, kind=kind)
    else:
        values, ends = model.predict(rows, kind=kind, return_interval=interval)
        found.loc[complete, [name, "low", "high"]] = np.column_stack([values, ends])
    return found
