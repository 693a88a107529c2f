"""Cases of `same_numbers`: averages, binary outcomes, logarithms and a held rho."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cases_estimates import PREDICTION, frequencies
from benchmarks.facts import Facts
from benchmarks.model_facts import (
    all_of,
    attributes_of,
    details_of,
    estimates_of,
    predictions_of,
    scores_of,
    search_of,
    some_rows,
)
from benchmarks.public import MROZ_FEATURES, MROZ_SELECTION
from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanProbit,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
)
from heckmanfa.datasets import load_mroz, make_selection

Case = Callable[[Facts], None]
_TWO = ["educ", "exper"]
_FEW = ["educ", "exper", "age", "kids5", "nwifeinc"]
_GROUPS = {"children": ["kids5", "kids618"]}


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for room, models in (
        ("held rho", _held()),
        ("log", _logs()),
        ("average", _averages()),
        ("binary", _binary()),
        ("binary average", _binary_averages()),
    ):
        found |= {
            f"{room}/{name}": partial(of_mroz, model=model, outcome=room.partition(" ")[0])
            for name, model in models.items()
        }
    return found | {
        "average/many features": many_features,
        "average/formula": average_by_formula,
        "binary/formula": binary_by_formula,
        "binary/simulated": binary_simulated,
        "details/two-step": partial(details, model=Heckman(PREDICTION)),
        "details/ml": partial(details, model=Heckman(PREDICTION, method="ml")),
        "details/search": partial(details, model=HeckmanBestSubset(tolerance=1.0)),
        "details/average": partial(details, model=HeckmanAverage()),
        "details/held rho": partial(details, model=Heckman(_TWO, rho=0.3)),
        "details/log": partial(
            details, model=Heckman(_TWO, outcome_transform="log"), outcome="log"
        ),
        "details/binary": partial(details, model=HeckmanProbit(_TWO), outcome="binary"),
        "details/binary average": partial(details, model=HeckmanProbitAverage(), outcome="binary"),
    }


def _held() -> dict[str, Any]:
    return {
        "two-step": Heckman(PREDICTION, rho=0.4),
        "two-step, robust": Heckman(PREDICTION, rho=-0.4, cov_type="robust"),
        "ml": Heckman(PREDICTION, rho=0.4, method="ml"),
        "ml, clusters": Heckman(PREDICTION, rho=0.4, method="ml", cov_type="cluster"),
        "frequency weights": (Heckman(PREDICTION, rho=0.4), "frequency"),
        "no exclusion": Heckman(None, rho=0.0),
    }


def _logs() -> dict[str, Any]:
    return {
        "two-step": Heckman(PREDICTION, outcome_transform="log"),
        "ml": Heckman(PREDICTION, method="ml", outcome_transform="log1p"),
        "robust": Heckman(PREDICTION, cov_type="robust", outcome_transform="log"),
        "search": HeckmanBestSubset(outcome_transform="log", tolerance=1.0),
        "trained": HeckmanFA(
            "rank", outcome_transform="log1p", epochs=60, random_state=0, max_features=4
        ),
        "average": HeckmanAverage(outcome_transform="log"),
        "average, ml": HeckmanAverage(outcome_transform="log1p", method="ml"),
    }


def _averages() -> dict[str, Any]:
    sampling = {"weight_kind": "sampling", "cov_type": "robust"}
    return {
        "bic": HeckmanAverage(),
        "aic, ml": HeckmanAverage("aic", method="ml"),
        "mean, window": HeckmanAverage("mean", rho_range=(-0.9, 0.9)),
        "ebic, groups": HeckmanAverage("ebic", feature_groups=_GROUPS, always=["educ"]),
        "always corrected": HeckmanAverage(correction="always", never=["age"]),
        "never corrected": HeckmanAverage(correction="never", max_features=3),
        "no share": HeckmanAverage(all_features_share=0.0, cov_type="classical"),
        "both equations": HeckmanAverage(search_in="both", selection_always=["age"]),
        "clusters": HeckmanAverage(cov_type="cluster"),
        "frequency weights": (HeckmanAverage(), "frequency"),
        "sampling weights": (HeckmanAverage(**sampling), "sampling"),
        "sampling weights, ml": (HeckmanAverage(method="ml", **sampling), "sampling"),
    }


def _binary() -> dict[str, Any]:
    sampling = {"weight_kind": "sampling", "cov_type": "robust"}
    return {
        "classical": HeckmanProbit(_TWO),
        "robust": HeckmanProbit(_TWO, cov_type="robust"),
        "clusters": HeckmanProbit(_TWO, cov_type="cluster"),
        "frequency weights": (HeckmanProbit(_TWO), "frequency"),
        "sampling weights": (HeckmanProbit(_TWO, **sampling), "sampling"),
        "held rho": HeckmanProbit(_TWO, rho=0.3),
        "held rho, robust": HeckmanProbit(_TWO, rho=-0.3, cov_type="robust"),
        "no exclusion": HeckmanProbit(),
        "from rho": HeckmanProbit(_TWO, start=-0.4),
        "search": HeckmanProbitBestSubset(),
        "search, aic, groups": HeckmanProbitBestSubset(
            "aic", feature_groups=_GROUPS, always=["exper"], n_refits=5
        ),
        "search, clusters": HeckmanProbitBestSubset(cov_type="cluster", n_refits=5),
        "search, both equations": HeckmanProbitBestSubset(search_in="both", n_refits=5),
        "search, honest": HeckmanProbitBestSubset(
            honest=True, n_splits=3, random_state=1, n_refits=4
        ),
    }


def _binary_averages() -> dict[str, Any]:
    return {
        "bic": HeckmanProbitAverage(),
        "aic, robust": HeckmanProbitAverage("aic", cov_type="robust", feature_groups=_GROUPS),
        "always corrected": HeckmanProbitAverage(correction="always", never=["age"]),
        "both equations": HeckmanProbitAverage(search_in="both"),
        "frequency weights": (HeckmanProbitAverage(), "frequency"),
        "sampling weights": (
            HeckmanProbitAverage(weight_kind="sampling", cov_type="robust"),
            "sampling",
        ),
    }


def outcome_of(data: pd.DataFrame, outcome: str) -> pd.Series:
    """The wage, its logarithm, or whether it is at least 4; missing for who does not work."""
    if outcome == "binary":
        return pd.Series(np.where(data["wage"] >= 4, "high", "low")).where(data["lfp"] == 1)
    return data["wage"].where(data["lfp"] == 1) if outcome == "log" else data["lwage"]


def of_mroz(facts: Facts, model: Any, outcome: str) -> None:
    model, weights = model if isinstance(model, tuple) else (model, None)
    data = load_mroz()
    X = data[[*_FEW, "kids618"] if outcome in ("average", "binary") else MROZ_SELECTION]
    y = outcome_of(data, outcome)
    given: dict[str, Any] = {}
    if model.cov_type == "cluster":
        given["groups"] = data["age"].to_numpy()
    if weights == "frequency":
        given["sample_weight"] = frequencies(len(X))
    if weights == "sampling":
        given["sample_weight"] = np.random.default_rng(6).uniform(0.5, 2.0, len(X))
    all_of(facts, model.fit(X, y, **given), X, y, **given)
    if hasattr(model, "search_report"):
        search_of(facts, model)
    if outcome == "log":
        facts.add("link", lambda: model.predict(some_rows(X), scale="link"))
        facts.add("margins.link", lambda: model.margins(X, scale="link").tidy())


def details(facts: Facts, model: Any, outcome: str = "linear") -> None:
    data = load_mroz()
    X, y = data[[*_FEW, "expersq", "kids618"]], outcome_of(data, outcome)
    details_of(facts, model.fit(X, y), X, y)


def many_features(facts: Facts) -> None:
    """Too many features to weigh every assignment: they are drawn."""
    data = make_selection(400, 23, 4, random_state=3)
    model = HeckmanAverage(random_state=5).fit(data.X, data.y)
    attributes_of(facts, model)
    facts.add("tidy", model.tidy)
    predictions_of(facts, model, some_rows(data.X))


def average_by_formula(facts: Facts) -> None:
    data = load_mroz()
    data["region"] = np.random.default_rng(9).choice(["east", "north", "west"], len(data))
    model = HeckmanAverage.from_formula(
        "lwage ~ educ * city + exper + I(exper**2) + C(region)",
        "educ * city + exper + I(exper**2) + C(region) + age + kids5",
        data,
    )
    estimates_of(facts, model)
    predictions_of(facts, model, some_rows(data))
    facts.add("margins", lambda: model.margins(data, "marginal", features=["educ"]).tidy())


def binary_by_formula(facts: Facts) -> None:
    data = load_mroz()
    data["region"] = np.random.default_rng(9).choice(["east", "north", "west"], len(data))
    data["high"] = (data["wage"] >= 4).astype(float).where(data["lfp"] == 1)
    model = HeckmanProbit.from_formula(
        "high ~ educ * city + exper + C(region)",
        "educ * city + exper + C(region) + age + kids5",
        data,
    )
    all_of(facts, model, data)


def binary_simulated(facts: Facts) -> None:
    """More rows than a search in memory needs, and all features of Mroz."""
    data = make_selection(3000, 8, 4, outcome_kind="binary", rho=-0.6, random_state=12)
    for name, model in {
        "plain": HeckmanProbit(data.support),
        "search": HeckmanProbitBestSubset("ebic", n_refits=5),
        "average": HeckmanProbitAverage(),
    }.items():
        inner = Facts()
        estimates_of(inner, model.fit(data.X, data.y))
        predictions_of(inner, model, some_rows(data.X))
        scores_of(inner, model, data.X, data.y)
        facts.flat |= {f"{name}.{key}": one for key, one in inner.flat.items()}
    mroz = load_mroz()
    wide = HeckmanProbitBestSubset(n_refits=10).fit(mroz[MROZ_FEATURES], outcome_of(mroz, "binary"))
    attributes_of(facts, wide, "mroz.")
    facts.add("mroz.tidy", wide.tidy)
