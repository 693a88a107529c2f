"""Time and memory of heckmanfa beside statsmodels and StatsPAI, in one run: `make bench`.

Data are simulated with K features that all select and of which the first half predict. Every
measurement is a process of its own (see `benchmarks.measure`), and the programs take turns, so
that a busy moment of the machine does not fall on one of them alone. A time is the best of a few
rounds, as many for one program as for the other. heckmanfa gets a NumPy array, StatsPAI the
pandas frame that it asks for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import (
    OtherLoad,
    child,
    judged,
    machine,
    markdown,
    markdown_table,
    tell,
    write,
)
from heckmanfa.datasets import make_selection

SIZES = (10_000, 100_000, 1_000_000)
FEATURES = (10, 30)
SEED = 20240501
OURS, OURS_ML = "heckmanfa two-step", "heckmanfa ML"
STATSMODELS, STATSPAI, STATSPAI_ML = "statsmodels two-step", "StatsPAI two-step", "StatsPAI ML"
BESIDE = (OURS, OURS_ML, STATSMODELS, STATSPAI)
# StatsPAI's ML needs seconds here, and more than ten minutes at 10,000 x 30.
ML_SIZE, ML_TIME_OUT = (2_000, 10), 60.0
AGREEMENT = 1e-4
# A right program is this many standard errors off the truth once in some thousand coefficients.
TRUTH_ERRORS = 4.5
LIMIT_S = 300.0
INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas", "statsmodels", "statspai")

NOTES = (
    "statsmodels has no selection model: its two-step is a Probit fit, then an OLS fit with the "
    "inverse Mills ratio, by hand, without the corrected covariance that the others compute.",
    "heckmanfa's ML stands beside the others' TWO-STEP: statsmodels has no ML of this model, and "
    "StatsPAI's takes more than ten minutes at 10,000 x 30; it has a line of its own, at "
    f"{ML_SIZE[0]:,} x {ML_SIZE[1]}.",
    "CPU seconds are those of all threads together, which tell most on a busy machine.",
    "Memory is the peak of resident memory in the fit less what was resident before it, with the "
    "data loaded; in multiples of the size of X (8 n K bytes).",
)

BEGIN, END = "<!-- figures: made by `python -m benchmarks.run --out` -->", "<!-- end of figures -->"


@dataclass
class Measured:
    """What one program did at one size."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    """of all threads"""
    extra_bytes: list[int] = field(default_factory=list)
    """empty where the system does not say"""
    values: list[float] = field(default_factory=list)
    std_errors: list[float] | None = None
    timed_out: bool = False

    @property
    def best(self) -> float:
        return min(self.seconds, default=float("nan"))

    @property
    def memory(self) -> float:
        return float(max(self.extra_bytes)) if self.extra_bytes else float("nan")


@dataclass
class Setting:
    """One size of data and what the programs did with it."""

    n: int
    k: int
    rounds: int
    truth: list[float]
    programs: dict[str, Measured]

    @property
    def x_bytes(self) -> int:
        return 8 * self.n * self.k

    @property
    def name(self) -> str:
        return f"{self.n:,} x {self.k}"


def _write_data(folder: Path, n: int, k: int) -> list[float]:
    """Save a simulated data set; return the true intercept, coefficients and rho sigma."""
    data = make_selection(
        n, k, prediction_features=range(k // 2), correlation=0.3, rho=0.5, random_state=SEED
    )
    np.save(folder / "X.npy", data.X)
    np.save(folder / "y.npy", data.y)
    return [data.intercept, *data.coef[: k // 2].tolist(), data.rho * data.sigma]


def run_setting(
    n: int,
    k: int,
    programs: Sequence[str],
    rounds: int,
    time_out: float = LIMIT_S,
    save: Callable[[Path, int, int], list[float]] = _write_data,
) -> Setting:
    """Let the programs take turns on one data set, which ``save`` writes."""
    measured = {program: Measured() for program in programs}
    with tempfile.TemporaryDirectory() as name:
        truth = save(Path(name), n, k)
        for _ in range(rounds):
            for program, found in measured.items():
                arguments = ["-m", "benchmarks.measure", program, name, str(k // 2)]
                try:
                    answer = json.loads(child(arguments, time_out).splitlines()[-1])
                except subprocess.TimeoutExpired:
                    found.timed_out = True
                    continue
                found.seconds.append(answer["seconds"])
                found.cpu_seconds.append(answer["cpu_seconds"])
                if answer["extra_bytes"] is not None:
                    found.extra_bytes.append(answer["extra_bytes"])
                found.values, found.std_errors = answer["values"], answer["std_errors"]
    return Setting(n, k, rounds, truth, measured)


def import_times(rounds: int = 5) -> dict[str, float]:
    """Median seconds that each import adds to those before it, in fresh interpreters.

    Timed inside one interpreter: the difference of two whole runs would drown in the noise of
    what they have in common.
    """
    steps = {
        "sklearn": "import sklearn.base, sklearn.linear_model",
        "package": "import heckmanfa",
        "estimator": "from heckmanfa import Heckman",
    }
    clock = "marks.append(time.perf_counter())"
    script = "\n".join(
        ["import json, time", "marks = []", clock]
        + [line for step in steps.values() for line in (step, clock)]
        + ["print(json.dumps(marks))"]
    )
    # One unmeasured run compiles the files and fills the system's cache.
    child(["-c", script])
    marks = [json.loads(child(["-c", script])) for _ in range(rounds)]
    return dict(zip(steps, np.median(np.diff(marks), axis=0).tolist(), strict=True))


def disagreements(setting: Setting) -> list[str]:
    """List the estimates that differ from another program's or from the truth."""
    found = []
    for first, second in ((OURS, STATSMODELS), (OURS, STATSPAI), (OURS_ML, STATSPAI_ML)):
        both = [setting.programs.get(program) for program in (first, second)]
        if any(result is None or not result.values for result in both):
            continue
        gap = max(abs(np.subtract(both[0].values, both[1].values)))
        if not gap <= AGREEMENT:
            found.append(f"{setting.name}: {first} and {second} differ by {gap:.2g}")
    for program in (OURS, OURS_ML):
        ours = setting.programs.get(program)
        if ours is None or not ours.values:
            continue
        off = max(abs(np.subtract(ours.values, setting.truth) / np.asarray(ours.std_errors)))
        if not off <= TRUTH_ERRORS:
            found.append(f"{setting.name}: {program} is {off:.1f} standard errors off the truth")
    return found


def largest_gap(settings: Sequence[Setting]) -> float:
    """Largest difference of a two-step estimate between heckmanfa and another program."""
    gaps = [
        float(max(abs(np.subtract(setting.programs[OURS].values, setting.programs[other].values))))
        for setting in settings
        for other in (STATSMODELS, STATSPAI)
        if other in setting.programs
    ]
    return max(gaps)


def targets(settings: Sequence[Setting], imports: dict[str, float]) -> list[str]:
    """One line a target, with its numbers; sizes that were not run are left out."""
    lines = []

    def judge(words: str, met: bool, numbers: str) -> None:
        lines.append(judged(words, met, numbers))

    by_size = {(setting.n, setting.k): setting.programs for setting in settings}
    if (1_000_000, 30) in by_size:
        ours, theirs = (by_size[1_000_000, 30][program].best for program in (OURS, STATSPAI))
        judge(
            "two-step at 1,000,000 x 30 takes at most a quarter of StatsPAI's time",
            ours <= 0.25 * theirs,
            f"{ours:.2f} s against {theirs:.2f} s, {ours / theirs:.2f} of it",
        )
    if (100_000, 30) in by_size:
        ours, theirs = (by_size[100_000, 30][program].best for program in (OURS_ML, STATSPAI))
        judge(
            "ML at 100,000 x 30 takes no longer than StatsPAI's two-step",
            ours <= theirs,
            f"{ours:.2f} s against {theirs:.2f} s, {ours / theirs:.2f} of it",
        )
    # A few megabytes of blocks are in use whatever n is, so a small X proves nothing.
    used = {
        (setting.n, setting.k): max(setting.programs[program].memory for program in (OURS, OURS_ML))
        / setting.x_bytes
        for setting in settings
        if setting.n >= SIZES[1]
    }
    if np.isnan(list(used.values())).any():
        lines.append("not measured: peak memory (this system has no /proc/self/clear_refs)")
    elif used:
        judge(
            f"peak memory beyond the data stays below the size of X, from n = {SIZES[1]:,} on",
            max(used.values()) < 1,
            ", ".join(f"{ratio:.2f} of X at {n:,} x {k}" for (n, k), ratio in used.items()),
        )
    extra = imports["package"] + imports["estimator"]
    judge(
        "`from heckmanfa import Heckman` costs less than 0.3 s beyond scikit-learn "
        "(sklearn.base and sklearn.linear_model)",
        extra < 0.3,
        f"{extra:.3f} s after the {imports['sklearn']:.2f} s of scikit-learn "
        f"(`import heckmanfa` alone {imports['package']:.3f} s)",
    )
    return lines


HEADER = (
    "n",
    "K",
    "program",
    "seconds",
    "× our two-step",
    "× our ML",
    "CPU s",
    "extra MB",
    "extra / X",
)


def rows(settings: Sequence[Setting]) -> Iterator[tuple[str, ...]]:
    """The table, cell by cell."""
    for setting in settings:
        ours, ours_ml = (setting.programs[program].best for program in (OURS, OURS_ML))
        for program, found in setting.programs.items():
            if found.timed_out and not found.seconds:
                yield (
                    f"{setting.n:,}",
                    str(setting.k),
                    program,
                    "timed out",
                    *[""] * (len(HEADER) - 4),
                )
                continue
            yield (
                f"{setting.n:,}",
                str(setting.k),
                program,
                f"{found.best:.3f}",
                f"{found.best / ours:.2f}",
                f"{found.best / ours_ml:.2f}",
                f"{min(found.cpu_seconds):.3f}",
                f"{found.memory / 1e6:.0f}",
                f"{found.memory / setting.x_bytes:.2f}",
            )


def agreement(settings: Sequence[Setting], wrong: Sequence[str]) -> list[str]:
    """What the programs' estimates say about one another."""
    if wrong:
        return [f"ESTIMATES DISAGREE: {line}" for line in wrong]
    return [
        "Estimates agree: the two-step coefficients of all programs differ by "
        f"{largest_gap(settings):.1e} at most, the ML ones (where StatsPAI's are computed) by "
        f"less than {AGREEMENT:g}, and heckmanfa's are within {TRUTH_ERRORS:g} standard errors of "
        "the truth."
    ]


def rounds_of(n: int) -> int:
    # A large fit is long enough to be timed well twice; a third round would cost a minute.
    return 3 if n < 1_000_000 else 2


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--quick", action="store_true", help=f"only n = {SIZES[0]:,}")
    parser.add_argument("--out", type=Path, help="a Markdown page to put the figures into")
    options = parser.parse_args(arguments)
    sizes = SIZES[:1] if options.quick else options.sizes

    progress = Console(stderr=True)
    load, start = OtherLoad(), time.perf_counter()
    imports = import_times()
    settings = [run_setting(*ML_SIZE, [OURS, OURS_ML, STATSPAI_ML], 1, ML_TIME_OUT)]
    for n in sizes:
        for k in FEATURES:
            progress.print(f"{time.perf_counter() - start:4.0f} s: {n:,} x {k} ...", style="dim")
            settings.append(run_setting(n, k, BESIDE, rounds_of(n)))
    wrong = [line for setting in settings for line in disagreements(setting)]

    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            *NOTES,
            "Seconds are the best of "
            + ", ".join(f"{setting.rounds} at {setting.name}" for setting in settings)
            + " rounds.",
        ],
        "agreement": agreement(settings, wrong),
        "targets": targets(settings, imports),
    }
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    table = Table(title="Heckman's model: seconds and peak memory beyond the data")
    for column, name in enumerate(HEADER):
        table.add_column(name, justify="left" if column == 2 else "right", no_wrap=True)
    size = None
    for cells in rows(settings):
        if size not in (None, cells[:2]):
            table.add_section()
        size = cells[:2]
        table.add_row(*cells, style="bold" if "heckmanfa" in cells[2] else None)
    console.print(table)
    tell(console, lines, time.perf_counter() - start)
    if options.out is not None:
        table = markdown_table(HEADER, [2], rows(settings))
        write(options.out, markdown([table], lines, BEGIN, END), BEGIN, END)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
