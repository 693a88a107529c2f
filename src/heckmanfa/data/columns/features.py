"""The columns of X and of files: their names, positions and numbers."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Array, Floats, is_tensor, like, namespace
from heckmanfa.data.columns.column_numbers import numbers
from heckmanfa.data.columns.values import as_number, label_of, shape_of
from heckmanfa.data.rows import Columns, Matrix, Positions, Source
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.printable import quoted, shown

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19
UNNAMED = "Unnamed: "
"""how pandas begins the name of a column that has none, before its position"""
# How alike two names without their endings must be.
_CLOSE_FILES = 0.7


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
    """Refuse columns of the same name."""
    index = pd.Index(list(labels), dtype=object)
    if not index.is_unique:
        name = index[index.duplicated()][0]
        raise InputError(f"{what} has two columns of the name {quoted(name)}; rename one of them")


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


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names to one that does not exist."""
    return _suggested(difflib.get_close_matches(name, list(names), n=3, cutoff=0.6))


def nearest_file(name: str, names: Iterable[str]) -> str:
    """Suggest the files with the closest names and the same ending as one that does not exist."""
    stem, ending = Path(name).stem, Path(name).suffix.lower()
    files = {Path(file).stem: file for file in names if Path(file).suffix.lower() == ending}
    close = difflib.get_close_matches(stem, list(files), n=3, cutoff=_CLOSE_FILES)
    # One wrong letter is a large share of a short name.
    typos = [
        other
        for other in files
        if len(other) == len(stem) and sum(map(operator.ne, other, stem)) == 1
    ]
    return _suggested([files[other] for other in close or typos[:3]])


def _suggested(close: Sequence[str]) -> str:
    return f". Did you mean {' or '.join(quoted(name) for name in close)}?" if close else ""


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
