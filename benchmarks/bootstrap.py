"""Time of the bootstrap with the search inside, on one process and on two: `make bench`.

Mroz's data with fifteen candidate features: each replicate fits the probit, finds the best of all
32,768 assignments by BIC, with proof, and fits it. Beside it stands what one would write by hand:
scikit-learn's `resample` copies rows, and a clone of the model is fitted to them. Every measurement
is a process of its own. The first call starts the worker processes, which takes them a second or
two; a later one finds them ready.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Figures, OtherLoad, judged, machine, publish, quickest

INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas", "joblib")
REPLICATES, BY_HAND = 1000, 100
ROUNDS = 3
MOST_SECONDS, LEAST_GAIN = 60.0, 1.7
FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]
BEGIN = "<!-- figures of the bootstrap: made by `python -m benchmarks.bootstrap --out` -->"
END = "<!-- end of the bootstrap's figures -->"


def _measure(jobs: int) -> dict[str, Any]:
    """Seconds of all replicates, and a number that tells whether they are the same."""
    import warnings

    from sklearn.base import clone
    from sklearn.utils import resample

    from heckmanfa import HeckmanBestSubset
    from heckmanfa.datasets import load_mroz

    mroz = load_mroz()
    X, y = mroz[FEATURES], mroz["lwage"]
    model = HeckmanBestSubset().fit(X, y)
    if jobs == 0:
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        for seed in range(BY_HAND):
            clone(model).fit(*resample(X, y, random_state=seed))
        seconds = (time.perf_counter() - start) * REPLICATES / BY_HAND
        return {"seconds": seconds}
    seconds = []
    for _ in range(jobs):
        start = time.perf_counter()
        boot = model.bootstrap(X, y, REPLICATES, random_state=0, n_jobs=jobs)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": seconds[0],
        "again": seconds[-1],
        "sum": float(boot.replicates.estimates.sum()),
        "failed": boot.n_failed,
    }


def _best(jobs: int) -> dict[str, Any]:
    """The round whose first call was quickest."""
    return quickest("bootstrap", "--measure", str(jobs), rounds=ROUNDS)


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", type=int, help="processes; 0 is by hand")
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_measure(options.measure)))
        return
    start, load = time.perf_counter(), OtherLoad()
    one, two, by_hand = _best(1), _best(2), _best(0)
    gain = one["seconds"] / two["seconds"]
    figures = Figures(
        f"Mroz, n = 753, K = {len(FEATURES)}: {REPLICATES:,} replicates of HeckmanBestSubset",
        ("program", "seconds", "ms per replicate", "× two processes"),
        (0,),
        [
            (
                name,
                f"{run['seconds']:.1f}",
                f"{1e3 * run['seconds'] / REPLICATES:.1f}",
                f"{run['seconds'] / two['seconds']:.2f}",
            )
            for name, run in (
                ("bootstrap, n_jobs=2", two),
                ("the same again", {"seconds": two["again"]}),
                ("bootstrap, n_jobs=1", one),
                ("copied rows, one after another", by_hand),
            )
        ],
    )
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            f"Seconds are of the best of {ROUNDS} rounds. The first call with two processes "
            "starts them, the one after it finds them ready. Copied rows are measured over "
            f"{BY_HAND} replicates, scaled up.",
        ],
        "agreement": [
            "Results are identical on one and on two processes."
            if one["sum"] == two["sum"]
            else "RESULTS DISAGREE between one and two processes."
        ],
        "targets": [
            judged(
                f"{REPLICATES:,} replicates on two cores take less than {MOST_SECONDS:g} s",
                two["seconds"] < MOST_SECONDS,
                f"{two['seconds']:.1f} s, {two['failed']} failed",
            ),
            judged(
                f"two processes are at least {LEAST_GAIN:g} times as fast as one",
                gain >= LEAST_GAIN,
                f"{gain:.2f} times, their start included; "
                f"{one['seconds'] / two['again']:.2f} times when they are ready",
            ),
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
