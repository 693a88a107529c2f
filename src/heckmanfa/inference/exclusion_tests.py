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

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.profile_likelihood import why_no_interval
from heckmanfa.inference.rows_of_fit import FitRows, read_fit_rows, refit_by_likelihood
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
            units = "Design" if self.reference.design is not None else "Clusters"
            facts.append((units, self.reference.units.removesuffix(" clusters")))
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
    passed: PassedRows,
    features: Sequence[Any] | None,
    method: Method | None,
) -> ExclusionTest:
    """Test excluded features while at least one stays out; see `Heckman.exclusion_test`."""
    if not fit.family.can("two steps"):
        fit.family.require("refits")
    method = method or fit.family.methods[0]
    if method not in ("two-step", "ml"):
        raise InputError(f"method must be 'two-step' or 'ml'; got {quoted(method)}")
    if method == "two-step":
        fit.family.require("two steps")
    refuse_exclusions_of_held_rho(fit, "exclusion_test")
    tests = _sets_to_test(fit, features)
    read = _read(fit, method, passed)
    ratio = fit.family.is_bounded and not why_no_interval(fit)
    rows = []
    with one_blas_thread():
        for tested, out in tests:
            model = _put_back(fit, read, method, sorted([*fit.features, *tested]))
            row = {
                "tested": tuple(fit.spec.feature_names(tested)),
                "stays_out": tuple(fit.spec.feature_names(out)),
                "df": len(tested),
                "df_denominator": np.nan if (df := distribution_of(fit).df) is None else df,
            }
            rows.append(row | _test(fit, model, tested, ratio=ratio))
    columns = ["tested", "stays_out", "statistic", "df", "df_denominator", "p_value", "rho"]
    table = pd.DataFrame(rows, columns=[*columns, "log_likelihood", "note"])
    reference = distribution_of(fit)
    notes = (*_notes(fit, method, len(tests)), *reference.notes(joint=True, others=True))
    return ExclusionTest(method, fit.spec.cov_type, table, notes, reference, ratio)


def _read(fit: Fit, method: Method, passed: PassedRows) -> FitRows | None:
    """Read the rows of the fit; None if none are passed, and none are needed."""
    if any(values is not None for values in passed):
        return read_fit_rows(fit, passed, clusters=True)
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


def _put_back(
    fit: Fit, read: FitRows | None, method: Method, features: list[int]
) -> TwoStep | JointMaximum | str:
    """Fit the model with more features; return the reason if that fails."""
    if method == "ml":
        assert read is not None
        return refit_by_likelihood(fit, read, features)
    if read is None:
        assert fit.probit is not None
        return solve_two_step(fit.moments, fit.probit, features)
    kind = fit.spec.covariance_kind(read.sample.cells)
    return solve_two_step(read.moments, read.probit, features, kind, read.rows)


def _test(
    fit: Fit, model: TwoStep | JointMaximum | str, tested: list[int], *, ratio: bool
) -> dict[str, Any]:
    """Test the features put back into a model, jointly, by Wald or by the likelihood ratio."""
    if isinstance(model, str):
        return {"note": model}
    if ratio and fit.log_likelihood is None:
        return {"note": "the model has no likelihood"}
    two_step = isinstance(model, TwoStep)
    if isinstance(model, TwoStep):
        rho, log_likelihood = float(model.solution.rho), np.nan
        problems = [] if abs(rho) < 1 else ["rho outside (-1, 1)"]
    else:
        rho, log_likelihood, problems = model.rho, model.log_likelihood, _problems(model)
    if ratio:
        test = _likelihood_ratio(fit, log_likelihood, len(tested))
    else:
        # The intercept comes before the features.
        places = [1 + list(model.features).index(feature) for feature in tested]
        covariance = model.covariance[np.ix_(places, places)]
        test = distribution_of(fit).wald(model.coef[places], covariance)
    # What keeps maximum likelihood from a Wald test is a problem of the fit, or of the clusters.
    told = test.note and (ratio or two_step or test.df_denominator is not None)
    return {
        "statistic": test.statistic,
        "p_value": test.p_value,
        "rho": rho,
        "log_likelihood": log_likelihood,
        "note": "; ".join([*([test.note] if told else []), *problems]),
    }


def _likelihood_ratio(fit: Fit, log_likelihood: float, n_tested: int) -> Wald:
    """Compare the log-likelihood with that of the fit."""
    assert fit.log_likelihood is not None
    ratio = 2.0 * (log_likelihood - fit.log_likelihood)
    if ratio < -_ROUNDING:
        lower = "the fit with these features ended at a lower maximum; give a start"
        return Wald(np.nan, n_tested, np.nan, None, lower)
    return Wald(max(ratio, 0.0), n_tested, float(stats.chi2.sf(ratio, n_tested)))


def _problems(maximum: JointMaximum) -> list[str]:
    """Say what is wrong with a fit by maximum likelihood."""
    notes = []
    if not maximum.converged:
        notes.append("maximum likelihood did not converge; do not trust it")
    elif not maximum.information_is_positive:
        notes.append("the information is not positive definite, so there is no covariance")
    elif "boundary" in maximum.doubts:
        notes.append(f"rho is {rho_text(maximum.rho)}, practically one")
    elif "flat" in maximum.doubts:
        notes.append("the likelihood is flat in rho")
    higher = higher_maximum(maximum.log_likelihood, maximum.second_maximum)
    if higher is not None:
        notes.append(
            f"the likelihood has a higher maximum ({higher[0]:.4f}) at rho = {rho_text(higher[1])}"
        )
    return notes


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
