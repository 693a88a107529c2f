"""The work of ``heckmanfa reproduce``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

import typer

from heckmanfa.cli.console import output
from heckmanfa.cli.paper_tables import check_folder, progress, show, write
from heckmanfa.data.columns.features import nearest
from heckmanfa.paper import BEYOND, DETERMINISTIC, TABLES, Options
from heckmanfa.text.printable import quoted, shown

_FAILED, _USAGE = 1, 2


def run(
    *,
    tables: Sequence[str] | None,
    quick: bool,
    as_published: bool,
    seeds: int,
    splits: int,
    ru: bool,
    beyond: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Run the tables, print them, and write them if there is a folder."""
    chosen = _choose(tables, quick=quick, beyond=beyond)
    if out is not None:
        check_folder(out, chosen, force)
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
    with progress(console, len(chosen)) as (say, step):
        options = Options(quick, as_published, seeds, splits, ru, say)
        for name in chosen:
            table = TABLES[name]
            frame = table(options)
            if not beyond:
                frame = frame[frame["part"] == "paper"]
            off += int((frame["status"] == "OFF").sum())
            certain += int(frame["status"].isin(["match", "differs", "OFF"]).sum())
            if len(frame):
                show(name, table.title, frame, console)
            if out is not None:
                write(out, name, table.title, frame, force)
            step()
    console.print(f"{_verdict(off, certain)}; {time.perf_counter() - start:.0f} s", highlight=False)
    if out is not None:
        console.print(f"written to {shown(out)}", markup=False)
    if off:
        raise typer.Exit(_FAILED)


def _verdict(off: int, certain: int) -> str:
    """Say how many of the deterministic rows are off."""
    if not certain:
        return "no row here is deterministic"
    rows = "row is" if off == 1 else "rows are"
    verdict = f"{off} deterministic {rows} OFF" if off else "every deterministic row comes out"
    return f"{verdict} ({certain} in all)"


def _choose(tables: Sequence[str] | None, *, quick: bool, beyond: bool) -> list[str]:
    """Return the names of the tables to run, or end with a usage error."""
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
    return chosen
