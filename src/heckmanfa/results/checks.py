"""Checks: how far to trust an answer, the gravest first, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from heckmanfa import errors
from heckmanfa.fit import Fit
from heckmanfa.results.fact_words import FACT_WORDS, chosen
from heckmanfa.results.facts import LEVELS, UNTESTED, Fact, Level, Text
from heckmanfa.text.labels import label, said_all
from heckmanfa.text.option_words import outside_options, told
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import capitalised, listed, plural, typeset

_BADGES: dict[Level, str] = {
    "problem": "Do not rely on it",
    "caution": "Read with care",
}
_NO_WARNING = "No warning found"

FACTS_OF_WARNING: dict[type[errors.HeckmanfaWarning], tuple[str, ...]] = {
    errors.AllObservedWarning: ("selection",),
    errors.NoExclusionWarning: ("exclusions", "instruments"),
    errors.LeakageWarning: ("leakage",),
    errors.BinaryOutcomeWarning: ("binary_outcome",),
    errors.TextNumbersWarning: ("text_numbers",),
    errors.MissingFeaturesWarning: ("many_rows_lost", "rows_lost"),
    errors.UnderdeterminedWarning: ("underdetermined",),
    errors.DroppedFeaturesWarning: ("dropped_features",),
    errors.FrequencyWeightWarning: ("frequency_weights",),
    errors.FewClustersWarning: ("clusters",),
    errors.RowLabelsWarning: ("row_labels",),
    errors.RhoOutsideWarning: ("rho", "regime_rho"),
    errors.RhoUncertainWarning: ("rho", "regime_rho"),
    errors.SecondMaximumWarning: ("maxima",),
    errors.NormalTailsWarning: ("tails",),
    errors.ConvergenceWarning: ("convergence",),
    errors.SearchWarning: (
        *("search_warning", "search_ended", "sampled", "outside_window", "search"),
    ),
    errors.CovarianceWarning: ("covariance", "standard_errors"),
}
"""The facts that say what a warning of the fit says; without any, it becomes the first."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked about an answer."""

    key: str
    """which check it is, for programs"""
    level: Level
    title: str
    """what was found, in a sentence; of a check that is fine, its label and value"""
    value: str
    """the number behind it"""
    words: str
    """what that means"""
    do: str = ""
    """what to do about it; empty if it is fine"""
    name: str = ""
    """a label of a few words"""

    @property
    def line(self) -> str:
        """The label and the value, for the line of checks that are fine."""
        return f"{self.name}: {self.value}" if self.value else self.name

    @property
    def finding(self) -> str:
        """What was found, with its number, in a sentence."""
        value = f" ({self.value})" if self.value and self.value not in self.title else ""
        return f"{self.title.removesuffix('.')}{value}."

    def __str__(self) -> str:
        """Return the level, what was found, what that means, and what to do."""
        words = self.words if self.words != self.title else ""
        do = f"Do: {self.do}" if self.do else ""
        return " ".join(filter(None, (f"{self.level}: {self.finding}", words, do)))


def ordered_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Sort checks: the gravest level first, and in a level in the order of `FACT_WORDS`.

    Of several with one key, the gravest stays.
    """
    gravest: dict[str, Check] = {}
    for check in checks:
        known = gravest.get(check.key)
        if known is None or LEVELS.index(check.level) < LEVELS.index(known.level):
            gravest[check.key] = check
    places = {key: place for place, key in enumerate(FACT_WORDS)}

    return tuple(
        sorted(gravest.values(), key=lambda check: (LEVELS.index(check.level), places[check.key]))
    )


def badge(checks: Sequence[Check]) -> tuple[Level, str]:
    """Return the gravest level of the checks (a note counts as ok), and what it means."""
    for level, words in _BADGES.items():
        if any(check.level == level for check in checks):
            return level, words
    return "ok", _NO_WARNING


def named_first(checks: Sequence[Check]) -> list[Check]:
    """Return what a first screen names: the two gravest checks, and a large loss of rows.

    Such a loss changes whom the answer is about, however grave other findings are.
    """
    grave = [check for check in checks if check.level in ("problem", "caution")]
    return [*grave[:2], *(check for check in grave[2:] if check.key == "many_rows_lost")]


def count_words(checks: Sequence[Check]) -> str:
    """Count checks by level, in a sentence."""
    n = {level: sum(check.level == level for check in checks) for level in LEVELS}
    grave = [plural(n[level], level) for level in LEVELS[:-1] if n[level]]
    fine = fine_title(checks)
    if not grave:
        return f"{capitalised(fine)}."
    said = f"{listed(grave)}; {fine}." if n["ok"] else f"{listed(grave)}."
    return f"{said} The gravest first." if sum(n.values()) - n["ok"] > 1 else said


def fine_title(checks: Sequence[Check]) -> str:
    """Count the checks that are fine."""
    n = len(fine_lines(checks))
    return f"{plural(n, 'check')} {'is' if n == 1 else 'are'} fine"


def fine_lines(checks: Sequence[Check]) -> list[str]:
    """Name the checks that are fine, each with its value."""
    return [check.line for check in checks if check.level == "ok"]


def checks_of(facts: Iterable[Fact], fit: Fit, outcome: str) -> tuple[Check, ...]:
    """Return the facts of a fit that say how far to trust it as checks, in order."""
    checks = [check for fact in facts for check in check_of(fact, fit, outcome)]
    if any(check.key == "best_set" for check in checks):
        # The weights of all assignments say more than how many are nearly as good.
        checks = [check for check in checks if check.key != "near_ties"]
    return ordered_checks(checks)


def checks_of_warnings(
    warnings: Iterable[tuple[type[errors.HeckmanfaWarning], str]],
    known: Iterable[Check],
    fit: Fit,
    outcome: str,
) -> list[Check]:
    """Return the warnings of a fit that no check says already."""
    said, checks = {check.key for check in known if check.level != "ok"}, []
    for kind, words in warnings:
        keys = FACTS_OF_WARNING.get(kind, ("fit_warning",))
        if said.isdisjoint(keys):
            # Of exclusions, it can only say that there are none.
            checks += check_of(Fact(keys[0], "caution", meaning=words, case="none"), fit, outcome)
    return checks


def _printed(words: str) -> str:
    """Write words for a page: true minus signs, but not in options, which users copy."""
    return told(outside_options(typeset, words), keywords=True)


def check_of(fact: Fact, fit: Fit, outcome: str) -> list[Check]:
    """Return a fact about a table with this outcome as a check; none if it checks nothing."""
    about, untested = FACT_WORDS[fact.key], fact.case == UNTESTED
    values = asdict(fit.family.words) | dict(fact.values or {})
    values |= {"outcome": shown(label(outcome)), "names": listed(said_all(fact.names))}

    def said(text: Text) -> str:
        words = chosen(text, fact.case, fact.level).format(**values)
        return _printed(words)

    name, title = said(about.name), said(about.title)
    value = typeset(fact.short or fact.value)
    meaning = _printed(fact.meaning)
    fine = fact.level == "ok" or not title
    if not name or (fine and not value):
        return []
    if fine:
        return [Check(fact.key, "ok", f"{name}: {value}.", value, meaning, name=name)]
    if untested and (isinstance(about.title, str) or UNTESTED not in about.title):
        title = f"Not tested: {name}."
    gravest, mildest = map(LEVELS.index, about.levels)
    # What could not be tested is no sign of a fault.
    level = "note" if untested else LEVELS[max(min(LEVELS.index(fact.level), mildest), gravest)]
    why = "" if untested else said(about.why)
    # The title says that there is none.
    value = "" if value == "none" else value
    return [Check(fact.key, level, title, value, why or meaning, said(about.do), name)]
