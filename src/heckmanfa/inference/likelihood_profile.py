"""The profile likelihood of rho, maximised over all other parameters.

For a given rho the log-likelihood is concave in (gamma, beta / sigma, 1 / sigma) (Olsen, 1982), so
every maximum of the joint likelihood is a maximum of the profile. By the envelope theorem the
slope of the profile is the derivative in rho of the joint likelihood, which comes with each
height. Between points the profile is the cubic in t = atanh rho with the heights and slopes of
both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.inference.fit_rows import FitRows, read_fit_rows
from heckmanfa.model.covariance import CLASSICAL, is_classical
from heckmanfa.model.likelihood import ascent, climb_from, newton, rho_text
from heckmanfa.model.likelihood_starts import ProfileStarts, read_start, starting_point
from heckmanfa.model.likelihood_terms import Problem, State
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.plots.profile_curve import ProfileCurve, draw_profile
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.problems import MAXIMA
from heckmanfa.results.reference import check_level
from heckmanfa.results.reports import Report
from heckmanfa.text.printable import quoted

# A maximum near |rho| = 1 is inside; the points are closer to one another at both ends.
_WIDEST = 0.998
# Heights are then known to this many units of log-likelihood, or better.
_DECREMENT = 1e-8
_ROOT = 1e-11
# Points of the curve in a picture.
_DRAWN = 2001
_LEVELS = 0.95, 0.999
_WIDEST_BESIDE = 1.0 - 1e-6


@dataclass(frozen=True, repr=False, eq=False)
class RhoProfile(Report):
    """The log-likelihood over rho; prints as text, shows as HTML in a notebook."""

    rho: Floats
    """(G,) ascending: the grid, the maxima, and values beside each maximum"""
    log_likelihood: Floats
    """(G,) the highest with this rho; NaN if the iteration did not converge"""
    slope: Floats
    """(G,) its derivative in atanh rho"""
    maxima: pd.DataFrame
    """rho, log_likelihood and reported of each local maximum found, highest first"""
    rho_hat: float
    """the maximum that `Heckman` with method "ml" reports; NaN if that does not converge"""
    two_step: float
    """the two-step estimate, which may lie outside (-1, 1)"""
    no_interval: str = ""
    """why the likelihood ratio is not valid here; empty if it is"""

    @property
    def height(self) -> float:
        """The highest log-likelihood found."""
        return float(np.nanmax(self.log_likelihood))

    def tidy(self) -> pd.DataFrame:
        """Return one row for each rho that was evaluated.

        Returns
        -------
        DataFrame
            Columns rho (ascending, including the maxima), log_likelihood, and deviance: twice
            the distance to the highest log-likelihood.
        """
        return pd.DataFrame(
            {
                "rho": self.rho,
                "log_likelihood": self.log_likelihood,
                "deviance": 2.0 * (self.height - self.log_likelihood),
            }
        )

    def at(self, rho: ArrayLike) -> Floats:
        """Interpolate the log-likelihood at other values of rho; NaN beyond those evaluated."""
        return np.asarray(self._spline()(np.arctanh(rho), extrapolate=False))

    def regions(self, conf_level: float = 0.95) -> list[tuple[float, float]]:
        """Return all values of rho that a likelihood-ratio test at this level does not reject.

        Returns
        -------
        list of (float, float)
            Ascending; more than one if the likelihood has several maxima of similar height. An
            end is -1 or 1 if the data, or the grid, do not bound rho on that side. Empty if the
            likelihood ratio is not valid (see ``no_interval``).
        """
        check_level(conf_level)
        if self.no_interval:
            return []
        curve = self._spline()
        level = self._level(conf_level)
        first, last = curve.x[0], curve.x[-1]
        crossings = np.unique(curve.solve(level, extrapolate=False))
        ends = [first, *(t for t in crossings if first < t < last), last]
        pieces: list[tuple[float, float]] = []
        for low, high in pairwise(ends):
            if not curve(0.5 * (low + high)) >= level:
                continue
            if pieces and pieces[-1][1] == low:
                low = pieces.pop()[0]
            pieces.append((low, high))
        return [
            (
                -1.0 if low == first else float(np.tanh(low)),
                1.0 if high == last else float(np.tanh(high)),
            )
            for low, high in pieces
        ]

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the likelihood-ratio confidence interval of rho.

        It runs from the smallest to the largest rho of `regions`, across gaps; NaN if there are
        none.
        """
        found = self.regions(conf_level)
        return (found[0][0], found[-1][1]) if found else (float("nan"), float("nan"))

    def plot(self, ax: Any = None, conf_level: float = 0.95) -> Any:
        """Draw the profile on a new figure or on ``ax``; see `heckmanfa.plots.rho_profile`."""
        return draw_profile(self.curve(conf_level), ax)

    def curve(self, conf_level: float = 0.95) -> ProfileCurve:
        """Return what the picture shows."""
        t = np.arctanh(self.rho[np.isfinite(self.log_likelihood)])
        rho = np.union1d(np.tanh(np.linspace(t[0], t[-1], _DRAWN)), np.tanh(t)[1:-1])
        return ProfileCurve(
            rho=rho,
            log_likelihood=self.at(rho),
            maxima=self.maxima,
            two_step=self.two_step,
            conf_level=conf_level,
            regions=self.regions(conf_level),
            level=self._level(conf_level),
        )

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        low, high = self.interval()
        interval = "none" if self.no_interval else f"[{low:.4f}, {high:.4f}]"
        facts = (
            (
                "rho, maximum likelihood",
                "none" if np.isnan(self.rho_hat) else f"{self.rho_hat:.4f}",
            ),
            ("95% likelihood-ratio interval", interval),
            ("rho, two-step", f"{self.two_step:.4f}"),
        )
        notes = [f"No interval is given: {self.no_interval}."] if self.no_interval else []
        if len(self.regions()) > 1:
            pieces = " and ".join(f"[{a:.4f}, {b:.4f}]" for a, b in self.regions())
            notes.append(f"The interval spans a gap: not rejected are {pieces}.")
        if not self.maxima["reported"].head(1).all():
            notes.append("The maximum reported is not the highest; the interval is about that one.")
        for end, rises in ((0, -1.0), (-1, 1.0)):
            if rises * self.slope[end] > 0:
                notes.append(f"It still rises towards |rho| = 1 at rho = {self.rho[end]:.4f}.")
        return [
            Section("The likelihood over rho", facts=facts),
            Section(
                "Its maxima", table=self.maxima if len(self.maxima) else None, notes=tuple(notes)
            ),
        ]

    def findings(self) -> list[Finding]:
        """Return its findings for the diagnostics of the model."""
        if len(self.maxima) < 2:
            return []
        listed = ", ".join(rho_text(rho) for rho in self.maxima["rho"])
        lower = not self.maxima["reported"].head(1).all()
        return [
            Finding(
                "maxima",
                MAXIMA,
                str(len(self.maxima)),
                "problem" if lower else "caution",
                f"They are at rho = {listed}, the highest first"
                + (", which is not the one reported" if lower else "")
                + ". A start at one of them fits it. One near |rho| = 1 is often a sign of "
                "misspecification.",
            )
        ]

    def _level(self, conf_level: float) -> float:
        """Return the log-likelihood at the ends of the interval."""
        return self.height - 0.5 * float(stats.chi2.ppf(conf_level, 1))

    def _spline(self) -> CubicHermiteSpline:
        known = np.isfinite(self.log_likelihood)
        return CubicHermiteSpline(
            np.arctanh(self.rho[known]), self.log_likelihood[known], self.slope[known]
        )


def profile_rho(
    model: Fitted,
    X: Any,
    y: Any = None,
    *,
    grid: int | ArrayLike = 41,
    selected: Any = None,
    sample_weight: Any = None,
) -> RhoProfile:
    """Maximise the likelihood for each of many values of rho; see `Heckman.profile_rho`."""
    fit = model.fit_
    targets = np.arctanh(_read_grid(grid))
    read = read_fit_rows(fit, X, y, selected, sample_weight)
    with one_blas_thread():
        climb = _Climb.build(fit, read)
        points = climb.along(targets)
        peaks = climb.peaks(points)
        beside = [point for peak in peaks for point in climb.beside(peak)]
    order = sorted({point.t: point for point in [*points, *beside, *peaks]}.values(), key=_t)
    maxima = pd.DataFrame(
        [(np.tanh(peak.t), peak.height, peak is climb.top) for peak in peaks],
        columns=["rho", "log_likelihood", "reported"],
    ).sort_values("log_likelihood", ascending=False, ignore_index=True)
    return RhoProfile(
        rho=np.tanh([point.t for point in order]),
        log_likelihood=np.array([point.height for point in order]),
        slope=np.array([point.slope for point in order]),
        maxima=maxima,
        rho_hat=float("nan") if climb.top is None else float(np.tanh(climb.top.t)),
        two_step=float(climb.start.solution.rho),
        no_interval=_no_interval(fit, read),
    )


def _read_grid(grid: int | ArrayLike) -> Floats:
    if isinstance(grid, Integral):
        if grid < 2:
            raise InputError(f"grid needs at least 2 values of rho; got {grid}")
        return np.asarray(_WIDEST * np.sin(np.linspace(-0.5 * np.pi, 0.5 * np.pi, int(grid))))
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if len(values) < 2 or not np.all(np.abs(values) < 1.0):
        raise InputError("grid must hold at least 2 different values of rho inside (-1, 1)")
    return values


def _no_interval(fit: Fit, read: FitRows) -> str:
    if fit.rho_is_conditioned:
        return "rho was conditioned on by rho_range"
    if fit.spec.weight_kind == "sampling" and read.sample.rows.weighted:
        return "with sampling weights the sum of log densities is not a log-likelihood"
    if not is_classical(fit.spec.cov_type):
        return (
            f"a likelihood ratio assumes the model, which cov_type={quoted(fit.spec.cov_type)} "
            "does not"
        )
    return ""


@dataclass(frozen=True, eq=False)
class _Point:
    """The highest point of the likelihood at one rho."""

    t: float
    """atanh rho"""
    height: float
    slope: float
    """derivative of the height in t"""
    state: State


def _moved(state: State, t: float) -> Floats:
    """Return the best estimates at another rho, to first order."""
    away, free = t - state.theta[-1], len(state.theta) - 1
    slope = -np.linalg.solve(state.hessian[:free, :free], state.hessian[:free, free])
    step = away * slope
    # log sigma moves by at most one, to keep the likelihood finite.
    step /= max(1.0, abs(float(step[-1])))
    return np.append(state.theta[:free] + step, t)


def _t(point: _Point) -> float:
    return point.t


@dataclass(frozen=True, eq=False)
class _Climb:
    """Climbs the likelihood of one model, with rho held or free."""

    rows: Rows
    problem: Problem
    start: TwoStep
    starts: ProfileStarts
    offset: float
    """from the likelihood of the scaled outcome to that of the outcome"""
    top: _Point | None
    """the maximum that maximum likelihood reports"""

    @classmethod
    def build(cls, fit: Fit, read: FitRows) -> _Climb:
        """Climb from the two-step estimates or the model's start, as maximum likelihood does."""
        rows, moments, probit = read.rows, read.moments, read.probit
        start = fit_two_step(moments, probit, fit.features, CLASSICAL, rows)
        problem = Problem.build(moments, probit, start.features)
        starts = ProfileStarts.build(moments, probit, start.features, problem)
        state, _, converged = climb_from(
            rows,
            problem,
            starting_point(problem, probit, start),
            starts,
            read_start(fit.spec.start, fit.spec.method),
        )
        offset = -moments.n_selected * float(np.log(problem.scale))
        top = None
        if converged:
            best = float((state.theta + ascent(state, len(state.theta)))[-1])
            top = _Point(best, state.log_likelihood + offset, 0.0, state)
        return cls(rows, problem, start, starts, offset, top)

    def held(self, t: float, near: State | None) -> _Point:
        """Climb with rho held, from the estimates at a nearby rho."""
        starts = [self.starts.at(t)]
        free = len(starts[0]) - 1
        if near is not None:
            starts.insert(0, _moved(near, t))
        for theta in starts:
            state, _, converged = newton(
                self.rows, self.problem, theta, free=free, tolerance=_DECREMENT
            )
            if converged:
                break
        else:
            return _Point(t, float("nan"), float("nan"), state)
        # The gain that Newton's last step, which is not taken, would add.
        step = ascent(state, free)
        gain = 0.5 * float(step @ state.gradient)
        slope = float(state.gradient[-1] + state.hessian[-1] @ step)
        return _Point(t, state.log_likelihood + gain + self.offset, slope, state)

    def along(self, targets: Floats) -> list[_Point]:
        """Climb at ascending values of atanh rho, outwards from the top."""
        first = 0.0 if self.top is None else self.top.t
        middle = int(np.searchsorted(targets, first))
        points: list[_Point] = []
        for side in (targets[middle:], targets[:middle][::-1]):
            near = None if self.top is None else self.top.state
            for t in side:
                points.append(self.held(float(t), near))
                near = points[-1].state if np.isfinite(points[-1].height) else None
        return sorted(points, key=_t)

    def peaks(self, points: list[_Point]) -> list[_Point]:
        """Find the maxima between points: where the slope turns from up to down."""
        found = [] if self.top is None else [self.top]
        known = [point for point in points if np.isfinite(point.slope)]
        for left, right in pairwise(known):
            holds_top = self.top is not None and left.t <= self.top.t <= right.t
            if left.slope > 0 > right.slope and not holds_top:
                near = max(left, right, key=lambda point: point.height).state
                t = brentq(self._slope, left.t, right.t, args=(near,), xtol=_ROOT)
                found.append(self.held(float(t), near))
        return found

    def _slope(self, t: float, near: State) -> float:
        return self.held(float(t), near).slope

    def beside(self, peak: _Point) -> list[_Point]:
        """Climb where the ends of intervals are expected."""
        information = -peak.state.hessian
        free = len(information) - 1
        inner, cross = information[:free, :free], information[:free, free]
        curvature = float(information[free, free] - cross @ np.linalg.solve(inner, cross))
        if not curvature > 0:
            return []
        away = np.sqrt(stats.chi2.ppf(_LEVELS, 1) / curvature)
        ends = np.concatenate([peak.t - away, peak.t + away])
        # If the likelihood is flat, rho would be 1 to the last digit at some of them.
        return [self.held(float(t), peak.state) for t in ends if abs(np.tanh(t)) < _WIDEST_BESIDE]
