"""``heckmanfa compare``: all methods side by side on one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

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
    Numeric,
    Outcome,
    Seed,
    Selected,
    Sheet,
    Thousands,
    names,
    number,
    output,
    saying,
)
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import some

__all__ = ["compare"]


def compare(
    data: Data,
    outcome: Outcome,
    selected: Selected = None,
    features: Features = None,
    exclude: Exclude = None,
    weights: Annotated[str | None, typer.Option(help="Column of frequency weights.")] = None,
    missing: Missing = "drop",
    categorical: Categorical = None,
    numeric: Numeric = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of each repeat.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often rows are split again.")] = 3,
    ru: Annotated[
        bool | None, typer.Option("--ru/--no-ru", help="RU regression (where Torch is installed).")
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the table here: .csv or .parquet.")
    ] = None,
    force: Force = False,
) -> None:
    """Set all methods beside one another, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """
    with saying() as say:
        say("loading")
        import warnings

        from heckmanfa.analysis import Question, load
        from heckmanfa.analysis.column_sources import errors_in_sources, in_sources
        from heckmanfa.analysis.comparison import CAUTION, compare_methods, methods
        from heckmanfa.data.files.outputs import outputs
        from heckmanfa.data.files.table_files import check_ending, write_table
        from heckmanfa.errors import HeckmanfaWarning

        question = Question(
            data=data,
            outcome=outcome,
            selected=selected,
            features=names(features),
            exclude=names(exclude),
            weights=weights,
            missing=missing,
            categorical=names(categorical),
            numeric=names(numeric),
            decimal=decimal,
            thousands=thousands,
            sheet=sheet,
            seed=seed,
        )
        if out is not None:
            check_ending(out)
        with outputs({"--out": out}, {"DATA": data}, force=force) as places:
            given = load(question, say)
            loaded = given.loaded
            assert loaded is not None
            groups = [list(one) for one in given.encoding.groups.values() if len(one) > 1]
            with (
                warnings.catch_warnings(record=True) as caught,
                errors_in_sources(given.encoding),
            ):
                warnings.simplefilter("always", HeckmanfaWarning)
                found = compare_methods(
                    loaded.X,
                    loaded.y,
                    selected=loaded.selected,
                    sample_weight=loaded.weight,
                    estimators=methods(groups, seed, ru),
                    n_folds=folds,
                    n_repeats=repeats,
                    random_state=seed,
                    say=say,
                )
            if out is not None:
                with places["--out"].writing() as place:
                    write_table(found.tidy(), place)
    from heckmanfa.cli.console import Column, print_table

    console = output()
    for sentence in given.notes:
        console.print(sentence, markup=False)
    columns = [
        Column("method", is_name=True),
        Column("features", spare=1),
        Column("rho", spare=2),
        Column("MSE"),
        Column("±", spare=3),
        Column("R2"),
        Column("±", spare=4),
        Column("seconds", spare=5),
    ]
    rows = []
    for row in found.tidy().to_dict("records"):
        cells = [row[one] for one in ("rho", "mse", "mse_sd", "r2", "r2_sd", "seconds")]
        count = "" if row["n_features"] != row["n_features"] else f"{row['n_features']:.0f}"
        rows.append([str(row["method"]), count, *(number(one) for one in cells)])
    title = f"Held-out rows with an outcome, {folds} folds{_times(repeats)}"
    print_table(console, title, columns, rows)
    for row in found.tidy().to_dict("records"):
        if row["note"]:
            note = in_options(in_sources(row["note"], given.encoding))
            console.print(f"{row['method']}: {note}", markup=False)
    if groups:
        console.print(f"Heckman lasso: {_no_lasso(given.encoding.groups)}", markup=False)
    for name, chosen in found.features.items():
        listed = ", ".join(shown(one) for one in chosen)
        console.print(f"{name}: {listed}", markup=False, style="dim")
    for one in dict.fromkeys(str(warning.message) for warning in caught):
        console.print(f"warning: {in_options(one)}", markup=False, style="yellow")
    console.print(f"\nCaution. {CAUTION}", markup=False, style="yellow")
    if out is not None:
        console.print(f"written to {shown(out)}", markup=False)


def _no_lasso(groups: Mapping[str, Sequence[str]]) -> str:
    """Say why the lasso is not in the table."""
    found = [shown(name) for name, dummies in groups.items() if len(dummies) > 1]
    return (
        "left out, since it takes dummies one by one and cannot keep those of a category together "
        f"({some(found)}); --exclude such columns to have it compared"
    )


def _times(repeats: int) -> str:
    return "" if repeats == 1 else f", {repeats} times"
