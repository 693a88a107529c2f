"""What profiles of the likelihood share: the curve between points, and likelihood-ratio intervals.

Between points a profile is the cubic with the heights and slopes of both.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.plots.rho_curves import ProfileCurve, draw_profile
from heckmanfa.results.reference import check_level
from heckmanfa.results.reports import Report
from heckmanfa.text.printable import quoted

# Points of the curve in a picture.
_DRAWN = 2001


class ProfileReport(Report):
    """Base of the log-likelihood over one parameter, maximised over all others."""

    log_likelihood: Floats
    """(G,) the highest with each value; NaN if the iteration did not converge"""
    slope: Floats
    """(G,) its derivative in the coordinate in which it is interpolated"""
    maxima: pd.DataFrame
    """value, log_likelihood and reported of each local maximum found, highest first"""
    two_step: float
    naive_probit: float = float("nan")
    no_interval: str

    @property
    @abstractmethod
    def values(self) -> Floats:
        """(G,) values of the parameter, ascending."""

    @abstractmethod
    def _coordinate(self, values: Any) -> Any:
        """Return the coordinate in which values are interpolated."""

    @abstractmethod
    def _value(self, coordinates: Any) -> Any:
        """Return the values at coordinates."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """Return the values that the parameter cannot exceed."""

    @abstractmethod
    def curve(self, conf_level: float) -> ProfileCurve:
        """Return what the picture shows."""

    @property
    def height(self) -> float:
        """The highest log-likelihood found."""
        return float(np.nanmax(self.log_likelihood))

    def at(self, values: ArrayLike) -> Floats:
        """Interpolate the log-likelihood at other values; NaN beyond those evaluated."""
        return np.asarray(self._spline()(self._coordinate(values), extrapolate=False))

    def regions(self, conf_level: float = 0.95) -> list[tuple[float, float]]:
        """Return all values that a likelihood-ratio test at this level does not reject."""
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
        lowest, highest = self._bounds()
        return [
            (
                lowest if low == first else float(self._value(low)),
                highest if high == last else float(self._value(high)),
            )
            for low, high in pieces
        ]

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the likelihood-ratio confidence interval: from end to end of `regions`."""
        found = self.regions(conf_level)
        return (found[0][0], found[-1][1]) if found else (float("nan"), float("nan"))

    def plot(self, ax: Any = None, conf_level: float = 0.95) -> Any:
        """Draw the profile on a new figure or on ``ax``."""
        return draw_profile(self.curve(conf_level), ax)

    def _curve(
        self, conf_level: float, name: str, limits: tuple[float, float] | None
    ) -> ProfileCurve:
        known = self._coordinate(self.values[np.isfinite(self.log_likelihood)])
        drawn = self._value(np.linspace(known[0], known[-1], _DRAWN))
        points = np.union1d(drawn, self._value(known)[1:-1])
        return ProfileCurve(
            points=points,
            log_likelihood=self.at(points),
            maxima=self.maxima,
            two_step=self.two_step,
            naive_probit=self.naive_probit,
            conf_level=conf_level,
            regions=self.regions(conf_level),
            level=self._level(conf_level),
            name=name,
            ends=limits,
        )

    def _level(self, conf_level: float) -> float:
        """Return the log-likelihood at the ends of the interval."""
        return self.height - 0.5 * float(stats.chi2.ppf(conf_level, 1))

    def _spline(self) -> CubicHermiteSpline:
        known = np.isfinite(self.log_likelihood)
        places = self._coordinate(self.values[known])
        return CubicHermiteSpline(places, self.log_likelihood[known], self.slope[known])


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
