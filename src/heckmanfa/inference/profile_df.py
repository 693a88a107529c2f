"""The profile likelihood of the degrees of freedom of t errors, the normal model included.

It is maximised over all other parameters, from the estimates outwards. Between points, the profile
is the cubic in omega = df^(-1/2) with the heights and slopes of both; at omega = 0, the normal
model, its slope is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.profile_likelihood import why_no_interval
from heckmanfa.inference.profiler import Likelihood
from heckmanfa.inference.rows_of_fit import read_fit_rows
from heckmanfa.model.joint_problem import State
from heckmanfa.model.newton import newton
from heckmanfa.results.distribution import Wald, check_level
from heckmanfa.results.document import Section
from heckmanfa.results.fit_tests import HALF, half_chi_squared
from heckmanfa.results.reports import Report
from heckmanfa.text.wording import number

_LOWEST, _HIGHEST = 1.0, 200.0
_LEAST = 0.1
_DECREMENT = 1e-8
_NAN = float("nan")


@dataclass(frozen=True, repr=False, eq=False)
class DfProfile(Report):
    """The log-likelihood over the degrees of freedom; prints as text, shows as HTML."""

    df: Floats
    """(G,) ascending, the estimate included; the last is infinite: the normal model"""
    log_likelihood: Floats
    """(G,) the highest with each of them; NaN if the iteration did not converge"""
    slope: Floats
    """(G,) its derivative in the inverse root of df"""
    df_hat: float
    """the estimate of the model; NaN if that did not converge"""
    no_interval: str = ""
    """why the likelihood ratio is not valid here; empty if it is"""

    def tidy(self) -> pd.DataFrame:
        """Return one row for each value, with the columns df, log_likelihood and deviance.

        The deviance is twice the distance to the highest log-likelihood.
        """
        deviance = 2.0 * (np.nanmax(self.log_likelihood) - self.log_likelihood)
        columns = {"df": self.df, "log_likelihood": self.log_likelihood, "deviance": deviance}
        return pd.DataFrame(columns)

    @property
    def test(self) -> Wald:
        """The likelihood-ratio test of infinite degrees of freedom, which is the normal model.

        That is on the boundary: the statistic is 0 half of the time, and chi-squared otherwise, so
        the p-value is half that of chi-squared.
        """
        if self.no_interval:
            return Wald(_NAN, 1, _NAN, note=self.no_interval)
        return half_chi_squared(
            2.0 * float(np.nanmax(self.log_likelihood) - self.log_likelihood[-1])
        )

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the smallest and the largest df that a likelihood ratio does not reject.

        It reaches up to infinity if the normal model is not rejected, and down to 0 if the grid
        does not bound it. NaN if the likelihood ratio is not valid (see ``no_interval``).
        """
        check_level(conf_level)
        if self.no_interval:
            return _NAN, _NAN
        known = np.flatnonzero(np.isfinite(self.log_likelihood))[::-1]
        omega = self.df[known] ** -0.5
        curve = CubicHermiteSpline(omega, self.log_likelihood[known], self.slope[known])
        level = float(np.nanmax(self.log_likelihood)) - 0.5 * stats.chi2.ppf(conf_level, 1)
        ends = curve.solve(level, extrapolate=False)
        first, last = curve(omega[0]) >= level, curve(omega[-1]) >= level
        low = 0.0 if last or not len(ends) else float(ends.max() ** -2.0)
        high = np.inf if first or not len(ends) else float(ends.min() ** -2.0)
        return low, high

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        low, high = self.interval()
        facts = [
            ("df, maximum likelihood", _df_text(self.df_hat)),
            ("95% likelihood-ratio interval", f"[{_df_text(low)}, {_df_text(high)}]"),
            ("test of the normal model", str(self.test)),
        ]
        notes = [HALF]
        if self.no_interval:
            facts, notes = facts[:1], [f"No interval is given: {self.no_interval}."]
        return [
            Section("The likelihood over the degrees of freedom", facts=tuple(facts)),
            Section("Its values", table=self.tidy(), notes=tuple(notes)),
        ]


def _df_text(df: float) -> str:
    return "infinity" if np.isposinf(df) else number(df)


def profile_df(fit: Fit, passed: PassedRows, grid: int | ArrayLike) -> DfProfile:
    """Maximise the likelihood at values of the degrees of freedom; see `Heckman.profile_df`."""
    fit.family.require("profile of df")
    values = _grid(grid)
    read = read_fit_rows(fit, passed)
    with one_blas_thread():
        likelihood = Likelihood.build(fit, read.rows, held=True)
        problem, top = likelihood.problem, likelihood.top
        place = problem.place("df")
        free = np.setdiff1d(likelihood.free, [place])
        best = likelihood.usual if top is None else top.theta
        if values is None:
            lowest = min(_LOWEST, 0.5 / max(float(best[place]), 1e-9) ** 2)
            values = np.geomspace(lowest, _HIGHEST, int(np.asarray(grid)))
        omegas = np.append(0.0, values[::-1] ** -0.5)
        own = float(best[place])
        points: dict[float, tuple[float, float]] = {}
        if top is not None:
            points[own] = (top.log_likelihood, 0.0)
        for side in (omegas[omegas > own], omegas[omegas < own][::-1], omegas[omegas == own]):
            theta = best.copy()
            for omega in side:
                # Sigma falls with the degrees of freedom; the rest moves little.
                theta = theta.copy()
                theta[place] = omega
                state, _, converged = newton(
                    likelihood.rows, problem, theta, free=free, tolerance=_DECREMENT
                )
                known = converged and np.isfinite(state.log_likelihood)
                theta = state.theta if known else theta
                points[float(omega)] = _point(state, place, known=known)
    order = sorted(points, reverse=True)
    heights, slopes = np.array([points[omega] for omega in order]).T
    with np.errstate(divide="ignore"):
        df = np.array(order) ** -2.0
    return DfProfile(
        df=df,
        log_likelihood=heights + likelihood.offset,
        slope=slopes,
        df_hat=_NAN if top is None else float(fit.errors["df"].value),
        no_interval=why_no_interval(fit),
    )


def _point(state: State, place: int, *, known: bool) -> tuple[float, float]:
    """Return the height and the slope of a point of the profile."""
    if not known:
        return _NAN, _NAN
    return state.log_likelihood, float(state.gradient[place])


def _grid(grid: int | ArrayLike) -> Floats | None:
    """Check a grid; None if it is a number of values."""
    if isinstance(grid, Integral) and not isinstance(grid, bool):
        if int(grid) < 2:
            raise InputError(f"grid needs at least 2 values of df; got {grid}")
        return None
    try:
        values = np.unique(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError("grid must be a number of values, or the values of df") from error
    values = values[~np.isposinf(values)]
    if len(values) < 2 or not np.all(values >= _LEAST):
        raise InputError(
            f"grid must hold at least 2 different values of df of {_LEAST:g} or more; infinity, "
            "the normal model, is always there"
        )
    return values
