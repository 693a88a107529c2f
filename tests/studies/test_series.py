"""Slopes and their intervals where errors are not normal: a series beside two steps and ML.

Data sets are drawn from selection models whose outcome has normal, skewed, t, curved or unequally
spread errors. `make study` prints the table; with HECKMANFA_WRITE_DOCS=1 in the environment it also
goes into docs/not_normal.md. There are 1,000 draws of each design, a number set before the results,
and none is drawn again.
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
from scipy import stats

from heckmanfa import Heckman
from heckmanfa.errors import HeckmanfaError

pytestmark = pytest.mark.study

SEED, ROWS = 20261118, 2000
DRAWS = int(os.environ.get("HECKMANFA_DRAWS", "1000"))
RHO, SLOPE = 0.7, 1.0

Floats = NDArray[np.float64]
Errors = tuple[Floats, Floats]


def normal(rng: np.random.Generator, X: Floats) -> Errors:
    u, v = rng.normal(size=(2, len(X)))
    return u, RHO * u + np.sqrt(1.0 - RHO**2) * v


def skewed(rng: np.random.Generator, X: Floats) -> Errors:
    """A centred exponential, tied to selection by a common normal shock."""
    u, e = normal(rng, X)
    return u, -stats.norm.logsf(e) - 1.0


def heavy(rng: np.random.Generator, X: Floats) -> Errors:
    """Both errors are t with five degrees of freedom, and share their scale."""
    u, e = normal(rng, X)
    scale = np.sqrt(3.0 / rng.chisquare(5, size=len(X)))
    return u * scale, e * scale


def curved(rng: np.random.Generator, X: Floats) -> Errors:
    """The mean error given that of selection is a parabola."""
    u, v = rng.normal(size=(2, len(X)))
    return u, 0.5 * u + 0.5 * (u**2 - 1.0) + 0.5 * v


def unequal_noise(rng: np.random.Generator, X: Floats) -> Errors:
    """Noise that selection knows nothing of has a variance that rises with x1."""
    u, v = rng.normal(size=(2, len(X)))
    return u, RHO * u + np.exp(0.5 * X[:, 0]) * np.sqrt(1.0 - RHO**2) * v


def unequal(rng: np.random.Generator, X: Floats) -> Errors:
    """All of the error has a variance that rises with x1: no index model is right."""
    u, e = normal(rng, X)
    return u, np.exp(0.3 * X[:, 0]) * e


DESIGNS: dict[str, Callable[[np.random.Generator, Floats], Errors]] = {
    "normal": normal,
    "skewed (exponential)": skewed,
    "t(5), both errors": heavy,
    "curved in the selection error": curved,
    "unequal variance, noise": unequal_noise,
    "unequal variance, all of it": unequal,
}
METHODS: dict[str, dict[str, Any]] = {
    "two steps": {"cov_type": "robust"},
    "ML": {"method": "ml", "cov_type": "robust"},
    "series": {"method": "series"},
    "series of 3": {"method": "series", "n_terms": 3},
}


def one(design: str, seed: np.random.SeedSequence) -> list[dict[str, Any]]:
    """Fit every method to one draw: the slope of x1, its error, and the number of terms."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 3))
    u, e = DESIGNS[design](rng, X)
    y = np.where(-0.3 + 0.8 * X[:, 0] + X[:, 2] + u > 0, SLOPE * X[:, 0] - X[:, 1] + e, np.nan)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, options in METHODS.items():
            try:
                model = Heckman([0, 1], **options).fit(X, y)
            except HeckmanfaError:
                continue
            row = model.tidy().iloc[1]
            found.append(
                {
                    "design": design,
                    "method": name,
                    "estimate": row["estimate"],
                    "error": row["std_error"],
                    "terms": getattr(model, "n_terms_", np.nan),
                }
            )
    return found


@pytest.fixture(scope="module")
def figures() -> pd.DataFrame:
    """Return bias, spread and coverage, by design and method."""
    tasks = [
        joblib.delayed(one)(design, seed)
        for design in DESIGNS
        for seed in np.random.SeedSequence(SEED).spawn(DRAWS)
    ]
    jobs = int(os.environ.get("HECKMANFA_JOBS", "1"))
    drawn = pd.DataFrame([row for rows in joblib.Parallel(n_jobs=jobs)(tasks) for row in rows])
    gap = drawn["estimate"] - SLOPE
    drawn = drawn.assign(gap=gap, covered=np.abs(gap) < stats.norm.ppf(0.975) * drawn["error"])
    grouped = drawn.groupby(["design", "method"], sort=False)
    return pd.DataFrame(
        {
            "bias": grouped["gap"].mean(),
            "spread": grouped["estimate"].std(),
            "mean error": grouped["error"].mean(),
            "coverage": grouped["covered"].mean(),
            "terms": grouped["terms"].mean(),
            "draws": grouped.size(),
        }
    )


def test_slopes_of_a_series_are_right_where_those_of_normal_errors_are_not(
    figures: pd.DataFrame, publish: Callable[..., None]
) -> None:
    titles = ["bias", "spread", "mean error", "coverage", "terms"]
    lines = [
        f"| errors | method | {' | '.join(titles)} |",
        "| --- | --- |" + " ---: |" * len(titles),
    ]
    for (design, method), row in figures.iterrows():
        numbers = [f"{row[name]:.3f}" for name in titles[:3]]
        terms = "" if np.isnan(row["terms"]) else f"{row['terms']:.1f}"
        numbers += [f"{100.0 * row['coverage']:.0f}%", terms]
        lines.append(f"| {design} | {method} | {' | '.join(numbers)} |")
    publish("not_normal.md", "\n".join(lines), "series")
    # Three standard errors of a mean of draws, and of a share of 95%.
    for design in ("normal", "skewed (exponential)", "unequal variance, noise"):
        row = figures.loc[(design, "series of 3")]
        assert abs(row["bias"]) < 3.0 * row["spread"] / np.sqrt(row["draws"]), design
        assert row["coverage"] > 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / row["draws"]), design
    wrong = figures.loc[("curved in the selection error", "two steps")]
    right = figures.loc[("curved in the selection error", "series")]
    assert abs(right["bias"]) < 0.5 * abs(wrong["bias"])
    assert right["coverage"] > wrong["coverage"]
