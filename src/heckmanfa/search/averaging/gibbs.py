"""A Gibbs sampler over assignments, for more units than can be enumerated.

Chains for the three kinds of weights run side by side. A step takes a block of units and
draws which of them a chain holds, given the rest, from their exact joint distribution: all subsets
of the block are evaluated. Every second sweep puts correlated units into the same block, so they
change places in one move. The shares of weight are averages of probabilities instead of counts.

Each chain keeps the principal pivot transform M of the Gram matrix G of [lambda, X, y], from which
the intercept and the features that are always in are projected out. For the columns D held, M_DD
is the inverse of G_DD, M_yD holds the coefficients, and M_yy is the SSE. Rounding is kept in check
by computing M afresh every few sweeps, and by taking columns as collinear well above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import solve_upper
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule

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
    coef: Floats
    """(C, c) means over sweeps of the coefficients of scaled columns"""
    positive: Floats
    """(C, c) likewise, of whether they are above zero"""
    sse: Floats
    """(T, C)"""
    rho: Floats
    """(T, C)"""
    sigma: Floats
    """(T, C)"""
    rival: Floats | None
    """(C, 1 + U) means over sweeps of exp(-criterion / 2) without lambda, relative to with it: of
    all assignments, and of those that hold each unit"""
    shares: Floats
    """(C, U) means over sweeps of the probability that a unit is held"""
    disagreement: float
    """largest difference of a share between halves of the chains"""

    def chains(self, kind: Kind) -> slice:
        """The chains of a kind of weights."""
        n_chains = self.inside.shape[1] // len(KINDS)
        first = KINDS.index(kind) * n_chains
        return slice(first, first + n_chains)


class NoStateError(Exception):
    """No chain found an assignment with a positive weight."""

    def __init__(self, n_evaluated: int, rho: Floats, inside: Mask) -> None:
        super().__init__()
        self.n_evaluated = n_evaluated
        self.rho = rho
        """(B,) where the chains began and where they ended"""
        self.inside = inside
        """(B, U)"""


def sample_assignments(
    columns: Columns,
    rule: Rule,
    random: np.random.Generator,
    *,
    free: Mapping[Kind, Floats] | None = None,
    max_sweeps: int | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> Sampled:
    """Run the chains until halves of them agree, or for a fixed number of sweeps.

    ``free`` are the penalties of models without lambda, if these are to be weighed too.
    """
    chains = _Chains(columns, rule, random, free)
    n_units = len(columns.order)
    most = _most(n_units, max_sweeps)
    least = min(LEAST_SWEEPS, most)
    for done in range(_BURN_IN):
        chains.sweep()
        if progress is not None:
            progress(done + 1, "")
    chains.replace_stuck()
    chains.rival[:] = 0.0
    states: list[tuple[Any, ...]] = []
    shares = np.zeros((len(chains.inside), n_units))
    coef, positive = np.zeros((2, len(chains.inside), len(columns.least)))
    disagreement = np.inf
    while len(states) < most:
        shares += chains.sweep()
        states.append(chains.state())
        now = chains.coef()
        coef += now
        positive += now > 0.0
        done = len(states)
        if progress is not None:
            progress(_BURN_IN + done, "")
        if done == most or (done % _ROUND == 0 and done >= least):
            disagreement = _disagreement(shares / done)
            if disagreement <= _STOP * AGREEMENT:
                break
    parts = [np.array(part) for part in zip(*states, strict=True)]
    if np.isinf(disagreement):
        disagreement = _disagreement(shares / len(states))
    return Sampled(
        inside=parts[0],
        coef=coef / len(states),
        positive=positive / len(states),
        sse=parts[1],
        rho=parts[2],
        sigma=parts[3],
        rival=None if free is None else chains.rival / len(states),
        shares=shares / len(states),
        disagreement=disagreement,
    )


def most_sweeps(n_units: int, max_sweeps: int | None = None) -> int:
    """The most sweeps of chains over so many units, with those before any is kept."""
    return _BURN_IN + _most(n_units, max_sweeps)


def _most(n_units: int, max_sweeps: int | None) -> int:
    most = max(_STEPS // n_units, _FEWEST)
    return most if max_sweeps is None else min(most, max_sweeps)


def _disagreement(shares: Floats) -> float:
    by_kind = shares.reshape(len(KINDS), 2, -1, shares.shape[1]).mean(axis=2)
    return float(np.abs(by_kind[:, 0] - by_kind[:, 1]).max())


class _Chains:
    """The chains' states, and the steps that change them."""

    def __init__(
        self,
        columns: Columns,
        rule: Rule,
        random: np.random.Generator,
        free: Mapping[Kind, Floats] | None,
    ) -> None:
        self._rule, self._random = rule, random
        self._n_always = columns.n_fixed - 1
        order = [*range(1, columns.n_fixed), 0, *range(columns.n_fixed, len(columns.norms))]
        r: Floats = np.asarray(np.linalg.qr(columns.matrix[:, order], mode="r"))
        a = self._n_always
        self._gram = r[a:, a:].T @ r[a:, a:]
        self._within = solve_upper(r[:a, :a], r[:a, a:])
        keep = [0, *range(columns.n_fixed, len(columns.norms))]
        self._norms = columns.norms[keep]
        self._least = np.maximum(columns.least[keep[:-1]] ** 2, _PIVOT)
        self._sizes = np.array(columns.sizes, dtype=np.intp)
        ends = 1 + np.cumsum(self._sizes)
        self._spans = [
            np.arange(end - size, end) for end, size in zip(ends, self._sizes, strict=True)
        ]
        self._of_column = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._last = len(self._gram) - 1
        first = ends - self._sizes
        correlation = np.abs(self._gram[1:-1, 1:-1])
        if len(first):
            correlation = np.maximum.reduceat(correlation, first - 1, axis=0)
            correlation = np.maximum.reduceat(correlation, first - 1, axis=1)
        self._close = correlation
        n_chains = len(KINDS) * _CHAINS
        self._target = np.repeat(np.arange(len(KINDS)), _CHAINS)
        self._penalties = np.stack([rule.penalties[kind] for kind in KINDS])
        self._free = None if free is None else np.stack([free[kind] for kind in KINDS])
        self.rival = np.zeros((n_chains, 1 + len(self._sizes)))
        """sums over sweeps of the weight without lambda relative to that with it, (C, 1 + U)"""
        self._counts = np.arange(n_chains)
        self.inside: Mask = np.zeros((n_chains, len(self._sizes)), dtype=bool)
        self._alive = np.zeros(n_chains, dtype=bool)
        self._matrix = np.empty((n_chains, *self._gram.shape))
        self._n_sweeps = self._n_evaluated = 0
        self._start()
        self._first = self.inside.copy(), self.state()[2]

    def _start(self) -> None:
        """Start from no unit, from as many as possible, and from random ones in between."""
        n_units = len(self._sizes)
        most = int(np.flatnonzero(np.isfinite(self._penalties[1]).any(axis=1))[-1:].sum())
        for chain in range(len(self.inside)):
            matrix = self._gram.copy()
            _pivot(matrix, np.array([0]))
            held = self._n_always
            tried = self._random.permutation(n_units)
            wanted = min(int(n_units * (0.0, 1.0, 0.25, 0.5)[chain % 4]), _MOST_AT_START)
            for unit in tried[:wanted]:
                span = self._spans[unit]
                if held + len(span) > most:
                    continue
                left = np.linalg.eigvalsh(matrix[np.ix_(span, span)])[0]
                if left > self._least[span].max():
                    _pivot(matrix, span)
                    self.inside[chain, unit] = True
                    held += len(span)
            self._matrix[chain] = matrix

    def replace_stuck(self) -> None:
        """Restart chains without a positive weight from those of their kind that have one."""
        if not self._alive.any():
            inside, first = np.unique(
                np.concatenate([self._first[0], self.inside]), axis=0, return_index=True
            )
            rho = np.concatenate([self._first[1], self.state()[2]])
            raise NoStateError(self._n_evaluated, rho[first], inside)
        for chain in np.flatnonzero(~self._alive):
            own = np.flatnonzero(self._alive & (self._target == self._target[chain]))
            source = own[chain % len(own)] if len(own) else np.flatnonzero(self._alive)[0]
            self.inside[chain] = self.inside[source]
            self._matrix[chain] = self._matrix[source]
            self._alive[chain] = True

    def sweep(self) -> Floats:
        """Draw every unit once, block by block; return probabilities to be held, (C, U)."""
        shares = np.empty(self.inside.shape)
        for block in self._blocks():
            shares[:, block] = self._draw(block)
        self._n_sweeps += 1
        if self._n_sweeps % _REBUILD == 0:
            self._rebuild()
        return shares

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
        """Compute every chain's transform afresh."""
        for chain, inside in enumerate(self.inside):
            matrix = self._gram.copy()
            held = np.flatnonzero(inside[self._of_column]) + 1
            _pivot(matrix, np.append(0, held))
            self._matrix[chain] = matrix

    def _draw(self, block: NDArray[np.intp]) -> Floats:
        """Draw the units of a block given the others; return their probabilities, (C, B)."""
        now = self.inside[:, block]
        sse, imr, spread, feasible = self._subsets(block, now)
        bits = _bits(len(block))
        rest_units = self.inside.sum(axis=1) - now.sum(axis=1)
        sizes = self._sizes[block]
        rest_columns = self._n_always + self.inside @ self._sizes - now @ sizes
        held = (
            self._target,
            rest_columns + (bits @ sizes)[:, None],
            rest_units + bits.sum(axis=1)[:, None],
        )
        penalty = self._penalties[held]
        goal = self._rule.goal
        criterion = goal.n_selected * goal.misfit(sse) + penalty
        criterion[~feasible] = np.inf
        away = None
        if goal.rho_range is not None:
            rho, _ = self._rho(sse, imr)
            away = np.where(np.isfinite(criterion), goal.distance(rho), np.inf)
            criterion[~goal.in_range(rho)] = np.inf
        best = criterion.min(axis=0)
        alive = np.isfinite(best)
        self._alive = alive
        weight = np.exp(0.5 * (np.where(alive, best, 0.0) - criterion))
        total = np.cumsum(weight, axis=0)
        places = self._random.random(len(alive)) * total[-1]
        chosen = np.minimum((total <= places).sum(axis=0), len(weight) - 1)
        shares = (weight.T @ bits) / np.where(alive, total[-1], 1.0)[:, None]
        if self._free is not None:
            without = sse + (self._norms[-1] * imr) ** 2 / spread
            fit = goal.n_selected * (goal.misfit(sse) - goal.misfit(without))
            with np.errstate(invalid="ignore"):
                ratio = np.where(
                    weight > 0.0, np.exp(0.5 * (fit + penalty - self._free[held])), 0.0
                )
            rival = weight * ratio / np.where(alive, total[-1], 1.0)
            self.rival[:, 0] += rival.sum(axis=0) * (len(block) / len(self._sizes))
            self.rival[:, 1 + block] += rival.T @ bits
        if not alive.all():
            code = now @ (1 << np.arange(len(block)))
            if away is not None:
                near = np.argmin(away, axis=0)
                code = np.where(np.isfinite(away[near, self._counts]), near, code)
            chosen = np.where(alive, chosen, code)
            shares[~alive] = bits[chosen[~alive]]
        self._move(block, now, bits[chosen] > 0)
        return np.asarray(shares)

    def _subsets(self, block: NDArray[np.intp], now: Mask) -> tuple[Floats, Floats, Floats, Mask]:
        """Evaluate all subsets of a block, (2^B, C) each.

        Returns the SSE, lambda's coefficient and its entry of the inverse Gram matrix, both for
        scaled columns, and whether a subset is feasible.
        """
        columns = np.concatenate([self._spans[unit] for unit in block])
        some = np.concatenate([columns, [self._last, 0]])
        small = self._matrix[:, some[:, None], some]
        held = np.zeros((len(now), len(some)), dtype=bool)
        held[:, : len(columns)] = np.repeat(now, self._sizes[block], axis=1)
        tableau = np.ascontiguousarray(np.moveaxis(_pivot_many(small, held), 0, 2))
        feasible = np.ones((1, tableau.shape[2]), dtype=bool).ravel()
        for unit in block:
            size = self._sizes[unit]
            included, usable = tableau, feasible
            for column in self._spans[unit]:
                pivot = included[0, 0]
                good = pivot > self._least[column]
                usable = usable & good
                factor = included[1:, 0] / np.where(good, pivot, 1.0)
                included = included[1:, 1:] - factor[:, None] * included[0, 1:]
            tableau = np.concatenate([tableau[size:, size:], included], axis=2)
            feasible = np.concatenate([feasible, usable])
        shape = (-1, len(now))
        sse, imr, spread = (tableau[at].reshape(shape) for at in ((0, 0), (0, 1), (1, 1)))
        self._n_evaluated += sse.size
        return self._norms[-1] ** 2 * np.maximum(sse, 0.0), imr, spread, feasible.reshape(shape)

    def _move(self, block: NDArray[np.intp], now: Mask, new: Mask) -> None:
        """Pivot the chains' matrices on what changes."""
        columns = np.concatenate([self._spans[unit] for unit in block])
        changed = np.repeat(now != new, self._sizes[block], axis=1)
        inverse = _inverses(self._matrix[:, columns[:, None], columns], changed)
        for chain in np.flatnonzero(changed.any(axis=1)):
            some = changed[chain]
            _pivot(self._matrix[chain], columns[some], inverse[chain][some][:, some])
        self.inside[:, block] = new

    def coef(self) -> Floats:
        """Coefficients of the scaled columns, (C, c), zero where absent."""
        held = np.ones((len(self.inside), self._last), dtype=bool)
        held[:, 1:] = self.inside[:, self._of_column]
        free = np.where(held, self._matrix[:, self._last, :-1], 0.0)
        always = self._within[:, -1] - free @ self._within[:, :-1].T
        return np.concatenate([free[:, :1], always, free[:, 1:]], axis=1)

    def state(self) -> tuple[Mask, Floats, Floats, Floats]:
        """What is held, the SSE, rho and sigma, (C, ...)."""
        sse = self._norms[-1] ** 2 * np.maximum(self._matrix[:, self._last, self._last], 0.0)
        return self.inside.copy(), sse, *self._rho(sse, self._matrix[:, self._last, 0])

    def _rho(self, sse: Floats, imr: Floats) -> tuple[Floats, Floats]:
        """Return rho and sigma from the SSE and lambda's scaled coefficient."""
        slope = imr * (self._norms[-1] / self._norms[0])
        if self._rule.goal.form is not None:
            # atanh rho is in the place of beta_H.
            return np.tanh(slope), np.ones_like(slope)
        sigma = np.sqrt(sse / self._rule.n_selected + self._rule.mean_delta * slope**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return slope / sigma, sigma


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
    found = matrices - matrices @ rows
    found = np.where(on[:, :, None], -rows, found)
    found = np.where(on[:, None, :], columns, found)
    return np.where(on[:, :, None] & on[:, None, :], inverse, found)
