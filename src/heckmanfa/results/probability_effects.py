"""What a model of probabilities knows: classes, and average marginal effects with intervals.

P(y = 1 | x) = Phi(x'beta) has the slope phi(x'beta) beta_j in feature j. Its average over the rows
with an outcome is beta_j times the mean of phi(x'beta), which the fit knows, so no rows are read.
Standard errors are by the delta method. The effect of a feature of 0 and 1 is a slope too, not the
difference of two predictions: `margins` has those. Honest estimates have the mean of phi of
their features in all rows, moved to the medians.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.fit.binary import BinaryOutcome
from heckmanfa.model.probit_likelihood import average_slopes
from heckmanfa.results.reference import reference_of


def probability_of(fit: Fit) -> BinaryOutcome | None:
    """Return what a fit knows of its classes and slopes; None unless it models probabilities."""
    return fit.details if isinstance(fit.details, BinaryOutcome) else None


def separating_columns(fit: Fit) -> tuple[int, ...]:
    """Return the columns that decide the outcome among the selected rows."""
    found = probability_of(fit)
    return () if found is None else found.separated


def class_counts(fit: Fit) -> tuple[int | float | None, int | float | None]:
    """Count the selected rows of the positive and of the negative class; None without classes."""
    found = probability_of(fit)
    return (None, None) if found is None else (found.n_positive, found.n_negative)


def mean_slope(fit: Fit) -> float:
    """Return what turns a coefficient into an average effect: 1 unless it is on a probability."""
    found = probability_of(fit)
    return 1.0 if found is None else found.mean_slope


def own_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return the average slopes of the prediction features of a fit, and their covariance."""
    found = probability_of(fit)
    assert found is not None
    coef = np.array([fit.intercept, *fit.coef[fit.equation]])
    covariance = fit.covariance[: len(coef), : len(coef)]
    return average_slopes(coef, covariance, found.mean_slope, found.mean_slope_gradient)


def naive_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return those of a probit of the rows with an outcome, which ignores selection."""
    found = probability_of(fit)
    assert found is not None
    return average_slopes(
        found.naive_coef,
        found.naive_covariance,
        found.naive_mean_slope,
        found.naive_mean_slope_gradient,
    )


def with_ends(fit: Fit, slopes: tuple[Floats, Floats], conf_level: float) -> Floats:
    """Spread effects over the K columns of X, with the ends of their intervals, (K, 3)."""
    values = np.full((fit.n_features, 3), np.nan)
    effect, covariance = slopes
    with np.errstate(invalid="ignore"):
        reach = reference_of(fit).quantile(conf_level) * np.sqrt(np.diag(covariance))
    values[fit.equation] = np.column_stack([effect, effect - reach, effect + reach])
    return values
