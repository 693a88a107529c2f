"""Which columns the data declares as categories, and what such a column holds.

A pandas category or an Arrow dictionary is declared to be a category, whether its values are text,
numbers or booleans; dates stay dates. Parquet stores a category of numbers as plain numbers, but
the metadata that pandas writes beside them says what it was (`pandas_categories`). Where nothing
says so, as in a CSV file, numbers are numbers. An Arrow dictionary declares the order of its levels
only if it is marked as ordered, or if pandas made it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pandas as pd

from heckmanfa.data.columns.values import by_size, label_of, time_in
from heckmanfa.errors import DataError
from heckmanfa.text.printable import shown

# Declared levels of these types are numbers.
_NUMBER_TYPES = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")


def pandas_categories(schema: Any, what: Any = "the table") -> set[str]:
    """Return the columns of an Arrow schema that were categories of pandas.

    Metadata that pandas cannot have written is refused, since a category in it may be lost;
    ``what`` names the table.
    """
    try:
        made_by = schema.pandas_metadata or {}
        return {
            column["field_name"]
            for column in made_by.get("columns", ())
            if column.get("pandas_type") == "categorical" and column.get("field_name") is not None
        }
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataError(
            f"what pandas wrote of the columns of {shown(what)} (their types, as metadata) is "
            "damaged. Write it again, or drop that with pyarrow: replace_schema_metadata(None)"
        ) from error


def as_declared(series: pd.Series[Any], *, numeric: bool = False) -> pd.Series[Any]:
    """Return a column as the data declares it.

    An Arrow dictionary becomes a pandas category, and a category of dates a plain column. So does a
    category of numbers if the user wants it ``numeric``. Other columns are returned unchanged.
    """
    series = as_category(series)
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return series
    levels = series.dtype.categories
    is_number = pd.api.types.infer_dtype(levels, skipna=True) in _NUMBER_TYPES
    if time_in(levels) is not None or (numeric and is_number):
        return _plain(series)
    return series


def frame_as_declared(frame: pd.DataFrame, categories: Container[Any] = ()) -> pd.DataFrame:
    """Return a table in which only the columns ``categories`` may be categories of numbers.

    Those of the others are numbers; see `as_declared`.
    """
    changed = {
        name: as_declared(frame[name], numeric=name not in categories)
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if isinstance(dtype, pd.CategoricalDtype) or _is_dictionary(dtype)
    }
    return frame.assign(**changed) if changed else frame


def _plain(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a category as a plain column."""
    codes = series.cat.codes.to_numpy()
    levels: Any = series.cat.categories.array
    if isinstance(levels, pd.arrays.NumpyExtensionArray):
        # pandas 2.1 warns of its own wrapper of NumPy.
        levels = levels.to_numpy()
    taken: Any = pd.api.extensions.take(levels, codes, allow_fill=True)
    return pd.Series(taken, index=series.index, name=series.name)


def as_category(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return an Arrow dictionary as a pandas category, and any other column unchanged."""
    if not _is_dictionary(series.dtype):
        return series
    import pyarrow as pa

    table = pa.table({"levels": pa.array(series.array)}).unify_dictionaries()
    found = table["levels"].to_pandas()
    if isinstance(found.dtype, pd.CategoricalDtype) and not table["levels"].type.ordered:
        found = found.cat.reorder_categories(_in_order(found.dtype.categories))
    return pd.Series(found.array, index=series.index, name=series.name)


def _in_order(levels: pd.Index) -> list[Any]:
    """Return the levels of a dictionary that declares no order as `by_size` puts their labels."""
    places = {label: place for place, label in enumerate(by_size({*map(label_of, levels)}))}
    return sorted(levels, key=lambda level: places[label_of(level)])


def _is_dictionary(dtype: Any) -> bool:
    if not isinstance(dtype, pd.ArrowDtype):
        return False
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))
