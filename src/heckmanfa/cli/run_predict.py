"""The work of ``heckmanfa predict``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pandas as pd

from heckmanfa.analysis import Saved, load_model
from heckmanfa.analysis.prediction_batches import TableBatches, predict_to, write_predictions
from heckmanfa.analysis.predictions import (
    EXTRAPOLATES,
    Request,
    Written,
    check_request,
    encode_new,
    probability_words,
    scale_words,
    usual_interval,
)
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.files.outputs import Place, check_ending, outputs, write_table
from heckmanfa.data.scan.places import is_url, name_of
from heckmanfa.errors import InputError
from heckmanfa.tables.marks import MarkOptions
from heckmanfa.tables.reading import Table, open_table
from heckmanfa.tables.streamed import GIGABYTE, find_stored
from heckmanfa.text.option_words import flag
from heckmanfa.text.printable import quoted, shown

_INSTEAD = "pass --missing empty to get empty cells for these rows"


def run(
    *,
    model: Path,
    data: str,
    out: Path,
    missing: str,
    force: bool,
    kind: str,
    interval: str | None,
    no_interval: bool,
    scale: str,
    unknown: str | None,
    **options: Any,
) -> None:
    """Predict, and say how many rows were written, and how many of them extrapolate."""
    check_request(kind, interval, scale)
    if interval is not None and no_interval:
        raise InputError("--interval and --no-interval contradict each other; pass one of them")
    if missing not in ("empty", "error"):
        raise InputError(f"--missing must be empty or error; got {quoted(missing)}")
    if unknown not in (None, "error", "missing"):
        raise InputError(f"--unknown must be error or missing; got {quoted(unknown)}")
    check_ending(out)
    reads: dict[str, Path | str] = {"MODEL": model, "DATA": data}
    notes: tuple[str, ...] = ()
    # Paths are checked before anything is read.
    with saying() as say, outputs({"--out": out}, reads, force=force) as places:
        saved = load_model(model)
        if interval is None and not no_interval:
            interval, why = usual_interval(saved.model, kind)
            notes = (why,) if why else ()
        # Models of earlier versions know one way only.
        unknown = unknown or getattr(saved.model, "unknown", "error")
        request = Request(kind, interval, scale, unknown=unknown, extrapolation=True)
        strict = missing == "error"
        written, more = _write(saved, data, places["--out"], request, say, strict=strict, **options)
    outcome, fitted = str(saved.about.get("outcome", "y")), getattr(saved.model, "fit_", None)
    scale_said = scale_words(fitted, outcome, kind, scale)
    for sentence in (*notes, *more, probability_words(fitted, outcome, kind), scale_said):
        if sentence:
            tell(sentence)
    gaps, outside = written.gaps, written.n_extrapolating
    tell(f"{gaps.n_rows:,} rows written to {shown(out)}")
    if gaps.n_missing:
        tell(gaps.words())
    if outside:
        tell(
            f"{outside:,} of {gaps.n_rows:,} rows extrapolate: their chance of being selected is "
            f"outside the range of the fit's selected rows (column {EXTRAPOLATES})"
        )


def _write(
    saved: Saved,
    data: str,
    place: Place,
    request: Request,
    say: Callable[[str], None],
    *,
    keep_columns: bool,
    strict: bool,
    stream_above: float,
    **reading: Any,
) -> tuple[Written, tuple[str, ...]]:
    """Write the predictions; return the counts of rows, and notes on how the table was read.

    ``reading`` is decimal, thousands, sheet and header_row.
    """
    handled: Any = {
        "missing": "error" if strict else "nan",
        "instead": _INSTEAD,
        "tell": say,
    }
    stored = find_stored(data)
    columns = None if keep_columns else saved.encoding.sources
    if stored is not None:
        for option, value in reading.items():
            if value is not None:
                said = f"{flag(option)} is for text and Excel files, and the data is"
                raise InputError(f"{said} {stored.format}")
        size = stored.size(stored.columns if columns is None else columns)
        if place.target.suffix == ".parquet" and size > GIGABYTE * stream_above:
            say(f"rows are read from {stored.described} and written a part at a time, not loaded")
            written = write_predictions(
                saved.model,
                stored.engine,
                place.part,
                request,
                keep_columns=keep_columns,
                encoding=saved.encoding,
                force=True,
                **handled,
            )
            return written, ()
    say(f"reading {shown(Path(name_of(data) if is_url(data) else data).name)}")
    if stored is None:
        # A few rows may reveal less about how numbers are written than all rows of the fit.
        like = MarkOptions(saved.encoding.decimal, saved.encoding.thousands, by_model=True)
        codes, literal = saved.encoding.missing_codes, saved.encoding.literal
        table = open_table(data, na_values=codes, literal=literal, like=like, tell=say, **reading)
    else:
        # Encoding names the columns that are absent.
        needed = [name for name in stored.columns if columns is None or name in columns]
        table = Table(stored.load(needed or stored.columns))
    outcome = saved.about.get("outcome")
    outcome = None if outcome is None else str(outcome)
    rule = cast("Unknown", request.unknown)
    X, notes = encode_new(table, saved.encoding, outcome, rule)
    parts: list[pd.DataFrame] = []
    rows = TableBatches(X)
    written = predict_to(parts.append, saved.model, rows, request, saved.encoding, **handled)
    predicted = pd.concat(parts, ignore_index=True)
    if keep_columns:
        predicted = _beside(table.frame, predicted)
    with place.writing() as file:
        write_table(predicted, file)
    return written, (*table.notes, *notes)


def _beside(frame: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the data with those that were predicted."""
    taken = [name for name in predicted.columns if name in frame.columns]
    if taken:
        raise InputError(
            f"the data already has a column {quoted(taken[0])}; rename it, or leave out "
            "--keep-columns"
        )
    return frame.reset_index(drop=True).join(predicted)
