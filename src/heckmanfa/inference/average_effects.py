"""Expectations and effects of an average, with the quantiles of its mixture as intervals.

Two-step fits share the selection equation. So an expectation of assignment S is linear in its
coefficients and beta_H, and its derivative with respect to the selection coefficients is beta_H
times one that all assignments share. If the probability of selection multiplies the outcome, that
derivative is linear in the coefficients as well. Refits by maximum likelihood each have a selection
equation of their own, and are evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from heckmanfa.data.arrays import Array, Floats, host, like
from heckmanfa.data.columns.features import FeatureTable, same
from heckmanfa.data.outcome_scale import OutcomeTransform
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.fit import Fit
from heckmanfa.inference.average_fit import with_refit
from heckmanfa.inference.expectations import Estimates, design_blocks, level_effect
from heckmanfa.inference.log_means import own_scale_mean
from heckmanfa.model.mixture import Mixture
from heckmanfa.model.normal import mills
from heckmanfa.model.quantiles import mixture_quantiles, total_covariance
from heckmanfa.results.average_tables import few_of, fewest_of, mixture_of, outcome_of
from heckmanfa.results.reference import reference_of, tails

# The least share of its variance that selection can leave an outcome.
_LEAST = 0.01
# Of the ends of rows' intervals, in standard errors; more digits would cost time in many rows.
_PRECISION = 1e-7
# Rows at a time, with a mean for every assignment.
_ROWS = 2**10

Functions = Callable[[Estimates], tuple[Floats, Floats]]
"""returns values (q,) and gradients (q, 2 (1 + k) + 1) of q functions, at some estimates"""


def members_of(fit: Fit, *, covariances: bool = True) -> list[tuple[float, Fit]]:
    """Return the refits behind an average by maximum likelihood, with their weights.

    For two-step fits the list is empty: predictions are linear in what they average. Without
    ``covariances``, each refit has the covariance of the average, for those that read none.
    """
    refits = None if fit.average is None else fit.average.refits
    if refits is None or fit.probit is None:
        return []
    support = np.isin(np.arange(fit.n_features), fit.equation)
    spread = refits.check_covariance() if covariances else [fit.covariance] * len(refits.weight)
    return [
        (float(weight), replace(with_refit(fit, *refit), average=None, support=support))
        for weight, *refit in zip(refits.weight, refits.estimates, spread, strict=True)
    ]


def mixed(fit: Fit, function: Callable[[Fit], Array]) -> Array:
    """Average a function of a fit over the refits of an average; of any other fit, return it."""
    members = members_of(fit, covariances=False)
    if not members:
        return function(fit)
    (weight, first), *others = members
    total = weight * function(first)
    for weight, member in others:
        total = total + weight * function(member)
    return total


def average_means(
    fit: Fit, table: FeatureTable, kind: str, index: Array | None, transform: OutcomeTransform
) -> Array:
    """Average the means of two-step fits on the outcome's own scale, where they are not linear.

    ``index`` is z'gamma of each row, which the assignments share; None if it is not needed.
    """
    mixture, values = few_of(fit), same(table, 0.0)
    with one_blas_thread():
        for span, block in design_blocks(table, mixture.scores.columns, _ROWS):
            means = block @ mixture.coef[:, :-1].T
            near = None if index is None else host(index[span])[:, None]
            found = own_scale_mean(transform, kind, means, near, mixture.imr_coef, mixture.sigma)
            values[span] = like(found @ mixture.weights, values)
    return values


def is_averaged(fit: Fit, estimates: Estimates) -> bool:
    """Whether functions of these estimates differ between the assignments of an average."""
    if fit.average is None:
        return False
    return estimates.prediction or fit.average.refits is not None


def each_of(fit: Fit, estimates: Estimates) -> Iterator[tuple[float, Estimates]]:
    """Yield the weight and the estimates of assignments, for functions that are not linear in them.

    They are the refits of maximum likelihood, or two-step fits that represent all.
    """
    members = members_of(fit)
    if members:
        yield from ((weight, estimates.again(member)) for weight, member in members)
        return
    assert fit.probit is not None
    mixture, k = fewest_of(fit), len(estimates.coef)
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    predicting = [0, *(place[column] for column in mixture.scores.columns)]
    n = len(predicting)
    # Positions in these estimates, and in the covariance of an assignment.
    here, there = [*predicting, len(estimates.covariance) - 1], [*range(n), -1]
    if estimates.selection:
        here += [2 * k, k, *(k + place[column] for column in fit.probit.features)]
        there += range(n, n + 2 + len(fit.probit.features))
    for i, weight in enumerate(mixture.weights):
        coef, covariance = np.zeros(k), np.zeros_like(estimates.covariance)
        coef[predicting] = mixture.coef[i, :-1]
        covariance[np.ix_(here, here)] = mixture.with_sigma(i)[np.ix_(there, there)]
        imr_coef = float(mixture.imr_coef[i]) if estimates.selection else 0.0
        own = replace(
            estimates,
            coef=coef,
            dependence=imr_coef,
            covariance=covariance,
            sigma=float(mixture.sigma[i]),
        )
        yield float(weight), own


def average_functions(
    fit: Fit,
    estimates: Estimates,
    functions: Functions,
    apart: Mask,
    conf_level: float,
    *,
    multiplied: bool = False,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return averages (q,), standard errors (q,), limits (q, 2) and the covariance (q, q).

    ``functions`` are q linear functions of the coefficients and beta_H, except those marked as
    ``apart``, (q,), which depend on the selection equation alone. ``multiplied`` says whether the
    probability of selection multiplies some of them.
    """
    if outcome_of(fit).refits is not None or estimates.transform is not None:
        return _one_by_one(fit, estimates, functions, conf_level)
    mixture = mixture_of(fit)
    # With beta_H = 1, the derivative with respect to the selection coefficients is what each
    # assignment's beta_H multiplies.
    value, gradient = functions(replace(estimates, dependence=1.0))
    prediction, by_selection = _in_order(fit, estimates, gradient)
    own = np.where(apart[:, None], by_selection, 0.0)
    if multiplied:
        by_coef = np.where(apart[:, None, None], 0.0, _by_coef(fit, estimates, functions))
        values, errors = mixture.bilinear(prediction, own, by_coef)
        along = by_coef @ [fit.intercept, *fit.coef[fit.equation], fit.imr_coef]
    else:
        by_imr = np.where(apart[:, None], 0.0, by_selection)
        values, errors = mixture.linear(prediction, own, by_imr)
        along = fit.imr_coef * by_imr
    values = values + np.where(apart, value, 0.0)
    limits = mixture_quantiles(
        mixture.weights, values, errors, tails(conf_level), reference_of(fit).df
    )
    average = prediction @ [fit.intercept, *fit.coef[fit.equation], fit.imr_coef]
    mean = mixture.weights @ values
    spread = mixture.weights @ (errors**2 + (values - mean) ** 2)
    whole = np.column_stack([prediction, own + along])
    covariance = whole @ mixture.total_covariance()[1] @ whole.T
    return np.where(apart, value, average), np.sqrt(spread), limits, covariance


def _one_by_one(
    fit: Fit, estimates: Estimates, functions: Functions, conf_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Do the same with assignments that are evaluated one by one, each with its own estimates."""
    weights, values, covariances = [], [], []
    for share, own in each_of(fit, estimates):
        value, gradient = functions(own)
        weights.append(share)
        values.append(value)
        covariances.append(gradient @ own.covariance @ gradient.T)
    weight, centres, within = np.array(weights), np.array(values), np.array(covariances)
    errors = np.sqrt(np.maximum(np.diagonal(within, axis1=1, axis2=2), 0.0))
    limits = mixture_quantiles(weight, centres, errors, tails(conf_level), reference_of(fit).df)
    covariance = total_covariance(weight, centres, within)
    return weight @ centres, np.sqrt(np.diag(covariance)), limits, covariance


def _by_coef(fit: Fit, estimates: Estimates, functions: Functions) -> Floats:
    """Return what [intercept, candidates, beta_H] multiply in the gradients of q functions.

    These gradients, in the 1 + p coefficients of the selection equation, are linear in the others;
    the result is (q, 1 + p, k + 2).
    """
    k = len(estimates.coef)
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    slopes = []
    for unit in np.eye(k + 1)[[0, *(place[column] for column in fit.equation), k]]:
        _, gradient = functions(replace(estimates, coef=unit[:k], dependence=float(unit[k])))
        slopes.append(_in_order(fit, estimates, gradient)[1])
    return np.stack(slopes, axis=2)


def _in_order(fit: Fit, estimates: Estimates, gradient: Floats) -> tuple[Floats, Floats]:
    """Split gradients as a `Mixture` has its terms: [intercept, candidates, beta_H], the probit."""
    assert fit.probit is not None
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    k = 1 + len(estimates.columns)
    of_prediction = [0, *(place[column] for column in fit.equation), 2 * k]
    prediction = gradient[:, of_prediction]
    if not estimates.selection:
        return prediction, np.zeros((len(gradient), 1 + len(fit.probit.features)))
    return prediction, gradient[:, [k, *(k + place[column] for column in fit.probit.features)]]


def average_interval(
    fit: Fit,
    estimates: Estimates,
    kind: str,
    design: Floats,
    conf_level: float,
    wider: float | None,
) -> Floats:
    """Return limits (b, 2) for rows of a design: of expectations, or of new outcomes.

    A new outcome is normal in each assignment, with the variance that selection leaves it.
    ``wider`` scales the standard error of its expectation; None asks for expectations.
    """
    if estimates.transform is not None or outcome_of(fit).refits is not None:
        found = [(weight, *_of_one(own, kind, design)) for weight, own in each_of(fit, estimates)]
        weights, values, errors, spread = (np.array(part) for part in zip(*found, strict=True))
    else:
        mixture = few_of(fit)
        weights = mixture.weights
        values, errors = _of_mixture(fit, mixture, estimates, kind, design)
        index = design @ estimates.selection_coef
        spread = _spread(kind, mixture.sigma[:, None], mixture.imr_coef[:, None], index)
    ends = tails(conf_level)
    if wider is None:
        df = reference_of(fit).df
        return mixture_quantiles(weights, values, errors, ends, df, _PRECISION)
    spread = np.hypot(spread, wider * errors)
    return mixture_quantiles(weights, values, spread, ends, precision=_PRECISION)


def _of_one(own: Estimates, kind: str, design: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each row's expectation under one assignment, its standard error, and the outcome's."""
    index = design @ own.selection_coef
    effect = own.level(kind, design)
    errors = np.sqrt(np.maximum(effect.variance(own.covariance), 0.0))
    spread = _spread(kind, np.array(own.sigma), np.array(own.dependence), index)
    return effect.values, errors, spread


def _of_mixture(
    fit: Fit, mixture: Mixture, estimates: Estimates, kind: str, design: Floats
) -> tuple[Floats, Floats]:
    """Return the expectations of each row under every two-step fit, and their standard errors."""

    def rows(own: Estimates) -> tuple[Floats, Floats]:
        effect = level_effect(own.parts(kind, design), design)
        return effect.values, effect.gradient()

    prediction, by_imr = _in_order(fit, estimates, rows(replace(estimates, dependence=1.0))[1])
    if kind == "expected":
        by_coef = _by_coef(fit, estimates, rows)
        return mixture.bilinear(prediction, np.zeros_like(by_imr), by_coef)
    return mixture.linear(prediction, None, by_imr if estimates.selection else None)


def _spread(kind: str, sigma: Floats, imr_coef: Floats, index: Floats) -> Floats:
    """Return the standard deviation of an outcome about its expectation."""
    if kind == "marginal":
        return sigma + np.zeros_like(index)
    delta = mills(index if kind == "selected" else -index)[1]
    # An assignment with |rho| >= 1 may have a negative variance there.
    return np.asarray(np.sqrt(np.maximum(sigma**2 - imr_coef**2 * delta, _LEAST * sigma**2)))
