"""Other exclusions: features put back or taken out one at a time, and tests of several.

`what_if` uses the two-step estimator on the compressed data, without a pass over the rows.
`exclusion_test` puts features back while at least one stays out; it uses maximum likelihood, which
reads the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.rows import Positions, one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import FitRows, probit_of, read_fit_rows
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.likelihood import fit_likelihood, higher_maximum, rho_text
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.linalg import dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.reference import Reference, reference_of
from heckmanfa.results.reports import BY_CLASSICAL, Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import p_equals

_NO_EXCLUSION = "no exclusion is left: only normality identifies it"
_CHANGES = [
    *("change", "feature", "t", "p_value", "rho", "rho_shift", "sigma", "adjusted_r2", "bic"),
    *("n_excluded", "most_moved", "most_moved_by", "note"),
]
_TERMS = ["change", "feature", "term", "before", "after", "shift", "shift_in_se"]


@dataclass(frozen=True, repr=False, eq=False)
class WhatIf(Report):
    """What other exclusions would have given; prints, and shows as HTML in a notebook."""

    facts: tuple[tuple[str, str], ...]
    changes: pd.DataFrame
    """as `tidy` gives it"""
    terms: pd.DataFrame
    """as `coefficients` gives it"""
    notes: tuple[str, ...]
    errors_differ: bool = False
    """whether the standard errors of the model are not classical, unlike those here"""

    def tidy(self) -> pd.DataFrame:
        """Return one row for each change to the prediction equation.

        Returns
        -------
        DataFrame
            change ("put back" or "take out"); feature; t and p_value of that feature, in the
            equation that holds it; rho, and rho_shift from the current equation; sigma,
            adjusted_r2, bic; n_excluded, the number of selection features then excluded;
            most_moved, the other feature whose coefficient moves the furthest, and
            most_moved_by, how far, in its current standard errors; note. Numbers are NaN if the
            change gives no model, and the note says why.
        """
        return self.changes.copy()

    def coefficients(self) -> pd.DataFrame:
        """Return one row for each change and each term of the prediction equation.

        Returns
        -------
        DataFrame
            change, feature, term (Intercept, the features, imr, rho, sigma), before, after,
            shift, shift_in_se (in current standard errors; rho and sigma have none). The
            feature itself has no value before it is put back, or after it is taken out.
        """
        return self.terms.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        columns = ["feature", "t", "p_value", "rho", "rho_shift", "most_moved", "most_moved_by"]
        parts = [Section("What if the prediction equation held other features", facts=self.facts)]
        for change, title in (
            ("put back", "Put back into the prediction equation, one at a time"),
            ("take out", "Taken out of the prediction equation, one at a time"),
        ):
            rows = self.changes[self.changes["change"] == change]
            if len(rows):
                noted = rows[rows["note"] != ""]
                notes = [f"{row.feature}: {row.note}." for row in noted.itertuples()]
                parts.append(Section(title, table=rows[columns], notes=tuple(notes)))
        return [*parts, Section(notes=self.notes)]

    def findings(self) -> list[Finding]:
        """Return its findings for the diagnostics of the model."""
        back = self.changes[(self.changes["change"] == "put back") & self.changes["t"].notna()]
        if back.empty:
            return []
        largest = back.iloc[int(back["t"].abs().argmax())]
        # The usual level applies, however few the clusters are.
        wanted = bool(abs(largest["t"]) > 1.96)
        return [
            Finding(
                "what_if",
                "excluded features put back",
                f"largest |t| {abs(largest['t']):.2f}{BY_CLASSICAL if self.errors_differ else ''} "
                f"({largest['feature']}), which moves rho by {largest['rho_shift']:.3g}",
                "caution" if wanted else "ok",
                "It may belong in the prediction equation; see what_if()."
                if wanted
                else "None is significant, which proves no exclusion valid. See what_if().",
            )
        ]


def what_if(fit: Fit) -> WhatIf:
    """Put each excluded feature back, and take each predicting one out; see `Heckman.what_if`."""
    excluded, moments, chosen = excluded_features(fit), fit.moments, fit.features
    probit = moments.probit
    assert probit is not None
    reference = reference_of(fit)
    base = solve_two_step(moments, probit, chosen)
    assert isinstance(base, TwoStep)
    out = [feature for feature in moments.columns if feature not in chosen]
    alternatives = [("put back", feature, sorted([*chosen, feature])) for feature in out]
    notes = []
    if len(chosen) > 1:
        alternatives += [
            ("take out", feature, [other for other in chosen if other != feature])
            for feature in chosen
        ]
    elif chosen:
        notes.append(
            f"{fit.labels[chosen[0]]} is the only feature that predicts, and is not taken out."
        )
    changes, terms = [], [pd.DataFrame(columns=_TERMS)]
    for change, feature, features in alternatives:
        other = solve_two_step(moments, probit, features)
        n_excluded = len(set(probit.features) - set(features))
        row: dict[str, Any] = {"change": change, "feature": fit.labels[feature]}
        if isinstance(other, TwoStep):
            reasons = [] if abs(other.solution.rho) < 1 else ["rho outside (-1, 1)"]
            long = _side_by_side(base, other, fit.labels)
            terms.append(long.assign(**row))
            row |= _summary(base, other, feature, long, reference)
        else:
            reasons = [other]
        reasons += [] if n_excluded else [_NO_EXCLUSION]
        changes.append(row | {"n_excluded": n_excluded, "note": "; ".join(reasons)})
    facts = (
        ("Features that predict", str(len(chosen))),
        ("Selection features excluded", str(len(excluded))),
        ("Two-step rho", f"{float(base.solution.rho):.4g}"),
        ("Two-step sigma", f"{float(base.solution.sigma):.4g}"),
    )
    return WhatIf(
        facts=facts,
        changes=pd.DataFrame(changes, columns=_CHANGES),
        terms=pd.concat(terms[1:] or terms, ignore_index=True)[_TERMS],
        notes=(*notes, *_what_if_notes(fit), *reference.notes()),
        errors_differ=fit.spec.errors_differ,
    )


def excluded_features(fit: Fit) -> list[int]:
    """Return the positions in X of selection features that do not predict."""
    probit = probit_of(fit, "no feature is excluded from anything")
    return [feature for feature in probit.features if not fit.support[feature]]


def solve_two_step(moments: Moments, probit: Probit, features: Positions) -> TwoStep | str:
    """Fit an assignment from the compressed data; return the reason if that is not possible."""
    if dependencies(moments.subset(features, imr=False, outcome=False)):
        return "collinear with the other features among the selected rows"
    if not moments.n_selected > len(features) + 2:
        return "too few selected rows"
    try:
        return fit_two_step(moments, probit, features, CLASSICAL)
    except NotIdentifiedError:
        return "the inverse Mills ratio is collinear with the features"


def _side_by_side(base: TwoStep, other: TwoStep, names: Sequence[str]) -> pd.DataFrame:
    """Compare the terms of both equations; features are matched by position in X."""
    features = sorted({*base.features, *other.features})
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(base.covariance)[: len(base.coef)])
    size = len(features) + 4
    before, after, error = (np.full(size, np.nan) for _ in range(3))
    for fit, values in ((base, before), (other, after)):
        values[_rows_of_terms(fit, features)] = fit.coef
        values[-2:] = float(fit.solution.rho), float(fit.solution.sigma)
    error[_rows_of_terms(base, features)] = errors
    return pd.DataFrame(
        {
            "term": ["Intercept", *(names[feature] for feature in features), "imr", "rho", "sigma"],
            "before": before,
            "after": after,
            "shift": after - before,
            "shift_in_se": (after - before) / error,
        }
    )


def _rows_of_terms(fit: TwoStep, features: list[int]) -> list[int]:
    return [0, *(1 + features.index(feature) for feature in fit.features), len(features) + 1]


def _summary(
    base: TwoStep, other: TwoStep, feature: int, terms: pd.DataFrame, reference: Reference
) -> dict[str, Any]:
    """Return the numbers of a change; the t value is from the equation that holds the feature."""
    holder = base if feature in base.features else other
    position = 1 + holder.features.index(feature)
    with np.errstate(invalid="ignore"):
        t = float(holder.coef[position] / np.sqrt(holder.covariance[position, position]))
    moves = terms.iloc[1:-3].dropna()
    furthest = moves.iloc[int(moves["shift_in_se"].abs().argmax())] if len(moves) else None
    solution = other.solution
    return {
        "t": t,
        "p_value": float(reference.p_value(t)),
        "rho": float(solution.rho),
        "rho_shift": float(solution.rho) - float(base.solution.rho),
        "sigma": float(solution.sigma),
        "adjusted_r2": float(solution.adjusted_r2),
        "bic": float(solution.bic),
        "most_moved": "" if furthest is None else furthest["term"],
        "most_moved_by": np.nan if furthest is None else furthest["shift_in_se"],
    }


def _what_if_notes(fit: Fit) -> list[str]:
    notes = [
        "most moved: the other feature whose coefficient moves the furthest, in its current "
        "standard errors.",
        "That an exclusion is valid cannot be proved from data. A small t of a feature put back "
        "does not do so: it rests on the other exclusions being valid and on the normality of "
        "the errors, and on normality alone if no other exclusion is left.",
    ]
    if fit.spec.method == "ml":
        notes.append(
            "What-if uses the two-step estimator, also for the current equation, and not the "
            "maximum likelihood of the model."
        )
    if fit.spec.errors_differ:
        notes.append(
            "Standard errors are classical, unlike those of the model: they treat rows as "
            "independent and equally weighted."
        )
    return [*notes, *search_notes(fit, "what_if")]


@dataclass(frozen=True, repr=False, eq=False)
class ExclusionTest(Report):
    """Whether spare exclusions agree with the others; prints, and shows as HTML in a notebook."""

    cov_type: str | None
    tests: pd.DataFrame
    """as `tidy` gives it"""
    notes: tuple[str, ...]
    reference: Reference
    """the distribution of the statistics"""

    def tidy(self) -> pd.DataFrame:
        """Return one row for each test.

        Returns
        -------
        DataFrame
            tested (the features put back), stays_out (what identifies the model), statistic, df
            and p_value of the joint Wald test (chi-squared; with a cluster covariance F, whose
            second degrees of freedom are df_denominator), rho and log_likelihood of the model
            with the features put back, and a note about problems of its fit.
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

    def findings(self) -> list[Finding]:
        """Return its findings for the diagnostics of the model."""
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
                else "The exclusions do not contradict one another, which proves none of them.",
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
    """Test excluded features while at least one stays out; see `Heckman.exclusion_test`."""
    tests = _sets_to_test(fit, features)
    read = read_fit_rows(fit, X, y, selected, sample_weight, groups, clusters=True)
    with one_blas_thread():
        rows = [_wald(fit, read, tested, out) for tested, out in tests]
    columns = ["tested", "stays_out", "statistic", "df", "df_denominator", "p_value", "rho"]
    table = pd.DataFrame(rows, columns=[*columns, "log_likelihood", "note"])
    reference = reference_of(fit)
    notes = (*_exclusion_notes(fit, len(tests)), *reference.notes(joint=True))
    return ExclusionTest(fit.spec.cov_type, table, notes, reference)


def _sets_to_test(fit: Fit, features: Sequence[Any] | None) -> list[tuple[list[int], list[int]]]:
    """Return the features put back and those that stay out in each test, as positions in X."""
    excluded = excluded_features(fit)
    listed = _listed(fit.spec.feature_names(excluded))
    if len(excluded) < 2:
        have = f"{listed} alone is" if excluded else "no selection feature is"
        raise InputError(
            f"{have} excluded from the prediction equation: with an excluded feature put back, "
            "at least one other must stay out, or only normality would identify the model. No "
            "exclusion can be tested here."
        )
    if features is None:
        return [([other for other in excluded if other != out], [out]) for out in excluded]
    columns = fit.spec.columns
    table = FeatureTable(columns.names, (0, fit.n_features), None, columns.labels_given)
    tested = resolve(table, features, "features")
    if not tested:
        raise InputError(f"features is empty; the excluded features are {listed}")
    for feature in tested:
        if feature not in excluded:
            raise InputError(
                f"{quoted(table.label(feature))} is not an excluded feature (in the selection "
                f"equation, and not in the prediction equation); these are {listed}"
            )
    out = [feature for feature in excluded if feature not in tested]
    if not out:
        raise InputError(
            f"features names every excluded feature ({listed}): at least one must stay out, or "
            "only normality would identify the model"
        )
    return [(tested, out)]


def _wald(fit: Fit, read: FitRows, tested: list[int], out: list[int]) -> dict[str, Any]:
    """Fit the model with some features put back, and test their coefficients."""
    row: dict[str, Any] = {
        "tested": tuple(fit.spec.feature_names(tested)),
        "stays_out": tuple(fit.spec.feature_names(out)),
        "df": len(tested),
        "df_denominator": np.nan if fit.n_clusters is None else fit.n_clusters - 1,
        "note": "",
    }
    start = solve_two_step(read.moments, read.probit, sorted([*fit.features, *tested]))
    if not isinstance(start, TwoStep):
        return row | {"note": start}
    kind = fit.spec.covariance_kind(read.sample.n_groups)
    # Start from the rho of the model's own start, so both climb the same maximum.
    begin = elsewhere(read_start(fit.spec.start, fit.spec.method))
    found = fit_likelihood(read.moments, read.probit, start, kind, read.rows, begin)
    positions = [1 + start.features.index(feature) for feature in tested]
    covariance = found.covariance[np.ix_(positions, positions)]
    test = reference_of(fit).wald(found.coef[positions], covariance)
    notes = []
    if test.df_denominator is not None and test.note:
        notes.append(test.note)
    if not found.converged:
        notes.append("maximum likelihood did not converge; do not trust it")
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
    return ", ".join(shown(name) for name in names)


def _exclusion_notes(fit: Fit, n_tests: int) -> list[str]:
    notes = [
        "That an exclusion is valid cannot be proved from data. A large p-value says that the "
        "features tested are compatible with what stays out, not that any of them is a valid "
        "exclusion: what stays out is assumed to be one, and so is the normality of the errors.",
        "A small p-value says that the features tested belong in the prediction equation, or "
        "that what stays out does, or that normality fails. If what stays out hardly drives "
        "selection, it says less: the test then rejects valid exclusions too often.",
    ]
    if n_tests > 1:
        notes.append(
            f"These are {n_tests} tests of overlapping sets, and their p-values are not corrected "
            "for that."
        )
    return [*notes, *search_notes(fit, "exclusion_test")]
