"""Columns with declared levels: pandas categories and Arrow dictionaries.

Parquet keeps only the levels of text: a category of numbers, booleans or dates is stored as plain
numbers, booleans or dates. Tables in memory follow the same rule, so a table gives the same model
however it comes in.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd

from heckmanfa.text.printable import quoted, shown

_NUMBERS = frozenset({"integer", "floating", "mixed-integer-float", "decimal", "boolean"})
_TIMES = frozenset({"datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"})


def as_stored(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as a Parquet file would store it: only text keeps declared levels.

    An Arrow dictionary of text becomes a pandas category. Categories of numbers, booleans and dates
    become plain columns. A column without declared levels is returned unchanged.
    """
    series = _as_category(series)
    if _level_type(series) not in _NUMBERS | _TIMES:
        return series
    codes = series.cat.codes.to_numpy()
    taken: Any = pd.api.extensions.take(series.cat.categories.array, codes, allow_fill=True)
    return pd.Series(taken, index=series.index, name=series.name)


def frame_as_stored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with every column as Parquet files store it; see `as_stored`."""
    changed = {
        name: as_stored(frame[name])
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype) or _is_dictionary(frame[name].dtype)
    }
    return frame.assign(**changed) if changed else frame


def notes_on_numbers(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return a sentence for each of these columns that is declared a category but holds numbers."""
    return [
        f"{quoted(name)} is declared as a category, but its values are numbers: it was taken as a "
        f"number, as Parquet files store it; pass --categorical {shown(shlex.quote(name))} for "
        "dummies."
        for name in names
        if _level_type(frame[name]) in _NUMBERS
    ]


def _level_type(series: pd.Series[Any]) -> str | None:
    """Return pandas' name for the type of a column's declared levels; None if there are none."""
    series = _as_category(series)
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return None
    return str(pd.api.types.infer_dtype(series.dtype.categories, skipna=True))


def _as_category(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return an Arrow dictionary as a pandas category."""
    if not _is_dictionary(series.dtype):
        return series
    import pyarrow as pa

    table = pa.table({"levels": pa.array(series.array)}).unify_dictionaries()
    found = table["levels"].to_pandas()
    return pd.Series(found.array, index=series.index, name=series.name)


def _is_dictionary(dtype: Any) -> bool:
    if not isinstance(dtype, pd.ArrowDtype):
        return False
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))
