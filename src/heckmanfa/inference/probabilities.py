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

from functools import reduce
from typing import Any, Literal

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Array, Floats, explain_out_of_memory, like, namespace, on_host
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import ROWS_PRECISION, mixed, parts_of
from heckmanfa.inference.expectations import Effect, Estimates
from heckmanfa.inference.prediction import (
    numbers_by_block,
    prediction_index,
    read_rows,
    selection_index,
)
from heckmanfa.model.bivariate_normal import log_bivariate_cdf, log_cdf_and_slopes
from heckmanfa.model.normal import inverse_mills, log_cdf
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.results.reference import check_level, reference_of, tails
from heckmanfa.text.printable import quoted

_FAR = -1e4
"""the index below which a quotient of probabilities would lose its digits"""

ProbabilityKind = Literal["marginal", "selected", "unselected", "joint"]


def check_probability_interval(return_interval: str, conf_level: float) -> None:
    """Refuse an interval that a probability does not have, or an invalid confidence level."""
    if return_interval == "prediction":
        raise InputError(
            "return_interval='prediction' has no meaning for a class: a new outcome is one class "
            "or the other. Use 'confidence', the interval of its probability."
        )
    if return_interval != "confidence":
        raise InputError(
            f"return_interval must be 'confidence' or None; got {quoted(return_interval)}"
        )
    check_level(conf_level)


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
    if fit.probit is None:
        # Without a selection equation, every row is selected.
        kind = "marginal"
    both = kind != "marginal"
    with explain_out_of_memory():
        refuse_rows(X, f", kind={quoted(kind)}")
        table = read_rows(fit, X, prediction=True, selection=both, missing=missing)
        values = mixed(fit, lambda member: _probability(member, table, kind), linear=False)
    if return_interval is None:
        return values
    check_probability_interval(return_interval, conf_level)
    if table.tensors:
        table = read_rows(fit, on_host(X), prediction=True, selection=both, missing=missing)
    return values, like(_interval(fit, table, kind, conf_level), values)


def predict_log_probabilities(
    fit: Fit, X: Any, kind: str, missing: str = "error"
) -> tuple[Array, Array]:
    """Return the logarithms of both classes' probabilities, the negative class first.

    Both are exact: one minus a probability near one would have lost its digits.
    """
    if fit.probit is None:
        kind = "marginal"
    with explain_out_of_memory():
        refuse_rows(X, f", kind={quoted(kind)}")
        table = read_rows(fit, X, prediction=True, selection=kind != "marginal", missing=missing)
        negative, positive = (_mixed_logarithm(fit, table, kind, sign) for sign in (-1.0, 1.0))
    return negative, positive


def _mixed_logarithm(fit: Fit, table: FeatureTable, kind: str, sign: float) -> Array:
    """Return the logarithm of a class's probability, which an average averages itself."""
    if fit.average is None:
        return _log_probability(fit, table, kind, sign)
    # The largest is taken out, so that no probability underflows.
    parts = [part for part in parts_of(fit) if part.weight > 0.0]
    found = [_log_probability(part.fit, table, kind, sign) for part in parts]
    xp = namespace(found[0])
    highest = reduce(xp.maximum, found)
    pairs = zip(parts, found, strict=True)
    return highest + xp.log(sum(part.weight * xp.exp(own - highest) for part, own in pairs))


def _probability(fit: Fit, table: FeatureTable, kind: str) -> Array:
    logarithm = _log_probability(fit, table, kind)
    return namespace(logarithm).exp(logarithm)


def _log_probability(fit: Fit, table: FeatureTable, kind: str, sign: float = 1.0) -> Array:
    """Return the logarithm of a class's probability; the negative class has a sign of -1."""
    mean = sign * prediction_index(fit, table)
    if kind == "marginal":
        return log_cdf(mean)
    side = -1.0 if kind == "unselected" else 1.0
    index, rho = side * selection_index(fit, table), sign * side * fit.rho
    if kind == "joint":
        return log_bivariate_cdf(mean, index, rho)
    xp = namespace(mean)
    far = index < _FAR
    near = xp.where(far, 0.0 * mean, index)
    logarithm = log_bivariate_cdf(mean, near, rho) - log_cdf(near)
    # Rounding may leave a probability of one a little above.
    logarithm = xp.where(logarithm > 0, 0.0 * mean, logarithm)
    if not xp.any(far):
        return logarithm
    return xp.where(far, log_cdf(_far_point(mean, xp.where(far, index, _FAR), rho)), logarithm)


def _far_point(mean: Array, index: Array, rho: float) -> Array:
    """Phi^-1 of P(y = 1 | x, s = 1) where selection is almost impossible."""
    return (mean - rho * (index + 1.0 / index)) / ((1.0 - rho) * (1.0 + rho)) ** 0.5


def _interval(fit: Fit, table: FeatureTable, kind: str, conf_level: float) -> Floats:
    """Return confidence limits (n, 2); NaN if a feature or the covariance is not known."""
    estimates = Estimates.of(fit, prediction=True, selection=kind != "marginal")
    reference = reference_of(fit)
    quantile = reference.quantile(conf_level)
    parts = [] if fit.average is None else parts_of(fit, few=True)
    weights = np.array([part.interval_weight for part in parts])
    each = [estimates.again(part.fit) for part in parts]

    def of_one(own: Estimates, design: Floats) -> tuple[Floats, Floats]:
        effect = probit_effect(own, kind, design)
        return effect.values, np.sqrt(effect.variance(own.covariance))

    def of_block(block: tuple[slice, Floats]) -> tuple[slice, Floats]:
        span, design = block
        with np.errstate(invalid="ignore", over="ignore"):
            if parts:
                found = zip(*(of_one(own, design) for own in each), strict=True)
                values, errors = (np.array(part) for part in found)
                ends = mixture_quantiles(
                    weights, values, errors, tails(conf_level), reference.df, ROWS_PRECISION
                )
            else:
                values, errors = of_one(estimates, design)
                ends = values[:, None] + quantile * errors[:, None] * np.array([-1.0, 1.0])
            return span, special.ndtr(ends)

    return numbers_by_block(table, estimates.columns, of_block, 2)


def probit_effect(estimates: Estimates, kind: str, design: Floats) -> Effect:
    """Return Phi^-1 of a probability in rows of the design (n, 1 + k), with its gradient."""
    mean = design @ estimates.coef
    one, zero = np.ones_like(mean), np.zeros_like(mean)
    if kind == "marginal":
        return Effect(mean, ((one, design),), ((zero, design),), zero)
    side = -1.0 if kind == "unselected" else 1.0
    index, rho = side * (design @ estimates.selection_coef), side * estimates.dependence
    far = (index < _FAR) & (kind != "joint")
    near = np.where(far, 0.0, index)
    scale, ratio, sign = zero, zero, one
    if kind != "joint":
        scale, ratio = log_cdf(near), inverse_mills(near)
        # The negative class has the probability of -v and -rho.
        likely = log_bivariate_cdf(mean, near, rho) - scale > np.log(0.5)
        sign = np.where(likely, -1.0, 1.0)
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
    return Effect(value, ((slopes[0], design),), ((side * slopes[1], design),), side * by_rho)
