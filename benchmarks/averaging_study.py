"""Run the study of docs/averaging_study.md, on as many cores as there are, and write its tables.

    python -m benchmarks.averaging_study --out FOLDER --workers 16 --minutes 9 [--part excess]
    python -m benchmarks.averaging_study --tables FOLDER ... [--write]
    python -m benchmarks.averaging_study --estimate

A run adds the draws that FOLDER lacks, and stops after the minutes given; run it again to go on.
Every design has one file, with a line of JSON for each draw. Figures depend on the design and the
draw alone, not on the number of workers. `--sizes 23 100` runs only designs with so many features.
`--write` puts the tables into docs/averaging_study.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.averaging_coverage import bootstrapped, coverage
from benchmarks.averaging_designs import BOOTSTRAP_DRAWS, COVERAGE, DESIGNS
from benchmarks.averaging_figures import file_name, read_draws
from benchmarks.averaging_methods import REFIT_DRAWS, columns, corrected, excess, recovery
from benchmarks.averaging_tables import PAGE, page, write

PARTS = ("excess", "coverage", "bootstrap", "recovery", "corrected", "columns")
THREADS = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    "HECKMANFA_NUM_THREADS",
)
RUN = {
    "excess": excess,
    "coverage": coverage,
    "bootstrap": bootstrapped,
    "recovery": recovery,
    "corrected": corrected,
    "columns": columns,
}
Task = tuple[str, str, int]
"""the part, the name of a design, the number of a draw"""


def answer(task: Task) -> tuple[Task, dict[str, Any]]:
    """Compute the figures of a draw; a refusal is a figure too."""
    part, design, number = task
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = RUN[part](design, number)
        except Exception as error:
            found = {"failure": f"{type(error).__name__}: {error}"[:200]}
    seconds = round(time.process_time() - began, 3)
    return task, {"draw": number, "seconds": seconds, **found}


def draws_of(part: str) -> dict[str, int]:
    """Return the number of draws of each design that a part computes."""
    if part == "bootstrap":
        return {name: BOOTSTRAP_DRAWS for name, one in COVERAGE.items() if one.kind == "K = 8"}
    own = "recovery" if part == "corrected" else part
    return {name: design.draws for name, design in DESIGNS.items() if design.part == own}


def everything(parts: tuple[str, ...]) -> list[Task]:
    """Every draw of some parts; if time runs out, all designs have lost the same share of draws."""
    tasks = [
        (number / draws, (part, name, number))
        for part in parts
        for name, draws in draws_of(part).items()
        for number in range(draws)
    ]
    return [task for _, task in sorted(tasks, key=lambda item: item[0])]


def missing(folder: Path, tasks: list[Task]) -> list[Task]:
    """The draws that a folder lacks."""
    have = {
        (part, name, one["draw"])
        for part, name in {task[:2] for task in tasks}
        for one in read_draws([folder], part, name)
    }
    return [task for task in tasks if task not in have]


def answers(tasks: list[Task], workers: int, until: float) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Compute draws in processes until a time; draws that are unfinished then are dropped."""
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting = iter(tasks)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        running = 0
        for task in waiting:
            pool.apply_async(answer, (task,), callback=done.put, error_callback=done.put)
            running += 1
            if running >= 2 * workers:
                break
        while running:
            try:
                found = done.get(timeout=max(until - time.monotonic(), 0.01))
            except queue.Empty:
                pool.terminate()
                return
            if isinstance(found, BaseException):
                raise found
            yield found
            running -= 1
            following = next(waiting, None) if time.monotonic() < until else None
            if following is not None:
                pool.apply_async(answer, (following,), callback=done.put, error_callback=done.put)
                running += 1


def run(folder: Path, tasks: list[Task], workers: int, minutes: float) -> None:
    """Add draws to a folder."""
    # Processes share the cores; threads within each would only compete for them.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    folder.mkdir(parents=True, exist_ok=True)
    tasks = missing(folder, tasks)
    began = time.monotonic()
    count, spent, failures = 0, 0.0, 0
    reasons: dict[str, int] = {}
    print(f"{len(tasks):,} draws to do with {workers} workers in {minutes:g} minutes", flush=True)
    said = began
    for (part, design, _), found in answers(tasks, workers, began + 60 * minutes):
        with (folder / file_name(part, design)).open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        count, spent = count + 1, spent + found["seconds"]
        if "failure" in found:
            failures += 1
            reasons[found["failure"]] = reasons.get(found["failure"], 0) + 1
        if time.monotonic() - said > 20:
            said = time.monotonic()
            print(f"{said - began:5.0f} s: {count:,} draws, {failures} failed", flush=True)
    left = len(tasks) - count
    print(
        f"{count:,} draws in {time.monotonic() - began:.0f} s ({spent / 60:.1f} core-minutes); "
        f"{failures} failed; {left:,} left"
    )
    for reason, times in sorted(reasons.items(), key=lambda item: -item[1])[:10]:
        print(f"{times} x {reason}")


def estimate(parts: tuple[str, ...]) -> None:
    """Time a draw of every design, with and without ML refits; print what the study would take."""
    total: dict[str, float] = {}
    answer(("columns", "columns m near 3 K 3", 0))
    for part in parts:
        for name, draws in draws_of(part).items():
            first = min(draws, REFIT_DRAWS)
            timed = [answer((part, name, number))[1] for number in (1, draws - 1)]
            early, late = (one["seconds"] for one in timed)
            minutes = (early * first + late * (draws - first)) / 60
            total[part] = total.get(part, 0.0) + minutes
            print(
                f"{part}, {name}: {early:.2f} and {late:.2f} s, {minutes:.1f} core-minutes",
                *(one["failure"] for one in timed if "failure" in one),
                flush=True,
            )
    for part, minutes in total.items():
        print(f"{part}: {minutes:.0f} core-minutes")
    print(f"in all: {sum(total.values()):.0f} core-minutes")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--sizes", type=int, nargs=2, default=(0, 1000), metavar=("LEAST", "MOST"))
    parser.add_argument("--share", type=float, default=1.0, help="of every design's draws")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--tables", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.estimate:
        estimate(tuple(given.part or PARTS))
    elif given.tables:
        text = page(given.tables)
        print(text)
        if given.write:
            write(PAGE, text)
    elif given.out:
        least, most = given.sizes
        tasks = [
            task
            for task in everything(tuple(given.part or PARTS))
            if least <= DESIGNS[task[1]].features <= most
        ]
        run(given.out, tasks[: round(given.share * len(tasks))], given.workers, given.minutes)
    else:
        parser.print_help()
        sys.exit(2)


if __name__ == "__main__":
    main()
