"""Specification tests reject a right model as often as they say, and wrong ones more often.

Many data sets are drawn from selection models that are right, and from some that are wrong in one
way each; every test is made on each, at 5%. `make study` prints the tables; with
HECKMANFA_WRITE_DOCS=1 in the environment they also go into docs/specification_study.md.
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

SEED = 20250702
ROWS, SIZE_DRAWS, POWER_DRAWS, DRAWS_A_TASK = 2000, 2000, 200, 25
LEVEL, BOUNDS = 0.05, (0.035, 0.065)
TESTS = {
    "normality_selection": "normality, selection",
    "heteroskedasticity_selection": "equal variance, selection",
    "normality_prediction": "normality, prediction",
    "correction_form": "form of the correction",
    "reset": "RESET",
}

Floats = NDArray[np.float64]


class Design(NamedTuple):
    words: str
    settings: dict[str, Any]
    """what differs from the base design"""


RIGHT = {
    "base": Design("base design", {}),
    "rho=0": Design("rho = 0", {"rho": 0.0}),
    "few": Design(
        "rho = −0.8, 30% selected, dummies and a skewed feature",
        {"rho": -0.8, "intercept": -0.9, "mixed": True},
    ),
}
WRONG = {
    "outcome skewed": Design("outcome's error skewed", {"outcome": "skewed"}),
    "outcome heavy": Design("outcome's error heavy-tailed", {"outcome": "heavy"}),
    "selection skewed": Design("selection error skewed", {"selection": "skewed"}),
    "selection heavy": Design("selection error heavy-tailed", {"selection": "heavy"}),
    "both skewed": Design("both skewed", {"selection": "skewed", "outcome": "skewed"}),
    "both heavy": Design("both heavy-tailed", {"selection": "heavy", "outcome": "heavy"}),
    "rotated": Design("both skewed, by rotation", {"rotated": True}),
    "curved": Design("outcome's error on a curve of the selection error", {"curve": 0.5}),
    "unequal": Design("unequal variances in selection", {"unequal": 0.2}),
    "square": Design("a square left out", {"square": 0.15}),
}


def make_tester() -> Callable[..., Floats]:
    """Make the function that draws and tests a few data sets.

    Worker processes cannot import a test module; a function made inside another one is sent to
    them as a whole.
    """
    names = list(TESTS)

    def skewed(p: Floats) -> Floats:
        return (stats.chi2.ppf(p, 3) - 3) / np.sqrt(6)

    def heavy(p: Floats) -> Floats:
        return stats.t.ppf(p, 5) / np.sqrt(5 / 3)

    laws = {"normal": stats.norm.ppf, "skewed": skewed, "heavy": heavy}

    def errors(rng: Any, rho: float, selection: str, outcome: str, rotated: bool) -> Any:
        if rotated:
            v, h = skewed(rng.random((2, ROWS)))
            return v, rho * v + np.sqrt(1 - rho**2) * h
        v, h = rng.normal(size=(2, ROWS))
        e = rho * v + np.sqrt(1 - rho**2) * h
        return laws[selection](stats.norm.cdf(v)), laws[outcome](stats.norm.cdf(e))

    def draw(
        rng: Any,
        rho: float = 0.5,
        intercept: float = 0.0,
        mixed: bool = False,
        selection: str = "normal",
        outcome: str = "normal",
        rotated: bool = False,
        curve: float = 0.0,
        unequal: float = 0.0,
        square: float = 0.0,
    ) -> tuple[Floats, Floats]:
        common = rng.normal(size=(ROWS, 1))
        X = np.sqrt(0.7) * rng.normal(size=(ROWS, 6)) + np.sqrt(0.3) * common
        if mixed:
            X[:, 0], X[:, 3] = X[:, 0] > 0.5, X[:, 3] > 0
            X[:, 1] = np.exp(0.5 * X[:, 1]) - 1
        v, e = errors(rng, rho, selection, outcome, rotated)
        e = (e + curve * (v**2 - 1)) / np.sqrt(1 + 2 * curve**2)
        index = intercept + X @ [0.4, -0.4, 0.4, 0.5, -0.5, 0.5]
        chosen = index + np.exp(unequal * X[:, 3]) * v > 0
        y = 1 + X[:, :3] @ [1.0, -0.7, 0.5] + square * X[:, 0] ** 2 + e
        return X, np.where(chosen, y, np.nan)

    def test_draws(settings: dict[str, Any], seeds: list[list[int]]) -> Floats:
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found = []
        for seed in seeds:
            X, y = draw(np.random.default_rng(seed), **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HeckmanfaWarning)
                tests = Heckman(range(3)).fit(X, y).specification_tests(X, y)
            found.append([tests[name].p_value for name in names])
        return np.array(found)

    return test_draws


def study(designs: dict[str, Design], draws: int, seed: int) -> pd.DataFrame:
    """Share of draws that each test rejects; one row for each design and test."""
    test_draws = joblib.delayed(make_tester())
    tasks = [
        (name, [[SEED, seed, place, draw] for draw in range(start, start + DRAWS_A_TASK)])
        for place, name in enumerate(designs)
        for start in range(0, draws, DRAWS_A_TASK)
    ]
    parts = joblib.Parallel(n_jobs=-1)(
        test_draws(designs[name].settings, seeds) for name, seeds in tasks
    )
    rows = []
    for design in designs:
        of_design = [part for (name, _), part in zip(tasks, parts, strict=True) if name == design]
        p_values = np.concatenate(of_design)
        for test, one in zip(TESTS, p_values.T, strict=True):
            done = one[~np.isnan(one)]
            rows.append((design, test, np.mean(done < LEVEL), np.mean(done < 0.01), len(done)))
    return pd.DataFrame(rows, columns=["design", "test", "rejected", "at_1", "computed"])


def table(figures: pd.DataFrame, designs: dict[str, Design]) -> list[str]:
    lines = [
        "| design | " + " | ".join(TESTS.values()) + " |",
        "| --- " + "| ---: " * len(TESTS) + "|",
    ]
    for design, part in figures.groupby("design", sort=False):
        cells = [f"{one:.1%}" for one in part["rejected"]]
        lines.append("| " + " | ".join([designs[str(design)].words, *cells]) + " |")
    return lines


def markdown(sizes: pd.DataFrame, powers: pd.DataFrame) -> str:
    largest = sizes.loc[sizes["at_1"].idxmax(), "test"]
    left_out = (SIZE_DRAWS - sizes["computed"]).sum(), (POWER_DRAWS - powers["computed"]).sum()
    lines = [
        "## Right models",
        "",
        f"Share of {SIZE_DRAWS:,} draws of {ROWS:,} rows in which a right model is rejected at "
        f"{LEVEL:.0%}; seed {SEED}. By chance alone it comes out with a standard error of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / SIZE_DRAWS):.1%}. At 1%, the shares are "
        f"{sizes['at_1'].min():.1%} to {sizes['at_1'].max():.1%}, the largest that of "
        f"*{TESTS[largest]}*. Tests that could not be computed: {left_out[0]}.",
        "",
        *table(sizes, RIGHT),
        "",
        "## Wrong models",
        "",
        f"Share of {POWER_DRAWS:,} draws of {ROWS:,} rows in which a wrong model is rejected at "
        f"{LEVEL:.0%}; its standard error is {0.5 / np.sqrt(POWER_DRAWS):.1%} at most. Tests that "
        f"could not be computed, and are left out: {left_out[1]}.",
        "",
        *table(powers, WRONG),
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def figures(publish: Callable[[str, str], None]) -> tuple[pd.DataFrame, pd.DataFrame]:
    sizes, powers = study(RIGHT, SIZE_DRAWS, 0), study(WRONG, POWER_DRAWS, 1)
    publish("specification_study.md", markdown(sizes, powers))
    return sizes, powers


@pytest.mark.parametrize("design", RIGHT)
def test_right_models_are_rejected_as_often_as_said(
    figures: tuple[pd.DataFrame, pd.DataFrame], design: str
) -> None:
    sizes = figures[0]
    part = sizes[sizes["design"] == design]
    outside = part[~part["rejected"].between(*BOUNDS)]
    assert outside.empty, outside.to_string(index=False)
    assert (part["computed"] > 0.99 * SIZE_DRAWS).all()


@pytest.mark.parametrize(
    ("design", "test", "least"),
    [
        ("outcome skewed", "normality_prediction", 0.9),
        ("outcome heavy", "normality_prediction", 0.9),
        ("selection skewed", "normality_selection", 0.9),
        ("both skewed", "normality_selection", 0.9),
        ("both heavy", "normality_prediction", 0.9),
        ("rotated", "normality_prediction", 0.9),
        ("unequal", "heteroskedasticity_selection", 0.8),
        ("square", "reset", 0.8),
    ],
)
def test_wrong_models_are_seen(
    figures: tuple[pd.DataFrame, pd.DataFrame], design: str, test: str, least: float
) -> None:
    powers = figures[1].set_index(["design", "test"])
    assert powers.loc[(design, test), "rejected"] >= least


@pytest.mark.parametrize("design", ["outcome skewed", "outcome heavy", "curved", "square"])
@pytest.mark.parametrize("test", ["normality_selection", "heteroskedasticity_selection"])
def test_selection_is_not_blamed_for_the_outcome(
    figures: tuple[pd.DataFrame, pd.DataFrame], design: str, test: str
) -> None:
    powers = figures[1].set_index(["design", "test"])
    # Four standard errors, by chance alone.
    most = LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / POWER_DRAWS)
    assert powers.loc[(design, test), "rejected"] <= most
