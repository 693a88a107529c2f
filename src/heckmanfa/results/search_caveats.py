"""Caveats of prediction features that a search chose."""

from __future__ import annotations

from typing import Literal

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.document import Caveat
from heckmanfa.results.refit_words import best_refitted, caveat_of_refits, is_cut_short
from heckmanfa.search.goal import KEPT
from heckmanfa.search.searched import HonestSplits, Search, SearchOutcome
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import CRITERIA, count, number, plural

Method = Literal[
    "uncertainty_interval",
    "what_if",
    "exclusion_test",
    "specification_tests",
    "bootstrap",
    "margins",
    "profile",
]

HONEST_TARGET = (
    "The target of an honest estimate is the coefficient of the feature in the model that was "
    "chosen, not in a true model: the median over splits in which the feature was chosen."
)


def describe_search(fit: Fit) -> str:
    """Say among which assignments the prediction features are the best; empty without a search."""
    search = fit.search
    if search is None:
        return ""
    if search.result is None:
        return "nothing was searched"
    if search.honest is not None:
        criterion = CRITERIA[search.result.goal.criterion]
        splits = len(search.honest.estimates)
        return f"chosen by {criterion} in at least half of {splits} random halves of the rows"
    return _best_of(search, search.result)


def _best_of(outcome: SearchOutcome, search: Search) -> str:
    """Describe what the search over all rows found."""
    if outcome.n_possible == 1:
        return "the only assignment that was allowed"
    if search.refits is not None:
        return best_refitted(outcome, search)
    window = search.goal.rho_range
    inside = "" if window is None else f" with rho from {window[0]:g} to {window[1]:g}"
    best = f"best by {CRITERIA[search.goal.criterion]} of"
    possible = count(outcome.n_possible)
    if search.optimal:
        among = inside and f", among those{inside}"
        return f"{best} all {possible} assignments{among}, proven optimal"
    evaluated = plural(search.n_in_range if inside else search.n_assignments, "assignment")
    return f"{best} {evaluated} evaluated{inside}, out of {possible}"


def caveats_of_search(fit: Fit) -> list[Caveat]:
    """Return the caveats of the search for the prediction features; none without a search."""
    outcome = fit.search
    if outcome is None:
        return []
    search = outcome.result
    if search is None:
        return [Caveat("nothing_searched", "note", "Nothing was searched: no outcome is missing.")]
    if outcome.honest is None:
        caveats = _of_choice(outcome, search)
    else:
        caveats = _of_honest(fit, outcome, search, outcome.honest)
    if search.goal.rho_range is not None:
        caveats += _of_window(fit, outcome, search, search.goal.rho_range)
    if search.early_stop:
        caveats.append(Caveat("search_ended", "caution", search.early_stop))
    trained = outcome.training
    if trained is not None and trained.n_rows < trained.n_selected:
        words = (
            f"The training used a uniform sample of {trained.n_rows:,} of the "
            f"{trained.n_selected:,} selected rows (train_rows); everything else uses all rows."
        )
        caveats.append(Caveat("trained_on_sample", "note", words))
    return caveats


_IGNORED = (
    "Standard errors, intervals and p-values ignore the search: they are those of a model whose "
    "features were known beforehand, and tend to be too small. bootstrap() repeats the search; "
    "honest=True estimates on rows that had no part in it."
)
# A search of both equations has no honest halves.
_IGNORED_IN_BOTH = (
    "Standard errors, intervals and p-values ignore the search of both equations: they are those "
    "of a model whose features were known beforehand, and tend to be too small."
)


def _of_choice(outcome: SearchOutcome, search: Search) -> list[Caveat]:
    """Caveats of estimates in the rows that chose the features."""
    if outcome.n_possible == 1:
        return [Caveat("search", "note", "There was one assignment to choose from.")]
    both = outcome.selecting is not None
    which = "features of both equations" if both else "prediction features"
    best = f"The {which} are the {_best_of(outcome, search)}"
    if search.refits is not None:
        chosen = caveat_of_refits(best, outcome, search, search.refits)
    elif search.optimal:
        words = f"{search.n_assignments:,} were evaluated, and bounds ruled out the others"
        chosen = Caveat("search", "note", f"{best}; {words}.")
    else:
        gap = f"; one better by {number(search.gap, 3)} may exist" if search.gap else ""
        evaluated = f"{count(search.n_assignments)} of {count(outcome.n_possible)} were evaluated"
        claim, why = "That no assignment is better", f"{evaluated}{gap}."
        chosen = Caveat("search", "caution", f"{best}{gap}.", claim, why)
    ignored = Caveat("search_ignored", "caution", _IGNORED_IN_BOTH if both else _IGNORED)
    return [chosen, ignored, *_of_near_ties(outcome, search)]


def _of_near_ties(outcome: SearchOutcome, search: Search) -> list[Caveat]:
    criterion, tolerance = search.goal.criterion, search.nearly
    near = search.nearly_best(tolerance)
    if near <= 1:
        return []
    is_cut = near == KEPT or bool(search.early_stop) or is_cut_short(outcome, search, near)
    others = "assignment is" if near == 2 and not is_cut else "assignments are"
    ties = (
        f"{count(near - 1)} {'or more ' if is_cut else ''}other {others} within {tolerance:g} of "
        f"the best in {CRITERIA[criterion]}."
    )
    claim = "That these features and no others predict"
    them = "it" if near == 2 and not is_cut else "them"
    return [Caveat("near_ties", "caution", f"{ties} search_report() has {them}.", claim, ties)]


def _of_honest(
    fit: Fit, outcome: SearchOutcome, search: Search, honest: HonestSplits
) -> list[Caveat]:
    """Caveats of estimates in rows that had no part in choosing the features."""
    in_all = f"the {_best_of(outcome, search)}"
    if np.array_equal(search.best, fit.support):
        in_all = f"these features are {in_all}"
    else:
        found = fit.spec.feature_names(np.flatnonzero(search.best).tolist())
        best = [shown(feature) for feature in found]
        in_all = f"the search finds another set, {', '.join(best) or 'the empty one'}: {in_all}"
    return [
        Caveat(
            "honest",
            "note",
            "Honest estimates: features are chosen on one random half of the rows and estimated "
            f"on the other. Those here were chosen in at least half of {len(honest.estimates)} "
            "splits; estimates are medians over the splits that chose the feature, and standard "
            "errors account for the search.",
        ),
        Caveat(
            "honest_target",
            "caution",
            HONEST_TARGET,
            "That the honest estimates are those of a true model",
            "each is of the coefficient in the models that halves of the rows chose.",
        ),
        *(
            Caveat("honest_failures", "note", f"{plural(times, 'split')} failed: {reason}")
            for reason, times in honest.failures.items()
        ),
        Caveat("honest_and_all_rows", "note", f"In all rows, {in_all}."),
        Caveat("honest_fit", "note", _of_all_rows(fit)),
    ]


def _of_all_rows(fit: Fit) -> str:
    """Say which numbers are not of the honest estimates."""
    if fit.is_binary:
        return (
            "AIC, BIC and the log-likelihood are those of these features fitted to all rows, not "
            "of the honest estimates."
        )
    likelihood = "AIC and BIC" if fit.log_likelihood is None else "AIC, BIC and the log-likelihood"
    return (
        f"Adjusted R2, {likelihood} are those of these features fitted to all rows, not of the "
        f"honest estimates. The two-step rho of that fit is {number(_all_rows_rho(fit))}; "
        "what_if() uses it."
    )


def _all_rows_rho(fit: Fit) -> float:
    """Two-step rho of the features of an honest model in all rows."""
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).rho)


def _of_window(
    fit: Fit, outcome: SearchOutcome, search: Search, rho_range: tuple[float, float]
) -> list[Caveat]:
    low, high = rho_range
    share = search.n_in_range / search.n_assignments
    window = (
        f"only assignments whose two-step rho is in [{low:g}, {high:g}] were allowed "
        f"({100 * share:.3g}% of those evaluated)"
    )
    if outcome.honest is not None:
        words = (
            f"In the halves that choose, {window}; rho is estimated on the others, which had no "
            "part in that."
        )
        return [Caveat("honest_window", "note", words)]
    caveats = [
        Caveat(
            "window",
            "caution",
            f"rho was conditioned on: {window}. It is no evidence of selection bias: it tests "
            "nothing, and no test of rho = 0 is reported.",
            "That rho says whether there is selection bias",
            f"the features were chosen so that rho is in [{low:g}, {high:g}], and it tests "
            "nothing.",
        )
    ]
    if not low <= fit.rho <= high:
        words = f"Maximum likelihood puts rho at {number(fit.rho)}, outside that window."
        caveats.append(Caveat("outside_window", "caution", words))
    return caveats


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
    if fit.average is not None and method in _OF_ONE_SET:
        names = [shown(name) for name in fit.prediction_features]
        notes.append(
            f"This report needs one set of features. It uses those with a {BY} share of at least "
            f"one half ({', '.join(names) or 'none'}), and ignores the others' weight."
        )
    after = _AFTER_SEARCH.get(method) if fit.search is not None and fit.search.chose else None
    if after is not None:
        notes.append(after)
    if fit.rho_is_conditioned and method in _IN_WINDOW:
        notes.append(_IN_WINDOW[method])
    if after is not None and fit.search is not None and fit.search.honest is not None:
        words = "This report uses its features, fitted to all rows."
        if method == "what_if" and not fit.is_binary:
            rho = number(_all_rows_rho(fit))
            words = f"What-if uses its features fitted to all rows, with a two-step rho of {rho}."
        notes.append(f"The model's rho, {number(fit.rho)}, is an honest estimate. {words}")
    return notes
