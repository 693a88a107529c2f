"""A model and rows to predict for, which come a batch at a time from whatever `scan` takes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import narwhals as nw
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from heckmanfa.analysis.predicted_classes import class_type
from heckmanfa.analysis.prediction_request import Request, check_model, check_request, has_range
from heckmanfa.analysis.predictions import EXTRAPOLATES, Predicted, predict_table
from heckmanfa.data.arrays import is_dask
from heckmanfa.data.arrow.engines import Engine
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.missing_features import check_missing
from heckmanfa.data.parquet.parquet_files import arrow
from heckmanfa.data.scan.scanning import open_engine
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.estimators.scanned_rows import columns_needed, frame_of, joined
from heckmanfa.text.printable import quoted, shown

# A batch becomes a row group of a file.
_MOST_ROWS, _LEAST_ROWS, _BYTES = 2**17, 2**12, 2**24


@dataclass(frozen=True, eq=False)
class Scoring:
    """A model, what is asked of it, and the rows to ask it for."""

    model: Any
    engine: Engine
    sources: tuple[str, ...]
    """columns that the model needs"""
    kept: tuple[str, ...]
    """columns that come before the predictions"""
    encoding: Encoding | None
    """what makes the features of the model, if that is not the model itself"""
    request: Request

    @cached_property
    def found(self) -> dict[str, Any]:
        """The columns that `predict_table` makes, with their Arrow types."""
        pa, _ = arrow()
        kind, model = self.request.kind, self.model
        found = {f"predicted_{kind}": pa.float64()}
        binary = (
            kind != "selection" and hasattr(model, "predict_selection") and model.fit_.is_binary
        )
        if binary:
            found = {f"probability_{kind}": pa.float64()}
        if self.request.interval is not None:
            found |= {"low": pa.float64(), "high": pa.float64()}
        if binary and kind != "joint":
            types = {"boolean": pa.bool_(), "Int64": pa.int64(), "object": pa.string()}
            found[f"predicted_{kind}"] = types.get(class_type(model.fit_), pa.float64())
        return found | ({EXTRAPOLATES: pa.bool_()} if self.request.extrapolation else {})

    @cached_property
    def layout(self) -> Any:
        """The schema of what is returned."""
        pa, _ = arrow()
        kept = [self.engine.schema.field(name) for name in self.kept]
        return pa.schema([*kept, *self.found.items()])

    def run(self) -> Generator[tuple[Any, Predicted]]:
        """Yield record batches of the layout, with what their predictions lack."""
        columns = list(dict.fromkeys([*self.kept, *self.sources]))
        rows = max(min(_MOST_ROWS, _BYTES // (8 * len(columns))), _LEAST_ROWS)
        # Intervals have threads of their own.
        threads = None if self.request.interval is None else 1
        with closing(self.engine.batches(columns)) as stream:
            numbered = _numbered(joined(stream, rows))
            with closing(in_order(self._predict, numbered, threads=threads)) as results:
                yield from results

    def _predict(self, numbered: tuple[int, Any]) -> tuple[Any, Predicted]:
        pa, _ = arrow()
        start, batch = numbered
        try:
            made = predict_table(self.model, self._features(batch), self.request, self.encoding)
        except InputError as error:
            raise InputError(
                f"{self.engine.described}, from row {start + 1:,} on: {error}"
            ) from error
        # A column may have another type in a later file; a cast to its own type copies nothing.
        arrays = [batch.column(name).cast(self.layout.field(name).type) for name in self.kept]
        arrays += [
            pa.array(made.table[name], kind, from_pandas=True) for name, kind in self.found.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.layout), made

    def _features(self, batch: Any) -> pd.DataFrame:
        """Return the columns that the model needs as a data frame."""
        frame = frame_of(self.model, batch, self.sources, self.encoding)
        if self.encoding is None:
            return frame
        rule = cast("Unknown", self.request.unknown or getattr(self.model, "unknown", "error"))
        return self.encoding.transform(frame, unknown=rule)


def open_scoring(
    model: Any,
    source: Any,
    request: Request,
    keep: bool | Sequence[str],
    encoding: Encoding | None,
    where: dict[str, Any],
    *,
    missing: str,
) -> Scoring:
    """Check what is asked, and open the source."""
    check_request(request.kind, request.interval, request.scale)
    check_missing(missing)
    check_is_fitted(model)
    check_model(model, request)
    if isinstance(keep, str):
        raise InputError(f"columns to keep must be a list of names: write [{quoted(keep)}]")
    _refuse_in_memory(source)
    wanted = () if isinstance(keep, bool) else tuple(keep)
    sources: list[str] = []

    def needed(schema: Any, place: Any) -> list[str] | None:
        sources.extend(columns_needed(model, encoding, schema, place))
        refuse_absent(wanted, schema.names, shown(place))
        return None if keep is True else list(dict.fromkeys([*wanted, *sources]))

    engine = open_engine(source, needed, **where)
    kept = tuple(engine.schema.names) if keep is True else wanted
    # A model without a selection equation cannot tell.
    request = replace(request, extrapolation=request.extrapolation and has_range(model))
    scoring = Scoring(model, engine, tuple(sources), kept, encoding, request)
    taken = [name for name in scoring.found if name in kept]
    if taken:
        raise InputError(
            f"the data already has a column {quoted(taken[0])}; rename it, or do not keep it"
        )
    return scoring


def _refuse_in_memory(source: Any) -> None:
    """Refuse tables that ``predict`` takes as they are."""
    table = nw.from_native(source, pass_through=True)
    if isinstance(table, nw.DataFrame) or is_dask(source):
        what = "a Dask collection" if is_dask(source) else "a table in memory"
        raise InputTypeError(f"this is {what}, which model.predict(X) takes as it is")


def _numbered(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield batches with the position of their first row."""
    start = 0
    for batch in batches:
        yield start, batch
        start += batch.num_rows
