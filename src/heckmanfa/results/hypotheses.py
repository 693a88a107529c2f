"""Linear hypotheses in words: coefficients by their names, whatever characters these hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.formula.matrix import plain_words
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.printable import quoted

_ADVICE = "write it as in 'educ = exper' or 'educ = 0, exper = 0'"
# An interaction of five has 120 orders.
_MOST_FACTORS = 4
_STAND_IN = re.compile(r"coefficient_(\d+)_")
# What is left of a hypothesis where a name was not known: an interaction, a level, a call.
_WORD = r"[^\W\d][\w.]*(?:\([^()]*\))?(?:\[[^\[\]]*\])?"
_NAME = re.compile(rf"`[^`]*`?|{_WORD}(?:\s*:\s*{_WORD})*")


def read_hypothesis(text: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Read restrictions on coefficients.

    Parameters
    ----------
    text : str
        As in ``"educ = exper, educ:black = 0"``; ``black:educ`` is the same interaction. A name
        may stand as it is printed, so long as its operators are in brackets
        (``I(exper ** 2)``); in backticks, any may.
    names : sequence of str
        Of the coefficients, in order.

    Returns
    -------
    matrix : ndarray of shape (q, k)
    right : ndarray of shape (q,)
    """
    from formulaic.utils.constraints import LinearConstraints

    said = quoted(text)
    replaced = _with_stand_ins(text, names)
    parts = [part.strip() for part in replaced.split(",")]
    if not all(parts):
        raise InputError(f"the hypothesis {said} has an empty part; {_ADVICE}")
    if any(part.count("=") > 1 for part in parts):
        raise InputError(f"the hypothesis {said} cannot be read, having two '='; {_ADVICE}")
    for found in _NAME.finditer(_STAND_IN.sub(" ", replaced)):
        name = found.group().strip("`")
        raise UnknownFeatureError(
            f"the hypothesis {said} names {quoted(name)}, which is no coefficient of the model"
            + nearest(name, names)
        )
    stand_ins = [f"coefficient_{place}_" for place in range(len(names))]
    try:
        parsed = LinearConstraints.from_spec(replaced, variable_names=stand_ins)
        matrix = np.asarray(parsed.constraint_matrix, dtype=np.float64)
        right = np.asarray(parsed.constraint_values, dtype=np.float64)
    except Exception as error:  # formulaic's parser fails in many ways
        why = _STAND_IN.sub(lambda one: names[int(one.group(1))], plain_words(error))
        raise InputError(
            f"the hypothesis {said} cannot be read; {_ADVICE}, a name with operators in "
            f"`backticks`: {why}"
        ) from error
    return matrix, right


def _with_stand_ins(text: str, names: Sequence[str]) -> str:
    """Put plain words in the place of the names of coefficients, the longest names first."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    for name, place in list(places.items()):
        for other in _other_orders(name):
            places.setdefault(other, place)
    quotes = [rf"`{re.escape(name)}`" for name in places]
    bare = [_pattern(name) for name in sorted(places, key=len, reverse=True) if _may_be_bare(name)]
    keys = [*places, *(one for one in sorted(places, key=len, reverse=True) if _may_be_bare(one))]
    # A part of a longer name, of an interaction or a level, is not that name.
    inner = "|".join(f"({one})" for one in bare)
    edge = r"(?<![\w.:`\])])", r"(?!\s*:|[\w.`\[(])"
    every = "|".join(
        [*(f"({one})" for one in quotes), *([f"{edge[0]}(?:{inner}){edge[1]}"] if bare else [])]
    )
    return re.sub(every, lambda one: f" coefficient_{places[keys[_which(one)]]}_ ", text)


def _other_orders(name: str) -> list[str]:
    """Return the other names of an interaction: its factors may stand in any order."""
    prefix = "selection." if name.startswith("selection.") else ""
    factors, depth = [""], 0
    for one in name.removeprefix(prefix):
        depth += (one in "([") - (one in ")]")
        if one == ":" and depth == 0:
            factors.append("")
        else:
            factors[-1] += one
    if not 2 <= len(factors) <= _MOST_FACTORS:
        return []
    orders = (prefix + ":".join(one) for one in permutations(factors))
    return [one for one in orders if one != name]


def _which(found: re.Match[str]) -> int:
    return next(place for place, one in enumerate(found.groups()) if one is not None)


def _may_be_bare(name: str) -> bool:
    """Whether a name cannot be taken for a calculation."""
    outside = name
    while re.search(r"\([^()]*\)|\[[^\[\]]*\]", outside):
        outside = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", outside)
    return re.fullmatch(r"[^\W\d][\w.\s:]*", outside) is not None


def _pattern(name: str) -> str:
    """Match a name with other blanks between its parts."""
    pieces = re.findall(r"\w+|[^\w\s]|\s+", name)
    made = ""
    for before, piece, after in zip(["", *pieces], pieces, [*pieces[1:], ""], strict=False):
        if piece.isspace():
            made += r"\s+" if re.search(r"\w$", before) and re.match(r"\w", after) else r"\s*"
        else:
            made += re.escape(piece) + (r"\s*" if _joins(piece, after) else "")
    return made


def _joins(piece: str, after: str) -> bool:
    return bool(after) and not after.isspace() and (piece in "([,:*=" or after in ")],:*=")
