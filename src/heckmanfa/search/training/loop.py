"""A step repeated many times on the device of its arrays, without synchronisation.

On a GPU, one step is recorded as a CUDA graph: each repetition is one command, and neither the GPU
nor the interpreter waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like

State = tuple[Array, ...]
Step = Callable[[Array, State], State]

# Inputs of this many steps are sent at a time.
_AT_ONCE = 256
# A graph is recorded after its kernels are compiled and their memory is allocated.
_WARM_UP = 3


def sent_ahead(given: Iterable[Floats], beside: Array) -> Iterator[Array]:
    """Yield arrays one by one on the device of ``beside``, sent there in batches."""
    if isinstance(beside, np.ndarray):
        yield from given
        return
    waiting: list[Floats] = []
    for values in given:
        waiting.append(values)
        if len(waiting) == _AT_ONCE:
            yield from _sent(np.stack(waiting), beside)
            waiting = []
    if waiting:
        yield from _sent(np.stack(waiting), beside)


def _sent(values: Floats, beside: Array) -> Array:
    if not beside.is_cuda:
        return like(values, beside)
    import torch

    # From pinned memory the copy is queued behind the steps; otherwise it would block.
    return torch.from_numpy(values).pin_memory().to(beside.device, non_blocking=True)


def repeated(step: Step, state: State, given: Array) -> Callable[[Array, State], State]:
    """Return a version of a step that is cheap to repeat; call it with the state it returned last.

    ``step(given, state)`` returns the next state. It must not change its arguments or read any
    number back from the device. ``state`` and ``given`` are the first arguments.
    """
    if isinstance(given, np.ndarray) or not given.is_cuda:
        return step
    try:
        return _Recorded(step, state, given)
    except RuntimeError as error:
        if type(error).__name__ == "OutOfMemoryError":
            raise
        # Some versions cannot record every operation of a step; they can still queue it.
        return step


class _Recorded:
    """A step as a CUDA graph, whose state stays in one place."""

    def __init__(self, step: Step, state: State, given: Array) -> None:
        import torch

        self._given = given.clone()
        self._state = tuple(array.clone() for array in state)
        with torch.cuda.device(given.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    step(self._given, self._state)
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for old, new in zip(self._state, step(self._given, self._state), strict=True):
                    old.copy_(new)

    def __call__(self, given: Array, state: State) -> State:
        self._given.copy_(given)
        self._graph.replay()
        return self._state


def kept(value: Array) -> Any:
    """Return a copy that later steps do not change."""
    return value.copy() if isinstance(value, np.ndarray) else value.clone()
