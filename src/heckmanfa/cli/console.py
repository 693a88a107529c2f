"""What commands print on: all made printable, and tables that stay readable in little room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from heckmanfa.foreign import printable, shown

if TYPE_CHECKING:
    from rich.style import StyleType

__all__ = ["Column", "PrintableConsole", "print_table"]

_READABLE = 22
"""a column of names has room for so many characters, or for all that it holds"""
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
    for place in kept:
        one = columns[place]
        options: dict[str, Any] = (
            {"overflow": "fold", "min_width": min(widths[place], _READABLE)}
            if one.is_name
            else {"justify": "right", "no_wrap": True, "min_width": widths[place]}
        )
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


def _kept(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Choose the columns that there is room for, the most spare ones left out first."""
    kept = list(range(len(columns)))

    def needed() -> int:
        least = [
            min(widths[one], _READABLE) if columns[one].is_name else widths[one] for one in kept
        ]
        return sum(least) + _FRAME * len(kept) + 1

    while needed() > room:
        spare = [one for one in kept if columns[one].spare]
        if not spare:
            break
        kept.remove(max(spare, key=lambda one: columns[one].spare))
    return kept
