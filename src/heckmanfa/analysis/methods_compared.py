"""The methods of the package that are compared, each as an unfitted estimator."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from heckmanfa.analysis.model_classes import class_named
from heckmanfa.analysis.outcome_models import OUTCOME_MODELS, USUAL_KIND
from heckmanfa.analysis.prepared import EXTRACTIONS
from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.estimators.doubly_robust import DoublyRobust
from heckmanfa.estimators.ru import RURegressor
from heckmanfa.estimators.weighted import InverseProbabilityWeighted
from heckmanfa.fit.family import Family, family_named
from heckmanfa.text.option_types import Method, OnProblem, Search
from heckmanfa.text.option_words import option
from heckmanfa.text.wording import CRITERIA

_METHODS: dict[Method, str] = {"two-step": "two-step", "ml": "ML"}
_TRAINED = {"fa": "Heckman-FA", "fa-star": "Heckman-FA*", "correlation": "Heckman-C"}


class AtZero(BaseEstimator):
    """A selection model with rho held at zero: its equations are then apart."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: pd.DataFrame, y: Floats, **passed: Any) -> Any:
        """Return the model, fitted to all rows."""
        return clone(self.model).set_params(rho=0.0).fit(X, y, **passed)


class Uncorrected(BaseEstimator):
    """A selection model of the selected rows alone, which then corrects for nothing."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: pd.DataFrame, y: Floats, *, selected: Mask, sample_weight: Any = None) -> Any:
        """Return the model, fitted to the selected rows with an outcome; a missing one is NaN."""
        kept = selected & ~np.isnan(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        return clone(self.model).fit(X.loc[kept], y[kept], sample_weight=weight)


def methods(
    feature_groups: list[list[Any]] | None = None,
    seed: int = 0,
    ru: bool | None = None,
    on_separation: OnProblem = "error",
    family: Family | None = None,
    equations: Mapping[str, Any] | None = None,
    predicting: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Return an unfitted estimator for each method, by name.

    Searches keep the columns of each of ``feature_groups`` together; the lasso cannot, and is then
    left out. RU regression is included if ``ru``, which defaults to whether Torch is installed. The
    ``family`` of the outcome says which methods there are. The best subset and the averages take
    ``equations``: ``search_in``, ``selection_always`` and ``selection_never``. Only the columns
    ``predicting`` may predict; None is all, and leaves out the series, which needs an exclusion.
    """
    family = family or family_named(USUAL_KIND)
    estimators = OUTCOME_MODELS[family.name].estimators
    made = {search: class_named(name) for search, name in estimators.items()}
    common: dict[str, Any] = {"on_collinear": "drop", "on_separation": on_separation}
    groups: dict[str, Any] = {**common, "feature_groups": feature_groups or None}
    either: dict[str, Any] = {**groups, **_taken(made, equations or {}, family)}
    compared: dict[str, Any] = {}
    if family.has_classes:
        compared[family.words.naive_short] = Uncorrected(made["none"](on_collinear="drop"))
    elif family.is_ordered:
        compared[family.words.naive_short] = AtZero(made["none"](**common))
    else:
        compared["naive OLS"] = NaiveOLS(on_collinear="drop")
        compared["IPW"] = InverseProbabilityWeighted(**common)
        compared["doubly robust"] = DoublyRobust(on_collinear="drop", random_state=seed)
    if len(family.methods) == 1:
        compared["all features"] = made["none"](**common)
    else:
        for method in family.methods:
            compared[f"{_METHODS[method]}, all features"] = made["none"](method=method, **common)
    if "errors" in OUTCOME_MODELS[family.name].has:
        heavy = made["none"](method="ml", errors="t", **common)
        compared["ML with t errors, all features"] = heavy
        if predicting is not None:
            compared["series, all features"] = made["none"](method="series", **common)
    if "lasso" in made and not feature_groups:
        compared["Heckman lasso"] = made["lasso"](**common)
    for search, name in _TRAINED.items():
        if search in made:
            compared[name] = made[search](EXTRACTIONS[search], random_state=seed, **groups)
    if "best-subset" in made:
        compared["best subset"] = made["best-subset"](**either)
    for weights in ("aic", "bic") if "average" in made else ():
        compared[f"average by {CRITERIA[weights]}"] = made["average"](weights, **either)
    if ru is None:
        ru = importlib.util.find_spec("torch") is not None
    if ru and not family.reads_labels:
        compared["RU"] = RURegressor(random_state=seed)
    if predicting is None:
        return compared
    for estimator in compared.values():
        own = estimator.get_params(deep=False).get("model", estimator)
        own.set_params(prediction_features=list(predicting))
    return compared


def _taken(
    made: Mapping[Search, Any], equations: Mapping[str, Any], family: Family
) -> dict[str, Any]:
    """Return what the searches of a family take of ``equations``; refuse what they cannot heed."""
    search = made.get("best-subset")
    names = set() if search is None else set(search().get_params(deep=False))
    for name, value in equations.items():
        if search is not None and name not in names and value not in ("prediction", (), [], None):
            raise InputError(
                f"{option(name)} is for searches in both equations, and that of the "
                f"{family.words.model} is in the first alone: leave it out"
            )
    return {name: value for name, value in equations.items() if name in names}
