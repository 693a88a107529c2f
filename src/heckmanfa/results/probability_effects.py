"""Average marginal effects on the probability of the positive class, with 95% intervals.

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
from heckmanfa.model.probit_likelihood import average_slopes
from heckmanfa.results.reference import reference_of


def own_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return the average slopes of the prediction features of a fit, and their covariance."""
    assert fit.binary is not None
    coef = np.array([fit.intercept, *fit.coef[fit.equation]])
    covariance = fit.covariance[: len(coef), : len(coef)]
    return average_slopes(coef, covariance, fit.binary.mean_slope, fit.binary.mean_slope_gradient)


def naive_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return those of a probit of the rows with an outcome, which ignores selection."""
    found = fit.binary
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
