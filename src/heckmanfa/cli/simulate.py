"""``heckmanfa simulate``: a table of any size whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heckmanfa.cli.common import dispatch
from heckmanfa.cli.options import Force


def simulate(
    out: Annotated[
        Path,
        typer.Argument(help="Where to write the table: .csv or .parquet; a folder with --files."),
    ],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 2000,
    n_features: Annotated[
        int, typer.Option("--features", min=1, help="How many features, all of which select.")
    ] = 10,
    n_predicting: Annotated[
        int, typer.Option("--predicting", min=0, help="How many of them also predict.")
    ] = 5,
    rho: Annotated[float, typer.Option(help="Correlation of the errors.")] = 0.5,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the outcome's error.")] = 1.0,
    selection_rate: Annotated[float, typer.Option(help="Share of rows with an outcome.")] = 0.5,
    correlation: Annotated[float, typer.Option(help="Correlation of the features.")] = 0.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random numbers: the truth and the rows.")
    ] = 0,
    files: Annotated[
        int | None,
        typer.Option(min=1, help="Write so many Parquet files into a new folder, not one file."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="Where to write the truth as JSON; printed unless given.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a simulated table: features, an outcome y that is empty where not selected, the truth.

    Rows are made and written a block at a time, so the table may be larger than memory. They
    are the same in one file and in several, and on any number of threads.

    Example: heckmanfa simulate wages.csv --rows 10000 --features 8 --predicting 3
    """
    dispatch("simulate", locals())
