"""The columns of X: what they are called, where they are, and their numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from heckmanfa.errors import InputError, MissingValueError, UnknownFeatureError
from heckmanfa.namespaces import Array, host, is_tensor, like, namespace
from heckmanfa.normal import Floats
from heckmanfa.rows import Columns, Matrix, Positions, Source

__all__ = [
    "FeatureTable",
    "floats",
    "linear",
    "names_or_positions",
    "nearest",
    "numbers",
    "refuse_missing",
    "resolve",
    "same",
]

_PREDICT_ROWS, _PREDICT_ROWS_OF_TENSORS = 2**13, 2**19


@dataclass(frozen=True)
class FeatureTable:
    """X as it came: its shape, its names where it has any, and its columns on demand."""

    names: tuple[str, ...] | None
    shape: tuple[int, int]
    native: Any
    """a 2-D array, or a narwhals frame"""

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


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask into sorted positions of X's columns.

    Parameters
    ----------
    table : FeatureTable
    features : None, or sequence of str, int or bool
        None is all columns.
    role : str
        The parameter's name, for messages.

    Returns
    -------
    list of int
    """
    k = table.shape[1]
    if features is None:
        return list(range(k))
    if isinstance(features, str):
        raise InputError(f"{role} must be a list of columns; got the text {features!r}")
    wanted = list(features)
    if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
        if len(wanted) != k:
            raise InputError(f"{role} is a mask of {len(wanted)} entries, but X has {k} columns")
        return [place for place, use in enumerate(wanted) if use]
    places = [_place(table, one, role) for one in wanted]
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise InputError(f"{role} names {table.label(twice[0])!r} twice")
    return sorted(places)


def _place(table: FeatureTable, one: Any, role: str) -> int:
    k = table.shape[1]
    if isinstance(one, str):
        if table.names is None:
            raise UnknownFeatureError(
                f"{role} names {one!r}, but X has no column names; give positions 0 to {k - 1}"
            )
        if one not in table.names:
            raise UnknownFeatureError(f"{role}: X has no column {one!r}{nearest(one, table.names)}")
        return table.names.index(one)
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        if not 0 <= one < k:
            raise UnknownFeatureError(f"{role}: X has no column {one}; it has 0 to {k - 1}")
        return int(one)
    raise InputError(f"{role} must hold names, positions or booleans; got {one!r}")


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names to one that is not there."""
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f". Did you mean {' or '.join(repr(one) for one in close)}?" if close else ""


def names_or_positions(names: Sequence[str] | None, columns: Positions) -> list[Any]:
    """Name columns the way the user knows them: by name, or by position where X has none."""
    return [column if names is None else names[column] for column in columns]


def numbers(series: nw.Series[Any], what: str | None = None) -> NDArray[Any]:
    """Return a frame's column as a numeric array, nulls as NaN."""
    name = repr(series.name) if what is None or series.name else what
    dtype = series.dtype
    if dtype.is_numeric() and not dtype.is_decimal():
        if series.null_count():
            series = series.cast(nw.Float64)
        values = series.to_numpy()
    elif dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
    else:
        values = floats(series.to_numpy(), f"column {name}")
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=np.float64)


def floats(values: NDArray[Any], what: str) -> Floats:
    """Numbers that came as objects; text is refused, even where it spells a number."""
    if values.dtype == object:
        kind: type | None = next(
            (type(one) for one in values if isinstance(one, str | bytes)), None
        )
        if kind is None:
            try:
                return values.astype(np.float64)
            except (TypeError, ValueError):
                kind = next((type(one) for one in values if one is not None), object)
    else:
        kind = values.dtype.type
    raise InputError(
        f"{what} does not hold numbers (found {getattr(kind, '__name__', kind)}); encode it as "
        "numbers (for features, Heckman.from_formula makes dummies of text and categories)"
    )


def _blocks(table: FeatureTable, columns: Positions) -> Iterator[tuple[slice, Array]]:
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
    for where, block in _blocks(table, columns):
        values[where] = block @ like(coef[list(columns)], block)
    return values


def refuse_missing(table: FeatureTable, columns: Positions) -> None:
    """Refuse rows to predict for that miss a column to be used."""
    bad = np.zeros(len(columns), dtype=np.int64)
    for _, block in _blocks(table, columns):
        bad += host((~namespace(block).isfinite(block)).sum(axis=0))
    if bad.any():
        said = ", ".join(
            f"{table.label(column)!r} ({count} rows)"
            for column, count in zip(columns, bad, strict=True)
            if count
        )
        raise MissingValueError(
            f"Input X contains NaN or infinity in {said}; no prediction can be made for these "
            "rows. Impute them or leave them out."
        )
