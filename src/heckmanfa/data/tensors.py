"""Tensors of Torch as X and y: taken in where they are, and what a full card says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, host, is_tensor
from heckmanfa.errors import (
    DeviceMemoryError,
    InputError,
    InputTypeError,
    MissingExtraError,
    TooFewRowsError,
)
from heckmanfa.text.printable import quoted

__all__ = [
    "NamedTensor",
    "check_tensor",
    "column_beside",
    "explain_out_of_memory",
    "find_device",
    "on_host",
    "to_device",
]


@dataclass(frozen=True, eq=False)
class NamedTensor:
    """A tensor of features that knows what its columns are called; X of any fit."""

    names: tuple[str, ...]
    tensor: Array
    """(n, K)"""

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.tensor.shape[0])


def find_device(name: str) -> Any:
    """Return a device that Torch finds and that has float64, or say which there are."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "tensors need Torch, which is not installed: pip install 'heckmanfa[torch]'"
        ) from error
    try:
        place = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=place)
    except (RuntimeError, AssertionError, TypeError) as error:
        found = torch.cuda.device_count() if torch.cuda.is_available() else 0
        cards = f"{found} CUDA card{'' if found == 1 else 's'}"
        raise InputError(
            f"there is no device {quoted(name)} here that has float64: Torch finds {cards}. Use "
            "device='cpu', or install Torch's build for CUDA."
        ) from error
    return place


def to_device(frame: Any, device: str = "cuda", dtype: str = "float64") -> NamedTensor:
    """Put the columns of a data frame on a device, with their names.

    Parameters
    ----------
    frame : data frame
        pandas, Polars or PyArrow, of numbers.
    device : str
        As Torch names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    dtype : {"float64", "float32"}
        float32 takes half of the memory; sums over rows are float64 all the same.

    Returns
    -------
    NamedTensor
        To be passed as X to `fit` and `predict`.
    """
    import narwhals as nw

    from heckmanfa.data.columns.column_numbers import as_table, numbers

    if dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32'; got {quoted(dtype)}")
    place = find_device(device)
    import torch

    table = nw.from_native(as_table(frame), eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise InputTypeError(
            f"to_device takes a data frame (pandas, Polars or PyArrow); got a "
            f"{type(frame).__name__}"
        )
    with explain_out_of_memory():
        values = torch.empty(table.shape, dtype=getattr(torch, dtype), device=place)
        for column, name in enumerate(table.columns):
            # A copy, since a frame's memory may be read-only.
            values[:, column] = torch.from_numpy(np.array(numbers(table[name]), dtype=dtype))
    return NamedTensor(tuple(table.columns), values)


def check_tensor(values: Array) -> Array:
    """Return a tensor of features that can be used, or refuse it."""
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
            f"X is on {quoted(values.device.type)}, and float64 is needed, which not all devices "
            "have: "
            "use tensors on the processor or on a CUDA card"
        )
    if values.shape[0] == 0 or values.shape[1] == 0:
        raise TooFewRowsError(
            f"Found array with {values.shape[0]} sample(s) and {values.shape[1]} feature(s) "
            "(a minimum of 1 is required)"
        )
    return values.detach()


def column_beside(values: Any, X: Array, what: str) -> Array:
    """Return a tensor of a column, such as the outcome, where X is; truths stay truths."""
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


def on_host(values: Any, names: Sequence[str] | None = None) -> Any:
    """Return tensors as NumPy arrays (or frames, where they have names), and others unchanged."""
    if isinstance(values, NamedTensor):
        import pandas as pd

        return pd.DataFrame(host(values.tensor), columns=list(values.names))
    return host(values) if is_tensor(values) else values


@contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Say what to do where a card's memory is full."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        import torch

        torch.cuda.empty_cache()
        first = str(error).split(". GPU")[0].split("\n")[0].rstrip(".")
        raise DeviceMemoryError(
            f"the card's memory is full ({first}). Use float32 tensors or fewer columns, free "
            "other tensors, train on fewer rows (train_rows), or leave the rows in memory (X.cpu())"
        ) from error
