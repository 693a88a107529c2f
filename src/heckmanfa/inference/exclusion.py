"""Tests of exclusions that are more than one: some are put back while at least one stays out.

By maximum likelihood, which reads the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.features import FeatureTable, names_or_positions, resolve
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import Again, read_again
from heckmanfa.inference.what_if import predicting, probit_of, solve_two_step
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.likelihood import fit_likelihood, higher_maximum, rho_text
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.two_step import TwoStep
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.reference import Reference, reference_of
from heckmanfa.results.reports import Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.numbers import p_equals
from heckmanfa.text.printable import quoted, shown


@dataclass(frozen=True, repr=False, eq=False)
class ExclusionTest(Report):
    """Whether spare exclusions agree with the others; prints, and shows as HTML in a notebook."""

    cov_type: str | None
    tests: pd.DataFrame
    """as `tidy` gives it"""
    notes: tuple[str, ...]
    reference: Reference
    """what the statistics are compared with"""

    def tidy(self) -> pd.DataFrame:
        """Return one row for each test.

        Returns
        -------
        DataFrame
            tested (the features put back), stays_out (what identifies the model), statistic, df
            and p_value of the joint Wald test (chi-squared; with a cluster covariance F, whose
            second degrees of freedom are df_denominator), rho and log_likelihood of the model
            with the features put back, and a note where there is something to say about its fit.
        """
        return self.tests.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [
            ("Estimates", "maximum likelihood"),
            ("Covariance", self.cov_type or "classical"),
        ]
        if self.reference.df is not None:
            facts.append(("Clusters", f"{self.reference.n_clusters:,}"))
            facts.append(("Statistic", f"F(df, {self.reference.df})"))
        table = self.tests[["stays_out", "statistic", "df", "p_value", "rho"]]
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

    def findings(self) -> list[Finding]:
        """Return what the diagnostics of the model should say of it."""
        lowest = self.tests.sort_values("p_value").iloc[0]
        rejected = bool(lowest["p_value"] < 0.05)
        return [
            Finding(
                "exclusion_test",
                "joint test of exclusions",
                f"smallest {p_equals(lowest['p_value'])}, with {_listed(lowest['stays_out'])} out",
                "caution" if rejected else "ok",
                "Some exclusions contradict others, or normality fails."
                if rejected
                else "No contradiction among the exclusions is found; that proves none of them.",
            )
        ]


def exclusion_test(
    fit: Fit,
    X: Any,
    y: Any,
    features: Sequence[Any] | None,
    *,
    selected: Any,
    sample_weight: Any,
    groups: Any,
) -> ExclusionTest:
    """Test excluded features while at least one stays out; see `Heckman.exclusion_test`.

    Parameters
    ----------
    fit : Fit
        Fitted.
    X, y, selected, sample_weight, groups
        As they were passed to `Heckman.fit`.
    features : sequence of str or int, or None
        Excluded features to put back; None lets each stay out in turn.

    Returns
    -------
    ExclusionTest
    """
    tests = _sets_to_test(fit, features)
    again = read_again(
        fit,
        X,
        y,
        selected=selected,
        sample_weight=sample_weight,
        groups=groups,
        clusters=True,
    )
    with one_blas_thread():
        rows = [_wald(fit, again, tested, out) for tested, out in tests]
    columns = ["tested", "stays_out", "statistic", "df", "df_denominator", "p_value", "rho"]
    table = pd.DataFrame(rows, columns=[*columns, "log_likelihood", "note"])
    reference = reference_of(fit)
    notes = (*_exclusion_notes(fit, len(tests)), *reference.notes(joint=True))
    return ExclusionTest(fit.spec.cov_type, table, notes, reference)


def _sets_to_test(fit: Fit, features: Sequence[Any] | None) -> list[tuple[list[int], list[int]]]:
    """Settle what is put back and what stays out, as positions in X."""
    excluded = [one for one in probit_of(fit).features if not fit.support[one]]
    listed = _listed(fit.spec.feature_names(excluded))
    if len(excluded) < 2:
        have = f"{listed} alone is" if excluded else "no selection feature is"
        raise InputError(
            f"{have} excluded from the prediction equation: with an excluded feature put back, "
            "at least one other must stay out, or nothing but normality would identify the "
            "model. No exclusion can be tested here."
        )
    if features is None:
        return [([one for one in excluded if one != out], [out]) for out in excluded]
    columns = fit.spec.columns
    table = FeatureTable(columns.names, (0, fit.n_features), None, columns.labels_given)
    tested = resolve(table, features, "features")
    if not tested:
        raise InputError(f"features is empty; the excluded features are {listed}")
    for one in tested:
        if one not in excluded:
            raise InputError(
                f"{quoted(table.label(one))} is not an excluded feature (in the selection "
                "equation, and "
                f"not in the prediction equation); these are {listed}"
            )
    out = [one for one in excluded if one not in tested]
    if not out:
        raise InputError(
            f"features names every excluded feature ({listed}): at least one must stay out, or "
            "nothing but normality would identify the model"
        )
    return [(tested, out)]


def _wald(fit: Fit, again: Again, tested: list[int], out: list[int]) -> dict[str, Any]:
    """Fit the model with some features put back, and test their coefficients."""
    probit, rows = again.selection.probit, again.selection.rows
    names = again.table.names
    row: dict[str, Any] = {
        "tested": tuple(names_or_positions(names, tested)),
        "stays_out": tuple(names_or_positions(names, out)),
        "df": len(tested),
        "df_denominator": np.nan if fit.n_clusters is None else fit.n_clusters - 1,
        "note": "",
    }
    start = solve_two_step(again.moments, probit, sorted([*predicting(fit), *tested]))
    if not isinstance(start, TwoStep):
        return row | {"note": start}
    kind = CovarianceKind(
        fit.spec.cov_type or "classical", fit.spec.weight_kind == "sampling", again.sample.n_groups
    )
    # From the rho of the model's own start, so that both climb the same maximum.
    begin = elsewhere(read_start(fit.spec.start, fit.spec.method))
    found = fit_likelihood(again.moments, probit, start, kind, rows, begin)
    places = [1 + start.features.index(one) for one in tested]
    covariance = found.covariance[np.ix_(places, places)]
    test = reference_of(fit).wald(found.coef[places], covariance)
    notes = []
    if test.df_denominator is not None and test.note:
        notes.append(test.note)
    if not found.converged:
        notes.append("maximum likelihood did not converge, and is not to be trusted")
    elif not found.information_is_positive:
        notes.append("the information is not positive definite, so there is no covariance")
    higher = higher_maximum(found.log_likelihood, found.second_maximum)
    if higher is not None:
        notes.append(
            f"the likelihood has a higher maximum ({higher[0]:.4f}) at rho = {rho_text(higher[1])}"
        )
    return row | {
        "statistic": test.statistic,
        "p_value": test.p_value,
        "rho": found.rho,
        "log_likelihood": found.log_likelihood,
        "note": "; ".join(notes),
    }


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(shown(one) for one in names)


def _exclusion_notes(fit: Fit, n_tests: int) -> list[str]:
    notes = [
        "That an exclusion is valid cannot be proved from data. A large p-value says that the "
        "features tested are compatible with what stays out, not that any of them is a valid "
        "exclusion: what stays out is assumed to be one, and so is the normality of the errors.",
        "A small p-value says that the features tested belong in the prediction equation, or "
        "that what stays out does, or that normality fails. Where what stays out hardly "
        "drives selection, it says less: the test then rejects valid exclusions too often.",
    ]
    if n_tests > 1:
        notes.append(
            f"These are {n_tests} tests of overlapping sets, and their p-values are not corrected "
            "for that."
        )
    return [*notes, *search_notes(fit, "exclusion_test")]
