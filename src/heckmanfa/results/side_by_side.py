"""A fitted model beside two others: least squares, and the Heckman model of all features.

Both are solved from the compressed data. Beside a binary outcome there is a probit of the selected
rows instead, which the fit made. Summary, command line and report show the same numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.model.likelihood import likelihood_criteria
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.results.average_tables import all_features_terms
from heckmanfa.search.form import Form
from heckmanfa.search.searched import ExactRefits

CANNOT_SOLVE = (
    "The Heckman model of all features cannot be fitted: they are collinear among the selected "
    "rows, or too many."
)
_ESTIMATES = ["estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The prediction equation of three models, term by term."""

    terms: pd.DataFrame
    """kind ("prediction", "left out", "errors" or "fit"), term, estimate, all_features and
    least_squares (of a binary outcome, the probit of the selected rows): the intercept, the
    features in the order of X, then imr, rho, sigma, adjusted_r2 and bic, or rho, log_likelihood
    and bic of a binary outcome; NaN if a model does not have the term"""
    n_all: int
    """features that may predict; 0 if there is nothing to choose from"""
    is_whole: bool
    """whether the fitted model holds every feature that may predict"""
    is_solved: bool
    """whether the all-features model is known"""

    def with_errors(
        self, tidy: pd.DataFrame, averaged: Mapping[str, float] | None = None
    ) -> pd.DataFrame:
        """Return the terms with the columns of `Heckman.tidy`, in the order of its rows.

        Features that were not chosen follow the terms of ``tidy``, then the criteria of fit.
        ``averaged`` are coefficients by feature that stand in place of those of least squares:
        beside an average, of least squares averaged alike.
        """
        kind = self.terms["kind"]
        errors = tidy[tidy["equation"] == "errors"]
        chosen = self.terms[kind == "prediction"]
        others = self.terms[kind == "errors"].set_index("term").loc[errors["term"]].reset_index()
        top = pd.concat([chosen, others], ignore_index=True)
        rows = pd.concat([tidy[tidy["equation"] == "prediction"], errors], ignore_index=True)
        top[_ESTIMATES] = rows[_ESTIMATES]
        table = pd.concat(
            [top, self.terms[kind == "left out"], self.terms[kind == "fit"]], ignore_index=True
        )
        if self.is_whole or not self.is_solved:
            table["all_features"] = float("nan")
        if averaged is not None:
            features = table["kind"].isin(["prediction", "left out"])
            table["least_squares"] = table["term"].where(features).map(averaged).astype(np.float64)
        return table[["kind", "term", *_ESTIMATES, "least_squares", "all_features"]]


def side_by_side(fit: Fit, never: Collection[str] = ()) -> SideBySide:
    """Solve least squares and the all-features model for the rows of a fit.

    Least squares uses the chosen features and the selected rows. The all-features model holds
    every feature that may predict: what a search chose from, or without one all but ``never``.
    A binary outcome has a probit in place of the first, and the second only from a search or an
    average, which start there.
    """
    names = fit.labels
    features = fit.equation
    candidates = may_predict(fit, never)
    is_whole = holds_all(fit, candidates)
    corrected = fit.probit is not None and bool(candidates)
    listed = candidates if corrected else features
    nan = float("nan")
    naive, ends = _naive(fit)
    rows: list[tuple[str, str, float, float]] = [
        ("prediction", "Intercept", fit.intercept, naive[0])
    ]
    for column in listed:
        if column in features:
            slope = naive[1 + features.index(column)]
            rows.append(("prediction", names[column], fit.coef[column], slope))
        else:
            rows.append(("left out", names[column], nan, nan))
    values = pd.DataFrame([*rows, *ends], columns=["kind", "term", "estimate", "least_squares"])
    is_solved = False
    values["all_features"] = nan
    form = fit.way.form_of_both
    if corrected and form is not None:
        is_solved = _put_everything(fit, form, values)
    elif corrected and "two steps" not in fit.family.supports:
        is_solved = _put_searched(fit, values)
    elif corrected:
        whole = np.zeros(len(names), dtype=bool)
        whole[candidates] = True
        full: Any = fit.moments.solve(whole)
        is_solved = bool(full.feasible)
        # It is solved in two steps, so its joint likelihood is not known.
        bic = full.bic if fit.log_likelihood is None else nan
        last = [full.imr_coef, full.rho, full.sigma, full.adjusted_r2, bic]
        values["all_features"] = np.array([full.intercept, *full.coef[candidates], *last], float)
    if fit.way.is_average:
        is_solved = True
        known = dict(zip(fit.terms, all_features_terms(fit)[:, 0], strict=True))
        keys = list(zip(values["kind"], values["term"], strict=True))
        values["all_features"] = [
            known.get(key, before) for key, before in zip(keys, values["all_features"], strict=True)
        ]
    return SideBySide(values, len(candidates), is_whole, is_solved)


def _put_everything(fit: Fit, form: Form, values: pd.DataFrame) -> bool:
    """Fill in the model with everything in both equations."""
    terms = form.terms(form.estimates)
    ends = dict(zip(fit.spec.error_terms, terms[form.correction :], strict=True))
    refits = refits_of(fit)
    if refits is not None:
        height = refits.full_log_likelihood
        _, bic = likelihood_criteria(height, len(form.estimates), fit.n_obs)
        ends |= {"log_likelihood": height, "bic": bic}
    return _put(fit, values, form.columns, terms, ends)


def _put(
    fit: Fit, values: pd.DataFrame, columns: Sequence[int], coef: Floats, ends: dict[str, float]
) -> bool:
    """Fill in the intercept and slopes of the model of all features, then its last terms."""
    names = ["Intercept", *(fit.labels[column] for column in columns)]
    slopes = values["term"].map(dict(zip(names, coef, strict=False)))
    is_last = values["kind"].isin(["errors", "fit"])
    values["all_features"] = slopes.where(~is_last, values["term"].map(ends)).astype(np.float64)
    return True


def refits_of(fit: Fit) -> ExactRefits | None:
    """Return the refits of a search for a binary outcome; None without one."""
    search = None if fit.search is None else fit.search.result
    return None if search is None else search.refits


def _put_searched(fit: Fit, values: pd.DataFrame) -> bool:
    """Fill in the model of all candidates of a search for a binary outcome, if there is one."""
    refits = refits_of(fit)
    if refits is None:
        return False
    height = refits.full_log_likelihood
    form = None if fit.search is None or fit.search.result is None else fit.search.result.goal.form
    if refits.full is None and form is not None:
        terms = form.terms(form.estimates)
        ends = dict(zip(form.ends.shown, terms[form.correction :], strict=True))
        return _put(fit, values, form.columns, terms, ends | {"log_likelihood": height})
    if refits.full is None:
        return False
    full = refits.full
    more = len(full.columns) - len(fit.features)
    _, bic = likelihood_criteria(height, len(fit.terms) + more, fit.n_obs)
    ends = {"rho": np.tanh(full.atanh_rho[0]), "log_likelihood": height, "bic": bic}
    return _put(fit, values, full.columns, full.coef, ends)


def _naive(fit: Fit) -> tuple[Floats, list[tuple[str, str, float, float]]]:
    """Coefficients of the model that ignores selection, and the last terms of both models."""
    nan = float("nan")
    if not fit.family.has_imr:
        coef, apart = fit.family.naive(fit)
        height = nan if fit.log_likelihood is None else fit.log_likelihood
        last = [("fit", "log_likelihood", height, apart), ("fit", "bic", fit.bic, nan)]
        values = fit.error_values if fit.probit is not None else {}
        known = {} if fit.details is None else fit.details.naive_errors
        errors = [
            ("errors", name, values[name], known.get(name, nan))
            for name in fit.spec.error_terms
            if name in values
        ]
        return coef, [*errors, *last]
    naive = fit_least_squares(fit.moments, fit.equation)
    bic = naive.bic
    if fit.log_likelihood is not None and fit.probit is not None:
        # The joint likelihood at rho = 0: both equations apart, and sigma.
        apart = fit.probit.log_likelihood + naive.log_likelihood
        size = len(naive.coef) + len(fit.probit.coef) + 1
        _, bic = likelihood_criteria(apart, size, fit.n_obs)
    errors = [
        ("errors", term, value, naive.sigma if term == "sigma" else nan)
        for term, value in fit.error_values.items()
    ]
    return naive.coef, [
        *errors,
        ("fit", "adjusted_r2", fit.adjusted_r2, naive.adjusted_r2),
        ("fit", "bic", fit.bic, bic),
    ]


def holds_all(fit: Fit, columns: Collection[int]) -> bool:
    """Whether the fitted model is that of all these columns; an average is a model of its own."""
    return not fit.way.is_average and {*columns} <= {*fit.equation}


def may_predict(fit: Fit, never: Collection[str]) -> list[int]:
    """Return the positions of the columns that may predict, in the order of X."""
    if fit.way.candidates is not None:
        return [int(column) for column in fit.way.candidates]
    constant = {*fit.moments.constant_columns()}
    return [
        int(column)
        for column in fit.moments.columns
        if fit.labels[column] not in never and column not in constant
    ]
