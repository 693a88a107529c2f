"""Intervals of a correctly specified model cover the truth as often as they say.

Many data sets are drawn from one truth; each is fitted by both methods with two kinds of
covariance, and each parameter's 95% intervals are counted. `make study` prints the tables; with
HECKMANFA_WRITE_DOCS=1 in the environment they also go into docs/coverage.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from heckmanfa import Heckman
from heckmanfa.datasets import make_selection

pytestmark = pytest.mark.study

SEED = 20240607
DRAWS, ROWS, FEATURES, PREDICTING = 1000, 2000, 6, 3
RHOS = (0.5, 0.0)
METHODS = ("two-step", "ml")
COVARIANCES = ("classical", "robust")
LEVEL, BOUNDS = 0.95, (0.93, 0.97)
# Both estimators are biased in order 1/n; that must be lost in their spread.
LARGEST_BIAS = 0.2
DRAWS_A_TASK = 25

Floats = NDArray[np.float64]
# Estimate, standard error and both ends of the interval of every term.
COLUMNS = ["estimate", "std_error", "ci_low", "ci_high"]


# Terms, (draws, terms, 4) numbers, and how many fits warned; by method and covariance.
Fits = dict[tuple[str, str], tuple[list[tuple[str, str]], Floats, int]]


def fitter() -> Callable[[Floats, Floats], Fits]:
    """Make the function that fits a few draws.

    Worker processes cannot import a test module; a function made inside another one is sent to
    them as a whole.
    """

    def fit_draws(X: Floats, y: Floats) -> Fits:
        # Processes share the cores; threads within each would only fight over them.
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found = {}
        for method, covariance in product(METHODS, COVARIANCES):
            cov_type = None if covariance == "classical" else covariance
            model = Heckman(range(PREDICTING), method=method, cov_type=cov_type)
            numbers, warned = [], 0
            for start in range(0, len(y), ROWS):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model.fit(X[start : start + ROWS], y[start : start + ROWS])
                warned += bool(caught)
                table = model.tidy(LEVEL).set_index(["equation", "term"])
                if method == "two-step":
                    # These two have no interval.
                    table = table.drop([("errors", "rho"), ("errors", "sigma")])
                numbers.append(table[COLUMNS].to_numpy())
            found[method, covariance] = list(table.index), np.array(numbers), warned
        return found

    return fit_draws


def simulate(rho: float) -> pd.DataFrame:
    """Coverage, bias and spread of every parameter; one row for each and each kind of fit."""
    # The rows of one large sample are independent, so that its stretches are as many draws
    # from one truth.
    data = make_selection(
        DRAWS * ROWS,
        FEATURES,
        prediction_features=range(PREDICTING),
        rho=rho,
        correlation=0.3,
        random_state=SEED,
    )
    truth = {
        ("prediction", "Intercept"): data.intercept,
        ("selection", "Intercept"): data.selection_intercept,
        ("errors", "imr"): data.rho * data.sigma,
        ("errors", "rho"): data.rho,
        ("errors", "sigma"): data.sigma,
    }
    for place, name in enumerate(data.feature_names):
        truth["prediction", name] = data.coef[place]
        truth["selection", name] = data.selection_coef[place]
    step = DRAWS_A_TASK * ROWS
    fit_draws = joblib.delayed(fitter())
    parts = joblib.Parallel(n_jobs=-1)(
        fit_draws(data.X[start : start + step], data.y[start : start + step])
        for start in range(0, DRAWS * ROWS, step)
    )
    tables = []
    for method, covariance in product(METHODS, COVARIANCES):
        terms, _, _ = parts[0][method, covariance]
        numbers = np.concatenate([part[method, covariance][1] for part in parts])
        estimate, error, low, high = np.moveaxis(numbers, 2, 0)
        true = np.array([truth[term] for term in terms])
        table = pd.DataFrame(terms, columns=["equation", "term"])
        tables.append(
            table.assign(
                rho=rho,
                method=method,
                covariance=covariance,
                truth=true,
                bias=estimate.mean(axis=0) - true,
                sd=estimate.std(axis=0, ddof=1),
                sd_over_se=estimate.std(axis=0, ddof=1) / error.mean(axis=0),
                # NaN covers nothing.
                coverage=((low <= true) & (true <= high)).mean(axis=0),
                warned=sum(part[method, covariance][2] for part in parts),
            )
        )
    return pd.concat(tables, ignore_index=True)


def markdown(figures: pd.DataFrame) -> str:
    """The figures as tables, one for each rho and method, both covariances side by side."""
    lines = [
        f"{DRAWS:,} draws of {ROWS:,} rows; {FEATURES} features with pairwise correlation 0.3, all "
        f"of which select and {PREDICTING} predict; half of the rows selected; seed {SEED}. By "
        f"chance alone a coverage of {LEVEL:.0%} comes out with a standard error of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / DRAWS):.1%}. Over all {len(figures)} kinds of interval "
        f"below, coverage lies between {figures['coverage'].min():.1%} and "
        f"{figures['coverage'].max():.1%}, and the spread of the estimates is "
        f"{figures['sd_over_se'].min():.3f} to {figures['sd_over_se'].max():.3f} times the mean "
        "standard error.",
    ]
    for (rho, method), part in figures.groupby(["rho", "method"], sort=False):
        name = "maximum likelihood" if method == "ml" else method
        lines += [
            "",
            f"## {name[0].upper()}{name[1:]}, rho = {rho:g}",
            "",
            "| equation | term | truth | bias | sd | coverage, classical | sd / s.e., classical "
            "| coverage, robust | sd / s.e., robust |",
            "| --- | --- " + "| ---: " * 7 + "|",
        ]
        both = [part[part["covariance"] == one].reset_index() for one in COVARIANCES]
        for place, row in both[0].iterrows():
            cells = [row["equation"], row["term"]]
            cells += [f"{row['truth']:.3f}", f"{row['bias']:z.4f}", f"{row['sd']:.4f}"]
            for one in both:
                cells += [f"{one['coverage'][place]:.1%}", f"{one['sd_over_se'][place]:.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
        warned = " and ".join(f"{one['warned'][0]} ({one['covariance'][0]})" for one in both)
        lines += ["", f"Fits with a warning: {warned}."]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def figures(publish: Callable[[str, str], None]) -> pd.DataFrame:
    found = pd.concat([simulate(rho) for rho in RHOS], ignore_index=True)
    publish("coverage.md", markdown(found))
    return found


def part_of(figures: pd.DataFrame, rho: float, method: str, covariance: str) -> pd.DataFrame:
    chosen = (figures["rho"] == rho) & (figures["method"] == method)
    return figures[chosen & (figures["covariance"] == covariance)]


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_95_percent_intervals_cover_93_to_97_percent(
    figures: pd.DataFrame, rho: float, method: str, covariance: str
) -> None:
    part = part_of(figures, rho, method, covariance)
    outside = part[~part["coverage"].between(*BOUNDS)]
    assert outside.empty, outside[["equation", "term", "coverage"]].to_string(index=False)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("method", METHODS)
def test_bias_is_lost_in_the_spread(figures: pd.DataFrame, rho: float, method: str) -> None:
    part = part_of(figures, rho, method, "classical")
    biased = part[~(part["bias"].abs() < LARGEST_BIAS * part["sd"])]
    assert biased.empty, biased[["equation", "term", "bias", "sd"]].to_string(index=False)
