"""Which standard errors of weighted estimates give 95% intervals that hold the truth.

Robust standard errors of weighted regressions are too small where few rows with large weights have
much leverage (MacKinnon and White, 1985; Long and Ervin, 2000), and estimates over them have
heavier tails than a normal distribution. This plan was committed before any of its draws was
looked at.

Candidates, from the least change to the most. A row's pull is what it adds to an estimate: its
score in the weighted regression, and what its score in the probit does through the weights. h is
the row's leverage in the weighted regression (for doubly robust estimates, in the projection of
pseudo-outcomes). With clusters, pulls are summed, and I - H of the cluster stands for 1 - h.

- plain: squares of pulls times n / (n - 1), or G / (G - 1);
- hc2: residuals over the root of 1 - h (CR2);
- hc3: residuals over 1 - h, times (n - 1) / n (CR3, the jackknife at fixed weights);
- jackknife: leaving a row out moves the probit, too: pull and probit's share over 1 - h;
- hc2 t, hc3 t, jackknife t: the same with t(v), v = 3 (sum u^2)^2 / sum u^4 of the pulls u on the
  estimate, which is Satterthwaite's for normal errors, and at most n - 1, or G - 1.

Without "t", quantiles are normal, or t(G - 1) with clusters.

Designs in which a model is right (so all four intervals should hold): those of
`test_weighting_coverage.py` (500 rows: both right, the outcome's wrong, the selection's wrong, 50
clusters of ten), and, to break candidates, 20 clusters of 25; 200 rows with weights up to 50; 300
rows with a binary feature that is one in 5%; 300 rows whose errors spread with the feature; and
4,000 rows, where widths must agree within 2%.

Four intervals a design: the mean and the slope of `DoublyRobust` (three folds), the intercept and
the slope of `InverseProbabilityWeighted`. 4,000 draws (1,000 with 4,000 rows), so that the standard
error of a share is 0.35 points (0.7).

Rule: the first candidate whose shares are between 93 and 97% in all designs, for all four. If there
is none, that with the fewest points outside of this range, summed over designs and intervals; of
candidates within 0.5 points of it, the first. Widths, as ratios to plain, are reported. The winner
is built into both estimators, and `test_weighting_coverage.py` then runs them with the bounds that
it was planned with.

What was found: "hc3 t" is the first with all shares between 93 and 97% (93.4 to 96.4%), and so the
default. Points outside are 25.1 for plain, then 10.7, 1.3 (hc3, of doubly robust slopes with large
weights: 91.7%), 3.1, 3.0, 0 and 0. One expectation was wrong (`MISSED`): with 4,000 rows, intervals
of slopes with "t" are still 3 to 4% wider than plain ones, as few rows carry the largest weights.
They hold 95.3 and 95.7%.

Added afterwards: 1,000 samples of the package itself in the five designs that
`test_weighting_coverage.py` lacks, which print the rest of the table of docs/weighting.md. All hold
94 to 97%. With the rare binary feature, `DoublyRobust` refuses 23% of the samples, and the weighted
regression 4%: all of the few ones have an outcome, in the rows of some fold or in all, so the
probit has no maximum. The candidates above did not tell, as their probit stops short of it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from heckmanfa import DoublyRobust, InverseProbabilityWeighted
from heckmanfa.errors import SeparationError

pytestmark = [pytest.mark.study, pytest.mark.filterwarnings("ignore")]

SEED, DRAWS, CLIP, FOLDS = 20261121, 4000, 50.0, 3
SIZES = {
    "both right": 500,
    "outcome wrong": 500,
    "selection wrong": 500,
    "50 clusters": 500,
    "20 clusters": 500,
    "large weights": 200,
    "rare binary": 300,
    "spread": 300,
    "many rows": 4000,
}
CLUSTERS = {"50 clusters": 50, "20 clusters": 20}
KINDS = ("plain", "hc2", "hc3", "jackknife")
CANDIDATES = (*KINDS, "hc2 t", "hc3 t", "jackknife t")
QUANTITIES = ("robust mean", "robust slope", "weighted intercept", "weighted slope")
MEAN, SLOPE = 1.0, 0.8


def draw(design, rng):
    """Features, outcome with NaN, clusters or None, and the four truths."""
    n, groups = SIZES[design], None
    X = rng.normal(size=(n, 3))
    e, v = rng.normal(size=(2, n))
    mean, strength = MEAN, 1.0
    if design in CLUSTERS:
        number = CLUSTERS[design]
        groups = np.arange(n) % number
        shared = rng.normal(size=(3, number))[:, groups]
        e, v, X[:, 0] = (
            0.8 * own + 0.6 * of_group
            for own, of_group in zip((e, v, X[:, 0]), shared, strict=True)
        )
    if design == "large weights":
        strength = 2.0
    if design == "rare binary":
        X[:, 0] = rng.random(n) < 0.05
        mean = MEAN + 0.05 * SLOPE
    if design == "spread":
        e = e * (0.5 + 0.75 * np.abs(X[:, 0]))
    square = X[:, 1] ** 2 - 1.0
    index = 0.3 + strength * (0.5 * X[:, 0] + 0.4 * X[:, 1])
    index = index - 0.5 * square * (design == "selection wrong")
    y = MEAN + SLOPE * X[:, 0] - 0.5 * X[:, 2] + 0.7 * square * (design == "outcome wrong") + e
    return X, np.where(index + v > 0, y, np.nan), groups, (mean, SLOPE, MEAN, SLOPE)


def probit(Z, seen):
    """Coefficients, scores of rows, the covariance, and the index, by Fisher scoring."""
    coef = np.zeros(Z.shape[1])
    sign = np.where(seen, 1.0, -1.0)
    for _ in range(30):
        index = np.clip(Z @ coef, -8.0, 8.0)
        ratio = sign * np.exp(stats.norm._logpdf(index) - log_ndtr(sign * index))
        weight = np.exp(2 * stats.norm._logpdf(index) - log_ndtr(index) - log_ndtr(-index))
        step = np.linalg.solve((Z * weight[:, None]).T @ Z, Z.T @ ratio)
        coef = coef + step
        if np.abs(step).max() < 1e-10:
            break
    # The observed information, as in the package.
    information = (Z * (ratio * (ratio + index))[:, None]).T @ Z
    return Z * ratio[:, None], np.linalg.inv(information), np.clip(Z @ coef, -30.0, 30.0), coef


def corrected(own, other, roots, groups):
    """Pulls of each unit by each kind, (units, j), in coordinates where X'WX is the identity.

    ``own`` (n, j) are scores of the regression, ``other`` those of the probit; ``roots`` (n, j) are
    rows of the weighted design.
    """
    if groups is None:
        h = np.minimum((roots**2).sum(axis=1), 1 - 1e-9)[:, None]
        one = own + other
        moved = roots * ((roots * one).sum(axis=1, keepdims=True) / (1 - h))
        return {
            "plain": one,
            "hc2": own / np.sqrt(1 - h) + other,
            "hc3": own / (1 - h) + other,
            "jackknife": one + moved,
        }
    number, j = groups.max() + 1, own.shape[1]
    sums, others, left = np.zeros((number, j)), np.zeros((number, j)), np.zeros((number, j, j))
    np.add.at(sums, groups, own)
    np.add.at(others, groups, other)
    np.add.at(left, groups, -roots[:, :, None] * roots[:, None, :])
    values, vectors = np.linalg.eigh(left + np.eye(j))
    values = np.maximum(values, 1e-9)

    def powered(power, totals):
        turned = np.einsum("gji,gj->gi", vectors, totals) * values**power
        return np.einsum("gij,gj->gi", vectors, turned)

    return {
        "plain": sums + others,
        "hc2": powered(-0.5, sums) + others,
        "hc3": powered(-1.0, sums) + others,
        "jackknife": powered(-1.0, sums + others),
    }


def intervals(own, other, roots, back, groups):
    """Half the width of each candidate's intervals, {candidate: (j,)}."""
    found = {}
    for kind, pulls in corrected(own, other, roots, groups).items():
        u = pulls @ back.T
        n = len(u)
        factor = {"plain": n / (n - 1), "hc2": 1.0}.get(kind, (n - 1) / n)
        squares = (u**2).sum(axis=0)
        error = np.sqrt(factor * squares)
        usual = stats.norm.ppf(0.975) if groups is None else stats.t.ppf(0.975, n - 1)
        found[kind] = usual * error
        v = np.minimum(3 * squares**2 / (u**4).sum(axis=0), n - 1)
        found[f"{kind} t"] = stats.t.ppf(0.975, v) * error
    return found


def weighted(X, y, groups):
    """Estimates of the weighted regression, and half widths."""
    seen = ~np.isnan(y)
    Z = np.column_stack([np.ones(len(X)), X])
    scores, covariance, index, _ = probit(Z, seen)
    inverse = 1 / ndtr(index)
    w = np.where(seen, np.minimum(inverse, CLIP), 0.0)
    root = np.linalg.qr(Z * np.sqrt(w)[:, None], mode="r")
    back = np.linalg.inv(root)
    R = Z @ back
    coef = back @ (R.T @ (w * np.where(seen, y, 0.0)))
    residual = np.where(seen, y - Z @ coef, 0.0)
    ratio = np.exp(stats.norm._logpdf(index) - log_ndtr(index))
    change = np.where(inverse > CLIP, 0.0, w * ratio) * residual
    slope = -R.T @ (Z * change[:, None])
    own, other = R * (w * residual)[:, None], scores @ covariance @ slope.T
    return coef, intervals(own, other, R * np.sqrt(w)[:, None], back, groups)


def robust(X, y, groups, rng):
    """The doubly robust mean and projection on the first feature, and half widths."""
    n, seen = len(X), ~np.isnan(y)
    Z = np.column_stack([np.ones(n), X])
    fold = rng.permutation(n if groups is None else groups.max() + 1) % FOLDS
    fold = fold if groups is None else fold[groups]
    psi = np.zeros(n)
    for place in range(FOLDS):
        others, here = fold != place, fold == place
        fitted = np.linalg.lstsq(Z[others & seen], y[others & seen], rcond=None)[0]
        coef = probit(Z[others], seen[others])[3]
        w = np.minimum(1 / ndtr(np.clip(Z[here] @ coef, -30, 30)), CLIP)
        expected = Z[here] @ fitted
        psi[here] = expected + np.where(seen[here], w * (y[here] - expected), 0.0)
    estimates, widths = [], {name: [] for name in (*KINDS, *(f"{kind} t" for kind in KINDS))}
    for design, place in ((Z[:, :1], 0), (Z[:, :2], 1)):
        back = np.linalg.inv(np.linalg.qr(design, mode="r"))
        R = design @ back
        coef = back @ (R.T @ psi)
        own = R * (psi - design @ coef)[:, None]
        estimates.append(coef[place])
        for name, half in intervals(own, np.zeros_like(own), R, back, groups).items():
            widths[name].append(half[place])
    return np.array(estimates), {name: np.array(half) for name, half in widths.items()}


def measure(design, draws):
    """Return shares that hold and mean half widths of each candidate, (candidates, 4) each."""
    held, width = [], []
    for number, seed in enumerate(np.random.SeedSequence([SEED, SIZES[design]]).spawn(draws)):
        rng = np.random.default_rng([*seed.generate_state(2), number])
        X, y, groups, truth = draw(design, rng)
        means, of_means = robust(X, y, groups, rng)
        coef, of_coef = weighted(X, y, groups)
        gap = np.abs(np.concatenate([means, coef[:2]]) - truth)
        half = np.array([[*of_means[name], *of_coef[name][:2]] for name in CANDIDATES])
        held.append(gap <= half)
        width.append(half)
    share, width = np.mean(held, axis=0), np.mean(width, axis=0)
    return [
        pd.DataFrame(values, index=CANDIDATES, columns=QUANTITIES)
        for values in (share, width / width[0])
    ]


def test_the_formulas_are_those_of_the_package():
    """Those of the chosen candidate, in one draw of two designs."""
    for design in ("both right", "20 clusters"):
        X, y, groups, _ = draw(design, np.random.default_rng(1))
        options = {} if groups is None else {"cov_type": "cluster"}
        model = InverseProbabilityWeighted([0, 1, 2], **options).fit(X, y, groups=groups)
        table = model.tidy().iloc[:4]
        coef, half = weighted(X, y, groups)
        np.testing.assert_allclose(table["estimate"], coef, rtol=1e-6)
        np.testing.assert_allclose(table["ci_high"] - table["estimate"], half[CHOSEN], rtol=1e-5)
        robust_model = DoublyRobust([0], n_folds=FOLDS, random_state=0, **options)
        assert robust_model.fit(X, y, groups=groups).mean_ == pytest.approx(1.0, abs=1.0)


CHOSEN, MISSED = "hc3 t", 1.05


def test_shares_of_every_candidate():
    outside, shares, widths = pd.Series(0.0, CANDIDATES), {}, {}
    for design in SIZES:
        draws = 1000 if design == "many rows" else DRAWS
        shares[design], widths[design] = measure(design, draws)
        share = 100 * shares[design]
        beyond = (93.0 - share).clip(lower=0) + (share - 97.0).clip(lower=0)
        outside += beyond.sum(axis=1)
        print(f"\n{design}\n{share.round(1)}\n{widths[design].round(3)}", flush=True)
    print(f"\npoints outside\n{outside.round(2)}")
    passed = outside.index[outside == 0.0]
    assert passed[0] == CHOSEN
    for name, row in widths["many rows"].iterrows():
        for quantity, ratio in row.items():
            slack = MISSED if name.endswith(" t") and quantity.endswith("slope") else 1.02
            assert ratio < slack, (name, quantity)


@pytest.mark.parametrize("design", ["20 clusters", *list(SIZES)[5:]])
def test_the_package_holds_in_the_designs_that_break_others(design):
    held, refused = {DoublyRobust: [], InverseProbabilityWeighted: []}, Counter()
    for number, seed in enumerate(np.random.SeedSequence([SEED, 2]).spawn(1000)):
        X, y, groups, truth = draw(design, np.random.default_rng(seed))
        options = {} if groups is None else {"cov_type": "cluster"}
        models = (
            DoublyRobust([0], n_folds=FOLDS, random_state=number, **options),
            InverseProbabilityWeighted([0, 1, 2], **options),
        )
        for model, places, truths in zip(
            models, ([0, 2], [0, 1]), (truth[:2], truth[2:]), strict=True
        ):
            try:
                table = model.fit(X, y, groups=groups).tidy().iloc[places]
            except SeparationError:
                refused[type(model).__name__] += 1
                continue
            held[type(model)].append(table["ci_low"].le(truths) & table["ci_high"].ge(truths))
    share = np.concatenate([np.mean(each, axis=0) for each in held.values()])
    shares = ", ".join(f"{name} {one:.3f}" for name, one in zip(QUANTITIES, share, strict=True))
    print(f"\n{design}: {shares}; refused {dict(refused)}")
    assert not refused or design == "rare binary"
    assert ((share > 0.93) & (share < 0.97)).all()
