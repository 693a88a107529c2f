"""Changes in the variables of formulas.

Variables are those of `heckmanfa.inference.formula_variables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_numbers import entries
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.inference.effect_cells import (
    Blocks,
    Change,
    EffectRows,
    NamedChange,
    RowGroup,
    Where,
    cells_of,
    refuse_none,
    row_groups,
    shares_of,
)
from heckmanfa.inference.expectations import Estimates
from heckmanfa.inference.formula_variables import (
    FormulaColumns,
    Use,
    Variable,
    at_means,
    fixed_values,
    read_variable,
    uses_of,
)
from heckmanfa.inference.rows_of_fit import column_or_values, weights_of
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest, plural

# Evaluating the formulas takes milliseconds, however few the rows are.
_FORMULA_ROWS = 2**15


def formula_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    where: Where,
    features: Sequence[Any] | None,
    sample_weight: Any,
) -> EffectRows:
    """Read a frame for a model from formulas, as `array_rows` does; incomplete rows are left out.

    ``sample_weight`` may name a column.
    """
    assert fit.origin.design is not None
    frame, formulas = to_pandas(X), fit.origin.design
    in_prediction, in_selection = (
        uses_of(equation, frame, lost=formulas.dropped_levels)
        for equation in (formulas.prediction, formulas.selection)
    )
    uses = [
        *(in_prediction if estimates.prediction else []),
        *(in_selection if estimates.selection else []),
    ]
    known = _names_in([*in_prediction, *in_selection])
    named = None if features is None else _resolve_variables(features, known, frame, "features")
    fixed = _resolve_variables([name for name, _ in where.fixed], known, frame, "at")
    over = column_or_values(frame, where.over, "over", keep=True)
    sample_weight = weights_of(fit, frame, sample_weight, other_rows=True)
    weights = column_or_values(frame, sample_weight, "sample_weight")
    frame = frame[list(dict.fromkeys([*_names_in(uses), *(named or []), *fixed]))]
    # Terms that the fit dropped, as collinear or in a search, are still in the formulas.
    fitted_uses, moved_by = _fitted_uses(fit, frame, estimates)
    columns = FormulaColumns(
        formulas, estimates.columns, estimates.prediction, estimates.selection, moved_by
    )
    complete, weights = _complete_rows(frame, columns, weights)
    frame = frame[complete].reset_index(drop=True)
    weight, total = shares_of(weights, len(frame))
    variables, notes = _variables(named, frame, uses, fitted_uses, columns, where)
    # Values are checked against the variables of all equations, whatever is asked for.
    of_all = [*in_prediction, *in_selection]
    choices = [fixed_values(name, values, frame, of_all) for name, values in where.fixed]

    def blocks(group: RowGroup, values: Sequence[Any]) -> Blocks:
        inside, shares = group.rows(), group.weight()
        rows = frame if inside is None else frame[inside].reset_index(drop=True)
        rows = rows.assign(**dict(zip(fixed, values, strict=True)))
        if where.means:
            rows, shares = at_means(rows, shares, uses)
        return _formula_blocks(rows, shares, variables, columns, where)

    groups = row_groups(None if over is None else _kept_groups(over, complete), weight)
    return EffectRows(
        changes=[
            NamedChange(variable.name, words, moved_by.get(variable.name, frozenset()), contrast)
            for variable in variables
            for words, contrast in variable.contrasts()
        ],
        n_rows=int(np.count_nonzero(complete)),
        cells=cells_of(groups, where, list(product(*choices)), blocks),
        total=total,
        n_left_out=int(np.count_nonzero(~complete)),
        notes=tuple(notes),
        fixed=tuple(fixed),
    )


def _kept_groups(over: Any, complete: Mask) -> Any:
    """Return the groups of the rows that are complete."""
    values = over if isinstance(over, pd.Series) else pd.Series(entries(over, "over"))
    if len(values) != len(complete):
        raise InputError(f"over has {len(values)} entries, but X has {len(complete)} rows")
    return values[complete].reset_index(drop=True)


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
    where: Where,
) -> tuple[list[Variable], list[str]]:
    """Return the variables named, or all that the fit uses, with notes about those left out."""
    variables: list[Variable] = []
    notes: list[str] = []
    if where.predictions:
        return variables, notes
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
    refuse_none(variables)
    return variables, notes


def _formula_blocks(
    frame: pd.DataFrame,
    weight: Floats,
    variables: list[Variable],
    columns: FormulaColumns,
    where: Where,
) -> Blocks:
    """Yield the blocks of a `Cell`: runs of rows, or the average row."""

    def changes(rows: pd.DataFrame, design: Floats) -> Iterator[Change]:
        for variable in variables:
            yield from variable.change_design(rows, design, columns)

    if where.means:
        design = columns.design_of(frame)
        averaged = (change.average(weight) for change in changes(frame, design))
        yield np.ones(1), weight[None, :] @ design, averaged
        return
    for start in range(0, len(frame), _FORMULA_ROWS):
        rows = frame.iloc[start : start + _FORMULA_ROWS].reset_index(drop=True)
        design = columns.design_of(rows)
        if where.fixed:
            _refuse_gaps(design, where, rows)
        yield weight[start : start + _FORMULA_ROWS], design, changes(rows, design)


def _refuse_gaps(design: Floats, where: Where, frame: pd.DataFrame) -> None:
    """Refuse fixed values for which the formulas have no number."""
    gaps = int(np.isnan(design).any(axis=1).sum())
    if gaps:
        fixed = [f"{quoted(name)} = {shown(frame[name].iloc[0])}" for name, _ in where.fixed]
        raise InputError(
            f"at: the formulas give NaN or infinity in {plural(gaps, 'row')} with "
            f"{' and '.join(fixed)}"
        )


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
        uses += uses_of(equation, frame, terms, lost=design.dropped_levels)
    return uses, moved_by


def _names_in(uses: list[Use]) -> list[str]:
    return list(dict.fromkeys(name for use in uses for name in use.names))


def _resolve_variables(
    features: Any, names: list[str], frame: pd.DataFrame, role: str
) -> list[str]:
    if isinstance(features, str):
        raise InputError(f"{role} must be a list of variables; got the text {quoted(features)}")
    wanted = list(features)
    for name in wanted:
        if name not in names:
            problem = "the formulas use no variable" if name in frame else "there is no variable"
            raise UnknownFeatureError(
                f"{role}: {problem} {quoted(name)}{nearest(str(name), names)}"
            )
        if wanted.count(name) > 1:
            raise InputError(f"{role} names {quoted(name)} twice")
    return wanted
