"""Where maximum likelihood starts: the two-step estimates, a given rho, or given parameters.

A parameter vector on the input's scale (``params_`` of a fitted model) holds the prediction
coefficients, the selection coefficients (each intercept first), log sigma unless the outcome is
binary, and atanh rho.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions
from heckmanfa.errors import InputError
from heckmanfa.model.joint_problem import JointProblem
from heckmanfa.model.likelihood_terms import Problem
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.option_types import Method
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep

_START_RHO = 0.95
_LARGEST_RHO = 1.0 - 1e-9

Start = float | Floats | None
"""nothing, a rho, or a parameter vector"""


def read_start(start: Any, method: Method) -> Start:
    """Check the parameter ``start``: None, a rho in (-1, 1), or a parameter vector."""
    if start is None:
        return None
    if method != "ml":
        raise InputError(
            "start is a starting value for maximum likelihood; the two-step method needs none. "
            "Fit by maximum likelihood (method 'ml'), or leave start out."
        )
    advice = "it must be a rho inside (-1, 1), or the params_ of a fitted model"
    if isinstance(start, bool | np.bool_ | str):
        raise InputError(f"start is {start!r}: {advice}")
    if isinstance(start, Real):
        rho = float(start)
        if not abs(rho) < 1:
            raise InputError(f"start is {rho:g}: {advice}")
        return rho
    try:
        values = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"start does not hold numbers: {advice}") from error
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        what = "missing or infinite values" if values.ndim == 1 else f"{values.ndim} dimensions"
        raise InputError(f"start has {what}: {advice}")
    return values


def elsewhere(start: Start) -> float | None:
    """Return the start to use for other rows or features, which have other parameters: its rho."""
    if start is None or isinstance(start, float):
        return start
    return float(np.clip(np.tanh(start[-1]), -_LARGEST_RHO, _LARGEST_RHO))


def starting_point(problem: Problem, probit: Probit, start: TwoStep) -> Floats:
    """Two-step values in inner coordinates; a rho-hat outside (-1, 1) starts just inside."""
    beta = start.coef[:-1].copy()
    beta[0] -= problem.centre
    inner_beta = solve_upper(problem.prediction_back, beta) / problem.scale
    rho = float(np.clip(start.solution.rho, -_START_RHO, _START_RHO))
    sigma = float(start.solution.sigma) / problem.scale
    return np.concatenate([probit.inner_coef, inner_beta, [np.log(sigma), np.arctanh(rho)]])


def inner_parameters(problem: JointProblem, params: Floats) -> Floats:
    """Convert a parameter vector on the input's scale to theta; its length must match."""
    p, j = problem.sizes
    size = p + j + len(problem.ends)
    if len(params) != size:
        *others, last = problem.ends
        raise InputError(
            f"start has {len(params)} entries, but this model has {size} parameters: "
            f"{j} of the prediction equation and {p} of the selection equation (each intercept "
            f"first){''.join(f', {name}' for name in others)} and {last}, as in params_. Start "
            "from a rho instead."
        )
    params = params.copy()
    params[problem.scales] -= np.log(problem.scale)
    beta, ends = params[:j], params[j + p :]
    beta[0] -= problem.centre
    return np.concatenate(
        [
            solve_upper(problem.selection_back, params[j : j + p]),
            solve_upper(problem.prediction_back, beta) / problem.scale,
            ends,
        ]
    )


class StartsByRho(Protocol):
    """Starting values for any given rho."""

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""


@dataclass(frozen=True)
class ProfileStarts(StartsByRho):
    """Starting values for a given rho, from regressions of y and lambda on the features.

    E[y | x, s = 1] = x'beta + rho sigma lambda, so beta(rho) is the first regression minus
    rho sigma times the second, and the residual variance s^2 of the first is
    sigma^2 (1 - rho^2 (mean of delta - residual variance of lambda)).
    """

    gamma: Floats
    least_squares: Floats
    """(1 + j,) of y, in the coordinates of beta"""
    of_lambda: Floats
    """(1 + j,) likewise of lambda"""
    variance: float
    """of the residuals of y"""
    shrinkage: float
    """mean of delta less the variance of the residuals of lambda"""

    @classmethod
    def build(
        cls, moments: Moments, probit: Probit, features: Positions, problem: JointProblem
    ) -> ProfileStarts:
        """Take both regressions from the compressed data."""
        r = moments.subset(features)
        design, m = r[:-2, :-2], moments.n_selected
        solved = solve_upper(design, r[:-2, -2:])
        solved[0, 1] -= problem.centre
        inner = solve_upper(problem.prediction_back, solved)
        return cls(
            gamma=probit.inner_coef,
            least_squares=inner[:, 1] / problem.scale,
            of_lambda=inner[:, 0],
            variance=float(np.sum(r[-2:, -1] ** 2)) / m / problem.scale**2,
            shrinkage=moments.mean_delta - float(r[-2, -2] ** 2) / m,
        )

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = np.tanh(atanh_rho)
        sigma = np.sqrt(self.variance / max(1.0 - rho**2 * self.shrinkage, 0.05))
        beta = self.least_squares - rho * sigma * self.of_lambda
        return np.concatenate([self.gamma, beta, [np.log(sigma), atanh_rho]])


@dataclass(frozen=True)
class ProbitStarts(StartsByRho):
    """Starting values for a given rho if the outcome is binary, from the plain probit.

    Given s = 1, y* has mean x'beta + rho lambda and variance 1 - rho^2 delta. The plain probit
    takes it to be normal with variance one, so its coefficients are nearly (beta + rho times the
    regression of lambda) / sqrt(1 - rho^2 (mean of delta - residual variance of lambda)).
    """

    gamma: Floats
    naive: Floats
    """(1 + j,) plain probit, in the coordinates of beta"""
    of_lambda: Floats
    """(1 + j,) regression of lambda, likewise"""
    shrinkage: float
    """as in `ProfileStarts`"""

    @classmethod
    def build(
        cls, moments: Moments, probit: Probit, naive: Probit, problem: JointProblem
    ) -> ProbitStarts:
        """Take the regression of lambda from the compressed data."""
        linear = ProfileStarts.build(moments, probit, naive.features, problem)
        return cls(linear.gamma, naive.inner_coef, linear.of_lambda, linear.shrinkage)

    def at(self, atanh_rho: float) -> Floats:
        """Return theta for a value of atanh rho."""
        rho = np.tanh(atanh_rho)
        spread = np.sqrt(max(1.0 - rho**2 * self.shrinkage, 0.05))
        beta = spread * self.naive - rho * self.of_lambda
        return np.concatenate([self.gamma, beta, [atanh_rho]])
