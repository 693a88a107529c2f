"""What may not be claimed: each claim that an answer does not support, and why, with a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heckmanfa.results.average_tables import UNTOLD
from heckmanfa.results.checks import Check
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.feature_evidence import DRIVES, MAY_DRIVE, NEITHER
from heckmanfa.results.search_facts import kept_whole
from heckmanfa.results.selection_numbers import rivals_of
from heckmanfa.text.chances import BY, says
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    chance_text,
    plural,
    sets_count,
    true_minus,
    typeset,
    window_text,
)

# A set with more of the weight than this leaves little to others.
_ALONE = 0.95
_NAMED = 6

# The gravest first; what is a problem, or wrong with the fit itself, comes before all of these.
_ORDER = (
    *("selection", "window", "rho", "search_ignored", "honest_target", "search"),
    *("best_weight", "near_ties", "stand_in", "no_selection", "best_interval", "average"),
    *("rho_lr_test", "rho_test", "rho_near_boundary", "events", "exclusions", "imr_r2"),
    *("outside_weight", "sampled", "valid_exclusions", "many_rows_lost", "rows_lost"),
    *("filled_in", "outside_range"),
    *("selected_scores", "pseudo_weights", "normal_law", "chance", "not_causal"),
)


@dataclass(frozen=True)
class Claim:
    """Something that an answer does not show."""

    key: str
    """which claim it is, for programs"""
    lead: Passage
    """the claim, from "That" to a colon"""
    why: Passage
    """why it may not be made"""

    def __str__(self) -> str:
        """Return the claim and why it may not be made."""
        return f"{self.lead} {self.why}"

    @classmethod
    def of(cls, fact: Fact) -> Claim:
        """Return the claim that a fact rules out."""
        return cls(fact.key, passage(f"{fact.claim}:"), passage(typeset(fact.because)))


def claims_of(
    evidence: Evidence, facts: Iterable[Fact], checks: Sequence[Check] = ()
) -> tuple[Claim, ...]:
    """Return what may not be claimed, the gravest first.

    Parameters
    ----------
    evidence : Evidence
    facts : iterable of Fact
        Those of the answer.
    checks : sequence of Check
        Their numbers stand behind some claims.
    """
    made = [
        *_search_ignored(evidence),
        *_best_interval(evidence),
        *_best_weight(evidence),
        *_stand_in(evidence),
        *_no_selection(evidence),
        *_exclusions(evidence),
        *_chance(evidence),
    ]
    # The weight of the best set says more than how many are nearly as good.
    told = {"near_ties"} if any(claim.key == "best_weight" for claim in made) else set()
    ruled_out = [fact for fact in facts if fact.claim and fact.key not in told]
    grave = {fact.key for fact in ruled_out if fact.level == "problem"}
    claims = [*(Claim.of(_with_checks(evidence, fact, checks)) for fact in ruled_out), *made]

    def rank(claim: Claim) -> int:
        ranked = claim.key in _ORDER and claim.key not in grave
        return _ORDER.index(claim.key) if ranked else -1

    return tuple(sorted(claims, key=rank))


def _with_checks(evidence: Evidence, fact: Fact, checks: Sequence[Check]) -> Fact:
    """Say of the normality of the errors whether it is rejected."""
    for check in checks if fact.key == "normal_law" else ():
        if check.key == "normality_prediction" and check.level == "caution":
            return tell(evidence.fit, fact.key, fact.level, check.value, case="rejected")
    return fact


def _search_ignored(evidence: Evidence) -> list[Claim]:
    """The intervals of features that the same rows chose are those of features known beforehand."""
    main = evidence.main
    if not evidence.way.ignores_search or main is None:
        return []
    why = passage("they are those of features known beforehand, and tend to be too narrow.")
    if main.effect.has_interval:
        fit, words, effect = evidence.fit, evidence.words, main.effect
        _, low, high = words.numbers(effect.estimate, effect.low, effect.high)
        unit = f" {words.unit}" if words.unit else ""
        average = instead(fit.family.words.averages, option("search", "average"))
        whole = kept_whole(fit)
        halves = "" if whole else f" and {option('honest', True)}"
        # An average has no replicate weights.
        others = "" if whole == "replicates" else f" Those of {average}{halves} are not."
        why = passage(
            f"{low} to {high}{unit} for ",
            Name(main.name),
            " is that of features known beforehand, and such intervals tend to be too narrow."
            f"{others}",
        )
    lead = passage("That the intervals and p-values allow for the search:")
    return [Claim("search_ignored", lead, why)]


def _best_interval(evidence: Evidence) -> list[Claim]:
    """The interval of the best set is that of features known beforehand."""
    main, best = evidence.main, evidence.best
    # The best set has two-step intervals, which those of maximum likelihood are not compared with.
    if not evidence.way.is_average or evidence.fit.spec.method == "ml":
        return []
    if main is None or best is None:
        return []
    alone = best.coef.of(main.lead).times(evidence.naming.step_of(main.lead))
    if not alone.has_interval or not main.effect.has_interval:
        return []
    # As the tile of the effect writes them.
    ends = alone.low, alone.high, main.effect.low, main.effect.high
    low, high, first, last = evidence.words.numbers(*ends)
    if (low, high) == (first, last):
        return []
    return [
        Claim(
            "best_interval",
            passage("That the interval of the best set allows for the search:"),
            passage(
                f"{low} to {high} for ",
                evidence.naming.change_of(main.lead),
                f" is that of features known beforehand. Averaged, it is {first} to {last}.",
            ),
        )
    ]


def _best_weight(evidence: Evidence) -> list[Claim]:
    """How much of the weight the best set leaves to others."""
    best = evidence.best
    if best is None or evidence.way.halves_rows:
        return []
    names, weight, which = best.names, best.weight, "best"
    if evidence.way.chose:
        names, which = evidence.chosen, "chosen"
        weight = best.weight if evidence.chosen_weight is None else evidence.chosen_weight
        which = "best" if evidence.chosen_weight is None else "chosen"
    if weight >= _ALONE:
        return []
    why = f"the {which} set has {evidence.weight_text(weight)} of the weight"
    if weight < best.weight * (1.0 - 1e-6):
        why += f", and the best by BIC {evidence.weight_text(best.weight)}"
    if evidence.n_half > 1:
        half = sets_count(evidence.n_half, sampled=not evidence.exhaustive)
        why += f"; it takes {half} sets to make up half of it"
    lead = passage(*_those_predict(names))
    if which == "best" and best.index:
        others = "the other features predict as they drive selection:"
        lead = passage("That ", *_alone(names), others)
    return [Claim("best_weight", lead, passage(f"{why}."))]


def _those_predict(names: Sequence[str]) -> tuple[str | Passage, ...]:
    if not names:
        return ("That nothing predicts:",)
    verb = "predicts" if len(names) == 1 else "predict"
    return "That only ", named(names), f" {verb}:"


def _alone(names: Sequence[str]) -> tuple[str | Passage, ...]:
    """Name what predicts on its own beside the index, before the others."""
    if not names:
        return ("nothing predicts on its own, and ",)
    verb, own = ("predicts", "its") if len(names) == 1 else ("predict", "their")
    return "only ", named(names), f" {verb} on {own} own, and "


def _stand_in(evidence: Evidence) -> list[Claim]:
    """A feature and lambda that take each other's place."""
    item = evidence.stand_in
    feature = None if item is None else evidence.of_column(item.columns[0])
    if item is None or feature is None or feature.role not in UNTOLD:
        return []
    name = Name(item.name)
    alone = feature.chance_least_squares
    if alone is None:
        why = passage(
            f"its chance is {chance_text(item.chance)}. Without it, "
            f"{chance_text(item.corrected_without)} of the weight holds the correction; with it, "
            f"{chance_text(item.corrected_with)}."
        )
    else:
        place = f"it and {evidence.words.correction} stand in for each other"
        if item.corrected_with > item.corrected_without:
            place = "selection is found only with it"
        why = passage(
            f"{chance_text(item.chance)} where the correction competes, {chance_text(alone)} "
            f"without it: {place}."
        )
    return [Claim("stand_in", passage("That these data settle whether ", name, " predicts:"), why)]


def _no_selection(evidence: Evidence) -> list[Claim]:
    """What a chance of the correction leaves open."""
    judged = evidence.judgement
    if judged.chance is None:
        return []
    chance = chance_text(judged.chance)
    if judged.kind == "no sign":
        why = passage(f"a chance of {chance} speaks against it, but does not rule it out.")
        return [Claim("no_selection", passage("That selection did not matter:"), why)]
    if judged.kind != "unknown":
        return []
    lead = passage("That these data settle whether selection mattered:")
    why = passage(f"its chance is {chance}.")
    rivals = rivals_of(evidence)
    against = rivals + "." if rivals else rivals
    return [Claim("no_selection", lead, join([why, against]))]


def _exclusions(evidence: Evidence) -> list[Claim]:
    """No data can show that a feature has no effect of its own."""
    if not evidence.way.is_corrected:
        return []
    lead, y = passage("That the data prove the exclusions right:"), evidence.words.target
    selecting = set() if evidence.fit.probit is None else {*evidence.fit.probit.features}
    drives = [item for item in evidence.features if not selecting.isdisjoint(item.columns)]
    kept_out = [item.name for item in drives if not item.candidate]
    left = [item.name for item in drives if item.candidate and not item.in_model]
    if evidence.way.is_average:
        left = [item.name for item in drives if item.role in (DRIVES, MAY_DRIVE, NEITHER)]
    reasons: list[Passage] = []
    if kept_out:
        have = "has no effect of its" if len(kept_out) == 1 else "have no effect of their"
        reasons.append(
            passage("the model assumes that ", named(kept_out, _NAMED), f" {have} own on ", y)
        )
    if left:
        alone = len(left) == 1
        was = passage(named(left, _NAMED), f" {'was' if alone else 'were'} not chosen to predict")
        if evidence.way.is_average:
            appear = "appears" if alone else "appear"
            was = passage(f"{plural(len(left), 'feature')} hardly {appear} in the prediction")
        have = "it has no effect of its" if alone else "they have no effect of their"
        reasons.append(passage("that ", was, f" is no evidence that {have} own on ", y))
    if not reasons:
        return []
    why = passage(join(reasons, "; "), ", and no data can show that.")
    return [Claim("valid_exclusions", lead, why)]


def _chance(evidence: Evidence) -> list[Claim]:
    """A chance depends on the kind of weights."""
    known = [feature for feature in evidence.weighed if feature.by_aic is not None]
    if not known:
        return []
    unsure = [feature for feature in known if feature.role in UNTOLD]
    feature = unsure[0] if unsure else known[0]
    aic, ebic = (chance_text(value or 0.0) for value in (feature.by_aic, feature.by_ebic))
    if not unsure and {aic, ebic} == {chance_text(feature.chance or 0.0)}:
        return []
    # With few features there is nothing for EBIC to add to BIC.
    by = f"With AIC it is {aic}, with EBIC, which favours few features, {ebic}"
    surest = known[0]
    least = min(value or 0.0 for value in (surest.chance, surest.by_aic, surest.by_ebic))
    rest: tuple[str | Name, ...] = (".",)
    if surest is not feature and says(least) == "sure":
        rest = ("; for ", Name(surest.name), f" it stays at {chance_text(least)} or more.")
        if least > 0.99:
            rest = ("; for ", Name(surest.name), " it stays above 99%.")
    inside = ""
    if evidence.window is not None:
        inside = f" of the sets with rho in {true_minus(window_text(evidence.window))}"
    return [
        Claim(
            "chance",
            passage(
                f"That the chance of {chance_text(feature.chance or 0.0)} for ",
                *(Name(feature.name), " holds however it is computed:"),
            ),
            passage(
                f"it is a share of the weight{inside} by {BY}, with each set as likely as any "
                f"other beforehand. {by}",
                *rest,
            ),
        )
    ]
