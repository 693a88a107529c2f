"""Caveats of prediction features that a search chose."""

from __future__ import annotations

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.caveats.caveat import Caveat
from heckmanfa.search.candidates import KEPT, Search
from heckmanfa.search.criteria import NEARLY
from heckmanfa.search.outcome import HonestSplits, SearchOutcome
from heckmanfa.text.numbers import count, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import CRITERIA

HONEST_TARGET = (
    "The target of an honest estimate is the coefficient of the feature in the model that was "
    "chosen, not in a true model: the median over splits in which the feature was chosen."
)


def was_searched(fit: Fit) -> bool:
    """Whether the prediction features were chosen, in these rows, among several assignments."""
    return fit.search is not None and fit.search.chose


def found_by(fit: Fit) -> str:
    """Say what the prediction features are the best of; empty without a search."""
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
    """Say what the search over all rows found, whatever became of it."""
    if outcome.n_possible == 1:
        return "the only assignment that was allowed"
    window = search.goal.rho_range
    inside = "" if window is None else f" with rho from {window[0]:g} to {window[1]:g}"
    best = f"best by {CRITERIA[search.goal.criterion]} of"
    possible = count(outcome.n_possible)
    if search.optimal:
        return f"{best} all {possible} assignments{inside and ', among those' + inside}, by proof"
    n = count(search.n_in_range if inside else search.n_assignments)
    return f"{best} {n} assignments looked at{inside}, out of {possible}"


def of_search(fit: Fit) -> list[Caveat]:
    """Return what a reader has to know about the search for the prediction features.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    list of Caveat
        Empty where nothing is searched for.
    """
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
        caveats += _of_window(fit, outcome, search)
    if search.early_stop:
        caveats.append(Caveat("search_ended", "caution", search.early_stop))
    trained = outcome.training
    if trained is not None and trained.n_rows < trained.n_selected:
        caveats.append(
            Caveat(
                "trained_on_sample",
                "note",
                f"The training ran over a uniform sample of {trained.n_rows:,} of the "
                f"{trained.n_selected:,} selected rows (train_rows); everything else is over all "
                "rows.",
            )
        )
    return caveats


def _of_choice(outcome: SearchOutcome, search: Search) -> list[Caveat]:
    """Caveats of estimates in the rows that chose the features."""
    if outcome.n_possible == 1:
        return [Caveat("search", "note", "There was one assignment to choose from.")]
    gap = f"; one better by {search.gap:.3g} may exist" if search.gap else ""
    looked = f"{count(search.n_assignments)} of {count(outcome.n_possible)} were looked at{gap}."
    ruled = f"; {search.n_assignments:,} were looked at, and the others ruled out by bounds"
    caveats = [
        Caveat(
            "search",
            "note" if search.optimal else "caution",
            f"The prediction features are the {_best_of(outcome, search)}"
            f"{ruled if search.optimal else gap}.",
            "" if search.optimal else f"That no assignment is better: {looked}",
        ),
        Caveat(
            "search_ignored",
            "caution",
            "Standard errors, intervals and p-values ignore the search: they are those of a "
            "model whose features were known beforehand, and tend to be too small. "
            "bootstrap() repeats the search; honest=True estimates on rows that had no part in it.",
            "That intervals and p-values account for the search: they are those of features known "
            "beforehand, and tend to be too narrow. With --honest, features are estimated on rows "
            "that had no part in choosing them.",
        ),
    ]
    criterion = search.goal.criterion
    tolerance = NEARLY[criterion]
    if search.tolerance is not None:
        tolerance = min(tolerance, search.tolerance)
    near = search.nearly_best(tolerance)
    if near > 1:
        is_cut = near == KEPT or bool(search.early_stop)
        others = "assignment is" if near == 2 and not is_cut else "assignments are"
        ties = (
            f"{count(near - 1)} {'or more ' if is_cut else ''}other {others} within {tolerance:g} "
            f"of the best in {CRITERIA[criterion]}."
        )
        claim = f"That these features and no others predict: {ties}"
        caveats.append(Caveat("near_ties", "caution", f"{ties} search_report() has them.", claim))
    return caveats


def _of_honest(
    fit: Fit, outcome: SearchOutcome, search: Search, honest: HonestSplits
) -> list[Caveat]:
    """Caveats of estimates in rows that had no part in choosing the features."""
    same = np.array_equal(search.best, fit.support)
    best = [shown(fit.feature_names[int(column)]) for column in np.flatnonzero(search.best)]
    in_all = _best_of(outcome, search)
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
            "That the honest estimates are those of a true model: each is of the coefficient in "
            "the models that halves of the rows chose.",
        ),
        *(
            Caveat("honest_failures", "note", f"{plural(times, 'split')} failed: {reason}")
            for reason, times in honest.failures.items()
        ),
        Caveat(
            "honest_and_all_rows",
            "note",
            f"In all rows, these features are {'the ' + in_all}."
            if same
            else f"In all rows, the search finds another set, {', '.join(best)}: the {in_all}.",
        ),
        Caveat(
            "honest_fit",
            "note",
            f"{_criteria(fit)} are those of these features fitted to all rows, and not of the "
            f"honest estimates. The two-step rho of that fit is {_all_rows_rho(fit):.4f}; "
            "what_if() goes by it.",
        ),
    ]


def _criteria(fit: Fit) -> str:
    if fit.log_likelihood is None:
        return "Adjusted R2, AIC and BIC"
    return "Adjusted R2, AIC, BIC and the log-likelihood"


def _all_rows_rho(fit: Fit) -> float:
    """Two-step rho of the features of an honest model in all rows."""
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).rho)


def _of_window(fit: Fit, outcome: SearchOutcome, search: Search) -> list[Caveat]:
    low, high = search.goal.rho_range or (-1.0, 1.0)
    share = search.n_in_range / search.n_assignments
    window = (
        f"only assignments whose two-step rho is in [{low:g}, {high:g}] were allowed "
        f"({100 * share:.2g}% of those looked at)"
    )
    if outcome.honest is not None:
        return [
            Caveat(
                "honest_window",
                "note",
                f"In the halves that choose, {window}; rho is estimated on the others, which had "
                "no part in that.",
            )
        ]
    caveats = [
        Caveat(
            "window",
            "caution",
            f"rho was conditioned on: {window}. It is no evidence of selection bias: it tests "
            "nothing, and no test of rho = 0 is reported.",
            "That rho says whether there is selection bias: the features were chosen so that rho "
            f"is in [{low:g}, {high:g}], and it tests nothing.",
        )
    ]
    if not low <= fit.rho <= high:
        caveats.append(
            Caveat(
                "outside_window",
                "caution",
                f"Maximum likelihood puts rho at {fit.rho:.4g}, outside that window.",
            )
        )
    return caveats


# What reports that go back to all rows do with features that a search chose in them, honest or not.
_AFTER_SEARCH = {
    "uncertainty_interval": "The features were found by a search, and the standard errors take "
    "them as given: they tend to be too small.",
    "what_if": "The features were found by a search, so t values lean towards what it did: "
    "features that it left out look useless, and those that it chose look useful.",
    "exclusion_test": "Features were found by a search: what it left out is what looked useless to "
    "it in these rows, so p-values lean towards one.",
    "specification_tests": "The tests take the features as given and ignore the search for them, "
    "which looks for features that fit.",
}
_IN_WINDOW = {
    "uncertainty_interval": "The model's own rho is in a window because the search looked for "
    "that.",
    "what_if": "The rho of the equation as it is was chosen to be in a window.",
    "bootstrap": "In every replicate rho was kept in the window of the search: its interval "
    "describes that window, and is no evidence about selection bias.",
    "margins": "rho was conditioned on by rho_range: effects given selection rest on a rho that "
    "was chosen to lie in a window.",
}


def of_method(fit: Fit, method: str) -> list[str]:
    """Return what a search means for a report that a method of the model gives.

    Parameters
    ----------
    fit : Fit
    method : str
        Its name.

    Returns
    -------
    list of str
        Sentences.
    """
    after = [_AFTER_SEARCH[method]] if was_searched(fit) and method in _AFTER_SEARCH else []
    inside = [_IN_WINDOW[method]] if fit.rho_is_conditioned and method in _IN_WINDOW else []
    honest = _honest_beside(fit, method) if was_searched(fit) else []
    return [*after, *inside, *honest]


def _honest_beside(fit: Fit, method: str) -> list[str]:
    """Say that a report goes by the fit to all rows, where the model's estimates are honest."""
    honest = fit.search is not None and fit.search.honest is not None
    if not honest or method not in _AFTER_SEARCH:
        return []
    said = f"The model's rho, {fit.rho:.4f}, is an honest estimate."
    if method == "what_if":
        rho = f"whose two-step rho is {_all_rows_rho(fit):.4f}"
        return [f"{said} What-if goes by the fit of its features to all rows, {rho}."]
    return [f"{said} What is here goes by its features in all rows."]
