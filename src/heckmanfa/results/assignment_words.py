"""What the weights of all assignments mean for a choice, in words: each sentence is written here.

A joint chi-squared of features that a search left out describes: the search saw the same rows, so
it has no p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.assignment_tests import StandIn
from heckmanfa.results.assignment_weights import (
    AssignmentWeights,
    LeftOut,
    are_known,
    choices_of,
    weights_of,
)
from heckmanfa.results.average_caveats import AGREE
from heckmanfa.results.average_tables import (
    has_pseudo_weights,
    null_share,
    shares_frame,
    unit_names,
)
from heckmanfa.results.document import Caveat, Finding, Section, Verdict
from heckmanfa.results.inclusion import selection_sections
from heckmanfa.results.judgement import VerdictKind, judgement_of
from heckmanfa.search.averaging import WEIGHT_CRITERIA
from heckmanfa.text.chances import BY, CHANCES_BY
from heckmanfa.text.wording import (
    chance_text,
    listed,
    number,
    plural,
    sets_count,
    share_text,
    some,
)

WEIGHT_CAVEATS = (
    *("assignment_weight", "left_out", "stand_ins", "imr_optional", "not_weighed"),
    "pseudo_weights",
)
"""keys of the caveats that `caveats_of_weights` returns"""

# A summary mentions assignments with rho-hat outside (-1, 1) if they carry this much.
_MENTIONED_OUTSIDE = 0.01
_OFTEN_OUTSIDE = 0.05
# Below this many per degree of freedom, AIC would not take them all.
_AIC_PENALTY = 2.0
_NOT_A_TEST = "After a search, that describes; it does not test."
_NOT_TOGETHER = (
    "All candidates cannot be fitted together, so there is no joint chi-squared of those left out."
)


def caveats_of_weights(fit: Fit) -> list[Caveat]:
    """Return the caveats that follow from the weights of all assignments.

    There are none without a search or an average.
    """
    if fit.average is not None:
        return _of_average(fit)
    if fit.search is None or not fit.search.chose:
        return []
    if not are_known(fit):
        words = (
            f"The weight of this assignment among all of {len(choices_of(fit).units)} features or "
            "groups takes a while to compute; see search_report()."
        )
        return [Caveat("not_weighed", "note", words)]
    found = weights_of(fit)
    if isinstance(found, str):
        return [Caveat("not_weighed", "note", found)]
    caveats = [_of_choice(fit, found)]
    if found.left_out is not None:
        caveats.append(Caveat("left_out", "note", _left_out(found.left_out)))
    return [*caveats, *_of_stand_ins(fit, found), *_of_imr(fit, found)]


def _of_average(fit: Fit) -> list[Caveat]:
    """Caveats of an average, whose summary has the weights of assignments and features."""
    if has_pseudo_weights(fit):
        words = "sampling weights leave only a pseudo-likelihood to weigh assignments by."
        claim = "That features have known chances to predict"
        return [Caveat("pseudo_weights", "caution", f"Chances are rough: {words}", claim, words)]
    found = weights_of(fit) if are_known(fit) else ""
    return [] if isinstance(found, str) else [*_of_stand_ins(fit, found), *_of_imr(fit, found)]


def _of_stand_ins(fit: Fit, found: AssignmentWeights) -> list[Caveat]:
    if not found.stand_ins:
        return []
    words = stand_in_sentence(fit, found.stand_ins[0])
    if len(found.stand_ins) > 1:
        words += f" So do others: {_others(fit, found.stand_ins)}."
    return [Caveat("stand_ins", "caution", words)]


def _of_imr(fit: Fit, found: AssignmentWeights) -> list[Caveat]:
    if found.correction is None:
        return []
    by = ", ".join(
        f"{share_text(found.correction[kind])} by {kind.upper()}" for kind in WEIGHT_CRITERIA
    )
    words = f"Assignments with {_correction(fit)} carry this much of the weight: {by}."
    return [Caveat("imr_optional", "note", words)]


def _of_choice(fit: Fit, found: AssignmentWeights) -> Caveat:
    sentence = f"{_choice(fit, found)}{_outside(found)}"
    alone = found.chosen_is_best and found.n_half == 1
    return Caveat("assignment_weight", "note" if alone else "caution", sentence)


def _choice(fit: Fit, found: AssignmentWeights) -> str:
    """Say how much weight the chosen assignment has, and how many carry half."""
    window = "" if found.average.rho_range is None else " in the window"
    weight = f"of the BIC weight of all assignments{window}"
    alone = found.n_half == 1
    half = "" if alone else f"; {_n_half(found)} carry half of it"
    about = _about(found)
    best = f"best by BIC has {about}{share_text(found.best)}"
    if found.chosen is None:
        return f"The {best} {weight}{half}."
    if found.chosen == 0.0:
        return (
            "These features weigh nothing, since they are more than a third of the selected rows; "
            f"the {best} {weight}{half}."
        )
    have = "These features have" if fit.features else "The empty assignment has"
    these = f"{have} {about}{share_text(found.chosen)} {weight}"
    if not found.chosen_is_best:
        return f"{these}, and the {best}{half}."
    return f"{these}{'' if alone else ', the most of any'}{half}."


def _about(found: AssignmentWeights) -> str:
    """Say that the weight of an assignment is an estimate, if assignments were sampled."""
    return "" if found.average.exhaustive else "about "


def _n_half(found: AssignmentWeights) -> str:
    """Format how many assignments carry half of the weight."""
    return sets_count(found.n_half, sampled=not found.average.exhaustive)


def _assignments(n: int) -> str:
    return "assignment" if n == 1 else "assignments"


def _outside(found: AssignmentWeights) -> str:
    if found.average.outside < _MENTIONED_OUTSIDE:
        return ""
    return f" Those with |rho-hat| >= 1 carry {share_text(found.average.outside)}."


def _left_out(left_out: LeftOut) -> str:
    if np.isnan(left_out.chi2):
        return _NOT_TOGETHER
    features = plural(left_out.df, "feature")
    return (
        f"In the model of all candidates, the {features} left out "
        f"{'has' if left_out.df == 1 else 'have'} {_chi2(left_out)}. {_NOT_A_TEST}"
    )


def _approximated() -> str:
    """Say what weighs the assignments of a binary outcome."""
    return "Weights follow the likelihood's quadratic approximation at the model of all candidates."


def _chi2(left_out: LeftOut) -> str:
    return f"chi2({left_out.df}) = {number(left_out.chi2)}"


def _unit(fit: Fit, unit: Sequence[int]) -> str:
    """Name a feature, or a group by its term or its columns."""
    return listed(unit_names(fit, unit))


def _others(fit: Fit, stand_ins: Sequence[StandIn]) -> str:
    return some([_unit(fit, item.columns) for item in stand_ins[1:]])


def stand_in_sentence(fit: Fit, item: StandIn) -> str:
    """Say how the share of the correction depends on a feature or group."""
    name, it = _unit(fit, item.columns), "it" if len(item.columns) == 1 else "them"
    rejected, instead = share_text(item.corrected_without), share_text(item.corrected_with)
    if item.corrected_without > item.corrected_with:
        return (
            f"{name} and {_correction(fit)} stand in for each other: without {name}, {rejected} of "
            f"the BIC weight holds the correction; with {it}, {instead}."
        )
    return (
        f"{_correction(fit)[0].upper()}{_correction(fit)[1:]} goes with {name}: with {it}, "
        f"{instead} of the BIC weight holds the correction; without {it}, {rejected}."
    )


def _correction(fit: Fit) -> str:
    """Name what corrects for selection: there is no lambda if the outcome is binary."""
    return "the correction" if fit.is_binary else "lambda"


def findings_of_weights(fit: Fit) -> list[Finding]:
    """Return what the weights of all assignments show, as lines of the diagnostics."""
    averaged = fit.average is not None
    if not averaged and (fit.search is None or not fit.search.chose):
        return []
    # An average evaluated as many assignments in its fit.
    found = weights_of(fit) if averaged or are_known(fit) else ""
    if isinstance(found, str):
        return []
    return [
        _weight_finding(found),
        *_left_out_finding(found),
        *_stand_in_finding(fit, found),
        *([] if averaged or fit.is_binary else [_outside_finding(found)]),
        kinds_finding(fit, found),
        *_imr_finding(fit, found),
        *_all_features_finding(fit, found),
    ]


def _weight_finding(found: AssignmentWeights) -> Finding:
    share = found.best if found.chosen is None else found.chosen
    carry = f"{_assignments(found.n_half)} {'carries' if found.n_half == 1 else 'carry'}"
    value = f"{_about(found)}{share_text(share)}; {_n_half(found)} {carry} half"
    clear = (found.chosen is None or found.chosen_is_best) and found.n_half == 1
    words = "It outweighs all others together." if clear else "The data do not single it out."
    case = "not drawn"
    if found.chosen is not None and not found.chosen_is_best:
        case, words = "chosen", f"The best by BIC has {share_text(found.best)}."
    return Finding(
        "assignment_weight",
        f"BIC weight of the {'best' if found.chosen is None else 'chosen'} assignment",
        value,
        "ok" if clear else "caution",
        words,
        case=case,
        short=f"{_about(found)}{chance_text(share)} of the BIC weight; "
        f"{_n_half(found)} {carry} half of it",
    )


def _left_out_finding(found: AssignmentWeights) -> list[Finding]:
    left_out = found.left_out
    if left_out is None:
        return []
    name = "features left out, in the model of all candidates"
    if np.isnan(left_out.chi2):
        return [Finding("left_out", name, "not known", "caution", _NOT_TOGETHER, case="untested")]
    many = left_out.chi2 > _AIC_PENALTY * left_out.df
    words = "would" if many else "would not"
    return [
        Finding(
            "left_out",
            name,
            _chi2(left_out),
            "caution" if many else "ok",
            f"Together they {words} improve AIC. {_NOT_A_TEST}",
        )
    ]


def _stand_in_finding(fit: Fit, found: AssignmentWeights) -> list[Finding]:
    if found.stand_ins is None:
        return []
    key, name = "stand_ins", f"features that stand in for {_correction(fit)}"
    if not found.stand_ins:
        words = "No feature that cannot be told takes the correction's place, or goes with it."
        return [Finding(key, name, "none", "ok", words)]
    value = some([_unit(fit, item.columns) for item in found.stand_ins])
    words = " ".join(stand_in_sentence(fit, item) for item in found.stand_ins[:3])
    first = found.stand_ins[0]
    case = "" if first.corrected_without > first.corrected_with else "with"
    names = tuple(unit_names(fit, first.columns))
    return [Finding(key, name, value, "caution", words, case=case, names=names)]


def _outside_finding(found: AssignmentWeights) -> Finding:
    outside = found.average.outside
    often = outside >= _OFTEN_OUTSIDE
    words = "The data do not fit many assignments, or hardly identify rho in them."
    return Finding(
        "outside_weight",
        "BIC weight with |rho-hat| >= 1",
        share_text(outside),
        "caution" if often else "ok",
        words if often else "Nearly all of the weight has a rho that is a correlation.",
    )


def kinds_finding(
    fit: Fit,
    found: AssignmentWeights,
    named: Callable[[Sequence[str]], Sequence[str]] = lambda columns: columns,
) -> Finding:
    """Say which features depend on the kind of weights; ``named`` may name columns otherwise."""
    moved = [listed(named(unit_names(fit, unit))) for unit in found.moved()]
    key, name = "weight_kinds", "features that depend on the kind of weights"
    if not moved:
        words = "AIC, BIC and EBIC weights all favour the same features."
        return Finding(key, name, "none", "ok", words)
    return Finding(key, name, some(moved), "caution", _moved(found, moved))


def _moved(found: AssignmentWeights, moved: Sequence[str]) -> str:
    """Say which of these features only some kinds of weights favour."""
    parts: dict[tuple[bool, ...], list[str]] = {}
    for unit, unit_name in zip(found.moved(), moved, strict=True):
        favoured = tuple(found.share(unit, kind) >= 0.5 for kind in WEIGHT_CRITERIA)
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
    return " ".join(clauses)


_JUDGED: dict[VerdictKind, tuple[Verdict, str]] = {
    "yes": ("ok", "Selection mattered: neither a feature nor the index takes its place."),
    "no sign": ("ok", "There is no sign that selection mattered; that proves nothing."),
    "unknown": ("caution", "Whether selection mattered cannot be told."),
    "unreliable": ("caution", "The model is not to be relied on, and so is this chance."),
}


def _imr_finding(fit: Fit, found: AssignmentWeights) -> list[Finding]:
    """Give the chance of the correction, and what it says."""
    if found.correction is None:
        return []
    judged = judgement_of(fit, found)
    verdict, words = _JUDGED[judged.kind]
    if judged.kind == "unknown" and judged.rival:
        words += " What drives selection may move the outcome too."
    by, short = (
        ", ".join(f"{text(found.correction[kind])} by {kind.upper()}" for kind in WEIGHT_CRITERIA)
        for text in (share_text, chance_text)
    )
    name = "chance that selection mattered"
    return [Finding("imr_optional", name, by, verdict, words, case=judged.kind, short=short)]


def _all_features_finding(fit: Fit, found: AssignmentWeights) -> list[Finding]:
    """Give the test of rho = 0 with all features, beside what was chosen or averaged."""
    if found.correction is None or not found.form.knows_correction:
        return []
    whole = judgement_of(fit, found).all_features
    assert whole is not None
    what = "beta_H" if found.form.errors == "two-step" else "rho"
    value = f"{what} {number(whole.estimate)}; {whole.test}"
    words = "No search had a part in it: every candidate predicts."
    return [Finding("all_features_test", "test of rho = 0, all features", value, "ok", words)]


def weight_sections(fit: Fit, found: AssignmentWeights | str) -> list[Section]:
    """Return the weights of all assignments as parts of the search report."""
    title = "Weight of the assignments"
    if isinstance(found, str):
        return [Section(title, notes=(found,))]
    facts, about = [], _about(found)
    if found.chosen is not None:
        most = ", the most of any" if found.chosen_is_best else ""
        facts.append(("Chosen, BIC weight", f"{about}{share_text(found.chosen)}{most}"))
    if not found.chosen_is_best:
        facts.append(("Best, BIC weight", f"{about}{share_text(found.best)}"))
    facts += [
        ("Half of the weight in", f"{_n_half(found)} {_assignments(found.n_half)}"),
    ]
    if not fit.is_binary:
        facts.append(("With |rho-hat| >= 1", share_text(found.average.outside)))
    if found.correction is not None:
        by = ", ".join(
            f"{share_text(found.correction[kind])} by {kind.upper()}" for kind in WEIGHT_CRITERIA
        )
        facts.append((f"With {_correction(fit)}", by))
    notes = [stand_in_sentence(fit, item) for item in found.stand_ins or ()]
    if found.left_out is not None:
        notes.append(_left_out(found.left_out))
    if fit.is_binary:
        notes.append(_approximated())
    shares = shares_frame(fit, found.average, found.units)
    shares["feature"] = [", ".join(unit_names(fit, unit)) for unit in found.units]
    shown = shares[["feature"]].copy()
    for kind in WEIGHT_CRITERIA:
        shown[kind.upper()] = shares[kind].map(share_text)
    shown[f"{BY} alone"] = shares[f"{CHANCES_BY}_alone"].map(share_text)
    shown["role"] = shares["role"]
    remarks = [
        f"Roles follow {BY} weights. A feature without any effect typically has a share of about "
        f"{null_share(found.average.n_selected)}, on its own. Alone is without the index.",
    ]
    if found.moved():
        remarks.append(kinds_finding(fit, found).meaning)
    if found.average.disagreement is not None:
        agree = "agree" if found.average.disagreement <= AGREE else "do not agree"
        remarks.append(
            "Assignments were sampled, since there are too many to evaluate all. The chains of the "
            f"sampler {agree}: shares differ by up to {number(found.average.disagreement, 2)}."
        )
    sections = [
        Section(title, facts=tuple(facts), notes=tuple(notes)),
        Section("Share of the weight that holds each feature", table=shown, notes=tuple(remarks)),
    ]
    return [*sections, *selection_sections(fit, found.average)]
