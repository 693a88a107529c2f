"""The units whose total scores a covariance is made of: clusters, or cells of two clusterings.

Rows have the code of one unit each, whatever the covariance. With two clusterings the unit is the
finest one, a cell: rows that share both clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_numbers import as_table, entries, missing_in
from heckmanfa.data.row_rules import refuse_groupless
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.text.option_types import SinglePsu

MOST_CLUSTERINGS = 2


@dataclass(frozen=True, eq=False)
class Cells:
    """The n units whose codes rows have, and what they belong to."""

    n: int
    ways: tuple[Groups, ...] = ()
    """of two clusterings, (n,) the cluster of each cell; empty with one, whose clusters the units
    are"""
    strata: Groups | None = None
    """(n,) the stratum of each primary sampling unit of a survey; None without a survey"""
    fraction: Floats | None = None
    """(H,) share of the population's units that each stratum has sampled; None if nearly none"""
    single_psu: SinglePsu = "error"
    """what to do with strata of a single unit"""

    @classmethod
    def of_ways(cls, codes: Sequence[Groups]) -> tuple[Groups, Cells]:
        """Return the cell of each row and the cells, given the clusters of each clustering."""
        if len(codes) == 1:
            return codes[0], cls(_count(codes[0]))
        first, second = codes
        width = _count(second)
        cells, of_row = np.unique(first * width + second, return_inverse=True)
        return of_row.reshape(-1), cls(len(cells), (cells // width, cells % width))

    def counts(self, seen: Mask) -> tuple[int, ...]:
        """Count the clusters with a row, of each clustering; ``seen`` (n,) says of which cells."""
        if not self.ways:
            return (int(np.count_nonzero(seen)),)
        return tuple(len(np.unique(codes[seen])) for codes in self.ways)


def read_cells(groups: Any, kept: Mask, what: str = "groups") -> tuple[Groups, Cells]:
    """Number the units of the rows that are kept, from 0; others have the code 0."""
    columns = group_columns(groups, what)
    codes = np.zeros(len(kept), dtype=np.intp)
    of_ways = [labelled_groups(column, kept, what)[0][kept] for column in columns]
    codes[kept], cells = Cells.of_ways(of_ways)
    return codes, cells


def group_columns(groups: Any, what: str = "groups") -> list[Any]:
    """Return the clusterings that were passed, one or two; refuse more."""
    frame = nw.from_native(as_table(groups), eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        # By position: Polars takes some names for patterns.
        columns = [frame[:, place].to_native() for place in range(frame.shape[1])]
    else:
        values = entries(groups, what)
        if values.ndim != 2:
            return [groups]
        columns = list(values.T)
    if not 1 <= len(columns) <= MOST_CLUSTERINGS:
        raise InputError(
            f"{what} has {len(columns)} columns, and errors are clustered by one or two: pass "
            "these; of clusters that lie within others, the larger ones"
        )
    return columns


def is_names(groups: Any) -> TypeGuard[Sequence[str]]:
    """Whether these are the names of several columns, not one, and not an entry for each row."""
    listed = isinstance(groups, list | tuple) and 1 < len(groups) <= MOST_CLUSTERINGS
    return listed and all(isinstance(name, str) for name in groups)


def labelled_groups(
    groups: Any, kept: Mask, what: str = "groups"
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Number the groups of the rows that are kept, from 0, and return their labels, sorted."""
    values = entries(groups, what)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim > 1:
        raise InputError(
            f"{what} has shape {values.shape}, and must be one column: pass one of them; of "
            "clusters that lie within others, the larger ones, otherwise those that are fewer"
        )
    if values.ndim == 0 or len(values) != len(kept):
        got = "a single value" if values.ndim == 0 else f"{len(values)}"
        raise InputError(
            f"{what} must have one entry for each of the {len(kept)} rows of X; got {got}"
        )
    missing = missing_in(values)
    refuse_groupless(what, int(np.count_nonzero(missing & kept)))
    # Only the rows of the fit have codes: an empty group is not counted.
    unique, inverse = labels_numbered(values[kept], what)
    codes = np.zeros(len(values), dtype=np.intp)
    codes[kept] = inverse
    return codes, unique


def group_codes(groups: Any, kept: Mask, what: str = "groups") -> tuple[NDArray[np.intp], int]:
    """Number the groups of the rows that are kept, from 0, and count them."""
    codes, labels = labelled_groups(groups, kept, what)
    return codes, len(labels)


def joined_labels(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return one label for each row: a tuple of its labels, or None if one of them is missing.

    A single column is returned as it is.
    """
    if len(columns) == 1:
        return columns[0]
    labels = np.empty(len(columns[0]), dtype=object)
    labels[:] = list(zip(*(column.tolist() for column in columns), strict=True))
    labels[np.any([missing_in(column) for column in columns], axis=0)] = None
    return labels


def cells_of_labels(labels: NDArray[Any], n_columns: int) -> Cells:
    """Return the cells of distinct labels, as `joined_labels` makes them of so many columns."""
    if n_columns == 1:
        return Cells(len(labels))
    ways = [labels_numbered(column, "groups")[1] for column in unjoined(labels, n_columns)]
    return Cells(len(labels), tuple(ways))


def unjoined(labels: NDArray[Any], n_columns: int) -> list[NDArray[Any]]:
    """Return the columns that labels were joined from."""
    parts = list(zip(*labels.tolist(), strict=True)) or [()] * n_columns
    return [np.array(part) for part in parts]


def labels_numbered(values: NDArray[Any], what: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels, sorted, and the number of each entry's."""
    try:
        unique, inverse = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in values})
        verb = "mixes" if len(kinds) > 1 else "holds objects of type"
        raise InputTypeError(
            f"{what} {verb} {' and '.join(kinds)}, which cannot be sorted: give every group a "
            "label of one type, for example with .astype(str)"
        ) from error
    return unique, inverse.reshape(-1)


def _count(codes: Groups) -> int:
    return int(codes.max(initial=-1)) + 1
