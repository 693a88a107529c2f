"""Two formulas as the arrays of a model, for the fit and again for prediction (with formulaic)."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from formulaic import Formula, ModelSpec, SimpleFormula
from formulaic.parser.types import Factor
from numpy.typing import NDArray

from heckmanfa.data.columns.column_names import refuse_absent, refuse_far_more
from heckmanfa.data.columns.column_numbers import missing_in
from heckmanfa.data.formula.expressions import (
    left_as_python,
    left_side,
    refuse_other_languages,
    refuse_other_rows,
    refuse_powers,
    right_side,
    variables_of,
)
from heckmanfa.data.formula.formula_levels import (
    FactorRows,
    declare_fitted_levels,
    factor_rows,
    factors_in,
    read_factor_references,
)
from heckmanfa.data.formula.matrix import (
    check_kinds,
    check_variables,
    complete_rows,
    is_numeric,
    labels_of_left,
    matrix_of,
    one_column,
    plain_words,
    refuse_infinity,
    refuse_many_levels,
    selected_rows,
    to_pandas,
    unseen_categories,
)
from heckmanfa.data.group_cells import is_names
from heckmanfa.data.missing_features import GapCounts, LostRows, warn_of_lost
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_rules import FeatureCounts, explain_known_only
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import SurveyUnits
from heckmanfa.errors import (
    FormulaError,
    InputError,
    MissingFeaturesWarning,
    MissingValueError,
    TextNumbersWarning,
    UnknownFeatureError,
    warn,
)
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest


@dataclass(frozen=True)
class Equation:
    """The right side of a formula and what it has learned, in plain types that can be saved."""

    text: str
    transforms: dict[str, Any]
    """what stateful terms (a center, a spline) have learned"""
    encodings: dict[str, tuple[str, list[Any] | None]]
    """kind of each factor, and its categories if it has any"""
    numeric: list[str]
    """the variables that held numbers"""

    @classmethod
    def of(cls, text: str, spec: ModelSpec, frame: pd.DataFrame) -> Equation:
        """Extract what a formula has learned from formulaic's own objects."""
        return cls(
            text=text,
            numeric=[name for name in variables_of(spec.formula, frame) if is_numeric(frame[name])],
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
    """The columns that two formulas make of a frame, and how to make them of another frame."""

    prediction: Equation
    selection: Equation
    texts: tuple[str, str]
    """the two formulas as the user wrote them"""
    selection_columns: list[str]
    prediction_columns: list[str]
    prediction_terms: dict[str, list[str]]
    """columns of each term of the prediction formula"""
    selection_terms: dict[str, list[str]]
    n_rows: int
    """rows of the frame"""
    n_left_out: int
    """rows that lack a regressor"""
    features: pd.DataFrame | None = None
    """union of both equations' columns over the rows kept, without intercepts"""
    outcome: Any = None
    """(n,) numbers, NaN where missing, or labels, None where missing: an array, or a pandas
    category if that is ordered"""
    selected: Any = None
    """(n,) booleans, or whether each is treated, NaN where missing"""
    kept: Mask | None = None
    """(n_rows,) which rows of the frame are used"""
    lost: LostRows | None = None
    """the rows that lack a variable"""
    factors: dict[str, FactorRows] | None = None
    """levels of the rows that are used, by column"""
    dropped_levels: dict[str, list[Any]] = field(default_factory=dict)
    """levels of columns of which separation left no row, so the model does not know them"""
    reference: dict[str, Any] = field(default_factory=dict)
    """references that are not the first level of their column"""

    @classmethod
    def build(
        cls,
        prediction: str,
        selection: str,
        data: Any,
        *,
        labels: bool = False,
        weight: Any = None,
        reference: Mapping[str, Any] | None = None,
        everyone: bool = False,
        everywhere: bool = False,
    ) -> FormulaDesign:
        """Evaluate both formulas on a frame; the selection formula's left side is optional.

        It is not if ``everyone`` has an outcome, and says who is treated: every row then needs the
        variables of both formulas, and may lack the treatment. ``everywhere`` says that every row
        needs both though only the selected have an outcome.

        With ``labels``, the outcome holds classes, which may be texts and booleans. Rows whose
        ``weight``, a column or an array, is zero lend no levels to categories. ``reference`` has
        the reference level of some of these.
        """
        frame = to_pandas(data)
        for text in (prediction, selection):
            # The parser's time grows with the square of the number of terms.
            refuse_far_more(str(text).count("+") + 1, len(frame))
            refuse_other_languages(text, [str(column) for column in frame.columns])
        left, right, right_text = _parse(prediction, "prediction")
        who, drivers, drivers_text = _parse(selection, "selection")
        if left is None:
            raise FormulaError(
                f"the prediction formula {quoted(prediction)} has no left side: write 'outcome ~ "
                "...'"
            )
        for side in (left, right, who, drivers):
            check_variables(side, frame)
        outcome = _outcome(left, frame, labels)
        if everyone and who is None:
            raise FormulaError(
                f"the treatment formula {quoted(selection)} has no left side: write 'treated ~ "
                "...', with the column that says who is treated"
            )
        flags = ~missing_in(outcome) if who is None else selected_rows(who, frame, everyone)
        chosen = np.ones(len(frame), dtype=bool) if everyone else flags
        for side in (drivers, right) if everywhere else (drivers,):
            _refuse_known_only(side, frame, chosen)
        needing = np.ones(len(frame), dtype=bool) if everywhere else chosen
        complete_prediction = complete_rows(right, frame)
        kept = complete_rows(drivers, frame) & (complete_prediction | ~needing)
        lost = _lost_rows(drivers, right, frame, needing)
        if not kept.any():
            raise InputError(
                f"no row is left: each of the {len(frame)} rows lacks a regressor. {lost.advice}"
            )
        warn_of_lost(lost)
        factors = factors_in((drivers, right), frame)
        asked = read_factor_references(factors, frame, reference)
        unfitted = (chosen & missing_in(outcome)) | _weightless(frame, weight)
        frame = declare_fitted_levels(frame, factors, kept & ~unfitted, asked)
        refuse_many_levels(drivers, frame[kept], "selection")
        refuse_many_levels(right, frame[kept & complete_prediction], "prediction")
        # A stateful term (a center, a spline) learns from the rows that have its variables.
        z, selection_spec = matrix_of(drivers, frame[kept], "selection")
        learned = Equation.of(drivers_text, selection_spec, frame)
        # A term in both equations learns in the selection equation.
        known = replace(learned, text=right_text).spec()
        x, spec = matrix_of(known, frame[kept & complete_prediction], "prediction")
        features = z.reindex(frame.index[kept])
        for column in x.columns:
            if column not in features.columns:
                features[column] = x[column].reindex(frame.index[kept])
        # A frame without columns has no dtype, so name it.
        shortage = features.isna().to_numpy(dtype=bool)
        needs = np.zeros(shortage.shape, dtype=bool)
        needs[:, : z.shape[1]] = True
        needs[needing[kept]] = True
        # Functions can turn complete variables into NaN (the logarithm of a negative number).
        also: Mask = np.asarray((shortage & needs).any(axis=1))
        if also.all():
            raise InputError("no row is left: the formulas give NaN in every row")
        gaps = np.flatnonzero((shortage & needs).any(axis=0))
        _warn_of_nan([str(features.columns[int(index)]) for index in gaps], int(also.sum()))
        rows = kept.copy()
        rows[kept] = ~also
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
            selected=None if who is None else flags[rows],
            kept=rows,
            lost=lost,
            factors=factor_rows(factors, frame, rows),
            reference=_plain(asked),
        )

    def variables(self, columns: Sequence[str]) -> list[str]:
        """Return the variables of the right sides, given the columns of a table."""
        table = pd.DataFrame(columns=list(columns))
        formulas = (self.prediction.spec().formula, self.selection.spec().formula)
        return sorted({name for formula in formulas for name in variables_of(formula, table)})

    @property
    def outcome_text(self) -> str:
        """The left side of the prediction formula, as the user wrote it."""
        return left_side(self.texts[0])

    @property
    def left_out(self) -> dict[str, int]:
        """How many rows the frame had, and how many of them lack a regressor."""
        return {"total": self.n_rows, "left_out_regressor_missing": self.n_left_out}

    def without_data(self) -> FormulaDesign:
        """Return only what prediction needs, without rows of data."""
        return replace(
            self, features=None, outcome=None, selected=None, kept=None, lost=None, factors=None
        )

    def rows_of(self, data: Any, values: Any, what: str) -> Any:
        """Return the used rows of a column of the frame, or of an array of the same length."""
        if values is None:
            return None
        if isinstance(values, SurveyUnits):
            return values.keep(np.asarray(self.kept))
        match_rows({"data": data, what: values})
        if is_names(values):
            frame = to_pandas(data)
            refuse_absent(list(values), frame.columns, f"{what}: the data")
            if len({*values}) < len(values):
                raise InputError(f"{what} names {quoted(values[0])} twice: name it once")
            return frame[list(values)][self.kept].reset_index(drop=True)
        if isinstance(values, str):
            frame = to_pandas(data)
            refuse_absent([values], frame.columns, f"{what}: the data")
            values = frame[values].to_numpy()
        array = np.asarray(values)
        if array.shape[:1] != (self.n_rows,):
            raise InputError(
                f"{what} must be the name of a column, or names of two for clusters, or have an "
                f"entry for each of the {self.n_rows} rows; it has shape {array.shape}"
            )
        return array[self.kept]

    def who_is_selected(self, data: Any) -> Mask:
        """Return which rows of a frame the left side of the selection formula selects."""
        who, _, _ = _parse(self.texts[1], "selection")
        if who is None:
            raise FormulaError(
                f"the selection formula {quoted(self.texts[1])} has no left side that says who is "
                "selected"
            )
        frame = to_pandas(data)
        check_variables(who, frame)
        refuse_other_rows(who, frame, "selected")
        return np.asarray(selected_rows(who, frame))

    def outcome_of(self, data: Any, *, labels: bool = False) -> NDArray[Any]:
        """Return the left side of the prediction formula for each row of a frame, as in `build`."""
        left, _, _ = _parse(self.texts[0], "prediction")
        assert left is not None
        frame = to_pandas(data)
        absent = [name for name in variables_of(left, frame) if name not in frame.columns]
        if absent:
            raise UnknownFeatureError(
                f"the outcome of the model is {quoted(str(left))}, and these data have no column "
                f"{quoted(absent[0])}{nearest(absent[0], map(str, frame.columns))}. "
                "Pass y, or data with the outcome"
            )
        refuse_other_rows(left, frame, "y")
        return np.asarray(_outcome(left, frame, labels))

    def transform(self, data: Any, *, prediction: bool, selection: bool) -> pd.DataFrame:
        """Evaluate the fitted formulas on another frame.

        Columns of an equation that is not needed are NaN, as are rows that lack a variable.
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
                check_variables(spec.formula, frame)
                check_kinds(learned.numeric, learned.encodings, frame, self.dropped_levels)
                rows = complete_rows(spec.formula, frame)
                if rows.any():
                    matrix, _ = matrix_of(spec, frame[rows], equation)
                    refuse_infinity(matrix)
                    result.loc[rows, list(matrix.columns)] = matrix.to_numpy()
        return result

    def without_unseen(self, data: Any) -> pd.DataFrame:
        """Return a frame in which categories that the fit did not have are missing."""
        frame = to_pandas(data)
        for equation in (self.prediction, self.selection):
            unknown = unseen_categories(equation.encodings, frame, self.dropped_levels)
            for name, unseen in unknown.items():
                frame = frame.assign(**{name: frame[name].mask(frame[name].isin(unseen))})
        return frame

    def missing_variables(self, data: Any, *, prediction: bool, selection: bool) -> dict[str, int]:
        """Count the rows of a frame that lack each variable of the formulas that are needed.

        Variables that are never missing are not listed.
        """
        frame = to_pandas(data)
        needed = ((prediction, self.prediction), (selection, self.selection))
        names = [
            name
            for use, equation in needed
            if use
            for name in variables_of(Formula(equation.text), frame)
        ]
        counts = {name: int(frame[name].isna().sum()) for name in dict.fromkeys(names)}
        return {name: count for name, count in counts.items() if count}


def _outcome(left: Formula, frame: pd.DataFrame, labels: bool) -> Any:
    return labels_of_left(left, frame) if labels else one_column(left, frame, "prediction")


def _weightless(frame: pd.DataFrame, weight: Any) -> Mask:
    """Return which rows have a weight of zero; weights of other kinds are refused later."""
    values = frame.get(weight) if isinstance(weight, str) else weight
    array = np.asarray(values)
    if values is None or array.shape != (len(frame),) or array.dtype.kind not in "biuf":
        return np.zeros(len(frame), dtype=bool)
    return np.asarray(array == 0)


def _columns_by_term(spec: ModelSpec) -> dict[str, list[str]]:
    return {
        str(term): [spec.column_names[index] for index in indices]
        for term, indices in spec.term_indices.items()
        if str(term) != "1"
    }


def _plain(value: Any) -> Any:
    """Turn NumPy scalars and tuples into types that any format can save."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _parse(text: str, equation: str) -> tuple[Formula | None, Formula, str]:
    """Return the left side, the right side, and the right side's text."""
    if not isinstance(text, str):
        raise FormulaError(f"the {equation} formula must be text; got {type(text).__name__}")
    try:
        written = left_as_python(text)
        refuse_powers(written)
        parsed = Formula(written)
    except FormulaError:
        raise
    # formulaic's parser fails in many ways if brackets do not match.
    except Exception as error:
        dot = re.search(r"[~+]\s*\.\s*(?:$|[-+])", text)
        words = "name the columns; '.' does not stand for all others" if dot else plain_words(error)
        raise FormulaError(
            f"the {equation} formula {quoted(text)} cannot be read: {words}"
        ) from error
    left = getattr(parsed, "lhs", None)
    right = getattr(parsed, "rhs", parsed)
    if not all(isinstance(side, SimpleFormula) for side in (left, right) if side is not None):
        raise FormulaError(
            f"the {equation} formula {quoted(text)} has several parts, divided by | or ~: write "
            "each equation as a formula of its own, the prediction equation first"
        )
    if not any(str(term) == "1" for term in right):
        raise FormulaError(
            f"the {equation} formula {quoted(text)} removes the intercept, which is always fitted: "
            "leave out '- 1' or '0 +'"
        )
    if left is not None and len(list(left)) != 1:
        raise FormulaError(f"the left side of {quoted(text)} must be one variable or expression")
    # The text, not formulaic's form of it, which loses the quotes of names with spaces.
    return left, right, right_side(text)


def _lost_rows(drivers: Formula, right: Formula, frame: pd.DataFrame, chosen: Mask) -> LostRows:
    """Count the rows that lack a variable which they need, by variable."""
    everywhere = variables_of(drivers, frame)
    names = list(dict.fromkeys([*everywhere, *variables_of(right, frame)]))
    gaps = frame[names].isna().to_numpy(dtype=bool)
    # Rows that are not selected do not need what only predicts.
    gaps = gaps & (chosen[:, None] | np.isin(names, everywhere))
    return GapCounts.of(gaps).lost(names)


def _warn_of_nan(columns: Sequence[str], count: int) -> None:
    if count:
        listed = ", ".join(quoted(column) for column in columns[:5])
        warn(
            f"the formulas give NaN in {count} rows that have every variable ({listed}), which are "
            "left out of the fit",
            MissingFeaturesWarning,
        )


def _warn_of_text_numbers(encodings: dict[str, Any], frame: pd.DataFrame) -> None:
    for name, (_, categories) in encodings.items():
        # A declared category of numbers is meant as one.
        declared = name in frame and isinstance(frame[name].dtype, pd.CategoricalDtype)
        if categories and name in frame and not (declared or is_numeric(frame[name])):
            numbers = pd.to_numeric(pd.Series(categories, dtype=object), errors="coerce")
            if numbers.notna().all():
                warn(
                    f"column {quoted(name)} holds numbers as text, and becomes {len(categories)} "
                    f"categories. Convert it with pandas.to_numeric, or write C({name}) if "
                    "categories are meant.",
                    TextNumbersWarning,
                )


def _refuse_known_only(drivers: Formula, frame: pd.DataFrame, chosen: Mask) -> None:
    """Refuse variables of the selection formula that are known only for selected rows."""
    names = variables_of(drivers, frame)
    gaps = [frame[name].isna().to_numpy() for name in names]
    known_only = explain_known_only(names, FeatureCounts.of_gaps(gaps, chosen))
    if known_only is not None:
        raise MissingValueError(
            f"{known_only} Leave such variables out of the selection formula, and those that were "
            "made from the outcome out of both."
        )
