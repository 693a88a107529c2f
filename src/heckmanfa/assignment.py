"""The assignment function and its training: Algorithm 2, and lines 4 to 10 of Algorithm 4.

Each epoch draws an assignment by the Gumbel-Max trick (Eq. gumbelonehot), fits it from the
moments, and steps against the gradient of the mean absolute error (Eq. lmaegrad), in which the
draw is replaced by its relaxation (Eq. continuousapprox). The probit was fitted before; an epoch
reads the selected rows once, for the signs of their residuals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit, logit

from heckmanfa.choices import Choices, all_features
from heckmanfa.errors import InputError, SearchWarning, warn
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats, inverse_mills
from heckmanfa.probit import Probit
from heckmanfa.rows import ArrayRows, Block, Mask, Matrix, Positions, Rows, one_blas_thread, pick

__all__ = ["Trained", "assign", "psi_gradient", "relaxation", "relaxation_slope", "train"]

# pi stays this far from 0 and 1, where its logarithms end.
_EDGE = 1e-12
# Beyond these a start gives nearly the same assignment at every draw.
_NEAR_EDGE = 0.05
# The selected rows are held with their lambda while they are smaller than this; otherwise lambda
# is computed anew at every epoch.
_HOLD_BYTES = 2**29
_NOISE_AT_ONCE = 256
_PROGRESS_EVERY = 50


@dataclass(frozen=True)
class Trained:
    """A trained assignment function over the K columns of X."""

    log_pi: Floats
    """(2, K): log of the probability of not assigning a feature, and of assigning it"""
    n_epochs: int
    """epochs that were run"""
    n_unsolved: int
    """epochs without a step, because the features drawn were collinear"""
    mae: float
    """mean absolute error of the last epoch's assignment"""
    path: Floats
    """(records, K) probabilities of assigning, every ``record_path`` epochs"""
    path_epochs: Any
    """(records,) number of epochs before each record"""
    path_mae: Floats
    """(records,) mean absolute error at each"""
    interrupted: bool = False
    """whether the user stopped the training"""

    @property
    def inclusion_prob(self) -> Floats:
        """Probability of assigning each feature, (K,)."""
        return np.exp(self.log_pi[1])


# Eq. gumbelonehot, continuousapprox and tildezpartial. -------------------------------------------


def assign(log_pi: Floats, gumbel: Floats) -> Mask:
    """Draw assignments by the Gumbel-Max trick (Algorithm 2, Eq. gumbelonehot and psi).

    Parameters
    ----------
    log_pi : (2, K) ndarray
    gumbel : (..., 2, K) ndarray
        Standard Gumbel noise.

    Returns
    -------
    (..., K) ndarray of bool
    """
    scores = log_pi + gumbel
    return np.asarray(scores[..., 1, :] > scores[..., 0, :])


def relaxation(log_pi: Floats, gumbel: Floats, temperature: float = 1.0) -> Floats:
    """Gumbel-Softmax sample, the smooth stand-in for the draw (Eq. continuousapprox).

    Returns
    -------
    (..., 2, K) ndarray
    """
    scores = (log_pi + gumbel) / temperature
    assigned = expit(scores[..., 1, :] - scores[..., 0, :])
    return np.stack([1.0 - assigned, assigned], axis=-2)


def relaxation_slope(log_pi: Floats, gumbel: Floats, temperature: float = 1.0) -> Floats:
    """Derivative of each entry of the relaxation by its own pi (Eq. tildezpartial).

    Returns
    -------
    (..., 2, K) ndarray
    """
    z = relaxation(log_pi, gumbel, temperature)
    product = z[..., :1, :] * z[..., 1:, :]
    return np.asarray(product / (temperature * np.exp(log_pi)))


# One assignment's fit and gradient. ---------------------------------------------------------------


class _Contrasts:
    """The least-squares contrast of an assignment: times the rows of [X, lambda, y], residuals.

    It is on the scaled columns of the moments: minus the slopes, then 1 for the outcome.
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
        """(k + 2,) for the features inside (k,); None where they are collinear."""
        if not self._safe:
            return self._by_qr(inside)
        contrast = np.zeros(self._k + 2)
        contrast[-1] = 1.0
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
        return np.append(-slopes * self.norms[:-1] / self.norms[-1], 1.0)


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
        self._n_selected = moments.n_selected
        self._rows: Rows | None = None
        self._held: Block | None = None
        if moments.n_selected * (len(columns) + 2) * 8 > _HOLD_BYTES:
            self._rows, self._function, self._arguments = rows, _stream, arguments
            return
        blocks = list(rows.map(_scaled_rows, *arguments, columns=columns))
        matrix = np.concatenate([block.features for block in blocks])
        weight = (
            None
            if blocks[0].weight is None
            else np.concatenate([block.weight for block in blocks])
        )
        everyone = np.ones(len(matrix), dtype=bool)
        held = ArrayRows(Matrix(matrix), matrix[:, -1], everyone, weight)
        if held.n_blocks == 1:
            self._held = Block(matrix, matrix[:, -1], everyone, weight, None)
        else:
            self._rows, self._function, self._arguments = held, _pulls, ()
            self._columns = list(range(matrix.shape[1]))

    def __call__(self, contrast: Floats, loss: str = "mae") -> tuple[float, float, Floats]:
        """Mean of the loss, of its derivative by the prediction, and of derivative times feature.

        On the scaled columns; the derivative's sign is that of the residual.
        """
        if self._held is not None:
            terms = _pulls(self._held, contrast, loss)
        else:
            assert self._rows is not None
            parts = self._rows.map(
                self._function, *self._arguments, contrast, loss, columns=self._columns
            )
            terms = next(parts)
            for part in parts:
                terms = tuple(one + other for one, other in zip(terms, part, strict=True))
        m = self._n_selected
        return terms[0] / m, terms[1] / m, terms[2] / m


def _scaled_rows(
    block: Block, probit: Probit, places: Positions, means: Floats, norms: Floats
) -> Block:
    """Selected rows of [X, lambda, y], centred and scaled as the moments' columns are."""
    block = block.only_selected()
    k = block.features.shape[1]
    index = probit.coordinates.design(pick(block.features, places)).times(probit.inner_coef)
    matrix = np.empty((len(index), k + 2))
    matrix[:, :k] = block.features
    matrix[:, k] = inverse_mills(index)
    matrix[:, k + 1] = block.outcome
    matrix -= means
    matrix /= norms
    return block._replace(features=matrix)


def _pulls(block: Block, contrast: Floats, loss: str) -> tuple[float, float, Floats]:
    """Sums over a block of scaled rows: loss, its slope, and slope times features."""
    matrix = block.features
    residual = matrix @ contrast
    pull = np.sign(residual) if loss == "mae" else 2.0 * residual
    if block.weight is not None:
        pull *= block.weight
    total = pull @ residual
    return total if loss == "mae" else 0.5 * total, np.add.reduce(pull), (pull @ matrix)[:-2]


def _stream(
    block: Block,
    probit: Probit,
    places: Positions,
    means: Floats,
    norms: Floats,
    contrast: Floats,
    loss: str,
) -> tuple[float, float, Floats]:
    return _pulls(_scaled_rows(block, probit, places, means, norms), contrast, loss)


class _Gradient:
    """The gradient of a loss with respect to psi, in the coordinates that were asked for."""

    def __init__(self, moments: Moments, rows: Rows, standardize: bool | str) -> None:
        self.contrast = _Contrasts(moments)
        self._residuals = _Residuals(moments, rows)
        norms = self.contrast.norms
        spread = norms[-1] / np.sqrt(moments.n_selected)
        self._unit = norms[-1] / spread if standardize is True else norms[-1]
        # Scaled columns are centred. Where features are to stay as they are, their mean comes
        # back, in units of the scaled columns.
        self._shift = None if standardize else moments.means[:-2] / norms[:-2]

    def __call__(self, contrast: Floats, loss: str = "mae") -> tuple[float, Floats]:
        """Loss, and its derivative by psi(k) for each of the k features with beta held fixed."""
        value, push, pull = self._residuals(contrast, loss)
        unit = self._unit if loss == "mae" else self._unit**2
        if self._shift is not None:
            pull = pull + self._shift * push
        return value * unit, unit * contrast[:-2] * pull


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
    gradient = _Gradient(moments, rows, standardize)
    chosen = [int(one) for one in np.flatnonzero(assignment)]
    inside = np.zeros(len(moments.columns), dtype=bool)
    inside[np.array(moments.places(chosen), dtype=np.intp) - 1] = True
    contrast = gradient.contrast(inside)
    if contrast is None:
        raise InputError("the assignment's features are collinear among the selected rows")
    spread = np.zeros(moments.n_features)
    spread[list(moments.columns)] = gradient(contrast, loss)[1]
    return spread


# Training. ----------------------------------------------------------------------------------------


def train(
    moments: Moments,
    rows: Rows,
    *,
    init_prob: float = 0.75,
    epochs: int = 4000,
    learning_rate: float = 0.1,
    temperature: float = 1.0,
    noise: Iterable[Floats] | None = None,
    step_on: str = "log_pi",
    standardize: bool | str = False,
    choices: Choices | None = None,
    record_path: int = 0,
    random_state: int | np.random.Generator | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Trained:
    """Train the assignment function by the straight-through Gumbel-Softmax estimator.

    Parameters
    ----------
    moments : Moments
        The compressed data; its probit says who is selected.
    rows : Rows
        The rows that were compressed.
    init_prob : float
        The probability c that every feature starts with.
    epochs : int
        T. With ``noise``, the most of it that is used.
    learning_rate, temperature : float
        Alpha and tau.
    noise : iterable of (2, K) arrays, optional
        Gumbel noise, one array an epoch, to replay a run; drawn unless given.
    step_on : {"log_pi", "pi"}
        Take gradient steps on log pi, or on pi as the paper prints it.
    standardize : bool or "features"
        Train as if features and outcome (or the features alone) were centred and scaled by the
        selected rows; False trains in the coordinates that the moments and rows are in.
    choices : Choices, optional
        Which features may be assigned; every one that varies among the selected rows, unless
        given.
    record_path : int
        Record the probabilities every so many epochs; 0 does not.
    random_state : int or numpy.random.Generator, optional
    progress : callable, optional
        Called with the number of epochs done and the current mean absolute error.

    Returns
    -------
    Trained
        With ``.log_pi`` (2, K). Features that every assignment holds have probability 1, those
        that none may hold 0.

    Examples
    --------
    >>> from heckmanfa import assignment, compress
    >>> from heckmanfa.datasets import make_selection
    >>> data = compress(*(lambda d: (d.X, d.y))(make_selection(500, 4, 2, random_state=0)))
    >>> assignment.train(data.moments, data.rows, epochs=100, random_state=0).log_pi.shape
    (2, 4)
    """
    if not 0.0 < init_prob < 1.0:
        raise InputError(f"init_prob must lie between 0 and 1; got {init_prob!r}")
    if step_on not in ("log_pi", "pi"):
        raise InputError(f"step_on must be 'log_pi' or 'pi'; got {step_on!r}")
    if not temperature > 0.0 or not learning_rate > 0.0:
        raise InputError("temperature and learning_rate must be positive")
    if not _NEAR_EDGE <= init_prob <= 1.0 - _NEAR_EDGE:
        warn(
            f"init_prob is {init_prob:g}: almost every draw assigns the same features, so that "
            "the training hardly sees others. Use a value further from 0 and 1.",
            SearchWarning,
        )
    if choices is None:
        choices = all_features(moments).without(moments.constant_columns())
    source = _drawn(choices, random_state) if noise is None else _given(choices, noise)
    with one_blas_thread():
        run = _Training(moments, rows, choices, standardize, record_path)
        return run(
            itertools.islice(source, epochs),
            float(logit(init_prob)),
            learning_rate,
            temperature,
            step_on == "log_pi",
            progress,
        )


def _drawn(
    choices: Choices, random_state: int | np.random.Generator | None
) -> Iterator[Floats]:
    """Gumbel noise for the units, (2, U) an epoch."""
    generator = np.random.default_rng(random_state)
    while True:
        yield from generator.gumbel(size=(_NOISE_AT_ONCE, 2, len(choices.units)))


def _given(choices: Choices, noise: Iterable[Floats]) -> Iterator[Floats]:
    """Noise over the columns of X, of which a unit takes that of its first column."""
    first = [unit[0] for unit in choices.units]
    for one in noise:
        gumbel = np.asarray(one, dtype=np.float64)
        if gumbel.shape != (2, choices.n_features):
            raise InputError(
                f"noise must yield arrays of shape (2, {choices.n_features}), one an epoch; got "
                f"{gumbel.shape}"
            )
        yield gumbel[:, first]


class _Training:
    """Units, their places among the compressed columns, and the loop over epochs."""

    def __init__(
        self,
        moments: Moments,
        rows: Rows,
        choices: Choices,
        standardize: bool | str,
        record_path: int,
    ) -> None:
        self._choices = choices
        self._record_path = record_path
        self._gradient = _Gradient(moments, rows, standardize)
        self._unit_of = np.repeat(np.arange(len(choices.units)), choices.sizes)
        flat = [one for unit in choices.units for one in unit]
        self._places = np.array(moments.places(flat), dtype=np.intp) - 1
        self._inside = np.zeros(len(moments.columns), dtype=bool)
        self._inside[np.array(moments.places(choices.always), dtype=np.intp) - 1] = True
        self._single = len(flat) == len(choices.units)

    def __call__(
        self,
        noise: Iterable[Floats],
        start: float,
        learning_rate: float,
        temperature: float,
        on_log: bool,
        progress: Callable[[int, float], None] | None,
    ) -> Trained:
        n_units = len(self._choices.units)
        odds = np.full(n_units, start)
        lowest, highest = np.log(_EDGE), np.log1p(-_EDGE)
        log_in = np.minimum(-np.log1p(np.exp(-odds)), highest)
        log_out = np.log1p(-np.exp(log_in))
        path: list[Floats] = []
        path_epochs: list[int] = []
        path_mae: list[float] = []
        epoch, n_unsolved, mae, interrupted = 0, 0, float("nan"), False
        try:
            for gumbel in noise:
                odds = gumbel[1] - gumbel[0] + log_in - log_out
                found = self._descend(odds > 0)
                if found is None:
                    n_unsolved += 1
                else:
                    mae, gradient = found
                    soft = expit(odds / temperature)
                    step = (learning_rate / temperature) * gradient * soft * (1.0 - soft)
                    if on_log:
                        moved = log_in - step
                    else:
                        pi = np.exp(log_in)
                        moved = np.log(np.maximum(pi - step / pi, _EDGE))
                    log_in = np.minimum(np.maximum(moved, lowest), highest)
                    log_out = np.log1p(-np.exp(log_in))
                epoch += 1
                if self._record_path and epoch % self._record_path == 0:
                    path.append(self._spread(log_in, log_out)[1])
                    path_epochs.append(epoch)
                    path_mae.append(mae)
                if progress is not None and epoch % _PROGRESS_EVERY == 0:
                    progress(epoch, mae)
        except KeyboardInterrupt:
            interrupted = True
        return Trained(
            log_pi=self._spread(log_in, log_out),
            n_epochs=epoch,
            n_unsolved=n_unsolved,
            mae=mae,
            path=np.exp(np.array(path).reshape(len(path), self._choices.n_features)),
            path_epochs=np.array(path_epochs, dtype=np.intp),
            path_mae=np.array(path_mae),
            interrupted=interrupted,
        )

    def _descend(self, inside: Mask) -> tuple[float, Floats] | None:
        """Mean absolute error of an assignment, and its gradient by the units' psi."""
        self._inside[self._places] = inside if self._single else inside[self._unit_of]
        contrast = self._gradient.contrast(self._inside)
        if contrast is None:
            return None
        mae, gradient = self._gradient(contrast)
        gradient = gradient[self._places]
        if not self._single:
            gradient = np.bincount(self._unit_of, gradient, minlength=len(inside))
        return mae, gradient

    def _spread(self, log_in: Floats, log_out: Floats) -> Floats:
        """Log probabilities over the columns of X, (2, K)."""
        log_pi = np.empty((2, self._choices.n_features))
        log_pi[0], log_pi[1] = 0.0, -np.inf
        for place, unit in enumerate(self._choices.units):
            log_pi[:, list(unit)] = [[log_out[place]], [log_in[place]]]
        log_pi[0, list(self._choices.always)] = -np.inf
        log_pi[1, list(self._choices.always)] = 0.0
        return log_pi
