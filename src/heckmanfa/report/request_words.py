"""The question and the rows of an analysis, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heckmanfa.estimators.averaged import AverageModel
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.results.effect_words import held_in_words
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import CRITERIA, count, listed, plural, some, true_minus

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.analysis.request import Question

_SEARCHES = {
    "best-subset": "Branch and bound over every assignment of features, which ends with a proof "
    "that none is better, or with a bound on how much better one could be.",
    "average": "None is chosen: estimates are averages over every assignment of features, weighted "
    "by AIC.",
    "fa": "Heckman-FA (Mai and Wu, 2023): an assignment function is trained, and assignments are "
    "drawn from its probabilities.",
    "fa-star": "Heckman-FA* (Mai and Wu, 2023): an assignment function is trained, and the "
    "features with the highest probabilities are taken, for every number of them.",
    "correlation": "Heckman-C: the features with the highest correlation with the outcome are "
    "taken, for every number of them; nothing is trained.",
    "lasso": "The path of an adaptive lasso: the features that it drops one after another as its "
    "penalty grows.",
    "none": "None: the prediction features were given.",
}
_CRITERION_ENDS = {
    "adjusted_r2": "the higher, the better",
    "bic": "the lower, the better; it favours few features",
    "aic": "the lower, the better",
    "ebic": "the lower, the better; it favours few features, or nearly all",
    "corrected_bic": "the lower, the better; what it costs to drop features from the model of all",
}
_METHODS = {
    "two-step": "Heckman's two steps: a probit for who is selected, then least squares with lambda "
    "(the inverse Mills ratio) among the features.",
    "ml": "Maximum likelihood of both equations together.",
}
_HELD_TWO_STEP = (
    "Two-step: a probit for who is selected, then least squares, corrected for the selection bias "
    "that the rho held implies."
)
_BINARY_SEARCH = (
    "The likelihood is approximated by a quadratic form at the model of all features. Branch and "
    "bound finds the best assignments of the form, which is proven; these are then fitted by "
    "maximum likelihood and ranked, which is exact."
)
_BINARY_METHOD = (
    "Maximum likelihood of the Heckman probit: a probit for who is selected and a probit of the "
    "outcome together, whose errors are correlated by rho."
)
_BINARY_OBSERVED = "A probit: no outcome is missing, so there is nothing to correct."
_OBSERVED = "Ordinary least squares: no outcome is missing, so there is nothing to correct."
_WEIGHTS = {
    "frequency": "a row counts as often as its weight says",
    "sampling": "a row represents that much of the population",
}
_USES = {
    "selected": "In the fit: selected, with an outcome",
    "unselected": "In the fit: not selected",
    "left_out_regressor_missing": "Left out: a feature is missing",
    "left_out_outcome_missing": "Left out: selected, but the outcome is missing",
    "left_out_zero_weight": "Left out: the weight is zero",
    "left_out_separation": "Left out: a feature determines selection exactly",
}


def describe_question(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what was asked, as pairs of a label and a sentence."""
    question, model = analysis.question, analysis.model
    outcome, table = shown(question.outcome), shown(question.called)
    size = f"{count(analysis.row_counts['total'])} rows, {plural(analysis.n_columns, 'column')}"
    who = f"{outcome} is not missing"
    if question.selected is not None:
        who = f"{shown(question.selected)} says so"
    binary = analysis.target.kind == "binary"
    facts = {
        "Outcome": f"{shown(question.fitted)}, in {table} ({size}).",
        "Who is selected": f"The rows in which {who}.",
        "Features": _features(analysis),
    }
    if analysis.target.words:
        facts["Model"] = analysis.target.words
    facts |= _roles(question)
    if analysis.evidence.mode == "observed":
        facts["Estimation"] = _BINARY_OBSERVED if binary else _OBSERVED
    else:
        facts["Search"] = _SEARCHES[question.searched]
        if binary and question.searched != "none":
            facts["Search"] = _BINARY_SEARCH
        if question.searched != "none":
            facts |= _search(model)
        facts |= _chances(analysis)
        facts["Estimation"] = _BINARY_METHOD if binary else _METHODS[question.estimated]
        if question.start is not None:
            start = true_minus(f"{question.start:g}")
            facts["Start"] = f"Maximum likelihood starts from rho = {start}."
        if analysis.evidence.held is not None:
            if question.estimated == "two-step":
                facts["Estimation"] = _HELD_TWO_STEP
            facts["rho"] = f"{held_in_words(analysis.evidence.held).capitalize()}, not estimated."
    facts["Standard errors"] = _errors(analysis)
    if question.weights is not None:
        kind = model.weight_kind
        facts["Weights"] = f"{shown(question.weights)} ({kind}): {_WEIGHTS[kind]}."
    facts["Missing features"] = "Rows that lack one are left out."
    if question.missing == "mean":
        facts["Missing features"] = "Filled in with the average of the column."
    return list(facts.items())


def _features(analysis: Analysis) -> str:
    question = analysis.question
    names = analysis.feature_columns
    verb = "is" if len(names) == 1 else "are all"
    where = "the selection equation"
    if question.search_in == "both":
        verb, where = "may be", "each equation"
    if analysis.evidence.mode == "observed":
        where = "the regression"
    which = "the columns named" if question.features else "all columns that have no other role"
    without = f" but {listed(question.exclude)}" if question.exclude else ""
    return (
        f"{plural(len(names), 'column')} ({which}{without}) {verb} in {where}: {some(names, 60)}."
    )


def _roles(question: Question) -> dict[str, str]:
    may = "Each of these, unless kept out below." if question.select_only else "Each of these."
    if question.predict_with:
        may = f"Only {listed(question.predict_with)}."
    facts = {"Predict" if question.searched == "none" else "May predict": may}
    if question.always:
        facts["Always predict"] = f"{listed(question.always)}."
    if question.select_only:
        facts["Kept out of prediction"] = f"{listed(question.select_only)}."
    if question.selection_always:
        facts["Always in the selection equation"] = f"{listed(question.selection_always)}."
    if question.selection_never:
        facts["Kept out of selection"] = f"{listed(question.selection_never)}."
    return facts


def _window(model: Any) -> str:
    if model.rho_range is None:
        return "None: any estimate of rho was allowed."
    low, high = model.rho_range
    ends = true_minus(f"from {low:g} to {high:g}")
    return f"Only assignments whose two-step rho is {ends}."


def _search(model: Any) -> dict[str, str]:
    window = {} if isinstance(model, HeckmanProbit) else {"Window of rho": _window(model)}
    if isinstance(model, AverageModel):
        return window
    facts = {
        "Criterion": f"{CRITERIA[model.criterion]} ({_CRITERION_ENDS[model.criterion]}).",
        **window,
    }
    if model.honest:
        facts["Honest"] = (
            "Features are chosen on one random half of the rows and estimated on the other, "
            f"{model.n_splits} times."
        )
    return facts


def _chances(analysis: Analysis) -> dict[str, str]:
    """Say what chances are, where there are any."""
    evidence = analysis.evidence
    if evidence.honest or not evidence.has_chances:
        return {}
    return {
        "Chances": f"Shares of the {BY} weight of all assignments, which follows from the model of "
        "all features."
    }


def _errors(analysis: Analysis) -> str:
    kind = analysis.model.cov_type
    if kind == "cluster":
        groups = shown(analysis.question.cluster)
        return (
            f"Cluster: robust, with rows of the same {groups} allowed to be dependent; "
            f"{plural(analysis.model.n_clusters_ or 0, 'cluster')}."
        )
    if kind == "robust":
        why = "" if analysis.question.robust else ", as sampling weights need"
        return f"Robust{why}: the variance of the errors may differ among rows."
    return "Classical: the errors have one variance, and rows are independent."


def rows_by_use(analysis: Analysis) -> list[tuple[str, int]]:
    """Count the rows in the fit, and those left out by reason; the counts add up to all rows."""
    counts, uses = analysis.row_counts, dict(_USES)
    decided = analysis.model.fit_.family.words.separates
    uses["left_out_separation"] = f"Left out: a feature determines {decided}"
    return [
        (words, counts.get(key, 0))
        for key, words in uses.items()
        if counts.get(key, 0) or key in ("selected", "unselected")
    ]
