"""Time of a fit to the partitions of a Dask DataFrame, with one worker process and with two.

Four million rows of twenty features, made on the workers and persisted there. Every measurement is
a process of its own with a cluster of its own; the client and Dask's scheduler share its process,
whose processor time is reported separately. `python -m benchmarks.dask_workers` takes a minute or
two.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common import Figures, OtherLoad, judged, machine, publish, quickest

INSTALLED = ("heckmanfa", "numpy", "scipy", "pandas", "dask", "distributed")
PARTS, ROWS, FEATURES, PREDICTING = 16, 500_000, 20, 10
ROUNDS, FITS = 2, 3
LEAST_GAIN = 1.6
NAMES = [f"x{position}" for position in range(FEATURES)]
BEGIN = "<!-- figures of Dask: made by `python -m benchmarks.dask_workers --out` -->"
END = "<!-- end of Dask's figures -->"


def partition(number: int, rows: int = ROWS) -> pd.DataFrame:
    """Simulate the rows of a partition from its number alone."""
    random = np.random.default_rng(number)
    X = random.standard_normal((rows, FEATURES))
    u, e = random.standard_normal((2, rows))
    outcome = 1.0 + X[:, :PREDICTING].sum(axis=1) + 0.5 * u + e
    outcome[0.3 + 0.3 * X.sum(axis=1) + u <= 0] = np.nan
    return pd.DataFrame(X, columns=NAMES).assign(y=outcome)


def _measure(workers: int) -> dict[str, Any]:
    """Seconds of the quickest fit, the client's processor time in it, and its digits."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    from heckmanfa import Heckman

    runs = []
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
        ) as cluster,
        Client(cluster),
    ):
        table = dd.from_map(partition, range(PARTS), meta=partition(0, rows=1).iloc[:0]).persist()
        wait(table)
        for _ in range(FITS):
            start, processor = time.perf_counter(), time.process_time()
            model = Heckman(NAMES[:PREDICTING]).fit(table[NAMES], table["y"])
            runs.append((time.perf_counter() - start, time.process_time() - processor))
        seconds, client = min(runs)
        bits = [float(estimate).hex() for estimate in model.tidy()["estimate"]]
    return {"seconds": seconds, "client": client, "bits": bits}


def _best(workers: int) -> dict[str, Any]:
    """The round with the quickest fit."""
    return quickest("dask_workers", "--measure", str(workers), rounds=ROUNDS)


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", type=int, help="worker processes")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_measure(options.measure)))
        return
    start, load = time.perf_counter(), OtherLoad()
    one, two = _best(1), _best(2)
    gain = one["seconds"] / two["seconds"]
    figures = Figures(
        f"Dask, n = {PARTS * ROWS:,}, K = {FEATURES}: a two-step fit to {PARTS} partitions",
        ("workers", "seconds", "client and scheduler, seconds", "× two workers"),
        (),
        [
            (
                str(workers),
                f"{run['seconds']:.2f}",
                f"{run['client']:.2f}",
                f"{run['seconds'] / two['seconds']:.2f}",
            )
            for workers, run in ((1, one), (2, two))
        ],
    )
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            f"Seconds are those of the best of {ROUNDS} rounds of {FITS} fits, on workers of one "
            "thread each. The client and the scheduler are a third process on the same cores; "
            "theirs is processor time.",
        ],
        "agreement": [
            "Results are identical on one and on two workers."
            if one["bits"] == two["bits"]
            else "RESULTS DISAGREE between one and two workers."
        ],
        "targets": [
            judged(
                f"two workers are at least {LEAST_GAIN:g} times as fast as one",
                gain >= LEAST_GAIN,
                f"{gain:.2f} times",
            ),
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
