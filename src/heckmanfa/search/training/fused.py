"""Residual signs and their products with each column, in one pass over a GPU's rows.

Two products, X c and X' sign(X c), read X twice. This kernel holds a few rows at a time, so an
epoch takes as long as one read of the GPU's memory. Triton, which comes with Torch's CUDA builds,
compiles it. GPUs and shapes that it does not support fall back to the two products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from heckmanfa.data.arrays import Array
from heckmanfa.errors import SearchWarning, warn

Loss = Literal["mae", "mse"]

# A program holds this many numbers at a time, which fit in the registers of its one warp. With this
# many programs per processor, an H200 reads its memory at full speed in either precision.
_NUMBERS, _SIZES = 2048, (4, 8)
_PROGRAMS_PER_PROCESSOR = 32
_WIDEST = 1024


def fused_pulls(matrix: Array, weight: Array | None) -> _Fused | None:
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

    processors = torch.cuda.get_device_properties(matrix.device).multi_processor_count
    fused = _Fused(sums_of_rows, matrix, weight, processors * _PROGRAMS_PER_PROCESSOR)
    try:
        # Compiled here, where it may fail (no compiler, an old GPU), and not during training.
        fused(matrix.new_zeros(matrix.shape[1]), "mae")
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
    return fused


@dataclass(frozen=True)
class _Fused:
    kernel: Any
    matrix: Array
    weight: Array | None
    programs: int

    def __call__(self, contrast: Array, loss: Loss) -> tuple[Array, Array]:
        if loss != "mae":
            raise ValueError("the kernel supports only the absolute loss")
        import torch

        m, width = self.matrix.shape
        padded = 1 << (width - 1).bit_length()
        # One row of sums per program, added in order: no bit depends on which program ends first.
        sums = torch.empty(
            (self.programs, padded + 1), dtype=torch.float64, device=self.matrix.device
        )
        self.kernel[(self.programs,)](
            self.matrix,
            contrast.to(self.matrix.dtype),
            self.matrix if self.weight is None else self.weight,
            sums,
            m,
            self.matrix.stride(0),
            WIDTH=width,
            PADDED=padded,
            ROWS=max(_NUMBERS // padded, 1),
            WEIGHTED=self.weight is not None,
            num_warps=1,
        )
        added = sums.sum(dim=0)
        return added[padded], added[:width]
