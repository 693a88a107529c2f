"""Exclusion tests reject right exclusions as often as they say by two-step, and not by ML.

Many data sets are drawn in which no excluded feature predicts. Two of three are tested while the
third stays out; it drives selection strongly or weakly, and the outcome's error is normal or
skewed. `make study` prints the table; with HECKMANFA_WRITE_DOCS=1 in the environment it also goes
into docs/specification_study.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from heckmanfa import Heckman
from heckmanfa.errors import HeckmanfaWarning

pytestmark = pytest.mark.study

SEED = 20261116
ROWS, DRAWS, DRAWS_A_TASK = (500, 2000), 500, 25
LEVEL = 0.05
METHODS = {
    "two-step": ("two-step", None),
    "two-step, robust": ("two-step", "robust"),
    "ml": ("ml", None),
}
# Four standard errors above 5%, by chance alone; with weak instruments it may be far below.
HIGHEST = 0.09

Floats = NDArray[np.float64]


class Design(NamedTuple):
    words: str
    settings: dict[str, Any]
    right: bool = True


DESIGNS = {
    "normal": Design("normal errors", {}),
    "weak": Design("normal, what stays out is weak", {"kept": 0.1}),
    "skewed": Design("outcome's error skewed", {"skewed": True}),
    "skewed, weak": Design(
        "outcome's error skewed, what stays out is weak", {"skewed": True, "kept": 0.1}
    ),
    "wrong": Design("wrong: one of those tested predicts", {"wrong": 0.2}, right=False),
    "wrong, weak": Design(
        "wrong, and what stays out is weak", {"wrong": 0.2, "kept": 0.1}, right=False
    ),
}


def make_tester() -> Callable[..., Floats]:
    """Make the function that draws and tests a few data sets; see test_sizes.py."""
    methods = list(METHODS.values())

    def draw(
        rng: Any, rows: int, kept: float = 0.5, skewed: bool = False, wrong: float = 0.0
    ) -> tuple[Floats, Floats]:
        X = np.sqrt(0.7) * rng.normal(size=(rows, 6)) + np.sqrt(0.3) * rng.normal(size=(rows, 1))
        v, h = rng.normal(size=(2, rows))
        e = 0.5 * v + np.sqrt(0.75) * h
        if skewed:
            e = (stats.chi2.ppf(stats.norm.cdf(e), 3) - 3) / np.sqrt(6)
        index = X @ [0.4, -0.4, 0.4, 0.5, -0.5, kept]
        y = 1 + X[:, :4] @ [1.0, -0.7, 0.5, wrong] + e
        return X, np.where(index + v > 0, y, np.nan)

    def test_draws(rows: int, settings: dict[str, Any], seeds: list[list[int]]) -> Floats:
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found = []
        for seed in seeds:
            X, y = draw(np.random.default_rng(seed), rows, **settings)
            p_values = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HeckmanfaWarning)
                for method, cov_type in methods:
                    model = Heckman(range(3), cov_type=cov_type).fit(X, y)
                    test = model.exclusion_test(X, y, [3, 4], method=method)
                    p_values.append(test.tidy()["p_value"].iloc[0])
            found.append(p_values)
        return np.array(found)

    return test_draws


def markdown(figures: pd.DataFrame) -> str:
    names = {"two-step": "two-step", "two-step, robust": "two-step, robust", "ml": "ML"}
    columns = [(rows, method) for rows in ROWS for method in METHODS]
    failed = ", ".join(
        f"{int((DRAWS - figures.xs(method, level='method')['computed']).sum())} by {names[method]}"
        for method in METHODS
    )
    lines = [
        f"Share of {DRAWS:,} draws in which the tested exclusions are rejected at {LEVEL:.0%}; "
        f"seed {SEED}. By chance alone 5% comes out with a standard error of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / DRAWS):.1%}. Tests that could not be computed, and are "
        f"left out: {failed}.",
        "",
        "| design | " + " | ".join(f"{names[one]}, {rows:,} rows" for rows, one in columns) + " |",
        "| --- " + "| ---: " * len(columns) + "|",
    ]
    for name, design in DESIGNS.items():
        cells = [f"{figures.loc[(name, *column), 'rejected']:.1%}" for column in columns]
        lines.append("| " + " | ".join([design.words, *cells]) + " |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def figures(publish: Callable[..., None]) -> pd.DataFrame:
    """Share of draws that each test rejects, by design, number of rows and method."""
    test_draws = joblib.delayed(make_tester())
    tasks = [
        (name, rows, [[SEED, place, rows, one] for one in range(start, start + DRAWS_A_TASK)])
        for place, name in enumerate(DESIGNS)
        for rows in ROWS
        for start in range(0, DRAWS, DRAWS_A_TASK)
    ]
    parts = joblib.Parallel(n_jobs=-1)(
        test_draws(rows, DESIGNS[name].settings, seeds) for name, rows, seeds in tasks
    )
    found = []
    for name in DESIGNS:
        for rows in ROWS:
            mine = [
                part for task, part in zip(tasks, parts, strict=True) if task[:2] == (name, rows)
            ]
            for method, p_values in zip(METHODS, np.concatenate(mine).T, strict=True):
                done = p_values[~np.isnan(p_values)]
                found.append((name, rows, method, np.mean(done < LEVEL), len(done)))
    table = pd.DataFrame(found, columns=["design", "rows", "method", "rejected", "computed"])
    table = table.set_index(["design", "rows", "method"])
    publish("specification_study.md", markdown(table), "exclusion tests")
    return table


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("design", [name for name, one in DESIGNS.items() if one.right])
def test_right_exclusions_are_rejected_no_more_often_than_said(
    figures: pd.DataFrame, design: str, rows: int
) -> None:
    for method in ("two-step", "two-step, robust"):
        found = figures.loc[(design, rows, method)]
        assert found["rejected"] <= HIGHEST
        assert found["computed"] > 0.99 * DRAWS


def test_maximum_likelihood_rejects_too_often_as_its_documentation_says(
    figures: pd.DataFrame,
) -> None:
    assert figures.loc[("weak", 500, "ml"), "rejected"] > 0.1
    assert figures.loc[("skewed", 500, "ml"), "rejected"] > 0.5
    assert figures.loc[("skewed", 2000, "ml"), "rejected"] > 0.8


def test_a_wrong_exclusion_is_seen(figures: pd.DataFrame) -> None:
    assert figures.loc[("wrong", 2000, "two-step"), "rejected"] > 0.5
