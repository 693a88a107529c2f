"""Pieces of HTML: text is escaped here, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from heckmanfa.results.document import in_html
from heckmanfa.text.printable import shown

__all__ = ["Column", "definitions", "escape", "items", "paragraph", "prose", "signed", "table"]


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class Column(NamedTuple):
    """A column of a table."""

    title: str
    is_number: bool = True
    group: str = ""
    """a heading that neighbours share"""


def escape(text: object) -> str:
    """Make text safe inside of elements and of quoted attributes."""
    return in_html(str(text))


def prose(text: str) -> str:
    """Make a sentence safe, and set options of the command line as code, which does not break."""
    return _OPTION.sub(r"<code>\g<0></code>", escape(text))


def signed(text: str) -> str:
    """Put a minus sign, which is as wide as a digit and read aloud, before a number."""
    return "\N{MINUS SIGN}" + text[1:] if text.startswith("-") else text


def paragraph(text: str, kind: str = "") -> str:
    """Set a paragraph."""
    return f"<p{_kind(kind)}>{prose(text)}</p>"


def items(texts: Sequence[str], kind: str = "", *, lead: bool = False) -> str:
    """Set a list, the words before a colon strong where they ``lead``; nothing if it is empty."""
    if not texts:
        return ""
    inner = ""
    for text in texts:
        head, colon, rest = text.partition(": ") if lead else ("", "", text)
        strong = f"<strong>{prose(head)}</strong>{colon}" if colon else prose(head)
        inner += f"<li>{strong}{prose(rest)}</li>"
    return f"<ul{_kind(kind)}>{inner}</ul>"


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Set pairs of a label and its text."""
    inner = "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in pairs)
    return f"<dl>{inner}</dl>"


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str] | str],
) -> str:
    """Set a table in a box of its own, which scrolls where the page is too narrow.

    Parameters
    ----------
    name : str
        What no other table of the page is called.
    caption : str
    columns : sequence of Column
        The first is the heading of each row.
    rows : sequence
        Cells of each row, or a text that heads the rows below it.

    Returns
    -------
    str
    """
    body, parts = "", []
    for row in rows:
        if isinstance(row, str):
            if body:
                parts.append(body)
            body = (
                f'<tr class="part"><th scope="rowgroup" colspan="{len(columns)}">'
                f"<span>{escape(row)}</span></th></tr>"
            )
            continue
        cells = "".join(
            f"<td{_kind('n' if column.is_number else '')}>"
            f"{escape(signed(cell) if column.is_number else cell)}</td>"
            for column, cell in zip(columns[1:], row[1:], strict=True)
        )
        body += f'<tr><th scope="row">{escape(shown(row[0]))}</th>{cells}</tr>'
    parts.append(body)
    bodies = "".join(f"<tbody>{one}</tbody>" for one in parts)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0"><table>'
        f'<caption id="{name}">{escape(caption)}</caption>'
        f"<thead>{_head(columns)}</thead>{bodies}</table></div>"
    )


def _head(columns: Sequence[Column]) -> str:
    titles = "".join(
        f'<th scope="col"{_kind("n" if one.is_number else "")}>{escape(one.title)}</th>'
        for one in columns
    )
    if not any(one.group for one in columns):
        return f"<tr>{titles}</tr>"
    groups: list[list[Column]] = []
    for one in columns:
        if groups and groups[-1][0].group == one.group:
            groups[-1].append(one)
        else:
            groups.append([one])
    over = "".join(
        f'<th scope="colgroup" colspan="{len(group)}" class="group">{escape(group[0].group)}</th>'
        if group[0].group
        else f'<td colspan="{len(group)}"></td>'
        for group in groups
    )
    return f"<tr>{over}</tr><tr>{titles}</tr>"
