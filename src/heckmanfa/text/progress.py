"""Progress of something long: what is being done, how far it is, and how long it may still take.

Code that runs long opens a `progress_line` and calls what it yields. Nothing is shown unless
somebody listens: the command line, inside `telling`, or a terminal if ``verbose`` is not 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Show = Callable[[int, str], None]
"""takes how many are done, and a few words, which may be empty"""

EVERY = 0.1
"""seconds between two lines at least"""

# A rate measured for a shorter time says little about how long the rest takes.
_MEASURED = 1.0
_MILLION = 1_000_000

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("_listener", default=None)


@contextmanager
def telling(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Pass every line of progress to a function meanwhile; None shows none."""
    before = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def progress_line(
    verbose: int, task: str, what: str, total: int | None, *, at_most: bool = False
) -> Iterator[Show | None]:
    """Show how far a task is, if somebody listens or ``verbose`` is not 0 on a terminal.

    ``what`` names what is counted. ``total`` is how many there are, if known; with ``at_most``,
    there may be fewer. Yields a function that takes how many are done and a few words, or None if
    nothing is shown. A task inside another shows nothing.
    """
    tell = _listener.get()
    if tell is not None:
        with telling(None):
            yield _Line(tell, task, what, total, at_most)
        return
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(task) as status:
        yield _Line(lambda words: status.update(Text(words)), task, what, total, at_most)


class _Line:
    """Says how far a task is, a few times a second."""

    def __init__(
        self, tell: Callable[[str], None], task: str, what: str, total: int | None, at_most: bool
    ) -> None:
        self._tell, self._total, self._at_most = tell, total, at_most
        self._task, self._what = task, what
        self._start = time.monotonic()
        self._due = 0.0

    def __call__(self, done: int, words: str) -> None:
        now = time.monotonic()
        if now >= self._due or done == self._total:
            self._due = now + EVERY
            self._tell(self._words(done, words, now - self._start))

    def _words(self, done: int, words: str, elapsed: float) -> str:
        said = f"{self._task}: {_short(done)} {self._what}"
        if self._total is not None:
            limit = "at most " if self._at_most else ""
            said = f"{self._task}: {_short(done)} of {limit}{_short(self._total)} {self._what}"
        if self._total is not None and 0 < done < self._total and elapsed >= _MEASURED:
            left = _seconds(elapsed * (self._total - done) / done)
            said += f", {left} left at most" if self._at_most else f", about {left} left"
        return f"{said}; {words}" if words else said


def _short(value: int) -> str:
    """Write a count so that it can be read at a glance: 21,784 or 1.2 M."""
    return f"{value:,}" if value < _MILLION else f"{value / _MILLION:,.1f} M"


def _seconds(value: float) -> str:
    """Write a time that is an estimate: 14 s, 3 min or 2 h."""
    if value < 100:
        return f"{max(value, 1.0):.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.0f} h"
