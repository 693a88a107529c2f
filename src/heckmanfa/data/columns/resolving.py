"""From names, positions and masks of features to positions of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from heckmanfa.data.columns.column_names import are_positions, hold_numbers, listed_labels
from heckmanfa.data.columns.features import FeatureTable, FittedColumns
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

_RENAME = "rename the columns to text (X.columns = [str(name) for name in X.columns])"


def resolve(table: FeatureTable, features: Any, role: str) -> list[int]:
    """Turn names, positions or a boolean mask of X's columns into sorted positions of the table's.

    None means all columns. A column of X stands for all of its dummies, and a single dummy can be
    named too. Messages call the parameter ``role``.
    """
    if features is None:
        return list(range(table.shape[1]))
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        kind = "text" if isinstance(features, str) else type(features).__name__
        raise InputTypeError(f"{role} must be a list of columns; got the {kind} {quoted(features)}")
    wanted = _as_list(features)
    columns = table.fitted("")
    groups = columns.positions
    if _is_mask(wanted):
        if any(isinstance(label, bool | np.bool_) for label in columns.labels_given or ()):
            raise InputError(
                f"{role} could be a mask or names, since X has columns named True or False; "
                f"{_RENAME}"
            )
        if len(wanted) != len(groups):
            raise InputError(
                f"{role} is a mask of {len(wanted)} entries, but X has {len(groups)} columns"
            )
        return [index for group, use in zip(groups, wanted, strict=True) if use for index in group]
    dummies = {} if columns.encoding is None else _dummies(columns)
    of_x = {name: place for place, name in enumerate(columns.names or ())}
    positions: list[int] = []
    for feature in wanted:
        if isinstance(feature, str) and feature in of_x:
            positions += groups[of_x[feature]]
        elif isinstance(feature, str) and feature in dummies:
            positions.append(dummies[feature])
        else:
            positions += groups[_position(columns, feature, role)]
    twice = sorted(index for index, count in Counter(positions).items() if count > 1)
    if twice:
        raise InputError(f"{role} names {quoted(table.label(twice[0]))} twice")
    return sorted(positions)


def columns_named(columns: FittedColumns, lists: Iterable[Any]) -> set[int]:
    """Return which columns of X lists of features refer to, before the dummies are known.

    What no column has is left to `resolve`, which refuses it.
    """
    n, names = columns.n_features or 0, columns.names or ()
    labels = names or [f"x{index}" for index in range(n)]
    places = {name: index for index, name in enumerate(labels)}
    found: set[int] = set()
    for features in lists:
        if features is None or isinstance(features, str) or not isinstance(features, Iterable):
            return {*range(n)}
        wanted = _as_list(features)
        if _is_mask(wanted):
            found |= {index for index, use in enumerate(wanted[:n]) if use}
            continue
        for feature in wanted:
            if isinstance(feature, int | np.integer) and 0 <= feature < n:
                found.add(int(feature))
            elif isinstance(feature, str):
                # A dummy is called after its column: "column[level]".
                ends = [place for place, letter in enumerate(feature) if letter == "["]
                called = (feature, *(feature[:end] for end in ends))
                found |= {places[name] for name in called if name in places}
    return found


def _as_list(features: Iterable[Any]) -> list[Any]:
    # PyArrow yields its own scalars.
    return [feature.as_py() if hasattr(feature, "as_py") else feature for feature in features]


def _is_mask(wanted: list[Any]) -> bool:
    return bool(wanted) and all(isinstance(feature, bool | np.bool_) for feature in wanted)


def _dummies(columns: FittedColumns) -> dict[str, int]:
    """Return the position of each dummy."""
    assert columns.encoding is not None
    sources = {*columns.encoding.sources}
    return {
        name: position
        for position, name in enumerate(columns.encoding.columns)
        if name not in sources
    }


def _position(columns: FittedColumns, feature: Any, role: str) -> int:
    """Return the position of one of X's columns."""
    k, labels, names = columns.n_features or 0, columns.labels_given, columns.names
    if isinstance(feature, str):
        if names is None:
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
        if feature not in names:
            raise UnknownFeatureError(
                f"{role}: X has no column {quoted(feature)}{nearest(feature, _known(columns))}"
            )
        return names.index(feature)
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


def _known(columns: FittedColumns) -> list[str]:
    """Return the names of X's columns and of their dummies."""
    encoded = () if columns.encoding is None else columns.encoding.columns
    return list(dict.fromkeys([*(columns.names or ()), *encoded]))
