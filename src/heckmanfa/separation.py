"""Which columns separate selected from unselected rows, by linear programming.

The probit has no finite maximum where some direction d has q_i x_i'd >= 0 in every row (q_i = +1
for selected, -1 for unselected rows) and > 0 in some: complete separation where it is > 0 in all
of them, quasi-complete otherwise (Albert and Anderson 1984; Konis 2007 finds d by a linear
program, as here). The program has one constraint a row; only the rows that bind are ever handed
to the solver, found by passes over the data, so that its size does not grow with n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from heckmanfa.normal import Floats
from heckmanfa.probit import Coordinates
from heckmanfa.rows import Block, Mask, Positions, Rows, total

__all__ = ["Separation", "decided", "find_separation"]

# In units of standard deviations; the solver is asked for 1e-9.
_TOLERANCE = 1e-6
_WORST_PER_BLOCK = 64
_CUTS_A_ROUND = 512
_MAX_ROUNDS = 60


@dataclass(frozen=True)
class Separation:
    """A direction that separates, with as few columns as were found to suffice."""

    direction: Floats
    """(1 + p,) on standardised features, intercept first, largest entry 1 in size"""
    columns: tuple[int, ...]
    """places, among the features, of the columns that it uses"""
    complete: bool
    """whether every row is decided by it"""
    n_decided: int
    """rows that it decides"""


def find_separation(rows: Rows, features: Positions, coordinates: Coordinates) -> Separation | None:
    """Find a separating direction, or None where there is none.

    Parameters
    ----------
    rows : Rows
    features : sequence of int
        Columns of the selection equation, p of them.
    coordinates : Coordinates
        Gives the centre and scale of the features.

    Returns
    -------
    Separation or None
        The columns are thinned out greedily: none of those named can be left out alone.
    """
    centre, scale = coordinates.centre, coordinates.scale
    (pull,) = total(rows.map(_pull, centre, scale, columns=features))
    cuts = np.zeros((0, len(features) + 1))
    allowed = np.ones(len(features) + 1, dtype=bool)
    direction, cuts = _search(rows, features, coordinates, pull, cuts, allowed)
    if direction is None:
        return None
    # Small entries first: they are the likeliest to be needless.
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
    direction = direction / np.abs(direction).max()
    columns = tuple(int(i) for i in np.flatnonzero(np.abs(direction[1:]) > _TOLERANCE))
    n_decided = n = 0
    for marks in rows.map(decided, centre, scale, direction, columns=features):
        n_decided, n = n_decided + int(np.count_nonzero(marks)), n + len(marks)
    return Separation(direction, columns, n_decided == n, n_decided)


def _search(
    rows: Rows,
    features: Positions,
    coordinates: Coordinates,
    pull: Floats,
    cuts: Floats,
    allowed: Mask,
) -> tuple[Floats | None, Floats]:
    """Solve the program over the allowed columns by adding violated rows until none is left."""
    centre, scale = coordinates.centre, coordinates.scale
    size = np.abs(pull).max()
    if size == 0:
        size = 1.0
    bounds = [(-1.0, 1.0) if use else (0.0, 0.0) for use in allowed]
    for _ in range(_MAX_ROUNDS):
        solved = linprog(
            -pull / size,
            A_ub=-cuts if len(cuts) else None,
            b_ub=np.zeros(len(cuts)) if len(cuts) else None,
            bounds=bounds,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        if solved.x is None:
            return None, cuts
        direction = np.asarray(solved.x, dtype=np.float64)
        worst = [
            cut
            for cut in rows.map(_violations, centre, scale, direction, columns=features)
            if len(cut)
        ]
        if not worst:
            (gain,) = total(rows.map(_gain, centre, scale, direction, columns=features))
            return (direction, cuts) if gain > _TOLERANCE else (None, cuts)
        if pull @ direction <= 1e-9 * size:
            return None, cuts
        violated = np.concatenate(worst)
        order = np.argsort(violated @ direction, kind="stable")[:_CUTS_A_ROUND]
        cuts = np.concatenate([cuts, violated[order]])
    return None, cuts


# What runs on a block of rows. ---------------------------------------------------------------


def _signed(block: Block, centre: Floats, scale: Floats) -> Floats:
    design = np.column_stack([np.ones(len(block.features)), (block.features - centre) / scale])
    return design * np.where(block.selected, 1.0, -1.0)[:, None]


def _pull(block: Block, centre: Floats, scale: Floats) -> tuple[Floats]:
    return (_signed(block, centre, scale).sum(axis=0),)


def _violations(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Floats:
    signed = _signed(block, centre, scale)
    side = signed @ direction
    worst = np.argsort(side, kind="stable")[:_WORST_PER_BLOCK]
    return signed[worst[side[worst] < -_TOLERANCE]]


def _gain(block: Block, centre: Floats, scale: Floats, direction: Floats) -> tuple[float]:
    side = _signed(block, centre, scale) @ direction
    return (float(np.sum(side[side > _TOLERANCE])),)


def decided(block: Block, centre: Floats, scale: Floats, direction: Floats) -> Mask:
    """Mark the rows whose selection the direction decides."""
    return np.asarray(_signed(block, centre, scale) @ direction > _TOLERANCE)
