"""Intervals and tests of the Heckman probit beyond its coefficients: how often they are right.

Many data sets are drawn from one truth. Counted are 95% intervals of probabilities and of average
marginal effects, likelihood-ratio intervals of rho, the intervals at the true rho of
`uncertainty_interval`, and rejections at 5% by the tests of what the model assumes.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import HeckmanProbit
from heckmanfa.inference.probabilities import predict_probability
from heckmanfa.model.bivariate_normal import log_bivariate_cdf

pytestmark = pytest.mark.study

N_ROWS, N_DRAWS, RHO = 1000, 120, 0.5
BETA, GAMMA = np.array([-0.2, 0.7, -0.4]), np.array([0.3, 0.4, -0.3, 0.8])
POINT = np.array([[0.5, -0.5, 0.3]])


def _draw(seed: int) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "z"])
    w, e = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], N_ROWS).T
    chosen = GAMMA[0] + X.to_numpy() @ GAMMA[1:] + w > 0
    y = pd.Series((BETA[0] + X[["a", "b"]].to_numpy() @ BETA[1:] + e > 0).astype(float))
    return X, y.where(chosen)


def _truths() -> dict[str, float]:
    mean = float(BETA[0] + POINT[0, :2] @ BETA[1:])
    index = float(GAMMA[0] + POINT[0] @ GAMMA[1:])
    both = float(np.exp(log_bivariate_cdf(mean, index, RHO)))
    inside = float(stats.norm.cdf(index))
    whole = float(stats.norm.cdf(mean))
    return {
        "marginal": whole,
        "selected": both / inside,
        "unselected": (whole - both) / (1.0 - inside),
        "joint": both,
    }


def test_intervals_cover_and_tests_reject_as_often_as_they_say():
    truths, hits = _truths(), []
    for seed in range(N_DRAWS):
        X, y = _draw(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HeckmanProbit(["a", "b"], ["a", "b", "z"]).fit(X, y)
        row = {}
        for kind, truth in truths.items():
            point = pd.DataFrame(POINT, columns=X.columns)
            _, ends = predict_probability(model.fit_, point, kind, "error", "confidence")
            row[kind] = ends[0, 0] <= truth <= ends[0, 1]
        index = BETA[0] + X[["a", "b"]].to_numpy() @ BETA[1:]
        slope = BETA[1] * float(np.mean(stats.norm.pdf(index)))
        effect = model.margins(X, "marginal", features=["a"]).tidy().iloc[0]
        row["effect"] = effect["ci_low"] <= slope <= effect["ci_high"]
        low, high = model.profile_rho(X, y, grid=9).interval()
        row["rho"] = low <= RHO <= high
        path = model.uncertainty_interval(X, y, (RHO, RHO)).path().set_index("term")
        row["at rho"] = path.loc["a", "ci_low"] <= BETA[1] <= path.loc["a", "ci_high"]
        for test in model.specification_tests(X, y):
            row[test.name] = test.p_value < 0.05
        hits.append(row)
    shares = pd.DataFrame(hits).mean()
    print(shares.round(3).to_string())
    covered = shares[[*truths, "effect", "rho", "at rho"]]
    assert covered.between(0.91, 0.98).all()
    # 120 draws of a share of 5% have a standard error of 2%.
    assert shares.drop(covered.index).between(0.01, 0.09).all()
