"""The expectations of a fitted model, and their gradients in its parameters.

Each is a function of v = x'b, u = z'gamma and a parameter of the errors, whose derivatives
`expectation_parts` has: b_H of a linear outcome, rho of a binary one. Of a model that is fitted on
the log of its outcome, expectations on the outcome's own scale are functions of sigma too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats, host
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.outcomes import OutcomeTransform
from heckmanfa.data.rows import Positions
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.log_means import log_parts, own_scale_parts
from heckmanfa.model.expectation_parts import Parts, linear_parts
from heckmanfa.text.option_words import option

TARGETS = ("marginal", "selected", "unselected", "expected", "selection")

_BLOCK_ROWS = 8192

Level = Callable[[Floats, Floats, Any, Any], Parts]
"""a function of v = x'b, u = z'gamma, the dependence and sigma, with its derivatives"""


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
    dependence: Any
    """of the outcome on selection, as `Fit.dependence` has it: a number, or those of a series"""
    covariance: Floats
    """square, of ``coef``, ``selection_coef`` and the E numbers of ``dependence``: 2 (1 + k) + E
    rows; zero for a column that is not in the equation"""
    in_prediction: frozenset[int]
    """the columns in the prediction equation, if that is taken"""
    in_selection: frozenset[int]
    form: Callable[..., Parts] = linear_parts
    """an expectation and its derivatives, given both indexes and the dependence"""
    transform: OutcomeTransform | None = None
    """what expectations on the outcome's own scale undo; None if they are on that of the fit"""
    sigma: float = 0.0
    """standard deviation of the outcome's error, which only a ``transform`` needs, or the family's
    ``shape``: the covariance then has one more row, the last"""
    shaped: bool = False
    """whether expectations depend on the family's ``shape``, in the place of sigma"""

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each column of X in a design, after the intercept's."""
        return {column: 1 + i for i, column in enumerate(self.columns)}

    def parts(self, target: str, design: Floats) -> Parts:
        """Evaluate one of `TARGETS` and its derivatives in rows of the design (n, 1 + k)."""
        mean, index = design @ self.coef, design @ self.selection_coef
        if self.transform is not None:
            errors = self.dependence, self.sigma
            return own_scale_parts(self.transform, target, mean, index, *errors)
        return self.level(target)(mean, index, self.dependence, self.sigma)

    def evaluate(self, level: Level, design: Floats) -> Parts:
        """Evaluate a function of both indexes in rows of the design (n, 1 + k)."""
        mean, index = design @ self.coef, design @ self.selection_coef
        return level(mean, index, self.dependence, self.sigma)

    def level(self, target: str) -> Level:
        """Return an expectation or, with a transform, the logarithm that `from_log` undoes."""
        if self.transform is not None:
            return partial(log_parts, self.transform, target)
        if self.shaped:
            return partial(self.form, target)
        return lambda mean, index, dependence, _: self.form(target, mean, index, dependence)

    def again(self, fit: Fit) -> Estimates:
        """Take the same out of another fit."""
        return Estimates.of(
            fit,
            prediction=self.prediction,
            selection=self.selection,
            transform=self.transform,
        )

    def used_by(self, target: str) -> frozenset[int]:
        """Return the columns of X that one of `TARGETS` is a function of."""
        if target == "marginal":
            return self.in_prediction
        if target == "selection":
            return self.in_selection
        return self.in_prediction | self.in_selection

    @classmethod
    def of(
        cls,
        fit: Fit,
        *,
        prediction: bool,
        selection: bool,
        transform: OutcomeTransform | None = None,
    ) -> Estimates:
        """Take one equation, or both, out of a fitted model; ``transform`` is what to undo."""
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
            coef[0] = fit.level
            coef[1:] = fit.coef[columns]
            rows += range(1 + len(predicting))
            positions += [0, *(position[column] for column in predicting)]
        if selection:
            selection_coef[0] = fit.selection_intercept
            selection_coef[1:] = fit.selection_coef[columns]
            first = fit.terms.index(("selection", "Intercept"))
            rows += range(first, first + 1 + len(selecting))
            positions += [1 + k, *(1 + k + position[column] for column in selecting)]
        terms = fit.dependence_terms
        if prediction and selection:
            rows += [fit.terms.index(("errors", term)) for term in terms]
            positions += range(2 * (1 + k), 2 * (1 + k) + len(terms))
        shape = fit.family.shape
        size = 2 * (1 + k) + len(terms) + (transform is not None or shape is not None)
        covariance = np.zeros((size, size))
        covariance[np.ix_(positions, positions)] = fit.covariance[np.ix_(rows, rows)]
        if transform is not None and prediction:
            of_sigma = fit.sigma_covariance
            shared = np.nan if of_sigma is None else of_sigma[rows]
            covariance[positions, -1] = covariance[-1, positions] = shared
            covariance[-1, -1] = np.nan if of_sigma is None else of_sigma[-1]
        dependence, sigma = fit.dependence, fit.sigma
        if shape is not None:
            sigma = fit.errors[shape].value
            # A shape at the end of its range is taken as known.
            if np.isfinite(sigma):
                last = fit.terms.index(("errors", shape))
                covariance[positions, -1] = covariance[-1, positions] = fit.covariance[last, rows]
                covariance[-1, -1] = fit.covariance[last, last]
        return cls(
            prediction,
            selection,
            columns,
            coef,
            selection_coef,
            dependence if prediction and selection else 0.0 * dependence,
            covariance,
            frozenset(predicting),
            frozenset(selecting),
            fit.family.parts,
            transform,
            sigma,
            shape is not None,
        )


@dataclass(frozen=True)
class Effect:
    """A number for each row, and its gradient as sums of vectors (n,) times matrices (n, 1 + k).

    A matrix with a single row applies to every row.
    """

    values: Floats
    """(n,)"""
    prediction: tuple[tuple[Floats, Floats], ...]
    selection: tuple[tuple[Floats, Floats], ...]
    dependence: Floats
    """(n,), or (n, E) if there are E of them"""
    sigma: Floats | None = None
    """(n,) or None, as in `Parts`"""

    def average(self, weight: Floats) -> tuple[float, Floats]:
        """Return the weighted sum over rows, and its gradient, as the covariance has rows."""
        blocks = [
            sum(
                np.sum(weight * factor) * matrix[0]
                if len(matrix) == 1
                else (weight * factor) @ matrix
                for factor, matrix in terms
            )
            for terms in (self.prediction, self.selection)
        ]
        ends = [np.atleast_1d(weight @ end) for end in self._ends]
        gradient = np.concatenate([*blocks, *ends])
        return float(weight @ self.values), gradient

    def gradient(self) -> Floats:
        """Return the gradient of each row's number, as the covariance has rows."""
        blocks = [
            sum(factor[:, None] * matrix for factor, matrix in terms)
            for terms in (self.prediction, self.selection)
        ]
        return np.column_stack([*blocks, *self._ends])

    @property
    def _ends(self) -> list[Floats]:
        """Derivatives in the parameters of the errors."""
        return [self.dependence] if self.sigma is None else [self.dependence, self.sigma]

    def variance(self, covariance: Floats) -> Floats:
        """Return the variance of each row's number, by the delta method."""
        gradient = self.gradient()
        return np.asarray(np.sum((gradient @ covariance) * gradient, axis=1))


def level_effect(parts: Parts, design: Floats) -> Effect:
    """Return the expectation in rows of the design (n, 1 + k), at which ``parts`` is evaluated."""
    by_mean, by_index = ((parts.mean, design),), ((parts.index, design),)
    return Effect(parts.value, by_mean, by_index, parts.dependence, parts.sigma)


def slope_effect(estimates: Estimates, parts: Parts, design: Floats, slopes: Floats) -> Effect:
    """Return the derivative of the expectation, given the slopes of the design's columns."""
    mean, index = slopes @ estimates.coef, slopes @ estimates.selection_coef
    bent, by_dependence = parts.index_index * index, (parts.index_dependence.T * index).T
    by_sigma = None if parts.index_sigma is None else parts.index_sigma * index
    prediction: tuple[tuple[Floats, Floats], ...] = ((parts.mean, slopes),)
    if parts.bend is not None:
        bend = parts.bend
        bent = bent + bend.mean_index * mean
        prediction = ((bend.mean_mean * mean + bend.mean_index * index, design), *prediction)
        by_dependence = by_dependence + (bend.mean_dependence.T * mean).T
        if by_sigma is not None and bend.mean_sigma is not None:
            by_sigma = by_sigma + bend.mean_sigma * mean
    return Effect(
        parts.mean * mean + parts.index * index,
        prediction,
        ((bent, design), (parts.index, slopes)),
        by_dependence,
        by_sigma,
    )


def refuse_unknown(fit: Fit, kind: str, *, level: bool = True) -> None:
    """Refuse an expectation that a series in the selection index does not identify.

    The slope of an expectation, where no ``level`` is asked, needs no intercept.
    """
    if len(fit.dependence_terms) < 2:
        return
    if kind == "unselected":
        raise NotIdentifiedError(
            f"{option('kind', 'unselected')} needs the mean error of rows that are not selected, "
            f"which the {fit.family.words.model} does not suppose and the data do not show: use "
            f"{option('kind', 'selected')} or 'expected'"
        )
    if level and kind == "marginal" and np.isnan(fit.intercept):
        raise NotIdentifiedError(
            f"{option('kind', 'marginal')} needs the intercept, which a series in the selection "
            f"index does not identify: use {option('kind', 'selected')} or 'expected', or fit with "
            f"{option('intercept', 'at infinity')}"
        )


def is_known(fit: Fit, kind: str) -> bool:
    """Whether the level of an expectation is identified."""
    try:
        refuse_unknown(fit, kind)
    except NotIdentifiedError:
        return False
    return True


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
        yield slice(start, stop), with_ones(host(source.take(start, stop, columns)))
