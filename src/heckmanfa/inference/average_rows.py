"""Intervals of an average for many rows: the groups of its assignments evaluated together.

A function of the estimates has the gradient sum_a f_a(x) (d_a(x), in the place of block a), where
the blocks are both equations, with d = x, and the parameters of the errors, with d = 1. So its
variance is a sum of products f_a f_b, times quadratic forms of x. These are linear in the products
of two columns of x, and one matrix product has them for all rows and groups.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import parts_of
from heckmanfa.inference.expectations import Estimates
from heckmanfa.inference.own_scale_parts import log_parts
from heckmanfa.model.expectation_parts import Parts, linear_parts
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.results.reference import reference_of, tails

# The least share of its variance that selection can leave an outcome.
_LEAST = 0.01
# Of the ends of intervals, in standard errors; more digits would cost time in many rows.
_PRECISION = 1e-7
# Rows whose products of columns stay in the cache.
_CHUNK = 2**9


class RowGroups:
    """The G groups of an average's assignments, for functions of b rows of a design (b, 1 + k)."""

    def __init__(self, fit: Fit, estimates: Estimates) -> None:
        parts = parts_of(fit)
        self.each = [estimates.again(part.fit) for part in parts]
        """as the fit of each group has them"""
        self.weights = np.array([part.weight for part in parts])
        """(G,) of averages"""
        self.interval_weights = np.array([part.interval_weight for part in parts])
        """(G,) of intervals"""
        self._df, self._transform = reference_of(fit).df, estimates.transform
        self._coef = np.array([own.coef for own in self.each])
        self._selection_coef = np.array([own.selection_coef for own in self.each])
        if np.all(self._selection_coef == self._selection_coef[0]):
            # Two-step estimates share a selection equation: what it gives is evaluated once.
            self._selection_coef = self._selection_coef[:1]
        self._dependence = np.array([[own.dependence] for own in self.each])
        self._sigma = np.array([[own.sigma] for own in self.each])
        self._set_forms(np.array([own.covariance for own in self.each]))

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

    def index(self, design: Floats) -> Floats:
        """Return the selection index, (G, b)."""
        return np.broadcast_to(self._index(design), (len(self.weights), len(design)))

    def level(self, kind: str, design: Floats) -> Parts:
        """Evaluate an expectation as `Estimates.level` does; arrays broadcast to (G, b)."""
        mean, index = self._coef @ design.T, self._index(design)
        if self._transform is not None:
            errors = self._dependence, self._sigma
            return log_parts(self._transform, kind, mean, index, *errors)
        return linear_parts(kind, mean, index, self._dependence, curved=False)

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

    def limits(self, values: Floats, errors: Floats, conf_level: float) -> Floats:
        """Return confidence limits (b, 2) of functions with values and standard errors (G, b)."""
        ends = tails(conf_level)
        weights = self.interval_weights
        return mixture_quantiles(weights, values, errors, ends, self._df, _PRECISION)

    def confidence(self, kind: str, design: Floats, conf_level: float) -> Floats:
        """Return limits (b, 2) of expectations."""
        parts = self.level(kind, design)
        errors = self._errors_of(parts, design)
        return self.limits(parts.value, errors, conf_level)

    def new_outcomes(self, kind: str, design: Floats, conf_level: float, wider: float) -> Floats:
        """Return limits (b, 2) of new outcomes.

        An outcome is normal in each group, with the variance that selection leaves it. ``wider``
        scales the standard error of its expectation.
        """
        parts = self.level(kind, design)
        sigma, fall = self._sigma, self._dependence**2 * parts.index_dependence
        # An assignment with |rho| >= 1 may have a negative variance there.
        own = np.maximum(sigma**2 + fall, _LEAST * sigma**2)
        spread = np.hypot(np.sqrt(own), wider * self._errors_of(parts, design))
        weights, ends = self.interval_weights, tails(conf_level)
        return mixture_quantiles(weights, parts.value, spread, ends, precision=_PRECISION)

    def _index(self, design: Floats) -> Floats:
        """Return the selection index, (G, b), or (1, b) if the groups share it."""
        return np.asarray(self._selection_coef @ design.T)

    def _errors_of(self, parts: Parts, design: Floats) -> Floats:
        return self.errors(design, parts.mean, parts.index, parts.dependence, parts.sigma)
