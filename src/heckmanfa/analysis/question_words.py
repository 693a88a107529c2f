"""The question, the rows and the files of an analysis, as its report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heckmanfa.analysis.designs import design_words
from heckmanfa.analysis.fitted_question import FittedQuestion
from heckmanfa.analysis.question_code import code_of
from heckmanfa.analysis.request import Question
from heckmanfa.data.files.outputs import sha256_of
from heckmanfa.report.settings import (
    errors_words,
    estimation_words,
    rows_table,
    shares_table,
    versions,
    weight_words,
)
from heckmanfa.results.document import Code, Notes, PageBlock, Paragraph
from heckmanfa.results.evidence import Evidence
from heckmanfa.text.chances import BY
from heckmanfa.text.labels import said, with_name, with_names
from heckmanfa.text.printable import shown
from heckmanfa.text.table import lay_out
from heckmanfa.text.wording import CRITERIA, CRITERION_ENDS, count, listed, plural, some, true_minus

_SEARCHES = {
    "best-subset": "Branch and bound over every assignment of features, which ends with a proof "
    "that none is better, or with a bound on how much better one could be.",
    "average": "None is chosen: estimates are averages over every assignment of features, weighted "
    "by BIC.",
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
_BINARY_SEARCH = (
    "The likelihood is approximated by a quadratic form at the model of all features. Branch and "
    "bound finds the best assignments of the form, which is proven; these are then fitted by "
    "maximum likelihood and ranked, which is exact."
)


def weights_counted(question: Question, n_obs: float) -> list[str]:
    """Say what the weights are, and how many rows they count; nothing without weights."""
    if question.weights is None:
        return []
    what = f"count rows: {n_obs:,} in all"
    if question.counts_as == "sampling":
        what = "are sampling weights, rescaled to mean one"
    return [f"Weights {said(question.weights)} {what}."]


def describe_question(fitted: FittedQuestion) -> list[tuple[str, str]]:
    """Return what was asked, as pairs of a label and a sentence."""
    question, model, evidence = fitted.question, fitted.model, fitted.evidence
    fit = evidence.fit
    outcome, table = said(question.outcome), shown(question.called)
    size = f"{count(fitted.funnel.read)} rows, {plural(fitted.n_columns, 'column')}"
    who = f"{outcome} is not missing"
    if question.selected is not None:
        who = f"{said(question.selected)} says so"
    facts = {
        "Outcome": f"{with_name(question.fitted)}, in {table} ({size}).",
        "Who is selected": f"The rows in which {who}.",
        "Features": _features(question, fitted.feature_columns, evidence),
    }
    if fitted.target.words:
        facts["Model"] = fitted.target.words
    facts |= _roles(question)
    if fit.probit is not None:
        facts["Search"] = _SEARCHES[question.searched]
        if fit.family.has_classes and question.searched != "none":
            facts["Search"] = _BINARY_SEARCH
        if question.searched != "none":
            facts |= _search(model, evidence)
        facts |= _chances(evidence)
    facts |= estimation_words(fit)
    if fit.probit is not None and question.start is not None:
        start = true_minus(f"{question.start:g}")
        facts["Start"] = f"Maximum likelihood starts from rho = {start}."
    facts["Standard errors"] = errors_words(
        model.fit_, " or ".join(map(said, question.cluster)), asked=question.robust
    )
    if fit.design is not None:
        facts["Design"] = design_words(question, fit.design.df)
    if question.weights is not None:
        facts["Weights"] = f"{said(question.weights)} {weight_words(model.weight_kind)}"
    facts["Missing features"] = "Rows that lack one are left out."
    if question.missing == "mean":
        facts["Missing features"] = "Filled in with the average of the column."
    return list(facts.items())


def treatment_settings(fitted: FittedQuestion) -> list[tuple[str, str]]:
    """Return what was asked about a treatment, as pairs of a label and a sentence."""
    question, fit = fitted.question, fitted.model.fit_
    outcome, table = said(question.outcome), shown(question.called)
    size = f"{count(fitted.funnel.read)} rows, {plural(fitted.n_columns, 'column')}"
    both = "One equation holds for treated and untreated, and treatment adds the same to each."
    if question.regimes == "separate":
        both = "Treated and untreated have an equation each (a switching regression)."
    names = some(with_names(fitted.feature_columns), 60)
    facts = {
        "Outcome": f"{with_name(question.fitted)}, in {table} ({size}); {outcome} of everyone.",
        "Treatment": f"{with_name(question.treated or '')} says who is treated.",
        "Regimes": both,
        "Features": f"{plural(len(fitted.feature_columns), 'column')} drive treatment: {names}.",
    }
    if question.by is not None:
        facts["Groups"] = f"{with_name(question.by)}."
    if fitted.target.words:
        facts["Model"] = fitted.target.words
    facts |= {
        ("Outcome equation" if label == "Predict" else label): words
        for label, words in _roles(question).items()
    }
    facts |= estimation_words(fit)
    facts["Standard errors"] = errors_words(
        fit, " or ".join(map(said, question.cluster)), asked=question.robust
    )
    if fit.design is not None:
        facts["Design"] = design_words(question, fit.design.df)
    if question.weights is not None:
        kind = fitted.model.weight_kind
        facts["Weights"] = f"{said(question.weights)} {weight_words(kind)}"
    facts["Missing features"] = "Rows that lack one are left out."
    if question.missing == "mean":
        facts["Missing features"] = "Filled in with the average of the column."
    return list(facts.items())


def _features(question: Question, names: Sequence[str], evidence: Evidence) -> str:
    verb = "is" if len(names) == 1 else "are all"
    where = "the selection equation"
    if question.search_in == "both":
        verb, where = "may be", "each equation"
    if not evidence.fit.way.is_corrected:
        where = "the regression"
    which = "the columns named" if question.features else "all columns that have no other role"
    without = f" but {listed(with_names(question.exclude))}" if question.exclude else ""
    columns = some(with_names(names), 60)
    return f"{plural(len(names), 'column')} ({which}{without}) {verb} in {where}: {columns}."


def _roles(question: Question) -> dict[str, str]:
    may = "Each of these, unless kept out below." if question.select_only else "Each of these."
    if question.predict_with:
        may = f"Only {listed(with_names(question.predict_with))}."
    facts = {"Predict" if question.searched == "none" else "May predict": may}
    if question.always:
        facts["Always predict"] = f"{listed(with_names(question.always))}."
    if question.select_only:
        facts["Kept out of prediction"] = f"{listed(with_names(question.select_only))}."
    if question.selection_always:
        facts["Always in the selection equation"] = (
            f"{listed(with_names(question.selection_always))}."
        )
    if question.selection_never:
        facts["Kept out of selection"] = f"{listed(with_names(question.selection_never))}."
    return facts


def _window(model: Any) -> str:
    if model.rho_range is None:
        return "None: any estimate of rho was allowed."
    low, high = model.rho_range
    ends = true_minus(f"from {low:g} to {high:g}")
    return f"Only assignments whose two-step rho is {ends}."


def _search(model: Any, evidence: Evidence) -> dict[str, str]:
    has_window = "rho_range" in model.get_params()
    window = {"Window of rho": _window(model)} if has_window else {}
    if evidence.fit.way.is_average:
        return window
    facts = {
        "Criterion": f"{CRITERIA[model.criterion]} ({CRITERION_ENDS[model.criterion]}).",
        **window,
    }
    if evidence.fit.way.halves_rows:
        facts["Honest"] = (
            "Features are chosen on one random half of the rows and estimated on the other, "
            f"{model.n_splits} times."
        )
    return facts


def _chances(evidence: Evidence) -> dict[str, str]:
    """Say what chances are, where there are any."""
    if evidence.fit.way.halves_rows or not evidence.has_chances:
        return {}
    return {
        "Chances": f"Shares of the {BY} weight of all assignments, which follows from the model of "
        "all features."
    }


def row_blocks(fitted: FittedQuestion, notes: Sequence[str]) -> list[PageBlock]:
    """Account for every row and column of the table; ``notes`` say how columns were used."""
    funnel = fitted.funnel
    blocks: list[PageBlock] = [rows_table(funnel, "All rows of the table")]
    if fitted.streamed:
        how = fitted.how_read
        blocks.append(Paragraph(f"{how[0].upper()}{how[1:]}."))
    if fitted.missing_counts:
        missing = sorted(fitted.missing_counts.items(), key=lambda item: -item[1])
        caption = "Rows that lack a feature"
        blocks += [
            shares_table("Feature", missing, funnel.read, caption, "missing-table"),
            Paragraph("A row that lacks several features counts in each.", "note"),
        ]
    encoding = fitted.encoding
    blocks.append(Notes(tuple(notes)))
    if encoding.references:
        rows = [
            [name, shown(level), ", ".join(map(shown, encoding.groups[name]))]
            for name, level in encoding.references.items()
        ]
        titles = ("Column", "Reference", "Dummies")
        blocks.append(lay_out(titles, (), rows, "Reference levels", "references-table"))
    return blocks


def run_again(fitted: FittedQuestion) -> list[PageBlock]:
    """Say how to run an analysis again, and what made it."""
    files, question = len(fitted.files), fitted.question
    what = "the file" if files == 1 else f"the {files} files, joined"
    made = f"SHA-256 of {what}: {_digest(fitted)}."
    if not files:
        made = f"{shown(question.called)}: not a file that can be read again."
    words = f"{made} Seed {question.seed}. {versions()}"
    return [Code(question.command()), code_of(fitted).tabs(), Paragraph(words, "note")]


def _digest(fitted: FittedQuestion) -> str:
    if fitted.streamed:
        return "not computed: the rows were not loaded"
    # The demo moves its file into place once the report is written.
    read = [Path(file) for file in fitted.files]
    moved = [Path(fitted.question.data)] if len(read) == 1 else []
    for paths in (read, moved):
        if paths and all(path.is_file() for path in paths):
            return sha256_of(*paths)
    return "not known: the file was moved or removed after it was read"
