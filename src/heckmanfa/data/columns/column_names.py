"""The names of columns: of data frames and of files, unique, known, compared and not too many."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.values import as_number, label_of, shape_of
from heckmanfa.data.rows import Positions
from heckmanfa.errors import InputError, TooFewRowsError, UnknownFeatureError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

UNNAMED = "Unnamed: "
"""how pandas begins the name of a column that has none, before its position"""


# Up to so many features, whatever the rows, a fit says which ones are collinear.
_FEW = 1_000
# A triangular factor of more features per row would dwarf the rows themselves.
_FAR_MORE = 4


def refuse_far_more(n_features: int, n_rows: int, which: str = "", rows: str = "rows") -> None:
    """Refuse far more features than rows, before each of them costs time and memory.

    Messages put ``which`` before the features, and call the rows ``rows``.
    """
    if n_features > max(_FEW, _FAR_MORE * n_rows):
        raise TooFewRowsError(
            f"{n_features} {which}features are far too many for {n_rows} {rows}; a fit needs more "
            "rows than features. Leave features out."
        )


def split_labels(labels: Sequence[Any]) -> tuple[tuple[str, ...] | None, tuple[Any, ...] | None]:
    """Split a frame's labels into names, which are text, and labels that go by position.

    The first is None unless all labels are text; the second is None if they are.
    """
    if all(isinstance(label, str) for label in labels):
        return tuple(str.__str__(label) for label in labels), None
    return None, tuple(str.__str__(label) if isinstance(label, str) else label for label in labels)


def refuse_same_labels(labels: Iterable[Any], what: str = "X") -> None:
    """Refuse columns that share a name."""
    index = pd.Index(list(labels), dtype=object)
    if not index.is_unique:
        name = index[index.duplicated()][0]
        raise InputError(f"{what} has two columns named {quoted(name)}; rename one of them")


def check_labels(fitted: tuple[Any, ...] | None, here: tuple[Any, ...] | None) -> None:
    """Refuse columns that go by position and have other labels than in the fit.

    Scikit-learn compares names that are text. The integers from 0 on, in order, are not names:
    pandas gives them to columns without names.
    """
    if fitted is None or here is None or len(fitted) != len(here):
        return
    mine, theirs = pd.Index(fitted, dtype=object), pd.Index(here, dtype=object)
    if mine.equals(theirs):
        return
    unnamed = are_positions(fitted) or are_positions(here)
    if unnamed and not mine.difference(theirs, sort=False).empty:
        return
    raise InputError(
        f"X's columns are named {listed_labels(here)}, and were {listed_labels(fitted)} in the "
        "fit: pass the columns of the fit in its order (names that are text are compared "
        "individually)"
    )


def are_positions(labels: Sequence[Any]) -> bool:
    """Whether labels are the integers from 0 on, in order, so names and positions agree."""
    return tuple(labels) == tuple(range(len(labels)))


def hold_numbers(labels: Sequence[Any]) -> bool:
    """Whether any label is a number."""
    return any(isinstance(label, Number | np.bool_) for label in labels)


def listed_labels(labels: Sequence[Any]) -> str:
    """List the first labels for a message."""
    some = [shown(label, 30) for label in labels[:5]]
    return ", ".join(some) + (f" … ({len(labels)} columns)" if len(labels) > 5 else "")


def refuse_absent(
    wanted: Iterable[str], names: Iterable[str], source: str = "the data", hint: str | None = None
) -> None:
    """Refuse columns that a table does not have, naming all of them.

    Messages call the table ``source``; a ``hint`` replaces the nearest names.
    """
    there = dict.fromkeys(str(name) for name in names)
    absent = list(dict.fromkeys(name for name in wanted if name not in there))
    if not absent:
        return
    if hint is None:
        hint = nearest(absent[0], there) if len(absent) == 1 else ""
    listed = ", ".join(quoted(name) for name in absent)
    raise UnknownFeatureError(f"{source} has no column{'s' * (len(absent) > 1)} {listed}{hint}")


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


_REPEAT = re.compile(r"(.*) \(column (\d+)\)", re.DOTALL)


def repeats_in(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that `tidy_names` numbered, by the name that they share."""
    shared: dict[str, list[str]] = {}
    for name in names:
        match = _REPEAT.fullmatch(name)
        if match and match[1] in names:
            shared.setdefault(match[1], []).append(name)
    return shared


def tidy_names(raw: Sequence[Any], path: Path, *, number_repeats: bool = False) -> list[str]:
    """Return the distinct names of a file's columns, and refuse a row that is not a header.

    Runs of white space become one blank; a column without a name is named by its position. So are
    all but the first of those that share a name if ``number_repeats``; otherwise they are refused.
    """
    blank = [name is None or (isinstance(name, float) and math.isnan(name)) for name in raw]
    names = ["" if no else label_of(name) for name, no in zip(raw, blank, strict=True)]
    named = [name for name in names if name]
    if named and all(as_number(name) is not None or shape_of(name) for name in named):
        called = ", ".join(quoted(name) for name in named[:3]) + (", …" if len(named) > 3 else "")
        raise InputError(
            f"{shown(path)} has no row of names: its columns would be called {called}; put a row "
            "with the names of the columns above the data"
        )
    if 2 * len(named) < len(names):
        raise InputError(
            f"{shown(path)}: the first row names {len(named)} of {len(names)} columns; remove "
            f"titles above the row of names, or pass {option('header_row', ...)}, its number"
        )
    numbers: dict[str, list[str]] = {name: [] for name in named}
    for index, name in enumerate(names, start=1):
        if name:
            numbers[name].append(str(index))
    clashes = [
        f"columns {' and '.join(places)} are called {quoted(name)}"
        for name, places in numbers.items()
        if len(places) > 1
    ]
    if clashes and number_repeats:
        for name, places in numbers.items():
            for place in places[1:]:
                names[int(place) - 1] = f"{name} (column {place})"
    elif clashes:
        raise InputError(f"{shown(path)}: {'; '.join(clashes)}; give each column its own name")
    return [name or f"{UNNAMED}{position}" for position, name in enumerate(names)]


def check_wanted(columns: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Refuse columns that a file does not have, naming all of them."""
    hint = None
    if len(names) == 1:
        hint = f"; its only column is {quoted(names[0])}: are columns separated by , ; | or tabs?"
    refuse_absent(columns, names, shown(path), hint)


def names_or_positions(names: Sequence[str] | None, columns: Positions) -> list[Any]:
    """Name columns the way the user knows them: by name, or by position if X has no names."""
    return [column if names is None else names[column] for column in columns]
