"""Where effects are evaluated: at which values of columns, and over which groups of rows.

Every combination of fixed values, in every group, is a cell with effects of its own. In a model
from arrays each column is a feature. In a model from formulas a feature is a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats, on_host
from heckmanfa.data.columns.column_numbers import as_table
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.group_cells import labelled_groups
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import read_weights
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest

What = Literal["effects", "predictions"]
WHAT: tuple[What, ...] = ("effects", "predictions")
_AT = ("average", "means")
_SHOWN = 8
_MOST_GROUPS = 1000


@dataclass(frozen=True)
class Where:
    """Where effects, or predictions, are evaluated."""

    means: bool = False
    """at the average row rather than in every row"""
    fixed: tuple[tuple[Any, tuple[Any, ...]], ...] = ()
    """columns, or variables of formulas, and the values at which each is fixed in turn"""
    over: Any = None
    """the name of a column of groups, or the group of each row; None for one group"""
    predictions: bool = False
    """whether expectations themselves are asked for, and not the effects of features on them"""

    def combinations(self) -> list[tuple[Any, ...]]:
        """Return every combination of fixed values, in the order of the columns."""
        return list(product(*(values for _, values in self.fixed)))


@dataclass(frozen=True)
class GroupCodes:
    """The group of each row."""

    codes: NDArray[np.intp]
    """(n,)"""
    labels: tuple[Any, ...]


def read_where(at: Any, over: Any, what: str) -> Where:
    """Read the parameters of `Heckman.margins` that say where effects are evaluated."""
    if what not in WHAT:
        raise InputError(
            f"what must be 'effects' or 'predictions'; got {quoted(what)}{nearest(str(what), WHAT)}"
        )
    predictions = what == "predictions"
    if isinstance(at, Mapping):
        if not at:
            raise InputError("at is empty; name a column and its values, as in at={'educ': 12}")
        fixed = tuple((name, _values(name, values)) for name, values in at.items())
        return Where(False, fixed, over, predictions)
    if not isinstance(at, str) or at not in _AT:
        raise InputError(
            "at must be 'average', 'means', or columns with their values, as in "
            f"{{'educ': 12}}; got {quoted(at)}{nearest(str(at), _AT)}"
        )
    return Where(at == "means", (), over, predictions)


def _values(name: Any, values: Any) -> tuple[Any, ...]:
    """Return the values that a column is fixed at: those in a list, or a single one."""
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    fixed = list(values) if several else [values]
    # PyArrow yields its own scalars.
    fixed = [value.as_py() if hasattr(value, "as_py") else value for value in fixed]
    if not fixed:
        raise InputError(f"at: {quoted(name)} has no value; give it one, or leave it out")
    for place, value in enumerate(fixed):
        if any(_equal(value, other) for other in fixed[:place]):
            raise InputError(f"at: {quoted(name)} has the value {quoted(value)} twice")
    return tuple(fixed)


def _equal(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def fixed_number(name: Any, value: Any) -> float:
    """Return the value of a column of numbers; refuse what is not a finite number."""
    try:
        number = float(value) if isinstance(value, Real | np.bool_) else np.nan
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise InputError(f"at: {quoted(name)} holds finite numbers; got {quoted(value)}")
    return number


def fixed_level(name: Any, value: Any, levels: Sequence[Any]) -> int:
    """Return the place of a category's value among its levels; refuse one that is not there."""
    names = [label_of(level) for level in levels]
    wanted = label_of(value)
    if wanted not in names:
        raise InputError(
            f"at: {quoted(name)} has no level {quoted(value)}; it has "
            f"{quoted_list(names, _SHOWN)}{nearest(wanted, names)}"
        )
    return names.index(wanted)


def read_groups(over: Any, n: int) -> GroupCodes:
    """Number the groups of n rows, in the order of their labels.

    Categories have the order in which they are declared.
    """
    over = on_host(over)
    codes, raw_labels = labelled_groups(over, np.ones(n, dtype=bool), "over")
    if len(raw_labels) > _MOST_GROUPS:
        raise InputError(
            f"over has {len(raw_labels):,} groups, and at most {_MOST_GROUPS:,} are allowed; cut a "
            "column of numbers into classes first"
        )
    labels = [label.item() if hasattr(label, "item") else label for label in raw_labels]
    declared = declared_order(over)
    if declared is not None:
        order = sorted(range(len(labels)), key=lambda place: declared.index(labels[place]))
        back = np.argsort(order)
        return GroupCodes(back[codes], tuple(labels[place] for place in order))
    return GroupCodes(codes, tuple(labels))


def declared_order(over: Any) -> list[Any] | None:
    """Return the declared categories of a column; None if it has none."""
    if isinstance(getattr(over, "dtype", None), pd.CategoricalDtype):
        return list(over.dtype.categories)
    series = nw.from_native(as_table(over), allow_series=True, pass_through=True)
    dtype = series.dtype if isinstance(series, nw.Series) else None
    return list(dtype.categories) if isinstance(dtype, nw.Enum) else None


@dataclass(frozen=True)
class Change:
    """What a change does to a design (n, 1 + k): slopes of its columns, or their new values."""

    slopes: Floats | None = None
    """(n, 1 + k), or (1, 1 + k) if they are the same in every row"""
    before: Floats | None = None
    after: Floats | None = None

    def average(self, weight: Floats) -> Change:
        """Average over the rows, by weights that sum to one."""
        designs = (self.slopes, self.before, self.after)
        return Change(
            *(None if columns is None else weight[None, :] @ columns for columns in designs)
        )


@dataclass(frozen=True)
class ColumnMove:
    """A change in columns of a design, by their places in it."""

    after: dict[int, float]
    """values after the change; of a slope, its columns"""
    before: dict[int, float] | None = None
    """values before it; None for a slope"""
    products: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """places of products that move along, and those of their factors"""

    def change(self, design: Floats, width: int | None = None) -> Change:
        """Return what it does to the first ``width`` columns; factors may come after these."""
        if self.before is not None:
            before, after = (self._at(design, values) for values in (self.before, self.after))
            return Change(before=before[:, :width], after=after[:, :width])
        slopes = np.zeros((len(design) if self.products else 1, design[:, :width].shape[1]))
        slopes[:, list(self.after)] = 1.0
        for target, factors in self.products:
            for place, factor in enumerate(factors):
                if factor in self.after:
                    others = [*factors[:place], *factors[place + 1 :]]
                    slopes[:, target] += design[:, others].prod(axis=1)
        return Change(slopes=slopes)

    def _at(self, design: Floats, values: dict[int, float]) -> Floats:
        moved = with_values(design, values)
        for target, factors in self.products:
            moved[:, target] = moved[:, list(factors)].prod(axis=1)
        return moved


def with_values(design: Floats, values: dict[int, float]) -> Floats:
    """Return a design in which columns, by their places, have other values."""
    design = design.copy()
    for place, value in values.items():
        design[:, place] = value
    return design


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


class NamedChange(NamedTuple):
    """A change whose effect is asked for."""

    term: str
    words: str
    """"slope", or the values before and after"""
    moved: frozenset[int]
    """columns of X that it moves"""
    contrast: tuple[Any, Any] | None = None
    """levels before and after, of a variable or a category; None for a slope"""


@dataclass(frozen=True)
class EffectRows:
    """Rows at which effects are evaluated, and the changes whose effects are asked for."""

    changes: list[NamedChange]
    """none of predictions"""
    n_rows: int
    cells: list[Cell]
    """groups in their order, and in each every combination of fixed values"""
    total: float | None
    """sum of the weights; None without weights"""
    n_left_out: int = 0
    """rows in which a variable is missing"""
    notes: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """names of the columns that are fixed"""

    def blocks(self) -> Blocks:
        """Return the blocks of rows that are all in one cell."""
        (cell,) = self.cells
        return cell.blocks()


@dataclass(frozen=True)
class RowGroup:
    """The rows of a group, or all rows."""

    shares: Floats
    """(n,) shares of all rows in their average, which sum to one"""
    n_rows: int
    label: Any = None
    groups: GroupCodes | None = None
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


def row_groups(over: Any, shares: Floats) -> list[RowGroup]:
    """Split rows into groups, given their shares in an average over all of them."""
    if over is None:
        return [RowGroup(shares, len(shares))]
    groups = read_groups(over, len(shares))
    totals = np.bincount(groups.codes, weights=shares)
    counts = np.bincount(groups.codes)
    for label, total in zip(groups.labels, totals, strict=True):
        if total == 0.0:
            raise InputError(f"over: every row of the group {quoted(label)} has the weight zero")
    return [
        RowGroup(shares, int(counts[group]), label, groups, group, float(totals[group]))
        for group, label in enumerate(groups.labels)
    ]


V = TypeVar("V")


def cells_of(
    groups: Sequence[RowGroup],
    where: Where,
    values: Sequence[V],
    blocks: Callable[[RowGroup, V], Blocks],
) -> list[Cell]:
    """Return the cells of some groups, given what each combination of fixed values sets."""
    return [
        Cell(partial(blocks, group, setting), group.n_rows, fixed, group.label)
        for group in groups
        for fixed, setting in zip(where.combinations(), values, strict=True)
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
