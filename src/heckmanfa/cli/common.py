"""What the commands share: lists of names, progress, and numbers for people."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from heckmanfa.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Categorical",
    "Data",
    "Decimal",
    "Exclude",
    "Features",
    "Force",
    "Missing",
    "Names",
    "Numeric",
    "Outcome",
    "Seed",
    "Selected",
    "Sheet",
    "StreamAbove",
    "Thousands",
    "names",
    "number",
    "output",
    "saying",
    "tell",
]

Names = list[str] | None

Data = Annotated[
    str,
    typer.Argument(
        help="A table: CSV (commas, semicolons, tabs or bars), Parquet, Feather, Stata or Excel; "
        "of Parquet also a folder, or a pattern in quotes; - is CSV from standard input."
    ),
]
Outcome = Annotated[
    str, typer.Option(help="Column of the outcome, empty where it is not observed.")
]
Selected = Annotated[
    str | None, typer.Option(help="Column of 0 and 1 (or yes and no) that says who is selected.")
]
Features = Annotated[
    Names, typer.Option(help="Columns to use, separated by commas; all others unless given.")
]
Exclude = Annotated[Names, typer.Option(help="Columns not to use in either equation.")]
Missing = Annotated[
    str, typer.Option(help="Rows that miss a feature: drop, or mean (put the mean in).")
]
Categorical = Annotated[Names, typer.Option(help="Columns to take as categories.")]
Numeric = Annotated[Names, typer.Option(help="Columns to take as numbers.")]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="The decimal mark of CSV and Excel files, . or , (unless given, all values of the "
        "file decide)."
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="The mark between thousands there: , or . or a blank or ' (or none)."),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="The sheet of an Excel file, by name or number (else the first that is not empty)."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]
StreamAbove = Annotated[
    float,
    typer.Option(
        min=0,
        help="Parquet files whose columns would take more gigabytes than this are read in passes, "
        "not loaded.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def names(values: Sequence[str] | None) -> tuple[str, ...]:
    """Split lists of columns at commas; a name with a comma goes in double quotes."""
    return tuple(
        part.strip()
        for value in values or ()
        for part in next(csv.reader([value], skipinitialspace=True), [])
        if part.strip()
    )


@contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """Say what is going on: a line that moves on a terminal, plain lines elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: print(f"{printable(words)} ...", file=sys.stderr, flush=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(printable(words)))


def output(piped_width: int = 110) -> Console:
    """Where results go: as wide as the terminal, or as COLUMNS says, or as they need.

    Parameters
    ----------
    piped_width : int
        Where nobody looks and COLUMNS is not set, so a file has whole lines.

    Returns
    -------
    Console
        Whatever is printed on it is made printable.
    """
    from heckmanfa.cli.console import PrintableConsole

    console = PrintableConsole(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return PrintableConsole(width=piped_width, highlight=False)


def tell(text: str) -> None:
    """Print a line."""
    typer.echo(printable(text, None))


def number(value: float, digits: int = 4) -> str:
    """Set a number, or nothing where there is none."""
    return "" if value != value else f"{value:.{digits}g}"
