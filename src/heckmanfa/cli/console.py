"""What commands print on: all made printable, and tables that stay readable in little room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from heckmanfa.text.printable import printable, shown

if TYPE_CHECKING:
    from rich.style import StyleType

__all__ = ["Column", "PrintableConsole", "print_table"]

_READABLE = 22
_LEAST = 6
# A blank on both sides and a line.
_FRAME = 3


class PrintableConsole(Console):
    """A console that obeys nothing in the texts it is given: the net under what was forgotten."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something; escapes that are not Rich's own become visible."""
        for one in super().render(renderable, options):
            if one.control:
                yield one
            else:
                yield Segment(printable(one.text, None), one.style)


@dataclass(frozen=True)
class Column:
    """A column of a table on a console."""

    title: str
    is_name: bool = False
    """whether it holds names or notes, which are folded; the others are figures, which are not"""
    spare: int = 0
    """the higher, the sooner it is left out for lack of room; 0 never"""
    readable: int = _READABLE
    """a column of names has room for so many characters, or for all that it holds"""

    def least(self, width: int) -> int:
        """Return the room that it needs, if its longest cell is so wide."""
        return min(width, self.readable) if self.is_name else width


def print_table(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    styles: Sequence[StyleType] = (),
) -> None:
    """Print a table as wide as the console; say which columns there was no room for.

    Parameters
    ----------
    console : Console
    title : str
    columns : sequence of Column
    rows : sequence of sequences of str
        Texts of the cells.
    styles : sequence, optional
        Of each row.
    """
    texts = [
        [shown(cell) if column.is_name else cell for column, cell in zip(columns, row, strict=True)]
        for row in rows
    ]
    widths = [
        max([len(column.title), *(Text(row[place]).cell_len for row in texts)])
        for place, column in enumerate(columns)
    ]
    kept = _kept(columns, widths, console.width)
    table = Table(title=Text(title), title_justify="left")
    least = {one: columns[one].least(widths[one]) for one in kept}
    over = _needed(columns, widths, kept) - console.width
    folded = _folded(columns, least, over)
    for place in kept:
        one = columns[place]
        options: dict[str, Any] = {"justify": "right", "no_wrap": True, "min_width": least[place]}
        if one.is_name:
            options = {"overflow": "fold", "min_width": folded[place]}
            options |= {"max_width": folded[place]} if over > 0 else {}
        table.add_column(Text(one.title), **options)
    for place, row in enumerate(texts):
        style = styles[place] if styles else None
        table.add_row(*(Text(row[one]) for one in kept), style=style)
    console.print(table)
    left_out = [one.title for place, one in enumerate(columns) if place not in kept]
    if left_out:
        console.print(
            f"(no room for {', '.join(left_out)}: use a wider window, or set COLUMNS)",
            markup=False,
            style="dim",
        )


def _folded(columns: Sequence[Column], least: dict[int, int], over: int) -> dict[int, int]:
    """Fold names into what room there is where nothing is left to leave out: the widest first."""
    folded = {place: width for place, width in least.items() if columns[place].is_name}
    for _ in range(over):
        widest = max(folded, key=lambda one: folded[one])
        if folded[widest] <= _LEAST:
            break
        folded[widest] -= 1
    return folded


def _needed(columns: Sequence[Column], widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(columns[one].least(widths[one]) + _FRAME for one in kept) + 1


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Choose the columns that there is room for, the most spare ones left out first."""
    kept = list(range(len(columns)))
    while _needed(columns, widths, kept) > room:
        spare = [one for one in kept if columns[one].spare]
        if not spare:
            break
        kept.remove(max(spare, key=lambda one: columns[one].spare))
    return kept
