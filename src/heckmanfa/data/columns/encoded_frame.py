"""Columns of a data frame in memory: which are categories, their levels, and all as numbers.

``categorical_features`` follows scikit-learn's convention (`HistGradientBoostingRegressor`): by
default the types of the columns decide. Columns are encoded when they are read. A category takes a
byte per row, however many dummies it becomes: these are made a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.column_names import refuse_far_more
from heckmanfa.data.columns.column_numbers import column_at, in_chunks, numbers
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.kinds import Asked, ColumnSpec
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.data.columns.values import Levels, as_category, pandas_categories
from heckmanfa.data.row_sources import CategoryType
from heckmanfa.data.rows import Dummy, Positions
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


@dataclass(frozen=True, eq=False)
class Filled:
    """A column whose missing values are its mean in the fit."""

    values: Any
    """numbers or a `Dummy`, of which slices are numbers"""
    mean: float

    def __getitem__(self, rows: slice) -> Any:
        """Return some consecutive rows."""
        values = np.asarray(self.values[rows], dtype=np.float64)
        return np.where(np.isnan(values), self.mean, values)


@dataclass(frozen=True, eq=False)
class EncodedFrame:
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
        arrays: dict[int, Any] = {}
        for position, (name, places) in enumerate(self.encoding.positions.items()):
            if not wanted.isdisjoint(places):
                made = zip(places, self._columns(position, name), strict=True)
                arrays |= {place: values for place, values in made if place in wanted}
        if self.encoding.missing == "mean":
            labels, means = self.encoding.columns, self.encoding.means
            arrays = {
                column: Filled(values, means[labels[column]]) for column, values in arrays.items()
            }
        return arrays

    def _columns(self, position: int, name: str) -> list[Any]:
        """Return what a source becomes."""
        encoding, series = self.encoding, column_at(self.frame, position)
        if name in encoding.levels:
            if name not in self.codes:
                levels = encoding.levels_in(to_pandas_column(series), name)
                self.codes[name] = encoding.codes(levels, name, self.unknown)
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
    column: pd.Series[Any] = native.to_pandas(date_as_object=False)
    return column


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


def categories_by_type(frame: nw.DataFrame[Any]) -> dict[int, CategoryType]:
    """Find the columns of a frame that are categories by their type, or text.

    In a frame without rows, columns of objects may turn out to be text.
    """
    categories: dict[int, CategoryType] = {}
    made_by_pandas = _made_by_pandas(frame)
    for position, (name, dtype) in enumerate(frame.schema.items()):
        if dtype.is_numeric() or dtype == nw.Boolean or dtype.is_temporal():
            if name in made_by_pandas and not dtype.is_temporal():
                categories[position] = "category"
            continue
        kind = _category_type(column_at(frame, position))
        if kind is not None:
            categories[position] = kind
    return categories


def _category_type(series: nw.Series[Any]) -> CategoryType | None:
    """Return whether the type of a column makes it a category or text; None if neither."""
    native, dtype, stored = series.to_native(), series.dtype, _stored_type(series)
    if isinstance(stored, pd.CategoricalDtype) or isinstance(dtype, nw.Categorical | nw.Enum):
        return "category"
    if str(stored).startswith("dictionary<"):
        return "category"
    is_object = stored is np.dtype(object)
    if is_object and not len(native):
        # Without rows, narwhals takes objects for text.
        return "objects"
    if isinstance(dtype, nw.String) or str(stored) == "string_view":
        return "text"
    is_text = is_object and pd.api.types.infer_dtype(native, skipna=True) == "string"
    return "text" if is_text else None


def _stored_type(series: nw.Series[Any]) -> Any:
    """Return the type that the library of a column gives it, or that of Arrow inside pandas."""
    native = series.to_native()
    stored = getattr(native, "dtype", getattr(native, "type", None))
    return getattr(stored, "pyarrow_dtype", stored)


def refuse_categories(frame: nw.DataFrame[Any], columns: Iterable[int]) -> None:
    """Refuse columns that are categories by their type, and are not among those that were named."""
    for position in sorted(columns):
        series = column_at(frame, position)
        if _category_type(series) is not None:
            numbers(series)


def _made_by_pandas(frame: nw.DataFrame[Any]) -> set[str]:
    """Return the columns of an Arrow table that were categories of pandas."""
    if not frame.implementation.is_pyarrow():
        return set()
    return pandas_categories(frame.to_native().schema)


def _declares_levels(series: nw.Series[Any]) -> bool:
    """Whether a column declares its levels and their order, whatever rows it has."""
    stored = _stored_type(series)
    if isinstance(stored, pd.CategoricalDtype):
        return True
    if str(stored).startswith("dictionary<"):
        return bool(stored.ordered)
    return isinstance(series.dtype, nw.Enum)


def category_column(series: nw.Series[Any], name: str, kind: CategoryType) -> ColumnSpec:
    """Return a category before its rows are counted; text is refused if it labels rows.

    ``series`` may be without rows: only its type counts.
    """
    asked: Asked | None = "category" if kind in ("category", "named") else None
    declared = _declares_levels(series)
    return ColumnSpec(name, "text", asked, declared=declared, named=kind == "named")


def count_levels(
    column: ColumnSpec, values: pd.Series[Any], *, capped: bool
) -> tuple[TextTally, Levels]:
    """Count the levels of some rows of a category."""
    plain = Encoding.plain([column.name])
    levels = plain.levels_in(values, column.name, literal=column.literal)
    tally = column.start(capped=capped)
    assert isinstance(tally, TextTally)
    tally.add_levels(levels, values)
    return tally, levels


def decide_levels(column: ColumnSpec, tally: TextTally) -> tuple[str, ...]:
    """Return the levels of a category, the reference first; refuse text that labels rows."""
    kind = column.kind(tally)
    if not kind.is_feature and kind.kind != "constant":
        ways = "leave it out"
        if kind.can_override:
            ways += f", or name it in {option('categorical_features')} to use it all the same"
        raise InputError(f"column {quoted(column.name)} {kind.reason}; {ways}")
    return tally.levels


def learn_categories(
    frame: nw.DataFrame[Any], names: Sequence[str], categories: Mapping[int, CategoryType]
) -> EncodedFrame:
    """Learn the levels of some columns, and return the frame encoded.

    ``names`` are those of all columns.
    """
    refuse_far_more(len(categories), frame.shape[0])
    levels: dict[str, tuple[str, ...]] = {}
    codes: dict[str, NDArray[Any]] = {}
    made_by_pandas = _made_by_pandas(frame)
    for position, kind in categories.items():
        name, series = names[position], column_at(frame, position)
        column = category_column(series, name, kind)
        values = to_pandas_column(series)
        if name in made_by_pandas and isinstance(values.dtype, pd.CategoricalDtype):
            column = replace(column, declared=True)
        tally, rows = count_levels(column, values, capped=False)
        levels[name] = decide_levels(column, tally)
        codes[name] = Encoding.plain([name], {name: levels[name]}).codes(rows, name)
    return EncodedFrame(frame, Encoding.plain(names, levels), codes=codes, spelled=False)
