"""Which home rows have that are not in memory, found by what the user passes as X."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.row_parts import Home
from heckmanfa.errors import InputError

__all__ = ["find_home", "in_memory", "is_dask"]


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask, without importing it."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def in_memory(*values: Any) -> list[Any]:
    """Return Dask collections as NumPy arrays, computed together, and anything else as it is."""
    lazy = [is_dask(one) for one in values]
    if not any(lazy):
        return list(values)
    import dask

    return [
        np.asarray(one) if was else one
        for one, was in zip(dask.compute(*values, traverse=False), lazy, strict=True)
    ]


def find_home(X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any) -> Home | None:
    """Return where rows are that are not in memory, or None where they are.

    Parameters
    ----------
    X, y, selected, sample_weight, groups
        As they are passed to a fit.

    Returns
    -------
    Home or None
    """
    if isinstance(X, Home):
        given = {"y": y, "selected": selected, "sample_weight": sample_weight, "groups": groups}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise InputError(
                f"these rows say themselves what {extra[0]} is: call fit(rows) alone, and name "
                "the columns where the rows are made"
            )
        return X
    if is_dask(X):
        from heckmanfa.data.dask.dask_rows import home_of

        return home_of(X, y, selected, sample_weight, groups)
    return None
