"""Tasks on threads, with results in the order of the items."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def workers() -> int:
    """Number of threads: HECKMANFA_NUM_THREADS, or else the number of cores."""
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
    """Run a task over items on threads, and yield the results in the order of the items.

    Parameters
    ----------
    task : callable
        It releases the interpreter's lock most of the time.
    items : iterable
        Taken as threads become free.
    ahead : int
        How many results may wait for each thread; they take memory.
    threads : int, optional
        By default `workers`.
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
            # After an error or an interruption the other results are not needed.
            for future in pending:
                future.cancel()
