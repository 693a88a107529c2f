"""The series estimator: a numeric outcome whose errors follow no law that one would have to know.

Error terms are the constant of the correction, ``s0``, and the coefficients of its terms, ``s1`` to
``sL``; L varies by problem, so a `Spec` has it. There is no sigma and no rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit.family import BOTH, Details, Family, FamilyWords, register
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.fit.linear import (
    fit_linear_without_selection,
    least_squares_apart,
    select_and_compress,
)
from heckmanfa.fit.making import Inputs, error_estimates, fit_of_equations
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection
from heckmanfa.model.error_terms import ErrorTerm
from heckmanfa.model.expectation_parts import series_parts
from heckmanfa.model.moments import Moments
from heckmanfa.model.series import LONGEST, Series, fit_series
from heckmanfa.text.option_words import OUT_OF_PREDICTION, option

_METHOD = option("method", "series")


@dataclass(frozen=True, eq=False)
class SeriesDetails(Details):
    """What a series fit keeps."""

    left_out_errors: tuple[float, ...] = ()
    """mean squared leave-one-out errors of series of 1, 2, ... terms; empty if L was given"""
    level_rows: float | None = None
    """selected rows that identify the intercept at infinity; None if it is not identified"""

    def public(self, fit: Any) -> dict[str, Any]:
        """Return the number of terms, and how well shorter and longer series predict."""
        return {"n_terms_": fit.spec.number, "left_out_errors_": np.array(self.left_out_errors)}


def of_terms(family: Family, n_terms: int) -> Family:
    """Return the family of a series of so many terms."""
    if not 1 <= n_terms <= LONGEST:
        raise InputError(f"a series has 1 to {LONGEST} terms; got {n_terms}")
    terms = tuple(ErrorTerm(f"s{place}") for place in range(n_terms + 1))
    return replace(family, error_terms=terms, dependence=tuple(term.name for term in terms))


def select_for_series(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, Moments]:
    """Fit the selection equation and compress the selected rows, if a feature is excluded."""
    selection, moments = select_and_compress(spec, sample, check_left)
    if {*selection.probit.features} <= {*spec.prediction}:
        raise NotIdentifiedError(
            f"{_METHOD} needs an exclusion: every feature of the selection equation predicts as "
            "well, and a series in their index is then not separable from the features. Leave one "
            f"that drives selection {OUT_OF_PREDICTION}."
        )
    return selection, moments


def fit_by_series(inputs: Inputs) -> Fit:
    """Estimate the prediction equation with a series in the selection index."""
    spec, moments, probit = inputs.spec, inputs.moments, inputs.probit
    series = fit_series(
        *(moments, probit, inputs.features, inputs.kind, inputs.rows),
        n_terms=spec.number,
        at_infinity=spec.intercept is not None,
        with_errors=spec.guarded or inputs.choice.everything,
    )
    inputs = replace(inputs, spec=replace(spec, number=series.n_terms))
    level = None if series.intercept is None else series.intercept.value
    n_features, n_terms = len(series.features), series.n_terms
    terms = inputs.spec.error_terms
    constant = float(series.coef[0]) - (level or 0.0)
    values = [constant, *series.coef[1 + n_features :]]
    intercept = float("nan") if level is None else level
    slopes = series.coef[1 : 1 + n_features]
    quality = moments.quality(series.sse, n_features + n_terms, 1 + n_features + n_terms)
    fit = fit_of_equations(
        inputs,
        series.features,
        {"prediction": np.array([intercept, *slopes]), "selection": probit.coef},
        error_estimates(**dict(zip(terms, values, strict=True))),
        terms,
        adjusted_r2=float(quality["adjusted_r2"]),
        aic=float(quality["aic"]),
        bic=float(quality["bic"]),
        covariance=_reported_covariance(series, len(probit.coef)),
    )
    rows = None if series.intercept is None else series.intercept.n_rows
    return replace(fit, details=SeriesDetails(series.errors, rows))


def _reported_covariance(series: Series, n_selection: int) -> Floats:
    """Return the covariance of the intercept, the slopes, the probit and s0 to sL.

    The row of an intercept that is not identified is zero.
    """
    j, size = len(series.features), len(series.coef)
    # The rows are those of the reported estimates, the columns those of the stacked ones.
    jacobian = np.zeros((size + 1 + n_selection, len(series.covariance)))
    jacobian[1 : 1 + j, 1 : 1 + j] = np.eye(j)
    selection = slice(1 + j, 1 + j + n_selection)
    jacobian[selection, size : size + n_selection] = np.eye(n_selection)
    constant = 1 + j + n_selection
    jacobian[constant, 0] = 1.0
    jacobian[constant + 1 :, 1 + j : size] = np.eye(size - 1 - j)
    if series.intercept is not None:
        jacobian[0, -1], jacobian[constant, -1] = 1.0, -1.0
    return np.asarray(jacobian @ series.covariance @ jacobian.T)


def fit_series_without_selection(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Fit ordinary least squares, since no outcome is missing."""
    fit = fit_linear_without_selection(replace(spec, number=None), sample, kind)
    return replace(fit, errors=error_estimates(s0=np.nan), details=SeriesDetails())


def refuse_likelihood(*args: Any, **named: Any) -> Any:
    """Refuse a likelihood: a series supposes no distribution."""
    raise InputError(
        f"the series model has no likelihood: {_METHOD} supposes no distribution of the outcome. "
        f"Use {option('method', 'ml')}, or score()"
    )


SERIES = register(
    Family(
        name="series",
        words=FamilyWords(
            model="series model",
            title="Selection model, series in the selection index",
            short="series",
            assumes="the errors have one distribution, whatever it is, at all features",
            all_features_model="series model",
            naive="least squares",
            naive_short="least squares",
            naive_of="least squares on",
            plain="least squares",
            plain_short="least squares",
            by_naive="By least squares",
            correction="the series",
            correction_subject="the series",
            correction_parameter="the series in the selection index",
            searches="HeckmanAverage",
            weighing="HeckmanAverage",
            averages="HeckmanAverage",
            effect="A coefficient",
            changes="the outcome by its coefficient",
            likelihood_cure="predict with fewer features",
            near_one="",
            only_normality="Without an exclusion, a series is not separable from the features.",
            if_not_normal="Nothing to do: the series does not suppose that they are.",
            other_estimates=f"use {option('method', 'two-step')}",
            other_test="Do not take it as evidence for selection, or against it.",
            test="joint test of the terms of the series",
            law="series",
            sources=(
                "W. K. Newey (2009). Two-step series estimation of sample selection models. "
                "Econometrics Journal 12, S217\u2013S229.",
            ),
            estimation="Two steps: a probit for who is selected, then least squares with a series "
            "in its index among the features, in place of lambda.",
            lacking={
                "compressed data": "no compressed data that would give it at another rho: it has "
                "no rho",
                "two steps": "no two-step estimates with lambda: use method='two-step'",
                "residuals": "no residuals that should be normal: it supposes no distribution",
                "bounds of rho": "no rho: use method='two-step'",
                "calibration": "no probabilities, and so no calibration",
                "lambda": "no coefficient of lambda, but a series: use method='two-step'",
                "profiles": "no likelihood to profile: use method='ml'",
                "refits": "no likelihood to maximise again: use method='ml'",
                "specification tests": "no specification tests, which are about normal errors: "
                f"compare its slopes with those of {option('method', 'two-step')}",
                "programs": "R and Stata have no series estimator of a selection model.",
                "single rho": "no rho, since it supposes no joint distribution of the errors: use "
                "method='two-step' or method='ml'",
            },
        ),
        equations=BOTH,
        error_terms=(),
        dependence=("s0",),
        methods=("series",),
        supports=frozenset(),
        first_step=select_for_series,
        estimate=fit_by_series,
        estimate_alone=fit_series_without_selection,
        naive=least_squares_apart,
        parts=series_parts,
        log_density=refuse_likelihood,
        log_missing=refuse_likelihood,
        of_number=of_terms,
        cov_types=("robust", "cluster", "survey"),
        parameters=frozenset({"n_terms", "intercept"}),
        refuses={
            "outcome_transform": f"{_METHOD} has no {option('outcome_transform')}: means on the "
            "outcome's own scale need the distribution of its errors. Fit the logarithm as the "
            "outcome."
        },
    )
)
