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

# The most inner units, and the most numbers in the estimates of a step: they stay in the cache.
_INNER = 14
_NUMBERS = 2**19
# Weights below exp of this, relative to the heaviest, are zero.
_LEAST = -700.0
# The most vectors of penalties that are kept.
_PENALTIES = 64


@dataclass
class Sums:
    """Sums over assignments of a weight, relative to the best, times what is averaged."""

    best: float = np.inf
    """the least criterion so far"""
    total: float = 0.0
    inclusion: Any = 0.0
    """(U,)"""
    values: Any = 0.0
    """(c + 5,) coefficients of the scaled columns, a constant, rho, sigma, adjusted R^2, and
    whether |rho| >= 1"""
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
    """(2^U,), infinite for assignments that weigh nothing; Q / m of a quadratic form"""
    rho: Floats
    """(2^U,), NaN for assignments that cannot be solved"""
    sums: dict[Kind, Sums] = field(default_factory=dict)

    def inside(self, assignments: NDArray[np.intp]) -> Mask:
        """Masks over the units of some assignments, (B, U)."""
        n_outer = len(self.columns.order) - self.n_inner
        bits = [self.n_inner + e for e in range(n_outer)] + list(range(self.n_inner))
        return np.asarray((assignments[:, None] >> np.array(bits, dtype=np.intp)) & 1 > 0)

    def sse(self, assignments: NDArray[np.intp]) -> Floats:
        """Return the SSE of some assignments, or Q of a quadratic form."""
        fit = self.log_sse[assignments]
        if self.rule.goal.form is not None:
            return np.asarray(self.rule.n_selected * fit)
        return np.asarray(np.exp(fit))

    def weights(self, kind: Kind, best: float, total: float) -> Floats:
        """Weights of all assignments, (2^U,): exp((best - criterion) / 2) / total."""
        steps = _Steps(self.columns, self.n_inner)
        values = np.empty_like(self.log_sse)
        shape = (-1, 1 << self.n_inner)
        least = best - 2.0 * np.log(total)
        for outer, (log_sse, part) in enumerate(
            zip(self.log_sse.reshape(shape), values.reshape(shape), strict=True)
        ):
            np.multiply(log_sse, -self.rule.n_selected, out=part)
            part += least - steps.penalty(self.rule, kind, outer)
            _halve_and_exp(part)
        return values

    def shares_of(self, weights: Floats) -> Floats:
        """Sum weights, (2^U,), over all assignments and over those with each unit, (1 + U,)."""
        inclusion, total = _inclusion(weights[None], len(self.columns.order))
        # The inner units are the lower bits of an assignment's number.
        inner, outer = inclusion[0, : self.n_inner], inclusion[0, self.n_inner :]
        return np.concatenate([total, outer, inner])


class _Steps:
    """Which columns and how many of them each step and each subset hold."""

    def __init__(self, columns: Columns, n_inner: int) -> None:
        sizes = columns.sizes
        self.n_outer = len(sizes) - n_inner
        self.outer_sizes, self.inner_sizes = sizes[: self.n_outer], sizes[self.n_outer :]
        starts = columns.n_fixed + np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self._spans = [range(a, b) for a, b in pairwise(starts)]
        self.n_always = columns.n_fixed - columns.imr
        self._penalties: dict[tuple[Kind, int, int], Floats] = {}
        self.first_inner = int(starts[self.n_outer])
        subsets = np.arange(1 << n_inner)
        bits = (subsets >> np.arange(n_inner)[:, None]) & 1
        self.n_columns: NDArray[np.intp] = np.asarray(self.inner_sizes, dtype=np.intp) @ bits
        self.n_units: NDArray[np.intp] = bits.sum(axis=0)

    def held(self, outer: int) -> list[int]:
        """The outer units of a step."""
        return [unit for unit in range(self.n_outer) if outer >> unit & 1]

    def outer_columns(self, outer: int) -> list[int]:
        """The columns of a step's outer units."""
        return [column for unit in self.held(outer) for column in self._spans[unit]]

    def penalty(self, rule: Rule, kind: Kind, outer: int) -> Floats:
        """What a criterion adds to m log SSE, for every subset."""
        units = self.held(outer)
        n_columns = self.n_always + sum(self.outer_sizes[unit] for unit in units)
        key = (kind, n_columns, len(units))
        if key not in self._penalties:
            part = rule.penalties[kind][n_columns:, len(units) :]
            found = np.take(part.ravel(), self.n_columns * part.shape[1] + self.n_units)
            if len(self._penalties) == _PENALTIES:
                self._penalties.clear()
            self._penalties[key] = np.asarray(found)
        return self._penalties[key]


def enumerate_assignments(
    columns: Columns,
    rule: Rule,
    *,
    estimates: bool = True,
    progress: Callable[[int, str], None] | None = None,
) -> Enumeration:
    """Evaluate all 2^U assignments; without ``estimates``, sum only the weights and inclusion."""
    n_units = len(columns.order)
    room = int(np.log2(_NUMBERS / (len(columns.positions) + 6)))
    n_inner = min(n_units, _INNER, max(room, 1))
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
        columns, f = self._columns, self._columns.n_fixed
        n_columns, n_subsets = len(columns.least), 1 << found.n_inner
        self._values = np.zeros((n_columns + 5, n_subsets))
        self._values[n_columns] = -1.0
        inner = self._values[steps.first_inner : n_columns + 1]
        r = columns.matrix[f:, f:]
        self._subsets = Subsets(columns.sizes, found.n_inner, columns.least[f:], r, inner)
        self._weights = np.empty((len(KINDS), n_subsets))
        self._exact = self._places()

    def _places(self) -> dict[int, list[tuple[int, float]]]:
        """Find the assignments whose cost is known exactly: by step, their places and costs."""
        found: dict[int, list[tuple[int, float]]] = {}
        refitted, n_inner = self._rule.refitted, self._found.n_inner
        # A model without lambda is another model.
        if refitted is None or not self._columns.imr:
            return found
        units = self._columns.choices.units
        first = [units[unit][0] for unit in self._columns.order]
        order = [*range(self._steps.n_outer, len(first)), *range(self._steps.n_outer)]
        bits = refitted.masks[:, [first[unit] for unit in order]].astype(np.int64)
        for number, cost in zip(bits @ (1 << np.arange(len(order))), refitted.cost, strict=True):
            step, place = divmod(int(number), 1 << n_inner)
            found.setdefault(step, []).append((place, float(cost)))
        return found

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
        residual, feasible = self._subsets.solve(outer)
        here = slice(outer << self._found.n_inner, (outer + 1) << self._found.n_inner)
        sse = np.square(residual * columns.norms[-1])
        if columns.imr:
            imr = self._solve(known, r)
            variance = imr * imr
            variance *= rule.mean_delta
            variance += sse * (1.0 / rule.n_selected)
            sigma = np.sqrt(variance)
            if rule.goal.form is not None:
                # atanh rho is in the place of beta_H.
                rho = np.tanh(imr)
            else:
                with np.errstate(invalid="ignore", divide="ignore"):
                    rho = imr / sigma
            rho[~feasible] = np.nan
            self._found.rho[here] = rho
            feasible = rule.goal.in_range(rho)
        elif self._estimates:
            self._solve(known, r)
            rho, sigma = np.zeros_like(sse), np.sqrt(sse * (1.0 / rule.n_selected))
        feasible = feasible & np.isfinite(steps.penalty(rule, "bic", outer))
        if not feasible.any():
            return
        log_sse = rule.goal.misfit(sse)
        for place, cost in self._exact.get(outer, ()):
            log_sse[place] = cost / rule.n_selected
        log_sse[~feasible] = np.inf
        self._found.log_sse[here] = log_sse
        if self._estimates:
            rho[~feasible] = 0.0
            self._describe(outer, sse, rho, sigma)
        self._add(outer, log_sse)

    def _solve(self, known: list[int], r: Floats) -> Floats:
        """Solve for all coefficients; return lambda's, or the first column's without lambda."""
        columns, f, first = self._columns, len(known), self._steps.first_inner
        self._subsets.back_substitute()
        if not known:
            self._values[:first] = 0.0
            return np.asarray(self._values[0])
        rows = known if self._estimates else known[:1]
        within = np.asarray(linalg.solve_triangular(r[:f, :f], r[:f, f:], check_finite=False))
        spread = np.zeros((first if self._estimates else 1, r.shape[1] - f))
        spread[rows] = -within[: len(rows)]
        inner = self._values[first : len(columns.least) + 1]
        np.matmul(spread, inner, out=self._values[: len(spread)])
        return np.asarray(self._values[0] * (columns.norms[-1] / columns.norms[0]))

    def _describe(self, outer: int, sse: Floats, rho: Floats, sigma: Floats) -> None:
        """Fill in what is averaged besides the coefficients."""
        m, steps, goal = self._rule.n_selected, self._steps, self._rule.goal
        rows = self._values[-4:]
        rows[0], rows[1] = rho, sigma
        n_columns = steps.n_columns + steps.n_always + len(steps.outer_columns(outer))
        free = np.maximum(m - n_columns - 1.0, 1.0)
        rows[2] = 1.0 - sse * ((m - 1.0) / goal.total_squares) / free
        rows[3] = np.abs(rho) >= 1.0

    def _add(self, outer: int, log_sse: Floats) -> None:
        """Add the weights of a step to the sums."""
        rule, steps, sums = self._rule, self._steps, self._found.sums
        fit = rule.n_selected * log_sse
        for kind, weight in zip(KINDS, self._weights, strict=True):
            np.add(fit, steps.penalty(rule, kind, outer), out=weight)
            sums[kind].rescale(float(weight.min()))
            np.subtract(sums[kind].best, weight, out=weight)
            _halve_and_exp(weight)
        held = np.zeros(steps.n_outer)
        held[steps.held(outer)] = 1.0
        inclusion, total = _inclusion(self._weights, self._found.n_inner)
        for row, kind in enumerate(KINDS):
            sums[kind].total += total[row]
            sums[kind].inclusion += np.concatenate([held * total[row], inclusion[row]])
        if not self._estimates:
            return
        positive = (self._values[: len(self._columns.least)] > 0.0).astype(np.float64)
        for kind in rule.own:
            weight = self._weights[KINDS.index(kind)]
            sums[kind].values += self._values @ weight
            sums[kind].positive += positive @ weight


def _halve_and_exp(values: Floats) -> None:
    """Replace values by exp(values / 2), or by zero if that is less than about 1e-304."""
    values *= 0.5
    # Where it underflows, exp takes ten times as long.
    np.maximum(values, _LEAST, out=values)
    np.exp(values, out=values)
    values -= np.exp(_LEAST)


def _inclusion(weights: Floats, n_units: int) -> tuple[Floats, Floats]:
    """Weight of the subsets that hold each unit, (N, U), and of all, (N,), from (N, 2^U)."""
    inclusion = np.empty((len(weights), n_units))
    for unit in reversed(range(n_units)):
        held = weights[:, 1 << unit :]
        inclusion[:, unit] = held.sum(axis=1)
        weights = weights[:, : 1 << unit] + held
    return inclusion, weights[:, 0]
