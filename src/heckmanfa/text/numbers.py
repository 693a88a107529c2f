"""How numbers are formatted for people; JSON and data frames keep the numbers themselves."""

from __future__ import annotations

import math

# Outside this range a number is clearer with an exponent.
_SMALL, _LARGE = 1e-4, 1e7


def number(value: float, digits: int = 4) -> str:
    """Format a number with this many significant digits; empty if it is NaN.

    Trailing zeros stay, thousands are separated, and only very small and very large numbers get
    an exponent.
    """
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
    """Format a p-value: three decimals, or ``<0.001``; empty if it is NaN."""
    if math.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(value: float) -> str:
    """Format a p-value in a sentence: ``p = 0.012``, or ``p < 0.001``."""
    return "p < 0.001" if value < 0.001 else f"p = {p_value(value)}"


def percent(share: float, decimals: int = 1) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.{decimals}f}%"


def count(value: int) -> str:
    """Format a count, rounded if it has more digits than anyone would read."""
    return f"{value:,}" if value < 10**12 else f"about {value:.2g}"


def plural(value: int, noun: str, nouns: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{count(value)} {noun if value == 1 else nouns or noun + 's'}"
