"""Tasks on threads, whose results come back in the order of what they were run on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["in_order", "workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def workers() -> int:
    """How many threads there are to be: as many as cores, unless HECKMANFA_NUM_THREADS says."""
    limit = os.environ.get("HECKMANFA_NUM_THREADS")
    if limit is not None:
        return max(int(limit), 1)
    from joblib import effective_n_jobs  # scikit-learn requires it

    return int(effective_n_jobs(-1))


def in_order(
    task: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    ahead: int = 1,
    threads: int | None = None,
) -> Generator[Result]:
    """Run a task over items on as many threads as there are, and yield the results in order.

    Parameters
    ----------
    task : callable
        It releases the interpreter most of the time.
    items : iterable
        They are taken as threads come free.
    ahead : int
        How many results may wait for each thread: they are what memory is needed for.
    threads : int, optional
        Fewer threads than `workers`.

    Yields
    ------
    What the task returns for each item.
    """
    count = threads or workers()
    with ThreadPoolExecutor(count) as pool:
        pending: deque[Future[Any]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(task, item))
                if len(pending) > ahead * count:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            # After an error or an interruption nobody wants the other results.
            for one in pending:
                one.cancel()
