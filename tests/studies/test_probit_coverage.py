"""Intervals of the Heckman probit cover the truth as often as they say, and where they do not.

Many data sets are drawn from one truth. Every one is fitted with the classical and the robust
covariance; 95% intervals that cover the truth and tests that reject rho = 0 are counted. `make
study` prints the tables; with HECKMANFA_WRITE_DOCS=1 they also go into docs/probit_coverage.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from heckmanfa import HeckmanProbit
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaError

pytestmark = pytest.mark.study

SEED = 20261116
FEATURES, PREDICTING = 6, 3
RHOS = (-0.5, 0.0, 0.7)
LEVEL, BOUNDS = 0.95, (0.93, 0.97)
# One standard error of 1,000 draws: one interval covers 93.1% (of 3,000 other draws).
CHANCE = 0.007
COVARIANCES = ("classical", "robust")
DRAWS_A_TASK = 25

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """What is drawn."""

    name: str
    rho: float
    rows: int = 2000
    draws: int = 1000
    selection_rate: float = 0.5
    intercept: float = 0.0


USUAL = [Design(f"rho = {rho:g}", rho) for rho in RHOS]
# Few selected rows, few ones, and both. The intercepts give about 3% ones among the selected.
HARD = [
    Design("10% selected, 2,000 rows", 0.5, draws=400, selection_rate=0.1),
    Design("3% ones, 2,000 rows", 0.5, draws=400, intercept=-4.2),
    Design("10% selected, 20,000 rows", 0.5, rows=20_000, draws=100, selection_rate=0.1),
    Design("3% ones, 20,000 rows", 0.5, rows=20_000, draws=100, intercept=-4.2),
    Design(
        *("10% selected, 3% ones, 20,000 rows", 0.5, 20_000, 100),
        selection_rate=0.1,
        intercept=-4.8,
    ),
]


def fitter() -> Callable[[Floats, Floats, int], list[tuple[Floats, Floats] | None]]:
    """Make the function that fits a few draws; worker processes cannot import a test module."""

    def fit_draws(X: Floats, y: Floats, rows: int) -> list[tuple[Floats, Floats] | None]:
        os.environ["HECKMANFA_NUM_THREADS"] = "1"
        found: list[tuple[Floats, Floats] | None] = []
        for start in range(0, len(y), rows):
            part = slice(start, start + rows)
            tables, tests = [], []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    for covariance in COVARIANCES:
                        model = HeckmanProbit(range(PREDICTING), cov_type=covariance)
                        model.fit(X[part], y[part])
                        table = model.tidy(LEVEL)
                        tables.append(table[["estimate", "std_error", "ci_low", "ci_high"]])
                        fit = model.fit_
                        value, error = fit.atanh_rho
                        tests.append((value / error) ** 2)
                        if covariance == "classical":
                            gain = fit.log_likelihood - fit.details.independent_log_likelihood
                            tests.append(2.0 * gain)
                except HeckmanfaError:
                    found.append(None)
                    continue
            converged = model.converged_ and not np.isnan(tables[0].to_numpy()).any()
            found.append((np.array(tables), np.array(tests)) if converged else None)
        return found

    return fit_draws


def simulate(design: Design) -> tuple[pd.DataFrame, Floats, int, float]:
    """Return figures of every parameter, tests of rho = 0, failures, and the share of ones."""
    data = make_selection(
        design.draws * design.rows,
        FEATURES,
        prediction_features=range(PREDICTING),
        rho=design.rho,
        selection_rate=design.selection_rate,
        intercept=design.intercept,
        correlation=0.3,
        outcome_kind="binary",
        random_state=SEED,
    )
    names = data.feature_names
    terms = [("prediction", "Intercept"), *(("prediction", name) for name in names[:PREDICTING])]
    terms += [("selection", "Intercept"), *(("selection", name) for name in names)]
    terms.append(("errors", "rho"))
    true = np.array(
        [
            *(data.intercept, *data.coef[:PREDICTING]),
            *(data.selection_intercept, *data.selection_coef),
            data.rho,
        ]
    )
    step = DRAWS_A_TASK * design.rows
    fit_draws = joblib.delayed(fitter())
    parts = joblib.Parallel(n_jobs=-1)(
        fit_draws(data.X[start : start + step], data.y[start : start + step], design.rows)
        for start in range(0, len(data.y), step)
    )
    every = [found for part in parts for found in part]
    good = [found for found in every if found is not None]
    numbers = np.array([found[0] for found in good])
    tests = np.array([found[1] for found in good])
    tables = []
    for place, covariance in enumerate(COVARIANCES):
        estimate, error, low, high = np.moveaxis(numbers[:, place], 2, 0)
        tables.append(
            pd.DataFrame(terms, columns=["equation", "term"]).assign(
                design=design.name,
                covariance=covariance,
                truth=true,
                bias=estimate.mean(axis=0) - true,
                sd=estimate.std(axis=0, ddof=1),
                sd_over_se=estimate.std(axis=0, ddof=1) / error.mean(axis=0),
                coverage=((low <= true) & (true <= high)).mean(axis=0),
            )
        )
    share = float(np.nanmean(data.y))
    return pd.concat(tables, ignore_index=True), tests, len(every) - len(good), share


def rejections(tests: Floats) -> dict[str, float]:
    """Share of draws in which each test of rho = 0 rejects at 5%."""
    limit = chi2.ppf(0.95, 1)
    names = ("Wald", "likelihood ratio", "Wald, robust")
    return {name: float((tests[:, i] > limit).mean()) for i, name in enumerate(names)}


def usual_markdown(found: list[tuple[Design, tuple[pd.DataFrame, Floats, int, float]]]) -> str:
    """The figures of the usual designs, one table for each rho."""
    figures = pd.concat([result[0] for _, result in found])
    lines = [
        f"{USUAL[0].draws:,} draws of {USUAL[0].rows:,} rows; {FEATURES} features with pairwise "
        f"correlation 0.3, all of which select and {PREDICTING} predict; half of the rows "
        f"selected; seed {SEED}. By chance alone a coverage of {LEVEL:.0%} comes out with a "
        f"standard error of {np.sqrt(LEVEL * (1 - LEVEL) / USUAL[0].draws):.1%}. Over all "
        f"{len(figures)} kinds of interval below, coverage lies between "
        f"{figures['coverage'].min():.1%} and {figures['coverage'].max():.1%}.",
    ]
    for design, (table, tests, failed, share) in found:
        lines += [
            *("", f"### {design.name}", ""),
            "| equation | term | truth | bias | sd | coverage, classical | sd / s.e., classical "
            "| coverage, robust | sd / s.e., robust |",
            "| --- | --- " + "| ---: " * 7 + "|",
        ]
        both = [table[table["covariance"] == kind].reset_index() for kind in COVARIANCES]
        for place, row in both[0].iterrows():
            cells = [row["equation"], row["term"]]
            cells += [f"{row['truth']:.3f}", f"{row['bias']:z.4f}", f"{row['sd']:.4f}"]
            for part in both:
                cells += [f"{part['coverage'][place]:.1%}", f"{part['sd_over_se'][place]:.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
        shares = ", ".join(f"{name} {share_:.1%}" for name, share_ in rejections(tests).items())
        lines += [
            "",
            f"{share:.0%} of the observed outcomes are ones. Fits without standard errors: "
            f"{failed}. Tests of rho = 0 that reject at 5%: {shares}.",
        ]
    return "\n".join(lines) + "\n"


def hard_markdown(found: list[tuple[Design, tuple[pd.DataFrame, Floats, int, float]]]) -> str:
    """The figures of the hard designs, one row for each."""
    lines = [
        f"rho = {HARD[0].rho:g}; the rest as above.",
        "",
        "| design | draws | ones | fits without standard errors | bias of rho | sd of rho "
        "| coverage, rho | coverage, intercept | coverage, slopes | coverage, slopes, robust |",
        "| --- " + "| ---: " * 9 + "|",
    ]
    for design, (table, _, failed, share) in found:
        classical = table[table["covariance"] == "classical"].set_index(["equation", "term"])
        robust = table[table["covariance"] == "robust"].set_index(["equation", "term"])
        slopes = [("prediction", f"x{place}") for place in range(PREDICTING)]
        rho = classical.loc[("errors", "rho")]
        cells = [
            *(design.name, f"{design.draws:,}", f"{share:.1%}", f"{failed:,}"),
            *(f"{rho['bias']:z.3f}", f"{rho['sd']:.3f}", f"{rho['coverage']:.1%}"),
            f"{classical.loc[('prediction', 'Intercept'), 'coverage']:.1%}",
            f"{classical.loc[slopes, 'coverage'].mean():.1%}",
            f"{robust.loc[slopes, 'coverage'].mean():.1%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def usual(
    publish: Callable[..., None],
) -> list[tuple[Design, tuple[pd.DataFrame, Floats, int, float]]]:
    found = [(design, simulate(design)) for design in USUAL]
    publish("probit_coverage.md", usual_markdown(found), "the usual designs")
    return found


@pytest.mark.parametrize("place", range(len(USUAL)))
def test_95_percent_intervals_cover_93_to_97_percent(
    usual: list[tuple[Design, tuple[pd.DataFrame, Floats, int, float]]], place: int
) -> None:
    _, (table, _, failed, _) = usual[place]
    low, high = BOUNDS
    outside = table[~table["coverage"].between(low - CHANCE, high + CHANCE)]
    assert failed == 0
    assert outside.empty, outside[["covariance", "equation", "term", "coverage"]].to_string()


def test_the_tests_of_rho_have_their_size(
    usual: list[tuple[Design, tuple[pd.DataFrame, Floats, int, float]]],
) -> None:
    """At rho = 0, 5% of the tests reject, up to three standard errors of 1,000 draws."""
    tests = next(result[1] for design, result in usual if design.rho == 0)
    for name, share in rejections(tests).items():
        assert 0.03 < share < 0.07, (name, share)


def test_hard_designs_are_reported(publish: Callable[..., None]) -> None:
    """Few selected rows and few ones: what the page says is measured, whatever it is."""
    found = [(design, simulate(design)) for design in HARD]
    publish("probit_coverage.md", hard_markdown(found), "the hard designs")
    for design, (table, _, failed, _) in found:
        assert failed < design.draws / 2
        assert np.isfinite(table["coverage"]).all()
