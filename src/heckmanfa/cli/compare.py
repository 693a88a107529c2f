"""``heckmanfa compare``: all methods side by side on one table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import heckmanfa.cli.options as opt
from heckmanfa.cli.common import output, saying
from heckmanfa.text.numbers import compact
from heckmanfa.text.option_names import in_options
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import some

if TYPE_CHECKING:
    from rich.console import Console

    from heckmanfa.analysis import Comparison, Prepared

__all__ = ["compare"]


def compare(
    data: opt.Data,
    outcome: opt.Outcome,
    selected: opt.Selected = None,
    features: opt.Features = None,
    exclude: opt.Exclude = None,
    weights: opt.FrequencyWeights = None,
    missing: opt.Missing = "drop",
    categorical: opt.Categorical = None,
    numeric: opt.Numeric = None,
    decimal: opt.Decimal = None,
    thousands: opt.Thousands = None,
    sheet: opt.Sheet = None,
    folds: opt.Folds = 5,
    repeats: opt.Repeats = 3,
    ru: opt.Ru = None,
    seed: opt.Seed = 0,
    out: opt.TableFile = None,
    force: opt.Force = False,
) -> None:
    """Compare all methods side by side, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """
    prepared, comparison, messages = _run(locals())
    _show(prepared, comparison, messages, output())
    if out is not None:
        output().print(f"written to {shown(out)}", markup=False)


def _run(options: Mapping[str, Any]) -> tuple[Prepared, Comparison, list[str]]:
    """Compare the methods; return the table as read, the comparison and its warnings."""
    with saying() as say:
        say("loading")
        # Imported here to keep the start of the command line fast.
        from heckmanfa.analysis import compare_methods, load
        from heckmanfa.analysis.column_sources import errors_in_sources, joint_groups
        from heckmanfa.analysis.comparison import methods
        from heckmanfa.data.files.outputs import outputs
        from heckmanfa.data.files.table_files import check_ending, write_table
        from heckmanfa.errors import HeckmanfaWarning

        question, out, seed = opt.question_of(options), options["out"], options["seed"]
        if out is not None:
            check_ending(out)
        with outputs({"--out": out}, {"DATA": question.data}, force=options["force"]) as places:
            prepared = load(question, say)
            rows, encoding = prepared.loaded, prepared.encoding
            assert rows is not None
            with warnings.catch_warnings(record=True) as caught, errors_in_sources(encoding):
                warnings.simplefilter("always", HeckmanfaWarning)
                comparison = compare_methods(
                    rows.X,
                    rows.y,
                    selected=rows.selected,
                    sample_weight=rows.weight,
                    estimators=methods([*joint_groups(encoding).values()], seed, options["ru"]),
                    n_folds=options["folds"],
                    n_repeats=options["repeats"],
                    random_state=seed,
                    say=say,
                )
            if out is not None:
                with places["--out"].writing() as part:
                    write_table(comparison.tidy(), part)
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    return prepared, comparison, [in_options(message) for message in messages]


def _show(
    prepared: Prepared, comparison: Comparison, messages: Sequence[str], console: Console
) -> None:
    """Print the table, the features of each method, and the notes."""
    # Imported here to keep the start of the command line fast.
    from heckmanfa.analysis.column_sources import in_sources, joint_groups
    from heckmanfa.analysis.comparison import CAUTION
    from heckmanfa.cli.console import Column, print_table

    for sentence in prepared.notes:
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
    records = comparison.tidy().to_dict("records")
    rows = []
    for row in records:
        figures = [row[name] for name in ("rho", "mse", "mse_sd", "r2", "r2_sd", "seconds")]
        count = "" if row["n_features"] != row["n_features"] else f"{row['n_features']:.0f}"
        rows.append([str(row["method"]), count, *(compact(figure, 4) for figure in figures)])
    times = "" if comparison.n_repeats == 1 else f", {comparison.n_repeats} times"
    title = f"Held-out rows with an outcome, {comparison.n_folds} folds{times}"
    print_table(console, title, columns, rows)
    for row in records:
        if row["note"]:
            note = in_options(in_sources(row["note"], prepared.encoding))
            console.print(f"{row['method']}: {note}", markup=False)
    categories = joint_groups(prepared.encoding)
    if categories:
        console.print(f"Heckman lasso: {_no_lasso(list(categories))}", markup=False)
    for name, chosen in comparison.features.items():
        listed = ", ".join(shown(feature) for feature in chosen)
        console.print(f"{name}: {listed}", markup=False, style="dim")
    for message in messages:
        console.print(f"warning: {message}", markup=False, style="yellow")
    console.print(f"\nCaution. {CAUTION}", markup=False, style="yellow")


def _no_lasso(categories: Sequence[str]) -> str:
    """Say why the lasso is not in the table."""
    return (
        "left out, since it takes dummies one by one and cannot keep those of a category together "
        f"({some(categories)}); --exclude such columns to have it compared"
    )
