"""Weights and clusters of a fit, for methods that are given rows later.

A model from formulas remembers the columns that said them, and finds them in the data frame. What
came as an array is not kept: methods that need it ask for it, and ignore it in no case.
"""

from __future__ import annotations

from typing import Any

from heckmanfa.data.arrays import is_dask
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.text.printable import quoted

_EQUALLY = ", or sample_weight=1 to let all rows count the same"


def weights_of(fit: Fit, X: Any, sample_weight: Any, *, other_rows: bool) -> Any:
    """Return the weights that a method goes by.

    Parameters
    ----------
    fit : Fit
        Fitted.
    X : data frame
        For a model from formulas; else anything.
    sample_weight : str, array_like or None
        What the method was given.
    other_rows : bool
        Whether the rows may be others than those of the fit, and have other weights.

    Returns
    -------
    str, array_like or None
        What was given, else the column that the model remembers; None where the fit had no
        weights.
    """
    if sample_weight is not None or not fit.weighted:
        return sample_weight
    return _remembered(
        fit, X, fit.origin.weight_column, "sample_weight", _EQUALLY if other_rows else ""
    )


def groups_of(fit: Fit, X: Any, groups: Any, what: str = "groups") -> Any:
    """Return the clusters that a method goes by; parameters are those of `weights_of`."""
    if groups is not None or fit.spec.cov_type != "cluster":
        return groups
    rows = ", or unit='row' to draw single rows" if what == "unit" else ""
    return _remembered(fit, X, fit.origin.group_column, what, rows)


def _remembered(fit: Fit, X: Any, column: str | None, what: str, instead: str) -> str:
    had = "weights" if what == "sample_weight" else "clusters"
    if column is None:
        how = "" if fit.origin.design is None else " that came as an array"
        raise InputError(
            f"the model was fitted with {had}{how}: pass {what}, with one entry for each row here"
            f"{instead}"
        )
    names = [str(one) for one in _frame(X).columns]
    if column not in names:
        raise UnknownFeatureError(
            f"the model was fitted with {had} from the column {quoted(column)}, which these data "
            f"do not have{nearest(column, names) or '.'} Pass {what}, a column or one entry for "
            f"each row{instead}"
        )
    return column


def column_or_values(frame: Any, values: Any, what: str) -> Any:
    """Return a column that is named, or values as they are."""
    if not isinstance(values, str):
        return values
    data = _frame(frame)
    if values not in data.columns:
        raise UnknownFeatureError(
            f"{what}: the data has no column {quoted(values)}"
            + nearest(values, [str(one) for one in data.columns])
        )
    return data[values] if is_dask(frame) else data[values].to_numpy()


def _frame(X: Any) -> Any:
    return X if is_dask(X) else to_pandas(X)
