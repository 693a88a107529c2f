"""Guards of maximum likelihood seldom reject right models, and often wrong ones.

Many data sets are drawn from selection models that are right, and from some in which only maximum
likelihood is wrong: the outcome's error is still proportional to the selection error plus noise,
which is all that two-step needs. `make study` prints the tables; with HECKMANFA_WRITE_DOCS=1 in the
environment they also go into docs/guards_study.md.
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
from heckmanfa.results.fit_tests import equal_variance_test, hausman_test

pytestmark = pytest.mark.study

SEED = 20261116
ROWS, DRAWS, PROFILE_DRAWS, DRAWS_A_TASK = (500, 2000), 300, 200, 20
LEVEL = 0.05
# Three standard errors of a share of 5%.
MOST = LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / DRAWS)

Floats = NDArray[np.float64]


class Design(NamedTuple):
    words: str
    settings: dict[str, Any]
    """what differs from the base design"""


RIGHT = {
    "base": Design("base design", {}),
    "rho=0": Design("rho = 0", {"rho": 0.0}),
    "rho=0.9": Design("rho = 0.9", {"rho": 0.9}),
    "few": Design("10% selected", {"share": 0.1}),
    "weak": Design("weak exclusions", {"strength": 0.1}),
    "many": Design("12 features predict", {"predicting": 12}),
}
WRONG = {
    "unequal": Design("unequal variances", {"spread": 0.3}),
    "very unequal": Design("very unequal variances", {"spread": 0.6}),
    "unequal few": Design("very unequal variances, 10% selected", {"spread": 0.6, "share": 0.1}),
    "skewed": Design("skewed noise", {"noise": "skewed"}),
    "heavy": Design("heavy-tailed noise", {"noise": "heavy"}),
}
DESIGNS = RIGHT | WRONG
COLUMNS = ["hausman", "variance", "ml", "ml_imr", "two_step", "two_step_imr"]
TITLES = {
    "hausman": "two-step against ML",
    "variance": "equal variance",
    "ml": "ML, slopes",
    "ml_imr": "ML, beta_H",
    "two_step": "two-step, slopes",
    "two_step_imr": "two-step, beta_H",
}


def make_tester() -> Callable[..., Floats]:
    """Make the function that draws and tests a few data sets.

    Worker processes cannot import a test module; a function made inside another one is sent to
    them as a whole.
    """

    def draw(
        rng: Any,
        n: int,
        rho: float = 0.5,
        share: float = 0.5,
        strength: float = 0.5,
        spread: float = 0.0,
        noise: str = "normal",
        predicting: int = 3,
    ) -> tuple[Floats, Floats, Floats]:
        columns = predicting + 2
        X = np.sqrt(0.7) * rng.normal(size=(n, columns))
        X += np.sqrt(0.3) * rng.normal(size=(n, 1))
        gamma = np.zeros(columns)
        gamma[:3], gamma[-2:] = (0.4, -0.4, 0.4), (strength, -strength)
        v, h = rng.normal(size=(2, n))
        if noise == "skewed":
            h = (stats.chi2.ppf(stats.norm.cdf(h), 3) - 3) / np.sqrt(6)
        if noise == "heavy":
            h = stats.t.ppf(stats.norm.cdf(h), 5) / np.sqrt(5 / 3)
        h = h * np.exp(spread * X[:, 0] - spread**2)
        beta = np.resize([1.0, -0.7, 0.5], predicting)
        y = 1 + X[:, :predicting] @ beta + rho * v + np.sqrt(1 - rho**2) * h
        # Features have variance 1 and correlation 0.3.
        variance = gamma @ (0.7 * np.eye(columns) + 0.3) @ gamma
        index = stats.norm.ppf(share) * np.sqrt(1 + variance) + X @ gamma
        return X, np.where(index + v > 0, y, np.nan), np.array([*beta, rho])

    def covered(model: Heckman, truth: Floats) -> tuple[float, float]:
        table = model.tidy()
        table = table[(table["equation"] == "prediction") | (table["term"] == "imr")]
        held = (table["ci_low"] <= np.array([1.0, *truth])) & (
            np.array([1.0, *truth]) <= table["ci_high"]
        )
        return float(held[1:-1].mean()), float(held.iloc[-1])

    def test_draws(
        n: int, settings: dict[str, Any], seeds: list[list[int]], profile: bool
    ) -> Floats:
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        warnings.simplefilter("ignore")
        found = []
        for seed in seeds:
            X, y, truth = draw(np.random.default_rng(seed), n, **settings)
            use = range(len(truth) - 1)
            try:
                model = Heckman(use, method="ml").fit(X, y)
                if not model.converged_:
                    raise FloatingPointError
                if profile:
                    low, high = model.profile(X, y, 0, grid=2).interval()
                    row = model.tidy().iloc[1]
                    first, last = row["ci_low"], row["ci_high"]
                    held = [first <= truth[0] <= last, low <= truth[0] <= high]
                    found.append([*held, last - first, high - low])
                    continue
                robust = Heckman(use, cov_type="robust").fit(X, y)
                tests = [test(model.fit_).p_value for test in (hausman_test, equal_variance_test)]
                found.append([*tests, *covered(model, truth), *covered(robust, truth)])
            except (FloatingPointError, ValueError, np.linalg.LinAlgError):
                found.append([np.nan] * (4 if profile else 6))
        return np.array(found, dtype=float)

    return test_draws


def study(designs: dict[str, Design], draws: int, *, profile: bool) -> dict[Any, Floats]:
    """Results of all draws, by design and number of rows."""
    test_draws = joblib.delayed(make_tester())
    tasks = [
        ((name, n), [[SEED, place, n, draw] for draw in range(start, start + DRAWS_A_TASK)])
        for place, name in enumerate(designs)
        for n in ROWS
        for start in range(0, draws, DRAWS_A_TASK)
    ]
    parts = joblib.Parallel(n_jobs=-1)(
        test_draws(n, designs[name].settings, seeds, profile) for (name, n), seeds in tasks
    )
    keys = list(dict.fromkeys(key for key, _ in tasks))
    return {
        key: np.concatenate([part for (of, _), part in zip(tasks, parts, strict=True) if of == key])
        for key in keys
    }


def summarise(results: dict[Any, Floats]) -> pd.DataFrame:
    """Shares of draws: rejected, and covered."""
    rows = []
    for (name, n), found in results.items():
        done = found[~np.isnan(found[:, 0])]
        shares = [*np.nanmean(done[:, :2] < LEVEL, axis=0), *done[:, 2:].mean(axis=0)]
        rows.append((name, n, *shares, len(done)))
    return pd.DataFrame(rows, columns=["design", "rows", *COLUMNS, "computed"])


def table(figures: pd.DataFrame, names: dict[str, Design], columns: list[str]) -> list[str]:
    lines = [
        "| design | rows | " + " | ".join(TITLES[column] for column in columns) + " |",
        "| --- | ---: " + "| ---: " * len(columns) + "|",
    ]
    for row in figures[figures["design"].isin(names)].to_dict("records"):
        cells = [f"{row[column]:.1%}" for column in columns]
        words = names[row["design"]].words
        lines.append(f"| {words} | {row['rows']:,} | " + " | ".join(cells) + " |")
    return lines


def markdown(figures: pd.DataFrame, profiles: dict[Any, Floats]) -> str:
    missing = int((DRAWS - figures["computed"]).sum())
    lines = [
        "## Right models",
        "",
        f"Share of {DRAWS} draws in which a right model is rejected at {LEVEL:.0%}; seed {SEED}. "
        f"By chance alone it comes out with a standard error of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / DRAWS):.1%}. Draws of all designs in which maximum "
        f"likelihood did not converge, and which are left out: {missing}.",
        "",
        *table(figures, RIGHT, COLUMNS[:2]),
        "",
        "## Models that are wrong for maximum likelihood",
        "",
        f"Share of {DRAWS} draws in which they are rejected at {LEVEL:.0%}.",
        "",
        *table(figures, WRONG, COLUMNS[:2]),
        "",
        "## Coverage",
        "",
        "How often nominal 95% intervals contain the truth, the slopes taken together: maximum "
        "likelihood with classical standard errors, and two-step with robust ones.",
        "",
        *table(figures, DESIGNS, COLUMNS[2:]),
        "",
        "## Profile intervals",
        "",
        f"Coverage and mean width of nominal 95% intervals of one slope after maximum likelihood, "
        f"in {PROFILE_DRAWS} draws.",
        "",
        "| design | rows | standard errors | profile | width | width of the profile |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (name, n), found in profiles.items():
        wald, profile, width, wide = np.nanmean(found, axis=0)
        words = RIGHT[name].words
        lines.append(f"| {words} | {n:,} | {wald:.1%} | {profile:.1%} | {width:.2f} | {wide:.2f} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def figures(publish: Callable[[str, str], None]) -> tuple[pd.DataFrame, dict[Any, Floats]]:
    found = summarise(study(DESIGNS, DRAWS, profile=False))
    held = {name: RIGHT[name] for name in ("base", "weak")}
    profiles = study(held, PROFILE_DRAWS, profile=True)
    publish("guards_study.md", markdown(found, profiles))
    return found, profiles


@pytest.mark.parametrize("design", RIGHT)
@pytest.mark.parametrize("test", ["hausman", "variance"])
def test_right_models_are_rejected_no_more_often_than_said(
    figures: tuple[pd.DataFrame, Any], design: str, test: str
) -> None:
    part = figures[0][figures[0]["design"] == design]
    assert (part[test] <= MOST).all(), part.to_string(index=False)
    assert (part["computed"] > 0.95 * DRAWS).all()


@pytest.mark.parametrize(
    ("design", "test", "rows", "least"),
    [
        ("unequal", "variance", 2000, 0.9),
        ("very unequal", "variance", 500, 0.9),
        ("very unequal", "hausman", 2000, 0.7),
        ("skewed", "hausman", 2000, 0.9),
    ],
)
def test_wrong_models_are_seen(
    figures: tuple[pd.DataFrame, Any], design: str, test: str, rows: int, least: float
) -> None:
    part = figures[0].set_index(["design", "rows"])
    assert part.loc[(design, rows), test] >= least


def test_two_step_holds_where_maximum_likelihood_does_not(
    figures: tuple[pd.DataFrame, Any],
) -> None:
    part = figures[0].set_index(["design", "rows"]).loc[("very unequal", 2000)]
    assert part["ml_imr"] < 0.5
    assert part["two_step_imr"] > 0.9
    assert part["two_step"] > 0.9


def test_a_profile_covers_better_with_weak_exclusions(
    figures: tuple[Any, dict[Any, Floats]],
) -> None:
    for n in ROWS:
        wald, profile = np.nanmean(figures[1][("weak", n)][:, :2], axis=0)
        assert profile >= wald
        assert profile > 0.88
