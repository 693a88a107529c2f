"""One column of a table as numbers; other columns are refused with advice on what to do."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted

_DURATIONS = (timedelta, np.timedelta64, pd.DateOffset)

HeldKind = Literal["text", "categories", "dates", "times", "durations", "nested", "other"]
"""kinds of columns that do not hold numbers"""
_TYPES: tuple[tuple[Any, HeldKind], ...] = (
    ((str, bytes), "text"),
    (_DURATIONS, "durations"),
    ((date, np.datetime64, pd.Period), "dates"),
    (time, "times"),
    ((list, tuple, dict, set, np.ndarray), "nested"),
)
# Not dictionaries: scikit-learn's checks expect its own words about them.
NOT_NUMBERS = (str, bytes, *_DURATIONS, date, np.datetime64, pd.Period, time, list, tuple, set)
"""types that are never numbers in an array of objects"""
_TO_NUMERIC = "convert it with pandas.to_numeric if it spells numbers"
_AMOUNTS = "convert it with .astype(float) if its categories are amounts"
_FEATURE_ADVICE: dict[HeldKind, str] = {
    "text": f"{_TO_NUMERIC}; if it holds categories, name it in {option('categorical_features')}",
    "categories": f"name it in {option('categorical_features')}; {_AMOUNTS}",
    "dates": "convert it first, for example to the year (.dt.year) or to the days since a date",
    "times": "convert it first, for example to the hours since midnight",
    "durations": "convert it first, for example to days: column / pandas.Timedelta(days=1)",
    "nested": "make a column of numbers of each of its parts, or leave it out",
    "other": "convert it with .astype(float), or leave it out",
}
# Only features can become dummies; a column beside X stays one column.
_ADVICE_BESIDE: dict[HeldKind, str] = _FEATURE_ADVICE | {
    "text": _TO_NUMERIC,
    "categories": _AMOUNTS,
    "nested": "pass one number for each row",
    "other": "convert it with .astype(float)",
}
_PLAIN = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
_WEIGHTS = (
    "weights are numbers of zero or more, one for each row: convert it with pandas.to_numeric if "
    "it spells numbers, or pass another column"
)
_FLAGS = "pass true or false (or 1 and 0) for every row, as a comparison does (column == 'yes')"
_ADVICE: dict[str | None, dict[HeldKind, str]] = {
    "y": _ADVICE_BESIDE
    | {
        "text": f"{_TO_NUMERIC}, or use HeckmanProbit if it holds two classes",
        "categories": f"{_AMOUNTS}, or use HeckmanProbit if there are two of them",
    },
    "selected": dict.fromkeys(_FEATURE_ADVICE, _FLAGS),
    "treated": dict.fromkeys(_FEATURE_ADVICE, _FLAGS),
    "sample_weight": _ADVICE_BESIDE | {"text": _WEIGHTS, "categories": _WEIGHTS},
}


def column_at(frame: nw.DataFrame[Any], position: int) -> nw.Series[Any]:
    """Return a column of a frame; narwhals lists all names of a pandas frame to do that."""
    native = frame.to_native()
    if isinstance(native, pd.DataFrame):
        return nw.from_native(native.iloc[:, position], series_only=True)
    return frame[:, position]


def numbers_at(frame: nw.DataFrame[Any], position: int) -> NDArray[Any]:
    """Return a column of a frame as a numeric array, nulls as NaN."""
    native = frame.to_native()
    if isinstance(native, pd.DataFrame):
        column = native.iloc[:, position]
        # What is an array of numbers already needs no narwhals, which takes longer than the rest.
        if isinstance(column.dtype, np.dtype) and column.dtype in _PLAIN:
            return np.asarray(column.to_numpy())
    return numbers(column_at(frame, position))


def numbers(series: nw.Series[Any], what: str | None = None) -> NDArray[Any]:
    """Return a frame's column as a numeric array, nulls as NaN.

    ``what`` is y, selected, treated or sample_weight if the column is not a feature.
    """
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), pd.SparseDtype):
        series = nw.from_native(native.sparse.to_dense(), series_only=True)
    dtype = series.dtype
    if dtype.is_numeric() and not dtype.is_decimal():
        if series.null_count() or is_wide(dtype):
            series = series.cast(nw.Float64)
        values = series.to_numpy()
        if values.dtype.kind == "O":
            # pandas 2.1 gives Arrow-backed columns with gaps as objects.
            values = series.to_native().to_numpy(dtype=np.float64, na_value=np.nan)
    elif dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
    elif isinstance(dtype, nw.Categorical | nw.Enum):
        held = f"categories of {_categories_of(series)}"
        raise _no_numbers(_label(series, what), held, "categories", what)
    elif dtype.is_nested():
        # As an array, lists of one number and structs of one field would be numbers.
        raise _no_numbers(_label(series, what), _nested(dtype), "nested", what)
    else:
        values = floats(series.to_numpy(), _label(series, what), what)
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=np.float64)


def _label(series: nw.Series[Any], what: str | None) -> str:
    label = f"column {quoted(series.name)}"
    if what is None:
        return label
    return f"{what} ({label})" if series.name else what


def refuse_name(values: Any, what: str) -> None:
    """Refuse the name of a column in place of the column."""
    if isinstance(values, str):
        raise InputTypeError(
            f"{what} should be a 1d array with an entry for each row, got the text "
            f"{quoted(values)} instead: if it names a column, pass {what}=data[{quoted(values)}]"
        )


def entries(values: Any, what: str) -> NDArray[Any]:
    """Return the labels in a column, or in a frame of one column, as an array.

    Integers of 128 bits become objects, since no float holds them all; ``what`` is for messages.
    """
    refuse_name(values, what)
    series = as_series(values)
    if series is None:
        return np.asarray(as_table(values))
    if series.dtype.is_nested():
        raise InputError(
            f"{what} holds {_nested(series.dtype)}: give every group one label, a number or a text"
        )
    if is_wide(series.dtype):
        return np.array(series.to_list(), dtype=object)
    return np.asarray(decoded(series).to_numpy())


def as_series(values: Any) -> nw.Series[Any] | None:
    """Return a series, a PyArrow array or a frame of one column as a series; None for others."""
    frame = nw.from_native(
        in_chunks(as_table(values)), eager_only=True, allow_series=True, pass_through=True
    )
    if isinstance(frame, nw.DataFrame) and frame.shape[1] == 1:
        frame = frame[:, 0]
    return frame if isinstance(frame, nw.Series) else None


def decoded(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return categories of PyArrow as their values, and any other column unchanged.

    As an array, PyArrow would give missing categories the value of another row.
    """
    stored = series.to_native()
    values = getattr(getattr(stored, "type", None), "value_type", None)
    if values is None or not isinstance(series.dtype, nw.Categorical):
        return series
    return nw.from_native(stored.cast(values), series_only=True)


def as_table(values: Any) -> Any:
    """Return a PyArrow record batch as a table, and anything else unchanged.

    narwhals reads only tables, and would take a batch for an array without names.
    """
    kind = type(values)
    if kind.__name__ != "RecordBatch" or kind.__module__.split(".")[0] != "pyarrow":
        return values
    import pyarrow as pa

    return pa.Table.from_batches([values])


def in_chunks(values: Any) -> Any:
    """Return a PyArrow array as a chunked one, the only one that narwhals reads; others as is."""
    kind = type(values)
    if kind.__module__.split(".")[0] != "pyarrow" or not kind.__name__.endswith("Array"):
        return values
    import pyarrow as pa

    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def is_wide(dtype: Any) -> bool:
    """Whether a column holds 128-bit integers, which NumPy does not have."""
    return isinstance(dtype, nw.Int128 | nw.UInt128)


def _nested(dtype: Any) -> str:
    return "structs" if isinstance(dtype, nw.Struct) else "lists"


def _no_numbers(label: str, held: str, kind: HeldKind, role: str | None) -> InputError:
    advice = _ADVICE.get(role, _FEATURE_ADVICE)[kind]
    return InputError(f"{label} does not hold numbers (found {held}): {advice}")


def _categories_of(series: nw.Series[Any]) -> str:
    """Name the type of a column's categories."""
    native = series.to_native()
    kind = getattr(native, "dtype", getattr(native, "type", None))
    if isinstance(kind, pd.CategoricalDtype):
        return str(kind.categories.dtype)
    kind = getattr(kind, "pyarrow_dtype", kind)
    kind = str(getattr(kind, "value_type", "string"))
    return "text" if "string" in kind else kind


def floats(values: NDArray[Any], what: str, role: str | None = None) -> Floats:
    """Return objects as float64, NaN for missing entries; refuse text, even if it spells a number.

    ``what`` names the array in messages; ``role`` is as in `numbers`, if ``what`` does not say it.
    """
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype != object:
        sample = values.flat[0] if values.size else values.dtype.type()
        raise _refusal(what, sample, values.dtype.name, role or what)
    missing = missing_in(values)
    present = values[~missing]
    numeric = np.full(values.shape, np.nan)
    for kind in dict.fromkeys(map(type, present)):
        if not issubclass(kind, Real | Decimal | np.bool_) or issubclass(kind, _DURATIONS):
            entry = next(entry for entry in present if type(entry) is kind)
            raise _refusal(what, entry, kind.__name__, role or what)
    try:
        numeric[~missing] = present.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} holds numbers that float64 cannot hold: {error}") from error
    return numeric


def array_of(values: Any, what: str) -> NDArray[Any]:
    """Return what was passed as ``what`` as an array; a column of a frame must hold numbers."""
    series = as_series(values)
    return np.asarray(plain_array(values)) if series is None else numbers(series, what)


def as_numeric(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Return an array of numbers as it is, and objects as `floats` reads them."""
    return array if array.dtype.kind in "biuf" else floats(array, what)


def numeric_array(values: Any, what: str) -> NDArray[Any]:
    """Return what was passed as ``what`` as an array of numbers of any type."""
    return as_numeric(array_of(values, what), what)


def missing_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are missing: None, NaN, NaT, or pandas' NA."""
    return np.asarray(pd.isna(values), dtype=bool)


def plain_array(values: Any) -> Any:
    """Return a masked array as a plain one with NaN for masked entries; others unchanged."""
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind not in "biufO":
            return values.data
        mask = np.ma.getmaskarray(values)
        if not mask.any():
            return values.data
        plain = values.data.astype(object if values.dtype == object else np.float64)
        plain[mask] = np.nan
        return plain
    return values


def one_column(array: NDArray[Any], passed: Any, what: str) -> NDArray[Any]:
    """Return an array as one column; ``passed`` is what was passed as ``what``."""
    if array.ndim == 0:
        refuse_name(passed, what)
        raise InputTypeError(f"{what} should be a 1d array, got a {type(passed).__name__} instead")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise InputError(
            f"{what} should be a 1d array, got an array of shape {array.shape} instead"
        )
    # scikit-learn warns about an outcome that is a matrix of one column.
    return np.asarray(column_or_1d(array, warn=what == "y"))


def _refusal(what: str, entry: Any, kind: str, role: str) -> InputError:
    """Build the error for values that are not numbers, with advice on their type."""
    if isinstance(entry, complex | np.complexfloating):
        advice = "pass its real part, or its absolute value"
        return InputError(f"Complex data not supported: {what} holds complex numbers; {advice}")
    held_kind: HeldKind = next(
        (held_kind for types, held_kind in _TYPES if isinstance(entry, types)), "other"
    )
    # NumPy's type names for text and bytes include their length.
    held = "text" if isinstance(entry, str) else "bytes" if isinstance(entry, bytes) else kind
    return _no_numbers(what, held, held_kind, role)
