"""The search report, and the chances of features and the correction behind a search or average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights, weights_of
from heckmanfa.results.average_tables import (
    ALWAYS,
    UNSURE,
    null_share,
    selection_role,
    shares_frame,
    unit_names,
    units_of,
)
from heckmanfa.results.catalogue import sentences_of
from heckmanfa.results.document import Section
from heckmanfa.results.judgement import VerdictKind, judgement_of
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import AGREE, is_cut_short, refit_pairs
from heckmanfa.results.weight_facts import (
    about,
    assignments,
    half,
    kinds_fact,
    left_out_facts,
    stand_in_sentence,
)
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import WEIGHT_CRITERIA, WeightCriterion
from heckmanfa.search.goal import KEPT, NEARLY
from heckmanfa.search.searched import Search
from heckmanfa.text.chances import BY, CHANCES_BY
from heckmanfa.text.wording import CRITERIA, number, share_text, window_text

_RUNNER_UPS = 10
# The runner-ups are in the report itself.
_NOTES = (
    *("search", "search_ignored", "honest", "honest_target", "honest_failures"),
    *("honest_and_all_rows", "window", "honest_window", "outside_window", "search_ended"),
    *("trained_on_sample", "adjusted_r2"),
)
_APPROXIMATED = (
    "Weights follow the likelihood's quadratic approximation at the model of all candidates."
)


@dataclass(frozen=True, repr=False, eq=False)
class SearchReport(Report):
    """How prediction features were found; prints in words, shows as HTML in a notebook."""

    criterion: str
    rho_range: tuple[float, float] | None
    n_assignments: int
    """distinct assignments evaluated"""
    n_possible: int
    """possible assignments"""
    n_in_range: int
    """assignments evaluated with rho-hat in the window"""
    share_in_range: float
    optimal: bool | None
    gap: float | None
    tolerance: float
    """how much worse in the criterion counts as nearly as good"""
    n_near: int
    """assignments nearly as good, the best among them"""
    near_is_cut: bool
    """whether there may be more of them than were kept"""
    runner_ups: pd.DataFrame
    """the best assignments in the window: features, n_features, rho, adjusted_r2, aic, bic,
    ebic, and corrected_bic if it is the criterion; of a binary outcome log_likelihood in place of
    adjusted_r2, and the rank by the approximation"""
    spread: pd.DataFrame
    """rho, the coefficient of lambda and each feature's coefficient among those nearly as good:
    share (of assignments that hold it), chosen, low, high; over those that hold the feature"""
    notes: tuple[str, ...]
    weights: AssignmentWeights | None = None
    """how the weight is spread over all assignments; None if that is not known"""
    shares: pd.DataFrame | None = None
    """the share of weight that holds each feature or group (aic, bic, ebic), and its role"""
    selection_shares: pd.DataFrame | None = None
    """likewise in the selection equation, if that was searched as well"""
    weight_sections: tuple[Section, ...] = ()
    refit_facts: tuple[tuple[str, str], ...] = ()
    """what is proven of a quadratic approximation, and what exact refits say; empty without one"""

    def _facts(self) -> list[tuple[str, str]]:
        window = "none" if self.rho_range is None else window_text(self.rho_range)
        facts = [
            ("Criterion", CRITERIA[self.criterion]),
            ("Window of rho", window),
            ("Assignments evaluated", f"{self.n_assignments:,} of {self.n_possible:,}"),
        ]
        if self.rho_range is not None:
            share = f"{100 * self.share_in_range:.3g}%"
            facts.append(("In the window", f"{self.n_in_range:,} ({share})"))
        facts += self.refit_facts
        if self.optimal is not None and not self.refit_facts:
            better = f"no; one better by {number(self.gap or 0.0, 3)} may exist"
            facts.append(("Proven to be the best", "yes" if self.optimal else better))
        more = " or more" if self.near_is_cut else ""
        facts.append((f"Within {self.tolerance:g} of the best", f"{self.n_near:,}{more}"))
        return facts

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        among = Section(notes=self.notes)
        if self.n_near > 1:
            title = f"Among the {self.n_near:,} assignments within {self.tolerance:g}"
            among = Section(title, table=self.spread, notes=self.notes)
        return [
            Section(facts=tuple(self._facts())),
            Section("The best assignments", table=self.runner_ups),
            *self.weight_sections,
            among,
        ]


def report_search(fit: Fit, tolerance: float | None) -> SearchReport:
    """Report on a fitted search; see `HeckmanFA.search_report`."""
    assert fit.search is not None
    search = fit.search.result
    assert search is not None
    if tolerance is None:
        tolerance = search.tolerance
    if tolerance is None:
        tolerance = NEARLY[search.goal.criterion]
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise InputError(f"tolerance must be a number of at least 0; got {tolerance!r}")
    if search.tolerance is not None and tolerance > search.tolerance:
        raise InputError(
            f"the search kept only assignments within {search.tolerance:g} of the best; fit with "
            f"tolerance={tolerance:g} to see those within {tolerance:g}"
        )
    near = search.nearly_best(tolerance)
    frame = search.to_frame(fit.spec.feature_names)
    weights = weights_of(fit)
    known = None if isinstance(weights, str) else weights
    linear_ml = fit.spec.method == "ml" and search.refits is None
    two_step = ["The figures here are two-step estimates."] if linear_ml else []
    return SearchReport(
        criterion=search.goal.criterion,
        rho_range=search.goal.rho_range,
        n_assignments=search.n_assignments,
        n_possible=fit.search.n_possible,
        n_in_range=search.n_in_range,
        share_in_range=search.n_in_range / search.n_assignments,
        optimal=search.optimal,
        gap=search.gap,
        tolerance=tolerance,
        n_near=near,
        near_is_cut=near == KEPT
        or bool(search.early_stop)
        or is_cut_short(fit.search, search, near),
        runner_ups=frame[search.in_range]
        .head(_RUNNER_UPS)
        .drop(columns="in_range", errors="ignore"),
        spread=_spread(fit, search, near),
        notes=(*sentences_of(fit, *_NOTES), *two_step),
        weights=known,
        shares=None if known is None else shares_frame(fit, known.mixture, known.units),
        selection_shares=None
        if known is None or not known.mixture.searches_both
        else selection_frame(fit, known.mixture),
        weight_sections=() if weights is None else tuple(weight_sections(fit, weights)),
        refit_facts=() if search.refits is None else tuple(refit_pairs(search, search.refits)),
    )


def _spread(fit: Fit, search: Search, near: int) -> pd.DataFrame:
    """Return how far rho and the coefficients vary among the assignments nearly as good."""
    masks = search.masks[:near]
    if search.refits is None:
        solved = fit.moments.solve(masks)
        errors, coef = {"rho": solved.rho, "imr": solved.imr_coef}, solved.coef
    else:
        errors, coef = {"rho": search.rho[:near]}, search.refits.coef[:near]
    rows: list[dict[str, Any]] = []
    for name, values in errors.items():
        rows.append(_range(name, 1.0, values[0], values))
    for column in np.flatnonzero(masks.any(axis=0)):
        held = masks[:, column]
        values = coef[:, column]
        chosen = values[0] if held[0] else np.nan
        rows.append(_range(fit.labels[column], held.mean(), chosen, values[held]))
    return pd.DataFrame(rows)


def _range(term: str, share: float, chosen: float, values: Any) -> dict[str, Any]:
    return {
        "term": term,
        "share": float(share),
        "chosen": float(chosen),
        "low": float(np.min(values)),
        "high": float(np.max(values)),
    }


def weight_sections(fit: Fit, weights: AssignmentWeights | str) -> list[Section]:
    """Return the weights of all assignments as parts of the search report."""
    title = "Weight of the assignments"
    if isinstance(weights, str):
        return [Section(title, notes=(weights,))]
    facts, some = [], about(weights)
    if weights.chosen is not None:
        most = ", the most of any" if weights.chosen_is_best else ""
        facts.append(("Chosen, BIC weight", f"{some}{share_text(weights.chosen)}{most}"))
    if not weights.chosen_is_best:
        facts.append(("Best, BIC weight", f"{some}{share_text(weights.best)}"))
    facts += [
        ("Half of the weight in", f"{half(weights)} {assignments(weights.n_half)}"),
    ]
    if fit.family.has_imr:
        facts.append(("With |rho-hat| >= 1", share_text(weights.mixture.outside)))
    if weights.correction is not None:
        by = ", ".join(
            f"{share_text(weights.correction[kind])} by {kind.upper()}" for kind in WEIGHT_CRITERIA
        )
        facts.append((f"With {fit.family.words.correction}", by))
    notes = [stand_in_sentence(fit, item) for item in weights.stand_ins or ()]
    notes += [fact.sentence for fact in left_out_facts(fit, weights)]
    if "two steps" not in fit.family.supports:
        notes.append(_APPROXIMATED)
    shares = shares_frame(fit, weights.mixture, weights.units)
    shares["feature"] = [", ".join(unit_names(fit, unit)) for unit in weights.units]
    shown = shares[["feature"]].copy()
    for kind in WEIGHT_CRITERIA:
        shown[kind.upper()] = shares[kind].map(share_text)
    shown[f"{BY} alone"] = shares[f"{CHANCES_BY}_alone"].map(share_text)
    shown["role"] = shares["role"]
    remarks = [
        f"Roles follow {BY} weights. A feature without any effect typically has a share of about "
        f"{null_share(weights.mixture.n_selected)}, on its own. Alone is without the index.",
    ]
    if weights.moved():
        remarks.append(kinds_fact(fit, weights).meaning)
    if weights.mixture.disagreement is not None:
        agree = "agree" if weights.mixture.disagreement <= AGREE else "do not agree"
        remarks.append(
            "Assignments were sampled, since there are too many to evaluate all. The chains of the "
            f"sampler {agree}: shares differ by up to {number(weights.mixture.disagreement, 2)}."
        )
    sections = [
        Section(title, facts=tuple(facts), notes=tuple(notes)),
        Section("Share of the weight that holds each feature", table=shown, notes=tuple(remarks)),
    ]
    return [*sections, *selection_sections(fit, weights.mixture)]


NEVER = "never included"
CORRECTION = "correction"
"""the name of the correction's row among those of features"""
MATTERED = "selection mattered"
NOT_MATTERED = "no sign that selection mattered"

_ROLES: dict[VerdictKind, str] = {
    "yes": MATTERED,
    "unknown": UNSURE,
    "no sign": NOT_MATTERED,
    "unreliable": "not to be relied on",
    "not weighed": "not weighed",
    "not asked": "not asked",
}


def inclusion_frame(fit: Fit) -> pd.DataFrame:
    """Return `HeckmanAverage.inclusion_`."""
    mixture, units = fit.way.averaging.mixture, units_of(fit)
    table = shares_frame(fit, mixture, units)
    first = [unit[0] for unit in units]
    # The columns of a group have signs of their own.
    alone = np.array([len(unit) == 1 for unit in units], dtype=bool)
    for place, sign in enumerate(("positive", "negative")):
        shares = np.where(alone, getattr(mixture, sign)[first], np.nan)
        table.insert(1 + 3 * len(WEIGHT_CRITERIA) + place, sign, shares)
    table.loc[np.isin(first, mixture.choices.always), "role"] = ALWAYS
    if not mixture.searches_both:
        return pd.concat([table, _correction_row(fit, mixture)], ignore_index=True)
    equations = {"prediction": table, "selection": selection_frame(fit, mixture)}
    equations["errors"] = _correction_row(fit, mixture)
    parts = [part.assign(equation=equation) for equation, part in equations.items()]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["equation", *table.columns]]


def selection_frame(fit: Fit, mixture: Average) -> pd.DataFrame:
    """Return the rows of the selection equation of `inclusion_frame`, if that was searched.

    It has no index beside a feature.
    """
    selecting, shares, signs = mixture.selecting, mixture.selection_shares, mixture.selection_signs
    assert selecting is not None
    assert shares is not None
    assert signs is not None
    rows = []
    for unit in sorted([*((column,) for column in selecting.always), *selecting.units]):
        names, first = fit.spec.feature_names(unit), unit[0]
        name = names[0] if len(names) == 1 else tuple(names)
        of_unit = {kind: float(shares[kind][first]) for kind in WEIGHT_CRITERIA}
        both = (signs[0, first], signs[1, first]) if len(unit) == 1 else (np.nan, np.nan)
        fixed = ALWAYS if first in selecting.always else None
        rows.append(_row(name, of_unit, both, fixed or selection_role(of_unit[CHANCES_BY])))
    return pd.DataFrame(rows)


def selection_sections(fit: Fit, mixture: Average) -> list[Section]:
    """Return the chances of each feature to drive selection; nothing if that was not searched."""
    if not mixture.searches_both:
        return []
    table = selection_frame(fit, mixture)
    shown = pd.DataFrame({"feature": [_joined(name) for name in table["feature"]]})
    for name, kind in (("chance", "bic"), ("by AIC", "aic"), ("by EBIC", "ebic")):
        shown[name] = table[kind].map(share_text)
    for name in ("positive", "negative"):
        shown[name] = table[name].map(share_text)
    shown["role"] = table["role"]
    return [Section("Chance that each feature drives selection", table=shown)]


def _joined(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _correction_row(fit: Fit, mixture: Average) -> pd.DataFrame:
    """Return the row of the correction."""
    fixed = {"always": ALWAYS, "never": NEVER}.get(mixture.correction)
    role = fixed or _ROLES[judgement_of(fit).kind]
    return pd.DataFrame(
        [_row(CORRECTION, mixture.correction_share, mixture.correction_signs, role)]
    )


def _row(
    name: Any, shares: Mapping[WeightCriterion, float], signs: tuple[float, float], role: str
) -> dict[str, Any]:
    """Return a row of `inclusion_frame` of what has no index beside it."""
    return {
        "feature": name,
        **{str(kind): shares[kind] for kind in WEIGHT_CRITERIA},
        **{f"{kind}_alone": shares[kind] for kind in WEIGHT_CRITERIA},
        **{f"{kind}_index": 0.0 for kind in WEIGHT_CRITERIA},
        "positive": float(signs[0]),
        "negative": float(signs[1]),
        "role": role,
    }
