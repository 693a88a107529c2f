"""The catalogue: every fact of a fit, in reading order, and of the table that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from heckmanfa.data.arrays import Floats
from heckmanfa.data.missing_features import LostRows
from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.cluster_facts import cluster_facts
from heckmanfa.results.diagnostics import Diagnostics, measure
from heckmanfa.results.exclusions import Exclusions, exclusion_fact
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import EXCLUDE, Fact, Level
from heckmanfa.results.fit_facts import (
    class_facts,
    condition_fact,
    guard_facts,
    imr_facts,
    note_facts,
    range_facts,
    ratio_facts,
    rho_facts,
    validity_facts,
)
from heckmanfa.results.funnel import LACKING, Funnel, share_words
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import search_facts
from heckmanfa.results.series_facts import series_facts
from heckmanfa.results.tail_facts import tail_facts
from heckmanfa.results.weight_facts import weight_facts
from heckmanfa.text.option_words import option, told
from heckmanfa.text.wording import count, percent

# Rows that lack a feature are many from this share on.
_LARGE_SHARE = 0.05
_NO_OUTCOME = "left_out_outcome_missing"
# So many columns are named in an option to leave them out.
_NAMED = 6


@dataclass(frozen=True)
class TableFacts:
    """What is known about a table beyond the model fitted to it."""

    funnel: Funnel
    """its rows, from those read to those with an outcome"""
    filled: bool
    """whether missing cells were filled in"""
    exclusions: Exclusions | None = None
    """the features kept out of the prediction equation, the dummies of a column tested jointly"""
    lost: LostRows | None = None
    """the rows that lack a feature, counted by column"""


def facts_of_fit(
    fit: Fit,
    measured: Diagnostics | None = None,
    reports: Sequence[Report] = (),
    *,
    weights: AssignmentWeights | str | None = None,
) -> list[Fact]:
    """Return the facts of a fitted model, in reading order, then those of reports on it.

    ``measured`` are its diagnostics, if they are computed already. Without the ``weights`` of all
    assignments, facts that need them are left out.
    """
    measured = measure(fit) if measured is None else measured
    reported = [fact for report in reports for fact in report.findings()]
    facts = [*validity_facts(fit), *ratio_facts(fit.transform_ratio)]
    if fit.probit is None:
        facts = [tell(fit, "selection", "caution", "none"), *facts]
        facts += [*class_facts(fit), condition_fact(fit, measured), *search_facts(fit)]
        return [*facts, *note_facts(fit), *cluster_facts(fit), *reported]
    profiled = any(fact.key == "maxima" for fact in reported)
    facts += [
        exclusion_fact(fit, measured),
        *imr_facts(fit, measured),
        *series_facts(fit),
        condition_fact(fit, measured),
    ]
    facts += [*class_facts(fit), *rho_facts(fit, measured, profiled=profiled), *guard_facts(fit)]
    facts += [*tail_facts(fit), *search_facts(fit), *weight_facts(fit, weights)]
    facts += [*range_facts(fit, measured), *note_facts(fit), *cluster_facts(fit)]
    return [*facts, *reported]


def diagnose(
    fit: Fit,
    index: Floats | None,
    reports: Sequence[Report],
    weights: AssignmentWeights | str | None = None,
    counts: Floats | None = None,
) -> Diagnostics:
    """Compute the diagnostics of a fitted model; see `Heckman.diagnostics`.

    ``index`` is the selection index of rows to predict for, and ``counts`` how many rows each
    stands for. The facts of ``reports`` are added.
    """
    measured = measure(fit, index, counts)
    return replace(measured, facts=tuple(facts_of_fit(fit, measured, reports, weights=weights)))


def sentences_of(fit: Fit, *keys: str) -> list[str]:
    """Return the sentences of the facts with these keys that a fitted model has."""
    facts = facts_of_fit(fit)
    return [told(fact.sentence) for fact in facts if fact.key in keys and fact.sentence]


def facts_of_answer(fit: Fit, diagnostics: Diagnostics, table: TableFacts) -> list[Fact]:
    """Return the facts of the answer to a question about a table, in reading order.

    The diagnostics are those of the model for the rows of the table.
    """
    facts = [
        exclusion_fact(fit, diagnostics, table.exclusions) if fact.key == "exclusions" else fact
        for fact in diagnostics.facts
    ]
    facts += row_facts(fit, table)
    if table.filled:
        facts.append(tell(fit, "filled_in", "caution"))
    if fit.probit is not None:
        facts += [tell(fit, "selected_scores", "caution")] if fit.family.has_classes else []
        facts.append(tell(fit, "normal_law", "caution", case=fit.family.words.law))
    return [*facts, tell(fit, "not_causal", "caution")]


def row_facts(fit: Fit, table: TableFacts) -> list[Fact]:
    """Say that rows were lost: those that lack a feature or, of a large loss, for any reason."""
    funnel, lost = table.funnel, table.lost
    advice = f" {lost.advice}".rstrip() if lost is not None else ""
    if funnel.is_large_loss:
        costly: list[str] = []
        if lost is not None and lost.n_lost:
            costly = [name for name, _ in lost.columns[: lost.n_costly]]
        main = max(funnel.left_out, key=lambda loss: loss.rows)
        values: dict[str, Any] = {
            "share": share_words(funnel),
            "reasons": funnel.reasons,
            "advice": advice if main.reason == LACKING else "",
            "leave_out": option("exclude", costly) if 0 < len(costly) <= _NAMED else EXCLUDE,
        }
        value = f"{count(funnel.lost)} of {count(funnel.read)}"
        # Advice about who is selected has no place if everyone has an outcome.
        case = "" if main.reason == _NO_OUTCOME and fit.family.sees_everyone else main.reason
        return [tell(fit, "many_rows_lost", "caution", value, case=case, **values)]
    if not funnel.lacking:
        return []
    share = funnel.lacking / funnel.read
    many = share > _LARGE_SHARE
    rows = (
        f"{count(funnel.lacking)} of {count(funnel.read)} "
        f"({percent(share, 0 if many else 1)}) lack a feature."
    )
    level: Level = "caution" if many else "note"
    case = "" if many else "few"
    return [tell(fit, "rows_lost", level, case=case, rows=rows, advice=advice)]
