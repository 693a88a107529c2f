"""What a search by a quadratic approximation proves, and what its exact refits add, in words.

Branch and bound proves which assignments are the best by the approximation. Maximum likelihood
refits these, and chooses among them exactly. An assignment that was not refitted is better only if
the approximation is wrong by more than a known margin.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.results.document import Caveat
from heckmanfa.search.searched import ExactRefits, Search, SearchOutcome
from heckmanfa.text.wording import CRITERIA, count, number, percent, plural


def n_refitted(search: Search) -> int:
    """Count the assignments that were refitted, those without a maximum among them."""
    return len(search.bic)


def is_cut_short(outcome: SearchOutcome, search: Search, n: int) -> bool:
    """Whether ``n`` assignments are all that were refitted, though there are more."""
    return search.refits is not None and n == n_refitted(search) < outcome.n_possible


def best_refitted(outcome: SearchOutcome, search: Search) -> str:
    """Say among which assignments the prediction features are the best."""
    n, best = n_refitted(search), f"best by {CRITERIA[search.goal.criterion]} of"
    if n >= outcome.n_possible:
        return f"{best} all {count(n)} assignments, each fitted by maximum likelihood"
    which = "proven the best of all" if search.optimal else "the best found of"
    return (
        f"{best} {plural(n, 'assignment')} refitted by maximum likelihood, {which} "
        f"{count(outcome.n_possible)} by a quadratic approximation"
    )


def caveat_of_refits(
    best: str, outcome: SearchOutcome, search: Search, refits: ExactRefits
) -> Caveat:
    """Say what is proven, what is exact, and whether a better assignment may have been missed."""
    extra = "".join(f" {sentence}" for sentence in _without_maximum(refits))
    if n_refitted(search) >= outcome.n_possible:
        return Caveat("search", "note", f"{best}.{extra}")
    exact = search.values
    margin, error = refits.margin(exact), refits.largest_error(exact)
    criterion = CRITERIA[search.goal.criterion]
    most = f"at most {number(error, 3)} below" if error > 0.0 else "not below"
    another = (
        f"Another assignment is better only if its {criterion} is more than {number(margin, 3)} "
        f"below its approximation; those refitted are {most}."
    )
    if not search.optimal:
        gap = number(search.gap or 0.0, 3)
        another = f"By the approximation, another assignment may be better by {gap}."
    sentence = f"{best}. {agreement_words(search, refits)} {another}{extra}"
    if search.optimal and error < margin:
        return Caveat("search", "note", sentence)
    why = another[0].lower() + another[1:]
    if not search.optimal:
        why = f"the search ended before the approximation's best was proven; {why}"
    return Caveat("search", "caution", sentence, "That no assignment is better", why)


def _without_maximum(refits: ExactRefits) -> list[str]:
    """Say which models have no maximum with rho inside (-1, 1)."""
    sentences = []
    if refits.n_failed:
        failed = plural(refits.n_failed, "refit has", "refits have")
        sentences.append(f"{failed} no maximum with rho inside (-1, 1), and could not be chosen.")
    if refits.held_rho is not None:
        sentences.append(
            "Nor has the model of all candidates, so its approximation holds rho at "
            f"{refits.held_rho:g}."
            if sentences
            else "The model of all candidates has no maximum with rho inside (-1, 1), so its "
            f"approximation holds rho at {refits.held_rho:g}."
        )
    return sentences


def agreement_words(search: Search, refits: ExactRefits) -> str:
    """Say how far the order by the approximation agrees with the exact one."""
    share = refits.same_order(search.values)
    if np.isnan(share):
        return ""
    same = "the same" if refits.best_is_same(search.values) else "not the same"
    return f"Both orders agree in {percent(share, 0)} of pairs, and their best is {same}."


def refit_facts(search: Search, refits: ExactRefits) -> list[tuple[str, str]]:
    """Return what is proven and what is exact, for the search report."""
    exact = search.values
    share = refits.same_order(exact)
    facts = [("Refitted exactly", f"{n_refitted(search):,}")]
    if refits.n_failed:
        facts.append(("Refits without a maximum", f"{refits.n_failed:,}"))
    proven = (
        "yes" if search.optimal else f"no; one better by {number(search.gap or 0.0, 3)} may exist"
    )
    facts.append(("Approximation's best proven", proven))
    if not np.isnan(share):
        facts.append(("Pairs in the same order", percent(share, 0)))
    error = refits.largest_error(exact)
    facts.append(("Exact lower by at most", number(error, 3) if error > 0.0 else "not lower"))
    margin = refits.margin(exact)
    reach = "all were refitted" if np.isinf(margin) else number(margin, 3)
    facts.append(("Another is better if lower by", reach))
    if refits.held_rho is not None:
        facts.append(("Approximation holds rho at", f"{refits.held_rho:g}"))
    return facts
