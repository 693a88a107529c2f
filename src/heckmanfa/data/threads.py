"""Tasks on threads, with results in the order of the items, and settings that threads share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from threading import RLock
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

    Items are taken as threads become free. ``ahead`` results may wait for each thread, and take
    memory. By default there are as many threads as `workers`.
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


class SharedContext:
    """A context that applies to the whole process, for as long as any thread is inside.

    The first thread to enter sets it up, and the last to leave ends it. If each thread set up its
    own, one that leaves would end the context of the others, or restore theirs for good.
    """

    def __init__(self, start: Callable[[], AbstractContextManager[Any]]) -> None:
        self._start = start
        # A generator that nobody finishes leaves whenever memory is collected, even in here.
        self._lock = RLock()
        self._users = 0
        self._context = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._context.enter_context(self._start())
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._context.close()
