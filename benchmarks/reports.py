"""Time of reports, beside the fit in the same process: `python -m benchmarks.reports`.

Mroz's women (15 features) and CRIME (26 features, or data simulated at its size) as CSV files, on
one thread. The time of a report is that of everything after the fit: weights, checks with their
bootstrap, pictures and the page.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Figures, OtherLoad, asked, judged, machine, publish
from benchmarks.crime import N_PAPER, load

INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas")
ROUNDS = 3
MOST_SECONDS = {"mroz": 3.0, "crime": 10.0}
MOST_BYTES = 400_000
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "HECKMANFA_NUM_THREADS")
BEGIN = "<!-- figures of the reports: made by `python -m benchmarks.reports --out` -->"
END = "<!-- end of the reports' figures -->"


def _table(name: str) -> tuple[Any, str]:
    """Return a data set as a table, and the name of its outcome."""
    import pandas as pd

    from heckmanfa.cli.run_fit import FEATURES
    from heckmanfa.datasets import load_mroz

    if name == "mroz":
        return load_mroz()[["lwage", *FEATURES]], "lwage"
    data = load(N_PAPER, simulate=False)
    columns = [f"x{place}" for place in range(data.X.shape[1])]
    return pd.DataFrame(data.X, columns=columns).assign(y=data.y), "y"


def _measure(name: str) -> dict[str, Any]:
    """Seconds of the fit and of the report, and bytes of the page."""
    from heckmanfa.analysis import Question, analyse
    from heckmanfa.report import write_report

    with tempfile.TemporaryDirectory() as folder:
        table, outcome = _table(name)
        path, page = Path(folder) / f"{name}.csv", Path(folder) / f"{name}.html"
        table.to_csv(path, index=False)
        start = time.perf_counter()
        analysis = analyse(Question(str(path), outcome))
        fitted = time.perf_counter()
        write_report(analysis, page)
        return {
            "fit": fitted - start,
            "seconds": time.perf_counter() - fitted,
            "bytes": page.stat().st_size,
        }


def _best(name: str) -> dict[str, Any]:
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    runs = [asked("reports", "--measure", name, environment=environment) for _ in range(ROUNDS)]
    return min(runs, key=lambda run: float(run["seconds"]))


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", choices=list(MOST_SECONDS), help="data set")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_measure(options.measure)))
        return
    start, load_of_others = time.perf_counter(), OtherLoad()
    runs = {name: _best(name) for name in MOST_SECONDS}
    rows = [
        (
            name,
            f"{run['fit']:.2f}",
            f"{run['seconds']:.2f}",
            f"{run['seconds'] / run['fit']:.1f}",
            f"{run['bytes'] / 1000:.0f}",
        )
        for name, run in runs.items()
    ]
    figures = Figures(
        "Reports, one thread", ("data", "fit, s", "report, s", "× the fit", "kB"), (0,), rows
    )
    lines = {
        "machine": machine(load_of_others.share(), INSTALLED),
        "notes": [f"Seconds are the best of {ROUNDS} rounds; reading the file is part of the fit."],
        "agreement": [],
        "targets": [
            *(
                judged(
                    f"the report of {name} takes at most {most:g} s beyond the fit",
                    runs[name]["seconds"] <= most,
                    f"{runs[name]['seconds']:.2f} s",
                )
                for name, most in MOST_SECONDS.items()
            ),
            *(
                judged(
                    f"the report of {name} has at most {MOST_BYTES // 1000} kB",
                    run["bytes"] <= MOST_BYTES,
                    f"{run['bytes'] / 1000:.0f} kB",
                )
                for name, run in runs.items()
            ),
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
