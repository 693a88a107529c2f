"""What heavy tails and unequal variances do to slopes, by two steps, normal ML and t ML.

Each of 1,000 draws, a number set before the results, has 1,000 rows. Errors are bivariate t with 4
degrees of freedom, or normal with a variance that changes with a feature in both equations;
standard errors are robust. `make study` prints the bias and the coverage of the slopes; with
HECKMANFA_WRITE_DOCS=1 in the environment they also go into docs/not_normal.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman

pytestmark = pytest.mark.study

SEED, DRAWS, ROWS = 20261118, int(os.environ.get("HECKMANFA_DRAWS", "1000")), 1000
RHO, SIGMA, DF = 0.5, 1.5, 4.0
BETA, GAMMA = np.array([0.5, 1.0]), np.array([0.6, 0.0, 1.0])
METHODS: dict[str, dict[str, Any]] = {
    "two-step": {},
    "normal ML": {"method": "ml"},
    "t ML": {"method": "ml", "errors": "t"},
}


def _draw(errors: str, rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.normal(size=(ROWS, 3))
    u, v = rng.normal(size=(2, ROWS))
    e = RHO * u + np.sqrt(1.0 - RHO**2) * v
    if errors == "t":
        scale = np.sqrt(rng.chisquare(DF, ROWS) / DF)
        u, e = u / scale, e / scale
    else:
        wider = np.exp(0.4 * X[:, 0])
        u, e = u * wider, e * wider
    seen = 0.3 + X @ GAMMA + u > 0
    return X, np.where(seen, 1.0 + X[:, :2] @ BETA + SIGMA * e, np.nan)


def measure(errors: str, draws: int = DRAWS) -> pd.DataFrame:
    """Return bias, root mean squared error and coverage of both slopes by each method."""
    found: dict[str, list[Any]] = {name: [] for name in METHODS}
    for seed in np.random.SeedSequence(SEED).spawn(draws):
        X, y = _draw(errors, np.random.default_rng(seed))
        for name, options in METHODS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = Heckman([0, 1], [0, 1, 2], cov_type="robust", **options)
                table = model.fit(X, y).tidy()
            own = table.query("equation == 'prediction'").iloc[1:]
            covers = (own["ci_low"] < BETA) & (own["ci_high"] > BETA)
            found[name].append([*(own["estimate"] - BETA), *covers])
    rows = []
    for name, values in found.items():
        error, covers = np.split(np.array(values, dtype=float), 2, axis=1)
        rows += [
            (
                name,
                slope,
                error[:, j].mean(),
                np.sqrt((error[:, j] ** 2).mean()),
                covers[:, j].mean(),
            )
            for j, slope in enumerate(("x0", "x1"))
        ]
    return pd.DataFrame(rows, columns=["method", "slope", "bias", "rmse", "coverage"])


def markdown(tables: dict[str, pd.DataFrame]) -> str:
    """One table, with both slopes of a method on a line."""
    titles = [f"{what}, {slope}" for slope in ("x0", "x1") for what in ("bias", "RMSE", "coverage")]
    lines = [
        f"| errors | method | {' | '.join(titles)} |",
        "| --- | --- " + "| ---: " * len(titles) + "|",
    ]
    for errors, table in tables.items():
        for method, rows in table.groupby("method", sort=False):
            cells = [
                f"{row['bias']:z.3f} | {row['rmse']:.3f} | {row['coverage']:.1%}"
                for _, row in rows.iterrows()
            ]
            lines.append(f"| {errors} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def tables(publish: Callable[..., None]) -> dict[str, pd.DataFrame]:
    found = {"t, ν = 4": measure("t"), "variance changes with x0": measure("unequal")}
    publish("not_normal.md", markdown(found), "heavy tails")
    return found


def test_t_errors_are_estimated_without_bias_and_covered(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["t, ν = 4"]
    of_t = table[table["method"] == "t ML"]
    assert (of_t["bias"].abs() < 0.03).all()
    assert of_t["coverage"].between(0.93, 0.97).all()
    rmse = table.set_index(["method", "slope"])["rmse"]
    assert (rmse["t ML"] < rmse["normal ML"]).all()
    assert (rmse["t ML"] < rmse["two-step"]).all()


def test_unequal_variances_bias_every_likelihood(tables: dict[str, pd.DataFrame]) -> None:
    rmse = tables["variance changes with x0"].set_index(["method", "slope"])["rmse"]
    assert rmse["t ML"]["x0"] > 0.05
