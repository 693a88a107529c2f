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
from heckmanfa.model.option_types import Standardize
from heckmanfa.search.training.gpu import Loss
from heckmanfa.search.training.training_rows import TrainingRows, gather_training_rows


class _Contrasts:
    """The contrast of an assignment: multiplied by rows of [X, lambda, y, 1], it gives residuals.

    On the scaled columns of the moments it is minus the slopes, then 1 for the outcome, then 0.
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
        """Return (k + 3,) for the features inside (k,), and whether they are not collinear."""
        concat = namespace(inside).concat
        use = concat((inside, self._always))
        if self._safe:
            slopes, solved = solve_assigned(self._gram, self._right, use)
        else:
            slopes, solved = solve_assigned_by_factor(self._factor, use, DEPENDENT)
        return concat((-slopes, self._rest)), solved


class Gradient:
    """The gradient of a loss with respect to psi, in standardised or original coordinates."""

    def __init__(self, moments: Moments, rows: TrainingRows, standardize: Standardize) -> None:
        self.contrast = _Contrasts(moments, rows.beside)
        self._rows = rows
        norms = self.contrast.norms
        self._unit = float(np.sqrt(moments.n_selected) if standardize is True else norms[-1])
        # Scaled columns are centred. Features that are not standardised get their mean back, in
        # units of the scaled columns.
        shift = None if standardize else moments.means[:-2] / norms[:-2]
        self._shift = None if shift is None else like(shift, rows.beside)

    def __call__(self, contrast: Array, loss: Loss = "mae") -> tuple[Any, Array]:
        """Loss, and its derivative with respect to psi(k), (k,), with beta held fixed."""
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
    loss: Loss = "mae",
    standardize: Standardize = False,
) -> Floats:
    """Derivative of a loss with respect to psi(k) for an assignment, beta-hat held fixed.

    The assignment is a boolean mask, (K,). The gradient of the mean absolute error holds the first
    factors of Eq. lmaegrad; the paper's appendix shows that of the mean squared error to be zero.
    ``standardize`` is that of `train`. Returns (K,), zero for unassigned features.
    """
    training = gather_training_rows(moments, rows, None, 0)
    gradient = Gradient(moments, training, standardize)
    chosen = [int(column) for column in np.flatnonzero(assignment)]
    inside = np.zeros(len(moments.columns), dtype=bool)
    inside[np.array(moments.places(chosen), dtype=np.intp) - 1] = True
    contrast, solved = gradient.contrast(booleans(inside, training.beside))
    if not solved:
        raise InputError("the assignment's features are collinear among the selected rows")
    spread = np.zeros(moments.n_features)
    spread[list(moments.columns)] = host(gradient(contrast, loss)[1])
    return spread
