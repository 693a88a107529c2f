"""Evaluate every assignment of up to some twenty units, and sum what an average needs.

Assignment a holds inner unit t if bit t of a is set, and unit e of the outer ones if bit q + e is
set. Each set of outer units is one step: a QR decomposition, then `Subsets` of the q inner units.
Weights are relative to the best criterion so far; a better one rescales the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.subsets import Subsets
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule

# The most inner units: the vectors of a step stay in the cache.
_INNER = 14


@dataclass
class Sums:
    """Sums over assignments of a weight, relative to the best, times what is averaged."""

    best: float = np.inf
    """the least criterion so far"""
    total: float = 0.0
    inclusion: Any = 0.0
    """(U,)"""
    values: Any = 0.0
    """(c + 4,) coefficients of the scaled columns, rho, sigma, adjusted R^2, |rho| >= 1"""
    positive: Any = 0.0
    """(c,) coefficients above zero"""

    def rescale(self, best: float) -> None:
        """Make the sums relative to a better assignment."""
        if best < self.best:
            factor = np.exp(0.5 * (best - self.best))
            self.best = best
            self.total *= factor
            self.inclusion *= factor
            self.values *= factor
            self.positive *= factor


@dataclass
class Enumeration:
    """Every assignment evaluated."""

    columns: Columns
    rule: Rule
    n_inner: int
    log_sse: Floats
    """(2^U,), infinite for assignments that weigh nothing"""
    rho: Floats
    """(2^U,), NaN for assignments that cannot be solved"""
    sums: dict[Kind, Sums] = field(default_factory=dict)

    def inside(self, assignments: NDArray[np.intp]) -> Mask:
        """Masks over the units of some assignments, (B, U)."""
        n_outer = len(self.columns.order) - self.n_inner
        bits = [self.n_inner + e for e in range(n_outer)] + list(range(self.n_inner))
        return np.asarray((assignments[:, None] >> np.array(bits, dtype=np.intp)) & 1 > 0)

    def criterion(self, kind: Kind) -> Floats:
        """The criterion of every assignment, (2^U,), infinite where it weighs nothing."""
        steps = _Steps(self.columns, self.n_inner)
        values = self.rule.n_selected * self.log_sse
        parts = values.reshape(-1, 1 << self.n_inner)
        for outer in range(len(parts)):
            parts[outer] += steps.penalty(self.rule.penalties[kind], outer)
        return values


class _Steps:
    """Which columns and how many of them each step and each subset hold."""

    def __init__(self, columns: Columns, n_inner: int) -> None:
        sizes = columns.sizes
        self.n_outer = len(sizes) - n_inner
        self.outer_sizes, self.inner_sizes = sizes[: self.n_outer], sizes[self.n_outer :]
        starts = columns.n_fixed + np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self._spans = [range(a, b) for a, b in pairwise(starts)]
        self.n_always = columns.n_fixed - columns.imr
        self.first_inner = int(starts[self.n_outer])
        subsets = np.arange(1 << n_inner)
        self.bits = ((subsets >> np.arange(n_inner)[:, None]) & 1).astype(np.float64)
        n_columns = np.asarray(self.inner_sizes, dtype=np.float64) @ self.bits
        self.n_columns: NDArray[np.intp] = n_columns.astype(np.intp)
        self.n_units: NDArray[np.intp] = self.bits.sum(axis=0).astype(np.intp)

    def held(self, outer: int) -> list[int]:
        """The outer units of a step."""
        return [unit for unit in range(self.n_outer) if outer >> unit & 1]

    def outer_columns(self, outer: int) -> list[int]:
        """The columns of a step's outer units."""
        return [column for unit in self.held(outer) for column in self._spans[unit]]

    def penalty(self, table: Floats, outer: int) -> Floats:
        """What a criterion adds to m log SSE, for every subset."""
        units = self.held(outer)
        n_columns = self.n_always + sum(self.outer_sizes[unit] for unit in units)
        part = table[n_columns:, len(units) :]
        return np.asarray(np.take(part.ravel(), self.n_columns * part.shape[1] + self.n_units))


def enumerate_assignments(
    columns: Columns,
    rule: Rule,
    *,
    estimates: bool = True,
    progress: Callable[[int, str], None] | None = None,
) -> Enumeration:
    """Evaluate all 2^U assignments; without ``estimates``, sum only the weights and inclusion."""
    n_units = len(columns.order)
    n_inner = min(n_units, _INNER)
    found = Enumeration(
        columns=columns,
        rule=rule,
        n_inner=n_inner,
        log_sse=np.full(1 << n_units, np.inf),
        rho=np.full(1 << n_units, np.nan),
        sums={kind: Sums() for kind in KINDS},
    )
    step = _Step(found, _Steps(columns, n_inner), estimates)
    for outer in range(1 << (n_units - n_inner)):
        step.run(outer)
        if progress is not None:
            progress((outer + 1) << n_inner, "")
    return found


class _Step:
    """Evaluates the assignments of one set of outer units after another."""

    def __init__(self, found: Enumeration, steps: _Steps, estimates: bool) -> None:
        self._found, self._steps, self._estimates = found, steps, estimates
        self._columns, self._rule = found.columns, found.rule
        self._subsets = Subsets(steps.inner_sizes, self._columns.least[steps.first_inner :])
        n_columns, n_subsets = len(self._columns.least), 1 << found.n_inner
        self._values = np.zeros((n_columns + 4, n_subsets)) if estimates else np.zeros((0, 0))

    def run(self, outer: int) -> None:
        """Evaluate all assignments with one set of outer units."""
        columns, steps, rule = self._columns, self._steps, self._rule
        known = [*range(columns.n_fixed), *steps.outer_columns(outer)]
        f = len(known)
        last = len(columns.least)
        chosen = [*known, *range(steps.first_inner, last + 1)]
        r: Floats = np.asarray(np.linalg.qr(columns.matrix[:, chosen], mode="r"))
        if not np.all(np.abs(np.diagonal(r)[:f]) > columns.least[known]):
            return
        residual, feasible = self._subsets.solve(r[f:, f:])
        here = slice(outer << self._found.n_inner, (outer + 1) << self._found.n_inner)
        sse = (residual * columns.norms[-1]) ** 2
        log_sse = rule.goal.log_fit(sse)
        if columns.imr:
            imr = self._solve(known, r)
            sigma = np.sqrt(sse / rule.n_selected + rule.mean_delta * imr**2)
            with np.errstate(invalid="ignore", divide="ignore"):
                rho = imr / sigma
            rho[~feasible] = np.nan
            self._found.rho[here] = rho
            feasible = feasible & rule.goal.in_range(rho)
        log_sse[~feasible] = np.inf
        allowed = steps.penalty(rule.penalties["bic"], outer)
        log_sse[np.isinf(allowed)] = np.inf
        if not np.isfinite(log_sse).any():
            return
        self._found.log_sse[here] = log_sse
        if self._estimates:
            self._describe(outer, sse, rho, sigma, np.isfinite(log_sse))
        self._add(outer, known, log_sse)

    def _solve(self, known: list[int], r: Floats) -> Floats:
        """Solve for all coefficients; return lambda's."""
        columns, f = self._columns, len(known)
        self._subsets.back_substitute()
        inner = self._subsets.coef
        within = linalg.solve_triangular(r[:f, :f], r[:f, f:], check_finite=False)
        scale = columns.norms[-1] / columns.norms[0]
        if not self._estimates:
            return np.asarray((within[0, -1] - within[0, :-1] @ inner) * scale)
        slopes = within[:, -1:] - within[:, :-1] @ inner
        first = self._steps.first_inner
        self._values[columns.n_fixed : first] = 0.0
        self._values[known] = slopes
        self._values[first : len(columns.least)] = inner
        return np.asarray(slopes[0] * scale)

    def _describe(self, outer: int, sse: Floats, rho: Floats, sigma: Floats, usable: Mask) -> None:
        """Fill in what is averaged besides the coefficients."""
        m, steps, goal = self._rule.n_selected, self._steps, self._rule.goal
        rows = self._values[-4:]
        rows[0] = np.where(usable, rho, 0.0)
        rows[1] = sigma
        n_columns = steps.n_columns + steps.n_always + len(steps.outer_columns(outer))
        free = np.maximum(m - n_columns - 1.0, 1.0)
        rows[2] = 1.0 - sse * ((m - 1.0) / goal.total_squares) / free
        rows[3] = np.abs(rows[0]) >= 1.0

    def _add(self, outer: int, known: list[int], log_sse: Floats) -> None:
        """Add the weights of a step to the sums."""
        rule, steps = self._rule, self._steps
        held = np.zeros(steps.n_outer)
        held[steps.held(outer)] = 1.0
        fit = rule.n_selected * log_sse
        last = len(self._columns.least)
        positive = None
        for kind in KINDS:
            criterion = fit + steps.penalty(rule.penalties[kind], outer)
            sums = self._found.sums[kind]
            sums.rescale(float(criterion.min()))
            weight = np.exp(0.5 * (sums.best - criterion))
            total = float(weight.sum())
            sums.total += total
            sums.inclusion += np.concatenate([held * total, steps.bits @ weight])
            if self._estimates and kind in rule.own:
                if positive is None:
                    positive = (self._values[:last] > 0.0).astype(np.float64)
                sums.values += self._values @ weight
                sums.positive += positive @ weight
