"""Reports of a profile likelihood: the log-likelihood over rho, or over a coefficient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from heckmanfa.data.arrays import Floats
from heckmanfa.model.likelihood import rho_text
from heckmanfa.plots.rho_curves import ProfileCurve
from heckmanfa.results.distribution import check_level
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.reports import Report
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number

# Points of the curve in a picture.
_DRAWN = 2001
_NAN = float("nan")

Facts = Sequence[tuple[str, float, str]]
"""label, value and the value as text"""


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class ProfileReport(Report):
    """Base of the log-likelihood over one parameter, maximised over all others."""

    column: ClassVar[str]
    """the parameter, as tables name it"""
    bounds: ClassVar[tuple[float, float]]
    """what the parameter cannot exceed"""
    log_likelihood: Floats
    """(G,) the highest with each value; NaN if the iteration did not converge"""
    slope: Floats
    """(G,) its derivative in the value, or in atanh rho"""
    maxima: pd.DataFrame
    """value (or rho), log_likelihood and reported of each local maximum found, highest first"""
    two_step: float
    """the two-step estimate, whose rho may lie outside (-1, 1); NaN if the outcome is binary"""
    naive_probit: float = _NAN
    """of a coefficient and a binary outcome: the estimate of a probit of the selected rows alone"""
    no_interval: str = ""
    """why the likelihood ratio is not valid here; empty if it is"""
    caveats: tuple[str, ...] = ()
    """caveats about the features, as sentences"""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """(G,) values of the parameter, ascending."""

    @property
    @abstractmethod
    def _name(self) -> str:
        """The parameter in titles."""

    def _coordinate(self, values: Any) -> Any:
        """Return the coordinate in which values are interpolated."""
        return np.asarray(values, dtype=np.float64)

    def _value(self, coordinates: Any) -> Any:
        """Return the values at coordinates."""
        return coordinates

    @property
    def height(self) -> float:
        """The highest log-likelihood found."""
        return float(np.nanmax(self.log_likelihood))

    def tidy(self) -> pd.DataFrame:
        """Return one row for each value that was evaluated.

        Returns
        -------
        DataFrame
            Columns rho, or value of a coefficient (ascending, including the maxima and values
            beside them), log_likelihood, and deviance: twice the distance to the highest
            log-likelihood.
        """
        return pd.DataFrame(
            {
                self.column: self.values,
                "log_likelihood": self.log_likelihood,
                "deviance": 2.0 * (self.height - self.log_likelihood),
            }
        )

    def at(self, values: ArrayLike) -> Floats:
        """Interpolate the log-likelihood at other values; NaN beyond those evaluated."""
        return np.asarray(self._spline()(self._coordinate(values), extrapolate=False))

    def regions(self, conf_level: float = 0.95) -> list[tuple[float, float]]:
        """Return all values that a likelihood-ratio test at this level does not reject.

        Returns
        -------
        list of (float, float)
            Ascending; more than one if the likelihood has several maxima of similar height. An
            end is -1 or 1, or infinite of a coefficient, if the data, or the grid, do not bound
            the parameter on that side. Empty if the likelihood ratio is not valid (see
            ``no_interval``).
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
        lowest, highest = self.bounds
        return [
            (
                lowest if low == first else float(self._value(low)),
                highest if high == last else float(self._value(high)),
            )
            for low, high in pieces
        ]

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the likelihood-ratio confidence interval.

        It runs from the smallest to the largest value of `regions`, across gaps; NaN if there are
        none. The ends of a coefficient's at 90, 95 and 99% were found by optimization; others are
        interpolated.
        """
        regions = self.regions(conf_level)
        return (regions[0][0], regions[-1][1]) if regions else (_NAN, _NAN)

    def plot(self, ax: Any = None, conf_level: float = 0.95) -> Any:
        """Draw the profile on a new figure or on ``ax``; see `heckmanfa.plots.rho_profile`."""
        return self.curve(conf_level).draw(ax)

    def curve(self, conf_level: float = 0.95) -> ProfileCurve:
        """Return what the picture shows."""
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
            name=self._name,
            ends=self.bounds if np.isfinite(self.bounds[0]) else None,
        )

    def _level(self, conf_level: float) -> float:
        """Return the log-likelihood at the ends of the interval."""
        return self.height - 0.5 * float(stats.chi2.ppf(conf_level, 1))

    def _spline(self) -> CubicHermiteSpline:
        known = np.isfinite(self.log_likelihood)
        places = self._coordinate(self.values[known])
        return CubicHermiteSpline(places, self.log_likelihood[known], self.slope[known])

    def _sections(
        self, name: str, write: Callable[[float], str], first: tuple[str, float], more: Facts
    ) -> list[Section]:
        """Return the parts of the report: estimates, ``more`` if there are any, and the maxima."""
        pieces = [f"[{write(low)}, {write(high)}]" for low, high in self.regions()]
        low, high = self.interval()
        facts = (
            (first[0], "none" if np.isnan(first[1]) else write(first[1])),
            (
                "95% likelihood-ratio interval",
                "none" if self.no_interval else f"[{write(low)}, {write(high)}]",
            ),
            *((label, text) for label, value, text in more if np.isfinite(value)),
        )
        notes = [f"No interval is given: {self.no_interval}."] if self.no_interval else []
        if len(pieces) > 1:
            notes.append(f"The interval spans a gap: not rejected are {' and '.join(pieces)}.")
        if self._reports_lower:
            notes.append("The maximum reported is not the highest; the interval is about that one.")
        table = self.maxima if len(self.maxima) else None
        return [
            Section(f"The likelihood over {name}", facts=facts),
            Section("Its maxima", table=table, notes=(*notes, *self._at_ends(), *self.caveats)),
        ]

    @property
    def _reports_lower(self) -> bool:
        """Whether a maximum is higher than the one reported."""
        return not self.maxima["reported"].head(1).all()

    def _at_ends(self) -> list[str]:
        """Say what happens at the first and the last value."""
        return []


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class RhoProfile(ProfileReport):
    """The log-likelihood over rho; prints as text, shows as HTML in a notebook."""

    column = "rho"
    bounds = (-1.0, 1.0)
    rho: Floats
    """(G,) ascending: the grid, the maxima, and values beside each maximum"""
    rho_hat: float
    """the maximum that `Heckman` with method "ml" reports; NaN if that does not converge"""
    held: float = _NAN
    """the value at which the model holds rho; NaN if it estimates rho"""

    @property
    def values(self) -> Floats:
        """The values of rho."""
        return self.rho

    @property
    def _name(self) -> str:
        return "rho"

    def _coordinate(self, values: Any) -> Any:
        return np.arctanh(values)

    def _value(self, coordinates: Any) -> Any:
        return np.tanh(coordinates)

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        more = (
            ("rho, two-step", self.two_step, f"{self.two_step:.4f}"),
            ("rho, as the model holds it", self.held, f"{self.held:.4g}"),
        )
        first = "rho, maximum likelihood", self.rho_hat
        return self._sections("rho", lambda rho: f"{rho:.4f}", first, more)

    def _at_ends(self) -> list[str]:
        return [
            f"It still rises towards |rho| = 1 at rho = {self.rho[end]:.4f}."
            for end, rises in ((0, -1.0), (-1, 1.0))
            if rises * self.slope[end] > 0
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        if len(self.maxima) < 2:
            return []
        listed = ", ".join(rho_text(rho) for rho in self.maxima["rho"])
        lower = self._reports_lower
        return [
            tell(
                None,
                "maxima",
                "problem" if lower else "caution",
                str(len(self.maxima)),
                case="profiled",
                other=rho_text(float(self.maxima["rho"].iloc[0])),
                places=f"{listed}, the highest first"
                + (", which is not the one reported" if lower else ""),
            )
        ]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class CoefficientProfile(ProfileReport):
    """The log-likelihood over a coefficient; prints as text, shows as HTML in a notebook."""

    column = "value"
    bounds = (-float("inf"), float("inf"))
    term: str
    """the coefficient, as in ``tidy()``"""
    value: Floats
    """(G,) ascending: the grid, the maxima, and the ends of intervals"""
    estimate: float
    """the maximum that `Heckman` with method "ml" reports; NaN if that does not converge"""

    @property
    def values(self) -> Floats:
        """The values of the coefficient."""
        return self.value

    @property
    def _name(self) -> str:
        return f"coefficient of {shown(self.term)}"

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        more = (
            ("two-step", self.two_step, number(self.two_step)),
            ("probit of the selected rows", self.naive_probit, number(self.naive_probit)),
        )
        first = "maximum likelihood", self.estimate
        return self._sections(f"the coefficient of {shown(self.term)}", number, first, more)
