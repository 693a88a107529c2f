"""The gradient of training: an assignment's fit, and its loss over the rows that training reads.

These are the selected rows, centred and scaled, on their own device. Every epoch needs the signs of
an assignment's residuals and their products with each column. In memory and on a GPU, all selected
rows are used. Rows elsewhere would be read once per epoch, so a uniform sample of them, drawn in
one pass, is held instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    booleans,
    empty,
    host,
    like,
    namespace,
    solve_assigned,
    solve_assigned_by_factor,
)
from heckmanfa.data.rows import ArrayRows, Block, Mask, Matrix, Positions, Rows, pick, total
from heckmanfa.errors import InputError
from heckmanfa.model.equations import count_rows
from heckmanfa.model.linalg import DEPENDENT
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import inverse_mills
from heckmanfa.model.probit import Probit
from heckmanfa.search.training.gpu import Loss, Pulls, fused_pulls
from heckmanfa.text.option_types import Standardize

SAMPLE_ROWS = 200_000
"""Default number of training rows if the rows are not in memory."""

# Below this size, the selected rows are held with their lambda; otherwise lambda is computed again
# in every epoch.
_HOLD_BYTES = 2**29
# A float32 sum of this many terms is accurate enough for training; sums of these are float64.
_SUM_ROWS = 2**20
# A GPU loads four numbers at a time if every row starts at a multiple of four.
_ALIGNED = 4


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a training, and sums over them."""

    pulls: Pulls
    """maps (contrast, loss) to sums over the rows; see `_pulls`"""
    n: float
    """sum of their weights"""
    n_rows: int
    n_selected: int
    """the number of selected rows; more than ``n_rows`` if these are a sample"""
    beside: Array
    """a float64 number on the rows' device, to put other arrays beside"""


def gather_training_rows(
    moments: Moments, rows: Rows, train_rows: int | None, seed: int
) -> TrainingRows:
    """Gather the selected rows, or a sample of at most ``train_rows`` of them, for a training.

    None uses all rows in memory, and `SAMPLE_ROWS` of others. The sample depends only on the seed
    and on the rows.
    """
    columns, norms = list(moments.columns), moments.scaled()[1]
    probit = moments.probit
    if probit is None:
        raise InputError("no outcome is missing, so there is no assignment to train")
    scaling = (probit, moments.positions(probit.features), moments.means, norms)
    if train_rows is None and not rows.in_memory:
        train_rows = SAMPLE_ROWS
    # Without weights the moments have the count, which saves a pass over rows outside memory.
    counted = rows.in_memory or rows.weighted
    n_selected = count_rows(rows)[1] if counted else round(moments.n_selected)
    if train_rows is not None and train_rows < n_selected:
        return _held(*_drawn(rows, scaling, columns, train_rows, n_selected, seed), n_selected)
    tensors = isinstance(rows, ArrayRows) and rows.tensors
    size = 8 * n_selected * (len(columns) + 3)
    if not tensors and rows.in_memory and size > _HOLD_BYTES:
        return TrainingRows(
            partial(_in_blocks, rows, columns, scaling),
            moments.n_selected,
            n_selected,
            n_selected,
            np.zeros(()),
        )
    blocks = rows.map(_scaled_rows, *scaling, columns=columns)
    precision = rows.precision if isinstance(rows, ArrayRows) else None
    return _held(*_joined(blocks, n_selected, precision), n_selected)


def _joined(blocks: Iterator[Block], n_rows: int, precision: Any) -> tuple[Array, Array | None]:
    """Join the scaled rows of all blocks in one matrix, in the rows' own precision."""
    matrix: Array = None
    weight: Array = None
    start = 0
    for block in blocks:
        x = block.features
        if matrix is None:
            on_gpu = not isinstance(x, np.ndarray) and x.is_cuda
            spare = -x.shape[1] % _ALIGNED if on_gpu else 0
            like_this = x if precision is None else x.to(precision)
            matrix = empty(like_this, n_rows, x.shape[1] + spare)[:, : x.shape[1]]
            weight = None if block.weight is None else empty(like_this, n_rows)
        stop = start + x.shape[0]
        matrix[start:stop] = x
        if weight is not None:
            weight[start:stop] = block.weight
        start = stop
    return matrix, weight


def _held(matrix: Array, weight: Array | None, n_selected: int) -> TrainingRows:
    """Rows in one matrix."""
    n_rows = matrix.shape[0]
    n = float(n_rows if weight is None else host(weight).sum(dtype=np.float64))
    if not isinstance(matrix, np.ndarray):
        beside = namespace(matrix).zeros((), dtype=namespace(matrix).float64, device=matrix.device)
        # The kernel reads the rows once per epoch, and two products read them twice.
        fused = fused_pulls(matrix, weight) if matrix.is_cuda else None
        return TrainingRows(
            fused or partial(_in_tensors, matrix, weight), n, n_rows, n_selected, beside
        )
    everyone = np.ones(n_rows, dtype=bool)
    rows = ArrayRows(Matrix(matrix), matrix[:, -1], everyone, weight)
    block = Block(matrix, matrix[:, -1], everyone, weight, None)
    pulls = (
        partial(_pulls, block)
        if rows.n_blocks == 1
        else partial(_in_blocks, rows, range(matrix.shape[1]), ())
    )
    return TrainingRows(pulls, n, n_rows, n_selected, np.zeros(()))


def _in_blocks(
    rows: Rows, columns: Positions, scaling: tuple[Any, ...], contrast: Array, loss: Loss
) -> tuple[Any, Array]:
    value, pulls = total(
        rows.map(_block_pulls, contrast, loss, *scaling, columns=columns, merge=total)
    )
    return float(value), pulls


def _in_tensors(
    matrix: Array, weight: Array | None, contrast: Array, loss: Loss
) -> tuple[Any, Array]:
    value, pulls = 0.0, 0.0
    contrast = contrast.to(matrix.dtype)
    for start in range(0, max(matrix.shape[0], 1), _SUM_ROWS):
        span = slice(start, start + _SUM_ROWS)
        x = matrix[span]
        block = Block(x, x[:, -1], None, None if weight is None else weight[span], None)
        of_block, block_pulls = _pulls(block, contrast, loss)
        value, pulls = value + of_block.double(), pulls + block_pulls.double()
    return value, pulls


def _drawn(
    rows: Rows,
    scaling: tuple[Any, ...],
    columns: Positions,
    n_rows: int,
    n_selected: int,
    seed: int,
) -> tuple[Array, Array | None]:
    """Draw a simple random sample of the selected rows without replacement.

    Every row gets a random key from the seed and its position, and the smallest keys win. A bound
    on these keys is known beforehand, except with probability one in a billion, so little more
    than the sample is sent.
    """
    share = (n_rows + 6.0 * np.sqrt(n_rows) + 20.0) / n_selected
    parts = list(rows.map(_draw, share, seed, *scaling, columns=columns, merge=_merge_draws))
    keys, matrix, weight = _merge_draws(parts)
    if len(keys) > n_rows:
        chosen = booleans(keys <= np.partition(keys, n_rows - 1)[n_rows - 1], matrix)
        matrix, weight = matrix[chosen], None if weight is None else weight[chosen]
    return matrix, weight


# Functions over one block of rows. --------------------------------------------------------------


def _draw(
    block: Block, share: float, seed: int, *scaling: Any
) -> tuple[Floats, Array, Array | None]:
    block = block.only_selected()
    keys = np.random.default_rng([seed, *block.place]).random(len(block.outcome))
    chosen = keys < share
    scaled = _scaled_rows(block.keep(booleans(chosen, block.features)), *scaling)
    return keys[chosen], scaled.features, scaled.weight


def _merge_draws(parts: list[Any]) -> tuple[Floats, Array, Array | None]:
    keys, matrices, weights = zip(*parts, strict=True)
    xp = namespace(matrices[0])
    weight = None if weights[0] is None else xp.concat(weights)
    return np.concatenate(keys), xp.concat(matrices), weight


def _scaled_rows(
    block: Block, probit: Probit, places: Positions, means: Floats, norms: Floats
) -> Block:
    """Selected rows of [X, lambda, y, 1], centred and scaled like the moments' columns."""
    block = block.only_selected()
    k = block.features.shape[1]
    index = probit.coordinates.design(pick(block.features, places)).times(probit.inner_coef)
    matrix = empty(block.features, len(index), k + 3)
    matrix[:, :k] = block.features
    matrix[:, k] = inverse_mills(index)
    matrix[:, k + 1] = block.outcome
    matrix[:, :-1] -= like(means, matrix)
    matrix[:, :-1] /= like(norms, matrix)
    matrix[:, k + 2] = 1.0
    return replace(block, features=matrix)


def _pulls(block: Block, contrast: Array, loss: Loss) -> tuple[Any, Array]:
    """Sums over a block of scaled rows: loss, and its slope in the residual times the columns."""
    matrix = block.features
    residual = matrix @ contrast
    pull = namespace(residual).sign(residual) if loss == "mae" else 2.0 * residual
    if block.weight is not None:
        pull *= block.weight
    value = pull @ residual
    return value if loss == "mae" else 0.5 * value, pull @ matrix


def _block_pulls(block: Block, contrast: Floats, loss: Loss, *scaling: Any) -> tuple[Any, Array]:
    """Return the sums of `_pulls`; rows that are not scaled yet are scaled first."""
    return _pulls(_scaled_rows(block, *scaling) if scaling else block, contrast, loss)


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

    Parameters
    ----------
    moments, rows, standardize
        As in `train`.
    assignment : (K,) ndarray of bool
    loss : {"mae", "mse"}
        The mean absolute error (the first factors of Eq. lmaegrad), or the mean squared error,
        whose gradient the paper's appendix shows to be zero.

    Returns
    -------
    (K,) ndarray
        Zero for unassigned features.
    """
    training = gather_training_rows(moments, rows, None, 0)
    gradient = Gradient(moments, training, standardize)
    chosen = [int(column) for column in np.flatnonzero(assignment)]
    inside = np.zeros(len(moments.columns), dtype=bool)
    inside[moments.positions(chosen)] = True
    contrast, solved = gradient.contrast(booleans(inside, training.beside))
    if not solved:
        raise InputError("the assignment's features are collinear among the selected rows")
    spread = np.zeros(moments.n_features)
    spread[list(moments.columns)] = host(gradient(contrast, loss)[1])
    return spread
