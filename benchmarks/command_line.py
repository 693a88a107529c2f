"""Time of ``heckmanfa fit`` on a CSV file of a million rows beside pandas reading it: `make bench`.

A simulated table of thirty features, all of which select and fifteen predict. The command reads and
encodes it, fits the probit, finds the best of all assignments by BIC, and prints the answer. Every
measurement is a process of its own; the two take turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import Figures, OtherLoad, judged, machine, publish

INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas")
ROWS, FEATURES, PREDICTING = 1_000_000, 30, 15
ROUNDS = 2
MOST_READS, FIRST_WORD = 5.0, 1.0
COMMAND = [sys.executable, "-c", "from heckmanfa.cli import main; main()"]
BEGIN = "<!-- figures of the command line: made by `python -m benchmarks.command_line --out` -->"
END = "<!-- end of the command line's figures -->"


def _run(words: list[str]) -> tuple[float, float]:
    """Seconds that a process takes, and seconds until it says anything on its error stream."""
    start = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        first = time.perf_counter() - start
        _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return time.perf_counter() - start, first


def _read(path: Path) -> float:
    """Seconds of `pandas.read_csv` alone, in a process of its own."""
    code = (
        "import sys, time, pandas; start = time.perf_counter(); pandas.read_csv(sys.argv[1]); "
        "print(time.perf_counter() - start)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        size = ["--rows", str(ROWS), "--features", str(FEATURES), "--predicting", str(PREDICTING)]
        _run([*COMMAND, "simulate", str(table), *size])
        megabytes = table.stat().st_size / 1e6
        load = OtherLoad()
        reads, fits = [], []
        for _ in range(ROUNDS):
            reads.append(_read(table))
            fits.append(_run([*COMMAND, "fit", str(table), "--outcome", "y"]))
        others = load.share()
    read = min(reads)
    fit, first = min(fits)[0], min(fit[1] for fit in fits)
    figures = Figures(
        f"CSV of {ROWS:,} rows and {FEATURES + 1} columns, {megabytes:.0f} MB",
        ("program", "seconds", "× reading"),
        (0,),
        [
            ("pandas.read_csv", f"{read:.1f}", "1.00"),
            ("heckmanfa fit", f"{fit:.1f}", f"{fit / read:.2f}"),
        ],
    )
    lines = {
        "machine": machine(others, INSTALLED),
        "notes": [
            f"Seconds are the best of {ROUNDS} rounds; those of `heckmanfa fit` are of the whole "
            "process, from its start to the last line.",
        ],
        "agreement": [],
        "targets": [
            judged(
                f"a fit takes less than {MOST_READS:g} times what pandas takes to read the file",
                fit < MOST_READS * read,
                f"{fit:.1f} s against {read:.1f} s, {fit / read:.2f} times",
            ),
            judged(
                f"progress is visible within {FIRST_WORD:g} s",
                first < FIRST_WORD,
                f"the first word after {first:.2f} s",
            ),
        ],
    }
    publish(figures, lines, time.perf_counter() - start, options.out, (BEGIN, END))


if __name__ == "__main__":
    main()
