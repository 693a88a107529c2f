"""Queries as engines: lazy frames of Polars and relations of DuckDB run again in every pass.

A relation keeps to its connection, which has one result open at a time and belongs to one thread.
So passes follow one another, and one that was interrupted is closed before the next begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from queue import Empty, Queue
from threading import Event, Thread, get_ident
from typing import Any

from heckmanfa.data.scan.arrow_columns import tidy_columns, tidy_schema
from heckmanfa.data.scan.engines import Engine, explained
from heckmanfa.errors import DataError, MissingExtraError, needs_extra
from heckmanfa.text.printable import shown

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
