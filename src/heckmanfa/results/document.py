"""How reports are set: facts, tables and notes, as text and as HTML."""

from __future__ import annotations

import html
import textwrap
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from heckmanfa.errors import InputError
from heckmanfa.text.printable import printable, shown

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Finding",
    "Report",
    "Section",
    "Verdict",
    "html_of_section",
    "in_html",
    "read_reports",
    "text_of_section",
    "wrapped_note",
]

WIDTH = 88
_LONGEST_CELL = 56


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    table: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()


Verdict = Literal["ok", "caution", "problem"]


@dataclass(frozen=True)
class Finding:
    """A line of the diagnostics."""

    key: str
    """which diagnostic it is, for programs"""
    name: str
    value: str
    verdict: Verdict
    meaning: str
    """what it means, in a sentence or two"""


class Report:
    """What a method gives back: it prints as text, and shows as HTML in a notebook."""

    @abstractmethod
    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""

    def findings(self) -> list[Finding]:
        """Return what the diagnostics of the model should say of it."""
        return []

    def __str__(self) -> str:
        """Return the text form."""
        return "\n\n".join(text_of_section(one, WIDTH) for one in self.sections())

    def __repr__(self) -> str:
        """Return the text form."""
        return str(self)

    def _repr_html_(self) -> str:
        inner = "".join(html_of_section(one) for one in self.sections())
        return f"<div class='heckmanfa-report'>{inner}</div>"


def read_reports(include: Any) -> list[Report]:
    """Take in one report or several."""
    reports = [include] if isinstance(include, Report) else list(include)
    for one in reports:
        if not isinstance(one, Report):
            raise InputError(
                "include takes what bootstrap(), margins(), uncertainty_interval() and the other "
                f"methods return; got {type(one).__name__}"
            )
    return reports


def wrapped_note(text: str, width: int) -> list[str]:
    """Set a note as lines of text, behind a dash."""
    return textwrap.wrap("- " + printable(text, None), width, subsequent_indent="  ")


def text_of_section(section: Section, width: int) -> str:
    """Set a section as text."""
    lines = [section.title] if section.title else []
    label = max((len(name) for name, _ in section.facts), default=0)
    label = max(label + 3, 28)
    lines += [f"{name + ':':<{label}}{value}" for name, value in section.facts]
    if section.table is not None:
        lines.append(_plain(section.table))
        lines += [""] if section.notes else []
    lines += [line for note in section.notes for line in wrapped_note(note, width)]
    return printable("\n".join(lines), None)


def in_html(text: str) -> str:
    """Make text safe inside of elements and of quoted attributes."""
    return html.escape(printable(text, None), quote=True)


def html_of_section(section: Section) -> str:
    """Set a section as HTML."""
    parts = [f"<p><strong>{in_html(section.title)}</strong></p>"] if section.title else []
    if section.facts:
        rows = "".join(
            f"<tr><th scope='row' style='text-align:left'>{in_html(name)}</th>"
            f"<td>{in_html(value)}</td></tr>"
            for name, value in section.facts
        )
        parts.append(f"<table>{rows}</table>")
    if section.table is not None:
        table = _readable(section.table)
        if "p value" in table:
            table["p value"] = [_p_value(one) for one in table["p value"]]
        parts.append(table.to_html(index=False, float_format=_number, na_rep="", border=0))
    if section.notes:
        parts.append(
            "<ul>" + "".join(f"<li>{in_html(note)}</li>" for note in section.notes) + "</ul>"
        )
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:.5g}"


def _p_value(value: float) -> str:
    if value != value:
        return ""
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Say columns' names in words, and sets of features as text."""
    table = table.rename(columns=lambda name: str(name).replace("_", " "))
    for name in table.columns:
        if table[name].map(lambda one: isinstance(one, tuple)).any():
            table[name] = [", ".join(shown(part) for part in one) for one in table[name]]
        elif table[name].map(lambda one: isinstance(one, str)).any():
            # Terms and notes: what is long is shortened where it is a name, and not a sentence.
            table[name] = [_word(one) for one in table[name]]
    return table


def _word(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return shown(value) if " " not in value else printable(value)


def _plain(table: pd.DataFrame) -> str:
    """Lay out a table as text: text to the left, sets of features last and cut to fit."""
    table = _readable(table)
    if "features" in table:
        features = table.pop("features")
        table["features"] = [
            one if len(one) <= _LONGEST_CELL else one[: _LONGEST_CELL - 3] + "..."
            for one in features
        ]
    headers = []
    for name in table.columns:
        if name == "p value":
            cells = [_p_value(one) for one in table[name]]
            width = max(len(name), *(len(one) for one in cells)) if cells else len(name)
            table[name] = [one.rjust(width) for one in cells]
            headers.append(name.rjust(width))
            continue
        texts = table[name].map(lambda one: isinstance(one, str))
        width = len(str(name))
        if len(table) and texts.all():
            width = max(width, int(table[name].str.len().max()))
            table[name] = table[name].str.ljust(width)
        headers.append(f"{name:<{width}}" if texts.all() else str(name))
    text = str(
        table.set_axis(headers, axis=1).to_string(
            index=False, na_rep="", float_format=_number, justify="right"
        )
    )
    return "\n".join(line.rstrip() for line in text.splitlines())
