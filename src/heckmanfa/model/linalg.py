"""Least squares from triangular factors, dependent columns, and well-conditioned coordinates.

A tall matrix A enters only through its triangular factor R (A = QR with orthonormal Q), taken
over blocks of rows: the factors of two blocks, stacked and factored again, give the factor of
both. Nothing here forms A'A, which would lose half of the digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from heckmanfa.data.arrays import (
    Array,
    Floats,
    empty,
    host,
    like,
    multiply,
    namespace,
    product,
    triangular,
)
from heckmanfa.data.rows import Positions, pick
from heckmanfa.errors import CollinearError
from heckmanfa.model.disjoint_columns import DisjointFactor, disjoint_factor, merge_disjoint
from heckmanfa.text.printable import quoted, quoted_list

# A column is dependent if its residual on the columns before it is below this share of its length.
# NIST's Filip, the hardest problem that must be solved rather than refused, has 5e-8.
DEPENDENT = 1e-12
_STACK_AT_ONCE = 16
# Rounding of eigenvalues, as a share of the largest.
_EIGENVALUE = 1e-12


@dataclass(frozen=True)
class Dependency:
    """A column that is a linear combination of columns before it."""

    column: int
    on: tuple[int, ...]
    """positions of the columns it depends on; empty if it is zero"""


def factor(matrix: Array, *, overwrite: bool = False) -> Floats:
    """Triangular factor R, (min(b, k), k), of a (b, k) matrix.

    With ``overwrite``, a matrix in Fortran order may be destroyed, which saves a copy.
    """
    rows, columns = matrix.shape
    return triangular(matrix, overwrite=overwrite) if rows else np.zeros((0, columns))


Factor = Floats | DisjointFactor
"""the triangular factor of a block of rows, or rows that have it"""


def block_factor(matrix: Array) -> Factor:
    """Return the factor of a block (b, k), for `merge_factors`; the matrix may be destroyed.

    A block that is hardly longer than wide is its own factor: factoring it would save nothing.
    """
    disjoint = disjoint_factor(matrix)
    if disjoint is not None:
        return disjoint
    if isinstance(matrix, np.ndarray) and matrix.shape[0] <= 2 * matrix.shape[1]:
        return matrix
    return factor(matrix, overwrite=True)


def merge_factors(factors: list[Factor]) -> Factor:
    """Triangular factor of the rows of several blocks, from their factors."""
    disjoint = [each for each in factors if isinstance(each, DisjointFactor)]
    if len(disjoint) == len(factors):
        merged = merge_disjoint(disjoint)
        if merged is not None:
            return merged
    return factor(np.concatenate([_rows_of(each) for each in factors]))


def _rows_of(block: Factor) -> Floats:
    return block.dense() if isinstance(block, DisjointFactor) else block


class Stacker:
    """Collects the factors of blocks of rows into the factor of all of them."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._waiting: list[Factor] = []

    def add(self, block: Factor) -> None:
        """Add the next block's factor."""
        self._waiting.append(block)
        if len(self._waiting) == _STACK_AT_ONCE:
            self._waiting = [merge_factors(self._waiting)]

    def result(self) -> Floats:
        """Return the (k, k) factor of all blocks, with a non-negative diagonal.

        If there were fewer rows than columns, its last rows are zero.
        """
        square = np.zeros((self._columns, self._columns))
        if self._waiting:
            merged = merge_factors(self._waiting)
            r = factor(merged.dense()) if isinstance(merged, DisjointFactor) else merged
            square[: len(r)] = r
        return square * np.where(np.diag(square) < 0, -1.0, 1.0)[:, None]


def stack(factors: Iterable[Factor], columns: int) -> Floats:
    """Triangular factor of all rows, (k, k), from the factors of blocks of rows in order."""
    stacker = Stacker(columns)
    for block in factors:
        stacker.add(block)
    return stacker.result()


def subset_factor(r: Floats, columns: Sequence[int]) -> Floats:
    """Triangular factor of some columns of A, in the order given, from the factor of A."""
    return stack([r[:, np.asarray(columns, dtype=np.intp)]], len(columns))


def column_norms(r: Floats) -> Floats:
    """Lengths of the columns of A from its factor, safe from overflow."""
    return np.asarray(np.linalg.norm(r, axis=0))


def solve_upper(r: Floats, right: Floats, *, transposed: bool = False) -> Floats:
    """Solve r x = right, or r' x = right, for an upper triangular r of full rank."""
    if r.shape[0] == 0:
        return np.zeros_like(right)
    return np.asarray(linalg.solve_triangular(r, right, trans=1 if transposed else 0))


def inverse_definite(matrix: Floats) -> Floats | None:
    """Inverse of a symmetric matrix, or None if it is not positive definite."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix), np.eye(len(matrix))))
    except (np.linalg.LinAlgError, ValueError):
        return None


def symmetric(matrix: Floats) -> Floats:
    """Average a covariance with its transpose, to remove rounding differences."""
    return 0.5 * (matrix + matrix.T)


def residual_share(r: Floats) -> Floats:
    """For each column, the share of its length outside the span of the columns before it."""
    norms = column_norms(r)
    return np.abs(np.diag(r)) / np.where(norms > 0, norms, 1.0)


def dependencies(r: Floats) -> list[Dependency]:
    """Find the columns that are linear combinations of columns before them, from a factor.

    A column is dependent if its `residual_share` is at most `DEPENDENT`. Without the dependent
    columns, the others have full rank.
    """
    dependent: list[Dependency] = []
    kept = list(range(r.shape[1]))
    norms = column_norms(r)
    current = r
    while True:
        bad = np.flatnonzero(~(residual_share(current) > DEPENDENT))
        if len(bad) == 0:
            return dependent
        place = int(bad[0])
        weights = solve_upper(current[:place, :place], current[:place, place])
        sizes = np.abs(weights) * norms[kept[:place]]
        on = tuple(kept[i] for i in np.flatnonzero(sizes > 1e-7 * norms[kept[place]]))
        dependent.append(Dependency(kept[place], on if norms[kept[place]] > 0 else ()))
        del kept[place]
        current = subset_factor(r, kept)


def describe_dependencies(dependent: Sequence[Dependency], names: Sequence[str]) -> list[str]:
    """Describe each dependency in one clause; the first column is the constant."""
    clauses = []
    for item in dependent:
        others = [names[place] for place in item.on if place != 0]
        if not others:
            what = "constant"
        elif len(others) == 1:
            what = f"a linear function of {quoted(others[0])}"
        else:
            # Splines and dummies that sum to one are a combination only with the intercept.
            intercept = " and the intercept" if 0 in item.on else ""
            what = f"a linear combination of {quoted_list(others, 8)}{intercept}"
        clauses.append(f"{quoted(names[item.column])} is {what}")
    return clauses


def collinear_error(
    dependent: Sequence[Dependency],
    names: Sequence[str],
    columns: Sequence[int],
    what: str,
    advice: str,
) -> CollinearError:
    """Name dependent columns; ``columns`` are what to report for those after the constant."""
    skipped = len(names) - len(columns)
    return CollinearError(
        f"{what}: {'; '.join(describe_dependencies(dependent, names))}",
        advice,
        [columns[item.column - skipped] for item in dependent],
    )


# If the columns before it leave more than this share of each column unexplained, sums of products
# keep eleven digits.
_PLAIN_SHARE = 0.03


# Products of a wide block with a smaller share of nonzero numbers take less time as sparse ones.
_SPARSE, _WIDE = 0.05, 64


def _sparse_rows(features: Array, weight: Array) -> Any:
    """Return [1, features]' with columns scaled by roots of weights; None if they are dense."""
    if not isinstance(features, np.ndarray) or features.shape[1] < _WIDE:
        return None
    nonzero = features.T != 0
    if np.count_nonzero(nonzero) > _SPARSE * features.size:
        return None
    rows, p = features.shape
    column, row = np.divmod(np.flatnonzero(nonzero.reshape(-1)), rows)
    root = weight**0.5
    values = np.concatenate([root, features[row, column] * root[row]])
    starts = np.concatenate([[0], rows + np.searchsorted(column, np.arange(p + 1))])
    places = np.concatenate([np.arange(rows), row])
    return sparse.csr_array((values, places, starts), shape=(p + 1, rows))


def with_constant(features: Array, places: Positions, n_more: int = 0) -> Array:
    """Return [1, some columns of a block of features], then ``n_more`` columns to fill in."""
    matrix = empty(features, features.shape[0], 1 + len(places) + n_more)
    matrix[:, 0] = 1.0
    matrix[:, 1 : 1 + len(places)] = pick(features, places)
    return matrix


class Design:
    """A block of rows of ``[1, features]``; ``matrix`` is its transformed copy, if any."""

    def __init__(self, features: Array, matrix: Array | None = None) -> None:
        self._features = features
        self._matrix = matrix

    def times(self, coef: Floats) -> Array:
        """Multiply by coefficients, intercepts first: (b,) or (b, m)."""
        coef = like(coef, self._features)
        if self._matrix is not None:
            return product(self._matrix, coef)
        return product(self._features, coef[1:]) + coef[0]

    def pull(self, values: Array) -> Floats:
        """Multiply the transpose by per-row values: (1 + p,) or (1 + p, m)."""
        if self._matrix is not None:
            return host(product(self._matrix.T, values))
        sums = (values.sum(axis=0, keepdims=True), product(self._features.T, values))
        return host(namespace(values).concat(sums))

    def gram(self, weight: Array) -> Floats:
        """Weighted sum of products, (1 + p, 1 + p), for non-negative weights."""
        if self._matrix is None:
            entries = _sparse_rows(self._features, weight)
            if entries is not None:
                return np.asarray((entries @ entries.T).toarray())
        scaled = self.scaled(weight**0.5)
        return host(product(scaled.T, scaled))

    def products(self, weight: Array) -> Floats:
        """Weighted sum of products, (1 + p, 1 + p), for weights of any sign."""
        scaled = self.scaled(weight)
        if self._matrix is not None:
            return host(product(self._matrix.T, scaled))
        below = host(product(self._features.T, scaled))
        top = np.concatenate([[float(weight.sum())], below[:, 0]])
        return np.vstack([top, below])

    def squares(self) -> Floats:
        """Sum of squares of each column, (1 + p,)."""
        matrix = self._features if self._matrix is None else self._matrix[:, 1:]
        return np.append(float(len(matrix)), host((matrix**2).sum(axis=0)))

    def scaled(self, factor: Array) -> Array:
        """Return the matrix with each row multiplied by a number."""
        if self._matrix is not None:
            return self._matrix * factor[:, None]
        rows, columns = self._features.shape
        # In an order other than that of the features, this takes three times as long.
        by_columns = isinstance(self._features, np.ndarray) and self._features.flags.f_contiguous
        matrix = empty(self._features, rows, columns + 1, columns_first=by_columns)
        matrix[:, 0] = factor
        multiply(self._features, factor[:, None], out=matrix[:, 1:])
        return matrix


@dataclass(frozen=True)
class Coordinates:
    """A well-conditioned way to write p features: ``(x - centre) @ transform``."""

    centre: Floats
    """(p,)"""
    transform: Floats
    """(p, p) upper triangular"""
    mean: Floats
    """(p,) on the rows that the coordinates come from"""
    scale: Floats
    """(p,) standard deviations likewise"""
    plain: bool
    """whether features are used unchanged: centre 0, transform the identity"""

    @classmethod
    def from_factor(cls, r: Floats) -> Coordinates:
        """Choose coordinates from the triangular factor of ``[1, X]`` over some rows."""
        count, inner = r[0, 0], r[1:, 1:]
        p = len(inner)
        plain = bool(residual_share(r).min() > _PLAIN_SHARE)
        mean = r[0, 1:] / count
        return cls(
            centre=np.zeros(p) if plain else mean,
            transform=np.eye(p) if plain else solve_upper(inner, np.eye(p)) * count,
            mean=mean,
            scale=np.asarray(np.linalg.norm(inner, axis=0) / count),
            plain=plain,
        )

    def extended(self, mean: Floats, scale: Floats) -> Coordinates:
        """Append features, standardised unless these coordinates are plain."""
        p, more = len(self.centre), len(mean)
        transform = np.eye(p + more)
        transform[:p, :p] = self.transform
        if not self.plain:
            transform[p:, p:] = np.diag(1.0 / scale)
        return Coordinates(
            centre=np.append(self.centre, np.zeros(more) if self.plain else mean),
            transform=transform,
            mean=np.append(self.mean, mean),
            scale=np.append(self.scale, scale),
            plain=self.plain,
        )

    def design(self, features: Array) -> Design:
        """Return the design of a block of the first columns in these coordinates."""
        if self.plain:
            return Design(features)
        b, p = features.shape
        matrix = empty(features, b, p + 1)
        matrix[:, 0] = 1.0
        # Upper triangular, so the first columns do not depend on the others.
        transform = like(self.transform[:p, :p], features)
        matrix[:, 1:] = product(features - like(self.centre[:p], features), transform)
        return Design(features, matrix)

    def back(self) -> Floats:
        """Return the (1 + p, 1 + p) matrix from these coefficients to those of ``[1, x]``."""
        p = len(self.centre)
        matrix = np.zeros((p + 1, p + 1))
        matrix[0, 0] = 1.0
        matrix[1:, 1:] = self.transform
        matrix[0, 1:] = -self.centre @ self.transform
        return matrix


def diagonal_below(a: Floats) -> Floats:
    """Find d with A - diag(d) positive semidefinite and the largest product, nearly; (c,).

    A barrier method by Newton steps: sum log d + weight log det(A - diag(d)).
    """
    d = np.full(len(a), 0.5 * float(np.linalg.eigvalsh(a)[0]))
    for weight in (1.0, 0.3, 0.1, 0.03):
        for _ in range(20):
            inverse = np.linalg.inv(a - np.diag(d))
            slope = 1.0 / d - weight * np.diag(inverse)
            step = np.linalg.solve(np.diag(d**-2.0) + weight * inverse**2, slope)
            gain = float(slope @ step)
            # A step this short stays inside.
            d = d + step / (1.0 + np.sqrt(gain / weight))
            if gain < 0.03 * len(a) * weight:
                break
    scaled = np.linalg.eigvalsh(a / np.sqrt(np.outer(d, d)))
    return np.asarray(d * (float(scaled[0]) - _EIGENVALUE * len(a) * float(scaled[-1])))


# Correlations of estimates whose smallest eigenvalue is below this are singular up to rounding.
_SINGULAR = 1e-12


def standardized(covariance: Floats) -> tuple[Floats, Floats]:
    """Return standard errors, (k,), and correlations, (k, k), of estimates."""
    scale = np.sqrt(np.diag(covariance))
    return scale, covariance / scale / scale[:, None]


def inverse_root(covariance: Floats) -> Floats:
    """Return R, (k, k), with R'R the inverse of a covariance."""
    scale, correlation = standardized(covariance)
    lower: Floats = np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)
    return solve_upper(lower.T, np.diag(1.0 / scale), transposed=True)


def is_singular(covariance: Floats) -> bool:
    """Whether a covariance of estimates is not known, or singular up to rounding."""
    if not (np.isfinite(covariance).all() and np.all(np.diag(covariance) > 0)):
        return True
    least = np.linalg.eigvalsh(standardized(covariance)[1]).min(initial=1.0)
    return not least > _SINGULAR
