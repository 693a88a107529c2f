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
from heckmanfa.results.checks import Check, badge
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import BestAssignment, Evidence
from heckmanfa.results.feature_evidence import CHOSEN, MAY, TAKEN, FeatureEvidence
from heckmanfa.results.headline import LITTLE_RHO, headline, interval_words, verdict
from heckmanfa.results.judgement import VerdictKind
from heckmanfa.text.chances import BY
from heckmanfa.text.labels import said, with_unit
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.wording import (
    NO_EXCLUSION,
    ONLY_NORMALITY,
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
    "no sign": "ok",
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
    may_write: Passage = field(default_factory=Passage)
    """a sentence that may be copied into a paper"""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Headline with lede, how much, whether selection mattered, and how far to trust it."""
        return (
            str(join([self.headline, self.lede])),
            str(self.how_much),
            f"{self.selection.question} {self.selection}",
            f"{self.trust.question} {self.trust}",
        )

    def lines(self) -> tuple[str, str, str]:
        """Return the answer in three lines, for a console."""
        first, second, _, last = self.sentences
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
    may_write: Passage | None = None,
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
    may_write : Passage, optional
        A sentence that may be copied.
    """
    judged = verdict(evidence)
    kind = _KINDS[evidence.judgement.kind]
    return Answer(
        headline=headline(evidence),
        lede=judged.sentence,
        which=Tile(f"Which features predict {said(evidence.outcome)}?", "", "", _which(evidence)),
        how_much=_how_much(evidence, bounds),
        selection=Tile("Did selection matter?", judged.title, kind, judged.words),
        trust=_trust(checks),
        may_write=may_write or Passage(),
        **_chips(evidence),
    )


def opening(evidence: Evidence) -> Passage:
    """Return the headline and the lede."""
    return join([headline(evidence), verdict(evidence).sentence])


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


def _which(evidence: Evidence) -> Passage:
    """Say what chances are, and how much weight the best set has."""
    way = evidence.way
    if way.halves_rows:
        return passage(
            f"How many of {way.n_halves} random halves of the rows chose it. Effects are "
            "estimated on the other halves."
        )
    if not way.searched:
        return passage(way.words.beforehand)
    if not evidence.has_chances:
        return _without_chances(evidence)
    how = "all " if evidence.exhaustive and evidence.n_assignments > 1 else "the "
    sets = how + plural(evidence.n_assignments, "model")
    if not evidence.exhaustive:
        sets += " that a sampler drew"
    if evidence.window is not None:
        sets += f" with rho in {true_minus(window_text(evidence.window))}"
    said = passage(f"Chance that it predicts: its share of the weight (by {BY}) of {sets}.")
    return join([said, _best(evidence)])


def _without_chances(evidence: Evidence) -> Passage:
    averaged = evidence.way.is_average
    if averaged and not evidence.pseudo:
        return passage("Every feature is always included, so there are no chances.")
    how = "Effects are averaged over sets of features. " if averaged else ""
    return passage(f"{how}{evidence.chances_missing}")


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
    percent = evidence.words.in_percent(effect.estimate, effect.low, effect.high)
    words = join([_interval(evidence, main), _beside(evidence, main), percent])
    return Tile(question, str(heading), "", words, heading)


def _range(
    evidence: Evidence, main: FeatureEvidence, change: Passage, bound: Effect | None
) -> Tile:
    """Give a range in place of an estimate that nothing but normality identifies."""
    why = f"{capitalised(NO_EXCLUSION)}: {ONLY_NORMALITY}."
    question, y = "How much?", evidence.words.target
    if bound is None or not bound.has_interval:
        return Tile(question, "No estimate to rely on", "", passage(why))
    ends = (bound.low, bound.high) if bound.high > 0.0 else (-bound.high, -bound.low)
    low, high = effects(*ends)
    more = "more" if bound.high > 0.0 else "less"
    amount = f"{low} to {with_unit(high, evidence.outcome)}"
    heading = passage(f"{amount} {more} ", y, " for ", change)
    if evidence.fit.family.has_classes:
        heading = passage(_coefficient(bound), " in the index of ", y, " for ", change)
    reach = effects(LITTLE_RHO)[0].rstrip("0")
    words = f"95% uncertainty interval for rho from \u2212{reach} to {reach}. {why}"
    percent = evidence.words.in_percent(bound.estimate, bound.low, bound.high)
    said = join([passage(words), percent])
    return Tile(question, str(heading), "", said, heading)


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


def _trust(checks: Sequence[Check]) -> Tile:
    question = "Can it be trusted?"
    if not checks:
        return Tile(question, "Not checked", "unknown", passage("diagnostics() has the checks."))
    level, words = badge(checks)
    grave = [check for check in checks if check.level in ("problem", "caution")]
    said = passage(" ".join(_with_value(check) for check in grave[:2]))
    if not grave:
        nothing = f"{plural(len(checks), 'check')} found nothing to warn of."
        not_run = [check.title for check in checks if check.key == "not_run"]
        said = passage(" ".join([nothing, *not_run]))
    return Tile(question, words, level, said)


def _with_value(check: Check) -> str:
    """Say what a check found, with the number behind it."""
    title = check.title.rstrip(".")
    has_number = any(character.isdigit() for character in check.value)
    return f"{title}: {check.value}." if has_number else f"{title}."


def roles_frame(evidence: Evidence) -> pd.DataFrame:
    """Return a row for each feature: its chance, its role, and its effect with an interval.

    Features come by role, the likeliest first. A category has the effect of the level furthest
    from its reference. A chance or an effect that is not known is NaN.
    """
    nan = float("nan")
    return pd.DataFrame(
        [
            {
                "feature": feature.name,
                "chance": nan if feature.chance is None else feature.chance,
                "role": feature.role,
                "effect": feature.effect.estimate,
                "ci_low": feature.effect.low,
                "ci_high": feature.effect.high,
            }
            for feature in evidence.ordered()
        ],
        columns=["feature", "chance", "role", "effect", "ci_low", "ci_high"],
    )
