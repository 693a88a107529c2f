"""Did selection matter? The verdict of `heckmanfa.results.judgement`, in words with its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.results.effect_words import held_in_words
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.judgement import VerdictKind
from heckmanfa.text.chances import BY
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.wording import chance_text, effects, p_equals

LITTLE_RHO = 0.3
"""how far rho is let run either way where nothing but normality identifies it"""

# An interval of rho that reaches so far both ways says nothing.
_ANY_RHO = 0.99

_TITLES: dict[VerdictKind, str] = {
    "yes": "Yes",
    "no sign": "No sign of it",
    "unknown": "Cannot be told",
    "unreliable": "Not to be relied on",
    "not weighed": "Not weighed",
    "nothing missing": "No outcome is missing: nothing to correct",
}


@dataclass(frozen=True)
class SelectionVerdict:
    """Whether selection mattered, in words."""

    kind: VerdictKind
    chance: float | None
    """of the correction; None if sets of features were not weighed"""
    title: str
    words: Passage
    """the numbers behind it"""
    sentence: Passage
    """the verdict in one sentence"""
    rivals: Passage
    """what it competes with, a sentence without its full stop; empty unless it cannot be told"""


def verdict(evidence: Evidence) -> SelectionVerdict:
    """Put into words whether selection mattered."""
    found = evidence.judgement
    title = _TITLES.get(found.kind) or f"Not asked: {given_rho(evidence)}"
    rivals = rivals_of(evidence)
    return SelectionVerdict(
        found.kind, found.chance, title, _numbers(evidence, rivals), _sentence(evidence), rivals
    )


def given_rho(evidence: Evidence) -> str:
    """Say in which window rho was kept, at which value it was held, or where the correction is."""
    if evidence.held is not None:
        return f"rho was {held_in_words(evidence.held)}"
    if evidence.window is not None:
        low, high = (f"{end:g}".replace("-", "\u2212") for end in evidence.window)
        return f"rho was kept in [{low}, {high}]"
    never = evidence.way.averaging.mixture.correction == "never"
    return f"{'no' if never else 'every'} set of features has the correction"


def rivals_of(evidence: Evidence) -> Passage:
    """Say what the correction competes with, if it cannot be told; empty otherwise.

    A sentence without its full stop.
    """
    found, y = evidence.judgement, Name(evidence.outcome)
    if found.kind != "unknown" or found.chance is None:
        return passage()
    if found.rival == "index":
        return passage("Either selection mattered, or what drives selection moves ", y, " too")
    stand_in = evidence.stand_in
    if stand_in is None:
        return passage()
    name = Name(stand_in.name)
    if stand_in.corrected_without > stand_in.corrected_with:
        return passage("Either selection mattered, or ", name, " predicts ", y)
    return passage("Either selection mattered and ", name, " predicts ", y, ", or neither")


def tested(evidence: Evidence) -> tuple[str, Effect]:
    """What carries the correction: rho if the outcome is binary or after ML, otherwise lambda."""
    if evidence.fit.spec.method == "ml":
        return "rho", evidence.rho
    return "lambda", evidence.imr


def correction_words(evidence: Evidence) -> str:
    """Give the estimate that carries the correction, with its interval, as a clause."""
    what, effect = tested(evidence)
    value, low, high = effects(effect.estimate, effect.low, effect.high)
    of = {"lambda": "coefficient of lambda"}.get(what, what)
    if not effect.has_interval:
        return f"{of} {value}"
    return f"{of} {value}, 95% interval {low} to {high}"


def _sentence(evidence: Evidence) -> Passage:
    """Say in one sentence whether selection mattered."""
    found = evidence.judgement
    chance = "" if found.chance is None else chance_text(found.chance)
    match found.kind:
        case "nothing missing":
            return passage("No outcome is missing, so there is no selection to correct for.")
        case "not asked":
            return passage(f"Whether selection mattered was not asked: {given_rho(evidence)}.")
        case "not weighed":
            return passage("Whether selection mattered was not weighed.")
        case "unreliable":
            why = f"the model is not to be relied on ({found.doubt})"
            return passage(f"Whether selection mattered is not known: {why}.")
        case "no sign":
            return passage(f"There is no sign that selection mattered (chance {chance}).")
        case "yes" if found.test is None and found.exclusion_named:
            return passage(f"Selection mattered (chance {chance}).")
        case "yes" if found.test is None:
            return passage(f"Selection mattered (chance {chance}), if the errors are normal.")
        case "yes":
            assert found.test is not None
            rejected = f"rho = 0 is rejected ({p_equals(found.test.p_value)})"
            return passage(f"Selection mattered, given the exclusions: {rejected}.")
    return _unknown(evidence, chance)


def _unknown(evidence: Evidence, chance: str) -> Passage:
    rivals = rivals_of(evidence)
    if rivals:
        return rivals + ": these data do not tell."
    start = "Whether selection mattered cannot be told"
    if chance:
        return passage(f"{start} (chance {chance}).")
    if evidence.judgement.doubt and evidence.way.is_average:
        return passage(f"{start}: {evidence.judgement.doubt}.")
    if evidence.no_exclusion:
        # The headline says why, without chances.
        why = ": no feature drives selection alone." if evidence.has_chances else " either."
        return passage(f"{start}{why}")
    rho = evidence.rho
    if not rho.has_interval:
        return passage(f"{start}.")
    if min(-rho.low, rho.high) > _ANY_RHO:
        return passage(f"{start}: rho may have any value.")
    low, high = effects(rho.low, rho.high)
    return passage(f"{start}: the 95% interval of rho is {low} to {high}.")


def _numbers(evidence: Evidence, rivals: Passage) -> Passage:
    """Give the numbers behind the verdict."""
    found = evidence.judgement
    match found.kind:
        case "nothing missing":
            fitted = evidence.fit.family.words.plain
            return passage("Every row has ", Name(evidence.outcome), f", so {fitted} is fitted.")
        case "not asked":
            return passage("So rho tests nothing, and has no interval.")
        case "unreliable":
            return passage(f"{found.doubt[0].upper()}{found.doubt[1:]}.")
    if found.chance is None and found.doubt and evidence.way.is_average:
        return passage(f"{found.doubt[0].upper()}{found.doubt[1:]}, so it was left out.")
    if evidence.no_exclusion and found.chance is None:
        only = passage("Only the normality of the errors says so.")
        return join([_correction(evidence), only])
    weighed = passage()
    if found.chance is not None:
        chance = chance_text(found.chance)
        share = f"its share of the weight of all sets, by {BY}"
        weighed = passage(f"The correction has a chance of {chance}: {share}.")
    elif found.kind == "not weighed":
        weighed = passage(evidence.chances_missing or "Sets of features were not weighed.")
    against = rivals + "." if rivals else rivals
    return join([weighed, against, _correction(evidence), _with_all(evidence)])


def _correction(evidence: Evidence) -> Passage:
    """Give the estimate of the correction, and of which sets it is."""
    what, effect = tested(evidence)
    value, low, high = effects(effect.estimate, effect.low, effect.high)
    name = "The coefficient of lambda" if what == "lambda" else what
    if not effect.has_interval:
        said = passage(f"{name} is {value}; its interval is not known.")
    else:
        how = evidence.way.words.of_search if evidence.way.ignores_search else ""
        held = evidence.way.is_average and evidence.judgement.kind == "yes"
        if held:
            how = " over the sets that hold it"
        said = passage(f"{name} is {value}, 95% interval {low} to {high}{how}.")
        if held and not effect.excludes_zero:
            said = join([said, passage("Its sign cannot be told.")])
    test = evidence.judgement.test
    if not evidence.fit.family.is_bounded or test is None or test.note:
        return said
    kind = "likelihood-ratio" if evidence.fit.log_likelihood is not None else "Wald"
    ratio = passage(f"The {kind} test of rho = 0 has {p_equals(test.p_value)}.")
    return join([said, ratio, _moved(evidence)])


def _with_all(evidence: Evidence) -> Passage:
    """Give the test of the correction with all features, which no search had a part in."""
    whole = evidence.judgement.all_features
    if whole is None or whole.test.note:
        return passage()
    (value,), p = effects(whole.estimate), p_equals(whole.test.p_value)
    return passage(f"With all features it is {value}, and the test of rho = 0 has {p}.")


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
