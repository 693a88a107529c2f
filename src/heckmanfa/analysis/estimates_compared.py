"""Estimates of several methods side by side, and what each assumes about missing outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.inference.expectations import is_known
from heckmanfa.text.wording import NO_EXCLUSION, plural

MEAN = "Mean of everyone"
"""the first row: the mean outcome of rows with and without an outcome"""
ABOUT_ERRORS = (
    "Standard errors are given where a method has them; after a search, they take the features as "
    "known. The mean of everyone is the average prediction, but of doubly robust estimates."
)
"""what a reader of these estimates needs to know"""
_COLUMNS = ["method", "equation", "term", "estimate", "std_error", "ci_low", "ci_high"]


def assumption_of(model: Any) -> str:
    """Return what a fitted model needs to be true, in a clause."""
    if not isinstance(model, SelectionModel):
        return str(model.assumes)
    fit = model.fit_
    if fit.probit is None:
        return ObservedRegressor.assumes
    errors = fit.family.words.assumes
    n_excluded = sum(not fit.support[column] for column in fit.driving)
    if not n_excluded:
        return f"{errors}; {NO_EXCLUSION}, so only that identifies the model"
    found = ", which the data chose," if fit.way.searched else ""
    holds = "holds" if n_excluded == 1 else "hold"
    return f"{errors}, and {plural(n_excluded, 'exclusion')}{found} {holds}"


def estimates_of(name: str, model: Any, X: pd.DataFrame, weight: Floats | None) -> pd.DataFrame:
    """Return the mean of everyone and the coefficients of a fitted model, one row for each.

    Models without `tidy` have no standard errors, and only `DoublyRobust` has one of the mean: that
    of others is the average of their predictions.
    """
    coefficients = _coefficients(model)
    mean: dict[str, Any] = {"equation": "mean", "term": MEAN}
    if hasattr(model, "mean_"):
        mean |= model.tidy().iloc[0].drop(["equation", "term"]).to_dict()
    else:
        known = _knows_everyone(model)
        mean["estimate"] = _mean(_predicted(model, X), weight) if known else float("nan")
    first = [] if np.isnan(mean["estimate"]) else [pd.DataFrame([mean])]
    table = pd.concat([*first, coefficients], ignore_index=True)
    return table.assign(method=name).reindex(columns=_COLUMNS)


def all_estimates(
    fitted: Mapping[str, Any], X: pd.DataFrame, weight: Floats | None
) -> pd.DataFrame:
    """Return `estimates_of` all fitted models, one below the other."""
    tables = [estimates_of(name, model, X, weight) for name, model in fitted.items()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


def _knows_everyone(model: Any) -> bool:
    """Whether a model says what is expected of anyone: a series without an intercept does not."""
    return not np.isnan(getattr(model, "intercept_", 0.0))


def _predicted(model: Any, X: pd.DataFrame) -> Floats:
    """Predict everyone's outcome; NaN where a feature is missing."""
    fit = getattr(model, "fit_", None)
    if fit is not None and (fit.family.is_ordered or not is_known(fit, "marginal")):
        # Classes have no mean, and a series does not identify it.
        return np.full(len(X), np.nan)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, missing="nan")[:, 1])
    return np.asarray(model.predict(X, missing="nan"))


def _mean(values: Floats, weight: Floats | None) -> float:
    known = np.isfinite(values)
    if not known.any():
        return float("nan")
    return float(np.average(values[known], weights=None if weight is None else weight[known]))


def _coefficients(model: Any) -> pd.DataFrame:
    """Return the prediction equation of a model; nothing of a model that has none."""
    if hasattr(model, "tidy"):
        table: pd.DataFrame = model.tidy()
        return table[table["equation"] == "prediction"]
    if not hasattr(model, "coef_"):
        return pd.DataFrame(columns=["equation", "term", "estimate"])
    held = model.coef_ != 0.0
    values = [model.intercept_, *model.coef_[held]]
    terms = ["Intercept", *model.encoded_names_[held]]
    return pd.DataFrame({"equation": "prediction", "term": terms, "estimate": values})


def side_by_side(estimates: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return a row for each term, and estimates with standard errors for each of some methods."""
    table = pd.DataFrame({"term": list(dict.fromkeys(estimates["term"]))})
    for name in names:
        own = estimates[estimates["method"] == name].set_index("term")
        for column, title in (("estimate", name), ("std_error", error_of(name))):
            table[title] = own[column].reindex(table["term"]).to_numpy(dtype=float)
    return table


def error_of(name: str) -> str:
    """Return the title of a method's standard errors."""
    return f"{name}, std. error"


def grouped(assumptions: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the methods that make each assumption."""
    methods: dict[str, list[str]] = {}
    for name, words in assumptions.items():
        methods.setdefault(words, []).append(name)
    return methods
