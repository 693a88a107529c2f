"""Diagnostics: what the data can and cannot show about a fitted selection model."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.model.linalg import column_norms
from heckmanfa.results import fit_tests
from heckmanfa.results.distribution import LEVEL, Wald, n_parameters
from heckmanfa.results.document import Findings
from heckmanfa.results.effects import class_counts
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_tests import selection_test
from heckmanfa.results.reports import Printed
from heckmanfa.text.option_words import told

STRONG_CHI2 = 10.0
"""chi-squared of strong exclusions, for each of them"""
HIGH_VIF = 10.0
"""VIF of lambda from which it is nearly collinear with the features"""

_NAN = float("nan")


@dataclass(frozen=True, repr=False)
class Diagnostics(Printed):
    """Diagnostics of a fitted model; prints in words."""

    _kind = "diagnostics"

    condition_number: float
    """of [1, X, lambda] with columns of unit length (Belsley); of [1, X] if lambda has no
    coefficient of its own"""
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
    n_positive: int | float | None = None
    n_negative: int | float | None = None
    """selected rows of either class; None unless the outcome is binary"""
    transform_ratio: tuple[float, float] | None = None
    """mean over the selected rows of the outcome over its mean given selection, with a standard
    error; None unless the outcome is fitted on its logarithm"""
    facts: tuple[Fact, ...] = ()
    """everything worth telling about the fit, those of included reports last"""

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
        return self.imr_vif >= HIGH_VIF

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each diagnostic: its name, value and verdict."""
        rows = [line[:3] for line in self.lines()]
        return pd.DataFrame(rows, columns=["diagnostic", "value", "verdict"])

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Return the name, value, verdict and meaning of each diagnostic."""
        return [(fact.name, fact.value, fact.verdict, told(fact.meaning)) for fact in self.checks()]

    def checks(self) -> list[Fact]:
        """Return the facts that are diagnostics, in reading order."""
        return [fact for fact in self.facts if fact.name]

    def parts(self) -> list[Findings]:
        """Return the diagnostics as one block."""
        return [Findings(tuple(self.lines()))]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def measure(fit: Fit, index: Floats | None = None, counts: Floats | None = None) -> Diagnostics:
    """Compute the numbers of the diagnostics of a fitted model; its facts are added later.

    ``index`` is the selection index of rows to predict for.
    """
    features = [int(column) for column in np.flatnonzero(fit.support)]
    held = fit.held_rho is not None
    imr = fit.probit is not None and fit.family.has_imr and not held
    r = fit.moments.subset(features, imr=imr, outcome=False)
    n_positive, n_negative = class_counts(fit)
    general = Diagnostics(
        condition_number=_condition(r),
        r2=fit_tests.r2_of(fit),
        saturated=fit_tests.is_saturated(fit),
        n_clusters=fit.n_clusters,
        n_parameters=n_parameters(fit),
        n_positive=n_positive,
        n_negative=n_negative,
        transform_ratio=fit.transform_ratio,
        unconverged=fit_tests.unconverged(fit),
    )
    if fit.probit is None:
        return general
    excluded = [column for column in fit.driving if not fit.support[column]]
    unexplained = _unexplained(r) if imr else _NAN
    low, high = fit.index_range
    averaged, one_rho = fit.way.is_average, fit.family.can("single rho")
    tested = one_rho and not (held or fit.rho_is_conditioned or averaged)
    link = fit.link
    return replace(
        general,
        n_excluded=len(excluded),
        excluded_features=tuple(fit.spec.feature_names(excluded)),
        excluded_wald=selection_test(fit, excluded) if excluded else None,
        imr_r2=1.0 - unexplained,
        imr_vif=float("inf") if unexplained == 0.0 else 1.0 / unexplained,
        rho=fit.rho if one_rho else _NAN,
        rho_outside=one_rho and not abs(fit.rho) < 1,
        rho_wald=fit_tests.rho_wald(fit) if tested else None,
        rho_lr=fit_tests.rho_lr(fit),
        imr_range=(float(link.mean_error(high)), float(link.mean_error(low))),
        index_range=(low, high),
        share_outside=None if index is None else share_outside(index, low, high, counts),
        n_without_index=0 if index is None else int(np.count_nonzero(np.isnan(index))),
        searched=fit.search is not None and fit.search.chose,
        averaged=averaged,
        rho_held=held,
        rho_flat="flat" in fit.doubts,
        rho_conditioned=fit.rho_is_conditioned,
        errors_missing=fit_tests.lacks_errors(fit),
        errors_withheld=fit_tests.withholds_errors(fit),
        log_likelihood=fit.log_likelihood,
        maximum_rho=fit_tests.rho_of_maximum(fit) if one_rho else _NAN,
        second_maximum=fit.second_maximum,
        hausman=fit_tests.hausman_test(fit),
        equal_variance=fit_tests.equal_variance_test(fit),
    )


def outside(index: Floats, low: float, high: float) -> Mask:
    """Return which rows have an index outside a range."""
    # Rows at the ends of the range are inside, whatever the last digit of their index.
    slack = 1e-9 * (high - low)
    return np.asarray((index < low - slack) | (index > high + slack), dtype=bool)


def share_outside(index: Floats, low: float, high: float, counts: Floats | None = None) -> float:
    """Return the share outside a range, of the rows that have an index.

    ``counts`` say how many rows each stands for; one by default.
    """
    known = ~np.isnan(index)
    weights = None if counts is None else counts[known]
    if not known.any():
        return float("nan")
    return float(np.average(outside(index[known], low, high), weights=weights))


def _unexplained(r: Floats) -> float:
    """Share of lambda, the last column, that the others leave unexplained."""
    spread = float(np.sum(r[1:, -1] ** 2))
    return float(r[-1, -1] ** 2) / spread if spread > 0 else 0.0


def _condition(r: Floats) -> float:
    scaled = r / column_norms(r)
    values = np.linalg.svd(scaled, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else float("inf")
