"""How often tests reject a true slope at 5% with 6, 12 and 20 clusters.

Clusters have 30 rows each, or 10 to 50 ("unequal"). Half of the variance of the feature that is
tested, and a fifth of that of both errors, lies between clusters. The hypothesis is the true slope
of the prediction equation. Pairs of clusters are drawn for the first draws only, as each needs its
own fits; they reject if the slope is outside of the 95% percentile interval. `make study` prints
the table of docs/surveys.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import Heckman
from heckmanfa.errors import HeckmanfaError

pytestmark = pytest.mark.study

SEED, DRAWS, PAIRS, N_BOOT, SLOPE = 20261119, 1000, 40, 99, 1.0
CLUSTERS, DESIGNS, METHODS = (6, 12, 20), ("equal", "unequal"), ("two-step", "ml")


def draw(n_clusters: int, design: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Features, outcome and cluster of each row."""
    sizes = [30] * n_clusters
    if design == "unequal":
        sizes = np.linspace(10, 50, n_clusters).round().astype(int).tolist()
    cluster = np.repeat(np.arange(n_clusters), sizes)
    n = len(cluster)
    tested, excluded = rng.normal(size=(2, n))
    tested = np.sqrt(0.5) * (tested + rng.normal(size=n_clusters)[cluster])
    shared = np.sqrt(0.2) * rng.normal(size=(2, n_clusters))[:, cluster]
    own = np.sqrt(0.8) * rng.normal(size=(2, n))
    u, e = shared + own
    v = 0.5 * u + np.sqrt(0.75) * e
    seen = 0.4 + 0.5 * tested + excluded + u > 0
    y = np.where(seen, 1.0 + SLOPE * tested + v, np.nan)
    return np.column_stack([tested, excluded]), y, cluster


def rejections(
    rows: tuple[Any, Any, Any], method: str, rng: np.random.Generator, *, pairs: bool
) -> dict[str, float]:
    """Whether each test rejects the true slope at 5%; NaN for tests that are not run."""
    X, y, groups = rows
    robust = Heckman([0], method=method, cov_type="robust").fit(X, y)
    cluster = Heckman([0], method=method, cov_type="cluster").fit(X, y, groups=groups)
    slope, spread = (
        robust.tidy().loc[1, "estimate"],
        [model.tidy().loc[1, "std_error"] for model in (robust, cluster)],
    )
    t = [abs(slope - SLOPE) / error for error in spread]
    seed = int(rng.integers(2**31))
    row = np.eye(len(robust.vcov()))[[1]]
    given = {"X": X, "y": y, "groups": groups, "value": [SLOPE], "random_state": seed}
    found = {
        "robust": t[0] > stats.norm.ppf(0.975),
        "cluster, normal": t[1] > stats.norm.ppf(0.975),
        "cluster, t(G - 1)": t[1] > stats.t.ppf(0.975, len(np.unique(groups)) - 1),
        "wild, signs": robust.wild_test(row, **given).p_value <= 0.05,
        "wild, Webb": robust.wild_test(row, **given, weights="webb").p_value <= 0.05,
        "pairs": np.nan,
    }
    if pairs:
        table = robust.bootstrap(X, y, n_boot=N_BOOT, unit=groups, random_state=seed).tidy()
        low, high = table.loc[1, ["percentile_low", "percentile_high"]]
        found["pairs"] = not low < SLOPE < high
    return found


def measure(
    n_clusters: int, design: str, method: str, draws: int = DRAWS, pairs: int = PAIRS
) -> pd.Series:
    """Return the share of draws in which each test rejects, and the number that were fitted."""
    found = []
    for number, seed in enumerate(np.random.SeedSequence([SEED, n_clusters]).spawn(draws)):
        rng = np.random.default_rng(seed)
        rows = draw(n_clusters, design, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(rejections(rows, method, rng, pairs=number < pairs))
            except HeckmanfaError:
                continue
    return pd.DataFrame(found).mean().rename((design, method, n_clusters))


@pytest.mark.filterwarnings("ignore")
def test_the_wild_test_holds_its_size_where_robust_errors_do_not():
    tables = [
        measure(n_clusters, design, method, draws=300, pairs=0)
        for design in DESIGNS
        for method in METHODS
        for n_clusters in CLUSTERS
    ]
    table = pd.DataFrame(tables)
    print("\n" + table.round(3).to_string())
    # Three binomial standard errors of 5% in 300 draws are 3.8 points.
    assert (table["robust"] > 0.09).all()
    assert (table["wild, signs"] < 0.09).all()
