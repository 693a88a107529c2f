"""Every row of docs/scikit_learn.md: which wrappers of scikit-learn work with missing outcomes.

A row that works gives what the models give without the wrapper, whatever values were filled in
where an outcome is missing. One that is silently wrong depends on those values.
"""

import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from heckmanfa import Heckman, HeckmanProbit, NaiveOLS
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError
from heckmanfa.model_selection import SelectionKFold, observed_auc, observed_r2

PAGE = Path(__file__).parents[1] / "docs" / "scikit_learn.md"
# Every other row: fits by the hundred, and nothing here depends on their number.
MROZ = load_mroz().iloc[::2]
X = MROZ[["educ", "exper", "age", "kids5", "nwifeinc"]].to_numpy(dtype=float)
Y = MROZ["lwage"].to_numpy()
S = ~np.isnan(Y)
C = np.where(S, Y > 1.2, np.nan)
CHOICES = {"prediction_features": [[0, 1], [0, 1, 2]]}


def linear():
    return Heckman([0, 1])


def binary():
    return HeckmanProbit([0, 1])


def folds():
    # A new one each time: StackingRegressor and others set its random_state.
    return SelectionKFold(3)


def by_hand(model, train, test):
    """Score a model on the selected rows of a fold."""
    seen = test[S[test]]
    predicted = model().fit(X[train], Y[train]).predict(X[seen], kind="selected")
    return r2_score(Y[seen], predicted)


@cache
def scores(model=linear):
    return [by_hand(model, *fold) for fold in folds().split(X, Y)]


@cache
def out_of_fold(model=linear):
    y, method = (C, "predict_proba") if model is binary else (Y, "predict")
    parts = [
        (test, getattr(model().fit(X[train], y[train]), method)(X[test]))
        for train, test in folds().split(X, y)
    ]
    predicted = np.empty((len(X), *parts[0][1].shape[1:]))
    for test, values in parts:
        predicted[test] = values
    return predicted


def more():
    return Heckman([0, 1, 2])


def mean_scores():
    return [np.mean(scores(linear)), np.mean(scores(more))]


def bagged(wrapper, model, y, method):
    """Average models that are fitted to the rows that a wrapper drew."""
    fits = [model().fit(X[rows], y[rows]) for rows in wrapper.estimators_samples_]
    return np.mean([getattr(fit, method)(X) for fit in fits], axis=0)


def regression(make, want):
    """Compare predictions of a fitted wrapper."""

    def run(y, fit, _):
        wrapper = make().fit(X, y, **fit)
        return wrapper.predict(X), want(wrapper)

    return run


def classes(make, want=lambda _: binary().fit(X, C).predict_proba(X)):
    def run(y, fit, _):
        wrapper = make().fit(X, y, **fit)
        return wrapper.predict_proba(X), want(wrapper)

    return run


def searched(make):
    return lambda y, fit, _: (
        np.sort(make().fit(X, y, **fit).cv_results_["mean_test_score"]),
        np.sort(mean_scores()),
    )


def chosen(make, want):
    return lambda y, fit, _: (make().fit(X, y, **fit).get_support(), want())


@cache
def top(count):
    size = np.abs(Heckman().fit(X, Y).coef_)
    return size >= np.sort(size)[-count]


@cache
def best_first():
    found = [
        np.mean(
            [
                r2_score(
                    Y[test[S[test]]],
                    Heckman()
                    .fit(X[train][:, [j]], Y[train])
                    .predict(X[test[S[test]]][:, [j]], kind="selected"),
                )
                for train, test in folds().split(X, Y)
            ]
        )
        for j in range(X.shape[1])
    ]
    return np.arange(X.shape[1]) == np.argmax(found)


def dependence(y, fit, _):
    model = linear().fit(X, y, **fit)
    found = partial_dependence(model, X, [0], grid_resolution=5)
    rows = [np.column_stack([np.full(len(X), at), X[:, 1:]]) for at in found["grid_values"][0]]
    return found["average"][0], [linear().fit(X, Y).predict(each).mean() for each in rows]


def importance(y, fit, _, scoring=None):
    model = linear().fit(X, y, **fit)
    options = {"n_repeats": 2, "random_state": 0}
    got = permutation_importance(model, X, y, scoring=scoring, **options)
    want = permutation_importance(
        linear().fit(X, Y),
        X,
        Y,
        **options,
        scoring=lambda model, X, y: r2_score(Y[S], model.predict(X[S], kind="selected")),
    )
    return got["importances"], want["importances"]


def thresholds(y, fit, _):
    tuned = TunedThresholdClassifierCV(binary(), cv=folds()).fit(X, y, **fit)
    return tuned.best_threshold_, 0.5


def calibration(y, fit, _):
    return CalibrationDisplay.from_estimator(binary().fit(X, y, **fit), X, y).prob_true[0], 0.0


def auc(y, _, params):
    want = []
    for train, test in folds().split(X, C):
        seen = test[S[test]]
        chance = binary().fit(X[train], C[train]).predict_proba(X[seen], kind="selected")
        want.append(roc_auc_score(C[seen], chance[:, 1]))
    return cross_val_score(binary(), X, y, cv=folds(), scoring=observed_auc, **params), want


def both(model):
    return np.column_stack([model.predict(X)] * 2)


def last_of_rfecv(scoring):
    def run(y, fit, _):
        wrapper = RFECV(Heckman(), cv=folds(), min_features_to_select=4, scoring=scoring)
        found = wrapper.fit(X, y, **fit).cv_results_
        return found["mean_test_score"][-1], np.mean(scores(Heckman))

    return run


AMOUNTS = {
    "cross_val_score": lambda y, _, params: (
        cross_val_score(linear(), X, y, cv=folds(), **params),
        scores(),
    ),
    "cross_validate": lambda y, _, params: (
        cross_validate(linear(), X, y, cv=folds(), scoring=observed_r2, **params)["test_score"],
        scores(),
    ),
    "cross_val_predict": lambda y, _, params: (
        cross_val_predict(linear(), X, y, cv=folds(), **params),
        out_of_fold(),
    ),
    "GridSearchCV": searched(lambda: GridSearchCV(linear(), CHOICES, cv=folds())),
    "RandomizedSearchCV": searched(
        lambda: RandomizedSearchCV(linear(), CHOICES, n_iter=2, cv=folds())
    ),
    "learning_curve": lambda y, _, params: (
        learning_curve(linear(), X, y, cv=folds(), train_sizes=[0.7], **params)[2][0],
        [by_hand(linear, train[: int(0.7 * 251)], test) for train, test in folds().split(X, Y)],
    ),
    "validation_curve": lambda y, _, params: (
        validation_curve(
            linear(),
            X,
            y,
            cv=folds(),
            param_name="prediction_features",
            param_range=CHOICES["prediction_features"],
            **params,
        )[1].mean(axis=1),
        mean_scores(),
    ),
    "permutation_test_score": lambda y, _, params: (
        permutation_test_score(linear(), X, y, cv=folds(), n_permutations=1, **params)[0],
        np.mean(scores()),
    ),
    "Pipeline": regression(
        lambda: make_pipeline(StandardScaler(), linear()), lambda _: linear().fit(X, Y).predict(X)
    ),
    "ColumnTransformer": regression(
        lambda: make_pipeline(
            ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough"), linear()
        ),
        lambda _: linear().fit(X, Y).predict(X),
    ),
    "VotingRegressor": regression(
        lambda: VotingRegressor([("heckman", linear()), ("ols", NaiveOLS())]),
        lambda _: (linear().fit(X, Y).predict(X) + NaiveOLS().fit(X, Y).predict(X)) / 2,
    ),
    "StackingRegressor": regression(
        lambda: StackingRegressor([("heckman", linear())], NaiveOLS(), cv=folds()),
        lambda _: (
            NaiveOLS()
            .fit(out_of_fold()[:, None], Y)
            .predict(linear().fit(X, Y).predict(X)[:, None])
        ),
    ),
    "StackingRegressor with RidgeCV": regression(
        lambda: StackingRegressor([("heckman", linear())], cv=folds()), lambda _: 0.0
    ),
    "SelectFromModel": chosen(
        lambda: SelectFromModel(Heckman(), threshold=-np.inf, max_features=2), lambda: top(2)
    ),
    "SequentialFeatureSelector": chosen(
        lambda: SequentialFeatureSelector(Heckman(), n_features_to_select=1, cv=folds()), best_first
    ),
    "partial_dependence": dependence,
    "permutation_importance": importance,
    "TransformedTargetRegressor": regression(
        lambda: TransformedTargetRegressor(
            linear(), func=lambda y: 2 * y, inverse_func=lambda y: y / 2, check_inverse=False
        ),
        lambda _: linear().fit(X, Y).predict(X),
    ),
    "BaggingRegressor": regression(
        lambda: BaggingRegressor(linear(), n_estimators=2, random_state=0),
        lambda wrapper: bagged(wrapper, linear, Y, "predict"),
    ),
    "MultiOutputRegressor": lambda y, fit, _: (
        MultiOutputRegressor(linear()).fit(X, np.column_stack([y, y]), **fit).predict(X),
        both(linear().fit(X, Y)),
    ),
    "RFE": chosen(lambda: RFE(Heckman(), n_features_to_select=2, step=3), lambda: top(2)),
    "RFECV": last_of_rfecv(observed_r2),
    "RFECV with its default scoring": last_of_rfecv(None),
    "AdaBoostRegressor": regression(lambda: AdaBoostRegressor(linear()), lambda _: 0.0),
    'scoring="r2" and others of scikit-learn': lambda y, _, params: (
        cross_val_score(linear(), X, y, cv=folds(), scoring="r2", error_score="raise", **params),
        scores(),
    ),
    "VotingRegressor.score": lambda y, fit, _: (
        VotingRegressor([("heckman", linear())]).fit(X, y, **fit).score(X, y),
        0.0,
    ),
}
CLASSES = {
    "cross_val_score of classes": auc,
    'cross_val_predict(method="predict_proba")': lambda y, _, params: (
        cross_val_predict(binary(), X, y, cv=folds(), method="predict_proba", **params),
        out_of_fold(binary),
    ),
    "VotingClassifier": classes(lambda: VotingClassifier([("probit", binary())], voting="soft")),
    "BaggingClassifier": classes(
        lambda: BaggingClassifier(binary(), n_estimators=2, random_state=0),
        lambda wrapper: bagged(wrapper, binary, C, "predict_proba"),
    ),
    "StackingClassifier": classes(
        lambda: StackingClassifier(
            [("probit", binary())], HeckmanProbit([0]), cv=folds(), passthrough=True
        ),
        lambda _: (
            HeckmanProbit([0])
            .fit(np.column_stack([out_of_fold(binary)[:, 1], X]), C)
            .predict_proba(np.column_stack([binary().fit(X, C).predict_proba(X)[:, 1], X]))
        ),
    ),
    "StackingClassifier with LogisticRegression": classes(
        lambda: StackingClassifier([("probit", binary())], cv=folds())
    ),
    "MultiOutputClassifier": lambda y, fit, _: (
        MultiOutputClassifier(binary()).fit(X, np.column_stack([y, y]), **fit).predict(X),
        both(binary().fit(X, C)),
    ),
    "FixedThresholdClassifier": classes(lambda: FixedThresholdClassifier(binary())),
    "TunedThresholdClassifierCV": thresholds,
    "CalibratedClassifierCV": classes(lambda: CalibratedClassifierCV(binary(), cv=folds())),
    "CalibrationDisplay": calibration,
}


def rows():
    """Yield the rows of the page's tables: wrapper, with NaN, with ``selected``."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        found = re.match(r"\| (.+?) \| (works|refuses) \| (works|refuses|\*\*wrong\*\*) \|", line)
        if found:
            yield found[1].replace("`", ""), found[2], found[3].strip("*")


ROWS = list(rows())


def test_the_page_lists_every_wrapper_that_is_tried():
    assert [name for name, _, _ in ROWS] == [*AMOUNTS, *CLASSES]


@pytest.fixture(autouse=True)
def _routed():
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(("name", "with_nan", "with_selected"), ROWS)
def test_a_wrapper_does_what_the_page_says(name, with_nan, with_selected):
    case, y = (AMOUNTS[name], Y) if name in AMOUNTS else (CLASSES[name], C)
    if with_nan == "refuses":
        with pytest.raises((ValueError, TypeError)):
            case(y, {}, {})
    else:
        got, want = case(y, {}, {})
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
    given = {"selected": S}
    fills = [np.where(S, y, fill) for fill in (0.0, 1.0)]
    if with_selected == "refuses":
        with pytest.raises((ValueError, TypeError)):
            case(fills[0], given, {"params": given})
        return
    (first, want), (second, _) = (case(filled, given, {"params": given}) for filled in fills)
    if with_selected == "wrong":
        assert np.max(np.abs(np.asarray(first) - np.asarray(second))) > 0.01
    else:
        np.testing.assert_allclose(first, want, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(second, want, rtol=1e-6, atol=1e-9)


def test_permutation_importance_takes_who_is_selected_from_its_scorer():
    def scorer(model, X, y):
        return observed_r2(model, X, y, selected=S)

    got, want = importance(np.where(S, Y, 0.0), {"selected": S}, {}, scorer)
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_splitter_that_scikit_learn_gave_a_seed_still_splits_in_order():
    cv = folds()
    cv.random_state = np.random.RandomState(0)
    for got, want in zip(cv.split(X, Y), folds().split(X, Y), strict=True):
        np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), (False, True)])
def test_missing_classes_that_scikit_learn_numbered_get_advice_that_works(labels):
    y = np.array(
        [labels[int(value)] if there else np.nan for value, there in zip(C, S, strict=True)],
        dtype=object,
    )
    with pytest.raises(InputError, match=r"2.*'selected'") as refused:
        cross_val_predict(binary(), X, y, cv=folds(), method="predict_proba")
    assert "NaN" not in str(refused.value)
    filled = np.where(S, y, labels[0])
    got = cross_val_predict(
        binary(), X, filled, cv=folds(), method="predict_proba", params={"selected": S}
    )
    assert got.shape == (len(X), 2)
    np.testing.assert_allclose(got, out_of_fold(binary), rtol=1e-9)
