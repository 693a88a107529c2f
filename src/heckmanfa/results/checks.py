"""Checks: how far to trust an answer, the gravest first, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.binary_check_words import check_words
from heckmanfa.results.check_keys import CHECK_OF_CAVEAT, CHECKS_OF_WARNING, NO_CHECKS
from heckmanfa.results.check_kinds import UNTESTED, CheckWords, Kind
from heckmanfa.results.check_words import CHECK_WORDS
from heckmanfa.results.document import Caveat, Finding, Level
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import listed, plural, true_minus

LEVELS: tuple[Level, ...] = ("problem", "caution", "note", "ok")
"""the gravest first"""

_BADGES: dict[Level, str] = {
    "problem": "Do not rely on it",
    "caution": "Read with care",
}
_NO_WARNING = "No warning found"
# Notes among the caveats that are about how far to trust an answer.
_NOTED = frozenset({"honest_failures", "not_weighed", "trained_on_sample"})


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
    """what to do about it, with options of the command line; empty if it is fine"""
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
    """Sort checks: the gravest level first, and in a level by the `Kind` of check.

    Of several with one key, the gravest stays. Checks of one level and kind keep the order of
    `CHECK_WORDS`.
    """
    found: dict[str, Check] = {}
    for check in checks:
        known = found.get(check.key)
        if known is None or LEVELS.index(check.level) < LEVELS.index(known.level):
            found[check.key] = check
    places = {key: place for place, key in enumerate(CHECK_WORDS)}

    def gravity(check: Check) -> tuple[int, Kind, int]:
        kind = CHECK_WORDS[check.key].kind
        return LEVELS.index(check.level), kind, places[check.key]

    return tuple(sorted(found.values(), key=gravity))


def badge(checks: Sequence[Check]) -> tuple[Level, str]:
    """Return the gravest level of the checks (a note counts as ok), and what it means."""
    for level, words in _BADGES.items():
        if any(check.level == level for check in checks):
            return level, words
    return "ok", _NO_WARNING


def count_words(checks: Sequence[Check]) -> str:
    """Count checks by level, in a sentence."""
    n = {level: sum(check.level == level for check in checks) for level in LEVELS}
    grave = [plural(n[level], level) for level in LEVELS[:-1] if n[level]]
    fine = f"{plural(n['ok'], 'check')} {'is' if n['ok'] == 1 else 'are'} fine"
    if not grave:
        return f"{fine[0].upper()}{fine[1:]}."
    said = f"{listed(grave)}; {fine}." if n["ok"] else f"{listed(grave)}."
    return f"{said} The gravest first." if sum(n.values()) - n["ok"] > 1 else said


def fine_words(checks: Sequence[Check]) -> str:
    """Name the checks that are fine, each with its value, in a line; empty if none is."""
    return "; ".join(check.line for check in checks if check.level == "ok")


def checks_of(
    findings: Iterable[Finding], caveats: Iterable[Caveat], outcome: str, *, binary: bool = False
) -> tuple[Check, ...]:
    """Return findings and caveats as checks, in order; what a finding says, no caveat repeats.

    ``binary`` is whether the outcome is, which has words of its own.
    """
    found = [
        check_of_finding(item, outcome, binary=binary)
        for item in findings
        if item.key not in NO_CHECKS
    ]
    known = {check.key for check in found}
    if "less_likely" in known:
        known.add("exclusions")
    if "best_set" in known:
        # The weights of all assignments say more than how many are nearly as good.
        known.add("near_ties")
    for caveat in caveats:
        key = CHECK_OF_CAVEAT.get(caveat.key, caveat.key)
        told = caveat.severity != "note" or key in _NOTED
        if told and key not in known and key not in NO_CHECKS:
            words = caveat.sentence
            found.append(plain_check(key, caveat.severity, words, outcome, binary=binary))
    return ordered_checks(found)


def checks_of_warnings(
    warnings: Iterable[tuple[type[HeckmanfaWarning], str]],
    known: Iterable[Check],
    outcome: str,
    *,
    binary: bool = False,
) -> list[Check]:
    """Return the warnings of a fit that no check says already."""
    said = {check.key for check in known if check.level != "ok"}
    found = []
    for kind, words in warnings:
        keys = CHECKS_OF_WARNING.get(kind, ("fit_warning",))
        if said.isdisjoint(keys):
            found.append(plain_check(keys[0], "caution", words, outcome, binary=binary))
    return found


def check_of_finding(finding: Finding, outcome: str, *, binary: bool = False) -> Check:
    """Return a line of the diagnostics as a check of a table with this outcome."""
    key = CHECK_OF_CAVEAT.get(finding.key, finding.key)
    about = check_words(key, binary=binary)
    level = _bounded(finding.verdict, about)
    value = true_minus(finding.short or finding.value)
    if level != "ok" and value == "none":
        # The title says so.
        value = ""
    meaning = true_minus(in_options(finding.meaning))
    name = _filled(about.name, finding, outcome)
    if level == "ok":
        return Check(key, level, f"{name}: {value}.", value, meaning, name=name)
    untested = finding.case == UNTESTED
    why = about.whys.get(finding.case, about.why)
    return Check(
        key=key,
        # What could not be tested is no sign of a fault.
        level="note" if untested else level,
        title=_title(about, finding, outcome),
        value=value,
        words=_filled(why, finding, outcome) if why and not untested else meaning,
        do=_filled(about.dos.get(finding.case, about.do), finding, outcome),
        name=name,
    )


def plain_check(
    key: str,
    level: Level,
    words: str,
    outcome: str,
    value: str = "",
    *,
    case: str = "",
    binary: bool = False,
) -> Check:
    """Return a check that is not fine, of what no finding says."""
    about = check_words(key, binary=binary)
    finding = Finding(key, about.name, value, "problem", words, case=case)
    check = check_of_finding(finding, outcome, binary=binary)
    return replace(check, level=_bounded(level, about))


def _bounded(level: Level, about: CheckWords) -> Level:
    """Return a level as grave as a check of this kind may be."""
    if level == "ok":
        return level
    return max(min(level, about.mildest, key=LEVELS.index), about.gravest, key=LEVELS.index)


def _title(about: CheckWords, finding: Finding, outcome: str) -> str:
    """Say in a sentence what is not fine."""
    title = about.titles.get(finding.case, about.title)
    if finding.case == UNTESTED and UNTESTED not in about.titles:
        title = f"Not tested: {about.name}."
    return _filled(title, finding, outcome)


def _filled(template: str, finding: Finding, outcome: str) -> str:
    """Put the names into words of ours."""
    return true_minus(template).format(outcome=shown(outcome), names=listed(finding.names))
