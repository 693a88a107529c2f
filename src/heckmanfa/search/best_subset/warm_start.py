"""Stepwise paths and local search: a good assignment, found quickly, to start the tree from."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import TIE, Goal

# Below this pivot, a column lies in the span of the others, up to rounding.
_PIVOT = 1e-9
_STARTS = 4


class _Tableau:
    """Least squares on a changing set of units, by the sweep operator.

    The Gram matrix of [X, lambda, y] is swept on lambda and on the columns inside. Sweeping column
    k in or out changes every other entry by the same formula, a_ij - a_ik a_kj / a_kk, so
    evaluating a neighbour takes only a few numbers.
    """

    def __init__(self, moments: Moments, choices: Choices) -> None:
        scaled, norms = moments.scaled()
        always = [place - 1 for place in moments.places(choices.always)]
        self.units = [[place - 1 for place in moments.places(unit)] for unit in choices.units]
        self.sizes, self.n_always = choices.sizes, len(always)
        self.matrix = scaled.T @ scaled
        self.scale, self.imr_scale = norms[-1] ** 2, norms[-1] / norms[-2]
        self.inside = np.zeros(len(self.units), dtype=bool)
        self._singles = [index for index, unit in enumerate(self.units) if len(unit) == 1]
        self._groups = [index for index, unit in enumerate(self.units) if len(unit) > 1]
        self._columns = np.array([self.units[index][0] for index in self._singles], dtype=np.intp)
        for column in [len(self.matrix) - 2, *always]:
            _sweep(self.matrix, column, inward=True)

    def toggle(self, unit: int) -> None:
        """Add a unit, or remove it if it is inside."""
        for column in self.units[unit]:
            _sweep(self.matrix, column, inward=not self.inside[unit])
        self.inside[unit] = not self.inside[unit]

    def now(self) -> tuple[float, float]:
        """SSE and beta_H of the units inside."""
        return self.matrix[-1, -1] * self.scale, self.matrix[-2, -1] * self.imr_scale

    def neighbours(self) -> tuple[Floats, Floats]:
        """SSE and beta_H after each unit is toggled, (U,); NaN if it cannot be."""
        a, columns = self.matrix, self._columns
        sse, imr = np.full((2, len(self.units)), np.nan)
        pivot = np.where(np.abs(a[columns, columns]) > _PIVOT, a[columns, columns], np.nan)
        sse[self._singles] = a[-1, -1] - a[columns, -1] ** 2 / pivot
        imr[self._singles] = a[-2, -1] - a[columns, -2] * a[columns, -1] / pivot
        for unit in self._groups:
            trial = a.copy()
            inward = not self.inside[unit]
            if all(_sweep(trial, column, inward=inward) for column in self.units[unit]):
                sse[unit], imr[unit] = trial[-1, -1], trial[-2, -1]
        return sse * self.scale, imr * self.imr_scale

    def swaps(self) -> tuple[Any, Floats, Floats]:
        """(in, out) pairs of single columns, and SSE and beta_H after they are swapped."""
        a = self.matrix
        state = self.inside[self._singles]
        held, free = np.flatnonzero(state), np.flatnonzero(~state)
        i, j = (grid.ravel() for grid in np.meshgrid(held, free, indexing="ij"))
        pairs = np.array(self._singles, dtype=np.intp)[np.stack([i, j], axis=1)]
        i, j = self._columns[i], self._columns[j]
        first = a[i, i]
        share = a[i, j] / first
        pivot = a[j, j] - share * a[i, j]
        pivot = np.where(pivot > _PIVOT, pivot, np.nan)
        with_y, with_imr = a[j, -1] - share * a[i, -1], a[j, -2] - share * a[i, -2]
        sse = a[-1, -1] - a[i, -1] ** 2 / first - with_y**2 / pivot
        imr = a[-2, -1] - a[i, -2] * a[i, -1] / first - with_imr * with_y / pivot
        return pairs, sse * self.scale, imr * self.imr_scale


def _sweep(a: Floats, k: int, *, inward: bool) -> bool:
    """Sweep a symmetric matrix on one column in place, if its pivot allows."""
    pivot = a[k, k]
    if not abs(pivot) > _PIVOT:
        return False
    column = a[:, k].copy()
    a -= np.multiply.outer(column, column) / pivot
    a[:, k] = a[k, :] = column / pivot if inward else -column / pivot
    a[k, k] = -1.0 / pivot
    return True


def warm_start(moments: Moments, choices: Choices, goal: Goal) -> tuple[float, Mask] | None:
    """Find a good assignment in the window, deterministically: its loss and mask, (K,)."""
    judge = _Judge(moments, goal)
    tableau = _Tableau(moments, choices)
    starts: list[tuple[float, float, bytes]] = []
    for outward in (False, True):
        for _ in range(len(choices.units)):
            sse, _ = tableau.neighbours()
            sse[tableau.inside != outward] = np.nan
            if not np.isfinite(sse).any():
                break
            tableau.toggle(int(np.nanargmin(sse)))
            starts.append((*judge.now(tableau, choices), tableau.inside.tobytes()))
    best: tuple[float, float, bytes] | None = None
    for _, _, start in sorted(set(starts))[:_STARTS]:
        for unit in np.flatnonzero(tableau.inside != np.frombuffer(start, dtype=bool)):
            tableau.toggle(int(unit))
        found = (*_improve(tableau, choices, judge), tableau.inside.tobytes())
        best = found if best is None else min(best, found)
    none = np.zeros(len(choices.units), dtype=bool)
    inside = none if best is None else np.frombuffer(best[2], dtype=bool)
    mask = choices.masks(inside)
    solved = moments.solve(mask)
    if not (solved.feasible and choices.allowed(inside[None])[0] and goal.in_range(solved.rho)):
        return None
    return float(goal.loss(solved.sse, solved.n_features)), mask


class _Judge:
    """Scores assignments: first the distance from the window, then the loss."""

    def __init__(self, moments: Moments, goal: Goal) -> None:
        self._goal, self._m, self._delta = goal, moments.n_selected, moments.mean_delta

    def __call__(self, sse: Floats, imr: Floats, size: Floats, most: int) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = imr / np.sqrt(np.maximum(sse, 0.0) / self._m + imr**2 * self._delta)
        loss = self._goal.loss(sse, size)
        away = self._goal.distance(rho)
        bad = (size < 1) | (size > most) | np.isinf(loss)
        return np.where(bad, np.inf, away), np.where(bad, np.inf, loss)

    def now(self, tableau: _Tableau, choices: Choices) -> tuple[float, float]:
        sse, imr = tableau.now()
        size = tableau.inside @ tableau.sizes + tableau.n_always
        away, loss = self(np.array([sse]), np.array([imr]), np.array([size]), choices.max_features)
        return float(away[0]), float(loss[0])


def _improve(tableau: _Tableau, choices: Choices, judge: _Judge) -> tuple[float, float]:
    """Toggle and swap units while that helps."""
    most = choices.max_features
    current = judge.now(tableau, choices)
    for _ in range(4 * len(choices.units)):
        size = tableau.inside @ tableau.sizes + tableau.n_always
        sse, imr = tableau.neighbours()
        change = np.where(tableau.inside, -tableau.sizes, tableau.sizes)
        away, loss = judge(sse, imr, size + change, most)
        step = int(np.lexsort((loss, away))[0])
        if _better((away[step], loss[step]), current):
            tableau.toggle(step)
        else:
            pairs, sse, imr = tableau.swaps()
            if len(pairs) == 0:
                break
            away, loss = judge(sse, imr, np.full(len(sse), size), most)
            step = int(np.lexsort((loss, away))[0])
            if not _better((away[step], loss[step]), current):
                break
            for unit in pairs[step]:
                tableau.toggle(int(unit))
        current = judge.now(tableau, choices)
    return current


def _better(new: tuple[float, float], old: tuple[float, float]) -> bool:
    return new[0] < old[0] or (new[0] == old[0] and new[1] < old[1] - TIE)
