"""Outcomes that are logarithms: what they are of, and effects on them in percent.

An effect b on log(y) multiplies y by exp(b), so it is said as exp(b) - 1 in percent. The function
rises, so the ends of an interval become the ends of its interval. Whether an outcome is a logarithm
is said by the option that transforms it, by the formula, or by the user: a name alone says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.text.passage import Name, Passage, passage

_CALL = re.compile(r"(?:np\.|numpy\.)?log(1p)?\((.+)\)")
# Names and labels of logarithms: log_wage, lnwage, lwage, "Log of hourly wage", "Wage (log)".
_START = re.compile(r"(?:natural )?(?:log(?:arithm)?|ln)(?: of (?:the )?|[ _.]|(?=[a-z]))", re.I)
_END = re.compile(r"(?:, |[ _])?\(?(?:log|ln)(?: scale)?\)?$", re.I)
# No English word begins with l and one of these.
_L = re.compile(r"l_?(?=[b-df-hjkmnp-tv-xz][a-z])")
_WORDS = ("lng", "logi", "logo")


@dataclass(frozen=True)
class Logarithm:
    """An outcome that is the logarithm of another."""

    of: str
    """name of that other"""
    plus_one: bool = False
    """whether it is the logarithm of one plus it"""

    @property
    def target(self) -> Passage:
        """What changes by a percentage: "wage", or "(1 + wage)"."""
        name = Name(self.of)
        return passage("(1 + ", name, ")") if self.plus_one else passage(name)


def logarithm_of(fit: Fit, outcome: str, *, stated: bool = False) -> Logarithm | None:
    """Return what an outcome is the logarithm of; None if nobody says that it is one.

    ``outcome`` is its name, and ``stated`` whether the user says so.
    """
    transform = fit.spec.outcome_transform
    if transform is not None:
        column = fit.origin.outcome or "y"
        if fit.origin.design is not None:
            column = fit.origin.design.texts[0].split("~")[0].strip()
        return Logarithm(column, transform == "log1p")
    if fit.origin.design is not None:
        call = _CALL.fullmatch(outcome)
        if call is not None and _is_balanced(call[2]):
            return Logarithm(call[2].strip(), call[1] is not None)
    return Logarithm(unlogged(outcome)) if stated else None


def _is_balanced(text: str) -> bool:
    """Whether the brackets of a text close inside it."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def unlogged(name: str) -> str:
    """Return what a column with this name or label is the logarithm of.

    >>> [unlogged(name) for name in ("lwage", "log_wage", "Log of hourly wage", "y")]
    ['wage', 'wage', 'hourly wage', 'exp(y)']
    """
    rest = _rest(name)
    return rest if rest else f"exp({name})"


def looks_logged(name: str) -> bool:
    """Whether a name is that of a logarithm, as lwage and log_wage are."""
    return bool(_rest(name))


def _rest(name: str) -> str:
    if name.lower().startswith(_WORDS):
        return ""
    call = _CALL.fullmatch(name)
    if call is not None and call[1] is None and _is_balanced(call[2]):
        return call[2].strip()
    for start in (_START.match(name), _L.match(name)):
        if start is not None and start.end() < len(name):
            return name[start.end() :]
    end = _END.search(name)
    if end is not None and end.start() > 0 and name[end.start()] in " _,(":
        return name[: end.start()]
    return ""


def in_percent(value: float) -> float:
    """Return what an effect on a logarithm is in percent: 100 (exp(b) - 1)."""
    with np.errstate(over="ignore"):
        return float(100.0 * np.expm1(value))
