"""The encoded rows of a question, in memory or in files, and how a model is fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heckmanfa.analysis.column_sources import errors_in_sources
from heckmanfa.analysis.request import Question
from heckmanfa.analysis.usable_rows import EXCLUDE, missing_advice, refuse_rows
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.devices import to_device
from heckmanfa.data.parquet.parquet_rows import ParquetRows
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, MissingValueError, NoOutcomeError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.text.numbers import plural


@dataclass(frozen=True, eq=False)
class Loaded:
    """The rows that have every feature, in memory."""

    X: pd.DataFrame
    """(n, K) encoded features"""
    y: Floats
    """(n,) NaN where missing"""
    selected: Mask | None
    weight: Floats | None
    groups: Any


@dataclass(frozen=True, eq=False)
class Prepared:
    """The encoded rows and columns that a question is about."""

    question: Question
    encoding: Encoding
    rows: Loaded | ParquetRows
    """in memory, or in files that are read in passes"""
    n_rows: int
    """rows of the table"""
    n_columns: int
    """columns of the table"""
    missing_counts: dict[str, int]
    """rows left out because a column is missing, by column; a row may count in several"""
    binary: frozenset[str]
    """features that hold only 0 and 1"""
    files: tuple[Path, ...]
    """files of the table; none if it was in memory, or came through a pipe"""
    notes: tuple[str, ...]
    """sentences about how the table was read, if that could be done in several ways"""

    @property
    def loaded(self) -> Loaded | None:
        """The rows, if they are in memory."""
        return self.rows if isinstance(self.rows, Loaded) else None

    @property
    def streamed(self) -> bool:
        """Whether rows are read in passes instead of loaded."""
        return self.loaded is None

    @property
    def how_read(self) -> str:
        """How rows that were not loaded were read, in words."""
        return (
            f"rows were read from {plural(len(self.files), 'Parquet file')} in passes, not loaded"
        )

    def fit(self, model: Heckman) -> None:
        """Fit a model to the rows; errors name the columns of the table."""
        with errors_in_sources(self.encoding):
            if isinstance(self.rows, ParquetRows):
                _fit_streamed(self.rows, model, self.missing_counts)
                return
            device = self.question.device
            model.fit(
                self.rows.X if device == "cpu" else to_device(self.rows.X, device),
                self.rows.y,
                selected=self.rows.selected,
                sample_weight=self.rows.weight,
                groups=self.rows.groups,
            )


def _fit_streamed(rows: ParquetRows, model: Heckman, missing_counts: dict[str, int]) -> None:
    """Fit a model to rows in files, which only the fit itself can check."""
    try:
        model.fit(rows)
    except MissingValueError as error:
        raise InputError(f"{error} {EXCLUDE}") from error
    except NoOutcomeError as error:
        if not missing_counts:
            raise
        raise InputError(
            "no outcome is observed in any row that misses no feature. "
            f"{missing_advice(missing_counts)}"
        ) from error
    counts = model.row_counts_
    kept = rows.n_rows - counts["left_out_regressor_missing"]
    refuse_rows(
        n_rows=rows.n_rows,
        kept=kept,
        selected=kept if counts["unselected"] == 0 else counts["selected"],
        observed=counts["selected"],
        missing_counts=missing_counts,
    )
