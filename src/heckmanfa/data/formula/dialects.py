"""Formulas in the syntax of R and Stata, refused with the spelling that works here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heckmanfa.data.formula.functions import FUNCTIONS
from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import shown

_CALL = re.compile(r"(?<![\w.])((?:as\.)?[A-Za-z_]\w*)\(")
_STATA = re.compile(r"(?<![\w.)\]])(i|c|ib?\d+|ibn|[LFDS]\d*)\.([A-Za-z_]\w*)(?![\w.(])")
_CATEGORIES = ("factor", "as.factor", "ordered", "as.ordered", "as.character", "relevel")
_NUMBERS = ("as.numeric", "as.integer", "as.double", "as.logical")


def refuse_other_languages(text: str, columns: Sequence[str]) -> None:
    """Refuse the spellings of R and Stata, each with the spelling that works here.

    Names of columns are not spellings of another language. Anything but text is left to the parser.
    """
    if not isinstance(text, str):
        return
    # Names in backticks and text in quotes say nothing about the language.
    bare = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", lambda match: "_" * len(match.group()), text)
    advice = _stata(bare, columns) or _r(bare, text, columns)
    if advice:
        raise FormulaError(advice)


def _stata(text: str, columns: Sequence[str]) -> str | None:
    product = re.search(r"([\w.]+)\s*(##?)\s*([\w.]+)", text)
    if product:
        left, right = (_plain(product.group(group), columns) for group in (1, 3))
        if left == right:
            meant = f"I({left}**2)" if product.group(2) == "#" else f"{left} + I({left}**2)"
        else:
            meant = f"{left}{'*' if product.group(2) == '##' else ':'}{right}"
        return f"{shown(product.group())} is Stata's spelling; in a formula, write {shown(meant)}"
    for found in _STATA.finditer(text):
        operator, name = found.groups()
        whole = found.group()
        if whole in columns or operator in columns:
            continue
        if operator[0] in "LFDS":
            return (
                f"{shown(whole)} is a time-series operator of Stata, which formulas do not have: "
                "make such a column in the data before the fit"
            )
        return (
            f"{shown(whole)} is Stata's spelling; in a formula, write "
            f"{shown(_plain(whole, columns))}" + _base(operator, name)
        )
    return None


def _plain(factor: str, columns: Sequence[str]) -> str:
    """Return the spelling of a Stata factor that works here."""
    found = None if factor in columns else _STATA.fullmatch(factor)
    if found is None:
        return factor
    operator, name = found.groups()
    return f"C({name})" if operator.startswith("i") else name


def _base(operator: str, name: str) -> str:
    digits = re.sub(r"\D", "", operator)
    if not digits:
        return ""
    return f", or C({shown(name)}, contr.treatment({digits})) for the base level {digits}"


def _r(text: str, given: str, columns: Sequence[str]) -> str | None:
    for found in _CALL.finditer(text):
        name = found.group(1)
        if name in columns or name in FUNCTIONS:
            continue
        comma, end = _inside(text, found.end())
        meant = _meant(name, given[found.end() : end].strip(), given[found.end() : comma].strip())
        if meant:
            return (
                f"{shown(given[found.start() : end])}) is the spelling of another language; in a "
                f"formula, write {shown(meant)}"
            )
    # Between terms, %in% nests them here as in R; inside I() it is not Python.
    inside = re.search(r"I\([^()]*%in%", text)
    if inside:
        return (
            "I(x %in% c(1, 2)) is R's spelling; in a formula, write I((x == 1) | (x == 2)) "
            "with the name of the column for x"
        )
    return None


def _inside(text: str, start: int) -> tuple[int, int]:
    """Return where the first argument of a call ends, and where the last does."""
    depth, comma = 0, None
    for index in range(start, len(text)):
        if text[index] == "," and depth == 0 and comma is None:
            comma = index
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth < 0:
            return index if comma is None else comma, index
    return len(text) if comma is None else comma, len(text)


def _meant(name: str, inside: str, first: str) -> str | None:
    """Return the spelling of a call that works, or None if none is known."""
    if name in _CATEGORIES:
        return f"C({first})"
    if name in _NUMBERS:
        return first
    if name == "ifelse":
        return f"np.where({inside})"
    if name in ("ns", "rcs"):
        # Without the constraint its columns sum to one, as the intercept does.
        return f"cr({inside}, constraints='center')"
    return f"np.{name}({inside})" if f"np.{name}" in FUNCTIONS else None
