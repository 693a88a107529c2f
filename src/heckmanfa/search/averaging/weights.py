"""The criteria behind the weights of an average, and which assignments weigh nothing.

An assignment with J columns in u of the U units has p = J + 1 coefficients, the intercept among
them, and one more each if it holds the correction and the index. If both equations are searched, J
and U are those of both, p counts all parameters of the likelihood, and m is the number of all rows.
Its criterion is what dropping the others costs, plus a penalty:

- aic: 2 p m / (m - p - 1), the small-sample form
- bic: p log m
- ebic: p log m + 2 log C(U, u)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.search.choices import Choices, check_window

WeightCriterion = Literal["aic", "bic", "ebic"]
WEIGHT_CRITERIA: tuple[WeightCriterion, ...] = get_args(WeightCriterion)
Weighting = Literal["aic", "bic", "ebic", "mean"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
Correction = Literal["optional", "always", "never"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)

# An assignment with more columns than this share of the rows weighs nothing.
MOST_COLUMNS = 1.0 / 3.0

ALL_FEATURES_SHARE = 0.5
"""What the assignment that holds everything gets of the weight of an interval.

With one half, a tail of 2.5% holds at most 5% of the model of all features, so the interval
contains that model's interval of 90%, whatever the weights say.
"""


@dataclass(frozen=True)
class Odds:
    """Prior odds of what competes with the features' own coefficients."""

    correction: float = 1.0
    index: float = 1.0
    """zero does not offer it"""


EVEN = Odds()


@dataclass(frozen=True, eq=False)
class Rule:
    """What an average weighs by, for one data set; build it with `Rule.of`."""

    weights: Weighting
    """the average's own weights"""
    rho_range: tuple[float, float] | None
    n_selected: float
    """m"""
    penalties: dict[WeightCriterion, Floats]
    """(k + 1, 3, U + 1) each: by J, by how many of the correction and the index are held, and by u;
    infinite for assignments with too many columns"""

    @classmethod
    def of(
        cls,
        m: float,
        choices: Choices,
        weights: str,
        rho_range: object = None,
        n_fixed: int = 1,
    ) -> Rule:
        """Check the kind of weights and the window; ``n_fixed`` is as in `penalties`."""
        if weights not in WEIGHTINGS:
            raise InputError(f"weights must be one of {', '.join(WEIGHTINGS)}; got {weights!r}")
        window = check_window(rho_range)
        return cls(weights, window, m, penalties(m, choices, n_fixed))

    @property
    def own(self) -> tuple[WeightCriterion, ...]:
        """The kinds whose weights are averaged to give the average's own."""
        return ("aic", "bic") if self.weights == "mean" else (self.weights,)

    def in_range(self, rho: Floats) -> Mask:
        """Whether rho lies in the window."""
        if self.rho_range is None:
            return np.ones(rho.shape, dtype=bool)
        low, high = self.rho_range
        return np.asarray((rho >= low) & (rho <= high))


def penalties(m: float, choices: Choices, n_fixed: int = 1) -> dict[WeightCriterion, Floats]:
    """Return what each criterion adds to the cost of an assignment, as `Rule` has it.

    ``n_fixed`` are the parameters that every assignment has, such as the intercept.
    """
    n_units = len(choices.units)
    columns = np.arange(len(choices.always) + int(choices.sizes.sum()) + 1)[:, None, None]
    extra, units = np.arange(3)[None, :, None], np.arange(n_units + 1)[None, None, :]
    p = columns + extra + float(n_fixed)
    allowed = (columns >= len(choices.always) + units) & (columns <= choices.max_features)
    allowed = allowed & (columns <= MOST_COLUMNS * m) & (m - p > 1.0)
    small_sample = np.where(allowed, m - p - 1.0, 1.0)
    binomial = -np.log(n_units + 1.0) - special.betaln(n_units - units + 1.0, units + 1.0)
    found: dict[WeightCriterion, Floats] = {
        "aic": 2.0 * p * m / small_sample + 0.0 * units,
        "bic": p * np.log(m) + 0.0 * units,
        "ebic": p * np.log(m) + 2.0 * binomial,
    }
    return {kind: np.where(allowed, table, np.inf) for kind, table in found.items()}
