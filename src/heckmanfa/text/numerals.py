"""Numbers as answers and pictures write them: true minus signs, whole percentages."""

from __future__ import annotations

import math

from heckmanfa.text.wording import number

MINUS = "\N{MINUS SIGN}"
"""a true minus, as wide as a plus"""


def with_minus(text: str) -> str:
    """Write the leading hyphen of a number as a true minus, and that of its exponent."""
    return text.replace("-", MINUS)


def figure(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits and a true minus; empty if it is NaN.

    Numbers below one have three decimals at most, as effects have in prose.
    """
    value = float(value)
    if 1e-3 <= abs(value) < 1.0:
        return with_minus(f"{value:.{digits}f}")
    return with_minus(number(value, digits))


def signed(text: str) -> str:
    """Write a plus before a positive number that `figure` or an axis formatted."""
    if not text or text.startswith(MINUS) or not any(digit in text for digit in "123456789"):
        return text
    return "+" + text


def chance(share: float) -> str:
    """Format a share as a whole percentage: ``41%``, ``>99%``, ``<1%``; empty if it is NaN.

    Only certainty is 0% or 100%.
    """
    if math.isnan(share):
        return ""
    if 0.0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1.0:
        return ">99%"
    return f"{100.0 * share:.0f}%"


def interval(low: float, high: float, digits: int = 3) -> str:
    """Format the ends of an interval: ``0.059 to 0.134``; empty if one is NaN."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{figure(low, digits)} to {figure(high, digits)}"
