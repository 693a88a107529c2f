"""Checks that the formula of a model file only does what listed functions can do.

formulaic evaluates the Python in a formula, some of it while it reads the text. So the text is
first split here with formulaic's own tokenizer and Python's own parser, neither of which evaluates
anything. Whatever is not on the list of allowed expressions is refused.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formulaic.parser import DefaultFormulaParser
from formulaic.parser.algos.sanitize_tokens import sanitize_tokens
from formulaic.parser.algos.tokenize import tokenize
from formulaic.parser.types import ASTNode, Token
from formulaic.utils.code import format_expr, sanitize_variable_names

from heckmanfa.data.formula.functions import CONSTANTS, CONTRASTS, FUNCTIONS, Signature
from heckmanfa.data.formula.widths import Call, contrasts_are_sound, learned_width, listed_width
from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import quoted

__all__ = ["Factors", "check_formula"]

_LONGEST_FORMULA = 200_000
_LONGEST_FACTOR = 20_000
_DEEPEST = 40
_LARGEST_NUMBER = 2.0**63
_LONGEST_TERM = 8
# Terms beyond those of the model, for what is taken out again or named twice.
_SPARE = 32
# Products of terms that are formed before equal ones are put together.
_MOST_PRODUCTS = 500
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
# These take each column of a matrix for itself.
_EACH = ("center", "scale", "standardize")
_SIGNS = ast.UAdd | ast.USub | ast.Not | ast.Invert


@dataclass(frozen=True)
class Factors:
    """What the factors of an allowed formula are made of."""

    names: dict[str, frozenset[str]]
    """of each factor, the columns that must hold numbers for it to be a number"""
    widths: dict[str, int]
    """of each factor, how many columns it makes, at least one"""
    kinds: dict[str, str]
    """of each factor, "column", "matrix" or "categories\""""


def check_formula(text: Any, n_columns: int, learned: Mapping[str, Any] | None = None) -> Factors:
    """Refuse a formula that does more than a model file may ask for; nothing is evaluated.

    Parameters
    ----------
    text : str
        With or without a left side.
    n_columns : int
        How many columns the model has; a formula that asks for many more is refused.
    learned : mapping of str to state, optional
        What functions have learned; with it, a function that has learned nothing is refused.

    Returns
    -------
    Factors
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula must be text; got {type(text).__name__}")
    if len(text) > _LONGEST_FORMULA:
        raise FormulaError(f"a formula of {len(text):,} characters is too long")
    odd = re.search(r"[^\S \n\r\t]|[\x00-\x08\x0e-\x1f\x7f\\]", text)
    if odd:
        raise FormulaError(f"the formula holds {quoted(odd.group())}, which is not allowed there")
    if not text.isascii() and any(not char.isprintable() for char in text if char not in "\n\r\t"):
        raise FormulaError("the formula holds characters that cannot be seen")
    try:
        # What comes next takes time that grows fast with the depth and the number of tokens.
        _check_brackets(text)
        tokens = list(tokenize(text))
        _check_counts(tokens, n_columns)
        found = [_check_token(token, n_columns, learned) for token in sanitize_tokens(tokens)]
        _check_size(text, n_columns)
    except FormulaError:
        raise
    # formulaic's parser fails in many ways where brackets do not match.
    except Exception as error:
        raise FormulaError(f"the formula {quoted(text)} cannot be read") from error
    known = [factor for factor in found if factor is not None]
    return Factors(
        names={expression: names for expression, names, _, _ in known},
        widths={expression: width for expression, _, width, _ in known},
        kinds={expression: kind for expression, _, _, kind in known},
    )


# Tokens. ------------------------------------------------------------------------------------------


def _check_brackets(text: str) -> None:
    """Refuse brackets that are nested deeply, whether or not they are inside of quotes."""
    depth = deepest = 0
    for bracket in re.findall(r"[][(){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise FormulaError(f"the formula has brackets nested {deepest:,} deep")


def _check_counts(tokens: list[Token], n_columns: int) -> None:
    """Refuse a formula with far more terms, or longer ones, than its model can have."""
    factors = sums = 0
    for token in tokens:
        if token.kind is Token.Kind.OPERATOR:
            sums += "+" in token.token or "-" in token.token
        elif token.kind is not Token.Kind.CONTEXT:
            factors += 1
            if len(token.token) > _LONGEST_FACTOR:
                raise FormulaError(f"the formula has a term of {len(token.token):,} characters")
    # Both sides of both equations share the columns of the model.
    most = 2 * n_columns + _SPARE
    if sums > most or factors > _LONGEST_TERM * most or len(tokens) > 8 * _LONGEST_TERM * most:
        count = max(sums, factors)
        raise FormulaError(f"the formula has {count:,} terms; the model, {n_columns:,} columns")


def _check_token(
    token: Token, n_columns: int, learned: Mapping[str, Any] | None
) -> tuple[str, frozenset[str], int, str] | None:
    """Check a token; of one that is a factor, return it with its columns, width and kind."""
    kind, text = token.kind, token.token
    if kind is Token.Kind.PYTHON:
        if len(text) > _LONGEST_FACTOR:
            raise FormulaError(f"the formula has a term of {len(text):,} characters")
        return text, *_Checker(text, n_columns, learned).check()
    if kind is Token.Kind.NAME:
        return text, frozenset({text}), 1, "column"
    if kind is Token.Kind.VALUE and not re.fullmatch(r"\d{1,15}(\.\d{0,15})?", text, re.ASCII):
        raise FormulaError(f"the formula holds {quoted(text)}, which is not a number")
    if kind is Token.Kind.OPERATOR and not re.fullmatch(r"[-+*/:^~]{1,8}|in", text):
        raise FormulaError(f"the formula uses the operator {quoted(text)}, which is not allowed")
    return None


def _check_size(text: str, n_columns: int) -> None:
    """Refuse a formula whose operators multiply out to far more terms than the model has."""
    root = DefaultFormulaParser().get_ast(text, context={})
    most = _MOST_PRODUCTS + 50 * n_columns
    sizes: dict[int, tuple[int, int]] = {}
    for node in _bottom_up(root):
        counts = [sizes[id(part)] if isinstance(part, ASTNode) else (1, 1) for part in node.args]
        sizes[id(node)] = size, longest = _expanded(node, counts)
        if size > most:
            raise FormulaError(f"the formula multiplies out to more than {most:,} terms")
        if longest > _LONGEST_TERM:
            raise FormulaError(f"the formula multiplies more than {_LONGEST_TERM} factors")


def _bottom_up(root: Any) -> Iterator[ASTNode]:
    """Yield nodes after those below them, without recursion: a sum of many terms is deep."""
    waiting, order = [root], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ASTNode):
            order.append(node)
            waiting.extend(node.args)
    yield from reversed(order)


def _expanded(node: ASTNode, counts: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many terms a node makes, and how many factors the longest has, at most."""
    sizes, lengths = [size for size, _ in counts], [length for _, length in counts]
    symbol = node.operator.symbol
    if symbol in ("**", "^"):
        exponent = str(getattr(node.args[1], "token", ""))
        if not re.fullmatch(r"\d", exponent, re.ASCII):
            raise FormulaError("the power of a sum of terms must be a whole number below ten")
        return int(min(float(sizes[0]) ** int(exponent), 1e15)), lengths[0] * int(exponent)
    if symbol in ("*", ":"):
        return sum(sizes) + math.prod(sizes), sum(lengths)
    if symbol in ("/", "in"):
        # Each term of one side is multiplied by all the terms of the other side at once.
        return sum(sizes), max(lengths) + max(size * length for size, length in counts)
    return sum(sizes), max(lengths, default=0)


# Expressions. -------------------------------------------------------------------------------------


class _Checker:
    """Goes through a factor; what kind of value each part of it has decides what may be done to it.

    Kinds are "column", "matrix" (a spline), "categories", "number", "text", "list" and "contrast".
    Text and lists are for arguments and comparisons only: multiplied, they would fill the memory.
    A matrix and a column, or a list and a column, would make a table of each row with each other.
    """

    def __init__(self, expression: str, n_columns: int, learned: Mapping[str, Any] | None) -> None:
        self._expression, self._n_columns, self._learned = expression, n_columns, learned
        self._aliases: dict[str, str] = {}
        self._numbers: set[str] = set()

    def check(self) -> tuple[frozenset[str], int, str]:
        text = sanitize_variable_names(self._expression, {}, self._aliases)
        tree = ast.parse(text, mode="eval").body
        # First, since the name of a function tells more than the kind of what surrounds its call.
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._signature(node)
        kind = self._kind(tree, 0)
        if kind not in ("column", "matrix", "categories"):
            self._refuse("is not made of columns")
        return frozenset(self._numbers), self._width(tree), kind

    def _refuse(self, why: str) -> None:
        raise FormulaError(f"the term {quoted(self._expression)} {why}")

    def _kind(
        self, node: ast.AST, depth: int, *, compared: bool = False, stateful: bool = False
    ) -> str:
        if depth > _DEEPEST:
            self._refuse("is nested too deeply")
        below: dict[str, Any] = {"depth": depth + 1, "compared": compared, "stateful": stateful}
        match node:
            case ast.Name():
                return self._name(node, compared)
            case ast.Constant():
                return self._constant(node.value, stateful)
            case ast.Attribute():
                if _dotted(node) in CONSTANTS:
                    return "number"
                self._refuse(f"uses {quoted(_said(node))}, which a model file may not")
            case ast.UnaryOp() if isinstance(node.op, _SIGNS):
                return self._operands([self._kind(node.operand, **below)])
            case ast.BinOp() if isinstance(node.op, _OPERATORS):
                kind = self._operands(
                    [self._kind(part, **below) for part in (node.left, node.right)]
                )
                if isinstance(node.op, ast.Pow) and kind == "number":
                    self._refuse("raises a constant to a power")
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
        self._refuse(f"holds Python that a model file may not ({type(node).__name__})")
        raise AssertionError

    def _name(self, node: ast.Name, compared: bool) -> str:
        name = self._aliases.get(node.id, node.id)
        if node.id.startswith("__") or node.id in ("np", "contr"):
            self._refuse(f"uses {quoted(name)}, which a model file may not")
        if not compared:
            self._numbers.add(name)
        return "column"

    def _constant(self, value: object, stateful: bool) -> str:
        if isinstance(value, str):
            # formulaic writes calls of stateful functions into a text in double quotes.
            if stateful and ("'" in value or '"' in value):
                self._refuse("has a text with quotes in it")
            return "text"
        if isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER:
            return "number"
        if value is None:
            return "none"
        self._refuse(f"holds {quoted(value)}, which is not a number of a usual size")
        raise AssertionError

    def _operands(self, kinds: list[str]) -> str:
        if {"matrix", "number"}.issuperset(kinds) and "matrix" in kinds:
            return "matrix"
        if not {"column", "number"}.issuperset(kinds):
            self._refuse("calculates with what is neither a column nor a number")
        return "column" if "column" in kinds else "number"

    def _literal(self, node: ast.AST | None, below: dict[str, Any]) -> None:
        plain = ast.Constant | ast.List | ast.Tuple
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node = node.operand
        if node is None or not isinstance(node, plain):
            self._refuse("has a list of what is not constant")
        else:
            self._kind(node, **below)

    # Calls. ---------------------------------------------------------------------------------------

    def _signature(self, node: ast.Call) -> Signature:
        name = _dotted(node.func)
        signature = FUNCTIONS.get(name) or CONTRASTS.get(name)
        if signature is None or name in self._aliases:
            self._refuse(
                f"calls {quoted(_said(node.func))}, which is not among the functions that a model "
                "file may call"
            )
            raise AssertionError
        return signature

    def _call(self, node: ast.Call, below: dict[str, Any]) -> str:
        name, signature = _dotted(node.func), self._signature(node)
        keywords = [keyword.arg for keyword in node.keywords]
        if (
            not signature.least <= len(node.args) <= signature.most
            or not signature.keywords.issuperset({str(keyword) for keyword in keywords})
            or len({*keywords}) < len(keywords)
        ):
            self._refuse(f"calls {name} with arguments that a model file may not give it")
        inside = {**below, "stateful": below["stateful"] or signature.stateful}
        if name == "Q":
            return self._quoted_column(node.args[0], inside["compared"])
        given = _given(node)
        kinds = [
            self._argument(name, signature, place, argument, inside)
            for place, argument in given.items()
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
        place: int | str,
        node: ast.expr,
        inside: dict[str, Any],
    ) -> str:
        if place in signature.widths:
            self._check_asked(node)
        is_setting = signature.settings and (place != 0 or name in CONTRASTS)
        codes = name in _CODES
        if codes and is_setting and _dotted(node) in CONTRASTS:
            return "contrast"
        self._check_setting(name, place, node)
        if codes and place == 0:
            # What becomes categories need not be numbers, like what is compared.
            inside = {**inside, "compared": True}
        kind = self._kind(node, **inside)
        allowed = {"number", "none"}
        if place == 0 or name.startswith("np."):
            allowed = {"column", "number"}
        if place == 0 and (name in _EACH or signature.most == 1):
            allowed |= {"matrix"}
        if is_setting:
            allowed |= {"text"} | ({"contrast"} if codes else set())
            if name not in ("np.where", "scale"):
                allowed |= {"list"}
        if kind not in allowed:
            self._refuse(f"gives {name} an argument that it does not take")
        return kind

    def _check_asked(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and node.value is None:
            return
        if not (isinstance(node, ast.Constant) and type(node.value) is int):
            self._refuse("asks for a number of columns that is no whole number")
        elif not 0 <= node.value <= self._n_columns + 2:
            self._refuse(f"asks for {node.value:,} columns; the model has {self._n_columns:,}")

    def _check_setting(self, name: str, place: int | str, node: ast.expr) -> None:
        """Refuse settings that a function would fail with, or never come to an end with."""
        sound = True
        none = isinstance(node, ast.Constant) and node.value is None
        listed = isinstance(node, ast.List | ast.Tuple)
        if place in _CONTRASTS_AT.get(name, ()) and not isinstance(node, ast.Call):
            sound = none or contrasts_are_sound(node)
        elif name in _CODES and place == "levels" and name == "C":
            sound = none or (
                listed and all(isinstance(element, ast.Constant) for element in node.elts)
            )  # type: ignore[attr-defined]
        elif name in ("contr.poly", "Poly"):
            sound = none or listed
        elif name == "contr.custom":
            sound = listed
        elif name in CONTRASTS:
            sound = not isinstance(node, ast.List | ast.Tuple | ast.Dict)
        elif name == "np.round" and place == 1:
            value = node.operand if isinstance(node, ast.UnaryOp) else node
            sound = isinstance(value, ast.Constant) and type(value.value) is int
            sound = sound and value.value <= _MOST_DIGITS  # type: ignore[attr-defined]
        if not sound:
            self._refuse(f"gives {name} an argument that it does not take")

    def _width(self, node: ast.AST) -> int:
        """Return how many columns an expression makes: functions of functions multiply."""
        below = max(map(self._width, ast.iter_child_nodes(node)), default=1)
        if not isinstance(node, ast.Call):
            return below
        name, signature, given = _dotted(node.func), self._signature(node), _given(node)
        own = 1
        if name in _CODES:
            own = max(listed_width(argument) for argument in given.values())
        if signature.widths:
            asked = [argument for place, argument in given.items() if place in signature.widths]
            whole = [argument.value for argument in asked if isinstance(argument, ast.Constant)]
            own = max(own, *(value for value in whole if isinstance(value, int)), 1)
        if signature.stateful and self._learned is not None:
            call = Call(name, format_expr(node), given)
            learned = learned_width(call, self._learned, below)
            if learned is None:
                self._refuse(f"calls {name}, and what it learned is not there or not sound")
            own = learned or 1
        return below * own

    def _quoted_column(self, node: ast.expr, compared: bool) -> str:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            self._refuse("calls Q with something else than the name of a column in quotes")
        else:
            self._constant(node.value, True)
            if not compared:
                self._numbers.add(node.value)
        return "column"


def _given(node: ast.Call) -> dict[int | str, ast.expr]:
    """Return the arguments of a call, by place or name."""
    given: dict[int | str, ast.expr] = dict(enumerate(node.args))
    given.update((str(keyword.arg), keyword.value) for keyword in node.keywords)
    return given


def _dotted(node: ast.AST) -> str:
    """Return the name of a function, or nothing where it is not a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _said(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return type(node).__name__
