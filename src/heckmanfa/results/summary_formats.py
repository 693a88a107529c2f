"""How the summary of a model is set: as text, HTML, LaTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.results.document import (
    Section,
    _readable,
    html_of_section,
    in_html,
    text_of_section,
    wrapped_note,
)
from heckmanfa.text.printable import printable, shown

if TYPE_CHECKING:
    import pandas as pd

    from heckmanfa.results.coefficients import Summary

__all__ = ["html_of", "latex_of", "markdown_of", "text_of"]

_COLUMNS = {
    "estimate": "estimate",
    "std_error": "std. error",
    "statistic": "z",
    "p_value": "P>|z|",
    "ci_low": "low",
    "ci_high": "high",
}

_WIDTHS = {
    "estimate": 12,
    "std_error": 12,
    "statistic": 8,
    "p_value": 8,
    "ci_low": 13,
    "ci_high": 12,
}

_COMPARISON = {"chosen": "chosen", "all_features": "all features", "naive": "least squares"}
_COMPARISON_TITLE = "Beside other models"

_EQUATION_WORDS = {
    "prediction": "Prediction equation (outcome)",
    "selection": "Selection equation (probit)",
    "errors": "Errors",
}


def _number(value: float, column: str = "estimate") -> str:
    if not np.isfinite(value):
        return "" if np.isnan(value) else str(value)
    if column == "p_value":
        return f"{value:.3f}"
    if column == "statistic":
        return f"{value:.2f}"
    return f"{value:.5g}"


def _line(text: str) -> str:
    return " ".join(printable(text, None).split())


def _columns(summary: Summary) -> dict[str, str]:
    """Head the columns: a statistic is a z or, with a cluster covariance, a t."""
    letter = summary.letter
    return _COLUMNS | {"statistic": letter, "p_value": f"P>|{letter}|"}


def _cells(row: Any) -> list[str]:
    """Set the numbers of a row of `tidy`."""
    return [_number(row[key], key) for key in _COLUMNS]


def _equations(summary: Summary) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield each equation in words, with its terms and their numbers."""
    for equation, rows in summary.table.groupby("equation", sort=False):
        lines = [(shown(row["term"]), _cells(row)) for _, row in rows.iterrows()]
        yield _EQUATION_WORDS[str(equation)], lines


def _compared(table: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Terms of the comparison, with the numbers of each model."""
    return [
        (shown(row["term"]), [_number(row[name]) for name in _COMPARISON])
        for _, row in table.iterrows()
    ]


# Text. ------------------------------------------------------------------------------------------


def text_of(summary: Summary) -> str:
    """Set a summary as text."""
    label = max(16, *(len(shown(term)) for term in summary.table["term"]))
    width = label + sum(_WIDTHS.values())
    lines = [summary.title, "=" * width]
    half = (len(summary.facts) + 1) // 2
    for place in range(half):
        pair = [summary.facts[place], *summary.facts[place + half : place + half + 1]]
        cells = [f"{name}:{value:>{35 - len(name)}}" for name, value in pair]
        lines.append("      ".join(cells))
    interval = f"[{100 * summary.conf_level:g}% interval]"
    head = "".join(f"{name:>{_WIDTHS[key]}}" for key, name in list(_columns(summary).items())[:4])
    spread = _WIDTHS["ci_low"] + _WIDTHS["ci_high"]
    lines += ["-" * width, f"{'':<{label}}{head}{interval:>{spread}}"]
    for title, rows in _equations(summary):
        lines += ["-" * width, title]
        lines += [_text_row(term, label, cells, _WIDTHS.values()) for term, cells in rows]
    if summary.comparison is not None:
        names = list(_COMPARISON.values())
        lines += ["-" * width, f"{_COMPARISON_TITLE:<{label}}", _text_row("", label, names)]
        lines += [_text_row(term, label, cells) for term, cells in _compared(summary.comparison)]
    lines.append("=" * width)
    lines += [line for note in summary.notes for line in wrapped_note(note, width)]
    lines += ["\n" + text_of_section(one, width) for one in summary.sections]
    return printable("\n".join(lines), None)


def _text_row(term: str, label: int, cells: Sequence[str], widths: Any = (18, 18, 18)) -> str:
    set_cells = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{term:<{label}}{''.join(set_cells)}".rstrip()


# HTML. ------------------------------------------------------------------------------------------


def html_of(summary: Summary) -> str:
    """Set a summary as HTML."""
    facts = "".join(_html_row(name, [in_html(value)]) for name, value in summary.facts)
    names = ["", *_columns(summary).values()]
    body = ""
    for title, rows in _equations(summary):
        body += (
            "<tr><th colspan='7' scope='colgroup' style='text-align:left'>"
            f"{in_html(title)}</th></tr>"
        )
        body += "".join(_html_row(term, cells) for term, cells in rows)
    notes = "".join(f"<li>{in_html(note)}</li>" for note in summary.notes)
    beside = ""
    if summary.comparison is not None:
        inner = "".join(_html_row(term, cells) for term, cells in _compared(summary.comparison))
        beside = _html_table(_COMPARISON_TITLE, ["", *_COMPARISON.values()], inner)
    return (
        f"<div class='heckmanfa-summary'><p><strong>{in_html(summary.title)}</strong></p>"
        f"<table>{facts}</table>"
        + _html_table(f"Intervals at {100 * summary.conf_level:g}%", names, body)
        + f"{beside}<ul>{notes}</ul>"
        + "".join(html_of_section(one) for one in summary.sections)
        + "</div>"
    )


def _html_row(label: str, cells: Sequence[str]) -> str:
    inner = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr><th scope='row' style='text-align:left'>{in_html(label)}</th>{inner}</tr>"


def _html_table(caption: str, names: Sequence[str], body: str) -> str:
    head = "".join(f"<th scope='col'>{in_html(name)}</th>" for name in names)
    return (
        f"<table><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


# LaTeX. -----------------------------------------------------------------------------------------

_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    **{one: "\\" + one for one in "&%$#_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"''",
    "`": r"\textasciigrave{}",
    "--": r"-{}-",
}
_TEX_SPECIAL = re.compile("|".join(re.escape(one) for one in sorted(_TEX, key=len, reverse=True)))
_TEX_WORDS = {
    **{f"P>|{one}|": rf"$P>|{one}|$" for one in "zt"},
    **{one: f"${one}$" for one in "zt"},
    "std. error": r"std.\ error",
}


def _tex(text: str) -> str:
    """Set text so that LaTeX prints it as it is."""
    return _TEX_SPECIAL.sub(lambda found: _TEX[found.group()], _line(text))


def _tex_number(text: str) -> str:
    """Set a number with a minus sign and powers of ten; what is none, as text."""
    try:
        float(text)
    except ValueError:
        return _tex(text)
    if text.lstrip("-") == "inf":
        return "$" + text.replace("inf", r"\infty") + "$"
    digits, _, power = text.partition("e")
    if power:
        return rf"${digits}\times10^{{{int(power)}}}$"
    return f"${text}$" if text.startswith("-") else text


def _tex_rows(rows: Sequence[tuple[str, Sequence[str]]], width: int) -> list[str]:
    lines = []
    for name, cells in rows:
        first = _tex(name)
        # Behind the end of a line these would be taken for its argument.
        first = "{}" + first if first.startswith(("[", "*")) else first
        filled = [first, *map(_tex_number, cells), *[""] * (width - len(cells))]
        lines.append(" & ".join(filled) + r" \\")
    return lines


def _tex_tabular(columns: str, head: str, groups: Sequence[Sequence[str]]) -> list[str]:
    """Set a table, with a rule between groups of lines."""
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    if head:
        lines += [head + r" \\", r"\midrule"]
    for place, group in enumerate(groups):
        lines += ([r"\midrule"] if place else []) + list(group)
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _tex_float(
    body: Sequence[str], caption: str, label: str | None, notes: Sequence[str]
) -> list[str]:
    lines = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}"]
    lines += [] if label is None else [rf"\label{{{label}}}"]
    lines += body
    if notes:
        lines += [r"\par\medskip", r"\begin{minipage}{\linewidth}", r"\footnotesize"]
        lines += [_tex(note) + r"\par" for note in notes] + [r"\end{minipage}"]
    return [*lines, r"\end{table}"]


def latex_of(summary: Summary, caption: str | None, label: str | None) -> str:
    """Set a summary as LaTeX; see `Summary.to_latex`."""
    caption = _tex(summary.title) if caption is None else caption
    names = [_TEX_WORDS.get(name, name) for name in list(_columns(summary).values())[:4]]
    interval = rf"\multicolumn{{2}}{{c}}{{{100 * summary.conf_level:g}\% interval}}"
    groups = [
        [rf"\multicolumn{{7}}{{l}}{{\textit{{{_tex(title)}}}}} \\", *_tex_rows(rows, 6)]
        for title, rows in _equations(summary)
    ]
    groups.append(_tex_rows([(name, [value]) for name, value in summary.facts], 6))
    main = _tex_tabular("lrrrrrr", " & ".join(["", *names, interval]), groups)
    floats = [_tex_float(main, caption, label, summary.notes)]
    if summary.comparison is not None:
        head = " & ".join(["", *_COMPARISON.values()])
        body = _tex_tabular("lrrr", head, [_tex_rows(_compared(summary.comparison), 3)])
        name = None if label is None else f"{label}-comparison"
        floats.append(_tex_float(body, f"{caption}: {_COMPARISON_TITLE.lower()}", name, []))
    for place, section in enumerate(_with_tables(summary.sections), start=1):
        name = None if label is None else f"{label}-{place}"
        title = f"{caption}: {_tex(section.title)}" if section.title else caption
        floats.append(_tex_float(_tex_section(section), title, name, section.notes))
    return "\n\n".join("\n".join(lines) for lines in floats) + "\n"


def _with_tables(sections: Sequence[Section]) -> list[Section]:
    """Put the notes of parts that have nothing else under the part before."""
    kept: list[Section] = []
    for one in sections:
        if kept and not one.facts and one.table is None:
            kept[-1] = replace(kept[-1], notes=(*kept[-1].notes, *one.notes))
        else:
            kept.append(one)
    return kept


def _tex_section(section: Section) -> list[str]:
    lines: list[str] = []
    if section.facts:
        lines += _tex_tabular("ll", "", [_tex_rows([(a, [b]) for a, b in section.facts], 1)])
    if section.facts and section.table is not None:
        lines.append(r"\par\medskip")
    if section.table is not None:
        names, columns, rows = _plain_table(section.table)
        head = " & ".join(map(_tex, names))
        lines += _tex_tabular(columns, head, [_tex_rows(rows, len(names) - 1)])
    return lines


def _plain_table(table: pd.DataFrame) -> tuple[list[str], str, list[tuple[str, list[str]]]]:
    """Names, alignment and cells of a report's table."""
    table = _readable(table)
    align = [
        "l" if table[name].map(lambda one: isinstance(one, str)).any() else "r" for name in table
    ]

    def cell(value: Any) -> str:
        return _number(float(value)) if isinstance(value, float | np.floating) else str(value)

    rows = [[cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    return [str(name) for name in table], "".join(align), [(row[0], row[1:]) for row in rows]


# Markdown. --------------------------------------------------------------------------------------

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def _markdown(text: str) -> str:
    """Set text so that Markdown shows it as it is, in a table, too."""
    return _MARKDOWN.sub(r"\\\1", _line(text))


def _bold(text: str) -> str:
    return f"**{_markdown(text)}**"


def _markdown_table(
    names: Sequence[str], columns: str, rows: Sequence[tuple[str, Sequence[str]]]
) -> str:
    rule = [{"l": ":---", "r": "---:"}[one] for one in columns]
    lines = [list(map(_markdown, names)), rule]
    lines += [[_markdown(name), *map(_markdown, cells)] for name, cells in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown_of(summary: Summary) -> str:
    """Set a summary as Markdown; see `Summary.to_markdown`."""
    percent = f"{100 * summary.conf_level:g}%"
    names = ["term", *list(_columns(summary).values())[:4], f"{percent} low", f"{percent} high"]
    facts = [(name, [value]) for name, value in summary.facts]
    parts = [_bold(summary.title), _markdown_table(["quantity", "value"], "lr", facts)]
    for title, rows in _equations(summary):
        parts += [_bold(title), _markdown_table(names, "lrrrrrr", rows)]
    if summary.comparison is not None:
        head = ["term", *_COMPARISON.values()]
        parts += [
            _bold(_COMPARISON_TITLE),
            _markdown_table(head, "lrrr", _compared(summary.comparison)),
        ]
    parts += _markdown_notes(summary.notes)
    for section in summary.sections:
        parts += [_bold(section.title)] if section.title else []
        if section.facts:
            facts = [(name, [value]) for name, value in section.facts]
            parts.append(_markdown_table(["quantity", "value"], "ll", facts))
        parts += [] if section.table is None else [_markdown_table(*_plain_table(section.table))]
        parts += _markdown_notes(section.notes)
    return "\n\n".join(parts) + "\n"


def _markdown_notes(notes: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {_markdown(note)}" for note in notes)] if notes else []
