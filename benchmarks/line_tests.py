"""Which tests execute which line: a pytest plugin that the mutator reads.

`python -m pytest -p benchmarks.line_tests` runs the tests under coverage, with a context for each
test, and leaves a file for each process in the folder that `LINE_TESTS` names, or in `.line_tests`.
What a fixture of a module or of the session executes belongs to every test that asks for it, not to
the test that happened to be first.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

FOLDER = Path(os.environ.get("LINE_TESTS", ".line_tests")).resolve()

FOLDER.mkdir(parents=True, exist_ok=True)
_cover = coverage.Coverage(
    data_file=str(FOLDER / "lines"),
    data_suffix=f"{os.getpid()}",
    source_pkgs=["heckmanfa"],
    config_file=False,
    messages=False,
)
# From here on, so that the lines that run when a module is imported are seen too.
_cover.start()
_contexts = [""]
_tests: dict[str, dict[str, Any]] = defaultdict(
    lambda: {"seconds": 0.0, "passed": True, "shared": []}
)


def _switch(context: str) -> None:
    _contexts.append(context)
    _cover.switch_context(context)


def _switch_back() -> None:
    _contexts.pop()
    _cover.switch_context(_contexts[-1])


def _name(definition: Any) -> str:
    return f"fixture {definition.baseid}::{definition.argname}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    definitions = item._fixtureinfo.name2fixturedefs.values()
    _tests[item.nodeid]["shared"] = sorted(
        _name(found) for several in definitions for found in several if found.scope != "function"
    )
    _switch(item.nodeid)
    try:
        return (yield)
    finally:
        _switch_back()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    if fixturedef.scope == "function":
        return (yield)
    _switch(_name(fixturedef))
    try:
        return (yield)
    finally:
        _switch_back()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    test = _tests[item.nodeid]
    test["passed"] = test["passed"] and report.outcome == "passed"
    if report.when != "teardown":
        test["seconds"] += report.duration
    return report


def pytest_unconfigure() -> None:
    _cover.stop()
    _cover.save()
    (FOLDER / f"tests.{os.getpid()}.json").write_text(json.dumps(_tests))
