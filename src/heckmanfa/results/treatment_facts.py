"""Everything worth telling about an answer on a treatment: facts, checks and claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heckmanfa.fit import Fit
from heckmanfa.results.catalogue import TableFacts, row_facts
from heckmanfa.results.claims import Claim
from heckmanfa.results.effects import Effect
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.fit_tests import ENOUGH_ROWS
from heckmanfa.results.treatment_answer import interval_of
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.text.labels import said_all
from heckmanfa.text.wording import count, listed, percent, plural

# Rows whose probability of treatment only one group has are many from this share on.
_MANY_OUTSIDE = 0.05
# Two methods disagree if their effects are further apart, in standard errors of the model's own.
_APART = 2.0
_HOW = {"two-step": "two steps", "ml": "maximum likelihood"}
# The gravest first; what is a problem comes before all of these.
_ORDER = (
    *("instruments", "regime_rho", "overlap", "as_by_lot", "many_rows_lost", "rows_lost"),
    *("filled_in", "treatment_normal", "no_spillover", "effects_of_features"),
)


@dataclass(frozen=True)
class OtherMethod:
    """The effect on everyone by the method that the model did not use."""

    method: str
    effect: Effect


def facts_of_treatment(
    evidence: TreatmentEvidence, table: TableFacts, other: OtherMethod | None = None
) -> list[Fact]:
    """Return the facts of an answer about a treatment, in reading order."""
    fit = evidence.fit
    measured = [_with_sources(evidence, fact) for fact in evidence.measured.facts]
    facts = [_overlap(evidence, fact) if fact.key == "overlap" else fact for fact in measured]
    facts += [*_methods(evidence, other), *_few(fit), *row_facts(fit, table)]
    if table.filled:
        facts.append(tell(fit, "filled_in", "caution"))
    if evidence.choice == "unknown" and not evidence.test.note:
        facts.append(tell(fit, "as_by_lot", "note", str(evidence.test)))
    for key in ("treatment_normal", "no_spillover", "effects_of_features"):
        facts.append(tell(fit, key, "note"))
    return facts


def claims_of_treatment(facts: Iterable[Fact]) -> tuple[Claim, ...]:
    """Return what may not be claimed, the gravest first."""
    ruled_out = [fact for fact in facts if fact.claim]

    def rank(fact: Fact) -> int:
        ranked = fact.key in _ORDER and fact.level != "problem"
        return _ORDER.index(fact.key) if ranked else -1

    return tuple(Claim.of(fact) for fact in sorted(ruled_out, key=rank))


def _with_sources(evidence: TreatmentEvidence, fact: Fact) -> Fact:
    """Name instruments by the columns of the table."""
    names = evidence.instruments
    if fact.key != "instruments" or fact.case == "none" or fact.names == names:
        return fact
    values = dict(fact.values or {})
    one = len(names) == 1
    values |= {"drives": "drives" if one else "drive", "does": "it does" if one else "they do"}
    test = evidence.measured.instruments_wald
    value = f"{len(names)} ({listed([*said_all(names)])}); {test}"
    given: dict[str, Any] = {key: values[key] for key in ("drives", "does", "note", "strong")}
    return tell(evidence.fit, fact.key, fact.level, value, case=fact.case, names=names, **given)


def _overlap(evidence: TreatmentEvidence, fact: Fact) -> Fact:
    """Say how many rows have no counterpart in the other group, where rows are known."""
    outside = evidence.outside
    if outside is None:
        return fact
    rows = f"{percent(outside.share)} of the rows ({count(outside.n_rows)})"
    value = f"{fact.value}; {rows} have no counterpart"
    level = "caution" if outside.share > _MANY_OUTSIDE else fact.level
    case = "outside" if outside.share > _MANY_OUTSIDE else ""
    return tell(evidence.fit, fact.key, level, value, case=case, outside=rows)


def _methods(evidence: TreatmentEvidence, other: OtherMethod | None) -> list[Fact]:
    """Compare the effect with that of the other method."""
    if other is None or not evidence.main.has_interval:
        return []
    own, theirs = evidence.main, other.effect
    apart = abs(own.estimate - theirs.estimate) > _APART * own.std_error
    value = f"{interval_of(evidence, theirs)} by {_HOW[other.method]}"
    values: dict[str, Any] = {
        "own": interval_of(evidence, own),
        "other": interval_of(evidence, theirs),
    }
    level: Level = "caution" if apart else "ok"
    how = _HOW[other.method]
    return [tell(evidence.fit, "methods_apart", level, value, method=how, **values)]


def _few(fit: Fit) -> list[Fact]:
    """Say that one group has few rows for the coefficients that it must tell."""
    counts, n = fit.row_counts, len(fit.driving) + 1
    smaller = min(("selected", "unselected"), key=lambda kind: counts[kind])
    rows = counts[smaller]
    if rows >= ENOUGH_ROWS * n:
        return []
    group = "treated" if smaller == "selected" else "untreated"
    words = (
        f"{count(rows)} {group} {'row is' if rows == 1 else 'rows are'} few for "
        f"{plural(n, 'coefficient')} of treatment: {ENOUGH_ROWS} for each would do."
    )
    return [tell(fit, "few_in_regime", "caution", f"{count(rows)} {group}", meaning_of=words)]
