"""What a fit of a binary outcome knows beyond the estimates, without any rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats


@dataclass(frozen=True, eq=False)
class BinaryOutcome:
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


def average_slopes(
    coef: Floats, covariance: Floats, mean_slope: float, gradient: Floats
) -> tuple[Floats, Floats]:
    """Return average slopes of a probit, (J,), and their covariance, (J, J).

    Parameters
    ----------
    coef : array of shape (1 + J,)
        The intercept first.
    covariance : array of shape (1 + J, 1 + J)
    mean_slope : float
        Average of phi(x'coef).
    gradient : array of shape (1 + J,)
        Its derivative in the coefficients.
    """
    slopes = coef[1:] * mean_slope
    jacobian = np.outer(coef[1:], gradient)
    jacobian[:, 1:] += mean_slope * np.eye(len(slopes))
    return slopes, jacobian @ covariance @ jacobian.T


def likelihood_criteria(log_likelihood: Any, n_parameters: Any, n: float) -> tuple[Any, Any]:
    """AIC and BIC of a likelihood, numbers or arrays.

    A fit counts every parameter, and all n rows. A search compares prediction features, and counts
    these and the selected rows alone: no other parameter of the joint likelihood ever changes.
    """
    deviance = -2.0 * log_likelihood
    return deviance + 2.0 * n_parameters, deviance + n_parameters * float(np.log(n))
