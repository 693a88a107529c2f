"""The text of a formula: the names in its factors, and spellings that are refused.

Factors are Python, plus names in backticks and ``Q("...")``. The syntax of R and Stata is refused
with the spelling that works here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from formulaic import Formula
from formulaic.parser import DefaultFormulaParser
from formulaic.parser.algos.tokenize import tokenize
from formulaic.parser.types import ASTNode, Token

from heckmanfa.data.formula.functions import FUNCTIONS
from heckmanfa.errors import (
    FormulaError,
    InputError,
)
from heckmanfa.text.printable import quoted, shown

_MODULES = ("np", "contr")
_CALL = re.compile(r"(?<![\w.])((?:as\.)?[A-Za-z_]\w*)\(")
_STATA = re.compile(r"(?<![\w.)\]])(i|c|ib?\d+|ibn|[LFDS]\d*)\.([A-Za-z_]\w*)(?![\w.(])")
_CATEGORIES = ("factor", "as.factor", "ordered", "as.ordered", "as.character", "relevel")
# Functions that give a row the same value whatever the other rows are.
_ROW_BY_ROW = {name for name, signature in FUNCTIONS.items() if not signature.stateful} | {"Q"}
_ROW_BY_ROW -= {"lag", "C", "hashed"}
_NUMBERS = ("as.numeric", "as.integer", "as.double", "as.logical")


def parse_factor(expression: str) -> tuple[ast.expr, list[str]]:
    """Parse a factor, such as ``center(age)``, and list the variables that it may name, in order.

    In the tree, stand-ins replace names in backticks. What cannot be parsed names no variable.
    """
    tree, alias = _parsed(expression)
    nodes = list(ast.walk(tree))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    functions |= {id(node.value) for node in nodes if _is_from_module(node)}  # type: ignore[attr-defined]
    names = [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions]
    names += [
        str(node.args[0].value)
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Q"
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    return tree, [alias.get(name, name).strip("`") for name in dict.fromkeys(names)]


def called_in(expression: str) -> set[str]:
    """Return the functions that a factor calls by a plain name, and the modules of others."""
    nodes = list(ast.walk(_parsed(expression)[0]))
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    called |= {node.value for node in nodes if _is_from_module(node)}  # type: ignore[attr-defined]
    return {node.id for node in called if isinstance(node, ast.Name)}


def right_side(text: str) -> str:
    """Return the part of a formula after ``~``, or all of it if there is none."""
    for token in tokenize(text):
        if token.kind is Token.Kind.OPERATOR and "~" in token.token:
            return text[(token.source_start or 0) :].split("~", 1)[1]
    return text


def left_side(text: str) -> str:
    """Return the part of a formula before ``~``; nothing if there is none."""
    right = right_side(text)
    return "" if right == text else text[: len(text) - len(right)].removesuffix("~").strip()


def compares(expression: str) -> bool:
    """Whether a factor is true or false in every row, since it compares: ``I(wage > 4)``."""
    tree, _ = _parsed(expression)
    while isinstance(tree, ast.Call) and ast.unparse(tree.func) == "I" and len(tree.args) == 1:
        tree = tree.args[0]
    return _is_boolean(tree)


def _is_boolean(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_boolean(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return _is_boolean(node.left) and _is_boolean(node.right)
    return isinstance(node, ast.Compare)


def refuse_chains(expression: str) -> None:
    """Refuse ``3 < wage < 5`` and ``a > 1 and b > 2``, which Python cannot do row by row."""
    for node in ast.walk(_parsed(expression)[0]):
        is_chain = isinstance(node, ast.Compare) and len(node.ops) > 1
        if is_chain or isinstance(node, ast.BoolOp):
            raise FormulaError(
                f"{shown(expression.strip())} cannot be decided row by row: put each comparison "
                "in brackets, and write & for and, | for or, as in (3 < x) & (x < 5)"
            )


def left_as_python(text: str) -> str:
    """Return a formula with a left side that compares in braces: ``{wage > 4} ~ educ``.

    formulaic evaluates what is in braces, and has no comparisons of its own.
    """
    try:
        left = left_side(text)
    # formulaic's parser fails in many ways if brackets do not match.
    except Exception:
        return text
    if left:
        refuse_chains(left)
    return f"{{{left}}} ~{right_side(text)}" if left and compares(left) else text


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
    for node in ast.walk(_parsed(expression)[0]):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            if not (_is_number(node.left) or _is_number(node.right)):
                continue
            # From the text, not the tree: in Python, ^ binds less tightly than +, unlike a power.
            meant = " ** ".join(part.strip() for part in expression.split("^"))
            raise FormulaError(
                f"{shown(expression)}: in Python, ^ is not a power but a bitwise exclusive or; "
                f"write {shown(meant)}"
            )


def _parsed(expression: str) -> tuple[ast.expr, dict[str, str]]:
    """Return the tree of a factor, and the name in backticks for each stand-in.

    The tree is that of None if the factor cannot be parsed.
    """
    names = dict.fromkeys(re.findall("`[^`]*`", expression))
    alias = {f"quoted_{index}_": name for index, name in enumerate(names)}
    text = expression
    for stand_in, name in alias.items():
        text = text.replace(name, stand_in)
    try:
        return ast.parse(text.strip(), mode="eval").body, alias
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Constant(None), alias


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


def refuse_other_languages(text: str, columns: Sequence[str]) -> None:
    """Refuse the spellings of R and Stata, each with the spelling that works here.

    Names of columns are not spellings of another language. Anything but text is left to the parser.
    """
    if not isinstance(text, str):
        return
    # Names in backticks and text in quotes do not reveal the language.
    bare = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", lambda match: "_" * len(match.group()), text)
    advice = _stata(bare, columns) or _r(bare, text, columns)
    if advice:
        raise FormulaError(advice)


def _stata(text: str, columns: Sequence[str]) -> str | None:
    product = re.search(r"(?<![\w.])([\w.]+)\s*(##?)\s*([\w.]+)", text)
    if product:
        left, right = (_from_stata(product.group(group), columns) for group in (1, 3))
        if left == right:
            meant = f"I({left}**2)" if product.group(2) == "#" else f"{left} + I({left}**2)"
        else:
            meant = f"{left}{'*' if product.group(2) == '##' else ':'}{right}"
        return f"{shown(product.group())} is Stata's spelling; in a formula, write {shown(meant)}"
    for match in _STATA.finditer(text):
        operator, name = match.groups()
        whole = match.group()
        if whole in columns or operator in columns:
            continue
        if operator[0] in "LFDS":
            return (
                f"{shown(whole)} is a time-series operator of Stata, which formulas do not have: "
                "make such a column in the data before the fit"
            )
        return (
            f"{shown(whole)} is Stata's spelling; in a formula, write "
            f"{shown(_from_stata(whole, columns))}" + _base(operator, name)
        )
    return None


def _from_stata(factor: str, columns: Sequence[str]) -> str:
    """Return the spelling of a Stata factor that works here."""
    match = None if factor in columns else _STATA.fullmatch(factor)
    if match is None:
        return factor
    operator, name = match.groups()
    return f"C({name})" if operator.startswith("i") else name


def _base(operator: str, name: str) -> str:
    digits = re.sub(r"\D", "", operator)
    if not digits:
        return ""
    return f", or C({shown(name)}, contr.treatment({digits})) for the base level {digits}"


def _r(text: str, written: str, columns: Sequence[str]) -> str | None:
    for match in _CALL.finditer(text):
        name = match.group(1)
        if name in columns or name in FUNCTIONS:
            continue
        comma, end = _inside(text, match.end())
        meant = _meant(
            name, written[match.end() : end].strip(), written[match.end() : comma].strip()
        )
        if meant:
            return (
                f"{shown(written[match.start() : end])}) is the spelling of another language; in a "
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


def expressions_of(formula: Formula) -> list[str]:
    """Return the different factors of a formula, in order."""
    return list(dict.fromkeys(factor.expr for term in formula for factor in term.factors))


def variables_of(formula: Formula, frame: pd.DataFrame) -> list[str]:
    """Return the columns that a formula uses; formulaic takes `a.b` in quotes for 'a'."""
    names: set[str] = set()
    for expression in expressions_of(formula):
        named = [expression] if expression in frame else parse_factor(expression)[1]
        names.update(name for name in named if name in frame)
    # The column a is not used because a.b is.
    dots = ((name, place) for name in names for place, sign in enumerate(name) if sign == ".")
    owners = {name[:place] for name, place in dots}
    return sorted(names | ({str(name) for name in formula.required_variables} - owners))


def columns_in(
    formula: Formula, frame: pd.DataFrame, *functions: str
) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield the factors of a formula that are columns, each with its column; see `column_of`."""
    for expression in expressions_of(formula):
        column = column_of(expression, frame, *functions)
        if column is not None:
            yield expression, column


def column_of(expression: str, frame: pd.DataFrame, *functions: str) -> pd.Series[Any] | None:
    """Return the column that a factor is, by itself or as the first argument of a function."""
    if expression in frame:
        return frame[expression]
    tree, names = parse_factor(expression)
    if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) in functions and tree.args):
        return None
    named = [name for name in names if name in frame]
    return frame[named[0]] if len(named) == 1 and isinstance(tree.args[0], ast.Name) else None


def refuse_other_rows(formula: Formula, frame: pd.DataFrame, instead: str) -> None:
    """Refuse a left side that depends on other rows: in other data its values would differ."""
    for expression in expressions_of(formula):
        if expression in frame:
            continue
        nodes = list(ast.walk(parse_factor(expression)[0]))
        calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
        odd = [call for call in calls if call not in _ROW_BY_ROW]
        if odd or any(isinstance(node, ast.Subscript) for node in nodes):
            raise InputError(
                f"the left side {quoted(expression)} depends on other rows, so it is not the "
                f"same in other data: pass {instead}"
            )
