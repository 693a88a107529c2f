"""How numbers and lists of names are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heckmanfa.results.document import listed
from heckmanfa.text.printable import shown

__all__ = [
    "CRITERIA",
    "SHOWN",
    "count",
    "listed",
    "number",
    "p_value",
    "plural",
    "some",
    "weighing",
]

CRITERIA = {"adjusted_r2": "adjusted R2", "bic": "BIC", "aic": "AIC"}

SHOWN = 8
"""So many names are read in a sentence; longer lists are cut."""

# Beyond these a number is clearer with an exponent.
_SMALL, _LARGE = 1e-4, 1e7


def number(value: float, digits: int = 4) -> str:
    """Write a number with so many significant digits; nothing where it is not known."""
    value = float(value)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0:
        return "0"
    size = abs(value)
    if size < _SMALL or size >= _LARGE:
        return f"{value:.{digits - 1}e}"
    # Rounding may carry into another digit: 9.9996 is 10.00 and not 10.000.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return f"{value:,.{decimals}f}"


def p_value(value: float) -> str:
    """Write a p-value."""
    if math.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int) -> str:
    """Write a count; one that no one would read to its end is shortened."""
    return f"{value:,}" if value < 10**12 else f"about {value:.2g}"


def plural(value: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """Name all, or the first of them where they are many."""
    if len(names) <= most:
        return listed(names)
    named = [shown(one) for one in names[: most - 2]]
    return f"{', '.join(named)} and {len(names) - len(named)} more"


def weighing(kind: str, rows: int, total: float | None) -> str:
    """Say behind a number of rows what their weights make of them.

    Parameters
    ----------
    kind : {"frequency", "sampling"}
    rows : int
    total : float or None
        The sum of the weights; None where there are none.

    Returns
    -------
    str
        Begins with a comma; empty where weights change nothing.
    """
    if total is None:
        return ""
    if kind == "sampling":
        return ", weighted by the sampling weights"
    if total == rows:
        return ""
    return f", which the weights count as {total:,.0f}" if total.is_integer() else ", weighted"
