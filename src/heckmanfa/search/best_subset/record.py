"""The models of a tree search, their penalties, and the record of the good ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import DEPENDENT, column_norms, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.goal import KEPT, Goal

Words = NDArray[np.uint64]

# Rounding of the inverse Gram matrix's downdates, as a share of the SSE. Above the largest, models
# are solved from the triangular factor.
_LARGEST_SLACK = 1e-6
_LEAST_SLACK = 1e-9
# Size of the sample of rho for the message when none is in the window.
_MOST_SEEN = 2**14
# Rounding allowed at the ends of the window while searching, as a share of its width.
_END = 1e-6


@dataclass
class Batch:
    """Arrays with a row for each of B things, such as nodes; None where these have no such part."""

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def arrays(self) -> list[Any]:
        """The fields, in order."""
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return sum(array.nbytes for array in self.arrays if array is not None)

    def pick(self, rows: Any) -> Self:
        """Return some of the rows."""
        return type(self)(*(None if array is None else array[rows] for array in self.arrays))

    @classmethod
    def join(cls, batches: list[Self]) -> Self:
        """Concatenate batches."""
        if len(batches) == 1:
            return batches[0]
        columns = zip(*(batch.arrays for batch in batches), strict=True)
        return cls(*(None if arrays[0] is None else np.concatenate(arrays) for arrays in columns))


class Penalties:
    """The penalty of a loss for so many columns and units, infinite if that is not allowed."""

    def __init__(self, choices: Choices, goal: Goal) -> None:
        sizes = np.arange(len(choices.columns) + 1)
        self._columns = goal.penalty(sizes)
        self._columns[(sizes < choices.min_features) | (sizes > choices.max_features)] = np.inf
        allowed = np.flatnonzero(np.isfinite(self._columns))
        self._fewest = int(allowed.min(initial=len(sizes)))
        self._most = int(allowed.max(initial=0))
        # Least penalty of a model that can be cut down to so many columns.
        self._cut_down = self._columns[np.maximum(sizes, min(self._fewest, sizes[-1]))]
        self._units = goal.unit_penalty(np.arange(len(choices.units) + 1))
        self._counts_units = goal.criterion == "ebic"
        self.by_size = self._columns + self._least_of_sizes(choices)
        """(k + 1,) least penalty of a model of so many columns, infinite if not allowed"""

    def _least_of_sizes(self, choices: Choices) -> Floats:
        """Return the least penalty for units of models of each size, (k + 1,)."""
        least = np.full(len(self._columns), np.inf)
        if all(len(unit) == 1 for unit in choices.units):
            least[len(choices.always) :] = self._units
        else:
            least[len(choices.always) :] = self._units.min()
        return least

    def of(self, size: Any, units: Any) -> Floats:
        """Penalty of models of so many columns and units."""
        penalty = self._columns[size]
        return np.asarray(penalty + self._units[units] if self._counts_units else penalty)

    def least(self, size: Any, units: Any, dropped: Any) -> Floats:
        """Least penalty after 0 to ``dropped`` single columns are dropped from a model.

        Each column dropped lowers the penalty for columns. EBIC's penalty for units is concave in
        their number, and that for columns linear: their sum is least at one of the ends.
        """
        if not self._counts_units:
            return np.asarray(self._cut_down[size - dropped])
        fewest = np.maximum(size - dropped, np.minimum(self._fewest, size))
        last = self.of(fewest, units - (size - fewest))
        most = np.clip(size, fewest, np.maximum(self._most, fewest))
        return np.minimum(last, self.of(most, units - (size - most)))

    def least_of_units(self, size: Any, units: Any, undecided: Sequence[int]) -> Floats:
        """Least penalty after at least one of the undecided units, given by size, is dropped.

        For each number of units dropped, those with the most columns give the least penalty.
        """
        columns = np.cumsum(sorted(undecided, reverse=True))
        left = size[:, None] - columns
        left = np.maximum(left, np.minimum(self._fewest, size)[:, None])
        penalty = self.of(left, units[:, None] - np.arange(1, len(columns) + 1))
        return np.asarray(penalty.min(axis=1))


class Models:
    """The columns of a search, scaled, and the models on them."""

    def __init__(self, moments: Moments, choices: Choices, goal: Goal) -> None:
        self.groups = [unit for unit in choices.units if len(unit) > 1]
        singles = [unit[0] for unit in choices.units if len(unit) == 1]
        self.n_always, self.n_singles = len(choices.always), len(singles)
        grouped = [column for group in self.groups for column in group]
        self.columns = [*choices.always, *grouped, *singles]
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
        index = np.arange(k)
        self.bits: Words = np.zeros((k, self.n_words), dtype=np.uint64)
        self.bits[index, index // 64] = np.uint64(1) << (index % 64).astype(np.uint64)
        self.all_bits = np.bitwise_or.reduce(self.bits, axis=0)
        self._set_inverse(goal)

    def _set_inverse(self, goal: Goal) -> None:
        """Invert the Gram matrix, if that keeps enough digits for every model below."""
        x, y = self.matrix[:, :-1], self.matrix[:, -1]
        gram = x.T @ x
        smallest = float(np.linalg.eigvalsh(gram)[0])
        total = float(y @ y)
        self.inverse: Floats | None = None
        rounding = 64.0 * len(gram) * np.finfo(float).eps
        # A share of all squares, in units of the loss, if that does not take the logarithm.
        of_form = None if goal.form is None else total / goal.n_selected
        self.slack = max(_LEAST_SLACK, rounding * (of_form or 0.0))
        # The inverse of a nearly singular matrix gives an SSE of any size, which would hide the
        # rounding from the check below.
        if smallest <= rounding / _LARGEST_SLACK:
            return
        inverse: Floats = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        coef = inverse @ (x.T @ y)
        sse = float(np.sum((y - x @ coef) ** 2))
        if of_form is None:
            slack = rounding / (smallest * max(sse / total, np.finfo(float).tiny))
        else:
            slack = rounding / smallest * of_form
        if slack <= _LARGEST_SLACK:
            self.slack = max(slack, _LEAST_SLACK)
            self.inverse, self.coef, self.sse = inverse, coef, sse

    def masks(self, words: Words) -> Mask:
        """Convert words to masks over the search's columns, (N, k)."""
        index = np.arange(self.k)
        bits = words[:, index // 64] >> (index % 64).astype(np.uint64)
        return np.asarray((bits & np.uint64(1)).astype(bool))

    def words(self, masks: Mask) -> Words:
        """Convert masks over the search's columns, (N, k), to words."""
        bits = np.where(masks[:, :, None], self.bits, np.uint64(0))
        return np.asarray(np.bitwise_or.reduce(bits, axis=1))

    def invert(self, masks: Mask) -> tuple[Floats, Floats, Floats]:
        """SSE, coefficients and inverse Gram matrix, with lambda last, from the Gram matrix."""
        x, y = self.matrix[:, :-1], self.matrix[:, -1]
        held = np.concatenate([masks, np.ones((len(masks), 1), dtype=bool)], axis=1)
        # Columns outside get the equation beta = 0, so all systems have one size.
        inside = held[:, :, None] & held[:, None, :]
        inverse = np.linalg.inv(np.where(inside, x.T @ x, np.eye(self.k + 1))) * inside
        coef = inverse @ (x.T @ y)
        return np.sum((y - coef @ x.T) ** 2, axis=1), coef, inverse

    def solve(self, words: Words) -> tuple[Floats, Floats, Floats, Mask]:
        """SSE, beta_H, its v, and whether the model can be solved, from the triangular factor."""
        masks = self.masks(words)
        sizes = masks.sum(axis=1)
        sse, imr, spread = np.empty((3, len(words)))
        feasible = np.zeros(len(words), dtype=bool)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            chosen = np.nonzero(masks[rows])[1].reshape(len(rows), size)
            tail = np.broadcast_to([self.k, self.k + 1], (len(rows), 2))
            use = np.concatenate([chosen, tail], axis=1)
            r: Floats = np.asarray(np.linalg.qr(np.moveaxis(self.matrix[:, use], 1, 0), mode="r"))
            diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
            sse[rows] = diagonal[:, -1] ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                imr[rows] = r[:, size, size + 1] / r[:, size, size]
                spread[rows] = 1.0 / r[:, size, size] ** 2
            share = diagonal[:, :-1] * self._share[use[:, :-1]]
            feasible[rows] = np.all(share > DEPENDENT, axis=1)
        return sse, imr, spread, feasible


class Record:
    """Counts assignments, keeps the good ones, and sets the threshold for new ones.

    ``moments`` are those of the rows, also in a search of a quadratic form.
    """

    def __init__(
        self,
        moments: Moments,
        choices: Choices,
        goal: Goal,
        models: Models,
        *,
        tolerance: float,
        start: float,
        n_kept: int = KEPT,
    ) -> None:
        self._models, self._choices, self._goal = models, choices, goal
        self._tolerance, self._most_kept = tolerance, n_kept
        self.best = start
        """the least loss so far"""
        self.n_assignments = self.n_in_range = 0
        self._worst_kept = np.inf
        self._kept: list[tuple[Floats, Words]] = []
        self._n_kept = 0
        self._seen: list[tuple[Floats, Words]] = []
        self._stride = 1
        self._moments = moments
        self.solves_rho = goal.form is not None and goal.rho_range is not None
        """whether rho takes a solution of its own for each assignment"""
        self.n_solved = 0
        """assignments that were solved for their rho"""
        self._set_window(moments)

    def _set_window(self, moments: Moments) -> None:
        """Turn the window of rho into one of beta_H on the scaled lambda, in units of sqrt SSE.

        rho = h / sqrt(SSE / m + delta h^2), so h = rho / sqrt(1 - delta rho^2) sqrt(SSE / m).
        """
        self._window: tuple[float, float] | None = None
        self._rho_terms = moments.n_selected, moments.mean_delta
        # The regression of a quadratic form has no beta_H: rho comes from the compressed rows.
        if self._goal.rho_range is None or self.solves_rho:
            return
        low, high = (
            rho
            / np.sqrt(1.0 - moments.mean_delta * rho**2)
            * self._models.imr_norm
            / np.sqrt(moments.n_selected)
            for rho in self._goal.rho_range
        )
        self._window = float(low), float(high)

    @property
    def threshold(self) -> float:
        """Loss above which an assignment is not kept, with room for rounding."""
        within = self._goal.within(self.best, self._tolerance)
        return min(within, self._worst_kept) + self._models.slack

    def _inside(self, imr: Floats, sse: Floats, slack: float) -> Mask:
        """Whether beta_H is in the window, widened at both ends by a share of its width."""
        assert self._window is not None
        low, high = self._window
        root = np.sqrt(sse)
        room = slack * (high - low) * root
        return np.asarray((imr >= low * root - room) & (imr <= high * root + room))

    def least_sse(self, imr: Floats, sse: Floats, spread: Floats) -> Floats:
        """Bound the SSE of models in the window below models with these SSE, beta_H and v.

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

    def add(
        self,
        loss: Floats,
        sse: Floats,
        imr: Floats,
        words: Callable[[Any], Words],
        feasible: Mask | None = None,
    ) -> None:
        """Count assignments, keep the good ones, and tighten the threshold.

        ``words`` maps row indices to the assignments' bits.
        """
        usable = np.isfinite(loss) if feasible is None else np.isfinite(loss) & feasible
        if self.solves_rho:
            self._add_solved(loss, usable, words)
            return
        self.n_assignments += int(np.count_nonzero(usable))
        good = sure = np.flatnonzero(usable & (loss <= self.threshold))
        if self._window is None:
            self.n_in_range = self.n_assignments
        else:
            inside = usable & self._inside(imr, sse, 0.0)
            self.n_in_range += int(np.count_nonzero(inside))
            if not np.isfinite(self.best):
                self._see(self._rho(sse, imr), np.flatnonzero(usable), words)
            good = good[self._inside(imr[good], sse[good], _END)]
            sure = good[self._inside(imr[good], sse[good], -_END)]
        self._keep(loss, good, sure, words)

    def _add_solved(self, loss: Floats, usable: Mask, words: Callable[[Any], Words]) -> None:
        """Add assignments of a quadratic form, whose rho takes a solution of its own.

        Only those that would be kept are solved; the others do not count as evaluated.
        """
        rows = np.flatnonzero(usable & (loss <= self.threshold))
        if len(rows) == 0:
            return
        rho = np.asarray(self._moments.solve(self._masks(words(rows))).rho)
        self.n_solved += len(rows)
        if not np.isfinite(self.best):
            self._see(rho, np.arange(len(rows)), lambda places: words(rows[places]))
        self.n_assignments += len(rows)
        self.n_in_range += int(np.count_nonzero(self._goal.in_range(rho)))
        assert self._goal.rho_range is not None
        low, high = self._goal.rho_range
        room = _END * (high - low)
        away = self._goal.distance(rho)
        inner = (rho >= low + room) & (rho <= high - room)
        self._keep(loss, rows[away <= room], rows[inner], words)

    def _keep(self, loss: Floats, good: Any, sure: Any, words: Callable[[Any], Words]) -> None:
        """Keep the good assignments; the best of those surely in the window sets the threshold."""
        if len(good) == 0:
            return
        self._kept.append((loss[good], words(good)))
        self._n_kept += len(good)
        self.best = float(loss[sure].min(initial=self.best))
        if self._n_kept > 2 * self._most_kept:
            self._trim()

    def _trim(self) -> None:
        """Drop kept assignments that are no longer good enough."""
        loss = np.concatenate([losses for losses, _ in self._kept])
        words = np.concatenate([bits for _, bits in self._kept])
        # Parts of a search may overlap.
        first = np.sort(np.unique(words, axis=0, return_index=True)[1])
        loss, words = loss[first], words[first]
        good = np.flatnonzero(loss <= self.threshold)
        most = self._most_kept
        if len(good) > most:
            good = good[np.argsort(loss[good], kind="stable")]
            cut = float(loss[good[most - 1]])
            # Assignments tied with the last one are kept: rounding must not decide.
            good = good[loss[good] <= cut + self._models.slack][: 2 * most]
            self._worst_kept = min(self._worst_kept, cut)
        self._kept, self._n_kept = [(loss[good], words[good])], len(good)

    def _rho(self, sse: Floats, imr: Floats) -> Floats:
        m, delta = self._rho_terms
        slope = imr / self._models.imr_norm
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(slope / np.sqrt(sse / m + delta * slope**2))

    def _see(self, rho: Floats, rows: Any, words: Callable[[Any], Words]) -> None:
        """Keep an even sample of rho, with its extremes and the nearest to the window."""
        rows = rows[self._goal.sample_of(rho[rows], self._stride)]
        self._seen.append((rho[rows], words(rows)))
        if sum(len(some) for some, _ in self._seen) > 2 * _MOST_SEEN:
            rho, bits = (np.concatenate(arrays) for arrays in zip(*self._seen, strict=True))
            rows = self._goal.sample_of(rho, 2)
            self._seen = [(rho[rows], bits[rows])]
            self._stride *= 2

    def kept(self) -> Mask:
        """Return masks over the columns of X of the kept assignments, (N, K)."""
        if not self._kept:
            return np.zeros((0, self._choices.n_features), dtype=bool)
        self._trim()
        return self._masks(self._kept[0][1])

    def seen(self) -> tuple[Floats, Mask]:
        """Return a sample of rho, and the assignments that they belong to."""
        if not self._seen:
            return np.zeros(0), np.zeros((0, self._choices.n_features), dtype=bool)
        rho, words = (np.concatenate(arrays) for arrays in zip(*self._seen, strict=True))
        return rho, self._masks(words)

    def _masks(self, words: Words) -> Mask:
        masks = np.zeros((len(words), self._choices.n_features), dtype=bool)
        masks[:, self._models.columns] = self._models.masks(words)
        return masks
