"""``heckmanfa predict``: a saved model on another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heckmanfa.cli.common import Force, saying

if TYPE_CHECKING:
    import pandas as pd

    from heckmanfa.tabular.model_file import Saved

__all__ = ["predict"]

KINDS = ("marginal", "selected", "unselected", "selection")


def predict(
    model: Annotated[Path, typer.Argument(help="A model file that fit --save wrote.")],
    data: Annotated[str, typer.Argument(help="A table with the columns of the fit.")],
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
        bool, typer.Option("--keep-columns", help="Keep the columns of the data beside.")
    ] = False,
    force: Force = False,
) -> None:
    """Predict for every row of a table, in its order.

    Example: heckmanfa predict wages.skops wages.csv --kind selected --out predictions.csv
    """
    with saying() as say:
        say("loading")
        from heckmanfa.errors import InputError
        from heckmanfa.features import nearest
        from heckmanfa.tabular.files import read_table, replacing, write_table
        from heckmanfa.tabular.model_file import load_model

        if kind not in KINDS:
            hint = nearest(kind, KINDS)
            raise InputError(f"--kind must be one of {', '.join(KINDS)}; got {kind!r}{hint}")
        if interval not in (None, "prediction", "confidence"):
            raise InputError(f"--interval must be prediction or confidence; got {interval!r}")
        if interval is not None and kind == "selection":
            raise InputError("--interval is about outcomes, but --kind is selection")
        saved = load_model(model)
        with replacing(out, force) as place:
            say(f"reading {Path(data).name}")
            frame = read_table(data)
            say(f"predicting {len(frame):,} rows")
            found = _predictions(saved, frame, kind, interval)
            if keep_columns:
                taken = [name for name in found.columns if name in frame.columns]
                if taken:
                    raise InputError(
                        f"the data has a column {taken[0]!r} already; rename it, or leave out "
                        "--keep-columns"
                    )
                found = frame.reset_index(drop=True).join(found)
            write_table(found, place)
    missing = int(found[f"predicted_{kind}"].isna().sum())
    typer.echo(f"{len(found):,} rows written to {out}")
    if missing:
        typer.echo(f"{missing:,} rows miss a feature, and have no prediction")


def _predictions(
    saved: Saved, frame: pd.DataFrame, kind: str, interval: str | None
) -> pd.DataFrame:
    """One row for each row of the table; empty where a feature is missing."""
    import numpy as np
    import pandas as pd

    X = saved.encoding.transform(frame)
    complete = X.notna().all(axis=1).to_numpy()
    found = pd.DataFrame({f"predicted_{kind}": np.full(len(X), np.nan)})
    if interval is not None:
        found["low"] = found["high"] = np.nan
    if not complete.any():
        return found
    rows = X[complete]
    if kind == "selection":
        found.loc[complete, f"predicted_{kind}"] = saved.model.predict_selection(rows)
    elif interval is None:
        found.loc[complete, f"predicted_{kind}"] = saved.model.predict(rows, kind=kind)
    else:
        values, ends = saved.model.predict(rows, kind=kind, return_interval=interval)
        found.loc[complete, [f"predicted_{kind}", "low", "high"]] = np.column_stack([values, ends])
    return found
