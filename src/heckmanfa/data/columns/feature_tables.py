"""X as the user passes it: its columns and their names, checked against those of the fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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


@dataclass(frozen=True)
class FittedColumns:
    """The columns of X that an estimator is fitted with, which later X are checked against."""

    estimator: str
    """class name, for messages"""
    n_features: int | None = None
    """None before the fit"""
    names: tuple[str, ...] | None = None
    """None if X has no names, or names that are not text"""
    labels_given: tuple[Any, ...] | None = None
    """names that are not text"""

    def as_estimator(self) -> BaseEstimator:
        """Return what scikit-learn's checks of names and widths ask for."""
        estimator = type(self.estimator, (BaseEstimator,), {})()
        if self.n_features is not None:
            estimator.n_features_in_ = self.n_features
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        return estimator


def read_features(X: Any, columns: FittedColumns | str) -> FeatureTable:
    """Read X, and check its names and width against those of the fit.

    During a fit, ``columns`` is the class name of the estimator.
    """
    if isinstance(columns, str):
        columns = FittedColumns(columns)
    try:
        return _read_features(X, columns)
    except HeckmanfaError:
        raise
    # The messages of scikit-learn and narwhals are clear; only the class has to be ours.
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(str(error)) from error


def _read_features(X: Any, columns: FittedColumns) -> FeatureTable:
    if isinstance(X, RowSource):
        names, others = X.names, X.labels_given
        _compare_names(columns, names or others or range(X.n_features))
        return FeatureTable(names, (-1, X.n_features), X, others, X.dummies)
    if is_dask(X):
        raise InputError("this needs X in memory, and X is a Dask collection: call X.compute()")
    if is_tensor(X) or isinstance(X, NamedTensor):
        return _read_tensor(X, columns)
    if isinstance(X, str | os.PathLike):
        raise InputError(
            f"X is the name of a file, {quoted(X)}: pass heckmanfa.scan_parquet(...) of a Parquet "
            "file, or read it into a data frame first"
        )
    # A sparse matrix of keys is a dictionary, too.
    if isinstance(X, dict) and not hasattr(X, "tocsr"):
        raise InputError("X is a dictionary: make a data frame of it, pandas.DataFrame(X)")
    X = as_table(X)
    refuse_same_labels(_labels_of(X))
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("X is a lazy frame; call .collect() on it first")
    if isinstance(frame, nw.DataFrame):
        # Like scikit-learn, count columns by position where their labels are not text.
        names, others = split_labels(frame.columns)
        _compare_names(columns, names or others or ())
        if frame.shape[0] == 0:
            raise TooFewRowsError("X has 0 rows; there is nothing to fit or predict")
        return FeatureTable(names, frame.shape, frame, others)
    X = _plain_matrix(X)
    array = check_array(
        X,
        dtype="numeric",
        ensure_all_finite=False,
        input_name="X",
        estimator=columns.as_estimator(),
    )
    _compare(columns, array, None)
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


def _compare_names(columns: FittedColumns, labels: Sequence[Any]) -> None:
    """Compare the names of columns with those of the fit."""
    # scikit-learn compares names that are text, and refuses a mix of text and other names; an
    # empty frame of its favourite kind has names as well.
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
        return FeatureTable(names, shape, values, others)
    _compare(columns, np.empty((1, shape[1])), None)
    return FeatureTable(None, shape, values)
