"""The columns of X: what they are called, where they are, and their numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Array, Floats, is_tensor, like, namespace
from heckmanfa.data.columns.column_numbers import floats, numbers
from heckmanfa.data.rows import Columns, Matrix, Positions, Source
from heckmanfa.errors import (
    InputError,
    InputTypeError,
    UnknownFeatureError,
)
from heckmanfa.text.printable import quoted, shown

__all__ = [
    "FeatureTable",
    "check_labels",
    "feature_blocks",
    "floats",
    "linear",
    "names_or_positions",
    "nearest",
    "nearest_file",
    "numbers",
    "refuse_same_labels",
    "resolve",
    "same",
    "tell_names",
]

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19
# Of two names without their ending, how alike they are.
_CLOSE_FILES = 0.7


@dataclass(frozen=True)
class FeatureTable:
    """X as it came: its shape, its names where it has any, and its columns on demand."""

    names: tuple[str, ...] | None
    shape: tuple[int, int]
    native: Any
    """a 2-D array, or a narwhals frame"""
    labels_given: tuple[Any, ...] | None = None
    """what the columns of a frame are called where that is not text: they count by position"""
    dummies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """the names that stand for a column of files which became several"""

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
        """Return the rows of X; only these columns will be asked for."""
        if self.tensors or isinstance(self.native, np.ndarray):
            return Matrix(self.native)
        arrays = {int(one): numbers(self.native[:, int(one)]) for one in columns}
        return Columns(arrays, self.shape)


def tell_names(labels: Sequence[Any]) -> tuple[tuple[str, ...] | None, tuple[Any, ...] | None]:
    """Tell columns that have names, which are text, from those that count by position.

    Parameters
    ----------
    labels : sequence
        What a frame calls its columns.

    Returns
    -------
    names : tuple of str, or None
        Where all are text: subclasses of it (NumPy's, an Enum's) as plain text.
    others : tuple, or None
        The labels as they are where none, or not all, are.
    """
    if all(isinstance(one, str) for one in labels):
        return tuple(str.__str__(one) for one in labels), None
    return None, tuple(str.__str__(one) if isinstance(one, str) else one for one in labels)


def refuse_same_labels(labels: Iterable[Any], what: str = "X") -> None:
    """Refuse columns of the same name."""
    index = pd.Index(list(labels), dtype=object)
    if not index.is_unique:
        name = index[index.duplicated()][0]
        raise InputError(f"{what} has two columns of the name {quoted(name)}; rename one of them")


def check_labels(fitted: tuple[Any, ...] | None, here: tuple[Any, ...] | None) -> None:
    """Refuse columns that count by position and are called otherwise than in the fit.

    Scikit-learn compares names that are text. The numbers from 0 on, in order, are no names: pandas
    gives them to whatever has none.
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
        "columns of the fit in its order (names that are text are checked one by one)"
    )


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask into sorted positions of X's columns.

    Parameters
    ----------
    table : FeatureTable
    features : None, or sequence of str, int or bool
        None is all columns. The name of a text column of files is all of its dummies.
    role : str
        The parameter's name, for messages.

    Returns
    -------
    list of int
    """
    k = table.shape[1]
    if features is None:
        return list(range(k))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        kind = "text" if isinstance(features, str) else type(features).__name__
        raise InputTypeError(f"{role} must be a list of columns; got the {kind} {quoted(features)}")
    # PyArrow hands out its own scalars.
    wanted = [one.as_py() if hasattr(one, "as_py") else one for one in features]
    if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
        if any(isinstance(one, bool | np.bool_) for one in table.labels_given or ()):
            raise InputError(
                f"{role} could be a mask or names, since X has columns named True or False; "
                f"{_RENAME}"
            )
        if len(wanted) != k:
            raise InputError(f"{role} is a mask of {len(wanted)} entries, but X has {k} columns")
        return [place for place, use in enumerate(wanted) if use]
    places = [_place(table, one, role) for one in _spread(table, wanted)]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise InputError(f"{role} names {quoted(table.label(twice[0]))} twice")
    return sorted(places)


def _spread(table: FeatureTable, wanted: Sequence[Any]) -> Iterator[Any]:
    """Take the name of a column of files for all of its dummies."""
    for one in wanted:
        if isinstance(one, str) and one not in (table.names or ()) and one in table.dummies:
            yield from table.dummies[one]
        else:
            yield one


_RENAME = "rename the columns to text (X.columns = [str(one) for one in X.columns])"


def _place(table: FeatureTable, one: Any, role: str) -> int:
    k, labels = table.shape[1], table.labels_given
    if isinstance(one, str):
        if table.names is None:
            why = (
                "X has no column names"
                if labels is None or _are_positions(labels)
                else f"X's columns have names that are not text ({_listed(labels)})"
            )
            raise UnknownFeatureError(
                f"{role} names {quoted(one)}, but {why}; give positions 0 to {k - 1}"
                if labels is None or not _hold_numbers(labels)
                else f"{role} names {quoted(one)}, but {why}; {_RENAME}"
            )
        if one not in table.names:
            raise UnknownFeatureError(
                f"{role}: X has no column {quoted(one)}{nearest(one, table.names)}"
            )
        return table.names.index(one)
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        if labels is not None and _hold_numbers(labels) and not _are_positions(labels):
            raise InputError(
                f"{role}: {int(one)} could be the name of a column or its position, since X's "
                f"columns are named {_listed(labels)}; {_RENAME}, or pass a boolean mask of {k} "
                "entries"
            )
        if not 0 <= one < k:
            raise UnknownFeatureError(f"{role}: X has no column {one}; it has 0 to {k - 1}")
        return int(one)
    hint = ""
    if labels is not None and any(type(one) is type(label) for label in labels):
        hint = f". Names of columns have to be text: {_RENAME}, or pass a boolean mask"
    raise InputError(f"{role} must hold names, positions or booleans; got {quoted(one)}{hint}")


def _are_positions(labels: Sequence[Any]) -> bool:
    """Whether labels are the numbers from 0 on, in order, so that names and positions agree."""
    return tuple(labels) == tuple(range(len(labels)))


def _hold_numbers(labels: Sequence[Any]) -> bool:
    return any(isinstance(one, Number | np.bool_) for one in labels)


def _listed(labels: Sequence[Any]) -> str:
    said = [shown(one, 30) for one in labels[:5]]
    return ", ".join(said) + (f" … ({len(labels)} columns)" if len(labels) > 5 else "")


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names to one that is not there."""
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return _suggested(close)


def nearest_file(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names of files to one that is not there; only those that end alike."""
    stem, ending = Path(name).stem, Path(name).suffix.lower()
    there = {Path(one).stem: one for one in names if Path(one).suffix.lower() == ending}
    close = difflib.get_close_matches(stem, list(there), n=3, cutoff=_CLOSE_FILES)
    # Of a short name, one wrong letter is much of it.
    slips = [one for one in there if len(one) == len(stem) and _n_other(one, stem) == 1]
    return _suggested([there[one] for one in close or slips[:3]])


def _n_other(one: str, other: str) -> int:
    return sum(mine != theirs for mine, theirs in zip(one, other, strict=True))


def _suggested(close: Sequence[str]) -> str:
    return f". Did you mean {' or '.join(quoted(one) for one in close)}?" if close else ""


def names_or_positions(names: Sequence[str] | None, columns: Positions) -> list[Any]:
    """Name columns the way the user knows them: by name, or by position where X has none."""
    return [column if names is None else names[column] for column in columns]


def feature_blocks(table: FeatureTable, columns: Positions) -> Iterator[tuple[slice, Array]]:
    """Yield some columns of X, a run of rows at a time, with where it is."""
    if len(columns) == 0:
        return
    source = table.source(columns)
    size = _PREDICT_ROWS_OF_TENSORS if table.tensors else _PREDICT_ROWS
    for start in range(0, table.shape[0], size):
        stop = min(start + size, table.shape[0])
        yield slice(start, stop), source.take(start, stop, columns)


def same(table: FeatureTable, value: float) -> Array:
    """Return one number for every row, where X is."""
    if not table.tensors:
        return np.full(table.shape[0], value)
    xp = namespace(table.native)
    return xp.full((table.shape[0],), value, dtype=xp.float64, device=table.native.device)


def linear(table: FeatureTable, columns: Positions, coef: Floats) -> Array:
    """Sum of columns times coefficients, where X is."""
    values = same(table, 0.0)
    for where, block in feature_blocks(table, columns):
        values[where] = block @ like(coef[list(columns)], block)
    return values
