"""Documents as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from heckmanfa.results.document import (
    Block,
    Code,
    Facts,
    Findings,
    Heading,
    Notes,
    RegressionTable,
    table_of_findings,
)
from heckmanfa.text.printable import printable
from heckmanfa.text.table import Column, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def render_markdown(blocks: Iterable[Block]) -> str:
    """Render blocks as Markdown, with a blank line between them."""
    return "\n\n".join(part for block in blocks for part in _parts(block)) + "\n"


def _parts(block: Block) -> list[str]:
    match block:
        case Heading():
            return [_bold(block.text)]
        case Facts():
            return [_facts(block, is_number=False)]
        case Table():
            return ([_bold(block.caption)] if block.caption else []) + _tables(block)
        case Notes():
            return ["\n".join(f"- {_escape(item)}" for item in block.items)] if block.items else []
        case Findings():
            return _parts(table_of_findings(block))
        case Code():
            return [f"```\n{block.text}\n```"]
        case RegressionTable():
            parts = [_bold(block.title), _facts(Facts(block.facts), is_number=True)]
            parts += _tables(block.estimates)
            parts += [] if block.comparison is None else _parts(block.comparison)
            return parts + _parts(Notes(block.notes))
        case _:
            return [_escape(block.text)]


def _facts(facts: Facts, *, is_number: bool) -> str:
    columns = (Column("quantity", is_number=False), Column("value", is_number=is_number))
    return _table(columns, facts.pairs)


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
