"""How many columns a function of a formula makes, from what it has learned and from its lists."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_CUBIC = ("cr", "cs", "cc")
_SCALING = ("center", "scale", "standardize")
_NUMBER = int | float | np.number | np.bool_


@dataclass(frozen=True)
class Call:
    """A call of a function that learns from data."""

    function: str
    key: str
    """formulaic's name for it"""
    given: Mapping[int | str, ast.expr]
    """arguments by position or name"""

    def setting(self, position: int, name: str, default: Any) -> Any:
        """Return an argument if it is a constant, and otherwise its default."""
        node = self.given.get(name, self.given.get(position))
        return node.value if isinstance(node, ast.Constant) else default


def learned_width(call: Call, learned: Mapping[str, Any], below: int) -> int | None:
    """Return how many columns a call makes of each of ``below`` columns; None if never learned."""
    state = learned.get(call.key)
    if call.function == "Q" or (call.function == "poly" and call.setting(2, "raw", False)):
        return 1
    if not isinstance(state, dict) or not state:
        return None
    if call.function == "poly":
        degree = call.setting(1, "degree", 1)
        parts = (state.get("alpha"), state.get("norms2"))
        sound = all(isinstance(part, dict) and _are_numbers(part.values()) for part in parts)
        return degree if sound else None
    if call.function in _SCALING:
        return 1 if _is_scaling(state, below) else None
    knots = state.get("knots")
    bounds = (state.get("lower_bound"), state.get("upper_bound"))
    if not isinstance(knots, list) or not _are_numbers([*knots, *bounds]):
        return None
    if call.function == "bs":
        whole = bool(call.setting(4, "include_intercept", False))
        return max(len(knots) - int(call.setting(3, "degree", 3) or 0) - 2 + whole, 1)
    return _cubic_width(state, len(knots)) if call.function in _CUBIC else None


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
