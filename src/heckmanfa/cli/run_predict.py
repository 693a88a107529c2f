"""The work of ``heckmanfa predict``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pandas as pd

from heckmanfa.analysis import Saved, load_model
from heckmanfa.analysis.prediction_batches import (
    TableBatches,
    Written,
    predict_to,
    write_predictions,
)
from heckmanfa.analysis.prediction_request import Request
from heckmanfa.analysis.predictions import (
    EXTRAPOLATES,
    check_request,
    encode_new,
    probability_words,
    scale_words,
    usual_interval,
)
from heckmanfa.analysis.request import refuse_text_options
from heckmanfa.analysis.treatment_requests import is_treatment, words_of
from heckmanfa.cli.commands import PredictOptions
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.files.outputs import Place, check_ending, outputs, write_table
from heckmanfa.data.scan.places import is_url, name_of
from heckmanfa.errors import InputError
from heckmanfa.tables.marks import MarkOptions
from heckmanfa.tables.reading import Table, open_table
from heckmanfa.tables.streamed import GIGABYTE, find_stored
from heckmanfa.text.printable import quoted, shown


def run(options: PredictOptions, *, stream_above: float, **reading: Any) -> None:
    """Predict, and say how many rows were written, and how many of them extrapolate.

    ``reading`` is decimal, thousands, sheet and header_row.
    """
    kind, scale, out = options.kind, options.scale, options.out
    request = Request(
        *(kind, options.interval, scale),
        extrapolation=True,
        regime=options.regime,
        given=options.given,
    )
    check_request(request)
    if options.interval is not None and options.no_interval:
        raise InputError("--interval and --no-interval contradict each other; pass one of them")
    if options.missing not in ("empty", "error"):
        raise InputError(f"--missing must be empty or error; got {quoted(options.missing)}")
    if options.unknown not in (None, "error", "missing"):
        raise InputError(f"--unknown must be error or missing; got {quoted(options.unknown)}")
    check_ending(out)
    reads: dict[str, Path | str] = {"MODEL": options.model, "DATA": options.data}
    why = ""
    # Paths are checked before anything is read.
    with saying() as say, outputs({"--out": out}, reads, force=options.force) as places:
        saved = load_model(options.model)
        if options.interval is None and not options.no_interval:
            interval, why = usual_interval(saved.model, request)
            request = replace(request, interval=interval)
        # Models of earlier versions know one way only.
        unknown = options.unknown or getattr(saved.model, "unknown", "error")
        request = replace(request, unknown=unknown)
        most_bytes = GIGABYTE * stream_above
        written, notes = _write(saved, options, places["--out"], request, say, most_bytes, reading)
    outcome, fitted = str(saved.about.get("outcome", "y")), getattr(saved.model, "fit_", None)
    scale_said = scale_words(fitted, outcome, kind, scale)
    if is_treatment(saved.model):
        scale_said = words_of(request, outcome)
    for sentence in (why, *notes, probability_words(fitted, outcome, kind), scale_said):
        if sentence:
            tell(sentence)
    gaps, outside = written.gaps, written.n_extrapolating
    tell(f"{gaps.n_rows:,} rows written to {shown(out)}")
    if gaps.n_missing:
        tell(gaps.words())
    if outside:
        what, whose = "being selected", "selected rows"
        if is_treatment(saved.model):
            what, whose = "treatment", "rows"
        tell(
            f"{outside:,} of {gaps.n_rows:,} rows extrapolate: their chance of {what} is "
            f"outside the range of the fit's {whose} (column {EXTRAPOLATES})"
        )


def _write(
    saved: Saved,
    options: PredictOptions,
    place: Place,
    request: Request,
    say: Callable[[str], None],
    most_bytes: float,
    reading: Mapping[str, Any],
) -> tuple[Written, tuple[str, ...]]:
    """Write the predictions; return the counts of rows, and notes on how the table was read."""
    missing = "error" if options.missing == "error" else "nan"
    data, stored = options.data, find_stored(options.data)
    columns = None if options.keep_columns else saved.encoding.sources
    if stored is not None:
        refuse_text_options(reading, stored.format)
        size = stored.size(stored.columns if columns is None else columns)
        if place.target.suffix == ".parquet" and size > most_bytes:
            say(f"rows are read from {stored.described} and written a part at a time, not loaded")
            written = write_predictions(
                saved.model,
                stored.engine,
                place.part,
                request,
                keep_columns=options.keep_columns,
                encoding=saved.encoding,
                missing=missing,
                force=True,
                tell=say,
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
    kept = table.frame if options.keep_columns else None
    parts: list[pd.DataFrame] = []
    rows = TableBatches(saved.model, request, saved.encoding, X, kept)
    written = predict_to(rows, parts.append, missing, say)
    with place.writing() as file:
        write_table(pd.concat(parts, ignore_index=True), file)
    return written, (*table.notes, *notes)
