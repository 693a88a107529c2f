"""Two formulas to the arrays of the model, and again for prediction (through formulaic)."""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec
from formulaic.errors import DataMismatchWarning, FormulaicError
from formulaic.parser.types import Factor

from heckmanfa.errors import (
    FormulaError,
    HeckmanfaError,
    InputError,
    MissingValueError,
    TextNumbersWarning,
    UnknownFeatureError,
    warn,
)
from heckmanfa.expressions import called_in, parse_factor, refuse_powers, right_side
from heckmanfa.features import nearest
from heckmanfa.foreign import quoted, shown
from heckmanfa.formula_data import about_times, is_numeric, is_time, to_pandas
from heckmanfa.normal import Floats
from heckmanfa.refusals import known_only_for_selected
from heckmanfa.rows import Mask

__all__ = ["Equation", "FormulaDesign", "is_numeric", "to_pandas"]


@dataclass(frozen=True)
class Equation:
    """The right side of a formula and what it has learned, in plain types that can be saved."""

    text: str
    transforms: dict[str, Any]
    """what stateful terms (a centre, a spline) have learned"""
    encodings: dict[str, tuple[str, list[Any] | None]]
    """kind of each factor, and its categories where it has any"""
    numeric: list[str]
    """the variables that held numbers"""

    @classmethod
    def of(cls, text: str, spec: ModelSpec, frame: pd.DataFrame) -> Equation:
        """Take what a formula has learned out of formulaic's own objects."""
        return cls(
            text=text,
            numeric=[one for one in _variables(spec.formula, frame) if is_numeric(frame[one])],
            transforms=_plain(spec.transform_state),
            encodings={
                expression: (
                    kind.value,
                    _plain(state["categories"]) if "categories" in state else None,
                )
                for expression, (kind, state) in spec.encoder_state.items()
            },
        )

    def spec(self) -> ModelSpec:
        """Return the formula with what it has learned."""
        return ModelSpec(
            formula=Formula(self.text),
            transform_state=copy.deepcopy(self.transforms),
            encoder_state={
                expression: (
                    Factor.Kind(kind),
                    {} if categories is None else {"categories": list(categories)},
                )
                for expression, (kind, categories) in self.encodings.items()
            },
        )


@dataclass(frozen=True)
class FormulaDesign:
    """What two formulas make of a frame, and how to do the same to another frame."""

    prediction: Equation
    selection: Equation
    texts: tuple[str, str]
    """the two formulas as they were given"""
    selection_columns: list[str]
    prediction_columns: list[str]
    prediction_terms: dict[str, list[str]]
    """columns of each term of the prediction formula"""
    selection_terms: dict[str, list[str]]
    n_rows: int
    """rows of the frame"""
    n_left_out: int
    """rows without a regressor that they need"""
    features: pd.DataFrame | None = None
    """union of both equations' columns over the rows kept, without intercepts"""
    outcome: Floats | None = None
    selected: Mask | None = None
    kept: Mask | None = None
    """(n_rows,)"""

    @classmethod
    def build(cls, prediction: str, selection: str, data: Any) -> FormulaDesign:
        """Evaluate both formulas on a frame.

        Parameters
        ----------
        prediction, selection : str
            The selection formula's left side is optional.
        data : data frame

        Returns
        -------
        FormulaDesign
        """
        frame = to_pandas(data)
        left, right, right_text = _parse(prediction, "prediction")
        who, drivers, drivers_text = _parse(selection, "selection")
        if left is None:
            raise FormulaError(
                f"the prediction formula {quoted(prediction)} has no left side: write 'outcome ~ "
                "...'"
            )
        for part in (left, right, who, drivers):
            _check_variables(part, frame)
        outcome = _one_column(left, frame, "prediction")
        chosen = ~np.isnan(outcome) if who is None else _truth(who, frame)
        _refuse_known_only(drivers, frame, chosen)
        complete = _complete(drivers, frame)
        complete_prediction = _complete(right, frame)
        kept = complete & (complete_prediction | ~chosen)
        if not kept.any():
            raise InputError(
                f"no row is left: every one of the {len(frame)} rows misses a regressor"
                + _emptiest(frame, [*_variables(drivers, frame), *_variables(right, frame)])
            )
        # A stateful term (a centre, a spline) learns from the rows that have its variables.
        z = _matrix(drivers, frame[kept], "selection")
        selection_spec = z.attrs.pop("spec")
        learned = Equation.of(drivers_text, selection_spec, frame)
        # What a term in both equations has learned, it learned in the selection equation.
        known = replace(learned, text=right_text).spec()
        x = _matrix(known, frame[kept & complete_prediction], "prediction")
        features = z.reindex(frame.index[kept])
        for column in x.columns:
            if column not in features.columns:
                features[column] = x[column].reindex(frame.index[kept])
        shortage = features.isna().to_numpy()
        needs = np.zeros(shortage.shape, dtype=bool)
        needs[:, : z.shape[1]] = True
        needs[chosen[kept]] = True
        # Functions can turn complete variables into NaN (the logarithm of a negative number).
        also: Mask = np.asarray((shortage & needs).any(axis=1))
        if also.all():
            raise InputError("no row is left: the formulas give NaN in every row")
        rows = kept.copy()
        rows[kept] = ~also
        spec = x.attrs.pop("spec")
        predictor = Equation.of(right_text, spec, frame)
        _warn_of_text_numbers({**learned.encodings, **predictor.encodings}, frame)
        return cls(
            prediction=predictor,
            selection=learned,
            texts=(prediction, selection),
            selection_columns=list(z.columns),
            prediction_columns=list(x.columns),
            prediction_terms=_columns_by_term(spec),
            selection_terms=_columns_by_term(selection_spec),
            n_rows=len(frame),
            n_left_out=int(np.count_nonzero(~rows)),
            features=features.loc[~also].reset_index(drop=True),
            outcome=outcome[rows],
            selected=None if who is None else chosen[rows],
            kept=rows,
        )

    def variables(self, columns: Sequence[str]) -> list[str]:
        """Return the names that the right sides use, in a table with some columns or without."""
        table = pd.DataFrame(columns=list(columns))
        formulas = (self.prediction.spec().formula, self.selection.spec().formula)
        return sorted({name for one in formulas for name in _variables(one, table)})

    def without_data(self) -> FormulaDesign:
        """Return what prediction needs, and no row of the data."""
        return replace(self, features=None, outcome=None, selected=None, kept=None)

    def rows_of(self, data: Any, values: Any, what: str) -> Any:
        """Return the kept rows of a column of the frame, or of an array as long as it."""
        if values is None:
            return None
        if isinstance(values, str):
            frame = to_pandas(data)
            if values not in frame.columns:
                raise UnknownFeatureError(
                    f"{what}: the data has no column "
                    f"{quoted(values)}{nearest(values, frame.columns)}"
                )
            values = frame[values].to_numpy()
        array = np.asarray(values)
        if array.shape[:1] != (self.n_rows,):
            raise InputError(f"{what} must have one entry for each of the {self.n_rows} rows")
        return array[self.kept]

    def who_is_selected(self, data: Any) -> Mask:
        """Return what the left side of the selection formula says of each row of a frame."""
        who, _, _ = _parse(self.texts[1], "selection")
        if who is None:
            raise FormulaError(
                f"the selection formula {quoted(self.texts[1])} has no left side that says who is "
                "selected"
            )
        frame = to_pandas(data)
        _check_variables(who, frame)
        return _truth(who, frame)

    def transform(self, data: Any, *, prediction: bool, selection: bool) -> pd.DataFrame:
        """Evaluate the fitted formulas on another frame.

        Parameters
        ----------
        data : data frame
        prediction, selection : bool
            Which equation's columns are needed; others are NaN.

        Returns
        -------
        DataFrame
            The model's columns, one row for each row of ``data``, NaN where a variable is missing.
        """
        frame = to_pandas(data)
        columns = list(dict.fromkeys([*self.selection_columns, *self.prediction_columns]))
        result = pd.DataFrame(np.nan, index=frame.index, columns=columns, dtype=np.float64)
        for equation, needed, learned in (
            ("prediction", prediction, self.prediction),
            ("selection", selection, self.selection),
        ):
            if needed:
                spec = learned.spec()
                _check_variables(spec.formula, frame)
                _check_kinds(learned, frame)
                rows = _complete(spec.formula, frame)
                if rows.any():
                    part = _matrix(spec, frame[rows], equation)
                    _refuse_infinity(part)
                    result.loc[rows, list(part.columns)] = part.to_numpy()
        return result

    def missing_variables(self, data: Any, *, prediction: bool, selection: bool) -> dict[str, int]:
        """Count the rows of a frame that miss each variable of the formulas, where any do.

        Parameters
        ----------
        data : data frame
        prediction, selection : bool
            Which formulas are needed.

        Returns
        -------
        dict of str to int
        """
        frame = to_pandas(data)
        needed = ((prediction, self.prediction), (selection, self.selection))
        names = [
            name for use, one in needed if use for name in _variables(Formula(one.text), frame)
        ]
        counts = {name: int(frame[name].isna().sum()) for name in dict.fromkeys(names)}
        return {name: count for name, count in counts.items() if count}


def _columns_by_term(spec: ModelSpec) -> dict[str, list[str]]:
    return {
        str(term): [spec.column_names[place] for place in places]
        for term, places in spec.term_indices.items()
        if str(term) != "1"
    }


def _plain(value: Any) -> Any:
    """Turn NumPy scalars, tuples and keys into what any format can save."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _parse(text: str, equation: str) -> tuple[Formula | None, Formula, str]:
    """Return the left side, the right side, and the right side's text."""
    if not isinstance(text, str):
        raise FormulaError(f"the {equation} formula must be text; got {type(text).__name__}")
    try:
        refuse_powers(text)
        parsed = Formula(text)
    except FormulaicError as error:
        raise FormulaError(
            f"the {equation} formula {quoted(text)} cannot be read: {plain_words(error)}"
        ) from error
    left = getattr(parsed, "lhs", None)
    right = getattr(parsed, "rhs", parsed)
    if not any(str(term) == "1" for term in right):
        raise FormulaError(
            f"the {equation} formula {quoted(text)} removes the intercept, which is always fitted: "
            "leave out '- 1' or '0 +'"
        )
    if left is not None and len(list(left)) != 1:
        raise FormulaError(f"the left side of {quoted(text)} must be one variable or expression")
    # The text, not formulaic's form of it, which loses the quotes of names with spaces.
    return left, right, right_side(text)


def _variables(formula: Formula, frame: pd.DataFrame) -> list[str]:
    """Columns that a formula uses; `a.b` in quotes is one, which formulaic calls 'a'."""
    expressions = {factor.expr for term in formula for factor in term.factors}
    names: set[str] = set()
    for variable in (str(one) for one in formula.required_variables):
        dotted = [one for one in expressions if one in frame and one.startswith(variable + ".")]
        names.update(dotted if dotted and variable not in frame else [variable])
    # Neither a column with the name of a function of formulaic's is among those,
    names.update(one for one in expressions if one in frame)
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
    names = _variables(formula, frame)
    for term in formula:
        for factor in term.factors:
            both = called_in(factor.expr) & {*names} if factor.expr not in frame else set()
            if both:
                raise FormulaError(
                    f"{quoted(min(both))} is a function and a column in the same formula; rename "
                    "the column"
                )
    return frame[names]


def _check_kinds(learned: Equation, frame: pd.DataFrame) -> None:
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
            unseen = [one for one in column.dropna().unique() if one not in known]
            if unseen:
                raise InputError(
                    f"column {quoted(column.name)} has categories that the model was not fitted "
                    f"with: {', '.join(quoted(one) for one in sorted(unseen, key=str)[:5])}"
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
    named = [one for one in names if one in frame]
    return frame[named[0]] if len(named) == 1 and isinstance(tree.args[0], ast.Name) else None


def _refuse_infinity(part: pd.DataFrame) -> None:
    counts = np.isinf(part.to_numpy()).sum(axis=0)
    if counts.any():
        said = ", ".join(
            f"{quoted(name)} ({count} rows)"
            for name, count in zip(part.columns, counts, strict=True)
            if count
        )
        raise MissingValueError(f"the formulas give infinite values in {said}; mend these rows")


def _emptiest(frame: pd.DataFrame, names: list[str]) -> str:
    missing = frame[names].isna().sum().sort_values(ascending=False)
    said = [f"{quoted(name)} ({count} missing)" for name, count in missing.items() if count][:3]
    return ": " + ", ".join(said) if said else ""


def _warn_of_text_numbers(encodings: dict[str, Any], frame: pd.DataFrame) -> None:
    for name, (_, categories) in encodings.items():
        if categories and name in frame and not is_numeric(frame[name]):
            numbers = pd.to_numeric(pd.Series(categories, dtype=object), errors="coerce")
            if numbers.notna().all():
                warn(
                    f"column {quoted(name)} holds numbers as text, and becomes {len(categories)} "
                    f"categories. Convert it with pandas.to_numeric, or write C({name}) if "
                    "categories are meant.",
                    TextNumbersWarning,
                )


def plain_words(error: Exception) -> str:
    """Return the first line of an error of formulaic's, without the colours of a terminal."""
    text = re.sub(r"\x1b?\[[0-9;]*m|[⧛⧚]", "", str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _check_variables(formula: Formula | None, frame: pd.DataFrame) -> None:
    if formula is not None:
        for name in _variables(formula, frame):
            _check_there(name, frame)


def _check_there(name: str, frame: pd.DataFrame) -> None:
    if name not in frame.columns:
        raise UnknownFeatureError(
            f"the formula uses {quoted(name)}, which the data does not have"
            + nearest(name, [str(column) for column in frame.columns])
        )


def _refuse_known_only(drivers: Formula, frame: pd.DataFrame, chosen: Mask) -> None:
    """Refuse variables that drive selection and are missing exactly where rows are not selected."""
    others = ~chosen
    if not others.any():
        return
    only = [
        name for name in _variables(drivers, frame) if np.array_equal(frame[name].isna(), others)
    ]
    if only:
        raise MissingValueError(
            known_only_for_selected(only, int(np.count_nonzero(others)))
            + " Leave such variables out of the selection formula, and those that were made from "
            "the outcome out of both."
        )


def _complete(formula: Formula, frame: pd.DataFrame) -> Mask:
    names = _variables(formula, frame)
    return np.asarray(frame[names].notna().all(axis=1).to_numpy(), dtype=bool)


def _matrix(formula: Formula | ModelSpec, frame: pd.DataFrame, equation: str) -> pd.DataFrame:
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
        except (FormulaicError, TypeError, ValueError, ArithmeticError) as error:
            if isinstance(error, HeckmanfaError):
                raise
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
    try:
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


def _one_column(formula: Formula, frame: pd.DataFrame, equation: str) -> Floats:
    """Evaluate the left side of a formula to one number a row; missing stays missing."""
    rows = _complete(formula, frame)
    values = np.full(len(frame), np.nan)
    if rows.any():
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                part, _ = _evaluate(formula, frame[rows])
        except (FormulaicError, TypeError, ValueError, ArithmeticError) as error:
            if isinstance(error, HeckmanfaError):
                raise
            raise FormulaError(
                f"the left side of the {equation} formula cannot be evaluated: {plain_words(error)}"
            ) from error
        text = [one for one in _variables(formula, frame) if not is_numeric(frame[one])]
        if part.shape[1] != 1 or text:
            raise FormulaError(
                f"the left side of the {equation} formula, {formula}, must be one number a row"
                + (f"; column {quoted(text[0])} holds text or categories" if text else "")
            )
        values[rows] = part.iloc[:, 0].to_numpy(dtype=np.float64)
    return values


def _truth(who: Formula, frame: pd.DataFrame) -> Mask:
    values = _one_column(who, frame, "selection")
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
