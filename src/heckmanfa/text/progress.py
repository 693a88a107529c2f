"""A line of progress on a terminal, while something long runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_line(
    verbose: int, what: str, total: int | None
) -> Iterator[Callable[[int, str], None] | None]:
    """Show progress if ``verbose`` is not 0 and there is a terminal to show it on.

    ``what`` names what is counted; ``total`` is how many there are, if known. Yields a function
    that takes how many are done and a few words, or None if nothing is shown.
    """
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    count = "{task.completed:,} of {task.total:,}" if total is not None else "{task.completed:,}"
    bar = Progress(
        TextColumn(f"{what} {count}"),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda done, words: bar.update(task, completed=done, description=words)
