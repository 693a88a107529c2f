"""Predictions for the rows of a Dask collection: lazy, a partition at a time."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.feature_tables import FittedColumns, read_features
from heckmanfa.data.dask.dask_rows import one_column_chunk
from heckmanfa.errors import InputTypeError


def predict_lazily(
    model: Any,
    X: Any,
    columns: FittedColumns | None,
    kind: str,
    return_interval: str | None,
    conf_level: float,
    missing: str,
) -> Any:
    """Predict the outcome of each row, as `SelectionModel.predict` does.

    Parameters
    ----------
    model : SelectionModel
    X : Dask DataFrame or Dask Array of shape (n, K)
    kind, return_interval, conf_level, missing
        As in `predict`, and checked there. What is refused is refused when it is computed.

    Returns
    -------
    values : Dask Series or Dask Array of shape (n,)
    interval : Dask DataFrame with the columns lower and upper, or Dask Array of shape (n, 2)
        Only with ``return_interval``; made from the same partitions, so computing both at once
        reads X once.
    """
    if return_interval is None:
        return map_rows(model, X, "predict", "predicted", columns, kind=kind, missing=missing)
    names = ["predicted", "lower", "upper"]
    options = {"kind": kind, "return_interval": return_interval, "conf_level": conf_level}
    together = map_rows(model, X, "predict", names, columns, missing=missing, **options)
    if hasattr(together, "columns"):
        return together["predicted"], together[["lower", "upper"]]
    return together[:, 0], together[:, 1:]


def map_rows(
    model: Any,
    X: Any,
    method: str,
    name: str | list[str],
    columns: FittedColumns | None = None,
    **options: Any,
) -> Any:
    """Call a method of a model on every partition.

    Parameters
    ----------
    model : fitted estimator
        A later fit of it has no effect here.
    X : Dask DataFrame or Dask Array of shape (n, K)
    method : str
    columns : FittedColumns, optional
        To check X against now, and not when the predictions are computed; None for formulas.
    name : str or list of str
        Name of the returned Series, or of the columns of a DataFrame.
    **options
        Passed to the method.

    Returns
    -------
    Dask Series or DataFrame with X's index and divisions, or a Dask Array with its chunks of rows
    """
    import dask.array as da
    from dask import delayed
    from dask.utils import is_dataframe_like

    # The partitions share one copy; as an argument, it would travel with each.
    shared = delayed(copy(model), traverse=False)
    if isinstance(X, da.Array) and X.ndim == 2:
        X = one_column_chunk(X)
        if columns is not None:
            read_features(np.zeros((1, X.shape[1])), columns)
        size = len(name) if isinstance(name, list) else None
        shape = {"drop_axis": 1} if size is None else {"chunks": (X.chunks[0], (size,))}
        return da.map_blocks(
            _values,
            X,
            shared,
            method,
            size,
            options,
            dtype=np.float64,
            meta=np.empty((0,) if size is None else (0, size)),
            **shape,
        )
    if not is_dataframe_like(X):
        raise InputTypeError(
            f"X must be a Dask DataFrame or a Dask Array of two dimensions; got a Dask "
            f"{type(X).__name__}"
        )
    if columns is not None:
        # Names that differ are refused now, and not when the predictions are computed.
        first = pd.DataFrame(np.zeros((1, len(X.columns))), columns=list(X.columns))
        read_features(first, columns)
    meta = _labelled(X._meta, model, method, name, options)
    return X.map_partitions(_labelled, shared, method, name, options, meta=meta)


def _values(rows: Any, model: Any, method: str, size: int | None, options: Any) -> Floats:
    """Return the result of a method for the rows of a partition, which may be empty."""
    if len(rows) == 0:
        return np.empty((0,) if size is None else (0, size))
    found = getattr(model, method)(rows, **options)
    if size is None:
        return np.asarray(found)
    return np.column_stack(found)


def _labelled(rows: Any, model: Any, method: str, name: str | list[str], options: Any) -> Any:
    """Return the same with the index of the partition."""
    if isinstance(name, list):
        values = _values(rows, model, method, len(name), options)
        return pd.DataFrame(values, index=rows.index, columns=name)
    return pd.Series(_values(rows, model, method, None, options), index=rows.index, name=name)
