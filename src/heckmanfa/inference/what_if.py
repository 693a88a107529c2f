"""Other exclusions: features put back or taken out one at a time.

`what_if` uses the two-step estimator on the compressed data, without a pass over the rows. A binary
outcome is refitted by maximum likelihood, in its rows. `inference.exclusion_tests` puts several
features back while at least one stays out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions, one_blas_thread
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.rows_of_fit import (
    FitRows,
    probit_of,
    read_fit_rows,
    refit_by_likelihood,
    require_rows,
)
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.likelihood import JointMaximum
from heckmanfa.model.two_step import TwoStep, solve_two_step
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_tests import refuse_exclusions_of_held_rho
from heckmanfa.results.reports import BY_CLASSICAL, Report
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.labels import said
from heckmanfa.text.wording import ONLY_NORMALITY, p_equals

_NO_EXCLUSION = f"no exclusion is left: {ONLY_NORMALITY}"
_FIRST = ["change", "feature", "t", "p_value", "rho", "rho_shift"]
_LAST = ["n_excluded", "most_moved", "most_moved_by", "note"]
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
            equation that holds it (several dummies of a category move as one: p_value is that of
            their joint Wald test, and t is NaN); rho, and rho_shift from the current equation;
            sigma, adjusted_r2, bic (log_likelihood and bic, if the outcome is binary);
            n_excluded, the number of selection features then excluded;
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
            change, feature, term (Intercept, the features, imr, rho, sigma; of these, rho if the
            outcome is binary), before, after, shift, shift_in_se (in current standard errors; a
            two-step rho and sigma have none). The feature itself has no value before it is put
            back, or after it is taken out.
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

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        back = self.changes[self.changes["change"] == "put back"].dropna(subset="p_value")
        if back.empty:
            return []
        if back["t"].notna().all():
            largest = back.iloc[int(back["t"].abs().argmax())]
        else:
            largest = back.iloc[int(back["p_value"].argmin())]
        # The usual level applies, however few the clusters are.
        jointly = bool(np.isnan(largest["t"]))
        wanted = bool(largest["p_value"] < 0.05 if jointly else abs(largest["t"]) > 1.96)
        size = (
            f"smallest {p_equals(largest['p_value'])}"
            if jointly
            else f"largest |t| {abs(largest['t']):.2f}"
        )
        return [
            tell(
                None,
                "what_if",
                "caution" if wanted else "ok",
                f"{size}{BY_CLASSICAL if self.errors_differ else ''} "
                f"({said(str(largest['feature']))}), which moves rho by {largest['rho_shift']:.3g}",
            )
        ]


@dataclass(frozen=True)
class Alternative:
    """The prediction equation with J features, and E estimates of the errors."""

    features: tuple[int, ...]
    estimates: Floats
    """(1 + J + E,) intercept, features, and `fit.Spec.error_terms`"""
    errors: Floats
    """(1 + J + E,) their standard errors; NaN if one has none"""
    covariance: Floats
    """(1 + J, 1 + J) of the intercept and the features"""
    rho: float
    criteria: dict[str, float]
    """what else a table shows of it"""

    @classmethod
    def of_two_step(cls, two_step: TwoStep) -> Alternative:
        """Take the numbers of two-step estimates."""
        solution = two_step.solution
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(np.diag(two_step.covariance)[: len(two_step.coef)])
        return cls(
            two_step.features,
            np.append(two_step.coef, [float(solution.rho), float(solution.sigma)]),
            np.append(errors, [np.nan, np.nan]),
            two_step.covariance[: 1 + len(two_step.features), : 1 + len(two_step.features)],
            float(solution.rho),
            {
                "sigma": float(solution.sigma),
                "adjusted_r2": float(solution.adjusted_r2),
                "bic": float(solution.bic),
            },
        )

    @classmethod
    def of_maximum(cls, maximum: JointMaximum, fit: Fit) -> Alternative:
        """Take the numbers of maximum likelihood."""
        j, features = len(maximum.features), maximum.features
        covariance = maximum.reported_covariance()
        errors = np.sqrt(np.diag(covariance))
        _, bic = maximum.criteria(fit.n_obs)
        own = maximum.values  # noqa: PD011
        terms = {"imr": maximum.rho * maximum.sigma, "sigma": maximum.sigma} | own
        ends = [terms[term] for term in fit.spec.error_terms]
        return cls(
            features,
            np.append(maximum.coef, ends),
            errors[[*range(1 + j), *range(-len(ends), 0)]],
            covariance[: 1 + j, : 1 + j],
            maximum.rho,
            {"log_likelihood": maximum.log_likelihood, "bic": bic},
        )


Solve = Callable[[list[int]], Alternative | str]
"""fits an assignment; returns the reason if that is not possible"""


def what_if(fit: Fit, passed: PassedRows) -> WhatIf:
    """Put each excluded feature back, and take each predicting one out; see `Heckman.what_if`."""
    refuse_exclusions_of_held_rho(fit, "what_if")
    excluded_features(fit)
    two_steps = "two steps" in fit.family.supports
    if two_steps and passed.X is None:
        return _by_two_step(fit, None)
    if not two_steps:
        fit.family.require("refits")
    require_rows(fit, passed, "what_if")
    read = read_fit_rows(fit, passed, clusters=True)
    return _by_two_step(fit, read) if two_steps else _by_likelihood(fit, read)


def _by_two_step(fit: Fit, read: FitRows | None) -> WhatIf:
    moments, probit = fit.moments, fit.probit
    assert probit is not None
    kind, rows = CLASSICAL, None
    if read is not None:
        kind, rows = fit.spec.covariance_kind(read.sample.cells), read.rows

    def solve(features: list[int]) -> Alternative | str:
        two_step = solve_two_step(moments, probit, features, kind, rows)
        return two_step if isinstance(two_step, str) else Alternative.of_two_step(two_step)

    base = solve(fit.features)
    if isinstance(base, str):
        raise _no_base(base)
    facts = (
        ("Two-step rho", f"{base.rho:.4g}"),
        ("Two-step sigma", f"{base.criteria['sigma']:.4g}"),
    )
    return _what_if(fit, base, solve, facts, classical=rows is None)


def _by_likelihood(fit: Fit, read: FitRows) -> WhatIf:
    def solve(features: list[int]) -> Alternative | str:
        maximum = refit_by_likelihood(fit, read, features, alone=True)
        return maximum if isinstance(maximum, str) else Alternative.of_maximum(maximum, fit)

    with one_blas_thread():
        base = solve(fit.features)
        if isinstance(base, str):
            raise _no_base(base)
        facts = (
            ("rho", f"{base.rho:.4g}"),
            ("Log-likelihood", f"{base.criteria['log_likelihood']:.4f}"),
        )
        return _what_if(fit, base, solve, facts)


def _no_base(why: str) -> NotIdentifiedError:
    return NotIdentifiedError(
        f"other exclusions cannot be compared with the model, which cannot be fitted again: {why}"
    )


def _what_if(
    fit: Fit,
    base: Alternative,
    solve: Solve,
    facts: tuple[tuple[str, str], ...],
    *,
    classical: bool = False,
) -> WhatIf:
    """Compare the current equation with those that differ from it in one feature.

    ``classical`` is whether standard errors are, whatever those of the model are.
    """
    differs = classical and fit.spec.errors_differ
    excluded, moments, chosen = excluded_features(fit), fit.moments, fit.features
    probit, reference = moments.probit, distribution_of(fit)
    assert probit is not None
    out = [feature for feature in moments.columns if feature not in chosen]
    alternatives = [("put back", unit, sorted([*chosen, *unit])) for unit in units_of(fit, out)]
    notes, inside = [], units_of(fit, chosen)
    if len(inside) > 1:
        alternatives += [
            ("take out", unit, [other for other in chosen if other not in unit]) for unit in inside
        ]
    elif inside:
        notes.append(
            f"{_name(fit, inside[0])} is the only feature that predicts, and is not taken out."
        )
    changes, terms = [], [pd.DataFrame(columns=_TERMS)]
    for change, unit, features in alternatives:
        other = solve(features)
        n_excluded = len(units_of(fit, sorted({*probit.features} - {*features})))
        row: dict[str, Any] = {"change": change, "feature": _name(fit, unit)}
        if isinstance(other, Alternative):
            reasons = [] if abs(other.rho) < 1 else ["rho outside (-1, 1)"]
            long = _side_by_side(base, other, fit)
            terms.append(long.assign(**row))
            row |= _summary(base, other, unit, long, fit)
        else:
            reasons = [other]
        reasons += [] if n_excluded else [_NO_EXCLUSION]
        changes.append(row | {"n_excluded": n_excluded, "note": "; ".join(reasons)})
    facts = (
        ("Features that predict", str(len(inside))),
        ("Selection features excluded", str(len(units_of(fit, excluded)))),
        *facts,
    )
    if any(len(unit) > 1 for _, unit, _ in alternatives):
        notes.append("The dummies of a category move as one; their p-value is of a joint test.")
    return WhatIf(
        facts=facts,
        changes=pd.DataFrame(changes, columns=[*_FIRST, *base.criteria, *_LAST]),
        terms=pd.concat(terms[1:] or terms, ignore_index=True)[_TERMS],
        notes=(*notes, *_what_if_notes(fit, differs), *reference.notes(others=True)),
        errors_differ=differs,
    )


def excluded_features(fit: Fit) -> list[int]:
    """Return the positions in X of selection features that do not predict."""
    probit = probit_of(fit, "no feature is excluded from anything")
    return [feature for feature in probit.features if not fit.support[feature]]


def units_of(fit: Fit, columns: Positions) -> list[list[int]]:
    """Return what can move by itself: a feature, or the dummies of a category together."""
    together = (*fit.spec.groups, *fit.spec.columns.groups)
    groups = {column: group for group in together for column in group}
    units = dict.fromkeys(groups.get(column, (column,)) for column in columns)
    return [[column for column in unit if column in columns] for unit in units]


def _name(fit: Fit, unit: list[int]) -> str:
    """Name a feature; several dummies have the name of their column."""
    if len(unit) == 1:
        return fit.labels[unit[0]]
    named = fit.spec.feature_names(unit)
    return ", ".join(name if isinstance(name, str) else f"x{name}" for name in named)


def _side_by_side(base: Alternative, other: Alternative, fit: Fit) -> pd.DataFrame:
    """Compare the terms of both equations; features are matched by position in X."""
    features, ends = sorted({*base.features, *other.features}), fit.spec.error_terms
    size = 1 + len(features) + len(ends)
    before, after, error = (np.full(size, np.nan) for _ in range(3))
    for model, values in ((base, before), (other, after)):
        values[_rows_of_terms(model, features, len(ends))] = model.estimates
    error[_rows_of_terms(base, features, len(ends))] = base.errors
    # What is infinite in both, as degrees of freedom may be, has not moved.
    shift = np.subtract(after, before, out=np.zeros(size), where=after != before)
    return pd.DataFrame(
        {
            "term": ["Intercept", *(fit.labels[feature] for feature in features), *ends],
            "before": before,
            "after": after,
            "shift": shift,
            "shift_in_se": shift / error,
        }
    )


def _rows_of_terms(model: Alternative, features: list[int], n_ends: int) -> list[int]:
    last = 1 + len(features)
    own = (1 + features.index(feature) for feature in model.features)
    return [0, *own, *range(last, last + n_ends)]


def _summary(
    base: Alternative, other: Alternative, unit: list[int], terms: pd.DataFrame, fit: Fit
) -> dict[str, Any]:
    """Return the numbers of a change; the test is from the equation that holds the feature."""
    holder, reference = base if unit[0] in base.features else other, distribution_of(fit)
    positions = [1 + holder.features.index(feature) for feature in unit]
    if len(unit) == 1:
        with np.errstate(invalid="ignore"):
            t = float(holder.estimates[positions[0]] / holder.errors[positions[0]])
        p_value = float(reference.p_value(t))
    else:
        t, covariance = np.nan, holder.covariance[np.ix_(positions, positions)]
        p_value = reference.wald(holder.estimates[positions], covariance).p_value
    moves = terms.iloc[1 : -len(fit.spec.error_terms)].dropna()
    furthest = moves.iloc[int(moves["shift_in_se"].abs().argmax())] if len(moves) else None
    return {
        "t": t,
        "p_value": p_value,
        "rho": other.rho,
        "rho_shift": other.rho - base.rho,
        **other.criteria,
        "most_moved": "" if furthest is None else furthest["term"],
        "most_moved_by": np.nan if furthest is None else furthest["shift_in_se"],
    }


def _what_if_notes(fit: Fit, differs: bool) -> list[str]:
    notes = [
        "most moved: the other feature whose coefficient moves the furthest, in its current "
        "standard errors.",
        "That an exclusion is valid cannot be proved from data. A small t of a feature put back "
        "does not do so: it rests on the other exclusions being valid and on the normality of "
        "the errors, and on normality alone if no other exclusion is left.",
    ]
    if "two steps" not in fit.family.supports:
        notes.append("Every change is a fit by maximum likelihood to the same rows.")
        return [*notes, *search_notes(fit, "what_if")]
    if fit.spec.method == "ml":
        notes.append(
            "What-if uses the two-step estimator, also for the current equation, and not the "
            "maximum likelihood of the model."
        )
    if differs:
        notes.append(
            "Standard errors are classical, unlike those of the model: they treat rows as "
            "independent and equally weighted. Those of the model need the rows: what_if(X, y)."
        )
    return [*notes, *search_notes(fit, "what_if")]
