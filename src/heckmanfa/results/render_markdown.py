"""Documents as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from heckmanfa.results.document import Block, Facts, Heading, Notes, Paragraph, Part
from heckmanfa.text.printable import printable
from heckmanfa.text.table import Column, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def render_markdown(parts: Iterable[Part]) -> str:
    """Render a result as Markdown, with a blank line between blocks."""
    blocks = (block for part in parts for block in part.blocks())
    return "\n\n".join(text for block in blocks for text in _render(block)) + "\n"


def _render(block: Block) -> list[str]:
    match block:
        case Heading():
            return [_bold(block.text)]
        case Paragraph():
            return [_escape(block.text)]
        case Facts():
            value = Column("value", is_number=block.is_number)
            return [_table((Column("quantity", is_number=False), value), block.pairs)]
        case Table():
            return ([_bold(block.caption)] if block.caption else []) + _tables(block)
        case Notes():
            return ["\n".join(f"- {_escape(item)}" for item in block.items)]


def _tables(table: Table) -> list[str]:
    """Render each part of a table under its title."""
    parts = []
    for title, rows in table.parts():
        parts += [_bold(title)] if title else []
        parts.append(_table(table.columns, rows))
    return parts


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    lines = [[_escape(column.title) for column in columns]]
    lines.append(["---:" if column.is_number else ":---" for column in columns])
    lines += [[_escape(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape(text: str) -> str:
    """Escape text for Markdown, inside and outside tables."""
    return _SPECIAL.sub(r"\\\1", " ".join(printable(text, None).split()))


def _bold(text: str) -> str:
    return f"**{_escape(text)}**"
