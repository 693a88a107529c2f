"""Predictions for rows a batch at a time: of a table in memory, or of whatever `scan` takes.

Rows leave in the order in which they come: to a file, as record batches, or as a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from heckmanfa.analysis.prediction_request import CONF_LEVEL, Request
from heckmanfa.analysis.predictions import (
    Predicted,
    check_model,
    check_request,
    predict_table,
    prediction_columns,
)
from heckmanfa.data.arrays import is_dask
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.files.outputs import check_place, replacing
from heckmanfa.data.files.paths import PathLike, refuse_clashes
from heckmanfa.data.missing_features import Gaps, check_missing, refuse_gaps
from heckmanfa.data.scan.engines import Engine
from heckmanfa.data.scan.parquet_files import arrow
from heckmanfa.data.scan.places import is_url
from heckmanfa.data.scan.scanning import open_engine
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, InputTypeError, MissingFeaturesWarning, warn
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.rows_elsewhere import columns_needed, frame_of, joined
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.printable import quoted, shown

_INSTEAD = instead(
    "pass missing='nan' to get null for these rows",
    f"pass {option('missing', 'empty')} to get empty cells for these rows",
)
# A batch becomes a row group of a file.
_MOST_ROWS, _LEAST_ROWS, _BYTES = 2**17, 2**12, 2**24
# Rows of a batch in memory.
_PART = 2**14


@dataclass(frozen=True)
class Written:
    """Rows of a file of predictions."""

    gaps: Gaps
    """all rows, and those without a prediction"""
    n_extrapolating: int
    """rows that extrapolate, if that is known"""


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is predicted for the rows of each batch."""

    model: Any
    request: Request
    encoding: Encoding | None
    """what makes the features of the model, if that is not the model itself"""

    def refuse_taken(self, kept: Collection[str]) -> None:
        """Refuse to keep columns with the names of predictions."""
        for name in prediction_columns(self.model, self.request):
            if name in kept:
                raise InputError(
                    f"the data already has a column {quoted(name)}; rename it, or leave out "
                    f"{option('keep_columns')}"
                )


@dataclass(frozen=True, eq=False)
class TableBatches(_Asked):
    """Rows of a table in memory."""

    X: pd.DataFrame
    """encoded features"""
    kept: pd.DataFrame | None
    """columns that come before the predictions"""

    def __post_init__(self) -> None:
        """Refuse columns that are there twice."""
        if self.kept is not None:
            self.refuse_taken(self.kept.columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    def each(self) -> Generator[tuple[int, slice]]:
        """Yield parts of the rows, by position."""
        for start in range(0, len(self.X), _PART):
            yield start, slice(start, start + _PART)

    def features(self, batch: slice) -> pd.DataFrame:
        """Return the rows, which are encoded."""
        return self.X.iloc[batch]

    def beside(self, batch: slice, table: pd.DataFrame) -> pd.DataFrame:
        """Return a data frame."""
        if self.kept is None:
            return table
        return self.kept.iloc[batch].reset_index(drop=True).join(table)

    def place(self, start: int) -> str:
        """Say nothing: the rows are the user's."""
        return ""


# Arrow's names of pandas' types.
_ARROW = {"boolean": "bool_", "Int64": "int64", "object": "string", "float64": "float64"}


@dataclass(frozen=True, eq=False)
class EngineBatches(_Asked):
    """Rows that an engine reads, as they are stored."""

    engine: Engine
    sources: tuple[str, ...]
    """columns that the model needs"""
    kept: tuple[str, ...]
    """columns that come before the predictions"""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if the engine knows it."""
        return self.engine.n_rows

    @cached_property
    def layout(self) -> Any:
        """The schema of what is returned."""
        pa, _ = arrow()
        kept = [self.engine.schema.field(name) for name in self.kept]
        columns = prediction_columns(self.model, self.request).items()
        return pa.schema([*kept, *((name, getattr(pa, _ARROW[kind])()) for name, kind in columns)])

    def each(self) -> Generator[tuple[int, Any]]:
        """Yield record batches with the position of their first row."""
        columns = list(dict.fromkeys([*self.kept, *self.sources]))
        rows = max(min(_MOST_ROWS, _BYTES // (8 * len(columns))), _LEAST_ROWS)
        start = 0
        with closing(self.engine.batches(columns)) as stream:
            for batch in joined(stream, rows):
                yield start, batch
                start += batch.num_rows

    def features(self, batch: Any) -> pd.DataFrame:
        """Return the columns that the model needs as a data frame."""
        frame = frame_of(self.model, batch, self.sources, self.encoding)
        if self.encoding is None:
            return frame
        rule = cast("Unknown", self.request.unknown or getattr(self.model, "unknown", "error"))
        return self.encoding.transform(frame, unknown=rule)

    def beside(self, batch: Any, table: pd.DataFrame) -> Any:
        """Return a record batch of the layout."""
        pa, _ = arrow()
        # A column may have another type in a later file; a cast to its own type copies nothing.
        arrays = [batch.column(name).cast(self.layout.field(name).type) for name in self.kept]
        for name in table.columns:
            arrays.append(pa.array(table[name], self.layout.field(name).type, from_pandas=True))
        return pa.RecordBatch.from_arrays(arrays, schema=self.layout)

    def place(self, start: int) -> str:
        """Name the files, and the row from which on they could not be used."""
        return f"{self.engine.described}, from row {start + 1:,} on: "


Batches = TableBatches | EngineBatches
"""rows to predict for; those in memory are batches, too"""


def predict_each(rows: Batches) -> Generator[tuple[Any, Predicted]]:
    """Yield what each batch becomes with its predictions, and these, in the order of the rows."""

    def predict(numbered: tuple[int, Any]) -> tuple[Any, Predicted]:
        start, batch = numbered
        try:
            made = predict_table(rows.model, rows.features(batch), rows.request, rows.encoding)
        except InputError as error:
            if not rows.place(start):
                raise
            raise InputError(f"{rows.place(start)}{error}") from error
        return rows.beside(batch, made.table), made

    # Intervals have threads of their own.
    threads = None if rows.request.interval is None else 1
    with (
        closing(rows.each()) as batches,
        closing(in_order(predict, batches, threads=threads)) as results,
    ):
        yield from results


def predict_to(
    rows: Batches, take: Callable[[Any], object], missing: str, tell: Callable[[str], None]
) -> Written:
    """Hand the predictions of every batch over, count the rows, and tell of progress.

    If gaps are an error, it is raised at the end, when all rows are counted.
    """
    gaps, outside = Gaps(), 0
    of_all = "" if rows.n_rows is None else f" of {rows.n_rows:,}"
    with closing(predict_each(rows)) as predictions:
        for batch, made in predictions:
            take(batch)
            gaps, outside = gaps + made.gaps, outside + made.n_extrapolating
            tell(f"predicting, {gaps.n_rows:,}{of_all} rows done")
    if missing == "error":
        refuse_gaps(gaps, _INSTEAD)
    return Written(gaps, outside)


def _open_batches(
    model: Any,
    source: Any,
    request: Request,
    keep: bool | Sequence[str],
    encoding: Encoding | None,
    *,
    missing: str,
    **where: Any,
) -> EngineBatches:
    """Check what is asked, and open the source."""
    check_request(request)
    check_missing(missing)
    check_is_fitted(model)
    if isinstance(model, SelectionModel):
        model.fit_.require("single outcome equation")
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
    rows = EngineBatches(model, request, encoding, engine, tuple(sources), kept)
    rows.refuse_taken(kept)
    return rows


def _refuse_in_memory(source: Any) -> None:
    """Refuse tables that ``predict`` takes as they are."""
    table = nw.from_native(source, pass_through=True)
    if isinstance(table, nw.DataFrame) or is_dask(source):
        what = "a Dask collection" if is_dask(source) else "a table in memory"
        raise InputTypeError(f"this is {what}, which model.predict(X) takes as it is")


def predict_parquet(
    model: Any,
    source: Any,
    out: PathLike,
    *,
    kind: str = "marginal",
    return_interval: str | None = None,
    conf_level: float = CONF_LEVEL,
    scale: str = "response",
    keep_columns: bool | Sequence[str] = False,
    encoding: Encoding | None = None,
    missing: str = "nan",
    unknown: str | None = None,
    extrapolation: bool = False,
    regime: int | None = None,
    given: int | None = None,
    force: bool = False,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Predict for every row of a source, which may be larger than memory, in the order of its rows.

    Parameters
    ----------
    model : fitted model
        With named features, or from formulas.
    source : str, path, sequence of these, Dataset, LazyFrame, relation, or rows of `scan`
        As for `scan`. Columns are those that the model was fitted to, text included.
    out : str or path
        The Parquet file to write; it appears only once it is complete.
    kind : {"marginal", "selected", "unselected", "expected", "selection", "joint"}
        What ``model.predict`` predicts, in the column ``predicted_<kind>``; or the probability of
        being selected. For a `HeckmanProbit`, ``probability_<kind>`` of the positive class comes
        before the class, and "joint" gives the probability of both that class and selection.
    return_interval : {None, "prediction", "confidence"}
        Whether to add the columns ``low`` and ``high``; probabilities have "confidence" only.
    conf_level : float
        Confidence level of the interval.
    scale : {"response", "link"}
        As in ``model.predict`` and ``model.predict_selection``.
    keep_columns : bool or sequence of str
        Whether to write the columns of the data beside the predictions, or which of them.
    encoding : Encoding, optional
        How columns become features, if the model was fitted to columns that were encoded before.
    missing : {"nan", "error"}
        How to treat rows that lack a feature that the prediction needs: write null and warn, with
        counts by column, or refuse them and write nothing.
    unknown : {None, "error", "missing"}
        How to treat levels of a category that the fit did not have, as in ``model.predict``.
    extrapolation : bool
        Whether to add the column ``extrapolates``: whether a row's selection index lies outside
        the range of the fit's selected rows. A model without a selection equation has none.
    regime, given : {None, 0, 1}
        Of a `TreatmentModel`, as in its ``predict``. Its kinds are "marginal", for outcomes, and
        "treatment", the probability of treatment.
    force : bool
        Whether an existing file may be replaced.
    filesystem, storage_options
        Where paths and URLs are, as for `scan`.

    Returns
    -------
    int
        The number of rows, all of which are written.
    """
    gaps = write_predictions(
        model,
        source,
        out,
        Request(kind, return_interval, scale, conf_level, unknown, extrapolation, regime, given),
        keep_columns=keep_columns,
        encoding=encoding,
        missing=missing,
        force=force,
        filesystem=filesystem,
        storage_options=storage_options,
    ).gaps
    if gaps.n_missing:
        warn(f"{gaps.words()}; it is null in {shown(out)}", MissingFeaturesWarning)
    return gaps.n_rows


def predict_batches(
    model: Any,
    source: Any,
    *,
    kind: str = "marginal",
    return_interval: str | None = None,
    conf_level: float = CONF_LEVEL,
    scale: str = "response",
    keep_columns: bool | Sequence[str] = False,
    missing: str = "nan",
    unknown: str | None = None,
    extrapolation: bool = False,
    regime: int | None = None,
    given: int | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """Predict for every row of a source, a batch at a time, in the order of its rows.

    Parameters
    ----------
    model, source, kind, return_interval, conf_level, scale, unknown, extrapolation, regime, given
        As in `predict_parquet`.
    keep_columns : bool or sequence of str
        Columns of the source that batches have before the predictions; True is all of them.
    missing : {"nan", "error"}
        How to treat rows that lack a feature that the prediction needs: their prediction is null,
        and a warning after the last batch counts them; or refuse the first batch that has any.
    filesystem, storage_options
        Where paths and URLs are, as for `scan`.

    Yields
    ------
    pyarrow.RecordBatch
        Of up to 131,072 rows, with the columns that `predict_parquet` writes. Little more than one
        batch for each thread is in memory.
    """
    rows = _open_batches(
        model,
        source,
        Request(kind, return_interval, scale, conf_level, unknown, extrapolation, regime, given),
        keep_columns,
        None,
        missing=missing,
        filesystem=filesystem,
        storage_options=storage_options,
    )
    return _checked(rows, missing)


def _checked(rows: EngineBatches, missing: str) -> Generator[Any]:
    """Yield the batches; refuse the first that has gaps, or count them in a warning at the end."""
    gaps = Gaps()
    with closing(predict_each(rows)) as parts:
        for batch, made in parts:
            gaps += made.gaps
            if missing == "error":
                refuse_gaps(made.gaps, _INSTEAD)
            yield batch
    if gaps.n_missing:
        warn(gaps.words(), MissingFeaturesWarning)


def write_predictions(
    model: Any,
    source: Any,
    out: PathLike,
    request: Request,
    *,
    missing: str,
    force: bool,
    keep_columns: bool | Sequence[str] = False,
    encoding: Encoding | None = None,
    tell: Callable[[str], None] = lambda words: None,
    **where: Any,
) -> Written:
    """Do what `predict_parquet` does, and count the rows; ``tell`` gets words about progress."""
    out = Path(out)
    if out.suffix != ".parquet":
        raise InputError(f"{shown(out)} must end in .parquet to be written")
    refuse_clashes({"source": _local(source)}, {"out": out})
    check_place(out, force)
    rows = _open_batches(model, source, request, keep_columns, encoding, missing=missing, **where)
    refuse_clashes({"source": rows.engine.local_files}, {"out": out})
    _, pq = arrow()
    with replacing(out, force) as place, pq.ParquetWriter(place, rows.layout) as writer:
        # If gaps are refused, the file written so far is discarded.
        return predict_to(rows, writer.write_batch, missing, tell)


def _local(source: Any) -> list[PathLike]:
    """Return the paths of this machine that a source names."""
    named = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(named, list | tuple | set | frozenset):
        return []
    return [path for path in named if isinstance(path, str | os.PathLike) and not is_url(path)]
