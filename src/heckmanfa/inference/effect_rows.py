"""The rows at which effects are evaluated, and the changes whose effects are asked for.

In a model from arrays each column is a feature. In a model from formulas a feature is a variable
of `heckmanfa.inference.formula_variables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.resolving import resolve
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import read_weights
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.inference.expectations import Estimates, design_blocks
from heckmanfa.inference.fit_rows import column_or_values, weights_of
from heckmanfa.inference.formula_variables import (
    Change,
    FormulaColumns,
    Use,
    Variable,
    at_means,
    read_variable,
    uses_of,
)
from heckmanfa.inference.prediction import read_rows
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

# Evaluating the formulas takes milliseconds, however few the rows are.
_FORMULA_ROWS = 2**15

EffectBlock = tuple[Floats, Floats, Iterator[Change]]
"""weights that sum to one over all blocks, design (n, 1 + k), and every change"""
Blocks = Iterator[EffectBlock]


@dataclass(frozen=True)
class EffectRows:
    """Rows at which effects are evaluated, and the changes whose effects are asked for."""

    changes: list[tuple[str, str]]
    """term, and the change in words"""
    moved: list[frozenset[int]]
    """columns of X that each change moves"""
    n_rows: int
    blocks: Callable[[], Blocks]
    total: float | None
    """sum of the weights; None without weights"""
    n_left_out: int = 0
    """rows in which a variable is missing"""
    notes: tuple[str, ...] = ()
    contrasts: tuple[tuple[Any, Any] | None, ...] = ()
    """levels before and after each change of a variable; None for a slope"""


def array_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    at: str,
    features: Sequence[Any] | None,
    sample_weight: Any,
) -> EffectRows:
    """Read X for a model from arrays; ``features`` of None stands for all of ``estimates``."""
    table = read_rows(fit, X, prediction=estimates.prediction, selection=estimates.selection)
    wanted = estimates.columns if features is None else resolve(table, features, "features")
    _refuse_none(wanted)
    binary = np.ones(len(wanted), dtype=bool)
    for _, block in design_blocks(table, wanted):
        binary &= np.all((block[:, 1:] == 0) | (block[:, 1:] == 1), axis=0)
    positions = {column: 1 + i for i, column in enumerate(estimates.columns)}
    sample_weight = weights_of(fit, X, sample_weight, other_rows=True)
    weight, total = _shares(sample_weight, table.shape[0])

    def changes(design: Floats) -> Iterator[Change]:
        for column, discrete in zip(wanted, binary, strict=True):
            position = positions.get(column)
            if discrete:
                before, after = design.copy(), design.copy()
                if position is not None:
                    before[:, position], after[:, position] = 0.0, 1.0
                yield Change(before=before, after=after)
            else:
                slopes = np.zeros((1, design.shape[1]))
                if position is not None:
                    slopes[0, position] = 1.0
                yield Change(slopes=slopes)

    def blocks() -> Blocks:
        parts = design_blocks(table, estimates.columns)
        if at == "average":
            for span, design in parts:
                yield weight[span], design, changes(design)
        else:
            row = np.sum([weight[span] @ design for span, design in parts], axis=0)[None, :]
            yield np.ones(1), row, changes(row)

    words = [
        (table.label(column), "0 to 1" if discrete else "slope")
        for column, discrete in zip(wanted, binary, strict=True)
    ]
    moved = [frozenset([column]) for column in wanted]
    return EffectRows(words, moved, table.shape[0], blocks, total)


def formula_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    at: str,
    features: Sequence[Any] | None,
    sample_weight: Any,
) -> EffectRows:
    """Read a frame for a model from formulas, as `array_rows` does; incomplete rows are left out.

    ``sample_weight`` may name a column.
    """
    assert fit.origin.design is not None
    frame, formulas = to_pandas(X), fit.origin.design
    in_prediction, in_selection = (
        uses_of(equation, frame) for equation in (formulas.prediction, formulas.selection)
    )
    uses = [
        *(in_prediction if estimates.prediction else []),
        *(in_selection if estimates.selection else []),
    ]
    named = None
    if features is not None:
        named = _resolve_variables(features, _names_in([*in_prediction, *in_selection]), frame)
    sample_weight = weights_of(fit, frame, sample_weight, other_rows=True)
    given = column_or_values(frame, sample_weight, "sample_weight")
    frame = frame[list(dict.fromkeys([*_names_in(uses), *(named or [])]))]
    # Terms that the fit dropped, as collinear or in a search, are still in the formulas.
    fitted_uses, moved_by = _fitted_uses(fit, frame, estimates)
    columns = FormulaColumns(
        formulas, estimates.columns, estimates.prediction, estimates.selection, moved_by
    )
    complete, given = _complete_rows(frame, columns, given)
    frame = frame[complete].reset_index(drop=True)
    weight, total = _shares(given, len(frame))
    variables, notes = _variables(named, frame, uses, fitted_uses, columns)
    if at == "means":
        frame, weight = at_means(frame, weight, uses)
    words = [(variable.name, change) for variable in variables for change in variable.changes()]
    return EffectRows(
        changes=words,
        moved=[moved_by.get(name, frozenset()) for name, _ in words],
        n_rows=int(np.count_nonzero(complete)),
        blocks=lambda: _formula_blocks(frame, weight, variables, columns, at),
        total=total,
        n_left_out=int(np.count_nonzero(~complete)),
        notes=tuple(notes),
        contrasts=tuple(pair for variable in variables for pair in variable.contrasts()),
    )


def _complete_rows(frame: pd.DataFrame, columns: FormulaColumns, weight: Any) -> tuple[Mask, Any]:
    """Return which rows have every column, and the weights of these rows."""
    per_row = weight is not None and np.ndim(weight) > 0
    if per_row and len(weight) != len(frame):
        raise InputError(f"sample_weight has {len(weight)} entries, but X has {len(frame)} rows")
    complete = frame.notna().all(axis=1).to_numpy(dtype=bool).copy()
    if complete.any():
        complete[complete] = ~np.isnan(columns.design_of(frame[complete])).any(axis=1)
    if per_row:
        weight = np.asarray(weight)[complete]
    if not complete.any() or (weight is not None and not np.any(weight)):
        raise InputError(
            f"no row is left: in each of the {len(frame)} rows a variable of the formulas is "
            "missing, or the weight is zero"
        )
    return complete, weight


def _variables(
    named: list[str] | None,
    frame: pd.DataFrame,
    uses: list[Use],
    fitted_uses: list[Use],
    columns: FormulaColumns,
) -> tuple[list[Variable], list[str]]:
    """Return the variables named, or all that the fit uses, with notes about those left out."""
    variables: list[Variable] = []
    notes: list[str] = []
    for name in _names_in(fitted_uses) if named is None else named:
        variable = read_variable(name, frame, uses, columns)
        jump = next((use.factor for use in fitted_uses if use.jumps and name in use.names), None)
        if variable.levels is not None or jump is None:
            variables.append(variable)
        elif named is None:
            notes.append(
                f"{quoted(name)} is left out: it has no slope, since {quoted(jump)} jumps."
            )
        else:
            raise InputError(
                f"features: {quoted(name)} has no slope, since the formulas use it in "
                f"{quoted(jump)}, which jumps. Make that a column of the data, and name the "
                "column in the formulas."
            )
    _refuse_none(variables)
    return variables, notes


def _formula_blocks(
    frame: pd.DataFrame, weight: Floats, variables: list[Variable], columns: FormulaColumns, at: str
) -> Blocks:
    """Yield the blocks of `EffectRows`: runs of rows, or the average row."""

    def changes(part: pd.DataFrame, design: Floats) -> Iterator[Change]:
        for variable in variables:
            yield from variable.change_design(part, design, columns)

    if at == "means":
        design = columns.design_of(frame)
        averaged = (change.average(weight) for change in changes(frame, design))
        yield np.ones(1), weight[None, :] @ design, averaged
        return
    for start in range(0, len(frame), _FORMULA_ROWS):
        part = frame.iloc[start : start + _FORMULA_ROWS].reset_index(drop=True)
        design = columns.design_of(part)
        yield weight[start : start + _FORMULA_ROWS], design, changes(part, design)


def _fitted_uses(
    fit: Fit, frame: pd.DataFrame, estimates: Estimates
) -> tuple[list[Use], dict[str, frozenset[int]]]:
    """Return how the terms in the fitted equations use variables, and the columns these move."""
    design = fit.origin.design
    assert design is not None
    uses: list[Use] = []
    moved_by: dict[str, frozenset[int]] = {}
    for equation, columns_of_terms, fitted in (
        (design.prediction, design.prediction_terms, estimates.in_prediction),
        (design.selection, design.selection_terms, estimates.in_selection),
    ):
        positions = {fit.labels[column]: column for column in fitted}
        terms: set[str] = set()
        for term, names in columns_of_terms.items():
            moved = frozenset(positions[name] for name in names if name in positions)
            if moved:
                terms.add(term)
                for variable in _names_in(uses_of(equation, frame, {term})):
                    moved_by[variable] = moved_by.get(variable, frozenset()) | moved
        uses += uses_of(equation, frame, terms)
    return uses, moved_by


def _names_in(uses: list[Use]) -> list[str]:
    return list(dict.fromkeys(name for use in uses for name in use.names))


def _resolve_variables(features: Any, names: list[str], frame: pd.DataFrame) -> list[str]:
    if isinstance(features, str):
        raise InputError(f"features must be a list of variables; got the text {quoted(features)}")
    wanted = list(features)
    for name in wanted:
        if name not in names:
            problem = "the formulas use no variable" if name in frame else "there is no variable"
            raise UnknownFeatureError(
                f"features: {problem} {quoted(name)}{nearest(str(name), names)}"
            )
        if wanted.count(name) > 1:
            raise InputError(f"features names {quoted(name)} twice")
    return wanted


def _refuse_none(wanted: Sequence[Any]) -> None:
    if not wanted:
        raise InputError("there is no feature to take an effect of; name some in features=[...]")


def _shares(sample_weight: Any, n: int) -> tuple[Floats, float | None]:
    """Return the weights of n rows, scaled to sum to one, and their sum; None without weights."""
    if sample_weight is None:
        return np.full(n, 1.0 / n), None
    weight = read_weights(sample_weight, n)
    total = float(weight.sum())
    return np.asarray(weight / total), total
