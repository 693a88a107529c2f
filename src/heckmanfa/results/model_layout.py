"""The layout of a table of models: rows matched by equation and term, facts of fits, notes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

from heckmanfa.errors import UnknownFeatureError
from heckmanfa.results.etable import ModelTable
from heckmanfa.results.model_columns import BIC, VALUES, ModelColumn, Term
from heckmanfa.text.option_types import Under
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.table import INDENT, Column, Table
from heckmanfa.text.wording import listed, nearest, number, p_value

STARS = (0.05, 0.01, 0.001)
"""what p-values with one star, two and three are below, unless the user says so"""

_Item = TypeVar("_Item", bound=Hashable)
_NO_COMPARISON = (
    f"AIC and {BIC} of a column without a likelihood are of the outcome's equation alone, and do "
    "not compare with those of maximum likelihood."
)


@dataclass(frozen=True)
class Shape:
    """Which rows a table of models has, and what is in its cells."""

    digits: int = 4
    """significant digits"""
    under: Under | None = "se"
    stars: tuple[float, ...] = ()
    """what p-values with one star, two, ... are below, the largest first"""
    conf_level: float = 0.95
    equations: tuple[str, ...] | None = None
    """which to show, in this order; None is all"""
    keep: tuple[str, ...] | None = None
    """terms to show; None is all"""
    drop: tuple[str, ...] = ()
    """terms and facts to leave out"""
    order: tuple[str, ...] = ()
    """terms and facts that come first"""


# Rows. --------------------------------------------------------------------------------------------


def side_by_side_table(
    columns: Sequence[ModelColumn], names: Sequence[str], shape: Shape
) -> ModelTable:
    """Lay out models side by side; ``names`` stand above their columns."""
    terms = _terms(columns, shape)
    facts = _facts(columns, shape)
    lines: list[Sequence[str] | str] = []
    if any(column.outcome for column in columns):
        lines.append(["Outcome", *(column.outcome for column in columns)])
    for heading, rows in terms.items():
        lines += [_in_full(heading, columns), *_rows_of(rows, columns, shape)]
    if facts:
        lines += ["", *([label, *values] for label, values in facts.items())]
    titles = (Column("", is_number=False), *(Column(name) for name in names))
    shown = [term for rows in terms.values() for term in rows]
    return ModelTable(
        Table(titles, tuple(lines)),
        tuple(_notes(columns, names, shape, facts)),
        _frame(columns, names, shown),
        pd.DataFrame.from_dict(facts, orient="index", columns=list(names)),
    )


def _terms(columns: Sequence[ModelColumn], shape: Shape) -> dict[str, list[Term]]:
    """Return the terms of each part of the table, the dummies of a category together."""
    parts = _merged([dict.fromkeys(term.heading for term in each.estimates) for each in columns])
    every = {term: each.words[term].name for each in columns for term in each.estimates}
    made: dict[str, list[Term]] = {}
    ranks = {term.heading: term.rank for term in every}
    for heading in sorted(parts, key=ranks.__getitem__):
        own = [[term for term in each.estimates if term.heading == heading] for each in columns]
        groups = _merged([dict.fromkeys(map(_group, terms)) for terms in own])
        rows = [
            term
            for group in groups
            for term in _merged(
                [[term for term in terms if _group(term) == group] for terms in own]
            )
        ]
        kept = [term for term in rows if _is_kept(term, every[term], shape)]
        made[heading] = sorted(kept, key=lambda term: _place(_keys(term, every[term]), shape.order))
    made = {heading: rows for heading, rows in made.items() if rows}
    if shape.equations is None:
        return made
    wanted = shape.equations
    chosen = {
        heading: wanted.index(rows[0].equation)
        for heading, rows in made.items()
        if rows[0].equation in wanted
    }
    return {heading: made[heading] for heading in sorted(chosen, key=chosen.__getitem__)}


def _in_full(heading: str, columns: Sequence[ModelColumn]) -> str:
    """Return a heading with what it has in parentheses, if that is the same in all models."""
    whole = {
        words.heading
        for each in columns
        for term, words in each.words.items()
        if term.heading == heading
    }
    return whole.pop() if len(whole) == 1 else heading


def _group(term: Term) -> tuple[str, str]:
    """Return what the dummies of a category share."""
    return term.source, term.reference


def _merged(sequences: Iterable[Iterable[_Item]]) -> list[_Item]:
    """Return what is in any of several sequences, each once, in an order that fits them all.

    What only a later one has stands before what follows it there.
    """
    order: list[_Item] = []
    for sequence in sequences:
        waiting: list[_Item] = []
        for item in sequence:
            if item in order:
                place = order.index(item)
                order[place:place] = waiting
                waiting = []
            else:
                waiting.append(item)
        order += waiting
    return order


def _keys(term: Term, name: str) -> set[str]:
    """Return what users may call a term: its name or column, with or without the equation."""
    plain = {name, term.source}
    return plain | {f"{term.equation}.{key}" for key in plain}


def _is_kept(term: Term, name: str, shape: Shape) -> bool:
    keys = _keys(term, name)
    return (shape.keep is None or not keys.isdisjoint(shape.keep)) and keys.isdisjoint(shape.drop)


def _place(keys: set[str], order: Sequence[str]) -> int:
    return next((place for place, name in enumerate(order) if name in keys), len(order))


def refuse_unknown(
    columns: Sequence[ModelColumn], shape: Shape, labels: Iterable[str] = ()
) -> None:
    """Refuse names of rows and equations, and labels of columns, that no model has."""
    keys: dict[str, None] = {}
    equations: dict[str, None] = {}
    facts = dict.fromkeys(label for each in columns for label in each.facts)
    for each in columns:
        for term, words in each.words.items():
            equations[term.equation] = None
            keys |= dict.fromkeys(sorted(_keys(term, words.name), key=len))
    named = dict.fromkeys(name for each in columns for name in each.columns)
    known: dict[str, tuple[Iterable[str], Mapping[str, None], str]] = {
        "labels": (labels, named | keys, ""),
        "equations": (shape.equations or (), equations, f"; there are {', '.join(equations)}"),
        "keep": (shape.keep or (), keys, ""),
        "drop": (shape.drop, keys | facts, ""),
        "order": (shape.order, keys | facts, ""),
    }
    for parameter, (wanted, there, listing) in known.items():
        for name in wanted:
            if name not in there:
                raise UnknownFeatureError(
                    f"{option(parameter)}: no model has {quoted(name)}"
                    f"{listing or nearest(name, there)}"
                )


# Cells. -------------------------------------------------------------------------------------------


def _rows_of(
    terms: Sequence[Term], columns: Sequence[ModelColumn], shape: Shape
) -> Iterable[list[str]]:
    """Return the rows of a part: an estimate with what is under it, below its category."""
    words = {term: each.words[term] for each in columns for term in each.estimates}
    sizes: dict[tuple[str, str], int] = {}
    for term in terms:
        sizes[_group(term)] = sizes.get(_group(term), 0) + 1
    above: tuple[str, str] | None = None
    for term in terms:
        several = bool(term.level) and sizes[_group(term)] > 1
        if several and _group(term) != above:
            yield [words[term].above, *[""] * len(columns)]
        above = _group(term) if several else None
        values = [each.estimates.get(term) for each in columns]
        name = INDENT + words[term].below if several else words[term].alone
        yield [name, *("" if value is None else _estimate(value, shape) for value in values)]
        under = ["" if value is None else _under(value, shape) for value in values]
        if any(under):
            yield ["", *under]


def _estimate(values: Mapping[str, float], shape: Shape) -> str:
    text = number(values["estimate"], shape.digits)
    return text + "*" * sum(values["p_value"] < most for most in shape.stars) if text else ""


def _under(values: Mapping[str, float], shape: Shape) -> str:
    """Format what stands under an estimate; empty if it is not known."""
    if shape.under == "interval":
        ends = [number(values[end], shape.digits) for end in ("ci_low", "ci_high")]
        return f"[{', '.join(ends)}]" if all(ends) else ""
    text = ""
    if shape.under == "se" and not _is_held(values):
        text = number(values["std_error"], shape.digits)
    elif shape.under == "t" and values["statistic"] == values["statistic"]:
        text = f"{values['statistic']:.2f}"
    elif shape.under == "p":
        text = p_value(values["p_value"])
    return f"({text})" if text else ""


def _is_held(values: Mapping[str, float]) -> bool:
    """Whether a parameter was not estimated: it has no error, and no test."""
    return values["std_error"] == 0.0 and math.isnan(values["statistic"])


def _facts(columns: Sequence[ModelColumn], shape: Shape) -> dict[str, list[str]]:
    """Return the lower part of the table; a row without an entry is left out."""
    labels = _merged([each.facts for each in columns])
    labels.sort(key=lambda label: _place({label}, shape.order))
    rows = {label: [each.facts.get(label, "") for each in columns] for label in labels}
    return {
        label: values for label, values in rows.items() if any(values) and label not in shape.drop
    }


def _frame(
    columns: Sequence[ModelColumn], names: Sequence[str], terms: Sequence[Term]
) -> pd.DataFrame:
    rows = [
        {"model": name, "equation": term.equation, "term": each.words[term].name}
        | each.estimates[term]
        for name, each in zip(names, columns, strict=True)
        for term in terms
        if term in each.estimates
    ]
    return pd.DataFrame(rows, columns=["model", "equation", "term", *VALUES])


# Notes. -------------------------------------------------------------------------------------------


def _notes(
    columns: Sequence[ModelColumn],
    names: Sequence[str],
    shape: Shape,
    facts: Mapping[str, list[str]],
) -> Iterable[str]:
    """Say what is under the estimates, what stars are, and what is to be known of each model."""
    letters = [letter for letter in "zt" if letter in {each.letter for each in columns}]
    under = {
        "se": "Standard errors in parentheses.",
        "interval": f"{100 * shape.conf_level:g}% intervals in brackets.",
        "t": f"{' or '.join(letters)} statistics in parentheses.",
        "p": "p-values in parentheses.",
    }
    if shape.under is not None:
        yield under[shape.under]
    if shape.stars:
        marks = (f"{'*' * n} p < {most:g}" for n, most in enumerate(shape.stars, 1))
        yield f"{', '.join(marks)}."
    tested = bool(shape.stars) or shape.under in ("interval", "t", "p")
    said: dict[str, list[str]] = {}
    for name, each in zip(names, columns, strict=True):
        for note in dict.fromkeys([*each.notes, *(each.tests if tested else ())]):
            said.setdefault(note, []).append(name)
    for note, whose in said.items():
        yield note if len(whose) == len(columns) else f"{listed(whose)}: {note}"
    if BIC in facts and len({each.criteria for each in columns if each.criteria}) > 1:
        yield _NO_COMPARISON
