"""Numbers as people write them, and what their marks mean."""

from __future__ import annotations

import re
from typing import NamedTuple

DECIMALS = (".", ",")
"""marks that may be the decimal mark"""

_NUMBER = re.compile(r"[+-]?(?P<body>[0-9.,' ]*[0-9][0-9.,' ]*)(?P<power>[eE][+-]?[0-9]+)?")
_LEAD, _GROUP = re.compile(r"[1-9][0-9]{0,2}"), re.compile(r"[0-9]{3}")


class Shape(NamedTuple):
    """The marks of a number, as far as the number alone shows what they are."""

    decimal: str | None
    thousands: str | None
    either: str | None
    """a mark that may be one or the other: three digits follow, and one to three come before"""
    lead: int
    """digits before the first mark"""


def tidy(text: str) -> str:
    """Unify the kinds of blanks, minus signs and apostrophes."""
    text = " ".join(text.split())
    return text.replace("\N{MINUS SIGN}", "-").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def shape_of(text: str) -> Shape | None:
    """Return the marks of a number; None if a text is not a number in any country."""
    found = _NUMBER.fullmatch(tidy(text).removesuffix("%").strip())
    if found is None:
        return None
    body: str = found["body"]
    marks = [char for char in body if not char.isdigit()]
    kinds = list(dict.fromkeys(marks))
    lead = len(body) if not kinds else body.index(kinds[0])
    if not kinds:
        return Shape(None, None, None, lead)
    last = kinds[-1]
    if len(kinds) > 2 or body != body.strip():
        return None
    if len(kinds) == 2:
        whole, _, rest = body.rpartition(last)
        alone = last in DECIMALS and marks.count(last) == 1 and rest.isdigit()
        return Shape(last, kinds[0], None, lead) if alone and _grouped(whole, kinds[0]) else None
    if last in DECIMALS and len(marks) == 1:
        unclear = _grouped(body, last) and not found["power"]
        return Shape(None, None, last, lead) if unclear else Shape(last, None, None, lead)
    return Shape(None, last, None, lead) if _grouped(body, last) else None


def _grouped(body: str, mark: str) -> bool:
    """Whether a mark separates the thousands of a number."""
    lead, *groups = body.split(mark)
    return _LEAD.fullmatch(lead) is not None and all(_GROUP.fullmatch(group) for group in groups)
