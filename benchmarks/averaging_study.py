"""Run the study of docs/averaging_study.md, and write its tables.

    python -m benchmarks.averaging_study --out FOLDER [--workers 1] [--part linear]
    python -m benchmarks.averaging_study --tables FOLDER [--write]

and likewise with `--plan 2` and `--plan 3` for the later plans. A run adds the draws that FOLDER
lacks; stop it and run it again to go on. Every design has one file, with a line of JSON for each
draw. Figures depend on the design and the draw alone, not on the number of workers. `--draws 3`
gives every design three times its draws. `--write` puts the tables into docs/averaging_study.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import averaging_again
from benchmarks.averaging_answers import answer
from benchmarks.averaging_designs import DESIGNS, SECOND, THIRD, Design
from benchmarks.averaging_figures import file_name, read_draws

THREADS = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    "HECKMANFA_NUM_THREADS",
)
Task = tuple[str, int]
"""the name of a design, the number of a draw"""


def computed(task: Task) -> tuple[Task, dict[str, Any]]:
    """Compute the figures of a draw; a refusal is a figure too."""
    name, number = task
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            record = (answer if name in DESIGNS else averaging_again.answer)(name, number)
        except Exception as error:
            record = {"failure": f"{type(error).__name__}: {error}"[:200]}
    seconds = round(time.process_time() - began, 3)
    return task, {"draw": number, "seconds": seconds, **record}


def tasks_of(designs: dict[str, Design], parts: list[str], times: int) -> list[Task]:
    """Every draw of some parts, in an order in which all designs of a part advance together."""
    order = list(dict.fromkeys(design.part for design in designs.values()))
    tasks = [
        (order.index(design.part), number / design.draws, (name, number))
        for name, design in designs.items()
        if not parts or design.part in parts
        for number in range(times * design.draws)
    ]
    return [task for *_, task in sorted(tasks, key=lambda item: item[:2])]


def run(folder: Path, tasks: list[Task], workers: int) -> None:
    """Add the draws that a folder lacks."""
    # Processes share the cores; threads within each would only compete for them.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    folder.mkdir(parents=True, exist_ok=True)
    have = {
        (name, record["draw"])
        for name in {name for name, _ in tasks}
        for record in read_draws(folder, name)
    }
    tasks = [task for task in tasks if task not in have]
    print(f"{len(tasks):,} draws to do", flush=True)
    began = said = time.monotonic()
    spent, reasons = 0.0, Counter[str]()
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for count, ((name, _), record) in enumerate(pool.imap_unordered(computed, tasks), start=1):
            with (folder / file_name(name)).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            spent += record["seconds"]
            reasons.update([record["failure"]] if "failure" in record else [])
            if time.monotonic() - said > 30:
                said = time.monotonic()
                print(
                    f"{said - began:5.0f} s: {count:,} draws, {reasons.total()} failed", flush=True
                )
    print(f"{time.monotonic() - began:.0f} s, {spent / 60:.1f} core-minutes")
    for reason, count in reasons.most_common(10):
        print(f"{count} x {reason}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--part", action="append", default=[])
    parser.add_argument("--draws", type=int, default=1, help="times the draws of the plan")
    parser.add_argument("--plan", type=int, choices=[1, 2, 3], default=1)
    parser.add_argument("--tables", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.tables:
        from benchmarks import averaging_again_tables, averaging_tables

        if options.plan == 1:
            text, marks = averaging_tables.page(options.tables), averaging_tables.MARKS
        else:
            text = averaging_again_tables.PAGES[options.plan](options.tables)
            marks = averaging_again_tables.marks(options.plan)
        print(text)
        if options.write:
            averaging_tables.write(averaging_tables.PAGE, text, marks)
    elif options.out:
        designs = (DESIGNS, SECOND, THIRD)[options.plan - 1]
        run(options.out, tasks_of(designs, options.part, options.draws), options.workers)
    else:
        parser.print_help()
        sys.exit(2)


if __name__ == "__main__":
    main()
