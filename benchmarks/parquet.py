"""Time and memory of fits to Parquet files of any size beside pyarrow reading them once.

Simulated tables of twenty features, all of which select and ten predict, in files that
`heckmanfa simulate` makes where they are not there. A two-step fit reads the rows in passes, some
over a part of the rows; seconds for each pass are compared with the seconds that pyarrow needs to
read the same columns once, on all cores, without keeping them. Every measurement is a process of
its own; the two take turns. The largest size takes long and is not part of `make bench`:

    python -m benchmarks.parquet --folder /large/disk --rows 1000000 5000000 50000000
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
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

INSTALLED = ("heckmanfa", "numpy", "scipy", "pyarrow")
ROWS = (1_000_000, 5_000_000)
FEATURES = 20
ROUNDS = 2
MOST_READS, MOST_MEMORY, FLAT = 4.0, 2e9, 1.2
BEGIN = "<!-- figures of Parquet: made by `python -m benchmarks.parquet --out` -->"
END = "<!-- end of Parquet's figures -->"


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
    import pyarrow.parquet

    from heckmanfa import Heckman, scan_parquet
    from heckmanfa.datasets import load_mroz

    # As for the others, what is loaded on first use is not measured.
    assert pyarrow.parquet
    mroz = load_mroz()
    Heckman(["educ"]).fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with counted_passes() as passes:
        start = time.perf_counter()
        rows = scan_parquet(path, "y")
        model = Heckman(truth["predict"]).fit(rows)
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "rows": len(rows),
        "passes": sum(passes.values()),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rho": model.rho_,
    }


MEASURES = {"read": _read, "scan": _scan, "fit": _fit}


def _measure(what: str, path: Path) -> dict[str, Any]:
    return dict(asked("parquet", "--measure", what, "--file", str(path)))


def _best(path: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """The quickest of some rounds of each measure."""
    runs: dict[str, list[dict[str, Any]]] = {what: [] for what in MEASURES}
    for _ in range(rounds):
        for what, found in runs.items():
            found.append(_measure(what, path))
    return {what: min(found, key=lambda run: run["seconds"]) for what, found in runs.items()}


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
    largest = max(runs)
    fit, read = runs[largest]["fit"], runs[largest]["read"]
    ratio = fit["seconds"] / fit["passes"] / read["seconds"]
    each = {rows: run["fit"]["seconds"] / rows for rows, run in runs.items()}
    spread = max(each.values()) / min(each.values())
    lines = {
        "machine": machine(others, INSTALLED),
        "notes": [
            f"Seconds are the best of {options.rounds} rounds. `read` is pyarrow's "
            "`read_row_group` of all columns, one row group after another; `scan` is its dataset "
            "scanner. A pass over a part of the rows counts as that part. MB are the most that "
            "the process of the fit had at a time, Python and its libraries included.",
        ],
        "agreement": [
            f"rho is {run['fit']['rho']:.3f} in {rows:,} rows; it is 0.5 in the truth."
            for rows, run in runs.items()
        ],
        "targets": [
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
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
