"""Predictions of a fitted selection model for rows of X, wherever these are."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like, namespace
from heckmanfa.data.columns.feature_tables import read_features
from heckmanfa.data.columns.features import FeatureTable, linear, same
from heckmanfa.data.missing_features import Gaps, find_gaps, refuse_gaps
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.tensors import explain_out_of_memory, on_host
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.intervals import interval
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.text.printable import quoted

Kind = Literal["marginal", "selected", "unselected"]
IntervalKind = Literal["prediction", "confidence"]
Missing = Literal["error", "nan"]


def check_kind(fit: Fit, kind: str) -> None:
    """Refuse a kind of prediction that does not exist, or that the fit cannot give."""
    if kind not in ("marginal", "selected", "unselected"):
        raise InputError(f"kind must be 'marginal', 'selected' or 'unselected'; got {quoted(kind)}")
    if kind == "unselected" and fit.probit is None:
        raise NotIdentifiedError(
            "no outcome was missing in the fit, so nothing is known about unselected rows"
        )


def read_rows(
    fit: Fit, X: Any, *, prediction: bool, selection: bool, missing: str | None = "error"
) -> FeatureTable:
    """Read X for a fitted model; None leaves missing and infinite values to the caller."""
    refuse_rows(X)
    given, design = X, fit.origin.design
    if design is not None:
        X = design.transform(X, prediction=prediction, selection=selection)
    table = read_features(X, fit.spec.columns)
    if missing is not None:
        gaps = _gaps(fit, table, given, prediction=prediction, selection=selection)
        if missing == "error":
            refuse_gaps(gaps)
    return table


def _gaps(fit: Fit, table: FeatureTable, X: Any, *, prediction: bool, selection: bool) -> Gaps:
    """Count the rows of X, read as a table, that miss what a prediction needs."""
    columns = {*fit.features} if prediction else set()
    if selection and fit.probit is not None:
        columns |= {*fit.probit.features}
    gaps, design = find_gaps(table, sorted(columns)), fit.origin.design
    if gaps.n_missing and design is not None:
        # A row that misses one variable has no column of that formula.
        names = design.missing_variables(X, prediction=prediction, selection=selection)
        gaps = Gaps(gaps.n_rows, gaps.n_missing, names or gaps.columns)
    return gaps


def missing_features(fit: Fit, X: Any, kind: str) -> Gaps:
    """Count the rows of X that miss a feature that a prediction of this kind needs."""
    needs = {"prediction": kind != "selection", "selection": kind != "marginal"}
    return _gaps(fit, read_rows(fit, X, missing=None, **needs), X, **needs)


def _mean(fit: Fit, table: FeatureTable) -> Array:
    return linear(table, fit.features, fit.coef) + fit.intercept


def selection_index(fit: Fit, table: FeatureTable) -> Array:
    """Return the selection index z'gamma of each row."""
    assert fit.probit is not None
    return linear(table, fit.probit.features, fit.selection_coef) + fit.selection_intercept


def predict(
    fit: Fit, X: Any, kind: str, return_interval: str | None, conf_level: float, missing: str
) -> Any:
    """Predict the outcome of each row; see `Heckman.predict`."""
    with_imr = kind != "marginal" and fit.probit is not None
    with explain_out_of_memory():
        refuse_rows(X, f"predict_parquet(model, path, out, kind={quoted(kind)})")
        table = read_rows(fit, X, prediction=True, selection=with_imr, missing=missing)
        values = _mean(fit, table)
        if with_imr:
            side = 1.0 if kind == "selected" else -1.0
            values += side * fit.imr_coef * inverse_mills(side * selection_index(fit, table))
    if return_interval is None:
        return values
    if table.tensors:
        table = read_rows(fit, on_host(X), prediction=True, selection=with_imr, missing=missing)
    return values, like(interval(fit, table, kind, return_interval, conf_level), values)


def predict_selection(fit: Fit, X: Any, missing: str) -> Any:
    """Return P(s = 1 | x) of each row."""
    refuse_rows(X, "predict_parquet(model, path, out, kind='selection')")
    table = read_rows(fit, X, prediction=False, selection=fit.probit is not None, missing=missing)
    if fit.probit is None:
        return same(table, 1.0)
    index = selection_index(fit, table)
    return namespace(index).exp(log_cdf(index))


def predict_imr(fit: Fit, X: Any, missing: str) -> Any:
    """Return the inverse Mills ratio lambda(z'gamma) of each row."""
    table = read_rows(fit, X, prediction=False, selection=fit.probit is not None, missing=missing)
    if fit.probit is None:
        return same(table, 0.0)
    return inverse_mills(selection_index(fit, table))


def index_and_mean(fit: Fit, X: Any) -> tuple[Floats, Floats]:
    """Return the selection index and the mean of every row, NaN if one is not known."""
    table = read_rows(fit, on_host(X), prediction=True, selection=True, missing=None)
    return np.asarray(selection_index(fit, table)), np.asarray(_mean(fit, table))
