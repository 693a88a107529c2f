"""Best-subset search: a warm start, the tree search, and how good its result is.

The warm start follows stepwise paths and improves the best of their assignments by local search.
Where only the best is wanted and features are few, every assignment is evaluated instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import SearchWarning, warn
from heckmanfa.model.moments import Moments
from heckmanfa.search.best_subset.relaxation import search
from heckmanfa.search.best_subset.tree import Progress, Tree
from heckmanfa.search.choices import Choices
from heckmanfa.search.goal import NEARLY, TIE, Goal, distinct, no_feasible
from heckmanfa.search.searched import Search, evaluate
from heckmanfa.text.option_words import NODE_LIMIT

# A node costs about as much as its matrix has entries. The default budget is this many entries,
# about a minute's work.
_ENTRIES = 4_000_000_000
# Below this pivot, a column lies in the span of the others, up to rounding.
_PIVOT = 1e-9
_STARTS = 4
# So many units have few enough assignments to evaluate them all, in milliseconds.
_FEW_UNITS = 16
# Losses and rho of a Gram matrix are this near the exact ones, unless a fit is nearly perfect.
_ROUNDING, _NEARLY_PERFECT = 1e-8, 0.01


def best_subset(
    moments: Moments,
    choices: Choices,
    goal: Goal,
    *,
    names: Sequence[str],
    tolerance: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
    only_best: bool = False,
) -> Search:
    """Find the best of all assignments, and every assignment nearly as good.

    ``tolerance`` and ``max_nodes`` are those of `HeckmanBestSubset`; ``names`` label the columns of
    X. ``progress`` is called with the number of nodes, the best value so far and the bound on the
    others. With ``only_best``, those nearly as good may be missing.

    Examples
    --------
    >>> from heckmanfa import compress
    >>> from heckmanfa.datasets import make_selection
    >>> from heckmanfa.search import Goal, all_features, best_subset
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> moments = compress(data.X, data.y).moments
    >>> goal = Goal.of(moments, "bic")
    >>> result = best_subset(moments, all_features(moments), goal, names=data.feature_names)
    >>> result.best.nonzero()[0].tolist(), result.optimal
    ([2, 3, 4], True)
    """
    goal = goal.among(choices)
    tolerance = NEARLY[goal.criterion] if tolerance is None else tolerance
    if only_best and max_nodes is None and len(choices.units) <= _FEW_UNITS:
        leading = _leading(goal.searched(moments), choices, goal)
        if len(leading):
            counts = choices.n_assignments, len(leading)
            exact = {"optimal": True, "gap": 0.0, "tolerance": tolerance}
            return evaluate(moments, goal, leading, names=names, counts=counts, **exact)
    max_nodes = node_budget(choices) if max_nodes is None else max_nodes
    start = warm_start(moments, choices, goal)
    best = np.inf if start is None else start[0]
    tree = Tree(moments, choices, goal, tolerance=tolerance, max_nodes=max_nodes, start=best)
    search(tree, progress)
    masks = tree.record.kept()
    n_assignments, n_in_range = tree.record.n_assignments, tree.record.n_in_range
    reason = "was interrupted" if tree.interrupted else f"stopped at {NODE_LIMIT}{max_nodes} nodes"
    if not tree.complete and start is not None:
        known = len(masks)
        masks = distinct(np.concatenate([masks, start[1][None]]))
        n_assignments += len(masks) - known
        n_in_range += len(masks) - known
    if len(masks) == 0 and tree.interrupted:
        raise KeyboardInterrupt
    if len(masks) == 0:
        extra = "" if tree.complete else f" The search {reason}; raise it to evaluate more."
        raise no_feasible(goal, n_assignments, *tree.record.seen(), names, extra)
    result = evaluate(
        moments,
        goal,
        masks,
        names=names,
        counts=(n_assignments, n_in_range),
        n_nodes=tree.n_nodes,
        optimal=True,
        gap=0.0,
        tolerance=tolerance,
    )
    return result if tree.complete else _incomplete(result, tree, reason)


def node_budget(choices: Choices) -> int:
    """Return the default of ``max_nodes``."""
    return _ENTRIES // (len(choices.units) + 1) ** 2


def _incomplete(result: Search, tree: Tree, reason: str) -> Search:
    """Warn that the search stopped early, and state how far from optimal it may be."""
    goal = result.goal
    best = float(result.values[0])
    possible = float(goal.value(tree.bound))
    gap = max(possible - best if goal.criterion == "adjusted_r2" else best - possible, 0.0)
    warn(
        f"the search {reason}; the best assignment found has {goal.criterion} {best:.6g}, and "
        + (
            f"another may be better by at most {gap:.3g} (gap_)."
            if gap
            else "none is better, but others nearly as good may be missing."
        ),
        SearchWarning,
    )
    return replace(
        result,
        gap=gap,
        optimal=gap == 0.0,
        early_stop=f"The search {reason}.",
        interrupted=tree.interrupted,
    )


def _leading(moments: Moments, choices: Choices, goal: Goal) -> Mask:
    """Return the best of all assignments, and those that rounding may tell from it, (N, K).

    None are known if columns are too collinear, if an outcome is fitted too well, or if a window is
    of a rho that ``moments`` do not have. The Gram matrix of the units still to come, lambda and
    the outcome is kept for every assignment of the units before: the next unit is deleted from it,
    or partialled out.
    """
    nothing = np.zeros((0, choices.n_features), dtype=bool)
    if not moments.gram_is_safe or (goal.form is not None and goal.rho_range is not None):
        return nothing
    tableau = _Tableau(moments, choices, goal, sweep_imr=False)
    columns = [column for unit in tableau.units for column in unit] + [-2, -1]
    grams = tableau.matrix[np.ix_(columns, columns)][:, :, None]
    size, n_units = np.array([tableau.n_always]), np.array([0])
    for unit in tableau.units:
        held = grams
        for _ in unit:
            held = held[1:, 1:] - (held[0, 1:] / held[0, 0])[:, None] * held[0, 1:]
        grams = np.concatenate([grams[len(unit) :, len(unit) :], held], axis=2)
        size, n_units = np.append(size, size + len(unit)), np.append(n_units, n_units + 1)
    (of_imr, shared), (_, of_outcome) = grams
    imr = shared / of_imr
    sse = of_outcome - shared * imr
    if goal.form is None and sse.min() < _NEARLY_PERFECT:
        return nothing
    away, loss = tableau.score(sse * tableau.scale, imr * tableau.imr_scale, size, n_units)
    if not (away == 0.0).any():
        return nothing
    near = (away <= _ROUNDING) & (loss <= loss[away == 0.0].min() + _ROUNDING)
    leading = np.flatnonzero(near)
    return choices.masks((leading[:, None] >> np.arange(len(choices.units))) & 1 == 1)


def warm_start(moments: Moments, choices: Choices, goal: Goal) -> tuple[float, Mask] | None:
    """Find a good assignment in the window, deterministically: its loss and mask, (K,)."""
    tableau = _Tableau(goal.searched(moments), choices, goal)
    starts = [(*tableau.now(), tableau.inside.tobytes())]
    for outward in (False, True):
        for _ in range(len(choices.units)):
            sse, _ = tableau.neighbours()
            sse[tableau.inside != outward] = np.nan
            if not np.isfinite(sse).any():
                break
            tableau.toggle(int(np.nanargmin(sse)))
            starts.append((*tableau.now(), tableau.inside.tobytes()))
    improved: list[tuple[float, float, bytes]] = []
    for _, _, start in sorted(set(starts))[:_STARTS]:
        for unit in np.flatnonzero(tableau.inside != np.frombuffer(start, dtype=bool)):
            tableau.toggle(int(unit))
        improved.append((*_improve(tableau), tableau.inside.tobytes()))
    best = [min(improved)]
    if goal.form is not None and goal.rho_range is not None:
        # The tableau does not know rho: any of these may be the best in the window.
        best = sorted({*starts, *improved})
    inside = np.array([np.frombuffer(start[2], dtype=bool) for start in best])
    masks = choices.masks(inside)
    solved = moments.solve(masks, exact=True)
    good = solved.feasible & choices.allowed(inside) & goal.in_range(solved.rho)
    if not good.any():
        return None
    losses = np.where(good, goal.losses(solved, masks), np.inf)
    return float(losses.min()), masks[int(np.argmin(losses))]


class _Tableau:
    """Least squares on a changing set of units, by the sweep operator.

    The Gram matrix of [X, lambda, y] is swept on the columns inside and, unless not
    ``sweep_imr``, on lambda. Sweeping column
    k in or out changes every other entry by the same formula, a_ij - a_ik a_kj / a_kk, so
    evaluating a neighbour takes only a few numbers.
    """

    def __init__(
        self, moments: Moments, choices: Choices, goal: Goal, *, sweep_imr: bool = True
    ) -> None:
        self._goal, self._choices = goal, choices
        self._m, self._delta = moments.n_selected, moments.mean_delta
        scaled, norms = moments.scaled()
        always = moments.positions(choices.always)
        self.units = [moments.positions(unit) for unit in choices.units]
        self.sizes, self.n_always = choices.sizes, len(always)
        self.matrix = scaled.T @ scaled
        self.scale, self.imr_scale = norms[-1] ** 2, norms[-1] / norms[-2]
        self.inside = np.zeros(len(self.units), dtype=bool)
        self._singles = [index for index, unit in enumerate(self.units) if len(unit) == 1]
        self._groups = [index for index, unit in enumerate(self.units) if len(unit) > 1]
        self._columns = np.array([self.units[index][0] for index in self._singles], dtype=np.intp)
        for column in [len(self.matrix) - 2] * sweep_imr + always:
            _sweep(self.matrix, column, inward=True)

    def toggle(self, unit: int) -> None:
        """Add a unit, or remove it if it is inside."""
        for column in self.units[unit]:
            _sweep(self.matrix, column, inward=not self.inside[unit])
        self.inside[unit] = not self.inside[unit]

    @property
    def size(self) -> Any:
        """Number of columns inside."""
        return self.inside @ self.sizes + self.n_always

    def score(self, sse: Floats, imr: Floats, size: Any, n_units: Any) -> tuple[Floats, Floats]:
        """Score assignments: first the distance of rho from the window, then the loss."""
        loss = self._goal.loss(sse, size, n_units)
        allowed = (size >= self._choices.min_features) & (size <= self._choices.max_features)
        bad = ~allowed | np.isinf(loss)
        away = np.zeros(len(sse))
        if self._goal.form is None and (self._goal.rho_range is not None or not imr.all()):
            with np.errstate(divide="ignore", invalid="ignore"):
                rho = imr / np.sqrt(np.maximum(sse, 0.0) / self._m + imr**2 * self._delta)
            away = self._goal.distance(rho)
        return np.where(bad, np.inf, away), np.where(bad, np.inf, loss)

    def now(self) -> tuple[float, float]:
        """Score the units inside."""
        sse, imr = self.matrix[-1, -1] * self.scale, self.matrix[-2, -1] * self.imr_scale
        numbers = (np.array([number]) for number in (sse, imr, self.size, self.inside.sum()))
        away, loss = self.score(*numbers)
        return float(away[0]), float(loss[0])

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


def _improve(tableau: _Tableau) -> tuple[float, float]:
    """Toggle and swap units while that helps."""
    current = tableau.now()
    for _ in range(4 * len(tableau.units)):
        size, n_units = tableau.size, tableau.inside.sum()
        sse, imr = tableau.neighbours()
        change = np.where(tableau.inside, -tableau.sizes, tableau.sizes)
        away, loss = tableau.score(sse, imr, size + change, n_units + np.sign(change))
        step = int(np.lexsort((loss, away))[0])
        if _better((away[step], loss[step]), current):
            tableau.toggle(step)
        else:
            pairs, sse, imr = tableau.swaps()
            if len(pairs) == 0:
                break
            away, loss = tableau.score(sse, imr, np.full(len(sse), size), n_units)
            step = int(np.lexsort((loss, away))[0])
            if not _better((away[step], loss[step]), current):
                break
            for unit in pairs[step]:
                tableau.toggle(int(unit))
        current = tableau.now()
    return current


def _better(new: tuple[float, float], old: tuple[float, float]) -> bool:
    return new[0] < old[0] or (new[0] == old[0] and new[1] < old[1] - TIE)
