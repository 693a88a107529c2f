"""Predictions of a fitted model for rows of X: of the outcome and of selection, with intervals.

Intervals are for a new outcome, or for the expectation itself. Given that its row is selected, an
outcome's error is skewed: see `model.normal`.

An interval of P(s = 1 | x) = Phi(u) is Phi of the ends of the interval of u = z'gamma, so its ends
are probabilities. The standard error of Phi(u) is phi(u) times that of u, by the delta method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    explain_out_of_memory,
    host,
    like,
    on_host,
)
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FeatureTable, linear, same
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.missing_features import Gaps, find_gaps, refuse_gaps
from heckmanfa.data.outcomes import OutcomeTransform, from_log
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Mask, Positions, held, one_blas_thread
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.average_effects import RowLimits, mixed
from heckmanfa.inference.expectations import Estimates, design_blocks, refuse_unknown
from heckmanfa.inference.log_means import check_scale, own_scale_mean, transform_of
from heckmanfa.inference.rows_of_fit import probit_of, read_fit_rows
from heckmanfa.model.expectation_parts import Parts
from heckmanfa.model.links import NormalLink
from heckmanfa.model.normal import selected_quantiles
from heckmanfa.plots.overlap_bars import MillsRatios
from heckmanfa.results.diagnostics import outside, share_outside
from heckmanfa.results.distribution import NullDistribution, check_level, distribution_of, tails
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

Kind = Literal["marginal", "selected", "unselected", "expected"]
KINDS: tuple[Kind, ...] = ("marginal", "selected", "unselected", "expected")
IntervalKind = Literal["prediction", "confidence"]
Scale = Literal["response", "link"]
Missing = Literal["error", "nan"]

# What has no interval of a new outcome, and why.
_NO_NEW_OUTCOME = {
    "expected": "kind='expected': the outcome is 0 in every row that is not selected, so its "
    "distribution has a mass at 0. Use 'confidence'.",
    "selection": "selection: a new row is selected or not. Use 'confidence', the interval of its "
    "probability.",
    "class": "a class: a new outcome is one class or the other. Use 'confidence', the interval of "
    "its probability.",
}
# Rows that a thread works on at once.
_ROWS = 2**13


def check_kind(fit: Fit, kind: str) -> None:
    """Refuse a kind of prediction that does not exist, or that the fit cannot give."""
    if kind not in KINDS:
        raise InputError(
            "kind must be 'marginal', 'selected', 'unselected' or 'expected'; got "
            f"{quoted(kind)}{nearest(str(kind), KINDS)}"
        )
    if kind == "unselected":
        probit_of(fit, "nothing is known about unselected rows")
    refuse_unknown(fit, kind)


def check_interval(return_interval: str, conf_level: float, of: str = "marginal") -> None:
    """Refuse an interval that a kind of prediction does not have, or an invalid level.

    ``of`` is one of `KINDS`, "selection", or "class" for the probability of a class.
    """
    kinds = ["confidence"] if of in _NO_NEW_OUTCOME else ["prediction", "confidence"]
    if return_interval == "prediction" and of in _NO_NEW_OUTCOME:
        raise InputError(
            f"{option('return_interval', 'prediction')} has no meaning for {_NO_NEW_OUTCOME[of]}"
        )
    if return_interval not in kinds:
        raise InputError(
            f"{option('return_interval')} must be {', '.join(map(quoted, kinds))} or None; got "
            f"{quoted(return_interval)}{nearest(str(return_interval), kinds)}"
        )
    check_level(conf_level)


def read_rows(
    fit: Fit, X: Any, *, prediction: bool, selection: bool, missing: str | None = "error"
) -> FeatureTable:
    """Read X for a fitted model; None leaves missing and infinite values to the caller."""
    refuse_rows(X)
    frame, design = X, fit.origin.design
    if design is not None:
        frame = known_levels(design, X, fit.spec.unknown)
        X = design.transform(frame, prediction=prediction, selection=selection)
    table = read_features(X, fit.spec.columns, unknown=fit.spec.unknown)
    if missing is not None:
        gaps = _gaps(fit, table, frame, prediction=prediction, selection=selection)
        if missing == "error":
            refuse_gaps(gaps)
    return table


def known_levels(design: FormulaDesign, X: Any, unknown: Unknown) -> Any:
    """Return rows for formulas; levels that the fit did not have are missing if ``unknown`` is."""
    return design.without_unseen(X) if unknown == "missing" else X


def gaps_by_variable(
    gaps: Gaps, design: FormulaDesign | None, X: Any, *, prediction: bool, selection: bool
) -> Gaps:
    """Return gaps counted by the variables of formulas, if there are any."""
    if not gaps.n_missing or design is None:
        return gaps
    # A row that lacks one variable has no column of that formula.
    names = design.missing_variables(X, prediction=prediction, selection=selection)
    return Gaps(gaps.n_rows, gaps.n_missing, names or gaps.columns)


def _gaps(fit: Fit, table: FeatureTable, X: Any, *, prediction: bool, selection: bool) -> Gaps:
    """Count the rows of X, read as a table, that lack what a prediction needs."""
    columns = {*fit.equation} if prediction else set()
    if selection and fit.probit is not None:
        columns |= {*fit.probit.features}
    gaps = find_gaps(table, sorted(columns))
    return gaps_by_variable(gaps, fit.origin.design, X, prediction=prediction, selection=selection)


def missing_features(fit: Fit, X: Any, kind: str) -> Gaps:
    """Count the rows of X that lack a feature that a prediction of this kind needs."""
    needs = {"prediction": kind != "selection", "selection": kind != "marginal"}
    table, design = read_rows(fit, X, missing=None, **needs), fit.origin.design
    if design is not None:
        X = known_levels(design, X, fit.spec.unknown)
    return _gaps(fit, table, X, **needs)


def prediction_index(fit: Fit, table: FeatureTable) -> Array:
    """Return x'b of each row: the mean of a linear outcome, the index of a binary one."""
    return linear(table, fit.equation, fit.coef) + fit.level


def selection_index(fit: Fit, table: FeatureTable) -> Array:
    """Return the selection index z'gamma of each row."""
    assert fit.probit is not None
    return linear(table, fit.probit.features, fit.selection_coef) + fit.selection_intercept


def predict(
    fit: Fit,
    X: Any,
    kind: str,
    return_interval: str | None,
    conf_level: float,
    missing: str,
    scale: str = "response",
) -> Any:
    """Predict the outcome of each row; see `Heckman.predict`."""
    with_imr = kind != "marginal" and fit.probit is not None
    transform = transform_of(fit, scale)
    with explain_out_of_memory():
        refuse_rows(X, f", kind={quoted(kind)}")
        table = read_rows(fit, X, prediction=True, selection=with_imr, missing=missing)
        if transform is not None:
            values = _own_scale_means(fit, table, kind, transform)
        else:
            values = _expectation(fit, table, kind if with_imr else "marginal")
    if return_interval is None:
        return values
    if table.tensors:
        table = read_rows(fit, on_host(X), prediction=True, selection=with_imr, missing=missing)
    limits = interval(fit, table, kind, return_interval, conf_level, transform)
    return values, like(limits, values)


def _own_scale_means(
    fit: Fit, table: FeatureTable, kind: str, transform: OutcomeTransform
) -> Array:
    """Return the mean of each row on the outcome's own scale."""
    conditional = kind != "marginal" and fit.probit is not None

    def of(member: Fit) -> Array:
        index = selection_index(member, table) if conditional else None
        mean = prediction_index(member, table)
        return own_scale_mean(transform, kind, mean, index, member.imr_coef, member.sigma)

    return mixed(fit, of, linear=False)


def _expectation(fit: Fit, table: FeatureTable, kind: str) -> Array:
    """Return the expected outcome of each row, averaged if the fit is an average."""
    if kind != "marginal" and len(fit.dependence_terms) > 1:
        index, mean = selection_index(fit, table), prediction_index(fit, table)
        known = fit.family.parts(kind, host(mean), host(index), fit.dependence).value
        return like(known, mean)
    if kind == "expected":
        return mixed(fit, lambda member: _expected(member, table))
    values = prediction_index(fit, table)
    if kind != "marginal":
        side = 1.0 if kind == "selected" else -1.0
        values += mixed(fit, lambda member: _correction(member, table, side))
    return values


def _expected(fit: Fit, table: FeatureTable) -> Array:
    """Return P(s = 1 | x) E[y | x, s = 1] of each row."""
    index, link = selection_index(fit, table), fit.link
    chance = link.chance(index)
    return chance * prediction_index(fit, table) + fit.imr_coef * link.partial_mean(index)


def _correction(fit: Fit, table: FeatureTable, side: float) -> Array:
    """Return what selection (1) or its absence (-1) adds to the mean of each row."""
    return side * fit.imr_coef * fit.link.mean_error(side * selection_index(fit, table))


def index_and_mean(fit: Fit, X: Any) -> tuple[Floats, Floats]:
    """Return the selection index and the mean of every row, NaN if one is not known."""
    table = read_rows(fit, on_host(X), prediction=True, selection=True, missing=None)
    return np.asarray(selection_index(fit, table)), np.asarray(prediction_index(fit, table))


def extrapolates(fit: Fit, X: Any) -> tuple[Mask, Mask]:
    """Return which rows have a selection index outside the fit's range, and which have an index.

    The fit must have a selection equation.
    """
    table = read_rows(fit, on_host(X), prediction=False, selection=True, missing=None)
    index = np.asarray(selection_index(fit, table))
    return outside(index, *fit.index_range), ~np.isnan(index)


def mills_ratios(fit: Fit, passed: PassedRows, X_new: Any) -> MillsRatios:
    """Return what `heckmanfa.plots.imr_overlap` draws."""
    fit.family.require("normal errors")
    read = read_fit_rows(fit, passed)
    rows = held(read.rows, "this picture")
    index = selection_index(fit, read.table)
    fitted = rows.used & rows.selected
    index_new = index
    if X_new is not None or read.design is not None:
        # As in diagnostics, rows that lack a feature are not counted; the legend has the number.
        shown = passed.X if X_new is None else X_new
        table = read_rows(fit, shown, prediction=False, selection=True, missing="nan")
        index_new = selection_index(fit, table)
    (low, high), link = fit.index_range, fit.link
    return MillsRatios(
        fitted=link.mean_error(index[fitted]),
        others=link.mean_error(index_new[np.isfinite(index_new)]),
        range=(float(link.mean_error(high)), float(link.mean_error(low))),
        share_outside=share_outside(index_new, low, high),
        weight=None if rows.weight is None else rows.weight[fitted],
    )


def interval(
    fit: Fit,
    table: FeatureTable,
    kind: str,
    return_interval: str,
    conf_level: float,
    transform: OutcomeTransform | None = None,
) -> Floats:
    """Return intervals (n, 2) for the rows of a table; see `Heckman.predict`.

    NaN if a row lacks a regressor, or the variance of an estimate is not known.
    """
    if fit.probit is None:
        kind = "marginal"
    new = return_interval == "prediction"
    if new and len(fit.dependence_terms) > 1:
        raise InputError(
            f"the {fit.family.words.model} has no {option('return_interval', 'prediction')}: it "
            "supposes no distribution of a new outcome. Use 'confidence', the interval of its "
            "expectation."
        )
    if new and kind != "marginal" and not fit.family.can("normal errors"):
        raise InputError(
            f"the {fit.family.words.model} has no {option('return_interval', 'prediction')} given "
            "selection. Use 'confidence', the interval of its expectation, or "
            f"{option('kind', 'marginal')}."
        )
    if new and kind != "marginal" and not (fit.way.is_average or abs(fit.rho) < 1):
        raise NotIdentifiedError(
            f"rho is estimated at {fit.rho:.4g}, outside (-1, 1), so the distribution of an "
            f"outcome given selection is not known; use {option('method', 'ml')}, or "
            "kind='marginal'"
        )
    # Limits of a new outcome are those of its logarithm.
    estimates = Estimates.of(
        fit,
        prediction=True,
        selection=kind != "marginal",
        transform=None if new else transform,
    )
    # A normal error scaled up by this factor reaches as far as one that is t distributed.
    wider = distribution_of(fit).quantile(conf_level) / NullDistribution().quantile(conf_level)
    limits_of, level = RowLimits(fit, estimates, conf_level), estimates.level(kind)
    groups = limits_of.groups

    def of_block(block: tuple[slice, Floats]) -> tuple[slice, Floats]:
        span, design = block
        # Of features near the largest double, limits are infinite.
        with np.errstate(invalid="ignore", over="ignore"):
            if not new:
                return span, limits_of(level, design)[2]
            if groups is not None:
                return span, groups.new_outcomes(level, design, conf_level, wider)
            return span, _new_outcome(fit, estimates, kind, design, conf_level, wider)

    limits = numbers_by_block(table, estimates.columns, of_block, 2)
    return limits if transform is None else from_log(limits, transform)


def numbers_by_block(
    table: FeatureTable,
    columns: Positions,
    of_block: Callable[[tuple[slice, Floats]], tuple[slice, Floats]],
    size: int,
) -> Floats:
    """Return numbers (n, size) of all rows; ``of_block`` has those of a span and its design."""
    limits = np.full((table.shape[0], size), np.nan)
    blocks = design_blocks(table, columns, _ROWS)
    with one_blas_thread():
        # The first block computes what all blocks share.
        for span, ends in map(of_block, islice(blocks, 1)):
            limits[span] = ends
        for span, ends in in_order(of_block, blocks):
            limits[span] = ends
    return limits


def _new_outcome(
    fit: Fit, estimates: Estimates, kind: str, design: Floats, conf_level: float, wider: float
) -> Floats:
    """Return equal-tailed limits of a new outcome, with the error of x'b-hat added to its own."""
    k = design.shape[1]
    mean = design @ estimates.coef
    variance = np.sum((design @ estimates.covariance[:k, :k]) * design, axis=1)
    # The square root of a negative variance is NaN.
    sigma = np.hypot(fit.sigma, wider * np.sqrt(variance))
    ends = tails(conf_level)
    if kind == "marginal":
        return np.asarray(mean[:, None] + sigma[:, None] * fit.link.quantiles(ends))
    side = 1.0 if kind == "selected" else -1.0
    index = side * (design @ estimates.selection_coef)
    rho = side * fit.rho * fit.sigma / sigma
    return np.asarray(mean[:, None] + sigma[:, None] * selected_quantiles(ends, index, rho))


# Selection. ------------------------------------------------------------------------------------


def check_selection(
    fit: Fit, scale: str, return_interval: str | None, return_std: bool, conf_level: float
) -> None:
    """Refuse what cannot be asked about selection, or what this fit does not know."""
    check_scale(scale)
    check_interval(
        "confidence" if return_interval is None else return_interval, conf_level, "selection"
    )
    if scale == "link":
        probit_of(fit, "there is no selection index")
    if return_interval is not None or return_std:
        probit_of(fit, "the probability of selection is 1, without a standard error")


def predict_selection(
    fit: Fit,
    X: Any,
    missing: str,
    scale: str = "response",
    return_interval: str | None = None,
    return_std: bool = False,
    conf_level: float = 0.95,
) -> Any:
    """Return P(s = 1 | x) or the index of each row; see `Heckman.predict_selection`."""
    with explain_out_of_memory():
        refuse_rows(X, ", kind='selection'")
        table = _read_selecting(fit, X, missing)
        if fit.probit is None:
            return same(table, 1.0)
        values = mixed(fit, lambda member: _chance(member, table, scale))
    if return_interval is None and not return_std:
        return values
    if table.tensors:
        table = _read_selecting(fit, on_host(X), missing)
    numbers = like(_selection_errors(fit, table, scale, conf_level), values)
    answers = [values]
    if return_interval is not None:
        answers.append(numbers[:, :2])
    if return_std:
        answers.append(numbers[:, 2])
    return tuple(answers)


def _read_selecting(fit: Fit, X: Any, missing: str) -> FeatureTable:
    return read_rows(fit, X, prediction=False, selection=fit.probit is not None, missing=missing)


def _chance(fit: Fit, table: FeatureTable, scale: str) -> Array:
    index = selection_index(fit, table)
    return index if scale == "link" else fit.link.chance(index)


def _selection_errors(fit: Fit, table: FeatureTable, scale: str, conf_level: float) -> Floats:
    """Return both ends of the interval and the standard error of each row, (n, 3).

    NaN if a row lacks a regressor, or the variance of an estimate is not known.
    """
    estimates = Estimates.of(fit, prediction=False, selection=True)
    limits_of = RowLimits(fit, estimates, conf_level)
    weights, link = limits_of.interval_weights, fit.link

    def level(mean: Floats, index: Floats, dependence: Any, sigma: Any) -> Parts:
        # The chance may depend on more than the index.
        parts = (link if scale == "response" else NormalLink()).index_parts(index)
        if np.ndim(dependence) != 1:
            return parts
        # A series has several numbers, by row.
        none = np.zeros((len(index), len(dependence)))
        return replace(parts, dependence=none, index_dependence=none)

    def of_block(block: tuple[slice, Floats]) -> tuple[slice, Floats]:
        span, design = block
        with np.errstate(invalid="ignore"):
            value, error, ends = limits_of(level, design)
        if scale == "response":
            parts = link.parts(value)
            value, error, ends = parts.value, parts.index * error, link.chance(ends)
        apart = value - weights @ value
        return span, np.column_stack([ends, np.sqrt(weights @ (error**2 + apart**2))])

    return numbers_by_block(table, estimates.columns, of_block, 3)


def predict_imr(fit: Fit, X: Any, missing: str) -> Any:
    """Return the inverse Mills ratio lambda(z'gamma) of each row."""
    table = _read_selecting(fit, X, missing)
    if fit.probit is None:
        return same(table, 0.0)
    return mixed(fit, lambda member: member.link.mean_error(selection_index(member, table)))
