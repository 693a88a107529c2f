"""Wald tests of linear hypotheses, written with coefficients by name, whatever these hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.data.arrays import Floats
from heckmanfa.data.formula.matrix import plain_words
from heckmanfa.errors import InputError, NotIdentifiedError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import refuse_averaged
from heckmanfa.results.distribution import Wald, distribution_of
from heckmanfa.results.estimates import estimates_in_order, prefixed
from heckmanfa.results.fit_tests import refuse_test_of_held_rho
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


def restrictions_of(
    fit: Fit, hypothesis: str | ArrayLike, value: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return linear restrictions of the terms of a fit: a matrix, and the right-hand sides."""
    names = [prefixed(*term) for term in fit.terms]
    if isinstance(hypothesis, str | list | tuple) and not fit.family.has_imr:
        _refuse_linear_terms(str(hypothesis), names)
    matrix, right = restrictions(hypothesis, value, names)
    about_rho = [equation == "errors" and term != "sigma" for equation, term in fit.terms]
    if np.any(matrix[:, about_rho]):
        refuse_test_of_held_rho(fit)
    if fit.rho_is_conditioned and np.any(matrix[:, about_rho]):
        raise NotIdentifiedError(
            "rho was conditioned on by rho_range, so no hypothesis about it can be tested; "
            "fit with rho_range=None to test it"
        )
    refuse_averaged(fit, matrix)
    return matrix, right


def wald_test(fit: Fit, hypothesis: str | ArrayLike, value: ArrayLike | None) -> Wald:
    """Test linear restrictions; see `Heckman.wald_test`."""
    matrix, right = restrictions_of(fit, hypothesis, value)
    estimates = estimates_in_order(fit)
    for place in np.flatnonzero(np.isnan(estimates) & matrix.any(axis=0)):
        raise NotIdentifiedError(
            f"{quoted(prefixed(*fit.terms[place]))} is not identified, so no hypothesis about it "
            "can be tested"
        )
    gap = matrix @ np.nan_to_num(estimates) - right
    # What was averaged has no covariance, and is not tested.
    covariance = np.nan_to_num(fit.covariance) if fit.way.is_average else fit.covariance
    test = distribution_of(fit).wald(gap, matrix @ covariance @ matrix.T)
    if test.lacks_clusters:
        raise NotIdentifiedError(f"{test.note}; test fewer at a time")
    return test


def restrictions(
    hypothesis: str | ArrayLike, value: ArrayLike | None, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Read linear restrictions on coefficients of these names, in words or as a matrix."""
    if isinstance(hypothesis, list | tuple) and all(isinstance(line, str) for line in hypothesis):
        hypothesis = ", ".join(map(str, hypothesis))
    if isinstance(hypothesis, str):
        matrix, right = read_hypothesis(hypothesis, names)
    else:
        matrix = np.atleast_2d(np.asarray(hypothesis, dtype=np.float64))
        right = np.zeros(len(matrix)) if value is None else np.atleast_1d(np.asarray(value, float))
        if matrix.shape[1] != len(names) or len(right) != len(matrix):
            raise InputError(
                f"a restriction matrix needs {len(names)} columns, one for each row of "
                f"vcov(), and as many rows as values; got {matrix.shape} and {len(right)} values"
            )
    if not matrix.any(axis=1).all():
        raise InputError("a restriction names no coefficient; write for example 'educ = 0'")
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise InputError("the restrictions repeat one another; leave out the redundant ones")
    return matrix, right


def _refuse_linear_terms(hypothesis: str, names: Sequence[str]) -> None:
    """Say why a binary outcome has no coefficient of lambda and no sigma."""
    asked = {*re.findall(r"(?<![\w.`])(?:imr|sigma)(?![\w.`\[(:])", hypothesis)} - {*names}
    if asked:
        raise InputError(
            f"the Heckman probit has no {' and no '.join(sorted(asked))}: the errors of a binary "
            "outcome have variance one, and nothing but rho links both equations; test 'rho = 0'"
        )


def read_hypothesis(text: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Read restrictions on coefficients: a matrix, (q, k), and its right-hand side, (q,).

    They are written as in ``"educ = exper, educ:black = 0"``; ``black:educ`` is the same
    interaction. A name whose operators are in brackets (``I(exper ** 2)``) is written as it is
    printed; any other in backticks.
    """
    from formulaic.utils.constraints import LinearConstraints

    asked = f"the hypothesis {quoted(text)}"
    replaced = _with_stand_ins(text, names)
    restrictions = [restriction.strip() for restriction in replaced.split(",")]
    if not all(restrictions):
        raise InputError(f"{asked} has an empty part; {_ADVICE}")
    if any(restriction.count("=") > 1 for restriction in restrictions):
        raise InputError(f"{asked} cannot be read: a part has two '='; {_ADVICE}")
    unknown = _NAME.search(_STAND_IN.sub(" ", replaced))
    if unknown:
        name = unknown.group().strip("`")
        raise UnknownFeatureError(
            f"{asked} names {quoted(name)}, which is not a coefficient of the model"
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
            f"{asked} cannot be read; {_ADVICE}, a name with operators in `backticks`: {why}"
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
