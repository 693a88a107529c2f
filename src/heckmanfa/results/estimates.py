"""Tidy estimates and their covariance, of any fitted model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import tidy_average
from heckmanfa.results.distribution import distribution_of

_TESTS = ["statistic", "p_value", "ci_low", "ci_high"]


def prefixed(equation: str, term: str) -> str:
    """Name a term in hypotheses; "selection:educ" would be read as an interaction."""
    return term if equation in ("prediction", "errors") else f"{equation}.{term}"


def estimates_in_order(fit: Fit) -> Floats:
    """Return the estimates in the order of the covariance."""
    columns: dict[str, list[int]] = {"prediction": fit.equation, "none": []}
    if fit.probit is not None:
        columns["selection"] = list(fit.probit.features)
    values: list[float] = []
    for equation in fit.family.equations:
        if equation.columns in columns:
            estimate = fit.equations[equation.name]
            values += [estimate.intercept, *estimate.coef[columns[equation.columns]]]
    values += [fit.errors[term].value for equation, term in fit.terms if equation == "errors"]
    return np.array(values, dtype=np.float64)


def tidy(fit: Fit, conf_level: float) -> pd.DataFrame:
    """Return estimates, standard errors, tests and intervals; see `Heckman.tidy`."""
    if fit.way.is_average:
        table = tidy_average(fit, estimates_in_order(fit), conf_level)
        return _without_rho_tests(table) if fit.rho_is_conditioned else table
    distribution = distribution_of(fit)
    quantile = distribution.quantile(conf_level)
    estimates = estimates_in_order(fit)
    with np.errstate(invalid="ignore"):
        # What is not identified has a zero row in the covariance.
        error = np.where(np.isnan(estimates), np.nan, np.sqrt(np.diag(fit.covariance)))
    table = pd.DataFrame(fit.terms, columns=["equation", "term"])
    table = table.assign(**distribution.columns(estimates, error, conf_level))
    ends = np.array([-1.0, 1.0])
    for term in fit.family.likelihood_terms:
        transformed = fit.errors[term.name].transformed
        if transformed is None or term.transform is None:
            continue
        centre, spread = transformed
        z = centre / spread if term.tested else np.nan
        # A transform may decrease.
        limits = np.sort(term.transform.back(centre + quantile * spread * ends))
        table.loc[_is_error(table, term.name), _TESTS] = [z, distribution.p_value(z), *limits]
    # Two steps give no standard error of what follows from the residuals.
    extra: list[tuple[str, str, float]] = [
        ("errors", term.name, fit.errors[term.name].value)
        for term in fit.family.error_terms
        if ("errors", term.name) not in fit.terms and (fit.probit is not None or term.in_units)
    ]
    if fit.rho_is_conditioned or fit.held_rho is not None:
        table = _without_rho_tests(table)
    without_error = pd.DataFrame(extra, columns=["equation", "term", "estimate"])
    return pd.concat([table, without_error], ignore_index=True) if extra else table


def _without_rho_tests(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out what a given rho, or a window of it, made meaningless: they would reflect it."""
    table.loc[_is_error(table, "imr", "rho"), _TESTS] = np.nan
    return table


def _is_error(table: pd.DataFrame, *terms: str) -> pd.Series:
    return (table["equation"] == "errors") & table["term"].isin(terms)


def vcov(fit: Fit) -> pd.DataFrame:
    """Return the joint covariance with labels; see `Heckman.vcov`."""
    labels = pd.MultiIndex.from_tuples(fit.terms, names=["equation", "term"])
    return pd.DataFrame(fit.covariance.copy(), index=labels, columns=labels)
