"""The Heckman probit: an outcome of two classes, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import ConvergenceWarning, warn
from heckmanfa.fit.classes import ClassLikelihood
from heckmanfa.fit.family import (
    BOTH,
    Details,
    Family,
    FamilyWords,
    register,
)
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.fit.making import (
    Inputs,
    count,
    error_estimates,
    fit_of_maximum,
    fit_without_selection,
    warn_of_no_selection,
)
from heckmanfa.model.bivariate_normal import log_bivariate_cdf
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, count_rows, weighted_count
from heckmanfa.model.error_terms import RHO
from heckmanfa.model.expectation_parts import probability_parts
from heckmanfa.model.likelihood import likelihood_criteria
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.outcome_probit import (
    OutcomeRows,
    fit_binary_selection,
    fit_outcome_probit,
    independent_columns,
    outcome_separation,
    separation_warning,
)
from heckmanfa.model.probit import Probit, probit_covariance
from heckmanfa.model.probit_likelihood import (
    ProbitsApart,
    fit_probit_likelihood,
    outcome_slopes,
    probits_apart,
)
from heckmanfa.model.two_step import refuse_unidentified
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import ONLY_NORMALITY, capitalised

_ROUNDED = 1e-12


@dataclass(frozen=True, eq=False)
class BinaryOutcome(Details):
    """A binary outcome among the selected rows, and the models that ignore selection.

    J is the number of prediction features.
    """

    n_positive: int | float
    """selected rows of the positive class"""
    n_negative: int | float
    """selected rows of the negative class"""
    independent_log_likelihood: float
    """of two separate probits, which is the model with rho = 0"""
    naive_coef: Floats
    """(1 + J,) plain probit of the selected rows, intercept first"""
    naive_covariance: Floats
    """(1 + J, 1 + J)"""
    mean_slope: float
    """average of phi(x'beta) over the selected rows: times a coefficient, it is the average
    marginal effect on P(y = 1)"""
    mean_slope_gradient: Floats
    """(1 + J,) its derivative in beta"""
    naive_mean_slope: float
    """average of phi(x'b) over the selected rows, b being the plain probit's coefficients"""
    naive_mean_slope_gradient: Floats
    """(1 + J,) its derivative in b"""
    separated: tuple[int, ...] = ()
    """columns that decide the outcome among the selected rows; kept only if nothing is missing"""
    deciding: tuple[int, ...] = ()
    """columns that decided the outcome of rows which were left out for it"""

    def rescaled(self, ratio: Floats, moved: Floats) -> BinaryOutcome:
        """Move the mean slope with the estimates: no row is left to average over.

        To first order in its logarithm, it stays positive; no average of phi is above phi(0).
        """
        change = float(self.mean_slope_gradient @ moved) / self.mean_slope
        slope = min(self.mean_slope * float(np.exp(change)), 1.0 / np.sqrt(2.0 * np.pi))
        return replace(self, mean_slope=slope)


def probits_and_compress(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, Moments]:
    """Fit the probits of both equations, and compress the selected rows."""
    return fit_binary_selection(
        sample.rows,
        spec.selection,
        spec.prediction,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
        check_left=check_left,
    )


def fit_binary(inputs: Inputs) -> Fit:
    """Maximise the joint likelihood for the chosen features, from the probits of both equations."""
    spec, kind = inputs.spec, inputs.kind
    moments, probit, rows = inputs.moments, inputs.probit, inputs.rows
    if not spec.held:
        refuse_unidentified(moments.subset(inputs.features, outcome=False))
    naive = inputs.selection.outcome
    if naive is None or naive.features != inputs.features:
        naive = fit_outcome_probit(moments, rows, inputs.features)
    apart = probits_apart(moments, probit, naive)
    maximum = LIKELIHOOD.maximum_of(inputs, apart)
    n_positive, n_negative = _class_counts(moments, rows, kind)
    details = BinaryOutcome(
        n_positive=n_positive,
        n_negative=n_negative,
        independent_log_likelihood=apart.log_likelihood,
        naive_coef=naive.coef,
        naive_covariance=probit_covariance(OutcomeRows(rows), naive, kind),
        mean_slope=float(maximum.mean_slopes[0]),
        mean_slope_gradient=maximum.mean_slope_gradients[:, 0],
        naive_mean_slope=float(maximum.mean_slopes[1]),
        naive_mean_slope_gradient=maximum.mean_slope_gradients[:, 1],
        deciding=tuple(inputs.selection.deciding),
    )
    return replace(fit_of_maximum(inputs, maximum), details=details)


def _class_counts(
    moments: Moments, rows: Rows, kind: CovarianceKind
) -> tuple[int | float, int | float]:
    """Count the selected rows of the positive and of the negative class.

    Frequency weights are summed, sampling weights are not.
    """
    if kind.sampling:
        n, n_positive = count_rows(OutcomeRows(rows))
        return n_positive, n - n_positive
    m = moments.n_selected
    positive = float(moments.means[-1]) * m
    # A product of two roundings, which grows with the number of rows.
    if abs(positive - round(positive)) < _ROUNDED * m:
        positive = round(positive)
    return positive, weighted_count(m - positive)


def fit_binary_without_selection(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Fit a plain probit, since no outcome is missing."""
    rows, features = sample.rows, tuple(sorted(spec.prediction))
    moments = gather_moments(rows, features, len(spec.labels), None)
    kept = independent_columns(moments, features)
    probit = fit_outcome_probit(moments, rows, kept)
    separation = outcome_separation(rows, probit)
    warn_of_no_selection(
        spec,
        sample,
        "a plain probit",
        " If the outcome was made by a comparison, which is false where a value is missing, mark "
        "such rows as missing.",
        underdetermined=len(kept) < len(features),
    )
    separated: tuple[int, ...] = ()
    if separation is not None:
        separated = tuple(kept[place] for place in separation.columns)
        warn(separation_warning(separation, kept, spec.labels), ConvergenceWarning)
    elif not probit.converged:
        warn(
            f"the probit did not converge in {probit.n_iterations} passes; do not trust its "
            "estimates. Rescale or leave out extreme features.",
            ConvergenceWarning,
        )
    coef = _minimum_norm(moments, features, kept, probit.coef)
    if separated or len(kept) < len(features):
        covariance = np.full((len(coef), len(coef)), np.nan)
    else:
        covariance = probit_covariance(OutcomeRows(rows), probit, kind)
    slope, in_kept = outcome_slopes(rows, probit)
    gradient = np.zeros(len(coef))
    gradient[[0, *(features.index(column) + 1 for column in kept)]] = in_kept
    n_positive, n_negative = _class_counts(moments, rows, kind)
    details = BinaryOutcome(
        n_positive=n_positive,
        n_negative=n_negative,
        independent_log_likelihood=probit.log_likelihood,
        naive_coef=coef,
        naive_covariance=covariance,
        mean_slope=slope,
        mean_slope_gradient=gradient,
        naive_mean_slope=slope,
        naive_mean_slope_gradient=gradient,
        separated=separated,
    )
    n = count(moments.n_selected, sample.row_counts["selected"], kind)
    aic, bic = likelihood_criteria(probit.log_likelihood, 1 + len(kept), n)
    return fit_without_selection(
        *(spec, sample, kind, moments, coef, error_estimates(rho=np.nan)),
        adjusted_r2=float("nan"),
        aic=aic,
        bic=bic,
        log_likelihood=probit.log_likelihood,
        converged=probit.converged and not separated,
        covariance=covariance,
        details=details,
    )


def _minimum_norm(moments: Moments, features: Positions, kept: Positions, coef: Floats) -> Floats:
    """Coefficients of all features that give the index of those that were fitted.

    The norm is that of the slopes on centred features; the intercept is not part of it.
    """
    if len(kept) == len(features):
        return coef
    root = moments.subset(features, imr=False, outcome=False)
    places = [list(features).index(column) + 1 for column in kept]
    slopes = np.linalg.lstsq(root[1:, 1:], root[1:, places] @ coef[1:], rcond=1e-12)[0]
    mean = root[0, 1:] / root[0, 0]
    intercept = coef[0] + mean[[place - 1 for place in places]] @ coef[1:] - mean @ slopes
    return np.append(intercept, slopes)


def apart_by_probits(
    moments: Moments, probit: Probit, features: Positions, rows: Rows
) -> ProbitsApart:
    """Fit the plain probit of the selected rows, beside that of selection."""
    return probits_apart(moments, probit, fit_outcome_probit(moments, rows, features))


def _decided(apart: Any, rows: Rows) -> str | None:
    """Say that features decide the outcome, if they do."""
    separated = outcome_separation(rows, apart.naive) is not None
    return "the features decide the outcome among the selected rows" if separated else None


LIKELIHOOD = ClassLikelihood(apart_by_probits, fit_probit_likelihood, _decided)


def probit_apart(fit: Fit) -> tuple[Floats, float]:
    """Coefficients of the plain probit, and the log-likelihood of two separate probits."""
    assert isinstance(fit.details, BinaryOutcome)
    return fit.details.naive_coef, fit.details.independent_log_likelihood


def binary_log_density(
    index: Floats, mean: Floats, outcome: Floats, errors: Mapping[str, float]
) -> Floats:
    """Log-likelihood of selected rows: of their selection and their classes."""
    sign = 2.0 * outcome - 1.0
    return np.asarray(log_bivariate_cdf(sign * mean, index, sign * errors["rho"]))


BINARY = register(
    Family(
        name="binary",
        words=FamilyWords(
            model="Heckman probit",
            title="Heckman probit",
            short="Heckman probit",
            all_features_model="Heckman probit",
            naive="a probit of the rows with an outcome alone",
            naive_short="naive probit",
            naive_of="a probit of",
            plain="a plain probit",
            plain_short="probit",
            by_naive="By a probit",
            correction="the correction",
            correction_subject="the correction for selection",
            correction_parameter="rho",
            searches="HeckmanProbitBestSubset",
            weighing="HeckmanProbitAverage or HeckmanProbitBestSubset",
            averages="HeckmanProbitAverage",
            effect="An effect on a probability",
            changes="the probability by its average marginal effect",
            likelihood_cure="predict with fewer features, or look for one that nearly decides the "
            "outcome",
            near_one=": the likelihood may rise up to the boundary, and the model is hardly "
            "identified. Look for a stronger exclusion, or let fewer features predict."
            f"{instead(' See profile_rho().', '')} Standard errors would be those of a known rho, "
            "and are not given.",
            only_normality=f"{capitalised(ONLY_NORMALITY)}, and a binary "
            "outcome says little about their shape: rho and all effects rest on an assumption that "
            "these data can hardly contradict.",
            if_not_normal="Report the range over rho beside the estimate, and do not lean on "
            "p-values near 5%.",
            other_estimates=f"let fewer features predict ({option('prediction_features', [...])})",
            other_test="Do not take it as evidence for selection, or against it. Look at the "
            "checks above first.",
            lacking={
                "residuals": "no residuals that could be normal: use plots.calibration, which "
                "compares its predicted probabilities with what happened",
                "lambda": "no coefficient of lambda: use plots.over_rho, which shows how much "
                "depends on rho",
                "two steps": "no two-step estimates: use method='ml'",
            },
            unit="percentage points",
            factor=100.0,
            separates="selection or the outcome",
            sources=(
                "W. P. M. M. van de Ven and B. M. S. van Praag (1981). The demand for deductibles "
                "in private health insurance: a probit model with sample selection. Journal of "
                "Econometrics 17(2), 229\u2013252.",
            ),
            estimation="Maximum likelihood of the Heckman probit: a probit for who is selected and "
            "a probit of the outcome together, whose errors are correlated by rho.",
        ),
        equations=BOTH,
        error_terms=(RHO,),
        dependence=("rho",),
        methods=("ml",),
        supports=frozenset({"calibration", "shared refits", "honest halves"}),
        first_step=probits_and_compress,
        estimate=fit_binary,
        estimate_alone=fit_binary_without_selection,
        begin=LIKELIHOOD.begin,
        refit=LIKELIHOOD.refit,
        naive=probit_apart,
        parts=probability_parts,
        log_density=binary_log_density,
        has_classes=True,
        is_bounded=True,
    )
)
