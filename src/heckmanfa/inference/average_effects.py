"""Expectations and effects of an average, with the quantiles of its mixture as intervals.

Assignments are taken together in a few groups that agree on what is most in doubt. A group has the
mean of its assignments' estimates, and all of their spread as its covariance, so it is evaluated as
any other fit, in every family. Few functions of the estimates, such as margins, then have a value
in each assignment, by the function's gradient in its group; those of many rows do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from heckmanfa.data.arrays import Array, Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.inference.average_fit import with_equations
from heckmanfa.inference.expectations import Estimates
from heckmanfa.model.normal import mills
from heckmanfa.model.quantiles import mixture_quantiles, total_covariance
from heckmanfa.results.average_tables import TermMixture, outcome_of, term_chances
from heckmanfa.results.reference import reference_of, tails
from heckmanfa.search.averaging.members import Gathered

# The least share of its variance that selection can leave an outcome.
_LEAST = 0.01
# In standard errors.
_ROUNDING = 1e-6
# Groups are the states of so many units; fewer for intervals of probabilities, which take time.
_BITS = 5
_FEW_BITS = 4

ROWS_PRECISION = 1e-7
"""of the ends of rows' intervals, in standard errors; more digits would cost time in many rows"""

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


_parts: WeakKeyDictionary[Fit, dict[int, list[Part]]] = WeakKeyDictionary()


def parts_of(fit: Fit, *, few: bool = False) -> list[Part]:
    """Return the groups of an average's assignments; made once, and kept as long as the fit is.

    There may be a ``few`` of them only. The model of all features is one of its own, last.
    """
    n_bits = _FEW_BITS if few else _BITS
    known = _parts.setdefault(fit, {})
    if n_bits not in known:
        outcome = outcome_of(fit)
        whole, share = len(outcome.members.weights), outcome.average.all_features_share
        groups = [(group, group.weight) for group in outcome.members.groups(n_bits)]
        parts = [_part(fit, group, weight, (1 - share) * weight) for group, weight in groups]
        if share > 0.0:
            group = outcome.interval_members.gathered(np.array([whole]))
            parts.append(_part(fit, group, 0.0, share))
        known[n_bits] = parts
    return known[n_bits]


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
        sigma=float(errors.get("sigma", 1.0)),
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
        found[:, fit.terms.index(("errors", fit.spec.error_terms[0]))] = gradient[:, 2 * k]
    if estimates.transform is not None:
        found[:, fit.terms.index(("errors", "sigma"))] += gradient[:, 2 * k + 1]
    return found


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
    parts = parts_of(fit)
    found = [_of_one(estimates.again(part.fit), kind, design) for part in parts]
    weights = np.array([part.interval_weight for part in parts])
    values, errors, spread = (np.array(part) for part in zip(*found, strict=True))
    ends = tails(conf_level)
    if wider is None:
        df = reference_of(fit).df
        return mixture_quantiles(weights, values, errors, ends, df, ROWS_PRECISION)
    spread = np.hypot(spread, wider * errors)
    return mixture_quantiles(weights, values, spread, ends, precision=ROWS_PRECISION)


def _of_one(own: Estimates, kind: str, design: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each row's expectation under one group, its standard error, and the outcome's."""
    index = design @ own.selection_coef
    effect = own.level(kind, design)
    errors = np.sqrt(np.maximum(effect.variance(own.covariance), 0.0))
    spread = _spread(kind, own.sigma, own.dependence, index)
    return effect.values, errors, spread


def _spread(kind: str, sigma: float, imr_coef: float, index: Floats) -> Floats:
    """Return the standard deviation of an outcome about its expectation."""
    if kind == "marginal":
        return sigma + np.zeros_like(index)
    delta = mills(index if kind == "selected" else -index)[1]
    # An assignment with |rho| >= 1 may have a negative variance there.
    return np.asarray(np.sqrt(np.maximum(sigma**2 - imr_coef**2 * delta, _LEAST * sigma**2)))
