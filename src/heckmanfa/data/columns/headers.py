"""The header of a table: the row with the names of its columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heckmanfa.data.columns.features import refuse_absent
from heckmanfa.data.columns.values import as_number, label_of, shape_of
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, shown

UNNAMED = "Unnamed: "
"""how pandas begins the name of a column that has none, before its position"""


def tidy_names(raw: Sequence[Any], path: Path) -> list[str]:
    """Return the distinct names of a file's columns, and refuse a row that is not a header.

    Runs of white space become one blank; a column without a name is named by its position.
    """
    names = ["" if _is_blank(name) else label_of(name) for name in raw]
    given = [name for name in names if name]
    if given and all(as_number(name) is not None or shape_of(name) for name in given):
        called = ", ".join(quoted(name) for name in given[:3]) + (", …" if len(given) > 3 else "")
        raise InputError(
            f"{shown(path)} has no row of names: its columns would be called {called}; put a row "
            "with the names of the columns above the data"
        )
    if 2 * len(given) < len(names):
        raise InputError(
            f"{shown(path)}: the first row names {len(given)} of {len(names)} columns; remove "
            "titles above the row of names"
        )
    clashes = []
    for name in dict.fromkeys(given):
        numbers = [str(index) for index, other in enumerate(names, start=1) if other == name]
        if len(numbers) > 1:
            clashes.append(f"columns {' and '.join(numbers)} are called {quoted(name)}")
    if clashes:
        raise InputError(f"{shown(path)}: {'; '.join(clashes)}; give each column its own name")
    return [name or f"{UNNAMED}{position}" for position, name in enumerate(names)]


def _is_blank(name: Any) -> bool:
    return name is None or (isinstance(name, float) and math.isnan(name))


def check_wanted(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Refuse columns that a file does not have, naming all of them."""
    hint = None
    if len(names) == 1:
        hint = f"; its only column is {quoted(names[0])}: are columns separated by , ; | or tabs?"
    refuse_absent(columns, names, shown(path), hint)
