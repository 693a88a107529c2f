"""Which columns separate selected from unselected rows, by linear programming.

The probit has no finite maximum if some direction d has q_i x_i'd >= 0 in every row (q_i = +1 for
selected, -1 for unselected rows) and > 0 in some. Separation is complete if it is > 0 in all rows,
and quasi-complete otherwise (Albert and Anderson 1984; Konis 2007 finds d by a linear program, as
here). The program has one constraint per row. Passes over the data find the binding rows, and only
these go to the solver, so its size does not grow with n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from heckmanfa.data.arrays import Array, Floats, empty, host, like, order_of, signs
from heckmanfa.data.rows import Block, Mask, Merge, Positions, Rows, total
from heckmanfa.model.linalg import Coordinates

# In units of standard deviations; the solver is asked for 1e-9.
TOLERANCE = 1e-6
_WORST_PER_BLOCK = 64
_CUTS_PER_ROUND = 512
_MAX_ROUNDS = 60
# More columns than this are first left out many at a time, and no further than so many programs go.
_ONE_BY_ONE = 60
_MAX_HALVINGS = 12


@dataclass(frozen=True)
class Separation:
    """A separating direction that uses few columns."""

    direction: Floats
    """(1 + p,) on standardised features, intercept first, largest entry 1 in size"""
    columns: tuple[int, ...]
    """indices, among the features, of the columns that it uses"""
    complete: bool
    """whether it determines the selection of every row"""
    n_decided: int
    """rows whose selection it determines"""


def find_separation(rows: Rows, features: Positions, coordinates: Coordinates) -> Separation | None:
    """Find a separating direction, or None if there is none.

    ``coordinates`` give the centre and scale of the features. Columns are removed greedily until
    none of the rest can be left out alone, or more are left than anyone would read.
    """
    search = _Search(rows, features, coordinates)
    allowed = np.ones(len(features) + 1, dtype=bool)
    direction = search.separating(allowed)
    if direction is None:
        return None
    direction, allowed = _thin_out(search, direction, allowed)
    few = np.count_nonzero(np.abs(direction[1:]) >= TOLERANCE) <= _ONE_BY_ONE
    # Small entries first: they are most likely unnecessary.
    for place in (np.argsort(np.abs(direction[1:]), kind="stable") + 1) if few else ():
        if abs(direction[place]) < TOLERANCE:
            allowed[place] = False
            continue
        fewer = allowed.copy()
        fewer[place] = False
        if not fewer[1:].any():
            break
        thinner = search.separating(fewer)
        if thinner is not None:
            direction, allowed = thinner, fewer
    complete = search.strictly_separating(allowed)
    if complete is not None:
        direction = complete
    direction = direction / np.abs(direction).max()
    columns = tuple(int(i) for i in np.flatnonzero(np.abs(direction[1:]) > TOLERANCE))
    (n_decided,) = total(search.map(_count_decided, direction, merge=total))
    if n_decided == 0:
        return None  # the gain was within the solver's tolerance
    return Separation(direction, columns, complete is not None, int(n_decided))


class _Search:
    """Linear programs over the rows that went to the solver so far."""

    def __init__(self, rows: Rows, features: Positions, coordinates: Coordinates) -> None:
        self._rows, self._features = rows, features
        self._scaling = coordinates.mean, coordinates.scale
        self._cuts = np.zeros((0, len(features) + 1))
        (self._pull,) = total(self.map(_pull, merge=total))

    def map(self, function: Callable[..., Any], *args: Any, merge: Merge) -> Iterator[Any]:
        """Apply a function to every block, with the centre and scale of the features."""
        return self._rows.map(function, *self._scaling, *args, columns=self._features, merge=merge)

    def separating(self, allowed: Mask) -> Floats | None:
        """Maximise the sum of q_i x_i'd over the allowed columns, with all terms non-negative."""
        size = max(float(np.abs(self._pull).max()), 1e-300)
        for _ in range(_MAX_ROUNDS):
            direction = _solve(self._pull / size, self._cuts, allowed)
            if direction is None or self._pull @ direction <= 1e-9 * size:
                return None
            if not self._cut(direction, 0.0):
                return direction
        return None

    def strictly_separating(self, allowed: Mask) -> Floats | None:
        """Return a direction with q_i x_i'd > 0 in every row, if any, by maximising the least."""
        usable = np.append(allowed, True)
        # One more variable, the margin e, with q_i x_i'd - e >= 0.
        objective = np.append(np.zeros(len(allowed)), 1.0)
        for _ in range(_MAX_ROUNDS):
            wide = np.column_stack([self._cuts, np.full(len(self._cuts), -1.0)])
            solved = _solve(objective, wide, usable)
            if solved is None or solved[-1] <= TOLERANCE:
                return None
            if not self._cut(solved[:-1], float(solved[-1]) / 2):
                return solved[:-1]
        return None

    def _cut(self, direction: Floats, least: float) -> bool:
        """Give the solver the rows furthest below ``least``, and say if there are any."""
        parts = list(self.map(_short_of, direction, least, merge=np.concatenate))
        together = np.concatenate(parts)
        worst = np.argsort(together @ direction, kind="stable")[:_CUTS_PER_ROUND]
        self._cuts = np.concatenate([self._cuts, together[worst]])
        return len(together) > 0


def _thin_out(search: _Search, direction: Floats, allowed: Mask) -> tuple[Floats, Mask]:
    """Leave out many columns at a time, if there are very many: halves, quarters and so on."""
    share = 2
    for _ in range(_MAX_HALVINGS):
        size = np.abs(direction[1:])
        n_used = int(np.count_nonzero(size >= TOLERANCE))
        if n_used <= _ONE_BY_ONE or share > n_used:
            break
        fewer = allowed.copy()
        fewer[1 + np.argsort(size, kind="stable")[: len(size) - n_used + n_used // share]] = False
        thinner = search.separating(fewer)
        if thinner is None:
            share *= 2
        else:
            direction, allowed = thinner, fewer
    return direction, allowed


def _solve(objective: Floats, cuts: Floats, allowed: Mask) -> Floats | None:
    """Maximise a linear objective with cuts @ d >= 0, -1 <= d <= 1, and d = 0 if not allowed."""
    solved = linprog(
        -objective,
        A_ub=-cuts if len(cuts) else None,
        b_ub=np.zeros(len(cuts)) if len(cuts) else None,
        bounds=[(-1.0, 1.0) if use else (0.0, 0.0) for use in allowed],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    return None if solved.x is None else np.asarray(solved.x, dtype=np.float64)


# Functions over one block of rows. -----------------------------------------------------------


def _signed(block: Block, centre: Floats, scale: Floats) -> Array:
    x = block.features
    design = empty(x, x.shape[0], x.shape[1] + 1)
    design[:, 0] = 1.0
    design[:, 1:] = (x - like(centre, x)) / like(scale, x)
    return design * signs(block.selected, x)[:, None]


def _pull(block: Block, centre: Floats, scale: Floats) -> tuple[Floats]:
    return (host(_signed(block, centre, scale).sum(axis=0)),)


def _short_of(
    block: Block, centre: Floats, scale: Floats, direction: Floats, least: float
) -> Floats:
    signed = _signed(block, centre, scale)
    side = signed @ like(direction, signed)
    worst = order_of(side)[:_WORST_PER_BLOCK]
    return host(signed[worst[side[worst] < least - TOLERANCE]])


def _count_decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> tuple[int]:
    return (int(decided(block, centre, scale, direction).sum()),)


def decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Array:
    """Mark the rows whose selection the direction determines."""
    signed = _signed(block, centre, scale)
    return signed @ like(direction, signed) > TOLERANCE
