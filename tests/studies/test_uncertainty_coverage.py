"""At the true rho, uncertainty intervals cover the truth as often as they say, few rows selected.

Many data sets are drawn with 15% of the rows selected. At the true rho the interval of every
coefficient is counted, with our standard errors and with those of Genback, Stanghellini and de
Luna (2015). `make study` prints the table; with HECKMANFA_WRITE_DOCS=1 in the environment it also
goes into docs/coverage.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from heckmanfa import Heckman
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning

pytestmark = pytest.mark.study

SEED = 20261116
ROWS, RHOS, DRAWS, DRAWS_A_TASK = (500, 2000), (0.3, 0.6, 0.9), 1000, 50
FEATURES, PREDICTING, SELECTED = 6, 3, 0.15
BOUNDS = (0.925, 0.975)

Floats = NDArray[np.float64]


def make_counter() -> Callable[[int, float, list[int]], Floats]:
    """Make the function that fits a few draws; see test_coverage.py."""

    def count(rows: int, rho: float, seeds: list[int]) -> Floats:
        """(draws, 2, terms): whether an interval covers, with our errors and the published."""
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found, at = [], np.array([rho])
        for seed in seeds:
            data = make_selection(
                rows, FEATURES, PREDICTING, rho=rho, selection_rate=SELECTED, random_state=seed
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HeckmanfaWarning)
                model = Heckman(np.flatnonzero(data.support)).fit(data.X, data.y)
            curve = model.uncertainty_interval((rho, rho)).curve
            mean = model.fit_.moments.mean_delta
            theirs = np.zeros_like(curve.variance)
            theirs[:, 0], theirs[:, 2] = 1.0, curve.shrinkage - mean
            off = np.abs(curve.estimate(at)[0] - np.append(data.intercept, data.coef[data.support]))
            found.append([
                off <= 1.959964 * one.std_error(at)[0]
                for one in (curve, replace(curve, variance=theirs))
            ])  # fmt: skip
        return np.array(found, dtype=float)

    return count


def markdown(figures: pd.DataFrame) -> str:
    lines = [
        f"{DRAWS:,} draws; {FEATURES} features, all of which select and {PREDICTING} predict; "
        f"{SELECTED:.0%} of the rows selected; seed {SEED}. By chance alone a coverage of 95% "
        "comes out with a standard error of 0.7%, that of the slopes, which are pooled, with less.",
        "",
        "| rows | rho | intercept | slopes | intercept, published s.e. | slopes, published s.e. |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (rows, rho), part in figures.iterrows():
        cells = [f"{one:.1%}" for one in part]
        lines.append("| " + " | ".join([f"{rows:,}", f"{rho:g}", *cells]) + " |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def figures(publish: Callable[..., None]) -> pd.DataFrame:
    """Coverage by number of rows and rho."""
    count = joblib.delayed(make_counter())
    table = {}
    for place, (rows, rho) in enumerate((rows, rho) for rows in ROWS for rho in RHOS):
        first = SEED + place * DRAWS
        tasks = [
            count(rows, rho, list(range(start, start + DRAWS_A_TASK)))
            for start in range(first, first + DRAWS, DRAWS_A_TASK)
        ]
        ours, theirs = np.concatenate(joblib.Parallel(n_jobs=-1)(tasks)).mean(axis=0)
        table[rows, rho] = ours[0], ours[1:].mean(), theirs[0], theirs[1:].mean()
    columns = ["intercept", "slopes", "their_intercept", "their_slopes"]
    frame = pd.DataFrame.from_dict(table, orient="index", columns=columns)
    frame.index = pd.MultiIndex.from_tuples(frame.index, names=["rows", "rho"])
    publish("coverage.md", markdown(frame), "uncertainty intervals")
    return frame


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("terms", ["intercept", "slopes"])
def test_intervals_at_the_true_rho_cover(
    figures: pd.DataFrame, rows: int, rho: float, terms: str
) -> None:
    assert BOUNDS[0] <= figures.loc[(rows, rho), terms] <= BOUNDS[1]


def test_the_published_errors_are_too_small_with_few_rows_selected(figures: pd.DataFrame) -> None:
    worst = figures.xs(0.9, level="rho")
    assert (worst["their_intercept"] < 0.85).all()
    assert (worst["their_slopes"] < 0.92).all()
