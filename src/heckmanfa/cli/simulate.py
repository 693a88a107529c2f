"""``heckmanfa simulate``: a table of any size whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heckmanfa.cli.common import Force, saying

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from heckmanfa.datasets._simulate import Truth

__all__ = ["simulate"]

_BLOCK = 100_000


def simulate(
    out: Annotated[Path, typer.Argument(help="Where to write the table: .csv or .parquet.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 2000,
    n_features: Annotated[
        int, typer.Option("--features", min=1, help="How many features, all of which select.")
    ] = 10,
    n_predicting: Annotated[
        int, typer.Option("--predicting", min=0, help="How many of them predict, too.")
    ] = 5,
    rho: Annotated[float, typer.Option(help="Correlation of the errors.")] = 0.5,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the outcome's error.")] = 1.0,
    selection_rate: Annotated[float, typer.Option(help="Share of rows with an outcome.")] = 0.5,
    correlation: Annotated[float, typer.Option(help="Correlation of the features.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the truth and of the rows.")] = 0,
    truth: Annotated[
        Path | None, typer.Option(help="Where to write the truth as JSON; printed unless given.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a simulated table: features, an outcome y that is empty where not selected, the truth.

    Rows are made and written a block at a time, so that the table may be larger than memory.

    Example: heckmanfa simulate wages.csv --rows 10000 --features 8 --predicting 3
    """
    with saying() as say:
        say("loading")
        from contextlib import ExitStack

        import numpy as np

        from heckmanfa.datasets._simulate import draw_truth
        from heckmanfa.errors import InputError
        from heckmanfa.tabular.files import replacing

        if out.suffix not in (".csv", ".parquet"):
            raise InputError(f"{out}: simulate writes .csv or .parquet; got {out.suffix!r}")
        if n_predicting > n_features:
            raise InputError(
                f"--predicting must be at most --features ({n_features}); got {n_predicting}"
            )
        made = draw_truth(
            np.random.default_rng(seed),
            n_features,
            n_predicting,
            rho=rho,
            sigma=sigma,
            selection_rate=selection_rate,
            correlation=correlation,
        )
        known = json.dumps(_as_json(made, rows, seed), indent=1)
        with ExitStack() as files:
            place = files.enter_context(replacing(out, force))
            if truth is not None:
                files.enter_context(replacing(truth, force)).write_text(known + "\n")
            blocks = _blocks(made, rows, seed, say)
            (_write_csv if out.suffix == ".csv" else _write_parquet)(blocks, place)
    typer.echo(f"{rows:,} rows written to {out}")
    typer.echo(known if truth is None else f"the truth written to {truth}")


def _as_json(truth: Truth, rows: int, seed: int) -> dict[str, Any]:
    names = truth.feature_names
    return {
        "rows": rows,
        "seed": seed,
        "outcome": "y",
        "predict": [name for name, one in zip(names, truth.support, strict=True) if one],
        "only_select": [name for name, one in zip(names, truth.support, strict=True) if not one],
        "intercept": truth.intercept,
        "coef": dict(zip(names, truth.coef.tolist(), strict=True)),
        "selection_intercept": truth.selection_intercept,
        "selection_coef": dict(zip(names, truth.selection_coef.tolist(), strict=True)),
        "rho": truth.rho,
        "sigma": truth.sigma,
    }


def _blocks(truth: Truth, rows: int, seed: int, say: Any) -> Iterator[pd.DataFrame]:
    """Make the rows a block at a time; each block's numbers depend on its place alone."""
    import numpy as np
    import pandas as pd

    for block, start in enumerate(range(0, rows, _BLOCK)):
        say(f"{start:,} of {rows:,} rows")
        rng = np.random.default_rng([seed, block])
        X, outcome, selected = truth.rows(min(_BLOCK, rows - start), rng)
        frame = pd.DataFrame(X, columns=list(truth.feature_names))
        yield frame.assign(y=np.where(selected, outcome, np.nan))


def _write_csv(blocks: Iterator[pd.DataFrame], path: Path) -> None:
    for place, block in enumerate(blocks):
        block.to_csv(path, index=False, mode="a" if place else "w", header=not place)


def _write_parquet(blocks: Iterator[pd.DataFrame], path: Path) -> None:
    from heckmanfa.errors import MissingExtraError

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(
            "Parquet needs PyArrow, which is not installed: pip install 'heckmanfa[parquet]'"
        ) from error
    writer = None
    try:
        for block in blocks:
            table = pa.Table.from_pandas(block, preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
