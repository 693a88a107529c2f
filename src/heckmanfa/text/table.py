"""Tables of formatted cells, for documents and pictures, and the words around a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

MOST_LINES = 500
"""Rows of a picture's table at most."""
INDENT = "\N{EM SPACE}"
"""what the name of a row below a heading inside its part begins with"""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = True
    group: str = ""
    """a heading over neighbours that share it, in HTML"""
    span: str = ""
    """what text and LaTeX print once, in place of the titles of neighbours that share it"""
    is_long: bool = False
    """whether text shows it last and cut to fit"""
    width: int = 0
    """characters that it takes in text, at least"""
    is_feature: bool = False
    """whether its cells are `Name.key` of features, which a page marks wherever they are"""


@dataclass(frozen=True)
class Table:
    """A table of formatted cells."""

    columns: tuple[Column, ...]
    """the first heads the rows"""
    rows: tuple[Sequence[str] | str, ...]
    """the cells of each row; a string heads the rows below it"""
    caption: str = ""
    name: str = ""
    """a name that is unique on a page"""

    def parts(self) -> list[tuple[str, list[Sequence[str]]]]:
        """Return the rows by the strings that head them; the first may have none."""
        parts: list[tuple[str, list[Sequence[str]]]] = []
        for row in self.rows:
            if isinstance(row, str):
                parts.append((row, []))
                continue
            if not parts:
                parts.append(("", []))
            parts[-1][1].append(row)
        return parts or [("", [])]

    def without_empty(self) -> Table:
        """Return the table without columns whose cells are all empty; the first stays."""
        lines = [row for row in self.rows if not isinstance(row, str)]
        kept = [
            place
            for place in range(len(self.columns))
            if not place or any(line[place] for line in lines)
        ]
        if not lines or len(kept) == len(self.columns):
            return self
        rows = (
            row if isinstance(row, str) else [row[place] for place in kept] for row in self.rows
        )
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=tuple(rows))

    @property
    def n_rows(self) -> int:
        """Number of rows with cells."""
        return sum(not isinstance(row, str) for row in self.rows)

    def first(self, most: int) -> Table:
        """Return the table without the rows after the first so many."""
        kept: list[Sequence[str] | str] = []
        for title, rows in self.parts():
            some = rows[:most]
            most -= len(some)
            kept += ([title] if title and some else []) + list(some)
        return replace(self, rows=tuple(kept))


def lay_out(
    texts: Sequence[str],
    numbers: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    name: str,
) -> Table:
    """Return a table with these titles: columns of text first, then columns of numbers.

    The first column has the names of features if it is called so.
    """
    columns = [Column(title, is_number=False, is_feature=title == "Feature") for title in texts]
    columns += [Column(title) for title in numbers]
    return Table(tuple(columns), tuple(rows), caption, name)


@dataclass(frozen=True)
class LegendItem:
    """A kind of mark in a picture, and what it stands for."""

    label: str
    mark: str
    """its shape: that of a point, with "-" before it on a line that is an interval; "dot" and
    "dot-cross", which are small; of areas "bar", "band", "hatch", "slanted" (a hatch the other
    way) and "framed" (a hatch in a frame); of lines "line", "thin", "dotted" and "cut" (dashed)"""
    cls: str
    """CSS classes, as in the picture"""


@dataclass(frozen=True)
class PictureText:
    """The words and numbers of a picture."""

    title: str
    alt: str
    """the main numbers, for screen readers"""
    caption: str
    table: Table
    """the same numbers"""
    legend: tuple[LegendItem, ...] = ()
    more: tuple[Table, ...] = ()
    """numbers of the picture that do not fit into one table"""
    look: str = ""
    """what to look for, in one plain sentence above the drawing"""

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables of the picture, which together hold its numbers."""
        return (self.table, *self.more)
