"""Row labels: what belongs to the same rows must have the same labels in the same order.

Rows are read by position. pandas labels them, and its own operations match rows by label, so a
shuffled or filtered Series beside a frame that is not would be read as other people's outcomes.
Everything that takes rows and columns beside them passes through `match_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.errors import InputError, RowLabelsWarning, warn
from heckmanfa.text.printable import quoted


def match_rows(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of a method whose row labels say that their rows are not the same.

    ``arguments`` have one entry per row, by name; what has no labels, such as an array or None, is
    taken by position. Labels from 0 to n - 1 are those that pandas gives to rows without any:
    beside other labels, they are taken by position, with a warning.
    """
    unnamed = refuse_other_labels(arguments)
    if unnamed is not None:
        name, other = unnamed
        warn(
            f"the rows of {name} are labelled 0 to n - 1 and those of {other} are not, so they are "
            f"matched by position. If their order is the same, give {name} the index of {other}, "
            f"or pass {other}.to_numpy()",
            RowLabelsWarning,
        )


def refuse_other_labels(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """Refuse labels that contradict each other; return the names of rows without and with labels.

    None if all rows have the same labels. A partition of Dask may number its rows from 0 whatever
    the rows before it are, so there only a contradiction says something.
    """
    labelled = [
        (name, labels)
        for name, values in arguments.items()
        if (labels := _labels(values)) is not None
    ]
    unnamed = None
    for (name, labels), (other, theirs) in combinations(labelled, 2):
        # Other lengths are refused where the arguments are read.
        if labels is theirs or len(labels) != len(theirs) or labels.equals(theirs):
            continue
        reordered = _are_reordered(labels, theirs)
        plain = [_is_plain(labels), _is_plain(theirs)]
        if reordered or not any(plain):
            raise _refusal(name, labels, other, theirs, reordered=reordered)
        unnamed = unnamed or ((name, other) if plain[0] else (other, name))
    return unnamed


def _labels(values: Any) -> pd.Index[Any] | None:
    """Return the row labels of a data frame or a series of pandas; None for anything else."""
    labels = getattr(values, "index", None)
    return labels if isinstance(labels, pd.Index) else None


def _is_plain(labels: pd.Index[Any]) -> bool:
    """Whether labels are the numbers from 0 on, as pandas gives them to rows without labels."""
    if isinstance(labels, pd.RangeIndex):
        return labels.start == 0 and labels.step == 1
    return labels.dtype.kind in "iu" and np.array_equal(labels.to_numpy(), np.arange(len(labels)))


def _are_reordered(labels: pd.Index[Any], theirs: pd.Index[Any]) -> bool:
    if labels.nlevels != theirs.nlevels or labels.has_duplicates != theirs.has_duplicates:
        return False
    return bool(labels.isin(theirs).all() and theirs.isin(labels).all())


def _refusal(
    name: str, labels: pd.Index[Any], other: str, theirs: pd.Index[Any], *, reordered: bool
) -> InputError:
    pairs = enumerate(zip(labels, theirs, strict=True))
    row, mine, its = next(
        ((row, mine, its) for row, (mine, its) in pairs if mine != its), (0, labels[0], theirs[0])
    )
    what = "the row labels of {} in another order" if reordered else "other row labels than {}"
    order = (
        f"{other}.loc[{name}.index] has the order of {name}"
        if reordered and not theirs.has_duplicates
        else f"make {name} and {other} from one table"
    )
    return InputError(
        f"{other} has {what.format(name)}: row {row + 1:,} is {quoted(mine)} in {name} and "
        f"{quoted(its)} in {other}. Rows are matched by position: {order}. If the rows are in the "
        f"right order as they are, pass {other}.to_numpy()"
    )
