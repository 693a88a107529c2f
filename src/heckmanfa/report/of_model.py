"""The report of a fitted model, without a question about a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heckmanfa.fit import Fit
from heckmanfa.inference.assessment import answer_of_facts, diagnose_fit
from heckmanfa.inference.people import Profiles
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.prediction import missing_features
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.treatment_pictures import TreatmentPictures
from heckmanfa.report.programs import Programs
from heckmanfa.report.reported import Reported
from heckmanfa.report.settings import (
    errors_words,
    estimation_words,
    rows_table,
    versions,
    weight_words,
)
from heckmanfa.report.treatment_page import ReportedTreatment
from heckmanfa.results.catalogue import TableFacts, facts_of_answer
from heckmanfa.results.checks import checks_of
from heckmanfa.results.claims import claims_of
from heckmanfa.results.document import Paragraph
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.estimates import tidy
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.exclusions import find_exclusions
from heckmanfa.results.facts import Fact
from heckmanfa.results.funnel import LACKING, funnel_of
from heckmanfa.results.reports import Report
from heckmanfa.results.side_by_side import side_by_side
from heckmanfa.results.treatment_answer import answer_of_treatment
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.results.treatment_facts import claims_of_treatment, facts_of_treatment
from heckmanfa.results.treatment_sentences import may_write_of_treatment
from heckmanfa.text.labels import Labels, said, with_name, with_names
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import some

_NO_ROWS = "Not shown: needs the rows of the fit; pass X and y to report()."
_NOT_IN_MEMORY = "Not shown: needs all rows in memory."
_MISSED = "Tests of what the model assumes need the rows of the fit, in memory."
_SHOWN = 60


def report_of_model(
    evidence: Evidence,
    name: str,
    programs: Programs,
    X: Any,
    rows: PictureRows | None,
    reports: Sequence[Report],
    labels: Labels | None = None,
    profiles: Profiles = (),
) -> Reported:
    """Return what the page of a fitted model shows.

    Parameters
    ----------
    evidence : Evidence
    name : str
        Of its class.
    programs : Programs
        Code that fits the model again.
    X : array or data frame, optional
        The rows of the fit, for the diagnostics.
    rows : PictureRows, optional
        The same, for the pictures.
    reports : sequence of Report
        What the rows show beyond the fit: tests, and changes of what it assumes.
    labels : Labels, optional
        What readers call columns; words are made under these.
    profiles : sequence of mapping, optional
        Rows to predict for in place of typical ones, each a value by column.
    """
    fit = evidence.whole
    counts = fit.row_counts
    in_memory = rows is not None and rows.in_memory
    weight = rows.sample_weight if rows is not None and in_memory else None
    diagnostics = diagnose_fit(fit, X if in_memory else None, reports, evidence.weights, weight)
    outcome = fit.origin.outcome or evidence.outcome
    funnel = funnel_of(fit, counts, _lacking(fit, X if in_memory else None), outcome)
    table = TableFacts(funnel, filled=False, exclusions=find_exclusions(fit))
    facts = facts_of_answer(fit, diagnostics, table)
    without = "" if in_memory else _NO_ROWS if rows is None else _NOT_IN_MEMORY
    if without and fit.probit is not None:
        facts.append(
            Fact("not_run", "note", meaning=_MISSED, values={"checks": "Some checks were"})
        )
    checks, answer = answer_of_facts(evidence, facts)
    pictures = Pictures(evidence, rows, labels, profiles)
    if profiles:
        # What cannot be used is refused, without rows as well.
        pictures.people  # noqa: B018
    return Reported(
        evidence=evidence,
        answer=answer,
        checks=checks,
        claims=claims_of(evidence, facts, checks),
        caveats=[fact for fact in facts if fact.sentence or fact.claim],
        pictures=pictures,
        comparison=side_by_side(fit),
        title=f"{said(evidence.outcome)}: {name}",
        called=name,
        outcome_column=evidence.outcome,
        row_counts=counts,
        funnel=funnel,
        n_features=len(evidence.features),
        settings=_settings(evidence, name),
        rows=[rows_table(funnel, "All rows that were given")],
        again=[programs.tabs(), Paragraph(versions(), "note")],
        without_rows=without,
        held_out=pictures.known("calibration"),
        labels=labels or Labels(),
    )


def report_of_treatment(
    evidence: TreatmentEvidence,
    name: str,
    programs: Programs,
    rows: PictureRows | None,
    labels: Labels,
    profiles: Profiles = (),
) -> ReportedTreatment:
    """Return what the page of a fitted treatment model shows; see `report_of_model`."""
    fit = evidence.fit
    counts, outcome = fit.row_counts, fit.origin.outcome or evidence.outcome
    in_memory = rows is not None and rows.in_memory
    X = rows.X if rows is not None and in_memory else None
    funnel = funnel_of(fit, counts, _lacking(fit, X), outcome)
    facts = facts_of_treatment(evidence, TableFacts(funnel, filled=False))
    checks = checks_of(facts, fit, evidence.outcome)
    pictures = TreatmentPictures(evidence, rows, labels, profiles)
    if profiles:
        pictures.people  # noqa: B018
    written = may_write_of_treatment(evidence, checks)
    return ReportedTreatment(
        evidence=evidence,
        estimates=tidy(fit, CONF_LEVEL),
        answer=answer_of_treatment(evidence, checks, written),
        checks=checks,
        claims=claims_of_treatment(facts),
        caveats=[fact for fact in facts if fact.sentence or fact.claim],
        pictures=pictures,
        title=f"{said(evidence.outcome)}: {name}",
        called=name,
        outcome_column=evidence.outcome,
        row_counts=counts,
        funnel=funnel,
        n_features=len({*fit.driving, *fit.features}),
        settings=_treatment_settings(evidence, name),
        rows=[rows_table(funnel, "All rows that were given")],
        again=[programs.tabs(), Paragraph(versions(), "note")],
        without_rows="" if in_memory else _NO_ROWS if rows is None else _NOT_IN_MEMORY,
        labels=labels,
    )


def _treatment_settings(evidence: TreatmentEvidence, name: str) -> list[tuple[str, str]]:
    """Return how the model was fitted, as pairs of a label and a sentence."""
    fit = evidence.fit
    facts = {
        "Outcome": f"{with_name(evidence.outcome)}, of everyone.",
        "Model": f"{name}: {fit.family.words.model}.",
        "Treatment equation": f"{_named(fit, fit.driving)}.",
        "Outcome equation": f"{_named(fit, fit.equation)}.",
        **estimation_words(fit),
    }
    groups = shown(fit.origin.group_column or "group")
    facts["Standard errors"] = errors_words(fit, groups, asked=True)
    if fit.weighted:
        column = shown(fit.origin.weight_column or "given")
        facts["Weights"] = f"{column} {weight_words(fit.spec.weight_kind)}"
    return list(facts.items())


def _lacking(fit: Fit, X: Any) -> dict[str, int]:
    """Count the rows of X that lack each column that the fit needs; none without X."""
    if X is None or not fit.row_counts.get(LACKING):
        return {}
    kind = "marginal" if fit.probit is None else "selected"
    return dict(missing_features(fit, X, kind).columns)


def _settings(evidence: Evidence, name: str) -> list[tuple[str, str]]:
    """Return how the model was fitted, as pairs of a label and a sentence."""
    fit = evidence.fit
    facts = {"Outcome": f"{with_name(evidence.outcome)}.", "Model": f"{name}."}
    if fit.probit is not None:
        facts["Selection equation"] = f"{_named(fit, fit.driving)}."
    facts[fit.way.words.predict] = f"{_named(fit, fit.equation)}."
    facts |= estimation_words(fit)
    groups = " or ".join(map(shown, fit.origin.clusterings)) or "group"
    facts["Standard errors"] = errors_words(fit, groups, asked=True)
    if fit.weighted:
        column = shown(fit.origin.weight_column or "given")
        facts["Weights"] = f"{column} {weight_words(fit.spec.weight_kind)}"
    return list(facts.items())


def _named(fit: Fit, columns: Sequence[int]) -> str:
    """Name columns of X."""
    return some(with_names([fit.labels[column] for column in columns]), _SHOWN) or "no feature"
