"""Did selection matter? One of three verdicts, with the number behind it.

*Yes*: the 95% interval of lambda's coefficient excludes zero, and at least 90% of the BIC weight
rejects rho = 0, where sets of features are weighed. *Too little to matter*: the 95% interval of rho
that allows for the search lies within 0.3 of zero, and the main effect moves by less than half its
standard error without the correction. Otherwise it cannot be told.

For a binary outcome, the likelihood-ratio test of rho = 0 decides in place of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence, StandInEvidence
from heckmanfa.results.held_rho_words import held_in_words
from heckmanfa.results.problems import is_crowded
from heckmanfa.results.reference import LEVEL, Wald
from heckmanfa.results.rho_tests import rho_lr
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.wording import chance_text, effects, p_equals

VerdictKind = Literal["yes", "little", "unknown", "not asked", "nothing missing"]

LITTLE_RHO = 0.3
"""a correlation of the errors up to this size matters little"""

_MOST_REJECT = 0.9
_MOVES_LITTLE = 0.5
# An interval of rho that reaches so far both ways says nothing.
_ANY_RHO = 0.99

_TITLES: dict[VerdictKind, str] = {
    "yes": "Yes",
    "little": "Too little to matter",
    "unknown": "Cannot be told",
    "nothing missing": "No outcome is missing: nothing to correct",
}


@dataclass(frozen=True)
class SelectionVerdict:
    """Whether selection mattered."""

    kind: VerdictKind
    title: str
    words: Passage
    """the numbers behind it"""
    sentence: Passage
    """the verdict in one sentence"""


def verdict(evidence: Evidence) -> SelectionVerdict:
    """Judge whether selection mattered."""
    if evidence.mode == "observed":
        fitted = "a plain probit" if evidence.words.is_binary else "least squares"
        words = passage("Every row has ", Name(evidence.outcome), f", so {fitted} is fitted.")
        sentence = passage("No outcome is missing, so there is no selection to correct for.")
        return _of("nothing missing", words, sentence)
    if evidence.window is not None or evidence.held is not None:
        kept = given_rho(evidence)
        return SelectionVerdict(
            "not asked",
            f"Not asked: {kept}",
            passage("So rho tests nothing, and has no interval."),
            passage(f"Whether selection mattered was not asked: {kept}."),
        )
    if evidence.no_exclusion:
        words = join([_correction(evidence), passage("Only the normality of the errors says so.")])
        # Without chances, the headline says why.
        why = ": no feature drives selection alone." if evidence.has_chances else " either."
        sentence = passage(f"Whether selection mattered cannot be told{why}")
        return _of("unknown", words, sentence)
    if _mattered(evidence):
        return _of("yes", join([_correction(evidence), _weight(evidence)]), _yes(evidence))
    if _is_little(evidence):
        return _of("little", _why_little(evidence), _little(evidence))
    it = "rho" if evidence.words.is_binary else "it"
    words = join([_correction(evidence), _hangs_on(evidence.stand_in, it) or _weight(evidence)])
    return _of("unknown", words, _unknown(evidence))


def given_rho(evidence: Evidence) -> str:
    """Say in which window rho was kept, or at which value it was held."""
    if evidence.held is not None:
        return f"rho was {held_in_words(evidence.held)}"
    assert evidence.window is not None
    low, high = (f"{end:g}".replace("-", "\u2212") for end in evidence.window)
    return f"rho was kept in [{low}, {high}]"


def _of(kind: VerdictKind, words: Passage, sentence: Passage) -> SelectionVerdict:
    return SelectionVerdict(kind, _TITLES[kind], words, sentence)


def _tested(evidence: Evidence) -> tuple[str, Effect]:
    """What is tested: rho after maximum likelihood, otherwise lambda's coefficient."""
    if evidence.fit.spec.method == "ml":
        return "rho", evidence.rho
    return "The correction (lambda)", evidence.imr


def _mattered(evidence: Evidence) -> bool:
    excluded = _rejects(evidence)
    # Honest rows had no part in the choice, so their interval needs no weights beside it.
    if evidence.mode == "given" or evidence.pseudo or evidence.honest:
        return excluded
    return excluded if evidence.corrected is None else evidence.corrected >= _MOST_REJECT


def _rejects(evidence: Evidence) -> bool:
    """Whether rho = 0 is rejected at 5%: of a binary outcome by the likelihood ratio."""
    ratio = ratio_of(evidence)
    if ratio is not None:
        return ratio.p_value < LEVEL
    return _tested(evidence)[1].excludes_zero


def ratio_of(evidence: Evidence) -> Wald | None:
    """The likelihood-ratio test of rho = 0 of a binary outcome, if there is one."""
    ratio = rho_lr(evidence.fit) if evidence.fit.is_binary else None
    return None if ratio is None or ratio.note else ratio


def _is_little(evidence: Evidence) -> bool:
    main, ends = evidence.main, evidence.rho_with_search
    if main is None or ends is None or not main.least_squares.known:
        return False
    if is_crowded(evidence.fit):
        # The correction is then too small, and so is rho.
        return False
    moved = abs(main.effect.estimate - main.least_squares.estimate)
    inside = max(-ends[0], ends[1]) <= LITTLE_RHO
    return inside and moved < _MOVES_LITTLE * main.effect.std_error


def _correction(evidence: Evidence) -> Passage:
    what, effect = _tested(evidence)
    value, low, high = effects(effect.estimate, effect.low, effect.high)
    if not effect.has_interval:
        return passage(f"{what} is {value}; its interval is not known.")
    said = passage(f"{what} is {value}, 95% interval {low} to {high}.")
    if not evidence.words.is_binary:
        return said
    ratio, test = ratio_of(evidence), passage()
    if ratio is not None:
        test = passage(f"The likelihood-ratio test of rho = 0 has {p_equals(ratio.p_value)}.")
    return join([said, test, _moved(evidence)])


def _moved(evidence: Evidence) -> Passage:
    """Say how far the correction moves the main effect on a probability."""
    main = evidence.main
    if main is None or not main.least_squares.known or evidence.no_exclusion:
        return passage()
    words = evidence.words
    mine, other = words.numbers(main.effect.estimate, main.least_squares.estimate)
    return passage(
        "The effect of ",
        Name(main.name),
        f" is {mine} {words.unit} with the correction and {other} without.",
    )


def _weight(evidence: Evidence) -> Passage:
    if evidence.corrected is None:
        return passage()
    return passage(
        f"Of the weight (by BIC), {chance_text(evidence.corrected)} holds the correction."
    )


def _hangs_on(stand_in: StandInEvidence | None, it: str) -> Passage:
    """Say with which feature lambda or rho is significant, and without which not."""
    if stand_in is None:
        return passage()
    name = Name(stand_in.name)
    shares = {"without ": stand_in.corrected_without, "with ": stand_in.corrected_with}
    more, less = sorted(shares, key=lambda which: -shares[which])
    if shares[more] >= _MOST_REJECT and shares[less] < 1.0 - _MOST_REJECT:
        said = f" {it} is significant ({chance_text(shares[more])} of the weight); {less}"
        end = f" it is not ({chance_text(shares[less])})."
    else:
        said = f" {it} is significant in {chance_text(shares[more])} of the weight; {less}"
        end = f" in {chance_text(shares[less])}."
    return passage(more.capitalize(), name, said, name, end)


def _yes(evidence: Evidence) -> Passage:
    _, effect = _tested(evidence)
    if evidence.corrected is not None:
        share = chance_text(evidence.corrected)
        return passage(f"Selection mattered: {share} of the weight (by BIC) holds the correction.")
    low, high = effects(effect.low, effect.high)
    ratio = ratio_of(evidence)
    if ratio is not None:
        (rho,) = effects(effect.estimate)
        test = f"({p_equals(ratio.p_value)}, likelihood ratio)"
        return passage(f"Selection mattered: rho is {rho}, and differs from 0 {test}.")
    of = "rho" if evidence.fit.spec.method == "ml" else "lambda"
    return passage(f"Selection mattered: the 95% interval of {of} is {low} to {high}.")


def _why_little(evidence: Evidence) -> Passage:
    main = evidence.main
    assert main is not None
    assert evidence.rho_with_search is not None
    rho, low, high = effects(evidence.rho.estimate, *evidence.rho_with_search)
    words = evidence.words
    (moved,) = words.numbers(abs(main.effect.estimate - main.least_squares.estimate))
    unit = f" {words.unit}" if words.unit else ""
    return passage(
        f"rho is {rho}, 95% interval {low} to {high}. Without the correction, the effect of ",
        Name(main.name),
        f" moves by {moved}{unit}, less than half its standard error.",
    )


def _little(evidence: Evidence) -> Passage:
    assert evidence.rho_with_search is not None
    low, high = effects(*evidence.rho_with_search)
    return passage(f"Selection mattered too little to change this: rho is {low} to {high} (95%).")


def _but_includes_zero(evidence: Evidence) -> str:
    _, effect = _tested(evidence)
    if not effect.has_interval:
        return ""
    low, high = effects(effect.low, effect.high)
    of = "rho" if evidence.fit.spec.method == "ml" else "lambda"
    return f", but the 95% interval of {of} is {low} to {high}"


def _unknown(evidence: Evidence) -> Passage:
    ends = evidence.rho_with_search
    if evidence.corrected is not None and (ends is None or ends[0] * ends[1] > 0.0):
        share = chance_text(evidence.corrected)
        # So much weight would say yes: what keeps it from that is the interval.
        but = _but_includes_zero(evidence) if evidence.corrected >= _MOST_REJECT else ""
        return passage(
            f"Whether selection mattered cannot be told: {share} of the weight (by BIC) holds the "
            f"correction{but}."
        )
    if ends is None:
        return passage("Whether selection mattered cannot be told.")
    if min(-ends[0], ends[1]) > _ANY_RHO:
        return passage("Whether selection mattered cannot be told: rho may have any value.")
    low, high = effects(*ends)
    # Beside it stands the interval of the chosen features' rho, which is another.
    searched = evidence.words.is_binary and evidence.mode == "chosen" and not evidence.honest
    allows = " that allows for the search" * searched
    return passage(
        f"Whether selection mattered cannot be told: the 95% interval of rho{allows} is {low} to "
        f"{high}."
    )
