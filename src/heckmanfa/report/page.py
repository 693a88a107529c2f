"""The page: an answer on the first screen, and sections that back it, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Protocol

from heckmanfa.data.files.outputs import check_format, replacing
from heckmanfa.data.files.paths import refuse_clashes
from heckmanfa.errors import InputTypeError
from heckmanfa.report.content import details_html
from heckmanfa.report.reported import Reported
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
from heckmanfa.report.settings import VERSION
from heckmanfa.results.answer_html import answer_style, sign
from heckmanfa.results.checks import badge
from heckmanfa.results.render_html import MOST_ROWS, escape, marked, unmarked
from heckmanfa.text.labels import labelled, said
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import count, plural

LIMIT = 400_000
"""bytes of a page at most"""
_TITLE = 200
"""characters of a title"""

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


class Reportable(Protocol):
    """What a report is about: an `Analysis`."""

    @property
    def question(self) -> Any:
        """The question, with the file that it is about as ``data``."""

    def reported(self) -> Reported:
        """Return what the page shows."""


def write_report(
    analysis: Reportable, path: str | Path, *, title: str | None = None, force: bool = True
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
    write_page(analysis.reported, path, title=title, force=force)


def write_page(
    reported: Callable[[], Reported], path: str | Path, *, title: str | None, force: bool
) -> None:
    """Write a page; refuse a path that cannot be written before anything is computed."""
    with replacing(path, force=force) as target:
        target.write_text(_fitting(reported(), title), encoding="utf-8", newline="\n")


def render(analysis: Reportable, *, title: str | None = None) -> str:
    """Return the report as HTML, which depends on the analysis and on versions alone.

    Parameters are as in `write_report`.
    """
    return _fitting(analysis.reported(), title)


def _fitting(reported: Reported, title: str | None) -> str:
    """Render a page that is not too large."""
    if title:
        reported = replace(reported, title=title, heading=title)
    html = ""
    with labelled(reported.labels):
        for rows, without in _ROOM:
            html = _render(reported, Paper(reported.pictures, rows, without))
            html = unmarked(html, reported.outcome)
            if len(html.encode()) <= LIMIT:
                break
    return html


def _render(reported: Reported, paper: Paper) -> str:
    sections = [answer_section(reported, paper), which_section(reported, paper)]
    if reported.is_corrected:
        sections += [who_section(reported, paper), matter_section(reported, paper)]
    sections += [
        trust_section(reported, paper),
        claims_section(reported),
        Section("details", "Details", "", details_html(reported, paper.rows)),
    ]
    contents = "".join(
        f'<li><a href="#{section.name}">{escape(section.nav or section.title)}</a></li>'
        for section in sections
    )
    folder = files("heckmanfa.report")
    answer = reported.answer
    kind, words = badge(reported.checks)
    style = answer_style() + folder.joinpath("page.css").read_text(encoding="utf-8")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(_POLICY.format(style=_digest(style), script=_digest(script))),
        version=escape(VERSION),
        title=escape(shown(reported.title, _TITLE)),
        style=style,
        eyebrow=escape(_eyebrow(reported)),
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


def _eyebrow(reported: Reported) -> str:
    counts = reported.row_counts
    rows = plural(counts["selected"] + counts["unselected"], "row")
    if reported.is_corrected:
        rows += f", {count(counts['selected'])} with {said(reported.outcome_column, 40)}"
    features = plural(reported.n_features, "feature")
    called = shown(reported.heading, _TITLE) or "heckmanfa report"
    return f"{called} · {shown(reported.called, 60)} · {rows} · {features}"
