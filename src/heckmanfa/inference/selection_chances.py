"""The selection equation for rows of X: index, probability, errors, inverse Mills ratio.

An interval of P(s = 1 | x) = Phi(u) is Phi of the ends of the interval of u = z'gamma, so its ends
are probabilities. The standard error of Phi(u) is phi(u) times that of u, by the delta method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Array, Floats, explain_out_of_memory, like, namespace, on_host
from heckmanfa.data.columns.features import FeatureTable, same
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import RowLimits, mixed
from heckmanfa.inference.expectations import Estimates
from heckmanfa.inference.fit_rows import probit_of
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.prediction import (
    numbers_by_block,
    read_rows,
    selection_index,
)
from heckmanfa.model.expectation_parts import Parts, selection_parts
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.results.distribution import check_level
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


def check_selection(
    fit: Fit, scale: str, return_interval: str | None, return_std: bool, conf_level: float
) -> None:
    """Refuse what cannot be asked about selection, or what this fit does not know."""
    check_scale(scale)
    if return_interval == "prediction":
        raise InputError(
            f"{option('return_interval', 'prediction')} has no meaning for selection: a new row "
            "is selected or not. Use 'confidence', the interval of its probability."
        )
    if return_interval not in (None, "confidence"):
        raise InputError(
            f"{option('return_interval')} must be 'confidence' or None; got "
            f"{quoted(return_interval)}"
        )
    check_level(conf_level)
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
        table = _read(fit, X, missing)
        if fit.probit is None:
            return same(table, 1.0)
        values = mixed(fit, lambda member: _value(member, table, scale))
    if return_interval is None and not return_std:
        return values
    if table.tensors:
        table = _read(fit, on_host(X), missing)
    numbers = like(_errors(fit, table, scale, conf_level), values)
    found = [values]
    if return_interval is not None:
        found.append(numbers[:, :2])
    if return_std:
        found.append(numbers[:, 2])
    return tuple(found)


def _read(fit: Fit, X: Any, missing: str) -> FeatureTable:
    return read_rows(fit, X, prediction=False, selection=fit.probit is not None, missing=missing)


def _value(fit: Fit, table: FeatureTable, scale: str) -> Array:
    index = selection_index(fit, table)
    return index if scale == "link" else namespace(index).exp(log_cdf(index))


def _errors(fit: Fit, table: FeatureTable, scale: str, conf_level: float) -> Floats:
    """Return both ends of the interval and the standard error of each row, (n, 3).

    NaN if a row lacks a regressor, or the variance of an estimate is not known.
    """
    estimates = Estimates.of(fit, prediction=False, selection=True)
    limits_of = RowLimits(fit, estimates, conf_level)
    weights = limits_of.interval_weights

    def of_block(block: tuple[slice, Floats]) -> tuple[slice, Floats]:
        span, design = block
        with np.errstate(invalid="ignore"):
            value, error, ends = limits_of(_index, design)
        if scale == "response":
            parts = selection_parts(value)
            value, error, ends = parts.value, parts.index * error, special.ndtr(ends)
        apart = value - weights @ value
        return span, np.column_stack([ends, np.sqrt(weights @ (error**2 + apart**2))])

    return numbers_by_block(table, estimates.columns, of_block, 3)


def _index(mean: Floats, index: Floats, dependence: Any, sigma: Any) -> Parts:
    """Return the selection index itself, with its derivatives."""
    zero = np.zeros_like(index)
    return Parts.first_order(index, zero, np.ones_like(index), zero)


def predict_imr(fit: Fit, X: Any, missing: str) -> Any:
    """Return the inverse Mills ratio lambda(z'gamma) of each row."""
    table = _read(fit, X, missing)
    if fit.probit is None:
        return same(table, 0.0)
    return mixed(fit, lambda member: inverse_mills(selection_index(member, table)))
