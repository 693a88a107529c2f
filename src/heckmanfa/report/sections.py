"""The sections of the report between the answer and the details: pictures, checks, claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heckmanfa.plots.assumed_rho import OverRho
from heckmanfa.plots.people_intervals import People
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Scene
from heckmanfa.plots.selection_rows import SelectionMargins
from heckmanfa.report.reported import Drawn, Reported, ReportedAnswer
from heckmanfa.report.rho_slider import slider_html
from heckmanfa.results.answer_html import figure, first_screen, funnel_html, sign
from heckmanfa.results.checks import (
    Check,
    badge,
    count_words,
    fine_lines,
    fine_title,
    named_first,
)
from heckmanfa.results.claims import Claim
from heckmanfa.results.may_write import Sentence
from heckmanfa.results.render_html import escape, fold, marked, render_page
from heckmanfa.results.section_words import (
    roles_rule,
    selection_words,
    which_words,
    who_words,
)
from heckmanfa.text.passage import Passage, join
from heckmanfa.text.wording import capitalised, plural

# About how high the words around a picture are, in px.
_WORDS = 120.0


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
    """its title in the line of links, where no title is seen"""
    short: str = ""
    """its title in the line of links, where the other is long"""

    @property
    def linked(self) -> str:
        """What it is called in the line of links."""
        return self.nav or self.short or self.title


@dataclass(frozen=True)
class Paper:
    """The pictures of a page, and how much room it has."""

    pictures: Drawn
    rows: int
    """of a table"""
    without: frozenset[str] = frozenset()
    """kinds of pictures that are left out, and "slider" """

    def shown(self, *names: str) -> list[Scene]:
        """Return the pictures that exist and have room."""
        return [scene for name in names for scene in self.scene_of(self.pictures.known(name))]

    def scene_of(self, picture: Picture | None) -> list[Scene]:
        """Return a picture if it exists, has room, and shows more than one number."""
        left_out = picture is None or picture.kind in self.without or picture.one_number
        return [] if picture is None or left_out else [picture.scene()]


def answer_section(reported: ReportedAnswer, paper: Paper, picture: str = "forest") -> Section:
    """Show the tiles beside the picture of effects, with its table below."""
    answer, checks = reported.answer, reported.checks
    drawn = paper.shown(picture)
    inner = funnel_html(reported.funnel) + first_screen(
        answer, _gravest(checks), "".join(map(figure, drawn)), "#which"
    )
    return Section(
        "answer",
        "The answer",
        inner,
        tables_html(drawn, paper),
        nav="Answer",
    )


def brief_section(reported: ReportedAnswer, paper: Paper, picture: str = "forest") -> Section:
    """Show the answer, its picture, the rows, how far to trust it, and what may be written."""
    drawn = "".join(map(figure, paper.shown(picture)))
    sentences = "".join(f"<p>{marked(item.news)}</p>" for item in reported.answer.may_write[:2])
    written = f"<h3>What you may write</h3>{sentences}" if sentences else ""
    screen = first_screen(
        reported.answer,
        _trusted(reported.checks),
        drawn,
        written=f'<div class="tile written">{written}</div>' if written else "",
    )
    return Section("answer", "The answer", funnel_html(reported.funnel) + screen, nav="Answer")


def _trusted(checks: Sequence[Check]) -> str:
    """Name the gravest checks, each with what to do; a brief has no section to link to."""
    grave = named_first(checks) or [check for check in checks if check.key == "not_run"]
    items = "".join(f"<li>{escape(check.title)} {_do(check)}</li>" for check in grave)
    return f"<ol>{items}</ol>" if items else ""


def _gravest(checks: Sequence[Check]) -> str:
    # A badge without a warning says what it does not rest on.
    grave = named_first(checks) or [check for check in checks if check.key == "not_run"]
    items = "".join(
        f'<li><a href="#check-{check.key}">{escape(check.title)}</a></li>' for check in grave
    )
    listed = f"<ol>{items}</ol>" if items else ""
    every = f"All {plural(len(checks), 'check')}" if len(checks) > 1 else "The check"
    named = {check.key for check in grave}
    more = sum(check.level == "caution" and check.key not in named for check in checks)
    if more:
        every += f" ({plural(more, 'more caution')})"
    return (
        f'{listed}<p class="words"><a href="#trust">{every}</a> · '
        '<a href="#claims">what may not be claimed</a></p>'
    )


def tables_html(pictures: Sequence[Scene], paper: Paper) -> str:
    """Fold the tables of pictures, which hold their numbers."""
    tables = [table for picture in pictures for table in picture.text.tables]
    if not tables:
        return ""
    return fold("The same as a table", render_page(tables, paper.rows), on_paper=False)


def opening_html(*paragraphs: Passage) -> str:
    """Render the words before the pictures of a section."""
    return "".join(f"<p>{marked(words)}</p>" for words in paragraphs if words)


def note_html(words: str) -> str:
    """Render a note; nothing without words."""
    return f'<p class="note">{escape(words)}</p>' if words else ""


def laid_out(scenes: Sequence[Scene], opening: str = "") -> str:
    """Set pictures in two columns that are about equally high, and wide ones below them.

    Each goes below the picture that ends first, so none stands beside a hole. The first column
    begins with the opening, if there is one.
    """
    columns: tuple[list[Scene], list[Scene]] = [], []
    wide = []
    for scene in scenes:
        if scene.body.is_across:
            wide.append(scene)
        else:
            min(columns, key=_height).append(scene)
    inner = ["".join(map(figure, column)) for column in columns if column]
    if opening:
        inner[0] = f"<div>{opening}</div>{inner[0]}"
    stacks = [f'<div class="stack">{column}</div>' for column in inner]
    pair = f'<div class="pair">{"".join(stacks)}</div>' if stacks else ""
    return pair + "".join(f'<div class="across">{figure(scene)}</div>' for scene in wide)


def _with_note(scene: Scene, note: str) -> Scene:
    """Return a picture with one more sentence in its caption."""
    caption = " ".join(filter(None, (scene.text.caption, note)))
    return replace(scene, text=replace(scene.text, caption=caption))


def _height(scenes: Sequence[Scene]) -> float:
    """Return about how high pictures are under one another, in px."""
    return sum(scene.body.tall + _WORDS for scene in scenes)


def which_section(reported: Reported, paper: Paper) -> Section:
    """Show which features predict, and by which assignments that is known."""
    evidence = reported.evidence
    numbers = reported.answer.which.numbers if evidence.has_chances else Passage()
    words = opening_html(join([which_words(evidence), numbers]))
    rule = f'<p class="note">{marked(roles_rule(evidence))}</p>'
    chances, columns = paper.shown("chances"), paper.shown("assignments")
    sets = ""
    if columns:
        title = "The best sets of features, one by one"
        sets = fold(title, "".join(map(figure, columns)), on_paper=False)
    classes = paper.shown("class_effects")
    drawn = "".join(map(figure, [*chances, *classes]))
    inner = "".join(f"<div>{part}</div>" for part in (words, rule, drawn, sets))
    # Beside a picture of few features there is room for the words; many need the whole width.
    across = any(scene.body.is_across for scene in chances)
    inner = f'<div class="pair {"told-over" if across else "told"}">{inner}</div>'
    tables = tables_html([*chances, *columns, *classes], paper)
    return Section(
        "which", "Which features predict", inner if drawn else words + rule + sets, tables
    )


def people_section(reported: Reported, paper: Paper) -> list[Section]:
    """Show what is expected of typical rows; nothing if the model has no single outcome."""
    if not reported.fit.family.can("single outcome equation"):
        return []
    return rows_of_people(reported, paper)


def rows_of_people(reported: ReportedAnswer, paper: Paper) -> list[Section]:
    """Show what is expected of typical rows, or why none is shown."""
    people, title = paper.pictures.known("people"), "What it means for people"
    if not isinstance(people, People):
        note = note_html(reported.without_rows)
        return [Section("people", title, note, short="For people")] if note else []
    drawn = paper.scene_of(people)
    items = "".join(
        f"<li><strong>{escape(capitalised(person.name))}:</strong> {escape(person.described)}"
        f"<p>{escape(people.sentence(person))}</p></li>"
        for person in people.people
    )
    pictures = "".join(map(figure, drawn))
    inner = f'<div class="typical">{pictures}<ul>{items}</ul></div>'
    return [Section("people", title, inner, tables_html(drawn, paper), short="For people")]


def who_section(reported: Reported, paper: Paper) -> Section:
    """Show what drives selection, and how those with an outcome differ from the others."""
    drawn = paper.shown("margins", "profiles", "selection_chances")
    rest = tables_html(drawn, paper)
    margins = paper.pictures.known("margins")
    if margins is None:
        rest += note_html(reported.without_rows)
    assert margins is None or isinstance(margins, SelectionMargins)
    words = opening_html(who_words(reported.evidence, margins))
    return Section("who", "Who is selected", words + laid_out(drawn), rest)


def matter_section(reported: Reported, paper: Paper) -> Section:
    """Show whether selection mattered, and what the answer to that hangs on."""
    tile = reported.answer.selection
    first, *others = selection_words(reported.evidence) or (Passage(),)
    words = (
        f'<p class="verdict-line"><strong>{sign(tile.kind)}{escape(tile.title)}.</strong> '
        f"{marked(join([first, reported.answer.how_much.numbers]))}</p>{opening_html(*others)}"
    )
    rho = paper.pictures.known("rho")
    words += note_html("" if rho is None else rho.one_number)
    drawn = paper.shown("rho", "imr", "correction", "over_rho")
    tables = tables_html(drawn, paper)
    assumed = None if "slider" in paper.without else paper.pictures.known("over_rho")
    assert assumed is None or isinstance(assumed, OverRho)
    tables = slider_html(reported.evidence, assumed) + tables
    # One panel and its slider are as high as another picture and the words above that.
    narrow = [scene.kind for scene in drawn if not scene.body.is_across]
    if "over_rho" in narrow[1:]:
        return Section("matter", tile.question, laid_out(drawn, words), tables)
    return Section("matter", tile.question, words + laid_out(drawn), tables)


def trust_section(reported: Reported, paper: Paper) -> Section:
    """List the checks, the gravest first, and show the rows behind them."""
    held, note = paper.scene_of(reported.held_out), reported.held_out_note
    # How rows were held out stands under their picture; why they were not, alone.
    held = [_with_note(scene, note) for scene in held]
    drawn = [*paper.shown("overlap"), *(paper.shown("residuals", "class_shares") or held)]
    return checks_section(reported, paper, drawn, "" if held else note)


def checks_section(
    reported: ReportedAnswer, paper: Paper, drawn: Sequence[Scene], note: str = ""
) -> Section:
    """List the checks, the gravest first, with pictures and a note below."""
    checks = reported.checks
    kind, words = badge(checks)
    head = (
        f'<p class="verdict-line"><strong class="{kind}">{sign(kind)}{escape(words)}.</strong> '
        f"{escape(count_words(checks))}</p>"
    )
    items = "".join(_check(check) for check in checks if check.level != "ok")
    fine = "".join(f"<li>{escape(line)}</li>" for line in fine_lines(checks))
    if fine:
        items += f"<li>{_level('ok')}{fold(fine_title(checks), f'<ul>{fine}</ul>')}</li>"
    rest = f'<ul class="checks">{items}</ul>{laid_out(drawn)}{note_html(note)}'
    rest += tables_html(drawn, paper) + note_html(reported.without_rows)
    return Section("trust", "How far to trust it", head, rest)


def _check(check: Check) -> str:
    title, value = check.title, ""
    if check.value:
        title, value = f"{title.removesuffix('.')}:", f" {check.value.removesuffix('.')}."
    return (
        f'<li id="check-{check.key}">{_level(check.level)}<div><p>'
        f"<strong>{escape(title)}</strong>{escape(value)} {marked(check.words)}</p>{_do(check)}"
        "</div></li>"
    )


def _do(check: Check) -> str:
    return f'<p class="do"><strong>Do:</strong> {marked(check.do)}</p>' if check.do else ""


def _level(level: str) -> str:
    return f'<p class="level {level}">{sign(level)}{level}</p>'


def claims_section(reported: ReportedAnswer) -> Section:
    """Say what may not be claimed, and what may be written."""
    first, rest = reported.claims[:_OPEN_CLAIMS], reported.claims[_OPEN_CLAIMS:]
    inner = _claims(first)
    if rest:
        more = f"{plural(len(rest), 'more thing')} that may not be claimed"
        inner += f"<details><summary>{more}</summary>{_claims(rest)}</details>"
    if reported.answer.may_write:
        inner += _may_write(reported.answer.may_write)
    return Section("claims", "What may not be claimed", "", inner)


# The gravest, which are not folded.
_OPEN_CLAIMS = 3


def _claims(claims: Sequence[Claim]) -> str:
    items = "".join(
        f"<li><strong>{marked(claim.lead)}</strong> {marked(claim.why)}</li>" for claim in claims
    )
    return f'<ul class="claims">{items}</ul>'


def _may_write(sentences: Sequence[Sentence]) -> str:
    """Set what may be written side by side, for a paper and for a newspaper, each to be copied."""
    columns = ""
    for kind, title in (("paper", "For a paper"), ("news", "For a newspaper")):
        inner = ""
        for sentence in sentences:
            words = sentence.paper if kind == "paper" else sentence.news
            name = f"write-{sentence.key}-{kind}"
            inner += (
                f'<h5 id="{name}-title">{escape(sentence.title)}</h5>'
                f'<p id="{name}">{marked(words)}</p><button type="button" data-copy="{name}" '
                f'aria-describedby="{name}-title" hidden>Copy</button>'
            )
        columns += f"<div><h4>{title}</h4>{inner}</div>"
    return f'<div class="write"><h3>What you may write</h3><div class="pair">{columns}</div></div>'
