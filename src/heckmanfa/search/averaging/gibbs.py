"""A Gibbs sampler over assignments, for more units than can be enumerated.

Chains for the three kinds of weights run side by side. A step takes a block of units and
draws which of them a chain holds, given the rest, from their exact joint distribution: all subsets
of the block are evaluated. Every second sweep puts correlated units into the same block, so they
change places in one move. The shares of weight are averages of probabilities instead of counts.

Each chain keeps the principal pivot transform M of the Gram matrix G of the units' columns and y,
from which what is always held is projected out. For the columns D held, M_DD is the inverse of
G_DD, M_yD holds the coefficients, and M_yy is the cost. Rounding is kept in check
by recomputing M every few sweeps, and by treating columns as collinear well above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import solve_upper
from heckmanfa.search.averaging.weights import (
    WEIGHT_CRITERIA,
    Columns,
    Rule,
    WeightCriterion,
    as_counts,
)

# Chains per kind of weights; halves of them are compared.
_CHAINS = 8
# The most units and columns of a block; a larger unit is a block of its own.
_BLOCK = 7
_BLOCK_COLUMNS = 28
# Below this share of a column's squared length outside the span of others, they are collinear.
_PIVOT = 1e-9
_BURN_IN = 40
_MOST_AT_START = 200
_ROUND = 50
_REBUILD = 10
# Chains stop at this share of the disagreement that is reported, since it is itself a draw.
_STOP = 0.7
# There are at most this many sweeps divided by the number of units, but never fewer than _FEWEST.
_STEPS = 25_000
_FEWEST = 100

LEAST_SWEEPS = 200
"""sweeps after which the chains are first compared, if there are more"""

AGREEMENT = 0.01
"""Chains agree if no share differs by more between halves of them."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """The states of all chains after each of T sweeps; chains are sorted by kind of weights."""

    inside: Mask
    """(T, C, U)"""
    effects: Floats
    """(C, c) means over sweeps of the effects of scaled columns"""
    positive: Floats
    """(C, c) likewise, of whether they are above zero"""
    negative: Floats
    """(C, c) and below zero"""
    cost: Floats
    """(T, C)"""
    ends: Floats
    """(T, C, E + 1) error terms that are averaged, and whether the form does not hold for rho"""
    shares: Floats
    """(C, U) means over sweeps of the probability that a unit is held"""
    beside_index: Floats
    """(C, U) likewise, that a unit and the index are held"""
    disagreement: float
    """largest difference of a share between halves of the chains"""

    def chains(self, kind: WeightCriterion) -> slice:
        """The chains of a kind of weights."""
        n_chains = self.inside.shape[1] // len(WEIGHT_CRITERIA)
        first = WEIGHT_CRITERIA.index(kind) * n_chains
        return slice(first, first + n_chains)


def sample_assignments(
    columns: Columns,
    rule: Rule,
    random: np.random.Generator,
    *,
    max_sweeps: int | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> Sampled:
    """Run the chains until halves of them agree, or for a fixed number of sweeps."""
    chains = _Chains(columns, rule, random)
    n_units = len(columns.order)
    most = _most(n_units, max_sweeps)
    least = min(LEAST_SWEEPS, most)
    for done in range(_BURN_IN):
        chains.sweep()
        if progress is not None:
            progress(done + 1, "")
    states: list[tuple[Any, ...]] = []
    shares, beside = np.zeros((2, len(chains.inside), n_units))
    effects, positive, negative = np.zeros((3, len(chains.inside), len(columns.places)))
    disagreement = np.inf
    while len(states) < most:
        held, with_index = chains.sweep()
        shares += held
        beside += with_index
        now = chains.effects()
        states.append(chains.state(now))
        effects += now
        above, below = columns.signs(now.T)
        positive += above.T
        negative += below.T
        done = len(states)
        if progress is not None:
            progress(_BURN_IN + done, "")
        if done == most or (done % _ROUND == 0 and done >= least):
            disagreement = _disagreement(shares / done)
            if disagreement <= _STOP * AGREEMENT:
                break
    parts = [np.array(column) for column in zip(*states, strict=True)]
    return Sampled(
        inside=parts[0],
        effects=effects / len(states),
        positive=positive / len(states),
        negative=negative / len(states),
        cost=parts[1],
        ends=parts[2],
        shares=shares / len(states),
        beside_index=beside / len(states),
        disagreement=disagreement,
    )


def most_sweeps(n_units: int, max_sweeps: int | None = None) -> int:
    """The most sweeps of chains over so many units, with those before any is kept."""
    return _BURN_IN + _most(n_units, max_sweeps)


def _most(n_units: int, max_sweeps: int | None) -> int:
    most = max(_STEPS // n_units, _FEWEST)
    return most if max_sweeps is None else min(most, max_sweeps)


def _disagreement(shares: Floats) -> float:
    by_kind = shares.reshape(len(WEIGHT_CRITERIA), 2, -1, shares.shape[1]).mean(axis=2)
    return float(np.abs(by_kind[:, 0] - by_kind[:, 1]).max())


class _Chains:
    """The chains' states, and the steps that change them."""

    def __init__(self, columns: Columns, rule: Rule, random: np.random.Generator) -> None:
        self._columns, self._rule, self._random = columns, rule, random
        f, r = columns.n_fixed, columns.matrix
        self._gram = r[f:, f:].T @ r[f:, f:]
        self._within = solve_upper(r[:f, :f], r[:f, f:])
        self._cost = columns.norms[-1] ** 2
        self._sizes = np.array(columns.sizes, dtype=np.intp)
        ends = np.cumsum(self._sizes)
        self._spans = [
            np.arange(end - size, end) for end, size in zip(ends, self._sizes, strict=True)
        ]
        self._of_column = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._last = len(self._gram) - 1
        first = ends - self._sizes
        correlation = np.abs(self._gram[:-1, :-1])
        correlation = np.maximum.reduceat(correlation, first, axis=0)
        self._close = np.maximum.reduceat(correlation, first, axis=1)
        n_chains = len(WEIGHT_CRITERIA) * _CHAINS
        self._penalties = np.stack(
            [rule.penalties[kind] for kind in WEIGHT_CRITERIA for _ in range(_CHAINS)]
        )
        self.inside: Mask = np.zeros((n_chains, len(self._sizes)), dtype=bool)
        self._matrix = np.empty((n_chains, *self._gram.shape))
        self._n_sweeps = 0
        self._start()

    def _start(self) -> None:
        """Start from no unit, from as many as possible, and from random ones in between."""
        columns, first = self._columns, int(self._columns.has_index)
        allowed = np.isfinite(self._rule.penalties["bic"]).any(axis=(1, 2))
        most = int(np.flatnonzero(allowed)[-1:].sum()) - len(columns.choices.always)
        units = np.arange(first, len(self._sizes))
        for chain in range(len(self.inside)):
            matrix = self._gram.copy()
            held = 0
            tried = self._random.permutation(units)
            wanted = min(int(len(units) * (0.0, 1.0, 0.25, 0.5)[chain % 4]), _MOST_AT_START)
            for unit in tried[:wanted]:
                span = self._spans[unit]
                if held + columns.n_columns[unit] > most:
                    continue
                left = np.linalg.eigvalsh(matrix[np.ix_(span, span)])[0]
                if left > _PIVOT:
                    _pivot(matrix, span)
                    self.inside[chain, unit] = True
                    held += int(columns.n_columns[unit])
            self._matrix[chain] = matrix

    def sweep(self) -> tuple[Floats, Floats]:
        """Draw every unit once, block by block; return probabilities, (C, U) each.

        They are those of each unit to be held, and to be held together with the index.
        """
        shares, beside = np.zeros((2, *self.inside.shape))
        for block in self._blocks():
            shares[:, block], beside[:, block] = self._draw(block)
        self._n_sweeps += 1
        if self._n_sweeps % _REBUILD == 0:
            self._rebuild()
        return shares, beside

    def _blocks(self) -> Iterator[NDArray[np.intp]]:
        """Random blocks; in every second sweep, a random unit each with those most correlated."""
        left = self._random.permutation(len(self._sizes))
        while len(left):
            if self._n_sweeps % 2:
                near = np.argsort(-self._close[left[0], left[1:]], kind="stable")
                left[1:] = left[1:][near]
            n_columns = np.cumsum(self._sizes[left[:_BLOCK]])
            size = max(int(np.searchsorted(n_columns, _BLOCK_COLUMNS, side="right")), 1)
            block, left = left[:size], left[size:]
            if self._n_sweeps % 2:
                left = self._random.permutation(left)
            yield np.sort(block)

    def _rebuild(self) -> None:
        """Recompute every chain's transform."""
        for chain, inside in enumerate(self.inside):
            matrix = self._gram.copy()
            _pivot(matrix, np.flatnonzero(inside[self._of_column]))
            self._matrix[chain] = matrix

    def _draw(self, block: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Draw the units of a block given the others; return `sweep`'s of these, (C, B) each."""
        columns, now = self._columns, self.inside[:, block]
        cost, feasible = self._subsets(block, now)
        bits = _bits(len(block))
        tally = columns.tally
        rest = self.inside @ tally - now @ tally[block]
        counts = as_counts(rest + (bits @ tally[block])[:, None])
        with_index = np.zeros(cost.shape, dtype=bool)
        if columns.has_index:
            # The index is the first unit; a block is sorted.
            inside = bits[:, :1] > 0 if block[0] == 0 else self.inside[:, 0]
            with_index = np.broadcast_to(inside, cost.shape)
        criterion = cost + columns.penalty(self._penalties, counts, with_index)
        criterion[~feasible] = np.inf
        weight = np.exp(0.5 * (criterion.min(axis=0) - criterion))
        total = np.cumsum(weight, axis=0)
        places = self._random.random(len(now)) * total[-1]
        chosen = np.minimum((total <= places).sum(axis=0), len(weight) - 1)
        shares = (weight.T @ bits) / total[-1][:, None]
        beside = ((weight * with_index).T @ bits) / total[-1][:, None]
        self._move(block, now, bits[chosen] > 0)
        return np.asarray(shares), np.asarray(beside)

    def _subsets(self, block: NDArray[np.intp], now: Mask) -> tuple[Floats, Mask]:
        """Return the cost of all subsets of a block, and whether each is feasible, (2^B, C)."""
        columns = np.concatenate([self._spans[unit] for unit in block])
        some = np.append(columns, self._last)
        small = self._matrix[:, some[:, None], some]
        held = np.zeros((len(now), len(some)), dtype=bool)
        held[:, : len(columns)] = np.repeat(now, self._sizes[block], axis=1)
        tableau = np.ascontiguousarray(np.moveaxis(_pivot_many(small, held), 0, 2))
        feasible = np.ones(tableau.shape[2], dtype=bool)
        for unit in block:
            size = self._sizes[unit]
            included, usable = tableau, feasible
            for _ in range(size):
                pivot = included[0, 0]
                good = pivot > _PIVOT
                usable = usable & good
                factor = included[1:, 0] / np.where(good, pivot, 1.0)
                included = included[1:, 1:] - factor[:, None] * included[0, 1:]
            tableau = np.concatenate([tableau[size:, size:], included], axis=2)
            feasible = np.concatenate([feasible, usable])
        shape = (-1, len(now))
        cost = self._cost * np.maximum(tableau[0, 0].reshape(shape), 0.0)
        return cost, feasible.reshape(shape)

    def _move(self, block: NDArray[np.intp], now: Mask, new: Mask) -> None:
        """Pivot the chains' matrices on what changes."""
        columns = np.concatenate([self._spans[unit] for unit in block])
        changed = np.repeat(now != new, self._sizes[block], axis=1)
        inverse = _inverses(self._matrix[:, columns[:, None], columns], changed)
        for chain in np.flatnonzero(changed.any(axis=1)):
            some = changed[chain]
            _pivot(self._matrix[chain], columns[some], inverse[chain][some][:, some])
        self.inside[:, block] = new

    def effects(self) -> Floats:
        """Effects of the scaled columns, (C, c), zero where a column is absent."""
        columns = self._columns
        held = self.inside[:, self._of_column]
        free = np.where(held, self._matrix[:, self._last, :-1], 0.0)
        always = self._within[:, -1] - free @ self._within[:, :-1].T
        coef = np.concatenate([always, free], axis=1)
        return coef + coef[:, columns.indexes] @ columns.index_effects

    def state(self, effects: Floats) -> tuple[Mask, Floats, Floats]:
        """What is held, the cost, and what is averaged of the errors, (C, ...), given effects."""
        columns, ends = self._columns, self._columns.form.ends
        cost = self._cost * np.maximum(self._matrix[:, self._last, self._last], 0.0)
        base, slopes = columns.last_estimates
        errors = ends.values(base + effects @ slopes.T)
        averaged = np.stack([*ends.to_average(errors), ends.misfits(errors)], axis=-1)
        return self.inside.copy(), cost, averaged


def _bits(n_units: int) -> NDArray[np.intp]:
    """Which units each subset holds, (2^U, U)."""
    return (np.arange(1 << n_units)[:, None] >> np.arange(n_units)) & 1


def _pivot(matrix: Floats, on: NDArray[np.intp], inverse: Floats | None = None) -> None:
    """Principal pivot transform of a matrix, in place; ``inverse`` is that of its pivot block."""
    columns = matrix[:, on]
    if inverse is None:
        inverse = np.asarray(np.linalg.inv(columns[on]))
    rows = inverse @ matrix[on]
    # BLAS updates the transpose in place: a temporary of this size would take most of the time.
    blas.dgemm(-1.0, rows.T, columns.T, beta=1.0, c=matrix.T, overwrite_c=True)
    matrix[on] = -rows
    matrix[:, on] = columns @ inverse
    matrix[on[:, None], on] = inverse


def _inverses(matrices: Floats, on: Mask) -> Floats:
    """Inverses of blocks of (C, s, s) matrices, each on its own rows, and zero elsewhere."""
    both = on[:, :, None] & on[:, None, :]
    inverse = np.linalg.inv(np.where(both, matrices, np.eye(matrices.shape[1])))
    return np.where(both, inverse, 0.0)


def _pivot_many(matrices: Floats, on: Mask) -> Floats:
    """Principal pivot transforms of (C, s, s) matrices, each on its own rows, (C, s)."""
    inverse = _inverses(matrices, on)
    rows, columns = inverse @ matrices, matrices @ inverse
    pivoted = matrices - matrices @ rows
    pivoted = np.where(on[:, :, None], -rows, pivoted)
    pivoted = np.where(on[:, None, :], columns, pivoted)
    return np.where(on[:, :, None] & on[:, None, :], inverse, pivoted)
