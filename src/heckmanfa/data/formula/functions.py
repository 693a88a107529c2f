"""The functions that the formula of a model file may call, and how many columns they make.

A formula in a program may call whatever Python offers. The formula of a model file comes from
elsewhere: it may only call what is listed here, with the arguments that are listed here. Each of
these functions turns columns into columns; none reads, writes, imports, or calls its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = Mapping[int | str, ast.expr]
"""arguments of a call by position or name"""
_NUMBER = int | float | np.number | np.bool_


@dataclass(frozen=True)
class Signature:
    """The arguments that a listed function may get."""

    least: int = 1
    """fewest positional arguments"""
    most: int = 1
    keywords: frozenset[str] = frozenset()
    settings: bool = False
    """whether arguments after the first may be text, lists and contrasts"""
    stateful: bool = False
    """whether formulaic writes the call into Python code of its own"""
    widths: frozenset[int | str] = frozenset()
    """arguments that say how many columns there will be"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNARY = _words(
    "abs absolute fabs sign sqrt cbrt square exp exp2 expm1 log log2 log10 log1p "
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh "
    "degrees radians deg2rad rad2deg floor ceil trunc rint negative positive reciprocal "
    "isnan isinf isfinite signbit logical_not"
)
_BINARY = _words(
    "add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power "
    "maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign heaviside "
    "greater greater_equal less less_equal equal not_equal logical_and logical_or logical_xor"
)

CONSTANTS = frozenset({"np.pi", "np.e", "np.nan", "np.inf"})

# A contrast applies to the factor that it belongs to, so these need no argument.
CONTRASTS: dict[str, Signature] = {
    "contr.treatment": Signature(0, 1, _words("base"), settings=True),
    "contr.SAS": Signature(0, 1, _words("base"), settings=True),
    "contr.sum": Signature(0, 0),
    "contr.helmert": Signature(0, 2, _words("reverse scale"), settings=True),
    "contr.diff": Signature(0, 1, _words("backward"), settings=True),
    "contr.poly": Signature(0, 1, _words("scores"), settings=True),
    "contr.custom": Signature(1, 2, _words("names"), settings=True),
    "Treatment": Signature(0, 1, _words("reference"), settings=True),
    "Sum": Signature(0, 0),
    "Helmert": Signature(0, 2, _words("reverse scale"), settings=True),
    "Diff": Signature(0, 1, _words("backward"), settings=True),
    "Poly": Signature(0, 1, _words("scores"), settings=True),
}

_CUBIC = Signature(
    1,
    6,
    _words("df knots lower_bound upper_bound constraints extrapolation"),
    settings=True,
    stateful=True,
    widths=frozenset({1, "df"}),
)

FUNCTIONS: dict[str, Signature] = {
    **{f"np.{name}": Signature() for name in _UNARY},
    **{f"np.{name}": Signature(2, 2) for name in _BINARY},
    "np.round": Signature(1, 2),
    "np.clip": Signature(3, 3),
    "np.where": Signature(3, 3, settings=True),
    **{name: Signature() for name in ("log", "log2", "log10", "exp", "exp2", "exp10", "I")},
    "center": Signature(stateful=True),
    "scale": Signature(1, 4, _words("center scale ddof"), settings=True, stateful=True),
    "standardize": Signature(1, 4, _words("center rescale ddof"), stateful=True),
    "Q": Signature(stateful=True),
    "lag": Signature(1, 2, _words("k offset")),
    "poly": Signature(1, 3, _words("degree raw"), stateful=True, widths=frozenset({1, "degree"})),
    "bs": Signature(
        1,
        8,
        _words("df knots degree include_intercept lower_bound upper_bound extrapolation"),
        settings=True,
        stateful=True,
        widths=frozenset({1, 3, "df", "degree"}),
    ),
    "cr": _CUBIC,
    "cs": _CUBIC,
    "cc": _CUBIC,
    "C": Signature(1, 2, _words("contrasts levels spans_intercept"), settings=True),
    "hashed": Signature(
        1,
        3,
        _words("levels contrasts spans_intercept"),
        settings=True,
        widths=frozenset({1, "levels"}),
    ),
}


def learned_width(function: str, arguments: Arguments, state: Any, below: int) -> int | None:
    """Return how many columns a call makes of each of ``below`` columns.

    ``state`` is what the call has learned; the width is None if it is not sound.
    """
    if function == "Q" or (function == "poly" and _setting(arguments, 2, "raw", False)):
        return 1
    if not isinstance(state, dict) or not state:
        return None
    if function == "poly":
        degree = _setting(arguments, 1, "degree", 1)
        parts = (state.get("alpha"), state.get("norms2"))
        sound = all(isinstance(part, dict) and _are_numbers(part.values()) for part in parts)
        return degree if sound else None
    if function in ("center", "scale", "standardize"):
        return 1 if _is_scaling(state, below) else None
    knots = state.get("knots")
    bounds = (state.get("lower_bound"), state.get("upper_bound"))
    if not isinstance(knots, list) or not _are_numbers([*knots, *bounds]):
        return None
    if function == "bs":
        whole = bool(_setting(arguments, 4, "include_intercept", False))
        return max(len(knots) - int(_setting(arguments, 3, "degree", 3) or 0) - 2 + whole, 1)
    return _cubic_width(state, len(knots)) if function in ("cr", "cs", "cc") else None


def _setting(arguments: Arguments, position: int, name: str, default: Any) -> Any:
    """Return an argument if it is a constant, and otherwise its default."""
    node = arguments.get(name, arguments.get(position))
    return node.value if isinstance(node, ast.Constant) else default


def _cubic_width(state: dict[str, Any], n_knots: int) -> int | None:
    cyclic, constraints = state.get("cyclic"), state.get("constraints")
    if not isinstance(cyclic, bool) or n_knots < 2:
        return None
    free = n_knots - cyclic
    if constraints is None:
        return free
    if not isinstance(constraints, np.ndarray) or constraints.ndim != 2:
        return None
    return max(free - constraints.shape[0], 1) if constraints.shape[1] == free else None


def _is_scaling(state: dict[Any, Any], below: int) -> bool:
    """Whether a center and a scale are no wider than their columns."""
    if not {*state} <= {"center", "scale", "ddof"}:
        # Each column of a spline has its own.
        return len(state) <= below and all(
            isinstance(column, dict)
            and {*column} <= {"center", "scale", "ddof"}
            and _is_scaling(column, below)
            for column in state.values()
        )
    for value in state.values():
        if isinstance(value, np.ndarray):
            if value.ndim > 1 or value.size > below or value.dtype.kind not in "biuf":
                return False
        elif not (value is None or isinstance(value, _NUMBER)):
            return False
    return {"center", "scale", "ddof"} <= {*state}


def _are_numbers(values: Any) -> bool:
    return all(isinstance(value, _NUMBER) for value in values)


def listed_width(node: ast.AST) -> int:
    """Return the length of the longest list, tuple or table in an argument, at least one."""
    lengths = [1]
    for part in ast.walk(node):
        if isinstance(part, ast.List | ast.Tuple):
            lengths.append(len(part.elts))
        elif isinstance(part, ast.Dict):
            lengths.append(len(part.values))
    return max(lengths)


def contrasts_are_sound(node: ast.expr) -> bool:
    """Whether a literal is a table of contrasts: equally long rows of numbers, or named ones."""
    if isinstance(node, ast.Dict):
        if not all(isinstance(key, ast.Constant) for key in node.keys):
            return False
        rows: list[ast.expr] = node.values
    elif isinstance(node, ast.List | ast.Tuple):
        rows = node.elts
    else:
        return False
    lengths = {len(row.elts) if isinstance(row, ast.List | ast.Tuple) else 0 for row in rows}
    return len(lengths) == 1 and 0 not in lengths and all(map(_is_row, rows))


def _is_row(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and all(
        isinstance(number, ast.Constant) and isinstance(number.value, int | float)
        for number in (
            part.operand if isinstance(part, ast.UnaryOp) else part for part in node.elts
        )
    )
