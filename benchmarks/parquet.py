"""Time and memory of fits to Parquet files of any size beside pyarrow reading them once.

Simulated tables of twenty features, all of which select and ten predict, in files that
`heckmanfa simulate` makes where they are not there. A two-step fit reads the rows in passes, some
over a part of the rows; seconds for each pass are compared with the seconds that pyarrow needs to
read the same columns once, on all cores, without keeping them. Every measurement is a process of
its own; the two take turns. The rows of the smallest table are also fitted from Hive folders as
pandas writes them, in row groups of 2,000 rows, and from one file with large row groups, in
processor time. The largest size takes long and is not part of `make bench`:

    python -m benchmarks.parquet --folder /large/disk --rows 1000000 5000000 50000000
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import (
    Figures,
    OtherLoad,
    asked,
    counted_passes,
    judged,
    machine,
    publish,
    simulated,
)

INSTALLED = ("heckmanfa", "numpy", "scipy", "pyarrow", "polars")
ROWS = (1_000_000, 5_000_000)
FEATURES = 20
ROUNDS = 2
FOLDERS = 16
"""pandas writes 32,768 rows at a time, so about 2,000 to each folder"""
MOST_READS, MOST_MEMORY, FLAT, MOST_SMALL = 4.0, 2e9, 1.2, 1.5
BEGIN = "<!-- figures of Parquet: made by `python -m benchmarks.parquet --out` -->"
END = "<!-- end of Parquet's figures -->"

Measure = Callable[[Path], dict[str, Any]]


def _read(path: Path) -> dict[str, Any]:
    """Seconds in which pyarrow reads all columns, one row group after another, on all cores."""
    import pyarrow.parquet as pq

    start, rows = time.perf_counter(), 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows += file.read_row_group(group, use_threads=True).num_rows
    return {"seconds": time.perf_counter() - start, "rows": rows}


def _scan(path: Path) -> dict[str, Any]:
    """Seconds of a scan of the file as a dataset of pyarrow, batch by batch."""
    import pyarrow.dataset as ds

    start = time.perf_counter()
    batches = ds.dataset(path).scanner(fragment_readahead=1).to_batches()
    rows = sum(batch.num_rows for batch in batches)
    return {"seconds": time.perf_counter() - start, "rows": rows}


def _fit(path: Path) -> dict[str, Any]:
    """Seconds and passes of a two-step fit, and the most memory that its process had."""
    from heckmanfa import scan_parquet

    return _fitted(path, lambda: scan_parquet(path, "y"))


def _fit_lazy(path: Path) -> dict[str, Any]:
    """The same of a fit to a lazy frame of Polars, which reads the files."""
    import polars as pl

    from heckmanfa import scan

    return _fitted(path, lambda: scan(pl.scan_parquet(path, hive_partitioning=True), "y"))


def _fitted(path: Path, scanned: Callable[[], Any]) -> dict[str, Any]:
    import pyarrow.parquet

    from heckmanfa import Heckman
    from heckmanfa.datasets import load_mroz

    # As for the others, what is loaded on first use is not measured.
    assert pyarrow.parquet
    mroz = load_mroz()
    Heckman(["educ"]).fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with counted_passes() as passes:
        start, used = time.perf_counter(), time.process_time()
        model = Heckman(truth["predict"]).fit(scanned())
        seconds, used = time.perf_counter() - start, time.process_time() - used
    return {
        "seconds": seconds,
        "processor": used,
        "rows": model.n_obs_,
        "passes": sum(passes.values()),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rho": model.rho_,
    }


SIZED: dict[str, Measure] = {"read": _read, "scan": _scan, "fit": _fit}
MEASURES = {**SIZED, "lazy": _fit_lazy}


def _measure(what: str, path: Path) -> dict[str, Any]:
    return dict(asked("parquet", "--measure", what, "--file", str(path)))


def _best(path: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """The quickest of some rounds of each measure."""
    runs: dict[str, list[dict[str, Any]]] = {what: [] for what in SIZED}
    for _ in range(rounds):
        for what, found in runs.items():
            found.append(_measure(what, path))
    return {what: min(found, key=lambda run: run["seconds"]) for what, found in runs.items()}


def _in_folders(path: Path) -> tuple[Path, Path]:
    """Write a table to Hive folders with small row groups, and its rows to one file."""
    import numpy as np
    import pandas as pd

    folder = path.with_name(f"hive-{path.stem}")
    one = folder.with_suffix(".parquet")
    if not one.exists():
        table = pd.read_parquet(path)
        table["folder"] = np.arange(len(table)) % FOLDERS
        shutil.rmtree(folder, ignore_errors=True)
        table.to_parquet(folder, partition_cols=["folder"])
        shutil.copy(path.with_suffix(".json"), folder.with_suffix(".json"))
        table.sort_values("folder", kind="stable").to_parquet(one, index=False)
    return folder, one


def _small_groups(path: Path, rounds: int) -> tuple[float, float, float]:
    """Processor seconds of fits to Hive folders, to one file, and to folders that Polars reads."""
    folder, one = _in_folders(path)
    asked_for = (("fit", folder), ("fit", one), ("lazy", folder))
    runs = [[_measure(*each)["processor"] for each in asked_for] for _ in range(rounds)]
    small, large, lazy = map(min, zip(*runs, strict=True))
    return small, large, lazy


def _row(rows: int, run: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    fit = run["fit"]
    each = fit["seconds"] / fit["passes"]
    return (
        f"{rows:,}",
        f"{run['read']['seconds']:.1f}",
        f"{run['scan']['seconds']:.1f}",
        f"{fit['seconds']:.1f}",
        f"{fit['passes']:.2f}",
        f"{each / run['read']['seconds']:.2f}",
        f"{each / run['scan']['seconds']:.2f}",
        f"{1e6 * fit['seconds'] / rows:.2f}",
        f"{fit['memory'] / 1e6:,.0f}",
    )


def _targets(
    runs: dict[int, dict[str, dict[str, Any]]], small: float, large: float, lazy: float
) -> list[str]:
    """Say which targets are met."""
    largest = max(runs)
    fit, read = runs[largest]["fit"], runs[largest]["read"]
    ratio = fit["seconds"] / fit["passes"] / read["seconds"]
    each = {rows: run["fit"]["seconds"] / rows for rows, run in runs.items()}
    spread = max(each.values()) / min(each.values())
    return [
        judged(
            f"a pass takes at most {MOST_READS:g} times what pyarrow takes to read the rows",
            ratio <= MOST_READS,
            f"{ratio:.2f} times at {largest:,} rows",
        ),
        judged(
            f"the process stays below {MOST_MEMORY / 1e9:g} GB",
            fit["memory"] < MOST_MEMORY,
            f"{fit['memory'] / 1e6:,.0f} MB at {largest:,} rows",
        ),
        judged(
            f"time per row is the same within {100 * (FLAT - 1):.0f} %",
            spread <= FLAT,
            f"{min(runs):,} to {largest:,} rows: {100 * (spread - 1):.0f} % apart",
        ),
        judged(
            f"Hive folders with small row groups take at most {MOST_SMALL:g} times the "
            "processor time of one file",
            small <= MOST_SMALL * large,
            f"{small / large:.2f} times, and {small / lazy:.2f} times that with Polars",
        ),
    ]


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS), help="sizes")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where tables are kept; else they are not")
    parser.add_argument("--measure", choices=list(MEASURES))
    parser.add_argument("--file", type=Path, help="what to measure")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(MEASURES[options.measure](options.file)))
        return
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as spare:
        folder = options.folder or Path(spare)
        folder.mkdir(exist_ok=True)
        paths = {
            rows: simulated(folder / f"rows-{rows}.parquet", rows, FEATURES)
            for rows in sorted(options.rows)
        }
        load = OtherLoad()
        runs = {rows: _best(path, options.rounds) for rows, path in paths.items()}
        smallest = min(paths)
        small, large, lazy = _small_groups(paths[smallest], options.rounds)
        others = load.share()
    figures = Figures(
        f"Two-step fits to Parquet files of {FEATURES} features",
        (
            "rows",
            "read, s",
            "scan, s",
            "fit, s",
            "passes",
            "pass / read",
            "pass / scan",
            "µs per row",
            "MB",
        ),
        (),
        [_row(rows, run) for rows, run in runs.items()],
    )
    lines = {
        "machine": machine(others, INSTALLED),
        "notes": [
            f"Seconds are the best of {options.rounds} rounds. `read` is pyarrow's "
            "`read_row_group` of all columns, one row group after another; `scan` is its dataset "
            "scanner. A pass over a part of the rows counts as that part. MB are the most that "
            "the process of the fit had at a time, Python and its libraries included.",
            f"The {smallest:,} rows in {FOLDERS} Hive folders, as `DataFrame.to_parquet"
            "(partition_cols=…)` writes them in row groups of about 2,000 rows: "
            f"{small:.2f} s of processor time. In one file with large row groups: {large:.2f} s. "
            f"The folders as a lazy frame of Polars: {lazy:.2f} s.",
        ],
        "agreement": [
            f"rho is {run['fit']['rho']:.3f} in {rows:,} rows; it is 0.5 in the truth."
            for rows, run in runs.items()
        ],
        "targets": _targets(runs, small, large, lazy),
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
