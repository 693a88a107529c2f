"""Devices of Torch: data frames of numbers copied to a GPU."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np

from heckmanfa.data.arrays import NamedTensor, explain_out_of_memory
from heckmanfa.data.columns.column_numbers import as_table, numbers
from heckmanfa.data.columns.encoded_frame import categories_by_type
from heckmanfa.errors import InputError, InputTypeError, needs_extra
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

_SHOWN = 5


def find_device(name: str) -> Any:
    """Return a device of Torch that supports float64; refuse any other."""
    with needs_extra("tensors need Torch", "torch"):
        import torch
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise InputError(
            f"there is no device {quoted(name)} here that supports float64: Torch finds "
            f"{plural(n_gpus, 'CUDA GPU')}. Use {option('device', 'cpu')}, or install Torch's "
            "build for CUDA."
        ) from error
    return device


def to_device(
    frame: Any, device: str = "cuda", dtype: Literal["float64", "float32"] = "float64"
) -> NamedTensor:
    """Copy the columns of a data frame to a device, with their names.

    Parameters
    ----------
    frame : data frame
        Of pandas, Polars or PyArrow; its columns are numbers. Make dummies of text and categories
        first: tensors have no levels.
    device : str
        As Torch names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    dtype : {"float64", "float32"}
        float32 takes half the memory; sums over rows are still float64.

    Returns
    -------
    NamedTensor
        X for `fit` and `predict`.
    """
    if dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32'; got {quoted(dtype)}")
    target = find_device(device)
    import torch

    table = nw.from_native(as_table(frame), eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise InputTypeError(
            f"to_device takes a data frame (pandas, Polars or PyArrow); got a "
            f"{type(frame).__name__}"
        )
    _refuse_categories(table)
    with explain_out_of_memory():
        values = torch.empty(table.shape, dtype=getattr(torch, dtype), device=target)
        for column in range(table.shape[1]):
            # A copy, since a frame's memory may be read-only.
            numeric = np.array(numbers(table[:, column]), dtype=dtype)
            values[:, column] = torch.from_numpy(numeric)
    return NamedTensor(tuple(table.columns), values)


def _refuse_categories(table: nw.DataFrame[Any]) -> None:
    """Refuse text and categories, which a fit to the frame itself would take."""
    categories = categories_by_type(table)
    if categories:
        names = [table.columns[position] for position in categories]
        holds = "columns {} hold" if len(names) > 1 else "column {} holds"
        raise InputError(
            f"{holds.format(quoted_list(names, _SHOWN))} text or categories, and a tensor holds "
            "numbers alone: make dummies first, with pandas.get_dummies(frame, drop_first=True, "
            "dtype=float) or with model.encoding_.transform(frame) of a fitted model; or fit the "
            "data frame itself, which needs no device"
        )
