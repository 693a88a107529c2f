"""Probabilities of a binary outcome for rows of X, with confidence intervals.

With v = x'b and u = z'gamma, P(y = 1 | x) is Phi(v), given selection Phi2(v, u; rho) / Phi(u),
given its absence Phi2(v, -u; -rho) / Phi(-u), and together with selection Phi2(v, u; rho).
Quotients are differences of logarithms, which do not underflow where selection is very unlikely.
Where u is beyond -1e4, the logarithms of both are so large that their difference has no digits
left. There, the error of the selection equation given selection is -u - 1 / u to 1e-8, its mean,
and P(y = 1 | x, s = 1) is Phi((v - rho (u + 1 / u)) / sqrt(1 - rho^2)).

An interval is by the delta method on the probit scale, Phi^-1 of the probability, so its ends are
probabilities. Of Phi(v) it is the interval of x'b itself. The smaller of P and 1 - P is used, in
logarithms, so the digits of a probability near one are kept as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, Literal

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Array, Floats, explain_out_of_memory, like, namespace, on_host
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import RowLimits, group_fits, mixed
from heckmanfa.inference.expectations import Estimates
from heckmanfa.inference.prediction import (
    check_interval,
    numbers_by_block,
    prediction_index,
    read_rows,
    selection_index,
)
from heckmanfa.model.bivariate_normal import log_bivariate_cdf, log_cdf_and_slopes
from heckmanfa.model.expectation_parts import Parts
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.text.printable import quoted

_FAR = -1e4
"""the index below which a quotient of probabilities would lose its digits"""

ProbabilityKind = Literal["marginal", "selected", "unselected", "joint"]


def predict_probability(
    fit: Fit,
    X: Any,
    kind: str,
    missing: str = "error",
    return_interval: str | None = None,
    conf_level: float = 0.95,
) -> Any:
    """Return the probability of the positive class of each row; see `HeckmanProbit.predict_proba`.

    ``kind`` is one of `ProbabilityKind`; "joint" is P(y = 1, s = 1 | x). With
    ``return_interval="confidence"``, return (n,) probabilities and their (n, 2) limits.
    """
    if return_interval is not None:
        check_interval(return_interval, conf_level, "class")
        _, values, limits = predict_with_limits(fit, X, kind, missing, conf_level)
        return values, limits
    with explain_out_of_memory():
        kind, table = _read(fit, X, kind, missing)

        def probability(member: Fit) -> Array:
            positive = _logarithms(member, table, kind)[1]
            return namespace(positive).exp(positive)

        return mixed(fit, probability, linear=False)


def predict_log_probabilities(
    fit: Fit, X: Any, kind: str, missing: str = "error"
) -> tuple[Array, Array]:
    """Return the logarithms of both classes' probabilities, the negative class first.

    Both are exact: one minus a probability near one would have lost its digits.
    """
    with explain_out_of_memory():
        kind, table = _read(fit, X, kind, missing)
        if not fit.way.is_average:
            return _logarithms(fit, table, kind)
        groups = [group for group in group_fits(fit) if group.weight > 0.0]
        each = [_logarithms(group.fit, table, kind) for group in groups]
        negative, positive = zip(*each, strict=True)
        weights = [group.weight for group in groups]
        return _log_mean(weights, negative), _log_mean(weights, positive)


def predict_with_limits(
    fit: Fit, X: Any, kind: str, missing: str, conf_level: float
) -> tuple[Array, Array, Array]:
    """Return the probabilities of both classes, (n,) each, and limits (n, 2) of the second."""
    with explain_out_of_memory():
        kind, table = _read(fit, X, kind, missing)
        known = None if fit.way.is_average else _logarithms(fit, table, kind)
        beside = prediction_index(fit, table)
        if table.tensors:
            kind, table = _read(fit, on_host(X), kind, missing)
        numbers = like(_with_limits(fit, table, kind, conf_level), beside)
        negative, positive = numbers[:, 0], numbers[:, 1]
        if known is not None:
            # To the bit as they are without limits.
            negative, positive = (namespace(own).exp(own) for own in known)
    return negative, positive, numbers[:, 2:]


def _read(fit: Fit, X: Any, kind: str, missing: str) -> tuple[str, FeatureTable]:
    """Read X for a kind of probability; also return the kind that this fit has for it."""
    if fit.probit is None:
        # Without a selection equation, every row is selected.
        kind = "marginal"
    refuse_rows(X, f", kind={quoted(kind)}")
    both = kind != "marginal"
    return kind, read_rows(fit, X, prediction=True, selection=both, missing=missing)


def _log_mean(weights: Sequence[float], logarithms: Sequence[Array]) -> Array:
    """Return the logarithm of a weighted mean of probabilities, given their logarithms."""
    xp = namespace(logarithms[0])
    # The largest is taken out, so no probability underflows.
    highest = reduce(xp.maximum, logarithms)
    pairs = zip(weights, logarithms, strict=True)
    return highest + xp.log(sum(weight * xp.exp(own - highest) for weight, own in pairs))


def _logarithms(fit: Fit, table: FeatureTable, kind: str) -> tuple[Array, Array]:
    """Return the logarithms of both classes' probabilities, the negative class first.

    Of kind "joint", that of a row which is not both selected and positive.
    """
    mean = prediction_index(fit, table)
    if kind == "marginal":
        return log_cdf(-mean), log_cdf(mean)
    xp = namespace(mean)
    side = -1.0 if kind == "unselected" else 1.0
    index, rho = side * selection_index(fit, table), side * fit.rho
    if kind == "joint":
        logarithm = log_bivariate_cdf(mean, index, rho)
        with np.errstate(divide="ignore"):
            return xp.log1p(-xp.exp(logarithm)), logarithm
    far = index < _FAR
    near = xp.where(far, 0.0 * mean, index)
    likely = _is_likely(mean, inverse_mills(near), rho)
    sign = 1.0 - 2.0 * xp.astype(likely, mean.dtype)
    smaller = log_bivariate_cdf(sign * mean, near, rho, sign) - log_cdf(near)
    larger = xp.log1p(-xp.exp(smaller))
    if xp.any(far):
        point = sign * _far_point(mean, xp.where(far, index, _FAR), rho)
        smaller = xp.where(far, log_cdf(point), smaller)
        larger = xp.where(far, log_cdf(-point), larger)
    return xp.where(likely, smaller, larger), xp.where(likely, larger, smaller)


def _is_likely(mean: Array, ratio: Array, rho: float) -> Array:
    """Whether the positive class is the more likely one given selection, or nearly so.

    The density of a latent outcome given selection is log-concave, so it is above its mean,
    v + rho lambda(u), with a probability between 1/e and 1 - 1/e. The class that is not likely has
    at most the latter.
    """
    return mean + rho * ratio > 0.0


def _far_point(mean: Array, index: Array, rho: float) -> Array:
    """Phi^-1 of P(y = 1 | x, s = 1) where selection is almost impossible."""
    return (mean - rho * (index + 1.0 / index)) / ((1.0 - rho) * (1.0 + rho)) ** 0.5


def _with_limits(fit: Fit, table: FeatureTable, kind: str, conf_level: float) -> Floats:
    """Return the probabilities of both classes and confidence limits of the second, (n, 4).

    NaN if a feature is not known; limits also if the covariance is not.
    """
    estimates = Estimates.of(fit, prediction=True, selection=kind != "marginal")
    limits_of = RowLimits(fit, estimates, conf_level)

    def of_block(block: tuple[slice, Floats]) -> tuple[slice, Floats]:
        span, design = block
        with np.errstate(invalid="ignore", over="ignore"):
            values, _, ends = limits_of(partial(probit_points, kind), design)
            both = [limits_of.weights @ special.ndtr(sign * values) for sign in (-1.0, 1.0)]
            return span, np.column_stack([*both, special.ndtr(ends)])

    return numbers_by_block(table, estimates.columns, of_block, 4)


def probit_points(
    kind: str, mean: Floats, index: Floats, rho: float | Floats, sigma: float | Floats = 1.0
) -> Parts:
    """Return Phi^-1 of a probability and its derivatives; of groups of an average, (G, b) each."""
    if np.ndim(rho) == 0:
        return _probit_points(kind, mean, index, float(rho))
    groups = zip(mean, np.broadcast_to(index, mean.shape), np.ravel(rho), strict=True)
    each = [_probit_points(kind, v, u, float(own)) for v, u, own in groups]
    numbers = [(own.value, own.mean, own.index, own.dependence) for own in each]
    value, by_mean, by_index, by_rho = (
        np.array(derivative) for derivative in zip(*numbers, strict=True)
    )
    return Parts.first_order(value, by_mean, by_index, by_rho)


def _probit_points(kind: str, mean: Floats, index: Floats, rho: float) -> Parts:
    """Return Phi^-1 of a probability in rows, with its derivatives."""
    ones, zero = np.ones_like(mean), np.zeros_like(mean)
    if kind == "marginal":
        return Parts.first_order(mean, ones, zero, zero)
    side = -1.0 if kind == "unselected" else 1.0
    index, rho = side * index, side * rho
    far = (index < _FAR) & (kind != "joint")
    near = np.where(far, 0.0, index)
    scale, ratio, sign = zero, zero, ones
    if kind != "joint":
        scale, ratio = log_cdf(near), inverse_mills(near)
        # The negative class has the probability of -v and -rho.
        sign = np.where(_is_likely(mean, ratio, rho), -1.0, 1.0)
    logarithm, by_mean, by_index, by_atanh = log_cdf_and_slopes(
        sign * mean, near, float(np.arctanh(rho)), sign
    )
    point = special.ndtri_exp(np.minimum(logarithm - scale, 0.0))
    # The derivative of Phi^-1(P) is that of log P, divided by lambda at the point.
    factor = sign / inverse_mills(point)
    square = (1.0 - rho) * (1.0 + rho)
    value, slopes = sign * point, (factor * sign * by_mean, factor * (by_index - ratio))
    by_rho = factor * by_atanh / square
    if far.any():
        u = np.where(far, index, _FAR)
        there, root = _far_point(mean, u, rho), square**0.5
        value = np.where(far, there, value)
        slopes = (np.where(far, 1.0 / root, slopes[0]), np.where(far, -rho / root, slopes[1]))
        by_rho = np.where(far, rho * there / square - (u + 1.0 / u) / root, by_rho)
    return Parts.first_order(value, slopes[0], side * slopes[1], side * by_rho)
