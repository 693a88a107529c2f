"""Predictions for new tables, in memory or in Parquet files read a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from heckmanfa.analysis.column_roles import source_columns
from heckmanfa.analysis.predicted_classes import class_type, predict_classes
from heckmanfa.analysis.prediction_request import check_model, check_request, has_range
from heckmanfa.data.arrow.arrow_columns import floats_of
from heckmanfa.data.columns.column_names import refuse_absent
from heckmanfa.data.columns.encoding import Encoding, Unknown
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.data.files.clashes import refuse_clashes
from heckmanfa.data.files.found_files import PathLike
from heckmanfa.data.files.outputs import check_place, replacing
from heckmanfa.data.missing_features import Gaps, check_missing, refuse_gaps
from heckmanfa.data.parquet.parquet_files import (
    Batches,
    StoredFile,
    arrow,
    read_batches,
    row_groups,
    scan_files,
)
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError, MissingFeaturesWarning, UnknownFeatureError, warn
from heckmanfa.inference.prediction import extrapolates
from heckmanfa.tables.reading import Table
from heckmanfa.text.printable import quoted, shown

EXTRAPOLATES = "extrapolates"
"""the column that says which rows extrapolate"""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions for the rows of a table, and what they lack."""

    table: pd.DataFrame
    """as `predict_table` describes it"""
    gaps: Gaps

    @property
    def n_extrapolating(self) -> int | None:
        """Rows that extrapolate; None if that is not known."""
        found = self.table.get(EXTRAPOLATES)
        return None if found is None else int(found.sum())


@dataclass(frozen=True)
class Written:
    """Rows of a file of predictions."""

    gaps: Gaps
    """all rows, and those without a prediction"""
    n_extrapolating: int | None
    """rows that extrapolate; None if that is not known"""

    def with_part(self, part: Predicted) -> Written:
        """Add the rows of a part."""
        more = part.n_extrapolating
        known = self.n_extrapolating is not None and more is not None
        count = (self.n_extrapolating or 0) + (more or 0) if known else None
        return Written(self.gaps + part.gaps, count)


def predict_table(
    model: Any,
    X: pd.DataFrame,
    kind: str,
    interval: str | None,
    encoding: Encoding | None = None,
    *,
    scale: str = "response",
    extrapolation: bool = False,
) -> Predicted:
    """Predict for each row of X: the features of the fit, or the columns that its formulas name.

    The table has a column ``predicted_<kind>``, NaN where a feature is missing, and with an
    interval ``low`` and ``high``. For an outcome of two classes, ``predicted_<kind>`` is the class,
    before it comes ``probability_<kind>`` of the positive class, and the interval is that of the
    probability. With ``extrapolation``, ``extrapolates`` says whether a row's selection index lies
    outside the range of the fit's selected rows; a model without a selection equation has no such
    column. Gaps name the columns of the table if ``encoding`` made X. ``scale`` is that of
    ``model.predict`` or ``model.predict_selection``.
    """
    check_model(model, kind, interval, scale)
    if not hasattr(model, "predict_selection"):
        found = pd.DataFrame({f"predicted_{kind}": model.predict(X, missing="nan")})
    elif kind != "selection" and model.fit_.is_binary:
        found = predict_classes(model.fit_, X, kind, interval)
    else:
        predict = model.predict_selection if kind == "selection" else model.predict
        given = {} if kind == "selection" else {"kind": kind}
        made = predict(X, return_interval=interval, scale=scale, missing="nan", **given)
        values, ends = (made, None) if interval is None else made
        found = pd.DataFrame({f"predicted_{kind}": values})
        if ends is not None:
            found["low"], found["high"] = ends[:, 0], ends[:, 1]
    if extrapolation and has_range(model):
        outside, known = extrapolates(model.fit_, X)
        found[EXTRAPOLATES] = pd.arrays.BooleanArray(outside, ~known)
    gaps = Gaps(len(found))
    if found.iloc[:, 0].isna().any():
        gaps = model.missing_features(X, kind)
        gaps = gaps.of_sources({} if encoding is None else source_columns(encoding))
    return Predicted(found, gaps)


def encode_new(
    table: Table, encoding: Encoding, outcome: str | None = None, unknown: Unknown = "error"
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Encode a table as that of the fit; also return notes on numbers written differently.

    The column of the ``outcome`` is never suggested in place of a feature. ``unknown`` is as in
    `Encoding.codes`.
    """
    try:
        refuse_absent(encoding.sources, [name for name in table.frame.columns if name != outcome])
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    table.refuse_doubts([name for name in encoding.sources if name not in encoding.levels])
    # If columns have types, per cent signs are not part of their numbers.
    given = [name for name in encoding.sources if table.untyped and table.frame[name].notna().any()]
    _refuse_other_units(table, encoding, given)
    # The fit read 5% as 5, so plain numbers have its scale if they are written in the same way.
    notes = [
        f"{quoted(name)} has no per cent signs, as it had in the table of the fit: 5 was read as "
        "5%, and 0.05 as 0.05%."
        for name in encoding.percent
        if name in given and name not in table.percent
    ]
    return encoding.transform(table.frame, unknown=unknown), tuple(notes)


def _refuse_other_units(table: Table, encoding: Encoding, given: Sequence[str]) -> None:
    """Refuse columns whose signs differ from those of the fit in a way that matters."""
    for name in given:
        here, there = table.money.get(name), encoding.money.get(name)
        if here is not None and here != there:
            was = f"in {there}" if there else "without a currency sign"
            raise InputError(
                f"column {quoted(name)} is in {here}, and was {was} in the table of the fit; write "
                "it as there"
            )
        if name in table.percent and name not in encoding.percent:
            raise InputError(
                f"column {quoted(name)} has per cent signs, and had none in the table of the fit; "
                "0.05 there may or may not be 5% here: write it as there, without signs"
            )
        if name in encoding.percent and name not in table.percent:
            values = to_numbers(table.frame[name], name)
            if np.nanmax(np.abs(values)) <= 1 < abs(encoding.means[name]):
                raise InputError(
                    f"column {quoted(name)} has no per cent signs, and had them in the table of "
                    f"the fit, where it was {encoding.means[name]:.3g}% on average; here it is at "
                    "most 1, as shares are: multiply it by 100, or write it with signs"
                )


# A batch becomes a row group of the output.
_MOST_ROWS, _LEAST_ROWS, _BYTES = 2**17, 2**12, 2**24


def predict_parquet(
    model: Any,
    path: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    kind: str = "marginal",
    interval: str | None = None,
    scale: str = "response",
    keep_columns: bool = False,
    encoding: Encoding | None = None,
    missing: str = "nan",
    extrapolation: bool = False,
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
    kind : {"marginal", "selected", "unselected", "expected", "selection", "joint"}
        What ``model.predict`` predicts, in the column ``predicted_<kind>``; or the probability of
        being selected. For a `HeckmanProbit`, ``probability_<kind>`` of the positive class comes
        before the class, and "joint" gives the probability of both that class and selection.
    interval : {None, "prediction", "confidence"}
        Whether to add the columns ``low`` and ``high``; probabilities have "confidence" only.
    scale : {"response", "link"}
        As in ``model.predict`` and ``model.predict_selection``.
    keep_columns : bool
        Whether to write the columns of the data beside the predictions.
    encoding : Encoding, optional
        How columns become features, if some are not numbers: the encoding of the fit's rows.
    missing : {"nan", "error"}
        How to treat rows that lack a feature that the prediction needs: write null and warn, with
        counts by column, or refuse them and write nothing.
    extrapolation : bool
        Whether to add the column ``extrapolates``: whether a row's selection index lies outside
        the range of the fit's selected rows. A model without a selection equation has none.
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
        scale=scale,
        keep_columns=keep_columns,
        encoding=encoding,
        missing=missing,
        extrapolation=extrapolation,
        force=force,
    ).gaps
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
    scale: str = "response",
    extrapolation: bool = False,
    instead: str = "pass missing='nan' to get null for these rows",
    tell: Callable[[str], None] = lambda words: None,
) -> Written:
    """Do what `predict_parquet` does, and count the rows; ``tell`` gets words about progress."""
    check_request(kind, interval, scale)
    check_missing(missing)
    check_is_fitted(model)
    check_model(model, kind, interval, scale)
    encoding = model.encoding_ if encoding is None else encoding
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
    pa, pq = arrow()
    extrapolation = extrapolation and has_range(model)
    found = _layout(model, kind, interval, extrapolation)
    kept = schema.names if keep_columns else []
    taken = [name for name in found if name in kept]
    if taken:
        raise InputError(
            f"the data already has a column {quoted(taken[0])}; rename it, or leave out "
            "keep_columns"
        )
    layout = pa.schema([*(schema.field(name) for name in kept), *found.items()])

    def predict(batch: Any) -> tuple[Any, Predicted]:
        X = _features(batch, sources, model, encoding)
        made = predict_table(
            model, X, kind, interval, encoding, scale=scale, extrapolation=extrapolation
        )
        values = made.table
        # A column may have another type in a later file; a cast to its own type copies nothing.
        arrays = [batch.column(name).cast(schema.field(name).type) for name in kept]
        arrays += [pa.array(values[name], found[name], from_pandas=True) for name in found]
        return pa.Table.from_arrays(arrays, schema=layout), made

    columns = tuple(dict.fromkeys([*kept, *sources]))
    total = sum(group.rows for group in row_groups(files))
    written = Written(Gaps(), 0 if extrapolation else None)
    with replacing(out, force) as place, pq.ParquetWriter(place, layout) as writer:
        # Intervals have threads of their own.
        threads = None if interval is None else 1
        for table, made in in_order(predict, _batches(files, columns), threads=threads):
            writer.write_table(table)
            written = written.with_part(made)
            tell(f"predicting, {written.gaps.n_rows:,} of {total:,} rows done")
        if missing == "error":
            # All rows are counted; the file written so far is discarded.
            refuse_gaps(written.gaps, instead)
    return written


def _layout(model: Any, kind: str, interval: str | None, extrapolation: bool) -> dict[str, Any]:
    """Return the columns that `predict_table` makes, with their Arrow types."""
    pa, _ = arrow()
    found = {f"predicted_{kind}": pa.float64()}
    binary = kind != "selection" and hasattr(model, "predict_selection") and model.fit_.is_binary
    if binary:
        found = {f"probability_{kind}": pa.float64()}
    if interval is not None:
        found |= {"low": pa.float64(), "high": pa.float64()}
    if binary and kind != "joint":
        types = {"boolean": pa.bool_(), "Int64": pa.int64(), "object": pa.string()}
        found[f"predicted_{kind}"] = types.get(class_type(model.fit_), pa.float64())
    return found | ({EXTRAPOLATES: pa.bool_()} if extrapolation else {})


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
