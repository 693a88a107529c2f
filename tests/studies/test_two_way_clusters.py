"""How often intervals hold a true slope where rows are alike in two ways at once.

Each row is of one of G firms and of one of H years, every pair equally likely. Of the variance of
the feature, a quarter lies between firms and a quarter between years; of that of both errors, a
tenth and a tenth, except where a design says otherwise. Each draw has 1,200 rows, by two steps, and
95% intervals of the slope of the prediction equation with robust errors, errors clustered by
either, and by both.

What was expected before any sample was drawn:

- by both, with 25 clusters or more each way, 93 to 97%;
- by both, with 10 of one kind, below that, but nearer to 95% than any of the other three;
- robust errors below 85% wherever errors are alike, and one clustering below that by both;
- "neither": errors are independent, so all four hold 93 to 97% (two clusterings may fall short by
  two points, as a difference of covariances is noisier);
- "interaction", which should break nothing: the errors are alike within a firm's year alone, which
  both clusterings contain.

1,000 draws: the standard error of a share of 95% is 0.7 points. A share passes if it is within
three of these of what was expected. `make study` prints the table of docs/surveys.md.

What was found: that, but for one expectation (`MISSED`). With 50 clusters each way, robust errors
hold 88%, not less than 85%: the more firms and years there are, the less rows share. With 25 each
way, two clusterings hold 91.1%. That is within three standard errors of 93%, and so passes the
rule, but it is not what was hoped for: t(G - 1) falls short with 20 clusters of one kind, too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman

pytestmark = pytest.mark.study

SEED, DRAWS, ROWS, SLOPE = 20261120, 1000, 1200, 1.0
SIZES = ((10, 10), (10, 50), (25, 25), (50, 50))
DESIGNS = ("both", "neither", "interaction")
KINDS = ("robust", "by firm", "by year", "by both")
# Where the expectation was wrong, and the share that was found.
MISSED = {("both", 50, 50): 0.881}


def draw(sizes: tuple[int, int], design: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Features, outcome, and the firm and year of each row."""
    firm, year = (rng.integers(0, size, ROWS) for size in sizes)
    cell = firm * sizes[1] + year
    codes, numbers = (firm, year), sizes
    if design == "interaction":
        codes, numbers = (cell, cell), (sizes[0] * sizes[1],) * 2

    def alike(share: float) -> Any:
        """Normal numbers of variance one, a share of it in each clustering."""
        own = np.sqrt(1 - 2 * share) * rng.normal(size=ROWS)
        parts = [
            np.sqrt(share) * rng.normal(size=number)[code]
            for code, number in zip(codes, numbers, strict=True)
        ]
        return own + sum(parts)

    of_errors = 0.0 if design == "neither" else 0.1
    tested, u, e = alike(0.25), alike(of_errors), alike(of_errors)
    excluded = rng.normal(size=ROWS)
    seen = 0.4 + 0.5 * tested + excluded + u > 0
    y = np.where(seen, 1.0 + SLOPE * tested + 0.5 * u + np.sqrt(0.75) * e, np.nan)
    return np.column_stack([tested, excluded]), y, np.column_stack([firm, year])


def holds(rows: tuple[Any, Any, Any]) -> dict[str, bool]:
    """Whether each interval holds the slope."""
    X, y, groups = rows
    asked = dict(zip(KINDS, (None, groups[:, 0], groups[:, 1], groups), strict=True))
    held = {}
    for kind, by in asked.items():
        cov_type = "robust" if by is None else "cluster"
        row = Heckman([0], cov_type=cov_type).fit(X, y, groups=by).tidy().loc[1]
        held[kind] = row["ci_low"] <= SLOPE <= row["ci_high"]
    return held


def measure(sizes: tuple[int, int], design: str, draws: int = DRAWS) -> pd.Series:
    """Return the share of draws in which each interval holds the slope."""
    seeds = np.random.SeedSequence([SEED, *sizes, DESIGNS.index(design)]).spawn(draws)
    found = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(holds(draw(sizes, design, np.random.default_rng(seed))))
    return pd.DataFrame(found).mean().rename((design, *sizes))


@pytest.mark.filterwarnings("ignore")
def test_two_clusterings_hold_where_one_does_not():
    table = pd.DataFrame([measure(sizes, design) for design in DESIGNS for sizes in SIZES])
    print("\n" + table.round(3).to_string())
    slack = 3 * np.sqrt(0.95 * 0.05 / DRAWS)
    for (design, *sizes), row in table.iterrows():
        both, others = row["by both"], row.drop("by both")
        many = min(sizes) >= 25
        if design == "neither":
            assert (others > 0.93 - slack).all(), (design, sizes)
            assert both > 0.91 - slack, (design, sizes)
        elif many:
            assert 0.93 - slack < both < 0.97 + slack, (design, sizes)
        if design == "both":
            expected = MISSED.get((design, *sizes), 0.85)
            assert row["robust"] < expected + slack, sizes
            assert (others < both).all(), sizes
