"""Which columns of a data frame are categories, and the levels that they have.

``categorical_features`` follows scikit-learn's convention (`HistGradientBoostingRegressor`): by
default the types of the columns decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.column_names import refuse_far_more
from heckmanfa.data.columns.column_numbers import column_at, numbers
from heckmanfa.data.columns.declared_levels import pandas_categories
from heckmanfa.data.columns.encoded_columns import EncodedColumns, to_pandas_column
from heckmanfa.data.columns.encoding import Encoding, refuse_same_names
from heckmanfa.data.columns.kinds import Asked, Column
from heckmanfa.data.columns.level_order import order_levels
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.data.columns.values import Levels
from heckmanfa.data.row_sources import CategoryType, RawRowSource
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


def categories_by_type(frame: nw.DataFrame[Any]) -> dict[int, bool]:
    """Find the columns of a frame that are categories by their type.

    The values say whether the type itself is that of a category; the others are text.
    """
    found = {}
    made_by_pandas = _made_by_pandas(frame)
    for position, (name, dtype) in enumerate(frame.schema.items()):
        if dtype.is_numeric() or dtype == nw.Boolean or dtype.is_temporal():
            if name in made_by_pandas and not dtype.is_temporal():
                found[position] = True
            continue
        is_category = _is_category(column_at(frame, position))
        if is_category is not None:
            found[position] = is_category
    return found


def _is_category(series: nw.Series[Any]) -> bool | None:
    """Whether the type of a column is a category (True) or text (False); None if neither."""
    native, dtype = series.to_native(), series.dtype
    stored = getattr(native, "dtype", getattr(native, "type", None))
    stored = getattr(stored, "pyarrow_dtype", stored)
    if isinstance(stored, pd.CategoricalDtype) or isinstance(dtype, nw.Categorical | nw.Enum):
        return True
    if str(stored).startswith("dictionary<"):
        return True
    if isinstance(dtype, nw.String) or str(stored) == "string_view":
        return False
    is_text = (
        stored is np.dtype(object) and pd.api.types.infer_dtype(native, skipna=True) == "string"
    )
    return False if is_text else None


def refuse_categories(frame: nw.DataFrame[Any], columns: Iterable[int]) -> None:
    """Refuse columns that are categories by their type, and are not among those that were named."""
    for position in sorted(columns):
        series = column_at(frame, position)
        if _is_category(series) is not None:
            numbers(series)


def _made_by_pandas(frame: nw.DataFrame[Any]) -> set[str]:
    """Return the columns of an Arrow table that were categories of pandas."""
    if not frame.implementation.is_pyarrow():
        return set()
    return pandas_categories(frame.to_native().schema)


def _declares_levels(series: nw.Series[Any]) -> bool:
    """Whether a column declares its levels and their order, whatever rows it has."""
    native = series.to_native()
    stored: Any = getattr(native, "dtype", getattr(native, "type", None))
    stored = getattr(stored, "pyarrow_dtype", stored)
    if isinstance(stored, pd.CategoricalDtype):
        return True
    if str(stored).startswith("dictionary<"):
        return bool(stored.ordered)
    return isinstance(series.dtype, nw.Enum)


def category_column(
    series: nw.Series[Any], name: str, *, is_declared: bool, named: bool = False
) -> Column:
    """Return a category before its rows are counted; the others are as in `learn_categories`.

    ``series`` may be without rows: only its type counts.
    """
    asked: Asked | None = "category" if is_declared else None
    return Column(name, "text", asked, declared=_declares_levels(series), named=named)


def count_levels(
    column: Column, values: pd.Series[Any], *, capped: bool
) -> tuple[TextTally, Levels]:
    """Count the levels of some rows of a category."""
    plain = Encoding.plain([column.name])
    found = plain.levels_in(values, column.name, literal=column.literal)
    tally = column.start(capped=capped)
    assert isinstance(tally, TextTally)
    tally.add_levels(found, values)
    return tally, found


def decide_levels(column: Column, tally: TextTally) -> tuple[str, ...]:
    """Return the levels of a category, the reference first; refuse text that labels rows."""
    kind = column.kind(tally)
    if not kind.is_feature and kind.kind != "constant":
        ways = "leave it out"
        if kind.can_override:
            ways += f", or name it in {option('categorical_features')} to use it all the same"
        raise InputError(f"column {quoted(column.name)} {kind.reason}; {ways}")
    return order_levels(tally)


def encoding_of(names: tuple[str, ...], levels: Mapping[str, tuple[str, ...]]) -> Encoding:
    """Return the encoding of columns, of which some are categories."""
    encoding = Encoding.plain(names, levels)
    refuse_same_names(encoding.columns)
    return encoding


def learn_categories(
    frame: nw.DataFrame[Any],
    names: tuple[str, ...],
    categories: Mapping[int, bool],
    *,
    named: bool = False,
) -> EncodedColumns:
    """Learn the levels of some columns, and return the frame encoded.

    ``names`` are those of all columns. The values of ``categories`` say which columns the user or a
    type declares as categories; the others are text, which is refused if it labels rows. ``named``
    says that it is the user.
    """
    refuse_far_more(len(categories), frame.shape[0])
    levels: dict[str, tuple[str, ...]] = {}
    codes: dict[str, NDArray[Any]] = {}
    made_by_pandas = _made_by_pandas(frame)
    for position, is_declared in categories.items():
        name, series = names[position], column_at(frame, position)
        column = category_column(series, name, is_declared=is_declared, named=named)
        values = to_pandas_column(series)
        if name in made_by_pandas and isinstance(values.dtype, pd.CategoricalDtype):
            column = replace(column, declared=True)
        tally, found = count_levels(column, values, capped=False)
        levels[name] = decide_levels(column, tally)
        codes[name] = Encoding.plain([name], {name: levels[name]}).codes(found, name)
    return EncodedColumns(frame, encoding_of(names, levels), codes=codes, spelled=False)


def learn_raw(
    source: RawRowSource, names: tuple[str, ...], categories: Mapping[int, CategoryType]
) -> Encoding | None:
    """Learn the levels of some columns of a row source; None if none of them is a category."""
    found = source.learn_levels(categories) if categories else {}
    if not found:
        return None
    return encoding_of(names, {names[position]: levels for position, levels in found.items()})


def types_of_categories(frame: nw.DataFrame[Any]) -> dict[int, CategoryType]:
    """Find the columns that may be categories by the types of a frame without rows."""
    found: dict[int, CategoryType] = {
        position: "category" if is_category else "text"
        for position, is_category in categories_by_type(frame).items()
    }
    for position in range(frame.shape[1]):
        stored = getattr(column_at(frame, position).to_native(), "dtype", None)
        if stored is np.dtype(object):
            # Without rows, narwhals takes objects for text.
            found[position] = "objects"
    return found
