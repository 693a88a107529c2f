"""What chances of averages say of treatments and ordered outcomes, over 100 samples each.

The design, set down before any result was seen: 1,000 rows; six independent normal features may
move the outcome, of which the first two do, each by 0.25 standard deviations of the error. The
first and the third drive treatment or selection (0.5 each), and so does an instrument (0.8) that
may not move the outcome. rho is 0 or 0.5. An ordered outcome has four classes, cut at fixed points.
Counted are chances of 90% or more: of what moves the outcome, of what does not, and of the
correction. Of treatments, also how often the 95% interval of the effect on everyone holds it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from heckmanfa import HeckmanOrderedAverage, TreatmentAverage

pytestmark = pytest.mark.study

N_ROWS, N_SAMPLES, K, SIZE = 1000, 100, 6, 0.25
TRUE, NOISE = [0, 1], [2, 3, 4, 5]
KINDS = {
    "ordered": None,
    "common, two-step": {"regimes": "common", "method": "two-step"},
    "common, ml": {"regimes": "common", "method": "ml"},
    "separate, two-step": {"regimes": "separate", "method": "two-step"},
    "separate, ml": {"regimes": "separate", "method": "ml"},
}


def _average(kind, seed, rho):
    """Fit a sample; return the chances, that of the correction last, and if the interval holds."""
    rng = np.random.default_rng(seed)
    X, u, v = rng.normal(size=(N_ROWS, K + 1)), *rng.normal(size=(2, N_ROWS))
    d = 0.5 * X[:, 0] + 0.5 * X[:, 2] + 0.8 * X[:, K] + u > 0
    y = SIZE * (X[:, 0] + X[:, 1]) + rho * u + np.sqrt(1 - rho**2) * v
    options, features = KINDS[kind], list(range(K))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options is None:
            grade = np.where(d, np.digitize(y, [-0.8, 0.0, 0.8]).astype(float), np.nan)
            model = HeckmanOrderedAverage(prediction_features=features).fit(X, grade)
            return model.inclusion_["bic"].to_numpy(), np.nan
        treated = TreatmentAverage(outcome_features=features, **options)
        treated.fit(X, y + d, treated=d)
        row = treated.effects().iloc[0]
    return treated.inclusion_["bic"].to_numpy(), row["ci_low"] <= 1.0 <= row["ci_high"]


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_chances_of_90_percent_are_of_what_is_there(kind, rho):
    chances, held = zip(*(_average(kind, seed, rho) for seed in range(N_SAMPLES)), strict=True)
    sure = np.array(chances) >= 0.9
    true, noise, correction = sure[:, TRUE].mean(), sure[:, NOISE].mean(), sure[:, -1].mean()
    print(
        f"{kind}, rho {rho}: true {true:.3f}, noise {noise:.4f}, correction {correction:.3f}, "
        f"interval {np.mean(held):.3f}"
    )
    assert noise < 0.03
    assert true > 0.5
    assert correction < 0.1 if rho == 0.0 else correction > 0.3
