"""Quantiles of mixtures of normal distributions and point masses.

Where an assignment does not hold a feature, its coefficient is zero, without an error. So the
distribution of an averaged coefficient is a mixture of normal distributions with a jump at zero.
Its mean plus or minus some standard deviations does not describe it; its quantiles do.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Groups, Mask

# The components of a block stay in the cache.
_BLOCK_BYTES = 2**21
_MAX_STEPS = 200
# A root is found if its error is below this share of the narrowest component's, or is rounding.
_PRECISION = 1e-10
# Mixtures of more than twice as many components start from the quantile of this many.
_FEW = 64
# An expansion about the normal distribution starts a mixture with smaller cumulants.
_NEARLY_NORMAL = 0.5
# Rounding in a sum of weights.
_ROUNDING = 1e-12
# Nodes of the table of Student's t per unit, and on each side of zero.
_NODES = 64
_REACH = 24 * _NODES


def mixture_quantiles(
    weights: Floats,
    centres: Floats,
    errors: Floats,
    levels: ArrayLike,
    df: float | None = None,
    precision: float = _PRECISION,
) -> Floats:
    """Return the quantiles of q mixtures of N components each, (q, levels).

    Parameters
    ----------
    weights : (N,)
        Of the components; rescaled to sum to one.
    centres, errors : (N, q)
        Of each component: its mean and standard error. A component whose error is zero is a point
        mass. A mixture with a component that is NaN has the quantiles NaN.
    levels
        Probabilities between zero and one. A level within the jump at a point mass has that point
        as its quantile, exactly.
    df
        Degrees of freedom of Student's t, which takes the place of the normal distribution.
    precision
        Largest error of a quantile, in units of the narrowest component's standard error.
    """
    probabilities = np.asarray(levels, dtype=np.float64)
    present = weights > 0
    share = weights[present] / np.sum(weights[present])
    n, q = int(present.sum()), centres.shape[1]
    quantiles = np.full((q, len(probabilities)), np.nan)
    step = max(_BLOCK_BYTES // (8 * n), 1)
    for start in range(0, q, step):
        span = slice(start, start + step)
        centre = np.ascontiguousarray(centres[present, span].T)
        error = np.ascontiguousarray(errors[present, span].T)
        known = np.flatnonzero(np.isfinite(centre).all(axis=1) & np.isfinite(error).all(axis=1))
        if len(known):
            mixtures = _Mixtures(share, centre[known], error[known], df, precision)
            for place, level in enumerate(probabilities):
                quantiles[start + known, place] = mixtures.quantile(float(level))
    return quantiles


# Distribution functions and densities. ------------------------------------------------------------


def _normal(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Distribution function, density and its fall, -phi'; may overwrite the argument."""
    below = special.ndtr(z)
    density = z * z
    density *= -0.5
    np.exp(density, out=density)
    density *= (2.0 * np.pi) ** -0.5
    z *= density
    return below, density, z


@cache
def _student(df: float) -> _Student:
    return _Student(df)


class _Student:
    """Student's t by Taylor series at the nodes of a table, right to 1e-11.

    SciPy's function takes many times as long as the normal one.
    """

    def __init__(self, df: float) -> None:
        self._df = df
        z = np.arange(-_REACH, _REACH + 1) / _NODES
        spread, top, density = df + z**2, df + 1.0, self._density(z)
        # Derivatives of the logarithm of the density.
        first = -top * z / spread
        second = -top * (df - z**2) / spread**2
        third = 2.0 * top * z * (3.0 * df - z**2) / spread**3
        self._table = np.stack(
            [
                special.stdtr(df, z),
                density,
                density * first / 2.0,
                density * (first**2 + second) / 6.0,
                density * (first**3 + 3.0 * first * second + third) / 24.0,
            ]
        )

    def __call__(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Distribution function, density and its fall, the derivative with the other sign."""
        nearest = np.rint(np.clip(z * _NODES, -_REACH, _REACH))
        apart = z - nearest / _NODES
        zeroth, *terms = self._table[:, nearest.astype(np.intp) + _REACH]
        density, below = np.zeros_like(z), np.zeros_like(z)
        for power in range(len(terms), 0, -1):
            below = (below + terms[power - 1]) * apart
            density = density * apart + power * terms[power - 1]
        below += zeroth
        far = np.abs(z) * _NODES > _REACH
        if far.any():
            below[far] = special.stdtr(self._df, z[far])
            density[far] = self._density(z[far])
        return below, density, density * ((self._df + 1.0) * z / (self._df + z * z))

    def _density(self, z: Floats) -> Floats:
        df, top = self._df, self._df + 1.0
        log_one = special.gammaln(0.5 * top) - special.gammaln(0.5 * df)
        density = np.exp(log_one - 0.5 * top * np.log1p(z**2 / df))
        return np.asarray(density / (df * np.pi) ** 0.5)


# Mixtures. ----------------------------------------------------------------------------------------


class _Mixtures:
    """Some mixtures with common weights."""

    def __init__(
        self,
        weights: Floats,
        centre: Floats,
        error: Floats,
        df: float | None,
        precision: float = _PRECISION,
    ) -> None:
        self._weights, self._centre, self._error, self._df = weights, centre, error, df
        self._precision = precision
        self._law = _normal if df is None else _student(df)
        self._point: Mask = error == 0
        # Point masses have z = 0 and no density in the smooth part, which counts half of each.
        self._inverse = np.where(self._point, 0.0, 1.0 / np.where(self._point, 1.0, error))
        self._steepest = np.max(self._inverse, axis=1, initial=0.0)
        self._mass = self._point @ weights
        self._jumps = self._points()

    def quantile(self, level: float) -> Floats:
        """Return the quantile of each mixture at one level."""
        # It lies between the lowest and the highest of the components' quantiles.
        ends = self._centre + self._error * self._standard_quantile(level)
        low, high = ends.min(axis=1), ends.max(axis=1)
        result = np.array(high)
        low, high, is_jump = self._between_jumps(level, low, high, result)
        base = self._below(low)
        rows = np.flatnonzero(~is_jump & (high > low))
        if len(rows):
            start = self._start(level, rows, low, high)
            result[rows] = self._root(level - base[rows], low[rows], high[rows], start, rows)
        return result

    def _start(self, level: float, rows: Groups, low: Floats, high: Floats) -> Floats:
        """Guess quantiles within their brackets, from moments or from a few components."""
        low, high = low[rows], high[rows]
        middle = np.asarray(0.5 * (low + high))
        guess, is_near = self._expanded(level, rows)
        far = rows[~is_near]
        if len(far) and len(self._weights) > 2 * _FEW:
            ranks = (np.arange(_FEW) + 0.5) / _FEW
            last = len(self._weights) - 1
            few = np.minimum(np.searchsorted(np.cumsum(self._weights), ranks), last)
            share = np.full(_FEW, 1.0 / _FEW)
            some = np.ix_(far, few)
            coarse = _Mixtures(share, self._centre[some], self._error[some], self._df)
            guess[~is_near] = coarse.quantile(level)
        return np.where((guess > low) & (guess < high), guess, middle)

    @cached_property
    def _cumulants(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean, standard deviation, skewness and excess kurtosis of each mixture."""
        weights = self._weights
        mean = self._centre @ weights
        away = self._centre - mean[:, None]
        square, within = away * away, self._error * self._error
        variance = (square + within) @ weights
        third = (away * (square + 3.0 * within)) @ weights
        fourth = (square * (square + 6.0 * within) + 3.0 * within * within) @ weights
        return mean, np.sqrt(variance), third / variance**1.5, fourth / variance**2 - 3.0

    def _expanded(self, level: float, rows: Groups) -> tuple[Floats, Mask]:
        """Quantiles by the expansion of Cornish and Fisher, and where they are close."""
        if self._df is not None or self._point.any():
            return np.full(len(rows), np.nan), np.zeros(len(rows), dtype=bool)
        mean, spread, skew, excess = (cumulant[rows] for cumulant in self._cumulants)
        z = self._standard_quantile(level)
        terms = skew * (z**2 - 1.0) / 6.0 + excess * (z**3 - 3.0 * z) / 24.0
        terms -= skew**2 * (2.0 * z**3 - 5.0 * z) / 36.0
        is_near = (np.abs(skew) < _NEARLY_NORMAL) & (np.abs(excess) < _NEARLY_NORMAL)
        return mean + spread * (z + terms), is_near

    def _standard_quantile(self, level: float) -> float:
        if self._df is None:
            return float(special.ndtri(level))
        return float(special.stdtrit(self._df, level))

    def _points(self) -> Floats:
        """Distinct point masses of each mixture in increasing order, then infinity."""
        if not self._point.any():
            return np.empty((len(self._centre), 0))
        places = np.where(self._point, self._centre, np.inf)
        first = places.min(axis=1)
        if not np.any(np.isfinite(places) & (places != first[:, None])):
            return np.asarray(first[:, None])
        points = np.sort(places, axis=1)
        points[:, 1:][points[:, 1:] == points[:, :-1]] = np.inf
        points.sort(axis=1)
        return points[:, : int(np.isfinite(points).sum(axis=1).max())]

    def _below(self, where: Floats) -> Floats:
        """Weight of the point masses at or below a place in each mixture."""
        if not self._jumps.shape[1]:
            return np.zeros(len(where))
        if self._jumps.shape[1] == 1:
            return np.where(self._jumps[:, 0] <= where, self._mass, 0.0)
        return np.asarray((self._point & (self._centre <= where[:, None])) @ self._weights)

    def _between_jumps(
        self, level: float, low: Floats, high: Floats, result: Floats
    ) -> tuple[Floats, Floats, Mask]:
        """Narrow each bracket to the space between two jumps, or find that the quantile is a jump.

        Writes jumps to ``result``.
        """
        n_jumps = self._jumps.shape[1]
        if not n_jumps:
            return low, high, np.zeros(len(low), dtype=bool)
        rows = np.arange(len(low))
        # The first jump at or above the quantile, by bisection; n_jumps if there is none.
        first, last = np.zeros(len(low), dtype=int), np.full(len(low), n_jumps)
        while (first < last).any():
            middle = (first + last) // 2
            place = self._jumps[rows, np.minimum(middle, n_jumps - 1)]
            reached = self._distribution(place) >= level - _ROUNDING
            unsettled = first < last
            last = np.where(unsettled & reached, middle, last)
            first = np.where(unsettled & ~reached, middle + 1, first)
        above = np.where(first < n_jumps, self._jumps[rows, np.minimum(first, n_jumps - 1)], np.inf)
        below = np.where(first > 0, self._jumps[rows, np.maximum(first - 1, 0)], -np.inf)
        before = self._smooth(np.where(np.isfinite(above), above, 0.0))[0] + self._below(below)
        is_jump = np.isfinite(above) & (before < level + _ROUNDING)
        result[is_jump] = above[is_jump]
        return np.maximum(low, below), np.minimum(high, above), is_jump

    def _distribution(self, where: Floats) -> Floats:
        """Distribution function of each mixture at one place; one at infinity."""
        finite = np.isfinite(where)
        place = np.where(finite, where, 0.0)
        return np.where(finite, self._smooth(place)[0] + self._below(place), 1.0)

    def _smooth(self, where: Floats, rows: Groups | None = None) -> tuple[Floats, Floats, Floats]:
        """Distribution function, density and its fall, of mixtures without their point masses."""
        every = rows is None or len(rows) == len(self._centre)
        some = slice(None) if every else rows
        centre, inverse, mass = self._centre[some], self._inverse[some], self._mass[some]
        z = where[:, None] - centre
        z *= inverse
        below, density, fall = self._law(z)
        density *= inverse
        fall *= inverse
        fall *= inverse
        weights = self._weights
        return below @ weights - 0.5 * mass, density @ weights, fall @ weights

    def _root(
        self, target: Floats, low: Floats, high: Floats, start: Floats, rows: Groups
    ) -> Floats:
        """Solve smooth(x) = target within brackets, by Halley's method safeguarded by bisection."""
        steepest = np.maximum(self._steepest[rows], np.finfo(float).tiny)
        rounding = 4.0 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
        tolerance = np.maximum(self._precision / steepest, rounding)
        x, last = start.copy(), high - low
        low, high = low.copy(), high.copy()
        active = np.arange(len(x))
        for _ in range(_MAX_STEPS):
            at = x[active]
            value, density, fall = self._smooth(at, rows[active])
            gap = value - target[active]
            low[active] = np.where(gap < 0, at, low[active])
            high[active] = np.where(gap < 0, high[active], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = gap / density
                step /= np.maximum(1.0 + 0.5 * step * fall / density, 0.5)
            trial = at - step
            # A step that is not half of the last one could go round in circles.
            halley = (trial >= low[active]) & (trial <= high[active])
            halley &= np.abs(step) <= 0.5 * last[active]
            trial = np.where(halley, trial, 0.5 * (low[active] + high[active]))
            moved = np.abs(trial - at)
            # Halley's method cubes the error, in units of the narrowest component.
            cubed = moved * np.minimum(moved * steepest[active], 1.0) ** 2
            left = np.where(halley, cubed, moved)
            x[active], last[active] = trial, moved
            active = active[left > tolerance[active]]
            if not len(active):
                break
        return x


def total_covariance(weights: Floats, centres: Floats, covariances: Floats) -> Floats:
    """Return the covariance of a mixture of N components, (q, q): within them, and between them.

    ``centres`` are (N, q) and ``covariances`` (N, q, q).
    """
    away = centres - weights @ centres
    between = (away * weights[:, None]).T @ away
    return np.asarray(np.einsum("n,nij->ij", weights, covariances) + between)
