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
from scipy.special import expit, logit

from heckmanfa.assignment_terms import Gradient, psi_gradient
from heckmanfa.choices import Choices, all_features
from heckmanfa.errors import InputError, SearchWarning, warn
from heckmanfa.moments import Moments
from heckmanfa.normal import Floats
from heckmanfa.rows import Mask, Rows, one_blas_thread

__all__ = ["Trained", "assign", "psi_gradient", "relaxation", "relaxation_slope", "train"]

# pi stays this far from 0 and 1, where its logarithms end.
_EDGE = 1e-12
# Beyond these a start gives nearly the same assignment at every draw.
_NEAR_EDGE = 0.05
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
        return np.asarray(np.exp(self.log_pi[1]))


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
    lead = scores[..., 1, :] - scores[..., 0, :]
    return np.stack([expit(-lead), expit(lead)], axis=-2)


def relaxation_slope(log_pi: Floats, gumbel: Floats, temperature: float = 1.0) -> Floats:
    """Derivative of each entry of the relaxation by its own pi (Eq. tildezpartial).

    Returns
    -------
    (..., 2, K) ndarray
    """
    z = relaxation(log_pi, gumbel, temperature)
    product = z[..., :1, :] * z[..., 1:, :]
    return np.asarray(product / (temperature * np.exp(log_pi)))


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
        Called every 50 epochs with the number done and the current mean absolute error.

    Returns
    -------
    Trained
        With ``.log_pi`` (2, K). Features that every assignment holds have probability 1, those
        that none may hold 0.

    Examples
    --------
    >>> from heckmanfa import assignment, compress
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(500, 4, 2, random_state=0)
    >>> small = compress(data.X, data.y)
    >>> assignment.train(small.moments, small.rows, epochs=100, random_state=0).log_pi.shape
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
        choices = all_features(moments).without_columns(moments.constant_columns())
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


def _drawn(choices: Choices, random_state: int | np.random.Generator | None) -> Iterator[Floats]:
    """By how much the Gumbel noise favours assigning each unit, (U,) an epoch."""
    generator = np.random.default_rng(random_state)
    while True:
        gumbel = generator.gumbel(size=(_NOISE_AT_ONCE, 2, len(choices.units)))
        yield from gumbel[:, 1] - gumbel[:, 0]


def _given(choices: Choices, noise: Iterable[Floats]) -> Iterator[Floats]:
    """The same from noise over the columns of X; a unit takes that of its first column."""
    first = [unit[0] for unit in choices.units]
    for one in noise:
        gumbel = np.asarray(one, dtype=np.float64)
        if gumbel.shape != (2, choices.n_features):
            raise InputError(
                f"noise must yield arrays of shape (2, {choices.n_features}), one an epoch; got "
                f"{gumbel.shape}"
            )
        yield (gumbel[1] - gumbel[0])[first]


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
        self._gradient = Gradient(moments, rows, standardize)
        self._unit_of = np.repeat(np.arange(len(choices.units)), choices.sizes)
        flat = [one for unit in choices.units for one in unit]
        self._places = np.array(moments.places(flat), dtype=np.intp) - 1
        self._inside = np.zeros(len(moments.columns), dtype=bool)
        self._inside[np.array(moments.places(choices.always), dtype=np.intp) - 1] = True
        self._single = len(flat) == len(choices.units)
        self._plain = self._places.tolist() == list(range(len(moments.columns))) and self._single

    def __call__(
        self,
        noise: Iterable[Floats],
        start: float,
        learning_rate: float,
        temperature: float,
        on_log: bool,
        progress: Callable[[int, float], None] | None,
    ) -> Trained:
        lowest, highest = np.log(_EDGE), np.log1p(-_EDGE)
        log_in = np.full(len(self._choices.units), -np.log1p(np.exp(-start)))
        rate = learning_rate / temperature
        path: list[Floats] = []
        path_epochs: list[int] = []
        path_mae: list[float] = []
        epoch, n_unsolved, mae, interrupted = 0, 0, float("nan"), False
        try:
            for lead in noise:
                odds = lead + log_in - _log_rest(log_in)
                found = self._descend(odds > 0)
                if found is None:
                    n_unsolved += 1
                else:
                    mae, gradient = found
                    soft = expit(odds / temperature)
                    step = rate * gradient * soft * (1.0 - soft)
                    if on_log:
                        moved = log_in - step
                    else:
                        pi = np.exp(log_in)
                        moved = np.log(np.maximum(pi - step / pi, _EDGE))
                    log_in = np.minimum(np.maximum(moved, lowest), highest)
                epoch += 1
                if self._record_path and epoch % self._record_path == 0:
                    path.append(self._spread(log_in)[1])
                    path_epochs.append(epoch)
                    path_mae.append(mae)
                if progress is not None and epoch % _PROGRESS_EVERY == 0:
                    progress(epoch, mae)
        except KeyboardInterrupt:
            interrupted = True
        return Trained(
            log_pi=self._spread(log_in),
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
        if self._plain:
            contrast = self._gradient.contrast(inside)
            return None if contrast is None else self._gradient(contrast)
        self._inside[self._places] = inside[self._unit_of]
        contrast = self._gradient.contrast(self._inside)
        if contrast is None:
            return None
        mae, gradient = self._gradient(contrast)
        gradient = gradient[self._places]
        if not self._single:
            summed: Floats = np.zeros(len(inside))
            np.add.at(summed, self._unit_of, gradient)
            gradient = summed
        return mae, gradient

    def _spread(self, log_in: Floats) -> Floats:
        """Log probabilities over the columns of X, (2, K)."""
        log_out = _log_rest(log_in)
        log_pi = np.empty((2, self._choices.n_features))
        log_pi[0], log_pi[1] = 0.0, -np.inf
        for place, unit in enumerate(self._choices.units):
            log_pi[:, list(unit)] = [[log_out[place]], [log_in[place]]]
        log_pi[0, list(self._choices.always)] = -np.inf
        log_pi[1, list(self._choices.always)] = 0.0
        return log_pi


def _log_rest(log_pi: Floats) -> Floats:
    """Return log(1 - pi)."""
    return np.asarray(np.log1p(-np.exp(log_pi)))
