"""Evaluate every assignment of up to some twenty units, and sum what an average needs.

Assignment a holds inner unit t if bit t of a is set, and unit e of the outer ones if bit q + e is
set. Each set of outer units is one step: a QR decomposition, then `Subsets` of the q inner units.
The index is an outer unit. Weights are relative to the best criterion so far; a better one rescales
the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.averaging.result import MOST_COMPONENTS, Estimates, Kept, pack_states
from heckmanfa.search.averaging.subsets import Subsets
from heckmanfa.search.averaging.weights import WEIGHT_CRITERIA, Columns, Rule, WeightCriterion
from heckmanfa.search.goal import KEPT, first_of_ties

# The most inner units, and the most numbers in the estimates of a step: they stay in the cache.
_INNER = 14
_NUMBERS = 2**19
# Weights below exp of this, relative to the heaviest, are zero.
_LEAST = -700.0
# The most vectors of penalties that are kept.
_PENALTIES = 128


@dataclass
class Sums:
    """Sums over assignments of a weight, relative to the best, times what is averaged."""

    best: float = np.inf
    """the least criterion so far"""
    total: float = 0.0
    inclusion: Any = 0.0
    """(U,)"""
    beside_index: Any = 0.0
    """(U,) likewise, of assignments that hold the index as well"""
    values: Any = 0.0
    """(c + 2 + E,) effects of the scaled columns, a constant, the E error terms that are averaged,
    such as rho and sigma, and whether |rho| >= 1"""
    positive: Any = 0.0
    """(c,) effects above zero"""
    negative: Any = 0.0
    """(c,) effects below zero"""

    def rescale(self, best: float) -> None:
        """Make the sums relative to a better assignment."""
        if best < self.best:
            factor = np.exp(0.5 * (best - self.best))
            self.best = best
            for name in ("total", "inclusion", "beside_index", "values", "positive", "negative"):
                setattr(self, name, getattr(self, name) * factor)


@dataclass
class Enumeration:
    """Every assignment evaluated."""

    columns: Columns
    rule: Rule
    n_inner: int
    cost: Floats
    """(2^U,), infinite for assignments that weigh nothing"""
    rho: Floats
    """(2^U,), NaN for assignments that cannot be solved, and if there is not one rho"""
    sums: dict[WeightCriterion, Sums] = field(default_factory=dict)

    @cached_property
    def steps(self) -> _Steps:
        """What the steps hold, with the penalties that are known already."""
        return _Steps(self.columns, self.n_inner)

    def inside(self, assignments: NDArray[np.intp]) -> Mask:
        """Masks over the units of some assignments, (B, U)."""
        n_outer = len(self.columns.order) - self.n_inner
        bits = [self.n_inner + e for e in range(n_outer)] + list(range(self.n_inner))
        return np.asarray((assignments[:, None] >> np.array(bits, dtype=np.intp)) & 1 > 0)

    def weights(self, kind: WeightCriterion) -> Floats:
        """Weights of all assignments, (2^U,), summing to one."""
        steps, sums = self.steps, self.sums[kind]
        values = np.empty_like(self.cost)
        shape = (-1, 1 << self.n_inner)
        least = sums.best - 2.0 * np.log(sums.total)
        for outer, (cost, weights) in enumerate(
            zip(self.cost.reshape(shape), values.reshape(shape), strict=True)
        ):
            np.subtract(least - steps.penalty(self.rule, kind, outer), cost, out=weights)
            _halve_and_exp(weights)
        return values


class _Steps:
    """Which columns and how many of them each step and each subset hold."""

    def __init__(self, columns: Columns, n_inner: int) -> None:
        self._columns = columns
        self.n_outer = len(columns.sizes) - n_inner
        starts = columns.n_fixed + np.concatenate([[0], np.cumsum(columns.sizes)]).astype(int)
        self._spans = [range(a, b) for a, b in pairwise(starts)]
        self.first_inner = int(starts[self.n_outer])
        self._penalties: dict[tuple[Any, ...], Floats] = {}
        subsets = np.arange(1 << n_inner)[:, None]
        self._counts = columns.counts((subsets >> np.arange(n_inner)) & 1, self.n_outer)

    def held(self, outer: int) -> list[int]:
        """The outer units of a step."""
        return [unit for unit in range(self.n_outer) if outer >> unit & 1]

    def outer_columns(self, outer: int) -> list[int]:
        """The columns of a step's outer units."""
        return [column for unit in self.held(outer) for column in self._spans[unit]]

    def holds_index(self, outer: int) -> bool:
        """Whether a step holds the index, the first unit."""
        return self._columns.has_index and bool(outer & 1)

    def penalty(self, rule: Rule, kind: WeightCriterion, outer: int) -> Floats:
        """What a criterion adds to the cost, for every subset; infinite if it is not offered."""
        bits = (outer >> np.arange(self.n_outer)) & 1
        counts = self._columns.counts(bits, 0)
        key = (kind, self.holds_index(outer), *(float(count) for count in counts))
        if key not in self._penalties:
            both = [mine + other for mine, other in zip(counts, self._counts, strict=True)]
            if len(self._penalties) == _PENALTIES:
                self._penalties.clear()
            self._penalties[key] = self._columns.penalty(rule.penalties[kind], both, key[1])
        return self._penalties[key]


def enumerate_assignments(
    columns: Columns,
    rule: Rule,
    *,
    progress: Callable[[int, str], None] | None = None,
) -> Enumeration:
    """Evaluate all 2^U assignments."""
    n_units = len(columns.order)
    room = int(np.log2(_NUMBERS / (len(columns.places) + 5)))
    n_inner = min(n_units - columns.has_index, _INNER, max(room, 1))
    enumeration = Enumeration(
        columns=columns,
        rule=rule,
        n_inner=n_inner,
        cost=np.full(1 << n_units, np.inf),
        rho=np.full(1 << n_units, np.nan),
        sums={kind: Sums() for kind in WEIGHT_CRITERIA},
    )
    step = _Step(enumeration)
    for outer in range(1 << (n_units - n_inner)):
        step.run(outer)
        if progress is not None:
            progress((outer + 1) << n_inner, "")
    return enumeration


class _Step:
    """Evaluates the assignments of one set of outer units after another."""

    def __init__(self, enumeration: Enumeration) -> None:
        self._enumeration, self._steps = enumeration, enumeration.steps
        self._columns, self._rule = enumeration.columns, enumeration.rule
        columns, f = self._columns, self._columns.n_fixed
        n_columns, n_subsets = len(columns.places), 1 << enumeration.n_inner
        n_ends = len(columns.form.ends.averaged)
        self._values = np.zeros((n_columns + 2 + n_ends, n_subsets))
        """coefficients, and what `Sums.values` has besides"""
        self._moved = np.zeros_like(self._values)
        """the same of a step that holds the index: effects in place of coefficients"""
        self._values[n_columns] = -1.0
        inner = self._values[self._steps.first_inner : n_columns + 1]
        r = columns.matrix[f:, f:]
        self._subsets = Subsets(columns.sizes, enumeration.n_inner, columns.least[f:], r, inner)
        self._weights = np.empty((len(WEIGHT_CRITERIA), n_subsets))

    def run(self, outer: int) -> None:
        """Evaluate all assignments with one set of outer units."""
        columns, steps, rule = self._columns, self._steps, self._rule
        known = [*range(columns.n_fixed), *steps.outer_columns(outer)]
        f = len(known)
        last = len(columns.places)
        chosen = [*known, *range(steps.first_inner, last + 1)]
        r: Floats = np.asarray(np.linalg.qr(columns.matrix[:, chosen], mode="r"))
        if not np.all(np.abs(np.diagonal(r)[:f]) > columns.least[known]):
            return
        residual, feasible = self._subsets.solve(outer)
        here = slice(outer << self._enumeration.n_inner, (outer + 1) << self._enumeration.n_inner)
        feasible = feasible & np.isfinite(steps.penalty(rule, "bic", outer))
        if not feasible.any():
            return
        self._solve(known, r)
        errors = self._describe(steps.holds_index(outer), feasible)
        if "rho" in errors:
            self._enumeration.rho[here] = np.where(feasible, errors["rho"], np.nan)
            feasible &= rule.in_range(errors["rho"])
        feasible &= columns.form.ends.holds_at(errors)
        cost = np.square(residual * columns.norms[-1])
        cost[~feasible] = np.inf
        self._enumeration.cost[here] = cost
        if feasible.any():
            self._add(outer, cost)

    def _solve(self, known: list[int], r: Floats) -> None:
        """Solve for the coefficients of all columns."""
        columns, f, first = self._columns, len(known), self._steps.first_inner
        self._subsets.back_substitute()
        if not known:
            self._values[:first] = 0.0
            return
        within = np.asarray(linalg.solve_triangular(r[:f, :f], r[:f, f:], check_finite=False))
        spread = np.zeros((first, r.shape[1] - f))
        spread[known] = -within
        inner = self._values[first : len(columns.places) + 1]
        np.matmul(spread, inner, out=self._values[:first])

    def _describe(self, holds_index: bool, feasible: Mask) -> dict[str, Floats]:
        """Fill in the effects and what is averaged of the errors; return all error terms."""
        columns, n = self._columns, len(self._columns.places)
        values = self._values
        if holds_index:
            shared, values = values[columns.indexes], self._moved
            np.matmul(columns.index_effects.T, shared, out=values[:n])
            values[:n] += self._values[:n]
            values[n] = -1.0
        base, slopes = columns.last_estimates
        last = base[:, None] + slopes @ values[:n]
        last[:, ~feasible] = 0.0
        ends = columns.form.ends
        errors = ends.values(last.T)
        for place, value in enumerate(ends.to_average(errors), n + 1):
            values[place] = value
        values[-1] = ends.misfits(errors)
        values[n + 1 :, ~feasible] = 0.0
        return errors

    def _add(self, outer: int, cost: Floats) -> None:
        """Add the weights of a step to the sums."""
        rule, steps, sums = self._rule, self._steps, self._enumeration.sums
        for kind, weight in zip(WEIGHT_CRITERIA, self._weights, strict=True):
            np.add(cost, steps.penalty(rule, kind, outer), out=weight)
            sums[kind].rescale(float(weight.min()))
            np.subtract(sums[kind].best, weight, out=weight)
            _halve_and_exp(weight)
        held = np.zeros(steps.n_outer)
        held[steps.held(outer)] = 1.0
        inclusion, total = _inclusion(self._weights, self._enumeration.n_inner)
        for row, kind in enumerate(WEIGHT_CRITERIA):
            shares = np.concatenate([held * total[row], inclusion[row]])
            sums[kind].total += total[row]
            sums[kind].inclusion += shares
            sums[kind].beside_index += shares * steps.holds_index(outer)
        values = self._moved if steps.holds_index(outer) else self._values
        effects = values[: len(self._columns.places)]
        positive, negative = (sign.astype(np.float64) for sign in self._columns.signs(effects))
        for kind in rule.own:
            weight = self._weights[WEIGHT_CRITERIA.index(kind)]
            sums[kind].values += values @ weight
            sums[kind].positive += positive @ weight
            sums[kind].negative += negative @ weight


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


def estimates_of(enumeration: Enumeration) -> Estimates:
    """Divide the sums of an enumeration by the sums of the weights."""
    own = [enumeration.sums[kind] for kind in enumeration.rule.own]
    n = len(enumeration.columns.places)

    def mean(name: str) -> Floats:
        return np.asarray(np.mean([getattr(sums, name) / sums.total for sums in own], axis=0))

    values = mean("values")
    return Estimates(
        inclusion={kind: sums.inclusion / sums.total for kind, sums in enumeration.sums.items()},
        beside_index={
            kind: sums.beside_index / sums.total for kind, sums in enumeration.sums.items()
        },
        effects=values[:n],
        positive=mean("positive"),
        negative=mean("negative"),
        others=values[n + 1 :],
    )


def kept_of(enumeration: Enumeration, random: np.random.Generator) -> Kept:
    """Find the heaviest assignments, and those for intervals."""
    rule = enumeration.rule
    n_assignments = int(np.count_nonzero(np.isfinite(enumeration.cost)))
    best_weight: dict[str, float] = {}
    n_half: dict[str, int] = {}
    own = np.zeros(0)
    for kind in WEIGHT_CRITERIA:
        weight = enumeration.weights(kind)
        best_weight[kind], n_half[kind] = float(weight.max()), _half(weight)
        if kind in rule.own:
            own = weight if len(own) == 0 else 0.5 * (own + weight)
    if rule.weights == "mean":
        best_weight["mean"], n_half["mean"] = float(own.max()), _half(own)
    leading, weight = _heaviest(enumeration, own, min(KEPT, n_assignments))
    chosen, component_weights, drawn = _components(own, leading, weight, random)
    return Kept(
        exhaustive=True,
        n_assignments=n_assignments,
        best_weight=best_weight,
        n_half=n_half,
        leading=_packed(enumeration, leading),
        leading_weight=weight,
        leading_cost=enumeration.cost[leading],
        leading_rho=enumeration.rho[leading],
        components=_packed(enumeration, chosen),
        component_weights=component_weights,
        components_drawn=drawn,
    )


def _packed(enumeration: Enumeration, assignments: NDArray[np.intp]) -> NDArray[np.uint8]:
    return pack_states(enumeration.columns.states(enumeration.inside(assignments)))


def _half(weight: Floats) -> int:
    """How many of the heaviest assignments carry half of the weight."""
    # All that weigh less than this share of the heaviest carry less than a quarter of its weight.
    some = weight[weight >= weight.max() / (4.0 * len(weight))]
    some.sort()
    carried = np.cumsum(some[::-1])
    # Rounding must not decide between two assignments of equal weight.
    return int(np.searchsorted(carried, 0.5 * (1.0 - 1e-12))) + 1


def _heaviest(enumeration: Enumeration, own: Floats, count: int) -> tuple[NDArray[np.intp], Floats]:
    """The heaviest assignments, best first, and their weights."""
    chosen = np.argpartition(own, len(own) - count)[len(own) - count :]
    chosen.sort()
    chosen = chosen[own[chosen] > 0.0]
    loss = -2.0 / enumeration.rule.n_selected * np.log(own[chosen])
    ranked = first_of_ties(loss, enumeration.columns.states(enumeration.inside(chosen)))
    chosen = chosen[ranked]
    return chosen, own[chosen]


def _components(
    own: Floats, leading: NDArray[np.intp], weight: Floats, random: np.random.Generator
) -> tuple[NDArray[np.intp], Floats, bool]:
    """The assignments for intervals: all that weigh anything, otherwise draws by weight."""
    if len(leading) <= MOST_COMPONENTS:
        return leading, weight / weight.sum(), False
    # Evenly spaced places along the sum of the weights, from a random start.
    places = (random.random() + np.arange(MOST_COMPONENTS)) / MOST_COMPONENTS
    cumulated = np.cumsum(own)
    drawn = np.searchsorted(cumulated, places * cumulated[-1], side="right")
    chosen, counts = np.unique(np.minimum(drawn, len(own) - 1), return_counts=True)
    order = np.argsort(-own[chosen], kind="stable")
    return chosen[order], counts[order] / MOST_COMPONENTS, True
