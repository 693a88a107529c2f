"""The row of names above a table, and which of its columns are wanted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heckmanfa.data.columns.features import nearest
from heckmanfa.data.columns.numerals import shape_of
from heckmanfa.data.columns.values import as_number, label_of
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.printable import quoted, shown

__all__ = ["UNNAMED", "check_wanted", "tidy_names"]

UNNAMED = "Unnamed: "
"""what pandas calls a column without a name, before its position"""


def tidy_names(raw: Sequence[Any], path: Path) -> list[str]:
    """Return the columns' names, runs of white space as one blank, and refuse what is no header.

    Parameters
    ----------
    raw : sequence
        As the file has them.
    path : Path
        For the message.

    Returns
    -------
    list of str
        Distinct; a column without a name gets one from its position.
    """
    names = ["" if _is_blank(one) else label_of(one) for one in raw]
    given = [one for one in names if one]
    if given and all(as_number(one) is not None or shape_of(one) for one in given):
        called = ", ".join(quoted(one) for one in given[:3]) + (", …" if len(given) > 3 else "")
        raise InputError(
            f"{shown(path)} has no row of names: its columns would be called {called}; put a row "
            "with the "
            "names of the columns above the data"
        )
    if 2 * len(given) < len(names):
        raise InputError(
            f"{shown(path)}: the first row names {len(given)} of {len(names)} columns; remove "
            "titles "
            "above the row of names"
        )
    twice = {one: places for one in given if len(places := _places(one, names)) > 1}
    if twice:
        said = "; ".join(
            f"columns {' and '.join(str(place + 1) for place in places)} are called {quoted(one)}"
            for one, places in twice.items()
        )
        raise InputError(f"{shown(path)}: {said}; give each column its own name")
    return [one or f"{UNNAMED}{place}" for place, one in enumerate(names)]


def _is_blank(name: Any) -> bool:
    return name is None or (isinstance(name, float) and math.isnan(name))


def _places(name: str, names: Sequence[str]) -> list[int]:
    return [place for place, one in enumerate(names) if one == name]


def check_wanted(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Refuse columns that a table does not have, naming all of them."""
    absent = [one for one in columns if one not in names]
    if not absent:
        return
    said = ", ".join(quoted(one) for one in absent)
    hint = nearest(absent[0], names) if len(absent) == 1 else ""
    if len(names) == 1:
        hint = f"; its only column is {quoted(names[0])}: are columns separated by , ; | or tabs?"
    raise UnknownFeatureError(
        f"{shown(path)} has no column{'s' if len(absent) > 1 else ''} {said}{hint}"
    )
