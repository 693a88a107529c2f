"""The linear model: a numeric outcome, by two steps or maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import AllObservedWarning, RhoOutsideWarning, warn
from heckmanfa.fit.family import (
    IMR,
    PREDICTION,
    RHO,
    SELECTION,
    SIGMA,
    Beginning,
    Details,
    Family,
    FamilyWords,
    register,
)
from heckmanfa.fit.fitted import (
    Choice,
    ErrorEstimate,
    Fit,
    Spec,
    count,
    error_estimates,
    fit_of_equations,
    fit_of_maximum,
    label_terms,
    nothing_selected,
    rho_without_selection,
    spread_over,
)
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import Selection, fit_selection, gather
from heckmanfa.model.expectation_parts import linear_parts
from heckmanfa.model.held_two_step import fit_held_two_step, gather_rho_scores
from heckmanfa.model.joint_problem import LinearProblem
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.likelihood import (
    MaximumLikelihood,
    fit_held_likelihood,
    fit_likelihood,
    likelihood_criteria,
    warn_of_likelihood,
)
from heckmanfa.model.likelihood_guards import guard_likelihood
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.newton import ProfileStarts, Start, read_start, starting_point
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.own_scale import (
    OwnScale,
    held_own_scale,
    least_squares_own_scale,
    likelihood_own_scale,
    two_step_own_scale,
)
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import LARGEST_RHO, fit_least_squares, fit_two_step, solve_two_step
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import ONLY_NORMALITY, capitalised


@dataclass(frozen=True, eq=False)
class LinearDetails(Details):
    """What a fit of a numeric outcome keeps, for J features and p selection features."""

    own_scale: OwnScale | None = None
    """what a fit on the log of an outcome knows of the outcome's own scale"""
    rho_scores: Floats | None = None
    """(2 J + p + 5) squared, for robust or cluster standard errors at any given rho; None if they
    are classical"""

    def averaged(self) -> None:
        """Both are of one set of features."""

    def rescaled(self, ratio: Floats, moved: Floats) -> LinearDetails:
        """Rescale what is known of sigma with its standard error."""
        own_scale = None if self.own_scale is None else self.own_scale.rescaled(ratio)
        return replace(self, own_scale=own_scale)


def select_and_compress(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, Moments]:
    """Fit the selection equation, and compress the selected rows with lambda among them."""
    selection = fit_selection(
        sample.rows,
        spec.selection,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
        check_left=check_left,
    )
    prediction = [column for column in spec.prediction if column not in selection.separating]
    return selection, gather(selection, prediction, spec.labels, sample.row_counts["selected"])


def fit_linear(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
) -> Fit:
    """Estimate the prediction equation with the chosen features; the probit is fitted already."""
    given = spec, selection, moments, choice, kind, counts
    fit = _fit_free(*given) if spec.rho is None else _fit_held(*given, spec.rho)
    if choice.everything or not (spec.errors_differ and spec.guarded):
        return fit
    rows = selection.rows
    scores = gather_rho_scores(moments, selection.probit, fit.features, kind, rows)
    return replace(fit, details=LinearDetails(fit.own_scale, scores))


def _fit_free(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
) -> Fit:
    """Estimate rho with all else, by either method."""
    probit, rows = selection.probit, selection.rows
    # Skip robust errors: maximum likelihood replaces these estimates.
    first = CLASSICAL if spec.method == "ml" else kind
    # The covariance of everything must be positive definite.
    largest = LARGEST_RHO if choice.everything else None
    found = fit_two_step(moments, probit, choice.features, first, rows, largest_rho=largest)
    solution = found.solution
    j = len(found.coef) - 1
    order = [*range(j), *range(j + 1, len(found.covariance)), j]
    fit = fit_of_equations(
        *(spec, selection, moments, choice, kind, counts),
        features=found.features,
        coef=found.coef[:-1],
        selection_coef=probit.coef,
        errors=error_estimates(float(found.coef[-1]), float(solution.rho), float(solution.sigma)),
        adjusted_r2=float(solution.adjusted_r2),
        aic=float(solution.aic),
        bic=float(solution.bic),
        converged=probit.converged,
        terms=label_terms(spec, found.features, probit, ["imr"]),
        covariance=found.covariance[np.ix_(order, order)],
        index_range=moments.index_range,
    )
    if spec.method == "ml":
        start = read_start(spec.start, spec.method)
        maximum = fit_likelihood(moments, probit, found, kind, rows, start)
        warn_of_likelihood(maximum, start)
        given = moments, probit, found, maximum, kind, rows, fit.n_selected
        guards = guard_likelihood(*given) if spec.guarded else None
        return replace(_of_maximum(fit, maximum, selection, choice, kind), guards=guards)
    if spec.needs_own_scale or (choice.everything and spec.guarded):
        own_scale = two_step_own_scale(moments, probit, found, kind, rows)
        fit = replace(fit, details=LinearDetails(own_scale))
    if not abs(fit.rho) < 1 and not choice.everything:
        warn(
            f"the two-step estimate of rho is {fit.rho:.4g}, outside (-1, 1): the data do not fit "
            "the model well, or only normality identifies it. See "
            f"{instead('diagnostics()', 'the diagnostics')}, or use {option('method', 'ml')}.",
            RhoOutsideWarning,
        )
    return fit


def _of_maximum(
    fit: Fit, found: MaximumLikelihood, selection: Selection, choice: Choice, kind: CovarianceKind
) -> Fit:
    """Return the fit by maximum likelihood, given that of two steps."""
    spec, own_scale = fit.spec, None
    if spec.needs_own_scale:
        given = fit.moments, selection.probit, found, kind, selection.rows
        own_scale = likelihood_own_scale(*given)
    return replace(
        fit_of_maximum(spec, selection, fit.moments, choice, kind, fit.row_counts, found),
        adjusted_r2=fit.adjusted_r2,
        details=LinearDetails(own_scale),
    )


def _fit_held(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
    rho: float,
) -> Fit:
    """Estimate everything but rho, which the user gives, by either method."""
    probit, rows = selection.probit, selection.rows
    features = tuple(sorted(choice.features))
    ml = spec.method == "ml"
    found = fit_held_two_step(moments, probit, features, rho, CLASSICAL if ml else kind, rows)
    errors = error_estimates(found.imr_coef, rho, found.sigma)
    log_sigma_error = float(np.sqrt(found.covariance[-1, -1])) / found.sigma
    errors["sigma"] = ErrorEstimate(found.sigma, (float(np.log(found.sigma)), log_sigma_error))
    fit = fit_of_equations(
        *(spec, selection, moments, choice, kind, counts),
        features=features,
        coef=found.coef,
        selection_coef=probit.coef,
        errors=errors,
        adjusted_r2=found.adjusted_r2,
        aic=found.aic,
        bic=found.bic,
        converged=probit.converged,
        terms=label_terms(spec, features, probit, ["imr", "rho", "sigma"]),
        covariance=found.covariance,
        index_range=moments.index_range,
    )
    if not ml:
        if not spec.needs_own_scale:
            return fit
        own_scale = held_own_scale(moments, probit, features, rho, kind, rows)
        return replace(fit, details=LinearDetails(own_scale))
    maximum = fit_held_likelihood(moments, probit, features, rho, kind, rows)
    warn_of_likelihood(maximum, None)
    return _of_maximum(fit, maximum, selection, choice, kind)


def fit_linear_without_selection(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Fit ordinary least squares, since no outcome is missing."""
    k, counts = len(spec.labels), sample.row_counts
    moments = gather_moments(sample.rows, spec.prediction, k, None)
    refuse_leakage(moments, spec.labels, counts["selected"], missing=False)
    found = fit_least_squares(moments, spec.prediction, kind, sample.rows)
    extra = (
        f" The {len(spec.prediction)} features are collinear or more than the rows can identify: "
        "the coefficients are the minimum-norm ones."
        if found.underdetermined
        else ""
    )
    warn(
        f"no outcome is missing among the {counts['selected']} rows, so there is no selection to "
        f"correct for: ordinary least squares is fitted, and {rho_without_selection(spec)}.{extra}",
        AllObservedWarning,
    )
    n = count(moments.n_selected, counts["selected"], kind)
    aic, bic, log_likelihood, own_scale = found.aic, found.bic, None, None
    if spec.method == "ml":
        log_likelihood = found.log_likelihood
        # The coefficients, the intercept and sigma.
        aic, bic = likelihood_criteria(log_likelihood, len(spec.prediction) + 2, n)
    if spec.needs_own_scale:
        columns = sorted(spec.prediction)
        own_scale = least_squares_own_scale(moments, columns, found, kind, sample.rows)
    return Fit(
        spec=spec,
        row_counts=dict(counts),
        n_obs=n,
        n_selected=n,
        moments=moments,
        dropped=(),
        support=np.isin(np.arange(k), spec.prediction),
        equations={
            "prediction": spread_over(spec, sorted(spec.prediction), found.coef),
            "selection": nothing_selected(spec),
        },
        errors=error_estimates(float("nan"), float("nan"), found.sigma),
        adjusted_r2=found.adjusted_r2,
        aic=aic,
        bic=bic,
        log_likelihood=log_likelihood,
        converged=True,
        terms=label_terms(spec, spec.prediction, None, []),
        covariance=found.covariance,
        index_range=moments.index_range,
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
    index: Floats, mean: Floats, outcome: Floats, rho: float, sigma: float
) -> Floats:
    """Log-likelihood of selected rows: of their selection and their outcomes."""
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
            if_not_normal=f"Do not lean on {option('method', 'ml')} or on p-values near 5%. If "
            "the outcome is skewed, transform it, and report the range over rho.",
            other_estimates=f"use {option('method', 'two-step')}",
            other_test=f"Report the two-step test ({option('method', 'two-step')}, "
            f"{option('cov_type', 'robust')}) in its place.",
            lacking={"calibration": "no probabilities, and so no calibration: use plots.residuals"},
        ),
        equations=(PREDICTION, SELECTION),
        error_terms=(IMR, RHO, SIGMA),
        dependence="imr",
        methods=("two-step", "ml"),
        supports=frozenset({"compressed data", "two steps", "residuals", "bounds of rho"}),
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
