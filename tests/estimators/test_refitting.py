"""A fit changes an estimator wholly or not at all."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import heckmanfa.estimators.fitting
from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
)
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import (
    AllObservedWarning,
    FewClustersWarning,
    HeckmanfaWarning,
    InputError,
)
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.estimators.ru import RURegressor

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
MROZ = load_mroz()
X, Y = MROZ[FEATURES], MROZ["lwage"]
CLUSTERS = np.arange(len(Y)) % 60

ESTIMATORS = {
    "two-step": lambda: Heckman(["educ", "exper"]),
    "ml": lambda: Heckman(["educ", "exper"], method="ml"),
    "robust": lambda: Heckman(["educ", "exper"], cov_type="robust"),
    "formula": lambda: Heckman.from_formula(
        "lwage ~ educ + exper", "lfp ~ educ + exper + age + kids5 + nwifeinc", MROZ
    ),
    "heckman-fa": lambda: HeckmanFA(epochs=20, n_draws=20, record_path=5, random_state=0),
    "best subset": lambda: HeckmanBestSubset(),
    "honest": lambda: HeckmanBestSubset(honest=True, n_splits=3, random_state=0),
    "honest ml": lambda: HeckmanFA(
        epochs=9, n_draws=9, honest=True, n_splits=2, random_state=1, method="ml"
    ),
    "average": lambda: HeckmanAverage(),
    "average ml": lambda: HeckmanAverage(method="ml"),
    "lasso": lambda: HeckmanLasso(),
    "ols": lambda: NaiveOLS(["educ", "exper"]),
    "ipw": lambda: InverseProbabilityWeighted(["educ", "exper"]),
    "doubly robust": lambda: DoublyRobust(["educ", "exper"], random_state=0),
    "ru": lambda: RURegressor(["educ", "exper"], epochs=2, random_state=0),
}


@pytest.fixture(autouse=True)
def _other_warnings_are_not_the_matter():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        yield


@pytest.fixture(params=ESTIMATORS)
def name(request):
    if request.param == "ru":
        pytest.importorskip("torch")
    return request.param


def wrong_parameter(model, patch):
    name = "on_collinear" if hasattr(model, "on_collinear") else "gamma"
    patch.setitem(vars(model), name, "wrong")
    model.fit(X, Y)


def nothing_observed(model, patch):
    model.fit(X[FEATURES[::-1]], Y * np.nan)


def dates(model, patch):
    model.fit(X.assign(educ=pd.Timestamp("2020-01-01"))[FEATURES[::-1]], Y)


def warning_as_error(model, patch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeckmanfaWarning)
        if isinstance(model, RURegressor):
            patch.setitem(vars(model), "learning_rate", 1e30)
        # No outcome is missing; for least squares there are too many features, too.
        model.set_params(prediction_features=None).fit(X.iloc[:4], Y.iloc[:4])


def interrupted(model, patch):
    """An interruption after everything, or nearly, was set."""
    owner, name = heckmanfa.estimators.fitting, "attributes"
    if isinstance(model, ObservedRegressor):
        last = {RURegressor: "_train", DoublyRobust: "_estimate"}
        owner, name = type(model), last.get(type(model), "_regress")
    original = getattr(owner, name)

    def interrupt(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    patch.setattr(owner, name, interrupt)
    model.fit(X[FEATURES[::-1]], Y)


FAILURES = [wrong_parameter, nothing_observed, dates, warning_as_error, interrupted]


@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_failed_refit_the_estimator_is_as_it_was(name, failure, monkeypatch):
    fitted, rows = ESTIMATORS[name](), X
    if name == "formula":
        rows = MROZ
    else:
        fitted.fit(X, Y)
    predicted = fitted.predict(rows)
    parameters = fitted.get_params()
    state, content = dict(vars(fitted)), pickle.dumps(fitted)
    with monkeypatch.context() as patch, pytest.raises((InputError, Warning, KeyboardInterrupt)):
        failure(fitted, patch)
    fitted.set_params(**parameters)
    assert list(vars(fitted)) == list(state)
    assert all(vars(fitted)[name] is value for name, value in state.items())
    assert pickle.dumps(fitted) == content
    np.testing.assert_array_equal(fitted.predict(rows), predicted)


@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_failed_first_fit_the_estimator_is_unfitted_as_before(name, failure, monkeypatch):
    model = clone(ESTIMATORS[name]())
    parameters = model.get_params()
    with monkeypatch.context() as patch, pytest.raises((InputError, Warning, KeyboardInterrupt)):
        failure(model, patch)
    model.set_params(**parameters)
    assert vars(model).keys() == vars(clone(model)).keys()
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_names_of_a_failed_refit_do_not_meet_the_coefficients_of_the_first():
    model = Heckman(["educ", "exper"]).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(InputError):
        model.fit(X[FEATURES[::-1]], Y * np.nan)
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.raises(InputError, match="same order"):
        model.predict(X[FEATURES[::-1]])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (lambda: ESTIMATORS["honest"]().fit(X, Y), {"honest": False}),
        (lambda: ESTIMATORS["heckman-fa"]().fit(X, Y), {"extraction": "correlation"}),
        (lambda: ESTIMATORS["ml"]().fit(X, Y), {"method": "two-step"}),
        (
            lambda: Heckman(["educ", "exper"], cov_type="cluster").fit(X, Y, groups=CLUSTERS),
            {"cov_type": None},
        ),
        (ESTIMATORS["formula"], {}),
        (lambda: HeckmanBestSubset().fit(X, Y), {}),
        (lambda: ESTIMATORS["ipw"]().fit(X, Y), {}),
    ],
)
@pytest.mark.parametrize("names", [True, False])
def test_a_refit_keeps_nothing_of_the_fit_before(first, then, names):
    model = first().set_params(**then)
    columns = model.get_params()["prediction_features"]
    if columns is not None and not names:
        model.set_params(prediction_features=[0, 1], selection_features=None)
    rows = X if names else X.to_numpy()
    fresh = clone(model)
    assert vars(model.fit(rows, Y)).keys() == vars(fresh.fit(rows, Y)).keys()
    assert hasattr(model, "feature_names_in_") == names
    np.testing.assert_array_equal(model.predict(rows), fresh.predict(rows))


def test_a_search_is_forgotten_where_there_is_nothing_to_search():
    model = ESTIMATORS["honest"]().fit(X, Y)
    with pytest.warns(AllObservedWarning):
        model.fit(X, MROZ["hours"])
    assert not hasattr(model, "honest_")
    assert model.fit_.search.result is None


def test_what_a_user_wrote_on_an_estimator_stays():
    model = Heckman(["educ", "exper"])
    model.note = "Table 2"
    model.fit(X, Y)
    with pytest.raises(InputError):
        model.fit(X, Y * np.nan)
    assert model.fit(X, Y).note == "Table 2"


def test_a_warning_of_few_clusters_that_is_an_error_changes_nothing():
    model = Heckman(["educ", "exper"], cov_type="cluster")
    model.fit(X, Y, groups=CLUSTERS)
    before, rho = model.fit_, model.rho_
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewClustersWarning)
        with pytest.raises(FewClustersWarning, match="5 clusters"):
            model.fit(X, Y + X["age"] / 10, groups=np.arange(len(Y)) % 5)
    assert model.fit_ is before
    assert model.rho_ == rho
    assert model.n_clusters_ == 60
