"""The first line of an answer: which features predict, or how much one matters."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import ALWAYS, SURELY, UNTOLD
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.naming import Naming
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    NO_EXCLUSION,
    chance_text,
    plural,
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
        return passage("What goes with ", y, f" can hardly be told: {NO_EXCLUSION}.")
    change = evidence.naming.change_of(main.lead)
    said = passage(change, " goes with ", evidence.amount(main.effect), ".")
    if evidence.held is not None:
        return passage("With the assumed strength of selection, ", said)
    if evidence.way.is_corrected:
        return passage("With selection accounted for, ", said)
    if len(evidence.candidates) > 1:
        return passage("With the other features held equal, ", said)
    first, *others = said.parts
    if isinstance(first, str):
        return Passage((first[0].upper() + first[1:], *others))
    return said


def errors_kind(fit: Fit, naming: Naming) -> tuple[str | Name, ...]:
    """Say of which kind standard errors are, after an interval; nothing if they are classical."""
    if fit.spec.cov_type == "robust":
        return (", robust",)
    if fit.spec.cov_type == "survey":
        return (", by the design of the survey",)
    if fit.spec.cov_type != "cluster":
        return ()
    names = zip((" by ", " and "), naming.clusterings, strict=False)
    return (", clustered", *(part for before, name in names for part in (before, Name(name))))


def interval_words(evidence: Evidence, main: FeatureEvidence, *, start: bool = False) -> Passage:
    """Give the interval of an effect and its kind, without a full stop; ``start`` a sentence."""
    effect = main.effect
    if not effect.has_interval:
        return passage(f"{'Its' if start else 'its'} interval is not known")
    _, low, high = evidence.words.numbers(effect.estimate, effect.low, effect.high)
    kind = errors_kind(evidence.fit, evidence.naming)
    # A chance is about whether it predicts; an interval lets everything else in as well.
    if main.role in SURELY and not effect.excludes_zero:
        kind = (*kind, ", which does not tell its sign")
    return passage(f"95% interval {low} to {high}", *kind)
