"""The answer of a fitted model as a card for notebooks."""

from __future__ import annotations

from collections.abc import Callable

from heckmanfa.plots.picture import Picture
from heckmanfa.results.answer import Answer
from heckmanfa.results.answer_html import answer_style, figure, tiles
from heckmanfa.results.render_html import escape, marked, render_notebook, unmarked
from heckmanfa.results.reports import Printed

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


def card_html(answer: Answer, picture: Picture | None, outcome: str) -> str:
    """Return the answer and its first picture as HTML that needs nothing else, and no script.

    Parameters
    ----------
    answer : Answer
    picture : Picture or None
        The picture of effects.
    outcome : str
        Name of the outcome.
    """
    words = f'<p class="words">{marked(answer.trust.words)}</p>' if answer.trust.words else ""
    drawn = "" if picture is None else figure(picture.scene())
    html = (
        f"<style>{answer_style()}{_LAYOUT}</style>"
        f'<div class="hfa card"><p class="headline">{marked(answer.headline)}</p>'
        f'<p class="lede">{marked(answer.lede)}</p>'
        f'<div class="first">{tiles(answer, words)}{drawn}</div></div>'
    )
    return unmarked(html, outcome)


def card_or_summary(card: Callable[[], str], summary: Callable[[], Printed]) -> str:
    """Return a card or, if that fails, why, and the summary.

    A notebook shows a model in the cell that fitted it, and the fit must not seem to have failed.
    """
    try:
        return card()
    except Exception as error:
        said = f"The answer cannot be shown: {error}"
        return f"<p>{escape(said)}</p>{render_notebook(summary().parts(), 'summary')}"
