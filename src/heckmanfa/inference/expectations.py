"""The expectations of a fitted model, and their gradients in its parameters.

With u = z'gamma, each is a x'b + h(u, b_H). a is 0 for the probability of selection and 1
otherwise; h is 0, b_H lambda(u), -b_H lambda(-u) or Phi(u).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.rows import Positions
from heckmanfa.fit import Fit
from heckmanfa.model.normal import log_cdf, mills

TARGETS = ("marginal", "selected", "unselected", "selection")

_BLOCK_ROWS = 8192
_SQRT_2PI = (2.0 * np.pi) ** 0.5
# Left of this point, a continued fraction gives the derivative of delta.
_TAIL, _TAIL_TERMS = -3.0, 55


@dataclass(frozen=True)
class Estimates:
    """Both equations over the k columns of X that are in one of them, intercepts first."""

    prediction: bool
    """whether the prediction equation is taken"""
    selection: bool
    columns: list[int]
    """k positions in X"""
    coef: Floats
    """(1 + k,)"""
    selection_coef: Floats
    """(1 + k,)"""
    imr_coef: float
    covariance: Floats
    """square, of ``coef``, ``selection_coef`` and ``imr_coef``: 2 (1 + k) + 1 rows; zero for a
    column that is not in the equation"""
    in_prediction: frozenset[int]
    """the columns in the prediction equation, if that is taken"""
    in_selection: frozenset[int]

    def used_by(self, target: str) -> frozenset[int]:
        """Return the columns of X that one of `TARGETS` is a function of."""
        if target == "marginal":
            return self.in_prediction
        if target == "selection":
            return self.in_selection
        return self.in_prediction | self.in_selection

    @classmethod
    def of(cls, fit: Fit, *, prediction: bool, selection: bool) -> Estimates:
        """Take one equation, or both, out of a fitted model."""
        selection = selection and fit.probit is not None
        predicting = fit.equation if prediction else []
        selecting: list[int] = []
        if selection and fit.probit is not None:
            selecting = [int(column) for column in fit.probit.features]
        columns = sorted({*predicting, *selecting})
        k = len(columns)
        position = {column: 1 + i for i, column in enumerate(columns)}
        coef, selection_coef = np.zeros(1 + k), np.zeros(1 + k)
        rows: list[int] = []
        positions: list[int] = []
        if prediction:
            coef[0] = fit.intercept
            coef[1:] = fit.coef[columns]
            rows += range(1 + len(predicting))
            positions += [0, *(position[column] for column in predicting)]
        if selection:
            selection_coef[0] = fit.selection_intercept
            selection_coef[1:] = fit.selection_coef[columns]
            first = fit.terms.index(("selection", "Intercept"))
            rows += range(first, first + 1 + len(selecting))
            positions += [1 + k, *(1 + k + position[column] for column in selecting)]
        if prediction and selection:
            rows.append(fit.terms.index(("errors", "imr")))
            positions.append(2 * (1 + k))
        covariance = np.zeros((2 * k + 3, 2 * k + 3))
        covariance[np.ix_(positions, positions)] = fit.covariance[np.ix_(rows, rows)]
        imr_coef = fit.imr_coef if prediction and selection else 0.0
        return cls(
            prediction,
            selection,
            columns,
            coef,
            selection_coef,
            imr_coef,
            covariance,
            frozenset(predicting),
            frozenset(selecting),
        )


@dataclass(frozen=True)
class Parts:
    """The part h(u, b_H) of an expectation that is not linear, with its derivatives, by row."""

    outcome: float
    """a: 1 if x'b is part of the expectation, else 0"""
    value: Floats
    slope: Floats
    """dh / du"""
    curve: Floats
    """d2h / du2"""
    imr: Floats
    """dh / db_H"""
    imr_slope: Floats
    """d2h / du db_H"""


def parts_of(kind: str, index: Floats, imr_coef: float) -> Parts:
    """Evaluate h and its derivatives at each row's index u; the kind is one of `TARGETS`."""
    zero = np.zeros_like(index)
    if kind == "marginal":
        return Parts(1.0, zero, zero, zero, zero, zero)
    if kind == "selection":
        density = np.exp(-0.5 * index * index) / _SQRT_2PI
        return Parts(0.0, np.exp(log_cdf(index)), density, -index * density, zero, zero)
    side = 1.0 if kind == "selected" else -1.0
    ratio, slope = mills(side * index)
    curve = mills_curve(side * index)
    return Parts(
        1.0,
        side * imr_coef * ratio,
        -imr_coef * slope,
        -side * imr_coef * curve,
        side * ratio,
        -slope,
    )


def mills_curve(z: Floats) -> Floats:
    """Return delta'(z), where -delta is the slope of the inverse Mills ratio lambda.

    delta' = lambda (1 - delta) - delta (lambda + z), which is close to 2 / z^3 far left.
    """
    z = np.asarray(z, dtype=np.float64)
    ratio, slope = mills(z)
    curve = np.asarray(ratio * (1.0 - slope) - slope * (ratio + z))
    tail = z < _TAIL
    if np.any(tail):
        # With lambda(-x) = x + 1/(x + r), r = 2/(x + s), s = 3/(x + 4/(x + ...)), the two terms,
        # which nearly cancel, become a product.
        x = -z[tail]
        s: Any = np.zeros_like(x)
        for term in range(_TAIL_TERMS, 2, -1):
            s = term / (x + s)
        r = 2.0 / (x + s)
        curve[tail] = slope[tail] * 2.0 * (r - s) / ((x + s) * (x + r))
    return curve


@dataclass(frozen=True)
class Effect:
    """A number for each row, and its gradient as sums of vectors (n,) times matrices (n, 1 + k).

    A matrix with a single row applies to every row.
    """

    values: Floats
    """(n,)"""
    prediction: tuple[tuple[Floats, Floats], ...]
    selection: tuple[tuple[Floats, Floats], ...]
    imr: Floats
    """(n,)"""

    def average(self, weight: Floats) -> tuple[float, Floats]:
        """Return the weighted sum over rows, and its gradient of shape (2 (1 + k) + 1,)."""
        blocks = [
            sum(
                np.sum(weight * factor) * matrix[0]
                if len(matrix) == 1
                else (weight * factor) @ matrix
                for factor, matrix in terms
            )
            for terms in (self.prediction, self.selection)
        ]
        gradient = np.concatenate([*blocks, [weight @ self.imr]])
        return float(weight @ self.values), gradient

    def gradient(self) -> Floats:
        """Return the gradient of each row's number, (n, 2 (1 + k) + 1)."""
        blocks = [
            sum(factor[:, None] * matrix for factor, matrix in terms)
            for terms in (self.prediction, self.selection)
        ]
        return np.column_stack([*blocks, self.imr])

    def variance(self, covariance: Floats) -> Floats:
        """Return the variance of each row's number, by the delta method."""
        gradient = self.gradient()
        return np.asarray(np.sum((gradient @ covariance) * gradient, axis=1))


def level_effect(estimates: Estimates, parts: Parts, design: Floats) -> Effect:
    """Return the expectation in rows of the design (n, 1 + k), at which ``parts`` is evaluated."""
    outcome = np.full(len(design), parts.outcome)
    return Effect(
        outcome * (design @ estimates.coef) + parts.value,
        ((outcome, design),),
        ((parts.slope, design),),
        parts.imr,
    )


def slope_effect(estimates: Estimates, parts: Parts, design: Floats, slopes: Floats) -> Effect:
    """Return the derivative of the expectation, given the slopes of the design's columns."""
    outcome = np.full(len(design), parts.outcome)
    moved = slopes @ estimates.selection_coef
    return Effect(
        outcome * (slopes @ estimates.coef) + parts.slope * moved,
        ((outcome, slopes),),
        ((parts.curve * moved, design), (parts.slope, slopes)),
        parts.imr_slope * moved,
    )


def with_ones(columns: Floats) -> Floats:
    """Prepend the intercept's column of ones."""
    return np.column_stack([np.ones(len(columns)), columns])


def design_blocks(
    table: FeatureTable, columns: Positions, rows: int = _BLOCK_ROWS
) -> Iterator[tuple[slice, Floats]]:
    """Yield runs of rows, each as its span and its design (b, 1 + k)."""
    source = table.source(columns)
    for start in range(0, table.shape[0], rows):
        stop = min(start + rows, table.shape[0])
        yield slice(start, stop), with_ones(source.take(start, stop, columns))
