"""The perspective relaxation: a bound for searches that the tree's own bound does not finish.

With the columns that are always in partialled out, SSE(S) = min y'y - 2 b'beta + beta'A beta over
beta that is zero outside S. If A = M + I with M positive semidefinite, then for every x

    SSE(S) + mu |S| >= y'y - x'Mx + sum of min(0, mu - a_i^2),  a = b - Mx,

over the undecided units; units that are in add mu - a_i^2, units that are out nothing. A unit whose
|mu - a_i^2| exceeds what the bound lacks is decided. ADMM finds a good x, and need not converge.
Columns are scaled by the largest diagonal matrix that A exceeds. That grows as units are decided,
so a box of assignments with many more decided units gets a new `_Frame`.

Lambda is nearly linear in the features. Partialling it out makes A nearly singular in a direction
e, which ruins the bound. So assignments are divided into strips by t = e'beta. Within delta of the
middle t_0 of a strip, adding kappa (t - t_0)^2 - kappa delta^2 does not raise the SSE, but it adds
kappa to the small eigenvalue.

How large the SSE of k columns may be is a curve in k, and the bound is a line. So assignments are
also divided by size, into ranges in which a chord is near the curve.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import diagonal_below
from heckmanfa.search.best_subset.record import Batch
from heckmanfa.search.best_subset.tree import Progress, Tree

# Nodes of the tree before the relaxation starts, times the cube of the number of columns: a second
# or two. A budget below the fewest is the tree's alone.
_FIRST, _FEWEST = 2e10, 10_000
# A box counts as this many nodes, times the cube of the number of units, or as one.
_BOX = 4e5
_MOST_STRIPS = 128
# What a strip, and a chord, may lose of the bound, as a share of the penalty of a column.
_STRIP_LOSS, _CHORD_LOSS = 0.05, 0.1
# ADMM's step and overrelaxation, and its iterations at the first boxes of a frame and at others.
_STEP, _OVER = 2.0, 1.6
_FIRST_ITERATIONS, _ITERATIONS = 60, 20
_BOXES_AT_ONCE = 512
# With at most this many undecided units, a box goes to the tree.
_FEW = 12
# With at most this share of its frame's units undecided, a box gets a new frame.
_RENEW = 0.75
# Rounding of eigenvalues and bounds, as a share of the largest number involved.
_ROUNDING = 1e-12

IN, OUT = 1, -1


def search(tree: Tree, progress: Progress | None = None, known: Mask | None = None) -> None:
    """Run a tree; if it is not done soon, try the relaxation, and go on with the better of both.

    ``known`` assignments, (N, K), make the relaxation's threshold tighter.
    """
    most, window = tree.max_nodes, tree.goal.rho_range is not None
    half, first = most // 2, int(_FIRST / (tree.models.k + 1) ** 3)
    # A window helps the tree and not the relaxation, which then comes last.
    first = most if most < _FEWEST else half if window else min(first, half // 2)
    tree.run(progress, first)
    if not tree.ended and known is not None:
        tree.offer(known)
    relaxation = None if tree.ended else Relaxation.of(tree)
    if relaxation is not None:
        relaxation.run(progress, most if window else half)
        if not tree.ended and tree.floor > tree.bound_below:
            relaxation.run(progress, most)
    if not tree.ended:
        tree.run(progress)


@dataclass
class _Boxes(Batch):
    """B boxes: sets of assignments that agree in some units, in one strip and range of sizes."""

    strip: NDArray[np.int64]
    """(B,)"""
    state: NDArray[np.int8]
    """(B, U) which units of the frame are in, out, or undecided"""
    low: NDArray[np.int64]
    """(B,) fewest columns"""
    high: NDArray[np.int64]
    """(B,) most columns"""
    factor: Floats
    """(B,) mu as a multiple of the chord's slope"""
    bound: Floats
    """(B,) lower bound on the loss"""
    z: Floats
    """(B, c) ADMM's solution"""
    p: Floats
    """(B, c) ADMM's scaled multipliers"""


class _Frame:
    """U undecided units of c columns, and their problem in N strips, scaled."""

    def __init__(
        self, units: Any, sizes: Any, decided: NDArray[np.int8], a: Floats, b: Floats, constant: Any
    ) -> None:
        self.units = units
        """(U,) which of all units"""
        self.sizes = sizes
        self.decided = decided
        """state of all units; those of the frame are undecided"""
        self.scale = np.sqrt(diagonal_below(a))
        """(c,) what the columns were divided by"""
        self.a = a / np.outer(self.scale, self.scale)
        """(c, c) M + I"""
        self.b = b / self.scale
        """(N, c)"""
        self.constant = constant
        """(N,)"""
        self.m = self.a - np.eye(len(a))
        self._admm = _STEP * np.linalg.inv(2.0 * self.m + _STEP * np.eye(len(a)))
        self.unit_of = np.repeat(np.arange(len(sizes)), sizes)
        self._first = np.cumsum(sizes) - sizes
        self._single = bool(np.all(sizes == 1))

    def without(self, state: NDArray[np.int8], strip: int) -> _Frame:
        """Return the frame of a box's undecided units, in one strip."""
        columns = state[self.unit_of]
        inside, free = np.flatnonzero(columns == IN), np.flatnonzero(columns == 0)
        across = self.a[np.ix_(inside, free)]
        solved = np.linalg.solve(
            self.a[np.ix_(inside, inside)], np.column_stack([across, self.b[strip, inside]])
        )
        decided = self.decided.copy()
        decided[self.units] = state
        return _Frame(
            self.units[state == 0],
            self.sizes[state == 0],
            decided,
            self.a[np.ix_(free, free)] - across.T @ solved[:, :-1],
            self.b[None, strip, free] - solved[:, -1] @ across,
            self.constant[None, strip] - solved[:, -1] @ self.b[strip, inside],
        )

    def norms(self, columns: Floats) -> Floats:
        """Length of each unit's part, (B, U)."""
        if self._single:
            return np.abs(columns)
        return np.asarray(np.sqrt(np.add.reduceat(columns**2, self._first, axis=1)))

    def bounds(self, boxes: _Boxes, mu: Floats, iterations: int) -> tuple[Floats, Floats]:
        """Bound SSE + mu times the frame's columns in, (B,), and what units in add, (B, U)."""
        b, price, state = self.b[boxes.strip], mu[:, None] * self.sizes, boxes.state
        root = np.sqrt(price)
        # Units that are in have no penalty; that of units that are out is infinite.
        fixed = np.where(state == IN, 0.0, np.inf)
        soft = np.where(state == 0, 2.0 * root, fixed)
        hard = np.where(state == 0, (2.0 + _STEP) * root, fixed)
        x, z, p = boxes.z, boxes.z, boxes.p.copy()
        for _ in range(iterations):
            x = (z - p) @ self._admm
            p += _OVER * x + (1.0 - _OVER) * z
            q = _STEP * p + 2.0 * b
            size = np.maximum(self.norms(q), np.finfo(float).tiny)
            shrunk = np.maximum(1.0 - soft / size, 0.0) / _STEP
            shrunk = np.where(size >= hard, 1.0 / (_STEP + 2.0), shrunk)
            z = q * (shrunk if self._single else shrunk[:, self.unit_of])
            p -= z
        boxes.z, boxes.p = z, p
        along = x @ self.m
        cost = price - self.norms(b - along) ** 2
        each = np.where(state == 0, np.minimum(cost, 0.0), np.where(state == IN, cost, 0.0))
        quadratic, constant = np.einsum("ij,ij->i", x, along), self.constant[boxes.strip]
        rounding = np.abs(constant) + np.abs(quadratic) + np.abs(each).sum(axis=1)
        return constant - quadratic + each.sum(axis=1) - _ROUNDING * rounding, cost


class Relaxation:
    """The search of boxes."""

    def __init__(self, tree: Tree, gram: Floats, b: Floats, squares: float) -> None:
        self._tree, self._leaves = tree, tree.beside()
        models = tree.models
        self._n_always = models.n_always
        self._weight = max(int(_BOX / (models.k + 1) ** 3), 1)
        self._sizes = np.array([*map(len, models.groups), *[1] * models.n_singles])
        self._columns = np.arange(models.k + 1)
        self._waiting: dict[int, list[_Boxes]] = {}
        """boxes of the current frame, by their bound"""
        self._later: list[tuple[float, int, _Frame, _Boxes]] = []
        """a heap of single boxes for frames of their own"""
        self._n_later = 0
        self._set_limits()
        self._frame = self._first_frame(gram, b, squares)
        self._ranges = self._size_ranges()
        """ranges of sizes whose boxes are not yet made"""
        self._until = 0

    @classmethod
    def of(cls, tree: Tree) -> Relaxation | None:
        """Prepare the relaxation of a tree's problem; None if it has no use there."""
        models = tree.models
        if models.inverse is None or not np.isfinite(tree.record.threshold):
            return None
        k, fixed = models.k, [*range(models.n_always), models.k]
        order = [*fixed, *range(models.n_always, k), k + 1]
        factor: Floats = np.asarray(np.linalg.qr(models.matrix[:, order], mode="r"))
        root = factor[len(fixed) :, len(fixed) :]
        x, y = root[:, :-1] / np.sqrt(np.sum(root[:, :-1] ** 2, axis=0)), root[:, -1]
        return cls(tree, x.T @ x, x.T @ y, float(y @ y))

    def _set_limits(self) -> None:
        """Find the largest SSE that an assignment of each size may have, (k + 1,)."""
        tree = self._tree
        room = tree.record.threshold - tree.penalties.by_size
        self._limit = tree.goal.n_selected * room
        if tree.goal.form is None:
            self._limit = np.where(np.isfinite(room), np.exp(room), -np.inf)
        allowed = np.flatnonzero(self._limit >= tree.models.sse)
        self._range = (int(allowed[0]), int(allowed[-1])) if len(allowed) else (1, 0)

    def _slopes(self, low: Any, high: Any) -> Floats:
        """Slope of the chord of the limits between sizes, per column; positive."""
        # A single size has the slope to its neighbour.
        first, last = np.maximum(low - (low == high), self._range[0]), high
        last = np.minimum(last + (first == last), self._range[1])
        fall = self._limit[first] - self._limit[last]
        least = max(1e-6 * self._limit.max(), np.finfo(float).tiny)
        return np.asarray(np.maximum(fall / np.maximum(last - first, 1), least))

    def _first_frame(self, gram: Floats, b: Floats, squares: float) -> _Frame:
        """Divide all assignments into strips."""
        low, high = self._range
        price = float(self._slopes(low, high))
        values, vectors = np.linalg.eigh(gram)
        direction, loss = vectors[:, 0], _STRIP_LOSS * price
        # An assignment with another t costs at least values[0] (t - middle)^2.
        room = self._limit[low : high + 1].max(initial=0.0) - self._tree.models.sse
        half = np.sqrt(max(room, loss) / values[0])
        kappa = min(loss * (_MOST_STRIPS / half) ** 2, 4.0 * values[min(1, len(values) - 1)])
        n_strips = int(np.ceil(half / np.sqrt(loss / kappa)))
        middle = float(direction @ np.linalg.solve(gram, b))
        t = middle + half * ((2.0 * np.arange(n_strips) + 1.0) / n_strips - 1.0)
        return _Frame(
            units=np.arange(len(self._sizes)),
            sizes=self._sizes,
            decided=np.zeros(len(self._sizes), dtype=np.int8),
            a=gram + kappa * np.outer(direction, direction),
            b=b + kappa * np.outer(t, direction),
            constant=squares + kappa * t**2 - loss,
        )

    def run(self, progress: Progress | None, limit: int) -> None:
        """Search until no box is left, ``limit`` nodes are visited, or the user interrupts."""
        tree, self._until = self._tree, limit
        boxes: _Boxes | None = None
        try:
            self._evaluate_leaves()
            while (self._ranges or self._waiting or self._later) and tree.spent < limit:
                first = bool(self._ranges) or not self._waiting
                boxes = None  # until others are taken: an interruption would queue them again
                boxes = self._take()
                if len(boxes):
                    self._process(boxes, _FIRST_ITERATIONS if first else _ITERATIONS)
                tree.floor = self.bound
                tree.tell(progress)
        except KeyboardInterrupt:
            tree.interrupted = True
            if boxes is not None:
                self._wait(boxes)
        tree.floor = self.bound
        tree.complete = bool(tree.floor > tree.record.threshold)

    @property
    def bound(self) -> float:
        """A lower bound on the loss of every assignment that was not evaluated."""
        if self._ranges:
            return -np.inf
        waiting = [boxes.bound.min() for batches in self._waiting.values() for boxes in batches]
        later = [self._later[0][0]] if self._later else []
        return float(min([*waiting, *later, self._leaves.bound]))

    def _size_ranges(self) -> list[tuple[int, int]]:
        """Divide the sizes into ranges in which a chord is near the limits."""
        ranges: list[tuple[int, int]] = []
        for size in range(self._range[0], self._range[1] + 1):
            if ranges and self._chord_loss(ranges[-1][0], size) <= _CHORD_LOSS:
                ranges[-1] = ranges[-1][0], size
            else:
                ranges.append((size, size))
        return ranges

    def _take(self) -> _Boxes:
        """Take the next boxes: all strips of a range of sizes, some that wait, or a new frame's."""
        if self._ranges:
            return self._roots(*self._ranges.pop())
        return self._next() if self._waiting else self._renew()

    def _roots(self, low: int, high: int) -> _Boxes:
        """One box per strip, with all units undecided."""
        z: Floats = np.asarray(np.linalg.solve(self._frame.a, self._frame.b.T).T)
        state = np.zeros((len(z), len(self._sizes)), dtype=np.int8)
        ends = np.full(len(z), low), np.full(len(z), high)
        factor, bound = np.ones(len(z)), np.full(len(z), -np.inf)
        return _Boxes(np.arange(len(z)), state, *ends, factor, bound, z, np.zeros_like(z))

    def _chord_loss(self, low: int, high: int) -> float:
        """How far the chord lies above the limits, as a share of the penalty of a column."""
        slope = float(self._slopes(low, high))
        over = self._limit[low : high + 1] + slope * self._columns[low : high + 1]
        return float(over.max() - over.min()) / slope

    def _wait(self, boxes: _Boxes) -> None:
        """Queue boxes of the current frame by their bound."""
        away = (self._tree.record.threshold - boxes.bound) * self._tree.goal.n_selected
        keys = -np.clip(away, 0.0, 1e6).astype(np.int64)
        for key in np.unique(keys):
            self._waiting.setdefault(int(key), []).append(boxes.pick(keys == key))

    def _next(self) -> _Boxes:
        """Take the boxes with the least bound."""
        key = min(self._waiting)
        boxes = _Boxes.join(self._waiting.pop(key))
        boxes = boxes.pick(boxes.bound <= self._tree.record.threshold)
        left = self._until - self._tree.spent
        room = min(max(left // self._weight, 1), _BOXES_AT_ONCE)
        if len(boxes) > room:
            self._waiting[key] = [boxes.pick(slice(room, None))]
        return boxes.pick(slice(room))

    def _renew(self) -> _Boxes:
        """Make a frame for the box with the least bound."""
        bound, _, frame, box = heapq.heappop(self._later)
        if bound > self._tree.record.threshold:
            self._later.clear()
            return box.pick(slice(0))
        state = box.state[0]
        self._frame = frame.without(state, int(box.strip[0]))
        # A frame is as much work as so many boxes.
        self._tree.other_work += len(self._frame.units) * self._weight
        z = box.z[:, state[frame.unit_of] == 0] * self._frame.scale
        free = np.zeros((1, len(self._frame.units)), dtype=np.int8)
        return replace(box, strip=np.zeros(1, dtype=np.int64), state=free, z=z, p=np.zeros_like(z))

    def _process(self, boxes: _Boxes, iterations: int) -> None:
        """Bound boxes, decide units, and divide the boxes that are left."""
        self._tree.n_nodes += len(boxes)
        self._tree.other_work += len(boxes) * (self._weight - 1)
        self._set_limits()
        mu = self._slopes(boxes.low, boxes.high) * boxes.factor
        sse, cost = self._frame.bounds(boxes, mu, iterations)
        alive = self._narrow(boxes, mu, sse, cost)
        boxes, mu = boxes.pick(alive), mu[alive]
        undecided = boxes.state == 0
        left = undecided.sum(axis=1)
        few = (left <= _FEW) & ~(undecided & (self._frame.sizes > 1)).any(axis=1)
        if few.any():
            self._hand_over(boxes.pick(few))
        renewed = ~few & (left <= _RENEW * undecided.shape[1])
        for row in np.flatnonzero(renewed):
            self._n_later += 1
            box = boxes.pick(slice(row, row + 1))
            heapq.heappush(self._later, (float(box.bound[0]), self._n_later, self._frame, box))
        rest = ~few & ~renewed
        if rest.any():
            self._divide(boxes.pick(rest), mu[rest])

    def _narrow(self, boxes: _Boxes, mu: Floats, sse: Floats, cost: Floats) -> Mask:
        """Narrow the sizes of boxes, decide units, and set bounds; which boxes are left, (B,)."""
        state, sizes = boxes.state, self._frame.sizes
        least = self._n_inside + (state == IN) @ sizes
        most = least + (state == 0) @ sizes
        low, high = np.maximum(boxes.low, least), np.minimum(boxes.high, most)
        # Lower bound on the SSE of each size.
        line = sse[:, None] + mu[:, None] * (self._n_inside - self._columns)
        line = np.maximum(line, self._tree.models.sse * (1.0 - 1e-9))
        possible = (self._columns >= low[:, None]) & (self._columns <= high[:, None])
        possible &= line <= self._limit
        loss = self._tree.goal.misfit(line) + self._tree.penalties.by_size
        boxes.bound = np.maximum(boxes.bound, np.where(possible, loss, np.inf).min(axis=1))
        boxes.low = np.argmax(possible, axis=1)
        boxes.high = possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
        missing = np.where(possible, self._limit - line, -np.inf).max(axis=1)[:, None]
        undecided = state == 0
        state[undecided & (cost > missing)] = OUT
        state[undecided & (cost < -missing)] = IN
        return np.asarray(possible.any(axis=1))

    @property
    def _n_inside(self) -> int:
        """Columns in every assignment of the frame."""
        return int(self._n_always + (self._frame.decided == IN) @ self._sizes)

    def _divide(self, boxes: _Boxes, mu: Floats) -> None:
        """Decide a unit of each box, both ways."""
        sizes = self._frame.sizes
        share = np.minimum(self._frame.norms(boxes.z) / np.sqrt(mu[:, None] * sizes), 1.0)
        undecided = boxes.state == 0
        # mu moves the relaxation's size into the range.
        size = self._n_inside + np.where(undecided, share, boxes.state == IN) @ sizes
        outside = 1.0 * (size > boxes.high) - 1.0 * (size < boxes.low)
        boxes.factor = boxes.factor * 1.25**outside
        score = np.where(undecided, np.minimum(share, 1.0 - share), -1.0)
        # A tree decides single columns only, so groups go first when few units are left.
        few = undecided.sum(axis=1) <= 2 * _FEW
        score += undecided & (sizes > 1) & few[:, None]
        rows, unit = np.arange(len(boxes)), np.argmax(score, axis=1)
        other = boxes.pick(rows)
        other.state[rows, unit] = OUT
        boxes.state[rows, unit] = IN
        self._wait(_Boxes.join([boxes, other]))

    def _hand_over(self, boxes: _Boxes) -> None:
        """Let the tree evaluate what is left of boxes with few undecided single columns."""
        state = np.repeat(self._frame.decided[None], len(boxes), axis=0)
        state[:, self._frame.units] = boxes.state
        columns = np.repeat(state, self._sizes, axis=1)
        always = np.ones((len(boxes), self._n_always), dtype=bool)
        self._leaves.plant(
            model=np.concatenate([always, columns != OUT], axis=1),
            free=np.concatenate([~always, columns == 0], axis=1),
            units=(state != OUT).sum(axis=1),
            bound=boxes.bound,
        )
        self._evaluate_leaves()

    def _evaluate_leaves(self) -> None:
        tree, leaves = self._tree, self._leaves
        before = leaves.n_nodes
        leaves.run(None, before + max(self._until - tree.spent, 0))
        tree.n_nodes += leaves.n_nodes - before
        if leaves.interrupted:
            raise KeyboardInterrupt
