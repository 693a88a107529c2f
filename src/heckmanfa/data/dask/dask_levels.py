"""The levels of categories in a Dask collection: counted on the workers, merged in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from heckmanfa.data.columns.category_features import category_column, count_levels
from heckmanfa.data.columns.encoded_columns import to_pandas_column
from heckmanfa.data.columns.kinds import Column
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.data.dask.dask_worker import partition_frame
from heckmanfa.data.row_sources import CategoryType


@dataclass(frozen=True)
class Counted:
    """A column of a partition."""

    column: Column
    tally: TextTally | None
    """None for objects that are not text"""
    holds_text: bool = True
    """whether it is a category already, or holds text that makes it one"""
    declared: tuple[str, ...] | None = None
    """levels that the partition declares, in order; None if it has no rows or declares none"""


@dataclass(frozen=True)
class CountLevels:
    """Counts the levels of some columns of each partition."""

    names: tuple[str, ...]
    types: tuple[CategoryType, ...]
    """what makes each of them a category"""

    def __call__(self, part: int, head: int | None, given: dict[str, Any]) -> list[Counted]:
        """Count all rows of a partition."""
        frame = partition_frame(given["X"])
        found = []
        for place, (name, kind) in enumerate(zip(self.names, self.types, strict=True)):
            series = frame[:, place]
            is_declared, named = kind in ("category", "named"), kind == "named"
            column = category_column(series, name, is_declared=is_declared, named=named)
            values = to_pandas_column(series)
            held = "string"
            if kind == "objects":
                held = pd.api.types.infer_dtype(values, skipna=True)
            if held not in ("string", "empty"):
                found.append(Counted(column, None))
                continue
            tally, _ = count_levels(column, values, capped=True)
            declared = None
            if tally.declared is not None and len(values):
                declared = tuple(tally.declared)
            found.append(Counted(column, tally, held == "string", declared))
        return found


def merge_counts(partitions: Iterable[list[Counted]]) -> dict[int, tuple[Column, TextTally]]:
    """Merge the counts of partitions; return the columns that are categories, by position.

    The order that partitions declare counts if they all declare the same. Otherwise it would depend
    on how the rows are partitioned, as it does with Dask's unknown categories.
    """
    merged: dict[int, tuple[Column, TextTally]] = {}
    declared: dict[int, set[tuple[str, ...]]] = {}
    texts: set[int] = set()
    others: set[int] = set()
    for partition in partitions:
        for place, counted in enumerate(partition):
            if counted.tally is None:
                others.add(place)
                continue
            if counted.holds_text:
                texts.add(place)
            if counted.declared is not None:
                declared.setdefault(place, set()).add(counted.declared)
            if place in merged:
                merged[place][1].merge(counted.tally)
            else:
                merged[place] = counted.column, counted.tally
    for place, orders in declared.items():
        if len(orders) > 1:
            merged[place][1].declared = None
    return {place: merged[place] for place in sorted(texts - others)}
