"""One assignment's fit and the gradient of its loss: the first factors of Eq. lmaegrad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from heckmanfa.equations import count_rows
from heckmanfa.errors import InputError
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats, inverse_mills
from heckmanfa.probit import Probit
from heckmanfa.rows import ArrayRows, Block, Mask, Matrix, Positions, Rows, pick, total

__all__ = ["Gradient", "psi_gradient"]

# The selected rows are held with their lambda while they are smaller than this; otherwise lambda
# is computed anew at every epoch.
_HOLD_BYTES = 2**29


class _Contrasts:
    """The least-squares contrast of an assignment: times the rows of [X, lambda, y, 1], residuals.

    It is on the scaled columns of the moments: minus the slopes, 1 for the outcome, and 0.
    """

    def __init__(self, moments: Moments) -> None:
        columns, self.norms = moments.scaled()
        self._moments = moments
        self._k = len(moments.columns)
        self._gram = columns[:, :-1].T @ columns[:, :-1]
        self._right = columns[:, :-1].T @ columns[:, -1]
        self._safe = moments.gram_is_safe
        self._use = np.ones(self._k + 1, dtype=bool)

    def __call__(self, inside: Mask) -> Floats | None:
        """(k + 3,) for the features inside (k,); None where they are collinear."""
        if not self._safe:
            return self._by_qr(inside)
        contrast = np.zeros(self._k + 3)
        contrast[-2] = 1.0
        self._use[:-1] = inside
        use = self._use.nonzero()[0]
        gram = self._gram.take(use, axis=0).take(use, axis=1)
        _, solved, trouble = lapack.dposv(gram, self._right[use], overwrite_a=True)
        if trouble:
            return None
        contrast[use] = -solved
        return contrast

    def _by_qr(self, inside: Mask) -> Floats | None:
        columns = list(self._moments.columns)
        mask = np.zeros(self._moments.n_features, dtype=bool)
        mask[columns] = inside
        solved = self._moments.solve(mask)
        if not solved.feasible:
            return None
        slopes = np.append(solved.coef[columns], solved.imr_coef)
        return np.append(-slopes * self.norms[:-1] / self.norms[-1], [1.0, 0.0])


class _Residuals:
    """The selected rows, read once an epoch for the signs of the residuals."""

    def __init__(self, moments: Moments, rows: Rows) -> None:
        columns, norms = list(moments.columns), moments.scaled()[1]
        probit = moments.probit
        if probit is None:
            raise InputError("no outcome is missing, so that there is no assignment to train")
        places = [columns.index(one) for one in probit.features]
        arguments = (probit, places, moments.means, norms)
        self._columns = columns
        self._rows: Rows | None = None
        self._function: Callable[..., tuple[float, Floats]] = _stream
        self._arguments: tuple[Any, ...] = arguments
        self._held: Block | None = None
        shape = count_rows(rows)[1], len(columns) + 3
        if 8 * shape[0] * shape[1] > _HOLD_BYTES:
            self._rows = rows
            return
        matrix = np.empty(shape)
        weights = []
        start = 0
        for block in rows.map(_scaled_rows, *arguments, columns=columns):
            matrix[start : start + len(block.features)] = block.features
            start += len(block.features)
            weights.append(block.weight)
        weight = None if weights[0] is None else np.concatenate(weights)
        everyone = np.ones(len(matrix), dtype=bool)
        held = ArrayRows(Matrix(matrix), matrix[:, -1], everyone, weight)
        if held.n_blocks == 1:
            self._held = Block(matrix, matrix[:, -1], everyone, weight, None)
        else:
            self._rows, self._function, self._arguments = held, _pulls, ()
            self._columns = list(range(matrix.shape[1]))

    def __call__(self, contrast: Floats, loss: str = "mae") -> tuple[float, Floats]:
        """Sums over the selected rows; see `_pulls`."""
        if self._held is not None:
            return _pulls(self._held, contrast, loss)
        assert self._rows is not None
        parts = self._rows.map(
            self._function, *self._arguments, contrast, loss, columns=self._columns
        )
        value, pulls = total(parts)
        return float(value), pulls


def _scaled_rows(
    block: Block, probit: Probit, places: Positions, means: Floats, norms: Floats
) -> Block:
    """Selected rows of [X, lambda, y, 1], centred and scaled as the moments' columns are."""
    block = block.only_selected()
    k = block.features.shape[1]
    index = probit.coordinates.design(pick(block.features, places)).times(probit.inner_coef)
    matrix = np.empty((len(index), k + 3))
    matrix[:, :k] = block.features
    matrix[:, k] = inverse_mills(index)
    matrix[:, k + 1] = block.outcome
    matrix[:, :-1] -= means
    matrix[:, :-1] /= norms
    matrix[:, k + 2] = 1.0
    return block._replace(features=matrix)


def _pulls(block: Block, contrast: Floats, loss: str) -> tuple[float, Floats]:
    """Sums over a block of scaled rows: loss, and its slope by the residual times the columns."""
    matrix = block.features
    residual = matrix @ contrast
    pull = np.sign(residual) if loss == "mae" else 2.0 * residual
    if block.weight is not None:
        pull *= block.weight
    value = float(pull @ residual)
    return value if loss == "mae" else 0.5 * value, pull @ matrix


def _stream(
    block: Block,
    probit: Probit,
    places: Positions,
    means: Floats,
    norms: Floats,
    contrast: Floats,
    loss: str,
) -> tuple[float, Floats]:
    return _pulls(_scaled_rows(block, probit, places, means, norms), contrast, loss)


class Gradient:
    """The gradient of a loss with respect to psi, in the coordinates that were asked for."""

    def __init__(self, moments: Moments, rows: Rows, standardize: bool | str) -> None:
        self.contrast = _Contrasts(moments)
        self._residuals = _Residuals(moments, rows)
        norms = self.contrast.norms
        self._m = moments.n_selected
        self._unit = np.sqrt(self._m) if standardize is True else norms[-1]
        # Scaled columns are centred. Where features are to stay as they are, their mean comes
        # back, in units of the scaled columns.
        self._shift = None if standardize else moments.means[:-2] / norms[:-2]

    def __call__(self, contrast: Floats, loss: str = "mae") -> tuple[float, Floats]:
        """Loss, and its derivative by psi(k) for each of the k features with beta held fixed."""
        value, pulls = self._residuals(contrast, loss)
        unit = (self._unit if loss == "mae" else self._unit**2) / self._m
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
    moments : Moments
    rows : Rows
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
    gradient = Gradient(moments, rows, standardize)
    chosen = [int(one) for one in np.flatnonzero(assignment)]
    inside = np.zeros(len(moments.columns), dtype=bool)
    inside[np.array(moments.places(chosen), dtype=np.intp) - 1] = True
    contrast = gradient.contrast(inside)
    if contrast is None:
        raise InputError("the assignment's features are collinear among the selected rows")
    spread = np.zeros(moments.n_features)
    spread[list(moments.columns)] = gradient(contrast, loss)[1]
    return spread
