"""The data of formulas as a frame, and what its columns hold."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from heckmanfa.data.columns.column_names import refuse_same_labels
from heckmanfa.data.columns.column_numbers import as_table, is_wide
from heckmanfa.data.columns.values import time_in
from heckmanfa.errors import InputError, TooFewRowsError
from heckmanfa.text.printable import quoted


def to_pandas(data: Any) -> pd.DataFrame:
    """Return the data of formulas (pandas, Polars or PyArrow) as a pandas frame.

    Text of every type becomes objects, which formulaic takes for categories. Decimals become
    floats.
    """
    table = as_table(data)
    # Polars has no equal names, and Arrow's tables may.
    is_pandas = isinstance(table, pd.DataFrame)
    labels = table.columns if is_pandas else getattr(table, "column_names", ())
    refuse_same_labels(labels, "the data")
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("the data is a lazy frame; call .collect() or .compute() on it first")
    if not isinstance(frame, nw.DataFrame):
        raise InputError(
            f"formulas need a data frame (pandas, Polars or PyArrow); got {type(data).__name__}"
        )
    # pandas has no integers of 128 bits.
    wide = [place for place, dtype in enumerate(frame.schema.values()) if is_wide(dtype)]
    if wide:
        # By position: Polars takes some names for patterns.
        frame = frame.with_columns(*(frame[:, place].cast(nw.Float64) for place in wide))
    pandas = frame.to_pandas().reset_index(drop=True)
    if len(pandas) == 0:
        raise TooFewRowsError("the data has 0 rows; there is nothing to fit or predict")
    pandas = pandas.infer_objects()
    plain = {
        index: _plain(pandas.iloc[:, index])
        for index, dtype in enumerate(pandas.dtypes)
        if pd.api.types.is_object_dtype(dtype) or _is_text(dtype)
    }
    if not plain:
        return pandas
    columns = [plain.get(index, pandas.iloc[:, index]) for index in range(pandas.shape[1])]
    made = pd.concat(columns, axis=1)
    made.columns = pandas.columns
    return made


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers or booleans."""
    return bool(pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def is_time(column: pd.Series[Any]) -> bool:
    """Whether a column holds dates, times of day, spans of time or periods."""
    return not isinstance(column.dtype, pd.CategoricalDtype) and time_in(column) is not None


def refuse_nested(column: pd.Series[Any]) -> None:
    """Refuse a column of lists, structs or other objects, which cannot be categories."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return
    present = column.dropna()
    for kind in dict.fromkeys(map(type, present)):
        hashed: Any = kind.__hash__
        if hashed is None or hashed is object.__hash__:
            raise InputError(
                f"column {quoted(column.name)} holds neither numbers nor text (found "
                f"{kind.__name__}): make a column of each of its parts, or leave it out"
            )


def advice_on_times(name: str) -> str:
    """Explain what to do about a column of dates or times."""
    return (
        f"column {quoted(name)} holds dates or times, which a formula cannot use as they are: make "
        "it a number in a new column of the data before the fit, not in the formula, such as days "
        "since its first, data['days'] = (t - t.min()).dt.days where t is the column, or text for "
        "a few categories, such as t.dt.year.astype(str), and name the new column in the formula"
    )


def _is_text(dtype: Any) -> bool:
    if isinstance(dtype, pd.StringDtype):
        return True
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        kind = dtype.pyarrow_dtype
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
        )
    return False


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return text as objects with NaN for missing values, and decimals as floats."""
    if _is_text(column.dtype):
        return column.astype(object).where(column.notna().to_numpy(), np.nan)
    if pd.api.types.infer_dtype(column, skipna=True) == "decimal":
        return column.astype(np.float64)
    return column
