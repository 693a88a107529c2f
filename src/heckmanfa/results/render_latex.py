"""Documents as LaTeX: ``table`` environments that need the package booktabs.

Tables of files that are saved also need graphicx, which makes a wide table as wide as the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby

from heckmanfa.results.document import (
    Block,
    Facts,
    Heading,
    Notes,
    Paragraph,
    RegressionTable,
    Section,
)
from heckmanfa.text.printable import printable
from heckmanfa.text.table import INDENT, Table
from heckmanfa.text.wording import true_minus

# Signs that a font for Latin text lacks.
_GREEK = {
    letter: unicodedata.name(letter).split()[-1].replace("LAMDA", "LAMBDA")
    for letter in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
}
_SIGNS = {
    **{one: name.lower() if one.islower() else name.capitalize() for one, name in _GREEK.items()},
    "\N{MICRO SIGN}": "mu",
    "≤": "leq",
    "≥": "geq",
    "≠": "neq",
    "≈": "approx",
    "∞": "infty",
}
_SPECIAL_TEXT = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    **{character: "\\" + character for character in "&%$#_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"''",
    "`": r"\textasciigrave{}",
    "--": r"-{}-",
    "\N{MINUS SIGN}": "$-$",
    "\N{SUPERSCRIPT TWO}": "$^2$",
    **{sign: rf"$\{name}$" for sign, name in _SIGNS.items()},
}
_SPECIAL = re.compile(
    "|".join(re.escape(text) for text in sorted(_SPECIAL_TEXT, key=len, reverse=True))
)
_TITLES = {
    **{f"P>|{letter}|": rf"$P>|{letter}|$" for letter in "zt"},
    **{letter: f"${letter}$" for letter in "zt"},
    "std. error": r"std.\ error",
}


def render_latex(
    first: RegressionTable, sections: Sequence[Section], caption: str | None, label: str | None
) -> str:
    """Render estimates and other sections, each as a float of its own.

    ``caption`` is LaTeX. The floats after the first get the label with "-comparison", "-1", "-2"
    and so on appended.
    """
    caption = _escape(first.title) if caption is None else caption
    opening = [first.opening] if first.opening else []
    floats = [_float(_estimates(first), caption, label, [*opening, *first.notes])]
    if first.comparison is not None:
        title = f"{caption}: {first.comparison.caption.lower()}"
        floats.append(_float(_table(first.comparison, corner=""), title, _add(label, "comparison")))
    for number, (title, body, notes) in enumerate(_with_tables(sections), start=1):
        title = f"{caption}: {_escape(title)}" if title else caption
        floats.append(_float(body, title, _add(label, str(number)), notes))
    return "\n\n".join("\n".join(lines) for lines in floats) + "\n"


def latex_models(table: Table, notes: Sequence[str], caption: str | None, label: str | None) -> str:
    """Render a table of models as one float; ``caption`` is LaTeX."""
    head = " & ".join(_escape(column.title) for column in table.columns)
    alignment = "".join("c" if column.is_number else "l" for column in table.columns)
    body = _tabular(alignment, head, _headed(table))
    return "\n".join(_float(body, caption, label, [*map(true_minus, notes)])) + "\n"


def latex_tables(blocks: Iterable[Block]) -> str:
    """Render each table of a document as a float, with the words around it below it.

    Words before a table go with it, and notes with the table that they follow. A heading becomes a
    comment.
    """
    lines = [r"% In the preamble: \usepackage{booktabs,graphicx}"]
    floats: list[tuple[Table, list[str]]] = []
    before: list[str] = []
    for block in blocks:
        match block:
            case Heading():
                lines.append(f"% {_escape(block.text)}")
            case Paragraph():
                before.append(block.text)
            case Table():
                floats.append((block, before))
                before = []
            case Notes() if floats:
                floats[-1][1].extend(block.items)
    for table, notes in floats:
        lines += ["", *_float(_grouped(table), _escape(table.caption), None, notes)]
    return "\n".join(lines) + "\n"


def _grouped(table: Table) -> list[str]:
    """Render a table with the headings of its parts, and those of neighbouring columns."""
    columns = table.columns
    head = " & ".join(_title(column.title) for column in columns)
    if any(column.group for column in columns):
        over = [
            rf"\multicolumn{{{len(list(group))}}}{{c}}{{{_escape(title)}}}"
            for title, group in groupby(columns, key=lambda column: column.group)
        ]
        head = " & ".join(over) + " \\\\\n" + head
    kinds = {True: r"p{0.3\linewidth}", False: "l"}
    aligned = ("r" if column.is_number else kinds[column.is_long] for column in columns)
    body = _tabular("".join(aligned), head, _headed(table))
    # A table that is wider than the text is made as wide, which takes graphicx.
    fitting = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    return [r"\footnotesize", r"\setlength{\tabcolsep}{4pt}", fitting, *body[:-1], body[-1] + "}"]


def _headed(table: Table) -> list[list[str]]:
    """Render the parts of a table, each below its heading."""
    width = len(table.columns)
    start = rf"\multicolumn{{{width}}}{{l}}"
    return [
        [
            *([f"{start}{{\\textit{{{_escape(title)}}}}} \\\\"] if title else []),
            *_rows(rows, width),
        ]
        for title, rows in table.parts()
    ]


def _add(label: str | None, end: str) -> str | None:
    return None if label is None else f"{label}-{end}"


def _with_tables(sections: Sequence[Section]) -> list[tuple[str, list[str], list[str]]]:
    """Return title, body and notes of each section.

    A section that is all notes has nothing to float: its notes go under the section before.
    """
    floats: list[tuple[str, list[str], list[str]]] = []
    for section in sections:
        body: list[str] = []
        notes: list[str] = []
        for block in section.blocks():
            if isinstance(block, Facts):
                rows = _rows([[name, value] for name, value in block.pairs], 2)
                body += _tabular("ll", "", [rows])
            elif isinstance(block, Table):
                body += _table(block)
            elif isinstance(block, Notes):
                notes += block.items
        if body or not floats:
            floats.append((section.title, body, notes))
        else:
            floats[-1][2].extend(notes)
    return floats


def _estimates(block: RegressionTable) -> list[str]:
    """Render the estimates, one equation below the other, with the facts at the end."""
    columns = block.estimates.columns
    heads = [""]
    for span, group in groupby(columns[1:], key=lambda column: column.span):
        if span:
            heads.append(rf"\multicolumn{{{len(list(group))}}}{{c}}{{{_escape(span)}}}")
        else:
            heads += [_title(column.title) for column in group]
    groups = [*_headed(block.estimates), _rows(block.facts, len(columns))]
    return _tabular(_alignment(block.estimates), " & ".join(heads), groups)


def _table(table: Table, corner: str | None = None) -> list[str]:
    titles = [_title(column.title) for column in table.columns]
    if corner is not None:
        titles[0] = corner
    groups = [_rows(rows, len(titles)) for _, rows in table.parts()]
    return _tabular(_alignment(table), " & ".join(titles), groups)


def _alignment(table: Table) -> str:
    return "".join("r" if column.is_number else "l" for column in table.columns)


def _title(text: str) -> str:
    return _TITLES.get(text, _escape(text))


def _tabular(columns: str, head: str, groups: Sequence[Sequence[str]]) -> list[str]:
    """Render a table, with a rule between groups of lines."""
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    if head:
        lines += [head + r" \\", r"\midrule"]
    for position, group in enumerate(groups):
        lines += ([r"\midrule"] if position else []) + list(group)
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _rows(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    lines = []
    for name, *cells in rows:
        first = r"\quad " * name.startswith(INDENT) + _escape(name)
        # At the start of a line, LaTeX would read these as an argument of the line break before.
        first = "{}" + first if first.startswith(("[", "*")) else first
        filled = [first, *map(_number, cells), *[""] * (width - 1 - len(cells))]
        lines.append(" & ".join(filled) + r" \\")
    return lines


def _float(
    body: Sequence[str], caption: str | None, label: str | None, notes: Sequence[str] = ()
) -> list[str]:
    lines = [r"\begin{table}[htbp]", r"\centering"]
    lines += [] if caption is None else [rf"\caption{{{caption}}}"]
    lines += [] if label is None else [rf"\label{{{label}}}"]
    lines += body
    if notes:
        lines += [r"\par\medskip", r"\begin{minipage}{\linewidth}", r"\footnotesize"]
        lines += [_escape(note) + r"\par" for note in notes] + [r"\end{minipage}"]
    return [*lines, r"\end{table}"]


def _escape(text: str) -> str:
    """Escape text for LaTeX."""
    line = " ".join(printable(text, None).split())
    return _SPECIAL.sub(lambda match: _SPECIAL_TEXT[match.group()], line)


# A number or an interval in brackets, and a number with stars.
_BRACKETED = re.compile(r"([(\[])([^\s,]+(?:,\d{3})*)(?:, ([^\s]+))?([)\]])()")
_STARRED = re.compile(r"()([^\s*]+)()()(\*+)")


def _number(text: str) -> str:
    """Format a number with a minus sign and powers of ten; anything else as text."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    try:
        float(plain.replace(",", "").removeprefix("<"))
    except ValueError:
        around = _BRACKETED.fullmatch(text) or _STARRED.fullmatch(text)
        return _escape(text) if around is None else _around(*around.groups(default=""))
    text = plain
    digits, _, power = text.partition("e")
    if power:
        return rf"${digits}\times10^{{{int(power)}}}$"
    return f"${text}$" if text.startswith(("-", "<")) else text


def _around(opens: str, number: str, second: str, closes: str, stars: str) -> str:
    """Format a number or two, in what is around them."""
    inner = ", ".join(_number(one) for one in (number, second) if one)
    if stars:
        return f"${inner.strip('$')}^{{{stars}}}$"
    return f"{opens}{inner}{closes}"
