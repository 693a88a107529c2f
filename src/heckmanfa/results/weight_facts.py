"""Facts that follow from the weights of all assignments behind a search or an average.

A joint chi-squared of features that a search left out describes: the search saw the same rows, so
it has no p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights, StandIn
from heckmanfa.results.average_tables import OFTEN_OUTSIDE, has_pseudo_weights, unit_names
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import UNTESTED, Fact, Level
from heckmanfa.results.judgement import judgement_of
from heckmanfa.search.averaging import WEIGHT_CRITERIA
from heckmanfa.text.labels import said_all
from heckmanfa.text.wording import (
    capitalised,
    chance_text,
    listed,
    number,
    plural,
    sets_count,
    share_text,
    some,
)

# A summary mentions assignments with rho-hat outside (-1, 1) if they carry this much.
_MENTIONED_OUTSIDE = 0.01
# Below this many per degree of freedom, AIC would not take them all.
_AIC_PENALTY = 2.0


def weight_facts(fit: Fit, weights: AssignmentWeights | str | None) -> list[Fact]:
    """Return what the weights of all assignments show; nothing without a search or an average."""
    averaged = fit.way.is_average
    if weights is None:
        return []
    if averaged and has_pseudo_weights(fit):
        return [tell(fit, "pseudo_weights", "caution")]
    if isinstance(weights, str):
        return [] if averaged else [tell(fit, "not_weighed", "note", why_not=weights)]
    outside = not averaged and fit.family.has_imr
    return [
        _weight(fit, weights),
        *left_out_facts(fit, weights),
        *_stand_ins(fit, weights),
        *([_outside(fit, weights)] if outside else []),
        kinds_fact(fit, weights),
        *_correction(fit, weights),
    ]


def _weight(fit: Fit, weights: AssignmentWeights) -> Fact:
    share = weights.best if weights.chosen is None else weights.chosen
    carry = f"{assignments(weights.n_half)} {'carries' if weights.n_half == 1 else 'carry'}"
    is_best = weights.chosen is None or weights.chosen_is_best
    return tell(
        fit,
        "best_set",
        "ok" if is_best and weights.n_half == 1 else "caution",
        f"{about(weights)}{share_text(share)}; {half(weights)} {carry} half",
        case="not drawn" if is_best else "chosen",
        short=f"{about(weights)}{chance_text(share)} of the BIC weight; {half(weights)} {carry} "
        "half of it",
        which="best" if weights.chosen is None else "chosen",
        best=share_text(weights.best),
        sentence="" if fit.way.is_average else _choice(fit, weights),
    )


def _choice(fit: Fit, weights: AssignmentWeights) -> str:
    """Say how much weight the chosen assignment has, and how many carry half."""
    window = "" if weights.mixture.rho_range is None else " in the window"
    weight = f"of the BIC weight of all assignments{window}"
    alone = weights.n_half == 1
    rest = "" if alone else f"; {half(weights)} carry half of it"
    best = f"best by BIC has {about(weights)}{share_text(weights.best)}"
    have = "These features have" if fit.features else "The empty assignment has"
    these = f"{have} {about(weights)}{share_text(weights.chosen or 0.0)} {weight}"
    if weights.chosen is None:
        said = f"The {best} {weight}{rest}."
    elif weights.chosen == 0.0:
        said = (
            "These features weigh nothing, since they are more than a third of the selected rows; "
            f"the {best} {weight}{rest}."
        )
    elif not weights.chosen_is_best:
        said = f"{these}, and the {best}{rest}."
    else:
        said = f"{these}{'' if alone else ', the most of any'}{rest}."
    if weights.mixture.outside < _MENTIONED_OUTSIDE:
        return said
    return f"{said} Those with |rho-hat| >= 1 carry {share_text(weights.mixture.outside)}."


def about(weights: AssignmentWeights) -> str:
    """Say that the weight of an assignment is an estimate, if assignments were sampled."""
    return "" if weights.mixture.exhaustive else "about "


def half(weights: AssignmentWeights) -> str:
    """Format how many assignments carry half of the weight."""
    return sets_count(weights.n_half, sampled=not weights.mixture.exhaustive)


def assignments(n: int) -> str:
    """Return the noun."""
    return "assignment" if n == 1 else "assignments"


def left_out_facts(fit: Fit, weights: AssignmentWeights) -> list[Fact]:
    """Say what the features that were not chosen would add together."""
    left_out = weights.left_out
    if left_out is None:
        return []
    if np.isnan(left_out.chi2):
        return [tell(fit, "left_out", "caution", "not known", case=UNTESTED)]
    return [
        tell(
            fit,
            "left_out",
            "caution" if left_out.chi2 > _AIC_PENALTY * left_out.df else "ok",
            f"chi2({left_out.df}) = {number(left_out.chi2)}",
            features=plural(left_out.df, "feature"),
            have="has" if left_out.df == 1 else "have",
        )
    ]


def _unit(fit: Fit, unit: Sequence[int]) -> str:
    """Name a feature, or a group by its term or its columns."""
    return listed(said_all(unit_names(fit, unit)))


def stand_in_sentence(fit: Fit, item: StandIn) -> str:
    """Say how the share of the correction depends on a feature or group."""
    name, it = _unit(fit, item.columns), "it" if len(item.columns) == 1 else "them"
    correction = fit.family.words.correction
    without, inside = share_text(item.corrected_without), share_text(item.corrected_with)
    if item.corrected_without > item.corrected_with:
        return (
            f"{name} and {correction} stand in for each other: without {name}, {without} of the "
            f"BIC weight holds the correction; with {it}, {inside}."
        )
    return (
        f"{capitalised(correction)} goes with {name}: with {it}, {inside} of the BIC "
        f"weight holds the correction; without {it}, {without}."
    )


def _stand_ins(fit: Fit, weights: AssignmentWeights) -> list[Fact]:
    if weights.stand_ins is None:
        return []
    if not weights.stand_ins:
        return [tell(fit, "stand_ins", "ok", "none")]
    units = [_unit(fit, item.columns) for item in weights.stand_ins]
    sentences = [stand_in_sentence(fit, item) for item in weights.stand_ins]
    others = f" So do others: {some(units[1:])}." if len(units) > 1 else ""
    first = weights.stand_ins[0]
    return [
        tell(
            fit,
            "stand_ins",
            "caution",
            some(units),
            case="" if first.corrected_without > first.corrected_with else "with",
            names=tuple(unit_names(fit, first.columns)),
            sentences=" ".join(sentences[:3]),
            first=f"{sentences[0]}{others}",
        )
    ]


def _outside(fit: Fit, weights: AssignmentWeights) -> Fact:
    outside = weights.mixture.outside
    level: Level = "caution" if outside >= OFTEN_OUTSIDE else "ok"
    return tell(fit, "outside_weight", level, share_text(outside))


def kinds_fact(
    fit: Fit,
    weights: AssignmentWeights,
    named: Callable[[Sequence[str]], Sequence[str]] = lambda columns: columns,
) -> Fact:
    """Say which features depend on the kind of weights; ``named`` may name columns otherwise."""
    moved = [listed(said_all(named(unit_names(fit, unit)))) for unit in weights.moved()]
    if not moved:
        return tell(fit, "weight_kinds", "ok", "none")
    parts: dict[tuple[bool, ...], list[str]] = {}
    for unit, unit_name in zip(weights.moved(), moved, strict=True):
        favoured = tuple(weights.share(unit, kind) >= 0.5 for kind in WEIGHT_CRITERIA)
        parts.setdefault(favoured, []).append(unit_name)
    clauses = []
    for favoured, names in parts.items():
        by, others = (
            listed(
                [
                    kind.upper()
                    for kind, holds in zip(WEIGHT_CRITERIA, favoured, strict=True)
                    if holds is side
                ]
            )
            for side in (True, False)
        )
        clauses.append(f"{by} weights favour {some(names)}; {others} weights do not.")
    return tell(fit, "weight_kinds", "caution", some(moved), clauses=" ".join(clauses))


def _correction(fit: Fit, weights: AssignmentWeights) -> list[Fact]:
    """Give the chance of the correction, what it says, and its test with all features."""
    if weights.correction is None:
        return []
    judged = judgement_of(fit, weights)
    level: Level = "ok" if judged.kind in ("yes", "no sign") else "caution"
    by, short = (
        ", ".join(f"{text(weights.correction[kind])} by {kind.upper()}" for kind in WEIGHT_CRITERIA)
        for text in (share_text, chance_text)
    )
    rival = " What drives selection may move the outcome too." if judged.rival else ""
    facts = [tell(fit, "imr_optional", level, by, case=judged.kind, short=short, rival=rival)]
    whole = judged.all_features
    if whole is None or not weights.form.knows_correction:
        return facts
    what = "beta_H" if weights.form.errors == "two-step" else "rho"
    value = f"{what} {number(whole.estimate)}; {whole.test}"
    return [*facts, tell(fit, "all_features_test", "ok", value)]
