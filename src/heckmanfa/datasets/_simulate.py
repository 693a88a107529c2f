"""A simulated selection model, the paper's setting: all features select, some of them predict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from heckmanfa.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# Every coefficient is drawn with a magnitude in this interval and a random sign, so that
# "this feature predicts" is never true only in the eighth digit.
_MAGNITUDE = (0.5, 1.5)


@dataclass(frozen=True, eq=False)
class Selection:
    """Simulated data of a selection model together with the truth that made them.

    For n samples and K features; the fields up to ``selected`` are what an analyst would see.
    """

    X: NDArray[np.float64] = field(repr=False)
    """features, shape (n, K)"""
    y: NDArray[np.float64] = field(repr=False)
    """outcome, NaN where not selected, shape (n,)"""
    selected: NDArray[np.bool_] = field(repr=False)
    """whether the outcome is observed, shape (n,)"""
    complete_y: NDArray[np.float64] = field(repr=False)
    """outcome of every sample, the hidden ones too, shape (n,)"""
    coef: NDArray[np.float64]
    """prediction coefficients, zero for features that only select, shape (K,)"""
    intercept: float
    """intercept of the prediction equation"""
    selection_coef: NDArray[np.float64]
    """selection coefficients, shape (K,)"""
    selection_intercept: float
    """intercept of the selection equation"""
    rho: float
    """correlation of the two equations' errors"""
    sigma: float
    """standard deviation of the prediction equation's error"""
    support: NDArray[np.bool_]
    """whether a feature predicts, shape (K,)"""
    feature_names: tuple[str, ...]
    """``("x0", "x1", ...)``, K of them"""

    @property
    def frame(self) -> pd.DataFrame:
        """The visible data as one table: the features by name, then ``y`` and ``selected``."""
        import pandas as pd

        frame = pd.DataFrame(self.X, columns=list(self.feature_names))
        return frame.assign(y=self.y, selected=self.selected)


def make_selection(
    n_samples: int = 2000,
    n_features: int = 10,
    n_prediction: int = 5,
    *,
    prediction_features: Sequence[int] | NDArray[np.integer] | None = None,
    rho: float = 0.5,
    sigma: float = 1.0,
    intercept: float = 1.0,
    selection_rate: float = 0.5,
    correlation: float = 0.0,
    strength: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> Selection:
    """Simulate a selection model whose truth is known.

    A sample is selected where its index d = γ₀ + x'γ + u is positive, and only then is its
    outcome y = β₀ + x'β + σε seen. The errors u and ε are standard normal with correlation ρ.
    Every feature has a part in γ, the prediction features alone have one in β. Features are
    standard normal.

    Parameters
    ----------
    n_samples : int
        Number of samples, selected or not.
    n_features : int
        Number of features, K.
    n_prediction : int
        Number of features that predict, at most `n_features`. Which ones is drawn at random;
        not used where `prediction_features` is given.
    prediction_features : sequence of int, optional
        Positions of the features that predict, counted from 0, instead of a random choice.
    rho : float
        Correlation of the two errors, in [-1, 1].
    sigma : float
        Standard deviation of the outcome's error, at least 0.
    intercept : float
        Intercept of the prediction equation, β₀.
    selection_rate : float
        Expected share of samples that are selected, in (0, 1); γ₀ follows from it.
    correlation : float
        Correlation of every pair of features, in [0, 1).
    strength : float
        Standard deviation of x'γ, at least 0, where that of u is 1: how much the features say
        about selection.
    random_state : int, numpy.random.Generator or None
        Seed or source of the random numbers. With an int, the coefficients do not depend on
        `n_samples`, `rho`, `sigma`, `intercept` or `selection_rate`.

    Returns
    -------
    Selection
        The data and the truth.

    Raises
    ------
    InputError
        If an argument is outside its range; the message names it.

    Examples
    --------
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(500, n_features=4, n_prediction=2, random_state=0)
    >>> data.X.shape
    (500, 4)
    >>> int(data.support.sum())
    2
    """
    n = _integer("n_samples", n_samples, 1)
    rng = _generator(random_state)
    truth = draw_truth(
        rng,
        n_features,
        n_prediction,
        prediction_features=prediction_features,
        rho=rho,
        sigma=sigma,
        intercept=intercept,
        selection_rate=selection_rate,
        correlation=correlation,
        strength=strength,
    )
    X, complete_y, selected = truth.rows(n, rng)
    return Selection(
        X=X,
        y=np.where(selected, complete_y, np.nan),
        selected=selected,
        complete_y=complete_y,
        coef=truth.coef,
        intercept=truth.intercept,
        selection_coef=truth.selection_coef,
        selection_intercept=truth.selection_intercept,
        rho=truth.rho,
        sigma=truth.sigma,
        support=truth.support,
        feature_names=truth.feature_names,
    )


@dataclass(frozen=True, eq=False)
class Truth:
    """The parameters of a simulated selection model, and its law of the rows."""

    coef: NDArray[np.float64]
    intercept: float
    selection_coef: NDArray[np.float64]
    selection_intercept: float
    rho: float
    sigma: float
    correlation: float
    support: NDArray[np.bool_]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``("x0", "x1", ...)``, K of them."""
        return tuple(f"x{position}" for position in range(len(self.coef)))

    def rows(
        self, n: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Draw features (n, K), complete outcomes (n,) and who is selected (n,)."""
        X = rng.standard_normal((n, len(self.coef)))
        shared = rng.standard_normal((n, 1))
        X = math.sqrt(1 - self.correlation) * X + math.sqrt(self.correlation) * shared
        u = rng.standard_normal(n)
        epsilon = self.rho * u + math.sqrt(1 - self.rho**2) * rng.standard_normal(n)
        selected = self.selection_intercept + X @ self.selection_coef + u > 0
        return X, self.intercept + X @ self.coef + self.sigma * epsilon, selected


def draw_truth(
    rng: np.random.Generator,
    n_features: int,
    n_prediction: int,
    *,
    prediction_features: Sequence[int] | NDArray[np.integer] | None = None,
    rho: float = 0.5,
    sigma: float = 1.0,
    intercept: float = 1.0,
    selection_rate: float = 0.5,
    correlation: float = 0.0,
    strength: float = 1.0,
) -> Truth:
    """Draw the parameters of a selection model; see `make_selection`."""
    K = _integer("n_features", n_features, 1)
    rho = check_range("rho", rho)
    sigma = check_range("sigma", sigma)
    intercept = check_range("intercept", intercept)
    selection_rate = check_range("selection_rate", selection_rate)
    correlation = check_range("correlation", correlation)
    strength = check_range("strength", strength)

    # The truth is drawn before the rows, and each part of it in full whatever is kept, so that
    # one seed gives one truth at every sample size and choice of features.
    selection_coef = _coefficients(rng, K)
    coef = _coefficients(rng, K)
    order = rng.permutation(K)
    if prediction_features is None:
        predicting = order[: _integer("n_prediction", n_prediction, 0, K)].tolist()
    else:
        predicting = _positions("prediction_features", prediction_features, K)
    support = np.zeros(K, dtype=np.bool_)
    support[predicting] = True
    coef[~support] = 0.0
    index_variance = (1 - correlation) * (selection_coef @ selection_coef)
    index_variance += correlation * selection_coef.sum() ** 2
    selection_coef *= strength / math.sqrt(index_variance)
    # d is normal with mean γ₀ and variance strength² + 1, so its sign has a known rate.
    selection_intercept = math.hypot(strength, 1.0) * float(ndtri(selection_rate))

    return Truth(
        coef=coef,
        intercept=intercept,
        selection_coef=selection_coef,
        selection_intercept=selection_intercept,
        rho=rho,
        sigma=sigma,
        correlation=correlation,
        support=support,
    )


def _coefficients(rng: np.random.Generator, K: int) -> NDArray[np.float64]:
    magnitudes = rng.uniform(*_MAGNITUDE, size=K)
    return np.where(rng.random(K) < 0.5, -magnitudes, magnitudes)


def _integer(name: str, value: object, low: int, high: int | None = None) -> int:
    # bool is an Integral, and True samples is a slip.
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if low <= number and (high is None or number <= high):
            return number
    limit = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise InputError(f"{name} must be an integer {limit}; got {value!r}")


_RANGES = {
    "rho": (-1.0, 1.0, "[]"),
    "sigma": (0.0, math.inf, "[)"),
    "intercept": (-math.inf, math.inf, "()"),
    "selection_rate": (0.0, 1.0, "()"),
    "correlation": (0.0, 1.0, "[)"),
    "strength": (0.0, math.inf, "[)"),
}


def check_range(name: str, value: object, said: str | None = None) -> float:
    """Return a parameter of a simulation as a number, or refuse one out of its range.

    Parameters
    ----------
    name : str
        As `make_selection` calls it.
    value : object
    said : str, optional
        What the user calls it; the same unless given.

    Returns
    -------
    float
    """
    low, high, ends = _RANGES[name]
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = low <= number if ends[0] == "[" else low < number
        below = number <= high if ends[1] == "]" else number < high
        if above and below:
            return number
    interval = f"{ends[0]}{low:g}, {high:g}{ends[1]}"
    raise InputError(f"{said or name} must be a number in {interval}; got {value!r}")


def _positions(name: str, values: object, K: int) -> list[int]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a sequence of positions; got {values!r}")
    positions = [_integer(f"each of {name}", value, 0, K - 1) for value in values]
    repeated = sorted({position for position in positions if positions.count(position) > 1})
    if repeated:
        raise InputError(f"{name} must name each position once; repeated: {repeated}.")
    return positions


def _generator(random_state: object) -> np.random.Generator:
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(_integer("random_state", random_state, 0))
