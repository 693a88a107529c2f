"""Points of a profile likelihood: the likelihood with one parameter held, and all others free.

The held parameter is a linear function c'theta of the parameters of `model.joint_problem`: atanh
rho, or a coefficient of the prediction equation. By the envelope theorem the slope of the
profile is the multiplier of the restriction, which comes with each height.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as sla
from scipy.optimize import brentq

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows
from heckmanfa.fit import Fit
from heckmanfa.inference.rows_of_fit import probit_of
from heckmanfa.model.joint_problem import SelectionProblem, State
from heckmanfa.model.newton import (
    LARGEST_ATANH,
    Free,
    StartsByRho,
    maximum_from,
    newton,
    newton_step,
)
from heckmanfa.model.probit_likelihood import Apart
from heckmanfa.model.two_step import TwoStep

# Beyond this atanh rho, the likelihood of a binary outcome may have levelled off.
_LEVEL_ATANH = 5.0
# Heights are then known to this many units of log-likelihood, or better.
_DECREMENT = 1e-8
_ROOT = 1e-11
_SAME = 1e-6
# An end of an interval is where the log-likelihood is this close to its level.
_END = 1e-7
_END_STEPS = 40
# How near rho may come to one.
_WIDEST_RHO = 1.0 - 1e-6


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The likelihood of one model, and the maximum that maximum likelihood reports."""

    rows: Rows
    problem: SelectionProblem
    first: TwoStep | Apart
    """the two-step estimates, or the model of the selected rows that ignores selection"""
    usual: Floats
    """theta where maximum likelihood starts by default"""
    starts: StartsByRho
    offset: float
    """from the likelihood of the scaled outcome to that of the outcome"""
    top: State | None
    """None if maximum likelihood does not converge"""
    holds_rho: bool = False
    """whether rho is held where the model holds it, whatever else is"""

    @classmethod
    def build(cls, fit: Fit, rows: Rows, *, held: bool = False) -> Likelihood:
        """Maximise from the usual estimates or the model's start, as maximum likelihood does.

        ``rows`` are those that both equations of the fit were fitted to. A rho that the model
        holds at a value stays there if it is to be ``held``.
        """
        probit = probit_of(fit, "there is no selection to examine")
        fit.family.require("profiles")
        assert fit.family.begin is not None
        begun = fit.family.begin(fit.moments, probit, fit.features, rows)
        problem, starts, usual = begun.problem, begun.starts, begun.usual
        held = held and fit.held_rho is not None
        if held:
            usual = starts.at(float(np.arctanh(fit.rho)))
            free = problem.all_but(problem.place("rho"))
            state, _, converged = newton(rows, problem, usual, free=free)
        else:
            start = fit.spec.starting_point
            state, _, converged = maximum_from(rows, problem, usual, starts, start)
        offset = -fit.moments.n_selected * float(np.log(problem.scale))
        top = state if converged else None
        return cls(rows, problem, begun.first, usual, starts, offset, top, held)

    @property
    def rho(self) -> int:
        """Where atanh rho is in theta."""
        return self.problem.place("rho")

    @property
    def free(self) -> NDArray[np.intp]:
        """Positions of the parameters that are free at the maximum: all but a rho that is held."""
        return self.problem.all_but(self.rho) if self.holds_rho else np.arange(len(self.usual))

    @property
    def two_step(self) -> TwoStep | None:
        """The two-step estimates; None if the model has none."""
        return self.first if isinstance(self.first, TwoStep) else None


class _NoMaximumError(Exception):
    """With the parameter held, the likelihood has no maximum that is found."""


@dataclass(frozen=True, eq=False)
class Point:
    """The highest point of the likelihood at one value of the held parameter."""

    value: float
    height: float
    slope: float
    """derivative of the height in the value"""
    state: State


def in_order(points: Iterable[Point]) -> list[Point]:
    """Sort points by their value, and keep one of each."""
    return sorted({point.value: point for point in points}.values(), key=lambda point: point.value)


@dataclass(frozen=True, eq=False)
class Profiler:
    """Maximises the likelihood of a model with one parameter, c'theta + origin, held."""

    likelihood: Likelihood
    direction: Floats
    """(d,) c"""
    origin: float
    free: Free
    """what is free while the parameter is held"""
    top: Point | None
    """the maximum that maximum likelihood reports"""

    @classmethod
    def of_rho(cls, likelihood: Likelihood) -> Profiler:
        """Hold atanh rho."""
        problem, rho = likelihood.problem, likelihood.rho
        return cls._build(likelihood, np.eye(problem.size)[rho], 0.0, problem.all_but(rho))

    @classmethod
    def of_coefficient(cls, likelihood: Likelihood, place: int) -> Profiler:
        """Hold a coefficient of the prediction equation, by its place there; 0 is the intercept."""
        problem = likelihood.problem
        direction = np.zeros(problem.size)
        direction[problem.equation("prediction")] = problem.scale * problem.prediction_back[place]
        held = np.delete(np.eye(problem.size), likelihood.free, axis=0)
        free = np.asarray(sla.null_space(np.vstack([direction, held])))
        return cls._build(likelihood, direction, problem.centre if place == 0 else 0.0, free)

    @classmethod
    def _build(
        cls, likelihood: Likelihood, direction: Floats, origin: float, free: Free
    ) -> Profiler:
        top, state = None, likelihood.top
        if state is not None:
            best = state.theta + newton_step(state, likelihood.free)
            value = float(direction @ best) + origin
            top = Point(value, state.log_likelihood + likelihood.offset, 0.0, state)
        return cls(likelihood, direction, origin, free, top)

    @property
    def holds_rho(self) -> bool:
        """Whether rho is the held parameter."""
        return bool(self.direction[self.likelihood.rho] != 0)

    def held(self, value: float, near: State | None) -> Point:
        """Maximise with the parameter held, from the estimates at a nearby value."""
        likelihood = self.likelihood
        starts = [
            likelihood.starts.at(value) if self.holds_rho else self._put(likelihood.usual, value)
        ]
        if near is not None:
            starts.insert(0, self._moved(near, value))
        many = likelihood.problem.many_maxima
        if many and self.top is not None and near is not self.top.state:
            starts.append(self._moved(self.top.state, value))
        reached: list[tuple[State, Free]] = []
        for theta in starts:
            state, _, converged = newton(
                likelihood.rows, likelihood.problem, theta, free=self.free, tolerance=_DECREMENT
            )
            if converged:
                reached.append((state, self.free))
                if not self._at_the_end(state, _LEVEL_ATANH):
                    break
            elif self._at_the_end(state):
                # There, a binary outcome has a likelihood as well.
                rho = np.eye(len(theta))[likelihood.rho]
                free = np.asarray(sla.null_space(np.stack([self.direction, rho])))
                state, _, converged = newton(
                    *(likelihood.rows, likelihood.problem, state.theta),
                    free=free,
                    tolerance=_DECREMENT,
                    largest_atanh=np.inf,
                )
                reached += [(state, free)] if converged else []
        if not reached:
            return Point(value, float("nan"), float("nan"), state)
        state, left = max(reached, key=lambda candidate: candidate[0].log_likelihood)
        # The gain that Newton's last step, which is not taken, would add.
        step = newton_step(state, left)
        gain = 0.5 * float(step @ state.gradient)
        slope = self.direction @ (state.gradient + state.hessian @ step)
        slope /= self.direction @ self.direction
        return Point(value, state.log_likelihood + gain + likelihood.offset, float(slope), state)

    def _at_the_end(self, state: State, size: float = LARGEST_ATANH) -> bool:
        """Whether the maximum of a likelihood that is bounded ran up to |rho| = 1."""
        atanh_rho, bounded = state.theta[self.likelihood.rho], self.likelihood.problem.many_maxima
        return not self.holds_rho and bounded and abs(float(atanh_rho)) >= size

    def along(self, values: Floats) -> list[Point]:
        """Maximise at ascending values, outwards from the top."""
        first = 0.0 if self.top is None else self.top.value
        middle = int(np.searchsorted(values, first))
        points: list[Point] = []
        for side in (values[middle:], values[:middle][::-1]):
            near = None if self.top is None else self.top.state
            for value in side:
                points.append(self.held(float(value), near))
                near = points[-1].state if np.isfinite(points[-1].height) else None
        return in_order(points)

    def peaks(self, points: list[Point]) -> list[Point]:
        """Find the maxima between points: where the slope turns from up to down."""
        peaks = [] if self.top is None else [self.top]
        known = [point for point in points if np.isfinite(point.slope)]
        for left, right in pairwise(known):
            # A value of the grid may be the top itself, to the last digit.
            slack = _SAME * (right.value - left.value)
            low, high = left.value - slack, right.value + slack
            holds_top = self.top is not None and low <= self.top.value <= high
            if left.slope > 0 > right.slope and not holds_top:
                near = max(left, right, key=lambda point: point.height).state
                try:
                    root = brentq(self._slope, left.value, right.value, args=(near,), xtol=_ROOT)
                except _NoMaximumError:
                    # Between two branches of the likelihood, the slope may jump.
                    continue
                peaks.append(self.held(float(root), near))
        return peaks

    def reach(self, peak: Point, fall: float) -> float:
        """Return how far from a peak a parabola falls by so much; NaN if it is not a maximum."""
        try:
            free = self.likelihood.free
            direction = self.direction[free]
            spread = np.linalg.solve(-peak.state.hessian[np.ix_(free, free)], direction)
        except np.linalg.LinAlgError:
            return float("nan")
        with np.errstate(invalid="ignore"):
            return float(np.sqrt(2.0 * fall * (direction @ spread)))

    def beside(self, peak: Point, falls: Floats) -> list[Point]:
        """Maximise where the likelihood is expected to have fallen by so much on either side."""
        away = np.array([self.reach(peak, fall) for fall in falls])
        if not np.all(np.isfinite(away)):
            return []
        ends = np.concatenate([peak.value - away, peak.value + away])
        if self.holds_rho:
            # If the likelihood is flat, rho would be 1 to the last digit at some of them.
            ends = ends[np.abs(np.tanh(ends)) < _WIDEST_RHO]
        return [self.held(float(value), peak.state) for value in ends]

    def end(self, peak: Point, level: float, side: float) -> list[Point]:
        """Find where the profile falls to a level on one side of a peak, and return the way there.

        The root of twice the fall is nearly linear in the value, so Newton's method on it needs a
        few steps; they stay between values above and below the level.
        """
        wanted = np.sqrt(peak.height - level)
        away = self.reach(peak, peak.height - level)
        way: list[Point] = []
        inside, outside, near = 0.0, np.inf, peak.state
        for _ in range(_END_STEPS if np.isfinite(away) else 0):
            point = self.held(peak.value + side * away, near)
            if not np.isfinite(point.height):
                outside, away = away, 0.5 * (inside + away)
                continue
            way.append(point)
            near = point.state
            if abs(point.height - level) <= _END:
                break
            if point.height > level:
                inside = away
            else:
                outside = away
            fallen = np.sqrt(max(peak.height - point.height, 0.0))
            steepness = -side * point.slope / (2.0 * fallen) if fallen > 0 else 0.0
            away = away + (wanted - fallen) / steepness if steepness > 0 else np.inf
            if not inside < away < min(outside, 2.0 * inside + self.reach(peak, 1.0)):
                away = 0.5 * (inside + outside) if np.isfinite(outside) else 2.0 * inside
            if not inside < away < outside:
                break
        return way

    def _slope(self, value: float, near: State) -> float:
        slope = self.held(float(value), near).slope
        if not np.isfinite(slope):
            raise _NoMaximumError
        return slope

    def _moved(self, state: State, value: float) -> Floats:
        """Return the best estimates at another value, to first order."""
        free = self.likelihood.free
        n = len(free)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = state.hessian[np.ix_(free, free)]
        system[:n, n] = system[n, :n] = self.direction[free]
        away = value - float(self.direction @ state.theta) - self.origin
        step = np.zeros(len(state.theta))
        step[free] = np.linalg.lstsq(system, np.append(np.zeros(n), away), rcond=None)[0][:n]
        # log sigma and a free atanh rho move by at most one, to keep the likelihood finite.
        problem = self.likelihood.problem
        held = self.likelihood.rho if self.holds_rho else None
        ends = [place for place in range(problem.n_coefficients, problem.size) if place != held]
        largest = float(np.abs(step[ends]).max(initial=0.0))
        return self._put(state.theta + step / max(1.0, largest), value)

    def _put(self, theta: Floats, value: float) -> Floats:
        """Move estimates to a value of the held parameter, straight along its direction."""
        away = value - float(self.direction @ theta) - self.origin
        return np.asarray(theta + away * self.direction / (self.direction @ self.direction))
