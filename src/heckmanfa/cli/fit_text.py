"""The results of ``heckmanfa fit`` on a console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from heckmanfa.analysis import Analysis
from heckmanfa.cli.console import Column, print_table
from heckmanfa.report.answer import answer
from heckmanfa.results.coefficients import likelihood_name
from heckmanfa.text.numbers import number, p_value
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown

_VERDICTS = {"ok": "green", "caution": "yellow", "problem": "bold red"}


def show(analysis: Analysis, console: Console) -> None:
    """Print the answer, the coefficients beside least squares, and the diagnostics in words."""
    console.rule(Text(f"{shown(analysis.question.outcome)} in {shown(analysis.question.called)}"))
    _show_rows(analysis, console)
    console.print()
    _show_answer(analysis, console)
    console.print()
    _show_coefficients(analysis, console)
    for caveat in analysis.caveats:
        if not caveat.claim:
            console.print(_indented(f"- {caveat.sentence}", 2), style="dim")
    if analysis.model.log_likelihood_ is not None:
        name = likelihood_name(analysis.model.fit_)
        console.print(f"  {name}: {analysis.model.log_likelihood_:.4f}", style="dim")
    console.print()
    for name, value, verdict, words in analysis.diagnostics.lines():
        flag = Text.assemble((f"{verdict:>7}", _VERDICTS[verdict]), "  ")
        console.print(flag + Text(f"{name}: {value}"))
        console.print(_indented(in_options(words), 9), style="dim")
    for warning in analysis.warnings:
        console.print(f"warning: {warning}", markup=False, style="yellow")


def _indented(text: str, width: int) -> Padding:
    return Padding(Text(text), (0, 0, 0, width), expand=False)


def _show_rows(analysis: Analysis, console: Console) -> None:
    """Say how rows and columns were used."""
    counts = analysis.row_counts
    left_out = counts["total"] - counts["selected"] - counts["unselected"]
    console.print(
        f"{counts['total']:,} rows: {counts['selected']:,} selected, {counts['unselected']:,} not, "
        f"{left_out:,} left out",
        markup=False,
    )
    sentences = [analysis.how_read] if analysis.streamed else []
    if analysis.question.missing == "drop":
        sentences += [
            f"{count:,} rows left out miss {shown(name)}"
            for name, count in analysis.missing_counts.items()
        ]
    sentences += [*_weights_and_errors(analysis), *analysis.notes, *analysis.explain()]
    for sentence in sentences:
        console.print(f"  {sentence}", markup=False)


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say how rows are weighted, if they are, and which standard errors these are."""
    model, sentences = analysis.model, []
    if analysis.question.weights is not None:
        name = shown(analysis.question.weights)
        sentences.append(
            f"weights {name} count rows: {model.n_obs_:,} in all"
            if model.weight_kind == "frequency"
            else f"weights {name} are sampling weights, rescaled to mean one"
        )
    return [*sentences, f"Standard errors: {analysis.errors}"]


def _show_answer(analysis: Analysis, console: Console) -> None:
    which, how_much, not_claimed = answer(analysis)
    groups: list[tuple[str, Sequence[str], bool]] = [
        ("Predict", analysis.predicting, True),
        ("Drive selection", analysis.driving_selection, True),
        ("No evidence", analysis.without_evidence, False),
        ("Not tested", analysis.not_tested, False),
    ]
    for label, columns, always in groups:
        if columns or always:
            listed = ", ".join(shown(column) for column in columns) or "none"
            console.print(f"{label + ':':<17}{listed}", markup=False, style="bold")
    console.print()
    console.print(f"{which} {how_much}", markup=False)
    console.print("\nNot to be claimed:", style="bold")
    for claim in not_claimed:
        console.print(_indented(f"- {claim}", 2))


def _show_coefficients(analysis: Analysis, console: Console) -> None:
    columns = [
        Column("term", is_name=True),
        Column("estimate"),
        Column("std. error", spare=3),
        Column("p", spare=4),
        Column("95% interval", spare=1),
        Column("least squares", spare=2),
    ]
    table = analysis.coefficients
    slopes = table[table["kind"] == "prediction"].to_dict("records")
    errors = table[table["kind"] == "errors"].to_dict("records")
    rows = [[*_cells(row), number(row["least_squares"])] for row in slopes]
    rows += [[*_cells(row), ""] for row in errors]
    styles = [""] * len(slopes) + ["dim"] * len(errors)
    title = "Prediction equation, beside least squares on the observed rows"
    print_table(console, title, columns, rows, styles)


def _cells(row: dict[Any, Any]) -> list[str]:
    low, high = number(row["ci_low"]), number(row["ci_high"])
    return [
        str(row["term"]),
        number(row["estimate"]),
        number(row["std_error"]),
        p_value(row["p_value"]),
        f"{low} to {high}" if low and high else "",
    ]
