"""Other exclusions: features put back or taken out one at a time.

`what_if` uses the two-step estimator on the compressed data, without a pass over the rows.
`inference.exclusion_tests` puts several back while at least one stays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.rows import Positions, Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import probit_of
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.linalg import dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.reference import Reference, reference_of
from heckmanfa.results.reports import BY_CLASSICAL, Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.printable import shown

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
                f"({shown(largest['feature'])}), which moves rho by {largest['rho_shift']:.3g}",
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


def solve_two_step(
    moments: Moments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> TwoStep | str:
    """Fit an assignment; return the reason if that is not possible.

    ``rows`` are needed only for a covariance that is not classical.
    """
    if dependencies(moments.subset(features, imr=False, outcome=False)):
        return "collinear with the other features among the selected rows"
    if not moments.n_selected > len(features) + 2:
        return "too few selected rows"
    try:
        return fit_two_step(moments, probit, features, kind, rows)
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
