"""The answer as HTML: tiles and a figure, which the report shares, and the card in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from heckmanfa.plots.palette import picture_style
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Panels, Scene
from heckmanfa.plots.svg import render_svg
from heckmanfa.plots.svg_shapes import FULL, NARROW, WIDE, legend_mark
from heckmanfa.results.answer import Answer, Chip, Tile
from heckmanfa.results.funnel import Funnel
from heckmanfa.results.render_html import cut_name, escape, marked, render_notebook, unmarked
from heckmanfa.results.reports import Printed
from heckmanfa.text.passage import Name, passage
from heckmanfa.text.wording import count

_BANG = "M10 5.6v5M10 14.2v.1"
_SHAPES = {
    "ok": '<circle cx="10" cy="10" r="8.5"/><path d="M6 10.3l2.8 2.8L14 7.4"/>',
    "caution": f'<rect x="1.5" y="1.5" width="17" height="17" rx="3"/><path d="{_BANG}"/>',
    "problem": f'<path d="M10 .8L19.2 10 10 19.2.8 10z{_BANG}"/>',
    "unknown": '<circle cx="10" cy="10" r="8.5"/>'
    '<path d="M7.4 7.9a2.6 2.6 0 1 1 3.7 2.4c-.8.4-1.1.8-1.1 1.7M10 14.6v.1"/>',
    "note": '<circle cx="10" cy="10" r="8.5"/><path d="M10 9.4v5M10 5.9v.1"/>',
}


@cache
def answer_style() -> str:
    """Return the style sheet of tiles and figures, and that of pictures before it."""
    rules = files("heckmanfa.results").joinpath("answer.css").read_text(encoding="utf-8")
    return picture_style() + rules


def sign(kind: str) -> str:
    """Draw the shape of a verdict: circle, square, diamond or circled question mark."""
    drawn = _SHAPES.get(kind)
    return (
        f'<svg class="sign" viewBox="0 0 20 20" aria-hidden="true">{drawn}</svg>' if drawn else ""
    )


def first_screen(
    answer: Answer, gravest: str, drawn: str, more: str = "", written: str = ""
) -> str:
    """Render the tiles of an answer, with a figure.

    ``gravest`` is the HTML inside the last tile, below its verdict; ``more`` is where the features
    are that have no chip; ``written`` is a tile of its own. A wide page has the last tile above the
    figure, where it is in view however long the others are.
    """
    *others, (_, last) = answer.tiles.items()
    drawn_tiles = "".join(
        _tile(tile, _chips(answer, more), quiet=True) if name == "which" else _tile(tile)
        for name, tile in others
    )
    return (
        f'<div class="first"><div class="tiles">{drawn_tiles}{written}</div><div class="tiles">'
        f"{_tile(last, gravest, words=False)}{drawn}</div></div>"
    )


def funnel_html(funnel: Funnel) -> str:
    """Render the rows from the table to the answer: a list of steps, and a bar of their shares."""
    lost = "none left out"
    if funnel.lost:
        lost = f"<b>{count(funnel.lost)}</b> left out: {escape(funnel.reasons)}"
    (_, first), (n_others, others) = funnel.shares
    seen = first if funnel.parts[0] else f"with {marked(passage(Name(funnel.outcome)))}"
    steps = (
        f"<li><b>{count(funnel.read)}</b> rows read</li>"
        f'<li class="lost">{lost}</li>'
        f'<li class="used"><b>{count(funnel.used)}</b> used</li>'
        f'<li class="seen"><b>{count(funnel.observed)}</b> {seen}, {count(n_others)} {others}</li>'
    )
    shares = {"lost": 1.0, "used": funnel.used / funnel.read, "seen": funnel.observed / funnel.read}
    bars = "".join(
        f'<rect class="{kind}" width="{100.0 * share:.2f}" height="4"/>'
        for kind, share in shares.items()
    )
    return (
        '<div class="funnel"><ol aria-label="Rows, from the table to the answer">'
        f'{steps}</ol><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        f"{bars}</svg></div>"
    )


def _tile(tile: Tile, inner: str = "", *, quiet: bool = False, words: bool = True) -> str:
    tinted = tile.kind if tile.kind in ("ok", "caution", "problem") and not words else ""
    title = marked(tile.heading or tile.title)
    title = f'<p class="verdict">{sign(tile.kind)}{title}</p>' if title else ""
    said = ""
    if words and tile.words:
        said = f'<p class="{"quiet" if quiet else "words"}">{marked(tile.words)}</p>'
    return (
        f'<div class="tile {tinted}"><h3>{escape(tile.question)}</h3>{title}{inner}{said}</div>'
    ).replace('class="tile "', 'class="tile"')


def _chips(answer: Answer, more: str) -> str:
    kinds = [
        (answer.sure_label, answer.sure, "chip sure", answer.more_sure),
        (answer.unsure_label, answer.unsure, "chip", answer.more_unsure),
    ]
    return "".join(
        (f'<p class="quiet">{escape(label)}</p>' if label else "")
        + f'<ul class="chips">{_chip_items(chips, kind)}{_more_chip(n_more, more)}</ul>'
        for label, chips, kind, n_more in kinds
        if chips
    )


def _more_chip(n_more: int, where: str) -> str:
    """Count the features of one kind that have no chip."""
    if not n_more:
        return ""
    words = f"+{n_more} more"
    linked = f'<a href="{where}">{words}</a>' if where else words
    return f'<li class="chip">{linked}</li>'


def _chip_items(chips: Sequence[Chip], kind: str) -> str:
    items = ""
    for chip in chips:
        name, said = Name(chip.name), f" {escape(chip.chance)}" if chip.chance else ""
        items += (
            f'<li class="{kind}" data-f="{escape(name.key)}"><b>{cut_name(name)}</b>{said}</li>'
        )
    return items


def drawings_of(scene: Scene) -> dict[str, int]:
    """Return the widths of a picture's drawings, in px, by their class.

    Many rows in two columns have no third drawing, which would make a page too large.
    """
    if not scene.body.is_across:
        return {"wide": WIDE, "narrow": NARROW}
    between = {"wide": WIDE} if isinstance(scene.body, Panels) else {}
    return {"full": FULL, **between, "narrow": NARROW}


def figure(scene: Scene) -> str:
    """Render a picture with its words, drawn several times; the style sheet shows one of them."""
    text = scene.text
    legend = "".join(
        f"<li>{legend_mark(item)}<span>{escape(item.label)}</span></li>" for item in text.legend
    )
    # A script saves the picture with the numbers of these.
    tables = " ".join(table.name for table in text.tables)
    return (
        f'<figure class="{scene.kind}" data-tables="{tables}"><h3>{escape(text.title)}</h3>'
        + (f'<p class="look">{escape(text.look)}</p>' if text.look else "")
        + (f'<ul class="legend">{legend}</ul>' if legend else "")
        + "".join(
            f'<div class="{name}">{render_svg(scene, width)}</div>'
            for name, width in drawings_of(scene).items()
        )
        + f"<figcaption>{marked(text.caption)}</figcaption></figure>"
    )


# A card has the width of a notebook's cell, which no media query knows.
_LAYOUT = """
.hfa.card { display: block; padding: 12px 16px; border: 1px solid var(--line);
  border-radius: 10px; container-type: inline-size; max-width: 1160px; }
.hfa.card :is(h3, p, li, figcaption) { font-family: inherit; font-style: normal;
  text-transform: none; letter-spacing: normal; text-align: left; }
.hfa.card :is(p b, figcaption b, figure h3, .legend li) { color: inherit; }
.hfa.card figure h3 { font-weight: 700; }
.hfa.card li { margin: 0; }
.hfa.card svg { border: 0; }
.hfa.card .headline { font-size: 1.5rem; line-height: 1.25; font-weight: 700; margin: 0 0 4px; }
.hfa.card .lede { font-size: 1.0625rem; line-height: 1.4; margin: 0 0 12px; }
.hfa.card .first { display: grid; gap: 16px 32px; }
.hfa.card .wide { display: block; }
.hfa.card .narrow { display: none; }
@container (min-width: 980px) { .hfa.card .first { grid-template-columns: minmax(0, 1fr) 540px; } }
@container (max-width: 539px) { .hfa.card .wide { display: none; }
  .hfa.card .narrow { display: block; } }
"""


def card_html(answer: Answer, picture: Picture | None, names: Sequence[str]) -> str:
    """Return the answer and its first picture as HTML that needs nothing else, and no script.

    Parameters
    ----------
    answer : Answer
    picture : Picture or None
        The picture of effects.
    names : sequence of str
        Those of the outcome, which are not marked as features are.
    """
    words = f'<p class="words">{marked(answer.trust.words)}</p>' if answer.trust.words else ""
    drawn = "" if picture is None else figure(picture.scene())
    html = (
        f"<style>{answer_style()}{_LAYOUT}</style>"
        f'<div class="hfa card"><p class="headline">{marked(answer.headline)}</p>'
        f'<p class="lede">{marked(answer.lede)}</p>'
        f"{first_screen(answer, words, drawn)}</div>"
    )
    return unmarked(html, *names)


def card_or_summary(card: Callable[[], str], summary: Callable[[], Printed]) -> str:
    """Return a card or, if that fails, why, and the summary.

    A notebook shows a model in the cell that fitted it, and the fit must not seem to have failed.
    """
    try:
        return card()
    except Exception as error:
        said = f"The answer cannot be shown: {error}"
        return f"<p>{escape(said)}</p>{render_notebook(summary().parts(), 'summary')}"
