"""The profile likelihood of rho, maximised over all other parameters.

For a given rho the log-likelihood is concave in (gamma, beta / sigma, 1 / sigma) (Olsen, 1982) and,
of a binary outcome, in (gamma, beta), since Phi2 is log-concave. So every maximum of the joint
likelihood is a maximum of the profile. Its points come from
`profile_climb`. Between points the profile is the cubic in t = atanh rho with the heights and
slopes of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.inference.fit_rows import read_fit_rows
from heckmanfa.inference.profile_climb import Ascent, Climb, in_order
from heckmanfa.inference.profile_report import ProfileReport, why_no_interval
from heckmanfa.model.likelihood import rho_text
from heckmanfa.plots.rho_curves import ProfileCurve
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.search_facts import search_notes

# A maximum near |rho| = 1 is inside; the points are closer to one another at both ends.
_WIDEST = 0.998
_LEVELS = 0.95, 0.999


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
