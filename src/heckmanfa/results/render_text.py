"""Documents as plain text, and as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from heckmanfa.results.document import (
    Block,
    Facts,
    Findings,
    Heading,
    Notes,
    Paragraph,
    Part,
    RegressionTable,
)
from heckmanfa.text.printable import cells, printable
from heckmanfa.text.table import INDENT, Column, Table

WIDTH = 88
_LONGEST_CELL = 56
_FACT_WIDTH = 35
_LABEL_WIDTH = 16


def render_text(parts: Iterable[Part]) -> str:
    """Render the parts of a result as text, with a blank line between them."""
    width, texts = WIDTH, []
    for part in parts:
        if isinstance(part, RegressionTable):
            width, lines = _regression(part)
        elif isinstance(part, Findings):
            lines = _findings(part)
        else:
            lines = _section(part.blocks(), width)
        texts.append("\n".join(lines))
    return printable("\n\n".join(texts), None)


def _section(blocks: Sequence[Block], width: int) -> list[str]:
    lines: list[str] = []
    for position, block in enumerate(blocks):
        if isinstance(block, Facts):
            label = max(28, *(len(name) + 3 for name, _ in block.pairs))
            lines += [f"{name + ':':<{label}}{value}" for name, value in block.pairs]
        elif isinstance(block, Table):
            lines += _table(block)
        elif isinstance(block, Notes):
            lines += [""] if position and isinstance(blocks[position - 1], Table) else []
            lines += _notes(block.items, width)
        else:
            lines.append(block.text)
    return lines


def _notes(notes: Sequence[str], width: int) -> list[str]:
    return [
        line
        for note in notes
        for line in textwrap.wrap("- " + printable(note, None), width, subsequent_indent="  ")
    ]


def _findings(findings: Findings) -> list[str]:
    return [
        f"[{verdict:>7}] {name}: {value}\n          {meaning}"
        for name, value, verdict, meaning in findings.lines
    ]


def _table(table: Table) -> list[str]:
    """Lay out a table: text to the left, numbers to the right, long columns last."""
    order = sorted(range(len(table.columns)), key=lambda index: table.columns[index].is_long)
    laid_out = []
    for index in order:
        column = table.columns[index]
        # Two blanks keep the titles of numbers apart.
        title = " " * column.is_number + column.title
        cells = [title, *(_cut(row[index], column) for row in table.rows)]
        width = max(map(len, cells))
        laid_out.append(
            [cell.rjust(width) if column.is_number else cell.ljust(width) for cell in cells]
        )
    return [_join(cells, " ") for cells in zip(*laid_out, strict=True)]


def _cut(cell: str, column: Column) -> str:
    if not column.is_long or len(cell) <= _LONGEST_CELL:
        return cell
    return cell[: _LONGEST_CELL - 3] + "..."


def _join(cells: Iterable[str], between: str) -> str:
    return between.join(cells).rstrip()


def _regression(block: RegressionTable) -> tuple[int, list[str]]:
    """Return the width of a regression table, and its lines."""
    columns = block.estimates.columns[1:]
    parts = block.estimates.parts()
    label = max(_LABEL_WIDTH, *(len(row[0]) for _, rows in parts for row in rows))
    width = label + sum(column.width for column in columns)
    opening = [*textwrap.wrap(printable(block.opening, None), width), ""] if block.opening else []
    lines = [*opening, block.title, "=" * width, *_two_columns(block.facts), "-" * width]
    lines.append(" " * label + _heads(columns))
    for title, rows in parts:
        lines += ["-" * width, title, *(_row(row, label, columns) for row in rows)]
    if block.comparison is not None:
        others = block.comparison.columns[1:]
        heads = ("", *(column.title for column in others))
        lines += ["-" * width, f"{block.comparison.caption:<{label}}"]
        lines += [_row(row, label, others) for row in (heads, *block.comparison.rows)]
    return width, [*lines, "=" * width, *_notes(block.notes, width)]


def _two_columns(facts: Sequence[tuple[str, str]]) -> list[str]:
    half = (len(facts) + 1) // 2
    cells = [f"{name}:{value:>{_FACT_WIDTH - len(name)}}" for name, value in facts]
    return ["      ".join(cells[row::half]) for row in range(half)]


def _heads(columns: Sequence[Column]) -> str:
    text, rest = "", list(columns)
    while rest:
        column = rest.pop(0)
        width, title = column.width, column.title
        while column.span and rest and rest[0].span == column.span:
            width += rest.pop(0).width
            title = f"[{column.span}]"
        text += f"{title:>{width}}"
    return text


def _row(row: Sequence[str], label: int, columns: Sequence[Column]) -> str:
    cells = (f"{cell:>{column.width}}" for cell, column in zip(row[1:], columns, strict=True))
    return _join([f"{row[0]:<{label}}", *cells], "")


def render_models(table: Table, notes: Sequence[str]) -> str:
    """Render a table of models: numbers end below each other, whatever is around them."""
    lines: list[Sequence[str]] = [[column.title for column in table.columns]]
    lines += [row for _, rows in table.parts() for row in rows]
    columns = [[printable(cell, None) for cell in column] for column in zip(*lines, strict=True)]
    names = [name.replace(INDENT, "  ") for name in columns[0]]
    label = max(_LABEL_WIDTH, *map(cells, names))
    laid_out = [[name + " " * (label - cells(name)) for name in names]]
    laid_out += [_ended(column) for column in columns[1:]]
    made = iter([_join(row, "  ") for row in zip(*laid_out, strict=True)])
    width = label + sum(2 + cells(column[0]) for column in laid_out[1:])
    text = ["=" * width, next(made)]
    for title, rows in table.parts():
        text += ["-" * width, *([printable(title, None)] if title else [])]
        text += [next(made) for _ in rows]
    return "\n".join([*text, "=" * width, *_notes(notes, max(width, WIDTH))])


def _ended(column: Sequence[str]) -> list[str]:
    """Let the numbers of a column end below each other, and make its cells equally wide."""
    tails = [_tail(cell) for cell in column]
    tail = max(len(text) for text in tails)
    bodies = [cell[: len(cell) - len(end)] for cell, end in zip(column, tails, strict=True)]
    body = max(map(cells, bodies))
    return [
        " " * (body - cells(own)) + own + end.ljust(tail)
        for own, end in zip(bodies, tails, strict=True)
    ]


def _tail(cell: str) -> str:
    """Return the end of a cell that stands to the right of a number: stars, and what closes."""
    return cell[len(cell.rstrip(")]*")) :] if cell[:1] in "([-0123456789" else ""


def markdown_models(table: Table, notes: Sequence[str]) -> str:
    """Render a table of models as one table of Markdown, with headings among its rows."""
    empty = [""] * (len(table.columns) - 1)
    lines = [[_escape_markdown(_full_title(column)) for column in table.columns]]
    lines.append(["---:" if column.is_number else ":---" for column in table.columns])
    for title, rows in table.parts():
        lines += [[_bold(title), *empty]] if title else []
        for name, *numbers in rows:
            first = "&emsp;" * name.startswith(INDENT) + _escape_markdown(name)
            lines.append([first, *map(_escape_markdown, numbers)])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join([text, *_markdown_block(Notes(tuple(notes)))]) + "\n"


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def render_markdown(parts: Iterable[Part]) -> str:
    """Render a result as Markdown, with a blank line between blocks."""
    return markdown_blocks(block for part in parts for block in part.blocks())


def markdown_blocks(blocks: Iterable[Block]) -> str:
    """Render blocks as Markdown, with a blank line between them."""
    return "\n\n".join(text for block in blocks for text in _markdown_block(block)) + "\n"


def _markdown_block(block: Block) -> list[str]:
    match block:
        case Heading():
            return [_bold(block.text)]
        case Paragraph():
            return [_escape_markdown(block.text)]
        case Facts():
            value = Column("value", is_number=block.is_number)
            return [_markdown_table((Column("quantity", is_number=False), value), block.pairs)]
        case Table():
            return ([_bold(block.caption)] if block.caption else []) + _markdown_tables(block)
        case Notes():
            return ["\n".join(f"- {_escape_markdown(item)}" for item in block.items)]


def _markdown_tables(table: Table) -> list[str]:
    """Render each part of a table under its title."""
    parts = []
    for title, rows in table.parts():
        parts += [_bold(title)] if title else []
        parts.append(_markdown_table(table.columns, rows))
    return parts


def _markdown_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    lines = [[_escape_markdown(_full_title(column)) for column in columns]]
    lines.append(["---:" if column.is_number else ":---" for column in columns])
    lines += [[_escape_markdown(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _full_title(column: Column) -> str:
    """Return a title with what HTML puts above it."""
    return f"{column.group}: {column.title}" if column.group else column.title


def _escape_markdown(text: str) -> str:
    """Escape text for Markdown, inside and outside tables."""
    return _MARKDOWN.sub(r"\\\1", " ".join(printable(text, None).split()))


def _bold(text: str) -> str:
    return f"**{_escape_markdown(text)}**"
