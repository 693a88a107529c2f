"""Time and memory of the Heckman probit, beside StatsPAI where that ends within a minute or so.

Data are simulated with K features that all select and of which the first half predict; rho is .5,
and half of the rows are selected. Every measurement is a process of its own (see
`benchmarks.measure`). ``python -m benchmarks.probit --out docs/benchmarks.md`` writes the figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import probit_search
from benchmarks.common import Figures, OtherLoad, judged, machine, publish
from benchmarks.run import SEED, TRUTH_ERRORS, Setting, run_setting
from heckmanfa.datasets import make_selection

OURS, STATSPAI = "heckmanfa probit", "StatsPAI probit"
BESIDE, FACTOR = (5_000, 6), 100.0
SECONDS = {(200_000, 8): 2.0, (1_000_000, 20): 20.0}
"""Sizes and the seconds that a fit may take there"""
ROUNDS = 3
TIME_OUT = 300.0
# Both stop where the gradient is small; StatsPAI's optimizer stops earlier.
AGREEMENT = 1e-3
INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas", "statspai")
MARKS = (
    "<!-- figures of the probit: made by `python -m benchmarks.probit --out` -->",
    "<!-- end of the probit's figures -->",
)
HEADER = ("n", "K", "program", "seconds", "× ours", "CPU s", "CPU × ours", "extra MB", "extra / X")


def _write_data(folder: Path, n: int, k: int) -> list[float]:
    """Save a simulated data set; return the true intercept, coefficients and rho."""
    data = make_selection(
        n,
        k,
        prediction_features=range(k // 2),
        correlation=0.3,
        intercept=0.2,
        outcome_kind="binary",
        random_state=SEED,
    )
    np.save(folder / "X.npy", data.X)
    np.save(folder / "y.npy", np.asarray(data.y, dtype=np.float64))
    return [data.intercept, *data.coef[: k // 2].tolist(), data.rho]


def rows(settings: Sequence[Setting]) -> Iterator[tuple[str, ...]]:
    """The table, cell by cell."""
    for setting in settings:
        ours, ours_cpu = setting.programs[OURS].best, min(setting.programs[OURS].cpu_seconds)
        for program, found in setting.programs.items():
            size = (f"{setting.n:,}", str(setting.k), program)
            if not found.seconds:
                yield (*size, "timed out", *[""] * (len(HEADER) - 4))
                continue
            yield (
                *size,
                f"{found.best:.3f}",
                f"{found.best / ours:.1f}",
                f"{min(found.cpu_seconds):.3f}",
                f"{min(found.cpu_seconds) / ours_cpu:.1f}",
                f"{found.memory / 1e6:.0f}",
                f"{found.memory / setting.x_bytes:.2f}",
            )


def agreement(settings: Sequence[Setting]) -> tuple[list[str], bool]:
    """What the estimates say about one another and about the truth, and whether all is well."""
    lines, fine = [], True
    for setting in settings:
        ours, theirs = (setting.programs.get(program) for program in (OURS, STATSPAI))
        off = max(abs(np.subtract(ours.values, setting.truth) / np.asarray(ours.std_errors)))
        fine &= bool(off <= TRUTH_ERRORS)
        lines.append(f"At {setting.name} estimates are {off:.1f} standard errors off the truth.")
        if theirs is not None and theirs.values:
            gap = max(abs(np.subtract(ours.values, theirs.values)))
            fine &= bool(gap <= AGREEMENT)
            lines.append(f"There both programs' estimates differ by {gap:.1e} at most.")
    return (lines if fine else ["ESTIMATES DISAGREE.", *lines]), fine


def targets(settings: Sequence[Setting]) -> Iterator[str]:
    """One line per target, with its numbers; sizes that were not run are left out."""
    for setting in settings:
        size = (setting.n, setting.k)
        ours, theirs = (setting.programs.get(program) for program in (OURS, STATSPAI))
        if theirs is not None and theirs.seconds:
            yield judged(
                f"at {setting.name} at least {FACTOR:.0f} times as fast as StatsPAI",
                theirs.best >= FACTOR * ours.best,
                f"{ours.best:.3f} s against {theirs.best:.1f} s, {theirs.best / ours.best:.0f} "
                "times; in processor time "
                f"{min(theirs.cpu_seconds) / min(ours.cpu_seconds):.0f} times",
            )
        if size in SECONDS:
            yield judged(
                f"{setting.name} in at most {SECONDS[size]:g} s on two cores",
                ours.best <= SECONDS[size],
                f"{ours.best:.2f} s ({min(ours.cpu_seconds):.2f} s of processor time)",
            )
            used = ours.memory / setting.x_bytes
            if np.isnan(used):
                yield "not measured: peak memory (this system has no /proc/self/clear_refs)"
            else:
                yield judged(
                    f"at {setting.name} peak memory beyond the data stays below the size of X",
                    used < 1,
                    f"{used:.2f} of X",
                )


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, help="a Markdown page to put the figures into")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--alone", action="store_true", help="leave StatsPAI out")
    options = parser.parse_args(arguments)
    load, start = OtherLoad(), time.perf_counter()
    beside = [OURS] if options.alone else [OURS, STATSPAI]
    rounds = options.rounds
    settings = [run_setting(*BESIDE, beside, rounds, TIME_OUT, _write_data)]
    settings += [run_setting(*size, [OURS], rounds, TIME_OUT, _write_data) for size in SECONDS]
    compared, fine = agreement(settings)
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            f"Rounds: {rounds}, of which the best counts. CPU seconds are those of all threads.",
            "Memory is the peak of resident memory in the fit less what was resident before it, "
            "with the data loaded; in multiples of the size of X (8 n K bytes).",
        ],
        "agreement": compared,
        "targets": [*targets(settings), probit_search.target(probit_search.search(ROUNDS))],
    }
    title = "The Heckman probit: seconds and peak memory beyond the data"
    figures = Figures(title, HEADER, (2,), list(rows(settings)))
    publish(figures, lines, time.perf_counter() - start, options.out, MARKS)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
