"""The profile likelihood of rho, maximised over all other parameters.

For a given rho the log-likelihood is concave in (gamma, beta / sigma, 1 / sigma) (Olsen, 1982) and,
of a binary outcome, in (gamma, beta), since Phi2 is log-concave. So every maximum of the joint
likelihood is a maximum of the profile. Its points come from
`profile_climb`. Between points the profile is the cubic in t = atanh rho with the heights and
slopes of both.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.interpolate import CubicHermiteSpline

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.inference.fit_rows import read_fit_rows
from heckmanfa.inference.profile_climb import Ascent, Climb, in_order
from heckmanfa.model.covariance import is_classical
from heckmanfa.model.likelihood import rho_text
from heckmanfa.plots.rho_curves import ProfileCurve, draw_profile
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.reference import check_level
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.printable import quoted

# A maximum near |rho| = 1 is inside; the points are closer to one another at both ends.
_WIDEST = 0.998
_LEVELS = 0.95, 0.999


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


@dataclass(frozen=True, repr=False, eq=False)
class RhoProfile(ProfileReport):
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
    """the two-step estimate, which may lie outside (-1, 1); NaN if the outcome is binary"""
    held: float = float("nan")
    """the value at which the model holds rho; NaN if it estimates rho"""
    no_interval: str = ""
    """why the likelihood ratio is not valid here; empty if it is"""
    caveats: tuple[str, ...] = ()
    """caveats about the features, as sentences"""

    @property
    def values(self) -> Floats:
        """The values of rho."""
        return self.rho

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
        return super().at(rho)

    def regions(self, conf_level: float = 0.95) -> list[tuple[float, float]]:
        """Return all values of rho that a likelihood-ratio test at this level does not reject.

        Returns
        -------
        list of (float, float)
            Ascending; more than one if the likelihood has several maxima of similar height. An
            end is -1 or 1 if the data, or the grid, do not bound rho on that side. Empty if the
            likelihood ratio is not valid (see ``no_interval``).
        """
        return super().regions(conf_level)

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the likelihood-ratio confidence interval of rho.

        It runs from the smallest to the largest rho of `regions`, across gaps; NaN if there are
        none.
        """
        return super().interval(conf_level)

    def plot(self, ax: Any = None, conf_level: float = 0.95) -> Any:
        """Draw the profile on a new figure or on ``ax``; see `heckmanfa.plots.rho_profile`."""
        return super().plot(ax, conf_level)

    def curve(self, conf_level: float = 0.95) -> ProfileCurve:
        """Return what the picture shows."""
        return self._curve(conf_level, "rho", (-1.0, 1.0))

    def _coordinate(self, values: Any) -> Any:
        return np.arctanh(values)

    def _value(self, coordinates: Any) -> Any:
        return np.tanh(coordinates)

    def _bounds(self) -> tuple[float, float]:
        return -1.0, 1.0

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        low, high = self.interval()
        interval = "none" if self.no_interval else f"[{low:.4f}, {high:.4f}]"
        facts = [
            (
                "rho, maximum likelihood",
                "none" if np.isnan(self.rho_hat) else f"{self.rho_hat:.4f}",
            ),
            ("95% likelihood-ratio interval", interval),
        ]
        if np.isfinite(self.two_step):
            facts.append(("rho, two-step", f"{self.two_step:.4f}"))
        if np.isfinite(self.held):
            facts.append(("rho, as the model holds it", f"{self.held:.4g}"))
        notes = [f"No interval is given: {self.no_interval}."] if self.no_interval else []
        if len(self.regions()) > 1:
            pieces = " and ".join(f"[{a:.4f}, {b:.4f}]" for a, b in self.regions())
            notes.append(f"The interval spans a gap: not rejected are {pieces}.")
        if not self.maxima["reported"].head(1).all():
            notes.append("The maximum reported is not the highest; the interval is about that one.")
        for end, rises in ((0, -1.0), (-1, 1.0)):
            if rises * self.slope[end] > 0:
                notes.append(f"It still rises towards |rho| = 1 at rho = {self.rho[end]:.4f}.")
        notes += self.caveats
        return [
            Section("The likelihood over rho", facts=tuple(facts)),
            Section(
                "Its maxima", table=self.maxima if len(self.maxima) else None, notes=tuple(notes)
            ),
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        if len(self.maxima) < 2:
            return []
        listed = ", ".join(rho_text(rho) for rho in self.maxima["rho"])
        lower = not self.maxima["reported"].head(1).all()
        return [
            tell(
                None,
                "maxima",
                "problem" if lower else "caution",
                str(len(self.maxima)),
                case="profiled",
                other=rho_text(float(self.maxima["rho"].iloc[0])),
                found=f"{listed}, the highest first"
                + (", which is not the one reported" if lower else ""),
            )
        ]


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
    checked = _read_grid(grid)
    read = read_fit_rows(model.fit_, X, y, selected, sample_weight)
    return profile_of(model.fit_, read.rows, checked)


def profile_of(fit: Fit, rows: Rows, grid: int | ArrayLike) -> RhoProfile:
    """Maximise the likelihood of a fit's prediction features, in its rows, at values of rho."""
    targets = np.arctanh(_read_grid(grid))
    with one_blas_thread():
        climb = Climb.of_rho(Ascent.build(fit, rows))
        points = climb.along(targets)
        peaks = climb.peaks(points)
        falls = np.array([0.5 * stats.chi2.ppf(level, 1) for level in _LEVELS])
        beside = [point for peak in peaks for point in climb.beside(peak, falls)]
    order = in_order([*points, *beside, *peaks])
    two_step = climb.ascent.two_step
    maxima = pd.DataFrame(
        [(np.tanh(peak.value), peak.height, peak is climb.top) for peak in peaks],
        columns=["rho", "log_likelihood", "reported"],
    ).sort_values("log_likelihood", ascending=False, ignore_index=True)
    return RhoProfile(
        rho=np.tanh([point.value for point in order]),
        log_likelihood=np.array([point.height for point in order]),
        slope=np.array([point.slope for point in order]),
        maxima=maxima,
        rho_hat=float("nan") if climb.top is None else float(np.tanh(climb.top.value)),
        two_step=float("nan") if two_step is None else float(two_step.solution.rho),
        held=float("nan") if fit.held_rho is None else fit.held_rho,
        no_interval=why_no_interval(fit),
        caveats=tuple(search_notes(fit, "profile")),
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


# Points of the curve in a picture.
