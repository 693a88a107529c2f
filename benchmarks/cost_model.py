"""The cost model of docs/how_far.md: constants measured here, predictions checked at three sizes.

    python -m benchmarks.cost_model [--out docs/how_far.md] [--folder WHERE]

Constants are of one core: seconds per byte to decode Parquet into blocks, and seconds per row of
each block function as a + b K + c K^2, fitted to blocks of several widths in memory. One more says
how well two threads share the work, from fits in memory on one and on two. These constants and the
number of passes predict the time of a two-step fit from files. The prediction is compared with fits
of three sizes, and then made for sizes that do not fit here. The other program is pyarrow, which
reads the same columns in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import (
    OtherLoad,
    asked,
    counted_passes,
    machine,
    markdown_table,
    simulated,
    span,
    write,
)

INSTALLED = ("heckmanfa", "numpy", "scipy", "pyarrow")
WIDTHS = (5, 10, 20, 40, 80)
BLOCK_ROWS, ROUNDS = 2**17, 3
CHECKED = ((1_000_000, 20), (4_000_000, 20), (4_000_000, 60), (16_000_000, 20))
CORES = 2
BEGIN = "<!-- figures of the cost model: made by `python -m benchmarks.cost_model --out` -->"
END = "<!-- end of the cost model's figures -->"


@dataclass(frozen=True)
class Costs:
    """Seconds on one core."""

    a_byte: float
    """to read and decode a byte of a float64 column of a Parquet file, and put it into a block"""
    counting: list[float]
    """a row: constant, times K, times K^2"""
    probit: list[float]
    moments: list[float]
    """a selected row"""
    sharing: float
    """of what two cores could do, the share that two threads do"""

    def row(self, what: str, k: int) -> float:
        return float(np.dot(getattr(self, what), [1.0, k, k * k]))


def measure() -> dict[str, Any]:
    """Constants of this machine, on one thread."""
    from heckmanfa import compress
    from heckmanfa.data.row_parts import _CountTask
    from heckmanfa.data.row_sources import Chunk
    from heckmanfa.datasets import make_selection
    from heckmanfa.model.moments import _moment_terms
    from heckmanfa.model.probit import _probit_terms

    seconds: dict[str, list[float]] = {"counting": [], "probit": [], "moments": []}
    for k in WIDTHS:
        data = make_selection(BLOCK_ROWS, k, k // 2, random_state=0)
        rows = compress(data.X, data.y).rows
        probit = compress(data.X[:20_000], data.y[:20_000]).probit
        columns = list(range(k))
        counting = _CountTask(np.ones(k, dtype=bool), False)

        def counted(block: Any, task: Any = counting) -> Any:
            return task(0, [Chunk(block.features, block.outcome, None, None, None, 0)])

        def best(function: Any, *args: Any, rows: Any = rows, columns: Any = columns) -> float:
            taken = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                for _ in rows.map(function, *args, columns=columns):
                    pass
                taken.append(time.perf_counter() - start)
            return min(taken)

        terms = (probit.coordinates, probit.inner_coef, False)
        seconds["counting"].append(best(counted) / BLOCK_ROWS)
        seconds["probit"].append(best(_probit_terms, *terms) / BLOCK_ROWS)
        m = np.count_nonzero(~np.isnan(data.y))
        seconds["moments"].append(best(_moment_terms, probit, columns) / m)
    powers = np.stack([np.ones(len(WIDTHS)), WIDTHS, np.square(WIDTHS)], axis=1)
    # Relative errors count the same at every width; no coefficient is negative.
    from scipy.optimize import nnls

    return {
        name: nnls(powers / np.array(each)[:, None], np.ones(len(each)))[0].tolist()
        for name, each in seconds.items()
    }


def decode(path: str) -> float:
    """Seconds in which all rows of a file become blocks, with which nothing is done."""
    from heckmanfa import scan_parquet
    from heckmanfa.data.row_sources import Reading
    from heckmanfa.data.rows import rows_per_block

    rows = scan_parquet(path, "y")
    reading = Reading(tuple(range(rows.n_features)), rows_per_block(rows.n_features))
    start = time.perf_counter()
    assert sum(rows.run(_count, reading)) == len(rows)
    return time.perf_counter() - start


def _count(part: int, chunks: Any) -> int:
    return sum(len(chunk.outcome) for chunk in chunks)


def in_memory() -> float:
    """Seconds of a fit in memory, on as many threads as the environment says."""
    from heckmanfa import Heckman
    from heckmanfa.datasets import make_selection

    data = make_selection(1_000_000, 20, 10, random_state=0)
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        Heckman(range(10)).fit(data.X, data.y)
        taken.append(time.perf_counter() - start)
    return min(taken)


def read(path: str, threads: int) -> float:
    """Seconds in which pyarrow reads all columns of a file once, keeping none."""
    import pyarrow.dataset as ds

    start = time.perf_counter()
    scanner = ds.dataset(path).scanner(use_threads=threads > 1, batch_size=2**16)
    for _ in scanner.to_batches():
        pass
    return time.perf_counter() - start


def fit(path: str, k: int) -> dict[str, float]:
    """Seconds and passes of a two-step fit from a file."""
    from heckmanfa import Heckman, scan_parquet

    with counted_passes() as passes:
        start = time.perf_counter()
        model = Heckman([f"x{position}" for position in range(k // 2)]).fit(
            scan_parquet(path, outcome="y")
        )
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "selected": model.n_selected_ / model.n_obs_, **passes}


def predicted(costs: Costs, n: float, k: int, passes: dict[str, float], cores: float) -> float:
    """Seconds of a two-step fit from files."""
    full, part = passes["full"], passes["part"]
    # One full pass counts, one makes the moments; all others, and the samples, are the probit's.
    a_row = (
        (full + part) * 8 * (k + 1) * costs.a_byte
        + costs.row("counting", k)
        + (full - 2 + part) * costs.row("probit", k)
        + passes["selected"] * costs.row("moments", k)
    )
    return n * a_row / cores / costs.sharing


def _asked(*words: str, threads: int = CORES) -> Any:
    environment = dict(os.environ, HECKMANFA_NUM_THREADS=str(threads))
    return asked("cost_model", "--ask", *words, environment=environment)


def _file(folder: Path, n: int, k: int) -> str:
    return str(simulated(folder / f"cost_{n}_{k}.parquet", n, k))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the page to write the figures into")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"), help="where to put files")
    parser.add_argument("--ask", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        what, *words = given.ask
        answer: Any = None
        if what == "measure":
            answer = measure()
        elif what == "decode":
            answer = decode(words[0])
        elif what == "memory":
            answer = in_memory()
        elif what == "read":
            answer = read(words[0], int(words[1]))
        elif what == "fit":
            answer = fit(words[0], int(words[1]))
        print(json.dumps(answer))
        return
    others = OtherLoad()
    constants = _asked("measure", threads=1)
    n, k = CHECKED[0]
    path = _file(given.folder, n, k)
    alone = min(_asked("decode", path, threads=1) for _ in range(ROUNDS))
    sharing = _asked("memory", threads=1) / _asked("memory", threads=CORES) / CORES
    costs = Costs(alone / (8 * n * (k + 1)), sharing=sharing, **constants)
    rows = []
    for n, k in CHECKED:
        path = _file(given.folder, n, k)
        both = min(_asked("read", path, "2") for _ in range(2))
        found = min((_asked("fit", path, str(k)) for _ in range(2)), key=lambda run: run["seconds"])
        guess = predicted(costs, n, k, found, CORES)
        passes = found["full"] + found["part"]
        rows.append(
            (
                f"{n:,}",
                str(k),
                f"{passes:.2f}",
                f"{guess:.1f} s",
                f"{found['seconds']:.1f} s",
                f"{guess / found['seconds']:.2f}",
                f"{found['seconds'] / passes / both:.2f}",
                f"{1e6 * found['seconds'] / n:.2f}",
            )
        )
        print(rows[-1], flush=True)
    table = markdown_table(
        (
            "rows",
            "K",
            "passes",
            "predicted",
            "measured",
            "ratio",
            "a pass, in reads by pyarrow",
            "µs per row",
        ),
        (),
        rows,
    )
    constants_table = markdown_table(
        ("on one core", "constant", "times K", "times K²"),
        (0,),
        [
            ("a byte of Parquet into a block, ns", f"{1e9 * costs.a_byte:.2f}", "", ""),
            *(
                (f"{name}, ns per row", *(f"{1e9 * cost:.2f}" for cost in getattr(costs, part)))
                for name, part in (
                    ("a counting pass", "counting"),
                    ("a probit pass", "probit"),
                    ("the moments", "moments"),
                )
            ),
        ],
    )
    passes = {"full": 5.0, "part": 0.3, "selected": 0.5}
    far = predicted(costs, 1e10 / 100, 100, passes, CORES)
    reading = 5.3 * 8 * 101 * 1e8 * costs.a_byte / CORES / costs.sharing
    lines = [
        BEGIN,
        "",
        constants_table,
        "",
        f"Two threads do {costs.sharing:.2f} of what two cores could.",
        "",
        table,
        "",
        f"10 billion rows x 100 features, half of them selected, on 100 machines of {CORES} such "
        f"cores: {span(far)} for a two-step fit, of which {span(reading)} decode.",
        "",
        " ".join(machine(others.share(), INSTALLED)),
        "",
        END,
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out is not None:
        write(given.out, text, BEGIN, END)


if __name__ == "__main__":
    main()
