"""Cases of `same_numbers`: the selection model itself, and regressions without a search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.facts import Facts
from benchmarks.model_facts import (
    all_of,
    attributes_of,
    estimates_of,
    inference_of,
    predictions_of,
    scores_of,
    some_rows,
)
from benchmarks.public import MROZ_SELECTION, find_function
from heckmanfa import Heckman, InverseProbabilityWeighted, NaiveOLS, RURegressor
from heckmanfa.datasets import fetch_compas, fetch_crime, load_mroz, make_selection

Floats = NDArray[np.float64]
PREDICTION = ["educ", "exper", "expersq"]


def cases() -> dict[str, Callable[[Facts], None]]:
    return {
        **_mroz_cases(),
        **_simulated_cases(),
        **_formula_cases(),
        "rows/selected given": selected_given,
        "rows/features missing": features_missing,
        "rows/features missing, refused": features_missing_in_selection,
        "rows/collinear, dropped": partial(collinear, on_collinear="drop"),
        "rows/collinear, refused": partial(collinear, on_collinear="error"),
        "rows/separated, dropped": partial(separated, on_separation="drop"),
        "rows/separated, refused": partial(separated, on_separation="error"),
        "rows/all observed": all_observed,
        "paper/crime, two-step": partial(paper, fetch=fetch_crime, method="two-step"),
        "paper/crime, ml": partial(paper, fetch=fetch_crime, method="ml"),
        "paper/compas, two-step": partial(paper, fetch=fetch_compas, method="two-step"),
        "paper/compas, ml robust": partial(
            paper, fetch=fetch_compas, method="ml", cov_type="robust"
        ),
        "baselines/mroz": baselines,
        "baselines/ru": ru,
        "profile/mroz ml": profile,
    }


def mroz() -> tuple[pd.DataFrame, pd.Series]:
    data = load_mroz()
    return data[MROZ_SELECTION], data["lwage"]


def frequencies(n: int) -> Floats:
    return np.random.default_rng(5).integers(1, 4, n).astype(float)


def fitted(facts: Facts, model: Heckman, X: Any, y: Any, **given: Any) -> None:
    """Fit a model and record all that it tells."""
    model.fit(X, y, **given)
    all_of(facts, model, X, y, **given)


# Mroz. --------------------------------------------------------------------------------------------


def _mroz_cases() -> dict[str, Callable[[Facts], None]]:
    found: dict[str, Callable[[Facts], None]] = {}
    for method in ("two-step", "ml"):
        for cov_type in (None, "robust", "cluster"):
            name = f"mroz/{method}, {cov_type or 'classical'}"
            found[name] = partial(of_mroz, method=method, cov_type=cov_type)
        for kind, cov_type in (("frequency", None), ("sampling", "robust")):
            name = f"mroz/{method}, {kind} weights"
            found[name] = partial(
                of_mroz, method=method, cov_type=cov_type, weight_kind=kind, weighted=True
            )
    return found | {
        "mroz/sampling weights, cluster": partial(
            of_mroz, method="ml", cov_type="cluster", weight_kind="sampling", weighted=True
        ),
        "mroz/no exclusion": no_exclusion,
        "mroz/ml from rho": partial(of_mroz, method="ml", cov_type=None, start=-0.5),
        "mroz/ml from parameters": from_parameters,
        "mroz/hypotheses": hypotheses,
    }


def of_mroz(facts: Facts, *, cov_type: str | None, weighted: bool = False, **options: Any) -> None:
    X, y = mroz()
    given: dict[str, Any] = {}
    if cov_type == "cluster":
        given["groups"] = load_mroz()["age"].to_numpy()
    if weighted:
        given["sample_weight"] = frequencies(len(X))
        if options["weight_kind"] == "sampling":
            given["sample_weight"] = np.random.default_rng(6).uniform(0.5, 2.0, len(X))
    fitted(facts, Heckman(PREDICTION, cov_type=cov_type, **options), X, y, **given)


def no_exclusion(facts: Facts) -> None:
    X, y = mroz()
    fitted(facts, Heckman(), X, y)


def from_parameters(facts: Facts) -> None:
    X, y = mroz()
    first = Heckman(PREDICTION, method="ml").fit(X, y)
    assert first.params_ is not None
    model = Heckman(PREDICTION, method="ml", start=1.05 * first.params_).fit(X, y)
    estimates_of(facts, model)


def hypotheses(facts: Facts) -> None:
    X, y = mroz()
    model = Heckman(PREDICTION).fit(X, y)
    for text in ("educ = exper", "educ = 0, exper = 0", "selection.educ = educ", "imr = 0"):
        test = model.wald_test(text)
        facts.add(text, [test.statistic, test.df, test.p_value])
    for name in ("kids5", "age"):
        facts.add(f"exclusion.{name}", model.exclusion_test(X, y, [name]).tidy())
    facts.add("wide", model.uncertainty_interval((-0.9, 0.6), 0.9, 11).path())


# Simulated. ---------------------------------------------------------------------------------------

_SHAPES: dict[str, dict[str, Any]] = {
    "small": {"n_samples": 80, "n_features": 3, "n_prediction": 2},
    "with exclusion": {"n_samples": 500, "n_features": 6, "n_prediction": 3, "rho": -0.7},
    "correlated": {"n_samples": 900, "n_features": 8, "n_prediction": 4, "correlation": 0.8},
    "few selected": {"n_samples": 2000, "n_features": 5, "n_prediction": 2, "selection_rate": 0.08},
    "wide": {"n_samples": 3000, "n_features": 15, "n_prediction": 9, "sigma": 30.0},
    "rho at the edge": {"n_samples": 400, "n_features": 4, "n_prediction": 2, "rho": 0.98},
}


def _simulated_cases() -> dict[str, Callable[[Facts], None]]:
    found: dict[str, Callable[[Facts], None]] = {}
    for name, shape in _SHAPES.items():
        for method in ("two-step", "ml"):
            found[f"simulated/{name}, {method}"] = partial(simulated, shape=shape, method=method)
        found[f"simulated/{name}, every feature"] = partial(
            simulated, shape=shape, method="two-step", every=True
        )
    found["simulated/large"] = large
    return found


def simulated(facts: Facts, shape: dict[str, Any], method: str, *, every: bool = False) -> None:
    data = make_selection(**shape, random_state=12)
    fitted(facts, Heckman(None if every else data.support, method=method), data.X, data.y)


def large(facts: Facts) -> None:
    """More rows than a block holds."""
    data = make_selection(150_000, 12, 6, random_state=21)
    for method in ("two-step", "ml"):
        model = Heckman(data.support, method=method, cov_type="robust").fit(data.X, data.y)
        attributes_of(facts, model, f"{method}.")
        facts.add(f"{method}.tidy", model.tidy())
        facts.add(f"{method}.score", model.score(data.X, data.y))
        facts.add(f"{method}.log_likelihood", model.log_likelihood(data.X, data.y))


# Formulas. ----------------------------------------------------------------------------------------

_WAGE = "lwage ~ educ + exper + I(exper**2) + C(city)"
_WORK = "lfp ~ educ + exper + I(exper**2) + C(city) + age + kids5 + kids618 + nwifeinc"
_FORMULAS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": (_WAGE, _WORK, {}),
    "ml": (_WAGE, _WORK, {"method": "ml"}),
    "one-sided": ("lwage ~ educ * city + exper", "educ * city + exper + age + kids5", {}),
    "splines": (
        "lwage ~ educ + bs(exper, df=4)",
        "educ + bs(exper, df=4) + bs(age, df=3) + kids5",
        {},
    ),
    "splines, dropped": (
        "lwage ~ educ + cr(exper, df=4)",
        "educ + cr(exper, df=4) + cr(age, df=3) + kids5",
        {"on_collinear": "drop"},
    ),
    "categories": ("lwage ~ educ + C(region)", "educ + C(region) + center(age) + kids5", {}),
    "logs": (
        "lwage ~ log(educ + 1) + scale(exper)",
        "log(educ + 1) + scale(exper) + poly(age, 2)",
        {},
    ),
    "weights and clusters": (
        _WAGE,
        _WORK,
        {"cov_type": "cluster", "sample_weight": "count", "groups": "region"},
    ),
}


def _formula_cases() -> dict[str, Callable[[Facts], None]]:
    return {
        f"formula/{name}": partial(formula, prediction=wage, selection=work, options=options)
        for name, (wage, work, options) in _FORMULAS.items()
    }


def formula_frame() -> pd.DataFrame:
    """Mroz with a text column, a count, and missing cells in three ranges of rows."""
    frame = load_mroz()
    source = np.random.default_rng(9)
    frame["region"] = source.choice([f"r{one:02d}" for one in range(12)], len(frame))
    frame["count"] = frequencies(len(frame))
    for name, rows in (("educ", slice(3, 9)), ("age", slice(400, 407)), ("exper", slice(700, 703))):
        frame[name] = frame[name].astype(float)
        frame.loc[frame.index[rows], name] = np.nan
    return frame


def formula(facts: Facts, prediction: str, selection: str, options: dict[str, Any]) -> None:
    frame = formula_frame()
    model = Heckman.from_formula(prediction, selection, frame, **options)
    all_of(facts, model, frame)
    predictions_of(facts, model, frame.iloc[:20], missing="nan")
    complete = frame.dropna(subset=["educ", "age", "exper"])
    facts.add("complete.log_likelihood", lambda: model.log_likelihood(complete))


# Rules about rows. --------------------------------------------------------------------------------


def selected_given(facts: Facts) -> None:
    data = make_selection(600, 5, 3, random_state=4)
    y = data.complete_y.copy()
    y[::37] = np.nan
    fitted(facts, Heckman(data.support), data.X, y, selected=data.selected)


def features_missing(facts: Facts) -> None:
    data = make_selection(1500, 5, 3, random_state=4)
    X = data.frame[list(data.feature_names)]
    X.iloc[np.flatnonzero(~data.selected)[::3], 1] = np.nan
    model = Heckman(["x0", "x1", "x3"], ["x0", "x2", "x3", "x4"]).fit(X, data.y)
    estimates_of(facts, model)
    inference_of(facts, model, X, data.y)
    scores_of(facts, model, X, data.y)
    predictions_of(facts, model, X.iloc[:60], missing="nan")


def features_missing_in_selection(facts: Facts) -> None:
    X, y = mroz()
    Heckman(PREDICTION).fit(X.assign(educ=X["educ"].where(X["educ"] > 8)), y)


def collinear(facts: Facts, on_collinear: str) -> None:
    X, y = mroz()
    X = X.assign(twice=2 * X["educ"] - X["age"], constant=1.0)
    model = Heckman([*PREDICTION, "twice"], on_collinear=on_collinear)
    fitted(facts, model, X, y)


def separated(facts: Facts, on_separation: str) -> None:
    X, y = mroz()
    dummy = (np.random.default_rng(3).random(len(X)) < 0.05) & y.notna()
    model = Heckman(PREDICTION, on_separation=on_separation)
    fitted(facts, model, X.assign(decides=dummy.astype(float)), y)


def all_observed(facts: Facts) -> None:
    X, y = mroz()
    seen = y.notna()
    fitted(facts, Heckman(PREDICTION), X[seen], y[seen])


# The paper, baselines and the profile. ------------------------------------------------------------


def paper(facts: Facts, fetch: Callable[..., Any], **options: Any) -> None:
    data = fetch()
    names = list(data.X.columns)
    model = Heckman(names[: len(names) // 2], on_collinear="drop", **options)
    model.fit(data.X, data.y)
    estimates_of(facts, model)
    predictions_of(facts, model, some_rows(data.X_test))
    scores_of(facts, model, data.X, data.y)
    facts.add("specification", lambda: model.specification_tests(data.X, data.y).tidy())
    facts.add("random.y", fetch("random", random_state=3).y[:50])


def baselines(facts: Facts) -> None:
    X, y = mroz()
    weight = frequencies(len(X))
    models: dict[str, Any] = {
        "ols": NaiveOLS(PREDICTION),
        "ols, all": NaiveOLS(),
        "ipw": InverseProbabilityWeighted(PREDICTION),
        "ipw, clipped": InverseProbabilityWeighted(PREDICTION, clip=1.8),
    }
    for name, model in models.items():
        for given in ({}, {"sample_weight": weight}):
            key = f"{name}{', weighted' if given else ''}."
            model.fit(X, y, **given)
            attributes_of(facts, model, key)
            facts.add(f"{key}predict", model.predict(some_rows(X)))
            facts.add(f"{key}score", model.score(X, y, **given))


def ru(facts: Facts) -> None:
    X, y = mroz()
    model = RURegressor(epochs=8, random_state=0).fit(X, y)
    attributes_of(facts, model)
    facts.add("predict", model.predict(some_rows(X)))
    facts.add("score", model.score(X, y))


def profile(facts: Facts) -> None:
    X, y = mroz()
    model = Heckman(PREDICTION, method="ml").fit(X, y)
    found = find_function("profile_rho")(model, X, y, grid=9)
    facts.add("profile", found.tidy())
    facts.add("maxima", found.maxima)
    facts.add("interval", list(found.interval()))
    facts.add("at", found.at([-0.4, 0.0, 0.3]))
