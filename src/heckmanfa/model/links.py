"""Links: what the error of the selection equation makes of the selection index.

A row is selected if u + v > 0, with the index u = z'gamma and an error v. A `Link` knows the chance
of that, Phi(u) of a normal error, and the mean of v given selection, the inverse Mills ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special, stats

from heckmanfa.data.arrays import Array, Floats, as_floats, host, like, namespace
from heckmanfa.model.expectation_parts import Bend, Parts, selection_parts
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.model.student import StudentTerms, log_density, slope_of_ratio, student_curves

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


class Link(Protocol):
    """What the error of the selection equation makes of the selection index."""

    def chance(self, index: Array) -> Array:
        """Return P(v > -u)."""

    def mean_error(self, index: Array) -> Array:
        """Return E[v | v > -u], lambda: NaN where it does not exist."""

    def partial_mean(self, index: Array) -> Array:
        """Return the chance times that mean."""

    def quantiles(self, probabilities: Floats) -> Floats:
        """Return quantiles of the error."""

    def parts(self, index: Floats) -> Parts:
        """Return the chance, with its derivatives."""

    def index_parts(self, index: Floats) -> Parts:
        """Return the index whose distance from its estimate is that of its chance."""


@dataclass(frozen=True)
class NormalLink:
    """The probit."""

    def chance(self, index: Array) -> Array:
        """Return Phi(u)."""
        return namespace(index).exp(log_cdf(index))

    def mean_error(self, index: Array) -> Array:
        """Return lambda(u)."""
        return inverse_mills(index)

    def partial_mean(self, index: Array) -> Array:
        """Return phi(u)."""
        return namespace(index).exp(-0.5 * index * index - _LOG_SQRT_2PI)

    def quantiles(self, probabilities: Floats) -> Floats:
        """Return normal quantiles."""
        return np.asarray(special.ndtri(probabilities))

    def parts(self, index: Floats) -> Parts:
        """Return Phi(u), with its derivatives."""
        return selection_parts(index)

    def index_parts(self, index: Floats) -> Parts:
        """Return u itself."""
        zero = np.zeros_like(index)
        return Parts.first_order(index, zero, np.ones_like(index), zero)


@dataclass(frozen=True)
class StudentLink:
    """The robit: a t error with some degrees of freedom, which may be infinite."""

    df: float

    @property
    def w(self) -> float:
        """The inverse of the degrees of freedom."""
        return 1.0 / self.df

    def chance(self, index: Array) -> Array:
        """Return T(u)."""
        points = as_floats(index)
        return like(np.exp(_terms(host(points), self.w).log_cdf), points)

    def mean_error(self, index: Array) -> Array:
        """Return (nu + u^2) / (nu - 1) t(u) / T(u); NaN for nu <= 1, where there is no mean."""
        points = as_floats(index)
        flat = host(points)
        return like(_of_mean(flat, self.w) * _terms(flat, self.w).ratio, points)

    def partial_mean(self, index: Array) -> Array:
        """Return (nu + u^2) / (nu - 1) t(u)."""
        points = as_floats(index)
        flat = host(points)
        return like(_of_mean(flat, self.w) * np.exp(log_density(flat, self.w)[0]), points)

    def quantiles(self, probabilities: Floats) -> Floats:
        """Return quantiles of t."""
        return np.asarray(stats.t.ppf(probabilities, self.df))

    def parts(self, index: Floats) -> Parts:
        """Return T(u), with its derivatives; "sigma" is that in nu."""
        return student_parts("selection", index, index, 0.0, self.df)

    def index_parts(self, index: Floats) -> Parts:
        """Return u; its derivative in nu is that of the quantile of the same chance."""
        zero, terms = np.zeros_like(index), _terms(index, self.w)
        return Parts(
            *(index, zero, np.ones_like(index), zero, zero, zero),
            sigma=-(self.w**2) * terms.in_w / terms.ratio,
        )


def _terms(x: Floats, w: float) -> StudentTerms:
    """Evaluate `StudentTerms` at an array of any shape."""
    terms = student_curves(w)(np.ravel(x))
    return StudentTerms(*(term.reshape(np.shape(x)) for term in terms))


def _of_mean(index: Floats, w: float) -> Floats:
    """Return (nu + u^2) / (nu - 1), NaN where there is no mean."""
    if w >= 1.0:
        return np.full_like(index, np.nan)
    return np.asarray((1.0 + w * index * index) / (1.0 - w))


def normal_link(errors: object) -> Link:
    """Return the link of normal errors."""
    return NormalLink()


def student_parts(kind: str, mean: Floats, index: Floats, imr_coef: float, df: float) -> Parts:
    """Evaluate an expectation of a linear outcome with t errors, as `linear_parts` does.

    The derivatives of `Parts` in sigma are those in the degrees of freedom. Given selection there
    is no expectation for df <= 1: NaN. That of kind "marginal" is then a median.
    """
    w = 1.0 / df
    # From w to nu.
    slope = -w * w
    zero, ones = np.zeros_like(index), np.ones_like(mean)
    if kind == "marginal":
        return Parts(mean, ones, zero, zero, zero, zero, sigma=zero, index_sigma=zero)
    if kind in ("selection", "expected"):
        terms = _terms(index, w)
        log_t, in_w, _ = log_density(index, w)
        chance, density = np.exp(terms.log_cdf), np.exp(log_t)
        bend = -(1.0 + w) * index / (1.0 + w * index * index) * density
        chance_df, density_df = slope * chance * terms.in_w, slope * density * in_w
        if kind == "selection":
            return Parts(
                *(chance, zero, density, zero, bend, zero),
                sigma=chance_df,
                index_sigma=density_df,
            )
        of_mean = _of_mean(index, w)
        partial = of_mean * density
        partial_w = partial * (in_w + _log_mean_in_w(index, w))
        # The partial mean's derivative in u is -u t(u).
        return Parts(
            value=chance * mean + imr_coef * partial,
            mean=chance,
            index=density * (mean - imr_coef * index),
            dependence=partial,
            index_index=bend * (mean - imr_coef * index) - imr_coef * density,
            index_dependence=-index * density,
            bend=Bend(zero, density, zero, chance_df),
            sigma=chance_df * mean + imr_coef * slope * partial_w,
            index_sigma=density_df * (mean - imr_coef * index),
        )
    side = 1.0 if kind == "selected" else -1.0
    u = side * index
    terms = _terms(u, w)
    ratio, ratio_u = terms.ratio, slope_of_ratio(u, terms.ratio, w)
    value = _of_mean(u, w) * ratio
    # The mean's derivative in u is minus delta, as of a normal error.
    delta = ratio * (value + u)
    value_w = _of_mean(u, w) * terms.ratio_in_w + value * _log_mean_in_w(u, w)
    delta_u = ratio_u * (value + u) + ratio * (1.0 - delta)
    delta_w = terms.ratio_in_w * (value + u) + ratio * value_w
    return Parts(
        mean + side * imr_coef * value,
        ones,
        -imr_coef * delta,
        side * value,
        -side * imr_coef * delta_u,
        -delta,
        sigma=side * imr_coef * slope * value_w,
        index_sigma=-imr_coef * slope * delta_w,
    )


def _log_mean_in_w(index: Floats, w: float) -> Floats:
    """Return the derivative in w of log (nu + u^2) / (nu - 1)."""
    if w >= 1.0:
        return np.full_like(index, np.nan)
    square = index * index
    return np.asarray(square / (1.0 + w * square) + 1.0 / (1.0 - w))
