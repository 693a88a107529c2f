"""The columns of X and of files: their names, positions and numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from numbers import Number
from pathlib import Path
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
from heckmanfa.data.columns.column_numbers import as_table, floats, missing_in, numbers, plain_array
from heckmanfa.data.columns.values import as_number, label_of, shape_of
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Columns, Matrix, Positions, Source
from heckmanfa.errors import (
    HeckmanfaError,
    InputError,
    InputTypeError,
    TooFewRowsError,
    UnknownFeatureError,
)
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19
UNNAMED = "Unnamed: "
"""how pandas begins the name of a column that has none, before its position"""


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


def split_labels(labels: Sequence[Any]) -> tuple[tuple[str, ...] | None, tuple[Any, ...] | None]:
    """Split a frame's labels into names, which are text, and labels that go by position.

    The first is None unless all labels are text; the second is None if they are.
    """
    if all(isinstance(label, str) for label in labels):
        return tuple(str.__str__(label) for label in labels), None
    return None, tuple(str.__str__(label) if isinstance(label, str) else label for label in labels)


def refuse_same_labels(labels: Iterable[Any], what: str = "X") -> None:
    """Refuse columns that share a name."""
    index = pd.Index(list(labels), dtype=object)
    if not index.is_unique:
        name = index[index.duplicated()][0]
        raise InputError(f"{what} has two columns named {quoted(name)}; rename one of them")


def check_labels(fitted: tuple[Any, ...] | None, here: tuple[Any, ...] | None) -> None:
    """Refuse columns that go by position and have other labels than in the fit.

    Scikit-learn compares names that are text. The integers from 0 on, in order, are not names:
    pandas gives them to columns without names.
    """
    if fitted is None or here is None or len(fitted) != len(here):
        return
    mine, theirs = pd.Index(fitted, dtype=object), pd.Index(here, dtype=object)
    if mine.equals(theirs):
        return
    unnamed = _are_positions(fitted) or _are_positions(here)
    if unnamed and not mine.difference(theirs, sort=False).empty:
        return
    raise InputError(
        f"X's columns are named {_listed(here)}, and were {_listed(fitted)} in the fit: pass the "
        "columns of the fit in its order (names that are text are compared individually)"
    )


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask into sorted positions of X's columns.

    None means all columns, and the name of a text column of files all of its dummies. Messages call
    the parameter ``role``.
    """
    k = table.shape[1]
    if features is None:
        return list(range(k))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        kind = "text" if isinstance(features, str) else type(features).__name__
        raise InputTypeError(f"{role} must be a list of columns; got the {kind} {quoted(features)}")
    # PyArrow yields its own scalars.
    wanted = [feature.as_py() if hasattr(feature, "as_py") else feature for feature in features]
    if wanted and all(isinstance(feature, bool | np.bool_) for feature in wanted):
        if any(isinstance(label, bool | np.bool_) for label in table.labels_given or ()):
            raise InputError(
                f"{role} could be a mask or names, since X has columns named True or False; "
                f"{_RENAME}"
            )
        if len(wanted) != k:
            raise InputError(f"{role} is a mask of {len(wanted)} entries, but X has {k} columns")
        return [index for index, use in enumerate(wanted) if use]
    positions = [_position(table, feature, role) for feature in _with_dummies(table, wanted)]
    twice = sorted({index for index in positions if positions.count(index) > 1})
    if twice:
        raise InputError(f"{role} names {quoted(table.label(twice[0]))} twice")
    return sorted(positions)


def _with_dummies(table: FeatureTable, wanted: Sequence[Any]) -> Iterator[Any]:
    """Replace the name of a text column of files by its dummies."""
    for feature in wanted:
        is_name = isinstance(feature, str) and feature not in (table.names or ())
        if is_name and feature in table.dummies:
            yield from table.dummies[feature]
        else:
            yield feature


_RENAME = "rename the columns to text (X.columns = [str(name) for name in X.columns])"


def _position(table: FeatureTable, feature: Any, role: str) -> int:
    k, labels = table.shape[1], table.labels_given
    if isinstance(feature, str):
        if table.names is None:
            why = (
                "X has no column names"
                if labels is None or _are_positions(labels)
                else f"X's columns have names that are not text ({_listed(labels)})"
            )
            raise UnknownFeatureError(
                f"{role} names {quoted(feature)}, but {why}; give positions 0 to {k - 1}"
                if labels is None or not _hold_numbers(labels)
                else f"{role} names {quoted(feature)}, but {why}; {_RENAME}"
            )
        if feature not in table.names:
            raise UnknownFeatureError(
                f"{role}: X has no column {quoted(feature)}{nearest(feature, table.names)}"
            )
        return table.names.index(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        if labels is not None and _hold_numbers(labels) and not _are_positions(labels):
            raise InputError(
                f"{role}: {int(feature)} could be the name of a column or its position, since X's "
                f"columns are named {_listed(labels)}; {_RENAME}, or pass a boolean mask of {k} "
                "entries"
            )
        if not 0 <= feature < k:
            raise UnknownFeatureError(f"{role}: X has no column {feature}; it has 0 to {k - 1}")
        return int(feature)
    hint = ""
    if labels is not None and any(type(feature) is type(label) for label in labels):
        hint = f". Names of columns have to be text: {_RENAME}, or pass a boolean mask"
    raise InputError(f"{role} must hold names, positions or booleans; got {quoted(feature)}{hint}")


def _are_positions(labels: Sequence[Any]) -> bool:
    """Whether labels are the integers from 0 on, in order, so names and positions agree."""
    return tuple(labels) == tuple(range(len(labels)))


def _hold_numbers(labels: Sequence[Any]) -> bool:
    return any(isinstance(label, Number | np.bool_) for label in labels)


def _listed(labels: Sequence[Any]) -> str:
    some = [shown(label, 30) for label in labels[:5]]
    return ", ".join(some) + (f" … ({len(labels)} columns)" if len(labels) > 5 else "")


def refuse_absent(
    wanted: Iterable[str], names: Iterable[str], source: str = "the data", hint: str | None = None
) -> None:
    """Refuse columns that a table does not have, naming all of them.

    Messages call the table ``source``; a ``hint`` replaces the nearest names.
    """
    there = [str(name) for name in names]
    absent = list(dict.fromkeys(name for name in wanted if name not in there))
    if not absent:
        return
    if hint is None:
        hint = nearest(absent[0], there) if len(absent) == 1 else ""
    listed = ", ".join(quoted(name) for name in absent)
    raise UnknownFeatureError(f"{source} has no column{'s' * (len(absent) > 1)} {listed}{hint}")


def tidy_names(raw: Sequence[Any], path: Path) -> list[str]:
    """Return the distinct names of a file's columns, and refuse a row that is not a header.

    Runs of white space become one blank; a column without a name is named by its position.
    """
    blank = [name is None or (isinstance(name, float) and math.isnan(name)) for name in raw]
    names = ["" if no else label_of(name) for name, no in zip(raw, blank, strict=True)]
    given = [name for name in names if name]
    if given and all(as_number(name) is not None or shape_of(name) for name in given):
        called = ", ".join(quoted(name) for name in given[:3]) + (", …" if len(given) > 3 else "")
        raise InputError(
            f"{shown(path)} has no row of names: its columns would be called {called}; put a row "
            "with the names of the columns above the data"
        )
    if 2 * len(given) < len(names):
        raise InputError(
            f"{shown(path)}: the first row names {len(given)} of {len(names)} columns; remove "
            "titles above the row of names"
        )
    clashes = []
    for name in dict.fromkeys(given):
        numbers = [str(index) for index, other in enumerate(names, start=1) if other == name]
        if len(numbers) > 1:
            clashes.append(f"columns {' and '.join(numbers)} are called {quoted(name)}")
    if clashes:
        raise InputError(f"{shown(path)}: {'; '.join(clashes)}; give each column its own name")
    return [name or f"{UNNAMED}{position}" for position, name in enumerate(names)]


def check_wanted(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Refuse columns that a file does not have, naming all of them."""
    hint = None
    if len(names) == 1:
        hint = f"; its only column is {quoted(names[0])}: are columns separated by , ; | or tabs?"
    refuse_absent(columns, names, shown(path), hint)


def names_or_positions(names: Sequence[str] | None, columns: Positions) -> list[Any]:
    """Name columns the way the user knows them: by name, or by position if X has no names."""
    return [column if names is None else names[column] for column in columns]


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
            f"X is the name of a file, {quoted(X)}: pass heckmanfa.scan_parquet(...) of a Parquet "
            "file, or read it into a data frame first"
        )
    # A sparse matrix of keys is also a dictionary.
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
