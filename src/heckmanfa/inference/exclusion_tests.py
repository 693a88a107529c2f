"""Tests of exclusions: features put back into the prediction equation while at least one stays out.

The model with these features is fitted, and their coefficients are tested jointly (Wald). By
two-step the classical covariance needs no rows; a robust or cluster one takes a pass. Maximum
likelihood reads the rows. A binary outcome is tested by the likelihood ratio where that is valid:
in a probit, a Wald statistic may fall as an effect rises (Hauck and Donner, 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.rows import Positions, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import FitRows, read_fit_rows, refit_by_likelihood
from heckmanfa.inference.likelihood_profile import why_no_interval
from heckmanfa.inference.what_if import excluded_features, units_of
from heckmanfa.model.covariance import is_classical
from heckmanfa.model.likelihood import JointMaximum, higher_maximum, rho_text
from heckmanfa.model.two_step import TwoStep, solve_two_step
from heckmanfa.results.distribution import NullDistribution, Wald, distribution_of
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_tests import refuse_exclusions_of_held_rho
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.option_types import Method
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import p_equals

# By simulation, at 5%: docs/specification_study.md.
_WORTH = {
    "two-step": "The less what stays out drives selection, the less the test can see. It rejected "
    "valid exclusions in 2 to 6% of simulated samples, at 5%.",
    "ml": "Maximum likelihood rejected valid exclusions in up to 14% of simulated samples, at 5%, "
    "where what stays out hardly drives selection, and in 66 to 99% where the outcome's error is "
    "skewed. Two-step (method='two-step') rejected them in 2 to 6%.",
    "bounded": "The less what stays out drives selection, the less the test can see.",
}
# Two ways to the same maximum differ by less than this many units of twice the log-likelihood.
_ROUNDING = 1e-6


@dataclass(frozen=True, repr=False, eq=False)
class ExclusionTest(Report):
    """Whether spare exclusions agree with the others; prints, and shows as HTML in a notebook."""

    method: Method
    cov_type: str | None
    tests: pd.DataFrame
    """as `tidy` gives it"""
    notes: tuple[str, ...]
    reference: NullDistribution
    """the distribution of the statistics"""
    ratio: bool = False
    """whether the statistics are likelihood ratios; Wald's otherwise"""

    def tidy(self) -> pd.DataFrame:
        """Return one row for each test.

        Returns
        -------
        DataFrame
            tested (the features put back), stays_out (what identifies the model), statistic, df
            and p_value of the joint test (chi-squared; with a cluster covariance F, whose second
            degrees of freedom are df_denominator), rho and log_likelihood (NaN by
            two-step) of the model with the features put back, and a note about problems of its
            fit.
        """
        return self.tests.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [
            ("Estimates", "maximum likelihood" if self.method == "ml" else "two-step"),
            ("Covariance", self.cov_type or "classical"),
        ]
        if self.ratio:
            facts[1] = ("Test", "likelihood ratio")
        if self.reference.df is not None:
            facts.append(("Clusters", f"{self.reference.n_clusters:,}"))
            facts.append(("Statistic", f"F(df, {self.reference.df})"))
        table = self.tests[["stays_out", "statistic", "df", "p_value", "rho"]]
        table = table.assign(stays_out=table["stays_out"].map(_listed))
        title = "Each excluded feature stays out in turn; the others are tested together"
        if len(table) == 1:
            facts += [
                ("Tested", _listed(self.tests["tested"].iloc[0])),
                ("Stays out", _listed(self.tests["stays_out"].iloc[0])),
            ]
            table, title = table.drop(columns="stays_out"), ""
        fits = [
            f"With {_listed(out)} out: {note}."
            for out, note in zip(self.tests["stays_out"], self.tests["note"], strict=True)
            if note
        ]
        return [
            Section("Do excluded features belong in the prediction equation?", tuple(facts)),
            Section(title, table=table, notes=(*fits, *self.notes)),
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        lowest = self.tests.sort_values("p_value").iloc[0]
        rejected = bool(lowest["p_value"] < 0.05)
        return [
            tell(
                None,
                "exclusion_test",
                "caution" if rejected else "ok",
                f"smallest {p_equals(lowest['p_value'])}, with {_listed(lowest['stays_out'])} out",
            )
        ]


def exclusion_test(
    fit: Fit,
    X: Any,
    y: Any,
    features: Sequence[Any] | None,
    *,
    method: Method | None,
    selected: Any,
    sample_weight: Any,
    groups: Any,
) -> ExclusionTest:
    """Test excluded features while at least one stays out; see `Heckman.exclusion_test`."""
    method = method or fit.family.methods[0]
    if method not in ("two-step", "ml"):
        raise InputError(f"method must be 'two-step' or 'ml'; got {quoted(method)}")
    if method == "two-step":
        fit.family.require("two steps")
    refuse_exclusions_of_held_rho(fit, "exclusion_test")
    tests = _sets_to_test(fit, features)
    read = _read(fit, method, X, y, selected, sample_weight, groups)
    put_back = _by_likelihood if method == "ml" else _by_two_step
    ratio = fit.family.is_bounded and not why_no_interval(fit)
    if ratio:
        put_back = _by_ratio
    with one_blas_thread():
        rows = [_row(fit, tested, out) | put_back(fit, read, tested) for tested, out in tests]
    columns = ["tested", "stays_out", "statistic", "df", "df_denominator", "p_value", "rho"]
    table = pd.DataFrame(rows, columns=[*columns, "log_likelihood", "note"])
    reference = distribution_of(fit)
    notes = (*_notes(fit, method, len(tests)), *reference.notes(joint=True))
    return ExclusionTest(method, fit.spec.cov_type, table, notes, reference, ratio)


def _read(
    fit: Fit, method: Method, X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any
) -> FitRows | None:
    """Read the rows of the fit; None if none are given, and none are needed."""
    if any(part is not None for part in (X, y, selected, sample_weight, groups)):
        return read_fit_rows(fit, X, y, selected, sample_weight, groups, clusters=True)
    if method == "two-step" and is_classical(fit.spec.cov_type):
        return None
    why = "method='ml'" if method == "ml" else f"cov_type={fit.spec.cov_type!r}"
    raise InputError(f"{why} needs the rows of the fit: pass X and y as they were passed to it")


def _sets_to_test(fit: Fit, features: Sequence[Any] | None) -> list[tuple[list[int], list[int]]]:
    """Return the features put back and those that stay out in each test, as positions in X."""
    excluded = excluded_features(fit)
    listed = _listed(fit.spec.feature_names(excluded))
    units = units_of(fit, excluded)
    if len(units) < 2:
        have = f"{listed} alone is" if excluded else "no selection feature is"
        raise InputError(
            f"{have} excluded from the prediction equation: with an excluded feature put back, "
            "at least one other must stay out, or only normality would identify the model. No "
            "exclusion can be tested here."
        )
    if features is None:
        return [([other for other in excluded if other not in out], out) for out in units]
    table = FeatureTable.without_rows(fit.spec.columns)
    tested = resolve(table, features, "features")
    if not tested:
        raise InputError(f"features is empty; the excluded features are {listed}")
    others = fit.spec.feature_names([feature for feature in tested if feature not in excluded])
    if others:
        raise InputError(
            f"{quoted(others[0])} is not an excluded feature (in the selection "
            f"equation, and not in the prediction equation); these are {listed}"
        )
    out = [feature for feature in excluded if feature not in tested]
    if not out:
        raise InputError(
            f"features names every excluded feature ({listed}): at least one must stay out, or "
            "only normality would identify the model"
        )
    return [(tested, out)]


def _row(fit: Fit, tested: list[int], out: list[int]) -> dict[str, Any]:
    return {
        "tested": tuple(fit.spec.feature_names(tested)),
        "stays_out": tuple(fit.spec.feature_names(out)),
        "df": len(tested),
        "df_denominator": np.nan if fit.n_clusters is None else fit.n_clusters - 1,
    }


def _by_two_step(fit: Fit, read: FitRows | None, tested: list[int]) -> dict[str, Any]:
    """Fit the model with some features put back by two-step, and test their coefficients."""
    features = sorted([*fit.features, *tested])
    if read is None:
        moments = fit.moments
        assert moments.probit is not None
        found = solve_two_step(moments, moments.probit, features)
    else:
        kind = fit.spec.covariance_kind(read.sample.n_groups)
        found = solve_two_step(read.moments, read.probit, features, kind, read.rows)
    if not isinstance(found, TwoStep):
        return {"note": found}
    rho = float(found.solution.rho)
    test = _wald(fit, found.coef, found.covariance, found.features, tested)
    notes = [test.note] if test.note else []
    if not abs(rho) < 1:
        notes.append("rho outside (-1, 1)")
    return {
        "statistic": test.statistic,
        "p_value": test.p_value,
        "rho": rho,
        "note": "; ".join(notes),
    }


def _by_likelihood(fit: Fit, read: FitRows | None, tested: list[int]) -> dict[str, Any]:
    """Fit the model with some features put back by ML, and test their coefficients."""
    found = _refit(fit, read, tested)
    if isinstance(found, str):
        return {"note": found}
    test = _wald(fit, found.coef, found.covariance, found.features, tested)
    notes = []
    if test.df_denominator is not None and test.note:
        notes.append(test.note)
    return {
        "statistic": test.statistic,
        "p_value": test.p_value,
        "rho": found.rho,
        "log_likelihood": found.log_likelihood,
        "note": "; ".join([*notes, *_problems(found)]),
    }


def _by_ratio(fit: Fit, read: FitRows | None, tested: list[int]) -> dict[str, Any]:
    """Fit the model with some features put back by ML, and compare the likelihoods."""
    found = _refit(fit, read, tested)
    if isinstance(found, str) or fit.log_likelihood is None:
        return {"note": found if isinstance(found, str) else "the model has no likelihood"}
    ratio, notes = 2.0 * (found.log_likelihood - fit.log_likelihood), _problems(found)
    if ratio < -_ROUNDING:
        ratio = float("nan")
        notes.append("the fit with these features ended at a lower maximum; give a start")
    return {
        "statistic": max(ratio, 0.0) if np.isfinite(ratio) else ratio,
        "p_value": float(stats.chi2.sf(ratio, len(tested))),
        "rho": found.rho,
        "log_likelihood": found.log_likelihood,
        "note": "; ".join(notes),
    }


def _refit(fit: Fit, read: FitRows | None, tested: list[int]) -> JointMaximum | str:
    """Fit the model with some features put back by ML; return the reason if that fails."""
    assert read is not None
    return refit_by_likelihood(fit, read, [*fit.features, *tested])


def _problems(found: JointMaximum) -> list[str]:
    """Say what is wrong with a fit by maximum likelihood."""
    notes = []
    if not found.converged:
        notes.append("maximum likelihood did not converge; do not trust it")
    elif not found.information_is_positive:
        notes.append("the information is not positive definite, so there is no covariance")
    elif "boundary" in found.doubts:
        notes.append(f"rho is {rho_text(found.rho)}, practically one")
    elif "flat" in found.doubts:
        notes.append("the likelihood is flat in rho")
    higher = higher_maximum(found.log_likelihood, found.second_maximum)
    if higher is not None:
        notes.append(
            f"the likelihood has a higher maximum ({higher[0]:.4f}) at rho = {rho_text(higher[1])}"
        )
    return notes


def _wald(
    fit: Fit, coef: Floats, covariance: Floats, features: Positions, tested: list[int]
) -> Wald:
    """Test the coefficients of some features; the intercept comes before ``features``."""
    positions = [1 + list(features).index(feature) for feature in tested]
    return distribution_of(fit).wald(coef[positions], covariance[np.ix_(positions, positions)])


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(shown(name) for name in names)


def _notes(fit: Fit, method: Method, n_tests: int) -> list[str]:
    notes = [
        "That an exclusion is valid cannot be proved from data. A large p-value says that the "
        "features tested are compatible with what stays out, not that any of them is a valid "
        "exclusion: what stays out is assumed to be one, and so is the normality of the errors.",
        "A small p-value says that the features tested belong in the prediction equation, or "
        "that what stays out does, or that normality fails.",
        _WORTH["bounded" if fit.family.is_bounded else method],
    ]
    if n_tests > 1:
        notes.append(
            f"These are {n_tests} tests of overlapping sets, and their p-values are not corrected "
            "for that."
        )
    return [*notes, *search_notes(fit, "exclusion_test")]
