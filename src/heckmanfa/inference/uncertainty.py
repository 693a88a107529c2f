"""Sensitivity to rho: coefficients for a range of rho instead of one estimate.

Genback, Stanghellini and de Luna (2015), "Uncertainty intervals for regression parameters with
non-ignorable missingness in the outcome", Statistical Papers 56. `two_step_over_rho` has the
estimates and their standard errors at each rho, for which the compressed data suffice;
`ml_over_rho` has those of a binary outcome, from its rows. Here are the report and what may
be concluded from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.ml_over_rho import MLOverRho, OverRhoCurve
from heckmanfa.inference.profiler import Likelihood
from heckmanfa.inference.rows_of_fit import probit_of, read_fit_rows, require_rows
from heckmanfa.model.two_step_over_rho import TwoStepOverRho
from heckmanfa.plots.rho_curves import RhoCurves
from heckmanfa.plots.rho_curves import uncertainty as draw_uncertainty
from heckmanfa.results.distribution import NullDistribution, check_level, distribution_of
from heckmanfa.results.document import Section
from heckmanfa.results.effects import CONF_LEVEL, Effect
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.naming import Naming
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import search_notes
from heckmanfa.results.selection_numbers import LITTLE_RHO
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import listed, plural

_KINDS = {
    "robust": ", and is robust, as in the model",
    "cluster": ", and for clusters, as in the model",
    "survey": ", and for the design of the survey, as in the model",
}


def _kind(fit: Fit) -> str:
    """Say of which kind the covariance over rho is, if it is that of the model."""
    if fit.design is not None and fit.design.n_replicates:
        return ""
    return _KINDS.get(fit.spec.cov_type or "", "")


@dataclass(frozen=True, repr=False, eq=False)
class UncertaintyInterval(Report):
    """Bounds of each coefficient for rho in a range; prints, and shows as HTML in a notebook."""

    rho: tuple[float, float]
    """the range"""
    conf_level: float
    grid: Floats
    """the values of rho evaluated, including the ends of the range"""
    rho_hat: float
    """the model's own rho"""
    n_selected: int | float
    curve: OverRhoCurve
    notes: tuple[str, ...]
    reference: NullDistribution
    """the distribution of confidence intervals"""
    held_rho: float | None = None
    """the value at which the model holds rho; None if it estimates rho"""
    averaged: bool = False
    """whether the model is an average, so these are only the features that probably predict"""

    @property
    def _searched(self) -> str:
        """The largest |rho| at which changes were searched for."""
        return f"{self.curve.reach:.4g}" if isinstance(self.curve, MLOverRho) else "1"

    @property
    def _quantile(self) -> float:
        return self.reference.quantile(self.conf_level)

    def tidy(self) -> pd.DataFrame:
        """Return one row for each coefficient.

        Returns
        -------
        DataFrame
            term; ols (the estimate at rho = 0; probit, if the outcome is binary); bound_low and
            bound_high, between which the estimate lies for rho in the range; ui_low and ui_high,
            the union of the confidence intervals over the grid; sign_change, the rho at which the
            estimate is zero;
            significance_low and significance_high, the nearest rho below and above zero at which
            significance changes: the confidence interval starts or stops containing zero. These
            three are searched for in all of (-1, 1), or (-0.99, 0.99) if the outcome is binary,
            and are NaN if there is none.
        """
        centre = self.curve.estimate(self.grid)
        reach = self._quantile * self.curve.std_error(self.grid)
        significance = self.curve.significance_changes(self._quantile)
        return pd.DataFrame(
            {
                "term": self.curve.terms,
                self.curve.zero_name: self.curve.at_zero,
                # Of a linear outcome the extremes are at the ends, which the grid includes.
                "bound_low": centre.min(axis=0),
                "bound_high": centre.max(axis=0),
                "ui_low": (centre - reach).min(axis=0),
                "ui_high": (centre + reach).max(axis=0),
                "sign_change": self.curve.sign_changes(),
                "significance_low": significance[:, 0],
                "significance_high": significance[:, 1],
            }
        )

    def path(self) -> pd.DataFrame:
        """Return one row for each coefficient and each rho of the grid.

        Returns
        -------
        DataFrame
            rho, sigma (unless the outcome is binary), term, estimate, std_error, ci_low, ci_high.
        """
        width = len(self.curve.terms)
        more = self.curve.more_columns(self.grid)
        estimate = self.curve.estimate(self.grid).ravel()
        error = self.curve.std_error(self.grid).ravel()
        return pd.DataFrame(
            {
                "rho": np.repeat(self.grid, width),
                **{name: np.repeat(values, width) for name, values in more.items()},
                "term": list(self.curve.terms) * len(self.grid),
                **self.reference.columns(estimate, error, self.conf_level, tests=False),
            }
        )

    def plot(self, terms: Sequence[str] | None = None, axes: Any = None) -> Any:
        """Draw coefficients over rho; see `heckmanfa.plots.uncertainty`."""
        return draw_uncertainty(self, terms, axes)

    def curves(self) -> RhoCurves:
        """Return what the picture shows."""
        path, bounds, zero = self.path(), self.tidy(), self.curve.zero_name
        return RhoCurves(path, bounds, self.rho, self.conf_level, zero)

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        table = self.tidy()
        low, high = self.rho
        place = "inside" if low <= self.rho_hat <= high else "outside"
        percent, reach = f"{100 * self.conf_level:g}%", self._searched
        facts = (
            ("Range of rho", f"[{low:g}, {high:g}]"),
            ("Confidence level", percent),
            ("Selected rows", f"{self.n_selected:,}"),
            (
                f"rho as the model {'estimates' if self.held_rho is None else 'holds'} it",
                f"{self.rho_hat:.4g}, {place} the range",
            ),
        )
        changes = ["term", "sign_change", "significance_low", "significance_high"]
        return [
            Section("Uncertainty intervals", facts=facts),
            Section(
                "Bounds of the estimates, and the union of their confidence intervals",
                table=table[
                    ["term", self.curve.zero_name, "bound_low", "bound_high", "ui_low", "ui_high"]
                ],
                notes=tuple(_interval_words(table)),
            ),
            Section(
                "The rho at which a conclusion changes",
                table=table[changes],
                notes=(
                    *_sign_words(table, self.rho, self.curve.reach),
                    "significance low and high: the nearest rho below and above zero at which "
                    f"the {percent} confidence interval starts or stops containing zero. Nothing "
                    f"is shown if there is none in (-{reach}, {reach}).",
                ),
            ),
            Section(notes=self.notes),
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        table = self.tidy().iloc[1:]
        if table.empty:
            return []
        low, high = self.rho
        turning = table[table["sign_change"].between(low, high)]["term"].tolist()
        clear = ((table["ui_low"] > 0) | (table["ui_high"] < 0)).sum()
        return [
            tell(
                None,
                "uncertainty",
                "caution" if turning else "ok",
                f"{len(turning)} of {plural(len(table), 'coefficient')} "
                f"{'changes' if 1 in (len(turning), len(table)) else 'change'} sign, {clear} "
                f"{'stays' if clear == 1 else 'stay'} significant",
                name=f"rho from {low:g} to {high:g}"
                + (f", features with a {BY} share of 50% or more" if self.averaged else ""),
                short=f"{len(table) - len(turning)} of {len(table)} stay for rho from {low:g} to "
                f"{high:g}",
                names=tuple(map(str, turning)),
            )
        ]


def _interval_words(table: pd.DataFrame) -> list[str]:
    features = table.iloc[1:]
    clear = features[(features["ui_low"] > 0) | (features["ui_high"] < 0)]["term"].tolist()
    if clear:
        return [f"Zero is outside the uncertainty interval of {listed(clear)}."]
    return ["Zero is inside the uncertainty interval of every feature."] if len(features) else []


def _sign_words(table: pd.DataFrame, rho: tuple[float, float], reach: float) -> list[str]:
    features = table.iloc[1:]
    kept = features[features["sign_change"].isna()]["term"].tolist()
    everywhere = f"for every rho in (-{reach:.4g}, {reach:.4g})"
    words = []
    if kept:
        verb = "keeps its sign" if len(kept) == 1 else "keep their signs"
        words.append(f"{listed(kept)} {verb} {everywhere}.")
    for term, where in features[["term", "sign_change"]].dropna().itertuples(index=False):
        place = "inside" if rho[0] <= where <= rho[1] else "outside"
        words.append(f"{term} changes sign at rho = {where:.3g}, {place} the range.")
    return words


def uncertainty_interval(
    fit: Fit, passed: PassedRows, rho: Any, conf_level: float, n_grid: int
) -> UncertaintyInterval:
    """Vary rho over a range; see `Heckman.uncertainty_interval`."""
    low, high = ends = _read_range(rho)
    check_level(conf_level)
    if not isinstance(n_grid, Integral) or n_grid < 2:
        raise InputError(f"n_grid must be an integer of at least 2; got {quoted(n_grid)}")
    probit_of(fit, "no rho could change the estimates")
    fit.family.require("normal errors")
    compressed = "compressed data" in fit.family.supports
    if not compressed:
        fit.family.require("profiles")
        require_rows(fit, passed, "uncertainty_interval")
    read = None if passed.X is None else read_fit_rows(fit, passed, clusters=True)
    curve: OverRhoCurve
    if compressed or read is None:
        curve = _compressed_curve(fit, low, high)
    else:
        kind = fit.spec.covariance_kind(read.sample.cells)
        with one_blas_thread():
            likelihood = Likelihood.build(fit, read.rows)
            curve = MLOverRho.build(likelihood, _terms(fit), ends, kind)
    return UncertaintyInterval(
        rho=ends,
        conf_level=float(conf_level),
        grid=np.unique(np.linspace(low, high, int(n_grid))),
        rho_hat=fit.rho,
        n_selected=fit.n_selected,
        curve=curve,
        notes=(*_notes(fit), *distribution_of(fit).notes(others=True)),
        reference=distribution_of(fit),
        held_rho=fit.held_rho,
        averaged=fit.way.is_average,
    )


def _compressed_curve(fit: Fit, low: float, high: float) -> TwoStepOverRho:
    """Return the estimates over rho that the compressed data give."""
    if fit.spec.errors_differ and fit.rho_scores is None:
        raise InputError(
            f"this fit lacks what {fit.spec.cov_type} standard errors over rho need; fit the model "
            "again"
        )
    curve = TwoStepOverRho.build(fit.moments, fit.features, _terms(fit), fit.rho_scores)
    if not max(-low, high) < curve.reach:
        raise NotIdentifiedError(
            f"sigma is not defined for |rho| of {curve.reach:.6g} or more with these few selected "
            f"rows; got the range [{low:g}, {high:g}]"
        )
    return curve


def _terms(fit: Fit) -> list[str]:
    return ["Intercept", *(fit.labels[feature] for feature in fit.features)]


def bounds_of(
    fit: Fit, naming: Naming, rho: tuple[float, float] = (-LITTLE_RHO, LITTLE_RHO)
) -> dict[int, Effect]:
    """Where the effect of a step of each prediction feature lies for rho in a range.

    They are by column of X, and the estimate is that at rho = 0. Nothing is returned where there is
    no selection equation, where the rows are too few for such a range, or where only rows tell.
    """
    if fit.probit is None or "bounds of rho" not in fit.family.supports:
        return {}
    try:
        table = uncertainty_interval(fit, PassedRows(), rho, CONF_LEVEL, 61).tidy().iloc[1:]
    except InputError:
        return {}
    ends = table[["ols", "ui_low", "ui_high"]].to_numpy(dtype=np.float64)
    return {
        column: Effect(*(float(value) for value in row)).times(naming.step_of(column))
        for column, row in zip(fit.features, ends, strict=True)
    }


def _read_range(rho: Any) -> tuple[float, float]:
    try:
        ends = list(rho)
    except TypeError:
        ends = []
    if len(ends) != 2 or not all(
        not isinstance(end, bool) and isinstance(end, Real) and np.isfinite(float(end))
        for end in ends
    ):
        raise InputError(f"rho must be two numbers, as in (-0.3, 0.3); got {quoted(rho)}")
    low, high = (float(end) for end in ends)
    if low > high:
        raise InputError(f"rho must be (low, high); got ({low:g}, {high:g})")
    if not (low > -1 and high < 1):
        raise InputError(f"rho must lie inside (-1, 1); got ({low:g}, {high:g})")
    return low, high


def _notes(fit: Fit) -> list[str]:
    zero = fit.family.words.naive_of
    known = " and of sigma" if fit.family.has_sigma else ""
    notes = [
        "A range of rho is an assumption, in place of an exclusion: no data show that rho lies in "
        f"it. The method still relies on normal errors and on the probit for selection. rho = 0 is "
        f"{zero} the selected rows, which assumes that outcomes are missing at random.",
        "The standard error at each rho takes that rho as given. It allows for the estimation of "
        f"the selection equation{known}{_kind(fit)}.",
    ]
    if not abs(fit.rho) < 1:
        notes.append("The model's own estimate of rho is outside (-1, 1), and means little here.")
    notes += search_notes(fit, "uncertainty_interval")
    if fit.spec.method == "ml" and "two steps" in fit.family.supports:
        notes.append(
            "The estimates at each rho are two-step ones, and not those of maximum likelihood."
        )
    return notes
