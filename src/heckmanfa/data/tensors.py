"""Torch tensors as X and y, used where they are, and what to do if a GPU runs out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, host, is_tensor
from heckmanfa.errors import DeviceMemoryError, InputError, InputTypeError, TooFewRowsError
from heckmanfa.text.printable import quoted


@dataclass(frozen=True, eq=False)
class NamedTensor:
    """A tensor of features with names for its columns; X of any fit."""

    names: tuple[str, ...]
    tensor: Array
    """(n, K)"""

    def __len__(self) -> int:
        return int(self.tensor.shape[0])


def check_tensor(values: Array) -> Array:
    """Refuse a tensor of features that cannot be used."""
    import torch

    if values.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {values.ndim}D tensor instead: X has a row for each "
            "observation and a column for each feature"
        )
    if values.is_complex():
        raise InputError("Complex data not supported: X holds complex numbers")
    if values.is_sparse or values.layout != torch.strided:
        raise InputTypeError("X is a sparse tensor; call .to_dense() on it first")
    if values.device.type not in ("cpu", "cuda"):
        raise InputError(
            f"X is on {quoted(values.device.type)}, which may not support float64: use tensors on "
            "the CPU or on a CUDA GPU"
        )
    if values.shape[0] == 0 or values.shape[1] == 0:
        raise TooFewRowsError(
            f"Found array with {values.shape[0]} sample(s) and {values.shape[1]} feature(s) "
            "(a minimum of 1 is required)"
        )
    return values.detach()


def column_beside(values: Any, X: Array, what: str) -> Array:
    """Return a column, such as the outcome, as a tensor on X's device; booleans stay booleans."""
    import torch

    if not is_tensor(values):
        # A copy, since an array's memory may be read-only.
        values = torch.from_numpy(np.array(values))
    values = values.detach()
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{what} should be a 1d array, got an array of shape {values.shape}")
    if values.shape[0] != X.shape[0]:
        raise InputError(
            f"X and {what} have inconsistent numbers of samples: X has {X.shape[0]} rows, {what} "
            f"{values.shape[0]}"
        )
    if values.is_complex():
        raise InputError(f"Complex data not supported: {what} holds complex numbers")
    kind = torch.bool if values.dtype == torch.bool else torch.float64
    return values.to(device=X.device, dtype=kind)


def on_host(values: Any) -> Any:
    """Return tensors as NumPy arrays (as data frames if they have names); others unchanged."""
    if isinstance(values, NamedTensor):
        import pandas as pd

        return pd.DataFrame(host(values.tensor), columns=list(values.names))
    return host(values) if is_tensor(values) else values


@contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Say what to do if a GPU runs out of memory."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        import torch

        torch.cuda.empty_cache()
        raise DeviceMemoryError(
            "the GPU is out of memory. Use float32 tensors or fewer columns, free other tensors, "
            "train on fewer rows (train_rows), or keep the rows in memory (X.cpu()). Torch's "
            f"message: {error}"
        ) from error
