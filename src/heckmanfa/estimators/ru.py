"""Rockafellar-Uryasev regression, the paper's baseline for bounded selection bias (Torch)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import Array, Floats, host, like, on_host
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import FeatureTable, feature_blocks, same
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import ArrayRows, Block, held
from heckmanfa.errors import ConvergenceWarning, needs_extra, warn
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.estimators.fitting import publish
from heckmanfa.model.moments import gather_moments
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.progress import progress_line

_UNITS = 64
_BATCHES = 4


@dataclass(frozen=True)
class Network:
    """The trained network in NumPy and double precision.

    A fitted model needs no Torch, and a row's prediction does not depend on other rows.
    """

    centre: Floats
    """mean of each feature among the rows with an outcome"""
    scale: Floats
    mean: float
    """mean of the outcome"""
    spread: float
    weights: list[Floats]
    """a matrix and a vector for each layer"""

    def predict(self, features: Floats) -> Floats:
        """Return the prediction for each row."""
        hidden = (features - self.centre) / self.scale
        for layer in range(0, len(self.weights), 2):
            hidden = hidden @ self.weights[layer].T + self.weights[layer + 1]
            if layer + 2 < len(self.weights):
                hidden = np.maximum(hidden, 0.0)
        return np.asarray(self.mean + self.spread * hidden[:, 0])


class RURegressor(ObservedRegressor):
    """Rockafellar-Uryasev regression with two small neural networks; needs the extra ``torch``.

    Parameters
    ----------
    prediction_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns; None is all of them.
    gamma : float
        Bound of the selection bias, at least 1; 1 is plain least squares with a network.
    learning_rate, epochs : float, int
        Learning rate of Adam, and passes over the rows.
    batch_size : int, optional
        Rows per batch; by default a quarter of the rows with an outcome. A last batch of one
        row is merged with the batch before it.
    random_state : int or numpy.random.Generator, optional
        Seed of the networks and of the order of rows.
    verbose : int
        Show progress on a terminal.
    categorical_features, reference, unknown
        As in `Heckman`.

    Attributes
    ----------
    loss_ : float
        Mean loss of the last epoch, on the standardised scale.
    n_parameters_ : int
        Parameters of both networks.
    prediction_features_, row_counts_, n_selected_, support_
        As in `NaiveOLS`.

    Notes
    -----
    The networks h and alpha have two hidden layers of 64 units and are trained together, on
    features and outcomes standardised by the rows with an outcome. With l the squared error of
    h(x), the loss is l / gamma + (1 - 1 / gamma) alpha(x) + (gamma - 1 / gamma)
    max(l - alpha(x), 0). Its minimiser has the least worst-case error over all distributions of
    the outcome given the features whose density differs from that of the rows with an outcome by
    a factor of at most gamma.

    References
    ----------
    Sahoo, R., Lei, L. and Wager, S. (2022). Learning from a biased sample. arXiv:2209.01754.
    """

    assumes: ClassVar[str] = (
        "given the features, the outcomes of everyone differ from those of the selected rows by a "
        "density ratio of at most gamma"
    )
    loss_: float
    n_parameters_: int
    _network: Network

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
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, selected: Any = None) -> Self:
        """Train both networks on the rows with an outcome; arguments are as in `Heckman.fit`."""
        attributes = self._trained(_torch(), on_host(X), on_host(y), on_host(selected))
        publish(self, attributes)
        return self

    def _trained(self, torch: Any, X: Any, y: Any, selected: Any) -> dict[str, Any]:
        """Train, and return the attributes of the fit."""
        read = self._read(X, y, selected, None)
        prediction = read.prediction
        read.refuse_leakage(gather_moments(read.sample.rows, prediction, read.table.shape[1], None))
        features, outcome = _selected(held(read.sample.rows, "this regression"), prediction)
        centre, scale = features.mean(axis=0), _spread(features)
        mean, spread = float(outcome.mean()), float(_spread(outcome[:, None])[0])
        inputs = torch.from_numpy((features - centre) / scale).float()
        target = torch.from_numpy((outcome - mean) / spread).float()
        seed = int(generator(self.random_state).integers(2**31))
        with torch.random.fork_rng(devices=[]), _one_thread(torch):
            torch.manual_seed(seed)
            networks = [_network(torch, inputs.shape[1]) for _ in range(2)]
            loss = self._train(torch, networks, inputs, target)
        if not math.isfinite(loss):
            warn(
                f"the training diverged: its loss is {loss}. "
                + instead("Use a smaller learning_rate.", f"Leave it out with {option('no_ru')}."),
                ConvergenceWarning,
            )
        weights = [parameter.detach().numpy().copy() for parameter in networks[0].parameters()]
        return {
            **read.attributes(prediction),
            "_network": Network(centre, scale, mean, spread, weights),
            "loss_": loss,
            "n_parameters_": sum(
                parameter.numel() for network in networks for parameter in network.parameters()
            ),
        }

    def _train(self, torch: Any, networks: list[Any], inputs: Any, target: Any) -> float:
        parameters = [weight for network in networks for weight in network.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=self.learning_rate)
        n = len(target)
        size = self.batch_size or math.ceil(n / _BATCHES)
        starts = list(range(0, n, size))
        if len(starts) > 1 and n - starts[-1] == 1:
            starts.pop()
        total = math.nan
        with progress_line(self.verbose, "training", "epochs", self.epochs) as show:
            for epoch in range(1, self.epochs + 1):
                order = torch.randperm(n)
                total = 0.0
                for batch, start in enumerate(starts):
                    stop = n if batch == len(starts) - 1 else start + size
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
        values = same(table, float(self._network.predict(np.zeros((1, len(columns))))[0]))
        for where, block in feature_blocks(table, columns):
            values[where] = like(self._network.predict(host(block)), block)
        return values


def _torch() -> Any:
    with needs_extra("RURegressor needs Torch", "torch"):
        import torch
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
    """Run Torch on one thread: small networks gain nothing from more, and results must not vary."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _selected(rows: ArrayRows, prediction: list[int]) -> tuple[Floats, Floats]:
    blocks = zip(*rows.map(_values, columns=prediction), strict=True)
    features, outcome = (np.concatenate(columns) for columns in blocks)
    return features, outcome


def _values(block: Block) -> tuple[Floats, Floats]:
    block = block.only_selected()
    return block.features.copy(), block.outcome.copy()


def _spread(values: Floats) -> Floats:
    spread = values.std(axis=0)
    return np.where(spread > 0, spread, 1.0)
