"""Regressions without a row or a cluster: what standard errors that allow for leverage count."""

import numpy as np


def left_out(W, weight, y, units, count=None):
    """W'W (b - b_-g) of each unit g, (units, j), each b_-g from a regression without the unit.

    ``count`` says how many rows each row is; one of them is left out at a time.
    """
    count = np.ones(len(y)) if count is None else count
    moves = []
    root = np.sqrt(weight * count)
    whole = np.linalg.lstsq(W * root[:, None], y * root, rcond=None)[0]
    square = (W * root[:, None] ** 2).T @ W
    for unit in np.unique(units):
        kept = count - np.where(units == unit, np.minimum(count, 1.0), 0.0)
        left = np.sqrt(weight * kept)
        without = np.linalg.lstsq(W * left[:, None], y * left, rcond=None)[0]
        moves.append(square @ (whole - without))
    return np.array(moves)


def effective(pulls, most, count=None):
    """Satterthwaite's degrees of freedom of the sum of squared pulls, (e,)."""
    count = np.ones(len(pulls)) if count is None else count
    return np.minimum(3 * (count @ pulls**2) ** 2 / (count @ pulls**4), most)
