"""Training on a GPU: steps that never wait, and one read of the rows per epoch.

One step is recorded as a CUDA graph: each repetition is one command, and neither the GPU nor the
interpreter waits for the other. Two products, X c and X' sign(X c), would read X twice; a kernel
holds a few rows at a time, so an epoch takes as long as one read of the GPU's memory. Triton, which
comes with Torch's CUDA builds, compiles it. GPUs and shapes that it does not support fall back to
the two products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np

from heckmanfa.data.arrays import Array, Floats, like
from heckmanfa.errors import SearchWarning, warn

Loss = Literal["mae", "mse"]
State = tuple[Array, ...]
Step = Callable[[Array, State], State]
Pulls = Callable[[Array, Loss], tuple[Any, Array]]

# Inputs of this many steps are sent at a time.
_AT_ONCE = 256
# A graph is recorded after its kernels are compiled and their memory is allocated.
_WARM_UP = 3
# A program holds this many numbers at a time, which fit in the registers of its one warp. With this
# many programs per processor, an H200 reads its memory at full speed in either precision.
_NUMBERS, _SIZES = 2048, (4, 8)
_PROGRAMS_PER_PROCESSOR = 32
_WIDEST = 1024


def sent_ahead(arrays: Iterable[Floats], beside: Array) -> Iterator[Array]:
    """Yield arrays one by one on the device of ``beside``, sent there in batches."""
    if isinstance(beside, np.ndarray):
        yield from arrays
        return
    waiting: list[Floats] = []
    for values in arrays:
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


def repeated(step: Step, state: State, value: Array) -> Step:
    """Return a version of a step that is cheap to repeat; call it with the state it returned last.

    ``step(value, state)`` returns the next state. It must not change its arguments or read any
    number back from the device. ``state`` and ``value`` are the first arguments.
    """
    if isinstance(value, np.ndarray) or not value.is_cuda:
        return step
    try:
        return _recorded(step, state, value)
    except RuntimeError as error:
        if type(error).__name__ == "OutOfMemoryError":
            raise
        # Some versions cannot record every operation of a step; they can still queue it.
        return step


def _recorded(step: Step, state: State, value: Array) -> Step:
    """Record a step as a CUDA graph, whose input and state stay in one place."""
    import torch

    value = value.clone()
    state = tuple(array.clone() for array in state)
    with torch.cuda.device(value.device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                step(value, state)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for old, new in zip(state, step(value, state), strict=True):
                old.copy_(new)

    def replay(next_value: Array, _: State) -> State:
        value.copy_(next_value)
        graph.replay()
        return state

    return replay


def kept(value: Array) -> Any:
    """Return a copy that later steps do not change."""
    return value.copy() if isinstance(value, np.ndarray) else value.clone()


def fused_pulls(matrix: Array, weight: Array | None) -> Pulls | None:
    """Return the kernel for rows on a GPU, (m, w), or None if it does not support them.

    It maps ``(contrast, "mae")`` to the sum of absolute residuals and the (w,) pulls, in float64.
    """
    if matrix.shape[1] > _WIDEST or matrix.element_size() not in _SIZES or not matrix.shape[0]:
        return None
    try:
        # Imported here: it needs Triton.
        from heckmanfa.search.training.kernel import sums_of_rows
    except ImportError:
        return None
    import torch

    m, width = matrix.shape
    padded = 1 << (width - 1).bit_length()
    processors = torch.cuda.get_device_properties(matrix.device).multi_processor_count
    programs = processors * _PROGRAMS_PER_PROCESSOR

    def pulls(contrast: Array, loss: Loss) -> tuple[Array, Array]:
        if loss != "mae":
            raise ValueError("the kernel supports only the absolute loss")
        # One row of sums per program, added in order: no bit depends on which program ends first.
        sums = torch.empty((programs, padded + 1), dtype=torch.float64, device=matrix.device)
        sums_of_rows[(programs,)](
            matrix,
            contrast.to(matrix.dtype),
            matrix if weight is None else weight,
            sums,
            m,
            matrix.stride(0),
            WIDTH=width,
            PADDED=padded,
            ROWS=max(_NUMBERS // padded, 1),
            WEIGHTED=weight is not None,
            num_warps=1,
        )
        added = sums.sum(dim=0)
        return added[padded], added[:width]

    try:
        # Compiled here, where it may fail (no compiler, an old GPU), and not during training.
        pulls(matrix.new_zeros(width), "mae")
        torch.cuda.synchronize(matrix.device)
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":
            raise
        warn(
            f"the kernel that reads rows once per epoch cannot be compiled here ({error}); "
            "training reads them twice, which takes about twice the time",
            SearchWarning,
        )
        return None
    return pulls
