"""What the benchmarks share: processes, the state of the machine, and pages of figures."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

Marks = tuple[str, str]
"""Comments between which figures stand in a page"""
ROOT = Path(__file__).resolve().parents[1]
# If other programs take more than this share of the processors, ratios move by half or more.
BUSY = 0.1


def child(
    arguments: Sequence[str],
    time_out: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a fresh interpreter and return what it printed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=time_out,
        env=environment,
    ).stdout


def asked(module: str, *words: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a benchmark module in a fresh interpreter; return the JSON that it printed last."""
    printed = child(["-m", f"benchmarks.{module}", *words], environment=environment)
    return json.loads(printed.splitlines()[-1])


def quickest(module: str, *words: str, rounds: int) -> dict[str, Any]:
    """Return the answer with the fewest seconds of several rounds."""
    return min((asked(module, *words) for _ in range(rounds)), key=lambda answer: answer["seconds"])


def simulated(path: Path, rows: int, features: int) -> Path:
    """Return a simulated table, made if missing: half of its features predict."""
    if not path.exists():
        words = ["simulate", str(path), "--rows", str(rows), "--features", str(features)]
        words += ["--predicting", str(features // 2), "--truth", str(path.with_suffix(".json"))]
        child(["-c", "from heckmanfa.cli import main; main()", *words])
    return path


@contextmanager
def counted_passes() -> Iterator[dict[str, float]]:
    """Count passes over Parquet files: whole ones, and those over a part as that part."""
    from heckmanfa.data.scan.parquet_rows import ParquetRows

    passes = {"full": 0.0, "part": 0.0}
    run = ParquetRows.run

    def counted(self: ParquetRows, task: Any, reading: Any) -> Any:
        if reading.heads is None:
            passes["full"] += 1.0
        else:
            passes["part"] += sum(reading.heads.values()) / self.n_rows
        return run(self, task, reading)

    with patch.object(ParquetRows, "run", counted):
        yield passes


class OtherLoad:
    """Share of the machine's processor time that others took while this program ran."""

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        try:
            with Path("/proc/stat").open() as file:
                ticks = [int(word) for word in file.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        per_second = os.sysconf("SC_CLK_TCK")
        idle = ticks[3] + ticks[4]
        mine = sum(os.times()[:4])
        return (sum(ticks) - idle) / per_second, sum(ticks) / per_second, mine

    def share(self) -> float:
        now = self._now()
        if now is None or self._start is None:
            return float("nan")
        busy, everything, mine = (b - a for a, b in zip(self._start, now, strict=True))
        return max(busy - mine, 0.0) / everything


def machine(others: float, programs: Sequence[str]) -> list[str]:
    """Describe the machine and the versions of the programs."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = []
    for name in programs:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} from source")
    busy = "an unknown share" if np.isnan(others) else f"{100 * others:.0f} %"
    caution = " THE MACHINE WAS BUSY: repeat this when it is quiet." if others > BUSY else ""
    return [
        f"{os.cpu_count()} cores, {model}, {platform.system()}; other programs took {busy} of the "
        f"processor time meanwhile.{caution}",
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {', '.join(versions)}.",
    ]


def judged(words: str, met: bool, numbers: str) -> str:
    """Write the line of a target."""
    return f"{'met' if met else 'NOT met'}: {words}: {numbers}"


def markdown_table(
    header: Sequence[str], words: Sequence[int], rows: Iterable[Sequence[str]]
) -> str:
    """Render a table whose columns are numbers, except those listed in ``words``."""
    align = ["---" if column in words else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, align, *rows))


@dataclass
class Figures:
    """A table, cell by cell."""

    title: str
    header: tuple[str, ...]
    words: tuple[int, ...]
    """positions of the columns that are not numbers"""
    rows: list[tuple[str, ...]]

    def show(self, console: Console) -> None:
        table = Table(title=self.title)
        for column, name in enumerate(self.header):
            justify = "left" if column in self.words else "right"
            table.add_column(name, justify=justify, no_wrap=True)
        for cells in self.rows:
            table.add_row(*cells)
        console.print(table)

    def markdown(self) -> str:
        return f"{self.title}:\n\n{markdown_table(self.header, self.words, self.rows)}"


def span(seconds: float) -> str:
    """Format seconds in the unit that suits them."""
    for unit, size in (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{count:,.0f} {unit}" if count >= 10 else f"{count:.1f} {unit}"
    return f"{seconds:.2f} s"


def write(page: Path, text: str, begin: str, end: str) -> None:
    """Replace the figures of a page and leave its other text alone, or start a page."""
    old = page.read_text(encoding="utf-8") if page.exists() else "# Benchmarks\n"
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}{end}"
    before, _, rest = old.partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(before + text.rstrip("\n") + after.rstrip("\n") + "\n", encoding="utf-8")


def markdown(tables: Iterable[str], lines: dict[str, list[str]], begin: str, end: str) -> str:
    """Render tables and the lines about them as part of a page, between two comments."""
    parts = [
        " ".join(lines["machine"]),
        *tables,
        "\n".join(f"- {line}" for line in [*lines["notes"], *lines["agreement"]]),
        "Targets:",
        "\n".join(f"- {line}" for line in lines["targets"]),
    ]
    return "\n\n".join([begin, *parts, end]) + "\n"


def publish(
    figures: Figures, lines: dict[str, list[str]], seconds: float, page: Path | None, marks: Marks
) -> None:
    """Print a table and the lines about it, and write both to a page if one is given."""
    console = Console(width=110)
    figures.show(console)
    tell(console, lines, seconds)
    if page is not None:
        write(page, markdown([figures.markdown()], lines, *marks), *marks)


def tell(console: Console, lines: dict[str, list[str]], seconds: float) -> None:
    """Print the lines about the figures, and whether the targets are met."""
    for part in ("machine", "notes", "agreement"):
        for line in lines[part]:
            console.print(f"- {line}", markup=False)
    console.print(f"- The run took {seconds:.0f} s.")
    print()
    for line in lines["targets"]:
        print(line)
