"""All that a fitted model tells through its public methods, as facts of a case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.facts import Facts

KINDS = ("marginal", "selected", "unselected")
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


def estimates_of(facts: Facts, model: Any) -> None:
    """Record what needs no rows."""
    attributes_of(facts, model)
    facts.add("tidy", model.tidy)
    facts.add("tidy_90", lambda: model.tidy(conf_level=0.9))
    covariance = facts.add("vcov", model.vcov)
    if covariance is not None:
        rows = np.eye(len(covariance))[1:3]
        facts.add("wald_test", lambda: _wald(model.wald_test(rows, [0.1] * len(rows))))
    facts.add("what_if", lambda: model.what_if().tidy())
    facts.add("what_if.coefficients", lambda: model.what_if().coefficients())
    interval = facts.attempt("uncertainty", model.uncertainty_interval)
    if interval is not None:
        facts.add("uncertainty", interval.tidy)
        facts.add("uncertainty.path", lambda: interval.path().iloc[::7])
    facts.add("summary_prints", lambda: bool(str(model.summary())))
    facts.add("diagnostics", model.diagnostics)
    honest = getattr(model, "honest_", None)
    if honest is not None:
        facts.add("honest", honest.tidy)
        facts.add("honest.splits", honest.splits)


def _wald(test: Any) -> Any:
    return {name: getattr(test, name) for name in ("statistic", "df", "p_value")}


def predictions_of(facts: Facts, model: Any, X: Any, missing: str = "error") -> None:
    """Record predictions of all kinds with all intervals, and of selection."""
    for kind in KINDS:
        facts.add(f"predict.{kind}", lambda kind=kind: model.predict(X, kind, missing=missing))
        for which in INTERVALS:
            facts.add(
                f"predict.{kind}.{which}",
                lambda kind=kind, which=which: model.predict(
                    X, kind, return_interval=which, conf_level=0.9, missing=missing
                )[1],
            )
        facts.add(f"missing.{kind}", lambda kind=kind: model.missing_features(X, kind))
    facts.add("predict_selection", lambda: model.predict_selection(X, missing=missing))
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
    unit = {"unit": given["groups"]} if "groups" in given else {}
    bootstrap_of(facts, model, X, y, **alone, **unit)


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
