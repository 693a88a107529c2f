"""From what the user passes (arrays, frames, series) to rows, with every row accounted for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import validate_data

from heckmanfa.errors import (
    BinaryOutcomeWarning,
    ConstantOutcomeError,
    HeckmanfaError,
    InputError,
    InputTypeError,
    MissingValueError,
    NoOutcomeError,
    TooFewRowsError,
    UnknownFeatureError,
    warn,
)
from heckmanfa.normal import Floats
from heckmanfa.rows import ArrayRows, Block, Columns, Mask, Matrix, Positions, Rows, Source

# The squares of outcomes in this range can be summed without overflow.
_SMALLEST, _LARGEST = 1e-140, 1e140

__all__ = ["FeatureTable", "Sample", "read_features", "read_outcome", "read_sample", "resolve"]


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

    def source(self, columns: Positions) -> Source:
        """Return the rows of X; only these columns will be asked for."""
        if isinstance(self.native, np.ndarray):
            return Matrix(self.native)
        arrays = {int(one): _numbers(self.native[:, int(one)]) for one in columns}
        return Columns(arrays, self.shape)


@dataclass(frozen=True)
class Sample:
    """The rows of a fit and what became of each."""

    rows: ArrayRows
    row_counts: dict[str, int]
    n_groups: int
    all_selected: bool


def read_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> FeatureTable:
    """Take in X, and check its names and width against those of the fit.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``feature_names_in_`` and ``n_features_in_`` where ``reset``, else is compared.
    X : array or data frame
        NumPy, or any frame that narwhals reads (pandas, Polars, PyArrow).

    Returns
    -------
    FeatureTable
    """
    try:
        return _read_features(estimator, X, reset=reset)
    except HeckmanfaError:
        raise
    # What scikit-learn and narwhals say is clear; it only has to be one of our errors.
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(str(error)) from error


def _read_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> FeatureTable:
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("X is a lazy frame; call .collect() on it first")
    if isinstance(frame, nw.DataFrame):
        validate_data(estimator, X=X, skip_check_array=True, reset=reset)
        if frame.shape[0] == 0:
            raise TooFewRowsError("X has 0 rows; there is nothing to fit or predict")
        # Like scikit-learn, count columns by position where their labels are not text.
        named = all(isinstance(name, str) for name in frame.columns)
        return FeatureTable(tuple(frame.columns) if named else None, frame.shape, frame)
    array = check_array(
        X, dtype="numeric", ensure_all_finite=False, input_name="X", estimator=estimator
    )
    validate_data(estimator, X=array, skip_check_array=True, reset=reset)
    return FeatureTable(None, array.shape, array)


def read_outcome(y: Any, n_rows: int) -> Floats:
    """Take in an outcome as float64, missing values as NaN."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: pass the outcome, "
            "NaN where it is missing"
        )
    try:
        values = column_or_1d(_column(y, "y"), warn=True)
    except ValueError as error:
        raise InputError(str(error)) from error
    if values.dtype.kind not in "biuf":
        values = _floats(values, "y")
    outcome = np.asarray(values, dtype=np.float64)
    if len(outcome) != n_rows:
        raise InputError(
            f"X and y have inconsistent numbers of samples: X has {n_rows} rows, y {len(outcome)}"
        )
    return outcome


def observed_rows(y: Any, predicted: Floats) -> tuple[Floats, Mask]:
    """Return the outcome and the rows that have one (and a prediction) to be scored on."""
    outcome = read_outcome(y, len(predicted))
    rows = ~np.isnan(outcome) & ~np.isnan(predicted)
    if not rows.any():
        raise InputError(
            f"none of these {len(rows)} rows has an outcome to score on; where they are a fold of "
            "a cross-validation, split with heckmanfa.model_selection.SelectionKFold"
        )
    return outcome, rows


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


def read_sample(
    table: FeatureTable,
    y: Any,
    *,
    selected: Any,
    sample_weight: Any,
    groups: Any,
    sampling: bool,
    selection: Positions,
    prediction: Positions,
) -> Sample:
    """Apply the row rules: who is selected, who is left out, and why.

    Parameters
    ----------
    table : FeatureTable
    y : array_like
        The outcome; NaN where missing.
    selected : array_like of bool, or None
        None takes a row as selected where y is not NaN. Otherwise selected rows whose y is
        missing are left out, and y of unselected rows is ignored.
    sample_weight, groups : array_like or None
    sampling : bool
        Whether weights are sampling weights, which are rescaled to mean one.
    selection, prediction : sequence of int
        The columns of each equation.

    Returns
    -------
    Sample
    """
    n = table.shape[0]
    outcome = read_outcome(y, n)
    observed = ~np.isnan(outcome)
    chosen = observed if selected is None else _flags(selected, n)
    counts = {
        "total": n,
        "left_out_outcome_missing": int(np.count_nonzero(chosen & ~observed)),
        "left_out_zero_weight": 0,
    }
    kept = ~(chosen & ~observed)
    weight = None if sample_weight is None else _weights(sample_weight, n)
    if weight is not None:
        weightless = kept & (weight == 0)
        counts["left_out_zero_weight"] = int(np.count_nonzero(weightless))
        kept &= ~weightless
        if sampling and kept.any():
            weight = weight / weight[kept].mean()
    in_fit = chosen & kept
    counts["selected"] = int(np.count_nonzero(in_fit))
    counts["unselected"] = int(np.count_nonzero(kept & ~chosen))
    _check_outcome(outcome, in_fit, n)
    n_kept = counts["selected"] + counts["unselected"]
    if counts["unselected"] and n_kept <= len(selection) + 1:
        raise TooFewRowsError(
            f"{len(selection)} selection features and an intercept need more than "
            f"{len(selection) + 1} rows; there are {n_kept}"
        )
    codes, n_groups = (None, 0) if groups is None else _codes(groups, kept)
    columns = sorted({*selection, *prediction})
    rows = ArrayRows(
        source=table.source(columns),
        outcome=outcome,
        selected=chosen,
        weight=weight,
        group=codes,
        kept=None if kept.all() else kept,
    )
    _check_features(rows, table, selection, prediction)
    return Sample(rows, counts, n_groups, counts["unselected"] == 0)


def _check_outcome(outcome: Floats, in_fit: Mask, n: int) -> None:
    values = outcome if in_fit.all() else outcome[in_fit]
    if len(values) == 0:
        raise NoOutcomeError(
            f"no row has an observed outcome ({n} rows): y is missing in every selected row. "
            "Check the outcome column and `selected`."
        )
    infinite = np.count_nonzero(np.isinf(values))
    if infinite:
        raise InputError(
            "Input y contains infinity or a value too large for dtype('float64') in "
            f"{infinite} selected rows; mend these values, or mark them missing with NaN"
        )
    if len(values) == 1:
        raise TooFewRowsError(
            "only 1 sample has an observed outcome (n_selected = 1); a fit needs more"
        )
    low, high = values.min(), values.max()
    if low == high:
        raise ConstantOutcomeError(
            f"the outcome is {low:g} in all {len(values)} selected rows; there is nothing to "
            "predict. Check that y is the right column."
        )
    if not _SMALLEST < high - low < _LARGEST:
        raise InputError(
            f"the outcome runs from {low:g} to {high:g}: its squares cannot be represented. "
            "Change its unit."
        )
    if low == 0 and high == 1 and np.all((values == 0) | (values == 1)):
        warn(
            "the outcome holds only 0 and 1: a linear model will predict outside [0, 1]",
            BinaryOutcomeWarning,
        )


def _check_features(
    rows: Rows, table: FeatureTable, selection: Positions, prediction: Positions
) -> None:
    """Refuse missing or infinite values in rows that need them, saying where."""
    columns = sorted({*selection, *prediction})
    everywhere = np.array([column in set(selection) for column in columns], dtype=bool)
    missing = np.zeros(len(columns), dtype=np.int64)
    infinite = np.zeros(len(columns), dtype=np.int64)
    for part in rows.map(_not_finite, everywhere, columns=columns):
        if part is not None:
            missing += part[0]
            infinite += part[1]
    if not missing.any() and not infinite.any():
        return
    said = [
        f"{table.label(column)!r} ({_plural(missing[i], 'NaN')}, {_plural(infinite[i], 'inf')})"
        for i, column in enumerate(columns)
        if missing[i] or infinite[i]
    ]
    more = f" and {len(said) - 10} more columns" if len(said) > 10 else ""
    raise MissingValueError(
        "Input X contains NaN or infinity in rows that need it: "
        + ", ".join(said[:10])
        + more
        + ". Impute or leave out these rows or columns (a feature of the prediction equation "
        "alone may be missing where the row is not selected)."
    )


def _plural(count: int, what: str) -> str:
    return f"{count} {what}"


def _not_finite(block: Block, everywhere: Mask) -> tuple[NDArray[Any], NDArray[Any]] | None:
    finite = np.isfinite(block.features)
    if finite.all():
        return None
    needed = everywhere[None, :] | block.selected[:, None]
    missing = np.isnan(block.features) & needed
    return missing.sum(axis=0), (~finite & needed).sum(axis=0) - missing.sum(axis=0)


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


def _column(values: Any, what: str) -> Any:
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _numbers(series, what)
    frame = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and frame.shape[1] == 1:
        return frame.to_numpy()
    return values


def _numbers(series: nw.Series[Any], what: str | None = None) -> NDArray[Any]:
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
        values = _floats(series.to_numpy(), f"column {name}")
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=np.float64)


def _floats(values: NDArray[Any], what: str) -> Floats:
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


def _flags(selected: Any, n: int) -> Mask:
    values = column_or_1d(_column(selected, "selected"))
    if len(values) != n:
        raise InputError(f"selected has {len(values)} entries, but X has {n} rows")
    if values.dtype == np.bool_:
        return np.asarray(values)
    if values.dtype.kind in "iuf" and np.all((values == 0) | (values == 1)):
        return np.asarray(values == 1)
    raise InputError(
        "selected must be boolean (or 0 and 1) for every row; it holds other or missing values"
    )


def _weights(sample_weight: Any, n: int) -> Floats:
    values = np.asarray(_column(sample_weight, "sample_weight"))
    if values.dtype.kind not in "biuf":
        values = _floats(values, "sample_weight")
    values = values.astype(np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar; got {values.ndim}D")
    if len(values) != n:
        raise InputError(f"sample_weight has {len(values)} entries, but X has {n} rows")
    bad = np.count_nonzero(~np.isfinite(values) | (values < 0))
    if bad:
        raise InputError(
            f"sample_weight holds {bad} negative, missing or infinite values; weights must be "
            "zero or more"
        )
    if not values.any():
        raise InputError("sample_weight is zero in every row")
    return values


def _codes(groups: Any, kept: Mask) -> tuple[NDArray[np.intp], int]:
    native = nw.from_native(groups, series_only=True, pass_through=True)
    values = native.to_numpy() if isinstance(native, nw.Series) else np.asarray(groups)
    if values.ndim != 1 or len(values) != len(kept):
        raise InputError(f"groups must have one entry for each of the {len(kept)} rows of X")
    missing = np.array([one is None or one != one for one in values], dtype=bool)
    if np.any(missing & kept):
        raise InputError(
            f"groups is missing in {np.count_nonzero(missing & kept)} rows; every row needs one"
        )
    # Codes only over rows in the fit, so that no empty group is counted.
    unique, inverse = np.unique(values[kept], return_inverse=True)
    codes = np.zeros(len(values), dtype=np.intp)
    codes[kept] = inverse.reshape(-1)
    return codes, len(unique)


def names_or_positions(names: Sequence[str] | None, columns: Positions) -> list[Any]:
    """Name columns the way the user knows them: by name, or by position where X has none."""
    return [column if names is None else names[column] for column in columns]
