"""What a fitted treatment model says: its tests, its facts, and its effects in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import ndtr

from heckmanfa.fit import Fit
from heckmanfa.fit.treatment_details import treatment_details
from heckmanfa.model.covariance import is_classical
from heckmanfa.results.cluster_facts import cluster_facts
from heckmanfa.results.diagnostics import STRONG_CHI2
from heckmanfa.results.distribution import LEVEL, Wald, distribution_of
from heckmanfa.results.document import Findings, Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.fit_facts import maxima_facts, validity_facts
from heckmanfa.results.fit_tests import selection_test, why_untested
from heckmanfa.results.reports import Printed, Report
from heckmanfa.results.search_facts import search_facts
from heckmanfa.results.summary import Summary, rows_left_out, summarize
from heckmanfa.text.chances import BY, CHANCES_BY, says
from heckmanfa.text.labels import said_all
from heckmanfa.text.wording import capitalised, listed, number, percent

# Where treated and untreated share less of the probabilities of treatment, averages over everyone
# rest on the equations more than on the rows.
_LITTLE_OVERLAP = 0.5
_NEAR_ONE = 0.98
_MANY_OUTSIDE = 0.05
_EFFECTS = {
    "ate": "everyone (ATE)",
    "att": "the treated (ATT)",
    "atu": "the untreated (ATU)",
    "margin": "those at the margin",
}


@dataclass(frozen=True, repr=False)
class TreatmentDiagnostics(Printed):
    """Diagnostics of a fitted treatment model; prints in words."""

    _kind = "diagnostics"

    instruments: tuple[Any, ...]
    """features that drive treatment alone"""
    instruments_wald: Wald | None
    """joint test of these in the treatment equation"""
    rho_wald: Wald
    """test that every rho is zero: of the coefficients of the hazard after two steps, of atanh rho
    after maximum likelihood"""
    rho_lr: Wald | None
    """the same by the likelihood ratio (maximum likelihood with a classical covariance)"""
    rho_walds: dict[str, Wald]
    """test of each rho"""
    treated_range: tuple[float, float]
    """range of P(d = 1 | x) among the treated"""
    untreated_range: tuple[float, float]
    facts: tuple[Fact, ...] = ()

    def parts(self) -> list[Findings]:
        """Return the diagnostics as one block."""
        return [Findings(tuple(self.lines()))]

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Return the name, value, verdict and meaning of each diagnostic."""
        facts = [fact for fact in self.facts if fact.name]
        return [(fact.name, fact.value, fact.verdict, fact.meaning) for fact in facts]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each diagnostic: its name, value and verdict."""
        rows = [line[:3] for line in self.lines()]
        return pd.DataFrame(rows, columns=["diagnostic", "value", "verdict"])


def treatment_name(fit: Fit) -> str:
    """Return what the treatment is called: the left side of its formula, or "treatment"."""
    design = fit.origin.design
    return "treatment" if design is None else design.texts[1].split("~")[0].strip()


def instruments_of(fit: Fit) -> list[int]:
    """Return the columns that drive treatment alone."""
    return [column for column in fit.driving if not fit.support[column]]


def rho_tests(fit: Fit) -> tuple[Wald, dict[str, Wald], Wald | None]:
    """Test that every rho is zero, together and each, and together by the likelihood ratio."""
    rhos = [term.name for term in fit.family.error_terms if term.is_correlation]
    products = [("errors", name.replace("rho", "imr")) for name in rhos]
    estimate = np.array([fit.errors[name].value for _, name in products])
    places = [fit.terms.index(term) for term in products]
    if fit.log_likelihood is not None:
        # On the scale of atanh rho, which has no bounds.
        values = np.array([fit.errors[name].value for name in rhos])
        places = [fit.terms.index(("errors", name)) for name in rhos]
        slopes = 1.0 - values**2
        estimate, covariance = np.arctanh(values), fit.covariance[np.ix_(places, places)]
        covariance = covariance / np.outer(slopes, slopes)
    else:
        covariance = fit.covariance[np.ix_(places, places)]
    why_not, distribution = why_untested(fit), distribution_of(fit)
    together = distribution.wald(estimate, covariance, why_not)
    each = {
        name: distribution.wald(estimate[[i]], covariance[[i]][:, [i]], why_not)
        for i, name in enumerate(rhos)
    }
    if fit.log_likelihood is None or not is_classical(fit.spec.cov_type):
        return together, each, None
    if why_not:
        return together, each, Wald(float("nan"), len(rhos), float("nan"), note=why_not)
    statistic = max(2.0 * (fit.log_likelihood - treatment_details(fit).apart), 0.0)
    ratio = Wald(statistic, len(rhos), float(stats.chi2.sf(statistic, len(rhos))))
    return together, each, ratio


def diagnose_treatment(
    fit: Fit, reports: list[Report], share_outside: float | None = None
) -> TreatmentDiagnostics:
    """Compute the diagnostics of a fitted treatment model.

    ``share_outside`` are the rows to predict for whose index lies outside the range of the fit.
    """
    instruments = instruments_of(fit)
    test = selection_test(fit, instruments) if instruments else None
    together, each, ratio = rho_tests(fit)
    treated, untreated = (
        (float(ndtr(low)), float(ndtr(high))) for low, high in treatment_details(fit).ranges
    )
    names = tuple(fit.spec.feature_names(instruments))
    measured = TreatmentDiagnostics(names, test, together, ratio, each, treated, untreated)
    averaged = fit.way.is_average
    facts = [
        *validity_facts(fit),
        *(search_facts(fit) if fit.way.searched else []),
        _instrument_fact(measured),
        *(_chance_facts(fit) if averaged else _rho_facts(fit, measured)),
        *(maxima_facts(fit) if fit.family.can("single rho") else []),
        _overlap_fact(measured),
        *([] if share_outside is None else [_outside_fact(share_outside)]),
        *cluster_facts(fit),
    ]
    facts += [fact for report in reports for fact in report.findings()]
    return replace(measured, facts=tuple(facts))


def _instrument_fact(measured: TreatmentDiagnostics) -> Fact:
    """Say what drives treatment alone, and how strongly."""
    test, names = measured.instruments_wald, tuple(map(str, measured.instruments))
    if test is None:
        return tell(None, "instruments", "problem", "none", case="none")
    drives, does = ("drives", "it does") if len(names) == 1 else ("drive", "they do")
    strong = STRONG_CHI2 * test.df
    level: Level = "caution"
    if test.note:
        case = "untested"
    elif test.chi2 > strong and test.p_value < LEVEL:
        level, case = "ok", "strong"
    elif test.p_value < LEVEL:
        case = "weak"
    else:
        level, case = "problem", "idle"
    return tell(
        None,
        "instruments",
        level,
        f"{len(names)} ({listed([*said_all(names)])}); {test}",
        case=case,
        names=names,
        drives=drives,
        does=does,
        note=test.note,
        strong=f"{strong:g}",
    )


def _rho_facts(fit: Fit, measured: TreatmentDiagnostics) -> list[Fact]:
    """Say whether each rho is a correlation, and whether they are zero."""
    facts = []
    for name in measured.rho_walds:
        value = fit.errors[name].value
        level: Level = "ok" if abs(value) < _NEAR_ONE else "problem"
        case = "" if level == "ok" else "near one" if abs(value) < 1 else "outside"
        short = f"{name} {number(value)}"
        told = tell(fit, "regime_rho", level, number(value), case=case, name=name, short=short)
        facts.append(told)
    rhos = " = ".join(measured.rho_walds)
    tests = [("rho_test", f"test of {rhos} = 0", measured.rho_wald)]
    if measured.rho_lr is not None:
        tests.append(("rho_lr_test", f"LR test of {rhos} = 0", measured.rho_lr))
    for key, label, test in tests:
        if test.note:
            facts.append(Fact(key, "caution", str(test), f"{test.note}.", label))
        elif test.p_value < LEVEL:
            meaning = "Treatment depends on what the outcome depends on: least squares is biased."
            facts.append(Fact(key, "ok", str(test), meaning, label))
        else:
            meaning = "It is not rejected at 5%, which does not show that treatment is as by lot."
            facts.append(Fact(key, "ok", str(test), meaning, label))
    _, label, test = tests[-1]
    if not test.note:
        facts.append(tell(None, "rho_test_note", "note", str(test), test=capitalised(label)))
    return facts


def _chance_facts(fit: Fit) -> list[Fact]:
    """Say how much of the weight of an average holds the correction, in place of a test."""
    mixture = fit.way.averaging.mixture
    if mixture.correction != "optional":
        return []
    chance = mixture.correction_share[CHANCES_BY]
    value = f"in {percent(chance, 0)} of the {BY} weight"
    label = f"{listed([*fit.way.averaging.form.ends.correction])} needed"
    said = says(chance)
    return [tell(None, "chance_of_correction", "ok", value, case=said, name=label)]


def _overlap_fact(measured: TreatmentDiagnostics) -> Fact:
    """Compare the probabilities of treatment of both groups."""
    (low1, high1), (low0, high0) = measured.treated_range, measured.untreated_range
    shared = min(high1, high0) - max(low1, low0)
    value = (
        f"treated {percent(low1)} to {percent(high1)}, untreated {percent(low0)} to "
        f"{percent(high0)}"
    )
    return tell(None, "overlap", "ok" if shared >= _LITTLE_OVERLAP else "caution", value)


def _outside_fact(share: float) -> Fact:
    """Say how many of the rows to predict for are beyond those of the fit."""
    level: Level = "ok" if share <= _MANY_OUTSIDE else "caution"
    meaning = "Their treatment index lies outside the range of the fit."
    return Fact("outside_range", level, percent(share), meaning, "rows outside the range")


def effect_section(effects: pd.DataFrame, conf_level: float, *, averaged: bool = False) -> Section:
    """Return the effects of the rows of the fit as a part of a summary."""
    percents = f"{100 * conf_level:g}%"
    table = pd.DataFrame(
        {
            "of": [_EFFECTS[kind] for kind in effects["effect"]],
            "estimate": effects["estimate"],
            "std. error": effects["std_error"],
            f"{percents} low": effects["ci_low"],
            f"{percents} high": effects["ci_high"],
            "rows": effects["n_rows"],
        }
    )
    note = "Standard errors are by the delta method, and take the rows as given."
    if averaged:
        note = (
            "Intervals are quantiles over the assignments, so they allow for the choice of "
            "features; they take the rows as given."
        )
    return Section("Average effects of treatment", table=table, notes=(note,))


def summarize_treatment(
    fit: Fit, effects: pd.DataFrame, conf_level: float, reports: list[Report]
) -> Summary:
    """Summarize a fitted treatment model: its equations, its effects, and what to know."""
    facts = diagnose_treatment(fit, []).facts
    whole = summarize(fit, None, conf_level, reports, facts)
    notes = [f"{n} rows left out: {words}." for words, n in rows_left_out(fit).items()]
    ordered = sorted(facts, key=lambda fact: fact.level != "problem")
    notes = [fact.sentence for fact in ordered if fact.sentence] + notes
    own = effect_section(effects, conf_level, averaged=fit.way.is_average)
    sections = (own, *whole.sections)
    return replace(whole, notes=notes, sections=sections)
