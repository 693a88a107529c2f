"""An encoding learned from rows that are not in memory, by one pass over them.

What each column is is decided by the rules of `kinds`, from counts of all rows. A sample of the
rows, spread over the files, says which columns need no counting: text that tells rows apart, and
dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from heckmanfa.data.columns.encoding import Encoding, order_levels
from heckmanfa.data.columns.kinds import (
    Kind,
    as_category,
    as_numbers,
    decide_kinds,
    is_identifier_name,
    kind_of_dates,
    kind_of_numbers,
    kind_of_objects,
    kind_of_text,
)
from heckmanfa.data.columns.tally import MOST_LABELS, GapTally, NumberTally, Tally, TextTally
from heckmanfa.data.columns.values import infinite_values, not_numbers, times_not_numbers
from heckmanfa.data.parquet.parquet_columns import floats_of, kind_of, time_of
from heckmanfa.data.parquet.parquet_files import Batches, StoredFile, arrow, read_batches
from heckmanfa.data.rows import Mask
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.tables.stored import StoredTable
from heckmanfa.text.printable import quoted

__all__ = ["Learned", "learn_streamed"]

SAMPLE_ROWS = 200_000
_SAMPLE_GROUPS = 256
# Comparing texts takes long, and so many say as much.
_SAMPLE_TEXTS = 20_000
_ROWS_AT_ONCE = 2**13
_STEPS = 10
_FIRST = 100
# Whole numbers that count the rows take at most so many values for each row.
_ROOM = 1 / 0.95
# A byte for each row of a column that may count them; beyond, the sample has to do.
_MOST_MARKS = 2**29


class _Counting(NamedTuple):
    """How to count a column."""

    what: Literal["numbers", "text", "gaps"]
    told_apart: bool = False
    marks: Mask | None = None
    has_declared: bool = False

    def start(self) -> Tally:
        if self.what == "gaps":
            return GapTally()
        numbers = NumberTally(told_apart=self.told_apart, marks=self.marks)
        if self.what == "numbers":
            return numbers
        return TextTally(numbers, has_declared=self.has_declared)


@dataclass(frozen=True)
class Learned:
    """What a pass over all rows has found."""

    encoding: Encoding
    binary: frozenset[str]
    """features that hold only 0 and 1"""
    roles: dict[str, Tally]
    """what was counted of columns that are no features"""


def learn_streamed(
    table: StoredTable,
    features: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    missing: str = "drop",
    roles: Sequence[str] = (),
    groups: Sequence[str] = (),
    tell: Callable[[str], None] = lambda words: None,
) -> Learned:
    """Learn what `Encoding.learn` would from the same rows in memory.

    Parameters
    ----------
    table : StoredTable
    features : sequence of str
        Columns to use.
    categorical, numeric : sequence of str
        Columns for which the user has decided; those not among ``features`` do nothing.
    missing : {"drop", "mean"}
    roles, groups : sequence of str
        Other columns to count in the same pass; of groups only what is missing.
    tell : callable
        Told in a few words how far it has come.

    Returns
    -------
    Learned
    """
    both = [one for one in categorical if one in numeric]
    if both:
        raise InputError(f"{quoted(both[0])} is in both --categorical and --numeric; choose one")
    known = {name: kind for name in features if (kind := _by_type(table, name)) is not None}
    known = {name: kind for name, kind in known.items() if name not in categorical}
    for name in known:
        if name in numeric:
            stored = table.schema.field(name).type
            if kind_of(stored) == "date":
                raise InputError(times_not_numbers(name, time_of(stored)))
            raise InputError(f"column {quoted(name)} holds lists or other objects, not numbers")
    open_ = [name for name in features if name not in known]
    sample = _sample(table, open_) if open_ else pd.DataFrame()
    asked = {*categorical, *numeric}
    known |= _settled(sample[[name for name in open_ if name not in asked]])
    ways = {
        name: _way(table, name, sample[name], categorical) for name in open_ if name not in known
    }
    ways |= {name: _Counting("text" if _is_text(table, name) else "numbers") for name in roles}
    ways |= {name: _Counting("gaps") for name in groups}
    counted = _count(table, ways, tell) if ways else {}
    for name in ways:
        if name in features:
            known[name] = _decide(table, name, counted[name], categorical, numeric)
    encoding = Encoding.of_kinds(
        {name: known[name] for name in features}, lambda name: _levels(table, name, counted[name])
    )
    return Learned(
        encoding=_filled(encoding, counted, missing),
        binary=frozenset(_binary(encoding, counted, missing)),
        roles={name: counted[name] for name in (*roles, *groups)},
    )


def _is_text(table: StoredTable, name: str) -> bool:
    return kind_of(table.schema.field(name).type) == "text"


def _is_declared(table: StoredTable, name: str) -> bool:
    """Whether the files declare the levels of a column."""
    from pyarrow import types

    return bool(types.is_dictionary(table.schema.field(name).type))


def _by_type(table: StoredTable, name: str) -> Kind | None:
    """What a column is where its type alone says so."""
    kind = kind_of(table.schema.field(name).type)
    if kind == "date":
        return kind_of_dates(name, time_of(table.schema.field(name).type))
    return kind_of_objects(name) if kind == "other" else None


# The sample. --------------------------------------------------------------------------------------


def _sample(table: StoredTable, names: Sequence[str]) -> pd.DataFrame:
    """Read the first rows of row groups that are spread over all files."""
    pa, _ = arrow()
    groups = [(file, group, rows) for file, group, rows, _ in _parts(table)]
    groups = groups[:: -(-len(groups) // _SAMPLE_GROUPS)]
    share = min(SAMPLE_ROWS / sum(rows for _, _, rows in groups), 1.0)
    batches: list[Any] = []
    for file, group, rows in groups:
        wanted = Batches(tuple(names), (), 1, max(int(share * rows), 1), threads=True)
        batches += [pa.Table.from_batches([one]) for one in read_batches(file, group, wanted)]
    whole = pa.concat_tables([_plain(one) for one in batches], promote_options="permissive")
    frame: pd.DataFrame = whole.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame


def _plain(table: Any) -> Any:
    """Take declared levels for text, which any file's goes with."""
    from pyarrow import types

    for place, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            values = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, values)
    return table


def _settled(sample: pd.DataFrame) -> dict[str, Kind]:
    """Columns of which a sample says enough: text that tells rows apart, and dates in words."""
    found = {}
    sample = sample.iloc[:: max(len(sample) // _SAMPLE_TEXTS, 1)]
    for name in sample.columns:
        if pd.api.types.is_numeric_dtype(sample[name]):
            continue
        try:
            kind = decide_kinds(sample[[name]])[str(name)]
        # Where a few values are no numbers, the pass over all rows says which.
        except InputError:
            continue
        is_text = kind.kind == "identifier" and "differs" in kind.reason
        if is_text or kind == kind_of_dates(str(name)):
            found[str(name)] = kind
    return found


def _way(
    table: StoredTable, name: str, sample: pd.Series[Any], categorical: Sequence[str]
) -> _Counting:
    as_text = name in categorical or _is_text(table, name)
    marks = None
    room = int(table.n_rows * _ROOM) + 2
    if room <= _MOST_MARKS and _may_count(sample, room):
        marks = np.zeros(room, dtype=bool)
    return _Counting(
        "text" if as_text else "numbers",
        is_identifier_name(name),
        marks,
        has_declared=_is_declared(table, name),
    )


def _may_count(sample: pd.Series[Any], room: int) -> bool:
    """Whether a column may count the rows: whole numbers that hardly repeat."""
    if pd.to_numeric(sample.dropna().iloc[:_FIRST], errors="coerce").isna().any():
        return False
    values = pd.to_numeric(sample, errors="coerce").dropna().to_numpy(dtype=np.float64)
    if not len(values) or values.min() < 0 or values.max() >= room:
        return False
    return bool(np.all(values == np.floor(values))) and len(np.unique(values)) > len(values) / 2


# The pass. ----------------------------------------------------------------------------------------


def _parts(table: StoredTable) -> Iterator[tuple[StoredFile, int, int, int]]:
    """Yield each row group that has rows: its file, number, rows, and first row in the data."""
    start = 0
    for file in table.files:
        for group, rows in enumerate(file.group_rows):
            if rows:
                yield file, group, rows, start
            start += rows


def _count(
    table: StoredTable, ways: dict[str, _Counting], tell: Callable[[str], None]
) -> dict[str, Tally]:
    """Count all columns in one pass."""
    # Read with their dictionaries, texts are compared once a level and not once a row.
    texts = [
        name
        for name, way in ways.items()
        if way.what == "text" and _is_text(table, name) and not way.has_declared
    ]
    wanted = Batches(tuple(ways), tuple(texts), _ROWS_AT_ONCE, None, threads=False)

    def count(part: tuple[StoredFile, int, int, int]) -> dict[str, Tally]:
        file, group, _, start = part
        found = {name: way.start() for name, way in ways.items()}
        for batch in read_batches(file, group, wanted):
            for name, tally in found.items():
                _add(tally, batch.column(name), name, start)
            start += batch.num_rows
        return found

    parts = list(_parts(table))
    total = {name: way.start() for name, way in ways.items()}
    for place, found in enumerate(in_order(count, parts)):
        if place % max(len(parts) // _STEPS, 1) == 0:
            tell(f"looking at the columns, row {parts[place][3]:,} of {table.n_rows:,}")
        for name, tally in found.items():
            # Both are of one kind, as the column's way of counting says.
            total[name].merge(tally)  # type: ignore[arg-type]
    return total


def _add(tally: Tally, array: Any, name: str, start: int) -> None:
    if isinstance(tally, NumberTally):
        tally.add(floats_of(array))
        return
    if isinstance(tally, GapTally):
        tally.add(array.to_pandas())
        return
    try:
        tally.add(array.to_pandas(date_as_object=False), start)
    except TypeError as error:
        raise InputError(
            f"column {quoted(name)} holds lists or other objects, which cannot be a category"
        ) from error


# What was found. ----------------------------------------------------------------------------------


def _decide(
    table: StoredTable,
    name: str,
    tally: Tally,
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> Kind:
    """Decide what a column is from what was counted of it."""
    from pyarrow import types

    if isinstance(tally, NumberTally):
        if name in numeric:
            return as_numbers(tally, name)
        truths = types.is_boolean(table.schema.field(name).type)
        return kind_of_numbers(tally, name, truths=truths)
    assert isinstance(tally, TextTally)
    labels = list(tally.counts)
    if name in categorical:
        if tally.more:
            raise InputError(
                f"--categorical: column {quoted(name)} has more than {MOST_LABELS} levels, too "
                "many for "
                "a category"
            )
        return as_category(labels, name)
    if name in numeric:
        spread, numbers = tally.as_numbers()
        if numbers.n_bad:
            raise InputError(not_numbers(numbers, name, asked=True))
        return as_numbers(spread, name)
    return kind_of_text(labels, tally.given, None, None, name, more=tally.more)


def _levels(table: StoredTable, name: str, tally: Tally) -> tuple[str, ...]:
    assert isinstance(tally, TextTally)
    declared = list(tally.declared) if _is_declared(table, name) else None
    return order_levels(tally.counts, declared)


def _filled(encoding: Encoding, counted: dict[str, Tally], missing: str) -> Encoding:
    means: dict[str, float] = {}
    gaps: dict[str, int] = {}
    for name in encoding.sources:
        tally = counted[name]
        if name in encoding.levels:
            assert isinstance(tally, TextTally)
            for level, column in zip(encoding.levels[name][1:], encoding.groups[name], strict=True):
                means[column] = tally.counts[level] / tally.given
        else:
            tally = _numbers(tally)
            if tally.infinite:
                raise MissingValueError(infinite_values(name))
            means[name] = tally.mean
        if tally.gaps:
            gaps[name] = tally.gaps
    return replace(encoding, missing=missing, means=means, n_missing=gaps)


def _numbers(tally: Tally) -> NumberTally:
    if isinstance(tally, TextTally):
        return tally.as_numbers()[0]
    assert isinstance(tally, NumberTally)
    return tally


def _binary(encoding: Encoding, counted: dict[str, Tally], missing: str) -> Iterator[str]:
    """Yield the features that hold only 0 and 1."""
    for name in encoding.sources:
        filled = missing == "mean" and counted[name].gaps > 0
        if name in encoding.levels:
            yield from () if filled else encoding.groups[name]
        elif not filled and _numbers(counted[name]).binary:
            yield name
