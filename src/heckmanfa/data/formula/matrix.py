"""Formulas evaluated on the columns of a frame, with our messages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec
from formulaic.errors import DataMismatchWarning, FormulaicError

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import refuse_same_labels
from heckmanfa.data.columns.column_numbers import as_table, is_wide
from heckmanfa.data.columns.encoding import UNSEEN_ADVICE
from heckmanfa.data.columns.values import time_in
from heckmanfa.data.formula.expressions import (
    called_in,
    column_of,
    columns_in,
    compares,
    expressions_of,
    variables_of,
)
from heckmanfa.data.rows import Mask
from heckmanfa.data.threads import SharedContext
from heckmanfa.errors import (
    FormulaError,
    HeckmanfaError,
    InputError,
    MissingValueError,
    TooFewRowsError,
    UnknownFeatureError,
)
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

# The fit judges columns with fewer categories.
_FEW_LEVELS = 20
_BEFORE = "make such a column in the data before the fit, and name it in the formula"
# What other programs write into a formula, and where it goes here.
_INSTEAD = {
    "offset": "no coefficient can be held at 1. If the outcome is an amount, subtract the column "
    "from it in the prediction formula, as in I(y - x) ~ ...",
    "cluster": "pass the clusters as groups=..., with cov_type='cluster'",
    "weights": "pass the weights as sample_weight=...",
}


def _used(formula: Formula, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that a formula uses; others could hide functions of the same name."""
    names = variables_of(formula, frame)
    used = {*names}
    for expression in expressions_of(formula):
        both = called_in(expression) & used if expression not in frame else set()
        if both:
            raise FormulaError(
                f"{quoted(min(both))} is a function and a column in the same formula; rename "
                "the column"
            )
    return frame[names]


def check_kinds(
    numeric: Sequence[str],
    encodings: Mapping[str, tuple[str, list[Any] | None]],
    frame: pd.DataFrame,
    lost: Mapping[str, list[Any]],
) -> None:
    """Refuse text in columns that held numbers in the fit, and categories that it did not have.

    ``encodings`` are those of a `design.Equation`, and ``lost`` those of its `FormulaDesign`.
    """
    for name in numeric:
        _refuse_absent(name, frame)
        if not is_numeric(frame[name]) and frame[name].notna().any():
            raise InputError(
                f"column {quoted(name)} held numbers in the fit and holds text or categories here; "
                "convert it, for example with pandas.to_numeric"
            )
    for name, unseen in unseen_categories(encodings, frame, lost).items():
        some = ", ".join(quoted(category) for category in sorted(unseen, key=str)[:5])
        raise InputError(
            f"column {quoted(name)} has categories that the model was not fitted with: {some}. "
            f"{UNSEEN_ADVICE}"
        )


def unseen_categories(
    encodings: Mapping[str, tuple[str, list[Any] | None]],
    frame: pd.DataFrame,
    lost: Mapping[str, list[Any]],
) -> dict[str, list[Any]]:
    """Return the categories of each column that the fit did not have."""
    by_column = {}
    for expression, (_, categories) in encodings.items():
        column = None if categories is None else column_of(expression, frame, "C")
        if column is not None:
            known = {*(categories or ())} - {*lost.get(str(column.name), ())}
            unseen = [category for category in column.dropna().unique() if category not in known]
            if unseen:
                by_column[str(column.name)] = unseen
    return by_column


def refuse_many_levels(formula: Formula, frame: pd.DataFrame, equation: str) -> None:
    """Refuse a column with too many categories for these rows.

    This comes before any dummy is made, since dummies could fill the memory.
    """
    for expression, column in columns_in(formula, frame, "C"):
        if (expression in frame and is_numeric(column)) or is_time(column):
            continue
        try:
            levels = int(column.nunique())
        except TypeError:  # lists are refused when the formula is evaluated
            continue
        if levels > _FEW_LEVELS and 2 * levels > len(frame):
            raise TooFewRowsError(
                f"column {quoted(column.name)} of the {equation} formula has {levels:,} "
                f"categories in {len(frame):,} rows, too many to fit a coefficient to each. "
                "Leave it out, merge its categories, or, if it is a date or a number "
                "written as text, make it a number in a new column of the data before the fit"
            )


def refuse_infinity(matrix: pd.DataFrame) -> None:
    """Refuse columns that functions made infinite, naming them."""
    counts = np.isinf(matrix.to_numpy()).sum(axis=0)
    if counts.any():
        listed = ", ".join(
            f"{quoted(name)} ({count} rows)"
            for name, count in zip(matrix.columns, counts, strict=True)
            if count
        )
        raise MissingValueError(
            f"the formulas give infinite values in {listed}; correct these rows"
        )


def plain_words(error: Exception) -> str:
    """Return the first line of a formulaic error, without terminal colors."""
    text = re.sub(r"\x1b?\[[0-9;]*m|[⧛⧚]", "", str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def check_variables(formula: Formula | None, frame: pd.DataFrame) -> None:
    """Refuse a formula that uses a column that the data does not have."""
    if formula is not None:
        called = {name for factor in expressions_of(formula) for name in called_in(factor)}
        for name in variables_of(formula, frame):
            if name in called and name not in frame.columns:
                raise FormulaError(
                    f"formulas have no function {quoted(name)}: {_INSTEAD.get(name, _BEFORE)}"
                )
            _refuse_absent(name, frame)


def _refuse_absent(name: str, frame: pd.DataFrame) -> None:
    if name not in frame.columns and "(" in name:
        raise FormulaError(
            f"the formula uses {quoted(name)}..., which it cannot evaluate: {_BEFORE}"
        )
    if name not in frame.columns:
        raise UnknownFeatureError(
            f"the formula uses {quoted(name)}, which the data does not have"
            + nearest(name, map(str, frame.columns))
        )


def complete_rows(formula: Formula, frame: pd.DataFrame) -> Mask:
    """Return which rows have every variable of a formula."""
    names = variables_of(formula, frame)
    return np.asarray(frame[names].notna().all(axis=1).to_numpy(), dtype=bool)


@contextmanager
def _mismatch_raised() -> Iterator[None]:
    """Turn formulaic's warning about unknown categories into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataMismatchWarning)
        yield


# Warning filters belong to the process, and batches of rows are evaluated on several threads.
_mismatch_is_error = SharedContext(_mismatch_raised)


def matrix_of(
    formula: Formula | ModelSpec, frame: pd.DataFrame, equation: str
) -> tuple[pd.DataFrame, ModelSpec]:
    """Evaluate the right side of a formula without its intercept, and return what it learned."""
    try:
        with _mismatch_is_error:
            made, spec = _evaluate(formula, frame)
    except DataMismatchWarning as error:
        raise InputError(
            f"the {equation} formula meets categories that the model was not fitted with: "
            + _categories_in_warning(error)
        ) from error
    except (HeckmanfaError, MemoryError):
        raise
    # Functions fail in many ways on data that they were not written for.
    except Exception as error:
        raise FormulaError(
            f"the {equation} formula cannot be evaluated on the data: {plain_words(error)}"
        ) from error
    return made.drop(columns="Intercept"), spec


def _evaluate(formula: Formula | ModelSpec, frame: pd.DataFrame) -> tuple[pd.DataFrame, ModelSpec]:
    parsed = formula.formula if isinstance(formula, ModelSpec) else formula
    used = _used(parsed, frame)
    for _, column in columns_in(parsed, used, "C", "I"):
        refuse_times(column)
        refuse_nested(column)
    try:
        # The caller reports NaN and infinite values, not NumPy.
        with np.errstate(all="ignore"):
            matrix = formula.get_model_matrix(used, na_action="ignore", context={})
        return pd.DataFrame(matrix).astype(np.float64), matrix.model_spec
    except (FormulaicError, TypeError, ValueError) as error:
        for name in used.columns:
            refuse_times(used[name], error)
        raise


def _categories_in_warning(warning: DataMismatchWarning) -> str:
    """Return the unknown categories that formulaic lists only in the text of its warning."""
    message = str(warning)
    listed = message.partition("{")[2].rpartition("}. They are being")[0] or message
    return shown(re.sub(r"np\.\w+\(([^()]*)\)", r"\1", listed))


def one_column(formula: Formula, frame: pd.DataFrame, equation: str) -> Floats:
    """Evaluate the left side of a formula to one number per row, NaN if a variable is missing."""
    rows = complete_rows(formula, frame)
    values = np.full(len(frame), np.nan)
    if rows.any():
        # Checked before the evaluation: text would become a column for each of its values, unless
        # it is compared with something.
        text = [name for name in variables_of(formula, frame) if not is_numeric(frame[name])]
        for name in text:
            refuse_times(frame[name])
        if text and not all(map(compares, expressions_of(formula))):
            raise FormulaError(
                f"the left side of the {equation} formula, {formula}, must be one number per row; "
                f"column {quoted(text[0])} holds text or categories: compare it, as in "
                f"{shown(text[0])} == {quoted(frame[text[0]].dropna().iloc[0])}"
            )
        try:
            matrix, _ = _evaluate(formula, frame[rows])
        except (HeckmanfaError, MemoryError):
            raise
        except Exception as error:
            raise FormulaError(
                f"the left side of the {equation} formula cannot be evaluated: {plain_words(error)}"
            ) from error
        if matrix.shape[1] != 1:
            raise FormulaError(
                f"the left side of the {equation} formula, {formula}, must be one number per row"
            )
        values[rows] = matrix.iloc[:, 0].to_numpy(dtype=np.float64)
    return values


def labels_of_left(formula: Formula, frame: pd.DataFrame) -> Any:
    """Evaluate the left side of a formula to one label per row, None if a variable is missing.

    A comparison gives True and False, and a column the values that it holds. An ordered category
    stays one, for its order.
    """
    (expression,) = expressions_of(formula)
    column = column_of(expression, frame, "I")
    if column is None:
        values = one_column(formula, frame, "prediction")
        outcome = values == 1 if compares(expression) else values
        column = pd.Series(outcome).astype(object).mask(np.isnan(values), None)
    refuse_times(column)
    refuse_nested(column)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return column.array
    labels = np.array(column.astype(object))
    labels[column.isna().to_numpy(dtype=bool)] = None
    return labels


def selected_rows(who: Formula, frame: pd.DataFrame, treated: bool = False) -> Any:
    """Evaluate a left side that says whether each row is selected, or ``treated``.

    Whether rows are treated may be missing: then these are numbers with NaN, not booleans.
    """
    formula = "treatment" if treated else "selection"
    values = one_column(who, frame, formula)
    missing = np.count_nonzero(np.isnan(values))
    if missing and not treated:
        raise InputError(
            f"the selection formula's left side is missing in {missing} rows; it must say for "
            "every row whether it is selected. If the rows with an outcome are, leave it out: "
            "'~ ...'"
        )
    other = sorted(set(values[~np.isnan(values)]) - {0.0, 1.0})
    if other:
        # An amount, such as hours, is above 0 for those who are selected; a code has a value.
        amounts = 0.0 in values and other[0] > 0.0 and len(other) > 1
        meant = f"{who} > 0" if amounts else f"{who} == {other[-1]:g}"
        raise InputError(
            f"the {formula} formula's left side holds {other[0]:g}; it must be 0 or 1, or true "
            f"or false, such as {meant}"
        )
    return values if missing else np.asarray(values == 1)


def to_pandas(data: Any) -> pd.DataFrame:
    """Return the data of formulas (pandas, Polars or PyArrow) as a pandas frame.

    Text of every type becomes objects, which formulaic takes for categories. Decimals become
    floats.
    """
    table = as_table(data)
    # Polars has no equal names, and Arrow's tables may.
    is_pandas = isinstance(table, pd.DataFrame)
    labels = table.columns if is_pandas else getattr(table, "column_names", ())
    refuse_same_labels(labels, "the data")
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("the data is a lazy frame; call .collect() or .compute() on it first")
    if not isinstance(frame, nw.DataFrame):
        raise InputError(
            f"formulas need a data frame (pandas, Polars or PyArrow); got {type(data).__name__}"
        )
    # pandas has no integers of 128 bits.
    wide = [place for place, dtype in enumerate(frame.schema.values()) if is_wide(dtype)]
    if wide:
        # By position: Polars takes some names for patterns.
        frame = frame.with_columns(*(frame[:, place].cast(nw.Float64) for place in wide))
    pandas = frame.to_pandas().reset_index(drop=True)
    if len(pandas) == 0:
        raise TooFewRowsError("the data has 0 rows; there is nothing to fit or predict")
    pandas = pandas.infer_objects()
    plain = {
        index: _plain(pandas.iloc[:, index])
        for index, dtype in enumerate(pandas.dtypes)
        if pd.api.types.is_object_dtype(dtype) or _is_text(dtype)
    }
    if not plain:
        return pandas
    columns = [plain.get(index, pandas.iloc[:, index]) for index in range(pandas.shape[1])]
    made = pd.concat(columns, axis=1)
    made.columns = pandas.columns
    return made


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers or booleans."""
    return bool(pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def is_time(column: pd.Series[Any]) -> bool:
    """Whether a column holds dates, times of day, spans of time or periods."""
    return not isinstance(column.dtype, pd.CategoricalDtype) and time_in(column) is not None


def refuse_nested(column: pd.Series[Any]) -> None:
    """Refuse a column of lists, structs or other objects, which cannot be categories."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return
    present = column.dropna()
    for kind in dict.fromkeys(map(type, present)):
        hashed: Any = kind.__hash__
        if hashed is None or hashed is object.__hash__:
            raise InputError(
                f"column {quoted(column.name)} holds neither numbers nor text (found "
                f"{kind.__name__}): make a column of each of its parts, or leave it out"
            )


def refuse_times(column: pd.Series[Any], error: Exception | None = None) -> None:
    """Refuse a column of dates or times, with what to do; ``error`` is what they led to."""
    if is_time(column):
        raise InputError(
            f"column {quoted(str(column.name))} holds dates or times, which a formula cannot use "
            "as they are: make it a number in a new column of the data before the fit, not in the "
            "formula, such as days since its first, data['days'] = (t - t.min()).dt.days where t "
            "is the column, or text for a few categories, such as t.dt.year.astype(str), and name "
            "the new column in the formula"
        ) from error


def _is_text(dtype: Any) -> bool:
    if isinstance(dtype, pd.StringDtype):
        return True
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        kind = dtype.pyarrow_dtype
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
        )
    return False


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return text as objects with NaN for missing values, and decimals as floats."""
    if _is_text(column.dtype):
        return column.astype(object).where(column.notna().to_numpy(), np.nan)
    if pd.api.types.infer_dtype(column, skipna=True) == "decimal":
        return column.astype(np.float64)
    return column
