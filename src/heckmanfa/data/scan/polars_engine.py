"""Lazy frames of Polars as an engine: the query runs again, in batches, in every pass."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any

from heckmanfa.data.arrow.engines import Engine, tidy_columns, tidy_schema
from heckmanfa.errors import DataError, MissingExtraError, needs_extra
from heckmanfa.text.printable import shown

# So many batches of so many rows are ready before they are asked for.
_BATCH_ROWS, _BATCHES_AHEAD = 2**16, 2
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
        with self.explained():
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


def is_lazy_frame(source: Any) -> bool:
    """Whether a source is a lazy frame of Polars; it is not imported to find out."""
    if not type(source).__module__.startswith("polars"):
        return False
    import polars as pl

    return isinstance(source, pl.LazyFrame)
