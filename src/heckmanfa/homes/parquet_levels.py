"""Which columns of Parquet files are numbers and which categories, and the levels of these.

The levels of a category are those of all files, so that one which only a single row group has is
there as well; finding them takes one pass over the columns of text, and over no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heckmanfa.errors import InputError
from heckmanfa.homes.parquet_columns import kind_of
from heckmanfa.homes.parquet_files import Batches, StoredFile, read_batches
from heckmanfa.ordered import in_order
from heckmanfa.tabular.encoding import Encoding, order_levels, refuse_same_names
from heckmanfa.tabular.kinds import MOST_LEVELS, are_dates, nearly_all
from heckmanfa.tabular.tally import TextTally

__all__ = ["learn_encoding"]

_ROWS_AT_ONCE = 2**13
_USE = "name the features to use in `features`"


def _levels(name: str, text: TextTally, *, factor: bool) -> tuple[str, ...] | None:
    """Return the levels of a column, the reference first; None where its texts spell numbers.

    Parameters
    ----------
    name : str
        For messages.
    text : TextTally
    factor : bool
        Whether the levels were declared, so that their order is known.
    """
    counts, given = text.counts, text.given
    if len(counts) <= 1:
        what = f"is {next(iter(counts))!r} wherever it is not" if counts else "is all"
        raise InputError(f"column {name!r} {what} missing, which is no feature; {_USE}")
    if not factor:
        odd = text.as_numbers()[1]
        if odd.n_bad == 0:
            return None
        if nearly_all(given - odd.n_bad, given):
            raise InputError(
                f"column {name!r}: {odd.n_bad} of {given} values are not numbers, such as "
                f"{next(iter(odd.bad.values()))[:30]!r}; mend them or mark them missing, or {_USE}"
            )
    if are_dates(list(counts)):
        raise InputError(_dates(name))
    too_many = len(counts) > MOST_LEVELS
    if too_many or 2 * len(counts) > given:
        many = f"more than {MOST_LEVELS}" if too_many else str(len(counts))
        raise InputError(
            f"column {name!r} is text with {many} different values in {given} rows, too many for "
            f"a category; {_USE}"
        )
    return order_levels(counts, list(text.declared) if factor else None)


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
    factors = {name: types.is_dictionary(schema.field(name).type) for name in texts}
    known = _texts(files, factors) if texts else {}
    levels = {}
    for name, text in known.items():
        found = _levels(name, text, factor=factors[name])
        if found is not None:
            levels[name] = found
    encoding = Encoding(
        sources=tuple(sources), levels=levels, left_out={}, missing="drop", means={}, n_missing={}
    )
    refuse_same_names(encoding.columns)
    return encoding


def _texts(files: Sequence[StoredFile], factors: dict[str, bool]) -> dict[str, TextTally]:
    """Read some columns of text once; of each it is said whether its levels are declared."""
    names = tuple(factors)
    wanted = Batches(names, names, _ROWS_AT_ONCE, head=None, threads=False)
    parts = [(file, group) for file in files for group, rows in enumerate(file.group_rows) if rows]

    def start() -> dict[str, TextTally]:
        return {name: TextTally(has_declared=factor) for name, factor in factors.items()}

    def count(part: tuple[StoredFile, int]) -> dict[str, TextTally]:
        found = start()
        row = 0
        for batch in read_batches(*part, wanted):
            for name, text in found.items():
                text.add(batch.column(name).to_pandas(), row)
            row += batch.num_rows
        return found

    known = start()
    for found in in_order(count, parts):
        for name, text in found.items():
            known[name].merge(text)
    return known
