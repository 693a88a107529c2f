"""``heckmanfa fit``: from a table to a model, in words, a report, a model file and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heckmanfa.analysis.option_names import in_options
from heckmanfa.cli.common import (
    Categorical,
    Data,
    Decimal,
    Exclude,
    Features,
    Force,
    Missing,
    Names,
    Numeric,
    Outcome,
    Seed,
    Selected,
    Sheet,
    StreamAbove,
    Thousands,
    names,
    number,
    output,
    saying,
)
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from heckmanfa.analysis import Analysis

__all__ = ["fit", "show"]

_VERDICTS = {"ok": "green", "caution": "yellow", "problem": "bold red"}


def fit(
    data: Data,
    outcome: Outcome,
    selected: Selected = None,
    features: Features = None,
    exclude: Exclude = None,
    predict_with: Annotated[
        Names,
        typer.Option(help="Columns that may predict; with --search none, those that do."),
    ] = None,
    always: Annotated[Names, typer.Option(help="Columns that the search must let predict.")] = None,
    select_only: Annotated[
        Names,
        typer.Option(help="Columns that drive selection and must not predict (exclusions)."),
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            help="How prediction features are found: best-subset (with a proof), fa, fa-star or "
            "correlation (the paper's), or none."
        ),
    ] = "best-subset",
    criterion: Annotated[
        str | None,
        typer.Option(
            help="bic, aic or adjusted_r2: bic for best-subset, adjusted_r2 for the paper's."
        ),
    ] = None,
    rho_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Only choose assignments whose rho is between these.", metavar="LO HI"),
    ] = None,
    method: Annotated[str, typer.Option(help="two-step or ml.")] = "two-step",
    start: Annotated[
        float | None,
        typer.Option(help="With --method ml: the rho to start from, to fit another maximum."),
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    weight_kind: Annotated[
        str, typer.Option(help="frequency (they count rows) or sampling.")
    ] = "frequency",
    cluster: Annotated[
        str | None, typer.Option(help="Column of groups whose rows are dependent.")
    ] = None,
    robust: Annotated[bool, typer.Option("--robust", help="Robust standard errors.")] = False,
    missing: Missing = "drop",
    on_separation: Annotated[
        str,
        typer.Option(
            help="A column that decides selection for some rows: error, or drop (leave out the "
            "column and these rows)."
        ),
    ] = "error",
    categorical: Categorical = None,
    numeric: Numeric = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    honest: Annotated[
        bool,
        typer.Option("--honest", help="Choose on one half of the rows, estimate on the other."),
    ] = False,
    stream_above: StreamAbove = 1.0,
    device: Annotated[
        str, typer.Option(help="cpu, or a card as Torch names it: cuda, cuda:1 (needs Torch).")
    ] = "cpu",
    seed: Seed = 0,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the model here (.skops), for predict.")
    ] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="Write the results here as JSON.")
    ] = None,
    force: Force = False,
) -> None:
    """Fit a selection model to a table, and say which features predict and which drive selection.

    Example: heckmanfa fit wages.csv --outcome y --report wages.html --save wages.skops

    (heckmanfa simulate wages.csv makes such a table.) Parquet files may be larger than memory: see
    --stream-above.
    """
    with saying() as say:
        say("loading")
        from heckmanfa.analysis import Question, analyse
        from heckmanfa.data.files.outputs import outputs

        question = Question(
            data=data,
            outcome=outcome,
            selected=selected,
            features=names(features),
            exclude=names(exclude),
            predict_with=names(predict_with),
            always=names(always),
            select_only=names(select_only),
            search=search,
            criterion=criterion,
            rho_range=rho_range,
            method=method,
            start=start,
            weights=weights,
            weight_kind=weight_kind,
            cluster=cluster,
            robust=robust,
            missing=missing,
            on_separation=on_separation,
            categorical=names(categorical),
            numeric=names(numeric),
            decimal=decimal,
            thousands=thousands,
            sheet=sheet,
            honest=honest,
            seed=seed,
            stream_above=stream_above,
            device=device,
        )
        # What cannot be written is said before anything is computed, and all files are put in
        # place together, so that a failed run leaves none.
        writes = {"--report": report, "--save": save, "--json": json_out}
        with outputs(writes, {"DATA": data}, force=force) as places:
            analysis = analyse(question, say)
            if report is not None:
                from heckmanfa.report import write_report

                say("writing the report")
                write_report(analysis, places["--report"].part)
            if save is not None:
                from heckmanfa.analysis.model_file import save_model

                about = {"command": question.command(), "outcome": outcome}
                place = places["--save"].part
                save_model(place, analysis.model, analysis.encoding, about, force=True)
            if json_out is not None:
                text = json.dumps(as_json(analysis), indent=1, allow_nan=False)
                with places["--json"].writing() as place:
                    place.write_text(text + "\n", encoding="utf-8")
    console = output()
    show(analysis, console)
    for path, what in ((report, "report"), (save, "model"), (json_out, "results")):
        if path is not None:
            console.print(f"{what} written to {shown(path)}", markup=False)


def show(analysis: Analysis, console: Console) -> None:
    """Print the answer, the coefficients beside least squares, and the diagnostics in words."""
    from rich.padding import Padding
    from rich.text import Text

    from heckmanfa.report.answer import answer
    from heckmanfa.results.coefficients import likelihood_name

    question = analysis.question
    counts = analysis.row_counts
    left_out = counts["total"] - counts["selected"] - counts["unselected"]
    console.rule(Text(f"{shown(question.outcome)} in {shown(question.called)}"))
    console.print(
        f"{counts['total']:,} rows: {counts['selected']:,} selected, {counts['unselected']:,} not, "
        f"{left_out:,} left out",
        markup=False,
    )
    if analysis.streamed:
        console.print(f"  {analysis.how_read}", markup=False)
    for name, count in analysis.missing_counts.items():
        if question.missing == "drop":
            console.print(f"  {count:,} rows left out miss {shown(name)}", markup=False)
    about = _weights_and_errors(analysis)
    for sentence in (*about, *analysis.notes, *analysis.explain()):
        console.print(f"  {sentence}", markup=False)
    console.print()
    first, second, not_claimed = answer(analysis)
    for label, columns in (
        ("Predict", analysis.predicting),
        ("Drive selection", analysis.driving_selection),
        ("No evidence", analysis.without_evidence),
        ("Not tested", analysis.not_tested),
    ):
        if columns or label in ("Predict", "Drive selection"):
            listed = _named(columns) or "none"
            console.print(f"{label + ':':<17}{listed}", markup=False, style="bold")
    console.print()
    console.print(f"{first} {second}", markup=False)
    console.print("\nNot to be claimed:", style="bold")
    for claim in not_claimed:
        console.print(Padding(Text(f"- {claim}"), (0, 0, 0, 2), expand=False))
    console.print()
    _show_coefficients(analysis, console)
    for one in analysis.caveats:
        if not one.claim:
            note = Padding(Text(f"- {one.sentence}"), (0, 0, 0, 2), expand=False)
            console.print(note, style="dim")
    if analysis.model.log_likelihood_ is not None:
        name = likelihood_name(analysis.model)
        console.print(f"  {name}: {analysis.model.log_likelihood_:.4f}", style="dim")
    console.print()
    for name, value, verdict, words in analysis.diagnostics.lines():
        flag = Text.assemble((f"{verdict:>7}", _VERDICTS[verdict]), "  ")
        console.print(flag + Text(f"{name}: {value}"))
        console.print(Padding(Text(in_options(words)), (0, 0, 0, 9), expand=False), style="dim")
    for warning in analysis.warnings:
        console.print(f"warning: {warning}", markup=False, style="yellow")


def _named(names: Sequence[str]) -> str:
    return ", ".join(shown(one) for one in names)


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say what rows weigh, where that was asked for, and which standard errors these are."""
    model, question, said = analysis.model, analysis.question, []
    if question.weights is not None:
        name = shown(question.weights)
        said.append(
            f"weights {name} count rows: {model.n_obs_:,} in all"
            if model.weight_kind == "frequency"
            else f"weights {name} are sampling weights, rescaled to mean one"
        )
    return [*said, f"Standard errors: {analysis.errors}"]


def _show_coefficients(analysis: Analysis, console: Console) -> None:
    from heckmanfa.cli.console import Column, print_table

    columns = [
        Column("term", is_name=True),
        Column("estimate"),
        Column("std. error", spare=3),
        Column("p", spare=4),
        Column("95% interval", spare=1),
        Column("least squares", spare=2),
    ]
    rows: list[list[str]] = []
    styles: list[str] = []
    for row in analysis.coefficients.to_dict("records"):
        if row["kind"] == "prediction":
            rows.append([*_cells(row), number(row["least_squares"])])
            styles.append("")
        elif row["kind"] == "errors":
            rows.append([*_cells(row), ""])
            styles.append("dim")
    title = "Prediction equation, beside least squares on the observed rows"
    print_table(console, title, columns, rows, styles)


def _cells(row: dict[Any, Any]) -> list[str]:
    low, high = number(row["ci_low"]), number(row["ci_high"])
    return [
        str(row["term"]),
        number(row["estimate"]),
        number(row["std_error"]),
        "" if row["p_value"] != row["p_value"] else f"{row['p_value']:.3f}",
        f"{low} to {high}" if low and high else "",
    ]


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Return all results in plain types; what is not a number is null."""
    import dataclasses

    from heckmanfa import __version__
    from heckmanfa.report.answer import answer
    from heckmanfa.results.coefficients import likelihood_name
    from heckmanfa.results.reference import reference_of

    model = analysis.model
    first, second, not_claimed = answer(analysis)
    found = {
        "heckmanfa": __version__,
        "question": dataclasses.asdict(analysis.question),
        "command": analysis.question.command(),
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
        "answer": [first, second],
        "not_to_be_claimed": not_claimed,
        "caveats": [dataclasses.asdict(one) for one in analysis.caveats],
        "estimates": analysis.estimates.to_dict("records"),
        "rho": model.rho_,
        "sigma": model.sigma_,
        "adjusted_r2": model.adjusted_r2_,
        "aic": model.aic_,
        "bic": model.bic_,
        "log_likelihood": model.log_likelihood_,
        "log_likelihood_is": None if model.log_likelihood_ is None else likelihood_name(model),
        "weights": None
        if analysis.question.weights is None
        else {
            "column": analysis.question.weights,
            "kind": model.weight_kind,
            "rows": model.row_counts_["selected"] + model.row_counts_["unselected"],
            "n_obs": model.n_obs_,
        },
        "standard_errors": analysis.errors_kind,
        "clusters": None
        if model.n_clusters_ is None
        else {"column": analysis.question.cluster, "number": model.n_clusters_},
        "reference_distribution": reference_of(model).name,
        "converged": model.converged_,
        "second_maximum": None
        if model._second_maximum is None
        else dict(zip(("log_likelihood", "rho"), model._second_maximum, strict=True)),
        "diagnostics": [
            {"diagnostic": name, "value": value, "verdict": verdict, "meaning": in_options(words)}
            for name, value, verdict, words in analysis.diagnostics.lines()
        ],
        "warnings": list(analysis.warnings),
    }
    plain = _plain(found)
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value
