"""What every estimator promises, whatever it fits: of the same rows, the same model."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanOrdered,
    HeckmanProbit,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
)
from heckmanfa.errors import (
    HeckmanfaError,
    InputError,
    MissingValueError,
    NoOutcomeError,
    UnknownFeatureError,
)

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

NAMES = ["age", "educ", "exper", "kids", "income", "city"]
PREDICTION = ["age", "exper", "kids"]
EVERY = {
    "two-step": Heckman(PREDICTION),
    "ml": Heckman(PREDICTION, method="ml"),
    "robust": Heckman(PREDICTION, cov_type="robust"),
    "held rho": Heckman(PREDICTION, rho=0.3),
    "sample": HeckmanFA(epochs=60, n_draws=60, random_state=0),
    "rank": HeckmanFA("rank", epochs=60, random_state=0),
    "correlation": HeckmanFA("correlation"),
    "best subset": HeckmanBestSubset(),
    "honest": HeckmanBestSubset(honest=True, n_splits=3, random_state=0),
    "lasso": HeckmanLasso(),
    "average": HeckmanAverage(),
    "probit": HeckmanProbit(PREDICTION),
    "ordered": HeckmanOrdered(PREDICTION),
    "probit search": HeckmanProbitBestSubset(n_refits=3),
    "probit average": HeckmanProbitAverage(),
    "ols": NaiveOLS(PREDICTION),
    "ipw": InverseProbabilityWeighted(PREDICTION, clip=2.0),
    "doubly robust": DoublyRobust(PREDICTION, random_state=0),
    "ru": RURegressor(PREDICTION, epochs=2, random_state=0),
}
# What draws rows, or steps through them, does so by their places.
DRAWN = ("sample", "rank", "honest", "doubly robust", "ru")


@pytest.fixture(params=EVERY)
def name(request):
    if request.param == "ru":
        pytest.importorskip("torch", reason="RU regression needs Torch")
    return request.param


@pytest.fixture
def rows(name, simulated):
    """The rows as a frame, and an outcome of numbers or of classes."""
    y = simulated.y
    if name.startswith("probit"):
        y = np.where(np.isnan(y), np.nan, y > np.nanmedian(y))
    if name == "ordered":
        y = np.where(np.isnan(y), np.nan, np.digitize(y, np.nanquantile(y, [0.3, 0.7])))
    return pd.DataFrame(simulated.X.copy(), columns=NAMES), y.copy()


def by_position(model):
    model = clone(model)
    if model.prediction_features is not None:
        model.set_params(prediction_features=[NAMES.index(one) for one in PREDICTION])
    return model


def texts(model):
    """All that a model prints without rows."""
    names = [one for one in ("summary", "diagnostics", "search_report") if hasattr(model, one)]
    return [str(getattr(model, one)()) for one in names]


def same(found, expected, rtol=1e-12):
    """Compare estimates, standard errors and limits."""
    np.testing.assert_array_equal(found.support_, expected.support_)
    if hasattr(expected, "coef_"):
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=rtol, atol=1e-12)
    if hasattr(expected, "tidy"):
        columns = ["estimate", "std_error", "ci_low", "ci_high"]
        np.testing.assert_allclose(
            found.tidy()[columns], expected.tidy()[columns], rtol=rtol, atol=1e-12
        )


def bits(model):
    """Estimates and their covariance, to the last bit; RU regression has neither."""
    if hasattr(model, "fit_"):
        return model.coef_.tobytes(), np.asarray(model.fit_.covariance).tobytes()
    return model.coef_.tobytes() if hasattr(model, "coef_") else None


def test_a_fit_changes_neither_data_nor_parameters_and_is_the_same_twice(name, rows):
    X, y = rows
    model = clone(EVERY[name])
    before, values, outcome = model.get_params(), X.to_numpy().copy(), y.copy()
    y.setflags(write=False)
    first = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(X, values)
    np.testing.assert_array_equal(y, outcome)
    assert model.get_params() == before
    kept = bits(model)
    assert np.all(model.fit(X, y).predict(X) == first)
    assert bits(model) == kept


def test_frames_and_layouts_of_any_kind_give_the_same(name, rows):
    X, y = rows
    expected = clone(EVERY[name]).fit(X, y)
    other = clone(EVERY[name]).fit(pl.from_pandas(X), y)
    assert other.prediction_features_ == expected.prediction_features_
    same(other, expected)
    assert np.all(other.predict(pl.from_pandas(X)) == other.predict(X))
    values = X.to_numpy()
    for array in (values, np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]):
        found = by_position(EVERY[name]).fit(array, y)
        places = found.prediction_features_
        assert [NAMES[one] for one in places] == expected.prediction_features_
        same(found, expected)


def test_formulas_give_the_same(name, rows):
    if not hasattr(EVERY[name], "from_formula"):
        pytest.skip("it takes no formulas")
    X, y = rows
    options = EVERY[name].get_params()
    named = options["prediction_features"] or NAMES
    for role in ("prediction_features", "selection_features", "categorical_features"):
        del options[role]
    formulas = f"y ~ {' + '.join(named)}", f"~ {' + '.join(NAMES)}"
    found = type(EVERY[name]).from_formula(*formulas, X.assign(y=y), **options)
    expected = clone(EVERY[name]).fit(X, y)
    assert found.prediction_features_ == expected.prediction_features_
    same(found, expected, rtol=1e-10)


def test_copies_and_files_predict_and_say_the_same(name, rows, reloaded):
    X, y = rows
    model = clone(EVERY[name]).fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), reloaded(model)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        if hasattr(model, "tidy"):
            pd.testing.assert_frame_equal(again.tidy(), model.tidy(), check_exact=True)
        assert texts(again) == texts(model)
        if hasattr(model, "candidates_"):
            pd.testing.assert_frame_equal(again.candidates_, model.candidates_)
    assert not hasattr(clone(model), "support_")
    # Nothing is as long as the data, which have 38,400 bytes, but a network and assignments.
    assert "average" in name or name == "ru" or len(pickle.dumps(model)) < 20_000


def test_predictions_of_parts_are_parts_of_predictions(name, rows):
    X, y = rows
    model = clone(EVERY[name]).fit(X, y)
    for kind in ("marginal", "selected", "unselected") if hasattr(model, "fit_") else (None,):
        options = {} if kind is None else {"kind": kind}
        whole = model.predict(X, **options)
        parts = np.concatenate([model.predict(X[i : i + 1], **options) for i in range(5)])
        np.testing.assert_allclose(parts, whole[:5], rtol=1e-12)
        np.testing.assert_allclose(model.predict(X[::-1], **options), whole[::-1], rtol=1e-12)


def test_frequency_weights_are_repeated_rows(name, rows):
    if name in DRAWN:
        pytest.skip("what is drawn depends on the number of rows")
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(EVERY[name]).fit(X, y, sample_weight=weight)
    repeated = clone(EVERY[name]).fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight))
    same(weighted, repeated, rtol=1e-8)


def test_what_cannot_be_fitted_or_predicted_is_refused(name, rows):
    X, y = rows
    model = clone(EVERY[name])
    with pytest.raises(HeckmanfaError) as caught:
        model.fit(X, np.full(len(y), np.nan))
    assert isinstance(caught.value, NoOutcomeError)
    with pytest.raises(UnknownFeatureError, match=r"'ages'.*'age'"):
        clone(model).set_params(prediction_features=["ages"]).fit(X, y)
    with pytest.raises(UnknownFeatureError, match=r"6.*0 to 5"):
        clone(model).set_params(prediction_features=[6]).fit(X.to_numpy(), y)
    with pytest.raises(InputError, match=r"\['age'\]"):
        clone(model).set_params(prediction_features="age").fit(X, y)
    feature = model.fit(X, y).prediction_features_[0]
    with pytest.raises(MissingValueError, match=feature):
        model.predict(X.assign(**{feature: np.nan}))
