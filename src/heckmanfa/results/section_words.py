"""The opening words of a report's sections.

They say which features predict, who is selected, and whether selection mattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from heckmanfa.plots.selection_rows import SelectionDriver, SelectionMargins
from heckmanfa.results.average_tables import ALWAYS
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import CHOSEN, MAY, TAKEN, FeatureEvidence
from heckmanfa.results.selection_numbers import rivals_of, selection_numbers
from heckmanfa.text.chances import BY, HIGH, LOW
from heckmanfa.text.labels import switch_levels
from heckmanfa.text.option_words import option
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import (
    chance_text,
    percent,
    plural,
)

# A chance that moves by this much is worth a sentence.
_MOVES_FAR = 0.25
# How many features of each direction a sentence about selection names.
_DRIVERS = 2
_SELECTED_BY = "moves who is selected (p < 0.05)"


# Did selection matter? ----------------------------------------------------------------------------


def selection_words(evidence: Evidence) -> tuple[Passage, ...]:
    """Say whether selection mattered, what that hangs on, and what the naive rival gets.

    One passage is one paragraph. There is none if no outcome is missing.
    """
    if not evidence.way.is_corrected:
        return ()
    hangs = passage()
    if evidence.judgement.kind == "unknown":
        hangs = rivals_of(evidence) + "." if evidence.judgement.rival else _hangs_on(evidence)
    first = join([selection_numbers(evidence), _leave_out(evidence), hangs])
    return tuple(filter(None, (first, _as_rival(evidence))))


def _leave_out(evidence: Evidence) -> Passage:
    """Say which option to leave out to learn whether selection mattered."""
    if evidence.window is not None:
        return passage(f"Leave out {option('rho_range')} to test it.")
    if evidence.held is not None:
        return passage(f"Leave out {option('rho')} to estimate it.")
    return passage()


def _hangs_on(evidence: Evidence) -> Passage:
    """Name the feature with and without which the verdict differs, or say that none is that."""
    if evidence.judgement.chance is None or evidence.way.halves_rows:
        return passage()
    stand_in = evidence.stand_in
    if stand_in is None:
        if not evidence.by_certainty()[1]:
            return passage()
        return passage(
            "It hangs on no single feature: with or without any that cannot be told, the share of "
            "weight that holds the correction differs by less than 50 points."
        )
    name, correction = Name(stand_in.name), evidence.words.correction
    if stand_in.corrected_with > stand_in.corrected_without:
        return passage("It hangs on one feature: whether ", name, " predicts.")
    feature = evidence.of_column(stand_in.columns[0])
    if feature is not None and feature.drives_selection:
        return passage(
            "It hangs on one feature: ",
            name,
            f" drives selection so strongly that it and {correction} stand in for each other.",
        )
    return passage("It hangs on one feature: ", name, f" and {correction} stand in for each other.")


def _as_rival(evidence: Evidence) -> Passage:
    """Say what weight a model that ignores selection would take, and what that would change."""
    chance = evidence.judgement.chance
    if chance is None or evidence.judgement.kind == "unreliable":
        return passage()
    words = passage(
        f"{evidence.words.naive_start} takes {chance_text(1.0 - chance)} of the weight, by {BY}"
    )
    if chance <= 0.5:
        return words + ". This is no proof that rho is zero."
    return words + "."


# Which features predict. --------------------------------------------------------------------------


def which_words(evidence: Evidence) -> Passage:
    """Say in a few sentences which features predict, and how that is known."""
    if not evidence.way.searched:
        return _beforehand(evidence)
    if evidence.way.halves_rows:
        return _of_halves(evidence)
    if not evidence.has_chances:
        return _without_chances(evidence)
    return join([_assignments(evidence), _sure(evidence), _without_correction(evidence)])


def roles_rule(evidence: Evidence) -> Passage:
    """Say how a feature gets its role, and what chance a feature without any effect has."""
    if not evidence.has_chances:
        return _rule_without_chances(evidence)
    if evidence.way.halves_rows:
        return passage(
            "Chosen to predict: by at least half of the halves. Of the others, a feature drives "
            f"selection where it {_SELECTED_BY}."
        )
    rows, m = "m rows that have an outcome", evidence.fit.moments.n_selected
    drives = f"{_SELECTED_BY}; otherwise there is no sign of either"
    if any(feature.selection_chance is not None for feature in evidence.features):
        # Both equations were searched, and all rows count.
        rows, m = "m rows", evidence.fit.n_obs
        drives = (
            "does so with a chance of at least 90%, and may drive it from 10% to 90%; below that "
            "there is no sign of either"
        )
    nothing = percent(1.0 / (1.0 + math.sqrt(m)), 0)
    return passage(
        f"Predicts: a chance of at least {HIGH}, on its own or as it drives selection. Cannot be "
        f"told: from {LOW} to {HIGH}. Below {LOW} there is no sign that a feature predicts. The "
        "same holds of whether selection mattered. A feature without a sign drives selection where "
        f"it {drives}. Some of them predict weakly. A "
        f"feature without any effect typically has a chance of about {nothing} on its own, "
        f"1 / (1 + √m) with {rows}."
    )


def _rule_without_chances(evidence: Evidence) -> Passage:
    roles = {feature.role for feature in evidence.features}
    parts = []
    if TAKEN in roles:
        parts.append("Taken to predict: said beforehand.")
    if CHOSEN in roles:
        parts.append("Chosen to predict: by the search.")
    if MAY in roles:
        parts.append("May predict: its effect is averaged over sets with it and without it.")
    if ALWAYS in roles:
        parts.append("Always included: said beforehand.")
    if evidence.way.is_corrected and not all(item.in_model for item in evidence.features):
        parts.append(f"Of the others, a feature drives selection where it {_SELECTED_BY}.")
    return passage(" ".join(parts))


def _beforehand(evidence: Evidence) -> Passage:
    """The question named the features."""
    taken = [feature.name for feature in evidence.features if feature.in_model]
    y = Name(evidence.outcome)
    if not taken:
        return passage("No feature is taken to predict ", y, ": there is an intercept alone.")
    are = "is" if len(taken) == 1 else "are"
    first = passage(named(taken), f" {are} taken to predict ", y, "; nothing was searched.")
    others = sum(not feature.in_model for feature in evidence.features)
    if not others or not evidence.way.is_corrected:
        return first
    rest = passage(
        f"{plural(others, 'other feature')} {'is' if others == 1 else 'are'} in the selection "
        "equation alone."
    )
    return join([first, rest])


def _of_halves(evidence: Evidence) -> Passage:
    """Features were chosen in random halves of the rows."""
    chosen = evidence.chosen_by_halves
    halves = plural(evidence.way.n_halves, "random half", "random halves")
    first = passage(
        f"Each of {halves} of the rows chose its features, and the other half estimated them."
    )
    if not chosen:
        return join([first, passage("No feature was chosen by at least half of them.")])
    most = max(chosen, key=lambda feature: feature.chance or 0.0)
    second = passage(Name(most.name), f" was chosen by {evidence.share_words(most)}")
    if len(chosen) == 1:
        return join([first, second + ", no other by as many as half of them."])
    others = [feature.name for feature in chosen if feature is not most]
    return join([first, passage(second, ", ", named(others), " by at least half of them.")])


def _without_chances(evidence: Evidence) -> Passage:
    """A search or an average without weights that are probabilities."""
    first = passage("Every feature that may predict is always included.")
    if evidence.pseudo and evidence.way.is_average:
        first = passage("Effects are averaged over sets of features.")
    elif evidence.chosen:
        was = "was" if len(evidence.chosen) == 1 else "were"
        names = named(evidence.chosen)
        first = passage(names, f" {was} chosen to predict ", Name(evidence.outcome), ".")
    elif evidence.way.chose:
        first = passage("No feature was chosen to predict ", Name(evidence.outcome), ".")
    why = evidence.chances_missing
    return join([first, passage(why)]) if why else first


def _assignments(evidence: Evidence) -> Passage:
    """Say what an assignment is, and what all of them have in common."""
    selecting = sum(_selects(evidence, feature) for feature in evidence.features)
    features = "the one feature is" if selecting == 1 else f"all {selecting} features are"
    return passage(
        "An assignment is a set of features that predict, with or without the correction; "
        f"{features} in the selection equation."
    )


def _selects(evidence: Evidence, feature: FeatureEvidence) -> bool:
    probit = evidence.fit.probit
    return probit is not None and any(column in probit.features for column in feature.columns)


def _sure(evidence: Evidence) -> Passage:
    """Name the features in nearly every assignment, or the likeliest."""
    sure, unsure, rest = evidence.by_certainty()
    if sure:
        verb = "predicts" if len(sure) == 1 else "predict"
        names = named([feature.name for feature in sure])
        return passage(names, f" {verb} in nearly every assignment that counts.")
    likeliest = max([*unsure, *rest], key=lambda feature: feature.chance or 0.0)
    share = chance_text(likeliest.chance or 0.0)
    return passage(
        "No feature predicts in nearly every assignment that counts; ",
        Name(likeliest.name),
        f" does in those with {share} of the weight.",
    )


def _without_correction(evidence: Evidence) -> Passage:
    """Say which chance the correction for selection changes most."""
    known = [feature for feature in evidence.weighed if feature.chance_least_squares is not None]
    stand_in = evidence.stand_in
    feature = None if stand_in is None else evidence.of_column(stand_in.columns[0])
    if feature is None or feature not in known:
        feature = max(known, key=_corrected, default=None)
    if feature is None or _corrected(feature) < _MOVES_FAR:
        return passage()
    chance, free = chance_text(feature.chance or 0.0), feature.chance_least_squares or 0.0
    words = passage(
        Name(feature.name),
        f" has a chance of {chance}; without the correction for selection it would have "
        f"{chance_text(free)}",
    )
    if stand_in is None or feature.columns != stand_in.columns or free <= (feature.chance or 0.0):
        return words + "."
    if stand_in.corrected_with > stand_in.corrected_without:
        return words + "."
    because = f", because {evidence.words.correction} takes over what "
    return passage(words, because, Name(feature.name), " says.")


def _corrected(feature: FeatureEvidence) -> float:
    return abs((feature.chance or 0.0) - (feature.chance_least_squares or 0.0))


# Who is selected. ---------------------------------------------------------------------------------


def who_words(evidence: Evidence, margins: SelectionMargins | None) -> Passage:
    """Say how many rows have an outcome, and what goes with that most.

    ``margins`` are the data of the picture of who is selected; None if they were not computed.
    """
    if not evidence.way.is_corrected:
        return passage()
    counts = evidence.fit.row_counts
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    first = passage(f"{chance_text(share)} of the rows have an outcome.")
    if margins is None:
        return first
    clear = [item for item in margins.drivers if item.shown.low > 0.0 or item.shown.high < 0.0]
    towards = [driver for driver in clear if driver.shown.estimate > 0.0]
    away = [driver for driver in clear if driver.shown.estimate < 0.0]
    if not clear:
        nothing = "No feature clearly goes with being selected: every 95% interval includes 0."
        return join([first, passage(nothing)])
    parts = []
    if towards:
        parts.append(passage(_changes(towards), f" {_go(towards)} with being selected"))
    if away:
        verb = "" if towards else f" {_go(away)}"
        parts.append(passage(_changes(away), f"{verb} with not being selected"))
    said = join(parts, "; ")
    return join([first, passage(_capitalised(said), ".")])


def _go(drivers: Sequence[SelectionDriver]) -> str:
    return "goes" if len(drivers) == 1 else "go"


def _changes(drivers: Sequence[SelectionDriver]) -> Passage:
    """Name the strongest changes: 'more exper and city = 1'."""
    return join([_change(driver) for driver in drivers[:_DRIVERS]], " and ")


def _change(driver: SelectionDriver) -> Passage:
    if driver.kind == "number":
        return passage("more ", Name(driver.name))
    if driver.kind == "binary":
        name, (one, _) = Name(driver.name), switch_levels(driver.name)
        return passage(name, f"{': ' if name.is_labelled else ' = '}{one}")
    return passage(Name(driver.name), f" ({shown(driver.shown.words)})")


def _capitalised(words: Passage) -> Passage:
    """Begin a sentence: with a capital, unless it begins with a name."""
    first, *rest = words.parts
    if isinstance(first, str):
        first = first[:1].upper() + first[1:]
    return Passage((first, *rest))
