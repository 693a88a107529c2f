"""Engines: what gives the rows of a table as record batches, as often as it is asked.

An engine is a set of files, a dataset, or a query that somebody else runs. Every pass asks it
again for the columns that it needs, and holds a few batches at a time. All engines have one
interface here, so levels are learned and rows are read in one way. Lazy frames of Polars and
relations of DuckDB are here, too.

A relation keeps to its connection, which has one result open at a time and belongs to one thread.
So passes follow one another, and one that was interrupted is closed before the next begins.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from queue import Empty, Queue
from threading import Event, Thread, get_ident
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.scan.arrow_columns import floats_of, tidy_columns, tidy_schema
from heckmanfa.errors import DataError, HeckmanfaError, MissingExtraError, needs_extra
from heckmanfa.text.printable import shown

Range = tuple[float, float, int]
"""smallest number, largest number, and how many there are"""
NO_RANGE: Range = (np.inf, -np.inf, 0)


# A part has a constant number of rows, a power of two: at most this many, and so few that its
# numbers take at most these bytes.
_PART_ROWS, _PART_BYTES = 2**16, 2**25
_LEAST_PART_ROWS = 2**8
# User and password in an address, and what follows its question mark. A match begins where a word
# does, so that no text is read again from each of its characters.
_SECRETS = re.compile(r"(?<=://)[^\s/@'\"]+(?=@)|(?<![^\s/@'\"]):*[^\s/@:'\"]+:[^\s/@'\"]+(?=@)")
# Texts of options that are this short do not identify anybody.
_SECRET_LENGTH = 4
_PARAMETERS = re.compile(r"(?<=\?)[^\s'\"]+")


class Piece(NamedTuple):
    """Consecutive rows that a thread may read while others read other pieces."""

    number: int
    """its position among all pieces"""
    start: int
    """its first row, counted over all rows"""
    batches: Generator[Any]


class Engine(ABC):
    """A table that gives its rows as record batches in every pass."""

    schema: Any
    """pyarrow.Schema, under tidy names"""
    n_rows: int | None = None
    """number of rows; None until a pass has read all of them"""
    order_is_stable: bool = True
    """whether every pass gets the rows in the same order, so results have the same bits"""
    local_files: Sequence[str] = ()
    """files of this machine that every pass reads, as far as the engine knows them"""
    steady: str = "wait until nobody writes to it, and scan again"
    """what to do if two passes read different rows"""

    @property
    @abstractmethod
    def described(self) -> str:
        """What the rows are from: "12 Parquet files", "a DuckDB relation"."""

    @abstractmethod
    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield record batches of any size; `batches` says what the arguments are."""

    def batches(self, columns: Sequence[str], levels: Sequence[str] = ()) -> Generator[Any]:
        """Yield all rows as record batches of any size, with some columns, in that order.

        Columns have tidy names. Of ``levels``, an engine may return distinct values and a code per
        row instead of text. A pass that ends at another row than earlier ones is refused.
        """
        count = 0
        with explained(self.described), closing(self.read(columns, levels)) as stream:
            for batch in stream:
                count += batch.num_rows
                yield batch
            self.check_count(count)

    def pieces(
        self,
        columns: Sequence[str],
        levels: Sequence[str],
        block_rows: int,
        rows: int | None = None,
        heads: Mapping[int, int] | None = None,
    ) -> Generator[Piece]:
        """Yield all rows in pieces, whose batches but the last have multiples of ``block_rows``.

        All pieces but the last have ``rows`` rows. ``heads`` are the pieces to read, by number, and
        how many of the first rows of each; None reads all. The stream is not read beyond them.
        """
        rows = rows or max(part_rows(len(columns)), block_rows)
        left = None if heads is None else sum(head > 0 for head in heads.values())
        with closing(self.batches(columns, levels)) as stream:
            for number, part in enumerate(cut_parts(stream, rows)):
                if heads is not None and left is not None:
                    if not heads.get(number, 0):
                        continue
                    left -= 1
                    part = next(cut_parts(part, heads[number]))
                yield Piece(number, number * rows, whole_blocks(iter(part), block_rows))
                if left == 0:
                    return
        if left:
            raise DataError(
                f"{self.described} gave fewer rows in this pass than in an earlier one, and a fit "
                f"needs the same rows in every pass: {self.steady}"
            )

    def count(self) -> int:
        """Return the number of rows, which takes a pass if it is not known."""
        if self.n_rows is None:
            with closing(self.batches(self.schema.names[:1])) as stream:
                for _ in stream:
                    pass
        assert self.n_rows is not None
        return self.n_rows

    def load(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows as tables of Arrow, at least one."""
        import pyarrow as pa

        table = None
        with closing(self.batches(columns)) as stream:
            for batch in stream:
                table = pa.Table.from_batches([batch])
                yield table
        if table is None:
            yield self.schema.empty_table().select(columns)

    def sample(self, columns: Sequence[str], rows: int) -> list[Any]:
        """Return about so many rows, spread over the whole table, as tables of Arrow."""
        import pyarrow as pa

        share = min(rows / self.count(), 1.0)
        parts: list[Any] = []
        with closing(self.batches(columns)) as stream:
            for batch in stream:
                taken = min(int(share * batch.num_rows) + 1, batch.num_rows)
                # A copy: a slice would keep the whole batch.
                parts.append(pa.Table.from_batches([batch]).take(list(range(taken))))
        return parts

    def ranges(self, names: Sequence[str]) -> dict[str, Range]:
        """Return the range of numbers that may identify rows; this may take a pass.

        Left out are columns with fewer integers between their ends than half of their values.
        """
        if not names:
            return {}
        ranges: dict[str, Range] = dict.fromkeys(names, NO_RANGE)
        with closing(self.batches(names)) as stream:
            for batch in stream:
                for name in list(ranges):
                    extent = _range(floats_of(batch.column(name)))
                    if extent is None:
                        del ranges[name]
                    else:
                        ranges[name] = joined_range(ranges[name], extent)
        return {name: extent for name, extent in ranges.items() if extent[2]}

    def check_count(self, count: int) -> None:
        """Refuse a number of rows that earlier passes did not have."""
        if self.n_rows is None:
            self.n_rows = count
        elif self.n_rows != count:
            raise DataError(
                f"{self.described} gave {count:,} rows in this pass and {self.n_rows:,} in an "
                f"earlier one, and a fit needs the same rows in every pass: {self.steady}"
            )


@contextmanager
def explained(
    name: str, options: Mapping[str, Any] | None = None, advice: str = ""
) -> Iterator[None]:
    """Turn any failure to read something into an error that names it and shows no secret.

    ``options`` are those of a file system; ``advice`` ends the message.
    """
    try:
        yield
    except (HeckmanfaError, MemoryError):
        raise
    # What an engine runs is the user's, and a store can fail in any way.
    except Exception as error:
        said, hidden = without_secrets(str(error), _secrets(options))
        failure = DataError(
            f"{shown(name)} cannot be read: {type(error).__name__}: {shown(said, 200)}{advice}"
        )
        raise failure from (None if hidden or options else error)


def _secrets(options: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the texts inside options, at any depth."""
    for value in (options or {}).values():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) >= _SECRET_LENGTH:
            yield value


def without_secrets(text: str, secrets: Iterable[str] = ()) -> tuple[str, bool]:
    """Return a text without passwords in addresses and other secrets, and whether it had any."""
    clean = _PARAMETERS.sub(lambda match: "…" if "=" in match[0] else match[0], text)
    clean = _SECRETS.sub("…", clean)
    for secret in secrets:
        clean = clean.replace(secret, "…")
    return clean, clean != text


def part_rows(columns: int) -> int:
    """Number of rows per part of a stream, which depends only on the number of columns."""
    fitting = int(2 ** (max(_PART_BYTES // (8 * (columns + 4)), 1).bit_length() - 1))
    return max(min(fitting, _PART_ROWS), _LEAST_PART_ROWS)


def cut_parts(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    """Cut a stream into lists of batches with ``rows`` rows each, except for the last.

    Nothing is copied, and the size of the stream's own batches does not matter.
    """
    part: list[Any] = []
    count = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            taken = batch.slice(start, rows - count)
            part.append(taken)
            start, count = start + taken.num_rows, count + taken.num_rows
            if count == rows:
                yield part
                part, count = [], 0
    if part:
        yield part


def whole_blocks(batches: Iterator[Any], block_rows: int) -> Generator[Any]:
    """Join batches until each but the last has a multiple of ``block_rows`` rows.

    Readers may cut a batch short, which must not move the boundaries of blocks.
    """
    import pyarrow as pa

    rest: list[Any] = []
    for batch in batches:
        rest.append(batch)
        count = sum(part.num_rows for part in rest)
        whole = count - count % block_rows
        if whole == 0:
            continue
        together = batch if len(rest) == 1 else pa.concat_batches(rest)
        yield together.slice(0, whole)
        rest = [together.slice(whole)] if whole < count else []
    if rest:
        yield pa.concat_batches(rest)


def joined_range(first: Range | None, second: Range) -> Range:
    """Return the range of the rows of two parts."""
    low, high, n_given = first or NO_RANGE
    return min(low, second[0]), max(high, second[1]), n_given + second[2]


def _range(values: Any) -> Range | None:
    """Return the ends and the count of a column in a batch; None if it cannot identify rows."""
    known = values[~np.isnan(values)]
    if not len(known):
        return NO_RANGE
    low, high = float(known.min()), float(known.max())
    if high - low + 1 < len(known) / 2 or known[0] != np.floor(known[0]):
        return None
    return low, high, len(known)


_BATCH_ROWS = 2**16
# The name of the relation inside the queries about it.
_NAME = "heckmanfa_rows"
_EXPLAIN = "EXPLAIN (FORMAT JSON) SELECT * FROM heckmanfa_rows"
# Steps of a plan that keep the order of their rows; a sort does not decide between equal rows.
_ORDERED = frozenset(
    [
        "ARROW_SCAN",
        "ARROW_SCAN_DUMB",
        "COLUMN_DATA_SCAN",
        "CSV_SCANNER",
        "DUMMY_SCAN",
        "EXPLAIN",
        "FILTER",
        "PANDAS_SCAN",
        "PARQUET_SCAN",
        "PROJECTION",
        "RANGE",
        "READ_CSV",
        "READ_CSV_AUTO",
        "READ_PARQUET",
        "SEQ_SCAN",
        "TABLE_SCAN",
        "UNION",
    ]
)


class DuckDBEngine(Engine):
    """A `duckdb.DuckDBPyRelation`."""

    described = "a DuckDB relation"
    steady = (
        "stop writing to its tables, add ORDER BY where it takes some of the rows, or write it to "
        "a file with relation.to_parquet and scan that"
    )

    def __init__(self, relation: Any) -> None:
        with needs_extra("relations of DuckDB need pyarrow", "duckdb"):
            import pyarrow as pa
        self._relation = relation
        with explained(self.described):
            _close_left_open()
            raw = relation.limit(0).to_arrow_table().schema
            self.order_is_stable = _keeps_order(relation)
        enums = [field.name for field in raw if pa.types.is_dictionary(field.type)]
        self._stored = tidy_columns(raw.names, "the relation")
        self.schema = tidy_schema(raw, self._stored, declared=enums)

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of a query of these columns."""
        wanted = ", ".join(_quoted(self._stored[name]) for name in columns)
        query = self._relation.project(wanted)
        # The older of the two names is deprecated.
        with _result(getattr(query, "to_arrow_reader", None) or query.fetch_record_batch) as reader:
            for batch in reader:
                yield batch.rename_columns(list(columns))


# Results that a thread has open: at most one, since its next pass closes the last one.
_open: dict[int, Any] = {}


@contextmanager
def _result(open_reader: Callable[[int], Any]) -> Iterator[Any]:
    """Open a result; one that an interrupted pass of this thread has left open is closed first."""
    _close_left_open()
    reader = open_reader(_BATCH_ROWS)
    _open[get_ident()] = reader
    with closing(reader):
        yield reader
    if _open.get(get_ident()) is reader:
        del _open[get_ident()]


def _close_left_open() -> None:
    left = _open.pop(get_ident(), None)
    if left is not None:
        left.close()


def _keeps_order(relation: Any) -> bool:
    """Whether every run of a relation gives its rows in the same order."""
    setting = relation.query(_NAME, "SELECT current_setting('preserve_insertion_order')")
    if not setting.fetchall()[0][0]:
        return False
    plan = relation.query(_NAME, _EXPLAIN)
    if plan is None:
        # Before DuckDB 2, relations do not explain their plans.
        return False
    try:
        return all(name in _ORDERED for name in _steps(json.loads(plan.fetchall()[0][1])))
    except (IndexError, KeyError, TypeError, ValueError):
        # A plan of another form promises nothing.
        return False


def _steps(plan: list[dict[str, Any]]) -> Iterator[str]:
    for step in plan:
        yield str(step["name"]).strip()
        yield from _steps(step["children"])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# So many batches of so many rows are ready before they are asked for.
_BATCHES_AHEAD = 2
# Steps of a plan whose rows come in the order in which threads finish.
_UNORDERED = re.compile(
    r"\bJOIN\b|^[ \t]*(?:AGGREGATE|UNIQUE)\[maintain_order: false", re.MULTILINE
)


class PolarsEngine(Engine):
    """A `polars.LazyFrame`, run by the streaming engine of Polars."""

    described = "a Polars LazyFrame"
    steady = (
        "stop writing to what it reads, sort its rows before it takes some of them, or write it to "
        "a file with sink_parquet and scan that"
    )

    def __init__(self, frame: Any) -> None:
        with needs_extra("lazy frames need pyarrow", "polars"):
            import polars as pl
            import pyarrow  # noqa: F401
        if not hasattr(frame, "sink_batches"):
            raise MissingExtraError(
                "this version of Polars cannot give a lazy frame in batches: "
                "pip install --upgrade 'heckmanfa[polars]'"
            )
        self._frame = frame
        with explained(self.described):
            types = frame.collect_schema()
            raw = types.to_frame().to_arrow().schema
            self.order_is_stable = _UNORDERED.search(frame.explain()) is None
        stored = tidy_columns(raw.names, "the lazy frame")
        self._places = {name: raw.names.index(own) for name, own in stored.items()}
        # Arrow's type of an Enum says that it is ordered only from Polars 2 on.
        enums = [name for name, kind in types.items() if kind == pl.Enum]
        self.schema = tidy_schema(raw, stored, declared=enums)

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of a query of these columns."""
        import polars as pl

        # By position: as a name, ^a$ would be a pattern, and * all columns.
        query = self._frame.select([pl.nth(self._places[name]) for name in columns])
        with closing(_batches(query)) as frames:
            for frame in frames:
                for batch in frame.rechunk().to_arrow().to_batches():
                    yield batch.rename_columns(list(columns))


def _batches(query: Any) -> Generator[Any]:
    """Yield the rows of a query in data frames.

    ``collect_batches`` would do the same, but ends early and without an error where Polars panics,
    as it does if a file was replaced after the lazy frame read its metadata.
    """
    ready: Queue[Any] = Queue(_BATCHES_AHEAD)
    stop = Event()

    def give(frame: Any) -> bool:
        if not stop.is_set():
            ready.put(frame)
        return stop.is_set()

    def run() -> None:
        ended: BaseException | None = None
        try:
            query.sink_batches(
                give, chunk_size=_BATCH_ROWS, maintain_order=True, engine="streaming"
            )
        # A panic is not an Exception. Whatever it is, the thread that asks for the rows gets it.
        except BaseException as error:
            ended = error
        give(_End(ended))

    Thread(target=run, name="heckmanfa-polars", daemon=True).start()
    try:
        while not isinstance(frame := ready.get(), _End):
            yield frame
        frame.check()
    finally:
        stop.set()
        for _ in _left(ready):
            pass  # the query may be waiting for room


class _End:
    """The end of a query: what it raised, if anything."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def check(self) -> None:
        """Raise what the query raised."""
        import polars as pl

        if isinstance(self._error, pl.exceptions.PanicException):
            raise DataError(
                f"Polars broke off while it read a lazy frame ({shown(self._error, 200)}): the "
                "files may have changed since the frame was made. Make it again, and scan again"
            ) from self._error
        if self._error is not None:
            raise self._error


def _left(ready: Queue[Any]) -> Iterator[Any]:
    while True:
        try:
            yield ready.get_nowait()
        except Empty:
            return
