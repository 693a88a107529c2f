"""From names, positions and masks of features to positions of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from heckmanfa.data.columns.column_names import are_positions, hold_numbers, listed_labels
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

_RENAME = "rename the columns to text (X.columns = [str(name) for name in X.columns])"


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask into sorted positions of X's columns.

    None means all columns, and the name of a text column of files all of its dummies. Messages call
    the parameter ``role``.
    """
    k = table.shape[1]
    if features is None:
        return list(range(k))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        kind = "text" if isinstance(features, str) else type(features).__name__
        raise InputTypeError(f"{role} must be a list of columns; got the {kind} {quoted(features)}")
    # PyArrow yields its own scalars.
    wanted = [feature.as_py() if hasattr(feature, "as_py") else feature for feature in features]
    if wanted and all(isinstance(feature, bool | np.bool_) for feature in wanted):
        if any(isinstance(label, bool | np.bool_) for label in table.labels_given or ()):
            raise InputError(
                f"{role} could be a mask or names, since X has columns named True or False; "
                f"{_RENAME}"
            )
        if len(wanted) != k:
            raise InputError(f"{role} is a mask of {len(wanted)} entries, but X has {k} columns")
        return [index for index, use in enumerate(wanted) if use]
    positions = [_position(table, feature, role) for feature in _with_dummies(table, wanted)]
    twice = sorted({index for index in positions if positions.count(index) > 1})
    if twice:
        raise InputError(f"{role} names {quoted(table.label(twice[0]))} twice")
    return sorted(positions)


def _with_dummies(table: FeatureTable, wanted: Sequence[Any]) -> Iterator[Any]:
    """Replace the name of a text column of files by its dummies."""
    for feature in wanted:
        is_name = isinstance(feature, str) and feature not in (table.names or ())
        if is_name and feature in table.dummies:
            yield from table.dummies[feature]
        else:
            yield feature


def _position(table: FeatureTable, feature: Any, role: str) -> int:
    k, labels = table.shape[1], table.labels_given
    if isinstance(feature, str):
        if table.names is None:
            why = (
                "X has no column names"
                if labels is None or are_positions(labels)
                else f"X's columns have names that are not text ({listed_labels(labels)})"
            )
            raise UnknownFeatureError(
                f"{role} names {quoted(feature)}, but {why}; give positions 0 to {k - 1}"
                if labels is None or not hold_numbers(labels)
                else f"{role} names {quoted(feature)}, but {why}; {_RENAME}"
            )
        if feature not in table.names:
            raise UnknownFeatureError(
                f"{role}: X has no column {quoted(feature)}{nearest(feature, table.names)}"
            )
        return table.names.index(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        if labels is not None and hold_numbers(labels) and not are_positions(labels):
            raise InputError(
                f"{role}: {int(feature)} could be the name of a column or its position, since X's "
                f"columns are named {listed_labels(labels)}; {_RENAME}, or pass a boolean mask of "
                f"{k} entries"
            )
        if not 0 <= feature < k:
            raise UnknownFeatureError(f"{role}: X has no column {feature}; it has 0 to {k - 1}")
        return int(feature)
    hint = ""
    if labels is not None and any(type(feature) is type(label) for label in labels):
        hint = f". Names of columns have to be text: {_RENAME}, or pass a boolean mask"
    raise InputError(f"{role} must hold names, positions or booleans; got {quoted(feature)}{hint}")
