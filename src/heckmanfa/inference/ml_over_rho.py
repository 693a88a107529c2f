"""Estimates of a binary outcome's model with rho held at a value, for any value in a range.

The estimator is that of ui.probit in R (Genback, Ng, Stanghellini and de Luna, 2018, "Predictors of
decline in self-reported health", European Journal of Ageing 15): the likelihood is maximised over
all parameters but rho. It is so at some values of t = atanh rho, of which the ends of the range and
zero are always some. In between, an estimate is the cubic with the heights and slopes of both
neighbours. Along the maxima, the slope of the other parameters in t is -H_ff^-1 H_ft, H being the
Hessian and f the free parameters. The standard error takes rho as given: it is from -H_ff^-1 or,
if robust or for clusters, from the sandwich with the scores of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg as sla
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.optimize import brentq

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.inference.profiler import Likelihood, Point, Profiler
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind, sandwich
from heckmanfa.model.joint_problem import scores_of
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.newton import newton_step
from heckmanfa.model.probit_likelihood import ProbitProblem, ProbitsApart, mean_slopes
from heckmanfa.model.two_step_over_rho import TwoStepOverRho

# The furthest |rho| that is examined, and the distance of values of atanh rho.
_FURTHEST, _APART = 0.99, 0.3
# Values this close to another are left out.
_NEAR = 0.02
_DENSE = 2001


@dataclass(frozen=True, eq=False)
class MLOverRho:
    """Estimates and their standard errors as functions of rho, found at G values of it."""

    terms: tuple[str, ...]
    """intercept first"""
    atanh_rho: Floats
    """(G,) ascending"""
    value: Floats
    """(G, 1 + J) coefficients, or average marginal effects on the probability"""
    slope: Floats
    """(G, 1 + J) their derivatives in atanh rho"""
    error: Floats
    """(G, 1 + J) standard errors, given rho"""
    reach: float
    """the largest |rho| at which there are estimates on both sides"""

    @classmethod
    def build(
        cls,
        likelihood: Likelihood,
        terms: Sequence[str],
        ends: tuple[float, float],
        kind: CovarianceKind = CLASSICAL,
        *,
        effects: bool = False,
    ) -> MLOverRho:
        """Maximise the likelihood at values of rho; ``ends`` are those that must be among them.

        A ``kind`` other than classical takes one pass more for each value.

        With ``effects``, values are average marginal effects on the probability of the positive
        class, over the selected rows; that of the intercept has no meaning.
        """
        points = Profiler.of_rho(likelihood).along(_places(ends))
        points = _around_zero(points)
        first, last = (float(np.tanh(point.value)) for point in (points[0], points[-1]))
        tolerance = 1e-12
        if first > min(ends) + tolerance or last < max(ends) - tolerance:
            raise NotIdentifiedError(
                f"the likelihood has a maximum for rho from {first:.3g} to {last:.3g}, and not "
                "beyond; narrow the range of rho"
            )
        numbers = [
            (_effects if effects else _coefficients)(likelihood, point, kind) for point in points
        ]
        value, slope, error = (np.array(column) for column in zip(*numbers, strict=True))
        return cls(
            terms=tuple(terms),
            atanh_rho=np.array([point.value for point in points]),
            value=value,
            slope=slope,
            error=error,
            reach=min(-first, last),
        )

    @property
    def at_zero(self) -> Floats:
        """(1 + J,) estimates at rho = 0, those of the naive probit."""
        return np.asarray(self.estimate(np.zeros(1))[0])

    @property
    def zero_name(self) -> str:
        """What the estimate at rho = 0 is, as a column."""
        return "probit"

    def more_columns(self, rho: Floats) -> dict[str, Floats]:
        """Return what else depends on rho: nothing."""
        return {}

    def estimate(self, rho: Floats) -> Floats:
        """Estimates (R, 1 + J) for R values of rho."""
        return np.asarray(self._values()(np.arctanh(rho)))

    def std_error(self, rho: Floats) -> Floats:
        """Standard errors (R, 1 + J) for R values of rho."""
        return np.asarray(np.exp(self._errors()(np.arctanh(rho))))

    def sign_changes(self) -> Floats:
        """(1 + J,) rho nearest to zero at which each estimate is zero; NaN if there is none."""
        roots_by_term = [
            self._roots(self._values()(self._dense), place) for place in range(self._width)
        ]
        return np.array([_nearest(roots) for roots in roots_by_term])

    def significance_changes(self, quantile: float) -> Floats:
        """(1 + J, 2) nearest rho below and above zero at which a confidence limit is zero."""
        dense = self._dense
        errors = np.exp(self._errors()(dense))
        gap = np.abs(self._values()(dense)) - quantile * errors
        changes = np.full((self._width, 2), np.nan)
        for place in range(self._width):
            roots = self._roots(gap, place, quantile)
            changes[place] = _nearest(roots[roots < 0]), _nearest(roots[roots > 0])
        return changes

    @property
    def _width(self) -> int:
        return len(self.terms)

    @property
    def _dense(self) -> Floats:
        return np.linspace(self.atanh_rho[0], self.atanh_rho[-1], _DENSE)

    def _values(self) -> CubicHermiteSpline:
        return CubicHermiteSpline(self.atanh_rho, self.value, self.slope)

    def _errors(self) -> CubicSpline:
        return CubicSpline(self.atanh_rho, np.log(self.error))

    def _roots(self, heights: Floats, place: int, quantile: float | None = None) -> Floats:
        """Find where an estimate is zero or, given a quantile, where a confidence limit is."""
        dense, values, errors = self._dense, self._values(), self._errors()

        def height(t: float) -> float:
            value = float(values(t)[place])
            if quantile is None:
                return value
            return abs(value) - quantile * float(np.exp(errors(t)[place]))

        turns = np.flatnonzero(np.diff(np.sign(heights[:, place])) != 0)
        roots = [brentq(height, dense[turn], dense[turn + 1]) for turn in turns]
        return np.tanh(np.array(roots, dtype=np.float64))


OverRhoCurve = TwoStepOverRho | MLOverRho
"""estimates over rho, from the compressed data or from the rows"""


def _nearest(roots: Floats) -> float:
    return float(roots[np.argmin(np.abs(roots))]) if len(roots) else float("nan")


def _places(ends: tuple[float, float]) -> Floats:
    """Return values of atanh rho: the ends, zero, and others that are apart from them."""
    wanted = np.unique([*np.arctanh(ends), 0.0])
    furthest = max(np.arctanh(_FURTHEST), float(np.abs(wanted).max()))
    count = 2 * int(np.ceil(furthest / _APART)) + 1
    others = np.linspace(-furthest, furthest, count)
    apart = np.abs(others[:, None] - wanted).min(axis=1) > _NEAR
    return np.unique(np.concatenate([wanted, others[apart]]))


def _around_zero(points: Sequence[Point]) -> list[Point]:
    """Return the points around zero up to the first at which the likelihood has no maximum."""
    kept: list[Point] = []
    for point in points:
        if np.isfinite(point.height):
            kept.append(point)
        elif point.value < 0:
            kept = []
        else:
            break
    if len(kept) < 2 or not kept[0].value <= 0.0 <= kept[-1].value:
        raise NotIdentifiedError(
            "the likelihood has no maximum with rho held near zero; use other features"
        )
    return kept


def _coefficients(
    likelihood: Likelihood, point: Point, kind: CovarianceKind
) -> tuple[Floats, Floats, Floats]:
    """Return the coefficients at a point, their slopes in atanh rho, and standard errors."""
    _, coef, slope, covariance = _at_maximum(likelihood, point, kind)
    return coef, slope, np.sqrt(np.diag(covariance))


def _effects(
    likelihood: Likelihood, point: Point, kind: CovarianceKind
) -> tuple[Floats, Floats, Floats]:
    """Return the same of average marginal effects: coefficients times the mean of phi(x'b)."""
    theta, coef, slope, covariance = _at_maximum(likelihood, point, kind)
    problem, first = likelihood.problem, likelihood.first
    assert isinstance(first, ProbitsApart)
    assert isinstance(problem, ProbitProblem)
    slopes = mean_slopes(likelihood.rows, problem, theta, first.naive.inner_coef)
    gradients = solve_upper(problem.prediction_back, slopes.gradient, transposed=True)
    mean, gradient = float(slopes.mean[0]), gradients[:, 0]
    jacobian = mean * np.eye(len(coef)) + np.outer(coef, gradient)
    spread = jacobian @ covariance @ jacobian.T
    return mean * coef, jacobian @ slope, np.sqrt(np.diag(spread))


def _at_maximum(
    likelihood: Likelihood, point: Point, kind: CovarianceKind
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return theta; the coefficients, their slopes in atanh rho, and covariance given rho."""
    state, problem = point.state, likelihood.problem
    rho = likelihood.rho
    free = problem.all_but(rho)
    theta = state.theta + newton_step(state, free)
    half = sla.cho_factor(-state.hessian[np.ix_(free, free)])
    slope = sla.cho_solve(half, state.hessian[free, rho])
    inverse = sla.cho_solve(half, np.eye(len(free)))
    if kind.cov_type != "classical":
        # The score of rho, which is held, moves nothing.
        bread, scores = np.insert(inverse, rho, 0.0, axis=1), (scores_of, problem, theta)
        inverse = sandwich(likelihood.rows, kind, bread, *scores, columns=problem.columns)
    # The coefficients precede rho, so that they have the same places without it.
    back, beta = problem.prediction_back * problem.scale, problem.equation("prediction")
    return theta, back @ theta[beta], back @ slope[beta], back @ inverse[beta, beta] @ back.T
