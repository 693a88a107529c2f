"""The rows of a fit, read again by methods that need more than the fitted model.

A model from formulas remembers which columns of the data frame hold weights and clusters. Arrays
are not kept: methods that need them ask for them, and never ignore them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from heckmanfa.data.arrays import is_dask, on_host
from heckmanfa.data.columns.column_numbers import as_table
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.group_cells import MOST_CLUSTERINGS
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Positions, Rows, one_blas_thread
from heckmanfa.data.sample import Sample, find_row_source
from heckmanfa.data.survey_rows import survey_rows
from heckmanfa.errors import HeckmanfaWarning, InputError, NotIdentifiedError, UnknownFeatureError
from heckmanfa.fit import Fit, Origin, PassedRows, compress_sample, sample_of
from heckmanfa.model.covariance import CLASSICAL, sums_groups
from heckmanfa.model.equations import with_selection_features
from heckmanfa.model.likelihood import JointMaximum
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

# Factors of the same rows in the same order differ only by rounding.
_TOLERANCE = 1e-6
_EQUALLY = ", or sample_weight=1 to let all rows count the same"


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit, and what the fit computed from them."""

    table: FeatureTable
    sample: Sample
    rows: Rows
    """the rows that both equations were fitted to"""
    probit: Probit
    moments: Moments
    design: FormulaDesign | None
    """the columns that the formulas made; None for a model from arrays"""


@dataclass(frozen=True)
class ReadRows:
    """Rows as they were passed to ``fit``, before anything is computed from them."""

    table: FeatureTable
    sample: Sample
    design: FormulaDesign | None
    """the columns that the formulas made; None for a model from arrays"""


def read_fit_rows(fit: Fit, passed: PassedRows, *, clusters: bool = False) -> FitRows:
    """Read the rows that a model was fitted to, passed as they were to ``fit``; refuse others.

    For a model from formulas, X is the data frame, and y and ``selected`` are None. ``clusters``
    says whether the clusters of the fit are needed.
    """
    probit_of(fit, "there is no selection to examine")
    return _compressed(fit, _read_rows(fit, passed, clusters=clusters))


def _compressed(fit: Fit, read: ReadRows) -> FitRows:
    """Compute again what the fit computed from its rows; refuse other rows."""
    sample = read.sample
    if sample.all_selected and fit.family.needs_missing:
        raise _other_rows(fit, sample, "no outcome is missing in the rows given")
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        selection, moments = compress_sample(fit.spec, sample)
        if fit.search is not None and fit.search.selecting is not None and fit.probit is not None:
            kept = fit.probit.features, fit.labels
            selection, moments = with_selection_features(selection, moments, *kept)
    if not _same(moments, fit.moments):
        raise _other_rows(fit, sample, "the rows given are not those of the fit")
    return FitRows(read.table, sample, selection.rows, selection.probit, moments, read.design)


def _read_rows(fit: Fit, passed: PassedRows, *, clusters: bool = False) -> ReadRows:
    """Read rows as `read_fit_rows` does, without a test that they are those of the fit."""
    spec, design = fit.spec, None
    X, y, selected, sample_weight, groups = passed
    by_column = fit.origin.design is not None or isinstance(X, RowSource)
    if spec.family.sees_everyone and selected is None and not by_column:
        raise InputError(
            "everyone has an outcome, so y does not say who is treated: pass treated=, as to fit"
        )
    survey = spec.survey
    if survey is not None:
        rest, weight, units = survey_rows(survey, X, sample_weight, groups)
        if fit.origin.design is None:
            X, sample_weight, groups = rest, weight, units
    with warnings.catch_warnings(), one_blas_thread():
        # The fit has already given these warnings.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        if fit.origin.design is not None:
            if y is not None or selected is not None:
                raise InputError(
                    "the formulas define the outcome and who is selected: pass the data frame alone"
                )
            if survey is not None:
                sample_weight, groups = weight, units
            sample_weight = weights_of(fit, X, sample_weight, other_rows=False)
            design = FormulaDesign.build(
                *fit.origin.design.texts,
                X,
                labels=fit.family.reads_labels,
                weight=sample_weight,
                reference=fit.origin.design.reference,
                everyone=fit.family.sees_everyone,
            )
            groups = groups_of(fit, X, groups) if clusters and survey is None else groups
            sample_weight = design.rows_of(X, sample_weight, "sample_weight")
            groups = design.rows_of(X, groups, "groups")
            X, y, selected = design.features, design.outcome, design.selected
        source = find_row_source(X, y, selected, sample_weight, groups)
        # Inference runs in NumPy, wherever the model was fitted.
        X, y, selected = on_host(X), on_host(y), on_host(selected)
        if source is None or not source.has_weight:
            sample_weight = weights_of(fit, X, sample_weight, other_rows=False)
        if clusters and (source is None or not source.has_groups):
            groups = groups_of(fit, X, groups)
        if not sums_groups(spec.cov_type) and groups is not None:
            raise InputError("groups are used with cov_type='cluster' only; drop groups")
        # Rows that the fit left out may have levels that it did not have.
        columns = spec.columns.as_fitted()
        table = read_features(X if source is None else source, columns, unknown="missing")
        passed = PassedRows(X, y, selected, sample_weight, groups)
        sample = sample_of(spec, table, passed, fit.origin.classes)
    return ReadRows(table, sample, design)


def rows_for_pictures(fit: Fit, passed: PassedRows) -> tuple[Rows, ReadRows | FitRows]:
    """Return the rows that a model was fitted to, and what was read with them.

    Rows in memory are compared with those of the fit by their moments; rows that are not, and
    rows without selection, by their number.
    """
    as_passed = _read_rows(fit, passed)
    sample = as_passed.sample
    decided = fit.row_counts.get("left_out_separation", 0)
    if fit.probit is not None and (sample.rows.in_memory or decided):
        read = _compressed(fit, as_passed)
        return read.rows, read
    kinds = ("selected", "unselected")
    if any(sample.row_counts[kind] != fit.row_counts[kind] for kind in kinds):
        raise _other_rows(fit, sample, "the rows given are not those of the fit")
    return sample.rows, as_passed


def probit_of(fit: Fit, consequence: str) -> Probit:
    """Return the selection equation; refuse a fit without one, for the consequence stated."""
    if fit.probit is None:
        raise NotIdentifiedError(f"no outcome was missing in the fit, so {consequence}")
    return fit.probit


def require_rows(fit: Fit, passed: PassedRows, method: str) -> None:
    """Refuse a method that needs the rows of the fit and was given none."""
    if passed.X is None:
        needed = "X and y" if fit.origin.design is None else "the data frame"
        raise InputError(
            f"{method} needs the rows of the fit, for which the {fit.family.words.model} has no "
            f"compressed data: pass {needed} as they were passed to the fit"
        )


def refit_by_likelihood(
    fit: Fit,
    read: FitRows,
    features: Positions,
    *,
    classical: bool = False,
    alone: bool = False,
) -> JointMaximum | str:
    """Fit other prediction features by maximum likelihood; return the reason if that fails.

    The covariance is of the model's kind, unless it is to be classical; with clusters, the rows
    must have been read with them. Other maxima are looked for, unless the one reached is wanted
    ``alone``.
    """
    kind = CLASSICAL if classical else fit.spec.covariance_kind(read.sample.cells)
    # Start from the rho of the model's own start, so both reach the same maximum.
    start = fit.spec.start_elsewhere
    rows = read.moments, read.probit, read.rows
    fit.family.require("refits")
    assert fit.family.refit is not None
    return fit.family.refit(*rows, sorted(features), kind, start, alone=alone)


def _same(moments: Moments, fitted: Moments) -> bool:
    if moments.columns != fitted.columns or moments.factor.shape != fitted.factor.shape:
        return False
    lengths = np.linalg.norm(fitted.factor, axis=0)
    # A triangular factor is unique except for the signs of its rows.
    ours, theirs = (
        factor * np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
        for factor in (moments.factor, fitted.factor)
    )
    return bool(np.all(np.abs(ours - theirs) <= _TOLERANCE * lengths))


def _other_rows(fit: Fit, sample: Sample, problem: str) -> InputError:
    passed, fitted = sample.row_counts, fit.row_counts
    as_passed = (
        "pass X and y (and selected, sample_weight) as they were passed to fit"
        if fit.origin.design is None
        else "pass the data frame (and sample_weight) as it was passed to from_formula"
    )
    if all(passed[kind] == fitted[kind] for kind in ("selected", "unselected")):
        return InputError(
            f"{problem}: as many rows are selected and not selected as in the fit, but their "
            f"values or weights differ. {as_passed[0].upper()}{as_passed[1:]}."
        )
    return InputError(
        f"{problem}: {as_passed}. Here "
        f"{passed['selected']} rows are selected and {passed['unselected']} are not; in the fit "
        f"{fitted['selected']} were and {fitted['unselected']} were not."
    )


def weights_of(fit: Fit, X: Any, sample_weight: Any, *, other_rows: bool) -> Any:
    """Return the weights that a method was given, or the column that the model remembers.

    None if the fit had no weights. ``other_rows`` says whether X may hold other rows than the fit,
    which have weights of their own.
    """
    if sample_weight is not None or not fit.weighted:
        return sample_weight
    instead = _EQUALLY if other_rows else ""
    column = _remembered_column(fit.origin, X, fit.origin.weight_column, "sample_weight", instead)
    # Only a survey names a column of X.
    return column if fit.origin.design is not None else column_or_values(X, column, "sample_weight")


def groups_of(fit: Fit, X: Any, groups: Any, what: str = "groups") -> Any:
    """Return the clusters that a method was given, or the column that the model remembers."""
    if groups is not None or fit.spec.cov_type != "cluster":
        return groups
    instead = ", or unit='row' to draw single rows" if what == "unit" else ""
    names = fit.origin.clusterings
    if len(names) < MOST_CLUSTERINGS:
        return _remembered_column(fit.origin, X, fit.origin.group_column, what, instead)
    if what == "unit":
        raise InputError(
            "errors are clustered by two columns, and a bootstrap draws the groups of one: pass "
            f"unit, {quoted(names[0])} or {quoted(names[1])}{instead}"
        )
    return [_remembered_column(fit.origin, X, name, what, instead) for name in names]


def weight_column_of(origin: Origin, X: Any) -> str:
    """Return the column of other rows that holds the weights, as the fit had them."""
    return _remembered_column(origin, X, origin.weight_column, "sample_weight", _EQUALLY)


def _remembered_column(origin: Origin, X: Any, column: str | None, what: str, instead: str) -> str:
    had = "weights" if what == "sample_weight" else "clusters"
    if column is None:
        how = "" if origin.design is None else " that came as an array"
        raise InputError(
            f"the model was fitted with {had}{how}: pass {what}, with one entry for each row here"
            f"{instead}"
        )
    names = [str(name) for name in _frame(X).columns]
    if column not in names:
        raise UnknownFeatureError(
            f"the model was fitted with {had} from the column {quoted(column)}, which these data "
            f"do not have{nearest(column, names) or '.'} Pass {what}, a column or one entry for "
            f"each row{instead}"
        )
    return column


def take_column(fit: Fit, X: Any, name: str, what: str, choices: str) -> tuple[Any, Any]:
    """Return X without a column unless it is a feature, and that column.

    ``choices`` says in messages what else than an entry for each row ``what`` may be.
    """
    frame = nw.from_native(as_table(X), eager_only=True, pass_through=True)
    columns = list(frame.columns) if isinstance(frame, nw.DataFrame) else []
    if name not in columns:
        raise UnknownFeatureError(
            f"{what} must be {choices} or an entry for each row; X has no column "
            f"{quoted(name)}" + nearest(name, [str(other) for other in columns])
        )
    # By position: Polars takes some names for patterns.
    place = columns.index(name)
    values = frame[:, place].to_native()
    if name not in (fit.spec.columns.names or columns):
        others = [position for position in range(len(columns)) if position != place]
        return frame[:, others].to_native(), values
    return X, values


def column_or_values(frame: Any, values: Any, what: str, *, keep: bool = False) -> Any:
    """Return the named column of a frame; values that are not a name are returned as they are.

    A column is an array, unless ``keep`` asks for it with its type.
    """
    if not isinstance(values, str):
        return values
    data = _frame(frame)
    if values not in data.columns:
        raise UnknownFeatureError(
            f"{what}: the data has no column {quoted(values)}"
            + nearest(values, [str(name) for name in data.columns])
        )
    return data[values] if keep or is_dask(frame) else data[values].to_numpy()


def _frame(X: Any) -> Any:
    return X if is_dask(X) else to_pandas(X)
