"""Errors about encoded columns, in terms of the columns of the table that they were made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import HeckmanfaError, TooFewRowsError
from heckmanfa.text.printable import quoted

__all__ = ["errors_in_sources", "in_sources"]


def in_sources(text: str, encoding: Encoding) -> str:
    """Name the column and the level in place of a dummy, which the table does not have.

    Parameters
    ----------
    text : str
        A message in which names of encoded columns stand in quotes.
    encoding : Encoding

    Returns
    -------
    str
    """
    for name, dummies in encoding.groups.items():
        for dummy, level in zip(dummies, encoding.levels[name][1:], strict=True):
            said = quoted(dummy)
            if said in text:
                text = text.replace(said, f"column {quoted(name)} (level {quoted(level)})")
    return text


@contextmanager
def errors_in_sources(encoding: Encoding) -> Iterator[None]:
    """Let errors of a fit to encoded columns speak of the columns of the table."""
    try:
        yield
    except HeckmanfaError as error:
        text = in_sources(str(error), encoding)
        if isinstance(error, TooFewRowsError):
            text += _most_dummies(encoding)
        error.args = (text,)
        raise


def _most_dummies(encoding: Encoding) -> str:
    """Name the category that most features come from, where one is."""
    for name, dummies in encoding.groups.items():
        if 2 * len(dummies) > len(encoding.columns) and len(dummies) > 1:
            levels = len(encoding.levels[name])
            return (
                f" {len(dummies)} of the {len(encoding.columns)} features are dummies of column "
                f"{quoted(name)}, a category of {levels} levels."
            )
    return ""
