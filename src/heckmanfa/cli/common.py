"""What the commands share: how they start, and their progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer

from heckmanfa.text.printable import printable


def dispatch(command: str, options: Mapping[str, Any], *, progress: bool = True) -> None:
    """Run a command, whose work is in the module ``run_`` and its name.

    That module is imported only now: pandas and scikit-learn would slow the start and ``--help``.
    """
    if progress:
        with saying() as say:
            say("loading")
            module = import_module(f"heckmanfa.cli.run_{command}")
    else:
        module = import_module(f"heckmanfa.cli.run_{command}")
    module.run(**options)


@contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """Show progress: a line that changes on a terminal, plain lines elsewhere."""
    # Rich is imported here to keep the start of the command line fast.
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: print(f"{printable(words)} ...", file=sys.stderr, flush=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(printable(words)))


def tell(text: str) -> None:
    """Print a line."""
    typer.echo(printable(text, None))
