"""Facts of prediction features that a search chose, over halves of the rows, or averaged over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import OFTEN_OUTSIDE
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.search.averaging.weights import ALL_FEATURES_SHARE
from heckmanfa.search.goal import KEPT
from heckmanfa.search.searched import ExactRefits, HonestSplits, Search, SearchOutcome
from heckmanfa.text.chances import BY, COVERAGE, HIGH, NOT_SIMULATED
from heckmanfa.text.labels import said
from heckmanfa.text.option_words import instead, told
from heckmanfa.text.wording import CRITERIA, count, number, percent, plural, true_minus, window_text

AGREE = 0.01
"""Chains of the sampler agree if no share of weight differs by more."""

# Facts that a summary of an average has besides its four sentences.
_SUMMARIZED = frozenset(
    {
        *("window", "pseudo_weights", "sampled", "dropped_features"),
        *("clusters", "maxima", "hausman", "equal_variance"),
    }
)
_LESS = (
    "With less than half of their weight for all features, 95% intervals cover fewer effects than "
    "they should where features are hard to tell apart."
)


def search_facts(fit: Fit) -> list[Fact]:
    """Return the facts about the search or the average behind a fit; none without either."""
    if fit.way.is_average:
        return _of_average(fit)
    outcome = fit.search
    if outcome is None:
        return []
    search = outcome.result
    if search is None:
        return [tell(fit, "nothing_searched", "note")]
    if fit.way.halves_rows:
        facts = _of_halves(fit, outcome, search, fit.way.halves)
    else:
        facts = _of_choice(fit, outcome, search)
    if search.goal.rho_range is not None:
        facts += _of_window(fit, search, search.goal.rho_range)
    if search.early_stop:
        facts.append(tell(fit, "search_ended", "caution", why=search.early_stop))
    trained = outcome.training
    if trained is not None and trained.n_rows < trained.n_selected:
        rows, selected = f"{trained.n_rows:,}", f"{trained.n_selected:,}"
        facts.append(tell(fit, "trained_on_sample", "note", rows=rows, selected=selected))
    return facts


# A search in all rows. ----------------------------------------------------------------------------


def describe_search(fit: Fit) -> str:
    """Say among which assignments the prediction features are the best; empty without a search."""
    search = fit.search
    if search is None:
        return ""
    if search.result is None:
        return "nothing was searched"
    if fit.way.halves_rows:
        criterion = CRITERIA[search.result.goal.criterion]
        splits = len(fit.way.halves.estimates)
        return f"chosen by {criterion} in at least half of {splits} random halves of the rows"
    return _best_of(search, search.result)


def kept_whole(fit: Fit) -> str:
    """Return why halves of the rows cannot stand in for the search; empty if they can."""
    if fit.spec.survey is not None:
        return "design" if fit.spec.survey.replicate_weights is None else "replicates"
    if fit.family.sees_everyone:
        return "treatment"
    return "" if fit.family.can("honest halves") else "no halves"


def _best_of(outcome: SearchOutcome, search: Search) -> str:
    """Describe what the search over all rows found."""
    if outcome.n_possible == 1:
        return "the only assignment that was allowed"
    best = f"best by {CRITERIA[search.goal.criterion]} of"
    possible = count(outcome.n_possible)
    if search.refits is not None and n_refitted(search) >= outcome.n_possible:
        return f"{best} all {possible} assignments, each fitted by maximum likelihood"
    if search.refits is not None:
        which = "proven the best of all" if search.optimal else "the best found of"
        refitted = plural(n_refitted(search), "assignment")
        return (
            f"{best} {refitted} refitted by maximum likelihood, {which} {possible} by a quadratic "
            "approximation"
        )
    window = search.goal.rho_range
    inside = "" if window is None else f" with rho from {window[0]:g} to {window[1]:g}"
    if search.optimal:
        among = inside and f", among those{inside}"
        return f"{best} all {possible} assignments{among}, proven optimal"
    evaluated = plural(search.n_in_range if inside else search.n_assignments, "assignment")
    return f"{best} {evaluated} evaluated{inside}, out of {possible}"


def _of_choice(fit: Fit, outcome: SearchOutcome, search: Search) -> list[Fact]:
    """Facts of estimates in the rows that chose the features."""
    if outcome.n_possible == 1:
        return [tell(fit, "search", "note", judged="There was one assignment to choose from.")]
    both, whole = outcome.selecting is not None, kept_whole(fit)
    which = "features of both equations" if both else "prediction features"
    best = f"The {which} are the {_best_of(outcome, search)}"
    if search.refits is not None:
        level, judged, doubt = _refitted(best, outcome, search, search.refits)
    elif search.optimal:
        level, doubt = "note", ""
        judged = (
            f"{best}; {search.n_assignments:,} were evaluated, and bounds ruled out the others."
        )
    else:
        gap = f"; one better by {number(search.gap, 3)} may exist" if search.gap else ""
        level, judged = "caution", f"{best}{gap}."
        doubt = f"{count(search.n_assignments)} of {count(outcome.n_possible)} were evaluated{gap}."
    return [
        tell(fit, "search", level, judged=judged, doubt=doubt),
        tell(
            fit,
            "search_ignored",
            "caution",
            "features taken as known",
            case="both" if both and whole != "replicates" else whole,
        ),
        *_of_near_ties(fit, outcome, search),
    ]


def _of_near_ties(fit: Fit, outcome: SearchOutcome, search: Search) -> list[Fact]:
    near = search.nearly_best(search.nearly)
    if near <= 1:
        return []
    is_cut = near == KEPT or bool(search.early_stop) or is_cut_short(outcome, search, near)
    single = near == 2 and not is_cut
    ties = (
        f"{count(near - 1)} {'or more ' if is_cut else ''}other "
        f"{'assignment is' if single else 'assignments are'} within {search.nearly:g} of the best "
        f"in {CRITERIA[search.goal.criterion]}."
    )
    them = "it" if single else "them"
    report = instead(f"search_report() has {them}.", f"The report has {them}.")
    whole = kept_whole(fit)
    case = whole if whole == "replicates" else ""
    return [tell(fit, "near_ties", "caution", case=case, ties=ties, report=report)]


def _of_window(fit: Fit, search: Search, rho_range: tuple[float, float]) -> list[Fact]:
    low, high = rho_range
    share = 100 * search.n_in_range / search.n_assignments
    words: dict[str, Any] = {"window": window_text(rho_range), "share": f"{share:.3g}%"}
    if fit.way.halves_rows:
        return [tell(fit, "honest_window", "note", **words)]
    facts = [tell(fit, "window", "caution", "none", short="rho = 0 is not tested", **words)]
    if not low <= fit.rho <= high:
        facts.append(tell(fit, "outside_window", "caution", number(fit.rho)))
    return facts


# Assignments that maximum likelihood refitted. Branch and bound proves which are the best by a
# quadratic approximation; an assignment that was not refitted is better only if the approximation
# is wrong by more than a known margin.


def n_refitted(search: Search) -> int:
    """Count the assignments that were refitted, those without a maximum among them."""
    return len(search.bic)


def is_cut_short(outcome: SearchOutcome, search: Search, n: int) -> bool:
    """Whether ``n`` assignments are all that were refitted, though there are more."""
    return search.refits is not None and n == n_refitted(search) < outcome.n_possible


def _refitted(
    best: str, outcome: SearchOutcome, search: Search, refits: ExactRefits
) -> tuple[Level, str, str]:
    """Say what is proven, what is exact, and whether a better assignment may have been missed."""
    extra = "".join(f" {sentence}" for sentence in _without_maximum(refits))
    if n_refitted(search) >= outcome.n_possible:
        return "note", f"{best}.{extra}", ""
    exact = search.values
    margin, error = refits.margin(exact), refits.largest_error(exact)
    most = f"at most {number(error, 3)} below" if error > 0.0 else "not below"
    another = (
        f"Another assignment is better only if its {CRITERIA[search.goal.criterion]} is more than "
        f"{number(margin, 3)} below its approximation; those refitted are {most}."
    )
    if not search.optimal:
        gap = number(search.gap or 0.0, 3)
        another = f"By the approximation, another assignment may be better by {gap}."
    share, agree = refits.same_order(exact), ""
    if not np.isnan(share):
        same = "the same" if refits.best_is_same(exact) else "not the same"
        agree = f"Both orders agree in {percent(share, 0)} of pairs, and their best is {same}."
    judged = f"{best}. {agree} {another}{extra}"
    if search.optimal and error < margin:
        return "note", judged, ""
    doubt = another[0].lower() + another[1:]
    if not search.optimal:
        doubt = f"the search ended before the approximation's best was proven; {doubt}"
    return "caution", judged, doubt


def _without_maximum(refits: ExactRefits) -> list[str]:
    """Say which models have no maximum with rho inside (-1, 1)."""
    sentences = []
    if refits.n_failed:
        failed = plural(refits.n_failed, "refit has", "refits have")
        sentences.append(f"{failed} no maximum with rho inside (-1, 1), and could not be chosen.")
    if refits.held_rho is not None:
        which = "Nor has the model of all candidates"
        if not sentences:
            which = "The model of all candidates has no maximum with rho inside (-1, 1)"
        sentences.append(f"{which}, so its approximation holds rho at {refits.held_rho:g}.")
    return sentences


def refit_pairs(search: Search, refits: ExactRefits) -> list[tuple[str, str]]:
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


# Halves of the rows. ------------------------------------------------------------------------------


def _of_halves(
    fit: Fit, outcome: SearchOutcome, search: Search, honest: HonestSplits
) -> list[Fact]:
    """Facts of estimates in rows that had no part in choosing the features."""
    in_all = f"the {_best_of(outcome, search)}"
    if np.array_equal(search.best, fit.support):
        in_all = f"these features are {in_all}"
    else:
        best = fit.spec.feature_names(np.flatnonzero(search.best).tolist())
        names = ", ".join(said(str(feature)) for feature in best) or "the empty one"
        in_all = f"the search finds another set, {names}: {in_all}"
    failures = [
        tell(fit, "honest_failures", "note", splits=plural(times, "split"), reason=reason)
        for reason, times in honest.failures.items()
    ]
    criteria = "AIC and BIC" if fit.log_likelihood is None else "AIC, BIC and the log-likelihood"
    case, rho, terms = "", "", "rho"
    if fit.family.has_sigma:
        criteria, case, terms = f"Adjusted R2, {criteria}", "two-step rho", "rho, sigma"
        rho = number(_all_rows_rho(fit))
    own = f"coefficients, {terms} and their tests"
    return [
        tell(fit, "honest", "note", splits=len(honest.estimates)),
        tell(fit, "honest_target", "caution"),
        *failures,
        tell(fit, "honest_and_all_rows", "note", in_all=in_all),
        tell(fit, "honest_fit", "note", own, case=case, criteria=criteria, rho=rho),
    ]


def _all_rows_rho(fit: Fit) -> float:
    """Two-step rho of the features of an honest model in all rows."""
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).rho)


# Averages. ----------------------------------------------------------------------------------------


def weights_name(kind: str) -> str:
    """Name a kind of weights."""
    return "the mean of AIC and BIC" if kind == "mean" else kind.upper()


def describe_average(fit: Fit) -> str:
    """Say over which assignments the estimates are averaged."""
    mixture = fit.way.averaging.mixture
    how = f"weighted by {weights_name(mixture.weights)}"
    if mixture.exhaustive:
        if mixture.n_assignments == 1:
            return "those of the only assignment with weight"
        window = ""
        if mixture.rho_range is not None:
            window = true_minus(f" with rho in {window_text(mixture.rho_range)}")
        return f"averaged over all {count(mixture.n_assignments)} assignments{window}, {how}"
    return f"averaged over {count(mixture.n_assignments)} assignments that a sampler drew, {how}"


def _coverage(fit: Fit) -> str:
    """Say how far intervals are to be believed."""
    averaging = fit.way.averaging
    if averaging.mixture.all_features_share < ALL_FEATURES_SHARE:
        return _LESS
    form = averaging.form
    single = form.equations == ("prediction", "selection") and not form.shown
    simulated = single or (form.errors == "binary" and fit.family.has_classes)
    return COVERAGE[form.errors] if simulated else NOT_SIMULATED


def _of_average(fit: Fit) -> list[Fact]:
    form, mixture = fit.way.averaging.form, fit.way.averaging.mixture
    words: dict[str, Any] = {"averaged": describe_average(fit), "coverage": _coverage(fit)}
    facts = [
        tell(fit, "average", "caution", "intervals of mixtures, no p-values", **words),
        tell(fit, "no_choice", "note"),
    ]
    if mixture.disagreement is not None:
        level: Level = "ok" if mixture.disagreement <= AGREE else "caution"
        differ = number(mixture.disagreement, 2)
        facts.append(tell(fit, "sampled", level, f"shares differ by up to {differ}", differ=differ))
    if mixture.outside >= OFTEN_OUTSIDE:
        where = "outside (-1, 1)" if form.errors == "two-step" else "near its bounds"
        value = f"{percent(mixture.outside, 0)} of the weight"
        facts.append(
            tell(
                fit,
                "outside_weight",
                "caution",
                value,
                case="averaged",
                name="rho outside (-1, 1)",
                where=where,
            )
        )
    if mixture.rho_range is not None:
        window = window_text(mixture.rho_range)
        short = "rho = 0 is not tested"
        facts.append(
            tell(fit, "window", "caution", "none", case="averaged", short=short, window=window)
        )
    assert fit.probit is not None
    out = [column for column in fit.probit.features if column not in {*fit.equation}]
    names = tuple(map(str, fit.spec.feature_names(out)))
    level, case = ("caution", "") if names else ("note", "none")
    return [*facts, tell(fit, "kept_out", level, case=case, names=names)]


def summary_sentences(fit: Fit, facts: Sequence[Fact]) -> list[str]:
    """Return what a summary says below its table: problems first, then the other facts in order.

    Of an average it says what is grave, and four sentences.
    """
    facts = sorted(facts, key=lambda fact: fact.level != "problem")
    if not fit.way.is_average:
        return [told(fact.sentence) for fact in facts if fact.sentence]
    grave = [
        fact.sentence
        for fact in facts
        if fact.level == "problem" or (fact.key in _SUMMARIZED and fact.level == "caution")
    ]
    return [
        *map(told, filter(None, grave)),
        f"Estimates are {describe_average(fit)}; a chance is the share of the {BY} weight in which "
        f"a feature predicts, on its own or as it drives selection, or which holds "
        f"{' and '.join(fit.dependence_terms)}.",
        f"What has a chance of {HIGH} or more has the interval over the assignments that hold it; "
        "any other interval reaches zero.",
        _coverage(fit),
        "All features: the model in which everything predicts. tidy() also has the selection "
        "equation, inclusion_ the chances by other weights, and diagnostics() what to doubt.",
    ]


# What a search means for reports. -----------------------------------------------------------------

Method = Literal[
    "uncertainty_interval",
    "what_if",
    "exclusion_test",
    "specification_tests",
    "bootstrap",
    "margins",
    "profile",
]
# Reports that use all rows, with features that a search chose in these rows, honest or not.
_AFTER_SEARCH: dict[Method, str] = {
    "uncertainty_interval": "A search chose the features, and the standard errors take them as "
    "given: they tend to be too small.",
    "what_if": "A search chose the features, so t values lean towards its choice: features that "
    "it left out look useless, and those that it chose look useful.",
    "exclusion_test": "A search chose the features: those left out looked useless in these rows, "
    "so p-values lean towards one.",
    "specification_tests": "The tests take the features as given and ignore the search, which "
    "favours features that fit.",
}
# Methods that need one set of features.
_OF_ONE_SET: set[Method] = {*_AFTER_SEARCH, "profile"}
_IN_WINDOW: dict[Method, str] = {
    "uncertainty_interval": "The model's own rho is in a window because the search required it.",
    "what_if": "The rho of the equation as it is was chosen to be in a window.",
    "bootstrap": "In every replicate rho was kept in the window of the search: its interval "
    "describes that window, and is no evidence about selection bias.",
    "margins": "rho was conditioned on by rho_range: effects given selection rest on a rho that "
    "was chosen to lie in a window.",
}


def search_notes(fit: Fit, method: Method) -> list[str]:
    """Return what a search means for the report of a method of the model, in sentences."""
    notes = []
    if fit.way.is_average and method in _OF_ONE_SET:
        names = [said(str(name)) for name in fit.prediction_features]
        notes.append(
            f"This report needs one set of features. It uses those with a {BY} share of at least "
            f"one half ({', '.join(names) or 'none'}), and ignores the others' weight."
        )
    after = _AFTER_SEARCH.get(method) if fit.way.chose else None
    if after is not None:
        notes.append(after)
    if fit.rho_is_conditioned and method in _IN_WINDOW:
        notes.append(_IN_WINDOW[method])
    if after is not None and fit.way.halves_rows:
        words = "This report uses its features, fitted to all rows."
        if method == "what_if" and fit.family.has_imr:
            rho = number(_all_rows_rho(fit))
            words = f"What-if uses its features fitted to all rows, with a two-step rho of {rho}."
        notes.append(f"The model's rho, {number(fit.rho)}, is an honest estimate. {words}")
    return notes
