"""Cells of rows: combinations of discrete columns, or parts of a column of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import ndtr

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_numbers import as_table, numeric_array
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import linear
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.group_cells import labelled_groups
from heckmanfa.data.outcome_classes import labels_of
from heckmanfa.data.rows import ArrayRows, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.inference.bounds.reading import Read, length_of
from heckmanfa.model.probit import fit_probit, selection_coordinates
from heckmanfa.model.worst_case import Codes
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

_MOST = 200
_MANY_VALUES = 20


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of rows, in order."""

    codes: Codes
    """(n,)"""
    labels: tuple[str, ...]


def combinations(covariates: Any, found: Read) -> Cells:
    """Return a cell for each combination of the values of discrete columns."""
    columns = _columns(covariates, len(found.used))
    codes, labels = np.zeros(len(found.rows.outcome), dtype=np.intp), [""]
    for column in columns:
        own, values = labelled_groups(column, found.used, "covariates")
        spelled = [label_of(value) for value in values]
        joint = codes * len(spelled) + own[found.used]
        known, codes = np.unique(joint, return_inverse=True)
        labels = [
            ", ".join(filter(None, (labels[place // len(spelled)], spelled[place % len(spelled)])))
            for place in known
        ]
        if len(labels) > _MOST:
            raise InputError(
                f"{option('covariates')} make more than {_MOST} cells: pass fewer or coarser "
                f"columns, or {option('bins', 5)}, which cuts the probability of being observed"
            )
    return Cells(codes.reshape(-1), tuple(labels))


def _columns(covariates: Any, n: int) -> list[Any]:
    """Return the columns of a frame or an array."""
    if length_of(covariates, "covariates") != n:
        raise InputError(f"covariates has {len(covariates):,} rows, and y {n:,}")
    frame = nw.from_native(as_table(covariates), eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [frame[:, place].to_native() for place in range(frame.shape[1])]
    array = covariates if np.ndim(covariates) == 1 else np.asarray(covariates)
    return [array] if np.ndim(array) == 1 else [*array.T]


def probability_bins(covariates: Any, bins: int, found: Read) -> Cells:
    """Cut the probability of being observed, by a probit on the covariates, into equal parts."""
    if np.ndim(covariates) == 1:
        series = nw.from_native(as_table(covariates), allow_series=True, pass_through=True)
        is_series = isinstance(series, nw.Series)
        covariates = series.to_frame().to_native() if is_series else np.asarray(covariates)[:, None]
    table = read_features(covariates, "bounds.lee", categorical="from_dtype")
    if table.n_rows != len(found.used):
        raise InputError(f"covariates has {table.n_rows:,} rows, and y {len(found.used):,}")
    columns = list(range(table.shape[1]))
    names = table.labels(columns)
    outcome, seen, weight = np.zeros((3, table.n_rows))
    seen[found.used], weight[found.used] = found.rows.seen, found.rows.weight
    kept = None if found.used.all() else found.used
    rows = ArrayRows(table.source(columns), outcome, seen == 1, weight, None, kept)
    with one_blas_thread():
        probit = fit_probit(rows, columns, selection_coordinates(rows, columns, names))
        index = probit.coef[0] + linear(table, columns, probit.coef[1:])
    return number_bins(ndtr(np.asarray(index)[found.used]), bins)


def ordered_cells(values: Any, bins: int | None, found: Read, what: str) -> Cells:
    """Return the cells of a column of numbers in their order: its values, or equal parts.

    Ordered categories have the order that they declare.
    """
    labels = labels_of(values, len(found.used))
    if labels.order:
        places = [labels.order.index(label) for label in labels.distinct]
        values = np.array([*places, np.nan])[labels.codes]
    numbers = numeric_array(values, what).astype(np.float64)
    if numbers.ndim != 1 or len(numbers) != len(found.used):
        raise InputError(f"{what} must have one number for each of the {len(found.used):,} rows")
    numbers = numbers[found.used]
    bad = int((~np.isfinite(numbers)).sum())
    if bad:
        raise InputError(f"{option(what)} is missing or infinite in {plural(bad, 'row')}")
    if bins is not None:
        return number_bins(numbers, bins)
    known, codes = np.unique(numbers, return_inverse=True)
    if len(known) > _MANY_VALUES:
        raise InputError(
            f"{option(what)} has {len(known):,} values, each of which would be a cell: pass "
            f"{option('bins', 5)}, or cut it into classes"
        )
    spelled = [labels.order[int(value)] if labels.order else value for value in known]
    return Cells(codes.reshape(-1), tuple(map(label_of, spelled)))


def number_bins(values: Floats, bins: Any) -> Cells:
    """Cut numbers at their quantiles into so many parts; ties stay together."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= _MOST:
        raise InputError(
            f"{option('bins')} must be an integer from 2 to {_MOST}; got {quoted(bins)}"
        )
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    raw = np.searchsorted(edges, values, side="left")
    known, codes = np.unique(raw, return_inverse=True)
    limits = [f"{edge:.4g}" for edge in edges]
    labels = [
        f"up to {limits[place]}" if place < len(limits) else f"above {limits[-1]}"
        for place in known
    ]
    return Cells(codes.reshape(-1), tuple(labels))
