"""The sections of the report between the answer and the details: pictures, checks, claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heckmanfa.inference.pictures import Pictures
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Scene
from heckmanfa.plots.selection_rows import SelectionMargins
from heckmanfa.report.reported import Reported
from heckmanfa.results.answer_html import figure, first_screen, sign
from heckmanfa.results.checks import Check, badge, count_words, fine_lines, fine_title
from heckmanfa.results.render_html import escape, marked, render_page
from heckmanfa.results.section_words import (
    roles_rule,
    selection_words,
    which_words,
    who_words,
)
from heckmanfa.text.passage import Passage
from heckmanfa.text.wording import plural


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str
    """its id"""
    title: str
    html: str
    """what is below its title, and on one sheet of paper with it"""
    rest: str = ""
    """what may be on another sheet"""
    nav: str = ""
    """its title in the line of links, where that is another"""


@dataclass(frozen=True)
class Paper:
    """The pictures of a page, and how much room it has."""

    pictures: Pictures
    rows: int
    """of a table"""
    without: frozenset[str] = frozenset()
    """kinds of pictures that are left out"""

    def shown(self, *names: str) -> list[Scene]:
        """Return the pictures that exist and have room."""
        return [scene for name in names for scene in self.scene_of(self.pictures.known(name))]

    def scene_of(self, picture: Picture | None) -> list[Scene]:
        """Return a picture if it exists and has room."""
        return [] if picture is None or picture.kind in self.without else [picture.scene()]


def answer_section(reported: Reported, paper: Paper) -> Section:
    """Show the four tiles beside the picture of effects, with its table below."""
    answer, checks = reported.answer, reported.checks
    drawn = paper.shown("forest")
    inner = first_screen(answer, _gravest(checks), "".join(map(figure, drawn)), "#which")
    return Section(
        "answer",
        "The answer",
        inner,
        _tables(drawn, paper),
        nav="Answer",
    )


def _gravest(checks: Sequence[Check]) -> str:
    grave = [check for check in checks if check.level in ("problem", "caution")][:2]
    # A badge without a warning says what it does not rest on.
    grave = grave or [check for check in checks if check.key == "not_run"]
    items = "".join(
        f'<li><a href="#check-{check.key}">{escape(check.title)}</a></li>' for check in grave
    )
    listed = f"<ol>{items}</ol>" if items else ""
    every = f"All {plural(len(checks), 'check')}" if len(checks) > 1 else "The check"
    return (
        f'{listed}<p class="words"><a href="#trust">{every}</a> · '
        '<a href="#claims">what may not be claimed</a></p>'
    )


def _tables(pictures: Sequence[Scene], paper: Paper) -> str:
    """Fold the tables of pictures, which hold their numbers."""
    tables = [table for picture in pictures for table in picture.text.tables]
    if not tables:
        return ""
    return (
        "<details><summary>The same as a table</summary>"
        f"{render_page(tables, paper.rows)}</details>"
    )


def _opening(*paragraphs: Passage) -> str:
    """Render the words before the pictures of a section."""
    return "".join(f"<p>{marked(words)}</p>" for words in paragraphs if words)


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>' if words else ""


def _pair(left: Sequence[Scene], right: Sequence[Scene]) -> str:
    """Set pictures side by side."""
    if not left and not right:
        return ""
    columns = [
        f'<div class="stack">{"".join(map(figure, column))}</div>'
        for column in (left, right)
        if column
    ]
    return f'<div class="pair">{"".join(columns)}</div>'


def which_section(reported: Reported, paper: Paper) -> Section:
    """Show which features predict, and by which assignments that is known."""
    words = _opening(which_words(reported.evidence))
    words += f'<p class="note">{marked(roles_rule(reported.evidence))}</p>'
    left = paper.shown("chances")
    right = paper.shown("assignments")
    tables = _tables([*left, *right], paper)
    return Section("which", "Which features predict", words + _pair(left, right), tables)


def who_section(reported: Reported, paper: Paper) -> Section:
    """Show what drives selection, and how those with an outcome differ from the others."""
    left = paper.shown("selection_chances", "margins")
    right = paper.shown("profiles")
    rest = _tables([*left, *right], paper)
    margins = paper.pictures.known("margins")
    if margins is None:
        rest += _note(reported.without_rows)
    assert margins is None or isinstance(margins, SelectionMargins)
    words = _opening(who_words(reported.evidence, margins))
    return Section("who", "Who is selected", words + _pair(left, right), rest)


def matter_section(reported: Reported, paper: Paper) -> Section:
    """Show whether selection mattered, and what the answer to that hangs on."""
    tile = reported.answer.selection
    first, *others = selection_words(reported.evidence) or (Passage(),)
    words = (
        f'<p class="verdict-line"><strong>{sign(tile.kind)}{escape(tile.title)}.</strong> '
        f"{marked(first)}</p>{_opening(*others)}"
    )
    left = paper.shown("rho", "imr")
    right = paper.shown("over_rho")
    tables = _tables([*left, *right], paper)
    return Section("matter", tile.question, words + _pair(left, right), tables)


def trust_section(reported: Reported, paper: Paper) -> Section:
    """List the checks, the gravest first, and show the rows behind them."""
    checks = reported.checks
    kind, words = badge(checks)
    head = (
        f'<p class="verdict-line"><strong class="{kind}">{sign(kind)}{escape(words)}.</strong> '
        f"{escape(count_words(checks))}</p>"
    )
    items = "".join(_check(check) for check in checks if check.level != "ok")
    fine = "".join(f"<li>{escape(line)}</li>" for line in fine_lines(checks))
    if fine:
        said = f"<details><summary>{escape(fine_title(checks))}</summary><ul>{fine}</ul></details>"
        items += f"<li>{_level('ok')}{said}</li>"
    left, right = paper.shown("overlap"), paper.shown("residuals")
    right = right or paper.scene_of(reported.held_out)
    rest = f'<ul class="checks">{items}</ul>{_pair(left, right)}{_note(reported.held_out_note)}'
    rest += _tables([*left, *right], paper) + _note(reported.without_rows)
    return Section("trust", "How far to trust it", head, rest)


def _check(check: Check) -> str:
    do = f'<p class="do"><strong>Do:</strong> {marked(check.do)}</p>' if check.do else ""
    title, value = check.title, ""
    if check.value:
        title, value = f"{title.removesuffix('.')}:", f" {check.value.removesuffix('.')}."
    return (
        f'<li id="check-{check.key}">{_level(check.level)}<div><p>'
        f"<strong>{escape(title)}</strong>{escape(value)} {marked(check.words)}</p>{do}</div></li>"
    )


def _level(level: str) -> str:
    return f'<p class="level {level}">{sign(level)}{level}</p>'


def claims_section(reported: Reported) -> Section:
    """Say what may not be claimed, and what may be written."""
    items = "".join(
        f"<li><strong>{marked(claim.lead)}</strong> {marked(claim.why)}</li>"
        for claim in reported.claims
    )
    inner = f'<ul class="claims">{items}</ul>'
    if reported.answer.may_write:
        inner += (
            '<div class="write"><h3>What you may write</h3>'
            f'<p id="sentence">{marked(reported.answer.may_write)}</p>'
            '<button type="button" id="copy" hidden>Copy the sentence</button></div>'
        )
    return Section("claims", "What may not be claimed", "", inner)
