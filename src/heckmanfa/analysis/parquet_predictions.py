"""Predictions for the rows of Parquet files, written to another file a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from heckmanfa.analysis.predictions import check_request, predictions
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import refuse_absent
from heckmanfa.data.files.clashes import refuse_clashes
from heckmanfa.data.files.outputs import check_place, replacing
from heckmanfa.data.missing_features import Gaps, check_missing, refuse_gaps
from heckmanfa.data.parquet.parquet_columns import floats_of
from heckmanfa.data.parquet.parquet_files import (
    Batches,
    PathLike,
    StoredFile,
    arrow,
    read_batches,
    row_groups,
    scan_files,
)
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, MissingFeaturesWarning, warn
from heckmanfa.text.printable import quoted, shown

# A batch becomes a row group of the output.
_MOST_ROWS, _LEAST_ROWS, _BYTES = 2**17, 2**12, 2**24


def predict_parquet(
    model: Any,
    path: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    kind: str = "marginal",
    interval: str | None = None,
    keep_columns: bool = False,
    encoding: Encoding | None = None,
    missing: str = "nan",
    force: bool = False,
) -> int:
    """Predict for every row of Parquet files, which may be larger than memory, in their order.

    Parameters
    ----------
    model : fitted model
        With named features, or from formulas.
    path : str, path, or sequence of these
        Files, folders and patterns, as for `scan_parquet`.
    out : str or path
        The Parquet file to write; it appears only once it is complete.
    kind : {"marginal", "selected", "unselected", "selection"}
        What ``model.predict`` predicts, or the probability of being selected.
    interval : {None, "prediction", "confidence"}
        Whether to add the columns ``low`` and ``high``.
    keep_columns : bool
        Whether to write the columns of the data beside the predictions.
    encoding : Encoding, optional
        How columns become features, if some are not numbers: the encoding of the fit's rows.
    missing : {"nan", "error"}
        How to treat rows that miss a feature that the prediction needs: write null and warn, with
        counts by column, or refuse them and write nothing.
    force : bool
        Whether an existing file may be replaced.

    Returns
    -------
    int
        The number of rows, all of which are written.
    """
    gaps = write_predictions(
        model,
        path,
        out,
        kind=kind,
        interval=interval,
        keep_columns=keep_columns,
        encoding=encoding,
        missing=missing,
        force=force,
    )
    if gaps.n_missing:
        warn(f"{gaps.words()}; it is null in {shown(out)}", MissingFeaturesWarning)
    return gaps.n_rows


def write_predictions(
    model: Any,
    path: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    kind: str,
    interval: str | None,
    keep_columns: bool,
    encoding: Encoding | None,
    missing: str,
    force: bool,
    instead: str = "pass missing='nan' to get null for these rows",
) -> Gaps:
    """Do what `predict_parquet` does, and count the rows, with and without a prediction."""
    check_request(kind, interval)
    check_missing(missing)
    check_is_fitted(model)
    out = Path(out)
    if out.suffix != ".parquet":
        raise InputError(f"{shown(out)} must end in .parquet to be written")
    refuse_clashes({"path": path}, {"out": out})
    check_place(out, force)
    sources: list[str] = []

    def needed(schema: Any, place: Path) -> list[str] | None:
        sources.extend(_sources(model, encoding, schema, place))
        return None if keep_columns else sources

    files, schema = scan_files(path, needed)
    found = [f"predicted_{kind}", *(["low", "high"] if interval is not None else [])]
    kept = schema.names if keep_columns else []
    taken = [name for name in found if name in kept]
    if taken:
        raise InputError(
            f"the data already has a column {quoted(taken[0])}; rename it, or leave out "
            "keep_columns"
        )
    pa, pq = arrow()
    layout = pa.schema(
        [*(schema.field(name) for name in kept), *(pa.field(name, pa.float64()) for name in found)]
    )

    def predict(batch: Any) -> tuple[Any, Gaps]:
        X = _features(batch, sources, model, encoding)
        values, gaps = predictions(model, X, kind, interval, encoding)
        # A column may have another type in a later file; a cast to its own type copies nothing.
        arrays = [batch.column(name).cast(schema.field(name).type) for name in kept]
        arrays += [pa.array(values[name].to_numpy(), from_pandas=True) for name in found]
        return pa.Table.from_arrays(arrays, schema=layout), gaps

    columns = tuple(dict.fromkeys([*kept, *sources]))
    found_gaps = Gaps()
    with replacing(out, force) as place, pq.ParquetWriter(place, layout) as writer:
        for table, gaps in in_order(predict, _batches(files, columns)):
            writer.write_table(table)
            found_gaps += gaps
        if missing == "error":
            # All rows are counted; the file written so far is discarded.
            refuse_gaps(found_gaps, instead)
    return found_gaps


def _sources(model: Any, encoding: Encoding | None, schema: Any, path: Path) -> list[str]:
    """Return the columns that a model needs; refuse those that are not there."""
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
                "fit it to a data frame, or to rows from scan_parquet"
            )
    hint = None
    for name in [] if encoding is not None else wanted:
        source = name.partition("[")[0]
        if name not in schema.names and source in schema.names:
            made = f"{quoted(name)} is made from {quoted(source)}"
            hint = f"; {made}: pass the encoding of the fit's rows"
            break
    refuse_absent(wanted, schema.names, shown(path), hint)
    return wanted


def _has_formulas(model: Any) -> bool:
    # Least squares, which corrects for nothing, keeps no Fit.
    return hasattr(model, "fit_") and model.fit_.origin.design is not None


def _features(
    batch: Any, sources: Sequence[str], model: Any, encoding: Encoding | None
) -> pd.DataFrame:
    if encoding is None and not _has_formulas(model):
        return pd.DataFrame({name: floats_of(batch.column(name)) for name in sources}, copy=False)
    frame: pd.DataFrame = batch.select(list(sources)).to_pandas(
        ignore_metadata=True, date_as_object=False
    )
    return frame if encoding is None else encoding.transform(frame)


def _batches(files: Sequence[StoredFile], columns: tuple[str, ...]) -> Iterator[Any]:
    rows = max(min(_MOST_ROWS, _BYTES // (8 * len(columns))), _LEAST_ROWS)
    wanted = Batches(columns, (), block_rows=rows, head=None, threads=True)
    for group in row_groups(files):
        yield from read_batches(group, wanted)
