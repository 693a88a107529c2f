"""The normal quantities of the selection model, accurate in the far tails.

The inverse Mills ratio of the paper's Algorithm 1 is lambda(z) = phi(z) / Phi(z), which evaluates
to 0/0 below z = -38. With the scaled complementary error function there is no cancellation and no
underflow.

The error of an outcome, given that its row is selected, is e given w > -u, with e and w standard
normal with correlation rho (the extended skew normal distribution). Newton's method finds its
quantiles, on a distribution function that is accurate even if selection is very unlikely.

In many rows, quantiles are interpolated. After standardising they depend on u and rho only, and are
smooth in u and t = atanh(rho): a polynomial for each cell of a fixed grid has them to 1e-11
standard deviations. Each is checked between its nodes, and not used where it is not that good.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from heckmanfa.data.arrays import Array, Floats, as_floats, erfcx, log_ndtr, namespace
from heckmanfa.data.rows import Groups, Mask

_SQRT_HALF = 0.5**0.5
_SQRT_2_OVER_PI = (2.0 / np.pi) ** 0.5
_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)

# Left of this point lambda + z comes from a continued fraction, since the sum of a large lambda and
# a large negative z loses z**2 units in the last place.
_TAIL = -3.0
_TAIL_TERMS = 55  # 3e-16 at the edge of the tail, and less beyond
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# A normal variable is further from zero with a probability of 4e-19.
_REACH = 80.0**0.5
_MAX_ITERATIONS = 200
_SMALL_STEP = 1e-8

# Terms of a cell's polynomial in u and in t. Its largest error, in standard deviations, at some
# points between its nodes; the ends are among them.
_IN_U, _IN_T, _ERROR = 16, 10, 1e-11
_CHECKED = np.array([-1.0, -0.5, 0.5, 1.0])
# Cells per unit of t, the last t, and cells in u. Beyond the grid rows are few.
_PER_T, _LAST_T, _U_CELLS = 4, 4.0, 128
# For a cell with fewer rows, a polynomial costs more than it saves.
_LEAST_ROWS = 64


def log_cdf(z: ArrayLike) -> Any:
    """Logarithm of the standard normal distribution function."""
    return log_ndtr(as_floats(z))


def inverse_mills(z: ArrayLike) -> Any:
    """Inverse Mills ratio lambda(z) = phi(z) / Phi(z).

    It decreases in z, from close to -z far left to close to 0 far right.
    """
    scaled = erfcx(-_SQRT_HALF * as_floats(z))
    with np.errstate(divide="ignore"):
        return _SQRT_2_OVER_PI / scaled


def mills(z: ArrayLike) -> tuple[Array, Array]:
    """Inverse Mills ratio lambda(z) and minus its derivative, delta(z) = lambda (lambda + z)."""
    points = as_floats(z)
    xp = namespace(points)
    ratio = xp.asarray(inverse_mills(points))
    with np.errstate(invalid="ignore"):
        slope = xp.asarray(ratio * (ratio + points))
    tail = (points < _TAIL) & (points > -np.inf)
    if xp.any(tail):
        steep = ratio[tail] * _excess(-points[tail])
        slope[tail] = xp.where(steep > 1.0, xp.ones_like(steep), steep)
    infinite = xp.isinf(points)
    if xp.any(infinite):
        slope[infinite] = xp.astype(points[infinite] < 0, points.dtype)
    return ratio, slope


def log_cdf_and_mills(z: Array) -> tuple[Array, Array, Array]:
    """Return log Phi, lambda and delta from one special function, for sums over many rows.

    Unlike in `log_cdf`, log Phi has an absolute error of 1e-16 z^2: enough for a sum over rows, and
    a third faster.
    """
    xp = namespace(z)
    ratio, slope = mills(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        # phi / lambda = Phi
        value = -0.5 * z * z - (_HALF_LOG_2PI + xp.log(ratio))
    far = z > 30.0
    if xp.any(far):
        value[far] = 0.0  # -1e-197 and less
    return value, ratio, slope


def _excess(x: Array) -> Array:
    """lambda(-x) - x for large x by Laplace's continued fraction, free of cancellation.

    lambda(-x) = x + 1/(x + 2/(x + 3/(x + ...))), so the excess is what follows the first x.
    """
    tail = x
    for term in range(_TAIL_TERMS, 1, -1):
        tail = x + term / tail
    return 1.0 / tail


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


def selected_quantiles(probabilities: Floats, index: Floats, rho: Floats) -> Floats:
    """Return quantiles (n, levels) of e given w > -u, for n rows.

    ``index`` is u, and ``rho`` the correlation of e and w, (n,) each; NaN where one of them is.
    """
    values = np.full((len(index), len(probabilities)), np.nan)
    known = np.isfinite(index) & np.isfinite(rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.arctanh(np.abs(np.where(known, rho, 1.0)))
    rows = np.flatnonzero(t < _LAST_T)
    exact = np.ones(len(index), dtype=bool)
    for cell, some, in_u, in_t in _by_cell(index[rows], t[rows], rho[rows] < 0):
        polynomials = [_polynomial(float(level), *cell) for level in probabilities]
        for place, polynomial in enumerate(polynomials):
            if polynomial is not None:
                values[rows[some], place] = np.sum((polynomial @ in_u) * in_t, axis=0)
        exact[rows[some]] = any(polynomial is None for polynomial in polynomials)
    others = np.flatnonzero(exact)
    if len(others):
        for place, level in enumerate(probabilities):
            values[others, place] = selected_quantile(float(level), index[others], rho[others])
    return values


Cell = tuple[int, int, bool]
"""place in u, place in t, and whether rho is negative"""


def _by_cell(u: Floats, t: Floats, negative: Mask) -> Iterator[tuple[Cell, Groups, Floats, Floats]]:
    """Yield the cells that have many rows, these rows, and Chebyshev polynomials in u and in t."""
    half = _U_CELLS // 2
    in_t = np.floor(_PER_T * t)
    scaled_u = u * _per_u(in_t)
    in_u = np.floor(scaled_u)
    code = np.where(np.abs(in_u) < half, (in_t * _U_CELLS + in_u + half) * 2 + negative, -1)
    # Short integers are sorted in linear time.
    code = code.astype(np.int16)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for some in np.split(order, starts)[1:]:
        if len(some) >= _LEAST_ROWS:
            first = some[0]
            cell = int(in_u[first]), int(in_t[first]), bool(negative[first])
            across, along = scaled_u[some] - cell[0], _PER_T * t[some] - cell[1]
            in_cell = _chebyshev(2.0 * across - 1.0, _IN_U), _chebyshev(2.0 * along - 1.0, _IN_T)
            yield cell, some, *in_cell


def _per_u(in_t: Floats | float) -> Floats:
    """Cells per unit of u: if rho is close to 1, quantiles bend within a few sqrt(1 - rho^2)."""
    return np.exp2(np.ceil(np.maximum(np.asarray(in_t) / _PER_T - 1.0, 0.0)))


def _chebyshev(x: Floats, count: int) -> Floats:
    """Return the first Chebyshev polynomials, (count, n)."""
    values = np.empty((count, len(x)))
    values[0], values[1] = 1.0, x
    twice = 2.0 * x
    for k in range(2, count):
        np.multiply(twice, values[k - 1], out=values[k])
        values[k] -= values[k - 2]
    return values


@lru_cache(maxsize=1024)
def _polynomial(probability: float, in_u: int, in_t: int, negative: bool) -> Floats | None:
    """Return Chebyshev coefficients (t, u) of a cell's quantiles; None if they are not right."""
    from_u, u = _interpolation(_IN_U)
    from_t, t = _interpolation(_IN_T)
    exact = _cell_quantiles(probability, (in_u, in_t, negative), u, t)[0]
    coef = np.asarray(from_t @ exact @ from_u.T)
    checked, spread = _cell_quantiles(probability, (in_u, in_t, negative), _CHECKED, _CHECKED)
    interpolated = _chebyshev(_CHECKED, _IN_T).T @ coef @ _chebyshev(_CHECKED, _IN_U)
    return coef if np.all(np.abs(interpolated - checked) <= _ERROR * spread) else None


def _cell_quantiles(probability: float, cell: Cell, u: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return quantiles and standard deviations (t, u) at points of a cell, from -1 to 1."""
    in_u, in_t, negative = cell
    index = (in_u + 0.5 * (1.0 + u)) / _per_u(in_t)
    rho = np.tanh((in_t + 0.5 * (1.0 + t)) / _PER_T)
    all_rho, all_index = (grid.ravel() for grid in np.meshgrid(rho, index, indexing="ij"))
    values = selected_quantile(probability, all_index, -all_rho if negative else all_rho)
    spread = np.sqrt(1.0 - all_rho**2 * mills(all_index)[1])
    return values.reshape(len(t), len(u)), spread.reshape(len(t), len(u))


@lru_cache(maxsize=2)
def _interpolation(count: int) -> tuple[Floats, Floats]:
    """Return the matrix from values at Chebyshev's nodes to coefficients, and the nodes."""
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    matrix = 2.0 / count * _chebyshev(nodes, count)
    matrix[0] *= 0.5
    return matrix, nodes


def selected_quantile(probability: float, index: Floats, rho: Floats) -> Floats:
    """Return quantiles of e given w > -u, where e and w are standard normal with correlation rho.

    ``index`` is u; NaN where u or rho is NaN.
    """
    values = np.full(len(index), np.nan)
    known = np.flatnonzero(np.isfinite(index) & np.isfinite(rho))
    u, size = index[known], np.abs(rho[known])
    # The distribution for -rho is that for rho, mirrored.
    side = np.where(rho[known] < 0, -1.0, 1.0)
    goal = np.where(side < 0, 1.0 - probability, probability)
    ratio, slope = mills(u)
    spread = np.sqrt((1.0 - size) * (1.0 + size) + size**2 * (1.0 - slope))
    centre = size * ratio
    # Cantelli's inequality; a little more, since the spread is rounded.
    low = centre - 1.001 * spread * np.sqrt((1.0 - goal) / goal)
    high = centre + 1.001 * spread * np.sqrt(goal / (1.0 - goal))
    q = np.clip(centre + spread * special.ndtri(goal), low, high)
    todo = np.arange(len(known))
    for _ in range(_MAX_ITERATIONS):
        at, uu, rr = q[todo], u[todo], size[todo]
        gap = selected_cdf(at, uu, rr) - goal[todo]
        low[todo] = np.where(gap < 0, at, low[todo])
        high[todo] = np.where(gap > 0, at, high[todo])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = at - gap / _density(at, uu, rr)
        outside = ~((new >= low[todo]) & (new <= high[todo]))
        new = np.where(outside, 0.5 * (low[todo] + high[todo]), new)
        q[todo] = new
        # The error after such a Newton step is of the order of its square.
        todo = todo[np.abs(new - at) > _SMALL_STEP * spread[todo] + 4e-16 * np.abs(new)]
        if len(todo) == 0:
            break
    values[known] = side * q
    return values


def selected_cdf(q: Floats, u: Floats, rho: Floats) -> Floats:
    """Return P(e <= q | w > -u), e and w standard normal with correlation rho in [0, 1).

    e = rho w + r v with independent normal v, r = sqrt(1 - rho^2). The integral is over the part
    with the smaller spread, in which the other's distribution function is smooth, so one rule
    serves all. Both factors are scaled by P(w > -u), so none underflows.
    """
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    values = np.empty(len(q))
    over_w = rho * np.sqrt(1.0 - mills(u)[1]) <= r
    for chosen, integral in ((over_w, _over_w), (~over_w, _over_v)):
        if chosen.any():
            values[chosen] = integral(*(argument[chosen, None] for argument in (q, u, rho, r)))
    return np.clip(values, 0.0, 1.0)


def _over_w(q: Floats, u: Floats, rho: Floats, r: Floats) -> Floats:
    start = np.maximum(-u, -_REACH)
    # Far left, w + u is nearly exponential with rate |u|.
    below = np.minimum(u, 0.0)
    length = np.where(u < 0, _REACH**2 / (np.sqrt(below**2 + _REACH**2) - below), _REACH - start)
    s = 0.5 * length * (1.0 + _NODES)
    density = inverse_mills(-start) * np.exp(-start * s - 0.5 * s * s)
    inner = special.ndtr((q - rho * (start + s)) / r)
    return np.asarray(np.sum(_WEIGHTS * 0.5 * length * density * inner, axis=1))


def _over_v(q: Floats, u: Floats, rho: Floats, r: Floats) -> Floats:
    # Beyond this point rho w + r v <= q leaves no w > -u.
    stop = np.clip((q + rho * u) / r, -_REACH, _REACH)
    length = stop + _REACH
    v = -_REACH + 0.5 * length * (1.0 + _NODES)
    beyond = np.maximum((q - r * v) / rho + u, 0.0)
    # P(w > -u + beyond) / P(w > -u), without the squares that both terms share far left.
    below = np.minimum(u, 0.0)
    ratio = inverse_mills(below) / inverse_mills(below - beyond)
    far = ratio * np.exp(below * beyond - 0.5 * beyond**2)
    inner = 1.0 - np.where(u < 0, far, np.exp(log_cdf(u - beyond) - log_cdf(u)))
    density = np.exp(-0.5 * v * v - _HALF_LOG_2PI)
    return np.asarray(np.sum(_WEIGHTS * 0.5 * length * density * inner, axis=1))


def _density(q: Floats, u: Floats, rho: Floats) -> Floats:
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    value = -0.5 * q * q - _HALF_LOG_2PI + log_cdf((u + rho * q) / r) - log_cdf(u)
    return np.asarray(np.exp(value))
