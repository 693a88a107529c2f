"""What the columns of an engine's table are, and the levels of their categories.

The rules are those of `columns.kinds`; the schema says how each column is stored. `count_columns`
feeds the batches of all rows to tallies in one pass. `learn_encoding` uses it for scans, which
read only text and numbers that may identify rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Literal

import numpy as np

from heckmanfa.data.columns.column_hints import is_identifier_name
from heckmanfa.data.columns.encoding import Encoding, refuse_same_names
from heckmanfa.data.columns.kinds import (
    Asked,
    ColumnKind,
    ColumnSpec,
    asked_for,
    may_count_rows,
)
from heckmanfa.data.columns.tally import GapTally, NumberTally, Tally
from heckmanfa.data.scan.arrow_columns import (
    floats_of,
    is_category,
    kind_of,
    text_in,
    time_of,
    was_category,
)
from heckmanfa.data.scan.engines import Engine, Piece, can_identify
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted

MOST_SEEN = 2**29
"""most distinct integers, at a byte each, in a column that may count the rows"""

_ROWS_AT_ONCE = 2**13
# How often progress is told: this many times, and not more often than after so many rows.
_STEPS, _ROWS_BETWEEN = 10, 2**16


def stored_column(
    schema: Any, name: str, asked: Asked | None = None, *, named: bool = False
) -> ColumnSpec:
    """Return what the schema of files says about a column; the others are those of `ColumnSpec`."""
    from pyarrow import types

    stored = schema.field(name).type
    kinds: dict[str, Literal["text", "time", "objects"]] = {
        "text": "text",
        "date": "time",
        "other": "objects",
    }
    kind = kind_of(stored)
    is_declared = asked != "number" and kind == "number" and declares_category(schema, name)
    return ColumnSpec(
        name,
        "text" if is_declared else kinds.get(kind, "number"),
        asked,
        boolean=bool(types.is_boolean(stored)),
        time=time_of(stored) if kind == "date" else "dates",
        declared=is_category(stored) and (stored.ordered or was_category(schema.field(name))),
        of_numbers=is_declared,
        named=named,
    )


def declares_category(schema: Any, name: str) -> bool:
    """Whether a schema says that a column is a category, whatever its values are.

    Parquet stores a category of numbers as numbers; only the metadata of pandas says what it was.
    """
    field = schema.field(name)
    is_number = kind_of(field.type) == "number"
    return is_category(field.type) or (is_number and was_category(field))


def plain_texts(schema: Any, columns: Mapping[str, ColumnSpec], names: Iterable[str]) -> list[str]:
    """Return the columns of plain text, which engines can read as levels and a code per row."""
    return [
        name
        for name in names
        if kind_of(schema.field(name).type) == "text" and not columns[name].declared
    ]


def count_columns(
    engine: Engine,
    starts: Mapping[str, Callable[[], Tally]],
    texts: Sequence[str],
    tell: Callable[[str], None] = lambda words: None,
) -> dict[str, Tally]:
    """Count columns in one pass over all rows; refuse columns of text that hold lists or the like.

    ``starts`` makes an empty tally for each column. ``texts`` are columns of plain text, which are
    read with their dictionaries: this compares texts once per level instead of once per row.
    ``tell`` gets a few words about progress.
    """
    if not starts:
        return {}

    def count(piece: Piece) -> tuple[int, dict[str, Tally]]:
        row = piece.start
        tallies = {name: start() for name, start in starts.items()}
        for batch in piece.batches:
            for name, tally in tallies.items():
                _add(tally, batch.column(name), name, row)
            row += batch.num_rows
        return piece.start, tallies

    total = {name: start() for name, start in starts.items()}
    told = 0
    with closing(engine.pieces(tuple(starts), tuple(texts), _ROWS_AT_ONCE)) as pieces:
        for first, found in in_order(count, pieces):
            if first >= told:
                of = "" if engine.n_rows is None else f" of {engine.n_rows:,}"
                tell(f"counting the columns' values, row {first:,}{of}")
                told = first + max((engine.n_rows or 0) // _STEPS, _ROWS_BETWEEN)
            for name, tally in found.items():
                # Both are of the same class: the column's own start made them.
                total[name].merge(tally)  # type: ignore[arg-type]
    return total


def _add(tally: Tally, array: Any, name: str, row: int) -> None:
    if isinstance(tally, NumberTally):
        tally.add(floats_of(array))
    elif isinstance(tally, GapTally):
        tally.add(array.to_pandas())
    else:
        try:
            tally.add(text_in(array), row)
        except TypeError:
            ColumnSpec(name, "objects", "category").kind_of_objects()


def learn_encoding(
    engine: Engine,
    sources: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    named: bool = True,
) -> Encoding:
    """Decide how the columns ``sources`` become features; missing values stay NaN.

    Dictionaries are categories unless the user says otherwise, as in memory. If the user ``named``
    the columns, all numbers are features. Otherwise numbers that identify rows are refused.
    """
    schema = engine.schema
    asked: dict[str, Asked] = {
        name: "category" for name in sources if declares_category(schema, name)
    }
    asked |= _asked_for(sources, categorical, numeric)
    columns = {
        name: stored_column(schema, name, asked.get(name), named=name in categorical)
        for name in sources
    }
    for column in columns.values():
        if column.stored == "objects" and column.asked != "category":
            reason = f"is {schema.field(column.name).type}, which no model can use"
            _refuse(ColumnKind(column.name, "text", reason, can_override=False), named)
        kind = column.kind_of_objects() if column.stored == "objects" else column.kind_by_type()
        if kind is not None:
            _refuse(kind, named)
    texts = [
        name
        for name, column in columns.items()
        if column.stored == "text" or column.asked == "category"
    ]
    plain = [name for name in sources if not named and name not in texts and name not in asked]
    room = _may_be_identifiers(engine, plain)
    seen = {name: np.zeros(n, dtype=bool) for name, n in room.items() if n is not None}
    counted = count_columns(
        engine,
        {
            name: partial(columns[name].start, capped=True, seen=seen.get(name))
            for name in (*texts, *room)
        },
        plain_texts(schema, columns, texts),
    )
    levels = {}
    for name, tally in counted.items():
        assert not isinstance(tally, GapTally)
        kind = columns[name].kind(tally)
        if isinstance(tally, NumberTally):
            # The fit refuses constants, but not identifiers.
            if kind.kind == "identifier":
                _refuse(kind, named)
        elif kind.kind == "constant" and tally.counts and columns[name].asked != "number":
            # As any other constant column: the fit decides (on_collinear).
            levels[name] = tally.levels
        elif not kind.is_feature:
            _refuse(kind, named)
        elif kind.kind == "category":
            levels[name] = tally.levels
    encoding = Encoding.plain(sources, levels)
    refuse_same_names(encoding.columns)
    return encoding


def _asked_for(
    sources: Sequence[str], categorical: Sequence[str], numeric: Sequence[str]
) -> dict[str, Asked]:
    for role, names in (("categorical", categorical), ("numeric", numeric)):
        if isinstance(names, str):
            raise InputError(f"{role} must be a list of columns: write [{quoted(names)}]")
        for name in names:
            if name not in sources:
                raise InputError(f"{role} names {quoted(name)}, which is not among the features")
    return asked_for(categorical, numeric)


def _refuse(kind: ColumnKind, named: bool) -> None:
    """Refuse a column that is not a feature, with the reason that the command line gives.

    ``named`` says whether the user named the features.
    """
    ways = "leave it out of `features`" if named else "name the features to use in `features`"
    if kind.can_override:
        ways += ", or say what it is in `numeric` or `categorical`"
    raise InputError(f"column {quoted(kind.name)} {kind.reason}; {ways}")


def _may_be_identifiers(engine: Engine, names: Sequence[str]) -> dict[str, int | None]:
    """Find numbers that may identify rows, from their names and their ranges.

    For a column that may count the rows, the value is the number of integers to distinguish; it is
    None if only the name suggests an identifier.
    """
    ranges = engine.ranges([name for name in names if can_identify(engine.schema, name)])
    found: dict[str, int | None] = {}
    for name in names:
        low, high, given = ranges.get(name, (0.0, np.inf, 0))
        if may_count_rows(given, low, high) and high < MOST_SEEN:
            found[name] = int(high) + 1
        elif is_identifier_name(name):
            found[name] = None
    return found
