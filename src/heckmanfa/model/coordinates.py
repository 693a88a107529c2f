"""Coordinates for features in which sums over rows stay accurate.

Sums of squares and products of raw features lose as many digits as the square of their condition
number has. If that is small, features are used without a copy; otherwise they are centred and
orthonormalised as they are read, with the triangular factor of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, host, like, multiply, namespace, product
from heckmanfa.model.linalg import residual_share, solve_upper

# If the columns before it leave more than this share of each column unexplained, sums of products
# keep eleven digits.
_PLAIN_SHARE = 0.03


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
        scaled = self.scaled(weight**0.5)
        return host(product(scaled.T, scaled))

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
