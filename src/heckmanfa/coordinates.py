"""Coordinates for features in which sums over rows keep their digits.

Sums of squares and products of raw features lose as many digits as the square of their condition
number has. Where that is small, features are used as they are, without a copy; elsewhere they are
centred and made orthonormal, by the triangular factor of a sample of them, as they are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.linalg import residual_share, solve_upper
from heckmanfa.normal import Floats

__all__ = ["Coordinates", "Design"]

# Above this share of each column that the constant and the columns before it leave unexplained,
# sums of products keep eleven digits.
_PLAIN_SHARE = 0.03


class Design:
    """A block of rows of ``[1, features]``, or of such a matrix whose constant is implied."""

    def __init__(self, features: Floats, matrix: Floats | None = None) -> None:
        self._features = features
        self._matrix = matrix

    def times(self, coef: Floats) -> Floats:
        """Multiply by coefficients, intercepts first: (b,) or (b, m)."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ coef)
        return np.asarray(self._features @ coef[1:] + coef[0])

    def pull(self, values: Floats) -> Floats:
        """Multiply the transpose by values a row: (1 + p,) or (1 + p, m)."""
        if self._matrix is not None:
            return np.asarray(self._matrix.T @ values)
        return np.concatenate([[values.sum(axis=0)], self._features.T @ values])

    def gram(self, weight: Floats) -> Floats:
        """Sum of products with weights of zero or more, (1 + p, 1 + p)."""
        scaled = self.scaled(np.sqrt(weight))
        return np.asarray(scaled.T @ scaled)

    def squares(self) -> Floats:
        """Sum of squares of each column, (1 + p,)."""
        matrix = self._features if self._matrix is None else self._matrix[:, 1:]
        return np.append(float(len(matrix)), np.einsum("ij,ij->j", matrix, matrix))

    def scaled(self, factor: Floats) -> Floats:
        """Return the matrix with each row multiplied by a number."""
        if self._matrix is not None:
            return self._matrix * factor[:, None]
        matrix = np.empty((self._features.shape[0], self._features.shape[1] + 1))
        matrix[:, 0] = factor
        np.multiply(self._features, factor[:, None], out=matrix[:, 1:])
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
    """whether features are used as they are: centre 0, transform the identity"""

    @classmethod
    def from_factor(cls, r: Floats) -> Coordinates:
        """Choose coordinates by the triangular factor of ``[1, X]`` over some rows."""
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
        """Append features that are standardised (or, where these are plain, left as they are)."""
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

    def design(self, features: Floats) -> Design:
        """Return the design of a block of the first columns in these coordinates."""
        if self.plain:
            return Design(features)
        b, p = features.shape
        matrix = np.empty((b, p + 1))
        matrix[:, 0] = 1.0
        # Upper triangular, so that the first columns need no others.
        np.matmul(features - self.centre[:p], self.transform[:p, :p], out=matrix[:, 1:])
        return Design(features, matrix)

    def back(self) -> Floats:
        """Return the (1 + p, 1 + p) matrix from these coefficients to those of ``[1, x]``."""
        p = len(self.centre)
        matrix = np.zeros((p + 1, p + 1))
        matrix[0, 0] = 1.0
        matrix[1:, 1:] = self.transform
        matrix[0, 1:] = -self.centre @ self.transform
        return matrix
