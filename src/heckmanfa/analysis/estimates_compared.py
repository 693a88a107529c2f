"""Estimates of several methods side by side, and what each assumes about missing outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.inference.expectations import is_known
from heckmanfa.text.wording import NO_EXCLUSION, capitalised, listed, plural

_COLUMNS = ["method", "equation", "term", "estimate", "std_error", "ci_low", "ci_high"]


@dataclass(frozen=True)
class Everyone:
    """What is estimated of rows with and without an outcome alike, before any coefficient."""

    term: str = "Mean of everyone"
    """in a table"""
    noun: str = "the mean of everyone"
    """in a sentence"""
    place: int = 1
    """of outcomes with classes: the class whose probability it is, with that of higher ones"""

    def predicted(self, model: Any, X: pd.DataFrame) -> Floats:
        """Predict it for each row; NaN where a feature is missing, or if a model says nothing."""
        fit = getattr(model, "fit_", None)
        if fit is not None and not is_known(fit, "marginal"):
            return np.full(len(X), np.nan)
        if hasattr(model, "predict_proba"):
            chances = np.asarray(model.predict_proba(X, missing="nan"))
            return np.asarray(chances[:, self.place :].sum(axis=1))
        return np.asarray(model.predict(X, missing="nan"))


EVERYONE = Everyone()
"""the mean, of outcomes without an order"""


@dataclass(frozen=True)
class Making:
    """How the estimates of a method came about."""

    ignores_search: bool = False
    """whether standard errors take the features as known, though the same rows chose them"""
    is_average: bool = False
    """whether estimates are averages over sets of features, and their errors allow for it"""
    estimates_mean: bool = False
    """whether it estimates the mean of everyone itself, with a standard error"""

    @classmethod
    def of(cls, model: Any) -> Making:
        """Return how the estimates of a fitted model came about."""
        own_mean = hasattr(model, "mean_")
        if not isinstance(model, SelectionModel):
            return cls(estimates_mean=own_mean)
        way = model.fit_.way
        return cls(way.ignores_search, way.is_average, own_mean)


def about_estimates(
    table: pd.DataFrame, making: Mapping[str, Making], everyone: Everyone
) -> list[str]:
    """Return what a reader of `side_by_side` needs to know, given how its methods were made."""
    said = ["Standard errors are given where a method has them."]
    ignoring = [name for name, made in making.items() if made.ignores_search]
    averages = [name for name, made in making.items() if made.is_average]
    if ignoring:
        said.append(
            f"Those of {listed(ignoring)} take the features as known, though the same rows chose "
            "them."
        )
    if averages:
        said.append(f"Those of {listed(averages)} allow for the choice of features.")
    if everyone.term in set(table["term"]):
        own = [name for name, made in making.items() if made.estimates_mean]
        but = f", but that of {listed(own)} is an estimate of its own" if own else ""
        said.append(f"{capitalised(everyone.noun)} is the average prediction{but}.")
    return said


def assumption_of(model: Any) -> str:
    """Return what a fitted model needs to be true, in a clause."""
    if not isinstance(model, SelectionModel):
        return str(model.assumes)
    fit = model.fit_
    # Normal errors that are not correlated are independent; t errors share their spread.
    apart = fit.held_rho == 0.0 and fit.family.can("normal errors")
    if fit.probit is None or apart:
        return ObservedRegressor.assumes
    errors, excluded = fit.family.words.assumes, [c for c in fit.driving if not fit.support[c]]
    if fit.held_rho is not None:
        return f"{errors}, with a rho of {fit.held_rho:g}"
    if not excluded:
        return f"{errors}; {NO_EXCLUSION}, so only that identifies the model"
    n, n_chosen = len(excluded), 0
    if fit.way.searched:
        # What the user kept out could not predict, whatever the data say.
        n_chosen = len({*excluded}.intersection(fit.way.allowed))
    which = f", {n_chosen} of which the data chose," if n_chosen else ""
    if n_chosen == n:
        which = ", which the data chose,"
    return f"{errors}, and {plural(n, 'exclusion')}{which} {'holds' if n == 1 else 'hold'}"


def estimates_of(
    name: str, model: Any, X: pd.DataFrame, weight: Floats | None, everyone: Everyone
) -> pd.DataFrame:
    """Return what a model says of ``everyone``, then its coefficients, one row for each.

    Models without `tidy` have no standard errors, and only `DoublyRobust` has one of the mean: that
    of others is the average of their predictions.
    """
    coefficients = _coefficients(model)
    mean: dict[str, Any] = {"equation": "mean", "term": everyone.term}
    if hasattr(model, "mean_"):
        mean |= model.tidy().iloc[0].drop(["equation", "term"]).to_dict()
    else:
        known = _knows_everyone(model)
        mean["estimate"] = _mean(everyone.predicted(model, X), weight) if known else float("nan")
    first = [] if np.isnan(mean["estimate"]) else [pd.DataFrame([mean])]
    table = pd.concat([*first, coefficients], ignore_index=True)
    return table.assign(method=name).reindex(columns=_COLUMNS)


def all_estimates(
    fitted: Mapping[str, Any], X: pd.DataFrame, weight: Floats | None, everyone: Everyone
) -> pd.DataFrame:
    """Return `estimates_of` all fitted models, one below the other."""
    tables = [estimates_of(name, model, X, weight, everyone) for name, model in fitted.items()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=_COLUMNS)


def _knows_everyone(model: Any) -> bool:
    """Whether a model says what is expected of anyone: a series without an intercept does not."""
    return not np.isnan(getattr(model, "intercept_", 0.0))


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
