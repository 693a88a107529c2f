"""What a column holds, counted over rows that come in pieces.

The pieces of a column are added one after the other, or counted apart and merged in row order. A
tally stays small however many rows there are: where a column has very many different values, it
says that there are more than it has counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import NotNumbers, levels_of, spellings_of
from heckmanfa.data.rows import Mask

__all__ = ["MOST_LABELS", "GapTally", "NumberTally", "Tally", "TextTally"]

MOST_LABELS = 100_000
"""texts of a column that are told apart"""
MOST_VALUES = 1_000_000
"""numbers of a column that are told apart"""

_SHOWN = 3


class GapTally:
    """How many values are missing, and nothing else."""

    def __init__(self) -> None:
        self.gaps = 0

    def add(self, series: pd.Series[Any]) -> None:
        """Count some rows."""
        self.gaps += int(series.isna().sum())

    def merge(self, other: GapTally) -> None:
        """Add what was counted of later rows."""
        self.gaps += other.gaps


class NumberTally:
    """Numbers, counted: how many, how spread, and how many are missing."""

    def __init__(self, *, told_apart: bool = False, marks: Mask | None = None) -> None:
        self.n = self.gaps = self.zeros = 0
        self.low, self.high = np.inf, -np.inf
        self.total = 0.0
        self.whole = self.binary = True
        """whether all are whole, and whether all are 0 or 1"""
        self._values: Floats | None = np.empty(0) if told_apart else None
        self._more = False
        # One for all pieces, with a place for each whole number from 0 that has been seen.
        self._marks = marks

    def add(self, values: Floats) -> None:
        """Count some rows; NaN is missing."""
        holes = np.isnan(values)
        n_holes = int(np.count_nonzero(holes))
        given = values[~holes] if n_holes else values
        self.gaps += n_holes
        if not len(given):
            return
        self.n += len(given)
        self.low = min(self.low, float(given.min()))
        self.high = max(self.high, float(given.max()))
        # Infinite values are refused by whoever wants the mean of finite ones.
        with np.errstate(invalid="ignore", over="ignore"):
            self.total += float(given.sum())
        self.zeros += len(given) - int(np.count_nonzero(given))
        self.whole = self.whole and bool(np.all(given == np.floor(given)))
        self.binary = self.binary and bool(np.all((given == 0) | (given == 1)))
        if self.whole and self._values is not None:
            self._tell_apart(np.unique(given))
        if self._marks is not None and self._can_mark():
            self._marks[given.astype(np.intp)] = True

    def merge(self, other: NumberTally) -> None:
        """Add what was counted of later rows."""
        self.n += other.n
        self.gaps += other.gaps
        self.zeros += other.zeros
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total += other.total
        self.whole, self.binary = self.whole and other.whole, self.binary and other.binary
        if self.whole and self._values is not None and other._values is not None:
            self._tell_apart(other._values)
        self._more |= other._more

    def _tell_apart(self, values: Floats) -> None:
        if self._values is None or self._more:
            return
        together = np.union1d(self._values, values)
        self._more = len(together) > MOST_VALUES
        self._values = together[:MOST_VALUES]

    def _can_mark(self) -> bool:
        return (
            self._marks is not None
            and self.whole
            and self.low >= 0
            and self.high < len(self._marks)
        )

    @property
    def mean(self) -> float:
        """The mean of those that are not missing."""
        return self.total / self.n if self.n else float("nan")

    @property
    def infinite(self) -> bool:
        """Whether any is infinite."""
        return self.n > 0 and not (np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def distinct(self) -> int:
        """How many different ones there are; 0 where they were not told apart."""
        if self._marks is not None and self._can_mark():
            return int(np.count_nonzero(self._marks))
        return 0 if self._values is None else len(self._values)

    @property
    def more(self) -> bool:
        """Whether there are more different ones than were counted."""
        return self._more and not self._can_mark()


class TextTally:
    """Texts, counted: their levels, and what they are if they are read as numbers.

    Whether the data declares levels, and their order, has to be said: readers make categories of
    texts that are none.
    """

    def __init__(self, numbers: NumberTally | None = None, *, has_declared: bool = False) -> None:
        self._has_declared = has_declared
        self.counts: dict[str, int] = {}
        """rows of each level, in order of appearance"""
        self.declared: dict[str, None] = {}
        """levels in the order in which the data declares them"""
        self.more = False
        """whether there are more levels, which were not kept"""
        self.given = self.gaps = 0
        self.spelt = numbers or NumberTally()
        """the numbers among them; true and false are none here"""
        self._bad: dict[int, str] = {}
        self._n_bad = self._n_missing = 0

    def add(self, series: pd.Series[Any], start: int) -> None:
        """Count some rows, the first of which has number ``start`` in the data."""
        found = levels_of(series)
        self.given += int(np.count_nonzero(found.codes >= 0))
        self.gaps += int(np.count_nonzero(found.codes < 0))
        self._count(dict(zip(found.labels, found.counts().tolist(), strict=True)))
        if self._has_declared and not self.more and isinstance(series.dtype, pd.CategoricalDtype):
            declared = levels_of(pd.Series(series.cat.categories)).labels
            self.declared |= dict.fromkeys(declared)
        self._read_numbers(found.codes, found.labels, start)

    def _read_numbers(self, codes: NDArray[np.intp], labels: list[str], start: int) -> None:
        read = spellings_of(labels, truths=False)
        self.spelt.add(read.value[codes])
        self._n_missing += int(np.count_nonzero(read.missing[codes]))
        bad = read.bad[codes]
        self._n_bad += int(np.count_nonzero(bad))
        if len(self._bad) < _SHOWN and read.bad.any():
            for row in np.flatnonzero(bad)[: _SHOWN - len(self._bad)]:
                self._bad[start + int(row)] = labels[codes[row]]

    def merge(self, other: TextTally) -> None:
        """Add what was counted of later rows."""
        self.given += other.given
        self.gaps += other.gaps
        self._count(other.counts)
        self.more |= other.more
        if not self.more:
            self.declared |= other.declared
        self.spelt.merge(other.spelt)
        self._n_bad += other._n_bad
        self._n_missing += other._n_missing
        for row, text in other._bad.items():
            if len(self._bad) < _SHOWN:
                self._bad[row] = text

    def _count(self, counts: dict[str, int]) -> None:
        if self.more:
            return
        for label, rows in counts.items():
            if label not in self.counts and len(self.counts) == MOST_LABELS:
                self.more = True
                return
            self.counts[label] = self.counts.get(label, 0) + rows

    def as_numbers(self) -> tuple[NumberTally, NotNumbers]:
        """Read it as numbers, true and false as 1 and 0 where there is nothing else."""
        if not self.more and spellings_of(list(self.counts)).truths:
            return self._truths()
        n_rows = self.given + self.gaps
        return self.spelt, NotNumbers(self._bad, self._n_bad, n_rows - self._n_missing)

    def _truths(self) -> tuple[NumberTally, NotNumbers]:
        read = spellings_of(list(self.counts))
        counted = NumberTally()
        counted.add(read.value[:-1])
        rows = np.array(list(self.counts.values()), dtype=np.int64)
        given = ~read.missing[:-1]
        counted.n = int(rows[given].sum())
        counted.gaps = self.given + self.gaps - counted.n
        with np.errstate(invalid="ignore", over="ignore"):
            counted.total = float(rows[given] @ read.value[:-1][given])
        counted.zeros = counted.n - int(counted.total)
        return counted, NotNumbers({}, 0, counted.n)


Tally = GapTally | NumberTally | TextTally
