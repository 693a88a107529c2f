"""The search report: what was evaluated, which assignments came next, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights, weights_of
from heckmanfa.results.assignment_words import weight_sections
from heckmanfa.results.average_tables import shares_frame
from heckmanfa.results.caveats import caveat_sentences
from heckmanfa.results.document import Section
from heckmanfa.results.inclusion import selection_frame
from heckmanfa.results.refit_words import is_cut_short, refit_facts
from heckmanfa.results.reports import Report
from heckmanfa.search.goal import KEPT, NEARLY
from heckmanfa.search.searched import Search
from heckmanfa.text.wording import CRITERIA, number

_RUNNER_UPS = 10
# The runner-ups are in the report itself.
_NOTES = (
    *("search", "search_ignored", "honest", "honest_target", "honest_failures"),
    *("honest_and_all_rows", "window", "honest_window", "outside_window", "search_ended"),
    *("trained_on_sample", "adjusted_r2"),
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
        window = "none" if self.rho_range is None else "[{:g}, {:g}]".format(*self.rho_range)
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
    weights = weights_of(fit) if fit.search.chose else None
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
        notes=(*caveat_sentences(fit, *_NOTES), *two_step),
        weights=known,
        shares=None if known is None else shares_frame(fit, known.average, known.units),
        selection_shares=None
        if known is None or not known.average.searches_both
        else selection_frame(fit, known.average),
        weight_sections=() if weights is None else tuple(weight_sections(fit, weights)),
        refit_facts=() if search.refits is None else tuple(refit_facts(search, search.refits)),
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
