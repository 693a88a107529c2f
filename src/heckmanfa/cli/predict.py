"""``heckmanfa predict``: a saved model on another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heckmanfa.cli.common import saying, tell
from heckmanfa.cli.options import Force, Sheet, StreamAbove, Thousands
from heckmanfa.text.printable import quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from heckmanfa.data.columns.encoding import Encoding
    from heckmanfa.tables.reading import Table
    from heckmanfa.tables.stored import StoredTable

__all__ = ["predict"]


_INSTEAD = "pass --missing empty to get empty cells for these rows"


def predict(
    model: Annotated[Path, typer.Argument(help="A model file that fit --save wrote.")],
    data: Annotated[
        str,
        typer.Argument(
            help="A table with the columns of the fit; of Parquet also a folder, or a pattern in "
            "quotes; - is CSV from standard input."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write predictions: .csv or .parquet.")],
    kind: Annotated[
        str,
        typer.Option(
            help="marginal (the outcome of anyone), selected or unselected (given that), or "
            "selection (the probability of being selected)."
        ),
    ] = "marginal",
    interval: Annotated[
        str | None,
        typer.Option(
            help="Add low and high: prediction (of a new outcome) or confidence (of the mean)."
        ),
    ] = None,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Write the columns of the data, too.")
    ] = False,
    missing: Annotated[
        str,
        typer.Option(
            help="Rows that miss a feature: empty (their prediction is an empty cell, and they are "
            "counted) or error (nothing is written)."
        ),
    ] = "empty",
    decimal: Annotated[
        str | None,
        typer.Option(
            help="The decimal mark of CSV and Excel files, . or , (unless given, that of the table "
            "of the fit)."
        ),
    ] = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    stream_above: StreamAbove = 1.0,
    force: Force = False,
) -> None:
    """Predict for every row of a table, in its order.

    From Parquet to Parquet, a table may be larger than memory: see --stream-above.

    Example: heckmanfa predict wages.skops wages.csv --kind selected --out predictions.csv
    """
    with saying() as say:
        say("loading")
        from heckmanfa.analysis.model_file import load_model
        from heckmanfa.analysis.predictions import KINDS, predictions
        from heckmanfa.data.columns.features import nearest
        from heckmanfa.data.files.outputs import outputs
        from heckmanfa.data.files.table_files import check_ending, write_table
        from heckmanfa.data.missing_features import refuse_gaps
        from heckmanfa.errors import InputError
        from heckmanfa.tables.stored import find_stored

        if kind not in KINDS:
            hint = nearest(kind, KINDS)
            raise InputError(f"--kind must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}")
        if interval not in (None, "prediction", "confidence"):
            raise InputError(f"--interval must be prediction or confidence; got {quoted(interval)}")
        if interval is not None and kind == "selection":
            raise InputError("--interval is about outcomes, but --kind is selection")
        if missing not in ("empty", "error"):
            raise InputError(f"--missing must be empty or error; got {quoted(missing)}")
        check_ending(out)
        # What cannot be written is said before anything is read.
        with outputs({"--out": out}, {"MODEL": model, "DATA": data}, force=force) as places:
            place = places["--out"]
            saved = load_model(model)
            table = find_stored(data)
            notes: tuple[str, ...] = ()
            options = {"decimal": decimal, "thousands": thousands, "sheet": sheet}
            for option, value in options.items():
                if table is not None and value is not None:
                    raise InputError(
                        f"--{option} is for text and Excel files, and the data is Parquet"
                    )
            wanted = None if keep_columns else saved.encoding.sources
            if table is not None and _is_large(table, wanted, out, stream_above):
                from heckmanfa.analysis.parquet_predictions import write_predictions

                say(
                    f"rows are read from {table.described} and written a part at a time, not loaded"
                )
                gaps = write_predictions(
                    saved.model,
                    table.paths,
                    place.part,
                    kind=kind,
                    interval=interval,
                    keep_columns=keep_columns,
                    encoding=saved.encoding,
                    missing="nan" if missing == "empty" else "error",
                    force=True,
                    instead=_INSTEAD,
                )
            else:
                say(f"reading {shown(Path(data).name)}")
                read = _read(data, table, saved.encoding, wanted, options, say)
                frame, notes = read.frame, read.notes
                say(f"predicting {len(frame):,} rows")
                X, plain = _encoded(read, saved.encoding)
                notes += plain
                found, gaps = predictions(saved.model, X, kind, interval, saved.encoding)
                if missing == "error":
                    refuse_gaps(gaps, _INSTEAD)
                if keep_columns:
                    found = _beside(frame, found)
                with place.writing() as file:
                    write_table(found, file)
    for sentence in notes:
        tell(sentence)
    tell(f"{gaps.n_rows:,} rows written to {shown(out)}")
    if gaps.n_missing:
        tell(gaps.words())


def _is_large(
    table: StoredTable, columns: Sequence[str] | None, out: Path, stream_above: float
) -> bool:
    """Whether rows go from Parquet to Parquet without being loaded."""
    from heckmanfa.tables.stored import GIGABYTE

    size = table.size(table.columns if columns is None else columns)
    return out.suffix == ".parquet" and size > GIGABYTE * stream_above


def _beside(frame: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Set predictions beside the columns of the data."""
    from heckmanfa.errors import InputError

    taken = [name for name in found.columns if name in frame.columns]
    if taken:
        raise InputError(
            f"the data has a column {quoted(taken[0])} already; rename it, or leave out "
            "--keep-columns"
        )
    return frame.reset_index(drop=True).join(found)


def _read(
    data: str,
    table: StoredTable | None,
    encoding: Encoding,
    columns: Sequence[str] | None,
    options: dict[str, str | None],
    say: Callable[[str], None],
) -> Table:
    """Read a table, and of Parquet only the columns that are needed."""
    from heckmanfa.tables.marks import MarkOptions
    from heckmanfa.tables.reading import Table, open_table

    if table is None:
        # A few rows may say less of how they are written than all those of the fit did.
        like = MarkOptions(encoding.decimal, encoding.thousands, by_model=True)
        return open_table(data, like=like, tell=say, **options)
    # Those that are not there are named by whoever needs them.
    needed = [one for one in table.columns if columns is None or one in columns]
    return Table(table.load(needed or table.columns))


def _encoded(table: Table, encoding: Encoding) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Encode a table as that of the fit, or say in which way it is written otherwise."""
    import numpy as np

    from heckmanfa.data.columns.features import refuse_absent
    from heckmanfa.data.columns.values import to_numbers
    from heckmanfa.errors import InputError, UnknownFeatureError

    try:
        refuse_absent(encoding.sources, table.frame.columns)
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error

    table.refuse_doubts([one for one in encoding.sources if one not in encoding.levels])
    for name in encoding.sources:
        # Where columns have types, a sign is none of the number's.
        given = table.untyped and table.frame[name].notna().any()
        if given and name in table.percent and name not in encoding.percent:
            raise InputError(
                f"column {quoted(name)} has per cent signs, and had none in the table of the fit; "
                "nobody can say whether 0.05 there is 5% here: write it as there, without signs"
            )
        if given and name in encoding.percent and name not in table.percent:
            values = to_numbers(table.frame[name], name)
            if np.nanmax(np.abs(values)) <= 1 < abs(encoding.means[name]):
                raise InputError(
                    f"column {quoted(name)} has no per cent signs, and had them in the table of "
                    f"the fit, where it was {encoding.means[name]:.3g}% on average; here it is at "
                    "most 1, as shares are: multiply it by 100, or write it with signs"
                )
    # The fit read 5% as 5, so plain numbers are on its scale where they are written as 5 is.
    plain = [
        f"{quoted(name)} has no per cent signs, as it had in the table of the fit: 5 was read as "
        "5%, and 0.05 as 0.05%."
        for name in encoding.percent
        if table.untyped and name not in table.percent and table.frame[name].notna().any()
    ]
    return encoding.transform(table.frame), tuple(plain)
