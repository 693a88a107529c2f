"""NumPy and Torch behind one code path: the array API standard, and the little that it lacks.

What runs on a block of rows is written once, in terms of the standard (by array-api-compat) and
of the functions here, and runs where the block is: NumPy arrays in memory, Torch tensors on a
processor or a graphics card. What a block function is given besides the block, and what it
returns, is small and NumPy's.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special
from scipy.linalg import lapack

__all__ = [
    "Array",
    "Floats",
    "add_at",
    "as_floats",
    "booleans",
    "compress",
    "compute_dask",
    "empty",
    "erfcx",
    "expit",
    "highest",
    "host",
    "integers",
    "is_dask",
    "is_tensor",
    "like",
    "log_ndtr",
    "lowest",
    "multiply",
    "namespace",
    "order_of",
    "product",
    "signs",
    "solve_assigned",
    "solve_assigned_by_factor",
    "triangular",
    "zeros",
]

Array = Any
"""A NumPy array or a Torch tensor."""

Floats = NDArray[np.float64]


def namespace(array: Array) -> Any:
    """Return the functions of the array API standard for an array."""
    if isinstance(array, np.ndarray):
        return array_api_compat.numpy
    return array_api_compat.array_namespace(array)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of Torch, without importing it."""
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
    """Return an array as NumPy's; what is small comes home by this."""
    if is_tensor(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def like(values: ArrayLike, array: Array) -> Array:
    """Put a few numbers where an array is, in its precision."""
    if isinstance(array, np.ndarray):
        return np.asarray(values)
    xp = namespace(array)
    # A copy, since Torch warns of memory that it must not write to.
    return xp.asarray(np.array(values), dtype=array.dtype, device=array.device)


def as_floats(values: ArrayLike) -> Array:
    """Return tensors as they are, and everything else as float64 of NumPy."""
    return values if is_tensor(values) else np.asarray(values, dtype=np.float64)


def empty(array: Array, *shape: int, columns_first: bool = False) -> Array:
    """Return memory beside an array, in its precision; NumPy's by columns where that is asked."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, order="F" if columns_first else "C")
    return array.new_empty(shape)


def zeros(array: Array, *shape: int) -> Array:
    """Return zeros beside an array, in its precision."""
    return np.zeros(shape) if isinstance(array, np.ndarray) else array.new_zeros(shape)


def booleans(values: ArrayLike, array: Array) -> Array:
    """Put a few truths where an array is."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=bool)
    return namespace(array).asarray(np.array(values, dtype=bool), device=array.device)


def integers(values: ArrayLike, array: Array) -> Array:
    """Put a few whole numbers, such as places, where an array is."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=np.intp)
    return namespace(array).asarray(np.array(values, dtype=np.int64), device=array.device)


def signs(chosen: Array, array: Array) -> Array:
    """Return 1 where true and -1 where false, in an array's precision."""
    return namespace(array).astype(chosen, array.dtype) * 2.0 - 1.0


def multiply(one: Array, other: Array, out: Array) -> Array:
    """Multiply into memory that there is, which saves as much memory and a pass over it."""
    if isinstance(out, np.ndarray):
        return np.multiply(one, other, out=out)
    out.copy_(one)
    return out.mul_(other)


def product(one: Array, other: Array) -> Array:
    """Multiply matrices, or a matrix and a vector.

    NumPy's ``@`` keeps the interpreter's lock while it multiplies, its ``dot`` does not: with it,
    the threads that work on blocks do so at the same time.
    """
    return np.dot(one, other) if isinstance(one, np.ndarray) else one @ other


def compress(chosen: Array, array: Array) -> Array:
    """Return the rows of an array where ``chosen`` holds."""
    return np.compress(chosen, array, axis=0) if isinstance(array, np.ndarray) else array[chosen]


def lowest(values: Array) -> float:
    """Return the least of some values; infinity where there are none."""
    return float(values.min()) if values.shape[0] else np.inf


def highest(values: Array) -> float:
    """Return the greatest of some values; minus infinity where there are none."""
    return float(values.max()) if values.shape[0] else -np.inf


def order_of(values: Array) -> Array:
    """Return the order that sorts values, ties in the order they come."""
    return namespace(values).argsort(values, stable=True)


def add_at(sums: Array, places: Array, values: Array) -> None:
    """Add rows of values to the rows of ``sums`` at some places, of which any may come twice."""
    if isinstance(sums, np.ndarray):
        np.add.at(sums, places, values)
    else:
        sums.index_add_(0, places, values)


def erfcx(values: Array) -> Array:
    """Scaled complementary error function."""
    if is_tensor(values):
        import torch

        return torch.special.erfcx(values)
    return special.erfcx(values)


def log_ndtr(values: Array) -> Array:
    """Logarithm of the standard normal distribution function."""
    if is_tensor(values):
        import torch

        return torch.special.log_ndtr(values)
    return special.log_ndtr(values)


def expit(values: Array) -> Array:
    """Logistic function."""
    if is_tensor(values):
        import torch

        return torch.special.expit(values)
    return special.expit(values)


def solve_assigned(gram: Array, right: Array, use: Array) -> tuple[Array, Any]:
    """Solve the normal equations of the columns in use, without looking at any number.

    Parameters
    ----------
    gram : (p, p) array
        Of unit diagonal.
    right : (p,) array
    use : (p,) array of bool

    Returns
    -------
    solution : (p,) array
        Zero for columns that are not in use.
    solved : bool, or a tensor that is one
    """
    if is_tensor(gram):
        import torch

        # All assignments are of one size: a column that is not in use has the equation b = 0.
        there = use.to(gram.dtype)
        system = gram * there * there[:, None] + torch.diag(1.0 - there)
        root, trouble = torch.linalg.cholesky_ex(system)
        return torch.cholesky_solve((right * there)[:, None], root)[:, 0], trouble == 0
    solution = np.zeros(len(right))
    places = use.nonzero()[0]
    part = gram.take(places, axis=0).take(places, axis=1)
    _, solved, trouble = lapack.dposv(part, right[places], overwrite_a=True)
    if not trouble:
        solution[places] = solved
    return solution, not trouble


def solve_assigned_by_factor(factor: Array, use: Array, tolerance: float) -> tuple[Array, Any]:
    """Solve least squares on the columns in use, where these are nearly collinear.

    Parameters
    ----------
    factor : (r, p + 1) array
        Unit columns; the last one is to be explained by the others.
    use : (p,) array of bool
    tolerance : float
        Columns of which no more than this share is left by those before them are collinear.

    Returns
    -------
    solution, solved
        As from `solve_assigned`.
    """
    xp = namespace(factor)
    there = xp.astype(use, factor.dtype)
    one = like(np.eye(there.shape[0]), factor)
    q, r = xp.linalg.qr(xp.concat((factor[:, :-1] * there, one * (1.0 - there))))
    enough = xp.abs(xp.linalg.diagonal(r)) > tolerance
    safe = r + one * (1.0 - xp.astype(enough, factor.dtype))
    right = q[: factor.shape[0]].T @ factor[:, -1:]
    if is_tensor(factor):
        import torch

        solution = torch.linalg.solve_triangular(safe, right, upper=True)
    else:
        solution = linalg.solve_triangular(safe, right)
    return solution[:, 0] * there, xp.all(enough)


def triangular(matrix: Array, *, overwrite: bool = False) -> NDArray[np.float64]:
    """Triangular factor R of a matrix that has rows, brought home.

    Parameters
    ----------
    matrix : (b, k) array
    overwrite : bool
        Whether a NumPy matrix stored by columns may be destroyed, which saves a copy.

    Returns
    -------
    (min(b, k), k) ndarray
    """
    if is_tensor(matrix):
        import torch

        return host(torch.linalg.qr(matrix, mode="r").R)
    rows, columns = matrix.shape
    work = int(lapack.dgeqrf_lwork(rows, columns)[0])
    work_on = np.asfortranarray(matrix) if overwrite else np.array(matrix, order="F")
    packed = lapack.dgeqrf(work_on, lwork=work, overwrite_a=True)[0]
    return np.triu(packed[: min(rows, columns)])
