"""Linear hypotheses as text, with coefficients by name, whatever characters a name holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.formula.matrix import plain_words
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

_ADVICE = "write it as in 'educ = exper' or 'educ = 0, exper = 0'"
# The factors of a five-way interaction have 120 orders.
_MOST_FACTORS = 4
# Every pair of brackets inside another costs a reading of the name.
_LONGEST_BARE = 400
_STAND_IN = re.compile(r"coefficient_(\d+)_")
# A level that is an interval, as pandas.cut makes them: the brackets of (35, 45] do not match.
_INTERVAL = r"\[(?:T\.)?[(\[][^\[\]()]*[)\]]\]"
_BRACKETS = re.compile(rf"{_INTERVAL}|\([^()]*\)|\[[^\[\]]*\]")
# An unknown name left in a hypothesis: an interaction, a level or a call.
_WORD = rf"[^\W\d][\w.]*(?:\([^()]*\))?(?:{_INTERVAL}|\[[^\[\]]*\])?"
_NAME = re.compile(rf"`[^`]*`?|{_WORD}(?:\s*:\s*{_WORD})*")


def read_hypothesis(text: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Read restrictions on coefficients: a matrix, (q, k), and its right-hand side, (q,).

    They are written as in ``"educ = exper, educ:black = 0"``; ``black:educ`` is the same
    interaction. A name whose operators are in brackets (``I(exper ** 2)``) is written as it is
    printed; any other in backticks.
    """
    from formulaic.utils.constraints import LinearConstraints

    given = f"the hypothesis {quoted(text)}"
    replaced = _with_stand_ins(text, names)
    parts = [part.strip() for part in replaced.split(",")]
    if not all(parts):
        raise InputError(f"{given} has an empty part; {_ADVICE}")
    if any(part.count("=") > 1 for part in parts):
        raise InputError(f"{given} cannot be read: a part has two '='; {_ADVICE}")
    unknown = _NAME.search(_STAND_IN.sub(" ", replaced))
    if unknown:
        name = unknown.group().strip("`")
        raise UnknownFeatureError(
            f"{given} names {quoted(name)}, which is not a coefficient of the model"
            + nearest(name, names)
        )
    stand_ins = [f"coefficient_{position}_" for position in range(len(names))]
    try:
        parsed = LinearConstraints.from_spec(replaced, variable_names=stand_ins)
        matrix = np.asarray(parsed.constraint_matrix, dtype=np.float64)
        right = np.asarray(parsed.constraint_values, dtype=np.float64)
    except Exception as error:  # formulaic's parser fails in many ways
        why = _STAND_IN.sub(lambda match: names[int(match.group(1))], plain_words(error))
        raise InputError(
            f"{given} cannot be read; {_ADVICE}, a name with operators in `backticks`: {why}"
        ) from error
    return matrix, right


def _with_stand_ins(text: str, names: Sequence[str]) -> str:
    """Replace the names of coefficients with plain words, the longest names first."""
    positions = {name: position for position, name in reversed(list(enumerate(names)))}
    for name, position in list(positions.items()):
        for other in _other_orders(name):
            positions.setdefault(other, position)
    bare = [name for name in sorted(positions, key=len, reverse=True) if _may_be_bare(name)]
    keys = [*positions, *bare]
    patterns = [f"(`{re.escape(name)}`)" for name in positions]
    if bare:
        # A part of a longer name, of an interaction or a level, is not that name.
        inner = "|".join(f"({_pattern(name)})" for name in bare)
        patterns.append(rf"(?<![\w.:`\])])(?:{inner})(?!\s*:|[\w.`\[(])")
    every = re.compile("|".join(patterns))

    def stand_in(match: re.Match[str]) -> str:
        assert match.lastindex is not None
        return f" coefficient_{positions[keys[match.lastindex - 1]]}_ "

    return every.sub(stand_in, text)


def _other_orders(name: str) -> list[str]:
    """Return the other names of an interaction, whose factors may be in any order."""
    prefix = "selection." if name.startswith("selection.") else ""
    factors, depth = [""], 0
    for character in name.removeprefix(prefix):
        depth += (character in "([") - (character in ")]")
        if character == ":" and depth == 0:
            factors.append("")
        else:
            factors[-1] += character
    if not 2 <= len(factors) <= _MOST_FACTORS:
        return []
    orders = (prefix + ":".join(order) for order in permutations(factors))
    return [order for order in orders if order != name]


def _may_be_bare(name: str) -> bool:
    """Whether a name cannot be mistaken for a calculation."""
    if len(name) > _LONGEST_BARE:
        return False
    outside = name
    while _BRACKETS.search(outside):
        outside = _BRACKETS.sub("", outside)
    return re.fullmatch(r"[^\W\d][\w.\s:]*", outside) is not None


def _pattern(name: str) -> str:
    """Match a name whatever the blanks between its parts."""
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
