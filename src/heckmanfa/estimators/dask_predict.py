"""Predictions for the rows of a Dask collection: lazy, a partition at a time."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.dask_rows import one_column_chunk
from heckmanfa.errors import InputTypeError


def predict_lazily(
    model: Any,
    X: Any,
    method: str,
    name: str,
    columns: FittedColumns | None,
    *,
    return_interval: str | None = None,
    return_std: bool = False,
    **options: Any,
) -> Any:
    """Call a method that predicts, lazily; it has checked the options.

    ``name`` is that of the values. These, intervals and standard errors come from the same
    partitions, so computing all at once reads X once.
    """
    if return_interval is None and not return_std:
        return map_rows(model, X, method, name, columns, **options)
    names, parts = [name], [slice(0, 1)]
    if return_interval is not None:
        options["return_interval"] = return_interval
        names += ["lower", "upper"]
        parts.append(slice(1, 3))
    if return_std:
        options["return_std"] = True
        parts.append(slice(len(names), len(names) + 1))
        names.append("std_error")
    together = map_rows(model, X, method, names, columns, **options)
    if hasattr(together, "columns"):
        picked = [names[part] for part in parts]
        return tuple(together[one[0] if len(one) == 1 else one] for one in picked)
    return tuple(
        together[:, part.start] if part.stop - part.start == 1 else together[:, part]
        for part in parts
    )


def map_rows(
    model: Any,
    X: Any,
    method: str,
    name: str | list[str],
    columns: FittedColumns | None = None,
    dtype: Any = np.float64,
    **options: Any,
) -> Any:
    """Call a method of a fitted model on every partition of a Dask DataFrame or Array.

    A later fit of the model has no effect on the result, whose columns ``name`` gives, and whose
    type is ``dtype``. X is checked against ``columns`` now, rather than when the result is
    computed; None skips this check.
    """
    # Dask is optional.
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
            dtype,
            options,
            dtype=dtype,
            meta=np.empty((0,) if size is None else (0, size), dtype),
            **shape,
        )
    if not is_dataframe_like(X):
        raise InputTypeError(
            f"X must be a Dask DataFrame or a Dask Array of two dimensions; got a Dask "
            f"{type(X).__name__}"
        )
    if columns is not None:
        first = pd.DataFrame(np.zeros((1, len(X.columns))), columns=list(X.columns))
        read_features(first, columns)
    meta = _labelled(X._meta, model, method, name, dtype, options)
    return X.map_partitions(_labelled, shared, method, name, dtype, options, meta=meta)


def _values(
    rows: Any, model: Any, method: str, size: int | None, dtype: Any, options: Any
) -> NDArray[Any]:
    """Return the result of a method for the rows of a partition, which may be empty."""
    if len(rows) == 0:
        return np.empty((0,) if size is None else (0, size), dtype)
    found = getattr(model, method)(rows, **options)
    return np.asarray(found) if size is None else np.column_stack(found)


def _labelled(
    rows: Any, model: Any, method: str, name: str | list[str], dtype: Any, options: Any
) -> Any:
    """Return `_values` with the index of the partition."""
    if isinstance(name, list):
        values = _values(rows, model, method, len(name), dtype, options)
        return pd.DataFrame(values, index=rows.index, columns=name)
    values = _values(rows, model, method, None, dtype, options)
    return pd.Series(values, index=rows.index, name=name)
