"""What the name of a column suggests: that it labels rows, or that its numbers are codes.

Only a name can tell codes such as a state from 1 to 56: years of schooling, ages and counts are
integers with few values, too. So a column is suspected if the last word of its name is one that
codes are kept under, such as ``state``, ``home_region`` or ``occupation_code``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from heckmanfa.data.columns.tally import NumberTally

_ID = re.compile(r"(?:^|[\W_])(?:id|ids|uuid|guid)$|^(?:id|uuid|guid)[\W_]", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)$")
_INDEX = re.compile(
    r"(?:^|[\W_])(?:index|idx|key|row|row_?id|row_?num(?:ber)?|record|serial|nr|no)$"
    r"|^Unnamed: \d+$",
    re.IGNORECASE,
)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NUMBERS = frozenset({"no", "nr", "num", "number"})
_NOUN = re.compile(
    "branch|brand|cat|category|cd|city|cluster|code|codes|country|county|department|dept|district|"
    "ethnicity|fips|firm|id|ids|industry|isco|isic|language|marital|msa|municipality|nace|naics|"
    "nationality|nuts|occ|occupation|party|plant|postcode|prefecture|province|race|region|religion|"
    "sector|sic|site|soc|state|store|territory|tract|type|ward|zip|zipcode"
)
# Before such a noun, these say that something is counted or measured.
_AMOUNT = re.compile(
    "average|avg|count|days|dist|distance|log|mean|median|months|n|num|number|per|pct|percent|rate|"
    "share|sum|total|years"
)
# Two numbers are the same as a dummy, up to scale.
_FEWEST = 3


@dataclass(frozen=True)
class CodedNumbers:
    """A column of integers that may be codes."""

    column: str
    n_values: int
    """how many different ones there are"""
    low: float
    high: float


def is_identifier_name(name: str) -> bool:
    """Whether a column is named like an identifier or a row number."""
    return is_id_name(name) or _INDEX.search(name) is not None


def is_id_name(name: str) -> bool:
    """Whether a column is named like an identifier."""
    return _ID.search(name) is not None or _CAMEL_ID.search(name) is not None


def is_code_name(name: str) -> bool:
    """Whether a column is named like one of codes."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] in _NUMBERS:
        words = words[:-1]
    if not words or any(_AMOUNT.fullmatch(word) for word in words[:-1]):
        return False
    return _NOUN.fullmatch(words[-1]) is not None


def find_coded_numbers(tallies: Mapping[str, NumberTally]) -> tuple[CodedNumbers, ...]:
    """Return the columns of numbers that may be codes; their tallies keep distinct values."""
    return tuple(
        CodedNumbers(name, tally.distinct, tally.low, tally.high)
        for name, tally in tallies.items()
        if is_code_name(name) and tally.integers and tally.low >= 0 and tally.distinct >= _FEWEST
    )
