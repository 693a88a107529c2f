"""Rows that are not in memory: predicted lazily with Dask, or read from a scan in parts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.data.dask_rows import empty_part, one_column_chunk
from heckmanfa.data.row_sources import refuse_beside, refuse_no_outcome
from heckmanfa.data.scan.arrow_columns import flags_of, floats_of, kind_of, labels_in, text_in
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.scan.engines import part_rows
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.text.printable import quoted, shown


def predict_lazily(
    model: Any,
    X: Any,
    method: str,
    name: str | list[str],
    columns: FittedColumns | None,
    *,
    return_interval: str | None = None,
    return_std: bool = False,
    **options: Any,
) -> Any:
    """Call a method of a fitted model, lazily; it has checked the options.

    ``name`` is that of the values. These, intervals and standard errors come from the same
    partitions, so computing all at once reads X once.
    """
    if isinstance(name, list) or (return_interval is None and not return_std):
        return map_rows(model, X, method, name, columns, **options)
    names, results = [name], [slice(0, 1)]
    if return_interval is not None:
        options["return_interval"] = return_interval
        names += ["lower", "upper"]
        results.append(slice(1, 3))
    if return_std:
        options["return_std"] = True
        results.append(slice(len(names), len(names) + 1))
        names.append("std_error")
    together = map_rows(model, X, method, names, columns, **options)
    if hasattr(together, "columns"):
        labels = (names[columns] for columns in results)
        return tuple(together[own[0] if len(own) == 1 else own] for own in labels)
    return tuple(
        together[:, columns.start] if columns.stop - columns.start == 1 else together[:, columns]
        for columns in results
    )


def map_rows(
    model: Any,
    X: Any,
    method: str,
    name: str | list[str],
    columns: FittedColumns | None = None,
    dtype: Any = np.float64,
    **options: Any,
) -> Any:
    """Call a method of a fitted model on every partition of a Dask DataFrame or Array.

    A later fit of the model has no effect on the result, whose columns ``name`` gives, and whose
    type is ``dtype``. X is checked against ``columns`` now, rather than when the result is
    computed; None skips this check.
    """
    # Dask is optional.
    import dask.array as da
    from dask import delayed
    from dask.utils import is_dataframe_like

    # The partitions share one copy; as an argument, it would travel with each.
    shared = delayed(copy(model), traverse=False)
    if isinstance(X, da.Array) and X.ndim == 2:
        X = one_column_chunk(X)
        if columns is not None:
            read_features(np.zeros((1, X.shape[1])), columns)
        size = len(name) if isinstance(name, list) else None
        shape = {"drop_axis": 1} if size is None else {"chunks": (X.chunks[0], (size,))}
        return da.map_blocks(
            _values,
            X,
            shared,
            method,
            size,
            dtype,
            options,
            dtype=dtype,
            meta=np.empty((0,) if size is None else (0, size), dtype),
            **shape,
        )
    if not is_dataframe_like(X):
        raise InputTypeError(
            f"X must be a Dask DataFrame or a Dask Array of two dimensions; got a Dask "
            f"{type(X).__name__}"
        )
    if columns is not None:
        first = pd.DataFrame(np.zeros((1, len(X.columns))), columns=list(X.columns))
        read_features(first, columns)
    meta = _labelled(empty_part(X), model, method, name, dtype, options)
    return X.map_partitions(_labelled, shared, method, name, dtype, options, meta=meta)


def _values(
    rows: Any, model: Any, method: str, size: int | None, dtype: Any, options: Any
) -> NDArray[Any]:
    """Return the result of a method for the rows of a partition, which may be empty."""
    if len(rows) == 0:
        return np.empty((0,) if size is None else (0, size), dtype)
    values = getattr(model, method)(rows, **options)
    return np.asarray(values) if size is None else np.column_stack(values)


def _labelled(
    rows: Any, model: Any, method: str, name: str | list[str], dtype: Any, options: Any
) -> Any:
    """Return `_values` with the index of the partition."""
    if isinstance(name, list):
        values = _values(rows, model, method, len(name), dtype, options)
        return pd.DataFrame(values, index=rows.index, columns=name)
    values = _values(rows, model, method, None, dtype, options)
    return pd.Series(values, index=rows.index, name=name)


def columns_needed(model: Any, encoding: Encoding | None, schema: Any, place: Any) -> list[str]:
    """Return the columns that a model needs; refuse those that are not there.

    ``encoding`` makes the features, if that is not the model itself; messages call the table
    ``place``.
    """
    if encoding is not None:
        wanted = list(encoding.sources)
    elif _has_formulas(model):
        # Formulas may name any of them.
        return list(schema.names)
    else:
        wanted = [str(name) for name in getattr(model, "feature_names_in_", [])]
        if not wanted:
            raise InputError(
                "the model was fitted to features without names, and columns of files have names: "
                "fit it to a data frame, or to rows from scan"
            )
    hint, there = None, {*schema.names}
    for name in [] if encoding is not None else wanted:
        source = name.partition("[")[0]
        if name not in there and source in there:
            made = f"{quoted(name)} is made from {quoted(source)}"
            hint = f"; {made}: pass the encoding of the fit's rows"
            break
    refuse_absent(wanted, schema.names, shown(place), hint)
    return wanted


def frame_of(
    model: Any, batch: Any, columns: Sequence[str], encoding: Encoding | None = None
) -> pd.DataFrame:
    """Return columns of a record batch as a data frame for `columns_needed`'s model."""
    as_stored = encoding or getattr(model, "encoding_", None) or _has_formulas(model)
    read = text_in if as_stored else floats_of
    values = {}
    for name in columns:
        column = batch.column(name)
        if not as_stored and kind_of(column.type) == "text":
            values[name] = to_numbers(pd.Series(text_in(column)), name)
        else:
            values[name] = read(column)
    return pd.DataFrame(values, copy=False)


def frames_to_score(
    model: Any, rows: ArrowRows, y: Any, sample_weight: Any, selected: Any
) -> Generator[tuple[pd.DataFrame, Any, Any, Any]]:
    """Yield the rows in parts: the frame, the outcome, weights, and who is selected.

    Formulas compute the outcome themselves.
    """
    refuse_beside({"y": y, "sample_weight": sample_weight, "selected": selected})
    if not _has_formulas(model):
        refuse_no_outcome(rows)
    columns = columns_needed(model, None, rows.schema, rows.described)
    read = list(dict.fromkeys([*columns, *rows.roles.values()]))
    with closing(rows.engine.batches(read)) as stream:
        for batch in joined(stream, part_rows(len(read))):
            yield frame_of(model, batch, columns), *_roles(model, rows, batch)


def _roles(model: Any, rows: ArrowRows, batch: Any) -> tuple[Any, Any, Any]:
    """Return the outcome, weights and who is selected in a batch; None if there is no column."""
    roles = rows.roles
    outcome = weight = chosen = None
    if "outcome" in roles and not _has_formulas(model):
        column, stored = batch.column(roles["outcome"]), rows.schema.field(roles["outcome"]).type
        outcome = labels_in(column, stored) if hasattr(model, "classes_") else floats_of(column)
    if "sample_weight" in roles:
        weight = floats_of(batch.column(roles["sample_weight"]))
    if "selected" in roles:
        chosen = flags_of(batch.column(roles["selected"]), roles["selected"])
    return outcome, weight, chosen


def joined(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Cut batches with more than ``rows`` rows, and join small ones whose columns have one type."""
    import pyarrow as pa

    waiting: list[Any] = []
    count = 0
    for batch in batches:
        if waiting and (count + batch.num_rows > rows or batch.schema != waiting[0].schema):
            yield pa.concat_batches(waiting)
            waiting, count = [], 0
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            if piece.num_rows == rows:
                yield piece
            else:
                waiting.append(piece)
                count += piece.num_rows
    if waiting:
        yield pa.concat_batches(waiting)


def _has_formulas(model: Any) -> bool:
    return model._known_origin.design is not None
