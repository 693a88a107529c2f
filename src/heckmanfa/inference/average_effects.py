"""Expectations and effects of an average, with the quantiles of its mixture as intervals.

Assignments are taken together in a few groups that agree on what is most in doubt. A group has the
mean of its assignments' estimates, and all of their spread as its covariance, so it is evaluated as
any other fit, in every family. Few functions of the estimates, such as margins, then have a value
in each assignment, by the function's gradient in its group.

Those of many rows do not: `MixtureRows` evaluates the groups together. A function of the estimates
has the gradient sum_a f_a(x) (d_a(x), in the place of block a), where the blocks are both
equations, with d = x, and the parameters of the errors, with d = 1. So its variance is a sum of
products f_a f_b, times quadratic forms of x. These are linear in the products of two columns of x,
and one matrix product has them for all rows and groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.fit.full_form import with_equations
from heckmanfa.inference.expectations import Estimates, Level, level_effect
from heckmanfa.model.expectation_parts import Parts
from heckmanfa.model.quantiles import mixture_quantiles, total_covariance
from heckmanfa.results.average_tables import TermMixture, column_chances
from heckmanfa.results.distribution import distribution_of, tails
from heckmanfa.search.averaging.members import Gathered

# In standard errors.
_ROUNDING = 1e-6
# The least share of its variance that selection can leave an outcome.
_LEAST = 0.01
# Of the ends of intervals, in standard errors; more digits would cost time in many rows.
_PRECISION = 1e-7
# Rows whose products of columns stay in the cache.
_CHUNK = 2**9

Functions = Callable[[Estimates], tuple[Floats, Floats]]
"""returns values (q,) and gradients (q, 2 (1 + k) + 1) of q functions, at some estimates"""
RowNumbers = tuple[Floats, Floats, Floats]
"""values (G, b), standard errors (G, b) and confidence limits (b, 2) of b rows in G groups"""


@dataclass(frozen=True, eq=False)
class GroupFit:
    """Some assignments of an average, as a fit of their own."""

    gathered: Gathered
    weight: float
    """share of own weight; zero of the model of all features, which only intervals have"""
    interval_weight: float
    """share of the weight of an interval"""
    fit: Fit
    jacobian: Floats
    """(T, d) derivatives of the fit's terms in the estimates of the form"""


def group_fits(fit: Fit) -> list[GroupFit]:
    """Return the groups of an average's assignments, and the model of all features, last."""
    part = fit.part
    if part is not None:
        return [
            replace(group, fit=part.take(group.fit), jacobian=part.matrix @ group.jacobian)
            for group in group_fits(part.whole)
        ]
    outcome = fit.way.averaging
    share = outcome.mixture.all_features_share
    groups = [
        _group_fit(fit, group, group.weight, (1 - share) * group.weight) for group in outcome.groups
    ]
    if share > 0.0:
        last = np.array([len(outcome.members.weights)])
        groups.append(_group_fit(fit, outcome.interval_members.gathered(last)[0], 0.0, share))
    return groups


def _group_fit(fit: Fit, group: Gathered, weight: float, interval_weight: float) -> GroupFit:
    form = fit.way.averaging.form
    terms, slopes, n = (
        form.terms(group.estimates),
        form.term_slopes(group.estimates),
        form.correction,
    )
    jacobian = np.zeros((len(terms), len(group.estimates)))
    jacobian[:n, :n] = np.eye(n)
    jacobian[n:, n:] = slopes
    known = form.error_terms(group.estimates).items()
    errors = {name: float(value) for name, value in known if name in fit.errors}
    own = replace(
        with_equations(fit, group.estimates).with_errors(**errors),
        covariance=jacobian @ group.covariance @ jacobian.T,
        support=np.isin(np.arange(fit.n_features), fit.equation),
        average=None,
    )
    return GroupFit(group, weight, interval_weight, own, jacobian)


def mixed(fit: Fit, function: Callable[[Fit], Array], *, linear: bool = True) -> Array:
    """Average a function of a fit over the assignments of an average; of any other, return it.

    A ``linear`` one is linear in the prediction equation and beta_H, so the averages of two-step
    estimates, which share a selection equation, are enough.
    """
    way = fit.way
    if not way.is_average or (linear and way.averaging.form.shares_selection):
        return function(fit)
    first, *others = group_fits(fit)
    total = first.weight * function(first.fit)
    for group in (group for group in others if group.weight > 0.0):
        total = total + group.weight * function(group.fit)
    return total


def is_averaged(fit: Fit, estimates: Estimates) -> bool:
    """Whether functions of these estimates differ between the assignments of an average."""
    way = fit.way
    return way.is_average and (estimates.prediction or not way.averaging.form.shares_selection)


def average_functions(
    fit: Fit, estimates: Estimates, functions: Functions, conf_level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return averages (q,), standard errors (q,), limits (q, 2) and the covariance (q, q)."""
    groups, parts = group_fits(fit), []
    for group in groups:
        own = estimates.again(group.fit)
        value, gradient = functions(own)
        within = gradient @ own.covariance @ gradient.T
        parts.append((value, in_terms_of(group.fit, own, gradient), within))
    return mixture_of(fit, groups, parts, conf_level)


def mixture_of(
    fit: Fit,
    groups: list[GroupFit],
    parts: list[tuple[Floats, Floats, Floats]],
    conf_level: float,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what `average_functions` does of functions known in each group.

    ``parts`` are their values (q,), gradients in the group's terms (q, T), and covariance (q, q).
    """
    members = fit.way.averaging.interval_members
    centres, within = [value for value, _, _ in parts], [spread for _, _, spread in parts]
    values, errors = [], []
    for group, (value, in_terms, _) in zip(groups, parts, strict=True):
        in_form = in_terms @ group.jacobian
        some = members.only(group.gathered.members)
        values.append(value + (some.estimates - group.gathered.estimates) @ in_form.T)
        errors.append(np.sqrt(some.variances(in_form)))
        # Where an assignment has no effect at all, rounding must not give it one.
        size = np.sqrt(np.maximum(np.diag(within[-1]), 0.0))
        none = (errors[-1] < _ROUNDING * size) & (np.abs(values[-1]) < _ROUNDING * size)
        values[-1][none] = errors[-1][none] = 0.0
    own_share = np.array([group.weight for group in groups])
    share = np.array([group.interval_weight for group in groups])
    order = np.concatenate([group.gathered.members for group in groups])
    mixture = TermMixture(members.weights[order], np.concatenate(values), np.concatenate(errors))
    absent = (mixture.centres == 0.0) & (mixture.errors == 0.0)
    chances = _chances(fit, members.terms[order], absent)
    limits = mixture.intervals(tails(conf_level), distribution_of(fit).df, chances)
    covariance = total_covariance(share, np.array(centres), np.array(within))
    with np.errstate(invalid="ignore"):
        return own_share @ np.array(centres), np.sqrt(np.diag(covariance)), limits, covariance


def _chances(fit: Fit, terms: Floats, absent: Mask) -> Floats:
    """Return the chance of each of q functions, (q,): that of the feature whose effect it is.

    It is known by the assignments in which there is none, (N, q). NaN for other functions.
    """
    outcome = fit.way.averaging
    chances = np.full(absent.shape[1], np.nan)
    for q in np.flatnonzero(absent.any(axis=0) & ~absent.all(axis=0)):
        for place in range(len(outcome.form.columns)):
            if np.array_equal(absent[:, q], terms[:, 1 + place] == 0.0):
                chances[q] = column_chances(fit)[place]
                break
    return chances


def in_terms_of(fit: Fit, estimates: Estimates, gradient: Floats) -> Floats:
    """Arrange gradients, (q, ...) as `Estimates.covariance` has rows, as the terms of a fit."""
    assert fit.probit is not None
    place = estimates.places
    k = 1 + len(estimates.columns)
    in_terms = np.zeros((len(gradient), len(fit.terms)))
    n = 1 + len(fit.equation)
    if estimates.prediction:
        in_terms[:, :n] = gradient[:, [0, *(place[column] for column in fit.equation)]]
    if estimates.selection:
        places = [k, *(k + place[column] for column in fit.probit.features)]
        in_terms[:, n : n + len(places)] = gradient[:, places]
    terms = fit.dependence_terms
    if estimates.prediction and estimates.selection:
        for column, term in enumerate(terms, 2 * k):
            in_terms[:, fit.terms.index(("errors", term))] = gradient[:, column]
    last = fit.family.shape if estimates.shaped else "sigma"
    if estimates.transform is not None or estimates.shaped:
        in_terms[:, fit.terms.index(("errors", last))] += gradient[:, 2 * k + len(terms)]
    return in_terms


class MixtureRows:
    """The G groups of an average's assignments, for functions of b rows of a design (b, 1 + k)."""

    def __init__(self, fit: Fit, estimates: Estimates) -> None:
        groups = group_fits(fit)
        each = [estimates.again(group.fit) for group in groups]
        self.weights = np.array([group.weight for group in groups])
        """(G,) of averages"""
        self.interval_weights = np.array([group.interval_weight for group in groups])
        """(G,) of intervals"""
        self._df = distribution_of(fit).df
        self._coef = np.array([own.coef for own in each])
        self._selection_coef = np.array([own.selection_coef for own in each])
        if np.all(self._selection_coef == self._selection_coef[0]):
            # Two-step estimates share a selection equation: what it gives is evaluated once.
            self._selection_coef = self._selection_coef[:1]
        self._one_by_one = estimates.shaped or np.ndim(estimates.dependence) > 0
        """whether a function takes the errors of one group at a time"""
        self._dependence = np.array([[own.dependence] for own in each])
        self._sigma = np.array([[own.sigma] for own in each])
        self._set_forms(np.array([own.covariance for own in each]))

    def _set_forms(self, covariances: Floats) -> None:
        """Take the covariances (G, ...) apart, as coefficients of products of two columns."""
        n = self._coef.shape[1]
        first, last = self._columns = np.triu_indices(n)
        with np.errstate(invalid="ignore"):
            spread = np.sqrt(np.max(np.einsum("gii->gi", covariances), axis=0))[: 2 * n]
        # Products of columns as they are could overflow.
        self._scale = np.nan_to_num(spread.reshape(2, n).max(axis=0))
        self._scale[0] = self._scale[0] or 1.0
        unscaled = np.where(self._scale > 0.0, self._scale, 1.0)
        spans = [slice(0, n), slice(n, 2 * n)]
        spans += [slice(end, end + 1) for end in range(2 * n, covariances.shape[1])]
        self._blocks, coefficients = [], []
        for a, b in combinations_with_replacement(range(len(spans)), 2):
            block = covariances[:, spans[a], spans[b]] * (1.0 if a == b else 2.0)
            if not block.any():
                continue
            # A parameter of the errors takes the place of the intercept, whose column is one.
            form = np.zeros((len(covariances), n, n))
            form[:, : block.shape[1], : block.shape[2]] = block
            form /= unscaled[:, None] * unscaled
            form += np.tril(form, -1).transpose(0, 2, 1)
            self._blocks.append((a, b))
            coefficients.append(form[:, first, last])
        self._coefficients = np.array(coefficients).reshape(-1, len(first))

    def parts(self, level: Level, design: Floats) -> Parts:
        """Evaluate a function of both indexes; arrays broadcast to (G, b)."""
        mean, index = self._coef @ design.T, np.asarray(self._selection_coef @ design.T)
        if not self._one_by_one:
            return level(mean, index, self._dependence, self._sigma)
        indexes = np.broadcast_to(index, mean.shape)
        errors = self._dependence[:, 0], self._sigma[:, 0].tolist()
        groups = zip(mean, indexes, *errors, strict=True)
        return _stacked([level(*group) for group in groups], mean.shape)

    def errors(self, design: Floats, *factors: Floats | float | None) -> Floats:
        """Return standard errors (G, b) of functions with some derivatives.

        ``factors``, each broadcasting to (G, b), are derivatives in v = x'b, u = z'gamma, and the
        parameters of the errors that the covariance has; None if it does not have them.
        """
        shape = len(self.weights), len(design)
        variance = np.zeros(shape)
        every = [None if factor is None else np.broadcast_to(factor, shape) for factor in factors]
        for start in range(0, len(design), _CHUNK):
            span = slice(start, start + _CHUNK)
            columns = design[span].T * self._scale[:, None]
            products = columns[self._columns[0]]
            products *= columns[self._columns[1]]
            forms = (self._coefficients @ products).reshape(-1, shape[0], columns.shape[1])
            for (a, b), form in zip(self._blocks, forms, strict=True):
                for factor in (every[a], every[b]):
                    assert factor is not None
                    form *= factor[:, span]
                variance[:, span] += form
        return np.asarray(np.sqrt(np.maximum(variance, 0.0, out=variance)))

    def confidence(self, level: Level, design: Floats, conf_level: float) -> RowNumbers:
        """Return values (G, b), standard errors (G, b) and limits (b, 2) of a function."""
        parts = self.parts(level, design)
        errors = self._errors_of(parts, design)
        values = np.broadcast_to(parts.value, errors.shape)
        ends, weights = tails(conf_level), self.interval_weights
        limits = mixture_quantiles(weights, values, errors, ends, self._df, _PRECISION)
        return values, errors, limits

    def new_outcomes(self, level: Level, design: Floats, conf_level: float, wider: float) -> Floats:
        """Return limits (b, 2) of new outcomes.

        An outcome is normal in each group, with the variance that selection leaves it. ``wider``
        scales the standard error of its expectation.
        """
        parts = self.parts(level, design)
        sigma, fall = self._sigma, self._dependence**2 * parts.index_dependence
        # An assignment with |rho| >= 1 may have a negative variance there.
        own = np.maximum(sigma**2 + fall, _LEAST * sigma**2)
        spread = np.hypot(np.sqrt(own), wider * self._errors_of(parts, design))
        weights, ends = self.interval_weights, tails(conf_level)
        return mixture_quantiles(weights, parts.value, spread, ends, precision=_PRECISION)

    def _errors_of(self, parts: Parts, design: Floats) -> Floats:
        several = np.ndim(parts.dependence) > 2
        ends = [*np.moveaxis(parts.dependence, -1, 0)] if several else [parts.dependence]
        return self.errors(design, parts.mean, parts.index, *ends, parts.sigma)


def _stacked(parts: list[Parts], shape: tuple[int, ...]) -> Parts:
    """Put a function's parts in G groups, (b,) each, on top of each other."""

    def together(name: str) -> Any:
        each = [np.asarray(getattr(part, name)) for part in parts]
        own = (shape[1], *each[0].shape[1:])
        return np.array([np.broadcast_to(value, own) for value in each])

    sigma = None if parts[0].sigma is None else together("sigma")
    names = "value", "mean", "index", "dependence", "index_index", "index_dependence"
    return replace(parts[0], **{name: together(name) for name in names}, sigma=sigma)


class RowLimits:
    """Functions of the estimates in rows, with standard errors and confidence limits.

    The groups of an average are evaluated together; any other fit is a single group.
    """

    def __init__(self, fit: Fit, estimates: Estimates, conf_level: float) -> None:
        self.groups = MixtureRows(fit, estimates) if is_averaged(fit, estimates) else None
        self.weights = np.ones(1) if self.groups is None else self.groups.weights
        """(G,) of averages"""
        self.interval_weights = self.weights
        if self.groups is not None:
            self.interval_weights = self.groups.interval_weights
        self._estimates, self._conf_level = estimates, conf_level
        self._quantile = distribution_of(fit).quantile(conf_level)

    def __call__(self, level: Level, design: Floats) -> RowNumbers:
        """Return values (G, b), standard errors (G, b) and limits (b, 2) of a function."""
        if self.groups is not None:
            return self.groups.confidence(level, design, self._conf_level)
        effect = level_effect(self._estimates.evaluate(level, design), design)
        error = np.sqrt(effect.variance(self._estimates.covariance))
        reach = self._quantile * error
        ends = np.column_stack([effect.values - reach, effect.values + reach])
        return effect.values[None], error[None], ends
