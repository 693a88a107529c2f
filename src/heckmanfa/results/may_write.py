"""What may be written: a sentence for each claim, true as it stands, for a paper and a newspaper.

There are two or three: about the main effect, about which features predict, and about whether
selection mattered. If a check says that the answer is not to be relied on, none has an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heckmanfa.results.checks import Check, badge
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.headline import interval_words
from heckmanfa.results.lede import begin, differ, lede, span, without_outcome
from heckmanfa.results.naming import held_in_words
from heckmanfa.results.search_facts import describe_average, describe_search
from heckmanfa.results.selection_numbers import correction_words, given_rho, rivals_of
from heckmanfa.text.chances import BY
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    MINUS,
    NO_EXCLUSION,
    ONLY_NORMALITY,
    capitalised,
    chance_text,
    count,
    p_equals,
    plural,
)

MOST_WORDS = 60
"""of a sentence that may be copied"""

# Features named one by one, as far as the words allow.
_NAMED = (6, 4, 3, 2, 1)
# Features that a newspaper names.
_NEWS = 3
# A chance of at least this is almost certain to a newspaper.
_CERTAIN = 0.99
_AS_KNOWN = "the interval takes the chosen features as known"
CARE = "Checks of the model call for care."

About = Literal["effect", "features", "whom", "selection"]
"""what a sentence is about"""

TITLES: dict[About, str] = {
    "effect": "How much",
    "features": "Which features",
    "whom": "For whom",
    "selection": "Whether selection mattered",
}


@dataclass(frozen=True)
class Sentence:
    """What may be written about one claim, in `MOST_WORDS` words at most."""

    key: About
    paper: Passage
    """for readers who know the method"""
    news: Passage
    """for everyone"""

    def __str__(self) -> str:
        """Return the sentence for a paper."""
        return str(self.paper)

    @property
    def title(self) -> str:
        """What it is about, in a few words."""
        return TITLES[self.key]


def may_write(evidence: Evidence, checks: Sequence[Check] = ()) -> tuple[Sentence, ...]:
    """Return what may be written about an answer, a sentence for each claim.

    ``checks`` are those of the answer, the gravest first.
    """
    if badge(checks)[0] == "problem" or evidence.no_exclusion:
        return _unreliable(evidence, checks)
    if not evidence.way.is_corrected:
        # The last sentence says that no outcome is missing.
        checks = [check for check in checks if check.key != "selection"]
    written = [
        Sentence("effect", _effect(evidence, checks), _effect_news(evidence, checks)),
        Sentence("features", _features(evidence), _features_news(evidence)),
        Sentence("selection", _selection(evidence), lede(evidence)),
    ]
    return tuple(sentence for sentence in written if sentence.paper)


def n_words(words: Passage) -> int:
    """Count the words of a passage."""
    return len(str(words).split())


def fitting(*versions: Passage) -> Passage:
    """Return the first version that is short enough, or the last."""
    short = (words for words in versions if n_words(words) <= MOST_WORDS)
    return next(short, versions[-1])


def _rows(evidence: Evidence) -> str:
    """Count the rows of the fit."""
    counts = evidence.fit.row_counts
    selected = counts["selected"]
    total = selected + counts.get("unselected", 0)
    if not evidence.way.is_corrected:
        return plural(total, "row")
    return f"{plural(total, 'row')}, {count(selected)} with an outcome"


def _unreliable(evidence: Evidence, checks: Sequence[Check]) -> tuple[Sentence, ...]:
    """Say that nothing was found that may be relied on, and why."""
    y, whether = Name(evidence.outcome), passage("Whether ", differ(evidence))
    first = passage("The model of ", y, f" ({_rows(evidence)}) is not to be relied on.")
    why = [passage(check.title) for check in checks if check.level == "problem"]
    last = passage("No estimate of it is reported as a finding.")
    paper = fitting(join([first, *why, last]), join([first, *why[:1], last]), join([first, last]))
    news = passage("These data do not allow a reliable statement about what goes with ", y, ".")
    known = passage(whether, " is not known: the model is not to be relied on.")
    unknown = passage(whether, " is not known.")
    if not evidence.way.is_corrected:
        known = unknown = lede(evidence)
    return Sentence("effect", paper, news), Sentence("selection", known, unknown)


# How much. ----------------------------------------------------------------------------------------


def _effect(evidence: Evidence, checks: Sequence[Check]) -> Passage:
    """Give the main effect with its interval, how it was found, and what ignores selection."""
    main, y, care = evidence.main, Name(evidence.outcome), gravest(checks)
    if main is None or not main.effect.known:
        verb = "was chosen to predict " if evidence.way.chose else "is in the model of "
        return join([passage(f"No feature {verb}", y, f" ({_rows(evidence)})."), care])
    change = evidence.naming.change_of(main.lead)
    start = passage("Allowing for selection, ", change)
    if not evidence.way.is_corrected:
        start = passage(f"{evidence.fit.family.words.by_naive}, ", change)
    elif evidence.held is not None:
        start = passage(f"With rho {held_in_words(evidence.held)}, ", change)
    said = passage(start, " went with ", evidence.amount(main.effect))
    averaged = passage()
    if evidence.words.averaged:
        averaged = passage(f"average marginal effect{evidence.words.averaged}")
    ends, rows, plain = (
        interval_words(evidence, main),
        passage(_rows(evidence)),
        _least_squares(evidence, main),
    )
    known = passage(_AS_KNOWN) if evidence.way.ignores_search else passage()
    details = (
        [ends, averaged, _how(evidence), rows, plain],
        [ends, averaged, _how(evidence), rows],
        [ends, known, averaged, rows, plain],
        [ends, known],
    )
    return fitting(
        *(join([passage(said, " (", join(inside, "; "), ")."), care]) for inside in details)
    )


def _effect_news(evidence: Evidence, checks: Sequence[Check]) -> Passage:
    """Say the main effect to everyone, with how far it may be off in words."""
    main, y = evidence.main, Name(evidence.outcome)
    care = passage(CARE) if gravest(checks) else passage()
    if main is None or not main.effect.known:
        return join([passage("These data show nothing that goes with ", y, "."), care])
    effect, link = main.effect, passage("This is a link, not proof of a cause.")
    said = passage(evidence.naming.change_of(main.lead), " goes with ", _amount(evidence, effect))
    if evidence.held is not None:
        said = passage("With the assumed strength of selection, ", said)
    elif evidence.way.is_corrected:
        said = passage("Allowing for ", without_outcome(evidence), ", ", said)
    said = begin(said)
    unsure = passage("; how precise that is, is not known")
    if effect.has_interval:
        unsure = passage("; the true figure plausibly lies anywhere from ", span(evidence, effect))
    return fitting(join([passage(said, unsure, "."), link, care]), passage(said, unsure, "."))


def _amount(evidence: Evidence, effect: Effect) -> Passage:
    """Say how much more or less of the outcome an effect is, without the letter of a formula."""
    words = evidence.words
    if not evidence.fit.family.has_classes:
        return passage("about ", evidence.amount(effect))
    size = words.numbers(effect.estimate, effect.low, effect.high)[0].removeprefix(MINUS)
    which = "higher" if effect.estimate >= 0.0 else "lower"
    # P(y = 'yes') without its brackets.
    _, *inner, last = words.target.parts
    event = passage(*inner, str(last).removesuffix(")"))
    return passage("a chance of ", event, f" that is about {size} {words.unit} {which}")


def _how(evidence: Evidence) -> Passage:
    """Say how the estimate was found."""
    fit = evidence.fit
    steps = "maximum likelihood" if fit.spec.method == "ml" else "two steps"
    if "two steps" not in fit.family.supports:
        steps = fit.family.words.model
    if not evidence.way.is_corrected:
        return passage()
    if evidence.way.is_average:
        sampling = " of a pseudo-likelihood, with sampling weights" if evidence.pseudo else ""
        features = plural(len(evidence.candidates), "feature")
        return passage(f"{describe_average(fit)}{sampling}; {features}; {steps}")
    if evidence.way.chose:
        which = named(evidence.chosen, _NAMED[0]) if evidence.chosen else passage("no feature")
        known = "; the interval takes that as known" if evidence.way.ignores_search else ""
        chosen = " chosen to predict," if known else ""
        return passage(which, f"{chosen} {describe_search(fit)}{known}; {steps}")
    return passage(f"features chosen beforehand; {steps}")


def _least_squares(evidence: Evidence, main: FeatureEvidence) -> Passage:
    if not evidence.way.is_corrected or not main.least_squares.known:
        return passage()
    words = evidence.words
    _, value = words.numbers(main.effect.estimate, main.least_squares.estimate)
    return passage(f"{words.naive}: {value}")


# Which features. ----------------------------------------------------------------------------------


def _features(evidence: Evidence) -> Passage:
    """Say which features predict as far as that is known, and for which it cannot be told."""
    y = Name(evidence.outcome)
    if evidence.way.halves_rows:
        return _of_halves(evidence)
    if not evidence.has_chances:
        return _chosen(evidence)
    return fitting(*(_with_chances_of(evidence, y, most) for most in _NAMED))


def _with_chances_of(evidence: Evidence, y: Name, most: int) -> Passage:
    sure, unsure, _ = evidence.by_certainty()
    said = []
    if sure:
        verb = "predicts" if len(sure) == 1 else "predict"
        first = _with_chances(sure, "chance ", most)
        said.append(passage(f"By {BY} weights, ", first, f" {verb} ", y, "."))
    if unsure:
        start = "Whether " if sure else f"By {BY} weights, whether "
        verb = "predicts" if len(unsure) == 1 else "predict"
        first = _with_chances(unsure, "" if sure else "chance ", most)
        said.append(passage(start, first, f" {verb} ", y, " cannot be told."))
    if not said:
        nothing = f"By {BY} weights, there is no sign that any feature predicts "
        said.append(passage(nothing, y, "."))
    return join(said)


def _features_news(evidence: Evidence) -> Passage:
    """Say which features predict to everyone."""
    y = Name(evidence.outcome)
    if evidence.way.halves_rows:
        return _of_halves(evidence)
    if not evidence.has_chances:
        return _chosen(evidence)
    sure, unsure, rest = evidence.by_certainty()
    n = len(sure) + len(unsure) + len(rest)
    helps = "helps" if len(sure) == 1 else "help"
    who = named([feature.name for feature in sure])
    if len(sure) > _NEWS:
        who = passage(f"{'All' if len(sure) == n else f'{len(sure)} of'} {n} features")
    surely = all((feature.chance or 0.0) >= _CERTAIN for feature in sure)
    first = passage(
        who, f" {'almost certainly' if surely else 'very probably'} {helps} to predict ", y
    )
    if not sure:
        first = passage("Of no feature it is clear that it helps to predict ", y)
    if len(unsure) == 1:
        return passage(first, "; for ", Name(unsure[0].name), " these data do not say.")
    if unsure:
        others = "others" if sure else "features"
        return passage(first, f"; for {len(unsure)} {others} these data do not say.")
    return passage(first, ".")


def _of_halves(evidence: Evidence) -> Passage:
    main = evidence.main
    if main is None or main.chance is None:
        return passage()
    share = evidence.share_words(main)
    return passage(Name(main.name), f" was chosen in {share} random halves of the rows.")


def _chosen(evidence: Evidence) -> Passage:
    """Name what a search chose without chances; nothing if features were named beforehand."""
    if not evidence.way.chose or not evidence.chosen:
        return passage()
    was = "was" if len(evidence.chosen) == 1 else "were"
    return passage(
        *(named(evidence.chosen, _NAMED[0]), f" {was} chosen to predict "),
        *(Name(evidence.outcome), "; how sure that is was not computed."),
    )


def _with_chances(features: Sequence[FeatureEvidence], what: str, limit: int) -> Passage:
    """Name features with their chances; the first says what the numbers are."""
    most = limit if len(features) <= limit else max(limit - 1, 1)
    parts = [
        passage(
            Name(feature.name), f" ({'' if place else what}{chance_text(feature.chance or 0.0)})"
        )
        for place, feature in enumerate(features[:most])
    ]
    if len(features) > most:
        return passage(join(parts, ", "), f" and {len(features) - most} more")
    if len(parts) == 1:
        return parts[0]
    return passage(join(parts[:-1], ", "), " and ", parts[-1])


# Whether selection mattered. ----------------------------------------------------------------------


def _selection(evidence: Evidence) -> Passage:
    """Say whether selection on what was not observed took place, as far as that is known."""
    judged, what = evidence.judgement, "selection on what was not observed"
    numbers = correction_words(evidence)
    if judged.chance is not None:
        numbers = f"chance {chance_text(judged.chance)} by {BY} weights; {numbers}"
    test = judged.test
    if test is not None and not test.note:
        numbers += f"; {evidence.fit.family.words.test}: {p_equals(test.p_value)}"
    match judged.kind:
        case "nothing missing":
            return lede(evidence)
        case "not asked":
            return passage(f"Whether {what} took place was not asked: {given_rho(evidence)}.")
        case "yes" if test is not None:
            return passage(
                f"If the features kept out of the prediction have no effect of their own, {what} "
                f"took place ({numbers})."
            )
        case "yes" if judged.exclusion_named:
            return passage(f"{capitalised(what)} took place ({numbers}).")
        case "yes":
            return passage(
                f"These data speak for {what} ({numbers}), but {NO_EXCLUSION} beforehand: "
                f"{ONLY_NORMALITY}."
            )
        case "no sign":
            return passage(f"There is no sign of {what} ({numbers}).")
        case "unknown":
            rivals = rivals_of(evidence)
            too = passage(": ", _lower(rivals)) if rivals else passage()
            start = f"The data do not tell whether {what} took place ({numbers})"
            return passage(start, too, ".")
    return passage(f"Whether {what} took place is not known.")


def _lower(words: Passage) -> Passage:
    first, *rest = words.parts
    return passage(str(first)[0].lower() + str(first)[1:], *rest)


def gravest(checks: Sequence[Check]) -> Passage:
    """State the gravest check that is not fine."""
    for check in checks:
        if check.level == "caution":
            value = f" ({check.value})" if check.value else ""
            return passage(f"{check.title.removesuffix('.')}{value}.")
    return passage()
