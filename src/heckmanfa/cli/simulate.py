"""``heckmanfa simulate``: a table of any size whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heckmanfa.cli.common import saying, tell
from heckmanfa.cli.options import Force
from heckmanfa.text.printable import quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from heckmanfa.datasets.simulation import Truth

    Columns = dict[str, NDArray[Any]]

__all__ = ["simulate"]

# A block has a seed of its own, and is a row group of a Parquet file.
_BLOCK = 100_000
# So many rows of a block are turned into columns at a time, which stay in the cache meanwhile.
_TURNED = 1024
_STEPS = 20


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
        int, typer.Option("--predicting", min=0, help="How many of them predict, too.")
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
    with saying() as say:
        say("loading")
        import numpy as np

        from heckmanfa.data.files.clashes import refuse_clashes, refuse_standard_output
        from heckmanfa.data.files.outputs import new_folder, outputs
        from heckmanfa.datasets.simulation import check_range, draw_truth
        from heckmanfa.errors import InputError

        refuse_standard_output(out)
        if files is None and out.suffix not in (".csv", ".parquet"):
            raise InputError(
                f"{shown(out)}: simulate writes .csv or .parquet; got {quoted(out.suffix)}"
            )
        if files is not None and files > rows:
            raise InputError(f"--files must be at most --rows ({rows}); got {files}")
        if n_predicting > n_features:
            raise InputError(
                f"--predicting must be at most --features ({n_features}); got {n_predicting}"
            )
        asked = {
            "rho": rho,
            "sigma": sigma,
            "selection_rate": selection_rate,
            "correlation": correlation,
        }
        for name, value in asked.items():
            check_range(name, value, f"--{name.replace('_', '-')}")
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
        writes = {"OUT": out, "--truth": truth}
        refuse_clashes({}, writes)
        if files is not None:
            del writes["OUT"]
        with outputs(writes, force=force) as places:
            if truth is not None:
                with places["--truth"].writing() as place:
                    place.write_text(known + "\n", encoding="utf-8")
            blocks = _blocks(made, rows, seed, say)
            if files is not None:
                with new_folder(out) as folder:
                    _write_parquet(blocks, _parts(folder, rows, files))
            else:
                with places["OUT"].writing() as place:
                    if out.suffix == ".csv":
                        _write_csv(blocks, place)
                    else:
                        _write_parquet(blocks, {place: rows})
    parts = "" if files is None else f"{files} {'files' if files > 1 else 'file'} in "
    tell(f"{rows:,} rows written to {parts}{shown(out)}")
    tell(known if truth is None else f"the truth written to {shown(truth)}")


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


def _blocks(truth: Truth, rows: int, seed: int, say: Callable[[str], None]) -> Iterator[Columns]:
    """Make the rows a block at a time, on threads; a block's numbers depend on its place alone."""
    from heckmanfa.data.rows import one_blas_thread
    from heckmanfa.data.threads import in_order

    starts = range(0, rows, _BLOCK)

    def make(start: int) -> Columns:
        return _block(truth, seed, start // _BLOCK, min(_BLOCK, rows - start))

    with one_blas_thread():
        for place, block in enumerate(in_order(make, starts)):
            if place % max(len(starts) // _STEPS, 1) == 0:
                say(f"{starts[place]:,} of {rows:,} rows")
            yield block


def _block(truth: Truth, seed: int, block: int, n: int) -> Columns:
    """Make the columns of one block; the outcome is NaN where a row is not selected."""
    import numpy as np

    from heckmanfa.datasets.simulation import draw_rows

    X, outcome, selected = draw_rows(truth, n, np.random.default_rng([seed, block]))
    turned = np.empty(X.shape[::-1])
    for start in range(0, n, _TURNED):
        turned[:, start : start + _TURNED] = X[start : start + _TURNED].T
    outcome[~selected] = np.nan
    return dict(zip(truth.feature_names, turned, strict=True)) | {"y": outcome}


def _write_csv(blocks: Iterator[Columns], path: Path) -> None:
    import pandas as pd

    for place, block in enumerate(blocks):
        frame = pd.DataFrame(block)
        frame.to_csv(path, index=False, mode="a" if place else "w", header=not place)


def _parts(folder: Path, rows: int, files: int) -> dict[Path, int]:
    """Name the files of a folder, and say how many rows each has."""
    digits = max(len(str(files - 1)), 3)
    return {
        folder / f"part-{place:0{digits}d}.parquet": rows * (place + 1) // files
        - rows * place // files
        for place in range(files)
    }


def _write_parquet(blocks: Iterator[Columns], files: dict[Path, int]) -> None:
    """Write the rows into files, of which each takes so many."""
    from heckmanfa.errors import MissingExtraError

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(
            "Parquet needs PyArrow, which is not installed: pip install 'heckmanfa[parquet]'"
        ) from error
    rest = None
    for path, rows in files.items():
        writer = None
        try:
            while rows:
                table = rest
                if table is None:
                    block = next(blocks)
                    arrays = {name: pa.array(one) for name, one in block.items()}
                    arrays["y"] = pa.array(block["y"], from_pandas=True)
                    table = pa.table(arrays)
                now = table.slice(0, rows)
                rest = table.slice(rows) if table.num_rows > rows else None
                rows -= now.num_rows
                # Random numbers neither repeat nor compress: trying to takes four times as long.
                writer = writer or pq.ParquetWriter(
                    path, table.schema, compression="none", use_dictionary=False
                )
                writer.write_table(now, row_group_size=_BLOCK)
        finally:
            if writer is not None:
                writer.close()
