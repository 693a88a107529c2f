"""Student's t, with its derivatives in the degrees of freedom, accurate in far tails.

Everything is a function of x and of w = 1/nu, which is 0 for the normal distribution. With k = 2r^2
and h = (1 - exp(-k w)) / w, the left tail is an integral of a smooth function of w, w = 0 included:

    T(-x) = 2 (1 + w x^2) t(x) Q(x),    Q(x) = integral from 0 of r exp(-r^2) (x^2 + h)^(-1/2) dr.

Its factors are positive, so logarithms and derivatives in w lose nothing to cancellation. Near the
centre T is 1/2 less an integral of the density. Both integrals are Gauss-Legendre sums.

A likelihood has one w for all rows, so `StudentCurves` evaluates the functions at the nodes of a
fixed grid in asinh x, and rows by polynomials of degree 10 between them, to about 1e-12. Rows
beyond the grid, and small blocks, are evaluated by the integrals themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
# Coefficients of w, w^3, ... in log(Gamma(a + 1/2) / Gamma(a) / sqrt(a)), a = 1 / (2 w).
_GAMMA_TERMS = (
    -1.0 / 4.0,
    1.0 / 24.0,
    -1.0 / 20.0,
    17.0 / 112.0,
    -31.0 / 36.0,
    691.0 / 88.0,
    -5461.0 / 52.0,
)
_SMALL_W = 0.025
# Left of -1/2, the tail's integral; it ends where exp(-r^2) is 1e-17 of its largest value.
_CENTRE = 0.5
_REACH = 6.4
_TAIL_NODES, _TAIL_WEIGHTS = np.polynomial.legendre.leggauss(64)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Below it, series, whose terms in powers of -c are a column for each of three functions.
_SERIES = 0.01
_N = np.arange(8.0)[:, None]
_LOG_TERMS = np.hstack(
    [1.0 / (_N + 1.0), (_N + 1.0) / (_N + 2.0), -(_N + 1.0) * (_N + 2.0) / (_N + 3.0)]
)
# The grid in asinh x: cells per unit, and where it ends; x is 13 there.
_PER_UNIT, _LAST, _DEGREE = 8, 3.25, 10
_M = np.arange(20.0)[:, None]
_FACTORIALS = special.factorial(_M)
# Of (1 - exp(-z)) / z, the sum of (-z)^n / (n + 1)!, and its two derivatives.
_EXPONENTIAL_TERMS = np.hstack(
    [
        1.0 / (_FACTORIALS * (_M + 1.0)),
        -1.0 / (_FACTORIALS * (_M + 2.0)),
        1.0 / (_FACTORIALS * (_M + 3.0)),
    ]
)
_CHUNK = 2**12
_FEW = 500
# Powers of x do not overflow.
_LARGEST = 1e40


class StudentTerms(NamedTuple):
    """Functions of x and w = 1 / nu, each (n,)."""

    log_cdf: Floats
    """log T(x)"""
    ratio: Floats
    """lambda = t(x) / T(x), the derivative of log T in x"""
    in_w: Floats
    """derivative of log T in w"""
    ratio_in_w: Floats
    """derivative of lambda in w"""
    in_ww: Floats
    """second derivative of log T in w"""


def slope_of_ratio(x: Floats, ratio: Floats, w: float) -> Floats:
    """Return the derivative of lambda in x; it is positive far left, where T is not log-concave."""
    return np.asarray(-ratio * (ratio + (1.0 + w) * x / (1.0 + w * x * x)))


@lru_cache(maxsize=64)
def log_constant(w: float) -> tuple[float, float, float]:
    """Return the logarithm of the density at 0, and its two derivatives in w."""
    if w <= _SMALL_W:
        powers = 2 * np.arange(len(_GAMMA_TERMS)) + 1
        terms = np.array(_GAMMA_TERMS)
        value = float(np.sum(terms * w**powers))
        slope = float(np.sum(terms * powers * w ** (powers - 1)))
        bend = np.sum(terms[1:] * powers[1:] * (powers[1:] - 1) * w ** (powers[1:] - 2))
        return value - _HALF_LOG_2PI, slope, float(bend)
    a = 0.5 / w
    value = special.gammaln(a + 0.5) - special.gammaln(a) - 0.5 * np.log(a)
    in_a = special.psi(a + 0.5) - special.psi(a) - 0.5 / a
    in_aa = special.polygamma(1, a + 0.5) - special.polygamma(1, a) + 0.5 / a**2
    slope, bend = -2.0 * a * a * in_a, 8.0 * a**3 * in_a + 4.0 * a**4 * in_aa
    return float(value) - _HALF_LOG_2PI, float(slope), float(bend)


def log_density(x: Floats, w: float) -> tuple[Floats, Floats, Floats]:
    """Return the logarithm of the density t(x), and its two derivatives in w."""
    constant, slope_at_0, bend_at_0 = log_constant(w)
    square = x * x
    c, q = w * square, 1.0 + w * square
    log_q, shape, in_c = _log_parts(c)
    value = constant - 0.5 * (1.0 + w) * square * log_q
    slope = slope_at_0 + 0.5 * square * square * shape - 0.5 * square / q
    bend = bend_at_0 + 0.5 * square**3 * in_c + 0.5 * (square / q) ** 2
    return value, slope, bend


def _log_parts(c: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log(1 + c) / c, and g = (log(1 + c) - c / (1 + c)) / c^2 with its derivative."""
    near = c < _SERIES
    safe = np.where(near, 1.0, c)
    log_q = np.log1p(safe)
    first = log_q / safe
    shape = (log_q - safe / (1.0 + safe)) / safe**2
    slope = (1.0 / (1.0 + safe) ** 2 - 2.0 * shape) / safe
    if np.any(near):
        first[near], shape[near], slope[near] = _series(c[near], _LOG_TERMS)
    return first, shape, slope


def _series(c: Floats, terms: Floats) -> Floats:
    """Return sums of powers of -c, one for each column of ``terms``."""
    powers = np.vander(-c, len(terms), increasing=True)
    return np.asarray((powers @ terms).T)


def student_terms(x: Floats, w: float) -> StudentTerms:
    """Evaluate log T and what follows from it at any x, by the integrals."""
    left = np.full((5, len(x)), np.nan)
    for start in range(0, len(x), _CHUNK):
        some = slice(start, start + _CHUNK)
        left[:, some] = _left(np.minimum(np.abs(x[some]), _LARGEST), w)
    return _mirrored(left, x > 0)


def _mirrored(left: Floats, right: Mask) -> StudentTerms:
    """Return the terms at -x, or those at x where ``right``, given those at -x."""
    log_tail, ratio, in_w, ratio_in_w, in_ww = left
    tail = np.exp(np.where(right, log_tail, -1.0))
    cdf = 1.0 - tail
    # T(x) is 1 less the tail, which is at most a half.
    odds = tail / cdf
    terms = [
        np.log1p(-tail),
        ratio * odds,
        -odds * in_w,
        odds * (ratio_in_w + ratio * in_w * (1.0 + odds)),
        -odds * (in_ww + in_w * in_w) - (odds * in_w) ** 2,
    ]
    return StudentTerms(*(np.where(right, at, of) for at, of in zip(terms, left, strict=True)))


def _left(x: Floats, w: float) -> Floats:
    """Return `StudentTerms` at -x for x >= 0, (5, n)."""
    terms = np.full((5, len(x)), np.nan)
    far = x > _CENTRE
    for chosen, evaluate in ((far, _of_tail), (x <= _CENTRE, _of_centre)):
        if np.any(chosen):
            terms[:, chosen] = evaluate(x[chosen], w)
    return terms


def _of_tail(x: Floats, w: float) -> Floats:
    r = 0.5 * _REACH * (1.0 + _TAIL_NODES)
    weight = 0.5 * _REACH * _TAIL_WEIGHTS * r * np.exp(-r * r)
    k = 2.0 * r * r
    f, f_z, f_zz = _exponential_parts(k * w)
    h, h_w, h_ww = k * f, k * k * f_z, k**3 * f_zz
    square = x * x
    # With x outside, nothing overflows at any x.
    inverse = 1.0 / (1.0 + h / square[:, None])
    root = np.sqrt(inverse)
    total = root @ weight
    in_w = -0.5 * ((root * inverse) @ (weight * h_w)) / square
    in_ww = (
        0.75 * ((root * inverse**2) @ (weight * h_w**2)) / square
        - 0.5 * ((root * inverse) @ (weight * h_ww))
    ) / square
    by_w = in_w / total
    by_ww = in_ww / total - by_w**2
    c = w * square
    q = 1.0 + c
    log_q, shape, in_c = _log_parts(c)
    value, slope, bend = log_constant(w)
    # (1 - w) / 2 times log(1 + w x^2) / w, and its derivatives in w.
    constant = value + np.log(2.0) - np.log(x) + np.log(total)
    log_tail = constant - 0.5 * (1.0 - w) * square * log_q
    ratio_log = -np.log(2.0) - np.log1p(c) + np.log(x) - np.log(total)
    own = 0.5 * square * square * shape + 0.5 * square / q
    own_w = 0.5 * square**3 * in_c - 0.5 * (square / q) ** 2
    ratio = np.exp(ratio_log)
    return np.array(
        [
            log_tail,
            ratio,
            slope + own + by_w,
            ratio * (-square / q - by_w),
            bend + own_w + by_ww,
        ]
    )


def _exponential_parts(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return f = (1 - exp(-z)) / z, f' and f''."""
    near = z < 1.0
    safe = np.where(near, 1.0, z)
    down = np.exp(-safe)
    f = -np.expm1(-safe) / safe
    f_z = (down - f) / safe
    f_zz = (-down - 2.0 * f_z) / safe
    f[near], f_z[near], f_zz[near] = _series(z[near], _EXPONENTIAL_TERMS)
    return f, f_z, f_zz


def _of_centre(x: Floats, w: float) -> Floats:
    points = 0.5 * x[:, None] * (1.0 + _NODES)
    weight = 0.5 * x[:, None] * _WEIGHTS
    value, slope, bend = log_density(points.ravel(), w)
    value, slope, bend = (each.reshape(points.shape) for each in (value, slope, bend))
    mass = weight * np.exp(value)
    cdf = 0.5 - mass.sum(axis=1)
    in_w = -(mass * slope).sum(axis=1) / cdf
    in_ww = -(mass * (bend + slope**2)).sum(axis=1) / cdf - in_w**2
    at, at_slope, _ = log_density(x, w)
    ratio = np.exp(at) / cdf
    return np.array([np.log(cdf), ratio, in_w, ratio * (at_slope - in_w), in_ww])


@dataclass(frozen=True, eq=False)
class StudentCurves:
    """`StudentTerms` at one w, by polynomials on a grid."""

    w: float
    coef: Floats
    """(degree + 1, 5, cells) from the highest power of the place in a cell, -1 to 1"""

    @classmethod
    def build(cls, w: float) -> StudentCurves:
        """Evaluate the functions at Chebyshev's nodes of every cell."""
        count = _DEGREE + 1
        nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        half = round(_LAST * _PER_UNIT)
        places = (np.arange(half)[:, None] + 0.5 * (1.0 + nodes)) / _PER_UNIT
        x = np.sinh(places.ravel())
        left = _left(x, w)
        ends = np.zeros(len(x), dtype=bool), np.ones(len(x), dtype=bool)
        below, above = (np.array(_mirrored(left, side)).reshape(5, half, count) for side in ends)
        # Cells from left to right; -x runs through the nodes of a cell backwards.
        values = np.concatenate([below[:, ::-1, ::-1], above], axis=1)
        inverse = np.linalg.inv(np.vander(nodes, count))
        return cls(w, np.ascontiguousarray(np.einsum("kn,fcn->kfc", inverse, values)))

    def __call__(self, x: Floats) -> StudentTerms:
        """Evaluate all terms at points (n,)."""
        with np.errstate(invalid="ignore"):
            place = np.arcsinh(x) * _PER_UNIT + _LAST * _PER_UNIT
        inside = (place >= 0.0) & (place < self.coef.shape[2])
        cell = np.where(inside, place, 0.0).astype(np.intp)
        at = 2.0 * (np.where(inside, place, 0.0) - cell) - 1.0
        values = self.coef[0].take(cell, axis=1)
        for coef in self.coef[1:]:
            values *= at
            values += coef.take(cell, axis=1)
        if not np.all(inside):
            known = ~inside & ~np.isnan(x)
            values[:, ~inside] = np.nan
            values[:, known] = np.array(student_terms(x[known], self.w))
        return StudentTerms(*values)


def student_sums(x: Floats, w: float) -> StudentTerms:
    """Return the terms of a block's rows: by the integrals if these cost less than the grid."""
    return student_terms(x, w) if len(x) < _FEW else student_curves(w)(x)


@lru_cache(maxsize=16)
def student_curves(w: float) -> StudentCurves:
    """Return the functions at one w; those of the last few are kept."""
    return StudentCurves.build(w)
