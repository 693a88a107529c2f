"""The rows at which effects are evaluated, and the changes whose effects are asked for.

In a model from arrays each column is a feature. In a model from formulas a feature is a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import read_weights
from heckmanfa.errors import InputError
from heckmanfa.inference.effect_cells import RowGroups, read_groups
from heckmanfa.inference.formula_variables import Change
from heckmanfa.text.printable import quoted

EffectBlock = tuple[Floats, Floats, Iterator[Change]]
"""weights that sum to one over all blocks, design (n, 1 + k), and every change"""
Blocks = Iterator[EffectBlock]


@dataclass(frozen=True)
class Cell:
    """A group of rows, in which columns are fixed at values."""

    blocks: Callable[[], Blocks]
    n_rows: int
    fixed: tuple[Any, ...] = ()
    """a value of each of the columns that are fixed"""
    group: Any = None
    """label of the group; None if all rows are in one"""


@dataclass(frozen=True)
class EffectRows:
    """Rows at which effects are evaluated, and the changes whose effects are asked for."""

    changes: list[tuple[str, str]]
    """term, and the change in words; of predictions, a single entry"""
    moved: list[frozenset[int]]
    """columns of X that each change moves"""
    n_rows: int
    cells: list[Cell]
    """groups in their order, and in each every combination of fixed values"""
    total: float | None
    """sum of the weights; None without weights"""
    n_left_out: int = 0
    """rows in which a variable is missing"""
    notes: tuple[str, ...] = ()
    contrasts: tuple[tuple[Any, Any] | None, ...] = ()
    """levels before and after each change of a variable; None for a slope"""
    fixed: tuple[str, ...] = ()
    """names of the columns that are fixed"""

    def blocks(self) -> Blocks:
        """Return the blocks of rows that are all in one cell."""
        (cell,) = self.cells
        return cell.blocks()


PREDICTION = [("", "")]
"""the changes of `EffectRows`, if predictions are asked for"""


@dataclass(frozen=True)
class Part:
    """The rows of a group, or all rows."""

    shares: Floats
    """(n,) shares of all rows in their average, which sum to one"""
    n_rows: int
    label: Any = None
    groups: RowGroups | None = None
    """None if all rows are in one group"""
    group: int = 0
    total: float = 1.0
    """sum of the shares of the group's rows"""

    def rows(self, span: slice = slice(None)) -> Mask | None:
        """Whether each row of a span is in the group; None if all are."""
        return None if self.groups is None else self.groups.codes[span] == self.group

    def weight(self, span: slice = slice(None)) -> Floats:
        """Return the shares of the group's rows within a span; in all spans they sum to one."""
        rows = self.rows(span)
        return self.shares[span] if rows is None else self.shares[span][rows] / self.total


def parts_of(over: Any, shares: Floats) -> list[Part]:
    """Split rows into groups, given their shares in an average over all of them."""
    if over is None:
        return [Part(shares, len(shares))]
    groups = read_groups(over, len(shares))
    totals = np.bincount(groups.codes, weights=shares)
    counts = np.bincount(groups.codes)
    for label, total in zip(groups.labels, totals, strict=True):
        if total == 0.0:
            raise InputError(f"over: every row of the group {quoted(label)} has the weight zero")
    return [
        Part(shares, int(counts[group]), label, groups, group, float(totals[group]))
        for group, label in enumerate(groups.labels)
    ]


def refuse_none(wanted: Sequence[Any]) -> None:
    """Refuse an empty list of features."""
    if not wanted:
        raise InputError("there is no feature to take an effect of; name some in features=[...]")


def shares_of(sample_weight: Any, n: int) -> tuple[Floats, float | None]:
    """Return the weights of n rows, scaled to sum to one, and their sum; None without weights."""
    if sample_weight is None:
        return np.full(n, 1.0 / n), None
    weight = read_weights(sample_weight, n)
    total = float(weight.sum())
    return np.asarray(weight / total), total
