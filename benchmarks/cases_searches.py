"""Cases of `same_numbers`: searches for prediction features, compression and training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases_estimates import frequencies
from benchmarks.facts import Facts
from benchmarks.model_facts import (
    all_of,
    attributes_of,
    bootstrap_of,
    estimates_of,
    predictions_of,
    search_of,
    some_rows,
)
from benchmarks.public import MROZ_FEATURES
from heckmanfa import (
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    assignment,
    compress,
)
from heckmanfa.datasets import fetch_compas, fetch_crime, load_mroz, make_selection

_GROUPS = [["exper", "expersq"], ["kids5", "kids618"]]
_QUICK = {"epochs": 150, "n_draws": 60, "random_state": 3}


def cases() -> dict[str, Callable[[Facts], None]]:
    models = _best_subset() | _trained() | _lasso()
    found: dict[str, Callable[[Facts], None]] = {
        f"search/mroz, {name}": partial(of_mroz, model=model) for name, model in models.items()
    }
    return found | {
        "search/mroz, weighted": partial(weighted, cov_type=None),
        "search/mroz, clustered": partial(weighted, cov_type="cluster"),
        "search/formula": by_formula,
        "search/simulated, best subset": partial(simulated, kind=HeckmanBestSubset),
        "search/simulated, lasso": partial(simulated, kind=HeckmanLasso),
        "search/simulated, sample": partial(simulated, kind=HeckmanFA, **_QUICK),
        "search/collinear": collinear,
        "search/crime": partial(paper, fetch=fetch_crime),
        "search/compas": partial(paper, fetch=fetch_compas),
        "search/crime, rank": partial(paper, fetch=fetch_crime, extraction="rank"),
        "search/crime, correlation": partial(paper, fetch=fetch_crime, extraction="correlation"),
        "compressed/mroz": compressed,
        "compressed/trained": trained,
    }


def _best_subset() -> dict[str, Any]:
    near = {"tolerance": 1.0}
    return {
        "bic": HeckmanBestSubset(),
        "bic, ml": HeckmanBestSubset(method="ml", **near),
        "aic, robust": HeckmanBestSubset("aic", cov_type="robust", **near),
        "adjusted R2": HeckmanBestSubset("adjusted_r2", tolerance=1e-4),
        "rho range": HeckmanBestSubset(rho_range=(0.2, 0.8), **near),
        "always and never": HeckmanBestSubset(always=["educ", "age"], never=["unem"], **near),
        "groups": HeckmanBestSubset(feature_groups=_GROUPS, max_features=6, **near),
        "named groups": HeckmanBestSubset("aic", feature_groups={"children": _GROUPS[1]}, **near),
        "candidates": HeckmanBestSubset(prediction_features=MROZ_FEATURES[:6], **near),
        "few nodes": HeckmanBestSubset(max_nodes=60, **near),
        "honest": HeckmanBestSubset(honest=True, n_splits=6, random_state=2, **near),
        "honest, rho range": HeckmanBestSubset(
            honest=True, n_splits=6, random_state=2, rho_range=(-0.9, 0.9), **near
        ),
    }


def _trained() -> dict[str, Any]:
    return {
        "sample": HeckmanFA("sample", record_path=25, **_QUICK),
        "sample, bic, ml": HeckmanFA("sample", criterion="bic", method="ml", **_QUICK),
        "sample, plain": HeckmanFA("sample", standardize=False, step_on="pi", **_QUICK),
        "sample, features": HeckmanFA(
            "sample", standardize="features", temperature=0.6, init_prob=0.4, **_QUICK
        ),
        "sample, fewer rows": HeckmanFA("sample", train_rows=200, **_QUICK),
        "sample, groups": HeckmanFA(
            "sample", feature_groups=_GROUPS, always=["educ"], never=["unem"], **_QUICK
        ),
        "sample, honest": HeckmanFA("sample", honest=True, n_splits=4, **_QUICK),
        "rank": HeckmanFA("rank", record_path=50, **_QUICK),
        "rank, aic, rho range": HeckmanFA("rank", criterion="aic", rho_range=(-0.5, 0.9), **_QUICK),
        "correlation": HeckmanFA("correlation"),
        "correlation, bic": HeckmanFA("correlation", criterion="bic", max_features=5),
    }


def _lasso() -> dict[str, Any]:
    return {
        "lasso": HeckmanLasso(),
        "lasso, aic, plain": HeckmanLasso("aic", power=0.0, always=["educ"]),
        "lasso, ml, rho range": HeckmanLasso(method="ml", rho_range=(-0.99, 0.99)),
    }


def of_mroz(facts: Facts, model: Any) -> None:
    data = load_mroz()
    X, y = data[MROZ_FEATURES], data["lwage"]
    searched(facts, model.fit(X, y), X, y)


def searched(facts: Facts, model: Any, X: Any, y: Any = None, **given: Any) -> None:
    """Record a search: what any model tells, but few replicates of what searches again."""
    estimates_of(facts, model)
    search_of(facts, model)
    predictions_of(facts, model, some_rows(X))
    facts.add("score", lambda: model.score(X, y))
    facts.add("verdicts", lambda: model.diagnostics(X).to_frame()["verdict"].tolist())
    facts.add("specification", lambda: model.specification_tests(X, y).tidy())
    bootstrap_of(facts, model, X, y, **given)


def weighted(facts: Facts, cov_type: str | None) -> None:
    data = load_mroz()
    X, y = data[MROZ_FEATURES], data["lwage"]
    given: dict[str, Any] = {"sample_weight": frequencies(len(X))}
    if cov_type == "cluster":
        given["groups"] = data["age"].to_numpy()
    model = HeckmanBestSubset(cov_type=cov_type, tolerance=1.0).fit(X, y, **given)
    all_of(facts, model, X, y, **given)
    search_of(facts, model)


def by_formula(facts: Facts) -> None:
    data = load_mroz()
    work = "lfp ~ educ + exper + I(exper**2) + C(city) + age + kids5 + kids618 + nwifeinc"
    model = HeckmanBestSubset.from_formula(
        "lwage ~ educ + exper + I(exper**2) + C(city) + age + kids5", work, data, tolerance=3.0
    )
    searched(facts, model, data)


def simulated(facts: Facts, kind: Callable[..., Any], **options: Any) -> None:
    data = make_selection(3000, 15, 6, correlation=0.3, random_state=8)
    searched(facts, kind(**options).fit(data.X, data.y), data.X, data.y)


def collinear(facts: Facts) -> None:
    data = load_mroz()
    X = data[MROZ_FEATURES[:7]].assign(twice=2 * data["educ"] - data["age"])
    models = {
        "best": HeckmanBestSubset(on_collinear="drop"),
        "lasso": HeckmanLasso(on_collinear="drop"),
        "sample": HeckmanFA(on_collinear="drop", **_QUICK),
    }
    for name, model in models.items():
        facts.attempt(name, lambda model=model: model.fit(X, data["lwage"]))
        attributes_of(facts, model, f"{name}.")


def paper(facts: Facts, fetch: Callable[[], Any], extraction: str | None = None) -> None:
    data = fetch()
    model: Any = HeckmanBestSubset(on_collinear="drop", max_nodes=20_000)
    if extraction is not None:
        model = HeckmanFA(extraction, rho_range=(0.1, 0.9), **_QUICK)
    model.fit(data.X, data.y)
    estimates_of(facts, model)
    search_of(facts, model)
    predictions_of(facts, model, some_rows(data.X_test))
    facts.add("score", model.score(data.X_test, data.y_test))


# Building blocks. ---------------------------------------------------------------------------------


def compressed(facts: Facts) -> None:
    data = load_mroz()
    X, y = data[MROZ_FEATURES], data["lwage"]
    masks = np.random.default_rng(1).random((25, X.shape[1])) < 0.4
    for standardize in (False, True, "features"):
        small = compress(X, y, standardize=standardize)
        facts.add(f"{standardize}", small.moments.solve(masks))
    weight = frequencies(len(X))
    small = compress(X, y, sample_weight=weight, prediction_features=MROZ_FEATURES[:5])
    facts.add("weighted", small.moments.solve(masks & (np.arange(X.shape[1]) < 5)))


def trained(facts: Facts) -> None:
    data = make_selection(800, 8, 4, random_state=2)
    small = compress(data.X, data.y)
    noise = np.random.default_rng(7).gumbel(size=(120, 2, 8))
    for step_on in ("log_pi", "pi"):
        for standardize in (False, True):
            found = assignment.train(
                small.moments,
                small.rows,
                noise=noise,
                epochs=120,
                step_on=step_on,
                standardize=standardize,
                record_path=20,
            )
            facts.add(f"{step_on}, {standardize}", found)
    log_pi = np.log([[0.3] * 8, [0.7] * 8])
    facts.add("assign", assignment.assign(log_pi, noise[:5]))
    facts.add("relaxation", assignment.relaxation(log_pi, noise[:5], 0.7))
    facts.add("relaxation_slope", assignment.relaxation_slope(log_pi, noise[:5], 0.7))
