"""The work of ``heckmanfa predict``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heckmanfa.analysis import Saved, load_model
from heckmanfa.analysis.predictions import check_request, encode_new, predictions, write_predictions
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.files.outputs import Place, check_ending, outputs, write_table
from heckmanfa.data.missing_features import Gaps, refuse_gaps
from heckmanfa.errors import InputError
from heckmanfa.tables.marks import MarkOptions
from heckmanfa.tables.reading import Table, open_table
from heckmanfa.tables.streamed import GIGABYTE, find_stored
from heckmanfa.text.printable import quoted, shown

_INSTEAD = "pass --missing empty to get empty cells for these rows"


def run(*, model: Path, data: str, out: Path, missing: str, force: bool, **options: Any) -> None:
    """Predict, and say how many rows were written."""
    check_request(options["kind"], options["interval"], prefix="--")
    if missing not in ("empty", "error"):
        raise InputError(f"--missing must be empty or error; got {quoted(missing)}")
    check_ending(out)
    reads: dict[str, Path | str] = {"MODEL": model, "DATA": data}
    # Paths are checked before anything is read.
    with saying() as say, outputs({"--out": out}, reads, force=force) as places:
        saved = load_model(model)
        strict = missing == "error"
        gaps, notes = _write(saved, data, places["--out"], say, strict=strict, **options)
    for sentence in notes:
        tell(sentence)
    tell(f"{gaps.n_rows:,} rows written to {shown(out)}")
    if gaps.n_missing:
        tell(gaps.words())


def _write(
    saved: Saved,
    data: str,
    place: Place,
    say: Callable[[str], None],
    *,
    kind: str,
    interval: str | None,
    keep_columns: bool,
    strict: bool,
    stream_above: float,
    **reading: str | None,
) -> tuple[Gaps, tuple[str, ...]]:
    """Write the predictions; return the rows without one, and notes on how the table was read.

    ``reading`` is decimal, thousands and sheet.
    """
    stored = find_stored(data)
    columns = None if keep_columns else saved.encoding.sources
    if stored is not None:
        for option, value in reading.items():
            if value is not None:
                raise InputError(f"--{option} is for text and Excel files, and the data is Parquet")
        size = stored.size(stored.columns if columns is None else columns)
        if place.target.suffix == ".parquet" and size > GIGABYTE * stream_above:
            say(f"rows are read from {stored.described} and written a part at a time, not loaded")
            gaps = write_predictions(
                saved.model,
                stored.paths,
                place.part,
                kind=kind,
                interval=interval,
                keep_columns=keep_columns,
                encoding=saved.encoding,
                missing="error" if strict else "nan",
                force=True,
                instead=_INSTEAD,
            )
            return gaps, ()
    say(f"reading {shown(Path(data).name)}")
    if stored is None:
        # A few rows may reveal less about how numbers are written than all rows of the fit.
        like = MarkOptions(saved.encoding.decimal, saved.encoding.thousands, by_model=True)
        codes = saved.encoding.missing_codes
        table = open_table(data, na_values=codes, like=like, tell=say, **reading)
    else:
        # Encoding names the columns that are absent.
        needed = [name for name in stored.columns if columns is None or name in columns]
        table = Table(stored.load(needed or stored.columns))
    say(f"predicting {len(table.frame):,} rows")
    X, notes = encode_new(table, saved.encoding)
    predicted, gaps = predictions(saved.model, X, kind, interval, saved.encoding)
    if strict:
        refuse_gaps(gaps, _INSTEAD)
    if keep_columns:
        taken = [name for name in predicted.columns if name in table.frame.columns]
        if taken:
            raise InputError(
                f"the data already has a column {quoted(taken[0])}; rename it, or leave out "
                "--keep-columns"
            )
        predicted = table.frame.reset_index(drop=True).join(predicted)
    with place.writing() as part:
        write_table(predicted, part)
    return gaps, (*table.notes, *notes)
