"""The profile likelihood of a coefficient of the prediction equation.

With weak exclusions the likelihood is far from a parabola in the slopes, and estimate plus or minus
two standard errors covers too rarely. An interval of values that a likelihood-ratio test does not
reject follows the shape of the likelihood instead. Its ends are found by climbing, so they do not
depend on the grid.
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
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError, UnknownFeatureError
from heckmanfa.fit import Fit, Fitted
from heckmanfa.inference.fit_rows import read_fit_rows
from heckmanfa.inference.likelihood_profile import ProfileReport, why_no_interval
from heckmanfa.inference.profile_climb import Ascent, Climb, Point, in_order
from heckmanfa.plots.rho_curves import ProfileCurve
from heckmanfa.results.document import Section
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest, number, some

# The ends of intervals at these levels are found by climbing; others are interpolated.
_LEVELS = 0.9, 0.95, 0.99
# The grid reaches so many standard errors to both sides.
_WIDEST = 4.0
_UNBOUNDED = float("inf")
# Points closer than this share of the range count as one.
_APART = 1e-5


@dataclass(frozen=True, repr=False, eq=False)
class CoefficientProfile(ProfileReport):
    """The log-likelihood over a coefficient; prints as text, shows as HTML in a notebook."""

    term: str
    """the coefficient, as in ``tidy()``"""
    value: Floats
    """(G,) ascending: the grid, the maxima, and the ends of intervals"""
    log_likelihood: Floats
    """(G,) the highest with this value; NaN if the iteration did not converge"""
    slope: Floats
    """(G,) its derivative in the value"""
    maxima: pd.DataFrame
    """value, log_likelihood and reported of each local maximum found, highest first"""
    estimate: float
    """the maximum that `Heckman` with method "ml" reports; NaN if that does not converge"""
    two_step: float
    """the two-step estimate; NaN if the outcome is binary, or rho is held"""
    no_interval: str = ""
    """why the likelihood ratio is not valid here; empty if it is"""
    caveats: tuple[str, ...] = ()
    """caveats about the features, as sentences"""
    naive_probit: float = float("nan")
    """of a binary outcome: the estimate of a probit of the selected rows alone"""

    @property
    def values(self) -> Floats:
        """The values of the coefficient."""
        return self.value

    def tidy(self) -> pd.DataFrame:
        """Return one row for each value that was evaluated.

        Returns
        -------
        DataFrame
            Columns value (ascending, including the maxima and the ends of intervals),
            log_likelihood, and deviance: twice the distance to the highest log-likelihood.
        """
        return pd.DataFrame(
            {
                "value": self.value,
                "log_likelihood": self.log_likelihood,
                "deviance": 2.0 * (self.height - self.log_likelihood),
            }
        )

    def regions(self, conf_level: float = 0.95) -> list[tuple[float, float]]:
        """Return all values that a likelihood-ratio test at this level does not reject.

        Returns
        -------
        list of (float, float)
            Ascending; more than one if the likelihood has several maxima of similar height. An
            end is infinite if it was not found. Empty if the likelihood ratio is not valid (see
            ``no_interval``).
        """
        return super().regions(conf_level)

    def interval(self, conf_level: float = 0.95) -> tuple[float, float]:
        """Return the likelihood-ratio confidence interval of the coefficient.

        It runs from the smallest to the largest value of `regions`, across gaps; NaN if there are
        none. At 90, 95 and 99% its ends were found by climbing; at other levels they are
        interpolated.
        """
        return super().interval(conf_level)

    def curve(self, conf_level: float = 0.95) -> ProfileCurve:
        """Return what the picture shows."""
        return self._curve(conf_level, f"coefficient of {shown(self.term)}", None)

    def _coordinate(self, values: Any) -> Any:
        return np.asarray(values, dtype=np.float64)

    def _value(self, coordinates: Any) -> Any:
        return coordinates

    def _bounds(self) -> tuple[float, float]:
        return -_UNBOUNDED, _UNBOUNDED

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        low, high = self.interval()
        interval = "none" if self.no_interval else f"[{number(low)}, {number(high)}]"
        facts = [
            ("maximum likelihood", "none" if np.isnan(self.estimate) else number(self.estimate)),
            ("95% likelihood-ratio interval", interval),
        ]
        for name, value in (
            ("two-step", self.two_step),
            ("probit of the selected rows", self.naive_probit),
        ):
            if np.isfinite(value):
                facts.append((name, number(value)))
        notes = [f"No interval is given: {self.no_interval}."] if self.no_interval else []
        if len(self.regions()) > 1:
            pieces = " and ".join(f"[{number(a)}, {number(b)}]" for a, b in self.regions())
            notes.append(f"The interval spans a gap: not rejected are {pieces}.")
        if not self.maxima["reported"].head(1).all():
            notes.append("The maximum reported is not the highest; the interval is about that one.")
        notes += self.caveats
        table = self.maxima if len(self.maxima) else None
        return [
            Section(f"The likelihood over the coefficient of {shown(self.term)}", tuple(facts)),
            Section("Its maxima", table=table, notes=tuple(notes)),
        ]


def profile_coefficient(
    model: Fitted,
    X: Any,
    y: Any = None,
    term: Any = None,
    *,
    grid: int | ArrayLike = 21,
    selected: Any = None,
    sample_weight: Any = None,
) -> CoefficientProfile:
    """Maximise the likelihood for many values of a coefficient; see `Heckman.profile`."""
    fit = model.fit_
    place, name = _find(fit, term)
    read_grid, two_steps = _check_grid(grid), "two steps" in fit.family.supports
    read = read_fit_rows(fit, X, y, selected, sample_weight)
    with one_blas_thread():
        climb = Climb.of_coefficient(Ascent.build(fit, read.rows, held=True), place)
        first = climb.ascent.first
        centre, error = float(first.coef[place]), np.sqrt(first.covariance[place, place])
        found_first = centre
        if climb.top is not None:
            centre, error = climb.top.value, climb.reach(climb.top, 0.5)
        if not isinstance(read_grid, int):
            values = read_grid
        else:
            away = _WIDEST * (error if np.isfinite(error) else 1.0 + abs(centre))
            values = np.linspace(centre - away, centre + away, read_grid)
        points = climb.along(values)
        if np.count_nonzero([np.isfinite(point.height) for point in points]) < 2:
            raise NotIdentifiedError(
                f"the likelihood has no maximum at values of the coefficient of {quoted(name)}: "
                f"rho runs to -1 or 1. Use {'the two-step estimates, or ' if two_steps else ''}"
                "other features."
            )
        peaks = climb.peaks(points)
        ends = [] if why_no_interval(fit) else _ends(climb, peaks)
    order = _apart([*peaks, *reversed(ends), *points])
    maxima = pd.DataFrame(
        [(peak.value, peak.height, peak is climb.top) for peak in peaks],
        columns=["value", "log_likelihood", "reported"],
    ).sort_values("log_likelihood", ascending=False, ignore_index=True)
    return CoefficientProfile(
        term=name,
        value=np.array([point.value for point in order]),
        log_likelihood=np.array([point.height for point in order]),
        slope=np.array([point.slope for point in order]),
        maxima=maxima,
        estimate=float("nan") if climb.top is None else climb.top.value,
        two_step=found_first if two_steps and fit.held_rho is None else float("nan"),
        naive_probit=float("nan") if two_steps else found_first,
        no_interval=why_no_interval(fit),
        caveats=tuple(search_notes(fit, "profile")),
    )


def _ends(climb: Climb, peaks: list[Point]) -> list[Point]:
    """Climb to the ends of the intervals about each maximum that they contain."""
    height = max((peak.height for peak in peaks), default=0.0)
    found = []
    for level in _LEVELS:
        floor = height - 0.5 * float(stats.chi2.ppf(level, 1))
        for peak in peaks:
            if peak.height > floor:
                found += climb.end(peak, floor, -1.0) + climb.end(peak, floor, 1.0)
    return found


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
    if fit.average is not None and ("prediction", term) in fit.terms:
        raise InputError(
            f"a profile of an average uses the features with a {BY} share of at least one half; "
            f"{quoted(term)} is not among them. Fit Heckman with features chosen beforehand."
        )
    raise UnknownFeatureError(
        f"{quoted(term)} is not a term of the prediction equation"
        f"{nearest(str(term), names) or f'; it has {some(names, 8)}'}"
    )


def _check_grid(grid: int | ArrayLike) -> int | Floats:
    if isinstance(grid, Integral):
        if grid < 2:
            raise InputError(f"grid needs at least 2 values; got {grid}")
        return int(grid)
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if len(values) < 2 or not np.all(np.isfinite(values)):
        raise InputError("grid must hold at least 2 different values of the coefficient")
    return values
