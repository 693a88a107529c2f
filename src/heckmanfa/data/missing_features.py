"""Rows that lack a feature: one rule, wherever the rows are.

Such a row has no prediction. Methods that return predictions refuse it, or return NaN with
``missing="nan"``. Methods that write a file of predictions have a row for each row of the data:
they leave the cell empty and count these rows, or refuse them with ``missing="error"``.

A fit counts rows by the set of columns that they lack. That is enough to say how many rows any set
of columns costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import host, namespace
from heckmanfa.data.columns.features import FeatureTable, feature_blocks
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.errors import (
    CollinearError,
    ConstantOutcomeError,
    InputError,
    MissingFeaturesWarning,
    MissingValueError,
    NoOutcomeError,
    SeparationError,
    TooFewRowsError,
    warn,
)
from heckmanfa.text.option_words import MISSING
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import count, percent, plural

_SHOWN = 10
# score and margins, which have no such parameter, raise this as well.
_INSTEAD = "pass missing='nan' to predict to get NaN for these rows"


@dataclass(frozen=True)
class Gaps:
    """How many rows lack a feature that their prediction needs."""

    n_rows: int = 0
    """all rows"""
    n_missing: int = 0
    """rows that lack one or more features"""
    columns: Mapping[str, int] = field(default_factory=dict)
    """how many rows lack each feature, for features that any row lacks"""

    def __add__(self, other: Gaps) -> Gaps:
        columns = Counter(self.columns) + Counter(other.columns)
        return Gaps(self.n_rows + other.n_rows, self.n_missing + other.n_missing, columns)

    def of_sources(self, sources: Mapping[str, str]) -> Gaps:
        """Name features by the columns of a table that they were made from."""
        counts: dict[str, int] = {}
        for name, n_rows in self.columns.items():
            source = sources.get(name, name)
            counts[source] = max(counts.get(source, 0), n_rows)
        return replace(self, columns=counts)

    def where(self) -> str:
        """Say which features are missing, and in how many rows."""
        return _listed(self.columns)

    def words(self) -> str:
        """Say in a sentence, without its full stop, that rows have no prediction, and why."""
        verb = "lacks" if self.n_missing == 1 else "lack"
        return (
            f"{self.n_missing:,} of {self.n_rows:,} rows {verb} a feature, and "
            f"{'has' if self.n_missing == 1 else 'have'} no prediction: {self.where()}"
        )


def check_missing(missing: str) -> None:
    """Refuse a value of ``missing`` that is not valid."""
    if missing not in ("error", "nan"):
        raise InputError(f"missing must be 'error' or 'nan'; got {quoted(missing)}")


def check_unknown(unknown: str) -> None:
    """Refuse a value of ``unknown`` that is not valid."""
    if unknown not in ("error", "missing"):
        raise InputError(f"unknown must be 'error' or 'missing'; got {quoted(unknown)}")


def find_gaps(table: FeatureTable, columns: Positions) -> Gaps:
    """Count the rows that lack a column that their prediction needs; refuse infinity."""
    empty = np.zeros(len(columns), dtype=np.int64)
    infinite, n_missing = empty.copy(), 0
    for _, block in feature_blocks(table, columns):
        xp = namespace(block)
        if xp.isfinite(block).all():
            continue
        hole = xp.isnan(block)
        empty += host(hole.sum(axis=0))
        infinite += host(xp.isinf(block).sum(axis=0))
        n_missing += int(hole.any(axis=1).sum())
    # The dummies of a category are missing together.
    labels = table.sources(columns)
    if infinite.any():
        raise MissingValueError(
            f"Input X contains infinity in {_listed(_counted(labels, infinite))}: correct these "
            f"values, or mark them {MISSING}"
        )
    return Gaps(table.n_rows, n_missing, _counted(labels, empty))


def _counted(labels: list[str], counts: NDArray[np.int64]) -> dict[str, int]:
    return {name: int(count) for name, count in zip(labels, counts, strict=True) if count}


def refuse_gaps(gaps: Gaps, instead: str = _INSTEAD) -> None:
    """Refuse rows that cannot be predicted; ``instead`` says how to predict the others."""
    if gaps.n_missing:
        raise MissingValueError(
            f"Input X contains NaN in {gaps.where()}: {gaps.n_missing:,} of {gaps.n_rows:,} rows "
            f"cannot be predicted. Impute them or leave them out, or {instead}."
        )


def _listed(counts: Mapping[str, int]) -> str:
    first = [f"{quoted(name)} ({plural(count, 'row')})" for name, count in counts.items()][:_SHOWN]
    more = f" and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    return ", ".join(first) + more


# A larger share of the rows is worth a warning, and should not be lost without need.
_MANY = 0.2
# Sets of columns that are kept apart; rows that lack other sets are counted together.
_SETS_KEPT = 4096
# So many names can still be copied into an option.
_NAMED = 30


@dataclass(frozen=True)
class GapCounts:
    """Rows by which of k columns they lack; counts of several chunks add up."""

    n_rows: int = 0
    sets: Mapping[bytes, int] = field(default_factory=dict)
    """number of rows by the columns that they lack, packed into bits"""
    others: int = 0
    """rows that lack other sets of columns"""

    @classmethod
    def of(cls, gaps: Mask) -> GapCounts:
        """Count the rows of a chunk, of which ``gaps`` (b, k) says what is missing."""
        packed = np.packbits(gaps[gaps.any(axis=1)], axis=1)
        if packed.size == 0:
            return cls(len(gaps))
        as_bytes = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").reshape(-1)
        distinct, counts = np.unique(as_bytes, return_counts=True)
        sets = {lacking.tobytes(): int(n) for lacking, n in zip(distinct, counts, strict=True)}
        return cls(len(gaps)) + cls(0, sets)

    def __add__(self, other: GapCounts) -> GapCounts:
        sets, others = dict(self.sets), self.others + other.others
        for lacking, n in other.sets.items():
            if lacking in sets or len(sets) < _SETS_KEPT:
                sets[lacking] = sets.get(lacking, 0) + n
            else:
                others += n
        return GapCounts(self.n_rows + other.n_rows, sets, others)

    def lost(self, names: Sequence[str]) -> LostRows:
        """Return the rows that were lost, given a name for each of the k columns.

        The dummies of a category have the name of their column.
        """
        n_lost = sum(self.sets.values()) + self.others
        if not self.sets:
            return LostRows(self.n_rows, n_lost, (), ())
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        columns = list(places)
        rows = np.array(list(self.sets.values()), dtype=np.int64)
        packed = np.frombuffer(b"".join(self.sets), dtype=np.uint8).reshape(len(rows), -1)
        bits = np.unpackbits(packed, axis=1, count=len(names)).astype(bool)
        lacking = np.zeros((len(rows), len(columns)), dtype=bool)
        for place, name in enumerate(names):
            lacking[:, places[name]] |= bits[:, place]
        gaps = rows @ lacking
        order = [int(place) for place in np.argsort(-gaps, kind="stable") if gaps[place]]
        # A row is kept as soon as the last column that it lacks is left out.
        last = len(order) - 1 - np.argmax(lacking[:, order[::-1]], axis=1)
        freed = np.zeros(len(order), dtype=np.int64)
        np.add.at(freed, last, rows)
        kept = self.n_rows - n_lost + np.cumsum(freed)
        return LostRows(
            self.n_rows,
            n_lost,
            tuple((columns[place], int(gaps[place])) for place in order),
            tuple(int(n) for n in kept),
        )


@dataclass(frozen=True)
class LostRows:
    """Rows that are left out because they lack a feature."""

    n_rows: int
    """all rows"""
    n_lost: int
    columns: tuple[tuple[str, int], ...]
    """columns with gaps and how many rows lack each, most first"""
    kept: tuple[int, ...]
    """rows that would be kept without the first column, without the first two, and so on"""

    @property
    def are_many(self) -> bool:
        """Whether so many rows are lost that a user must hear of it."""
        return self.n_lost > _MANY * self.n_rows

    @property
    def n_costly(self) -> int:
        """How many of the first columns to leave out: as few as keep most rows, if any do."""
        enough = [n >= (1.0 - _MANY) * self.n_rows for n in self.kept]
        return 1 + (enough.index(True) if any(enough) else self.kept.index(max(self.kept)))

    @property
    def words(self) -> str:
        """Say how many rows are lost, in a sentence."""
        share = percent(self.n_lost / self.n_rows, 0)
        verb = "lacks" if self.n_lost == 1 else "lack"
        return f"{count(self.n_lost)} of {count(self.n_rows)} rows ({share}) {verb} a feature."

    @property
    def advice(self) -> str:
        """Name the columns that cost most rows, and say what leaving them out would keep."""
        if not self.columns:
            return ""
        costly = self.columns[: self.n_costly]
        alike = groupby(costly[:_NAMED], key=lambda column: column[1])
        shown = [
            f"{', '.join(names)} ({count(gaps)} missing{' each' if len(names) > 1 else ''})"
            for gaps, group in alike
            for names in [[quoted(name) for name, _ in group]]
        ]
        more = f" and {plural(len(costly) - _NAMED, 'more column')}" if len(costly) > _NAMED else ""
        these = "this column" if len(costly) == 1 else f"these {len(costly)} columns"
        keep = self.kept[len(costly) - 1]
        return (
            f"Most rows are lost to {', '.join(shown)}{more}: without {these}, "
            f"{count(keep)} of {plural(self.n_rows, 'row')} would be kept."
        )


def warn_of_lost(lost: LostRows) -> None:
    """Warn if many rows are left out of a fit because they lack a feature."""
    if lost.are_many:
        warn(
            f"{lost.words} They are left out of the fit. {lost.advice}",
            MissingFeaturesWarning,
            lost=lost,
        )


@contextmanager
def explain_lost(lost: LostRows | None) -> Iterator[None]:
    """Say in errors about too few rows which columns cost rows."""
    try:
        yield
    except (TooFewRowsError, NoOutcomeError, ConstantOutcomeError) as error:
        _add(error, lost)
        raise
    except (CollinearError, SeparationError) as error:
        # Few rows may be collinear or separated where all of them are not.
        if lost is not None and lost.are_many:
            _add(error, lost)
        raise


def _add(error: InputError, lost: LostRows | None) -> None:
    if lost is not None and lost.n_lost:
        said = str(error).rstrip(".")
        error.args = (f"{said}. {lost.words} {lost.advice}",)
