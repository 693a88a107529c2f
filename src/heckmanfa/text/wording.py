"""Lists of names, and other phrases that several reports share."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.text.printable import shown

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
