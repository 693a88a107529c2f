"""The package as its users reach it, for tools that must outlive a change of its inner layout."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.common import child

# What a console script does, in a fresh interpreter.
START = (
    "from importlib.metadata import entry_points; "
    "next(iter(entry_points(group='console_scripts', name='heckmanfa'))).load()()"
)
MROZ_SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
MROZ_FEATURES = [
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
]


def command_line() -> Callable[[], None]:
    """Return the function behind the ``heckmanfa`` command."""
    (script,) = entry_points(group="console_scripts", name="heckmanfa")
    start: Callable[[], None] = script.load()
    return start


def run_here(words: Sequence[str]) -> int:
    """Run ``heckmanfa WORDS`` in this process, silently, and return its exit status."""
    silence = io.StringIO()
    with (
        patch.object(sys, "argv", ["heckmanfa", *words]),
        redirect_stdout(silence),
        redirect_stderr(silence),
    ):
        try:
            command_line()()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


def run_command(words: Sequence[str]) -> str:
    """Run ``heckmanfa WORDS`` in a fresh interpreter and return what it printed."""
    return child(["-c", START, *words])


def find_function(name: str) -> Callable[..., Any]:
    """Find a documented function by its name, whatever module it lives in."""
    package = Path(importlib.import_module("heckmanfa").__file__ or "").parent
    for path in sorted(package.rglob("*.py")):
        if f"\ndef {name}(" in path.read_text(encoding="utf-8"):
            parts = ("heckmanfa", *path.relative_to(package).with_suffix("").parts)
            module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            found: Callable[..., Any] = getattr(module, name)
            return found
    raise LookupError(f"no module of heckmanfa defines {name}")
