"""The tree of all assignments, cut where nothing good enough can be below.

A node is a model V and the units of it that may still be dropped. Its children drop one of them;
what comes before the dropped one in the node's order stays for good. So every assignment is one
node, and a node's model holds every model below it: its SSE is the least that is possible there.
If rho must be in a window, more can be said. With beta_H held at h, the SSE of V is
SSE(V) + (h - beta_H)^2 / v, with v the diagonal entry of beta_H in the inverse Gram matrix; no
model below V with this h fits better. So the SSE at the nearest h of the window is a bound, too.

From the inverse Gram matrix of a node's columns, SSE, beta_H and v of all children follow at once.
Nodes with equally many free units are worked on together as arrays. Where the columns are too
collinear for the inverse, children are solved one by one from the triangular factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.choices import Choices
from heckmanfa.extraction.criteria import Goal
from heckmanfa.linalg import DEPENDENT, column_norms, subset_factor
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats
from heckmanfa.rows import Mask

__all__ = ["Tree"]

Words = NDArray[np.uint64]

# Rounding of the inverse Gram matrix's downdates, as a share of the SSE: at most this, or models
# are solved from the triangular factor.
_LARGEST_SLACK = 1e-6
_LEAST_SLACK = 1e-9
_MOST_NODES_AT_ONCE = 8192
_FEWEST_NODES_AT_ONCE = 64
_BYTES_AT_ONCE = 2**23
# Above this, nodes with few free units go first, which end soon.
_WAITING_BYTES = 2**28
# A sample of the rho seen, for the message where none is in the window.
_MOST_SEEN = 2**14


@dataclass
class _Nodes:
    """B nodes with u free units, and c = u + 1 columns at least where units are single columns."""

    sse: Floats
    """(B,)"""
    size: NDArray[np.int64]
    """(B,) columns of X in the model"""
    bound: Floats
    """(B,) no model below has a smaller loss"""
    free: NDArray[np.int64]
    """(B, u) which single columns may be dropped"""
    words: Words
    """(B, W) the model as bits"""
    inverse: Floats | None
    """(B, c, c) inverse Gram matrix of the free columns and lambda, the last"""
    coef: Floats | None
    """(B, c) their coefficients"""

    def __len__(self) -> int:
        return len(self.sse)

    def pick(self, rows: Any) -> _Nodes:
        """Some of the nodes."""
        return _Nodes(*(None if part is None else part[rows] for part in self._parts()))

    def _parts(self) -> list[Any]:
        return [getattr(self, one.name) for one in fields(self)]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts() if part is not None)

    @classmethod
    def join(cls, parts: list[_Nodes]) -> _Nodes:
        """Put batches of nodes together."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(part._parts() for part in parts), strict=True)
        return cls(*(None if part[0] is None else np.concatenate(part) for part in columns))


class _Models:
    """The columns of a search, scaled, and the models on them."""

    def __init__(self, moments: Moments, choices: Choices) -> None:
        self.groups = [unit for unit in choices.units if len(unit) > 1]
        singles = [unit[0] for unit in choices.units if len(unit) == 1]
        self.n_always, self.n_singles = len(choices.always), len(singles)
        self.columns = [*choices.always, *(one for unit in self.groups for one in unit), *singles]
        k = len(self.columns)
        tail = [len(moments.columns) + 1, len(moments.columns) + 2]
        r = subset_factor(moments.factor, [0, *moments.places(self.columns), *tail])
        centred = r[1:, 1:]
        norms = column_norms(centred[:, :-1])
        norms = np.where(norms > 0, norms, 1.0)
        raw = column_norms(r[:, 1:-1])
        self._share = norms / np.where(raw > 0, raw, 1.0)
        self.matrix = np.column_stack([centred[:, :-1] / norms, centred[:, -1]])
        self.imr_norm = float(norms[-1])
        self.k, self.n_words = k, k // 64 + 1
        places = np.arange(k)
        self.bits: Words = np.zeros((k, self.n_words), dtype=np.uint64)
        self.bits[places, places // 64] = np.uint64(1) << (places % 64).astype(np.uint64)
        self.all_bits = np.bitwise_or.reduce(self.bits, axis=0)
        self._set_inverse()

    def _set_inverse(self) -> None:
        """Invert the Gram matrix, where that keeps enough digits for every model below."""
        x, y = self.matrix[:, :-1], self.matrix[:, -1]
        gram = x.T @ x
        smallest = float(np.linalg.eigvalsh(gram)[0])
        total = float(y @ y)
        self.inverse: Floats | None = None
        self.slack = _LEAST_SLACK
        if smallest > 0:
            inverse = np.linalg.inv(gram)
            coef = inverse @ (x.T @ y)
            sse = float(np.sum((y - x @ coef) ** 2))
            share = max(sse / total, np.finfo(float).tiny)
            slack = 64.0 * len(gram) * np.finfo(float).eps / (smallest * share)
            if slack <= _LARGEST_SLACK:
                self.slack = max(slack, _LEAST_SLACK)
                self.inverse, self.coef, self.sse = inverse, coef, sse

    def masks(self, words: Words) -> Mask:
        """Words to masks over the search's columns, (N, k)."""
        places = np.arange(self.k)
        found = words[:, places // 64] >> (places % 64).astype(np.uint64)
        return np.asarray((found & np.uint64(1)).astype(bool))

    def solve(self, words: Words) -> tuple[Floats, Floats, Floats, Mask]:
        """SSE, beta_H, its v, and whether the model can be solved, from the triangular factor."""
        masks = self.masks(words)
        size = masks.sum(axis=1)
        sse, imr, spread = np.empty((3, len(words)))
        feasible = np.zeros(len(words), dtype=bool)
        for one in np.unique(size):
            rows = np.flatnonzero(size == one)
            places = np.nonzero(masks[rows])[1].reshape(len(rows), one)
            tail = np.broadcast_to([self.k, self.k + 1], (len(rows), 2))
            use = np.concatenate([places, tail], axis=1)
            r = np.linalg.qr(np.moveaxis(self.matrix[:, use], 1, 0), mode="r")
            diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
            sse[rows] = diagonal[:, -1] ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                imr[rows] = r[:, one, one + 1] / r[:, one, one]
                spread[rows] = 1.0 / r[:, one, one] ** 2
            share = diagonal[:, :-1] * self._share[use[:, :-1]]
            feasible[rows] = np.all(share > DEPENDENT, axis=1)
        return sse, imr, spread, feasible


class Tree:
    """A search of the tree; `run` it, then read what it found."""

    def __init__(
        self,
        moments: Moments,
        choices: Choices,
        goal: Goal,
        *,
        tolerance: float,
        keep: int,
        max_nodes: int,
        start: float,
    ) -> None:
        self._models = _Models(moments, choices)
        self._choices, self._goal = choices, goal
        self._tolerance, self._keep, self._max_nodes = tolerance, keep, max_nodes
        self.best = start
        self.n_nodes = self.n_assignments = self.n_in_range = 0
        self.interrupted = self.complete = False
        self._worst_kept = np.inf
        self._kept: list[tuple[Floats, Words]] = []
        self._n_kept = 0
        self._seen: list[tuple[Floats, Words]] = []
        self._stride = 1
        sizes = np.arange(self._models.k + 1)
        self._penalty = goal.penalty(sizes)
        self._penalty[(sizes < 1) | (sizes > choices.max_features)] = np.inf
        # Least penalty of the sizes from s - r to s, at [s, r].
        self._least = np.empty((len(sizes), len(sizes)))
        for size in sizes:
            row = np.minimum.accumulate(self._penalty[size::-1])
            self._least[size] = np.append(row, np.full(len(sizes) - len(row), row[-1]))
        self._set_window(moments)
        self._waiting: dict[int, list[_Nodes]] = {}
        self._waiting_bytes = 0

    def _set_window(self, moments: Moments) -> None:
        """Turn the window of rho into one of beta_H on the scaled lambda, in units of sqrt SSE.

        rho = h / sqrt(SSE / m + delta h^2), so that h = rho / sqrt(1 - delta rho^2) sqrt(SSE / m).
        """
        self._window: tuple[float, float] | None = None
        self._rho_terms = moments.n_selected, moments.mean_delta
        if self._goal.rho_range is None:
            return
        low, high = (
            rho
            / np.sqrt(1.0 - moments.mean_delta * rho**2)
            * self._models.imr_norm
            / np.sqrt(moments.n_selected)
            for rho in self._goal.rho_range
        )
        self._window = float(low), float(high)

    # What is good enough. -------------------------------------------------------------------------

    @property
    def _threshold(self) -> float:
        """Loss above which an assignment is of no interest."""
        return min(self._goal.within(self.best, self._tolerance), self._worst_kept)

    def _loss(self, sse: Floats, penalty: Floats) -> Floats:
        least = max(1e-24 * self._goal.total_squares, np.finfo(float).tiny)
        return np.asarray(np.log(np.maximum(sse, least)) + penalty)

    def _inside(self, imr: Floats, sse: Floats, slack: float) -> Mask:
        """Whether beta_H is in the window, the ends moved outward by a share of its width."""
        assert self._window is not None
        low, high = self._window
        root = np.sqrt(sse)
        room = slack * (high - low) * root
        return np.asarray((imr >= low * root - room) & (imr <= high * root + room))

    def _in_window(self, imr: Floats, sse: Floats, spread: Floats) -> Floats:
        """Return the least SSE of a model in the window below models with these SSE, beta_H, v.

        At the nearest end h = a sqrt(x) of the window, x solves x = SSE + (a sqrt(x) - beta_H)^2
        / v.
        """
        if self._window is None:
            return sse
        low, high = self._window
        root = np.sqrt(sse)
        above = imr > high * root
        outside = above | (imr < low * root)
        end = np.where(above, high, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = end * imr / spread
            constant = imr**2 / spread + sse
            inner = slope**2 + (1.0 - end**2 / spread) * constant
            least = (constant / (slope + np.sqrt(np.maximum(inner, 0.0)))) ** 2
        least = np.where(outside & np.isfinite(least), least, sse)
        return np.maximum(least, sse)

    def _record(
        self,
        loss: Floats,
        sse: Floats,
        imr: Floats,
        words: Callable[[Any], Words],
        feasible: Mask | None = None,
    ) -> None:
        """Take in assignments: count them, keep the good ones, and tighten the threshold.

        ``words`` gives the bits of those asked for.
        """
        usable = np.isfinite(loss) if feasible is None else np.isfinite(loss) & feasible
        self.n_assignments += int(np.count_nonzero(usable))
        if self._window is None:
            self.n_in_range = self.n_assignments
            good = usable & (loss <= self._threshold + self._models.slack)
            sure = good
        else:
            inside = usable & self._inside(imr, sse, 0.0)
            self.n_in_range += int(np.count_nonzero(inside))
            if not np.isfinite(self.best):
                self._see(sse, imr, usable, words)
            near = loss <= self._threshold + self._models.slack
            good = usable & near & self._inside(imr, sse, 1e-6)
            sure = good & self._inside(imr, sse, -1e-6)
        chosen = np.flatnonzero(good)
        if len(chosen) == 0:
            return
        self._kept.append((loss[chosen], words(chosen)))
        self._n_kept += len(chosen)
        if sure.any():
            self.best = min(self.best, float(loss[sure].min()))
        if self._n_kept > 2 * self._keep:
            self._trim()

    def _trim(self) -> None:
        """Forget assignments that turned out not to be good enough."""
        loss = np.concatenate([part for part, _ in self._kept])
        words = np.concatenate([part for _, part in self._kept])
        good = np.flatnonzero(loss <= self._threshold + self._models.slack)
        if len(good) > self._keep:
            good = good[np.argsort(loss[good], kind="stable")]
            cut = float(loss[good[self._keep - 1]])
            # Those as good as the last one to be kept cannot be told apart yet.
            good = good[loss[good] <= cut + self._models.slack][: 2 * self._keep]
            self._worst_kept = min(self._worst_kept, cut)
        self._kept, self._n_kept = [(loss[good], words[good])], len(good)

    def _see(
        self, sse: Floats, imr: Floats, usable: Mask, words: Callable[[Any], Words]
    ) -> None:
        """Keep an even sample of the rho seen, and the nearest to the window."""
        m, delta = self._rho_terms
        slope = imr / self._models.imr_norm
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = slope / np.sqrt(sse / m + delta * slope**2)
        rows = np.flatnonzero(usable)
        nearest = rows[np.argsort(self._goal.distance(rho[rows]), kind="stable")[:3]]
        rows = np.union1d(rows[:: self._stride], nearest)
        self._seen.append((rho[rows], words(rows)))
        if sum(len(part) for part, _ in self._seen) > 2 * _MOST_SEEN:
            rho, bits = (np.concatenate(part) for part in zip(*self._seen, strict=True))
            nearest = np.argsort(self._goal.distance(rho), kind="stable")[:3]
            rows = np.union1d(np.arange(0, len(rho), 2), nearest)
            self._seen = [(rho[rows], bits[rows])]
            self._stride *= 2

    # What was found. ------------------------------------------------------------------------------

    def found(self) -> Mask:
        """Masks over the columns of X of the assignments kept, (N, K)."""
        if not self._kept:
            return np.zeros((0, self._choices.n_features), dtype=bool)
        self._trim()
        return self._masks(self._kept[0][1])

    def seen(self) -> tuple[Floats, Mask]:
        """Return a sample of the rho seen, and their assignments."""
        if not self._seen:
            return np.zeros(0), np.zeros((0, self._choices.n_features), dtype=bool)
        rho, words = (np.concatenate(part) for part in zip(*self._seen, strict=True))
        return rho, self._masks(words)

    def _masks(self, words: Words) -> Mask:
        masks = np.zeros((len(words), self._choices.n_features), dtype=bool)
        masks[:, self._models.columns] = self._models.masks(words)
        return masks

    @property
    def bound(self) -> float:
        """No assignment that was not looked at has a smaller loss."""
        waiting = [part.bound.min() for parts in self._waiting.values() for part in parts]
        return float(min(waiting, default=np.inf))

    # The search. ----------------------------------------------------------------------------------

    def run(self, progress: Callable[[int, float, float], None] | None = None) -> None:
        """Search until nothing is left, ``max_nodes`` is reached, or the user interrupts."""
        self._plant()
        batch: _Nodes | None = None
        undecided = 0
        try:
            while self._waiting and self.n_nodes < self._max_nodes:
                undecided, batch = self._next()
                if batch is None:
                    continue
                self.n_nodes += len(batch)
                if undecided > self._models.n_singles:
                    self._decide_group(batch, undecided)
                else:
                    self._expand(batch, undecided)
                batch = None
                if progress is not None:
                    progress(self.n_nodes, self.best, self.bound)
        except KeyboardInterrupt:
            self.interrupted = True
            if batch is not None:
                self._wait(undecided, batch)
        self._drop_hopeless()
        self.complete = not self._waiting

    def _plant(self) -> None:
        """Begin with the model of all columns."""
        models = self._models
        words = models.all_bits[None]
        size = np.array([models.k])
        if models.inverse is not None:
            c = slice(models.n_always, None)
            inverse, coef = models.inverse[None, c, c].copy(), models.coef[None, c].copy()
            sse, imr, feasible = np.array([models.sse]), coef[:, -1], None
        else:
            inverse = coef = None
            sse, imr, _, feasible = models.solve(words)
        self._record(
            self._loss(sse, self._penalty[size]), sse, imr, lambda rows: words[rows], feasible
        )
        first = models.k - models.n_singles
        free = np.arange(first, models.k)[None]
        bound = np.array([-np.inf])
        root = _Nodes(sse, size, bound, free, words, inverse, coef)
        undecided = models.n_singles + len(models.groups)
        if undecided:
            self._wait(undecided, root)

    def _wait(self, undecided: int, nodes: _Nodes) -> None:
        if len(nodes):
            self._waiting.setdefault(undecided, []).append(nodes)
            self._waiting_bytes += nodes.nbytes

    def _next(self) -> tuple[int, _Nodes | None]:
        """Take the next nodes, as many as fit into the cache and the budget."""
        undecided = (max if self._waiting_bytes < _WAITING_BYTES else min)(self._waiting)
        parts = self._waiting[undecided]
        fit = _BYTES_AT_ONCE // (parts[-1].nbytes // len(parts[-1]) + 1)
        if self._models.inverse is None:
            fit //= max(undecided, 1) * (self._models.k + 2)
        room = min(max(fit, _FEWEST_NODES_AT_ONCE), _MOST_NODES_AT_ONCE)
        room = min(room, self._max_nodes - self.n_nodes)
        threshold = self._threshold + self._models.slack
        taken = []
        while parts and room:
            part = parts.pop()
            self._waiting_bytes -= part.nbytes
            if not (part.bound <= threshold).all():
                part = part.pick(part.bound <= threshold)
            if len(part) > room:
                self._wait(undecided, part.pick(slice(room, None)))
                part = part.pick(slice(room))
            room -= len(part)
            if len(part):
                taken.append(part)
        if not parts:
            del self._waiting[undecided]
        return undecided, _Nodes.join(taken) if taken else None

    def _drop_hopeless(self) -> None:
        """Forget waiting nodes that a better assignment, found since, has ruled out."""
        threshold = self._threshold + self._models.slack
        for undecided, parts in list(self._waiting.items()):
            kept = [part.pick(part.bound <= threshold) for part in parts]
            kept = [part for part in kept if len(part)]
            if kept:
                self._waiting[undecided] = kept
            else:
                del self._waiting[undecided]

    def _children(self, nodes: _Nodes, u: int) -> tuple[Floats, Floats, Floats, Mask | None]:
        """SSE, beta_H and v after dropping each of the u free columns, (B, u)."""
        if nodes.inverse is None or nodes.coef is None:
            words = (nodes.words[:, None] & ~self._models.bits[nodes.free]).reshape(
                -1, self._models.n_words
            )
            sse, imr, spread, feasible = (
                part.reshape(nodes.free.shape) for part in self._models.solve(words)
            )
            return np.maximum(sse, nodes.sse[:, None]), imr, spread, feasible
        diagonal = np.diagonal(nodes.inverse, axis1=1, axis2=2)
        own, cross = diagonal[:, :u], nodes.inverse[:, u, :u]
        ratio = nodes.coef[:, :u] / own
        sse = nodes.sse[:, None] + nodes.coef[:, :u] * ratio
        imr = nodes.coef[:, u:] - cross * ratio
        return sse, imr, diagonal[:, u:] - cross**2 / own, None

    def _expand(self, nodes: _Nodes, u: int) -> None:
        """Look at every child of nodes with u free columns, and keep those worth a visit."""
        bits, least = self._models.bits, self._least
        sse, imr, spread, feasible = self._children(nodes, u)
        loss = self._loss(sse, self._penalty[nodes.size - 1][:, None])

        def child_words(flat: Any) -> Words:
            return nodes.words[flat // u] & ~bits[nodes.free.ravel()[flat]]

        self._record(
            loss.ravel(),
            sse.ravel(),
            imr.ravel(),
            child_words,
            None if feasible is None else feasible.ravel(),
        )
        if u == 1:
            return
        # The costliest to drop comes first: its child has the most units left to drop, and the
        # worst bound.
        lowest = self._in_window(imr, sse, spread)
        order = np.argsort(-lowest, axis=1, kind="stable")
        left = u - 1 - np.arange(u - 1)
        bound = self._loss(
            np.take_along_axis(lowest, order, axis=1)[:, :-1],
            least[np.maximum(nodes.size - 2, 0)[:, None], left - 1],
        )
        alive = bound <= self._threshold + self._models.slack
        if nodes.inverse is not None:
            self._last_pairs(nodes, order, sse, imr, alive[:, -1])
            alive = alive[:, :-1]
        for place in range(alive.shape[1]):
            rows = np.flatnonzero(alive[:, place])
            if len(rows):
                own, rest = order[rows, place], order[rows, place + 1 :]
                inverse, coef = _without(nodes, rows, own, rest)
                child = _Nodes(
                    sse=sse[rows, own],
                    size=nodes.size[rows] - 1,
                    bound=bound[rows, place],
                    free=nodes.free[rows[:, None], rest],
                    words=nodes.words[rows] & ~bits[nodes.free[rows, own]],
                    inverse=inverse,
                    coef=coef,
                )
                self._wait(u - 1 - place, child)

    def _last_pairs(
        self, nodes: _Nodes, order: Any, sse: Floats, imr: Floats, alive: Mask
    ) -> None:
        """Look at the one assignment below the last but one child, without a node for it."""
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
            one, other = nodes.free[rows[flat], first[flat]], nodes.free[rows[flat], second[flat]]
            return nodes.words[rows[flat]] & ~self._models.bits[one] & ~self._models.bits[other]

        loss = self._loss(pair_sse, self._penalty[nodes.size[rows] - 2])
        self._record(loss, pair_sse, pair_imr, pair_words)

    def _decide_group(self, nodes: _Nodes, undecided: int) -> None:
        """Keep or drop the next group of columns; groups are decided before single columns."""
        models = self._models
        place = len(models.groups) - (undecided - models.n_singles)
        r = len(models.groups[place])
        start = models.n_always + sum(len(group) for group in models.groups[:place])
        gone = np.bitwise_or.reduce(models.bits[start : start + r], axis=0)
        words = nodes.words & ~gone
        droppable = models.k - start - r
        size = nodes.size - r
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
        loss = self._loss(sse, self._penalty[size])
        self._record(loss, sse, imr, lambda rows: words[rows], feasible)
        if droppable == 0:
            return
        least = self._least[np.maximum(size - 1, 0), droppable - 1]
        bound = self._loss(self._in_window(imr, sse, spread), least)
        dropped = _Nodes(sse, size, bound, nodes.free, words, inverse, coef)
        kept_least = self._least[np.maximum(nodes.size - 1, 0), droppable - 1]
        kept_bound = np.maximum(nodes.bound, self._loss(nodes.sse, kept_least))
        kept = _Nodes(
            nodes.sse, nodes.size, kept_bound, nodes.free, nodes.words, kept_inverse, kept_coef
        )
        threshold = self._threshold + models.slack
        for child in (kept, dropped):
            self._wait(undecided - 1, child.pick(child.bound <= threshold))


def _without(
    nodes: _Nodes, rows: Any, own: Any, rest: Any
) -> tuple[Floats | None, Floats | None]:
    """Inverse Gram matrix and coefficients of the ``rest`` and lambda when ``own`` is dropped."""
    if nodes.inverse is None or nodes.coef is None:
        return None, None
    c = nodes.coef.shape[1]
    keep = np.concatenate([rest, np.full((len(rows), 1), c - 1)], axis=1)
    # Positions in the flattened arrays: numpy takes from one axis much faster than from three.
    line = rows[:, None] * c + keep
    own_line = rows * c + own
    entries, coefs = nodes.inverse.ravel(), nodes.coef.ravel()
    column = entries.take(line * c + own[:, None])
    share = column / entries.take(own_line * c + own)[:, None]
    inverse = entries.take((line * c)[:, :, None] + keep[:, None, :])
    inverse -= share[:, :, None] * column[:, None, :]
    return inverse, coefs.take(line) - share * coefs.take(own_line)[:, None]
