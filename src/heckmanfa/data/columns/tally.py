"""Counts of what a column holds, over rows that come in chunks.

The chunks of a column are added one after the other, or counted separately and merged in row order.
A capped tally stays small however many rows there are: if a column has very many different values,
the tally only records that there are more than it has counted.
"""

from __future__ import annotations

import math
from collections import Counter
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import (
    Levels,
    NotNumbers,
    by_size,
    in_one_case,
    levels_of,
    spellings_of,
)
from heckmanfa.data.rows import Mask

MOST_LABELS = 100_000
"""distinct texts that a capped tally keeps"""
MOST_VALUES = 1_000_000
"""distinct numbers that a capped tally keeps"""
MOST_FEW = 20
"""distinct numbers that are counted one by one"""
OTHER = "(other)"
"""the level that rare levels are merged into"""

_SHOWN = 3
_FIRST = 1000
# Numbers that questionnaires and programs write for missing.
_CODES = frozenset(
    [-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -777.0, -888.0, 777.0, 888.0, 7777.0, 8888.0]
    + [sign * (10.0**n - back) for n in range(2, 7) for back in (1, 2, 3) for sign in (1, -1)]
)


class GapTally:
    """Counts missing values, and nothing else."""

    def __init__(self) -> None:
        self.gaps = 0

    def add(self, series: pd.Series[Any]) -> None:
        """Count a chunk."""
        self.gaps += int(series.isna().sum())

    def merge(self, other: GapTally) -> None:
        """Add the counts of later rows."""
        self.gaps += other.gaps


class NumberTally:
    """Counts numbers: how many there are, their range and total, and how many are missing.

    ``distinct`` keeps the different values of a column of integers, at most `MOST_VALUES` if
    ``capped``. All chunks share the (m,) mask ``seen``, which marks each integer from 0 to m - 1
    that they hold; it costs less if the integers may count the rows. ``few`` counts the rows of
    each value of a column that has hardly any.
    """

    def __init__(
        self,
        *,
        distinct: bool = False,
        seen: Mask | None = None,
        capped: bool = True,
        few: bool = False,
    ) -> None:
        self.n = self.gaps = self.zeros = 0
        self.low, self.high = np.inf, -np.inf
        self.total = 0.0
        self.integers = self.two_valued = True
        """whether all are integers, and whether all are 0 or 1"""
        self.kept: Floats | None = np.empty(0) if distinct else None
        """the different integers, if they are kept"""
        self.kept_cut = False
        """whether there are more than these"""
        self.codes: Counter[float] = Counter()
        """rows of numbers at either end that may be codes for missing, such as -99"""
        self.rest_low, self.rest_high = np.inf, -np.inf
        """range of the others"""
        self.few: Counter[float] | None = Counter() if few else None
        """rows of each value, if they are counted and there are at most `MOST_FEW` of them"""
        self._seen = seen
        self._most = MOST_VALUES if capped else math.inf

    def add(self, values: Floats) -> None:
        """Count a chunk; NaN is missing."""
        holes = np.isnan(values)
        n_holes = int(np.count_nonzero(holes))
        known = values[~holes] if n_holes else values
        self.gaps += n_holes
        if not len(known):
            return
        self.n += len(known)
        low, high = float(known.min()), float(known.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._set_codes_apart(known, low, high)
        # Callers that need a finite mean refuse infinite values.
        with np.errstate(invalid="ignore", over="ignore"):
            self.total += float(known.sum())
        self.zeros += len(known) - int(np.count_nonzero(known))
        self.integers = self.integers and bool(np.all(known == np.floor(known)))
        self.two_valued = self.two_valued and bool(np.all((known == 0) | (known == 1)))
        if self.integers and self.kept is not None:
            self._keep(np.unique(known))
        if self.few is not None:
            self._count_few(_few_of(known))
        if self._seen is not None and self._all_fit():
            self._seen[known.astype(np.intp)] = True

    def _set_codes_apart(self, values: Floats, low: float, high: float) -> None:
        """Count the codes at the ends of a chunk, and note the range of the rest."""
        while low in _CODES or high in _CODES:
            code = low if low in _CODES else high
            rows = values == code
            self.codes[code] += int(np.count_nonzero(rows))
            values = values[~rows]
            if not len(values):
                return
            low, high = float(values.min()), float(values.max())
        self.rest_low, self.rest_high = min(self.rest_low, low), max(self.rest_high, high)

    def merge(self, other: NumberTally) -> None:
        """Add the counts of later rows."""
        self.codes.update(other.codes)
        self.rest_low = min(self.rest_low, other.rest_low)
        self.rest_high = max(self.rest_high, other.rest_high)
        self.n += other.n
        self.gaps += other.gaps
        self.zeros += other.zeros
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total += other.total
        self.integers = self.integers and other.integers
        self.two_valued = self.two_valued and other.two_valued
        if self.integers and other.kept is not None:
            self._keep(other.kept)
        self.kept_cut |= other.kept_cut
        self._count_few(other.few)

    def _count_few(self, counts: dict[float, int] | None) -> None:
        if self.few is None or counts is None:
            self.few = None
            return
        self.few.update(counts)
        if len(self.few) > MOST_FEW:
            self.few = None

    def _keep(self, values: Floats) -> None:
        if self.kept is None or self.kept_cut:
            return
        self.kept = np.union1d(self.kept, values)
        if len(self.kept) > self._most:
            self.kept, self.kept_cut = self.kept[: int(self._most)], True

    def _all_fit(self) -> bool:
        """Whether all values so far have a place in ``seen``."""
        seen = self._seen
        return seen is not None and self.integers and self.low >= 0 and self.high < len(seen)

    @property
    def mean(self) -> float:
        """Mean of the values that are not missing."""
        return self.total / self.n if self.n else float("nan")

    @property
    def infinite(self) -> bool:
        """Whether any value is infinite."""
        return self.n > 0 and not (np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def distinct(self) -> int:
        """How many different integers there are; 0 if they were not kept."""
        if self._seen is not None and self._all_fit():
            return int(np.count_nonzero(self._seen))
        return 0 if self.kept is None else len(self.kept)

    @property
    def more(self) -> bool:
        """Whether there are more different integers than were counted."""
        return self.kept_cut and not self._all_fit()


def _few_of(known: Floats) -> dict[float, int] | None:
    """Count the rows of each value; None if there are more than `MOST_FEW`."""
    # The first rows of most columns already show that they hold more.
    for sample in (known[:_FIRST], known):
        values, rows = np.unique(sample, return_counts=True)
        if len(values) > MOST_FEW:
            return None
    return dict(zip(values.tolist(), rows.tolist(), strict=True))


class TextTally:
    """Counts texts by level, at most `MOST_LABELS` if ``capped``.

    ``numbers`` counts the texts as numbers, in which true and false are not numbers. ``declared``
    says that the data declares the levels and their order. A pandas category alone does not say so:
    readers make categories of plain text. ``literal`` is as in `levels_of`.
    """

    def __init__(
        self,
        numbers: NumberTally | None = None,
        *,
        declared: bool = False,
        literal: bool = False,
        capped: bool = True,
    ) -> None:
        self.counts: dict[str, int] = {}
        """rows of each level, in order of appearance"""
        self.declared: dict[str, None] | None = {} if declared else None
        """levels in the order in which the data declares them; None if it does not"""
        self.more = False
        """whether there are more levels, which were not kept"""
        self.n_given = self.gaps = 0
        self.numbers = numbers
        self.bad: dict[int, str] = {}
        """the first rows that are not numbers, from 0, and what they hold"""
        self.n_bad = self.n_missing = 0
        """rows that are not numbers, and rows that are missing if read as numbers"""
        self._most = MOST_LABELS if capped else math.inf
        self._literal = literal

    def add(self, series: pd.Series[Any], start: int = 0) -> None:
        """Count a chunk whose first row has number ``start`` in the data."""
        self.add_levels(levels_of(series, literal=self._literal), series, start)

    def add_levels(self, chunk: Levels, series: pd.Series[Any], start: int = 0) -> None:
        """Count a chunk whose levels are known."""
        n_given = int(np.count_nonzero(chunk.codes >= 0))
        self.n_given += n_given
        self.gaps += len(chunk.codes) - n_given
        self._count(dict(zip(chunk.labels, chunk.counts().tolist(), strict=True)))
        if isinstance(series.dtype, pd.CategoricalDtype):
            levels = levels_of(pd.Series(series.cat.categories), literal=self._literal)
            self._declare(dict.fromkeys(levels.labels))
        if self.numbers is not None:
            self._read_numbers(self.numbers, chunk.codes, chunk.labels, start)

    def _read_numbers(
        self, numbers: NumberTally, codes: NDArray[Any], labels: list[str], start: int
    ) -> None:
        read = spellings_of(labels, booleans=False)
        numbers.add(read.value[codes])
        self.n_missing += int(np.count_nonzero(read.missing[codes]))
        if not read.bad.any():
            return
        rows = np.flatnonzero(read.bad[codes])
        self.n_bad += len(rows)
        for row in rows[: _SHOWN - len(self.bad)]:
            self.bad[start + int(row)] = labels[codes[row]]

    def merge(self, other: TextTally) -> None:
        """Add the counts of later rows."""
        self.n_given += other.n_given
        self.gaps += other.gaps
        self._count(other.counts)
        self.more |= other.more
        self._declare(other.declared or {})
        if self.numbers is not None and other.numbers is not None:
            self.numbers.merge(other.numbers)
        self.n_bad += other.n_bad
        self.n_missing += other.n_missing
        for row, text in list(other.bad.items())[: _SHOWN - len(self.bad)]:
            self.bad[row] = text

    def _declare(self, levels: dict[str, None]) -> None:
        if self.declared is not None and not self.more:
            self.declared |= levels

    def _count(self, counts: dict[str, int]) -> None:
        if self.more:
            return
        for label, rows in counts.items():
            if label not in self.counts and len(self.counts) == self._most:
                self.more = True
                return
            self.counts[label] = self.counts.get(label, 0) + rows

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that occur, the reference first: as declared, by size, or by alphabet.

        So the reference does not depend on the order of the rows. `OTHER` comes last.
        """
        occur = {level for level in self.counts if level != OTHER}
        if self.declared is not None:
            order = [level for level in self.declared if level in occur]
        else:
            order = by_size(occur)
        return (*order, OTHER) if OTHER in self.counts else tuple(order)

    def with_one_case(self) -> TextTally:
        """Count levels that differ only in case or blanks as the most frequent of them."""
        spelled = in_one_case(self.counts)
        merged = copy(self)
        merged.counts = {}
        for level, n in self.counts.items():
            merged.counts[spelled[level]] = merged.counts.get(spelled[level], 0) + n
        if self.declared is not None:
            known = [spelled[level] for level in self.declared if level in spelled]
            merged.declared = dict.fromkeys(known)
        return merged

    def with_other(self, fewest: int) -> tuple[TextTally, tuple[str, ...]]:
        """Merge levels with fewer rows into one, `OTHER`; also return the levels merged.

        If only one level has, the next rarest joins it: alone, it would just have another name.
        """
        rarest = sorted(self.counts, key=lambda level: self.counts[level])
        rare = [level for level in rarest if self.counts[level] < fewest or level == OTHER]
        if not rare or (rare == [OTHER] and self.counts[OTHER] >= fewest):
            return self, ()
        if len(rare) == 1:
            rare += [level for level in rarest if level not in rare][:1]
        merged = copy(self)
        merged.counts = {level: n for level, n in self.counts.items() if level not in rare}
        merged.counts[OTHER] = sum(self.counts[level] for level in rare)
        if self.declared is not None:
            kept = {level: None for level in self.declared if level not in rare}
            merged.declared = {**kept, OTHER: None}
        return merged, tuple(sorted(rare))

    def as_numbers(self) -> tuple[NumberTally, NotNumbers]:
        """Read the column as numbers; true and false are 1 and 0 if there is nothing else."""
        if not self.more and spellings_of(list(self.counts)).booleans:
            return self._as_booleans()
        assert self.numbers is not None
        n_rows = self.n_given + self.gaps
        return self.numbers, NotNumbers(self.bad, self.n_bad, n_rows - self.n_missing)

    def _as_booleans(self) -> tuple[NumberTally, NotNumbers]:
        read = spellings_of(list(self.counts))
        counted = NumberTally()
        counted.add(read.value[:-1])
        rows = np.array(list(self.counts.values()), dtype=np.int64)
        known = ~read.missing[:-1]
        counted.n = int(rows[known].sum())
        counted.gaps = self.n_given + self.gaps - counted.n
        with np.errstate(invalid="ignore", over="ignore"):
            counted.total = float(rows[known] @ read.value[:-1][known])
        counted.zeros = counted.n - int(counted.total)
        return counted, NotNumbers({}, 0, counted.n)


Tally = GapTally | NumberTally | TextTally
