"""Checks of the formulas in a model file, and of what they have learned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from formulaic import Formula
from formulaic.parser.types import Factor

from heckmanfa.data.formula.design import Equation, FormulaDesign
from heckmanfa.data.formula.expression_checks import CheckedFactor
from heckmanfa.data.formula.expressions import right_side
from heckmanfa.data.formula.safety import check_formula
from heckmanfa.errors import FormulaError
from heckmanfa.text.printable import quoted

# A spline has a few more knots than columns.
_SPARE = 32
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
        if right_side(text) != equation.text or right_side(equation.text) != equation.text:
            raise FormulaError(
                f"the formula {quoted(equation.text)} is not the one that the model names"
            )
        _check_left(text[: len(text) - len(equation.text)].rstrip(" \n\r\t~"), len(names))
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
        if not all(
            category is None or isinstance(category, _CATEGORY) for category in categories or ()
        ):
            raise FormulaError(f"the term {quoted(expression)} has categories that are not values")
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
