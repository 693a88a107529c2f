"""Folds of whole groups that each hold both kinds of row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.errors import InputError

__all__ = ["whole_groups"]


def whole_groups(
    kinds: NDArray[np.intp], groups: NDArray[np.intp], n_folds: int, order: Any = None
) -> NDArray[np.intp]:
    """Put groups of rows into folds, with a share of both kinds of row in each.

    Groups go one by one, the largest first, where their kinds of row are rarest so far; never to
    a fold that would leave another one without both kinds.

    Parameters
    ----------
    kinds : (n,) ndarray of int
        0 and 1 are the kinds that every fold needs; 2 is neither.
    groups : (n,) ndarray of int
        Numbers from 0.
    n_folds : int
    order : RandomState, optional
        Shuffles the groups first.

    Returns
    -------
    (n,) ndarray of int
        The fold of each row.
    """
    n_groups = int(groups.max()) + 1
    counts = np.zeros((n_groups, 3))
    np.add.at(counts, (groups, kinds), 1)
    holds = counts[:, :2] > 0
    _refuse_too_many(holds, n_folds)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    places = np.arange(n_groups) if order is None else order.permutation(n_groups)
    places = places[np.argsort(-shares[places].max(axis=1), kind="stable")]
    filled = np.zeros((n_folds, 3))
    has = np.zeros((n_folds, 2), dtype=bool)
    # How many groups to come hold kind 0 alone, kind 1 alone, and both.
    left = np.array([holds @ [1, 2] == one for one in (1, 2, 3)]).sum(axis=1)
    fold_of = np.zeros(n_groups, dtype=np.intp)
    for group in places:
        kind = int(holds[group] @ [1, 2]) - 1
        if kind >= 0:
            left[kind] -= 1
        # To add a share d to a share p adds 2 p d, and what is the same everywhere, to the sum
        # of squares that equal shares would make least; ties go to the fold with fewest rows.
        cost = filled @ shares[group]
        for fold in np.lexsort((filled.sum(axis=1), cost)):
            then = has.copy()
            then[fold] |= holds[group]
            if _can_be_filled(then, left):
                break
        has, filled[fold] = then, filled[fold] + shares[group]
        fold_of[group] = fold
    return fold_of[groups]


def _can_be_filled(has: NDArray[np.bool_], left: NDArray[np.intp]) -> bool:
    """Whether groups that are left can give every fold both kinds of row."""
    first, second, both = (int(one) for one in left)
    lack_first = int(np.count_nonzero(~has[:, 0] & has[:, 1]))
    lack_second = int(np.count_nonzero(has[:, 0] & ~has[:, 1]))
    empty = int(np.count_nonzero(~has.any(axis=1)))
    needed = max(lack_first - first, 0) + max(lack_second - second, 0)
    pairs = min(max(first - lack_first, 0), max(second - lack_second, 0), empty)
    return needed + empty - pairs <= both


def _refuse_too_many(holds: NDArray[np.bool_], n_folds: int) -> None:
    both = int(np.count_nonzero(holds.all(axis=1)))
    other, selected = (int(np.count_nonzero(one)) - both for one in holds.T)
    most = both + min(other, selected)
    if most < n_folds:
        raise InputError(
            f"{n_folds} folds of whole groups cannot all hold selected and other rows: of "
            f"{len(holds)} groups, {both} hold both, {selected} selected rows only and {other} "
            f"other rows only. Use "
            + (f"{most} folds or fewer" if most > 1 else "larger groups, or none")
        )
