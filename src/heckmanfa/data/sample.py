"""From the user's arrays, frames and series to rows, with every row accounted for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError

from heckmanfa.data.arrays import (
    Array,
    Floats,
    booleans,
    column_beside,
    host,
    integers,
    is_dask,
    is_tensor,
    like,
    on_host,
)
from heckmanfa.data.columns.column_names import refuse_far_more
from heckmanfa.data.columns.column_numbers import (
    array_of,
    as_numeric,
    numeric_array,
    one_column,
    refuse_name,
)
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.dask_rows import dask_source
from heckmanfa.data.group_cells import Cells, cells_of_labels, read_cells
from heckmanfa.data.missing_features import LostRows, explain_lost, warn_of_lost
from heckmanfa.data.outcome_classes import (
    Classes,
    Learn,
    check_length,
    check_outcome_given,
    encode_classes,
    read_classes,
)
from heckmanfa.data.outcomes import (
    OutcomeTransform,
    on_fit_scale,
    refuse_without_logarithm,
)
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_parts import PartRows, count_parts, learn_classes, rules_of
from heckmanfa.data.row_rules import (
    FeatureCounts,
    RowCounts,
    RowStatus,
    check_rows,
    count_bad_weights,
    count_features,
    count_rows,
    decide_rows,
    read_known_flags,
    read_stored_flags,
    refuse_bad_flags,
    refuse_bad_weights,
    refuse_groupless,
    refuse_not_finite,
)
from heckmanfa.data.row_sources import RowSource, refuse_beside, refuse_no_outcome
from heckmanfa.data.rows import ArrayRows, Block, Mask, Positions, Rows, held
from heckmanfa.data.survey import SurveyUnits
from heckmanfa.data.survey_rows import cells_of_survey, refuse_undesigned
from heckmanfa.errors import (
    FrequencyWeightWarning,
    HeckmanfaError,
    InputError,
    InputTypeError,
    NoOutcomeError,
    warn,
)
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.printable import quoted


@dataclass(frozen=True)
class Sample:
    """The rows of a fit, and whether each was used."""

    rows: Rows
    row_counts: dict[str, int]
    cells: Cells | None
    """units whose codes rows have; None without clusters"""
    all_selected: bool
    classes: Classes | None = None
    """what outcomes of 0 and 1 stand for; None if outcomes are amounts"""
    lost: LostRows | None = None
    """rows that were left out because they lack a feature; None if such rows are refused"""
    level_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """rows that have each level, of the categories whose dummies were all read"""
    replicates: Floats | None = None
    """(n, R) replicate weights of a survey"""


def check_parameters(estimator: BaseEstimator) -> None:
    """Refuse parameters that are not valid, and text in place of a list of columns."""
    listed = ("prediction_features", "selection_features", "always", "never")
    for role in (*getattr(estimator, "roles", ()), *listed):
        value = getattr(estimator, role, None)
        if isinstance(value, str):
            raise InputError(
                f"{role} must be a list of columns: write [{quoted(value)}], not {quoted(value)}"
            )
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise InputError(str(error)) from error


def find_row_source(
    X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any
) -> RowSource | None:
    """Return the row source that the arguments of a fit name; None if the rows are in memory.

    Rows in memory whose labels contradict each other are refused.
    """
    beside = {"y": y, "selected": selected, "sample_weight": sample_weight, "groups": groups}
    if isinstance(X, RowSource):
        refuse_beside(beside)
        refuse_no_outcome(X)
        if X.declared is not None and X.survey is None:
            raise InputError(
                f"these {X.described} were scanned with the design of a survey, and this model "
                f"does not ask for it: pass the same Survey as {option('cov_type')}, or scan them "
                "without it"
            )
        return X
    if is_dask(X):
        return dask_source(X, y, selected, sample_weight, groups)
    match_rows({"X": X} | beside)
    return None


def read_outcome(y: Any, n_rows: int) -> Floats:
    """Read an outcome as float64, missing values as NaN."""
    check_outcome_given(y)
    outcome = np.asarray(_vector(on_host(y), "y"), dtype=np.float64)
    check_length(outcome, n_rows)
    return outcome


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """What is known about n rows in memory besides their features, and what the rules decide."""

    outcome: Array
    """(n,) on the scale of the fit, NaN where missing"""
    weight: Array | None
    """(n,)"""
    status: RowStatus
    classes: Classes | None = None
    """as in `Sample`"""


def read_rows(
    y: Any,
    n: int,
    selected: Any = None,
    sample_weight: Any = None,
    *,
    beside: Array | None = None,
    binary: bool = False,
    classes: Classes | None = None,
    learn: Learn | None = None,
    transform: OutcomeTransform | None = None,
    everyone: bool = False,
    outside: Mask | None = None,
) -> DecidedRows:
    """Read the outcome of n rows in memory and the columns beside it, and apply the row rules.

    ``beside`` is X if it is a tensor: the columns are then tensors on its device. A ``binary``
    outcome is read as 0 and 1, by ``classes`` or, without them, by those that it holds, or as
    ``learn`` tells the classes of one that may have more. Amounts are read on the scale that
    ``transform`` names. ``everyone`` and ``outside`` are as in `decide_rows`.
    """
    tensors = beside is not None
    flagged: Mask | None = None
    unknown: Mask | None = None
    if everyone and selected is not None:
        flagged, unknown = known_flags(on_host(selected), n)
    elif selected is not None:
        flagged = flags(on_host(selected), n)
    weights = None if sample_weight is None else read_weights(on_host(sample_weight), n)
    outcome: Array
    if binary or learn is not None:
        # Rows without weight are left out, as if they were not there.
        used = flagged
        if weights is not None:
            used = weights > 0 if flagged is None else flagged & (weights > 0)
        if classes is None:
            outcome, classes = read_classes(y, n, used, learn)
        else:
            outcome = encode_classes(y, n, classes, used)
    else:
        outcome = y if tensors and is_tensor(y) else read_outcome(y, n)
    if tensors:
        outcome = column_beside(outcome, beside, "y")
    chosen = None if flagged is None else booleans(flagged, outcome)
    weight = None if weights is None else like(weights, outcome)
    unseen = None if unknown is None else booleans(unknown, outcome)
    apart = None if outside is None else booleans(outside, outcome)
    status = decide_rows(outcome, chosen, weight, None, unseen, apart, everyone=everyone)
    outcome = on_fit_scale(outcome, status.with_outcome, transform)
    return DecidedRows(outcome, weight, status, classes)


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
    required: Positions | None = None,
    binary: bool = False,
    classes: Classes | None = None,
    learn: Learn | None = None,
    transform: OutcomeTransform | None = None,
    everyone: bool = False,
) -> Sample:
    """Read the rows of a fit: who is selected, who is left out, and why.

    ``sampling`` says whether weights are sampling weights, which are rescaled to mean one; it is
    None for a model that does not support them. ``selection`` and ``prediction`` are the columns of
    each equation; the ``required``, by default the former, must be known in every row, others in
    selected rows. ``binary``, ``classes``, ``learn``, ``transform`` and ``everyone`` are as in
    `read_rows`.
    """
    columns, sizes = sorted({*selection, *prediction}), (len(selection), len(prediction))
    everywhere = np.isin(columns, list(selection if required is None else required))
    made = table.dummies
    dummies = [place for place, column in enumerate(columns) if column in made]
    source = table.native
    lost: LostRows | None = None
    rows: Rows
    units = groups if isinstance(groups, SurveyUnits) else None
    outside = None if units is None else units.outside
    has_subpop = outside is not None
    if isinstance(source, RowSource):
        # The source itself knows y and the others.
        if (binary or learn is not None) and classes is not None:
            source = source.reading_outcome(classes)
        elif binary or learn is not None:
            source, classes = learn_classes(source, learn)
        lengths, counts = count_parts(
            source, columns, everywhere, transform, dummies, everyone=everyone
        )
        if source.drops_missing:
            lost = counts.gaps.lost(table.sources(columns))
        has_subpop = source.has_subpop
        with explain_lost(lost):
            if source.survey is not None:
                refuse_undesigned(source.survey, counts)
            _check_counts(counts, sizes, classes, transform, source.has_weight, sampling)
        if lost is not None:
            warn_of_lost(lost)
        features, cells = counts.features, None
        if counts.groups is not None:
            cells = cells_of_labels(counts.groups, max(len(source.groupings), 1))
            if source.survey is not None:
                cells = cells_of_survey(source.survey, counts.groups, source.groupings)
        rules = rules_of(source, columns, counts, sampling, transform, everyone=everyone)
        rows = PartRows(source, rules, lengths, tuple(columns), counts.sums)
    else:
        read = read_rows(
            y,
            table.n_rows,
            selected,
            sample_weight,
            beside=source if table.tensors else None,
            binary=binary,
            classes=classes,
            learn=learn,
            transform=transform,
            everyone=everyone,
            outside=outside,
        )
        weight, kept, classes = read.weight, read.status.kept, read.classes
        counts = count_rows(read.status, read.outcome, weight, transform=transform)
        _check_counts(counts, sizes, classes, transform, weight is not None, sampling)
        if sampling and weight is not None:
            weight = weight / (counts.weight_sum / counts.kept)
        codes, cells = None, None
        if units is not None:
            codes, cells = integers(units.codes, read.outcome), units.cells
        elif groups is not None:
            codes, cells = read_cells(on_host(groups), host(kept))
            codes = integers(codes, read.outcome)
        rows = ArrayRows(
            source=table.source(columns),
            outcome=read.outcome,
            selected=read.status.selected,
            weight=weight,
            group=codes,
            kept=None if kept.all() else kept,
        )
        counted = rows.map(_feature_counts, everywhere, dummies, columns=columns)
        features = sum(counted, FeatureCounts())
    refuse_not_finite(table, columns, features, everywhere)
    public = counts.public(incomplete=lost is not None, subpop=has_subpop)
    levels = table.columns.rows_by_level(columns, features.ones, features.zeros)
    replicates = None if units is None else units.replicates
    return Sample(rows, public, cells, counts.unselected == 0, classes, lost, levels, replicates)


def _feature_counts(block: Block, everywhere: Mask, dummies: Positions) -> FeatureCounts:
    return count_features(block.features, block.selected, everywhere, dummies=dummies)


def _check_counts(
    counts: RowCounts,
    sizes: tuple[int, int],
    classes: Classes | None,
    transform: OutcomeTransform | None,
    weighted: bool,
    sampling: bool | None,
) -> None:
    """Refuse rows that cannot be fitted, by what was counted.

    ``sizes`` are the numbers of selection and prediction features.
    """
    what = "treated" if counts.everyone else "selected"
    refuse_bad_flags(counts.bad_flags, counts.odd_flag, what)
    refuse_bad_weights(counts.bad_weights)
    refuse_groupless("groups", counts.groupless)
    if weighted and not sampling:
        check_frequencies(counts, own=sampling is not None)
    refuse_without_logarithm(counts.without_logarithm, transform)
    if counts.everyone and not counts.kept:
        raise NoOutcomeError(
            f"none of the {counts.total} rows has both an outcome and a treatment: the outcome is "
            f"missing in {counts.outcome_missing}, and the treatment in {counts.unknown} others"
        )
    check_rows(counts, sizes[0], classes)
    refuse_far_more(sizes[1], counts.selected, "prediction ", "selected rows")


def reweighted(sample: Sample, weight: Array, *, n_selection: int) -> Sample:
    """Give the rows of a sample other weights; those of weight zero are left out.

    ``weight`` (n,) covers rows already left out as well. The result has no groups, and its counts
    are of distinct rows.
    """
    rows = held(sample.rows, "this")
    kept = weight > 0 if rows.kept is None else rows.kept & (weight > 0)
    counts = count_rows(RowStatus(rows.selected, kept), rows.outcome)
    check_rows(counts, n_selection, sample.classes)
    others = replace(rows, weight=weight, kept=None if kept.all() else kept, group=None)
    public = sample.row_counts | {"selected": counts.selected, "unselected": counts.unselected}
    return Sample(others, public, None, counts.unselected == 0, sample.classes)


def _vector(values: Any, what: str) -> NDArray[Any]:
    """Return one column of numbers of what was passed beside X."""
    if sparse.issparse(values):
        raise InputTypeError(f"{what} is a sparse matrix; call .toarray() on it first")
    refuse_name(values, what)
    try:
        array = array_of(values, what)
    except HeckmanfaError:
        raise
    except TypeError as error:
        raise InputTypeError(f"{what}: {error}") from error
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"{what}: {error}") from error
    return as_numeric(one_column(array, values, what), what)


def flags(selected: Any, n: int) -> Mask:
    """Read who is selected, as booleans."""
    values = _vector(selected, "selected")
    if len(values) != n:
        raise InputError(f"selected has {len(values)} entries, but X has {n} rows")
    if values.dtype == np.bool_:
        return np.asarray(values)
    chosen, n_bad, value = read_stored_flags(values)
    refuse_bad_flags(n_bad, value)
    return chosen


def known_flags(selected: Any, n: int) -> tuple[Mask, Mask]:
    """Read who is selected, and of whom that is not known."""
    values = _vector(selected, "treated")
    if len(values) != n:
        raise InputError(f"treated has {len(values)} entries, but X has {n} rows")
    chosen, unknown, n_bad, value = read_known_flags(values)
    refuse_bad_flags(n_bad, value, "treated")
    return chosen, unknown


def read_weights(sample_weight: Any, n: int, *, some: bool = True) -> Floats:
    """Read weights of zero or more, one for each of n rows or one for all.

    ``some`` says whether one must be above zero, as in all rows, but not in a part of them.
    """
    refuse_name(sample_weight, "sample_weight")
    values = numeric_array(sample_weight, "sample_weight").astype(np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.ndim != 1:
        raise InputError(
            f"{option('sample_weight')} must be a 1D array or one number, got shape "
            f"{values.shape}: pass one weight for each row"
        )
    if len(values) != n:
        raise InputError(f"{option('sample_weight')} has {len(values)} entries, but X has {n} rows")
    refuse_bad_weights(count_bad_weights(values))
    if some and not values.any():
        raise InputError(f"{option('sample_weight')} is zero in every row")
    return values


# Frequency weights seldom multiply rows by more; sampling weights nearly always do.
_MANY_TIMES = 10.0
_SURVEY = "If a weight says how many members of a population a row represents, as in a survey,"
_ROBUST = "weight_kind='sampling' with cov_type='robust' or 'cluster'"
_SAMPLING = instead(f"use {_ROBUST}", f"use {option('weight_kind', 'sampling')}")
_ELSEWHERE = instead(
    f"use {_ROBUST} in Heckman and the searches",
    f"use fit with {option('weight_kind', 'sampling')}",
)


def check_frequencies(counts: RowCounts, *, own: bool = True) -> None:
    """Refuse frequency weights that are not integers; warn if they look like sampling weights.

    ``own`` says whether the model being fitted supports sampling weights itself.
    """
    advice = _SAMPLING if own else _ELSEWHERE
    if counts.fractions:
        what = "value that is not an integer"
        if counts.fractions > 1:
            what = "values that are not integers"
        raise InputError(
            f"{option('sample_weight')} holds {counts.fractions:,} {what}, and frequency weights "
            f"count rows: a weight of 2 is two rows. {_SURVEY} {advice}"
        )
    warn_of_frequencies(counts.kept, counts.weight_sum, own=own)


def warn_of_frequencies(rows: int, total: float, *, own: bool = True) -> None:
    """Warn if the weights of rows add up to so much that they look like sampling weights.

    ``own`` is as in `check_frequencies`.
    """
    advice = _SAMPLING if own else _ELSEWHERE
    if rows and total >= _MANY_TIMES * rows:
        warn(
            f"the frequency weights let {rows:,} rows count as {total:,.0f}: standard errors are "
            f"those of {total:,.0f} observed rows. {_SURVEY} they are far too small: {advice}",
            FrequencyWeightWarning,
        )
