"""Coverage and width of intervals in a single draw: part 2 of docs/averaging_study.md."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.averaging_designs import DESIGNS, REPLICATES, SEED, Draw, draw, new_rows
from benchmarks.averaging_methods import averages, chosen
from heckmanfa import compress
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.mixture import Mixture, mix_assignments
from heckmanfa.model.moments import Moments
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import ScoreMoments, gather_score_moments

LEVELS = np.array([0.025, 0.975])
NEW_ROWS = 20
ROBUST = CovarianceKind("robust", False, 0)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Tally = dict[str, list[float]]
"""for each kind of target: intervals that cover, intervals, and the sum of their widths"""


class _Targets:
    """What intervals are to cover in a draw: coefficients, errors' parameters, predictions."""

    def __init__(self, data: Draw, name: str, number: int) -> None:
        self.columns = data.candidates
        kind_of = {
            column: kind
            for unit, kind in zip(data.units, data.kinds, strict=True)
            for column in unit
        }
        X = new_rows(name, number, NEW_ROWS)
        k = len(self.columns)
        self.functions = np.zeros((k + NEW_ROWS, k + 2))
        self.functions[:k, 1:-1] = np.eye(k)
        self.functions[k:, 0] = 1.0
        self.functions[k:, 1:-1] = X[:, self.columns]
        self.kinds = [kind_of[column] for column in self.columns] + ["predicted"] * NEW_ROWS
        self.truth = np.concatenate([data.coef[self.columns], data.intercept + X @ data.coef])
        self.normal = DESIGNS[name].errors == "normal"
        if self.normal:
            self.kinds += ["imr", "rho", "sigma"]
            self.truth = np.append(self.truth, [data.rho * data.sigma, data.rho, data.sigma])

    def of(self, mixture: Mixture) -> tuple[Floats, Floats]:
        """Values and standard errors of the targets for each assignment, (N, q) both."""
        values, errors = mixture.linear(self.functions)
        if self.normal:
            own = mixture.errors
            values = np.column_stack([values, mixture.imr_coef, mixture.rho, mixture.sigma])
            errors = np.column_stack([errors, own.coef[:, -1], own.rho, own.sigma])
        return values, errors

    def alone(self, moments: Moments, scores: ScoreMoments, mask: Mask) -> tuple[Floats, Floats]:
        """Ends of the intervals of a single assignment."""
        mixture = mix_assignments(moments, scores, mask[None], np.ones(1))
        values, errors = (part[0] for part in self.of(mixture))
        reach = stats.norm.ppf(LEVELS[1]) * errors
        return values - reach, values + reach

    def tally(self, low: Floats, high: Floats) -> Tally:
        """Count the intervals that cover, by kind of target; a NaN is no interval."""
        counts: Tally = {}
        for kind, truth, left, right in zip(self.kinds, self.truth, low, high, strict=False):
            if np.isnan(left):
                continue
            one = counts.setdefault(kind, [0, 0, 0.0])
            one[0] += int(left <= truth <= right)
            one[1] += 1
            one[2] += float(right - left)
        return counts


def coverage(name: str, number: int) -> dict[str, Any]:
    """Intervals of averages, of the chosen assignment, and of all and of the true features."""
    data = draw(name, number)
    compressed = compress(data.X, data.y)
    moments, K = compressed.moments, data.X.shape[1]
    targets = _Targets(data, name, number)
    scores = gather_score_moments(moments, data.candidates, compressed.rows, CLASSICAL)
    found = averages(data, compressed, name, number, ("aic", "bic", "ebic", "mean"))
    tallies: dict[str, Tally] = {}
    answer: dict[str, Any] = {"tallies": tallies, "components": {}}
    for kind, one in found.items():
        mixture = mix_assignments(moments, scores, one.component_masks, one.component_weights)
        values, errors = targets.of(mixture)
        ends = mixture_quantiles(mixture.weights, values, errors, LEVELS)
        tallies[f"{kind} mixture"] = targets.tally(ends[:, 0], ends[:, 1])
        answer["components"][kind] = len(one.component_weights)
        if kind == "aic":
            mean = mixture.weights @ values
            spread = np.sqrt(mixture.weights @ (errors**2 + (values - mean) ** 2))
            reach = stats.norm.ppf(LEVELS[1]) * spread
            tallies["aic mean and sd"] = targets.tally(mean - reach, mean + reach)
    alone = {
        "chosen": chosen(data, compressed, found["bic"]),
        "all features": np.isin(np.arange(K), data.candidates),
        "true features": data.coef != 0,
    }
    for words, mask in alone.items():
        low, high = targets.alone(moments, scores, mask)
        tallies[words] = targets.tally(low, high)
        if words == "chosen":
            only = np.where(low < high, low, np.nan)
            tallies["chosen, if chosen"] = targets.tally(only, high)
    if not targets.normal:
        robust = gather_score_moments(moments, data.candidates, compressed.rows, ROBUST)
        one = found["aic"]
        mixture = mix_assignments(moments, robust, one.component_masks, one.component_weights)
        ends = mixture_quantiles(mixture.weights, *targets.of(mixture), LEVELS)
        tallies["aic mixture, robust"] = targets.tally(ends[:, 0], ends[:, 1])
        ends = targets.alone(moments, robust, alone["all features"])
        tallies["all features, robust"] = targets.tally(*ends)
    return answer


def bootstrapped(name: str, number: int) -> dict[str, Any]:
    """Percentile intervals of a bootstrap that searches by BIC in every replicate."""
    data = draw(name, number)
    targets = _Targets(data, name, number)
    K = data.X.shape[1]
    masks = ((np.arange(2**K)[:, None] >> np.arange(K)) & 1).astype(bool)
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), number, 3])
    values, failed = [], 0
    for _ in range(REPLICATES):
        rows = rng.integers(len(data.y), size=len(data.y))
        try:
            moments = compress(data.X[rows], data.y[rows]).moments
        except Exception:
            failed += 1
            continue
        solved = moments.solve(masks)
        best = int(np.nanargmin(solved.bic))
        coef = np.array([solved.intercept[best], *solved.coef[best], 0.0])
        values.append(targets.functions @ coef)
    ends = np.quantile(np.array(values), LEVELS, axis=0)
    return {"tallies": {"bootstrap": targets.tally(ends[0], ends[1])}, "failed": failed}
