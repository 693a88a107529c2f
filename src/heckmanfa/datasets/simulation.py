"""A simulated selection model, the paper's setting: all features select, some of them predict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    import pandas as pd

# Every coefficient has a magnitude in this interval and a random sign, so no feature predicts
# only in the eighth digit.
_MAGNITUDE = (0.5, 1.5)


@dataclass(frozen=True, eq=False, kw_only=True)
class Truth:
    """The parameters of a simulated selection model with K features."""

    coef: Floats
    """prediction coefficients, zero for features that only select, shape (K,)"""
    intercept: float
    selection_coef: Floats
    """selection coefficients, shape (K,)"""
    selection_intercept: float
    rho: float
    """correlation of the two equations' errors"""
    sigma: float
    """standard deviation of the prediction equation's error"""
    correlation: float
    """correlation of every pair of features"""
    support: NDArray[np.bool_]
    """whether a feature predicts, shape (K,)"""
    feature_names: tuple[str, ...]
    """``("x0", "x1", ...)``, K of them"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection(Truth):
    """Simulated data of a selection model together with the truth that made them.

    For n samples and K features; an analyst would see ``X``, ``y`` and ``selected``.
    """

    X: Floats = field(repr=False)
    """features, shape (n, K)"""
    y: Floats = field(repr=False)
    """outcome, NaN where not selected, shape (n,)"""
    selected: NDArray[np.bool_] = field(repr=False)
    """whether the outcome is observed, shape (n,)"""
    complete_y: Floats = field(repr=False)
    """outcome of every sample, including the hidden ones, shape (n,)"""

    @property
    def frame(self) -> pd.DataFrame:
        """The visible data as one table: the features by name, then ``y`` and ``selected``."""
        # Imported here because the simulator itself needs no data frame.
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
    outcome_kind: str = "linear",
    random_state: int | np.random.Generator | None = None,
) -> Selection:
    """Simulate a selection model whose truth is known.

    A sample is selected if its index d = γ₀ + x'γ + u is positive, and only then is its
    outcome y = β₀ + x'β + σε observed. The errors u and ε are standard normal with correlation ρ.
    Every feature has a nonzero coefficient in γ; only the prediction features have one in β.
    Features are standard normal.

    Parameters
    ----------
    n_samples : int
        Number of samples, selected or not.
    n_features : int
        Number of features, K.
    n_prediction : int
        Number of features that predict, at most `n_features`, chosen at random. Ignored if
        `prediction_features` is given.
    prediction_features : sequence of int, optional
        Positions of the features that predict, counted from 0.
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
        Standard deviation of x'γ, at least 0, relative to that of u: how strongly the features
        drive selection.
    outcome_kind : {"linear", "binary", "ordered"}
        "binary" is the Heckman probit: the outcome is 1 where y above is positive and 0 elsewhere.
        "ordered" is a rating from 1 to 4: one more than how many of 0, 1 and 2 are below y. Their
        scale is not observed, so `sigma` must be 1.
    random_state : int, numpy.random.Generator or None
        Seed or source of random numbers. With an int, the coefficients do not depend on
        `n_samples`, `rho`, `sigma`, `intercept`, `selection_rate` or `outcome_kind`.

    Examples
    --------
    >>> data = make_selection(500, n_features=4, n_prediction=2, random_state=0)
    >>> data.X.shape, int(data.support.sum())
    ((500, 4), 2)
    """
    n = _integer("n_samples", n_samples, 1)
    observe = observed_as(outcome_kind, sigma)
    rng = generator(random_state)
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
    X, complete_y, selected = draw_rows(truth, n, rng)
    complete_y = observe(complete_y)
    y = np.where(selected, complete_y, np.nan)
    return Selection(**vars(truth), X=X, y=y, selected=selected, complete_y=complete_y)


CUTS = (0.0, 1.0, 2.0)
"""where one rating of an ordered outcome ends and the next begins"""


def _ratings(outcome: Floats) -> Floats:
    """Return 1 more than how many cuts are below an outcome; NaN stays."""
    return np.where(np.isnan(outcome), np.nan, 1.0 + np.searchsorted(CUTS, outcome))


def _classes(outcome: Floats) -> Floats:
    """Return 1 where an outcome is positive, and 0 elsewhere; NaN stays."""
    return np.where(np.isnan(outcome), np.nan, outcome > 0)


OBSERVED: dict[str, tuple[Callable[[Floats], Floats], bool]] = {
    "linear": (lambda outcome: outcome, True),
    "binary": (_classes, False),
    "ordered": (_ratings, False),
}
"""what is observed of a linear outcome, and whether that has a scale, by kind of outcome"""


def observed_as(kind: str, sigma: float) -> Callable[[Floats], Floats]:
    """Return what makes a kind of outcome of a linear one.

    Unknown kinds are refused, and scales that an outcome does not have.
    """
    if kind not in OBSERVED:
        kinds = " or ".join(map(repr, OBSERVED))
        raise InputError(f"{option('outcome_kind')} must be {kinds}; got {quoted(kind)}")
    observe, has_scale = OBSERVED[kind]
    if not has_scale and sigma != 1:
        raise InputError(
            f"{option('sigma')} is {sigma!r}, but the scale of a {kind} outcome is not observed: "
            "leave it at 1, or divide the coefficients by it"
        )
    return observe


def draw_rows(
    truth: Truth, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Draw features (n, K), complete outcomes (n,) and who is selected (n,)."""
    X = rng.standard_normal((n, len(truth.coef)))
    shared = rng.standard_normal((n, 1))
    X = math.sqrt(1 - truth.correlation) * X + math.sqrt(truth.correlation) * shared
    u = rng.standard_normal(n)
    epsilon = truth.rho * u + math.sqrt(1 - truth.rho**2) * rng.standard_normal(n)
    selected = truth.selection_intercept + X @ truth.selection_coef + u > 0
    return X, truth.intercept + X @ truth.coef + truth.sigma * epsilon, selected


def draw_truth(
    rng: np.random.Generator,
    n_features: int,
    n_prediction: int,
    *,
    prediction_features: Sequence[int] | NDArray[np.integer] | None = None,
    **ranged: float,
) -> Truth:
    """Draw the parameters of a selection model; see `make_selection` for their defaults."""
    K = _integer("n_features", n_features, 1)
    checked = {
        name: _in_range(name, ranged.get(name, default))
        for name, (default, _, _, _) in _RANGES.items()
    }
    correlation, strength = checked["correlation"], checked["strength"]
    # The truth is drawn before the rows, and in full whatever is kept, so one seed gives one truth
    # at every sample size and choice of features.
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
    selection_intercept = math.hypot(strength, 1.0) * float(ndtri(checked["selection_rate"]))

    return Truth(
        coef=coef,
        intercept=checked["intercept"],
        selection_coef=selection_coef,
        selection_intercept=selection_intercept,
        rho=checked["rho"],
        sigma=checked["sigma"],
        correlation=correlation,
        support=support,
        feature_names=tuple(f"x{position}" for position in range(K)),
    )


def _coefficients(rng: np.random.Generator, K: int) -> Floats:
    magnitudes = rng.uniform(*_MAGNITUDE, size=K)
    return np.where(rng.random(K) < 0.5, -magnitudes, magnitudes)


def _integer(name: str, value: object, low: int, high: int | None = None) -> int:
    # bool is an Integral, but a boolean here is a mistake.
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if low <= number and (high is None or number <= high):
            return number
    limit = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise InputError(f"{name} must be an integer {limit}; got {value!r}")


# Default, bounds, and whether they belong to the interval.
_RANGES = {
    "rho": (0.5, -1.0, 1.0, "[]"),
    "sigma": (1.0, 0.0, math.inf, "[)"),
    "intercept": (1.0, -math.inf, math.inf, "()"),
    "selection_rate": (0.5, 0.0, 1.0, "()"),
    "correlation": (0.0, 0.0, 1.0, "[)"),
    "strength": (1.0, 0.0, math.inf, "[)"),
}


def _in_range(name: str, value: object) -> float:
    """Return a parameter of `make_selection` as a number, or refuse one out of its range."""
    _, low, high, ends = _RANGES[name]
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        above = low <= number if ends[0] == "[" else low < number
        below = number <= high if ends[1] == "]" else number < high
        if above and below:
            return number
    interval = f"{ends[0]}{low:g}, {high:g}{ends[1]}"
    raise InputError(f"{option(name)} must be a number in {interval}; got {value!r}")


def _positions(name: str, values: object, K: int) -> list[int]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a sequence of positions; got {values!r}")
    positions = [_integer(f"each of {name}", value, 0, K - 1) for value in values]
    repeated = sorted({position for position in positions if positions.count(position) > 1})
    if repeated:
        raise InputError(f"{name} must name each position once; repeated: {repeated}.")
    return positions
