"""Predictions for rows that need not fit in memory: written to a file, or as record batches.

Rows come from whatever `scan` takes, a few thousand at a time, and leave in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from heckmanfa.analysis.prediction_request import CONF_LEVEL, Request
from heckmanfa.analysis.predictions import Written
from heckmanfa.analysis.scored_rows import Scoring, open_scoring
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.clashes import refuse_clashes
from heckmanfa.data.files.found_files import PathLike
from heckmanfa.data.files.outputs import check_place, replacing
from heckmanfa.data.missing_features import Gaps, check_missing, refuse_gaps
from heckmanfa.data.parquet.parquet_files import arrow
from heckmanfa.data.scan.places import is_url
from heckmanfa.errors import InputError, MissingFeaturesWarning, warn
from heckmanfa.text.printable import shown

_INSTEAD = "pass missing='nan' to get null for these rows"


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
        Request(kind, return_interval, scale, conf_level, unknown, extrapolation),
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
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """Predict for every row of a source, a batch at a time, in the order of its rows.

    Parameters
    ----------
    model, source, kind, return_interval, conf_level, scale, unknown, extrapolation
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
    scoring = open_scoring(
        model,
        source,
        Request(kind, return_interval, scale, conf_level, unknown, extrapolation),
        keep_columns,
        None,
        {"filesystem": filesystem, "storage_options": storage_options},
        missing=missing,
    )
    return _batches(scoring, missing)


def _batches(scoring: Scoring, missing: str) -> Generator[Any]:
    gaps = Gaps()
    with closing(scoring.run()) as parts:
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
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    instead: str = _INSTEAD,
    tell: Callable[[str], None] = lambda words: None,
) -> Written:
    """Do what `predict_parquet` does, and count the rows; ``tell`` gets words about progress."""
    check_missing(missing)
    out = Path(out)
    if out.suffix != ".parquet":
        raise InputError(f"{shown(out)} must end in .parquet to be written")
    refuse_clashes({"source": _local(source)}, {"out": out})
    check_place(out, force)
    where = {"filesystem": filesystem, "storage_options": storage_options}
    scoring = open_scoring(model, source, request, keep_columns, encoding, where, missing=missing)
    refuse_clashes({"source": scoring.engine.local_files}, {"out": out})
    _, pq = arrow()
    written = Written(Gaps(), 0 if scoring.request.extrapolation else None)
    total = scoring.engine.n_rows
    of_all = "" if total is None else f" of {total:,}"
    with (
        replacing(out, force) as place,
        pq.ParquetWriter(place, scoring.layout) as writer,
        closing(scoring.run()) as parts,
    ):
        for batch, made in parts:
            writer.write_batch(batch)
            written = written.with_part(made)
            tell(f"predicting, {written.gaps.n_rows:,}{of_all} rows done")
        if missing == "error":
            # All rows are counted; the file written so far is discarded.
            refuse_gaps(written.gaps, instead)
    return written


def _local(source: Any) -> list[PathLike]:
    """Return the paths of this machine that a source names."""
    named = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(named, list | tuple | set | frozenset):
        return []
    return [path for path in named if isinstance(path, str | os.PathLike) and not is_url(path)]
