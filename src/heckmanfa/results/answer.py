"""The answer to a question about a table: a headline, and four tiles that back it.

Which features predict, how much the likeliest matters, whether selection mattered, and how far to
trust it. Every output prints these words: summary, console, JSON, notebook and report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from heckmanfa.results.average_tables import ALWAYS
from heckmanfa.results.checks import Check, badge, named_first
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import BestAssignment, Evidence
from heckmanfa.results.feature_evidence import (
    CHOSEN,
    HARDLY,
    MAY,
    TAKEN,
    FeatureEvidence,
    LevelEvidence,
)
from heckmanfa.results.headline import headline, interval_words
from heckmanfa.results.judgement import VerdictKind
from heckmanfa.results.lede import lede, verdict
from heckmanfa.results.logs import in_percent
from heckmanfa.results.may_write import Sentence
from heckmanfa.results.naming import EffectWords
from heckmanfa.results.selection_numbers import LITTLE_RHO, selection_numbers
from heckmanfa.text.chances import BY, HIGH
from heckmanfa.text.labels import said
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    NO_EXCLUSION,
    capitalised,
    effects,
    plural,
    true_minus,
    window_text,
)

MOST_SURE = 3
MOST_UNSURE = 7
"""chips of each kind that a first screen has room for"""

_KINDS: dict[VerdictKind, str] = {
    "yes": "caution",
    "no sign": "note",
    "unknown": "unknown",
    "unreliable": "unknown",
    "not weighed": "unknown",
    "not asked": "unknown",
    "nothing missing": "ok",
}
# An honest share of halves below this is not worth a chip.
_SELDOM = 0.1


@dataclass(frozen=True)
class Tile:
    """One question of the first screen, and its answer."""

    question: str
    title: str
    kind: str
    """ok, caution, problem, unknown, or nothing"""
    words: Passage
    heading: Passage | None = None
    """the title where it holds names, which a page cuts and marks"""
    numbers: Passage = field(default_factory=Passage)
    """what analysts look for and a first screen leaves out: weights, lambda, rho, and tests"""

    def __str__(self) -> str:
        """Return the answer in plain text."""
        words = str(self.words)
        title = self.title if self.title[-1:] in (".", ":", "") else f"{self.title}."
        return f"{title} {words}".strip()


@dataclass(frozen=True)
class Chip:
    """A feature with its chance."""

    name: str
    chance: str
    """in words, such as ">99%"; empty without chances"""
    sure: bool


@dataclass(frozen=True)
class Answer:
    """What was found, in the order of a first screen.

    Iterating gives its sentences; ``str`` joins them.
    """

    headline: Passage
    lede: Passage
    which: Tile
    how_much: Tile
    selection: Tile
    trust: Tile
    sure: tuple[Chip, ...] = ()
    unsure: tuple[Chip, ...] = ()
    more_sure: int = 0
    """features of the first kind without a chip"""
    more_unsure: int = 0
    """features of the second kind without a chip"""
    sure_label: str = ""
    """words before the first chips; empty if they predict"""
    unsure_label: str = "Cannot be told:"
    """words before the others"""
    may_write: tuple[Sentence, ...] = ()
    """sentences that may be copied, one for each claim"""

    @property
    def tiles(self) -> dict[str, Tile]:
        """The questions of a first screen with their answers, by name; trust comes last."""
        return {
            "which": self.which,
            "how_much": self.how_much,
            "selection": self.selection,
            "trust": self.trust,
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """Headline with lede, how much, whether selection mattered, and how far to trust it."""
        # Which features predict is in the headline, and how much needs no question.
        told = [
            str(tile) if name == "how_much" else f"{tile.question} {tile}"
            for name, tile in self.tiles.items()
            if name != "which"
        ]
        return (str(join([self.headline, self.lede])), *told)

    def lines(self) -> tuple[str, str, str]:
        """Return the answer in three lines, for a console."""
        first, second, *_, last = self.sentences
        return first, second, last

    def __iter__(self) -> Iterator[str]:
        return iter(self.sentences)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def answer_of(
    evidence: Evidence,
    checks: Sequence[Check] = (),
    *,
    bounds: Mapping[int, Effect] | None = None,
    may_write: Sequence[Sentence] = (),
) -> Answer:
    """Put the numbers of a first screen into words.

    Parameters
    ----------
    evidence : Evidence
    checks : sequence of Check
        The gravest first; see `heckmanfa.results.checks.ordered_checks`.
    bounds : mapping of int to Effect, optional
        For each column of X, its coefficient at rho = 0 and where it lies for rho from -0.3 to 0.3.
        Used in place of estimates that nothing but normality identifies.
    may_write : sequence of Sentence
        Sentences that may be copied.
    """
    judged = verdict(evidence)
    kind = _KINDS[evidence.judgement.kind]
    return Answer(
        headline=headline(evidence),
        lede=judged.sentence,
        which=_which_tile(evidence),
        how_much=_how_much(evidence, bounds),
        selection=Tile(
            "Did selection matter?",
            judged.title,
            kind,
            judged.words,
            numbers=selection_numbers(evidence),
        ),
        trust=trust_tile(checks),
        may_write=tuple(may_write),
        **_chips(evidence),
    )


def opening(evidence: Evidence) -> Passage:
    """Return the headline and the lede."""
    return join([headline(evidence), lede(evidence)])


# Which features predict. --------------------------------------------------------------------------


def _chips(evidence: Evidence) -> dict[str, Any]:
    """Features for the first screen, each with its chance: fields of an `Answer`."""
    always = [feature for feature in evidence.ordered() if feature.role == ALWAYS]
    if evidence.way.halves_rows:
        others = [feature for feature in evidence.weighed if feature.role != CHOSEN]
        seldom = [feature for feature in others if (feature.chance or 0.0) >= _SELDOM]
        seldom.sort(key=lambda feature: -(feature.chance or 0.0))
        return _shared_chips(evidence, evidence.chosen_by_halves, always, seldom) | {
            "sure_label": "Chosen in at least half of the halves:",
            "unsure_label": "Chosen in fewer:",
        }
    if not evidence.has_chances:
        taken = [
            feature
            for feature in evidence.ordered()
            if feature.role in (TAKEN, CHOSEN, MAY, ALWAYS)
        ]
        label = f"{taken[0].role.capitalize()}:" if taken else ""
        room = MOST_SURE + MOST_UNSURE
        chips = tuple(Chip(feature.name, "", True) for feature in taken[:room])
        more = len(taken) - len(chips)
        return {"sure": chips, "more_sure": more, "sure_label": label, "unsure_label": ""}
    sure, unsure, _ = evidence.by_certainty()
    return _shared_chips(evidence, sure, always, unsure)


def _shared_chips(
    evidence: Evidence,
    sure: Sequence[FeatureEvidence],
    always: Sequence[FeatureEvidence],
    unsure: Sequence[FeatureEvidence],
) -> dict[str, Any]:
    """Features with their shares: those that are surely there, and others."""
    first = [
        *(Chip(feature.name, evidence.share_words(feature), True) for feature in sure),
        *(Chip(feature.name, "always included", True) for feature in always),
    ]
    second = [Chip(feature.name, evidence.share_words(feature), False) for feature in unsure]
    return {
        "sure": tuple(first[:MOST_SURE]),
        "unsure": tuple(second[:MOST_UNSURE]),
        "more_sure": max(len(first) - MOST_SURE, 0),
        "more_unsure": max(len(second) - MOST_UNSURE, 0),
    }


def _which_tile(evidence: Evidence) -> Tile:
    """Say what chances are; the numbers behind them are those of all models."""
    question, way = f"Which features predict {said(evidence.outcome)}?", evidence.way
    if way.halves_rows:
        words = passage(
            f"How many of {way.n_halves} random halves of the rows chose it. Effects are "
            "estimated on the other halves."
        )
        return Tile(question, "", "", words)
    if not way.searched:
        return Tile(question, "", "", passage(way.words.beforehand))
    if not evidence.has_chances:
        why = passage(evidence.chances_missing) if evidence.chances_missing else passage()
        return Tile(question, "", "", _without_chances(evidence), numbers=why)
    how = "all " if evidence.exhaustive and evidence.n_assignments > 1 else "the "
    sets = how + plural(evidence.n_assignments, "model")
    if not evidence.exhaustive:
        sets += " that a sampler drew"
    if evidence.window is not None:
        sets += f" with rho in {true_minus(window_text(evidence.window))}"
    share = passage(f"A chance is a share of the weight (by {BY}) of {sets}.")
    counts = f"Chance that it predicts, given these data: {HIGH} or more counts."
    words = join([passage(counts), _unsure_of_sign(evidence)])
    return Tile(question, "", "", words, numbers=join([share, _best(evidence)]))


def _unsure_of_sign(evidence: Evidence) -> Passage:
    """Name what predicts in a direction that cannot be told."""
    sure = evidence.by_certainty()[0]
    unsigned = [
        feature.name
        for feature in sure
        if feature.effect.has_interval and not feature.effect.excludes_zero
    ]
    if not unsigned:
        return passage()
    verb = "predicts" if len(unsigned) == 1 else "predict"
    return passage("In which direction ", named(unsigned), f" {verb} is not sure.")


def _without_chances(evidence: Evidence) -> Passage:
    averaged = evidence.way.is_average
    if averaged and not evidence.pseudo:
        return passage("Every feature is always included, so there are no chances.")
    how = "Effects are averaged over sets of features. " if averaged else ""
    return passage(f"{how}How sure it is that a feature predicts was not computed.")


def _best(evidence: Evidence) -> Passage:
    """Say how much weight the best set has, and the chosen one if that is another."""
    best = evidence.best
    if best is None:
        return passage()
    best_has = evidence.weight_text(best.weight)
    named_best = _best_set(best)
    words = passage("The best set, ", named_best, f", has {best_has}.")
    if not evidence.way.chose:
        return words
    if evidence.chosen == best.names and not best.index:
        return passage("The search chose the best set, ", named_best, f", which has {best_has}.")
    if evidence.chosen_weight is None:
        drawn = "" if evidence.exhaustive else ", which the sampler did not draw"
        if drawn:
            words = passage("The best of these, ", named_best, f", has {best_has}.")
        return join([words, passage("The search chose ", _set(evidence.chosen), f"{drawn}.")])
    has = evidence.weight_text(evidence.chosen_weight)
    mine = passage("The set that the search chose, ", _set(evidence.chosen), f", has {has}.")
    return join([words, mine])


def _best_set(best: BestAssignment) -> Passage:
    """Write the best set, and what it holds besides features."""
    more = {"what drives selection": best.index, "the correction": best.corrected}
    held = [words for words, holds in more.items() if holds]
    if not best.names and held:
        return passage(f"{' and '.join(held)} alone")
    names = _set(best.names)
    return passage(names, f", with {' and '.join(held)}") if held else names


def _set(names: Sequence[str]) -> Passage:
    """Write a set of features as 'educ + exper'."""
    if not names:
        return passage("the empty one")
    if len(names) > MOST_UNSURE:
        first = join((passage(Name(name)) for name in names[: MOST_UNSURE - 1]), " + ")
        return passage(first, f" + {len(names) - MOST_UNSURE + 1} more")
    return join((passage(Name(name)) for name in names), " + ")


# How much. ----------------------------------------------------------------------------------------


def _how_much(evidence: Evidence, bounds: Mapping[int, Effect] | None) -> Tile:
    question, main = "How much?", evidence.main
    if main is None:
        return Tile(question, "No effect to report", "", passage("No feature is in the model."))
    change = evidence.naming.change_of(main.lead)
    if evidence.no_exclusion:
        return _range(evidence, main, change, (bounds or {}).get(main.lead))
    heading = passage(evidence.amount(main.effect), " for ", change)
    effect = main.effect
    on_log = evidence.words.on_log(effect.estimate, effect.low, effect.high)
    words = join([_interval(evidence, main), _beside(evidence, main), on_log, _elsewhere(evidence)])
    return Tile(question, str(heading), "", words, heading)


def _elsewhere(evidence: Evidence) -> Passage:
    """Name the feature whose effect selection moves most, if the main effect hardly moves."""
    main, sure = evidence.main, evidence.by_certainty()[0]
    most = max(sure, key=lambda feature: feature.shift, default=None)
    if main is None or most is None or main.shift >= HARDLY or most.shift < 1.0:
        return passage()
    words, own, other = evidence.words, most.effect, most.least_squares
    mine = words.numbers(own.estimate, own.low, own.high)[0]
    plain = words.numbers(other.estimate, other.low, other.high)[0]
    change = evidence.naming.change_of(most.lead)
    return passage("Selection moves others more: ", change, f" has {mine} here, {plain} there.")


def _range(
    evidence: Evidence, main: FeatureEvidence, change: Passage, bound: Effect | None
) -> Tile:
    """Give a range in place of an estimate that nothing but normality identifies."""
    why = f"{capitalised(NO_EXCLUSION)}, so these data do not tell how strong selection is."
    question, y = "How much?", evidence.words.target
    if bound is None or not bound.has_interval:
        return Tile(question, "No estimate to rely on", "", passage(why))
    heading = passage(evidence.words.amounts(bound.low, bound.high), " for ", change)
    if evidence.fit.family.has_classes:
        heading = passage(_coefficient(bound), " in the index of ", y, " for ", change)
    reach = effects(LITTLE_RHO)[0].rstrip("0")
    over = f"The range is a 95% uncertainty interval for rho from \u2212{reach} to {reach}."
    on_log = evidence.words.on_log(bound.estimate, bound.low, bound.high)
    words = join([passage(f"This holds if selection is weak, either way. {why}"), on_log])
    return Tile(question, str(heading), "", words, heading, passage(over))


def _coefficient(bound: Effect) -> str:
    """Write a range of coefficients, which are not slopes of a probability."""
    return "A coefficient of {} to {}".format(*effects(bound.low, bound.high))


def _interval(evidence: Evidence, main: FeatureEvidence) -> Passage:
    """Give the interval, and say what it allows for."""
    search = evidence.way.words.of_search if main.effect.has_interval else ""
    return passage(interval_words(evidence, main, start=True), f"{search}.")


def _beside(evidence: Evidence, main: FeatureEvidence) -> Passage:
    """Give what ignores selection, with its own interval; say what an effect on a class is."""
    plain, words = main.least_squares, evidence.words
    slope = ""
    if words.unit and evidence.naming.is_switch(main.lead):
        slope = "This is an average slope, not the difference between 1 and 0."
    if not evidence.way.is_corrected or not plain.known:
        return passage(slope) if slope else passage()
    value, low, high = words.numbers(plain.estimate, plain.low, plain.high)
    ends = f" ({low} to {high})" if plain.has_interval else ""
    said = passage(f"{words.naive_start}, which ignores selection, says {value}{ends}.")
    return join([said, passage(slope)]) if slope else said


# How far to trust it. -----------------------------------------------------------------------------


def trust_tile(checks: Sequence[Check]) -> Tile:
    """Say how far to trust an answer, by its checks."""
    question = "Can it be trusted?"
    if not checks:
        return Tile(question, "Not checked", "unknown", passage("diagnostics() has the checks."))
    level, words = badge(checks)
    grave = named_first(checks)
    said = passage(" ".join(f"{check.title.rstrip('.')}." for check in grave))
    numbers = passage(" ".join(_with_value(check) for check in grave))
    if not grave:
        nothing = f"{plural(len(checks), 'check')} found nothing to warn of."
        not_run = [check.title for check in checks if check.key == "not_run"]
        said = passage(" ".join([nothing, *not_run]))
    return Tile(question, words, level, said, numbers=numbers if grave else passage())


def _with_value(check: Check) -> str:
    """Say what a check found, with the number behind it."""
    title = check.title.rstrip(".")
    has_number = any(character.isdigit() for character in check.value)
    return f"{title}: {check.value}." if has_number else f"{title}."


def in_percents(
    words: EffectWords, item: FeatureEvidence | LevelEvidence, naive: str
) -> dict[str, float]:
    """Return effects on a logarithm in percent, by name; none on other scales.

    ``naive`` names the model that ignores selection.
    """
    if words.log is None:
        return {}
    own, other = item.effect, item.least_squares
    values = {"percent": own.estimate, "percent_low": own.low, "percent_high": own.high}
    values |= {f"{naive}_percent": other.estimate, f"{naive}_percent_low": other.low}
    values |= {f"{naive}_percent_high": other.high}
    return {name: in_percent(value) for name, value in values.items()}


def roles_frame(evidence: Evidence) -> pd.DataFrame:
    """Return a row for each feature: its chance, its role, and its effect with an interval.

    Features come by role, the likeliest first. An effect is that of ``step`` more of its feature,
    in the feature's units. A category has the effect of the level furthest from its reference.
    Effects on a logarithm are also in percent of what it is of. A chance or an effect that is not
    known is NaN.
    """
    nan = float("nan")
    naive = evidence.words.naive_short.replace(" ", "_")
    names = ["feature", "chance", "role", "step", "effect", "ci_low", "ci_high"]
    lines: list[dict[str, Any]] = [
        {
            "feature": feature.name,
            "chance": nan if feature.chance is None else feature.chance,
            "role": feature.role,
            "step": feature.step,
            "effect": feature.effect.estimate,
            "ci_low": feature.effect.low,
            "ci_high": feature.effect.high,
            **in_percents(evidence.words, feature, naive),
        }
        for feature in evidence.ordered()
    ]
    return pd.DataFrame(lines, columns=list(lines[0]) if lines else names)
