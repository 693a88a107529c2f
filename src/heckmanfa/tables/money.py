"""Amounts of money: their currency signs, and the numbers without them."""

from __future__ import annotations

import re

from heckmanfa.data.columns.values import tidy

_MONEY = re.compile(r"(?:[$€£¥₹₽₩₺]|\b(?:USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CNY|INR)\b)")


def currency(label: str) -> str:
    """Return the currency sign of an amount; empty if there is none, or more than one."""
    signs = _MONEY.findall(label)
    return str(signs[0]) if len(signs) == 1 else ""


def amount(label: str) -> str:
    """Return an amount of money without its sign; in parentheses, it is negative."""
    if not _MONEY.search(label):
        return label
    text = " ".join(_MONEY.sub(" ", label).split())
    text = re.sub(r"^([+-]) ", r"\1", tidy(text))
    enclosed = re.fullmatch(r"\( ?([^()]*?) ?\)", text)
    return f"-{enclosed[1]}" if enclosed else text
