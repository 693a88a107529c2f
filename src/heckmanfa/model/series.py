"""A two-step series estimator: slopes that do not rest on normal errors of the outcome.

Among the selected rows, E[y | x, z] = x'b + g(u), u = z'gamma, with some function g of the
selection index. Least squares of y on W = [1, X_S, p_1(u-hat), ..., p_L(u-hat)] approximates g by a
series (Newey, 2009, Econometrics Journal 12). The terms are

    p_l(u) = lambda(u) P_(l-1)(2 Phi(u) - 1),

with the Legendre polynomials P. The choice of terms is ours. Led by lambda, a series of one term is
Heckman's correction, which is exact under normal errors. And 2 Phi - 1 is bounded, so rows with an
extreme index do not decide the higher terms, as they would powers of u or of lambda. Legendre's
polynomials only make the columns well conditioned: slopes and g are those of powers.

Standard errors stack the probit's estimating equations and those of the second step,
sum W (y - W theta) = 0. The derivative of the latter in gamma is, with e = y - W theta,

    D = sum [0, 0, p'(u)] e z' - sum W g'(u) z'.

The intercept of y is not identified, since the constant of g is not. At infinity it is, where
selection is certain and g vanishes: it is the mean of y - x'b over selected rows with weights
k(u) that rise from 0 to 1 as their chance of selection rises from 90% to 99% (Heckman, 1990;
Andrews and Schafgans, 1998).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, erf, host, like, namespace
from heckmanfa.data.rows import Block, Positions, Rows, pick, total
from heckmanfa.errors import NotIdentifiedError, TooFewRowsError
from heckmanfa.model.covariance import CovarianceKind, sandwich
from heckmanfa.model.linalg import (
    Design,
    Factor,
    block_factor,
    merge_factors,
    residual_share,
    solve_upper,
    stack,
    with_constant,
)
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import mills, mills_curve
from heckmanfa.model.probit import Probit, stacked_scores
from heckmanfa.text.option_words import option

MOST_TERMS = 8
"""the longest series that cross-validation tries"""
LONGEST = 50
"""the longest series that may be given"""
_CHANCES = (0.9, 0.99)
# Their selection indexes: where the weights of the intercept begin, and where they are one.
_BEGIN, _WHOLE = 1.2815515655446004, 2.3263478740408408
_LEAST_ROWS = 30
# A term of which the columns before it leave no more than this is a combination of them.
_DEPENDENT = 1e-8
_SQRT_2PI = (2.0 * np.pi) ** 0.5


def series_basis(index: Array, n_terms: int, order: int = 0) -> tuple[Array, ...]:
    """Return the terms at n selection indexes, (n, L), and their derivatives up to ``order``.

    Second derivatives are NumPy's.
    """
    ratio, slope = mills(index)
    bounded = erf(index * 0.5**0.5)
    values = [empty(index, index.shape[0], n_terms) for _ in range(order + 1)]
    density = namespace(index).exp(-0.5 * index * index) / _SQRT_2PI
    curve = -mills_curve(index) if order > 1 else None
    # Each polynomial with its first and second derivative, and those before it.
    last, now = (0.0, 0.0, 0.0), (bounded * 0.0 + 1.0, 0.0, 0.0)
    for place in range(n_terms):
        polynomial, first, second = now
        values[0][:, place] = ratio * polynomial
        if order > 0:
            moved = first * (2.0 * density)
            values[1][:, place] = ratio * moved - slope * polynomial
        if order > 1:
            bent = second * (2.0 * density) ** 2 - first * (2.0 * index * density)
            values[2][:, place] = ratio * bent - 2.0 * slope * moved + curve * polynomial
        now, last = _next_legendre(place, bounded, now, last), now
    return tuple(values)


def _next_legendre(degree: int, at: Array, now: Any, last: Any) -> Any:
    """Return the Legendre polynomial after that of a degree, with two derivatives."""
    twice = 2.0 * degree + 1.0
    value = (twice * at * now[0] - degree * last[0]) / (degree + 1.0)
    return value, last[1] + twice * now[0], last[2] + twice * now[1]


@dataclass(frozen=True)
class Intercept:
    """The intercept of the outcome, identified at infinity."""

    value: float
    n_rows: float
    """selected rows with a weight, or the sum of their own weights"""


@dataclass(frozen=True)
class Series:
    """Series estimates of J features and L terms."""

    features: tuple[int, ...]
    """positions in X of the J prediction features"""
    coef: Floats
    """(1 + J + L,) constant, features, terms"""
    sse: float
    errors: tuple[float, ...]
    """mean squared leave-one-out errors of series of 1, 2, ... terms; empty if L was given"""
    intercept: Intercept | None
    covariance: Floats
    """square, of ``coef``, the probit's coefficients and the intercept, if there is one"""

    @property
    def n_terms(self) -> int:
        """Number of terms, L."""
        return len(self.coef) - 1 - len(self.features)


def fit_series(
    moments: Moments,
    probit: Probit,
    features: Positions,
    kind: CovarianceKind,
    rows: Rows,
    *,
    n_terms: int | None,
    at_infinity: bool = False,
    with_errors: bool = True,
) -> Series:
    """Fit the prediction equation with a series in the selection index.

    None is as many terms as cross-validation chooses. Without ``with_errors`` the covariance,
    which takes two passes over the rows, is NaN.
    """
    features = tuple(sorted(int(feature) for feature in features))
    first = 1 + len(features)
    room = int(moments.n_selected) - first - 1
    most = min(MOST_TERMS, room) if n_terms is None else n_terms
    if most < 1 or most > room:
        raise TooFewRowsError(
            f"{moments.n_selected:,.10g} selected rows are too few for {len(features)} prediction "
            f"features and a series of {max(most, 1)} terms: let fewer features predict, or "
            f"lower {option('n_terms')}"
        )
    step = SecondStep.of(moments, probit, features, most)
    columns = moments.columns
    factors = rows.map(step.factor, columns=columns, merge=merge_factors)
    root = stack(factors, first + most + 1)
    carried = _terms_carried(root[:-1, :-1], first)
    if carried < (n_terms or 1):
        raise NotIdentifiedError(
            f"the selection index takes too few values among the selected rows for a series of "
            f"{n_terms or 1} terms beside the prediction features: {carried} can be told apart. "
            "Let a feature with more values drive selection alone, or lower "
            f"{option('n_terms')}."
        )
    errors: tuple[float, ...] = ()
    if n_terms is None:
        used = first + carried
        args = solve_upper(root[:used, :used], np.eye(used)), root[:used, -1], kind.sampling
        passed = rows.map(step.with_terms(carried).left_out, *args, columns=columns, merge=total)
        squares, n = total(passed)
        errors = tuple(float(each) for each in squares / n)
        n_terms = int(np.argmin(errors)) + 1
    size = first + n_terms
    step = step.with_terms(n_terms)
    coef = solve_upper(root[:size, :size], root[:size, -1])
    solved = Solved(step, coef, solve_upper(root[:size, :size], np.eye(size)))
    level = solved.level(rows, columns) if at_infinity else None
    total_size = size + len(probit.coef) + (level is not None)
    covariance = np.full((total_size, total_size), np.nan)
    if with_errors:
        covariance = solved.covariance(rows, kind, columns, level)
    return Series(
        features=features,
        coef=coef,
        sse=float(np.sum(root[size:, -1] ** 2)),
        errors=errors,
        intercept=None if level is None else Intercept(level.value, level.n_rows),
        covariance=covariance,
    )


def _terms_carried(root: Floats, first: int) -> int:
    """Count the leading terms that are not combinations of the columns before them."""
    apart = residual_share(root)[first:] > _DEPENDENT
    return len(apart) if apart.all() else int(np.argmin(apart))


# Functions over one block of rows. -----------------------------------------------------------


@dataclass(frozen=True)
class SecondStep:
    """Least squares of the selected rows on [1, X_S, p_1, ..., p_L]."""

    probit: Probit
    selection: list[int]
    """positions of its features among a block's columns"""
    prediction: list[int]
    """likewise of the prediction features"""
    n_terms: int

    @classmethod
    def of(cls, moments: Moments, probit: Probit, features: Positions, n_terms: int) -> SecondStep:
        """Take the positions from the compressed data, whose columns blocks must have."""
        selection, prediction = moments.positions(probit.features), moments.positions(features)
        return cls(probit, selection, prediction, n_terms)

    def with_terms(self, n_terms: int) -> SecondStep:
        """Return the same with another number of terms."""
        return replace(self, n_terms=n_terms)

    def factor(self, block: Block) -> Factor:
        """Factor of [W, y] of a block's selected rows, times the roots of their weights."""
        block = block.only_selected()
        matrix = self._regressors(block, self.index(block), 1)
        matrix[:, -1] = block.outcome
        if block.weight is not None:
            matrix *= (block.weight**0.5)[:, None]
        return block_factor(matrix)

    def left_out(
        self, block: Block, inverse_root: Floats, projected: Floats, sampling: bool
    ) -> tuple[Floats, float]:
        """Sum squared errors of rows that are left out, by the number of terms, and the weights.

        The columns of W times (W'W)^-1/2 are orthonormal, so a shorter series has the first of
        them. A weight that counts rows leaves out one of them; a sampling weight is one row's.
        """
        block = block.only_selected()
        w = host(self._regressors(block, self.index(block)))
        outcome = host(block.outcome)
        weight = np.ones(len(outcome)) if block.weight is None else host(block.weight)
        first = w.shape[1] - self.n_terms
        orthonormal = w @ inverse_root
        leverage = np.cumsum(orthonormal**2, axis=1)[:, first:]
        residual = outcome[:, None] - np.cumsum(orthonormal * projected, axis=1)[:, first:]
        if sampling:
            leverage = leverage * weight[:, None]
        # A row that alone carries a term is not predicted without it.
        with np.errstate(divide="ignore"):
            error = np.where(leverage < 1.0 - _DEPENDENT, residual / (1.0 - leverage), np.inf)
        return weight @ error**2, float(weight.sum())

    def index(self, block: Block) -> Array:
        """Selection index of each row."""
        return self.coordinates(block).times(self.probit.inner_coef)

    def coordinates(self, block: Block) -> Design:
        """Design of the selection equation, in the coordinates of the probit."""
        return self.probit.coordinates.design(pick(block.features, self.selection))

    def _regressors(self, block: Block, index: Array, n_more: int = 0) -> Array:
        """W of selected rows, and columns to fill in."""
        matrix = with_constant(block.features, self.prediction, self.n_terms + n_more)
        (terms,) = series_basis(index, self.n_terms)
        first = 1 + len(self.prediction)
        matrix[:, first : first + self.n_terms] = terms
        return matrix


@dataclass(frozen=True)
class Level:
    """The intercept at infinity, and how it follows from other estimates."""

    value: float
    n_rows: float
    weight: float
    """sum of k over the selected rows"""
    means: Floats
    """(J,) of the features, with weights k"""


@dataclass(frozen=True)
class Solved:
    """Both equations at their estimates, for passes over blocks of rows."""

    step: SecondStep
    coef: Floats
    """(1 + J + L,)"""
    inverse_root: Floats
    """(W'W)^-1/2"""

    @property
    def slopes(self) -> Floats:
        """Coefficients of the features, (J,)."""
        return self.coef[1 : 1 + len(self.step.prediction)]

    def level(self, rows: Rows, columns: Positions) -> Level:
        """Identify the intercept at infinity, or refuse if too few rows are near it."""
        n, weight, *sums = total(rows.map(self._level_terms, columns=columns, merge=total))
        if n < _LEAST_ROWS:
            low = f"{100.0 * _CHANCES[0]:g}%"
            raise NotIdentifiedError(
                f"only {n:,.10g} selected rows have a chance of selection above {low}, and the "
                f"intercept at infinity needs {_LEAST_ROWS}: leave "
                f"{option('intercept', 'at infinity')} out. Slopes do not need it."
            )
        means, outcome = sums[0] / weight, float(sums[1] / weight)
        value = outcome - float(means @ self.slopes)
        return Level(value, float(n), float(weight), means)

    def covariance(
        self, rows: Rows, kind: CovarianceKind, columns: Positions, level: Level | None
    ) -> Floats:
        """Sandwich of the stacked equations: of the series, the probit, and the intercept."""
        probit, j, p = self.step.probit, len(self.coef), len(self.step.probit.coef)
        extra = int(level is not None)
        args = (level,)
        slope, of_level = total(rows.map(self._slopes, *args, columns=columns, merge=total))
        bread = np.zeros((j + p + extra, p + j + extra))
        bread[:j, p : p + j] = self.inverse_root
        bread[:j, :p] = self.inverse_root @ slope.T @ probit.inner_covariance
        bread[j : j + p, :p] = probit.coordinates.back() @ probit.inner_covariance
        if level is not None:
            bread[-1] = -level.means @ bread[1 : 1 + len(self.slopes)]
            bread[-1, :p] += of_level @ probit.inner_covariance
            bread[-1, -1] = 1.0
        return sandwich(rows, kind, bread, self._scores, *args, columns=columns)

    def _scores(self, block: Block, level: Level | None) -> Array:
        """Scores of each row: the probit's, the second step's, and that of the intercept."""
        step, j, p = self.step, len(self.coef), len(self.step.probit.coef)
        width = p + j + (level is not None)
        scores, index = stacked_scores(block, step.probit, step.selection, width)
        chosen, selected = block.selected, block.only_selected()
        w = step._regressors(selected, index[chosen])
        residual = selected.outcome - w @ like(self.coef, w)
        scores[chosen, p : p + j] = (w @ like(self.inverse_root, w)) * residual[:, None]
        if level is not None:
            share = infinity_weights(index[chosen])[0] / level.weight
            scores[chosen, -1] = share * self._above(selected, level)
        return scores

    def _slopes(self, block: Block, level: Level | None) -> tuple[Floats, Floats]:
        """Derivatives in the probit's coefficients, (1 + p, 1 + J + L) and (1 + p,).

        Of the second step's equations times (W'W)^-1/2, and of the intercept.
        """
        block, step = block.only_selected(), self.step
        design = step.coordinates(block)
        index = design.times(step.probit.inner_coef)
        _, moved = series_basis(index, step.n_terms, 1)
        w = step._regressors(block, index)
        residual = block.outcome - w @ like(self.coef, w)
        correction = moved @ like(self.coef[-step.n_terms :], w)
        inverse_root = like(self.inverse_root, w)
        terms = (moved @ inverse_root[-step.n_terms :]) * residual[:, None]
        terms -= (w @ inverse_root) * correction[:, None]
        of_level = residual * 0.0
        if level is not None:
            rise = infinity_weights(index)[1]
            of_level = rise * self._above(block, level) / level.weight
        if block.weight is not None:
            terms, of_level = terms * block.weight[:, None], of_level * block.weight
        return design.pull(terms), design.pull(of_level)

    def _level_terms(self, block: Block) -> tuple[float, float, Floats, float]:
        """Count the rows with a weight k, and sum k, k x and k y."""
        block = block.only_selected()
        share = infinity_weights(self.step.index(block))[0]
        own = namespace(share).ones_like(share) if block.weight is None else block.weight
        features = pick(block.features, self.step.prediction)
        n, share = float((own * (share > 0.0)).sum()), share * own
        return (
            n,
            float(share.sum()),
            host(features.T @ share),
            float((share * block.outcome).sum()),
        )

    def _above(self, block: Block, level: Level) -> Array:
        """Outcome less x'b and the intercept, of selected rows."""
        features = pick(block.features, self.step.prediction)
        return block.outcome - features @ like(self.slopes, features) - level.value


def infinity_weights(index: Array) -> tuple[Array, Array]:
    """Return Andrews and Schafgans' weights k(u) of rows, and their derivatives.

    k = 1 - exp(-v / (1 - v)), v = 0 at a chance of selection of 90%, and v = 1 at 99%.
    """
    xp = namespace(index)
    v = (index - _BEGIN) / (_WHOLE - _BEGIN)
    inside = (v > 0.0) & (v < 1.0)
    rest = xp.where(inside, 1.0 - v, xp.ones_like(v))
    fall = xp.exp(-xp.where(inside, v, xp.zeros_like(v)) / rest)
    ones, none = xp.ones_like(v), xp.zeros_like(v)
    weights = xp.where(v >= 1.0, ones, xp.where(inside, 1.0 - fall, none))
    slopes = xp.where(inside, fall / (rest * rest * (_WHOLE - _BEGIN)), none)
    return weights, slopes
