"""The columns of X and of files: their names, positions and numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from heckmanfa.data.arrays import (
    Array,
    Floats,
    NamedTensor,
    check_tensor,
    is_dask,
    is_tensor,
    like,
    namespace,
)
from heckmanfa.data.columns.column_names import check_labels, refuse_same_labels, split_labels
from heckmanfa.data.columns.column_numbers import as_table, floats, missing_in, numbers, plain_array
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Columns, Matrix, Positions, Source
from heckmanfa.errors import (
    HeckmanfaError,
    InputError,
    InputTypeError,
    TooFewRowsError,
)
from heckmanfa.text.printable import quoted

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19


@dataclass(frozen=True)
class FeatureTable:
    """X as the user passed it: its shape, its names if it has any, and its columns on demand."""

    names: tuple[str, ...] | None
    shape: tuple[int, int]
    native: Any
    """a 2-D array, or a narwhals frame"""
    labels_given: tuple[Any, ...] | None = None
    """labels of a frame's columns if they are not all text; such columns go by position"""
    dummies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """dummies of each text column of files"""

    def label(self, column: int) -> str:
        """Name a column for a message or a table."""
        return f"x{column}" if self.names is None else self.names[column]

    def labels(self, columns: Positions) -> list[str]:
        """Name several columns."""
        return [self.label(column) for column in columns]

    @property
    def tensors(self) -> bool:
        """Whether X is a tensor."""
        return is_tensor(self.native)

    def source(self, columns: Positions) -> Source:
        """Return the rows of X, of which only these columns will be read."""
        if self.tensors or isinstance(self.native, np.ndarray):
            return Matrix(self.native)
        arrays = {int(index): numbers(self.native[:, int(index)]) for index in columns}
        return Columns(arrays, self.shape)


def feature_blocks(table: FeatureTable, columns: Positions) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows of some columns of X, each with its slice."""
    if len(columns) == 0:
        return
    source = table.source(columns)
    size = _PREDICT_ROWS_OF_TENSORS if table.tensors else _PREDICT_ROWS
    for start in range(0, table.shape[0], size):
        stop = min(start + size, table.shape[0])
        yield slice(start, stop), source.take(start, stop, columns)


def same(table: FeatureTable, value: float) -> Array:
    """Return the same number for every row, on X's device."""
    if not table.tensors:
        return np.full(table.shape[0], value)
    xp = namespace(table.native)
    return xp.full((table.shape[0],), value, dtype=xp.float64, device=table.native.device)


def linear(table: FeatureTable, columns: Positions, coef: Floats) -> Array:
    """Return the sum of columns times coefficients, on X's device."""
    values = same(table, 0.0)
    for where, block in feature_blocks(table, columns):
        values[where] = block @ like(coef[list(columns)], block)
    return values


@cache
def _class_named(name: str) -> type[BaseEstimator]:
    """Return an estimator class; scikit-learn takes a millisecond to make one."""
    return type(name, (BaseEstimator,), {})


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
    encoding: Encoding | None = None
    """how these columns become the K columns of the model; None if all of them are numbers"""

    def as_estimator(self) -> BaseEstimator:
        """Return what scikit-learn's checks of names and widths ask for."""
        estimator = _class_named(self.estimator)()
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
            f"X is the name of a file, {quoted(X)}: pass heckmanfa.scan(...) of a Parquet or "
            "Arrow file, or read it into a data frame first"
        )
    # A sparse matrix of keys is also a dictionary.
    if isinstance(X, dict) and not hasattr(X, "tocsr"):
        raise InputError("X is a dictionary: make a data frame of it, pandas.DataFrame(X)")
    X = as_table(X)
    refuse_same_labels(_labels_of(X))
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError(
            "X is a lazy frame or a query: pass heckmanfa.scan(X, outcome=...) to fit its rows "
            "without loading them, or collect it into a data frame first"
        )
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
        return FeatureTable(names, shape, values, others)
    _compare(columns, np.empty((1, shape[1])), None)
    return FeatureTable(None, shape, values)
