"""Numbers as pictures write them: true minus signs, plus signs where both matter."""

from __future__ import annotations

import math

from heckmanfa.text.wording import effects

MINUS = "\N{MINUS SIGN}"
"""a true minus, as wide as a plus"""


def with_minus(text: str) -> str:
    """Write the leading hyphen of a number as a true minus, and that of its exponent."""
    return text.replace("-", MINUS)


def figure(value: float) -> str:
    """Format a number as `effects` does; empty if it is NaN."""
    return effects(value)[0]


def signed(text: str) -> str:
    """Write a plus before a positive number that `figure` or an axis formatted."""
    if not text or text.startswith(MINUS) or not any(digit in text for digit in "123456789"):
        return text
    return "+" + text


def interval(low: float, high: float) -> str:
    """Format the ends of an interval: ``0.059 to 0.134``; empty if one is NaN."""
    return "" if math.isnan(low) or math.isnan(high) else " to ".join(effects(low, high))
