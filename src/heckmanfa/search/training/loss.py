"""One assignment's fit and the gradient of its loss: the first factors of Eq. lmaegrad."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    booleans,
    host,
    like,
    namespace,
    solve_assigned,
    solve_assigned_by_factor,
)
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import InputError
from heckmanfa.model.linalg import DEPENDENT
from heckmanfa.model.moments import Moments
from heckmanfa.search.training.training_rows import TrainingRows, gather_training_rows

__all__ = ["Gradient", "psi_gradient"]


class _Contrasts:
    """The least-squares contrast of an assignment: times the rows of [X, lambda, y, 1], residuals.

    It is on the scaled columns of the moments: minus the slopes, 1 for the outcome, and 0.
    """

    def __init__(self, moments: Moments, beside: Array) -> None:
        columns, self.norms = moments.scaled()
        self._safe = moments.gram_is_safe
        self._gram = like(columns[:, :-1].T @ columns[:, :-1], beside)
        self._right = like(columns[:, :-1].T @ columns[:, -1], beside)
        self._factor = like(columns, beside)
        self._always = namespace(beside).isfinite(like([0.0], beside))
        self._rest = like([1.0, 0.0], beside)

    def __call__(self, inside: Array) -> tuple[Array, Any]:
        """(k + 3,) for the features inside (k,), and whether they can be told apart."""
        concat = namespace(inside).concat
        use = concat((inside, self._always))
        if self._safe:
            slopes, solved = solve_assigned(self._gram, self._right, use)
        else:
            slopes, solved = solve_assigned_by_factor(self._factor, use, DEPENDENT)
        return concat((-slopes, self._rest)), solved


class Gradient:
    """The gradient of a loss with respect to psi, in the coordinates that were asked for."""

    def __init__(self, moments: Moments, rows: TrainingRows, standardize: bool | str) -> None:
        self.contrast = _Contrasts(moments, rows.beside)
        self._rows = rows
        norms = self.contrast.norms
        self._unit = float(np.sqrt(moments.n_selected) if standardize is True else norms[-1])
        # Scaled columns are centred. Where features are to stay as they are, their mean comes
        # back, in units of the scaled columns.
        shift = None if standardize else moments.means[:-2] / norms[:-2]
        self._shift = None if shift is None else like(shift, rows.beside)

    def __call__(self, contrast: Array, loss: str = "mae") -> tuple[Any, Array]:
        """Loss, and its derivative by psi(k) for each of the k features with beta held fixed."""
        value, pulls = self._rows.pulls(contrast, loss)
        unit = (self._unit if loss == "mae" else self._unit**2) / self._rows.n
        pull = pulls[:-3]
        if self._shift is not None:
            pull = pull + self._shift * pulls[-1]
        return value * unit, unit * contrast[:-3] * pull


def psi_gradient(
    moments: Moments,
    rows: Rows,
    assignment: Mask,
    *,
    loss: str = "mae",
    standardize: bool | str = False,
) -> Floats:
    """Derivative of a loss by psi(k) for an assignment, beta-hat held fixed.

    Parameters
    ----------
    assignment : (K,) ndarray of bool
    loss : {"mae", "mse"}
        The mean absolute error (the first factors of Eq. lmaegrad), or the mean squared error,
        whose gradient the paper's appendix shows to be zero.
    standardize : bool or "features"
        As in `train`.

    Returns
    -------
    (K,) ndarray
        Zero for features that are not assigned.
    """
    training = gather_training_rows(moments, rows, None, 0)
    gradient = Gradient(moments, training, standardize)
    chosen = [int(one) for one in np.flatnonzero(assignment)]
    inside = np.zeros(len(moments.columns), dtype=bool)
    inside[np.array(moments.places(chosen), dtype=np.intp) - 1] = True
    contrast, solved = gradient.contrast(booleans(inside, training.beside))
    if not solved:
        raise InputError("the assignment's features are collinear among the selected rows")
    spread = np.zeros(moments.n_features)
    spread[list(moments.columns)] = host(gradient(contrast, loss)[1])
    return spread
