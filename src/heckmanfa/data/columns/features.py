"""The columns of X: how the user passed them, how features name them, and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator

from heckmanfa.data.arrays import Array, Floats, is_tensor, like, namespace
from heckmanfa.data.columns.column_names import (
    are_positions,
    hold_numbers,
    listed_labels,
    names_or_positions,
)
from heckmanfa.data.columns.column_numbers import numbers_at
from heckmanfa.data.columns.encoded_frame import EncodedFrame
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.rows import ColumnArrays, Mask, Matrix, Positions, Source
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

LevelRows = dict[str, tuple[int, ...]]
"""rows that have each level of a category, in the order of `Encoding.levels`"""

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19


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
    beside: tuple[str, ...] = ()
    """columns of a survey's design that X may have, which are not features"""

    @classmethod
    def of(cls, encoding: Encoding, estimator: str = "") -> FittedColumns:
        """Return the columns that an encoding is made from."""
        return cls(estimator, len(encoding.sources), encoding.sources, None, encoding)

    @property
    def n_encoded(self) -> int | None:
        """K, the number of columns of the model; None before the fit."""
        return self.n_features if self.encoding is None else len(self.encoding.columns)

    @property
    def encoded_labels(self) -> tuple[str, ...]:
        """A name for each of the K columns: x0, x1, … if X has no names."""
        names = self.encoded().names
        return names or tuple(f"x{column}" for column in range(self.n_encoded or 0))

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """Positions among the K columns of what each column of X becomes."""
        if self.encoding is None:
            return [(column,) for column in range(self.n_features or 0)]
        return list(self.encoding.positions.values())

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Dummies that belong together, of columns that have several."""
        return [group for group in self.positions if len(group) > 1] if self.encoding else []

    def references_of(self, columns: Positions) -> dict[str, str]:
        """Return the reference of each category all of whose dummies, two or more, are given."""
        if self.encoding is None:
            return {}
        wanted = {*columns}
        return {
            source: self.encoding.references[source]
            for source, group in self.encoding.positions.items()
            if len(group) > 1 and wanted.issuperset(group)
        }

    def rows_by_level(self, read: Positions, ones: Any, zeros: Any) -> LevelRows:
        """Count the rows of a fit by level, from how often columns ``read`` are 1 and 0.

        Categories of which only some dummies were read are left out.
        """
        if self.encoding is None:
            return {}
        places = {column: place for place, column in enumerate(read)}
        rows: LevelRows = {}
        for name, group in self.encoding.positions.items():
            levels = self.encoding.levels.get(name)
            if not levels or not places.keys() >= {*group}:
                continue
            counts = [int(ones[places[column]]) for column in group]
            if len(levels) > 1:
                # Rows whose missing level was filled with shares have none.
                others = [int(zeros[places[column]]) for column in group]
                counts.insert(0, min(np.add(counts, others).tolist()) - sum(counts))
            rows[name] = tuple(counts)
        return rows

    def as_fitted(self) -> FittedColumns:
        """Return the columns for the rows of the fit; see `Encoding.as_fitted`."""
        return self if self.encoding is None else replace(self, encoding=self.encoding.as_fitted())

    def encoded(self) -> FittedColumns:
        """Return the K columns of the model as columns of X that are numbers."""
        if self.encoding is None:
            return self
        names = tuple(self.encoding.columns)
        return FittedColumns(self.estimator, len(names), names, beside=self.beside)

    def names_of(self, columns: Positions) -> list[Any]:
        """Name some of the K columns as the user knows them: by X's names, or its positions.

        A column of X stands for all of its dummies; if only some are meant, they are named.
        """
        if self.encoding is None:
            return names_or_positions(self.names, columns)
        wanted, labels, names = {*columns}, self.encoding.columns, list[Any]()
        for column, group in enumerate(self.positions):
            inside = [labels[position] for position in group if position in wanted]
            names += (
                names_or_positions(self.names, [column]) if len(inside) == len(group) else inside
            )
        return names

    def each_name(self) -> list[Any]:
        """Name each of the K columns: a dummy by its own name, others as `names_of` does."""
        if self.encoding is None:
            return names_or_positions(self.names, range(self.n_features or 0))
        names: list[Any] = []
        for column, source in enumerate(self.encoding.sources):
            is_category = source in self.encoding.levels
            names += (
                self.encoding.columns_of(source)
                if is_category
                else names_or_positions(self.names, [column])
            )
        return names

    @property
    def labels_of_x(self) -> list[str]:
        """Name each column of X for a table: x0, x1, … if it has no names."""
        return list(self.names or (f"x{column}" for column in range(self.n_features or 0)))

    def labels_of(self, columns: Positions) -> list[str]:
        """Name some of the K columns as `names_of` does, for a table."""
        names = self.names_of(columns)
        return [f"x{name}" if isinstance(name, int) else str(name) for name in names]

    def highest(self, values: Array) -> Array:
        """Return the highest value, (..., p), that the columns made from each column of X have."""
        if self.encoding is None:
            return values
        groups = (values[..., list(group)] for group in self.positions)
        return np.stack([group.max(axis=-1) for group in groups], axis=-1)

    def of_x(self, mask: Mask) -> Mask:
        """Return which columns of X have any of the K columns that a mask (..., K) holds."""
        return np.asarray(self.highest(mask))

    def attributes(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return scikit-learn's attributes of the columns, and the names of the K columns."""
        known: dict[str, Any] = {
            "n_features_in_": self.n_features,
            "encoded_names_": np.array(labels, dtype=object),
            "encoding_": self.encoding,
        }
        if self.names is not None:
            known["feature_names_in_"] = np.array(self.names, dtype=object)
        return known

    def as_estimator(self) -> BaseEstimator:
        """Return what scikit-learn's checks of names and widths ask for."""
        estimator = _class_named(self.estimator)()
        if self.n_features is not None:
            estimator.n_features_in_ = self.n_features
        # A table without columns has no names to compare.
        if self.names:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        return estimator


@dataclass(frozen=True)
class FeatureTable:
    """X as the user passed it: its columns, what they become, and their numbers on demand."""

    columns: FittedColumns
    """those of X; the K columns of the table are what their encoding makes of them"""
    n_rows: int
    """-1 if the rows are not in memory"""
    native: Any
    """a 2-D array, a narwhals frame, `EncodedFrame`, or a `RowSource`"""

    @classmethod
    def without_rows(cls, columns: FittedColumns) -> FeatureTable:
        """Return a table to resolve names with, for the columns of a fit."""
        return cls(columns, 0, None)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """Names of the K columns; None if X has none that are text."""
        return self.columns.encoded().names

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        return self.n_rows, self.columns.n_encoded or 0

    def label(self, column: int) -> str:
        """Name a column for a message or a table."""
        return f"x{column}" if self.names is None else self.names[column]

    def labels(self, columns: Positions) -> list[str]:
        """Name several columns."""
        return [self.label(column) for column in columns]

    def sources(self, columns: Positions) -> list[str]:
        """Name the columns of X that several columns are made from, one name for each of them."""
        encoding = self.columns.encoding
        if encoding is None:
            return self.labels(columns)
        made_from = encoding.made_from
        return [made_from[column] for column in columns]

    @property
    def categories(self) -> frozenset[str]:
        """Names of the columns of X that are categories."""
        encoding = self.columns.encoding
        return frozenset() if encoding is None else frozenset(encoding.levels)

    @property
    def dummies(self) -> frozenset[int]:
        """Positions of the dummies of categories."""
        encoding = self.columns.encoding
        return frozenset() if encoding is None else frozenset(encoding.dummy_positions)

    @property
    def tensors(self) -> bool:
        """Whether X is a tensor."""
        return is_tensor(self.native)

    def source(self, columns: Positions) -> Source:
        """Return the rows of X, of which only these columns will be read."""
        if self.tensors or isinstance(self.native, np.ndarray):
            return Matrix(self.native)
        if isinstance(self.native, EncodedFrame):
            return ColumnArrays(self.native.arrays(columns), self.shape)
        return number_columns(self.native, columns)


def number_columns(frame: nw.DataFrame[Any], columns: Positions) -> ColumnArrays:
    """Return the rows of a frame, of which only these columns, all numbers, will be read."""
    arrays = {int(index): numbers_at(frame, int(index)) for index in columns}
    return ColumnArrays(arrays, frame.shape)


def feature_blocks(table: FeatureTable, columns: Positions) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows of some columns of X, each with its slice."""
    if len(columns) == 0:
        return
    source = table.source(columns)
    size = _PREDICT_ROWS_OF_TENSORS if table.tensors else _PREDICT_ROWS
    for start in range(0, table.n_rows, size):
        stop = min(start + size, table.n_rows)
        yield slice(start, stop), source.take(start, stop, columns)


def same(table: FeatureTable, value: float) -> Array:
    """Return the same number for every row, on X's device."""
    if not table.tensors:
        return np.full(table.n_rows, value)
    xp = namespace(table.native)
    return xp.full((table.n_rows,), value, dtype=xp.float64, device=table.native.device)


def linear(table: FeatureTable, columns: Positions, coef: Floats) -> Array:
    """Return the sum of columns times coefficients, on X's device."""
    values = same(table, 0.0)
    for where, block in feature_blocks(table, columns):
        values[where] = block @ like(coef[list(columns)], block)
    return values


_RENAME = "rename the columns to text (X.columns = [str(name) for name in X.columns])"


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask of X's columns into sorted positions of the table's.

    None means all columns. A column of X stands for all of its dummies, and a single dummy can be
    named too. Messages call the parameter ``role``.
    """
    if features is None:
        return list(range(table.shape[1]))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        kind = "text" if isinstance(features, str) else type(features).__name__
        raise InputTypeError(f"{role} must be a list of columns; got the {kind} {quoted(features)}")
    wanted = _as_list(features)
    columns = table.columns
    groups = columns.positions
    if _is_mask(wanted):
        if any(isinstance(label, bool | np.bool_) for label in columns.labels_given or ()):
            raise InputError(
                f"{role} could be a mask or names, since X has columns named True or False; "
                f"{_RENAME}"
            )
        if len(wanted) != len(groups):
            raise InputError(
                f"{role} is a mask of {len(wanted)} entries, but X has {len(groups)} columns"
            )
        return [index for group, use in zip(groups, wanted, strict=True) if use for index in group]
    dummies = {} if columns.encoding is None else _dummies(columns)
    of_x = {name: place for place, name in enumerate(columns.names or ())}
    positions: list[int] = []
    for feature in wanted:
        if isinstance(feature, str) and feature in of_x:
            positions += groups[of_x[feature]]
        elif isinstance(feature, str) and feature in dummies:
            positions.append(dummies[feature])
        else:
            positions += groups[_position(columns, feature, role)]
    twice = sorted(index for index, count in Counter(positions).items() if count > 1)
    if twice:
        raise InputError(f"{role} names {quoted(table.label(twice[0]))} twice")
    return sorted(positions)


def columns_named(columns: FittedColumns, lists: Iterable[Any]) -> set[int]:
    """Return which columns of X lists of features refer to, before the dummies are known.

    What no column has is left to `resolve`, which refuses it.
    """
    n, names = columns.n_features or 0, columns.names or ()
    labels = names or [f"x{index}" for index in range(n)]
    places = {name: index for index, name in enumerate(labels)}
    positions: set[int] = set()
    for features in lists:
        if features is None or isinstance(features, str) or not isinstance(features, Iterable):
            return {*range(n)}
        wanted = _as_list(features)
        if _is_mask(wanted):
            positions |= {index for index, use in enumerate(wanted[:n]) if use}
            continue
        for feature in wanted:
            if isinstance(feature, int | np.integer) and 0 <= feature < n:
                positions.add(int(feature))
            elif isinstance(feature, str):
                # A dummy is called after its column: "column[level]".
                ends = [place for place, letter in enumerate(feature) if letter == "["]
                called = (feature, *(feature[:end] for end in ends))
                positions |= {places[name] for name in called if name in places}
    return positions


def _as_list(features: Iterable[Any]) -> list[Any]:
    # PyArrow yields its own scalars.
    return [feature.as_py() if hasattr(feature, "as_py") else feature for feature in features]


def _is_mask(wanted: list[Any]) -> bool:
    return bool(wanted) and all(isinstance(feature, bool | np.bool_) for feature in wanted)


def _dummies(columns: FittedColumns) -> dict[str, int]:
    """Return the position of each dummy."""
    assert columns.encoding is not None
    sources = {*columns.encoding.sources}
    return {
        name: position
        for position, name in enumerate(columns.encoding.columns)
        if name not in sources
    }


def _position(columns: FittedColumns, feature: Any, role: str) -> int:
    """Return the position of one of X's columns."""
    k, labels, names = columns.n_features or 0, columns.labels_given, columns.names
    if isinstance(feature, str):
        if names is None:
            why = (
                "X has no column names"
                if labels is None or are_positions(labels)
                else f"X's columns have names that are not text ({listed_labels(labels)})"
            )
            raise UnknownFeatureError(
                f"{role} names {quoted(feature)}, but {why}; give positions 0 to {k - 1}"
                if labels is None or not hold_numbers(labels)
                else f"{role} names {quoted(feature)}, but {why}; {_RENAME}"
            )
        if feature not in names:
            raise UnknownFeatureError(
                f"{role}: X has no column {quoted(feature)}{nearest(feature, _known(columns))}"
            )
        return names.index(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        if labels is not None and hold_numbers(labels) and not are_positions(labels):
            raise InputError(
                f"{role}: {int(feature)} could be the name of a column or its position, since X's "
                f"columns are named {listed_labels(labels)}; {_RENAME}, or pass a boolean mask of "
                f"{k} entries"
            )
        if not 0 <= feature < k:
            raise UnknownFeatureError(f"{role}: X has no column {feature}; it has 0 to {k - 1}")
        return int(feature)
    hint = ""
    if labels is not None and any(type(feature) is type(label) for label in labels):
        hint = f". Names of columns have to be text: {_RENAME}, or pass a boolean mask"
    raise InputError(f"{role} must hold names, positions or booleans; got {quoted(feature)}{hint}")


def _known(columns: FittedColumns) -> list[str]:
    """Return the names of X's columns and of their dummies."""
    encoded = () if columns.encoding is None else columns.encoding.columns
    return list(dict.fromkeys([*(columns.names or ()), *encoded]))
