"""Would the tests notice? Changes the package in small ways, and runs the tests of each change.

    python -m pytest -n 2 -p benchmarks.line_tests      # once: which tests execute which line
    python -m benchmarks.mutate --number 300 --seed 1
    python -m benchmarks.mutate --at model/likelihood.py:205

The tree is never changed: each mutant is written into a copy of the package in a temporary folder.
The tests of its line run there, the fastest first, those of its room before others, until one fails
or the time is over. A process that has imported NumPy and its like, but not the package, is forked
for each mutant. What no test noticed is listed by place. The mutants of `equivalent_mutants.json`,
each with the reason why no test could or should notice it, are neither run nor counted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants import ROOMS, Mutant, mutants_of, pick

ROOT = Path.cwd()
PACKAGE = ROOT / "src" / "heckmanfa"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
# Imported once, before the forks; none of them is used here, so none has threads yet.
_HEAVY = (
    *("numpy", "scipy.stats", "scipy.optimize", "scipy.linalg", "pandas", "sklearn.base"),
    *("sklearn.utils.validation", "sklearn.linear_model", "sklearn.model_selection", "pytest"),
    *("sklearn.utils.estimator_checks", "_pytest.assertion.rewrite", "hypothesis", "narwhals"),
    *("polars", "pyarrow", "pyarrow.parquet", "pyarrow.dataset", "formulaic", "joblib", "skops.io"),
    *("matplotlib.pyplot", "dask.dataframe", "distributed", "torch", "mpmath", "duckdb"),
)
# The exit status of a forked process that did not get as far as running tests.
_BROKEN = 99


class LineTests:
    """What `benchmarks.line_tests` found: the tests of each line, and how long each takes."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.seconds: dict[str, float] = {}
        using: dict[str, list[str]] = defaultdict(list)
        for path in sorted(folder.glob("tests.*.json")):
            for name, test in json.loads(path.read_text()).items():
                if not test["passed"]:
                    continue
                self.seconds[name] = test["seconds"]
                for fixture in test["shared"]:
                    using[fixture].append(name)
        self._tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in sorted(folder.glob("lines.*")):
            data = coverage.CoverageData(str(path))
            data.read()
            for file in data.measured_files():
                inside = file.rpartition("/heckmanfa/")[2]
                for line, contexts in data.contexts_by_lineno(file).items():
                    for context in contexts:
                        tests = using[context] if context.startswith("fixture ") else [context]
                        self._tests[inside][line].update(
                            test for test in tests if test in self.seconds
                        )

    def forget(self, there: Collection[str]) -> None:
        """Forget the tests that are gone: naming one would end a run like a failure."""
        self.seconds = {name: took for name, took in self.seconds.items() if name in there}
        for by_line in self._tests.values():
            for tests in by_line.values():
                tests.intersection_update(self.seconds)

    def of(self, mutant: Mutant, seconds: float) -> list[str]:
        """Return the tests of a mutant, its room's and the fastest first, while there is time."""
        by_line = self._tests[mutant.path]
        tests = set().union(*(by_line.get(line, set()) for line in mutant.lines))
        room = mutant.path.partition("/")[0]

        def order(test: str) -> float:
            # A test of another room is less likely to notice.
            return self.seconds[test] * (1.0 if test.split("/")[1] == room else 2.0)

        chosen, total = [], 0.0
        for test in sorted(tests, key=order):
            total += self.seconds[test]
            if chosen and total > seconds:
                break
            chosen.append(test)
        return chosen


@dataclass
class Outcome:
    mutant: Mutant
    tests: list[str]
    noticed: bool = False
    by: str = ""
    """the test that failed, or what ended the run"""
    cpu: float = 0.0


class Place:
    """A copy of the package, where one mutant at a time lives."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.source = folder / f"src{number}"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self.log = folder / f"log{number}"
        self._time = time.time()

    def start(self, mutant: Mutant | None, tests: Sequence[str], seconds: float) -> int:
        """Fork a process that runs tests with the mutant, and return its id."""
        if mutant is not None:
            self._write(mutant.path, mutant.apply((PACKAGE / mutant.path).read_bytes()))
        pid = os.fork()
        if pid:
            return pid
        status = _BROKEN
        try:
            status = _run_tests(self.source, self.log, tests, seconds)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def restore(self, mutant: Mutant) -> None:
        self._write(mutant.path, (PACKAGE / mutant.path).read_bytes())

    def _write(self, path: str, text: bytes) -> None:
        # Python knows compiled files by size and second: each writing gets a second of its own.
        self._time += 2.0
        file = self.source / "heckmanfa" / path
        file.write_bytes(text)
        os.utime(file, (self._time, self._time))

    def failed_test(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return failed[0].split(" - ")[0] if failed else (lines[-1] if lines else "no output")


def _run_tests(source: Path, log: Path, tests: Sequence[str], seconds: float) -> int:
    os.setsid()
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    limit = int(20 + 5 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.insert(0, str(source))
    sys.path.insert(1, str(ROOT))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfE", "--tb=line"]
    # The heavy imports came before pytest could rewrite their asserts.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests]))


def run(outcomes: Sequence[Outcome], times: LineTests, jobs: int, wall: float) -> Iterator[Outcome]:
    """Run the tests of every mutant, a few at a time, and yield each as it is decided."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free = [Place(Path(folder), number) for number in range(jobs)]
        busy: dict[int, tuple[Place, Outcome, float]] = {}
        waiting = list(reversed(outcomes))
        while waiting or busy:
            while free and waiting:
                outcome, place = waiting.pop(), free.pop()
                if not outcome.tests:
                    outcome.by = "no test executes it"
                    free.append(place)
                    yield outcome
                    continue
                seconds = sum(times.seconds[test] for test in outcome.tests)
                pid = place.start(outcome.mutant, outcome.tests, seconds)
                busy[pid] = place, outcome, time.monotonic() + wall
            for pid in list(busy):
                ended, status, usage = os.wait4(pid, os.WNOHANG)
                place, outcome, deadline = busy[pid]
                late = not ended and time.monotonic() > deadline
                if late:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                    _, status, usage = os.wait4(pid, 0)
                if not ended and not late:
                    continue
                del busy[pid]
                code = os.waitstatus_to_exitcode(status)
                outcome.noticed = code != 0
                outcome.cpu = usage.ru_utime + usage.ru_stime
                if code == _BROKEN:
                    raise SystemExit(place.log.read_text())
                if code:
                    outcome.by = "time" if late or -code == signal.SIGXCPU else place.failed_test()
                place.restore(outcome.mutant)
                free.append(place)
                yield outcome
            time.sleep(0.02)


def collected() -> set[str]:
    """Return the tests that there are."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {*done.stdout.splitlines()}


def unreliable(tests: Sequence[str], times: LineTests) -> list[str]:
    """Return those of the tests that fail here without a mutant."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        place = Place(Path(folder), 0)
        known, wrong = list(tests), []
        while known:
            pid = place.start(None, known, sum(times.seconds[test] for test in known))
            _, status, _ = os.wait4(pid, 0)
            if os.waitstatus_to_exitcode(status) == 0:
                break
            failed = place.failed_test().partition(" ")[2]
            if failed not in known:
                raise SystemExit(f"the tests do not run without a mutant: {place.failed_test()}")
            wrong.append(failed)
            known = known[known.index(failed) + 1 :]
        return wrong


@dataclass
class Score:
    outcomes: list[Outcome]
    equivalent: list[Mutant]
    """which were not run"""

    def text(self) -> str:
        holes = [one for one in self.outcomes if not one.noticed]
        noticed = len(self.outcomes) - len(holes)
        counted = max(len(self.outcomes), 1)
        lines = [""]
        for one in sorted(holes, key=lambda one: (one.mutant.path, one.mutant.line)):
            lines += [_described(one), ""]
        for room in ROOMS:
            inside = [one for one in self.outcomes if one.mutant.path.startswith(f"{room}/")]
            found = sum(one.noticed for one in inside)
            lines.append(f"{room:10} {found:4} of {len(inside):4} noticed")
        lines.append(
            f"{len(self.outcomes) + len(self.equivalent)} mutants: {noticed} noticed, "
            f"{len(self.equivalent)} equivalent, "
            f"{len(holes)} not noticed: {noticed / counted:.1%} of those that are not equivalent"
        )
        return "\n".join(lines)


def _described(one: Outcome) -> str:
    mutant = one.mutant
    return (
        f"{mutant.path}:{mutant.line} in {mutant.where}\n    {mutant.source}\n"
        f"    {mutant.change} ({len(one.tests)} tests{', ' + one.by if one.by else ''})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=300, help="mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="the first of them, run elsewhere")
    parser.add_argument("--at", action="append", help="module.py:line: every mutant there instead")
    parser.add_argument("--again", type=Path, help="only what an earlier --out did not notice")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for each mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--map", type=Path, default=Path(".line_tests"), help="of line_tests")
    parser.add_argument("--out", type=Path, help="a JSON file of every outcome")
    options = parser.parse_args()
    if options.at:
        mutants = [mutant for place in options.at for mutant in _at(place)]
    else:
        mutants = pick(PACKAGE, options.number, options.seed)[options.skip :]
    if options.again:
        earlier = json.loads(options.again.read_text())
        missed = {tuple(one["key"]) for one in earlier if not one["noticed"]}
        mutants = [mutant for mutant in mutants if mutant.key in missed]
    reasons = {
        (one["module"], one["function"], one["line"], one["change"]): one["reason"]
        for one in json.loads(EQUIVALENT.read_text())
    }
    equivalent = [mutant for mutant in mutants if mutant.key in reasons]
    mutants = [mutant for mutant in mutants if mutant.key not in reasons]
    times = LineTests(options.map)
    times.forget(collected())
    for name in _HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "heckmanfa" not in sys.modules
    outcomes = [Outcome(mutant, times.of(mutant, options.seconds)) for mutant in mutants]
    score = Score([], equivalent)
    for number, one in enumerate(run(outcomes, times, options.jobs, 900.0), 1):
        score.outcomes.append(one)
        word = "noticed" if one.noticed else "SURVIVED"
        print(f"{number}/{len(outcomes)} {word} {one.mutant.path}:{one.mutant.line}", end=" ")
        print(f"{one.mutant.change}; {one.cpu:.0f} s; {one.by}", flush=True)
    by = {one.by.partition(" ")[2] for one in score.outcomes if one.noticed} & times.seconds.keys()
    wrong = unreliable(sorted(by), times)
    if wrong:
        print("these fail without a mutant; what they noticed is not counted:", *wrong, sep="\n  ")
        for one in score.outcomes:
            if one.by.partition(" ")[2] in wrong:
                one.noticed = False
    print(score.text())
    if options.out:
        rows = [
            {"key": one.mutant.key, "at": one.mutant.line, "noticed": one.noticed, "by": one.by}
            for one in score.outcomes
        ]
        options.out.write_text(json.dumps(rows, indent=1))


def _at(place: str) -> list[Mutant]:
    path, _, line = place.partition(":")
    return [one for one in mutants_of(PACKAGE / path, PACKAGE) if one.line == int(line)]


if __name__ == "__main__":
    main()
