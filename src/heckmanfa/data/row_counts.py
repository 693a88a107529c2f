"""The census: one pass over rows that are not in memory, which counts what becomes of each.

It finds what is to be refused, and what the rules that later passes apply depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.columns.values import label_of
from heckmanfa.data.row_checks import is_known_only
from heckmanfa.data.row_parts import PartRows, Rules
from heckmanfa.data.row_sources import Chunk, Reading, RowSource
from heckmanfa.data.rows import Mask, rows_per_block
from heckmanfa.errors import InputError

__all__ = ["Census", "count_parts", "rows_in_parts"]


@dataclass(frozen=True)
class Census:
    """What one pass over all parts counts."""

    lengths: dict[int, int]
    """rows of each part"""
    selected: int = 0
    """rows in the fit that are selected, and that are not"""
    unselected: int = 0
    outcome_missing: int = 0
    """rows left out: selected without an outcome"""
    zero_weight: int = 0
    incomplete: int = 0
    """rows left out because they miss a feature"""
    low: float = np.inf
    """range of the outcome among the selected rows"""
    high: float = -np.inf
    infinite_outcomes: int = 0
    binary: bool = True
    """whether all of these outcomes are 0 or 1"""
    missing: Any = 0
    """(k,) missing values of each column in rows that need it"""
    infinite: Any = 0
    """(k,) infinite ones"""
    gaps: Any = 0
    """(k,) missing or infinite values of each column in any row"""
    gaps_selected: Any = 0
    """(k,) those of selected rows"""
    not_chosen: int = 0
    """rows that are not selected, in the fit or not"""
    weight_sum: float = 0.0
    """over the rows in the fit"""
    bad_weights: int = 0
    fractions: int = 0
    """weights that are not whole numbers"""
    bad_flags: int = 0
    """rows of which it is not said whether they are selected"""
    odd_flag: str | None = None
    """what one of them says instead; None where all of them say nothing"""
    groups: Any = None
    """the distinct groups of the rows in the fit, sorted"""
    groupless: int = 0

    def known_only_for_selected(self) -> Mask:
        """(k,) whether a column is missing in all rows that are not selected, chance apart."""
        gaps, inside = np.atleast_1d(self.gaps), np.atleast_1d(self.gaps_selected)
        n_chosen = sum(self.lengths.values()) - self.not_chosen
        return is_known_only(gaps - inside, inside, self.not_chosen, n_chosen)

    def __add__(self, other: Census) -> Census:
        groups = self.groups
        if other.groups is not None:
            together = [other.groups] if groups is None else [groups, other.groups]
            groups = np.unique(np.concatenate(together))
        mine, theirs = self.lengths, other.lengths
        added = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__dataclass_fields__
            if name not in ("lengths", "low", "high", "binary", "groups", "odd_flag")
        }
        return Census(
            lengths=mine | {part: mine.get(part, 0) + n for part, n in theirs.items()},
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            binary=self.binary and other.binary,
            groups=groups,
            odd_flag=other.odd_flag if self.odd_flag is None else self.odd_flag,
            **added,
        )


@dataclass(frozen=True)
class _CensusTask:
    everywhere: Mask
    """(k,) which columns every row needs; the others are needed by selected rows"""
    drops_missing: bool

    def __call__(self, part: int, chunks: Iterable[Chunk]) -> Census:
        k = len(self.everywhere)
        nothing = np.zeros(k, dtype=np.int64)
        counted = Census(
            {part: 0}, missing=nothing, infinite=nothing, gaps=nothing, gaps_selected=nothing
        )
        for chunk in chunks:
            counted += self._of(part, chunk)
        return counted

    def _of(self, part: int, chunk: Chunk) -> Census:
        n = len(chunk.outcome)
        observed = ~np.isnan(chunk.outcome)
        chosen, bad_flags, odd_flag = observed, 0, None
        if chunk.selected is not None:
            chosen = np.asarray(chunk.selected == 1)
            odd = chunk.selected[~(chosen | (chunk.selected == 0))]
            bad_flags = len(odd)
            odd_flag = next((label_of(one) for one in odd if one is not None and one == one), None)
        finite = np.isfinite(chunk.features)
        kept = np.ones(n, dtype=bool)
        if self.drops_missing and not finite.all():
            # An infinite value is not a missing one: it is refused.
            kept = np.asarray(~np.isnan(chunk.features).any(axis=1))
        incomplete = n - int(np.count_nonzero(kept))
        outcome_missing = kept & chosen & ~observed
        kept &= ~outcome_missing
        weight_sum, zero_weight, bad_weights, fractions = 0.0, 0, 0, 0
        if chunk.weight is not None:
            bad_weights = int(np.count_nonzero(~(chunk.weight >= 0) | np.isinf(chunk.weight)))
            fractions = int(np.count_nonzero(chunk.weight != np.floor(chunk.weight)))
            weightless = kept & (chunk.weight == 0)
            zero_weight = int(np.count_nonzero(weightless))
            kept &= ~weightless
            weight_sum = float(chunk.weight[kept].sum())
        groups, groupless = None, 0
        if chunk.group is not None:
            lost = _nameless(chunk.group)
            groupless = int(np.count_nonzero(lost & kept))
            groups = np.unique(chunk.group[kept & ~lost])
        in_fit = kept & chosen
        values = chunk.outcome[in_fit]
        missing = infinite = gaps = gaps_selected = np.zeros(finite.shape[1], dtype=np.int64)
        if not finite.all():
            needed = kept[:, None] & (self.everywhere | chosen[:, None] | self.drops_missing)
            empty = np.isnan(chunk.features)
            missing = (empty & needed).sum(axis=0)
            infinite = (~finite & ~empty & needed).sum(axis=0)
            gaps = (~finite).sum(axis=0)
            gaps_selected = (~finite[chosen]).sum(axis=0)
        return Census(
            lengths={part: n},
            selected=int(np.count_nonzero(in_fit)),
            unselected=int(np.count_nonzero(kept & ~chosen)),
            outcome_missing=int(np.count_nonzero(outcome_missing)),
            zero_weight=zero_weight,
            incomplete=incomplete,
            low=float(values.min(initial=np.inf)),
            high=float(values.max(initial=-np.inf)),
            infinite_outcomes=int(np.count_nonzero(np.isinf(values))),
            binary=bool(np.all((values == 0) | (values == 1))),
            missing=missing,
            infinite=infinite,
            gaps=gaps,
            gaps_selected=gaps_selected,
            not_chosen=n - int(np.count_nonzero(chosen)),
            weight_sum=weight_sum,
            bad_weights=bad_weights,
            fractions=fractions,
            bad_flags=bad_flags,
            odd_flag=odd_flag,
            groups=groups,
            groupless=groupless,
        )


def _nameless(group: NDArray[Any]) -> Mask:
    """Which rows have no group; one by one only where they hold anything but numbers."""
    if group.dtype.kind in "biu":
        return np.zeros(len(group), dtype=bool)
    if group.dtype.kind == "f":
        return np.asarray(np.isnan(group))
    return np.array([one is None or one != one for one in group], dtype=bool)


def count_parts(home: RowSource, columns: Sequence[int], everywhere: Sequence[bool]) -> Census:
    """Count the rows of all parts by what becomes of them, and what is wrong with any.

    Parameters
    ----------
    home : RowSource
    columns : sequence of int
        The features of either equation.
    everywhere : sequence of bool
        Which of them every row needs (those that drive selection); the others are needed by the
        selected rows.

    Returns
    -------
    Census
    """
    task = _CensusTask(np.array(everywhere, dtype=bool), home.drops_missing)
    reading = Reading(tuple(columns), rows_per_block(home.n_features))
    found: Census | None = None
    for counted in home.run(task, reading):
        found = counted if found is None else found + counted
    if found is None:
        raise InputError(f"there are no {home.described} to read")
    return found


def rows_in_parts(
    home: RowSource, columns: Sequence[int], census: Census, *, sampling: bool
) -> PartRows:
    """Return the rows of a fit, of which a census found nothing to refuse.

    Parameters
    ----------
    home : RowSource
    columns : sequence of int
        As for the census.
    census : Census
    sampling : bool
        Whether weights are sampling weights, which are rescaled to mean one.

    Returns
    -------
    PartRows
    """
    kept = census.selected + census.unselected
    scale = kept / census.weight_sum if sampling and home.has_weight else 1.0
    gaps = np.broadcast_to(census.gaps, (len(columns),))
    complete = (
        [one for one, n in zip(columns, gaps, strict=True) if n] if home.drops_missing else []
    )
    lengths = tuple(census.lengths[part] for part in sorted(census.lengths))
    rules = Rules(scale, census.groups, tuple(complete))
    return PartRows(home, rules, lengths, tuple(columns))
