"""Facts put into words, in one table: the words of every fact, by its key.

A fact is about the estimates (`words_of_estimates`), about identification
(`words_of_selection`), a search or an average (`words_of_search`), a treatment
(`words_of_treatment`), weights (`words_of_weighting`), bounds without a model (`words_of_bounds`),
or rows and columns (`words_of_rows`). Texts hold values of the fact in braces. ``{value}``,
``{names}``, ``{title}``, ``{meaning}`` and ``{outcome}`` are always there, and so are the words of
the model's family, such as ``{correction}``; others are given where the fact is decided.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heckmanfa.fit import Fit
from heckmanfa.results.facts import Fact, FactWords, Level, Text
from heckmanfa.results.words_of_bounds import BOUNDS
from heckmanfa.results.words_of_estimates import ASSUMPTIONS, INVALID, NUMBERS
from heckmanfa.results.words_of_rows import ROWS
from heckmanfa.results.words_of_search import SEARCH
from heckmanfa.results.words_of_selection import EXCLUSIONS, IDENTIFICATION
from heckmanfa.results.words_of_treatment import TREATMENT
from heckmanfa.results.words_of_weighting import WEIGHTING
from heckmanfa.text.labels import said_all
from heckmanfa.text.option_words import option
from heckmanfa.text.wording import listed

FACT_WORDS: dict[str, FactWords] = (
    INVALID
    | ASSUMPTIONS
    | SEARCH
    | IDENTIFICATION
    | EXCLUSIONS
    | BOUNDS
    | TREATMENT
    | WEIGHTING
    | ROWS
    | NUMBERS
)
"""the gravest kind first, in reading order within each: checks of one level keep this order"""

_WITH_ROBUST = f" with {option('cov_type', 'robust')}"


def tell(
    fit: Fit | None,
    key: str,
    level: Level,
    value: str = "",
    *,
    case: str = "",
    name: str = "",
    names: tuple[str, ...] = (),
    short: str = "",
    claims: bool = True,
    **values: Any,
) -> Fact:
    """Put a fact into words.

    Parameters
    ----------
    fit : Fit or None
        Whose family has words that the texts may hold.
    key, level, value, case, names, short
        As in `Fact`.
    name : str
        Its label among the diagnostics, if not the usual one.
    claims : bool
        Whether it rules out a claim, as its words have it.
    **values
        What else the texts hold.
    """
    words, family = FACT_WORDS[key], {} if fit is None else asdict(fit.family.words)
    if fit is not None:
        # The design of a survey is robust, and has no other covariance beside it.
        family["with_robust"] = _WITH_ROBUST if fit.spec.survey is None else ""
    texts = family | {"outcome": "the outcome", "short": short} | values
    texts |= {"value": value, "names": listed(said_all(names))}

    def said(text: Text) -> str:
        return chosen(text, case, level).format(**texts)

    texts["meaning"] = said(words.meaning)
    texts["lower"] = texts["meaning"][:1].lower() + texts["meaning"][1:]
    texts["title"] = said(words.title) if "{title}" in str(words.sentence) else ""
    sentence = said(words.sentence)
    claim = said(words.claim) if claims else ""
    return Fact(
        key,
        level,
        value,
        meaning=texts["meaning"] or sentence,
        name=name or words.line.format(**texts),
        sentence=sentence,
        claim=claim,
        because=said(words.because) if claim else "",
        case=case,
        short=short,
        names=names,
        values={name: str(text) for name, text in (family | values).items()},
    )


def note_of(fact: Fact) -> str:
    """Return what a table for a paper says of a fact."""
    words = FACT_WORDS.get(fact.key, FactWords())
    return chosen(words.note, fact.case, fact.level).format(**fact.values or {}) or fact.sentence


def chosen(text: Text, case: str, level: Level) -> str:
    """Return the words of a case, or else of a level, or else those of all others."""
    if isinstance(text, str):
        return text
    return next((text[key] for key in (case, level, "") if key in text and key), text.get("", ""))
