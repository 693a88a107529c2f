"""Whether every number of the package is what it was: record them once, compare them later.

``python -m benchmarks.same_numbers record FILE.json`` fits some dozens of data sets and options
through the public API and the command line, and writes all numbers, choices and classes of errors.
With ``PYTHONPATH=OTHER/src``, it records another checkout: the commit before a change, say.
``python -m benchmarks.same_numbers compare FILE.json`` does so again and compares. Numbers must
agree to 1e-12 relative, where an entry below a thousandth of the largest in its array is judged on
the scale of a thousandth of that one. Choices must agree exactly; keys may be added, not lost.
Sentences, timings, versions and paths are not compared (see ``EXCLUDED`` in `benchmarks.facts`).
Compare on the machine that recorded, with OMP_NUM_THREADS=1: other processors round differently.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import (
    cases_command_line,
    cases_estimates,
    cases_inputs,
    cases_models,
    cases_searches,
)
from benchmarks.facts import Difference, Facts, Flat, differ

Case = Callable[[Facts], None]
_SHOWN = 8


def all_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    modules = cases_estimates, cases_searches, cases_models, cases_inputs, cases_command_line
    for module in modules:
        cases |= module.cases()
    return cases


def run_case(case: Case) -> Flat:
    """Run a case; its warnings are recorded by class, and so is the error that ends it."""
    facts = Facts()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        facts.attempt("case", lambda: case(facts))
    own = {one.category for one in caught if one.category.__module__.startswith("heckmanfa")}
    facts.flat["warning_classes"] = sorted(one.__name__ for one in own)
    return facts.flat


def run_cases(wanted: str) -> Iterator[tuple[str, Flat, float]]:
    for name, case in all_cases().items():
        if wanted in name:
            start = time.perf_counter()
            yield name, run_case(case), time.perf_counter() - start


def record(file: Path, wanted: str) -> int:
    found: dict[str, Flat] = {}
    for name, flat, seconds in run_cases(wanted):
        found[name] = flat
        errors = [f"{key}: {value[0]}" for key, value in flat.items() if key.endswith(".error")]
        said = f"; errors: {', '.join(errors)}" if errors else ""
        print(f"{name}: {_size(flat)}, {seconds:.1f} s{said}", flush=True)
    file.write_text(json.dumps(found), encoding="utf-8")
    total: Flat = {
        f"{name}.{key}": one for name, flat in found.items() for key, one in flat.items()
    }
    print(f"{len(found)} cases, {_size(total)}; written to {file}")
    return 0


def _size(flat: Flat) -> str:
    numbers = sum(isinstance(one, float) for values in flat.values() for one in values)
    words = sum(not isinstance(one, float) for values in flat.values() for one in values)
    return f"{len(flat):,} keys, {numbers:,} numbers, {words:,} discrete values"


def _read(file: Path) -> dict[str, Flat]:
    found: dict[str, Flat] = json.loads(file.read_text(encoding="utf-8"))
    return found


def compare(file: Path, wanted: str) -> int:
    old = {name: flat for name, flat in _read(file).items() if wanted in name}
    found: dict[str, Difference] = {}
    for name, flat, seconds in run_cases(wanted):
        if name not in old:
            print(f"{name}: new, not in the record")
            continue
        # The record's form of what is not a number comes from JSON, and so must this one.
        found[name] = differ(old[name], json.loads(json.dumps(flat)))
        _tell(name, found[name], seconds)
    for name in old.keys() - found.keys():
        found[name] = Difference(faults=["the case is missing"])
        _tell(name, found[name], 0.0)
    return _tell_total(found)


def _tell(name: str, one: Difference, seconds: float) -> None:
    verdict = "same" if one.is_same else "DIFFERENT"
    parts = [
        f"{one.n_numbers:,} numbers ({one.n_changed:,} not bit for bit)",
        f"largest relative difference {one.largest:.1e}",
        f"{one.n_words:,} discrete values",
        *([f"{len(one.faults)} faults"] if one.faults else []),
        *([f"{len(one.new)} new keys"] if one.new else []),
    ]
    print(f"{verdict}: {name}: {', '.join(parts)}; {seconds:.1f} s", flush=True)
    for words, lines in (("", one.faults), ("new: ", one.new)):
        for line in lines[:_SHOWN]:
            print(f"    {words}{line}")
        if len(lines) > _SHOWN:
            print(f"    {words}and {len(lines) - _SHOWN} more")


def _tell_total(found: dict[str, Difference]) -> int:
    different = [name for name, one in found.items() if not one.is_same]
    numbers = sum(one.n_numbers for one in found.values())
    changed = sum(one.n_changed for one in found.values())
    largest = max((one.largest for one in found.values()), default=0.0)
    print(
        f"{len(found)} cases, {len(different)} different; {numbers:,} numbers, {changed:,} not "
        f"bit for bit, largest relative difference {largest:.1e}; "
        f"{sum(one.n_words for one in found.values()):,} discrete values"
    )
    return 1 if different else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path, help="the record, .json")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    action = record if arguments.action == "record" else compare
    sys.exit(action(arguments.file, arguments.only))


if __name__ == "__main__":
    main()
