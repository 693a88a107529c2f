"""Raw columns of a data frame in memory as the numbers of a model, encoded when they are read.

A category takes a byte per row, however many dummies it becomes: these are made a block of rows at
a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.column_numbers import column_at, in_chunks, numbers
from heckmanfa.data.columns.declared_levels import as_category
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.dummies import Dummy
from heckmanfa.data.rows import Positions


@dataclass(frozen=True, eq=False)
class Filled:
    """A column whose missing values are its mean in the fit."""

    values: Any
    """numbers or a `Dummy`, of which slices are numbers"""
    mean: float

    def __getitem__(self, rows: slice) -> Any:
        """Return some consecutive rows."""
        part = np.asarray(self.values[rows], dtype=np.float64)
        return np.where(np.isnan(part), self.mean, part)


@dataclass(frozen=True, eq=False)
class EncodedColumns:
    """A data frame whose columns are the sources of an encoding, in its order."""

    frame: nw.DataFrame[Any]
    encoding: Encoding
    unknown: Unknown = "error"
    """what to do with levels that the encoding does not have"""
    codes: dict[str, NDArray[Any]] = field(default_factory=dict)
    """index of each row's level, of the categories read so far"""
    spelled: bool = True
    """whether text may spell the numbers of other columns, as in files"""

    def arrays(self, columns: Positions) -> dict[int, Any]:
        """Return some encoded columns, by position; slices of them are numbers."""
        wanted = {*columns}
        found: dict[int, Any] = {}
        start = 0
        for position, name in enumerate(self.encoding.sources):
            names = self.encoding.columns_of(name)
            inside = [index for index in range(len(names)) if start + index in wanted]
            if inside:
                made = self._columns(position, name)
                found |= {start + index: made[index] for index in inside}
            start += len(names)
        if self.encoding.missing == "mean":
            labels, means = self.encoding.columns, self.encoding.means
            found = {
                column: Filled(values, means[labels[column]]) for column, values in found.items()
            }
        return found

    def _columns(self, position: int, name: str) -> list[Any]:
        """Return what a source becomes."""
        encoding, series = self.encoding, column_at(self.frame, position)
        if name in encoding.levels:
            if name not in self.codes:
                found = encoding.levels_in(to_pandas_column(series), name)
                self.codes[name] = encoding.codes(found, name, self.unknown)
            codes = self.codes[name]
            gaps = bool((codes < 0).any())
            return [Dummy(codes, code, gaps) for code in encoding.dummies(name).values()]
        special = name in encoding.dates or name in encoding.missing_codes
        is_text = isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum)
        if special or (self.spelled and is_text):
            return [encoding.numbers(to_pandas_column(series), name)]
        return [numbers(series)]


def to_pandas_column(series: nw.Series[Any]) -> pd.Series[Any]:
    """Return a column as pandas, in which text of other libraries is a category."""
    native = series.to_native()
    if series.implementation.is_polars():
        return _of_polars(native)
    if series.implementation.is_pyarrow():
        return _of_arrow(native)
    column = as_category(series.to_pandas())
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        if pa.types.is_string_view(column.dtype.pyarrow_dtype):
            return _of_arrow(in_chunks(pa.array(column.array)))
    if isinstance(column.dtype, pd.SparseDtype):
        return pd.Series(np.asarray(column), name=column.name)
    return column


def _of_polars(native: Any) -> pd.Series[Any]:
    import polars as pl

    if native.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return pd.Series(native.to_numpy(), name=native.name)
    if isinstance(native.dtype, pl.Enum):
        levels, coded = native.dtype.categories, native
    else:
        text = native.cast(pl.String)
        levels = text.drop_nulls().unique()
        coded = text.cast(pl.Enum(levels))
    codes = coded.to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
    category = pd.Categorical.from_codes(codes, categories=pd.Index(levels.to_list(), dtype=object))
    return pd.Series(category, name=native.name)


def _of_arrow(native: Any) -> pd.Series[Any]:
    import pyarrow as pa

    kind = pa.types
    if kind.is_string_view(native.type):
        native = native.cast(pa.large_string())
    if kind.is_string(native.type) or kind.is_large_string(native.type):
        native = native.dictionary_encode()
    if kind.is_dictionary(native.type):
        native = native.unify_dictionaries()
    found: pd.Series[Any] = native.to_pandas(date_as_object=False)
    return found


def array_frame(array: NDArray[Any]) -> nw.DataFrame[Any]:
    """Return an array as a frame, whose columns have types of their own if it holds objects."""
    columns = {}
    for index in range(array.shape[1]):
        column = array[:, index]
        if column.dtype.kind in "OU":
            columns[index] = pd.Series(column.astype(object), dtype=object).infer_objects()
        else:
            columns[index] = pd.Series(column, copy=False)
    return nw.from_native(pd.DataFrame(columns, copy=False), eager_only=True)
