"""Which modules of the package a fit passes through, in what order, and what is computed twice.

``python -m benchmarks.walk`` profiles `Heckman.fit`, `HeckmanBestSubset.fit` and
`HeckmanAverage.fit` on Mroz's data, ``heckmanfa fit --report --json`` on the same table as a file,
and the report alone, of an analysis that is done. A module counts where one of its functions runs;
the code of the module itself does not, nor does code made from text, such as the methods of
dataclasses. A switch is a call in another module than the call before it, or the return to one: the
profiler sees both. Functions are found by their names, so the inner layout of the package does not
matter. Each run is counted after it ran once.

Of the report, four lines say what was done again that once would do: how often the same rows were
read, a probit was fitted, assignments were enumerated, and a Wald test was made.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import heckmanfa
from benchmarks.public import MROZ_FEATURES, MROZ_SELECTION, run_here
from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.report import write_report

_PACKAGE = Path(heckmanfa.__file__).resolve().parent
# Calls of functions with these names are counted wherever they live, beside all public functions
# of modules under heckmanfa.inference.
WATCHED = frozenset(
    (
        *("diagnose", "diagnostics", "what_if", "uncertainty_interval", "exclusion_test"),
        *("specification_tests", "profile_rho", "rho_profile", "margins", "bootstrap"),
        *("compare", "compare_methods", "comparison", "report_search", "search_report"),
        *("fit_least_squares", "solve_two_step", "fit_two_step", "fit_likelihood", "fit_probit"),
        *("fit_selection", "gather_moments", "kept_out", "selection_test", "answer", "caveats"),
        *("of_fit", "of_table", "of_search", "tidy", "vcov", "summarize", "resolve", "analyse"),
        *("prepare", "load", "fit", "fit_model"),
    )
)
# What a report does, and the functions or classes that say how often.
COUNTED = {
    "rows read": ("read_sample", "read_features", "read_rows", "read_fit_rows"),
    "probits fitted": ("fit_probit",),
    "assignments enumerated": ("enumerate_assignments", "sample_assignments"),
    "Wald tests made": ("Wald",),
}


class Walk:
    """Calls of the package's functions, as a profiler saw them."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        """(module, function) to the number of calls, in the order of the first ones"""
        self.made: Counter[str] = Counter()
        """class to the number of objects, of this and other libraries"""
        self.n_call_switches = 0
        """calls in another module than the call before"""
        self.n_switches = 0
        """those, and returns to another module"""
        self._called = self._inside = ""
        self._first_place: dict[CodeType, int] = {}

    @property
    def modules(self) -> dict[str, list[str]]:
        """The functions of each module, both in the order of the first call."""
        found: dict[str, list[str]] = {}
        for module, function in self.calls:
            found.setdefault(module, []).append(function)
        return found

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if frame.f_code.co_name == "__init__":
                self.made[type(frame.f_locals.get("self")).__name__] += 1
            module = _module_of(frame.f_code)
            if module is not None:
                self._enter(module, frame)
        elif event == "return" and frame.f_back is not None:
            # Returning to another library is not a switch: the walk stays where it was.
            module = _module_of(frame.f_back.f_code)
            if module is not None and _module_of(frame.f_code) is not None:
                self._move_to(module)

    def _enter(self, module: str, frame: FrameType) -> None:
        self.n_call_switches += bool(self._called) and module != self._called
        self._called = module
        self._move_to(module)
        if not self._resumes(frame):
            self.calls[module, frame.f_code.co_qualname] += 1

    def _move_to(self, module: str) -> None:
        self.n_switches += bool(self._inside) and module != self._inside
        self._inside = module

    def _resumes(self, frame: FrameType) -> bool:
        """Whether a generator goes on, which a profiler reports as a call."""
        code = frame.f_code
        if not code.co_flags & inspect.CO_GENERATOR:
            return False
        return self._first_place.setdefault(code, frame.f_lasti) != frame.f_lasti


@cache
def _module_of(code: CodeType) -> str | None:
    """The module that a function is from; None outside the package."""
    path = Path(code.co_filename)
    if code.co_name == "<module>" or not path.is_relative_to(_PACKAGE):
        return None
    parts = ("heckmanfa", *path.relative_to(_PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


@contextmanager
def walked() -> Iterator[Walk]:
    walk = Walk()
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)


def walk_of(task: Callable[[], Any]) -> Walk:
    """Profile a task, after it ran once."""
    task()
    with walked() as walk:
        task()
    return walk


def repeated(walk: Walk) -> list[tuple[int, str, str]]:
    """Watched functions that were called more than once, the most frequent first."""
    found = [
        (count, module, function)
        for (module, function), count in walk.calls.items()
        if count > 1 and _is_watched(module, function)
    ]
    return sorted(found, key=lambda one: (-one[0], one[1:]))


def _is_watched(module: str, function: str) -> bool:
    *outer, name = function.split(".")
    if "<locals>" in outer or name.startswith(("_", "<")):
        return False
    return name in WATCHED or ("inference" in module.split(".") and not outer)


def show(title: str, walk: Walk, *, functions: bool) -> None:
    print(f"{title}: {len(walk.modules)} modules, {walk.calls.total():,} calls,")
    print(
        f"  {walk.n_call_switches:,} switches from call to call, "
        f"{walk.n_switches:,} with those back at returns"
    )
    for place, (module, names) in enumerate(walk.modules.items(), start=1):
        print(f"  {place:>3} {module}: {', '.join(names) if functions else len(names)}")
    print()


def show_repeated(walk: Walk) -> None:
    watched = {key: count for key, count in walk.calls.items() if _is_watched(*key)}
    print(f"Watched functions called: {len(watched)}; more than once:")
    for count, module, function in repeated(walk):
        print(f"  {count:>4} {module}.{function}")
    once = sorted(f"{module}.{name}" for (module, name), count in watched.items() if count == 1)
    print(f"  once: {', '.join(once)}")


def show_counted(walk: Walk) -> None:
    """Print how often a report does what once would do, by the function that does it."""
    print("Done in one report:")
    for what, names in COUNTED.items():
        counts = {name: walk.made[name] for name in names if walk.made[name]}
        for (_, function), count in walk.calls.items():
            name = function.rpartition(".")[2]
            if name in names:
                counts[name] = counts.get(name, 0) + count
        said = ", ".join(f"{count} by {name}" for name, count in counts.items())
        print(f"  {what}: {said or 'none'}")
    print()


def _table(folder: Path) -> Path:
    table = folder / "mroz.csv"
    load_mroz()[[*MROZ_FEATURES, "lwage"]].to_csv(table, index=False)
    return table


def walk_of_report(folder: Path) -> Walk:
    """Profile the second of two reports, each of an analysis of its own."""
    table = _table(folder)
    for _ in range(2):
        analysis = analyse(Question(str(table), "lwage"))
        with walked() as walk:
            write_report(analysis, folder / "page.html")
    return walk


def command(folder: Path) -> Callable[[], None]:
    """``heckmanfa fit`` on Mroz's table, with a report and JSON."""
    table = _table(folder)
    words = ["fit", str(table), "--outcome", "lwage", "--force"]
    words += ["--report", str(folder / "out.html"), "--json", str(folder / "out.json")]

    def run() -> None:
        status = run_here(words)
        if status:
            raise RuntimeError(f"heckmanfa {' '.join(words)} ended with status {status}")

    return run


def main() -> None:
    mroz = load_mroz()
    y = mroz["lwage"]
    few, many = mroz[MROZ_SELECTION], mroz[MROZ_FEATURES]
    plain, searching, averaging = Heckman(["educ", "exper"]), HeckmanBestSubset(), HeckmanAverage()
    fit = walk_of(lambda: plain.fit(few, y))
    search = walk_of(lambda: searching.fit(many, y))
    average = walk_of(lambda: averaging.fit(many, y))
    with tempfile.TemporaryDirectory() as name:
        line = walk_of(command(Path(name)))
        page = walk_of_report(Path(name))
    show("Heckman.fit", fit, functions=True)
    show("HeckmanBestSubset.fit", search, functions=True)
    show("HeckmanAverage.fit", average, functions=True)
    show("heckmanfa fit --report --json", line, functions=False)
    show("write_report", page, functions=False)
    show_counted(page)
    show_repeated(line)


if __name__ == "__main__":
    main()
