"""The words of a page that not every reader knows, explained where they first stand.

A term is a link to the list of the words in the details, which a page without its script follows.
The script shows the explanation on hover, focus and touch instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from heckmanfa.results.render_html import escape


@dataclass(frozen=True)
class Term:
    """A word, where it stands in a text, and what it means."""

    name: str
    pattern: str
    means: str

    def search(self, text: str) -> re.Match[str] | None:
        """Find the word in a text."""
        return re.search(rf"\b(?:{self.pattern})\b", text, re.IGNORECASE)

    @property
    def key(self) -> str:
        """The id of its explanation."""
        return f"term-{self.name.replace(' ', '-')}"


TERMS = (
    Term(
        "selection",
        r"selection",
        "Some rows lack the outcome, and which rows is seldom an accident. If they also differ in "
        "ways that the features do not show, effects found in the other rows alone are off.",
    ),
    Term(
        "exclusion",
        r"exclusions?|excluded",
        "A feature that moves who has an outcome but, by assumption, not the outcome itself. It "
        "lets the data tell selection from the effects of the features.",
    ),
    Term(
        "correction",
        r"correction",
        "What the model adds to allow for selection: how rows with an outcome differ from those "
        "without, beyond their features.",
    ),
    Term(
        "chance",
        r"chances?",
        "How sure it is, given these data, if all models were equally likely beforehand. From 90% "
        "it counts as sure; below 10% there is no sign of it.",
    ),
    Term(
        "interval",
        r"(?:95% )?(?:uncertainty )?intervals?",
        "Where the true value plausibly lies. Made in this way, about 95 of 100 such intervals "
        "hold it, if the model is right.",
    ),
    Term(
        "least squares",
        r"least squares",
        "The usual estimate, from the rows with an outcome alone. It ignores selection.",
    ),
    Term(
        "assignment",
        r"assignments?",
        "One model: a set of features that predict, with or without the correction.",
    ),
    Term(
        "weight",
        # Weights of rows are other weights.
        r"(?<=of the )weight|(?<=of )weight|(?<=BIC )weights?|(?<=by )weight",
        "How far the data speak for one model rather than another. The weights of all models add "
        "up to 100%.",
    ),
    Term(
        "BIC",
        r"BIC",
        "The Bayesian information criterion: how well a model fits, less a price for each feature. "
        "It decides the weight of a model.",
    ),
    Term(
        "rho",
        r"rho",
        "How strong selection is: the correlation of what drives selection with what drives the "
        "outcome, both beyond the features. It lies between −1 and 1; 0 is no selection bias.",
    ),
    Term(
        "lambda",
        r"lambda",
        "The inverse Mills ratio, which is larger the less likely a row was to have an outcome. "
        "Its coefficient is the size of the correction; 0 is no selection bias.",
    ),
)

_OF_TREATMENT = (
    Term(
        "as if drawn by lot",
        r"as if (?:it were )?drawn by lot",
        "As if a lottery, and not the people themselves, decided who is treated. Who is treated "
        "and who is not would then differ by chance alone.",
    ),
    Term(
        "selection",
        r"selection",
        "Who is treated is seldom an accident. If the treated also differ in ways that the "
        "features do not show, comparing both groups mixes the effect with that difference.",
    ),
    Term(
        "least squares",
        r"least squares",
        "The usual estimate: it compares treated and untreated with the same features, and takes "
        "it that nothing else tells them apart.",
    ),
    Term(
        "rho",
        r"rho[01]?",
        "The correlation of what drives treatment with what drives the outcome, both beyond the "
        "features. It lies between −1 and 1; 0 is treatment as if drawn by lot.",
    ),
)
TREATMENT_TERMS = (*_OF_TREATMENT, *(term for term in TERMS if term.name == "interval"))
"""the terms of a page about a treatment"""

# What is a link, a title, a name, a drawing or a cell already is left as it is.
_LEFT = frozenset(
    ("a", "b", "button", "code", "h1", "h2", "h3", "h4", "pre", "summary", "svg", "table")
)
# Nothing is given back, so that text without an end takes time in proportion to its length.
_TOKEN = re.compile(r"<(/?)([a-z0-9]++)[^<>]*+>|[^<]++")


@dataclass
class Glossary:
    """Marks terms where they first stand in a section, and lists those that it marked."""

    terms: tuple[Term, ...] = TERMS
    used: set[str] = field(default_factory=set)

    def mark(self, parts: Iterable[str]) -> list[str]:
        """Mark the first of each term in the HTML of a section, which comes in parts."""
        left = list(self.terms)
        return [self._marked(html, left) for html in parts]

    def _marked(self, html: str, left: list[Term]) -> str:
        """Mark terms in HTML, and take them off those that are left to mark."""
        pieces, depth = [], 0
        for token in _TOKEN.finditer(html):
            text, tag = token.group(), token.group(2)
            if tag in _LEFT and not text.endswith("/>"):
                depth += -1 if token.group(1) else 1
            elif tag is None and not depth:
                text = self._in_text(text, left)
            pieces.append(text)
        return "".join(pieces)

    def _in_text(self, text: str, left: list[Term]) -> str:
        """Mark terms in text between tags, the first in the text first."""
        first, found = None, None
        for term in left:
            match = term.search(text)
            if match and (found is None or match.start() < found.start()):
                first, found = term, match
        if first is None or found is None:
            return text
        left.remove(first)
        self.used.add(first.name)
        key = first.key
        link = f'<a class="term" href="#{key}" aria-describedby="{key}">{found.group()}</a>'
        return text[: found.start()] + link + self._in_text(text[found.end() :], left)

    def listed(self) -> str:
        """Render what the marked terms mean."""
        items = "".join(
            f'<div><dt>{escape(term.name)}</dt><dd id="{term.key}">{escape(term.means)}</dd></div>'
            for term in self.terms
            if term.name in self.used
        )
        return f'<h3 id="glossary">Words</h3><dl class="glossary">{items}</dl>' if items else ""
