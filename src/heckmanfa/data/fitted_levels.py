"""The levels that rows of a fit have, and which of them is the reference.

Levels are first learned from all rows of the data, since that decides what a column is. Which rows
are fitted is known only later. Levels that none of them has are then left out, and the reference
is the one that the user names, or the first that they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.columns.encoding import Encoding, refuse_same_names
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.columns.level_order import encoded_names
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.row_rules import FeatureCounts, count_features
from heckmanfa.data.rows import Block, Mask, Positions, Rows
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest

_SHOWN = 5
_ROLE = option("reference")

LevelRows = dict[str, tuple[int, ...]]
"""rows that have each level of a category, in the order of `Encoding.levels`"""


class LevelsChangedError(Exception):
    """The rows of a fit need another encoding than the one that made their columns."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__("the rows of the fit have other levels than the encoding")
        self.encoding = encoding


def rows_by_level(columns: FittedColumns, read: Sequence[int], counts: FeatureCounts) -> LevelRows:
    """Count the rows of a fit by level, from the counts of the columns that were read.

    Categories of which only some dummies were read are left out.
    """
    encoding = columns.encoding
    if encoding is None:
        return {}
    places = {column: place for place, column in enumerate(read)}
    found: LevelRows = {}
    for name, group in zip(encoding.sources, columns.positions, strict=True):
        if not encoding.levels.get(name) or not places.keys() >= {*group}:
            continue
        ones = [int(counts.ones[places[column]]) for column in group]
        if len(encoding.levels[name]) > 1:
            # Rows whose missing level was filled with shares have none.
            given = [int(counts.zeros[places[column]]) for column in group]
            ones.insert(0, min(np.add(ones, given).tolist()) - sum(ones))
        found[name] = tuple(ones)
    return found


def _count_levels(columns: FittedColumns, used: Positions, rows: Rows) -> LevelRows:
    """Count rows by level in a pass over them; ``used`` are the columns of either equation."""
    encoding = columns.encoding
    if encoding is None:
        return {}
    groups = zip(encoding.sources, columns.positions, strict=True)
    read = [column for name, group in groups if encoding.levels.get(name) for column in group]
    read = [column for column in read if column in {*used}]
    if not read:
        return {}
    counted = rows.map(_count_block, columns=read, merge=_added)
    return rows_by_level(columns, read, _added(list(counted)))


def count_levels_in(encoding: Encoding, X: pd.DataFrame, fitted: Mask) -> LevelRows:
    """Count the rows of an encoded table that are fitted by level."""
    columns = encoding.columns
    ones, zeros = np.zeros(len(columns), dtype=int), np.zeros(len(columns), dtype=int)
    for dummy in [dummy for dummies in encoding.groups.values() for dummy in dummies]:
        values = X[dummy].to_numpy()[fitted]
        place = columns.index(dummy)
        ones[place] = np.count_nonzero(values == 1)
        zeros[place] = np.count_nonzero(values == 0)
    sources = FittedColumns("", len(encoding.sources), encoding.sources, None, encoding)
    return rows_by_level(sources, range(len(columns)), FeatureCounts(ones=ones, zeros=zeros))


def recoded(X: pd.DataFrame, before: Encoding, after: Encoding) -> pd.DataFrame:
    """Return a table that one encoding made as another with some of its levels would make it.

    A row whose level is left out has none.
    """
    if before.levels == after.levels:
        return X
    made: dict[str, Any] = {}
    for name in after.sources:
        order, old = after.levels.get(name), before.levels.get(name)
        columns = before.columns_of(name)
        if order is None or old is None or order == old:
            made |= {column: X[column] for column in columns}
            continue
        values = [X[column].to_numpy() for column in columns]
        if len(old) > 1:
            values.insert(0, 1.0 - np.sum(values, axis=0))
        found = dict(zip(old, values, strict=True))
        lost = np.zeros(len(X), dtype=bool)
        for level in found.keys() - {*order}:
            lost |= found[level] == 1
        for column, code in after.dummies(name).items():
            made[column] = np.where(lost, np.nan, found[order[code]])
    return pd.DataFrame(made, index=X.index, copy=False)


def _count_block(block: Block) -> FeatureCounts:
    k = block.features.shape[1]
    nowhere = np.zeros(k, dtype=bool)
    return count_features(
        block.features, block.selected, nowhere, all_finite=True, dummies=range(k)
    )


def _added(counts: list[FeatureCounts]) -> FeatureCounts:
    return sum(counts, FeatureCounts())


def levels_named(reference: Any) -> Mapping[Any, Any]:
    """Return the levels that a user names, by column; refuse anything but a dictionary of them."""
    if reference is None:
        return {}
    if not isinstance(reference, Mapping):
        raise InputTypeError(
            f"{_ROLE} must be a dictionary of a level for each column, as in "
            f"{{'region': 'north'}}; got {quoted(reference)}"
        )
    return reference


def read_references(columns: FittedColumns, reference: Mapping[Any, Any] | None) -> dict[str, str]:
    """Return the level that the user names as the reference of each category.

    A column that is not a category of the fit, or a level that it does not have, is refused.
    """
    reference = levels_named(reference)
    names = columns.labels_of_x
    levels = {} if columns.encoding is None else columns.encoding.levels
    asked: dict[str, str] = {}
    for key, value in reference.items():
        is_position = isinstance(key, int | np.integer) and not isinstance(key, bool)
        name = names[key] if is_position and 0 <= key < len(names) else key
        if name not in names:
            near = nearest(str(name), names) or f"; categories are {quoted_list([*levels], _SHOWN)}"
            raise UnknownFeatureError(f"{_ROLE}: there is no column {quoted(name)}{near}")
        if name not in levels:
            raise InputError(
                f"{_ROLE} names {quoted(name)}, which is not a category of this fit: its numbers "
                "have no reference, or it is in neither equation"
            )
        level = label_of(value)
        _refuse_unknown_level(name, level, levels[name])
        asked[name] = level
    return asked


def _refuse_unknown_level(name: str, level: str, levels: Sequence[str]) -> None:
    if level not in levels:
        hint = nearest(level, levels) or f"; it has {quoted_list(levels, _SHOWN)}"
        raise InputError(f"{_ROLE}: {quoted(name)} has no level {quoted(level)}{hint}")


def with_fitted_levels(encoding: Encoding, rows: LevelRows, asked: Mapping[str, str]) -> Encoding:
    """Return an encoding with the levels that rows of a fit have, the reference first.

    ``asked`` are the references that the user names. Categories without counts keep their levels.
    """
    levels, level_rows = dict(encoding.levels), dict[str, tuple[int, ...]]()
    for name, counts in rows.items():
        have = {level: n for level, n in zip(encoding.levels[name], counts, strict=True) if n}
        if not have:
            continue
        first = asked.get(name, next(iter(have)))
        if first not in have:
            raise InputError(
                f"{_ROLE}: no row of the fit has the level {quoted(first)} of {quoted(name)}, so "
                f"it cannot be the reference; rows of the fit have {quoted_list([*have], _SHOWN)}"
            )
        levels[name] = (first, *(level for level in have if level != first))
        level_rows[name] = tuple(have[level] for level in levels[name])
    for name, first in asked.items():
        if name not in rows:
            levels[name] = (first, *(level for level in levels[name] if level != first))
    return replace(with_levels(encoding, levels), level_rows=level_rows)


def with_references(encoding: Encoding, first: Mapping[str, str]) -> Encoding:
    """Return an encoding with the same levels, and other references."""
    moved = {
        name: (level, *(other for other in encoding.levels[name] if other != level))
        for name, level in first.items()
    }
    return with_levels(encoding, {**encoding.levels, **moved})


def with_levels(encoding: Encoding, levels: Mapping[str, tuple[str, ...]]) -> Encoding:
    """Return an encoding with some of its levels, in another order."""
    if dict(levels) == encoding.levels:
        return encoding
    means, rows = dict(encoding.means), dict(encoding.level_rows)
    for name, order in levels.items():
        if order != encoding.levels[name] and means.keys() >= {*encoding.columns_of(name)}:
            share = shares_of(encoding, name)
            for column in encoding.columns_of(name):
                del means[column]
            kept = [share[level] for level in order[1:] or order]
            means |= dict(zip(encoded_names(name, order), kept, strict=True))
        if name in rows:
            known = dict(zip(encoding.levels[name], rows[name], strict=True))
            rows[name] = tuple(known[level] for level in order)
    changed = replace(encoding, levels=dict(levels), means=means, level_rows=rows)
    refuse_same_names(changed.columns)
    return changed


def shares_of(encoding: Encoding, name: str) -> dict[str, float]:
    """Return the share of rows of each level, which fills missing ones."""
    levels, columns = encoding.levels[name], encoding.columns_of(name)
    means = [encoding.means[column] for column in columns]
    return dict(zip(levels, means if len(levels) == 1 else [1 - sum(means), *means], strict=True))


class LevelsLeft:
    """Counts the levels of categories in rows that are left after others were decided."""

    def __init__(self, columns: FittedColumns, used: Positions) -> None:
        self.columns = columns
        """the columns of X, whose categories know only the levels that are left"""
        self._used = used

    def __call__(self, rows: Rows) -> None:
        """Count rows by level; raise `LevelsChangedError` if a reference has none left."""
        encoding = self.columns.encoding
        if encoding is None:
            return
        counts = _count_levels(self.columns, self._used, rows)
        lost = {
            name: next(level for level, n in zip(encoding.levels[name], some, strict=True) if n)
            for name, some in counts.items()
            if not some[0] and any(some)
        }
        if lost:
            raise LevelsChangedError(with_references(encoding, lost))
        known = replace(encoding, level_rows=encoding.level_rows | counts)
        self.columns = replace(self.columns, encoding=known)
