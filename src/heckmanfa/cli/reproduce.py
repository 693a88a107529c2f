"""``heckmanfa reproduce``: the tables of the paper, with our figures beside the printed ones."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heckmanfa.cli.common import output
from heckmanfa.cli.options import Force
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.files.clashes import refuse_clashes, refuse_standard_output
from heckmanfa.data.files.outputs import check_place, make_folder, outputs
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

__all__ = ["reproduce"]

_FAILED, _USAGE = 1, 2


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables by their label in the paper (sampling, topjfeats, moretopj, "
            "testingmsespi0, significance, executiontimes, selfeatures), and beyond and splits, "
            "which go further; all of them unless given."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the deterministic rows, in seconds.")
    ] = False,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Judge as the published run did: lambda = 0 where Phi underflows, and the lost "
            "sign in Heckman-FA*'s sigma.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of whatever depends on a seed (the t-tests have ten).")
    ] = 5,
    splits: Annotated[int, typer.Option(min=2, help="Random splits, beyond the paper.")] = 20,
    ru: Annotated[
        bool, typer.Option("--ru/--no-ru", help="Run RU regression, which needs Torch.")
    ] = True,
    beyond: Annotated[
        bool,
        typer.Option(
            "--beyond/--no-beyond", help="Whether to run and show what the paper does not have."
        ),
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="A folder for each table as CSV, JSON and Markdown.")
    ] = None,
    force: Force = False,
) -> None:
    """Rerun the tables of Mai and Wu's paper, with our figures beside the printed ones.

    All of them take two to three minutes on two cores. The data are read from the folder that
    HECKMANFA_DATA names, or from the cache, or are downloaded. The exit status is 1 if a
    deterministic row does not come out.

    Example: heckmanfa reproduce --quick
    """
    from heckmanfa.paper import BEYOND, DETERMINISTIC, TABLES, Options

    chosen = list(dict.fromkeys(tables or TABLES))
    for name in chosen:
        if name not in TABLES:
            hint = nearest(name, TABLES) or "."
            typer.echo(
                f"there is no table {quoted(name)}{hint} The tables: {', '.join(TABLES)}.", err=True
            )
            raise typer.Exit(_USAGE)
    if quick:
        for name in tables or []:
            if name not in DETERMINISTIC:
                typer.echo(
                    f"{shown(name)} has no deterministic rows; left out by --quick", err=True
                )
        chosen = [name for name in chosen if name in DETERMINISTIC]
    if not beyond:
        chosen = [name for name in chosen if name not in BEYOND]
    if not chosen:
        typer.echo("nothing is left to run; see --quick and --no-beyond", err=True)
        raise typer.Exit(_USAGE)
    if out is not None:
        _check_folder(out, chosen, force)
    if ru and not quick and importlib.util.find_spec("torch") is None:
        typer.echo(
            "Torch is not installed, so RU regression is left out: pip install "
            "'heckmanfa[torch]', or pass --no-ru.",
            err=True,
        )
        ru = False
    console = output(piped_width=200)
    start = time.perf_counter()
    off = certain = 0
    with _progress(console, len(chosen)) as (say, step):
        options = Options(quick, as_published, seeds, splits, ru, say)
        for name in chosen:
            table = TABLES[name]
            frame = table(options)
            if not beyond:
                frame = frame[frame["part"] == "paper"]
            off += int((frame["status"] == "OFF").sum())
            certain += int(frame["status"].isin(["match", "differs", "OFF"]).sum())
            if len(frame):
                _show(name, table.title, frame, console)
            if out is not None:
                _write(out, name, table.title, frame, force)
            step()
    seconds = time.perf_counter() - start
    rows = "row is" if off == 1 else "rows are"
    said = f"{off} deterministic {rows} OFF" if off else "every deterministic row comes out"
    said = f"{said} ({certain} in all)" if certain else "no row here is deterministic"
    console.print(f"{said}; {seconds:.0f} s", highlight=False)
    if out is not None:
        console.print(f"written to {shown(out)}", markup=False)
    if off:
        raise typer.Exit(_FAILED)


@contextmanager
def _progress(
    console: Console, total: int
) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Show a bar over the tables on a terminal; yields what to call in between."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda what: bar.update(task, description=what), lambda: bar.advance(task)


def _show(name: str, title: str, frame: pd.DataFrame, console: Console) -> None:
    """Print a table."""
    from heckmanfa.cli.console import Column, print_table

    columns = [
        Column("data", is_name=True, readable=8),
        Column("row", is_name=True, readable=14),
        Column("quantity", is_name=True, readable=12),
        Column("ours"),
        Column("printed"),
        Column("±", spare=2),
        Column("status"),
        Column("note", is_name=True, spare=3),
    ]
    styles = {"OFF": "bold red", "match": "green", "differs": "yellow"}
    before = ("", "")
    rows, colours = [], []
    for row in frame.to_dict("records"):
        status = str(row["status"])
        colours.append(styles.get(status, "dim" if row["part"] == "beyond" else ""))
        # A label that stays the same is said once.
        labels = str(row["dataset"]), str(row["row"])
        said = ("", "") if labels == before else labels
        before = labels
        quantity = str(row["quantity"])
        figures = [_figure(row[one], quantity) for one in ("ours", "printed", "spread")]
        rows.append([*said, quantity, *figures, status, str(row["note"])])
    print_table(console, f"{name}: {title}", columns, rows, colours)


def _figure(value: float | None, quantity: str) -> str:
    if value is None or value != value:
        return ""
    if quantity in ("place", "training rows", "selected rows"):
        return f"{value:.0f}"
    if quantity == "p-value":
        return f"{value:.4g}"
    return f"{value:.2f}" if quantity in ("seconds", "number of features") else f"{value:.4f}"


def _files(folder: Path, name: str) -> dict[str, Path]:
    return {ending: folder / f"{name}.{ending}" for ending in ("csv", "json", "md")}


def _check_folder(folder: Path, tables: Sequence[str], force: bool) -> None:
    """Refuse a folder in which some table cannot be written, before any is computed."""
    refuse_standard_output(folder)
    if os.path.lexists(folder) and not folder.is_dir():
        raise InputError(f"--out must be a folder; {shown(folder)} is a file")
    if folder.is_dir():
        writes = {path.name: path for name in tables for path in _files(folder, name).values()}
        refuse_clashes({}, writes)
        for path in writes.values():
            check_place(path, force)


def _write(folder: Path, name: str, title: str, frame: pd.DataFrame, force: bool) -> None:
    """Write a table as CSV, JSON and Markdown."""
    records = [
        {name: None if value != value else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    told = json.dumps({"table": name, "title": title, "rows": records}, indent=1)
    columns = ["dataset", "row", "quantity", "ours", "printed", "spread", "status", "note"]
    lines = [f"# {name}: {title}", "", f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for row in frame.to_dict("records"):
        figures = [_figure(row[one], row["quantity"]) for one in ("ours", "printed", "spread")]
        words = [str(row[one]) for one in ("dataset", "row", "quantity")]
        lines.append(f"| {' | '.join([*words, *figures, row['status'], row['note']])} |")
    make_folder(folder)
    with outputs(_files(folder, name), force=force) as places:
        with places["csv"].writing() as place:
            frame.to_csv(place, index=False)
        for ending, text in (("json", told), ("md", "\n".join(lines))):
            with places[ending].writing() as place:
                place.write_text(text + "\n", encoding="utf-8")
