"""The linear model: a numeric outcome, by two steps or maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import RhoOutsideWarning, warn
from heckmanfa.fit.family import (
    BOTH,
    Beginning,
    Details,
    Family,
    FamilyWords,
    register,
)
from heckmanfa.fit.fitted import ErrorEstimate, Fit, Spec
from heckmanfa.fit.making import (
    Inputs,
    count,
    error_estimates,
    fit_of_equations,
    fit_of_maximum,
    fit_without_selection,
    warn_of_no_selection,
)
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import Selection, fit_selection, gather, refuse_leakage
from heckmanfa.model.error_terms import IMR, RHO, SIGMA
from heckmanfa.model.expectation_parts import linear_parts
from heckmanfa.model.held_two_step import fit_held_two_step, gather_rho_scores
from heckmanfa.model.joint_problem import LinearProblem
from heckmanfa.model.likelihood import (
    MaximumLikelihood,
    fit_held_likelihood,
    fit_likelihood,
    likelihood_criteria,
    warn_of_likelihood,
)
from heckmanfa.model.likelihood_guards import LikelihoodGuards, guard_likelihood
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.newton import ProfileStarts, Start, starting_point
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.own_scale import (
    OwnScale,
    held_own_scale,
    least_squares_own_scale,
    likelihood_own_scale,
    two_step_own_scale,
)
from heckmanfa.model.probit import Probit
from heckmanfa.model.separation import SELECTION, Separated
from heckmanfa.model.two_step import LARGEST_RHO, fit_least_squares, fit_two_step, solve_two_step
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import ONLY_NORMALITY, capitalised

_BY_SERIES = (
    f"Name the features and use {option('method', 'series')}, whose slopes need no normal errors."
)


@dataclass(frozen=True, eq=False)
class LinearDetails(Details):
    """What a fit of a numeric outcome keeps, for J features and p selection features."""

    own_scale: OwnScale | None = None
    """what a fit on the log of an outcome knows of the outcome's own scale"""
    rho_scores: Floats | None = None
    """(2 J + p + 5) squared, for robust or cluster standard errors at any given rho; None if they
    are classical"""
    guards: LikelihoodGuards | None = None
    """maximum likelihood beside the two-step estimates; None unless it is at a proper maximum"""

    def averaged(self) -> LinearDetails:
        """Return the guards of the model of all features; the others are of one set of them."""
        return LinearDetails(guards=self.guards)

    def rescaled(self, ratio: Floats, moved: Floats) -> LinearDetails:
        """Rescale what is known of sigma with its standard error."""
        own_scale = None if self.own_scale is None else self.own_scale.rescaled(ratio)
        return replace(self, own_scale=own_scale)


def select_and_compress(
    spec: Spec,
    sample: Sample,
    check_left: Callable[[Rows], None],
    words: Separated = SELECTION,
) -> tuple[Selection, Moments]:
    """Fit the selection equation, and compress the selected rows with lambda among them.

    ``words`` are those of columns that separate the selected from the others.
    """
    selection = fit_selection(
        sample.rows,
        spec.selection,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
        check_left=check_left,
        words=words,
    )
    prediction = [column for column in spec.prediction if column not in selection.separating]
    return selection, gather(selection, prediction, spec.labels, sample.row_counts["selected"])


def fit_linear(inputs: Inputs) -> Fit:
    """Estimate the prediction equation with the chosen features; the probit is fitted already."""
    spec, choice = inputs.spec, inputs.choice
    fit = _fit_held(inputs, **spec.held) if spec.held else _fit_free(inputs)
    if choice.everything or not (spec.errors_differ and spec.guarded):
        return fit
    scores = gather_rho_scores(
        inputs.moments, inputs.probit, fit.features, inputs.kind, inputs.rows
    )
    return with_linear_details(fit, rho_scores=scores)


def with_linear_details(fit: Fit, **details: Any) -> Fit:
    """Return the fit with more of `LinearDetails`."""
    known = fit.details if isinstance(fit.details, LinearDetails) else LinearDetails()
    return replace(fit, details=replace(known, **details))


def _fit_free(inputs: Inputs) -> Fit:
    """Estimate rho with all else, by either method."""
    spec, choice, kind = inputs.spec, inputs.choice, inputs.kind
    moments, probit, rows = inputs.moments, inputs.probit, inputs.rows
    # Skip robust errors: maximum likelihood replaces these estimates.
    first = CLASSICAL if spec.method == "ml" else kind
    # The covariance of everything must be positive definite.
    largest = LARGEST_RHO if choice.everything else None
    two_step = fit_two_step(moments, probit, choice.features, first, rows, largest_rho=largest)
    solution = two_step.solution
    if spec.method == "ml":
        start = spec.starting_point
        maximum = fit_likelihood(moments, probit, two_step, kind, rows, start)
        warn_of_likelihood(maximum, start)
        fit = _fit_of_maximum(inputs, maximum, float(solution.adjusted_r2))
        if not spec.guarded:
            return fit
        compared = moments, probit, two_step, maximum, kind, rows, fit.n_selected
        return with_linear_details(fit, guards=guard_likelihood(*compared))
    j = len(two_step.coef) - 1
    order = [*range(j), *range(j + 1, len(two_step.covariance)), j]
    fit = fit_of_equations(
        inputs,
        two_step.features,
        {"prediction": two_step.coef[:-1], "selection": probit.coef},
        error_estimates(imr=two_step.coef[-1], rho=solution.rho, sigma=solution.sigma),
        ["imr"],
        adjusted_r2=float(solution.adjusted_r2),
        aic=float(solution.aic),
        bic=float(solution.bic),
        covariance=two_step.covariance[np.ix_(order, order)],
    )
    if spec.needs_own_scale or (choice.everything and spec.guarded):
        own_scale = two_step_own_scale(moments, probit, two_step, kind, rows)
        fit = with_linear_details(fit, own_scale=own_scale)
    if not abs(fit.rho) < 1 and not choice.everything:
        warn(
            f"the two-step estimate of rho is {fit.rho:.4g}, outside (-1, 1): the data do not fit "
            "the model well, or only normality identifies it. See "
            f"{instead('diagnostics()', 'the diagnostics')}, or use {option('method', 'ml')}.",
            RhoOutsideWarning,
        )
    return fit


def _fit_of_maximum(inputs: Inputs, maximum: MaximumLikelihood, adjusted_r2: float) -> Fit:
    """Return the fit by maximum likelihood, with the adjusted R^2 of two steps."""
    fit, own_scale = fit_of_maximum(inputs, maximum), None
    if inputs.spec.needs_own_scale:
        own_scale = likelihood_own_scale(
            inputs.moments, inputs.probit, maximum, inputs.kind, inputs.rows
        )
    return replace(fit, adjusted_r2=adjusted_r2, details=LinearDetails(own_scale))


def _fit_held(inputs: Inputs, rho: float) -> Fit:
    """Estimate everything but rho, which the user gives, by either method."""
    spec, features, kind = inputs.spec, inputs.features, inputs.kind
    moments, probit, rows = inputs.moments, inputs.probit, inputs.rows
    ml = spec.method == "ml"
    two_step = fit_held_two_step(moments, probit, features, rho, CLASSICAL if ml else kind, rows)
    if ml:
        maximum = fit_held_likelihood(moments, probit, features, rho, kind, rows)
        warn_of_likelihood(maximum, None)
        return _fit_of_maximum(inputs, maximum, two_step.adjusted_r2)
    sigma = two_step.sigma
    errors = error_estimates(imr=two_step.imr_coef, rho=rho)
    log_sigma_error = float(np.sqrt(two_step.covariance[-1, -1])) / sigma
    errors["sigma"] = ErrorEstimate(sigma, (float(np.log(sigma)), log_sigma_error))
    equations = {"prediction": two_step.coef, "selection": probit.coef}
    fit = fit_of_equations(
        *(inputs, features, equations, errors, spec.error_terms),
        adjusted_r2=two_step.adjusted_r2,
        aic=two_step.aic,
        bic=two_step.bic,
        covariance=two_step.covariance,
    )
    if not spec.needs_own_scale:
        return fit
    return with_linear_details(
        fit, own_scale=held_own_scale(moments, probit, features, rho, kind, rows)
    )


def fit_linear_without_selection(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Fit ordinary least squares, since no outcome is missing."""
    moments = gather_moments(sample.rows, spec.prediction, len(spec.labels), None)
    refuse_leakage(moments, spec.labels, sample.row_counts["selected"], missing=False)
    naive = fit_least_squares(moments, spec.prediction, kind, sample.rows)
    warn_of_no_selection(
        spec, sample, "ordinary least squares", underdetermined=naive.underdetermined
    )
    aic, bic, log_likelihood, own_scale = naive.aic, naive.bic, None, None
    if spec.method == "ml":
        log_likelihood = naive.log_likelihood
        n = count(moments.n_selected, sample.row_counts["selected"], kind)
        # The coefficients, the intercept and sigma.
        aic, bic = likelihood_criteria(log_likelihood, len(spec.prediction) + 2, n)
    if spec.needs_own_scale:
        columns = sorted(spec.prediction)
        own_scale = least_squares_own_scale(moments, columns, naive, kind, sample.rows)
    return fit_without_selection(
        *(spec, sample, kind, moments, naive.coef),
        error_estimates(imr=np.nan, rho=np.nan, sigma=naive.sigma),
        adjusted_r2=naive.adjusted_r2,
        aic=aic,
        bic=bic,
        log_likelihood=log_likelihood,
        converged=True,
        covariance=naive.covariance,
        details=LinearDetails(own_scale),
    )


def begin_linear(moments: Moments, probit: Probit, features: Positions, rows: Rows) -> Beginning:
    """Set up the joint likelihood, from the two-step estimates."""
    two_step = fit_two_step(moments, probit, features, CLASSICAL, rows)
    problem = LinearProblem.build(moments, probit, two_step.features)
    starts = ProfileStarts.build(moments, probit, two_step.features, problem)
    return Beginning(two_step, problem, starts, starting_point(problem, probit, two_step))


def refit_linear(
    moments: Moments,
    probit: Probit,
    rows: Rows,
    features: Positions,
    kind: CovarianceKind,
    start: Start,
    *,
    alone: bool,
) -> MaximumLikelihood | str:
    """Fit other prediction features by maximum likelihood; return the reason if that fails."""
    two_step = solve_two_step(moments, probit, features)
    if isinstance(two_step, str):
        return two_step
    return fit_likelihood(moments, probit, two_step, kind, rows, start)


def least_squares_apart(fit: Fit) -> tuple[Floats, float]:
    """Coefficients of least squares, and its log-likelihood with that of the probit."""
    naive = fit_least_squares(fit.moments, fit.equation)
    own = 0.0 if fit.probit is None else fit.probit.log_likelihood
    return naive.coef, own + naive.log_likelihood


def linear_log_density(
    index: Floats, mean: Floats, outcome: Floats, errors: Mapping[str, float]
) -> Floats:
    """Log-likelihood of selected rows: of their selection and their outcomes."""
    rho, sigma = errors["rho"], errors["sigma"]
    e = (outcome - mean) / sigma
    shifted = (index + rho * e) / np.sqrt(1.0 - rho**2)
    normal = -0.5 * e**2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(log_cdf(shifted) + normal)


LINEAR = register(
    Family(
        name="linear",
        words=FamilyWords(
            model="Heckman model",
            title="Heckman selection model",
            short="Heckman",
            all_features_model="two-step Heckman model",
            naive="least squares",
            naive_short="least squares",
            naive_of="least squares on",
            plain="least squares",
            plain_short="least squares",
            by_naive="By least squares",
            correction="lambda",
            correction_subject="lambda",
            correction_parameter="the inverse Mills ratio",
            searches="HeckmanFA or HeckmanBestSubset",
            weighing="HeckmanAverage or HeckmanBestSubset",
            averages="HeckmanAverage",
            effect="A coefficient",
            changes="the outcome by its coefficient",
            likelihood_cure="use the two-step estimates, or predict with fewer features",
            near_one=", which usually means that the model does not fit: look for outliers and "
            "skewness in the outcome (take its logarithm?), look for a stronger exclusion, and "
            "compare with the two-step estimates. Do not rely on its standard error.",
            only_normality=f"{capitalised(ONLY_NORMALITY)}; estimates are often unstable.",
            if_not_normal=f"{_BY_SERIES} Do not lean on {option('method', 'ml')} or on p-values "
            "near 5%. If the outcome is skewed, transform it, and report the range over rho. If "
            f"its tails are heavy, compare with {option('errors', 't')}.",
            other_estimates=f"use {option('method', 'two-step')}",
            other_test=f"Report the two-step test ({option('method', 'two-step')}, "
            f"{option('cov_type', 'robust')}) in its place.",
            lacking={
                "calibration": "no probabilities, and so no calibration: use plots.residuals",
                "profile of df": "normal errors, without degrees of freedom: fit it with "
                f"{option('method', 'ml')} and {option('errors', 't')}",
            },
        ),
        equations=BOTH,
        error_terms=(IMR, RHO, SIGMA),
        dependence=("imr",),
        methods=("two-step", "ml"),
        supports=frozenset(
            {"compressed data", "two steps", "residuals", "bounds of rho", "honest halves"}
        ),
        first_step=select_and_compress,
        estimate=fit_linear,
        estimate_alone=fit_linear_without_selection,
        begin=begin_linear,
        refit=refit_linear,
        naive=least_squares_apart,
        parts=linear_parts,
        log_density=linear_log_density,
    )
)
