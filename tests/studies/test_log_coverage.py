"""Intervals of means and new outcomes on a log outcome's own scale cover as often as they say.

Many data sets are drawn from one truth, each is fitted by both methods, and 95% intervals are
counted at the same thirty rows. `make study` prints the table; with HECKMANFA_WRITE_DOCS=1 in the
environment it also goes into docs/log_outcomes.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr

from heckmanfa import Heckman

pytestmark = pytest.mark.study

SEED = 20261116
DRAWS, ROWS, AT = 600, 1000, 30
BETA, GAMMA = np.array([0.5, 0.6, -0.4]), np.array([0.3, 0.7, 0.3, 0.8])
RHO, SIGMA = 0.5, 0.7
MODELS: dict[str, dict[str, Any]] = {
    "two-step": {},
    "two-step, robust": {"cov_type": "robust"},
    "maximum likelihood": {"method": "ml"},
}
KINDS = ("marginal", "selected", "unselected", "expected")
BOUNDS = (0.93, 0.97)
DRAWS_A_TASK = 20

Floats = NDArray[np.float64]


def design(X: Floats, k: int) -> Floats:
    return np.column_stack([np.ones(len(X)), X[:, :k]])


def truth(X: Floats, kind: str) -> Floats:
    """Return the mean of each row by the formulas of the documents."""
    v, u = design(X, 2) @ BETA, design(X, 3) @ GAMMA
    level = v + SIGMA**2 / 2
    return np.exp(
        {
            "marginal": level,
            "selected": level + log_ndtr(u + RHO * SIGMA) - log_ndtr(u),
            "unselected": level + log_ndtr(-u - RHO * SIGMA) - log_ndtr(-u),
            "expected": level + log_ndtr(u + RHO * SIGMA),
        }[kind]
    )


def draw(rng: np.random.Generator, X: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Draw the outcome of every row, and who is selected."""
    errors = [[1.0, RHO * SIGMA], [RHO * SIGMA, SIGMA**2]]
    u, e = rng.multivariate_normal([0.0, 0.0], errors, size=len(X)).T
    return np.exp(design(X, 2) @ BETA + e), design(X, 3) @ GAMMA + u > 0


def counter() -> Callable[[int], list[tuple[str, str, str, float]]]:
    """Make the function that fits a few draws, which is sent to workers as a whole."""

    def count(task: int) -> list[tuple[str, str, str, float]]:
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        at = np.random.default_rng(SEED).normal(size=(AT, 3))
        rng = np.random.default_rng([SEED, task])
        found = []
        for _ in range(DRAWS_A_TASK):
            X = rng.normal(size=(ROWS, 3))
            wage, seen = draw(rng, X)
            new, chosen = draw(rng, np.repeat(at, 20, axis=0))
            rows = {"marginal": chosen | ~chosen, "selected": chosen, "unselected": ~chosen}
            for name, options in MODELS.items():
                model = Heckman([0, 1], outcome_transform="log", **options)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X, np.where(seen, wage, np.nan))
                for kind in KINDS:
                    low, high = model.predict(at, kind, "confidence")[1].T
                    known = truth(at, kind)
                    inside = np.mean((low <= known) & (known <= high))
                    found.append((name, kind, "confidence", float(inside)))
                    if kind == "expected":
                        continue
                    low, high = np.repeat(model.predict(at, kind, "prediction")[1], 20, axis=0).T
                    within = ((low <= new) & (new <= high))[rows[kind]]
                    found.append((name, kind, "prediction", float(np.mean(within))))
                ratio, error = model.transform_ratio_
                found.append((name, "ratio", "confidence", float(abs(ratio - 1) < 1.96 * error)))
        return found

    return count


def test_intervals_on_the_own_scale_cover_as_often_as_they_say(publish):
    tasks = range(DRAWS // DRAWS_A_TASK)
    parts = joblib.Parallel(n_jobs=-1)(joblib.delayed(counter())(task) for task in tasks)
    columns = ["model", "kind", "interval", "covered"]
    found = pd.DataFrame([row for part in parts for row in part], columns=columns)
    shape = {"index": columns[1:3], "columns": "model", "values": "covered", "sort": False}
    table = found.pivot_table(**shape)
    lines = [
        "| interval | of | " + " | ".join(table.columns) + " |",
        "| --- | --- |" + " ---: |" * 3,
    ]
    for interval in ("confidence", "prediction"):
        for kind in (*KINDS, "ratio"):
            if (kind, interval) in table.index:
                shares = [f"{100 * share:.1f}%" for share in table.loc[(kind, interval)]]
                lines.append(f"| {interval} | {kind} | {' | '.join(shares)} |")
    publish("log_outcomes.md", "\n".join(lines) + "\n")
    means = table.drop("ratio", level="kind")
    assert means.min().min() > BOUNDS[0]
    assert means.max().max() < BOUNDS[1]
    assert table.xs("ratio", level="kind").min().min() > 0.9
