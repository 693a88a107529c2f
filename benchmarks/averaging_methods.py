"""What docs/averaging_study.md computes in a single draw of a design, part by part.

Each function takes a design's name and the number of a draw, and returns figures that JSON can
hold. None of them depends on what was computed before, so draws may be split over machines.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.averaging_designs import SEED, Draw, draw
from heckmanfa import HeckmanBestSubset, compress
from heckmanfa.model.compressed import Compressed
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.likelihood import fit_likelihood
from heckmanfa.model.two_step import fit_two_step
from heckmanfa.search import Goal, best_subset
from heckmanfa.search.averaging import Average, average
from heckmanfa.search.averaging.averages import MOST_UNITS
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.gibbs import sample_assignments
from heckmanfa.search.averaging.result import put_together
from heckmanfa.search.averaging.sampled import sampled_estimates, sampled_kept
from heckmanfa.search.averaging.weights import Rule
from heckmanfa.search.choices import Choices

KINDS = ("aic", "bic", "ebic")
REFITTED, REFIT_DRAWS, REFIT_COLUMNS = 20, 100, 15
# Beyond this, the best assignment is the best of those that a sampler visited.
PROVEN = 40

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def sampler_seed(name: str, number: int) -> list[int]:
    """Return the seed of whatever is random in the methods of a draw."""
    return [SEED, zlib.crc32(name.encode()), number, 1]


def choices_of(data: Draw) -> Choices:
    """Let every unit that may predict be in or out."""
    return Choices(data.X.shape[1], (), data.units, len(data.candidates))


def averages(
    data: Draw, compressed: Compressed, name: str, number: int, kinds: Sequence[str] = KINDS
) -> dict[str, Average]:
    """Average over all assignments with each kind of weight."""
    moments, choices = compressed.moments, choices_of(data)
    seed = sampler_seed(name, number)
    if len(choices.units) <= MOST_UNITS:
        return {
            kind: average(moments, choices, weights=kind, random_state=np.random.default_rng(seed))
            for kind in kinds
        }
    # The chains of all kinds run side by side, so one sample serves every average.
    columns = Columns.of(moments, choices)
    rules = {kind: Rule.of(moments, choices, kind) for kind in kinds}
    sample = sample_assignments(columns, rules[kinds[0]], np.random.default_rng(seed))
    return {
        kind: put_together(
            moments,
            columns,
            rule,
            sampled_estimates(sample, columns, rule),
            sampled_kept(sample, columns, rule),
        )
        for kind, rule in rules.items()
    }


def chosen(data: Draw, compressed: Compressed, found: Average) -> Mask:
    """Return the best assignment by the criterion of an average's weights."""
    criterion, columns = found.weights, data.X.shape[1]
    if criterion == "bic" and not found.exhaustive and columns <= PROVEN:
        names = [f"x{column}" for column in range(columns)]
        goal = Goal.of(compressed.moments, criterion)
        return best_subset(
            compressed.moments, choices_of(data), goal, names=names, tolerance=0.0
        ).best
    return found.leading_masks[0]


def _least_squares(data: Draw, compressed: Compressed) -> float:
    found = fit_least_squares(compressed.moments, data.candidates)
    coef = np.zeros(data.X.shape[1])
    coef[data.candidates] = found.coef[1:]
    return data.excess(float(found.coef[0]), coef)


def likelihood(compressed: Compressed, features: Sequence[int]) -> tuple[float, Floats, bool]:
    """Fit by maximum likelihood; return intercept, coefficients (K,) and whether it converged."""
    moments, probit = compressed.moments, compressed.probit
    two_step = fit_two_step(moments, probit, features, CLASSICAL)
    found = fit_likelihood(moments, probit, two_step, CLASSICAL, compressed.rows)
    coef = np.zeros(moments.n_features)
    coef[list(two_step.features)] = found.coef[1:]
    return float(found.coef[0]), coef, bool(found.converged)


def excess(name: str, number: int) -> dict[str, Any]:
    """Excess error of every method, and the share of weight that holds each feature."""
    data = draw(name, number)
    compressed = compress(data.X, data.y)
    moments, K = compressed.moments, data.X.shape[1]

    def two_step(mask: Mask) -> float:
        solved = moments.solve(mask)
        return data.excess(float(solved.intercept), solved.coef)

    everything = np.isin(np.arange(K), data.candidates)
    found = averages(data, compressed, name, number)
    best = {kind: chosen(data, compressed, found[kind]) for kind in ("bic", "ebic")}
    intercept, coef, converged = likelihood(compressed, data.candidates)
    both = [found["aic"], found["bic"]]
    errors = {
        "true features": two_step(data.coef != 0),
        "all, two-step": two_step(everything),
        "all, ML": data.excess(intercept, coef),
        "least squares": _least_squares(data, compressed),
        **{f"{kind} weights": data.excess(one.intercept, one.coef) for kind, one in found.items()},
        # The mean of two sets of weights gives the mean of the two averages.
        "mean weights": data.excess(
            float(np.mean([one.intercept for one in both])),
            np.mean([one.coef for one in both], axis=0),
        ),
        **{f"chosen {kind}": two_step(mask) for kind, mask in best.items()},
    }
    firsts = [unit[0] for unit in data.units]
    answer: dict[str, Any] = {
        "errors": errors,
        "m": moments.n_selected,
        "converged": converged,
        "exhaustive": found["aic"].exhaustive,
        "disagreement": {kind: one.disagreement for kind, one in found.items()},
        "outside": {kind: float(one.outside) for kind, one in found.items()},
        "kinds": list(data.kinds),
        "shares": {
            kind: [round(float(found["bic"].shares[kind][first]), 5) for first in firsts]
            for kind in KINDS
        },
    }
    if number < REFIT_DRAWS and K <= REFIT_COLUMNS:
        answer["refitted"] = _refitted(data, compressed, found["aic"])
    return answer


def _refitted(data: Draw, compressed: Compressed, found: Average) -> dict[str, float]:
    """Refit the heaviest assignments of an average by maximum likelihood."""
    masks = found.leading_masks[:REFITTED]
    weight = np.asarray(found.leading_weight[:REFITTED])
    refits = [likelihood(compressed, np.flatnonzero(mask).tolist())[:2] for mask in masks]
    share = weight / weight.sum()
    intercept = float(share @ [one[0] for one in refits])
    coef = share @ np.array([one[1] for one in refits])
    return {"error": data.excess(intercept, coef), "weight": float(weight.sum())}


def recovery(name: str, number: int) -> dict[str, Any]:
    """Whether BIC and EBIC find exactly the features that predict."""
    return {criterion: _found(name, number, criterion) for criterion in ("bic", "ebic")}


def corrected(name: str, number: int) -> dict[str, Any]:
    """Whether corrected BIC does."""
    return {"corrected_bic": _found(name, number, "corrected_bic")}


def _found(name: str, number: int, criterion: str) -> dict[str, Any]:
    data = draw(name, number)
    truth = data.coef != 0
    model = HeckmanBestSubset(criterion=criterion).fit(data.X, data.y)
    return {
        "exact": bool((model.support_ == truth).all()),
        "missed": int((truth & ~model.support_).sum()),
        "added": int((model.support_ & ~truth).sum()),
        "optimal": bool(model.optimal_),
        "error": data.excess(float(model.intercept_), model.coef_),
    }


def columns(name: str, number: int) -> dict[str, Any]:
    """Excess errors where columns are many: weights with and without the small-sample term."""
    data = draw(name, number)
    compressed = compress(data.X, data.y)
    moments, K, m = compressed.moments, data.X.shape[1], compressed.moments.n_selected
    masks = ((np.arange(2**K)[:, None] >> np.arange(K)) & 1).astype(bool)
    solved = moments.solve(masks)
    J = np.asarray(solved.n_features)
    fit = np.where(solved.feasible, m * np.log(solved.sse / m), np.inf)
    small = 2.0 * (J + 2) * m / (m - J - 3)
    from_units = np.array([_log_binomial(K, j) for j in range(K + 1)])
    bic = fit + (J + 2) * np.log(m)
    limit = np.where(m / 3 >= J, 0.0, np.inf)
    scores = {
        "small-sample AIC, J up to m/3": fit + small + limit,
        "small-sample AIC": fit + small,
        "AIC, J up to m/3": fit + 2.0 * (J + 2) + limit,
        "AIC": fit + 2.0 * (J + 2),
        "BIC, J up to m/3": bic + limit,
        "EBIC, J up to m/3": bic + 2.0 * from_units[J] + limit,
    }
    coef, start = np.nan_to_num(solved.coef), np.nan_to_num(solved.intercept)
    errors = {}
    for words, score in scores.items():
        weight = np.exp(-0.5 * (score - score.min()))
        weight /= weight.sum()
        errors[f"{words} weights"] = data.excess(float(weight @ start), weight @ coef)
    best = int(np.argmin(bic))
    errors["chosen by BIC"] = data.excess(float(start[best]), coef[best])
    errors["all, two-step"] = data.excess(float(start[-1]), coef[-1])
    errors["least squares"] = _least_squares(data, compressed)
    return {"errors": errors, "m": m}


def _log_binomial(units: int, taken: int) -> float:
    return float(
        np.sum(np.log(np.arange(units - taken + 1, units + 1)))
        - sum(np.log(np.arange(1, taken + 1)))
    )
