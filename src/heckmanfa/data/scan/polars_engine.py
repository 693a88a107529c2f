"""Lazy frames of Polars as an engine: the query runs again, in batches, in every pass."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any

from heckmanfa.data.arrow.engines import Engine, tidy_columns, tidy_schema
from heckmanfa.errors import MissingExtraError, needs_extra

_BATCH_ROWS = 2**16
# Steps of a plan whose rows come in the order in which threads finish.
_UNORDERED = re.compile(r"\bJOIN\b|^\s*(?:AGGREGATE|UNIQUE)\[maintain_order: false", re.MULTILINE)


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
        if not hasattr(frame, "collect_batches"):
            raise MissingExtraError(
                "this version of Polars cannot give a lazy frame in batches: "
                "pip install --upgrade 'heckmanfa[polars]'"
            )
        self._frame = frame
        with self.explained():
            types = frame.collect_schema()
            raw = types.to_frame().to_arrow().schema
            self.order_is_stable = _UNORDERED.search(frame.explain()) is None
        self._stored = tidy_columns(raw.names, "the lazy frame")
        # Arrow's type of an Enum says that it is ordered only from Polars 2 on.
        enums = [name for name, kind in types.items() if kind == pl.Enum]
        self.schema = tidy_schema(raw, self._stored, declared=enums)

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of a query of these columns."""
        import polars as pl

        query = self._frame.select([pl.col(self._stored[name]) for name in columns])
        batches = query.collect_batches(
            chunk_size=_BATCH_ROWS, maintain_order=True, engine="streaming"
        )
        for frame in batches:
            for batch in frame.rechunk().to_arrow().to_batches():
                yield batch.rename_columns(list(columns))


def is_lazy_frame(source: Any) -> bool:
    """Whether a source is a lazy frame of Polars; it is not imported to find out."""
    if not type(source).__module__.startswith("polars"):
        return False
    import polars as pl

    return isinstance(source, pl.LazyFrame)
