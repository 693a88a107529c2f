"""Robust covariances of least squares that allow for leverage (HC3), and those of clusters (CR3).

A row with leverage h draws the fit to itself: its residual is 1 - h times its distance from the fit
without it. Squares of residuals are then too small where it counts most, as under large weights.
Scores over 1 - h are those of the jackknife (MacKinnon and White, 1985). The total scores of a
cluster are multiplied by the inverse of I - H, H being the sum over its rows of r r' (MacKinnon,
Nielsen and Webb, 2023); r is a row of the weighted design in coordinates where W'W is the identity,
and h = r'r. As in a jackknife, squares are times (n - 1) / n.

Other equations may be stacked before the regressions, such as a probit that the weights follow
from; their scores stay as they are.

If few units carry an estimate, its standard error is itself uncertain. With u what each unit adds
to the estimate, the variance sum u^2 has a variance of about (2/3) sum u^4 for normal errors, as a
chi-squared variable with 3 (sum u^2)^2 / sum u^4 degrees of freedom has (Satterthwaite, 1946).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import Block, Positions, Rows
from heckmanfa.model.covariance import CovarianceKind, score_squares_and_sums, total_scores
from heckmanfa.model.linalg import solve_upper, symmetric, with_constant
from heckmanfa.model.moments import Moments
from heckmanfa.model.unit_totals import scaled_totals, sum_of_squares

# A row or cluster that alone determines a coefficient has h = 1, and a residual of zero.
_ALONE = 1e-8


@dataclass(frozen=True)
class Regressions:
    """Scores of each row, those of least squares last, and rows of their weighted designs."""

    scores: Callable[[Block], Floats]
    """of the rows of a block, (b, d + m): d scores, before weights that were given; then r, of the
    regressions whose scores are the last m"""
    sizes: tuple[int, ...]
    """coefficients of each regression, m in all"""
    width: int
    """d"""

    @property
    def first(self) -> int:
        """Where the scores of the regressions begin."""
        return self.width - sum(self.sizes)

    def spans(self, start: int = 0) -> list[slice]:
        """Return the place of each regression, counted from a start."""
        ends = np.cumsum([start, *self.sizes]).tolist()
        return [slice(*ends) for ends in pairwise(ends)]

    def of_rows(
        self, block: Block, bread: Floats, sampling: bool
    ) -> tuple[Floats, tuple[float, Floats, Floats]]:
        """Return scores with residuals over 1 - h; the number of rows, sums of u^4, and `alone`."""
        scores, roots = np.split(self.scores(block), [self.width], axis=1)
        # A row of weight 2 is two rows, or one that stands for two.
        weight, count = np.ones((2, len(scores)))
        if block.weight is not None:
            weight, count = (block.weight, count) if sampling else (weight, block.weight)
        alone = np.zeros(len(bread))
        for own, span in zip(self.spans(self.first), self.spans(), strict=True):
            r = roots[:, span] * np.sqrt(weight)[:, None]
            left = 1.0 - np.sum(r**2, axis=1)
            single = left < _ALONE
            scores[:, own] *= (~single / np.where(single, 1.0, left))[:, None]
            alone += _share(bread[:, own], r[single])
        squares = ((scores @ bread.T) * weight[:, None]) ** 2
        return scores, (float(count.sum()), count @ squares**2, alone)

    def to_sum(self, block: Block) -> Floats:
        """Return scores, and the products of r that H is the sum of."""
        scores, roots = np.split(self.scores(block), [self.width], axis=1)
        products = []
        for span in self.spans():
            r = roots[:, span]
            below = np.tril_indices(r.shape[1])
            products.append(r[:, below[0]] * r[:, below[1]])
        return np.column_stack([scores, *products])

    def of_units(self, totals: Floats, products: Floats, bread: Floats) -> tuple[Floats, Floats]:
        """Return (I - H)^-1 times total scores, H being made of products of r, and `alone`."""
        totals, place, alone = totals.copy(), 0, np.zeros(len(bread))
        for own, size in zip(self.spans(self.first), self.sizes, strict=True):
            below = np.tril_indices(size)
            left = np.zeros((len(totals), size, size))
            left[:, below[0], below[1]] = -products[:, place : place + len(below[0])]
            left[:, below[1], below[0]] = left[:, below[0], below[1]]
            # The trace of H is its largest eigenvalue or more.
            suspect = np.einsum("gii->g", left) <= _ALONE - 1.0
            left += np.eye(size)
            values, vectors = np.linalg.eigh(left[suspect])
            single = values < _ALONE
            alone += _share(bread[:, own], np.swapaxes(vectors, 1, 2)[single])
            scaled = vectors * (~single / np.where(single, 1.0, values))[:, None, :]
            inverse = scaled @ np.swapaxes(vectors, 1, 2)
            own_totals = totals[:, own, None]
            settled = np.empty_like(own_totals)
            settled[suspect] = inverse @ own_totals[suspect]
            settled[~suspect] = np.linalg.solve(left[~suspect], own_totals[~suspect])
            totals[:, own] = settled[:, :, 0]
            place += len(below[0])
        return totals, alone

    @property
    def n_products(self) -> int:
        """Columns that `to_sum` adds to the scores."""
        return sum(size * (size + 1) // 2 for size in self.sizes)


def _share(bread: Floats, directions: Floats) -> Floats:
    """Return the squared share of each estimate that lies in directions, (k, size), added up."""
    size = np.maximum(np.sum(bread**2, axis=1), np.finfo(float).tiny)
    return np.asarray(np.sum((bread @ directions.T) ** 2, axis=1) / size)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance of estimates, and how well it is known."""

    covariance: Floats
    """(e, e); NaN for an estimate that a single row or cluster determines, since it leaves no
    residual there"""
    df: Floats
    """(e,) effective degrees of freedom of each variance"""

    @classmethod
    def unknown(cls, n: int) -> Uncertainty:
        """Return what is known of n estimates that are not the only ones to fit."""
        return cls(np.full((n, n), np.nan), np.full(n, np.nan))


def leveraged_sandwich(
    rows: Rows, kind: CovarianceKind, bread: Floats, stacked: Regressions, *, columns: Positions
) -> Uncertainty:
    """Return the covariance B M B' of estimates, as `heckmanfa.model.covariance.sandwich` does."""
    # A jackknife's factor, on top of the usual one.
    leveraged = np.any(bread[:, stacked.first :] != 0.0, axis=1)

    def shrink(n: float) -> Floats:
        return np.where(leveraged, (n - 1.0) / n, 1.0)

    if kind.sums_groups:
        cells = kind.cells or Cells(0)
        size = stacked.width + stacked.n_products
        sums, seen, _ = total_scores(rows, cells, stacked.to_sum, columns=columns, size=size)

        def pulls(totals: Floats, products: Floats, n: int) -> Floats:
            settled, single = stacked.of_units(totals, products, bread)
            alone[:] += single
            return (settled @ bread.T) * shrink(n)

        totals, products = np.split(sums, [stacked.width], axis=1)
        alone = np.zeros(len(bread))
        parts = scaled_totals(cells, totals, seen, products, pulls)
        covariance = sum_of_squares(parts)
        # Of two clusterings, the one that tells less; cells are part of both.
        squares = [part**2 for part in parts[:2]]
        df = np.min([_effective(each.sum(axis=0), (each**2).sum(axis=0)) for each in squares], 0)
    else:
        middle, (n, fourth, alone) = score_squares_and_sums(
            *(rows, kind, stacked.of_rows, bread, kind.sampling),
            columns=columns,
            size=stacked.width,
        )
        covariance = bread @ middle @ bread.T
        squares = np.diag(covariance) * ((n - 1.0) / n)
        df = np.minimum(_effective(squares, fourth), n - 1.0)
        covariance = covariance * np.outer(shrink(n), shrink(n))
    covariance = symmetric(covariance)
    unknown = alone > _ALONE
    covariance[unknown] = covariance[:, unknown] = np.nan
    return Uncertainty(covariance, np.where(unknown, np.nan, np.maximum(df, 1.0)))


def _effective(squares: Floats, fourth: Floats) -> Floats:
    """Return degrees of freedom from the sums of u^2 and u^4; no unit moves what is exact."""
    return np.where(fourth > 0, 3.0 * squares**2 / np.where(fourth > 0, fourth, 1.0), np.inf)


def least_squares_covariance(
    rows: Rows, moments: Moments, features: Positions, coef: Floats, kind: CovarianceKind
) -> Uncertainty:
    """Return the covariance of least squares on rows that all have an outcome, (1 + J) squared."""
    root = moments.subset(features, imr=False, outcome=False)
    inverse_root = solve_upper(root, np.eye(len(root)))
    equation = _LeastSquaresScores(moments.positions(features), coef, inverse_root)
    stacked = Regressions(equation, (len(coef),), len(coef))
    return leveraged_sandwich(rows, kind, inverse_root, stacked, columns=moments.columns)


@dataclass(frozen=True)
class _LeastSquaresScores:
    places: list[int]
    coef: Floats
    inverse_root: Floats

    def __call__(self, block: Block) -> Floats:
        columns = with_constant(block.features, self.places)
        roots = columns @ self.inverse_root
        residual = block.outcome - columns @ self.coef
        return np.column_stack([roots * residual[:, None], roots])
