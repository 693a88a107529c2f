"""Expectations and effects of an average, with the quantiles of its mixture as intervals.

Two-step fits share the selection equation. So an expectation of assignment S is linear in its
coefficients and beta_H, and its derivative with respect to the selection coefficients is beta_H
times one that all assignments share. Refits by maximum likelihood each have a selection equation of
their own, and are evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from heckmanfa.data.arrays import Array, Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.inference.expectations import Estimates, level_effect, parts_of
from heckmanfa.model.mixture import Mixture
from heckmanfa.model.quantiles import mixture_quantiles, total_covariance
from heckmanfa.results.average_tables import few_of, mixture_of, outcome_of, tails
from heckmanfa.results.reference import Reference, reference_of

Functions = Callable[[Estimates], tuple[Floats, Floats]]
"""returns values (q,) and gradients (q, 2 (1 + k) + 1) of q functions, at some estimates"""


def members_of(fit: Fit) -> list[tuple[float, Fit]]:
    """Return the refits behind an average by maximum likelihood, with their weights.

    For two-step fits the list is empty: predictions are linear in what they average.
    """
    refits = None if fit.average is None else fit.average.refits
    if refits is None or fit.probit is None:
        return []
    columns, j = fit.equation, 1 + len(fit.equation)
    selecting = list(fit.probit.features)
    members = []
    for weight, values, covariance in zip(
        refits.weight, refits.estimates, refits.covariance, strict=True
    ):
        coef, selection_coef = np.zeros((2, fit.n_features))
        coef[columns] = values[1:j]
        selection_coef[selecting] = values[j + 1 : -3]
        member = replace(
            fit,
            average=None,
            support=np.isin(np.arange(fit.n_features), columns),
            coef=coef,
            intercept=float(values[0]),
            imr_coef=float(values[-3]),
            rho=float(values[-2]),
            sigma=float(values[-1]),
            selection_coef=selection_coef,
            selection_intercept=float(values[j]),
            covariance=covariance,
        )
        members.append((float(weight), member))
    return members


def mixed(fit: Fit, function: Callable[[Fit], Array]) -> Array:
    """Average a function of a fit over the refits of an average; of any other fit, return it."""
    members = members_of(fit)
    if not members:
        return function(fit)
    (weight, first), *others = members
    total = weight * function(first)
    for weight, member in others:
        total = total + weight * function(member)
    return total


def is_averaged(fit: Fit, estimates: Estimates) -> bool:
    """Whether functions of these estimates differ between the assignments of an average."""
    if fit.average is None:
        return False
    return estimates.prediction or fit.average.refits is not None


def average_functions(
    fit: Fit, estimates: Estimates, functions: Functions, apart: Mask, conf_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return averages (q,), standard errors (q,), limits (q, 2) and the covariance (q, q).

    ``functions`` are q linear functions of the coefficients and beta_H, except those marked as
    ``apart``, (q,), which depend on the selection equation alone.
    """
    if outcome_of(fit).refits is not None:
        return _over_refits(fit, estimates, functions, conf_level)
    mixture = mixture_of(fit)
    # With beta_H = 1, the derivative with respect to the selection coefficients is what each
    # assignment's beta_H multiplies.
    value, gradient = functions(replace(estimates, imr_coef=1.0))
    prediction, by_selection = _in_order(fit, estimates, gradient)
    own = np.where(apart[:, None], by_selection, 0.0)
    by_imr = np.where(apart[:, None], 0.0, by_selection)
    values, errors = mixture.linear(prediction, own, by_imr)
    values = values + np.where(apart, value, 0.0)
    limits = mixture_quantiles(
        mixture.weights, values, errors, tails(conf_level), reference_of(fit).df
    )
    average = prediction @ [fit.intercept, *fit.coef[fit.equation], fit.imr_coef]
    mean = mixture.weights @ values
    spread = mixture.weights @ (errors**2 + (values - mean) ** 2)
    whole = np.column_stack([prediction, own + fit.imr_coef * by_imr])
    covariance = whole @ mixture.total_covariance()[1] @ whole.T
    return np.where(apart, value, average), np.sqrt(spread), limits, covariance


def _over_refits(
    fit: Fit, estimates: Estimates, functions: Functions, conf_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Do the same with the refits of maximum likelihood, each with its own estimates."""
    weights, values, covariances = [], [], []
    for share, member in members_of(fit):
        own = Estimates.of(member, prediction=estimates.prediction, selection=estimates.selection)
        value, gradient = functions(own)
        weights.append(share)
        values.append(value)
        covariances.append(gradient @ own.covariance @ gradient.T)
    weight, centres, within = np.array(weights), np.array(values), np.array(covariances)
    errors = np.sqrt(np.maximum(np.diagonal(within, axis1=1, axis2=2), 0.0))
    limits = mixture_quantiles(weight, centres, errors, tails(conf_level), reference_of(fit).df)
    covariance = total_covariance(weight, centres, within)
    return weight @ centres, np.sqrt(np.diag(covariance)), limits, covariance


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
    fit: Fit, estimates: Estimates, kind: str, design: Floats, conf_level: float, *, new: bool
) -> Floats:
    """Return limits (b, 2) for rows of a design: of expectations, or of ``new`` outcomes.

    New outcomes are for the kind "marginal".
    """
    reference = reference_of(fit)
    members = members_of(fit)
    df = None if new else reference.df
    if members:
        weights = np.array([weight for weight, _ in members])
        sigma = np.array([member.sigma for _, member in members])
        found = [
            _level(member, kind, design, selection=estimates.selection) for _, member in members
        ]
        values, errors = (np.array(part) for part in zip(*found, strict=True))
    else:
        mixture = few_of(fit)
        weights, sigma = mixture.weights, mixture.sigma
        values, errors = _levels(fit, mixture, estimates, kind, design)
    if new:
        wider = reference.quantile(conf_level) / Reference().quantile(conf_level)
        errors = np.hypot(sigma[:, None], wider * errors)
    return mixture_quantiles(weights, values, errors, tails(conf_level), df)


def _level(member: Fit, kind: str, design: Floats, *, selection: bool) -> tuple[Floats, Floats]:
    """Return the expectation of each row under one refit, and its standard error."""
    own = Estimates.of(member, prediction=True, selection=selection)
    parts = parts_of(kind, design @ own.selection_coef, own.imr_coef)
    effect = level_effect(own, parts, design)
    return effect.values, np.sqrt(np.maximum(effect.variance(own.covariance), 0.0))


def _levels(
    fit: Fit, mixture: Mixture, estimates: Estimates, kind: str, design: Floats
) -> tuple[Floats, Floats]:
    """Return the expectations of each row under every two-step fit, and their standard errors."""
    parts = parts_of(kind, design @ estimates.selection_coef, 1.0)
    gradient = level_effect(estimates, parts, design).gradient()
    prediction, by_imr = _in_order(fit, estimates, gradient)
    return mixture.linear(prediction, None, by_imr if estimates.selection else None)


def total_estimates(fit: Fit, estimates: Estimates) -> Estimates:
    """Return estimates with the covariance of the whole mixture."""
    if outcome_of(fit).refits is not None:
        return estimates
    k = len(estimates.columns)
    covariance = np.zeros_like(estimates.covariance)
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    positions = [0, *(place[column] for column in fit.equation), 2 * (1 + k)]
    total = mixture_of(fit).total_covariance()[1][: len(positions), : len(positions)]
    covariance[np.ix_(positions, positions)] = total
    return replace(estimates, covariance=covariance)
