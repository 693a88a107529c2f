"""The work of ``heckmanfa simulate``: rows are made and written a block at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.cli.commands import SimulateOptions
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.arrays import Floats
from heckmanfa.data.files.outputs import new_folder, outputs
from heckmanfa.data.files.paths import refuse_clashes, refuse_standard_output
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.data.scan.parquet_files import arrow
from heckmanfa.data.threads import in_order
from heckmanfa.datasets.simulation import CUTS, Truth, draw_rows, draw_truth, observed_as
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import plural

Columns = dict[str, NDArray[Any]]

TREATED = "d"
"""the column that says who is treated"""
_EFFECT = 1.0
# A block has a seed of its own, and is a row group of a Parquet file.
BLOCK = 100_000
# Rows of a block that are transposed at a time, which stay in the cache meanwhile.
_TRANSPOSED = 1024
_STEPS = 20


def run(options: SimulateOptions) -> None:
    """Write the table and its truth."""
    out, rows, seed, files = options.out, options.rows, options.seed, options.files
    refuse_standard_output(out)
    _check_counts(options)
    _check_treatment(options)
    observe = observed_as(options.outcome_kind, options.sigma)
    model = draw_truth(
        np.random.default_rng(seed),
        options.n_features,
        options.n_predicting,
        rho=options.rho,
        sigma=options.sigma,
        selection_rate=options.selection_rate,
        correlation=options.correlation,
    )
    known, truth = json.dumps(_truth_as_json(model, options), indent=1), options.truth
    refuse_clashes({}, {"OUT": out, "--truth": truth})
    writes = {"OUT": out if files is None else None, "--truth": truth}
    with saying() as say, outputs(writes, force=options.force) as places:
        if "--truth" in places:
            with places["--truth"].writing() as place:
                place.write_text(known + "\n", encoding="utf-8")
        effect = None if options.model is None else _effect(options)
        blocks = _blocks(model, rows, seed, say, observe, effect)
        if files is not None:
            with new_folder(out) as folder:
                _write_parquet(blocks, _file_rows(folder, rows, files))
        else:
            with places["OUT"].writing() as place:
                if out.suffix == ".csv":
                    _write_csv(blocks, place)
                else:
                    _write_parquet(blocks, {place: rows})
    where = "" if files is None else f"{plural(files, 'file')} in "
    tell(f"{rows:,} rows written to {where}{shown(out)}")
    tell(known if truth is None else f"the truth written to {shown(truth)}")


def _check_counts(options: SimulateOptions) -> None:
    """Refuse an unknown ending, and counts that contradict each other."""
    out, files, rows = options.out, options.files, options.rows
    if files is None and out.suffix not in (".csv", ".parquet"):
        raise InputError(
            f"{shown(out)}: simulate writes .csv or .parquet; got {quoted(out.suffix)}"
        )
    if files is not None and files > rows:
        raise InputError(f"--files must be at most --rows ({rows}); got {files}")
    if options.n_predicting > options.n_features:
        raise InputError(
            f"--predicting must be at most --features ({options.n_features}); got "
            f"{options.n_predicting}"
        )


def _check_treatment(options: SimulateOptions) -> None:
    """Refuse what a treatment does not have, and what only it has."""
    if options.model not in (None, "treatment"):
        raise InputError(f"--model must be treatment; got {quoted(options.model)}")
    if options.model is None and options.effect is not None:
        raise InputError("--effect is that of a treatment: add --model treatment")
    if options.model is not None and options.outcome_kind != "linear":
        raise InputError(
            f"--outcome-kind {shown(options.outcome_kind)} is not for treatments, whose outcomes "
            "are amounts: leave it out"
        )


def _effect(options: SimulateOptions) -> float:
    """Return the effect of treatment on everyone."""
    return _EFFECT if options.effect is None else options.effect


def _truth_as_json(truth: Truth, options: SimulateOptions) -> dict[str, Any]:
    """Return the parameters that made a table, in plain types."""
    names, kind = truth.feature_names, options.outcome_kind
    predicts = dict(zip(names, truth.support, strict=True))
    return {
        "rows": options.rows,
        "seed": options.seed,
        "outcome": "y",
        **({} if kind == "linear" else {"outcome_kind": kind}),
        **({"cuts": list(CUTS)} if kind == "ordered" else {}),
        **({} if options.model is None else {"treated": TREATED, "effect": _effect(options)}),
        "predict": [name for name in names if predicts[name]],
        "only_select": [name for name in names if not predicts[name]],
        "intercept": truth.intercept,
        "coef": dict(zip(names, truth.coef.tolist(), strict=True)),
        "selection_intercept": truth.selection_intercept,
        "selection_coef": dict(zip(names, truth.selection_coef.tolist(), strict=True)),
        "rho": truth.rho,
        "sigma": truth.sigma,
    }


def _blocks(
    truth: Truth,
    rows: int,
    seed: int,
    say: Callable[[str], None],
    observe: Callable[[Floats], Floats],
    effect: float | None,
) -> Iterator[Columns]:
    """Make the rows a block at a time, on threads; a block depends on its position alone.

    With an ``effect`` everyone has an outcome, and those who would be selected are treated.
    """
    starts = range(0, rows, BLOCK)

    def make(start: int) -> Columns:
        n = min(BLOCK, rows - start)
        if effect is not None:
            return make_treated_block(truth, seed, start // BLOCK, n, effect)
        block = make_block(truth, seed, start // BLOCK, n)
        return block | {"y": observe(block["y"])}

    with one_blas_thread():
        for index, block in enumerate(in_order(make, starts)):
            if index % max(len(starts) // _STEPS, 1) == 0:
                say(f"{starts[index]:,} of {rows:,} rows")
            yield block


def make_block(truth: Truth, seed: int, block: int, n: int) -> Columns:
    """Make the columns of one block; the outcome is NaN in rows that are not selected."""
    columns, outcome, selected = _drawn(truth, seed, block, n)
    outcome[~selected] = np.nan
    return columns | {"y": outcome}


def make_treated_block(truth: Truth, seed: int, block: int, n: int, effect: float) -> Columns:
    """Make those of a treatment, which who would be selected has; everyone has an outcome."""
    columns, outcome, treated = _drawn(truth, seed, block, n)
    return columns | {TREATED: treated.astype(np.int64), "y": outcome + effect * treated}


def _drawn(truth: Truth, seed: int, block: int, n: int) -> tuple[Columns, Floats, Mask]:
    """Draw features by name, the outcome of everyone, and who is selected."""
    X, outcome, selected = draw_rows(truth, n, np.random.default_rng([seed, block]))
    columns = np.empty(X.shape[::-1])
    for start in range(0, n, _TRANSPOSED):
        columns[:, start : start + _TRANSPOSED] = X[start : start + _TRANSPOSED].T
    return dict(zip(truth.feature_names, columns, strict=True)), outcome, selected


def _write_csv(rows: Iterator[Columns], path: Path) -> None:
    """Write all rows to a CSV file."""
    for index, block in enumerate(rows):
        frame = pd.DataFrame(block)
        frame.to_csv(path, index=False, mode="a" if index else "w", header=not index)


def _file_rows(folder: Path, rows: int, files: int) -> dict[Path, int]:
    """Return the number of rows of each file in a folder of so many files."""
    digits = max(len(str(files - 1)), 3)
    return {
        folder / f"part-{index:0{digits}d}.parquet": rows * (index + 1) // files
        - rows * index // files
        for index in range(files)
    }


def _write_parquet(rows: Iterator[Columns], files: dict[Path, int]) -> None:
    """Write the given number of rows to each Parquet file."""
    pa, pq = arrow()
    rest = None
    for path, n_rows in files.items():
        writer = None
        try:
            while n_rows:
                table = rest
                if table is None:
                    block = next(rows)
                    arrays = {name: pa.array(values) for name, values in block.items()}
                    arrays["y"] = pa.array(block["y"], from_pandas=True)
                    table = pa.table(arrays)
                now = table.slice(0, n_rows)
                rest = table.slice(n_rows) if table.num_rows > n_rows else None
                n_rows -= now.num_rows
                # Random numbers neither repeat nor compress: trying to takes four times as long.
                writer = writer or pq.ParquetWriter(
                    path, table.schema, compression="none", use_dictionary=False
                )
                writer.write_table(now, row_group_size=BLOCK)
        finally:
            if writer is not None:
                writer.close()
