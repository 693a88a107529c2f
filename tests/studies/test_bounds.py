"""How often 95% intervals of bounds hold a number at its bounds, where coverage is lowest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from heckmanfa import bounds

pytestmark = pytest.mark.study

N_SAMPLES, N_ROWS = 2000, 500
PAGE = "bounds.md"


def _held(table, truths, place=0):
    row = table.loc[place]
    return [row["ci_low"] <= truth <= row["ci_high"] for truth in truths]


def _shares(draw, n_samples=N_SAMPLES):
    return np.mean([draw(np.random.default_rng(seed)) for seed in range(n_samples)], axis=0)


def _mean(missing):
    """A share of 30% among those with an outcome; a missing one may be 0 or 1."""

    def draw(rng):
        y = np.where(rng.random(N_ROWS) < missing, np.nan, rng.random(N_ROWS) < 0.3)
        low = 0.3 * (1 - missing)
        return _held(bounds.mean(y, y_range=(0, 1)).tidy(), (low, low + missing))

    return draw


def _projection(missing):
    """P(y = 1 | x) = Phi(x), so the slope is 1 / (2 sqrt(pi)) where nothing is missing."""
    known, reach = 0.5 / np.sqrt(np.pi), 0.5 * np.sqrt(2 / np.pi)
    low = (1 - missing) * known - missing * reach
    high = (1 - missing) * known + missing * reach

    def draw(rng):
        x = rng.normal(size=(N_ROWS, 1))
        y = (x[:, 0] + rng.normal(size=N_ROWS) > 0).astype(float)
        y[rng.random(N_ROWS) < missing] = np.nan
        return _held(bounds.projection(x, y, y_range=(0, 1)).tidy(), (low, high), 1)

    return draw


def _trimming(more):
    """60% of the untreated have an outcome and so many more of the treated; both are N(0, 1)."""
    kept = 0.6 / (0.6 + more)
    reach = norm.pdf(norm.ppf(kept)) / kept if more else 0.0

    def draw(rng):
        d = rng.random(2 * N_ROWS) < 0.5
        seen = rng.random(2 * N_ROWS) < 0.6 + more * d
        y = np.where(seen, rng.normal(size=2 * N_ROWS), np.nan)
        # The always observed are drawn by lot among those observed, so their effect is zero.
        return _held(bounds.lee(y, d).tidy(), (-reach, reach, 0.0))

    return draw


def _instrument(slope):
    """Five cells whose bounds are all the same where the slope is zero: the bias is largest."""
    means = 0.5 + slope * np.arange(-2, 3)
    low, high = 0.7 * means, 0.7 * means + 0.3
    truth = np.maximum.accumulate(low).mean(), np.minimum.accumulate(high[::-1]).mean()

    def draw(rng):
        z = rng.integers(0, 5, N_ROWS)
        y = np.where(rng.random(N_ROWS) < 0.3, np.nan, rng.random(N_ROWS) < means[z])
        result = bounds.monotone_instrument(y, z, y_range=(0, 1), n_boot=100, random_state=rng)
        return _held(result.tidy(), truth)

    return draw


def _table(titles, lines):
    head = ["| " + " | ".join(titles) + " |", "| " + " | ".join(["---"] * len(titles)) + " |"]
    return "\n".join(head + ["| " + " | ".join(line) + " |" for line in lines])


def _percents(shares):
    return [f"{100 * share:.1f}%" for share in shares]


def test_intervals_hold_a_mean_and_a_slope_at_their_bounds(publish):
    lines, shares = [], []
    for missing in (0.0, 0.005, 0.02, 0.1, 0.4):
        found = [*_shares(_mean(missing)), *_shares(_projection(missing), N_SAMPLES // 2)]
        lines.append([f"{100 * missing:g}%", *_percents(found)])
        shares += found
    titles = ["missing", "mean at its low end", "at its high end", "slope at its low end", "high"]
    publish(PAGE, _table(titles, lines), "means")
    assert min(shares) >= 0.93


def test_intervals_hold_effects_on_the_always_observed(publish):
    lines, ends, inside = [], [], []
    for more in (0.0, 0.01, 0.05, 0.15, 0.3):
        low, high, effect = _shares(_trimming(more), N_SAMPLES // 2)
        lines.append([f"{100 * more:g} points", *_percents((low, high, effect))])
        ends += [low, high]
        inside.append(effect)
    titles = ["treated observed more by", "effect at its low end", "at its high end", "true effect"]
    publish(PAGE, _table(titles, lines), "trimming")
    assert min(ends) >= 0.93
    assert min(inside) >= 0.93


def test_intervals_with_an_instrument_hold_a_mean_at_its_bounds(publish):
    lines, shares = [], []
    for slope in (0.0, 0.05, 0.1):
        found = _shares(_instrument(slope), N_SAMPLES // 4)
        lines.append([f"{slope:g}", *_percents(found)])
        shares += [*found]
    titles = ["rise of the mean per cell", "mean at its low end", "at its high end"]
    publish(PAGE, _table(titles, lines), "instruments")
    assert min(shares) >= 0.9
