"""Diagnostics: what the data can and cannot show about a fitted selection model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.model.likelihood import higher_maximum, rho_text
from heckmanfa.model.linalg import column_norms
from heckmanfa.model.normal import inverse_mills
from heckmanfa.results import problems
from heckmanfa.results.binary_problems import ONLY_NORMALITY, binary_findings
from heckmanfa.results.document import Finding, Findings, Verdict
from heckmanfa.results.exclusion_strength import STRONG_CHI2, about_exclusions, exclusions_line
from heckmanfa.results.exclusions import selection_test
from heckmanfa.results.held_rho_words import about_held_exclusions, about_held_rho
from heckmanfa.results.log_words import about_ratio
from heckmanfa.results.reference import LEVEL, Wald, n_parameters
from heckmanfa.results.reports import Printed, Report
from heckmanfa.results.rho_tests import rho_lr, rho_wald
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, percent

# Rules of thumb from the literature on weak instruments and collinearity.
_HIGH_VIF = 10.0
_HIGH_CONDITION = 30.0
_MANY_OUTSIDE = 0.05

_NAN = float("nan")


@dataclass(frozen=True, repr=False)
class Diagnostics(Printed):
    """Diagnostics of a fitted model; prints in words."""

    _kind = "diagnostics"

    condition_number: float
    """of [1, X, lambda] with columns of unit length (Belsley); of [1, X] for a binary outcome, or
    if rho is held"""
    r2: float
    """R^2 of the prediction equation among the selected rows, lambda included; a binary outcome
    has none (NaN)"""
    saturated: bool
    """whether there are as many prediction coefficients as selected rows"""
    n_clusters: int | None
    """clusters of a cluster covariance"""
    n_parameters: int
    """parameters in the covariance"""
    n_excluded: int = 0
    """coefficients of features in the selection equation alone"""
    excluded_features: tuple[Any, ...] = ()
    """these features; a category has one name, and a coefficient for each of its dummies"""
    excluded_wald: Wald | None = None
    """joint test of these in the selection equation"""
    imr_r2: float = _NAN
    """R^2 of the probit's lambda on the prediction features among the selected rows; NaN for a
    binary outcome, whose model has no lambda, or if rho is held"""
    imr_vif: float = _NAN
    """1 / (1 - R^2)"""
    rho: float = _NAN
    rho_outside: bool = False
    """whether rho-hat is outside (-1, 1)"""
    rho_wald: Wald | None = None
    """test of rho = 0: of beta_H in two-step, of atanh rho in maximum likelihood"""
    rho_lr: Wald | None = None
    """likelihood-ratio test of rho = 0 (maximum likelihood with classical covariance), at the
    higher of two maxima"""
    imr_range: tuple[float, float] = (0.0, 0.0)
    """range of lambda among the selected rows of the fit"""
    index_range: tuple[float, float] = (np.inf, np.inf)
    """range of z'gamma among the selected rows of the fit"""
    share_outside: float | None = None
    """share outside that range, of the rows given that have an index"""
    n_without_index: int = 0
    """rows given that lack a selection feature"""
    rho_held: bool = False
    """whether rho was held at a value, so it is neither estimated nor tested"""
    rho_flat: bool = False
    """whether the likelihood hardly depends on rho"""
    rho_conditioned: bool = False
    """whether rho-hat was chosen to be in a window, so it is not tested"""
    searched: bool = False
    """whether the data chose the features"""
    averaged: bool = False
    """whether estimates are averages; features are then those that probably predict"""
    findings: tuple[Finding, ...] = ()
    """findings of other reports"""
    caveats: tuple[Finding, ...] = ()
    """the caveats about estimates and tests"""
    unconverged: tuple[str, ...] = ()
    """iterations that did not converge: "probit", "likelihood", "plain probit" """
    errors_missing: bool = False
    """whether the variance of an estimate is unknown"""
    errors_withheld: bool = False
    """whether that is because the likelihood says little about rho"""
    log_likelihood: float | None = None
    """at the maximum reported, and the rho there (maximum likelihood)"""
    maximum_rho: float = _NAN
    second_maximum: tuple[float, float] | None = None
    """log-likelihood and rho of another maximum, if one is known"""
    hausman: Wald | None = None
    """test that two-step and maximum likelihood estimate the same beta_H (maximum likelihood)"""
    equal_variance: Wald | None = None
    """test that the outcome's variance does not depend on the features (maximum likelihood)"""
    guards: tuple[Finding, ...] = ()
    """what these two tests found"""
    n_positive: int | float | None = None
    n_negative: int | float | None = None
    """selected rows of either class; None unless the outcome is binary"""
    transform_ratio: tuple[float, float] | None = None
    """mean over the selected rows of the outcome over its mean given selection, with a standard
    error; None unless the outcome is fitted on its logarithm"""
    of_classes: tuple[Finding, ...] = ()
    """what only a binary outcome is asked: few rows of a class, separation, the naive probit"""

    @property
    def weak_exclusions(self) -> bool:
        """Whether the excluded features are not shown to drive selection, or only weakly."""
        test = self.excluded_wald
        if test is None:
            return False
        strong = test.chi2 > STRONG_CHI2 * self.n_excluded
        return not (strong and test.p_value < LEVEL)

    @property
    def imr_collinear(self) -> bool:
        """Whether lambda is almost a linear function of the prediction features."""
        return not self.is_binary and not self.rho_held and not self.imr_vif < _HIGH_VIF

    @property
    def is_binary(self) -> bool:
        """Whether the outcome is binary."""
        return self.n_positive is not None

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each diagnostic: its name, value and verdict."""
        rows = [line[:3] for line in self.lines()]
        return pd.DataFrame(rows, columns=["diagnostic", "value", "verdict"])

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Return the name, value, verdict and meaning of each diagnostic."""
        return [(check.name, check.value, check.verdict, check.meaning) for check in self.checks()]

    def checks(self) -> list[Finding]:
        """Return each diagnostic as a `Finding`, in reading order."""
        found = [
            *problems.about_convergence(
                self.unconverged, binary=self.is_binary, held=self.rho_held
            ),
            *problems.about_errors(self.errors_missing, withheld=self.errors_withheld),
            *problems.about_r2(self.r2, saturated=self.saturated),
            *about_ratio(self.transform_ratio),
        ]
        clusters = problems.about_clusters(self.n_clusters, self.n_parameters)
        if np.isnan(self.rho):
            words = "No outcome was missing: nothing to diagnose."
            first = Finding("selection", "selection", "none", "ok", words)
            return [first, *found, *self.of_classes, self._condition_check(), *clusters]
        found += [*self._exclusion_checks(), *self._imr_checks(), self._condition_check()]
        found += [*self.of_classes, *self._rho_checks(), *self.guards, *self.caveats]
        return [*found, *self._range_checks(), *clusters, *self.findings]

    def _imr_checks(self) -> list[Finding]:
        """Judge how much of lambda the prediction features explain."""
        if self.rho_held:
            # Its coefficient follows from sigma.
            return []
        if self.is_binary:
            words = (
                "A Heckman probit has no term in lambda, so there is no R2 or VIF of it: "
                "exclusions tell selection from prediction."
            )
            return [Finding("no_imr", "lambda on the features", "none", "ok", words)]
        linear = "almost" if self.imr_collinear else "not"
        words = f"Lambda is {linear} a linear function of the prediction features."
        value = f"R2 {self.imr_r2:.4f}, VIF {self.imr_vif:.2f}"
        verdict: Verdict = "caution" if self.imr_collinear else "ok"
        which = f" with a {BY} share of 50% or more" if self.averaged else ""
        return [Finding("imr_r2", f"lambda on the features{which}", value, verdict, words)]

    def _condition_check(self) -> Finding:
        verdict: Verdict = "ok"
        words = "The columns of the prediction equation are well apart."
        high = not self.condition_number < _HIGH_CONDITION
        if high:
            verdict = "caution"
            words = "Some columns are nearly collinear; standard errors will be large."
        value = number(self.condition_number, 3) if high else f"{self.condition_number:.1f}"
        name = "condition number"
        short = f"{name} {value}" if high else ""
        return Finding("condition", name, value, verdict, words, short=short)

    def _exclusion_checks(self) -> list[Finding]:
        """Judge the number and the strength of the excluded features."""
        if self.rho_held:
            line = exclusions_line(averaged=self.averaged)
            return [about_held_exclusions(*line, len(self.excluded_features))]
        if self.n_excluded == 0:
            alone = "Only normality identifies the model; estimates are often unstable."
            if self.is_binary:
                alone = ONLY_NORMALITY
            if self.averaged:
                alone = "Only normality tells the correction from the features."
            key, name = exclusions_line(averaged=self.averaged)
            # The chance of the correction allows for what little identifies it.
            level: Verdict = "caution" if self.averaged else "problem"
            return [Finding(key, name, "none", level, alone, case="none")]
        if self.excluded_wald is None:
            return []
        return [
            about_exclusions(
                [shown(name) for name in self.excluded_features],
                self.n_excluded,
                self.excluded_wald,
                strong=not self.weak_exclusions,
                clustered=self.n_clusters is not None,
                averaged=self.averaged,
                profiled=self.rho_lr is not None,
            )
        ]

    def _range_checks(self) -> list[Finding]:
        """Report the range of lambda in the fit, and the share of the rows given outside it."""
        (low, high), (first, last) = self.imr_range, self.index_range
        value = f"{number(low)} to {number(high)}"
        words = f"The selection index runs from {number(first)} to {number(last)}."
        fitted = Finding("imr_range", "range of lambda in the fit", value, "ok", words)
        if self.is_binary:
            name, value = "range of the selection index", f"{number(first)} to {number(last)}"
            ends = " to ".join(percent(float(ndtr(end))) for end in (first, last))
            words = f"The selected rows had a probability of selection of {ends}."
            fitted = Finding("imr_range", name, value, "ok", words)
        if self.share_outside is None:
            return [fitted]
        value = percent(self.share_outside)
        if self.n_without_index:
            value += f" ({self.n_without_index} rows lack a feature and are not counted)"
        verdict: Verdict = "ok"
        words = "Predictions given selection stay within the range of the fit."
        if not self.share_outside <= _MANY_OUTSIDE:
            what = "the correction" if self.is_binary else "lambda"
            verdict, words = "caution", f"Predictions given selection extrapolate {what} there."
        outside = Finding("outside_range", "rows outside that range", value, verdict, words)
        return [fitted, outside]

    def _rho_checks(self) -> list[Finding]:
        """Judge rho, the maxima of the likelihood, and the tests of rho = 0."""
        if self.rho_held:
            return [about_held_rho(self.rho)]
        checks = [problems.about_rho(self.rho, binary=self.is_binary, flat=self.rho_flat)]
        maxima = problems.about_maxima(
            self.log_likelihood,
            self.maximum_rho,
            self.second_maximum,
            ratio=self.rho_lr is not None,
        )
        # A profile of the likelihood, if included, knows more about its maxima.
        profiled = any(finding.key == "maxima" for finding in self.findings)
        doubtful = checks[0].verdict == "problem" or bool(maxima) or profiled
        doubtful |= any(
            test is not None and test.p_value < LEVEL
            for test in (self.hausman, self.equal_variance)
        )
        if not profiled:
            checks += maxima
        for key, name, test in (
            ("rho_test", "test of rho = 0", self.rho_wald),
            ("rho_lr_test", "LR test of rho = 0", self.rho_lr),
        ):
            if test is not None:
                which = self._which_maximum(higher=test is self.rho_lr)
                checks.append(
                    problems.about_rho_test(
                        key, name, test, doubtful=doubtful, which=which, basis=self._basis
                    )
                )
        return checks

    @property
    def _basis(self) -> problems.Basis:
        if self.searched:
            return "search"
        return "exclusions" if self.n_excluded else "normality"

    def _which_maximum(self, *, higher: bool) -> str:
        other = higher_maximum(self.log_likelihood, self.second_maximum)
        if other is None:
            return ""
        which = ("higher", other[1]) if higher else ("lower", self.maximum_rho)
        return f" This is about the {which[0]} maximum, rho {rho_text(which[1])}."

    def parts(self) -> list[Findings]:
        """Return the diagnostics as one block."""
        return [Findings(tuple(self.checks()))]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def diagnose(
    fit: Fit,
    index: Floats | None,
    reports: Sequence[Report],
    caveats: Sequence[Finding],
) -> Diagnostics:
    """Compute the diagnostics of a fitted model; see `Heckman.diagnostics`.

    ``index`` is the selection index of rows to predict for. The findings of ``reports`` and the
    caveats of the fit are added as they are.
    """
    features = [int(column) for column in np.flatnonzero(fit.support)]
    held = fit.held_rho is not None
    imr = fit.probit is not None and not fit.is_binary and not held
    r = fit.moments.subset(features, imr=imr, outcome=False)
    general = Diagnostics(
        condition_number=_condition(r),
        r2=problems.r2_of(fit),
        saturated=problems.is_saturated(fit),
        n_clusters=fit.n_clusters,
        n_parameters=n_parameters(fit),
        n_positive=None if fit.binary is None else fit.binary.n_positive,
        n_negative=None if fit.binary is None else fit.binary.n_negative,
        transform_ratio=fit.transform_ratio,
        of_classes=tuple(binary_findings(fit)),
        unconverged=problems.unconverged(fit),
    )
    if fit.probit is None:
        return general
    excluded = [column for column in fit.driving if not fit.support[column]]
    unexplained = _unexplained(r) if imr else _NAN
    low, high = fit.index_range
    return replace(
        general,
        n_excluded=len(excluded),
        excluded_features=tuple(fit.spec.feature_names(excluded)),
        excluded_wald=selection_test(fit, excluded) if excluded else None,
        imr_r2=1.0 - unexplained,
        imr_vif=float("inf") if unexplained == 0.0 else 1.0 / unexplained,
        rho=fit.rho,
        rho_outside=not abs(fit.rho) < 1,
        rho_wald=None if held or fit.rho_is_conditioned or fit.average else rho_wald(fit),
        rho_lr=rho_lr(fit),
        imr_range=(float(inverse_mills(high)), float(inverse_mills(low))),
        index_range=(low, high),
        share_outside=None if index is None else share_outside(index, low, high),
        n_without_index=0 if index is None else int(np.count_nonzero(np.isnan(index))),
        searched=fit.search is not None and fit.search.chose,
        averaged=fit.average is not None,
        rho_held=held,
        rho_flat="flat" in fit.doubts,
        rho_conditioned=fit.rho_is_conditioned,
        findings=tuple(finding for report in reports for finding in report.findings()),
        caveats=tuple(caveats),
        errors_missing=problems.lacks_errors(fit),
        errors_withheld=problems.withholds_errors(fit),
        log_likelihood=fit.log_likelihood,
        maximum_rho=problems.rho_of_maximum(fit),
        second_maximum=fit.second_maximum,
        hausman=problems.hausman_test(fit),
        equal_variance=problems.equal_variance_test(fit),
        guards=tuple(problems.guard_findings(fit)),
    )


def outside(index: Floats, low: float, high: float) -> Mask:
    """Return which rows have an index outside a range."""
    # Rows at the ends of the range are inside, whatever the last digit of their index.
    slack = 1e-9 * (high - low)
    return np.asarray((index < low - slack) | (index > high + slack), dtype=bool)


def share_outside(index: Floats, low: float, high: float) -> float:
    """Return the share outside a range, of the rows that have an index."""
    index = index[~np.isnan(index)]
    return float(np.mean(outside(index, low, high))) if len(index) else float("nan")


def _unexplained(r: Floats) -> float:
    """Share of lambda, the last column, that the others leave unexplained."""
    spread = float(np.sum(r[1:, -1] ** 2))
    return float(r[-1, -1] ** 2) / spread if spread > 0 else 0.0


def _condition(r: Floats) -> float:
    scaled = r / column_norms(r)
    values = np.linalg.svd(scaled, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")
