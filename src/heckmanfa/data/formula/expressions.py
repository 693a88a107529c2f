"""Names in the factors of a formula: Python, plus names in backticks and ``Q("...")``."""

from __future__ import annotations

import ast
import re
from typing import Any

from formulaic.parser import DefaultFormulaParser
from formulaic.parser.algos.tokenize import tokenize
from formulaic.parser.types import ASTNode, Token

from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import shown

_MODULES = ("np", "contr")


def parse_factor(expression: str) -> tuple[ast.expr, list[str]]:
    """Parse a factor, such as ``center(age)``, and list the variables that it may name, in order.

    In the tree, stand-ins replace names in backticks.
    """
    tree, alias = _parsed(expression)
    nodes = list(ast.walk(tree))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    functions |= {id(node.value) for node in nodes if _is_from_module(node)}  # type: ignore[attr-defined]
    found = [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions]
    found += [
        str(node.args[0].value)
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Q"
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    return tree, [alias.get(name, name).strip("`") for name in dict.fromkeys(found)]


def called_in(expression: str) -> set[str]:
    """Return the functions that a factor calls by a plain name, and the modules of others."""
    try:
        tree, _ = _parsed(expression)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    nodes = list(ast.walk(tree))
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    called |= {node.value for node in nodes if _is_from_module(node)}  # type: ignore[attr-defined]
    return {node.id for node in called if isinstance(node, ast.Name)}


def right_side(text: str) -> str:
    """Return the part of a formula after ``~``, or all of it if there is none."""
    for token in tokenize(text):
        if token.kind is Token.Kind.OPERATOR and "~" in token.token:
            return text[(token.source_start or 0) :].split("~", 1)[1]
    return text


def refuse_powers(text: str) -> None:
    """Refuse expressions that look like powers but are not: ``I(x^2)`` and ``x^2``.

    In Python, ``^`` is a bitwise exclusive or. In formulas, as in R, a power of terms crosses them
    with each other, and a column crossed with itself is that column. ``(a + b)^2`` is fine: a, b,
    and their interaction. A formula that cannot be parsed is left to the caller that evaluates it.
    """
    try:
        tokens = list(tokenize(text))
        root = DefaultFormulaParser().get_ast(text, context={})
    # formulaic's parser fails in many ways if brackets do not match.
    except Exception:
        return
    for token in tokens:
        if token.kind is Token.Kind.PYTHON:
            _refuse_carets(token.token)
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ASTNode):
            parts = list(node.args)
            waiting.extend(parts)
            if node.operator.symbol in ("^", "**") and isinstance(parts[0], Token):
                name = str(parts[0])
                # Users who write I(x)^2 mean I(x**2); other calls stay as they are.
                inner = re.fullmatch(r"I\(([\w.]+)\)", name)
                call = parts[0].kind is Token.Kind.PYTHON
                odd = re.search(r"[^\w.]", name) and not call
                what = shown(inner.group(1) if inner else f"`{name}`" if odd else name)
                raise FormulaError(
                    f"in a formula, {what}{node.operator.symbol}{parts[1]} is {what} crossed with "
                    f"itself, which is {what}; for its power, write I({what} ** {parts[1]})"
                )


def _refuse_carets(expression: str) -> None:
    try:
        tree, _ = _parsed(expression)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            if not (_is_number(node.left) or _is_number(node.right)):
                continue
            # From the text, not the tree: in Python, ^ binds less tightly than +, unlike a power.
            meant = re.sub(r"\s*\^\s*", " ** ", expression).strip()
            raise FormulaError(
                f"{shown(expression)}: in Python, ^ is not a power but a bitwise exclusive or; "
                f"write {shown(meant)}"
            )


def _parsed(expression: str) -> tuple[ast.expr, dict[str, str]]:
    """Return the tree of a factor, and the name in backticks for each stand-in."""
    quoted = list(dict.fromkeys(re.findall("`[^`]*`", expression)))
    alias = {f"quoted_{index}_": name for index, name in enumerate(quoted)}
    text = expression
    for stand_in, name in alias.items():
        text = text.replace(name, stand_in)
    return ast.parse(text.strip(), mode="eval").body, alias


def _is_from_module(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in _MODULES
    )


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) or _is_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)
