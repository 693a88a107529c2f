"""The rows to take effects at, and what a change in each feature does to them.

In a model from arrays a feature is a column; in a model from formulas it is a variable of
`heckmanfa.inference.variables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import nearest, resolve
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.sample import read_weights
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.inference.prediction import read_rows
from heckmanfa.inference.remembered import column_or_values, weights_of
from heckmanfa.inference.targets import Estimates, design_blocks
from heckmanfa.inference.variables import (
    FormulaColumns,
    Move,
    Use,
    Variable,
    at_means,
    moved_columns,
    read_variable,
    uses_of,
)
from heckmanfa.text.printable import quoted

# Formulas take milliseconds to evaluate on however few rows.
_FORMULA_ROWS = 2**15

Blocks = Iterator[tuple[Floats, Floats, Iterator[Move]]]


@dataclass(frozen=True)
class ChangedRows:
    """Rows to take effects at, and the changes whose effects are asked for."""

    changes: list[tuple[str, str]]
    """term, and the change in words"""
    moved: list[frozenset[int]]
    """columns of X that each change moves"""
    n_rows: int
    n_left_out: int
    """rows that miss a variable"""
    notes: list[str]
    blocks: Blocks
    """weights that sum to one over all blocks, design (n, 1 + k), and a move for each change"""
    total: float | None = None
    """sum of the weights, where rows have some"""


def plain_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    at: str,
    features: Sequence[Any] | None,
    sample_weight: Any,
    *,
    prediction: bool,
    selection: bool,
) -> ChangedRows:
    """Take in X for a model whose features are its columns.

    Parameters
    ----------
    fit : Fit
    X : array or data frame
    estimates : Estimates
        Its columns make the design.
    at : {"average", "means"}
    features : sequence of str or int, optional
        All columns of the design, unless given.
    sample_weight : array_like, optional
    prediction, selection : bool
        Which equations are needed.

    Returns
    -------
    ChangedRows
    """
    table = read_rows(fit, X, prediction=prediction, selection=selection)
    wanted = estimates.columns if features is None else resolve(table, features, "features")
    _refuse_none(wanted)
    binary = np.ones(len(wanted), dtype=bool)
    for _, block in design_blocks(table, wanted):
        binary &= np.all((block[:, 1:] == 0) | (block[:, 1:] == 1), axis=0)
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    sample_weight = weights_of(fit, X, sample_weight, other_rows=True)
    weight, total = _shares(sample_weight, table.shape[0])

    def moves(design: Floats) -> Iterator[Move]:
        for column, discrete in zip(wanted, binary, strict=True):
            where = place.get(column)
            if discrete:
                before, after = design.copy(), design.copy()
                if where is not None:
                    before[:, where], after[:, where] = 0.0, 1.0
                yield Move(before=before, after=after)
            else:
                slopes = np.zeros((1, design.shape[1]))
                if where is not None:
                    slopes[0, where] = 1.0
                yield Move(slopes=slopes)

    def blocks() -> Blocks:
        parts = design_blocks(table, estimates.columns)
        if at == "average":
            for where, design in parts:
                yield weight[where], design, moves(design)
        else:
            row = np.sum([weight[where] @ design for where, design in parts], axis=0)[None, :]
            yield np.ones(1), row, moves(row)

    changes = [
        (table.label(column), "0 to 1" if discrete else "slope")
        for column, discrete in zip(wanted, binary, strict=True)
    ]
    moved = [frozenset([column]) for column in wanted]
    return ChangedRows(changes, moved, table.shape[0], 0, [], blocks(), total)


def formula_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    at: str,
    features: Sequence[Any] | None,
    sample_weight: Any,
    *,
    prediction: bool,
    selection: bool,
) -> ChangedRows:
    """Take in a frame for a model whose features are the variables of its formulas.

    Parameters
    ----------
    model, X, estimates, at, features, sample_weight, prediction, selection
        As in `plain_rows`; ``sample_weight`` may name a column.

    Returns
    -------
    ChangedRows
        Without the rows that miss a variable.
    """
    assert fit.origin.design is not None
    frame, formulas = to_pandas(X), fit.origin.design
    in_prediction, in_selection = (
        uses_of(equation, frame) for equation in (formulas.prediction, formulas.selection)
    )
    every = _names_in([*in_prediction, *in_selection])
    uses = [*(in_prediction if prediction else []), *(in_selection if selection else [])]
    named = [] if features is None else _resolve_variables(features, every, frame)
    columns = FormulaColumns(formulas, estimates.columns, prediction, selection)
    sample_weight = weights_of(fit, frame, sample_weight, other_rows=True)
    given = column_or_values(frame, sample_weight, "sample_weight")
    if given is not None and np.ndim(given) and len(given) != len(frame):
        raise InputError(f"sample_weight has {len(given)} entries, but X has {len(frame)} rows")
    frame = frame[list(dict.fromkeys([*_names_in(uses), *named]))]
    complete = frame.notna().all(axis=1).to_numpy(dtype=bool).copy()
    if complete.any():
        complete[complete] = ~np.isnan(columns.of(frame[complete])).any(axis=1)
    if given is not None and np.ndim(given):
        given = np.asarray(given)[complete]
    if not complete.any() or (given is not None and not np.any(given)):
        raise InputError(
            f"no row is left: each of the {len(frame)} rows misses a variable of the formulas, or "
            "has no weight"
        )
    frame = frame[complete].reset_index(drop=True)
    # Rows that are left out need no weight.
    weight, total = _shares(given, len(frame))
    # Terms that the fit left out, as collinear or in a search, are in the formulas all the same.
    held, moved_by = _held_uses(fit, frame, estimates)
    columns = replace(columns, moved_by=moved_by)
    variables: list[Variable] = []
    notes: list[str] = []
    for name in _names_in(held) if features is None else named:
        variable = read_variable(name, frame, uses, columns)
        jump = next((use.factor for use in held if use.jumps and name in use.names), None)
        if variable.levels is not None or jump is None:
            variables.append(variable)
        elif features is None:
            notes.append(
                f"{quoted(name)} is left out: it has no slope, since {quoted(jump)} jumps."
            )
        else:
            raise InputError(
                f"features: {quoted(name)} has no slope, since the formulas use it in "
                f"{quoted(jump)}, which "
                "jumps. Make that a column of its own in the data, and name it in the formulas."
            )
    _refuse_none(variables)
    if at == "means":
        frame, weight = at_means(frame, weight, uses)

    def moves(part: pd.DataFrame, design: Floats) -> Iterator[Move]:
        for variable in variables:
            yield from variable.moves(part, design, columns)

    def blocks() -> Blocks:
        if at == "means":
            design = columns.of(frame)
            averaged = (
                Move(*(None if one is None else weight[None, :] @ one for one in move))
                for move in moves(frame, design)
            )
            yield np.ones(1), weight[None, :] @ design, averaged
            return
        for start in range(0, len(frame), _FORMULA_ROWS):
            part = frame.iloc[start : start + _FORMULA_ROWS].reset_index(drop=True)
            design = columns.of(part)
            yield weight[start : start + _FORMULA_ROWS], design, moves(part, design)

    changes = [(one.name, words) for one in variables for words in one.words()]
    moved = [moved_by.get(name, frozenset()) for name, _ in changes]
    n_left_out = int(np.count_nonzero(~complete))
    n_rows = len(complete) - n_left_out
    return ChangedRows(changes, moved, n_rows, n_left_out, notes, blocks(), total)


def _held_uses(
    fit: Fit, frame: pd.DataFrame, estimates: Estimates
) -> tuple[list[Use], dict[str, frozenset[int]]]:
    """Return how the terms that the fitted equations hold use variables, and what these move."""
    design = fit.origin.design
    assert design is not None
    uses: list[Use] = []
    moved_by: dict[str, frozenset[int]] = {}
    for equation, made_by, held in (
        (design.prediction, design.prediction_terms, estimates.in_prediction),
        (design.selection, design.selection_terms, estimates.in_selection),
    ):
        if held:
            columns = {fit.labels[one]: one for one in held}
            terms, moved = moved_columns(equation, made_by, frame, columns)
            uses += uses_of(equation, frame, terms)
            for name, places in moved.items():
                moved_by[name] = moved_by.get(name, frozenset()) | places
    return uses, moved_by


def _names_in(uses: list[Any]) -> list[str]:
    return list(dict.fromkeys(name for use in uses for name in use.names))


def _resolve_variables(features: Any, names: list[str], frame: pd.DataFrame) -> list[str]:
    if isinstance(features, str):
        raise InputError(f"features must be a list of variables; got the text {quoted(features)}")
    wanted = list(features)
    for one in wanted:
        if one not in names:
            where = "the formulas use no variable" if one in frame else "there is no variable"
            raise UnknownFeatureError(f"features: {where} {quoted(one)}{nearest(str(one), names)}")
        if wanted.count(one) > 1:
            raise InputError(f"features names {quoted(one)} twice")
    return wanted


def _refuse_none(wanted: Sequence[Any]) -> None:
    if not wanted:
        raise InputError("there is no feature to take an effect of; name some in features=[...]")


def _shares(sample_weight: Any, n: int) -> tuple[Floats, float | None]:
    """Weights of the rows, made to sum to one, and what they summed to where some were given."""
    if sample_weight is None:
        return np.full(n, 1.0 / n), None
    weight = read_weights(sample_weight, n)
    total = float(weight.sum())
    return np.asarray(weight / total), total
