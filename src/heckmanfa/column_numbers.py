"""One column of a table as numbers; what holds none is refused, and the message says what to do."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.errors import InputError
from heckmanfa.foreign import quoted
from heckmanfa.normal import Floats

__all__ = ["floats", "missing_in", "numbers", "plain_array"]

_DATES = (date, time, np.datetime64, pd.Period)
_DURATIONS = (timedelta, np.timedelta64, pd.DateOffset)

_TEXT = (
    "convert it with pandas.to_numeric where it spells numbers; where it holds categories, make "
    "dummies of it (Heckman.from_formula does, and so does pandas.get_dummies)"
)
_CATEGORIES = (
    "make dummies of it (Heckman.from_formula does where the formula says C(column), and so does "
    "pandas.get_dummies), or convert it with .astype(float) where its categories are amounts"
)
_POINTS = "convert it first, for example to the year (.dt.year) or to the days since a date"
_LENGTHS = "convert it first, for example to days: column / pandas.Timedelta(days=1)"
_COMPLEX = "pass its real part, or its absolute value"
_OTHERS = "convert it with .astype(float), or leave it out"
# Weights are no feature: dummies of them would be no weights, either.
_BESIDE = {
    "sample_weight": "weights are numbers of zero or more, one for each row: convert it with "
    "pandas.to_numeric where it spells numbers, or pass another column",
}
_ADVICE: tuple[tuple[Any, str], ...] = (
    ((str, bytes), _TEXT),
    (_DURATIONS, _LENGTHS),
    (_DATES, _POINTS),
)


def numbers(series: nw.Series[Any], what: str | None = None) -> NDArray[Any]:
    """Return a frame's column as a numeric array, nulls as NaN."""
    series = _dense(series)
    label = f"column {quoted(series.name)}" if what is None or series.name else what
    dtype = series.dtype
    if dtype.is_numeric() and not dtype.is_decimal():
        if series.null_count():
            series = series.cast(nw.Float64)
        values = series.to_numpy()
    elif dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
    elif isinstance(dtype, nw.Categorical | nw.Enum):
        raise InputError(
            f"{label} does not hold numbers (found categories of {_categories_of(series)}): "
            f"{_BESIDE.get(what or '', _CATEGORIES)}"
        )
    else:
        values = floats(series.to_numpy(), label, what)
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=np.float64)


def _categories_of(series: nw.Series[Any]) -> str:
    """Say what the categories of a column are."""
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), pd.CategoricalDtype):
        return str(native.cat.categories.dtype)
    return "text"


def _dense(series: nw.Series[Any]) -> nw.Series[Any]:
    """Write out a column of which pandas keeps the values that are not zero alone."""
    native = series.to_native()
    if not isinstance(getattr(native, "dtype", None), pd.SparseDtype):
        return series
    return nw.from_native(native.sparse.to_dense(), series_only=True)


def floats(values: NDArray[Any], what: str, role: str | None = None) -> Floats:
    """Numbers that came as objects; text is refused, even where it spells a number.

    Parameters
    ----------
    values : ndarray
        Of objects, or of any other type.
    what : str
        What it is, for messages.
    role : str, optional
        The parameter that it was passed as; ``what`` unless given.

    Returns
    -------
    ndarray of float64
        NaN where an object says that nothing is there (None, NaN, pandas' NA and NaT).
    """
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype != object:
        raise _refusal(what, _sample(values), values.dtype.name, role or what)
    missing = missing_in(values)
    present = values[~missing]
    found = np.full(values.shape, np.nan)
    for kind in dict.fromkeys(map(type, present)):
        if not issubclass(kind, Real | Decimal | np.bool_) or issubclass(kind, _DURATIONS):
            one = next(one for one in present if type(one) is kind)
            raise _refusal(what, one, kind.__name__, role or what)
    try:
        found[~missing] = present.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} holds numbers that float64 cannot hold: {error}") from error
    return found


def missing_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries say that nothing is there: None, NaN, NaT, or pandas' NA."""
    return np.asarray(pd.isna(values), dtype=bool)


def plain_array(values: Any) -> Any:
    """Return what NumPy would misread as an array that says the same; anything else unchanged.

    A masked entry is a missing one, which NumPy forgets. Objects may hold None or pandas' NA.
    """
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


def _sample(values: NDArray[Any]) -> Any:
    return values.reshape(-1)[0] if values.size else values.dtype.type()


def _refusal(what: str, one: Any, kind: str, role: str) -> InputError:
    """Say that something holds no numbers, and what to do about what it holds."""
    if isinstance(one, complex | np.complexfloating):
        return InputError(f"Complex data not supported: {what} holds complex numbers; {_COMPLEX}")
    advice = next((advice for kinds, advice in _ADVICE if isinstance(one, kinds)), _OTHERS)
    if advice is _TEXT:
        advice = _BESIDE.get(role, _TEXT)
    return InputError(f"{what} does not hold numbers (found {kind}): {advice}")
