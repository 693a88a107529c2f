"""The tree of all assignments, pruned where nothing good enough can follow.

A node is a model V and the units that may still be dropped. Each child drops one of them; the
units before it in the node's order are kept for good. So every assignment is exactly one node, and
a node's model contains every model below it: its SSE is a lower bound there. A window of rho gives
a tighter bound. With beta_H held at h, the SSE of V is SSE(V) + (h - beta_H)^2 / v, with v the
diagonal entry of beta_H in the inverse Gram matrix, and no model below V with this h fits better.
So the SSE at the nearest h of the window is also a bound.

The inverse Gram matrix of a node's columns gives SSE, beta_H and v of all its children at once.
Nodes with the same number of free units are processed together as arrays. If the columns are too
collinear for the inverse, children are solved one by one from the triangular factor.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.moments import Moments
from heckmanfa.search.best_subset.record import Batch, Models, Penalties, Record, Words
from heckmanfa.search.choices import Choices
from heckmanfa.search.goal import KEPT, Goal
from heckmanfa.text.progress import EVERY

_MOST_NODES_AT_ONCE = 8192
_FEWEST_NODES_AT_ONCE = 64
_BYTES_AT_ONCE = 2**23
# Above this, nodes with few free units go first: their subtrees end soon.
_WAITING_BYTES = 2**28

Progress = Callable[[int, float, float], None]


@dataclass
class Nodes(Batch):
    """B nodes with u free units, and c = u + 1 columns or, with groups, more."""

    sse: Floats
    """(B,)"""
    size: NDArray[np.int64]
    """(B,) columns of X in the model"""
    units: NDArray[np.int64]
    """(B,) units in the model by choice"""
    bound: Floats
    """(B,) lower bound on the loss of the models below"""
    free: NDArray[np.int64]
    """(B, u) which single columns may be dropped"""
    words: Words
    """(B, W) the model as bits"""
    inverse: Floats | None
    """(B, c, c) inverse Gram matrix of the free columns, then lambda"""
    coef: Floats | None
    """(B, c) their coefficients"""


class Tree:
    """A search of the tree: `run` it, then read its ``record``.

    It keeps the best ``n_kept`` assignments. If the goal has a quadratic form, that is searched,
    and ``moments`` only tell rho.
    """

    def __init__(
        self,
        moments: Moments,
        choices: Choices,
        goal: Goal,
        *,
        tolerance: float,
        max_nodes: int,
        start: float,
        n_kept: int = KEPT,
    ) -> None:
        self.models = Models(goal.searched(moments), choices, goal)
        self.record = Record(
            moments, choices, goal, self.models, tolerance=tolerance, start=start, n_kept=n_kept
        )
        self.goal, self.max_nodes = goal, max_nodes
        self.n_nodes = 0
        self.interrupted = self.complete = False
        self.penalties = Penalties(choices, goal)
        self.floor = -np.inf
        """a lower bound on the loss of assignments not evaluated, from the relaxation"""
        self.other_work = 0
        """the work of the relaxation, as so many nodes"""
        self._waiting: dict[int, list[Nodes]] = {}
        """nodes by their number of undecided units"""
        self._waiting_bytes = 0
        self._due = 0.0
        self._plant()

    def run(self, progress: Progress | None = None, until: int | None = None) -> None:
        """Search until the tree is exhausted, nodes are spent, or the user interrupts.

        It stops after ``until`` nodes, or ``max_nodes``; a later run goes on. ``progress`` is
        called a few times a second with the number of nodes, and the best value and bound so far.
        """
        most = self.max_nodes if until is None else min(until, self.max_nodes)
        batch: Nodes | None = None
        undecided = 0
        try:
            while self._waiting and self.spent < most:
                undecided, batch = self._next(most - self.spent)
                if batch is None:
                    continue
                self.n_nodes += len(batch)
                if undecided > self.models.n_singles:
                    self._decide_group(batch, undecided)
                else:
                    self._expand(batch, undecided)
                batch = None
                self.tell(progress)
        except KeyboardInterrupt:
            self.interrupted = True
            if batch is not None:
                self._wait(undecided, batch)
        self._prune()
        self.complete = not self._waiting or bool(self.floor > self.record.threshold)

    def tell(self, progress: Progress | None) -> None:
        """Call ``progress`` if it is time to."""
        if progress is not None and time.monotonic() >= self._due:
            # Finding the bound takes longer than most steps.
            self._due = time.monotonic() + EVERY
            best = self.record.best
            values = self.goal.value(np.array([best, min(self.bound, best)]))
            progress(self.n_nodes, *values.tolist())

    @property
    def spent(self) -> int:
        """Nodes visited, and other work as so many nodes, such as solutions for rho.

        A node costs about (k + 1)^2 operations, and a solution (k + 1)^3 / 3.
        """
        return (
            self.n_nodes + self.other_work + self.record.n_solved * max((self.models.k + 1) // 3, 1)
        )

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do, or no budget for it."""
        return self.complete or self.interrupted or self.spent >= self.max_nodes

    @property
    def bound(self) -> float:
        """A lower bound on the loss of every assignment not yet evaluated."""
        return max(self.bound_below, self.floor)

    @property
    def bound_below(self) -> float:
        """A lower bound on the loss of every assignment below the waiting nodes."""
        waiting = [nodes.bound.min() for batches in self._waiting.values() for nodes in batches]
        return float(min(waiting, default=np.inf))

    def _loss(self, sse: Floats, penalty: Floats) -> Floats:
        return np.asarray(self.goal.misfit(sse) + penalty)

    def _plant(self) -> None:
        """Start with the model of all columns."""
        models = self.models
        words = models.all_bits[None]
        size = np.array([models.k])
        units = np.array([models.n_singles + len(models.groups)])
        inverse: Floats | None = None
        coef: Floats | None = None
        if models.inverse is not None:
            c = slice(models.n_always, None)
            inverse, coef = models.inverse[None, c, c].copy(), models.coef[None, c].copy()
            sse, imr, feasible = np.array([models.sse]), coef[:, -1], None
        else:
            sse, imr, _, feasible = models.solve(words)
        self.record.add(
            self._loss(sse, self.penalties.of(size, units)),
            sse,
            imr,
            lambda rows: words[rows],
            feasible,
        )
        first = models.k - models.n_singles
        free = np.arange(first, models.k)[None]
        bound = np.array([-np.inf])
        root = Nodes(sse, size, units, bound, free, words, inverse, coef)
        undecided = models.n_singles + len(models.groups)
        if undecided:
            self._wait(undecided, root)

    def beside(self) -> Tree:
        """Return a tree without nodes that shares the record; `plant` some."""
        other = copy(self)
        other._waiting, other.max_nodes = {}, sys.maxsize
        other._waiting_bytes = other.n_nodes = other.other_work = 0
        return other

    def offer(self, masks: Mask) -> None:
        """Record assignments, (N, K)."""
        model, units = masks[:, self.models.columns], self.goal.count_units(masks)
        self.plant(model, np.zeros_like(model), units, np.zeros(len(model)))
        self.record.kept()

    def plant(self, model: Mask, free: Mask, units: Any, bound: Floats) -> None:
        """Add nodes whose groups are all decided: their models and free columns, both (B, k)."""
        step = max(_BYTES_AT_ONCE // (8 * (self.models.k + 1) ** 2), 1)
        for start in range(0, len(model), step):
            rows = slice(start, start + step)
            self._plant_some(model[rows], free[rows], units[rows], bound[rows])

    def _plant_some(self, model: Mask, free: Mask, units: Any, bound: Floats) -> None:
        words, size = self.models.words(model), model.sum(axis=1)
        sse, coef, inverse = self.models.invert(model)
        loss = self._loss(sse, self.penalties.of(size, units))
        self.record.add(loss, sse, coef[:, -1], lambda rows: words[rows])
        n_free = free.sum(axis=1)
        for undecided in np.unique(n_free[n_free > 0]):
            rows = np.flatnonzero(n_free == undecided)
            columns = np.nonzero(free[rows])[1].reshape(len(rows), undecided)
            keep = np.concatenate([columns, np.full((len(rows), 1), self.models.k)], axis=1)
            parts = sse[rows], size[rows], units[rows], bound[rows], columns, words[rows]
            kept = inverse[rows[:, None, None], keep[:, :, None], keep[:, None, :]]
            self._wait(int(undecided), Nodes(*parts, kept, coef[rows[:, None], keep]))

    def _wait(self, undecided: int, nodes: Nodes) -> None:
        if len(nodes):
            self._waiting.setdefault(undecided, []).append(nodes)
            self._waiting_bytes += nodes.nbytes

    def _next(self, budget: int) -> tuple[int, Nodes | None]:
        """Take the next nodes, as many as the cache and the budget allow."""
        undecided = (max if self._waiting_bytes < _WAITING_BYTES else min)(self._waiting)
        batches = self._waiting[undecided]
        fit = _BYTES_AT_ONCE // (batches[-1].nbytes // len(batches[-1]) + 1)
        if self.models.inverse is None:
            fit //= max(undecided, 1) * (self.models.k + 2)
        room = min(max(fit, _FEWEST_NODES_AT_ONCE), _MOST_NODES_AT_ONCE)
        if self.record.solves_rho:
            room = min(room, _FEWEST_NODES_AT_ONCE)
        room = min(room, budget)
        threshold = self.record.threshold
        taken = []
        while batches and room:
            nodes = batches.pop()
            self._waiting_bytes -= nodes.nbytes
            if not (nodes.bound <= threshold).all():
                nodes = nodes.pick(nodes.bound <= threshold)
            if len(nodes) > room:
                self._wait(undecided, nodes.pick(slice(room, None)))
                nodes = nodes.pick(slice(room))
            room -= len(nodes)
            if len(nodes):
                taken.append(nodes)
        if not batches:
            del self._waiting[undecided]
        return undecided, Nodes.join(taken) if taken else None

    def _prune(self) -> None:
        """Forget waiting nodes that a better assignment, found since, has ruled out."""
        threshold = self.record.threshold
        for undecided, batches in list(self._waiting.items()):
            kept = [nodes.pick(nodes.bound <= threshold) for nodes in batches]
            kept = [nodes for nodes in kept if len(nodes)]
            if kept:
                self._waiting[undecided] = kept
            else:
                del self._waiting[undecided]

    def _children(self, nodes: Nodes, u: int) -> tuple[Floats, Floats, Floats, Mask | None]:
        """SSE, beta_H and v after dropping each of the u free columns, (B, u)."""
        if nodes.inverse is None or nodes.coef is None:
            words = (nodes.words[:, None] & ~self.models.bits[nodes.free]).reshape(
                -1, self.models.n_words
            )
            sse, imr, spread, feasible = self.models.solve(words)
            shape = nodes.free.shape
            sse = np.maximum(sse.reshape(shape), nodes.sse[:, None])
            return sse, imr.reshape(shape), spread.reshape(shape), feasible.reshape(shape)
        diagonal = np.diagonal(nodes.inverse, axis1=1, axis2=2)
        own, cross = diagonal[:, :u], nodes.inverse[:, u, :u]
        ratio = nodes.coef[:, :u] / own
        sse = nodes.sse[:, None] + nodes.coef[:, :u] * ratio
        imr = nodes.coef[:, u:] - cross * ratio
        return sse, imr, diagonal[:, u:] - cross**2 / own, None

    def _expand(self, nodes: Nodes, u: int) -> None:
        """Evaluate every child of nodes with u free columns, and queue those worth a visit."""
        bits = self.models.bits
        sse, imr, spread, feasible = self._children(nodes, u)
        loss = self._loss(sse, self.penalties.of(nodes.size - 1, nodes.units - 1)[:, None])

        def child_words(flat: Any) -> Words:
            return np.asarray(nodes.words[flat // u] & ~bits[nodes.free.ravel()[flat]])

        self.record.add(
            loss.ravel(),
            sse.ravel(),
            imr.ravel(),
            child_words,
            None if feasible is None else feasible.ravel(),
        )
        if u == 1:
            return
        # The costliest unit to drop comes first: its child has the most units left to drop, and
        # the worst bound.
        lowest = self.record.least_sse(imr, sse, spread)
        order = np.argsort(-lowest, axis=1, kind="stable")
        left = u - 1 - np.arange(u - 1)
        bound = self._loss(
            np.take_along_axis(lowest, order, axis=1)[:, :-1],
            self.penalties.least(nodes.size[:, None] - 2, nodes.units[:, None] - 2, left - 1),
        )
        alive = bound <= self.record.threshold
        if nodes.inverse is not None:
            self._last_pairs(nodes, order, sse, imr, alive[:, -1])
            alive = alive[:, :-1]
        for rank in np.flatnonzero(alive.any(axis=0)):
            rows = np.flatnonzero(alive[:, rank])
            own, rest = order[rows, rank], order[rows, rank + 1 :]
            inverse, coef = _without(nodes, rows, own, rest)
            child = Nodes(
                sse=sse[rows, own],
                size=nodes.size[rows] - 1,
                units=nodes.units[rows] - 1,
                bound=bound[rows, rank],
                free=nodes.free[rows[:, None], rest],
                words=nodes.words[rows] & ~bits[nodes.free[rows, own]],
                inverse=inverse,
                coef=coef,
            )
            self._wait(int(u - 1 - rank), child)

    def _last_pairs(self, nodes: Nodes, order: Any, sse: Floats, imr: Floats, alive: Mask) -> None:
        """Evaluate the only assignment below the last child but one, without a node for it."""
        rows = np.flatnonzero(alive)
        if len(rows) == 0 or nodes.inverse is None or nodes.coef is None:
            return
        first, second = order[rows, -2], order[rows, -1]
        share = nodes.inverse[rows, first, second] / nodes.inverse[rows, first, first]
        own = nodes.inverse[rows, second, second] - share * nodes.inverse[rows, first, second]
        coef = nodes.coef[rows, second] - share * nodes.coef[rows, first]
        cross = nodes.inverse[rows, -1, second] - share * nodes.inverse[rows, -1, first]
        pair_sse = sse[rows, first] + coef**2 / own
        pair_imr = imr[rows, first] - cross * coef / own

        def pair_words(flat: Any) -> Words:
            bits, row = self.models.bits, rows[flat]
            gone = bits[nodes.free[row, first[flat]]] | bits[nodes.free[row, second[flat]]]
            return np.asarray(nodes.words[rows[flat]] & ~gone)

        penalty = self.penalties.of(nodes.size[rows] - 2, nodes.units[rows] - 2)
        loss = self._loss(pair_sse, penalty)
        self.record.add(loss, pair_sse, pair_imr, pair_words)

    def _decide_group(self, nodes: Nodes, undecided: int) -> None:
        """Keep or drop the next group of columns; groups are decided before single columns."""
        models = self.models
        index = len(models.groups) - (undecided - models.n_singles)
        r = len(models.groups[index])
        start = models.n_always + sum(len(group) for group in models.groups[:index])
        gone = np.bitwise_or.reduce(models.bits[start : start + r], axis=0)
        words = nodes.words & ~gone
        size, units = nodes.size - r, nodes.units - 1
        kept_inverse = kept_coef = inverse = coef = None
        if nodes.inverse is not None and nodes.coef is not None:
            kept_inverse, kept_coef = nodes.inverse[:, r:, r:], nodes.coef[:, r:]
            across = nodes.inverse[:, r:, :r]
            share = np.swapaxes(
                np.linalg.solve(nodes.inverse[:, :r, :r], np.swapaxes(across, 1, 2)), 1, 2
            )
            inverse = kept_inverse - share @ np.swapaxes(across, 1, 2)
            coef = kept_coef - np.einsum("bij,bj->bi", share, nodes.coef[:, :r])
            own = np.linalg.solve(nodes.inverse[:, :r, :r], nodes.coef[:, :r, None])[..., 0]
            sse = nodes.sse + np.einsum("bi,bi->b", nodes.coef[:, :r], own)
            imr, spread, feasible = coef[:, -1], inverse[:, -1, -1], None
        else:
            sse, imr, spread, feasible = models.solve(words)
            sse = np.maximum(sse, nodes.sse)
        loss = self._loss(sse, self.penalties.of(size, units))
        self.record.add(loss, sse, imr, lambda rows: words[rows], feasible)
        if undecided == 1:
            return
        later = [*map(len, models.groups[index + 1 :]), *[1] * models.n_singles]
        dropped = Nodes(sse, size, units, nodes.bound, nodes.free, words, inverse, coef)
        least = self.penalties.least_of_units(size, units, later)
        dropped.bound = self._loss(self.record.least_sse(imr, sse, spread), least)
        kept = Nodes(
            *(nodes.sse, nodes.size, nodes.units, nodes.bound, nodes.free, nodes.words),
            inverse=kept_inverse,
            coef=kept_coef,
        )
        least = self.penalties.least_of_units(nodes.size, nodes.units, later)
        kept.bound = np.maximum(nodes.bound, self._loss(nodes.sse, least))
        threshold = self.record.threshold
        for child in (kept, dropped):
            self._wait(undecided - 1, child.pick(child.bound <= threshold))


def _without(nodes: Nodes, rows: Any, own: Any, rest: Any) -> tuple[Floats | None, Floats | None]:
    """Inverse Gram matrix and coefficients of ``rest`` and lambda after ``own`` is dropped."""
    if nodes.inverse is None or nodes.coef is None:
        return None, None
    c = nodes.coef.shape[1]
    keep = np.concatenate([rest, np.full((len(rows), 1), c - 1)], axis=1)
    # Positions in the flattened arrays: NumPy takes from one axis much faster than from three.
    line = rows[:, None] * c + keep
    own_line = rows * c + own
    entries, coefs = nodes.inverse.ravel(), nodes.coef.ravel()
    column = entries.take(line * c + own[:, None])
    share = column / entries.take(own_line * c + own)[:, None]
    inverse = entries.take((line * c)[:, :, None] + keep[:, None, :])
    inverse -= share[:, :, None] * column[:, None, :]
    return inverse, coefs.take(line) - share * coefs.take(own_line)[:, None]
