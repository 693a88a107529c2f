"""Expectations as functions of both indexes, with their derivatives in closed form.

With v = x'b, u = z'gamma, the expectation of a linear outcome is a v + h(u, b_H). a is 0 for the
probability of selection and 1 otherwise; h is 0, b_H lambda(u), -b_H lambda(-u) or Phi(u). With an
outcome of 0 in rows that are not selected, it is Phi(u) v + b_H phi(u).

Of a binary outcome it is a probability: Phi(v), Phi2(v, u; rho) / Phi(u) among the selected rows,
and the same of (v, -u, -rho) among the others. With r = sqrt(1 - rho^2), P = Phi2 / Phi(u) and
D = phi2(v, u; rho) / Phi(u),

    P_v = phi(v) Phi((u - rho v) / r) / Phi(u),    P_u = lambda(u) (Phi((v - rho u) / r) - P),
    P_rho = D,   P_vv = -v P_v - rho D,   P_vu = D - lambda P_v,
    P_uu = -(2 lambda + u) P_u - rho D,
    P_v,rho = -(v - rho u) D / r^2,   P_u,rho = -(u - rho v) D / r^2 - lambda D.

Selected and positive has the probability Phi2(v, u; rho). Its derivatives are these with 1 in place
of Phi(u) and 0 in place of lambda, except that P_u is phi(u) Phi((v - rho u) / r).

Quotients are differences of logarithms, so nothing underflows where selection is unlikely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.model.bivariate_normal import log_bivariate_cdf
from heckmanfa.model.normal import inverse_mills, log_cdf, mills, mills_curve
from heckmanfa.model.series import series_basis

_SQRT_2PI = (2.0 * np.pi) ** 0.5
_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class Bend:
    """Second derivatives in v of an expectation that is not linear in it, by row."""

    mean_mean: Floats
    mean_index: Floats
    mean_dependence: Floats
    mean_sigma: Floats | None = None


@dataclass(frozen=True)
class Parts:
    """An expectation and its derivatives in v, u and b_H, or rho of a binary outcome, by row."""

    value: Floats
    mean: Floats
    """derivative in v"""
    index: Floats
    """derivative in u"""
    dependence: Floats
    """derivative in b_H or rho"""
    index_index: Floats
    index_dependence: Floats
    bend: Bend | None = None
    """None if the expectation is linear in v"""
    sigma: Floats | None = None
    """derivative in sigma; None unless the outcome is fitted on its logarithm"""
    index_sigma: Floats | None = None

    @classmethod
    def first_order(cls, value: Floats, mean: Floats, index: Floats, dependence: Floats) -> Parts:
        """Return a function of which only first derivatives are known."""
        unknown = np.full_like(value, np.nan)
        return cls(value, mean, index, dependence, unknown, unknown)


def selection_parts(index: Floats) -> Parts:
    """Evaluate P(s = 1 | x) = Phi(u)."""
    zero, density = np.zeros_like(index), _density(index)
    return Parts(np.exp(log_cdf(index)), zero, density, zero, -index * density, zero)


def linear_parts(kind: str, mean: Floats, index: Floats, imr_coef: float | Floats) -> Parts:
    """Evaluate an expectation of a linear outcome; the kind is one of `expectations.TARGETS`.

    Arguments broadcast.
    """
    if kind == "selection":
        return selection_parts(index)
    zero, ones = np.zeros_like(index), np.ones_like(mean)
    if kind == "marginal":
        return Parts(mean, ones, zero, zero, zero, zero)
    if kind == "expected":
        return _expected_parts(mean, index, imr_coef)
    side = 1.0 if kind == "selected" else -1.0
    ratio, slope = mills(side * index)
    return Parts(
        mean + side * imr_coef * ratio,
        ones,
        -imr_coef * slope,
        side * ratio,
        -side * imr_coef * mills_curve(side * index),
        -slope,
    )


def series_parts(kind: str, mean: Floats, index: Floats, coef: Floats) -> Parts:
    """Evaluate an expectation of an outcome with a series g(u) = s0 + sum s_l p_l(u).

    g is the mean error of selected rows; that of the others is not known. ``coef`` are s0 to sL,
    and derivatives in them have a column each, (n, 1 + L). ``mean`` is without an intercept if
    that is not identified; s0 then has it.
    """
    none = _no_terms(index, coef)
    if kind == "selection":
        return replace(selection_parts(index), dependence=none, index_dependence=none)
    zero, ones = np.zeros_like(index), np.ones_like(mean)
    if kind == "marginal":
        return Parts(mean, ones, zero, none, zero, none)
    values, slopes, curves = (
        np.insert(terms, 0, first, axis=1)
        for terms, first in zip(series_basis(index, len(coef) - 1, 2), (1.0, 0.0, 0.0), strict=True)
    )
    expected, slope, curve = mean + values @ coef, slopes @ coef, curves @ coef
    if kind == "selected":
        return Parts(expected, ones, slope, values, curve, slopes)
    chance, density = np.exp(log_cdf(index)), _density(index)
    return Parts(
        value=chance * expected,
        mean=chance,
        index=density * expected + chance * slope,
        dependence=chance[:, None] * values,
        index_index=density * (2.0 * slope - index * expected) + chance * curve,
        index_dependence=density[:, None] * values + chance[:, None] * slopes,
        bend=Bend(zero, density, none),
    )


def _no_terms(index: Floats, coef: Floats) -> Floats:
    return np.zeros((len(index), len(coef)))


def _expected_parts(mean: Floats, index: Floats, imr_coef: float | Floats) -> Parts:
    """Evaluate P(s = 1 | x) E[y | x, s = 1] = Phi(u) v + b_H phi(u) of a linear outcome."""
    zero, chance, density = np.zeros_like(index), np.exp(log_cdf(index)), _density(index)
    return Parts(
        value=chance * mean + imr_coef * density,
        mean=chance,
        index=density * (mean - imr_coef * index),
        dependence=density,
        index_index=-density * (index * (mean - imr_coef * index) + imr_coef),
        index_dependence=-index * density,
        bend=Bend(zero, density, zero),
    )


def probability_parts(kind: str, mean: Floats, index: Floats, rho: float) -> Parts:
    """Evaluate a probability of a binary outcome; the kind is one of `expectations.TARGETS`."""
    if kind == "selection":
        return selection_parts(index)
    zero = np.zeros_like(mean)
    if kind == "marginal":
        density = _density(mean)
        bend = Bend(-mean * density, zero, zero)
        return Parts(np.exp(log_cdf(mean)), density, zero, zero, zero, zero, bend)
    if kind == "expected":
        return _joint_parts(mean, index, rho)
    side = 1.0 if kind == "selected" else -1.0
    u, rho = side * index, side * rho
    square = (1.0 - rho) * (1.0 + rho)
    r, scale = np.sqrt(square), log_cdf(u)
    ratio = inverse_mills(u)
    value = np.exp(log_bivariate_cdf(mean, u, rho) - scale)
    along, across = (u - rho * mean) / r, (mean - rho * u) / r
    log_density = -0.5 * mean * mean - _HALF_LOG_2PI - scale
    by_mean = np.exp(log_density + log_cdf(along))
    by_index = ratio * (np.exp(log_cdf(across)) - value)
    joint = np.exp(log_density - 0.5 * along * along - _HALF_LOG_2PI) / r
    # In u and rho themselves, both of which change sign for the rows that are not selected.
    return Parts(
        value=value,
        mean=by_mean,
        index=side * by_index,
        dependence=side * joint,
        index_index=-(2.0 * ratio + u) * by_index - rho * joint,
        index_dependence=-(along / r + ratio) * joint,
        bend=Bend(
            mean_mean=-mean * by_mean - rho * joint,
            mean_index=side * (joint - ratio * by_mean),
            mean_dependence=-side * across / r * joint,
        ),
    )


def _joint_parts(mean: Floats, index: Floats, rho: float) -> Parts:
    """Evaluate P(y = 1, s = 1 | x) = Phi2(v, u; rho) of a binary outcome."""
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    along, across = (index - rho * mean) / r, (mean - rho * index) / r
    by_mean = _density(mean) * np.exp(log_cdf(along))
    by_index = _density(index) * np.exp(log_cdf(across))
    joint = _density(mean) * _density(along) / r
    return Parts(
        value=np.exp(log_bivariate_cdf(mean, index, rho)),
        mean=by_mean,
        index=by_index,
        dependence=joint,
        index_index=-index * by_index - rho * joint,
        index_dependence=-along / r * joint,
        bend=Bend(
            mean_mean=-mean * by_mean - rho * joint,
            mean_index=joint,
            mean_dependence=-across / r * joint,
        ),
    )


def _density(points: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * points * points) / _SQRT_2PI)
