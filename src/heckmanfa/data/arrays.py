"""NumPy and Torch behind one code path: the array API standard, plus what it lacks.

Block functions are written once, with the standard (through array-api-compat) and the functions
here. They run where the block is: NumPy arrays in memory, Torch tensors on a CPU or a GPU. Their
other arguments and their results are small NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special
from scipy.linalg import lapack

from heckmanfa.errors import DeviceMemoryError, InputError, InputTypeError, TooFewRowsError
from heckmanfa.text.printable import quoted

Array = Any
"""A NumPy array or a Torch tensor."""

Floats = NDArray[np.float64]


def namespace(array: Array) -> Any:
    """Return the array API namespace of an array."""
    if isinstance(array, np.ndarray):
        return array_api_compat.numpy
    return array_api_compat.array_namespace(array)


def is_tensor(value: Any) -> bool:
    """Whether a value is a Torch tensor, without importing Torch."""
    return bool(array_api_compat.is_torch_array(value))


def is_dask(value: Any) -> bool:
    """Whether a value is a Dask collection, without importing Dask."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr")


def compute_dask(*values: Any) -> list[Any]:
    """Return Dask collections as NumPy arrays, computed together; other values unchanged."""
    lazy = [is_dask(value) for value in values]
    if not any(lazy):
        return list(values)
    import dask

    computed = dask.compute(*values, traverse=False)
    return [
        np.asarray(value) if was_lazy else value
        for value, was_lazy in zip(computed, lazy, strict=True)
    ]


def host(array: Array) -> NDArray[Any]:
    """Return an array or tensor as a NumPy array."""
    if is_tensor(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def like(values: ArrayLike, array: Array) -> Array:
    """Put a few numbers beside an array: on its device, in its precision."""
    if isinstance(array, np.ndarray):
        return np.asarray(values)
    xp = namespace(array)
    return xp.asarray(np.array(values), dtype=array.dtype, device=array.device)


def as_floats(values: ArrayLike) -> Array:
    """Return tensors unchanged, and everything else as a NumPy array of float64."""
    return values if is_tensor(values) else np.asarray(values, dtype=np.float64)


def empty(array: Array, *shape: int, columns_first: bool = False) -> Array:
    """Return uninitialized memory beside an array; NumPy's in column order on request."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, order="F" if columns_first else "C")
    return array.new_empty(shape)


def zeros(array: Array, *shape: int) -> Array:
    """Return zeros beside an array, in its precision."""
    return np.zeros(shape) if isinstance(array, np.ndarray) else array.new_zeros(shape)


def booleans(values: ArrayLike, array: Array) -> Array:
    """Put a few booleans beside an array."""
    return _beside(np.asarray(values, dtype=bool), array)


def integers(values: ArrayLike, array: Array) -> Array:
    """Put a few integers, such as positions, beside an array."""
    return _beside(np.asarray(values, dtype=np.int64), array)


def _beside(values: NDArray[Any], array: Array) -> Array:
    if isinstance(array, np.ndarray):
        return values
    # A copy, since Torch warns about memory that it must not write to.
    return namespace(array).asarray(values.copy(), device=array.device)


def signs(chosen: Array, array: Array) -> Array:
    """Return 1 where true and -1 where false, in an array's precision."""
    return namespace(array).astype(chosen, array.dtype) * 2.0 - 1.0


def multiply(left: Array, right: Array, out: Array) -> Array:
    """Multiply into existing memory, which saves a copy and a pass over it."""
    if isinstance(out, np.ndarray):
        return np.multiply(left, right, out=out)
    out.copy_(left)
    return out.mul_(right)


def product(left: Array, right: Array) -> Array:
    """Multiply matrices, or a matrix and a vector.

    NumPy's ``dot`` releases the interpreter's lock, so threads can work on several blocks at the
    same time; its ``@`` does not.
    """
    return np.dot(left, right) if isinstance(left, np.ndarray) else left @ right


def compress(chosen: Array, array: Array) -> Array:
    """Return the rows of an array where ``chosen`` holds."""
    return np.compress(chosen, array, axis=0) if isinstance(array, np.ndarray) else array[chosen]


def lowest(values: Array) -> float:
    """Return the smallest value; infinity if there are none."""
    return float(values.min()) if values.shape[0] else np.inf


def highest(values: Array) -> float:
    """Return the largest value; minus infinity if there are none."""
    return float(values.max()) if values.shape[0] else -np.inf


def order_of(values: Array) -> Array:
    """Return the indices that sort values; the sort is stable."""
    return namespace(values).argsort(values, stable=True)


def add_at(sums: Array, positions: Array, values: Array) -> None:
    """Add rows of values to rows of ``sums``; a position may occur several times."""
    if isinstance(sums, np.ndarray):
        np.add.at(sums, positions, values)
    else:
        sums.index_add_(0, positions, values)


def erf(values: Array) -> Array:
    """Error function."""
    return _special(values).erf(values)


def erfc(values: Array) -> Array:
    """Complementary error function."""
    return _special(values).erfc(values)


def erfcx(values: Array) -> Array:
    """Scaled complementary error function."""
    return _special(values).erfcx(values)


def log_ndtr(values: Array) -> Array:
    """Logarithm of the standard normal distribution function."""
    return _special(values).log_ndtr(values)


def expit(values: Array) -> Array:
    """Logistic function."""
    return _special(values).expit(values)


def _special(values: Array) -> Any:
    """Return the module of special functions for an array: SciPy's or Torch's."""
    if not is_tensor(values):
        return special
    import torch

    return torch.special


def solve_assigned(gram: Array, right: Array, use: Array) -> tuple[Array, Any]:
    """Solve the normal equations of the columns in use, without reading a value on the host.

    ``gram`` (p, p) has a unit diagonal, and ``use`` (p,) is boolean. Returns the solution, zero
    for the other columns, and whether there is one: a boolean, or a tensor of one.
    """
    if is_tensor(gram):
        import torch

        # All systems have the same size: a column that is not in use has the equation b = 0.
        used = use.to(gram.dtype)
        system = gram * used * used[:, None] + torch.diag(1.0 - used)
        root, info = torch.linalg.cholesky_ex(system)
        return torch.cholesky_solve((right * used)[:, None], root)[:, 0], info == 0
    solution = np.zeros(len(right))
    positions = use.nonzero()[0]
    part = gram.take(positions, axis=0).take(positions, axis=1)
    _, solved, info = lapack.dposv(part, right[positions], overwrite_a=True)
    if not info:
        solution[positions] = solved
    return solution, not info


def solve_assigned_by_factor(factor: Array, use: Array, tolerance: float) -> tuple[Array, Any]:
    """Solve least squares on the columns in use when these are nearly collinear.

    ``factor`` (r, p + 1) has unit columns, the last being the outcome. A column is collinear if the
    columns before it leave no more than ``tolerance`` of it. Returns what `solve_assigned` does.
    """
    xp = namespace(factor)
    used = xp.astype(use, factor.dtype)
    identity = like(np.eye(used.shape[0]), factor)
    q, r = xp.linalg.qr(xp.concat((factor[:, :-1] * used, identity * (1.0 - used))))
    enough = xp.abs(xp.linalg.diagonal(r)) > tolerance
    safe = r + identity * (1.0 - xp.astype(enough, factor.dtype))
    right = q[: factor.shape[0]].T @ factor[:, -1:]
    if is_tensor(factor):
        import torch

        solution = torch.linalg.solve_triangular(safe, right, upper=True)
    else:
        solution = linalg.solve_triangular(safe, right)
    return solution[:, 0] * used, xp.all(enough)


def triangular(matrix: Array, *, overwrite: bool = False) -> NDArray[np.float64]:
    """Triangular factor R of a (b, k) matrix with b > 0, as a NumPy array of min(b, k) rows.

    ``overwrite`` allows a NumPy matrix in column order to be destroyed, which saves a copy.
    """
    if is_tensor(matrix):
        import torch

        return host(torch.linalg.qr(matrix, mode="r").R)
    rows, columns = matrix.shape
    work = int(lapack.dgeqrf_lwork(rows, columns)[0])
    work_on = np.asfortranarray(matrix) if overwrite else np.array(matrix, order="F")
    packed = lapack.dgeqrf(work_on, lwork=work, overwrite_a=True)[0]
    return np.triu(packed[: min(rows, columns)])


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
