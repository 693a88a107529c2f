"""The tables of ``heckmanfa reproduce`` on a console and in files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from heckmanfa.cli.console import Column, print_table
from heckmanfa.data.files.clashes import refuse_clashes, refuse_standard_output
from heckmanfa.data.files.outputs import check_place, make_folder, outputs
from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown

_FIGURES = ("ours", "printed", "spread")


@contextmanager
def progress(
    console: Console, total: int
) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Show a progress bar on a terminal; yield functions that describe a step and end one."""
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


def show(name: str, title: str, frame: pd.DataFrame, console: Console) -> None:
    """Print a table."""
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
        # A label that stays the same is printed once.
        labels = str(row["dataset"]), str(row["row"])
        printed = ("", "") if labels == before else labels
        before = labels
        quantity = str(row["quantity"])
        figures = [_figure(row[column], quantity) for column in _FIGURES]
        rows.append([*printed, quantity, *figures, status, str(row["note"])])
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


def check_folder(folder: Path, tables: Sequence[str], force: bool) -> None:
    """Refuse a folder in which some table cannot be written, before any is computed."""
    refuse_standard_output(folder)
    if os.path.lexists(folder) and not folder.is_dir():
        raise InputError(f"--out must be a folder; {shown(folder)} is a file")
    if folder.is_dir():
        writes = {path.name: path for name in tables for path in _files(folder, name).values()}
        refuse_clashes({}, writes)
        for path in writes.values():
            check_place(path, force)


def write(folder: Path, name: str, title: str, frame: pd.DataFrame, force: bool) -> None:
    """Write a table as CSV, JSON and Markdown."""
    records = [
        {name: None if value != value else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    as_json = json.dumps({"table": name, "title": title, "rows": records}, indent=1)
    columns = ["dataset", "row", "quantity", "ours", "printed", "spread", "status", "note"]
    lines = [f"# {name}: {title}", "", f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for row in frame.to_dict("records"):
        figures = [
            _figure(row[column], row["quantity"]) for column in ("ours", "printed", "spread")
        ]
        words = [str(row[column]) for column in ("dataset", "row", "quantity")]
        lines.append(f"| {' | '.join([*words, *figures, row['status'], row['note']])} |")
    make_folder(folder)
    with outputs(_files(folder, name), force=force) as places:
        with places["csv"].writing() as place:
            frame.to_csv(place, index=False)
        for ending, text in (("json", as_json), ("md", "\n".join(lines))):
            with places[ending].writing() as place:
                place.write_text(text + "\n", encoding="utf-8")
