"""Which columns of Parquet files are numbers and which categories, and the levels of these.

The file's schema decides what is text, by the rules of `tabular.kinds`, as at the command line.
The levels of a category are those of all files, so that one which only a single row group has is
there as well; finding them takes one pass over the columns of text, and over no other but numbers
that may tell rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heckmanfa.data.columns.encoding import Encoding, order_levels, refuse_same_names
from heckmanfa.data.columns.kinds import (
    Kind,
    as_category,
    as_numbers,
    is_identifier_name,
    kind_of_dates,
    kind_of_numbers,
    kind_of_objects,
    kind_of_text,
    may_count,
)
from heckmanfa.data.columns.tally import NumberTally, TextTally
from heckmanfa.data.columns.values import not_numbers
from heckmanfa.data.parquet.parquet_columns import floats_of, kind_of, time_of
from heckmanfa.data.parquet.parquet_files import Batches, StoredFile, read_batches, value_ranges
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

__all__ = ["learn_encoding"]

_ROWS_AT_ONCE = 2**13
# A byte for each row of a column that may count them.
_MOST_MARKS = 2**29
_USE = "name the features to use in `features`"


def learn_encoding(
    files: Sequence[StoredFile],
    schema: Any,
    sources: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    named: bool = True,
) -> Encoding:
    """Decide how columns become features.

    Parameters
    ----------
    files : sequence of StoredFile
    schema : pyarrow.Schema
        Of the first file.
    sources : sequence of str
        The columns.
    categorical, numeric : sequence of str
        Columns for which the user has decided.
    named : bool
        Whether the user named the columns: numbers are features then, and otherwise those that
        tell rows apart are refused.

    Returns
    -------
    Encoding
        It leaves what is missing as NaN.
    """
    from pyarrow import types

    _check_asked(sources, categorical, numeric)
    stored = {name: kind_of(schema.field(name).type) for name in sources}
    for name, kind in stored.items():
        if kind == "date" and name not in categorical:
            _refuse(kind_of_dates(name, time_of(schema.field(name).type)))
        if kind == "other":
            what = f"is {schema.field(name).type}, which no model can use"
            _refuse(Kind(name, "text", what) if name not in categorical else kind_of_objects(name))
    texts = {
        name: types.is_dictionary(schema.field(name).type)
        for name, kind in stored.items()
        if kind == "text" or name in categorical
    }
    plain = [name for name in sources if name not in (*texts, *numeric) and not named]
    suspects = _may_be_identifiers(files, plain)
    levels = {}
    for name, found in _count(files, texts, suspects).items():
        if isinstance(found, NumberTally):
            _refuse(kind_of_numbers(found, name), only="identifier")
            continue
        if name in numeric:
            _refuse(_numbers(found, name))
            continue
        _refuse(_words(found, name, asked=name in categorical))
        levels[name] = order_levels(found.counts, list(found.declared) if texts[name] else None)
    encoding = Encoding(
        sources=tuple(sources), levels=levels, left_out={}, missing="drop", means={}, n_missing={}
    )
    refuse_same_names(encoding.columns)
    return encoding


def _check_asked(
    sources: Sequence[str], categorical: Sequence[str], numeric: Sequence[str]
) -> None:
    for role, names in (("categorical", categorical), ("numeric", numeric)):
        if isinstance(names, str):
            raise InputError(f"{role} must be a list of columns: write [{quoted(names)}]")
        for name in names:
            if name not in sources:
                raise InputError(f"{role} names {quoted(name)}, which is not among the features")
    both = [one for one in categorical if one in numeric]
    if both:
        raise InputError(f"{quoted(both[0])} is in both categorical and numeric; choose one")


def _refuse(kind: Kind, *, only: str | None = None) -> None:
    """Refuse a column that is no feature, with the reason that the command line gives."""
    if kind.kind in ("number", "category") or only not in (None, kind.kind):
        return
    ways = _USE
    if kind.kind == "identifier" or (kind.kind == "text" and "text" in kind.reason):
        ways += ", or say what it is in `numeric` or `categorical`"
    raise InputError(f"column {quoted(kind.name)} {kind.reason}; {ways}")


def _numbers(text: TextTally, name: str) -> Kind:
    """Take text as numbers because the user says so."""
    spread, numbers = text.as_numbers()
    if numbers.n_bad:
        raise InputError(not_numbers(numbers, name, asked=True))
    return as_numbers(spread, name)


def _words(text: TextTally, name: str, *, asked: bool) -> Kind:
    labels = list(text.counts)
    if not asked:
        return kind_of_text(labels, text.given, None, None, name, more=text.more)
    if text.more:
        raise InputError(
            f"categorical: column {quoted(name)} has more than {len(labels)} levels, too many for "
            "a category"
        )
    return as_category(labels, name)


def _may_be_identifiers(files: Sequence[StoredFile], names: Sequence[str]) -> dict[str, int | None]:
    """Find numbers that may tell rows apart, from their names and the files' own figures.

    Returns
    -------
    dict of str to int or None
        How many whole numbers from 0 have to be told apart where a column may count the rows; None
        where only its name says that it may be an identifier.
    """
    ranges = value_ranges(files, names)
    found: dict[str, int | None] = {}
    for name in names:
        low, high, given = ranges.get(name, (0.0, np.inf, 0))
        if may_count(given, low, high) and high < _MOST_MARKS:
            found[name] = int(high) + 1
        elif is_identifier_name(name):
            found[name] = None
    return found


def _count(
    files: Sequence[StoredFile], texts: dict[str, bool], numbers: dict[str, int | None]
) -> dict[str, TextTally | NumberTally]:
    """Read some columns once.

    Parameters
    ----------
    files : sequence of StoredFile
    texts : dict of str to bool
        Columns to count as text, and whether the files declare their levels.
    numbers : dict of str to int or None
        Columns to count as numbers, as `_may_be_identifiers` says.
    """
    names = (*texts, *numbers)
    if not names:
        return {}
    wanted = Batches(names, tuple(texts), _ROWS_AT_ONCE, head=None, threads=False)
    parts = [(file, group) for file in files for group, rows in enumerate(file.group_rows) if rows]
    seen = {name: np.zeros(room, dtype=bool) for name, room in numbers.items() if room is not None}

    def start() -> dict[str, TextTally | NumberTally]:
        found: dict[str, TextTally | NumberTally] = {
            name: TextTally(has_declared=declared) for name, declared in texts.items()
        }
        for name in numbers:
            told_apart = is_identifier_name(name)
            found[name] = NumberTally(told_apart=told_apart, marks=seen.get(name))
        return found

    def count(part: tuple[StoredFile, int]) -> dict[str, TextTally | NumberTally]:
        found = start()
        row = 0
        for batch in read_batches(*part, wanted):
            for name, tally in found.items():
                if isinstance(tally, NumberTally):
                    tally.add(floats_of(batch.column(name)))
                else:
                    tally.add(batch.column(name).to_pandas(date_as_object=False), row)
            row += batch.num_rows
        return found

    known = start()
    for found in in_order(count, parts):
        for name, tally in found.items():
            # Both are of one kind, as the column's way of counting says.
            known[name].merge(tally)  # type: ignore[arg-type]
    return known
