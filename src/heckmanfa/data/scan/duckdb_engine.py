"""Relations of DuckDB as an engine: the query runs again, in batches, in every pass.

A relation keeps to its connection, which has one result open at a time and belongs to one thread.
So passes follow one another, and one that was interrupted is closed before the next begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import get_ident
from typing import Any

from heckmanfa.data.arrow.engines import Engine, tidy_columns, tidy_schema
from heckmanfa.errors import needs_extra

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
        with self.explained():
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


def is_relation(source: Any) -> bool:
    """Whether a source is a relation of DuckDB; it is not imported to find out."""
    if type(source).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
        return False
    import duckdb

    return isinstance(source, duckdb.DuckDBPyRelation)
