"""The work of ``heckmanfa reproduce``: tables are computed, printed and written."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from heckmanfa.cli.commands import ReproduceOptions
from heckmanfa.cli.console import Column, output, print_table
from heckmanfa.data.files.outputs import check_place, make_folder, outputs
from heckmanfa.data.files.paths import refuse_clashes, refuse_standard_output
from heckmanfa.errors import InputError
from heckmanfa.paper import BEYOND, DETERMINISTIC, TABLES, Options
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import listed, nearest, plural

_FAILED = 1
_CERTAIN = ("match", "differs", "OFF")
_CELLS = ("dataset", "row", "quantity", "ours", "printed", "spread", "status", "note")
# How the figures of a quantity are written; those of all others have four decimals.
_FORMATS = {
    "place": ".0f",
    "training rows": ".0f",
    "selected rows": ".0f",
    "seconds": ".2f",
    "number of features": ".2f",
    "p-value": ".4g",
}


def run(options: ReproduceOptions) -> None:
    """Run the tables, print them, and write them if there is a folder."""
    chosen = _choose(options)
    out, ru = options.out, options.ru
    if out is not None:
        _check_folder(out, chosen, options.force)
    if ru and not options.quick and importlib.util.find_spec("torch") is None:
        typer.echo(
            "Torch is not installed, so RU regression is left out: pip install "
            "'heckmanfa[torch]', or pass --no-ru.",
            err=True,
        )
        ru = False
    console = output(piped_width=200)
    start = time.perf_counter()
    shown_rows: list[pd.DataFrame] = []
    with _progress(console, len(chosen)) as (say, step):
        runs = Options(options.quick, options.as_published, options.seeds, options.splits, ru, say)
        for name in chosen:
            table = TABLES[name]
            frame = table(runs)
            if not options.beyond:
                frame = frame[frame["part"] == "paper"]
            shown_rows.append(frame)
            if len(frame):
                _show(name, table.title, frame, console)
            if out is not None:
                _write(out, name, table.title, frame, options.force)
            step()
    every = pd.concat(shown_rows, ignore_index=True)
    seconds = f"{time.perf_counter() - start:.0f} s"
    for line in _verdict(every, seconds):
        console.print(line)
    if out is not None:
        console.print(f"written to {shown(out)}")
    if (every["status"] == "OFF").any():
        raise typer.Exit(_FAILED)


def _verdict(rows: pd.DataFrame, seconds: str) -> list[str]:
    """Say how many of the deterministic rows match, differ and are off, and why they differ."""
    match, differ, off = (int((rows["status"] == name).sum()) for name in _CERTAIN)
    if not match + differ + off:
        return [f"no row here is deterministic; {seconds}"]
    counted = [f"{match} {'matches' if match == 1 else 'match'} the paper"]
    if differ:
        counted.append(f"{differ} {'differs' if differ == 1 else 'differ'} for a known reason")
    counted.append(f"{off or 'none'} {'are' if off > 1 else 'is'} OFF")
    notes = rows.loc[rows["status"] == "differs", "note"].value_counts(sort=False)
    return [
        f"{plural(match + differ + off, 'deterministic row')}: {listed(counted)}; {seconds}",
        *(f"- {number} of the {differ}: {note}" for note, number in notes.items()),
    ]


def _choose(options: ReproduceOptions) -> list[str]:
    """Return the names of the tables to run, or refuse to run none."""
    chosen = list(dict.fromkeys(options.tables or TABLES))
    for name in chosen:
        if name not in TABLES:
            hint = nearest(name, TABLES) or "."
            raise InputError(
                f"there is no table {quoted(name)}{hint} The tables: {', '.join(TABLES)}"
            )
    if options.quick:
        for name in options.tables or []:
            if name not in DETERMINISTIC:
                typer.echo(
                    f"{shown(name)} has no deterministic rows; left out by --quick", err=True
                )
        chosen = [name for name in chosen if name in DETERMINISTIC]
    if not options.beyond:
        chosen = [name for name in chosen if name not in BEYOND]
    if not chosen:
        raise InputError("nothing is left to run; see --quick and --no-beyond")
    return chosen


@contextmanager
def _progress(
    console: Console, total: int
) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Show a progress bar on a terminal; yield functions that describe a step and end one."""
    if not console.is_terminal:
        # Even a disabled bar would end in an empty line.
        yield lambda what: None, lambda: None
        return
    bar = Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda what: bar.update(task, description=what), lambda: bar.advance(task)


def _show(name: str, title: str, frame: pd.DataFrame, console: Console) -> None:
    """Print a table."""
    columns = [
        Column("data", is_name=True, readable=8),
        Column("row", is_name=True, readable=14),
        Column("quantity", is_name=True, readable=12),
        Column("ours"),
        Column("printed"),
        Column("±", spare=2),
        Column("status"),
        Column("note"),
    ]
    styles = {"OFF": "bold red", "match": "green", "differs": "yellow"}
    # Below the table, notes have the width of the window.
    distinct = [note for note in frame["note"].unique() if note]
    notes = {note: f"[{number}]" for number, note in enumerate(distinct, 1)}
    before = None
    rows, colours = [], []
    for row in frame.to_dict("records"):
        colours.append(styles.get(row["status"], "dim" if row["part"] == "beyond" else ""))
        cells = _cells(row)
        # A label that stays the same is printed once.
        labels = cells[:2]
        mark = notes.get(row["note"], "")
        rows.append([*(("", "") if labels == before else labels), *cells[2:-1], mark])
        before = labels
    print_table(console, f"{name}: {title}", columns, rows, colours)
    for note, mark in notes.items():
        console.print(f"{mark} {note}")


def _cells(row: dict[Any, Any]) -> list[str]:
    cells = {column: row[column] for column in _CELLS}
    for column in ("ours", "printed", "spread"):
        value = cells[column]
        missing = value is None or value != value
        cells[column] = "" if missing else format(value, _FORMATS.get(row["quantity"], ".4f"))
    return [str(cell) for cell in cells.values()]


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
    as_json = json.dumps({"table": name, "title": title, "rows": records}, indent=1)
    lines = [f"# {name}: {title}", "", f"| {' | '.join(_CELLS)} |", "|" + " --- |" * len(_CELLS)]
    lines += [f"| {' | '.join(_cells(row))} |" for row in frame.to_dict("records")]
    make_folder(folder)
    with outputs(_files(folder, name), force=force) as places:
        with places["csv"].writing() as place:
            frame.to_csv(place, index=False)
        for ending, text in (("json", as_json), ("md", "\n".join(lines))):
            with places[ending].writing() as place:
                place.write_text(text + "\n", encoding="utf-8")
