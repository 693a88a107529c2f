"""Checks that an expression in the formula of a model file only does what listed functions can do.

The expression is parsed with Python's own parser, and nothing is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from formulaic.utils.code import format_expr, sanitize_variable_names

from heckmanfa.data.formula.functions import (
    CONSTANTS,
    CONTRASTS,
    FUNCTIONS,
    Signature,
    contrasts_are_sound,
    learned_width,
    listed_width,
)
from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import quoted

DEEPEST = 40
"""levels of brackets or expressions inside each other"""
_LARGEST_NUMBER = 2.0**63
_MOST_DIGITS = 30

_OPERATORS = (ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow) | (
    ast.BitAnd | ast.BitOr | ast.BitXor
)
_COMPARISONS = ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE
_CODES = ("C", "hashed")
_CONTRASTS_AT: dict[str, tuple[int | str, ...]] = {
    "C": (1, "contrasts"),
    "hashed": (2, "contrasts"),
    "contr.custom": (0,),
}
# These treat each column of a matrix separately.
_EACH = ("center", "scale", "standardize")
_SIGNS = ast.UAdd | ast.USub | ast.Not | ast.Invert


@dataclass(frozen=True)
class CheckedFactor:
    """What an allowed factor of a formula is made of."""

    names: frozenset[str]
    """columns that must hold numbers for it to be a number"""
    width: int = 1
    """how many columns it makes, at least one"""
    kind: str = "column"
    """"column", "matrix" or "categories\""""


class ExpressionChecker:
    """Refuses a factor that does more than a model file may ask for; see `stored_formulas`.

    It walks through the factor; the kind of value of each part decides what may be done to it.

    Kinds are "column", "matrix" (a spline), "categories", "number", "text", "list" and "contrast".
    Text and lists may only be arguments or compared: multiplied, they would fill the memory. A
    matrix and a column, or a list and a column, would make a table of every row with every other.
    """

    def __init__(self, expression: str, n_columns: int, learned: Mapping[str, Any] | None) -> None:
        self._expression, self._n_columns, self._learned = expression, n_columns, learned
        self._aliases: dict[str, str] = {}
        self._numbers: set[str] = set()

    def check(self) -> CheckedFactor:
        """Check the whole factor."""
        text = sanitize_variable_names(self._expression, {}, self._aliases)
        tree = ast.parse(text, mode="eval").body
        # First, since the name of a function tells more than the kind of its surroundings.
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._signature(node)
        kind = self._kind(tree, 0)
        if kind not in ("column", "matrix", "categories"):
            raise self._refusal("is not made of columns")
        return CheckedFactor(frozenset(self._numbers), self._width(tree), kind)

    def _refusal(self, why: str) -> FormulaError:
        return FormulaError(f"the term {quoted(self._expression)} {why}")

    def _kind(
        self, node: ast.AST, depth: int, *, compared: bool = False, stateful: bool = False
    ) -> str:
        if depth > DEEPEST:
            raise self._refusal("is nested too deeply")
        below: dict[str, Any] = {"depth": depth + 1, "compared": compared, "stateful": stateful}
        match node:
            case ast.Name():
                return self._name(node, compared)
            case ast.Constant():
                return self._constant(node.value, stateful)
            case ast.Attribute():
                if _dotted(node) in CONSTANTS:
                    return "number"
                raise self._refusal(f"uses {quoted(_source(node))}, which a model file may not")
            case ast.UnaryOp() if isinstance(node.op, _SIGNS):
                return self._operands([self._kind(node.operand, **below)])
            case ast.BinOp() if isinstance(node.op, _OPERATORS):
                kind = self._operands(
                    [self._kind(part, **below) for part in (node.left, node.right)]
                )
                if isinstance(node.op, ast.Pow) and kind == "number":
                    raise self._refusal("raises a constant to a power")
                return kind
            case ast.BoolOp():
                return self._operands([self._kind(part, **below) for part in node.values])
            case ast.Compare() if all(isinstance(operator, _COMPARISONS) for operator in node.ops):
                below["compared"] = True
                kinds = [self._kind(part, **below) for part in (node.left, *node.comparators)]
                return self._operands([kind for kind in kinds if kind != "text"] or ["text"])
            case ast.Call():
                return self._call(node, below)
            case ast.List() | ast.Tuple():
                for element in node.elts:
                    self._literal(element, below)
                return "list"
            case ast.Dict():
                for part in (*node.keys, *node.values):
                    self._literal(part, below)
                return "list"
        raise self._refusal(f"holds Python that a model file may not ({type(node).__name__})")

    def _name(self, node: ast.Name, compared: bool) -> str:
        name = self._aliases.get(node.id, node.id)
        if node.id.startswith("__") or node.id in ("np", "contr"):
            raise self._refusal(f"uses {quoted(name)}, which a model file may not")
        if not compared:
            self._numbers.add(name)
        return "column"

    def _constant(self, value: object, stateful: bool) -> str:
        if isinstance(value, str):
            # formulaic puts calls of stateful functions into text in double quotes.
            if stateful and ("'" in value or '"' in value):
                raise self._refusal("has a text with quotes in it")
            return "text"
        if isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER:
            return "number"
        if value is None:
            return "none"
        raise self._refusal(f"holds {quoted(value)}, which is not a number of a usual size")

    def _operands(self, kinds: list[str]) -> str:
        if {"matrix", "number"}.issuperset(kinds) and "matrix" in kinds:
            return "matrix"
        if not {"column", "number"}.issuperset(kinds):
            raise self._refusal("calculates with what is neither a column nor a number")
        return "column" if "column" in kinds else "number"

    def _literal(self, node: ast.AST | None, below: dict[str, Any]) -> None:
        plain = ast.Constant | ast.List | ast.Tuple
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node = node.operand
        if not isinstance(node, plain):
            raise self._refusal("has a list of what is not constant")
        self._kind(node, **below)

    def _signature(self, node: ast.Call) -> Signature:
        name = _dotted(node.func)
        signature = FUNCTIONS.get(name) or CONTRASTS.get(name)
        if signature is None or name in self._aliases:
            raise self._refusal(
                f"calls {quoted(_source(node.func))}, which is not among the functions that a "
                "model file may call"
            )
        return signature

    def _call(self, node: ast.Call, below: dict[str, Any]) -> str:
        name, signature = _dotted(node.func), self._signature(node)
        keywords = [keyword.arg for keyword in node.keywords]
        if (
            not signature.least <= len(node.args) <= signature.most
            or not signature.keywords.issuperset({str(keyword) for keyword in keywords})
            or len({*keywords}) < len(keywords)
        ):
            raise self._refusal(f"calls {name} with arguments that a model file may not give it")
        inside = {**below, "stateful": below["stateful"] or signature.stateful}
        if name == "Q":
            return self._quoted_column(node.args[0], inside["compared"])
        arguments = _arguments(node)
        kinds = [
            self._argument(name, signature, position, argument, inside)
            for position, argument in arguments.items()
        ]
        if name in CONTRASTS:
            return "contrast"
        if name in _CODES:
            return "categories"
        if signature.widths or "matrix" in kinds:
            return "matrix"
        return "column" if "column" in kinds else "number"

    def _argument(
        self,
        name: str,
        signature: Signature,
        position: int | str,
        node: ast.expr,
        inside: dict[str, Any],
    ) -> str:
        if position in signature.widths:
            self._check_count(node)
        is_setting = signature.settings and (position != 0 or name in CONTRASTS)
        codes = name in _CODES
        if codes and is_setting and _dotted(node) in CONTRASTS:
            return "contrast"
        self._check_setting(name, position, node)
        if codes and position == 0:
            # As in comparisons, what becomes categories need not be numbers.
            inside = {**inside, "compared": True}
        kind = self._kind(node, **inside)
        allowed = {"number", "none"}
        if position == 0 or name.startswith("np."):
            allowed = {"column", "number"}
        if position == 0 and (name in _EACH or signature.most == 1):
            allowed |= {"matrix"}
        if is_setting:
            allowed |= {"text"} | ({"contrast"} if codes else set())
            if name not in ("np.where", "scale"):
                allowed |= {"list"}
        if kind not in allowed:
            raise self._refusal(f"gives {name} an argument that it does not take")
        return kind

    def _check_count(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and node.value is None:
            return
        if not (isinstance(node, ast.Constant) and type(node.value) is int):
            raise self._refusal("asks for a number of columns that is not an integer")
        if not 0 <= node.value <= self._n_columns + 2:
            raise self._refusal(
                f"asks for {node.value:,} columns; the model has {self._n_columns:,}"
            )

    def _check_setting(self, name: str, position: int | str, node: ast.expr) -> None:
        """Refuse settings with which a function would fail or never end."""
        sound = True
        none = isinstance(node, ast.Constant) and node.value is None
        listed = isinstance(node, ast.List | ast.Tuple)
        if position in _CONTRASTS_AT.get(name, ()) and not isinstance(node, ast.Call):
            sound = none or contrasts_are_sound(node)
        elif name == "C" and position == "levels":
            sound = none or (
                isinstance(node, ast.List | ast.Tuple)
                and all(isinstance(element, ast.Constant) for element in node.elts)
            )
        elif name in ("contr.poly", "Poly"):
            sound = none or listed
        elif name == "contr.custom":
            sound = listed
        elif name in CONTRASTS:
            sound = not isinstance(node, ast.List | ast.Tuple | ast.Dict)
        elif name == "np.round" and position == 1:
            value = node.operand if isinstance(node, ast.UnaryOp) else node
            sound = isinstance(value, ast.Constant) and type(value.value) is int
            sound = sound and value.value <= _MOST_DIGITS  # type: ignore[attr-defined]
        if not sound:
            raise self._refusal(f"gives {name} an argument that it does not take")

    def _width(self, node: ast.AST) -> int:
        """Return how many columns an expression makes; nested functions multiply them."""
        below = max(map(self._width, ast.iter_child_nodes(node)), default=1)
        if not isinstance(node, ast.Call):
            return below
        name, signature, arguments = _dotted(node.func), self._signature(node), _arguments(node)
        own = 1
        if name in _CODES:
            own = max(listed_width(argument) for argument in arguments.values())
        if signature.widths:
            asked = [
                argument for position, argument in arguments.items() if position in signature.widths
            ]
            whole = [argument.value for argument in asked if isinstance(argument, ast.Constant)]
            own = max(own, *(value for value in whole if isinstance(value, int)), 1)
        if signature.stateful and self._learned is not None:
            learned = learned_width(name, arguments, self._learned.get(format_expr(node)), below)
            if learned is None:
                raise self._refusal(f"calls {name}, and what it learned is not there or not sound")
            own = learned or 1
        return below * own

    def _quoted_column(self, node: ast.expr, compared: bool) -> str:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            raise self._refusal("calls Q with something other than the name of a column in quotes")
        self._constant(node.value, True)
        if not compared:
            self._numbers.add(node.value)
        return "column"


def _arguments(node: ast.Call) -> dict[int | str, ast.expr]:
    """Return the arguments of a call, by position or name."""
    arguments: dict[int | str, ast.expr] = dict(enumerate(node.args))
    arguments.update((str(keyword.arg), keyword.value) for keyword in node.keywords)
    return arguments


def _dotted(node: ast.AST) -> str:
    """Return the name of a function; empty if it is not a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _source(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return type(node).__name__
