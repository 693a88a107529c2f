"""What a type checker knows of fitted models: `make check` reads this file, and nothing runs it."""

from typing import Any, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    bounds,
    etable,
    load,
)
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.results import ModelTable

Floats = NDArray[np.float64]


def fitted(X: pd.DataFrame, y: "pd.Series[float]") -> None:
    model = Heckman(["educ"]).fit(X, y)
    assert_type(model, Heckman)
    assert_type(model.coef_, Floats)
    assert_type(model.selection_coef_, Floats)
    assert_type(model.rho_, float)
    assert_type(model.sigma_, float)
    assert_type(model.log_likelihood_, float | None)
    assert_type(model.row_counts_, dict[str, int])
    assert_type(model.support_, NDArray[np.bool_])
    assert_type(model.prediction_features_, list[Any])
    assert_type(model.predict(X), Floats)
    assert_type(model.predict(X, return_interval="confidence"), tuple[Floats, Floats])
    assert_type(model.score(X, y), float)
    assert_type(Heckman.from_formula("y ~ x", "~ x + z", X), Heckman)


def classes(X: pd.DataFrame, y: "pd.Series[float]") -> None:
    model = HeckmanProbit(["educ"]).fit(X, y)
    assert_type(model.rho_, float)
    assert_type(model.classes_, NDArray[Any])
    assert_type(model.predict_proba(X), Floats)
    assert_type(model.predict_proba(X, return_interval="confidence"), tuple[Floats, Floats])
    assert_type(model.predict_proba(X, "selected", "confidence"), tuple[Floats, Floats])


def others(X: pd.DataFrame, y: "pd.Series[float]") -> None:
    assert_type(HeckmanBestSubset().fit(X, y).coef_, Floats)
    assert_type(HeckmanBestSubset().fit(X, y).candidates_, pd.DataFrame)
    assert_type(HeckmanAverage().fit(X, y).inclusion_, pd.DataFrame)
    assert_type(NaiveOLS().fit(X, y).coef_, Floats)
    assert_type(InverseProbabilityWeighted().fit(X, y).n_clipped_, int)
    assert_type(InverseProbabilityWeighted().fit(X, y).tidy(), pd.DataFrame)
    assert_type(DoublyRobust().fit(X, y, groups=y).mean_, float)
    assert_type(bounds.lee(y, X["trained"]), bounds.Bounds)
    assert_type(Heckman().fit(X, y).bounds(X, y).tidy(), pd.DataFrame)
    assert_type(etable([HeckmanBestSubset(), NaiveOLS()], under="interval"), ModelTable)
    assert_type(load("wages.heckmanfa"), SelectionModel | ObservedRegressor)
