"""Rockafellar-Uryasev regression, the paper's baseline against bounded selection bias (Torch).

Sahoo, Lei and Wager (2022): two networks h and alpha are trained together on the rows with an
outcome by the loss l / Gamma + (1 - 1 / Gamma) alpha(x) + (Gamma - 1 / Gamma) max(l - alpha(x), 0),
where l is the squared error of h(x).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from heckmanfa.data.arrays import Array, Floats, host, like
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import ArrayRows, Block, held
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import ConvergenceWarning, MissingExtraError, warn
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.estimators.refitting import whole_fit
from heckmanfa.model.moments import gather_moments
from heckmanfa.text.progress import progress_line

__all__ = ["RURegressor"]

_UNITS = 64
_BATCHES = 4


class RURegressor(ObservedRegressor):
    """Rockafellar-Uryasev regression by two small neural networks; needs the extra ``torch``.

    Parameters
    ----------
    prediction_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns; None is all of them.
    gamma : float
        Bound of the selection bias, at least 1; at 1 it is plain least squares by a network.
    learning_rate : float
        Of Adam.
    epochs : int
    batch_size : int, optional
        Rows of a batch; a quarter of the rows with an outcome unless given. A last batch of one
        row is joined with the one before it.
    random_state : int or numpy.random.Generator, optional
        Seeds the networks and the order of the rows.
    verbose : int
        Show progress on a terminal.

    Attributes
    ----------
    loss_ : float
        Mean loss of the last epoch, on the standardised scale.
    n_parameters_ : int
        Of both networks.
    prediction_features_, row_counts_, n_selected_, support_
        As in `NaiveOLS`.

    Notes
    -----
    Both networks have two hidden layers of 64 units. Features and outcome are standardised by the
    rows with an outcome. With l the squared error of the prediction h(x), the loss is
    l / gamma + (1 - 1 / gamma) alpha(x) + (gamma - 1 / gamma) max(l - alpha(x), 0). What minimises
    it does best in the worst case, over all laws of the outcome given the features whose density
    differs from that of the rows with an outcome by a factor of at most gamma.

    References
    ----------
    Sahoo, R., Lei, L. and Wager, S. (2022). Learning from a biased sample. arXiv:2209.01754.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prediction_features": ["array-like", None],
        "gamma": [Interval(Real, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    _centre: Floats
    """of each feature among the rows with an outcome"""
    _scale: Floats
    _mean: float
    """of the outcome"""
    _spread: float
    _weights: list[Floats]
    """of the layers of the network that predicts: a matrix and a vector each"""

    def __init__(
        self,
        prediction_features: Any = None,
        *,
        gamma: float = 2.0,
        learning_rate: float = 1e-3,
        epochs: int = 75,
        batch_size: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.prediction_features = prediction_features
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, selected: Any = None) -> Self:
        """Train both networks on the rows with an outcome.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        y : array_like of shape (n,)
            The outcome, NaN where missing.
        selected : array_like of bool, optional
            Who is selected, as in `Heckman.fit`.

        Returns
        -------
        self
        """
        with whole_fit(self):
            self._fit(_torch(), on_host(X), on_host(y), on_host(selected))
        return self

    def _fit(self, torch: Any, X: Any, y: Any, selected: Any) -> None:
        table, sample, _, prediction = self._take_in(X, y, selected, None)
        self._refuse_leakage(gather_moments(sample.rows, prediction, table.shape[1], None))
        features, outcome = _selected(held(sample.rows, "this regression"), prediction)
        self._centre, self._scale = features.mean(axis=0), _spread(features)
        self._mean, self._spread = float(outcome.mean()), float(_spread(outcome[:, None])[0])
        inputs = torch.from_numpy((features - self._centre) / self._scale).float()
        target = torch.from_numpy((outcome - self._mean) / self._spread).float()
        seed = int(generator(self.random_state).integers(2**31))
        with torch.random.fork_rng(devices=[]), _one_thread(torch):
            torch.manual_seed(seed)
            networks = [_network(torch, inputs.shape[1]) for _ in range(2)]
            self.loss_ = self._train(torch, networks, inputs, target)
        if not math.isfinite(self.loss_):
            warn(
                f"the training diverged: its loss is {self.loss_}. Use a smaller learning_rate.",
                ConvergenceWarning,
            )
        self._weights = [
            parameter.detach().numpy().copy() for parameter in networks[0].parameters()
        ]
        self.n_parameters_ = sum(
            parameter.numel() for network in networks for parameter in network.parameters()
        )

    def _train(self, torch: Any, networks: list[Any], inputs: Any, target: Any) -> float:
        parameters = [one for network in networks for one in network.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=self.learning_rate)
        n = len(target)
        size = self.batch_size or math.ceil(n / _BATCHES)
        starts = list(range(0, n, size))
        if len(starts) > 1 and n - starts[-1] == 1:
            starts.pop()
        total = math.nan
        with progress_line(self.verbose, "epochs", self.epochs) as show:
            for epoch in range(1, self.epochs + 1):
                order = torch.randperm(n)
                total = 0.0
                for place, start in enumerate(starts):
                    stop = n if place == len(starts) - 1 else start + size
                    rows = order[start:stop]
                    loss = self._loss(torch, networks, inputs[rows], target[rows])
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                    total += float(loss.detach()) * len(rows) / n
                if show is not None:
                    show(epoch, f"loss {total:.5g}")
        return total

    def _loss(self, torch: Any, networks: list[Any], inputs: Any, target: Any) -> Any:
        predict, alpha = (network(inputs).squeeze(1) for network in networks)
        error = (predict - target) ** 2
        gamma = float(self.gamma)
        return (
            error / gamma
            + (1.0 - 1.0 / gamma) * alpha
            + (gamma - 1.0 / gamma) * torch.clamp(error - alpha, min=0.0)
        ).mean()

    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        given = table.source(columns).take(0, table.shape[0], columns)
        # The trained network in NumPy, so that a fitted model needs no Torch, and in double
        # precision, so that a prediction does not depend on the rows beside it.
        hidden = (host(given) - self._centre) / self._scale
        for layer in range(0, len(self._weights), 2):
            hidden = hidden @ self._weights[layer].T + self._weights[layer + 1]
            if layer + 2 < len(self._weights):
                hidden = np.maximum(hidden, 0.0)
        return like(self._mean + self._spread * hidden[:, 0], given)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "RURegressor needs Torch, which is not installed: pip install 'heckmanfa[torch]'"
        ) from error
    return torch


def _network(torch: Any, width: int) -> Any:
    layers = torch.nn
    return layers.Sequential(
        layers.Linear(width, _UNITS),
        layers.ReLU(),
        layers.Linear(_UNITS, _UNITS),
        layers.ReLU(),
        layers.Linear(_UNITS, 1),
    )


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Run Torch on one thread: the networks are too small to share, and bits must not differ."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _selected(rows: ArrayRows, prediction: list[int]) -> tuple[Floats, Floats]:
    parts = list(rows.map(_values, columns=prediction))
    features, outcome = (np.concatenate(part) for part in zip(*parts, strict=True))
    return features, outcome


def _values(block: Block) -> tuple[Floats, Floats]:
    block = block.only_selected()
    return block.features.copy(), block.outcome.copy()


def _spread(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return np.where(spread > 0, spread, 1.0)
