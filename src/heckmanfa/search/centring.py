"""Where the likelihood of all candidates is approximated if its rho has no maximum in (-1, 1).

Many features, or an equation of selection that fits too well, leave the rho of the largest model
nearly unidentified, while smaller models still have one. The approximation then holds rho where
the best of them has it.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.rows import Mask, Rows
from heckmanfa.model.probit_together import Climbed
from heckmanfa.search.best_subset.branch_and_bound import warm_start
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Criterion, Goal
from heckmanfa.search.full_model import FullModel

# Each round holds rho where the best assignment of the last one has it.
_ROUNDS = 4
# Held rho is given to two decimals; reports name it.
_DECIMALS = 2
_LARGEST = 0.98


def centred(
    full: FullModel, rows: Rows, choices: Choices, criterion: Criterion, m: float
) -> FullModel:
    """Hold rho at that of a good assignment, if the model of all candidates has none of its own.

    With rho held at either of two values, the best assignment by the approximation is fitted
    exactly; the better of the two gives the next rho, until it is the same again. If neither has a
    maximum inside (-1, 1), nothing changes.
    """
    if full.held_rho is None:
        return full
    fitted: dict[bytes, tuple[float, Climbed]] = {}

    def look(at: FullModel) -> None:
        """Fit the best assignment by an approximation, unless it was before."""
        goal = Goal.of_form(at.form, choices, criterion, m)
        start = warm_start(at.form.as_moments(choices.n_features, m), choices, goal)
        if start is None or start[1].tobytes() in fitted:
            return
        mask = start[1]
        climbed = at.climb(rows, mask)
        value = _criterion(goal, climbed, mask) if climbed.converged else np.inf
        fitted[mask.tobytes()] = value, climbed

    look(full)
    uncorrelated = full.held_at(rows, 0.0)
    if uncorrelated is not None:
        look(uncorrelated)
    for _ in range(_ROUNDS):
        value, best = min(fitted.values(), key=lambda pair: pair[0], default=(np.inf, None))
        if best is None or np.isinf(value):
            return full
        rho = round(float(np.clip(np.tanh(best.theta[-1]), -_LARGEST, _LARGEST)), _DECIMALS)
        if rho == full.held_rho:
            break
        nearer = full.held_at(rows, rho)
        if nearer is None:
            break
        full = nearer
        look(full)
    return full


def _criterion(goal: Goal, climbed: Climbed, mask: Mask) -> float:
    penalty = goal.penalty(mask.sum()) + goal.unit_penalty(goal.count_units(mask[None]))[0]
    return float(-2.0 * climbed.log_likelihood + goal.value(penalty))
