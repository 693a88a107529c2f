"""Time and memory of averages over assignments, on one thread: `python -m benchmarks.averages`.

Up to 22 features every assignment is evaluated, and the comparison is `Moments.solve`, which solves
a batch of assignments one by one. Beyond that, a sampler visits assignments, and the time holds the
probit. Every measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import Figures, OtherLoad, asked, judged, machine, publish, span

INSTALLED = ("heckmanfa", "numpy", "scipy")
ROUNDS = 3
BATCH = 2**15
MOST_SECONDS = {15: 0.05, 20: 0.6, 22: 3.0, 40: 10.0, 100: 10.0}
MOST_UNITS, MOST_MEGABYTES = 22, 300.0
ROWS, ROWS_SAMPLED = 2_000, 10_000
K_ROWS, NEW_ROWS = 15, 100_000
MOST_INTERVALS, MOST_TIMES = 3.0, 1.5
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "HECKMANFA_NUM_THREADS")
BEGIN = "<!-- figures of the averages: made by `python -m benchmarks.averages --out` -->"
END = "<!-- end of the averages' figures -->"


def _measure(k: int) -> dict[str, Any]:
    """Seconds and megabytes of an average over K features, and seconds of the comparison."""
    import resource

    import numpy as np

    from heckmanfa import HeckmanAverage
    from heckmanfa.datasets import make_selection
    from heckmanfa.search.averaging import average

    sampled = k > MOST_UNITS
    rows = ROWS_SAMPLED if sampled else ROWS
    data = make_selection(rows, k, k // 3, correlation=0.5, random_state=0)
    # The correction and the index are two units more.
    never = () if sampled else (0, 1)
    start = time.perf_counter()
    model = HeckmanAverage(never=never).fit(data.X, data.y)
    whole = time.perf_counter() - start
    outcome, moments = model.fit_.average, model.fit_.moments
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = average(outcome.form, outcome.mixture.choices, random_state=0)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_by_one = None
    if not sampled:
        masks = np.random.default_rng(0).random((BATCH, k)) < 0.5
        start = time.perf_counter()
        moments.solve(masks)
        one_by_one = (time.perf_counter() - start) / BATCH * 2.0**k
    return {
        "seconds": whole if sampled else seconds,
        "megabytes": (after - before) / 1024.0,
        "one_by_one": one_by_one,
        "disagreement": found.disagreement,
    }


def _measure_rows() -> dict[str, Any]:
    """Ratios of an average to its full fit: seconds of a binary fit, and of intervals of rows."""
    import numpy as np

    from heckmanfa import Heckman, HeckmanAverage, HeckmanProbit, HeckmanProbitAverage
    from heckmanfa.datasets import make_selection

    def best(work: Callable[..., Any], *given: Any, **options: Any) -> float:
        seconds = []
        for _ in range(ROUNDS):
            start = time.process_time()
            work(*given, **options)
            seconds.append(time.process_time() - start)
        return min(seconds)

    data = make_selection(ROWS_SAMPLED, K_ROWS, K_ROWS // 3, correlation=0.5, random_state=0)
    X = make_selection(NEW_ROWS, K_ROWS, K_ROWS // 3, correlation=0.5, random_state=3).X
    y = np.where(np.isnan(data.y), np.nan, data.y > np.nanmedian(data.y))
    HeckmanProbit().fit(data.X, y)
    found = {
        "binary fit": [
            best(model().fit, data.X, y) for model in (HeckmanProbitAverage, HeckmanProbit)
        ]
    }
    linear = [model().fit(data.X, data.y) for model in (HeckmanAverage, Heckman)]
    binary = [model().fit(data.X, y) for model in (HeckmanProbitAverage, HeckmanProbit)]
    options = {"kind": "selected", "return_interval": "confidence"}
    found["intervals"] = [best(model.predict, X, **options) for model in linear]
    found["intervals of probabilities"] = [
        best(model.predict_proba, X, **options) for model in binary
    ]
    return found


def _best(k: int) -> dict[str, Any]:
    runs = [
        asked("averages", "--measure", str(k), environment=_one_thread()) for _ in range(ROUNDS)
    ]
    return min(runs, key=lambda run: float(run["seconds"]))


def _one_thread() -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(THREADS, "1")}


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", type=int, help="number of features; 0: beside full fits")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_measure(options.measure) if options.measure else _measure_rows()))
        return
    start, load = time.perf_counter(), OtherLoad()
    runs = {k: _best(k) for k in MOST_SECONDS}
    beside_full = asked("averages", "--measure", "0", environment=_one_thread())
    rows: list[tuple[str, ...]] = []
    for k, run in runs.items():
        solved = run["one_by_one"]
        beside = ("", "") if solved is None else (span(solved), f"{solved / run['seconds']:.0f}")
        apart = "" if run["disagreement"] is None else f"{run['disagreement']:.3f}"
        numbers = (f"{run['seconds']:.3f}", f"{run['megabytes']:.0f}", *beside, apart)
        rows.append((str(k), f"2^{k}" if solved is not None else "sampled", *numbers))
    figures = Figures(
        "Averages over assignments with AIC weights, one thread",
        ("K", "assignments", "seconds", "MB", "Moments.solve", "× ours", "chains differ by"),
        (1,),
        rows,
    )
    peak = max(run["megabytes"] for run in runs.values())
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            f"Seconds are the best of {ROUNDS} rounds, from compressed data with n = {ROWS:,}; "
            f"where assignments are sampled n = {ROWS_SAMPLED:,}, and the probit is included. MB "
            "is what the peak of memory grows by.",
            f"`Moments.solve` is measured on {BATCH:,} assignments, scaled up to all.",
            f"Averages beside their full fit, K = {K_ROWS}, n = {ROWS_SAMPLED:,}, {NEW_ROWS:,} new "
            "rows, in CPU seconds: "
            + "; ".join(
                f"{what} {ours:.2f} s, {ours / full:.1f} times"
                for what, (ours, full) in beside_full.items()
            )
            + ".",
        ],
        "agreement": [],
        "targets": [
            *(
                judged(
                    f"K = {k} takes at most {most:g} s",
                    runs[k]["seconds"] <= most,
                    f"{runs[k]['seconds']:.3f} s",
                )
                for k, most in MOST_SECONDS.items()
            ),
            *(
                judged(
                    f"{what}: at most {MOST_INTERVALS:g} s", ours <= MOST_INTERVALS, f"{ours:.2f} s"
                )
                for what, (ours, _) in beside_full.items()
                if what != "binary fit"
            ),
            judged(
                f"a binary average takes at most {MOST_TIMES:g} times its full fit",
                beside_full["binary fit"][0] <= MOST_TIMES * beside_full["binary fit"][1],
                f"{beside_full['binary fit'][0] / beside_full['binary fit'][1]:.2f} times",
            ),
            judged(f"at most {MOST_MEGABYTES:g} MB", peak <= MOST_MEGABYTES, f"{peak:.0f} MB"),
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
