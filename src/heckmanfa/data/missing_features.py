"""Rows to predict for that lack a feature: one rule, wherever the rows are.

Such a row has no prediction. Methods that return predictions refuse it, or return NaN with
``missing="nan"``. Methods that write a file of predictions have a row for each row of the data:
they leave the cell empty and count these rows, or refuse them with ``missing="error"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import host, namespace
from heckmanfa.data.columns.features import FeatureTable, feature_blocks
from heckmanfa.data.rows import Positions
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.text.option_words import MISSING
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

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
        mine = dict(self.columns)
        for name, count in other.columns.items():
            mine[name] = mine.get(name, 0) + count
        return Gaps(self.n_rows + other.n_rows, self.n_missing + other.n_missing, mine)

    def of_sources(self, sources: Mapping[str, str]) -> Gaps:
        """Name features by the columns of a table that they were made from."""
        counts: dict[str, int] = {}
        for name, count in self.columns.items():
            source = sources.get(name, name)
            counts[source] = max(counts.get(source, 0), count)
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
    return Gaps(table.shape[0], n_missing, _counted(labels, empty))


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
