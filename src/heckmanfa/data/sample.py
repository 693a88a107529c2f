"""From what the user passes (arrays, frames, series) to rows, with every row accounted for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import InvalidParameterError

from heckmanfa.data.arrays import (
    Array,
    Floats,
    booleans,
    highest,
    host,
    integers,
    is_dask,
    is_tensor,
    like,
    lowest,
    namespace,
)
from heckmanfa.data.columns.column_numbers import (
    as_table,
    entries,
    floats,
    missing_in,
    numbers,
    plain_array,
)
from heckmanfa.data.columns.feature_tables import read_features
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.dask.dask_rows import dask_source
from heckmanfa.data.row_checks import (
    Outcomes,
    bad_weights,
    check_enough,
    check_frequencies,
    check_outcome,
    groupless,
    is_known_only,
    refuse_not_finite,
)
from heckmanfa.data.row_counts import Census, count_parts, rows_in_parts
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import ArrayRows, Block, Mask, Positions, Rows, held
from heckmanfa.data.tensors import column_beside, on_host
from heckmanfa.errors import (
    HeckmanfaError,
    InputError,
    InputTypeError,
    TooFewRowsError,
)
from heckmanfa.text.printable import quoted

__all__ = [
    "Sample",
    "check_parameters",
    "find_row_source",
    "flags",
    "group_codes",
    "n_fractions",
    "read_features",
    "read_outcome",
    "read_sample",
    "read_weights",
    "reweighted",
]


@dataclass(frozen=True)
class Sample:
    """The rows of a fit and what became of each."""

    rows: Rows
    row_counts: dict[str, int]
    n_groups: int
    all_selected: bool


def check_parameters(estimator: BaseEstimator) -> None:
    """Refuse parameters that are no choice; a list of columns that came as one text first."""
    for role in ("prediction_features", "selection_features", "always", "never"):
        one = getattr(estimator, role, None)
        if isinstance(one, str):
            raise InputError(
                f"{role} must be a list of columns: write [{quoted(one)}], not {quoted(one)}"
            )
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise InputError(str(error)) from error


def find_row_source(
    X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any
) -> RowSource | None:
    """Return where rows are that are not in memory, or None where they are.

    Parameters
    ----------
    X, y, selected, sample_weight, groups
        As they are passed to a fit.

    Returns
    -------
    RowSource or None
    """
    if isinstance(X, RowSource):
        given = {"y": y, "selected": selected, "sample_weight": sample_weight, "groups": groups}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise InputError(
                f"these rows say themselves what {extra[0]} is: call fit(rows) alone, and name "
                "the columns where the rows are made"
            )
        return X
    if is_dask(X):
        return dask_source(X, y, selected, sample_weight, groups)
    return None


def read_outcome(y: Any, n_rows: int) -> Floats:
    """Take in an outcome as float64, missing values as NaN."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: pass the outcome, "
            "NaN where it is missing"
        )
    if is_dask(y) or isinstance(y, RowSource):
        kind = f"Dask {type(y).__name__}" if is_dask(y) else type(y).__name__
        raise InputTypeError(
            f"X is in memory, but y is a {kind}: pass both in memory, or both as Dask collections"
        )
    values = _vector(on_host(y), "y")
    if values.dtype.kind not in "biuf":
        values = floats(values, "y")
    outcome = np.asarray(values, dtype=np.float64)
    if len(outcome) != n_rows:
        raise InputError(
            f"X and y have inconsistent numbers of samples: X has {n_rows} rows, y {len(outcome)}"
        )
    return outcome


def read_sample(
    table: FeatureTable,
    y: Any,
    *,
    selected: Any,
    sample_weight: Any,
    groups: Any,
    sampling: bool | None,
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
    sampling : bool or None
        Whether weights are sampling weights, which are rescaled to mean one; None in a model that
        knows none.
    selection, prediction : sequence of int
        The columns of each equation.

    Returns
    -------
    Sample
    """
    if isinstance(table.native, RowSource):
        # It says itself what y and the others are.
        return _sample_in_parts(table, sampling, selection, prediction)
    n = table.shape[0]
    outcome: Array = y if table.tensors and is_tensor(y) else read_outcome(y, n)
    if table.tensors:
        outcome = column_beside(outcome, table.native, "y")
    observed = ~namespace(outcome).isnan(outcome)
    chosen = observed
    if selected is not None:
        chosen = booleans(flags(on_host(selected), n), outcome)
    counts = {
        "total": n,
        "left_out_outcome_missing": int((chosen & ~observed).sum()),
        "left_out_zero_weight": 0,
    }
    kept = ~(chosen & ~observed)
    weight: Array | None = None
    if sample_weight is not None:
        given = read_weights(on_host(sample_weight), n)
        weight = like(given, outcome)
        weightless = kept & (weight == 0)
        counts["left_out_zero_weight"] = int(weightless.sum())
        kept &= ~weightless
        if not sampling:
            in_fit = given[host(kept)]
            own = sampling is not None
            check_frequencies(n_fractions(given), len(in_fit), float(in_fit.sum()), own=own)
        elif kept.any():
            weight = weight / weight[kept].mean()
    counts |= _checked_counts(outcome, chosen, kept, len(selection))
    codes, n_groups = None, 0
    if groups is not None:
        codes, n_groups = group_codes(on_host(groups), host(kept))
        codes = integers(codes, outcome)
    columns = sorted({*selection, *prediction})
    rows = ArrayRows(
        source=table.source(columns),
        outcome=outcome,
        selected=chosen,
        weight=weight,
        group=codes,
        kept=None if kept.all() else kept,
    )
    _check_features(rows, table, selection, prediction, counts)
    return Sample(rows, counts, n_groups, counts["unselected"] == 0)


def reweighted(sample: Sample, weight: Floats, *, n_selection: int) -> Sample:
    """Give the rows of a sample other weights; those of weight zero are left out.

    Parameters
    ----------
    sample : Sample
    weight : (n,) ndarray
        Zero or more for each row that there is, those of no part in ``sample`` among them.
    n_selection : int
        How many selection features there are.

    Returns
    -------
    Sample
        Without groups; what its counts say is about distinct rows.
    """
    rows = held(sample.rows, "this")
    kept = weight > 0 if rows.kept is None else rows.kept & (weight > 0)
    counts = sample.row_counts | _checked_counts(rows.outcome, rows.selected, kept, n_selection)
    part = replace(rows, weight=weight, kept=None if kept.all() else kept, group=None)
    return Sample(part, counts, 0, counts["unselected"] == 0)


def _sample_in_parts(
    table: FeatureTable, sampling: bool | None, selection: Positions, prediction: Positions
) -> Sample:
    """Apply the row rules to rows that stay where they are."""
    home = table.native
    columns = sorted({*selection, *prediction})
    census = count_parts(home, columns, [one in set(selection) for one in columns])
    n = sum(census.lengths.values())
    if n == 0:
        raise TooFewRowsError(f"the {home.described} are 0 rows; there is nothing to fit")
    if census.bad_flags:
        raise InputError(
            f"selected must be true or false (or 1 and 0) in every row; {_about_flags(census)}"
        )
    if census.bad_weights:
        raise InputError(bad_weights(census.bad_weights))
    if census.groupless:
        raise InputError(groupless("groups", census.groupless))
    if home.has_weight and not sampling:
        kept = census.selected + census.unselected
        own = sampling is not None
        check_frequencies(census.fractions, kept, census.weight_sum, own=own)
    counts = {
        "total": n,
        "left_out_outcome_missing": census.outcome_missing,
        "left_out_zero_weight": census.zero_weight,
        "selected": census.selected,
        "unselected": census.unselected,
    }
    if home.drops_missing:
        counts["left_out_regressor_missing"] = census.incomplete
    check_outcome(
        Outcomes(census.selected, census.infinite_outcomes, census.low, census.high, census.binary),
        n,
    )
    check_enough(counts, len(selection))
    needed = np.array([one in set(selection) for one in columns], dtype=bool)
    known = needed & census.known_only_for_selected()
    # Where rows that miss a feature are left out, these columns leave no unselected row.
    missing = np.where(known, census.gaps, census.missing)
    inside = np.broadcast_to(census.gaps_selected, (len(columns),))
    refuse_not_finite(table, columns, missing, census.infinite, known, census.not_chosen, inside)
    rows = rows_in_parts(home, columns, census, sampling=bool(sampling))
    n_groups = 0 if census.groups is None else len(census.groups)
    return Sample(rows, counts, n_groups, census.unselected == 0)


def _about_flags(census: Census) -> str:
    """Say what rows hold that do not say whether they are selected."""
    rows = "1 row" if census.bad_flags == 1 else f"{census.bad_flags} rows"
    if census.odd_flag is None:
        return f"it is missing in {rows}"
    verb = "holds" if census.bad_flags == 1 else "hold"
    return f"{rows} {verb} something else, such as {quoted(census.odd_flag)}"


def _checked_counts(outcome: Array, chosen: Array, kept: Array, n_selection: int) -> dict[str, int]:
    """Count the rows of a fit by whether they are selected, and refuse too few."""
    in_fit = chosen & kept
    counts = {"selected": int(in_fit.sum()), "unselected": int((kept & ~chosen).sum())}
    values = outcome if in_fit.all() else outcome[in_fit]
    low, high = lowest(values), highest(values)
    binary = bool(low == 0 and high == 1 and ((values == 0) | (values == 1)).all())
    infinite = int(namespace(values).isinf(values).sum())
    check_outcome(Outcomes(len(values), infinite, low, high, binary), len(outcome))
    check_enough(counts, n_selection)
    return counts


def _check_features(
    rows: Rows,
    table: FeatureTable,
    selection: Positions,
    prediction: Positions,
    counts: dict[str, int],
) -> None:
    """Refuse missing or infinite values in rows that need them, saying where."""
    columns = sorted({*selection, *prediction})
    everywhere = np.array([column in set(selection) for column in columns], dtype=bool)
    missing = np.zeros(len(columns), dtype=np.int64)
    infinite = np.zeros(len(columns), dtype=np.int64)
    in_selected = np.zeros(len(columns), dtype=np.int64)
    for part in rows.map(_not_finite, everywhere, columns=columns):
        if part is not None:
            missing += part[0]
            infinite += part[1]
            in_selected += part[2]
    n_unselected = counts["unselected"]
    known = everywhere & is_known_only(
        missing - in_selected, in_selected, n_unselected, counts["selected"]
    )
    refuse_not_finite(table, columns, missing, infinite, known, n_unselected, in_selected)


def _not_finite(
    block: Block, everywhere: Mask
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Count missing values, infinite ones, and missing ones of selected rows, by column."""
    finite: Array = namespace(block.features).isfinite(block.features)
    if finite.all():
        return None
    finite, chosen = host(finite), host(block.selected)
    needed = everywhere[None, :] | chosen[:, None]
    missing = np.isnan(host(block.features)) & needed
    count = missing.sum(axis=0)
    return count, (~finite & needed).sum(axis=0) - count, missing[chosen].sum(axis=0)


def _column(values: Any, what: str) -> Any:
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return numbers(series, what)
    frame = nw.from_native(as_table(values), eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and frame.shape[1] == 1:
        return numbers(frame[:, 0], what)
    return plain_array(values)


def _vector(values: Any, what: str) -> NDArray[Any]:
    """One column of what was passed beside X."""
    if sparse.issparse(values):
        raise InputTypeError(f"{what} is a sparse matrix; call .toarray() on it first")
    try:
        array = np.asarray(_column(values, what))
    except HeckmanfaError:
        raise
    except TypeError as error:
        raise InputTypeError(f"{what}: {error}") from error
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"{what}: {error}") from error
    if array.ndim == 0:
        raise InputTypeError(f"{what} should be a 1d array, got a {type(values).__name__} instead")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise InputError(
            f"{what} should be a 1d array, got an array of shape {array.shape} instead"
        )
    # scikit-learn warns of an outcome that is a matrix of one column.
    return np.asarray(column_or_1d(array, warn=what == "y"))


def flags(selected: Any, n: int) -> Mask:
    """Take in who is selected, as booleans."""
    values = _vector(selected, "selected")
    if values.dtype.kind not in "biuf":
        values = floats(values, "selected")
    if len(values) != n:
        raise InputError(f"selected has {len(values)} entries, but X has {n} rows")
    if values.dtype == np.bool_:
        return np.asarray(values)
    if values.dtype.kind in "iuf" and np.all((values == 0) | (values == 1)):
        return np.asarray(values == 1)
    raise InputError(
        "selected must be boolean (or 0 and 1) for every row; it holds other or missing values"
    )


def read_weights(sample_weight: Any, n: int) -> Floats:
    """Take in weights of zero or more, one for each of n rows or one for all."""
    values = np.asarray(_column(sample_weight, "sample_weight"))
    if values.dtype.kind not in "biuf":
        values = floats(values, "sample_weight")
    values = values.astype(np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar; got {values.ndim}D")
    if len(values) != n:
        raise InputError(f"sample_weight has {len(values)} entries, but X has {n} rows")
    bad = np.count_nonzero(~np.isfinite(values) | (values < 0))
    if bad:
        raise InputError(bad_weights(int(bad)))
    if not values.any():
        raise InputError("sample_weight is zero in every row")
    return values


def n_fractions(weight: Floats) -> int:
    """Count the weights that are not whole numbers."""
    return int(np.count_nonzero(weight != np.floor(weight)))


def group_codes(groups: Any, kept: Mask, what: str = "groups") -> tuple[NDArray[np.intp], int]:
    """Number the groups of the rows that are kept, from 0, and count them."""
    values = entries(groups, what)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) != len(kept):
        raise InputError(f"{what} must have one entry for each of the {len(kept)} rows of X")
    missing = missing_in(values)
    if np.any(missing & kept):
        raise InputError(groupless(what, int(np.count_nonzero(missing & kept))))
    # Codes only over rows in the fit, so that no empty group is counted.
    try:
        unique, inverse = np.unique(values[kept], return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(one).__name__ for one in values[kept]})
        verb = "mixes" if len(kinds) > 1 else "holds objects of type"
        raise InputTypeError(
            f"{what} {verb} {' and '.join(kinds)}, which cannot be sorted: give every group a "
            "label of one type, for example with .astype(str)"
        ) from error
    codes = np.zeros(len(values), dtype=np.intp)
    codes[kept] = inverse.reshape(-1)
    return codes, len(unique)
