"""The question and the rows of an analysis, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heckmanfa.text.numbers import count, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import CRITERIA, listed, some

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

_SEARCHES = {
    "best-subset": "Branch and bound over every assignment of features, which ends with a proof "
    "that none is better, or with a bound on how much better one could be.",
    "fa": "Heckman-FA (Mai and Wu, 2023): an assignment function is trained, and assignments are "
    "drawn from its probabilities.",
    "fa-star": "Heckman-FA* (Mai and Wu, 2023): an assignment function is trained, and the "
    "features of highest probability are taken, for every number of them.",
    "correlation": "Heckman-C: the features of highest correlation with the outcome are taken, for "
    "every number of them; nothing is trained.",
    "none": "None: the prediction features were given.",
}
_CRITERION_ENDS = {
    "adjusted_r2": "the higher, the better",
    "bic": "the lower, the better; it favours few features",
    "aic": "the lower, the better",
}
_METHODS = {
    "two-step": "Heckman's two steps: a probit for who is selected, then least squares with lambda "
    "(the inverse Mills ratio) among the features.",
    "ml": "Maximum likelihood of both equations together.",
}
_USES = {
    "selected": "In the fit: selected, with an outcome",
    "unselected": "In the fit: not selected",
    "left_out_regressor_missing": "Left out: a feature is missing",
    "left_out_outcome_missing": "Left out: selected, but the outcome is missing",
    "left_out_zero_weight": "Left out: the weight is zero",
    "left_out_separation": "Left out: a feature decides selection with certainty",
}


def describe_question(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what was asked, as pairs of a label and a sentence."""
    question, model = analysis.question, analysis.model
    total = count(analysis.row_counts["total"])
    facts = [
        (
            "Outcome",
            f"{shown(question.outcome)}, in {shown(question.called)} ({total} rows, "
            f"{plural(analysis.n_columns, 'column')}).",
        ),
        ("Who is selected", _selected(analysis)),
        ("Features", _features(analysis)),
    ]
    facts += _roles(analysis)
    facts.append(("Search", _SEARCHES.get(question.search, question.search)))
    if analysis.question.search != "none":
        facts += _search(model)
    facts.append(("Estimation", _METHODS[model.method]))
    if question.start is not None:
        facts.append(("Start", f"Maximum likelihood starts from rho = {question.start:g}."))
    facts.append(("Standard errors", _errors(analysis)))
    if question.weights is not None:
        kind = (
            "a row counts as often as its weight says"
            if model.weight_kind == "frequency"
            else "a row stands for so much of the population"
        )
        facts.append(("Weights", f"{shown(question.weights)} ({model.weight_kind}): {kind}."))
    facts.append(
        (
            "Missing features",
            "Filled in with the average of the column."
            if question.missing == "mean"
            else "Rows that miss one are left out.",
        )
    )
    return facts


def _selected(analysis: Analysis) -> str:
    question = analysis.question
    if question.selected is None:
        return f"The rows in which {shown(question.outcome)} is not missing."
    return f"The rows in which {shown(question.selected)} says so."


def _features(analysis: Analysis) -> str:
    question = analysis.question
    names = analysis.feature_columns
    verb = "is" if len(names) == 1 else "are all"
    which = "the columns named" if question.features else "all columns that have no other role"
    without = f" but {listed(question.exclude)}" if question.exclude else ""
    return (
        f"{plural(len(names), 'column')} ({which}{without}) {verb} in the selection equation: "
        f"{some(names, 60)}."
    )


def _roles(analysis: Analysis) -> list[tuple[str, str]]:
    question = analysis.question
    searched = analysis.question.search != "none"
    facts = []
    if question.predict_with:
        text = f"Only {listed(question.predict_with)}."
        facts.append(("May predict" if searched else "Predict", text))
    elif searched:
        facts.append(("May predict", "Each of these, unless kept out below."))
    else:
        facts.append(("Predict", "Each of these, unless kept out below."))
    if question.always:
        facts.append(("Always predict", f"{listed(question.always)}."))
    if question.select_only:
        facts.append(("Kept out of prediction", f"{listed(question.select_only)}."))
    return facts


def _search(model: Any) -> list[tuple[str, str]]:
    window = model.rho_range
    facts = [
        ("Criterion", f"{CRITERIA[model.criterion]} ({_CRITERION_ENDS[model.criterion]})."),
        (
            "Window of rho",
            "None: any estimate of rho was allowed."
            if window is None
            else f"Only assignments whose two-step rho is from {window[0]:g} to {window[1]:g}.",
        ),
    ]
    if model.honest:
        facts.append(
            (
                "Honest",
                f"Features are chosen on one random half of the rows and estimated on the other, "
                f"{model.n_splits} times.",
            )
        )
    return facts


def _errors(analysis: Analysis) -> str:
    kind = analysis.model.cov_type
    if kind == "cluster":
        groups = shown(analysis.question.cluster)
        return (
            f"Cluster: robust, with rows of the same {groups} allowed to go together; "
            f"{plural(analysis.model.n_clusters_ or 0, 'cluster')}."
        )
    if kind == "robust":
        why = "" if analysis.question.robust else ", as sampling weights need"
        return f"Robust{why}: to errors whose variance differs among rows."
    return "Classical: the errors have one variance, and rows are independent."


def rows_by_use(analysis: Analysis) -> list[tuple[str, int]]:
    """Count the rows in the fit, and those left out by reason; the counts add up to all rows."""
    counts = analysis.row_counts
    return [
        (words, counts.get(key, 0))
        for key, words in _USES.items()
        if counts.get(key, 0) or key in ("selected", "unselected")
    ]
