"""Checks of the formulas in a model file, and of what they have learned.

formulaic evaluates the Python in a formula, some of it while it reads the text. So the text is
first split here with formulaic's own tokenizer and Python's own parser, neither of which evaluates
anything. Whatever is not on the list of allowed expressions is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from formulaic import Formula
from formulaic.parser import DefaultFormulaParser
from formulaic.parser.algos.sanitize_tokens import sanitize_tokens
from formulaic.parser.algos.tokenize import tokenize
from formulaic.parser.types import ASTNode, Factor, Token

from heckmanfa.data.formula.design import Equation, FormulaDesign
from heckmanfa.data.formula.expression_checks import DEEPEST, CheckedFactor, ExpressionChecker
from heckmanfa.data.formula.expressions import left_as_python, right_side
from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import quoted

_LONGEST_FORMULA = 200_000
_LONGEST_FACTOR = 20_000
_LONGEST_TERM = 8
# Beyond those of the model: terms that are removed again or named twice, and knots of splines.
_SPARE = 32
# Products of terms before equal ones are merged.
_MOST_PRODUCTS = 500
_CATEGORY = str | int | float | np.number | np.bool_


def check_design(design: FormulaDesign, names: list[str]) -> None:
    """Refuse formulas that call unlisted functions, or that make far more columns than the model.

    The attributes of ``design`` have the right types, but may have any content. ``names`` are the
    columns of the model.
    """
    strange = {*design.selection_columns, *design.prediction_columns} - {*names}
    if strange:
        raise FormulaError(
            f"the formulas make {quoted(sorted(strange)[0])}, which is not a feature"
        )
    for text, equation in zip(design.texts, (design.prediction, design.selection), strict=True):
        check_formula(text, len(names))
        # The formula's length and depth are sound.
        written = left_as_python(text)
        if right_side(text) != equation.text or right_side(equation.text) != equation.text:
            raise FormulaError(
                f"the formula {quoted(equation.text)} is not the one that the model names"
            )
        _check_left(written[: len(written) - len(equation.text)].rstrip(" \n\r\t~"), len(names))
        _check_equation(equation, len(names))


def _check_left(text: str, n_columns: int) -> None:
    """Refuse a left side of several columns, of which a table could make any number."""
    if not text.strip():
        return
    for expression, factor in check_formula(text, n_columns).items():
        if factor.kind != "column" or factor.width > 1:
            raise FormulaError(f"the left side {quoted(expression)} is not one number per row")


def _check_equation(equation: Equation, n_columns: int) -> None:
    checked = check_formula(equation.text, n_columns, equation.transforms)
    try:
        terms = list(Formula(equation.text))
        kinds = {name: Factor.Kind(kind) for name, (kind, _) in equation.encodings.items()}
    except Exception as error:
        raise FormulaError(f"the formula {quoted(equation.text)} cannot be read") from error
    for name, (_, categories) in equation.encodings.items():
        if not all(isinstance(category, _CATEGORY | None) for category in categories or ()):
            raise FormulaError(f"the term {quoted(name)} has categories that are not values")
    if len(terms) > n_columns + _SPARE:
        raise FormulaError(f"the formula has {len(terms):,} terms; the model, {n_columns:,}")
    total = 0
    for term in terms:
        factors = [factor for factor in term.factors if factor.eval_method.value != "literal"]
        widths = [_width(factor.expr, equation, kinds, checked) for factor in factors]
        # A category has one column more if no other term includes its reference.
        more = [kinds[factor.expr] is Factor.Kind.CATEGORICAL for factor in factors]
        size, whole = math.prod(widths), math.prod(map(sum, zip(widths, more, strict=True)))
        total += size
        if size > n_columns + 1 or whole > 2 * n_columns + _SPARE:
            raise FormulaError(f"the term {quoted(str(term))} asks for more columns than there are")
    if total > 2 * n_columns + _SPARE:
        raise FormulaError(f"the formula makes {total:,} columns; the model has {n_columns:,}")
    if not _is_small(equation.transforms, 2 * n_columns + _SPARE):
        raise FormulaError("the formulas have learned something that no function learns")


def _width(
    expression: str,
    equation: Equation,
    kinds: dict[str, Factor.Kind],
    checked: dict[str, CheckedFactor],
) -> int:
    """Return about how many columns a factor makes; refuse what was never learned."""
    if expression not in checked or expression not in kinds:
        raise FormulaError(f"the term {quoted(expression)} was not part of the fit")
    width, categories = checked[expression].width, equation.encodings[expression][1]
    if kinds[expression] is Factor.Kind.CATEGORICAL:
        if categories is None and width == 1:
            raise FormulaError(f"the term {quoted(expression)} has no categories")
        return max(width, len(categories or ()) - 1)
    # Text would become as many columns as the data has categories when it predicts.
    text = checked[expression].names - {*equation.numeric}
    if text:
        raise FormulaError(f"{quoted(sorted(text)[0])} did not hold numbers in the fit")
    return width


def _is_small(value: Any, most: int, depth: int = 0) -> bool:
    """Whether a state holds plain numbers, in lists and tables no longer than a spline's."""
    if isinstance(value, dict | list | tuple):
        inner = value.values() if isinstance(value, dict) else value
        # The outermost table has an entry for each call of a function.
        return (
            depth < 5
            and len(value) <= most + (1000 if depth == 0 else 0)
            and all(_is_small(item, most, depth + 1) for item in inner)
        )
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf" and all(length <= most for length in value.shape)
    return value is None or isinstance(value, int | float | np.number | np.bool_ | str)


def check_formula(
    text: Any, n_columns: int, learned: Mapping[str, Any] | None = None
) -> dict[str, CheckedFactor]:
    """Check each factor of a formula, with or without a left side; nothing is evaluated.

    A formula is refused if it does more than a model file may ask for, or asks for many more
    columns than the model has. With what functions have ``learned``, a function that has learned
    nothing is refused as well.
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
        # The next steps' time grows fast with the depth and the number of tokens.
        _check_brackets(text)
        text = left_as_python(text)
        tokens = list(tokenize(text))
        _check_counts(tokens, n_columns)
        checked = [
            (token.token, _check_token(token, n_columns, learned))
            for token in sanitize_tokens(tokens)
        ]
        _check_size(text, n_columns)
    except FormulaError:
        raise
    # formulaic's parser fails in many ways if brackets do not match.
    except Exception as error:
        raise FormulaError(f"the formula {quoted(text)} cannot be read") from error
    return {expression: factor for expression, factor in checked if factor is not None}


def _check_brackets(text: str) -> None:
    """Refuse deeply nested brackets, whether or not they are inside quotes."""
    depth = deepest = 0
    for bracket in re.findall(r"[][(){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise FormulaError(f"the formula has brackets nested {deepest:,} deep")


def _check_counts(tokens: list[Token], n_columns: int) -> None:
    """Refuse a formula with far more or longer terms than its model can have."""
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
) -> CheckedFactor | None:
    """Check a token; None if it is not a factor."""
    kind, text = token.kind, token.token
    if kind is Token.Kind.PYTHON:
        return ExpressionChecker(text, n_columns, learned).check()
    if kind is Token.Kind.NAME:
        return CheckedFactor(frozenset({text}))
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
    """Yield nodes after their children, without recursion: a sum of many terms is deep."""
    waiting, order = [root], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ASTNode):
            order.append(node)
            waiting.extend(node.args)
    yield from reversed(order)


def _expanded(node: ASTNode, counts: list[tuple[int, int]]) -> tuple[int, int]:
    """Return upper bounds for a node's number of terms and for the factors of the longest."""
    sizes, lengths = [size for size, _ in counts], [length for _, length in counts]
    symbol = node.operator.symbol
    if symbol in ("**", "^"):
        exponent = str(getattr(node.args[1], "token", ""))
        if not re.fullmatch(r"\d", exponent, re.ASCII):
            raise FormulaError("the power of a sum of terms must be an integer below ten")
        return int(min(float(sizes[0]) ** int(exponent), 1e15)), lengths[0] * int(exponent)
    if symbol in ("*", ":"):
        return sum(sizes) + math.prod(sizes), sum(lengths)
    if symbol in ("/", "in"):
        # Each term of one side is multiplied by all terms of the other side at once.
        return sum(sizes), max(lengths) + max(size * length for size, length in counts)
    return sum(sizes), max(lengths, default=0)
