"""The levels that rows of a fit have, and which of them is the reference.

Levels are first learned from all rows of the data, since that decides what a column is. Which rows
are fitted is known once they are counted. Levels that none of them has are then left out, and the
reference is the one that the user names, or the first that they have. The counts stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import host
from heckmanfa.data.columns.encoded_frame import EncodedFrame
from heckmanfa.data.columns.encoding import Encoding, refuse_same_names
from heckmanfa.data.columns.features import FeatureTable, FittedColumns, LevelRows
from heckmanfa.data.columns.values import encoded_names, label_of
from heckmanfa.data.row_parts import PartRows
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import ArrayRows, Block, Mask, Positions, Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest

Level = TypeVar("Level")

_SHOWN = 5
_ROLE = option("reference")


class LevelsChangedError(Exception):
    """The rows of a fit need another encoding than the one that made their columns."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__("the rows of the fit have other levels than the encoding")
        self.encoding = encoding


def _count_levels(columns: FittedColumns, used: Positions, rows: Rows) -> LevelRows:
    """Count rows by level in a pass over them; ``used`` are the columns of either equation."""
    encoding = columns.encoding
    if encoding is None:
        return {}
    read = [column for column in encoding.dummy_positions if column in {*used}]
    if not read:
        return {}
    return columns.rows_by_level(read, *sum(rows.map(_ones_and_zeros, columns=read, merge=sum)))


def _ones_and_zeros(block: Block) -> NDArray[np.int64]:
    return np.stack([host((block.features == value).sum(axis=0)) for value in (1, 0)])


def count_levels_in(encoding: Encoding, X: pd.DataFrame, fitted: Mask) -> LevelRows:
    """Count the rows of an encoded table that are fitted by level."""
    columns = encoding.columns
    ones, zeros = np.zeros(len(columns), dtype=int), np.zeros(len(columns), dtype=int)
    for dummy in [dummy for dummies in encoding.groups.values() for dummy in dummies]:
        values = X[dummy].to_numpy()[fitted]
        place = columns.index(dummy)
        ones[place] = np.count_nonzero(values == 1)
        zeros[place] = np.count_nonzero(values == 0)
    return FittedColumns.of(encoding).rows_by_level(range(len(columns)), ones, zeros)


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
        dummies = dict(zip(old, values, strict=True))
        lost = np.zeros(len(X), dtype=bool)
        for level in dummies.keys() - {*order}:
            lost |= dummies[level] == 1
        for column, code in after.dummies(name).items():
            made[column] = np.where(lost, np.nan, dummies[order[code]])
    return pd.DataFrame(made, index=X.index, copy=False)


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
        asked[name] = level_named(name, value, {level: level for level in levels[name]})
    return asked


def level_named(name: str, value: Any, levels: Mapping[str, Level]) -> Level:
    """Return the level of a category that the user names; ``levels`` are by their labels."""
    label = label_of(value)
    if label not in levels:
        hint = nearest(label, levels) or f"; it has {quoted_list([*levels], _SHOWN)}"
        raise InputError(f"{_ROLE}: {quoted(name)} has no level {quoted(label)}{hint}")
    return levels[label]


def reference_first(name: str, levels: Sequence[Level], asked: Mapping[str, Level]) -> list[Level]:
    """Return the levels that rows of a fit have, the reference of the category first.

    That is the one that the user ``asked`` for, or else the first of them.
    """
    first = asked.get(name, levels[0])
    if first not in levels:
        raise InputError(
            f"{_ROLE}: no row of the fit has the level {quoted(first)} of {quoted(name)}, so it "
            f"cannot be the reference; rows of the fit have {quoted_list(levels, _SHOWN)}"
        )
    return [first, *(level for level in levels if level != first)]


def with_fitted_levels(encoding: Encoding, rows: LevelRows, asked: Mapping[str, str]) -> Encoding:
    """Return an encoding with the levels that rows of a fit have, the reference first.

    ``asked`` are the references that the user names. Categories without counts keep their levels.
    """
    levels, level_rows = dict(encoding.levels), dict[str, tuple[int, ...]]()
    for name, counts in rows.items():
        have = {level: n for level, n in zip(encoding.levels[name], counts, strict=True) if n}
        if not have:
            continue
        levels[name] = tuple(reference_first(name, [*have], asked))
        level_rows[name] = tuple(have[level] for level in levels[name])
    for name in asked.keys() - rows.keys():
        levels[name] = tuple(reference_first(name, levels[name], asked))
    return replace(with_levels(encoding, levels), level_rows=level_rows)


def with_references(encoding: Encoding, first: Mapping[str, str]) -> Encoding:
    """Return an encoding with the same levels, and other references."""
    moved = {name: tuple(reference_first(name, encoding.levels[name], first)) for name in first}
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


def settle_levels(
    table: FeatureTable, sample: Sample, reference: Mapping[Any, Any] | None
) -> tuple[FeatureTable, Sample]:
    """Let the categories of X have the levels of the rows of the fit, with a reference among them.

    ``reference`` is the parameter of the estimators. A table whose columns somebody else encoded
    raises `LevelsChangedError` if it needs another encoding.
    """
    asked = references_asked(table, reference)
    encoding = table.columns.encoding
    if encoding is None:
        return table, sample
    return re_encode(table, sample, with_fitted_levels(encoding, sample.level_rows, asked))


def references_asked(table: FeatureTable, reference: Mapping[Any, Any] | None) -> dict[str, str]:
    """Return the levels that an estimator and its rows name as references, by category."""
    columns, source = table.columns, table.native
    asked = read_references(columns, source.reference) if isinstance(source, RowSource) else {}
    return asked | read_references(columns, reference)


def refuse_moved(
    table: FeatureTable, changed: LevelsChangedError, asked: Mapping[str, str]
) -> None:
    """Refuse a reference that the user ``asked`` for if separation leaves no row of it."""
    before, after = table.columns.encoding, changed.encoding
    assert before is not None
    for name, level in before.references.items():
        if after.references[name] != level and name in asked:
            raise InputError(
                f"{option('reference')}: {option('on_separation', 'drop')} leaves no row of "
                f"{quoted(level)}, the reference of {quoted(name)}; name another of its levels"
            ) from changed


def re_encode(
    table: FeatureTable, sample: Sample, encoding: Encoding
) -> tuple[FeatureTable, Sample]:
    """Return a table and its rows as another encoding of the same sources makes them."""
    before, columns = table.columns.encoding, replace(table.columns, encoding=encoding)
    assert before is not None
    if encoding.levels == before.levels:
        return replace(table, columns=columns), sample
    names = tuple(encoding.columns)
    rows = sample.rows
    native: Any
    if isinstance(rows, PartRows):
        native = rows.source.re_encoded(encoding.as_fitted())
    elif isinstance(table.native, EncodedFrame):
        native = _recoded(table.native, before, encoding)
    else:
        raise LevelsChangedError(encoding)
    made = FeatureTable(columns, table.n_rows, native)
    places = {name: place for place, name in enumerate(names)}

    def moved(old: tuple[int, ...]) -> list[int]:
        """Return the positions of columns, or of all dummies of a category that changed."""
        labels: list[str] = []
        for label, source in zip(table.labels(old), table.sources(old), strict=True):
            same = encoding.levels.get(source) == before.levels.get(source)
            labels += [label] if same else encoding.columns_of(source)
        return sorted({places[name] for name in labels})

    if isinstance(rows, PartRows):
        rules = replace(rows.rules, complete=tuple(moved(rows.rules.complete)))
        labels = list(table.labels(rows.columns))
        columns_read = tuple(moved(rows.columns))
        same = [labels.index(names[k]) if names[k] in labels else None for k in columns_read]
        rows = PartRows(native, rules, rows.lengths, columns_read, rows.sums.moved(same))
    else:
        assert isinstance(rows, ArrayRows)
        rows = replace(rows, source=made.source(range(len(names))))
    return made, replace(sample, rows=rows)


def _recoded(native: EncodedFrame, before: Encoding, encoding: Encoding) -> EncodedFrame:
    """Return encoded columns in memory; a level that is left out is missing."""
    codes = {}
    for name, old in native.codes.items():
        place = {level: code for code, level in enumerate(encoding.levels[name])}
        # The last entry is for -1, a missing level.
        new = np.array([*(place.get(level, -1) for level in before.levels[name]), -1], old.dtype)
        codes[name] = new[old]
    return replace(native, encoding=encoding.as_fitted(), unknown="missing", codes=codes)
