"""Quantiles of mixtures of normal distributions and point masses.

Where an assignment does not hold a feature, its coefficient is zero, without an error. So the
distribution of an averaged coefficient is a mixture of normal distributions with a jump at zero.
Its mean plus or minus some standard deviations does not describe it; its quantiles do.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Groups, Mask

_BLOCK_BYTES = 2**24
_MAX_STEPS = 200
# A root is found if a step is below this share of its bracket's first length.
_PRECISION = 1e-11
# Rounding in a sum of weights.
_ROUNDING = 1e-12


def mixture_quantiles(
    weights: Floats,
    centres: Floats,
    errors: Floats,
    levels: Floats,
    df: float | None = None,
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
    """
    levels = np.asarray(levels, dtype=np.float64)
    present = weights > 0
    share = weights[present] / np.sum(weights[present])
    n, q = int(present.sum()), centres.shape[1]
    quantiles = np.full((q, len(levels)), np.nan)
    step = max(_BLOCK_BYTES // (8 * n), 1)
    for start in range(0, q, step):
        span = slice(start, start + step)
        centre = np.ascontiguousarray(centres[present, span].T)
        error = np.ascontiguousarray(errors[present, span].T)
        known = np.flatnonzero(np.isfinite(centre).all(axis=1) & np.isfinite(error).all(axis=1))
        if len(known):
            mixtures = _Mixtures(share, centre[known], error[known], df)
            for place, level in enumerate(levels):
                quantiles[start + known, place] = mixtures.quantile(float(level))
    return quantiles


class _Mixtures:
    """Some mixtures with common weights."""

    def __init__(self, weights: Floats, centre: Floats, error: Floats, df: float | None) -> None:
        self._weights, self._centre, self._df = weights, centre, df
        self._point: Mask = error == 0
        # A division by one where there is none by an error: its result is not used.
        self._inverse = 1.0 / np.where(self._point, 1.0, error)
        self._error = error
        self._mass = self._point @ weights
        self._jumps = self._points()

    def quantile(self, level: float) -> Floats:
        """Return the quantile of each mixture at one level."""
        ends = self._centre + self._error * self._standard_quantile(level)
        low, high = ends.min(axis=1), ends.max(axis=1)
        result = np.array(high)
        low, high, found = self._between_jumps(level, low, high, result)
        base = self._below(low)
        rows = np.flatnonzero(~found & (high > low))
        if len(rows):
            result[rows] = self._root(level - base[rows], low[rows], high[rows], rows)
        return result

    def _standard_quantile(self, level: float) -> float:
        if self._df is None:
            return float(special.ndtri(level))
        return float(special.stdtrit(self._df, level))

    def _points(self) -> Floats:
        """Distinct point masses of each mixture in increasing order, then infinity."""
        if not self._point.any():
            return np.empty((len(self._centre), 0))
        points = np.sort(np.where(self._point, self._centre, np.inf), axis=1)
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
        found = np.zeros(len(low), dtype=bool)
        if not n_jumps:
            return low, high, found
        # The first jump at or above the quantile, by bisection; n_jumps if there is none.
        first, last = np.zeros(len(low), dtype=int), np.full(len(low), n_jumps)
        while (first < last).any():
            middle = (first + last) // 2
            open_ = first < last
            place = self._jumps[np.arange(len(low)), np.minimum(middle, n_jumps - 1)]
            reached = ~np.isfinite(place) | (self._total(place) >= level - _ROUNDING)
            last = np.where(open_ & reached, middle, last)
            first = np.where(open_ & ~reached, middle + 1, first)
        rows = np.arange(len(low))
        above = np.where(first < n_jumps, self._jumps[rows, np.minimum(first, n_jumps - 1)], np.inf)
        below = np.where(first > 0, self._jumps[rows, np.maximum(first - 1, 0)], -np.inf)
        real = np.isfinite(above)
        place = np.where(real, above, 0.0)
        before = self._smooth(place, slice(None))[0] + self._below(
            np.where(np.isfinite(below), below, -np.inf)
        )
        found = real & (before < level + _ROUNDING)
        result[found] = above[found]
        return np.maximum(low, below), np.minimum(high, above), found

    def _total(self, where: Floats) -> Floats:
        """Distribution function of each mixture at one place."""
        finite = np.where(np.isfinite(where), where, 0.0)
        return self._smooth(finite, slice(None))[0] + self._below(finite)

    def _smooth(self, where: Floats, rows: slice | Groups) -> tuple[Floats, Floats]:
        """Distribution function and density of the mixtures without their point masses."""
        z = (where[:, None] - self._centre[rows]) * self._inverse[rows]
        if self._df is None:
            below = special.ndtr(z)
            density = np.exp(-0.5 * z * z) * (2.0 * np.pi) ** -0.5
        else:
            df = self._df
            below = np.asarray(special.stdtr(df, z), dtype=np.float64)
            log_top = special.gammaln(0.5 * (df + 1.0)) - special.gammaln(0.5 * df)
            log_one = log_top - 0.5 * np.log(df * np.pi)
            density = np.exp(log_one - 0.5 * (df + 1.0) * np.log1p(z * z / df))
        point = self._point[rows]
        below[point] = 0.0
        density *= self._inverse[rows]
        density[point] = 0.0
        return below @ self._weights, density @ self._weights

    def _root(self, target: Floats, low: Floats, high: Floats, rows: Groups) -> Floats:
        """Solve smooth(x) = target within brackets, by Newton's method safeguarded by bisection."""
        tolerance = _PRECISION * (high - low)
        x = 0.5 * (low + high)
        last = high - low
        low, high = low.copy(), high.copy()
        result = x.copy()
        active = np.arange(len(x))
        for _ in range(_MAX_STEPS):
            value, density = self._smooth(x[active], rows[active])
            gap = value - target[active]
            under = gap < 0
            low[active] = np.where(under, x[active], low[active])
            high[active] = np.where(under, high[active], x[active])
            with np.errstate(divide="ignore", invalid="ignore"):
                step = gap / density
            trial = x[active] - step
            inside = (trial >= low[active]) & (trial <= high[active])
            # A step that is not half of the last one could go round in circles.
            good = inside & (np.abs(step) <= 0.5 * last[active])
            trial = np.where(good, trial, 0.5 * (low[active] + high[active]))
            last[active] = np.abs(trial - x[active])
            x[active] = trial
            result[active] = trial
            active = active[last[active] > tolerance[active]]
            if not len(active):
                break
        return result
