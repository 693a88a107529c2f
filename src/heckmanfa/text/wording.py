"""Lists of names, suggestions for misspelled ones, and phrases that several reports share."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path

from heckmanfa.text.printable import quoted, shown

CRITERIA = {"adjusted_r2": "adjusted R2", "bic": "BIC", "aic": "AIC"}

MAX_NAMES = 8
"""Sentences name this many at most; `some` cuts longer lists."""


def listed(names: Sequence[str]) -> str:
    """Name all, as in 'a, b and c'."""
    names = [shown(name) for name in names]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def some(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Name all, or only the first of a long list."""
    if len(names) <= most:
        return listed(names)
    first = [shown(name) for name in names[: most - 2]]
    return f"{', '.join(first)} and {len(names) - len(first)} more"


def weighing(kind: str, rows: int, total: float | None) -> str:
    """Say how weights change a number of rows: a phrase that begins with a comma, or nothing.

    ``total`` is the sum of the weights, None without weights.
    """
    if total is None:
        return ""
    if kind == "sampling":
        return ", weighted by the sampling weights"
    if total == rows:
        return ""
    return f", which the weights count as {total:,.0f}" if total.is_integer() else ", weighted"


# Closer than this, two names of files are alike.
_CLOSE_FILES = 0.7


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names to one that does not exist."""
    return _suggested(difflib.get_close_matches(name, list(names), n=3, cutoff=0.6))


def nearest_file(name: str, names: Iterable[str]) -> str:
    """Suggest the files with the closest names and the same ending as one that does not exist."""
    stem, ending = Path(name).stem, Path(name).suffix.lower()
    files = {Path(file).stem: file for file in names if Path(file).suffix.lower() == ending}
    close = difflib.get_close_matches(stem, list(files), n=3, cutoff=_CLOSE_FILES)
    # One wrong letter is a large share of a short name.
    typos = [
        other
        for other in files
        if len(other) == len(stem) and sum(map(operator.ne, other, stem)) == 1
    ]
    return _suggested([files[other] for other in close or typos[:3]])


def _suggested(close: Sequence[str]) -> str:
    return f". Did you mean {' or '.join(quoted(name) for name in close)}?" if close else ""
