"""Encoded columns in terms of the columns of the table that they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import HeckmanfaError, TooFewRowsError
from heckmanfa.text.printable import quoted


def source_columns(encoding: Encoding) -> dict[str, str]:
    """Return the column of the table that each dummy was made from."""
    return {dummy: name for name, dummies in encoding.groups.items() for dummy in dummies}


def joint_groups(encoding: Encoding) -> dict[str, list[str]]:
    """Return the dummies of each category that has several, which belong together."""
    return {name: dummies for name, dummies in encoding.groups.items() if len(dummies) > 1}


def in_sources(text: str, encoding: Encoding) -> str:
    """Replace each quoted dummy in a message with its column and level."""
    for name, dummies in encoding.groups.items():
        for dummy, level in zip(dummies, encoding.levels[name][1:], strict=True):
            text = text.replace(quoted(dummy), f"column {quoted(name)} (level {quoted(level)})")
    return text


@contextmanager
def errors_in_sources(encoding: Encoding) -> Iterator[None]:
    """Make errors of a fit to encoded columns name the columns of the table."""
    try:
        yield
    except HeckmanfaError as error:
        text = in_sources(str(error), encoding)
        if isinstance(error, TooFewRowsError):
            text += _most_dummies(encoding)
        error.args = (text,)
        raise


def _most_dummies(encoding: Encoding) -> str:
    """Name the category that most features come from, if there is one."""
    for name, dummies in joint_groups(encoding).items():
        if 2 * len(dummies) > len(encoding.columns):
            levels = len(encoding.levels[name])
            return (
                f" {len(dummies)} of the {len(encoding.columns)} features are dummies of column "
                f"{quoted(name)}, a category of {levels} levels."
            )
    return ""
