"""The work of ``heckmanfa compare``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import pandas as pd
from rich.console import Console

from heckmanfa.analysis import Comparison, Prepared, comparison, load, methods_compared
from heckmanfa.analysis.column_roles import errors_in_sources, in_sources, joint_groups
from heckmanfa.analysis.designs import NAMING
from heckmanfa.analysis.estimates_compared import error_of
from heckmanfa.analysis.prepared import searched_equations
from heckmanfa.analysis.question_words import weights_counted
from heckmanfa.analysis.request import question_of, refuse_given
from heckmanfa.analysis.treatment_comparison import (
    CAUTION,
    TreatmentComparison,
    compare_treatments,
)
from heckmanfa.cli.commands import CompareOptions
from heckmanfa.cli.console import Column, output, print_table, saying
from heckmanfa.data.files.outputs import check_ending, outputs, write_table
from heckmanfa.data.missing_features import explain_lost
from heckmanfa.errors import HeckmanfaWarning, InputError
from heckmanfa.text.chances import BY
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import effects, listed, number, some, true_minus

_NO_DESIGN = (
    "is for treatments here: other methods are judged by errors of held-out rows, which for a "
    "survey would need folds of whole sampling units and methods that all take its weights. Fit "
    "each model with heckmanfa fit, and compare estimates and intervals"
)


def run(options: CompareOptions, **asked: Any) -> None:
    """Compare the methods, write the table if it has a file, and print it."""
    question, out = question_of(asked), options.out
    if not question.family.sees_everyone:
        refuse_given(question, NAMING, _NO_DESIGN)
    if out is not None:
        check_ending(out)
    reads = {"DATA": question.data}
    with saying() as say, outputs({"--out": out}, reads, force=options.force) as places:
        prepared = load(question, say)
        make = _of_treatments if prepared.target.family.sees_everyone else _of_features
        table, show, verdict = make(prepared, options, say)
        if out is not None:
            with places["--out"].writing() as place:
                write_table(table, place)
    console = output()
    show(console)
    if out is not None:
        console.print(f"written to {shown(out)}")
    console.print(f"\n{true_minus(verdict)}", style="bold")


Made = tuple[pd.DataFrame, Callable[[Console], None], str]
"""the table of a comparison, how it is printed, and what it says"""


def _of_features(prepared: Prepared, options: CompareOptions, say: Callable[[str], None]) -> Made:
    """Compare methods by their predictions of held-out rows."""
    question, rows, encoding = prepared.question, prepared.loaded, prepared.encoding
    assert rows is not None
    target = prepared.target
    why = "is for treatments here: the methods that are compared choose among all features"
    refuse_given(question, ("predict_with",), why)
    if options.ru and target.family.reads_labels:
        raise InputError("--ru is for amounts, and the outcome has classes: leave it out")
    groups = list(joint_groups(encoding).values())
    equations = searched_equations(question, encoding)
    never = {dummy for name in question.select_only for dummy in encoding.columns_of(name)}
    predicting = [name for name in encoding.columns if name not in never] if never else None
    estimators = methods_compared.methods(
        *(groups, question.seed, options.ru, question.on_separation),
        *(target.family, equations, predicting),
    )
    with (
        warnings.catch_warnings(record=True) as caught,
        explain_lost(prepared.lost),
        errors_in_sources(encoding),
    ):
        warnings.simplefilter("always", HeckmanfaWarning)
        compared = comparison.compare_methods(
            rows.X,
            pd.Series(prepared.outcome, index=rows.X.index, name=question.outcome),
            selected=rows.selected,
            sample_weight=rows.weight,
            outcome_kind=target.family.name,
            positive=target.positive if target.family.is_ordered else None,
            estimators=estimators,
            n_folds=options.folds,
            n_repeats=options.repeats,
            random_state=question.seed,
            say=say,
        )
    show = partial(_show, prepared, compared, _messages(caught))
    return compared.tidy(), show, str(compared.verdict)


def _of_treatments(prepared: Prepared, options: CompareOptions, say: Callable[[str], None]) -> Made:
    """Compare the effects of a treatment by several models."""
    usual = CompareOptions()
    for name in ("folds", "repeats", "ru"):
        if getattr(options, name) != getattr(usual, name):
            raise InputError(
                f"--{name} is about held-out rows, which cannot judge effects of a treatment: "
                "leave it out"
            )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HeckmanfaWarning)
        compared = compare_treatments(prepared, say)
    show = partial(_show_effects, prepared, compared, _messages(caught))
    return compared.tidy(), show, compared.verdict


def _messages(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what warnings say, each once."""
    return [*dict.fromkeys(str(warning.message) for warning in caught)]


def _show_effects(
    prepared: Prepared, compared: TreatmentComparison, messages: Sequence[str], console: Console
) -> None:
    """Print the effects by model."""
    left_out = prepared.encoding.explain_left_out(prepared.encoding.reasons)
    weights = weights_counted(prepared.question, compared.n_obs)
    for sentence in (prepared.target.words, *weights, *prepared.notes, *left_out):
        if sentence:
            console.print(sentence)
    columns = [
        *(Column("model", is_name=True), Column("effect"), Column("95% interval")),
        *(Column("treated", spare=2), Column("untreated", spare=2), Column("rho", spare=1)),
        *(Column("BIC", spare=3), Column("seconds", spare=4)),
    ]
    rows, records = [], compared.tidy().to_dict("records")
    for row in records:
        value, low, high, att, atu = effects(
            *(row[name] for name in ("ate", "ci_low", "ci_high", "att", "atu"))
        )
        rho = row["rho"] if isinstance(row["rho"], str) else ""
        ends = f"{low} to {high}" if low and high else ""
        last = [number(row[name]) for name in ("bic", "seconds")]
        rows.append([str(row["model"]), value, ends, att, atu, rho, *last])
    print_table(console, "Effects of treatment by model", columns, rows)
    for why, names in compared.failures.items():
        console.print(f"{listed(names)}: {in_sources(why, prepared.encoding)}")
    for sentence in compared.without_model:
        console.print(true_minus(sentence))
    for message in messages:
        console.print(f"warning: {message}", style="yellow")
    console.print(f"\nCaution. {CAUTION}", style="yellow")


def _show(
    prepared: Prepared, compared: Comparison, messages: Sequence[str], console: Console
) -> None:
    """Print the table, the features of each method, and the notes."""
    left_out = prepared.encoding.explain_left_out(prepared.encoding.reasons)
    lost = prepared.lost
    if lost is not None and lost.are_many:
        left_out = [*left_out, f"{lost.words} {lost.advice}"]
    weights = weights_counted(prepared.question, compared.n_obs)
    for sentence in (prepared.target.words, *weights, *prepared.notes, *left_out):
        if sentence:
            console.print(sentence)
    measure = compared.measure
    columns = [Column("method", is_name=True), Column("features", spare=1), Column("rho", spare=2)]
    scores = ["rho"]
    for place, (name, title) in enumerate(zip(measure.columns, measure.titles, strict=True)):
        columns += [Column(title), Column("±", spare=3 + place)]
        scores += [name, f"{name}_sd"]
    columns.append(Column("seconds", spare=3 + len(measure.columns)))
    records = compared.tidy().to_dict("records")
    rows = []
    for row in records:
        figures = [row[name] for name in (*scores, "seconds")]
        count = "" if row["n_features"] != row["n_features"] else f"{row['n_features']:.0f}"
        rows.append([str(row["method"]), count, *(number(figure) for figure in figures)])
    times = "" if compared.n_repeats == 1 else f", {compared.n_repeats} times"
    title = f"Held-out rows with an outcome, {compared.n_folds} folds{times}"
    print_table(console, title, columns, rows)
    if compared.searched:
        console.print(compared.searched)
    for why, names in compared.failures.items():
        console.print(f"{listed(names)}: {in_sources(why, prepared.encoding)}")
    categories = joint_groups(prepared.encoding)
    if categories and "lasso" in prepared.question.models.estimators:
        console.print(
            "Heckman lasso: left out, since it takes dummies one by one and cannot keep those of a "
            f"category together ({some(list(categories))}); --exclude such columns to compare it"
        )
    for name, chosen in compared.features.items():
        features = ", ".join(shown(feature) for feature in chosen) or "none"
        half = f" ({BY} share of at least one half)" * compared.making[name].is_average
        console.print(f"{name}: {features}{half}", style="dim")
    _show_estimates(compared, console)
    for message in messages:
        console.print(f"warning: {message}", style="yellow")
    console.print(f"\nCaution. {measure.caution}", style="yellow")


def _show_estimates(compared: Comparison, console: Console) -> None:
    """Print estimates for everyone with standard errors, and what each method assumes."""
    table, names = compared.estimated(), compared.beside
    # On a narrow console, naive least squares goes first, and the recommended model stays.
    spared = [Column(name, spare=len(names) - place) for place, name in enumerate(names, 1)]
    columns, records = [Column("", is_name=True), *spared], table.to_dict("records")
    rows = [
        [str(row["term"]), *(_estimate(row[name], row[error_of(name)]) for name in names)]
        for row in records
    ]
    if compared.bounds is not None:
        columns.append(Column("bounds", spare=max(len(names) - 1, 1)))
        rows = [[*cells, _ends(row)] for cells, row in zip(rows, records, strict=True)]
    console.print()
    print_table(console, "Estimates for everyone (standard errors)", columns, rows)
    console.print(true_minus(" ".join(compared.about_estimates)))
    console.print("\nWhat each method assumes")
    for line in compared.assumed():
        console.print(f"- {true_minus(line)}")


def _ends(row: dict[Hashable, Any]) -> str:
    low, high = (number(row[f"bounds, {end}"], 3) for end in ("low", "high"))
    return f"{low} to {high}" if low else ""


def _estimate(value: float, std_error: float) -> str:
    error = number(std_error, 2)
    return f"{number(value, 3)} ({error})" if error else number(value, 3)
