"""Formulas evaluated on the columns of a frame, and what cannot be evaluated told in our words."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec
from formulaic.errors import DataMismatchWarning, FormulaicError

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.formula.expressions import called_in, parse_factor
from heckmanfa.data.formula.frames import about_times, is_numeric, is_time, refuse_nested
from heckmanfa.data.formula.functions import FUNCTIONS
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    FormulaError,
    HeckmanfaError,
    InputError,
    MissingValueError,
    TooFewRowsError,
    UnknownFeatureError,
)
from heckmanfa.text.printable import quoted, shown

if TYPE_CHECKING:
    from heckmanfa.data.formula.design import Equation

__all__ = [
    "check_kinds",
    "check_variables",
    "complete_rows",
    "matrix_of",
    "one_column",
    "plain_words",
    "refuse_infinity",
    "refuse_many_levels",
    "refuse_other_rows",
    "truth_of",
    "variables_of",
]


# So few categories are for the fit to judge.
_FEW_LEVELS = 20
# What gives a row the same value whatever the other rows are.
_ROW_BY_ROW = {name for name, signature in FUNCTIONS.items() if not signature.stateful} | {"Q"}
_ROW_BY_ROW -= {"lag", "C", "hashed"}


def variables_of(formula: Formula, frame: pd.DataFrame) -> list[str]:
    """Columns that a formula uses; `a.b` in quotes is one, which formulaic calls 'a'."""
    expressions = {factor.expr for term in formula for factor in term.factors}
    names: set[str] = set()
    for variable in (str(name) for name in formula.required_variables):
        dotted = [
            expression
            for expression in expressions
            if expression in frame and expression.startswith(variable + ".")
        ]
        names.update(dotted if dotted and variable not in frame else [variable])
    # Neither a column with the name of a function of formulaic's is among those,
    names.update(expression for expression in expressions if expression in frame)
    # nor is what is inside a stateful function (center, a spline).
    for expression in expressions - {*frame.columns}:
        try:
            named = parse_factor(expression)[1]
        except SyntaxError:
            continue
        names.update(name for name in named if name in frame)
    return sorted(names)


def _used(formula: Formula, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that a formula uses; others could stand in the place of functions."""
    names = variables_of(formula, frame)
    for term in formula:
        for factor in term.factors:
            both = called_in(factor.expr) & {*names} if factor.expr not in frame else set()
            if both:
                raise FormulaError(
                    f"{quoted(min(both))} is a function and a column in the same formula; rename "
                    "the column"
                )
    return frame[names]


def check_kinds(learned: Equation, frame: pd.DataFrame) -> None:
    """Refuse text where the fit had numbers, and categories that it did not have."""
    for name in learned.numeric:
        _check_there(name, frame)
        if not is_numeric(frame[name]) and frame[name].notna().any():
            raise InputError(
                f"column {quoted(name)} held numbers in the fit and holds text or categories here; "
                "convert it, for example with pandas.to_numeric"
            )
    for expression, (_, categories) in learned.encodings.items():
        column = None if categories is None else _column_of(expression, frame, ("C",))
        if column is not None:
            known = {*(categories or ())}
            unseen = [category for category in column.dropna().unique() if category not in known]
            if unseen:
                some = ", ".join(quoted(category) for category in sorted(unseen, key=str)[:5])
                raise InputError(
                    f"column {quoted(column.name)} has categories that the model was not fitted "
                    f"with: {some}"
                )


def _column_of(
    expression: str, frame: pd.DataFrame, functions: tuple[str, ...]
) -> pd.Series[Any] | None:
    """Return the column that a factor is, by itself or as what a function is given first."""
    if expression in frame:
        return frame[expression]
    try:
        tree, names = parse_factor(expression)
    except SyntaxError:
        return None
    if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) in functions and tree.args):
        return None
    named = [name for name in names if name in frame]
    return frame[named[0]] if len(named) == 1 and isinstance(tree.args[0], ast.Name) else None


def refuse_many_levels(formula: Formula, frame: pd.DataFrame, equation: str) -> None:
    """Refuse a column with so many categories that these rows cannot tell them apart.

    This comes before any column of zeros and ones is made: they could fill the memory.
    """
    for term in formula:
        for factor in term.factors:
            column = _column_of(factor.expr, frame, ("C",))
            if column is None or (factor.expr in frame and is_numeric(column)) or is_time(column):
                continue
            try:
                levels = int(column.nunique())
            except TypeError:  # lists are no categories, as the evaluation says
                continue
            if levels > _FEW_LEVELS and 2 * levels > len(frame):
                raise TooFewRowsError(
                    f"column {quoted(column.name)} of the {equation} formula has {levels:,} "
                    f"categories in {len(frame):,} rows, too many to fit a coefficient to each. "
                    "Leave it out, merge its categories, or, where it is a date or a number "
                    "written as text, make it a number in a new column of the data before the fit"
                )


def refuse_other_rows(formula: Formula, frame: pd.DataFrame, instead: str) -> None:
    """Refuse a left side that is not worked out row by row: in other data it would be another."""
    for term in formula:
        for factor in term.factors:
            if factor.expr in frame:
                continue
            try:
                nodes = list(ast.walk(parse_factor(factor.expr)[0]))
            except SyntaxError:
                continue
            calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
            odd = [call for call in calls if call not in _ROW_BY_ROW]
            if odd or any(isinstance(node, ast.Subscript) for node in nodes):
                raise InputError(
                    f"the left side {quoted(factor.expr)} goes by more than the row itself, so it "
                    f"is another in other data: pass {instead}"
                )


def refuse_infinity(part: pd.DataFrame) -> None:
    """Refuse columns that functions made infinite, by name."""
    counts = np.isinf(part.to_numpy()).sum(axis=0)
    if counts.any():
        said = ", ".join(
            f"{quoted(name)} ({count} rows)"
            for name, count in zip(part.columns, counts, strict=True)
            if count
        )
        raise MissingValueError(f"the formulas give infinite values in {said}; correct these rows")


def plain_words(error: Exception) -> str:
    """Return the first line of an error of formulaic's, without the colours of a terminal."""
    text = re.sub(r"\x1b?\[[0-9;]*m|[⧛⧚]", "", str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def check_variables(formula: Formula | None, frame: pd.DataFrame) -> None:
    """Refuse a formula that uses a column which is not there."""
    if formula is not None:
        for name in variables_of(formula, frame):
            _check_there(name, frame)


def _check_there(name: str, frame: pd.DataFrame) -> None:
    if name not in frame.columns and "(" in name:
        raise FormulaError(
            f"the formula works with {quoted(name)}..., which it cannot: make such a column in the "
            "data before the fit, and name it in the formula"
        )
    if name not in frame.columns:
        raise UnknownFeatureError(
            f"the formula uses {quoted(name)}, which the data does not have"
            + nearest(name, [str(column) for column in frame.columns])
        )


def complete_rows(formula: Formula, frame: pd.DataFrame) -> Mask:
    """Return which rows have every variable of a formula."""
    names = variables_of(formula, frame)
    return np.asarray(frame[names].notna().all(axis=1).to_numpy(), dtype=bool)


def matrix_of(formula: Formula | ModelSpec, frame: pd.DataFrame, equation: str) -> pd.DataFrame:
    """Evaluate the right side of a formula, without its intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataMismatchWarning)
        try:
            made, spec = _evaluate(formula, frame)
        except DataMismatchWarning as error:
            raise InputError(
                f"the {equation} formula meets categories that the model was not fitted with: "
                + _unseen(str(error))
            ) from error
        except (HeckmanfaError, MemoryError):
            raise
        # What a formula calls fails in many ways on data that it was not written for.
        except Exception as error:
            raise FormulaError(
                f"the {equation} formula cannot be evaluated on the data: {plain_words(error)}"
            ) from error
    made = made.drop(columns="Intercept")
    made.attrs["spec"] = spec
    return made


def _evaluate(formula: Formula | ModelSpec, frame: pd.DataFrame) -> tuple[pd.DataFrame, ModelSpec]:
    parsed = formula.formula if isinstance(formula, ModelSpec) else formula
    used = _used(parsed, frame)
    for term in parsed:
        for factor in term.factors:
            column = _column_of(factor.expr, used, ("C", "I"))
            if column is not None and is_time(column):
                raise InputError(about_times(str(column.name)))
            if column is not None:
                refuse_nested(column)
    try:
        # What is NaN or infinite after it is for the caller to say, not for NumPy.
        with np.errstate(all="ignore"):
            matrix = formula.get_model_matrix(used, na_action="ignore", context={})
        return pd.DataFrame(matrix).astype(np.float64), matrix.model_spec
    except (FormulaicError, TypeError, ValueError) as error:
        times = [name for name in used.columns if is_time(used[name])]
        if times:
            raise InputError(about_times(str(times[0]))) from error
        raise


def _unseen(message: str) -> str:
    """Return the categories that formulaic's warning lists as a set, as they look in a table."""
    listed = re.search(r"\{(.*)\}\. They are being", message, re.DOTALL)
    said = listed.group(1) if listed else message
    return shown(re.sub(r"np\.\w+\((.*?)\)", r"\1", said))


def one_column(formula: Formula, frame: pd.DataFrame, equation: str) -> Floats:
    """Evaluate the left side of a formula to one number a row; missing stays missing."""
    rows = complete_rows(formula, frame)
    values = np.full(len(frame), np.nan)
    if rows.any():
        # Before it is evaluated: text would become a column for each of its values.
        text = [name for name in variables_of(formula, frame) if not is_numeric(frame[name])]
        times = [name for name in text if is_time(frame[name])]
        if times:
            raise InputError(about_times(times[0]))
        if text:
            raise FormulaError(
                f"the left side of the {equation} formula, {formula}, must be one number a row; "
                f"column {quoted(text[0])} holds text or categories"
            )
        try:
            part, _ = _evaluate(formula, frame[rows])
        except (HeckmanfaError, MemoryError):
            raise
        except Exception as error:
            raise FormulaError(
                f"the left side of the {equation} formula cannot be evaluated: {plain_words(error)}"
            ) from error
        if part.shape[1] != 1:
            raise FormulaError(
                f"the left side of the {equation} formula, {formula}, must be one number a row"
            )
        values[rows] = part.iloc[:, 0].to_numpy(dtype=np.float64)
    return values


def truth_of(who: Formula, frame: pd.DataFrame) -> Mask:
    """Evaluate a left side that says of each row whether it is selected."""
    values = one_column(who, frame, "selection")
    missing = np.count_nonzero(np.isnan(values))
    if missing:
        raise InputError(
            f"the selection formula's left side is missing in {missing} rows; it must say of "
            "every row whether it is selected"
        )
    strange = sorted(set(values) - {0.0, 1.0})
    if strange:
        raise InputError(
            f"the selection formula's left side holds {strange[0]:g}; it must be 0 or 1, or true "
            f"or false. Write for example I({who} == {strange[-1]:g})."
        )
    return np.asarray(values == 1)
