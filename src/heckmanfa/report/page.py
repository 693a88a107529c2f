"""The page: an answer on the first screen, and sections that back it, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from heckmanfa import __version__
from heckmanfa.data.files.outputs import check_format, replacing
from heckmanfa.data.files.paths import refuse_clashes
from heckmanfa.errors import InputTypeError
from heckmanfa.report.content import details_html
from heckmanfa.report.sections import (
    Paper,
    Section,
    answer_section,
    claims_section,
    matter_section,
    trust_section,
    which_section,
    who_section,
)
from heckmanfa.results.answer_html import answer_style, sign
from heckmanfa.results.checks import badge
from heckmanfa.results.render_html import MOST_ROWS, escape, marked, unmarked
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import count, plural

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

LIMIT = 400_000
"""bytes of a page at most"""

# The browser refuses whatever is not in the file, and in the file any script or style but these.
_POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{script}'; form-action 'none'; "
    "base-uri 'none'"
)
# What gives way if a page is too large: rows of tables first, then pictures with many marks.
_ROOM: tuple[tuple[int, frozenset[str]], ...] = (
    (MOST_ROWS, frozenset()),
    (200, frozenset()),
    (60, frozenset()),
    (60, frozenset({"assignments"})),
    (20, frozenset({"assignments", "over_rho", "profiles", "margins"})),
)


def write_report(analysis: Analysis, path: str | Path, *, title: str | None = None) -> None:
    """Write the report of an analysis as one HTML file of at most 400 kB.

    Parameters
    ----------
    analysis : Analysis
    path : str or Path
        The file to write, which is replaced if it exists. It must not be the data file.
    title : str, optional
        Title of the window; names the outcome and the data file by default.
    """
    # Ask the class: the numbers of an analysis take a while.
    if not hasattr(type(analysis), "claims"):
        raise InputTypeError(
            "write_report takes what heckmanfa.analysis.analyse returns; got a "
            f"{type(analysis).__name__}"
        )
    check_format(path, ".html", "write_report")
    refuse_clashes({"the analysis": analysis.question.data}, {"path": path})
    # Refuse a path that cannot be written before drawing the pictures.
    with replacing(path, force=True) as part:
        part.write_text(render(analysis, title=title), encoding="utf-8", newline="\n")


def render(analysis: Analysis, *, title: str | None = None) -> str:
    """Return the report as HTML, which depends on the analysis and on versions alone.

    Parameters are as in `write_report`.
    """
    html, pictures = "", analysis.pictures()
    for rows, without in _ROOM:
        html = _render(analysis, Paper(pictures, rows, without), title)
        html = unmarked(html, analysis.question.fitted)
        if len(html.encode()) <= LIMIT:
            break
    return html


def _render(analysis: Analysis, paper: Paper, title: str | None) -> str:
    sections = [answer_section(analysis, paper), which_section(analysis, paper)]
    if analysis.is_corrected:
        sections += [who_section(analysis, paper), matter_section(analysis, paper)]
    sections += [
        trust_section(analysis, paper),
        claims_section(analysis),
        Section("details", "Details", "", details_html(analysis, paper.rows)),
    ]
    contents = "".join(
        f'<li><a href="#{section.name}">{escape(section.nav or section.title)}</a></li>'
        for section in sections
    )
    folder = files("heckmanfa.report")
    question, answer = analysis.question, analysis.answer
    kind, words = badge(analysis.checks)
    style = answer_style() + folder.joinpath("page.css").read_text(encoding="utf-8")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(_POLICY.format(style=_digest(style), script=_digest(script))),
        version=escape(__version__),
        title=escape(
            title or f"{shown(question.fitted)}: a selection model of {shown(question.called)}"
        ),
        style=style,
        eyebrow=escape(_eyebrow(analysis)),
        pill=f'<a class="pill {kind}" href="#trust">{sign(kind)}{escape(words)}</a>',
        headline=marked(answer.headline),
        lede=marked(answer.lede),
        contents=contents,
        sections="".join(map(_section, sections)),
        script=script,
    )


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


def _eyebrow(analysis: Analysis) -> str:
    question, counts = analysis.question, analysis.row_counts
    rows = plural(counts["selected"] + counts["unselected"], "row")
    if analysis.is_corrected:
        rows += f", {count(counts['selected'])} with {shown(question.outcome, 40)}"
    features = plural(len(analysis.feature_columns), "feature")
    return f"heckmanfa report · {shown(question.called, 60)} · {rows} · {features}"
