"""How well probabilities of a binary outcome predict it: calibration, AUC, Brier score, log loss.

With weights w, outcomes y of 0 and 1 and probabilities p of rows, in sums over rows:

- AUC: the share of pairs of a row with y = 1 and one with y = 0 in which the first has the higher
  p; pairs with equal p count one half, and a pair counts as the product of its weights;
- Brier score: sum w (p - y)^2 / sum w;
- log loss: -sum w (y log p + (1 - y) log(1 - p)) / sum w, with p at least 2e-16 from 0 and 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError
from heckmanfa.plots.fit_checks import CalibrationPicture, CalibrationPoint
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.effects import CONF_LEVEL

# As scikit-learn does, keep a probability of 0 or 1 from making the loss infinite.
_LEAST = float(np.finfo(np.float64).eps)


def calibration_of(
    probability: Floats,
    outcome: Floats,
    weight: Floats | None = None,
    *,
    positive: str,
    outcome_name: str,
    held_out: str = "",
    weight_kind: str = "frequency",
    n_bins: int = 10,
) -> CalibrationPicture:
    """Compare predicted probabilities of rows with their outcomes, 0 or 1.

    Rows are put into ``n_bins`` groups of about equal size, by probability; equal probabilities
    stay together. ``held_out`` says how rows were held out, such as "5 folds"; it is empty if the
    model was fitted to them. ``weight_kind`` matters with weights.
    """
    if len(probability) == 0:
        raise InputError("no row has both a probability and an outcome: there is nothing to draw")
    counted = np.ones(len(probability)) if weight is None else np.asarray(weight, dtype=np.float64)
    frequencies = weight is not None and weight_kind == "frequency"
    total = float(counted.sum())
    points = []
    for rows in _groups(probability, counted, n_bins):
        own, p, y = counted[rows], probability[rows], outcome[rows]
        size = float(own.sum())
        observed = float(own @ y) / size
        # What sampling weights of different size are worth in rows (Kish, 1965).
        n_effective = size if weight is None or frequencies else size**2 / float(own @ own)
        low, high = wilson_interval(observed, n_effective)
        points.append(
            CalibrationPoint(
                low=float(p.min()),
                high=float(p.max()),
                predicted=float(own @ p) / size,
                observed=observed,
                observed_low=low,
                observed_high=high,
                n_rows=size if weight is None or frequencies else float(len(rows)),
            )
        )
    return CalibrationPicture(
        outcome=outcome_name,
        positive=positive,
        points=tuple(points),
        n_rows=total if weight is None or frequencies else float(len(probability)),
        share=float(counted @ outcome) / total,
        auc=area_under_curve(probability, outcome, counted),
        brier=brier_score(probability, outcome, counted),
        log_loss=log_loss(probability, outcome, counted),
        held_out=held_out,
        weighted="" if weight is None else weight_kind,
    )


def area_under_curve(probability: Floats, outcome: Floats, weight: Floats | None = None) -> float:
    """Return the area under the ROC curve; NaN if one of the classes has no row."""
    weight = np.ones(len(probability)) if weight is None else weight
    _, place = np.unique(probability, return_inverse=True)
    ones, zeros = (np.bincount(place, weights=weight * side) for side in (outcome, 1.0 - outcome))
    pairs = float(ones.sum() * zeros.sum())
    if not pairs > 0:
        return float("nan")
    below = np.cumsum(zeros) - zeros
    return float(ones @ (below + 0.5 * zeros)) / pairs


def brier_score(probability: Floats, outcome: Floats, weight: Floats | None = None) -> float:
    """Return the mean squared distance of probability and outcome."""
    return float(np.average((probability - outcome) ** 2, weights=weight))


def log_loss(probability: Floats, outcome: Floats, weight: Floats | None = None) -> float:
    """Return the mean of minus the logarithm of the probability of what happened."""
    likely = np.clip(probability, _LEAST, 1.0 - _LEAST)
    losses = -np.where(outcome > 0.5, np.log(likely), np.log1p(-likely))
    return float(np.average(losses, weights=weight))


def wilson_interval(share: float, n: float, conf_level: float = CONF_LEVEL) -> tuple[float, float]:
    """Return the score interval of a binomial share among n rows (Wilson, 1927)."""
    z = NullDistribution().quantile(conf_level)
    centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    reach = z * np.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2) / (1.0 + z * z / n)
    return max(float(centre - reach), 0.0), min(float(centre + reach), 1.0)


def _groups(probability: Floats, weight: Floats, n_bins: int) -> list[NDArray[np.intp]]:
    """Return the rows of each group, in the order of their probability."""
    _, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, weights=weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    # Rows without weight are in no group of their own.
    group = np.minimum((n_bins * middle).astype(int), n_bins - 1)[place]
    groups = [np.flatnonzero((group == bin_) & (weight > 0)) for bin_ in range(n_bins)]
    return [rows for rows in groups if len(rows)]
