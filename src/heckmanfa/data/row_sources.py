"""Row sources: where rows that do not fit in memory are, and how a pass reads them.

A `RowSource` knows where its parts are (row groups of files, partitions of a cluster) and runs a
task on each. Only small results leave a part. A fit makes a pass per iteration, and a query with a
random sample, or with a column that is shuffled, gives other rows each time. `RowSums` agree up to
rounding if the rows are the same, whatever their order; passes over other rows are refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats, product
from heckmanfa.data.rows import Block, Positions, Source
from heckmanfa.errors import DataError, InputError

OutcomeAs = Literal["numbers", "labels"] | tuple[Any, ...]
"""how a source reads its outcome: as numbers, as `Labels`, or as the places of classes"""


@dataclass(frozen=True, eq=False)
class Chunk:
    """A few thousand rows as they are stored; None if there is no such column."""

    features: Floats
    """(b, k), the requested columns, NaN where missing"""
    outcome: Any
    """(b,) numbers, NaN where missing, unless the source reads labels"""
    selected: NDArray[Any] | None
    """(b,) booleans or numbers, as they are stored"""
    weight: Floats | None
    """(b,), NaN where missing"""
    group: NDArray[Any] | None
    """(b,) of any type that can be sorted; None or NaN where missing"""
    start: int
    """position of its first row in the part"""
    subpop: NDArray[Any] | None = None
    """(b,) who is in the subpopulation, as `selected` is stored"""

    @property
    def outside(self) -> NDArray[np.bool_] | None:
        """(b,) who is not in the subpopulation; None without one."""
        return None if self.subpop is None else np.asarray(self.subpop != 1)


def cut_chunks(
    source: Source, columns: Sequence[Any], block_rows: int, start: int = 0
) -> Iterator[Chunk]:
    """Cut rows into chunks.

    ``columns`` are the outcome, who is selected, weights, groups and who is in the subpopulation;
    ``start`` is the position of the first row in its part.
    """
    n, k = source.shape
    for low in range(0, n, block_rows):
        high = min(low + block_rows, n)
        parts = (None if column is None else column[low:high] for column in columns)
        outcome, selected, weight, group, subpop = parts
        assert outcome is not None
        features = source.take(low, high, range(k))
        yield Chunk(features, outcome, selected, weight, group, start + low, subpop)


@dataclass(frozen=True)
class Reading:
    """What a task reads: columns, and how much of each part."""

    columns: tuple[int, ...]
    """positions of the features to read"""
    block_rows: int
    """rows per chunk; the last chunk of a part may have fewer"""
    heads: dict[int, int] | None = None
    """the parts to read and how many of the first rows of each; None reads all of all"""

    def head(self, part: int) -> int | None:
        """Number of rows of a part to read; None for all."""
        return None if self.heads is None else self.heads.get(part, 0)


CategoryType = Literal["category", "named", "text", "objects"]
"""what makes a column a category: its type, the user, text, or objects that are all text"""
Task = Callable[[int, Iterable[Chunk]], Any]
Counts = TypeVar("Counts")


def refuse_rows(X: Any, options: str | None = None) -> None:
    """Refuse rows that are not in memory.

    ``options`` of a prediction are written into the calls that do not load the rows; None says that
    there are no such calls.
    """
    if not isinstance(X, RowSource):
        return
    if options is not None:
        raise InputError(
            f"these are {X.described}, which are not in memory: "
            f"heckmanfa.predict_parquet(model, rows, out{options}) writes their predictions to a "
            f"file, and heckmanfa.predict_batches(model, rows{options}) yields them in batches"
        )
    raise InputError(
        f"these are {X.described}, which are not in memory, as this method needs them: read as "
        "many rows as fit, for example with pandas.read_parquet (text columns through "
        "rows.encoding.transform), and pass their features"
    )


def refuse_beside(arguments: Mapping[str, Any]) -> None:
    """Refuse what was passed beside rows that define it themselves."""
    extra = [name for name, value in arguments.items() if value is not None]
    if extra:
        raise InputError(
            f"these rows already define {extra[0]}: pass the rows alone, and name the columns "
            "where the rows are made"
        )


def refuse_no_outcome(rows: RowSource) -> None:
    """Refuse rows whose outcome nobody named, where they are to be fitted or scored."""
    if not rows.has_outcome:
        raise InputError(
            f"these {rows.described} have no outcome, so they can be predicted, but neither fitted "
            "nor scored: name its column, heckmanfa.scan(..., outcome=...)"
        )


class RowSource(ABC):
    """Where parts of rows are, and how a task runs on each of them."""

    names: tuple[str, ...] | None
    """names of the features; None if they count by position"""
    labels_given: tuple[Any, ...] | None = None
    """labels of a frame's columns that are not text"""
    n_features: int
    has_outcome: bool = True
    """whether a column is the outcome; otherwise the rows can be predicted, but not fitted"""
    outcome_name: str | None = None
    """name of that column, if it has one"""
    has_selected: bool
    """whether a column says who is selected; otherwise rows with an outcome are"""
    has_weight: bool
    has_groups: bool
    groupings: tuple[str, ...] = ()
    """names of the columns that the groups are made of, if they have names"""
    survey: Any = None
    """the `heckmanfa.data.survey.Survey` whose columns the groups are, if they are one's"""
    declared: Any = None
    """the one that the rows were scanned with; a fit makes it theirs"""
    has_subpop: bool = False
    """whether a column says who is in the subpopulation"""
    replicates: tuple[str, ...] = ()
    """columns of replicate weights"""
    drops_missing: bool = False
    """whether rows that lack a feature are left out; otherwise they are refused"""
    outcome_as: OutcomeAs = "numbers"
    """how chunks hold the outcome"""
    reference: Mapping[str, str] = MappingProxyType({})
    """levels that the user names as references, by category"""
    order_is_stable: bool = True
    """whether every pass gets the rows in the same order; otherwise bits may differ between fits"""
    reads_parts: bool = True
    """whether some parts can be read at less cost than all of them"""
    steady: str = "wait until nobody writes to them, and fit again"
    """what to do if two passes read different rows"""
    column_types: Any = None
    """a frame without rows that has the types of raw columns; None if they have no types"""

    @property
    def encoding(self) -> Any:
        """How columns of the data become features, an `Encoding`; None if all are numbers."""
        return None

    @property
    def is_raw(self) -> bool:
        """Whether a fit may encode the columns: they are as the data stores them."""
        return False

    @property
    @abstractmethod
    def described(self) -> str:
        """A short description: "rows of 12 Parquet files"."""

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """The two classes that the outcome is read by; None if it holds numbers."""
        return self.outcome_as if isinstance(self.outcome_as, tuple) else None

    def reading_outcome(self, outcome_as: OutcomeAs) -> Self:
        """Return the same rows, with the outcome read in another way."""
        changed = copy(self)
        changed.outcome_as = outcome_as
        return changed

    @abstractmethod
    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts.

        A task can be pickled, and its results are small. Parts that are not to be read
        (``reading.head(part) == 0``) yield nothing.
        """

    def reweighted(self, name: str) -> Self:
        """Return the same rows, without groups, weighted by a column of replicate weights.

        Rows that have no weight in the fit have none there.
        """
        raise NotImplementedError

    def of_replicates(self) -> RowSource:
        """Return the same rows, with their replicate weights as features."""
        raise NotImplementedError

    def learn_levels(self, categories: Mapping[int, CategoryType]) -> dict[int, tuple[str, ...]]:
        """Learn the levels of some raw columns, by position, in one pass over the rows.

        Objects that are not text have none, and neither have columns that the source encodes.
        """
        return {}

    @abstractmethod
    def re_encoded(self, encoding: Any, unknown: Literal["error", "missing"] = "missing") -> Self:
        """Return the same rows as an `Encoding` of the same columns makes them.

        ``unknown`` says what to do with levels that the encoding does not have.
        """


def add_fields(counts: Counts, others: Counts, **merged: Any) -> Counts:
    """Add the counts of several rows field by field, except for fields that are ``merged``."""
    names = [field.name for field in fields(counts)]  # type: ignore[arg-type]
    sums = {
        name: getattr(counts, name) + getattr(others, name) for name in names if name not in merged
    }
    return type(counts)(**sums, **merged)


# Sums over the same rows differ by less, relative to the largest that they can be; a row that
# changes one of ten million moves them by more.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over the rows of a fit; those of several blocks add up.

    Rows are multiplied by themselves and by who is selected, the outcome and the weight, so that a
    sum also changes if a column is shuffled and the others are not.
    """

    n_rows: int = 0
    n_selected: int = 0
    products: Any = 0.0
    """(v, 1 + k): one, selected, the outcome and the weight, times one and each of k features"""
    squares: Any = 0.0
    """(v,) sums of squares of the former"""
    feature_squares: Any = 0.0
    """(1 + k,) sums of squares of the latter; 0 if only `products` are needed"""

    @classmethod
    def of(cls, block: Block, mean_weight: float = 1.0, *, with_squares: bool = False) -> RowSums:
        """Add up the rows of a block, whose weights were divided by ``mean_weight``."""
        n = len(block.outcome)
        known = np.ones((3 if block.weight is None else 4, n))
        known[1] = block.selected
        known[2] = np.where(block.selected, block.outcome, 0.0)
        if block.weight is not None:
            np.multiply(block.weight, mean_weight, out=known[3])
        features = block.features
        # Numbers too large to be multiplied are not compared.
        with np.errstate(over="ignore", invalid="ignore"):
            products = product(known, features)
            if not np.isfinite(products).all():
                # Rows that are not selected may lack a feature.
                features = np.nan_to_num(features, posinf=0.0, neginf=0.0)
                products = product(known, features)
            squares: Any = 0.0
            feature_squares: Any = 0.0
            if with_squares:
                squares = np.einsum("ij,ij->i", known, known)
                feature_squares = np.r_[n, np.einsum("ij,ij->j", features, features)]
        return cls(
            n_rows=n,
            n_selected=int(np.count_nonzero(block.selected)),
            products=np.column_stack([known.sum(axis=1), products]),
            squares=squares,
            feature_squares=feature_squares,
        )

    def moved(self, places: Sequence[int | None]) -> RowSums:
        """Return the sums of other columns, given the place of each here.

        Columns that have none are not compared.
        """
        known = [0, *(0 if place is None else 1 + place for place in places)]
        new = np.array([False, *(place is None for place in places)])
        return replace(
            self,
            products=np.where(new, np.nan, self.products[:, known]),
            feature_squares=self.feature_squares[known],
        )

    def __add__(self, other: RowSums) -> RowSums:
        return add_fields(self, other)

    def refuse_others(
        self, later: RowSums, columns: Positions, described: str, steady: str
    ) -> None:
        """Refuse the rows of a later pass if they are not these.

        The later pass read the features at ``columns``. ``described`` are the rows in words, and
        ``steady`` says what to do.
        """
        read = [0, *(1 + column for column in columns)]
        counts = (self.n_rows, self.n_selected), (later.n_rows, later.n_selected)
        if counts[0] != counts[1]:
            before, now = (f"{rows:,} rows, {selected:,} selected" for rows, selected in counts)
            said = f"this pass gave {now}, and an earlier one {before}"
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                most = np.outer(np.sqrt(self.squares), np.sqrt(self.feature_squares[read]))
                change = np.abs(later.products - self.products[:, read])
                if not (change > _ROUNDING * most).any():
                    return
            said = "this pass gave as many rows as an earlier one, with other values"
        raise DataError(
            f"the {described} are not the same in every pass: {said}. A fit needs the same rows "
            f"in every pass: {steady}"
        )
