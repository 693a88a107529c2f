"""Where effects are evaluated: at which values of columns, and over which groups of rows.

Every combination of fixed values, in every group, is a cell with effects of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import on_host
from heckmanfa.data.columns.column_numbers import as_table
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.sample import labelled_groups
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
class RowGroups:
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
    found = list(values) if several else [values]
    # PyArrow yields its own scalars.
    found = [value.as_py() if hasattr(value, "as_py") else value for value in found]
    if not found:
        raise InputError(f"at: {quoted(name)} has no value; give it one, or leave it out")
    for place, value in enumerate(found):
        if any(_equal(value, other) for other in found[:place]):
            raise InputError(f"at: {quoted(name)} has the value {quoted(value)} twice")
    return tuple(found)


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


def read_groups(over: Any, n: int) -> RowGroups:
    """Number the groups of n rows, in the order of their labels.

    Categories have the order in which they are declared.
    """
    over = on_host(over)
    codes, found = labelled_groups(over, np.ones(n, dtype=bool), "over")
    if len(found) > _MOST_GROUPS:
        raise InputError(
            f"over has {len(found):,} groups, and at most {_MOST_GROUPS:,} are allowed; cut a "
            "column of numbers into classes first"
        )
    labels = [label.item() if hasattr(label, "item") else label for label in found]
    declared = _declared(over)
    if declared is not None:
        order = sorted(range(len(labels)), key=lambda place: declared.index(labels[place]))
        back = np.argsort(order)
        return RowGroups(back[codes], tuple(labels[place] for place in order))
    return RowGroups(codes, tuple(labels))


def _declared(over: Any) -> list[Any] | None:
    """Return the declared categories of a column; None if it has none."""
    if isinstance(getattr(over, "dtype", None), pd.CategoricalDtype):
        return list(over.dtype.categories)
    series = nw.from_native(as_table(over), allow_series=True, pass_through=True)
    dtype = series.dtype if isinstance(series, nw.Series) else None
    return list(dtype.categories) if isinstance(dtype, nw.Enum) else None
