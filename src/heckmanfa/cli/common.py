"""What the commands share: progress, and where results are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from heckmanfa.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["output", "saying", "tell"]


@contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """Show progress: a line that changes on a terminal, plain lines elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: print(f"{printable(words)} ...", file=sys.stderr, flush=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(printable(words)))


def output(piped_width: int = 110) -> Console:
    """Return the console for results, which makes whatever it prints printable.

    It is as wide as the terminal or as COLUMNS says, and ``piped_width`` wide without either, so
    that files have whole lines.
    """
    # Imported here to keep the start of the command line fast.
    from heckmanfa.cli.console import PrintableConsole

    console = PrintableConsole(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return PrintableConsole(width=piped_width, highlight=False)


def tell(text: str) -> None:
    """Print a line."""
    typer.echo(printable(text, None))
