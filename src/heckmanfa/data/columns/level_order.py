"""The order of a category's levels, and the names of its dummies."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.data.columns.tally import OTHER, TextTally
from heckmanfa.data.columns.values import by_size
from heckmanfa.text.option_words import option

UNSEEN_ADVICE = (
    f"Correct these cells, or pass {option('unknown', 'missing')} to count them as missing: a row "
    "that lacks a feature gets no prediction"
)
"""what to do about levels that the fit did not have"""

UNSEEN_ADVICE_FILLED = (
    f"Correct these cells, or pass {option('unknown', 'missing')} to count them as missing: the "
    "means of the fit then fill them"
)
"""the same, if means fill what is missing"""


def encoded_names(source: str, levels: Sequence[str] | None) -> list[str]:
    """Name what a column becomes: itself, or a dummy for each level but the first.

    A category with one level has a dummy too, which is constant, and one without levels is missing.
    """
    if not levels:
        return [source]
    return [f"{source}[{level}]" for level in (levels[1:] or levels)]


def order_levels(text: TextTally) -> tuple[str, ...]:
    """Order the levels that occur: as declared, by size, or by alphabet; `OTHER` comes last.

    The first is the reference. So it does not depend on the order of the rows.
    """
    occur = {level for level in text.counts if level != OTHER}
    if text.declared is not None:
        order = [level for level in text.declared if level in occur]
    else:
        order = by_size(occur)
    return (*order, OTHER) if OTHER in text.counts else tuple(order)
