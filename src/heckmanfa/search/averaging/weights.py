"""The criteria behind the weights of an average, and which assignments weigh nothing.

An assignment with J columns in u of the U units has p = J + 2 coefficients, lambda's and the
intercept included, and the criterion m log(SSE / m) + penalty:

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
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal
from heckmanfa.search.quadratic import QuadraticForm

Kind = Literal["aic", "bic", "ebic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Weighting = Literal["aic", "bic", "ebic", "mean"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)

# An assignment with more columns than this share of the rows weighs nothing.
MOST_COLUMNS = 1.0 / 3.0


@dataclass(frozen=True, eq=False)
class Refitted:
    """R assignments that were refitted by maximum likelihood."""

    masks: Mask
    """(R, K)"""
    cost: Floats
    """(R,) twice the log-likelihood that each loses to the model of all features"""


@dataclass(frozen=True, eq=False)
class Rule:
    """What an average weighs by, for one data set; build it with `Rule.of`."""

    weights: Weighting
    """the average's own weights"""
    goal: Goal
    """the window of rho, and the floor of perfect fits"""
    mean_delta: float
    penalties: dict[Kind, Floats]
    """(k + 1, U + 1) each, by J and u: what a criterion adds to m log SSE; infinite for
    assignments with too many columns"""
    refitted: Refitted | None = None
    """assignments whose cost is known exactly, where a quadratic form approximates it"""

    @classmethod
    def of(
        cls,
        moments: Moments,
        choices: Choices,
        weights: str,
        rho_range: object = None,
        *,
        imr: bool = True,
        form: QuadraticForm | None = None,
        refitted: Refitted | None = None,
    ) -> Rule:
        """Check the kind of weights and the window, for the data behind the moments.

        Without ``imr``, the models leave lambda out, and have one coefficient fewer. With a
        likelihood's ``form``, the moments are those of `QuadraticForm.as_moments`.
        """
        if weights not in WEIGHTINGS:
            raise InputError(f"weights must be one of {', '.join(WEIGHTINGS)}; got {weights!r}")
        if form is None:
            goal = Goal.of(moments, "bic", rho_range)
        else:
            goal = Goal.of_form(form, choices, "bic", moments.n_selected)
        return cls(
            weights=weights,
            goal=goal,
            mean_delta=moments.mean_delta,
            penalties=penalties(moments.n_selected, choices, imr=imr),
            refitted=refitted,
        )

    @property
    def own(self) -> tuple[Kind, ...]:
        """The kinds whose weights are averaged to give the average's own."""
        return ("aic", "bic") if self.weights == "mean" else (self.weights,)

    @property
    def n_selected(self) -> float:
        """M."""
        return self.goal.n_selected


def penalties(m: float, choices: Choices, *, imr: bool = True) -> dict[Kind, Floats]:
    """Return what each criterion adds to m log SSE, by numbers of columns and units."""
    n_units = len(choices.units)
    columns = np.arange(len(choices.always) + int(choices.sizes.sum()) + 1)[:, None]
    units = np.arange(n_units + 1)[None, :]
    coefficients = columns + 1.0 + imr
    least = len(choices.always) + units
    allowed = (columns >= least) & (columns <= choices.max_features)
    allowed &= (columns <= MOST_COLUMNS * m) & (m - coefficients > 1.0)
    small_sample = np.where(allowed, m - coefficients - 1.0, 1.0)
    binomial = -np.log(n_units + 1.0) - special.betaln(n_units - units + 1.0, units + 1.0)
    found: dict[Kind, Floats] = {
        "aic": 2.0 * coefficients * m / small_sample + 0.0 * units,
        "bic": coefficients * np.log(m) + 0.0 * units,
        "ebic": coefficients * np.log(m) + 2.0 * binomial,
    }
    fit = -m * np.log(m)
    return {kind: np.where(allowed, table + fit, np.inf) for kind, table in found.items()}
