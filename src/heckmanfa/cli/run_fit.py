"""The work of ``heckmanfa fit``: its files, and its results as JSON and on the console."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from heckmanfa import __version__
from heckmanfa.analysis import Analysis, analyse, save_model
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.console import Column, output, print_table, saying
from heckmanfa.data.files.outputs import check_format, outputs
from heckmanfa.report import write_report
from heckmanfa.report.answer import answer, by_role
from heckmanfa.results.average_tables import NO_SIGN, PREDICTS, UNSURE, inclusion_frame
from heckmanfa.results.coefficients import likelihood_name
from heckmanfa.results.reference import reference_of
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, p_value

_VERDICTS = {"ok": "green", "caution": "yellow", "problem": "bold red"}


def run(
    *, report: Path | None, save: Path | None, json_out: Path | None, force: bool, **options: Any
) -> None:
    """Answer the question that the options ask, write the files, and print the results."""
    question = question_of(options)
    check_format(report, ".html", "--report")
    check_format(save, ".skops", "--save")
    check_format(json_out, ".json", "--json")
    files = {"--report": report, "--save": save, "--json": json_out}
    # Paths are checked before anything is computed, and all files are put in place together: a
    # failed run writes none.
    with saying() as say, outputs(files, {"DATA": question.data}, force=force) as places:
        analysis = analyse(question, say)
        if "--report" in places:
            say("writing the report")
            write_report(analysis, places["--report"].part)
        if "--save" in places:
            about = {"command": question.command(), "outcome": question.outcome}
            part = places["--save"].part
            save_model(part, analysis.model, analysis.encoding, about, force=True)
        if "--json" in places:
            with places["--json"].writing() as part:
                text = json.dumps(as_json(analysis), indent=1, allow_nan=False)
                part.write_text(text + "\n", encoding="utf-8")
    console = output()
    show(analysis, console)
    for path, what in ((report, "report"), (save, "model"), (json_out, "results")):
        if path is not None:
            console.print(f"{what} written to {shown(path)}")


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return all results in plain types; NaN and infinity become None."""
    model, question = analysis.model, analysis.question
    which, how_much, not_claimed = answer(analysis)
    weights = clusters = second = None
    if question.weights is not None:
        weights = {
            "column": question.weights,
            "kind": model.weight_kind,
            "rows": model.row_counts_["selected"] + model.row_counts_["unselected"],
            "n_obs": model.n_obs_,
        }
    if model.n_clusters_ is not None:
        clusters = {"column": question.cluster, "number": model.n_clusters_}
    if analysis.diagnostics.second_maximum is not None:
        log_likelihood, rho = analysis.diagnostics.second_maximum
        second = {"log_likelihood": log_likelihood, "rho": rho}
    inclusion = None
    if analysis.chances is not None:
        inclusion = inclusion_frame(model.fit_).to_dict("records")
    likelihood = None if model.log_likelihood_ is None else likelihood_name(model.fit_)
    results = {
        "heckmanfa": __version__,
        "question": dataclasses.asdict(question) | {"search": question.searched},
        "command": question.command(),
        "streamed": analysis.streamed,
        "rows": analysis.row_counts,
        "rows_missing": analysis.missing_counts,
        "columns_left_out": analysis.left_out,
        "reference_levels": analysis.encoding.references,
        "reading": list(analysis.notes),
        "predict": analysis.predicting,
        "only_select": analysis.driving_selection,
        "kept_out": analysis.kept_out,
        "no_evidence": analysis.without_evidence,
        "not_tested": analysis.not_tested,
        "answer": [which, how_much],
        "not_to_be_claimed": not_claimed,
        "caveats": [dataclasses.asdict(caveat) for caveat in analysis.caveats],
        "inclusion": inclusion,
        "estimates": analysis.estimates.to_dict("records"),
        "rho": model.rho_,
        "sigma": model.sigma_,
        "adjusted_r2": model.adjusted_r2_,
        "aic": model.aic_,
        "bic": model.bic_,
        "log_likelihood": model.log_likelihood_,
        "log_likelihood_is": likelihood,
        "weights": weights,
        "standard_errors": analysis.errors_kind,
        "clusters": clusters,
        "reference_distribution": reference_of(model.fit_).name,
        "converged": model.converged_,
        "second_maximum": second,
        "diagnostics": [
            {"diagnostic": name, "value": value, "verdict": verdict, "meaning": in_options(words)}
            for name, value, verdict, words in analysis.diagnostics.lines()
        ],
        "warnings": list(analysis.warnings),
    }
    return {key: _plain(value) for key, value in results.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value


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
        console.print(f"warning: {warning}", style="yellow")


def _indented(text: str, width: int) -> Padding:
    return Padding(Text(text), (0, 0, 0, width), expand=False)


def _show_rows(analysis: Analysis, console: Console) -> None:
    """Say how rows and columns were used."""
    counts = analysis.row_counts
    left_out = counts["total"] - counts["selected"] - counts["unselected"]
    console.print(
        f"{counts['total']:,} rows: {counts['selected']:,} selected, {counts['unselected']:,} not, "
        f"{left_out:,} left out"
    )
    sentences = [analysis.how_read] if analysis.streamed else []
    if analysis.question.missing == "drop":
        sentences += [
            f"{count:,} rows left out lack {shown(name)}"
            for name, count in analysis.missing_counts.items()
        ]
    sentences += [*_weights_and_errors(analysis), *analysis.notes, *analysis.explain()]
    for sentence in sentences:
        console.print(f"  {sentence}")


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say how rows are weighted, if at all, and which standard errors are used."""
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
    groups: list[tuple[str, Sequence[str], bool]]
    if analysis.chances is not None:
        roles = by_role(analysis.chances)
        labels = (("Predict", PREDICTS), ("Cannot be told", UNSURE), ("No sign", NO_SIGN))
        for label, role in labels:
            console.print(f"{label + ':':<17}{', '.join(roles[role]) or 'none'}", style="bold")
        groups = []
    else:
        groups = _groups(analysis)
    for label, columns, always in groups:
        if columns or always:
            listed = ", ".join(shown(column) for column in columns) or "none"
            console.print(f"{label + ':':<17}{listed}", style="bold")
    console.print()
    console.print(f"{which} {how_much}")
    console.print("\nNot to be claimed:", style="bold")
    for claim in not_claimed:
        console.print(_indented(f"- {claim}", 2))


def _groups(analysis: Analysis) -> list[tuple[str, Sequence[str], bool]]:
    """Return labels, the features of each, and whether an empty one is shown."""
    return [
        ("Predict", analysis.predicting, True),
        ("Drive selection", analysis.driving_selection, True),
        ("No evidence", analysis.without_evidence, False),
        ("Not tested", analysis.not_tested, False),
    ]


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
