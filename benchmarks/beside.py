"""This checkout beside another: how long fits, searches, imports and commands take in each.

``python -m benchmarks.beside OTHER`` alternates between both checkouts, each measurement in a fresh
interpreter, and prints medians and the ratio of this one to the other. Processor time is shown
beside the clock's, because other programs on the machine disturb it less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.common import ROOT, Figures, OtherLoad, child, machine
from benchmarks.public import MROZ_FEATURES, MROZ_SELECTION, START

_ROUNDS = 5


class Time(NamedTuple):
    """Seconds of one run."""

    clock: float
    processor: float


class Task(NamedTuple):
    """Something to be timed inside an interpreter that has loaded the package."""

    make: Callable[[], Callable[[], Any]]
    repeats: int = 1
    """runs in a row that one measurement averages"""


def _mroz(names: Sequence[str]) -> tuple[Any, Any]:
    from heckmanfa.datasets import load_mroz

    mroz = load_mroz()
    return mroz[list(names)], mroz["lwage"]


def _heckman_on_mroz(method: str) -> Callable[[], Any]:
    from heckmanfa import Heckman

    X, y = _mroz(MROZ_SELECTION)
    return lambda: Heckman(["educ", "exper", "expersq"], method=method).fit(X, y)


def _heckman_on_many(method: str, rows: int, features: int) -> Callable[[], Any]:
    from heckmanfa import Heckman
    from heckmanfa.datasets import make_selection

    data = make_selection(rows, features, features // 2, random_state=0)
    return lambda: Heckman(data.support, method=method).fit(data.X, data.y)


def _search_on_mroz() -> Callable[[], Any]:
    from heckmanfa import HeckmanBestSubset

    X, y = _mroz(MROZ_FEATURES)
    return lambda: HeckmanBestSubset().fit(X, y)


def _search_on_many() -> Callable[[], Any]:
    from heckmanfa import HeckmanBestSubset
    from heckmanfa.datasets import make_selection

    data = make_selection(5000, 25, 12, random_state=0)
    return lambda: HeckmanBestSubset().fit(data.X, data.y)


def _training() -> Callable[[], Any]:
    from heckmanfa import HeckmanFA

    X, y = _mroz(MROZ_FEATURES)
    return lambda: HeckmanFA(epochs=1000, random_state=0).fit(X, y)


def _bootstrap() -> Callable[[], Any]:
    from heckmanfa import Heckman

    X, y = _mroz(MROZ_SELECTION)
    model = Heckman(["educ", "exper", "expersq"]).fit(X, y)
    return lambda: model.bootstrap(X, y, n_boot=200, random_state=0, n_jobs=1)


def _average_on_mroz() -> Callable[[], Any]:
    from heckmanfa import HeckmanAverage

    X, y = _mroz(MROZ_FEATURES)
    return lambda: HeckmanAverage().fit(X, y)


def _probit_on_mroz() -> Callable[[], Any]:
    from heckmanfa import HeckmanProbit

    X, y = _mroz(MROZ_SELECTION)
    high = (y >= 1.3).astype(float).where(y.notna())
    return lambda: HeckmanProbit(["educ", "exper", "expersq"]).fit(X, high)


def _average_predictions() -> Callable[[], Any]:
    from heckmanfa import HeckmanAverage

    X, y = _mroz(MROZ_FEATURES)
    model = HeckmanAverage().fit(X, y)
    return lambda: model.predict(X, "selected", return_interval="confidence")


def _report_on_mroz() -> Callable[[], Any]:
    """An analysis with its report: an analysis remembers its numbers, so each run makes one."""
    from heckmanfa.analysis import Question, analyse
    from heckmanfa.report import write_report

    X, y = _mroz(MROZ_FEATURES)
    folder = tempfile.TemporaryDirectory()
    table = Path(folder.name) / "mroz.csv"
    X.assign(lwage=y).to_csv(table, index=False)

    def run() -> None:
        write_report(analyse(Question(str(table), "lwage")), Path(folder.name) / "out.html")

    return run


TASKS = {
    "two-step fit, Mroz": Task(lambda: _heckman_on_mroz("two-step"), 20),
    "two-step fit, 200,000 x 20": Task(lambda: _heckman_on_many("two-step", 200_000, 20)),
    "ML fit, Mroz": Task(lambda: _heckman_on_mroz("ml"), 20),
    "ML fit, 50,000 x 10": Task(lambda: _heckman_on_many("ml", 50_000, 10), 3),
    "best subset, Mroz (15 features)": Task(_search_on_mroz, 10),
    "best subset, 25 features": Task(_search_on_many, 3),
    "HeckmanFA, 1,000 epochs": Task(_training, 2),
    "bootstrap, 200 replicates": Task(_bootstrap),
    "average, Mroz (15 features)": Task(_average_on_mroz, 5),
    "average predictions with intervals, 753 rows": Task(_average_predictions, 3),
    "Heckman probit, Mroz": Task(_probit_on_mroz, 10),
    "analysis and report, package loaded": Task(_report_on_mroz),
}
# Whole processes: the interpreter's start, imports and all.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "import heckmanfa": ("-c", "import heckmanfa"),
    "from heckmanfa import Heckman": ("-c", "from heckmanfa import Heckman"),
    "heckmanfa --help": ("-c", START, "--help"),
    "heckmanfa fit --report, Mroz": (
        *("-c", START, "fit", "{folder}/mroz.csv", "--outcome", "lwage", "--force"),
        *("--report", "{folder}/out.html"),
    ),
}


def time_task(name: str) -> Time:
    """Time a task in this process, after it ran once."""
    task = TASKS[name]
    run = task.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(task.repeats):
            run()
    seconds = time.perf_counter() - clock, time.process_time() - processor
    return Time(*(one / task.repeats for one in seconds))


def measure(name: str, tree: Path, folder: Path) -> Time:
    """Time one run with the package of a checkout, in a fresh interpreter."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    if name in TASKS:
        words = ["-m", "benchmarks.beside", "--task", name]
        return Time(*json.loads(child(words, environment=environment).splitlines()[-1]))
    words = [one.replace("{folder}", str(folder)) for one in _COMMANDS[name]]
    clock, processor = time.perf_counter(), _processor_time_of_children()
    child(words, environment=environment)
    return Time(time.perf_counter() - clock, _processor_time_of_children() - processor)


def _processor_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def beside(name: str, other: Path, folder: Path, rounds: int) -> tuple[str, ...]:
    """The row of a task: medians over rounds that alternate between both checkouts."""
    times: dict[Path, list[Time]] = {ROOT: [], other: []}
    for _ in range(rounds):
        for tree, found in times.items():
            found.append(measure(name, tree, folder))
    (this_clock, this_processor), (that_clock, that_processor) = (
        [statistics.median(part) for part in zip(*found, strict=True)] for found in times.values()
    )
    return (
        name,
        *(f"{1000 * one:,.1f}" for one in (this_clock, that_clock)),
        f"{this_clock / that_clock:.2f}",
        *(f"{1000 * one:,.1f}" for one in (this_processor, that_processor)),
        f"{this_processor / that_processor:.2f}",
    )


def compare(other: Path, rounds: int, wanted: str) -> None:
    load, rows = OtherLoad(), []
    names = [name for name in (*TASKS, *_COMMANDS) if wanted in name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        X, y = _mroz(MROZ_FEATURES)
        X.assign(lwage=y).to_csv(folder / "mroz.csv", index=False)
        for name in names:
            rows.append(beside(name, other, folder, rounds))
            print(" | ".join(rows[-1]), flush=True)
    title = f"Milliseconds here and in {other}, medians of {rounds}"
    header = ("what", "here", "there", "ratio", "CPU here", "CPU there", "CPU ratio")
    console = Console(width=120)
    Figures(title, header, (0,), rows).show(console)
    for line in machine(load.share(), ("numpy", "scipy", "scikit-learn", "pandas")):
        console.print(line, markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="another checkout")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--only", default="", help="tasks whose name holds this")
    parser.add_argument("--task", choices=TASKS, help="time this here and print seconds as JSON")
    arguments = parser.parse_args()
    if arguments.task is not None:
        print(json.dumps(time_task(arguments.task)))
    elif arguments.other is None:
        parser.error("name another checkout")
    else:
        compare(arguments.other.resolve(), arguments.rounds, arguments.only)


if __name__ == "__main__":
    main()
