"""The profile likelihood of rho, or of a coefficient of the prediction equation.

It is maximised over all other parameters. For a given rho the log-likelihood is concave in
(gamma, beta / sigma, 1 / sigma) (Olsen, 1982) and, of a binary outcome, in (gamma, beta), since
Phi2 is log-concave. So every maximum of the joint likelihood is a maximum of the profile of rho.

With weak exclusions the likelihood is far from a parabola in the slopes, and estimate plus or minus
two standard errors covers too rarely. An interval of values that a likelihood-ratio test does not
reject follows the shape of the likelihood instead. The ends of a coefficient's are found by
optimization, so they do not depend on the grid.

Points come from `profiler`. Between points the profile is the cubic with the heights and
slopes of both, over rho in t = atanh rho.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted, PassedRows
from heckmanfa.inference.profile_report import CoefficientProfile, RhoProfile
from heckmanfa.inference.profiler import Likelihood, Point, Profiler, in_order
from heckmanfa.inference.rows_of_fit import read_fit_rows
from heckmanfa.model.covariance import is_classical
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest, some

# A maximum near |rho| = 1 is inside; the points are closer to one another at both ends.
_WIDEST_RHO = 0.998
# Levels at whose ends points of rho are expected, and those whose ends are found for a coefficient.
_RHO_LEVELS, _LEVELS = (0.95, 0.999), (0.9, 0.95, 0.99)
# The grid of a coefficient reaches so many standard errors to both sides.
_WIDEST = 4.0
# Points of a coefficient closer than this share of the range count as one.
_APART = 1e-5
_NAN = float("nan")


def why_no_interval(fit: Fit) -> str:
    """Say why a likelihood ratio is not valid for a fit; empty if it is."""
    if fit.rho_is_conditioned:
        return "rho was conditioned on by rho_range"
    if fit.spec.weight_kind == "sampling" and fit.weighted:
        return "with sampling weights the sum of log densities is not a log-likelihood"
    if not is_classical(fit.spec.cov_type):
        return (
            f"a likelihood ratio assumes the model, which cov_type={quoted(fit.spec.cov_type)} "
            "does not"
        )
    return ""


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
    checked = _rho_grid(grid)
    read = read_fit_rows(model.fit_, PassedRows(X, y, selected, sample_weight))
    return profile_of(model.fit_, read.rows, checked)


def profile_of(fit: Fit, rows: Rows, grid: int | ArrayLike) -> RhoProfile:
    """Maximise the likelihood of a fit's prediction features, in its rows, at values of rho."""
    targets = np.arctanh(_rho_grid(grid))
    with one_blas_thread():
        profiler = Profiler.of_rho(Likelihood.build(fit, rows))
        points = profiler.along(targets)
        peaks = profiler.peaks(points)
        falls = np.array([0.5 * stats.chi2.ppf(level, 1) for level in _RHO_LEVELS])
        beside = [point for peak in peaks for point in profiler.beside(peak, falls)]
    order = in_order([*points, *beside, *peaks])
    two_step = profiler.likelihood.two_step
    return RhoProfile(
        rho=np.tanh([point.value for point in order]),
        log_likelihood=np.array([point.height for point in order]),
        slope=np.array([point.slope for point in order]),
        maxima=_maxima(profiler, [(np.tanh(peak.value), peak) for peak in peaks], "rho"),
        rho_hat=_NAN if profiler.top is None else float(np.tanh(profiler.top.value)),
        two_step=_NAN if two_step is None else float(two_step.solution.rho),
        held=_NAN if fit.held_rho is None else fit.held_rho,
        no_interval=why_no_interval(fit),
        caveats=tuple(search_notes(fit, "profile")),
    )


def _maxima(profiler: Profiler, peaks: list[tuple[float, Point]], column: str) -> pd.DataFrame:
    """Return the maxima, each with its value of the parameter, the highest first."""
    return pd.DataFrame(
        [(value, peak.height, peak is profiler.top) for value, peak in peaks],
        columns=[column, "log_likelihood", "reported"],
    ).sort_values("log_likelihood", ascending=False, ignore_index=True)


def profile_coefficient(
    fit: Fit, passed: PassedRows, term: Any, grid: int | ArrayLike
) -> CoefficientProfile:
    """Maximise the likelihood for many values of a coefficient; see `Heckman.profile`."""
    place, name = _find(fit, term)
    checked, two_steps = _coefficient_grid(grid), "two steps" in fit.family.supports
    read = read_fit_rows(fit, passed)
    with one_blas_thread():
        profiler = Profiler.of_coefficient(Likelihood.build(fit, read.rows, held=True), place)
        first = profiler.likelihood.first
        of_first, error = float(first.coef[place]), np.sqrt(first.covariance[place, place])
        centre = of_first
        if profiler.top is not None:
            centre, error = profiler.top.value, profiler.reach(profiler.top, 0.5)
        if not isinstance(checked, int):
            values = checked
        else:
            away = _WIDEST * (error if np.isfinite(error) else 1.0 + abs(centre))
            values = np.linspace(centre - away, centre + away, checked)
        points = profiler.along(values)
        if np.count_nonzero([np.isfinite(point.height) for point in points]) < 2:
            raise NotIdentifiedError(
                f"the likelihood has no maximum at values of the coefficient of {quoted(name)}: "
                f"rho runs to -1 or 1. Use {'the two-step estimates, or ' if two_steps else ''}"
                "other features."
            )
        peaks = profiler.peaks(points)
        ends = [] if why_no_interval(fit) else _ends(profiler, peaks)
    order = _apart([*peaks, *reversed(ends), *points])
    return CoefficientProfile(
        term=name,
        value=np.array([point.value for point in order]),
        log_likelihood=np.array([point.height for point in order]),
        slope=np.array([point.slope for point in order]),
        maxima=_maxima(profiler, [(peak.value, peak) for peak in peaks], "value"),
        estimate=_NAN if profiler.top is None else profiler.top.value,
        two_step=of_first if two_steps and fit.held_rho is None else _NAN,
        naive_probit=_NAN if two_steps else of_first,
        no_interval=why_no_interval(fit),
        caveats=tuple(search_notes(fit, "profile")),
    )


def _ends(profiler: Profiler, peaks: list[Point]) -> list[Point]:
    """Find the ends of the intervals about each maximum that they contain."""
    height = max((peak.height for peak in peaks), default=0.0)
    ends = []
    for level in _LEVELS:
        floor = height - 0.5 * float(stats.chi2.ppf(level, 1))
        for peak in peaks:
            if peak.height > floor:
                ends += profiler.end(peak, floor, -1.0) + profiler.end(peak, floor, 1.0)
    return ends


def _apart(points: list[Point]) -> list[Point]:
    """Sort points, without those next to one that comes first in the list.

    Between points that almost coincide the curve would consist of rounding errors.
    """
    values = [point.value for point in points]
    least = _APART * (max(values) - min(values))
    kept: list[Point] = []
    for point in points:
        if all(abs(point.value - other.value) > least for other in kept):
            kept.append(point)
    return in_order(kept)


def _find(fit: Fit, term: Any) -> tuple[int, str]:
    """Return the place of a term in the prediction equation, and its name."""
    names = ["Intercept", *(fit.labels[column] for column in fit.features)]
    known = [fit.feature_names[column] for column in fit.features]
    if term in known:
        # Columns without names are known by their positions.
        term = names[known.index(term) + 1]
    if term in names:
        return names.index(term), str(term)
    if term is None:
        raise InputError(f"term is missing: profile takes one of {some(names, 8)}")
    if fit.way.is_average and ("prediction", term) in fit.terms:
        raise InputError(
            f"a profile of an average uses the features with a {BY} share of at least one half; "
            f"{quoted(term)} is not among them. Fit Heckman with features chosen beforehand."
        )
    raise UnknownFeatureError(
        f"{quoted(term)} is not a term of the prediction equation"
        f"{nearest(str(term), names) or f'; it has {some(names, 8)}'}"
    )


def _rho_grid(grid: int | ArrayLike) -> Floats:
    if isinstance(grid, Integral):
        count = _grid_size(grid, " of rho")
        return np.asarray(_WIDEST_RHO * np.sin(np.linspace(-0.5 * np.pi, 0.5 * np.pi, count)))
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if len(values) < 2 or not np.all(np.abs(values) < 1.0):
        raise InputError("grid must hold at least 2 different values of rho inside (-1, 1)")
    return values


def _coefficient_grid(grid: int | ArrayLike) -> int | Floats:
    if isinstance(grid, Integral):
        return _grid_size(grid)
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if len(values) < 2 or not np.all(np.isfinite(values)):
        raise InputError("grid must hold at least 2 different values of the coefficient")
    return values


def _grid_size(grid: Integral, of: str = "") -> int:
    if int(grid) < 2:
        raise InputError(f"grid needs at least 2 values{of}; got {grid}")
    return int(grid)
