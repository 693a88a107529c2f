"""From the options of a command to a `Question`."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from heckmanfa.analysis import Question


def question_of(options: Mapping[str, Any]) -> Question:
    """Return the question that options ask; they are named as the fields of `Question`."""
    values: dict[str, Any] = dict(options)
    for field in fields(Question):
        # An empty tuple is the default of those that list columns.
        if field.default == () and field.name in values:
            values[field.name] = _split_names(values[field.name])
    return Question(**values)


def _split_names(values: Sequence[str] | None) -> tuple[str, ...]:
    """Split lists of columns at commas; a name with a comma goes in double quotes."""
    return tuple(
        part.strip()
        for value in values or ()
        for part in next(csv.reader([value], skipinitialspace=True), [])
        if part.strip()
    )
