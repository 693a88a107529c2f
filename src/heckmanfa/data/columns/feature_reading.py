"""X as a table of numbers: arrays, tensors, data frames and row sources, read and checked.

`to_device` makes tensors of a data frame.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from heckmanfa.data.arrays import (
    NamedTensor,
    check_tensor,
    explain_out_of_memory,
    is_dask,
    is_tensor,
)
from heckmanfa.data.columns.beside import without_columns
from heckmanfa.data.columns.column_names import check_labels, refuse_same_labels, split_labels
from heckmanfa.data.columns.column_numbers import (
    NOT_NUMBERS,
    as_table,
    floats,
    missing_in,
    numbers,
    plain_array,
)
from heckmanfa.data.columns.encoded_frame import (
    EncodedFrame,
    array_frame,
    categories_by_type,
    learn_categories,
    refuse_categories,
)
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.features import FeatureTable, FittedColumns, columns_named, resolve
from heckmanfa.data.row_sources import CategoryType, RowSource
from heckmanfa.errors import (
    HeckmanfaError,
    InputError,
    InputTypeError,
    TooFewRowsError,
    needs_extra,
)
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural


def read_features(
    X: Any,
    columns: FittedColumns | str,
    *,
    categorical: Any = None,
    lists: Sequence[Any] = (None,),
    unknown: Unknown = "error",
) -> FeatureTable:
    """Read X, and check its names and width against those of the fit.

    During a fit, ``columns`` is the class name of the estimator, ``categorical`` says which columns
    are categories, and ``lists`` are the features of each equation: columns that none of them names
    are not read, so it does not matter what they hold. Later, ``unknown`` says what to do with
    levels that the fit did not have.
    """
    try:
        if isinstance(columns, str):
            return _read_fit(X, columns, categorical, lists)
        X = without_columns(X, columns.beside)
        return _read_later(X, columns, unknown)
    except HeckmanfaError:
        raise
    # scikit-learn's checks expect its words, here those of float().
    except TypeError as error:
        raise InputTypeError(
            f"X holds objects that are not numbers ({error}): make columns of numbers of them, or "
            "leave them out"
        ) from error
    # The messages of scikit-learn and narwhals are clear; only the class has to be ours.
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(str(error)) from error


def _read_fit(X: Any, estimator: str, categorical: Any, lists: Sequence[Any]) -> FeatureTable:
    """Read X for a fit, and encode its categories."""
    fresh = FittedColumns(estimator)
    if isinstance(X, RowSource) and X.is_raw and categorical is not None:
        return _read_raw(X, fresh, categorical, lists)
    if categorical is None or isinstance(X, RowSource):
        # Other rows that are not in memory were encoded by their source.
        return _read_features(X, fresh)
    by_type = _is_by_type(categorical)
    table = _read_features(X, fresh, as_frame=not by_type)
    categories = _categories(table, table.native, categorical, lists)
    if categories and table.tensors:
        raise InputError(
            f"{option('categorical_features')} names columns of a tensor, which holds numbers "
            "alone: pass a data frame, or make dummies first (pandas.get_dummies(frame, "
            "drop_first=True, dtype=float)) and copy these with heckmanfa.to_device"
        )
    if not categories:
        return table if by_type else _read_features(X, fresh)
    if not by_type:
        used = columns_named(table.columns, lists)
        refuse_categories(table.native, [column for column in used if column not in categories])
    encoded = learn_categories(table.native, table.columns.labels_of_x, categories)
    return _encoded(replace(table.columns, encoding=encoded.encoding), encoded)


def _read_raw(
    source: RowSource, fresh: FittedColumns, categorical: Any, lists: Sequence[Any]
) -> FeatureTable:
    """Read the columns of a row source for a fit; their levels take a pass over the rows."""
    table = _read_features(source, fresh)
    types = nw.from_native(source.column_types, eager_only=True, pass_through=True)
    categories = _categories(table, types, categorical, lists)
    levels = source.learn_levels(categories) if categories else {}
    if not levels:
        return table
    names = table.columns.labels_of_x
    encoding = Encoding.plain(names, {names[position]: some for position, some in levels.items()})
    return _encoded_rows(source, replace(table.columns, encoding=encoding))


def _categories(
    table: FeatureTable, types: Any, categorical: Any, lists: Sequence[Any]
) -> dict[int, CategoryType]:
    """Return which columns of the equations are categories, and why.

    ``types`` is a frame whose types decide, unless the user names the columns; anything else has
    no types.
    """
    categories: dict[int, CategoryType] = {}
    if not _is_by_type(categorical):
        categories = dict.fromkeys(resolve(table, categorical, "categorical_features"), "named")
    elif isinstance(types, nw.DataFrame):
        categories = categories_by_type(types)
    if not categories:
        return categories
    used = columns_named(table.columns, lists)
    return {column: kind for column, kind in categories.items() if column in used}


def _is_by_type(categorical: Any) -> bool:
    """Whether types decide which columns are categories."""
    if isinstance(categorical, str) and categorical != "from_dtype":
        raise InputError(
            f"{option('categorical_features')} must be 'from_dtype', a list of columns, a mask or "
            f"None; got {quoted(categorical)}"
        )
    return isinstance(categorical, str)


def _read_later(X: Any, columns: FittedColumns, unknown: Unknown) -> FeatureTable:
    """Read X for a fitted model: its own columns, or those that its encoding makes of them."""
    encoding = columns.encoding
    if encoding is None:
        return _read_features(X, columns)
    if isinstance(X, RowSource) and X.encoding is not None:
        # Rows of a scan have the levels of all rows, and the fit those of its own.
        other = X.encoding.levels != encoding.levels
        X = X.re_encoded(encoding) if other and X.encoding.sources == encoding.sources else X
    if _is_encoded(X, columns):
        return replace(_read_features(X, columns.encoded()), columns=columns)
    if isinstance(X, RowSource):
        _read_features(X, columns)
        return _encoded_rows(X, columns, unknown)
    table = _read_features(X, columns, as_frame=True)
    return _encoded(columns, EncodedFrame(table.native, encoding, unknown))


def _encoded_rows(
    source: RowSource, columns: FittedColumns, unknown: Unknown = "error"
) -> FeatureTable:
    assert columns.encoding is not None
    return FeatureTable(columns, -1, source.re_encoded(columns.encoding, unknown))


def _is_encoded(X: Any, columns: FittedColumns) -> bool:
    """Whether X holds what the encoding makes of the columns, as numbers."""
    encoded = columns.encoded()
    if is_tensor(X) or (isinstance(X, RowSource) and not X.is_raw):
        return True
    labels: Sequence[Any]
    if isinstance(X, RowSource):
        labels, width = X.names or (), (X.n_features,)
    else:
        labels = X.names if isinstance(X, NamedTensor) else frame_labels(as_table(X))
        width = getattr(X, "shape", (0, 0))[1:]
    if len(labels):
        return tuple(labels) == encoded.names != columns.names
    return width == (encoded.n_features,) and encoded.n_features != columns.n_features


def _encoded(columns: FittedColumns, encoded: EncodedFrame) -> FeatureTable:
    return FeatureTable(columns, encoded.frame.shape[0], encoded)


def _read_features(X: Any, columns: FittedColumns, *, as_frame: bool = False) -> FeatureTable:
    """Read X as it is; ``as_frame`` keeps the types of an array's columns, text included."""
    if isinstance(X, RowSource):
        names, others = X.names, X.labels_given
        _compare_names(columns, names or others or range(X.n_features))
        if X.encoding is not None:
            return FeatureTable(FittedColumns.of(X.encoding, columns.estimator), -1, X)
        return _table(columns, (-1, X.n_features), X, names, others)
    if is_dask(X):
        raise InputError("this needs X in memory, and X is a Dask collection: call X.compute()")
    if is_tensor(X) or isinstance(X, NamedTensor):
        return _read_tensor(X, columns)
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"X is the name of a file, {quoted(X)}: read it into a data frame first. "
            f"{_without_loading(columns)} (Parquet and Arrow files)"
        )
    _refuse_dictionaries(X)
    X = as_table(X)
    lazy = _is_lazy(X)
    # Lazy frames warn if they are asked for their columns.
    refuse_same_labels(() if lazy else frame_labels(X))
    frame = nw.from_native(X, pass_through=True)
    if lazy or isinstance(frame, nw.LazyFrame):
        raise InputError(
            "X is a lazy frame or a query: collect it into a data frame first. "
            f"{_without_loading(columns)}"
        )
    if isinstance(frame, nw.DataFrame):
        # Like scikit-learn, count columns by position where their labels are not text.
        names, others = split_labels(frame.columns)
        _compare_names(columns, names or others or ())
        if frame.shape[0] == 0:
            raise TooFewRowsError("X has 0 rows; there is nothing to fit or predict")
        return _table(columns, frame.shape, frame, names, others)
    array = check_array(
        plain_array(X) if as_frame else _plain_matrix(X),
        dtype=None if as_frame else "numeric",
        ensure_all_finite=False,
        input_name="X",
        estimator=columns.as_estimator(),
    )
    _compare(columns, array, None)
    return _table(columns, array.shape, array_frame(array) if as_frame else array)


def _table(
    columns: FittedColumns,
    shape: tuple[int, int],
    native: Any,
    names: tuple[str, ...] | None = None,
    labels: tuple[Any, ...] | None = None,
) -> FeatureTable:
    """Return the table of columns that are X's own, of a model whose columns are checked."""
    return FeatureTable(FittedColumns(columns.estimator, shape[1], names, labels), shape[0], native)


def _without_loading(columns: FittedColumns) -> str:
    """Say what takes rows that are not in memory, before and after a fit."""
    if columns.n_features is None:
        return "To fit its rows without loading them, pass heckmanfa.scan(X, outcome=...)"
    return (
        "Without loading its rows, heckmanfa.predict_parquet(model, X, out) writes predictions to "
        "a file, heckmanfa.predict_batches(model, X) yields them, and "
        "model.score(heckmanfa.scan(X, outcome=...)) scores them"
    )


def _refuse_dictionaries(X: Any) -> None:
    """Refuse rows as JSON gives them: a dictionary of columns or of one row, or a list of rows."""
    # A sparse matrix of keys is also a dictionary.
    if isinstance(X, dict) and not hasattr(X, "tocsr"):
        one_row = not any(
            hasattr(value, "__len__") and not isinstance(value, str) for value in X.values()
        )
        made = "pandas.DataFrame([X])" if one_row else "pandas.DataFrame(X)"
        raise InputError(f"X is a dictionary: make a data frame of it, {made}")
    if isinstance(X, list | tuple) and any(isinstance(row, dict) for row in X):
        raise InputError(
            "X is a list of dictionaries: make a data frame of it, pandas.DataFrame(X)"
        )


def _plain_matrix(X: Any) -> Any:
    """Refuse text and dates that scikit-learn silently converts, and mark missing values as NaN."""
    if isinstance(X, list | tuple):
        # scikit-learn has its own error for lists of unequal lengths.
        with suppress(ValueError):
            X = np.asarray(X)
    X = plain_array(X)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or isinstance(X, np.matrix):
        return X
    if X.dtype == object:
        missing = missing_in(X)
        if missing.any():
            X = np.where(missing, np.nan, X)
        for column, values in enumerate(X.T):
            others = np.array([isinstance(entry, NOT_NUMBERS) for entry in values], dtype=bool)
            if others.any():
                floats(values[others][:1], f"column {column} of X")
    elif X.dtype.kind in "MmUS":
        floats(X, "X")
    return X


def _is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame, a relation or a dataset, whose rows are not in memory."""
    kind = type(X)
    if kind.__module__ == "pyarrow._dataset":
        return True
    known = kind.__module__.split(".")[0] in ("polars", "duckdb", "_duckdb")
    return known and isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)


def frame_labels(frame: Any) -> Sequence[Any]:
    """Return the labels of a frame, since narwhals' message about duplicates is many lines long."""
    if isinstance(frame, pd.DataFrame):
        return list(frame.columns)
    library = type(frame).__module__.split(".")[0]
    named = {"pyarrow": "column_names", "polars": "columns"}.get(library)
    return () if named is None or callable(frame) else list(getattr(frame, named, ()))


def _compare_names(columns: FittedColumns, labels: Sequence[Any]) -> None:
    """Compare the names of columns with those of the fit."""
    # scikit-learn compares names that are text, and refuses a mix of text and other names; an
    # empty pandas frame also has names.
    empty = pd.DataFrame(columns=pd.Index(list(labels), dtype=object))
    _compare(columns, empty, split_labels(labels)[1])


def _compare(columns: FittedColumns, X: Any, labels: tuple[Any, ...] | None) -> None:
    """Let scikit-learn compare names and width, and compare labels that are not text."""
    fresh = columns.n_features is None
    validate_data(columns.as_estimator(), X=X, skip_check_array=True, reset=fresh)
    if not fresh:
        check_labels(columns.labels_given, labels)


def _read_tensor(X: Any, columns: FittedColumns) -> FeatureTable:
    named = isinstance(X, NamedTensor)
    values = check_tensor(X.tensor if named else X)
    shape = (values.shape[0], values.shape[1])
    if named:
        refuse_same_labels(X.names)
        names, others = split_labels(X.names)
        _compare_names(columns, X.names)
        return _table(columns, shape, values, names, others)
    _compare(columns, np.empty((1, shape[1])), None)
    return _table(columns, shape, values)


# Tensors of a device. -----------------------------------------------------------------------------

_SHOWN = 5


def find_device(name: str) -> Any:
    """Return a device of Torch that supports float64; refuse any other."""
    with needs_extra("tensors need Torch", "torch"):
        import torch
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise InputError(
            f"there is no device {quoted(name)} here that supports float64: Torch finds "
            f"{plural(n_gpus, 'CUDA GPU')}. Use {option('device', 'cpu')}, or install Torch's "
            "build for CUDA."
        ) from error
    return device


def to_device(
    frame: Any, device: str = "cuda", dtype: Literal["float64", "float32"] = "float64"
) -> NamedTensor:
    """Copy the columns of a data frame to a device, with their names.

    Parameters
    ----------
    frame : data frame
        Of pandas, Polars or PyArrow; its columns are numbers. Make dummies of text and categories
        first: tensors have no levels.
    device : str
        As Torch names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    dtype : {"float64", "float32"}
        float32 takes half the memory; sums over rows are still float64.

    Returns
    -------
    NamedTensor
        X for `fit` and `predict`.
    """
    if dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32'; got {quoted(dtype)}")
    target = find_device(device)
    import torch

    table = nw.from_native(as_table(frame), eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise InputTypeError(
            f"to_device takes a data frame (pandas, Polars or PyArrow); got a "
            f"{type(frame).__name__}"
        )
    _refuse_levels(table)
    with explain_out_of_memory():
        values = torch.empty(table.shape, dtype=getattr(torch, dtype), device=target)
        for column in range(table.shape[1]):
            # A copy, since a frame's memory may be read-only.
            numeric = np.array(numbers(table[:, column]), dtype=dtype)
            values[:, column] = torch.from_numpy(numeric)
    return NamedTensor(tuple(table.columns), values)


def _refuse_levels(table: nw.DataFrame[Any]) -> None:
    """Refuse text and categories, which a fit to the frame itself would take."""
    categories = categories_by_type(table)
    if categories:
        names = [table.columns[position] for position in categories]
        holds = "columns {} hold" if len(names) > 1 else "column {} holds"
        raise InputError(
            f"{holds.format(quoted_list(names, _SHOWN))} text or categories, and a tensor holds "
            "numbers alone: make dummies first, with pandas.get_dummies(frame, drop_first=True, "
            "dtype=float) or with model.encoding_.transform(frame) of a fitted model; or fit the "
            "data frame itself, which needs no device"
        )
