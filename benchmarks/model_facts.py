"""All that a fitted model tells through its public methods, as facts of a case."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.facts import Facts
from heckmanfa import load, save

KINDS = ("marginal", "selected", "unselected", "expected")
INTERVALS = ("prediction", "confidence")
_ROWS = 20
_REPLICATES = 5


def some_rows(X: Any) -> Any:
    """A few rows, from all over a table."""
    step = max(len(X) // _ROWS, 1)
    return X.iloc[::step] if isinstance(X, pd.DataFrame) else X[::step]


def all_of(facts: Facts, model: Any, X: Any, y: Any = None, **given: Any) -> None:
    """Record a selection model in memory: estimates, predictions, tests and what they rest on.

    ``given`` is what `fit` was given beside X and y.
    """
    estimates_of(facts, model)
    predictions_of(facts, model, some_rows(X))
    scores_of(facts, model, X, y, **given)
    inference_of(facts, model, X, y, **given)


def attributes_of(facts: Facts, model: Any, key: str = "") -> None:
    """Record every public attribute that a fit set."""
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_") and name not in ("honest_", "fit_"):
            facts.add(f"{key}{name}", lambda name=name: getattr(model, name))


def is_binary(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def estimates_of(facts: Facts, model: Any) -> None:
    """Record what needs no rows."""
    attributes_of(facts, model)
    facts.add("tidy", model.tidy)
    facts.add("tidy_90", lambda: model.tidy(conf_level=0.9))
    covariance = facts.add("vcov", model.vcov)
    if covariance is not None:
        rows = np.eye(len(covariance))[1:3]
        facts.add("wald_test", lambda: _wald(model.wald_test(rows, [0.1] * len(rows))))
    if not is_binary(model):
        what_if_of(facts, model)
    facts.add("summary", lambda: printed_numbers(str(model.summary())))
    facts.add("diagnostics", model.diagnostics)
    honest = getattr(model, "honest_", None)
    if honest is not None:
        facts.add("honest", honest.tidy)
        facts.add("honest.splits", honest.splits)


def what_if_of(facts: Facts, model: Any, *rows: Any, **given: Any) -> None:
    """Record other exclusions and other values of rho; a binary outcome needs its rows."""
    changes = facts.attempt("what_if", lambda: model.what_if(*rows, **given))
    if changes is not None:
        facts.add("what_if", changes.tidy)
        facts.add("what_if.coefficients", changes.coefficients)
    grid = {"n_grid": 15} if rows else {}
    interval = facts.attempt(
        "uncertainty", lambda: model.uncertainty_interval(*rows, **grid, **given)
    )
    if interval is not None:
        facts.add("uncertainty", interval.tidy)
        facts.add("uncertainty.path", lambda: interval.path().iloc[::7])


_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?%?")


def printed_numbers(text: str) -> list[float]:
    """The numbers of a printed table: of lines with at least three of them and hardly a word."""
    found: list[float] = []
    for line in text.splitlines():
        words = line.split()
        numbers = [one for one in words if _NUMBER.fullmatch(one)]
        if len(numbers) >= 3 and len(words) - len(numbers) <= 3:
            found += [float(one.rstrip("%").replace(",", "")) for one in numbers]
    return found


def _wald(test: Any) -> Any:
    return {name: getattr(test, name) for name in ("statistic", "df", "p_value")}


def predictions_of(facts: Facts, model: Any, X: Any, missing: str = "error") -> None:
    """Record predictions of all kinds with all intervals, and of selection."""
    for kind in KINDS:
        facts.add(f"predict.{kind}", lambda kind=kind: model.predict(X, kind, missing=missing))
        facts.add(f"missing.{kind}", lambda kind=kind: model.missing_features(X, kind))
        if is_binary(model):
            facts.add(
                f"predict_proba.{kind}",
                lambda kind=kind: model.predict_proba(
                    X, kind, return_interval="confidence", conf_level=0.9, missing=missing
                ),
            )
            continue
        for which in INTERVALS:
            facts.add(
                f"predict.{kind}.{which}",
                lambda kind=kind, which=which: model.predict(
                    X, kind, return_interval=which, conf_level=0.9, missing=missing
                )[1],
            )
    if is_binary(model):
        facts.add(
            "predict_joint",
            lambda: model.predict_joint(X, return_interval="confidence", missing=missing),
        )
    facts.add("predict_selection", lambda: model.predict_selection(X, missing=missing))
    facts.add(
        "predict_selection.confidence",
        lambda: model.predict_selection(
            X, return_interval="confidence", conf_level=0.9, missing=missing
        ),
    )
    facts.add("inverse_mills", lambda: model.inverse_mills(X, missing=missing))


def scores_of(facts: Facts, model: Any, X: Any, y: Any, **given: Any) -> None:
    given = {name: one for name, one in given.items() if name != "groups"}
    facts.add("score", lambda: model.score(X, y, **given))
    facts.add("log_likelihood", lambda: model.log_likelihood(X, y, **given))
    found = facts.add("diagnostics_of_rows", lambda: model.diagnostics(X).share_outside)
    if found is not None:
        facts.add("verdicts", lambda: model.diagnostics(X).to_frame()["verdict"].tolist())


def inference_of(facts: Facts, model: Any, X: Any, y: Any, **given: Any) -> None:
    """Record what is computed from the rows of the fit once more."""
    alone = {name: one for name, one in given.items() if name != "groups"}
    weight = {name: one for name, one in given.items() if name == "sample_weight"}
    facts.add("exclusion", lambda: model.exclusion_test(X, y, **given).tidy())
    facts.add("specification", lambda: model.specification_tests(X, y, **alone).tidy())
    margins_of(facts, model, X, **weight)
    if is_binary(model):
        what_if_of(facts, model, X, y, **given)
    unit = {"unit": given["groups"]} if "groups" in given else {}
    bootstrap_of(facts, model, X, y, **alone, **unit)


def details_of(facts: Facts, model: Any, X: Any, y: Any = None, **given: Any) -> None:
    """Record what few people ask for: profiles, cells of margins, ratios, a file and its model."""
    alone = {name: one for name, one in given.items() if name != "groups"}
    weight = {name: one for name, one in given.items() if name == "sample_weight"}
    profile = facts.attempt("profile_rho", lambda: model.profile_rho(X, y, grid=5, **alone))
    if profile is not None:
        facts.add("profile_rho", profile.tidy)
        facts.add("profile_rho.maxima", profile.maxima)
        facts.add("profile_rho.regions", lambda: np.array(profile.regions(0.9)))
    term = next(iter(model.prediction_features_), "Intercept")
    profile = facts.attempt("profile", lambda: model.profile(X, y, term, grid=3, **alone))
    if profile is not None:
        facts.add("profile", profile.tidy)
        facts.add("profile.regions", lambda: np.array(profile.regions(0.9)))
    facts.add("mills_ratios", lambda: model.mills_ratios(X, y, some_rows(X), **alone))
    parity = np.arange(len(X)) % 2
    cells = facts.attempt(
        "margins.cells", lambda: model.margins(X, "marginal", over=parity, **weight)
    )
    if cells is not None:
        facts.add("margins.cells", cells.tidy)
        facts.add("margins.differences", lambda: cells.differences().tidy())
    facts.add(
        "margins.predictions",
        lambda: model.margins(X, what="predictions", over=parity, **weight).tidy(),
    )
    facts.add(
        "margins.fixed",
        lambda: model.margins(X, "selected", at={term: [1, 2]}, conf_level=0.9, **weight).tidy(),
    )
    pictures_of(facts, model, X, y, **alone)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.heckmanfa"
        if facts.attempt("save", lambda: save(model, path) or True):
            facts.add("loaded.tidy", lambda: load(path).tidy())
            facts.add("loaded.predict", lambda: load(path).predict(some_rows(X)))


_PICTURES = (
    *("forest", "chances", "selection_chances", "assignments", "margins", "profiles", "rho"),
    *("over_rho", "overlap", "imr", "residuals", "calibration"),
)


def pictures_of(facts: Facts, model: Any, X: Any, y: Any, **given: Any) -> None:
    """Record the numbers in the tables of a model's pictures."""
    pictures = model.pictures(X, y, **given)
    for name in _PICTURES:
        picture = facts.attempt(f"picture.{name}", lambda name=name: getattr(pictures, name))
        if picture is not None:
            facts.add(f"picture.{name}", lambda picture=picture: _numbers_of_picture(picture))


def _numbers_of_picture(picture: Any) -> list[float]:
    """The numbers in the cells of a picture's table."""
    rows = picture.text().table.rows
    return [
        float(cell.rstrip("%").replace(",", ""))
        for row in rows
        if not isinstance(row, str)
        for cell in (str(one).replace("\N{MINUS SIGN}", "-") for one in row)
        if _NUMBER.fullmatch(cell)
    ]


def margins_of(facts: Facts, model: Any, X: Any, **weight: Any) -> None:
    for at in ("average", "means"):
        margins = facts.attempt(
            f"margins.{at}",
            lambda at=at: model.margins(X, (*KINDS, "selection"), at=at, **weight),
        )
        if margins is not None:
            facts.add(f"margins.{at}", margins.tidy)
    if margins is not None:
        facts.add("margins.std_errors", lambda: np.sqrt(np.diag(margins.vcov())))


def bootstrap_of(facts: Facts, model: Any, X: Any, y: Any, **given: Any) -> None:
    replicates = facts.attempt(
        "bootstrap",
        lambda: model.bootstrap(X, y, n_boot=_REPLICATES, random_state=11, **given),
    )
    if replicates is not None:
        facts.add("bootstrap", replicates.tidy)
        facts.add("bootstrap.frame", replicates.to_frame)
        facts.add("bootstrap.vcov", lambda: np.diag(replicates.vcov()))
        facts.add("bootstrap.assignments", replicates.assignments)


def search_of(facts: Facts, model: Any) -> None:
    """Record the story of a search."""
    report = facts.attempt("search_report", model.search_report)
    if report is not None:
        for name in ("criterion", "rho_range", "n_assignments", "n_possible", "n_in_range"):
            facts.add(f"search_report.{name}", lambda name=name: getattr(report, name))
        for name in ("share_in_range", "optimal", "gap", "tolerance", "n_near", "near_is_cut"):
            facts.add(f"search_report.{name}", lambda name=name: getattr(report, name))
        facts.add("search_report.runner_ups", lambda: report.runner_ups)
        facts.add("search_report.spread", lambda: report.spread)
