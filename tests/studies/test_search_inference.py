"""What intervals after a search for the prediction features are worth.

Many data sets are drawn from one truth in which some coefficients are of about the size that BIC
just detects. Each is searched by BIC, and three kinds of interval are set against the truth: those
that ignore the search, those of a bootstrap that repeats it, and honest ones. `make study` prints
the tables; with HECKMANFA_WRITE_DOCS=1 in the environment they also go into
docs/search_inference.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from heckmanfa import Heckman, HeckmanBestSubset, compress
from heckmanfa.errors import HeckmanfaWarning

pytestmark = pytest.mark.study

SEED = 20250702
DRAWS, REPLICATES, SPLITS = 200, 200, 30
# Rows of the sample that stands for the population.
MANY = 1_000_000
RHO = 0.5
# Prediction coefficients at 500 rows; with more rows the weak ones are smaller.
COEF = (1.0, 0.15, 0.0, 0.15, 0.0, 0.1, 0.0, 0.0)
KINDS = ("strong", "weak", "zero", "weak", "zero", "weak", "zero", "zero")
LEVEL, BOUNDS = 0.95, (0.93, 0.97)
DRAWS_A_TASK = 5

Floats = NDArray[np.float64]


class Design(NamedTuple):
    n: int
    correlation: float
    """of neighbours; that of features further apart is a power of it"""

    @property
    def words(self) -> str:
        return f"{self.n:,} rows, correlation {self.correlation:g}"


DESIGNS = [Design(n, correlation) for n, correlation in product((500, 2000), (0.5, 0.8))]

# Interval, features that it is of, target.
TRUE, MODEL = "true", "chosen model"
ROWS = [
    ("ignoring", "chosen", TRUE),
    ("ignoring", "chosen", MODEL),
    ("percentile", "chosen", TRUE),
    ("basic", "chosen", TRUE),
    ("given chosen", "chosen", TRUE),
    ("percentile", "all", TRUE),
    ("basic", "all", TRUE),
    ("honest", "chosen", MODEL),
    ("honest", "chosen", TRUE),
    ("all features", "all", TRUE),
]
WORDS = {
    "ignoring": "ignoring the search",
    "percentile": "bootstrap, percentile",
    "basic": "bootstrap, basic",
    "given chosen": "bootstrap, where chosen",
    "honest": "honest",
    "all features": "no search, all features",
}


def simulator() -> Callable[..., tuple[Floats, Floats, Floats]]:
    """Make the function that draws a data set.

    Worker processes cannot import a test module; a function made inside another one is sent to
    them as a whole.
    """

    def simulate(
        n: int, correlation: float, rows: int, source: np.random.Generator
    ) -> tuple[Floats, Floats, Floats]:
        """Draw features and outcome; the coefficients are those of a design with n rows."""
        coef = np.where(np.array(COEF) == 1, 1.0, np.array(COEF) * np.sqrt(500 / n))
        places = np.arange(len(COEF))
        covariance = correlation ** np.abs(np.subtract.outer(places, places))
        selecting = np.where(places % 2, -1.0, 1.0)
        selecting /= np.sqrt(selecting @ covariance @ selecting)
        X = source.standard_normal((rows, len(COEF))) @ np.linalg.cholesky(covariance).T
        u, other = source.standard_normal((2, rows))
        # Selects 56%: the index has variance 2.
        selected = 0.2 + X @ selecting + u > 0
        y = 1 + X @ coef + RHO * u + np.sqrt(1 - RHO**2) * other
        return X, np.where(selected, y, np.nan), coef

    return simulate


def targets(number: int, design: Design) -> Floats:
    """(2^K, K) coefficients of every assignment in the population, in binary order."""
    X, y, _ = simulator()(*design, MANY, np.random.default_rng([SEED, number]))
    K = len(COEF)
    masks = (np.arange(2**K)[:, None] >> np.arange(K)) % 2 == 1
    found = np.full((2**K, K), np.nan)
    found[1:] = compress(X, y).moments.solve(masks[1:]).coef
    return found


def fitter() -> Callable[..., tuple[list[tuple[Any, ...]], Floats, Floats]]:
    """Make the function that fits a few draws of a design by every procedure."""
    simulate = simulator()

    def reported(model: Heckman) -> list[tuple[int, float, float]]:
        """Feature and both ends of the interval of each coefficient that a model reports."""
        table = model.tidy(LEVEL).set_index(["equation", "term"])[["ci_low", "ci_high"]]
        return [
            (int(one), *table.loc[("prediction", f"x{one}")]) for one in np.flatnonzero(model.coef_)
        ]

    def fit_draws(
        number: int, n: int, correlation: float, population: Floats, draws: range
    ) -> tuple[list[tuple[Any, ...]], Floats, Floats]:
        """Intervals; (draws, 4, K) shares of fits that chose a feature; (draws, 2) failures.

        An interval: draw, procedure, feature, whether it was chosen, low, high, the true
        coefficient, that in the chosen model.
        """
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        bits = 2 ** np.arange(len(COEF))
        intervals, shares, failures = [], [], []
        for draw in draws:
            X, y, coef = simulate(n, correlation, n, np.random.default_rng([SEED, number, draw]))
            sources = [np.random.default_rng([SEED, number, draw, one]) for one in (1, 2)]
            with warnings.catch_warnings(action="ignore", category=HeckmanfaWarning):
                plain = HeckmanBestSubset().fit(X, y)
                booted = plain.bootstrap(X, y, REPLICATES, random_state=sources[0])
                honest = HeckmanBestSubset(
                    honest=True, n_splits=SPLITS, random_state=sources[1]
                ).fit(X, y)
                everything = Heckman().fit(X, y)
            chosen = plain.support_
            # What every split estimates in the population, and what the chosen model does.
            splits = honest.honest_.support
            per_split = np.where(splits, population[splits @ bits], np.nan)
            model_coef = population[int(chosen @ bits)]
            for one, low, high in reported(plain):
                ends = low, high, coef[one], model_coef[one]
                intervals.append((draw, "ignoring", one, True, *ends))
            for one, low, high in reported(honest):
                ends = low, high, coef[one], np.nanmedian(per_split[:, one])
                intervals.append((draw, "honest", one, True, *ends))
            for one, low, high in reported(everything):
                ends = low, high, coef[one], np.nan
                intervals.append((draw, "all features", one, chosen[one], *ends))
            table = booted.tidy(LEVEL).set_index(["equation", "term"])
            for name, start in (
                ("percentile", "percentile"),
                ("basic", "basic"),
                ("given chosen", "chosen"),
            ):
                for one in range(len(COEF)):
                    low, high = table.loc[
                        ("prediction", f"x{one}"), [f"{start}_low", f"{start}_high"]
                    ]
                    ends = low, high, coef[one], model_coef[one]
                    intervals.append((draw, name, one, chosen[one], *ends))
            resampled = booted.replicates.support.mean(axis=0)
            shares.append([chosen, resampled, splits.mean(axis=0), honest.support_])
            failures.append([booted.n_failed, sum(honest.honest_.failures.values())])
        return intervals, np.array(shares, dtype=float), np.array(failures, dtype=float)

    return fit_draws


class Figures(NamedTuple):
    coverage: pd.DataFrame
    """a row for each of ROWS and each kind of coefficient ("all" is every kind)"""
    shares: Floats
    """(4, K) of draws, replicates, splits and honest models, those that hold a feature"""
    missed: Floats
    """coverage of percentile and basic intervals of weak features that were not chosen, number"""
    failures: Floats
    """shares of replicates and of splits that failed"""


def count(part: pd.DataFrame, target: str) -> dict[str, float]:
    """Coverage, its standard error, the number of intervals and their median width."""
    aim = part["true" if target == TRUE else "model"]
    covered = (part["low"] <= aim) & (aim <= part["high"])
    share = covered.mean()
    # Intervals of one draw are not independent; draws are.
    off = (covered - share).groupby(part["draw"]).sum()
    return {
        "coverage": share,
        "error": np.sqrt(np.sum(off**2)) / max(len(part), 1),
        "number": len(part),
        "width": (part["high"] - part["low"]).median(),
    }


def simulate_design(number: int, design: Design) -> Figures:
    population = targets(number, design)
    task = joblib.delayed(fitter())
    parts = joblib.Parallel(n_jobs=2)(
        task(number, *design, population, range(start, min(start + DRAWS_A_TASK, DRAWS)))
        for start in range(0, DRAWS, DRAWS_A_TASK)
    )
    columns = ["draw", "interval", "feature", "chosen", "low", "high", "true", "model"]
    found = pd.DataFrame([row for part in parts for row in part[0]], columns=columns)
    found["kind"] = np.array(KINDS)[found["feature"]]
    rows = []
    for name, features, target in ROWS:
        part = found[found["interval"] == name]
        if features == "chosen":
            part = part[part["chosen"]]
        for kind in ("all", *dict.fromkeys(KINDS)):
            some = part if kind == "all" else part[part["kind"] == kind]
            rows.append((name, features, target, kind, *count(some, target).values()))
    head = ["interval", "features", "target", "kind", "coverage", "error", "number", "width"]
    coverage = pd.DataFrame(rows, columns=head).set_index(head[:4]).sort_index()
    weak = found[(found["kind"] == "weak") & ~found["chosen"]]
    missed = [count(weak[weak["interval"] == one], TRUE) for one in ("percentile", "basic")]
    shares, failures = (np.concatenate([part[one] for part in parts]) for one in (1, 2))
    return Figures(
        coverage,
        shares.mean(axis=0),
        np.array([*(one["coverage"] for one in missed), missed[0]["number"]]),
        failures.mean(axis=0) / [REPLICATES, SPLITS],
    )


# Tables and promises. -----------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]], words: int = 1) -> list[str]:
    """Lay out a table whose first columns are words and whose others are numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return ["", *(f"| {' | '.join(row)} |" for row in [head, rule, *rows]), ""]


def pooled(figures: dict[Design, Figures]) -> list[str]:
    rows = []
    for row in ROWS:
        cells = [WORDS[row[0]], *row[1:]]
        for found in figures.values():
            share, error = found.coverage.loc[(*row, "all"), ["coverage", "error"]]
            cells.append(f"{share:.1%} ({error:.1%})")
        rows.append(cells)
    head = ["interval", "features", "target", *(design.words for design in figures)]
    return ["## All coefficients together", *table(head, rows, words=3)]


def by_kind(figures: dict[Design, Figures]) -> list[str]:
    lines = ["## By kind of coefficient"]
    kinds = list(dict.fromkeys(KINDS))
    for design, found in figures.items():
        rows = []
        for row in ROWS:
            parts = [found.coverage.loc[(*row, kind)] for kind in kinds]
            cells = [WORDS[row[0]], *row[1:]]
            cells += [f"{one['coverage']:.1%} ({one['number']:.0f})" for one in parts]
            rows.append([*cells, *(f"{one['width']:.3f}" for one in parts)])
        head = ["interval", "features", "target", *kinds, *(f"width, {one}" for one in kinds)]
        lines += ["", f"### {design.words}", *table(head, rows, words=3)]
        percentile, basic, number = found.missed
        lines.append(
            f"Of the {number:.0f} intervals of weak features that the search did not choose, "
            f"{percentile:.1%} (percentile) and {basic:.1%} (basic) cover the true coefficient."
        )
    return lines


def chosen(figures: dict[Design, Figures]) -> list[str]:
    lines = [
        "",
        "## How often each feature is chosen",
        "",
        "By the search in all rows, in bootstrap replicates, in halves of the rows; and how often "
        "it is in the honest model.",
    ]
    rows = []
    for design, found in figures.items():
        for words, share in zip(
            ("all rows", "replicates", "halves", "honest model"), found.shares, strict=True
        ):
            rows.append([design.words, words, *(f"{one:.0%}" for one in share)])
    head = ["design", "chosen by", *(f"x{one}: {size:g}" for one, size in enumerate(COEF))]
    lines += table(head, rows, words=2)
    failed = np.max([found.failures for found in figures.values()], axis=0)
    words = "No replicate and no split failed."
    if failed.any():
        words = (
            f"At most {failed[0]:.2%} of the replicates and {failed[1]:.2%} of the splits of a "
            "design could not be fitted."
        )
    return [
        *lines,
        "The coefficients in the head are those at 500 rows; at 2,000 rows the weak ones are half "
        f"of that. {words}",
    ]


def markdown(figures: dict[Design, Figures]) -> str:
    """The figures as tables: pooled, by kind of coefficient, and how often each is chosen."""
    lines = [
        f"{DRAWS} draws of each design, {REPLICATES} bootstrap replicates and {SPLITS} splits "
        f"for each draw; seed {SEED}; nominal {LEVEL:.0%} intervals. In parentheses: in the first "
        "table the standard error of a coverage, by chance, which allows for the intervals of one "
        "draw not being independent; in the others the number of intervals. A coverage of "
        f"{LEVEL:.0%} among {DRAWS} independent intervals has a standard error of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / DRAWS):.1%}, among 50 one of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / 50):.1%}.",
        "",
        *pooled(figures),
        *by_kind(figures),
        *chosen(figures),
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def figures(publish: Callable[[str, str], None]) -> dict[Design, Figures]:
    found = {one: simulate_design(number, one) for number, one in enumerate(DESIGNS)}
    publish("search_inference.md", markdown(found))
    return found


ONES = pytest.mark.parametrize("design", DESIGNS, ids=lambda one: one.words)


def within(found: pd.Series, low: float, high: float) -> bool:
    """Whether a coverage is between bounds, but for two standard errors of chance."""
    slack = 2 * found["error"]
    return bool(low - slack <= found["coverage"] <= high + slack)


@ONES
def test_intervals_that_ignore_the_search_do_not_cover_the_true_coefficients(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design].coverage["coverage"]["ignoring", "chosen", TRUE]
    assert found["all"] < 0.75
    assert found["strong"] < 0.85
    assert found["zero"] < 0.05


@ONES
def test_percentile_intervals_of_chosen_features_cover_93_to_97_percent_on_average(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design].coverage.loc["percentile", "chosen", TRUE]
    assert within(found.loc["all"], *BOUNDS)
    # An average of kinds of which two are covered nearly always.
    assert (found["coverage"][["weak", "zero"]] > BOUNDS[1]).all()


def test_percentile_intervals_of_a_strong_coefficient_cover_too_rarely_with_many_rows(
    figures: dict[Design, Figures],
) -> None:
    for design, found in figures.items():
        share = found.coverage["coverage"]["percentile", "chosen", TRUE, "strong"]
        assert share < (BOUNDS[0] if design.n == 2000 else BOUNDS[1])
        assert share > 0.8


@ONES
def test_percentile_intervals_of_weak_features_cover_too_rarely_where_these_were_not_chosen(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design]
    assert found.coverage["coverage"]["percentile", "all", TRUE, "weak"] < BOUNDS[0]
    assert found.missed[0] < 0.9


@ONES
def test_the_other_intervals_of_a_bootstrap_do_not_cover(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design].coverage["coverage"]
    assert found["basic", "chosen", TRUE, "all"] < 0.75
    assert found["given chosen", "chosen", TRUE, "all"] < 0.6
    assert figures[design].missed[1] < 0.2


@ONES
def test_honest_intervals_cover_the_coefficient_in_the_chosen_model_and_not_the_true_one(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design].coverage.loc["honest", "chosen"]
    assert within(found.loc[MODEL, "all"], *BOUNDS)
    assert found["coverage"][TRUE, "all"] < 0.8


def test_ignoring_the_search_covers_less_than_93_percent_even_in_the_chosen_model(
    figures: dict[Design, Figures],
) -> None:
    shares = [
        [
            found.coverage["coverage"][name, "chosen", MODEL, "all"]
            for name in ("ignoring", "honest")
        ]
        for found in figures.values()
    ]
    ignoring, honest = np.mean(shares, axis=0)
    assert ignoring < BOUNDS[0] < honest < BOUNDS[1]


@ONES
def test_without_a_search_intervals_cover_and_are_wide(
    figures: dict[Design, Figures], design: Design
) -> None:
    found = figures[design].coverage
    assert within(found.loc["all features", "all", TRUE, "all"], *BOUNDS)
    width = found["width"]
    strong = width["percentile", "chosen", TRUE, "strong"]
    assert width["ignoring", "chosen", TRUE, "strong"] < strong
    assert strong < width["all features", "all", TRUE, "strong"]
