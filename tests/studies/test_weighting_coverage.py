"""How often 95% intervals of weighted and doubly robust estimates hold the truth.

Each design has 1,000 samples of 500 rows, about 58% of them with an outcome. Outcomes are missing
at random in the first four designs: a linear model of the outcome and a probit of selection are
right, or one of them lacks a square, or both do. In the fifth, the errors of selection and outcome
are correlated, and nothing here may hold. In the sixth, rows come in 50 clusters of ten.

What was expected before any sample was drawn:

- doubly robust intervals of the mean and of a slope hold the truth in 93 to 97% of the samples if a
  model is right; the mean's in fewer than 85% if none is, and in fewer than 60% if outcomes are
  missing not at random;
- weighted regressions do so where the probit is right. Where it is wrong, so does the slope if the
  regression itself is right.

"""

from __future__ import annotations

import numpy as np
import pytest

from heckmanfa import DoublyRobust, InverseProbabilityWeighted, NaiveOLS

pytestmark = pytest.mark.study

N_ROWS, N_SAMPLES, N_CLUSTERS = 500, 1000, 50
# Which square is there: of the outcome's equation, of the selection's.
DESIGNS = {
    "both right": (0.0, 0.0, 0.0),
    "outcome wrong": (0.7, 0.0, 0.0),
    "selection wrong": (0.0, 0.5, 0.0),
    "both wrong": (0.7, 0.5, 0.0),
    "not at random": (0.0, 0.0, 0.6),
    "clusters": (0.0, 0.0, 0.0),
}
MEAN, SLOPE = 1.0, 0.8


def draw(design: str, seed: int):
    """Features, the outcome and clusters; everyone's mean is 1, and the slope of x0 is 0.8."""
    in_outcome, in_selection, rho = DESIGNS[design]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 3))
    e, v = rng.normal(size=(2, N_ROWS))
    groups = np.arange(N_ROWS) % N_CLUSTERS
    if design == "clusters":
        e = 0.8 * e + 0.6 * rng.normal(size=N_CLUSTERS)[groups]
        v = 0.8 * v + 0.6 * rng.normal(size=N_CLUSTERS)[groups]
        X[:, 0] = 0.8 * X[:, 0] + 0.6 * rng.normal(size=N_CLUSTERS)[groups]
    square = X[:, 1] ** 2 - 1.0
    index = 0.3 + 0.5 * X[:, 0] + 0.4 * X[:, 1] - in_selection * square
    y = MEAN + SLOPE * X[:, 0] - 0.5 * X[:, 2] + in_outcome * square + e
    return X, np.where(index + rho * e + np.sqrt(1 - rho**2) * v > 0, y, np.nan), groups


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_hold_the_truth_where_they_should(design):
    clustered = design == "clusters"
    options = {"cov_type": "cluster"} if clustered else {}
    held, naive = [], []
    for seed in range(N_SAMPLES):
        X, y, groups = draw(design, seed)
        given = {"groups": groups} if clustered else {}
        robust = DoublyRobust([0], n_folds=3, random_state=seed, **options).fit(X, y, **given)
        weighted = InverseProbabilityWeighted([0, 1, 2], **options).fit(X, y, **given)
        rows = [robust.tidy().iloc[place] for place in (0, 2)]
        rows += [weighted.tidy().iloc[place] for place in (0, 1)]
        truths = (MEAN, SLOPE, MEAN, SLOPE)
        held.append(
            [
                row["ci_low"] <= truth <= row["ci_high"]
                for row, truth in zip(rows, truths, strict=True)
            ]
        )
        naive.append(NaiveOLS([]).fit(X, y).intercept_)
    shares = np.mean(held, axis=0)
    names = ("robust mean", "robust slope", "weighted intercept", "weighted slope")
    said = ", ".join(f"{name} {share:.3f}" for name, share in zip(names, shares, strict=True))
    print(f"{design}: {said}; mean of the selected {np.mean(naive):.2f}")
    mean, slope, intercept, weighted_slope = shares
    if design == "both wrong":
        assert mean < 0.85
    elif design == "not at random":
        assert mean < 0.6
        assert intercept < 0.6
    else:
        assert 0.93 < mean < 0.97
        assert 0.93 < slope < 0.97
        assert 0.93 < weighted_slope < 0.97
        assert 0.93 < intercept < 0.97
