"""Documents as HTML: for notebooks, and for the page of the report, which has a style sheet.

All text is escaped here, and in the drawings of `heckmanfa.plots.svg`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from heckmanfa.results.document import (
    Block,
    Code,
    CodeTabs,
    Facts,
    Heading,
    Notes,
    PageBlock,
    Paragraph,
    Part,
)
from heckmanfa.text.labels import label
from heckmanfa.text.option_words import told
from heckmanfa.text.passage import Name, Passage
from heckmanfa.text.printable import cut, printable, shown
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import count, true_minus

MOST_ROWS = 500
"""rows of a table on the page"""

# Characters of a name in a sentence.
_MOST_OF_NAME = 40
# Characters of a cell that stays on one line.
_ONE_LINE = 32
# Letters and digits of any script, and marks without a meaning in CSS or HTML.
_NOT_PLAIN = re.compile(r"[^\w .,:+·-]")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def escape(text: object) -> str:
    """Make text safe inside elements and quoted attributes."""
    return html.escape(printable(str(text), None), quote=True)


def css_string(text: str) -> str:
    """Quote text for a style sheet inside a page: nothing in it can end the string or the sheet."""
    return '"' + _NOT_PLAIN.sub(lambda found: f"\\{ord(found[0]):x} ", printable(text, None)) + '"'


def render_notebook(parts: Iterable[Part], kind: str) -> str:
    """Render a result for a notebook, in an element with a class of its own."""
    blocks = (_notebook_block(block) for part in parts for block in part.blocks())
    return f'<div class="heckmanfa-{kind}">{"".join(blocks)}</div>'


_MODELS_STYLE = (
    "body{font:15px/1.4 Georgia,serif;margin:2em}"
    "table{border-collapse:collapse;border-top:2px solid;border-bottom:2px solid}"
    "thead,tbody{border-bottom:1px solid}th,td{padding:.1em .8em;text-align:center}"
    "tbody th{text-align:left;font-weight:normal}tr.part th{font-style:italic}"
    "ul{list-style:none;padding:0;font-size:85%;max-width:60em}"
)


def models_page(table: Table, notes: Sequence[str], *, whole: bool) -> str:
    """Render a table of models: as a page with a style, or as an element to put into one."""
    inner = _notebook_block(table) + (_notebook_block(Notes(tuple(notes))) if notes else "")
    inner = f'<div class="heckmanfa-etable">{inner}</div>'
    if not whole:
        return inner
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Models</title>'
        f"<style>{_MODELS_STYLE}</style></head><body>{inner}</body></html>\n"
    )


def _notebook_block(block: Block) -> str:
    match block:
        case Heading():
            return f"<p><strong>{escape(block.text)}</strong></p>"
        case Paragraph():
            return f"<p>{escape(block.text)}</p>"
        case Facts():
            rows = "".join(_row([name, value], None) for name, value in block.pairs)
            return f"<table>{rows}</table>"
        case Table():
            caption = f"<caption>{escape(block.caption)}</caption>" if block.caption else ""
            return f"<table>{caption}{_head_and_body(block, page=False)}</table>"
        case Notes():
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in block.items) + "</ul>"


def marked(words: Passage | str) -> str:
    """Escape a passage for the page, on which everything about a feature lights up together.

    Long names are cut in the middle; tables and tooltips have them in full. Options of the command
    line are marked as code.
    """
    parts = words.parts if isinstance(words, Passage) else (words,)
    return "".join(
        _mark(part) if isinstance(part, Name) else _prose(told(part, keywords=True))
        for part in parts
    )


def cut_name(name: Name) -> str:
    """Escape a name as sentences of the page show it."""
    return escape(cut(name.label, _MOST_OF_NAME))


def _mark(name: Name) -> str:
    return f'<b data-f="{escape(name.key)}">{cut_name(name)}</b>'


def unmarked(html: str, *names: str) -> str:
    """Take the marks off names that are not a feature's: those of the outcome."""
    for name in names:
        html = html.replace(_mark(Name(name)), cut_name(Name(name)))
    return html


def render_page(blocks: Iterable[PageBlock], most: int = MOST_ROWS) -> str:
    """Render blocks for the page of the report; a table has ``most`` rows at most."""
    return "".join(_page_block(block, most) for block in blocks)


def fold(title: str, inner: str, *, on_paper: bool = True) -> str:
    """Fold HTML under a title; on paper it is open, or left to the file."""
    kind = "" if on_paper else "in-file"
    return f"<details{_class(kind)}><summary>{escape(title)}</summary>{inner}</details>"


def _page_block(block: PageBlock, most: int) -> str:
    match block:
        case Heading():
            return f"<h3>{escape(block.text)}</h3>"
        case Paragraph():
            return f"<p{_class(block.kind)}>{_prose(block.text)}</p>"
        case Facts():
            inner = "".join(
                f"<div><dt>{escape(name)}</dt><dd>{_prose(value)}</dd></div>"
                for name, value in block.pairs
            )
            return f"<dl>{inner}</dl>"
        case Table():
            return _page_table(block, most)
        case Notes():
            inner = "".join(f"<li>{_prose(item)}</li>" for item in block.items)
            return f"<ul{_class(block.kind)}>{inner}</ul>" if inner else ""
        case Code():
            # A line must not break at the hyphens of an option.
            words = _OPTION.sub(r"<span>\g<0></span>", escape(block.text))
            return f'<pre tabindex="0" aria-label="Command"><code>{words}</code></pre>'
        case CodeTabs():
            return _tabs(block)


def _tabs(block: CodeTabs) -> str:
    """Render programs as tabs, which are radio buttons: they work without a script."""
    heads = panels = ""
    for place, (language, code) in enumerate(block.programs):
        key, chosen = escape(language.lower()), "" if place else " checked"
        heads += (
            f'<input type="radio" name="language" id="tab-{key}"{chosen}>'
            f'<label for="tab-{key}">{escape(language)}</label>'
        )
        panels += (
            f'<div><pre tabindex="0" aria-label="{escape(language)}"><code id="code-{key}">'
            f'{escape(code)}</code></pre><button type="button" data-copy="code-{key}" hidden>'
            f"Copy the {escape(language)} code</button></div>"
        )
    title = escape(block.title)
    return f'<fieldset class="tabs"><legend>{title}</legend>{heads}{panels}</fieldset>'


def _page_table(table: Table, most: int) -> str:
    """Render a table in a box of its own, which scrolls if the page is too narrow."""
    note, table = "", table.without_empty()
    if table.n_rows > most:
        note = (
            f'<p class="note">The first {count(most)} of {count(table.n_rows)} rows; '
            "<code>tidy()</code> and JSON have the estimates of all.</p>"
        )
        table = table.first(most)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{table.name}" tabindex="0">'
        f'<table><caption id="{table.name}">{escape(table.caption)}</caption>'
        f"{_head_and_body(table, page=True)}</table></div>{note}"
    )


def _prose(text: str) -> str:
    """Escape a sentence, and mark command-line options as code, which does not wrap."""
    return _OPTION.sub(r"<code>\g<0></code>", escape(text))


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _head_and_body(table: Table, *, page: bool) -> str:
    columns = table.columns
    titles = "".join(_cell("th", column, column.title, page, ' scope="col"') for column in columns)
    head = f"<tr>{titles}</tr>"
    if any(column.group for column in columns):
        over = ""
        for group, members in groupby(columns, key=lambda column: column.group):
            span = f'colspan="{len(list(members))}"'
            title = f'<th scope="colgroup" {span} class="group">{escape(group)}</th>'
            over += title if group else f"<td {span}></td>"
        head = f"<tr>{over}</tr>{head}"
    bodies = ""
    for title, rows in table.parts():
        inner = "".join(_row(row, columns if page else None) for row in rows)
        if title:
            inner = (
                f'<tr class="part"><th scope="rowgroup" colspan="{len(columns)}"'
                f"{'' if page else _LEFT}><span>{escape(title)}</span></th></tr>{inner}"
            )
        bodies += f"<tbody>{inner}</tbody>"
    return f"<thead>{head}</thead>{bodies}"


# Notebooks align row headings to the right by default.
_LEFT = ' style="text-align:left"'


def _row(row: Sequence[str], columns: Sequence[Column] | None) -> str:
    """Render a row: for the page with the columns given, for a notebook with None."""
    if columns is None:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        return f'<tr><th scope="row"{_LEFT}>{escape(row[0])}</th>{cells}</tr>'
    cells = "".join(
        _cell("td", column, true_minus(cell) if column.is_number else cell, True)
        for column, cell in zip(columns[1:], row[1:], strict=True)
    )
    if columns[0].is_feature:
        return f'<tr data-f="{escape(row[0])}"><th scope="row">{_head(row[0])}</th>{cells}</tr>'
    return f'<tr><th scope="row">{escape(shown(row[0]))}</th>{cells}</tr>'


def _head(name: str) -> str:
    """Render the name of a feature, after its label if it has one."""
    words = label(name)
    if words == name:
        return escape(name)
    return f'{escape(cut(words, _MOST_OF_NAME))} <span class="column">{escape(name)}</span>'


def _cell(tag: str, column: Column, text: str, page: bool, scope: str = "") -> str:
    # Most cells of a page are numbers, so text is what has a class; long text may wrap.
    words = "t" if len(text) <= _ONE_LINE else "t long"
    kind = {("th", True): "n", ("td", False): words}.get((tag, column.is_number), "")
    kind = kind if page else ""
    return f"<{tag}{scope}{_class(kind)}>{escape(text)}</{tag}>"
