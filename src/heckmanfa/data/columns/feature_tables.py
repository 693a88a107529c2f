"""X as the user passes it, with its columns and names checked against those of the fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from heckmanfa.data.arrays import is_dask, is_tensor
from heckmanfa.data.columns.column_numbers import as_table, floats, missing_in, plain_array
from heckmanfa.data.columns.features import (
    FeatureTable,
    check_labels,
    refuse_same_labels,
    split_labels,
)
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.tensors import NamedTensor, check_tensor
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError, TooFewRowsError
from heckmanfa.text.printable import quoted

__all__ = ["read_features"]


def read_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> FeatureTable:
    """Read X, and check its names and width against those of the fit.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``feature_names_in_`` and ``n_features_in_`` if ``reset``; otherwise X must match them.
    X : array or data frame
        NumPy, or any frame that narwhals reads (pandas, Polars, PyArrow).
    """
    try:
        return _read_features(estimator, X, reset=reset)
    except HeckmanfaError:
        raise
    # The messages of scikit-learn and narwhals are clear; only the class must be ours.
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(str(error)) from error


def _read_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> FeatureTable:
    if isinstance(X, RowSource):
        names, others = X.names, X.labels_given
        _compare_names(estimator, names or others or range(X.n_features), reset=reset)
        return FeatureTable(names, (-1, X.n_features), X, others, X.dummies)
    if is_dask(X):
        raise InputError("this needs X in memory, and X is a Dask collection: call X.compute()")
    if is_tensor(X) or isinstance(X, NamedTensor):
        return _read_tensor(estimator, X, reset=reset)
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"X is the name of a file, {quoted(X)}: pass heckmanfa.scan_parquet(...) of a Parquet "
            "file, or read it into a data frame first"
        )
    # A sparse matrix in DOK format is a dictionary as well.
    if isinstance(X, dict) and not hasattr(X, "tocsr"):
        raise InputError("X is a dictionary: make a data frame of it, pandas.DataFrame(X)")
    X = as_table(X)
    refuse_same_labels(_labels_of(X))
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("X is a lazy frame; call .collect() on it first")
    if isinstance(frame, nw.DataFrame):
        # Like scikit-learn, go by position if labels are not text.
        names, others = split_labels(frame.columns)
        _compare_names(estimator, names or others or (), reset=reset)
        if frame.shape[0] == 0:
            raise TooFewRowsError("X has 0 rows; there is nothing to fit or predict")
        return FeatureTable(names, frame.shape, frame, others)
    X = _plain_matrix(X)
    array = check_array(
        X, dtype="numeric", ensure_all_finite=False, input_name="X", estimator=estimator
    )
    validate_data(estimator, X=array, skip_check_array=True, reset=reset)
    _keep_labels(estimator, None, reset=reset)
    return FeatureTable(None, array.shape, array)


def _plain_matrix(X: Any) -> Any:
    """Refuse text and dates that scikit-learn silently converts, and mark missing values as NaN."""
    if isinstance(X, list | tuple):
        # scikit-learn refuses lists of unequal lengths in its own words.
        with suppress(ValueError):
            X = np.asarray(X)
    X = plain_array(X)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or isinstance(X, np.matrix):
        return X
    if X.dtype == object:
        missing = missing_in(X)
        if missing.any():
            X = np.where(missing, np.nan, X)
        text = [entry for entry in X.flat if isinstance(entry, str | bytes)]
        if text:
            floats(np.array(text[:1], dtype=object), "X")
    elif X.dtype.kind in "MmUS":
        floats(X, "X")
    return X


def _labels_of(frame: Any) -> Sequence[Any]:
    """Return the labels of a frame, since narwhals' message about duplicates is many lines long."""
    if isinstance(frame, pd.DataFrame):
        return list(frame.columns)
    named = type(frame).__module__.startswith("pyarrow")
    return list(getattr(frame, "column_names", ())) if named else ()


def _compare_names(estimator: BaseEstimator, labels: Sequence[Any], *, reset: bool) -> None:
    """Store the names of the columns, or compare them with those of the fit."""
    # scikit-learn does both for a pandas frame, even an empty one.
    empty = pd.DataFrame(columns=pd.Index(list(labels), dtype=object))
    validate_data(estimator, X=empty, skip_check_array=True, reset=reset)
    _keep_labels(estimator, split_labels(labels)[1], reset=reset)


def _keep_labels(estimator: BaseEstimator, labels: tuple[Any, ...] | None, *, reset: bool) -> None:
    """Store labels that are not text, or compare them with those of the fit."""
    if reset:
        estimator._column_labels = labels
    else:
        check_labels(getattr(estimator, "_column_labels", None), labels)


def _read_tensor(estimator: BaseEstimator, X: Any, *, reset: bool) -> FeatureTable:
    named = isinstance(X, NamedTensor)
    values = check_tensor(X.tensor if named else X)
    shape = (values.shape[0], values.shape[1])
    if named:
        refuse_same_labels(X.names)
        names, others = split_labels(X.names)
        _compare_names(estimator, X.names, reset=reset)
        return FeatureTable(names, shape, values, others)
    validate_data(estimator, X=np.empty((1, shape[1])), skip_check_array=True, reset=reset)
    _keep_labels(estimator, None, reset=reset)
    return FeatureTable(None, shape, values)
