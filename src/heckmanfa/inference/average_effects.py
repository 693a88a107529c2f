"""Expectations and effects of an average, with the quantiles of its mixture as intervals.

Assignments are taken together in a few groups that agree on what is most in doubt. A group has the
mean of its assignments' estimates, and all of their spread as its covariance, so it is evaluated as
any other fit, in every family. Few functions of the estimates, such as margins, then have a value
in each assignment, by the function's gradient in its group; those of many rows do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Array, Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.inference.average_fit import with_equations
from heckmanfa.inference.expectations import Estimates
from heckmanfa.model.quantiles import total_covariance
from heckmanfa.results.average_tables import TermMixture, outcome_of, term_chances
from heckmanfa.results.reference import reference_of, tails
from heckmanfa.search.averaging.members import Gathered

# In standard errors.
_ROUNDING = 1e-6

Functions = Callable[[Estimates], tuple[Floats, Floats]]
"""returns values (q,) and gradients (q, 2 (1 + k) + 1) of q functions, at some estimates"""


@dataclass(frozen=True, eq=False)
class Part:
    """Some assignments of an average, as a fit of their own."""

    group: Gathered
    weight: float
    """share of own weight; zero of the model of all features, which only intervals have"""
    interval_weight: float
    """share of the weight of an interval"""
    fit: Fit
    jacobian: Floats
    """(T, d) derivatives of the fit's terms in the estimates of the form"""


def parts_of(fit: Fit) -> list[Part]:
    """Return the groups of an average's assignments, and the model of all features, last."""
    outcome = outcome_of(fit)
    share = outcome.mixture.all_features_share
    parts = [
        _part(fit, group, group.weight, (1 - share) * group.weight) for group in outcome.groups
    ]
    if share > 0.0:
        last = np.array([len(outcome.members.weights)])
        parts.append(_part(fit, outcome.interval_members.gathered(last)[0], 0.0, share))
    return parts


def _part(fit: Fit, group: Gathered, weight: float, interval_weight: float) -> Part:
    form = outcome_of(fit).form
    terms, slopes, n = form.terms(group.estimates), form.slopes(group.estimates), form.correction
    jacobian = np.zeros((len(terms), len(group.estimates)))
    jacobian[:n, :n] = np.eye(n)
    jacobian[n:, n:] = slopes
    errors = dict(zip(fit.spec.error_terms, terms[n:], strict=True))
    own = replace(
        with_equations(fit, group.estimates),
        imr_coef=float(errors.get("imr", errors["rho"])),
        rho=float(errors["rho"]),
        sigma=float(errors.get("sigma", fit.sigma)),
        covariance=jacobian @ group.covariance @ jacobian.T,
        support=np.isin(np.arange(fit.n_features), fit.equation),
        average=None,
    )
    return Part(group, weight, interval_weight, own, jacobian)


def mixed(fit: Fit, function: Callable[[Fit], Array], *, linear: bool = True) -> Array:
    """Average a function of a fit over the assignments of an average; of any other, return it.

    A ``linear`` one is linear in the prediction equation and beta_H, so the averages of two-step
    estimates, which share a selection equation, are enough.
    """
    if fit.average is None or (linear and fit.average.form.errors == "two-step"):
        return function(fit)
    first, *others = parts_of(fit)
    total = first.weight * function(first.fit)
    for part in (part for part in others if part.weight > 0.0):
        total = total + part.weight * function(part.fit)
    return total


def is_averaged(fit: Fit, estimates: Estimates) -> bool:
    """Whether functions of these estimates differ between the assignments of an average."""
    if fit.average is None:
        return False
    return estimates.prediction or fit.average.form.errors != "two-step"


def average_functions(
    fit: Fit, estimates: Estimates, functions: Functions, conf_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return averages (q,), standard errors (q,), limits (q, 2) and the covariance (q, q)."""
    members, parts = outcome_of(fit).interval_members, parts_of(fit)
    centres, within = [], []
    values, errors = [], []
    for part in parts:
        own = estimates.again(part.fit)
        value, gradient = functions(own)
        centres.append(value)
        within.append(gradient @ own.covariance @ gradient.T)
        in_form = _in_terms(part.fit, own, gradient) @ part.jacobian
        some = members.only(part.group.members)
        values.append(value + (some.estimates - part.group.estimates) @ in_form.T)
        errors.append(np.sqrt(some.variances(in_form)))
        # Where an assignment has no effect at all, rounding must not give it one.
        size = np.sqrt(np.maximum(np.diag(within[-1]), 0.0))
        none = (errors[-1] < _ROUNDING * size) & (np.abs(values[-1]) < _ROUNDING * size)
        values[-1][none] = errors[-1][none] = 0.0
    own_share = np.array([part.weight for part in parts])
    share = np.array([part.interval_weight for part in parts])
    order = np.concatenate([part.group.members for part in parts])
    mixture = TermMixture(members.weights[order], np.concatenate(values), np.concatenate(errors))
    absent = (mixture.centres == 0.0) & (mixture.errors == 0.0)
    chances = _chances(fit, members.terms[order], absent)
    limits = mixture.intervals(tails(conf_level), reference_of(fit).df, chances)
    covariance = total_covariance(share, np.array(centres), np.array(within))
    with np.errstate(invalid="ignore"):
        return own_share @ np.array(centres), np.sqrt(np.diag(covariance)), limits, covariance


def _chances(fit: Fit, terms: Floats, absent: Mask) -> Floats:
    """Return the chance of each of q functions, (q,): that of the feature whose effect it is.

    It is known by the assignments in which there is none, (N, q). NaN for other functions.
    """
    outcome = outcome_of(fit)
    chances = np.full(absent.shape[1], np.nan)
    for q in np.flatnonzero(absent.any(axis=0) & ~absent.all(axis=0)):
        for place in range(len(outcome.form.columns)):
            if np.array_equal(absent[:, q], terms[:, 1 + place] == 0.0):
                chances[q] = term_chances(fit)[1 + place]
                break
    return chances


def _in_terms(fit: Fit, estimates: Estimates, gradient: Floats) -> Floats:
    """Arrange gradients, (q, ...) as `Estimates.covariance` has rows, as the terms of a fit."""
    assert fit.probit is not None
    place = {column: 1 + i for i, column in enumerate(estimates.columns)}
    k = 1 + len(estimates.columns)
    found = np.zeros((len(gradient), len(fit.terms)))
    n = 1 + len(fit.equation)
    if estimates.prediction:
        found[:, :n] = gradient[:, [0, *(place[column] for column in fit.equation)]]
    if estimates.selection:
        places = [k, *(k + place[column] for column in fit.probit.features)]
        found[:, n : n + len(places)] = gradient[:, places]
    if estimates.prediction and estimates.selection:
        found[:, fit.terms.index(("errors", fit.family.dependence))] = gradient[:, 2 * k]
    if estimates.transform is not None:
        found[:, fit.terms.index(("errors", "sigma"))] += gradient[:, 2 * k + 1]
    return found
