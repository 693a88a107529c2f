"""The report of marginal effects and average predictions, and of the differences between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError
from heckmanfa.inference.formula_variables import level_words
from heckmanfa.results.distribution import NullDistribution, check_level
from heckmanfa.results.document import Section
from heckmanfa.results.reports import Report
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import listed, nearest

Pairs = Literal["all", "first"]
Between = Literal["cells", "levels"]

_WORDS = {
    "marginal": ", {} with these features",
    "selected": ", given selection",
    "unselected": ", given that the row is not selected",
    "expected": "",
    "selection": "",
}
_GIVEN = {"marginal": "x", "selected": "x, s = 1", "unselected": "x, s = 0"}
_MANY_GROUPS = 12
GROUP = "group"
"""what groups without the name of a column are called"""


def quantity(target: str, positive: str = "", outcome: str = "y") -> str:
    """Write what an effect is on; ``positive`` is the positive class of a binary outcome.

    ``outcome`` is a linear outcome on the scale of the effects.
    """
    if target == "selection":
        return "P(s = 1 | x)"
    if target == "expected":
        joint = f"P(y = {positive}, s = 1 | x)"
        return joint if positive else f"P(s = 1 | x) E[{outcome} | x, s = 1]"
    given = _GIVEN[target]
    return f"P(y = {positive} | {given})" if positive else f"E[{outcome} | {given}]"


def _described(target: str, positive: str, outcome: str) -> str:
    """Write what an effect is on, and whose it is."""
    whose = "for anyone" if positive else "the outcome of anyone"
    return f"{quantity(target, positive, outcome)}{_WORDS[target].format(whose)}"


@dataclass(frozen=True)
class MarginCell:
    """A group of rows, in which columns are fixed at values."""

    fixed: tuple[tuple[str, Any], ...]
    """columns, and the value of each"""
    group: Any
    """None if all rows are in one group"""
    over: str
    """the column of the groups, or `GROUP`"""
    n_rows: int

    @property
    def at(self) -> str:
        """The fixed values in words."""
        return ", ".join(f"{shown(name)} = {_value(value)}" for name, value in self.fixed)

    @property
    def words(self) -> str:
        """Group and fixed values in words."""
        group = [] if self.group is None else [f"{shown(self.over)} = {_value(self.group)}"]
        return ", ".join([*group, *([self.at] if self.fixed else [])])


def _value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return level_words(bool(value))
    return f"{value:.10g}" if isinstance(value, float | np.floating) else shown(value)


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class JointNumbers(Report):
    """Base of effects, predictions or their differences, with their joint covariance."""

    table: pd.DataFrame
    """as `tidy` gives it"""
    covariance: Floats
    """covariance of all numbers, in the order of ``table``"""
    labels: tuple[str, ...]
    """columns of ``table`` that say which number is which"""
    predictions: bool
    """whether these are expectations, and not effects on them"""
    positive: str
    """positive class of a binary outcome, whose probability has these effects"""
    outcome: str
    """a linear outcome on the scale of the effects: "y", or "log(y)" with ``scale="link"``"""
    notes: tuple[str, ...]

    def vcov(self) -> pd.DataFrame:
        """Return the joint covariance, labelled by the columns of `tidy` before the estimates."""
        labels = pd.MultiIndex.from_frame(self.table[list(self.labels)])
        return pd.DataFrame(self.covariance.copy(), index=labels, columns=labels)

    def _by_target(self, title: str, printed: pd.DataFrame, notes: Sequence[str]) -> list[Section]:
        """Return a section for the table of each target, then the notes."""
        on = "of" if self.predictions else "on"
        parts = []
        for target, rows in printed.groupby(self.table["target"], sort=False):
            what = _described(str(target), self.positive, self.outcome)
            table = rows.reset_index(drop=True)
            parts.append(Section(f"{title} {target}: {on} {what}", table=table))
        return [*parts, Section(notes=tuple(notes))]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Margins(JointNumbers):
    """Marginal effects of m features on expectations, or expectations; see `Heckman.margins`."""

    at: str
    conf_level: float
    n_rows: int
    """rows at which the effects were evaluated"""
    weighing: str
    """how weights count these rows, in words"""
    cells: tuple[MarginCell, ...]
    """in the order of ``table``; one if nothing is fixed and all rows are in one group"""
    contrasts: tuple[tuple[Any, Any] | None, ...]
    """levels before and after each change within a cell; None for a slope"""
    reference: NullDistribution
    averaged: bool
    """whether estimates are averaged over assignments"""

    def tidy(self) -> pd.DataFrame:
        """Return effects, standard errors, tests and intervals.

        Returns
        -------
        DataFrame
            Columns target ("marginal", "selected", "unselected", "expected", "selection"), class
            (of an ordered outcome), over (the group) and at_… (the value of each fixed column) if
            these were asked for, term, change ("slope", "0 to 1", or from one category to another),
            estimate, std_error, statistic (z; t with a cluster covariance), p_value, ci_low,
            ci_high. If the target does
            not depend on the feature, the effect and its standard error are 0, and statistic and
            p-value are NaN. Average predictions have no term and no change.
        """
        return self.table.copy()

    def differences(
        self,
        pairs: Pairs = "all",
        *,
        between: Between | None = None,
        conf_level: float | None = None,
    ) -> MarginDifferences:
        """Compare cells, or levels of a category, in pairs.

        Parameters
        ----------
        pairs : {"all", "first"}
            Every pair, or each with the first.
        between : {None, "cells", "levels"}
            "cells" compares the same effect, or prediction, in two cells of ``at`` and ``over``.
            "levels" compares the effects of two levels of a category. The default is cells, if
            there are two or more.
        conf_level : float, optional
            Confidence level of the intervals; that of the report by default.

        Returns
        -------
        MarginDifferences
            Estimates are the second less the first, with tests from the joint covariance. They are
            not adjusted for the number of comparisons.
        """
        conf_level = self.conf_level if conf_level is None else conf_level
        check_level(conf_level)
        for name, value, known in (
            ("pairs", pairs, ("all", "first")),
            ("between", between, (None, "cells", "levels")),
        ):
            if value not in known:
                names = [choice for choice in known if choice]
                words = " or ".join(map(quoted, names))
                raise InputError(
                    f"{name} must be {words}; got {quoted(value)}{nearest(str(value), names)}"
                )
        if between is None:
            between = "cells" if len(self.cells) > 1 else "levels"
        lines = self._cell_pairs(pairs) if between == "cells" else self._level_pairs(pairs)
        return self._compared(lines, between, float(conf_level))

    def _compared(
        self, lines: list[tuple[dict[str, Any], dict[int, float]]], between: str, conf_level: float
    ) -> MarginDifferences:
        """Estimate combinations of the numbers, given as labels and the weights of places."""
        if not lines:
            needed = {
                "cells": "two cells: fix a column at two values in at, or name groups in over",
                "levels": "the effects of a category",
            }[between]
            raise InputError(f"there is nothing to compare; differences need {needed}")
        weights = np.zeros((len(lines), len(self.table)))
        for row, (_, places) in enumerate(lines):
            for place, weight in places.items():
                weights[row, place] += weight
        estimate = weights @ self.table["estimate"].to_numpy(dtype=np.float64)
        covariance = weights @ self.covariance @ weights.T
        with np.errstate(invalid="ignore"):
            error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        table = pd.DataFrame([labels for labels, _ in lines])
        columns = self.reference.columns(estimate, error, conf_level)
        names = tuple(table.columns)
        table = table.assign(**columns)
        notes = ["Standard errors use the joint covariance of what is compared."]
        if len(lines) > 1:
            notes.append("P-values are not adjusted for the number of comparisons.")
        if self.averaged:
            tested = self.table["p_value"].notna() | (self.table["std_error"] == 0)
            untested = (weights != 0) @ ~tested.to_numpy(dtype=bool) > 0
            table.loc[untested, ["statistic", "p_value"]] = np.nan
            notes.append(
                "Outcomes are averaged over assignments: intervals use the standard error of the "
                "average, and there is no p-value."
            )
        notes += self.reference.notes()
        return MarginDifferences(
            table=table,
            covariance=covariance,
            labels=names,
            cells=tuple(self._cell_of(min(places)).words for _, places in lines),
            between=between,
            predictions=self.predictions,
            positive=self.positive,
            outcome=self.outcome,
            notes=tuple(notes),
        )

    def _cell_of(self, place: int) -> MarginCell:
        """Return the cell of a row of the table."""
        return self.cells[place // max(len(self.contrasts), 1) % len(self.cells)]

    def _cell_pairs(self, pairs: str) -> list[tuple[dict[str, Any], dict[int, float]]]:
        n_cells, n_each = len(self.cells), max(len(self.contrasts), 1)
        kept = [name for name in ("target", "class", "term", "change") if name in self.labels]
        lines = []
        for start in range(0, len(self.table), n_cells * n_each):
            for change in range(n_each):
                for first, second in _pairs(n_cells, pairs):
                    places = [start + cell * n_each + change for cell in (first, second)]
                    same = {name: self.table[name].iloc[places[0]] for name in kept}
                    ends = {"before": self.cells[first].words, "after": self.cells[second].words}
                    lines.append((same | ends, {places[0]: -1.0, places[1]: 1.0}))
        return lines

    def _level_pairs(self, pairs: str) -> list[tuple[dict[str, Any], dict[int, float]]]:
        n_each = len(self.contrasts)
        if not n_each:
            return []
        lines = []
        kept = [name for name in self.labels if name not in ("term", "change")]
        for start in range(0, len(self.table), n_each):
            rows = self.table.iloc[start : start + n_each]
            cell = {name: rows[name].iloc[0] for name in kept}
            for term, places, levels in self._categories(list(rows["term"])):
                for first, second in _pairs(len(levels), pairs):
                    weights = {start + places[second - 1]: 1.0}
                    if first:
                        weights[start + places[first - 1]] = -1.0
                    ends = {
                        "before": level_words(levels[first]),
                        "after": level_words(levels[second]),
                    }
                    lines.append((cell | {"term": term} | ends, weights))
        return lines

    def _categories(self, terms: list[str]) -> Iterator[tuple[str, list[int], list[Any]]]:
        """Yield each category among the terms of a cell: places of its changes, and its levels."""
        for term in dict.fromkeys(terms):
            pairs = {
                place: pair
                for place, pair in enumerate(self.contrasts)
                if pair is not None and terms[place] == term
            }
            if pairs:
                base = next(iter(pairs.values()))[0]
                yield term, list(pairs), [base, *(after for _, after in pairs.values())]

    def sections(self) -> list[Section]:
        """Return the parts of the report: a table for each target, then the notes."""
        what = "predictions" if self.predictions else "effects"
        rows = f"{self.n_rows:,} rows"
        over = [cell for cell in self.cells if cell.group is not None]
        if over:
            of_column = f" of {shown(over[0].over)}" if over[0].over != GROUP else ""
            rows = f"the rows of each group{of_column}"
        where = {
            "average": f"{what} averaged over {rows}{self.weighing}",
            "means": f"{what} at the average of {rows}{self.weighing}",
        }[self.at]
        if self.cells[0].fixed:
            names = listed([name for name, _ in self.cells[0].fixed])
            where += f", with {names} fixed"
        title = "Average predictions" if self.predictions else "Marginal effects"
        drop = [name for name in self.labels if name not in ("class", "term", "change")]
        printed = self.table.drop(columns=drop)
        cells = [self._cell_of(place) for place in range(len(printed))]
        if self.cells[0].fixed:
            printed.insert(0, "at", [cell.at for cell in cells])
        if over:
            printed.insert(0, "over", [_value(cell.group) for cell in cells])
        notes = (*self._group_notes(), *self.notes)
        return [
            Section(f"{title}: {where}"),
            *self._by_target(what.capitalize(), printed, notes),
        ]

    def _group_notes(self) -> list[str]:
        counts = {_value(cell.group): cell.n_rows for cell in self.cells if cell.group is not None}
        if not counts:
            return []
        some = [f"{label} {count:,}" for label, count in [*counts.items()][:_MANY_GROUPS]]
        more = f" and {len(counts) - _MANY_GROUPS} more" if len(counts) > _MANY_GROUPS else ""
        return [f"Rows in each group: {', '.join(some)}{more}."]


def _pairs(count: int, pairs: str) -> list[tuple[int, int]]:
    if pairs == "first":
        return [(0, other) for other in range(1, count)]
    return list(combinations(range(count), 2))


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MarginDifferences(JointNumbers):
    """Differences between cells, or between levels of categories; see `Margins.differences`."""

    cells: tuple[str, ...]
    """the cell of each row in words, or the first of both; empty if there is one cell"""
    between: str

    def tidy(self) -> pd.DataFrame:
        """Return differences, standard errors, tests and intervals.

        Returns
        -------
        DataFrame
            Columns target, term and change (between cells of effects), or over, at_… and term
            (between levels), before and after (what is compared, in words), estimate (after less
            before), std_error, statistic, p_value, ci_low, ci_high.
        """
        return self.table.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report: a table for each target, then the notes."""
        what = "predictions" if self.predictions else "effects"
        title = f"Differences of {what} between {self.between}: after less before"
        kept = ("class", "term", "change", "before", "after")
        printed = self.table.drop(columns=[name for name in self.labels if name not in kept])
        if self.between == "levels" and any(self.cells):
            printed.insert(0, "cell", self.cells)
        return [Section(title), *self._by_target("Differences", printed, self.notes)]
