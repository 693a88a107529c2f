"""Which columns separate selected from unselected rows, by linear programming.

The probit has no finite maximum if some direction d has q_i x_i'd >= 0 in every row (q_i = +1 for
selected, -1 for unselected rows) and > 0 in some. Separation is complete if it is > 0 in all rows,
and quasi-complete otherwise (Albert and Anderson 1984; Konis 2007 finds d by a linear program, as
here). The program has one constraint per row. Passes over the data find the binding rows, and only
these go to the solver, so its size does not grow with n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from heckmanfa.data.arrays import Array, Floats, empty, host, like, order_of, signs
from heckmanfa.data.rows import Block, Mask, Positions, Rows, total
from heckmanfa.model.coordinates import Coordinates

# In units of standard deviations; the solver is asked for 1e-9.
_TOLERANCE = 1e-6
_WORST_PER_BLOCK = 64
_CUTS_PER_ROUND = 512
_MAX_ROUNDS = 60


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
    none of the rest can be left out alone.
    """
    centre, scale = coordinates.mean, coordinates.scale
    (pull,) = total(rows.map(_pull, centre, scale, columns=features, merge=total))
    cuts = np.zeros((0, len(features) + 1))
    allowed = np.ones(len(features) + 1, dtype=bool)
    direction, cuts = _search(rows, features, coordinates, pull, cuts, allowed)
    if direction is None:
        return None
    # Small entries first: they are most likely unnecessary.
    for place in np.argsort(np.abs(direction[1:]), kind="stable") + 1:
        if abs(direction[place]) < _TOLERANCE:
            allowed[place] = False
            continue
        fewer = allowed.copy()
        fewer[place] = False
        if not fewer[1:].any():
            break
        thinner, cuts = _search(rows, features, coordinates, pull, cuts, fewer)
        if thinner is not None:
            direction, allowed = thinner, fewer
    complete = _strictly_separating(rows, features, coordinates, cuts, allowed)
    if complete is not None:
        direction = complete
    direction = direction / np.abs(direction).max()
    columns = tuple(int(i) for i in np.flatnonzero(np.abs(direction[1:]) > _TOLERANCE))
    (n_decided,) = total(
        rows.map(_count_decided, centre, scale, direction, columns=features, merge=total)
    )
    if n_decided == 0:
        return None  # the gain was within the solver's tolerance
    return Separation(direction, columns, complete is not None, int(n_decided))


def _search(
    rows: Rows,
    features: Positions,
    coordinates: Coordinates,
    pull: Floats,
    cuts: Floats,
    allowed: Mask,
) -> tuple[Floats | None, Floats]:
    """Maximise the sum of q_i x_i'd over the allowed columns, with all terms non-negative.

    Also returns the rows that went to the solver, for the next search to start from.
    """
    size = max(float(np.abs(pull).max()), 1e-300)
    for _ in range(_MAX_ROUNDS):
        direction = _solve(pull / size, cuts, allowed)
        if direction is None or pull @ direction <= 1e-9 * size:
            return None, cuts
        worst = _worst_rows(rows, features, coordinates, direction, 0.0)
        if worst is None:
            return direction, cuts
        cuts = np.concatenate([cuts, worst])
    return None, cuts


def _strictly_separating(
    rows: Rows, features: Positions, coordinates: Coordinates, cuts: Floats, allowed: Mask
) -> Floats | None:
    """Return a direction with q_i x_i'd > 0 in every row, if any, by maximising the least."""
    usable = np.append(allowed, True)
    for _ in range(_MAX_ROUNDS):
        # One more variable, the margin e, with q_i x_i'd - e >= 0.
        objective = np.append(np.zeros(len(allowed)), 1.0)
        wide = np.column_stack([cuts, np.full(len(cuts), -1.0)])
        solved = _solve(objective, wide, usable)
        if solved is None or solved[-1] <= _TOLERANCE:
            return None
        worst = _worst_rows(rows, features, coordinates, solved[:-1], float(solved[-1]) / 2)
        if worst is None:
            return solved[:-1]
        cuts = np.concatenate([cuts, worst])
    return None


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


def _worst_rows(
    rows: Rows, features: Positions, coordinates: Coordinates, direction: Floats, least: float
) -> Floats | None:
    """Return the rows furthest below ``least``, or None if there are none."""
    args = (coordinates.mean, coordinates.scale, direction, least)
    together = np.concatenate(
        list(rows.map(_short_of, *args, columns=features, merge=np.concatenate))
    )
    if len(together) == 0:
        return None
    return together[np.argsort(together @ direction, kind="stable")[:_CUTS_PER_ROUND]]


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
    return host(signed[worst[side[worst] < least - _TOLERANCE]])


def _count_decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> tuple[int]:
    return (int(decided(block, centre, scale, direction).sum()),)


def decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Array:
    """Mark the rows whose selection the direction determines."""
    signed = _signed(block, centre, scale)
    return signed @ like(direction, signed) > _TOLERANCE
