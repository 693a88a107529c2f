"""Row sources: where rows are that do not fit into memory, and how a pass reads them.

A `RowSource` knows where its parts are (row groups of files, partitions of a cluster) and runs a
task on each. Only small results leave a part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError

__all__ = ["Chunk", "Reading", "RowSource", "Task", "refuse_rows"]


@dataclass(frozen=True, eq=False)
class Chunk:
    """A few thousand rows as they are stored; None where there is no such column."""

    features: Floats
    """(b, k), the columns that were asked for, NaN where missing"""
    outcome: Floats
    """(b,), NaN where missing"""
    selected: NDArray[Any] | None
    """(b,) truths or numbers, as they are stored"""
    weight: Floats | None
    """(b,), NaN where missing"""
    group: NDArray[Any] | None
    """(b,) of any type that can be sorted; None or NaN where missing"""
    start: int
    """its first row's number in the part"""


@dataclass(frozen=True)
class Reading:
    """What a task wants of a home: columns, and how much of each part."""

    columns: tuple[int, ...]
    """positions of the features to read"""
    block_rows: int
    """rows a chunk; the last one of a part may have fewer"""
    heads: dict[int, int] | None = None
    """the parts to read and how many of the first rows of each; None reads all of all"""

    def head(self, part: int) -> int | None:
        """How many rows of a part to read: None for all, 0 for none."""
        return None if self.heads is None else self.heads.get(part, 0)


Task = Callable[[int, Iterable[Chunk]], Any]


def refuse_rows(X: Any, instead: str | None = None) -> None:
    """Refuse rows that are not in memory where a method needs them there.

    Parameters
    ----------
    X : Any
        What was passed; whatever is in memory passes.
    instead : str, optional
        A call that does the same without loading the rows.
    """
    if not isinstance(X, RowSource):
        return
    if instead is not None:
        raise InputError(
            f"these are {X.described}, which are not in memory: heckmanfa.{instead} writes the "
            "predictions to a file"
        )
    raise InputError(
        f"these are {X.described}, which are not in memory, as this method needs them: read as "
        "many rows as fit, for example by pandas.read_parquet (text columns through "
        "rows.encoding.transform), and pass their features"
    )


class RowSource(ABC):
    """Where parts of rows are, and how a task is run on each of them."""

    names: tuple[str, ...] | None
    """of the features; None where they are known by position"""
    labels_given: tuple[Any, ...] | None = None
    """what a frame calls its columns where that is not text"""
    n_features: int
    has_selected: bool
    """whether a column says who is selected; else those with an outcome are"""
    has_weight: bool
    has_groups: bool
    drops_missing: bool = False
    """whether rows that miss a feature are left out; else they are refused"""

    @property
    def feature_groups(self) -> list[list[str]]:
        """Features that a search moves as one unless it is told otherwise."""
        return []

    @property
    def dummies(self) -> dict[str, list[str]]:
        """The features of each column that became one or several others."""
        return {}

    @property
    @abstractmethod
    def described(self) -> str:
        """The rows and where they are in a few words: "rows of 12 Parquet files"."""

    @abstractmethod
    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts.

        A task can be pickled, and what it returns is small. A part that is not to be read
        (``reading.head(part) == 0``) gives nothing.
        """
