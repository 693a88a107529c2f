"""The console of the commands: progress, printable text, and tables for narrow windows."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from heckmanfa.text.option_words import told
from heckmanfa.text.printable import printable, shown
from heckmanfa.text.progress import telling
from heckmanfa.text.wording import true_minus

if TYPE_CHECKING:
    from rich.style import StyleType

MOST_WIDE = 120
"""Prose and tables of an answer are not wider, whatever the terminal."""

_READABLE = 22
_LEAST = 6
# A blank on both sides and a line, per column.
_FRAME = 3
# Seconds between two lines of progress in a pipe.
_SELDOM = 10.0


class PrintableConsole(Console):
    """A console that ignores markup and escape sequences in its texts, as a safety net."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something; escapes that are not Rich's own become visible."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, None), segment.style)


def output(piped_width: int = 110, *, most: int | None = None) -> Console:
    """Return the console for results, which makes whatever it prints printable.

    It is as wide as the terminal or as COLUMNS says, but not wider than ``most``; without either it
    is ``piped_width`` wide, so lines in files are not wrapped.
    """
    console = PrintableConsole()
    if not (console.is_terminal or os.environ.get("COLUMNS", "").isdigit()):
        return PrintableConsole(width=piped_width)
    return console if most is None else PrintableConsole(width=min(console.width, most))


def known_height(console: Console) -> int | None:
    """Return how many lines a terminal shows, or None if it is none or does not say."""
    if not console.is_terminal:
        return None
    lines = os.environ.get("LINES", "")
    if lines.isascii() and lines.isdigit():
        return int(lines)
    try:
        return os.get_terminal_size(console.file.fileno()).lines or None
    except (OSError, ValueError):
        return None


@contextmanager
def saying(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is done: a line that changes on a terminal, plain lines elsewhere.

    Yields a function that names a step. How far a long step is, is shown as well: in that line, or
    every ten seconds in a plain one.
    """
    if quiet:
        yield lambda words: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines()
        with telling(lines.update):
            yield lines.step
        return
    with console.status("starting") as status:

        def update(words: str) -> None:
            status.update(Text(printable(words)))

        with telling(update):
            yield update


class _Lines:
    """Progress in a pipe: a line for each step, and seldom one for how far it is."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def step(self, words: str) -> None:
        """Say what comes next."""
        self._said = time.monotonic()
        print(f"{printable(words)} ...", file=sys.stderr, flush=True)

    def update(self, words: str) -> None:
        """Say how far it is, unless something was said a short time ago."""
        if time.monotonic() - self._said >= _SELDOM:
            self.step(words)


def tell(text: str) -> None:
    """Print a line."""
    typer.echo(printable(told(text), None))


@dataclass(frozen=True)
class Column:
    """A column of a table on a console."""

    title: str
    is_name: bool = False
    """whether it holds names or notes, which may be folded; figures are not"""
    spare: int = 0
    """the higher, the sooner it is left out if the console is narrow; 0 is never"""
    readable: int = _READABLE
    """characters that a column of names has room for, unless it holds fewer"""

    def least(self, width: int) -> int:
        """Return the width that it needs, given that of its longest cell."""
        return min(width, self.readable) if self.is_name else width


def print_table(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    styles: Sequence[StyleType] = (),
) -> None:
    """Print a table as wide as the console, and name the columns that did not fit.

    ``rows`` holds the texts of the cells; ``styles``, if given, has one for each row.
    """
    texts = [
        [
            shown(cell) if column.is_name else true_minus(cell)
            for column, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    widths = [
        max([len(column.title), *(Text(row[index]).cell_len for row in texts)])
        for index, column in enumerate(columns)
    ]
    kept = _kept(columns, widths, console.width)
    table = Table(title=Text(title), title_justify="left")
    least = {index: columns[index].least(widths[index]) for index in kept}
    folded = _folded(columns, widths, least, console.width - _needed(columns, widths, kept))
    for index in kept:
        options: dict[str, Any] = {"justify": "right", "no_wrap": True, "min_width": least[index]}
        if columns[index].is_name:
            options = {"overflow": "fold", "width": folded[index]}
        table.add_column(Text(columns[index].title), **options)
    for position, row in enumerate(texts):
        style = styles[position] if styles else None
        table.add_row(*(Text(row[index]) for index in kept), style=style)
    console.print(table)
    left_out = [column.title for index, column in enumerate(columns) if index not in kept]
    if left_out:
        console.print(
            f"(no room for {', '.join(left_out)}: use a wider window, or set COLUMNS)", style="dim"
        )


def _folded(
    columns: Sequence[Column], widths: Sequence[int], least: dict[int, int], room: int
) -> dict[int, int]:
    """Share the room that the columns leave among those of names, up to the width of their texts.

    If there is too little room, they are narrowed, the widest first.
    """
    folded = {index: width for index, width in least.items() if columns[index].is_name}
    for _ in range(room):
        short = max(folded, key=lambda index: widths[index] - folded[index], default=None)
        if short is None or folded[short] >= widths[short]:
            break
        folded[short] += 1
    for _ in range(-room):
        widest = max(folded, key=lambda index: folded[index], default=None)
        if widest is None or folded[widest] <= _LEAST:
            break
        folded[widest] -= 1
    return folded


def _needed(columns: Sequence[Column], widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(columns[index].least(widths[index]) + _FRAME for index in kept) + 1


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Choose the columns that fit; the least important are left out first."""
    kept = list(range(len(columns)))
    while _needed(columns, widths, kept) > room:
        spare = [index for index in kept if columns[index].spare]
        if not spare:
            break
        kept.remove(max(spare, key=lambda index: columns[index].spare))
    return kept
