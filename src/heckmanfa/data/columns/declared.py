"""Columns whose levels somebody declared: pandas categories and Arrow dictionaries.

Parquet keeps the levels of text only: a category of numbers, truths or dates is stored as numbers,
truths or dates. Tables in memory follow the same rule, so one table gives one model whichever way
it comes in.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd

from heckmanfa.text.printable import quoted, shown

__all__ = ["as_stored", "frame_as_stored", "told_of_numbers"]

_NUMBERS = frozenset({"integer", "floating", "mixed-integer-float", "decimal", "boolean"})
_TIMES = frozenset({"datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"})


def as_stored(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as its Parquet file has it: only text keeps levels that were declared.

    Parameters
    ----------
    series : Series

    Returns
    -------
    Series
        A pandas category of text stays one, and an Arrow dictionary of text becomes one; numbers,
        truths and dates are plain. A column without declared levels is returned as it is.
    """
    series = _as_category(series)
    if _values_of(series) not in _NUMBERS | _TIMES:
        return series
    codes = series.cat.codes.to_numpy()
    taken: Any = pd.api.extensions.take(series.cat.categories.array, codes, allow_fill=True)
    return pd.Series(taken, index=series.index, name=series.name)


def frame_as_stored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns are as Parquet files have them; see `as_stored`."""
    changed = {
        name: as_stored(frame[name])
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype) or _is_dictionary(frame[name].dtype)
    }
    return frame.assign(**changed) if changed else frame


def told_of_numbers(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Say which columns were declared as categories and are taken as numbers.

    Parameters
    ----------
    frame : DataFrame
        As it came.
    names : sequence of str
        Columns of which the user said nothing.

    Returns
    -------
    list of str
        A sentence for each such column.
    """
    return [
        f"{quoted(name)} is declared as a category, but its values are numbers: it was taken as a "
        f"number, as Parquet files store it; pass --categorical {shown(shlex.quote(name))} for "
        "dummies."
        for name in names
        if _values_of(frame[name]) in _NUMBERS
    ]


def _values_of(series: pd.Series[Any]) -> str | None:
    """Say what the declared levels of a column are; None where none are declared."""
    series = _as_category(series)
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return None
    return str(pd.api.types.infer_dtype(series.dtype.categories, skipna=True))


def _as_category(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return an Arrow dictionary as the pandas category that says the same."""
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
