"""What may be written: a paragraph about an answer that is true as it stands, to be copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heckmanfa.results.checks import Check, badge
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.headline import correction_words, given_rho, interval_words, rivals_of
from heckmanfa.results.naming import held_in_words
from heckmanfa.results.search_facts import describe_average, describe_search
from heckmanfa.text.chances import BY
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import (
    NO_EXCLUSION,
    ONLY_NORMALITY,
    capitalised,
    chance_text,
    count,
    effects,
    p_equals,
    plural,
)

# Features named one by one.
_NAMED = 6


def may_write(
    evidence: Evidence,
    checks: Sequence[Check] = (),
    *,
    bounds: Mapping[int, Effect] | None = None,
) -> Passage:
    """Return a paragraph for a paper: the main effect, what cannot be told, the gravest check.

    If a check says that the answer is not to be relied on, no estimate is in it.

    Parameters
    ----------
    evidence : Evidence
    checks : sequence of Check
        The gravest first.
    bounds : mapping of int to Effect, optional
        For each column of X, where its coefficient lies for rho from -0.3 to 0.3.
    """
    if badge(checks)[0] == "problem" or evidence.no_exclusion:
        return _unreliable(evidence, checks, bounds)
    if not evidence.way.is_corrected:
        # That no outcome is missing is among the words about the effect.
        checks = [check for check in checks if check.key != "selection"]
    return join([_effect(evidence), _which(evidence), _selection(evidence), _gravest(checks)])


def _rows(evidence: Evidence) -> str:
    """Count the rows of the fit."""
    counts = evidence.fit.row_counts
    selected = counts["selected"]
    total = selected + counts.get("unselected", 0)
    if not evidence.way.is_corrected:
        return plural(total, "row")
    return f"{plural(total, 'row')}, {count(selected)} with an outcome"


def _unreliable(
    evidence: Evidence, checks: Sequence[Check], bounds: Mapping[int, Effect] | None
) -> Passage:
    """Say that nothing was found that may be relied on, and why."""
    y = Name(evidence.outcome)
    said = [
        passage("The model of ", y, f" ({_rows(evidence)}) is not to be relied on."),
        *(passage(check.title) for check in checks if check.level == "problem"),
    ]
    main = evidence.main
    bound = None if main is None else (bounds or {}).get(main.lead)
    if evidence.no_exclusion and main is not None and bound is not None and bound.has_interval:
        low, high = effects(bound.low, bound.high)
        more = passage(f"{low} to {high} more ", y)
        if evidence.fit.family.has_classes:
            target = evidence.words.target
            more = passage(f"a coefficient of {low} to {high} in the index of ", target)
        said.append(
            passage(
                "If rho is anywhere from \u22120.3 to 0.3, ",
                evidence.naming.change_of(main.lead),
                " goes with ",
                more,
                " (95% uncertainty interval).",
            )
        )
    said.append(passage("No estimate of it is reported as a finding."))
    return join(said)


def _effect(evidence: Evidence) -> Passage:
    """Give the main effect with its interval, how it was found, and what ignores selection."""
    main, y = evidence.main, Name(evidence.outcome)
    if main is None or not main.effect.known:
        verb = "was chosen to predict " if evidence.way.chose else "is in the model of "
        return passage(f"No feature {verb}", y, f" ({_rows(evidence)}).")
    change = evidence.naming.change_of(main.lead)
    start = passage("Allowing for selection, ", change)
    if not evidence.way.is_corrected:
        start = passage(f"{evidence.fit.family.words.by_naive}, ", change)
    elif evidence.held is not None:
        start = passage(f"With rho {held_in_words(evidence.held)}, ", change)
    inside = [interval_words(evidence, main), _how(evidence), passage(_rows(evidence))]
    if evidence.words.averaged:
        inside.insert(1, passage(f"average marginal effect{evidence.words.averaged}"))
    inside.append(_least_squares(evidence, main))
    return passage(
        start, " went with ", evidence.amount(main.effect), " (", join(inside, "; "), ")."
    )


def _how(evidence: Evidence) -> Passage:
    """Say how the estimate was found."""
    fit = evidence.fit
    steps = "maximum likelihood" if fit.spec.method == "ml" else "two steps"
    if "two steps" not in fit.family.supports:
        steps = fit.family.words.model
    if not evidence.way.is_corrected:
        return passage("no outcome is missing")
    if evidence.way.is_average:
        sampling = " of a pseudo-likelihood, with sampling weights" if evidence.pseudo else ""
        features = plural(len(evidence.candidates), "feature")
        return passage(f"{describe_average(fit)}{sampling}; {features}; {steps}")
    if evidence.way.chose:
        which = named(evidence.chosen, _NAMED) if evidence.chosen else passage("no feature")
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


def _which(evidence: Evidence) -> Passage:
    """Say which features predict as far as that is known, and for which it cannot be told."""
    y = Name(evidence.outcome)
    if evidence.way.halves_rows:
        main = evidence.main
        if main is None or main.chance is None:
            return passage()
        share = evidence.share_words(main)
        return passage(Name(main.name), f" was chosen in {share} random halves of the rows.")
    if not evidence.has_chances:
        return passage()
    sure, unsure, _ = evidence.by_certainty()
    said = []
    if sure:
        verb = "predicts" if len(sure) == 1 else "predict"
        said.append(
            passage(f"By {BY} weights, ", _with_chances(sure, "chance "), f" {verb} ", y, ".")
        )
    if unsure:
        start = "Whether " if sure else f"By {BY} weights, whether "
        verb = "predicts" if len(unsure) == 1 else "predict"
        first = _with_chances(unsure, "" if sure else "chance ")
        said.append(passage(start, first, f" {verb} ", y, " cannot be told."))
    if not said:
        nothing = f"By {BY} weights, there is no sign that any feature predicts "
        said.append(passage(nothing, y, "."))
    return join(said)


def _with_chances(features: Sequence[FeatureEvidence], what: str) -> Passage:
    """Name features with their chances; the first says what the numbers are."""
    most = _NAMED if len(features) <= _NAMED else _NAMED - 1
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


def _selection(evidence: Evidence) -> Passage:
    """Say whether selection on what was not observed took place, as far as that is known."""
    judged, what = evidence.judgement, "selection on what was not observed"
    numbers = correction_words(evidence)
    if judged.chance is not None:
        numbers = f"chance {chance_text(judged.chance)} by {BY} weights; {numbers}"
    test = judged.test
    if test is not None and not test.note:
        numbers += f"; test of rho = 0: {p_equals(test.p_value)}"
    match judged.kind:
        case "nothing missing":
            return passage()
        case "not asked":
            return passage(f"{given_rho(evidence)}: whether {what} took place was not asked.")
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


def _gravest(checks: Sequence[Check]) -> Passage:
    """State the gravest check that is not fine."""
    for check in checks:
        if check.level == "caution":
            value = f" ({check.value})" if check.value else ""
            return passage(f"{check.title.removesuffix('.')}{value}.")
    return passage()
