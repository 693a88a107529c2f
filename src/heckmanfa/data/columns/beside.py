"""Columns of X that are not features: those of a survey's design, by name or by a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import narwhals as nw
import pandas as pd

from heckmanfa.data.arrays import is_dask
from heckmanfa.data.columns.column_names import refuse_same_labels
from heckmanfa.data.columns.column_numbers import as_table
from heckmanfa.data.row_sources import RowSource


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Return a data frame without the columns of these names, or patterns of names."""
    if not names or isinstance(X, RowSource):
        return X
    if is_dask(X):
        return X.drop(columns=_among(X.columns, names)) if hasattr(X, "columns") else X
    frame = frame_of(X)
    if frame is None or not (gone := _among(frame.columns, names)):
        return X
    kept = [place for place, name in enumerate(frame.columns) if name not in gone]
    return frame[:, kept].to_native()


def _among(columns: Sequence[Any], names: Sequence[str]) -> list[Any]:
    return [
        column
        for column in columns
        if column in names or any(fnmatchcase(str(column), name) for name in names)
    ]


def frame_of(X: Any, what: str = "X") -> nw.DataFrame[Any] | None:
    """Return X as a frame; None if it is not a data frame in memory."""
    if isinstance(X, pd.DataFrame):
        refuse_same_labels(X.columns, what)
    frame = nw.from_native(as_table(X), eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
