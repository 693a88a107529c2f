"""Throw hostile input at the package for ten minutes, and say what broke.

    make fuzz                                   ten minutes, a new seed
    python -m fuzz --minutes 1 --seed 7         shorter, or the same cases again
    python -m fuzz --target model --case 123    one case, with its traceback

Cases run in child processes, so a crash, a hang or too much memory is a finding like any other. A
case is good if it succeeds or is refused by an error of ours, changes no input, leaves no file
behind when it fails, runs nothing that a file brings, prints no control characters, and the
process stays below a gigabyte of memory. Some cases also know the right numbers (`fuzz.hostile`).
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import secrets
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fuzz.worker import work

_TARGETS = (
    *("csv", "parquet", "model", "formula", "options"),
    *("names", "sizes", "places", "service", "rows"),
)
# A comparison of all methods trains for a minute on a busy machine.
_LONGEST = 240.0
# Processes are replaced now and then, so a leak of theirs is not taken for a case's memory.
_CASES_PER_PROCESS = 150


class _Runner:
    """One child process after the other, on the cases of one target."""

    def __init__(self, target: str, seed: int) -> None:
        self.target, self.next = target, seed
        self.counts: Counter[str] = Counter()
        self.memory = 0
        self.findings: list[tuple[int, str]] = []

    def run(self, until: float) -> None:
        """Run until a time, or until a process has done its share."""
        context = mp.get_context("spawn")
        mine, theirs = context.Pipe(duplex=False)
        seeds = range(self.next, self.next + _CASES_PER_PROCESS)
        process = context.Process(target=work, args=(self.target, seeds, theirs))
        process.start()
        theirs.close()
        started, ended = time.monotonic(), False
        try:
            while not ended:
                ended = self._hear(mine, process, started, until)
                started = time.monotonic()
        finally:
            process.kill()
            process.join()

    def _hear(self, pipe: Any, process: Any, started: float, until: float) -> bool:
        """Take one word from the process; True where it has no more to say."""
        limit = started + _LONGEST
        while not pipe.poll(0.2):
            if time.monotonic() > limit:
                self._find("hangs")
                return True
            if not process.is_alive() and not pipe.poll(0):
                self._find(f"kills the process (exit {process.exitcode})")
                return True
        try:
            what, text = pipe.recv()
        except EOFError:
            process.join()
            self._find(f"kills the process (exit {process.exitcode})")
            return True
        if what == "start":
            self.next = text + 1
            return time.monotonic() > until
        if what == "done":
            self.memory = max(self.memory, text)
            return True
        self.counts[what] += 1
        if what == "broken":
            self._find(text)
            return "of memory" in text
        return False

    def _find(self, text: str) -> None:
        self.findings.append((self.next - 1, text))
        again = f"python -m fuzz --target {self.target} --case {self.next - 1}"
        print(f"\n{again}\n{text.strip()[-3000:]}", flush=True)


def _main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first case of each target")
    parser.add_argument("--target", choices=_TARGETS, default=None)
    parser.add_argument("--case", type=int, default=None, help="run this case alone")
    chosen = parser.parse_args()
    if chosen.case is not None:
        import fuzz.hostile  # noqa: F401
        from fuzz.cases import run_case

        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        run_case(chosen.target or "csv", chosen.case, folder)
        print(f"case {chosen.case} is fine; its files are in {folder}")
        return 0
    seed = secrets.randbelow(10**9) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    runners = [_Runner(target, seed) for target in _TARGETS if chosen.target in (None, target)]
    end = time.monotonic() + 60.0 * chosen.minutes
    # Turns are short enough for every target to have several on two processes.
    turn = 60.0 * chosen.minutes / (2 * len(runners))
    with ThreadPoolExecutor(2) as processes:
        while time.monotonic() < end:
            list(
                processes.map(lambda runner: runner.run(min(end, time.monotonic() + turn)), runners)
            )
    for runner in runners:
        said = f"{runner.counts['fine']:,} cases fine, {len(runner.findings)} broken"
        print(f"{runner.target:>8}: {said}; cases {seed} to {runner.next - 1}")
    return 1 if any(runner.findings for runner in runners) else 0


if __name__ == "__main__":
    sys.exit(_main())
