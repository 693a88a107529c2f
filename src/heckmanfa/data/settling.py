"""Rows that were read by one encoding, as another one makes them.

Which levels the rows of a fit have is known once they are counted. The counts stay as they are: a
level that is left out has no row of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from heckmanfa.data.columns.encoded_columns import EncodedColumns
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.fitted_levels import (
    LevelsChangedError,
    read_references,
    with_fitted_levels,
)
from heckmanfa.data.row_parts import PartRows
from heckmanfa.data.row_sources import EncodedRowSource, RowSource
from heckmanfa.data.rows import ArrayRows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted


def settle_levels(
    table: FeatureTable, sample: Sample, reference: Mapping[Any, Any] | None
) -> tuple[FeatureTable, Sample]:
    """Let the categories of X have the levels of the rows of the fit, with a reference among them.

    ``reference`` is the parameter of the estimators. A table whose columns somebody else encoded
    raises `LevelsChangedError` if it needs another encoding.
    """
    asked = references_asked(table, reference)
    encoding = table.fitted("").encoding
    if encoding is None:
        return table, sample
    return re_encode(table, sample, with_fitted_levels(encoding, sample.level_rows, asked))


def references_asked(table: FeatureTable, reference: Mapping[Any, Any] | None) -> dict[str, str]:
    """Return the levels that an estimator and its rows name as references, by category."""
    columns, source = table.fitted(""), table.native
    asked = read_references(columns, source.reference) if isinstance(source, RowSource) else {}
    return asked | read_references(columns, reference)


def refuse_moved(
    table: FeatureTable, changed: LevelsChangedError, asked: Mapping[str, str]
) -> None:
    """Refuse a reference that the user ``asked`` for if separation leaves no row of it."""
    before, after = table.fitted("").encoding, changed.encoding
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
    raw = table.raw
    assert raw is not None
    assert raw.encoding is not None
    before, columns = raw.encoding, replace(raw, encoding=encoding)
    if encoding.levels == before.levels:
        return replace(table, raw=columns), sample
    names = tuple(encoding.columns)
    rows = sample.rows
    native: Any
    if isinstance(rows, PartRows):
        assert isinstance(rows.source, EncodedRowSource)
        native = rows.source.re_encoded(encoding.as_fitted())
    elif isinstance(table.native, EncodedColumns):
        native = _recoded(table.native, before, encoding)
    else:
        raise LevelsChangedError(encoding)
    made = FeatureTable(names, (table.shape[0], len(names)), native, table.labels_given, columns)
    places = {name: place for place, name in enumerate(names)}

    def moved(old: tuple[int, ...]) -> list[int]:
        """Return the positions of columns, or of all dummies of a category that changed."""
        found: list[str] = []
        for label, source in zip(table.labels(old), table.sources(old), strict=True):
            same = encoding.levels.get(source) == before.levels.get(source)
            found += [label] if same else encoding.columns_of(source)
        return sorted({places[name] for name in found})

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


def _recoded(native: EncodedColumns, before: Encoding, encoding: Encoding) -> EncodedColumns:
    """Return encoded columns in memory; a level that is left out is missing."""
    codes = {}
    for name, old in native.codes.items():
        place = {level: code for code, level in enumerate(encoding.levels[name])}
        # The last entry is for -1, a missing level.
        new = np.array([*(place.get(level, -1) for level in before.levels[name]), -1], old.dtype)
        codes[name] = new[old]
    return replace(native, encoding=encoding.as_fitted(), unknown="missing", codes=codes)
