"""Which columns of Parquet files are numbers and which categories, and the levels of these.

The levels of a category are those of all files, so that one which only a single row group has is
there as well; finding them takes one pass over the columns of text, and over no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from heckmanfa.errors import InputError
from heckmanfa.homes.parquet_columns import kind_of
from heckmanfa.homes.parquet_files import Batches, StoredFile, read_batches
from heckmanfa.ordered import in_order
from heckmanfa.tabular.encoding import Encoding, order_levels, refuse_same_names
from heckmanfa.tabular.kinds import MOST_LEVELS, are_dates, nearly_all
from heckmanfa.tabular.values import as_number, levels_of

__all__ = ["learn_encoding"]

_ROWS_AT_ONCE = 2**13
_USE = "name the features to use in `features`"


class _Text:
    """What is known of a column of text; memory does not grow with its different values."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """rows of each level, in order of appearance"""
        self.too_many = False
        """whether there were more levels, which are not kept"""
        self.declared: dict[str, None] = {}
        """levels in the order in which dictionaries have them"""
        self.given = self.not_numbers = 0
        self.odd = ""
        """the first text that is no number"""

    def count(self, label: str, rows: int) -> None:
        """Count rows of a level."""
        if not self.too_many:
            self.counts[label] = self.counts.get(label, 0) + rows
            self.too_many = len(self.counts) > MOST_LEVELS
        self.given += rows
        if as_number(label) is None and label.lower() != "none":
            self.not_numbers += rows
            self.odd = self.odd or label

    def read(self, array: Any) -> None:
        """Count the levels of some rows."""
        series = array.to_pandas()
        found = levels_of(series)
        for label, rows in zip(found.labels, found.counts().tolist(), strict=True):
            self.count(label, rows)
        if isinstance(series.dtype, pd.CategoricalDtype) and not self.too_many:
            declared = levels_of(pd.Series(series.cat.categories)).labels
            self.declared |= dict.fromkeys(declared)

    def merge(self, other: _Text) -> None:
        """Add what is known of later rows."""
        for label, rows in other.counts.items():
            if not self.too_many:
                self.counts[label] = self.counts.get(label, 0) + rows
                self.too_many = len(self.counts) > MOST_LEVELS
        self.too_many |= other.too_many
        self.declared |= other.declared
        self.given += other.given
        self.not_numbers += other.not_numbers
        self.odd = self.odd or other.odd

    def levels(self, name: str, *, factor: bool) -> tuple[str, ...] | None:
        """Return the levels, the reference first; None where the texts spell numbers.

        Parameters
        ----------
        name : str
            For messages.
        factor : bool
            Whether the levels were declared, so that their order is known.
        """
        if len(self.counts) <= 1:
            what = f"is {next(iter(self.counts))!r} wherever it is not" if self.counts else "is all"
            raise InputError(f"column {name!r} {what} missing, which is no feature; {_USE}")
        if not factor:
            truths = {one.lower() for one in self.counts} <= {"true", "false", "none"}
            if self.not_numbers == 0 or (truths and not self.too_many):
                return None
            if nearly_all(self.given - self.not_numbers, self.given):
                raise InputError(
                    f"column {name!r}: {self.not_numbers} of {self.given} values are not numbers, "
                    f"such as {self.odd[:30]!r}; mend them or mark them missing, or {_USE}"
                )
        if are_dates(list(self.counts)):
            raise InputError(_dates(name))
        if self.too_many or 2 * len(self.counts) > self.given:
            many = f"more than {MOST_LEVELS}" if self.too_many else str(len(self.counts))
            raise InputError(
                f"column {name!r} is text with {many} different values in {self.given} rows, too "
                f"many for a category; {_USE}"
            )
        return order_levels(self.counts, list(self.declared) if factor else None)


def _dates(name: str) -> str:
    return (
        f"column {name!r} holds dates, which no model can use; make numbers of them, such as "
        f"years, or {_USE}"
    )


def learn_encoding(files: Sequence[StoredFile], schema: Any, sources: Sequence[str]) -> Encoding:
    """Decide how columns become features.

    Parameters
    ----------
    files : sequence of StoredFile
    schema : pyarrow.Schema
        Of the first file.
    sources : sequence of str
        The columns.

    Returns
    -------
    Encoding
        It leaves what is missing as NaN.
    """
    from pyarrow import types

    kinds = {name: kind_of(schema.field(name).type) for name in sources}
    for name, kind in kinds.items():
        if kind == "date":
            raise InputError(_dates(name))
        if kind == "other":
            raise InputError(
                f"column {name!r} is {schema.field(name).type}, which no model can use; {_USE}"
            )
    texts = [name for name, kind in kinds.items() if kind == "text"]
    known = _texts(files, texts) if texts else {}
    levels = {}
    for name, text in known.items():
        found = text.levels(name, factor=types.is_dictionary(schema.field(name).type))
        if found is not None:
            levels[name] = found
    encoding = Encoding(
        sources=tuple(sources), levels=levels, left_out={}, missing="drop", means={}, n_missing={}
    )
    refuse_same_names(encoding.columns)
    return encoding


def _texts(files: Sequence[StoredFile], names: Sequence[str]) -> dict[str, _Text]:
    """Read some columns of text once."""
    wanted = Batches(tuple(names), tuple(names), _ROWS_AT_ONCE, head=None, threads=False)
    parts = [(file, group) for file in files for group, rows in enumerate(file.group_rows) if rows]

    def count(part: tuple[StoredFile, int]) -> dict[str, _Text]:
        found = {name: _Text() for name in names}
        for batch in read_batches(*part, wanted):
            for name, text in found.items():
                text.read(batch.column(name))
        return found

    known = {name: _Text() for name in names}
    for found in in_order(count, parts):
        for name, text in found.items():
            known[name].merge(text)
    return known
