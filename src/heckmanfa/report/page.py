"""The page: an answer on the first screen, and sections that back it, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Protocol

from heckmanfa.data.files.outputs import check_format, replacing
from heckmanfa.data.files.paths import refuse_clashes
from heckmanfa.errors import InputTypeError
from heckmanfa.report.content import details_html
from heckmanfa.report.glossary import TERMS, TREATMENT_TERMS, Glossary, Term
from heckmanfa.report.reported import Reported, ReportedAnswer
from heckmanfa.report.sections import (
    Paper,
    Section,
    answer_section,
    brief_section,
    claims_section,
    matter_section,
    people_section,
    trust_section,
    which_section,
    who_section,
)
from heckmanfa.report.settings import VERSION
from heckmanfa.report.treatment_page import (
    ReportedTreatment,
    treatment_brief,
    treatment_sections,
)
from heckmanfa.results.answer_html import answer_style, sign
from heckmanfa.results.checks import badge
from heckmanfa.results.render_html import MOST_ROWS, css_string, escape, marked, unmarked
from heckmanfa.text.labels import labelled, said
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import count, plural

LIMIT = 400_000
"""bytes of a page at most"""
_TITLE = 200
"""characters of a title"""
_FOOT = 70
"""characters of the table's name at the foot of a printed sheet"""

# The browser refuses whatever is not in the file, and in the file any script or style but these.
_POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{script}'; form-action 'none'; "
    "base-uri 'none'"
)
# The script, in the order in which its parts run.
_SCRIPTS = (
    *("shared.js", "tips.js", "copy.js", "glossary.js"),
    *("shapes.js", "picture.js", "paint.js", "cells.js", "csv.js", "save.js", "rho.js"),
)
# What gives way if a page is too large: rows of very long tables first, then the slider of rho, the
# folded picture of assignments, more rows, and pictures with many marks.
_ROOM: tuple[tuple[int, frozenset[str]], ...] = (
    (MOST_ROWS, frozenset()),
    (200, frozenset()),
    (200, frozenset({"slider"})),
    (200, frozenset({"slider", "assignments"})),
    (60, frozenset({"slider", "assignments"})),
    (20, frozenset({"slider", "assignments", "over_rho", "profiles", "margins"})),
)


class Reportable(Protocol):
    """What a report is about: an `Analysis`."""

    @property
    def question(self) -> Any:
        """The question, with the file that it is about as ``data``."""

    def reported(self) -> ReportedAnswer:
        """Return what the page shows."""


def write_report(
    analysis: Reportable,
    path: str | Path,
    *,
    title: str | None = None,
    brief: bool = False,
    force: bool = True,
) -> None:
    """Write the report of an analysis as one HTML file of at most 400 kB.

    Parameters
    ----------
    analysis : Analysis
        What `heckmanfa.analysis.analyse` returns. A fitted model has a method ``report``.
    path : str or Path
        The file to write. It must not be the data file.
    title : str, optional
        Title of the window, and above the first sentence; that of the question, or the outcome
        and the data file by default.
    brief : bool
        Whether to write one page in place of all sections: the answer with its picture, the rows,
        how far to trust it, and what may be written. It prints on one sheet.
    force : bool
        Whether an existing file may be replaced.
    """
    # Ask the class: the numbers of an analysis take a while.
    if not hasattr(type(analysis), "reported"):
        raise InputTypeError(
            "write_report takes what heckmanfa.analysis.analyse returns; got a "
            f"{type(analysis).__name__}. A fitted selection model has a method report"
        )
    check_format(path, ".html", "write_report")
    refuse_clashes({"the analysis": analysis.question.data}, {"path": path})
    write_page(analysis.reported, path, title=title, brief=brief, force=force)


def write_page(
    reported: Callable[[], ReportedAnswer],
    path: str | Path,
    *,
    title: str | None,
    brief: bool,
    force: bool,
) -> None:
    """Write a page; refuse a path that cannot be written before anything is computed."""
    with replacing(path, force=force) as target:
        html = _fitting(reported(), title, brief=brief)
        target.write_text(html, encoding="utf-8", newline="\n")


def render(analysis: Reportable, *, title: str | None = None, brief: bool = False) -> str:
    """Return the report as HTML, which depends on the analysis and on versions alone.

    Parameters are as in `write_report`.
    """
    return _fitting(analysis.reported(), title, brief=brief)


def _fitting(reported: ReportedAnswer, title: str | None, *, brief: bool) -> str:
    """Render a page that is not too large."""
    if title:
        reported = replace(reported, title=title, heading=title)
    html = ""
    with labelled(reported.labels):
        for rows, without in _ROOM:
            html = _render(reported, Paper(reported.pictures, rows, without), brief=brief)
            html = unmarked(html, *reported.outcome_names)
            if len(html.encode()) <= LIMIT:
                break
    return html


def _sections(reported: Reported, paper: Paper) -> list[Section]:
    sections = [
        answer_section(reported, paper),
        which_section(reported, paper),
        *people_section(reported, paper),
    ]
    if reported.is_corrected:
        sections += [who_section(reported, paper), matter_section(reported, paper)]
    return [
        *sections,
        trust_section(reported, paper),
        claims_section(reported),
        Section("details", "Details", "", details_html(reported, paper.rows)),
    ]


@dataclass(frozen=True)
class _Layout:
    """How the page of one kind of answer is laid out."""

    sections: Callable[[Any, Paper], list[Section]]
    brief: Callable[[Any, Paper], Section]
    terms: tuple[Term, ...]
    """words that it explains"""


_LAYOUTS: Mapping[type[ReportedAnswer], _Layout] = {
    Reported: _Layout(_sections, brief_section, TERMS),
    ReportedTreatment: _Layout(treatment_sections, treatment_brief, TREATMENT_TERMS),
}


def _explained(
    lede: str, sections: Sequence[Section], terms: tuple[Term, ...]
) -> tuple[str, list[Section]]:
    """Mark the terms of a page where they first stand, and list them at its end."""
    glossary, (first, *others) = Glossary(terms), sections
    # The lede and the tiles are one screen.
    lede, *parts = glossary.mark([lede, first.html, first.rest])
    marked_parts = [parts, *(glossary.mark([section.html, section.rest]) for section in others)]
    explained = [
        replace(section, html=html, rest=rest)
        for section, (html, rest) in zip(sections, marked_parts, strict=True)
    ]
    explained[-1] = replace(explained[-1], rest=explained[-1].rest + glossary.listed())
    return lede, explained


def _nav(sections: Sequence[Section]) -> str:
    items = "".join(
        f'<li><a href="#{section.name}">{escape(section.linked)}</a></li>' for section in sections
    )
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def _render(reported: ReportedAnswer, paper: Paper, *, brief: bool) -> str:
    layout = _LAYOUTS[type(reported)]
    sections = [layout.brief(reported, paper)] if brief else layout.sections(reported, paper)
    folder = files("heckmanfa.report")
    answer = reported.answer
    lede = marked(answer.lede)
    if not brief:
        # A brief has no room for a list of words.
        lede, sections = _explained(lede, sections, layout.terms)
    style = answer_style() + folder.joinpath("page.css").read_text(encoding="utf-8")
    style += _foot(reported)
    script = page_script()
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(_POLICY.format(style=_digest(style), script=_digest(script))),
        version=escape(VERSION),
        title=escape(shown(reported.title, _TITLE)),
        style=style,
        eyebrow=escape(_eyebrow(reported)),
        kind="hfa brief" if brief else "hfa",
        pill=_pill(reported, linked=not brief),
        headline=marked(answer.headline),
        lede=lede,
        nav="" if brief else _nav(sections),
        sections="".join(map(_section, sections)),
        script=script,
    )


def _pill(reported: ReportedAnswer, *, linked: bool) -> str:
    """Repeat the badge; a brief has no section to go to."""
    kind, words = badge(reported.checks)
    inner = f"{sign(kind)}{escape(words)}"
    if not linked:
        return f'<span class="pill {kind}">{inner}</span>'
    return f'<a class="pill {kind}" href="#trust">{inner}</a>'


def _foot(reported: ReportedAnswer) -> str:
    """Return the rule of what stands at the foot of every printed sheet, beside its number."""
    words = f"{shown(reported.called, _FOOT)} \N{MIDDLE DOT} {reported.made_on}"
    return f"@page {{ @bottom-left {{ content: {css_string(words)}; }} }}"


def page_script() -> str:
    """Return the one script of a page, which is written in short files, without their comments."""
    folder = files("heckmanfa.report").joinpath("script")
    texts = (folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    lines = (line.strip() for text in texts for line in text.splitlines())
    code = "\n".join(line for line in lines if not line.startswith("//"))
    return f'"use strict";\n{{\n{code}\n}}'


def _digest(text: str) -> str:
    """Return what a policy calls an element of the page: the digest of all between its tags."""
    digest = hashlib.sha256(f"\n{text}\n".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _section(section: Section) -> str:
    unseen = ' class="unseen"' if section.nav else ""
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<div class="kept"><h2 id="{section.name}-title"{unseen}>{escape(section.title)}</h2>'
        f"{section.html}</div>{section.rest}</section>\n"
    )


def _eyebrow(reported: ReportedAnswer) -> str:
    counts = reported.row_counts
    rows = plural(counts["selected"] + counts["unselected"], "row")
    if reported.fit.probit is not None:
        first = reported.funnel.parts[0] or f"with {said(reported.outcome_column, 40)}"
        rows += f", {count(counts['selected'])} {first}"
    features = plural(reported.n_features, "feature")
    called = shown(reported.heading, _TITLE) or "heckmanfa report"
    return f"{called} · {shown(reported.called, 60)} · {rows} · {features}"
