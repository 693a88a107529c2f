"""Changes in the columns of X, or in the dummies of a category, for a model from arrays."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.arrays import Floats, is_dask
from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.effect_cells import (
    Blocks,
    Change,
    ColumnMove,
    EffectRows,
    NamedChange,
    RowGroup,
    Where,
    cells_of,
    fixed_level,
    fixed_number,
    refuse_none,
    row_groups,
    shares_of,
    with_values,
)
from heckmanfa.inference.expectations import Estimates, design_blocks
from heckmanfa.inference.prediction import read_rows
from heckmanfa.inference.rows_of_fit import take_column, weights_of
from heckmanfa.text.printable import quoted, quoted_list


def array_rows(
    fit: Fit,
    X: Any,
    estimates: Estimates,
    where: Where,
    features: Sequence[Any] | None,
    sample_weight: Any,
) -> EffectRows:
    """Read X for a model from arrays; ``features`` of None stands for all of ``estimates``."""
    X, over = _without_groups(fit, X, where.over)
    table = read_rows(fit, X, prediction=estimates.prediction, selection=estimates.selection)
    n = table.shape[0]
    moves = [] if where.predictions else _moves(fit, table, estimates, features)
    sample_weight = weights_of(fit, X, sample_weight, other_rows=True)
    weight, total = shares_of(sample_weight, n)
    # The same column may be named twice, by its name and by its position.
    resolve(table, [name for name, _ in where.fixed], "at")
    fixed = [_fixed_columns(fit, table, name, values) for name, values in where.fixed]

    def changes(design: Floats) -> Iterator[Change]:
        return (move.change(design) for _, move in moves)

    def blocks(group: RowGroup, values: dict[int, float]) -> Blocks:
        average = []
        for span, design in design_blocks(table, estimates.columns):
            share, rows = group.weight(span), group.rows(span)
            if rows is not None:
                design = design[rows]
            if values:
                design = with_values(design, values)
            if where.means:
                average.append(share @ design)
            elif len(share):
                yield share, design, changes(design)
        if where.means:
            row = np.sum(average, axis=0)[None, :]
            yield np.ones(1), row, changes(row)

    choices = product(*(values for _, values in fixed))
    fixings = [_placed(ChainMap(*columns), estimates) for columns in choices]
    return EffectRows(
        changes=[change for change, _ in moves],
        n_rows=n,
        cells=cells_of(row_groups(over, weight), where, fixings, blocks),
        total=total,
        notes=tuple(_merged_levels(fit, {change.term for change, _ in moves})),
        fixed=tuple(name for name, _ in fixed),
    )


def _placed(values: Mapping[int, float], estimates: Estimates) -> dict[int, float]:
    """Return values of columns by places in the design; a column that is not in it does nothing."""
    places = estimates.places
    return {places[column]: value for column, value in values.items() if column in places}


def _moves(
    fit: Fit, table: FeatureTable, estimates: Estimates, features: Sequence[Any] | None
) -> list[tuple[NamedChange, ColumnMove]]:
    """Return the changes of columns: slopes, from 0 to 1, and from a category's reference."""
    wanted = estimates.columns if features is None else resolve(table, features, "features")
    categories = {dummy: category for category in _categories(fit) for dummy in category.dummies}
    # A level whose rows were all left out has no effect that anything could tell.
    unknown = {dummy for dummy, own in categories.items() if own.level(dummy) not in own.known}
    wanted = [column for column in wanted if column not in unknown]
    refuse_none(wanted)
    binary = np.ones(len(wanted), dtype=bool)
    for _, block in design_blocks(table, wanted):
        binary &= np.all((block[:, 1:] == 0) | (block[:, 1:] == 1), axis=0)
    moves = []
    for column, discrete in zip(wanted, binary, strict=True):
        moved, category = frozenset({column}), categories.get(column)
        if category is not None:
            pair = (category.levels[0], category.level(column))
            change = NamedChange(category.name, " to ".join(pair), moved, pair)
            before, after = (_placed(category.values(level), estimates) for level in pair)
            moves.append((change, ColumnMove(after, before)))
            continue
        change = NamedChange(table.label(column), "0 to 1" if discrete else "slope", moved)
        before, after = (_placed({column: value}, estimates) for value in (0.0, 1.0))
        moves.append((change, ColumnMove(after, before if discrete else None)))
    return moves


class _Category(NamedTuple):
    """A category of X, by its dummies among the columns of the model."""

    name: str
    levels: tuple[str, ...]
    """the reference first"""
    dummies: list[int]
    """of all other levels"""
    known: tuple[str, ...]
    """the levels that rows of the fit have"""

    def level(self, dummy: int) -> str:
        """Return the level that a dummy stands for."""
        return self.levels[1 + self.dummies.index(dummy)]

    def values(self, level: str) -> dict[int, float]:
        """Return what the dummies are if the category has a level."""
        place = self.levels.index(level) - 1
        return {column: float(index == place) for index, column in enumerate(self.dummies)}


def _categories(fit: Fit) -> list[_Category]:
    encoding = fit.spec.columns.encoding
    if encoding is None:
        return []
    places = {name: place for place, name in enumerate(encoding.columns)}
    return [
        _Category(
            name,
            levels,
            [places[dummy] for dummy in encoding.columns_of(name)],
            encoding.known_levels(name),
        )
        for name, levels in encoding.levels.items()
        if len(levels) > 1
    ]


def _merged_levels(fit: Fit, terms: set[str]) -> Iterator[str]:
    """Say which levels a model does not tell from the reference, since it has no dummy for them."""
    for name, levels, dummies, known in _categories(fit):
        merged = [
            level
            for level, column in zip(levels[1:], dummies, strict=True)
            if column in fit.dropped and level in known
        ]
        if merged and name in terms:
            yield (
                f"The fit dropped {quoted_list(merged, 3)} of {quoted(name)}: the model takes that "
                f"for the reference, {quoted(levels[0])}, and effects compare with both."
            )


def _fixed_columns(
    fit: Fit, table: FeatureTable, name: Any, values: Sequence[Any]
) -> tuple[str, list[dict[int, float]]]:
    """Return the label of a column of X, and what fixes the model's columns at each value."""
    columns = resolve(table, [name], "at")
    label = table.label(columns[0])
    category = next((own for own in _categories(fit) if columns[0] in own.dummies), None)
    if category is not None and label == name:
        # The other dummies would stay as they are, and rows would have two levels at once.
        level = category.level(columns[0])
        raise InputError(
            f"at: {quoted(name)} is one level of a category; name the column and its levels, as "
            f"in at={{{quoted(category.name)}: {quoted(level)}}}"
        )
    if category is None:
        return label, [{columns[0]: fixed_number(name, value)} for value in values]
    places = [fixed_level(category.name, value, category.known) for value in values]
    return category.name, [category.values(category.known[place]) for place in places]


def _without_groups(fit: Fit, X: Any, over: Any) -> tuple[Any, Any]:
    """Return X without a column that holds only groups, and the group of each row."""
    refuse_rows(X)
    if isinstance(over, str) and not is_dask(X):
        X, over = take_column(fit, X, over, "over", "a column of X")
    elif isinstance(over, int | np.integer):
        raise InputError(f"over must be the name of a column or an entry for each row; got {over}")
    return X, over
