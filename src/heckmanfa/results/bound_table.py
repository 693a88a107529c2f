"""Bounds of numbers about outcomes of which some are missing, as a report that prints itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.plots.bound_bars import BoundBar, BoundBars
from heckmanfa.results.document import Notes, Section, table_of_frame
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.render_latex import latex_tables
from heckmanfa.results.render_text import render_markdown
from heckmanfa.results.reports import Report
from heckmanfa.text.labels import said
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import capitalised, number, percent

NOTHING, CHOICE, TRIMMING = "nothing", "any choice", "trimming"
ASSUMPTIONS: Mapping[str, str] = {
    NOTHING: "nothing about who has an outcome; a missing one may be anything in the range",
    CHOICE: "nothing about who is treated; an outcome under the other treatment may be anything in "
    "the range",
    "higher": "rows with an outcome have {what} at least as high as rows without one",
    "lower": "rows with an outcome have {what} at most as high as rows without one",
    "rising": "the mean outcome does not fall where the instrument rises",
    "falling": "the mean outcome does not rise where the instrument rises",
    TRIMMING: "the groups are as if drawn by lot, and whoever is observed in the one that is "
    "observed less often would be in the other, too",
}
"""what is assumed, in a clause, by the name that tables have; ``{what}`` is a mean or a share"""


Pair = tuple[float, float]
Averaged = Literal["a mean", "such a share"]
_MODEL = ("model", "model_low", "model_high")
_UNKNOWN = math.nan, math.nan, math.nan


@dataclass(frozen=True)
class BoundRow:
    """A number with its bounds, beside what the observed outcomes and a model say of it."""

    quantity: str
    """what it is: "mean", "difference", or the term of a projection"""
    assumption: str
    """a key of `ASSUMPTIONS`"""
    bounds: Pair
    errors: Pair
    """their standard errors, NaN where a bound is infinite"""
    interval: Pair
    """of the number itself"""
    counts: tuple[int, int]
    """rows, and those of them with an outcome"""
    group: str = ""
    """whose number it is; empty if it is that of all rows"""
    observed: float = math.nan
    """the same among rows with an outcome alone"""
    model: tuple[float, float, float] = _UNKNOWN
    """the same as a model has it, and the ends of its interval"""
    noun: str = ""
    """what it is in a sentence, "{outcome}" for the outcome; empty for the usual"""
    averaged: Averaged = "a mean"
    """what an assumption about rows with an outcome is about"""

    def said(self, outcome: str) -> str:
        """Return what it is in a sentence: "the mean of wage"."""
        noun = self.noun or f"the {self.quantity} of {{outcome}}"
        return noun.replace("{outcome}", outcome)

    @property
    def assumed(self) -> str:
        """What it rests on, in a clause."""
        return ASSUMPTIONS[self.assumption].format(what=self.averaged)

    def between(self, ends: Pair, digits: int = 3) -> str:
        """Say where it lies, in a clause: "lies between 0.4 and 2.1"; empty if ends cross."""
        low, high = (number(end, digits) for end in ends)
        if ends[0] > ends[1]:
            return ""
        if ends[0] == ends[1]:
            return f"is {low}"
        if math.isinf(ends[0]) and math.isinf(ends[1]):
            return "may be anything"
        if math.isinf(ends[0]):
            return f"is at most {high}"
        return f"is at least {low}" if math.isinf(ends[1]) else f"lies between {low} and {high}"

    def record(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        named = {
            ("low", "high"): self.bounds,
            ("se_low", "se_high"): self.errors,
            ("ci_low", "ci_high"): self.interval,
            ("observed",): (self.observed,),
            _MODEL: self.model,
            ("n_rows", "n_observed"): self.counts,
        }
        first = {"quantity": self.quantity, "group": self.group, "assumption": self.assumption}
        pairs = (zip(names, values, strict=True) for names, values in named.items())
        return first | {name: value for pair in pairs for name, value in pair}

    @property
    def is_beyond(self) -> bool:
        """Whether the model's estimate is outside the interval of the bounds."""
        estimate, (low, high) = self.model[0], self.interval
        return estimate < low or estimate > high


@dataclass(frozen=True, repr=False, eq=False)
class Bounds(Report):
    """Between which values numbers lie; prints, and shows as HTML in a notebook.

    `to_latex` and `to_markdown` render it for a paper and for a web page, and `picture` draws it.
    """

    _kind = "bounds"

    title: str
    rows: tuple[BoundRow, ...]
    conf_level: float
    counts: tuple[int, int]
    """rows, and those with an outcome among them"""
    span: tuple[float, float] | None = None
    """range of the outcome; None if no bound rests on one"""
    span_observed: bool = False
    """whether the range is that of the outcomes that are known"""
    notes: tuple[str, ...] = ()
    model: str = ""
    """what the model is called; empty without one"""
    outcome: str = "the outcome"
    told: int = 0
    """the row that is told among the checks of a model"""
    has_contrast: bool = False
    """whether the last row is a difference that is told with it"""

    @property
    def assumptions(self) -> dict[str, str]:
        """What each of the bounds rests on, in a clause."""
        return {row.assumption: row.assumed for row in self.rows}

    def tidy(self) -> pd.DataFrame:
        """Return one row for each number.

        Returns
        -------
        DataFrame
            quantity; group, where there are groups; assumption; low and high, the bounds, with
            se_low and se_high; ci_low and ci_high, the interval of the number itself (Imbens and
            Manski, 2004); observed, the same among rows with an outcome; model, model_low and
            model_high, what the model says, where there is one; n_rows, and n_observed of them
            with an outcome.
        """
        table = pd.DataFrame([row.record() for row in self.rows])
        drop = [] if any(row.group for row in self.rows) else ["group"]
        return table.drop(columns=[*drop, *(() if self.model else _MODEL)])

    def picture(self) -> BoundBars:
        """Return the picture: the bounds as bars with intervals, and the estimates beside them.

        It has `draw` for Matplotlib and `svg` for a page.
        """
        # Of one number under several assumptions, these tell the bars apart.
        numbers = Counter((row.quantity, row.group) for row in self.rows)
        bars = tuple(
            BoundBar(
                row.quantity,
                *row.bounds,
                *row.interval,
                row.observed,
                row.model[0],
                row.group
                if numbers[row.quantity, row.group] == 1
                else f"assumed: {row.assumption}",
                row.assumed,
            )
            for row in self.rows
        )
        return BoundBars(self.title, self.outcome, bars, self.conf_level, self.model)

    def to_latex(self) -> str:
        """Return it as LaTeX, a ``table`` environment that needs booktabs and graphicx."""
        table = replace(table_of_frame(self._table()), caption=self.title)
        facts = (f"{name}: {value}." for name, value in self._facts())
        return latex_tables([table, Notes((*facts, *self._assumed(), *self.notes))])

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        return render_markdown(self.sections())

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        return [
            Section(self.title, facts=self._facts()),
            Section(table=self._table(), notes=(*self._assumed(), *self.notes)),
        ]

    def _facts(self) -> tuple[tuple[str, str], ...]:
        rows, seen = self.counts
        facts = [("Rows", f"{rows:,}, of which {seen:,} ({percent(seen / rows)}) have an outcome")]
        if self.span is not None:
            how = "as observed" if self.span_observed else "as given"
            low, high = map(number, self.span)
            facts.append(("Range of the outcome", f"{low} to {high}, {how}"))
        return (*facts, ("Confidence level", f"{100 * self.conf_level:g}%"))

    def _table(self) -> pd.DataFrame:
        """Return what is printed: bounds, the interval, and the estimates beside them."""
        percents = f"{100 * self.conf_level:g}%"
        columns: dict[str, list[str | float]] = {"": [shown(row.quantity) for row in self.rows]}
        if any(row.group for row in self.rows):
            columns["group"] = [row.group for row in self.rows]
        if len(self.assumptions) > 1:
            columns["assumes"] = [row.assumption for row in self.rows]
        columns |= {
            "low": [row.bounds[0] for row in self.rows],
            "high": [row.bounds[1] for row in self.rows],
            f"{percents} low": [row.interval[0] for row in self.rows],
            f"{percents} high": [row.interval[1] for row in self.rows],
        }
        beside = {
            "observed": [row.observed for row in self.rows],
            "model": [row.model[0] for row in self.rows],
        }
        for name, values in beside.items():
            if not np.isnan(values).all():
                columns[name] = [*values]
        return pd.DataFrame(columns)

    def _assumed(self) -> list[str]:
        """Say what the bounds rest on."""
        known = self.assumptions
        lines = [
            f"Assumed{f' ({name})' if len(known) > 1 else ''}: {words}."
            for name, words in known.items()
        ]
        if self.span is not None and self.span_observed:
            lines.append(
                "The range is that of the outcomes that are known. If a missing one may be beyond "
                + told(f"it, pass {option('y_range')}: the bounds are then wider.")
            )
        return lines

    def _span_words(self) -> str:
        """Say between which values outcomes were taken to lie, in a clause."""
        if self.span is None:
            return ""
        low, high = (number(end, 3) for end in self.span)
        how = ", as those that are known do" if self.span_observed else ""
        return f", if outcomes run from {low} to {high}{how}"

    @property
    def sentences(self) -> list[str]:
        """A sentence for each number that may be written; of bounds that cross, there is none.

        Each has the assumption that it rests on.
        """
        return [sentence for row in self.rows if (sentence := self._sentence(row))]

    @property
    def sentence(self) -> str:
        """The sentence of the number that matters most, such as a difference of groups."""
        return self._sentence(self.rows[self.told])

    def _sentence(self, row: BoundRow) -> str:
        between, (first, last) = row.between(row.bounds), row.interval
        if not between:
            return ""
        whose = f" ({row.group})" if row.group else ""
        level = f"{100 * self.conf_level:g}%"
        ends = [number(end, 3) for end in (first, last) if math.isfinite(end)]
        inside = f" ({level} interval {' to '.join(ends)})" if len(ends) == 2 else ""
        clauses = [] if row.assumption in (NOTHING, CHOICE) else [row.assumed]
        span = self._span_words().removeprefix(", if ")
        clauses += [span] if span and row.assumption != TRIMMING else []
        n_rows, n_seen = row.counts
        if row.assumption == NOTHING and n_rows == n_seen:
            rests = ""
        elif clauses:
            rests = f", if {', and '.join(clauses)}"
        else:
            rests = ", whatever missing outcomes are"
        return f"Without a model, {row.said(said(self.outcome))}{whose} {between}{inside}{rests}."

    def findings(self) -> list[Fact]:
        """Return the bounds of one number as a fact about the model."""
        row = self.rows[self.told]
        apart = self.rows[-1] if self.has_contrast else None
        low, high, estimate = (number(value, 3) for value in (*row.bounds, row.model[0]))
        n_rows, n_seen = row.counts
        return [
            tell(
                None,
                "without_model",
                "caution" if row.is_beyond or (apart and apart.is_beyond) else "note",
                f"{low} to {high}",
                case="" if estimate else "alone",
                what=row.said(said(self.outcome)),
                between=f"{low} and {high}",
                estimate=estimate,
                gap=percent(1.0 - n_seen / n_rows, 0),
                span=self._span_words(),
                apart="" if apart is None else f" {self._apart(apart)}",
            )
        ]

    def _apart(self, row: BoundRow) -> str:
        """Say where a difference lies, and what the model says of it."""
        what, estimate = capitalised(row.said(said(self.outcome))), number(row.model[0], 3)
        model = f", and the model says {estimate}" if estimate else ""
        return f"{what} ({row.group}) {row.between(row.bounds)}{model}."
