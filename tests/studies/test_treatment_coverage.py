"""How often 95% intervals of average effects hold the truth, over a thousand samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import TreatmentModel

pytestmark = pytest.mark.study

N_ROWS, N_SAMPLES = 1000, 1000
EFFECTS = ["ate", "att", "atu", "margin"]


def _sample(seed: int, separate: bool):
    """Features, outcome, treatment, and the effects of these rows given their features."""
    rng = np.random.default_rng(seed)
    X, u, v = rng.normal(size=(N_ROWS, 3)), *rng.normal(size=(2, N_ROWS))
    index = 0.2 + 0.5 * X[:, 0] + X[:, 2]
    d = index + u > 0
    one = 2.0 - 0.3 * X[:, 0] + 0.8 * X[:, 1]
    zero, kappa = one - 1.5, 0.0
    error1 = error0 = 0.8 * (-0.5 * u + np.sqrt(0.75) * v)
    if separate:
        zero, kappa = 1.0 + 0.7 * X[:, 0] - 0.4 * X[:, 1], -0.4 - 0.48
        error0 = 1.2 * (0.4 * u + np.sqrt(0.84) * v)
    density = np.exp(-0.5 * index**2) / np.sqrt(2.0 * np.pi)
    chance = _cdf(np.where(d, index, -index))
    known = np.where(d, 1.0, -1.0) * density / chance
    gap = one - zero
    truth = {
        "ate": gap.mean(),
        "att": (gap + kappa * known)[d].mean(),
        "atu": (gap + kappa * known)[~d].mean(),
        "margin": np.average(gap - kappa * index, weights=density),
    }
    frame = pd.DataFrame(X, columns=["x1", "x2", "z"])
    return frame, np.where(d, one + error1, zero + error0), d, truth


def _cdf(values):
    from scipy.special import ndtr

    return ndtr(values)


@pytest.mark.parametrize("regimes", ["common", "separate"])
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_intervals_of_effects_hold_the_truth(regimes, method):
    held = []
    for seed in range(N_SAMPLES):
        X, y, d, truth = _sample(seed, regimes == "separate")
        model = TreatmentModel(["x1", "x2"], ["x1", "z"], regimes=regimes, method=method)
        table = model.fit(X, y, treated=d).effects().set_index("effect")
        value = np.array([truth[kind] for kind in EFFECTS])
        held.append((table["ci_low"] <= value) & (value <= table["ci_high"]))
    shares = np.mean(held, axis=0)
    print(regimes, method, dict(zip(EFFECTS, shares.round(3), strict=True)))
    assert np.all((shares > 0.93) & (shares < 0.97))
