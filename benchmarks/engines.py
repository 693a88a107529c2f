"""Time and memory of fits through a Polars LazyFrame and DuckDB beside the same rows as Parquet.

A simulated table of four features, all of which select and two predict, is one Parquet file. A
second file has the same rows and a tenth more, and both engines leave out the additional ones with
a filter of their own; pyarrow does so through a dataset. Every measurement is a process of its own;
they take turns. The size that counts takes long and 5 GB of disk, and is not part of `make bench`:

    python -m benchmarks.engines --rows 50000000 --out docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Figures, OtherLoad, asked, judged, machine, publish, simulated

INSTALLED = ("heckmanfa", "numpy", "scipy", "pyarrow", "polars", "duckdb")
ROWS = 1_000_000
FEATURES = 4
ROUNDS = 2
MORE = 10
"""one more row for so many"""
MOST_MEMORY, MOST_RATIO = 2e9, 2.0
ENGINES = {
    "parquet": "plain Parquet",
    "polars": "Polars LazyFrame, filter",
    "duckdb": "DuckDB relation, filter",
    "dataset": "pyarrow Dataset, filter",
}
JUDGED = ("polars", "duckdb")
BEGIN = "<!-- figures of engines: made by `python -m benchmarks.engines --out` -->"
END = "<!-- end of the engines' figures -->"


def _with_more(path: Path, larger: Path) -> Path:
    """Write the rows with a column that tells them from additional ones, after each row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if larger.exists():
        return larger
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow.append(pa.field("wave", pa.int8()))
        with pq.ParquetWriter(larger, schema) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                for wave, rows in ((1, table), (2, table.slice(0, len(table) // MORE))):
                    column = pa.repeat(pa.scalar(wave, pa.int8()), len(rows))
                    writer.write_table(rows.append_column("wave", column).cast(schema))
    return larger


def _source(engine: str, path: Path) -> Any:
    larger = path.with_name(f"more-{path.name}")
    if engine == "parquet":
        return path
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(larger).filter(pl.col("wave") == 1)
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().read_parquet(str(larger)).filter("wave = 1")
    import pyarrow.dataset as ds

    return ds.dataset(larger).filter(ds.field("wave") == 1)


def _fit(engine: str, path: Path) -> dict[str, Any]:
    """Seconds of a two-step fit, and the most memory that its process had."""
    from heckmanfa import Heckman, scan
    from heckmanfa.data.scan.arrow_rows import ArrowRows
    from heckmanfa.datasets import load_mroz

    # What is loaded on first use is not measured.
    mroz = load_mroz()
    Heckman(["educ"]).fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    truth = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    source = _source(engine, path)
    before = os.times()
    start = time.perf_counter()
    rows = scan(source, "y", [f"x{index}" for index in range(FEATURES)])
    model = Heckman(truth["predict"]).fit(rows)
    seconds = time.perf_counter() - start
    after = os.times()
    assert isinstance(rows, ArrowRows)
    table = model.tidy()
    return {
        "seconds": seconds,
        "cpu": after.user + after.system - before.user - before.system,
        "rows": rows.n_rows,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "estimates": table["estimate"].tolist(),
        "errors": table["std_error"].tolist(),
        "stable": rows.order_is_stable,
    }


def _distance(run: dict[str, Any], plain: dict[str, Any]) -> float:
    """The largest difference of two fits' estimates, in standard errors."""
    together = zip(run["estimates"], plain["estimates"], plain["errors"], strict=True)
    return max(abs(mine - theirs) / error for mine, theirs, error in together if error)


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where tables are kept; else they are not")
    parser.add_argument("--measure", choices=list(ENGINES))
    parser.add_argument("--file", type=Path, help="what to measure")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_fit(options.measure, options.file)))
        return
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as spare:
        folder = options.folder or Path(spare)
        folder.mkdir(exist_ok=True)
        path = simulated(folder / f"rows-{options.rows}.parquet", options.rows, FEATURES)
        _with_more(path, path.with_name(f"more-{path.name}"))
        load = OtherLoad()
        runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
        for _ in range(options.rounds):
            for engine, found in runs.items():
                found.append(asked("engines", "--measure", engine, "--file", str(path)))
        others = load.share()
    best = {engine: min(found, key=lambda run: run["seconds"]) for engine, found in runs.items()}
    plain = best["parquet"]
    ratios = {engine: run["seconds"] / plain["seconds"] for engine, run in best.items()}
    memory = {engine: max(run["memory"] for run in found) for engine, found in runs.items()}
    rows = [
        (
            words,
            f"{best[engine]['seconds']:.1f}",
            f"{best[engine]['cpu']:.1f}",
            f"{ratios[engine]:.2f}",
            f"{memory[engine] / 1e6:,.0f}",
            f"{_distance(best[engine], plain):.0e}",
        )
        for engine, words in ENGINES.items()
    ]
    figures = Figures(
        f"Two-step fits to {options.rows:,} rows of {FEATURES} features",
        ("rows from", "fit, s", "processor, s", "ratio", "MB", "SE apart"),
        (0,),
        rows,
    )
    lines = {
        "machine": machine(others, INSTALLED),
        "notes": [
            f"Rounds: {options.rounds}. Seconds are the best of them, and MB the most that a "
            "process of any round had at a time, Python and all libraries included. Engines read "
            "a file with "
            f"a row more for every {MORE}, and leave these out.",
        ],
        "agreement": [
            f"All fits have {plain['rows']:,} rows; the last column is the largest difference "
            "between an estimate and that of plain Parquet, in standard errors."
        ],
        "targets": [
            judged(
                f"{ENGINES[engine]}: below {MOST_MEMORY / 1e9:g} GB, and at most "
                f"{MOST_RATIO:g} times the time of plain Parquet",
                memory[engine] < MOST_MEMORY and ratios[engine] <= MOST_RATIO,
                f"{memory[engine] / 1e6:,.0f} MB, {ratios[engine]:.2f} times",
            )
            for engine in JUDGED
        ],
    }
    assert len({run["rows"] for run in best.values()}) == 1
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
