"""The window that a search may ask rho-hat to lie in."""

from __future__ import annotations

from typing import Any

from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option


def check_window(rho_range: Any) -> tuple[float, float] | None:
    """Check a window of rho."""
    if rho_range is None:
        return None
    try:
        low, high = (float(end) for end in rho_range)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{option('rho_range')} must be two numbers (low, high) or None; got {rho_range!r}"
        ) from error
    if not (low > -1.0 and high < 1.0):
        raise InputError(
            f"{option('rho_range')} must lie inside (-1, 1), ends excluded; got ({low:g}, "
            f"{high:g}). To allow any valid correlation, write "
            f"{option('rho_range', (-0.999, 0.999))}."
        )
    if not low < high:
        raise InputError(
            f"{option('rho_range')} must be (low, high) with low < high; got ({low:g}, {high:g})"
        )
    return low, high
