"""The assignment function and its training: Algorithm 2, and lines 4 to 10 of Algorithm 4.

Each epoch draws an assignment with the Gumbel-Max trick (Eq. gumbelonehot), fits it from the
moments, and steps against the gradient of the mean absolute error (Eq. lmaegrad), with the draw
replaced by its relaxation (Eq. continuousapprox). The probit is already fitted; an epoch reads the
selected rows once, for the signs of their residuals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from heckmanfa.data.arrays import (
    Array,
    Floats,
    add_at,
    booleans,
    expit,
    host,
    integers,
    like,
    namespace,
    zeros,
)
from heckmanfa.data.rows import Mask, Rows, one_blas_thread
from heckmanfa.errors import InputError, SearchWarning, warn
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices, all_features
from heckmanfa.search.training.gpu import kept, repeated, sent_ahead
from heckmanfa.search.training.gradient import Gradient, TrainingRows, gather_training_rows
from heckmanfa.text.option_types import Standardize

# pi stays this far from 0 and 1, where its logarithms are infinite.
_EDGE = 1e-12
_LOWEST, _HIGHEST = float(np.log(_EDGE)), float(np.log1p(-_EDGE))
# Closer to 0 or 1, nearly every draw gives the same assignment.
_NEAR_EDGE = 0.05
_NOISE_AT_ONCE = 256
_PROGRESS_EVERY = 50

StepOn = Literal["log_pi", "pi"]
"""what gradient steps are taken on"""


@dataclass(frozen=True)
class Trained:
    """A trained assignment function over the K columns of X."""

    log_pi: Floats
    """(2, K): log probability of not assigning each feature, and of assigning it"""
    n_epochs: int
    """epochs run"""
    n_unsolved: int
    """epochs without a step because the drawn features were collinear"""
    mae: float
    """mean absolute error of the last epoch's assignment"""
    path: Floats
    """(records, K) probabilities of assigning, every ``record_path`` epochs"""
    path_epochs: NDArray[np.int64]
    """(records,) epochs run before each record"""
    path_mae: Floats
    """(records,) mean absolute error at each"""
    interrupted: bool = False
    """whether the user stopped the training"""
    n_rows: int = 0
    """selected rows used in training"""
    n_selected: int = 0
    """all selected rows"""
    path_saved: bool = True
    """False if a model file was saved without the records"""

    def without_path(self) -> Trained:
        """Return the same without its records."""
        return replace(
            self,
            path=self.path[:0],
            path_epochs=self.path_epochs[:0],
            path_mae=self.path_mae[:0],
            path_saved=len(self.path) == 0,
        )

    @property
    def inclusion_prob(self) -> Floats:
        """Probability of assigning each feature, (K,)."""
        return np.asarray(np.exp(self.log_pi[1]))


def assign(log_pi: Floats, gumbel: Floats) -> Mask:
    """Draw assignments with the Gumbel-Max trick (Algorithm 2, Eq. gumbelonehot and psi).

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
    """Gumbel-Softmax sample, (..., 2, K): a smooth stand-in for the draw (Eq. continuousapprox)."""
    scores = (log_pi + gumbel) / temperature
    lead = scores[..., 1, :] - scores[..., 0, :]
    return np.stack([expit(-lead), expit(lead)], axis=-2)


def relaxation_slope(log_pi: Floats, gumbel: Floats, temperature: float = 1.0) -> Floats:
    """Derivative of each entry of the relaxation with respect to its own pi (Eq. tildezpartial)."""
    z = relaxation(log_pi, gumbel, temperature)
    product = z[..., :1, :] * z[..., 1:, :]
    return np.asarray(product / (temperature * np.exp(log_pi)))


def train(
    moments: Moments,
    rows: Rows,
    *,
    init_prob: float = 0.75,
    epochs: int = 4000,
    learning_rate: float = 0.1,
    temperature: float = 1.0,
    noise: Iterable[Floats] | None = None,
    step_on: StepOn = "log_pi",
    standardize: Standardize = False,
    choices: Choices | None = None,
    record_path: int = 0,
    train_rows: int | None = None,
    random_state: int | np.random.Generator | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Trained:
    """Train the assignment function with the straight-through Gumbel-Softmax estimator.

    Parameters
    ----------
    moments : Moments
        The compressed data, with their probit.
    rows : Rows
        The rows that were compressed.
    init_prob, epochs, learning_rate, temperature, step_on, record_path, train_rows
        As in `HeckmanFA`.
    noise : iterable of (2, K) arrays, optional
        Gumbel noise, one array per epoch, to replay a run; drawn by default.
    standardize : bool or "features"
        Train as if features and outcome (or only the features) were centred and scaled by the
        selected rows; False trains in the coordinates of the moments and rows.
    choices : Choices, optional
        Which features may be assigned; by default all that vary among the selected rows.
    progress : callable, optional
        Called every 50 epochs with the number done and the current mean absolute error.

    Returns
    -------
    Trained
        With ``.log_pi`` (2, K). Features that are always assigned have probability 1, and
        features that are never assigned 0.

    Examples
    --------
    >>> from heckmanfa import assignment, compress
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(500, 4, 2, random_state=0)
    >>> small = compress(data.X, data.y)
    >>> assignment.train(small.moments, small.rows, epochs=100, random_state=0).log_pi.shape
    (2, 4)
    """
    _check_training(init_prob, learning_rate, temperature, step_on, train_rows)
    if choices is None:
        choices = all_features(moments).without_columns(moments.constant_columns())
    generator = np.random.default_rng(random_state)
    # From a copy, so the noise does not depend on whether rows are sampled.
    seed = int(deepcopy(generator).integers(2**31))
    source = _drawn(choices, generator) if noise is None else _given(choices, noise)
    with one_blas_thread():
        training = gather_training_rows(moments, rows, train_rows, seed)
        run = _Training(moments, training, choices, standardize, record_path)
        return run(
            itertools.islice(source, epochs),
            float(logit(init_prob)),
            _Step(learning_rate, temperature, step_on == "log_pi"),
            progress,
        )


def _check_training(
    init_prob: float, learning_rate: float, temperature: float, step_on: str, train_rows: int | None
) -> None:
    """Refuse invalid settings, and warn if training can hardly move."""
    if not 0.0 < init_prob < 1.0:
        raise InputError(f"init_prob must lie between 0 and 1; got {init_prob!r}")
    if step_on not in get_args(StepOn):
        raise InputError(f"step_on must be 'log_pi' or 'pi'; got {step_on!r}")
    if not temperature > 0.0 or not learning_rate > 0.0:
        raise InputError("temperature and learning_rate must be positive")
    if train_rows is not None and train_rows < 1:
        raise InputError(f"train_rows must be at least 1; got {train_rows!r}")
    if not _NEAR_EDGE <= init_prob <= 1.0 - _NEAR_EDGE:
        warn(
            f"init_prob is {init_prob:g}: almost every draw assigns the same features, so "
            "the training hardly sees others. Use a value further from 0 and 1.",
            SearchWarning,
        )


def _drawn(choices: Choices, generator: np.random.Generator) -> Iterator[Floats]:
    """By how much the Gumbel noise favours assigning each unit, (U,) per epoch."""
    while True:
        gumbel = generator.gumbel(size=(_NOISE_AT_ONCE, 2, len(choices.units)))
        yield from gumbel[:, 1] - gumbel[:, 0]


def _given(choices: Choices, noise: Iterable[Floats]) -> Iterator[Floats]:
    """The same from given noise over the columns of X; a unit takes that of its first column."""
    first = [unit[0] for unit in choices.units]
    for draw in noise:
        gumbel = np.asarray(draw, dtype=np.float64)
        if gumbel.shape != (2, choices.n_features):
            raise InputError(
                f"noise must yield arrays of shape (2, {choices.n_features}), one per epoch; got "
                f"{gumbel.shape}"
            )
        yield (gumbel[1] - gumbel[0])[first]


class _Training:
    """Units, their positions among the compressed columns, and the loop over epochs."""

    def __init__(
        self,
        moments: Moments,
        rows: TrainingRows,
        choices: Choices,
        standardize: Standardize,
        record_path: int,
    ) -> None:
        self._choices = choices
        self._record_path = record_path
        self._rows = rows
        beside = rows.beside
        self._gradient = Gradient(moments, rows, standardize)
        self._unit_of = integers(np.repeat(np.arange(len(choices.units)), choices.sizes), beside)
        flat = [column for unit in choices.units for column in unit]
        places = np.array(moments.positions(flat), dtype=np.intp)
        self._places = integers(places, beside)
        inside = np.zeros(len(moments.columns), dtype=bool)
        inside[moments.positions(choices.always)] = True
        self._always = booleans(inside, beside)
        self._single = len(flat) == len(choices.units)
        self._plain = places.tolist() == list(range(len(moments.columns))) and self._single

    def __call__(
        self,
        noise: Iterable[Floats],
        start: float,
        step: _Step,
        progress: Callable[[int, float], None] | None,
    ) -> Trained:
        beside = self._rows.beside
        log_in = np.full(len(self._choices.units), -np.log1p(np.exp(-start)))
        state = (like(log_in, beside), like(np.nan, beside), like(0.0, beside))
        path: list[Array] = []
        path_epochs: list[int] = []
        path_mae: list[Any] = []
        epoch, interrupted = 0, False
        advance = None
        try:
            for lead in sent_ahead(noise, beside):
                if advance is None:
                    advance = repeated(partial(self._epoch, step), state, lead)
                state = advance(lead, state)
                epoch += 1
                if self._record_path and epoch % self._record_path == 0:
                    path.append(kept(state[0]))
                    path_epochs.append(epoch)
                    path_mae.append(kept(state[1]))
                if progress is not None and epoch % _PROGRESS_EVERY == 0:
                    progress(epoch, float(state[1]))
        except KeyboardInterrupt:
            interrupted = True
        probabilities = [np.exp(self._spread(host(log_in))[1]) for log_in in path]
        return Trained(
            log_pi=self._spread(host(state[0])),
            n_epochs=epoch,
            n_unsolved=int(state[2]),
            mae=float(state[1]),
            path=np.array(probabilities).reshape(len(path), self._choices.n_features),
            path_epochs=np.array(path_epochs, dtype=np.int64),
            path_mae=np.array([float(mae) for mae in path_mae]),
            interrupted=interrupted,
            n_rows=self._rows.n_rows,
            n_selected=self._rows.n_selected,
        )

    def _epoch(self, step: _Step, lead: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """Draw an assignment, and step against the gradient of its loss, if it can be solved."""
        log_in, mae, n_unsolved = state
        odds = lead + log_in - _log_rest(log_in)
        error, gradient, solved = self._descend(odds > 0)
        moved = step(log_in, odds, gradient)
        where = namespace(log_in).where
        return (
            where(solved, moved, log_in),
            where(solved, error, mae),
            where(solved, n_unsolved, n_unsolved + 1.0),
        )

    def _descend(self, inside: Array) -> tuple[Any, Array, Any]:
        """Mean absolute error, its gradient with respect to the units' psi, and if solved."""
        if self._plain:
            contrast, solved = self._gradient.contrast(inside)
            return *self._gradient(contrast), solved
        columns = namespace(inside).asarray(self._always, copy=True)
        columns[self._places] = inside[self._unit_of]
        contrast, solved = self._gradient.contrast(columns)
        mae, gradient = self._gradient(contrast)
        gradient = gradient[self._places]
        if not self._single:
            summed = zeros(gradient, len(inside))
            add_at(summed, self._unit_of, gradient)
            gradient = summed
        return mae, gradient, solved

    def _spread(self, log_in: Floats) -> Floats:
        """Log probabilities over the columns of X, (2, K)."""
        log_out = _log_rest(log_in)
        log_pi = np.empty((2, self._choices.n_features))
        log_pi[0], log_pi[1] = 0.0, -np.inf
        for index, unit in enumerate(self._choices.units):
            log_pi[:, list(unit)] = [[log_out[index]], [log_in[index]]]
        log_pi[0, list(self._choices.always)] = -np.inf
        log_pi[1, list(self._choices.always)] = 0.0
        return log_pi


@dataclass(frozen=True)
class _Step:
    """The gradient step of an epoch, with the draw replaced by its relaxation."""

    learning_rate: float
    temperature: float
    on_log: bool
    """whether to step on log pi; otherwise on pi"""

    def __call__(self, log_in: Array, odds: Array, gradient: Array) -> Array:
        xp = namespace(log_in)
        soft = expit(odds / self.temperature)
        step = (self.learning_rate / self.temperature) * gradient * soft * (1.0 - soft)
        if self.on_log:
            moved = log_in - step
        else:
            pi = xp.exp(log_in)
            moved = xp.log(xp.clip(pi - step / pi, min=_EDGE))
        return xp.clip(moved, min=_LOWEST, max=_HIGHEST)


def _log_rest(log_pi: Array) -> Array:
    """Return log(1 - pi)."""
    xp = namespace(log_pi)
    return xp.log1p(-xp.exp(log_pi))
