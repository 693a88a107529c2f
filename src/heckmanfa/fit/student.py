"""The selection-t model: a numeric outcome whose errors may have heavier tails than normal ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit.family import PREDICTION, SELECTION, Beginning, Details, Family, register
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.fit.linear import LINEAR
from heckmanfa.fit.making import Inputs, fit_of_maximum
from heckmanfa.model.covariance import CovarianceKind, is_classical
from heckmanfa.model.error_terms import IMR, RHO, SIGMA
from heckmanfa.model.links import StudentLink, student_parts
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import Start
from heckmanfa.model.probit import Probit
from heckmanfa.model.student import student_curves
from heckmanfa.model.student_likelihood import (
    StudentMaximum,
    begin_student,
    fit_student,
    warn_of_student,
)
from heckmanfa.model.student_problem import DF, selected_terms
from heckmanfa.model.two_step import solve_two_step
from heckmanfa.text.option_words import option

_NORMAL = option("errors", "normal")


@dataclass(frozen=True, eq=False)
class StudentDetails(Details):
    """What a fit with t errors keeps."""

    normal_log_likelihood: float | None = None
    """of the same model with normal errors; NaN if its likelihood did not converge"""


def estimate_student(inputs: Inputs) -> Fit:
    """Maximise the joint likelihood for the chosen features."""
    spec = inputs.spec
    start = spec.starting_point
    two_step = solve_two_step(inputs.moments, inputs.probit, inputs.features)
    maximum = fit_student(
        inputs.moments,
        inputs.probit,
        inputs.features,
        inputs.kind,
        inputs.rows,
        start,
        rho=spec.held.get("rho"),
        alone=not spec.guarded,
    )
    warn_of_student(maximum, start)
    fit = fit_of_maximum(inputs, maximum)
    details = StudentDetails(maximum.normal_log_likelihood)
    adjusted_r2 = float("nan")
    if not isinstance(two_step, str):
        adjusted_r2 = float(two_step.solution.adjusted_r2)
    fit = replace(fit, details=details, adjusted_r2=adjusted_r2)
    if maximum.is_normal and not is_classical(inputs.kind.cov_type):
        # All scores in omega are zero there, which says nothing of how large it may be.
        df = replace(fit.errors["df"], transformed=(0.0, float("nan")))
        fit = fit.with_errors(df=df)
    return fit


def refuse_all_observed(spec: Spec, sample: Any, kind: CovarianceKind) -> NoReturn:
    """Refuse rows of which none lacks its outcome."""
    raise NotIdentifiedError(
        f"no outcome is missing among the {sample.row_counts['selected']} rows, so there is no "
        "selection to correct for, and no selection-t model: leave out "
        f"{option('errors', 't')}, or use a regression with t errors"
    )


def begin(moments: Moments, probit: Probit, features: Positions, rows: Rows) -> Beginning:
    """Set up the joint likelihood, at its highest point."""
    begun = begin_student(moments, probit, features, rows)
    return Beginning(begun.two_step, begun.problem, begun.starts, begun.best.theta)


def refit(
    moments: Moments,
    probit: Probit,
    rows: Rows,
    features: Positions,
    kind: CovarianceKind,
    start: Start,
    *,
    alone: bool,
) -> StudentMaximum | str:
    """Fit other prediction features by maximum likelihood; return the reason if that fails."""
    two_step = solve_two_step(moments, probit, features)
    if isinstance(two_step, str):
        return two_step
    return fit_student(moments, probit, features, kind, rows, start, alone=alone)


def no_models_apart(fit: Fit) -> tuple[Floats, float]:
    """Coefficients of least squares; t errors with rho = 0 are not independent, so no likelihood.

    Whoever has a large error in one equation then has one in the other.
    """
    return LINEAR.naive(fit)[0], float("nan")


def student_log_density(
    index: Floats, mean: Floats, outcome: Floats, errors: Mapping[str, float]
) -> Floats:
    """Log-likelihood of selected rows: of their selection and their outcomes."""
    sigma = errors["sigma"]
    ends = errors["df"] ** -0.5, float(np.log(sigma)), float(np.arctanh(errors["rho"]))
    return selected_terms(index, (outcome - mean) / sigma, ends, second=False)["value"]


def student_log_missing(index: Floats, errors: Mapping[str, float]) -> Floats:
    """Log-likelihood of rows that are not selected."""
    return student_curves(1.0 / errors["df"])(-index).log_cdf


def student_link(errors: Mapping[str, float]) -> StudentLink:
    """Return the robit of some degrees of freedom."""
    return StudentLink(errors["df"])


SELECTION_T: Family = register(
    replace(
        LINEAR,
        name="linear_t",
        words=replace(
            LINEAR.words,
            model="selection-t model",
            title="Heckman selection-t model",
            short="selection-t",
            selection="robit",
            law="t",
            assumes="the errors of both equations are jointly t",
            searches="HeckmanBestSubset",
            likelihood_cure=f"use {_NORMAL}, or predict with fewer features",
            if_not_normal="t errors have heavier tails, but no skewness. If the outcome is skewed, "
            "transform it, and report the range over rho.",
            other_estimates=f"use {_NORMAL} with {option('method', 'two-step')}",
            other_test=f"Report the two-step test ({option('method', 'two-step')}, "
            f"{option('cov_type', 'robust')}, {_NORMAL}) in its place.",
            lacking={
                "calibration": LINEAR.words.lacking["calibration"],
                "residuals": "t errors, and no residuals that could be normal: compare it with a "
                f"fit with {_NORMAL}",
                "two steps": f"no two-step estimates: use {option('method', 'ml')}, or {_NORMAL}",
                "compressed data": "no compressed data that do in place of its rows",
                "normal errors": "t errors, and this is about normal ones: use a fit with "
                f"{_NORMAL} for it",
            },
        ),
        equations=(PREDICTION, replace(SELECTION, heading="Selection equation (robit)")),
        error_terms=(IMR, RHO, SIGMA, DF),
        methods=("ml",),
        supports=frozenset({"profile of df"}),
        estimate=estimate_student,
        estimate_alone=refuse_all_observed,
        begin=begin,
        refit=refit,
        naive=no_models_apart,
        parts=student_parts,
        log_density=student_log_density,
        log_missing=student_log_missing,
        link=student_link,
        shape="df",
        refuses={
            "outcome_transform": f"{option('errors', 't')} takes no "
            f"{option('outcome_transform')}: the exponential of an outcome with t errors has no "
            "mean on its own scale. Fit the logarithm itself as the outcome, and read effects in "
            "percent."
        },
    )
)
