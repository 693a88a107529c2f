"""The first lines of an answer: which features predict, or how much one matters, and the verdict.

The verdict of `heckmanfa.results.judgement` on whether selection mattered is put into words here,
with its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heckmanfa.results.average_tables import ALWAYS, SURELY, UNTOLD
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.judgement import VerdictKind
from heckmanfa.results.naming import held_in_words
from heckmanfa.text.chances import BY
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    NO_EXCLUSION,
    ONLY_NORMALITY,
    capitalised,
    chance_text,
    effects,
    p_equals,
    plural,
    true_minus,
    window_text,
)

_NAMED = 3


def headline(evidence: Evidence) -> Passage:
    """Say what was found in one or two short sentences."""
    if evidence.way.halves_rows:
        return _of_halves(evidence)
    if not evidence.has_chances:
        return _of_effect(evidence)
    sure, unsure, rest = evidence.by_certainty()
    y = Name(evidence.outcome)
    if not sure:
        return _nothing_sure(evidence)
    if len(sure) <= _NAMED:
        does = " predicts " if len(sure) == 1 else " predict "
        first = passage(named([feature.name for feature in sure]), does, y, ".")
    else:
        total = len(sure) + len(unsure) + len(rest)
        which = f"All {total}" if len(sure) == total else f"{len(sure)} of {total}"
        first = passage(f"{which} features predict ", y, ".")
        if any(not feature.candidate for feature in evidence.features):
            # The user keeps some out.
            first = passage(f"{which} features that may predict ", y, " do.")
    return join([first, _about_others(unsure, rest)])


def _about_others(unsure: Sequence[FeatureEvidence], rest: Sequence[FeatureEvidence]) -> Passage:
    if len(unsure) == 1:
        return passage("For ", Name(unsure[0].name), " the data cannot say.")
    if unsure:
        return passage(f"For {len(unsure)} other features the data cannot say.")
    if len(rest) == 1:
        return passage("There is no sign that ", Name(rest[0].name), " does.")
    return passage(f"There is no sign that the other {len(rest)} do.") if rest else passage()


def _nothing_sure(evidence: Evidence) -> Passage:
    weighed = evidence.weighed
    likeliest = max(weighed, key=lambda feature: (feature.chance or 0.0, abs(feature.effect.z)))
    assert likeliest.chance is not None
    other = "other " if any(feature.role == ALWAYS for feature in evidence.features) else ""
    y, said = Name(evidence.outcome), chance_text(likeliest.chance)
    if likeliest.role in UNTOLD:
        start = passage(f"No {other}feature surely predicts ", y, "; ")
    else:
        start = passage(f"There is no sign that any {other}feature predicts ", y, "; ")
    if len(weighed) == 1:
        if likeliest.role in UNTOLD:
            return passage(
                "Whether ", Name(likeliest.name), " predicts ", y, f" cannot be told ({said})."
            )
        return passage(
            "There is no sign that ", Name(likeliest.name), " predicts ", y, f" ({said})."
        )
    return passage(start, Name(likeliest.name), f" is the likeliest ({said}).")


def _of_halves(evidence: Evidence) -> Passage:
    """Headline of an honest search, which counts the halves that chose a feature."""
    y, n = Name(evidence.outcome), plural(evidence.way.n_halves, "random half", "random halves")
    counted, chosen = evidence.weighed, evidence.chosen_by_halves
    if not chosen:
        first = passage(f"In at least half of {n}, no feature was chosen to predict ", y)
        likeliest = max(counted, key=lambda feature: feature.chance or 0.0, default=None)
        if likeliest is None or not likeliest.chance:
            return passage(first, ".")
        share = evidence.share_words(likeliest)
        return passage(first, "; ", Name(likeliest.name), f" came closest ({share}).")
    if len(chosen) == 1:
        return passage(
            Name(chosen[0].name),
            " was chosen to predict ",
            y,
            f" in {evidence.share_words(chosen[0])} halves.",
        )
    who = named([feature.name for feature in chosen])
    if len(chosen) > _NAMED:
        who = passage(f"{len(chosen)} of {len(counted)} features")
    return passage(who, " were chosen to predict ", y, f" in at least half of {n}.")


def _of_effect(evidence: Evidence) -> Passage:
    """Headline without chances: the clearest effect."""
    y, main = Name(evidence.outcome), evidence.main
    if main is None:
        return passage("No feature is taken to predict ", y, ": there is an intercept alone.")
    if evidence.no_exclusion:
        return passage("What goes with ", y, f" is hardly identified: {NO_EXCLUSION}.")
    change = evidence.naming.change_of(main.lead)
    said = passage(change, " goes with ", evidence.amount(main.effect), ".")
    if evidence.held is not None:
        return passage(f"With rho {held_in_words(evidence.held)}, ", said)
    if evidence.way.is_corrected:
        return passage("With selection accounted for, ", said)
    if len(evidence.candidates) > 1:
        return passage("With the other features held equal, ", said)
    first, *others = said.parts
    if isinstance(first, str):
        return Passage((first[0].upper() + first[1:], *others))
    return said


def interval_words(evidence: Evidence, main: FeatureEvidence, *, start: bool = False) -> Passage:
    """Give the interval of an effect and its kind, without a full stop; ``start`` a sentence."""
    effect, spec = main.effect, evidence.fit.spec
    if not effect.has_interval:
        return passage(f"{'Its' if start else 'its'} interval is not known")
    _, low, high = evidence.words.numbers(effect.estimate, effect.low, effect.high)
    kind: tuple[str | Name, ...] = ()
    if spec.cov_type == "robust":
        kind = (", robust",)
    elif spec.cov_type == "cluster":
        cluster = evidence.naming.cluster
        kind = (", clustered by ", Name(cluster)) if cluster else (", clustered",)
    # A chance is about whether it predicts; an interval lets everything else in as well.
    if main.role in SURELY and not effect.excludes_zero:
        kind = (*kind, ", which does not tell its sign")
    return passage(f"95% interval {low} to {high}", *kind)


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

    title: str
    words: Passage
    """the numbers behind it"""
    sentence: Passage
    """the verdict in one sentence"""


def verdict(evidence: Evidence) -> SelectionVerdict:
    """Put into words whether selection mattered."""
    title = _TITLES.get(evidence.judgement.kind) or f"Not asked: {given_rho(evidence)}"
    return SelectionVerdict(title, _numbers(evidence), _sentence(evidence))


def given_rho(evidence: Evidence) -> str:
    """Say in which window rho was kept, at which value it was held, or where the correction is."""
    if evidence.held is not None:
        return f"rho was {held_in_words(evidence.held)}"
    if evidence.window is not None:
        return f"rho was kept in {true_minus(window_text(evidence.window))}"
    never = evidence.way.averaging.mixture.correction == "never"
    return f"{'no' if never else 'every'} set of features has the correction"


def rivals_of(evidence: Evidence) -> Passage:
    """Say what the correction competes with, if it cannot be told; empty otherwise.

    A sentence without its full stop.
    """
    judged, y = evidence.judgement, Name(evidence.outcome)
    if judged.kind != "unknown" or judged.chance is None:
        return passage()
    if judged.rival == "index":
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
    judged = evidence.judgement
    chance = "" if judged.chance is None else chance_text(judged.chance)
    match judged.kind:
        case "nothing missing":
            return passage("No outcome is missing, so there is no selection to correct for.")
        case "not asked":
            return passage(f"Whether selection mattered was not asked: {given_rho(evidence)}.")
        case "not weighed":
            return passage("Whether selection mattered was not weighed.")
        case "unreliable":
            why = f"the model is not to be relied on ({judged.doubt})"
            return passage(f"Whether selection mattered is not known: {why}.")
        case "no sign":
            return passage(f"There is no sign that selection mattered (chance {chance}).")
        case "yes" if judged.test is None and judged.exclusion_named:
            return passage(f"Selection mattered (chance {chance}).")
        case "yes" if judged.test is None:
            return passage(f"Selection mattered (chance {chance}), if the errors are normal.")
        case "yes":
            assert judged.test is not None
            rejected = f"rho = 0 is rejected ({p_equals(judged.test.p_value)})"
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
        why = f": {NO_EXCLUSION}." if evidence.has_chances else " either."
        return passage(f"{start}{why}")
    rho = evidence.rho
    if not rho.has_interval:
        return passage(f"{start}.")
    if min(-rho.low, rho.high) > _ANY_RHO:
        return passage(f"{start}: rho may have any value.")
    low, high = effects(rho.low, rho.high)
    return passage(f"{start}: the 95% interval of rho is {low} to {high}.")


def _numbers(evidence: Evidence) -> Passage:
    """Give the numbers behind the verdict."""
    judged = evidence.judgement
    match judged.kind:
        case "nothing missing":
            fitted = evidence.fit.family.words.plain
            return passage("Every row has ", Name(evidence.outcome), f", so {fitted} is fitted.")
        case "not asked":
            return passage("So rho tests nothing, and has no interval.")
        case "unreliable":
            return passage(f"{capitalised(judged.doubt)}.")
    if judged.chance is None and judged.doubt and evidence.way.is_average:
        return passage(f"{capitalised(judged.doubt)}, so it was left out.")
    if evidence.no_exclusion and judged.chance is None:
        only = passage(f"{capitalised(ONLY_NORMALITY)}.")
        return join([_correction(evidence), only])
    weighed = passage()
    if judged.chance is not None:
        chance = chance_text(judged.chance)
        share = f"its share of the weight of all sets, by {BY}"
        weighed = passage(f"The correction has a chance of {chance}: {share}.")
    elif judged.kind == "not weighed":
        weighed = passage(evidence.chances_missing or "Sets of features were not weighed.")
    rivals = rivals_of(evidence)
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
